//! Runs of all clusters of a fleet, each alone first; those that together exceed a shared limit again on one clock.

use std::ops::ControlFlow;
use std::sync::Arc;

use nodecast_commitments::Bearer;
use nodecast_engine::Streams;
use nodecast_model::catalog::Region;
use nodecast_model::domain::Symbol;
use nodecast_prices::{Catalog, CatalogError};
use nodecast_report::Summary;
use nodecast_settings::{Caveats, PolicyVariant};
use nodecast_sim::coupled::{Coupling, Demand, Exceeded, Member, MemberRun, Seeds, alone, couplings, together};
use nodecast_world::Outcome;
use rayon::prelude::*;

use crate::quotas::{SharedUse, shared_use};
use crate::usage::ClusterUsage;
use crate::{LoadedCluster, LoadedFleet};

/// What observes a fleet's runs, from any thread.
pub trait Observer: Sync {
    /// A cluster's run has ended. A cluster that is coupled ends twice; the second run counts.
    ///
    /// # Errors
    /// If the outcome could not be used, for example written.
    fn ended(&self, cluster: &LoadedCluster, outcome: &Outcome, summary: &Summary) -> Result<(), String>;
    /// Whether no further run is wanted.
    fn is_stopped(&self) -> bool;
}

/// One cluster's run, reduced to what the fleet needs.
#[derive(Clone, Debug)]
pub struct ClusterRun {
    /// The cluster, and its account by id.
    pub bearer: Bearer,
    /// Seed of the cluster's own draws.
    pub seed: u64,
    /// Hash over every event.
    pub event_hash: String,
    /// Its usage.
    pub usage: ClusterUsage,
    /// Nodes: mean and peak.
    pub nodes: (Option<f64>, u64),
    /// 99th percentile of pod wait for a node, in seconds; `None` without pods.
    pub wait_p99: Option<f64>,
    /// Objectives that were met, and all.
    pub objectives: (usize, usize),
    /// Warnings of the run.
    pub warnings: Caveats,
    /// Launches that a limit refused.
    pub refused: u64,
}

/// Clusters that ran on one clock.
#[derive(Clone, Debug)]
pub struct CoupledGroup {
    /// Positions of the clusters.
    pub clusters: Vec<usize>,
    /// The limits that they exceeded together.
    pub exceeded: Vec<Exceeded>,
}

/// The runs of a fleet.
#[derive(Clone, Debug)]
pub struct FleetRun {
    /// Each cluster, in the order of the fleet.
    pub clusters: Vec<ClusterRun>,
    /// Those that ran on one clock.
    pub coupled: Vec<CoupledGroup>,
    /// Use of shared vCPU quotas.
    pub quotas: Vec<SharedUse>,
}

/// Why a fleet has no runs.
#[derive(Debug)]
pub enum RunError {
    /// The catalog has no prices of a region.
    Catalog(CatalogError),
    /// Somebody stopped it.
    Stopped,
    /// The observer could not use an outcome.
    Observer(String),
}

impl From<CatalogError> for RunError {
    fn from(error: CatalogError) -> Self {
        Self::Catalog(error)
    }
}

/// The seed of a cluster's own draws. A fleet of one cluster uses the fleet's seed: its run has the bytes of the scenario alone.
pub fn cluster_seed(fleet: &LoadedFleet, cluster: &LoadedCluster, seed: u64) -> u64 {
    if fleet.clusters.len() == 1 {
        return seed;
    }
    let name = &fleet.fleet.clusters[cluster.entry].name;
    Streams::new(seed).nth("fleet-cluster", name, u64::from(cluster.copy)).word()
}

/// The setup of a run.
struct Runs<'r> {
    fleet: &'r LoadedFleet,
    catalog: &'r Catalog,
    observer: &'r dyn Observer,
    members: Vec<Member<'r>>,
    regions: Vec<Arc<Region>>,
}

