//! References between the parts of a scenario.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::super::definition::{Action, PolicyVariant, Scenario};
use super::super::error::{ScenarioError, Warning, listed, nearest};
use super::super::manifests::Manifests;
use super::super::reader::Reader;
use super::super::tree::Location;
use super::Placed;
use super::timeline::Timeline;
use crate::domain::Symbol;
use crate::domain::workload::ObjectName;

/// The workloads that a scenario may refer to: those of its manifests, its policies and its timeline.
pub(super) struct Workloads {
    /// Those that can be scaled and can serve requests.
    serving: Vec<ObjectName>,
    scaled_jobs: Vec<ObjectName>,
    /// Workloads of other kinds.
    others: Vec<ObjectName>,
}

impl Workloads {
    /// Everything that exists under any policy at any time.
    pub(super) fn of(policies: &[PolicyVariant], actions: &[Placed]) -> Self {
        let applied = actions.iter().filter_map(|placed| match &placed.action.action {
            Action::Apply(manifests) => Some(manifests),
            Action::Scale { .. } | Action::ScaleGroup { .. } | Action::UpgradeControlPlane(_) => None,
        });
        let manifests: Vec<&Arc<Manifests>> = policies.iter().map(|policy| &policy.manifests).chain(applied).collect();
        let jobs = manifests.iter().flat_map(|manifests| &manifests.scaled_jobs);
        let scaled_jobs = jobs.map(|job| ObjectName { namespace: job.namespace, name: job.name }).collect();
        let mut seen = FxHashSet::default();
        let serving = manifests.iter().flat_map(|manifests| scalable(manifests)).filter(|name| seen.insert(*name));
        Self { serving: serving.collect(), scaled_jobs, others: others(&manifests) }
    }

    /// Whether the workload called `name`, which takes messages, is a ScaledJob.
    pub(super) fn consumer_makes_jobs(
        &self,
        reader: &Reader<'_>,
        at: Location,
        name: ObjectName,
    ) -> Result<bool, ScenarioError> {
        if self.scaled_jobs.contains(&name) {
            return Ok(true);
        }
        self.find(reader, at, name).map(|()| false)
    }

    /// Checks that there is a workload of any kind called `name`.
    pub(super) fn find_any(&self, reader: &Reader<'_>, at: Location, name: ObjectName) -> Result<(), ScenarioError> {
        let mut all = self.serving.iter().chain(self.scaled_jobs.iter().chain(&self.others)).copied();
        if all.any(|own| own == name) {
            return Ok(());
        }
        let names: Vec<String> = self.others.iter().chain(&self.scaled_jobs).map(ToString::to_string).collect();
        let near = nearest(&name.to_string(), names.iter().map(String::as_str));
        let help = near.map_or_else(
            || "name a Deployment, StatefulSet, DaemonSet, Job, CronJob or ScaledJob of the manifests".to_owned(),
            |near| format!("did you mean `{near}`?"),
        );
        Err(reader.error(at, format!("no workload is called `{name}`")).because("refers to nothing").help(help))
    }

    /// Checks that there is a workload called `name` that can be scaled and can serve requests.
    pub(super) fn find(&self, reader: &Reader<'_>, at: Location, name: ObjectName) -> Result<(), ScenarioError> {
        if self.serving.contains(&name) {
            return Ok(());
        }
        let names: Vec<String> = self.serving.iter().map(ToString::to_string).collect();
        let known = || names.iter().map(String::as_str);
        let help = match nearest(&name.to_string(), known()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if names.is_empty() => "no manifest holds a Deployment or StatefulSet".to_owned(),
            None => format!("the manifests hold {}", listed(known().take(10))),
        };
        Err(reader
            .error(at, format!("no Deployment or StatefulSet is called `{name}`"))
            .because("refers to nothing")
            .help(help))
    }
}

