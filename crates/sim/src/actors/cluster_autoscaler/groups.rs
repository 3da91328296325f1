//! What the AWS provider knows of the groups, as of when it read them last, and the calls that it makes.
//!
//! Groups and their instances are read at most once a minute. What the autoscaler takes for the instances of a group is
//! older still: a second memory renewed every two minutes, and at once for groups that grow or have just lost a node.
//!
//! Source: Cluster Autoscaler 1.36 `cloudprovider/aws/auto_scaling_groups.go`, `aws_manager.go`, `utils`
//! (`cloudprovider/node_instances_cache.go`).

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::actors::cluster_autoscaler::{AutoscalerLoop, Lists};
use crate::actors::setup::{Autoscaler, Setup};
use crate::actors::sim::Sim;
use crate::cloud::api::instance_name;
use crate::cloud::autoscaling::{ActivityStatus, GroupSpec, GroupView, LifecycleState};
use crate::cloud::{ApiError, InstanceId};
use crate::domain::node_group::NodeGroup;
use crate::domain::node_pool::AmiFamily;
use crate::domain::{Labels, NodeId, SimDuration, SimTime, Symbol, well_known};
use crate::engine::Streams;
use nodecast_cluster_autoscaler::aws::{self, Activity, DoomedInstance, GroupDescription, ManagedGroup, TemplateType};
use nodecast_cluster_autoscaler::view::{GroupOptions, InstanceError, NodeTemplate};
use nodecast_cluster_autoscaler::{ClusterAutoscaler, Flags, GroupActions, ResizeError};

/// Groups are read again when the last reading is so old.
const REFRESH_AFTER: SimDuration = SimDuration::from_secs(60);
/// How often the memory of instances is renewed.
const INSTANCES_EVERY: SimDuration = SimDuration::from_secs(120);

/// An instance that the provider knows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct KnownInstance {
    /// Its id, or that of a placeholder.
    pub(super) name: Arc<str>,
    /// The instance; `None` for a placeholder.
    pub(super) instance: Option<InstanceId>,
    pub(super) terminating: bool,
    pub(super) error: Option<InstanceError>,
}

/// A group as the provider knows it.
#[derive(Clone, Debug)]
pub(super) struct KnownGroup {
    /// Its place in the setup.
    pub(super) position: usize,
    pub(super) name: Symbol,
    /// What its Auto Scaling group is called.
    pub(super) auto_scaling_group: Symbol,
    /// Limits: its own, or those that a flag sets.
    pub(super) limits: (i64, i64),
    /// Desired size: as read, and as changed by own calls since.
    pub(super) desired: i64,
    /// Instances as read.
    instances: Vec<KnownInstance>,
    /// Instances as the autoscaler takes them to be.
    pub(super) remembered: Vec<KnownInstance>,
    /// Whether `remembered` must be renewed whatever its age.
    forgotten: bool,
    last_resize: Option<SimTime>,
    /// What a first node would be, as far as the provider knows.
    pub(super) template: Option<Arc<NodeTemplate>>,
    /// Options in its tags.
    pub(super) options: GroupOptions,
    /// How often the group had changed when limits and template were read.
    revision: u32,
}

/// All groups that the autoscaler minds, in order of name.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownGroups {
    pub(super) groups: Vec<KnownGroup>,
    read_at: Option<SimTime>,
    /// How long ago the program had read the groups when the run begins.
    first_age: SimDuration,
    /// The group of each node whose instance was listed at the last reading.
    group_of: FxHashMap<NodeId, usize>,
    /// The number of the two minutes in which instances were last remembered.
    remembered_in: i64,
}

impl KnownGroups {
    pub(super) fn new(setup: &Setup<'_>) -> Self {
        let Autoscaler::ClusterAutoscaler(settings) = &setup.autoscaler else { return Self::default() };
        let known = |(position, node_group): (usize, &NodeGroup)| {
            let tags = pairs(&node_group.tags);
            Some(KnownGroup {
                position,
                name: node_group.name,
                auto_scaling_group: Symbol::new(&node_group.auto_scaling_group_name()),
                limits: limits(&settings.flags, node_group)?,
                desired: 0,
                instances: Vec::new(),
                remembered: Vec::new(),
                forgotten: true,
                last_resize: None,
                template: template(setup, node_group).map(Arc::new),
                options: aws::options(&tags),
                revision: 0,
            })
        };
        let mut groups: Vec<KnownGroup> =
            setup.policy.manifests.node_groups.iter().enumerate().filter_map(known).collect();
        groups.sort_by_key(|group| group.name);
        let first_age = Streams::new(setup.seed).stream("group-reading", "").span_up_to(REFRESH_AFTER);
        Self { groups, first_age, ..Self::default() }
    }

