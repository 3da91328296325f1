//! `fleet.json`: the result of a fleet, for programs and for the pages.

use nodecast_commitments::{CommitmentBill, RowKind};
use nodecast_ec2::demand::{Exceeded, SharedLimit};
use nodecast_model::domain::{Money, SimTime};
use serde::Serialize;

use crate::{CoupledGroup, FleetBill, FleetRun, LoadedFleet, SharedUse};

/// The version of the layout of `fleet.json`.
pub const SCHEMA_VERSION: u32 = 1;
/// Hours of a month, as in all prices per month.
const HOURS_PER_MONTH: f64 = 730.0;

/// The result of a fleet.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct FleetSummary {
    /// The version of this layout.
    pub schema_version: u32,
    /// The program that wrote it.
    pub program: &'static str,
    /// Its version.
    pub program_version: &'static str,
    /// Name of the fleet.
    pub fleet: String,
    /// Seed of the market.
    pub seed: u64,
    /// Start, RFC 3339.
    pub start: String,
    /// Simulated seconds.
    pub duration_seconds: f64,
    /// Code of the currency of all amounts.
    pub currency: String,
    /// Key figures.
    pub figures: Figures,
    /// The clusters.
    pub clusters: Vec<ClusterRow>,
    /// The commitments.
    pub commitments: Vec<CommitmentRow>,
    /// Chargeback rows, the total last.
    pub chargeback: Vec<Row>,
    /// Clusters that ran on one clock, and why.
    pub coupling: Vec<CouplingRow>,
    /// vCPU quotas that the clusters of an account and region share.
    pub quotas: Vec<QuotaRow>,
    /// What the result is based on.
    pub assumptions: Vec<String>,
    /// Warnings of the fleet file, and of commitments that lose money.
    pub warnings: Vec<String>,
}

/// Key figures of a fleet.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct Figures {
    /// Cost of the run.
    pub total: f64,
    /// The same per month of 730 hours.
    pub per_month: f64,
    /// Cost at list prices.
    pub list: f64,
    /// Fees of commitments that cover nothing.
    pub unused: f64,
    /// Covered share of On-Demand usage.
    pub coverage: Option<f64>,
    /// Used share of the fees.
    pub utilisation: Option<f64>,
    /// Effective savings rate.
    pub savings_rate: Option<f64>,
}

/// A cluster.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct ClusterRow {
    /// Name.
    pub name: String,
    /// Name of its account.
    pub account: String,
    /// Region.
    pub region: String,
    /// Policy.
    pub policy: String,
    /// Its scenario file.
    pub scenario: String,
    /// Seed of its own draws.
    pub seed: u64,
    /// Hash over every event.
    pub event_hash: String,
    /// Cost by its own bill, without the fleet's commitments and discount.
    pub alone: f64,
    /// Net cost in the fleet.
    pub net: f64,
    /// Net cost per month.
    pub per_month: f64,
    /// 99th percentile of pod wait for a node.
    pub pod_wait_p99_seconds: Option<f64>,
    /// Mean of Ready nodes.
    pub nodes_mean: Option<f64>,
    /// Peak of Ready nodes.
    pub nodes_peak: u64,
    /// Launches that EC2 refused.
    pub launches_refused: u64,
    /// Objectives met.
    pub objectives_met: usize,
    /// Objectives.
    pub objectives: usize,
    /// Warnings of its run.
    pub warnings: usize,
}

/// A commitment over the run.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct CommitmentRow {
    /// Id.
    pub id: String,
    /// Name of the account that owns it.
    pub owner: String,
    /// `savings_plan` or `reserved_instances`.
    pub kind: &'static str,
    /// Fee.
    pub fee: f64,
    /// Used part of the fee.
    pub used: f64,
    /// Unused part of the fee.
    pub unused: f64,
    /// List value of what it covers.
    pub covered_list: f64,
    /// Used share of the fee.
    pub utilisation: Option<f64>,
    /// Saving against list prices; negative if it costs more than it saves.
    pub net_saving: f64,
}

/// A chargeback row.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct Row {
    /// `cluster`, `account`, `organization`, or `total`.
    pub kind: &'static str,
    /// Cluster.
    pub cluster: Option<String>,
    /// Name of the account.
    pub account: Option<String>,
    /// Group of the account.
    pub group: Option<String>,
    /// Amounts by column.
    #[serde(flatten)]
    pub amounts: std::collections::BTreeMap<&'static str, f64>,
}

/// Clusters that ran on one clock.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct CouplingRow {
    /// Names of the clusters.
    pub clusters: Vec<String>,
    /// The limits that they exceed together, each with the time of the first excess.
    pub limits: Vec<String>,
}

