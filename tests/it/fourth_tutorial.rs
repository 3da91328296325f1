//! What the fourth tutorial observed on a real cluster, on the shipped scenario: facts S3-a to S3-e.

use std::sync::OnceLock;

use nodecast::catalog::Catalog;
use nodecast::domain::{SimDuration, SimTime, Symbol};
use nodecast::simulation::Outcome;
use nodecast::world::record::{Event, EventKind, NodeEnd, NodeFacts, NodeOrigin};

use crate::shipped;

fn run(policy: &str) -> Outcome {
    shipped::run("provisioners", policy)
}

fn outcome() -> &'static Outcome {
    static OUTCOME: OnceLock<Outcome> = OnceLock::new();
    OUTCOME.get_or_init(|| run("karpenter-v0.18.1"))
}

fn minutes(minutes: i64) -> SimTime {
    SimTime::ZERO + SimDuration::from_secs(minutes * 60)
}

fn events_in(outcome: &Outcome, kind: EventKind, from: i64, until: i64) -> Vec<Event<'_>> {
    let within = |event: &Event<'_>| event.kind == kind && (minutes(from)..minutes(until)).contains(&event.at);
    outcome.record.events.iter().filter(within).collect()
}

/// The one node that was launched between two minutes, and what its claim says.
fn launched_in(outcome: &Outcome, from: i64, until: i64) -> (&NodeFacts, &str) {
    let claims = events_in(outcome, EventKind::ClaimCreated, from, until);
    assert_eq!(claims.len(), 1, "one node is enough");
    (&outcome.record.nodes[claims[0].node.unwrap().index()], claims[0].message)
}

fn vcpus(node: &NodeFacts) -> u32 {
    vcpus_of(node.instance_type.unwrap())
}

fn vcpus_of(instance_type: Symbol) -> u32 {
    let region = Catalog::embedded().unwrap().region("cn-north-1").unwrap();
    region.instance_type(instance_type).unwrap().facts.vcpus
}

/// The types that a claim's message names.
fn first_types(message: &str) -> Vec<Symbol> {
    let list = message.split("from types ").nth(1).unwrap().split(" and ").next().unwrap();
    list.split(", ").map(Symbol::new).collect()
}

#[test]
fn s3_a_fifteen_pods_need_sixteen_vcpus() {
    let (node, asked) = launched_in(outcome(), 5, 15);
    assert!(asked.starts_with("15 pods requesting {cpu 15125m, pods 17} from types "), "{asked}");
    assert!(vcpus(node) >= 16 && first_types(asked).into_iter().all(|name| vcpus_of(name) == 16), "{asked}");
    assert_eq!((node.origin.name().as_str(), node.capacity_type), ("default", Some(Symbol::new("spot"))));
}

#[test]
fn s3_b_sixteen_pods_exceed_sixteen_vcpus() {
    let (node, asked) = launched_in(outcome(), 25, 35);
    assert!(asked.starts_with("16 pods requesting {cpu 16125m, pods 18} from types "), "{asked}");
    assert!(vcpus(node) > 16 && first_types(asked).into_iter().all(|name| vcpus_of(name) > 16), "{asked}");
}

#[test]
fn s3_c_tolerating_pods_use_heavier_provisioner() {
    let (node, asked) = launched_in(outcome(), 65, 75);
    assert!(asked.starts_with("3 pods requesting {cpu 3125m, pods 5} from types "), "{asked}");
    // In the order of us-east-1 prices: those of this region are in a currency that the release does not read.
    assert_eq!(
        first_types(asked),
        ["t3a", "c5a", "t3", "c5", "c6i"].map(|family| Symbol::new(&format!("{family}.xlarge")))
    );
    assert_eq!(node.origin, NodeOrigin::NodePool(Symbol::new("banana")));
    assert_eq!((vcpus(node), node.capacity_type), (4, Some(Symbol::new("on-demand"))));
}

#[test]
fn s3_d_sold_out_type_uses_other_zone() {
    let asked: Vec<(i64, &str)> = events_in(outcome(), EventKind::LaunchRequested, 85, 95)
        .iter()
        .map(|event| (event.at.as_secs() / 60, event.message))
        .collect();
    // Two zones, then the one that is not known to have run out, then both again.
    let over = |pools| format!("on-demand lowest-price over {pools}");
    let expected = [(85, over("2 pools")), (87, over("1 pool")), (90, over("2 pools"))];
    assert_eq!(asked, expected.each_ref().map(|(minute, text)| (*minute, text.as_str())));
    let nodes: Vec<&NodeFacts> =
        outcome().record.nodes.iter().filter(|node| node.instance_type == Some(Symbol::new("p3.8xlarge"))).collect();
    assert_eq!(nodes.len(), 3);
    assert!(nodes.iter().all(|node| node.zone == Some(Symbol::new("cn-north-1b"))));
}

#[test]
fn s3_e_five_pods_get_eight_vcpus() {
    let (node, asked) = launched_in(outcome(), 45, 55);
    assert!(asked.starts_with("5 pods requesting {cpu 5125m, pods 7} from types "), "{asked}");
    assert_eq!(vcpus(node), 8);
}

#[test]
fn empty_node_follows_provisioner_ttl() {
    let removed: Vec<(usize, &NodeFacts)> =
        outcome().record.nodes.iter().enumerate().filter(|(_, node)| node.end == Some(NodeEnd::Empty)).collect();
    assert_eq!(removed.len(), 7, "the nodes of five steps, of which one has three");
    for (index, node) in removed {
        let this_event =
            outcome().record.events.iter().filter(|event| event.node.is_some_and(|node| node.index() == index));
        let end: Vec<(EventKind, &str)> = this_event
            .skip_while(|event| event.kind != EventKind::NodeEmpty)
            .filter(|event| event.pod.is_none())
            .map(|event| (event.kind, event.message))
            .collect();
        let wanted = [
            (EventKind::NodeEmpty, "added TTL of 10s to the empty node"),
            (EventKind::NodeDisrupted, "triggering termination after 10s for the empty node"),
            (EventKind::NodeTainted, "node.kubernetes.io/unschedulable"),
            (EventKind::NodeDrained, ""),
            (EventKind::InstanceTerminating, ""),
            (EventKind::InstanceTerminated, ""),
        ];
        assert_eq!(end, wanted, "{}", node.name);
    }
}

#[test]
fn pods_excluding_karpenter_nodes_get_none() {
    let refused = events_in(outcome(), EventKind::PodUnschedulable, 100, 103);
    assert_eq!(refused.len(), 1);
    assert!(outcome().record.pods.facts(refused[0].pod.unwrap()).node.is_none());
    assert!(events_in(outcome(), EventKind::ClaimsComputed, 100, 105).is_empty());
}

#[test]
fn unsatisfiable_soft_spread_is_dropped() {
    let (node, asked) = launched_in(outcome(), 105, 120);
    assert!(asked.starts_with("2 pods requesting {cpu 2125m, pods 4}"), "{asked}");
    assert_eq!(node.zone, Some(Symbol::new("cn-north-1b")));
}

#[test]
fn v0_22_1_excludes_burstable_types() {
    let outcome = run("karpenter-v0.22.1");
    let (node, asked) = launched_in(&outcome, 65, 75);
    assert!(asked.starts_with("3 pods requesting {cpu 3125m, pods 5} from types c5a.xlarge, "), "{asked}");
    assert_eq!(node.origin.name().as_str(), "banana");
    assert_eq!(vcpus(launched_in(&outcome, 5, 15).0), 16);
}
