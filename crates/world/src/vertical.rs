//! What VerticalPodAutoscalers recommended and did, and what limits held back.
//!
//! What must not live here: what ought to be recommended (the deciding crates).

use std::collections::BTreeMap;

use super::World;
use crate::domain::vertical::UpdateMode;
use crate::domain::workload::ObjectName;
use crate::domain::{Resources, SimDuration, SimTime, Symbol, WorkloadId};

const MEBIBYTE: i64 = 1 << 20;

/// A VerticalPodAutoscaler and what came of it.
#[derive(Clone, PartialEq, Debug)]
pub struct VerticalFacts {
    /// Namespace and name.
    pub name: ObjectName,
    /// Whose pods it is for.
    pub workload: WorkloadId,
    /// Its mode, that of the release where it states none.
    pub mode: UpdateMode,
    /// How often its pods got another size, by what happened to them.
    pub means: VerticalMeans,
    /// What each container was seen to use, in order of appearance.
    pub used: Vec<UseOfContainer>,
    /// What it recommended at regular instants, by time and then by container.
    pub samples: Vec<RecommendationSample>,
}

/// What a container was seen to use: how often which amount, over all pods and looks of the recommender.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UseOfContainer {
    /// The container.
    pub container: Symbol,
    /// CPU, in thousandths.
    pub cpu: BTreeMap<i64, u64>,
    /// Memory, in MiB, rounded up.
    pub memory: BTreeMap<i64, u64>,
}

/// How pods got another size, or did not.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct VerticalMeans {
    /// Pods that were made with other requests than their template states.
    pub admitted: u32,
    /// Pods evicted.
    pub evicted: u32,
    /// Evictions that a disruption budget refused.
    pub refused: u32,
    /// Pods resized where they run.
    pub resized: u32,
    /// Resizes for which the node had no room at first.
    pub deferred: u32,
    /// Resizes for which the node never had room.
    pub infeasible: u32,
    /// Containers killed for lack of memory.
    pub out_of_memory: u32,
}

/// What is recommended for a container at an instant, and what its pods request and use. CPU in thousandths, memory in bytes, each the
/// mean over the pods; a resource of which nothing is known is not named.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecommendationSample {
    /// When.
    pub at: SimTime,
    /// The container.
    pub container: Symbol,
    /// Pods that run.
    pub pods: u32,
    /// What it requests.
    pub request: Resources,
    /// What it used since the recommender looked before.
    pub used: Resources,
    /// What it is to request.
    pub target: Resources,
    /// A request below it is too small.
    pub lower_bound: Resources,
    /// A request above it is too large.
    pub upper_bound: Resources,
    /// The target before policies cap it.
    pub uncapped_target: Resources,
}

/// How long Ready pods of a workload were held back by their CPU limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ThrottledFacts {
    /// The workload.
    pub workload: WorkloadId,
    /// Time of pods that wanted more CPU than their limit.
    pub throttled: SimDuration,
    /// Time of all Ready pods.
    pub ready: SimDuration,
}

/// Pods that kubelets evicted because their node ran out of memory.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PressedFacts {
    /// How many of each workload.
    pub evicted: BTreeMap<WorkloadId, u64>,
    /// When the first was.
    pub first: Option<SimTime>,
}

impl PressedFacts {
    /// How many in all.
    pub fn count(&self) -> u64 {
        self.evicted.values().sum()
    }
}

impl World {
    /// Records that a kubelet evicted a pod of a workload because the node ran out of memory.
    pub fn note_pressed(&mut self, at: SimTime, workload: WorkloadId) {
        *self.record.pressed.evicted.entry(workload).or_insert(0) += 1;
        self.record.pressed.first.get_or_insert(at);
    }

    /// Records that a VerticalPodAutoscaler is there; its position in the record.
    pub fn add_vertical(&mut self, name: ObjectName, workload: WorkloadId, mode: UpdateMode) -> usize {
        let means = VerticalMeans::default();
        let facts = VerticalFacts { name, workload, mode, means, used: Vec::new(), samples: Vec::new() };
        self.record.verticals.push(facts);
        self.record.verticals.len() - 1
    }

    /// What becomes of the pods of the VerticalPodAutoscaler at a position of the record, to be counted on.
    pub fn vertical_means(&mut self, position: usize) -> &mut VerticalMeans {
        &mut self.record.verticals[position].means
    }

    /// Counts so many looks at which a container was seen to use so much: thousandths of a CPU, bytes. With none it only appears.
    pub fn note_use(
        &mut self,
        position: usize,
        container: Symbol,
        (milli, bytes): (Option<i64>, Option<i64>),
        looks: u64,
    ) {
        let used = &mut self.record.verticals[position].used;
        let known = used.iter().position(|item| item.container == container);
        let at = known.unwrap_or_else(|| {
            used.push(UseOfContainer { container, cpu: BTreeMap::new(), memory: BTreeMap::new() });
            used.len() - 1
        });
        if let (Some(milli), 1..) = (milli, looks) {
            *used[at].cpu.entry(milli).or_insert(0) += looks;
        }
        if let (Some(bytes), 1..) = (bytes, looks) {
            *used[at].memory.entry(bytes.div_euclid(MEBIBYTE) + i64::from(bytes % MEBIBYTE > 0)).or_insert(0) += looks;
        }
    }

    /// Records what it recommends.
    pub fn note_recommendation(&mut self, position: usize, sample: RecommendationSample) {
        self.record.verticals[position].samples.push(sample);
    }

    /// Records how long pods of a workload were held back.
    pub fn note_throttled(&mut self, facts: ThrottledFacts) {
        self.record.throttled.push(facts);
    }
}
