//! Who acts on what EC2 says of an instance, in a running simulation: the termination handler's settings.

use std::path::Path;

use nodecast::catalog::Catalog;
use nodecast::domain::{SimDuration, SimTime};
use nodecast::scenario::Scenario;
use nodecast::simulation::{self, Outcome};
use nodecast::world::record::{Event, EventKind, NodeFacts, NodeOrigin};

const FOLDER: &str = "scenarios/spot-interruption";

/// The third tutorial's cluster for an hour in which EC2 takes a Spot instance at 40 min. `policy` is how Karpenter is set
/// up, `daemon_set` more of the specification of the handler's pods.
fn run(policy: &str, daemon_set: &str) -> Outcome {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(FOLDER);
    let directory = tempfile::tempdir().unwrap();
    let handler = std::fs::read_to_string(folder.join("termination-handler.yaml")).unwrap();
    let handler = handler.replace("      hostNetwork: true\n", &format!("      hostNetwork: true\n{daemon_set}"));
    std::fs::write(directory.path().join("handler.yaml"), handler).unwrap();
    let file = |name: &str| folder.join(name).display().to_string();
    let text = format!(
        "name: test\nregion: us-east-1\nduration: 1h\nversions: {{ kubernetes: \"1.20\" }}\n\
         variables: {{ CLUSTER_NAME: c, AWS_DEFAULT_REGION: us-east-1 }}\n\
         manifests: [{}, {}, {}, {}, handler.yaml]\n\
         faults: [{{ at: 30m, spot_interruption: {{ count: 1, before: 10m }} }}]\n\
         ec2: {{ spot: {{ prices: constant, interruptions: none }}, failures: none }}\n\
         policies: [{{ name: only, autoscaler: karpenter, {policy} }}]\n",
        file("cluster.yaml"),
        file("system.yaml"),
        file("web.yaml"),
        file("provisioner.yaml")
    );
    std::fs::write(directory.path().join("scenario.yaml"), text).unwrap();
    let (scenario, _) = Scenario::load(&directory.path().join("scenario.yaml")).unwrap();
    let policy = scenario.for_policy(None).unwrap();
    simulation::run(&scenario, policy, Catalog::embedded().unwrap(), scenario.seed, &mut |_| {}).unwrap()
}

fn handled(rebalance: &str, daemon_set: &str) -> Outcome {
    let handler = format!("{{ daemon_set: kube-system/aws-node-termination-handler, rebalance: {rebalance} }}");
    run(&format!("versions: {{ karpenter: v0.6.3 }}, node_termination_handler: {handler}"), daemon_set)
}

fn minutes(minutes: i64) -> SimTime {
    SimTime::ZERO + SimDuration::from_secs(minutes * 60)
}

/// The node that EC2 takes.
fn victim(outcome: &Outcome) -> &NodeFacts {
    outcome.record.nodes.iter().find(|node| matches!(node.origin, NodeOrigin::NodePool(_))).unwrap()
}

fn events(outcome: &Outcome, kind: EventKind) -> Vec<&Event> {
    outcome.record.events.iter().filter(|event| event.kind == kind && event.at >= minutes(30)).collect()
}

#[test]
fn the_handler_may_drain_on_the_recommendation_already() {
    let outcome = handled("drain", "");
    let cordoned = events(&outcome, EventKind::NodeTainted)[0].at - minutes(30);
    assert!(cordoned <= SimDuration::from_secs(3), "{cordoned}");
    assert!(victim(&outcome).drained.is_some_and(|drained| drained < minutes(37)), "all pods have found another node");
    let evicted = events(&outcome, EventKind::PodEvicted);
    let drained = evicted.iter().filter(|event| &*event.message == "its node is being drained").count();
    assert_eq!(drained, 8);
}

#[test]
fn the_handler_may_only_cordon_on_the_recommendation() {
    let outcome = handled("cordon", "");
    let cordoned: Vec<&Event> = events(&outcome, EventKind::NodeTainted);
    assert_eq!(cordoned.len(), 1, "the notice finds it cordoned");
    assert!(cordoned[0].at < minutes(31));
    let evicted = events(&outcome, EventKind::PodEvicted);
    assert!(!evicted.is_empty() && evicted.iter().all(|event| event.at > minutes(38)), "pods stay until the notice");
}

#[test]
fn where_no_pod_of_the_handler_runs_nothing_is_handled() {
    let elsewhere = "      nodeSelector: { alpha.eksctl.io/nodegroup-name: c-nodegroup }\n";
    let outcome = handled("drain", elsewhere);
    assert!(events(&outcome, EventKind::NodeTainted).is_empty() && victim(&outcome).drained.is_none());
    let evicted = events(&outcome, EventKind::PodEvicted);
    assert!(!evicted.is_empty() && evicted.iter().all(|event| &*event.message == "its node is gone"));
}

#[test]
fn two_that_act_on_the_same_notice_are_a_warning() {
    let handler = "node_termination_handler: { daemon_set: kube-system/aws-node-termination-handler }";
    let twice = |policy: &str| {
        let outcome = run(&format!("{policy}, {handler}"), "");
        outcome.warnings.iter().filter(|warning| warning.contains("both act on interruption notices")).count()
    };
    assert_eq!(twice("versions: { karpenter: v0.22.1 }"), 1);
    assert_eq!(twice("versions: { karpenter: v0.22.1 }, karpenter: { interruption_queue: false }"), 0);
    assert_eq!(twice("versions: { karpenter: v0.18.1 }"), 0, "it has no queue");
}
