//! Node groups: how a mixed instances policy becomes part of a `NodeGroup`, and what is common to all who write one.

use super::common::{count, taint_effect};
use crate::lints;
use nodecast_model::catalog::Region;
use nodecast_model::domain::node_group::{InstancesDistribution, SpotStrategy, WarmPool, WarmPoolState};
use nodecast_model::domain::node_pool::AmiFamily;
use nodecast_model::domain::symbol::well_known;
use nodecast_model::domain::{KubernetesBehaviour, KubernetesVersion, Labels, Symbol, Taint};
use nodecast_model::text::InputError;
use nodecast_model::text::reader::{Fields, Reader, Shape};
use nodecast_model::text::tree::{Entry, Location, Node, NodeKind};

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

/// Strategies by which an Auto Scaling group picks Spot pools, by their names in the API.
pub const STRATEGIES: &[(&str, SpotStrategy)] = &[
    ("lowest-price", SpotStrategy::LowestPrice { pools: SPOT_POOLS }),
    ("capacity-optimized", SpotStrategy::CapacityOptimized),
    ("capacity-optimized-prioritized", SpotStrategy::CapacityOptimizedPrioritized),
    ("price-capacity-optimized", SpotStrategy::PriceCapacityOptimized),
];

/// The Spot strategy of managed groups: it changed with the clusters of Kubernetes 1.28.
pub(super) fn managed_spot_strategy(kubernetes: Option<KubernetesVersion>) -> SpotStrategy {
    if kubernetes.is_some_and(|version| !version.has(KubernetesBehaviour::ManagedSpotByPrice)) {
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
pub(super) fn distribution<'s>(reader: &mut Reader<'s>, node: &Node<'s>) -> Result<Distribution, InputError> {
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

/// `strategy` over so many `pools`, if it goes by lowest price and a number is stated.
pub fn strategy(strategy: SpotStrategy, pools: Option<i64>) -> SpotStrategy {
    match (strategy, pools) {
        (SpotStrategy::LowestPrice { .. }, Some(pools)) => SpotStrategy::LowestPrice { pools: pools as u32 },
        _ => strategy,
    }
}

/// An instance type that the reader knows.
pub(super) fn known_type(reader: &Reader<'_>, node: &Node<'_>) -> Result<Symbol, InputError> {
    let name = reader.symbol(node, "instanceType")?;
    reader.check_instance_type(name).map_err(|help| {
        let error = reader.error(node.at, format!("unknown instance type `{name}`"));
        error.because("the region has no such type").help(help)
    })?;
    Ok(name)
}

/// Checks that a group's instance types have one architecture, as its image has.
///
/// Source: EKS API reference, `CreateNodegroup`, `amiType`; EC2 Auto Scaling user guide, "Use a different launch template for an instance
/// type", for groups that EKS does not manage.
///
/// # Errors
/// EKS refuses a managed group of several architectures; of another one it is said that its launch template has to have an image for each.
pub fn check_architectures(
    reader: &mut Reader<'_>,
    region: &Region,
    at: Location,
    (types, managed): (&[Symbol], bool),
) -> Result<(), InputError> {
    let known = |name: &Symbol| {
        region.instance_type(*name).map(|instance_type| (instance_type.facts.name, instance_type.facts.arch))
    };
    let all: Vec<(Symbol, Symbol)> = types.iter().filter_map(known).collect();
    let Some(&(first, arch)) = all.first() else { return Ok(()) };
    let Some(&(other, its)) = all.iter().find(|pair| pair.1 != arch) else { return Ok(()) };
    let message = format!("instance types of several architectures: {first} is {arch}, {other} is {its}");
    if managed {
        return Err(reader
            .error(at, message)
            .because("EKS refuses such a managed node group: its image has one architecture")
            .help("make a group for each architecture"));
    }
    let why = format!(
        "{message}; an image has one architecture, so that instances of the others do not start unless the group has a launch template for each"
    );
    reader.warn(&lints::MIXED_ARCHITECTURES, at, why, "", "make a group for each architecture");
    Ok(())
}

/// Checks that AWS accepts a warm pool for a group with this purchase and family of images; the last flag is a custom image of a managed group.
///
/// Source: EC2 Auto Scaling user guide, limitations of warm pools; EKS user guide, warm pools of managed node groups (8cd63e6, 2026).
///
/// # Errors
/// If AWS refuses it.
pub fn check_warm_pool(
    reader: &Reader<'_>,
    at: Location,
    pool: &WarmPool,
    (purchase, family, has_own_image): (InstancesDistribution, AmiFamily, bool),
) -> Result<(), InputError> {
    let is_bottlerocket = family == AmiFamily::Bottlerocket;
    let (what, why, help) = if !purchase.is_on_demand() {
        (
            "a group with Spot instances",
            "EC2 Auto Scaling has no warm pool for Spot instances",
            "use On-Demand, or remove it",
        )
    } else if has_own_image {
        ("a group with a custom image", "EKS has no warm pool for custom images", "remove `ami`, or the warm pool")
    } else if is_bottlerocket && pool.state == WarmPoolState::Hibernated {
        ("hibernated Bottlerocket instances", "Bottlerocket does not hibernate", "write `poolState: Stopped`")
    } else if is_bottlerocket && pool.reuse_on_scale_in {
        (
            "Bottlerocket instances with `reuseOnScaleIn`",
            "Bottlerocket instances are not reused",
            "remove `reuseOnScaleIn`",
        )
    } else {
        return Ok(());
    };
    Err(reader.error(at, format!("a warm pool of {what}")).because(why).help(help))
}

/// Checks that the volume of so many GiB for pods is as large as the snapshot that EKS's image is made from; `sure` says whether the group
/// boots that image.
///
/// Source: amazon-eks-ami pull request 1581 (Amazon Linux 2023) and issue 162 (Amazon Linux 2); EKS user guide, Windows images (2026).
/// Bottlerocket's volume for pods comes from a snapshot of 1 GiB.
///
/// # Errors
/// If EC2 launches no instance with such a volume.
pub fn check_volume(
    reader: &mut Reader<'_>,
    at: Location,
    (gib, family): (i64, AmiFamily),
    sure: bool,
) -> Result<(), InputError> {
    let least = match family {
        AmiFamily::AL2 | AmiFamily::AL2023 => 20,
        family if family.is_windows() => 50,
        _ => return Ok(()),
    };
    if gib >= least {
        return Ok(());
    }
    let message = format!("a volume of {gib} GiB is smaller than the snapshot of EKS's image, {least} GiB");
    let help = format!("write {least} or more");
    if sure && !family.is_windows() {
        return Err(reader.error(at, message).because("EC2 refuses such a volume").help(help));
    }
    let why = format!("{message}: with it EC2 launches no instance");
    reader.warn(&lints::SMALL_VOLUME, at, why, "", &help);
    Ok(())
}

/// Taints of an eksctl node group: a list of them, or in the older form a map of keys to `value:effect` (`:effect` or `effect` without a value).
///
/// Source: eksctl `pkg/apis/eksctl.io/v1alpha5/types.go`, `taintsWrapper.UnmarshalJSON`, and `pkg/utils/taints/taints.go`, `parseTaint`.
pub(super) fn taints<'s>(reader: &mut Reader<'s>, fields: Fields<'_, 's>) -> Result<Vec<Taint>, InputError> {
    let Some(node) = fields.get("taints").filter(|node| matches!(node.kind, NodeKind::Map(_))) else {
        return super::common::taints(reader, fields, "taints");
    };
    let taint = |entry: &Entry<'s>| {
        let text = reader.text(&entry.value, &entry.key)?;
        let (value, effect) = text.split_once(':').unwrap_or(("", text));
        let effect =
            Node { kind: NodeKind::Scalar { text: effect.to_owned().into(), plain: false }, at: entry.value.at };
        Ok(Taint { key: Symbol::new(&entry.key), value: Symbol::new(value), effect: taint_effect(reader, &effect)? })
    };
    node.entries().iter().map(taint).collect()
}

