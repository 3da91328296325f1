//! Capacity reservations, subnets, recorded availability and network lines in a running simulation.

use std::path::Path;

use nodecast::catalog::Catalog;
use nodecast::cloud::BillItem;
use nodecast::domain::{Money, Symbol};
use nodecast::report::Summary;
use nodecast::simulation::{self, Outcome};
use nodecast::world::record::{EventKind, NodeFacts};

use crate::spot_market::{of_kind, shop};

/// Six pods of three CPUs: one to an m5.xlarge.
const WORK: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: { name: work, namespace: default }
spec:
  replicas: 6
  selector: { matchLabels: { app: work } }
  template:
    metadata: { labels: { app: work } }
    spec:
      containers:
        - { name: work, image: example.com/work:1, resources: { requests: { cpu: \"3\", memory: 1Gi } } }
";

/// A pool of m5.xlarge in one zone, whose class selects by `terms`.
fn pool(capacity_types: &str, terms: &str) -> String {
    format!(
        "
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {{ name: default }}
spec:
  template:
    spec:
      nodeClassRef: {{ group: karpenter.k8s.aws, kind: EC2NodeClass, name: default }}
      requirements:
        - {{ key: karpenter.sh/capacity-type, operator: In, values: [{capacity_types}] }}
        - {{ key: node.kubernetes.io/instance-type, operator: In, values: [m5.xlarge] }}
  disruption: {{ consolidationPolicy: WhenEmpty, consolidateAfter: 30s }}
---
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {{ name: default }}
spec:
  amiSelectorTerms: [{{ alias: al2023@latest }}]
  role: node
  capacityReservationSelectorTerms: {terms}
"
    )
}

fn run(pool: &str, settings: &str) -> Outcome {
    run_for("1h", pool, settings)
}

fn run_for(duration: &str, pool: &str, settings: &str) -> Outcome {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
    write("work.yaml", WORK);
    write("pool.yaml", pool);
    write(
        "scenario.yaml",
        &format!(
            "name: reserved\nregion: us-east-1\nduration: {duration}\nversions: {{ karpenter: v1.13 }}\n\
             cluster: {{ zones: [us-east-1a] }}\nmanifests: [pool.yaml, work.yaml]\n{settings}\n"
        ),
    );
    run_file(&directory.path().join("scenario.yaml"))
}

/// Half an hour of these objects under Karpenter.
pub(crate) fn run_of(objects: &str) -> Outcome {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("objects.yaml"), objects).unwrap();
    let scenario = "name: own\nregion: us-east-1\nduration: 30m\nversions: { karpenter: v1.13 }\n\
                    cluster: { zones: [us-east-1a] }\nmanifests: [objects.yaml]\n";
    std::fs::write(directory.path().join("scenario.yaml"), scenario).unwrap();
    run_file(&directory.path().join("scenario.yaml"))
}

pub(crate) fn run_file(path: &Path) -> Outcome {
    let (scenario, _) = nodecast::scenario::load(path).unwrap();
    let policy = scenario.for_policy(None).unwrap();
    simulation::run(&scenario, policy, Catalog::embedded().unwrap(), scenario.seed, &mut |_| {}).unwrap()
}

fn of_item(outcome: &Outcome, item: BillItem) -> f64 {
    outcome.bill.lines.iter().filter(|line| line.item == item).map(|line| line.amount).sum::<Money>().as_f64()
}

fn launched<'a>(outcome: &'a Outcome, capacity_type: &'a str) -> impl Iterator<Item = &'a NodeFacts> {
    let wanted = Some(Symbol::new(capacity_type));
    outcome.record.nodes.iter().filter(move |node| node.launched.is_some() && node.capacity_type == wanted)
}

const QUIET: &str = "failures: none, spot: { interruptions: none }";

#[test]
fn deselected_reservation_makes_nodes_drift() {
    let reserved = "capacity_reservations: [{ id: cr-web, type: m5.xlarge, zone: us-east-1a, count: 6, match: targeted, tags: { team: web } }]";
    let (before, after) =
        (pool("reserved, on-demand", "[{ tags: { team: web } }]"), pool("", "[{ tags: { team: db } }]"));
    let class = after.split("---").last().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
    write("objects.yaml", &format!("{before}---{WORK}"));
    write("later.yaml", class);
    write(
        "scenario.yaml",
        &format!(
            "name: own\nregion: us-east-1\nduration: 2h\nversions: {{ karpenter: v1.13 }}\ncluster: {{ zones: [us-east-1a] }}\n\
             manifests: [objects.yaml]\nec2: {{ {QUIET}, {reserved} }}\ntimeline: [{{ at: 20m, manifests: [later.yaml] }}]\n"
        ),
    );
    let outcome = run_file(&directory.path().join("scenario.yaml"));
    let found = outcome.record.events.iter().filter(|event| event.kind == EventKind::NodeDrifted);
    let reasons: Vec<&str> = found.map(|event| event.message).collect();
    assert_eq!(reasons, ["CapacityReservationDrift"; 6]);
    assert_eq!((launched(&outcome, "reserved").count(), launched(&outcome, "on-demand").count()), (6, 6));
}

/// The minutes in which nodes were found drifted, and by what.
fn drifted(outcome: &Outcome) -> Vec<(i64, &str)> {
    let found = outcome.record.events.iter().filter(|event| event.kind == EventKind::NodeDrifted);
    found.map(|event| (event.at.as_micros() / 60_000_000, event.message)).collect()
}

#[test]
fn ended_reservation_makes_nodes_on_demand() {
    let until = |more: &str| {
        format!(
            "ec2: {{ {QUIET}, capacity_reservations: [{{ id: cr-web, type: m5.xlarge, zone: us-east-1a, count: 6, match: targeted, tags: {{ team: web }}{more} }}] }}"
        )
    };
    let only = pool("reserved", "[{ tags: { team: web } }]");
    assert_eq!(drifted(&run(&only, &until(", until: 30m"))), [(30, "RequirementsDrifted"); 6]);
    assert!(drifted(&run(&only, &until(""))).is_empty());
    let either = run(&pool("reserved, on-demand", "[{ tags: { team: web } }]"), &until(", until: 30m"));
    assert!(drifted(&either).is_empty());
    // By the price of On-Demand, and not by that of a reservation, Spot is cheaper.
    let consolidates = |settings: &str| {
        let pool = pool("reserved, spot, on-demand", "[{ tags: { team: web } }]")
            .replace("WhenEmpty,", "WhenEmptyOrUnderutilized, budgets: [{ nodes: \"100%\" }],");
        let outcome = run(&pool, settings);
        assert_eq!(launched(&outcome, "reserved").count(), 6);
        launched(&outcome, "spot").count()
    };
    assert_eq!((consolidates(&until("")), consolidates(&until(", until: 30m"))), (0, 6));
}

#[test]
fn karpenter_fills_reservation_before_on_demand() {
    let reserved = "capacity_reservations: [{ id: cr-web, type: m5.xlarge, zone: us-east-1a, count: 4, match: targeted, tags: { team: web } }]";
    let pool = pool("reserved, on-demand", "[{ tags: { team: web } }]");
    let outcome = run(&pool, &format!("ec2: {{ {QUIET}, {reserved} }}"));
    assert_eq!((launched(&outcome, "reserved").count(), launched(&outcome, "on-demand").count()), (4, 2));
    assert_eq!(Summary::from_outcome(&outcome).pods.pending_at_end, 0);
    // m5.xlarge costs 0.192: the four are paid for by the reservation, the other two by themselves.
    let (used, unused) =
        (of_item(&outcome, BillItem::CapacityReservation), of_item(&outcome, BillItem::UnusedCapacityReservation));
    assert!((used + unused - 4.0 * 0.192).abs() < 1e-6, "{used} and {unused}");
    assert!(unused > 0.0 && unused < 0.05, "unused until the nodes run: {unused}");
    let instances = of_item(&outcome, BillItem::Instance);
    assert!((0.36..0.384).contains(&instances), "{instances}");
    let summary = Summary::from_outcome(&outcome);
    assert!(summary.cost.by_capacity_type.iter().any(|part| part.name == "reserved"));
}

#[test]
fn freed_reservation_capacity_is_reused() {
    let reserved = "capacity_reservations: [{ id: cr-web, type: m5.xlarge, zone: us-east-1a, count: 2 }]";
    let steps = "timeline:\n  - { at: 5m, scale: { workload: work, replicas: 0 } }\n  - { at: 12m, scale: { workload: work, replicas: 3 } }";
    let pool = pool("reserved, on-demand", "[{ id: cr-web }]");
    let outcome = run_for("20m", &pool, &format!("ec2: {{ {QUIET}, {reserved} }}\n{steps}"));
    assert_eq!((launched(&outcome, "reserved").count(), launched(&outcome, "on-demand").count()), (4, 5));
}

#[test]
fn unselected_reservation_is_paid_while_empty() {
    let reserved = "capacity_reservations: [{ type: m5.xlarge, zone: us-east-1a, count: 4 }]";
    let pool = pool("reserved, on-demand", "[{ id: cr-other }]");
    let outcome = run(&pool, &format!("ec2: {{ {QUIET}, {reserved} }}"));
    assert_eq!((launched(&outcome, "reserved").count(), launched(&outcome, "on-demand").count()), (0, 6));
    assert!((of_item(&outcome, BillItem::UnusedCapacityReservation) - 0.768).abs() < 1e-6);
}

#[test]
fn class_selecting_missing_reservation_is_warned_about() {
    let outcome = run_for("6m", &pool("reserved, on-demand", "[{ id: cr-web }]"), &format!("ec2: {{ {QUIET} }}"));
    assert!(outcome.warnings.iter().any(|warning| warning.contains("selects capacity reservations")));
    assert_eq!(launched(&outcome, "on-demand").count(), 6);
}

#[test]
fn exhausted_subnet_rejects_launches_unless_larger_one_exists() {
    let small = "network: { subnets: [{ zone: us-east-1a, cidr: 10.0.0.0/28, in_use: 8 }] }";
    let pool = pool("on-demand", "[]");
    let outcome = run_for("6m", &pool, &format!("ec2: {{ {QUIET}, {small} }}"));
    // 16 addresses, 5 of AWS, 8 of others: three nodes, whose pods then need more than there are.
    assert_eq!(launched(&outcome, "on-demand").count(), 3);
    let refusals: Vec<_> = outcome.record.events.iter().filter(|event| event.kind == EventKind::LaunchFailed).collect();
    assert!(refusals.iter().any(|event| event.message.contains("InsufficientFreeAddressesInSubnet")));
    let large = "network: { subnets: [{ zone: us-east-1a, cidr: 10.0.0.0/28, in_use: 8 }, { zone: us-east-1a, cidr: 10.0.1.0/24 }] }";
    let outcome = run_for("6m", &pool, &format!("ec2: {{ {QUIET}, {large} }}"));
    assert_eq!(launched(&outcome, "on-demand").count(), 6);
    assert_eq!(of_kind(&outcome, EventKind::LaunchFailed), 0);
}

#[test]
fn availability_drop_reclaims_instances() {
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("trace.csv");
    let rows = "instance_type,zone,offset_s,available\nm5.xlarge,us-east-1a,0,4\nm5.xlarge,us-east-1a,300,0\n";
    std::fs::write(&trace, rows).unwrap();
    let spot = format!("spot: {{ availability: {} }}", trace.display());
    let outcome = run_for("10m", &pool("spot", "[]"), &format!("ec2: {{ failures: none, {spot} }}"));
    assert_eq!(launched(&outcome, "spot").count(), 4, "never more than were recorded");
    // Of those that go together, one in twelve gets its notice late.
    let notices = of_kind(&outcome, EventKind::InterruptionNotice);
    assert!((3..=4).contains(&notices), "{notices} of 4 have their notice within five minutes");
    let refused = outcome.record.events.iter().filter(|event| event.kind == EventKind::LaunchFailed);
    assert!(refused.into_iter().any(|event| event.message.contains("InsufficientInstanceCapacity")));
    assert!(Summary::from_outcome(&outcome).pods.pending_at_end >= 4);
}

#[test]
fn image_pulls_and_load_balancers_are_billed() {
    let billing =
        "billing: { load_balancers: { count: 1, capacity_units: 2 }, nat_gateways: { count: 1 }, cross_zone: {} }";
    let settings = format!("ec2: {{ failures: none, spot: {{ interruptions: none }}, {billing} }}");
    let outcome = shop("1h", "v1.13", &settings);
    assert!((of_item(&outcome, BillItem::LoadBalancer) - 0.0225).abs() < 1e-9);
    assert!((of_item(&outcome, BillItem::LoadBalancerCapacity) - 0.012).abs() < 1e-9);
    assert!((of_item(&outcome, BillItem::NatGateway) - 0.045).abs() < 1e-9);
    let pulls = |item| outcome.bill.lines.iter().filter(move |line| line.item == item && line.node.is_some());
    assert!(pulls(BillItem::NatTransfer).count() > 10);
    for line in pulls(BillItem::CrossZoneTransfer) {
        assert_ne!(line.zone, Some(Symbol::new("us-east-1a")), "the zone with the gateway");
    }
    assert!(pulls(BillItem::CrossZoneTransfer).count() > 5);
    let plain = shop("1h", "v1.13", "ec2: { failures: none, spot: { interruptions: none } }");
    assert!(of_item(&plain, BillItem::NatTransfer).abs() < 1e-12);
}

#[test]
fn a_plan_may_discount_families_differently() {
    let plans = "billing: { savings_plans: [{ commitment: 0.5, discount: 20%, family_discounts: { m5: 50% } }] }";
    let outcome = run(&pool("on-demand", "[]"), &format!("ec2: {{ {QUIET}, {plans} }}"));
    // Half of 0.192 for each of six is 0.576 an hour: five of the six are covered and a part of the last.
    let covered = -of_item(&outcome, BillItem::Covered);
    assert!((0.9..=1.0).contains(&covered), "{covered}");
}

#[test]
fn capacity_block_is_drained_before_its_end() {
    let block = "capacity_reservations: [{ id: cb-1, type: m5.xlarge, zone: us-east-1a, count: 4, reservation_type: capacity-block, per_hour: 0.05, until: 3h }]";
    let pool = pool("reserved, on-demand", "[{ id: cb-1 }]");
    let outcome = run_for("4h", &pool, &format!("ec2: {{ {QUIET}, {block} }}"));
    let minutes = |at: nodecast::domain::SimTime| (at - nodecast::domain::SimTime::ZERO).as_secs() / 60;
    let left: Vec<i64> =
        launched(&outcome, "reserved").filter_map(|node| node.deletion_requested).map(minutes).collect();
    assert_eq!(left, [140; 4], "forty minutes before the end");
    assert!(launched(&outcome, "reserved").all(|node| node.terminating.is_some_and(|at| minutes(at) < 150)));
    assert_eq!(launched(&outcome, "on-demand").count(), 6, "nothing is launched into a block that ends");
    assert_eq!(Summary::from_outcome(&outcome).pods.pending_at_end, 0);
    let (used, unused) =
        (of_item(&outcome, BillItem::CapacityReservation), of_item(&outcome, BillItem::UnusedCapacityReservation));
    assert!((used + unused - 3.0 * 4.0 * 0.05).abs() < 1e-6, "{used} and {unused}");
    assert!(used > 2.3 * 4.0 * 0.05 - 0.05 && unused > 0.1, "{used} and {unused}");
}

#[test]
fn nobody_leaves_an_ordinary_reservation_before_it_ends() {
    let reserved = "capacity_reservations: [{ id: cr-1, type: m5.xlarge, zone: us-east-1a, count: 4, until: 3h }]";
    let outcome =
        run_for("4h", &pool("reserved, on-demand", "[{ id: cr-1 }]"), &format!("ec2: {{ {QUIET}, {reserved} }}"));
    assert_eq!(launched(&outcome, "reserved").count(), 4);
    let end = nodecast::domain::SimTime::ZERO + nodecast::domain::SimDuration::from_secs(3 * 3_600);
    assert!(launched(&outcome, "reserved").all(|node| node.deletion_requested.is_none_or(|at| at >= end)));
}

#[test]
fn capacity_block_instances_end_thirty_minutes_early() {
    let block = "capacity_reservations: [{ id: cb-1, type: m5.xlarge, zone: us-east-1a, count: 6, reservation_type: capacity-block, until: 2h }]";
    let stays = "---\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: { name: work }\nspec: { maxUnavailable: 0, selector: { matchLabels: { app: work } } }\n";
    let pool = pool("reserved, on-demand", "[{ id: cb-1 }]") + stays;
    let outcome = run_for("3h", &pool, &format!("ec2: {{ {QUIET}, {block} }}"));
    let gone: Vec<i64> = launched(&outcome, "reserved")
        .filter_map(|node| node.terminating)
        .map(|at| (at - nodecast::domain::SimTime::ZERO).as_secs() / 60)
        .collect();
    assert_eq!(gone, [90; 6]);
}

#[test]
fn node_class_sets_public_addresses() {
    let of = |addresses: &str, billing: &str| {
        let class = pool("on-demand", &format!("[]\n  {addresses}"));
        let outcome = run(&class, &format!("ec2: {{ {QUIET}, {billing} }}"));
        let lines = outcome.bill.lines.iter().filter(|line| line.item == BillItem::PublicIpv4);
        lines.map(|line| line.rate.to_string()).collect::<Vec<_>>()
    };
    let public = of("associatePublicIPAddress: true", "billing: {}");
    assert_eq!(public, vec!["0.005000000"; 6], "AWS's price for each of six nodes");
    assert_eq!(of("associatePublicIPAddress: true", "billing: { public_ipv4: 0.004 }"), vec!["0.004000000"; 6]);
    assert_eq!(of("associatePublicIPAddress: false", "billing: { public_ipv4: 0.004 }").len(), 0);
    let subnets = "network: { subnets: [{ zone: us-east-1a, cidr: 10.0.0.0/20, public: true }] }";
    assert_eq!(of("associatePublicIPAddress: false", subnets).len(), 0);
    assert_eq!(of("tags: {}", subnets).len(), 6);
    assert_eq!(of("tags: {}", "billing: {}").len(), 0);
}
