//! metrics-server: reads every node at its resolution, keeps the last points, and answers with the mean use between two
//! of them. What it says is old by half a window, half a resolution and the age of what the kubelet had.
//!
//! Source: metrics-server `pkg/storage`; resolution 15 s as its manifest ships it.

use std::collections::BTreeSet;

use super::context::Context;
use super::event::{Event, class};
use super::load_loop::{self, LoadLoop};
use super::setup::{Action, Setup, Step};
use crate::domain::workload::ObjectName;
use crate::domain::{NodeId, PodId, ResourceName, SimDuration, SimTime, WorkloadId};
use crate::policy::replicas::hpa::Sample;
use crate::world::{NodePhase, Pod, PodPhase};

/// Time between two readings of a node.
pub(super) const RESOLUTION: SimDuration = SimDuration::from_secs(15);
/// The kubelet refreshes what it knows every 10 to 15 s, so a reading is up to this old.
const OLDEST_READING: SimDuration = SimDuration::from_millis(12_500);
/// A container younger than this at its first reading has no start that counts as a point.
const FRESH_CONTAINER: SimDuration = SimDuration::from_secs(10);

/// The points kept for every pod that some autoscaler will ever ask about.
#[derive(Debug, Default)]
pub(super) struct MetricsServer {
    scaled: BTreeSet<ObjectName>,
    /// What is known of each workload, once one of its pods was read.
    workloads: Vec<Option<Metered>>,
    /// How old a reading of each node is.
    ages: Vec<SimDuration>,
    pods: Vec<Option<PodMetrics>>,
    /// What one worker of a queue uses, by workload.
    workers: Vec<WorkerUse>,
}

/// What reading the pods of a workload takes.
#[derive(Clone, Copy, Debug)]
struct Metered {
    /// Whether some autoscaler will ever ask.
    scaled: bool,
    /// The position of its requests.
    load: Option<usize>,
}

/// CPU that one worker of a workload uses for messages.
#[derive(Clone, Copy, Debug)]
struct WorkerUse {
    workload: WorkloadId,
    /// Used up to `since` by a worker that was always Ready, in millionths of a CPU times microseconds.
    used: i128,
    since: SimTime,
    /// Used since then, in millionths of a CPU.
    rate: i64,
}

impl WorkerUse {
    fn until(&self, now: SimTime) -> i128 {
        self.used + i128::from(self.rate) * i128::from(now.saturating_since(self.since).as_micros())
    }
}

#[derive(Clone, Copy, Debug)]
struct PodMetrics {
    /// What a replica that was always Ready had used when this one last became Ready; `None` while it is not.
    base: Option<i128>,
    /// What the pod used in earlier spells of readiness.
    used_before: i128,
    /// The last points, newest last.
    points: [Option<Point>; 3],
}

#[derive(Clone, Copy, Debug)]
struct Point {
    /// When the kubelet read its counters.
    at: SimTime,
    /// From when on metrics-server knows.
    visible: SimTime,
    /// CPU used since the pod's start, in millionths of a CPU times microseconds.
    used: i128,
    /// Memory in use, in bytes, where the scenario says what requests need.
    memory: Option<i64>,
}

impl MetricsServer {
    pub(super) fn new(setup: &Setup) -> Self {
        let target = |step: &Step| {
            let spec = match &step.action {
                Action::Autoscale(spec) => spec,
                Action::ScaleObject(plan) => plan.autoscaler.as_ref()?,
                _ => return None,
            };
            Some(ObjectName { namespace: spec.namespace, name: spec.target.name })
        };
        Self { scaled: setup.timeline.iter().filter_map(target).collect(), ..Self::default() }
    }

