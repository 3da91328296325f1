//! What pods use beside requests and messages, as the scenario states it: CPU up to their limit, and memory, for which they are killed
//! above theirs.
//!
//! What names a sidecar among the init containers is its own: it counts for the pod, and for no other container.
//!
//! Deviation: pod usage that the scenario sets does not make a node short of CPU for other pods. If pods of one
//! workload have different CPU limits, for example during a resize, each uses the mean of the allowed values.

use std::collections::BTreeSet;

use smallvec::SmallVec;

use super::event::{LoadEvent, class};
use super::load_loop::Loads;
use super::metrics_server::MetricsServer;
use super::of_workloads::OfWorkloads;
use super::setup::{Setup, UsagePlan};
use super::sim::Sim;
use crate::cluster::PodPhase;
use crate::domain::workload::ObjectName;
use crate::domain::{Container, NodeId, PodId, PodSpec, ResourceName, SimDuration, SimTime, Symbol, WorkloadId};
use crate::world::record::ThrottledFacts;
use nodecast_model::node_pressure;

/// From when a container needs more memory than its limit to its end.
const LOOK: SimDuration = SimDuration::from_secs(10);

/// Nodes whose kubelets are about to hold what their pods use against what there is.
#[derive(Debug, Default)]
pub(super) struct NodeLooks(BTreeSet<NodeId>);

impl NodeLooks {
    /// The kubelet looks now.
    pub(super) fn begun(&mut self, node: NodeId) {
        self.0.remove(&node);
    }

    /// Whether no look at the node was due; now one is.
    pub(super) fn is_new(&mut self, node: NodeId) -> bool {
        self.0.insert(node)
    }
}

/// CPU that a pod uses beyond the rest from the start of its containers on.
#[derive(Clone, Copy, Debug)]
pub(super) struct StartUp {
    /// When they started.
    pub(super) from: SimTime,
    /// For how long.
    pub(super) length: SimDuration,
    /// In millionths of a CPU.
    pub(super) rate: i64,
}

/// What one entry of the scenario states.
#[derive(Debug)]
pub(super) struct UsageLoop {
    workload: ObjectName,
    /// The workload, once applied.
    pub(super) id: Option<WorkloadId>,
    /// The container that uses it; all for `None`.
    pub(super) container: Option<Symbol>,
    of_workload: bool,
    states_memory: bool,
    /// CPU at present, of a pod or of all, in millionths of a CPU.
    cpu: i64,
    /// Memory at present, likewise, in bytes.
    memory: i64,
    /// Ready pods, and those of them that want more CPU than their limit, since `since`.
    pods: (i64, i64),
    since: SimTime,
    /// Time of Ready pods so far, and of those that wanted more.
    spent: (SimDuration, SimDuration),
}

impl UsageLoop {
    pub(super) fn new(plan: &UsagePlan) -> Self {
        Self {
            workload: plan.workload,
            id: None,
            container: plan.container,
            of_workload: plan.of_workload,
            states_memory: !plan.memory.is_empty(),
            cpu: 0,
            memory: 0,
            pods: (0, 0),
            since: SimTime::ZERO,
            spent: (SimDuration::ZERO, SimDuration::ZERO),
        }
    }

    /// What one pod has of an amount, where so many are Ready.
    fn share(&self, amount: i64, ready: u32) -> i64 {
        if self.of_workload { amount / i64::from(ready.max(1)) } else { amount }
    }

    fn spend(&mut self, now: SimTime) {
        debug_assert!(now >= self.since, "time goes on");
        let time = now - self.since;
        self.spent.0 += time * self.pods.0;
        self.spent.1 += time * self.pods.1;
        self.since = now;
    }
}

/// CPU and memory that the scenario states for pods, in the order of the setup.
#[derive(Debug)]
pub(super) struct Usages {
    pub(super) all: Vec<UsageLoop>,
    /// The positions of each workload's.
    pub(super) of: OfWorkloads,
    /// Nodes that are about to be checked.
    pub(super) looks: NodeLooks,
}

impl Usages {
    pub(super) fn new(setup: &Setup<'_>) -> Self {
        Self {
            all: setup.usages.iter().map(UsageLoop::new).collect(),
            of: OfWorkloads::default(),
            looks: NodeLooks::default(),
        }
    }
}

