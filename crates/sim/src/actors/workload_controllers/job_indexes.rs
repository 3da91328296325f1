//! Indexes of a Job whose failures count by index (`backoffLimitPerIndex`), or that succeeds with some of them (`successPolicy`): which run,
//! wait, are done or given up.
//!
//! Must not: make pods.
//!
//! Source: Kubernetes 1.36.2 `pkg/controller/job/indexed_job_utils.go`, `backoff_utils.go`, `getRemainingTimePerIndex`.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::workload::JobSpec;
use crate::domain::{PodId, SimTime};
use nodecast_replicas::workloads::retry_delay;

/// State of the indexes that a pod was ever made for.
#[derive(Clone, Debug, Default)]
pub(super) struct Indexes {
    entries: BTreeMap<u32, Entry>,
    of_pods: BTreeMap<PodId, u32>,
    succeeded: BTreeSet<u32>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    /// Whether a pod is there for it, or none is to be made any more.
    taken: bool,
    /// Failures that count.
    failures: u32,
    /// Failures that the policy ignores: they delay the next pod alone.
    ignored: u32,
    not_before: Option<SimTime>,
}

/// Failure of the pod of an index.
#[derive(Clone, Copy, Debug)]
pub(super) struct IndexFailure {
    /// Whether no pod is made for the index any more.
    pub(super) given_up: bool,
    /// When its next pod may be made.
    pub(super) not_before: SimTime,
}

impl Indexes {
    /// The first indexes were done before the run began, and those after them given up.
    pub(super) fn skip(&mut self, done: u32, given_up: u32) {
        for index in 0..done.saturating_add(given_up).min(MOST) {
            self.entries.entry(index).or_default().taken = true;
        }
        self.succeeded.extend(0..done.min(MOST));
    }

    /// Indexes whose pods have done their work.
    pub(super) fn succeeded(&self) -> impl Iterator<Item = u32> + '_ {
        self.succeeded.iter().copied()
    }

    /// The lowest index that a pod may be made for now.
    pub(super) fn next(&self, spec: &JobSpec, now: SimTime) -> Option<u32> {
        let is_free = |index: &u32| {
            self.entries.get(index).is_none_or(|entry| !entry.taken && entry.not_before.is_none_or(|at| at <= now))
        };
        (0..spec.completions?).find(is_free)
    }

    /// The pod is made for the index.
    pub(super) fn run(&mut self, index: u32, pod: PodId) {
        self.entries.entry(index).or_default().taken = true;
        self.of_pods.insert(pod, index);
    }

    /// The pod, which has not failed, goes: another one may be made at once.
    pub(super) fn stop(&mut self, pod: PodId) {
        if let Some(entry) = self.take(pod) {
            entry.taken = false;
        }
    }

    /// The pod has done its work: its index stays taken.
    pub(super) fn succeed(&mut self, pod: PodId) {
        self.succeeded.extend(self.of_pods.remove(&pod));
    }

    /// The pod has failed at an instant, and its index allows `limit` failures that are not `ignored`.
    pub(super) fn fail(&mut self, pod: PodId, at: SimTime, (limit, ignored): (u32, bool)) -> Option<IndexFailure> {
        let entry = self.take(pod)?;
        if ignored {
            entry.ignored += 1;
        } else {
            entry.failures += 1;
        }
        let not_before = at + retry_delay(entry.failures + entry.ignored);
        let given_up = entry.failures > limit;
        (entry.taken, entry.not_before) = (given_up, Some(not_before));
        Some(IndexFailure { given_up, not_before })
    }

    fn take(&mut self, pod: PodId) -> Option<&mut Entry> {
        let index = self.of_pods.remove(&pod)?;
        self.entries.get_mut(&index)
    }
}

/// Completions that a Job has at most where failures count by index.
///
/// Source: Kubernetes 1.36 `pkg/apis/batch/validation/validation.go`, `completionsSoftLimit`.
const MOST: u32 = 100_000;
