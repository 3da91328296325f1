//! Cost of groups of workloads, by namespace or by a label of their pods, with requests compared with usage.
//!
//! Must not: allocate cost; the groups add up what `allocation` gives each workload.

use std::collections::{BTreeMap, BTreeSet};
use std::iter;

use serde::{Deserialize, Serialize};

use super::allocation::{CostOwner, held};
use super::{Part, rounded};
use crate::domain::{Money, SimTime, WorkloadId};
use nodecast_world::Outcome;
use nodecast_world::record::WorkloadFacts;

/// Microseconds of an hour.
const HOUR: f64 = 3.6e9;
/// Thousandths of a core.
const MILLI: f64 = 1e3;
/// Bytes of a GiB.
const GIB: f64 = (1_u64 << 30) as f64;
/// Group of workloads whose pods lack the label.
const NONE: &str = "(none)";
/// Group of workloads whose label has the empty value.
const EMPTY: &str = "(empty)";

/// Cost of a group of workloads, of idle capacity, or of what is billed without a node.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CostGroup {
    /// The group with its cost.
    #[serde(flatten)]
    pub part: Part,
    /// CPU in core-hours; absent for a group without pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<RequestUse>,
    /// Memory in GiB-hours; absent for a group without pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<RequestUse>,
}

/// Requests of pods on nodes over the run, compared with their usage.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RequestUse {
    /// Requested by all pods.
    pub requested: f64,
    /// The part of `requested` that workloads with usage data request.
    pub measured: f64,
    /// Used by workloads with usage data.
    pub used: f64,
    /// `used` divided by `measured`; `null` without usage data. Above 1 if pods use more than they request.
    pub efficiency: Option<f64>,
}

/// Cost by value of one label.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LabelCost {
    /// Key of the label.
    pub label: String,
    /// The groups; they sum to the total.
    pub groups: Vec<CostGroup>,
}

/// Requests and usage of one workload: CPU, then memory.
type Uses = [RequestUse; 2];

/// What groups are made of.
pub(super) struct Grouping<'o> {
    outcome: &'o Outcome,
    by_owner: &'o BTreeMap<CostOwner, Money>,
    uses: BTreeMap<WorkloadId, Uses>,
}

impl<'o> Grouping<'o> {
    pub(super) fn new(outcome: &'o Outcome, by_owner: &'o BTreeMap<CostOwner, Money>) -> Self {
        Self { outcome, by_owner, uses: uses(outcome) }
    }

    /// Cost by namespace; none where there is one namespace.
    pub(super) fn by_namespace(&self, parts: impl Fn(BTreeMap<String, Money>) -> Vec<Part>) -> Vec<CostGroup> {
        let namespaces: BTreeSet<&str> = self.workloads().map(|facts| facts.name.namespace.as_str()).collect();
        if namespaces.len() < 2 {
            return Vec::new();
        }
        self.groups(|facts| facts.name.namespace.to_string(), parts)
    }

    /// Cost by the values of each label that the scenario asks for.
    pub(super) fn by_label(&self, parts: impl Fn(BTreeMap<String, Money>) -> Vec<Part>) -> Vec<LabelCost> {
        let mut known = BTreeSet::new();
        let keys = self.outcome.about.cost_by.iter().filter(|key| known.insert(**key));
        let all = keys.map(|key| LabelCost {
            label: key.to_string(),
            groups: self.groups(|facts| label_value(facts.labels.get(*key).map(|value| value.as_str())), &parts),
        });
        all.collect()
    }

    /// Facts of workloads that have had a pod on a node.
    fn workloads(&self) -> impl Iterator<Item = &WorkloadFacts> {
        self.uses.keys().filter_map(|workload| self.outcome.record.workloads.get(workload.index()))
    }

