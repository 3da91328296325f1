//! Node groups: how a mixed instances policy and a scenario's own list of groups become [`NodeGroup`]s.

use super::common::{count, labels, taints};
use super::eksctl::FAMILIES;
use crate::catalog::Region;
use crate::domain::node_group::{InstancesDistribution, NodeGroup, SpotStrategy};
use crate::domain::node_pool::AmiFamily;
use crate::domain::symbol::well_known;
use crate::domain::{KubernetesVersion, Labels, Symbol, Taint};
use crate::scenario::ScenarioError;
use crate::scenario::error::{listed, nearest};
use crate::scenario::reader::{Fields, Reader, Shape};
use crate::scenario::schema::cluster::NODE_GROUP;
use crate::scenario::tree::Node;

static DISTRIBUTION: Shape = Shape {
    name: "`instancesDistribution`",
    keys: &[
        "instanceTypes",
        "onDemandBaseCapacity",
        "onDemandPercentageAboveBaseCapacity",
        "spotInstancePools",
        "spotAllocationStrategy",
        "capacityRebalance",
    ],
    without_effect: &[],
    unsupported: &[("maxPrice", "Spot instances have no price limit but the On-Demand price")],
    strict: false,
};

/// Pools over which the API spreads Spot instances at lowest price unless told otherwise.
const SPOT_POOLS: u32 = 2;

const STRATEGIES: &[(&str, SpotStrategy)] = &[
    ("lowest-price", SpotStrategy::LowestPrice { pools: SPOT_POOLS }),
    ("capacity-optimized", SpotStrategy::CapacityOptimized),
    ("capacity-optimized-prioritized", SpotStrategy::CapacityOptimizedPrioritized),
    ("price-capacity-optimized", SpotStrategy::PriceCapacityOptimized),
];

/// The Spot strategy of managed groups: it changed with the clusters of Kubernetes 1.28.
pub(super) fn managed_spot_strategy(kubernetes: Option<KubernetesVersion>) -> SpotStrategy {
    const FIRST_WITH_PRICES: u8 = 28;
    if kubernetes.is_some_and(|version| version.minor() < FIRST_WITH_PRICES) {
        SpotStrategy::CapacityOptimized
    } else {
        SpotStrategy::PriceCapacityOptimized
    }
}

/// A mixed instances policy.
pub(super) struct Distribution {
    pub(super) instances: InstancesDistribution,
    pub(super) types: Vec<Symbol>,
    pub(super) capacity_rebalance: bool,
}

/// eksctl's `instancesDistribution`; what it leaves out has the API's defaults.
pub(super) fn distribution<'s>(reader: &mut Reader<'s>, node: &Node<'s>) -> Result<Distribution, ScenarioError> {
    let fields = reader.fields(node, &DISTRIBUTION)?;
    let mut types = Vec::new();
    for item in fields.optional("instanceTypes", |n, what| reader.list(n, what))?.unwrap_or_default() {
        types.push(known_type(reader, item)?);
    }
    let percent = |key| fields.optional(key, |n, what| reader.integer(n, what, 0, 100));
    let stated = fields.optional("spotAllocationStrategy", |n, what| reader.choice(n, what, STRATEGIES))?;
    let pools = fields.optional("spotInstancePools", |n, what| reader.integer(n, what, 1, 20))?;
    let instances = InstancesDistribution {
        on_demand_base: count(reader, fields, "onDemandBaseCapacity")?.unwrap_or(0),
        on_demand_percent: percent("onDemandPercentageAboveBaseCapacity")?.unwrap_or(100) as u32,
        spot_strategy: strategy(stated.unwrap_or(STRATEGIES[0].1), pools),
        ..InstancesDistribution::ON_DEMAND
    };
    let capacity_rebalance = fields.optional("capacityRebalance", |n, what| reader.truth(n, what))?.unwrap_or(false);
    Ok(Distribution { instances, types, capacity_rebalance })
}

fn strategy(strategy: SpotStrategy, pools: Option<i64>) -> SpotStrategy {
    match (strategy, pools) {
        (SpotStrategy::LowestPrice { .. }, Some(pools)) => SpotStrategy::LowestPrice { pools: pools as u32 },
        _ => strategy,
    }
}

/// An instance type that the reader knows.
pub(super) fn known_type(reader: &Reader<'_>, node: &Node<'_>) -> Result<Symbol, ScenarioError> {
    let name = reader.symbol(node, "instanceType")?;
    reader.check_instance_type(name).map_err(|help| {
        let error = reader.error(node.at, format!("unknown instance type `{name}`"));
        error.because("the region has no such type").help(help)
    })?;
    Ok(name)
}

/// The labels that EKS itself puts on the nodes of a managed group.
pub(super) fn managed_labels(name: Symbol, distribution: &InstancesDistribution, labels: &mut Labels) {
    let bought = Symbol::new(if distribution.is_spot() { "SPOT" } else { "ON_DEMAND" });
    labels.set(well_known::EKS_CAPACITY_TYPE, bought);
    labels.set(well_known::EKS_NODEGROUP, name);
}

