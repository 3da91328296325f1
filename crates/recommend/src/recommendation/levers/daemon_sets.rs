//! Levers of DaemonSets: requests that are above the known use of their pods.
//!
//! Each node pays for them, so a small request counts many times. No level goes below a use that the scenario states or raises a request.

use super::{BaselineFacts, Kind, Level, Lever};
use crate::axes::Setting;
use crate::domain::pod::Container;
use crate::domain::vertical::ContainerRecommendation;
use crate::domain::words::counted;
use crate::domain::workload::DaemonSet;
use crate::domain::{ResourceName, SimDuration, Symbol};
use crate::presentation::rightsizing::quantity;
use crate::scenario::definition::{OpenRequests, UsageSpec};

/// Room above the largest use, as the recommender of the Vertical Pod Autoscaler leaves it.
///
/// Source: Vertical Pod Autoscaler 1.7 `pkg/recommender/logic/recommender.go`, `recommendation-margin-fraction`.
const MARGIN: f64 = 0.15;
/// Standard deviations of the error of demand that the largest use allows for.
const DEVIATIONS: f64 = 3.0;
const MEBIBYTE: f64 = 1_048_576.0;
const SIZED: [ResourceName; 2] = [ResourceName::CPU, ResourceName::MEMORY];

/// Requests by what the scenario says of use, and by the recommendation of a VerticalPodAutoscaler.
pub(super) fn lever(known: &BaselineFacts<'_>) -> Option<Lever> {
    let by_use = |set: &DaemonSet, container: &Container, resource| largest_use(known, set, container, resource);
    let recommended = |set: &DaemonSet, container: &Container, resource| {
        let target = recommendation(known, set, container)?.target.find(resource)?;
        Some(largest_use(known, set, container, resource).map_or(target, |used| used.max(target)))
    };
    let used = level(known, "15% above the largest use", &by_use);
    let levels: Vec<Level> =
        used.into_iter().chain(level(known, "as the VerticalPodAutoscaler recommends", &recommended)).collect();
    let (subject, today) = ("DaemonSets".to_owned(), "as the templates state".to_owned());
    (!levels.is_empty()).then_some(Lever { kind: Kind::DaemonSets, subject, today, levels })
}

/// The amount that a container of a DaemonSet is to request of a resource; `None` if nothing is known.
type Wanted<'w> = dyn Fn(&DaemonSet, &Container, ResourceName) -> Option<i64> + 'w;

/// Every request of a DaemonSet that is above what is `wanted`, lowered to it.
fn level(known: &BaselineFacts<'_>, label: &str, wanted: &Wanted<'_>) -> Option<Level> {
    let mut sets = Setting::new();
    let mut count = 0;
    for set in &known.policy.manifests.daemon_sets {
        let before = sets.len();
        for container in set.template.containers.iter().filter(|_| set.template.pod_requests.is_none()) {
            for resource in SIZED {
                let today = container.effective_requests().find(resource);
                let lower = wanted(set, container, resource).filter(|item| today.is_some_and(|today| *item < today));
                let Some(amount) = lower else { continue };
                let amounts = crate::domain::Resources::new().with(resource, amount);
                let path = format!(
                    "DaemonSet[{}].spec.template.spec.containers[{}].resources.requests.{}",
                    set.name, container.name, resource.0
                );
                sets.push((path, quantity(&amounts, resource, amount)));
            }
        }
        count += u64::from(sets.len() > before);
    }
    let sets_of = counted(count, "DaemonSet", "DaemonSets");
    (count > 0).then(|| Level { label: format!("{label}, {sets_of}"), sets, requirements: Vec::new() })
}

/// The largest use of a container that the scenario states, with room above it; `None` if it states none.
fn largest_use(
    known: &BaselineFacts<'_>,
    set: &DaemonSet,
    container: &Container,
    resource: ResourceName,
) -> Option<i64> {
    let length = known.scenario.duration;
    let all = known.scenario.usage.iter().filter(|usage| usage.workload == set.name && !usage.of_workload);
    let mut sum = None;
    for usage in all {
        let curve = if resource == ResourceName::CPU { &usage.cpu } else { &usage.memory };
        let start_up = usage.start_up.filter(|_| resource == ResourceName::CPU).map_or(0.0, |start_up| start_up.cpu);
        if let Some(curve) = curve {
            let share = share(usage, set, container, resource)?;
            sum = Some(sum.unwrap_or(0.0) + share * (largest(curve, length) + start_up));
        }
    }
    let unit = if resource == ResourceName::CPU { 1_000.0 } else { MEBIBYTE };
    let amount = libm::ceil(sum? * (1.0 + MARGIN));
    // Whole mebibytes, and hundredths of a core as people write them.
    let amount = if resource == ResourceName::CPU { libm::ceil(sum? * (1.0 + MARGIN) * 100.0) / 100.0 } else { amount };
    Some(libm::round(amount * unit).max(1.0) as i64)
}

/// The share of a stated use that is the container's: all of it if it is named, else in the proportion of requests, as the simulation has it.
fn share(usage: &UsageSpec, set: &DaemonSet, container: &Container, resource: ResourceName) -> Option<f64> {
    let Some(named) = usage.container else {
        let request = |container: &Container| container.effective_requests().find(resource).unwrap_or(0) as f64;
        let all: f64 = set.template.containers.iter().map(request).sum();
        return (all > 0.0).then(|| request(container) / all);
    };
    Some(if named.as_str() == container.name { 1.0 } else { 0.0 })
}

/// The largest value of a curve during the run.
fn largest(open: &OpenRequests, length: SimDuration) -> f64 {
    let steps = open.curve.steps_from_start().take_while(|step| step.from < length);
    let most = steps.map(|step| step.rate).fold(0.0, f64::max);
    let error = |deviation: f64| libm::exp(DEVIATIONS * deviation);
    most * error(libm::hypot(open.uncertainty.factor, open.uncertainty.noise))
}

/// What a VerticalPodAutoscaler of the manifests recommends for a container.
fn recommendation<'k>(
    known: &'k BaselineFacts<'_>,
    set: &DaemonSet,
    container: &Container,
) -> Option<&'k ContainerRecommendation> {
    let all = known.policy.manifests.vertical_autoscalers.iter();
    let mut item = all.filter(|vpa| {
        vpa.name.namespace == set.name.namespace
            && vpa.target.kind.as_str() == "DaemonSet"
            && vpa.target.name == set.name.name
    });
    let containers = item.next()?.recommendation.as_ref()?;
    containers.iter().find(|recommended| recommended.container == Symbol::new(&container.name))
}
