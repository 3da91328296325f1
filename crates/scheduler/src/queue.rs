//! The arithmetic of the scheduling queue: order, backoff, periods. The queue itself is its owner's.

use nodecast_model::domain::{KubernetesBehaviour, KubernetesVersion, PodId, SimDuration, SimTime};

/// How often pods whose backoff is over are moved to the active queue.
pub const BACKOFF_FLUSH_PERIOD: SimDuration = SimDuration::from_secs(1);
/// How often the pool of unschedulable pods is searched for pods that stayed too long.
pub const UNSCHEDULABLE_FLUSH_PERIOD: SimDuration = SimDuration::from_secs(30);
/// How long a pod stays in the pool of unschedulable pods at most (until the next flush).
pub const UNSCHEDULABLE_TIMEOUT: SimDuration = SimDuration::from_secs(300);

const INITIAL_BACKOFF_SECONDS: i64 = 1;
const MAX_BACKOFF_SECONDS: i64 = 10;

/// A pod's place in the active queue; the smallest is next.
///
/// Source: Kubernetes 1.36 `pkg/scheduler/framework/plugins/queuesort/priority_sort.go`.
///
/// Deviation: pods with the same priority and time leave the queue in order of creation. Upstream leaves that order
/// open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueOrder {
    /// The pod's priority: higher leaves first.
    pub priority: i32,
    /// When it was put into the queue, after creation or after its last attempt: earlier leaves first.
    pub queued_at: SimTime,
    /// The pod; ids grow in order of creation.
    pub pod: PodId,
}

impl Ord for QueueOrder {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        other.priority.cmp(&self.priority).then(self.queued_at.cmp(&other.queued_at)).then(self.pod.cmp(&other.pod))
    }
}

impl PartialOrd for QueueOrder {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// How long a pod waits after its `attempts`-th unschedulable attempt: 1, 2, 4, 8, then 10 seconds. No wait before the
/// first.
///
/// Source: Kubernetes 1.36 `pkg/scheduler/backend/queue/backoff_queue.go`, `calculateBackoffDuration`.
pub fn backoff(attempts: u32) -> SimDuration {
    if attempts == 0 {
        return SimDuration::ZERO;
    }
    let doubled = INITIAL_BACKOFF_SECONDS.checked_shl(attempts - 1).filter(|seconds| *seconds > 0);
    SimDuration::from_secs(doubled.unwrap_or(MAX_BACKOFF_SECONDS).min(MAX_BACKOFF_SECONDS))
}

/// When the backoff of a pod that was queued at `queued_at` is over. Since 1.33 pods wait in windows of a second, in which those
/// of higher priority go first: a pod whose time ends within a window backs off until the end of that window. Windows begin
/// `phase` after the simulation does and every second before and after.
///
/// Source: Kubernetes 1.36 `pkg/scheduler/backend/queue/backoff_queue.go`, `getBackoffTime`, `alignToWindow`, `isPodBackingoff`.
pub fn backoff_expiry(queued_at: SimTime, attempts: u32, version: KubernetesVersion, phase: SimDuration) -> SimTime {
    let exact = queued_at + backoff(attempts);
    if !version.has(KubernetesBehaviour::SchedulerBackoffWindows) || attempts == 0 {
        return exact;
    }
    let window = (exact - SimTime::ZERO - phase).as_micros().div_euclid(BACKOFF_FLUSH_PERIOD.as_micros());
    SimTime::ZERO + phase + BACKOFF_FLUSH_PERIOD * (window + 1)
}

/// When pods whose backoff is over at `expiry` are moved to the active queue: at the next flush, one of which is `phase` after
/// the simulation begins.
///
/// Source: Kubernetes 1.36 `pkg/scheduler/backend/queue/scheduling_queue.go`, `flushBackoffQCompleted`.
pub fn next_backoff_flush(expiry: SimTime, phase: SimDuration) -> SimTime {
    let (since, period) = ((expiry - SimTime::ZERO - phase).as_micros(), BACKOFF_FLUSH_PERIOD.as_micros());
    expiry + SimDuration::from_micros((period - since.rem_euclid(period)) % period)
}

/// Whether a release takes the head of the backoff queue when the active queue is empty (1.33 and later).
pub const fn pops_from_backoff(version: KubernetesVersion) -> bool {
    version.has(KubernetesBehaviour::SchedulerPopsFromBackoff)
}

#[cfg(test)]
mod tests {
    use super::{QueueOrder, backoff, backoff_expiry, next_backoff_flush};
    use nodecast_model::domain::{KubernetesVersion, PodId, SimDuration, SimTime};

    #[test]
    fn backoff_doubles_up_to_ten_seconds() {
        assert_eq!([1, 2, 3, 4, 5, 6, 200].map(|n| backoff(n).as_secs()), [1, 2, 4, 8, 10, 10, 10]);
        assert_eq!(backoff(0), SimDuration::ZERO);
    }

    #[test]
    fn backoff_ends_with_second_window_since_1_33() {
        let at = |millis| SimTime::ZERO + SimDuration::from_millis(millis);
        let phase = SimDuration::from_millis(300);
        let expiry =
            |queued_at, version| (backoff_expiry(at(queued_at), 2, version, phase) - SimTime::ZERO).as_micros();
        let (new, old) = (KubernetesVersion::default(), KubernetesVersion::from_minor(32).unwrap());
        // Two seconds after 2.7 s is 4.7 s, in the window from 4.3 to 5.3 s.
        assert_eq!([expiry(2_700, new), expiry(2_300, new), expiry(100, new)], [5_300_000, 5_300_000, 2_300_000]);
        assert_eq!(expiry(2_700, old), 4_700_000);
        assert_eq!(backoff_expiry(at(2_700), 0, new, phase), at(2_700), "a pod that was never tried does not wait");
        let flush = |millis| (next_backoff_flush(at(millis), phase) - SimTime::ZERO).as_micros() / 1_000;
        assert_eq!([flush(4_700), flush(5_300), flush(5_301), flush(100)], [5_300, 5_300, 6_300, 300]);
    }

    #[test]
    fn priority_comes_before_age_and_age_before_creation() {
        let order = |priority, secs, pod| QueueOrder {
            priority,
            queued_at: SimTime::ZERO + SimDuration::from_secs(secs),
            pod: PodId(pod),
        };
        let mut queue = [order(0, 1, 9), order(0, 1, 3), order(0, 0, 7), order(5, 8, 8)];
        queue.sort();
        assert_eq!(queue.map(|entry| entry.pod.0), [8, 7, 3, 9]);
    }
}
