//! What the AWS provider makes of an Auto Scaling group: the template of an empty one, options in its tags, placeholders for
//! instances that are missing, and which calls change its size.
//!
//! Source: Cluster Autoscaler 1.36 `cloudprovider/aws/aws_manager.go`, `auto_scaling_groups.go`, `aws_cloud_provider.go`,
//! `managed_nodegroup_cache.go`.

use std::sync::Arc;

use super::templates::kube_proxy;
use super::view::{GroupOptions, NodeTemplate, ResizeError};
use nodecast_model::domain::durations::duration;
use nodecast_model::domain::quantity::Quantity;
use nodecast_model::domain::symbol::well_known;
use nodecast_model::domain::{Labels, ResourceName, Resources, SimTime, Symbol, Taint, TaintEffect};

const LABEL_TAG: &str = "k8s.io/cluster-autoscaler/node-template/label/";
const TAINT_TAG: &str = "k8s.io/cluster-autoscaler/node-template/taint/";
const RESOURCE_TAG: &str = "k8s.io/cluster-autoscaler/node-template/resources/";
const OPTION_TAG: &str = "k8s.io/cluster-autoscaler/node-template/autoscaling-options/";
/// Pods that a template without a tag for them allows, whatever the type.
const TEMPLATE_PODS: i64 = 110;

/// The instance type that stands for a group: the only one, the first override, or with attributes the first type that EC2
/// names, its CPU and memory replaced by what the attributes ask for at least.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TemplateType {
    /// Its name.
    pub name: Symbol,
    /// `amd64` or `arm64`.
    pub arch: Symbol,
    /// vCPUs.
    pub vcpus: i64,
    /// Nominal memory in MiB.
    pub memory_mib: i64,
    /// GPUs.
    pub gpus: i64,
}

/// What EKS knows of a managed node group.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ManagedGroup {
    /// Its name.
    pub name: String,
    /// Labels that it sets.
    pub labels: Labels,
    /// Taints that it sets.
    pub taints: Vec<Taint>,
    /// `ON_DEMAND` or `SPOT`.
    pub capacity_type: String,
    /// For example `AL2023_x86_64_STANDARD`.
    pub ami_type: String,
    /// Kubernetes' version.
    pub version: String,
    /// Disk in GiB.
    pub disk_size: Option<i64>,
    /// Its tags.
    pub tags: Vec<(String, String)>,
}

/// What is known of a group without nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroupDescription<'a> {
    /// The type that stands for it.
    pub instance_type: &'a TemplateType,
    /// Region.
    pub region: Symbol,
    /// Its first zone, which stands for all.
    pub zone: Symbol,
    /// Tags of the Auto Scaling group.
    pub tags: &'a [(String, String)],
    /// The managed node group behind it, if there is one.
    pub managed: Option<&'a ManagedGroup>,
}

/// The template of a group that has no node to go by.
pub fn template(group: &GroupDescription<'_>) -> NodeTemplate {
    let instance_type = group.instance_type;
    let mut capacity = Resources::cpu_memory(instance_type.vcpus * 1_000, instance_type.memory_mib << 20)
        .with(ResourceName::PODS, TEMPLATE_PODS)
        .with(ResourceName::NVIDIA_GPU, instance_type.gpus);
    set_resources(&mut capacity, group.tags);
    let mut labels = Labels::new()
        .with(well_known::ARCH, instance_type.arch)
        .with(well_known::OS, well_known::LINUX)
        .with(well_known::INSTANCE_TYPE, instance_type.name)
        .with(well_known::REGION, group.region)
        .with(well_known::ZONE, group.zone)
        .with("topology.ebs.csi.aws.com/zone", group.zone);
    for (key, value) in group.tags {
        if let Some(label) = key.strip_prefix(LABEL_TAG).filter(|label| !label.is_empty()) {
            labels.set(Symbol::new(label), Symbol::new(value));
        } else if let Some(label) = key.strip_prefix("eks:").filter(|label| !label.is_empty()) {
            labels.set(Symbol::new(label), Symbol::new(value));
        }
    }
    let mut taints = taints(group.tags);
    if let Some(managed) = group.managed {
        labels.extend(&managed_labels(managed));
        taints.extend(&managed.taints);
        set_resources(&mut capacity, &managed.tags);
    }
    let pods = vec![kube_proxy()];
    NodeTemplate { labels, taints, unschedulable: false, allocatable: capacity.clone(), capacity, pods }
}

