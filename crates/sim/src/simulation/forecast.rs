//! How large a run will be, told before it begins: pods, nodes, events, and bytes of memory and of the report.
//!
//! An order of magnitude. What controllers will do is not known; what is stated of the objects and how long the run is says enough to
//! tell a run of megabytes from one of gigabytes.

use serde::Serialize;

use crate::domain::SimDuration;
use crate::domain::words::counted;
use crate::manifests::Manifests;
use nodecast_replicas::workloads::CronCalendar;
use nodecast_settings::{Action, PolicyVariant, Scenario};

/// What a run is expected to come to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, schemars::JsonSchema)]
pub struct RunSizeEstimate {
    /// Pods in all.
    pub pods: u64,
    /// Nodes at once, where pods fill nodes of eight CPUs and 32 GiB.
    pub nodes: u64,
    /// Lines of events.jsonl.
    pub events: u64,
    /// Lines of workloads.csv.
    pub workload_samples: u64,
    /// Bytes of the report.
    pub report_bytes: u64,
    /// Bytes of memory.
    pub memory_bytes: u64,
}

/// Lines that workloads.csv has at most, unless `output.sample_every` asks for more.
const WORKLOAD_SAMPLES_MAX: u64 = 1_000_000;
/// Above these a run is called large.
const PODS_LARGE: u64 = 1_000_000;
const MEMORY_LARGE: u64 = 4 << 30;
const REPORT_LARGE: u64 = 1 << 30;

// What fifty services under autoscalers came to in one and in three days (2026-11-25, release build): 8.5 events a pod, lines of 172, 170 and
// 78 bytes and as much again for what autoscalers read. Memory is by three scenarios of docs/scale.md (the same day and build): thirty days of
// demand in waves took 770 bytes more for each pod than one day of it, thirty of `plain-day` 300, both with as many samples; 10,000
// Deployments of one pod took 240 bytes for each of their million samples.
const EVENTS_A_POD: u64 = 9;
const BYTES_A_POD: u64 = 175;
const BYTES_AN_EVENT: u64 = 170;
const BYTES_A_SAMPLE: u64 = 145;
const BYTES_OF_A_PAGE: u64 = 1 << 20;
const MEMORY_AT_LEAST: u64 = 60 << 20;
const MEMORY_A_POD: u64 = 600;
const MEMORY_A_SAMPLE: u64 = 240;
/// How often in a day a workload is taken to go from its least to its most and back.
const ROUNDS_A_DAY: f64 = 3.0;
/// Replicas that a workload is taken to gain at most: limits are often stated where nobody comes.
const GAIN_MAX: u64 = 1_000;

impl RunSizeEstimate {
    /// What a policy of a scenario will come to with samples so far apart.
    pub fn new(scenario: &Scenario, policy: &PolicyVariant, sample_interval: SimDuration) -> Self {
        let all = applied(scenario, policy);
        let days = scenario.duration.as_secs_f64() / 86_400.0;
        let lasting: u64 = all.iter().map(|item| lasting(item)).sum();
        let gained = all.iter().map(|item| gains(item)).sum::<u64>() as f64 * ROUNDS_A_DAY * days;
        let jobs: u64 = all.iter().map(|item| jobs(item, scenario)).sum();
        let recorded =
            scenario.pods.as_ref().map_or(0, |trace| trace.rows.iter().map(|row| u64::from(row.count)).sum());
        let pods = lasting.saturating_add(gained as u64).saturating_add(jobs).saturating_add(recorded);
        let samples = samples(scenario.duration, sample_interval);
        let workload_samples = samples.saturating_mul(workloads(&all));
        let events = pods.saturating_mul(EVENTS_A_POD);
        let times = |count: u64, each: u64| count.saturating_mul(each);
        Self {
            pods,
            nodes: nodes(&all),
            events,
            workload_samples,
            report_bytes: BYTES_OF_A_PAGE
                .saturating_add(times(pods, BYTES_A_POD))
                .saturating_add(times(events, BYTES_AN_EVENT))
                .saturating_add(times(workload_samples, BYTES_A_SAMPLE)),
            memory_bytes: memory(pods, workload_samples),
        }
    }

    /// What is to be said before a run that is large, with what would make it smaller.
    pub fn warning(&self) -> Option<String> {
        let large = self.pods > PODS_LARGE || self.memory_bytes > MEMORY_LARGE || self.report_bytes > REPORT_LARGE;
        large.then(|| {
            format!(
                "large run: {self}. To reduce it, shorten `duration`, lower replica counts, or raise `output.sample_every`"
            )
        })
    }
}

impl std::fmt::Display for RunSizeEstimate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "about {}, {} at once, {}, {} of memory, a report of {}",
            counted(self.pods, "pod", "pods"),
            counted(self.nodes, "node", "nodes"),
            counted(self.events, "event", "events"),
            bytes(self.memory_bytes),
            bytes(self.report_bytes)
        )
    }
}

