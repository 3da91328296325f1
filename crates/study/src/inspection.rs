//! What a scenario holds, policy by policy, as far as can be said before anything is simulated: every file is read and every
//! policy set up as a run would.

use serde::Serialize;

use crate::catalog::{Catalog, CatalogError};
use crate::cluster::WorkloadKind;
use crate::domain::{SimDuration, SimTime, WorkloadId};
use crate::report::summary::InputSummary;
use crate::scenario::manifests::Manifests;
use crate::scenario::{Caveats, PolicyVariant, Scenario};
use crate::simulation::{Resolved, RunSizeEstimate, Simulation, resolve};
use crate::world::World;

/// By when everything has been applied that is there from the start; autoscalers have not acted by then.
const START: SimDuration = SimDuration::from_millis(500);

/// What a scenario holds.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct Inspection {
    /// Its name.
    pub name: String,
    /// The AWS region.
    pub region: String,
    /// Zones in use.
    pub zones: Vec<String>,
    /// Calendar time at which simulated time is zero (RFC 3339).
    pub start: String,
    /// How long the run is.
    pub duration_seconds: f64,
    /// The first seed.
    pub seed: u64,
    /// How many seeds a comparison uses.
    pub replications: u32,
    /// Entries of `load`, those of the timeline included.
    pub loads: usize,
    /// Queues.
    pub queues: usize,
    /// Steps of the timeline, load left out.
    pub timeline_steps: usize,
    /// Faults.
    pub faults: usize,
    /// The files read, the scenario itself first.
    pub inputs: Vec<InputSummary>,
    /// The policies, in the scenario's order.
    pub policies: Vec<PolicyInspection>,
}

/// What one policy holds.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct PolicyInspection {
    /// Its name.
    pub name: String,
    /// What adds and removes nodes, with its release.
    pub autoscaler: String,
    /// The release of Kubernetes.
    pub kubernetes: String,
    /// NodePools and Provisioners.
    pub node_pools: usize,
    /// Node groups.
    pub node_groups: usize,
    /// Deployments, StatefulSets, Jobs, CronJobs, ScaledJobs and pods of no workload.
    pub workloads: usize,
    /// DaemonSets.
    pub daemon_sets: usize,
    /// HorizontalPodAutoscalers and ScaledObjects.
    pub replica_autoscalers: usize,
    /// Pods that the manifests and the dump ask for at the start, those of DaemonSets left out.
    pub pods_at_start: u32,
    /// Estimated size of a run.
    pub expected: RunSizeEstimate,
}

/// Sets up every policy of `scenario`; with it what is left out, each warning once.
///
/// # Errors
/// If the catalog lacks prices that a policy needs.
pub fn inspect(scenario: &Scenario, catalog: &Catalog) -> Result<(Inspection, Caveats), CatalogError> {
    let mut warnings = scenario.caveats();
    let mut policies = Vec::new();
    for policy in &scenario.policies {
        let resolved = resolve(scenario, policy, catalog, scenario.seed)?;
        policies.push(of_policy(policy, &resolved));
        warnings.merge(&resolved.warnings);
    }
    let inspection = Inspection {
        name: scenario.name.clone(),
        region: scenario.region.to_string(),
        zones: scenario.zones.iter().map(ToString::to_string).collect(),
        start: scenario.start.to_string(),
        duration_seconds: scenario.duration.as_secs_f64(),
        seed: scenario.seed,
        replications: scenario.replications,
        loads: scenario.load.len(),
        queues: scenario.queues.len(),
        timeline_steps: scenario.timeline.len(),
        faults: scenario.ec2.cloud.faults.len(),
        inputs: inputs(scenario),
        policies,
    };
    Ok((inspection, warnings))
}

/// The files that a scenario consists of, the scenario itself first, and the tables of prices that are not the built-in ones.
pub fn inputs(scenario: &Scenario) -> Vec<InputSummary> {
    scenario.inputs.iter().chain(&scenario.prices).map(InputSummary::from).collect()
}

/// Warnings of [`inspect`] alone, without a rehearsal of any run.
///
/// # Errors
/// If the catalog lacks prices that a policy needs.
pub fn caveats(scenario: &Scenario, catalog: &Catalog) -> Result<Caveats, CatalogError> {
    let mut warnings = scenario.caveats();
    for policy in &scenario.policies {
        warnings.merge(&resolve(scenario, policy, catalog, scenario.seed)?.warnings);
    }
    Ok(warnings)
}

fn of_policy(policy: &PolicyVariant, resolved: &Resolved) -> PolicyInspection {
    let manifests = &policy.manifests;
    let mut simulation = Simulation::new(&resolved.setup);
    simulation.step_until(SimTime::ZERO + START);
    PolicyInspection {
        name: policy.name.clone(),
        autoscaler: resolved.setup.autoscaler_name(),
        kubernetes: policy.versions.kubernetes.to_string(),
        node_pools: manifests.node_pools.len(),
        node_groups: manifests.node_groups.len(),
        workloads: workloads(manifests),
        daemon_sets: manifests.daemon_sets.len(),
        replica_autoscalers: manifests.autoscalers.len() + manifests.scaled_objects.len(),
        pods_at_start: pods_at_start(&simulation.components().sim.world),
        expected: RunSizeEstimate::from_rehearsal(&mut simulation, &resolved.setup),
    }
}

/// Pods wanted at the start. Which of them are there by then depends on the limits of the controllers' clients, which make so many in a second.
fn pods_at_start(world: &World) -> u32 {
    let wanted = |id: WorkloadId| {
        let sample = world.record().samples.first()?;
        Some(sample.workloads.iter().find(|workload| workload.workload == id)?.replicas_desired)
    };
    let counted =
        world.workloads().filter(|(_, workload)| workload.kind != WorkloadKind::DaemonSet && !workload.deleted);
    let pods = counted.map(|(id, workload)| {
        let there = u32::try_from(workload.pods.len()).unwrap_or(u32::MAX);
        // Nothing makes the pods that have no controller: they are there.
        if workload.kind == WorkloadKind::Pods { there } else { wanted(id).unwrap_or(there) }
    });
    pods.sum()
}

fn workloads(manifests: &Manifests) -> usize {
    let lasting = manifests.deployments.len() + manifests.stateful_sets.len() + manifests.pods.len();
    lasting + manifests.jobs.len() + manifests.cron_jobs.len() + manifests.scaled_jobs.len()
}
