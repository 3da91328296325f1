//! Policies: who adds and removes nodes, and how it is set up.

use super::Value::{
    Either, File, FolderName, Free, Integer, List, Map, Number, OneOrMore, Scalar, Truth, Words, Workload,
};
use super::cluster;

section! {
    POLICY: "a policy", "`policies[]`";
    "Each policy is the scenario with its own settings laid over it. All meet the same load, prices, capacity and faults for a seed.";
    "policies:
  - { name: today, autoscaler: karpenter }
  - name: next
    autoscaler: karpenter
    packer: cost-aware
    versions: { karpenter: v1.14 }
    karpenter: { feature_gates: { spot_to_spot_consolidation: true } }
    manifests: [more.yaml]
  - name: handler
    autoscaler: karpenter
    karpenter: { interruption_queue: false }
    node_termination_handler: { daemon_set: kube-system/handler }
  - name: cas
    autoscaler: cluster-autoscaler
    flags:
      expander: least-waste
      scale-down-unneeded-time: 5m
      balancing-ignore-label: [topology.ebs.csi.aws.com/zone]
    nodeGroups: [{ name: workers, instanceTypes: [m5.large], min: 1, max: 20 }]
    controller_time: { cluster_autoscaler: { speed: 2 } }
  - { name: fixed, autoscaler: static }
";
    {
        "name" required: FolderName, "Its name; a comparison keeps its report in a folder of that name.";
        "autoscaler" required: Words(&["karpenter", "cluster-autoscaler", "static", "none"]),
            "Who adds and removes nodes. Under `static` (or `none`) nobody does: the groups keep their sizes.";
        "flags" otherwise("the defaults of the release"): Free("flag without its dashes", &OneOrMore(&Scalar)),
            "Flags of Cluster Autoscaler as on its command line; one that may be given several times is a list. \
             [cluster-autoscaler.md](cluster-autoscaler.md#flags)";
        "packer" default("karpenter"): Words(&["karpenter", "cost-aware"]),
            "Who packs pods for Karpenter: Karpenter itself, or a search for the cheapest nodes under the same constraints.";
        "versions" otherwise("those of the scenario"): Map(&cluster::VERSIONS), "Releases under this policy.";
        "karpenter" otherwise("that of the scenario"): Map(&KARPENTER), "How Karpenter is set up under this policy.";
        "node_termination_handler" otherwise("that of the scenario"): Map(&HANDLER),
            "AWS Node Termination Handler under this policy.";
        "controller_time" otherwise("that of the scenario"): Either(&Words(&["measured", "none"]), &Map(&CONTROLLER_TIME)),
            "How long controllers take under this policy.";
        "manifests" otherwise("none"): List(&File),
            "Objects of this policy, over those of the scenario: one of the same kind and name takes the place of the other.";
        "nodeGroups" otherwise("none"): List(&Map(&cluster::NODE_GROUP)), "Node groups of this policy, likewise.";
    }
}

section! {
    KARPENTER: "`karpenter`", "`karpenter`: how Karpenter is set up";
    "What a policy leaves out is as the scenario states it.";
    "karpenter:
  interruption_queue: true
  feature_gates: { spot_to_spot_consolidation: true, node_repair: true, static_capacity: true }
";
    {
        "interruption_queue" default("true"): Truth,
            "Whether it has a queue to read interruption notices from (`settings.interruptionQueue`); releases from v0.19 on read it.";
        "feature_gates" otherwise("all off"): Map(&GATES), "Its feature gates.";
    }
}

section! {
    GATES: "`feature_gates`", "`karpenter.feature_gates`";
    "";
    "";
    {
        "spot_to_spot_consolidation" default("false"): Truth, "Spot nodes may be replaced by cheaper Spot nodes.";
        "node_repair" default("false"): Truth, "Nodes that are unhealthy for long are replaced.";
        "static_capacity" default("false"): Truth, "NodePools with `replicas` keep so many nodes.";
    }
}

