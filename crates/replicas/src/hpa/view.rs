//! What one pass reads: the target's counts, its pods, and one reading for each metric.

use super::conditions::ConditionReason;
use nodecast_model::domain::pod::{Container, PodPhase, PodSpec};
use nodecast_model::domain::resources::{ResourceName, ResourceUnit};
use nodecast_model::domain::{SimDuration, SimTime};

/// What one pass reads. Everything is borrowed, so that a caller can fill the same buffers again at the next pass.
#[derive(Clone, Copy, Debug)]
pub struct HpaView<'a> {
    /// The instant of the pass.
    pub now: SimTime,
    /// `scale.spec.replicas`: what the target was told.
    pub spec_replicas: i32,
    /// `scale.status.replicas`: the pods that exist, surge included.
    pub status_replicas: i32,
    /// The pods that the target's selector selects, but for those of `settled`.
    pub pods: &'a [PodView],
    /// Pods that need no look: the caller has summed them up.
    pub settled: SettledPods,
    /// One reading for each metric, in the order of the specification.
    pub readings: &'a [MetricReading<'a>],
    /// What is wrong with the target's selector, if anything.
    pub selector_problem: Option<SelectorProblem>,
}

/// Pods that run and are Ready, each with a sample of its CPU use whose whole window was after it became so. The controller
/// counts them alike, so that their sums are all it needs. For any other metric with a value for each pod they are not known:
/// an autoscaler with such a metric has to be shown every pod by itself.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct SettledPods {
    /// How many there are.
    pub pods: i64,
    /// CPU that they use together: the sum of their samples, in thousandths.
    pub usage_milli: i128,
    /// CPU that they request together, in thousandths. See [`pod_request_milli`].
    pub request_milli: i128,
}

/// A pod, as far as the controller looks at it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PodView {
    /// Its phase.
    pub phase: PodPhase,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// When the kubelet took it up; `None` before.
    pub start_time: Option<SimTime>,
    /// Its `Ready` condition, if it has one.
    pub ready: Option<ReadyCondition>,
}

impl PodView {
    /// Whether the pod runs and is ready; a terminating pod may be.
    pub fn is_ready(&self) -> bool {
        self.phase == PodPhase::Running && self.ready.is_some_and(|condition| condition.ready)
    }
}

/// The `Ready` condition of a pod.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ReadyCondition {
    /// Whether it holds.
    pub ready: bool,
    /// When it last turned.
    pub since: SimTime,
}

/// What was read for one metric.
#[derive(Clone, Copy, Debug)]
pub enum MetricReading<'a> {
    /// For Resource, ContainerResource and Pods metrics: a sample for each pod.
    PerPod {
        /// One for each pod of the view, in the same order.
        samples: &'a [PodSample],
        /// Values, in thousandths, of samples that belong to no pod of the view.
        unmatched: &'a [i64],
    },
    /// For Object and External metrics: the values of the series, in thousandths. An object has one.
    Series(&'a [i64]),
    /// It could not be read, and why.
    Failed(&'a str),
    /// The metric's type is unknown to the controller, and how it is spelled.
    UnknownType(&'a str),
}

/// A pod's part of a reading.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct PodSample {
    /// The sample; `None` if the pod has none, or if one of its containers does not report the resource.
    pub sample: Option<Sample>,
    /// What the pod (or the one container meant) requests of the resource, in thousandths; `None` if a container states no
    /// request. Utilization targets alone use it. See [`pod_request_milli`].
    pub request: Option<i64>,
}

/// A sample of a metric for one pod.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Sample {
    /// The value in thousandths: millicores, or bytes times 1000.
    pub milli: i64,
    /// When its window ended.
    pub at: SimTime,
    /// The time it is a mean over.
    pub window: SimDuration,
}

/// What is wrong with the selector of the target's pods.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
pub enum SelectorProblem {
    /// There is none, or it cannot be read.
    #[error("the target's pod selector is missing or malformed")]
    Invalid,
    /// It selects pods that another autoscaler's target selects too.
    #[error("the target's pods are selected by more than one autoscaler")]
    Ambiguous,
}

