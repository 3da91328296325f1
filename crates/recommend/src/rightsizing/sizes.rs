//! What containers were seen to use, and the sizes that this suggests.

use std::collections::BTreeMap;

use super::{Owner, Sizing, is_used, templates};
use crate::domain::vertical::ContainerRecommendation;
use crate::domain::{PodSpec, ResourceName, Resources, SimDuration, Symbol};
use crate::scenario::Scenario;
use crate::world::outcome::Outcome;

/// A history that spans less is too short to go by: the recommender itself trusts a full day.
pub const SHORTEST_HISTORY: SimDuration = SimDuration::from_secs(86_400);
/// With fewer looks of the recommender there is too little to go by: half of a day's.
pub const FEWEST_SAMPLES: u64 = 720;
const MEBIBYTE: i64 = 1 << 20;
/// Why a workload is left alone whose pods state their sum.
const OF_POD: &str =
    "its pods state `resources` of the pod as a whole, which count in place of those of its containers";

/// What the recommender saw of a container.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct UsageHistory {
    pub(super) cpu: BTreeMap<i64, u64>,
    pub(super) memory: BTreeMap<i64, u64>,
    pub(super) recommended: ContainerRecommendation,
}

impl UsageHistory {
    pub(super) fn samples(&self) -> u64 {
        let of = |counts: &BTreeMap<i64, u64>| counts.values().sum::<u64>();
        of(&self.cpu).max(of(&self.memory))
    }

    /// What at most so many of a hundred looks saw used: CPU in thousandths, memory in bytes.
    pub(super) fn percentile(&self, of_hundred: u64) -> Resources {
        let mut amounts = Resources::new();
        if let Some(milli) = rank(&self.cpu, of_hundred) {
            amounts.set(ResourceName::CPU, milli.max(1));
        }
        if let Some(mebibytes) = rank(&self.memory, of_hundred) {
            amounts.set(ResourceName::MEMORY, mebibytes.max(1) * MEBIBYTE);
        }
        amounts
    }
}

/// The nearest rank of a percentile among counted values.
fn rank(counts: &BTreeMap<i64, u64>, of_hundred: u64) -> Option<i64> {
    let all: u64 = counts.values().sum();
    let wanted = (all * of_hundred).div_ceil(100).max(1);
    let mut before = 0;
    counts.iter().find_map(|(value, count)| {
        before += count;
        (before >= wanted).then_some(*value)
    })
}

/// What one run says of every workload.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Measured {
    pub(super) containers: BTreeMap<Owner, BTreeMap<Symbol, UsageHistory>>,
    /// Workloads, and of workloads that are sized single containers, that keep what they request, and why.
    pub(super) left_alone: Vec<(Owner, Option<Symbol>, String)>,
    /// How long a history there is.
    pub(super) history: SimDuration,
}

impl Measured {
    /// What each container of a workload is to request; `None` for a workload that is left alone, and for what there is today.
    pub(super) fn recommendation(&self, owner: Owner, sizing: Sizing) -> Option<Vec<ContainerRecommendation>> {
        let seen = self.containers.get(&owner)?;
        let each = |(name, seen): (&Symbol, &UsageHistory)| match sizing.percentile() {
            // Bounds are for pods that run.
            None => ContainerRecommendation {
                target: seen.recommended.target.clone(),
                ..ContainerRecommendation::for_container(*name)
            },
            Some(percentile) => {
                let target = seen.percentile(percentile);
                ContainerRecommendation { target, ..ContainerRecommendation::for_container(*name) }
            }
        };
        (sizing != Sizing::Today).then(|| seen.iter().map(each).collect())
    }

    /// How many workloads get other sizes.
    pub fn workloads(&self) -> usize {
        self.containers.len()
    }
}

