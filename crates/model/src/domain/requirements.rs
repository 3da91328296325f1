//! Karpenter's requirement algebra: what may be the value of a node label.
//!
//! Source: Karpenter core v1.13 `pkg/scheduling/requirement.go` and `requirements.go`. This is the plain, obvious form;
//! the packer compiles it into bit sets.

use std::collections::BTreeSet;
use std::fmt;

use super::labels::Labels;
use super::symbol::Symbol;

/// The operator with which a requirement is written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, serde::Serialize)]
pub enum Operator {
    /// The value is one of the given ones.
    In,
    /// The value is none of the given ones.
    NotIn,
    /// The key has a value.
    Exists,
    /// The key has no value.
    DoesNotExist,
    /// The value is an integer above the given one.
    Gt,
    /// The value is an integer below the given one.
    Lt,
    /// The value is an integer, at least the given one.
    Gte,
    /// The value is an integer, at most the given one.
    Lte,
}

impl fmt::Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// The set of values that a label may take: either the listed values, or (complement) every value but the listed ones,
/// in both cases within the integer bounds.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Requirement {
    /// The label's key, with renamed keys already rewritten.
    pub key: Symbol,
    /// Whether `values` lists what is excluded.
    pub complement: bool,
    /// Listed values.
    pub values: BTreeSet<Symbol>,
    /// Smallest allowed integer.
    pub gte: Option<i64>,
    /// Largest allowed integer.
    pub lte: Option<i64>,
    /// How many different values the instance types of a claim must keep between them.
    pub min_values: Option<u32>,
}

impl Requirement {
    /// The requirement written `key operator values`. For the comparing operators the first value counts; text that is
    /// not an integer allows nothing, as does `Gt` of the largest integer.
    pub fn new(key: Symbol, operator: Operator, values: impl IntoIterator<Item = Symbol>) -> Self {
        let mut requirement =
            Self { key, complement: false, values: BTreeSet::new(), gte: None, lte: None, min_values: None };
        let mut values = values.into_iter();
        match operator {
            Operator::In => requirement.values.extend(values),
            Operator::NotIn => {
                requirement.complement = true;
                requirement.values.extend(values);
            }
            Operator::Exists => requirement.complement = true,
            Operator::DoesNotExist => {}
            Operator::Gt | Operator::Lt | Operator::Gte | Operator::Lte => {
                let bound = values.next().and_then(|value| value.as_str().parse::<i64>().ok());
                let bound = bound.and_then(|n| match operator {
                    Operator::Gt => n.checked_add(1),
                    Operator::Lt => n.checked_sub(1),
                    _ => Some(n),
                });
                requirement.complement = bound.is_some();
                match operator {
                    Operator::Gt | Operator::Gte => requirement.gte = bound,
                    _ => requirement.lte = bound,
                }
            }
        }
        requirement
    }

    /// `key In [value]`.
    pub fn equals(key: Symbol, value: Symbol) -> Self {
        Self::new(key, Operator::In, [value])
    }

    /// The same requirement with a floor on the number of different values.
    #[must_use]
    pub fn with_min_values(mut self, min_values: Option<u32>) -> Self {
        self.min_values = min_values;
        self
    }

    /// The operator that describes the set; integer bounds alone read as `Exists`.
    pub fn operator(&self) -> Operator {
        match (self.complement, self.values.is_empty()) {
            (true, true) => Operator::Exists,
            (true, false) => Operator::NotIn,
            (false, true) => Operator::DoesNotExist,
            (false, false) => Operator::In,
        }
    }

    /// Whether the label may take `value`.
    pub fn has(&self, value: Symbol) -> bool {
        self.lists(value) != self.complement && self.within_bounds(value)
    }

    /// Whether `value` is listed. A short list is gone through: that compares numbers where a search compares texts.
    fn lists(&self, value: Symbol) -> bool {
        const SHORT: usize = 16;
        if self.values.len() <= SHORT {
            self.values.iter().any(|&this_value| this_value == value)
        } else {
            self.values.contains(&value)
        }
    }

