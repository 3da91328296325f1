//! Karpenter's controllers: batching and provisioning, launch, emptiness, expiry, termination.
//!
//! Releases from v1.13 remove empty nodes by the disruption loop, older ones by a timer on each node; the rest differs
//! only where the release's decisions in `policy` do.

mod assignment;
mod batching;
mod claims;
mod cluster_view;
mod consolidation;
mod disruption;
mod emptiness;
mod eviction;
mod images;
pub(super) mod inquiry;
mod interruption;
mod kept_pods;
mod last_look;
mod last_pass;
mod launch;
mod pace;
mod provisioning;
mod queue;
mod repair;
mod reservations;
mod static_pools;
mod termination;
mod type_lists;
mod unavailable;

use std::collections::{BTreeMap, BTreeSet};

pub(super) use batching::{batch_closed, node_trigger, pod_trigger, pod_unschedulable};
pub(super) use disruption::{disruption_concluded, disruption_pass, disruption_validation};
pub(super) use emptiness::{emptiness_check, emptiness_due};
pub(super) use eviction::attempt as eviction_retry;
pub(super) use images::{control_plane_seen, control_plane_upgraded};
pub(super) use interruption::{interruption_message, interruption_noticed, poll_status, receive, status_checked};
pub(super) use launch::{expect_registration, fleet_answered, next_try, registration_overdue};
pub(super) use pace::look_at_initialization as node_may_be_initialized;
pub(super) use provisioning::finished as pass_finished;
pub(super) use queue::look as command_poll;
pub(super) use repair::{condition_changed, look as repair_due};
pub(super) use static_pools::look as look_at_static_pools;
pub(super) use termination::{claim_gone, collect_garbage, drain_poll, expired, instance_gone, instance_poll};

use std::sync::Arc;

use super::call_limit::CallLimit;
use super::context::Context;
use super::event::{Event, class};
use super::scheduler_loop;
use super::setup::{Autoscaler, KarpenterSettings, Setup};
use crate::domain::controller_time::AutoscalerTime;
use crate::domain::{
    KarpenterVersion, KubernetesVersion, NodeId, NodePool, PodId, Requirements, Resources, SimDuration, SimTime, Symbol,
};
use crate::policy::instance_types::{ProviderSettings, learn_memory, types_of_pools};
use crate::world::record::{CommandId, NodeEnd, NodeOrigin};

/// What Karpenter's controllers remember.
#[derive(Debug, Default)]
pub(super) struct Karpenter {
    settings: Option<KarpenterSettings>,
    /// NodePools as they are now.
    pub(super) pools: Vec<Arc<NodePool>>,
    /// Instance types of each NodePool, by the same position.
    pub(super) instance_types: type_lists::TypeLists,
    open_types: launch::KeptOpenTypes,
    /// The least memory that a node of a pool and type has reported.
    learned_memory: BTreeMap<(Symbol, Symbol), i64>,
    kept_pods: kept_pods::KeptPods,
    batch: batching::Batch,
    passes: u64,
    last_pass: last_pass::LastPass,
    /// A pass whose time is not over.
    passing: Option<Box<provisioning::Passing>>,
    claims_made: BTreeMap<Symbol, u32>,
    /// The release of the control plane, as it was last read; the setup's until it changes.
    kubernetes: Option<KubernetesVersion>,
    /// Claims whose launch has not been answered.
    pub(super) launching: BTreeMap<NodeId, Claim>,
    /// Nodes that Karpenter launched, from their claim on until they are gone.
    nodes: BTreeMap<NodeId, claims::ClaimState>,
    /// Offerings that lacked capacity, and until when they are avoided.
    pub(super) unavailable: unavailable::UnavailableOfferings,
    /// Whether something else that the offerings rest on has changed since they were last brought up to date.
    offerings_stale: bool,
    /// Prices as of the last time they were read.
    prices: provisioning::PriceBook,
    launch_templates: BTreeSet<(Symbol, Symbol)>,
    /// When the last of them is made.
    templates_ready: SimTime,
    /// The node that was launched for a pod, in releases that bind pods themselves.
    assigned: BTreeMap<PodId, NodeId>,
    empty_since: BTreeMap<NodeId, SimTime>,
    stamp: claims::Stamp,
    disruption: disruption::Loop,
    consolidation: consolidation::Loop,
    commands: BTreeMap<CommandId, queue::Running>,
    /// Instance types that are no longer to be had.
    pub(super) withdrawn: BTreeSet<Symbol>,
    /// When pools with a fixed number of nodes are looked at next.
    static_look: Option<SimTime>,
    /// Pods in the eviction queue, with how often each was refused.
    evictions: BTreeMap<PodId, u32>,
    eviction_retries: eviction::RetryLimit,
    /// What its calls take, where they take time.
    pace: Option<pace::Pace>,
}

