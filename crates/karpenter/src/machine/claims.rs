//! What Karpenter remembers of each node that it launched, and the conditions that follow from it: `Consolidatable`,
//! `Drifted`, nomination, and the stamp by which the disruption loop knows that nothing has changed.
//!
//! Source: Karpenter core v1.13 `pkg/controllers/nodeclaim/disruption`, `pkg/controllers/nodeclaim/podevents`,
//! `pkg/controllers/state/cluster.go`; AWS provider v1.13 `pkg/cloudprovider/drift.go`.

use std::sync::Arc;

use super::io::{Fact, Timer, Written};
use super::step::Step;
use super::{images, reservations};
use crate::disruption::{NodeCondition, has_lost_its_type};
use crate::release::TypeDrift;
use nodecast_model::cluster::{NodeOrigin, NodePhase};
use nodecast_model::domain::node_pool::ConsolidationPolicy;
use nodecast_model::domain::{
    KubernetesVersion, Labels, NodeClass, NodeId, NodePool, Requirements, SimDuration, SimTime, Symbol, well_known,
};

/// A pod event so soon after the last one is not written down.
const POD_EVENT_DEDUPE: SimDuration = SimDuration::from_secs(10);
/// The instance type of a node is looked for from this age on, and again after this time while it is there.
const TYPE_AGE: SimDuration = SimDuration::from_secs(3_600);
const TYPE_CHECK: SimDuration = SimDuration::from_secs(1_800);
/// The stamp is renewed when it is this old, so that every method looks again now and then.
const STAMP_AGE: SimDuration = SimDuration::from_secs(300);

/// A node that Karpenter launched, from its claim on.
#[derive(Debug)]
pub(super) struct ClaimState {
    /// The NodePool as it was when the claim was made.
    pub(super) template: Arc<NodePool>,
    /// Whether something outside has made the claim differ from its pool.
    pub(super) changed: bool,
    /// The release of Kubernetes that its image is for, once launched.
    pub(super) image_for: Option<KubernetesVersion>,
    /// How many images had been released by then, where they are released on a schedule.
    pub(super) image: u32,
    /// The node class as it was at launch.
    pub(super) class: Option<Arc<NodeClass>>,
    /// Since when it is drifted, in whole seconds.
    pub(super) drifted: Option<SimTime>,
    /// The last pod event that was written down, in whole seconds.
    pub(super) last_pod_event: Option<SimTime>,
    /// When it became initialized, in whole seconds.
    pub(super) initialized_at: Option<SimTime>,
    /// Until when pods are on their way to it.
    pub(super) nominated_until: Option<SimTime>,
    /// Whether a command has marked it for deletion.
    pub(super) marked: bool,
    /// Whether it belongs to a command that is being carried out.
    pub(super) queued: bool,
    /// Whether it carries the taint of nodes that are being disrupted.
    pub(super) tainted: bool,
    /// Since when it drains.
    pub(super) draining_since: Option<SimTime>,
    /// Whether it is drained and waits for volumes to be detached.
    pub(super) awaits_volumes: bool,
    /// When its drain ends at the latest, in whole seconds.
    pub(super) termination_time: Option<SimTime>,
    /// Whether its instance no longer exists.
    pub(super) instance_gone: bool,
    /// Whether Karpenter waits for its instance to be gone.
    pub(super) awaits_instance: bool,
    /// Whether its launch has failed for good.
    pub(super) failed: bool,
    /// The node's conditions that have changed, while node repair is on.
    pub(super) conditions: Vec<NodeCondition>,
    /// Since when the status checks of its instance fail.
    pub(super) status_failed: Option<SimTime>,
    /// When its instance type was last found among those of its pool.
    pub(super) type_checked: Option<SimTime>,
}

impl ClaimState {
    pub(super) fn new(template: Arc<NodePool>) -> Self {
        Self {
            template,
            changed: false,
            image_for: None,
            image: 0,
            class: None,
            drifted: None,
            last_pod_event: None,
            initialized_at: None,
            nominated_until: None,
            marked: false,
            queued: false,
            tainted: false,
            draining_since: None,
            awaits_volumes: false,
            termination_time: None,
            instance_gone: false,
            awaits_instance: false,
            failed: false,
            conditions: Vec::new(),
            status_failed: None,
            type_checked: None,
        }
    }

    /// Whether pods are on their way to it.
    fn awaits_pods(&self, now: SimTime) -> bool {
        self.nominated_until.is_some_and(|until| until > now)
    }
}

