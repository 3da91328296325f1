//! What a scenario holds, as `validate` prints it.

use crate::inspection::Inspection;
use crate::report::columns::printed;
use crate::report::format::{counted, instant_for_people, span};
use crate::report::table::Rows;

/// The scenario in a few lines, then a line for each policy, with columns below one another where lines have no more than `width`
/// characters.
pub fn table(inspection: &Inspection, width: Option<usize>) -> String {
    let zones = counted(inspection.zones.len() as u64, "zone", "zones");
    let mut lines = vec![
        format!(
            "{}: {} from {} in {} ({zones})",
            inspection.name,
            span(inspection.duration_seconds),
            instant_for_people(&inspection.start),
            inspection.region
        ),
        holdings(inspection),
        String::new(),
    ];
    let policies = Rows::new(&inspection.policies)
        .text("policy", |policy| &policy.name)
        .number("autoscaler", |policy| &policy.autoscaler)
        .number("Kubernetes", |policy| &policy.kubernetes)
        .number("NodePools", |policy| policy.node_pools)
        .number("node groups", |policy| policy.node_groups)
        .number("workloads", |policy| policy.workloads)
        .number("DaemonSets", |policy| policy.daemon_sets)
        .number("HPA, KEDA", |policy| policy.replica_autoscalers)
        .number("pods at start", |policy| u64::from(policy.pods_at_start))
        .gap(3);
    lines.extend(policies.table().lines(width));
    let largest = inspection.policies.iter().map(|policy| policy.expected).max_by_key(|expected| expected.memory_bytes);
    if let Some(expected) = largest {
        lines.extend([String::new(), format!("estimated run size: {expected}")]);
    }
    printed(&lines, width)
}

/// Contents other than the policies.
fn holdings(inspection: &Inspection) -> String {
    let mut parts = Vec::new();
    for (count, one, many) in [
        (inspection.inputs.len(), "file", "files"),
        (inspection.loads, "load", "loads"),
        (inspection.queues, "queue", "queues"),
        (inspection.timeline_steps, "timeline step", "timeline steps"),
        (inspection.faults, "fault", "faults"),
    ] {
        if count > 0 {
            parts.push(counted(count as u64, one, many));
        }
    }
    let replications = counted(u64::from(inspection.replications), "replication", "replications");
    format!("{}; seed {}, {replications} in a comparison", parts.join(", "), inspection.seed)
}