fn managed_labels(managed: &ManagedGroup) -> Labels {
    let mut labels = managed.labels.clone();
    if let Some(size) = managed.disk_size {
        labels.set(Symbol::new("diskSize"), Symbol::new(&size.to_string()));
    }
    let stated = [
        ("amiType", &managed.ami_type),
        ("k8sVersion", &managed.version),
        (well_known::EKS_CAPACITY_TYPE.as_str(), &managed.capacity_type),
        (well_known::EKS_NODEGROUP.as_str(), &managed.name),
    ];
    for (key, value) in stated.into_iter().filter(|(_, value)| !value.is_empty()) {
        labels.set(Symbol::new(key), Symbol::new(value));
    }
    labels
}

/// Takes over amounts that tags state; what is not a quantity is left out.
fn set_resources(resources: &mut Resources, tags: &[(String, String)]) {
    for (key, value) in tags {
        let Some(name) = key.strip_prefix(RESOURCE_TAG).filter(|name| !name.is_empty()) else { continue };
        if let Ok(quantity) = value.parse::<Quantity>() {
            let name = ResourceName(Symbol::new(name));
            resources.set(name, name.amount(quantity));
        }
    }
}

/// Extended resources that tags of a group promise of its nodes: whoever states them runs what provides them.
///
/// Source: Cluster Autoscaler 1.36 `cloudprovider/aws/aws_manager.go`, `extractAllocatableResourcesFromAsg`; Kubernetes 1.36
/// `pkg/apis/core/v1/helper/helpers.go`, `IsExtendedResourceName`, for which resources are such.
pub fn promised_devices(tags: &Labels) -> Resources {
    let all: Vec<(String, String)> = tags.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    let mut stated = Resources::new();
    set_resources(&mut stated, &all);
    let is_extended = |name: ResourceName| {
        let domain = name.0.as_str().split_once('/').map(|(domain, _)| domain);
        domain.is_some_and(|domain| domain != "kubernetes.io" && !domain.ends_with(".kubernetes.io"))
    };
    stated.iter().filter(|&(name, amount)| amount > 0 && is_extended(name)).collect()
}

/// Taints that tags state as `value:effect`; others are left out.
fn taints(tags: &[(String, String)]) -> Vec<Taint> {
    let taint = |(key, value): &(String, String)| {
        let key = key.strip_prefix(TAINT_TAG).filter(|key| !key.is_empty())?;
        let (value, effect) = value.split_once(':')?;
        let effect = TaintEffect::named(effect)?;
        Some(Taint { key: Symbol::new(key), value: Symbol::new(value), effect })
    };
    tags.iter().filter_map(taint).collect()
}

/// Options that tags state, over the flags. A value that cannot be read is as if it were not there.
pub fn options(tags: &[(String, String)]) -> GroupOptions {
    let find = |name: &str| {
        let matches = |(key, _): &&(String, String)| key.strip_prefix(OPTION_TAG) == Some(name);
        tags.iter().find(matches).map(|(_, value)| value.as_str())
    };
    let number = |name| find(name).and_then(|text| text.parse::<f64>().ok());
    let span = |name| find(name).and_then(|text| duration(text).ok());
    GroupOptions {
        utilization_threshold: number("scaledownutilizationthreshold"),
        gpu_utilization_threshold: number("scaledowngpuutilizationthreshold"),
        unneeded_time: span("scaledownunneededtime"),
        unready_time: span("scaledownunreadytime"),
        ignore_daemonsets_utilization: find("ignoredaemonsetsutilization").and_then(|text| text.parse().ok()),
    }
}

/// A scaling activity of a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Activity {
    /// When it began.
    pub began: SimTime,
    /// Whether it failed.
    pub failed: bool,
}

