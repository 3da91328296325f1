//! The cluster: releases, zones, node groups.

use std::collections::BTreeMap;

use super::Form;
use super::ec2::Credits;
use super::groups::{RepairKeys, UpdateKeys, WarmPoolKeys};
use super::kind::{Name, Placed, Positive, Share, Whole, kind, words};
use super::names::{KedaRelease, Zone};
use crate::definition::StartupTaint;
use crate::domain::node_group::{NodeGroup, SpotStrategy};
use crate::domain::node_pool::AmiFamily;
use crate::domain::versions::ClusterAutoscalerVersion;
use crate::domain::workload::ObjectName;
use crate::domain::{
    ControlPlaneTier, KarpenterVersion, KubernetesVersion, Labels, SimDuration, Symbol, TaintEffect,
    VerticalPodAutoscalerVersion,
};
use crate::error::nearest;
use crate::file::node_groups;
use crate::manifests::AMI_FAMILIES;
use crate::manifests::node_group::STRATEGIES;

section! {
    /// Behaviour that differs between releases follows these. An unknown release is an error that names the known
    /// ones. A policy may state its own.
    VERSIONS: "`versions`", "`versions`: releases";
    example "versions: { karpenter: v1.13, kubernetes: \"1.36\", cluster-autoscaler: \"1.36\", keda: \"2.20\", vertical-pod-autoscaler: \"1.7\" }
";
    struct VersionsKeys {
        /// Karpenter. NodePools are of v1.x, Provisioners of v0.x. Without it, the `karpenter.version` of an eksctl ClusterConfig
        /// among the manifests is used.
        karpenter: KarpenterVersion, over KarpenterVersion::default();
        /// kube-scheduler, HorizontalPodAutoscaler and workload controllers. Without it, the version of an eksctl
        /// ClusterConfig among the manifests holds. Quote it: YAML takes 1.30 for the number 1.3.
        kubernetes: KubernetesVersion, over KubernetesVersion::default();
        /// Cluster Autoscaler; its flags have the defaults of this release.
        "cluster-autoscaler" as cluster_autoscaler: ClusterAutoscalerVersion, over ClusterAutoscalerVersion::default();
        /// KEDA.
        keda: KedaRelease, over ();
        /// The Vertical Pod Autoscaler; its flags have the defaults of this release.
        "vertical-pod-autoscaler" as vertical: VerticalPodAutoscalerVersion, over VerticalPodAutoscalerVersion::default();
    }
}

section! {
    CLUSTER: "`cluster`", "`cluster`: zones and control plane";
    example "cluster:
  zones: [us-east-1a, us-east-1b]
  control_plane_tier: xl
  startup_taints:
    - { key: example.com/agent-not-ready, removed_by: kube-system/handler, after: 2s, stuck: 1% }
    - { key: example.com/scan, on_every_node: NoSchedule }
  max_container_restart_period: 60s
";
    struct Cluster {
        /// Availability zones that nodes may be in.
        zones["zone"]: Vec<Zone> = Vec::new(), or "those of an eksctl ClusterConfig, else all of the region";
        /// EKS Provisioned Control Plane, from Kubernetes 1.28 on: sets the calls per second of kube-scheduler (50, from 500 nodes
        /// on 100; `xl` 167, `2xl` 283, `4xl` and `8xl` 400; with 1.28 and 1.29 every provisioned tier 100), the
        /// HorizontalPodAutoscalers that are evaluated at a time (5; 50, 100, 200, 200), and the request seats of the API server,
        /// which limit no controller here. What `controller_time` specifies takes precedence.
        /// Its price is a line of the bill: `ec2.billing.control_plane_tier`.
        control_plane_tier: Placed<Tier>, or "the tier of an eksctl ClusterConfig, else `standard`";
        /// Taints that a component removes from new nodes, besides those of Cilium and of the CSI drivers of EBS, EFS, and S3, all
        /// `startupTaints` of NodePools, and those that Cluster Autoscaler's flags and prefixes declare. An entry with such a key
        /// replaces what is assumed for it.
        startup_taints: Vec<StartupTaint> = Vec::new(), or "none";
        /// Longest delay before a container restarts (`crashLoopBackOff.maxContainerRestartPeriod` of the kubelets), from Kubernetes
        /// 1.35 on; a shorter one than 10s is also the first delay.
        max_container_restart_period: RestartPeriod, or "300s";
    }
}

