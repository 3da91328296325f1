//! One pass of Karpenter over a cluster as files describe it: what it would launch now, and why.
//!
//! What must not live here: time. Nothing starts, nothing is bound.

mod constraints;
mod explanation;
pub mod lints;
mod question;
mod setup;
pub mod standing;
mod zone_ids;

pub use constraints::Constraint;
pub use explanation::{Explanation, PodOutcome};
pub use question::{Inventory, NamedPod, NodeWithPods, PackingQuestion, Setting};
pub(crate) use question::{LAST, last_heard_of};
pub use setup::KarpenterSetup;

use std::sync::Arc;

use nodecast_karpenter::bin_packing::Effort;
use nodecast_karpenter::disruption::{ClusterView, PodBudget, PodView};
use nodecast_karpenter::instance_types::{InstanceType, lay_overlays, types_of_pools};
use nodecast_karpenter::packing::{
    BoundPod, LowerBound, NamespaceView, NodeView, Packer, PackerKind, PackingPlan, PackingSetup, PendingPod,
    PlannedClaim, PoolView, ReservedMode, Situation, TieBreak, Volumes, WhatIf, lower_bound, takes_on_in,
};
use nodecast_karpenter::release::Behaviour;
use nodecast_karpenter::selection::{Choice, LaunchRequest, LaunchView, SelectionError, select};
use nodecast_manifests::SchedulerVerdict;
use nodecast_model::control_plane::eviction::Protections;
use nodecast_model::domain::symbol::well_known;
use nodecast_model::domain::{KarpenterVersion, NodeOverlay, SimTime};

/// One of the ways in which ties may fall.
const TIES: TieBreak = TieBreak::Seeded { seed: 1, pass: 1 };

/// What Karpenter would do with the pods of a [`PackingQuestion`].
#[derive(Clone, Debug)]
pub struct SinglePass<'q> {
    /// What was asked.
    pub question: &'q PackingQuestion,
    /// The instance types of each NodePool, by position in the question.
    pub types: Vec<Vec<InstanceType>>,
    /// Positions in the question of the pods that the pass took on; the plan names pods by position in this list.
    pub asked: Vec<usize>,
    /// Positions in the question of the pods that no pass takes on, with the reason.
    pub left_out: Vec<(usize, String)>,
    /// Where the pods go.
    pub plan: PackingPlan,
    /// The launch request of each claim of the plan, or why there is none.
    pub launches: Vec<Result<LaunchRequest, SelectionError>>,
    /// Who made the plan.
    pub packer: PackerKind,
    /// What no nodes could cost less than that hold the pods that the plan places; `None` if none was asked for.
    pub bound: Option<LowerBound>,
}

impl<'q> SinglePass<'q> {
    /// The pass.
    pub fn from_question(question: &'q PackingQuestion) -> Self {
        let types = question.instance_types();
        let (mut asked, mut left_out) = (Vec::new(), Vec::new());
        for (position, pod) in question.pods.iter().enumerate() {
            if let Some((node, _)) = pod.leaves {
                asked.extend(comes_back(question, pod, node).then_some(position));
                continue;
            }
            match reason_to_leave_out(pod, question.karpenter) {
                Some(reason) => left_out.push((position, reason)),
                None => asked.push(position),
            }
        }
        let every: Vec<usize> = (0..question.node_pools.len()).collect();
        let plan = packed(question, &types, &every, &asked, true, None);
        let launches = plan.claims.iter().map(|claim| launch(question, &types, claim)).collect();
        Self { question, types, asked, left_out, plan, launches, packer: PackerKind::Karpenter, bound: None }
    }

    /// The pass by the cost-aware packer: the same, or one whose launches cost less and leave no more pods without a place.
    #[must_use]
    pub fn with_cheaper_plan(mut self, effort: &mut Effort<'_>) -> Self {
        self.packer = PackerKind::CostAware;
        let every: Vec<usize> = (0..self.question.node_pools.len()).collect();
        let plan = asking(self.question, &self.types, &every, &self.asked, true, |setup, situation| {
            Packer::new(setup).pack_cost_aware(situation, effort)
        });
        let launches: Vec<_> = plan.claims.iter().map(|claim| launch(self.question, &self.types, claim)).collect();
        // What EC2 is asked for may differ from what the packer reckoned with.
        let failing = |launches: &[Result<LaunchRequest, SelectionError>]| launches.iter().any(Result::is_err);
        if !failing(&launches) && !failing(&self.launches) && cost(&launches) < cost(&self.launches) {
            self.plan = plan;
            self.launches = launches;
        }
        self
    }

