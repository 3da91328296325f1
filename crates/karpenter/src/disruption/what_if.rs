//! What would happen to the pods of some nodes if these were gone.
//!
//! Source: Karpenter core v1.13 `pkg/controllers/disruption/helpers.go`, `SimulateScheduling`.
//! From v1.14 on consolidation's simulations put no pod of a taken node on a node that is still within its own pool's
//! `consolidateAfter`.

use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use smallvec::SmallVec;

use super::candidates::Candidate;
use super::pods::PodView;
use super::view::{ClusterView, NodeFacts};
use crate::controller_time::SearchWork;
use crate::packing::{
    self, BoundPod, GivenUp, NodeView, Packer, PackingPlan, PassWork, PendingPod, QueuedPods, ReservedMode,
    Unschedulable,
};
use nodecast_model::domain::HourlyRate;

/// Asks the packer about one cluster again and again.
pub struct WhatIf<'w, 'p> {
    packer: &'w mut Packer<'p>,
    view: &'w ClusterView<'w>,
    cluster: packing::ClusterView,
    /// Pods of nodes that are on their way out.
    unplaced_pods: Vec<PodPlace>,
    /// Nodes that are not initialized, if answers may be [brief](Self::brief).
    unready: Option<Rc<[usize]>>,
    /// Nodes that do not take pods of nodes which consolidation takes.
    unsettled: Vec<usize>,
    /// The pods that every question is about, once somebody asks: those that are pending, and those of nodes on their way out.
    others: Option<(Arc<QueuedPods>, Arc<QueuedPods>)>,
    /// What all questions so far were upstream.
    work: SearchWork,
}

/// Where a pod of a simulation is now, as positions in the view.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PodPlace {
    /// It has no node.
    Pending(usize),
    /// It is on a node that would be taken.
    Taken {
        /// The node.
        node: usize,
        /// The pod among those of the node.
        pod: usize,
    },
    /// It is on a node that is on its way out.
    Leaving {
        /// The node.
        node: usize,
        /// The pod among those of the node.
        pod: usize,
    },
}

/// The answer of the packer.
#[derive(Clone, PartialEq, Debug)]
pub struct Simulation {
    /// The plan; its pods are positions in `pods`, its nodes positions in the view.
    pub plan: PackingPlan,
    /// The pods that were asked about.
    pub pods: Vec<PodPlace>,
    /// The first pod that now has a node and would have none, or none that it could go to at once.
    pub failure: Option<Failure>,
}

/// Why nodes cannot be taken: a pod that runs would not run.
#[derive(Clone, PartialEq, Debug)]
pub enum Failure {
    /// The pod finds no place.
    NoPlace {
        /// Position of the pod in the simulation.
        pod: usize,
        /// Why.
        reason: Box<Unschedulable>,
    },
    /// The pod would have to wait for a node that is not initialized.
    WaitsForNode,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPlace { reason, .. } => write!(f, "a pod cannot be rescheduled: {reason}"),
            Self::WaitsForNode => f.write_str("a pod would have to wait for a node that is not initialized"),
        }
    }
}

impl<'w, 'p> WhatIf<'w, 'p> {
    /// A cluster to ask about.
    pub fn new(packer: &'w mut Packer<'p>, view: &'w ClusterView<'w>) -> Self {
        let mut unplaced_pods = Vec::new();
        let mut bound = Vec::with_capacity(view.nodes.len());
        for (node, facts) in view.nodes.iter().enumerate() {
            if facts.view.summed.is_some() {
                bound.push(Vec::new());
                continue;
            }
            let leaves = |pod: &PodView<'_>| facts.marked_for_deletion() && view.is_currently_reschedulable(pod);
            bound.push(bound_pods(facts.pods(), leaves));
            let leaving = (0..facts.pods().len()).filter(|&pod| leaves(&facts.pods()[pod]));
            unplaced_pods.extend(leaving.map(|pod| PodPlace::Leaving { node, pod }));
        }
        let facts = view.nodes.iter().zip(&bound);
        let nodes: Vec<NodeView<'_>> = facts.map(|(facts, pods)| NodeView { pods, ..facts.view }).collect();
        let cluster = packer.cluster(&nodes);
        let asks = view.behaviour().weighs_savings;
        let unsettled = (0..view.nodes.len()).filter(|&node| asks && is_unsettled(view, &view.nodes[node])).collect();
        Self {
            packer,
            view,
            cluster,
            unplaced_pods,
            unready: None,
            unsettled,
            others: None,
            work: SearchWork::default(),
        }
    }

