//! One step of the machine: what it is told goes to the controller whose business it is.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::io::{Action, Draw, Fact, Input, LateTimer, Outside, Stage, Subject, Timer};
use super::{
    Karpenter, batching, buffers, claims, consolidation, disruption, emptiness, eviction, images, interruption, launch,
    pace, provisioning, queue, repair, reservations, static_pools, termination, validation,
};
use crate::instance_types::{InstanceType, learn_memory};
use crate::release::apply_api;
use nodecast_model::cluster::{Cluster, NodeEnd, NodeOrigin, NodePhase};
use nodecast_model::domain::{
    CommandId, Labels, NodeClass, NodeId, NodePool, PodId, SimDuration, SimTime, Symbol, well_known,
};

/// What Karpenter remembers, what it can see, and what it has done so far in this step.
#[derive(Debug)]
pub(super) struct Step<'a> {
    pub(super) karpenter: &'a mut Karpenter,
    pub(super) cluster: &'a Cluster,
    pub(super) outside: &'a dyn Outside,
    actions: Vec<Action>,
}

impl<'a> Step<'a> {
    pub(super) fn new(karpenter: &'a mut Karpenter, cluster: &'a Cluster, outside: &'a dyn Outside) -> Self {
        Self { karpenter, cluster, outside, actions: Vec::new() }
    }

    pub(super) fn into_actions(self) -> Vec<Action> {
        self.actions
    }

    pub(super) fn act(&mut self, action: Action) {
        self.actions.push(action);
    }

    pub(super) fn wake(&mut self, at: SimTime, timer: Timer) {
        self.actions.push(Action::Wake(at, timer));
    }

    pub(super) fn next(&mut self, stage: Stage) {
        self.actions.push(Action::Next(stage));
    }

    pub(super) fn note(&mut self, fact: Fact, text: impl Into<String>) {
        self.actions.push(Action::Note(Subject::All, fact, text.into()));
    }

    pub(super) fn note_node(&mut self, node: NodeId, fact: Fact, text: impl Into<String>) {
        self.actions.push(Action::Note(Subject::Node(node), fact, text.into()));
    }

    pub(super) fn note_pod(&mut self, pod: PodId, fact: Fact, text: impl Into<String>) {
        self.actions.push(Action::Note(Subject::Pod(pod), fact, text.into()));
    }

    /// How late a timer fires.
    pub(super) fn slip(&self, what: LateTimer, entity: u32, now: SimTime) -> SimDuration {
        self.outside.draw(Draw::Slip(what, entity, now, disruption::DRIFT))
    }

    /// Whether the release removes nodes by its disruption loop.
    pub(super) fn has_disruption_loop(&self) -> bool {
        self.karpenter.behaviour.disruption_loop
    }

    /// Whether Karpenter launched the node.
    pub(super) fn is_managed(&self, node: NodeId) -> bool {
        matches!(self.cluster.node(node).origin, NodeOrigin::NodePool(_))
    }

    /// The NodePool of a node that Karpenter launched, as it is now.
    pub(super) fn pool_of(&self, node: NodeId) -> Option<&NodePool> {
        let NodeOrigin::NodePool(name) = self.cluster.node(node).origin else { return None };
        self.karpenter.pools.iter().find(|pool| pool.name == name).map(Arc::as_ref)
    }

    /// Whether the node holds a pod that would have to go elsewhere, or that terminates.
    pub(super) fn holds_pods(&self, node: NodeId) -> bool {
        self.cluster.node(node).pods.iter().any(|&pod| !self.cluster.pod(pod).daemon)
    }

    /// Something has changed that could change a decision of consolidation.
    pub(super) fn changed(&mut self, now: SimTime) {
        self.karpenter.stamp.renew(now);
    }

