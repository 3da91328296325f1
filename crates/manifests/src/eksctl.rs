//! eksctl's ClusterConfig: the cluster, its node groups and its Fargate profiles.

mod extras;
mod kubelets;
mod subnets;
mod updates;
mod upkeep;

use subnets::Subnets;
pub use updates::{changed_keys, image_update};

use super::common::{count, labels, symbols};
use super::network_plugin::{self, NetworkPlugin};
use super::node_group::{
    check_architectures, check_volume, distribution, known_type, managed_labels, managed_spot_strategy, managed_tags,
    propagate, sizes, suspends_zone_rebalance, taints,
};
use super::{disks, fargate};
use crate::lints;
use nodecast_model::domain::node_group::{CreditMode, InstancesDistribution, NodeGroup};
use nodecast_model::domain::node_pool::{AmiFamily, ClusterInfo};
use nodecast_model::domain::{KubernetesBehaviour, KubernetesVersion, Labels, Symbol};
use nodecast_model::fargate::Profile;
use nodecast_model::text::InputError;
use nodecast_model::text::reader::{Fields, Reader, Shape};
use nodecast_model::text::tree::Node;

static CLUSTER: Shape = Shape {
    name: "a ClusterConfig",
    keys: &[
        "apiVersion",
        "kind",
        "metadata",
        "managedNodeGroups",
        "nodeGroups",
        "availabilityZones",
        "fargateProfiles",
        "vpc",
        "addons",
        "kubernetesNetworkConfig",
        "karpenter",
        "privateCluster",
        "controlPlaneScalingConfig",
        "capabilities",
    ],
    without_effect: &[
        "cloudWatch",
        "iam",
        "addonsConfig",
        "identityProviders",
        "iamIdentityMappings",
        "secretsEncryption",
        "gitops",
        "accessConfig",
        "zonalShiftConfig",
        "upgradePolicy",
    ],
    unsupported: &[
        ("autoModeConfig", "to simulate Auto Mode, add a policy with `autoscaler: eks-auto-mode`"),
        ("outpost", "nodes run in the region"),
        ("remoteNetworkConfig", "hybrid nodes do not exist"),
        ("localZones", "nodes run in the availability zones of the region, whose prices and waits are others"),
        ("kubeAPIServerConfig", "the API server has EKS's default settings"),
        ("kubeControllerManagerConfig", "the controllers have EKS's default settings"),
        ("kubeSchedulerConfig", "pass a KubeSchedulerConfiguration among the manifests"),
    ],
    strict: false,
};
static METADATA: Shape = Shape {
    name: "a ClusterConfig's metadata",
    keys: &["name", "region", "version"],
    without_effect: &["tags", "annotations", "accountID", "forceUpdateVersion", "rollbackConfig"],
    unsupported: &[],
    strict: false,
};
static NETWORK: Shape = Shape {
    name: "a ClusterConfig's network",
    keys: &["ipFamily"],
    without_effect: &["serviceIPv4CIDR", "serviceIPv6CIDR"],
    unsupported: &[],
    strict: false,
};
static GROUP: Shape = Shape {
    name: "a node group",
    keys: &[
        "name",
        "instanceType",
        "instanceTypes",
        "spot",
        "minSize",
        "maxSize",
        "desiredCapacity",
        "labels",
        "taints",
        "availabilityZones",
        "amiFamily",
        "volumeName",
        "volumeSize",
        "volumeType",
        "volumeIOPS",
        "volumeThroughput",
        "additionalVolumes",
        "maxPodsPerNode",
        "instancesDistribution",
        "cpuCredits",
        "tags",
        "propagateASGTags",
        "iam",
        "asgSuspendProcesses",
        "privateNetworking",
        "subnets",
        "preBootstrapCommands",
        "overrideBootstrapCommand",
        "bottlerocket",
        "ami",
        "nodeRepairConfig",
        "updateConfig",
        "warmPoolConfig",
        "releaseVersion",
    ],
    without_effect: &[
        "ssh",
        "volumeEncrypted",
        "volumeKmsKeyID",
        "securityGroups",
        "asgMetricsCollection",
        "disableIMDSv1",
        "disablePodIMDS",
        "enableDetailedMonitoring",
        "ebsOptimized",
        "containerRuntime",
        "enclaveEnabled",
        "additionalEncryptedVolume",
        "instanceName",
        "instancePrefix",
        "clusterDNS",
        "targetGroupARNs",
        "classicLoadBalancerNames",
    ],
    unsupported: &[
        ("instanceSelector", "name the instance types in `instanceTypes`"),
        ("launchTemplate", "the group has eksctl's own launch template"),
        ("kubeletExtraConfig", "the kubelet has its default settings"),
        ("placement", "instances run in no placement group"),
        ("capacityReservation", "no reserved capacity is used"),
        ("efaEnabled", "instances have no EFA interface"),
        ("maxInstanceLifetime", "the Auto Scaling group replaces no instance for its age"),
        ("instanceMarketOptions", "no Capacity Block is used"),
        ("localZones", "its nodes run in the availability zones of the region, whose prices and waits are others"),
        ("outpostARN", "its nodes run in the region"),
    ],
    strict: false,
};

