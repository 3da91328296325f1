//! How much a pod wants a change.
//!
//! Source: Vertical Pod Autoscaler 1.7 `pkg/updater/priority/priority_processor.go`.

use super::super::capping::{Capped, ContainerState};
use super::PodToUpdate;
use nodecast_model::domain::ResourceName;

/// How much a pod wants a change.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Priority {
    /// A container requests less than the lower bound, more than the upper bound, or nothing.
    pub outside_range: bool,
    /// A container is to request more.
    pub scale_up: bool,
    /// The change of CPU and that of memory, each as a part of what all containers request, added up.
    pub change: f64,
    /// Whether there is any change.
    pub changes: bool,
}

/// How much a pod wants what is recommended for it.
pub fn priority(capped: &Capped, pod: &PodToUpdate) -> Priority {
    let mut result = Priority::default();
    let containers: Vec<&ContainerState> =
        pod.containers.iter().filter(|container| pod.observes(container.name)).collect();
    for name in [ResourceName::CPU, ResourceName::MEMORY] {
        let (mut requested, mut recommended, mut counts) = (0_i64, 0_i64, false);
        for container in &containers {
            let Some(this_container) = capped.container(container.name) else { continue };
            let Some(target) = this_container.target.find(name) else { continue };
            counts = true;
            recommended = recommended.saturating_add(in_thousandths(name, target));
            let Some(request) = container.requests.find(name) else {
                (result.scale_up, result.outside_range) = (true, true);
                continue;
            };
            requested = requested.saturating_add(in_thousandths(name, request));
            result.scale_up |= target > request;
            let too_small = this_container.lower_bound.find(name).is_some_and(|lower| request < lower);
            let too_large = this_container.upper_bound.find(name).is_some_and(|upper| request > upper);
            result.outside_range |= too_small || too_large;
        }
        if counts {
            let requested = requested.max(1);
            let difference = requested as f64 - recommended as f64;
            result.change += difference.abs() / requested as f64;
            result.changes |= requested != recommended;
        }
    }
    result
}

fn in_thousandths(name: ResourceName, amount: i64) -> i64 {
    if name == ResourceName::CPU { amount } else { amount.saturating_mul(1_000) }
}
