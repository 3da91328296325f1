//! What the recommender learns of pods, and what of it stands in the report.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use super::{Tracked, runs};
use crate::actors::context::Context;
use crate::actors::setup::Setup;
use crate::actors::{metrics_server, usage_loop};
use crate::cluster::PodPhase;
use crate::domain::workload::ObjectName;
use crate::domain::{Labels, PodId, ResourceName, Resources, SimDuration, SimTime, Symbol, WorkloadId};
use crate::world::record::RecommendationSample;

/// A container is read for the first time once it has run for so long: metrics-server needs two readings.
const FIRST_READING: SimDuration = SimDuration::from_secs(30);
/// The report has a row this often at most.
const REPORTED_EVERY: SimDuration = SimDuration::from_secs(600);
/// What divides the use of a pod among its containers: millionths of it.
const WHOLE: i128 = 1_000_000;

/// What the recommender saw when it last looked.
#[derive(Debug, Default)]
pub(super) struct Observed {
    /// What a replica that was always Ready had used, and of that by each usage that names a container.
    totals: Option<(i128, Vec<i128>)>,
    /// What containers used then, added up over pods, and over how many.
    used: Vec<(Symbol, Resources, i64)>,
    reported: Option<SimTime>,
}

/// Whether the setup says what the pods of a workload use of CPU and of memory.
pub fn known(setup: &Setup<'_>, workload: ObjectName) -> (bool, bool) {
    let loads = || setup.loads.iter().filter(|plan| plan.workload == workload);
    let usages = || setup.usages.iter().filter(|plan| plan.workload == workload);
    let queues = setup.queues.iter().any(|queue| queue.spec.workload == workload);
    let cpu = loads().next().is_some() || queues || usages().any(|plan| !plan.cpu.is_empty());
    let for_requests = loads().flat_map(|plan| &plan.parts).any(|part| part.service.memory.is_some());
    (cpu, for_requests || usages().any(|plan| !plan.memory.is_empty()))
}

/// Tells the recommender which pods there are, and what each requests.
pub(super) fn follow_pods(context: &mut Context<'_>, now: SimTime, (place, target): (usize, WorkloadId)) {
    let at = context.vertical.calendar(now);
    let pods = &context.world.workload(target).pods;
    let own = &mut context.vertical.autoscalers[place];
    let gone: SmallVec<[PodId; 4]> = own.pods.keys().filter(|pod| !pods.contains(pod)).copied().collect();
    for pod in gone {
        if let Some(tracked) = own.pods.remove(&pod) {
            own.recommender.remove_pod(tracked.name);
            context.vertical.terminations.remove(&pod);
        }
    }
    for &pod in pods {
        let state = context.world.pod(pod);
        if own.pods.get(&pod).is_some_and(|known| known.spec == state.spec_id) {
            continue;
        }
        let name = || ObjectName { namespace: state.namespace, name: Symbol::new(context.world.pod_name(pod)) };
        let tracked = own.pods.entry(pod).or_insert_with(|| Tracked { name: name(), spec: state.spec_id, read: None });
        tracked.spec = state.spec_id;
        let containers = state.spec.containers.iter();
        let requests = containers.map(|own| (Symbol::new(&own.name), own.effective_requests().cpu_milli()));
        own.recommender.add_pod(tracked.name, &labels(&state.spec.labels, state.revision), requests, at);
    }
}

/// The labels of a pod with the one that its revision gives it.
fn labels(template: &Labels, revision: u32) -> Labels {
    let mut labels = template.clone();
    labels.set(Symbol::new("pod-template-hash"), Symbol::new(&revision.to_string()));
    labels
}

