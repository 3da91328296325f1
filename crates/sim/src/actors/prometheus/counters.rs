//! Counters of answered requests: whole numbers, shared out among the pods that answered them.

use rustc_hash::FxHashMap;

use super::super::load_loop::LoadLoop;
use crate::domain::{PodId, WorkloadId};

/// The model answers parts of requests; what is this close below a whole number is one.
const ROUNDING: f64 = 0.01;

/// The requests that each pod of some workloads has answered.
#[derive(Debug, Default)]
pub(in crate::actors) struct RequestCounters {
    workloads: FxHashMap<WorkloadId, Counter>,
}

#[derive(Debug, Default)]
struct Counter {
    total: u64,
    of_pod: FxHashMap<PodId, u64>,
    /// The pods that answer at present, in order of creation.
    ready: Vec<PodId>,
    /// Whose turn it is.
    turn: usize,
}

impl RequestCounters {
    /// Shares out what the workload has answered since the last time.
    pub(in crate::actors) fn settle(&mut self, workload: WorkloadId, loads: &[LoadLoop]) {
        let this_load = loads.iter().filter(|load| load.id == Some(workload));
        let answered: f64 = this_load.map(|load| load.model.completed()).sum();
        let counter = self.workloads.entry(workload).or_default();
        let total = libm::floor(answered + ROUNDING) as u64;
        counter.share_out(total.saturating_sub(counter.total));
    }

    /// Other pods answer from now on. What was answered until now must have been shared out.
    pub(in crate::actors) fn set_ready(&mut self, workload: WorkloadId, ready: Vec<PodId>) {
        let counter = self.workloads.entry(workload).or_default();
        counter.turn = 0;
        counter.ready = ready;
    }

    /// Requests that the pod has answered.
    pub(in crate::actors) fn of_pod(&self, workload: WorkloadId, pod: PodId) -> u64 {
        self.workloads.get(&workload).and_then(|counter| counter.of_pod.get(&pod)).copied().unwrap_or(0)
    }

    /// Requests that the workload has answered.
    pub(in crate::actors) fn total(&self, workload: WorkloadId) -> u64 {
        self.workloads.get(&workload).map_or(0, |counter| counter.total)
    }
}

impl Counter {
    fn share_out(&mut self, more: u64) {
        if more == 0 || self.ready.is_empty() {
            return;
        }
        self.total += more;
        let count = self.ready.len() as u64;
        let (each, rest) = (more / count, (more % count) as usize);
        for (position, &pod) in self.ready.iter().enumerate() {
            // The rest goes to the pods whose turn it is.
            let after_turn = (position + self.ready.len() - self.turn) % self.ready.len();
            let item = each + u64::from(after_turn < rest);
            if item > 0 {
                *self.of_pod.entry(pod).or_default() += item;
            }
        }
        self.turn = (self.turn + rest) % self.ready.len();
    }
}

#[cfg(test)]
mod tests {
    use super::Counter;
    use crate::domain::PodId;

    #[test]
    fn request_counters_rotate_and_sum_to_total() {
        let mut counter = Counter { ready: vec![PodId(0), PodId(1), PodId(2)], ..Counter::default() };
        for more in [1, 1, 5, 0, 3, 8] {
            counter.share_out(more);
        }
        assert_eq!(counter.total, 18);
        assert_eq!([PodId(0), PodId(1), PodId(2)].map(|pod| counter.of_pod[&pod]), [6, 6, 6]);
    }

    #[test]
    fn without_anybody_to_answer_nothing_is_counted() {
        let mut counter = Counter::default();
        counter.share_out(5);
        assert_eq!(counter.total, 0);
    }
}
