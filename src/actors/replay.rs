//! Replays of recorded cases: Karpenter's own controllers with small models in place of EC2, kubelet, scheduler and workload
//! controllers, the ones with which the cases were recorded.
//!
//! The controllers are those of every other run; what differs is behind the few functions here that they and the other
//! actors ask whether a case is being replayed.
//!
//! What must not live here: anything that Karpenter itself decides or does.

mod actions;
mod cloud;
mod cluster;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub(super) use actions::{act, begin};
pub(super) use cloud::{answer_launch, launched, registered, unknown};
pub(super) use cluster::{step, waiting_pods};

use super::context::Context;
use super::event::{Event, class};
use crate::domain::pod::PodDisruptionBudget;
use crate::domain::workload::DaemonSet;
use crate::domain::{HourlyRate, NodeId, NodePool, PodId, PodSpec, SimDuration, SimTime, Symbol, Taint, WorkloadId};
use crate::policy::budgets::BudgetStatus;
use crate::policy::disruption::ConditionStatus;
use crate::policy::instance_types::{InstanceType, Offering, position};
use crate::policy::interruption::Notice;

/// From a change of a pod, node or budget to the step that takes it up.
const STEP: SimDuration = SimDuration::from_millis(50);
/// How much longer than its grace period a pod takes at most.
const KILL: SimDuration = SimDuration::from_millis(400);
/// Annotation with the seconds that a pod takes to stop.
const SHUTDOWN_SECONDS: &str = "sim/shutdown-seconds";

/// A recorded case.
#[derive(Clone, Debug)]
pub struct Replay {
    /// The instance types of every pool.
    pub instance_types: Vec<InstanceType>,
    /// When Karpenter's controllers start.
    pub begins: SimTime,
    /// How long the call takes that launches an instance.
    pub launch: SimDuration,
    /// From the launch to the Node object.
    pub register: SimDuration,
    /// From the launch to Ready.
    pub ready: SimDuration,
    /// From the deletion of a pod to its end, unless it says otherwise.
    pub pod_shutdown: SimDuration,
    /// From the termination of an instance to its end.
    pub instance_termination: SimDuration,
    /// What goes wrong with launches.
    pub faults: Vec<LaunchFault>,
    /// What happens from outside, in order of time.
    pub actions: Vec<(SimTime, ReplayAction)>,
}

impl Replay {
    /// What an offering costs; `None` if it is not to be had at all.
    pub(super) fn price(&self, name: Symbol, offering: &Offering) -> Option<HourlyRate> {
        let kind = &self.instance_types[position(&self.instance_types, name)?];
        let is = |own: &&Offering| own.zone == offering.zone && own.capacity_type == offering.capacity_type;
        kind.offerings.iter().find(is).filter(|own| own.available).map(|own| own.price)
    }
}

/// Something that goes wrong with launches for a while.
#[derive(Clone, Debug)]
pub struct LaunchFault {
    /// From when on.
    pub from: SimTime,
    /// Until when; at this instant it is over.
    pub to: SimTime,
    /// What goes wrong.
    pub kind: LaunchFaultKind,
    /// Instance types that it concerns; `None` for all.
    pub types: Option<Vec<Symbol>>,
    /// The zone that it concerns; `None` for all.
    pub zone: Option<Symbol>,
    /// The capacity type that it concerns; `None` for all.
    pub capacity_type: Option<Symbol>,
}

/// What can go wrong with a launch.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LaunchFaultKind {
    /// There is no capacity.
    NoCapacity,
    /// The call fails for another reason.
    Error,
    /// The instance never registers a node.
    NeverRegister,
    /// The node never becomes Ready.
    NeverReady,
}