kind! {
    /// A delay that a kubelet accepts.
    RestartPeriod: Positive => SimDuration, |reading, node, _, period| {
        if (SimDuration::from_secs(1)..=SimDuration::from_secs(300)).contains(&period) {
            return Ok(period);
        }
        Err(reading
            .error(node.at, format!("the kubelet does not start with a restart period of {period}"))
            .because("not from 1s to 300s")
            .help("write for example `max_container_restart_period: 60s`"))
    }
}

/// Tiers by their names here and in EKS's API.
const TIERS: &[(&str, ControlPlaneTier)] = &[
    ("standard", ControlPlaneTier::Standard),
    ("xl", ControlPlaneTier::Xl),
    ("2xl", ControlPlaneTier::Xl2),
    ("4xl", ControlPlaneTier::Xl4),
    ("8xl", ControlPlaneTier::Xl8),
    ("tier-xl", ControlPlaneTier::Xl),
    ("tier-2xl", ControlPlaneTier::Xl2),
    ("tier-4xl", ControlPlaneTier::Xl4),
    ("tier-8xl", ControlPlaneTier::Xl8),
];

kind! {
    /// A tier of the control plane.
    Tier: ControlPlaneTier = Form::Words(TIERS.iter().map(|(word, _)| *word).collect()), |reading, node, what| {
        let text = reading.reader.text(node, what)?;
        if matches!(text, "ultra" | "tier-ultra") {
            return Err(reading
                .error(node.at, format!("the tier `{text}` is not simulated"))
                .because("AWS publishes no limits of it")
                .help("use `8xl`, the largest tier with published limits"));
        }
        reading.reader.choice(node, what, TIERS)
    }
}

section! {
    /// NodePools, node groups, or `on_every_node` put the taint on new nodes. Nodes that are there when the run begins do not
    /// have it any more.
    STARTUP_TAINT: "a startup taint", "`cluster.startup_taints[]`";
    impl StartupTaint {
        /// Its key.
        key["key"]: Name;
        /// The DaemonSet whose pod on the node has to be Ready before the taint is removed.
        removed_by: ObjectName, or "the DaemonSet of a known component if the manifests hold it and `after` is not given, else the node itself";
        /// Time from then until the taint is removed.
        after: SimDuration, or "that of a known component, else 0s with `removed_by` and 5s without";
        /// Share of new nodes that keep the taint for good.
        stuck: Share<100> = 0.0;
        /// Effect with which something besides NodePools and node groups puts the taint on every new node.
        on_every_node: Effect, or "nothing does";
    }
}

