//! Interruptions, capacity errors and throttling in a running simulation, and what they come to in the summary.

use std::path::Path;
use std::sync::LazyLock;

use nodecast::catalog::Catalog;
use nodecast::cloud::BillItem;
use nodecast::domain::{SimDuration, SimTime, Symbol};
use nodecast::report::Summary;
use nodecast::simulation::{self, Outcome};
use nodecast::world::record::{EventKind, NodeEnd};

fn storm_directory() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/spot-storm")
}

fn run_file(path: &Path, policy: Option<&str>) -> Outcome {
    let (scenario, _) = nodecast::scenario::load(path).unwrap();
    let policy = scenario.for_policy(policy).unwrap();
    simulation::run(&scenario, policy, Catalog::embedded().unwrap(), scenario.seed, &mut |_| {}).unwrap()
}

fn run_storm(policy: &str) -> (Outcome, Summary) {
    let outcome = run_file(&storm_directory().join("scenario.yaml"), Some(policy));
    let summary = Summary::from_outcome(&outcome);
    (outcome, summary)
}

/// The storm under each policy, simulated once.
pub(crate) fn storm(policy: &str) -> &'static (Outcome, Summary) {
    static FLEXIBLE: LazyLock<(Outcome, Summary)> = LazyLock::new(|| run_storm("flexible"));
    static NARROW: LazyLock<(Outcome, Summary)> = LazyLock::new(|| run_storm("narrow"));
    static WITHOUT_QUEUE: LazyLock<(Outcome, Summary)> = LazyLock::new(|| run_storm("without-queue"));
    match policy {
        "flexible" => &FLEXIBLE,
        "narrow" => &NARROW,
        _ => &WITHOUT_QUEUE,
    }
}

/// The cluster of the storm without the storm, under other settings. Nothing goes wrong by itself.
pub(crate) fn shop(duration: &str, karpenter: &str, settings: &str) -> Outcome {
    let directory = tempfile::tempdir().unwrap();
    let manifest = |name: &str| storm_directory().join(name).display().to_string();
    let text = format!(
        "name: shop\nregion: us-east-1\nduration: {duration}\nversions: {{ karpenter: {karpenter} }}\n\
         cluster: {{ zones: [us-east-1a, us-east-1b, us-east-1c] }}\nmanifests: [{}, {}, {}]\n{settings}\n",
        manifest("cluster.yaml"),
        manifest("nodepool.yaml"),
        manifest("shop.yaml")
    );
    let path = directory.path().join("scenario.yaml");
    std::fs::write(&path, text).unwrap();
    run_file(&path, None)
}

pub(crate) fn amount(summary: &Summary, item: &str) -> f64 {
    summary.cost.by_item.iter().find(|part| part.name == item).map_or(0.0, |part| part.amount)
}

pub(crate) fn of_kind(outcome: &Outcome, kind: EventKind) -> usize {
    outcome.record.events.iter().filter(|event| event.kind == kind).count()
}

#[test]
fn flexible_choice_survives_spot_storm() {
    let (_, summary) = storm("flexible");
    assert_eq!((summary.nodes.interruptions, summary.nodes.reclaimed), (3, 0));
    assert_eq!((summary.nodes.failed_launches, summary.nodes.on_demand_fallbacks), (0, 0));
    assert_eq!(summary.pods.pending_at_end, 0);
    assert!(summary.pods.wait_for_node.unwrap().max_seconds < 120.0);
    assert!(amount(summary, "instance") > 0.0 && amount(summary, "root volume") > 0.0);
    assert!(amount(summary, "free first hour").abs() < 1e-9, "what Karpenter ends is charged");
}

#[test]
fn narrow_choice_falls_back_to_on_demand() {
    let (outcome, summary) = storm("narrow");
    assert_eq!(summary.nodes.interruptions, 3);
    assert!(summary.nodes.failed_launches > 0);
    assert!(summary.nodes.on_demand_fallbacks > 0);
    assert_eq!(summary.pods.pending_at_end, 0);
    let on_demand = outcome.record.nodes.iter().filter(|node| {
        node.origin.name() == Symbol::new("default") && node.capacity_type == Some(Symbol::new("on-demand"))
    });
    assert_eq!(on_demand.count() as u64, summary.nodes.on_demand_fallbacks);
}

#[test]
fn missing_queue_loses_nodes_in_storm() {
    let (outcome, summary) = storm("without-queue");
    assert_eq!((summary.nodes.interruptions, summary.nodes.reclaimed), (3, 3));
    assert!(amount(summary, "free first hour") < 0.0);
    for node in outcome.record.nodes.iter().filter(|node| node.end == Some(NodeEnd::Interrupted)) {
        assert_eq!(node.deletion_requested, None, "nobody saw it coming");
    }
    assert_eq!(summary.pods.pending_at_end, 0, "every pod has been replaced");
}