/// Runs every cluster of a fleet with this seed, on the threads of the current pool.
///
/// # Errors
/// If the catalog has no prices for a region, or the observer stops the runs or fails.
pub fn run(fleet: &LoadedFleet, catalog: &Catalog, seed: u64, observer: &dyn Observer) -> Result<FleetRun, RunError> {
    let policies: Vec<&PolicyVariant> = fleet.clusters.iter().filter_map(policy).collect();
    let members: Vec<Member<'_>> =
        fleet.clusters.iter().zip(policies).map(|(cluster, policy)| member_of(fleet, cluster, policy, seed)).collect();
    let regions = fleet.clusters.iter().map(|cluster| catalog.region(cluster.scenario.region.as_str()));
    let regions = regions.collect::<Result<Vec<_>, _>>()?;
    let runs = Runs { fleet, catalog, observer, members, regions };
    let all: Vec<(ClusterRun, Demand)> =
        (0..fleet.clusters.len()).into_par_iter().with_max_len(1).map(|at| runs.alone(at)).collect::<Result<_, _>>()?;
    let (mut clusters, mut demands): (Vec<ClusterRun>, Vec<Demand>) = all.into_iter().unzip();
    let shares_capacity = fleet.fleet.shares_capacity;
    let mut coupled: Vec<CoupledGroup> = Vec::new();
    // Clusters on one clock use other Spot pools than alone, so that more clusters may meet there.
    for _ in 0..ROUNDS_MAX {
        let all: Vec<&Demand> = demands.iter().collect();
        let mut found = couplings(&runs.members, &all, shares_capacity);
        found.retain(|coupling| !coupled.iter().any(|group| group.clusters == coupling.members));
        let again: Vec<(Coupling, Vec<(ClusterRun, Demand)>)> = found
            .into_par_iter()
            .with_max_len(1)
            .map(|coupling| runs.together(&coupling).map(|clusters| (coupling, clusters)))
            .collect::<Result<_, _>>()?;
        let is_last = again.is_empty() || !shares_capacity;
        for (coupling, runs) in again {
            coupled.retain(|group| !group.clusters.iter().any(|at| coupling.members.contains(at)));
            for (&at, (run, demand)) in coupling.members.iter().zip(runs) {
                (clusters[at], demands[at]) = (run, demand);
            }
            coupled.push(CoupledGroup { clusters: coupling.members, exceeded: coupling.exceeded });
        }
        if is_last {
            break;
        }
    }
    coupled.sort_by(|one, other| one.clusters.cmp(&other.clusters));
    let quotas = shared_use(fleet, &demands);
    Ok(FleetRun { clusters, coupled, quotas })
}

/// Rounds of coupled runs.
const ROUNDS_MAX: usize = 8;

fn policy(cluster: &LoadedCluster) -> Option<&PolicyVariant> {
    cluster.scenario.for_policy(Some(&cluster.policy)).ok()
}

fn member_of<'r>(
    fleet: &'r LoadedFleet,
    cluster: &'r LoadedCluster,
    policy: &'r PolicyVariant,
    seed: u64,
) -> Member<'r> {
    Member {
        name: &fleet.fleet.clusters[cluster.entry].name,
        copy: cluster.copy,
        account: &fleet.fleet.accounts[cluster.account].id,
        scenario: &cluster.scenario,
        policy,
        seeds: Seeds { market: seed, cluster: cluster_seed(fleet, cluster, seed) },
        keeps_meters: cluster.scenario.output.open_metrics.is_some(),
        zones: &fleet.fleet.accounts[cluster.account].zones,
    }
}

impl Runs<'_> {
    /// Progress that ends a run if nobody wants it.
    fn go_on(&self) -> ControlFlow<()> {
        if self.observer.is_stopped() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn alone(&self, at: usize) -> Result<(ClusterRun, Demand), RunError> {
        let run = alone(&self.members[at], self.catalog, &mut |_| self.go_on())?.ok_or(RunError::Stopped)?;
        Ok((self.ended(at, run.outcome)?, run.demand))
    }

    fn together(&self, coupling: &Coupling) -> Result<Vec<(ClusterRun, Demand)>, RunError> {
        let members: Vec<Member<'_>> = coupling.members.iter().map(|&at| self.members[at]).collect();
        let shares_capacity = self.fleet.fleet.shares_capacity;
        let runs = together(&members, shares_capacity, self.catalog, &mut |_| self.go_on())?;
        let runs = runs.ok_or(RunError::Stopped)?;
        let ended = |(&at, run): (&usize, MemberRun)| -> Result<(ClusterRun, Demand), RunError> {
            Ok((self.ended(at, run.outcome)?, run.demand))
        };
        coupling.members.iter().zip(runs).map(ended).collect()
    }

    /// Reduces the outcome of a cluster, after the observer has seen it.
    fn ended(&self, at: usize, mut outcome: Outcome) -> Result<ClusterRun, RunError> {
        let cluster = &self.fleet.clusters[at];
        outcome.warnings.precede(Caveats::from_warnings(&cluster.warnings));
        outcome.warnings.add_unused();
        let summary = Summary::from_outcome(&outcome);
        self.observer.ended(cluster, &outcome, &summary).map_err(RunError::Observer)?;
        let met = summary.objectives.iter().filter(|objective| objective.met == Some(true)).count();
        Ok(ClusterRun {
            bearer: Bearer {
                cluster: Symbol::new(&cluster.name),
                account: Symbol::new(&self.fleet.fleet.accounts[cluster.account].id),
            },
            seed: self.members[at].seeds.cluster,
            event_hash: summary.event_hash.clone(),
            usage: ClusterUsage::from_outcome(&self.fleet.fleet, cluster, &self.regions[at], &outcome),
            nodes: (summary.nodes.mean_ready, summary.nodes.max_ready),
            wait_p99: summary.pods.wait_for_node.map(|spans| spans.p99_seconds),
            objectives: (met, summary.objectives.len()),
            warnings: summary.warnings.clone(),
            refused: summary.nodes.failed_launches,
        })
    }
}
