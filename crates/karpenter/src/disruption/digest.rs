//! The pods of a node as far as the methods ask for them before they ask the packer.

use std::fmt;
use std::sync::Arc;

use super::cost::pod_cost;
use super::pods::PodView;
use crate::packing::QueuedPods;
use nodecast_model::domain::{PodSpec, well_known};

/// The pods of a node, which may be listed only when they are first asked for.
pub trait PodList: fmt::Debug {
    /// The pods. Their names may be left out, but for those with volumes: see [`PodList::name`].
    fn pods(&self) -> &[PodView<'_>];

    /// The name of the pod at a position.
    fn name(&self, position: usize) -> &str;

    /// Those at some positions as the packer's queue has them.
    fn queued(&self, positions: &[usize]) -> Arc<QueuedPods>;
}

impl PodList for Vec<PodView<'_>> {
    fn pods(&self) -> &[PodView<'_>] {
        self
    }

    fn name(&self, position: usize) -> &str {
        self[position].name
    }

    fn queued(&self, positions: &[usize]) -> Arc<QueuedPods> {
        let with_size = |&position: &usize| {
            let pod = &self[position];
            (pod.as_pending(), || pod.spec.requests())
        };
        Arc::new(QueuedPods::from_pods(positions.iter().map(with_size)))
    }
}

/// What the pods of a node come to: the same as long as the pods stay as they are, whatever the time.
#[derive(Clone, PartialEq, Debug)]
pub struct EvictionCost {
    /// The cost of moving all of them.
    pub(super) cost: f64,
    /// 1, and the cost of moving each that would have to go elsewhere, as far as it is above zero.
    pub(super) rescheduling: f64,
    /// Positions of those that would have to go elsewhere.
    pub(super) reschedulable: Arc<[usize]>,
    /// Whether one carries `karpenter.sh/do-not-disrupt`, with whatever value.
    pub(super) protected: bool,
}

/// What no costs sum up to, as [`Iterator::sum`] has it.
const SUM_OF_NONE: f64 = -0.0;

impl EvictionCost {
    /// Whether one of the pods has the annotation `karpenter.sh/do-not-disrupt`, with any value.
    pub const fn is_protected(&self) -> bool {
        self.protected
    }

    /// What the pods come to.
    pub fn from_pods(pods: &[PodView<'_>]) -> Self {
        Self::sum(pods.iter().map(|pod| (&**pod.spec, pod.is_reschedulable())))
    }

    /// The same from the specification of each, and whether it would have to go elsewhere.
    pub fn sum<'s>(pods: impl IntoIterator<Item = (&'s PodSpec, bool)>) -> Self {
        Self::counting(pods, true)
    }

    /// The same of all pods or, as up to v0.33, of those alone that would have to go elsewhere.
    pub fn counting<'s>(pods: impl IntoIterator<Item = (&'s PodSpec, bool)>, all: bool) -> Self {
        let pods = pods.into_iter();
        let mut reschedulable = Vec::with_capacity(pods.size_hint().1.unwrap_or(0));
        let (mut cost, mut moved) = (SUM_OF_NONE, SUM_OF_NONE);
        let mut protected = false;
        for (position, (spec, goes_elsewhere)) in pods.enumerate() {
            let pod_cost = pod_cost(spec);
            if all || goes_elsewhere {
                cost += pod_cost;
            }
            if goes_elsewhere {
                moved += pod_cost.max(0.0);
                reschedulable.push(position);
            }
            let annotated = || spec.annotations.get(well_known::DO_NOT_DISRUPT).is_some();
            protected |= (all || goes_elsewhere) && annotated();
        }
        let (rescheduling, reschedulable) = (1.0 + moved, reschedulable.into());
        Self { cost, rescheduling, reschedulable, protected }
    }
}
