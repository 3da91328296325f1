//! From a scenario and one of its policies to the setup of one simulation, with warnings about what is left out.

mod auto_mode;
mod commitments;
mod cpu_lints;
mod devices;
mod ebs_zones;
mod fields;
mod group_updates;
mod initial;
mod late_objects;
mod metrics;
mod node_groups;
mod overlays_and_buffers;
mod pools;
mod replicas;
mod selected;
mod selector_lints;
mod sizes;
mod startup_taints;
mod storage;
mod unloaded;
mod unsupported_fields;
mod usage;
mod vertical;
mod zone_ids;

use std::collections::BTreeSet;
use std::sync::Arc;

use super::balancers;
use super::forecast::{self, RunSizeEstimate};
use crate::actors::{
    Action, Autoscaler, ClusterAutoscalerSettings, InitialPlan, LoadPart, LoadPlan, LoadStep, LoadSteps, LoadUnit,
    QueuePlan, Setup, Step,
};
use crate::catalog::{Catalog, CatalogError};
use crate::domain::GroupRanks;
use crate::domain::NodeGroup;
use crate::domain::node_group::WarmPoolState;
use crate::domain::pod::OwnerKind;
use crate::domain::words::counted;
use crate::domain::workload::ObjectName;
use crate::domain::{Check, SimDuration, SimTime, Symbol};
use crate::engine::Streams;
use crate::load::{Curve, Source, Spacing, Uncertainty};
use crate::manifests::{Manifests, PodObject};
use nodecast_karpenter::instance_types::{complete_classes, price_list_of};
use nodecast_karpenter::packing::PackerKind;
use nodecast_karpenter::release::Behaviour;
use nodecast_scheduler::SchedulerConfig;
use nodecast_settings::lints::setup;
use nodecast_settings::{Caveats, Detail, LoadSpec, OpenRequests, PolicyVariant, Requests, Scenario};

/// Time from an order of another tier of the control plane until it applies: assumed. AWS speaks of several minutes.
const TIER_CHANGE: SimDuration = SimDuration::from_secs(300);

/// A simulation's setup, and what could make its answer differ from the real cluster's.
#[derive(Clone, Debug)]
pub struct Resolved<'s> {
    /// What the simulation is told.
    pub setup: Setup<'s>,
    /// What is left out.
    pub warnings: Caveats,
}

