//! The end of a run: what is left behind for reports.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use rayon::prelude::*;

use super::usable_types::unpriced_types;
use super::{ancillary_usage, control_plane, draining, no_effect, rollouts, unknown_load};
use crate::actors::{Autoscaler, Components, QueuePlan, Setup, Sim, inquiry};
use crate::catalog::{Price, PriceQuality};
use crate::cloud::billing::network::Traffic;
use crate::cloud::billing::{self, ManagedNodes, NonComputeUsage};
use crate::cloud::settings::SpotPrices;
use crate::cluster::NodeOrigin;
use crate::domain::hpa::HorizontalPodAutoscaler;
use crate::domain::words::counted;
use crate::domain::workload::ObjectName;
use crate::domain::{Currency, NodeId, Quantity, SimDuration, SimTime, Symbol, WorkloadId, well_known};
use crate::load::{RequestModel, WorkQueue};
use crate::world::record::{ControllerLoop, ControllerLoops, Record};
use nodecast_karpenter::release::Behaviour;
use nodecast_settings::Calibrated;
use nodecast_settings::lints::outcome;
use nodecast_settings::{Caveats, PolicyVariant, Scenario};
use nodecast_world::outcome::{
    About, InputHash, Objectives, Objects, Outcome, QueueSummary, ReplicaAutoscaler, RequestSummary, ResponseFigures,
    UNPRICED,
};

