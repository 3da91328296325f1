//! metrics-server: reads all nodes at every tick of its resolution, keeps the last points, and answers with the mean use between
//! two of them. What it says is old by half a window, half a resolution and the age of what the kubelet had.
//!
//! A node's counters are taken here when the kubelet refreshes them, the age of its reading before the tick at which they are
//! read, and known from the tick on. The ticks keep to their beat.
//!
//! Deviation: all nodes answer at the tick itself. The real program queries them over up to four seconds, in random
//! order, and answers with their readings once it has the last.
//!
//! Source: metrics-server `pkg/server/server.go`, `pkg/storage`; resolution 15 s as its manifest ships it.

mod settled;

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use settled::{NodeReadings, Place, Settled};

use super::cpu_use::CpuUse;
use super::drift::until_beat;
use super::event::{MetricsEvent, class};
use super::load_loop::Loads;
use super::load_loop::{self, LoadLoop};
use super::queue_loop::QueueLoop;
use super::queue_loop::Queues;
use super::setup::{Action, LoadPlan, Setup, Step};
use super::sim::Sim;
use super::usage_loop::Usages;
use super::usage_loop::{self, StartUp, StatedMemory};
use crate::cluster::{NodePhase, PodPhase, Workload, WorkloadKind};
use crate::domain::external_metrics::{ExternalMetric, ExternalSubject};
use crate::domain::workload::ObjectName;
use crate::domain::{LabelSelector, NodeId, PodId, PodSpec, ResourceName, SimDuration, SimTime, Symbol, WorkloadId};
use crate::engine::Streams;
use nodecast_replicas::hpa::{Sample, pod_request_milli};

/// Time between two readings of a node as the manifest ships it.
const SHIPPED_RESOLUTION: SimDuration = SimDuration::from_secs(15);
/// The kubelet refreshes what it knows every 10 to 15 s, so a reading is up to this old.
const OLDEST_READING: SimDuration = SimDuration::from_millis(12_500);
/// A container younger than this at its first reading has no start that counts as a point.
const FRESH_CONTAINER: SimDuration = SimDuration::from_secs(10);

/// Longest time from the start of a pod's containers to the transition of its Ready condition, where no probe delays that.
pub(super) const LONGEST_LAG: SimDuration = SimDuration::from_secs(2);
/// Unit of time stamps in the API.
pub(super) const STAMP: SimDuration = SimDuration::from_secs(1);

/// The points kept for every pod that some autoscaler will ever ask about.
#[derive(Debug)]
pub(super) struct MetricsServer {
    /// Time between two readings of a node.
    resolution: SimDuration,
    /// When the first tick is, counted from the start.
    phase: SimDuration,
    scaled: BTreeSet<ObjectName>,
    /// The namespaces and selectors of these: an autoscaler looks at all pods that they take.
    selectors: Vec<(Symbol, LabelSelector)>,
    /// Workloads of which the scenario states some use.
    stated: BTreeSet<ObjectName>,
    /// Whether the requests of some load are simulated one by one.
    counts_requests: bool,
    /// What is known of each workload, once one of its pods was read.
    workloads: Vec<Option<Metered>>,
    nodes: Vec<NodeReadings>,
    /// Of pods that are there.
    pods: FxHashMap<PodId, Box<PodMetrics>>,
    /// What one worker of a queue uses, by workload.
    workers: Vec<(WorkloadId, CpuUse)>,
    /// What the scenario states that one replica uses beside, by its place in the setup; `None` before it was told.
    usages: Vec<Option<CpuUse>>,
    /// The places of a workload's.
    usages_of: Vec<SmallVec<[usize; 2]>>,
}

/// What reading the pods of a workload takes.
#[derive(Debug)]
struct Metered {
    /// Whether some autoscaler will ever ask.
    scaled: bool,
    /// The position of its requests.
    load: Option<usize>,
    /// Whether its pods can settle: all that they use is CPU for requests, at a rate that is told.
    settles: bool,
    settled: Settled,
}