/// Whether `asgSuspendProcesses` of an eksctl node group keeps its Auto Scaling group from moving instances between zones; what else it suspends
/// is warned of where a run would show it.
///
/// Source: eksctl `pkg/apis/eksctl.io/v1alpha5/types.go`, `ASGSuspendProcesses`, which self-managed groups alone have; EC2 Auto Scaling user
/// guide, "Suspend and resume Amazon EC2 Auto Scaling processes".
pub(super) fn suspends_zone_rebalance<'s>(
    reader: &mut Reader<'s>,
    fields: Fields<'_, 's>,
    managed: bool,
) -> Result<bool, InputError> {
    /// Processes that no simulated group has.
    const ABSENT: [&str; 4] = ["AddToLoadBalancer", "AlarmNotification", "InstanceRefresh", "ScheduledActions"];
    let Some(node) = fields.get("asgSuspendProcesses") else { return Ok(false) };
    if managed {
        let help = "move the group to `nodeGroups`, or remove it";
        reader.warn(
            &lints::SUSPENDED_PROCESSES_MANAGED,
            node.at,
            "a managed node group has no `asgSuspendProcesses` in eksctl",
            "ignored",
            help,
        );
        return Ok(false);
    }
    let mut suspended = false;
    for item in reader.list(node, "asgSuspendProcesses")? {
        match reader.text(item, "asgSuspendProcesses")? {
            "AZRebalance" => suspended = true,
            process if ABSENT.contains(&process) => {}
            process => {
                let shown: String = process.chars().take(80).collect();
                let message = format!(
                    "suspended process `{shown}` still runs in the simulation; only `AZRebalance` can be suspended"
                );
                reader.left_out(&lints::SUSPENDED_PROCESS, item.at, message, "");
            }
        }
    }
    Ok(suspended)
}