/// Brings everything up to the end of the run and gathers the outcome.
pub(super) fn conclude(
    mut components: Components<'_>,
    scenario: &Scenario,
    policy: &PolicyVariant,
    mut warnings: Caveats,
    event_hash: u64,
) -> Outcome {
    let end = SimTime::ZERO + components.sim.setup.scenario.duration;
    let duration = components.sim.setup.scenario.duration;
    let stuck = stuck_drains(&mut components, end);
    let stalled = rollouts::stalled(inquiry::stalled_rollouts(&components));
    let drifted = inquiry::drifted(&mut components, end);
    let over_limits = over_attach_limits(components.over_attach_limits());
    crate::actors::end(&mut components, end);
    let models = components.request_models(end);
    let answered: Vec<(WorkloadId, f64)> = models.iter().map(|(id, model)| (*id, model.completed())).collect();
    let short = short_of_cpu(&models, duration);
    let in_cores: Vec<WorkloadId> = in_cores(&models).collect();
    let requests = request_summaries(models);
    for (workload, seconds) in short {
        let name = components.sim.world.workload(workload).name;
        warnings.add(
            &outcome::CPU_SHORTFALL,
            format!(
                "{name}: its replicas were short of CPU for {seconds:.0} s. The missing work was dropped, \
            not done later, so real load may last longer"
            ),
        );
    }
    let in_cores: Vec<ObjectName> = in_cores.into_iter().map(|id| components.sim.world.workload(id).name).collect();
    let queues = queues(&mut components, end);
    let into_hour = SimDuration::from_secs(scenario.start.as_second().rem_euclid(3_600));
    let non_compute = NonComputeUsage {
        into_hour,
        traffic: Traffic {
            pulled: components.bytes_pulled(),
            from_ecr: components.bytes_from_ecr(),
            ..ancillary_usage::traffic(&components.sim, &answered, end)
        },
        disks: components.disks().to_vec(),
        extended: ancillary_usage::extended_support(&components.sim, end),
        eks: ancillary_usage::eks_orders(&components.sim),
        surplus: components.credits_surplus(end),
        managed: managed_nodes(&components.sim, policy),
        windows: windows_nodes(&components.sim),
        fargate: policy
            .fargate
            .is_some()
            .then(|| (components.fargate_pods().to_vec(), components.sim.fargate_prices())),
    };
    let bill = billing::bill(&mut components.sim.ec2, end, &non_compute);
    let surcharge = ancillary_usage::without_surcharge(&components.sim, &non_compute.extended);
    surcharge.into_iter().for_each(|text| warnings.add(&outcome::CONTROL_PLANE_SURCHARGE, text));
    ancillary_usage::support_dates(&components.sim, &non_compute.extended)
        .into_iter()
        .for_each(|text| warnings.add(&outcome::SUPPORT_DATES, text));
    ancillary_usage::capabilities_without_items(&components.sim, &non_compute.eks)
        .into_iter()
        .for_each(|text| warnings.add(&outcome::CAPABILITY_ITEMS, text));
    ancillary_usage::capability_prices(&components.sim, &non_compute.eks)
        .into_iter()
        .for_each(|text| warnings.add(&outcome::CAPABILITY_PRICES, text));
    ancillary_usage::not_billed(&components.sim, &bill)
        .into_iter()
        .for_each(|text| warnings.add(&outcome::PRICES_NOT_KNOWN, text));
    unknown_load::traffic(&components.sim, in_cores.len(), end)
        .into_iter()
        .for_each(|text| warnings.add(&outcome::TRAFFIC_NOT_KNOWN, text));
    unknown_load::smooth(scenario).into_iter().for_each(|text| warnings.add(&outcome::SMOOTH_LOAD, text));
    let about = about(&components.sim, scenario, policy);
    let static_pools: Vec<Symbol> =
        components.sim.setup.node_pools.iter().filter(|pool| pool.replicas.is_some()).map(|pool| pool.name).collect();
    let objects =
        Objects { loads_in_cores: in_cores, ..objects(components.sim.setup, components.replica_autoscalers(), policy) };
    let (limits, autoscalers) = (components.client_limits(), components.autoscaler_passes());
    let scheduler = components.scheduler_rate();
    let mut record = components.sim.world.into_record(end);
    record.controllers.limits = limits;
    record.controllers.autoscalers = autoscalers;
    record.controllers.scheduler = scheduler;
    record.drifted = drifted;
    record.unmet.iter().for_each(|(at, what)| warnings.add(&outcome::STEP_WITHOUT_EFFECT, format!("at {at}: {what}")));
    let (faults, warm_up) = (&scenario.ec2.cloud.faults, scenario.warm_up);
    no_effect::idle_faults(&record, faults, end).into_iter().for_each(|text| warnings.add(&outcome::IDLE_FAULT, text));
    no_effect::jobs_of_warm_up(&record, warm_up)
        .into_iter()
        .for_each(|text| warnings.add(&outcome::JOBS_IN_WARM_UP, text));
    pressed(&record).into_iter().for_each(|text| warnings.add(&outcome::NODES_OUT_OF_MEMORY, text));
    over_limits.into_iter().for_each(|text| warnings.add(&outcome::ATTACH_LIMIT, text));
    no_effect::refused_claims(&record, &static_pools)
        .into_iter()
        .for_each(|text| warnings.add(&outcome::STATIC_POOL_CLAIMS, text));
    stuck.into_iter().for_each(|text| warnings.add(&outcome::NODE_STILL_DRAINING, text));
    stalled.into_iter().for_each(|text| warnings.add(&outcome::ROLLOUT_STALLED, text));
    let busy = busy_controllers(&record.controllers, components.sim.setup.scenario.duration);
    busy.into_iter().for_each(|text| warnings.add(&outcome::BUSY_CONTROLLER, text));
    let held = control_plane::held(components.sim.setup, &record.controllers);
    held.into_iter().for_each(|text| warnings.add(&outcome::CLIENT_LIMIT, text));
    let instants: Vec<SimTime> = record.samples.iter().map(|sample| sample.at).collect();
    for (sample, spent) in record.samples.iter_mut().zip(billing::over_time(&bill, &instants, end)) {
        (sample.cost_rate, sample.cost) = (spent.rate, spent.amount);
    }
    for &(node, bytes) in &non_compute.traffic.pulled {
        record.nodes[node.index()].image_bytes = bytes;
    }
    Outcome { about, record, bill, requests, queues, objects, warnings, event_hash }
}

/// What keeps nodes from being drained.
fn stuck_drains(components: &mut Components<'_>, end: SimTime) -> Vec<String> {
    let mut kept = Vec::new();
    for (node, pool) in draining::long(&components.sim, end) {
        kept.extend(inquiry::kept(components, end, node).into_iter().map(|(pod, keeper)| (pool, pod, keeper)));
    }
    draining::stuck(&components.sim, end, kept)
}

/// A warning where pods were bound to nodes that do not attach their volumes.
fn over_attach_limits((pods, nodes): (usize, usize)) -> Option<String> {
    (pods > 0).then(|| {
        format!(
            "attach limit passed: kube-scheduler bound {} to {} before the EBS CSI driver there had reported the limit. Such a pod stays in \
             ContainerCreating (FailedAttachVolume) until a volume leaves its node, and no autoscaler acts on it. Put the startup taint \
             ebs.csi.aws.com/agent-not-ready on new nodes, or set `preventPodSchedulingIfMissing` of the CSIDriver (Kubernetes 1.37)",
            counted(pods as u64, "pod", "pods"),
            counted(nodes as u64, "node", "nodes")
        )
    })
}

