//! The Cluster Autoscaler: which groups grow for pods that find no room, and which nodes are not needed.
//!
//! [`ClusterAutoscaler`] remembers what the program remembers between iterations; [`ClusterAutoscaler::run_once`] is one
//! iteration of its main loop, on what the caller observes. Changes of groups go through [`GroupActions`], draws through an
//! argument, and deletions come back as a plan with reasons: taints, evictions and what follows are the caller's.
//!
//! Reproduced: version 1.36 with the AWS provider, and where decisions differ, earlier releases by version.
//!
//! What must not live here: a clock, events, randomness, the simulated EC2.

pub mod aws;
pub mod backoff;
pub mod budgets;
mod candidate_nodes;
pub mod cluster_state;
pub mod controller_time;
pub mod discovery;
pub mod drainability;
pub mod equivalence;
mod estimated_iteration;
pub mod estimator;
pub mod expander;
pub mod findings;
pub mod flags;
pub mod pods;
pub mod quotas;
pub mod scale_down;
pub mod scale_up;
pub mod similar;
pub mod snapshot;
pub mod templates;
pub mod utilization;
pub mod view;

pub use estimated_iteration::EstimatedIteration;
pub use flags::{FlagError, Flags};
pub use scale_down::{NodeDeletion, ScaleDownReport, ScaleDownResult};
pub use scale_up::{ExpanderInputs, ScaleUpReport, ScaleUpResult};
pub use view::{GroupActions, Observation, ResizeError};

use std::sync::Arc;

use cluster_state::ClusterState;
use nodecast_model::domain::{GroupRanks, NodeId, PodId, ResourceName, SimDuration, SimTime};
use pods::{Hints, WaitingPod};
use quotas::{Left, Limited};
use scale_down::{Planner, ScaleDown};
use scale_up::{ScaleUp, ScaleUpOptions};
use snapshot::{NodeAt, Snapshot};
use templates::TemplateCache;
use view::{NodeTemplate, NodeView, PodPlace, PodView};

/// The taint of a node that is being deleted; its value is the time in seconds.
pub const TO_BE_DELETED: &str = "ToBeDeletedByClusterAutoscaler";
/// The soft taint of a node that is not needed.
pub const DELETION_CANDIDATE: &str = "DeletionCandidateOfClusterAutoscaler";

/// How old pods must be for the autoscaler to act on them, if all are newer.
const PODS_ARE_NEW: SimDuration = SimDuration::from_secs(2);
/// The same for pods that ask for GPUs.
const GPU_PODS_ARE_NEW: SimDuration = SimDuration::from_secs(30);
/// How long before its start the program takes the last changes to have been.
const BEFORE_START: SimDuration = SimDuration::from_secs(3_600);

/// Why an iteration ended early.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EarlyEnd {
    /// There is no node, and `scale-up-from-zero` is off.
    EmptyCluster,
    /// Too many nodes are unready.
    UnhealthyCluster,
    /// The size of a group was corrected.
    FixedSize,
}

/// What one iteration found and did.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Iteration {
    /// Why it ended early, if it did.
    pub early_end: Option<EarlyEnd>,
    /// The scale-up.
    pub scale_up: ScaleUpReport,
    /// Groups raised to their minimum.
    pub raised: ScaleUpReport,
    /// The scale-down.
    pub scale_down: ScaleDownReport,
    /// Scale-ups that were found to have failed.
    pub failures: Vec<cluster_state::ScaleUpFailure>,
    /// Instances that were given up: group and ids.
    pub given_up: Vec<(usize, Vec<Arc<str>>)>,
    /// Nodes whose soft taint goes, and nodes that get one.
    pub soft_taints: SoftTaints,
}

/// Changes of the soft taints that mark nodes as not needed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SoftTaints {
    /// Nodes that are needed again.
    pub removed: Vec<NodeId>,
    /// Nodes that are not needed.
    pub added: Vec<NodeId>,
}

