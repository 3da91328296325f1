//! Resource amounts by name.

use std::fmt;

use super::quantity::{Quantity, format_bytes, format_milli};
use super::symbol::{Symbol, well_known};

/// The name of a resource: `cpu`, `memory`, `pods`, `ephemeral-storage` or an extended resource.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize)]
pub struct ResourceName(pub Symbol);

/// How the integer that stands for an amount of a resource is to be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResourceUnit {
    /// Thousandths of a CPU.
    MilliCpu,
    /// Bytes.
    Bytes,
    /// A count.
    Count,
}

impl ResourceName {
    /// CPU, counted in thousandths.
    pub const CPU: Self = Self(well_known::CPU);
    /// Memory, counted in bytes.
    pub const MEMORY: Self = Self(well_known::MEMORY);
    /// Pod slots.
    pub const PODS: Self = Self(well_known::PODS);
    /// Ephemeral storage, counted in bytes.
    pub const EPHEMERAL_STORAGE: Self = Self(well_known::EPHEMERAL_STORAGE);
    /// Nodes: legal only in a NodePool's limits.
    pub const NODES: Self = Self(well_known::NODES);
    /// Whole NVIDIA GPUs.
    pub const NVIDIA_GPU: Self = Self(well_known::NVIDIA_GPU);

    /// Whether whole devices of an instance are counted, of which a node has few: GPUs and other accelerators.
    pub fn is_accelerator(self) -> bool {
        use well_known::{AMD_GPU, AWS_NEURON, AWS_NEURON_CORE, HABANA_GAUDI, NVIDIA_GPU};
        [NVIDIA_GPU, AMD_GPU, HABANA_GAUDI, AWS_NEURON, AWS_NEURON_CORE].contains(&self.0)
    }

    /// The unit in which amounts of this resource are counted.
    pub fn unit(self) -> ResourceUnit {
        if self == Self::CPU {
            ResourceUnit::MilliCpu
        } else if self == Self::MEMORY || self == Self::EPHEMERAL_STORAGE || self.0.as_str().starts_with("hugepages-") {
            ResourceUnit::Bytes
        } else {
            ResourceUnit::Count
        }
    }

    /// The amount that `quantity` states for this resource, in its unit, rounded up.
    pub fn amount(self, quantity: Quantity) -> i64 {
        match self.unit() {
            ResourceUnit::MilliCpu => quantity.milli_value(),
            ResourceUnit::Bytes | ResourceUnit::Count => quantity.value(),
        }
    }

    /// Writes an amount of this resource as Kubernetes would.
    pub fn format(self, amount: i64) -> String {
        match self.unit() {
            ResourceUnit::MilliCpu => format_milli(amount),
            ResourceUnit::Bytes => format_bytes(amount),
            ResourceUnit::Count => amount.to_string(),
        }
    }
}

impl fmt::Display for ResourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// Amounts by resource name. A name that is absent is not the same as a name with amount zero: a NodePool's limits
/// bind only the resources they name.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Resources {
    /// Sorted by name, each name once.
    entries: Vec<(ResourceName, i64)>,
}

impl Resources {
    /// No resources.
    pub const fn new() -> Self {
        Self { entries: Vec::new() }
    }

    /// CPU in thousandths and memory in bytes.
    pub fn cpu_memory(cpu_milli: i64, memory_bytes: i64) -> Self {
        [(ResourceName::CPU, cpu_milli), (ResourceName::MEMORY, memory_bytes)].into_iter().collect()
    }

    /// The amount of `name`, zero if absent.
    pub fn get(&self, name: ResourceName) -> i64 {
        self.find(name).unwrap_or(0)
    }

    /// The amount of `name` if it is named at all.
    pub fn find(&self, name: ResourceName) -> Option<i64> {
        self.entries.iter().find(|entry| entry.0 == name).map(|entry| entry.1)
    }

    /// CPU in thousandths.
    pub fn cpu_milli(&self) -> i64 {
        self.get(ResourceName::CPU)
    }