/// What can be scaled and can serve requests.
fn scalable(manifests: &Manifests) -> impl Iterator<Item = ObjectName> {
    let deployments = manifests.deployments.iter().map(|deployment| deployment.name);
    deployments.chain(manifests.stateful_sets.iter().map(|set| set.name))
}

/// Workloads that neither serve requests nor are made by KEDA.
fn others(manifests: &[&Arc<Manifests>]) -> Vec<ObjectName> {
    let all = manifests.iter().flat_map(|own| {
        let jobs = own.jobs.iter().map(|job| job.name).chain(own.cron_jobs.iter().map(|cron| cron.name));
        jobs.chain(own.daemon_sets.iter().map(|set| set.name))
    });
    all.collect()
}

/// Checks what the timeline refers to.
pub(super) fn timeline(
    reader: &Reader<'_>,
    timeline: &Timeline<'_, '_>,
    workloads: &Workloads,
    policies: &[PolicyVariant],
) -> Result<(), ScenarioError> {
    for placed in &timeline.actions {
        match placed.action.action {
            Action::Scale { workload, .. } => {
                workloads.find(reader, placed.at, workload)?;
            }
            Action::ScaleGroup { group, desired } => node_group(reader, placed.at, policies, group, desired)?,
            Action::Apply(_) | Action::UpgradeControlPlane(_) => {}
        }
    }
    policies.iter().try_for_each(|policy| upgrades(reader, timeline, policy))
}

/// Checks that each upgrade of the control plane goes to the next release: EKS knows no other.
fn upgrades(reader: &Reader<'_>, timeline: &Timeline<'_, '_>, policy: &PolicyVariant) -> Result<(), ScenarioError> {
    let mut release = policy.versions.kubernetes;
    for placed in &timeline.actions {
        let Action::UpgradeControlPlane(wanted) = placed.action.action else { continue };
        if release.next() != Some(wanted) {
            let next = release.next().map_or_else(
                || format!("take the step out: {release} is the newest release that is reproduced"),
                |next| format!("EKS upgrades by one minor release at a time: write \"{next}\" first"),
            );
            return Err(reader
                .error(placed.at, format!("the control plane cannot be upgraded from {release} to {wanted}"))
                .because(format!("the policy `{}` runs {release} by then", policy.name))
                .help(next));
        }
        release = wanted;
    }
    Ok(())
}

/// Checks that the group exists under some policy, and that its limits allow the size under every policy that has it.
fn node_group(
    reader: &Reader<'_>,
    at: Location,
    policies: &[PolicyVariant],
    name: Symbol,
    desired: u32,
) -> Result<(), ScenarioError> {
    let all = || policies.iter().flat_map(|policy| policy.manifests.node_groups.iter());
    let mut same = all().filter(|group| group.name == name).peekable();
    if same.peek().is_none() {
        let names = || all().map(|group| group.name.as_str());
        let help = match nearest(name.as_str(), names()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "name a group of `nodeGroups` or of an eksctl ClusterConfig".to_owned(),
        };
        return Err(reader
            .error(at, format!("no node group is called `{name}`"))
            .because("refers to nothing")
            .help(help));
    }
    match same.find(|group| desired < group.min_size || group.max_size < desired) {
        None => Ok(()),
        Some(group) => Err(reader
            .error(
                at,
                format!("{desired} is not between the sizes of `{name}`, {} and {}", group.min_size, group.max_size),
            )
            .because("EC2 Auto Scaling refuses this")
            .help("change `desired`, or the limits of the group")),
    }
}

