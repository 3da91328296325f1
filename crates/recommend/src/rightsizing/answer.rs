//! The answer: what each sizing costs and what breaks under it, and every container's sizes.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::sizes::UsageHistory;
use super::{Aside, Measured, Owner, Sizing, templates};
use crate::domain::{ResourceName, Resources, Symbol};
use crate::figures::FIGURES;
use crate::points::Point;
use crate::report::summary::{HOURS_PER_MONTH, InputSummary, PROGRAM};
use crate::scenario::{Caveats, Scenario};
use crate::statistics::{Estimate, Paired};

/// Version of the form of `rightsizing.json`.
const SCHEMA_VERSION: u32 = 1;
/// Workloads of the table of costs.
const WORKLOADS: usize = 10;
const MEBIBYTE: f64 = 1024.0 * 1024.0;

/// What requests that fit would save.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RightSizing {
    /// Version of this form.
    pub schema_version: u32,
    /// `nodecast`.
    pub program: String,
    /// The program's version.
    pub program_version: String,
    /// The scenario's name.
    pub scenario: String,
    /// The policy.
    pub policy: String,
    /// The region.
    pub region: String,
    /// The currency of every amount.
    pub currency: String,
    /// Date of the prices.
    pub price_date: String,
    /// Days of use that sizes rest on.
    pub history_days: f64,
    /// The first seed, whose run sizes rest on.
    pub first_seed: u64,
    /// How many seeds each sizing was simulated with.
    pub replications: u64,
    /// Input files with their SHA-256.
    pub inputs: Vec<InputSummary>,
    /// What each sizing comes to, what there is today first.
    pub sizings: Vec<SizingResult>,
    /// The workloads whose cost changes most, at most ten.
    pub workloads: Vec<WorkloadCost>,
    /// The workloads with OOM-killed containers under any sizing, by name; absent without any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memory_kills: Vec<WorkloadKills>,
    /// Every container that was sized.
    pub containers: Vec<ContainerSizes>,
    /// Workloads that keep what they request, and containers that do beside others that are sized.
    pub left_alone: Vec<LeftAlone>,
    /// What the model left out and could change the answer, under any sizing.
    #[serde(flatten)]
    pub warnings: Caveats,
}

/// What the cluster comes to with a sizing.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SizingResult {
    /// `today`, `recommended`, `p50`, `p90` or `p99`.
    pub name: String,
    /// The bill for a month of 730 hours.
    pub cost_per_month: Option<Estimate>,
    /// The same against today, seed by seed; `null` for today.
    pub against_today: Option<Paired>,
    /// Containers killed for lack of memory.
    pub out_of_memory: Option<Estimate>,
    /// Pods evicted because their node ran out of memory.
    pub evicted_for_memory: Option<Estimate>,
    /// Hours for which pods wanted more CPU than their limit or their node gave, added up over pods.
    pub throttled_hours: Option<Estimate>,
    /// How long pods wait for a node, 99th percentile, in seconds.
    pub pending_p99: Option<Estimate>,
    /// Pods without a node at the end.
    pub pods_pending: Option<Estimate>,
    /// The slowest workload's response time, 99th percentile, in seconds; `null` without requests.
    pub request_p99: Option<Estimate>,
    /// Share of requests that got no answer; `null` without requests.
    pub requests_lost: Option<Estimate>,
    /// Workloads whose autoscaler adds replicas because it compares use with smaller requests, those first that get most; absent without
    /// any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more_replicas: Vec<MoreReplicas>,
}

/// A workload with more replicas than today, because its autoscaler's target is a share of requests.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct MoreReplicas {
    /// Namespace and name.
    pub workload: String,
    /// Mean replicas wanted today.
    pub replicas_today: f64,
    /// The same with this sizing.
    pub replicas: f64,
}

/// The rise in mean replicas, as a share, from which on a workload is named.
const MORE_MUCH: f64 = 0.02;

/// The workloads that want clearly more replicas than today and are scaled by use in percent of requests.
fn more_replicas(item: &[Run], today: &[Run]) -> Vec<MoreReplicas> {
    let mean = |runs: &[Run], name: &String| {
        let known: Vec<f64> = runs.iter().filter_map(|(_, aside)| aside.replicas.get(name).copied()).collect();
        (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
    };
    let names: BTreeSet<&String> = item.iter().flat_map(|(_, aside)| aside.replicas.keys()).collect();
    let entry = |name: &String| {
        let (replicas_today, replicas) = (mean(today, name)?, mean(item, name)?);
        let is_more = replicas > replicas_today * (1.0 + MORE_MUCH);
        is_more.then(|| MoreReplicas { workload: name.clone(), replicas_today, replicas })
    };
    let mut all: Vec<MoreReplicas> = names.into_iter().filter_map(entry).collect();
    let added = |one: &MoreReplicas| one.replicas - one.replicas_today;
    all.sort_by(|one, other| added(other).total_cmp(&added(one)).then_with(|| one.workload.cmp(&other.workload)));
    all
}

/// What a workload costs in a month.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct WorkloadCost {
    /// Namespace and name.
    pub workload: String,
    /// Its mean cost with each sizing, in the order of `sizings`; `null` where it had none.
    pub cost_per_month: Vec<Option<f64>>,
}

