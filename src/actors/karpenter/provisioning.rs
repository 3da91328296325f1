//! One scheduling pass: what is pending goes to the packer, and what the packer wants launched becomes node claims.
//!
//! Source: Karpenter core v1.13 `pkg/controllers/provisioning/provisioner.go`.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::{Claim, eviction, is_managed, launch, nomination_window, reservations};
use crate::actors::context::Context;
use crate::actors::event::{Event, class};
use crate::actors::{scheduler_loop, workload_controllers};
use crate::domain::{HourlyRate, KarpenterVersion, NodeId, PodId, PodSpec, SimDuration, SimTime, Symbol, well_known};
use crate::policy::bin_packing::Effort;
use crate::policy::instance_types::refresh_offerings;
use crate::policy::packing::{
    BoundPod, LeftOut, NamespaceView, NodeView, Packer, PackerKind, PackingOptions, PackingPlan, PackingSetup,
    PendingPod, PlannedClaim, PoolView, ReservedMode, Situation, TieBreak, Volumes, takes_on,
};
use crate::world::NodePhase;
use crate::world::node_operations::NewNode;
use crate::world::record::{EventKind, NodeOrigin};

/// One pass. While a claim waits for its launch to be answered the pass is given up: the pods trigger again later.
pub(super) fn pass(context: &mut Context<'_>, now: SimTime) {
    let launching = context
        .world
        .live_nodes()
        .iter()
        .any(|&node| is_managed(context, node) && context.world.node(node).phase == NodePhase::Claimed);
    if launching {
        return;
    }
    let mut pods = taken_on(context, now);
    pods.extend(leaving_pods(context));
    if pods.is_empty() {
        return;
    }
    context.karpenter.passes += 1;
    refresh(context, now);
    let plan = pack(context, &pods);
    apply(context, now, &pods, plan);
}

/// Pods that the scheduler could not place, but for those that no pass takes on; of these is said why, unless they do not
/// want a node of Karpenter's.
fn taken_on(context: &mut Context<'_>, now: SimTime) -> Vec<PodId> {
    let mut verdicts: FxHashMap<*const PodSpec, Result<(), LeftOut>> = FxHashMap::default();
    let (mut taken, mut refused) = (Vec::new(), Vec::new());
    for pod in scheduler_loop::unschedulable_pods(context) {
        let state = context.world.pod(pod);
        if state.daemon {
            continue;
        }
        // Pods of one workload share their specification.
        match *verdicts.entry(Arc::as_ptr(&state.spec)).or_insert_with(|| takes_on(&state.spec)) {
            Ok(()) => taken.push(pod),
            Err(LeftOut::NotForKarpenter) => {}
            Err(reason) => refused.push((pod, reason)),
        }
    }
    for (pod, reason) in refused {
        context.world.note_pod(pod, now, EventKind::PodNotPlaced, &reason.to_string());
    }
    taken
}

/// Pods of nodes that are being removed: those that will be evicted and come back.
///
/// Source: Karpenter core v1.13 `pkg/utils/node/node.go`, `GetCurrentlyReschedulablePods`. Older releases do not ask for
/// budgets.
fn leaving_pods(context: &Context<'_>) -> Vec<PodId> {
    let asks_budgets = context.setup.versions.karpenter >= KarpenterVersion::V1_13;
    context
        .world
        .live_nodes()
        .iter()
        .filter(|&&node| context.world.node(node).deletion_requested.is_some())
        .flat_map(|&node| context.world.node(node).pods.iter().copied())
        .filter(|&pod| {
            let state = context.world.pod(pod);
            let comes_back = !state.daemon && state.is_active() && !state.spec.do_not_disrupt();
            comes_back && (!asks_budgets || !eviction::is_fully_blocked(context, pod))
        })
        .collect()
}

/// Prices as Karpenter last read them.
#[derive(Debug, Default)]
pub(super) struct PriceBook {
    as_of: Option<SimTime>,
    rates: FxHashMap<(Symbol, Symbol, Symbol), HourlyRate>,
}

/// Karpenter reads all prices when it starts and then at this interval.
///
/// Source: AWS provider v1.13 `pkg/controllers/providers/pricing/controller.go`.
const PRICES_EVERY: SimDuration = SimDuration::from_secs(12 * 3_600);

