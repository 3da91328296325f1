//! What the recommender learns of pods, and what of it stands in the report.

use std::collections::BTreeSet;

use smallvec::SmallVec;

use super::{Autoscaler, ReadContainer, Tracked};
use crate::actors::load_loop::Loads;
use crate::actors::metrics_server::MetricsServer;
use crate::actors::sim::Sim;
use crate::actors::usage_loop;
use crate::actors::usage_loop::Usages;
use crate::actors::vertical::Vertical;
use crate::cluster::PodPhase;
use crate::domain::workload::ObjectName;
use crate::domain::{Labels, PodId, ResourceName, Resources, SimDuration, SimTime, Symbol, WorkloadId};
use crate::world::record::RecommendationSample;

/// A container is read for the first time once it has run for so long: metrics-server needs two readings.
const FIRST_READING: SimDuration = SimDuration::from_secs(30);
/// The report has a row this often at most,
const REPORTED_EVERY: SimDuration = SimDuration::from_secs(600);
/// and of a long run no more rows than these for each container: a recommendation takes half a day to move.
const REPORTED_AT_MOST: i64 = 200;
/// What divides the use of a pod among its containers: millionths of it.
const WHOLE: i128 = 1_000_000;

/// What the recommender saw when it last looked.
#[derive(Debug, Default)]
pub(super) struct Observed {
    /// What a replica that was always Ready had used, and of that by each usage that names a container.
    totals: Option<(i128, SmallVec<[i128; 2]>)>,
    /// What containers used then, in order of appearance.
    used: Vec<ContainerUsage>,
    rates: Rates,
    reported: Option<SimTime>,
}

/// What a container was seen to use.
#[derive(Debug)]
struct ContainerUsage {
    container: Symbol,
    /// Whether the scenario says how much CPU and how much memory it uses.
    known: (bool, bool),
    /// At the last look, added up over pods: thousandths of a CPU, bytes.
    sum: (i64, Option<i64>),
    /// Over how many pods.
    pods: i64,
    /// The same amount again and again, and how often: mostly all replicas use the same, and go on to.
    run: ((Option<i64>, Option<i64>), u64),
}

/// The last use of CPU over a span that was worked out, for each container: mostly the next is the same.
#[derive(Debug, Default)]
struct Rates {
    used: i128,
    micros: i64,
    /// The part of each container.
    parts: SmallVec<[i64; 2]>,
    /// In thousandths of a CPU.
    milli: SmallVec<[i64; 2]>,
}

impl Rates {
    /// So many millionths of a CPU times microseconds in so many microseconds, as parts of it are used by the containers: rounded up to
    /// thousandths of a CPU, as metrics-server does.
    fn rates(&mut self, used: i128, micros: i64, parts: &[i64]) -> &[i64] {
        if (self.used, self.micros) != (used, micros) || self.parts[..] != *parts {
            let milli = |part: &i64| {
                let milli = (used * i128::from(*part)).div_euclid(WHOLE).div_euclid(i128::from(micros)) + 999;
                i64::try_from(milli / 1_000).unwrap_or(i64::MAX)
            };
            self.milli = parts.iter().map(milli).collect();
            (self.used, self.micros) = (used, micros);
            self.parts = SmallVec::from_slice(parts);
        }
        &self.milli
    }
}

impl Observed {
    /// The place of a container among those that were seen.
    fn place(&mut self, container: Symbol) -> usize {
        let known = self.used.iter().position(|container_usage| container_usage.container == container);
        known.unwrap_or_else(|| {
            self.used.push(ContainerUsage {
                container,
                known: (false, false),
                sum: (0, None),
                pods: 0,
                run: ((None, None), 0),
            });
            self.used.len() - 1
        })
    }

    /// Whether it is known how much CPU and how much memory a container uses that was seen; `None` for another.
    pub(super) fn known(&self, container: Symbol) -> Option<(bool, bool)> {
        self.used.iter().find(|container_usage| container_usage.container == container).map(|item| item.known)
    }
}

