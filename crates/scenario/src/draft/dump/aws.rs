//! What the AWS CLI prints of node groups: `aws autoscaling describe-auto-scaling-groups` and `aws eks describe-nodegroup`.
//!
//! Source: EC2 Auto Scaling API reference, `AutoScalingGroup`; EKS API reference, `Nodegroup`.
//!
//! What must not live here: which of a dump's groups is meant (`limits`).

use crate::ScenarioError;
use crate::manifests::node_group::STRATEGIES;
use crate::reader::Reader;
use crate::source::Source;
use crate::tree::Node;

/// Everything that was printed.
#[derive(Clone, Debug, Default)]
pub(super) struct Described {
    /// Auto Scaling groups, of whatever cluster.
    pub groups: Vec<AutoScalingGroup>,
    /// Managed node groups, of whatever cluster.
    pub managed: Vec<ManagedGroup>,
}

/// Smallest, desired and largest size.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Sizes {
    pub least: usize,
    pub desired: usize,
    pub most: usize,
}

/// An Auto Scaling group.
#[derive(Clone, Debug)]
pub(super) struct AutoScalingGroup {
    pub name: String,
    pub sizes: Sizes,
    pub zones: Vec<String>,
    /// Ids of its instances.
    pub instances: Vec<String>,
    pub tags: Vec<(String, String)>,
    pub mixed: Option<MixedInstances>,
    pub rebalance: bool,
}

/// A mixed instances policy.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct MixedInstances {
    /// The types of its overrides, each once, the preferred first.
    pub types: Vec<String>,
    /// Whether an override names types by attributes.
    pub by_attributes: bool,
    /// Weights of the types, in their order; empty where each is one.
    pub weights: Vec<i64>,
    /// `OnDemandBaseCapacity`.
    pub on_demand_base: i64,
    /// `OnDemandPercentageAboveBaseCapacity`.
    pub on_demand_percent: i64,
    /// Whether On-Demand pools are chosen by price and not by the order of types.
    pub on_demand_by_price: bool,
    /// `SpotAllocationStrategy`.
    pub spot_strategy: &'static str,
    /// `SpotInstancePools`.
    pub spot_pools: Option<i64>,
}

/// A managed node group.
#[derive(Clone, Debug)]
pub(super) struct ManagedGroup {
    pub name: String,
    pub cluster: String,
    pub sizes: Sizes,
    pub spot: bool,
    pub types: Vec<String>,
    pub labels: Vec<(String, String)>,
    /// Key, value, effect.
    pub taints: Vec<[String; 3]>,
    /// eksctl's name for the family of its machine images.
    pub family: &'static str,
    /// Its root volume in GiB.
    pub volume: Option<i64>,
    /// Names of its Auto Scaling groups.
    pub groups: Vec<String>,
}

const ASG: &str = "AutoScalingGroups";
const MANAGED: &str = "nodegroup";
/// What `aws eks list-nodegroups` prints.
const NAMES: &str = "nodegroups";
/// The largest size that a group of a scenario may have.
const SIZE_MAX: i64 = 100_000;

impl Described {
    /// Takes a document if it is of the AWS CLI.
    ///
    /// # Errors
    /// If it is and cannot be used.
    pub(super) fn take(&mut self, source: &Source, document: &Node<'_>) -> Result<bool, ScenarioError> {
        let reader = Reader::new(Some(source));
        if document.get("kind").is_some() {
            return Ok(false);
        }
        if let Some(groups) = document.get(ASG) {
            for group in reader.list(groups, ASG)? {
                self.groups.push(auto_scaling_group(&reader, group)?);
            }
            return Ok(true);
        }
        if let Some(group) = document.get(MANAGED) {
            self.managed.push(managed_group(&reader, group)?);
            return Ok(true);
        }
        match document.get(NAMES) {
            Some(names) => Err(reader
                .error(names.at, "this names node groups and does not say how large they may be")
                .because("names alone, as `aws eks list-nodegroups` prints them")
                .help(
                    "ask for each of them: `aws eks describe-nodegroup --cluster-name CLUSTER --nodegroup-name NAME`",
                )),
            None => Ok(false),
        }
    }

    /// Whether there is nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.groups.is_empty() && self.managed.is_empty()
    }
}