/// Resolves one policy of a scenario for one seed.
///
/// # Errors
/// If the catalog has no prices for the region.
pub fn resolve<'s>(
    scenario: &'s Scenario,
    policy: &'s PolicyVariant,
    catalog: &Catalog,
    seed: u64,
) -> Result<Resolved<'s>, CatalogError> {
    let region = catalog.region(scenario.region.as_str())?;
    let price_list = catalog.region(price_list_of(policy.versions.karpenter, scenario.region).as_str())?;
    let manifests = &policy.manifests;
    let karpenter = policy.autoscaler.is_karpenter();
    let mut warnings = scenario.caveats();
    let node_pools = if karpenter { pools::at_start(scenario, policy, &mut warnings) } else { Vec::new() };
    let (sample_interval, thinned) = forecast::sample_interval(scenario, policy);
    let initial = initial::initial(scenario, policy, &region, &mut warnings);
    let mut setup = Setup {
        scenario,
        policy,
        region,
        price_list,
        check: Check::AsBuilt,
        keeps_meters: true,
        seed,
        market_seed: seed,
        autoscaler: autoscaler(policy),
        scheduler: scheduler(policy),
        node_classes: complete_classes(pools::classes(scenario, policy, &node_pools), &node_pools, &scenario.zones),
        node_pools,
        node_overlays: overlays_and_buffers::overlays(scenario, policy, SimTime::ZERO),
        buffers: overlays_and_buffers::buffers(scenario, policy, SimTime::ZERO),
        storage: storage::storage(scenario, manifests, policy.versions.kubernetes, &mut warnings),
        prometheus: metrics::prometheus_plan(scenario, manifests),
        queues: queues(scenario, Streams::new(seed)),
        loads: loads(&scenario.load, scenario.duration, Streams::new(seed)),
        usages: usage::plans(scenario, Streams::new(seed)),
        timeline: timeline(scenario, policy, initial.as_ref(), &mut warnings),
        initial,
        selecting_labels: BTreeSet::new(),
        sample_interval,
    };
    setup.selecting_labels = selector_lints::keys(&setup);
    if seed != scenario.seed {
        setup.set_check(Check::Never);
    }
    let about_size = thinned.into_iter().chain(RunSizeEstimate::new(scenario, policy, sample_interval).warning());
    about_size.for_each(|text| warnings.add(&setup::LARGE_RUN, text));
    warn_about_objects(scenario, policy, &mut warnings);
    warn_about_gates(scenario, manifests, &mut warnings);
    fields::warn(&setup, &mut warnings);
    unsupported_fields::warn(&setup, &mut warnings);
    warn_about_named_nodes(&setup, &mut warnings);
    selector_lints::warn(&setup, &mut warnings);
    selected::warn(&setup, &mut warnings);
    metrics::warn(&setup, &mut warnings);
    unloaded::warn(&setup, &mut warnings);
    usage::warn(&setup, &mut warnings);
    vertical::warn(&setup, &mut warnings);
    warn_about_times(scenario, &mut warnings);
    warn_about_patience(&setup.loads, &mut warnings);
    cpu_lints::warn(&setup, &mut warnings);
    warn_about_reservations(&setup, &mut warnings);
    pools::warn_about_licences(&setup.node_classes, policy, &mut warnings);
    pools::warn_about_tenancy(&setup, &mut warnings);
    pools::warn_about_images(&setup, &mut warnings);
    pools::warn_about_user_data(&setup, &mut warnings);
    startup_taints::warn(&setup, &mut warnings);
    auto_mode::warn(&setup, &mut warnings);
    overlays_and_buffers::warn(&setup, &mut warnings);
    sizes::warn(&setup, &mut warnings);
    devices::warn(&setup, &mut warnings);
    zone_ids::warn(&setup, &mut warnings);
    ebs_zones::warn(&setup, &mut warnings);
    warn_about_balancers(&setup, &mut warnings);
    group_updates::warn(&setup, &mut warnings);
    warn_about_warm_reservations(&setup, &mut warnings);
    commitments::warn(&setup, &mut warnings);
    Ok(Resolved { setup, warnings })
}

/// Who adds and removes nodes, with its settings.
fn autoscaler(policy: &PolicyVariant) -> Autoscaler {
    match (policy.autoscaler, &policy.flags) {
        (nodecast_settings::Autoscaler::Karpenter | nodecast_settings::Autoscaler::EksAutoMode, _) => {
            let (queue, packer, gates) = (policy.interruption_queue, policy.packer, policy.feature_gates);
            Autoscaler::Karpenter(policy.karpenter_options.settings(queue, packer, gates))
        }
        (nodecast_settings::Autoscaler::ClusterAutoscaler, Some(flags)) => {
            Autoscaler::ClusterAutoscaler(Box::new(ClusterAutoscalerSettings {
                flags: Arc::clone(flags),
                ranks: group_ranks(&policy.manifests),
            }))
        }
        (nodecast_settings::Autoscaler::ClusterAutoscaler | nodecast_settings::Autoscaler::None, _) => {
            Autoscaler::Static
        }
    }
}

/// The scheduler's settings.
fn scheduler(policy: &PolicyVariant) -> SchedulerConfig {
    let stated = policy.manifests.scheduler.clone().unwrap_or_default();
    SchedulerConfig {
        version: policy.versions.kubernetes,
        percentage_of_nodes_to_score: stated.percentage_of_nodes_to_score,
        fit: stated.fit,
        check: Check::AsBuilt,
    }
}