impl Vertical {
    /// Tells the recommender which pods there are, and what each requests.
    pub(super) fn follow_pods(&mut self, sim: &Sim<'_>, now: SimTime, (place, target): (usize, WorkloadId)) {
        let at = self.calendar(now);
        let (world, vertical) = (&sim.world, self);
        let pods = &world.workload(target).pods;
        let autoscaler = &mut vertical.autoscalers[place];
        let there: BTreeSet<PodId> = pods.iter().copied().collect();
        let gone: SmallVec<[PodId; 4]> = autoscaler.pods.keys().filter(|pod| !there.contains(pod)).copied().collect();
        for pod in gone {
            if let Some(tracked) = autoscaler.pods.remove(&pod) {
                autoscaler.recommender.remove_pod(tracked.name);
                vertical.terminations.remove(&pod);
            }
        }
        for &pod in pods {
            let state = world.pod(pod);
            let name = || ObjectName { namespace: state.namespace, name: Symbol::new(world.pod_name(pod)) };
            let tracked = autoscaler.pods.entry(pod).or_insert_with(|| Tracked::new(name(), state.revision));
            let runs = state.phase == PodPhase::Running && state.is_active();
            tracked.runs_since = state.started.filter(|_| runs);
            if tracked.spec == Some(state.spec_id) {
                continue;
            }
            tracked.spec = Some(state.spec_id);
            let containers = || state.spec.containers.iter();
            let requests = containers()
                .map(|container| (Symbol::new(&container.name), container.effective_requests().cpu_milli()));
            autoscaler.recommender.add_pod(tracked.name, &labels(&state.spec.labels, state.revision), requests, at);
            let read = containers().filter_map(|container| {
                let name = Symbol::new(&container.name);
                let known = autoscaler.stated.of_container(&state.spec, name);
                let seen = autoscaler.observed.place(name);
                let of_any = &mut autoscaler.observed.used[seen].known;
                *of_any = (of_any.0 || known.0, of_any.1 || known.1);
                let limits = [container.limits.find(ResourceName::MEMORY), state.spec.pod_limit(ResourceName::MEMORY)];
                Some(ReadContainer {
                    slot: autoscaler.recommender.slot(tracked.name, name)?,
                    seen,
                    known,
                    limit: limits.into_iter().flatten().min().unwrap_or(i64::MAX),
                })
            });
            tracked.containers = read.collect();
        }
    }

    /// Writes down what is recommended, now and then.
    pub(super) fn note(&mut self, sim: &mut Sim<'_>, now: SimTime, (place, target): (usize, WorkloadId)) {
        let every = reported_every(sim.setup.scenario.duration).max(sim.setup.sample_interval);
        let autoscaler = &mut self.autoscalers[place];
        if autoscaler.observed.reported.is_some_and(|last| now - last < every) {
            return;
        }
        autoscaler.observed.reported = Some(now);
        self.write(sim, now, (place, target));
    }

    fn write(&mut self, sim: &mut Sim<'_>, now: SimTime, (place, target): (usize, WorkloadId)) {
        let autoscaler = &self.autoscalers[place];
        let Some(facts) = autoscaler.facts else { return };
        let mut samples = Vec::new();
        for recommended in autoscaler.spec.recommendation.iter().flatten() {
            let mut request = Resources::new();
            let mut pods = 0_i64;
            for &pod in &sim.world.workload(target).pods {
                let state = sim.world.pod(pod);
                if state.phase == PodPhase::Running
                    && let Some(at) = usage_loop::place_of(&state.spec, recommended.container)
                {
                    pods += 1;
                    let requests = state.spec.containers[at].effective_requests();
                    request.add(&Resources::cpu_memory(requests.cpu_milli(), requests.memory_bytes()));
                }
            }
            let used = autoscaler.observed.used.iter().find(|seen| seen.container == recommended.container);
            samples.push(RecommendationSample {
                at: now,
                container: recommended.container,
                pods: u32::try_from(pods).unwrap_or(u32::MAX),
                request: mean(&request, pods),
                used: used.map_or_else(Resources::new, ContainerUsage::mean),
                target: recommended.target.clone(),
                lower_bound: recommended.lower_bound.clone(),
                upper_bound: recommended.upper_bound.clone(),
                uncapped_target: recommended.uncapped_target.clone(),
            });
        }
        for sample in samples {
            sim.world.note_recommendation(facts, sample);
        }
    }

