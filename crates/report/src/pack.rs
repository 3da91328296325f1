//! What `nodecast pack` answers: the nodes that Karpenter would launch now, as a table for people or as JSON.
//!
//! Field names are the keys of the JSON and carry their unit; they change only with [`SCHEMA_VERSION`].
//! `docs/outputs.md` explains each key.

mod explain;
mod repacked;
mod suite;
mod table;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::catalog::PriceQuality;
use crate::domain::symbol::well_known;
use crate::domain::{Currency, HourlyRate, Resources};
use crate::single_pass::SinglePass;
use nodecast_karpenter::instance_types::position;
use nodecast_karpenter::packing::PlannedClaim;
use nodecast_karpenter::selection::{LaunchRequest, Override};

pub use explain::{NodeExplanation, PodExplanation, PoolExplanation, RefusedTypes, ShortOf};
pub use repacked::{ConstraintCost, Repacked};
pub use suite::{Baseline, BaselineInstance, Change, PackedInstance, SuiteAnswer};

/// The version of the layout of the JSON.
pub const SCHEMA_VERSION: u32 = 1;
/// Hours of a month, as AWS counts them.
pub(super) const HOURS_OF_MONTH: f64 = 730.0;

/// What Karpenter would do now.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct PackAnswer {
    /// Version of this layout.
    pub schema_version: u32,
    /// What wrote it.
    pub program: &'static str,
    /// The program's version.
    pub program_version: &'static str,
    /// The region.
    pub region: &'static str,
    /// The currency of every amount.
    pub currency: Currency,
    /// Karpenter's release.
    pub karpenter: String,
    /// Origin of the release.
    pub karpenter_source: String,
    /// Open feature gates, by Karpenter's names.
    pub feature_gates: Vec<&'static str>,
    /// Who packs: `karpenter` or `cost-aware`.
    pub packer: &'static str,
    /// The counts and the cost.
    pub summary: PackSummary,
    /// What runs today, where it was packed anew.
    pub repacked: Option<Repacked>,
    /// The nodes to launch, in the order in which they were opened.
    pub launches: Vec<LaunchedNode>,
    /// Existing nodes that pods go on.
    pub existing_nodes: Vec<FilledNode>,
    /// Pods without a place, by reason.
    pub pending: Vec<PendingGroup>,
    /// Why one pod goes where it goes, if that was asked.
    pub explanation: Option<PodExplanation>,
}

/// The answer in figures.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct PackSummary {
    /// Nodes to launch.
    pub new_nodes: usize,
    /// What they cost in an hour, each at its cheapest type.
    pub per_hour: f64,
    /// What they cost in a month of 730 hours.
    pub per_month: f64,
    /// What no packing of the pods that are placed could cost less than in an hour; `None` if it was not asked for.
    pub lower_bound_per_hour: Option<f64>,
    /// How much more than that they cost, in percent of it; `None` without a bound above zero.
    pub gap_percent: Option<f64>,
    /// Whether the search for the bound came to its end, so that more time would not have raised it.
    pub lower_bound_final: Option<bool>,
    /// Pods to place: those without a node, and those of nodes that are being deleted.
    pub pods_waiting: usize,
    /// Of them, on nodes to launch.
    pub pods_on_new_nodes: usize,
    /// Of them, on existing nodes.
    pub pods_on_existing_nodes: usize,
    /// Of them, without a place.
    pub pods_pending: usize,
}

/// A node to launch.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct LaunchedNode {
    /// The NodePool.
    pub node_pool: &'static str,
    /// The cheapest type asked for.
    pub instance_type: &'static str,
    /// Its lowest price for an hour among the zones asked for.
    pub per_hour: f64,
    /// How that price is known.
    pub price_quality: Option<PriceQuality>,
    /// What is asked for: `spot`, `on-demand` or `reserved`.
    pub capacity_type: &'static str,
    /// How EC2 is to choose among the types.
    pub strategy: &'static str,
    /// The zones asked for.
    pub zones: Vec<&'static str>,
    /// The types asked for, in Karpenter's order, each at its lowest price.
    pub types: Vec<PricedName>,
    /// Instance types that would hold the pods, before Karpenter's cut.
    pub types_possible: usize,
    /// What pods and daemons request together.
    pub requests: Amounts,
    /// The daemons' share.
    pub daemon_requests: Amounts,
    /// What a node of the cheapest type offers to pods.
    pub allocatable: Amounts,
    /// The share of its CPU that is requested.
    pub cpu_share: f64,
    /// The share of its memory that is requested.
    pub memory_share: f64,
    /// The pods on it, `namespace/name`.
    pub pods: Vec<String>,
    /// The same by workload, with their number.
    pub workloads: BTreeMap<String, usize>,
    /// The same in words.
    #[serde(skip)]
    pub in_words: String,
}

/// An instance type at a price.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct PricedName {
    /// The type.
    pub instance_type: &'static str,
    /// Its price for an hour.
    pub per_hour: f64,
}

