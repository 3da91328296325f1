//! What is to be said of NodePools and workloads that ask for zones by ids which no zone of the cluster is taken for.

use std::collections::BTreeSet;

use crate::actors::Setup;
use crate::domain::workload::ObjectName;
use crate::domain::{PodSpec, Requirements};
use crate::manifests::Manifests;
use nodecast_karpenter::instance_types::{ways_of_pod, zone_id_doubt};
use nodecast_settings::Caveats;

/// Workloads that have a warning of their own.
const NAMED_MAX: usize = 5;

/// Warns of NodePools that can launch nothing, and of workloads whose pods no new node takes, for the sake of the id of a zone.
pub(super) fn warn(setup: &Setup<'_>, warnings: &mut Caveats) {
    let doubt = |ways: &[Requirements]| zone_id_doubt(&setup.region, &setup.scenario.zones, ways);
    for pool in &setup.node_pools {
        if let Some(text) = doubt(&[pool.requirements.iter().cloned().collect()]) {
            warnings.add(&nodecast_single_pass::lints::ZONE_ID, format!("NodePool {}: {text}", pool.name));
        }
    }
    let later = setup.scenario.timeline.iter().filter_map(|timed| timed.action.applied());
    let mut told = BTreeSet::new();
    for objects in std::iter::once(&setup.policy.manifests).chain(later) {
        for (name, spec) in templates(objects) {
            if told.len() < NAMED_MAX
                && !told.contains(&name)
                && let Some(text) = doubt(&ways_of_pod(spec))
            {
                told.insert(name);
                warnings.add(&nodecast_single_pass::lints::ZONE_ID, format!("{name}: {text}"));
            }
        }
    }
}

/// What each workload makes its pods after, and each pod that nothing controls.
pub(super) fn templates(objects: &Manifests) -> impl Iterator<Item = (ObjectName, &PodSpec)> {
    let deployments = objects.deployments.iter().map(|deployment| (deployment.name, &*deployment.template));
    let sets = objects.stateful_sets.iter().map(|stateful_set| (stateful_set.name, &*stateful_set.template));
    let daemons = objects.daemon_sets.iter().map(|daemon_set| (daemon_set.name, &*daemon_set.template));
    let jobs = objects.jobs.iter().map(|job| (job.name, &*job.spec.template));
    let crons = objects.cron_jobs.iter().map(|cron_job| (cron_job.name, &*cron_job.job.template));
    let scaled = objects.scaled_jobs.iter().map(|scaled_job| {
        let name = ObjectName { namespace: scaled_job.namespace, name: scaled_job.name };
        (name, &*scaled_job.job.template)
    });
    let pods = objects.pods.iter().filter(|pod| super::is_bare(pod)).map(|pod| (pod.name, &pod.spec));
    deployments.chain(sets).chain(daemons).chain(jobs).chain(crons).chain(scaled).chain(pods)
}
