//! Node groups: the Auto Scaling groups of the setup, whose instances are nodes.
//!
//! A group acts by itself on whatever has changed. EKS drains the nodes of a managed group before they end: cordon,
//! evictions within the budgets, at most five minutes; on a Spot interruption notice at once. The nodes of other groups
//! end with their pods.
//!
//! Source: EKS user guide, managed node groups and their Spot lifecycle.

mod drain;
mod refresh;
mod repair;
mod update;
mod warm_pool;

use std::collections::BTreeMap;

pub(super) use drain::{leave_to_ec2 as drain_node, poll as drain_poll};
pub(super) use refresh::begin as begin_refresh;
pub(super) use repair::{due as repair_due, node_lost};
pub(super) use update::begin as begin_update;
pub(super) use warm_pool::{due as warm_pool_due, former_node};

use super::actor_events::ActorEvent;
use super::event::{GroupEvent, class};
use super::node_templates::NodeTemplates;
use super::setup::Setup;
use super::sim::{Machine, Sim};
use super::startup_taints::StartupTaints;
use super::zone_outage::Darkness;
use super::{names, node_life};
use crate::cloud::autoscaling::EndReason;
use crate::cloud::{ApiError, BootStages, BootTimes, InstanceId};
use crate::cluster::NewNode;
use crate::cluster::NodePhase;
use crate::domain::node_group::Registration;
use crate::domain::{KubernetesVersion, Labels, NodeGroup, NodeId, SimDuration, SimTime, Symbol, well_known};
use crate::world::record::{EventKind, NodeOrigin};

/// Status checks come every minute; of two that fail EC2 makes an impaired instance.
const STATUS_CHECKS: SimDuration = SimDuration::from_secs(120);

/// Between two checks of an unhealthy instance that waits for others to be replaced: assumed.
const UNHEALTHY_AGAIN: SimDuration = SimDuration::from_secs(10);

/// What is remembered about the groups of the setup, by position.
#[derive(Debug)]
pub(super) struct NodeGroups {
    /// Number of each group's next node.
    next_node: Vec<u32>,
    /// When each group acts next, if that is on the queue.
    due: Vec<Option<SimTime>>,
    /// When the warm pool of each group is tended next.
    warm_due: Vec<Option<SimTime>>,
    /// The groups as they are now.
    stated: Vec<NodeGroup>,
    /// How often each has changed.
    revisions: Vec<u32>,
    /// Nodes that are being drained.
    draining: BTreeMap<NodeId, drain::Drain>,
    /// The release of each group's new nodes.
    releases: Vec<KubernetesVersion>,
    /// Updates and refreshes in progress, by group.
    upkeep: BTreeMap<usize, Upkeep>,
}

/// How the nodes of a group are being replaced.
#[derive(Debug)]
enum Upkeep {
    Update(update::Update),
    Refresh(refresh::Refresh),
}

impl NodeGroups {
    pub(super) fn new(setup: &Setup<'_>) -> Self {
        let count = setup.policy.manifests.node_groups.len();
        Self {
            next_node: vec![0; count],
            due: vec![None; count],
            warm_due: vec![None; count],
            stated: setup.policy.manifests.node_groups.clone(),
            revisions: vec![0; count],
            draining: BTreeMap::new(),
            releases: vec![setup.policy.versions.kubernetes; count],
            upkeep: BTreeMap::new(),
        }
    }

    /// The group at a place of the setup as it is now, and how often it has changed.
    pub(super) fn now(&self, group: usize) -> (&NodeGroup, u32) {
        (&self.stated[group], self.revisions[group])
    }
}

