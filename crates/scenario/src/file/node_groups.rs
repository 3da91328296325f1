//! The scenario's own list of node groups.

use std::collections::BTreeMap;

use super::{Reading, ScenarioError, optional};
use crate::domain::node_group::{InstancesDistribution, NodeGroup, NodeShare, Registration, UpdateConfig};
use crate::domain::node_pool::{AmiFamily, KubeletConfig};
use crate::domain::volumes::DiskClass;
use crate::domain::{Labels, Symbol};
use crate::manifests::Manifests;
use crate::manifests::common::taints;
use crate::manifests::node_group::{
    check_architectures, check_volume, check_warm_pool, managed_labels, managed_tags, sizes, strategy,
};
use crate::reader::Fields;
use crate::schema::cluster::{NodeGroupKeys, NodeGroups};
use crate::schema::groups::UpdateKeys;
use crate::tree::Location;

/// Lays the groups under `nodeGroups` over those of the same name in `manifests`.
pub(super) fn lay_over<'s>(
    reading: &mut Reading<'_, 's>,
    fields: Fields<'_, 's>,
    manifests: &mut Manifests,
) -> Result<(), ScenarioError> {
    let Some(mut node_groups) = optional::<NodeGroups>(reading, fields, "nodeGroups")? else { return Ok(()) };
    let cluster = manifests.cluster.as_ref().and_then(|cluster| cluster.name);
    node_groups.iter_mut().for_each(|group| managed_tags(cluster, &mut group.tags));
    manifests.apply(Manifests { node_groups, ..Manifests::default() });
    Ok(())
}

/// A group. What is left out follows from what is given.
pub(crate) fn group<'s>(
    reading: &mut Reading<'_, 's>,
    fields: Fields<'_, 's>,
    node_group_keys: NodeGroupKeys,
) -> Result<NodeGroup, ScenarioError> {
    let distribution = InstancesDistribution {
        on_demand_base: node_group_keys.on_demand_base,
        on_demand_percent: 100 - node_group_keys.spot,
        spot_strategy: strategy(node_group_keys.spot_strategy, node_group_keys.spot_pools.map(i64::from)),
        ..InstancesDistribution::ON_DEMAND
    };
    // EKS manages no group that mixes the two.
    let mixes = !distribution.is_spot() && !distribution.is_on_demand();
    if let (true, Some((true, at))) = (mixes, node_group_keys.managed) {
        return Err(reading
            .error(at, "a managed node group is all Spot or all On-Demand")
            .because("this one mixes the two")
            .help("write `managed: false`, or split it into two groups"));
    }
    let managed = node_group_keys.managed.map_or(!mixes, |(managed, _)| managed);
    if let (true, Some((false, at))) = (managed, node_group_keys.zone_rebalance) {
        return Err(reading
            .error(at, "a managed node group without zone rebalance")
            .because("EKS turns `AZRebalance` on again")
            .help("write `managed: false`, or remove it"));
    }
    let least = either(reading, ["min", "minSize"], node_group_keys.min, node_group_keys.min_size)?;
    let desired =
        either(reading, ["desired", "desiredCapacity"], node_group_keys.desired, node_group_keys.desired_capacity)?;
    let most = either(reading, ["max", "maxSize"], node_group_keys.max, node_group_keys.max_size)?;
    let (min_size, desired_size, max_size) = sizes(&reading.reader, fields, least, desired, most)?;
    let zones =
        either(reading, ["zones", "availabilityZones"], node_group_keys.zones, node_group_keys.availability_zones)?;
    let instance_types: Vec<Symbol> =
        node_group_keys.instance_type.into_iter().chain(node_group_keys.instance_types).collect();
    if instance_types.is_empty() {
        return Err(reading
            .error(fields.at, "a node group needs `instanceTypes`")
            .because("none is stated here")
            .help("write for example `instanceTypes: [m5.large, m5a.large]`"));
    }
    let types_at = ["instanceTypes", "instanceType"].into_iter().find_map(|key| fields.get(key));
    let (region, at) = (reading.region(), types_at.map_or(fields.at, |node| node.at));
    check_architectures(&mut reading.reader, region, at, (&instance_types, managed))?;
    if let (Some(gib), Some(node)) = (node_group_keys.volume_size, fields.get("volumeSize")) {
        check_volume(&mut reading.reader, node.at, (gib, node_group_keys.ami_family), managed)?;
    }
    let warm_pool = node_group_keys.warm_pool.flatten();
    if let (Some(pool), Some(node)) = (&warm_pool, fields.get("warmPoolConfig")) {
        if let Some(weights) = fields.get("weights") {
            return Err(reading
                .error(weights.at, "weights of a group with a warm pool")
                .because("EC2 Auto Scaling has no warm pool for a mixed instances policy")
                .help("remove `weights` or `warmPoolConfig`"));
        }
        check_warm_pool(&reading.reader, node.at, pool, (distribution, node_group_keys.ami_family, false))?;
    }
    let mut group = NodeGroup {
        name: node_group_keys.name,
        managed,
        weights: weights(reading, fields, &instance_types, node_group_keys.weights.unwrap_or_default(), managed)?,
        instance_types,
        distribution,
        capacity_rebalance: node_group_keys.capacity_rebalance.unwrap_or(managed && distribution.is_spot()),
        zone_rebalance: node_group_keys.zone_rebalance.is_none_or(|(rebalances, _)| rebalances),
        min_size,
        desired_size,
        states_desired: desired.is_some(),
        max_size,
        labels: node_group_keys.labels,
        taints: taints(&mut reading.reader, fields, "taints")?,
        zones: zones.unwrap_or_default(),
        ami_family: node_group_keys.ami_family,
        volume_bytes: node_group_keys.volume_size.unwrap_or_else(|| default_gib(node_group_keys.ami_family)) << 30,
        disk: DiskClass::of_type("gp3"),
        more_volumes: Vec::new(),
        own_image: false,
        kubelet: KubeletConfig { max_pods: node_group_keys.max_pods, ..KubeletConfig::default() },
        registers: Registration::default(),
        cpu_credits: node_group_keys.cpu_credits,
        update_config: node_group_keys.update_config.unwrap_or_default(),
        updated_at_start: None,
        warm_pool,
        repair: node_group_keys.repair.flatten().filter(|_| managed),
        tags: node_group_keys.tags,
        own_tags: Labels::new(),
        eksctl_cluster: None,
        statement: BTreeMap::new(),
    };
    if managed {
        managed_labels(group.name, &group.distribution, &mut group.labels);
    }
    Ok(group)
}

