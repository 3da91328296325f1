//! DefaultPreemption: which pods of lower priority to evict, and from which node, so that a pod fits.
//!
//! Source: Kubernetes 1.36 `pkg/scheduler/framework/preemption/preemption.go` and
//! `pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go`.

use std::sync::Arc;

use super::PendingPod;
use super::cluster_view::{ClusterView, Slot};
use super::evaluation::check_imagined;
use super::node::{NodeEntry, PlacedPod};
use super::shape::PodShape;
use super::topology_state::TopologyState;
use nodecast_model::domain::pod::PreemptionPolicy;
use nodecast_model::domain::{LabelSelector, NodeId, PodId, SimTime, Symbol};

/// At least so many candidate nodes are tried, or a tenth of those that eviction could help if that is more.
const LEAST_CANDIDATES: usize = 100;

/// A PodDisruptionBudget as it stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BudgetState {
    /// Its namespace.
    pub namespace: Symbol,
    /// The pods it protects; `None` or an empty selector protects none here.
    pub selector: Option<LabelSelector>,
    /// How many of them may be evicted now (`disruptionsAllowed`).
    pub disruptions_allowed: i64,
}

/// What to evict, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Preemption {
    /// The node to nominate the pod for.
    pub node: NodeId,
    /// The pods to evict, most important first.
    pub victims: Vec<PodId>,
    /// How many of them a budget protects: budgets are only preferred to hold.
    pub budget_violations: usize,
    /// Pods of lower priority whose nomination for the node is to be cleared.
    pub demoted: Vec<PodId>,
}

/// Why a pod evicts nobody.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoPreemption {
    /// Its `preemptionPolicy` is `Never`.
    PolicyNever,
    /// The pods that it would push aside on its nominated node are still ending.
    VictimsTerminating,
    /// On no node would it help.
    NotHelpful {
        /// Nodes of the cluster.
        nodes: usize,
        /// Nodes that refused for a reason that eviction could cure, but hold nobody to evict, or not enough.
        without_victims: usize,
    },
}

impl NoPreemption {
    /// What kube-scheduler adds to the event text.
    ///
    /// Source: Kubernetes 1.36, the messages of `PodEligibleToPreemptOthers` and of `DryRunPreemption`.
    pub fn message(self) -> String {
        let (nodes, without_victims) = match self {
            Self::PolicyNever => return "preemption: not eligible due to preemptionPolicy=Never.".to_owned(),
            Self::VictimsTerminating => {
                return "preemption: not eligible due to a terminating pod on the nominated node.".to_owned();
            }
            Self::NotHelpful { nodes, without_victims } => (nodes, without_victims),
        };
        let parts = [
            (without_victims, "No preemption victims found for incoming pod"),
            (nodes - without_victims.min(nodes), "Preemption is not helpful for scheduling"),
        ];
        let mut parts: Vec<String> =
            parts.iter().filter(|part| part.0 > 0).map(|(count, text)| format!("{count} {text}")).collect();
        parts.sort();
        format!("preemption: 0/{nodes} nodes are available: {}.", parts.join(", "))
    }
}

/// A pod that may have to go, with its priority.
type Victim = (PlacedPod, i32);

/// A node with the pods that would have to go.
#[derive(Clone, Debug)]
struct Candidate {
    slot: Slot,
    /// Most important first.
    victims: Vec<Victim>,
    violations: usize,
}

/// One pod's attempt to evict others.
pub(super) struct Attempt<'a> {
    pub(super) view: &'a ClusterView,
    pub(super) shape: Arc<PodShape>,
    pub(super) state: &'a mut TopologyState,
    pub(super) rivals: &'a [(Slot, PlacedPod)],
    pub(super) budgets: &'a [BudgetState],
}