#[test]
fn policies_meet_the_same_market() {
    let (flexible, _) = storm("flexible");
    let (without_queue, _) = storm("without-queue");
    let hit = |outcome: &Outcome| -> Vec<_> {
        let notices = outcome.record.events.iter().filter(|event| event.kind == EventKind::InterruptionNotice);
        notices.map(|event| (event.at, event.node)).collect()
    };
    assert_eq!(hit(flexible), hit(without_queue));
}

#[test]
fn each_spot_notice_ends_within_two_minutes() {
    let settings = "ec2: { spot: { interruptions: { exposure: 24h, stress: 100 } } }";
    let outcome = shop("2h", "v1.13", settings);
    assert!(of_kind(&outcome, EventKind::InterruptionNotice) > 5);
    assert!(of_kind(&outcome, EventKind::RebalanceRecommended) > 0);
    for event in outcome.record.events.iter().filter(|event| event.kind == EventKind::InterruptionNotice) {
        let node = &outcome.record.nodes[event.node.unwrap().index()];
        let due = event.at + SimDuration::from_secs(120);
        if due.saturating_since(SimTime::ZERO) <= outcome.about.duration {
            assert!(node.terminating.is_some_and(|ended| ended <= due), "{}", node.name);
        }
    }
}

#[test]
fn old_release_loses_interrupted_nodes() {
    let settings = "faults:\n  - { at: 30m, spot_interruption: { fraction: 20% } }";
    let outcome = shop("1h", "v0.16.0", settings);
    let notices = of_kind(&outcome, EventKind::InterruptionNotice);
    assert!(notices > 0);
    assert_eq!(of_kind(&outcome, EventKind::InstanceReclaimed), notices);
}

#[test]
fn a_throttled_account_launches_later_but_launches() {
    let throttle = "ec2: { spot: { interruptions: none } }\n\
                    faults:\n  - { at: 0s, for: 30m, api_throttle: { size: 2, per_second: 1 } }";
    let outcome = shop("30m", "v1.13", throttle);
    assert!(of_kind(&outcome, EventKind::CallThrottled) > 0);
    let summary = Summary::from_outcome(&outcome);
    assert_eq!((summary.pods.pending_at_end, summary.nodes.failed_launches), (0, 0));
    let calm = Summary::from_outcome(&shop("30m", "v1.13", "ec2: { spot: { interruptions: none } }"));
    let longest = |summary: &Summary| summary.pods.wait_for_node.unwrap().max_seconds;
    assert!(longest(&summary) > longest(&calm));
}

#[test]
fn slow_boots_take_as_many_times_as_long() {
    let median = |settings: &str| {
        Summary::from_outcome(&shop("20m", "v1.13", settings)).nodes.launch_to_ready.unwrap().p50_seconds
    };
    let calm = median("ec2: { spot: { interruptions: none } }");
    let slow = median("ec2: { spot: { interruptions: none } }\nfaults:\n  - { at: 0s, slow_boot: { factor: 3 } }");
    assert!((slow / calm - 3.0).abs() < 1e-3, "{slow} against {calm}");
}

#[test]
fn zone_outage_prevents_launches_in_zone() {
    let settings = "ec2: { spot: { interruptions: none } }\nfaults:\n  - { at: 0s, zone_outage: { zone: us-east-1b } }";
    let outcome = shop("20m", "v1.13", settings);
    let launched = outcome.record.nodes.iter().filter(|node| node.origin.name() == Symbol::new("default"));
    assert!(launched.clone().count() > 10);
    assert!(launched.into_iter().all(|node| node.zone != Some(Symbol::new("us-east-1b"))));
}

#[test]
fn recorded_prices_are_billed_as_recorded() {
    let directory = tempfile::tempdir().unwrap();
    let prices = directory.path().join("prices.csv");
    let mut text = "instance_type,zone,time,price\n".to_owned();
    for zone in ["a", "b", "c"] {
        for (hour, price) in [(0, "0.02"), (1, "0.03")] {
            text.push_str(&format!("m5.xlarge,us-east-1{zone},2026-01-01T0{hour}:00:00Z,{price}\n"));
        }
    }
    std::fs::write(&prices, text).unwrap();
    let spot = format!("{{ prices: replay, file: {}, interruptions: none }}", prices.display());
    let outcome = shop("2h", "v1.13", &format!("ec2: {{ spot: {spot} }}"));
    let lines: Vec<_> = outcome
        .bill
        .lines
        .iter()
        .filter(|line| line.item == BillItem::Instance && line.instance_type == Some(Symbol::new("m5.xlarge")))
        .collect();
    assert!(!lines.is_empty());
    let hour = SimTime::ZERO + SimDuration::from_secs(3_600);
    for line in lines {
        let expected = if line.from < hour { "0.020000000" } else { "0.030000000" };
        assert_eq!(line.rate.to_string(), expected);
        assert!(line.to <= hour || line.from >= hour, "a line has one price");
    }
}

#[test]
fn report_lists_market_assumptions() {
    let (_, summary) = storm("flexible");
    let stated = summary.about.assumptions.join("\n");
    for part in ["seeded process", "fixed number of instances", "No Spot interruptions, except those in `faults`"] {
        assert!(stated.contains(part), "{stated}");
    }
}
