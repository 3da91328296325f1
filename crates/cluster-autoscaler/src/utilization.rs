//! How much of a node is asked for.
//!
//! Source: Cluster Autoscaler 1.36 `simulator/utilization/info.go`.
//!
//! Deviation: dynamic resource claims do not count in the utilisation of a node.

use std::sync::LazyLock;

use super::drainability::is_long_terminating;
use super::quotas::GPU_LABEL;
use super::view::{PodTraits, PodView};
use nodecast_model::domain::{Labels, ResourceName, Resources, SimTime, Symbol};

/// Shares of a node's allocatable resources.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Utilization {
    /// The resource that decides.
    pub resource: ResourceName,
    /// Its share.
    pub share: f64,
    /// CPU, where it counts.
    pub cpu: Option<f64>,
    /// Memory, where it counts.
    pub memory: Option<f64>,
}

/// A pod on the node.
#[derive(Clone, Copy, Debug)]
pub struct PodOnNode<'a> {
    /// What it shares with others.
    pub traits: &'a PodTraits,
    /// What it requests, which follows from its specification: whoever asks about thousands of pods works it out once for all of a kind.
    pub requests: &'a Resources,
    /// Itself, if it is a real one.
    pub view: Option<&'a PodView>,
}

/// Which pods leave the calculation, together with the room that they take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LeftOut {
    /// Pods of DaemonSets.
    pub daemons: bool,
    /// Mirror pods.
    pub mirrors: bool,
}

/// Whether a node has the label that the AWS provider takes for that of GPUs. EKS does not set it.
pub fn has_gpu_label(labels: &Labels) -> bool {
    // Asked about every node of every iteration.
    static LABEL: LazyLock<Symbol> = LazyLock::new(|| Symbol::new(GPU_LABEL));
    labels.get(*LABEL).is_some()
}

/// Whether a node is judged by its GPUs: it has their label, or offers some of NVIDIA.
///
/// Source: Cluster Autoscaler 1.36 `utils/gpu/gpu.go`, `NodeHasGpu`, which `GetNodeGpuConfig` of the AWS provider asks.
pub fn has_gpu(labels: &Labels, allocatable: &Resources) -> bool {
    has_gpu_label(labels) || allocatable.get(ResourceName::NVIDIA_GPU) > 0
}

/// What the pods of a node request of a resource.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Requested {
    /// By the pods that count.
    pub counted: i64,
    /// By those that leave the calculation.
    pub left_out: i64,
}

impl Requested {
    /// The sums over all pods of a node.
    pub fn by_pods<'a>(
        resource: ResourceName,
        pods: impl Iterator<Item = PodOnNode<'a>>,
        left_out: LeftOut,
        now: SimTime,
    ) -> Self {
        let mut sums = Self::default();
        for PodOnNode { traits, requests, view } in pods {
            if (left_out.daemons && traits.is_daemon()) || (left_out.mirrors && traits.is_mirror()) {
                sums.left_out += requests.get(resource);
            } else if !view.is_some_and(|pod| is_long_terminating(pod, now)) {
                sums.counted += requests.get(resource);
            }
        }
        sums
    }
}

/// A node's utilisation; `None` if its allocatable resources do not allow one to be worked out.
pub fn utilization(
    labels: &Labels,
    allocatable: &Resources,
    requested: impl Fn(ResourceName) -> Requested,
) -> Option<Utilization> {
    let share = |resource| {
        let offered = allocatable.find(resource).filter(|&amount| amount != 0)?;
        let Requested { counted, left_out } = requested(resource);
        Some(counted as f64 / (offered - left_out) as f64)
    };
    if has_gpu(labels, allocatable) {
        let gpu = ResourceName::NVIDIA_GPU;
        // A GPU that is not ready is not used.
        let share = if allocatable.get(gpu) == 0 { 0.0 } else { share(gpu)? };
        return Some(Utilization { resource: gpu, share, cpu: None, memory: None });
    }
    let (cpu, memory) = (share(ResourceName::CPU)?, share(ResourceName::MEMORY)?);
    let (resource, share) = if cpu > memory { (ResourceName::CPU, cpu) } else { (ResourceName::MEMORY, memory) };
    Some(Utilization { resource, share, cpu: Some(cpu), memory: Some(memory) })
}
