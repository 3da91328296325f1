//! What people do.

use super::cluster::Tier;
use super::groups::{RefreshGroup, UpdateGroup};
use super::kind::{File, Moment, Name, Placed, Whole, kind, words};
use super::load::LoadEntry;
use crate::definition::Action;
use crate::domain::which::{By, ObjectKind, Which};
use crate::domain::workload::ObjectName;
use crate::domain::{KubernetesVersion, Labels, SimDuration};
use crate::file::timeline;

section! {
    /// A step has `at` and one thing to do; two things at one time are two steps, in order.
    STEP: "a step of the timeline", "`timeline[]`: what people do";
    example "timeline:
  - { at: 2h, scale: { workload: shop/worker, replicas: 40 } }
  - { at: 3h, scale_group: { group: system, desired: 6 } }
  - { at: 4h, manifests: [more.yaml] }
  - { at: 4h, update_group: { group: system, release: \"1.36\", ami: ami-2026-11, force: false } }
  - { at: 4h, refresh_group: { group: spot, min_healthy: 90, warm_up: 5m, checkpoints: [20, 50], checkpoint_delay: 30m } }
  - { at: 4h, refresh_group: { group: spot, skip_matching: true, release: \"1.36\" } }
  - { at: 5h, upgrade_control_plane: \"1.37\" }
  - { at: 5h, control_plane_tier: 2xl }
  - { at: 5h, cordon: { labels: { topology.kubernetes.io/zone: us-east-1a }, count: 2 } }
  - { at: 5h, drain: { labels: { karpenter.sh/nodepool: default }, count: 1, force: true, timeout: 10m } }
  - { at: 5h, drain: { name: default-00004 } }
  - { at: 5h, uncordon: { name: default-00003 } }
  - { at: 5h, delete: { kind: Pod, namespace: shop, labels: { app: web }, count: 1 } }
  - { at: 5h, delete: { kind: Deployment, name: shop/worker } }
  - at: 6h
    load:
      workload: shop/web
      requests: { steps: [{ at: 0s, rate: 10 }, { at: 5m, rate: 80 }] }   # at 6h and at 6h05m
      service: { cpu_per_request: 10ms, concurrency: 8 }
";
    one_of ["scale", "scale_group", "update_group", "refresh_group", "upgrade_control_plane", "control_plane_tier", "manifests", "load", "cordon", "uncordon", "drain", "delete"];
    struct StepEntry: {} aside {
        /// When, counted from the start of the run.
        at: Moment;
        /// `kubectl scale`.
        scale: Scale, or "-";
        /// Somebody sets the size of a node group.
        scale_group: ScaleGroup, or "-";
        /// EKS updates a managed node group to another release or machine image.
        update_group: UpdateGroup, or "-";
        /// EC2 Auto Scaling replaces the instances of a group that EKS does not manage.
        refresh_group: RefreshGroup, or "-";
        /// EKS upgrades the control plane to this release, the next after the one before. Nodes that come later
        /// follow, and those that Karpenter made have drifted.
        upgrade_control_plane: KubernetesVersion, or "-";
        /// EKS changes the tier of the control plane. The limits and the price of the new tier apply 5 minutes later, which is assumed
        /// (AWS: "several minutes").
        control_plane_tier: Tier, or "-";
        /// `kubectl apply`: new objects appear, known ones change (a Deployment with another template rolls out). A
        /// NodePool comes to be or changes: its nodes drift, its budgets, limits and weight hold from then on.
        manifests: Vec<File>, or "-";
        /// Load that begins at this step, under every policy. Its own `at` counts from the step's.
        load: LoadEntry, or "-";
        /// `kubectl cordon`: the nodes take no more pods.
        cordon: Nodes, or "-";
        /// `kubectl uncordon`: they take pods again.
        uncordon: Nodes, or "-";
        /// `kubectl drain --ignore-daemonsets --delete-emptydir-data`: the nodes are cordoned; then one after the other
        /// is emptied by evictions, which budgets may forbid: these are tried again every five seconds.
        drain: Drain, or "-";
        /// `kubectl delete`: the object goes, and what it owns goes with it.
        delete: Delete, or "-";
    }
}

section! {
    /// By name, or by labels and oldest first. Labels of nodes are those that the API shows: `karpenter.sh/nodepool`,
    /// `eks.amazonaws.com/nodegroup`, `node.kubernetes.io/instance-type`, `topology.kubernetes.io/zone`,
    /// `karpenter.sh/capacity-type` and those of the pool or group.
    NODES: "the nodes", "`timeline[].cordon`, `timeline[].uncordon`";
    becomes Which, |_, _, own: Self| Ok(Which { by: own.by, most: own.count });
    struct Nodes: {} one by: By, timeline::no_choice {
        /// The node of this name: as reports or a dump call it, or as the API server does.
        name: ChosenName;
        /// Nodes with all these labels.
        labels: ChosenLabels;
    } {
        /// How many of them at most.
        count: Whole<1, 1_000_000>, or "all";
    }
}

section! {
    /// The nodes are chosen as for `cordon`.
    DRAIN: "`drain`", "`timeline[].drain`";
    becomes Action, |_, _, own: Self| {
        Ok(Action::Drain { nodes: Which { by: own.by, most: own.count }, force: own.force, timeout: own.timeout })
    };
    struct Drain: {} one by: By, timeline::no_choice {
        /// The node of this name.
        name: ChosenName;
        /// Nodes with all these labels.
        labels: ChosenLabels;
    } {
        /// How many of them at most.
        count: Whole<1, 1_000_000>, or "all";
        /// `--force`: pods that nothing controls are evicted too, and nobody makes them again. Without it a node with such
        /// a pod is cordoned and left as it is.
        force: bool = false;
        /// `--timeout`: after this time the drain of a node is given up.
        timeout: SimDuration, or "none";
    }
}

section! {
    /// Pods, NodeClaims and nodes are chosen by name or by labels, oldest first; any other object by its name. What a
    /// workload owns goes with it, and so does the load balancer of a Service or an Ingress. The NodeClaims of a NodePool go with it, all at once, and these drain. A NodeClaim drains,
    /// and so does a node that Karpenter launched; of any other node the object goes and the instance stays, and its pods are
    /// deleted within a minute. The object may come back with `manifests`.
    DELETE: "`delete`", "`timeline[].delete`";
    becomes Action, timeline::deletion;
    struct Delete: {
        /// What it is.
        kind: Placed<DeletedKind>;
    } one by: By, timeline::no_choice {
        /// `namespace/name`; of what is in no namespace its name.
        name: ChosenName;
        /// Objects with all these labels.
        labels: ChosenLabels;
    } {
        /// The namespace of pods that are chosen by labels.
        namespace["namespace"]: Placed<Name>, or "`default`";
        /// How many of them at most.
        count: Whole<1, 1_000_000>, or "all";
    }
}

words! {
    /// A kind of object that can be deleted.
    DeletedKind: ObjectKind, ObjectKind::ALL
}

kind! {
    /// An object that is chosen by its name.
    ChosenName: ObjectName => By, |_, _, _, name| Ok(By::Name(name))
}

kind! {
    /// Objects that are chosen by their labels.
    ChosenLabels: Labels => By, |reading, node, what, labels| {
        if !labels.is_empty() {
            return Ok(By::Labels(labels));
        }
        let error = reading.error(node.at, format!("`{what}` holds no label"));
        Err(error.because("would choose everything").help("write for example `labels: { karpenter.sh/nodepool: default }`"))
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
