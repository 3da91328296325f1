//! Who acts on what EC2 says of an instance, in a running simulation: the termination handler's settings.

use std::path::Path;

use nodecast::catalog::Catalog;
use nodecast::domain::{SimDuration, SimTime};
use nodecast::simulation::{self, Outcome};
use nodecast::world::record::{Event, EventKind, NodeEnd, NodeFacts, NodeOrigin};

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
    let (scenario, _) = nodecast::scenario::load(&directory.path().join("scenario.yaml")).unwrap();
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

fn events(outcome: &Outcome, kind: EventKind) -> Vec<Event<'_>> {
    all(outcome, kind).filter(|event| event.at >= minutes(30)).collect()
}

fn all(outcome: &Outcome, kind: EventKind) -> impl Iterator<Item = Event<'_>> {
    outcome.record.events.iter().filter(move |event| event.kind == kind)
}

#[test]
fn the_handler_may_drain_on_the_recommendation_already() {
    let outcome = handled("drain", "");
    let cordoned = events(&outcome, EventKind::NodeTainted)[0].at - minutes(30);
    assert!(cordoned <= SimDuration::from_secs(3), "{cordoned}");
    assert!(victim(&outcome).drained.is_some_and(|drained| drained < minutes(37)), "all pods have found another node");
    let evicted = events(&outcome, EventKind::PodEvicted);
    let drained = evicted.iter().filter(|event| event.message == "its node is being drained").count();
    assert_eq!(drained, 8);
}

#[test]
fn the_handler_may_only_cordon_on_the_recommendation() {
    let outcome = handled("cordon", "");
    let cordoned: Vec<Event<'_>> = events(&outcome, EventKind::NodeTainted);
    assert_eq!(cordoned.len(), 1, "the notice finds it cordoned");
    assert!(cordoned[0].at < minutes(31));
    let evicted = events(&outcome, EventKind::PodEvicted);
    assert!(!evicted.is_empty() && evicted.iter().all(|event| event.at > minutes(38)), "pods stay until the notice");
}

#[test]
fn node_without_handler_pod_ignores_notice() {
    let elsewhere = "      nodeSelector: { alpha.eksctl.io/nodegroup-name: c-nodegroup }\n";
    let outcome = handled("drain", elsewhere);
    assert!(events(&outcome, EventKind::NodeTainted).is_empty() && victim(&outcome).drained.is_none());
    let evicted = events(&outcome, EventKind::PodEvicted);
    assert!(!evicted.is_empty() && evicted.iter().all(|event| event.message == "its node is gone"));
}

#[test]
fn two_handlers_of_one_notice_warn() {
    let handler = "node_termination_handler: { daemon_set: kube-system/aws-node-termination-handler }";
    let twice = |policy: &str| {
        let outcome = run(&format!("{policy}, {handler}"), "");
        outcome.warnings.iter().filter(|warning| warning.contains("both act on interruption notices")).count()
    };
    assert_eq!(twice("versions: { karpenter: v0.22.1 }"), 1);
    assert_eq!(twice("versions: { karpenter: v0.22.1 }, karpenter: { interruption_queue: false }"), 0);
    assert_eq!(twice("versions: { karpenter: v0.18.1 }"), 0, "it has no queue");
}

/// Two Spot instances in a pool whose events overlap: one is foreseen before another that comes sooner.
#[test]
fn rebalance_recommendation_is_independent_of_run_length() {
    let recommended = |duration: &str, seed: u64| -> Vec<(SimTime, Option<nodecast::domain::NodeId>)> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("scenario.yaml");
        let text = format!(
            "name: overlap\nregion: us-east-1\nstart: 2026-01-05T00:00:00Z\nduration: {duration}\ncluster: {{zones: [us-east-1c]}}\n\
             nodeGroups: [{{name: g, instanceTypes: [m5.large], min: 2, desired: 2, max: 3, spot: true}}]\nmanifests: []\n\
             ec2: {{spot: {{interruptions: {{exposure: 1h, stress: 100}}}}}}\npolicies: [{{name: only, autoscaler: none}}]\n"
        );
        std::fs::write(&path, text).unwrap();
        let (scenario, _) = nodecast::scenario::load(&path).unwrap();
        let policy = scenario.for_policy(None).unwrap();
        let run = simulation::run(&scenario, policy, Catalog::embedded().unwrap(), seed, &mut |_| {}).unwrap();
        let events = all(&run, EventKind::RebalanceRecommended);
        events.filter(|event| event.at < minutes(15)).map(|event| (event.at, event.node)).collect()
    };
    let mut found = 0;
    for seed in 1..=12 {
        let short = recommended("15m", seed);
        assert_eq!(recommended("20m", seed), short, "seed {seed}");
        found += short.len();
    }
    assert!(found > 10, "{found}");
}

/// EC2 takes an instance without a word, and the release that finds its node empty later clears it away.
#[test]
fn node_reclaimed_by_ec2_ends_as_reclaimed() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
    write(
        "objects.yaml",
        "apiVersion: karpenter.sh/v1alpha5\nkind: Provisioner\nmetadata: {name: default}\nspec:\n  requirements:\n  \
         - {key: karpenter.sh/capacity-type, operator: In, values: [spot]}\n  providerRef: {name: default}\n  \
         ttlSecondsAfterEmpty: 30\n---\napiVersion: karpenter.k8s.aws/v1alpha1\nkind: AWSNodeTemplate\n\
         metadata: {name: default}\nspec: {subnetSelector: {a: b}, securityGroupSelector: {a: b}}\n---\n\
         apiVersion: batch/v1\nkind: Job\nmetadata: {name: work}\nspec:\n  template:\n    spec:\n      restartPolicy: Never\n      \
         containers: [{name: c, image: work, resources: {requests: {cpu: 1, memory: 1Gi}}}]\n",
    );
    let path = directory.path().join("scenario.yaml");
    // The pod ends just before the instance does, and the node would be removed as empty just after.
    let run = |interrupted: &str| {
        let text = format!(
            "name: taken\nregion: us-east-1\nduration: 20m\nversions: {{karpenter: v0.16.0}}\nmanifests: [objects.yaml]\n\
             workloads: [{{name: default/work, run_time: 5m}}]\n\
             faults: [{{at: {interrupted}, spot_interruption: {{count: 1}}}}]\n\
             ec2: {{failures: none, spot: {{interruptions: none}}}}\n"
        );
        std::fs::write(&path, text).unwrap();
        let (scenario, _) = nodecast::scenario::load(&path).unwrap();
        let policy = scenario.for_policy(None).unwrap();
        simulation::run(&scenario, policy, Catalog::embedded().unwrap(), 3, &mut |_| {}).unwrap()
    };
    let undisturbed = run("19m");
    let empty = undisturbed.record.nodes[0].deletion_requested.unwrap();
    assert_eq!(undisturbed.record.nodes[0].end, Some(NodeEnd::Empty));
    // Two minutes and five seconds before: taken five seconds before it would be removed.
    let notice = empty.as_secs() - 125;
    let taken = run(&format!("{notice}s"));
    let node = &taken.record.nodes[0];
    assert!(all(&taken, EventKind::InstanceReclaimed).count() == 1 && node.deletion_requested > node.terminating);
    assert_eq!(node.end, Some(NodeEnd::Interrupted));
}
