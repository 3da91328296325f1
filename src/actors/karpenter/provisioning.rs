//! One scheduling pass: what is pending goes to the packer, and what the packer wants launched becomes node claims.
//!
//! Source: Karpenter core v1.13 `pkg/controllers/provisioning/provisioner.go`.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::claims::{ClaimState, is_marked, nominate, whole};
use super::cluster_view::{known_nodes, pending_pod, pod_view, ties, view_of, with_packing_setup};
use super::last_pass::{LastPass, Question};
use super::unavailable::OfferingKey;
use super::{
    Claim, assignment, batching, disruption, is_managed, kept_pods, launch, nomination_window, reservations, time,
};
use crate::actors::context::Context;
use crate::actors::event::{Event, class};
use crate::actors::eviction::is_fully_blocked;
use crate::actors::{names, scheduler_loop};
use crate::cluster::NewNode;
use crate::cluster::NodePhase;
use crate::domain::words::counted;
use crate::domain::{
    HourlyRate, KarpenterVersion, NodeId, PodId, PodSpec, ResourceName, SimDuration, SimTime, Symbol, well_known,
};
use crate::policy::bin_packing::Effort;
use crate::policy::controller_time::{at_speed, karpenter as model, work_within};
use crate::policy::instance_types::{InstanceType, Offering, has_fixed_places, refresh_offering, refresh_offerings};
use crate::policy::packing::{
    BoundPod, LeftOut, NodePods, NodeView, PackerKind, PackingPlan, PendingPod, PlannedClaim, ReservedMode, Situation,
    takes_on,
};
use crate::policy::selection::price::Terms;
use crate::world::record::{ClaimFacts, ControllerLoop, EventKind, NodeOrigin};

/// One pass. While a claim waits for its launch to be answered the pass is given up: the pods trigger again later.
pub(super) fn pass(context: &mut Context<'_>, now: SimTime) {
    if disruption::is_unsynced(context) {
        return;
    }
    let mut pods = taken_on(context, now);
    pods.extend(leaving_pods(context, now));
    if pods.is_empty() {
        return;
    }
    context.karpenter.passes += 1;
    refresh(context, now);
    let known = known_nodes(context);
    let question = Question::now(context, &known, pods);
    let answered = std::mem::take(&mut context.karpenter.last_pass).answer(&question);
    let plan = match answered {
        Some(plan) => {
            debug_assert_eq!(plan, pack(context, &known, &question), "a pass that is asked the same plans the same");
            plan
        }
        None => pack(context, &known, &question),
    };
    let passing = Passing { known, question, plan };
    let Some(time) = time(context) else { return carry_out(context, now, passing) };
    let took = at_speed(model::pass(&passing.plan.work), time.speed_percent);
    context.world.note_loop(ControllerLoop::KarpenterPass, took, !passing.plan.unreached.is_empty());
    context.karpenter.passing = Some(Box::new(passing));
    batching::pass_begins(context);
    context.queue.schedule_in(took, class::NODE_AUTOSCALER, Event::PassFinished);
}

/// A pass that has been worked out and is not carried out yet.
#[derive(Debug)]
pub(super) struct Passing {
    /// The nodes that it knew.
    known: Vec<NodeId>,
    question: Question,
    plan: PackingPlan,
}

/// The time of the pass is over: what it came to by what it saw at its start is carried out.
pub(in crate::actors) fn finished(context: &mut Context<'_>, now: SimTime) {
    if let Some(passing) = context.karpenter.passing.take() {
        carry_out(context, now, *passing);
    }
    batching::pass_ends(context, now);
}

fn carry_out(context: &mut Context<'_>, now: SimTime, passing: Passing) {
    let Passing { known, question, plan } = passing;
    if let Some(plan) = apply(context, now, &known, &question.pods, plan) {
        LastPass::keep(context, question, plan);
    }
}

/// Pods that the scheduler could not place and that a pass takes on.
pub(super) fn provisionable(context: &Context<'_>) -> Vec<PodId> {
    let wanted = |pod: &PodId| {
        let state = context.world.pod(*pod);
        !state.daemon && !assignment::is_assigned(context, *pod) && takes_on(&state.spec).is_ok()
    };
    scheduler_loop::unschedulable_pods(context).filter(wanted).collect()
}