/// What a ClusterConfig says.
pub(super) struct ReadCluster {
    pub(super) cluster: ClusterInfo,
    pub(super) groups: Vec<NodeGroup>,
    pub(super) profiles: Vec<Profile>,
    pub(super) plugin: NetworkPlugin,
}

/// A ClusterConfig object.
pub(super) fn cluster_config<'s>(reader: &mut Reader<'s>, object: &Node<'s>) -> Result<ReadCluster, InputError> {
    let fields = reader.fields(object, &CLUSTER)?;
    let mut cluster = ClusterInfo { zones: symbols(reader, fields, "availabilityZones")?, ..ClusterInfo::default() };
    if let Some(node) = fields.get("metadata") {
        let metadata = reader.fields(node, &METADATA)?;
        cluster.name = metadata.optional("name", |n, what| reader.symbol(n, what))?;
        cluster.region = metadata.optional("region", |n, what| reader.symbol(n, what))?;
        cluster.kubernetes_version = metadata.optional("version", |n, what| reader.text(n, what))?.map(str::to_owned);
    }
    let subnets = Subnets::read(reader, fields.get("vpc"))?;
    if cluster.zones.is_empty() {
        cluster.zones = subnets.zones();
    }
    let mut groups = Vec::new();
    for (key, managed) in [("managedNodeGroups", true), ("nodeGroups", false)] {
        for node in fields.optional(key, |n, what| reader.list(n, what))?.unwrap_or_default() {
            groups.push(node_group(reader, node, (&cluster, &subnets), managed)?);
        }
    }
    extras::read(reader, fields, &mut cluster)?;
    let profiles = fargate::profiles(reader, fields)?;
    Ok(ReadCluster { cluster, groups, profiles, plugin: plugin(reader, fields)? })
}

/// What the cluster's network says of the network plugin: its add-on, and the family of addresses.
fn plugin<'s>(reader: &mut Reader<'s>, fields: Fields<'_, 's>) -> Result<NetworkPlugin, InputError> {
    let mut plugin = fields.get("addons").and_then(network_plugin::of_add_ons).unwrap_or_default();
    if let Some(node) = fields.get("kubernetesNetworkConfig") {
        let network = reader.fields(node, &NETWORK)?;
        let family = network.optional("ipFamily", |n, what| reader.text(n, what))?;
        plugin.addresses.ipv6 |= family.is_some_and(|family| family.eq_ignore_ascii_case("ipv6"));
    }
    Ok(plugin)
}

/// Families of machine images by the names that eksctl gives them.
pub const FAMILIES: &[(&str, AmiFamily)] = &[
    ("AmazonLinux2", AmiFamily::AL2),
    ("AmazonLinux2023", AmiFamily::AL2023),
    ("Bottlerocket", AmiFamily::Bottlerocket),
    ("Ubuntu2004", AmiFamily::Ubuntu),
    ("Ubuntu2204", AmiFamily::Ubuntu),
    ("Ubuntu2404", AmiFamily::Ubuntu),
    ("UbuntuPro2204", AmiFamily::Ubuntu),
    ("UbuntuPro2404", AmiFamily::Ubuntu),
    ("WindowsServer2019CoreContainer", AmiFamily::Windows2019),
    ("WindowsServer2019FullContainer", AmiFamily::Windows2019),
    ("WindowsServer2022CoreContainer", AmiFamily::Windows2022),
    ("WindowsServer2022FullContainer", AmiFamily::Windows2022),
    ("WindowsServer2025CoreContainer", AmiFamily::Windows2025),
    ("WindowsServer2025FullContainer", AmiFamily::Windows2025),
];

