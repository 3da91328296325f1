//! scenarios/node-upgrade: how long, how many additional nodes, and which pods are missing.

use super::{Run, has_rows, runs};
use nodecast::domain::{SimDuration, SimTime};
use nodecast::report::format;
use nodecast::world::record::NodeEnd;

/// From the upgrade of the control plane to the end of the last old node, as a report writes it.
fn took(run: &Run) -> String {
    let start = SimTime::ZERO + SimDuration::from_secs(30 * 60);
    let seconds = match run.summary.node_upgrades.as_slice() {
        [upgrade] => upgrade.duration_seconds,
        _ => {
            let blue = run.outcome.record.nodes.iter().filter(|node| node.end == Some(NodeEnd::ScaledIn));
            let last = blue.filter_map(|node| node.terminating).max().unwrap_or(start);
            (last - start).as_secs_f64()
        }
    };
    format::span(seconds)
}

#[test]
fn node_upgrade_rows_match_the_readme() {
    let runs: [Run; 4] = runs("node-upgrade");
    has_rows("node-upgrade", &runs, |run| {
        let churn = &run.summary.churn;
        [
            took(run),
            run.summary.nodes.max_ready.to_string(),
            run.cost(),
            churn.evictions.to_string(),
            format::span(churn.ready_time_lost_seconds),
        ]
    });
    let extra = |at: usize| runs[at].summary.node_upgrades[0].extra_nodes;
    assert_eq!((extra(0), extra(1)), (6, 0), "two per zone, and none");
    assert!(runs.iter().all(|run| run.summary.pods.pending_at_end == 0));
}