/// The program's memory.
#[derive(Clone, Debug)]
pub struct ClusterAutoscaler {
    flags: Flags,
    inputs: ExpanderInputs,
    state: ClusterState,
    templates: TemplateCache,
    planner: Planner,
    hints: Hints,
    next: usize,
    last_scale_up: SimTime,
    last_delete: SimTime,
    last_delete_failure: SimTime,
    speed: Option<u32>,
    /// Whether a scale-up says why nodes of groups do not take pods.
    explains: bool,
    kept: LastSnapshot,
    /// Number of changes from outside of iterations.
    revision: u64,
}

/// An iteration whose options for a scale-up are known.
#[derive(Clone, Debug)]
struct PreparedIteration {
    templates: Vec<Option<Arc<NodeTemplate>>>,
    /// Observed nodes that no upcoming node replaces.
    registered: Vec<usize>,
    /// The nodes of the snapshot before pods were placed.
    nodes: Vec<NodeAt>,
    listed: Vec<WaitingPod>,
    young: Vec<WaitingPod>,
    /// The options, or why no scale-up is tried.
    options: Result<ScaleUpOptions, ScaleUpResult>,
}

/// The snapshot of the last iteration. A copy of the program begins without.
#[derive(Debug, Default)]
struct LastSnapshot(Snapshot);

impl Clone for LastSnapshot {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl ClusterAutoscaler {
    /// The program as it starts at `now`.
    pub fn new(flags: Flags, inputs: ExpanderInputs, now: SimTime) -> Self {
        let long_ago = now - BEFORE_START;
        Self {
            inputs,
            state: ClusterState::new(&flags),
            templates: TemplateCache::default(),
            planner: Planner::new(&flags),
            hints: Hints::default(),
            next: 0,
            last_scale_up: long_ago,
            last_delete: long_ago,
            last_delete_failure: long_ago,
            speed: None,
            explains: false,
            kept: LastSnapshot::default(),
            revision: 0,
            flags,
        }
    }

    /// The same with limits of time, which bind a program that computes so fast, in percent of the processor that was measured.
    pub fn taking_time(self, speed_percent: u32) -> Self {
        Self { speed: Some(speed_percent), ..self }
    }

    /// The ranks of groups that the expander `priority` goes by from now on.
    ///
    /// Source: Cluster Autoscaler 1.36 `expander/priority/priority.go`, `BestOptions`, which reads its ConfigMap each time.
    pub fn replace_ranks(&mut self, ranks: GroupRanks) {
        self.inputs.ranks = Some(ranks);
        self.revision += 1;
    }

    /// The flags.
    pub const fn flags(&self) -> &Flags {
        &self.flags
    }

    /// What is remembered of groups.
    pub const fn state(&self) -> &ClusterState {
        &self.state
    }

    /// The same, to tell it what happened outside of iterations.
    pub const fn state_mut(&mut self) -> &mut ClusterState {
        self.revision += 1;
        &mut self.state
    }

    /// What is remembered of nodes that may go.
    pub const fn planner(&self) -> &Planner {
        &self.planner
    }

    /// Says that tainting a node for deletion failed: further deletions wait.
    pub const fn deletion_failed(&mut self, now: SimTime) {
        self.last_delete_failure = now;
        self.revision += 1;
    }

    /// Whether the next iteration begins at once, given when the one before the last began.
    ///
    /// Source: Cluster Autoscaler 1.36 `loop/trigger.go`.
    pub fn continues_at_once(&self, start_before_last: SimTime) -> bool {
        self.flags.frequent_loops && (self.last_scale_up >= start_before_last || self.last_delete >= start_before_last)
    }

    /// The same program, which says of each group why its nodes do not take a pod. For questions: nothing else differs.
    #[must_use]
    pub fn explaining(&self) -> Self {
        Self { explains: true, ..self.clone() }
    }

