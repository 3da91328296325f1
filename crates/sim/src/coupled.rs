//! Clusters of a fleet: each alone with its demand on shared limits, or several on one clock with limits that they share.
//!
//! [`alone`] runs one cluster against the full limits. [`couplings`] finds the clusters whose demands together exceed a limit, and
//! [`together`] runs these on one clock. All other results stay: no shared limit would have refused anything.
//!
//! Clusters of one account and region share the vCPU quotas, the buckets of API calls, and the limits of Fargate. Each cluster compares the
//! use of all with the limits of its own scenario, so a fleet writes its shared limits into each scenario.
//!
//! Must not: read a fleet file, or apply commitments.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use crate::catalog::{Catalog, CatalogError};
use crate::domain::SimTime;
use crate::simulation::{self, Outcome, Progress};
pub use nodecast_ec2::demand::{
    Demand, Exceeded, QuotaKey, QuotaUse, SharedLimit, exceeded, exceeded_pools, quota_use,
};
use nodecast_settings::{PolicyVariant, Scenario};

/// A cluster of a fleet.
#[derive(Clone, Copy, Debug)]
pub struct Member<'s> {
    /// The name in the fleet file. Ties of time follow the order of names, then of copies.
    pub name: &'s str,
    /// The number of the copy.
    pub copy: u32,
    /// The account. Members of one account share its limits.
    pub account: &'s str,
    /// The scenario, with the limits of its account.
    pub scenario: &'s Scenario,
    /// The policy, one of the scenario's.
    pub policy: &'s PolicyVariant,
    /// The seeds.
    pub seeds: Seeds,
    /// Whether the values that only `metrics.om` shows are recorded.
    pub keeps_meters: bool,
}

/// Seeds of a cluster of a fleet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seeds {
    /// The seed of Spot prices and of the capacity of pools: the same for every cluster of a fleet.
    pub market: u64,
    /// The seed of all other draws.
    pub cluster: u64,
}

impl Seeds {
    /// Seeds of a run that is not part of a fleet.
    pub const fn single(seed: u64) -> Self {
        Self { market: seed, cluster: seed }
    }
}

/// The result of one cluster.
#[derive(Clone, Debug)]
pub struct MemberRun {
    /// The outcome.
    pub outcome: Outcome,
    /// Demand on limits that clusters may share.
    pub demand: Demand,
}

/// Runs one cluster alone, against the full limits of its account, as long as `progress` continues; `None` if it does not.
///
/// # Errors
/// If the catalog has no prices for the scenario's region.
pub fn alone(
    member: &Member<'_>,
    catalog: &Catalog,
    progress: &mut dyn FnMut(&Progress<'_>) -> ControlFlow<()>,
) -> Result<Option<MemberRun>, CatalogError> {
    simulation::run_member(member, catalog, progress)
}

/// Runs clusters of one region on one clock, as long as `progress` continues; `None` if it does not. The results are in the order of
/// `members`. The next event is the first of all clusters by time, name, copy, and sequence. With `shares_pools`, the instances of
/// static Spot pools are shared by all members, whatever their account.
///
/// # Errors
/// If the catalog has no prices for the scenarios' region.
pub fn together(
    members: &[Member<'_>],
    shares_pools: bool,
    catalog: &Catalog,
    progress: &mut dyn FnMut(SimTime) -> ControlFlow<()>,
) -> Result<Option<Vec<MemberRun>>, CatalogError> {
    simulation::run_together(members, shares_pools, catalog, progress)
}

/// Clusters that have to run on one clock.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Coupling {
    /// Positions of the members, in order.
    pub members: Vec<usize>,
    /// Exceeded limits, in order of time.
    pub exceeded: Vec<Exceeded>,
}

/// Clusters whose demands together exceed a limit that they share, each at most once. Members of one account and region share its
/// limits; with `shares_pools`, all members of a region share static Spot pools. `demands` are in the order of `members`.
///
/// A run of such clusters on one clock changes their demand on Spot pools. With `shares_pools`, check again with the new demands, and
/// run larger couplings until there are none.
pub fn couplings(members: &[Member<'_>], demands: &[&Demand], shares_pools: bool) -> Vec<Coupling> {
    let mut accounts: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
    let mut regions: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for at in ranked(members) {
        let member = &members[at];
        let region = member.scenario.region.as_str();
        accounts.entry((region, member.account)).or_default().push(at);
        regions.entry(region).or_default().push(at);
    }
    let demands_of = |at: &[usize]| at.iter().map(|&at| demands[at]).collect::<Vec<_>>();
    let mut all = Vec::new();
    for (region, in_region) in regions {
        let pools = if shares_pools { exceeded_pools(&demands_of(&in_region)) } else { Vec::new() };
        let of_region = accounts.range((region, "")..).take_while(|((name, _), _)| *name == region);
        let coupled: Vec<Coupling> = of_region
            .map(|(_, members)| Coupling { members: members.clone(), exceeded: exceeded(&demands_of(members)) })
            .filter(|coupling| !coupling.exceeded.is_empty())
            .collect();
        if pools.is_empty() {
            all.extend(coupled);
        } else {
            let exceeded = coupled.into_iter().flat_map(|coupling| coupling.exceeded).chain(pools);
            all.push(Coupling { members: in_region, exceeded: exceeded.collect() });
        }
    }
    for coupling in &mut all {
        coupling.members.sort_unstable();
        coupling.exceeded.sort_unstable();
    }
    all
}

/// Positions of the members in the order of ties: by name, then by copy.
pub(crate) fn ranked(members: &[Member<'_>]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..members.len()).collect();
    order.sort_by_key(|&at| (members[at].name, members[at].copy));
    order
}