impl SelectorProblem {
    /// The reason given in the condition and the event.
    pub const fn reason(self) -> ConditionReason {
        match self {
            Self::Invalid => ConditionReason::InvalidSelector,
            Self::Ambiguous => ConditionReason::AmbiguousSelector,
        }
    }
}

/// A container states no request for the resource that a utilization target needs.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("missing request for {resource} in container {container}")]
pub struct UnknownRequest {
    /// The resource.
    pub resource: ResourceName,
    /// The first such container.
    pub container: String,
}

/// What a utilization target compares a pod's use with, in thousandths: pod-level requests where they name the resource,
/// else the sum over app containers and sidecars; with `container`, that container's request alone. Init containers that end
/// do not count.
///
/// Source: Kubernetes 1.37 `replica_calculator.go`, `calculatePodRequests`.
pub fn pod_request_milli(
    pod: &PodSpec,
    resource: ResourceName,
    container: Option<&str>,
) -> Result<i64, UnknownRequest> {
    let milli = |amount: i64| match resource.unit() {
        ResourceUnit::MilliCpu => amount,
        ResourceUnit::Bytes | ResourceUnit::Count => amount.saturating_mul(1_000),
    };
    let pod_level = pod.pod_requests.as_ref().filter(|_| container.is_none());
    if let Some(amount) = pod_level.and_then(|requests| requests.find(resource)) {
        return Ok(milli(amount));
    }
    let sidecars = pod.init_containers.iter().filter(|init| init.sidecar).map(|init| &init.container);
    let counted = |candidate: &&Container| container.is_none_or(|wanted| candidate.name == wanted);
    let mut sum: i64 = 0;
    for one in pod.containers.iter().chain(sidecars).filter(counted) {
        let request = one.requests.find(resource).or_else(|| one.limits.find(resource));
        let Some(amount) = request else {
            return Err(UnknownRequest { resource, container: one.name.clone() });
        };
        sum = sum.saturating_add(milli(amount));
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::pod_request_milli;
    use nodecast_model::domain::pod::{Container, InitContainer, PodSpec};
    use nodecast_model::domain::resources::{ResourceName, Resources};

    fn container(name: &str, cpu_milli: i64) -> Container {
        Container { name: name.to_owned(), requests: Resources::cpu_memory(cpu_milli, 7), ..Container::default() }
    }

    #[test]
    fn requests_include_sidecars_but_not_init_containers() {
        let pod = PodSpec {
            containers: vec![container("app", 100), container("proxy", 20)],
            init_containers: vec![
                InitContainer { container: container("mesh", 5), sidecar: true },
                InitContainer { container: container("migrate", 900), sidecar: false },
            ],
            ..PodSpec::default()
        };
        assert_eq!(pod_request_milli(&pod, ResourceName::CPU, None), Ok(125));
        assert_eq!(pod_request_milli(&pod, ResourceName::CPU, Some("proxy")), Ok(20));
        assert_eq!(pod_request_milli(&pod, ResourceName::MEMORY, None), Ok(21_000));
        let missing = pod_request_milli(&pod, ResourceName::NVIDIA_GPU, None).map_err(|error| error.to_string());
        assert_eq!(missing, Err("missing request for nvidia.com/gpu in container app".to_owned()));
    }

    #[test]
    fn pod_level_requests_replace_only_the_sum() {
        let pod = PodSpec {
            containers: vec![container("app", 100)],
            pod_requests: Some(Resources::new().with(ResourceName::CPU, 400)),
            ..PodSpec::default()
        };
        assert_eq!(pod_request_milli(&pod, ResourceName::CPU, None), Ok(400));
        assert_eq!(pod_request_milli(&pod, ResourceName::CPU, Some("app")), Ok(100));
        assert_eq!(pod_request_milli(&pod, ResourceName::MEMORY, None), Ok(7_000));
    }
}