/// Adds warnings about what is legal but most likely not meant.
pub(super) fn warn(scenario: &Scenario, warnings: &mut Vec<Warning>) {
    for policy in &scenario.policies {
        let manifests = &policy.manifests;
        if let Some(cluster) = &manifests.cluster {
            if let Some(region) = cluster.region.filter(|r| *r != scenario.region && !r.as_str().contains("${")) {
                push(warnings, format!("the ClusterConfig says {region}, the scenario says {}", scenario.region));
            }
            let stated = cluster.kubernetes_version.as_deref().unwrap_or_default();
            let ours = policy.versions.kubernetes.to_string();
            if !stated.is_empty() && stated != ours {
                push(warnings, format!("the ClusterConfig says Kubernetes {stated}, the scenario says {ours}"));
            }
        }
        for pool in &manifests.node_pools {
            if !manifests.node_classes.iter().any(|class| class.name == pool.node_class) {
                let (name, class) = (pool.name, pool.node_class);
                push(
                    warnings,
                    format!(
                        "NodePool {name} names the node class `{class}`, which no manifest defines: its defaults are assumed"
                    ),
                );
            }
        }
        for text in dangling_autoscalers(policy, scenario).into_iter().chain(shared_targets(policy, scenario)) {
            push(warnings, text);
        }
    }
}

/// Notes a warning once; policies share most of their objects.
fn push(warnings: &mut Vec<Warning>, message: String) {
    if !warnings.iter().any(|known| known.message() == message) {
        warnings.push(Warning::new(message));
    }
}

/// What scales replicas: how messages call it, the kind of its target, and the target.
fn autoscalers(all: &[&Arc<Manifests>]) -> Vec<(String, Symbol, ObjectName)> {
    let named = |kind: &str, namespace: Symbol, name: Symbol| format!("{kind} {namespace}/{name}");
    let hpas = all.iter().flat_map(|manifests| &manifests.autoscalers).map(|hpa| {
        let target = ObjectName { namespace: hpa.namespace, name: hpa.target.name };
        (named("HorizontalPodAutoscaler", hpa.namespace, hpa.name), hpa.target.kind, target)
    });
    let objects = all.iter().flat_map(|manifests| &manifests.scaled_objects).map(|object| {
        let target = ObjectName { namespace: object.namespace, name: object.target.name };
        (named("ScaledObject", object.namespace, object.name), object.target.kind, target)
    });
    hpas.chain(objects).collect()
}

/// The objects of a policy, then those that appear on the way.
fn all_manifests<'a>(policy: &'a PolicyVariant, scenario: &'a Scenario) -> Vec<&'a Arc<Manifests>> {
    let applied = scenario.timeline.iter().filter_map(|step| match &step.action {
        Action::Apply(manifests) => Some(manifests),
        Action::Scale { .. } | Action::ScaleGroup { .. } | Action::UpgradeControlPlane(_) => None,
    });
    std::iter::once(&policy.manifests).chain(applied).collect()
}

/// Autoscalers of replicas that scale nothing.
fn dangling_autoscalers(policy: &PolicyVariant, scenario: &Scenario) -> Vec<String> {
    let all = all_manifests(policy, scenario);
    let exists = |kind: Symbol, name: ObjectName| match kind.as_str() {
        "Deployment" => all.iter().any(|m| m.deployments.iter().any(|d| d.name == name)),
        "StatefulSet" => all.iter().any(|m| m.stateful_sets.iter().any(|s| s.name == name)),
        _ => false,
    };
    let dangling = |(_, kind, target): &(String, Symbol, ObjectName)| !exists(*kind, *target);
    autoscalers(&all)
        .into_iter()
        .filter(dangling)
        .map(|(own, kind, target)| format!("{own} scales nothing: there is no {kind} {}", target.name))
        .collect()
}

/// Workloads that several autoscalers scale: Kubernetes then scales them by none, and KEDA refuses the second object.
fn shared_targets(policy: &PolicyVariant, scenario: &Scenario) -> Vec<String> {
    let mut known: Vec<(String, Symbol, ObjectName)> = Vec::new();
    let mut texts = Vec::new();
    for (own, kind, target) in autoscalers(&all_manifests(policy, scenario)) {
        match known.iter().find(|(_, other_kind, other)| *other_kind == kind && *other == target) {
            Some((first, ..)) if *first != own => {
                texts.push(format!("{first} and {own} both scale {kind} {target}: neither will"));
            }
            Some(_) => {}
            None => known.push((own, kind, target)),
        }
    }
    texts
}
