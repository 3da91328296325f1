//! One scheduling pass: what is pending goes to the packer, and what the packer wants launched becomes node claims.
//!
//! Source: Karpenter core v1.13 `pkg/controllers/provisioning/provisioner.go`.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::claims::{ClaimState, is_marked, nominate, whole};
use super::cluster_view::{known_nodes, pending_pod, ties, unnamed_pod_view, view_of, with_packing_setup};
use super::io::{Action, Busy, Fact, NewClaim, Timer};
use super::step::Step;
use super::unavailable::OfferingKey;
use super::{Claim, assignment, batching, daemons, disruption, launch, node_pods_cache, reservations};
use crate::bin_packing::Effort;
use crate::controller_time as model;
use crate::instance_types::{InstanceType, Offering, has_fixed_places, refresh_offering, refresh_offerings};
use crate::packing::{
    BoundPod, LeftOut, NodePods, NodeView, PackerKind, PackingPlan, PendingPod, PlannedClaim, ReservedMode, Situation,
    takes_on_in,
};
use crate::selection::price::Terms;
use nodecast_model::cluster::{NewNode, NodeOrigin, NodePhase};
use nodecast_model::control_plane::eviction;
use nodecast_model::domain::controller_time::{at_speed, work_within};
use nodecast_model::domain::words::counted;
use nodecast_model::domain::{
    CommandId, HourlyRate, NodeId, NodePool, PodId, PodSpec, ResourceName, SimDuration, SimTime, Symbol, well_known,
};

/// One pass. While a claim waits for its launch to be answered the pass is given up: the pods trigger again later.
pub(super) fn pass(step: &mut Step<'_>, now: SimTime) {
    if disruption::is_unsynced(step) {
        return;
    }
    let mut pods = taken_on(step, now);
    pods.extend(leaving_pods(step, now));
    if pods.is_empty() && step.karpenter.buffers.is_empty() {
        return;
    }
    step.karpenter.passes += 1;
    refresh(step, now);
    let known = known_nodes(step);
    let plan = pack(step, &known, &pods);
    let passing = Passing { known, pods, plan };
    let Some(time) = step.karpenter.settings.time else { return carry_out(step, now, passing) };
    let took = at_speed(model::pass(&passing.plan.work), time.speed_percent);
    step.act(Action::Takes { what: Busy::Pass, took, cut: !passing.plan.unreached.is_empty() });
    step.karpenter.passing = Some(Box::new(passing));
    batching::pass_begins(step);
    step.wake(now + took, Timer::PassFinished);
}

/// A pass that has been worked out and is not carried out yet.
#[derive(Debug)]
pub(super) struct Passing {
    /// The nodes that it knew.
    known: Vec<NodeId>,
    /// The pods to place.
    pods: Vec<PodId>,
    plan: PackingPlan,
}

/// The time of the pass is over: what it came to by what it saw at its start is carried out.
pub(super) fn finished(step: &mut Step<'_>, now: SimTime) {
    if let Some(passing) = step.karpenter.passing.take() {
        carry_out(step, now, *passing);
    }
    batching::pass_ends(step, now);
}

/// Pods that the scheduler could not place and that a pass takes on.
pub(super) fn provisionable(step: &Step<'_>, now: SimTime) -> Vec<PodId> {
    let wanted = |pod: &PodId| {
        let state = step.cluster.pod(*pod);
        !state.daemon
            && !assignment::is_assigned(step, now, *pod)
            && takes_on_in(&state.spec, step.karpenter.settings.release).is_ok()
    };
    step.outside.unschedulable_pods(step.cluster).into_iter().filter(wanted).collect()
}