    /// Takes in what Karpenter is told.
    pub(super) fn take_in(&mut self, now: SimTime, input: Input<'_>) {
        match input {
            Input::Begin => self.begin(now),
            Input::Adopt(node, written) => claims::adopt(self, now, node, &written),
            Input::Wake(timer) => self.woken(now, timer),
            Input::Next(stage) => self.goes_on(now, stage),
            Input::ClaimCreated(node) => provisioning::claim_created(self, now, node),
            Input::LaunchAnswered(node, answer) => launch::answered(self, now, node, answer),
            Input::EvictionAnswered(pod, allowed) => eviction::answered(self, now, pod, allowed),
            Input::PodUnschedulable(pod) => batching::pod_unschedulable(self, now, pod),
            Input::PodBound(pod, node) => self.pod_bound(now, pod, node),
            Input::PodFinished(pod, node) => self.pod_finished(now, pod, node),
            Input::PodTerminating(pod, node) => self.pod_terminating(now, pod, node),
            Input::PodGone(node) => self.pod_gone(now, node),
            Input::Changed => self.changed(now),
            Input::NodeRegistered(node, instance_type) => self.node_registered(node, instance_type),
            Input::NodeMayBeInitialized(node) => pace::look_at_initialization(self, now, node),
            Input::LookAtInitialization(node) => self.look_at_initialization(now, node),
            Input::ConditionChanged(node, kind, status) => repair::condition_changed(self, now, node, kind, status),
            Input::InstanceGone(node) => termination::instance_gone(self, node),
            Input::NodeGone(node) => self.node_gone(now, node),
            Input::Notice(node, notice) => interruption::receive(self, now, node, notice),
            Input::StatusChecked(node, failed) => interruption::status_checked(self, now, node, failed),
            Input::ControlPlaneUpgraded => images::control_plane_upgraded(self, now),
            Input::ClassReplaced(class, types) => self.replace_class(now, *class, types),
            Input::TypesReplaced(pool, types) => self.replace_types(pool, types),
            Input::PoolReplaced(pool) => self.replace_pool(now, *pool),
            Input::PoolDeleted(pool) => self.delete_pool(now, pool),
            Input::ClaimDeleted(node) => self.delete_claim(now, node),
            Input::ClaimChanged(node) => self.make_drift(now, node),
            Input::ReservationEnded(id) => reservations::ended(self, now, id),
            Input::TypeWithdrawn(name) => self.withdraw_type(now, name),
            Input::BuffersReplaced(buffers_replaced) => buffers::replace(self, now, buffers_replaced),
            Input::NamespacesReplaced(namespaces_replaced) => self.replace_namespaces(namespaces_replaced),
        }
    }

    fn woken(&mut self, now: SimTime, timer: Timer) {
        match timer {
            Timer::PodTrigger(pod) => batching::pod_trigger(self, now, pod),
            Timer::NodeTrigger(node) => batching::node_trigger(self, now, node),
            Timer::BatchClosed => batching::batch_closed(self, now),
            Timer::PassFinished => provisioning::finished(self, now),
            Timer::Launch(node) => launch::due(self, now, node),
            Timer::RegistrationOverdue(node) => launch::registration_overdue(self, now, node),
            Timer::InitializationSeen(node) => self.look_at_initialization(now, node),
            Timer::ClaimGone(node) => termination::claim_gone(self, now, node),
            Timer::EmptinessCheck(node) => emptiness::check(self, now, node),
            Timer::EmptinessDue(node) => emptiness::due(self, now, node),
            Timer::DisruptionPass if self.has_disruption_loop() => disruption::pass(self, now),
            Timer::DisruptionPass => consolidation::pass(self, now),
            Timer::DisruptionConcluded if self.has_disruption_loop() => disruption::concluded(self, now),
            Timer::DisruptionConcluded => consolidation::concluded(self, now),
            Timer::DisruptionValidation if self.has_disruption_loop() => validation::due(self, now),
            Timer::DisruptionValidation => consolidation::validated(self, now),
            Timer::CommandPoll(command) => queue::look(self, now, command),
            Timer::DrainBegins(node) => termination::drain_begins(self, now, node),
            Timer::DrainPoll(node) => termination::drain_poll(self, now, node),
            Timer::EvictionRetry(pod) => eviction::attempt(self, now, pod),
            Timer::InstancePoll(node) => termination::instance_poll(self, now, node),
            Timer::GarbageCollection => termination::collect_garbage(self, now),
            Timer::RepairDue(node) => repair::look(self, now, node),
            Timer::StaticPools => static_pools::look(self, now),
            Timer::DriftLook(node) => claims::look_at_drift(self, now, node),
            Timer::StatusPoll(node) => interruption::poll_status(self, now, node),
            Timer::ControlPlaneSeen => images::control_plane_seen(self, now),
            Timer::BlockLook => reservations::look_at_blocks(self, now),
            Timer::BufferLook => buffers::look(self, now),
            Timer::ImageReleased => images::released(self, now),
            Timer::Expired(node) => termination::expired(self, now, node),
        }
    }

