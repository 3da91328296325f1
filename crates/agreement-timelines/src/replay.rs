//! The second driver of Karpenter's machine: it replays recorded cases with small models in place of EC2, kubelet, scheduler and
//! workload controllers, the ones with which the cases were recorded.
//!
//! What must not live here: anything that Karpenter itself decides or does.

mod actions;
mod cloud;
mod cluster;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use nodecast_engine::{EventQueue, PriorityClass, TimerId};
use nodecast_karpenter::disruption::ConditionStatus;
use nodecast_karpenter::instance_types::{InstanceType, Offering, position};
use nodecast_karpenter::interruption::Notice;
use nodecast_karpenter::machine::{Action, Input, Karpenter, NewClaim, Outside, Settings, Timer};
use nodecast_model::cluster::{Cluster, Derived, PodPhase};
use nodecast_model::control_plane::budgets::{ProtectedByBudgets, eviction_answer};
use nodecast_model::control_plane::eviction::{BudgetStatus, EvictionAnswer, Protections};
use nodecast_model::domain::pod::PodDisruptionBudget;
use nodecast_model::domain::workload::DaemonSet;
use nodecast_model::domain::{
    Currency, HourlyRate, KubernetesVersion, NodeId, NodePool, PodId, PodSpec, SimDuration, SimTime, Symbol, Taint,
    WorkloadId,
};
use nodecast_sim::actors::class;
use nodecast_world::World;
use nodecast_world::record::ClaimFacts;

/// From a change of a pod, node or budget to the step that takes it up.
const STEP: SimDuration = SimDuration::from_millis(50);
/// How much longer than its grace period a pod takes at most.
const KILL: SimDuration = SimDuration::from_millis(400);
/// Annotation with the seconds that a pod takes to stop.
const SHUTDOWN_SECONDS: &str = "sim/shutdown-seconds";

/// A recorded case.
#[derive(Clone, Debug)]
pub struct Replay {
    /// What Karpenter is told.
    pub settings: Settings,
    /// Its NodePools.
    pub pools: Vec<NodePool>,
    /// When the case ends.
    pub end: SimTime,
    /// The instance types of every pool.
    pub instance_types: Vec<InstanceType>,
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
    fn price(&self, name: Symbol, offering: &Offering) -> Option<HourlyRate> {
        let kind = &self.instance_types[position(&self.instance_types, name)?];
        let is = |this_offering: &&Offering| {
            this_offering.zone == offering.zone && this_offering.capacity_type == offering.capacity_type
        };
        kind.offerings.iter().find(is).filter(|offering| offering.available).map(|offering| offering.price)
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

/// A replay under way.
#[derive(Debug)]
pub struct Run {
    case: Replay,
    world: World,
    queue: EventQueue<Happening>,
    machine: Karpenter,
    /// The end of the batching window on the queue.
    window: Option<TimerId>,
    step_planned: bool,
    /// What else the machine can read.
    seen: ReplayState,
    protected: Derived<ProtectedByBudgets>,
    /// Workloads whose pods nobody replaces.
    bare: BTreeSet<WorkloadId>,
    machines: BTreeMap<NodeId, cloud::Machine>,
}

/// Something that happens at an instant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Happening {
    /// A timer of Karpenter fires.
    Karpenter(Timer),
    /// Something happens from outside: its place in the list.
    Action(u32),
    /// Scheduler and workload controllers act.
    Step,
    NodeRegistered(NodeId),
    NodeReady(NodeId),
    /// The node of a vanished instance is noticed not to answer.
    Unknown(NodeId),
    InstanceGone(NodeId),
    PodStopped(PodId),
}

/// What Karpenter reads beside the cluster.
#[derive(Debug, Default)]
struct ReplayState {
    /// Pods that wait, in order of creation.
    waiting: Vec<PodId>,
    /// The status of each PodDisruptionBudget, as last written.
    statuses: Vec<BudgetStatus>,
    budgets: usize,
    protections: Protections,
}

impl Outside for ReplayState {
    fn unschedulable_pods(&self, _cluster: &Cluster) -> Vec<PodId> {
        self.waiting.clone()
    }

    /// A budget that has no status yet allows nothing.
    fn budget_statuses(&self) -> Vec<BudgetStatus> {
        let none = BudgetStatus { expected: 0, desired_healthy: 0, healthy: 0, disruptions_allowed: 0 };
        (0..self.budgets).map(|budget| self.statuses.get(budget).copied().unwrap_or(none)).collect()
    }