/// Somebody updates a group: its limits and its size, and of a managed group labels and taints, which EKS sets on the nodes that there
/// are, too. What else a group is stays as it was made. Without `desiredCapacity` the size stays, too, as far as the new limits let it.
///
/// Source: eksctl `pkg/actions/nodegroup/scale.go`, which sends `desiredSize` where it is stated; EC2 Auto Scaling API reference,
/// `UpdateAutoScalingGroup`, for a size outside of new limits.
pub(super) fn update(sim: &mut Sim<'_>, node_groups: &mut NodeGroups, now: SimTime, new: &NodeGroup) {
    let Some(group) = sim.groups.position(new.name) else { return };
    let before = node_groups.stated[group].clone();
    let (least, most) = (new.min_size, new.max_size);
    let stated = if new.states_desired { new.desired_size } else { sim.groups.desired(group) };
    let desired = stated.max(least).min(most);
    sim.groups.update(group, (least, most), desired);
    let text = format!("node group {}: {desired} of {least} to {most}", new.name);
    sim.world.note(now, EventKind::ManifestApplied, None, text);
    let node_group = &mut node_groups.stated[group];
    (node_group.min_size, node_group.max_size, node_group.desired_size) = (least, most, desired);
    if node_group.managed {
        (node_group.labels, node_group.taints) = (new.labels.clone(), new.taints.clone());
        node_group.update_config = new.update_config;
        node_group.warm_pool = new.warm_pool;
        sim.groups.set_warm_pool(group, new.warm_pool);
    }
    node_groups.revisions[group] += 1;
    if before.managed && (&before.labels, &before.taints) != (&new.labels, &new.taints) {
        for node in sim.world.live_nodes().to_vec() {
            if sim.world.node(node).origin == NodeOrigin::NodeGroup(new.name) {
                relabel(sim, node, &before, new);
            }
        }
    }
    node_groups.wake(sim, now, group);
}

/// A node takes the labels and taints of its group: those that the group had before go. DaemonSets that want it now get their pod, others
/// lose theirs, and pods that do not tolerate a `NoExecute` taint have to leave.
fn relabel(sim: &mut Sim<'_>, node: NodeId, before: &NodeGroup, new: &NodeGroup) {
    let state = sim.world.node(node);
    let (mut labels, mut taints) = (state.labels.clone(), state.taints.clone());
    before.labels.iter().for_each(|(key, _)| labels.remove(key));
    labels.extend(&new.labels);
    taints.retain(|taint| !before.taints.contains(taint));
    taints.extend(new.taints.iter().copied());
    sim.world.relabel_node(node, labels);
    sim.world.set_taints(node, taints);
    if sim.world.node(node).phase == NodePhase::Registered {
        sim.publish(ActorEvent::NodeRelabelled(node));
    }
}

impl NodeGroups {
    /// Sets the limits and the size of a group.
    fn set_sizes(&mut self, sim: &mut Sim<'_>, group: usize, (min, max): (u32, u32), desired: u32) {
        sim.groups.update(group, (min, max), desired);
        let node_group = &mut self.stated[group];
        (node_group.min_size, node_group.max_size, node_group.desired_size) = (min, max, desired);
        self.revisions[group] += 1;
    }

    /// A node that is being drained is there no more.
    pub(super) fn forget_drain(&mut self, node: NodeId) {
        self.draining.remove(&node);
    }

    /// What a group lacks it launches, and what it has too much of it ends.
    pub(super) fn fill(&mut self, sim: &mut Sim<'_>) {
        for group in 0..sim.setup.policy.manifests.node_groups.len() {
            if sim.groups.size(group) != sim.groups.desired(group) {
                self.wake(sim, SimTime::ZERO, group);
            }
        }
    }

    /// The group will act on what has changed.
    pub(super) fn wake(&mut self, sim: &mut Sim<'_>, now: SimTime, group: usize) {
        let at = now + sim.groups.reaction(group);
        self.act_at(sim, group, at);
    }

    fn act_at(&mut self, sim: &mut Sim<'_>, group: usize, at: SimTime) {
        if self.due[group].is_none_or(|due| at < due) {
            self.due[group] = Some(at);
            sim.queue.schedule(at, class::CLOUD, GroupEvent::GroupActs(group as u32));
        }
        debug_assert!(self.due[group].is_some_and(|due| due <= at), "the group acts by {at}");
    }

    /// An instance of a group is in service.
    pub(super) fn in_service(&mut self, sim: &mut Sim<'_>, now: SimTime, node: NodeId) {
        let Some((instance, group)) = member(sim, node) else { return };
        if sim.world.node(node).phase >= NodePhase::Terminating {
            return;
        }
        sim.groups.enter_service(instance, now);
        let ready = sim.world.node(node).ready;
        if ready || !sim.setup.policy.manifests.node_groups[group].managed {
            sim.groups.serves(instance);
            self.wake(sim, now, group);
        }
    }

    /// A node is Ready: the instance of a managed group serves from now on.
    pub(super) fn node_ready(&mut self, sim: &mut Sim<'_>, now: SimTime, node: NodeId) {
        let Some((instance, group)) = member(sim, node) else { return };
        sim.groups.serves(instance);
        self.wake(sim, now, group);
    }

