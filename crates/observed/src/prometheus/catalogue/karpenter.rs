//! What node autoscalers count, under the names of their releases.
//!
//! Source: karpenter `website/content/en/*/reference/metrics.md` and `pkg/` at v0.32, v0.37, v1.0, v1.1, v1.9, v1.13;
//! awslabs/operatorpkg `status/controller.go` 2026-02 (of a transition `status` is the one that was left); cluster-autoscaler
//! 1.36 `metrics/metrics.go`.

use super::{Asking, HOUR};

/// A quantity whose series has other names in other releases: the newest first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Alternatives {
    /// The quantity, which is the role of the newest name.
    pub role: &'static str,
    /// Roles of older names, in order of age.
    pub older: &'static [&'static str],
}

/// Counters that are read under several names. An upgrade within the window has both.
pub const ALTERNATIVES: [Alternatives; 7] = [
    Alternatives { role: "claims_created", older: &["claims_created_v0_33", "claims_created_machines"] },
    Alternatives { role: "claims_terminated", older: &["claims_terminated_v0_33", "claims_terminated_machines"] },
    Alternatives { role: "claims_disrupted", older: &["claims_disrupted_v0_33"] },
    Alternatives { role: "decisions", older: &["decisions_v0_32"] },
    Alternatives { role: "interruptions", older: &["interruptions_v0_22"] },
    Alternatives { role: "evictions", older: &["evictions_v1_1"] },
    Alternatives { role: "spot_prices", older: &["spot_prices_v0_29"] },
];

/// Counters: role, metric, labels that are kept. `instance` keeps the replicas of a controller apart: each counts from nothing
/// once it leads, so their increases add up and their values do not.
const COUNTERS: [(&str, &str, &str); 15] = [
    ("claims_created", "karpenter_nodeclaims_created_total", "nodepool, reason"),
    ("claims_created_v0_33", "karpenter_nodeclaims_created", "nodepool, reason"),
    ("claims_created_machines", "karpenter_machines_created", "provisioner, reason"),
    ("claims_terminated", "karpenter_nodeclaims_terminated_total", "nodepool, capacity_type"),
    ("claims_terminated_v0_33", "karpenter_nodeclaims_terminated", "nodepool, reason"),
    ("claims_terminated_machines", "karpenter_machines_terminated", "provisioner, reason"),
    ("claims_disrupted", "karpenter_nodeclaims_disrupted_total", "nodepool, capacity_type, reason"),
    ("claims_disrupted_v0_33", "karpenter_nodeclaims_disrupted", "nodepool, type"),
    ("decisions", "karpenter_voluntary_disruption_decisions_total", "decision, reason, consolidation_type"),
    ("decisions_v0_32", "karpenter_disruption_actions_performed_total", "action, method"),
    ("interruptions", "karpenter_interruption_received_messages_total", "message_type"),
    ("interruptions_v0_22", "karpenter_interruption_received_messages", "message_type"),
    ("evictions", "karpenter_pods_eviction_requests_total", "code"),
    ("evictions_v1_1", "karpenter_nodes_eviction_requests_total", "code"),
    ("ca_scaled_up", "cluster_autoscaler_scaled_up_nodes_total", ""),
];

/// Counters of the Cluster Autoscaler with a reason.
const OF_CLUSTER_AUTOSCALER: [(&str, &str); 2] = [
    ("ca_scaled_down", "cluster_autoscaler_scaled_down_nodes_total"),
    ("ca_failed_scale_ups", "cluster_autoscaler_failed_scale_ups_total"),
];

pub(super) fn queries(list: &mut Asking<'_>) {
    let with_reason = OF_CLUSTER_AUTOSCALER.iter().map(|(role, metric)| (*role, *metric, "reason"));
    for (role, metric, by) in COUNTERS.into_iter().chain(with_reason) {
        let selector = list.selector(metric, &[]);
        let once = list.once(selector);
        let by = if by.is_empty() { "instance".to_owned() } else { format!("{by}, instance") };
        list.curve(role, format!("sum by ({by}) ({once})"), 300);
    }
    // Whether Karpenter was scraped at all: the first value of a counter is news if it was, and its past if it was not.
    let built = list.selector("karpenter_build_info", &[]);
    list.curve("karpenter_up", format!("count({built})"), 300);
    stages(list);
    for (role, metric) in [
        ("spot_prices", "karpenter_cloudprovider_instance_type_offering_price_estimate"),
        ("spot_prices_v0_29", "karpenter_cloudprovider_instance_type_price_estimate"),
    ] {
        let selector = list.selector(metric, &["capacity_type=\"spot\""]);
        list.looking_back(
            role,
            format!("max by (instance_type, zone, capacity_type) (last_over_time({selector}[1h]))"),
            HOUR,
        );
    }
}

/// How long a claim takes to be launched, registered, initialized, from its creation on.
fn stages(list: &mut Asking<'_>) {
    let whole = list.plan.whole();
    for (suffix, metric, more) in [
        ("", "operator_nodeclaim_status_condition_transition_seconds", None),
        ("_v1_0", "operator_status_condition_transition_seconds", Some("kind=\"NodeClaim\"")),
    ] {
        for (part, by) in [("sum", "type"), ("count", "type"), ("bucket", "type, le")] {
            let texts: Vec<&str> = ["status=\"Unknown\""].into_iter().chain(more).collect();
            let selector = list.selector(&format!("{metric}_{part}"), &texts);
            let increase = list.increase(&selector);
            list.looking_back(&format!("claim_stage_{part}{suffix}"), format!("sum by ({by}) ({increase})"), whole);
        }
    }
}