    /// The values that both requirements allow; the larger `min_values` is kept.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let gte = tighter(self.gte, other.gte, i64::max);
        let lte = tighter(self.lte, other.lte, i64::min);
        let min_values = self.min_values.max(other.min_values);
        let mut result = Self {
            key: self.key,
            complement: self.complement && other.complement,
            values: BTreeSet::new(),
            gte,
            lte,
            min_values,
        };
        if contradictory(gte, lte) {
            result.complement = false;
            result.gte = None;
            result.lte = None;
            return result;
        }
        result.values = match (self.complement, other.complement) {
            (true, true) => self.values.union(&other.values).copied().collect(),
            (true, false) => other.values.difference(&self.values).copied().collect(),
            (false, true) => self.values.difference(&other.values).copied().collect(),
            (false, false) => self.values.intersection(&other.values).copied().collect(),
        };
        let bounds = result.clone_bounds();
        result.values.retain(|&value| bounds.within_bounds(value));
        if !result.complement {
            result.gte = None;
            result.lte = None;
        }
        result
    }

    /// Whether some value is allowed by both.
    pub fn has_intersection(&self, other: &Self) -> bool {
        let gte = tighter(self.gte, other.gte, i64::max);
        let lte = tighter(self.lte, other.lte, i64::min);
        if contradictory(gte, lte) {
            return false;
        }
        match (self.complement, other.complement) {
            (true, true) => true,
            (true, false) => other.values.iter().any(|&value| self.has(value) && other.within_bounds(value)),
            (false, _) => self.values.iter().any(|&value| other.has(value) && self.within_bounds(value)),
        }
    }

    /// One value that satisfies the requirement: the smallest listed one, else the lower bound or 0; `None` for
    /// `DoesNotExist`.
    ///
    /// Deviation: for a label with several allowed values, upstream draws one at random.
    pub fn any(&self) -> Option<Symbol> {
        match self.operator() {
            Operator::DoesNotExist => None,
            Operator::In => self.values.first().copied(),
            _ => {
                let start = self.gte.unwrap_or(0).min(self.lte.unwrap_or(i64::MAX));
                (start..=self.lte.unwrap_or(i64::MAX))
                    .map(|candidate| Symbol::new(&candidate.to_string()))
                    .find(|&candidate| self.has(candidate))
            }
        }
    }

    fn within_bounds(&self, value: Symbol) -> bool {
        if self.gte.is_none() && self.lte.is_none() {
            return true;
        }
        value
            .as_str()
            .parse::<i64>()
            .is_ok_and(|n| self.gte.is_none_or(|least| n >= least) && self.lte.is_none_or(|most| n <= most))
    }

    fn clone_bounds(&self) -> Self {
        Self { values: BTreeSet::new(), ..self.clone() }
    }
}

fn tighter(a: Option<i64>, b: Option<i64>, pick: fn(i64, i64) -> i64) -> Option<i64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(pick(a, b)),
        (bound, None) | (None, bound) => bound,
    }
}

fn contradictory(gte: Option<i64>, lte: Option<i64>) -> bool {
    matches!((gte, lte), (Some(least), Some(most)) if least > most)
}

/// Writes the requirement as Karpenter's messages do: `key In [a b]`, `key Exists >=3`.
impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.key, self.operator())?;
        if !self.values.is_empty() {
            f.write_str(" [")?;
            for (position, value) in self.values.iter().enumerate() {
                if position == 5 {
                    write!(f, " and {} others", self.values.len() - 5)?;
                    break;
                }
                write!(f, "{}{value}", if position == 0 { "" } else { " " })?;
            }
            f.write_str("]")?;
        }
        if let Some(least) = self.gte {
            write!(f, " >={least}")?;
        }
        if let Some(most) = self.lte {
            write!(f, " <={most}")?;
        }
        if let Some(count) = self.min_values {
            write!(f, " minValues {count}")?;
        }
        Ok(())
    }
}

/// Why two sets of requirements are not compatible.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Incompatibility {
    /// The incoming side asks for a label that the other side does not define.
    #[error("label \"{key}\" does not have known values")]
    UndefinedLabel {
        /// The label asked for.
        key: Symbol,
        /// A defined label that is spelled almost the same.
        hint: Option<Symbol>,
    },
    /// No value is allowed by both.
    #[error("key {}, {incoming} not in {existing}", existing.key)]
    NoCommonValue {
        /// The requirement in place.
        existing: Box<Requirement>,
        /// The one that came in.
        incoming: Box<Requirement>,
    },
}

/// Requirements, one for each key, sorted by key.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Requirements(Vec<Requirement>);

impl Requirements {
    /// No requirement: any node will do.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// No requirement yet, with room for so many.
    pub fn with_capacity(room: usize) -> Self {
        Self(Vec::with_capacity(room))
    }

    /// One `In` requirement for each label.
    pub fn from_labels(labels: &Labels) -> Self {
        labels.iter().map(|(key, value)| Requirement::equals(super::labels::normalized_key(key), value)).collect()
    }

    /// Adds a requirement, narrowing any older one of the same key.
    pub fn add(&mut self, requirement: Requirement) {
        match self.0.binary_search_by(|this_requirement| this_requirement.key.cmp(&requirement.key)) {
            Ok(at) => self.0[at] = self.0[at].intersection(&requirement),
            Err(at) => self.0.insert(at, requirement),
        }
    }

    /// Adds every requirement of `other`.
    pub fn extend(&mut self, other: &Self) {
        for requirement in &other.0 {
            self.add(requirement.clone());
        }
    }

    /// The requirement for `key`, if stated.
    pub fn get(&self, key: Symbol) -> Option<&Requirement> {
        self.0.iter().find(|requirement| requirement.key == key)
    }

    /// Forgets `key`.
    pub fn remove(&mut self, key: Symbol) {
        self.0.retain(|requirement| requirement.key != key);
    }