    /// How many groups there are.
    pub(super) const fn count(&self) -> usize {
        self.groups.len()
    }

    /// The group of a node, as a place among those known. A node whose instance was launched since the last reading has none.
    ///
    /// Source: Cluster Autoscaler 1.36 `cloudprovider/aws/aws_cloud_provider.go`, `NodeGroupForNode`.
    pub(super) fn group_of(&self, node: NodeId) -> Option<usize> {
        self.group_of.get(&node).copied()
    }

    /// The group at this place of the setup, by its place among those known.
    pub(super) fn place_of(&self, position: usize) -> Option<usize> {
        self.groups.iter().position(|group| group.position == position)
    }
}

/// Tags as pairs of text.
fn pairs(tags: &Labels) -> Vec<(String, String)> {
    tags.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
}

/// The limits of a group: its own, or those that a flag sets; `None` for one that the autoscaler does not find.
fn limits(flags: &Flags, node_group: &NodeGroup) -> Option<(i64, i64)> {
    flags.discovery.limits(node_group, (i64::from(node_group.min_size), i64::from(node_group.max_size)))
}

/// What the provider makes of a group without nodes: the first type and the first zone stand for all.
pub(crate) fn template(setup: &Setup<'_>, node_group: &NodeGroup) -> Option<NodeTemplate> {
    let tags = &pairs(&node_group.tags);
    let facts = &setup.region.instance_type(*node_group.instance_types.first()?)?.facts;
    let nvidia = facts.gpu.filter(|gpu| gpu.manufacturer.as_str() == "nvidia");
    let instance_type = TemplateType {
        name: facts.name,
        arch: facts.arch,
        vcpus: i64::from(facts.vcpus),
        memory_mib: i64::from(facts.memory_mib),
        gpus: nvidia.map_or(0, |gpu| i64::from(gpu.count)),
    };
    let zone = *GroupSpec::new(node_group, &setup.scenario.zones, &setup.region).zones.first()?;
    let managed = node_group.managed.then(|| ManagedGroup {
        name: node_group.name.to_string(),
        labels: node_group.labels.clone(),
        taints: node_group.taints.clone(),
        capacity_type: if node_group.distribution.is_spot() { "SPOT" } else { "ON_DEMAND" }.to_owned(),
        ami_type: ami_type(node_group.ami_family, facts.arch, nvidia.is_some()),
        version: setup.policy.versions.kubernetes.to_string(),
        disk_size: None,
        tags: pairs(&node_group.own_tags),
    });
    let region = setup.region.name;
    let description = GroupDescription { instance_type: &instance_type, region, zone, tags, managed: managed.as_ref() };
    Some(aws::template(&description))
}

/// The AMI type as EKS writes it; empty for families whose groups state an image of their own.
fn ami_type(family: AmiFamily, arch: Symbol, gpu: bool) -> String {
    let arm = arch == well_known::ARM64;
    let name = match (family, arm, gpu) {
        (AmiFamily::AL2, true, _) => "AL2_ARM_64",
        (AmiFamily::AL2, false, true) => "AL2_x86_64_GPU",
        (AmiFamily::AL2, false, false) => "AL2_x86_64",
        (AmiFamily::AL2023, true, false) => "AL2023_ARM_64_STANDARD",
        (AmiFamily::AL2023, true, true) => "AL2023_ARM_64_NVIDIA",
        (AmiFamily::AL2023, false, true) => "AL2023_x86_64_NVIDIA",
        (AmiFamily::AL2023, false, false) => "AL2023_x86_64_STANDARD",
        (AmiFamily::Bottlerocket, true, _) => "BOTTLEROCKET_ARM_64",
        (AmiFamily::Bottlerocket, false, _) => "BOTTLEROCKET_x86_64",
        _ => "",
    };
    name.to_owned()
}

/// Reads the groups if the last reading is old, and renews what is remembered of instances where it is time.
///
/// # Errors
/// If the call is refused; the old knowledge stays.
pub(super) fn refresh(
    sim: &mut Sim<'_>,
    autoscaler: &mut AutoscalerLoop,
    lists: Lists<'_>,
    program: &ClusterAutoscaler,
    now: SimTime,
) -> Result<(), ApiError> {
    if autoscaler.groups.read_at.is_none_or(|at| at + REFRESH_AFTER <= now) {
        read(sim, autoscaler, lists, now)?;
    }
    let known = &mut autoscaler.groups;
    let period = now.as_micros().div_euclid(INSTANCES_EVERY.as_micros());
    let all = std::mem::replace(&mut known.remembered_in, period) != period;
    for group in &mut known.groups {
        let renewed = all || std::mem::take(&mut group.forgotten) || program.state().request(group.name).is_some();
        if renewed {
            group.remembered.clone_from(&group.instances);
        }
    }
    Ok(())
}