/// The ranks that the ConfigMap of the expander `priority` gives to groups.
fn group_ranks(manifests: &Manifests) -> Option<GroupRanks> {
    let stated = manifests.group_ranks.as_ref()?;
    let pairs = stated.iter().flat_map(|(rank, names)| names.iter().map(|name| (*rank, name.as_str())));
    GroupRanks::new(pairs).ok()
}

fn warn_about_objects(scenario: &Scenario, policy: &PolicyVariant, warnings: &mut Caveats) {
    let manifests = &policy.manifests;
    let controlled = manifests.pods.iter().filter(|pod| !is_bare(pod)).count();
    if controlled > 0 {
        warnings.add(
            &setup::PODS_IGNORED,
            format!(
                "{} ignored: completed, or owned by another object; add the owner to the manifests to create its pods",
                counted(controlled as u64, "Pod is", "Pods are")
            ),
        );
    }
    if acts_twice(policy) {
        let release = policy.versions.karpenter;
        warnings.add(&setup::INTERRUPTIONS_HANDLED_TWICE, format!(
            "policy {}: Karpenter {release} and the Node Termination Handler both act on interruption notices; set `interruption_queue: false` \
             for Karpenter, or remove the handler",
            policy.name
        ));
    }
    if policy.packer == PackerKind::CostAware {
        warnings.add(&setup::COST_AWARE_PACKER, format!(
            "policy {}: no Karpenter release packs this way. The cost-aware packer minimises the cost of each batch, not of the whole run: full \
             nodes leave no room for the next pods. Compare over many seeds before you trust a difference",
            policy.name
        ));
    }
    let later = scenario.timeline.iter().filter_map(|step| step.action.applied());
    let has_pools = std::iter::once(manifests).chain(later).any(|once| !once.node_pools.is_empty());
    if policy.autoscaler == nodecast_settings::Autoscaler::None && has_pools {
        warnings.add(
            &setup::NO_NODE_AUTOSCALER,
            format!("policy {}: NodePools are ignored (no node autoscaler), so no nodes are launched", policy.name),
        );
    }
    if policy.autoscaler == nodecast_settings::Autoscaler::ClusterAutoscaler && has_pools {
        warnings.add(
            &setup::NODE_POOLS_IGNORED,
            format!("policy {}: NodePools are ignored; Cluster Autoscaler uses node groups", policy.name),
        );
    }
    if let Some(flags) = &policy.flags {
        node_groups::warn(manifests, flags, warnings);
    }
}

/// Pods that nobody lets go to the scheduler.
fn warn_about_gates(scenario: &Scenario, manifests: &Manifests, warnings: &mut Caveats) {
    let gated = storage::pods(scenario, manifests).iter().filter(|(_, spec)| !spec.scheduling_gates.is_empty()).count();
    if gated > 0 {
        warnings.add(&setup::SCHEDULING_GATES, format!(
            "{} `schedulingGates`, which the simulation never removes: these pods stay pending and no nodes are launched for them. Remove the \
             gates to simulate the pods once they are released",
            counted(gated as u64, "pod template has", "pod templates have")
        ));
    }
}

/// Pods that name a node which is not there from the start: those that come later are called otherwise.
fn warn_about_named_nodes(setup: &Setup<'_>, warnings: &mut Caveats) {
    let nodes = setup.initial.iter().flat_map(|initial| &initial.nodes);
    let there: BTreeSet<&str> = nodes.map(|node| node.found.node.name.as_str()).collect();
    let pods = storage::pods(setup.scenario, &setup.policy.manifests);
    let named = pods.iter().filter_map(|(_, spec)| spec.node_name).filter(|name| !there.contains(name.as_str()));
    let named: Vec<Symbol> = named.collect();
    if let Some(first) = named.first() {
        warnings.add(&setup::MISSING_NODE_NAME, format!(
            "{} a missing node (`nodeName: {first}`): these pods bypass the scheduler and stay pending. A real cluster deletes and recreates them \
             in a loop. Remove `nodeName`, or add the node to the manifests",
            counted(named.len() as u64, "pod template names", "pod templates name")
        ));
    }
}