/// Whether the pod may try to evict at all. `nominated_is_hopeless` says that its nominated node refuses it for a reason
/// that no eviction cures, so that it may look elsewhere.
///
/// Deviation: any ending pod of lower priority on the nominated node counts, not only a pod that ends because of a
/// preemption.
pub(super) fn eligible(view: &ClusterView, pod: &PendingPod, nominated_is_hopeless: bool) -> Result<(), NoPreemption> {
    let shape = view.shape_of(pod.shape);
    if shape.spec.preemption_policy == PreemptionPolicy::Never {
        return Err(NoPreemption::PolicyNever);
    }
    let nominated = view.nominated_node(pod.id).and_then(|node| view.slot(node)).and_then(|slot| view.entry(slot));
    let ending =
        |placed: &PlacedPod| placed.terminating && view.shape_of(placed.shape).spec.priority < shape.spec.priority;
    if !nominated_is_hopeless && nominated.is_some_and(|entry| entry.pods.iter().any(ending)) {
        return Err(NoPreemption::VictimsTerminating);
    }
    Ok(())
}

impl Attempt<'_> {
    /// Finds the best node among `nodes`, those that refused the pod for a reason that eviction could cure. The search
    /// starts at `offset` (any number: it wraps) and ends early once enough candidates are known and one of them breaks
    /// no budget.
    pub(super) fn run(mut self, nodes: &[Slot], offset: u64) -> Result<Preemption, NoPreemption> {
        let nothing = NoPreemption::NotHelpful { nodes: self.view.node_count(), without_victims: nodes.len() };
        if nodes.is_empty() {
            return Err(nothing);
        }
        let enough = (nodes.len() / 10).max(LEAST_CANDIDATES).min(nodes.len());
        let start = (offset % nodes.len() as u64) as usize;
        let (mut clean, mut violating) = (Vec::new(), Vec::new());
        for &slot in nodes[start..].iter().chain(&nodes[..start]) {
            if let Some(candidate) = self.victims_on(slot) {
                (if candidate.violations == 0 { &mut clean } else { &mut violating }).push(candidate);
            }
            if !clean.is_empty() && clean.len() + violating.len() >= enough {
                break;
            }
        }
        clean.append(&mut violating);
        let best = pick(clean).ok_or(nothing)?;
        let node = self.view.entry(best.slot).map(|entry| entry.id).ok_or(nothing)?;
        let lower = |shape| self.view.shape_of(shape).spec.priority < self.shape.spec.priority;
        let nominated = self.view.nominated();
        Ok(Preemption {
            node,
            victims: best.victims.iter().map(|(placed, _)| placed.pod).collect(),
            budget_violations: best.violations,
            demoted: nominated.filter(|n| n.1 == best.slot && lower(n.2)).map(|n| n.0).collect(),
        })
    }

    /// The fewest and least important pods whose going lets the pod onto a node, if there are such.
    fn victims_on(&mut self, slot: Slot) -> Option<Candidate> {
        let entry = self.view.entry(slot)?;
        let mut potential: Vec<Victim> = entry
            .pods
            .iter()
            .map(|placed| (*placed, self.view.shape_of(placed.shape).spec.priority))
            .filter(|(_, priority)| *priority < self.shape.spec.priority)
            .collect();
        if potential.is_empty() {
            return None;
        }
        let mut imagined = entry.clone();
        for (placed, _) in &potential {
            imagined.displace(placed.pod, self.view.shape_of(placed.shape));
        }
        if !self.fits(slot, entry, &imagined) {
            return None;
        }
        // More important: higher priority, then longer running. Pods equal in both stay in the order of placement.
        potential.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.started.cmp(&b.0.started)));
        let (protected, others) = self.split_by_budgets(potential);
        let mut victims = Vec::new();
        let mut violations = 0;
        for (is_protected, group) in [(true, protected), (false, others)] {
            for victim in group {
                let shape = self.view.shape_of(victim.0.shape);
                imagined.place(victim.0, shape);
                if !self.fits(slot, entry, &imagined) {
                    imagined.displace(victim.0.pod, shape);
                    victims.push(victim);
                    violations += usize::from(is_protected);
                }
            }
        }
        victims.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.started.cmp(&b.0.started)));
        Some(Candidate { slot, victims, violations })
    }

    fn fits(&mut self, slot: Slot, real: &NodeEntry, imagined: &NodeEntry) -> bool {
        let (view, shape) = (self.view, &self.shape);
        let mut rivals = self.rivals.iter().filter(|rival| rival.0 == slot).peekable();
        if rivals.peek().is_some() {
            let mut crowded = imagined.clone();
            for (_, rival) in rivals {
                crowded.place(*rival, view.shape_of(rival.shape));
            }
            if check_imagined(view, shape, self.state, slot, real, &crowded).is_err() {
                return false;
            }
        }
        check_imagined(view, shape, self.state, slot, real, imagined).is_ok()
    }

    /// Splits victims into those whose going would break a budget and the others, keeping their order. Every pod that a
    /// budget protects uses one of its disruptions up.
    fn split_by_budgets(&self, potential: Vec<Victim>) -> (Vec<Victim>, Vec<Victim>) {
        let mut allowed: Vec<i64> = self.budgets.iter().map(|budget| budget.disruptions_allowed).collect();
        potential.into_iter().partition(|(placed, _)| {
            let shape = self.view.shape_of(placed.shape);
            let mut breaks = false;
            for (budget, allowed) in self.budgets.iter().zip(&mut allowed) {
                if protects(budget, shape) {
                    *allowed -= 1;
                    breaks |= *allowed < 0;
                }
            }
            breaks
        })
    }
}