    /// EC2 recommends to replace a Spot instance.
    pub(super) fn rebalance_recommended(&mut self, sim: &mut Sim<'_>, now: SimTime, node: NodeId) {
        let Some((instance, group)) = member(sim, node) else { return };
        if sim.groups.recommend_rebalance(instance) {
            self.wake(sim, now, group);
        }
    }

    /// The instance of a node has left `running`: if the group did not want that, a health check will notice.
    pub(super) fn instance_left(&mut self, sim: &mut Sim<'_>, now: SimTime, node: NodeId) {
        let Some((instance, group)) = member(sim, node) else { return };
        self.draining.remove(&node);
        if sim.groups.is_ending(instance) {
            sim.groups.return_to_warm_pool(instance, &mut sim.ec2, now);
            sim.groups.forget(instance, now);
            self.wake(sim, now, group);
        } else {
            let noticed = now + sim.groups.time_to_notice(instance);
            sim.queue.schedule(noticed, class::CLOUD, GroupEvent::GroupNoticesLoss(node));
        }
    }

    /// A health check has found an instance gone: the group replaces it.
    pub(super) fn notices_loss(&mut self, sim: &mut Sim<'_>, now: SimTime, node: NodeId) {
        let Some((instance, group)) = member(sim, node) else { return };
        sim.groups.lose(instance, now);
        self.wake(sim, now, group);
    }
}

/// Brings up the nodes of every group: they have been there since before the simulation began. What cannot have been there
/// the group launches as soon as it can. Where a dump says which nodes there are, they are [taken up](super::initial) instead.
pub(super) fn begin(
    sim: &mut Sim<'_>,
    startup_taints: &mut StartupTaints,
    node_groups: &mut NodeGroups,
    node_templates: &NodeTemplates,
) {
    let is_dumped = sim.setup.initial.as_ref().is_some_and(|initial| initial.has_groups);
    let groups = if is_dumped { 0 } else { sim.setup.policy.manifests.node_groups.len() };
    for group in 0..groups {
        let (mut number, mut units) = (0, 0);
        while let Some((zone, spot)) = sim.groups.first_place(group, number, units) {
            let instance = start_node(sim, startup_taints, node_groups, node_templates, group, zone, spot);
            units += instance.map_or(1, |instance| sim.groups.weight(instance));
            number += 1;
        }
    }
    if !is_dumped {
        node_groups.fill(sim);
    }
    warm_pool::begin(sim, node_groups);
}

/// Starts a node of the group in a place; its instance, if EC2 has one there.
fn start_node(
    sim: &mut Sim<'_>,
    startup_taints: &mut StartupTaints,
    node_groups: &mut NodeGroups,
    node_templates: &NodeTemplates,
    group: usize,
    zone: Symbol,
    spot: bool,
) -> Option<InstanceId> {
    let now = SimTime::ZERO;
    let request = sim.groups.fleet_request(group, zone, spot, 1);
    let pool = sim.ec2.likely_pool(&request, now)?;
    let volumes = sim.groups.spec(group).volumes.clone();
    let instance = sim.ec2.add_running(pool, sim.world.next_node(), &volumes, now)?;
    sim.groups.adopt(group, instance, &sim.ec2);
    let node = add_node(sim, node_groups, node_templates, now, group, instance);
    let boot = BootTimes::default();
    sim.set_machine(node, Machine { instance, boot });
    sim.world.run_instance(node, now);
    if let Some(offer) = node_life::real_offer(sim, node_templates, node, pool.instance_type) {
        let labels = node_life::registration_labels(sim, node);
        sim.world.register_node(node, offer.capacity, offer.allocatable, (&labels, &[]), now);
    }
    startup_taints.settled(sim, node);
    sim.world.ready_node(node, now);
    sim.world.initialize_node(node, now);
    sim.publish(ActorEvent::NodeFound(node, Some(pool.instance_type)));
    sim.publish(ActorEvent::InstanceLaunched(node, pool));
    Some(instance)
}

