//! The flags of the Vertical Pod Autoscaler's programs.

use std::collections::BTreeMap;

use super::kind::Scalar;
use crate::domain::Symbol;

section! {
    /// How the Vertical Pod Autoscaler's programs are started, where VerticalPodAutoscalers are among the manifests. What a policy
    /// leaves out is as the scenario states it, flag by flag. Flags that only tell how a program logs or talks to the API server are
    /// passed over.
    VERTICAL: "`vertical_pod_autoscaler`", "`vertical_pod_autoscaler`: flags of its programs";
    example "vertical_pod_autoscaler:
  recommender: { target-cpu-percentile: 0.95, pod-recommendation-min-memory-mb: 100 }
  updater: { min-replicas: 1, eviction-tolerance: 0.2, feature-gates: InPlace=true }
";
    struct VerticalKeys {
        /// Flags of `vpa-recommender` as on its command line.
        recommender["flag without its dashes"]: BTreeMap<Symbol, Scalar>, or "the defaults of the release";
        /// Flags of `vpa-updater`.
        updater["flag without its dashes"]: BTreeMap<Symbol, Scalar>, or "the defaults of the release";
    }
}