/// Pods that the scheduler could not place, but for those that no pass takes on; of these is said why, unless they do not
/// want a node of Karpenter's.
fn taken_on(step: &mut Step<'_>, now: SimTime) -> Vec<PodId> {
    let mut verdicts: FxHashMap<*const PodSpec, Result<(), LeftOut>> = FxHashMap::default();
    let (mut taken, mut refused) = (Vec::new(), Vec::new());
    for pod in step.outside.unschedulable_pods(step.cluster).into_iter() {
        let state = step.cluster.pod(pod);
        if state.daemon || assignment::is_assigned(step, now, pod) {
            continue;
        }
        // Pods of one workload share their specification.
        match *verdicts
            .entry(Arc::as_ptr(&state.spec))
            .or_insert_with(|| takes_on_in(&state.spec, step.karpenter.settings.release))
        {
            Ok(()) => taken.push(pod),
            Err(LeftOut::NotForKarpenter) => {}
            Err(reason) => refused.push((pod, reason)),
        }
    }
    for (pod, reason) in refused {
        step.note_pod(pod, Fact::PodNotPlaced, reason.to_string());
    }
    taken
}

/// Pods of nodes that are being removed: those that will be evicted and come back.
///
/// Source: Karpenter core v1.13 `pkg/utils/node/node.go`, `GetCurrentlyReschedulablePods`. Releases before v1.4 do not ask for
/// budgets.
fn leaving_pods(step: &Step<'_>, now: SimTime) -> Vec<PodId> {
    let (asks_budgets, asks_pods) =
        (step.karpenter.behaviour.leaves_blocked_pods, step.karpenter.behaviour.leaves_protected_pods);
    let leaving = |&&node: &&NodeId| is_marked(step, node) && step.cluster.node(node).phase == NodePhase::Registered;
    step.cluster
        .live_nodes()
        .iter()
        .filter(leaving)
        .flat_map(|&node| step.cluster.node(node).pods.iter().copied())
        .filter(|&pod| {
            let view = unnamed_pod_view(step, pod);
            let comes_back = view.is_reschedulable() && (!asks_pods || view.is_disruptable(now));
            comes_back && (!asks_budgets || !is_fully_blocked(step, pod))
        })
        .collect()
}

/// Prices as Karpenter last read them.
#[derive(Debug, Default)]
pub(super) struct PriceBook {
    as_of: Option<SimTime>,
    rates: FxHashMap<OfferingKey, HourlyRate>,
}

/// Karpenter reads all prices when it starts and then at this interval.
///
/// Source: AWS provider v1.13 `pkg/controllers/providers/pricing/controller.go`.
const PRICES_EVERY: SimDuration = SimDuration::from_secs(12 * 3_600);

impl PriceBook {
    /// As of when prices are to be read, if the time for it has passed: as they were at that time, not as they are now.
    pub(super) fn due(&self, now: SimTime) -> Option<SimTime> {
        let turn = now.as_micros().div_euclid(PRICES_EVERY.as_micros());
        let as_of = SimTime::from_micros(turn * PRICES_EVERY.as_micros());
        (self.as_of != Some(as_of)).then_some(as_of)
    }

    /// As of when they were last read.
    pub(super) const fn read_as_of(&self) -> Option<SimTime> {
        self.as_of
    }

    /// Reads them as of then.
    pub(super) fn read<'t>(
        &mut self,
        as_of: SimTime,
        types: impl Iterator<Item = &'t InstanceType> + Clone,
        mut price: impl FnMut(Symbol, &Offering) -> Option<HourlyRate>,
    ) {
        self.as_of = Some(as_of);
        self.rates.clear();
        self.rates.reserve(types.clone().map(|kind| kind.offerings.len()).sum());
        for kind in types {
            for offering in &kind.offerings {
                if let Some(rate) = price(kind.name, offering) {
                    self.rates.insert((kind.name, offering.zone, offering.capacity_type), rate);
                }
            }
        }
    }
}

/// Whether the pod's budgets never let it go.
fn is_fully_blocked(step: &Step<'_>, pod: PodId) -> bool {
    let (cluster, pod) = (step.cluster, step.cluster.pod(pod));
    let protectors = step.outside.protections().of_pod(cluster, pod);
    eviction::is_fully_blocked(&protectors, pod.is_ready(), |only| {
        let only = &cluster.budgets()[only];
        (only.rule.allows_nothing(), only.always_allow_unhealthy)
    })
}