/// The node that an instance of a group is to become.
fn add_node(
    sim: &mut Sim<'_>,
    node_groups: &mut NodeGroups,
    node_templates: &NodeTemplates,
    now: SimTime,
    group: usize,
    instance: InstanceId,
) -> NodeId {
    let spec = node_groups.stated[group].clone();
    let number = node_groups.next_node[group];
    node_groups.next_node[group] += 1;
    let launched = sim.ec2.instance(instance).clone();
    let (mut labels, mut taints) = (spec.labels, spec.taints);
    labels.extend(&registered_labels(&spec.registers, launched.pool.capacity_type));
    taints.extend_from_slice(&spec.registers.taints);
    let node = sim.world.add_node(
        NewNode {
            name: format!("{}-{number:05}", spec.name),
            drawn: names::of_node(sim, spec.name, number),
            origin: NodeOrigin::NodeGroup(spec.name),
            labels,
            annotations: Labels::new(),
            taints,
            startup_taints: Vec::new(),
        },
        now,
        "desired size of the node group",
    );
    let offer = node_life::real_offer(sim, node_templates, node, launched.pool.instance_type);
    let (capacity, allocatable) = offer.map(|offer| (offer.capacity, offer.allocatable)).unwrap_or_default();
    let facts = node_life::launch_facts(
        sim,
        (instance, launched.pool, launched.rate),
        (spec.ami_family, Labels::new()),
        capacity,
        allocatable,
    );
    sim.world.launch_node(node, &facts, now);
    // A group's launch template keeps its image until somebody updates the group.
    sim.world.describe_kubelet(node, node_groups.releases[group]);
    node
}

/// The labels that a kubelet of a group registers of itself.
///
/// Source: eksctl `pkg/nodebootstrap/assets/scripts/bootstrap.helper.sh`, which asks EC2's metadata for `instance-life-cycle`.
fn registered_labels(registration: &Registration, bought: Symbol) -> Labels {
    let mut labels = registration.labels.clone();
    if registration.lifecycle {
        let lifecycle = if bought == well_known::SPOT { "spot" } else { "on-demand" };
        labels.set(Symbol::new("node-lifecycle"), Symbol::new(lifecycle));
    }
    labels
}

/// A group acts.
pub(super) fn acts(
    sim: &mut Sim<'_>,
    node_groups: &mut NodeGroups,
    node_templates: &NodeTemplates,
    now: SimTime,
    group: u32,
) {
    let group = group as usize;
    // An earlier action has been put in front of this one since.
    if node_groups.due[group] != Some(now) {
        return;
    }
    node_groups.due[group] = None;
    let first = sim.world.next_node();
    let acted = sim.groups.act(group, &mut sim.ec2, first, now);
    for &instance in &acted.launched {
        launched(sim, node_groups, node_templates, now, group, instance);
    }
    for message in &acted.failures {
        let name = sim.groups.spec(group).name;
        sim.world.note(now, EventKind::ScalingActivityFailed, None, format!("{name}: {message}"));
    }
    for &(instance, reason) in &acted.terminate {
        drain::end(sim, node_groups, now, instance, reason);
    }
    if let Some(at) = acted.again {
        node_groups.act_at(sim, group, at);
    }
    warm_pool::tend(sim, node_groups, now, group);
}

/// An update or a refresh of a group proceeds.
pub(super) fn upkeep(sim: &mut Sim<'_>, node_groups: &mut NodeGroups, now: SimTime, group: u32) {
    let group = group as usize;
    let Some(mut upkeep) = node_groups.upkeep.remove(&group) else { return };
    let ended = match &mut upkeep {
        Upkeep::Update(update) => update::proceed(sim, node_groups, now, group, update),
        Upkeep::Refresh(refresh) => refresh::proceed(sim, now, group, refresh),
    };
    if !ended {
        node_groups.upkeep.insert(group, upkeep);
    }
}

fn launched(
    sim: &mut Sim<'_>,
    node_groups: &mut NodeGroups,
    node_templates: &NodeTemplates,
    now: SimTime,
    group: usize,
    instance: InstanceId,
) {
    let node = add_node(sim, node_groups, node_templates, now, group, instance);
    let family = sim.setup.policy.manifests.node_groups[group].ami_family;
    let stages = sim.setup.scenario.ec2.launch_latency.unwrap_or_else(|| BootStages::from_family(family));
    let boot = match sim.groups.warm_start(instance) {
        Some(warm) => sim.ec2.warm_boot(instance, &stages, warm.state),
        None => sim.ec2.boot(instance, &stages),
    };
    node_life::launched(sim, now, node, Machine { instance, boot });
    let in_service = now + boot.running + sim.groups.time_to_service(instance);
    sim.queue.schedule(in_service, class::CLOUD, GroupEvent::GroupInService(node));
    let pool = sim.ec2.instance(instance).pool;
    sim.publish(ActorEvent::InstanceLaunched(node, pool));
}

