//! What the third tutorial observed of Spot interruptions, on the shipped scenario: facts S2-a and S2-b.

use std::sync::OnceLock;

use nodecast::catalog::Catalog;
use nodecast::domain::{SimDuration, SimTime, Symbol};
use nodecast::simulation::Outcome;
use nodecast::world::record::{Event, EventKind, NodeEnd, NodeFacts, NodeOrigin, Sample};

use crate::shipped;

const REPLICAS: u32 = 8;

fn run(policy: &str) -> Outcome {
    let outcome = shipped::run("spot-interruption", policy);
    // The release of the tutorial launches On-Demand, which no Spot fault strikes.
    let told = |text: &String| policy == "as-written" && text.contains("struck nothing");
    assert!(outcome.warnings.texts().iter().all(told), "{:?}", outcome.warnings.texts());
    outcome
}

macro_rules! policies {
    ($($name:ident: $policy:literal),*) => {$(
        fn $name() -> &'static Outcome {
            static OUTCOME: OnceLock<Outcome> = OnceLock::new();
            OUTCOME.get_or_init(|| run($policy))
        }
    )*};
}

policies!(
    unhandled: "none",
    handler: "termination-handler",
    queue: "interruption-queue",
    group: "managed-group",
    as_written: "as-written"
);

fn minutes(minutes: i64) -> SimTime {
    SimTime::ZERO + SimDuration::from_secs(minutes * 60)
}

fn events(outcome: &Outcome, kind: EventKind) -> Vec<Event<'_>> {
    outcome.record.events.iter().filter(|event| event.kind == kind && event.at >= minutes(30)).collect()
}

fn nodes(outcome: &Outcome) -> Vec<&NodeFacts> {
    let system = NodeOrigin::NodeGroup(Symbol::new("karpenter-demo-nodegroup"));
    outcome.record.nodes.iter().filter(|node| node.origin != system).collect()
}

/// Ready replicas of `web` at every sample from the recommendation on.
fn ready(outcome: &Outcome) -> Vec<u32> {
    let web = outcome.record.workloads.iter().position(|workload| workload.name.name.as_str() == "web").unwrap();
    let of = |sample: &Sample| {
        sample.workloads.iter().find(|workload| workload.workload.index() == web).unwrap().replicas_ready
    };
    outcome.record.samples.iter().filter(|sample| sample.at >= minutes(30)).map(of).collect()
}

/// Seconds that replicas were missing, added up over replicas.
fn missing(outcome: &Outcome) -> u32 {
    let interval = outcome.record.samples[1].at - outcome.record.samples[0].at;
    ready(outcome).into_iter().map(|ready| REPLICAS - ready).sum::<u32>() * interval.as_secs() as u32
}

fn vcpus(instance_type: Symbol) -> u32 {
    let region = Catalog::embedded().unwrap().region("us-east-1").unwrap();
    region.instance_type(instance_type).unwrap().facts.vcpus
}

#[test]
fn s2_a_replica_gap_depends_on_interruption_handler() {
    let gaps = [unhandled(), handler(), queue(), group()].map(missing);
    assert!((600..900).contains(&gaps[0]), "all replicas for a node's end and another's boot: {gaps:?}");
    assert!(gaps[1] < gaps[0] && gaps[1] > 4 * gaps[2], "{gaps:?}");
    assert!((30..120).contains(&gaps[2]) && (5..30).contains(&gaps[3]), "{gaps:?}");
    let fewest = [unhandled(), handler(), queue(), group()].map(|outcome| ready(outcome).into_iter().min().unwrap());
    assert_eq!((fewest[0], fewest[2], fewest[3]), (0, REPLICAS - 1, REPLICAS - 1));
    assert!((1..REPLICAS - 1).contains(&fewest[1]));
    for outcome in [unhandled(), handler(), queue(), group()] {
        assert_eq!(ready(outcome).last(), Some(&REPLICAS), "{}", outcome.about.policy);
        assert_eq!(events(outcome, EventKind::RebalanceRecommended).len(), 1);
    }
}

#[test]
fn unhandled_interruption_loses_node_with_pods() {
    let lost = nodes(unhandled())[0];
    assert_eq!((lost.end, lost.drained, lost.terminating), (Some(NodeEnd::Interrupted), None, Some(minutes(40))));
    let moved = events(unhandled(), EventKind::PodEvicted);
    assert!(moved.iter().all(|event| event.message == "its node is gone" && Some(event.at) == lost.terminated));
}

