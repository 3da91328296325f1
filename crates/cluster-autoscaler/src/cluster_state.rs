//! What the autoscaler remembers of its groups: nodes asked for and not there yet, instances that never became nodes,
//! failures; and what follows for the health of groups and cluster.
//!
//! Source: Cluster Autoscaler 1.36 `clusterstate/clusterstate.go`.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::backoff::{Backoff, BackoffTimes};
use super::flags::Flags;
use super::view::{GroupActions, GroupView, NodeView};
use nodecast_model::domain::{KubernetesBehaviour, NodeId, SimDuration, SimTime, Symbol};

/// How long an ended scale-down still counts in the acceptable sizes.
const SCALE_DOWN_COUNTS: SimDuration = SimDuration::from_secs(300);

/// Nodes that a group was asked to grow by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ScaleUpRequest {
    /// How many.
    pub increase: i64,
    /// When the last of them were asked for.
    pub at: SimTime,
    /// When they must be there.
    pub expected_by: SimTime,
}

/// The nodes of a group by condition.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Readiness {
    /// Ready.
    pub ready: Vec<NodeId>,
    /// Not ready, and old enough that they should be.
    pub unready: Vec<NodeId>,
    /// Not ready and young.
    pub not_started: Vec<NodeId>,
    /// Suspended.
    pub suspended: Vec<NodeId>,
    /// The instance is gone.
    pub deleted: Vec<NodeId>,
    /// Instances that have no node yet.
    pub unregistered: Vec<Arc<str>>,
    /// Instances that have had no node for too long.
    pub long_unregistered: Vec<Arc<str>>,
}

impl Readiness {
    fn registered(&self) -> i64 {
        (self.ready.len() + self.unready.len() + self.not_started.len() + self.suspended.len() + self.deleted.len())
            as i64
    }
}

/// The sizes that a group may have without being called unhealthy.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AcceptableRange {
    /// The target.
    pub target: i64,
    /// Fewest.
    pub min: i64,
    /// Most.
    pub max: i64,
}

/// A group whose size is not its target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IncorrectSize {
    /// Registered nodes.
    pub current: i64,
    /// The target.
    pub expected: i64,
    /// Since when it has been so, unchanged.
    pub since: SimTime,
}

/// Why a scale-up failed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum FailureReason {
    /// The call was refused.
    Api,
    /// The nodes did not come in time.
    Timeout,
    /// Instances could not be created.
    Creation(super::view::InstanceError),
}

/// A failed scale-up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ScaleUpFailure {
    /// The group.
    pub group: Symbol,
    /// Why.
    pub reason: FailureReason,
    /// Nodes that were asked for.
    pub increase: i64,
}

/// What one group must know.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct GroupState {
    request: Option<ScaleUpRequest>,
    scale_downs: Vec<SimTime>,
    unregistered_since: BTreeMap<Arc<str>, SimTime>,
    failing_instances: Vec<Arc<str>>,
    incorrect: Option<IncorrectSize>,
    readiness: Readiness,
    range: AcceptableRange,
}

impl GroupState {
    fn has_readiness(&self) -> bool {
        let readiness = &self.readiness;
        readiness.registered() > 0 || !readiness.unregistered.is_empty() || !readiness.long_unregistered.is_empty()
    }
}

/// Upcoming nodes of one group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Upcoming {
    /// The group.
    pub group: usize,
    /// Nodes that will come.
    pub nodes: i64,
    /// Those among them that are registered and not ready yet.
    pub registered: Vec<NodeId>,
}

/// What is remembered of all groups.
#[derive(Clone, PartialEq, Debug)]
pub struct ClusterState {
    provision_time: SimDuration,
    startup_time: SimDuration,
    ok_unready_count: i64,
    ok_unready_percentage: f64,
    upcoming_needs_request: bool,
    backoff: Backoff,
    groups: BTreeMap<Symbol, GroupState>,
    unready: usize,
    nodes: usize,
    last_scale_up: BTreeMap<Symbol, SimTime>,
    last_scale_down: BTreeMap<Symbol, SimTime>,
    last_failure: BTreeMap<Symbol, SimTime>,
    /// Failures since they were last taken.
    failures: Vec<ScaleUpFailure>,
}