    fn goes_on(&mut self, now: SimTime, stage: Stage) {
        match stage {
            Stage::Launched(node) => self.claim_launched(now, node),
            Stage::Drain(node) => termination::drain(self, now, node),
            Stage::Evict(node) => termination::evict_next(self, now, node),
            Stage::Initialized(node) => emptiness::consider(self, now, node),
            Stage::Relabelled(node) => claims::look_at_drift(self, now, node),
            Stage::CommandMade(command) => queue::made(self, now, command),
            Stage::CommandLate(command) => queue::late(self, now, command),
            Stage::Look => disruption::look_from_first(self, now),
        }
    }

    /// Karpenter starts. The program has run for a while when a scenario begins: its loops are anywhere between two looks.
    fn begin(&mut self, now: SimTime) {
        let at = self.karpenter.settings.begins;
        let phase = self.has_disruption_loop().then(|| disruption::phase(self));
        if self.karpenter.behaviour.makes_claims {
            let garbage = termination::garbage_phase(self);
            self.wake(at + garbage, Timer::GarbageCollection);
        }
        if let Some(phase) = phase {
            self.wake(at + phase, Timer::DisruptionPass);
            static_pools::wake(self, at);
        }
        consolidation::begin(self, now);
        images::await_release(self, at);
        buffers::begin(self, at);
        reservations::begin(self, at);
    }

    /// A claim has got its instance.
    fn claim_launched(&mut self, now: SimTime, node: NodeId) {
        self.changed(now);
        claims::look_at_drift(self, now, node);
        if self.cluster.node(node).deletion_requested.is_some() {
            termination::deleted_while_launching(self, now, node);
        }
    }

    fn delete_claim(&mut self, now: SimTime, node: NodeId) {
        if self.cluster.node(node).phase < NodePhase::Terminating {
            termination::begin(self, now, node, NodeEnd::Deleted, "its NodeClaim was deleted");
        }
    }

    fn make_drift(&mut self, now: SimTime, node: NodeId) {
        if let Some(claim) = self.karpenter.nodes.get_mut(&node) {
            claim.changed = true;
        }
        claims::look_at_drift(self, now, node);
    }

    /// A NodePool is changed: its nodes may be drifted now.
    fn replace_pool(&mut self, now: SimTime, mut pool: NodePool) {
        apply_api(self.karpenter.settings.release, &mut pool);
        let Some(this_pool) = self.karpenter.pools.iter_mut().find(|this_pool| this_pool.name == pool.name) else {
            return;
        };
        *this_pool = Arc::new(pool);
        self.changed(now);
        self.look_at_drift_of_all(now);
        static_pools::wake(self, now);
    }

