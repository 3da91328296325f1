//! Use of vCPU quotas that the clusters of an account and region share, over the run and under each shared fault.

use std::collections::BTreeMap;

use nodecast_model::domain::{SimDuration, SimTime, Symbol};
use nodecast_sim::coupled::{Demand, QuotaUse, quota_use};

use crate::LoadedFleet;

/// Time after a fault that counts as under it: replacements may start late.
const AFTER: SimDuration = SimDuration::from_secs(3_600);

/// Use of a quota by the clusters that share it.
#[derive(Clone, Debug)]
pub struct SharedUse {
    /// Position of the account.
    pub account: usize,
    /// Region.
    pub region: Symbol,
    /// Positions of the clusters, in the order of the vectors of `total`.
    pub clusters: Vec<usize>,
    /// Use over the run.
    pub total: QuotaUse,
    /// Use under each shared fault that hits one of the clusters.
    pub faults: Vec<FaultUse>,
}

/// Use of a quota under a shared fault and in the hour after it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FaultUse {
    /// Position of the fault.
    pub fault: usize,
    /// The largest use of all clusters.
    pub peak: u32,
    /// Launches refused.
    pub refused: u32,
}

/// Use of every quota that a cluster asked for, by account, region, and quota. `demands` are in the order of the clusters.
pub(crate) fn shared_use(fleet: &LoadedFleet, demands: &[Demand]) -> Vec<SharedUse> {
    let mut groups: BTreeMap<(usize, Symbol), Vec<usize>> = BTreeMap::new();
    for (at, cluster) in fleet.clusters.iter().enumerate() {
        groups.entry((cluster.account, Symbol::new(cluster.scenario.region.as_str()))).or_default().push(at);
    }
    let end = SimTime::ZERO + fleet.clusters[0].scenario.duration;
    let mut all = Vec::new();
    for ((account, region), clusters) in groups {
        let of_group: Vec<&Demand> = clusters.iter().map(|&at| &demands[at]).collect();
        for total in quota_use(&of_group, end).into_iter().filter(|quota| quota.limit > 0) {
            let hits = |&fault: &usize| clusters.iter().any(|&at| fleet.is_hit(fault, at));
            let faults = (0..fleet.fleet.faults.len()).filter(hits);
            let faults = faults.map(|fault| under_fault(fleet, fault, (&of_group, &total), end)).collect();
            all.push(SharedUse { account, region, clusters: clusters.clone(), total, faults });
        }
    }
    all
}

fn under_fault(fleet: &LoadedFleet, fault: usize, (demands, quota): (&[&Demand], &QuotaUse), end: SimTime) -> FaultUse {
    let (from, length) = fleet.fleet.faults[fault].time;
    let from = SimTime::ZERO + from;
    let to = length.map_or(end, |length| from + length + AFTER);
    let mut steps: Vec<_> = demands.iter().flat_map(|demand| &demand.vcpus).collect();
    steps.retain(|step| step.quota == quota.quota && step.at <= to);
    steps.sort_by_key(|step| step.at);
    let (mut used, mut peak, mut refused) = (0_i64, 0_i64, 0);
    for step in steps {
        if step.at >= from {
            // What was in use when the fault began counts, too.
            peak = peak.max(used);
            refused += u32::from(step.refused);
        }
        used += i64::from(step.change);
    }
    FaultUse { fault, peak: u32::try_from(peak.max(used)).unwrap_or(0), refused }
}
