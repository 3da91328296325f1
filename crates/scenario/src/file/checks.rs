//! References between the parts of a scenario.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::super::definition::{Action, Autoscaler, PolicyVariant, Scenario};
use super::super::error::{Place, ScenarioError, Warning, listed, nearest};
use super::super::lints::{self, Lint};
use super::super::manifests::Manifests;
use super::super::reader::{Fields, Reader};
use super::super::tree::Location;
use super::Placed;
use super::overlays::installed_karpenter;
use super::timeline::Timeline;
use crate::domain::keda::Trigger;
use crate::domain::which::{By, ObjectKind, Which};
use crate::domain::workload::{Job, ObjectName};
use crate::domain::{ControlPlaneTier, NodeGroup, NodePool, SimDuration, Symbol};
use nodecast_karpenter::release::{Behaviour, unread_kind};
use nodecast_manifests::lints::CONSOLIDATE_AFTER_MISSING;
use nodecast_single_pass::lints::{NODE_CLASS_MISSING, UNREAD_POOL};

/// `--horizontal-pod-autoscaler-sync-period`.
const SYNC_PERIOD: SimDuration = SimDuration::from_secs(15);
/// Between two passes of Karpenter's disruption loop, and between two of its searches for claims whose instance is gone.
const DISRUPTION_PERIOD: SimDuration = SimDuration::from_secs(10);
const GARBAGE_PERIOD: SimDuration = SimDuration::from_secs(120);

/// Drops the warnings of missing `consolidateAfter` where every policy has a Karpenter that does not require it.
pub(super) fn drop_optional(scenario: &Scenario, warnings: &mut Vec<Warning>) {
    let optional =
        |policy: &PolicyVariant| Behaviour::for_release(policy.versions.karpenter).defaults_consolidate_after;
    if scenario.policies.iter().all(optional) {
        warnings.retain(|warning| warning.lint().is_none_or(|lint| lint.id() != CONSOLIDATE_AFTER_MISSING.id()));
    }
}

/// What is applied under any policy at any time.
pub(super) fn manifests<'a>(policies: &'a [PolicyVariant], actions: &'a [Placed]) -> Vec<&'a Arc<Manifests>> {
    let applied = actions.iter().filter_map(|placed| placed.action.action.applied());
    policies.iter().map(|policy| &policy.manifests).chain(applied).collect()
}

/// Names of the NodePools and node groups that there are under any policy at any time.
pub(super) fn node_pools(policies: &[PolicyVariant], actions: &[Placed]) -> BTreeSet<Symbol> {
    let mut names = BTreeSet::new();
    for manifest in manifests(policies, actions) {
        names.extend(manifest.node_pools.iter().map(|pool| pool.name));
        names.extend(manifest.node_groups.iter().map(|group| group.name));
    }
    names
}

/// The workloads that a scenario may refer to: those of its manifests, its policies and its timeline.
#[derive(Default)]
pub(crate) struct Workloads {
    /// Those that can be scaled and can serve requests.
    serving: Vec<ObjectName>,
    daemon_sets: Vec<ObjectName>,
    scaled_jobs: Vec<ObjectName>,
    /// Workloads of other kinds.
    others: Vec<ObjectName>,
    /// What KEDA scales, with the names of its triggers.
    triggers: BTreeMap<ObjectName, Vec<Option<Symbol>>>,
}

impl Workloads {
    /// Everything that exists under any policy at any time.
    pub(super) fn new(policies: &[PolicyVariant], actions: &[Placed]) -> Self {
        let manifests = manifests(policies, actions);
        let jobs = manifests.iter().flat_map(|manifests| &manifests.scaled_jobs);
        let scaled_jobs = jobs.map(|job| ObjectName { namespace: job.namespace, name: job.name }).collect();
        let mut seen = FxHashSet::default();
        let serving = manifests.iter().flat_map(|manifests| scalable(manifests)).filter(|name| seen.insert(*name));
        let daemon_sets =
            manifests.iter().flat_map(|manifest| manifest.daemon_sets.iter().map(|set| set.name)).collect();
        let (others, triggers) = (others(&manifests), triggers(&manifests));
        Self { serving: serving.collect(), daemon_sets, scaled_jobs, others, triggers }
    }