impl ClusterState {
    /// Nothing known yet.
    pub fn new(flags: &Flags) -> Self {
        let times = BackoffTimes { initial: flags.initial_backoff, max: flags.max_backoff, reset: flags.backoff_reset };
        Self {
            provision_time: flags.max_node_provision_time,
            startup_time: flags.max_node_startup_time,
            ok_unready_count: flags.ok_total_unready_count,
            ok_unready_percentage: flags.max_total_unready_percentage,
            upcoming_needs_request: flags.version.has(KubernetesBehaviour::CaUpcomingNeedsRequest),
            backoff: Backoff::new(times),
            groups: BTreeMap::new(),
            unready: 0,
            nodes: 0,
            last_scale_up: BTreeMap::new(),
            last_scale_down: BTreeMap::new(),
            last_failure: BTreeMap::new(),
            failures: Vec::new(),
        }
    }

    /// Takes in what is observed at the start of an iteration. Requests that ran out of time are given up, and the target is
    /// lowered by what they asked for, if the provider lets it.
    pub fn update(
        &mut self,
        groups: &[GroupView],
        nodes: &[NodeView],
        is_ready: impl Fn(&NodeView) -> bool,
        actions: &mut dyn GroupActions,
        now: SimTime,
    ) {
        let targets: Vec<i64> = (0..groups.len()).map(|group| actions.target_size(group)).collect();
        self.backoff.forget_stale(now);
        for group in groups {
            self.groups.entry(group.id).or_default();
        }
        self.update_readiness(groups, nodes, is_ready, now);
        self.update_ranges(groups, &targets, now);
        self.update_requests(groups, actions, now);
        self.take_in_creation_errors(groups, now);
        self.update_ranges(groups, &targets, now);
        self.update_incorrect_sizes(groups, now);
    }

    fn update_readiness(
        &mut self,
        groups: &[GroupView],
        nodes: &[NodeView],
        is_ready: impl Fn(&NodeView) -> bool,
        now: SimTime,
    ) {
        (self.unready, self.nodes) = (0, nodes.len());
        for state in self.groups.values_mut() {
            state.readiness = Readiness::default();
        }
        for node in nodes {
            let state = node.group.and_then(|group| self.groups.get_mut(&groups[group].id));
            let mut none = Readiness::default();
            let readiness = state.map_or(&mut none, |state| &mut state.readiness);
            let list = if node.instance_gone {
                &mut readiness.deleted
            } else if node.suspended {
                &mut readiness.suspended
            } else if is_ready(node) {
                &mut readiness.ready
            } else if node.created + self.startup_time > now {
                &mut readiness.not_started
            } else {
                self.unready += 1;
                &mut readiness.unready
            };
            list.push(node.id);
        }
        for group in groups {
            let Some(state) = self.groups.get_mut(&group.id) else { continue };
            let expected = |instance: &&super::view::InstanceView| {
                instance.node.is_none() && !instance.deleting && instance.error.is_none()
            };
            let waiting: Vec<&Arc<str>> = group.instances.iter().filter(expected).map(|one| &one.id).collect();
            state.unregistered_since.retain(|id, _| waiting.contains(&id));
            for id in waiting {
                let since = *state.unregistered_since.entry(Arc::clone(id)).or_insert(now);
                let long = since + self.provision_time < now;
                let readiness = &mut state.readiness;
                let list = if long { &mut readiness.long_unregistered } else { &mut readiness.unregistered };
                list.push(Arc::clone(id));
            }
        }
    }

    /// Works out which sizes are acceptable.
    fn update_ranges(&mut self, groups: &[GroupView], targets: &[i64], now: SimTime) {
        for (group, &target) in groups.iter().zip(targets) {
            let Some(state) = self.groups.get_mut(&group.id) else { continue };
            state.scale_downs.retain(|&ended| ended + SCALE_DOWN_COUNTS >= now);
            let pending = state.request.map_or(0, |request| request.increase);
            state.range = AcceptableRange {
                target,
                min: target - state.readiness.long_unregistered.len() as i64 - pending,
                max: target + state.scale_downs.len() as i64,
            };
        }
    }