    fn protections(&self) -> &Protections {
        &self.protections
    }

    fn control_plane(&self) -> KubernetesVersion {
        KubernetesVersion::default()
    }
}

impl Run {
    /// A case before its first event.
    pub fn new(case: Replay) -> Self {
        let types = vec![case.instance_types.clone(); case.pools.len()];
        let machine = Karpenter::new(case.settings.clone(), case.pools.clone(), types);
        let world = World::default();
        let mut run = Self {
            queue: EventQueue::new(),
            machine,
            window: None,
            step_planned: false,
            seen: ReplayState::default(),
            protected: Derived::new(&world),
            bare: BTreeSet::new(),
            machines: BTreeMap::new(),
            world,
            case,
        };
        run.tell(SimTime::ZERO, Input::Begin);
        for (number, (at, _)) in run.case.actions.iter().enumerate() {
            run.queue.schedule(*at, class::PEOPLE, Happening::Action(number as u32));
        }
        run
    }

    /// What happened so far.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// Lets the next thing happen; whether there was one before the end.
    pub fn step(&mut self) -> bool {
        let Some((now, happening)) = self.queue.pop().filter(|(now, _)| *now <= self.case.end) else { return false };
        match happening {
            Happening::Karpenter(timer) => {
                if timer == Timer::BatchClosed {
                    self.window = None;
                }
                self.tell(now, Input::Wake(timer));
            }
            Happening::Action(number) => actions::act(self, now, number),
            Happening::Step => cluster::step(self, now),
            Happening::NodeRegistered(node) => cloud::registered(self, now, node),
            Happening::NodeReady(node) => cloud::ready(self, now, node),
            Happening::Unknown(node) => cloud::unknown(self, now, node),
            Happening::InstanceGone(node) => cloud::gone(self, now, node),
            Happening::PodStopped(pod) => self.stopped(now, pod),
        }
        true
    }

    fn machine(&self) -> &Karpenter {
        &self.machine
    }

    /// Tells the machine something, and carries out what it does about it.
    fn tell(&mut self, now: SimTime, input: Input<'_>) {
        if let Some(as_of) = self.machine.prices_due(now) {
            let case = &self.case;
            self.machine.read_prices(as_of, |name, offering| case.price(name, offering));
        }
        self.seen.waiting = cluster::pending_pods(self).filter(|&pod| self.world.pod(pod).unschedulable).collect();
        self.seen.waiting.sort_unstable();
        for action in self.machine.step(now, &self.world, &self.seen, input) {
            self.carry_out(now, action);
        }
    }

    fn carry_out(&mut self, now: SimTime, action: Action) {
        let Some(action) = self.world.carry_out(action, now, Currency::Usd) else { return };
        let world = &mut self.world;
        match action {
            Action::Wake(at, timer) => self.wake(at, timer),
            Action::Next(stage) => self.tell(now, Input::Next(stage)),
            Action::CreateClaim(claim) => self.create_claim(now, *claim),
            Action::Launch { claim, called, .. } => self.wake(called + self.case.launch, Timer::Launch(claim)),
            Action::Create(node, request) => cloud::answer_launch(self, now, node, &request),
            Action::Launched(node, launched) => cloud::launched(self, now, node, *launched),
            Action::Taint(node, taint) => {
                world.taint_node(node, taint);
                self.changed();
            }
            Action::Untaint(node, key) => {
                world.untaint_node(node, key);
                self.changed();
            }
            Action::Initialize(node) => {
                world.initialize_node(node, now);
                self.changed();
            }
            Action::Relabel(node, labels) => {
                world.relabel_node(node, *labels);
                self.changed();
            }
            Action::Evict(pod) => {
                let allowed = self.evict(now, pod);
                self.tell(now, Input::EvictionAnswered(pod, allowed));
            }
            Action::DeletePod(pod, grace) => {
                self.delete_within(now, pod, grace, true, "its node must be gone soon");
            }
            Action::Terminate(node) => cloud::terminate(self, now, node),
            Action::Remove { node, unannounced } => {
                if unannounced {
                    world.terminate_instance(node, now);
                }
                cloud::remove(self, now, node);
            }
            other => unreachable!("{other:?} is none of a replay, whose provider is not AWS"),
        }
    }