    /// Checks that there is a ScaledObject or ScaledJob called `name`, with a trigger of this name or place if one is stated.
    pub(crate) fn find_trigger(
        &self,
        reader: &Reader<'_>,
        at: Location,
        name: ObjectName,
        trigger: Option<Symbol>,
    ) -> Result<(), ScenarioError> {
        let Some(known) = self.triggers.get(&name) else {
            let names: Vec<String> = self.triggers.keys().map(ToString::to_string).collect();
            let help = match nearest(&name.to_string(), names.iter().map(String::as_str)) {
                Some(near) => format!("did you mean `{near}`?"),
                None if names.is_empty() => "no manifest holds a ScaledObject or ScaledJob".to_owned(),
                None => format!("the manifests hold {}", listed(names.iter().map(String::as_str).take(10))),
            };
            let message = format!("no ScaledObject or ScaledJob is called `{name}`");
            return Err(reader.error(at, message).because(ScenarioError::NOTHING).help(help));
        };
        let Some(trigger) = trigger else { return Ok(()) };
        let places: Vec<String> = (0..known.len()).map(|place| format!("s{place}")).collect();
        let named = known.iter().flatten().map(|item| item.as_str());
        let all: Vec<&str> = named.chain(places.iter().map(String::as_str)).collect();
        if all.contains(&trigger.as_str()) {
            return Ok(());
        }
        Err(reader
            .error(at, format!("{name} has no trigger `{trigger}`"))
            .because(ScenarioError::NOTHING)
            .help(format!("its triggers are {}", listed(all.iter().copied().take(10)))))
    }

    /// Checks that the workload called `name` can take messages, and that it makes jobs if it is said how many each of them takes.
    pub(crate) fn check_consumer(
        &self,
        reader: &Reader<'_>,
        at: Location,
        name: ObjectName,
        per_job: Option<Location>,
    ) -> Result<(), ScenarioError> {
        if self.scaled_jobs.contains(&name) {
            return Ok(());
        }
        self.find(reader, at, name)?;
        per_job.map_or(Ok(()), |at| {
            Err(reader
                .error(at, format!("`messages_per_job` applies only to ScaledJobs; {name} is not one"))
                .because("has no meaning here")
                .help("remove it: a replica processes one message at a time"))
        })
    }

    /// Checks that there is a workload of any kind called `name`.
    pub(crate) fn find_any(&self, reader: &Reader<'_>, at: Location, name: ObjectName) -> Result<(), ScenarioError> {
        let mut all = self.serving.iter().chain(self.scaled_jobs.iter().chain(&self.others)).copied();
        if all.any(|item| item == name) {
            return Ok(());
        }
        let all = self.serving.iter().chain(&self.scaled_jobs).chain(&self.others);
        let names: Vec<String> = all.map(ToString::to_string).collect();
        let near = nearest(&name.to_string(), names.iter().map(String::as_str));
        let help = near.map_or_else(
            || "name a Deployment, StatefulSet, DaemonSet, Job, CronJob or ScaledJob of the manifests".to_owned(),
            |near| format!("did you mean `{near}`?"),
        );
        Err(reader.error(at, format!("no workload named `{name}`")).because(ScenarioError::NOTHING).help(help))
    }

    /// Checks that there is a workload called `name` whose pods run for as long as their nodes: a DaemonSet, or one that can be scaled.
    pub(crate) fn find_running(
        &self,
        reader: &Reader<'_>,
        at: Location,
        name: ObjectName,
    ) -> Result<(), ScenarioError> {
        if self.daemon_sets.contains(&name) { Ok(()) } else { self.find(reader, at, name) }
    }

    /// Checks that there is a workload called `name` that can be scaled and can serve requests.
    pub(crate) fn find(&self, reader: &Reader<'_>, at: Location, name: ObjectName) -> Result<(), ScenarioError> {
        if self.serving.contains(&name) {
            return Ok(());
        }
        let names: Vec<String> = self.serving.iter().map(ToString::to_string).collect();
        let known = || names.iter().map(String::as_str);
        let elsewhere = self.serving.iter().find(|item| item.name == name.name);
        let near = elsewhere.map(ToString::to_string);
        let near = near.or_else(|| nearest(&name.to_string(), known()).map(str::to_owned));
        let help = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None if names.is_empty() => "no manifest holds a Deployment or StatefulSet".to_owned(),
            None => format!("the manifests hold {}", listed(known().take(10))),
        };
        Err(reader
            .error(at, format!("no Deployment or StatefulSet is called `{name}`"))
            .because(ScenarioError::NOTHING)
            .help(help))
    }
}