/// A vCPU quota that the clusters of an account and region share.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct QuotaRow {
    /// Name of the account.
    pub account: String,
    /// Region.
    pub region: String,
    /// `On-Demand` or `Spot`, and the class of instance types.
    pub quota: String,
    /// The quota in vCPUs.
    pub limit: u32,
    /// The largest use.
    pub peak: u32,
    /// When that was for the first time, in seconds from the start.
    pub peak_at_seconds: f64,
    /// Seconds at the limit: from each refused launch until use falls.
    pub at_limit_seconds: f64,
    /// Launches that it refused.
    pub refused: u32,
    /// The clusters that used it or were refused.
    pub clusters: Vec<QuotaCluster>,
    /// Each shared fault that hits one of the clusters.
    pub faults: Vec<QuotaFault>,
}

/// Use of a shared quota by a cluster.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct QuotaCluster {
    /// Name.
    pub cluster: String,
    /// Its largest use.
    pub peak: u32,
    /// Its use at the peak of all.
    pub at_peak: u32,
    /// Launches refused to it.
    pub refused: u32,
}

/// Use of a shared quota under a shared fault and in the hour after it.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct QuotaFault {
    /// The fault, as the file writes it.
    pub fault: String,
    /// The largest use of all clusters.
    pub peak: u32,
    /// Launches refused.
    pub refused: u32,
    /// Whether no launch was refused.
    pub survives: bool,
}

impl FleetSummary {
    /// The summary of a fleet's runs and bill.
    pub fn new(fleet: &LoadedFleet, seed: u64, run: &FleetRun, bill: &FleetBill, currency: &str) -> Self {
        let duration = fleet.clusters[0].scenario.duration.as_secs_f64();
        let monthly = |amount: Money| amount.as_f64() / (duration / 3_600.0).max(f64::MIN_POSITIVE) * HOURS_PER_MONTH;
        let figures = bill.bill.figures();
        let total = bill.rows.last();
        let list = total.map_or(0.0, |row| row.list.as_f64());
        let clusters = fleet.clusters.iter().zip(&run.clusters).map(|(cluster, run)| {
            let row = bill.rows.iter().find(|row| row.cluster == Some(run.bearer.cluster));
            let net = row.map_or(Money::ZERO, |row| row.net);
            ClusterRow {
                name: cluster.name.clone(),
                account: fleet.fleet.accounts[cluster.account].name.clone(),
                region: cluster.scenario.region.to_string(),
                policy: cluster.policy.clone(),
                scenario: fleet.fleet.clusters[cluster.entry].scenario.display().to_string(),
                seed: run.seed,
                event_hash: run.event_hash.clone(),
                alone: run.usage.total.as_f64(),
                net: net.as_f64(),
                per_month: monthly(net),
                pod_wait_p99_seconds: run.wait_p99,
                nodes_mean: run.nodes.0,
                nodes_peak: run.nodes.1,
                launches_refused: run.refused,
                objectives_met: run.objectives.0,
                objectives: run.objectives.1,
                warnings: run.warnings.len(),
            }
        });
        Self {
            schema_version: SCHEMA_VERSION,
            program: nodecast_report::summary::PROGRAM,
            program_version: env!("CARGO_PKG_VERSION"),
            fleet: fleet.fleet.name.clone(),
            seed,
            start: fleet.start.to_string(),
            duration_seconds: duration,
            currency: currency.to_owned(),
            figures: Figures {
                total: bill.total().as_f64(),
                per_month: monthly(bill.total()),
                list,
                unused: bill.bill.unused().as_f64(),
                coverage: figures.coverage,
                utilisation: figures.utilisation,
                savings_rate: figures.savings_rate,
            },
            clusters: clusters.collect(),
            commitments: bill.bill.commitments.iter().map(|commitment| commitment_row(fleet, commitment)).collect(),
            chargeback: bill.rows.iter().map(|row| chargeback_row(fleet, row)).collect(),
            coupling: run.coupled.iter().map(|group| coupling_row(fleet, group)).collect(),
            quotas: run.quotas.iter().map(|quota| quota_row(fleet, quota)).collect(),
            assumptions: assumptions(fleet, run, currency),
            warnings: warnings(fleet, bill, currency),
        }
    }

    /// The summary as JSON, with a line feed at its end.
    ///
    /// # Errors
    /// If an amount is no number.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self).map(|json| json + "\n")
    }
}

/// The name of the account with an id.
pub(crate) fn account_name(fleet: &LoadedFleet, id: &str) -> String {
    let account = fleet.fleet.accounts.iter().find(|account| account.id == id);
    account.map_or(id, |account| account.name.as_str()).to_owned()
}

fn commitment_row(fleet: &LoadedFleet, commitment: &CommitmentBill) -> CommitmentRow {
    let total = commitment.total;
    CommitmentRow {
        id: commitment.id.to_string(),
        owner: account_name(fleet, commitment.owner.as_str()),
        kind: if commitment.is_plan { "savings_plan" } else { "reserved_instances" },
        fee: total.fee.as_f64(),
        used: total.used().as_f64(),
        unused: total.unused.as_f64(),
        covered_list: total.covered_list.as_f64(),
        utilisation: total.utilisation(),
        net_saving: total.net_saving().as_f64(),
    }
}