/// Whether Karpenter reads interruption notices although a termination handler does.
fn acts_twice(policy: &PolicyVariant) -> bool {
    policy.autoscaler.is_karpenter()
        && policy.termination_handler.is_some()
        && policy.interruption_queue
        && Behaviour::for_release(policy.versions.karpenter).reads_notices
}

/// A node class that selects capacity reservations finds those of the scenario only, and only where the release and its gate do so.
fn warn_about_reservations(setup: &Setup<'_>, warnings: &mut Caveats) {
    let (version, gates) = (setup.policy.versions.karpenter, setup.policy.feature_gates);
    let behaviour = Behaviour::for_release(version);
    if setup.policy.autoscaler.is_karpenter()
        && gates.reserved_capacity.is_some()
        && behaviour.reserved_capacity_gate.is_none()
    {
        warnings.add(&setup::OPTION_OF_LATER_KARPENTER, format!(
            "Karpenter {version} does not have the feature gate `reserved_capacity`, which came with v1.3: it has no effect"
        ));
    }
    let uses = behaviour.uses_reservations(gates);
    for class in setup.node_classes.iter().filter(|class| !class.capacity_reservations.is_empty()) {
        let name = class.name;
        if !uses {
            warnings.add(&setup::RESERVATIONS_UNUSED, format!(
                "EC2NodeClass {name} selects capacity reservations, and Karpenter {version} uses none (feature gate \
                 `reserved_capacity`): EC2 fills open reservations that match with On-Demand nodes, and targeted ones stay unused"
            ));
        } else if setup.scenario.ec2.cloud.reservations.is_empty() {
            warnings.add(
                &setup::RESERVATIONS_MISSING,
                format!("EC2NodeClass {name} selects capacity reservations, but `ec2.capacity_reservations` is empty"),
            );
        }
    }
}

/// Instances that run in a warm pool do not fill capacity reservations here. Stopped ones do not on AWS either.
fn warn_about_warm_reservations(setup: &Setup<'_>, warnings: &mut Caveats) {
    let reservations = &setup.scenario.ec2.cloud.reservations;
    let is_running = |group: &&NodeGroup| group.warm_pool.is_some_and(|pool| pool.state == WarmPoolState::Running);
    for group in setup.policy.manifests.node_groups.iter().filter(is_running) {
        let reserved =
            reservations.iter().find(|reservation| group.instance_types.contains(&reservation.instance_type));
        if let Some(reservation) = reserved {
            let (group, id, of) = (group.name, reservation.id, reservation.instance_type);
            warnings.add(
                &setup::WARM_POOL_RESERVATION,
                format!("node group {group}: {of} in its warm pool does not use capacity reservation {id}, so both are billed"),
            );
        }
    }
}

/// A load balancer that stands is turned into no other kind.
fn warn_about_balancers(setup: &Setup<'_>, warnings: &mut Caveats) {
    if setup.scenario.ec2.cloud.billing.network.load_balancers.is_none_or(|balancer| balancer.count.is_some()) {
        return;
    }
    for (at, name) in balancers::unsupported_lb_requests(setup.scenario, setup.policy) {
        warnings.add(
            &setup::BALANCER_KIND,
            format!(
                "timeline at {at}: the Service {name} keeps the kind of load balancer that it has: what its annotation \
             `service.beta.kubernetes.io/aws-load-balancer-type` says counts when the load balancer is made"
            ),
        );
    }
}

/// Of two loads that begin at once only the later one counts.
fn warn_about_times(scenario: &Scenario, warnings: &mut Caveats) {
    for (position, load) in scenario.load.iter().enumerate() {
        if scenario.load[..position].iter().any(|other| other.workload == load.workload && other.at == load.at) {
            warnings.add(
                &setup::LOADS_OVERLAP,
                format!("two loads on {} start at {}: only the later entry is used", load.workload, load.at),
            );
        }
    }
}