#[derive(Clone, Debug, Default)]
struct PodMetrics {
    /// When it became Ready, and what a replica that was always Ready had used then; `None` while it is not.
    ready: Option<(SimTime, i128)>,
    /// What the pod used in earlier spells of readiness.
    used_before: i128,
    /// Where the pod has settled.
    place: Option<Place>,
    /// What it uses more as its containers start.
    start_up: SmallVec<[StartUp; 1]>,
    /// The last points, newest last; those of a pod that has settled are not kept.
    points: [Option<Point>; 3],
    /// Whether its node reads it by itself.
    is_read: bool,
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
    pub(super) fn new(setup: &Setup<'_>, streams: &Streams) -> Self {
        let target = |step: &Step| {
            let spec = match &step.action {
                Action::Autoscale(spec) => spec,
                Action::ScaleObject(plan) => plan.autoscaler.as_ref()?,
                _ => return None,
            };
            Some(ObjectName { namespace: spec.namespace, name: spec.target.name })
        };
        let stated = |metric: &ExternalMetric| match metric.subject {
            ExternalSubject::Resource { workload, .. } => Some(workload),
            ExternalSubject::Scaler { .. } | ExternalSubject::Trigger { .. } | ExternalSubject::Metric { .. } => None,
        };
        let scaled: BTreeSet<ObjectName> = setup.timeline.iter().filter_map(target).collect();
        let selector = |step: &Step| {
            let (name, selector) = match &step.action {
                Action::Deploy(deploy) => (deploy.name, &deploy.selector),
                Action::DeployStateful(deploy_stateful) => (deploy_stateful.name, &deploy_stateful.selector),
                _ => return None,
            };
            scaled.contains(&name).then(|| (name.namespace, selector.clone()))
        };
        let selectors = setup.timeline.iter().filter_map(selector).collect();
        let drawn = || streams.stream("metrics-phase", "").span_up_to(setup.scenario.metrics_server.resolution);
        Self {
            phase: setup.scenario.phases.metrics_server.unwrap_or_else(drawn),
            scaled,
            selectors,
            stated: setup
                .scenario
                .external_metrics
                .iter()
                .filter_map(stated)
                .chain(setup.usages.iter().map(|usage| usage.workload))
                .collect(),
            counts_requests: setup.loads.iter().any(|load| load.exact),
            ..Self::with_resolution(setup.scenario.metrics_server.resolution)
        }
    }

    fn with_resolution(resolution: SimDuration) -> Self {
        Self {
            resolution,
            phase: SimDuration::ZERO,
            scaled: BTreeSet::new(),
            selectors: Vec::new(),
            stated: BTreeSet::new(),
            counts_requests: false,
            workloads: Vec::new(),
            nodes: Vec::new(),
            pods: FxHashMap::default(),
            workers: Vec::new(),
            usages: Vec::new(),
            usages_of: Vec::new(),
        }
    }

    /// Finds out what reading a pod of `workload` takes, once. Loads and queues know their workloads before these have pods.
    fn meter(&mut self, workload: WorkloadId, of: &Workload, plans: &[LoadPlan], (loads, queues): Consumers<'_>) {
        if self.workloads.len() <= workload.index() {
            self.workloads.resize_with(workload.index() + 1, || None);
        }
        let (scaled, stated, name) = (&self.scaled, &self.stated, of.name);
        // Of pods that nothing controls each has labels of its own.
        let takes = |(namespace, selector): &(Symbol, LabelSelector)| {
            *namespace == name.namespace && (of.kind == WorkloadKind::Pods || selector.matches(&of.template.labels))
        };
        let selectors = &self.selectors;
        self.workloads[workload.index()].get_or_insert_with(|| {
            let load = loads.iter().position(|load| load.id == Some(workload));
            let plan = load.and_then(|load| plans.get(load));
            let told = |plan: &LoadPlan| !plan.exact && plan.parts.iter().all(|part| part.service.memory.is_none());
            Metered {
                scaled: scaled.contains(&name) || selectors.iter().any(takes),
                load,
                settles: plan.is_none_or(told)
                    && queues.iter().all(|queue| queue.id != Some(workload))
                    && !stated.contains(&name),
                settled: Settled::default(),
            }
        });
    }

    fn metered(&self, workload: WorkloadId) -> Option<&Metered> {
        self.workloads.get(workload.index())?.as_ref()
    }

    fn entry(&mut self, pod: PodId) -> &mut PodMetrics {
        self.pods.entry(pod).or_default()
    }

    fn count_up_to(&self, loads: &mut [LoadLoop], now: SimTime) {
        if self.counts_requests {
            load_loop::count_up_to(loads, now);
        }
    }

    /// One worker of `workload` uses `rate` millionths of a CPU for messages from now on.
    pub(super) fn set_worker_use(&mut self, workload: WorkloadId, rate: i64, now: SimTime) {
        match self.workers.iter_mut().find(|(key, _)| *key == workload) {
            Some((_, cpu)) => cpu.set_rate(rate, now),
            None => {
                let mut cpu = CpuUse::read_every(self.resolution);
                cpu.set_rate(rate, now);
                self.workers.push((workload, cpu));
            }
        }
    }