/// Checks that loops first come round within their first period.
pub(super) fn phases(reader: &Reader<'_>, fields: Fields<'_, '_>, scenario: &Scenario) -> Result<(), ScenarioError> {
    let phases = &scenario.phases;
    let loops = [
        ("metrics_server", phases.metrics_server, scenario.metrics_server.resolution),
        ("replica_autoscalers", phases.replica_autoscalers, SYNC_PERIOD),
        ("disruption", phases.disruption, DISRUPTION_PERIOD),
        ("garbage_collection", phases.garbage_collection, GARBAGE_PERIOD),
    ];
    for (name, phase, period) in loops {
        if phase.is_some_and(|phase| phase >= period) {
            let node = fields.get("phases").and_then(|field| field.get(name));
            return Err(reader
                .error(
                    node.map_or(fields.at, |node| node.at),
                    format!("`{name}` repeats every {period}, so its first time must be earlier than that"),
                )
                .because("not within the first period")
                .help(format!("write a time shorter than {period}")));
        }
    }
    Ok(())
}

/// What can be scaled and can serve requests.
fn scalable(manifests: &Manifests) -> impl Iterator<Item = ObjectName> {
    let deployments = manifests.deployments.iter().map(|deployment| deployment.name);
    deployments.chain(manifests.stateful_sets.iter().map(|set| set.name))
}

/// What KEDA scales, with the names of its triggers in their order.
fn triggers(manifests: &[&Arc<Manifests>]) -> BTreeMap<ObjectName, Vec<Option<Symbol>>> {
    let named = |triggers: &[Trigger]| triggers.iter().map(|trigger| trigger.name).collect();
    let all = manifests.iter().flat_map(|manifest| {
        let objects = manifest
            .scaled_objects
            .iter()
            .map(|scaled_object| (scaled_object.namespace, scaled_object.name, &scaled_object.triggers));
        objects.chain(
            manifest.scaled_jobs.iter().map(|scaled_job| (scaled_job.namespace, scaled_job.name, &scaled_job.triggers)),
        )
    });
    all.map(|(namespace, name, triggers)| (ObjectName { namespace, name }, named(triggers))).collect()
}