/// As a fluid the clients of a closed loop wait for ever.
fn warn_about_patience(loads: &[LoadPlan], warnings: &mut Caveats) {
    for plan in loads.iter().filter(|plan| !plan.exact) {
        let closed = |step: &LoadStep| matches!(step.source, Source::Closed { .. });
        if plan.steps.iter().filter(closed).any(|step| plan.may_fail(step)) {
            let workload = plan.workload;
            warnings.add(&setup::CLOSED_LOOP_FLUID, format!(
                "load on {workload}: as a fluid the clients of a `closed_loop` neither time out (`timeout`) nor are rejected \
                 (`queue_per_replica`); set `detail: exact` next to `requests` to simulate both"
            ));
        }
    }
}

/// What happens from outside: the objects that exist from the start, what is there with them, then the scenario's timeline.
fn timeline(
    scenario: &Scenario,
    policy: &PolicyVariant,
    initial: Option<&InitialPlan<'_>>,
    warnings: &mut Caveats,
) -> Vec<Step> {
    let mut steps = Vec::new();
    apply(SimTime::ZERO, &policy.manifests, scenario, &mut steps);
    let updates = policy.manifests.node_groups.iter().filter_map(|group| group.updated_at_start);
    steps.extend(updates.map(|update| Step { at: SimTime::ZERO, action: Action::UpdateVersion(update) }));
    if let Some(initial) = initial {
        // Those that others have made are taken up with them.
        let made: BTreeSet<ObjectName> = initial.jobs.iter().map(|job| job.name).collect();
        steps.retain(|step| !matches!(&step.action, Action::RunJob(job) if made.contains(&job.name)));
        steps.push(Step { at: SimTime::ZERO, action: Action::TakeUp });
    }
    for (place, timed) in scenario.timeline.iter().enumerate() {
        match &timed.action {
            nodecast_settings::Action::Scale { workload, replicas } => {
                steps.push(Step { at: timed.at, action: Action::Scale { workload: *workload, replicas: *replicas } });
            }
            nodecast_settings::Action::ScaleGroup { group, desired } => {
                steps.push(Step { at: timed.at, action: Action::ScaleGroup { group: *group, desired: *desired } });
            }
            nodecast_settings::Action::UpdateGroup(update) => {
                steps.push(Step { at: timed.at, action: Action::UpdateVersion(*update) });
            }
            nodecast_settings::Action::RefreshGroup(refresh) => {
                steps.push(Step { at: timed.at, action: Action::RefreshGroup(refresh.clone()) });
            }
            nodecast_settings::Action::Cordon(nodes) => {
                steps.push(Step { at: timed.at, action: Action::Cordon(nodes.clone()) });
            }
            nodecast_settings::Action::Uncordon(nodes) => {
                steps.push(Step { at: timed.at, action: Action::Uncordon(nodes.clone()) });
            }
            nodecast_settings::Action::Drain { nodes, force, timeout } => {
                let action = Action::Drain { nodes: nodes.clone(), force: *force, timeout: *timeout };
                steps.push(Step { at: timed.at, action });
            }
            nodecast_settings::Action::Delete { kind, namespace, which } => {
                late_objects::warn_of_deleted(timed.at, *kind, which, warnings);
                let action = Action::Delete { kind: *kind, namespace: *namespace, which: which.clone() };
                steps.push(Step { at: timed.at, action });
            }
            nodecast_settings::Action::UpgradeControlPlane(release) => {
                steps.push(Step { at: timed.at, action: Action::UpgradeControlPlane(*release) });
            }
            nodecast_settings::Action::ChangeControlPlaneTier(tier) => {
                let at = timed.at + TIER_CHANGE;
                steps.push(Step { at, action: Action::ChangeControlPlaneTier(*tier) });
            }
            nodecast_settings::Action::Apply(later) => {
                // First what pods are launched for, then the pods.
                let earlier = &scenario.timeline[..place];
                steps.extend(pools::updated(timed.at, later, (earlier, policy), warnings));
                steps.extend(pools::replaced(timed.at, later, scenario, policy));
                steps.extend(overlays_and_buffers::replaced(timed.at, later, scenario, policy));
                steps.extend(late_objects::applied(timed.at, later, (scenario, policy), warnings));
                apply(timed.at, &auto_mode::without_agents(later, policy), scenario, &mut steps);
            }
        }
    }
    steps.iter_mut().for_each(|step| unsupported_fields::take_out(step, policy.versions.kubernetes));
    steps.sort_by_key(|step| step.at);
    steps
}

