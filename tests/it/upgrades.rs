//! Upgrades of the control plane in a running simulation: which nodes follow, and when.

use nodecast::catalog::Catalog;
use nodecast::domain::{SimDuration, SimTime};
use nodecast::simulation::{self, Outcome};
use nodecast::world::record::{Event, EventKind, NodeEnd, NodeFacts};

/// Two nodes of Karpenter's, upgraded from 1.33 to 1.34 at 21 min; `images` is the class's choice of them.
fn run(karpenter: &str, images: &str) -> Outcome {
    let directory = tempfile::tempdir().unwrap();
    let scenario = format!(
        "name: test\nregion: us-east-1\nstart: 2026-01-01T00:00:00Z\nduration: 1h\nmanifests: [objects.yaml]\n\
         versions: {{ kubernetes: \"1.33\", karpenter: {karpenter} }}\ncluster: {{ zones: [us-east-1a] }}\n\
         timeline: [{{ at: 21m, upgrade_control_plane: \"1.34\" }}]\n\
         ec2: {{ spot: {{ prices: constant, interruptions: none }}, failures: none }}\n"
    );
    let objects = format!(
        "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {{name: default}}\nspec:\n  \
         disruption: {{consolidationPolicy: WhenEmpty, consolidateAfter: Never, budgets: [{{nodes: \"1\"}}]}}\n  template:\n    \
         spec:\n      nodeClassRef: {{group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}}\n      requirements:\n      \
         - {{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}}\n      \
         - {{key: node.kubernetes.io/instance-type, operator: In, values: [m5.large]}}\n\
         ---\napiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {{name: default}}\nspec:\n  \
         amiSelectorTerms: [{images}]\n\
         ---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web}}\nspec:\n  replicas: 2\n  \
         selector: {{matchLabels: {{app: web}}}}\n  template:\n    metadata: {{labels: {{app: web}}}}\n    spec:\n      \
         containers: [{{name: app, image: app, resources: {{requests: {{cpu: 1500m, memory: 1Gi}}}}}}]\n"
    );
    std::fs::write(directory.path().join("scenario.yaml"), scenario).unwrap();
    std::fs::write(directory.path().join("objects.yaml"), objects).unwrap();
    let scenario = nodecast::scenario::load(&directory.path().join("scenario.yaml")).unwrap().0;
    let policy = scenario.for_policy(None).unwrap();
    simulation::run(&scenario, policy, Catalog::embedded().unwrap(), scenario.seed, &mut |_| {}).unwrap()
}

fn events(outcome: &Outcome, kind: EventKind) -> Vec<Event<'_>> {
    outcome.record.events.iter().filter(|event| event.kind == kind).collect()
}

fn minutes(minutes: i64) -> SimTime {
    SimTime::ZERO + SimDuration::from_secs(minutes * 60)
}

fn releases(outcome: &Outcome) -> Vec<u8> {
    outcome
        .record
        .nodes
        .iter()
        .filter_map(|node| node.kubelet_version)
        .map(|kubelet_version| kubelet_version.minor())
        .collect()
}

#[test]
fn karpenter_v1_replaces_outdated_release_nodes() {
    let outcome = run("v1.13", "{alias: al2023@latest}");
    assert_eq!(events(&outcome, EventKind::ControlPlaneUpgraded)[0].message, "1.33 to 1.34");
    let drifted = events(&outcome, EventKind::NodeDrifted);
    assert_eq!(drifted.len(), 2);
    assert!(drifted.iter().all(|event| event.at == minutes(25) && event.message == "AMIDrift"));
    assert_eq!(releases(&outcome), [33, 33, 34, 34]);
    let old: Vec<&NodeFacts> = outcome.record.nodes.iter().take(2).collect();
    assert!(old.iter().all(|node| node.end == Some(NodeEnd::Drifted)));
    let (first, second) = (old[0].deletion_requested.unwrap(), old[1].deletion_requested.unwrap());
    let apart = SimDuration::from_micros((first - second).as_micros().abs());
    assert!(apart > SimDuration::from_secs(30), "the budget lets one go at a time: {apart}");
    // Each goes when its replacement is there.
    assert!(first.min(second) >= outcome.record.nodes[2].initialized.unwrap());
}

#[test]
fn explicit_ami_ids_do_not_drift_on_upgrade() {
    let outcome = run("v1.13", "{id: ami-0123456789abcdef0}");
    assert_eq!((events(&outcome, EventKind::NodeDrifted).len(), releases(&outcome)), (0, vec![33, 33]));
}

#[test]
fn old_karpenter_ignores_nodes_of_old_release() {
    let outcome = run("v0.22.1", "{alias: al2@latest}");
    assert_eq!((events(&outcome, EventKind::NodeDrifted).len(), releases(&outcome)), (0, vec![33, 33]));
}
