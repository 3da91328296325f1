//! Each injected fault in a running simulation: what it does to launches, nodes, pods and the bill.

use nodecast::cloud::BillItem;
use nodecast::domain::{SimDuration, SimTime, Symbol};
use nodecast::report::Summary;
use nodecast::simulation::Outcome;
use nodecast::world::record::{EventKind, NodeEnd, NodeFacts};

use crate::spot_market::{amount, of_kind, shop};

/// The shop without anything that goes wrong by itself, and with these faults.
fn shop_with(duration: &str, faults: &str) -> Outcome {
    shop(duration, "v1.13", &format!("ec2: {{ spot: {{ interruptions: none }}, failures: none }}\nfaults:\n{faults}"))
}

fn calm(duration: &str) -> Outcome {
    shop(duration, "v1.13", "ec2: { spot: { interruptions: none }, failures: none }")
}

fn at(minutes: i64) -> SimTime {
    SimTime::ZERO + SimDuration::from_secs(minutes * 60)
}

fn events(outcome: &Outcome, kind: EventKind) -> Vec<nodecast::world::record::Event<'_>> {
    outcome.record.events.iter().filter(|event| event.kind == kind).collect()
}

/// Karpenter's nodes.
fn launched(outcome: &Outcome) -> impl Iterator<Item = &NodeFacts> {
    outcome.record.nodes.iter().filter(|node| node.origin.name() == Symbol::new("default"))
}

#[test]
fn zone_power_outage_moves_pods_after_tolerations() {
    let outcome = shop_with("1h", "  - { at: 20m, for: 20m, zone_outage: { zone: us-east-1a, mode: power } }");
    let zone = Symbol::new("us-east-1a");
    let dark: Vec<_> = launched(&outcome).filter(|node| node.zone == Some(zone)).collect();
    assert!(!dark.is_empty());
    let lost = events(&outcome, EventKind::NodeUnreachable);
    assert!(lost.len() >= dark.len());
    assert!(lost.iter().all(|event| event.at == at(20) + SimDuration::from_secs(50)), "since 1.32");
    let evicted = events(&outcome, EventKind::PodEvicted);
    assert!(!evicted.is_empty());
    let unreachable = |event: &nodecast::world::record::Event<'_>| event.message.contains("unreachable");
    for event in evicted.into_iter().filter(unreachable) {
        assert_eq!(event.at, at(20) + SimDuration::from_secs(350));
    }
    let back = events(&outcome, EventKind::NodeReachable);
    // The node group has replaced its instance there, whose status checks failed.
    let replaced = outcome.record.nodes.iter().filter(|node| node.end == Some(NodeEnd::Unhealthy)).count();
    assert_eq!((back.len() + replaced, replaced), (lost.len(), 1));
    assert!(back.iter().all(|event| event.at == at(40)));
    // EC2 calls the instances running all the while, and bills them.
    assert!(dark.iter().all(|node| node.terminating.is_none_or(|ended| ended > at(40))));
    let summary = Summary::from_outcome(&outcome);
    assert_eq!(summary.pods.pending_at_end, 0);
    // From when that is noticed until they are heard of again they are not Ready, in the record as in samples, and do not start.
    let in_the_dark =
        |node: &&&NodeFacts| node.terminating.is_none() && node.ready.is_some_and(|ready| ready <= at(20));
    for node in dark.iter().filter(in_the_dark) {
        let noticed = at(20) + SimDuration::from_secs(50);
        assert_eq!(node.not_ready, [(noticed, Some(at(40)))], "{}", node.name);
    }
    let sample = outcome.record.samples.iter().find(|sample| sample.at >= at(21)).unwrap();
    let there = |node: &&NodeFacts| {
        node.requested <= sample.at && node.terminating.or(node.terminated).is_none_or(|gone| gone > sample.at)
    };
    let there: Vec<&NodeFacts> = outcome.record.nodes.iter().filter(there).collect();
    let was_ready = |node: &&&NodeFacts| node.ready.is_some_and(|ready| ready <= sample.at);
    let lit = there.iter().filter(was_ready).filter(|node| node.zone != Some(zone)).count();
    assert_eq!((sample.nodes_spot + sample.nodes_on_demand) as usize, lit);
    assert_eq!(sample.nodes_starting as usize, there.len() - there.iter().filter(was_ready).count());
    assert!(
        launched(&outcome).any(|node| node.zone != Some(zone) && node.requested > at(25)),
        "room is made elsewhere"
    );
}