/// Puts the first step of every curve on the queue.
pub(super) fn begin(sim: &mut Sim<'_>) {
    for (usage, plan) in sim.setup.usages.iter().enumerate() {
        let usage = usage as u32;
        if let Some((at, _)) = plan.cpu.first() {
            sim.queue.schedule(*at, class::LOAD, LoadEvent::CpuUsageStep(usage, 0));
        }
        if let Some((at, _)) = plan.memory.first() {
            sim.queue.schedule(*at, class::LOAD, LoadEvent::MemoryUsageStep(usage, 0));
        }
    }
}

impl Usages {
    /// Another amount of CPU is used from now on.
    pub(super) fn cpu_step(
        &mut self,
        sim: &mut Sim<'_>,
        metrics: &mut MetricsServer,
        now: SimTime,
        usage: u32,
        step: u32,
    ) {
        let curve = &sim.setup.usages[usage as usize].cpu;
        if let Some((next, _)) = curve.get(step as usize + 1) {
            sim.queue.schedule(*next, class::LOAD, LoadEvent::CpuUsageStep(usage, step + 1));
        }
        self.all[usage as usize].cpu = curve.get(step as usize).map_or(0, |(_, amount)| *amount);
        self.take_cpu(sim, metrics, now, usage as usize);
    }

    /// Another amount of memory is used from now on.
    pub(super) fn memory_step(&mut self, sim: &mut Sim<'_>, usage: u32, step: u32) {
        let curve = &sim.setup.usages[usage as usize].memory;
        if let Some((next, _)) = curve.get(step as usize + 1) {
            sim.queue.schedule(*next, class::LOAD, LoadEvent::MemoryUsageStep(usage, step + 1));
        }
        let usage_loop = &mut self.all[usage as usize];
        let before =
            std::mem::replace(&mut usage_loop.memory, curve.get(step as usize).map_or(0, |(_, amount)| *amount));
        if let (Some(workload), true) = (usage_loop.id, usage_loop.memory > before) {
            self.look_at_all(sim, workload);
        }
    }

    /// A workload has come to be: what is stated of it finds it.
    pub(super) fn workload_applied(&mut self, sim: &Sim<'_>, workload: WorkloadId) {
        let name = sim.world.workload(workload).name;
        for item in self.all.iter_mut().filter(|usage_loop| usage_loop.workload == name) {
            item.id = Some(workload);
        }
        self.of = OfWorkloads::new(self.all.iter().map(|item| item.id));
    }

    /// What is stated of a workload.
    fn usages_of(&self, workload: WorkloadId) -> impl Iterator<Item = &UsageLoop> {
        self.of.indices(workload).iter().map(|&usage| &self.all[usage])
    }

    /// Another number of a workload's pods is Ready, or they have other limits.
    pub(super) fn replicas_changed(
        &mut self,
        sim: &mut Sim<'_>,
        metrics: &mut MetricsServer,
        now: SimTime,
        workload: WorkloadId,
    ) {
        let mut shares_memory = false;
        for at in 0..self.of.indices(workload).len() {
            let usage = self.of.indices(workload)[at];
            shares_memory |= self.all[usage].of_workload && self.all[usage].states_memory;
            self.take_cpu(sim, metrics, now, usage);
        }
        if shares_memory {
            self.look_at_all(sim, workload);
        }
    }

    /// Tells metrics-server what one Ready pod uses: what is stated, up to its limit.
    fn take_cpu(&mut self, sim: &Sim<'_>, metrics: &mut MetricsServer, now: SimTime, usage: usize) {
        let usage_loop = &self.all[usage];
        let Some(id) = usage_loop.id else { return };
        let workload = sim.world.workload(id);
        let wanted = usage_loop.share(usage_loop.cpu, workload.ready);
        let (mut pods, mut held_back, mut used) = (0_i64, 0_i64, 0_i128);
        for pod in workload.pods.iter().map(|&pod| sim.world.pod(pod)).filter(|pod| pod.is_ready()) {
            let limit =
                cpu_limit(&pod.spec, usage_loop.container).map_or(i64::MAX, |milli| milli.saturating_mul(1_000));
            pods += 1;
            held_back += i64::from(wanted > limit);
            used += i128::from(wanted.min(limit));
        }
        let rate = i64::try_from(used / i128::from(pods.max(1))).unwrap_or(i64::MAX);
        let usage_loop = &mut self.all[usage];
        usage_loop.spend(now);
        usage_loop.pods = (pods, held_back);
        metrics.set_usage((usage, id), rate, now);
    }