/// The id of the placeholder for the `index`-th instance of a group.
pub fn placeholder_id(group: &str, index: i64) -> Arc<str> {
    Arc::from(format!("i-placeholder-{group}-{index}"))
}

/// Whether an id is that of a placeholder.
pub fn is_placeholder(id: &str) -> bool {
    id.starts_with("i-placeholder-")
}

/// Whether the instances that a group lacks will not come: some activity since the last change of its size failed.
/// `activities` are the group's, newest first; `None` if they could not be read, which counts as no failure, like a group
/// whose size the autoscaler has never changed.
pub fn cannot_be_fulfilled(activities: Option<&[Activity]>, last_resize: Option<SimTime>) -> bool {
    let (Some(activities), Some(last_resize)) = (activities, last_resize) else { return false };
    activities.iter().take_while(|activity| activity.began >= last_resize).any(|activity| activity.failed)
}

/// The desired capacity after an increase.
///
/// # Errors
/// The increase is not positive, or goes beyond the maximum.
pub fn increased(desired: i64, max: i64, by: i64) -> Result<i64, ResizeError> {
    if by <= 0 {
        return Err(ResizeError("size increase must be positive".to_owned()));
    }
    if desired + by > max {
        return Err(ResizeError(format!("size increase too large - desired:{} max:{max}", desired + by)));
    }
    Ok(desired + by)
}

/// The desired capacity after a decrease that deletes nothing. Placeholders count among `instances`.
///
/// # Errors
/// Instances would have to go.
pub fn decreased(desired: i64, instances: i64, by: i64) -> Result<i64, ResizeError> {
    if desired - by < instances {
        return Err(ResizeError(format!(
            "attempt to delete existing nodes targetSize:{desired} delta:-{by} existingNodes: {instances}"
        )));
    }
    Ok(desired - by)
}

/// An instance to delete.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DoomedInstance {
    /// Its id.
    pub id: Arc<str>,
    /// Whether it is terminating already, or gone.
    pub terminating: bool,
}

/// Calls that delete instances of a group.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DeleteCalls {
    /// SetDesiredCapacity, to drop placeholders.
    pub set_desired: Option<i64>,
    /// TerminateInstanceInAutoScalingGroup, each lowering the desired capacity.
    pub terminate: Vec<Arc<str>>,
}

/// The calls that delete `doomed`. `listed` is how many instances the group has right now.
///
/// # Errors
/// The group is at its minimum as far as the autoscaler knows.
pub fn delete_calls(
    desired: i64,
    min: i64,
    listed: i64,
    doomed: &[DoomedInstance],
) -> Result<DeleteCalls, ResizeError> {
    if desired <= min {
        return Err(ResizeError("min size reached, nodes will not be deleted".to_owned()));
    }
    let placeholders = doomed.iter().any(|instance| is_placeholder(&instance.id));
    let real = doomed.iter().filter(|instance| !is_placeholder(&instance.id) && !instance.terminating);
    Ok(DeleteCalls {
        set_desired: placeholders.then_some(listed),
        terminate: real.map(|instance| Arc::clone(&instance.id)).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::promised_devices;
    use nodecast_model::domain::{Labels, ResourceName, Resources, Symbol};

    #[test]
    fn template_tags_add_devices_but_not_memory() {
        let tag = |name: &str| format!("k8s.io/cluster-autoscaler/node-template/resources/{name}");
        let stated = [
            ("smarter-devices/fuse", "2"),
            ("nvidia.com/gpu", "4"),
            ("example.com/none", "0"),
            ("example.com/odd", "many"),
            ("memory", "64Gi"),
            ("ephemeral-storage", "100Gi"),
            ("hugepages-2Mi", "1Gi"),
        ];
        let tags: Labels = stated.iter().fold(Labels::new(), |tags, (name, value)| tags.with(&*tag(name), *value));
        let wanted = Resources::new()
            .with(ResourceName(Symbol::new("smarter-devices/fuse")), 2)
            .with(ResourceName::NVIDIA_GPU, 4);
        assert_eq!(promised_devices(&tags), wanted);
    }
}