    /// The pass with a lower bound on what its pods must cost, as good as the effort allows.
    #[must_use]
    pub fn with_bound(mut self, effort: &mut Effort<'_>) -> Self {
        let launched = self.plan.claims.iter().zip(&self.launches).filter(|(_, request)| request.is_ok());
        let mut placed: Vec<usize> = launched.flat_map(|(claim, _)| claim.pods.iter().copied()).collect();
        placed.extend(self.plan.existing.iter().flat_map(|placement| placement.pods.iter().copied()));
        placed.sort_unstable();
        let every: Vec<usize> = (0..self.question.node_pools.len()).collect();
        // Releases that read another region's price list, and all that compare other prices of bare metal, pay what is billed here.
        let billed = self.question.region.compared_as_billed().map(Arc::new);
        let elsewhere = self.question.price_list.name != self.question.region.name;
        // Overlays change what is compared and not what is billed; what they add to nodes is there.
        let overlaid = self.question.node_overlays.iter().any(|node_overlay| node_overlay.price.is_some());
        let own_prices = (elsewhere || billed.is_some() || overlaid).then(|| {
            let region = billed.as_ref().unwrap_or(&self.question.region);
            let mut types = types_of_pools(
                region,
                region,
                &self.question.node_classes,
                &self.question.node_pools,
                self.question.setup.provider,
            );
            let without_price = |node_overlay: &NodeOverlay| NodeOverlay { price: None, ..node_overlay.clone() };
            let overlays: Vec<NodeOverlay> = self.question.node_overlays.iter().map(without_price).collect();
            lay_overlays(self.question.karpenter, &overlays, &self.question.node_pools, &mut types);
            types
        });
        let types = own_prices.as_ref().unwrap_or(&self.types);
        self.bound = Some(asking(self.question, types, &every, &self.asked, true, |setup, situation| {
            lower_bound(&setup, situation.nodes, situation.pods, &placed, effort)
        }));
        self
    }
}

/// What launches cost in an hour, each at its cheapest offer, in nano-units.
fn cost(launches: &[Result<LaunchRequest, SelectionError>]) -> i64 {
    launches.iter().flatten().filter_map(|request| request.cheapest()).map(|price| price.as_nanos()).sum()
}

/// Why no pass takes the pod on.
///
/// Source: Karpenter core v1.13 `pkg/utils/pod/scheduling.go`, `IsProvisionable`; `pkg/controllers/provisioning/provisioner.go`,
/// `Validate`.
fn reason_to_leave_out(pod: &NamedPod, release: KarpenterVersion) -> Option<String> {
    let spec = &pod.spec;
    if !spec.scheduling_gates.is_empty() {
        let gates: Vec<&str> = spec.scheduling_gates.iter().map(|gate| gate.as_str()).collect();
        return Some(format!("its scheduling gates are closed: {}", gates.join(", ")));
    }
    match pod.verdict {
        SchedulerVerdict::Waiting => return Some("kube-scheduler has not said that it fits no node".to_owned()),
        SchedulerVerdict::Nominated(node) => {
            return Some(format!("pods of lower priority are leaving node {node} for it"));
        }
        SchedulerVerdict::NotAsked | SchedulerVerdict::Unschedulable => {}
    }
    takes_on_in(spec, release).err().map(|reason| reason.to_string())
}

/// Whether a pod of a node that is being deleted, or that somebody drains, needs another place now.
fn comes_back(question: &PackingQuestion, pod: &NamedPod, node: usize) -> bool {
    let view = PodView {
        namespace: pod.namespace,
        name: &pod.name,
        spec: &pod.spec,
        phase: pod.phase,
        deletion: pod.deleting.then_some(SimTime::ZERO),
        ready: pod.ready,
        created: pod.created,
        started: None,
        uid_rank: 0,
    };
    if question.drained.contains(&node) {
        return view.is_reschedulable();
    }
    let asks_budgets = Behaviour::for_release(question.karpenter).leaves_blocked_pods;
    let budgets: Vec<PodBudget<'_>> = question
        .disruption_budgets
        .iter()
        .filter(|_| asks_budgets)
        .map(|budget| PodBudget {
            namespace: budget.namespace,
            selector: budget.selector.as_ref(),
            allowed: 0,
            always_allow_unhealthy: budget.always_allow_unhealthy,
            allows_nothing: budget.rule.allows_nothing(),
        })
        .collect();
    let cluster = ClusterView {
        now: SimTime::ZERO,
        karpenter: question.karpenter,
        spot_to_spot: question.setup.flags.gates.spot_to_spot,
        pools: &[],
        nodes: &[],
        pending: &[],
        pod_budgets: &budgets,
        protections: &Protections::default(),
        ties: TIES,
    };
    cluster.is_currently_reschedulable(&view)
}

