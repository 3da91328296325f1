//! What lasts from one question to the next: constraints, the domains of each key, taint lists, and which constraint
//! selects which pods.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::constraint::{Identity, IdentityId, NodeFilter, PodConstraint, constraints, inverse_constraints};
use super::domains::KeyDomains;
use crate::packing::input::PackingSetup;
use crate::packing::requirement_table::{RequirementTable, SetId, Undefined};
use crate::packing::templates::pool_requirements;
use nodecast_model::domain::symbol::{Symbol, well_known};
use nodecast_model::domain::taints::{Taint, Toleration, first_untolerated};
use nodecast_model::domain::topology::NodeInclusionPolicy;
use nodecast_model::domain::{PodSpec, Requirements};

/// A taint list, interned.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(in crate::packing) struct TaintsId(u32);

impl TaintsId {
    /// Dense index, for tables.
    pub(in crate::packing) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// What decides which domains a group knows, interned: tolerations, and in some releases what pods require.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(in crate::packing) struct TolerationsId(u32);

impl TolerationsId {
    /// Taints are not looked at.
    const TAINTS_IGNORED: Self = Self(u32::MAX);
}

/// The specification of bound pods of one namespace, numbered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::packing) struct SpecNumber(u32);

impl SpecNumber {
    /// Dense index, for tables.
    pub(super) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A constraint of a pod: the group that it belongs to, and what it says of the group if it is its first owner.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(in crate::packing) struct Constraint {
    pub(super) identity: IdentityId,
    pub(super) min_domains: Option<i64>,
    pub(super) tolerations: TolerationsId,
}

/// Which domains a pod lets its group know.
#[derive(PartialEq)]
struct Reach {
    /// Those of pools with tolerated taints; `None` for all.
    tolerations: Option<Vec<Toleration>>,
    /// Those of pools that meet one of these; empty for all.
    sets: Vec<Requirements>,
}

/// The identities that select the pods of one shape, as far as they have been looked at.
#[derive(Default)]
struct Selecting {
    looked_at: usize,
    found: Vec<IdentityId>,
}

/// The specifications whose pods an identity selects, as far as they have been looked at.
#[derive(Default)]
struct Selected {
    looked_at: usize,
    found: Vec<SpecNumber>,
}

/// Everything about topology that no question changes.
#[derive(Default)]
pub(in crate::packing) struct Rules {
    identities: Vec<Identity>,
    ids: FxHashMap<Identity, IdentityId>,
    /// By identity: position of the key's domains; `None` for the host name.
    domains_of: Vec<Option<usize>>,
    pub(super) keys: Vec<KeyDomains>,
    taints: Vec<Vec<Taint>>,
    reaches: Vec<Reach>,
    accepted: FxHashMap<(IdentityId, SetId, TaintsId, Undefined), bool>,
    selecting: Vec<Selecting>,
    /// By number. They are kept alive, so that no address is used twice.
    specs: Vec<(Symbol, Arc<PodSpec>)>,
    spec_numbers: FxHashMap<(Symbol, *const PodSpec), SpecNumber>,
    selected: Vec<Selected>,
}

impl Rules {
    /// The id of a taint list.
    pub(in crate::packing) fn intern_taints(&mut self, taints: &[Taint]) -> TaintsId {
        let known = self.taints.iter().position(|taint| taint == taints).unwrap_or_else(|| {
            self.taints.push(taints.to_vec());
            self.taints.len() - 1
        });
        TaintsId(known as u32)
    }

    /// The taints with this id.
    pub(in crate::packing) fn taint_list(&self, id: TaintsId) -> &[Taint] {
        &self.taints[id.index()]
    }

    /// The constraints that a pod with this specification owns.
    pub(in crate::packing) fn owned(
        &mut self,
        spec: &PodSpec,
        namespace: Symbol,
        setup: &PackingSetup<'_>,
        spanning: &[usize],
        table: &mut RequirementTable,
    ) -> Vec<Constraint> {
        let stated = constraints(spec, namespace, setup, table);
        stated.into_iter().map(|one| self.intern(one, spec, setup, spanning, table)).collect()
    }

    /// The constraints that its required anti-affinity puts on other pods.
    pub(in crate::packing) fn inverse(
        &mut self,
        spec: &PodSpec,
        namespace: Symbol,
        setup: &PackingSetup<'_>,
        spanning: &[usize],
        table: &mut RequirementTable,
    ) -> Vec<Constraint> {
        let stated = inverse_constraints(spec, namespace, setup.namespaces);
        stated.into_iter().map(|one| self.intern(one, spec, setup, spanning, table)).collect()
    }

    fn intern(
        &mut self,
        stated: PodConstraint,
        spec: &PodSpec,
        setup: &PackingSetup<'_>,
        spanning: &[usize],
        table: &mut RequirementTable,
    ) -> Constraint {
        let policy = stated.identity.filter.as_ref().map(|filter| filter.taints);
        let behaviour = setup.behaviour();
        let sets = match &stated.identity.filter {
            Some(filter) if behaviour.filters_domains_by_pool => {
                filter.sets.iter().map(|&set| table.set(set).clone()).collect()
            }
            _ => Vec::new(),
        };
        // Before v1.3 a group knows every domain.
        let tolerations = match behaviour.knows_spread_policies {
            true => self.domains_known_to(policy, spec, sets),
            false => TolerationsId::TAINTS_IGNORED,
        };
        let min_domains = stated.min_domains;
        if let Some(&identity) = self.ids.get(&stated.identity) {
            return Constraint { identity, min_domains, tolerations };
        }
        let key = stated.identity.key;
        let domains = (key != well_known::HOSTNAME).then(|| {
            self.keys.iter().position(|this_key| this_key.key == key).unwrap_or_else(|| {
                self.keys.push(KeyDomains::spanned(key, setup, spanning, table));
                self.keys.len() - 1
            })
        });
        let identity = IdentityId(self.identities.len() as u32);
        self.identities.push(stated.identity.clone());
        self.domains_of.push(domains);
        self.ids.insert(stated.identity, identity);
        Constraint { identity, min_domains, tolerations }
    }