    /// One replica of `workload` uses `rate` millionths of a CPU from now on, by the usage at a place in the setup.
    pub(super) fn set_usage(&mut self, (usage, workload): (usize, WorkloadId), rate: i64, now: SimTime) {
        if self.usages.len() <= usage {
            self.usages.resize(usage + 1, None);
        }
        if self.usages_of.len() <= workload.index() {
            self.usages_of.resize_with(workload.index() + 1, SmallVec::new);
        }
        // A workload that is deleted and made again is another.
        if !self.usages_of[workload.index()].contains(&usage) {
            self.usages_of[workload.index()].push(usage);
        }
        self.usages[usage].get_or_insert_with(|| CpuUse::read_every(self.resolution)).set_rate(rate, now);
    }

    fn usages_of(&self, workload: WorkloadId) -> impl Iterator<Item = &CpuUse> {
        let places = self.usages_of.get(workload.index()).map_or(&[][..], SmallVec::as_slice);
        places.iter().filter_map(|&usage| self.usages[usage].as_ref())
    }

    /// CPU that a replica that was always Ready has used by that usage, in millionths of a CPU times microseconds.
    pub(super) fn used_by_usage(&self, usage: usize, now: SimTime) -> i128 {
        self.usages.get(usage).and_then(Option::as_ref).map_or(0, |cpu| cpu.by(now))
    }

    /// CPU that a Ready replica uses at present by that usage, in millionths of a CPU.
    pub(super) fn rate_of_usage(&self, usage: usize) -> i64 {
        self.usages.get(usage).and_then(Option::as_ref).map_or(0, CpuUse::rate)
    }

    /// CPU that one replica of `workload` uses at present as the scenario states it, in millionths of a CPU.
    pub(super) fn usage_rate(&self, workload: WorkloadId) -> i64 {
        self.usages_of(workload).map(CpuUse::rate).sum()
    }

    /// CPU that a pod has used, given what a replica that was always Ready has; `None` before it was Ready.
    pub(super) fn used_by_pod(&self, pod: PodId, total: i128, now: SimTime) -> Option<i128> {
        self.pods.get(&pod).map(|entry| entry.used(total, now))
    }

    /// A pod's containers start, and use so much more for a while.
    fn starts_up(&mut self, pod: PodId, start_up: SmallVec<[StartUp; 1]>) {
        self.entry(pod).start_up = start_up;
    }

