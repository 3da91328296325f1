//! Jobs of a dump of which it does not say well since when they have run, and what that means for their deadlines.

use std::collections::BTreeSet;

use crate::actors::InitialPlan;
use crate::domain::Symbol;
use crate::domain::pod::OwnerKind;
use crate::manifests::Manifests;
use nodecast_settings::Caveats;
use nodecast_settings::lints::setup;

/// Warns of Jobs that began after the dump was made, and of those with a deadline whose begin only their pods tell.
pub(super) fn warn(plan: &InitialPlan<'_>, manifests: &Manifests, warnings: &mut Caveats) {
    for job in &manifests.jobs {
        if let Some(started) = job.status.started.filter(|&at| at > plan.seen && job.status.end.is_none()) {
            let later = started.saturating_since(plan.seen);
            let name = job.name;
            warnings.add(&setup::JOB_START, format!(
                "the Job {name} began {later} after the dump was made, by its `status.startTime`: it is taken to begin with the run"
            ));
        }
    }
    let pods = plan.nodes.iter().flat_map(|node| &node.found.pods).filter(|pod| pod.spec.owner == OwnerKind::Job);
    let jobs: BTreeSet<&str> = pods.map(|pod| &*pod.workload).collect();
    for name in jobs.into_iter().filter(|name| has_unknown_start(name, manifests)) {
        warnings.add(&setup::JOB_START, format!(
            "no file says since when the Job {name} has run (`status.startTime`): its `activeDeadlineSeconds` count from its oldest pod of the dump"
        ));
    }
}

/// Whether a Job of pods of the dump has a deadline and no object that says since when it has run.
fn has_unknown_start(name: &str, manifests: &Manifests) -> bool {
    let Some((namespace, name)) = name.split_once('/') else { return false };
    let is = |symbol: Symbol, within: Symbol, name: &str| symbol.as_str() == name && within.as_str() == namespace;
    if let Some(job) = manifests.jobs.iter().find(|job| is(job.name.name, job.name.namespace, name)) {
        let counts = job.spec.active_deadline.is_some() && !job.spec.suspended && job.status.end.is_none();
        return counts && job.status.started.is_none();
    }
    let Some((maker, _)) = name.rsplit_once('-') else { return false };
    let cron = manifests.cron_jobs.iter().find(|cron_job| is(cron_job.name.name, cron_job.name.namespace, maker));
    let scaled = manifests.scaled_jobs.iter().find(|scaled_job| is(scaled_job.name, scaled_job.namespace, maker));
    let spec = cron.map(|cron| &cron.job).or_else(|| scaled.map(|scaled| &scaled.job));
    spec.is_some_and(|job| job.active_deadline.is_some())
}
