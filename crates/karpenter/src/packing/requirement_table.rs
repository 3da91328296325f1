//! Requirements and sets of requirements as small integers, with the results of combining them remembered.
//!
//! Open claims share few different sets, and pods of one class ask the same question of each: after the first time the
//! answer is one look-up. The host name never enters a set, because every node has its own; it is checked apart.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::release::Behaviour;
use nodecast_model::domain::KarpenterVersion;
use nodecast_model::domain::labels::{is_well_known, is_well_known_in_auto_mode};
use nodecast_model::domain::requirements::{Incompatibility, Requirement, Requirements};
use nodecast_model::domain::symbol::{Symbol, well_known};

/// An interned requirement.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct RequirementId(u32);

impl RequirementId {
    /// Dense index, for tables.
    pub(super) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// An interned set of requirements.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct SetId(u32);

impl SetId {
    /// The set that requires nothing.
    pub(super) const EMPTY: Self = Self(0);

    /// Dense index, for tables.
    pub(super) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Which labels an incoming requirement may name although the node does not define them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Undefined {
    /// None: the node exists and its labels are all known.
    Refused,
    /// Labels that Karpenter sets itself: the node is yet to be launched.
    WellKnownAllowed,
    /// Any: what an existing node does not say is left open (up to v0.29).
    Allowed,
}

/// The result of adding one set to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Combined {
    /// Both together.
    Set(SetId),
    /// A label asked for is not defined. It may become defined when another pod's exclusion of it is added.
    Undefined,
    /// Some key has no value left; adding more can never change that.
    Contradiction,
}

struct Set {
    requirements: Arc<Requirements>,
    members: Box<[(Symbol, RequirementId)]>,
    has_min_values: bool,
}

/// All requirements and sets met so far.
pub(super) struct RequirementTable {
    requirements: Vec<Requirement>,
    requirement_ids: FxHashMap<Requirement, RequirementId>,
    sets: Vec<Set>,
    set_ids: FxHashMap<Box<[RequirementId]>, SetId>,
    combined: FxHashMap<(SetId, SetId, Undefined), Combined>,
    /// By requirement, the set of it alone, as far as somebody asked.
    singles: Vec<Option<SetId>>,
    /// Whether Karpenter itself labels nodes with the ids of their zones; where it does not, that label is one like any other.
    labels_zone_ids: bool,
}

impl RequirementTable {
    /// A table for this release that knows only the empty set.
    pub(super) fn new(release: KarpenterVersion) -> Self {
        let mut table = Self {
            requirements: Vec::new(),
            requirement_ids: FxHashMap::default(),
            sets: Vec::new(),
            set_ids: FxHashMap::default(),
            combined: FxHashMap::default(),
            singles: Vec::new(),
            labels_zone_ids: Behaviour::for_release(release).labels_zone_ids,
        };
        table.intern(&Requirements::new());
        table
    }

    /// How many sets it knows.
    pub(super) fn sets(&self) -> usize {
        self.sets.len()
    }

    /// The id of a requirement.
    pub(super) fn intern_requirement(&mut self, requirement: &Requirement) -> RequirementId {
        if let Some(&id) = self.requirement_ids.get(requirement) {
            return id;
        }
        let id = RequirementId(self.requirements.len() as u32);
        self.requirements.push(requirement.clone());
        self.requirement_ids.insert(requirement.clone(), id);
        id
    }

    /// The id of a set, the host name left out.
    pub(super) fn intern(&mut self, requirements: &Requirements) -> SetId {
        let kept: Requirements = requirements.iter().filter(|r| r.key != well_known::HOSTNAME).cloned().collect();
        let members: Box<[(Symbol, RequirementId)]> =
            kept.iter().map(|r| (r.key, self.intern_requirement(r))).collect();
        let key: Box<[RequirementId]> = members.iter().map(|member| member.1).collect();
        if let Some(&id) = self.set_ids.get(&key) {
            return id;
        }
        let id = SetId(self.sets.len() as u32);
        self.sets.push(Set { has_min_values: kept.has_min_values(), requirements: Arc::new(kept), members });
        self.set_ids.insert(key, id);
        id
    }

    /// The set of one requirement.
    pub(super) fn single(&mut self, requirement: RequirementId) -> SetId {
        if let Some(&Some(set)) = self.singles.get(requirement.index()) {
            return set;
        }
        let requirements: Requirements = [self.requirements[requirement.0 as usize].clone()].into_iter().collect();
        let set = self.intern(&requirements);
        if self.singles.len() <= requirement.index() {
            self.singles.resize(requirement.index() + 1, None);
        }
        self.singles[requirement.index()] = Some(set);
        set
    }

