//! What would happen to the pods of some nodes if these were gone.
//!
//! Source: Karpenter core v1.13 `pkg/controllers/disruption/helpers.go`, `SimulateScheduling`.
//! From v1.14 on consolidation's simulations put no pod of a taken node on a node that is still within its own pool's
//! `consolidateAfter`.

use std::fmt;
use std::rc::Rc;

use super::candidates::Candidate;
use super::pods::PodView;
use super::view::{ClusterView, NodeFacts};
use crate::domain::{HourlyRate, KarpenterVersion};
use crate::policy::packing::{
    self, BoundPod, GivenUp, NodeView, Packer, PackingPlan, PendingPod, QueuePlace, ReservedMode, Unschedulable,
};

/// Asks the packer about one cluster again and again.
pub struct WhatIf<'w, 'p> {
    packer: &'w mut Packer<'p>,
    view: &'w ClusterView<'w>,
    cluster: packing::ClusterView,
    /// Pods of nodes that are on their way out.
    homeless: Vec<PodPlace>,
    /// Nodes that are not initialized, if answers may be [brief](Self::brief).
    unready: Option<Rc<[usize]>>,
    /// Of the pods that every question is about the first in the queue, if there is one; not known before all of them are known to be
    /// sure of a place.
    first_of_all: Option<Option<QueuePlace>>,
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
    WaitsForNode {
        /// Position of the pod in the simulation.
        pod: usize,
        /// Position of the node in the view.
        node: usize,
    },
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPlace { reason, .. } => write!(f, "a pod would have no place: {reason}"),
            Self::WaitsForNode { .. } => f.write_str("a pod would have to wait for a node that is not initialized"),
        }
    }
}

impl<'w, 'p> WhatIf<'w, 'p> {
    /// A cluster to ask about.
    pub fn new(packer: &'w mut Packer<'p>, view: &'w ClusterView<'w>) -> Self {
        let mut homeless = Vec::new();
        let mut bound = Vec::with_capacity(view.nodes.len());
        for (node, facts) in view.nodes.iter().enumerate() {
            if facts.view.summed.is_some() {
                bound.push(Vec::new());
                continue;
            }
            let leaves = |pod: &PodView<'_>| facts.marked_for_deletion() && view.is_currently_reschedulable(pod);
            bound.push(bound_pods(facts.pods(), leaves));
            let leaving = (0..facts.pods().len()).filter(|&pod| leaves(&facts.pods()[pod]));
            homeless.extend(leaving.map(|pod| PodPlace::Leaving { node, pod }));
        }
        let facts = view.nodes.iter().zip(&bound);
        let nodes: Vec<NodeView<'_>> = facts.map(|(facts, pods)| NodeView { pods, ..facts.view }).collect();
        let cluster = packer.cluster(&nodes);
        Self { packer, view, cluster, homeless, unready: None, first_of_all: None }
    }

    /// The same for those who only want to know whether something can be done: a simulation of consolidation ends as soon as a pod
    /// would have to wait for a node that is not initialized, or the one new node that would be needed is certain to cost too much, and
    /// does not say then where pods would go.
    pub fn brief(self) -> Self {
        let unready = |facts: &NodeFacts<'_>| facts.view.managed && !facts.view.initialized;
        let nodes = 0..self.view.nodes.len();
        Self { unready: Some(nodes.filter(|&node| unready(&self.view.nodes[node])).collect()), ..self }
    }

    /// The cluster.
    pub fn view(&self) -> &'w ClusterView<'w> {
        self.view
    }

    /// Packs what is pending, the pods of the taken nodes and those of nodes on their way out, without the taken nodes.
    pub fn simulate(&mut self, taken: &[&Candidate]) -> Simulation {
        self.ask(taken, &[], None)
    }

