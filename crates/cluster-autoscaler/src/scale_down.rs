//! Scale-down: which nodes are not needed, since when, and which of them go now.
//!
//! Source: Cluster Autoscaler 1.36 `core/scaledown/planner/planner.go`, `core/scaledown/eligibility/eligibility.go`,
//! `core/scaledown/unneeded/nodes.go`, `simulator/cluster.go`, `processors/scaledowncandidates/`.
//!
//! Deviation: if an iteration takes no simulated time, `scale-down-simulation-timeout` never binds.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashSet;

use super::TO_BE_DELETED;
use super::budgets::{RemainingBudgets, crop};
use super::cluster_state::ClusterState;
use super::drainability::{BlockingReason, Drainability, drainability};
pub use super::findings::{NodeFinding, PassedOver, UnremovableReason};
use super::flags::Flags;
use super::pods::{Hints, is_recreatable, try_to_place};
use super::quotas::{Left, Limited, amount};
use super::snapshot::{NodeAt, PodAt, Snapshot};
use super::utilization::{LeftOut, PodOnNode, Requested, Utilization, has_gpu, utilization};
use super::view::{GroupActions, NodeView, Observation, PodPlace};
use crate::controller_time as model;
use nodecast_model::domain::controller_time::work_within;
use nodecast_model::domain::symbol::well_known;
use nodecast_model::domain::{NodeId, PodId, SimDuration, SimTime, Symbol};

/// How long a deletion may take before its taint no longer counts.
const DELETION_TAKES: SimDuration = SimDuration::from_secs(300);

/// How a scale-down ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum ScaleDownResult {
    /// It was not tried.
    #[default]
    NotTried,
    /// Something happened too short a while ago.
    InCooldown,
    /// Every group is at its minimum.
    NoCandidates,
    /// Nothing can go now.
    NoNodeDeleted,
    /// Nodes go.
    NodeDeleteStarted,
}

impl ScaleDownResult {
    /// The result's name as the autoscaler reports it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotTried => "NotTried",
            Self::InCooldown => "InCooldown",
            Self::NoCandidates => "NoCandidates",
            Self::NoNodeDeleted => "NoNodeDeleted",
            Self::NodeDeleteStarted => "NodeDeleteStarted",
        }
    }
}

/// A node that goes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeDeletion {
    /// Its place among the observed nodes.
    pub node: usize,
    /// Pods to evict, as places among the observed pods; none for an empty node.
    pub evict: Vec<usize>,
    /// Pods of DaemonSets on it.
    pub daemons: Vec<usize>,
    /// Whether it had nothing to move.
    pub empty: bool,
}

/// What a scale-down found and decided.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ScaleDownReport {
    /// How it ended.
    pub result: ScaleDownResult,
    /// What was found of each observed node.
    pub nodes: Vec<NodeFinding>,
    /// Nodes that go now.
    pub deletions: Vec<NodeDeletion>,
    /// Pods for which a new place was looked for.
    pub moved_pods: u64,
    /// Whether the time for that was up before all nodes were looked at.
    pub cut: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Unneeded {
    node: NodeId,
    since: SimTime,
    observed: usize,
    evict: Vec<usize>,
    daemons: Vec<usize>,
    risky: bool,
    waits: bool,
}

/// What is remembered of nodes that may go.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Planner {
    unneeded: Vec<Unneeded>,
    unremovable_until: BTreeMap<NodeId, SimTime>,
    latest_update: Option<SimTime>,
    /// The shortest time between two updates so far.
    interval: SimDuration,
    hints: Hints,
    injected: Hints,
}

impl Planner {
    /// Nothing known yet.
    pub fn new(flags: &Flags) -> Self {
        // Upstream takes a nanosecond where the unneeded time is zero.
        let interval = flags.scale_down_unneeded_time.max(SimDuration::from_micros(1));
        Self {
            unneeded: Vec::new(),
            unremovable_until: BTreeMap::new(),
            latest_update: None,
            interval,
            hints: Hints::default(),
            injected: Hints::default(),
        }
    }

    /// Forgets which nodes are not needed.
    pub fn forget_unneeded(&mut self) {
        self.unneeded.clear();
    }

