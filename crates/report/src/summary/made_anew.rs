//! Workloads that were deleted and applied again: two for who runs them, one for who reads of them by name.

use std::collections::BTreeMap;

use crate::domain::WorkloadId;
use nodecast_world::Outcome;
use nodecast_world::record::{Sample, WorkloadSample};

/// For each workload, by number, the first of its kind and name: itself, unless it is one that was deleted and made anew.
pub(crate) fn firsts(outcome: &Outcome) -> Vec<WorkloadId> {
    let mut known = BTreeMap::new();
    let workloads = outcome.record.workloads.iter().enumerate();
    let first = |(index, facts): (usize, &nodecast_world::record::WorkloadFacts)| {
        *known.entry((facts.name, facts.kind.as_str())).or_insert_with(|| WorkloadId::from_index(index))
    };
    workloads.map(first).collect()
}

/// The first of the same kind and name as this workload.
pub(crate) fn first_of(firsts: &[WorkloadId], workload: WorkloadId) -> WorkloadId {
    firsts.get(workload.index()).copied().unwrap_or(workload)
}

/// The workloads of a sample in order of number, those of one kind and name as one, the first of them. Replicas, requests and CPU add up. The
/// mean response time counts each by its requests; the 99th percentile is the larger one, which the true one does not exceed.
pub(crate) fn merged(sample: &Sample, firsts: &[WorkloadId]) -> Vec<WorkloadSample> {
    let mut found: Vec<WorkloadSample> = Vec::with_capacity(sample.workloads.len());
    for workload in &sample.workloads {
        let workload_sample = WorkloadSample { workload: first_of(firsts, workload.workload), ..*workload };
        match found.binary_search_by_key(&workload_sample.workload, |known| known.workload) {
            Ok(at) => found[at] = together(&found[at], &workload_sample),
            Err(at) => found.insert(at, workload_sample),
        }
    }
    found
}

fn together(one: &WorkloadSample, other: &WorkloadSample) -> WorkloadSample {
    let rate = one.requests_per_second + other.requests_per_second;
    let mean = match (one.latency_mean_seconds, other.latency_mean_seconds) {
        (Some(a), Some(b)) if rate > 0.0 => Some((a * one.requests_per_second + b * other.requests_per_second) / rate),
        (a, b) => a.or(b),
    };
    let larger = match (one.latency_p99_seconds, other.latency_p99_seconds) {
        (Some(a), Some(b)) => Some(a.max(b)),
        (a, b) => a.or(b),
    };
    let memory = match (one.memory_used_bytes, other.memory_used_bytes) {
        (Some(a), Some(b)) => Some(a + b),
        (a, b) => a.or(b),
    };
    WorkloadSample {
        workload: one.workload,
        replicas_desired: one.replicas_desired + other.replicas_desired,
        replicas_ready: one.replicas_ready + other.replicas_ready,
        requests_per_second: rate,
        cpu_used_milli: one.cpu_used_milli + other.cpu_used_milli,
        memory_used_bytes: memory,
        latency_mean_seconds: mean,
        latency_p99_seconds: larger,
    }
}

#[cfg(test)]
mod tests {
    use super::together;
    use crate::domain::WorkloadId;
    use nodecast_world::record::WorkloadSample;

    #[test]
    fn response_times_count_by_requests() {
        let sample = |requests: f64, latency: Option<f64>| WorkloadSample {
            workload: WorkloadId::from_index(0),
            replicas_desired: 2,
            replicas_ready: 1,
            requests_per_second: requests,
            cpu_used_milli: 50.0,
            memory_used_bytes: Some(1 << 20),
            latency_mean_seconds: latency,
            latency_p99_seconds: latency,
        };
        let both = together(&sample(30.0, Some(1.0)), &sample(10.0, Some(3.0)));
        assert_eq!((both.replicas_desired, both.replicas_ready), (4, 2));
        assert_eq!((both.requests_per_second, both.cpu_used_milli), (40.0, 100.0));
        assert_eq!((both.latency_mean_seconds, both.latency_p99_seconds), (Some(1.5), Some(3.0)));
        let after = together(&sample(0.0, None), &sample(10.0, Some(3.0)));
        assert_eq!((after.latency_mean_seconds, after.latency_p99_seconds), (Some(3.0), Some(3.0)));
    }
}