fn protects(budget: &BudgetState, shape: &PodShape) -> bool {
    let is_empty = |selector: &LabelSelector| selector.match_labels.is_empty() && selector.expressions.is_empty();
    budget.namespace == shape.namespace
        && !shape.spec.labels.is_empty()
        && budget.selector.as_ref().is_some_and(|selector| !is_empty(selector) && selector.matches(&shape.spec.labels))
}

/// The best candidate: fewest broken budgets, then lowest highest priority of a victim, then smallest sum of priorities,
/// then fewest victims, then the one whose most important victims have run the shortest, then the first.
fn pick(candidates: Vec<Candidate>) -> Option<Candidate> {
    let merit = |candidate: &Candidate| {
        let highest = candidate.victims.first().map_or(i32::MIN, |victim| victim.1);
        let sum: i64 = candidate.victims.iter().map(|victim| i64::from(victim.1) + (1 << 31)).sum();
        let top = candidate.victims.iter().filter(|victim| victim.1 == highest);
        let earliest = top.map(|victim| victim.0.started).min().unwrap_or(SimTime::FAR_FUTURE);
        (candidate.violations, highest, sum, candidate.victims.len(), std::cmp::Reverse(earliest))
    };
    candidates.into_iter().min_by_key(merit)
}

#[cfg(test)]
mod tests {
    use super::{BudgetState, NoPreemption};
    use crate::{ClusterView, PendingPod, Scheduler, SchedulerNode, ShapeId};
    use nodecast_model::domain::pod::PreemptionPolicy;
    use nodecast_model::domain::symbol::well_known;
    use nodecast_model::domain::{
        Container, LabelSelector, Labels, NodeId, PodId, PodSpec, ResourceName, Resources, SimDuration, SimTime,
    };
    use std::sync::Arc;

    /// Nodes of 4 CPUs, and pods on them.
    struct Fixture {
        view: ClusterView,
        pods: u32,
    }

    impl Fixture {
        fn with_nodes(nodes: u32) -> Self {
            let mut view = ClusterView::default();
            let allocatable = Resources::cpu_memory(4_000, 1 << 34).with(ResourceName::PODS, 20);
            for index in 0..nodes {
                let node = SchedulerNode { allocatable: allocatable.clone(), ..SchedulerNode::default() };
                view.add_node(NodeId(index), node);
            }
            Self { view, pods: 0 }
        }

        fn shape(&mut self, app: &str, priority: i32, cpus: i64) -> ShapeId {
            let container = Container { requests: Resources::cpu_memory(cpus * 1_000, 0), ..Container::default() };
            let labels = Labels::new().with("app", app);
            let spec = PodSpec { labels, priority, containers: vec![container], ..PodSpec::default() };
            self.view.shape(well_known::DEFAULT, &Arc::new(spec), None)
        }