    /// Nodes that are not needed.
    pub fn unneeded(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.unneeded.iter().map(|node| node.node)
    }

    /// Since when a node has not been needed.
    pub fn unneeded_since(&self, node: NodeId) -> Option<SimTime> {
        self.unneeded.iter().find(|unneeded| unneeded.node == node).map(|unneeded| unneeded.since)
    }

    /// Most nodes that are worth knowing to be unneeded, while so many were known before.
    ///
    /// Source: Cluster Autoscaler 1.36 `core/scaledown/planner/planner.go`, `unneededNodesLimit`.
    pub fn unneeded_limit(flags: &Flags, known: usize, interval: SimDuration) -> usize {
        let at_once = flags.max_scale_down_parallelism;
        let interval = interval.as_micros().max(1);
        let span = flags.scale_down_unneeded_time.as_micros().max(interval);
        let bound = at_once * (span / interval) + at_once;
        usize::try_from((known as i64 + 2 * at_once).min(bound)).unwrap_or(0)
    }
}

/// What a scale-down works with.
pub(super) struct ScaleDown<'a> {
    pub(super) flags: &'a Flags,
    pub(super) seen: &'a Observation<'a>,
    /// Nodes that are registered and not among those still to come.
    pub(super) nodes: &'a [usize],
    pub(super) snapshot: &'a mut Snapshot,
    pub(super) planner: &'a mut Planner,
    pub(super) state: &'a ClusterState,
    pub(super) actions: &'a dyn GroupActions,
    pub(super) usable: &'a dyn Fn(&NodeView) -> bool,
    /// Nodes with pods whose deletion was asked for.
    pub(super) terminating: FxHashSet<NodeId>,
    /// What the limits of the cluster let go.
    pub(super) limits: Left,
    /// How fast the program computes, in percent of what was measured; `None` if its limits of time never bind.
    pub(super) speed: Option<u32>,
    /// Pods for which a new place was looked for so far.
    pub(super) moved_pods: u64,
    /// Whether the time for that was up.
    pub(super) cut: bool,
}

/// What is on a node, by what draining it would do.
#[derive(Default)]
struct NodePods {
    movable: Vec<PodAt>,
    daemons: Vec<PodAt>,
    waits: bool,
    blocking: Option<(usize, BlockingReason)>,
}