/// Whether nothing controls the pod, and it has not ended.
fn is_bare(pod: &PodObject) -> bool {
    pod.controller.is_none() && pod.spec.owner == OwnerKind::None && !pod.phase.is_terminal()
}

fn apply(at: SimTime, manifests: &Manifests, scenario: &Scenario, steps: &mut Vec<Step>) {
    let daemons = manifests.daemon_sets.iter().cloned().map(Action::RunDaemon);
    let deployments = manifests.deployments.iter().cloned().map(Action::Deploy);
    let stateful = manifests.stateful_sets.iter().map(|set| Action::DeployStateful(Box::new(set.clone())));
    let jobs_to_end = manifests.jobs.iter().map(|job| Action::RunJob(Box::new(job.clone())));
    let cron_jobs = manifests.cron_jobs.iter().map(|cron| Action::RunCronJob(Box::new(cron.clone())));
    let pods = manifests.pods.iter().filter(|pod| is_bare(pod)).map(|pod| Action::RunPod(Box::new(pod.clone())));
    let autoscalers = manifests.autoscalers.iter().cloned().map(Action::Autoscale);
    let vertical = manifests.vertical_autoscalers.iter();
    let vertical = vertical.map(|vertical| Action::AutoscaleVertically(Box::new(vertical.clone())));
    let jobs = manifests.scaled_jobs.iter().map(|job| Action::ScaleJobs(Box::new(metrics::job_plan(job, scenario))));
    let scaled = manifests
        .scaled_objects
        .iter()
        .map(|object| Action::ScaleObject(Box::new(metrics::scaling_plan(object, scenario))));
    steps.extend(
        daemons
            .chain(deployments)
            .chain(stateful)
            .chain(jobs_to_end)
            .chain(cron_jobs)
            .chain(pods)
            .chain(autoscalers)
            .chain(scaled)
            .chain(jobs)
            .chain(vertical)
            .map(|action| Step { at, action }),
    );
}

/// The loads by workload. From its start on an entry takes the place of an earlier one on the same workload.
fn loads(specs: &[LoadSpec], duration: SimDuration, streams: Streams) -> Vec<LoadPlan> {
    let mut plans: Vec<LoadPlan> = Vec::new();
    let mut ordered: Vec<&LoadSpec> = specs.iter().collect();
    ordered.sort_by_key(|spec| spec.at);
    for (ordinal, spec) in ordered.into_iter().enumerate() {
        let plan = match plans.iter_mut().position(|plan| plan.workload == spec.workload) {
            Some(known) => &mut plans[known],
            None => {
                let workload = spec.workload;
                plans.push(LoadPlan { workload, exact: false, parts: Vec::new(), steps: LoadSteps::default() });
                let last = plans.len() - 1;
                &mut plans[last]
            }
        };
        plan.steps.end_at(spec.at);
        let end = (SimTime::ZERO + duration).min(spec.until.unwrap_or(SimTime::FAR_FUTURE));
        let part = plan.parts.len() as u32;
        plan.parts.push(LoadPart { service: spec.service, spacing: spacing(spec) });
        match &spec.requests {
            &Requests::ClosedLoop { clients, requests, think_time } => {
                let source = Source::Closed { clients, remaining: requests as f64, think_time };
                plan.steps.push(LoadStep { at: spec.at, source, part });
            }
            Requests::Open(open) | Requests::Cpu(open) => {
                let unit = if matches!(spec.requests, Requests::Cpu(_)) { LoadUnit::Cores } else { LoadUnit::Requests };
                let entity = format!("{} {ordinal}", spec.workload);
                let curve = demand(open, end.saturating_since(spec.at), streams, &entity);
                plan.steps.follow(curve, unit, (spec.at, end), part);
            }
        }
        if let Some(until) = spec.until {
            plan.steps.push(LoadStep { at: until, source: Source::Idle, part });
        }
    }
    for plan in &mut plans {
        plan.exact = is_exact(plan, specs, duration);
    }
    plans
}

