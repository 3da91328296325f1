//! The section on churn: what is counted, and which cycles are found.

use std::collections::BTreeSet;

use nodecast::domain::node_pool::DisruptionReason;
use nodecast::domain::{Currency, HourlyRate, NodeId, PodId, SimDuration, SimTime, Symbol};
use nodecast::report::{Summary, page, plots::Plots, terminal};
use nodecast::simulation::Outcome;
use nodecast::world::World;
use nodecast::world::record::{CommandFacts, CommandId, NodeEnd, NodeFacts, PodFacts, ReplacementFacts};
use nodecast_karpenter::disruption::Obstacle;

use crate::{outputs, synthetic};

const PERIOD: i64 = 240;
const ROUNDS: i64 = 5;

fn at(seconds: i64) -> SimTime {
    SimTime::ZERO + SimDuration::from_secs(seconds)
}

/// Every four minutes a node gives way to an equal one; each is there for ten seconds before its predecessor goes, and its
/// pod is missing for half a minute.
fn round_and_round() -> Outcome {
    let mut outcome = synthetic::outcome();
    let (mut nodes, mut pods) = (Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let moved = round * PERIOD;
        let ends = |seconds: i64| (round < ROUNDS).then(|| at(moved + PERIOD + seconds));
        nodes.push(NodeFacts {
            name: format!("default-{round:05}"),
            requested: at(moved - 50),
            launched: Some(at(moved - 48)),
            running: Some(at(moved)),
            registered: Some(at(moved + 5)),
            ready: Some(at(moved + 5)),
            deletion_requested: ends(0),
            terminating: ends(10),
            terminated: ends(40),
            end: (round < ROUNDS).then_some(NodeEnd::Underutilized),
            image_bytes: 100_000_000,
            ..outcome.record.nodes[3].clone()
        });
        pods.push(PodFacts {
            name: format!("frontend-{round}"),
            created: at(moved),
            scheduled: Some(at(moved + 5)),
            ready: Some(at(moved + 30)),
            deletion_requested: ends(0),
            removed: ends(1),
            node: Some(NodeId(round as u32)),
            evicted: round < ROUNDS,
            ..outcome.record.pods.facts(PodId(0))
        });
    }
    let removed = (0..ROUNDS as u32).map(|round| {
        let started = at((i64::from(round) + 1) * PERIOD - 50);
        let made = vec![NodeId(round + 1)];
        CommandFacts { started: Some(started), succeeded: Some(started), made, ..command(round, started) }
    });
    outcome.record.commands = removed.collect();
    (outcome.record.nodes, outcome.record.pods) = (nodes, pods.into_iter().collect());
    outcome
}

fn command(node: u32, proposed: SimTime) -> CommandFacts {
    CommandFacts {
        reason: DisruptionReason::Underutilized,
        method: Some("single"),
        candidates: vec![NodeId(node)],
        replacements: vec![ReplacementFacts {
            node_pool: Symbol::new("default"),
            types: 1,
            capacity_types: vec![Symbol::new("on-demand")],
            cheapest: Some((Symbol::new("x2gd.4xlarge"), HourlyRate::parse("1.336").expect("a rate"))),
            currency: Currency::Usd,
        }],
        proposed: Some(proposed),
        rejected: None,
        started: None,
        nodes: vec![NodeId(node)],
        made: Vec::new(),
        succeeded: None,
        failed: None,
    }
}

/// An On-Demand node that is to be replaced every five minutes, which never comes to anything.
fn in_vain() -> Outcome {
    let mut outcome = synthetic::outcome();
    let failed = |round: i64| {
        let when = at(round * 300);
        CommandFacts { failed: Some((when, "a replacement is gone".into())), ..command(0, when) }
    };
    outcome.record.commands = (1..=6).map(failed).collect();
    outcome
}

