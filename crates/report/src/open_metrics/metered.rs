//! What workloads and pods had used and answered by any instant: as the samples of the run read it, between two of them in
//! equal parts.

use std::collections::BTreeSet;

use super::lives::Lives;
use crate::domain::{SimTime, WorkloadId};
use nodecast_world::record::{Meter, PodFacts, Sample};

/// The meters of a run.
pub(super) struct Metered<'o> {
    samples: &'o [Sample],
}

impl<'o> Metered<'o> {
    pub(super) fn from_lives(lives: &Lives<'o>) -> Self {
        Self { samples: &lives.outcome.record.samples }
    }

    /// Workloads with a meter, in order.
    pub(super) fn workloads(&self) -> impl Iterator<Item = WorkloadId> + use<> {
        let all: BTreeSet<WorkloadId> =
            self.samples.iter().flat_map(|sample| sample.meters.iter().map(|meter| meter.workload)).collect();
        all.into_iter()
    }

    /// What `of` reads off the meters of a workload at the samples before and after an instant, with the time from the first to
    /// the instant and to the second, in microseconds. Before a workload is there it has used nothing.
    fn around<T: Copy + Default>(&self, workload: WorkloadId, at: SimTime, of: fn(&Meter) -> T) -> (T, T, i64, i64) {
        let read = |sample: &Sample| sample.meters.iter().find(|meter| meter.workload == workload).map(of);
        let next = self.samples.partition_point(|sample| sample.at <= at);
        let Some(before) = next.checked_sub(1).and_then(|last| self.samples.get(last)) else {
            return (T::default(), T::default(), 0, 1);
        };
        let from = read(before).unwrap_or_default();
        let passed = at.saturating_since(before.at).as_micros();
        match self.samples.get(next).and_then(|after| Some((after.at, read(after)?))) {
            Some((then, to)) => (from, to, passed, then.saturating_since(before.at).as_micros().max(1)),
            None => (from, from, 0, 1),
        }
    }

    /// CPU that a replica would have used that was Ready all the time, in millionths of a CPU times microseconds.
    fn cpu_of_replica(&self, workload: WorkloadId, at: SimTime) -> i128 {
        let (from, to, passed, span) = self.around(workload, at, |metered| metered.cpu_of_replica);
        from + (to - from) * i128::from(passed) / i128::from(span)
    }

    /// CPU that a pod has used, in the same unit.
    pub(super) fn cpu_used(&self, pod: &PodFacts, at: SimTime) -> i128 {
        let spells = pod.serving.iter().filter(|spell| spell.from <= at);
        let used = spells.map(|spell| match spell.until {
            Some((over, cpu)) if over <= at => cpu - spell.cpu_from,
            // Readings at the ends of the spell are exact, those between samples are not.
            until => {
                let most = until.map_or(i128::MAX, |(_, cpu)| cpu);
                self.cpu_of_replica(pod.workload, at).min(most).max(spell.cpu_from) - spell.cpu_from
            }
        });
        used.sum()
    }

    /// Memory that a pod uses, in bytes; `None` where the scenario does not say what requests need.
    pub(super) fn memory(&self, pod: &PodFacts, at: SimTime) -> Option<i64> {
        let next = self.samples.partition_point(|sample| sample.at <= at);
        let sample = self.samples.get(next.checked_sub(1)?)?;
        let replica = sample.meters.iter().find(|meter| meter.workload == pod.workload)?.memory.as_deref()?;
        let answered = self.cpu_used(pod, at) / 1_000_000 / i128::from(replica.cpu_per_request.as_micros().max(1));
        let kept = i128::from(replica.kept_per_million) * answered / 1_000_000;
        let bytes = replica.present.saturating_add(i64::try_from(kept).unwrap_or(i64::MAX));
        Some(replica.limit.map_or(bytes, |limit| bytes.min(limit)))
    }

    /// Requests counted by `of` up to an instant.
    pub(super) fn requests(&self, workload: WorkloadId, at: SimTime, of: fn(&Meter) -> f64) -> f64 {
        let (from, to, passed, span) = self.around(workload, at, of);
        from + (to - from) * (passed as f64 / span as f64)
    }
}
