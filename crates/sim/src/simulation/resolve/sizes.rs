//! What is to be said of pods that are larger than any node.

use std::sync::Arc;

use crate::actors::Setup;
use crate::catalog::{Region, RegionType};
use crate::domain::words::counted;
use crate::domain::workload::ObjectName;
use crate::domain::{PodSpec, Resources};
use crate::simulation::usable_types::offers_of_pool;
use nodecast_model::fargate;
use nodecast_settings::lints::setup;
use nodecast_settings::{Action, Caveats};

/// Requests that any machine worth asking about holds: they are not looked at.
const SMALL_CPU: i64 = 900;
const SMALL_MEMORY: i64 = 1 << 30;
/// Workloads that have a warning of their own.
const NAMED_MAX: usize = 5;

/// Warns of workloads whose pods request more CPU or memory than any node offers that NodePools and node groups admit: they wait for ever.
/// DaemonSets, taints and selectors are not looked at, so that it is never said in vain; nor is a cluster whose nodes a dump states.
pub(super) fn warn(setup: &Setup<'_>, warnings: &mut Caveats) {
    let applies_later = setup.scenario.timeline.iter().any(|step| matches!(step.action, Action::Apply(_)));
    if setup.initial.is_some() || applies_later {
        return;
    }
    let large: Vec<(ObjectName, Resources)> = workloads(setup).filter(|(_, item)| is_large(item)).collect();
    if large.is_empty() || is_surely_held(setup, &most(large.iter().map(|(_, key)| key))) {
        return;
    }
    let offers = offers(setup);
    let fits = |resources: &Resources| {
        offers
            .iter()
            .any(|offer| resources.cpu_milli() <= offer.cpu_milli() && resources.memory_bytes() <= offer.memory_bytes())
    };
    // Where nothing is admitted at all, something else is amiss.
    let (Some(cpu), Some(memory)) =
        (offers.iter().map(Resources::cpu_milli).max(), offers.iter().map(Resources::memory_bytes).max())
    else {
        return;
    };
    for (name, requests) in large.iter().filter(|(_, key)| !fits(key)).take(NAMED_MAX) {
        warnings.add(&setup::TOO_LARGE_PODS, format!(
            "{name}: each pod requests {} and {} of memory, more than any allowed instance type has (at most {} and {}), so its pods stay \
             pending. Lower the requests, or allow larger types",
            cpus(requests.cpu_milli()),
            gibibytes(requests.memory_bytes()),
            cpus(cpu),
            gibibytes(memory)
        ));
    }
}

/// CPUs as a person says them.
fn cpus(milli: i64) -> String {
    if milli % 1_000 == 0 { counted((milli / 1_000).unsigned_abs(), "CPU", "CPUs") } else { format!("{milli}m CPU") }
}

fn gibibytes(bytes: i64) -> String {
    if bytes < 1 << 30 {
        return format!("{} MiB", bytes >> 20);
    }
    let tenths = (bytes * 10 + (1 << 29)) >> 30;
    format!("{}.{} GiB", tenths / 10, tenths % 10)
}

/// Each resource where it is largest.
fn most<'r>(all: impl Iterator<Item = &'r Resources>) -> (i64, i64) {
    all.fold((0, 0), |(cpu, memory), item| (cpu.max(item.cpu_milli()), memory.max(item.memory_bytes())))
}

/// Types that are asked about at a time.
const AT_A_TIME: usize = 16;

/// Whether some NodePool has a type whose nodes offer as much: whoever asks for little is answered by the first few types of more than twice that.
/// To work out what all of a region offer would be a tenth of a short run.
fn is_surely_held(setup: &Setup<'_>, &(cpu, memory): &(i64, i64)) -> bool {
    let region = &setup.region;
    let is_ample = |kind: &&RegionType| {
        i64::from(kind.facts.vcpus) * 1_000 > 2 * cpu && i64::from(kind.facts.memory_mib) << 20 > 2 * memory
    };
    let ample: Vec<RegionType> = region.types.iter().filter(is_ample).cloned().collect();
    setup.node_pools.iter().any(|pool| {
        let Some(class) = setup.node_classes.iter().find(|class| class.name == pool.node_class) else { return false };
        let holds = |resources: Resources| resources.cpu_milli() >= cpu && resources.memory_bytes() >= memory;
        ample.chunks(AT_A_TIME).any(|types| {
            let some = Region::new(region.name, region.currency, region.zones.clone(), types.to_vec());
            offers_of_pool(setup, &some, pool, class).any(holds)
        })
    })
}

fn is_large(requests: &Resources) -> bool {
    requests.cpu_milli() > SMALL_CPU || requests.memory_bytes() > SMALL_MEMORY
}

/// What a pod of each workload requests whose pods go to nodes.
pub(super) fn workloads<'s>(setup: &'s Setup<'_>) -> impl Iterator<Item = (ObjectName, Resources)> + 's {
    let manifests = &setup.policy.manifests;
    let deployments = manifests.deployments.iter().filter(|deployment| deployment.replicas != Some(0));
    let deployments = deployments.map(|deployment| (deployment.name, &deployment.template));
    let sets = manifests.stateful_sets.iter().filter(|stateful_set| stateful_set.replicas != Some(0));
    let sets = sets.map(|group| (group.name, &group.template));
    let jobs = manifests.jobs.iter().map(|job| (job.name, &job.spec.template));
    let crons = manifests.cron_jobs.iter().map(|cron_job| (cron_job.name, &cron_job.job.template));
    let all = deployments.chain(sets).chain(jobs).chain(crons);
    all.filter(|(name, spec)| !is_on_fargate(setup, *name, spec)).map(|(name, spec)| (name, spec.requests()))
}

fn is_on_fargate(setup: &Setup<'_>, name: ObjectName, spec: &Arc<PodSpec>) -> bool {
    let settings = setup.policy.fargate.as_ref();
    settings.is_some_and(|setting| fargate::chosen(&setting.profiles, name.namespace.as_str(), &spec.labels).is_some())
}

/// What a node of each type offers that a NodePool or a node group admits.
pub(super) fn offers(setup: &Setup<'_>) -> Vec<Resources> {
    let mut all = Vec::new();
    for pool in &setup.node_pools {
        if let Some(class) = setup.node_classes.iter().find(|class| class.name == pool.node_class) {
            all.extend(offers_of_pool(setup, &setup.region, pool, class));
        }
    }
    for group in &setup.policy.manifests.node_groups {
        for name in &group.instance_types {
            let Some(known) = setup.region.instance_type(*name) else { continue };
            all.push(setup.node_of_group(&known.facts, group).allocatable);
        }
    }
    all
}