/// Amounts of the resources that every node has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, schemars::JsonSchema)]
pub struct Amounts {
    /// CPU in thousandths of a core.
    pub cpu_milli: i64,
    /// Memory in bytes.
    pub memory_bytes: i64,
    /// Pods.
    pub pods: i64,
}

/// An existing node that pods go on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, schemars::JsonSchema)]
pub struct FilledNode {
    /// The node.
    pub node: String,
    /// The pods that go on it.
    pub pods: Vec<String>,
    /// The same by workload, with their number.
    pub workloads: BTreeMap<String, usize>,
    /// The same in words.
    #[serde(skip)]
    pub in_words: String,
}

/// Pods that stay pending for one reason.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, schemars::JsonSchema)]
pub struct PendingGroup {
    /// Karpenter's reason; each NodePool's, separated by `; `.
    pub reason: String,
    /// The same line by line: a NodePool each.
    #[serde(skip)]
    pub lines: Vec<String>,
    /// The pods.
    pub pods: Vec<String>,
    /// The same by workload, with their number.
    pub workloads: BTreeMap<String, usize>,
    /// The same in words.
    #[serde(skip)]
    pub in_words: String,
}

impl From<&Resources> for Amounts {
    fn from(resources: &Resources) -> Self {
        Self { cpu_milli: resources.cpu_milli(), memory_bytes: resources.memory_bytes(), pods: resources.pods() }
    }
}

impl PackAnswer {
    /// The answer of a pass, with an explanation of the pod at `explain` of its question.
    pub fn new(pass: &SinglePass<'_>, explain: Option<usize>) -> Self {
        let question = pass.question;
        let launched = pass.plan.claims.iter().zip(&pass.launches);
        let launches: Vec<LaunchedNode> = launched
            .filter_map(|(claim, request)| {
                request.as_ref().ok().and_then(|request| launched_node(pass, claim, request))
            })
            .collect();
        let existing_nodes: Vec<FilledNode> = pass
            .plan
            .existing
            .iter()
            .map(|placement| {
                let pods: Vec<usize> = placement.pods.iter().map(|&pod| pass.asked[pod]).collect();
                let node = question.nodes[placement.node].node.name.clone();
                FilledNode {
                    node,
                    pods: names(pass, &pods),
                    workloads: workloads(pass, &pods),
                    in_words: table::listed(pass, &pods),
                }
            })
            .collect();
        let pending = pending(pass);
        let per_hour = launches.iter().map(|launch| HourlyRate::from_nanos(nanos(launch.per_hour)).as_nanos()).sum();
        let per_hour = HourlyRate::from_nanos(per_hour).as_f64();
        Self {
            schema_version: SCHEMA_VERSION,
            program: "nodecast",
            program_version: env!("CARGO_PKG_VERSION"),
            region: question.region.name.as_str(),
            currency: question.region.currency,
            karpenter: question.karpenter.to_string(),
            karpenter_source: question.setup.source.clone(),
            feature_gates: question.setup.flags.gates.open(),
            packer: pass.packer.as_str(),
            summary: PackSummary {
                new_nodes: launches.len(),
                per_hour,
                per_month: libm::round(per_hour * HOURS_OF_MONTH * 1e4) / 1e4,
                lower_bound_per_hour: pass.bound.map(|bound| bound.per_hour.as_f64()),
                gap_percent: pass.bound.and_then(|bound| gap_percent(per_hour, bound.per_hour.as_f64())),
                lower_bound_final: pass.bound.map(|bound| bound.finished),
                pods_waiting: pass.asked.len() + pass.left_out.len(),
                pods_on_new_nodes: launches.iter().map(|launch| launch.pods.len()).sum(),
                pods_on_existing_nodes: existing_nodes.iter().map(|node| node.pods.len()).sum(),
                pods_pending: pending.iter().map(|group| group.pods.len()).sum(),
            },
            repacked: None,
            launches,
            existing_nodes,
            pending,
            explanation: explain.map(|pod| PodExplanation::new(pass, pod)),
        }
    }

    /// The answer as JSON, with a line feed at the end.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }
}

/// How much more than `bound` a cost is, in percent of it.
fn gap_percent(cost: f64, bound: f64) -> Option<f64> {
    (bound > 0.0).then(|| libm::round((cost / bound - 1.0) * 1e4) / 1e2)
}

/// A price in the unit in which sums are exact.
fn nanos(per_hour: f64) -> i64 {
    libm::round(per_hour * 1e9) as i64
}

