//! Resource names as small indices, amounts as dense vectors.

use rustc_hash::FxHashMap;

use nodecast_model::domain::{ResourceName, Resources};

/// The resource names met so far. Amount vectors may be shorter than the table: what is missing is zero.
#[derive(Default)]
pub(super) struct ResourceTable {
    indices: FxHashMap<ResourceName, usize>,
    names: Vec<ResourceName>,
}

impl ResourceTable {
    /// The index of `name`.
    pub(super) fn index(&mut self, name: ResourceName) -> usize {
        if let Some(&index) = self.indices.get(&name) {
            return index;
        }
        self.names.push(name);
        self.indices.insert(name, self.names.len() - 1);
        self.names.len() - 1
    }

    /// The name at an index.
    pub(super) fn name(&self, index: usize) -> ResourceName {
        self.names[index]
    }

    /// The number of names.
    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    /// `resources` as a vector over every name met so far.
    pub(super) fn dense(&mut self, resources: &Resources) -> Vec<i64> {
        let mut amounts = vec![0; self.len()];
        for (name, amount) in resources.iter() {
            let index = self.index(name);
            if index >= amounts.len() {
                amounts.resize(index + 1, 0);
            }
            amounts[index] = amount;
        }
        amounts
    }
}

/// The amount at an index, zero beyond the end.
pub(super) fn amount(amounts: &[i64], index: usize) -> i64 {
    amounts.get(index).copied().unwrap_or(0)
}

/// Whether `left` has room for `amounts`; what is not asked for fits everywhere.
pub(super) fn fits(left: &[i64], amounts: &[i64]) -> bool {
    amounts.iter().enumerate().all(|(index, &wanted)| wanted <= 0 || wanted <= amount(left, index))
}

/// How often `amounts` fit into `left`; without end if nothing is asked for.
pub(super) fn times(left: &[i64], amounts: &[i64]) -> i64 {
    let wanted = amounts.iter().enumerate().filter(|(_, wanted)| **wanted > 0);
    wanted.map(|(index, wanted)| amount(left, index) / wanted).min().unwrap_or(i64::MAX)
}

/// Takes `amounts` off `left` so many times; see [`subtract`].
pub(super) fn subtract_times(left: &mut [i64], amounts: &[i64], times: i64) {
    for (left, amount) in left.iter_mut().zip(amounts) {
        *left -= amount * times;
    }
}

/// Takes `amounts` off `left`, which does not become longer.
pub(super) fn subtract(left: &mut [i64], amounts: &[i64]) {
    subtract_times(left, amounts, 1);
}

/// Adds `other` to `amounts`.
pub(super) fn add(amounts: &mut Vec<i64>, other: &[i64]) {
    add_times(amounts, other, 1);
}

/// Adds `other` to `amounts` so many times.
pub(super) fn add_times(amounts: &mut Vec<i64>, other: &[i64], times: i64) {
    if amounts.len() < other.len() {
        amounts.resize(other.len(), 0);
    }
    for (amount, more) in amounts.iter_mut().zip(other) {
        *amount = amount.saturating_add(more.saturating_mul(times));
    }
}