/// The tags by which Cluster Autoscaler finds a managed group's Auto Scaling group.
pub(super) fn managed_tags(cluster: Option<Symbol>, tags: &mut Labels) {
    tags.set(Symbol::new("k8s.io/cluster-autoscaler/enabled"), well_known::TRUE);
    if let Some(cluster) = cluster {
        tags.set(Symbol::new(&format!("k8s.io/cluster-autoscaler/{cluster}")), Symbol::new("owned"));
    }
}

/// Tags that tell Cluster Autoscaler the labels and taints of nodes that do not exist yet.
pub(super) fn propagate(node_labels: &Labels, node_taints: &[Taint], tags: &mut Labels) {
    const PREFIX: &str = "k8s.io/cluster-autoscaler/node-template";
    for (key, value) in node_labels.iter() {
        tags.set(Symbol::new(&format!("{PREFIX}/label/{key}")), value);
    }
    for taint in node_taints {
        let value = format!("{}:{}", taint.value, taint.effect.as_str());
        tags.set(Symbol::new(&format!("{PREFIX}/taint/{}", taint.key)), Symbol::new(&value));
    }
}

/// The scenario's own list of node groups; `cluster` is the name of the cluster if one is known.
pub(in crate::scenario) fn plain_groups<'s>(
    reader: &mut Reader<'s>,
    node: &Node<'s>,
    region: &Region,
    cluster: Option<Symbol>,
) -> Result<Vec<NodeGroup>, ScenarioError> {
    let mut groups: Vec<NodeGroup> = Vec::new();
    for item in reader.list(node, "nodeGroups")? {
        let group = plain_group(reader, item, region, cluster)?;
        if groups.iter().any(|other| other.name == group.name) {
            return Err(reader
                .error(item.at, format!("two node groups are called `{}`", group.name))
                .because("the second one")
                .help("give each its own name"));
        }
        groups.push(group);
    }
    Ok(groups)
}

fn plain_group<'s>(
    reader: &mut Reader<'s>,
    node: &Node<'s>,
    region: &Region,
    cluster: Option<Symbol>,
) -> Result<NodeGroup, ScenarioError> {
    let fields = reader.fields(node, &NODE_GROUP.shape)?;
    let name = reader.symbol(fields.required(reader, "name")?, "name")?;
    let (distribution, managed) = purchase(reader, fields)?;
    let (min_size, desired_size, max_size) = plain_sizes(reader, fields)?;
    let rebalances = fields.optional("capacityRebalance", |n, what| reader.truth(n, what))?;
    let gibibytes = fields.optional("volumeSize", |n, what| reader.integer(n, what, 1, 65_536))?.unwrap_or(20);
    let mut group = NodeGroup {
        name,
        managed,
        instance_types: plain_types(reader, fields, region)?,
        distribution,
        capacity_rebalance: rebalances.unwrap_or(managed && distribution.is_spot()),
        min_size,
        desired_size,
        max_size,
        labels: labels(reader, fields, "labels")?,
        taints: taints(reader, fields, "taints")?,
        zones: plain_zones(reader, fields, region)?,
        ami_family: fields
            .optional("amiFamily", |n, what| reader.choice(n, what, FAMILIES))?
            .unwrap_or(AmiFamily::AL2023),
        volume_bytes: gibibytes << 30,
        volume_type: Symbol::new("gp3"),
        max_pods: fields.optional("maxPods", |n, what| reader.integer(n, what, 1, 10_000))?,
        tags: labels(reader, fields, "tags")?,
    };
    managed_tags(cluster, &mut group.tags);
    if managed {
        managed_labels(name, &group.distribution, &mut group.labels);
    }
    Ok(group)
}