/// The plan for the pods at `asked` with the pools at `pools`; existing nodes take pods only if `offered`.
fn packed(
    question: &PackingQuestion,
    types: &[Vec<InstanceType>],
    pools: &[usize],
    asked: &[usize],
    offered: bool,
    watched: Option<usize>,
) -> PackingPlan {
    asking(question, types, pools, asked, offered, |setup, situation| {
        let mut packer = Packer::new(setup);
        let mut cluster = packer.cluster(situation.nodes);
        let mut what_if = WhatIf::placing(situation.pods, situation.reserved, situation.ties);
        what_if.watched = watched;
        packer.simulate(&mut cluster, &what_if)
    })
}

/// Puts the question into the packer's words and asks.
fn asking<R>(
    question: &PackingQuestion,
    types: &[Vec<InstanceType>],
    pools: &[usize],
    asked: &[usize],
    offered: bool,
    ask: impl FnOnce(PackingSetup<'_>, &Situation<'_>) -> R,
) -> R {
    let view = |&pool: &usize| PoolView { pool: &question.node_pools[pool], instance_types: &types[pool] };
    let pools: Vec<PoolView<'_>> = pools.iter().map(view).collect();
    let namespaces: Vec<NamespaceView<'_>> =
        question.namespaces.iter().map(|(name, labels)| NamespaceView { name: *name, labels }).collect();
    let displaced: Vec<(usize, usize)> = asked.iter().filter_map(|&pod| question.pods[pod].leaves).collect();
    let nodes = question.nodes.iter().enumerate();
    let bound: Vec<Vec<BoundPod<'_>>> =
        nodes.map(|(node, this_node)| bound_pods(&this_node.pods, node, &displaced)).collect();
    let nodes: Vec<NodeView<'_>> =
        question.nodes.iter().zip(&bound).map(|(node, pods)| node_view(node, pods, offered)).collect();
    let pods: Vec<PendingPod<'_>> = asked
        .iter()
        .map(|&position| {
            let pod = &question.pods[position];
            PendingPod {
                namespace: pod.namespace,
                name: &pod.name,
                spec: &pod.spec,
                created: pod.created,
                uid_rank: position as u64,
            }
        })
        .collect();
    let setup = PackingSetup {
        karpenter: question.karpenter,
        options: question.setup.packing_options(),
        pools: &pools,
        daemons: &question.daemons,
        namespaces: &namespaces,
        volumes: Volumes::from_storage(&question.storage),
        default_spread: None,
    };
    ask(setup, &Situation { nodes: &nodes, pods: &pods, reserved: ReservedMode::Strict, ties: TIES })
}

/// The pods of a node; those that are being deleted or are to be placed anew do not count in topologies.
fn bound_pods<'q>(pods: &'q [NamedPod], node: usize, displaced: &[(usize, usize)]) -> Vec<BoundPod<'q>> {
    let pods = pods.iter().enumerate();
    pods.map(|(position, pod)| BoundPod {
        namespace: pod.namespace,
        name: &pod.name,
        spec: &pod.spec,
        counts_in_topology: !pod.deleting && !displaced.contains(&(node, position)),
    })
    .collect()
}

fn node_view<'a>(of: &'a NodeWithPods, pods: &'a [BoundPod<'a>], offered: bool) -> NodeView<'a> {
    let node = &of.node;
    let managed = node.labels.get(well_known::NODEPOOL).is_some();
    NodeView {
        name: &node.name,
        labels: &node.labels,
        taints: &node.taints,
        startup_taints: &[],
        capacity: &node.capacity,
        allocatable: &node.allocatable,
        managed,
        initialized: !managed || node.labels.get(well_known::NODE_INITIALIZED) == Some(well_known::TRUE),
        registered: true,
        offered: offered && !node.deleting,
        pods,
        summed: None,
        volume_limits: &of.volume_limits,
    }
}

fn launch(
    question: &PackingQuestion,
    types: &[Vec<InstanceType>],
    claim: &PlannedClaim,
) -> Result<LaunchRequest, SelectionError> {
    let types = &types[claim.pool];
    let choice = claim.instance_types.iter().map(|kind| Choice::new(&types[kind.index as usize], &claim.requirements));
    let choices: Vec<Choice<'_>> = choice.collect();
    select(&LaunchView {
        karpenter: question.karpenter,
        requirements: &claim.requirements,
        requests: &claim.requests,
        types: &choices,
        min_values: question.setup.packing_options().min_values,
    })
}
