//! What people do.

use super::Program::Kubernetes;
use super::Value::{Duration, File, Integer, List, Map, Release, Text, Workload};
use super::load;

section! {
    STEP: "a step of the timeline", "`timeline[]`: what people do";
    "A step has `at` and one thing to do; two things at one time are two steps, in order.";
    "timeline:
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
    one_of: &["scale", "scale_group", "upgrade_control_plane", "manifests", "load"];
    {
        "at" required: Duration, "When, counted from the start of the run.";
        "scale" otherwise("-"): Map(&SCALE), "`kubectl scale`.";
        "scale_group" otherwise("-"): Map(&SCALE_GROUP), "Somebody sets the size of a node group.";
        "upgrade_control_plane" otherwise("-"): Release(Kubernetes),
            "EKS upgrades the control plane to this release, the next after the one before. Nodes that come later follow, and those \
             that Karpenter made have drifted.";
        "manifests" otherwise("-"): List(&File),
            "`kubectl apply`: new objects appear, known ones change (a Deployment with another template rolls out).";
        "load" otherwise("-"): Map(&load::LOAD), "Load that begins at this step, under every policy. Its own `at` counts from the step's.";
    }
}

section! {
    SCALE: "`scale`", "`timeline[].scale`";
    "";
    "";
    {
        "workload" required: Workload, "A Deployment or StatefulSet.";
        "replicas" required: Integer(0, 1_000_000), "Its new number of replicas.";
    }
}

section! {
    SCALE_GROUP: "`scale_group`", "`timeline[].scale_group`";
    "";
    "";
    {
        "group" required: Text("node group"), "A node group of the scenario, a policy or a ClusterConfig.";
        "desired" required: Integer(0, 100_000), "Its new desired size, within its limits.";
    }
}