/// What a run of the [observed](super::observed) scenario says.
pub fn measure(scenario: &Scenario, policy: &str, outcome: &Outcome) -> Measured {
    let Some(variant) = scenario.policies.iter().find(|variant| variant.name.as_str() == policy) else {
        return Measured::default();
    };
    let history = scenario.duration;
    let mut measured = Measured { history, ..Measured::default() };
    for (owner, template) in templates(&variant.manifests) {
        if !is_used(scenario, owner.1) {
            measured.left_alone.push((owner, None, "the scenario has no usage data for its pods".to_owned()));
            continue;
        }
        if is_sized_as_a_whole(template) {
            measured.left_alone.push((owner, None, OF_POD.to_owned()));
            continue;
        }
        let facts = outcome.record.verticals.iter().find(|vertical| {
            let workload = &outcome.record.workloads[vertical.workload.index()];
            (workload.kind.as_str(), workload.name) == owner
        });
        let mut seen = BTreeMap::new();
        for container in &template.containers {
            let name = Symbol::new(&container.name);
            let of_name = facts.and_then(|facts| {
                let used = facts.used.iter().find(|fact| fact.container == name)?;
                let last = facts.samples.iter().rfind(|sample| sample.container == name)?;
                let recommended = ContainerRecommendation {
                    target: last.target.clone(),
                    lower_bound: last.lower_bound.clone(),
                    upper_bound: last.upper_bound.clone(),
                    ..ContainerRecommendation::for_container(name)
                };
                Some(UsageHistory { cpu: used.cpu.clone(), memory: used.memory.clone(), recommended })
            });
            seen.extend(of_name.map(|this_name| (name, this_name)));
        }
        let samples = seen.values().map(UsageHistory::samples).max().unwrap_or(0);
        if history < SHORTEST_HISTORY || samples < FEWEST_SAMPLES {
            let why = format!("too little data: {samples} samples over {history}");
            measured.left_alone.push((owner, None, why));
        } else {
            let unknown = template.containers.iter().filter_map(|container| {
                let name = Symbol::new(&container.name);
                Some((owner, Some(name), unknown(seen.get(&name))?.to_owned()))
            });
            measured.left_alone.extend(unknown);
            measured.containers.insert(owner, seen);
        }
    }
    measured
}

/// Whether the pods of a template state CPU or memory of the pod as a whole, beside which what their containers request counts for nothing.
///
/// Source: Kubernetes 1.36 `staging/src/k8s.io/component-helpers/resource/helpers.go`, `PodRequests`; the Vertical Pod Autoscaler up to 1.7
/// sizes containers alone.
fn is_sized_as_a_whole(template: &PodSpec) -> bool {
    let mut stated = [&template.pod_requests, &template.pod_limits].into_iter().flatten();
    let sizes = [ResourceName::CPU, ResourceName::MEMORY];
    stated.any(|item| sizes.iter().any(|&resource| item.find(resource).is_some()))
}

/// What nothing says of the use of a container of a workload that is sized; `None` if all is known.
fn unknown(seen: Option<&UsageHistory>) -> Option<&'static str> {
    match seen.map(|seen| (seen.cpu.is_empty(), seen.memory.is_empty())) {
        None | Some((true, true)) => Some("the scenario has no usage data for it"),
        Some((true, false)) => Some("the scenario has no CPU usage data for it"),
        Some((false, true)) => Some("the scenario has no memory usage data for it"),
        Some((false, false)) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{is_sized_as_a_whole, rank};
    use crate::domain::{PodSpec, ResourceName, Resources};

    #[test]
    fn percentiles_are_nearest_ranks() {
        let counts = BTreeMap::from([(10, 50), (20, 40), (30, 9), (40, 1)]);
        assert_eq!([50, 51, 90, 99, 100].map(|of| rank(&counts, of)), [10, 20, 20, 30, 40].map(Some));
        assert_eq!(rank(&BTreeMap::new(), 50), None);
    }

    #[test]
    fn pods_with_pod_level_requests_are_sized_whole() {
        let stating = |resource| {
            let pod_requests = Some(Resources::new().with(resource, 1));
            is_sized_as_a_whole(&PodSpec { pod_requests, ..PodSpec::default() })
        };
        assert!(stating(ResourceName::CPU) && stating(ResourceName::MEMORY));
        assert!(!stating(ResourceName::NVIDIA_GPU) && !is_sized_as_a_whole(&PodSpec::default()));
    }
}