/// The queues, each with the arrivals that one seed meets.
fn queues(scenario: &Scenario, streams: Streams) -> Vec<QueuePlan<'_>> {
    let mut plans = Vec::new();
    for spec in &scenario.queues {
        let entity = format!("queue {}", spec.name);
        let curve = spec.messages.as_ref().map(|open| demand(open, scenario.duration, streams, &entity));
        let steps = curve.iter().flat_map(|curve| curve.steps_from_start());
        plans.push(QueuePlan { spec, arrivals: steps.map(|step| (SimTime::ZERO + step.from, step.rate)).collect() });
    }
    plans
}

/// Requests per second up to which they are simulated one by one unless the scenario says otherwise.
const EXACT_RATE_MAX: f64 = 10.0;
/// Requests up to which they are simulated one by one.
const EXACT_REQUESTS_MAX: f64 = 1e6;

/// Whether the requests to a workload are simulated one by one: as the scenario says, otherwise where they are few, those of a
/// closed loop only where its clients may give up or be refused, which a fluid's do not. CPU in use is a fluid, and with it all
/// that the workload is asked for at other times.
fn is_exact(plan: &LoadPlan, specs: &[LoadSpec], duration: SimDuration) -> bool {
    let wishes = || specs.iter().filter(|spec| spec.workload == plan.workload).map(|spec| spec.detail);
    if wishes().any(|detail| detail == Detail::Fluid) {
        return false;
    }
    let has_cores = plan.steps.iter().any(|step| matches!(step.source, Source::Cpu { .. }));
    if !has_cores && wishes().any(|detail| detail == Detail::Exact) {
        return true;
    }
    let ends = plan.steps.iter().skip(1).map(|step| step.at).chain([SimTime::ZERO + duration]);
    let mut requests = 0.0;
    for (step, end) in plan.steps.iter().zip(ends) {
        match step.source {
            Source::Open { rate } if rate <= EXACT_RATE_MAX => {
                requests += rate * end.saturating_since(step.at).as_secs_f64();
            }
            Source::Closed { remaining, .. } if plan.may_fail(step) => requests += remaining,
            Source::Idle => {}
            Source::Open { .. } | Source::Closed { .. } | Source::Cpu { .. } => return false,
        }
    }
    requests <= EXACT_REQUESTS_MAX
}

/// How the requests of a load are spaced.
fn spacing(spec: &LoadSpec) -> Spacing {
    match &spec.requests {
        Requests::Open(OpenRequests { arrivals: Some(arrivals), .. }) => {
            Spacing::Listed(arrivals.iter().map(|&after| spec.at + after).collect())
        }
        Requests::Open(OpenRequests { even: true, .. }) => Spacing::Even,
        Requests::Open(_) | Requests::ClosedLoop { .. } | Requests::Cpu(_) => Spacing::Poisson,
    }
}

/// The demand that one seed meets.
fn demand(open: &OpenRequests, length: SimDuration, streams: Streams, entity: &str) -> Arc<Curve> {
    if open.uncertainty == Uncertainty::default() {
        return Arc::clone(&open.curve);
    }
    let (mut whole, mut noise) = (streams.stream("load-factor", entity), streams.stream("load-noise", entity));
    Arc::new((*open.curve).clone().varied(open.uncertainty, length, &mut whole, &mut noise))
}