    /// The requirements in order of key.
    pub fn iter(&self) -> std::slice::Iter<'_, Requirement> {
        self.0.iter()
    }

    /// Whether nothing is required.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether any requirement states `min_values`.
    pub fn has_min_values(&self) -> bool {
        self.0.iter().any(|requirement| requirement.min_values.is_some())
    }

    /// Checks that for every key in both some value is allowed by both. Two requirements that both only exclude
    /// (`NotIn`, `DoesNotExist`) never conflict.
    ///
    /// # Errors
    /// The first key, in order, without a common value.
    pub fn intersects(&self, incoming: &Self) -> Result<(), Incompatibility> {
        for theirs in &incoming.0 {
            let Some(requirement) = self.get(theirs.key) else { continue };
            let excluding = |r: &Requirement| matches!(r.operator(), Operator::NotIn | Operator::DoesNotExist);
            let both_exclude = excluding(requirement) && excluding(theirs);
            if !both_exclude && !requirement.has_intersection(theirs) {
                return Err(Incompatibility::NoCommonValue {
                    existing: Box::new(requirement.clone()),
                    incoming: Box::new(theirs.clone()),
                });
            }
        }
        Ok(())
    }

    /// Checks that `incoming` can be added: every key it asks for is defined here, allowed to be undefined, or only
    /// excluded; and [`Self::intersects`] holds.
    ///
    /// # Errors
    /// The first obstacle.
    pub fn compatible(
        &self,
        incoming: &Self,
        may_be_undefined: impl Fn(Symbol) -> bool,
    ) -> Result<(), Incompatibility> {
        for theirs in &incoming.0 {
            let excluding = matches!(theirs.operator(), Operator::NotIn | Operator::DoesNotExist);
            if may_be_undefined(theirs.key) || excluding || self.get(theirs.key).is_some() {
                continue;
            }
            return Err(Incompatibility::UndefinedLabel { key: theirs.key, hint: self.similar_key(theirs.key) });
        }
        self.intersects(incoming)
    }

    /// A key of this set that a typing error could have turned into `key`.
    fn similar_key(&self, key: Symbol) -> Option<Symbol> {
        let distance = |other: Symbol| strsim::levenshtein(other.as_str(), key.as_str());
        self.0
            .iter()
            .map(|requirement| requirement.key)
            .filter(|&this_key| distance(this_key) <= key.as_str().len() / 5)
            .min_by_key(|&key| distance(key))
    }
}

impl FromIterator<Requirement> for Requirements {
    fn from_iter<I: IntoIterator<Item = Requirement>>(requirements: I) -> Self {
        let mut set = Self::new();
        for requirement in requirements {
            set.add(requirement);
        }
        set
    }
}

impl<'a> IntoIterator for &'a Requirements {
    type Item = &'a Requirement;
    type IntoIter = std::slice::Iter<'a, Requirement>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl fmt::Display for Requirements {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, requirement) in self.0.iter().enumerate() {
            write!(f, "{}{requirement}", if position == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Incompatibility, Operator, Requirement, Requirements};
    use crate::domain::symbol::Symbol;

    fn requirement(operator: Operator, values: &[&str]) -> Requirement {
        Requirement::new(Symbol::new("key"), operator, values.iter().map(|v| Symbol::new(v)))
    }

    #[test]
    fn intersections_follow_the_table_of_operators() {
        let in_ab = requirement(Operator::In, &["a", "b"]);
        let not_b = requirement(Operator::NotIn, &["b"]);
        assert_eq!(in_ab.intersection(&not_b), requirement(Operator::In, &["a"]));
        assert_eq!(
            not_b.intersection(&requirement(Operator::NotIn, &["c"])),
            requirement(Operator::NotIn, &["b", "c"])
        );
        assert_eq!(in_ab.intersection(&requirement(Operator::In, &["c"])).operator(), Operator::DoesNotExist);
        assert_eq!(requirement(Operator::Exists, &[]).intersection(&in_ab), in_ab);
    }

    #[test]
    fn bounds_filter_values_and_contradictions_allow_nothing() {
        let above_two = requirement(Operator::Gt, &["2"]);
        let listed = requirement(Operator::In, &["2", "3", "x"]);
        assert_eq!(above_two.intersection(&listed), requirement(Operator::In, &["3"]));
        let below_three = requirement(Operator::Lt, &["3"]);
        assert_eq!(above_two.intersection(&below_three).operator(), Operator::DoesNotExist);
        assert!(!above_two.has_intersection(&below_three));
        assert_eq!(requirement(Operator::Gt, &["9223372036854775807"]).operator(), Operator::DoesNotExist);
    }

    #[test]
    fn undefined_label_needs_permission_or_exclusion() {
        let pool = Requirements::new();
        let asks: Requirements = [requirement(Operator::In, &["a"])].into_iter().collect();
        let excludes: Requirements = [requirement(Operator::NotIn, &["a"])].into_iter().collect();
        assert!(matches!(pool.compatible(&asks, |_| false), Err(Incompatibility::UndefinedLabel { .. })));
        assert_eq!(pool.compatible(&asks, |_| true), Ok(()));
        assert_eq!(pool.compatible(&excludes, |_| false), Ok(()));
    }
}