    fn groups(
        &self,
        group_of: impl Fn(&WorkloadFacts) -> String,
        parts: impl Fn(BTreeMap<String, Money>) -> Vec<Part>,
    ) -> Vec<CostGroup> {
        let name = |workload: WorkloadId| {
            self.outcome.record.workloads.get(workload.index()).map_or_else(|| NONE.to_owned(), &group_of)
        };
        let mut costs: BTreeMap<String, Money> = BTreeMap::new();
        for (owner, amount) in self.by_owner {
            let group = match owner {
                CostOwner::Workload(workload) => name(*workload),
                CostOwner::Cluster | CostOwner::Idle => owner.name(self.outcome),
            };
            *costs.entry(group).or_insert(Money::ZERO) += *amount;
        }
        let mut uses: BTreeMap<String, Uses> = BTreeMap::new();
        for (workload, [cpu, memory]) in &self.uses {
            let group = name(*workload);
            // One that requests nothing has a row of its own: it may use much.
            costs.entry(group.clone()).or_insert(Money::ZERO);
            let [all_cpu, all_memory] = uses.entry(group).or_default();
            all_cpu.add(cpu);
            all_memory.add(memory);
        }
        let group = |part: Part| {
            let [cpu, memory] = uses.get(&part.name).map_or([None, None], |uses| uses.map(|one| Some(one.finished())));
            CostGroup { part, cpu, memory }
        };
        parts(costs).into_iter().map(group).collect()
    }
}

impl RequestUse {
    fn add(&mut self, other: &Self) {
        self.requested += other.requested;
        self.measured += other.measured;
        self.used += other.used;
    }

    /// The sums without the digits that are noise, and their ratio.
    fn finished(self) -> Self {
        let efficiency = (self.measured > 0.0).then(|| rounded(self.used / self.measured, 6));
        let [requested, measured, used] = [self.requested, self.measured, self.used].map(|sum| rounded(sum, 6));
        Self { requested, measured, used, efficiency }
    }
}

fn label_value(value: Option<&str>) -> String {
    match value {
        None => NONE.to_owned(),
        Some("") => EMPTY.to_owned(),
        Some(value) => value.to_owned(),
    }
}

/// Requests and usage of each workload that has had a pod on a node.
fn uses(outcome: &Outcome) -> BTreeMap<WorkloadId, Uses> {
    let usage = usage(outcome);
    let requested = requested(outcome).into_iter().map(|(workload, requested)| {
        let used = usage.get(&workload).copied().unwrap_or_default();
        let one = |resource: usize| RequestUse {
            requested: requested[resource],
            measured: used[resource].map_or(0.0, |_| requested[resource]),
            used: used[resource].unwrap_or(0.0),
            efficiency: None,
        };
        (workload, [one(0), one(1)])
    });
    requested.collect()
}

/// Core-hours and GiB-hours that pods of each workload requested on nodes.
fn requested(outcome: &Outcome) -> BTreeMap<WorkloadId, [f64; 2]> {
    let mut sums: BTreeMap<WorkloadId, [i128; 2]> = BTreeMap::new();
    let end = SimTime::ZERO + outcome.about.duration;
    for pod in outcome.record.pods.unnamed() {
        let Some(node) = pod.node.and_then(|node| outcome.record.nodes.get(node.index())) else { continue };
        let [cpu, memory] = sums.entry(pod.workload).or_default();
        for (from, until, requests) in held(&pod, node, end) {
            let time = i128::from((until - from).as_micros());
            *cpu += i128::from(requests.cpu_milli()) * time;
            *memory += i128::from(requests.memory_bytes()) * time;
        }
    }
    sums.into_iter().map(|(id, [cpu, memory])| (id, [cpu as f64 / HOUR / MILLI, memory as f64 / HOUR / GIB])).collect()
}

/// Core-hours and GiB-hours that each workload used, by the samples, each until the next one; `None` without usage data. A
/// workload that uses no CPU in any sample has no data on CPU.
fn usage(outcome: &Outcome) -> BTreeMap<WorkloadId, [Option<f64>; 2]> {
    let mut sums: BTreeMap<WorkloadId, [Option<f64>; 2]> = BTreeMap::new();
    let samples = &outcome.record.samples;
    let ends = samples.iter().skip(1).map(|sample| sample.at).chain(iter::once(SimTime::ZERO + outcome.about.duration));
    for (sample, until) in samples.iter().zip(ends) {
        let hours = until.saturating_since(sample.at).as_micros() as f64 / HOUR;
        for workload in &sample.workloads {
            let [cpu, memory] = sums.entry(workload.workload).or_default();
            if workload.cpu_used_milli > 0.0 {
                *cpu = Some(cpu.unwrap_or(0.0) + workload.cpu_used_milli / MILLI * hours);
            }
            if let Some(bytes) = workload.memory_used_bytes {
                *memory = Some(memory.unwrap_or(0.0) + bytes as f64 / GIB * hours);
            }
        }
    }
    sums
}