#[test]
fn failed_ec2_call_is_retried() {
    let outcome = shop_with("30m", "  - { at: 0s, for: 3m, api_error: { code: Unavailable, probability: 60% } }");
    let failed = events(&outcome, EventKind::CallFailed);
    assert!(!failed.is_empty() && failed.iter().all(|event| event.message == "Unavailable" && event.at < at(3)));
    let summary = Summary::from_outcome(&outcome);
    assert_eq!((summary.pods.pending_at_end, summary.nodes.calls_throttled), (0, 0));
}

#[test]
fn slow_calls_delay_launches() {
    let requested_to_launched = |outcome: &Outcome| {
        let spans = launched(outcome).filter_map(|node| Some((node.launched? - node.requested).as_secs_f64()));
        spans.fold(0.0, f64::max)
    };
    let slow = shop_with("20m", "  - { at: 0s, api_latency: { factor: 20 } }");
    assert!(requested_to_launched(&slow) > 5.0 * requested_to_launched(&calm("20m")));
}

#[test]
fn price_shock_is_billed_up_to_on_demand() {
    let outcome = shop_with("2h", "  - { at: 1h, for: 30m, price_shock: { factor: 1.5 } }");
    let spot = Symbol::new("spot");
    let lines: Vec<_> = outcome
        .bill
        .lines
        .iter()
        .filter(|line| line.item == BillItem::Instance && line.capacity_type == Some(spot))
        .collect();
    let mut shocked = 0;
    for line in &lines {
        let within = line.from >= at(60) && line.to <= at(90);
        assert!(within || line.to <= at(60) || line.from >= at(90), "a line has one price");
        shocked += u32::from(within);
    }
    assert!(shocked > 0);
    let rate_at = |node, time| {
        let line = lines.iter().find(|line| line.node == node && line.from <= time && time < line.to);
        line.map(|line| line.rate.as_nanos())
    };
    let node = lines.iter().find(|line| line.from <= at(30) && line.to > at(30)).and_then(|line| line.node);
    let (before, during) = (rate_at(node, at(59)).unwrap(), rate_at(node, at(61)).unwrap());
    assert!((during as f64 / before as f64 - 1.5).abs() < 0.01, "{before} {during}");
    let dear = shop_with("30m", "  - { at: 0s, price_shock: { factor: 100 } }");
    for line in
        dear.bill.lines.iter().filter(|line| line.item == BillItem::Instance && line.capacity_type == Some(spot))
    {
        let name = line.instance_type.unwrap();
        let catalog = nodecast::catalog::Catalog::embedded().and_then(|catalog| catalog.region("us-east-1")).unwrap();
        assert_eq!(line.rate, catalog.instance_type(name).unwrap().on_demand.unwrap().rate);
    }
}

#[test]
fn unregistered_nodes_are_billed_until_removal() {
    let outcome = shop_with("40m", "  - { at: 0s, for: 1m, boot_failure: { probability: 1 } }");
    let lost: Vec<_> = launched(&outcome).filter(|node| node.end == Some(NodeEnd::NotRegistered)).collect();
    assert!(!lost.is_empty());
    for node in &lost {
        assert_eq!((node.registered, node.ready), (None, None));
        // The fifteen minutes count from the whole second in which the claim was made, as the API keeps it.
        let life = node.terminating.unwrap() - node.requested;
        let (least, most) = (SimDuration::from_secs(15 * 60 - 1), SimDuration::from_secs(15 * 60));
        assert!(life > least && life <= most, "{}: {life}", node.name);
    }
    assert!(Summary::from_outcome(&outcome).cost.phases.starting > 0.0);
    assert_eq!(Summary::from_outcome(&outcome).pods.pending_at_end, 0, "their pods got other nodes");
}

#[test]
fn aborted_launch_is_free_and_replaced() {
    let settings =
        "ec2: { spot: { interruptions: none }, failures: { abort: 30%, never_registers: 0, internal_error: 0 } }";
    let outcome = shop("30m", "v1.13", settings);
    let aborted: Vec<_> = outcome
        .record
        .nodes
        .iter()
        .enumerate()
        .filter(|(_, node)| node.end == Some(NodeEnd::Aborted))
        .map(|(number, _)| number)
        .collect();
    assert!(!aborted.is_empty());
    assert_eq!(of_kind(&outcome, EventKind::LaunchAborted), aborted.len());
    for line in outcome.bill.lines.iter().filter(|line| line.item == BillItem::Instance) {
        assert!(!aborted.contains(&line.node.unwrap().index()));
    }
    assert_eq!(Summary::from_outcome(&outcome).pods.pending_at_end, 0);
}