    /// Which domains the first owner lets its group know: all of them if taints are ignored, which is the default of a
    /// spread, else those that it tolerates; affinity has no such policy and honours taints.
    fn domains_known_to(
        &mut self,
        policy: Option<NodeInclusionPolicy>,
        spec: &PodSpec,
        sets: Vec<Requirements>,
    ) -> TolerationsId {
        let ignored = policy == Some(NodeInclusionPolicy::Ignore);
        if ignored && sets.is_empty() {
            return TolerationsId::TAINTS_IGNORED;
        }
        let reach = Reach { tolerations: (!ignored).then(|| spec.tolerations.clone()), sets };
        let known = self.reaches.iter().position(|this_reach| *this_reach == reach).unwrap_or_else(|| {
            self.reaches.push(reach);
            self.reaches.len() - 1
        });
        TolerationsId(known as u32)
    }

    /// The identity with this id.
    pub(super) fn identity(&self, id: IdentityId) -> &Identity {
        &self.identities[id.index()]
    }

    /// Position of the domains of an identity's key; `None` for the host name.
    pub(super) fn domains_of(&self, id: IdentityId) -> Option<usize> {
        self.domains_of[id.index()]
    }

    /// The spanned domains of a key that such tolerations let a group know.
    pub(super) fn known_domains(&self, key: usize, tolerations: TolerationsId, setup: &PackingSetup<'_>) -> Vec<usize> {
        let reach = (tolerations != TolerationsId::TAINTS_IGNORED).then(|| &self.reaches[tolerations.0 as usize]);
        let sets = reach.map_or(&[][..], |reach| &reach.sets);
        let fits = |pool: usize| {
            let pool_requirements = pool_requirements(setup, pool);
            sets.is_empty() || sets.iter().any(|set| pool_requirements.intersects(set).is_ok())
        };
        self.keys[key].tolerated(setup, reach.and_then(|reach| reach.tolerations.as_deref()), &fits).collect()
    }

    /// Whether a constraint's node filter accepts a node with these requirements and taints.
    pub(super) fn accepts(
        &mut self,
        id: IdentityId,
        set: SetId,
        taints: TaintsId,
        undefined: Undefined,
        table: &RequirementTable,
    ) -> bool {
        let Some(filter) = &self.identities[id.index()].filter else { return true };
        if filter.accepts_all() {
            return true;
        }
        let key = (id, set, taints, undefined);
        if let Some(&known) = self.accepted.get(&key) {
            return known;
        }
        let affine = filter.affinity == NodeInclusionPolicy::Ignore
            || filter.sets.iter().any(|&wanted| table.conflict(set, wanted, undefined).is_none());
        let tolerated = filter.taints == NodeInclusionPolicy::Ignore
            || first_untolerated(&self.taints[taints.index()], &filter.tolerations).is_none();
        self.accepted.insert(key, affine && tolerated);
        affine && tolerated
    }

    /// Whether a constraint's node filter accepts every node.
    pub(super) fn accepts_everywhere(&self, id: IdentityId) -> bool {
        self.identities[id.index()].filter.as_ref().is_none_or(NodeFilter::accepts_all)
    }

    /// The number of a specification of bound pods.
    pub(in crate::packing) fn number(&mut self, namespace: Symbol, spec: &Arc<PodSpec>) -> SpecNumber {
        *self.spec_numbers.entry((namespace, Arc::as_ptr(spec))).or_insert_with(|| {
            self.specs.push((namespace, Arc::clone(spec)));
            SpecNumber(self.specs.len() as u32 - 1)
        })
    }

    /// The specification with this number, and the namespace of its pods.
    pub(super) fn spec(&self, number: SpecNumber) -> (Symbol, Arc<PodSpec>) {
        let (namespace, spec) = &self.specs[number.index()];
        (*namespace, Arc::clone(spec))
    }

    /// How many specifications have a number.
    pub(super) fn spec_count(&self) -> usize {
        self.specs.len()
    }

    /// The specifications whose pods an identity selects.
    pub(super) fn selected(&mut self, id: IdentityId) -> &[SpecNumber] {
        if self.selected.len() <= id.index() {
            self.selected.resize_with(id.index() + 1, Selected::default);
        }
        let known = &mut self.selected[id.index()];
        for (position, (namespace, spec)) in self.specs.iter().enumerate().skip(known.looked_at) {
            if self.identities[id.index()].selects(*namespace, &spec.labels) {
                known.found.push(SpecNumber(position as u32));
            }
        }
        known.looked_at = self.specs.len();
        &known.found
    }

    /// The identities that select pods of the shape with this number.
    pub(super) fn selecting(&mut self, shape: usize, namespace: Symbol, spec: &PodSpec) -> &[IdentityId] {
        if self.selecting.len() <= shape {
            self.selecting.resize_with(shape + 1, Selecting::default);
        }
        let known = &mut self.selecting[shape];
        for position in known.looked_at..self.identities.len() {
            if self.identities[position].selects(namespace, &spec.labels) {
                known.found.push(IdentityId(position as u32));
            }
        }
        known.looked_at = self.identities.len();
        &known.found
    }
}