        fn run(&mut self, node: u32, app: &str, priority: i32, cpus: i64) -> PodId {
            let shape = self.shape(app, priority, cpus);
            self.pods += 1;
            let started = SimTime::ZERO + SimDuration::from_secs(i64::from(self.pods));
            self.view.assume_pod(NodeId(node), PodId(self.pods), shape, started);
            PodId(self.pods)
        }

        fn pending(&mut self, priority: i32, cpus: i64) -> PendingPod {
            let shape = self.shape("urgent", priority, cpus);
            PendingPod { id: PodId(1_000), shape, pinned_to: None }
        }
    }

    fn budget(app: &str, disruptions_allowed: i64) -> BudgetState {
        let match_labels = Labels::new().with("app", app);
        BudgetState {
            namespace: well_known::DEFAULT,
            selector: Some(LabelSelector { match_labels, ..LabelSelector::default() }),
            disruptions_allowed,
        }
    }

    #[test]
    fn preemption_evicts_fewest_lowest_priority_pods() {
        let mut fixture = Fixture::with_nodes(1);
        let _older = fixture.run(0, "a", 0, 2);
        let younger = fixture.run(0, "a", 0, 2);
        let pod = fixture.pending(10, 2);
        let preemption = Scheduler::default().preempt(&fixture.view, &pod, &[], 0).unwrap();
        assert_eq!((preemption.node, preemption.victims), (NodeId(0), vec![younger]));
    }

    #[test]
    fn preemption_picks_node_with_lowest_victim_priority() {
        let mut fixture = Fixture::with_nodes(3);
        fixture.run(0, "a", 5, 4);
        let pause = fixture.run(1, "pause", -10, 4);
        fixture.run(2, "a", 0, 4);
        let pod = fixture.pending(10, 2);
        let preemption = Scheduler::default().preempt(&fixture.view, &pod, &[], 2).unwrap();
        assert_eq!((preemption.node, preemption.victims), (NodeId(1), vec![pause]));
    }

    #[test]
    fn pdb_influences_but_does_not_forbid_preemption() {
        let mut fixture = Fixture::with_nodes(2);
        let protected = fixture.run(0, "guarded", 0, 4);
        let free = fixture.run(1, "a", 5, 4);
        let pod = fixture.pending(10, 2);
        let guarded = [budget("guarded", 0)];
        let preemption = Scheduler::default().preempt(&fixture.view, &pod, &guarded, 0).unwrap();
        assert_eq!((preemption.victims, preemption.budget_violations), (vec![free], 0));
        fixture.view.remove_node(NodeId(1));
        let preemption = Scheduler::default().preempt(&fixture.view, &pod, &guarded, 0).unwrap();
        assert_eq!((preemption.victims, preemption.budget_violations), (vec![protected], 1));
    }

    #[test]
    fn equal_priority_pods_are_never_preempted() {
        let mut fixture = Fixture::with_nodes(2);
        fixture.run(0, "a", 10, 4);
        fixture.run(1, "a", 0, 1);
        let pod = fixture.pending(10, 8);
        let none = Scheduler::default().preempt(&fixture.view, &pod, &[], 0).unwrap_err();
        assert_eq!(none.message(), "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.");
        let pod = fixture.pending(0, 4);
        let none = Scheduler::default().preempt(&fixture.view, &pod, &[], 0).unwrap_err();
        assert_eq!(
            none.message(),
            "preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod."
        );
    }

    #[test]
    fn a_pod_that_must_not_preempt_does_not() {
        let mut fixture = Fixture::with_nodes(1);
        fixture.run(0, "a", 0, 4);
        let spec = PodSpec { priority: 10, preemption_policy: PreemptionPolicy::Never, ..PodSpec::default() };
        let shape = fixture.view.shape(well_known::DEFAULT, &Arc::new(spec), None);
        let pod = PendingPod { id: PodId(1_000), shape, pinned_to: None };
        let outcome = Scheduler::default().preempt(&fixture.view, &pod, &[], 0);
        assert_eq!(outcome, Err(NoPreemption::PolicyNever));
    }
}