/// What the NodeClaim of a node says that Karpenter launched before it was started anew: memory that is its own comes from there.
/// The pool counts as it is now unless the claim is drifted.
///
/// Source: Karpenter core v1.13 `pkg/controllers/state/cluster.go`, `UpdateNodeClaim`; `pkg/apis/v1/nodeclaim_status.go`.
pub(super) fn adopt(step: &mut Step<'_>, now: SimTime, node: NodeId, written: &Written) {
    let NodeOrigin::NodePool(name) = step.cluster.node(node).origin else { return };
    let Some(pool) = step.karpenter.pools.iter().find(|pool| pool.name == name).cloned() else { return };
    let mut claim = ClaimState::new(pool);
    claim.changed = written.drifted.is_some();
    claim.drifted = written.drifted.map(whole);
    claim.initialized_at = written.initialized.map(whole);
    claim.last_pod_event = written.last_pod_event.map(whole);
    claim.type_checked = Some(now);
    if let Some(age) = claim.template.expire_after {
        step.wake(whole(step.cluster.node(node).created) + age, Timer::Expired(node));
    }
    step.karpenter.nodes.insert(node, claim);
    images::launched(step, node);
    look_at_drift(step, now, node);
}

/// An instant as objects of the API hold it: cut to whole seconds.
pub(super) fn whole(at: SimTime) -> SimTime {
    SimTime::from_micros(at.as_micros().div_euclid(1_000_000) * 1_000_000)
}

/// The stamp that is renewed by everything that could change a decision of consolidation.
#[derive(Debug, Default)]
pub(super) struct Stamp {
    number: u64,
    renewed: SimTime,
    changed: SimTime,
}

impl Stamp {
    /// Something has changed.
    pub(super) fn renew(&mut self, now: SimTime) {
        self.number += 1;
        self.renewed = now;
        self.changed = now;
    }

    /// When something last changed.
    pub(super) fn changed(&self) -> SimTime {
        self.changed
    }

    /// The stamp; one that is old is renewed.
    pub(super) fn read(&mut self, now: SimTime) -> u64 {
        if now - self.renewed >= STAMP_AGE {
            self.number += 1;
            self.renewed = now;
        }
        self.number
    }
}

/// A pod came to the node, ended on it or began to leave it.
pub(super) fn pod_event(step: &mut Step<'_>, now: SimTime, node: NodeId) {
    let Some(claim) = step.karpenter.nodes.get_mut(&node) else { return };
    let stored = whole(now);
    if claim.last_pod_event.is_none_or(|last| stored - last >= POD_EVENT_DEDUPE) {
        claim.last_pod_event = Some(stored);
    }
}

/// Whether the node's `Consolidatable` condition is true: it has been left alone for `consolidateAfter`.
///
/// Up to v0.37 a node of a pool that consolidates `WhenEmpty` has to have been empty for that long, and others do not wait.
fn is_consolidatable(step: &Step<'_>, now: SimTime, node: NodeId, claim: &ClaimState) -> bool {
    let Some(disruption) = step.pool_of(node).map(|pool| &pool.disruption) else { return false };
    let (Some(after), Some(initialized)) = (disruption.consolidate_after, claim.initialized_at) else { return false };
    if step.has_disruption_loop() && !step.karpenter.behaviour.v1_disruption {
        let since = || step.karpenter.empty_since.get(&node).copied();
        return disruption.policy != ConsolidationPolicy::WhenEmpty
            || since().is_some_and(|since| now - since >= after);
    }
    now - claim.last_pod_event.unwrap_or(initialized) >= after
}

/// What the cluster does not show of a node, or what time alone changes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Condition {
    pub(super) node: NodeId,
    pub(super) marked: bool,
    pub(super) queued: bool,
    pub(super) nominated: bool,
    pub(super) consolidatable: bool,
    pub(super) drifted: Option<SimTime>,
}

impl Condition {
    /// That of a node, whose claim Karpenter knows if it has made it.
    pub(super) fn new(step: &Step<'_>, now: SimTime, node: NodeId, claim: Option<&ClaimState>) -> Self {
        Self {
            node,
            marked: has_mark(step, node, claim),
            queued: claim.is_some_and(|claim| claim.queued),
            nominated: claim.is_some_and(|claim| claim.awaits_pods(now)),
            consolidatable: claim.is_some_and(|claim| is_consolidatable(step, now, node, claim)),
            drifted: claim.and_then(|claim| claim.drifted),
        }
    }
}

/// Whether pods are on their way to the node.
pub(super) fn is_nominated(step: &Step<'_>, now: SimTime, node: NodeId) -> bool {
    step.karpenter.nodes.get(&node).is_some_and(|claim| claim.awaits_pods(now))
}

/// Until when pods are taken to be on their way to the node.
pub(super) fn nominated_until(step: &Step<'_>, node: NodeId) -> Option<SimTime> {
    step.karpenter.nodes.get(&node)?.nominated_until
}

/// Pods are on their way to the node.
pub(super) fn nominate(step: &mut Step<'_>, node: NodeId, until: SimTime) {
    if let Some(claim) = step.karpenter.nodes.get_mut(&node) {
        claim.nominated_until = Some(until);
    }
}

/// Whether the node is on its way out: its deletion was asked for, or a command has marked it.
pub(super) fn is_marked(step: &Step<'_>, node: NodeId) -> bool {
    has_mark(step, node, step.karpenter.nodes.get(&node))
}

fn has_mark(step: &Step<'_>, node: NodeId, claim: Option<&ClaimState>) -> bool {
    claim.is_some_and(|claim| claim.marked) || step.cluster.node(node).deletion_requested.is_some()
}

