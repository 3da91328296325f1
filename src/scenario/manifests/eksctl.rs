//! eksctl's ClusterConfig: the cluster and its node groups.

use super::common::{labels, symbols, taints};
use crate::domain::node_pool::{AmiFamily, ClusterInfo, NodeGroup};
use crate::domain::symbol::well_known;
use crate::domain::{KubernetesVersion, Symbol};
use crate::scenario::ScenarioError;
use crate::scenario::reader::{Fields, Reader, Shape};
use crate::scenario::tree::Node;

static CLUSTER: Shape = Shape {
    name: "a ClusterConfig",
    keys: &["apiVersion", "kind", "metadata", "managedNodeGroups", "nodeGroups", "availabilityZones"],
    without_effect: &[
        "vpc",
        "kubernetesNetworkConfig",
        "cloudWatch",
        "iam",
        "addons",
        "addonsConfig",
        "identityProviders",
        "iamIdentityMappings",
        "secretsEncryption",
        "privateCluster",
        "gitops",
        "accessConfig",
        "karpenter",
        "localZones",
        "zonalShiftConfig",
        "upgradePolicy",
    ],
    unsupported: &[
        ("fargateProfiles", "no pod runs on Fargate"),
        ("autoModeConfig", "Auto Mode's own node pools do not exist"),
        ("outpost", "nodes run in the region"),
        ("remoteNetworkConfig", "hybrid nodes do not exist"),
    ],
    strict: false,
};
static METADATA: Shape = Shape {
    name: "a ClusterConfig's metadata",
    keys: &["name", "region", "version"],
    without_effect: &["tags", "annotations", "accountID"],
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
        "volumeSize",
        "volumeType",
        "maxPodsPerNode",
    ],
    without_effect: &[
        "tags",
        "iam",
        "ssh",
        "privateNetworking",
        "subnets",
        "volumeEncrypted",
        "volumeKmsKeyID",
        "volumeName",
        "volumeIOPS",
        "volumeThroughput",
        "additionalVolumes",
        "securityGroups",
        "ami",
        "preBootstrapCommands",
        "overrideBootstrapCommand",
        "updateConfig",
        "propagateASGTags",
        "asgMetricsCollection",
        "disableIMDSv1",
        "disablePodIMDS",
        "enableDetailedMonitoring",
        "ebsOptimized",
        "releaseVersion",
        "bottlerocket",
        "nodeRepairConfig",
        "containerRuntime",
        "additionalEncryptedVolume",
        "instanceName",
        "instancePrefix",
        "clusterDNS",
        "targetGroupARNs",
        "classicLoadBalancerNames",
    ],
    unsupported: &[
        ("instanceSelector", "name the instance types in `instanceTypes`"),
        ("instancesDistribution", "state `instanceTypes` and `spot`"),
        ("launchTemplate", "the group has eksctl's own launch template"),
        ("kubeletExtraConfig", "the kubelet has its default settings"),
        ("placement", "instances run in no placement group"),
        ("capacityReservation", "no reserved capacity is used"),
        ("efaEnabled", "instances have no EFA interface"),
    ],
    strict: false,
};

/// A ClusterConfig object.
pub(super) fn cluster_config<'s>(
    reader: &mut Reader<'s>,
    object: &Node<'s>,
) -> Result<(ClusterInfo, Vec<NodeGroup>), ScenarioError> {
    let fields = reader.fields(object, &CLUSTER)?;
    let mut cluster = ClusterInfo { zones: symbols(reader, fields, "availabilityZones")?, ..ClusterInfo::default() };
    if let Some(node) = fields.get("metadata") {
        let metadata = reader.fields(node, &METADATA)?;
        cluster.name = metadata.optional("name", |n, what| reader.symbol(n, what))?;
        cluster.region = metadata.optional("region", |n, what| reader.symbol(n, what))?;
        cluster.kubernetes_version = metadata.optional("version", |n, what| reader.text(n, what))?.map(str::to_owned);
    }
    let mut groups = Vec::new();
    for (key, managed) in [("managedNodeGroups", true), ("nodeGroups", false)] {
        for node in fields.optional(key, |n, what| reader.list(n, what))?.unwrap_or_default() {
            groups.push(node_group(reader, node, &cluster, managed)?);
        }
    }
    Ok((cluster, groups))
}

/// The release from which eksctl starts groups on Amazon Linux 2023 unless told otherwise.
const FIRST_WITH_AL2023: u8 = 30;

