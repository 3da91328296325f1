//! Clusters of a fleet: each alone with its demand on shared limits, or several on one clock with limits that they share.
//!
//! [`alone`] runs one cluster against the full limits. [`couplings`] finds the clusters whose demands together exceed a limit, and
//! [`together`] runs these on one clock. All other results stay: no shared limit would have refused anything.
//!
//! Clusters of one account and region share the vCPU quotas, the buckets of API calls, and the limits of Fargate. Each cluster compares the
//! use of all with the limits of its own scenario, so a fleet writes its shared limits into each scenario.
//!
//! Deviation: clusters of a fleet do not share subnets or capacity reservations. A reservation that is not in use counts against the quota of
//! the other clusters as of the last event of its own cluster.
//!
//! Must not: read a fleet file, or apply commitments.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::ControlFlow;
use std::sync::Arc;

use super::zone_names::renamed;
use super::{Outcome, Progress, Resolved, Simulation, concluded, drive, resolve};
use crate::actors::Setup;
use crate::catalog::{Catalog, CatalogError, Region};
use crate::cloud::account::{AccountUse, PoolUse};
use crate::cloud::demand::{self, PlacedDemand};
pub use crate::cloud::demand::{
    Coupling, Demand, Exceeded, QuotaKey, QuotaUse, SharedLimit, exceeded, exceeded_pools, quota_use,
};
use crate::domain::SimTime;
use nodecast_settings::{Caveats, PolicyVariant, Scenario};

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
    /// IDs of zones by the names of the account; other zones have the names of the price data.
    pub zones: &'s BTreeMap<String, String>,
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

/// Events between two reports of progress.
const PROGRESS_EVERY: u64 = 4_096;

/// The setup of a member, and the warnings about it.
fn resolved<'s>(member: &Member<'s>, catalog: &Catalog) -> Result<ResolvedMember<'s>, CatalogError> {
    let Resolved { mut setup, warnings } = resolve(member.scenario, member.policy, catalog, member.seeds.cluster)?;
    setup.keeps_meters = member.keeps_meters;
    setup.market_seed = member.seeds.market;
    let listed = Arc::clone(&setup.region);
    setup.price_list = renamed(&setup.price_list, member.zones);
    setup.region = renamed(&setup.region, member.zones);
    Ok(ResolvedMember { setup, warnings, listed })
}

/// A member with its setup.
struct ResolvedMember<'s> {
    setup: Setup<'s>,
    warnings: Caveats,
    /// The region with the names of zones in the price data.
    listed: Arc<Region>,
}