/// Brings the offerings up to date with the prices last read and the capacity errors that are still remembered. Most passes
/// find all of these as the last one left them, and nothing is to be done.
pub(super) fn refresh(step: &mut Step<'_>, now: SimTime) {
    reservations::refresh(step, now);
    daemons::learn(step, now);
    let karpenter = &mut *step.karpenter;
    karpenter.unavailable.expire(now);
    let stale = std::mem::take(&mut karpenter.offerings_stale);
    let concerned = karpenter.unavailable.take_concerned();
    if stale || !concerned.is_empty() {
        state_offerings(step, if stale { None } else { Some(&concerned) });
    }
}

/// States the prices last read and the capacity errors that are remembered in some offerings, or in all.
fn state_offerings(step: &mut Step<'_>, concerned: Option<&[OfferingKey]>) {
    let karpenter = &mut *step.karpenter;
    let (unavailable, rates, withdrawn) = (&karpenter.unavailable, &karpenter.prices.rates, &karpenter.withdrawn);
    let version = karpenter.settings.release;
    let state = |name: Symbol, offering: &Offering| {
        if let Some(reservation) = offering.reservation {
            let exhausted = unavailable.contains(&(name, offering.zone, reservation.id));
            return (Some(offering.price), exhausted || reservation.free == 0);
        }
        let key = (name, offering.zone, offering.capacity_type);
        (rates.get(&key).copied(), unavailable.contains(&key) || withdrawn.contains(&name))
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
            let names: FxHashSet<Symbol> = some.iter().map(|pair| pair.0).collect();
            lists.change().iter_mut().flatten().filter(|entry| names.contains(&entry.name)).for_each(whole);
        }
        None => lists.change().iter_mut().flatten().for_each(whole),
    }
}