/// The value of a key that has to be there.
fn required<'n, 's>(
    reader: &Reader<'s>,
    node: &'n Node<'s>,
    what: &str,
    key: &'static str,
) -> Result<&'n Node<'s>, ScenarioError> {
    node.get(key).ok_or_else(|| {
        reader
            .error(node.at, format!("{what} needs `{key}`"))
            .because(format!("`{key}` is missing here"))
            .help("hand over what the AWS CLI prints, whole: without `--query`, with `--output json`")
    })
}

fn text<'s>(reader: &Reader<'s>, node: &Node<'s>, what: &str, key: &'static str) -> Result<String, ScenarioError> {
    let node = required(reader, node, what, key)?;
    Ok(reader.text(node, key)?.to_owned())
}

/// The texts of a list that may be missing.
fn texts<'s>(reader: &Reader<'s>, node: &Node<'s>, key: &'static str) -> Result<Vec<String>, ScenarioError> {
    let Some(list) = node.get(key) else { return Ok(Vec::new()) };
    reader.list(list, key)?.iter().map(|item| Ok(reader.text(item, key)?.to_owned())).collect()
}

/// The sizes under these keys: smallest, desired, largest.
fn sizes<'s>(
    reader: &Reader<'s>,
    node: &Node<'s>,
    what: &str,
    keys: [&'static str; 3],
) -> Result<Sizes, ScenarioError> {
    let size = |key| {
        let size = reader.integer(required(reader, node, what, key)?, key, 0, SIZE_MAX)?;
        Ok::<usize, ScenarioError>(size.unsigned_abs() as usize)
    };
    let sizes = Sizes { least: size(keys[0])?, desired: size(keys[1])?, most: size(keys[2])? };
    if sizes.least > sizes.desired || sizes.desired > sizes.most {
        let Sizes { least, desired, most } = sizes;
        return Err(reader
            .error(node.at, format!("inconsistent sizes: min {least}, max {most}, desired {desired}"))
            .because("of this group")
            .help("ask the AWS CLI again"));
    }
    Ok(sizes)
}

fn auto_scaling_group<'s>(reader: &Reader<'s>, node: &Node<'s>) -> Result<AutoScalingGroup, ScenarioError> {
    const WHAT: &str = "an Auto Scaling group";
    let mut instances = Vec::new();
    if let Some(list) = node.get("Instances") {
        for instance in reader.list(list, "Instances")? {
            instances.push(text(reader, instance, "an instance", "InstanceId")?);
        }
    }
    let mut tags = Vec::new();
    if let Some(list) = node.get("Tags") {
        for tag in reader.list(list, "Tags")? {
            let value = tag.get("Value").and_then(Node::as_text).unwrap_or_default().to_owned();
            tags.push((text(reader, tag, "a tag", "Key")?, value));
        }
    }
    Ok(AutoScalingGroup {
        name: text(reader, node, WHAT, "AutoScalingGroupName")?,
        sizes: sizes(reader, node, WHAT, ["MinSize", "DesiredCapacity", "MaxSize"])?,
        zones: texts(reader, node, "AvailabilityZones")?,
        instances,
        tags,
        mixed: node.get("MixedInstancesPolicy").map(|policy| mixed(reader, policy)).transpose()?,
        rebalance: match node.get("CapacityRebalance") {
            Some(node) => reader.truth(node, "CapacityRebalance")?,
            None => false,
        },
    })
}

