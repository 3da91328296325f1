//! The cluster: releases, zones, node groups.

use super::Program::{ClusterAutoscaler, Karpenter, Keda, Kubernetes};
use super::Value::{Either, Free, Integer, List, Map, Release, Scalar, Share, Text, Truth, Words};

section! {
    VERSIONS: "`versions`", "`versions`: releases";
    "Behaviour that differs between releases follows these. An unknown release is an error that names the known ones. A policy may \
     state its own.";
    "versions: { karpenter: v1.13, kubernetes: \"1.36\", cluster-autoscaler: \"1.36\", keda: \"2.20\" }
";
    {
        "karpenter" default("v1.13"): Release(Karpenter),
            "Karpenter. NodePools are of v1.x, Provisioners of v0.x.";
        "kubernetes" default("\"1.36\""): Release(Kubernetes),
            "kube-scheduler, HorizontalPodAutoscaler and workload controllers. Without it, the version of an eksctl ClusterConfig \
             among the manifests holds. Quote it: YAML takes 1.30 for the number 1.3.";
        "cluster-autoscaler" default("\"1.36\""): Release(ClusterAutoscaler),
            "Cluster Autoscaler; its flags have the defaults of this release.";
        "keda" default("\"2.20\""): Release(Keda), "KEDA.";
    }
}

section! {
    CLUSTER: "`cluster`", "`cluster`: zones";
    "";
    "cluster: { zones: [us-east-1a, us-east-1b] }
";
    {
        "zones" otherwise("those of an eksctl ClusterConfig, else all of the region"): List(&Text("zone")),
            "Availability zones that nodes may be in.";
    }
}

section! {
    NODE_GROUP: "a node group", "`nodeGroups[]`: Auto Scaling groups";
    "As an eksctl ClusterConfig has them, in a shorter form; of two names for one thing, one is given. Cluster Autoscaler scales \
     groups, [a timeline](#timeline-what-people-do) may, and `autoscaler: static` leaves them alone.";
    "nodeGroups:
  - name: system
    instanceType: m6i.large
    minSize: 2
    desiredCapacity: 3
    maxSize: 9
    availabilityZones: [us-east-1a]
    labels: { role: system }
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
    tags: { team: shop }
";
    {
        "name" required: Text("name"), "Its name.";
        "managed" otherwise("true, unless it mixes Spot and On-Demand"): Truth,
            "Whether EKS manages it. A managed group is all Spot or all On-Demand.";
        "instanceTypes" otherwise("`instanceType`"): List(&Text("instance type")),
            "Its instance types; the first is what Cluster Autoscaler takes an empty group to be made of. One of the two keys has to \
             be there.";
        "instanceType" otherwise("`instanceTypes`"): Text("instance type"), "One more instance type, before the others.";
        "min" otherwise("`desired`"): Integer(0, 100_000), "Smallest size.";
        "minSize" otherwise("see `min`"): Integer(0, 100_000), "The same under eksctl's name.";
        "max" otherwise("`desired`"): Integer(0, 100_000), "Largest size.";
        "maxSize" otherwise("see `max`"): Integer(0, 100_000), "The same under eksctl's name.";
        "desired" otherwise("`min`, else 2"): Integer(0, 100_000), "Size at the start.";
        "desiredCapacity" otherwise("see `desired`"): Integer(0, 100_000), "The same under eksctl's name.";
        "zones" otherwise("those of the cluster"): List(&Text("zone")), "Its zones.";
        "availabilityZones" otherwise("see `zones`"): List(&Text("zone")), "The same under eksctl's name.";
        "labels" otherwise("none"): Free("label", &Scalar), "Labels of its nodes.";
        "taints" otherwise("none"): List(&Map(&TAINT)), "Taints of its nodes.";
        "tags" otherwise("none"): Free("tag", &Scalar),
            "Tags of the group. The tag by which Cluster Autoscaler finds groups is added.";
        "spot" default("false"): Either(&Truth, &Share(100)), "Whether it buys Spot, or what share above `onDemandBase`, in whole percent.";
        "onDemandBase" default("0"): Integer(0, i32::MAX as i64), "Instances that are On-Demand before the share counts.";
        "spotStrategy" default("price-capacity-optimized"):
            Words(&["lowest-price", "capacity-optimized", "capacity-optimized-prioritized", "price-capacity-optimized"]),
            "How it picks Spot pools.";
        "spotPools" default("2"): Integer(1, 20), "Over how many pools `lowest-price` spreads.";
        "capacityRebalance" otherwise("true for managed Spot groups"): Truth,
            "Whether it replaces instances that EC2 says are at risk.";
        "amiFamily" default("AmazonLinux2023"): Words(FAMILIES), "Machine images of its nodes.";
        "volumeSize" default("20"): Integer(1, 65_536), "Root volume in GiB.";
        "maxPods" otherwise("by instance type"): Integer(1, 10_000), "Pods that fit a node.";
    }
}

/// Words for families of machine images, as eksctl has them.
const FAMILIES: &[&str] = &[
    "AmazonLinux2",
    "AmazonLinux2023",
    "Bottlerocket",
    "Ubuntu2004",
    "Ubuntu2204",
    "Ubuntu2404",
    "UbuntuPro2204",
    "UbuntuPro2404",
    "WindowsServer2019CoreContainer",
    "WindowsServer2019FullContainer",
    "WindowsServer2022CoreContainer",
    "WindowsServer2022FullContainer",
];

section! {
    TAINT: "a taint", "`nodeGroups[].taints[]`";
    "";
    "";
    without_effect: &["timeAdded"];
    strict: false;
    {
        "key" required: Text("key"), "Its key.";
        "value" default("\"\""): Text("value"), "Its value.";
        "effect" required: Words(&["NoSchedule", "PreferNoSchedule", "NoExecute"]), "What it does.";
    }
}