    fn wake(&mut self, at: SimTime, timer: Timer) {
        let set = self.queue.schedule(at, class_of(timer), Happening::Karpenter(timer));
        if timer == Timer::BatchClosed
            && let Some(before) = self.window.replace(set)
        {
            self.queue.cancel(before);
        }
    }

    fn create_claim(&mut self, now: SimTime, claim: NewClaim) {
        let NewClaim { node, text, requests, types, capacity_types, .. } = claim;
        let id = self.world.add_node(node, now, &text);
        self.world.describe_claim(id, ClaimFacts { requests, types, capacity_types });
        self.tell(now, Input::ClaimCreated(id));
    }

    /// A pod, a node or a budget has changed: scheduler and workload controllers act in a moment.
    fn changed(&mut self) {
        if !std::mem::replace(&mut self.step_planned, true) {
            self.queue.schedule_in(STEP, class::SCHEDULER, Happening::Step);
        }
    }

    fn apply_budget(&mut self, budget: &PodDisruptionBudget) {
        self.world.apply_budget(budget.clone());
        self.seen.budgets = self.world.budgets().len();
        self.seen.protections = Protections::default();
    }

    /// Writes the status of every budget.
    fn count_budgets(&mut self) {
        self.protected.catch_up(&self.world);
        self.seen.statuses = self.protected.value().statuses().to_vec();
    }

    /// Evicts the pod if its budgets allow it, as their status says; whether they did.
    fn evict(&mut self, now: SimTime, pod: PodId) -> bool {
        let state = self.world.pod(pod);
        let budgets = self.seen.protections.of_pod(&self.world, state);
        let grace = state.spec.grace_period();
        match eviction_answer(&self.world, &self.seen.budget_statuses(), state, &budgets) {
            EvictionAnswer::Evicted { uses_budget } => {
                for &budget in budgets.iter().filter(|_| uses_budget) {
                    if let Some(status) = self.seen.statuses.get_mut(budget as usize) {
                        status.disruptions_allowed -= 1;
                    }
                }
                if self.world.pod(pod).is_active() {
                    self.delete_within(now, pod, grace, true, "its node is being removed");
                }
                true
            }
            EvictionAnswer::TooManyRequests | EvictionAnswer::SeveralBudgets => false,
        }
    }

    fn delete(&mut self, now: SimTime, pod: PodId, reason: &str) {
        if self.world.pod(pod).is_active() {
            let grace = self.world.pod(pod).spec.grace_period();
            self.delete_within(now, pod, grace, false, reason);
        }
    }

    fn delete_within(&mut self, now: SimTime, pod: PodId, grace: SimDuration, evicted: bool, reason: &str) {
        let state = self.world.pod(pod);
        if state.phase == PodPhase::Gone {
            return;
        }
        let (bound, again) = (state.node, state.deletion_requested.is_some());
        self.world.request_pod_deletion(pod, now, grace, evicted, reason);
        self.changed();
        match bound {
            None => {
                self.world.remove_pod(pod, now);
                self.tell(now, Input::Changed);
            }
            Some(node) => {
                let stops_in = self.stops_in(pod, grace);
                self.queue.schedule(now + stops_in, class::MACHINES, Happening::PodStopped(pod));
                if !again {
                    self.tell(now, Input::PodTerminating(pod, node));
                }
            }
        }
    }

    /// How long a pod takes to stop.
    fn stops_in(&self, pod: PodId, grace: SimDuration) -> SimDuration {
        let annotation = self.world.pod(pod).spec.annotations.get(Symbol::new(SHUTDOWN_SECONDS));
        let secs_f64 = annotation.and_then(|seconds| seconds.as_str().parse().ok()).map(SimDuration::from_secs_f64);
        secs_f64.unwrap_or(self.case.pod_shutdown).min(grace + KILL)
    }

    fn stopped(&mut self, now: SimTime, pod: PodId) {
        let state = self.world.pod(pod);
        if state.phase == PodPhase::Gone {
            return;
        }
        let node = state.node;
        self.world.remove_pod(pod, now);
        self.changed();
        if let Some(node) = node {
            self.tell(now, Input::PodGone(node));
        }
    }
}

const fn class_of(timer: Timer) -> PriorityClass {
    match timer {
        Timer::BatchClosed => class::BATCH,
        Timer::Launch(_) => class::MACHINES,
        Timer::DisruptionPass | Timer::DisruptionConcluded | Timer::DisruptionValidation => class::DISRUPTION,
        _ => class::NODE_AUTOSCALER,
    }
}