    /// Works the acceptable sizes out anew after targets changed.
    pub fn recalculate(&mut self, groups: &[GroupView], actions: &dyn GroupActions, now: SimTime) {
        let targets: Vec<i64> = (0..groups.len()).map(|group| actions.target_size(group)).collect();
        self.update_ranges(groups, &targets, now);
    }

    fn update_requests(&mut self, groups: &[GroupView], actions: &mut dyn GroupActions, now: SimTime) {
        for (at, group) in groups.iter().enumerate() {
            let Some(state) = self.groups.get_mut(&group.id) else { continue };
            let Some(request) = state.request else { continue };
            if missing(state) <= 0 {
                state.request = None;
            } else if request.expected_by < now {
                state.request = None;
                self.register_failure(group.id, FailureReason::Timeout, request.increase, now);
                if self.upcoming_needs_request {
                    // What the provider answers is only logged.
                    let _ = actions.decrease_target_size(at, request.increase);
                }
            }
        }
    }

    fn take_in_creation_errors(&mut self, groups: &[GroupView], now: SimTime) {
        for group in groups {
            let Some(state) = self.groups.get_mut(&group.id) else { continue };
            let failing: Vec<_> = group.instances.iter().filter(|instance| instance.error.is_some()).collect();
            let known = std::mem::take(&mut state.failing_instances);
            state.failing_instances = failing.iter().map(|instance| Arc::clone(&instance.id)).collect();
            let mut fresh: BTreeMap<super::view::InstanceError, i64> = BTreeMap::new();
            for instance in failing {
                if let Some(error) = instance.error
                    && !known.contains(&instance.id)
                {
                    *fresh.entry(error).or_insert(0) += 1;
                }
            }
            for (error, count) in fresh {
                let Some(state) = self.groups.get_mut(&group.id) else { continue };
                if state.request.is_some() && missing(state) > 0 {
                    state.add_to_request(-count, now, self.provision_time);
                    self.register_failure(group.id, FailureReason::Creation(error), count, now);
                }
            }
        }
    }

    fn update_incorrect_sizes(&mut self, groups: &[GroupView], now: SimTime) {
        for group in groups {
            let Some(state) = self.groups.get_mut(&group.id) else { continue };
            let known = state.has_readiness();
            let readiness = &state.readiness;
            let unregistered = (readiness.unregistered.len() + readiness.long_unregistered.len()) as i64;
            let (current, expected) = (readiness.registered(), state.range.target);
            let incorrect = known && (current < expected - unregistered || current > expected);
            let unchanged = |before: &IncorrectSize| before.current == current && before.expected == expected;
            let since = state.incorrect.filter(unchanged).map_or(now, |before| before.since);
            state.incorrect = incorrect.then_some(IncorrectSize { current, expected, since });
        }
    }

    /// Remembers that a group was asked to grow.
    pub fn register_scale_up(&mut self, group: Symbol, increase: i64, now: SimTime) {
        let provision_time = self.provision_time;
        self.groups.entry(group).or_default().add_to_request(increase, now, provision_time);
        self.last_scale_up.insert(group, now);
    }

    /// Remembers that a node was deleted.
    pub fn register_scale_down(&mut self, group: Symbol, now: SimTime) {
        self.groups.entry(group).or_default().scale_downs.push(now);
        self.last_scale_down.insert(group, now);
    }

    /// Remembers that a deletion failed, for delays that count for each group alone.
    pub fn register_failed_scale_down(&mut self, group: Symbol, now: SimTime) {
        self.last_failure.insert(group, now);
    }

    /// Remembers that a group failed to grow, and leaves it alone for a while.
    pub fn register_failure(&mut self, group: Symbol, reason: FailureReason, increase: i64, now: SimTime) {
        self.backoff.fail(group, now);
        self.failures.push(ScaleUpFailure { group, reason, increase });
    }

    /// The failures since the last call.
    pub fn take_failures(&mut self) -> Vec<ScaleUpFailure> {
        std::mem::take(&mut self.failures)
    }

    /// Whether few enough nodes are unready for the autoscaler to act.
    pub fn is_cluster_healthy(&self) -> bool {
        let unready = self.unready as i64;
        unready <= self.ok_unready_count || unready as f64 <= self.nodes as f64 * self.ok_unready_percentage / 100.0
    }

