//! The pods of a node as far as the methods ask for them before they ask the packer.

use std::fmt;
use std::sync::Arc;

use super::cost::{pod_cost, sum};
use super::pods::PodView;
use crate::domain::well_known;
use crate::policy::packing::QueuedPods;

/// The pods of a node, which may be listed only when they are first asked for.
pub trait PodList: fmt::Debug {
    /// The pods.
    fn pods(&self) -> &[PodView<'_>];

    /// Those at some positions as the packer's queue has them.
    fn queued(&self, positions: &[usize]) -> Arc<QueuedPods>;
}

impl PodList for Vec<PodView<'_>> {
    fn pods(&self) -> &[PodView<'_>] {
        self
    }

    fn queued(&self, positions: &[usize]) -> Arc<QueuedPods> {
        let with_size = |&position: &usize| {
            let pod = &self[position];
            (pod.as_pending(), || pod.spec.requests())
        };
        Arc::new(QueuedPods::of(positions.iter().map(with_size)))
    }
}

/// What the pods of a node come to: the same as long as the pods stay as they are, whatever the time.
#[derive(Clone, PartialEq, Debug)]
pub struct PodsDigest {
    /// The cost of moving all of them.
    pub(super) cost: f64,
    /// 1, and the cost of moving each that would have to go elsewhere, as far as it is above zero.
    pub(super) rescheduling: f64,
    /// Positions of those that would have to go elsewhere.
    pub(super) reschedulable: Arc<[usize]>,
    /// Whether one carries `karpenter.sh/do-not-disrupt`, with whatever value.
    pub(super) protected: bool,
    /// Whether one is protected for a time only.
    pub(super) protected_for_a_time: bool,
}

impl PodsDigest {
    /// What the pods come to.
    pub fn of(pods: &[PodView<'_>]) -> Self {
        let reschedulable: Arc<[usize]> = (0..pods.len()).filter(|&pod| pods[pod].is_reschedulable()).collect();
        let protections = || pods.iter().filter_map(|pod| pod.spec.annotations.get(well_known::DO_NOT_DISRUPT));
        Self {
            cost: sum(pods.iter()),
            rescheduling: rescheduling_cost(pods),
            reschedulable,
            protected: protections().next().is_some(),
            protected_for_a_time: protections().any(|value| value != well_known::TRUE),
        }
    }

    /// Whether one of the pods is protected by an annotation that time makes void.
    pub fn is_protected_for_a_time(&self) -> bool {
        self.protected_for_a_time
    }
}

fn rescheduling_cost(pods: &[PodView<'_>]) -> f64 {
    let moved = pods.iter().filter(|pod| pod.is_reschedulable());
    1.0 + moved.map(|pod| pod_cost(pod.spec).max(0.0)).sum::<f64>()
}
