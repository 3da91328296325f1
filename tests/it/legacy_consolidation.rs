//! What removes nodes in releases before v1: `ttlSecondsAfterEmpty`, `ttlSecondsUntilExpired` and `consolidation.enabled` of a
//! Provisioner, by release.

use std::fmt::Write as _;

use nodecast::catalog::Catalog;
use nodecast::domain::{SimDuration, SimTime, Symbol};
use nodecast::simulation::{self, Outcome};
use nodecast::world::record::{EventKind, NodeEnd, NodeFacts};

const CONSOLIDATION: &str = "consolidation: {enabled: true}";

/// A Provisioner of m5.large and m5.xlarge and a Deployment of which an m5.xlarge holds two pods, an m5.large one.
struct Cluster {
    karpenter: &'static str,
    capacity_type: &'static str,
    /// More of the Provisioner's specification.
    provisioner: &'static str,
    /// More Deployments of such pods, each with its replicas.
    others: &'static [(&'static str, u32)],
    manifests: &'static str,
    replicas: u32,
    /// Minute, Deployment and replicas.
    steps: &'static [(u32, &'static str, u32)],
}

impl Cluster {
    fn new(
        karpenter: &'static str,
        provisioner: &'static str,
        replicas: u32,
        steps: &'static [(u32, &'static str, u32)],
    ) -> Self {
        Self { karpenter, capacity_type: "on-demand", provisioner, others: &[], manifests: "", replicas, steps }
    }

    fn run(&self) -> Outcome {
        self.run_with(1)
    }

    fn run_with(&self, seed: u64) -> Outcome {
        let directory = tempfile::tempdir().unwrap();
        let Self { karpenter, capacity_type, provisioner, others, manifests, replicas, steps } = self;
        let mut scenario = format!(
            "name: test\nregion: us-east-1\nstart: 2023-01-01T00:00:00Z\nduration: 1h\nmanifests: [objects.yaml]\n\
             versions: {{ kubernetes: \"1.24\", karpenter: {karpenter} }}\ncluster: {{ zones: [us-east-1a] }}\n\
             controller_time: {{ kube_controller_manager: none, kube_scheduler: none }}\n\
             ec2: {{ spot: {{ prices: constant, interruptions: none }}, failures: none }}\ntimeline:\n"
        );
        for (minute, name, replicas) in *steps {
            writeln!(scenario, "  - {{at: {minute}m, scale: {{workload: default/{name}, replicas: {replicas}}}}}")
                .unwrap();
        }
        let mut objects = format!(
            "apiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\nmetadata: {{name: default}}\nspec:\n  {provisioner}\n  \
             requirements:\n  - {{key: karpenter.sh/capacity-type, operator: In, values: [{capacity_type}]}}\n  \
             - {{key: node.kubernetes.io/instance-type, operator: In, values: [m5.large, m5.xlarge]}}\n{manifests}"
        );
        for (name, replicas) in [("web", *replicas)].iter().chain(*others) {
            writeln!(
                objects,
                "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}}}\nspec:\n  replicas: {replicas}\n  \
                 selector: {{matchLabels: {{app: {name}}}}}\n  template:\n    metadata: {{labels: {{app: {name}}}}}\n    \
                 spec:\n      containers: [{{name: app, image: app, resources: {{requests: {{cpu: 1500m, memory: 1Gi}}}}}}]"
            )
            .unwrap();
        }
        std::fs::write(directory.path().join("scenario.yaml"), scenario).unwrap();
        std::fs::write(directory.path().join("objects.yaml"), objects).unwrap();
        let scenario = nodecast::scenario::load(&directory.path().join("scenario.yaml")).unwrap().0;
        let policy = scenario.for_policy(None).unwrap();
        simulation::run(&scenario, policy, Catalog::embedded().unwrap(), seed, &mut |_| {}).unwrap()
    }
}

/// Type and end of every node.
fn lives(outcome: &Outcome) -> Vec<(&'static str, Option<NodeEnd>)> {
    let nodes = outcome.record.nodes.iter();
    nodes.map(|node| (node.instance_type.map_or("", Symbol::as_str), node.end)).collect()
}

