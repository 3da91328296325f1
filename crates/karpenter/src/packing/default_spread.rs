//! Default topology spread: the constraints of `--scheduler-config` for pods without their own.
//!
//! Deviation: the owner's selector is assumed to be the labels of its template. For a ReplicaSet of a Deployment the result is the same, because
//! `pod-template-hash` is among them.
//!
//! Source: Karpenter core 226646810 `pkg/controllers/provisioning/scheduling/defaultconstraints.go`, `pkg/operator/options/options.go`.

use std::sync::Arc;

use nodecast_model::domain::labels::LabelSelector;
use nodecast_model::domain::pod::OwnerKind;
use nodecast_model::domain::topology::TopologySpread;
use nodecast_model::domain::{Labels, PodSpec, Symbol};

/// Labels that the StatefulSet controller adds to the template's.
const OF_STATEFUL_SETS: [&str; 3] =
    ["statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index", "controller-revision-hash"];

/// The default constraints, and the Services by which they find the pods to count.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct DefaultSpread {
    /// Constraints without selectors.
    pub constraints: Vec<TopologySpread>,
    /// Namespace and selector of each Service.
    pub services: Vec<(Symbol, Labels)>,
}

impl DefaultSpread {
    /// A specification with the constraints, or the same without: a pod with one constraint of its own, and a pod that neither a Service nor
    /// an owner of a known kind selects, gets none.
    pub(super) fn applied(&self, namespace: Symbol, spec: &Arc<PodSpec>) -> Arc<PodSpec> {
        let selected = self.selected(namespace, spec);
        if !spec.topology_spread.is_empty() || selected.is_empty() {
            return Arc::clone(spec);
        }
        let selector = LabelSelector { match_labels: selected, expressions: Vec::new() };
        let constraint = |topology_spread: &TopologySpread| TopologySpread {
            selector: Some(selector.clone()),
            ..topology_spread.clone()
        };
        let topology_spread = self.constraints.iter().map(constraint).collect();
        Arc::new(PodSpec { topology_spread, ..PodSpec::clone(spec) })
    }

    /// The labels that the pod shares with the pods that are counted.
    fn selected(&self, namespace: Symbol, spec: &PodSpec) -> Labels {
        match spec.owner {
            OwnerKind::ReplicaSet => return spec.labels.clone(),
            OwnerKind::StatefulSet => {
                let of_template = spec.labels.iter().filter(|(key, _)| !OF_STATEFUL_SETS.contains(&key.as_str()));
                return of_template.collect();
            }
            _ => {}
        }
        let mut merged = Labels::new();
        for (_, selector) in self.services.iter().filter(|(key, _)| *key == namespace) {
            if selector.iter().all(|(key, value)| spec.labels.get(key) == Some(value)) {
                merged.extend(selector);
            }
        }
        merged
    }
}