/// A warning where nodes ran out of memory.
fn pressed(record: &Record) -> Option<String> {
    let first = record.pressed.first?;
    let (most, _) = record.pressed.evicted.iter().max_by_key(|(id, count)| (**count, Reverse(**id)))?;
    Some(format!(
        "nodes ran out of memory: kubelets evicted {} from {first} on (most from {}), because pods use more memory than they request",
        counted(record.pressed.count(), "pod", "pods"),
        record.workloads[most.index()].name
    ))
}

/// The nodes that AWS manages, with what it takes for that.
fn managed_nodes(sim: &Sim<'_>, policy: &PolicyVariant) -> ManagedNodes {
    let Some(auto_mode) = &policy.auto_mode else { return ManagedNodes::default() };
    let is_managed = |node: &NodeId| matches!(sim.world.node(*node).origin, NodeOrigin::NodePool(_));
    let nodes = sim.ec2.instances().iter().map(|instance| instance.node);
    ManagedNodes {
        shares: auto_mode.shares.clone(),
        nodes: nodes.filter(is_managed).collect(),
        epoch: sim.setup.scenario.start.as_second(),
    }
}

/// Nodes of instances that run Windows.
fn windows_nodes(sim: &Sim<'_>) -> BTreeSet<NodeId> {
    let has_windows = |node: &NodeId| sim.world.node(*node).labels.get(well_known::OS) == Some(well_known::WINDOWS);
    sim.ec2.instances().iter().map(|instance| instance.node).filter(has_windows).collect()
}

/// A warning for each loop that was busy for more than half of the time, or was cut short by a limit.
fn busy_controllers(loops: &ControllerLoops, duration: SimDuration) -> Vec<String> {
    let told = |controller_loop: ControllerLoop| {
        let facts = loops.facts(controller_loop);
        let share = facts.busy.as_secs_f64() / duration.as_secs_f64().max(1e-6);
        let longest = facts.longest.as_secs_f64();
        let cut = match facts.cut {
            0 => String::new(),
            1 => "; 1 hit its time limit".to_owned(),
            cut => format!("; {cut} hit their time limit"),
        };
        (share > 0.5 || facts.cut > 0).then(|| {
            format!(
                "{}: busy {:.0}% of the time, {} runs, longest {longest:.1} s{cut}",
                controller_loop.as_str(),
                share.min(1.0) * 100.0,
                facts.runs,
            )
        })
    };
    ControllerLoop::ALL.into_iter().filter_map(told).collect()
}

/// What was simulated, in the words of the report.
fn about(sim: &Sim<'_>, scenario: &Scenario, policy: &PolicyVariant) -> About {
    let setup = sim.setup;
    About {
        scenario: scenario.name.clone(),
        policy: policy.name.clone(),
        autoscaler: setup.autoscaler_name(),
        region: setup.region.name.to_string(),
        zones: setup.scenario.zones.clone(),
        start: scenario.start.to_string(),
        duration: setup.scenario.duration,
        warm_up: scenario.warm_up,
        seed: setup.seed,
        versions: setup.policy.versions,
        control_plane_tier: setup.policy.control_plane_tier,
        inputs: scenario
            .inputs
            .iter()
            .chain(&scenario.prices)
            .map(|input| InputHash { path: input.path.clone(), sha256: input.sha256.clone() })
            .collect(),
        price_date: price_date(sim),
        assumptions: scenario
            .assumptions
            .iter()
            .map(|assumption| assumption.text.clone())
            .chain(scenario.calibrated.iter().flat_map(Calibrated::assumptions))
            .chain(setup.scenario.ec2.cloud.assumptions())
            .chain(unpriced(setup))
            .chain(ancillary_usage::unsupported(sim))
            .chain(ancillary_usage::through_balancers(sim).filter(|_| !unknown_load::is_all_in_cores(scenario)))
            .chain(of_auto_mode(setup))
            .chain(of_fargate(sim))
            .collect(),
        costs_of_assumptions: scenario.assumptions.iter().map(|assumption| assumption.cost_of.clone()).collect(),
        cost_by: scenario.output.cost_by.clone(),
        calibration: scenario.calibrated.clone(),
        objectives: Objectives {
            unavailable_pod_minutes: scenario.objectives.unavailable_pod_minutes.map(Quantity::as_f64),
            at_zero: scenario.objectives.at_zero,
            at_max: scenario.objectives.at_max,
            pending_p95: scenario.objectives.pending_p95,
            pending_p99: scenario.objectives.pending_p99,
            waits: scenario.objectives.waits.clone(),
            request_p99: scenario.objectives.request_p99,
            cost: scenario.objectives.cost.map(crate::domain::Money::as_f64),
        },
    }
}