/// A node claim until its launch is answered.
#[derive(Debug)]
pub(super) struct Claim {
    /// Position of the NodePool.
    pub(super) pool: usize,
    pub(super) requirements: Arc<Requirements>,
    requests: Resources,
    /// Positions of the instance types, cheapest first.
    pub(super) types: Vec<u32>,
    /// Launch calls that EC2 refused to take.
    pub(super) refusals: u32,
}

impl Karpenter {
    /// The limit of its client, where calls take time.
    pub(super) fn call_limit(&self) -> Option<&CallLimit> {
        self.pace.as_ref().map(pace::Pace::limit)
    }

    /// Nodes that the disruption loop last found it may take, in the order of `DisruptionReason::ALL`.
    pub(super) const fn eligible(&self) -> [u32; 3] {
        self.disruption.eligible
    }

    pub(super) fn new(setup: &Setup) -> Self {
        let Autoscaler::Karpenter(settings) = setup.autoscaler else { return Self::default() };
        let provider = ProviderSettings::of(setup.versions.karpenter);
        let (region, classes, pools) = (&setup.region, &setup.node_classes, &setup.node_pools);
        let instance_types = match &setup.replay {
            Some(replay) => vec![replay.instance_types.clone(); pools.len()],
            None => {
                let mut types = types_of_pools(&setup.price_list, region, classes, pools, provider);
                reservations::add(setup, &mut types);
                types
            }
        };
        Self {
            settings: Some(settings),
            pools: pools.iter().cloned().map(Arc::new).collect(),
            instance_types: type_lists::TypeLists::new(instance_types),
            pace: pace::Pace::new(setup),
            ..Self::default()
        }
    }
}

/// What its loops take, where they take time.
fn time(context: &Context<'_>) -> Option<AutoscalerTime> {
    context.setup.controller_time.karpenter.filter(|_| context.replay.is_none())
}

/// Whether the release removes nodes by its disruption loop.
fn has_disruption_loop(version: KarpenterVersion) -> bool {
    version >= KarpenterVersion::V1_13
}

/// How long a node that is to receive pods is left alone.
///
/// Source: Karpenter core v1.13 `pkg/controllers/state/cluster.go`, `nominationWindow`; v0.16.0 and v0.18.1
/// `pkg/controllers/state/cluster.go`.
fn nomination_window(version: KarpenterVersion, settings: KarpenterSettings) -> SimDuration {
    let max = settings.batch_max;
    let window = match version {
        KarpenterVersion::V0_4 | KarpenterVersion::V0_6 => return SimDuration::ZERO,
        KarpenterVersion::V0_16 | KarpenterVersion::V0_18 => max + SimDuration::from_micros(max.as_micros() / 2),
        KarpenterVersion::V0_22 | KarpenterVersion::V1_13 | KarpenterVersion::V1_14 => max * 2,
    };
    window.max(SimDuration::from_secs(10))
}

/// Karpenter starts.
pub(super) fn begin(context: &mut Context<'_>) {
    if context.karpenter.settings.is_some() && has_disruption_loop(context.setup.versions.karpenter) {
        // The program has run for a while when a scenario begins: its loops are anywhere between two looks.
        let (at, phase, garbage) = match &context.setup.replay {
            Some(replay) => (replay.begins, SimDuration::ZERO, SimDuration::ZERO),
            None => (SimTime::ZERO, disruption::phase(context), termination::garbage_phase(context)),
        };
        context.queue.schedule(at + garbage, class::NODE_AUTOSCALER, Event::GarbageCollection);
        context.queue.schedule(at + phase, class::DISRUPTION, Event::DisruptionPass);
        static_pools::wake(context, at);
    }
    consolidation::begin(context);
}