fn pack(step: &Step<'_>, known: &[NodeId], pods: &[PodId]) -> PackingPlan {
    let to_place: FxHashSet<PodId> = pods.iter().copied().collect();
    // Pods to place that have a node are on one that leaves.
    let bound = |&node: &NodeId| match is_marked(step, node) {
        true => (bound_pods(step, node, &to_place), None),
        false => (Vec::new(), Some(node_pods_cache::on_node(step, node))),
    };
    let bound: Vec<(Vec<BoundPod<'_>>, Option<NodePods>)> = known.iter().map(bound).collect();
    let views = known.iter().zip(&bound);
    let nodes: Vec<NodeView<'_>> = views
        .map(|(&node, (pods, summed))| NodeView {
            pods,
            summed: summed.as_ref(),
            ..view_of(step, node, summed.is_none())
        })
        .collect();
    let mut pending: Vec<PendingPod<'_>> = pods.iter().map(|&pod| pending_pod(step, pod)).collect();
    pending.extend(step.karpenter.buffers.pending());
    let situation = Situation { nodes: &nodes, pods: &pending, reserved: ReservedMode::Strict, ties: ties(step) };
    let time = step.karpenter.settings.time.filter(|_| step.karpenter.behaviour.limits_passes);
    let most = time.map(|time| work_within(model::PASS_LIMIT, time.speed_percent));
    let kind = step.karpenter.settings.flags.packer;
    with_packing_setup(step, |setup| {
        let mut packer = step.karpenter.instance_types.packer(&step.karpenter.pools, setup);
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

fn bound_pods<'a>(step: &'a Step<'_>, node: NodeId, to_place: &FxHashSet<PodId>) -> Vec<BoundPod<'a>> {
    let bound = step.cluster.node(node).pods.iter().filter(|&&pod| !step.cluster.pod(pod).finished);
    bound
        .map(|&pod| {
            let state = step.cluster.pod(pod);
            BoundPod {
                namespace: state.namespace,
                name: step.outside.pod_name(pod),
                spec: &state.spec,
                counts_in_topology: state.is_active() && !to_place.contains(&pod),
            }
        })
        .collect()
}

/// Nominates nodes, makes claims, and says of the rest why it cannot be placed.
fn carry_out(step: &mut Step<'_>, now: SimTime, Passing { known, pods, plan }: Passing) {
    let behaviour = step.karpenter.behaviour;
    let until = now + step.karpenter.nomination_window();
    step.karpenter.buffers.placed(&known, &plan, pods.len());
    // Behind the pods stand those of CapacityBuffers, which nominate nothing and of which nothing is said.
    let is_real = |pod: &&usize| **pod < pods.len();
    for placement in &plan.existing {
        if let Some(&node) = known.get(placement.node).filter(|_| placement.pods.iter().any(|pod| is_real(&pod))) {
            nominate(step, node, until);
        }
    }
    let mut held: BTreeMap<(Symbol, bool), Vec<PodId>> = BTreeMap::new();
    for unplaced in &plan.unschedulable {
        let Some(&pod) = pods.get(unplaced.pod) else { continue };
        if step.cluster.pod(pod).finished {
            continue;
        }
        for (pool, is_on_nodes) in unplaced.reason.limits() {
            held.entry((pool, is_on_nodes)).or_default().push(pod);
        }
        step.note_pod(pod, Fact::PodNotPlaced, unplaced.reason.to_string());
    }
    for ((pool, is_on_nodes), pods) in held {
        note_limit(step, pool, is_on_nodes, pods);
    }
    if plan.claims.is_empty() {
        return;
    }
    let placed: usize = plan.claims.iter().map(|claim| claim.pods.len()).sum();
    let message = format!(
        "found {}{}; {} will fit {}",
        counted(pods.len() as u64, "provisionable pod", "provisionable pods"),
        if step.karpenter.buffers.is_empty() { "" } else { " and those of capacity buffers" },
        counted(plan.claims.len() as u64, "new node", "new nodes"),
        counted(placed as u64, "pod", "pods")
    );
    step.note(Fact::ClaimsComputed, message);
    for claim in plan.claims {
        if behaviour.asks_limits_again && exceeds_limits(step, claim.pool) {
            let message = format!("NodePool {}: over its limits, no node is launched", claim.node_pool);
            step.note(Fact::LaunchFailed, message);
            let pod = claim.pods.iter().filter(is_real).map(|&pod| pods[pod]).collect();
            note_limit(step, claim.node_pool, false, pod);
            continue;
        }
        let pod_ids: Vec<PodId> = claim.pods.iter().filter(is_real).map(|&pod| pods[pod]).collect();
        // From v1 on a claim is nominated only when a later pass puts pods on it.
        let nominated_until = behaviour.nominates_claims.then_some(until);
        make_claim(step, claim, Purpose::Pods { pods: pod_ids, nominated_until });
    }
}

/// Says which pods wait because of the limits of a pool, or of that on its nodes alone.
fn note_limit(step: &mut Step<'_>, node_pool: Symbol, is_on_nodes: bool, pods: Vec<PodId>) {
    let Some(pool) = step.karpenter.pools.iter().find(|pool| pool.name == node_pool) else { return };
    let named = |(resource, _): &(ResourceName, i64)| !is_on_nodes || *resource == ResourceName::NODES;
    let limits = pool.limits.iter().filter(named).collect();
    step.act(Action::LimitReached { node_pool, limits, pods });
}

/// Whether the launched nodes of a pool that stay are more than its limits allow; just as much is not more.
///
/// Source: Karpenter core v1.13 `pkg/apis/v1/nodepool.go`, `Limits.ExceededBy`; `pkg/controllers/state/cluster.go`,
/// `updateNodePoolResources`.
pub(super) fn exceeds_limits(step: &Step<'_>, pool: usize) -> bool {
    let pool = &step.karpenter.pools[pool];
    if pool.limits.is_empty() {
        return false;
    }
    let launched = |&&node: &&NodeId| {
        let state = step.cluster.node(node);
        let counts = state.phase != NodePhase::Claimed && !is_marked(step, node);
        counts && state.origin.name() == pool.name && step.is_managed(node)
    };
    let nodes: Vec<NodeId> = step.cluster.live_nodes().iter().filter(launched).copied().collect();
    pool.limits.iter().any(|(name, limit)| {
        let one = |node: &NodeId| {
            if name == ResourceName::NODES { 1 } else { step.cluster.node(*node).capacity.get(name) }
        };
        nodes.iter().map(one).sum::<i64>() > limit
    })
}

/// The capacity types that a claim may have and of which one of its types has an available offering, in order of name.
pub(super) fn capacity_types(step: &Step<'_>, claim: &PlannedClaim) -> Vec<Symbol> {
    let lists = &step.karpenter.instance_types;
    let types = &lists[claim.pool];
    let offerings =
        claim.instance_types.iter().flat_map(|instance_type| &types[instance_type.index as usize].offerings);
    let terms = Terms::new(&claim.requirements, well_known::CAPACITY_TYPE);
    let most = lists
        .capacity_types(claim.pool)
        .iter()
        .filter(|&&capacity_type| terms.allow_capacity_type(capacity_type))
        .count();
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

/// A claim that has been asked for.
#[derive(Debug)]
pub(super) struct Making {
    template: Arc<NodePool>,
    claim: Claim,
    purpose: Purpose,
}

/// What a claim is made for.
#[derive(Debug)]
pub(super) enum Purpose {
    /// Pods that wait, or leave other nodes.
    Pods {
        /// The pods.
        pods: Vec<PodId>,
        /// Until when they are taken to be on their way to it, in releases that say so.
        nominated_until: Option<SimTime>,
    },
    /// To take the place of a command's nodes.
    Replaces(CommandId),
    /// To bring its pool to its number of nodes.
    Fill,
}

/// Asks for a claim.
pub(super) fn make_claim(step: &mut Step<'_>, plan: PlannedClaim, purpose: Purpose) {
    let count = step.karpenter.claims_made.entry(plan.node_pool).or_insert(0);
    *count += 1;
    let number = *count;
    let template = Arc::clone(&step.karpenter.pools[plan.pool]);
    let new = NewClaim {
        number,
        text: launch_text(&plan),
        requests: plan.requests.clone(),
        types: plan.instance_types.len(),
        capacity_types: capacity_types(step, &plan),
        node: NewNode {
            labels: plan.labels.clone(),
            annotations: template.annotations.clone(),
            taints: plan.taints.clone(),
            startup_taints: plan.startup_taints.clone(),
            ..NewNode::called(format!("{}-{number:05}", plan.node_pool), NodeOrigin::NodePool(plan.node_pool))
        },
    };
    step.act(Action::CreateClaim(Box::new(new)));
    let types = plan.instance_types.iter().map(|kind| kind.index).collect();
    let PlannedClaim { pool, requirements, requests, .. } = plan;
    let claim = Claim { pool, requirements, requests, types, refusals: 0, sent: None };
    step.karpenter.making.push_back(Making { template, claim, purpose });
}

/// A claim is there: asks for its launch.
pub(super) fn claim_created(step: &mut Step<'_>, now: SimTime, node: NodeId) {
    let Some(Making { template, claim, purpose }) = step.karpenter.making.pop_front() else { return };
    if let Some(age) = template.expire_after {
        step.wake(whole(now) + age, Timer::Expired(node));
    }
    step.karpenter.nodes.insert(node, ClaimState::new(template));
    launch::request(step, now, node, claim);
    match purpose {
        Purpose::Pods { pods, nominated_until } => {
            assignment::assign(step, pods, node);
            if let Some(until) = nominated_until {
                nominate(step, node, until);
            }
        }
        Purpose::Replaces(command) => step.karpenter.commands.replaced(command, node),
        Purpose::Fill => {}
    }
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
