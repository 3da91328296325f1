//! How long pods waited for a node, by workload and by priority.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Distribution;
use super::lives::{counts_wait, is_daemon, wait_for_node};
use super::service::workload_name;
use crate::domain::{SimDuration, SimTime, WorkloadId};
use crate::report::percentile::SortedSpans;
use crate::simulation::Outcome;
use crate::world::record::PodFacts;

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

/// Every wait that counts, with its pod; daemons' are left out.
fn all(outcome: &Outcome) -> impl Iterator<Item = (&PodFacts, SimDuration)> {
    let end = SimTime::ZERO + outcome.about.duration;
    let pods = outcome.record.pods.iter().filter(move |pod| !is_daemon(outcome, pod) && counts_wait(outcome, pod, end));
    pods.map(move |pod| (pod, wait_for_node(pod, end)))
}

/// The waits of placeholders, or of all others.
pub(super) fn of_placeholders(outcome: &Outcome, placeholders: bool) -> WaitFigures {
    WaitFigures::of(all(outcome).filter(|(pod, _)| pod.placeholder == placeholders).map(|(_, wait)| wait).collect())
}

/// Waits by workload, in order of id. A workload of which some pods are placeholders and some are not has two entries.
pub(super) fn by_workload(outcome: &Outcome) -> Vec<WorkloadWaits> {
    let mut found: BTreeMap<(WorkloadId, bool), Vec<SimDuration>> = BTreeMap::new();
    for (pod, wait) in all(outcome) {
        found.entry((pod.workload, pod.placeholder)).or_default().push(wait);
    }
    let figures = |((workload, placeholder), waits)| WorkloadWaits {
        workload: workload_name(outcome, workload),
        placeholder,
        waits: WaitFigures::of(waits),
    };
    found.into_iter().map(figures).collect()
}

/// Waits by priority, the highest first.
pub(super) fn by_priority(outcome: &Outcome) -> Vec<PriorityWaits> {
    let mut found: BTreeMap<i32, Vec<SimDuration>> = BTreeMap::new();
    for (pod, wait) in all(outcome).filter(|(pod, _)| !pod.placeholder) {
        found.entry(pod.priority).or_default().push(wait);
    }
    let figures = |(priority, waits)| PriorityWaits { priority, waits: WaitFigures::of(waits) };
    found.into_iter().rev().map(figures).collect()
}
