//! What requests that fit would save: the sizes that the use of containers suggests, and the cluster simulated with each.
//!
//! One run with a VerticalPodAutoscaler in the mode Off for every workload says what containers use and what the recommender makes of it.
//! [`sized`] writes sizes into the templates as the Vertical Pod Autoscaler's admission controller would: limits move in proportion, and
//! LimitRanges and the policies of VerticalPodAutoscalers hold.
//!
//! What must not live here: how the answer is drawn (`presentation`).

mod answer;
mod sizes;

pub use answer::{
    Amounts, ContainerSizes, LeftAlone, MoreReplicas, RightSizing, Run, SizingResult, WorkloadCost, WorkloadKills,
    answer,
};
pub use sizes::{Measured, measure};

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::axes::Setting;
use super::presentation::rightsizing::quantity;
use crate::domain::hpa::ScaleTargetRef;
use crate::domain::vertical::UpdateMode;
use crate::domain::workload::ObjectName;
use crate::domain::{Container, PodSpec, ResourceName, Resources, Symbol, VerticalPodAutoscaler, WorkloadId};
use crate::scenario::Scenario;
use crate::scenario::manifests::Manifests;
use crate::world::outcome::Outcome;
use crate::world::record::{EventKind, MetricUnit};
use nodecast_settings::namespace_limits;
use nodecast_vpa::{
    AdmittedContainer, ContainerState, NamespaceLimits, admit, container_states, proportional_limit, respecified,
};

/// What workloads request.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Sizing {
    /// What their templates state.
    Today,
    /// What the Vertical Pod Autoscaler recommends.
    Recommended,
    /// The median of what each container was seen to use.
    Median,
    /// The 90th percentile of it.
    P90,
    /// The 99th percentile of it.
    P99,
}

impl Sizing {
    /// All of them, what there is today first.
    pub const ALL: [Self; 5] = [Self::Today, Self::Recommended, Self::Median, Self::P90, Self::P99];

    /// Its name in files and on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Today => "today",
            Self::Recommended => "recommended",
            Self::Median => "p50",
            Self::P90 => "p90",
            Self::P99 => "p99",
        }
    }

    /// The percentile of use that it takes.
    const fn percentile(self) -> Option<u64> {
        match self {
            Self::Today | Self::Recommended => None,
            Self::Median => Some(50),
            Self::P90 => Some(90),
            Self::P99 => Some(99),
        }
    }
}