    /// A node class is replaced: nodes of it may be drifted now. What was learned of types holds for one set of images.
    fn replace_class(&mut self, now: SimTime, class: NodeClass, types: Vec<(Symbol, Vec<InstanceType>)>) {
        let classes = &mut self.karpenter.settings.node_classes;
        let before = classes.iter().position(|this_class| this_class.name == class.name).map(|at| classes.remove(at));
        if before.is_none_or(|before| before.images != class.images) {
            self.karpenter.learned_memory.retain(|(pool, _), _| !types.iter().any(|(key, _)| key == pool));
        }
        self.karpenter.settings.node_classes.push(class);
        for (pool, types) in types {
            self.replace_types(pool, types);
        }
        self.changed(now);
        self.look_at_drift_of_all(now);
        static_pools::wake(self, now);
    }

    /// Namespaces are labelled otherwise. Nobody watches them: the next search lists them as they are then.
    ///
    /// Source: Karpenter core v1.13 `pkg/controllers/provisioning/scheduling/topology.go`, `buildNamespaceList`.
    fn replace_namespaces(&mut self, namespaces: Vec<(Symbol, Labels)>) {
        self.karpenter.settings.namespaces = namespaces;
        // A packer at rest depends on them, and is kept with the lists of types.
        self.karpenter.instance_types.change();
    }

    /// The types of a pool are others. Who remembers a type does so by its place in the list: one that is left out keeps its place and
    /// cannot be had any more, and what is new comes last.
    fn replace_types(&mut self, pool: Symbol, types: Vec<InstanceType>) {
        let Some(at) = self.karpenter.pools.iter().position(|this_pool| this_pool.name == pool) else { return };
        let mut new: BTreeMap<Symbol, InstanceType> =
            types.iter().map(|instance_type| (instance_type.name, instance_type.clone())).collect();
        let Some(list) = self.karpenter.instance_types.change().get_mut(at) else { return };
        for instance_type in list.iter_mut() {
            match new.remove(&instance_type.name) {
                Some(other) => *instance_type = other,
                None => instance_type.offerings.clear(),
            }
        }
        list.extend(types.into_iter().filter(|instance_type| new.contains_key(&instance_type.name)));
        for (&(_, name), &memory) in self.karpenter.learned_memory.iter().filter(|((key, _), _)| *key == pool) {
            learn_memory(list, name, memory, None);
        }
        self.karpenter.offerings_stale = true;
    }

    /// A NodePool is deleted: nothing is launched for it any more, and the garbage collector deletes the claims that it owns, all
    /// at once. A pool of its name may be applied again.
    fn delete_pool(&mut self, now: SimTime, name: Symbol) {
        let Some(pool) = self.karpenter.pools.iter_mut().find(|pool| pool.name == name) else { return };
        *pool = Arc::new(NodePool { ready: false, replicas: None, ..NodePool::clone(pool) });
        self.changed(now);
        let origin = NodeOrigin::NodePool(name);
        let owned = |node: &&NodeId| self.cluster.node(**node).origin == origin;
        let claims: Vec<NodeId> = self.karpenter.nodes.keys().filter(owned).copied().collect();
        for claim in claims {
            if self.cluster.node(claim).phase < NodePhase::Terminating {
                termination::begin(self, now, claim, NodeEnd::Deleted, "its NodePool was deleted");
            }
        }
    }

    pub(super) fn look_at_drift_of_all(&mut self, now: SimTime) {
        let nodes: Vec<NodeId> = self.karpenter.nodes.keys().copied().collect();
        for node in nodes {
            claims::look_at_drift(self, now, node);
        }
    }

    /// Looks whether a node that Karpenter launched has everything it is to have: it is Ready, and the taints are gone that come
    /// off by themselves.
    pub(super) fn look_at_initialization(&mut self, now: SimTime, node: NodeId) {
        let state = self.cluster.node(node);
        let tainted = state
            .taints
            .iter()
            .any(|taint| taint.key == well_known::TAINT_NOT_READY || state.startup_taints.contains(taint));
        if !state.ready || state.initialized || tainted || !self.is_managed(node) {
            return;
        }
        self.act(Action::Initialize(node));
        if let Some(claim) = self.karpenter.nodes.get_mut(&node) {
            claim.initialized_at = Some(claims::whole(now));
        }
        self.changed(now);
        self.next(Stage::Initialized(node));
    }