/// A node group.
///
/// Source: eksctl `pkg/cfn/manager/create_tasks.go`, `propagateManagedNodeGroupTagsToASGTask`, and `pkg/cfn/builder/nodegroup.go`: with
/// `propagateASGTags` a managed group's tags, labels and taints become tags of its Auto Scaling group; a self-managed one's tags always do.
fn node_group<'s>(
    reader: &mut Reader<'s>,
    node: &Node<'s>,
    (cluster, subnets): (&ClusterInfo, &Subnets),
    managed: bool,
) -> Result<NodeGroup, InputError> {
    let fields = reader.fields(node, &GROUP)?;
    let name = reader.symbol(fields.required(reader, "name")?, "name")?;
    let mut instance_types = instance_types(reader, fields)?;
    let spot = fields.optional("spot", |n, what| reader.truth(n, what))?.unwrap_or(false);
    let mut purchase = if spot { InstancesDistribution::SPOT } else { InstancesDistribution::ON_DEMAND };
    purchase.spot_strategy = managed_spot_strategy(kubernetes(cluster).filter(|_| managed));
    let mut capacity_rebalance = managed && spot;
    if let Some(node) = fields.get("instancesDistribution") {
        if managed {
            let message = "`instancesDistribution` of a managed node group is not simulated: it has none in EKS either";
            reader.left_out(
                &lints::MANAGED_DISTRIBUTION,
                node.at,
                message,
                "state `instanceTypes` and `spot`, or move the group to `nodeGroups`",
            );
        } else {
            let mixed = distribution(reader, node)?;
            (purchase, capacity_rebalance) = (mixed.instances, mixed.capacity_rebalance);
            instance_types = if mixed.types.is_empty() { instance_types } else { mixed.types };
        }
    }
    let size = |key| count(reader, fields, key);
    let desired = size("desiredCapacity")?;
    let (min_size, desired_size, max_size) = sizes(reader, fields, size("minSize")?, desired, size("maxSize")?)?;
    let zones = subnets.zones_of_group(reader, fields, &cluster.zones)?;
    let gibibytes = fields.optional("volumeSize", |n, what| reader.integer(n, what, 1, 65_536))?.unwrap_or(80);
    let family = ami_family(reader, fields, cluster)?;
    let (kubelet, registers) = kubelets::of_group(reader, fields, family, managed)?;
    let propagates = fields.optional("propagateASGTags", |n, what| reader.truth(n, what))?.unwrap_or(false);
    let stated = labels(reader, fields, "tags")?;
    let (tags, own_tags) = if managed && !propagates { (Labels::new(), stated) } else { (stated, Labels::new()) };
    let types_at = ["instanceTypes", "instancesDistribution"].into_iter().find_map(|key| fields.get(key));
    if let Some(region) = reader.region() {
        check_architectures(reader, region, types_at.map_or(fields.at, |node| node.at), (&instance_types, managed))?;
    }
    let disk = disks::of_group(reader, fields, (gibibytes, family))?;
    if let Some(node) = fields.get("volumeSize")
        && !has_own_image(fields)
    {
        check_volume(reader, node.at, (gibibytes, family), true)?;
    }
    let mut group = NodeGroup {
        name,
        managed,
        instance_types,
        weights: Vec::new(),
        distribution: purchase,
        capacity_rebalance,
        zone_rebalance: !suspends_zone_rebalance(reader, fields, managed)?,
        min_size,
        desired_size,
        states_desired: desired.is_some(),
        max_size,
        labels: labels(reader, fields, "labels")?,
        taints: taints(reader, fields)?,
        zones,
        ami_family: family,
        volume_bytes: gibibytes << 30,
        disk,
        more_volumes: disks::additional(reader, fields, family)?,
        own_image: has_own_image(fields),
        kubelet,
        registers,
        cpu_credits: cpu_credits(reader, fields)?,
        update_config: upkeep::update_config(reader, fields, managed)?,
        updated_at_start: None,
        warm_pool: upkeep::warm_pool(reader, fields, (purchase, family, managed))?,
        repair: upkeep::repair(reader, fields, managed)?,
        tags,
        own_tags,
        eksctl_cluster: Some(cluster.name.unwrap_or(Symbol::new("cluster"))),
        statement: updates::statement(node),
    };
    add_own(&mut group, cluster, propagates);
    if autoscaled(fields) {
        managed_tags(cluster.name, &mut group.tags);
    }
    Ok(group)
}

