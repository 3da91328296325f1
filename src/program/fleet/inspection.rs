//! A fleet before it runs: its clusters with the contents of their scenarios, and warnings.

use std::collections::BTreeSet;
use std::path::Path;

use nodecast_fleet::{LoadedCluster, LoadedFleet, Overrides, load};
use serde::Serialize;

use crate::catalog::Catalog;
use crate::experiment::inspection::{Inspection, caveats, inspect};
use crate::program::{Failure, Remark, prices};
use crate::report::columns::printed;
use crate::report::format::{counted, instant_for_people, span};
use crate::report::table::Rows;
use crate::scenario::Scenario;

/// Contents of a fleet.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct FleetInspection {
    /// Its name.
    pub name: String,
    /// Start of every run (RFC 3339).
    pub start: String,
    /// Simulated time.
    pub duration_seconds: f64,
    /// The seed.
    pub seed: u64,
    /// Number of accounts that have clusters, as in the answer of a run.
    pub accounts: usize,
    /// Number of Savings Plans.
    pub savings_plans: usize,
    /// Number of entries of Reserved Instances.
    pub reserved_instances: usize,
    /// Number of shared quotas.
    pub quotas: usize,
    /// Number of shared faults.
    pub faults: usize,
    /// The clusters, each entry of the file once.
    pub clusters: Vec<ClusterInspection>,
}

/// An entry of `clusters`.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct ClusterInspection {
    /// Its name.
    pub name: String,
    /// Number of clusters of this kind.
    pub count: u32,
    /// Name of its account.
    pub account: String,
    /// Contents of its scenario, with the policy of the cluster alone.
    pub holds: Inspection,
}

/// Reads a fleet and all scenarios of its clusters as a run does; with it every warning. A brief check has warnings alone.
///
/// # Errors
/// If the fleet or a scenario cannot be used.
pub fn inspect_fleet(
    path: &Path,
    is_brief: bool,
    catalog: &Catalog,
) -> Result<(Option<FleetInspection>, Vec<Remark>), Failure> {
    let fleet = load(path, catalog, &Overrides::default())?;
    let mut warnings: Vec<Remark> = fleet.warnings.iter().map(Remark::warning).collect();
    let mut clusters: Vec<ClusterInspection> = Vec::new();
    for cluster in fleet.clusters.iter().filter(|cluster| cluster.copy == 1) {
        let (holds, of_cluster) = inspect_cluster(cluster, is_brief, catalog)?;
        let entry = &fleet.fleet.clusters[cluster.entry];
        let message =
            |remark: Remark| Remark { message: format!("cluster `{}`: {}", entry.name, remark.message), ..remark };
        warnings.extend(of_cluster.into_iter().map(message));
        clusters.extend(holds.map(|holds| ClusterInspection {
            name: entry.name.clone(),
            count: entry.count,
            account: fleet.fleet.account(entry).name.clone(),
            holds,
        }));
    }
    Ok(((!is_brief).then(|| inspection(&fleet, clusters)), warnings))
}

fn inspection(fleet: &LoadedFleet, clusters: Vec<ClusterInspection>) -> FleetInspection {
    FleetInspection {
        name: fleet.fleet.name.clone(),
        start: fleet.start.to_string(),
        duration_seconds: fleet.clusters[0].scenario.duration.as_secs_f64(),
        seed: fleet.seed,
        accounts: clusters.iter().map(|cluster| &cluster.account).collect::<BTreeSet<_>>().len(),
        savings_plans: fleet.fleet.plans.len(),
        reserved_instances: fleet.fleet.reserved.len(),
        quotas: fleet.fleet.quotas.len(),
        faults: fleet.fleet.faults.len(),
        clusters,
    }
}

/// The scenario of a cluster with its policy, and the warnings about it.
fn inspect_cluster(
    cluster: &LoadedCluster,
    is_brief: bool,
    catalog: &Catalog,
) -> Result<(Option<Inspection>, Vec<Remark>), Failure> {
    let mut scenario = Scenario::clone(&cluster.scenario);
    scenario.policies.retain(|policy| policy.name == cluster.policy);
    let (holds, more) = match is_brief {
        true => (None, caveats(&scenario, catalog).map_err(prices::unusable)?),
        false => {
            let (holds, more) = inspect(&scenario, catalog).map_err(prices::unusable)?;
            (Some(holds), more)
        }
    };
    Ok((holds, cluster.warnings.iter().map(Remark::warning).chain(more.iter().map(Remark::caveat)).collect()))
}

/// The fleet in a few lines, then a line for each entry of `clusters`.
pub fn fleet_table(fleet: &FleetInspection, width: Option<usize>) -> String {
    let clusters: u64 = fleet.clusters.iter().map(|cluster| u64::from(cluster.count)).sum();
    let mut parts = Vec::new();
    for (count, one, many) in [
        (fleet.savings_plans, "Savings Plan", "Savings Plans"),
        (fleet.reserved_instances, "entry of Reserved Instances", "entries of Reserved Instances"),
        (fleet.quotas, "shared quota", "shared quotas"),
        (fleet.faults, "shared fault", "shared faults"),
    ] {
        if count > 0 {
            parts.push(counted(count as u64, one, many));
        }
    }
    parts.push(format!("seed {}", fleet.seed));
    let mut lines = vec![
        format!(
            "{}: {} in {}, {} from {}",
            fleet.name,
            counted(clusters, "cluster", "clusters"),
            counted(fleet.accounts as u64, "account", "accounts"),
            span(fleet.duration_seconds),
            instant_for_people(&fleet.start)
        ),
        parts.join(", "),
        String::new(),
    ];
    let policy = |cluster: &&ClusterInspection| cluster.holds.policies.first().cloned();
    let rows = Rows::new(&fleet.clusters)
        .text("cluster", |cluster: &&ClusterInspection| &cluster.name)
        .number("count", |cluster| u64::from(cluster.count))
        .text("account", |cluster| &cluster.account)
        .text("region", |cluster| &cluster.holds.region)
        .text("policy", |cluster| policy(cluster).map(|policy| policy.name).unwrap_or_default())
        .text("autoscaler", |cluster| policy(cluster).map(|policy| policy.autoscaler).unwrap_or_default())
        .number("workloads", |cluster| policy(cluster).map(|policy| policy.workloads as u64))
        .number("pods at start", |cluster| policy(cluster).map(|policy| u64::from(policy.pods_at_start)))
        .number("pods in run", |cluster| policy(cluster).map(|policy| policy.expected.pods))
        .gap(3);
    lines.extend(rows.table().lines(width));
    let expected = fleet.clusters.iter().flat_map(|cluster| &cluster.holds.policies).map(|policy| policy.expected);
    if let Some(largest) = expected.max_by_key(|expected| expected.memory_bytes) {
        lines.extend([String::new(), format!("estimated run size of the largest cluster: {largest}")]);
    }
    printed(&lines, width)
}
