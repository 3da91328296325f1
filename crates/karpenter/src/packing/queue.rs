//! The queue of a pass: in which order pods are placed.
//!
//! Source: Karpenter core v1.13 `pkg/controllers/provisioning/scheduling/queue.go`.

use std::borrow::Borrow;
use std::sync::Arc;

use super::classes::Classes;
use super::hints::Hints;
use super::input::PendingPod;
use nodecast_model::domain::{PodSpec, Resources, SimTime, Symbol};

/// Where a pod stands in the queue: most CPU first, then most memory, then the oldest (in whole seconds), then by UID.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct QueuePlace(i64, i64, i64, u64);

impl QueuePlace {
    /// That of a pod that requests so much CPU, in thousandths, and memory, in bytes.
    fn new((cpu, memory): (i64, i64), created: SimTime, uid_rank: u64) -> Self {
        Self(-cpu, -memory, created.as_micros() / 1_000_000, uid_rank)
    }
}

/// That of a pod of a pass.
pub(super) fn place_in_queue(pods: &[PendingPod<'_>], classes: &Classes, pod: usize) -> QueuePlace {
    let size = classes.list[classes.of_pod[pod]].shape.size;
    QueuePlace::new(size, pods[pod].created, pods[pod].uid_rank)
}

/// The pods in the order of the queue.
pub(super) fn sorted(pods: &[PendingPod<'_>], classes: &Classes) -> Vec<usize> {
    let mut order: Vec<usize> = (0..pods.len()).collect();
    order.sort_by_cached_key(|&pod| place_in_queue(pods, classes, pod));
    order
}

/// Pods in the order of the queue with no more than that takes: for [`Packer::foresee`](super::Packer::foresee).
#[derive(Debug, Default)]
pub struct QueuedPods {
    /// Their namespaces and specifications.
    pub(super) classes: Vec<(Symbol, Arc<PodSpec>)>,
    /// The place of each, and its position in `classes`.
    pub(super) pods: Vec<(QueuePlace, usize)>,
}

impl QueuedPods {
    /// These pods, each with what it requests, which is only asked for the first of many with one specification.
    pub fn from_pods<'p, R: Borrow<Resources>>(
        pods: impl ExactSizeIterator<Item = (PendingPod<'p>, impl FnOnce() -> R)>,
    ) -> Self {
        let mut queued = Self { pods: Vec::with_capacity(pods.len()), ..Self::default() };
        let (mut places, mut sizes) = (Hints::default(), Vec::new());
        for (pod, requests) in pods {
            let same =
                |(namespace, spec): &(Symbol, Arc<PodSpec>)| *namespace == pod.namespace && Arc::ptr_eq(spec, pod.spec);
            let address = Arc::as_ptr(pod.spec);
            let class = places.find(address, &queued.classes, same).unwrap_or_else(|| {
                let requests = requests();
                let requests: &Resources = requests.borrow();
                sizes.push((requests.cpu_milli(), requests.memory_bytes()));
                queued.classes.push((pod.namespace, Arc::clone(pod.spec)));
                places.note(address, queued.classes.len() - 1);
                queued.classes.len() - 1
            });
            queued.pods.push((QueuePlace::new(sizes[class], pod.created, pod.uid_rank), class));
        }
        queued.pods.sort_by_key(|&(place, _)| place);
        queued
    }
}
