//! Liveness: once loads, faults and people are done, nobody waits that a node could hold, and empty nodes go.

use super::Rule;
use crate::case::Case;
use crate::report::Report;

/// How long an empty node may stay: longer than any `consolidateAfter` of the cases, with the loop's time and the drain.
const PATIENCE: f64 = 900.0;

pub fn check(case: &Case, report: &Report, faults: &mut Vec<String>) {
    if !case.must_settle() {
        return;
    }
    let quiet_since = case.minutes as f64 * 60.0 * 3.0 / 5.0;
    let mut rule = Rule::new("what waits finds a node", faults);
    for pod in report.pods.iter().filter(|pod| pod.scheduled.is_none() && pod.deletion.is_none() && !pod.daemon) {
        let waits = report.end - pod.created.max(quiet_since);
        rule.holds(waits < PATIENCE || pod.removed.is_some(), || format!("{} waits for {waits:.0} s", pod.name));
    }
    let mut rule = Rule::new("an empty node goes", faults);
    for node in report.nodes.iter().filter(|node| node.of_pool && node.deletion.is_none() && node.ready.is_some()) {
        let this_pod = report.pods.iter().filter(|pod| pod.node == node.name && !pod.daemon);
        let last =
            this_pod.map(|pod| pod.removed.unwrap_or(f64::INFINITY)).fold(node.ready.unwrap_or_default(), f64::max);
        let empty = report.end - last.max(quiet_since);
        rule.holds(empty < PATIENCE, || format!("{} has been empty for {empty:.0} s", node.name));
    }
}