    /// The node with room for a pod, as the last iteration found; it may be one that is still to come.
    pub fn room_found_for(&self, pod: PodId) -> Option<NodeId> {
        self.hints.found(pod)
    }

    /// One iteration. `ties` draws among so many equal options.
    ///
    /// Source: Cluster Autoscaler 1.36 `core/static_autoscaler.go`, `RunOnce`.
    pub fn run_once(
        &mut self,
        seen: &Observation<'_>,
        actions: &mut dyn GroupActions,
        ties: &mut dyn FnMut(usize) -> usize,
    ) -> Iteration {
        let mut iteration = Iteration::default();
        if let Some(prepared) = self.prepare(seen, actions, &mut iteration) {
            self.conclude(seen, prepared, actions, ties, &mut iteration);
        }
        iteration
    }

    /// The first part of an iteration, up to the options of its scale-up; `None` if the iteration ends before.
    fn prepare(
        &mut self,
        seen: &Observation<'_>,
        actions: &mut dyn GroupActions,
        iteration: &mut Iteration,
    ) -> Option<PreparedIteration> {
        if seen.nodes.is_empty() && !self.flags.scale_up_from_zero {
            iteration.early_end = Some(EarlyEnd::EmptyCluster);
            return None;
        }
        let mut snapshot = std::mem::take(&mut self.kept.0);
        let waiting = fill(&self.flags, &mut snapshot, self.next, seen);
        let prepared = self.list_and_estimate(seen, (&mut snapshot, &waiting), actions, iteration);
        self.kept = LastSnapshot(snapshot);
        prepared
    }

    /// The same with the snapshot of what is observed, in which these pods wait.
    fn list_and_estimate(
        &mut self,
        seen: &Observation<'_>,
        (snapshot, waiting): (&mut Snapshot, &[usize]),
        actions: &mut dyn GroupActions,
        iteration: &mut Iteration,
    ) -> Option<PreparedIteration> {
        let flags = self.flags.clone();
        let usable = |node: &NodeView| is_usable(&flags, node);
        let templates = self.recompute_templates(seen, snapshot, &usable);
        self.state.update(seen.groups, seen.nodes, usable, actions, seen.now);
        iteration.early_end = self.tidy(seen, actions, iteration);
        iteration.failures = self.state.take_failures();
        if iteration.early_end.is_some() {
            return None;
        }
        let registered = self.add_upcoming(seen, &templates, snapshot);
        let nodes = snapshot.order().to_vec();
        let listed = pods::process(&flags, snapshot, &mut self.hints, seen.pods, waiting, seen.deletions);
        let old = |pod: &WaitingPod| pods::is_old_enough(&flags, &seen.pods[pod.observed], seen.now);
        let (listed, young): (Vec<WaitingPod>, Vec<WaitingPod>) = listed.into_iter().partition(old);
        let ready = seen.nodes.iter().filter(|node| usable(node)).count();
        let options = match self.gate(seen, &listed, ready) {
            Some(result) => Err(result),
            None => Ok(self.scale_up(seen, &templates, snapshot, actions, &mut |_| 0, nodes.clone()).options(&listed)),
        };
        Some(PreparedIteration { templates, registered, nodes, listed, young, options })
    }