fn read(sim: &mut Sim<'_>, autoscaler: &mut AutoscalerLoop, lists: Lists<'_>, now: SimTime) -> Result<(), ApiError> {
    let views = sim.cloud().describe_auto_scaling_groups(now)?;
    for at in 0..autoscaler.groups.groups.len() {
        let (name, last_resize) = {
            let known = &autoscaler.groups.groups[at];
            (known.name, known.last_resize)
        };
        let Some(view) = views.iter().find(|view| view.name == name) else { continue };
        let instances = instances(sim, now, view, last_resize);
        take_update(sim, autoscaler, lists, at);
        let desired = i64::from(view.desired);
        let known = &mut autoscaler.groups.groups[at];
        (known.desired, known.instances) = (desired, instances);
    }
    let groups = autoscaler.groups.groups.iter().enumerate();
    let instances = groups.flat_map(|(at, group)| group.instances.iter().map(move |instance| (at, instance)));
    let group_of = instances.filter_map(|(at, known)| Some((sim.ec2.instance(known.instance?).node, at))).collect();
    let all = &mut autoscaler.groups;
    all.group_of = group_of;
    all.read_at = Some(now - std::mem::take(&mut all.first_age));
    Ok(())
}

/// Takes over the limits of a group and what its nodes would be, if somebody has changed it.
fn take_update(sim: &Sim<'_>, autoscaler: &mut AutoscalerLoop, lists: Lists<'_>, at: usize) {
    let known = &autoscaler.groups.groups[at];
    let (item, revision) = lists.node_groups.now(known.position);
    let Autoscaler::ClusterAutoscaler(settings) = &sim.setup.autoscaler else { return };
    if known.revision == revision {
        return;
    }
    let limits = limits(&settings.flags, item).unwrap_or(known.limits);
    let template = template(sim.setup, item).map(Arc::new);
    let known = &mut autoscaler.groups.groups[at];
    (known.limits, known.template, known.revision) = (limits, template, revision);
}

/// The instances of a group, with placeholders for those that are missing.
fn instances(sim: &mut Sim<'_>, now: SimTime, view: &GroupView, last_resize: Option<SimTime>) -> Vec<KnownInstance> {
    let real = view.instances.iter().map(|held| KnownInstance {
        name: Arc::from(instance_name(held.id)),
        instance: Some(held.id),
        terminating: held.state == LifecycleState::Terminating,
        error: None,
    });
    let mut instances: Vec<KnownInstance> = real.collect();
    let (listed, desired) = (instances.len() as i64, i64::from(view.desired));
    if desired > listed {
        let lost = cannot_be_fulfilled(sim, now, view.name, last_resize);
        instances.extend((listed..desired).map(|index| KnownInstance {
            name: aws::placeholder_id(view.name.as_str(), index),
            instance: None,
            terminating: false,
            error: lost.then_some(InstanceError::OutOfResources),
        }));
    }
    instances
}

/// Whether the instances that a group lacks will not come, as its activities say.
fn cannot_be_fulfilled(sim: &mut Sim<'_>, now: SimTime, group: Symbol, last_resize: Option<SimTime>) -> bool {
    let Some(since) = last_resize else { return false };
    let read = sim.cloud().describe_scaling_activities(group, since, now).ok();
    let activities: Option<Vec<Activity>> = read.map(|all| {
        let all = all.iter().map(|one| Activity { began: one.start, failed: one.status == ActivityStatus::Failed });
        all.collect()
    });
    aws::cannot_be_fulfilled(activities.as_deref(), last_resize)
}

/// A node of a group was deleted: the next iteration reads the groups anew.
pub(super) fn forget_reading(autoscaler: &mut AutoscalerLoop, group: usize) {
    autoscaler.groups.read_at = None;
    if let Some(known) = autoscaler.groups.groups.get_mut(group) {
        known.forgotten = true;
    }
}

/// Has the instance of a node ended; its group then wants one less.
///
/// Source: Cluster Autoscaler 1.36 `cloudprovider/aws/aws_cloud_provider.go`, `DeleteNodes`.
///
/// # Errors
/// The group is at its least size, or the call is refused.
pub(super) fn delete_node(
    sim: &mut Sim<'_>,
    autoscaler: &mut AutoscalerLoop,
    now: SimTime,
    group: usize,
    node: NodeId,
) -> Result<(), ResizeError> {
    let known = &autoscaler.groups.groups[group];
    if known.desired <= known.limits.0 {
        return Err(ResizeError("min size reached, nodes will not be deleted".to_owned()));
    }
    end_instance(sim, autoscaler, now, group, node)
}