    /// Whether a group has about the nodes that it ought to have.
    pub fn is_group_healthy(&self, group: Symbol) -> bool {
        let Some(state) = self.groups.get(&group) else { return false };
        let (range, readiness) = (&state.range, &state.readiness);
        if !state.has_readiness() {
            return range.target == 0 || (range.min == 0 && range.target > 0);
        }
        let there = (readiness.ready.len() + readiness.suspended.len()) as i64;
        let missing = (range.min - there).max(0);
        let known = there + (readiness.unready.len() + readiness.not_started.len()) as i64;
        missing <= self.ok_unready_count || missing as f64 <= known as f64 * self.ok_unready_percentage / 100.0
    }

    /// Whether a group is left alone after a failure.
    pub fn is_backed_off(&self, group: Symbol, now: SimTime) -> bool {
        self.backoff.holds(group, now)
    }

    /// Whether a group may grow.
    pub fn is_safe_to_scale(&self, group: Symbol, now: SimTime) -> bool {
        self.is_group_healthy(group) && !self.is_backed_off(group, now)
    }

    /// Whether nodes asked for are still missing.
    pub fn is_scaling_up(&self, group: Symbol) -> bool {
        self.groups.get(&group).is_some_and(|state| state.request.is_some() && missing(state) > 0)
    }

    /// Nodes that will come, by group. Since 1.36 only nodes that were asked for count.
    pub fn upcoming(&self, groups: &[GroupView], now: SimTime) -> Vec<Upcoming> {
        let mut all = Vec::new();
        for (at, group) in groups.iter().enumerate() {
            let Some(state) = self.groups.get(&group.id) else { continue };
            let disregarded =
                self.upcoming_needs_request && (state.request.is_none() || self.backoff.holds(group.id, now));
            let nodes = missing(state);
            if nodes > 0 && !disregarded {
                all.push(Upcoming { group: at, nodes, registered: state.readiness.not_started.clone() });
            }
        }
        all
    }

    /// Instances that have had no node for too long.
    pub fn long_unregistered(&self, group: Symbol) -> &[Arc<str>] {
        self.groups.get(&group).map_or(&[], |state| &state.readiness.long_unregistered)
    }

    /// How a group's nodes are.
    pub fn readiness(&self, group: Symbol) -> Option<&Readiness> {
        self.groups.get(&group).map(|state| &state.readiness)
    }

    /// The sizes that a group may have.
    pub fn acceptable_range(&self, group: Symbol) -> Option<AcceptableRange> {
        self.groups.get(&group).map(|state| state.range)
    }

    /// The request that a group works on.
    pub fn request(&self, group: Symbol) -> Option<ScaleUpRequest> {
        self.groups.get(&group).and_then(|state| state.request)
    }

    /// Since when a group's size has been wrong, if it is.
    pub fn incorrect_size(&self, group: Symbol) -> Option<IncorrectSize> {
        self.groups.get(&group).and_then(|state| state.incorrect)
    }

    /// When a group last grew, lost a node, and failed to lose one.
    pub(super) fn last_changes(&self, group: Symbol) -> [Option<SimTime>; 3] {
        [&self.last_scale_up, &self.last_scale_down, &self.last_failure].map(|times| times.get(&group).copied())
    }
}

impl GroupState {
    fn add_to_request(&mut self, increase: i64, now: SimTime, provision_time: SimDuration) {
        let before = self.request;
        let total = before.map_or(0, |request| request.increase) + increase;
        self.request = (total > 0).then(|| match before {
            // Giving up a part leaves the times as they were.
            Some(request) if increase < 0 => ScaleUpRequest { increase: total, ..request },
            _ => ScaleUpRequest { increase: total, at: now, expected_by: now + provision_time },
        });
    }
}

/// Nodes of the target that are neither there nor long overdue.
fn missing(state: &GroupState) -> i64 {
    let readiness = &state.readiness;
    state.range.target
        - (readiness.ready.len()
            + readiness.unready.len()
            + readiness.suspended.len()
            + readiness.long_unregistered.len()) as i64
}
