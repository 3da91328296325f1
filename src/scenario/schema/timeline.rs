//! What people do.

use super::kind::{File, Moment, Name, Placed, Whole};
use super::load::LoadEntry;
use crate::domain::KubernetesVersion;
use crate::domain::workload::ObjectName;

section! {
    /// A step has `at` and one thing to do; two things at one time are two steps, in order.
    STEP: "a step of the timeline", "`timeline[]`: what people do";
    example "timeline:
  - { at: 2h, scale: { workload: shop/worker, replicas: 40 } }
  - { at: 3h, scale_group: { group: system, desired: 6 } }
  - { at: 4h, manifests: [more.yaml] }
  - { at: 5h, upgrade_control_plane: \"1.37\" }
  - at: 6h
    load:
      workload: shop/web
      requests: { steps: [{ at: 0s, rate: 10 }, { at: 5m, rate: 80 }] }   # at 6h and at 6h05m
      service: { cpu_per_request: 10ms, concurrency: 8 }
";
    one_of ["scale", "scale_group", "upgrade_control_plane", "manifests", "load"];
    struct StepEntry: {} aside {
        /// When, counted from the start of the run.
        at: Moment;
        /// `kubectl scale`.
        scale: Scale, or "-";
        /// Somebody sets the size of a node group.
        scale_group: ScaleGroup, or "-";
        /// EKS upgrades the control plane to this release, the next after the one before. Nodes that come later
        /// follow, and those that Karpenter made have drifted.
        upgrade_control_plane: KubernetesVersion, or "-";
        /// `kubectl apply`: new objects appear, known ones change (a Deployment with another template rolls out). A
        /// NodePool comes to be or changes: its nodes drift, its budgets, limits and weight hold from then on.
        manifests: Vec<File>, or "-";
        /// Load that begins at this step, under every policy. Its own `at` counts from the step's.
        load: LoadEntry, or "-";
    }
}

section! {
    SCALE: "`scale`", "`timeline[].scale`";
    struct Scale {
        /// A Deployment or StatefulSet.
        workload: Placed<ObjectName>;
        /// Its new number of replicas.
        replicas: Whole<0, 1_000_000>;
    }
}

section! {
    SCALE_GROUP: "`scale_group`", "`timeline[].scale_group`";
    struct ScaleGroup {
        /// A node group of the scenario, a policy or a ClusterConfig.
        group["node group"]: Placed<Name>;
        /// Its new desired size, within its limits.
        desired: Whole<0, 100_000>;
    }
}
