//! Warnings about what had no effect on a run or on its figures: faults that met nothing, Jobs of the warm-up, and claims that static
//! pools made in vain.
//!
//! Must not warn of steps that found nothing to act on: their actors do.

use std::collections::BTreeMap;

use crate::cloud::faults::{Fault, FaultKind};
use crate::domain::words::{counted, some_of};
use crate::domain::{SimDuration, SimTime, Symbol, WorkloadId, well_known};
use crate::world::record::{EventKind, JobFacts, NodeOrigin, Record, WorkloadKind};

/// A sentence for each fault during which nothing came that it could have changed.
///
/// A fault that met something may still have changed nothing: that is not found here.
pub(super) fn idle_faults(record: &Record, faults: &[Fault], end: SimTime) -> Vec<String> {
    let sentence = |fault: &Fault| {
        let until = fault.until.min(end);
        let what = missing(record, fault.kind, (fault.at, until))?;
        Some(format!(
            "at {}: the fault \"{}\" changed nothing, because {what} while it lasted",
            fault.at,
            fault.kind.describe()
        ))
    };
    faults.iter().filter(|fault| fault.at < end).filter_map(sentence).collect()
}

/// What did not come during a fault although nothing else could have been changed by it; `None` if something came.
fn missing(record: &Record, kind: FaultKind, span: (SimTime, SimTime)) -> Option<&'static str> {
    let happened = |kinds: &[EventKind]| {
        record.events.iter().any(|event| span.0 <= event.at && event.at < span.1 && kinds.contains(&event.kind))
    };
    let launches = [
        EventKind::LaunchRequested,
        EventKind::InstanceLaunched,
        EventKind::LaunchFailed,
        EventKind::LaunchAborted,
        EventKind::ScalingActivityFailed,
    ];
    let ran = |spot_only: bool| {
        record.nodes.iter().any(|node| {
            let is_meant = !spot_only || node.capacity_type == Some(well_known::SPOT);
            let from = node.launched.filter(|launched| *launched < span.1);
            is_meant && from.is_some() && node.terminated.is_none_or(|ended| ended > span.0)
        })
    };
    match kind {
        FaultKind::InsufficientCapacity { .. }
        | FaultKind::SubnetExhausted { .. }
        | FaultKind::Quota { .. }
        | FaultKind::BootFailure { .. }
        | FaultKind::SlowBoot { .. }
        | FaultKind::ZoneOutage { power: false, .. } => (!happened(&launches)).then_some("nothing was launched"),
        FaultKind::LostNotices { .. } => {
            let notices = [EventKind::InterruptionNotice, EventKind::RebalanceRecommended];
            (!happened(&notices)).then_some("no interruption notice was sent")
        }
        FaultKind::PriceShock { .. } => (!ran(true) && !happened(&launches)).then_some("no Spot instance was running"),
        FaultKind::ZoneOutage { power: true, zone } => {
            let ran_there = record.nodes.iter().any(|node| {
                node.zone == Some(zone)
                    && node.launched.is_some_and(|launched| launched < span.1)
                    && node.terminated.is_none_or(|ended| ended > span.0)
            });
            (!ran_there && !happened(&launches)).then_some("nothing ran there and nothing was launched")
        }
        // They name what they strike, or concern calls of which there are always some.
        FaultKind::SpotInterruption { .. }
        | FaultKind::NodeFailure { .. }
        | FaultKind::ApiThrottle { .. }
        | FaultKind::ApiError { .. }
        | FaultKind::ApiLatency { .. } => None,
    }
}

/// A sentence for each static NodePool whose claims Karpenter refused without a call to EC2.
pub(super) fn refused_claims(record: &Record, static_pools: &[Symbol]) -> Vec<String> {
    let sentence = |pool: &Symbol| {
        let refused = record.failed_without_call().filter(|node| node.origin == NodeOrigin::NodePool(*pool)).count();
        (refused > 0).then(|| {
            format!(
                "NodePool {pool}: static, and for a time no offering was available: Karpenter created {} that it refused without a call to EC2, \
                 one after the other. Meanwhile it launches nothing for pods and disrupts nothing; a cluster has gaps of milliseconds between \
                 two claims, this run has none, so the waits of other pods may be too long",
                counted(refused as u64, "claim", "claims")
            )
        })
    };
    static_pools.iter().filter_map(sentence).collect()
}

/// A sentence on the Jobs and CronJobs all of whose work was over by the end of the warm-up.
pub(super) fn jobs_of_warm_up(record: &Record, warm_up: SimDuration) -> Option<String> {
    let counts_from = SimTime::ZERO + warm_up;
    let mut by_workload: BTreeMap<WorkloadId, Vec<&JobFacts>> = BTreeMap::new();
    for job in &record.jobs {
        by_workload.entry(job.workload).or_default().push(job);
    }
    let is_over = |job: &&JobFacts| job.end.is_some_and(|end| end.at < counts_from);
    let kind = |workload: WorkloadId| record.workloads[workload.index()].kind;
    let names: Vec<String> = by_workload
        .into_iter()
        .filter(|(workload, _)| matches!(kind(*workload), WorkloadKind::Job | WorkloadKind::CronJob))
        .filter(|(_, jobs)| jobs.iter().all(is_over))
        .map(|(workload, _)| format!("{} {}", kind(workload).as_str(), record.workloads[workload.index()].name))
        .collect();
    if names.is_empty() {
        return None;
    }
    let (run, them) = if names.len() == 1 { ("runs", "its pods") } else { ("run", "their pods") };
    Some(format!(
        "{} {run} within the warm-up of {warm_up} only: waits and churn leave {them} out, the cost includes them. Shorten `warm_up`, or \
         start such Jobs after it",
        some_of(&names)
    ))
}
