//! What VerticalPodAutoscalers recommended and did.

use serde::{Deserialize, Serialize};

use super::service::workload_name;
use crate::domain::{ResourceName, Resources, Symbol};
use nodecast_world::Outcome;
use nodecast_world::record::{RecommendationSample, VerticalFacts};

/// A VerticalPodAutoscaler.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct VerticalFigures {
    /// Namespace and name.
    pub autoscaler: String,
    /// Namespace and name of the workload whose pods it is for.
    pub workload: String,
    /// `Off`, `Initial`, `Recreate`, `Auto`, `InPlaceOrRecreate` or `InPlace`.
    pub mode: String,
    /// Pods that were made with other requests than their template states.
    pub admitted: u64,
    /// Pods that its updater evicted.
    pub evicted: u64,
    /// Evictions that a disruption budget refused.
    pub refused: u64,
    /// Pods resized where they run.
    pub resized: u64,
    /// Resizes for which the node had no room at first.
    pub deferred: u64,
    /// Resizes for which the node never had room.
    pub infeasible: u64,
    /// Containers killed for lack of memory.
    pub out_of_memory: u64,
    /// Its containers.
    pub containers: Vec<ContainerFigures>,
}

/// A container, as it was first and as it was at the end.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ContainerFigures {
    /// Its name.
    pub container: String,
    /// CPU, in cores; `null` where nothing says how much of it is used.
    pub cpu: Option<Sizes>,
    /// Memory, in MiB.
    pub memory: Option<Sizes>,
}

/// What a container requests, uses and is recommended.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Sizes {
    /// Its request at the first look; `null` if it has none.
    pub request_first: Option<f64>,
    /// Its request at the end.
    pub request_last: Option<f64>,
    /// Its mean use over the looks of the report; `null` if none was seen.
    pub used_mean: Option<f64>,
    /// The target at the end.
    pub target: f64,
    /// The lower bound at the end.
    pub lower_bound: f64,
    /// The upper bound at the end.
    pub upper_bound: f64,
    /// The target at the end before policies cap it.
    #[serde(default)]
    pub uncapped_target: Option<f64>,
}

/// Every VerticalPodAutoscaler, in order of application.
pub(super) fn summary(outcome: &Outcome) -> Vec<VerticalFigures> {
    outcome.record.verticals.iter().map(|vertical| figures(outcome, vertical)).collect()
}

fn figures(outcome: &Outcome, vertical_facts: &VerticalFacts) -> VerticalFigures {
    let mut names: Vec<Symbol> = Vec::new();
    for sample in &vertical_facts.samples {
        if !names.contains(&sample.container) {
            names.push(sample.container);
        }
    }
    let means = vertical_facts.means;
    VerticalFigures {
        autoscaler: vertical_facts.name.to_string(),
        workload: workload_name(outcome, vertical_facts.workload),
        mode: format!("{:?}", vertical_facts.mode),
        admitted: means.admitted.into(),
        evicted: means.evicted.into(),
        refused: means.refused.into(),
        resized: means.resized.into(),
        deferred: means.deferred.into(),
        infeasible: means.infeasible.into(),
        out_of_memory: means.out_of_memory.into(),
        containers: names.into_iter().map(|name| container(vertical_facts, name)).collect(),
    }
}

fn container(vertical_facts: &VerticalFacts, name: Symbol) -> ContainerFigures {
    let samples: Vec<&RecommendationSample> =
        vertical_facts.samples.iter().filter(|sample| sample.container == name).collect();
    let sizes = |resource: ResourceName, unit: f64| {
        let scaled = |amount: i64| amount as f64 / unit;
        let last = samples.last()?;
        let of = |amounts: &Resources| amounts.find(resource).map(scaled);
        let requests = || samples.iter().filter(|sample| sample.pods > 0).map(|sample| of(&sample.request));
        let used: Vec<f64> = samples.iter().filter_map(|sample| of(&sample.used)).collect();
        Some(Sizes {
            request_first: requests().next().flatten(),
            request_last: requests().next_back().flatten(),
            used_mean: (!used.is_empty()).then(|| super::rounded(used.iter().sum::<f64>() / used.len() as f64, 6)),
            target: of(&last.target)?,
            lower_bound: of(&last.lower_bound)?,
            upper_bound: of(&last.upper_bound)?,
            uncapped_target: of(&last.uncapped_target),
        })
    };
    ContainerFigures {
        container: name.to_string(),
        cpu: sizes(ResourceName::CPU, 1e3),
        memory: sizes(ResourceName::MEMORY, 1024.0 * 1024.0),
    }
}

impl VerticalFigures {
    /// What it did, in words.
    pub fn deeds(&self) -> String {
        let counts = [
            (self.admitted, "created with new requests"),
            (self.evicted, "evicted"),
            (self.resized, "resized in place"),
            (self.deferred, "resizes deferred"),
            (self.infeasible, "resizes infeasible"),
            (self.refused, "evictions refused"),
            (self.out_of_memory, "OOM-killed"),
        ];
        let some: Vec<String> =
            counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
        if some.is_empty() { "nothing changed".to_owned() } else { some.join(", ") }
    }
}
