//! Scale-up: which groups could help, by how much, which one is taken, and how its growth is capped and split.
//!
//! Source: Cluster Autoscaler 1.36 `core/scaleup/orchestrator/orchestrator.go`, `executor.go`.
//!
//! Deviation: ProvisioningRequests, proactive scale-up, capacity buffers, CapacityQuotas, and groups that are created
//! on demand are omitted.

use std::sync::Arc;

use super::cluster_state::{ClusterState, FailureReason};
use super::equivalence::{PodGroup, pod_groups};
use super::estimator::{NodeLimit, PackingGroup, estimate_within};
use super::expander::{ExpanderContext, ExpansionOption, GroupFacts, PodPrice, Round, rounds};
use super::flags::Flags;
use super::pods::WaitingPod;
use super::quotas::{Left, Limited, amount};
use super::similar::{Growth, balance};
use super::snapshot::{NodeAt, PodAt, Snapshot};
use super::utilization::has_gpu;
use super::view::{GroupActions, GroupView, NodeTemplate};
use crate::controller_time as model;
use nodecast_model::domain::controller_time::work_within;
use nodecast_model::domain::{GroupRanks, Resources, SimDuration, SimTime};
use nodecast_scheduler::Reason;

/// How a scale-up ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum ScaleUpResult {
    /// It was not tried.
    #[default]
    NotTried,
    /// No pod waits for room.
    NotNeeded,
    /// Groups grow.
    Successful,
    /// No group helps any pod.
    NoOptionsAvailable,
    /// The pods are too new.
    InCooldown,
    /// The cluster has as many nodes as it may.
    LimitedByMaxNodesTotal,
    /// A call was refused, or a limit left nothing.
    Error,
}

impl ScaleUpResult {
    /// The result's name as the autoscaler reports it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotTried => "NotTried",
            Self::NotNeeded => "NotNeeded",
            Self::Successful => "Successful",
            Self::NoOptionsAvailable => "NoOptionsAvailable",
            Self::InCooldown => "InCooldown",
            Self::LimitedByMaxNodesTotal => "LimitedByMaxNodesTotal",
            Self::Error => "Error",
        }
    }
}

/// Why a group is not looked at.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SkipReason {
    /// It is unhealthy, or nobody knows what its nodes are.
    NotReady,
    /// It failed a while ago.
    BackedOff,
    /// It has as many nodes as it may.
    MaxSizeReached,
    /// One node more would exceed limits of the cluster.
    QuotaExceeded(Vec<Limited>),
}

impl SkipReason {
    /// The reason in the autoscaler's words.
    pub fn text(&self) -> String {
        match self {
            Self::NotReady => "not ready for scale-up".to_owned(),
            Self::BackedOff => "in backoff after failed scale-up".to_owned(),
            Self::MaxSizeReached => "max node group size reached".to_owned(),
            Self::QuotaExceeded(resources) => {
                let names: Vec<&str> = resources.iter().map(|resource| resource.name()).collect();
                format!("exceeded quota: \"cluster-wide\", resources: {}", names.join(", "))
            }
        }
    }
}

/// Why nodes of a group do not take some pods, all alike.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupRefusal {
    /// The group.
    pub group: usize,
    /// The pods, as places among the observed pods.
    pub pods: Vec<usize>,
    /// What the filter that refused a fresh node gives for reasons.
    pub reasons: Vec<Reason>,
}

/// What a scale-up found and did. Pods are places among the observed pods.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ScaleUpReport {
    /// How it ended.
    pub result: ScaleUpResult,
    /// The pods that wait for room.
    pub considered: Vec<usize>,
    /// Pods that would wait for room but are not old enough yet.
    pub young: Vec<usize>,
    /// Groups left out.
    pub skipped: Vec<(usize, SkipReason)>,
    /// What each group would do.
    pub options: Vec<ExpansionOption>,
    /// Why nodes of groups do not take pods; only of a scale-up that was asked to explain itself.
    pub refusals: Vec<GroupRefusal>,
    /// What the expander's filters made of the options.
    pub rounds: Vec<Round>,
    /// Groups that the expander may take: several if a draw decides.
    pub choices: Vec<usize>,
    /// Groups that grew.
    pub grown: Vec<Growth>,
    /// Groups whose growth was refused.
    pub failed: Vec<usize>,
    /// Pods of the option taken.
    pub triggered: Vec<usize>,
    /// Pods that no group helps.
    pub unschedulable: Vec<usize>,
    /// Pods that another group helps.
    pub awaiting: Vec<usize>,
    /// What the estimates took, on the processor that was measured.
    pub took: SimDuration,
    /// Whether a limit of time stopped one of them, or kept groups from being looked at.
    pub cut: bool,
}