    /// What a pod that starts now uses more for a while: at most what its limit leaves beside what is stated of it at present.
    pub(super) fn start_up(&self, sim: &Sim<'_>, pod: PodId) -> SmallVec<[StartUp; 1]> {
        let state = sim.world.pod(pod);
        let ready = sim.world.workload(state.workload).ready;
        let besides: i64 = self.usages_of(state.workload).map(|usage| usage.share(usage.cpu, ready)).sum();
        let plans = self.of.indices(state.workload).iter().map(|&usage| &sim.setup.usages[usage]);
        let stated = plans.filter_map(|plan| {
            let (rate, length) = plan.start_up?;
            let limit = cpu_limit(&state.spec, plan.container).map_or(i64::MAX, |milli| milli.saturating_mul(1_000));
            let left = limit.saturating_sub(besides).max(0);
            Some(StartUp { from: sim.queue.now(), length, rate: rate.min(left) })
        });
        stated.collect()
    }

    /// Memory that the scenario states by name of other containers of a pod than this one, in thousandths of a byte.
    pub(super) fn memory_of_others(&self, sim: &Sim<'_>, pod: PodId, container: &str) -> i64 {
        let state = sim.world.pod(pod);
        let ready = sim.world.workload(state.workload).ready;
        let others = self.usages_of(state.workload).filter(|usage| {
            let name = usage.container;
            name.is_some_and(|name| name.as_str() != container && state.spec.has_container(name.as_str()))
        });
        others.map(|other| other.share(other.memory, ready).saturating_mul(1_000)).sum()
    }

    /// CPU that the scenario states at present of one container of a pod, and of the pod, in thousandths: of what names no container each app
    /// container has its part.
    pub(super) fn stated_cpu(&self, sim: &Sim<'_>, metrics: &MetricsServer, pod: PodId, container: &str) -> (i64, i64) {
        let state = sim.world.pod(pod);
        let (mut number, mut shared, mut all) = (0_i64, 0_i64, 0_i64);
        for &usage in self.of.indices(state.workload) {
            let rate = metrics.rate_of_usage(usage);
            all += rate;
            match self.all[usage].container.filter(|name| state.spec.has_container(name.as_str())) {
                Some(name) if name.as_str() == container => number += rate,
                Some(_) => {}
                None => shared += rate,
            }
        }
        let place = state.spec.containers.iter().position(|known| known.name == container);
        if let Some(place) = place.filter(|_| shared > 0) {
            let none: SmallVec<[i64; 2]> = state.spec.containers.iter().map(|_| 0).collect();
            let parts = divided(shared, &none, &weights(sim, pod, ResourceName::CPU));
            number += parts.get(place).copied().unwrap_or(0);
        }
        (number / 1_000, all / 1_000)
    }

    /// CPU that a container of a pod uses more while it starts, by what names it, in thousandths.
    pub(super) fn start_up_of(&self, sim: &Sim<'_>, now: SimTime, pod: PodId, container: &str) -> i64 {
        let state = sim.world.pod(pod);
        let Some(started) = state.started else { return 0 };
        let plans = self.of.indices(state.workload).iter().map(|&usage| &sim.setup.usages[usage]);
        let plans = plans.filter(|plan| plan.container.is_some_and(|name| name.as_str() == container));
        let rates =
            plans.filter_map(|plan| plan.start_up.filter(|(_, length)| now < started + *length).map(|(rate, _)| rate));
        rates.sum::<i64>() / 1_000
    }

    /// Memory that each container of a pod uses, in bytes, given what the pod uses for requests; `None` where nothing is known of it.
    pub(super) fn memory_of_containers(
        &self,
        sim: &Sim<'_>,
        pod: PodId,
        for_requests: Option<i64>,
    ) -> Option<SmallVec<[i64; 2]>> {
        let state = sim.world.pod(pod);
        let ready = sim.world.workload(state.workload).ready;
        let usages = self.usages_of(state.workload);
        let weights = || weights(sim, pod, ResourceName::MEMORY);
        memory_by(usages, (&state.spec, ready), for_requests, weights)
    }

    fn look_at_all(&mut self, sim: &mut Sim<'_>, workload: WorkloadId) {
        for pod in sim.world.workload(workload).pods.clone() {
            self.pod_started(sim, pod);
        }
    }

