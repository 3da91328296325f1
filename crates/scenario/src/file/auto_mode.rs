//! A policy with EKS Auto Mode: what it has over a cluster with Karpenter, and what stands in its way.

use std::sync::Arc;

use super::overlays::Overlay;
use super::{Reading, ScenarioError};
use crate::cloud::billing::FeeShares;
use crate::definition::{AutoMode, Autoscaler, KarpenterOptions};
use crate::domain::{FeatureGates, KarpenterVersion, PodSpec, SimDuration, Symbol};
use crate::manifests::Manifests;
use crate::reader::{Fields, Reader};
use crate::schema::policies::AutoModeKeys;
use crate::tree::Location;
use nodecast_karpenter::machine::ImageReleases;
use nodecast_model::auto_mode::{self, Blocker, BuiltIn};

const WEEK: SimDuration = SimDuration::from_secs(7 * 86_400);

/// What is stated of EKS Auto Mode, laid over what holds otherwise.
#[derive(Clone, Debug, Default)]
pub(super) struct AutoModeLayer {
    node_pools: Option<Vec<BuiltIn>>,
    shares: FeeShares,
    every: Option<SimDuration>,
    weekday: Option<u32>,
}

impl AutoModeLayer {
    /// What a policy states over this.
    pub(super) fn with(mut self, keys: AutoModeKeys) -> Self {
        self.node_pools = keys.node_pools.or(self.node_pools);
        self.shares.stated = keys.fee_share.or(self.shares.stated);
        self.shares.of_types.extend(keys.fee_shares.unwrap_or_default());
        self.every = keys.image_release_every.or(self.every);
        self.weekday = keys.image_release_day.or(self.weekday);
        self
    }

    /// When images come out: once a week on Wednesdays, unless it is stated.
    fn images(&self) -> ImageReleases {
        ImageReleases::weekly(self.every.unwrap_or(WEEK), i64::from(self.weekday.unwrap_or(2)))
    }
}

/// Rejects keys of a policy that have no effect with its autoscaler.
pub(super) fn check_keys(
    reader: &Reader<'_>,
    fields: Fields<'_, '_>,
    autoscaler: Autoscaler,
) -> Result<(), ScenarioError> {
    let of_release = fields.get("versions").and_then(|versions| versions.get("karpenter"));
    let of_karpenter = fields.get("karpenter").or(of_release).filter(|_| autoscaler == Autoscaler::EksAutoMode);
    if let Some(node) = of_karpenter {
        return Err(reader
            .error(node.at, "AWS manages Karpenter in EKS Auto Mode; you cannot set its version or options")
            .because("has no effect")
            .help("remove it, or set `autoscaler: karpenter`"));
    }
    match fields.get("eks_auto_mode").filter(|_| autoscaler != Autoscaler::EksAutoMode) {
        Some(node) => Err(reader
            .error(node.at, "these settings apply only to EKS Auto Mode")
            .because("has no effect")
            .help("take `eks_auto_mode` out, or say `autoscaler: eks-auto-mode`")),
        None => Ok(()),
    }
}

/// The objects that a policy with EKS Auto Mode has in place of those of the scenario, and what is known of it.
pub(super) fn complete(overlay: &mut Overlay, manifests: &mut Manifests) -> AutoMode {
    let stated = overlay.auto_mode.clone();
    overlay.versions.karpenter = KarpenterVersion::AUTO_MODE;
    overlay.queue = true;
    overlay.options = KarpenterOptions::default();
    overlay.gates = FeatureGates { node_repair: true, static_capacity: true, ..FeatureGates::default() };
    let foreign: Vec<Symbol> =
        manifests.node_pools.iter().filter(|node_pool| !node_pool.auto_mode).map(|node_pool| node_pool.name).collect();
    manifests.node_pools.retain(|node_pool| node_pool.auto_mode);
    let of_itself = if manifests.node_pools.is_empty() { BuiltIn::ALL.to_vec() } else { Vec::new() };
    for built_in in stated.node_pools.clone().unwrap_or(of_itself) {
        if !manifests.node_pools.iter().any(|node_pool| node_pool.name.as_str() == built_in.as_str()) {
            manifests.node_pools.push(built_in.pool());
        }
    }
    manifests.node_classes.retain(|node_class| node_class.auto_mode);
    let agents = keep_agents_off(manifests);
    AutoMode { images: stated.images(), shares: stated.shares, agents, foreign_pools: foreign }
}

/// Keeps DaemonSets off nodes of Auto Mode that are part of their operating system; which.
pub(super) fn keep_agents_off(manifests: &mut Manifests) -> Vec<String> {
    let agents = manifests.daemon_sets.iter_mut().filter(|daemon_set| auto_mode::is_part_of_nodes(daemon_set));
    agents
        .map(|agent| {
            auto_mode::keep_off(agent);
            agent.name.to_string()
        })
        .collect()
}

/// What keeps a policy from EKS Auto Mode.
///
/// # Errors
/// The first thing that does, with the object and a way out.
pub(super) fn check(reading: &Reading<'_, '_>, at: Location, manifests: &Manifests) -> Result<(), ScenarioError> {
    if manifests.node_pools.is_empty() {
        return Err(reading.error(at, "EKS Auto Mode without a NodePool").because("would launch nothing").help(
            "switch a built-in one on (`eks_auto_mode: { node_pools: [general-purpose] }`), or add one whose \
                 `nodeClassRef.group` is `eks.amazonaws.com`",
        ));
    }
    check_objects(reading, at, manifests)
}

/// What of these objects keeps a policy from EKS Auto Mode.
fn check_objects(reading: &Reading<'_, '_>, at: Location, manifests: &Manifests) -> Result<(), ScenarioError> {
    let refuse = |what: String, blocker: &Blocker| {
        reading
            .error(at, format!("EKS Auto Mode refuses {what}: {blocker}"))
            .because("a policy with EKS Auto Mode")
            .help(blocker.help())
    };
    for pool in &manifests.node_pools {
        auto_mode::check_pool(pool).map_err(|blocker| refuse(format!("the NodePool {}", pool.name), &blocker))?;
    }
    for (kind, name, spec) in specs(manifests) {
        auto_mode::check_pod(spec).map_err(|blocker| refuse(format!("the pods of {kind} {name}"), &blocker))?;
    }
    Ok(())
}

/// What pods of all objects look like.
fn specs(manifests: &Manifests) -> Vec<(&'static str, String, &Arc<PodSpec>)> {
    let mut all: Vec<(&'static str, String, &Arc<PodSpec>)> = Vec::new();
    all.extend(
        manifests
            .deployments
            .iter()
            .map(|deployment| ("Deployment", deployment.name.to_string(), &deployment.template)),
    );
    all.extend(
        manifests
            .stateful_sets
            .iter()
            .map(|stateful_set| ("StatefulSet", stateful_set.name.to_string(), &stateful_set.template)),
    );
    all.extend(
        manifests.daemon_sets.iter().map(|daemon_set| ("DaemonSet", daemon_set.name.to_string(), &daemon_set.template)),
    );
    all.extend(manifests.jobs.iter().map(|job| ("Job", job.name.to_string(), &job.spec.template)));
    all.extend(
        manifests.cron_jobs.iter().map(|cron_job| ("CronJob", cron_job.name.to_string(), &cron_job.job.template)),
    );
    let scaled = |scaled_job: &crate::domain::keda::ScaledJob| format!("{}/{}", scaled_job.namespace, scaled_job.name);
    all.extend(
        manifests.scaled_jobs.iter().map(|scaled_job| ("ScaledJob", scaled(scaled_job), &scaled_job.job.template)),
    );
    all
}