/// How the use of CPU since the last look divides among containers, in millionths; `None` where nothing was used.
fn division(context: &mut Context<'_>, now: SimTime, (place, target): (usize, WorkloadId), pod: PodId) -> Division {
    let total = metrics_server::used_by_replica(context, now, target);
    let naming = context.usages.iter().enumerate();
    let naming = naming.filter(|(_, own)| own.id == Some(target)).filter_map(|(at, own)| Some((at, own.container?)));
    let naming: SmallVec<[(usize, Symbol); 2]> = naming.collect();
    let used: Vec<i128> = naming.iter().map(|(at, _)| context.metrics.used_by_usage(*at, now)).collect();
    let spec = &context.world.pod(pod).spec;
    let mut own: SmallVec<[i64; 2]> = spec.containers.iter().map(|_| 0).collect();
    let mut shared = WHOLE as i64;
    let observed = &context.vertical.autoscalers[place].observed;
    if let Some((before, by_usage)) = &observed.totals
        && total > *before
        && by_usage.len() == used.len()
    {
        for ((&(_, container), used), before_it) in naming.iter().zip(&used).zip(by_usage) {
            let part = ((used - before_it) * WHOLE / (total - before)).clamp(0, WHOLE) as i64;
            if let Some(at) = usage_loop::place_of(spec, container) {
                own[at] += part;
                shared -= part;
            }
        }
    }
    let weights = usage_loop::weights(context, pod, ResourceName::CPU);
    let parts = usage_loop::divided(shared.max(0), &own, &weights);
    Division { total, used, parts }
}

struct Division {
    total: i128,
    used: Vec<i128>,
    parts: SmallVec<[i64; 2]>,
}

/// Reads what pods used since the last look and what memory they use, and tells the recommender.
pub(super) fn read(context: &mut Context<'_>, now: SimTime, (place, target): (usize, WorkloadId)) {
    let pods: SmallVec<[PodId; 16]> = context.world.workload(target).pods.iter().copied().collect();
    let Some(&first) = pods.first() else { return };
    let Division { total, used, parts } = division(context, now, (place, target), first);
    let mut sums: BTreeMap<Symbol, (Resources, i64)> = BTreeMap::new();
    for pod in pods {
        if !runs(context, pod) {
            if let Some(tracked) = context.vertical.autoscalers[place].pods.get_mut(&pod) {
                tracked.read = None;
            }
            continue;
        }
        read_pod(context, now, (place, pod), (total, &parts), &mut sums);
    }
    let observed = &mut context.vertical.autoscalers[place].observed;
    observed.totals = Some((total, used));
    observed.used = sums.into_iter().map(|(container, (sum, pods))| (container, sum, pods)).collect();
}

fn read_pod(
    context: &mut Context<'_>,
    now: SimTime,
    (place, pod): (usize, PodId),
    (total, parts): (i128, &[i64]),
    sums: &mut BTreeMap<Symbol, (Resources, i64)>,
) {
    let state = context.world.pod(pod);
    let Some(started) = state.started else { return };
    let used = context.metrics.used_by_pod(pod, total).unwrap_or(0);
    let load = context.loads_of.of(state.workload).first().map(|&load| &context.loads[load]);
    let for_requests = load.and_then(|load| load.memory_of(used));
    let memory = usage_loop::memory_of_containers(context, pod, for_requests);
    let at = context.vertical.calendar(now);
    let own = &mut context.vertical.autoscalers[place];
    let Some(tracked) = own.pods.get_mut(&pod) else { return };
    let before = match tracked.read {
        // Its containers have been started anew since: their counters began at zero.
        Some((_, before)) if before > used => None,
        Some(before) => Some(before),
        None => Some((started, 0)).filter(|(started, _)| now - *started >= FIRST_READING),
    };
    let Some((since, before)) = before else {
        tracked.read = tracked.read.map(|_| (now, used));
        return;
    };
    tracked.read = Some((now, used));
    let micros = i128::from((now - since).as_micros().max(1));
    let facts = own.facts;
    let mut all_seen: SmallVec<[(Symbol, Resources); 2]> = SmallVec::new();
    for (position, container) in state.spec.containers.iter().enumerate() {
        let name = Symbol::new(&container.name);
        let (sum, pods) = sums.entry(name).or_insert_with(|| (Resources::new(), 0));
        *pods += 1;
        let mut seen = Resources::new();
        if own.known.0 {
            let part = i128::from(parts.get(position).copied().unwrap_or(0));
            // Millionths of a CPU times microseconds times millionths: rounded up to a thousandth of a CPU, as metrics-server does.
            let milli = ((used - before) * part).div_euclid(WHOLE).div_euclid(micros) + 999;
            let milli = i64::try_from(milli / 1_000).unwrap_or(i64::MAX);
            // A sample that is no younger than the last one does not count.
            let _ = own.recommender.cpu_sample((tracked.name, name), at, milli, at);
            seen.set(ResourceName::CPU, milli);
        }
        if let (true, Some(memory)) = (own.known.1, memory.as_ref().and_then(|memory| memory.get(position))) {
            let limit = container.limits.find(ResourceName::MEMORY).unwrap_or(i64::MAX);
            let bytes = (*memory).min(limit);
            let _ = own.recommender.memory_sample((tracked.name, name), at, bytes, at);
            seen.set(ResourceName::MEMORY, bytes);
        }
        sum.add(&seen);
        all_seen.push((name, seen));
    }
    for (name, seen) in &all_seen {
        if let Some(facts) = facts {
            context.world.note_use(facts, *name, seen);
        }
    }
}