impl<'s> ResolvedMember<'s> {
    /// The member about to start, whose demand is recorded.
    fn recording(&'s self) -> Simulation<'s> {
        let mut simulation = Simulation::before_start(&self.setup);
        let ec2 = &mut simulation.components.sim.ec2;
        ec2.record_demand();
        if !Arc::ptr_eq(&self.setup.region, &self.listed) {
            ec2.market().set_listed(Arc::clone(&self.listed));
        }
        simulation
    }
}

/// The result of a member whose simulation has ended.
fn member_run(mut simulation: Simulation<'_>, member: &Member<'_>, warnings: Caveats) -> MemberRun {
    let api = simulation.components.sim.ec2.settings().api;
    let demand = simulation.components.sim.ec2.take_demand().unwrap_or_else(|| Demand::new(api));
    MemberRun { outcome: concluded(simulation, member.scenario, member.policy, warnings), demand }
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
    let resolved = resolved(member, catalog)?;
    let mut simulation = resolved.recording();
    simulation.begin();
    if drive(&mut simulation, progress).is_break() {
        return Ok(None);
    }
    Ok(Some(member_run(simulation, member, resolved.warnings.clone())))
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
    let order = ranked(members);
    let resolved: Result<Vec<_>, _> = order.iter().map(|&at| resolved(&members[at], catalog)).collect();
    let resolved = resolved?;
    let accounts: Vec<&str> = order.iter().map(|&at| members[at].account).collect();
    let mut clock = Clock::new(&resolved, &accounts, shares_pools);
    if clock.drive(progress).is_break() {
        return Ok(None);
    }
    let ended = clock.simulations.into_iter().zip(&resolved).zip(order);
    let run = |((simulation, resolved), at): ((Simulation<'_>, &ResolvedMember<'_>), usize)| {
        (at, member_run(simulation, &members[at], resolved.warnings.clone()))
    };
    let mut runs: Vec<(usize, MemberRun)> = ended.map(run).collect();
    runs.sort_by_key(|(at, _)| *at);
    Ok(Some(runs.into_iter().map(|(_, run)| run).collect()))
}

/// Clusters whose demands together exceed a limit that they share, each at most once. Members of one account and region share its
/// limits; with `shares_pools`, all members of a region share static Spot pools. `demands` are in the order of `members`.
///
/// A run of such clusters on one clock changes their demand on Spot pools. With `shares_pools`, check again with the new demands, and
/// run larger couplings until there are none.
pub fn couplings(members: &[Member<'_>], demands: &[&Demand], shares_pools: bool) -> Vec<Coupling> {
    let order = ranked(members);
    let placed = |&at: &usize| {
        let Member { account, scenario, .. } = members[at];
        PlacedDemand { region: scenario.region.as_str(), account, demand: demands[at] }
    };
    let mut all = demand::couplings(&order.iter().map(placed).collect::<Vec<_>>(), shares_pools);
    for coupling in &mut all {
        coupling.members.iter_mut().for_each(|rank| *rank = order[*rank]);
        coupling.members.sort_unstable();
    }
    all
}

/// Positions of the members in the order of ties: by name, then by copy.
fn ranked(members: &[Member<'_>]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..members.len()).collect();
    order.sort_by_key(|&at| (members[at].name, members[at].copy));
    order
}

/// Simulations on one clock, in the order of ties, with what they share.
struct Clock<'s> {
    simulations: Vec<Simulation<'s>>,
    /// The account of each simulation, by position in `accounts`.
    account_of: Vec<usize>,
    accounts: Vec<AccountUse>,
    pools: Option<PoolUse>,
}

impl<'s> Clock<'s> {
    fn new(members_of_clock: &'s [ResolvedMember<'s>], account_names: &[&str], shares_pools: bool) -> Self {
        let mut simulations: Vec<Simulation<'s>> = members_of_clock.iter().map(ResolvedMember::recording).collect();
        let mut members: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (rank, name) in account_names.iter().enumerate() {
            members.entry(name).or_default().push(rank);
        }
        let (mut account_of, mut accounts) = (vec![0; simulations.len()], Vec::new());
        for (account, ranks) in members.values().enumerate() {
            for (number, &rank) in (0..).zip(ranks) {
                account_of[rank] = account;
                simulations[rank].components.sim.ec2.set_cluster(number);
            }
            let limits = ranks.first().map(|&rank| simulations[rank].components.sim.ec2.settings().api);
            accounts.extend(limits.map(|limits| AccountUse::new(&limits, ranks.len() as u32)));
        }
        Self { simulations, account_of, accounts, pools: shares_pools.then(PoolUse::default) }
    }

    /// Gives a simulation what it shares, or takes it back.
    fn exchange(&mut self, rank: usize) {
        let ec2 = &mut self.simulations[rank].components.sim.ec2;
        ec2.exchange_account(&mut self.accounts[self.account_of[rank]]);
        if let Some(pools) = &mut self.pools {
            ec2.exchange_pools(pools);
        }
    }

    /// Runs all simulations to their ends.
    fn drive(&mut self, progress: &mut dyn FnMut(SimTime) -> ControlFlow<()>) -> ControlFlow<()> {
        let mut waiting = BinaryHeap::new();
        for rank in 0..self.simulations.len() {
            self.exchange(rank);
            self.simulations[rank].begin();
            self.exchange(rank);
            let first = self.simulations[rank].components.sim.queue.next_time();
            waiting.extend(first.map(|at| Reverse((at, rank))));
        }
        let mut events: u64 = 0;
        while let Some(Reverse((_, rank))) = waiting.pop() {
            // One simulation goes on until the next event is another's.
            let other = waiting.peek().map(|Reverse(next)| *next);
            self.exchange(rank);
            let next = self.turn(rank, other, &mut events, progress)?;
            self.exchange(rank);
            waiting.extend(next.map(|at| Reverse((at, rank))));
        }
        ControlFlow::Continue(())
    }

    /// Runs one simulation up to the next event of another one. Returns the time of its own next event.
    fn turn(
        &mut self,
        rank: usize,
        other: Option<(SimTime, usize)>,
        events: &mut u64,
        progress: &mut dyn FnMut(SimTime) -> ControlFlow<()>,
    ) -> ControlFlow<(), Option<SimTime>> {
        let simulation = &mut self.simulations[rank];
        loop {
            simulation.end_warm_up_when_due();
            let Some(now) = simulation.step() else { return ControlFlow::Continue(None) };
            if events.is_multiple_of(PROGRESS_EVERY) {
                progress(now)?;
            }
            *events += 1;
            let next = simulation.components.sim.queue.next_time();
            if next.is_some_and(|next| other.is_some_and(|other| other < (next, rank))) {
                return ControlFlow::Continue(next);
            }
        }
    }
}