    /// The requirement with this id.
    pub(super) fn requirement(&self, id: RequirementId) -> &Requirement {
        &self.requirements[id.0 as usize]
    }

    /// The set with this id.
    pub(super) fn set(&self, id: SetId) -> &Requirements {
        self.shared(id)
    }

    /// The same, to be kept.
    pub(super) fn shared(&self, id: SetId) -> &Arc<Requirements> {
        &self.sets[id.index()].requirements
    }

    /// The members of a set, by key.
    pub(super) fn members(&self, id: SetId) -> &[(Symbol, RequirementId)] {
        &self.sets[id.index()].members
    }

    /// Whether a set states `minValues`.
    pub(super) fn has_min_values(&self, id: SetId) -> bool {
        self.sets[id.index()].has_min_values
    }

    /// What a set requires of `key`.
    pub(super) fn member(&self, id: SetId, key: Symbol) -> Option<RequirementId> {
        self.sets[id.index()].members.iter().find(|member| member.0 == key).map(|member| member.1)
    }

    /// Checks that `incoming` is compatible with `existing` and adds it.
    pub(super) fn combine(&mut self, existing: SetId, incoming: SetId, undefined: Undefined) -> Combined {
        if incoming == SetId::EMPTY || incoming == existing {
            return Combined::Set(existing);
        }
        if let Some(&known) = self.combined.get(&(existing, incoming, undefined)) {
            return known;
        }
        let result = match self.conflict(existing, incoming, undefined) {
            None => {
                let mut both = self.set(existing).clone();
                both.extend(&self.sets[incoming.index()].requirements);
                Combined::Set(self.intern(&both))
            }
            Some(Incompatibility::UndefinedLabel { .. }) => Combined::Undefined,
            Some(Incompatibility::NoCommonValue { .. }) => Combined::Contradiction,
        };
        self.combined.insert((existing, incoming, undefined), result);
        result
    }

    /// Why `incoming` cannot be added to `existing`.
    pub(super) fn conflict(&self, existing: SetId, incoming: SetId, undefined: Undefined) -> Option<Incompatibility> {
        let allowed = |key| match undefined {
            Undefined::Refused => false,
            // Nodes of EKS Auto Mode have other labels, and one by which they are told.
            Undefined::WellKnownAllowed if self.member(existing, well_known::EKS_COMPUTE_TYPE).is_some() => {
                is_well_known_in_auto_mode(key)
            }
            Undefined::WellKnownAllowed if key == well_known::ZONE_ID => self.labels_zone_ids,
            Undefined::WellKnownAllowed => is_well_known(key),
            Undefined::Allowed => true,
        };
        self.set(existing).compatible(self.set(incoming), allowed).err()
    }
}

#[cfg(test)]
mod tests {
    use super::{Combined, RequirementTable, SetId, Undefined};
    use nodecast_model::domain::KarpenterVersion;
    use nodecast_model::domain::requirements::{Operator, Requirement, Requirements};
    use nodecast_model::domain::symbol::Symbol;

    fn one(key: &str, operator: Operator, values: &[&str]) -> Requirements {
        [Requirement::new(Symbol::new(key), operator, values.iter().map(|v| Symbol::new(v)))].into_iter().collect()
    }

    #[test]
    fn combining_is_remembered_and_never_changes_its_answer() {
        let mut table = RequirementTable::new(KarpenterVersion::V1_13);
        let zone = "topology.kubernetes.io/zone";
        let both = table.intern(&one(zone, Operator::In, &["a", "b"]));
        let only_a = table.intern(&one(zone, Operator::In, &["a"]));
        let only_c = table.intern(&one(zone, Operator::In, &["c"]));
        for _ in 0..2 {
            assert_eq!(table.combine(both, only_a, Undefined::Refused), Combined::Set(only_a));
            assert_eq!(table.combine(both, only_c, Undefined::Refused), Combined::Contradiction);
            assert_eq!(table.combine(SetId::EMPTY, only_a, Undefined::Refused), Combined::Undefined);
            assert_eq!(table.combine(SetId::EMPTY, only_a, Undefined::WellKnownAllowed), Combined::Set(only_a));
        }
    }

    #[test]
    fn hostname_is_excluded_from_requirement_sets() {
        let mut table = RequirementTable::new(KarpenterVersion::V1_13);
        assert_eq!(table.intern(&one("kubernetes.io/hostname", Operator::In, &["n"])), SetId::EMPTY);
    }
}
