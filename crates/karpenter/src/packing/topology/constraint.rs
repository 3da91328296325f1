//! Constraints as pods state them, each given a number that lasts as long as the packer: spread, affinity, anti-affinity,
//! and the anti-affinity of others turned round.
//!
//! Source: Karpenter core v1.13 `pkg/controllers/provisioning/scheduling/topology.go` (`newForTopologies`,
//! `newForAffinities`, `updateInverseAntiAffinity`), `topologynodefilter.go`.

use std::borrow::Cow;

use crate::packing::errors::TopologyKind;
use crate::packing::input::{NamespaceView, PackingSetup, PreferencePolicy};
use crate::packing::requirement_table::{RequirementTable, SetId};
use crate::release::Behaviour;
use nodecast_model::domain::labels::{LabelSelector, Labels, SelectorExpression, SelectorOperator};
use nodecast_model::domain::symbol::Symbol;
use nodecast_model::domain::taints::Toleration;
use nodecast_model::domain::topology::{NodeInclusionPolicy, PodAffinityTerm, TopologySpread, WhenUnsatisfiable};
use nodecast_model::domain::{PodSpec, Requirements};

/// An interned [`Identity`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(in crate::packing) struct IdentityId(pub(super) u32);

impl IdentityId {
    /// Dense index, for tables.
    pub(super) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Which nodes count in a spread: those that meet one of the sets and whose taints are tolerated.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct NodeFilter {
    pub(super) sets: Vec<SetId>,
    pub(super) affinity: NodeInclusionPolicy,
    pub(super) taints: NodeInclusionPolicy,
    pub(super) tolerations: Vec<Toleration>,
}

impl NodeFilter {
    /// Whether it accepts every node.
    pub(super) fn accepts_all(&self) -> bool {
        self.taints == NodeInclusionPolicy::Ignore
            && (self.affinity == NodeInclusionPolicy::Ignore || self.sets.contains(&SetId::EMPTY))
    }
}

/// What makes two constraints one group. `minDomains` is not part of it: the first constraint's value holds for all.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Identity {
    pub(super) kind: TopologyKind,
    pub(super) key: Symbol,
    pub(super) namespaces: Vec<Symbol>,
    pub(super) selector: Option<LabelSelector>,
    pub(super) max_skew: i64,
    pub(super) filter: Option<NodeFilter>,
}

impl Identity {
    /// Whether the group counts (or, inverse, stands against) a pod of this namespace with these labels.
    pub(super) fn selects(&self, namespace: Symbol, labels: &Labels) -> bool {
        self.namespaces.contains(&namespace) && self.selector.as_ref().is_some_and(|selector| selector.matches(labels))
    }
}

/// A constraint as a pod states it.
pub(super) struct PodConstraint {
    pub(super) identity: Identity,
    pub(super) min_domains: Option<i64>,
}

/// The spread, affinity and anti-affinity constraints of a pod, preferred ones included unless they are ignored.
pub(super) fn constraints(
    spec: &PodSpec,
    namespace: Symbol,
    setup: &PackingSetup<'_>,
    table: &mut RequirementTable,
) -> Vec<PodConstraint> {
    let (namespaces, policy) = (setup.namespaces, setup.options.preferences);
    let mut found = Vec::new();
    for spread in &spec.topology_spread {
        if policy == PreferencePolicy::Ignore && spread.when_unsatisfiable == WhenUnsatisfiable::ScheduleAnyway {
            continue;
        }
        found.push(spread_constraint(spec, namespace, spread, setup.behaviour(), table));
    }
    let respected = policy == PreferencePolicy::Respect;
    for (kind, affinity) in
        [(TopologyKind::Affinity, &spec.pod_affinity), (TopologyKind::AntiAffinity, &spec.pod_anti_affinity)]
    {
        let preferred = affinity.preferred.iter().filter(|_| respected).map(|weighted| &weighted.term);
        for term in affinity.required.iter().chain(preferred) {
            found.push(affinity_constraint(kind, (namespace, &spec.labels), term, namespaces));
        }
    }
    found
}

/// The constraints that a pod's required anti-affinity puts on others.
pub(super) fn inverse_constraints(
    spec: &PodSpec,
    namespace: Symbol,
    namespaces: &[NamespaceView<'_>],
) -> Vec<PodConstraint> {
    let item = (namespace, &spec.labels);
    let required = spec.pod_anti_affinity.required.iter();
    required.map(|term| affinity_constraint(TopologyKind::AntiAffinity, item, term, namespaces)).collect()
}

fn spread_constraint(
    spec: &PodSpec,
    namespace: Symbol,
    spread: &TopologySpread,
    behaviour: &Behaviour,
    table: &mut RequirementTable,
) -> PodConstraint {
    let policies = behaviour.knows_spread_policies;
    let selector = spread.selector.clone().map(|mut selector| {
        for &key in spread.match_label_keys.iter().filter(|_| policies) {
            if let Some(value) = spec.labels.get(key) {
                let expression = SelectorExpression { key, operator: SelectorOperator::In, values: vec![value] };
                if !selector.expressions.contains(&expression) {
                    selector.expressions.push(expression);
                }
            }
        }
        selector.expressions.sort_by_key(|expression| expression.key);
        selector
    });
    let selected = Requirements::from_labels(&spec.node_selector);
    let mut sets: Vec<SetId> = Vec::new();
    if spec.node_affinity.required.is_empty() {
        sets.push(table.intern(&selected));
    }
    for term in &spec.node_affinity.required {
        let mut both = selected.clone();
        both.extend(&term.requirements());
        sets.push(table.intern(&both));
    }
    PodConstraint {
        identity: Identity {
            kind: TopologyKind::Spread,
            key: spread.topology_key,
            namespaces: vec![namespace],
            selector,
            max_skew: spread.max_skew,
            filter: Some(NodeFilter {
                sets,
                affinity: if policies { spread.node_affinity_policy } else { NodeInclusionPolicy::Honor },
                taints: if policies { spread.node_taints_policy } else { NodeInclusionPolicy::Ignore },
                tolerations: spec.tolerations.clone(),
            }),
        },
        min_domains: spread.min_domains.filter(|_| behaviour.knows_min_domains),
    }
}

/// A term of a pod of this namespace with these labels.
fn affinity_constraint(
    kind: TopologyKind,
    (namespace, labels): (Symbol, &Labels),
    term: &PodAffinityTerm,
    namespaces: &[NamespaceView<'_>],
) -> PodConstraint {
    let mut meant = term.namespaces.clone();
    match &term.namespace_selector {
        None if meant.is_empty() => meant.push(namespace),
        None => {}
        Some(selector) => {
            meant.extend(namespaces.iter().filter(|view| selector.matches(view.labels)).map(|view| view.name));
        }
    }
    meant.sort_unstable();
    meant.dedup();
    let identity = Identity {
        kind,
        key: term.topology_key,
        namespaces: meant,
        selector: term.selector_of(labels).map(Cow::into_owned),
        max_skew: i64::MAX,
        filter: None,
    };
    PodConstraint { identity, min_domains: None }
}
