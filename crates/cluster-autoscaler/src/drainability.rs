//! Which pods keep a node from being drained.
//!
//! Source: Cluster Autoscaler 1.36 `simulator/drainability/rules/`, `simulator/drain.go`, `utils/drain/drain.go`.

use super::budgets::RemainingBudgets;
use super::flags::Flags;
use super::view::{ControllerKind, PodTraits, PodView, RestartPolicy};
use nodecast_model::domain::pod::PodPhase;
use nodecast_model::domain::{SimDuration, SimTime};

/// How long beyond its grace period a pod may take to end before it no longer counts.
const LONG_TERMINATING: SimDuration = SimDuration::from_secs(30);

/// Why a pod keeps its node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum BlockingReason {
    /// The controller named does not exist.
    ControllerNotFound,
    /// The controller has fewer replicas than `min-replica-count`.
    MinReplicasReached,
    /// Nothing would start it again.
    NotReplicated,
    /// A pod of `kube-system` without a disruption budget.
    UnmovableKubeSystemPod,
    /// `cluster-autoscaler.kubernetes.io/safe-to-evict: "false"`.
    NotSafeToEvictAnnotation,
    /// It keeps data on the node.
    LocalStorageRequested,
    /// A disruption budget allows no disruption.
    NotEnoughPdb,
}

impl BlockingReason {
    /// The reason's name as the autoscaler reports it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ControllerNotFound => "ControllerNotFound",
            Self::MinReplicasReached => "MinReplicasReached",
            Self::NotReplicated => "NotReplicated",
            Self::UnmovableKubeSystemPod => "UnmovableKubeSystemPod",
            Self::NotSafeToEvictAnnotation => "NotSafeToEvictAnnotation",
            Self::LocalStorageRequested => "LocalStorageRequested",
            Self::NotEnoughPdb => "NotEnoughPdb",
        }
    }
}

/// What draining a node does with a pod.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Drainability {
    /// It does not count.
    Skipped,
    /// A DaemonSet's.
    Daemon,
    /// It is moved.
    Movable,
    /// The node waits until it ends.
    WaitsForCompletion,
    /// The node stays.
    Blocks(BlockingReason),
}

/// Whether the pod should have been gone for a while.
pub fn is_long_terminating(pod: &PodView, now: SimTime) -> bool {
    pod.deleted_at.is_some_and(|at| at + pod.traits.spec.grace_period() + LONG_TERMINATING < now)
}

/// What draining its node does with a pod: the first rule that decides.
pub fn drainability(flags: &Flags, pod: &PodView, budgets: &RemainingBudgets<'_>, now: SimTime) -> Drainability {
    use Drainability::{Blocks, Daemon, Movable, Skipped, WaitsForCompletion};
    let traits = &*pod.traits;
    if traits.is_mirror() || is_long_terminating(pod, now) {
        return Skipped;
    }
    if let Some(reason) = controller_objection(flags, traits) {
        return Blocks(reason);
    }
    if traits.is_daemon() {
        return Daemon;
    }
    let safe_to_evict = traits.annotation("cluster-autoscaler.kubernetes.io/safe-to-evict");
    if safe_to_evict == Some("true") || is_finished(pod) {
        return Movable;
    }
    if safe_to_evict == Some("on-completion") {
        return WaitsForCompletion;
    }
    if !is_replicated(flags, traits) {
        return Blocks(BlockingReason::NotReplicated);
    }
    if flags.skip_nodes_with_system_pods && traits.namespace.as_str() == "kube-system" && !budgets.cover(traits) {
        let old_enough = flags.blocking_system_pod_timeout.is_some_and(|timeout| pod.created + timeout < now);
        return if old_enough { Movable } else { Blocks(BlockingReason::UnmovableKubeSystemPod) };
    }
    if safe_to_evict == Some("false") {
        return Blocks(BlockingReason::NotSafeToEvictAnnotation);
    }
    if flags.skip_nodes_with_local_storage && keeps_local_data(traits) {
        return Blocks(BlockingReason::LocalStorageRequested);
    }
    if budgets.forbid(traits) {
        return Blocks(BlockingReason::NotEnoughPdb);
    }
    Movable
}

fn controller_objection(flags: &Flags, traits: &PodTraits) -> Option<BlockingReason> {
    let controller = traits.controller?;
    if !flags.skip_nodes_with_custom_controller_pods {
        return None;
    }
    let counted = match controller.kind {
        ControllerKind::Other => return None,
        ControllerKind::ReplicaSet | ControllerKind::ReplicationController => true,
        ControllerKind::StatefulSet | ControllerKind::Job | ControllerKind::DaemonSet => false,
    };
    if !controller.exists {
        return Some(BlockingReason::ControllerNotFound);
    }
    (counted && controller.replicas < flags.min_replica_count).then_some(BlockingReason::MinReplicasReached)
}

fn is_finished(pod: &PodView) -> bool {
    match pod.phase {
        PodPhase::Failed => true,
        PodPhase::Succeeded => pod.traits.restart_policy != RestartPolicy::Always,
        PodPhase::Pending | PodPhase::Running | PodPhase::Unknown => false,
    }
}

fn is_replicated(flags: &Flags, traits: &PodTraits) -> bool {
    traits.controller.is_some_and(|controller| {
        !(flags.skip_nodes_with_custom_controller_pods && controller.kind == ControllerKind::Other)
    })
}

fn keeps_local_data(traits: &PodTraits) -> bool {
    let excepted = traits.annotation("cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes").unwrap_or("");
    traits.local_volumes.iter().any(|volume| !excepted.split(',').any(|name| name.trim() == volume.as_str()))
}