    /// What reading a pod of `workload` takes. Loads know their workloads before these have pods.
    fn metered(&mut self, workload: WorkloadId, name: impl FnOnce() -> ObjectName, loads: &[LoadLoop]) -> Metered {
        if self.workloads.len() <= workload.index() {
            self.workloads.resize(workload.index() + 1, None);
        }
        let scaled = &self.scaled;
        *self.workloads[workload.index()].get_or_insert_with(|| Metered {
            scaled: scaled.contains(&name()),
            load: loads.iter().position(|load| load.id == Some(workload)),
        })
    }

    fn entry(&mut self, pod: PodId) -> &mut PodMetrics {
        if self.pods.len() <= pod.index() {
            self.pods.resize(pod.index() + 1, None);
        }
        self.pods[pod.index()].get_or_insert(PodMetrics { base: None, used_before: 0, points: [None; 3] })
    }

    /// One worker of `workload` uses `rate` millionths of a CPU for messages from now on.
    pub(super) fn set_worker_use(&mut self, workload: WorkloadId, rate: i64, now: SimTime) {
        let fresh = WorkerUse { workload, used: 0, since: now, rate };
        match self.workers.iter_mut().find(|own| own.workload == workload) {
            Some(own) => *own = WorkerUse { used: own.until(now), ..fresh },
            None => self.workers.push(fresh),
        }
    }

    /// CPU that a replica of `workload` that was always Ready would have used by `now`, for requests and for messages.
    fn used_by_one<'l>(
        &self,
        workload: WorkloadId,
        mut loads: impl Iterator<Item = &'l LoadLoop>,
        now: SimTime,
    ) -> i128 {
        let load = loads.find(|load| load.id == Some(workload));
        let workers = self.workers.iter().filter(|own| own.workload == workload);
        load.map_or(0, |load| load.cpu_of_one_replica(now)) + workers.map(|own| own.until(now)).sum::<i128>()
    }

    /// The pod takes its share of the load from now on.
    pub(super) fn pod_ready(&mut self, pod: PodId, workload: WorkloadId, loads: &mut [LoadLoop], now: SimTime) {
        load_loop::count_up_to(loads, now);
        let total = self.used_by_one(workload, loads.iter(), now);
        self.entry(pod).base = Some(total);
    }

    /// The pod takes no load any more.
    pub(super) fn pod_unready(&mut self, pod: PodId, workload: WorkloadId, loads: &mut [LoadLoop], now: SimTime) {
        load_loop::count_up_to(loads, now);
        let total = self.used_by_one(workload, loads.iter(), now);
        let entry = self.entry(pod);
        if let Some(base) = entry.base.take() {
            entry.used_before += total - base;
        }
    }

    /// The pod's containers start anew: their counters begin at zero, and two readings are needed again.
    pub(super) fn container_restarted(&mut self, pod: PodId) {
        *self.entry(pod) = PodMetrics { base: None, used_before: 0, points: [None; 3] };
    }

    /// What metrics-server says of a pod's memory at `now`: that of the last reading which it knows, in thousandths of a
    /// byte.
    pub(super) fn memory_sample(&self, pod: PodId, now: SimTime) -> Option<Sample> {
        let entry = self.pods.get(pod.index())?.as_ref()?;
        let newest = entry.points.iter().rev().flatten().find(|point| point.visible <= now)?;
        Some(Sample { milli: newest.memory?.saturating_mul(1_000), at: newest.at, window: RESOLUTION })
    }

    /// What metrics-server says of a pod at `now`: its mean CPU use between the last two points that it knows. A pod read
    /// once counts from its start if it was then at least 10 s and less than one resolution old.
    pub(super) fn sample(&self, pod: PodId, started: Option<SimTime>, now: SimTime) -> Option<Sample> {
        let entry = self.pods.get(pod.index())?.as_ref()?;
        let mut known = entry.points.iter().rev().flatten().filter(|point| point.visible <= now);
        let newest = known.next()?;
        let (from, used) = match known.next() {
            Some(older) => (older.at, newest.used - older.used),
            None => {
                let age = newest.at.saturating_since(started?);
                if age < FRESH_CONTAINER || age >= RESOLUTION {
                    return None;
                }
                (started?, newest.used)
            }
        };
        let window = newest.at - from;
        let milli = match i64::try_from(used) {
            // Nearly always it fits in 64 bits and the window is one resolution: by a constant it divides many times as fast.
            Ok(used) if window == RESOLUTION => used / (RESOLUTION.as_micros() * 1_000),
            Ok(used) => used / window.as_micros().max(1) / 1_000,
            Err(_) => i64::try_from(used / i128::from(window.as_micros().max(1)) / 1_000).unwrap_or(i64::MAX),
        };
        Some(Sample { milli, at: newest.at, window })
    }
}