/// Pods that the scheduler could not place, but for those that no pass takes on; of these is said why, unless they do not
/// want a node of Karpenter's.
fn taken_on(context: &mut Context<'_>, now: SimTime) -> Vec<PodId> {
    let mut verdicts: FxHashMap<*const PodSpec, Result<(), LeftOut>> = FxHashMap::default();
    let (mut taken, mut refused) = (Vec::new(), Vec::new());
    for pod in scheduler_loop::unschedulable_pods(context) {
        let state = context.world.pod(pod);
        if state.daemon || assignment::is_assigned(context, pod) {
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
fn leaving_pods(context: &Context<'_>, now: SimTime) -> Vec<PodId> {
    let asks_budgets = context.setup.versions.karpenter >= KarpenterVersion::V1_13;
    let leaving =
        |&&node: &&NodeId| is_marked(context, node) && context.world.node(node).phase == NodePhase::Registered;
    context
        .world
        .live_nodes()
        .iter()
        .filter(leaving)
        .flat_map(|&node| context.world.node(node).pods.iter().copied())
        .filter(|&pod| {
            let view = pod_view(context, pod);
            let comes_back = view.is_reschedulable() && view.is_disruptable(now);
            comes_back && (!asks_budgets || !is_fully_blocked(context, pod))
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
    context.karpenter.offerings_stale = true;
    book.as_of = Some(as_of);
    book.rates.clear();
    book.rates.reserve(context.karpenter.instance_types.iter().flatten().map(|kind| kind.offerings.len()).sum());
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

/// Brings the offerings up to date with the prices last read and the capacity errors that are still remembered. Most passes
/// find all of these as the last one left them, and nothing is to be done.
pub(super) fn refresh(context: &mut Context<'_>, now: SimTime) {
    let replayed = context.replay.is_some();
    if !replayed {
        read_prices(context, now);
        reservations::refresh(context, now);
    }
    let karpenter = &mut context.karpenter;
    karpenter.unavailable.expire(now);
    let stale = std::mem::take(&mut karpenter.offerings_stale);
    let concerned = karpenter.unavailable.take_concerned();
    if !stale && concerned.is_empty() {
        return;
    }
    if replayed {
        crate::actors::replay::refresh_offerings(context);
    } else {
        state_offerings(context, if stale { None } else { Some(&concerned) });
    }
}

/// States the prices last read and the capacity errors that are remembered in some offerings, or in all.
fn state_offerings(context: &mut Context<'_>, concerned: Option<&[OfferingKey]>) {
    let karpenter = &mut context.karpenter;
    let (unavailable, rates, price_list) = (&karpenter.unavailable, &karpenter.prices.rates, &context.setup.price_list);
    let version = context.setup.versions.karpenter;
    let state = |name: Symbol, offering: &Offering| {
        if let Some(reservation) = offering.reservation {
            let exhausted = unavailable.contains(&(name, offering.zone, reservation.id));
            return (Some(offering.price), exhausted || reservation.free == 0);
        }
        let key = (name, offering.zone, offering.capacity_type);
        let read = rates.get(&key).copied();
        let price = if offering.capacity_type == well_known::ON_DEMAND {
            let listed = || price_list.instance_type(name).and_then(|kind| kind.on_demand);
            read.and_then(|_| listed()).map(|price| price.rate)
        } else {
            read
        };
        (price, unavailable.contains(&key))
    };
    let whole = |entry: &mut InstanceType| refresh_offerings(std::slice::from_mut(entry), version, state);
    let lists = &mut karpenter.instance_types;
    match concerned {
        Some(some) if has_fixed_places(version) => {
            lists.change_offers_of(some, |name, offering| refresh_offering(name, offering, state));
        }
        None if has_fixed_places(version) => lists.change_offers().iter_mut().flatten().for_each(whole),
        // The labels of these releases' types say where they are available.
        Some(some) => {
            let names: FxHashSet<Symbol> = some.iter().map(|own| own.0).collect();
            lists.change().iter_mut().flatten().filter(|entry| names.contains(&entry.name)).for_each(whole);
        }
        None => lists.change().iter_mut().flatten().for_each(whole),
    }
}

fn pack(context: &Context<'_>, known: &[NodeId], question: &Question) -> PackingPlan {
    let pods = &question.pods;
    let to_place: FxHashSet<PodId> = pods.iter().copied().collect();
    // Pods to place that have a node are on one that leaves.
    let bound = |&node: &NodeId| match question.is_marked(node) {
        true => (bound_pods(context, node, &to_place), None),
        false => (Vec::new(), Some(kept_pods::on_node(context, node))),
    };
    let bound: Vec<(Vec<BoundPod<'_>>, Option<NodePods>)> = known.iter().map(bound).collect();
    let views = known.iter().zip(&bound);
    let nodes: Vec<NodeView<'_>> = views
        .map(|(&node, (pods, summed))| NodeView {
            pods,
            summed: summed.as_ref(),
            ..view_of(context, node, summed.is_none())
        })
        .collect();
    let pending: Vec<PendingPod<'_>> = pods.iter().map(|&pod| pending_pod(context, pod)).collect();
    let situation = Situation { nodes: &nodes, pods: &pending, reserved: ReservedMode::Strict, ties: ties(context) };
    let most = time(context).map(|time| work_within(model::PASS_LIMIT, time.speed_percent));
    let kind = context.karpenter.settings.map_or(PackerKind::Karpenter, |settings| settings.packer);
    with_packing_setup(context, |setup| {
        let mut packer = context.karpenter.instance_types.packer(&context.karpenter.pools, setup);
        match kind {
            PackerKind::Karpenter => packer.get().pack_within(&situation, most),
            PackerKind::CostAware => {
                // A clock here would let the answer depend on the machine.
                let mut effort = Effort { steps: Effort::QUICK, go_on: &mut || true };
                packer.get().pack_cost_aware(&situation, &mut effort)
            }
        }
    })
}

fn bound_pods<'a>(context: &'a Context<'_>, node: NodeId, to_place: &FxHashSet<PodId>) -> Vec<BoundPod<'a>> {
    let bound = context.world.node(node).pods.iter().filter(|&&pod| !context.world.pod(pod).finished);
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

/// Nominates nodes, makes claims, and says of the rest why it cannot be placed; a plan without claims comes back.
fn apply(
    context: &mut Context<'_>,
    now: SimTime,
    known: &[NodeId],
    pods: &[PodId],
    plan: PackingPlan,
) -> Option<PackingPlan> {
    let version = context.setup.versions.karpenter;
    let settings = context.karpenter.settings?;
    let until = now + nomination_window(version, settings);
    for placement in &plan.existing {
        if let Some(&node) = known.get(placement.node) {
            nominate(context, node, until);
        }
    }
    for unplaced in &plan.unschedulable {
        let pod = pods[unplaced.pod];
        if context.world.pod(pod).finished {
            continue;
        }
        context.world.note_pod(pod, now, EventKind::PodNotPlaced, &unplaced.reason.to_string());
    }
    if plan.claims.is_empty() {
        return Some(plan);
    }
    let placed: usize = plan.claims.iter().map(|claim| claim.pods.len()).sum();
    let message = format!(
        "found {}; {} will fit {}",
        counted(pods.len() as u64, "provisionable pod", "provisionable pods"),
        counted(plan.claims.len() as u64, "new node", "new nodes"),
        counted(placed as u64, "pod", "pods")
    );
    context.world.note(now, EventKind::ClaimsComputed, None, message);
    for claim in plan.claims {
        if version >= KarpenterVersion::V1_13 && exceeds_limits(context, claim.pool) {
            let message = format!("NodePool {}: over its limits, no node is launched", claim.node_pool);
            context.world.note(now, EventKind::LaunchFailed, None, message);
            continue;
        }
        let own: Vec<PodId> = claim.pods.iter().map(|&pod| pods[pod]).collect();
        let node = make_claim(context, now, claim);
        assignment::assign(context, own, node);
        // From v1 on a claim is nominated only when a later pass puts pods on it.
        if version < KarpenterVersion::V1_13 {
            nominate(context, node, until);
        }
    }
    None
}

/// Whether the nodes of a pool are more than its limits allow; just as much is not more.
///
/// Source: Karpenter core v1.13 `pkg/apis/v1/nodepool.go`, `Limits.ExceededBy`.
pub(super) fn exceeds_limits(context: &Context<'_>, pool: usize) -> bool {
    let pool = &context.karpenter.pools[pool];
    if pool.limits.is_empty() {
        return false;
    }
    let launched = |&&node: &&NodeId| {
        let state = context.world.node(node);
        state.phase != NodePhase::Claimed && state.origin.name() == pool.name && is_managed(context, node)
    };
    let nodes: Vec<NodeId> = context.world.live_nodes().iter().filter(launched).copied().collect();
    pool.limits.iter().any(|(name, limit)| {
        let one = |node: &NodeId| {
            if name == ResourceName::NODES { 1 } else { context.world.node(*node).capacity.get(name) }
        };
        nodes.iter().map(one).sum::<i64>() > limit
    })
}

/// The capacity types that a claim may have and of which one of its types has an available offering, in order of name.
pub(super) fn capacity_types(context: &Context<'_>, claim: &PlannedClaim) -> Vec<Symbol> {
    let lists = &context.karpenter.instance_types;
    let types = &lists[claim.pool];
    let offerings = claim.instance_types.iter().flat_map(|own| &types[own.index as usize].offerings);
    let terms = Terms::new(&claim.requirements, well_known::CAPACITY_TYPE);
    let most = lists.capacity_types(claim.pool).iter().filter(|&&own| terms.allow_capacity_type(own)).count();
    let mut found: Vec<Symbol> = Vec::with_capacity(most);
    for offering in offerings.filter(|offering| offering.available) {
        if found.len() == most {
            break;
        }
        if !found.contains(&offering.capacity_type) && terms.allow(offering) {
            found.push(offering.capacity_type);
        }
    }
    found.sort_unstable();
    found
}

/// Makes a claim and asks for its launch.
pub(super) fn make_claim(context: &mut Context<'_>, now: SimTime, plan: PlannedClaim) -> NodeId {
    let count = context.karpenter.claims_made.entry(plan.node_pool).or_insert(0);
    *count += 1;
    let count = *count;
    let new = NewNode {
        name: format!("{}-{count:05}", plan.node_pool),
        drawn: names::of_claim(context, plan.node_pool, count),
        origin: NodeOrigin::NodePool(plan.node_pool),
        labels: plan.labels.clone(),
        taints: plan.taints.clone(),
        startup_taints: plan.startup_taints.clone(),
    };
    let node = context.world.add_node(new, now, &launch_text(&plan));
    let facts = ClaimFacts {
        requests: plan.requests.clone(),
        types: plan.instance_types.len(),
        capacity_types: capacity_types(context, &plan),
    };
    context.world.describe_claim(node, facts);
    let template = Arc::clone(&context.karpenter.pools[plan.pool]);
    if let Some(age) = template.expire_after {
        context.queue.schedule(whole(now) + age, class::NODE_AUTOSCALER, Event::Expired(node));
    }
    context.karpenter.nodes.insert(node, ClaimState::new(template));
    let types = plan.instance_types.iter().map(|kind| kind.index).collect();
    let claim = Claim { pool: plan.pool, requirements: plan.requirements, requests: plan.requests, types, refusals: 0 };
    launch::request(context, now, node, claim);
    node
}

/// What is asked for, in the shape of Karpenter's own log line.
fn launch_text(plan: &PlannedClaim) -> String {
    let first: Vec<&str> = plan.instance_types.iter().take(5).map(|kind| kind.name.as_str()).collect();
    let others = plan.instance_types_before_cut.saturating_sub(first.len());
    let others =
        if others == 0 { String::new() } else { format!(" and {}", counted(others as u64, "other", "others")) };
    let pods = counted(plan.pods.len() as u64, "pod", "pods");
    format!("{pods} requesting {{{}}} from types {}{others}", plan.requests, first.join(", "))
}