fn mixed<'s>(reader: &Reader<'s>, policy: &Node<'s>) -> Result<MixedInstances, ScenarioError> {
    // What a group leaves out has the API's defaults.
    let mut mixed =
        MixedInstances { on_demand_percent: 100, spot_strategy: STRATEGIES[0].0, ..MixedInstances::default() };
    let overrides = policy.get("LaunchTemplate").and_then(|template| template.get("Overrides"));
    for item in overrides.map_or(Ok(&[][..]), |list| reader.list(list, "Overrides"))? {
        if let Some(kind) = item.get("InstanceType") {
            let kind = reader.text(kind, "InstanceType")?.to_owned();
            if !mixed.types.contains(&kind) {
                mixed.types.push(kind);
                let weight = item.get("WeightedCapacity");
                let weight = weight.map(|weight| reader.integer(weight, "WeightedCapacity", 1, 999)).transpose()?;
                mixed.weights.push(weight.unwrap_or(1));
            }
        }
        mixed.by_attributes |= item.get("InstanceRequirements").is_some();
    }
    if mixed.weights.iter().all(|weight| *weight == 1) {
        mixed.weights.clear();
    }
    let Some(distribution) = policy.get("InstancesDistribution") else { return Ok(mixed) };
    let number =
        |key: &'static str, most| distribution.get(key).map(|number| reader.integer(number, key, 0, most)).transpose();
    mixed.on_demand_base = number("OnDemandBaseCapacity", SIZE_MAX)?.unwrap_or(mixed.on_demand_base);
    mixed.on_demand_percent = number("OnDemandPercentageAboveBaseCapacity", 100)?.unwrap_or(mixed.on_demand_percent);
    mixed.spot_pools = number("SpotInstancePools", 20)?.filter(|pools| *pools > 0);
    let strategy = distribution.get("OnDemandAllocationStrategy").and_then(Node::as_text);
    mixed.on_demand_by_price = strategy == Some("lowest-price");
    if let Some(strategy) = distribution.get("SpotAllocationStrategy") {
        let words: Vec<(&'static str, &'static str)> = STRATEGIES.iter().map(|(word, _)| (*word, *word)).collect();
        mixed.spot_strategy = reader.choice(strategy, "SpotAllocationStrategy", &words)?;
    }
    Ok(mixed)
}

fn managed_group<'s>(reader: &Reader<'s>, node: &Node<'s>) -> Result<ManagedGroup, ScenarioError> {
    const WHAT: &str = "a node group";
    let scaling = required(reader, node, WHAT, "scalingConfig")?;
    let mut labels = Vec::new();
    if let Some(node) = node.get("labels") {
        for entry in reader.entries(node, "labels")? {
            labels.push((entry.key.to_string(), reader.text(&entry.value, "labels")?.to_owned()));
        }
    }
    let mut taints = Vec::new();
    if let Some(node) = node.get("taints") {
        for taint in reader.list(node, "taints")? {
            let effect = reader.choice(required(reader, taint, "a taint", "effect")?, "effect", &EFFECTS)?;
            let value = taint.get("value").and_then(Node::as_text).unwrap_or_default().to_owned();
            taints.push([text(reader, taint, "a taint", "key")?, value, effect.to_owned()]);
        }
    }
    let mut groups = Vec::new();
    if let Some(resource) = node.get("resources").and_then(|resources| resources.get("autoScalingGroups")) {
        for group in reader.list(resource, "autoScalingGroups")? {
            groups.push(text(reader, group, "an Auto Scaling group", "name")?);
        }
    }
    Ok(ManagedGroup {
        name: text(reader, node, WHAT, "nodegroupName")?,
        cluster: text(reader, node, WHAT, "clusterName")?,
        sizes: sizes(reader, scaling, "`scalingConfig`", ["minSize", "desiredSize", "maxSize"])?,
        spot: node.get("capacityType").and_then(Node::as_text) == Some("SPOT"),
        types: texts(reader, node, "instanceTypes")?,
        labels,
        taints,
        family: family(node.get("amiType").and_then(Node::as_text).unwrap_or_default()),
        volume: node.get("diskSize").map(|size| reader.integer(size, "diskSize", 1, 65_536)).transpose()?,
        groups,
    })
}

/// Effects of taints by the names that EKS gives them.
const EFFECTS: [(&str, &str); 3] =
    [("NO_SCHEDULE", "NoSchedule"), ("PREFER_NO_SCHEDULE", "PreferNoSchedule"), ("NO_EXECUTE", "NoExecute")];

/// eksctl's name for the family of an `amiType`.
fn family(ami_type: &str) -> &'static str {
    match ami_type {
        ami_type if ami_type.starts_with("BOTTLEROCKET") => "Bottlerocket",
        ami_type if ami_type.starts_with("AL2_") => "AmazonLinux2",
        ami_type if ami_type.starts_with("WINDOWS") && ami_type.contains("2019") => "WindowsServer2019CoreContainer",
        ami_type if ami_type.starts_with("WINDOWS") => "WindowsServer2022CoreContainer",
        _ => "AmazonLinux2023",
    }
}
