//! When a node is unhealthy for so long that it is replaced.
//!
//! Source: Karpenter core v1.13 `pkg/controllers/node/health/controller.go`; AWS provider v1.13
//! `pkg/cloudprovider/cloudprovider.go`, `RepairPolicies`.

use nodecast_model::domain::pod::IntOrPercent;
use nodecast_model::domain::{SimDuration, SimTime, Symbol};

/// The status of a node's condition.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ConditionStatus {
    /// `True`.
    True,
    /// `False`.
    False,
    /// `Unknown`: nobody reports it any more.
    Unknown,
}

/// A node's condition and since when it has been so.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NodeCondition {
    /// Its type, `Ready` for instance.
    pub kind: Symbol,
    /// Its status.
    pub status: ConditionStatus,
    /// When it came to be so.
    pub since: SimTime,
}

/// Conditions that make a node unhealthy, and for how many minutes Karpenter waits.
const POLICIES: [(&str, ConditionStatus, i64); 7] = [
    ("Ready", ConditionStatus::False, 30),
    ("Ready", ConditionStatus::Unknown, 30),
    ("AcceleratedHardwareReady", ConditionStatus::False, 10),
    ("StorageReady", ConditionStatus::False, 30),
    ("NetworkingReady", ConditionStatus::False, 30),
    ("KernelReady", ConditionStatus::False, 30),
    ("ContainerRuntimeReady", ConditionStatus::False, 30),
];
/// Share of a pool's nodes that may be unhealthy; with more nothing is repaired.
const MOST_UNHEALTHY: IntOrPercent = IntOrPercent::Percent(20);

/// How long Karpenter bears a condition; `None` for ever.
fn tolerated(condition: &NodeCondition) -> Option<SimDuration> {
    let policy =
        POLICIES.iter().find(|(kind, status, _)| condition.kind.as_str() == *kind && *status == condition.status);
    policy.map(|(_, _, minutes)| SimDuration::from_secs(60 * minutes))
}

/// Whether a node with these conditions counts as unhealthy, for however short a time.
pub fn is_unhealthy(conditions: &[NodeCondition]) -> bool {
    conditions.iter().any(|condition| tolerated(condition).is_some())
}

/// When a node with these conditions is to be repaired; `None` if it is healthy.
pub fn repair_due(conditions: &[NodeCondition]) -> Option<SimTime> {
    conditions.iter().filter_map(|condition| Some(condition.since + tolerated(condition)?)).min()
}

/// Whether so many of a pool's nodes are unhealthy that none is repaired: something else must be wrong.
pub fn too_many_unhealthy(unhealthy: usize, nodes: usize) -> bool {
    let count = |nodes: usize| i64::try_from(nodes).unwrap_or(i64::MAX);
    count(unhealthy) > MOST_UNHEALTHY.of_rounded_up(count(nodes))
}

#[cfg(test)]
mod tests {
    use super::{ConditionStatus, NodeCondition, is_unhealthy, repair_due, too_many_unhealthy};
    use nodecast_model::domain::{SimDuration, SimTime, Symbol};

    fn condition(kind: &str, status: ConditionStatus, since_minute: i64) -> NodeCondition {
        let since = SimTime::ZERO + SimDuration::from_secs(60 * since_minute);
        NodeCondition { kind: Symbol::new(kind), status, since }
    }

    fn due(conditions: &[NodeCondition]) -> Option<i64> {
        repair_due(conditions).map(|at| (at - SimTime::ZERO).as_secs() / 60)
    }

    #[test]
    fn node_repair_tolerates_each_condition_differently() {
        use ConditionStatus::{False, True, Unknown};
        for (kind, status, expected) in [
            ("Ready", False, Some(35)),
            ("Ready", Unknown, Some(35)),
            ("Ready", True, None),
            ("AcceleratedHardwareReady", False, Some(15)),
            ("AcceleratedHardwareReady", Unknown, None),
            ("StorageReady", False, Some(35)),
            ("NetworkingReady", Unknown, None),
            ("DiskPressure", True, None),
            ("Unheard-of", False, None),
        ] {
            let item = [condition(kind, status, 5)];
            assert_eq!((due(&item), is_unhealthy(&item)), (expected, expected.is_some()), "{kind} {status:?}");
        }
    }

    #[test]
    fn of_two_conditions_the_earlier_due_one_counts() {
        let ready = condition("Ready", ConditionStatus::False, 0);
        let hardware = |since| condition("AcceleratedHardwareReady", ConditionStatus::False, since);
        assert_eq!(due(&[ready, hardware(5)]), Some(15));
        assert_eq!(due(&[ready, hardware(25)]), Some(30));
        assert_eq!(due(&[]), None);
    }

    #[test]
    fn repair_stops_above_a_fifth_unhealthy() {
        for (unhealthy, nodes, blocked) in [(1, 1, false), (1, 3, false), (2, 3, true), (2, 10, false), (3, 10, true)] {
            assert_eq!(too_many_unhealthy(unhealthy, nodes), blocked, "{unhealthy} of {nodes}");
        }
    }
}