/// Capacity units by instance type, in the order of the types.
///
/// Source: EC2 Auto Scaling API reference, `LaunchTemplateOverrides`, `WeightedCapacity`: all types have one, or none. Managed groups
/// have no weights (aws/containers-roadmap issue 2674).
fn weights(
    reading: &Reading<'_, '_>,
    fields: Fields<'_, '_>,
    types: &[Symbol],
    stated: BTreeMap<Symbol, u32>,
    managed: bool,
) -> Result<Vec<u32>, ScenarioError> {
    let Some(node) = fields.get("weights") else { return Ok(Vec::new()) };
    if managed {
        return Err(reading
            .error(node.at, "weights of a managed node group")
            .because("EKS has no weights for managed node groups")
            .help("write `managed: false`, or remove them"));
    }
    if let Some(entry) = node.entries().iter().find(|entry| !types.contains(&Symbol::new(&entry.key))) {
        return Err(reading
            .error(entry.key_at, format!("weight of `{}`, which is no instance type of the group", entry.key))
            .because("not among its instance types")
            .help("add it to `instanceTypes`, or remove its weight"));
    }
    let weight = |name: &Symbol| {
        stated.get(name).copied().ok_or_else(|| {
            reading
                .error(node.at, format!("no weight of `{name}`"))
                .because("EC2 Auto Scaling needs a weight of each instance type, or of none")
                .help(format!("add for example `{name}: 1`"))
        })
    };
    types.iter().map(weight).collect()
}

/// `updateConfig`.
///
/// # Errors
/// If both forms of `maxUnavailable` are given.
pub(crate) fn update_config<'s>(
    reading: &mut Reading<'_, 's>,
    _: Fields<'_, 's>,
    update_keys: UpdateKeys,
) -> Result<UpdateConfig, ScenarioError> {
    let max_unavailable = match (update_keys.max_unavailable, update_keys.max_percentage) {
        (Some(_), Some((_, at))) => {
            let error = reading.error(at, "both `maxUnavailable` and `maxUnavailablePercentage`");
            return Err(error.because("EKS takes one of them").help("remove one"));
        }
        (None, Some((percent, _))) => NodeShare::Percent(percent),
        (count, None) => NodeShare::Count(count.map_or(1, |(count, _)| count)),
    };
    Ok(UpdateConfig { max_unavailable, strategy: update_keys.strategy.unwrap_or_default() })
}

/// GiB of a group's volume that nobody states.
///
/// Source: EKS API reference, `CreateNodegroup`, `diskSize` (2026); the images that a group of one's own boots have as much.
const fn default_gib(family: AmiFamily) -> i64 {
    if family.is_windows() { 50 } else { 20 }
}

/// The value under one of two names for the same thing.
fn either<T>(
    reading: &Reading<'_, '_>,
    names: [&str; 2],
    first: Option<T>,
    second: Option<(T, Location)>,
) -> Result<Option<T>, ScenarioError> {
    match (first, second) {
        (Some(_), Some((_, at))) => Err(reading
            .error(at, format!("`{}` and `{}` are two names for the same thing", names[0], names[1]))
            .because("stated twice")
            .help("keep one of them")),
        (first, second) => Ok(first.or(second.map(|(value, _)| value))),
    }
}
