//! How long pods waited for a node, by workload and by priority.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::Distribution;
use super::lives::{counts_wait, is_daemon, wait_for_node};
use super::made_anew;
use super::service::workload_name;
use crate::domain::{SimDuration, SimTime, WorkloadId};
use crate::percentile::SortedSpans;
use nodecast_world::Outcome;

/// A pod that has its node later than this has waited: the scheduler's own work takes less.
const WAITED: SimDuration = SimDuration::from_secs(1);

/// Waits of some of the pods.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct WaitFigures {
    /// Pods whose wait counts.
    pub pods: u64,
    /// Of these, those that had no node a second after they were made.
    pub waited: u64,
    /// Creation to binding.
    pub wait_for_node: Option<Distribution>,
}

/// Waits of the pods of one workload.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
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
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PriorityWaits {
    /// The priority.
    pub priority: i32,
    /// Its pods' waits; placeholders are left out.
    #[serde(flatten)]
    pub waits: WaitFigures,
}

impl WaitFigures {
    /// The figures of these waits.
    fn from_waits(waits: Vec<SimDuration>) -> Self {
        Self {
            pods: waits.len() as u64,
            waited: waits.iter().filter(|wait| **wait > WAITED).count() as u64,
            wait_for_node: Distribution::from_spans(&SortedSpans::new(waits)),
        }
    }
}

/// Every wait that counts, by what pods have in common; daemons' are left out.
pub(super) struct Waits(BTreeMap<Kind, Vec<SimDuration>>);

/// Pods whose waits stand together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    workload: WorkloadId,
    placeholder: bool,
    priority: i32,
}

impl Waits {
    /// Those of a run.
    pub(super) fn from_outcome(outcome: &Outcome) -> Self {
        let end = SimTime::ZERO + outcome.about.duration;
        let pods = outcome.record.pods.unnamed();
        let firsts = made_anew::firsts(outcome);
        let mut found: BTreeMap<Kind, Vec<SimDuration>> = BTreeMap::new();
        for pod in pods.filter(|pod| !is_daemon(outcome, pod) && counts_wait(outcome, pod, end)) {
            let kind = Kind {
                workload: made_anew::first_of(&firsts, pod.workload),
                placeholder: pod.placeholder,
                priority: pod.priority,
            };
            found.entry(kind).or_default().push(wait_for_node(&pod, end));
        }
        Self(found)
    }

    /// The figures of the kinds that `is_own` picks.
    fn figures(&self, is_own: impl Fn(&Kind) -> bool) -> WaitFigures {
        let make = || self.0.iter().filter(|(kind, _)| is_own(kind)).map(|(_, waits)| waits);
        // There may be millions: room for all of them at once, and no more.
        let mut all = Vec::with_capacity(make().map(Vec::len).sum());
        make().for_each(|waits| all.extend_from_slice(waits));
        WaitFigures::from_waits(all)
    }

    /// The waits of placeholders, or of all others.
    pub(super) fn of_placeholders(&self, placeholders: bool) -> WaitFigures {
        self.figures(|kind| kind.placeholder == placeholders)
    }

    /// Waits by workload, in order of id. A workload of which some pods are placeholders and some are not has two entries.
    pub(super) fn by_workload(&self, outcome: &Outcome) -> Vec<WorkloadWaits> {
        let found: BTreeSet<(WorkloadId, bool)> = self.0.keys().map(|kind| (kind.workload, kind.placeholder)).collect();
        let figures = |(workload, placeholder)| WorkloadWaits {
            workload: workload_name(outcome, workload),
            placeholder,
            waits: self.figures(|kind| (kind.workload, kind.placeholder) == (workload, placeholder)),
        };
        found.into_iter().map(figures).collect()
    }

    /// Waits by priority, the highest first.
    pub(super) fn by_priority(&self) -> Vec<PriorityWaits> {
        let make = |kind: &&Kind| !kind.placeholder;
        let found: BTreeSet<i32> = self.0.keys().filter(make).map(|kind| kind.priority).collect();
        let figures = |priority| PriorityWaits {
            priority,
            waits: self.figures(|kind| !kind.placeholder && kind.priority == priority),
        };
        found.into_iter().rev().map(figures).collect()
    }
}
