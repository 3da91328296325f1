//! CapacityBuffer: room that is to be kept free, as pods that nobody runs.

use std::sync::Arc;

use super::pod::PodSpec;
use super::resources::{ResourceName, Resources};
use super::symbol::Symbol;
use super::workload::ObjectName;

/// A CapacityBuffer (`autoscaling.x-k8s.io`).
///
/// Source: Karpenter core v1.14 `pkg/apis/autoscaling/v1beta1/capacitybuffer.go`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CapacityBuffer {
    /// Namespace and name.
    pub name: ObjectName,
    /// Whose pods one chunk of it looks like.
    pub shape: BufferShape,
    /// `replicas`: so many chunks.
    pub replicas: Option<u32>,
    /// `percentage` of the replicas of the workload.
    pub percentage: Option<u32>,
    /// `limits`: what all chunks may request together; `None` for anything.
    pub limits: Option<Resources>,
    /// The API version as written.
    pub api_version: Symbol,
    /// `provisioningStrategy`, unless it is that of room that is there all the time.
    pub other_strategy: Option<Symbol>,
}

/// Whose pods a chunk of a buffer looks like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BufferShape {
    /// Those of a PodTemplate in the buffer's namespace.
    Template(Symbol),
    /// Those of a Deployment.
    Deployment(Symbol),
    /// Those of a StatefulSet.
    StatefulSet(Symbol),
    /// Those of something else with a scale, of this kind and name.
    Other(Symbol, Symbol),
}

/// A PodTemplate.
#[derive(Clone, PartialEq, Debug)]
pub struct PodTemplate {
    /// Namespace and name.
    pub name: ObjectName,
    /// The pods of it.
    pub spec: Arc<PodSpec>,
}

impl CapacityBuffer {
    /// How many chunks there are to be, beside a workload of so many replicas and for pods that request so much: the greater of
    /// `replicas` and the percentage, rounded up and at least one, within the limits; as many as the limits hold where nothing else is
    /// stated. Resources that the pods do not request, or the limits do not name, limit nothing.
    ///
    /// Source: Karpenter core v1.14 `pkg/controllers/capacitybuffer/controller.go`, `computeReplicas`, and `helpers.go`.
    pub fn chunks(&self, replicas: Option<u32>, requests: &Resources) -> u32 {
        let share = |percentage: u32, replicas: u32| {
            let exact = u64::from(percentage) * u64::from(replicas);
            u32::try_from(exact.div_ceil(100)).unwrap_or(u32::MAX)
        };
        let of_workload = self.percentage.zip(replicas.filter(|&replicas| replicas > 0));
        let of_workload = of_workload.map(|(percentage, replicas)| share(percentage, replicas));
        let wanted = self.replicas.into_iter().chain(of_workload).max();
        let held = self.limits.as_ref().and_then(|limits| holds(limits, requests));
        match (wanted, held) {
            (Some(wanted), Some(held)) => wanted.min(held),
            (one, other) => one.or(other).unwrap_or(0),
        }
    }
}

/// How many pods with these requests the limits hold; `None` if they limit nothing that the pods request.
fn holds(limits: &Resources, requests: &Resources) -> Option<u32> {
    let one = |(name, limit): (ResourceName, i64)| {
        let request = requests.get(name);
        (request > 0).then(|| u32::try_from((limit / request).max(0)).unwrap_or(u32::MAX))
    };
    limits.iter().filter_map(one).min()
}

#[cfg(test)]
mod tests {
    use super::{BufferShape, CapacityBuffer};
    use crate::domain::workload::ObjectName;
    use crate::domain::{Resources, Symbol, well_known};

    fn buffer(replicas: Option<u32>, percentage: Option<u32>, limits: Option<Resources>) -> CapacityBuffer {
        CapacityBuffer {
            name: ObjectName { namespace: well_known::DEFAULT, name: Symbol::new("web") },
            shape: BufferShape::Deployment(Symbol::new("web")),
            replicas,
            percentage,
            limits,
            api_version: Symbol::new("autoscaling.x-k8s.io/v1beta1"),
            other_strategy: None,
        }
    }

    #[test]
    fn chunks_are_the_greater_wish_within_the_limits() {
        let pod = Resources::cpu_memory(1_000, 1 << 30);
        let cpu = |cores: i64| Some(Resources::cpu_memory(cores * 1_000, 1 << 40));
        for (replicas, percentage, limits, of, expected) in [
            (Some(5), None, None, Some(10), 5),
            (None, Some(20), None, Some(10), 2),
            (None, Some(1), None, Some(10), 1),
            (None, Some(25), None, Some(10), 3),
            (Some(5), Some(80), None, Some(10), 8),
            (Some(5), Some(80), cpu(4), Some(10), 4),
            (Some(10), None, cpu(3), None, 3),
            (None, None, cpu(5), None, 5),
            (None, None, None, Some(10), 0),
            (None, Some(50), None, Some(0), 0),
        ] {
            let buffer = buffer(replicas, percentage, limits.clone());
            assert_eq!(buffer.chunks(of, &pod), expected, "{replicas:?} {percentage:?} {limits:?}");
        }
    }

    #[test]
    fn buffer_limits_on_unrequested_resources_are_ignored() {
        let gpus = Resources::new().with(crate::domain::ResourceName::NVIDIA_GPU, 0);
        assert_eq!(buffer(Some(3), None, Some(gpus)).chunks(None, &Resources::cpu_memory(500, 0)), 3);
    }
}