/// What becomes of the group's burstable instances whose credits are spent.
fn cpu_credits(reader: &Reader<'_>, fields: Fields<'_, '_>) -> Result<Option<CreditMode>, InputError> {
    let Some(node) = fields.get("cpuCredits") else { return Ok(None) };
    match reader.text(node, "cpuCredits")? {
        "standard" => Ok(Some(CreditMode::Standard)),
        "unlimited" => Ok(Some(CreditMode::Unlimited)),
        other => {
            let shown: String = other.chars().take(80).collect();
            let error = reader.error(node.at, format!("`cpuCredits` is `standard` or `unlimited`, not `{shown}`"));
            Err(error.because("not known").help("remove it to use EC2's default for each family"))
        }
    }
}

/// Whether the group names a machine image: `auto`, `auto-ssm` and `static` are ways to look for EKS's.
fn has_own_image(fields: Fields<'_, '_>) -> bool {
    let named = fields.get("ami").and_then(Node::as_text);
    named.is_some_and(|ami| !matches!(ami, "" | "auto" | "auto-ssm" | "static"))
}

/// The group's instance types, eksctl's default if it names none.
fn instance_types(reader: &Reader<'_>, fields: Fields<'_, '_>) -> Result<Vec<Symbol>, InputError> {
    // A self-managed group of several types says `mixed` in `instanceType`.
    let single = fields.get("instanceType").filter(|node| node.as_text() != Some("mixed"));
    let several = fields.optional("instanceTypes", |n, what| reader.list(n, what))?.unwrap_or_default();
    let nodes = single.into_iter().chain(several);
    let types = nodes.map(|node| known_type(reader, node)).collect::<Result<Vec<_>, _>>()?;
    Ok(if types.is_empty() { vec![Symbol::new("m5.large")] } else { types })
}

/// Whether the group's role lets Cluster Autoscaler resize it: eksctl then tags the group so that it is found.
fn autoscaled(fields: Fields<'_, '_>) -> bool {
    let policies = fields.get("iam").and_then(|iam| iam.get("withAddonPolicies"));
    policies.and_then(|policies| policies.get("autoScaler")).and_then(Node::as_text) == Some("true")
}

/// The labels and tags that eksctl and EKS themselves give a group.
fn add_own(group: &mut NodeGroup, cluster: &ClusterInfo, propagates: bool) {
    if propagates {
        propagate(&group.labels, &group.taints, &mut group.tags);
    }
    group.labels.set(Symbol::new("alpha.eksctl.io/nodegroup-name"), group.name);
    if let Some(cluster) = cluster.name {
        group.labels.set(Symbol::new("alpha.eksctl.io/cluster-name"), cluster);
    }
    if group.managed {
        managed_tags(cluster.name, &mut group.tags);
        managed_labels(group.name, &group.distribution, &mut group.labels);
    }
}

/// The Kubernetes release that the cluster states, if it can be reproduced.
fn kubernetes(cluster: &ClusterInfo) -> Option<KubernetesVersion> {
    cluster.kubernetes_version.as_deref().and_then(|text| text.parse().ok())
}

fn ami_family(reader: &Reader<'_>, fields: Fields<'_, '_>, cluster: &ClusterInfo) -> Result<AmiFamily, InputError> {
    if let Some(family) = fields.optional("amiFamily", |n, what| reader.choice(n, what, FAMILIES))? {
        return Ok(family);
    }
    let older = kubernetes(cluster).is_some_and(|version| !version.has(KubernetesBehaviour::EksctlAmazonLinux2023));
    Ok(if older { AmiFamily::AL2 } else { AmiFamily::AL2023 })
}