    /// A pod's containers run, or use more memory: what is over a limit is looked at shortly.
    pub(super) fn pod_started(&mut self, sim: &mut Sim<'_>, pod: PodId) {
        if self.over_limit(sim, pod).is_some() {
            sim.queue.schedule_in(LOOK, class::MACHINES, LoadEvent::MemoryLook(pod));
        }
        let workload = sim.world.pod(pod).workload;
        if self.usages_of(workload).any(|usage| usage.states_memory) {
            self.look_at_node_of(sim, pod);
        }
    }

    /// The memory of a running pod may have risen: its node is looked at shortly.
    pub(super) fn look_at_node_of(&mut self, sim: &mut Sim<'_>, pod: PodId) {
        if let Some(node) = sim.world.pod(pod).node
            && self.looks.is_new(node)
        {
            sim.queue.schedule_in(node_pressure::LOOK, class::MACHINES, LoadEvent::NodeMemoryLook(node));
        }
    }

    /// The first container of a running pod that uses more memory than its limit by what the scenario states, with both; sidecars have the
    /// places after those of the app containers. Where they exceed the limit of the whole pod together, the one that uses most.
    pub(super) fn over_limit(&self, sim: &Sim<'_>, pod: PodId) -> Option<(usize, i64, i64)> {
        let state = sim.world.pod(pod);
        let states_memory = || self.usages_of(state.workload).any(|usage| usage.states_memory);
        if state.phase != PodPhase::Running || !state.is_active() || !states_memory() {
            return None;
        }
        let ready = sim.world.workload(state.workload).ready;
        let used_by_sidecar = |container: &Container| {
            let usages = self.usages_of(state.workload).filter(|usage| usage.states_memory);
            let named = usages.filter(|usage| usage.container.is_some_and(|name| name.as_str() == container.name));
            named.map(|usage| usage.share(usage.memory, ready)).sum::<i64>()
        };
        let mut used = self.memory_of_containers(sim, pod, None).unwrap_or_default();
        used.resize(state.spec.containers.len(), 0);
        used.extend(state.spec.sidecars().map(used_by_sidecar));
        first_over(&state.spec, &used)
    }

    /// At the end of a run: how long pods were held back.
    pub(super) fn conclude(&mut self, sim: &mut Sim<'_>, now: SimTime) {
        for usage in 0..self.all.len() {
            let usage_loop = &mut self.all[usage];
            usage_loop.spend(now);
            if let (Some(workload), true) = (usage_loop.id, usage_loop.spent.0 > SimDuration::ZERO) {
                let facts = ThrottledFacts { workload, throttled: usage_loop.spent.1, ready: usage_loop.spent.0 };
                sim.world.note_throttled(facts);
            }
        }
    }
}

/// The CPU limit of a container, or of the pod where all have one.
fn cpu_limit(spec: &PodSpec, container: Option<Symbol>) -> Option<i64> {
    let Some(name) = container else { return spec.cpu_limit_milli() };
    let container = spec.containers.iter().chain(spec.sidecars()).find(|container| container.name == name.as_str())?;
    container.limits.find(ResourceName::CPU).filter(|limit| *limit > 0)
}

/// Memory of one pod that the scenario states, in bytes; `None` where it states none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct StatedMemory {
    /// Of its app containers.
    pub(super) containers: Option<i64>,
    /// Of its sidecars, each at most its limit.
    pub(super) sidecars: Option<i64>,
}

/// Memory of one pod that the scenario states.
pub(super) fn memory_of_pod(
    (usages, of): (&[UsageLoop], &OfWorkloads),
    workload: WorkloadId,
    (spec, ready): (&PodSpec, u32),
) -> StatedMemory {
    let mut stated = StatedMemory::default();
    for usage in of.indices(workload).iter().map(|&usage| &usages[usage]).filter(|usage| usage.states_memory) {
        let amount = usage.share(usage.memory, ready);
        let (part, amount) = match sidecar_of(spec, usage) {
            Some(sidecar) => {
                let limit = sidecar.limits.find(ResourceName::MEMORY).unwrap_or(i64::MAX);
                (&mut stated.sidecars, amount.min(limit))
            }
            None => (&mut stated.containers, amount),
        };
        *part = Some(part.unwrap_or(0).saturating_add(amount));
    }
    stated
}