section! {
    /// As an eksctl ClusterConfig has them, in a shorter form; of two names for one thing, one is given. Cluster
    /// Autoscaler scales groups, [a timeline](#timeline-what-people-do) may, and `autoscaler: static` leaves them
    /// alone.
    NODE_GROUP: "a node group", "`nodeGroups[]`: Auto Scaling groups";
    example "nodeGroups:
  - name: system
    instanceType: m6i.large
    minSize: 2
    desiredCapacity: 3
    maxSize: 9
    availabilityZones: [us-east-1a]
    labels: { role: system }
    nodeRepairConfig:
      enabled: true
      maxUnhealthyNodeThresholdCount: 2
      maxUnhealthyNodeThresholdPercentage: 30
      maxParallelNodesRepairedCount: 1
      maxParallelNodesRepairedPercentage: 50
      wait: 30m
    updateConfig: { maxUnavailable: 2 }
    warmPoolConfig: { enabled: true, maxGroupPreparedCapacity: 6, minSize: 1, poolState: Stopped, reuseOnScaleIn: true }
    taints: [{ key: CriticalAddonsOnly, value: \"true\", effect: NoSchedule }]
  - name: spot
    managed: false
    instanceTypes: [m5.large, m5a.large, m4.large]
    min: 0
    desired: 2
    max: 20
    zones: [us-east-1a, us-east-1b]
    spot: 70%
    onDemandBase: 1
    spotStrategy: lowest-price
    spotPools: 2
    capacityRebalance: true
    amiFamily: Bottlerocket
    volumeSize: 50
    maxPods: 58
    zoneRebalance: false
    weights: { m5.large: 2, m5a.large: 2, m4.large: 1 }
    updateConfig: { maxUnavailablePercentage: 25, updateStrategy: MINIMAL }
    cpuCredits: unlimited
    tags: { team: shop }
";
    becomes NodeGroup, node_groups::group;
    struct NodeGroupKeys: {
        /// Its name.
        name["name"]: GroupName;
        /// Whether EKS manages it. A managed group is all Spot or all On-Demand.
        managed: Placed<bool>, or "true, unless it mixes Spot and On-Demand";
        /// Its instance types; the first is what Cluster Autoscaler takes an empty group to be made of. One of the
        /// two keys has to be there.
        "instanceTypes" as instance_types["instance type"]: Vec<GroupType> = Vec::new(), or "`instanceType`";
        /// One more instance type, before the others.
        "instanceType" as instance_type["instance type"]: GroupType, or "`instanceTypes`";
        /// Capacity units of an instance of each type (`WeightedCapacity`) in a group that EKS does not manage. Sizes and `onDemandBase` are
        /// then in these units.
        weights["instance type"]: BTreeMap<Symbol, Whole<1, 999>>, or "each instance is one unit";
        /// Smallest size.
        min: Whole<0, 100_000>, or "`desired`";
        /// The same under eksctl's name.
        "minSize" as min_size: Placed<Whole<0, 100_000>>, or "see `min`";
        /// Largest size.
        max: Whole<0, 100_000>, or "`desired`";
        /// The same under eksctl's name.
        "maxSize" as max_size: Placed<Whole<0, 100_000>>, or "see `max`";
        /// Size at the start.
        desired: Whole<0, 100_000>, or "`min`, else 2";
        /// The same under eksctl's name.
        "desiredCapacity" as desired_capacity: Placed<Whole<0, 100_000>>, or "see `desired`";
        /// Its zones.
        zones["zone"]: Vec<Zone>, or "those of the cluster";
        /// The same under eksctl's name.
        "availabilityZones" as availability_zones["zone"]: Placed<Vec<Zone>>, or "see `zones`";
        /// Labels of its nodes.
        labels["label"]: Labels = Labels::new(), or "none";
    } aside {
        /// Taints of its nodes.
        taints: Vec<TaintKeys>, or "none";
    } {
        /// Tags of its Auto Scaling group, also where EKS manages it. The tag by which Cluster Autoscaler finds groups is added.
        tags["tag"]: Labels = Labels::new(), or "none";
        /// Whether it buys Spot, or what share above `onDemandBase`, in whole percent.
        spot: SpotShare = 0;
        /// Instances that are On-Demand before the share counts.
        "onDemandBase" as on_demand_base: Whole<0, { i32::MAX as i64 }> = 0;
        /// How it picks Spot pools.
        "spotStrategy" as spot_strategy: Strategy = SpotStrategy::PriceCapacityOptimized;
        /// Over how many pools `lowest-price` spreads.
        "spotPools" as spot_pools: Whole<1, 20>, over 2;
        /// Whether it replaces instances that EC2 says are at risk.
        "capacityRebalance" as capacity_rebalance: bool, or "true for managed Spot groups";
        /// Machine images of its nodes.
        "amiFamily" as ami_family: Family = AmiFamily::AL2023;
        /// Root volume in GiB.
        "volumeSize" as volume_size: Whole<1, 65_536, i64>, or "20; 50 under Windows";
        /// What becomes of its burstable instances whose CPU credits are spent.
        "cpuCredits" as cpu_credits: Credits, or "`ec2.cpu_credits`";
        /// Pods that fit a node.
        "maxPods" as max_pods: Whole<1, 10_000, i64>, or "by instance type";
        /// Node auto repair of a managed group.
        "nodeRepairConfig" as repair: RepairKeys, or "off";
        /// Warm pool of an On-Demand group.
        "warmPoolConfig" as warm_pool: WarmPoolKeys, or "none";
        /// Whether its Auto Scaling group moves instances out of crowded zones (`AZRebalance`). EKS keeps that on for managed groups.
        "zoneRebalance" as zone_rebalance: Placed<bool>, or "true";
        /// How `update_group` replaces nodes.
        "updateConfig" as update_config: UpdateKeys, or "one node at a time, new nodes first";
    }
}

section! {
    TAINT: "a taint", "`nodeGroups[].taints[]`";
    without_effect &["timeAdded"];
    struct TaintKeys: {} aside {
        /// Its key.
        key["key"]: Name;
        /// Its value.
        value["value"]: Name = Symbol::new("");
        /// What it does.
        effect: Effect;
    }
}

kind! {
    /// Node groups, each of its own name.
    NodeGroups: Vec<NodeGroupKeys> => Vec<NodeGroup>, |reading, node, _, groups| {
        let twice = (1..groups.len()).find(|&place| groups[..place].iter().any(|group| group.name == groups[place].name));
        let Some(place) = twice else { return Ok(groups) };
        Err(reading
            .error(node.items()[place].at, format!("two node groups are called `{}`", groups[place].name))
            .because("the second one")
            .help("give each its own name"))
    }
}

kind! {
    /// The name of a node group, which its nodes' names begin with.
    GroupName: Name => Symbol, |reading, node, _, name| {
        let text = name.as_str();
        let safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if !text.is_empty() && text.len() <= 255 && text.chars().all(safe) {
            return Ok(name);
        }
        Err(reading
            .error(node.at, "the name of a node group is made of letters, digits, `-`, `_` and `.`, 255 at most")
            .because("cannot begin the name of a node")
            .help("write for example `workers-a`"))
    }
}

kind! {
    /// An instance type of a group.
    GroupType: Name => Symbol, |reading, node, _, name| {
        let region = reading.region();
        if region.instance_type(name).is_some() {
            return Ok(name);
        }
        let known = region.types.iter().map(|kind| kind.facts.name.as_str());
        let help = nearest(name.as_str(), known).map(|near| format!("did you mean `{near}`?"));
        Err(reading
            .error(node.at, format!("`{name}` is not an instance type of {}", region.name))
            .because("unknown instance type")
            .help(help.unwrap_or_else(|| "write for example `m5.large`".to_owned())))
    }
}

words! {
    /// Families of machine images, as eksctl has them.
    Family: AmiFamily, AMI_FAMILIES
}

words! {
    /// How a group picks Spot pools.
    Strategy: SpotStrategy, STRATEGIES
}

kind! {
    /// `true`, `false`, or a share in whole percent, which is what the API knows.
    SpotShare: u32 = Form::Either(Box::new(Form::Truth), Box::new(Form::Share(100))), |reading, node, what| {
        let share = match reading.reader.text(node, what)? {
            "true" => Some(1.0),
            "false" => Some(0.0),
            _ => Share::<100>::read(reading, node, what).ok(),
        };
        match share.map(|share| libm::round(share * 1e6) as u32) {
            Some(millionths) if millionths.is_multiple_of(10_000) => Ok(millionths / 10_000),
            _ => Err(reading
                .error(node.at, format!("`{what}` is `true`, `false` or a whole percentage"))
                .because("none of these")
                .help("write for example `70%`")),
        }
    };
    show |percent| if *percent == 0 { "false".to_owned() } else { format!("{percent}%") }
}

words! {
    /// What a taint does.
    Effect: TaintEffect,
    "NoSchedule" => TaintEffect::NoSchedule, "PreferNoSchedule" => TaintEffect::PreferNoSchedule, "NoExecute" => TaintEffect::NoExecute
}