impl PodMetrics {
    /// CPU that the pod has used, in millionths of a CPU times microseconds, given what a replica that was always Ready has.
    fn used(&self, total: i128) -> i128 {
        self.used_before + self.base.map_or(0, |base| total - base)
    }

    fn keep(&mut self, point: Point) {
        let [_, second, third] = &self.points;
        self.points = [*second, *third, Some(point)];
    }
}

/// Memory of a pod that has used so much CPU, in bytes, at most its limit: at that it is killed.
fn memory_in_use(load: &LoadLoop, pod: &Pod, used: i128) -> Option<i64> {
    let memory = load.memory_of(used)?;
    Some(pod.spec.limit(ResourceName::MEMORY).map_or(memory, |limit| memory.min(limit)))
}

/// The memory that a pod needs and its limit, in bytes; `None` if the scenario does not say what requests need, or a container
/// has no limit.
pub(super) fn memory_and_limit(context: &mut Context<'_>, now: SimTime, pod: PodId) -> Option<(i64, i64)> {
    load_loop::count_up_to(&mut context.loads, now);
    let state = context.world.pod(pod);
    let limit = state.spec.limit(ResourceName::MEMORY)?;
    let load = context.loads.iter().find(|load| load.id == Some(state.workload))?;
    let total = context.metrics.used_by_one(state.workload, std::iter::once(load), now);
    let used = context.metrics.entry(pod).used(total);
    Some((load.memory_of(used)?, limit))
}

/// A node has registered: it is read from now on, at a phase of its own.
pub(super) fn node_registered(context: &mut Context<'_>, node: NodeId) {
    let phase = context.streams.nth("metrics-phase", "", u64::from(node.0)).span_up_to(RESOLUTION);
    let ages = &mut context.metrics.ages;
    if ages.len() <= node.index() {
        ages.resize(node.index() + 1, SimDuration::ZERO);
    }
    ages[node.index()] = context.streams.nth("metrics-age", "", u64::from(node.0)).span_up_to(OLDEST_READING);
    context.queue.schedule_in(phase, class::METRICS, Event::MetricsTick(node));
}

/// A node is read: the pods that an autoscaler asks about, now or later, get a new point.
pub(super) fn tick(context: &mut Context<'_>, now: SimTime, node: NodeId) {
    load_loop::count_up_to(&mut context.loads, now);
    let state = context.world.node(node);
    if state.phase != NodePhase::Registered {
        return;
    }
    let (metrics, loads) = (&mut context.metrics, &context.loads);
    let visible = now + metrics.ages[node.index()];
    for &pod in &state.pods {
        let running = context.world.pod(pod);
        let workload = running.workload;
        if running.phase != PodPhase::Running {
            continue;
        }
        let metered = metrics.metered(workload, || context.world.workload(workload).name, loads);
        if metered.scaled {
            let load = metered.load.map(|position| &loads[position]);
            let total = metrics.used_by_one(workload, load.into_iter(), now);
            let entry = metrics.entry(pod);
            let used = entry.used(total);
            let memory = load.and_then(|load| memory_in_use(load, running, used));
            entry.keep(Point { at: now, visible, used, memory });
        }
    }
    context.queue.schedule_in(RESOLUTION, class::METRICS, Event::MetricsTick(node));
}