#[test]
fn replacements_are_counted_with_what_they_cost() {
    let churn = Summary::from_outcome(&round_and_round()).churn;
    assert_eq!((churn.evictions, churn.evictions_per_day), (5, Some(120.0)));
    assert!((churn.ready_time_lost_seconds - 150.0).abs() < 1e-9, "{}", churn.ready_time_lost_seconds);
    let replacement = &churn.replacements[0];
    assert_eq!(
        (replacement.reason.as_str(), replacement.nodes, replacement.replaced, replacement.by_equal),
        ("underutilized", 5, 5, 5)
    );
    assert!((churn.overlap_hours - 50.0 / 3_600.0).abs() < 1e-6, "{}", churn.overlap_hours);
    assert!((churn.overlap_cost - 50.0 / 3_600.0 * 0.0816).abs() < 1e-9, "{}", churn.overlap_cost);
    assert_eq!(churn.image_bytes, 500_000_000);
    let ids: Vec<&str> = churn.decisions.iter().map(|decision| decision.id.as_str()).collect();
    assert_eq!(ids, ["d1", "d2", "d3", "d4", "d5"]);
    assert_eq!(CommandId::parse(ids[4]), Some(CommandId(4)));
}

#[test]
fn replacement_by_other_type_is_not_equal() {
    let mut outcome = round_and_round();
    outcome.record.nodes[1].instance_type = Some(Symbol::new("m7g.xlarge"));
    let replacement = &Summary::from_outcome(&outcome).churn.replacements[0];
    assert_eq!((replacement.replaced, replacement.by_equal), (5, 3));
}

#[test]
fn circulating_pods_are_reported_as_cycle() {
    let churn = Summary::from_outcome(&round_and_round()).churn;
    let [cycle] = churn.cycles.as_slice() else { panic!("{:?}", churn.cycles) };
    assert_eq!((cycle.kind.as_str(), cycle.rounds, cycle.evictions), ("pods moved", 5, 5));
    assert!((cycle.period_seconds - 240.0).abs() < 1e-9, "{}", cycle.period_seconds);
    assert_eq!(cycle.workloads, ["web/frontend"]);
    assert_eq!((cycle.nodes[0].as_str(), cycle.nodes.len()), ("default-00000", 5));
    // Pods that leave once and stay away are none.
    let mut once = round_and_round();
    once.record.pods.change(PodId(2)).node = None;
    assert_eq!(Summary::from_outcome(&once).churn.cycles, []);
}

/// Two pods that go from one large node to two small ones after so many seconds, and back to a large one after so many more, six times.
fn one_and_two((apart, together): (i64, i64)) -> Outcome {
    let mut outcome = synthetic::outcome();
    outcome.record.commands.clear();
    let (mut nodes, mut pods) = (Vec::new(), Vec::new());
    for step in 0..12 {
        let from = step / 2 * (apart + together) + step % 2 * apart;
        let until = from + if step % 2 == 0 { apart } else { together };
        let kinds: &[&str] = if step % 2 == 0 { &["m5.4xlarge"] } else { &["m5.2xlarge", "c5.2xlarge"] };
        for kind in kinds {
            nodes.push(NodeFacts {
                name: format!("default-{:05}", nodes.len()),
                instance_type: Some(Symbol::new(kind)),
                requested: at(from),
                launched: Some(at(from)),
                running: Some(at(from)),
                registered: Some(at(from + 1)),
                ready: Some(at(from + 1)),
                deletion_requested: Some(at(until)),
                terminating: Some(at(until + 5)),
                terminated: Some(at(until + 9)),
                end: Some(NodeEnd::Underutilized),
                ..outcome.record.nodes[3].clone()
            });
        }
        for pod in 0..2 {
            pods.push(PodFacts {
                name: format!("frontend-{step}-{pod}"),
                created: at(from),
                scheduled: Some(at(from + 2)),
                ready: Some(at(from + 3)),
                deletion_requested: Some(at(until)),
                removed: Some(at(until + 1)),
                node: Some(NodeId((nodes.len() - 1 - pod * (kinds.len() - 1)) as u32)),
                evicted: true,
                ..outcome.record.pods.facts(PodId(0))
            });
        }
    }
    (outcome.record.nodes, outcome.record.pods) = (nodes, pods.into_iter().collect());
    outcome
}