/// The value under one of two names for the same thing.
fn either<'n, 's>(
    reader: &Reader<'s>,
    fields: Fields<'n, 's>,
    names: [&'static str; 2],
) -> Result<Option<&'n Node<'s>>, ScenarioError> {
    match (fields.get(names[0]), fields.get(names[1])) {
        (Some(_), Some(second)) => Err(reader
            .error(second.at, format!("`{}` and `{}` are two names for the same thing", names[0], names[1]))
            .because("stated twice")
            .help("keep one of them")),
        (first, second) => Ok(first.or(second)),
    }
}

/// How instances are bought, and whether EKS manages the group: it manages none that mixes Spot and On-Demand.
fn purchase(reader: &Reader<'_>, fields: Fields<'_, '_>) -> Result<(InstancesDistribution, bool), ScenarioError> {
    let spot = fields.optional("spot", |n, what| spot_percent(reader, n, what))?.unwrap_or(0);
    let stated = fields.optional("spotStrategy", |n, what| reader.choice(n, what, STRATEGIES))?;
    let pools = fields.optional("spotPools", |n, what| reader.integer(n, what, 1, 20))?;
    let distribution = InstancesDistribution {
        on_demand_base: count(reader, fields, "onDemandBase")?.unwrap_or(0),
        on_demand_percent: 100 - spot,
        spot_strategy: strategy(stated.unwrap_or(SpotStrategy::PriceCapacityOptimized), pools),
        ..InstancesDistribution::ON_DEMAND
    };
    let mixes = !distribution.is_spot() && !distribution.is_on_demand();
    let managed = fields.optional("managed", |n, what| reader.truth(n, what))?;
    if let (true, Some(true), Some(node)) = (mixes, managed, fields.get("managed")) {
        return Err(reader
            .error(node.at, "a managed node group is all Spot or all On-Demand")
            .because("this one mixes the two")
            .help("write `managed: false`, or split it into two groups"));
    }
    Ok((distribution, managed.unwrap_or(!mixes)))
}

/// `true`, `false`, or a share in percent such as `70%`.
fn spot_percent(reader: &Reader<'_>, node: &Node<'_>, what: &str) -> Result<u32, ScenarioError> {
    let text = reader.text(node, what)?;
    let share = match text {
        "true" => Some(1.0),
        "false" => Some(0.0),
        _ => match text.strip_suffix('%') {
            Some(number) => number.trim().parse::<f64>().ok().map(|percent| percent / 100.0),
            None => text.parse::<f64>().ok(),
        },
    };
    // The API knows whole percentages.
    let millionths = share.filter(|share| (0.0..=1.0).contains(share)).map(|share| libm::round(share * 1e6) as u32);
    match millionths {
        Some(millionths) if millionths % 10_000 == 0 => Ok(millionths / 10_000),
        _ => Err(reader
            .error(node.at, format!("`{what}` is `true`, `false` or a whole percentage"))
            .because("none of these")
            .help("write for example `70%`")),
    }
}

fn plain_types(reader: &Reader<'_>, fields: Fields<'_, '_>, region: &Region) -> Result<Vec<Symbol>, ScenarioError> {
    let several = fields.optional("instanceTypes", |n, what| reader.list(n, what))?.unwrap_or_default();
    let mut types = Vec::new();
    for node in fields.get("instanceType").into_iter().chain(several) {
        let name = reader.symbol(node, "instanceTypes")?;
        if region.instance_type(name).is_none() {
            let all = || region.types.iter().map(|kind| kind.facts.name.as_str());
            let help = nearest(name.as_str(), all()).map(|near| format!("did you mean `{near}`?"));
            return Err(reader
                .error(node.at, format!("`{name}` is not an instance type of {}", region.name))
                .because("unknown instance type")
                .help(help.unwrap_or_else(|| "write for example `m5.large`".to_owned())));
        }
        types.push(name);
    }
    if types.is_empty() {
        return Err(reader
            .error(fields.at, "a node group needs `instanceTypes`")
            .because("none is stated here")
            .help("write for example `instanceTypes: [m5.large, m5a.large]`"));
    }
    Ok(types)
}

fn plain_zones<'s>(reader: &Reader<'s>, fields: Fields<'_, 's>, region: &Region) -> Result<Vec<Symbol>, ScenarioError> {
    let Some(node) = either(reader, fields, ["zones", "availabilityZones"])? else { return Ok(Vec::new()) };
    let mut zones = Vec::new();
    for item in reader.list(node, "zones")? {
        let zone = reader.symbol(item, "zones")?;
        if region.zone_index(zone).is_none() {
            let known = listed(region.zones.iter().map(|zone| zone.name.as_str()));
            return Err(reader
                .error(item.at, format!("`{zone}` is not a zone of {}", region.name))
                .because("unknown zone")
                .help(format!("its zones are {known}")));
        }
        zones.push(zone);
    }
    Ok(zones)
}

fn plain_sizes<'s>(reader: &Reader<'s>, fields: Fields<'_, 's>) -> Result<(u32, u32, u32), ScenarioError> {
    let size = |names: [&'static str; 2]| -> Result<Option<u32>, ScenarioError> {
        let Some(node) = either(reader, fields, names)? else { return Ok(None) };
        let number = reader.integer(node, names[0], 0, 100_000)?;
        Ok(Some(u32::try_from(number).unwrap_or(u32::MAX)))
    };
    let least = size(["min", "minSize"])?;
    let desired = size(["desired", "desiredCapacity"])?;
    sizes(reader, fields, least, desired, size(["max", "maxSize"])?)
}

/// Smallest, desired and largest size; what is left out follows from what is given, two nodes if nothing is.
pub(super) fn sizes(
    reader: &Reader<'_>,
    fields: Fields<'_, '_>,
    least: Option<u32>,
    desired: Option<u32>,
    most: Option<u32>,
) -> Result<(u32, u32, u32), ScenarioError> {
    let desired = desired.or(least).unwrap_or_else(|| most.map_or(2, |most| most.min(2)));
    let least = least.unwrap_or(desired);
    let most = most.unwrap_or(desired.max(least));
    if least > desired || desired > most {
        return Err(reader
            .error(fields.at, format!("the sizes contradict each other: {least} to {most}, desired {desired}"))
            .because("of this group")
            .help("keep minSize <= desiredCapacity <= maxSize"));
    }
    Ok((least, desired, most))
}