fn minutes(minutes: i64) -> SimTime {
    SimTime::ZERO + SimDuration::from_secs(minutes * 60)
}

fn removed(outcome: &Outcome) -> Vec<&NodeFacts> {
    outcome.record.nodes.iter().filter(|node| node.deletion_requested.is_some()).collect()
}

/// Two nodes of two pods each, of which at 5 min one each is left.
fn halved(karpenter: &'static str, capacity_type: &'static str) -> Outcome {
    let cluster = Cluster::new(karpenter, CONSOLIDATION, 2, &[(5, "web", 1), (5, "other", 1)]);
    Cluster { others: &[("other", 2)], capacity_type, ..cluster }.run()
}

#[test]
fn legacy_consolidation_deletes_node_in_quiet_cluster() {
    for karpenter in ["v0.16.0", "v0.18.1", "v0.22.1"] {
        let outcome = halved(karpenter, "on-demand");
        let ends = [("m5.xlarge", Some(NodeEnd::Underutilized)), ("m5.xlarge", None)];
        assert_eq!(lives(&outcome), ends, "{karpenter}");
        let waited = (removed(&outcome)[0].deletion_requested.unwrap() - minutes(5)).as_secs();
        // Fifteen seconds of quiet or of validation, and up to ten until the next look.
        assert!((15..=27).contains(&waited), "{karpenter}: {waited} s");
        let pending = outcome.record.pods.iter().filter(|pod| pod.removed.is_none() && pod.ready.is_none()).count();
        assert_eq!(pending, 0);
    }
}

#[test]
fn legacy_replacement_is_ready_before_deletion() {
    for karpenter in ["v0.16.0", "v0.22.1"] {
        let outcome = Cluster::new(karpenter, CONSOLIDATION, 2, &[(5, "web", 1)]).run();
        assert_eq!(lives(&outcome), [("m5.xlarge", Some(NodeEnd::Underutilized)), ("m5.large", None)], "{karpenter}");
        let [old, new] = &outcome.record.nodes[..] else { panic!("two nodes") };
        let cordoned = outcome.record.events.iter().find(|event| event.kind == EventKind::NodeTainted).unwrap();
        assert_eq!(cordoned.message, "node.kubernetes.io/unschedulable");
        assert!(cordoned.at <= new.requested && old.deletion_requested >= new.initialized);
    }
}

#[test]
fn legacy_spot_node_is_removed_but_not_replaced() {
    let shrunk = Cluster::new("v0.16.0", CONSOLIDATION, 2, &[(5, "web", 1)]);
    let outcome = Cluster { capacity_type: "spot", ..shrunk }.run();
    assert_eq!(lives(&outcome), [("m5.xlarge", None)], "the node of the last pod stays as large as it is");
    assert_eq!(removed(&halved("v0.16.0", "spot"))[0].end, Some(NodeEnd::Underutilized));
}