/// Bytes of memory of a run.
pub(super) fn memory(pods: u64, workload_samples: u64) -> u64 {
    MEMORY_AT_LEAST
        .saturating_add(pods.saturating_mul(MEMORY_A_POD))
        .saturating_add(workload_samples.saturating_mul(MEMORY_A_SAMPLE))
}

/// Bytes with a unit in which they are few.
fn bytes(count: u64) -> String {
    let units = [("GB", 1_000_000_000), ("MB", 1_000_000)];
    let (unit, size) = units.into_iter().find(|(_, size)| count >= *size).unwrap_or(("kB", 1_000));
    format!("{} {unit}", count.div_ceil(size))
}

/// How far samples are apart: what is stated, or at most some two thousand samples, whole seconds apart, at least five, and in a run of many
/// workloads as far as keeps workloads.csv to a million lines; then with what is to be said of it.
pub(super) fn sample_interval(scenario: &Scenario, policy: &PolicyVariant) -> (SimDuration, Option<String>) {
    if let Some(stated) = scenario.output.sample_every {
        return (stated, None);
    }
    let by_length = SimDuration::from_secs((scenario.duration.as_secs().div_euclid(2_000) + 1).max(5));
    let workloads = workloads(&applied(scenario, policy));
    let samples = (WORKLOAD_SAMPLES_MAX / workloads.max(1)).max(1);
    let by_size = scenario.duration.as_secs().unsigned_abs().div_ceil(samples);
    let by_size = SimDuration::from_secs(i64::try_from(by_size).unwrap_or(i64::MAX));
    if by_size <= by_length {
        return (by_length, None);
    }
    let note = format!(
        "samples are {by_size} apart and not {by_length}, which keeps workloads.csv of {workloads} workloads to a million lines; `output.sample_every` takes another"
    );
    (by_size, Some(note))
}

pub(super) fn samples(duration: SimDuration, interval: SimDuration) -> u64 {
    u64::try_from(duration.as_micros() / interval.as_micros().max(1)).unwrap_or(0) + 1
}

/// What is applied under the policy at any time.
pub(super) fn applied<'a>(scenario: &'a Scenario, policy: &'a PolicyVariant) -> Vec<&'a Manifests> {
    let later = scenario.timeline.iter().filter_map(|step| match &step.action {
        Action::Apply(manifests) => Some(manifests.as_ref()),
        _ => None,
    });
    std::iter::once(policy.manifests.as_ref()).chain(later).collect()
}

/// Workloads that are sampled.
fn workloads(all: &[&Manifests]) -> u64 {
    all.iter()
        .map(|manifests| (manifests.deployments.len() + manifests.stateful_sets.len() + manifests.jobs.len()) as u64)
        .sum()
}

/// Pods that are there from the start.
pub(super) fn lasting(manifests: &Manifests) -> u64 {
    let deployments = manifests.deployments.iter().map(|deployment| deployment.replicas.unwrap_or(1));
    let sets = manifests.stateful_sets.iter().map(|stateful_set| stateful_set.replicas.unwrap_or(1));
    deployments.chain(sets).map(u64::from).sum::<u64>() + manifests.pods.len() as u64
}

/// Replicas that autoscalers may add.
fn gains(manifests: &Manifests) -> u64 {
    let hpas =
        manifests.autoscalers.iter().map(|autoscaler| (autoscaler.min_replicas.unwrap_or(1), autoscaler.max_replicas));
    let gain = |(least, most): (i32, i32)| u64::try_from(most.saturating_sub(least)).unwrap_or(0).min(GAIN_MAX);
    hpas.map(gain).sum()
}

/// Pods of Jobs.
pub(super) fn jobs(manifests: &Manifests, scenario: &Scenario) -> u64 {
    let pods = |spec: &crate::domain::workload::JobSpec| u64::from(spec.completions.unwrap_or(spec.parallelism));
    let alone: u64 = manifests.jobs.iter().map(|job| pods(&job.spec)).sum();
    let by_calendar = manifests.cron_jobs.iter().filter(|cron_job| !cron_job.suspended);
    let again = by_calendar.map(|this_calendar| {
        let calendar = CronCalendar::new(&this_calendar.schedule, this_calendar.time_zone.as_deref());
        calendar.map_or(0, |calendar| firings(&calendar, scenario)).saturating_mul(pods(&this_calendar.job))
    });
    alone + again.sum::<u64>()
}

/// How often a calendar fires in the run; of a long one, by the first of them.
fn firings(calendar: &CronCalendar, scenario: &Scenario) -> u64 {
    const COUNTED: u64 = 500;
    let span = scenario.duration.as_secs_f64();
    let (mut at, mut count) = (scenario.start, 0);
    while let Some(next) = calendar.next_after(at) {
        let since = next.as_second() - scenario.start.as_second();
        if since as f64 > span {
            return count;
        }
        (at, count) = (next, count + 1);
        if count == COUNTED {
            return (span / since.max(1) as f64 * COUNTED as f64) as u64;
        }
    }
    count
}