/// Something that happens from outside.
#[derive(Clone, Debug)]
pub enum ReplayAction {
    /// A ReplicaSet gets a number of replicas; its first action brings the pod.
    SetReplicas {
        /// Its name.
        name: Symbol,
        /// Replicas wanted.
        replicas: u32,
        /// What its pods are.
        pod: Option<Arc<PodSpec>>,
    },
    /// A ReplicaSet gets one replica more.
    AddReplica {
        /// Its name.
        name: Symbol,
        /// What its pods are; its first action brings it.
        pod: Option<Arc<PodSpec>>,
    },
    /// Pods without an owner.
    CreateBarePods {
        /// What their names begin with.
        name: Symbol,
        /// How many.
        count: u32,
        /// What they are.
        pod: Arc<PodSpec>,
    },
    /// The containers of a pod end well.
    FinishPod(Symbol),
    /// A pod is changed.
    PatchPod(Symbol, PodChange),
    /// The node of a pod is changed.
    PatchNode(Symbol, NodeChange),
    /// A NodePool is replaced by another of its name.
    ReplaceNodePool(Box<NodePool>),
    /// A PodDisruptionBudget comes to be, or is replaced by another of its name.
    ApplyBudget(Box<PodDisruptionBudget>),
    /// A DaemonSet comes to be.
    RunDaemon(Box<DaemonSet>),
    /// The NodeClaim of a pod's node is deleted.
    DeleteClaim(Symbol),
    /// The NodeClaim of a pod's node no longer is as its pool says.
    Drift(Symbol),
    /// The instance of a pod's node vanishes.
    KillInstance(Symbol),
    /// An instance type is no longer to be had.
    WithdrawType(Symbol),
    /// Karpenter reads what AWS says of the instance of a pod's node.
    Notice(Symbol, Notice),
    /// A status check of the instance of a pod's node begins to fail (`true`), or succeeds again.
    StatusCheck(Symbol, bool),
}

/// How a pod is changed from outside.
#[derive(Clone, Debug, Default)]
pub struct PodChange {
    /// Annotations to set (`Some`) or to remove.
    pub annotations: Vec<(Symbol, Option<Symbol>)>,
    /// Labels to set (`Some`) or to remove.
    pub labels: Vec<(Symbol, Option<Symbol>)>,
}

/// How a node is changed from outside.
#[derive(Clone, Debug, Default)]
pub struct NodeChange {
    /// Annotations to set (`Some`) or to remove.
    pub annotations: Vec<(Symbol, Option<Symbol>)>,
    /// Labels to set (`Some`) or to remove.
    pub labels: Vec<(Symbol, Option<Symbol>)>,
    /// The taints that it has from now on.
    pub taints: Option<Vec<Taint>>,
    /// Conditions with their status from now on.
    pub conditions: Vec<(Symbol, ConditionStatus)>,
}

/// What the small models remember.
#[derive(Debug, Default)]
pub(super) struct ReplayState {
    step_planned: bool,
    /// The status of each PodDisruptionBudget, as last written.
    statuses: Vec<BudgetStatus>,
    /// Workloads whose pods nobody replaces.
    bare: BTreeSet<WorkloadId>,
    machines: BTreeMap<NodeId, cloud::ReplayMachine>,
}

impl ReplayState {
    /// An eviction uses one of the disruptions that a budget allows.
    pub(super) fn use_budget(&mut self, budget: usize) {
        if let Some(status) = self.statuses.get_mut(budget) {
            status.disruptions_allowed -= 1;
        }
    }

    /// The status of so many budgets; one that has none yet allows nothing.
    pub(super) fn budget_statuses(&self, budgets: usize) -> Vec<BudgetStatus> {
        let none = BudgetStatus { expected: 0, desired_healthy: 0, healthy: 0, disruptions_allowed: 0 };
        (0..budgets).map(|budget| self.statuses.get(budget).copied().unwrap_or(none)).collect()
    }
}

/// Tells the models that a pod, a node or a budget has changed; whether a case is being replayed at all.
pub(super) fn changed(context: &mut Context<'_>) -> bool {
    let Some(replay) = &mut context.replay else { return false };
    if !std::mem::replace(&mut replay.step_planned, true) {
        context.queue.schedule_in(STEP, class::SCHEDULER, Event::ReplayStep);
    }
    true
}

/// How long a pod takes to stop; `None` if no case is being replayed.
pub(super) fn stops_in(context: &Context<'_>, pod: PodId, grace: SimDuration) -> Option<SimDuration> {
    let replay = context.setup.replay.as_ref()?;
    let own = context.world.pod(pod).spec.annotations.get(Symbol::new(SHUTDOWN_SECONDS));
    let own = own.and_then(|seconds| seconds.as_str().parse().ok()).map(SimDuration::from_secs_f64);
    Some(own.unwrap_or(replay.pod_shutdown).min(grace + KILL))
}

/// How long an instance takes to be gone; `None` if no case is being replayed.
pub(super) fn terminates_in(context: &Context<'_>) -> Option<SimDuration> {
    context.setup.replay.as_ref().map(|replay| replay.instance_termination)
}
