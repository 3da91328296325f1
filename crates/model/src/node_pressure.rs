//! Whom the kubelet evicts from a node that runs out of memory: one pod at a time, whatever disruption budgets say.
//!
//! What must not live here: what pods use (the simulation), and kills for a container's own limit (the kernel).
//!
//! Source: Kubernetes 1.36 `pkg/kubelet/eviction/eviction_manager.go`, `helpers.go` (`rankMemoryPressure`), `pkg/kubelet/types/pod_update.go`.

use std::cmp::Reverse;

use crate::domain::SimDuration;

/// From this priority on a pod is critical, and never evicted by the kubelet.
pub const CRITICAL_PRIORITY: i32 = 2_000_000_000;
/// How often the kubelet holds what is used against its thresholds.
pub const LOOK: SimDuration = SimDuration::from_secs(10);
/// What a pod gets to end where a hard threshold is crossed, whatever it asks for.
pub const GRACE: SimDuration = SimDuration::from_secs(1);

/// A pod that runs on the node, with memory in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PodMemory {
    /// Its priority.
    pub priority: i32,
    /// What it requests.
    pub requested: i64,
    /// What it uses.
    pub used: i64,
}

/// The place of the pod that goes first: one that uses more than it requests before all others, then one of the lowest priority, then the one
/// that uses most beyond its request. Of equals the first; `None` if all are critical.
pub fn first_to_go(pods: &[PodMemory]) -> Option<usize> {
    let evictable = pods.iter().enumerate().filter(|(_, pod)| pod.priority < CRITICAL_PRIORITY);
    let order = |pod: &PodMemory| {
        let beyond = pod.used.saturating_sub(pod.requested);
        (beyond <= 0, pod.priority, Reverse(beyond))
    };
    evictable.min_by_key(|(_, pod)| order(pod)).map(|(place, _)| place)
}

#[cfg(test)]
mod tests {
    use super::{PodMemory, first_to_go};

    fn pod(priority: i32, requested: i64, used: i64) -> PodMemory {
        PodMemory { priority, requested, used }
    }

    #[test]
    fn pods_above_request_are_evicted_before_priority() {
        assert_eq!(first_to_go(&[pod(-10, 500, 500), pod(1_000, 100, 101)]), Some(1));
    }

    #[test]
    fn then_the_lower_priority_goes() {
        assert_eq!(first_to_go(&[pod(5, 0, 900), pod(0, 100, 101), pod(3, 0, 9_000)]), Some(1));
    }

    #[test]
    fn equal_priority_evicts_furthest_above_request() {
        assert_eq!(first_to_go(&[pod(0, 100, 300), pod(0, 700, 1_000), pod(0, 0, 250)]), Some(1));
        // Below the request it is who has least of it left.
        assert_eq!(first_to_go(&[pod(0, 100, 30), pod(0, 100, 90)]), Some(1));
    }

    #[test]
    fn critical_pods_stay() {
        assert_eq!(first_to_go(&[pod(2_000_001_000, 0, 900), pod(0, 100, 10)]), Some(1));
        assert_eq!(first_to_go(&[pod(2_000_000_000, 0, 900)]), None);
    }
}