    /// The same as consolidation asks it. Where a new node that costs `ceiling` or more is of no use, that may be all that a
    /// [brief](Self::brief) answer says.
    pub fn simulate_consolidation(&mut self, taken: &[&Candidate], ceiling: Option<HourlyRate>) -> Simulation {
        let view = self.view;
        let within = |facts: &NodeFacts<'_>| {
            let pool = facts.pool(view.pools).map(|pool| view.pools[pool].pool);
            facts.view.managed
                && facts.view.initialized
                && !facts.consolidatable
                && pool.is_some_and(|pool| pool.disruption.consolidate_after.is_some())
        };
        let asks = view.karpenter >= KarpenterVersion::V1_14;
        let unsettled: Vec<usize> = (0..view.nodes.len()).filter(|&node| asks && within(&view.nodes[node])).collect();
        let unready = self.unready.clone();
        if let (Some(unready), &[candidate]) = (&unready, taken)
            && !unready.is_empty()
            && let Some(simulation) = self.waits_at_once(candidate, &unsettled, unready)
        {
            if cfg!(debug_assertions) {
                let whole = self.ask(taken, &unsettled, None).failure;
                assert!(matches!(whole, Some(Failure::WaitsForNode { .. })), "a whole plan says the same: {whole:?}");
            }
            return simulation;
        }
        let ceiling = ceiling.filter(|_| unready.as_ref().is_some_and(|nodes| nodes.is_empty()));
        self.ask(taken, &unsettled, Some((unready.as_deref().unwrap_or_default(), ceiling)))
    }

    /// What most questions come to: of all pods that are to be placed the candidate's first is the first in the queue, and it
    /// goes to a node that is not initialized. The others need not be looked at if they are sure of a place.
    fn waits_at_once(&mut self, candidate: &Candidate, unsettled: &[usize], unready: &[usize]) -> Option<Simulation> {
        let (view, node) = (self.view, candidate.node);
        let facts = &view.nodes[node];
        let (digest, summed) = (facts.digest, facts.view.summed?);
        // Otherwise some of the pods may stay where they are.
        let all_go = view.pod_budgets.is_empty() && !digest.protected;
        let first = digest.first.filter(|_| all_go)?;
        let place = PodPlace::Taken { node, pod: first };
        let pod = pending_pod(&facts.pods.pod(first));
        let earlier = self.first_of_all()?.is_some_and(|other| other < self.packer.place_in_queue(&pod));
        if earlier || !self.packer.are_sure(summed.specs()) {
            return None;
        }
        let asked = [pod];
        let question = packing::WhatIf {
            without: &[node],
            unsettled,
            running: &[0],
            unready,
            ..packing::WhatIf::placing(&asked, ReservedMode::Fallback, view.ties)
        };
        let plan = self.packer.simulate(&mut self.cluster, &question);
        let failure = first_failure(view, &plan, &[place]).filter(|_| plan.given_up.is_some())?;
        Some(Simulation { plan, pods: vec![place], failure: Some(failure) })
    }

    /// See the field; `None` as long as it is not known.
    fn first_of_all(&mut self) -> Option<Option<QueuePlace>> {
        if self.first_of_all.is_none() {
            let pending = (0..self.view.pending.len()).map(PodPlace::Pending);
            let pods: Vec<PendingPod<'_>> =
                pending.chain(self.homeless.iter().copied()).map(|place| self.pending_pod(place)).collect();
            if self.packer.are_sure(pods.iter().map(|pod| (pod.namespace, pod.spec))) {
                self.first_of_all = Some(pods.iter().map(|pod| self.packer.place_in_queue(pod)).min());
            }
        }
        self.first_of_all
    }

    fn ask(
        &mut self,
        taken: &[&Candidate],
        unsettled: &[usize],
        brief: Option<(&[usize], Option<HourlyRate>)>,
    ) -> Simulation {
        let view = self.view;
        let mut pods: Vec<PodPlace> = (0..view.pending.len()).map(PodPlace::Pending).collect();
        let (mut without, mut displaced) = (Vec::with_capacity(taken.len()), Vec::new());
        for candidate in taken {
            let node = candidate.node;
            without.push(node);
            // Pods that have ended are not bound any more.
            let own = view.nodes[node].pods().iter().enumerate().filter(|(_, pod)| !pod.phase.is_terminal());
            for (position, (pod, own)) in own.enumerate() {
                if view.is_currently_reschedulable(own) {
                    pods.push(PodPlace::Taken { node, pod });
                    displaced.push((node, position));
                }
            }
        }
        let running: Vec<usize> = (view.pending.len()..pods.len()).collect();
        pods.extend(&self.homeless);
        let asked: Vec<PendingPod<'_>> = pods.iter().map(|&pod| self.pending_pod(pod)).collect();
        let (unready, ceiling) = brief.unwrap_or_default();
        let question = packing::WhatIf {
            without: &without,
            displaced: &displaced,
            unsettled,
            running: &running,
            unready,
            ceiling,
            ..packing::WhatIf::placing(&asked, ReservedMode::Fallback, view.ties)
        };
        let plan = self.packer.simulate(&mut self.cluster, &question);
        if cfg!(debug_assertions) && plan.given_up.is_some() {
            let thorough = packing::WhatIf { unready: &[], ceiling: None, ..question };
            let whole = self.packer.simulate(&mut self.cluster, &thorough);
            let failure = first_failure(view, &whole, &pods);
            let first = || whole.claims[0].instance_types.first().and_then(|own| own.price);
            let same = match (plan.given_up, ceiling) {
                (Some(GivenUp::Dearer), Some(ceiling)) => {
                    failure.is_none() && whole.claims.len() == 1 && first().is_none_or(|least| least >= ceiling)
                }
                _ => matches!(failure, Some(Failure::WaitsForNode { .. })),
            };
            assert!(same, "a whole plan says the same: {failure:?}, {} claims", whole.claims.len());
        }
        let failure = first_failure(view, &plan, &pods);
        Simulation { plan, pods, failure }
    }

    fn pending_pod(&self, place: PodPlace) -> PendingPod<'w> {
        match place {
            PodPlace::Pending(pod) => self.view.pending[pod],
            PodPlace::Taken { node, pod } | PodPlace::Leaving { node, pod } => {
                pending_pod(&self.view.nodes[node].pods()[pod])
            }
        }
    }
}

fn pending_pod<'a>(own: &PodView<'a>) -> PendingPod<'a> {
    PendingPod {
        namespace: own.namespace,
        name: own.name,
        spec: own.spec,
        created: own.created,
        uid_rank: own.uid_rank,
    }
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

/// Pending pods may stay pending; those of leaving nodes may wait for a node, but not be without one.
fn first_failure(view: &ClusterView<'_>, plan: &PackingPlan, pods: &[PodPlace]) -> Option<Failure> {
    if let Some(GivenUp::Waits { pod, node }) = plan.given_up {
        return Some(Failure::WaitsForNode { pod, node });
    }
    let unplaced = plan.unschedulable.iter().find(|own| !matches!(pods[own.pod], PodPlace::Pending(_)));
    if let Some(unplaced) = unplaced {
        return Some(Failure::NoPlace { pod: unplaced.pod, reason: Box::new(unplaced.reason.clone()) });
    }
    let unready = plan.existing.iter().filter(|placement| {
        let node = &view.nodes[placement.node].view;
        node.managed && !node.initialized
    });
    for placement in unready {
        let taken = placement.pods.iter().find(|&&pod| matches!(pods[pod], PodPlace::Taken { .. }));
        if let Some(&pod) = taken {
            return Some(Failure::WaitsForNode { pod, node: placement.node });
        }
    }
    None
}