/// What the expanders `priority` and `price` go by.
#[derive(Clone, Debug, Default)]
pub struct ExpanderInputs {
    /// Ranks of groups; `None` without the ConfigMap.
    pub ranks: Option<GroupRanks>,
    /// Prices of pods.
    pub pod_price: Option<PodPrice>,
}

/// Everything that a scale-up works with.
pub(super) struct ScaleUp<'a> {
    pub(super) flags: &'a Flags,
    pub(super) now: SimTime,
    pub(super) groups: &'a [GroupView],
    pub(super) templates: &'a [Option<Arc<NodeTemplate>>],
    pub(super) inputs: &'a ExpanderInputs,
    pub(super) snapshot: &'a mut Snapshot,
    pub(super) state: &'a mut ClusterState,
    pub(super) actions: &'a mut dyn GroupActions,
    pub(super) ties: &'a mut dyn FnMut(usize) -> usize,
    /// The nodes that count: those of the snapshot before pods were placed, and those of earlier scale-ups.
    pub(super) nodes: Vec<NodeAt>,
    /// Registered nodes.
    pub(super) registered: usize,
    /// How fast the program computes, in percent of what was measured; `None` if its limits of time never bind.
    pub(super) speed: Option<u32>,
    /// Whether to say why nodes of a group do not take pods.
    pub(super) explains: bool,
}

/// The options of a scale-up, before the expander chooses one.
#[derive(Clone, Debug)]
pub(super) struct ScaleUpOptions {
    pod_groups: Vec<PodGroup>,
    candidates: Vec<Candidate>,
    quotas: Left,
    /// Considered pods, skipped groups, options, and the time that they took.
    pub(super) report: ScaleUpReport,
}

/// A group that may grow.
#[derive(Clone, Debug)]
struct Candidate {
    group: usize,
    template: Arc<NodeTemplate>,
    /// For each group of pods, whether its first pod would run on a fresh node.
    takes: Vec<bool>,
}