fn chargeback_row(fleet: &LoadedFleet, row: &nodecast_commitments::ChargebackRow) -> Row {
    let columns = nodecast_commitments::ChargebackRow::COLUMNS.into_iter().skip(3);
    Row {
        kind: match row.kind {
            RowKind::Cluster => "cluster",
            RowKind::Account => "account",
            RowKind::Organization => "organization",
            RowKind::Total => "total",
        },
        cluster: row.cluster.map(|cluster| cluster.to_string()),
        account: row.account.map(|account| account_name(fleet, account.as_str())),
        group: row.group.map(|group| group.to_string()),
        amounts: columns.zip(row.amounts().map(|amount| amount.as_f64())).collect(),
    }
}

fn coupling_row(fleet: &LoadedFleet, group: &CoupledGroup) -> CouplingRow {
    let limit = |exceeded: &Exceeded| {
        let after = (exceeded.at - nodecast_model::domain::SimTime::ZERO).to_string();
        format!("{}, first after {after}", limit_words(&exceeded.limit))
    };
    CouplingRow {
        clusters: group.clusters.iter().map(|&at| fleet.clusters[at].name.clone()).collect(),
        limits: group.exceeded.iter().map(limit).collect(),
    }
}

fn quota_row(fleet: &LoadedFleet, quota: &SharedUse) -> QuotaRow {
    let total = &quota.total;
    let cluster = |(place, &at): (usize, &usize)| QuotaCluster {
        cluster: fleet.clusters[at].name.clone(),
        peak: total.peaks[place],
        at_peak: total.at_peak[place],
        refused: total.refused[place],
    };
    let fault = |used: &crate::FaultUse| QuotaFault {
        fault: fleet.fleet.faults[used.fault].words(),
        peak: used.peak,
        refused: used.refused,
        survives: used.refused == 0,
    };
    let clusters = quota.clusters.iter().enumerate().map(cluster);
    QuotaRow {
        account: fleet.fleet.accounts[quota.account].name.clone(),
        region: quota.region.to_string(),
        quota: total.quota.to_string(),
        limit: total.limit,
        peak: total.peak,
        peak_at_seconds: (total.peak_at - SimTime::ZERO).as_secs_f64(),
        at_limit_seconds: total.at_limit.as_secs_f64(),
        refused: total.refused.iter().sum(),
        clusters: clusters.filter(|cluster| cluster.peak > 0 || cluster.refused > 0).collect(),
        faults: quota.faults.iter().map(fault).collect(),
    }
}

/// A shared limit in words.
fn limit_words(limit: &SharedLimit) -> String {
    match limit {
        SharedLimit::Vcpus(key) => {
            let market = if key.spot { "Spot" } else { "On-Demand" };
            format!("{market} vCPU quota {}", key.class.as_str())
        }
        SharedLimit::Calls(action) => format!("limit on {} calls", action.as_str()),
        SharedLimit::FargateVcpus => "Fargate vCPU quota".to_owned(),
        SharedLimit::FargateLaunches => "Fargate launch rate".to_owned(),
        SharedLimit::Pool(pool) => format!("Spot pool {} in {}", pool.instance_type, pool.zone),
        SharedLimit::PoolDepth => "depth of Spot pools".to_owned(),
    }
}

/// What the result is based on.
fn assumptions(fleet: &LoadedFleet, run: &FleetRun, currency: &str) -> Vec<String> {
    let mut assumptions = Vec::new();
    if let Some(file) = &fleet.fleet.other_usage {
        let usage: Money = fleet.other_usage.iter().map(|(_, usage)| usage.total).sum();
        let usage = nodecast_report::format::money(currency, usage.as_f64());
        assumptions.push(format!(
            "Usage outside the clusters is as in `{}`: {usage} at list prices in this run.",
            file.display()
        ));
    } else if fleet.fleet.has_commitments() {
        assumptions.push(
            "Commitments serve the clusters alone: no other usage of the accounts competes for them (`other_usage`)."
                .to_owned(),
        );
    }
    assumptions.push(match run.coupled.is_empty() {
        true => "No shared limit was exceeded by all clusters together, so each cluster ran alone.".to_owned(),
        false => "Clusters that exceed a shared limit together ran on one clock; all others ran alone.".to_owned(),
    });
    assumptions.push("Clusters share the Spot market: its prices and reclaim events are the same for all.".to_owned());
    assumptions
}

/// Warnings of the fleet file, and of commitments that cost more than they save.
fn warnings(fleet: &LoadedFleet, bill: &FleetBill, currency: &str) -> Vec<String> {
    let mut warnings: Vec<String> = fleet.warnings.iter().map(ToString::to_string).collect();
    for commitment in &bill.bill.commitments {
        let saving = commitment.total.net_saving().as_f64();
        if saving < 0.0 {
            let loss = nodecast_report::format::money(currency, -saving);
            warnings.push(format!("`{}` costs {loss} more than it saves in this run", commitment.id));
        }
    }
    warnings
}