/// EC2 gives notice to a Spot instance: EKS drains the node of a managed group at once.
pub(super) fn interruption_noticed(sim: &mut Sim<'_>, node_groups: &mut NodeGroups, now: SimTime, node: NodeId) {
    let Some((_, group)) = member(sim, node) else { return };
    node_groups.rebalance_recommended(sim, now, node);
    if sim.setup.policy.manifests.node_groups[group].managed {
        drain::interrupted(sim, node_groups, now, node);
    }
}

/// A zone has lost power: where it stays away, two status checks fail, and a health check finds the instances unhealthy.
pub(super) fn power_lost(sim: &mut Sim<'_>, now: SimTime, node: NodeId) {
    let Some((instance, _)) = member(sim, node) else { return };
    let noticed = now + STATUS_CHECKS + sim.groups.time_to_notice(instance);
    sim.queue.schedule(noticed, class::CLOUD, GroupEvent::GroupStatusCheck(node));
}

/// A health check looks at an instance whose status checks have failed: if it still has no power, the group replaces it, or waits while too many
/// others are out of service. Nothing on it can be drained.
pub(super) fn status_check(
    sim: &mut Sim<'_>,
    darkness: &Darkness,
    node_groups: &mut NodeGroups,
    now: SimTime,
    node: NodeId,
) {
    let Some((instance, group)) = member(sim, node) else { return };
    if !darkness.is_dark(node) || sim.groups.is_ending(instance) {
        return;
    }
    if !sim.groups.replaces_unhealthy(instance) {
        sim.queue.schedule_in(UNHEALTHY_AGAIN, class::CLOUD, GroupEvent::GroupStatusCheck(node));
        return;
    }
    sim.groups.find_unhealthy(instance, now);
    drain::end(sim, node_groups, now, instance, EndReason::Unhealthy);
    node_groups.wake(sim, now, group);
}

/// Somebody has asked for the end of an instance of a group.
pub(super) fn end_requested(sim: &mut Sim<'_>, node_groups: &mut NodeGroups, now: SimTime, instance: InstanceId) {
    drain::end(sim, node_groups, now, instance, EndReason::Requested);
    if let Some(group) = sim.groups.group_of(instance) {
        node_groups.wake(sim, now, group);
    }
}

impl Sim<'_> {
    /// SetDesiredCapacity, for `reason`: the group acts on it in a while.
    ///
    /// # Errors
    /// As the API: too many calls, no such group, a size outside its limits.
    pub(super) fn set_desired_capacity(
        &mut self,
        now: SimTime,
        name: Symbol,
        desired: u32,
        reason: &str,
    ) -> Result<(), ApiError> {
        self.cloud().set_desired_capacity(name, desired, now)?;
        self.world.note(now, EventKind::DesiredCapacitySet, None, format!("{name}: {desired} ({reason})"));
        if let Some(group) = self.groups.position(name) {
            self.publish(ActorEvent::GroupChanged(group));
        }
        Ok(())
    }

    /// TerminateInstanceInAutoScalingGroup of the instance behind `node`: a managed group's node is drained first. With
    /// `decrement` the group wants one less, else it replaces the instance.
    ///
    /// # Errors
    /// As the API: too many calls, an instance of no group, a size below the least.
    pub fn terminate_in_group(&mut self, now: SimTime, node: NodeId, decrement: bool) -> Result<(), ApiError> {
        // The instance of a claim that has none yet belongs to no group either.
        let Some((instance, _)) = member(self, node) else {
            let name = self.world.node(node).name;
            return Err(ApiError::Validation(format!("{name} belongs to no Auto Scaling group")));
        };
        if self.groups.is_ending(instance) {
            return Ok(());
        }
        self.cloud().terminate_instance_in_auto_scaling_group(instance, decrement, now)?;
        self.publish(ActorEvent::InstanceEndRequested(instance));
        Ok(())
    }
}

/// The instance of a node and the group that it belongs to.
fn member(sim: &Sim<'_>, node: NodeId) -> Option<(InstanceId, usize)> {
    let instance = sim.machine(node)?.instance;
    Some((instance, sim.groups.group_of(instance)?))
}