impl ScaleUp<'_> {
    /// One scale-up with these options, or with `salvo-scale-up` as many as there are pods to help.
    pub(super) fn run(&mut self, pods: &[WaitingPod], options: ScaleUpOptions) -> ScaleUpReport {
        let mut report = self.expand_and_grow(pods, options);
        if !self.flags.salvo_scale_up {
            return report;
        }
        let mut left: Vec<WaitingPod> = pods.to_vec();
        let mut last = report.clone();
        while last.result == ScaleUpResult::Successful && !last.triggered.is_empty() {
            let (helped, others): (Vec<_>, Vec<_>) =
                left.iter().partition(|pod| last.triggered.contains(&pod.observed));
            left = others;
            if left.is_empty() || !self.imagine_grown(&last.grown, &helped) {
                break;
            }
            let options = self.options(&left);
            last = self.expand_and_grow(&left, options);
            merge(&mut report, &last);
        }
        report
    }

    /// Puts the nodes of a scale-up into the snapshot, and the pods that they are for on them.
    fn imagine_grown(&mut self, grown: &[Growth], pods: &[WaitingPod]) -> bool {
        let mut fresh = Vec::new();
        for growth in grown {
            let Some(template) = &self.templates[growth.group] else { return false };
            for _ in growth.from..growth.to {
                fresh.push(self.snapshot.add_from_template(template));
            }
        }
        self.nodes.extend(&fresh);
        let first = fresh.first().copied();
        pods.iter()
            .all(|pod| first.is_some_and(|first| self.snapshot.place_anywhere(pod.at, |at, _| at >= first).is_some()))
    }

    /// Estimates for these pods what each group would do.
    pub(super) fn options(&mut self, pods: &[WaitingPod]) -> ScaleUpOptions {
        let mut report =
            ScaleUpReport { considered: pods.iter().map(|pod| pod.observed).collect(), ..ScaleUpReport::default() };
        let traits: Vec<_> = pods.iter().map(|pod| Arc::clone(self.snapshot.traits(pod.at))).collect();
        let pod_groups = pod_groups(traits.iter().map(|traits| &**traits));
        let quotas = self.quotas();
        let candidates = self.candidates(&pod_groups, pods, &quotas, &mut report);
        for at in 0..candidates.len() {
            let most = self.speed.map(|speed| work_within(self.flags.max_binpacking_time, speed));
            if !report.options.is_empty() && most.is_some_and(|most| report.took > most) {
                report.cut = true;
                break;
            }
            let option = self.option(at, &candidates, &pod_groups, pods, &mut report);
            report.options.extend(option);
        }
        ScaleUpOptions { pod_groups, candidates, quotas, report }
    }

    /// Lets the expander choose among the options, and lets the groups grow.
    fn expand_and_grow(&mut self, pods: &[WaitingPod], options: ScaleUpOptions) -> ScaleUpReport {
        let ScaleUpOptions { pod_groups, candidates, quotas, mut report } = options;
        let all: Vec<&PodGroup> = pod_groups.iter().collect();
        let helped = |group: usize| candidates.iter().any(|candidate| candidate.takes[group]);
        let places = |chosen: &dyn Fn(usize) -> bool| -> Vec<usize> {
            let chosen = all.iter().enumerate().filter(|(group, _)| chosen(*group));
            chosen.flat_map(|(_, group)| group.pods.iter().map(|&pod| pods[pod].observed)).collect()
        };
        let unschedulable = places(&|group| !helped(group));
        if report.options.is_empty() {
            report.result = ScaleUpResult::NoOptionsAvailable;
            report.unschedulable = unschedulable;
            return report;
        }
        report.rounds = self.expand(&report.options, &candidates);
        let kept = report.rounds.last().map_or_else(|| (0..report.options.len()).collect(), |last| last.left.clone());
        report.choices = kept.iter().map(|&at| report.options[at].group).collect();
        let Some(&best) = kept.get(if kept.len() > 1 { (self.ties)(kept.len()) } else { 0 }) else {
            report.result = ScaleUpResult::NoOptionsAvailable;
            report.unschedulable = report.considered.clone();
            return report;
        };
        let best = report.options[best].clone();
        report.triggered.clone_from(&best.pods);
        if !self.grow(&best, &candidates, quotas, &mut report) {
            report.result = ScaleUpResult::Error;
            return report;
        }
        report.result = ScaleUpResult::Successful;
        report.unschedulable = unschedulable;
        let taken = candidates.iter().find(|candidate| candidate.group == best.group);
        report.awaiting = places(&|group| helped(group) && taken.is_some_and(|taken| !taken.takes[group]));
        report
    }

    /// Groups that may grow, with what they would take; the others with the reason.
    fn candidates(
        &mut self,
        pod_groups: &[PodGroup],
        pods: &[WaitingPod],
        quotas: &Left,
        report: &mut ScaleUpReport,
    ) -> Vec<Candidate> {
        let mut candidates = Vec::new();
        for group in 0..self.groups.len() {
            match self.eligible(group, quotas) {
                Err(reason) => report.skipped.push((group, reason)),
                Ok(template) => {
                    let mark = self.snapshot.mark();
                    let node = self.snapshot.add_from_template(&template);
                    let first = |pods_alike: &PodGroup| pods[pods_alike.pods[0]].at;
                    let takes: Vec<bool> = pod_groups
                        .iter()
                        .map(|alike| {
                            let shape = self.snapshot.shape_of(first(alike));
                            self.snapshot.passes(shape, node)
                        })
                        .collect();
                    let refused = pod_groups.iter().zip(&takes).filter(|(_, takes)| !**takes && self.explains);
                    for (alike, _) in refused {
                        let Err(refusal) = self.snapshot.check(self.snapshot.shape_of(first(alike)), node) else {
                            continue;
                        };
                        let pods = alike.pods.iter().map(|&pod| pods[pod].observed).collect();
                        report.refusals.push(GroupRefusal { group, pods, reasons: refusal.reasons });
                    }
                    self.snapshot.go_back(mark);
                    candidates.push(Candidate { group, template, takes });
                }
            }
        }
        candidates
    }

    /// Whether a group may grow at all.
    fn eligible(&self, group: usize, quotas: &Left) -> Result<Arc<NodeTemplate>, SkipReason> {
        let view = &self.groups[group];
        if view.exists && !self.state.is_group_healthy(view.id) {
            return Err(SkipReason::NotReady);
        }
        if view.exists && self.state.is_backed_off(view.id, self.now) {
            return Err(SkipReason::BackedOff);
        }
        if self.actions.target_size(group) >= view.max {
            return Err(SkipReason::MaxSizeReached);
        }
        let template = self.templates[group].clone().ok_or(SkipReason::NotReady)?;
        let (_, exceeded) = quotas.allowed(&template, 1);
        if exceeded.is_empty() { Ok(template) } else { Err(SkipReason::QuotaExceeded(exceeded)) }
    }

    /// What the limits of the cluster leave.
    fn quotas(&self) -> Left {
        let used = |resource: Limited| {
            let nodes = self.nodes.iter().map(|&at| self.snapshot.node(at));
            nodes.map(|node| amount(resource, &node.labels, &node.capacity, &node.allocatable)).sum()
        };
        Left::to_add(&self.flags.resource_limits, used)
    }

    /// What one group would do; `None` if it helps no pod.
    fn option(
        &mut self,
        at: usize,
        candidates: &[Candidate],
        pod_groups: &[PodGroup],
        pods: &[WaitingPod],
        report: &mut ScaleUpReport,
    ) -> Option<ExpansionOption> {
        let candidate = &candidates[at];
        let taken: Vec<&PodGroup> =
            pod_groups.iter().zip(&candidate.takes).filter(|(_, takes)| **takes).map(|(group, _)| group).collect();
        if taken.is_empty() {
            return None;
        }
        let similar = self.similar(at, candidates);
        let sizes = std::iter::once(candidate.group)
            .chain(similar.iter().copied())
            .map(|group| (self.actions.target_size(group), self.groups[group].max));
        let limit = NodeLimit::of_thresholds([
            self.flags.max_nodes_per_scaleup,
            NodeLimit::free_room(sizes),
            NodeLimit::cluster_room(self.flags.max_nodes_total, self.nodes.len() as i64),
        ]);
        let places: Vec<Vec<PodAt>> =
            taken.iter().map(|group| group.pods.iter().map(|&pod| pods[pod].at).collect()).collect();
        let packing: Vec<PackingGroup<'_>> = places.iter().map(|pods| PackingGroup { pods }).collect();
        let fast = self.flags.fastpath_binpacking;
        let most = self.speed.map(|speed| work_within(self.flags.max_group_binpacking, speed));
        let estimate = estimate_within(self.snapshot, &packing, &candidate.template, limit, fast, most);
        report.took += model::estimate(&estimate.work);
        report.cut |= estimate.cut;
        let mut option = ExpansionOption {
            group: candidate.group,
            nodes: estimate.nodes,
            pods: Vec::new(),
            similar,
            requested: Resources::new(),
        };
        for ((group, &placed), place) in taken.iter().zip(&estimate.placed).zip(&places) {
            option.pods.extend(group.pods[..placed].iter().map(|&pod| pods[pod].observed));
            let requests = self.snapshot.traits(place[0]).spec.requests();
            for (name, amount) in requests.iter() {
                option.requested.set(name, option.requested.get(name) + amount * placed as i64);
            }
        }
        (option.nodes > 0 && !option.pods.is_empty()).then_some(option)
    }

    /// Groups that would share the growth of one: alike, fit to grow, and able to take at least the same pods.
    fn similar(&self, at: usize, candidates: &[Candidate]) -> Vec<usize> {
        if !self.flags.balance_similar_node_groups || !candidates[at].takes.contains(&true) {
            return Vec::new();
        }
        let candidate = &candidates[at];
        let alike = |other: &&Candidate| {
            other.group != candidate.group
                && self.flags.similarity.holds(&candidate.template, &other.template)
                && self.state.is_safe_to_scale(self.groups[other.group].id, self.now)
                && candidate.takes.iter().zip(&other.takes).all(|(candidate, other)| !candidate || *other)
        };
        candidates.iter().filter(alike).map(|other| other.group).collect()
    }

    /// What the expander makes of the options.
    fn expand(&self, options: &[ExpansionOption], candidates: &[Candidate]) -> Vec<Round> {
        let facts: Vec<GroupFacts<'_>> = options
            .iter()
            .filter_map(|option| candidates.iter().find(|candidate| candidate.group == option.group))
            .map(|candidate| {
                let (view, template) = (&self.groups[candidate.group], &*candidate.template);
                GroupFacts {
                    auto_scaling_group: view.auto_scaling_group,
                    template,
                    price_per_hour: view.price_per_hour,
                    exists: view.exists,
                    has_gpu: has_gpu(&template.labels, &template.allocatable),
                }
            })
            .collect();
        let context = ExpanderContext {
            ranks: self.inputs.ranks.as_ref(),
            pod_price: self.inputs.pod_price,
            cluster_nodes: self.registered,
        };
        rounds(&self.flags.expander, options, &facts, &context)
    }

    /// Caps the growth, splits it and carries it out. Gives back whether all went well.
    fn grow(
        &mut self,
        best: &ExpansionOption,
        candidates: &[Candidate],
        mut quotas: Left,
        report: &mut ScaleUpReport,
    ) -> bool {
        let Some(new_nodes) = capped_by_total(self.flags, best.nodes as i64, self.nodes.len() as i64) else {
            return false;
        };
        let Some(at) = candidates.iter().position(|candidate| candidate.group == best.group) else { return false };
        let (new_nodes, _) = quotas.allowed(&candidates[at].template, new_nodes);
        let template_of = |group: usize| candidates.iter().find(|other| other.group == group).map(|one| &one.template);
        let sharing = self
            .similar(at, candidates)
            .into_iter()
            .filter(|&group| template_of(group).is_some_and(|template| quotas.allowed(template, 1).1.is_empty()));
        let size = |group: usize| {
            let from = self.actions.target_size(group);
            Growth { group, from, to: from, max: self.groups[group].max }
        };
        let mut growths = balance(std::iter::once(best.group).chain(sharing).map(size), new_nodes);
        for growth in &mut growths {
            let Some(template) = template_of(growth.group) else { continue };
            let (allowed, _) = quotas.allowed(template, growth.to - growth.from);
            growth.to = growth.from + allowed;
            quotas.consume(template, allowed);
        }
        growths.retain(|growth| growth.to > growth.from);
        self.execute(&growths, report)
    }

    /// Asks the provider for each growth in turn. Without `parallel-scale-up` the first refusal stops the rest.
    fn execute(&mut self, growths: &[Growth], report: &mut ScaleUpReport) -> bool {
        for growth in growths {
            let (id, by) = (self.groups[growth.group].id, growth.to - growth.from);
            if self.actions.increase_size(growth.group, by).is_ok() {
                self.state.register_scale_up(id, by, self.now);
                report.grown.push(*growth);
                continue;
            }
            self.state.register_failure(id, FailureReason::Api, by, self.now);
            report.failed.push(growth.group);
            if !self.flags.parallel_scale_up {
                break;
            }
        }
        self.state.recalculate(self.groups, self.actions, self.now);
        report.failed.is_empty()
    }

    /// Raises groups below their minimum to it.
    ///
    /// Source: Cluster Autoscaler 1.36 `core/scaleup/orchestrator/orchestrator.go`, `ScaleUpToNodeGroupMinSize`.
    pub(super) fn raise_to_minimum(&mut self) -> ScaleUpReport {
        let mut report = ScaleUpReport { result: ScaleUpResult::NotNeeded, ..ScaleUpReport::default() };
        let quotas = self.quotas();
        let mut growths = Vec::new();
        for (group, view) in self.groups.iter().enumerate() {
            let from = self.actions.target_size(group);
            if from >= view.min || !view.exists || !self.state.is_safe_to_scale(view.id, self.now) {
                continue;
            }
            let Some(template) = &self.templates[group] else { continue };
            if !quotas.allowed(template, 1).1.is_empty() {
                continue;
            }
            let (wanted, _) = quotas.allowed(template, view.min - from);
            // Upstream compares with the size of this group alone.
            let Some(wanted) = capped_by_total(self.flags, wanted, from) else { continue };
            growths.push(Growth { group, from, to: from + wanted, max: view.max });
        }
        if !growths.is_empty() {
            let done = self.execute(&growths, &mut report);
            report.result = if done { ScaleUpResult::Successful } else { ScaleUpResult::Error };
        }
        report
    }
}

/// New nodes as far as `max-nodes-total` lets `nodes` grow; `None` if not by one.
fn capped_by_total(flags: &Flags, new_nodes: i64, nodes: i64) -> Option<i64> {
    let most = flags.max_nodes_total;
    if most > 0 && new_nodes + nodes > most {
        let left = most - nodes;
        return (left >= 1).then_some(left);
    }
    Some(new_nodes)
}

/// Adds a further scale-up of the same iteration to the report.
fn merge(report: &mut ScaleUpReport, last: &ScaleUpReport) {
    report.result = last.result;
    report.options.extend(last.options.iter().cloned());
    report.refusals.extend(last.refusals.iter().cloned());
    report.rounds.clone_from(&last.rounds);
    report
        .choices
        .extend(last.choices.iter().filter(|group| !report.choices.contains(group)).copied().collect::<Vec<_>>());
    report.took += last.took;
    report.cut |= last.cut;
    report.grown.extend(&last.grown);
    report.failed.extend(&last.failed);
    report.triggered.clone_from(&last.triggered);
    report.unschedulable.clone_from(&last.unschedulable);
    report.awaiting.clone_from(&last.awaiting);
}
