//! Whether a pod is to change now.
//!
//! Source: Vertical Pod Autoscaler 1.7 `pkg/updater/priority`: `update_priority_calculator.go`,
//! `scaling_direction_pod_eviction_admission.go`.

use super::super::capping::Capped;
use super::{PodToUpdate, Priority, UpdaterSettings, UpdaterView, Verdict};
use nodecast_model::domain::vertical::{ChangeRequirement, ContainerRecommendation, EvictionRequirement};
use nodecast_model::domain::{ResourceName, Resources};

/// Why a pod that may be changed is not to change; `None` if it is.
pub(super) fn refusal(
    settings: &UpdaterSettings,
    view: &UpdaterView<'_>,
    pod: &PodToUpdate,
    (capped, priority): (&Capped, &Priority),
) -> Option<Verdict> {
    let quick_oom = is_quick_oom(settings, view, pod);
    if !priority.outside_range && !quick_oom {
        let old = pod.started.is_some_and(|started| view.now >= started + settings.lifetime_threshold);
        if !old {
            return Some(Verdict::YoungInRange);
        }
        if priority.change < settings.update_threshold {
            return Some(Verdict::ChangeTooSmall);
        }
    }
    if quick_oom && !priority.changes {
        return Some(Verdict::OomWithoutChange);
    }
    let requirements = &view.vpa.update.eviction_requirements;
    let met = requirements.is_empty()
        || pod.containers.iter().any(|container| {
            let Some(this_container) = capped.container(container.name) else { return false };
            let states = |name| container.requests.find(name).is_some();
            let states_all = states(ResourceName::CPU) && states(ResourceName::MEMORY);
            !states_all
                || requirements.iter().all(|requirement| is_met(requirement, this_container, &container.requests))
        });
    (!met).then_some(Verdict::EvictionRequirement)
}

/// Whether a container that the autoscaler is for was killed for memory soon after its start.
fn is_quick_oom(settings: &UpdaterSettings, view: &UpdaterView<'_>, pod: &PodToUpdate) -> bool {
    pod.terminations.iter().any(|last| {
        let off = view.vpa.policy_of(last.container).is_some_and(|policy| policy.off);
        let seen = !off && pod.observes(last.container);
        seen && last.out_of_memory && last.ran_for < settings.quick_oom(&view.vpa.update)
    })
}

/// Whether one of the resources of a requirement is to change in its direction. One without a target counts as nothing.
fn is_met(requirement: &EvictionRequirement, recommended: &ContainerRecommendation, requests: &Resources) -> bool {
    requirement.resources.iter().any(|name| {
        let (target, request) = (recommended.target.get(*name), requests.get(*name));
        match requirement.change {
            ChangeRequirement::TargetHigherThanRequests => target > request,
            ChangeRequirement::TargetLowerThanRequests => target < request,
        }
    })
}