    /// The same for those who only want to know whether something can be done: a simulation of consolidation ends as soon as a pod
    /// would have to wait for a node that is not initialized, or the one new node that would be needed is certain to cost too much, and
    /// does not say then where pods would go. Nor does it describe several new nodes.
    pub fn brief(self) -> Self {
        let view = self.view;
        let unready = |facts: &NodeFacts<'_>| is_unready(view, facts);
        let nodes = 0..self.view.nodes.len();
        Self { unready: Some(nodes.filter(|&node| unready(&self.view.nodes[node])).collect()), ..self }
    }

    /// The cluster.
    pub fn view(&self) -> &'w ClusterView<'w> {
        self.view
    }

    /// Packs what is pending, the pods of the taken nodes and those of nodes on their way out, without the taken nodes.
    pub fn simulate(&mut self, taken: &[&Candidate]) -> Simulation {
        self.ask(taken, false, &[])
    }

    /// The same as consolidation asks it. Where a new node that costs `ceiling` or more is of no use, that may be all that a
    /// [brief](Self::brief) answer says.
    pub fn simulate_consolidation(&mut self, taken: &[&Candidate], ceiling: Option<HourlyRate>) -> Simulation {
        let Some(unready) = self.unready.clone() else { return self.ask(taken, true, &[]) };
        let Some(foreseen) = self.foresee(taken, &unready, ceiling) else { return self.ask(taken, true, &unready) };
        if self.packer.check().compares() {
            self.check(foreseen, taken, ceiling);
        }
        self.work.add(&self.foreseen_work(taken));
        let failure = (foreseen == GivenUp::Waits).then_some(Failure::WaitsForNode);
        let plan = PackingPlan { given_up: Some(foreseen), ..PackingPlan::default() };
        Simulation { plan, pods: Vec::new(), failure }
    }

    /// What all questions so far were for upstream, whatever was spared here.
    pub fn work(&self) -> SearchWork {
        self.work
    }

    /// What a question that is answered without packing is for upstream: as much as is known of it, each pod being held against
    /// every node.
    fn foreseen_work(&self, taken: &[&Candidate]) -> PassWork {
        let nodes = self.view.nodes.len() as u64;
        let moved: usize = taken.iter().map(|item| item.reschedulable.len()).sum();
        let pods = (self.view.pending.len() + self.unplaced_pods.len() + moved) as u64;
        PassWork { cluster: nodes, attempts: pods, nodes: pods * nodes, ..PassWork::default() }
    }

    /// What most questions come to can be told without packing.
    fn foresee(&mut self, taken: &[&Candidate], unready: &[usize], ceiling: Option<HourlyRate>) -> Option<GivenUp> {
        let view = self.view;
        let facts = || taken.iter().map(|candidate| &view.nodes[candidate.node]);
        // Otherwise some of the pods may stay where they are.
        let all_go = view.pod_budgets.is_empty() && !facts().any(|facts| facts.digest.protected);
        if !all_go || (unready.is_empty() && ceiling.is_none()) {
            return None;
        }
        let without: SmallVec<[usize; 4]> = taken.iter().map(|candidate| candidate.node).collect();
        let (pending, unplaced_pods) = self.others.get_or_insert_with(|| {
            let queued = |pods: &[PendingPod<'_>]| {
                Arc::new(QueuedPods::from_pods(pods.iter().map(|pod| (*pod, || pod.spec.requests()))))
            };
            let unplaced_pods: Vec<PendingPod<'_>> =
                self.unplaced_pods.iter().map(|&place| pending_pod(view, place)).collect();
            (queued(view.pending), queued(&unplaced_pods))
        });
        let queued: SmallVec<[Arc<QueuedPods>; 4]> =
            facts().map(|facts| facts.pods.queued(&facts.digest.reschedulable)).collect();
        let mut pods: SmallVec<[(&Arc<QueuedPods>, bool); 6]> = SmallVec::new();
        pods.push((&*pending, false));
        pods.extend(queued.iter().map(|queued| (queued, true)));
        pods.push((unplaced_pods, false));
        let outline = packing::Outline { without: &without, unsettled: &self.unsettled, unready, ceiling, pods: &pods };
        self.packer.foresee(&self.cluster, &outline)
    }

    /// Holds a brief answer against a whole one.
    fn check(&mut self, brief: GivenUp, taken: &[&Candidate], ceiling: Option<HourlyRate>) {
        let before = self.work;
        let Simulation { plan, failure, .. } = self.ask(taken, true, &[]);
        self.work = before;
        let least = || plan.claims[0].instance_types.first().and_then(|instance_type| instance_type.price);
        let same = match brief {
            GivenUp::Waits => failure == Some(Failure::WaitsForNode),
            GivenUp::Dearer => {
                failure.is_none()
                    && plan.claims.len() == 1
                    && ceiling.is_some_and(|ceiling| least().is_none_or(|least| least >= ceiling))
            }
        };
        let told = || format!("told without packing: {brief:?}; packed: {failure:?}, {} claims", plan.claims.len());
        self.packer.check().hold(same, told);
    }

