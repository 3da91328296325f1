//! What people ask of a running simulation, answered by the code that decides: what stands against a node's removal, where its
//! pods would go, what Karpenter would do with a pod. Nothing is decided here and nothing is recorded.

use std::cmp::Reverse;

use super::claims::{is_nominated, nominated_until};
use super::cluster_view::with_view;
use super::io::Outside;
use super::step::Step;
use super::{Karpenter, provisioning, static_pools, termination};
use crate::disruption::{
    Allowance, Candidate, ClusterView, Decision, Method, MethodResult, NoOp, Obstacle, PodPlace, Simulation, WhatIf,
    against_static_drift, candidates, described, evaluate, multi_node, objections,
};
use crate::packing::{Packer, PackingPlan, PlannedClaim, PoolVerdict, refusal_of};
use nodecast_model::cluster::Cluster;
use nodecast_model::domain::node_pool::DisruptionReason;
use nodecast_model::domain::{HourlyRate, NodeId, PodId, SimTime, Symbol};

/// What Karpenter says of a node.
#[derive(Clone, PartialEq, Debug)]
pub struct NodeAnswer {
    /// Everything that stands against each method, in the order in which the methods are tried.
    pub methods: Vec<(&'static str, Vec<String>)>,
    /// Nodes of its NodePool that its budgets let go now, by reason; `None` without a limit.
    pub budgets: Vec<(&'static str, Option<i64>)>,
    /// From when on it counts as left alone for `consolidateAfter`, if pods leave it alone.
    pub consolidatable_from: Option<SimTime>,
    /// Until when pods are taken to be on their way to it.
    pub nominated_until: Option<SimTime>,
    /// Nodes that multi-node consolidation would take together with it now.
    pub together: Vec<NodeId>,
    /// What consolidation of the node alone would come to, whatever stands against it.
    pub removal: Option<Removal>,
    /// What its replacement for drift would come to, whatever stands against it; `None` if it is not drifted, or of a static pool, whose nodes
    /// are replaced one for one.
    pub replacement: Option<Removal>,
}

/// What the removal of some nodes would come to.
#[derive(Clone, PartialEq, Debug)]
pub struct Removal {
    /// What would be done, in a word: `delete`, `replace` or `nothing`.
    pub verdict: &'static str,
    /// Why nothing would be done.
    pub because: Option<String>,
    /// What the nodes cost per hour; nothing if one of them has no known offering.
    pub price: HourlyRate,
    /// Nodes that would be launched.
    pub launches: Vec<Launch>,
    /// Where each of their pods would go.
    pub pods: Vec<(PodId, Destination)>,
}

/// A node that would be launched.
#[derive(Clone, PartialEq, Debug)]
pub struct Launch {
    /// Its NodePool.
    pub node_pool: Symbol,
    /// The cheapest instance type that would do, and its price.
    pub cheapest: Option<(Symbol, Option<HourlyRate>)>,
    /// How many types would do.
    pub types: usize,
}

/// Where a pod would go.
#[derive(Clone, PartialEq, Debug)]
pub enum Destination {
    /// To a node that exists.
    Node(NodeId),
    /// To a node that exists but is not initialized, so that it would have to wait.
    Unready(NodeId),
    /// To a launched node, by its place in [`Removal::launches`].
    New(usize),
    /// Nowhere, and why.
    Nowhere(String),
    /// It is not moved: it belongs to its node, has ended or may not be evicted.
    NotMoved,
}

impl Launch {
    fn from_claim(claim: &PlannedClaim) -> Self {
        let first = claim.instance_types.first();
        Self {
            node_pool: claim.node_pool,
            cheapest: first.map(|item| (item.name, item.price)),
            types: claim.instance_types.len(),
        }
    }
}

impl Karpenter {
    /// What stands against the removal of a node, and what it would come to; `None` if Karpenter does not see the node now or its
    /// release has no disruption loop.
    pub fn about_node(
        &mut self,
        now: SimTime,
        cluster: &Cluster,
        outside: &dyn Outside,
        node: NodeId,
    ) -> Option<NodeAnswer> {
        self::node(&mut Step::new(self, cluster, outside), now, node)
    }

    /// What the removal of some nodes for a reason would come to, whatever stands against it.
    pub fn about_removal(
        &mut self,
        now: SimTime,
        cluster: &Cluster,
        outside: &dyn Outside,
        nodes: &[NodeId],
        reason: DisruptionReason,
    ) -> Option<Removal> {
        removal(&mut Step::new(self, cluster, outside), now, nodes, reason)
    }

    /// Whether some node is drifted.
    pub fn some_drifted(&self) -> bool {
        self.nodes.values().any(|claim| claim.drifted.is_some())
    }

    /// The drifted nodes that are not on their way out, each with the first thing that keeps it from being replaced; nothing where its turn has
    /// not come.
    pub fn drifted_nodes(
        &mut self,
        now: SimTime,
        cluster: &Cluster,
        outside: &dyn Outside,
    ) -> Vec<(NodeId, Option<Obstacle>)> {
        self::drifted_nodes(&mut Step::new(self, cluster, outside), now)
    }

    /// The pods that have to leave a node before its drain is over, each with whether `karpenter.sh/do-not-disrupt` keeps Karpenter from
    /// having it evicted now.
    pub fn drain_waits_for(
        &mut self,
        now: SimTime,
        cluster: &Cluster,
        outside: &dyn Outside,
        node: NodeId,
    ) -> Vec<(PodId, bool)> {
        termination::waits_for(&Step::new(self, cluster, outside), now, node)
    }

    /// What a scheduling pass would do with a pod that waits now; `None` if it would not take the pod on.
    pub fn about_pod(
        &mut self,
        now: SimTime,
        cluster: &Cluster,
        outside: &dyn Outside,
        pod: PodId,
    ) -> Option<PodAnswer> {
        self::pod(&mut Step::new(self, cluster, outside), now, pod)
    }
}

fn node(step: &mut Step<'_>, now: SimTime, node: NodeId) -> Option<NodeAnswer> {
    if !step.has_disruption_loop() || !step.is_managed(node) {
        return None;
    }
    provisioning::refresh(step, now);
    let pending = provisioning::provisionable(step, now);
    let unix_seconds = step.karpenter.settings.unix_seconds(now);
    let nominated_until = nominated_until(step, node).filter(|_| is_nominated(step, now, node));
    let consolidatable_from = consolidatable_from(step, node);
    let is_static = step.pool_of(node).is_some_and(|pool| pool.replicas.is_some());
    let drifts = !is_static && step.karpenter.nodes.get(&node).is_some_and(|claim| claim.drifted.is_some());
    let [consolidated, drifted] = [DisruptionReason::Underutilized, DisruptionReason::Drifted];
    let replacement = drifts.then(|| removal(step, now, &[node], drifted)).flatten();
    let removal = removal(step, now, &[node], consolidated);
    let gate_off = is_static && !static_pools::are_on(step);
    let karpenter = &*step.karpenter;
    with_view(step, now, &pending, |setup, view, known| {
        let position = known.iter().position(|item| *item == node)?;
        let drift = if is_static { Method::StaticDrift } else { Method::Drift };
        let methods = [("empty", Method::Emptiness), ("drift", drift), ("consolidation", Method::SingleNode)];
        let reasons = [DisruptionReason::Empty, DisruptionReason::Drifted, DisruptionReason::Underutilized];
        let pool = view.nodes[position].pool(view.pools)?;
        let against = |method| {
            let mut reasons: Vec<String> = objections(view, position, method).iter().map(ToString::to_string).collect();
            if method == Method::StaticDrift {
                reasons.extend(gate_off.then(|| "the feature gate StaticCapacity is off".to_owned()));
                reasons.extend(against_static_drift(view, pool).map(|kind| kind.as_str().to_owned()));
            }
            reasons
        };
        let left = |reason| view.allowances(reason, unix_seconds)[pool].0;
        let limited = |reason| Some(left(reason)).filter(|&left| left < i64::from(i32::MAX) / 2);
        let mut packer = karpenter.instance_types.packer(&karpenter.pools, setup);
        Some(NodeAnswer {
            methods: methods.into_iter().map(|(name, method)| (name, against(method))).collect(),
            budgets: reasons.into_iter().map(|reason| (reason.as_str(), limited(reason))).collect(),
            consolidatable_from,
            nominated_until,
            together: together(packer.get(), view, position, unix_seconds)
                .into_iter()
                .map(|item| known[item])
                .collect(),
            removal,
            replacement,
        })
    })
}

/// From when on the node counts as left alone, if nothing happens on it.
fn consolidatable_from(step: &Step<'_>, node: NodeId) -> Option<SimTime> {
    let claim = step.karpenter.nodes.get(&node)?;
    let after = step.pool_of(node)?.disruption.consolidate_after?;
    Some(claim.last_pod_event.or(claim.initialized_at)? + after)
}

/// The nodes that multi-node consolidation would take now, if the node is one of them.
fn together(packer: &mut Packer<'_>, view: &ClusterView<'_>, node: usize, unix_seconds: i64) -> Vec<usize> {
    let found = candidates(view, Method::MultiNode);
    let mut allowances = view.allowances(DisruptionReason::Underutilized, unix_seconds);
    match multi_node(&mut WhatIf::new(packer, view), &found, &mut allowances, None) {
        MethodResult::Command(command) if command.nodes.contains(&node) => command.nodes,
        _ => Vec::new(),
    }
}

fn removal(step: &mut Step<'_>, now: SimTime, nodes: &[NodeId], reason: DisruptionReason) -> Option<Removal> {
    provisioning::refresh(step, now);
    let pending = provisioning::provisionable(step, now);
    let shared = &*step;
    with_view(shared, now, &pending, |setup, view, known| {
        let position = |node: &NodeId| known.iter().position(|item| item == node);
        let taken: Option<Vec<Candidate>> = nodes.iter().map(|node| described(view, position(node)?)).collect();
        let taken = taken?;
        let taken: Vec<&Candidate> = taken.iter().collect();
        let mut packer = shared.karpenter.instance_types.packer(&shared.karpenter.pools, setup);
        let mut what_if = WhatIf::new(packer.get(), view);
        let removal = match reason {
            DisruptionReason::Drifted | DisruptionReason::Expired => {
                drifted(what_if.simulate(&taken), shared.karpenter.behaviour.skips_unplaceable)
            }
            DisruptionReason::Empty | DisruptionReason::Underutilized => consolidated(&mut what_if, &taken),
        };
        let (verdict, because, price, launches, simulation) = removal;
        let pods = destinations(shared, &taken, known, &simulation);
        Some(Removal { verdict, because, price, launches: launches.iter().map(Launch::from_claim).collect(), pods })
    })
}

fn drifted_nodes(step: &mut Step<'_>, now: SimTime) -> Vec<(NodeId, Option<Obstacle>)> {
    if !step.karpenter.behaviour.methods.contains(&Method::Drift) {
        return Vec::new();
    }
    provisioning::refresh(step, now);
    let pending = provisioning::provisionable(step, now);
    let unix_seconds = step.karpenter.settings.unix_seconds(now);
    let shared = &*step;
    with_view(shared, now, &pending, |setup, view, known| {
        let mut packer = shared.karpenter.instance_types.packer(&shared.karpenter.pools, setup);
        let mut what_if = WhatIf::new(packer.get(), view);
        let left = view.allowances(DisruptionReason::Drifted, unix_seconds);
        let stays = |position: &usize| {
            let facts = &view.nodes[*position];
            facts.drifted.is_some() && !facts.marked_for_deletion()
        };
        let drifted = (0..known.len()).filter(stays);
        drifted.map(|position| (known[position], kept_drifted(shared, &mut what_if, &left, position))).collect()
    })
}

/// The first thing that keeps a drifted node from being replaced, in the order in which the loop looks; `left` is what budgets let go.
fn kept_drifted(step: &Step<'_>, what_if: &mut WhatIf<'_, '_>, left: &[Allowance], node: usize) -> Option<Obstacle> {
    let view = what_if.view();
    let Some(candidate) = described(view, node) else { return Some(Obstacle::NoNodePool) };
    let is_static = view.pools[candidate.pool].pool.replicas.is_some();
    let method = if is_static { Method::StaticDrift } else { Method::Drift };
    if let Some(first) = objections(view, node, method).first() {
        return Some(first.into());
    }
    if left[candidate.pool].0 <= 0 {
        return Some(Obstacle::NodeBudget);
    }
    if is_static {
        let gate_off = !static_pools::are_on(step);
        return gate_off.then_some(Obstacle::StaticPool).or_else(|| against_static_drift(view, candidate.pool));
    }
    let failure = what_if.simulate(&[&candidate]).failure.filter(|_| step.karpenter.behaviour.skips_unplaceable)?;
    Some(Obstacle::from(&NoOp::PodsStay(failure)))
}

/// What a what-if comes to: what would be done, why nothing would be, the price of the nodes, and the claims.
type Answer = (&'static str, Option<String>, HourlyRate, Vec<PlannedClaim>, Simulation);

/// `skips` says whether the release leaves nodes alone whose pods would have no place.
fn drifted(simulation: Simulation, skips: bool) -> Answer {
    let because = simulation.failure.as_ref().filter(|_| skips).map(ToString::to_string);
    let claims = simulation.plan.claims.clone();
    let verdict = if because.is_some() { "nothing" } else { "replace" };
    (verdict, because, HourlyRate::ZERO, claims, simulation)
}

fn consolidated(what_if: &mut WhatIf<'_, '_>, taken: &[&Candidate]) -> Answer {
    let evaluation = evaluate(what_if, taken);
    // Where nothing is done, the claims that the packer would need show why.
    let packed = || evaluation.simulation.plan.claims.clone();
    let (verdict, because, claims) = match &evaluation.decision {
        Decision::NoOp(why) => ("nothing", Some(why.to_string()), packed()),
        Decision::Delete => ("delete", None, Vec::new()),
        Decision::Replace(claim) => ("replace", None, vec![(**claim).clone()]),
    };
    (verdict, because, evaluation.price, claims, evaluation.simulation)
}

/// Where each pod of the taken nodes would go.
fn destinations(
    step: &Step<'_>,
    taken: &[&Candidate],
    known: &[NodeId],
    simulation: &Simulation,
) -> Vec<(PodId, Destination)> {
    let plan = &simulation.plan;
    let of = |asked: usize| -> Destination {
        if let Some(place) = plan.existing.iter().find(|plan| plan.pods.contains(&asked)) {
            let node = known[place.node];
            let state = step.cluster.node(node);
            let ready = state.initialized || !step.is_managed(node);
            return if ready { Destination::Node(node) } else { Destination::Unready(node) };
        }
        if let Some(claim) = plan.claims.iter().position(|claim| claim.pods.contains(&asked)) {
            return Destination::New(claim);
        }
        let reason = plan.unschedulable.iter().find(|plan| plan.pod == asked).map(|plan| plan.reason.to_string());
        Destination::Nowhere(reason.unwrap_or_default())
    };
    let mut found = Vec::new();
    for candidate in taken {
        for (position, &pod) in step.cluster.node(known[candidate.node]).pods.iter().enumerate() {
            let place = PodPlace::Taken { node: candidate.node, pod: position };
            let asked = simulation.pods.iter().position(|pod| *pod == place);
            found.push((pod, asked.map_or(Destination::NotMoved, of)));
        }
    }
    found
}

/// What Karpenter says of a pod that waits.
#[derive(Clone, PartialEq, Debug)]
pub struct PodAnswer {
    /// Where it would go.
    pub destination: Destination,
    /// The node that would be launched for it.
    pub launch: Option<Launch>,
    /// What each NodePool that was asked says, in the order in which they are tried, type by type; none where the pod goes on a
    /// node that exists.
    pub pools: Vec<PoolVerdict>,
}

fn pod(step: &mut Step<'_>, now: SimTime, pod: PodId) -> Option<PodAnswer> {
    provisioning::refresh(step, now);
    let pending = provisioning::provisionable(step, now);
    let asked = pending.iter().position(|item| *item == pod)?;
    let shared = &*step;
    with_view(shared, now, &pending, |setup, view, known| {
        let mut packer = shared.karpenter.instance_types.packer(&shared.karpenter.pools, setup);
        let mut what_if = WhatIf::new(packer.get(), view);
        let simulation = what_if.simulate(&[]);
        let plan = &simulation.plan;
        if let Some(place) = plan.existing.iter().find(|plan| plan.pods.contains(&asked)) {
            let destination = Destination::Node(known[place.node]);
            return Some(PodAnswer { destination, launch: None, pools: Vec::new() });
        }
        let pools = verdicts(shared, plan, asked);
        if let Some(index) = plan.claims.iter().position(|claim| claim.pods.contains(&asked)) {
            let launch = plan.claims.get(index).map(Launch::from_claim);
            return Some(PodAnswer { destination: Destination::New(index), launch, pools });
        }
        let reason = plan.unschedulable.iter().find(|plan| plan.pod == asked).map(|plan| plan.reason.to_string());
        Some(PodAnswer { destination: Destination::Nowhere(reason.unwrap_or_default()), launch: None, pools })
    })
}

/// What the NodePools say to the pod at `asked` of the plan. Where a claim takes it, those after the claim's were not asked.
fn verdicts(step: &Step<'_>, plan: &PackingPlan, asked: usize) -> Vec<PoolVerdict> {
    let (karpenter, pools) = (step.karpenter.settings.release, &step.karpenter.pools);
    let claim = plan.claims.iter().find(|claim| claim.pods.contains(&asked));
    let mut order: Vec<usize> = (0..pools.len()).collect();
    order.sort_by_key(|&pool| (Reverse(pools[pool].weight), Reverse(pools[pool].name)));
    let verdict = |pool: usize| {
        let this_pool = &pools[pool];
        let types = (karpenter, step.karpenter.instance_types.get(pool).map_or(&[][..], Vec::as_slice));
        let opened = claim.filter(|claim| claim.pool == pool).map(|claim| PoolVerdict::usable(claim, types));
        let refused =
            || Some(PoolVerdict::refused(this_pool.name, refusal_of(plan, this_pool.name, Some(asked))?, types));
        opened.or_else(|| PoolVerdict::aside(this_pool)).or_else(refused)
    };
    order.into_iter().filter_map(verdict).collect()
}