/// The containers of a workload that are killed for lack of memory.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct WorkloadKills {
    /// Namespace and name.
    pub workload: String,
    /// Mean OOM kills of a run with each sizing, in the order of `sizings`.
    pub out_of_memory: Vec<f64>,
}

/// The workloads with kills, and how many a run has on average.
fn memory_kills(runs: &[Vec<Run>]) -> Vec<WorkloadKills> {
    let asides = runs.iter().flatten().map(|(_, aside)| aside);
    let names: BTreeSet<&String> = asides.flat_map(|aside| aside.out_of_memory_by_workload.keys()).collect();
    let mean = |runs: &Vec<Run>, name: &String| {
        let kills = runs.iter().filter_map(|(_, aside)| aside.out_of_memory_by_workload.get(name));
        // An empty sum of floating-point numbers is −0.
        kills.fold(0.0, |sum, kills| sum + kills) / runs.len().max(1) as f64
    };
    let entry = |name: &String| WorkloadKills {
        workload: name.clone(),
        out_of_memory: runs.iter().map(|runs| mean(runs, name)).collect(),
    };
    names.into_iter().map(entry).collect()
}

/// A container.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ContainerSizes {
    /// The kind of its workload.
    pub kind: String,
    /// Namespace and name of its workload.
    pub workload: String,
    /// Its name.
    pub container: String,
    /// How many samples the recommender took of it.
    pub samples: u64,
    /// CPU, in cores; `null` where nothing says how much of it is used.
    pub cpu: Option<Amounts>,
    /// Memory, in MiB.
    pub memory: Option<Amounts>,
}

/// What a container requests, uses and is recommended.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Amounts {
    /// Its request; `null` if it has none.
    pub request: Option<f64>,
    /// Its limit; `null` if it has none.
    pub limit: Option<f64>,
    /// The median of use.
    pub p50: f64,
    /// Its 90th percentile.
    pub p90: f64,
    /// Its 99th percentile.
    pub p99: f64,
    /// What is recommended.
    pub recommended: f64,
    /// A request below it is too small.
    pub lower_bound: f64,
    /// A request above it is too large.
    pub upper_bound: f64,
}

/// A workload that keeps what it requests, or a container of one that is sized, which keeps it of what nothing is known of.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LeftAlone {
    /// The workload's kind.
    pub kind: String,
    /// Its namespace and name.
    pub workload: String,
    /// The container; left out for the whole workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// Why.
    pub why: String,
}

/// One simulation: its figures, and what it says beside.
pub type Run = (Point, Aside);

/// The answer of `runs`, for each of [`Sizing::ALL`] one for each seed, in the same order.
pub fn answer(
    (scenario, policy): (&Scenario, &str),
    measured: &Measured,
    runs: &[Vec<Run>],
    (currency, inputs): (&str, Vec<InputSummary>),
) -> RightSizing {
    let hours = scenario.duration.as_secs_f64() / 3_600.0;
    let first = runs.first().and_then(|runs| runs.first());
    let mut warnings = scenario.caveats();
    runs.iter().flatten().for_each(|(point, _)| warnings.merge(&point.warnings));
    RightSizing {
        schema_version: SCHEMA_VERSION,
        program: PROGRAM.to_owned(),
        program_version: env!("CARGO_PKG_VERSION").to_owned(),
        scenario: scenario.name.to_string(),
        policy: policy.to_owned(),
        region: scenario.region.to_string(),
        currency: currency.to_owned(),
        price_date: first.map_or_else(String::new, |(point, _)| point.price_date.clone()),
        history_days: measured.history.as_secs_f64() / 86_400.0,
        first_seed: first.map_or(0, |(point, _)| point.seed),
        replications: runs.first().map_or(0, |runs| runs.len() as u64),
        inputs,
        sizings: Sizing::ALL.iter().zip(runs).map(|(sizing, item)| result(*sizing, item, &runs[0])).collect(),
        workloads: workloads(measured, runs, hours),
        memory_kills: memory_kills(runs),
        containers: sized_containers(scenario, policy, measured),
        left_alone: measured.left_alone.iter().map(left_alone).collect(),
        warnings,
    }
}

fn left_alone(((kind, name), container, why): &(Owner, Option<Symbol>, String)) -> LeftAlone {
    LeftAlone {
        kind: (*kind).to_owned(),
        workload: name.to_string(),
        container: container.map(|container| container.to_string()),
        why: why.clone(),
    }
}