/// Writes down what is recommended, now and then.
pub(super) fn note(context: &mut Context<'_>, now: SimTime, (place, target): (usize, WorkloadId)) {
    let every = REPORTED_EVERY.max(context.setup.sample_interval);
    let own = &mut context.vertical.autoscalers[place];
    if own.observed.reported.is_some_and(|last| now - last < every) {
        return;
    }
    own.observed.reported = Some(now);
    write(context, now, (place, target));
}

fn write(context: &mut Context<'_>, now: SimTime, (place, target): (usize, WorkloadId)) {
    let own = &context.vertical.autoscalers[place];
    let Some(facts) = own.facts else { return };
    let mut samples = Vec::new();
    for recommended in own.spec.recommendation.iter().flatten() {
        let mut request = Resources::new();
        let mut pods = 0_i64;
        for &pod in &context.world.workload(target).pods {
            let state = context.world.pod(pod);
            if state.phase == PodPhase::Running
                && let Some(at) = usage_loop::place_of(&state.spec, recommended.container)
            {
                pods += 1;
                let requests = state.spec.containers[at].effective_requests();
                request.add(&Resources::cpu_memory(requests.cpu_milli(), requests.memory_bytes()));
            }
        }
        let used = own.observed.used.iter().find(|(container, ..)| *container == recommended.container);
        samples.push(RecommendationSample {
            at: now,
            container: recommended.container,
            pods: u32::try_from(pods).unwrap_or(u32::MAX),
            request: mean(&request, pods),
            used: used.map_or_else(Resources::new, |(_, sum, pods)| mean(sum, *pods)),
            target: recommended.target.clone(),
            lower_bound: recommended.lower_bound.clone(),
            upper_bound: recommended.upper_bound.clone(),
        });
    }
    for sample in samples {
        context.world.note_recommendation(facts, sample);
    }
}

fn mean(sum: &Resources, pods: i64) -> Resources {
    let mut mean = Resources::new();
    for (name, amount) in sum.iter() {
        mean.set(name, amount / pods.max(1));
    }
    mean
}

/// The last row of the report: what is recommended as the run ends.
pub(in crate::actors) fn end(context: &mut Context<'_>, now: SimTime) {
    for place in 0..context.vertical.autoscalers.len() {
        let own = &context.vertical.autoscalers[place];
        if let Some(target) = own.target.filter(|_| !own.retired && own.observed.reported != Some(now)) {
            write(context, now, (place, target));
        }
    }
}