    /// A node that Karpenter launched has registered: releases from v1 learn how much memory its type really has.
    fn node_registered(&mut self, node: NodeId, instance_type: Symbol) {
        if !self.is_managed(node) || !self.karpenter.behaviour.learns_memory {
            return;
        }
        let memory = self.cluster.node(node).capacity.memory_bytes();
        let Some(pool) = self.pool_of(node).map(|pool| pool.name) else { return };
        let position = self.karpenter.pools.iter().position(|this_pool| this_pool.name == pool);
        let karpenter = &mut *self.karpenter;
        let Some(at) = position.filter(|at| *at < karpenter.instance_types.len()) else { return };
        let seen = karpenter.learned_memory.get(&(pool, instance_type)).copied();
        if seen.is_some_and(|least| least <= memory) {
            return;
        }
        let learn = |types: &mut [_]| learn_memory(types, instance_type, memory, seen);
        let least = karpenter.instance_types.change_amounts(at, instance_type, learn);
        karpenter.learned_memory.insert((pool, instance_type), least);
    }

    /// A pod has been bound: the node is in use.
    fn pod_bound(&mut self, now: SimTime, pod: PodId, node: NodeId) {
        self.changed(now);
        self.karpenter.assigned.remove(&pod);
        if !self.cluster.pod(pod).daemon && self.is_managed(node) {
            claims::pod_event(self, now, node);
            emptiness::in_use(self, node);
        }
    }

    fn pod_finished(&mut self, now: SimTime, pod: PodId, node: NodeId) {
        if !self.cluster.pod(pod).daemon && self.is_managed(node) {
            claims::pod_event(self, now, node);
            emptiness::consider(self, now, node);
        }
    }

    fn pod_terminating(&mut self, now: SimTime, pod: PodId, node: NodeId) {
        if !self.cluster.pod(pod).daemon && self.is_managed(node) {
            claims::pod_event(self, now, node);
        }
    }

    /// A pod of a node is gone: the node may be empty now.
    fn pod_gone(&mut self, now: SimTime, node: NodeId) {
        self.changed(now);
        if self.is_managed(node) {
            emptiness::consider(self, now, node);
        }
    }

    /// A node is gone: nothing about it is remembered.
    pub(super) fn node_gone(&mut self, now: SimTime, node: NodeId) {
        let karpenter = &mut *self.karpenter;
        karpenter.launching.remove(&node);
        karpenter.node_pods_cache.forget(node);
        let launched = karpenter.nodes.remove(&node).is_none_or(|claim| !claim.failed);
        karpenter.empty_since.remove(&node);
        karpenter.assigned.retain(|_, item| *item != node);
        // A claim that never had an instance was not part of the state that consolidation looks at.
        if launched {
            self.changed(now);
        }
        static_pools::wake(self, now);
    }

    /// An instance type is no longer to be had: nodes of it drift when their pools are next asked for their types.
    fn withdraw_type(&mut self, now: SimTime, name: Symbol) {
        self.karpenter.withdrawn.insert(name);
        self.karpenter.offerings_stale = true;
        self.changed(now);
        let nodes: Vec<NodeId> = self.karpenter.nodes.keys().copied().collect();
        for node in nodes {
            let at = claims::next_look_at_type(self, now, node);
            self.wake(at, Timer::DriftLook(node));
        }
    }

    /// The next command.
    pub(super) fn next_command(&mut self) -> CommandId {
        let id = CommandId(self.karpenter.commands.proposed);
        self.karpenter.commands.proposed += 1;
        id
    }
}
