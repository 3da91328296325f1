//! Topology terms of a pod: spread constraints and pod (anti-)affinity.

use std::borrow::Cow;

use super::labels::{LabelSelector, Labels, SelectorExpression, SelectorOperator};
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

impl PodAffinityTerm {
    /// The pods that the term means of a pod with these labels: those of its selector that share the values of the pod's
    /// `matchLabelKeys` and have others of its `mismatchLabelKeys`. A key that the pod lacks says nothing, and a term without a selector
    /// means none.
    ///
    /// The API server writes this into the pod as it is created, so that the scheduler and every autoscaler read it there. A pod of a
    /// dump has it in its selector already; it is not added again.
    ///
    /// Source: Kubernetes 1.36 `pkg/registry/core/pod/strategy.go`, `applyMatchLabelKeysAndMismatchLabelKeys`.
    pub fn selector_of(&self, labels: &Labels) -> Option<Cow<'_, LabelSelector>> {
        let selector = self.selector.as_ref()?;
        if self.match_label_keys.is_empty() && self.mismatch_label_keys.is_empty() {
            return Some(Cow::Borrowed(selector));
        }
        let mut merged = selector.clone();
        let keys =
            [(&self.match_label_keys, SelectorOperator::In), (&self.mismatch_label_keys, SelectorOperator::NotIn)];
        for (keys, operator) in keys {
            for &key in keys {
                let Some(value) = labels.get(key) else { continue };
                let expression = SelectorExpression { key, operator, values: vec![value] };
                if !merged.expressions.contains(&expression) {
                    merged.expressions.push(expression);
                }
            }
        }
        Some(Cow::Owned(merged))
    }
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

#[cfg(test)]
mod tests {
    use super::PodAffinityTerm;
    use crate::domain::{LabelSelector, Labels, Symbol};

    fn term(matching: &[&str], mismatching: &[&str]) -> PodAffinityTerm {
        let keys = |keys: &[&str]| keys.iter().map(|key| Symbol::new(key)).collect();
        PodAffinityTerm {
            topology_key: Symbol::new("kubernetes.io/hostname"),
            selector: Some(LabelSelector::default()),
            namespaces: Vec::new(),
            namespace_selector: None,
            match_label_keys: keys(matching),
            mismatch_label_keys: keys(mismatching),
        }
    }

    #[test]
    fn match_label_keys_narrow_selector_to_pod_labels() {
        let tenant = |name: &str| Labels::new().with("tenant", name);
        let means =
            |term: &PodAffinityTerm, labels: &Labels, other: &Labels| term.selector_of(labels).unwrap().matches(other);
        let (same, others) = (term(&["tenant"], &[]), term(&[], &["tenant"]));
        assert!(means(&same, &tenant("x"), &tenant("x")) && !means(&same, &tenant("x"), &tenant("y")));
        assert!(!means(&same, &tenant("x"), &Labels::new()));
        assert!(!means(&others, &tenant("x"), &tenant("x")) && means(&others, &tenant("x"), &tenant("y")));
        assert!(means(&others, &tenant("x"), &Labels::new()));
        assert!(means(&same, &Labels::new(), &tenant("y")), "a key that the pod lacks says nothing");
    }

    #[test]
    fn match_label_keys_are_not_added_twice() {
        let labels = Labels::new().with("tenant", "x");
        let mut term = term(&["tenant"], &[]);
        term.selector = term.selector_of(&labels).map(std::borrow::Cow::into_owned);
        assert_eq!(term.selector_of(&labels).unwrap().expressions.len(), 1);
        let nothing = PodAffinityTerm { selector: None, ..term };
        assert_eq!(nothing.selector_of(&labels), None);
    }
}
