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

/// A node's utilisation; `None` if its allocatable resources do not allow one to be worked out.
pub fn utilization<'a>(
    labels: &Labels,
    allocatable: &Resources,
    pods: impl Iterator<Item = PodOnNode<'a>>,
    left_out: LeftOut,
    now: SimTime,
) -> Option<Utilization> {
    if has_gpu(labels, allocatable) {
        let gpu = ResourceName::NVIDIA_GPU;
        // A GPU that is not ready is not used.
        let share = match allocatable.get(gpu) {
            0 => 0.0,
            _ => shares([gpu], allocatable, pods, left_out, now)?[0],
        };
        return Some(Utilization { resource: gpu, share, cpu: None, memory: None });
    }
    let [cpu, memory] = shares([ResourceName::CPU, ResourceName::MEMORY], allocatable, pods, left_out, now)?;
    let (resource, share) = if cpu > memory { (ResourceName::CPU, cpu) } else { (ResourceName::MEMORY, memory) };
    Some(Utilization { resource, share, cpu: Some(cpu), memory: Some(memory) })
}

/// The share of each of these resources that the pods request.
fn shares<'a, const N: usize>(
    resources: [ResourceName; N],
    allocatable: &Resources,
    pods: impl Iterator<Item = PodOnNode<'a>>,
    left_out: LeftOut,
    now: SimTime,
) -> Option<[f64; N]> {
    let mut offered = [0; N];
    for (offered, &resource) in offered.iter_mut().zip(&resources) {
        *offered = allocatable.find(resource).filter(|&amount| amount != 0)?;
    }
    let (mut requested, mut excluded) = ([0; N], [0; N]);
    for PodOnNode { traits, requests, view } in pods {
        let sums = if (left_out.daemons && traits.is_daemon()) || (left_out.mirrors && traits.is_mirror()) {
            &mut excluded
        } else if view.is_some_and(|pod| is_long_terminating(pod, now)) {
            continue;
        } else {
            &mut requested
        };
        for (sum, &resource) in sums.iter_mut().zip(&resources) {
            *sum += requests.get(resource);
        }
    }
    Some(std::array::from_fn(|at| requested[at] as f64 / (offered[at] - excluded[at]) as f64))
}