/// Nodes of eight CPUs and 32 GiB that hold what is there from the start; at most one for each pod, however large it is.
fn nodes(all: &[&Manifests]) -> u64 {
    let (mut cpu, mut memory, mut pods) = (0_u64, 0_u64, 0_u64);
    let mut add = |count: u32, pod: &crate::domain::PodSpec| {
        pods = pods.saturating_add(u64::from(count));
        let requests = pod.requests();
        cpu = cpu.saturating_add(u64::from(count) * requests.cpu_milli().unsigned_abs());
        memory = memory.saturating_add(u64::from(count).saturating_mul(requests.memory_bytes().unsigned_abs()));
    };
    for manifests in all {
        manifests.deployments.iter().for_each(|deployment| add(deployment.replicas.unwrap_or(1), &deployment.template));
        manifests
            .stateful_sets
            .iter()
            .for_each(|stateful_set| add(stateful_set.replicas.unwrap_or(1), &stateful_set.template));
        manifests.pods.iter().for_each(|pod| add(1, &pod.spec));
    }
    cpu.div_ceil(8_000).max(memory.div_ceil(32 << 30)).min(pods)
}

#[cfg(test)]
mod tests {
    use super::{RunSizeEstimate, bytes, sample_interval, samples};
    use crate::catalog::Catalog;
    use crate::domain::SimDuration;
    use nodecast_scenario::source::InMemoryFiles;

    #[test]
    fn many_deployments_reduce_sampling_rate() -> Result<(), Box<dyn std::error::Error>> {
        let deployment = |number: u32| {
            format!(
                "apiVersion: apps/v1
kind: Deployment
metadata: {{ name: d{number} }}
spec:
  replicas: 1
  selector: {{ matchLabels: {{ app: d{number} }} }}
  template:
    metadata: {{ labels: {{ app: d{number} }} }}
    spec: {{ containers: [{{ name: main, image: main, resources: {{ requests: {{ cpu: 100m, memory: 128Mi }} }} }}] }}
"
            )
        };
        let objects = (0..10_000).map(deployment).collect::<Vec<_>>().join("---\n");
        let scenario = "name: many\nregion: us-east-1\nduration: 1d\nmanifests: [objects.yaml]\npolicies: [{ name: only, autoscaler: static }]\n";
        let held = InMemoryFiles::from_texts([("scenario.yaml", scenario), ("objects.yaml", objects.as_str())]);
        let (scenario, _) = nodecast_scenario::of_texts("scenario.yaml", &held, Catalog::embedded()?)?;
        let policy = &scenario.policies[0];
        let (interval, note) = sample_interval(&scenario, policy);
        assert_eq!(interval, SimDuration::from_secs(864));
        assert!(note.is_some_and(|note| note.contains("samples are 14m24s apart and not 44s")));
        let forecast = RunSizeEstimate::new(&scenario, policy, interval);
        assert_eq!((forecast.pods, forecast.workload_samples), (10_000, 1_010_000));
        Ok(())
    }

    #[test]
    fn run_size_estimate_caps_nodes_at_pods() -> Result<(), Box<dyn std::error::Error>> {
        let objects = "apiVersion: apps/v1
kind: Deployment
metadata: { name: huge }
spec:
  replicas: 5
  selector: { matchLabels: { app: huge } }
  template:
    metadata: { labels: { app: huge } }
    spec: { containers: [{ name: main, image: main, resources: { requests: { cpu: 4000, memory: 128Mi } } }] }
";
        let scenario = "name: huge\nregion: us-east-1\nduration: 1d\nmanifests: [objects.yaml]\npolicies: [{ name: only, autoscaler: static }]\n";
        let held = InMemoryFiles::from_texts([("scenario.yaml", scenario), ("objects.yaml", objects)]);
        let (scenario, _) = nodecast_scenario::of_texts("scenario.yaml", &held, Catalog::embedded()?)?;
        assert_eq!(RunSizeEstimate::new(&scenario, &scenario.policies[0], SimDuration::from_secs(60)).nodes, 5);
        Ok(())
    }

    #[test]
    fn only_large_runs_get_size_warning() {
        let small = RunSizeEstimate {
            pods: 3_411,
            nodes: 7,
            events: 28_963,
            workload_samples: 98_200,
            report_bytes: 21_000_000,
            memory_bytes: 78_000_000,
        };
        assert_eq!(small.warning(), None);
        let large = RunSizeEstimate { pods: 2_000_000, ..small }.warning().unwrap_or_default();
        assert!(large.contains("output.sample_every") && large.contains("21 MB"), "{large}");
        assert_eq!((bytes(1), bytes(5_300_000_000)), ("1 kB".to_owned(), "6 GB".to_owned()));
        assert_eq!(samples(SimDuration::from_secs(60), SimDuration::from_secs(5)), 13);
    }
}