#[test]
fn reduced_quota_rejects_launches_with_quota_error() {
    let outcome = shop_with("20m", "  - { at: 0s, quota: { class: standard, vcpus: 6 } }");
    let refused = events(&outcome, EventKind::LaunchFailed);
    assert!(!refused.is_empty());
    assert!(
        refused.iter().all(|event| event.message.contains("MaxSpotInstanceCountExceeded")
            || event.message.contains("VcpuLimitExceeded"))
    );
    assert!(Summary::from_outcome(&outcome).pods.pending_at_end > 0);
}

#[test]
fn spot_quota_leaves_on_demand_launches() {
    let common = "spot: { interruptions: none }, failures: none";
    let outcome = shop("20m", "v1.13", &format!("ec2: {{ {common}, quotas: {{ spot: {{ standard: 6 }} }} }}"));
    let refused = events(&outcome, EventKind::LaunchFailed);
    assert!(!refused.is_empty());
    assert!(refused.iter().all(|event| event.message.contains("MaxSpotInstanceCountExceeded")));
    let fault = "faults: [{ at: 0s, quota: { class: standard, vcpus: 6, capacity_type: spot } }]";
    let by_fault = shop("20m", "v1.13", &format!("ec2: {{ {common} }}\n{fault}"));
    let again = events(&by_fault, EventKind::LaunchFailed);
    assert!(
        again.iter().map(|event| event.at).eq(refused.iter().map(|event| event.at)),
        "the fault sets the same quota"
    );
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn an_exhausted_subnet_sends_launches_to_other_zones() {
    let outcome = shop_with("20m", "  - { at: 0s, subnet_exhausted: { zone: us-east-1b } }");
    assert!(launched(&outcome).count() > 5);
    assert!(launched(&outcome).all(|node| node.zone != Some(Symbol::new("us-east-1b"))));
    let nowhere = shop_with("20m", "  - { at: 0s, subnet_exhausted: {} }");
    let refused = events(&nowhere, EventKind::LaunchFailed);
    assert!(refused.iter().any(|event| event.message.contains("InsufficientFreeAddressesInSubnet")));
}

#[test]
fn spot_interruption_can_have_early_rebalance_recommendation() {
    let fault = "  - { at: 20m, spot_interruption: { count: 2, before: 10m } }";
    let outcome = shop_with("40m", fault);
    let warned = events(&outcome, EventKind::RebalanceRecommended);
    assert_eq!(warned.len(), 2);
    assert!(warned.iter().all(|event| event.at == at(20)));
    let noticed = events(&outcome, EventKind::InterruptionNotice);
    assert_eq!(noticed.len(), 2);
    assert!(noticed.iter().all(|event| event.at == at(28)), "two minutes before the interruption");
}

#[test]
fn shortage_can_affect_share_or_type_pattern() {
    let some = shop_with("20m", "  - { at: 0s, insufficient_capacity: { probability: 50% } }");
    let all = shop_with("20m", "  - { at: 0s, insufficient_capacity: { type: \"*\" } }");
    let launches = |outcome: &Outcome| launched(outcome).filter(|node| node.launched.is_some()).count();
    assert!(launches(&some) > 0);
    assert_eq!(launches(&all), 0);
    assert!(of_kind(&all, EventKind::LaunchFailed) > 0);
    let fifth = shop_with("20m", "  - { at: 0s, insufficient_capacity: { type: \"m5*.*\" } }");
    assert!(launched(&fifth).filter_map(|node| node.instance_type).all(|name| !name.as_str().starts_with("m5")));
}

#[test]
fn a_notice_that_gets_lost_costs_the_node() {
    let faults =
        "  - { at: 10m, for: 20m, lost_notices: { probability: 1 } }\n  - { at: 20m, spot_interruption: { count: 3 } }";
    let summary = Summary::from_outcome(&shop_with("40m", faults));
    assert_eq!((summary.nodes.interruptions, summary.nodes.reclaimed), (3, 3));
    assert!(amount(&summary, "free first hour") < 0.0);
}