    /// The rest of an iteration: one group grows, nodes go.
    fn conclude(
        &mut self,
        seen: &Observation<'_>,
        prepared: PreparedIteration,
        actions: &mut dyn GroupActions,
        ties: &mut dyn FnMut(usize) -> usize,
        iteration: &mut Iteration,
    ) {
        let PreparedIteration { templates, registered, nodes, listed, young, options } = prepared;
        let (mut kept, flags) = (std::mem::take(&mut self.kept), self.flags.clone());
        let (snapshot, usable) = (&mut kept.0, |node: &NodeView| is_usable(&flags, node));
        let gate = options.as_ref().err().copied();
        iteration.scale_up = match options {
            Err(result) => ScaleUpReport {
                result,
                considered: listed.iter().map(|pod| pod.observed).collect(),
                unschedulable: match result {
                    ScaleUpResult::LimitedByMaxNodesTotal => listed.iter().map(|pod| pod.observed).collect(),
                    _ => Vec::new(),
                },
                ..ScaleUpReport::default()
            },
            Ok(options) => {
                self.scale_up(seen, &templates, snapshot, actions, ties, nodes.clone()).run(&listed, options)
            }
        };
        iteration.scale_up.young = young.iter().map(|pod| pod.observed).collect();
        if iteration.scale_up.result == ScaleUpResult::Successful {
            self.last_scale_up = seen.now;
        }
        if flags.scale_down_enabled {
            let limits = limits_to_remove(&flags, snapshot, &nodes, seen);
            let in_cooldown = gate == Some(ScaleUpResult::InCooldown) || self.is_in_cooldown(seen.now);
            let (planner, state, speed) = (&mut self.planner, &self.state, self.speed);
            let work = ScaleDown {
                flags: &flags,
                seen,
                nodes: &registered,
                snapshot,
                planner,
                state,
                actions,
                usable: &usable,
                terminating: pods::nodes_of_terminating(seen.pods),
                limits,
                speed,
                moved_pods: 0,
                cut: false,
            };
            iteration.scale_down = work.run(in_cooldown);
            if iteration.scale_down.result == ScaleDownResult::NodeDeleteStarted {
                self.last_delete = seen.now;
            }
            iteration.soft_taints = self.soft_taints(seen);
        }
        if flags.enforce_node_group_min_size {
            let nodes = nodes.into_iter().filter(|&node| snapshot.order().contains(&node)).collect();
            iteration.raised = self.scale_up(seen, &templates, snapshot, actions, ties, nodes).raise_to_minimum();
            if iteration.raised.result == ScaleUpResult::Successful {
                self.last_scale_up = seen.now;
            }
        }
        self.next = snapshot.next();
        iteration.failures.extend(self.state.take_failures());
        self.kept = kept;
    }

    fn recompute_templates(
        &mut self,
        seen: &Observation<'_>,
        snapshot: &Snapshot,
        usable: &dyn Fn(&NodeView) -> bool,
    ) -> Vec<Option<Arc<NodeTemplate>>> {
        let pods_of = |node: usize| {
            let Some(at) = snapshot.find(seen.nodes[node].id) else { return Vec::new() };
            let pods = snapshot.node(at).pods.iter();
            let staying = pods.filter(|&&pod| {
                snapshot.observed_pod(pod).is_none_or(|observed| seen.pods[observed].deleted_at.is_none())
            });
            staying.map(|&pod| Arc::clone(snapshot.traits(pod))).collect()
        };
        self.templates.templates(&self.flags, seen, usable, &pods_of)
    }

    /// Deals with instances that never became nodes, and with sizes that are wrong. Gives back why the iteration ends here,
    /// if it does.
    fn tidy(
        &mut self,
        seen: &Observation<'_>,
        actions: &mut dyn GroupActions,
        iteration: &mut Iteration,
    ) -> Option<EarlyEnd> {
        for (at, group) in seen.groups.iter().enumerate() {
            let mut long = self.state.long_unregistered(group.id).to_vec();
            if !self.flags.force_delete_unregistered_nodes {
                let room = actions.target_size(at) - group.min;
                long.truncate(usize::try_from(room).unwrap_or(0));
            }
            give_up(at, long, actions, iteration);
        }
        if !self.state.is_cluster_healthy() {
            self.planner.forget_unneeded();
            return Some(EarlyEnd::UnhealthyCluster);
        }
        let mut deleted_any = false;
        for (at, group) in seen.groups.iter().enumerate() {
            let failing = group.instances.iter().filter(|instance| instance.error.is_some());
            deleted_any |= give_up(at, failing.map(|instance| Arc::clone(&instance.id)).collect(), actions, iteration);
        }
        if deleted_any {
            self.state.recalculate(seen.groups, actions, seen.now);
        }
        let mut fixed = false;
        for (at, group) in seen.groups.iter().enumerate() {
            let Some(incorrect) = self.state.incorrect_size(group.id) else { continue };
            let delta = incorrect.expected - incorrect.current;
            if incorrect.since + self.flags.max_node_provision_time < seen.now && delta > 0 {
                fixed |= actions.decrease_target_size(at, delta).is_ok();
            }
        }
        fixed.then_some(EarlyEnd::FixedSize)
    }