    /// CPU that a replica of `workload` that was always Ready would have used by `now`, for requests, for messages and as the scenario
    /// states it.
    fn used_by_one<'l>(
        &self,
        workload: WorkloadId,
        mut loads: impl Iterator<Item = &'l LoadLoop>,
        now: SimTime,
    ) -> i128 {
        let load = loads.find(|load| load.id == Some(workload));
        load.map_or(0, |load| load.cpu.by(now)) + self.used_beside_requests(workload, now)
    }

    fn used_beside_requests(&self, workload: WorkloadId, now: SimTime) -> i128 {
        let workers = self.workers.iter().filter(|(key, _)| *key == workload).map(|(_, cpu)| cpu.by(now));
        workers.chain(self.usages_of(workload).map(|cpu| cpu.by(now))).sum()
    }

    /// The same of all requests and messages, without counting anything up to `now`, for those who only look.
    pub(super) fn cpu_of_replica(&self, workload: WorkloadId, load: Option<&LoadLoop>, now: SimTime) -> i128 {
        load.map_or(0, |load| load.cpu_of_replica(now)) + self.used_beside_requests(workload, now)
    }

    /// From `now` to the next reading of the node after it: its age before a tick.
    fn until_reading(&mut self, node: NodeId, now: SimTime) -> SimDuration {
        until_beat(now, self.phase - self.node(node).age, self.resolution)
    }

    /// The pod's containers run: its node reads it from now on if some autoscaler will ever ask.
    fn begin_to_read(&mut self, pod: PodId, node: NodeId) {
        let entry = self.entry(pod);
        if !entry.is_read {
            entry.is_read = true;
            self.node(node).one_by_one.push(pod);
        }
    }

    /// A pod gets a new point; whether it is to be read again.
    fn read(
        &mut self,
        pod: PodId,
        (workload, spec): (WorkloadId, &PodSpec),
        node: NodeId,
        (loads, stated_memory): (&[LoadLoop], StatedMemory),
        now: SimTime,
    ) -> bool {
        let Some(&Metered { load, settles, .. }) = self.metered(workload) else { return false };
        let load = load.map(|position| &loads[position]);
        let total = self.used_by_one(workload, load.into_iter(), now);
        let (visible, resolution) = (now + self.node(node).age, self.resolution);
        let entry = self.entry(pod);
        let used = entry.used(total, now);
        let memory = memory_in_use((load.and_then(|load| load.memory_of(used)), stated_memory), spec);
        entry.keep(Point { at: now, visible, used, memory });
        let settles = settles && entry.has_settled(resolution);
        let request = settles.then(|| pod_request_milli(spec, ResourceName::CPU, None).ok()).flatten();
        request.is_none_or(|request_milli| {
            self.settle(pod, workload, Place { node, request_milli });
            false
        })
    }

    /// The pod takes its share of the load from now on; what a replica that was always Ready has used.
    fn pod_ready(&mut self, pod: PodId, workload: WorkloadId, loads: &mut [LoadLoop], now: SimTime) -> i128 {
        self.count_up_to(loads, now);
        let total = self.used_by_one(workload, loads.iter(), now);
        self.entry(pod).ready = Some((now, total));
        total
    }

    /// The pod takes no load any more; what a replica that was always Ready has used.
    fn pod_unready(&mut self, pod: PodId, workload: WorkloadId, loads: &mut [LoadLoop], now: SimTime) -> i128 {
        self.unsettle(pod, workload, loads);
        self.count_up_to(loads, now);
        let total = self.used_by_one(workload, loads.iter(), now);
        let entry = self.entry(pod);
        if let Some((_, base)) = entry.ready.take() {
            entry.used_before += total - base;
        }
        total
    }

    /// The pod's containers start anew: their counters begin at zero, and two readings are needed again.
    pub(super) fn container_restarted(&mut self, pod: PodId) {
        let entry = self.entry(pod);
        *entry = PodMetrics { is_read: entry.is_read, ..PodMetrics::default() };
    }

    /// What metrics-server says of a pod's memory at `now`: that of the last reading which it knows, in thousandths of a
    /// byte.
    pub(super) fn memory_sample(&self, pod: PodId, now: SimTime) -> Option<Sample> {
        let entry = self.pods.get(&pod).filter(|_| !self.is_settled(pod))?;
        let newest = entry.points.iter().rev().flatten().find(|point| point.visible <= now)?;
        Some(Sample { milli: newest.memory?.saturating_mul(1_000), at: newest.at, window: self.resolution })
    }

    /// What metrics-server says of a pod at `now`: its mean CPU use between the last two points that it knows. A pod read
    /// once counts from its start if it was then at least 10 s and less than one resolution old.
    pub(super) fn sample(
        &self,
        pod: PodId,
        (workload, started): (WorkloadId, Option<SimTime>),
        loads: &[LoadLoop],
        now: SimTime,
    ) -> Option<Sample> {
        if let Some(place) = self.place(pod) {
            let cpu = self.metered(workload)?.cpu(loads);
            return Some(self.nodes.get(place.node.index())?.sample(cpu, now, self.resolution));
        }
        let entry = self.pods.get(&pod)?;
        let mut known = entry.points.iter().rev().flatten().filter(|point| point.visible <= now);
        let newest = known.next()?;
        let (from, used) = match known.next() {
            Some(older) => (older.at, newest.used - older.used),
            None => {
                let age = newest.at.saturating_since(started?);
                if age < FRESH_CONTAINER || age >= self.resolution {
                    return None;
                }
                (started?, newest.used)
            }
        };
        Some(mean_use(used, from, newest.at))
    }
}

/// The loads and queues that pods use CPU for.
type Consumers<'c> = (&'c [LoadLoop], &'c [QueueLoop]);

/// The mean CPU use between two points, given what was used, in millionths of a CPU times microseconds.
fn mean_use(used: i128, from: SimTime, at: SimTime) -> Sample {
    let window = at - from;
    let milli = match i64::try_from(used) {
        // Nearly always it fits in 64 bits and the window is that of the manifest: by a constant it divides many times as fast.
        Ok(used) if window == SHIPPED_RESOLUTION => used / (SHIPPED_RESOLUTION.as_micros() * 1_000),
        Ok(used) => used / window.as_micros().max(1) / 1_000,
        Err(_) => i64::try_from(used / i128::from(window.as_micros().max(1)) / 1_000).unwrap_or(i64::MAX),
    };
    Sample { milli, at, window }
}

