//! The admission controller: what it writes into a pod that is being created.
//!
//! Source: Vertical Pod Autoscaler 1.7 `pkg/admission-controller/resource/pod`.

use super::capping::{Capped, ContainerState, cap, proportional_limit};
use super::limits::NamespaceLimits;
use nodecast_model::domain::hpa::ScaleTargetRef;
use nodecast_model::domain::vertical::{UpdateMode, VerticalPodAutoscaler};
use nodecast_model::domain::{Container, PodSpec, ResourceName, Resources, Symbol};

/// What becomes of a pod.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Admission {
    /// Its containers, in their order.
    pub containers: Vec<AdmittedContainer>,
    /// Why nothing was written, if so.
    pub untouched: Option<NotAdmitted>,
}

/// A container as it comes out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AdmittedContainer {
    /// Name.
    pub name: Symbol,
    /// What it requests.
    pub requests: Resources,
    /// Its limits.
    pub limits: Resources,
    /// What was written, also where the value is as before.
    pub written: Vec<(Written, ResourceName)>,
}

/// Where a value is written.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Written {
    /// Among the limits.
    Limits,
    /// Among the requests.
    Requests,
}

/// Why a pod is left as it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotAdmitted {
    /// Nothing controls it.
    NoController,
    /// The mode is Off.
    Off,
    /// There is no recommendation yet.
    NoRecommendation,
    /// The real program dies of it.
    Crash,
}

/// A pod's specification with other requests and limits; `None` if they are what they were.
pub fn respecified(spec: &PodSpec, containers: &[AdmittedContainer]) -> Option<PodSpec> {
    let same = |(container, new): (&Container, &AdmittedContainer)| {
        container.effective_requests() == new.requests && container.limits == new.limits
    };
    if spec.containers.iter().zip(containers).all(same) {
        return None;
    }
    let mut changed = spec.clone();
    for (container, new) in changed.containers.iter_mut().zip(containers) {
        (container.requests, container.limits) = (new.requests.clone(), new.limits.clone());
    }
    Some(changed)
}

/// The VerticalPodAutoscaler that a pod belongs to: of those whose target controls it at the top, the oldest, then the first by name.
pub fn controlling<'v>(
    autoscalers: impl IntoIterator<Item = &'v VerticalPodAutoscaler>,
    namespace: Symbol,
    topmost: ScaleTargetRef,
) -> Option<&'v VerticalPodAutoscaler> {
    let of_pod = autoscalers.into_iter().filter(|vpa| vpa.name.namespace == namespace && vpa.target == topmost);
    of_pod.min_by_key(|vpa| (vpa.created, vpa.name))
}

/// What becomes of a pod that is being created and belongs to the VerticalPodAutoscaler. It does not matter whether the recommended
/// pod fits any node.
///
/// Deviation: if a LimitRange of pods makes the Vertical Pod Autoscaler's admission controller fail on a pod, the pod
/// stays unchanged, as in a cluster. The failing request takes no time.
pub fn admit(
    vpa: &VerticalPodAutoscaler,
    pod: &[ContainerState],
    is_controlled: bool,
    limits: &NamespaceLimits,
) -> Admission {
    let untouched = |why: NotAdmitted| {
        let containers = pod.iter().map(|container| written(container, None, vpa, limits)).collect();
        Admission { containers, untouched: Some(why) }
    };
    if !is_controlled {
        return untouched(NotAdmitted::NoController);
    }
    if vpa.update.mode == Some(UpdateMode::Off) {
        return untouched(NotAdmitted::Off);
    }
    let Some(recommendation) = &vpa.recommendation else { return untouched(NotAdmitted::NoRecommendation) };
    match cap(recommendation, vpa, pod, limits) {
        Err(_) => untouched(NotAdmitted::Crash),
        Ok(capped) => Admission { containers: updated(vpa, pod, &capped, limits), untouched: None },
    }
}

/// The containers of a pod with what is recommended for them.
pub(super) fn updated(
    vpa: &VerticalPodAutoscaler,
    pod: &[ContainerState],
    capped: &Capped,
    limits: &NamespaceLimits,
) -> Vec<AdmittedContainer> {
    pod.iter().map(|container| written(container, Some(capped), vpa, limits)).collect()
}

fn written(
    container: &ContainerState,
    capped: Option<&Capped>,
    vpa: &VerticalPodAutoscaler,
    namespace: &NamespaceLimits,
) -> AdmittedContainer {
    let ContainerState { name, requests, limits } = container.clone();
    let mut admitted = AdmittedContainer { name, requests, limits, written: Vec::new() };
    let Some(recommended) = capped.and_then(|capped| capped.container(name)) else { return admitted };
    let keeps_limits = vpa.policy_of(name).is_some_and(|policy| policy.requests_only);
    for (resource, amount) in recommended.target.iter() {
        admitted.requests.set(resource, amount);
        admitted.written.push((Written::Requests, resource));
        if keeps_limits {
            continue;
        }
        if let Some(limit) = proportional_limit(container, resource, amount, namespace.default_limit()) {
            admitted.limits.set(resource, limit);
            admitted.written.push((Written::Limits, resource));
        }
    }
    admitted
}