/// Reads the prices anew when the time for it has passed: as they were at that time, not as they are now.
fn read_prices(context: &mut Context<'_>, now: SimTime) {
    let turn = now.as_micros().div_euclid(PRICES_EVERY.as_micros());
    let as_of = SimTime::from_micros(turn * PRICES_EVERY.as_micros());
    let book = &mut context.karpenter.prices;
    if book.as_of == Some(as_of) {
        return;
    }
    book.as_of = Some(as_of);
    book.rates.clear();
    for kind in context.karpenter.instance_types.iter().flatten() {
        for offering in &kind.offerings {
            let pool = crate::cloud::Pool {
                instance_type: kind.name,
                zone: offering.zone,
                capacity_type: offering.capacity_type,
            };
            if let Some((rate, _)) = context.ec2.market().price(pool, as_of) {
                book.rates.insert((kind.name, offering.zone, offering.capacity_type), rate);
            }
        }
    }
}

/// Brings the offerings up to date with the prices last read and the capacity errors that are still remembered.
fn refresh(context: &mut Context<'_>, now: SimTime) {
    read_prices(context, now);
    reservations::refresh(context, now);
    let karpenter = &mut context.karpenter;
    karpenter.unavailable.retain(|_, until| *until > now);
    let (unavailable, rates, price_list) = (&karpenter.unavailable, &karpenter.prices.rates, &context.setup.price_list);
    for types in &mut karpenter.instance_types {
        refresh_offerings(types, context.setup.versions.karpenter, |name, offering| {
            if let Some(reservation) = offering.reservation {
                let exhausted = unavailable.contains_key(&(name, offering.zone, reservation.id));
                return (Some(offering.price), exhausted || reservation.free == 0);
            }
            let key = (name, offering.zone, offering.capacity_type);
            let listed = price_list.instance_type(name).and_then(|kind| kind.on_demand).map(|price| price.rate);
            let read = rates.get(&key).copied();
            let price = if offering.capacity_type == well_known::ON_DEMAND { read.and(listed) } else { read };
            (price, unavailable.contains_key(&key))
        });
    }
}

fn pack(context: &Context<'_>, pods: &[PodId]) -> PackingPlan {
    let setup = context.setup;
    let karpenter = &context.karpenter;
    let pools: Vec<PoolView<'_>> = setup
        .node_pools
        .iter()
        .zip(&karpenter.instance_types)
        .map(|(pool, instance_types)| PoolView { pool, instance_types })
        .collect();
    let daemons: Vec<Arc<PodSpec>> = workload_controllers::daemon_templates(context);
    let namespaces: Vec<NamespaceView<'_>> =
        setup.namespaces.iter().map(|(name, labels)| NamespaceView { name: *name, labels }).collect();
    let packing = PackingSetup {
        karpenter: setup.versions.karpenter,
        options: PackingOptions::default(),
        pools: &pools,
        daemons: &daemons,
        namespaces: &namespaces,
        volumes: Volumes::default(),
    };
    let known: Vec<NodeId> = known_nodes(context);
    let bound: Vec<Vec<BoundPod<'_>>> = known.iter().map(|&node| bound_pods(context, node, pods)).collect();
    let nodes: Vec<NodeView<'_>> =
        known.iter().zip(&bound).map(|(&node, pods)| node_view(context, node, pods)).collect();
    let pending: Vec<PendingPod<'_>> = pods
        .iter()
        .map(|&pod| {
            let state = context.world.pod(pod);
            PendingPod {
                namespace: state.namespace,
                name: context.world.pod_name(pod),
                spec: &state.spec,
                created: state.created,
                uid_rank: u64::from(pod.0),
            }
        })
        .collect();
    let ties = TieBreak::Seeded { seed: setup.seed, pass: karpenter.passes };
    let situation = Situation { nodes: &nodes, pods: &pending, reserved: ReservedMode::Strict, ties };
    let mut packer = Packer::new(packing);
    match karpenter.settings.map_or(PackerKind::Karpenter, |settings| settings.packer) {
        PackerKind::Karpenter => packer.pack(&situation),
        PackerKind::CostAware => {
            // A clock here would let the answer depend on the machine.
            packer.pack_cost_aware(&situation, &mut Effort { steps: Effort::QUICK, go_on: &mut || true })
        }
    }
}