impl PodMetrics {
    /// CPU that the pod has used, in millionths of a CPU times microseconds, given what a replica that was always Ready has.
    fn used(&self, total: i128, now: SimTime) -> i128 {
        let starting = self.start_up.iter().map(|start_up| {
            let time = now.saturating_since(start_up.from).min(start_up.length);
            i128::from(start_up.rate) * i128::from(time.as_micros())
        });
        self.used_before + self.ready.map_or(0, |(_, base)| total - base) + starting.sum::<i128>()
    }

    fn keep(&mut self, point: Point) {
        let [_, second, third] = &self.points;
        self.points = [*second, *third, Some(point)];
    }
}

/// Memory of a pod that uses so much for requests and so much beside, in bytes, at most its limit: at that it is killed.
pub(super) fn memory_in_use((requests, stated): (Option<i64>, StatedMemory), spec: &PodSpec) -> Option<i64> {
    let sum = |parts: [Option<i64>; 2]| parts.into_iter().flatten().reduce(|one, other| one.saturating_add(other));
    let limit = spec.limit(ResourceName::MEMORY).unwrap_or(i64::MAX);
    let all = sum([sum([requests, stated.containers]).map(|memory| memory.min(limit)), stated.sidecars]);
    all.map(|memory| memory.min(spec.pod_limit(ResourceName::MEMORY).unwrap_or(i64::MAX)))
}

/// Whether requests or messages are simulated for a workload.
pub(super) fn is_metered(loads: &Loads, queues: &Queues, workload: WorkloadId) -> bool {
    !loads.of.indices(workload).is_empty() || queues.all.iter().any(|queue| queue.id == Some(workload))
}

/// A Ready pod takes its share of requests and messages from now on.
pub(super) fn begin_serving(
    sim: &mut Sim<'_>,
    metrics: &mut MetricsServer,
    loads: &mut Loads,
    queues: &Queues,
    now: SimTime,
    pod: PodId,
) {
    let workload = sim.world.pod(pod).workload;
    let total = metrics.pod_ready(pod, workload, &mut loads.all, now);
    if sim.setup.keeps_meters && is_metered(loads, queues, workload) {
        sim.world.begin_serving(pod, now, total);
    }
}

impl MetricsServer {
    /// The pod takes no share any more.
    pub(super) fn end_serving(&mut self, sim: &mut Sim<'_>, loads: &mut Loads, now: SimTime, pod: PodId) {
        let workload = sim.world.pod(pod).workload;
        let total = self.pod_unready(pod, workload, &mut loads.all, now);
        if sim.setup.keeps_meters {
            sim.world.end_serving(pod, now, total);
        }
    }

    /// CPU that a replica of the workload that was always Ready would have used by `now`, in millionths of a CPU times microseconds.
    pub(super) fn used_by_replica(&mut self, loads: &mut Loads, now: SimTime, workload: WorkloadId) -> i128 {
        self.count_up_to(&mut loads.all, now);
        let load = loads.of.indices(workload).first().map(|&load| &loads.all[load]);
        self.used_by_one(workload, load.into_iter(), now)
    }

    /// Memory in bytes that a pod uses for requests; `None` if the scenario does not say what they need.
    pub(super) fn memory_for_requests(
        &mut self,
        sim: &Sim<'_>,
        loads: &mut Loads,
        now: SimTime,
        pod: PodId,
    ) -> Option<i64> {
        let workload = sim.world.pod(pod).workload;
        let &load = loads.of.indices(workload).first()?;
        // Most loads say nothing of memory.
        loads.all[load].memory_of(0)?;
        let total = self.used_by_replica(loads, now, workload);
        let used = self.used_by_pod(pod, total, now)?;
        loads.all[load].memory_of(used)
    }

    /// A pod is about to request something else where it runs: it is read by itself again.
    pub(super) fn pod_resizes(&mut self, sim: &Sim<'_>, loads: &mut Loads, pod: PodId) {
        let workload = sim.world.pod(pod).workload;
        self.unsettle(pod, workload, &loads.all);
    }

