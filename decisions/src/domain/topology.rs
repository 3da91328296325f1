//! Topology terms of a pod: spread constraints and pod (anti-)affinity.

use super::labels::LabelSelector;
use super::symbol::Symbol;

/// What happens when a spread constraint cannot be met.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum WhenUnsatisfiable {
    /// The pod waits.
    DoNotSchedule,
    /// The constraint is only preferred.
    ScheduleAnyway,
}

/// Whether nodes that the pod could not use count in a spread.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum NodeInclusionPolicy {
    /// They do not count.
    Honor,
    /// They count.
    Ignore,
}

/// One topology spread constraint.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TopologySpread {
    /// The node label whose values are the domains.
    pub topology_key: Symbol,
    /// Largest allowed difference between a domain's count and the smallest count.
    pub max_skew: i64,
    /// What happens when it cannot be met.
    pub when_unsatisfiable: WhenUnsatisfiable,
    /// The pods that are counted; `None` counts none.
    pub selector: Option<LabelSelector>,
    /// Fewer domains than this make the smallest count zero.
    pub min_domains: Option<i64>,
    /// Whether nodes outside the pod's own selector and affinity count (default: they do not).
    pub node_affinity_policy: NodeInclusionPolicy,
    /// Whether nodes with taints that the pod does not tolerate count (default: they do).
    pub node_taints_policy: NodeInclusionPolicy,
    /// Pod labels whose values are added to the selector.
    pub match_label_keys: Vec<Symbol>,
}

/// One term of pod affinity or anti-affinity.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct PodAffinityTerm {
    /// The node label that makes two nodes the same place.
    pub topology_key: Symbol,
    /// The pods meant; `None` means none.
    pub selector: Option<LabelSelector>,
    /// Namespaces listed by name.
    pub namespaces: Vec<Symbol>,
    /// Namespaces by label; an empty selector means all.
    pub namespace_selector: Option<LabelSelector>,
    /// Pod labels whose values the other pods must share.
    pub match_label_keys: Vec<Symbol>,
    /// Pod labels whose values the other pods must not share.
    pub mismatch_label_keys: Vec<Symbol>,
}

/// A term with a weight from 1 to 100.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct WeightedPodAffinityTerm {
    /// The weight.
    pub weight: i64,
    /// The term.
    pub term: PodAffinityTerm,
}

/// Pod affinity or anti-affinity of one pod.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct PodAffinity {
    /// Terms that must hold.
    pub required: Vec<PodAffinityTerm>,
    /// Terms that should hold.
    pub preferred: Vec<WeightedPodAffinityTerm>,
}