/// Nodes that exist, or will because their instance is launched.
fn known_nodes(context: &Context<'_>) -> Vec<NodeId> {
    let known = |&node: &NodeId| matches!(context.world.node(node).phase, NodePhase::Launched | NodePhase::Registered);
    context.world.live_nodes().iter().copied().filter(known).collect()
}

fn bound_pods<'a>(context: &'a Context<'_>, node: NodeId, to_place: &[PodId]) -> Vec<BoundPod<'a>> {
    let bound = context.world.node(node).pods.iter();
    bound
        .map(|&pod| {
            let state = context.world.pod(pod);
            BoundPod {
                namespace: state.namespace,
                name: context.world.pod_name(pod),
                spec: &state.spec,
                counts_in_topology: state.is_active() && !to_place.contains(&pod),
            }
        })
        .collect()
}

fn node_view<'a>(context: &'a Context<'_>, node: NodeId, pods: &'a [BoundPod<'a>]) -> NodeView<'a> {
    let state = context.world.node(node);
    let managed = is_managed(context, node);
    NodeView {
        name: state.name.as_str(),
        labels: &state.labels,
        taints: &state.taints,
        startup_taints: &state.startup_taints,
        capacity: &state.capacity,
        allocatable: &state.allocatable,
        managed,
        initialized: state.initialized || !managed,
        registered: state.phase == NodePhase::Registered,
        offered: state.deletion_requested.is_none(),
        pods,
        volume_limits: &[],
    }
}

/// Nominates nodes, makes claims, and says of the rest why it cannot be placed.
fn apply(context: &mut Context<'_>, now: SimTime, pods: &[PodId], plan: PackingPlan) {
    let version = context.setup.versions.karpenter;
    let Some(settings) = context.karpenter.settings else { return };
    let until = now + nomination_window(version, settings);
    let known = known_nodes(context);
    for placement in &plan.existing {
        if let Some(&node) = known.get(placement.node) {
            context.karpenter.nominated.insert(node, until);
        }
    }
    for unplaced in &plan.unschedulable {
        let pod = pods[unplaced.pod];
        context.world.note_pod(pod, now, EventKind::PodNotPlaced, &unplaced.reason.to_string());
    }
    if !plan.claims.is_empty() {
        let placed: usize = plan.claims.iter().map(|claim| claim.pods.len()).sum();
        let message = format!(
            "found {} provisionable pod(s); {} new node(s) will fit {placed} pod(s)",
            pods.len(),
            plan.claims.len()
        );
        context.world.note(now, EventKind::ClaimsComputed, None, message);
    }
    for claim in plan.claims {
        make_claim(context, now, claim, until);
    }
}

fn make_claim(context: &mut Context<'_>, now: SimTime, plan: PlannedClaim, nominated_until: SimTime) {
    let count = context.karpenter.claims_made.entry(plan.node_pool).or_insert(0);
    *count += 1;
    let new = NewNode {
        name: format!("{}-{count:05}", plan.node_pool),
        origin: NodeOrigin::NodePool(plan.node_pool),
        labels: plan.labels.clone(),
        taints: plan.taints.clone(),
        startup_taints: plan.startup_taints.clone(),
        reason: launch_text(&plan),
    };
    let node = context.world.add_node(new, now);
    context.karpenter.nominated.insert(node, nominated_until);
    let pool = &context.setup.node_pools[plan.pool];
    if let Some(age) = pool.expire_after {
        context.queue.schedule_in(age, class::NODE_AUTOSCALER, Event::Expired(node));
    }
    let types = plan.instance_types.iter().map(|kind| kind.index).collect();
    let claim = Claim { pool: plan.pool, requirements: plan.requirements, requests: plan.requests, types, refusals: 0 };
    launch::request(context, now, node, claim);
}

/// What is asked for, in the shape of Karpenter's own log line.
fn launch_text(plan: &PlannedClaim) -> String {
    let first: Vec<&str> = plan.instance_types.iter().take(5).map(|kind| kind.name.as_str()).collect();
    let others = plan.instance_types_before_cut.saturating_sub(first.len());
    let others = if others == 0 { String::new() } else { format!(" and {others} other(s)") };
    format!("{} pod(s) requesting {{{}}} from types {}{others}", plan.pods.len(), plan.requests, first.join(", "))
}