    /// The last row of the report: what is recommended as the run ends.
    pub(in crate::actors) fn end(&mut self, sim: &mut Sim<'_>, now: SimTime) {
        for place in 0..self.autoscalers.len() {
            let autoscaler = &self.autoscalers[place];
            if let Some(target) =
                autoscaler.target.filter(|_| !autoscaler.retired && autoscaler.observed.reported != Some(now))
            {
                self.write(sim, now, (place, target));
            }
            let world = &mut sim.world;
            let autoscaler = &self.autoscalers[place];
            for seen in &autoscaler.observed.used {
                if let Some(facts) = autoscaler.facts {
                    world.note_use(facts, seen.container, seen.run.0, seen.run.1);
                }
            }
        }
    }
}

/// The labels of a pod with the one that its revision gives it.
fn labels(template: &Labels, revision: u32) -> Labels {
    let mut labels = template.clone();
    labels.set(Symbol::new("pod-template-hash"), Symbol::new(&revision.to_string()));
    labels
}

impl Vertical {
    /// How the use of CPU since the last look divides among containers, in millionths.
    fn division(
        &mut self,
        sim: &Sim<'_>,
        (loads, metrics, usages): (&mut Loads, &mut MetricsServer, &Usages),
        now: SimTime,
        (place, target): (usize, WorkloadId),
        pod: PodId,
    ) -> Division {
        let total = metrics.used_by_replica(loads, now, target);
        let autoscaler = &self.autoscalers[place];
        let naming = autoscaler.usages.iter().filter_map(|&at| Some((at, usages.all[at].container?)));
        let naming: SmallVec<[(usize, Symbol); 2]> = naming.collect();
        let used: SmallVec<[i128; 2]> = naming.iter().map(|(at, _)| metrics.used_by_usage(*at, now)).collect();
        let spec = &sim.world.pod(pod).spec;
        let mut stated: SmallVec<[i64; 2]> = spec.containers.iter().map(|_| 0).collect();
        let mut shared = WHOLE as i64;
        if let Some((before, by_usage)) = &autoscaler.observed.totals
            && total > *before
            && by_usage.len() == used.len()
        {
            for ((&(_, container), used), before_it) in naming.iter().zip(&used).zip(by_usage) {
                let part = ((used - before_it) * WHOLE / (total - before)).clamp(0, WHOLE) as i64;
                if let Some(at) = usage_loop::place_of(spec, container) {
                    stated[at] += part;
                    shared -= part;
                } else if spec.sidecar(container.as_str()).is_some() {
                    // Its use is its own, and the recommender does not look at it.
                    shared -= part;
                }
            }
        }
        let parts = match &stated[..] {
            [only] => SmallVec::from_slice(&[only + shared.max(0)]),
            all => {
                let mut weights = usage_loop::weights(sim, pod, ResourceName::CPU);
                // What is left over, as what pods use more while they start, is used by those of which something is known.
                for (weight, container) in weights.iter_mut().zip(&spec.containers) {
                    if !autoscaler.stated.of_container(spec, Symbol::new(&container.name)).0 {
                        *weight = 0;
                    }
                }
                usage_loop::divided(shared.max(0), all, &weights)
            }
        };
        Division { total, used, parts }
    }

    /// Reads what pods used since the last look and what memory they use, and tells the recommender.
    pub(super) fn read(
        &mut self,
        sim: &mut Sim<'_>,
        loads: &mut Loads,
        metrics: &mut MetricsServer,
        usages: &Usages,
        now: SimTime,
        (place, target): (usize, WorkloadId),
    ) {
        let Some(&first) = sim.world.workload(target).pods.first() else { return };
        let Division { total, used, parts } =
            self.division(sim, (&mut *loads, &mut *metrics, usages), now, (place, target), first);
        let at = self.calendar(now);
        let world = &mut sim.world;
        let (loads, loads_of) = (&loads.all, &loads.of);
        let (usages, usages_of) = (&usages.all, &usages.of);
        let load = loads_of.indices(target).first().map(|&load| &loads[load]);
        let ready = world.workload(target).ready;
        let autoscaler = &mut self.autoscalers[place];
        let Autoscaler { pods, recommender, observed, stated, .. } = autoscaler;
        let knows_memory = stated.of_any().1;
        observed.used.iter_mut().for_each(|seen| (seen.sum, seen.pods) = ((0, None), 0));
        let mut memory = MemoryOf::default();
        for (&pod, tracked) in pods {
            let used = metrics.used_by_pod(pod, total, now).unwrap_or(0);
            let Some((since, before)) = tracked.read_before(now, used) else { continue };
            let milli = observed.rates.rates(used - before, (now - since).as_micros().max(1), &parts);
            let for_requests = load.and_then(|load| load.memory_of(used));
            if knows_memory && (memory.revision, memory.for_requests) != (Some(tracked.revision), for_requests) {
                let stated = usages_of.indices(target).iter().map(|&at| &usages[at]);
                let weights =
                    || usage_loop::weights_of(world.template_of(target, tracked.revision), ResourceName::MEMORY);
                let bytes = usage_loop::memory_by(stated, (&world.pod(pod).spec, ready), for_requests, weights);
                memory = MemoryOf { revision: Some(tracked.revision), for_requests, bytes };
            }
            for (position, container) in tracked.containers.iter().enumerate() {
                let bytes = memory.bytes.as_ref().and_then(|bytes| bytes.get(position)).filter(|_| container.known.1);
                let bytes = bytes.map(|bytes| (*bytes).min(container.limit));
                let milli = container.known.0.then(|| milli.get(position).copied().unwrap_or(0));
                // A sample that is no younger than the last one does not count.
                if let Some(milli) = milli {
                    let _ = recommender.cpu_sample_of(container.slot, at, milli, at);
                }
                if let Some(bytes) = bytes {
                    let _ = recommender.memory_sample_of(container.slot, at, bytes, at);
                }
                let seen = &mut observed.used[container.seen];
                seen.add((milli, bytes), |name, amounts, looks| {
                    if let Some(facts) = autoscaler.facts {
                        world.note_use(facts, name, amounts, looks);
                    }
                });
            }
        }
        observed.totals = Some((total, used));
    }
}