/// The labels that EKS itself puts on the nodes of a managed group.
pub fn managed_labels(name: Symbol, distribution: &InstancesDistribution, labels: &mut Labels) {
    let bought = Symbol::new(if distribution.is_spot() { "SPOT" } else { "ON_DEMAND" });
    labels.set(well_known::EKS_CAPACITY_TYPE, bought);
    labels.set(well_known::EKS_NODEGROUP, name);
}

/// The tags by which Cluster Autoscaler finds a managed group's Auto Scaling group.
pub fn managed_tags(cluster: Option<Symbol>, tags: &mut Labels) {
    tags.set(Symbol::new("k8s.io/cluster-autoscaler/enabled"), well_known::TRUE);
    if let Some(cluster) = cluster {
        tags.set(Symbol::new(&format!("k8s.io/cluster-autoscaler/{cluster}")), Symbol::new("owned"));
    }
}

/// Tags that tell Cluster Autoscaler the labels and taints of nodes that do not exist yet.
pub fn propagate(node_labels: &Labels, node_taints: &[Taint], tags: &mut Labels) {
    const PREFIX: &str = "k8s.io/cluster-autoscaler/node-template";
    for (key, value) in node_labels.iter() {
        tags.set(Symbol::new(&format!("{PREFIX}/label/{key}")), value);
    }
    for taint in node_taints {
        let value = format!("{}:{}", taint.value, taint.effect.as_str());
        tags.set(Symbol::new(&format!("{PREFIX}/taint/{}", taint.key)), Symbol::new(&value));
    }
}

/// Smallest, desired and largest size; what is left out follows from what is given, two nodes if nothing is.
pub fn sizes(
    reader: &Reader<'_>,
    fields: Fields<'_, '_>,
    least: Option<u32>,
    desired: Option<u32>,
    most: Option<u32>,
) -> Result<(u32, u32, u32), InputError> {
    let desired = desired.or(least).unwrap_or_else(|| most.map_or(2, |most| most.min(2)));
    let least = least.unwrap_or(desired);
    let most = most.unwrap_or(desired.max(least));
    if least > desired || desired > most {
        return Err(reader
            .error(fields.at, format!("inconsistent sizes: min {least}, max {most}, desired {desired}"))
            .because("of this group")
            .help("keep minSize <= desiredCapacity <= maxSize"));
    }
    Ok((least, desired, most))
}