/// Workloads that neither serve requests nor are made by KEDA.
fn others(manifests: &[&Arc<Manifests>]) -> Vec<ObjectName> {
    let all = manifests.iter().flat_map(|manifest| {
        let jobs = manifest.jobs.iter().map(|job| job.name).chain(manifest.cron_jobs.iter().map(|cron| cron.name));
        jobs.chain(manifest.daemon_sets.iter().map(|set| set.name))
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
    let all = manifests(policies, &timeline.actions);
    let mut limits = GroupLimits::from_policies(policies);
    for placed in &timeline.actions {
        match placed.action.action {
            Action::Scale { workload, .. } => {
                workloads.find(reader, placed.at, workload)?;
            }
            Action::ScaleGroup { group, desired } => limits.check(reader, placed.at, group, desired)?,
            Action::UpdateGroup(ref update) => {
                limits.check_replaced(reader, placed.at, update.group, (true, policies))?
            }
            Action::RefreshGroup(ref refresh) => {
                limits.check_replaced(reader, placed.at, refresh.group, (false, policies))?
            }
            Action::Delete { kind, ref which, .. } => deleted(reader, placed.at, kind, which, &all)?,
            Action::Apply(ref later) => {
                limits.update(later);
                policies
                    .iter()
                    .try_for_each(|policy| becomes_static(reader, placed, later, (&policy.manifests, timeline)))?;
            }
            Action::UpgradeControlPlane(_)
            | Action::ChangeControlPlaneTier(_)
            | Action::Cordon(_)
            | Action::Uncordon(_)
            | Action::Drain { .. } => {}
        }
    }
    policies.iter().try_for_each(|policy| upgrades(reader, timeline, policy))
}

/// Refuses a step that makes a static pool of one that follows pods, or the other way round, as the API server does.
///
/// Source: Karpenter core v1.13 `pkg/apis/v1/nodepool.go`, the rules of `NodePoolSpec`.
fn becomes_static(
    reader: &Reader<'_>,
    placed: &Placed,
    later: &Manifests,
    (before, timeline): (&Manifests, &Timeline<'_, '_>),
) -> Result<(), ScenarioError> {
    // One that is deleted before may come again as anything.
    let is_deleted = |name| {
        let earlier = timeline.actions.iter().filter(|other| other.action.at <= placed.action.at);
        earlier.map(|other| &other.action.action).any(|action| {
            let Action::Delete { kind: ObjectKind::NodePool, which: Which { by: By::Name(this_name), .. }, .. } =
                action
            else {
                return false;
            };
            this_name.name == name
        })
    };
    let changes = |node_pool: &&NodePool| {
        let known = before
            .node_pools
            .iter()
            .find(|known| (known.name, known.auto_mode) == (node_pool.name, node_pool.auto_mode));
        known.is_some_and(|known| known.replicas.is_some() != node_pool.replicas.is_some())
            && !is_deleted(node_pool.name)
    };
    let Some(pool) = later.node_pools.iter().find(changes) else { return Ok(()) };
    let what = if pool.replicas.is_some() { "is given `replicas`" } else { "loses its `replicas`" };
    Err(reader
        .error(placed.at, format!("the NodePool {} {what}", pool.name))
        .because("the API server refuses this step")
        .help("a NodePool is static from the start or never: state one of another name, or change the number of its `replicas`"))
}

/// Checks that an object that is deleted by its name is in some manifest; those that come to be during a run are looked for then.
fn deleted(
    reader: &Reader<'_>,
    at: Location,
    kind: ObjectKind,
    which: &Which,
    all: &[&Arc<Manifests>],
) -> Result<(), ScenarioError> {
    let By::Name(name) = which.by else { return Ok(()) };
    if kind.is_generated() || kind == ObjectKind::PersistentVolumeClaim {
        return Ok(());
    }
    let known: Vec<ObjectName> = all.iter().flat_map(|item| named(item, kind)).collect();
    if known.contains(&name) {
        return Ok(());
    }
    let text = |object_name: &ObjectName| {
        if kind.has_namespace() { object_name.to_string() } else { object_name.name.to_string() }
    };
    let names: Vec<String> = known.iter().map(text).collect();
    let (kind, name) = (kind.as_str(), text(&name));
    let help = match nearest(&name, names.iter().map(String::as_str)) {
        Some(near) => format!("did you mean `{near}`?"),
        None if names.is_empty() => format!("no manifest holds a {kind}"),
        None => format!("the manifests hold {}", listed(names.iter().map(String::as_str).take(10))),
    };
    Err(reader.error(at, format!("no {kind} is called `{name}`")).because(ScenarioError::NOTHING).help(help))
}

/// The objects of a kind by name.
fn named(manifests: &Manifests, kind: ObjectKind) -> Vec<ObjectName> {
    let of = |namespace, name| ObjectName { namespace, name };
    match kind {
        ObjectKind::Deployment => manifests.deployments.iter().map(|object| object.name).collect(),
        ObjectKind::StatefulSet => manifests.stateful_sets.iter().map(|object| object.name).collect(),
        ObjectKind::DaemonSet => manifests.daemon_sets.iter().map(|object| object.name).collect(),
        ObjectKind::Job => manifests.jobs.iter().map(|object| object.name).collect(),
        ObjectKind::CronJob => manifests.cron_jobs.iter().map(|object| object.name).collect(),
        ObjectKind::HorizontalPodAutoscaler => {
            manifests.autoscalers.iter().map(|autoscaler| of(autoscaler.namespace, autoscaler.name)).collect()
        }
        ObjectKind::VerticalPodAutoscaler => {
            manifests.vertical_autoscalers.iter().map(|vertical_autoscaler| vertical_autoscaler.name).collect()
        }
        ObjectKind::ScaledObject => manifests
            .scaled_objects
            .iter()
            .map(|scaled_object| of(scaled_object.namespace, scaled_object.name))
            .collect(),
        ObjectKind::ScaledJob => {
            manifests.scaled_jobs.iter().map(|scaled_job| of(scaled_job.namespace, scaled_job.name)).collect()
        }
        ObjectKind::PodDisruptionBudget => manifests
            .disruption_budgets
            .iter()
            .map(|disruption_budget| of(disruption_budget.namespace, disruption_budget.name))
            .collect(),
        ObjectKind::Service => manifests.services.iter().map(|service| service.name).collect(),
        ObjectKind::Ingress => manifests.ingresses.iter().map(|ingress| ingress.name).collect(),
        ObjectKind::NodePool => manifests.node_pools.iter().map(|node_pool| in_default(node_pool.name)).collect(),
        ObjectKind::PersistentVolumeClaim | ObjectKind::Pod | ObjectKind::NodeClaim | ObjectKind::Node => Vec::new(),
    }
}

/// Checks that each upgrade of the control plane goes to the next release, the only one that EKS offers, and that EKS offers each tier for the
/// release of its time.
fn upgrades(reader: &Reader<'_>, timeline: &Timeline<'_, '_>, policy: &PolicyVariant) -> Result<(), ScenarioError> {
    let mut release = policy.versions.kubernetes;
    for placed in &timeline.actions {
        if let Action::ChangeControlPlaneTier(tier) = placed.action.action
            && !tier.is_offered(release)
        {
            return Err(reader
                .error(placed.at, format!("the tier `{tier}` of the control plane with Kubernetes {release}"))
                .because(format!("not offered by EKS; the policy `{}` runs {release} by then", policy.name))
                .help(format!(
                    "use `standard`, or Kubernetes 1.{} or later under `versions`",
                    ControlPlaneTier::FIRST_RELEASE
                )));
        }
        let Action::UpgradeControlPlane(wanted) = placed.action.action else { continue };
        if release.next() != Some(wanted) {
            let next = release.next().map_or_else(
                || format!("remove this step: {release} is the newest supported release"),
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

/// The limits of node groups under each policy as a timeline goes on: a step that applies manifests changes them.
struct GroupLimits(Vec<BTreeMap<Symbol, (u32, u32)>>);

impl GroupLimits {
    /// Those at the start.
    fn from_policies(policies: &[PolicyVariant]) -> Self {
        let sizes = |group: &NodeGroup| (group.name, (group.min_size, group.max_size));
        Self(policies.iter().map(|policy| policy.manifests.node_groups.iter().map(sizes).collect()).collect())
    }

    /// Manifests are applied: groups that there are take other limits; none is made on the way.
    fn update(&mut self, later: &Manifests) {
        for known in &mut self.0 {
            for group in &later.node_groups {
                if let Some(limits) = known.get_mut(&group.name) {
                    *limits = (group.min_size, group.max_size);
                }
            }
        }
    }

    /// Checks that the group exists under some policy, and that its limits by then allow the size under every policy that has it.
    fn check(&self, reader: &Reader<'_>, at: Location, name: Symbol, desired: u32) -> Result<(), ScenarioError> {
        self.check_name(reader, at, name)?;
        let mut same = self.0.iter().filter_map(|known| known.get(&name));
        match same.find(|&&(least, most)| desired < least || most < desired) {
            None => Ok(()),
            Some((least, most)) => Err(reader
                .error(
                    at,
                    format!(
                        "desired size {desired} is outside the limits of `{name}` at that time ({least} to {most})"
                    ),
                )
                .because("EC2 Auto Scaling refuses this")
                .help("change `desired`, or the limits of the group")),
        }
    }
}

impl GroupLimits {
    /// Checks that some policy has the group.
    fn check_name(&self, reader: &Reader<'_>, at: Location, name: Symbol) -> Result<(), ScenarioError> {
        if self.0.iter().any(|known| known.contains_key(&name)) {
            return Ok(());
        }
        let names = self.0.iter().flat_map(|known| known.keys().map(|key| key.as_str()));
        let help = match nearest(name.as_str(), names) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "name a group of `nodeGroups` or of an eksctl ClusterConfig".to_owned(),
        };
        Err(reader.error(at, format!("no node group named `{name}`")).because(ScenarioError::NOTHING).help(help))
    }

    /// Checks that some policy has the group whose nodes are replaced, and that EKS manages it, or that it does not.
    fn check_replaced(
        &self,
        reader: &Reader<'_>,
        at: Location,
        name: Symbol,
        (by_eks, policies): (bool, &[PolicyVariant]),
    ) -> Result<(), ScenarioError> {
        self.check_name(reader, at, name)?;
        let mut groups = policies.iter().flat_map(|policy| &policy.manifests.node_groups);
        if groups.all(|group| group.name != name || group.managed == by_eks) {
            return Ok(());
        }
        let (step, other) = if by_eks { ("update_group", "refresh_group") } else { ("refresh_group", "update_group") };
        let why = if by_eks { "EKS does not manage this group" } else { "EKS manages this group" };
        let message = format!("`{step}` of the node group `{name}`");
        Err(reader.error(at, message).because(why).help(format!("write `{other}`")))
    }
}

/// Where the object of a kind and name stands in the file that `manifests` have it from.
type Places<'p> = dyn Fn(&Manifests, &str, ObjectName) -> Option<Place> + 'p;

/// Adds warnings about what is legal but most likely not meant.
pub(super) fn warn(scenario: &Scenario, warnings: &mut Vec<Warning>, place: &Places<'_>) {
    for policy in &scenario.policies {
        let manifests = &policy.manifests;
        if let Some(cluster) = &manifests.cluster {
            let name = cluster.name.unwrap_or(Symbol::new(""));
            let at = place(manifests, "ClusterConfig", in_default(name));
            if let Some(region) = cluster.region.filter(|r| *r != scenario.region && !r.as_str().contains("${")) {
                let message = format!("the ClusterConfig says {region}, the scenario says {}", scenario.region);
                push(warnings, &lints::file::CLUSTER_CONFIG_DIFFERS, at.clone(), message);
            }
            let stated = cluster.kubernetes_version.as_deref().unwrap_or_default();
            let ours = policy.versions.kubernetes.to_string();
            if !stated.is_empty() && stated != ours {
                let message = format!("the ClusterConfig says Kubernetes {stated}, the scenario says {ours}");
                push(warnings, &lints::file::CLUSTER_CONFIG_DIFFERS, at.clone(), message);
            }
            let installed = cluster.karpenter_version.as_deref().filter(|_| policy.autoscaler == Autoscaler::Karpenter);
            let ours = policy.versions.karpenter;
            if let Some(installed) = installed.filter(|_| installed_karpenter(cluster) != Some(ours)) {
                let message = format!("the ClusterConfig installs Karpenter {installed}, the scenario uses {ours}");
                push(warnings, &lints::file::CLUSTER_CONFIG_DIFFERS, at, message);
            }
        }
        for pool in &manifests.node_pools {
            // EKS makes the class `default` of Auto Mode.
            let made = pool.auto_mode && pool.node_class == crate::domain::well_known::DEFAULT;
            if !made && !manifests.node_classes.iter().any(|class| class.name == pool.node_class) {
                let (name, class) = (pool.name, pool.node_class);
                let kind = if pool.legacy { "Provisioner" } else { "NodePool" };
                push(
                    warnings,
                    &NODE_CLASS_MISSING,
                    place(manifests, kind, in_default(name)),
                    format!(
                        "{kind} {name} names the node class `{class}`, which no manifest defines: its defaults are assumed"
                    ),
                );
            }
        }
        let all = all_manifests(policy, scenario);
        warn_of_provisioners(policy, &all, warnings, place);
        let somewhere =
            |(kind, name): (&str, ObjectName)| all.iter().rev().find_map(|manifests| place(manifests, kind, name));
        for (key, message) in dangling_autoscalers(&all) {
            push(warnings, &lints::file::AUTOSCALER_WITHOUT_TARGET, somewhere(key), message);
        }
        for (key, message) in shared_targets(&all) {
            push(warnings, &lints::file::SHARED_TARGET, somewhere(key), message);
        }
        for (kind, name) in endless_jobs(&all, scenario) {
            let message = format!(
                "unknown run time for pods of {kind} {name}: assuming 1 minute. Set `run_time` under `workloads`"
            );
            push(warnings, &lints::file::RUN_TIME_UNKNOWN, somewhere((kind, name)), message);
        }
    }
}

/// Provisioners under a release of Karpenter that does not read them any more.
fn warn_of_provisioners(
    policy: &PolicyVariant,
    all: &[&Arc<Manifests>],
    warnings: &mut Vec<Warning>,
    place: &Places<'_>,
) {
    if policy.autoscaler != Autoscaler::Karpenter {
        return;
    }
    for manifests in all {
        for pool in manifests.node_pools.iter().filter(|pool| pool.legacy) {
            let Some(unread) = unread_kind(policy.versions.karpenter, pool) else { continue };
            let at = place(manifests, "Provisioner", in_default(pool.name));
            let message = format!(
                "{unread}, for example `versions: {{karpenter: v0.27}}`, or write the NodePool and the EC2NodeClass that it has become"
            );
            push(warnings, &UNREAD_POOL, at, message);
        }
    }
}

/// The name of an object of no namespace.
fn in_default(name: Symbol) -> ObjectName {
    ObjectName { namespace: Symbol::new("default"), name }
}

/// Jobs and CronJobs of whose pods the scenario does not say how long they run; those that are suspended run none until a step of
/// the timeline applies them otherwise.
fn endless_jobs(all: &[&Arc<Manifests>], scenario: &Scenario) -> Vec<(&'static str, ObjectName)> {
    // Where a run begins with a dump, pods of the Jobs that others made run as long as those of their makers.
    let is_made = |manifests: &Manifests, job: &Job| scenario.initial.is_some() && manifests.maker_of(job).is_some();
    let jobs = all.iter().flat_map(|requests| requests.jobs.iter().filter(|job| !is_made(requests, job)));
    let jobs = jobs.filter(|job| !job.spec.suspended).map(|job| ("Job", job.name));
    let cron_jobs =
        all.iter().flat_map(|manifests| &manifests.cron_jobs).filter(|cron| !(cron.suspended || cron.job.suspended));
    let cron_jobs = cron_jobs.map(|cron| ("CronJob", cron.name));
    let unknown = |name: &ObjectName| scenario.times.get(name).is_none_or(|times| times.run_time.is_none());
    jobs.chain(cron_jobs).filter(|(_, name)| unknown(name)).collect()
}

/// Notes a warning once; policies share most of their objects.
fn push(warnings: &mut Vec<Warning>, lint: &'static Lint, at: Option<Place>, message: String) {
    if !warnings.iter().any(|known| known.message() == message) {
        warnings.push(Warning::from_lint(lint, message).at(at));
    }
}

/// An object by its kind and name.
type Named = (&'static str, ObjectName);

/// What scales replicas, the kind of its target, and the target.
fn autoscalers(all: &[&Arc<Manifests>]) -> Vec<(Named, Symbol, ObjectName)> {
    let named = |namespace: Symbol, name: Symbol| ObjectName { namespace, name };
    let hpas = all.iter().flat_map(|manifests| &manifests.autoscalers).map(|hpa| {
        let item = ("HorizontalPodAutoscaler", named(hpa.namespace, hpa.name));
        (item, hpa.target.kind, named(hpa.namespace, hpa.target.name))
    });
    let objects = all.iter().flat_map(|manifests| &manifests.scaled_objects).map(|object| {
        let item = ("ScaledObject", named(object.namespace, object.name));
        (item, object.target.kind, named(object.namespace, object.target.name))
    });
    hpas.chain(objects).collect()
}

/// The objects of a policy, then those that appear on the way.
fn all_manifests<'a>(policy: &'a PolicyVariant, scenario: &'a Scenario) -> Vec<&'a Arc<Manifests>> {
    let applied = scenario.timeline.iter().filter_map(|step| step.action.applied());
    std::iter::once(&policy.manifests).chain(applied).collect()
}

/// Autoscalers of replicas that scale nothing.
fn dangling_autoscalers(all: &[&Arc<Manifests>]) -> Vec<(Named, String)> {
    let exists = |kind: Symbol, name: ObjectName| match kind.as_str() {
        "Deployment" => all.iter().any(|m| m.deployments.iter().any(|d| d.name == name)),
        "StatefulSet" => all.iter().any(|m| m.stateful_sets.iter().any(|s| s.name == name)),
        _ => false,
    };
    autoscalers(all)
        .into_iter()
        .filter(|(_, kind, target)| !exists(*kind, *target))
        .map(|(key, kind, target)| {
            (key, format!("{} {} has no target: {kind} {} does not exist", key.0, key.1, target.name))
        })
        .collect()
}

/// Workloads that several autoscalers scale: Kubernetes then scales them by none, and KEDA refuses the second object.
fn shared_targets(all: &[&Arc<Manifests>]) -> Vec<(Named, String)> {
    let mut known: Vec<(Named, Symbol, ObjectName)> = Vec::new();
    let mut texts = Vec::new();
    for (key, kind, target) in autoscalers(all) {
        match known.iter().find(|(_, other_kind, other)| *other_kind == kind && *other == target) {
            Some((first, ..)) if *first != key => {
                let both = format!("{} {} and {} {}", first.0, first.1, key.0, key.1);
                texts.push((key, format!("{both} both target {kind} {target}, so neither scales it")));
            }
            Some(_) => {}
            None => known.push((key, kind, target)),
        }
    }
    texts
}