#[test]
fn rounds_of_two_steps_are_one_cycle() {
    // Steps of 110 and 60 seconds are no even rounds, and a step each way is one.
    let churn = Summary::from_outcome(&one_and_two((110, 60))).churn;
    let [cycle] = churn.cycles.as_slice() else { panic!("{:?}", churn.cycles) };
    assert_eq!((cycle.rounds, cycle.evictions, cycle.first_seconds), (6, 24, 110.0));
    assert!((cycle.period_seconds - 170.0).abs() < 6.0, "{}", cycle.period_seconds);
    assert_eq!(cycle.instance_types, ["c5.2xlarge", "m5.2xlarge", "m5.4xlarge"]);
    // Other types each time are another matter.
    let mut other = one_and_two((110, 60));
    for (place, node) in other.record.nodes.iter_mut().enumerate() {
        node.instance_type = Some(Symbol::new(&format!("m5.{place}xlarge")));
    }
    assert_eq!(Summary::from_outcome(&other).churn.cycles, []);
}

#[test]
fn repeatedly_failing_replacement_is_a_cycle() {
    let churn = Summary::from_outcome(&in_vain()).churn;
    let [cycle] = churn.cycles.as_slice() else { panic!("{:?}", churn.cycles) };
    assert_eq!((cycle.kind.as_str(), cycle.rounds, cycle.evictions), ("replacement failed", 6, 0));
    assert_eq!((cycle.workloads[0].as_str(), cycle.because.as_str()), ("web/frontend", "a replacement is gone"));
    assert!(
        churn
            .decisions
            .iter()
            .all(|decision| decision.outcome == "failed" && decision.replacements[0].contains("x2gd.4xlarge"))
    );
}

#[test]
fn consolidation_blockers_are_counted_per_node_and_check() {
    let mut world = World::default();
    let (one, other) = (NodeId(0), NodeId(1));
    world.note_obstacles([(one, Obstacle::PodBudget), (other, Obstacle::PodBudget), (other, Obstacle::NotCheaper)]);
    for _ in 0..2 {
        world.note_obstacles([(other, Obstacle::PodBudget)]);
    }
    // Every node is so once; that does not make it what holds them.
    world.note_obstacles((0..3).map(|node| (NodeId(node), Obstacle::Nominated)));
    let mut outcome = synthetic::outcome();
    outcome.record.obstacles = world.into_record(SimTime::ZERO).obstacles;
    let blocked = Summary::from_outcome(&outcome).churn.blocked;
    let found: Vec<_> = blocked
        .iter()
        .map(|blocked_figures| (blocked_figures.reason.as_str(), blocked_figures.nodes, blocked_figures.looks))
        .collect();
    assert_eq!(
        found,
        [("a PodDisruptionBudget", 2, 4), ("nominated for pods", 3, 3), ("no cheaper instance type", 1, 1)]
    );
    let texts: BTreeSet<&str> = Obstacle::ALL.iter().map(|kind| kind.as_str()).collect();
    assert_eq!(texts.len(), Obstacle::ALL.len());
}

#[test]
fn terminal_page_and_reference_tell_of_churn() {
    let outcome = round_and_round();
    let summary = Summary::from_outcome(&outcome);
    let table = terminal::table(&summary);
    for line in [
        "5 pods evicted (120 per day), 2m30s of Ready time lost",
        "5 underutilized; 5 with the same instance type",
        "every 4m",
    ] {
        assert!(table.contains(line), "{line}: {table}");
    }
    let page = page::render(&outcome, &summary, &Plots::from_outcome(&outcome).expect("plots"), "nodecast run");
    assert!(page.contains("<h4>Churn loops</h4>") && page.contains("<td>d5</td>"));
    outputs::all_documented(&Summary::from_outcome(&outcome));
    outputs::all_documented(&Summary::from_outcome(&in_vain()));
    let quiet = Summary::from_outcome(&synthetic::empty());
    assert_eq!((quiet.churn.evictions_per_day, quiet.churn.cycles.len()), (None, 0));
    assert!(!terminal::table(&quiet).contains("churn"));
}