/// What was configured.
fn objects<'a>(
    setup: &Setup<'_>,
    autoscalers: impl Iterator<Item = (&'a HorizontalPodAutoscaler, WorkloadId)>,
    policy: &PolicyVariant,
) -> Objects {
    let karpenter = matches!(setup.autoscaler, Autoscaler::Karpenter(_));
    let autoscaler = |(spec, workload): (&HorizontalPodAutoscaler, WorkloadId)| ReplicaAutoscaler {
        name: ObjectName { namespace: spec.namespace, name: spec.name },
        workload,
        min_replicas: spec.min_replicas.unwrap_or(1),
        max_replicas: spec.max_replicas,
    };
    Objects {
        karpenter,
        cluster_autoscaler: matches!(setup.autoscaler, Autoscaler::ClusterAutoscaler(_)),
        interruption_queue: karpenter
            && policy.interruption_queue
            && Behaviour::for_release(setup.policy.versions.karpenter).reads_notices,
        node_pools: setup.node_pools.clone(),
        node_groups: setup.policy.manifests.node_groups.clone(),
        replica_autoscalers: autoscalers.map(autoscaler).collect(),
        loads_in_cores: Vec::new(),
    }
}

/// What is assumed of EKS Auto Mode.
fn of_auto_mode(setup: &Setup<'_>) -> Option<String> {
    let every = setup.policy.auto_mode.as_ref()?.images.every;
    Some(format!(
        "AWS publishes neither which Karpenter runs in EKS Auto Mode nor what its nodes reserve: the newest one that is reproduced, and Bottlerocket's formula; a new image replaces all nodes every {every}."
    ))
}

/// What is assumed of Fargate.
fn of_fargate(sim: &Sim<'_>) -> Option<String> {
    let settings = sim.setup.policy.fargate.as_ref()?;
    let region = &sim.setup.region;
    let priced = match sim.fargate_prices().quality() {
        PriceQuality::Assumed if region.currency == Currency::Usd => {
            format!("; its price in {} is assumed", region.name)
        }
        _ => String::new(),
    };
    let (start, rate) = (settings.start_time, settings.pull_rate / 1_000_000);
    Some(format!(
        "On Fargate a pod's machine takes {start} in the median, and images come in at {rate} MB a second{priced}."
    ))
}

/// Which types are left out because they have no price, in a line.
fn unpriced(setup: &Setup<'_>) -> Option<String> {
    let types = unpriced_types(setup);
    let first = types.first()?;
    Some(match types.len() {
        1 => format!("{first} is never launched, because it has no known price."),
        2 => format!("{first} and another type are never launched: no price of them is known."),
        more => format!("{first} and {} other types are never launched, because they have no known price.", more - 1),
    })
}

/// The dates of the prices of what was launched: On-Demand ones, whatever the capacity type, and those of the pools where Spot
/// was bought at the level of the price data.
fn price_date(sim: &Sim<'_>) -> String {
    let region = &sim.setup.region;
    let instances = || sim.ec2.instances().iter();
    let on_demand = instances().filter_map(|instance| region.instance_type(instance.pool.instance_type)?.on_demand);
    let spot = instances().filter(|instance| instance.pool.capacity_type == well_known::SPOT).filter_map(|instance| {
        let zone = region.zone_index(instance.pool.zone)?;
        region.instance_type(instance.pool.instance_type)?.spot(zone)
    });
    let follows_records = matches!(sim.setup.scenario.ec2.cloud.prices, SpotPrices::Replay(_));
    let [on_demand, spot] = [on_demand.collect::<Vec<Price>>(), spot.filter(|_| !follows_records).collect()]
        .map(|prices| prices.into_iter().map(|price| price.as_of.as_str()).collect::<BTreeSet<&str>>());
    match (on_demand.is_empty(), spot.is_empty()) {
        (true, true) => UNPRICED.to_owned(),
        (false, true) => dates(&on_demand),
        (true, false) => format!("Spot {}", dates(&spot)),
        (false, false) => format!("{} (On-Demand) and {} (Spot)", dates(&on_demand), dates(&spot)),
    }
}

/// Dates for a sentence: single ones up to three, else the first and the last. Of a date that is not known to the day,
/// `2025/2026`, the years stand behind the others.
fn dates(all: &BTreeSet<&str>) -> String {
    let (vague, exact): (Vec<&str>, Vec<&str>) = all.iter().copied().partition(|date| date.contains('/'));
    let vague: Vec<String> = vague.iter().map(|date| date.replace('/', " or ")).collect();
    let exact = match exact.as_slice() {
        [] => return vague.join(" and "),
        [first, _, _, .., last] => format!("{first} to {last}"),
        [first, second, third] => format!("{first}, {second} and {third}"),
        few => few.join(" and "),
    };
    if vague.is_empty() { exact } else { format!("{exact} or, of some types, {}", vague.join(" and ")) }
}