#[cfg(test)]
mod tests {
    use crate::{Manifests, read_manifests};
    use nodecast_model::domain::node_group::SpotStrategy;
    use nodecast_model::domain::node_pool::AmiFamily;
    use nodecast_model::text::{InputError, Source};

    fn groups(kind: &str, rest: &str) -> Result<Manifests, InputError> {
        let text = format!(
            "apiVersion: eksctl.io/v1alpha5\nkind: ClusterConfig\nmetadata: {{name: c, region: us-east-1}}\n\
             {kind}:\n- {{name: a, instanceType: m5.large, {rest}}}\n"
        );
        read_manifests(&Source::new("cluster.yaml", text))
    }

    #[test]
    fn eksctl_taints_can_be_a_map() {
        for kind in ["nodeGroups", "managedNodeGroups"] {
            let map = "taints: {special: \"true:NoSchedule\", bare: \":NoExecute\", short: PreferNoSchedule}";
            let list = "taints: [{key: special, value: \"true\", effect: NoSchedule}, {key: bare, effect: NoExecute}, \
                        {key: short, effect: PreferNoSchedule}]";
            let [map, list] = [map, list].map(|taints| groups(kind, taints).unwrap());
            assert_eq!(map.node_groups[0].taints.len(), 3);
            assert_eq!(map.node_groups, list.node_groups, "{kind}");
        }
        let error = groups("nodeGroups", "taints: {special: \"true:Sometimes\"}").unwrap_err();
        assert!(error.message().contains("`Sometimes`") && error.place().is_some(), "{error:?}");
    }

    #[test]
    fn self_managed_group_can_suspend_zone_rebalancing() {
        let read = |kind: &str, processes: &str| {
            let read = groups(kind, &format!("asgSuspendProcesses: [{processes}]")).unwrap();
            (read.node_groups[0].zone_rebalance, read.warnings.len())
        };
        assert_eq!(read("nodeGroups", "AZRebalance"), (false, 0));
        assert_eq!(read("nodeGroups", "ScheduledActions"), (true, 0));
        assert_eq!(read("nodeGroups", "AZRebalance, Launch"), (false, 1));
        assert_eq!(read("managedNodeGroups", "AZRebalance"), (true, 1));
    }

    #[test]
    fn managed_spot_groups_prefer_price_since_128() {
        let strategy = |version: &str| {
            let text = format!(
                "apiVersion: eksctl.io/v1alpha5\nkind: ClusterConfig\nmetadata: {{name: c, region: us-east-1, version: \"{version}\"}}\n\
                 managedNodeGroups: [{{name: a, instanceTypes: [m5.large, m5a.large], spot: true}}]\n"
            );
            read_manifests(&Source::new("cluster.yaml", text)).unwrap().node_groups[0].distribution.spot_strategy
        };
        assert_eq!(strategy("1.27"), SpotStrategy::CapacityOptimized);
        assert_eq!(strategy("1.28"), SpotStrategy::PriceCapacityOptimized);
    }

    #[test]
    fn repair_override_sets_wait_or_prevents_repair() {
        let wait = |over: &str| {
            let rest = format!(
                "nodeRepairConfig: {{enabled: true, nodeRepairConfigOverrides: [{{nodeMonitoringCondition: Ready, {over}}}]}}"
            );
            let read = groups("managedNodeGroups", &rest).unwrap();
            read.node_groups[0].repair.as_ref().and_then(|repair| repair.wait).map(|wait| wait.as_secs())
        };
        assert_eq!(wait("minRepairWaitTimeMins: 12, repairAction: Replace"), Some(720));
        assert_eq!(wait("repairAction: Replace"), Some(1_800));
        assert_eq!(wait("minRepairWaitTimeMins: 12, repairAction: NoAction"), None);
    }

    #[test]
    fn windows_of_2025_is_known() {
        let read = groups("nodeGroups", "amiFamily: WindowsServer2025FullContainer").unwrap();
        assert_eq!(read.node_groups[0].ami_family, AmiFamily::Windows2025);
    }
}