/// A workload by its kind and name.
pub type Owner = (&'static str, ObjectName);

/// Deployments and StatefulSets of the manifests with their templates.
fn templates(manifests: &Manifests) -> impl Iterator<Item = (Owner, &Arc<PodSpec>)> {
    let deployments =
        manifests.deployments.iter().map(|deployment| (("Deployment", deployment.name), &deployment.template));
    let sets =
        manifests.stateful_sets.iter().map(|stateful_set| (("StatefulSet", stateful_set.name), &stateful_set.template));
    deployments.chain(sets)
}

/// Whether the scenario says anything of what a workload's pods use.
fn is_used(scenario: &Scenario, name: ObjectName) -> bool {
    scenario.load.iter().any(|item| item.workload == name)
        || scenario.usage.iter().any(|item| item.workload == name)
        || scenario.queues.iter().any(|queue| queue.workload == name)
}

/// The VerticalPodAutoscaler of a workload: the one that the manifests have, turned off, or one that restricts nothing.
fn observer(manifests: &Manifests, (kind, name): Owner) -> VerticalPodAutoscaler {
    let target = ScaleTargetRef { kind: Symbol::new(kind), name: name.name };
    let stated = manifests.vertical_autoscalers.iter();
    let mut of_target = stated.filter(|item| item.name.namespace == name.namespace && item.target == target);
    let mut target = of_target.next().cloned().unwrap_or_else(|| {
        let called = Symbol::new(&format!("{}-{}", kind.to_ascii_lowercase(), name.name));
        VerticalPodAutoscaler::new(ObjectName { namespace: name.namespace, name: called }, target)
    });
    target.update.mode = Some(UpdateMode::Off);
    target.recommenders.clear();
    target
}

/// The scenario with other manifests under one policy.
fn with_manifests(scenario: &Scenario, policy: &str, change: impl FnOnce(&mut Manifests)) -> Scenario {
    let mut scenario = scenario.clone();
    if let Some(variant) = scenario.policies.iter_mut().find(|variant| variant.name.as_str() == policy) {
        let mut manifests = (*variant.manifests).clone();
        change(&mut manifests);
        variant.manifests = Arc::new(manifests);
    }
    scenario
}

/// The scenario as it is today, with a VerticalPodAutoscaler in the mode Off for every workload of which something is known.
pub fn observed(scenario: &Scenario, policy: &str) -> Scenario {
    with_manifests(scenario, policy, |manifests| {
        let owners: Vec<Owner> = templates(manifests).map(|(owner, _)| owner).collect();
        let observers = owners.into_iter().filter(|(_, name)| is_used(scenario, *name));
        manifests.vertical_autoscalers = observers.map(|owner| observer(manifests, owner)).collect();
    })
}

/// What the containers of a workload get with a sizing; `None` for those that are left alone, and for what there is today.
fn containers(
    manifests: &Manifests,
    measured: &Measured,
    limits: &BTreeMap<Symbol, NamespaceLimits>,
    (owner, template): (Owner, &PodSpec),
    sizing: Sizing,
) -> Option<Vec<AdmittedContainer>> {
    let recommendation = measured.recommendation(owner, sizing)?;
    let vpa = VerticalPodAutoscaler {
        recommendation: Some(recommendation),
        update: crate::domain::vertical::UpdatePolicy { mode: Some(UpdateMode::Initial), ..Default::default() },
        ..observer(manifests, owner)
    };
    let limits = limits.get(&owner.1.namespace).cloned().unwrap_or_default();
    let admitted = admit(&vpa, &container_states(template), true, &limits);
    admitted.untouched.is_none().then_some(admitted.containers)
}

/// The scenario with the requests of a sizing in its templates, and without VerticalPodAutoscalers.
pub fn sized(scenario: &Scenario, policy: &str, measured: &Measured, sizing: Sizing) -> Scenario {
    with_manifests(scenario, policy, |manifests| {
        let limits = namespace_limits(manifests);
        let changed: Vec<(Owner, Arc<PodSpec>)> = templates(manifests)
            .filter_map(|(owner, template)| {
                let containers = containers(manifests, measured, &limits, (owner, template), sizing)?;
                Some((owner, Arc::new(respecified(template, &containers)?)))
            })
            .collect();
        manifests.vertical_autoscalers.clear();
        for ((kind, name), template) in changed {
            if kind == "Deployment" {
                let deployment = manifests.deployments.iter_mut().filter(|deployment| deployment.name == name);
                deployment.for_each(|deployment| deployment.template = Arc::clone(&template));
            } else {
                let stateful_set = manifests.stateful_sets.iter_mut().filter(|stateful_set| stateful_set.name == name);
                stateful_set.for_each(|stateful_set| stateful_set.template = Arc::clone(&template));
            }
        }
    })
}

/// What a workload's containers are to request, and where their limits are to be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Patch {
    /// The workload.
    pub owner: Owner,
    /// Its containers that change, with requests and limits as they are to be.
    pub containers: Vec<(Symbol, Resources, Resources)>,
}

impl Patch {
    /// The paths that it sets, with the values as manifests have them.
    pub fn setting(&self) -> Setting {
        let (kind, name) = self.owner;
        let mut setting = Setting::new();
        for (container, requests, limits) in &self.containers {
            let mut put = |what: &str, amounts: &Resources| {
                for resource in [ResourceName::CPU, ResourceName::MEMORY] {
                    let Some(amount) = amounts.find(resource) else { continue };
                    let path = format!(
                        "{kind}[{name}].spec.template.spec.containers[{container}].resources.{what}.{}",
                        resource.0
                    );
                    setting.push((path, quantity(amounts, resource, amount)));
                }
            };
            put("requests", requests);
            put("limits", limits);
        }
        setting
    }
}

/// A container with another request of one resource. Its limit, if it has one, moves in proportion, as the Vertical Pod Autoscaler has it.
pub fn with_request(owner: Owner, container: &Container, resource: ResourceName, amount: i64) -> Patch {
    let name = Symbol::new(&container.name);
    let state = ContainerState { name, requests: container.effective_requests(), limits: container.limits.clone() };
    let limit = proportional_limit(&state, resource, amount, None);
    let limits = limit.map_or_else(Resources::new, |limit| Resources::new().with(resource, limit));
    Patch { owner, containers: vec![(name, Resources::new().with(resource, amount), limits)] }
}