/// Looks whether the node still is as its pool says, in releases that replace drifted nodes unasked.
pub(super) fn look_at_drift(step: &mut Step<'_>, now: SimTime, node: NodeId) {
    let state = step.cluster.node(node);
    if !step.karpenter.behaviour.replaces_drifted || matches!(state.phase, NodePhase::Claimed | NodePhase::Gone) {
        return;
    }
    let Some(pool) = step.pool_of(node) else { return };
    let labels = Requirements::from_labels(&state.labels);
    let wanted: Requirements = pool.requirements.iter().cloned().collect();
    let misses = labels.compatible(&wanted, |_| false).is_err();
    let Some(claim) = step.karpenter.nodes.get(&node) else { return };
    let type_is_due = match step.karpenter.behaviour.type_drift {
        None => false,
        Some(TypeDrift::AtOnce) => true,
        Some(TypeDrift::Slowly) => is_type_due(claim, state.created, now),
    };
    let lives = !step.karpenter.behaviour.v1_disruption || same_lives(&claim.template, pool);
    let reasons = [
        (claim.changed || !lives || !same_template(&claim.template, pool), "NodePoolDrifted"),
        (misses, "RequirementsDrifted"),
        (type_is_due && has_lost_type(step, pool.name, &state.labels), "InstanceTypeNotFound"),
        (images::class_has_changed(step, pool, claim), "NodeClassDrift"),
        (images::have_changed(step, pool, claim), "AMIDrift"),
        (images::security_groups_have_changed(step, pool, claim), "SecurityGroupDrift"),
        (images::subnets_have_changed(step, pool, claim), "SubnetDrift"),
        (reservations::is_deselected(step, pool.name, &state.labels), "CapacityReservationDrift"),
    ];
    let reason = reasons.into_iter().find(|(holds, _)| *holds).map(|(_, reason)| reason);
    let was = claim.drifted;
    if let Some(claim) = step.karpenter.nodes.get_mut(&node) {
        claim.drifted = reason.map(|_| was.unwrap_or(whole(now)));
        if type_is_due && reason.is_none() {
            claim.type_checked = Some(now);
        }
    }
    if let (None, Some(reason)) = (was, reason) {
        step.note_node(node, Fact::NodeDrifted, reason);
    }
}

fn is_type_due(claim: &ClaimState, created: SimTime, now: SimTime) -> bool {
    now - whole(created) >= TYPE_AGE && claim.type_checked.is_none_or(|last| now - last >= TYPE_CHECK)
}

fn has_lost_type(step: &Step<'_>, pool: Symbol, labels: &Labels) -> bool {
    let karpenter = &*step.karpenter;
    let withdrawn = labels.get(well_known::INSTANCE_TYPE).is_some_and(|name| karpenter.withdrawn.contains(&name));
    let position = karpenter.pools.iter().position(|this_pool| this_pool.name == pool);
    let types = position.and_then(|at| karpenter.instance_types.get(at));
    withdrawn || types.is_some_and(|types| has_lost_its_type(types, labels))
}

/// When Karpenter next looks whether the instance type of a node is still there.
pub(super) fn next_look_at_type(step: &Step<'_>, now: SimTime, node: NodeId) -> SimTime {
    if step.karpenter.behaviour.type_drift != Some(TypeDrift::Slowly) {
        return now;
    }
    let first = whole(step.cluster.node(node).created) + TYPE_AGE;
    let checked = step.karpenter.nodes.get(&node).and_then(|claim| claim.type_checked);
    let mut next = checked.map_or(first, |last| last + TYPE_CHECK);
    while next < now {
        next += TYPE_CHECK;
    }
    next
}

/// Whether the parts of two pools that Karpenter compares by hash are the same; lists count as sets.
fn same_template(one: &NodePool, other: &NodePool) -> bool {
    fn same<T: PartialEq>(one: &[T], other: &[T]) -> bool {
        one.len() == other.len() && one.iter().all(|item| other.contains(item))
    }
    one.labels == other.labels
        && one.annotations == other.annotations
        && same(&one.taints, &other.taints)
        && same(&one.startup_taints, &other.startup_taints)
        && one.node_class == other.node_class
        && one.kubelet == other.kubelet
}

/// The same of how long nodes may live and drain, which belongs to the template from v1.0 on.
fn same_lives(one: &NodePool, other: &NodePool) -> bool {
    one.expire_after == other.expire_after && one.termination_grace_period == other.termination_grace_period
}

/// The age limit of a node: that of its claim or, from v0.23 to v0.37, that of its NodePool as it is now.
pub(super) fn age_limit(step: &Step<'_>, node: NodeId, claim: &ClaimState) -> Option<SimDuration> {
    let of_pool = step.has_disruption_loop() && !step.karpenter.behaviour.v1_disruption;
    match step.pool_of(node).filter(|_| of_pool) {
        Some(pool) => pool.expire_after,
        None => claim.template.expire_after,
    }
}