/// A pod object is gone, or something else has changed that could change a decision.
pub(super) fn state_changed(context: &mut Context<'_>, now: SimTime) {
    disruption::changed(context, now);
}

/// A claim has got its instance.
pub(super) fn claim_launched(context: &mut Context<'_>, now: SimTime, node: NodeId) {
    disruption::changed(context, now);
    claims::look_at_drift(context, now, node);
    if context.world.node(node).deletion_requested.is_some() {
        termination::deleted_while_launching(context, now, node);
    }
}

/// A launch has failed for good.
pub(super) fn claim_failed(context: &mut Context<'_>, now: SimTime, node: NodeId, reason: &str) {
    termination::give_up(context, now, node, reason);
}

/// Somebody deletes a claim.
pub(super) fn delete_claim(context: &mut Context<'_>, now: SimTime, node: NodeId) {
    if context.world.node(node).phase < crate::cluster::NodePhase::Terminating {
        termination::begin(context, now, node, NodeEnd::Deleted, "its NodeClaim was deleted");
    }
}

/// Something outside has made a claim differ from its pool.
pub(super) fn make_drift(context: &mut Context<'_>, now: SimTime, node: NodeId) {
    if let Some(claim) = context.karpenter.nodes.get_mut(&node) {
        claim.changed = true;
    }
    claims::look_at_drift(context, now, node);
}

/// A NodePool is changed: its nodes may be drifted now.
pub(super) fn replace_pool(context: &mut Context<'_>, now: SimTime, pool: NodePool) {
    let Some(own) = context.karpenter.pools.iter_mut().find(|own| own.name == pool.name) else { return };
    *own = Arc::new(pool);
    disruption::changed(context, now);
    let nodes: Vec<NodeId> = context.karpenter.nodes.keys().copied().collect();
    for node in nodes {
        claims::look_at_drift(context, now, node);
    }
    static_pools::wake(context, now);
}

/// Looks whether a node that Karpenter launched has everything it is to have: it is Ready, and the taints are gone that come
/// off by themselves.
pub(super) fn look_at_initialization(context: &mut Context<'_>, now: SimTime, node: NodeId) {
    let state = context.world.node(node);
    let tainted = state
        .taints
        .iter()
        .any(|taint| taint.key == crate::domain::well_known::TAINT_NOT_READY || state.startup_taints.contains(taint));
    if state.ready && !state.initialized && !tainted {
        node_initialized(context, now, node);
    }
}

/// A node that Karpenter launched has everything it is to have.
pub(super) fn node_initialized(context: &mut Context<'_>, now: SimTime, node: NodeId) {
    if !is_managed(context, node) {
        return;
    }
    context.world.initialize_node(node, now);
    if let Some(claim) = context.karpenter.nodes.get_mut(&node) {
        claim.initialized_at = Some(claims::whole(now));
    }
    disruption::changed(context, now);
    scheduler_loop::node_changed(context, now, node);
    emptiness::consider(context, now, node);
}

/// A node that Karpenter launched has registered: releases from v1 learn how much memory its type really has.
pub(super) fn node_registered(context: &mut Context<'_>, node: NodeId) {
    let Some(machine) = context.machine(node) else { return };
    if !is_managed(context, node) || context.setup.versions.karpenter < KarpenterVersion::V1_13 {
        return;
    }
    let memory = context.world.node(node).capacity.memory_bytes();
    let name = context.ec2.instance(machine.instance).pool.instance_type;
    let Some(pool) = pool_of(context, node).map(|pool| pool.name) else { return };
    let position = context.karpenter.pools.iter().position(|own| own.name == pool);
    let karpenter = &mut context.karpenter;
    let Some(at) = position.filter(|at| *at < karpenter.instance_types.len()) else { return };
    let seen = karpenter.learned_memory.get(&(pool, name)).copied();
    if seen.is_some_and(|least| least <= memory) {
        return;
    }
    let least = karpenter.instance_types.change_amounts(at, name, |types| learn_memory(types, name, memory, seen));
    karpenter.learned_memory.insert((pool, name), least);
}