    /// Puts nodes that will come into the snapshot, in place of those that are registered and not ready. Gives back the nodes
    /// that are neither.
    fn add_upcoming(
        &self,
        seen: &Observation<'_>,
        templates: &[Option<Arc<NodeTemplate>>],
        snapshot: &mut Snapshot,
    ) -> Vec<usize> {
        let mut replaced: Vec<NodeId> = Vec::new();
        for upcoming in self.state.upcoming(seen.groups, seen.now) {
            if let Some(template) = &templates[upcoming.group] {
                for _ in 0..upcoming.nodes {
                    snapshot.add_from_template(template);
                }
            }
            replaced.extend(upcoming.registered);
        }
        for node in &replaced {
            if let Some(at) = snapshot.find(*node) {
                snapshot.remove_node(at);
            }
        }
        (0..seen.nodes.len()).filter(|&at| !replaced.contains(&seen.nodes[at].id)).collect()
    }

    /// Why no scale-up is tried, if so.
    fn gate(&self, seen: &Observation<'_>, pods: &[WaitingPod], ready_nodes: usize) -> Option<ScaleUpResult> {
        let most = self.flags.max_nodes_total;
        if pods.is_empty() {
            Some(ScaleUpResult::NotNeeded)
        } else if most > 0 && ready_nodes as i64 >= most {
            Some(ScaleUpResult::LimitedByMaxNodesTotal)
        } else if self.flags.bypassed_scheduler_names.is_empty() && are_all_new(seen, pods) {
            Some(ScaleUpResult::InCooldown)
        } else {
            None
        }
    }

    fn scale_up<'a>(
        &'a mut self,
        seen: &'a Observation<'_>,
        templates: &'a [Option<Arc<NodeTemplate>>],
        snapshot: &'a mut Snapshot,
        actions: &'a mut dyn GroupActions,
        ties: &'a mut dyn FnMut(usize) -> usize,
        nodes: Vec<NodeAt>,
    ) -> ScaleUp<'a> {
        ScaleUp {
            flags: &self.flags,
            now: seen.now,
            groups: seen.groups,
            templates,
            inputs: &self.inputs,
            snapshot,
            state: &mut self.state,
            actions,
            ties,
            nodes,
            registered: seen.nodes.len(),
            speed: self.speed,
            explains: self.explains,
        }
    }

    fn is_in_cooldown(&self, now: SimTime) -> bool {
        !self.flags.scale_down_delay_type_local && self.cooldown_until() > now
    }

    /// Until when no node goes because of what happened before, where delays count for all groups together.
    pub fn cooldown_until(&self) -> SimTime {
        let flags = &self.flags;
        let after_add = self.last_scale_up + flags.scale_down_delay_after_add;
        let after_failure = self.last_delete_failure + flags.scale_down_delay_after_failure;
        after_add.max(after_failure).max(self.last_delete + flags.scale_down_delay_after_delete)
    }

    /// Which nodes of groups lose or get the soft taint: removals first, only so many changes.
    ///
    /// Source: Cluster Autoscaler 1.36 `core/scaledown/actuation/softtaint.go`.
    fn soft_taints(&self, seen: &Observation<'_>) -> SoftTaints {
        let mut left = usize::try_from(self.flags.max_bulk_soft_taint_count).unwrap_or(0);
        let mut changes = SoftTaints::default();
        let tainted = |node: &NodeView, key: &str| node.taints.iter().any(|taint| taint.key.as_str() == key);
        let unneeded: Vec<NodeId> = self.planner.unneeded().collect();
        let managed = || seen.nodes.iter().filter(|node| node.group.is_some() && !tainted(node, TO_BE_DELETED));
        for node in managed() {
            if left > 0 && tainted(node, DELETION_CANDIDATE) && !unneeded.contains(&node.id) {
                changes.removed.push(node.id);
                left -= 1;
            }
        }
        for node in managed() {
            if left > 0 && !tainted(node, DELETION_CANDIDATE) && unneeded.contains(&node.id) {
                changes.added.push(node.id);
                left -= 1;
            }
        }
        changes
    }
}