    /// `consolidation` keeps pods off unsettled nodes; `unready` is as the packer knows it.
    fn ask(&mut self, taken: &[&Candidate], consolidation: bool, unready: &[usize]) -> Simulation {
        let view = self.view;
        let moved: usize = taken.iter().map(|item| item.reschedulable.len()).sum();
        let mut pods: Vec<PodPlace> = Vec::with_capacity(view.pending.len() + moved + self.unplaced_pods.len());
        pods.extend((0..view.pending.len()).map(PodPlace::Pending));
        let (mut without, mut displaced) = (Vec::with_capacity(taken.len()), Vec::with_capacity(moved));
        for candidate in taken {
            let node = candidate.node;
            without.push(node);
            // Pods that have ended are not bound any more.
            let this_pod = view.nodes[node].pods().iter().enumerate().filter(|(_, pod)| !pod.phase.is_terminal());
            for (position, (pod, this_pod)) in this_pod.enumerate() {
                if view.is_currently_reschedulable(this_pod) {
                    pods.push(PodPlace::Taken { node, pod });
                    displaced.push((node, position));
                }
            }
        }
        let running: Vec<usize> = (view.pending.len()..pods.len()).collect();
        pods.extend(&self.unplaced_pods);
        let asked: Vec<PendingPod<'_>> = pods.iter().map(|&pod| pending_pod(view, pod)).collect();
        let question = packing::WhatIf {
            without: &without,
            displaced: &displaced,
            unsettled: if consolidation { &self.unsettled } else { &[] },
            running: &running,
            unready,
            only_one: consolidation && self.unready.is_some(),
            ..packing::WhatIf::placing(&asked, ReservedMode::Fallback, view.ties)
        };
        let plan = self.packer.simulate(&mut self.cluster, &question);
        let given_up = plan.given_up.is_some();
        self.work.add(&if given_up { self.foreseen_work(taken) } else { plan.work });
        if self.packer.check().compares()
            && let Some(brief) = plan.given_up
        {
            self.check(brief, taken, None);
        }
        let failure = first_failure(view, &plan, &pods);
        Simulation { plan, pods, failure }
    }
}

fn pending_pod<'a>(view: &ClusterView<'a>, place: PodPlace) -> PendingPod<'a> {
    match place {
        PodPlace::Pending(pod) => view.pending[pod],
        PodPlace::Taken { node, pod } | PodPlace::Leaving { node, pod } => view.nodes[node].pods()[pod].as_pending(),
    }
}

/// Whether the node is within its own pool's `consolidateAfter`.
fn is_unsettled(view: &ClusterView<'_>, facts: &NodeFacts<'_>) -> bool {
    let pool = facts.pool(view.pools).map(|pool| view.pools[pool].pool);
    facts.view.managed
        && facts.view.initialized
        && !facts.consolidatable
        && pool.is_some_and(|pool| pool.disruption.consolidate_after.is_some())
}

fn bound_pods<'a>(pods: &'a [PodView<'a>], leaves: impl Fn(&PodView<'_>) -> bool) -> Vec<BoundPod<'a>> {
    pods.iter()
        .filter(|pod| !pod.phase.is_terminal())
        .map(|pod| BoundPod {
            namespace: pod.namespace,
            name: pod.name,
            spec: pod.spec,
            counts_in_topology: pod.is_active() && !leaves(pod),
        })
        .collect()
}

/// Whether pods would have to wait for the node: it is not initialized, or (up to v0.33) not Ready.
fn is_unready(view: &ClusterView<'_>, facts: &NodeFacts<'_>) -> bool {
    let wants_ready = view.behaviour().wants_ready_targets;
    facts.view.managed && (!facts.view.initialized || (wants_ready && !facts.ready))
}

/// Pending pods may stay pending, from v0.30 on; those of leaving nodes may wait for a node, but not be without one.
fn first_failure(view: &ClusterView<'_>, plan: &PackingPlan, pods: &[PodPlace]) -> Option<Failure> {
    if plan.given_up == Some(GivenUp::Waits) {
        return Some(Failure::WaitsForNode);
    }
    let blocks = |pod: usize| view.behaviour().pending_pods_block || !matches!(pods[pod], PodPlace::Pending(_));
    let unplaced = plan.unschedulable.iter().find(|plan| blocks(plan.pod));
    if let Some(unplaced) = unplaced {
        return Some(Failure::NoPlace { pod: unplaced.pod, reason: Box::new(unplaced.reason.clone()) });
    }
    let waits = plan.existing.iter().any(|placement| {
        let node = &view.nodes[placement.node];
        let taken = |&pod: &usize| matches!(pods[pod], PodPlace::Taken { .. });
        is_unready(view, node) && placement.pods.iter().any(taken)
    });
    waits.then_some(Failure::WaitsForNode)
}
