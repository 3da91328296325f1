//! When the Cluster Autoscaler looks at the cluster, and what it can see then: the fraction of a second at which pods are made, the order
//! in which they are listed, the end of an iteration.

use nodecast::catalog::Catalog;
use nodecast::domain::SimTime;
use nodecast::scenario::Scenario;
use nodecast::simulation::{self, Outcome};
use nodecast::world::record::EventKind;

const SEEDS: std::ops::RangeInclusive<u64> = 1..=20;

/// A Deployment of pods of which three fit on a node, scaled at these seconds.
fn scenario(scales: &[(u32, u32)], duration: &str, policy: &str) -> Scenario {
    let directory = tempfile::tempdir().unwrap();
    let scales: String = scales
        .iter()
        .map(|(at, replicas)| format!("- {{at: {at}s, scale: {{workload: default/web, replicas: {replicas}}}}}\n"))
        .collect();
    let text = format!(
        "name: test\nregion: us-east-1\nstart: '2026-03-02T08:00:00Z'\nduration: {duration}\n\
         versions: {{kubernetes: '1.36', cluster-autoscaler: '1.36'}}\ncluster: {{zones: [us-east-1b]}}\n\
         manifests: [objects.yaml]\nimages: {{size: 1}}\n\
         nodeGroups: [{{name: pool, managed: false, instanceType: m6i.xlarge, min: 0, desired: 0, max: 40}}]\n\
         ec2:\n  launch_latency: {{vm_init: 9s, os_boot: 5s, bootstrap: 8s, register: 2s, cni_ready: 4s, status: 5s, spread: false}}\n  \
         capacity: infinite\n  api: unlimited\n  failures: none\ntimeline:\n{scales}\
         policies: [{{name: groups, autoscaler: cluster-autoscaler{policy}}}]\n"
    );
    let objects = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: default}\nspec:\n  replicas: 0\n  \
                   selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n    spec:\n      \
                   containers: [{name: app, image: app, resources: {requests: {cpu: 1100m, memory: 2Gi}}}]\n";
    std::fs::write(directory.path().join("scenario.yaml"), text).unwrap();
    std::fs::write(directory.path().join("objects.yaml"), objects).unwrap();
    nodecast::scenario::load(&directory.path().join("scenario.yaml")).unwrap().0
}

fn run(scenario: &Scenario, seed: u64) -> Outcome {
    let policy = scenario.for_policy(None).unwrap();
    simulation::run(scenario, policy, Catalog::embedded().unwrap(), seed, &mut |_| {}).unwrap()
}

fn seconds(at: SimTime) -> f64 {
    (at - SimTime::ZERO).as_secs_f64()
}

/// Seconds at which the group was asked to grow, for each seed.
fn grown(scales: &[(u32, u32)], policy: &str) -> Vec<Vec<f64>> {
    let scenario = scenario(scales, "80s", policy);
    let grown = |seed| {
        let outcome = run(&scenario, seed);
        let events = outcome.record.events.iter().filter(|event| event.kind == EventKind::DesiredCapacitySet);
        events.map(|event| seconds(event.at)).collect()
    };
    SEEDS.map(grown).collect()
}

#[test]
fn burst_grows_at_once_or_a_scan_later() {
    let first: Vec<f64> = grown(&[(17, 52)], "").iter().map(|grown| grown[0]).collect();
    let soon = first.iter().filter(|&&at| (18.0..19.6).contains(&at)).count();
    let later = first.iter().filter(|&&at| (28.0..30.0).contains(&at)).count();
    assert!(soon > 0 && later > 0 && soon + later == first.len(), "{first:?}");
}

#[test]
fn old_pod_left_over_starts_growth() {
    let grown = grown(&[(15, 3), (41, 12)], "");
    let soon = grown.iter().filter(|grown| grown.iter().any(|at| (41.0..42.0).contains(at))).count();
    assert!(soon >= 14, "{grown:?}");
}

#[test]
fn unneeded_node_goes_in_time() {
    let flags = ", flags: {scale-down-unneeded-time: 4m, scale-down-delay-after-add: 30s}";
    let scenario = scenario(&[(12, 2), (150, 0)], "9m", flags);
    for seed in SEEDS {
        let outcome = run(&scenario, seed);
        let mut events = outcome.record.events.iter();
        let reason = events.find(|event| event.kind == EventKind::NodeDisrupted).map_or("", |event| event.message);
        // Not a scan later: `4m10s`.
        assert!(reason.starts_with("unneeded for 4m") && reason.contains("ms,"), "{reason}");
    }
}