struct Division {
    total: i128,
    used: SmallVec<[i128; 2]>,
    parts: SmallVec<[i64; 2]>,
}

/// Memory of the containers of a pod: mostly that of the pod before.
#[derive(Default)]
struct MemoryOf {
    revision: Option<u32>,
    for_requests: Option<i64>,
    bytes: Option<SmallVec<[i64; 2]>>,
}

impl ContainerUsage {
    /// One more pod was seen to use so much; what ends a run of looks is noted.
    fn add(&mut self, amounts: (Option<i64>, Option<i64>), note: impl FnOnce(Symbol, (Option<i64>, Option<i64>), u64)) {
        self.pods += 1;
        self.sum.0 += amounts.0.unwrap_or(0);
        if let Some(bytes) = amounts.1 {
            *self.sum.1.get_or_insert(0) += bytes;
        }
        if self.run.1 > 0 && self.run.0 == amounts {
            self.run.1 += 1;
        } else {
            // The first of all is noted at once as none, so that containers stand in the order in which they appear.
            note(self.container, self.run.0, self.run.1);
            self.run = (amounts, 1);
        }
    }

    /// What a container used in the mean of the pods.
    fn mean(&self) -> Resources {
        let mut mean = Resources::new();
        if self.pods > 0 && self.known.0 {
            mean.set(ResourceName::CPU, self.sum.0 / self.pods);
        }
        if let Some(bytes) = self.sum.1 {
            mean.set(ResourceName::MEMORY, bytes / self.pods.max(1));
        }
        mean
    }
}

impl Tracked {
    fn new(name: ObjectName, revision: u32) -> Self {
        Self { name, spec: None, revision, runs_since: None, read: None, containers: SmallVec::new() }
    }

    /// The reading before this one, at which it has used so much; `None` where there is none to count from.
    fn read_before(&mut self, now: SimTime, used: i128) -> Option<(SimTime, i128)> {
        let Some(started) = self.runs_since else {
            self.read = None;
            return None;
        };
        let before = match self.read {
            // Its containers have been started anew since: their counters began at zero.
            Some((_, before)) if before > used => None,
            Some(before) => Some(before),
            None => Some((started, 0)).filter(|(started, _)| now - *started >= FIRST_READING),
        };
        if before.is_some() || self.read.is_some() {
            self.read = Some((now, used));
        }
        before
    }
}

/// How far rows of the report are apart in a run of this length: whole minutes.
fn reported_every(duration: SimDuration) -> SimDuration {
    let minutes = duration.as_secs().div_euclid(REPORTED_AT_MOST * 60) + 1;
    REPORTED_EVERY.max(SimDuration::from_secs(minutes * 60))
}

fn mean(sum: &Resources, pods: i64) -> Resources {
    let mut mean = Resources::new();
    for (name, amount) in sum.iter() {
        mean.set(name, amount / pods.max(1));
    }
    mean
}