#[test]
fn handler_drains_and_pods_get_separate_nodes() {
    let cordoned = events(handler(), EventKind::NodeTainted)[0];
    let after = cordoned.at - minutes(38);
    // Two seconds at most until the metadata are read, and one until that is acted on.
    assert!(after > SimDuration::ZERO && after <= SimDuration::from_secs(3), "{after}");
    let claims = events(handler(), EventKind::ClaimCreated);
    let alone = claims.iter().filter(|event| event.message.starts_with("1 pod ")).count();
    assert!(alone >= 2, "{claims:?}");
    let lost = nodes(handler())[0];
    assert_eq!((lost.end, lost.drained), (Some(NodeEnd::Interrupted), None));
    // Its pod is on every node, and counted when a node is sized.
    let first = handler().record.events.iter().find(|event| event.kind == EventKind::ClaimCreated).unwrap();
    assert!(first.message.contains("desired size"), "the managed group's node comes first");
    let asked = |outcome: &Outcome| {
        let claims = outcome.record.nodes.iter().filter_map(|node| node.claim.as_ref());
        claims.map(|claim| claim.requests.clone()).next().unwrap().to_string()
    };
    assert_eq!(asked(unhandled()), "cpu 8125m, memory 8Gi, pods 10");
    assert_eq!(asked(handler()), "cpu 8175m, memory 8256Mi, pods 11");
}

#[test]
fn queue_launches_one_node_avoiding_interrupted_pool() {
    let old = nodes(queue())[0];
    assert_eq!(old.end, Some(NodeEnd::Interrupted));
    assert!(old.drained.unwrap() < minutes(40) && events(queue(), EventKind::InstanceReclaimed).is_empty());
    let claims = events(queue(), EventKind::ClaimCreated);
    assert_eq!(claims.len(), 1);
    assert!(claims[0].message.starts_with("8 pods") && claims[0].at < minutes(38) + SimDuration::from_secs(15));
    let new = nodes(queue())[1];
    assert_ne!((new.instance_type, new.zone), (old.instance_type, old.zone));
}

#[test]
fn a_managed_group_replaces_first_and_drains_then() {
    let [old, new] = nodes(group())[..] else { panic!("two instances") };
    assert!(new.requested < minutes(31) && old.deletion_requested > new.ready);
    assert_eq!(old.end, Some(NodeEnd::Rebalanced));
    assert!(old.terminating.unwrap() < minutes(38), "it is gone before its notice");
    assert_eq!(events(group(), EventKind::InterruptionNotice).len(), 0);
}

#[test]
fn tutorial_release_launches_on_demand_without_interruption() {
    let [node] = nodes(as_written())[..] else { panic!("one node") };
    assert_eq!(node.capacity_type, Some(Symbol::new("on-demand")));
    assert_eq!((missing(as_written()), events(as_written(), EventKind::RebalanceRecommended).len()), (0, 0));
    let ratio = node.rate.as_f64() / nodes(unhandled())[0].rate.as_f64();
    assert!((1.2..4.0).contains(&ratio), "{ratio}");
    for outcome in [unhandled(), handler(), queue()] {
        assert!(nodes(outcome).iter().all(|node| node.capacity_type == Some(Symbol::new("spot"))));
    }
}

#[test]
fn s2_b_eight_pods_exceed_c1_xlarge() {
    let c1 = Symbol::new("c1.xlarge");
    assert_eq!(vcpus(c1), 8);
    let first_types = |event: &Event<'_>| -> Vec<Symbol> {
        let list = event.message.split("from types ").nth(1).unwrap().split(" and ").next().unwrap();
        list.split(", ").map(Symbol::new).collect()
    };
    let claims = |outcome: &'static Outcome, pods: &str| -> Vec<Event<'static>> {
        let created = outcome.record.events.iter().filter(|event| event.kind == EventKind::ClaimCreated);
        created.filter(|event| event.message.starts_with(pods)).collect()
    };
    // Types come in the order of their size, so that a smaller one that would do stood first.
    for claim in claims(unhandled(), "8 pods").into_iter().chain(claims(handler(), "8 pods")) {
        assert!(first_types(&claim).into_iter().all(|name| vcpus(name) == 16), "{}", claim.message);
    }
    let [five] = claims(handler(), "5 pods")[..] else { panic!("five are left when EC2 takes the node") };
    assert_eq!(first_types(&five)[0], c1);
}

#[test]
fn nodes_after_upgrade_use_new_release() {
    for outcome in [unhandled(), handler(), queue(), group(), as_written()] {
        assert!(outcome.record.nodes.iter().all(|node| node.end != Some(NodeEnd::Drifted)));
        for node in &outcome.record.nodes {
            let karpenters = matches!(node.origin, NodeOrigin::NodePool(_));
            let release = if karpenters && node.requested > minutes(25) { "1.21" } else { "1.20" };
            assert_eq!(
                node.kubelet_version.map(|kubelet_version| kubelet_version.to_string()).as_deref(),
                Some(release),
                "{}",
                node.name
            );
        }
    }
    assert_eq!(nodes(unhandled())[1].kubelet_version.map(|kubelet_version| kubelet_version.minor()), Some(21));
}