    /// Memory in bytes.
    pub fn memory_bytes(&self) -> i64 {
        self.get(ResourceName::MEMORY)
    }

    /// Pod slots.
    pub fn pods(&self) -> i64 {
        self.get(ResourceName::PODS)
    }

    /// States the amount of `name`.
    pub fn set(&mut self, name: ResourceName, amount: i64) {
        self.change(name, |_| amount);
    }

    /// Makes of the amount of `name`, or of zero if it is not named, another. Comparing names for equality is comparing
    /// integers: only a name that is new is looked for by its text.
    fn change(&mut self, name: ResourceName, how: impl FnOnce(i64) -> i64) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.0 == name) {
            entry.1 = how(entry.1);
        } else {
            let at = self.entries.partition_point(|entry| entry.0 < name);
            self.entries.insert(at, (name, how(0)));
        }
    }

    /// The same resources with `name` stated as `amount`.
    #[must_use]
    pub fn with(mut self, name: ResourceName, amount: i64) -> Self {
        self.set(name, amount);
        self
    }

    /// Forgets `name`.
    pub fn remove(&mut self, name: ResourceName) {
        self.entries.retain(|entry| entry.0 != name);
    }

    /// Names and amounts, in order of name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (ResourceName, i64)> + Clone + '_ {
        self.entries.iter().copied()
    }

    /// Whether no resource is named.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds `other` name by name.
    pub fn add(&mut self, other: &Self) {
        self.add_times(other, 1);
    }

    /// Adds `other` so many times.
    pub fn add_times(&mut self, other: &Self, times: i64) {
        for (name, amount) in other.iter() {
            self.change(name, |item| item.saturating_add(amount.saturating_mul(times)));
        }
    }

    /// Subtracts `other` name by name; may go below zero.
    pub fn subtract(&mut self, other: &Self) {
        for (name, amount) in other.iter() {
            self.change(name, |item| item.saturating_sub(amount));
        }
    }

    /// Raises each amount to that of `other` where `other` is larger.
    pub fn raise_to(&mut self, other: &Self) {
        for (name, amount) in other.iter() {
            self.set(name, self.find(name).map_or(amount, |item| item.max(amount)));
        }
    }

    /// Whether every amount asked for is at most the amount in `available`, absent meaning zero. Names asked for with
    /// zero always fit.
    pub fn fits(&self, available: &Self) -> bool {
        self.iter().all(|(name, amount)| amount <= 0 || amount <= available.get(name))
    }
}

impl FromIterator<(ResourceName, i64)> for Resources {
    fn from_iter<I: IntoIterator<Item = (ResourceName, i64)>>(entries: I) -> Self {
        let mut resources = Self::new();
        for (name, amount) in entries {
            resources.set(name, amount);
        }
        resources
    }
}

/// Writes `cpu 3825m, memory 6166575Ki, pods 7`.
impl fmt::Display for Resources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, (name, amount)) in self.iter().enumerate() {
            let separator = if position == 0 { "" } else { ", " };
            write!(f, "{separator}{name} {}", name.format(amount))?;
        }
        Ok(())
    }
}

impl serde::Serialize for Resources {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter().map(|(name, amount)| (name, name.format(amount))))
    }
}

#[cfg(test)]
mod tests {
    use super::{ResourceName, Resources};

    #[test]
    fn sums_are_exact_across_decimal_and_binary_units() {
        let mut sum = Resources::cpu_memory(3_000, 3 * 2_000_000_000);
        sum.add(&Resources::cpu_memory(825, 300 << 20));
        assert_eq!(sum.with(ResourceName::PODS, 7).to_string(), "cpu 3825m, memory 6166575Ki, pods 7");
    }

    #[test]
    fn what_is_asked_for_as_zero_fits_anywhere() {
        let asked = Resources::new().with(ResourceName::NVIDIA_GPU, 0);
        assert!(asked.fits(&Resources::new()));
        assert!(!Resources::cpu_memory(1, 0).fits(&Resources::new()));
    }
}