const FAMILIES: &[(&str, AmiFamily)] = &[
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
];

fn node_group<'s>(
    reader: &mut Reader<'s>,
    node: &Node<'s>,
    cluster: &ClusterInfo,
    managed: bool,
) -> Result<NodeGroup, ScenarioError> {
    let fields = reader.fields(node, &GROUP)?;
    let name = reader.symbol(fields.required(reader, "name")?, "name")?;
    let instance_types = instance_types(reader, fields)?;
    let spot = fields.optional("spot", |n, what| reader.truth(n, what))?.unwrap_or(false);
    let (min_size, desired_size, max_size) = sizes(reader, fields)?;
    let mut zones = symbols(reader, fields, "availabilityZones")?;
    if zones.is_empty() {
        zones.clone_from(&cluster.zones);
    }
    let gibibytes = fields.optional("volumeSize", |n, what| reader.integer(n, what, 1, 65_536))?.unwrap_or(80);
    let max_pods = fields.optional("maxPodsPerNode", |n, what| reader.integer(n, what, 1, 10_000))?;
    let mut group = NodeGroup {
        name,
        instance_types,
        spot,
        min_size,
        desired_size,
        max_size,
        labels: labels(reader, fields, "labels")?,
        taints: taints(reader, fields, "taints")?,
        zones,
        ami_family: ami_family(reader, fields, cluster)?,
        volume_bytes: gibibytes << 30,
        volume_type: fields
            .optional("volumeType", |n, what| reader.symbol(n, what))?
            .unwrap_or_else(|| Symbol::new("gp3")),
        max_pods,
    };
    add_own_labels(&mut group, cluster, managed);
    Ok(group)
}

/// The group's instance types, eksctl's default if it names none.
fn instance_types(reader: &Reader<'_>, fields: Fields<'_, '_>) -> Result<Vec<Symbol>, ScenarioError> {
    let mut types = Vec::new();
    // A self-managed group of several types says `mixed` in `instanceType`.
    let single = fields.get("instanceType").filter(|node| node.as_text() != Some("mixed"));
    let several = fields.optional("instanceTypes", |n, what| reader.list(n, what))?.unwrap_or_default();
    for node in single.into_iter().chain(several) {
        let name = reader.symbol(node, "instanceType")?;
        reader.check_instance_type(name).map_err(|help| {
            let error = reader.error(node.at, format!("unknown instance type `{name}`"));
            error.because("the region has no such type").help(help)
        })?;
        types.push(name);
    }
    if types.is_empty() {
        types.push(Symbol::new("m5.large"));
    }
    Ok(types)
}

/// The labels that eksctl and EKS themselves put on a group's nodes.
fn add_own_labels(group: &mut NodeGroup, cluster: &ClusterInfo, managed: bool) {
    let name = group.name;
    group.labels.set(Symbol::new("alpha.eksctl.io/nodegroup-name"), name);
    if let Some(cluster) = cluster.name {
        group.labels.set(Symbol::new("alpha.eksctl.io/cluster-name"), cluster);
    }
    if managed {
        let bought = Symbol::new(if group.spot { "SPOT" } else { "ON_DEMAND" });
        group.labels.set(well_known::EKS_CAPACITY_TYPE, bought);
        group.labels.set(well_known::EKS_NODEGROUP, name);
    }
}

fn ami_family(reader: &Reader<'_>, fields: Fields<'_, '_>, cluster: &ClusterInfo) -> Result<AmiFamily, ScenarioError> {
    if let Some(family) = fields.optional("amiFamily", |n, what| reader.choice(n, what, FAMILIES))? {
        return Ok(family);
    }
    let version = cluster.kubernetes_version.as_deref().and_then(|text| text.parse::<KubernetesVersion>().ok());
    let older = version.is_some_and(|version| version.minor() < FIRST_WITH_AL2023);
    Ok(if older { AmiFamily::AL2 } else { AmiFamily::AL2023 })
}

/// Smallest, desired and largest size; what is left out follows from what is given, two nodes if nothing is.
fn sizes(reader: &Reader<'_>, fields: Fields<'_, '_>) -> Result<(u32, u32, u32), ScenarioError> {
    let size = |key| super::common::count(reader, fields, key);
    let (least, desired, most) = (size("minSize")?, size("desiredCapacity")?, size("maxSize")?);
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