fn launched_node(pass: &SinglePass<'_>, claim: &PlannedClaim, request: &LaunchRequest) -> Option<LaunchedNode> {
    let mut types: Vec<(&'static str, HourlyRate)> = Vec::new();
    let mut zones: Vec<&'static str> = Vec::new();
    for wanted in &request.overrides {
        let (name, real) = (wanted.instance_type.as_str(), real_price(pass, request, wanted));
        match types.iter_mut().find(|(known, _)| *known == name) {
            Some((_, price)) => *price = (*price).min(real),
            None => types.push((name, real)),
        }
        if !zones.contains(&wanted.zone.as_str()) {
            zones.push(wanted.zone.as_str());
        }
    }
    zones.sort_unstable();
    let price = |wanted: &Override| real_price(pass, request, wanted);
    let cheapest = request.overrides.iter().min_by_key(|wanted| (price(wanted), wanted.priority))?;
    let kind = &pass.types[claim.pool][position(&pass.types[claim.pool], cheapest.instance_type)?];
    let pods: Vec<usize> = claim.pods.iter().map(|&pod| pass.asked[pod]).collect();
    let share = |requested: i64, offered: i64| {
        if offered > 0 { libm::round(requested as f64 / offered as f64 * 1e4) / 1e4 } else { 0.0 }
    };
    let (requests, allocatable) = (Amounts::from(&claim.requests), Amounts::from(&kind.allocatable));
    Some(LaunchedNode {
        node_pool: claim.node_pool.as_str(),
        instance_type: cheapest.instance_type.as_str(),
        per_hour: price(cheapest).as_f64(),
        price_quality: price_quality(pass, request, cheapest),
        capacity_type: request.capacity_type.as_str(),
        strategy: request.strategy.as_str(),
        zones,
        types: types
            .into_iter()
            .map(|(instance_type, price)| PricedName { instance_type, per_hour: price.as_f64() })
            .collect(),
        types_possible: claim.instance_types_before_cut,
        requests,
        daemon_requests: Amounts::from(&claim.daemon_requests),
        allocatable,
        cpu_share: share(requests.cpu_milli, allocatable.cpu_milli),
        memory_share: share(requests.memory_bytes, allocatable.memory_bytes),
        pods: names(pass, &pods),
        workloads: workloads(pass, &pods),
        in_words: table::listed(pass, &pods),
    })
}

/// What an instance costs, which releases before v1 do not know in China.
fn real_price(pass: &SinglePass<'_>, request: &LaunchRequest, wanted: &Override) -> HourlyRate {
    let listed = || pass.question.region.instance_type(wanted.instance_type)?.on_demand.map(|price| price.rate);
    if request.capacity_type == well_known::ON_DEMAND { listed().unwrap_or(wanted.price) } else { wanted.price }
}

/// How the price of a pool is known.
fn price_quality(pass: &SinglePass<'_>, request: &LaunchRequest, wanted: &Override) -> Option<PriceQuality> {
    let instance_type = pass.question.region.instance_type(wanted.instance_type)?;
    if request.capacity_type == well_known::SPOT {
        let zone = pass.question.region.zone_index(wanted.zone)?;
        return instance_type.spot(zone).map(|price| price.quality);
    }
    instance_type.on_demand.map(|price| price.quality)
}

fn names(pass: &SinglePass<'_>, pods: &[usize]) -> Vec<String> {
    pods.iter().map(|&pod| pass.question.pods[pod].full_name()).collect()
}

fn workloads(pass: &SinglePass<'_>, pods: &[usize]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for &pod in pods {
        *counts.entry(pass.question.pods[pod].workload.clone()).or_insert(0) += 1;
    }
    counts
}

/// Pods without a place, by reason, in the order of their first pods.
fn pending(pass: &SinglePass<'_>) -> Vec<PendingGroup> {
    let mut reasons: Vec<(usize, Vec<String>)> = Vec::new();
    for (pod, reason) in &pass.left_out {
        reasons.push((*pod, vec![reason.clone()]));
    }
    for unplaced in &pass.plan.unschedulable {
        let mut lines = explain::lines(&unplaced.reason);
        lines
            .extend(pass.plan.dropped_pools.iter().map(|dropped| format!("{}: {}", dropped.node_pool, dropped.reason)));
        reasons.push((pass.asked[unplaced.pod], lines));
    }
    for (claim, request) in pass.plan.claims.iter().zip(&pass.launches) {
        if let Err(error) = request {
            let line = format!("{}: launch would fail: {error}", claim.node_pool);
            reasons.extend(claim.pods.iter().map(|&pod| (pass.asked[pod], vec![line.clone()])));
        }
    }
    reasons.sort_by_key(|(pod, _)| *pod);
    let mut groups: Vec<(Vec<String>, Vec<usize>)> = Vec::new();
    for (pod, lines) in reasons {
        match groups.iter_mut().find(|(known, _)| *known == lines) {
            Some((_, pods)) => pods.push(pod),
            None => groups.push((lines, vec![pod])),
        }
    }
    let group = |(lines, pods): (Vec<String>, Vec<usize>)| PendingGroup {
        reason: lines.join("; "),
        lines,
        pods: names(pass, &pods),
        workloads: workloads(pass, &pods),
        in_words: table::listed(pass, &pods),
    };
    groups.into_iter().map(group).collect()
}
