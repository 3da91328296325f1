//! Karpenter's controllers: batching and provisioning, launch, emptiness, expiry, termination.
//!
//! Releases from v1.13 remove empty nodes by the disruption loop, older ones by a timer on each node; the rest differs
//! only where the release's decisions in `policy` do.

mod batching;
mod disruption;
mod emptiness;
mod eviction;
mod interruption;
mod launch;
mod provisioning;
mod reservations;
mod termination;

use std::collections::{BTreeMap, BTreeSet};

pub(super) use batching::{batch_closed, node_trigger, pod_trigger, pod_unschedulable};
pub(super) use disruption::{disruption_pass, disruption_validation};
pub(super) use emptiness::{emptiness_check, emptiness_due};
pub(super) use eviction::{budget_states, evict};
pub(super) use interruption::{interruption_message, interruption_noticed};
pub(super) use launch::{fleet_answered, registration_overdue};
pub(super) use termination::{drain_poll, expired};

use super::context::Context;
use super::event::{Event, class};
use super::scheduler_loop;
use super::setup::{Autoscaler, KarpenterSettings, Setup};
use crate::domain::{KarpenterVersion, NodeId, PodId, Requirements, Resources, SimDuration, SimTime, Symbol};
use crate::policy::instance_types::{InstanceType, ProviderSettings, learn_memory, types_of_pools};
use crate::world::record::NodeOrigin;

/// What Karpenter's controllers remember.
#[derive(Debug, Default)]
pub(super) struct Karpenter {
    settings: Option<KarpenterSettings>,
    /// Instance types of each NodePool, by position in the setup.
    instance_types: Vec<Vec<InstanceType>>,
    /// The least memory that a node of a pool and type has reported.
    learned_memory: BTreeMap<(Symbol, Symbol), i64>,
    batch: batching::Batch,
    passes: u64,
    claims_made: BTreeMap<Symbol, u32>,
    claims: BTreeMap<NodeId, Claim>,
    nominated: BTreeMap<NodeId, SimTime>,
    unavailable: BTreeMap<(Symbol, Symbol, Symbol), SimTime>,
    /// Prices as of the last time they were read.
    prices: provisioning::PriceBook,
    launch_templates: BTreeSet<(Symbol, Symbol)>,
    empty_since: BTreeMap<NodeId, SimTime>,
    last_pod_event: BTreeMap<NodeId, SimTime>,
    initialized_at: BTreeMap<NodeId, SimTime>,
    proposed: Vec<NodeId>,
    draining: BTreeMap<NodeId, SimTime>,
}

/// A node claim until its launch is answered.
#[derive(Debug)]
struct Claim {
    /// Position of the NodePool in the setup.
    pool: usize,
    requirements: Requirements,
    requests: Resources,
    /// Positions of the instance types, cheapest first.
    types: Vec<u32>,
    /// Launch calls that EC2 refused to take.
    refusals: u32,
}

impl Karpenter {
    pub(super) fn new(setup: &Setup) -> Self {
        let Autoscaler::Karpenter(settings) = setup.autoscaler else { return Self::default() };
        let provider = ProviderSettings::of(setup.versions.karpenter);
        let (region, classes, pools) = (&setup.region, &setup.node_classes, &setup.node_pools);
        let mut instance_types = types_of_pools(&setup.price_list, region, classes, pools, provider);
        reservations::add(setup, &mut instance_types);
        Self { settings: Some(settings), instance_types, ..Self::default() }
    }
}

/// Whether the release removes empty nodes by its disruption loop.
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
        context.queue.schedule(SimTime::ZERO, class::NODE_AUTOSCALER, Event::DisruptionPass);
    }
}

/// A node that Karpenter launched has everything it is to have.
pub(super) fn node_initialized(context: &mut Context<'_>, now: SimTime, node: NodeId) {
    if !is_managed(context, node) {
        return;
    }
    context.world.initialize_node(node, now);
    context.karpenter.initialized_at.insert(node, now);
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
    let Some(pool) = pool_of(context, node) else { return };
    let position = context.setup.node_pools.iter().position(|own| own.name == pool.name);
    let karpenter = &mut context.karpenter;
    let Some(types) = position.and_then(|at| karpenter.instance_types.get_mut(at)) else { return };
    let seen = karpenter.learned_memory.get(&(pool.name, name)).copied();
    let least = learn_memory(types, name, memory, seen);
    karpenter.learned_memory.insert((pool.name, name), least);
}

/// A pod has been bound: the node is in use.
pub(super) fn pod_bound(context: &mut Context<'_>, now: SimTime, pod: PodId, node: NodeId) {
    if !context.world.pod(pod).daemon && is_managed(context, node) {
        disruption::pod_event(context, now, node);
        emptiness::in_use(context, now, node);
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
    if is_managed(context, node) {
        emptiness::consider(context, now, node);
    }
}

/// A node is gone: nothing about it is remembered.
pub(super) fn node_gone(context: &mut Context<'_>, _now: SimTime, node: NodeId) {
    let karpenter = &mut context.karpenter;
    karpenter.claims.remove(&node);
    karpenter.nominated.remove(&node);
    karpenter.empty_since.remove(&node);
    karpenter.last_pod_event.remove(&node);
    karpenter.initialized_at.remove(&node);
    karpenter.draining.remove(&node);
}

/// Whether Karpenter launched the node.
fn is_managed(context: &Context<'_>, node: NodeId) -> bool {
    matches!(context.world.node(node).origin, NodeOrigin::NodePool(_))
}

/// The NodePool of a node that Karpenter launched.
fn pool_of<'s>(context: &Context<'s>, node: NodeId) -> Option<&'s crate::domain::NodePool> {
    let NodeOrigin::NodePool(name) = context.world.node(node).origin else { return None };
    context.setup.node_pools.iter().find(|pool| pool.name == name)
}

fn is_nominated(context: &Context<'_>, now: SimTime, node: NodeId) -> bool {
    context.karpenter.nominated.get(&node).is_some_and(|&until| until > now)
}

/// Whether the node holds a pod that would have to go elsewhere. What terminates counts until it is gone if `terminating`.
fn holds_pods(context: &Context<'_>, node: NodeId, terminating: bool) -> bool {
    context.world.node(node).pods.iter().any(|&pod| {
        let state = context.world.pod(pod);
        !state.daemon && (terminating || state.is_active())
    })
}