/// The share of a run for which a load in cores may lack CPU without a warning.
const SHORT_SHARE: f64 = 0.01;

/// The loads in cores that their replicas could not do for long, and for how many seconds.
fn short_of_cpu(models: &[(WorkloadId, &RequestModel)], duration: SimDuration) -> Vec<(WorkloadId, f64)> {
    let most = SHORT_SHARE * duration.as_secs_f64();
    let seconds = models.iter().filter(|(_, model)| model.tally().in_cores);
    seconds.map(|(workload, model)| (*workload, model.tally().throttled_seconds)).filter(|pair| pair.1 > most).collect()
}

/// The workloads whose load was in cores and never in requests.
fn in_cores<'m>(models: &'m [(WorkloadId, &RequestModel)]) -> impl Iterator<Item = WorkloadId> + 'm {
    let counts_none =
        |(_, model): &&(WorkloadId, &RequestModel)| model.tally().in_cores && model.tally().first.is_none();
    models.iter().filter(counts_none).map(|(workload, _)| *workload)
}

/// How the requests to each workload fared. Each summary is made from its own model alone, and filling a histogram takes long:
/// they are made side by side, unless whole runs are, among which this one would have to wait.
fn request_summaries(models: Vec<(WorkloadId, &RequestModel)>) -> Vec<RequestSummary> {
    let asked = |(_, model): &(WorkloadId, &RequestModel)| model.tally().first.is_some() || !model.tally().in_cores;
    let models: Vec<(WorkloadId, &RequestModel)> = models.into_iter().filter(asked).collect();
    let summary = |(workload, model)| request_summary(workload, model);
    match rayon::current_thread_index() {
        None => models.into_par_iter().map(summary).collect(),
        Some(_) => models.into_iter().map(summary).collect(),
    }
}

/// How the requests to one workload fared.
fn request_summary(workload: WorkloadId, model: &RequestModel) -> RequestSummary {
    let tally = model.tally();
    let (first, last) = tally.first.map_or((SimTime::ZERO, SimTime::ZERO), |first| (first, tally.last.max(first)));
    let histogram = model.histogram();
    RequestSummary {
        workload,
        completed: tally.completed,
        timed_out: tally.timed_out,
        dropped: tally.dropped,
        unanswered: model.unanswered(),
        first,
        last,
        response: (histogram.total() > 0.0).then(|| ResponseFigures {
            mean: histogram.mean_seconds(),
            p50: histogram.quantile_seconds(0.50),
            p95: histogram.quantile_seconds(0.95),
            p99: histogram.quantile_seconds(0.99),
        }),
        throttled_seconds: tally.throttled_seconds,
        overloaded: tally.overloaded,
    }
}

/// How the messages of every queue fared.
fn queues(components: &mut Components<'_>, end: SimTime) -> Vec<QueueSummary> {
    let setup = components.sim.setup;
    let summary = |(plan, queue): (&QueuePlan<'_>, &WorkQueue)| {
        let history = queue.history();
        QueueSummary {
            name: plan.spec.name.clone(),
            kind: plan.spec.kind.system,
            workload: plan.spec.workload,
            arrived: history.arrived,
            processed: history.processed,
            waiting_at_end: queue.waiting(),
            most_waiting: history.most_waiting,
            most_waiting_at: history.most_waiting_at,
            drained: history.drained_at,
            mean_wait_seconds: history.mean_wait_seconds(),
            longest_wait: history.longest_wait,
        }
    };
    setup.queues.iter().zip(components.work_queues(end)).map(summary).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::dates;

    #[test]
    fn dates_of_prices_are_readable() {
        let of = |all: &[&str]| dates(&all.iter().copied().collect::<BTreeSet<&str>>());
        assert_eq!(of(&["2026-07-20"]), "2026-07-20");
        assert_eq!(of(&["2026-07-20", "2025/2026"]), "2026-07-20 or, of some types, 2025 or 2026");
        assert_eq!(of(&["2026-07-20", "2021-06-09"]), "2021-06-09 and 2026-07-20");
        assert_eq!(of(&["2021", "2022", "2023"]), "2021, 2022 and 2023");
        assert_eq!(of(&["2021", "2022", "2023", "2024"]), "2021 to 2024");
        assert_eq!(of(&["2025/2026"]), "2025 or 2026");
    }
}
