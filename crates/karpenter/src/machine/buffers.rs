//! CapacityBuffers: room that is kept free, as pods that exist in Karpenter's own reckoning only. Every pass and every look of the
//! disruption loop places them like pods that wait, and a node that they are placed on is not empty.
//!
//! Source: Karpenter core v1.14 `pkg/controllers/capacitybuffer/controller.go`, `pkg/controllers/provisioning/buffers.go`,
//! `pkg/controllers/disruption/emptiness.go`.
//! Deviation: all buffers are checked together, every half minute, also when a PodTemplate changes. A ReplicaSet
//! without a Deployment is not a supported workload.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::batching;
use super::io::Timer;
use super::settings::Buffer;
use super::step::Step;
use crate::packing::{PackingPlan, PendingPod};
use nodecast_model::cluster::WorkloadKind;
use nodecast_model::domain::capacity_buffer::BufferShape;
use nodecast_model::domain::pod::OwnerKind;
use nodecast_model::domain::workload::ObjectName;
use nodecast_model::domain::{Labels, NodeId, PodSpec, SimDuration, SimTime, Symbol};

/// A buffer is looked at again after this time.
const AGAIN: SimDuration = SimDuration::from_secs(30);

/// What is kept of buffers.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    /// One for each chunk of each buffer.
    chunks: Vec<Chunk>,
    /// How many chunks the last pass placed on each node.
    on_node: BTreeMap<NodeId, u32>,
}

/// A pod that stands for one chunk.
#[derive(Clone, PartialEq, Debug)]
struct Chunk {
    namespace: Symbol,
    name: String,
    spec: Arc<PodSpec>,
}

impl Buffers {
    /// The chunks as pods that wait: younger than all others.
    pub(super) fn pending(&self) -> impl Iterator<Item = PendingPod<'_>> {
        let created = SimTime::FAR_FUTURE;
        self.chunks.iter().zip(0..).map(move |(Chunk { namespace, name, spec }, uid_rank)| PendingPod {
            namespace: *namespace,
            name,
            spec,
            created,
            uid_rank,
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Whether the last pass placed chunks on the node.
    pub(super) fn are_on(&self, node: NodeId) -> bool {
        self.on_node.contains_key(&node)
    }

    /// Takes over where a pass has placed chunks, which stand behind its first `pods` pods.
    pub(super) fn placed(&mut self, known: &[NodeId], plan: &PackingPlan, pods: usize) {
        let mut on_node = BTreeMap::new();
        for placement in &plan.existing {
            let chunks = placement.pods.iter().filter(|&&pod| pod >= pods).count();
            if let Some(&node) = known.get(placement.node).filter(|_| chunks > 0) {
                on_node.insert(node, chunks as u32);
            }
        }
        self.on_node = on_node;
    }
}

/// Whether the release knows buffers and its gate is on.
fn are_known(step: &Step<'_>) -> bool {
    step.karpenter.settings.flags.gates.capacity_buffer && step.karpenter.behaviour.knows_capacity_buffers
}

/// Karpenter starts.
pub(super) fn begin(step: &mut Step<'_>, at: SimTime) {
    if are_known(step) {
        step.wake(at, Timer::BufferLook);
    }
}

/// Buffers are others.
pub(super) fn replace(step: &mut Step<'_>, now: SimTime, buffers: Vec<Buffer>) {
    step.karpenter.settings.buffers = buffers;
    if are_known(step) {
        count(step, now);
    }
}

/// Every buffer is looked at.
pub(super) fn look(step: &mut Step<'_>, now: SimTime) {
    count(step, now);
    step.wake(now + AGAIN, Timer::BufferLook);
}

/// Counts the chunks of each buffer, and has a pass place them.
fn count(step: &mut Step<'_>, now: SimTime) {
    let mut chunks = Vec::new();
    for buffer in &step.karpenter.settings.buffers {
        let Some((template, replicas)) = shape(step, buffer) else { continue };
        let name = buffer.buffer.name;
        let count = buffer.buffer.chunks(replicas, &template.requests());
        let spec = known_spec(step, name, &template);
        let chunk = |number: u32| Chunk {
            namespace: name.namespace,
            name: format!("capacity-buffer-{}-{number}", name.name),
            spec: Arc::clone(&spec),
        };
        chunks.extend((1..=count).map(chunk));
    }
    let resolved = !chunks.is_empty();
    if chunks != step.karpenter.buffers.chunks {
        step.karpenter.buffers.chunks = chunks;
        step.changed(now);
    }
    if resolved {
        batching::buffers_trigger(step, now);
    }
}

/// The pods that a buffer looks like, and the replicas of its workload; `None` where there is no such thing.
fn shape(step: &Step<'_>, Buffer { buffer, template }: &Buffer) -> Option<(Arc<PodSpec>, Option<u32>)> {
    let (kind, name) = match buffer.shape {
        BufferShape::Template(_) => return Some((Arc::clone(template.as_ref()?), None)),
        BufferShape::Deployment(name) => (WorkloadKind::Deployment, name),
        BufferShape::StatefulSet(name) => (WorkloadKind::StatefulSet, name),
        BufferShape::Other(..) => return None,
    };
    let name = ObjectName { namespace: buffer.name.namespace, name };
    let mut workloads = step.cluster.workloads();
    let (_, item) =
        workloads.find(|(_, workload)| workload.kind == kind && workload.name == name && !workload.deleted)?;
    Some((Arc::clone(&item.template), Some(item.replicas)))
}

/// The specification of a chunk; the one that its buffer's chunks have already, where it is the same.
fn known_spec(step: &Step<'_>, buffer: ObjectName, template: &PodSpec) -> Arc<PodSpec> {
    let spec = spec_of(template, buffer);
    let known = step.karpenter.buffers.chunks.iter().find(|chunk| *chunk.spec == spec);
    known.map_or_else(|| Arc::new(spec), |chunk| Arc::clone(&chunk.spec))
}

/// A pod of the template without what ties it to anything that is there: labels, volumes, a node.
fn spec_of(template: &PodSpec, buffer: ObjectName) -> PodSpec {
    PodSpec {
        labels: Labels::new()
            .with("karpenter.sh/capacity-buffer-name", buffer.name)
            .with("karpenter.sh/capacity-buffer-namespace", buffer.namespace),
        annotations: Labels::new().with("karpenter.sh/capacity-buffer-fake-pod", Symbol::new("true")),
        volumes: Vec::new(),
        node_name: None,
        owner: OwnerKind::None,
        priority: i32::MIN,
        ..template.clone()
    }
}