/// A pod has been bound: the node is in use.
pub(super) fn pod_bound(context: &mut Context<'_>, now: SimTime, pod: PodId, node: NodeId) {
    disruption::changed(context, now);
    context.karpenter.assigned.remove(&pod);
    if !context.world.pod(pod).daemon && is_managed(context, node) {
        disruption::pod_event(context, now, node);
        emptiness::in_use(context, now, node);
    }
}

/// A pod on a node has ended by itself.
pub(super) fn pod_finished(context: &mut Context<'_>, now: SimTime, pod: PodId, node: NodeId) {
    if !context.world.pod(pod).daemon && is_managed(context, node) {
        disruption::pod_event(context, now, node);
        emptiness::consider(context, now, node);
    }
}

/// A pod on a node has begun to terminate.
pub(super) fn pod_terminating(context: &mut Context<'_>, now: SimTime, pod: PodId, node: NodeId) {
    scheduler_loop::pod_terminating(context, pod);
    if !context.world.pod(pod).daemon && is_managed(context, node) {
        disruption::pod_event(context, now, node);
    }
}

/// A pod of a node is gone: the node may be empty now.
pub(super) fn pod_gone(context: &mut Context<'_>, now: SimTime, node: NodeId) {
    disruption::changed(context, now);
    if is_managed(context, node) {
        emptiness::consider(context, now, node);
    }
}

/// A node is gone: nothing about it is remembered.
pub(super) fn node_gone(context: &mut Context<'_>, now: SimTime, node: NodeId) {
    let karpenter = &mut context.karpenter;
    karpenter.launching.remove(&node);
    karpenter.kept_pods.forget(node);
    let launched = karpenter.nodes.remove(&node).is_none_or(|claim| !claim.failed);
    karpenter.empty_since.remove(&node);
    karpenter.assigned.retain(|_, own| *own != node);
    // A claim that never had an instance was not part of the state that consolidation looks at.
    if launched {
        disruption::changed(context, now);
    }
    static_pools::wake(context, now);
}

/// A look whether a node still is as its NodePool says.
pub(super) fn look_at_drift(context: &mut Context<'_>, now: SimTime, node: NodeId) {
    claims::look_at_drift(context, now, node);
}

/// An instance type is no longer to be had: nodes of it drift when their pools are next asked for their types.
pub(super) fn withdraw_type(context: &mut Context<'_>, now: SimTime, name: Symbol) {
    context.karpenter.withdrawn.insert(name);
    context.karpenter.offerings_stale = true;
    disruption::changed(context, now);
    let nodes: Vec<NodeId> = context.karpenter.nodes.keys().copied().collect();
    for node in nodes {
        let at = claims::next_look_at_type(context, now, node);
        context.queue.schedule(at, class::NODE_AUTOSCALER, Event::DriftLook(node));
    }
}

/// Whether Karpenter launched the node.
pub(super) fn is_managed(context: &Context<'_>, node: NodeId) -> bool {
    matches!(context.world.node(node).origin, NodeOrigin::NodePool(_))
}

/// The NodePool of a node that Karpenter launched, as it is now.
fn pool_of<'c>(context: &'c Context<'_>, node: NodeId) -> Option<&'c NodePool> {
    let NodeOrigin::NodePool(name) = context.world.node(node).origin else { return None };
    context.karpenter.pools.iter().find(|pool| pool.name == name).map(Arc::as_ref)
}

/// Whether the node holds a pod that would have to go elsewhere. What terminates counts until it is gone if `terminating`.
fn holds_pods(context: &Context<'_>, node: NodeId, terminating: bool) -> bool {
    context.world.node(node).pods.iter().any(|&pod| {
        let state = context.world.pod(pod);
        !state.daemon && (terminating || state.is_active())
    })
}