fn result(sizing: Sizing, item: &[Run], today: &[Run]) -> SizingResult {
    let values = |runs: &[Run], name: &str| -> Vec<f64> {
        let at = FIGURES.iter().position(|figure| figure.name == name);
        let value = |(point, _): &Run| at.and_then(|at| point.figures.get(at).copied().flatten());
        runs.iter().filter_map(value).collect()
    };
    let mean = |name: &str| {
        let at = FIGURES.iter().find(|figure| figure.name == name);
        let (least, most) = at.map_or((0.0, f64::INFINITY), |figure| figure.unit.range());
        Estimate::from_values(&values(item, name)).map(|mean| mean.within(least, most))
    };
    let aside = |of: fn(&Aside) -> f64| {
        let values: Vec<f64> = item.iter().map(|(_, aside)| of(aside)).collect();
        Estimate::from_values(&values).map(|mean| mean.within(0.0, f64::INFINITY))
    };
    let monthly = |runs: &[Run]| values(runs, "cost_per_month");
    SizingResult {
        name: sizing.as_str().to_owned(),
        cost_per_month: mean("cost_per_month"),
        against_today: (sizing != Sizing::Today).then(|| Paired::new(&monthly(today), &monthly(item))).flatten(),
        out_of_memory: aside(|aside| aside.out_of_memory),
        evicted_for_memory: aside(|aside| aside.evicted_for_memory),
        throttled_hours: aside(|aside| aside.throttled_hours),
        pending_p99: mean("pending_p99"),
        pods_pending: mean("pods_pending"),
        request_p99: mean("request_p99"),
        requests_lost: mean("requests_lost"),
        more_replicas: if sizing == Sizing::Today { Vec::new() } else { more_replicas(item, today) },
    }
}

/// The workloads whose cost changes most from today to what is recommended.
fn workloads(measured: &Measured, runs: &[Vec<Run>], hours: f64) -> Vec<WorkloadCost> {
    let mean = |runs: &[Run], name: &str| {
        let costs: Vec<f64> = runs.iter().filter_map(|(_, aside)| aside.by_workload.get(name).copied()).collect();
        let sum: f64 = costs.iter().sum();
        (!costs.is_empty() && hours > 0.0).then(|| sum / costs.len() as f64 / hours * HOURS_PER_MONTH)
    };
    let mut all: Vec<WorkloadCost> = measured
        .containers
        .keys()
        .map(|(_, name)| {
            let workload = name.to_string();
            let cost_per_month = runs.iter().map(|runs| mean(runs, &workload)).collect();
            WorkloadCost { workload, cost_per_month }
        })
        .collect();
    let change = |workload_cost: &WorkloadCost| {
        let of = |at: usize| workload_cost.cost_per_month.get(at).copied().flatten().unwrap_or(0.0);
        (of(0) - of(1)).abs()
    };
    all.sort_by(|one, other| change(other).total_cmp(&change(one)).then_with(|| one.workload.cmp(&other.workload)));
    all.truncate(WORKLOADS);
    all
}

fn sized_containers(scenario: &Scenario, policy: &str, measured: &Measured) -> Vec<ContainerSizes> {
    let Some(variant) = scenario.policies.iter().find(|variant| variant.name.as_str() == policy) else {
        return Vec::new();
    };
    let mut all = Vec::new();
    for (owner, template) in templates(&variant.manifests) {
        let Some(seen) = measured.containers.get(&owner) else { continue };
        let by_name: BTreeMap<&str, &UsageHistory> = seen.iter().map(|(name, seen)| (name.as_str(), seen)).collect();
        for container in &template.containers {
            let Some(seen) = by_name.get(container.name.as_str()) else { continue };
            let (requests, limits) = (container.effective_requests(), &container.limits);
            let amounts = |name, unit| amounts(seen, (&requests, limits), (name, unit));
            all.push(ContainerSizes {
                kind: owner.0.to_owned(),
                workload: owner.1.to_string(),
                container: container.name.clone(),
                samples: seen.samples(),
                cpu: amounts(ResourceName::CPU, 1e3),
                memory: amounts(ResourceName::MEMORY, MEBIBYTE),
            });
        }
    }
    all
}

fn amounts(
    seen: &UsageHistory,
    (requests, limits): (&Resources, &Resources),
    (name, unit): (ResourceName, f64),
) -> Option<Amounts> {
    let scaled = |amount: i64| amount as f64 / unit;
    let percentile = |of_hundred| seen.percentile(of_hundred).find(name).map(scaled);
    let of = |amounts: &Resources| amounts.find(name).map(scaled);
    Some(Amounts {
        request: of(requests),
        limit: of(limits),
        p50: percentile(50)?,
        p90: percentile(90)?,
        p99: percentile(99)?,
        recommended: of(&seen.recommended.target)?,
        lower_bound: of(&seen.recommended.lower_bound)?,
        upper_bound: of(&seen.recommended.upper_bound)?,
    })
}

impl RightSizing {
    /// `rightsizing.json`: two spaces of indentation, a line feed at the end.
    ///
    /// # Errors
    /// If serde_json cannot write it, which no answer brings about.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self).map(|text| text + "\n")
    }

    /// The result of a sizing.
    pub fn sizing(&self, sizing: Sizing) -> Option<&SizingResult> {
        self.sizings.iter().find(|this_sizing| this_sizing.name == sizing.as_str())
    }
}
