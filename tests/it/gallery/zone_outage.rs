//! `scenarios/zone-outage`: what its README says.

use std::sync::LazyLock;

use nodecast::domain::{SimDuration, SimTime, Symbol};
use nodecast::report::format;
use nodecast::world::record::{EventKind, NodeOrigin};

use super::{Run, has_rows, runs};

static RUNS: LazyLock<[Run; 3]> = LazyLock::new(|| runs("zone-outage"));

fn minutes(minutes: i64) -> SimTime {
    SimTime::ZERO + SimDuration::from_secs(minutes * 60)
}

/// Changes of the service's replicas by the autoscaler from the third hour to shortly before the fourth.
fn rescales(run: &Run) -> usize {
    let within = |at: SimTime| at >= minutes(180) && at < minutes(239);
    run.outcome.record.events.iter().filter(|event| event.kind == EventKind::Rescaled && within(event.at)).count()
}

#[test]
fn zone_outage_cost_depends_on_spread() {
    let all @ [possible, always, suffice] = &*RUNS;
    let overloaded = |run: &Run| run.summary.requests[0].overloaded_seconds;
    has_rows("zone-outage", all, |run| {
        let wait = run.longest_wait(&["shop/frontend"], 10);
        [run.cost(), format::whole(run.lost()), format::span(overloaded(run)), format::span(wait)]
    });
    assert!((360.0..480.0).contains(&overloaded(possible)) && overloaded(always) > 3_500.0);
    assert!(suffice.lost() < 1.0);
    let dearer = suffice.summary.cost.total / possible.summary.cost.total;
    assert!((1.25..1.45).contains(&dearer), "{dearer}");
    // Nobody notices for 50 s, and for five minutes more the pods of the dark zone count as running.
    for run in all {
        let events = &run.outcome.record.events;
        let first = |kind| events.iter().find(|event| event.kind == kind && event.at >= minutes(180)).unwrap().at;
        assert_eq!(first(EventKind::NodeUnreachable), minutes(180) + SimDuration::from_secs(50));
        let evicted = events.iter().find(|event| event.message.contains("unreachable for too long")).unwrap();
        assert_eq!(evicted.at, minutes(185) + SimDuration::from_secs(50));
        assert!(run.summary.nodes.failed_launches > 0);
    }
    assert_eq!(rescales(always), 0, "replicas without a reading count as idle");
    assert!(always.summary.nodes.failed_launches > 5 * possible.summary.nodes.failed_launches);
}

#[test]
fn managed_group_replaces_dark_node_elsewhere() {
    let [run, _, _] = &*RUNS;
    let dark = Symbol::new("eu-west-1b");
    let lost = |origin: fn(&NodeOrigin) -> bool| {
        let there = run.outcome.record.nodes.iter().filter(move |node| origin(&node.origin) && node.zone == Some(dark));
        let during = |at: Option<SimTime>| at.is_some_and(|at| at >= minutes(180) && at < minutes(239));
        there.filter(move |node| during(node.terminating)).count()
    };
    assert_eq!(lost(|origin| matches!(origin, NodeOrigin::NodeGroup(_))), 1);
    assert_eq!(lost(|origin| matches!(origin, NodeOrigin::NodePool(_))), 0);
}