/// What a sizing changes, in the order of the manifests.
pub fn patches(scenario: &Scenario, policy: &str, measured: &Measured, sizing: Sizing) -> Vec<Patch> {
    let Some(variant) = scenario.policies.iter().find(|variant| variant.name.as_str() == policy) else {
        return Vec::new();
    };
    let manifests = &variant.manifests;
    let limits = namespace_limits(manifests);
    let patch = |(owner, template): (Owner, &Arc<PodSpec>)| {
        let wanted = containers(manifests, measured, &limits, (owner, template), sizing)?;
        let changed = template.containers.iter().zip(wanted).filter(|(container, new)| {
            container.effective_requests() != new.requests || container.limits != new.limits
        });
        let containers: Vec<_> = changed.map(|(_, new)| (new.name, new.requests, new.limits)).collect();
        (!containers.is_empty()).then_some(Patch { owner, containers })
    };
    templates(manifests).filter_map(patch).collect()
}

/// What one run says beside the figures of every run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Aside {
    /// Containers killed for lack of memory.
    pub out_of_memory: f64,
    /// The same by workload.
    pub out_of_memory_by_workload: BTreeMap<String, f64>,
    /// Pods evicted because their node ran out of memory.
    pub evicted_for_memory: f64,
    /// Hours for which pods wanted more CPU than their limit or their node gave.
    pub throttled_hours: f64,
    /// The bill by workload.
    pub by_workload: BTreeMap<String, f64>,
    /// Mean replicas wanted of each workload that an autoscaler scales by use in percent of requests.
    pub replicas: BTreeMap<String, f64>,
}

/// Mean replicas wanted, over the samples of a run, of the workloads that an autoscaler scales by use in percent of requests.
fn replicas(outcome: &Outcome) -> BTreeMap<String, f64> {
    let metrics = outcome.record.metrics.iter();
    let by_requests = metrics.filter(|metric| metric.unit == MetricUnit::PercentOfRequest);
    let mean = |workload: WorkloadId| {
        let samples = outcome.record.samples.iter().flat_map(|sample| &sample.workloads);
        let item =
            samples.filter(|sample| sample.workload == workload).map(|sample| f64::from(sample.replicas_desired));
        let (sum, count) = item.fold((0.0, 0.0), |(sum, count), replicas| (sum + replicas, count + 1.0));
        (count > 0.0).then(|| sum / count)
    };
    let workloads: BTreeSet<WorkloadId> = by_requests.map(|metric| metric.workload).collect();
    let named = workloads.into_iter().filter_map(|workload| {
        Some((outcome.record.workloads.get(workload.index())?.name.to_string(), mean(workload)?))
    });
    named.collect()
}

impl Aside {
    /// That of a run.
    pub fn from_outcome(outcome: &Outcome) -> Self {
        let kills = outcome.record.events.iter();
        let kills = kills.filter(|kill| kill.kind == EventKind::PodKilled && kill.message.starts_with("OOMKilled"));
        let mut by_workload = BTreeMap::new();
        for pod in kills.clone().filter_map(|kill| outcome.record.pods.get(kill.pod?)) {
            if let Some(workload) = outcome.record.workloads.get(pod.workload.index()) {
                *by_workload.entry(workload.name.to_string()).or_default() += 1.0;
            }
        }
        let summary = crate::report::Summary::from_outcome(outcome);
        let of_usage: f64 = outcome.record.throttled.iter().map(|item| item.throttled.as_secs_f64()).sum();
        let of_requests: f64 = summary.requests.iter().map(|request| request.throttled_seconds).sum();
        Self {
            out_of_memory: kills.count() as f64,
            out_of_memory_by_workload: by_workload,
            evicted_for_memory: outcome.record.pressed.count() as f64,
            throttled_hours: (of_usage + of_requests) / 3_600.0,
            by_workload: summary.cost.by_workload.iter().map(|part| (part.name.clone(), part.amount)).collect(),
            replicas: replicas(outcome),
        }
    }
}
