//! The manifests of the first tutorial, as it gives them.

use std::path::Path;

use nodecast::domain::node_pool::{AmiFamily, ConsolidationPolicy};
use nodecast::domain::{SimDuration, Symbol};
use nodecast::scenario::error::Render;
use nodecast::scenario::{Action, Autoscaler, Requests, Scenario};

pub fn eks_101() -> Scenario {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/eks-101/scenario.yaml");
    match nodecast::scenario::load(&path) {
        Ok((scenario, warnings)) => {
            assert_eq!(warnings, [], "the tutorial's scenario gives no warning");
            scenario
        }
        Err(error) => panic!("{}", error.render()),
    }
}

#[test]
fn the_first_tutorial_loads_with_its_exact_values() {
    let scenario = eks_101();
    assert_eq!(scenario.start.to_string(), "2022-10-19T14:00:00Z");
    let [old, new] = scenario.policies.as_slice() else { panic!("two policies") };
    assert_eq!((old.autoscaler, &*old.versions.karpenter.to_string()), (Autoscaler::Karpenter, "v0.16.0"));
    assert_eq!(new.versions.karpenter.to_string(), "v1.13");

    let [pool] = old.manifests.node_pools.as_slice() else { panic!("one Provisioner") };
    assert!(pool.legacy);
    assert_eq!(pool.limits.to_string(), "cpu 1000, memory 1000Gi");
    assert_eq!(pool.disruption.policy, ConsolidationPolicy::WhenEmpty);
    assert_eq!(pool.disruption.consolidate_after, Some(SimDuration::from_secs(30)));
    assert_eq!(pool.expire_after, Some(SimDuration::from_secs(2_592_000)));
    assert!(pool.requirements.iter().any(|r| r.to_string().contains("NotIn [large medium micro nano small]")));
    assert_eq!(old.manifests.node_classes[0].ami_family, AmiFamily::AL2);

    let [pool] = new.manifests.node_pools.as_slice() else { panic!("the NodePool replaces the Provisioner") };
    assert!(!pool.legacy);
    assert_eq!(new.manifests.node_classes.len(), 1);
}

#[test]
fn first_tutorial_node_request_matches_log() {
    let scenario = eks_101();
    let objects = &scenario.policies[0].manifests;
    let demo = objects.deployments.iter().find(|d| d.name.name.as_str() == "demo-nginx-nlb-karpenter").unwrap();
    assert_eq!(demo.replicas, Some(1));
    let mut sum = nodecast::domain::Resources::new();
    for _ in 0..3 {
        sum.add(&demo.template.requests());
    }
    for daemon in &objects.daemon_sets {
        assert_eq!(daemon.template.tolerations, [nodecast::domain::Toleration::EVERYTHING]);
        sum.add(&daemon.template.requests());
    }
    assert_eq!(sum.to_string(), "cpu 3825m, memory 6166575Ki, pods 7");
}

#[test]
fn first_tutorial_group_has_labels_pods_select() {
    let scenario = eks_101();
    let objects = &scenario.policies[0].manifests;
    let [group] = objects.node_groups.as_slice() else { panic!("one group") };
    assert_eq!((group.min_size, group.desired_size, group.max_size), (2, 2, 4));
    assert_eq!(group.instance_types, [Symbol::new("t3.xlarge")]);
    assert_eq!(group.volume_bytes, 100 << 30);
    let on_demand = objects.deployments.iter().find(|d| d.name.name.as_str() == "demo-nginx-on-demand").unwrap();
    assert_eq!(on_demand.template.requests().to_string(), "cpu 1, memory 1953125Ki, pods 1");
    assert!(on_demand.template.selects_node(&group.labels, "n"));
    let demo = objects.deployments.iter().find(|d| d.name.name.as_str() == "demo-nginx-nlb-karpenter").unwrap();
    assert!(!demo.template.selects_node(&group.labels, "n"));
}

#[test]
fn first_tutorial_timeline_is_in_order() {
    let scenario = eks_101();
    let steps: Vec<String> = scenario
        .timeline
        .iter()
        .map(|step| match &step.action {
            Action::Scale { workload, replicas } => format!("{} scale {workload} {replicas}", step.at),
            Action::ScaleGroup { group, desired } => format!("{} scale group {group} {desired}", step.at),
            Action::UpgradeControlPlane(release) => format!("{} upgrade {release}", step.at),
            Action::Apply(objects) => format!("{} apply {} autoscaler", step.at, objects.autoscalers.len()),
            other => format!("{} {other:?}", step.at),
        })
        .collect();
    assert_eq!(
        steps,
        [
            "00:10:00 scale default/demo-nginx-nlb-karpenter 6",
            "00:25:00 scale default/demo-nginx-nlb-karpenter 1",
            "00:40:00 apply 1 autoscaler",
        ]
    );
    let [load] = scenario.load.as_slice() else { panic!("one load") };
    assert_eq!(
        load.requests,
        Requests::ClosedLoop { clients: 100, requests: 1_000_000, think_time: SimDuration::ZERO }
    );
}
