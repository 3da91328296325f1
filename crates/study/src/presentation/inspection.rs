//! What a scenario holds, as `validate` prints it.

use super::aligned_within;
use crate::inspection::{Inspection, PolicyInspection};
use crate::report::columns::printed;
use crate::report::format::{counted, instant_for_people, span};

/// Head of the table of policies.
const HEAD: [&str; 9] = [
    "policy",
    "autoscaler",
    "Kubernetes",
    "NodePools",
    "node groups",
    "workloads",
    "DaemonSets",
    "HPA, KEDA",
    "pods at start",
];

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
    let mut rows = vec![HEAD.map(str::to_owned).to_vec()];
    rows.extend(inspection.policies.iter().map(row));
    lines.extend(aligned_within(&rows, 1, width));
    let largest = inspection.policies.iter().map(|policy| policy.expected).max_by_key(|own| own.memory_bytes);
    if let Some(expected) = largest {
        lines.extend([String::new(), format!("a run is expected to have {expected}")]);
    }
    printed(&lines, width)
}

/// What there is beside the policies.
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

fn row(policy: &PolicyInspection) -> Vec<String> {
    let counts =
        [policy.node_pools, policy.node_groups, policy.workloads, policy.daemon_sets, policy.replica_autoscalers];
    let mut cells = vec![policy.name.clone(), policy.autoscaler.clone(), policy.kubernetes.clone()];
    cells.extend(counts.map(|count| count.to_string()));
    cells.push(policy.pods_at_start.to_string());
    cells
}
