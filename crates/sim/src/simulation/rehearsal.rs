//! Rehearsal: size of a run, from its first events and from the demand of the time after them.
//!
//! What controllers do decides how many pods and events a run has, so nothing but the simulation can tell. A rehearsal simulates the
//! first events, and extrapolates their growth to the end of the run.

use super::Simulation;
use super::demand::Demand;
use super::forecast::RunSizeEstimate;
use crate::actors::Setup;
use crate::domain::SimTime;
use crate::world::World;

/// Events of the simulation within which a cluster settles; they do not count as growth.
const SETTLING: u64 = 10_000;
/// Further events that are simulated at least.
const OBSERVED: u64 = 40_000;
/// Further events that are simulated at most.
const OBSERVED_MAX: u64 = 190_000;
/// Between these numbers a rehearsal ends after a day: most loads repeat daily.
const PERIOD: SimTime = SimTime::from_micros(86_400_000_000);
/// Share of new pods from which on demand explains the evictions as well.
const EXPLAINED: f64 = 0.1;

// Reports of all policies of the shipped scenarios (2026-11-30) have these bytes: 172 for a line of events.jsonl and 25 on the page, 175 for
// a pod, 60 for a sample of a workload, 100 for a sample of the cluster, 65 for a sample of a metric.
const BYTES_AN_EVENT: u64 = 197;
const BYTES_A_POD: u64 = 175;
const BYTES_A_WORKLOAD_SAMPLE: u64 = 60;
const BYTES_A_SAMPLE: u64 = 100;
const BYTES_A_METRIC_SAMPLE: u64 = 65;
/// The page without events, the summary, and drawings.
const BYTES_AT_LEAST: u64 = 160_000;

/// Size of the simulated part of a run.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Size {
    until: SimTime,
    pods: f64,
    events: f64,
}

impl Size {
    fn new(until: SimTime, world: &World) -> Self {
        let record = world.record();
        Self { until, pods: record.pods.len() as f64, events: record.events.len() as f64 }
    }
}

/// Pods and events at the end of a run, given its size when the cluster had settled and at the end of the rehearsal. Pods beyond those
/// that demand creates (evicted ones that are created again) follow demand, or come at a constant rate if there is little of it.
/// VerticalPodAutoscalers evict less as they learn: then pods grow with the square root of time.
fn extrapolated(settled: Size, last: Size, end: SimTime, demand: &Demand) -> (f64, f64) {
    let [elapsed, rest] = [last.until - settled.until, end - last.until].map(|span| span.as_secs_f64());
    if rest <= 0.0 || elapsed <= 0.0 {
        return (last.pods, last.events);
    }
    let [pods, events] = [last.pods - settled.pods, last.events - settled.events];
    let explained = demand.pods_created(last.until) - demand.pods_created(settled.until);
    let expected = demand.pods_created(end) - demand.pods_created(last.until);
    let root = |at: SimTime| at.as_secs_f64().sqrt();
    let time = match demand.has_vertical_autoscalers() {
        true => (root(end) - root(last.until)) / (root(last.until) - root(settled.until)),
        false => rest / elapsed,
    };
    // Autoscalers may follow demand less closely than assumed.
    let more_pods = match explained > EXPLAINED * pods {
        true => pods * expected / explained,
        false => expected + (pods - explained).max(0.0) * time,
    };
    let more_events = match pods >= 1.0 {
        true => more_pods * events / pods,
        false => events * time + more_pods * last.events / last.pods.max(1.0),
    };
    (last.pods + more_pods, last.events + more_events)
}

impl RunSizeEstimate {
    /// Estimate from a rehearsal. Advances `simulation`, which must be at its start.
    pub fn from_rehearsal(simulation: &mut Simulation<'_>, setup: &Setup<'_>) -> Self {
        let (scenario, policy) = (setup.scenario, setup.policy);
        let end = SimTime::ZERO + scenario.duration;
        let until = simulation.step_while(&|events, _| events < SETTLING);
        let settled = Size::new(until, &simulation.components().sim.world);
        let until = simulation.step_while(&|events, now| events < OBSERVED || (events < OBSERVED_MAX && now < PERIOD));
        let world = &simulation.components().sim.world;
        let last = Size::new(until, world);
        let demand = Demand::new(scenario, policy);
        let (pods, events) = extrapolated(settled, last, end, &demand);
        let record = world.record();
        let ready =
            record.samples.iter().map(|sample| sample.nodes_spot + sample.nodes_on_demand + sample.nodes_fargate);
        let nodes = f64::from(ready.max().unwrap_or(0)) * demand.peak_growth(until);
        let workloads = record.samples.last().map_or(0, |sample| sample.workloads.len() as u64);
        let samples = super::forecast::samples(scenario.duration, setup.sample_interval);
        let (pods, events) = (pods as u64, events as u64);
        let workload_samples = samples.saturating_mul(workloads).max(1);
        let report_bytes = [
            (pods, BYTES_A_POD),
            (events, BYTES_AN_EVENT),
            (workload_samples, BYTES_A_WORKLOAD_SAMPLE),
            (samples, BYTES_A_SAMPLE),
            (samples.saturating_mul(record.metrics.len() as u64), BYTES_A_METRIC_SAMPLE),
        ];
        let report_bytes = report_bytes
            .into_iter()
            .fold(BYTES_AT_LEAST, |sum, (count, each)| sum.saturating_add(count.saturating_mul(each)));
        let memory_bytes = super::forecast::memory(pods, workload_samples);
        Self { pods, nodes: nodes as u64, events, workload_samples, report_bytes, memory_bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::{Size, extrapolated};
    use crate::domain::{SimDuration, SimTime};
    use crate::simulation::demand::Demand;

    fn at(minutes: i64) -> SimTime {
        SimTime::ZERO + SimDuration::from_secs(minutes * 60)
    }

    fn size(minutes: i64, pods: f64, events: f64) -> Size {
        Size { until: at(minutes), pods, events }
    }

    #[test]
    fn complete_rehearsal_is_the_answer() {
        let last = size(90, 31.0, 205.0);
        assert_eq!(extrapolated(size(10, 12.0, 80.0), last, at(90), &Demand::default()), (31.0, 205.0));
    }

    #[test]
    fn growth_without_demand_continues_at_its_rate() {
        let (pods, events) = extrapolated(size(20, 40.0, 300.0), size(60, 60.0, 460.0), at(180), &Demand::default());
        assert_eq!((pods, events), (120.0, 940.0));
    }
}