    /// The memory that a pod needs and its limit, in bytes; `None` if the scenario does not say what requests need, or neither the pod nor all
    /// of its containers have a limit.
    pub(super) fn memory_and_limit(
        &mut self,
        sim: &Sim<'_>,
        loads: &mut Loads,
        now: SimTime,
        pod: PodId,
    ) -> Option<(i64, i64)> {
        self.count_up_to(&mut loads.all, now);
        let state = sim.world.pod(pod);
        let limit = state.spec.limit(ResourceName::MEMORY)?;
        let load = loads.all.iter().find(|load| load.id == Some(state.workload))?;
        let total = self.used_by_one(state.workload, std::iter::once(load), now);
        let used = self.entry(pod).used(total, now);
        Some((load.memory_of(used)?, limit))
    }

    /// A pod's containers have just started, and use more for a while where the scenario states it.
    pub(super) fn pod_starts_up(&mut self, sim: &Sim<'_>, usages: &Usages, pod: PodId) {
        let start_up = usages.start_up(sim, pod);
        if !start_up.is_empty() {
            self.starts_up(pod, start_up);
        }
    }

    /// A pod's containers run: its node reads it if an autoscaler asks about it, now or later.
    pub(super) fn pod_started(&mut self, sim: &Sim<'_>, loads: &mut Loads, queues: &Queues, pod: PodId) {
        let state = sim.world.pod(pod);
        let (workload, Some(node)) = (state.workload, state.node) else { return };
        let of = sim.world.workload(workload);
        self.meter(workload, of, &sim.setup.loads, (&loads.all, &queues.all));
        if self.metered(workload).is_some_and(|metered| metered.scaled) {
            self.begin_to_read(pod, node);
        }
    }

    /// A node is read: the pods that an autoscaler asks about, now or later, get a new point.
    pub(super) fn tick(&mut self, sim: &mut Sim<'_>, loads: &mut Loads, usages: &Usages, now: SimTime, node: NodeId) {
        self.count_up_to(&mut loads.all, now);
        if sim.world.node(node).phase != NodePhase::Registered {
            // What has settled there has its last points kept, which stay what they are.
            for &pod in &sim.world.node(node).pods {
                self.unsettle(pod, sim.world.pod(pod).workload, &loads.all);
            }
            return;
        }
        let this_node = self.node(node);
        this_node.read = now;
        let mut pods = std::mem::take(&mut this_node.one_by_one);
        pods.retain(|&pod| match sim.world.pod(pod) {
            running if running.phase == PodPhase::Running => {
                let ready = sim.world.workload(running.workload).ready;
                let usages = (usages.all.as_slice(), &usages.of);
                let stated = usage_loop::memory_of_pod(usages, running.workload, (&running.spec, ready));
                self.read(pod, (running.workload, &running.spec), node, (&loads.all, stated), now)
            }
            other => other.phase != PodPhase::Gone,
        });
        self.node(node).one_by_one = pods;
        // A machine that was without power for a while keeps to the beat of the others.
        let next = self.until_reading(node, now);
        sim.queue.schedule_in(next, class::METRICS, MetricsEvent::MetricsTick(node));
    }

    /// A node has registered: it is read from the next tick on whose reading the kubelet has yet to take.
    pub(super) fn node_registered(&mut self, sim: &mut Sim<'_>, node: NodeId) {
        // No reading is older than the one before it.
        let oldest = OLDEST_READING.min(self.resolution);
        self.node(node).age = sim.streams.nth("metrics-age", "", u64::from(node.0)).span_up_to(oldest);
        let wait = self.until_reading(node, sim.queue.now());
        sim.queue.schedule_in(wait, class::METRICS, MetricsEvent::MetricsTick(node));
    }

    /// The pod is gone: nobody asks about it any more.
    pub(super) fn pod_gone(&mut self, pod: PodId) {
        self.pods.remove(&pod);
    }
}

#[cfg(test)]
mod tests {
    use super::MetricsServer;
    use crate::domain::{NodeId, SimDuration, SimTime};

    #[test]
    fn all_nodes_are_read_at_one_tick() {
        let mut server = MetricsServer::with_resolution(SimDuration::from_secs(15));
        server.phase = SimDuration::from_millis(4_200);
        for (node, age, registered) in [(0, 0, 0), (1, 300, 17_000), (2, 4_200, 100_001), (3, 12_400, 31_799)] {
            let (node, age) = (NodeId(node), SimDuration::from_millis(age));
            server.node(node).age = age;
            let now = SimTime::ZERO + SimDuration::from_millis(registered);
            let known = now + server.until_reading(node, now) + age;
            assert_eq!((known - SimTime::ZERO - server.phase).as_micros() % 15_000_000, 0, "{known}");
            assert!(
                known - age > now && known - age <= now + SimDuration::from_secs(15),
                "the first after it registered"
            );
        }
    }
}