impl ScaleDown<'_> {
    /// Finds out which nodes are not needed, and unless something happened too short a while ago, which of them go now.
    pub(super) fn run(mut self, in_cooldown: bool) -> ScaleDownReport {
        let candidates = self.candidates();
        let mut nodes = self.update(&candidates);
        let (result, deletions) = if in_cooldown {
            (ScaleDownResult::InCooldown, Vec::new())
        } else if candidates.is_empty() {
            (ScaleDownResult::NoCandidates, Vec::new())
        } else {
            let deletions = self.nodes_to_delete(&mut nodes);
            let none = deletions.is_empty();
            (if none { ScaleDownResult::NoNodeDeleted } else { ScaleDownResult::NodeDeleteStarted }, deletions)
        };
        ScaleDownReport { result, nodes, deletions, moved_pods: self.moved_pods, cut: self.cut }
    }

    /// Nodes of groups above their minimum.
    fn candidates(&self) -> Vec<usize> {
        self.nodes.iter().copied().filter(|&at| self.passed_over(at).is_none()).collect()
    }

    /// Why a registered node is no candidate.
    fn passed_over(&self, at: usize) -> Option<PassedOver> {
        let Some(group) = self.seen.nodes[at].group else { return Some(PassedOver::NoGroup) };
        if self.actions.target_size(group) <= self.seen.groups[group].min {
            return Some(PassedOver::GroupAtMinimum);
        }
        self.is_delayed(group).then_some(PassedOver::GroupDelayed)
    }

    /// What to say of nodes before any is looked at.
    fn first_findings(&self) -> Vec<NodeFinding> {
        let still_to_come = NodeFinding { passed_over: Some(PassedOver::StillToCome), ..NodeFinding::default() };
        let mut findings = vec![still_to_come; self.seen.nodes.len()];
        for &at in self.nodes {
            let deleted = self.seen.deletions.contain(self.seen.nodes[at].id);
            findings[at].passed_over = if deleted { Some(PassedOver::BeingDeleted) } else { self.passed_over(at) };
        }
        findings
    }

    /// Whether, with delays that count for each group alone, a group changed too short a while ago.
    fn is_delayed(&self, group: usize) -> bool {
        let flags = self.flags;
        let delays = [
            flags.scale_down_delay_after_add,
            flags.scale_down_delay_after_delete,
            flags.scale_down_delay_after_failure,
        ];
        let changes = self.state.last_changes(self.seen.groups[group].id);
        flags.scale_down_delay_type_local
            && changes.iter().zip(delays).any(|(at, delay)| at.is_some_and(|at| at + delay > self.seen.now))
    }

    /// Finds out which nodes are not needed.
    fn update(&mut self, candidates: &[usize]) -> Vec<NodeFinding> {
        let (now, seen) = (self.seen.now, self.seen);
        if let Some(before) = self.planner.latest_update {
            self.planner.interval = self.planner.interval.min(now - before);
        }
        self.planner.latest_update = Some(now);
        self.planner.unremovable_until.retain(|_, until| *until > now);
        self.inject_evicted();
        let mut findings = self.first_findings();
        let budgets = RemainingBudgets::new(seen.budgets);
        let listed: Vec<usize> =
            candidates.iter().copied().filter(|&at| !seen.deletions.contain(seen.nodes[at].id)).collect();
        let listed = self.sorted(listed, &budgets);
        let eligible: Vec<usize> = listed.into_iter().filter(|&at| self.is_eligible(at, &mut findings[at])).collect();
        let removable = self.simulate(&eligible, budgets, &mut findings);
        let since = |node: NodeId| self.planner.unneeded_since(node).unwrap_or(now);
        let removable: Vec<Unneeded> =
            removable.into_iter().map(|node| Unneeded { since: since(node.node), ..node }).collect();
        for node in &removable {
            findings[node.observed].waits_until =
                self.wait(&seen.nodes[node.observed]).map(|(wait, _)| node.since + wait);
        }
        self.planner.unneeded = removable;
        self.planner.hints.drop_old();
        self.planner.injected.drop_old();
        findings
    }

    /// Makes room for pods that were evicted a moment ago and are not there again.
    fn inject_evicted(&mut self) {
        let mut added: BTreeMap<_, i64> = BTreeMap::new();
        let mut pods = Vec::new();
        for pod in self.seen.recent_evictions.iter().filter(|pod| is_recreatable(&pod.traits)) {
            let missing = match pod.traits.controller {
                Some(controller) if controller.exists && controller.kind != super::view::ControllerKind::Other => {
                    let added = added.entry((pod.traits.namespace, controller.kind, controller.name)).or_insert(0);
                    let missing = *added < controller.replicas - controller.current_replicas;
                    *added += i64::from(missing);
                    missing
                }
                _ => true,
            };
            if missing {
                pods.push((self.snapshot.add_pod(None, &pod.traits), pod.id));
            }
        }
        try_to_place(self.snapshot, &mut self.planner.injected, &pods, &|_, _| true, true);
    }

    /// Empty nodes first, then those that were unneeded before, else as they come.
    fn sorted(&self, mut candidates: Vec<usize>, budgets: &RemainingBudgets<'_>) -> Vec<usize> {
        let unneeded: BTreeSet<NodeId> = self.planner.unneeded().collect();
        candidates.sort_by_cached_key(|&at| {
            let id = self.seen.nodes[at].id;
            let empty = self.snapshot.find(id).map_or(Some(false), |node| self.when_empty(node, budgets));
            (empty.is_none(), empty == Some(true), !unneeded.contains(&id))
        });
        candidates
    }

    /// If draining the node would move no pod and meet with no objection: whether it has to wait for pods to end.
    fn when_empty(&self, node: NodeAt, budgets: &RemainingBudgets<'_>) -> Option<bool> {
        let mut waits = false;
        for &pod in &self.snapshot.node(node).pods {
            let Some(at) = self.snapshot.observed_pod(pod) else { continue };
            match drainability(self.flags, &self.seen.pods[at], budgets, self.seen.now) {
                Drainability::Skipped | Drainability::Daemon => {}
                Drainability::WaitsForCompletion => waits = true,
                Drainability::Movable | Drainability::Blocks(_) => return None,
            }
        }
        Some(waits)
    }

    fn pods_of(&self, node: NodeAt, budgets: &RemainingBudgets<'_>) -> NodePods {
        let mut found = NodePods::default();
        for &pod in &self.snapshot.node(node).pods {
            let Some(at) = self.snapshot.observed_pod(pod) else { continue };
            match drainability(self.flags, &self.seen.pods[at], budgets, self.seen.now) {
                Drainability::Skipped => {}
                Drainability::Daemon => found.daemons.push(pod),
                Drainability::Movable => found.movable.push(pod),
                Drainability::WaitsForCompletion => found.waits = true,
                Drainability::Blocks(reason) => {
                    found.blocking = Some((at, reason));
                    return found;
                }
            }
        }
        found
    }

    /// Whether simulating the removal of a node makes sense.
    fn is_eligible(&self, at: usize, finding: &mut NodeFinding) -> bool {
        let (reason, found) = self.eligibility(&self.seen.nodes[at]);
        (finding.reason, finding.utilization) = (reason, found);
        finding.threshold = found.and_then(|_| self.threshold(&self.seen.nodes[at]));
        reason.is_none()
    }

    fn eligibility(&self, node: &NodeView) -> (Option<UnremovableReason>, Option<Utilization>) {
        use UnremovableReason as Reason;
        let Some(at) = self.snapshot.find(node.id) else { return (Some(Reason::UnexpectedError), None) };
        if self.planner.unremovable_until.contains_key(&node.id) {
            return (Some(Reason::RecentlyUnremovable), None);
        }
        if is_being_deleted(node, self.seen.now) {
            return (Some(Reason::CurrentlyBeingDeleted), None);
        }
        if is_excepted(node) {
            return (Some(Reason::ScaleDownDisabledAnnotation), None);
        }
        let Some(group) = node.group else { return (Some(Reason::UnexpectedError), None) };
        if !self.flags.scale_down_unready_enabled && !(self.usable)(node) {
            return (Some(Reason::ScaleDownUnreadyDisabled), None);
        }
        let (flags, options) = (self.flags, &self.seen.groups[group].options);
        let left_out = LeftOut {
            daemons: options.ignore_daemonsets_utilization.unwrap_or(flags.ignore_daemonsets_utilization),
            mirrors: flags.ignore_mirror_pods_utilization,
        };
        let on_node = |&pod: &PodAt| PodOnNode {
            traits: self.snapshot.traits(pod),
            requests: self.snapshot.requests(pod),
            view: self.snapshot.observed_pod(pod).map(|at| &self.seen.pods[at]),
        };
        let by_pods = |resource| {
            let pods = self.snapshot.node(at).pods.iter().map(on_node);
            Requested::by_pods(resource, pods, left_out, self.seen.now)
        };
        // The sum that the scheduler keeps is that of the pods, unless some of them do not count.
        let all_count = !left_out.daemons && !left_out.mirrors && !self.terminating.contains(&node.id);
        let requested = |resource| {
            if !all_count {
                return by_pods(resource);
            }
            let sums = Requested { counted: self.snapshot.requested(at, resource), left_out: 0 };
            debug_assert_eq!(sums, by_pods(resource), "{resource:?} of the pods on {}", node.name);
            sums
        };
        let found = utilization(&node.labels, &node.allocatable, requested);
        let Some(found) = found else { return (Some(Reason::UnexpectedError), None) };
        let needed = self.threshold(node).is_some_and(|threshold| found.share > threshold);
        (needed.then_some(Reason::NotUnderutilized), Some(found))
    }

    /// The share of a node's resources up to which little enough is asked for; `None` without a group.
    fn threshold(&self, node: &NodeView) -> Option<f64> {
        let (flags, options) = (self.flags, &self.seen.groups[node.group?].options);
        Some(if has_gpu(&node.labels, &node.allocatable) {
            options.gpu_utilization_threshold.unwrap_or(flags.scale_down_gpu_utilization_threshold)
        } else {
            options.utilization_threshold.unwrap_or(flags.scale_down_utilization_threshold)
        })
    }

    /// How long a node must have been unneeded before it goes, and the reason while it has not been; `None` without a group.
    fn wait(&self, node: &NodeView) -> Option<(SimDuration, UnremovableReason)> {
        let (flags, options) = (self.flags, &self.seen.groups[node.group?].options);
        Some(if (self.usable)(node) {
            let time = options.unneeded_time.unwrap_or(flags.scale_down_unneeded_time);
            (time, UnremovableReason::NotUnneededLongEnough)
        } else {
            let time = options.unready_time.unwrap_or(flags.scale_down_unready_time);
            (time, UnremovableReason::NotUnreadyLongEnough)
        })
    }

    /// Imagines nodes gone one after the other; what goes with one stays gone for the next.
    fn simulate(
        &mut self,
        eligible: &[usize],
        mut budgets: RemainingBudgets<'_>,
        findings: &mut [NodeFinding],
    ) -> Vec<Unneeded> {
        let limit = Planner::unneeded_limit(self.flags, self.planner.unneeded.len(), self.planner.interval);
        let until = self.seen.now + self.flags.unremovable_node_recheck_timeout;
        let mut destinations: BTreeSet<NodeId> = self.nodes.iter().map(|&at| self.seen.nodes[at].id).collect();
        destinations.retain(|&node| !self.seen.deletions.contain(node));
        let mut removable = Vec::new();
        let most = self.speed.map(|speed| work_within(self.flags.scale_down_simulation_timeout, speed));
        for (turn, &at) in eligible.iter().enumerate() {
            if removable.len() >= limit {
                eligible[turn..].iter().for_each(|&at| findings[at].passed_over = Some(PassedOver::EnoughFound));
                break;
            }
            if most.is_some_and(|most| model::moves(self.moved_pods) > most) {
                self.cut = true;
                break;
            }
            let node = &self.seen.nodes[at];
            let Some(place) = self.snapshot.find(node.id) else { continue };
            let pods = self.pods_of(place, &budgets);
            self.moved_pods += pods.movable.len() as u64;
            let reason = if pods.blocking.is_some() {
                Some(UnremovableReason::BlockedByPod)
            } else if !self.move_pods(place, node, &pods.movable, &destinations) {
                Some(UnremovableReason::NoPlaceToMovePods)
            } else {
                None
            };
            findings[at].unneeded = reason.is_none();
            (findings[at].reason, findings[at].blocking) = (reason, pods.blocking);
            if reason.is_some() {
                self.planner.unremovable_until.insert(node.id, until);
                continue;
            }
            let moved: Vec<_> =
                pods.movable.iter().map(|&pod| std::sync::Arc::clone(self.snapshot.traits(pod))).collect();
            let risky = !budgets.allow_at_once(moved.iter().map(|traits| &**traits));
            budgets.take(moved.iter().map(|traits| &**traits));
            destinations.remove(&node.id);
            let observed = |pods: &[PodAt]| pods.iter().filter_map(|&pod| self.snapshot.observed_pod(pod)).collect();
            removable.push(Unneeded {
                node: node.id,
                since: self.seen.now,
                observed: at,
                evict: observed(&pods.movable),
                daemons: observed(&pods.daemons),
                risky,
                waits: pods.waits,
            });
        }
        removable
    }

    /// Imagines a node gone and its pods elsewhere; takes it back if one finds no place.
    fn move_pods(&mut self, node: NodeAt, view: &NodeView, pods: &[PodAt], destinations: &BTreeSet<NodeId>) -> bool {
        let mark = self.snapshot.mark();
        let moving: Vec<(PodAt, PodId)> =
            pods.iter().filter_map(|&pod| Some((pod, self.seen.pods[self.snapshot.observed_pod(pod)?].id))).collect();
        self.snapshot.make_ghost(node, view);
        let left = try_to_place(
            self.snapshot,
            &mut self.planner.hints,
            &moving,
            &|at, entry| at != node && entry.observed.is_some() && destinations.contains(&entry.id),
            true,
        );
        if left.is_empty() {
            self.snapshot.remove_node(node);
            return true;
        }
        self.snapshot.go_back(mark);
        false
    }

    /// The unneeded nodes that go now; the others get the reason why not.
    fn nodes_to_delete(&mut self, findings: &mut [NodeFinding]) -> Vec<NodeDeletion> {
        let mut sizes: Vec<i64> = (0..self.seen.groups.len()).map(|group| self.actions.target_size(group)).collect();
        for node in self.seen.nodes.iter().filter(|node| self.seen.deletions.contain(node.id)) {
            if let Some(group) = node.group {
                sizes[group] -= 1;
            }
        }
        let (empty, drain): (Vec<&Unneeded>, Vec<&Unneeded>) =
            self.planner.unneeded.iter().partition(|node| node.evict.is_empty());
        let mut limits = self.limits.clone();
        let mut chosen: [Vec<(usize, &Unneeded)>; 2] = [Vec::new(), Vec::new()];
        for (nodes, kept) in [empty, drain].into_iter().zip(&mut chosen) {
            for node in nodes {
                match self.withheld(node, &mut sizes, &mut limits) {
                    // It has taken its place in the group and under the limits all the same: upstream looks at this last.
                    Ok(_) if node.waits => findings[node.observed].reason = Some(UnremovableReason::WaitsForCompletion),
                    Ok(group) => kept.push((group, node)),
                    Err(reason) => findings[node.observed].reason = Some(reason),
                }
            }
        }
        let [empty, mut drain] = chosen;
        drain.sort_by_key(|(_, node)| node.risky);
        let (empty, drain) = crop(self.flags, self.seen.deletions, &empty, &drain);
        // Pods that are on the node in thought only stay out: what is evicted is looked up anew.
        let there = |&&pod: &&usize, node: NodeId| self.seen.pods[pod].place == PodPlace::Bound(node);
        let deletion = |node: &Unneeded, empty| NodeDeletion {
            node: node.observed,
            evict: node.evict.iter().filter(|pod| there(pod, node.node)).copied().collect(),
            daemons: node.daemons.clone(),
            empty,
        };
        let empty = empty.into_iter().map(|node| deletion(node, true));
        empty.chain(drain.into_iter().map(|node| deletion(node, false))).collect()
    }

    /// Why an unneeded node does not go now; its group if it does, whose size is then counted down.
    fn withheld(&self, unneeded: &Unneeded, sizes: &mut [i64], limits: &mut Left) -> Result<usize, UnremovableReason> {
        let node = &self.seen.nodes[unneeded.observed];
        if is_excepted(node) {
            return Err(UnremovableReason::ScaleDownDisabledAnnotation);
        }
        let group = node.group.ok_or(UnremovableReason::UnexpectedError)?;
        let (wait, reason) = self.wait(node).ok_or(UnremovableReason::UnexpectedError)?;
        // The real program takes some time between noticing and deciding, so a wait of zero is over at once.
        if wait != SimDuration::ZERO && unneeded.since + wait >= self.seen.now {
            return Err(reason);
        }
        if sizes[group] <= self.seen.groups[group].min {
            return Err(UnremovableReason::NodeGroupMinSizeReached);
        }
        let amounts = |resource: Limited| amount(resource, &node.labels, &node.capacity, &node.allocatable);
        if !limits.try_remove(amounts) {
            return Err(UnremovableReason::MinimalResourceLimitExceeded);
        }
        sizes[group] -= 1;
        Ok(group)
    }
}

/// Whether the node is marked as one that stays.
fn is_excepted(node: &NodeView) -> bool {
    let key = Symbol::existing("cluster-autoscaler.kubernetes.io/scale-down-disabled");
    key.and_then(|key| node.annotations.get(key)) == Some(well_known::TRUE)
}

/// Whether the node carries the taint of a deletion that began a short while ago.
fn is_being_deleted(node: &NodeView, now: SimTime) -> bool {
    node.taints.iter().filter(|taint| taint.key.as_str() == TO_BE_DELETED).any(|taint| {
        let began = taint.value.as_str().parse::<i64>().ok();
        began.is_some_and(|began| now.as_secs() - began < DELETION_TAKES.as_secs())
    })
}