fn end_instance(
    sim: &mut Sim<'_>,
    autoscaler: &mut AutoscalerLoop,
    now: SimTime,
    group: usize,
    node: NodeId,
) -> Result<(), ResizeError> {
    sim.terminate_in_group(now, node, true).map_err(|error| ResizeError(error.to_string()))?;
    autoscaler.groups.groups[group].desired -= 1;
    forget_reading(autoscaler, group);
    Ok(())
}

/// The calls of an iteration in thought: sizes change here alone.
pub(super) struct Trial<'g> {
    groups: &'g KnownGroups,
    desired: Vec<i64>,
}

impl<'g> Trial<'g> {
    pub(super) fn new(groups: &'g KnownGroups) -> Self {
        Self { groups, desired: groups.groups.iter().map(|group| group.desired).collect() }
    }
}

impl GroupActions for Trial<'_> {
    fn increase_size(&mut self, group: usize, by: i64) -> Result<(), ResizeError> {
        self.desired[group] = aws::increased(self.desired[group], self.groups.groups[group].limits.1, by)?;
        Ok(())
    }

    fn decrease_target_size(&mut self, group: usize, by: i64) -> Result<(), ResizeError> {
        let instances = self.groups.groups[group].instances.len() as i64;
        self.desired[group] = aws::decreased(self.desired[group], instances, by)?;
        Ok(())
    }

    fn delete_instances(&mut self, group: usize, instances: &[Arc<str>]) -> Result<(), ResizeError> {
        self.desired[group] -= instances.len() as i64;
        Ok(())
    }

    fn target_size(&self, group: usize) -> i64 {
        self.desired[group]
    }
}

/// The calls of one iteration.
pub(super) struct Calls<'c, 's> {
    pub(super) sim: &'c mut Sim<'s>,
    pub(super) autoscaler: &'c mut AutoscalerLoop,
    pub(super) now: SimTime,
}

impl Calls<'_, '_> {
    fn known(&self, group: usize) -> &KnownGroup {
        &self.autoscaler.groups.groups[group]
    }

    fn set_desired(&mut self, group: usize, desired: i64, reason: &str) -> Result<(), ResizeError> {
        let (name, now) = (self.known(group).name, self.now);
        let wanted = u32::try_from(desired).map_err(|_| ResizeError("a size below zero".to_owned()))?;
        self.sim.set_desired_capacity(now, name, wanted, reason).map_err(|error| ResizeError(error.to_string()))?;
        let known = &mut self.autoscaler.groups.groups[group];
        (known.desired, known.last_resize) = (desired, Some(now));
        Ok(())
    }
}

impl GroupActions for Calls<'_, '_> {
    fn increase_size(&mut self, group: usize, by: i64) -> Result<(), ResizeError> {
        let known = self.known(group);
        let desired = aws::increased(known.desired, known.limits.1, by)?;
        self.set_desired(group, desired, "Cluster Autoscaler scales up")
    }

    fn decrease_target_size(&mut self, group: usize, by: i64) -> Result<(), ResizeError> {
        let known = self.known(group);
        let desired = aws::decreased(known.desired, known.instances.len() as i64, by)?;
        self.set_desired(group, desired, "Cluster Autoscaler gives up nodes that did not come")
    }

    fn delete_instances(&mut self, group: usize, instances: &[Arc<str>]) -> Result<(), ResizeError> {
        let now = self.now;
        let known = self.known(group);
        let doomed = |instance: &&KnownInstance| instances.contains(&instance.name);
        let doomed: Vec<DoomedInstance> = known
            .instances
            .iter()
            .filter(doomed)
            .map(|instance| DoomedInstance { id: Arc::clone(&instance.name), terminating: instance.terminating })
            .collect();
        let (name, desired, min) = (known.name, known.desired, known.limits.0);
        // The provider asks anew how many instances there are before it drops placeholders.
        let views = self.sim.cloud().describe_auto_scaling_groups(now);
        let views = views.map_err(|error| ResizeError(error.to_string()))?;
        let listed = views.iter().find(|view| view.name == name).map_or(0, |view| view.instances.len() as i64);
        let calls = aws::delete_calls(desired, min, listed, &doomed)?;
        forget_reading(self.autoscaler, group);
        if let Some(desired) = calls.set_desired {
            self.set_desired(group, desired, "Cluster Autoscaler gives up instances that do not come")?;
        }
        for id in &calls.terminate {
            let found = self.known(group).instances.iter().find(|instance| instance.name == *id);
            let Some(instance) = found.and_then(|instance| instance.instance) else { continue };
            let node = self.sim.ec2.instance(instance).node;
            end_instance(self.sim, self.autoscaler, now, group, node)?;
        }
        Ok(())
    }

    fn target_size(&self, group: usize) -> i64 {
        self.known(group).desired
    }
}