/// Whether the scenario says how much memory pods of a workload use.
pub(super) fn states_memory(loads: &Loads, usages: &Usages, workload: WorkloadId) -> bool {
    let mut loads = loads.of.indices(workload).iter().map(|&load| &loads.all[load]);
    let mut usages = usages.of.indices(workload).iter().map(|&usage| &usages.all[usage]);
    loads.any(|load| load.memory_of(0).is_some()) || usages.any(|usage| usage.states_memory)
}

/// The sidecar that uses what is stated, if it is one.
fn sidecar_of<'s>(spec: &'s PodSpec, usage: &UsageLoop) -> Option<&'s Container> {
    spec.sidecar(usage.container?.as_str())
}

/// What the containers of a pod use of a resource: `shared` by all in the proportion of `weights`, the rest each by itself.
pub(super) fn divided(shared: i64, numbers: &[i64], weights: &[i64]) -> SmallVec<[i64; 2]> {
    let all: i128 = weights.iter().map(|weight| i128::from(*weight)).sum();
    let part = |weight: i64| match all {
        0 => i128::from(shared) / i128::from(weights.len().max(1) as i64),
        _ => i128::from(shared) * i128::from(weight) / all,
    };
    let amounts =
        weights.iter().zip(numbers).map(|(&weight, &number)| number + i64::try_from(part(weight)).unwrap_or(i64::MAX));
    amounts.collect()
}

/// What the containers of the pods of a workload request of a resource by their template: in that proportion they use what nobody says
/// which of them uses.
pub(super) fn weights(sim: &Sim<'_>, pod: PodId, resource: ResourceName) -> SmallVec<[i64; 2]> {
    let state = sim.world.pod(pod);
    weights_of(sim.world.template_of(state.workload, state.revision), resource)
}

/// What the containers of a template request of a resource.
pub(super) fn weights_of(template: &PodSpec, resource: ResourceName) -> SmallVec<[i64; 2]> {
    template.containers.iter().map(|container| container.effective_requests().get(resource)).collect()
}

/// The same by what is stated of the pod's workload, of which so many pods are Ready.
pub(super) fn memory_by<'u, W: AsRef<[i64]>>(
    usages: impl Iterator<Item = &'u UsageLoop>,
    (spec, ready): (&PodSpec, u32),
    for_requests: Option<i64>,
    weights: impl FnOnce() -> W,
) -> Option<SmallVec<[i64; 2]>> {
    let mut small_vec: SmallVec<[i64; 2]> = spec.containers.iter().map(|_| 0).collect();
    let (mut shared, mut known) = (for_requests.unwrap_or(0), for_requests.is_some());
    for usage in usages.filter(|usage| usage.states_memory && sidecar_of(spec, usage).is_none()) {
        known = true;
        let amount = usage.share(usage.memory, ready);
        let place = usage.container.and_then(|name| place_of(spec, name));
        match place {
            Some(place) => small_vec[place] += amount,
            None => shared += amount,
        }
    }
    known.then(|| match &mut small_vec[..] {
        // There is nothing to divide.
        [only] => {
            *only += shared;
            small_vec
        }
        all => divided(shared, all, weights().as_ref()),
    })
}

/// The place of a container in its pod, sidecars left out.
pub(super) fn place_of(spec: &PodSpec, name: Symbol) -> Option<usize> {
    spec.containers.iter().position(|container| container.name == name.as_str())
}

/// The container that is killed where containers and sidecars use so much memory: its place, what is used, and the limit of that.
fn first_over(spec: &PodSpec, used: &[i64]) -> Option<(usize, i64, i64)> {
    let limits =
        spec.containers.iter().chain(spec.sidecars()).map(|container| container.limits.find(ResourceName::MEMORY));
    let mut item = used.iter().zip(limits).enumerate();
    let over = |(place, (&used, limit)): (usize, (&i64, Option<i64>))| {
        limit.filter(|limit| used > *limit).map(|limit| (place, used, limit))
    };
    item.find_map(over).or_else(|| {
        let limit = spec.pod_limit(ResourceName::MEMORY)?;
        let together = used.iter().fold(0_i64, |sum, item| sum.saturating_add(*item));
        let (place, _) = used.iter().enumerate().rev().max_by_key(|(_, item)| **item)?;
        (together > limit).then_some((place, together, limit))
    })
}
