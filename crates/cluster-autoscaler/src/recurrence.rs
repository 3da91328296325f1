//! For how long an iteration would repeat itself, if nothing changes but the time.

use super::drainability::LONG_TERMINATING;
use super::pods::is_recreatable;
use super::scale_down::DELETION_TAKES;
use super::scale_up::ScaleUpResult;
use super::templates::STABLE_AFTER;
use super::view::{Observation, PodPlace};
use super::{ClusterAutoscaler, Iteration, TO_BE_DELETED};
use nodecast_model::domain::{SimDuration, SimTime};

impl ClusterAutoscaler {
    /// Until when iterations like `iteration`, just made on `seen`, would find the same and do nothing as long as the same
    /// is observed: `seen.now` if the very next may differ.
    pub fn unchanged_until(&self, seen: &Observation<'_>, iteration: &Iteration) -> SimTime {
        if !self.is_at_rest(seen, iteration) {
            return seen.now;
        }
        let mut until = SimTime::FAR_FUTURE;
        let mut at = |instant: SimTime| {
            // What was due already made no difference, and will make none.
            if instant >= seen.now {
                until = until.min(instant);
            }
        };
        self.state.deadlines().for_each(&mut at);
        self.planner.deadlines(&self.flags, seen).for_each(&mut at);
        let flags = &self.flags;
        let changes = [
            (self.last_scale_up, flags.scale_down_delay_after_add),
            (self.last_delete, flags.scale_down_delay_after_delete),
            (self.last_delete_failure, flags.scale_down_delay_after_failure),
        ];
        changes.into_iter().for_each(|(change, delay)| at(change + delay));
        for group in seen.groups {
            let own = self.state.last_changes(group.id).into_iter().zip(changes);
            own.for_each(|(change, (_, delay))| change.into_iter().for_each(|change| at(change + delay)));
        }
        for node in seen.nodes {
            at(node.ready_since + STABLE_AFTER);
            at(node.created + flags.max_node_startup_time);
            if let Some(began) = node.taints.iter().find(|taint| taint.key.as_str() == TO_BE_DELETED)
                && let Ok(began) = began.value.as_str().parse()
            {
                at(SimTime::ZERO + SimDuration::from_secs(began) + DELETION_TAKES);
            }
        }
        for pod in seen.pods.iter().filter(|pod| is_recreatable(&pod.traits)) {
            if let Some(asked) = pod.deleted_at {
                at(asked + pod.traits.spec.grace_period() + LONG_TERMINATING);
            }
            if pod.traits.namespace.as_str() == "kube-system"
                && let Some(timeout) = flags.blocking_system_pod_timeout
            {
                at(pod.created + timeout);
            }
        }
        until
    }

    /// Whether the iteration did nothing, nothing is under way, and no pod waits.
    fn is_at_rest(&self, seen: &Observation<'_>, iteration: &Iteration) -> bool {
        let taints = &iteration.soft_taints;
        let waits =
            |place: PodPlace| matches!(place, PodPlace::Unschedulable | PodPlace::Unprocessed | PodPlace::Nominated(_));
        iteration.early_end.is_none()
            && iteration.scale_up.result == ScaleUpResult::NotNeeded
            && iteration.scale_up.young.is_empty()
            && matches!(iteration.raised.result, ScaleUpResult::NotTried | ScaleUpResult::NotNeeded)
            && !iteration.unneeded_changed
            && iteration.scale_down.deletions.is_empty()
            && iteration.failures.is_empty()
            && iteration.given_up.is_empty()
            && taints.added.is_empty()
            && taints.removed.is_empty()
            && seen.deletions.is_empty()
            && !seen.groups.iter().any(|group| self.state.request(group.id).is_some())
            && !seen.pods.iter().any(|pod| pod.deleted_at.is_none() && waits(pod.place))
    }
}