#[test]
fn all_empty_nodes_go_in_one_command() {
    for karpenter in ["v0.16.0", "v0.22.1"] {
        let outcome = Cluster::new(karpenter, CONSOLIDATION, 6, &[(5, "web", 0)]).run();
        let gone: Vec<_> = removed(&outcome).iter().map(|node| (node.end, node.deletion_requested)).collect();
        assert_eq!(gone.len(), 3);
        assert!(gone.iter().all(|one| *one == gone[0] && one.0 == Some(NodeEnd::Empty)), "{karpenter}: {gone:?}");
        assert!(gone[0].1 > Some(minutes(5) + SimDuration::from_secs(14)), "it has no time to live when empty");
    }
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn legacy_consolidation_waits_for_previous_node_removal() {
    // Four nodes of two pods each, of which one each is left: two nodes can go. Where the pods left share nodes, empty ones go.
    const STEPS: &[(u32, &str, u32)] = &[(5, "web", 1), (5, "b", 1), (5, "c", 1), (5, "d", 1)];
    let times = |karpenter, seed| {
        let cluster = Cluster::new(karpenter, CONSOLIDATION, 2, STEPS);
        let outcome = Cluster { others: &[("b", 2), ("c", 2), ("d", 2)], ..cluster }.run_with(seed);
        let gone = removed(&outcome);
        let underutilized = gone.iter().filter(|node| node.end == Some(NodeEnd::Underutilized));
        let mut times: Vec<_> =
            underutilized.map(|node| (node.deletion_requested.unwrap(), node.terminated.unwrap())).collect();
        times.sort_unstable();
        times
    };
    let pairs = |karpenter| -> Vec<_> {
        let two = |seed| <[_; 2]>::try_from(times(karpenter, seed)).ok();
        (1..=12).filter_map(two).collect()
    };
    let in_turn = pairs("v0.16.0");
    assert!(!in_turn.is_empty() && in_turn.iter().all(|[first, second]| second.0 > first.1), "{in_turn:?}");
    let together = pairs("v0.22.1");
    assert!(together.iter().any(|[first, second]| first.0 == second.0), "several at once: {together:?}");
}

#[test]
fn bare_pod_blocks_consolidation_until_v0_18() {
    const BARE: &str = "---\napiVersion: v1\nkind: Pod\nmetadata: {name: bare}\nspec:\n  \
        containers: [{name: app, image: app, resources: {requests: {cpu: 1500m, memory: 1Gi}}}]\n";
    let with = |karpenter| {
        let cluster = Cluster::new(karpenter, CONSOLIDATION, 1, &[(5, "web", 0)]);
        Cluster { manifests: BARE, ..cluster }.run().record.nodes[0].end
    };
    assert_eq!((with("v0.18.1"), with("v0.22.1")), (None, Some(NodeEnd::Underutilized)));
}

#[test]
fn unstable_cluster_pauses_consolidation_for_three_minutes() {
    // A pod that fits no type waits for ever.
    const LARGE: &str = "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: large}\nspec:\n  replicas: 1\n  \
        selector: {matchLabels: {app: large}}\n  template:\n    metadata: {labels: {app: large}}\n    spec:\n      \
        containers: [{name: app, image: app, resources: {requests: {cpu: 64}}}]\n";
    let cluster = Cluster::new("v0.16.0", CONSOLIDATION, 2, &[(5, "web", 0)]);
    let outcome = Cluster { manifests: LARGE, ..cluster }.run();
    let waited = (removed(&outcome)[0].deletion_requested.unwrap() - minutes(5)).as_secs();
    assert!((180..=195).contains(&waited), "{waited} s");
}

#[test]
fn releases_before_consolidation_warn_about_it() {
    let outcome = Cluster::new("v0.6.3", CONSOLIDATION, 2, &[(20, "web", 0)]).run();
    assert!(removed(&outcome).is_empty());
    assert!(outcome.warnings.iter().any(|warning| warning.contains("Karpenter v0.6.3 does not know `consolidation`")));
    let later = Cluster::new("v0.16.0", CONSOLIDATION, 2, &[(20, "web", 0)]).run();
    assert_eq!((removed(&later).len(), later.warnings.len()), (1, 0));
}

#[test]
fn legacy_node_expires_and_pods_wait() {
    for karpenter in ["v0.6.3", "v0.16.0", "v0.22.1"] {
        let outcome = Cluster::new(karpenter, "ttlSecondsUntilExpired: 1800", 2, &[]).run();
        let [old, new] = &outcome.record.nodes[..] else { panic!("{karpenter}: {:?}", lives(&outcome)) };
        let age = (old.deletion_requested.unwrap() - old.requested).as_secs();
        assert_eq!((old.end, age), (Some(NodeEnd::Expired), 1_799 + i64::from(age == 1_800)), "{karpenter}");
        assert!(new.requested >= old.deletion_requested.unwrap(), "no replacement is made before");
    }
}

#[test]
fn a_provisioner_without_either_removes_nothing() {
    for karpenter in ["v0.4.1", "v0.16.0", "v0.22.1"] {
        assert!(removed(&Cluster::new(karpenter, "weight: 1", 2, &[(20, "web", 0)]).run()).is_empty());
    }
    let outcome = Cluster::new("v0.16.0", "ttlSecondsAfterEmpty: 60", 2, &[(20, "web", 0)]).run();
    let waited = (removed(&outcome)[0].deletion_requested.unwrap() - minutes(20)).as_secs();
    assert!((60..=62).contains(&waited), "{waited} s");
}
