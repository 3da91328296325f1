//! How long pods waited for a node, by workload and by priority.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Distribution;
use super::lives::{counts_wait, is_daemon, wait_for_node};
use super::service::workload_name;
use crate::domain::{SimDuration, SimTime, WorkloadId};
use crate::report::percentile::SortedSpans;
use crate::simulation::Outcome;

/// A pod that has its node later than this has waited: the scheduler's own work takes less.
const WAITED: SimDuration = SimDuration::from_secs(1);

/// Waits of some of the pods.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct WaitFigures {
    /// Pods whose wait counts.
    pub pods: u64,
    /// Of these, those that had no node a second after they were made.
    pub waited: u64,
    /// Creation to binding.
    pub wait_for_node: Option<Distribution>,
}

/// Waits of the pods of one workload.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct WorkloadWaits {
    /// Namespace and name.
    pub workload: String,
    /// Whether it holds room for others and does nothing itself.
    pub placeholder: bool,
    /// Its pods' waits.
    #[serde(flatten)]
    pub waits: WaitFigures,
}

/// Waits of the pods of one priority.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PriorityWaits {
    /// The priority.
    pub priority: i32,
    /// Its pods' waits; placeholders are left out.
    #[serde(flatten)]
    pub waits: WaitFigures,
}

impl WaitFigures {
    /// The figures of these waits.
    fn of(waits: Vec<SimDuration>) -> Self {
        Self {
            pods: waits.len() as u64,
            waited: waits.iter().filter(|wait| **wait > WAITED).count() as u64,
            wait_for_node: Distribution::of(&SortedSpans::new(waits)),
        }
    }
}

/// Every wait that counts, in order of creation of the pods; daemons' are left out.
pub(super) struct Waits(Vec<Wait>);

/// The wait of a pod.
struct Wait {
    workload: WorkloadId,
    priority: i32,
    placeholder: bool,
    waited: SimDuration,
}

impl Waits {
    /// Those of a run.
    pub(super) fn of(outcome: &Outcome) -> Self {
        let end = SimTime::ZERO + outcome.about.duration;
        let pods = outcome.record.pods.iter();
        let own = pods.filter(|pod| !is_daemon(outcome, pod) && counts_wait(outcome, pod, end)).map(|pod| Wait {
            workload: pod.workload,
            priority: pod.priority,
            placeholder: pod.placeholder,
            waited: wait_for_node(&pod, end),
        });
        Self(own.collect())
    }

    /// The waits of placeholders, or of all others.
    pub(super) fn of_placeholders(&self, placeholders: bool) -> WaitFigures {
        WaitFigures::of(self.0.iter().filter(|own| own.placeholder == placeholders).map(|own| own.waited).collect())
    }

    /// Waits by workload, in order of id. A workload of which some pods are placeholders and some are not has two entries.
    pub(super) fn by_workload(&self, outcome: &Outcome) -> Vec<WorkloadWaits> {
        let mut found: BTreeMap<(WorkloadId, bool), Vec<SimDuration>> = BTreeMap::new();
        for own in &self.0 {
            found.entry((own.workload, own.placeholder)).or_default().push(own.waited);
        }
        let figures = |((workload, placeholder), waits)| WorkloadWaits {
            workload: workload_name(outcome, workload),
            placeholder,
            waits: WaitFigures::of(waits),
        };
        found.into_iter().map(figures).collect()
    }

    /// Waits by priority, the highest first.
    pub(super) fn by_priority(&self) -> Vec<PriorityWaits> {
        let mut found: BTreeMap<i32, Vec<SimDuration>> = BTreeMap::new();
        for own in self.0.iter().filter(|own| !own.placeholder) {
            found.entry(own.priority).or_default().push(own.waited);
        }
        let figures = |(priority, waits)| PriorityWaits { priority, waits: WaitFigures::of(waits) };
        found.into_iter().rev().map(figures).collect()
    }
}