/// Lets the snapshot take over nodes and the pods that they hold; gives back the pods that wait.
fn fill(flags: &Flags, snapshot: &mut Snapshot, next: usize, seen: &Observation<'_>) -> Vec<usize> {
    let mut split = pods::split(flags, seen.pods);
    split.placed.retain(|&(at, _)| !pods::is_expendable(flags, &seen.pods[at].traits));
    if let Some(listing) = seen.listing {
        let is_unprocessed = |at: usize| seen.pods[at].place == PodPlace::Unprocessed;
        split.waiting.sort_by_key(|&at| (is_unprocessed(at), listing.pod(seen.pods[at].id)));
    }
    snapshot.set_ignores_claims(!flags.dynamic_resources);
    snapshot.observe(next, seen, &split.placed);
    split.waiting
}

/// Whether a node is ready, has started up, and has the GPU that its label promises.
fn is_usable(flags: &Flags, node: &NodeView) -> bool {
    let lacks_gpu = utilization::has_gpu_label(&node.labels) && node.allocatable.get(ResourceName::NVIDIA_GPU) == 0;
    templates::is_ready(node)
        && !lacks_gpu
        && !node.taints.iter().any(|taint| templates::is_startup_taint(flags, taint))
}

/// Deletes instances that are no use; whether that was done.
fn give_up(group: usize, instances: Vec<Arc<str>>, actions: &mut dyn GroupActions, iteration: &mut Iteration) -> bool {
    let done = !instances.is_empty() && actions.delete_instances(group, &instances).is_ok();
    if done {
        iteration.given_up.push((group, instances));
    }
    done
}

/// Whether all pods are so new that more may come.
///
/// Source: Cluster Autoscaler 1.36 `core/static_autoscaler.go`, `allPodsAreNew`.
fn are_all_new(seen: &Observation<'_>, pods: &[WaitingPod]) -> bool {
    let oldest = |chosen: &dyn Fn(&PodView) -> bool| {
        pods.iter().map(|pod| &seen.pods[pod.observed]).filter(|pod| chosen(pod)).map(|pod| pod.created).min()
    };
    let newer = |created: Option<SimTime>, span| created.is_some_and(|created| created + span > seen.now);
    let asks_for_gpu = |pod: &PodView| pod.traits.spec.requests().get(ResourceName::NVIDIA_GPU) > 0;
    newer(oldest(&|_| true), PODS_ARE_NEW) || newer(oldest(&asks_for_gpu), GPU_PODS_ARE_NEW)
}

/// What the limits of the cluster let go, with what is being deleted already taken off.
fn limits_to_remove(flags: &Flags, snapshot: &Snapshot, nodes: &[NodeAt], seen: &Observation<'_>) -> Left {
    let staying = |at: &&NodeAt| {
        let observed = snapshot.node(**at).observed;
        observed.is_none_or(|observed| !seen.deletions.contain(seen.nodes[observed].id))
    };
    let used = |resource: Limited| {
        let nodes = nodes.iter().filter(staying).map(|&at| snapshot.node(at));
        nodes.map(|node| quotas::amount(resource, &node.labels, &node.capacity, &node.allocatable)).sum()
    };
    Left::to_remove(&flags.resource_limits, used)
}