section! {
    HANDLER: "`node_termination_handler`", "`node_termination_handler`";
    "Cordons and drains a node on its interruption notice, if one of its pods runs there.";
    "node_termination_handler: { daemon_set: kube-system/handler, rebalance: drain }
";
    {
        "daemon_set" required: Workload, "Its DaemonSet, which the manifests hold.";
        "rebalance" default("ignore"): Words(&["ignore", "cordon", "drain"]),
            "What it does when EC2 recommends to replace the instance.";
    }
}

section! {
    CONTROLLER_TIME: "`controller_time`", "`controller_time`: how long controllers take";
    "`measured` has each controller take the time that the real program was measured to take, and call the API server as fast as its \
     client may; `none` has all of them act at once. A map says it for each controller; one that it leaves out is as the scenario \
     has it. EKS raises the limits of the control plane with the cluster's size and does not publish them.";
    "controller_time:
  kube_controller_manager: { qps: 20, burst: 30, concurrent_replicaset_syncs: 5 }
  kube_scheduler: { qps: 50, burst: 100 }
  karpenter: { qps: 200, burst: 300, speed: 1 }
  cluster_autoscaler: { qps: 5, burst: 10, speed: 0.5 }
";
    {
        "kube_controller_manager" default("measured"): Either(&Words(&["measured", "none"]), &Map(&CONTROLLER_MANAGER_TIME)),
            "How fast its controllers make and delete pods.";
        "kube_scheduler" default("measured"): Either(&Words(&["measured", "none"]), &Map(&SCHEDULER_TIME)),
            "How fast it binds pods.";
        "karpenter" default("measured"): Either(&Words(&["measured", "none"]), &Map(&KARPENTER_TIME)),
            "How long Karpenter's scheduling passes and looks at nodes take.";
        "cluster_autoscaler" default("measured"): Either(&Words(&["measured", "none"]), &Map(&CLUSTER_AUTOSCALER_TIME)),
            "How long an iteration of Cluster Autoscaler takes.";
    }
}

section! {
    CONTROLLER_MANAGER_TIME: "`kube_controller_manager`", "`controller_time.kube_controller_manager`";
    "Each controller has a client of its own with these limits.";
    "";
    {
        "qps" default("20"): Integer(1, 1_000_000), "Calls per second in the long run (`--kube-api-qps`).";
        "burst" default("30"): Integer(1, 1_000_000), "Calls at once after a pause (`--kube-api-burst`).";
        "concurrent_replicaset_syncs" default("5"): Integer(1, 10_000), "ReplicaSets that are worked on at once.";
    }
}

section! {
    SCHEDULER_TIME: "`kube_scheduler`", "`controller_time.kube_scheduler`";
    "";
    "";
    {
        "qps" default("50"): Integer(1, 1_000_000), "Calls per second in the long run (`--kube-api-qps`).";
        "burst" default("100"): Integer(1, 1_000_000), "Calls at once after a pause (`--kube-api-burst`).";
    }
}

section! {
    KARPENTER_TIME: "`karpenter`", "`controller_time.karpenter`";
    "";
    "";
    {
        "qps" default("200"): Integer(1, 1_000_000), "Calls per second in the long run (`KUBE_CLIENT_QPS`).";
        "burst" default("300"): Integer(1, 1_000_000), "Calls at once after a pause (`KUBE_CLIENT_BURST`).";
        "speed" default("1"): Number(0.01, 1_000.0), "How fast it computes, as a multiple of the processors that were measured.";
    }
}

section! {
    CLUSTER_AUTOSCALER_TIME: "`cluster_autoscaler`", "`controller_time.cluster_autoscaler`";
    "";
    "";
    {
        "qps" default("5"): Integer(1, 1_000_000), "Calls per second in the long run (`--kube-client-qps`).";
        "burst" default("10"): Integer(1, 1_000_000), "Calls at once after a pause (`--kube-client-burst`).";
        "speed" default("1"): Number(0.01, 1_000.0), "How fast it computes, as a multiple of the processors that were measured.";
    }
}
