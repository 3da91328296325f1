//! What a policy may state anew: releases, Karpenter's settings, the termination handler, and how long controllers take.

use std::path::PathBuf;
use std::sync::Arc;

use super::{Files, Reading, ScenarioError, auto_mode, fargate, optional, vertical};
use crate::catalog::Region;
use crate::definition::{FargateSettings, KarpenterOptions};
use crate::domain::controller_time::CallRate;
use crate::domain::node_pool::ClusterInfo;
use crate::domain::{
    ControlPlaneTier, ControllerTime, FeatureGates, KarpenterVersion, KubernetesVersion, TerminationHandler, Versions,
};
use crate::error::{listed, nearest};
use crate::manifests::Manifests;
use crate::reader::{Fields, Reader};
use crate::schema::cluster::{Tier, VersionsKeys};
use crate::schema::fargate::FargateKeys;
use crate::schema::kind::Placed;
use crate::schema::policies::{AutoModeKeys, ControllerTimeKeys, ControllerTimes, Handler, KarpenterKeys, TimeSetting};
use crate::schema::vertical::VerticalKeys;
use crate::schema::whole::SCENARIO;
use crate::source::{Limits, Source};
use crate::tree::{self, Location, Variables};
use nodecast_karpenter::machine::KarpenterSettings;
use nodecast_karpenter::packing::PackerKind;
use nodecast_model::domain::topology::TopologySpread;
use nodecast_model::fargate::Profile;

/// What is stated for all policies, or holds under one.
#[derive(Clone)]
pub(super) struct Overlay {
    /// Releases.
    pub(super) versions: Versions,
    /// Whether Karpenter has an interruption queue.
    pub(super) queue: bool,
    /// Karpenter's batching and policies.
    pub(super) options: KarpenterOptions,
    /// Default topology spread of Karpenter.
    pub(super) default_spread: Vec<TopologySpread>,
    /// Karpenter's feature gates.
    pub(super) gates: FeatureGates,
    /// What is stated of EKS Auto Mode.
    pub(super) auto_mode: auto_mode::AutoModeLayer,
    /// EKS on Fargate.
    pub(super) fargate: FargateSettings,
    /// Fargate profiles that ClusterConfigs of the scenario bring beside those that it states itself, until these are read.
    brought: Vec<Profile>,
    /// The flags of the Vertical Pod Autoscaler's programs.
    pub(super) vertical: vertical::Flags,
    /// How long controllers take.
    pub(super) controller_time: ControllerTime,
    /// Tier of the control plane, with the place that gives it.
    pub(super) tier: (ControlPlaneTier, Option<Location>),
    /// The termination handler, with the place that names its DaemonSet.
    handler: Option<(TerminationHandler, Location)>,
}

/// Release of Karpenter that eksctl installs, if it can be reproduced.
pub(super) fn installed_karpenter(cluster: &ClusterInfo) -> Option<KarpenterVersion> {
    let text = cluster.karpenter_version.as_deref()?;
    text.parse().or_else(|_| format!("v{text}").parse()).ok()
}

impl Overlay {
    /// Settings where nothing is stated: the releases of a ClusterConfig that can be reproduced, and defaults.
    pub(super) fn over_defaults(manifests: &Manifests) -> Self {
        let stated = manifests.cluster.as_ref().and_then(|cluster| cluster.kubernetes_version.as_deref());
        let kubernetes = stated.and_then(|text| text.parse::<KubernetesVersion>().ok()).unwrap_or_default();
        let mut versions = Versions { kubernetes, ..Versions::default() };
        lay(&mut versions.karpenter, manifests.cluster.as_ref().and_then(installed_karpenter));
        Self {
            versions,
            queue: manifests.cluster.as_ref().and_then(|cluster| cluster.karpenter_queue).unwrap_or(true),
            options: KarpenterOptions::default(),
            default_spread: Vec::new(),
            gates: FeatureGates::default(),
            auto_mode: auto_mode::AutoModeLayer::default(),
            fargate: FargateSettings::default(),
            brought: manifests.fargate_profiles.clone(),
            vertical: vertical::Flags::default(),
            controller_time: ControllerTime::default(),
            tier: (manifests.cluster.as_ref().and_then(|cluster| cluster.control_plane_tier).unwrap_or_default(), None),
            handler: None,
        }
    }

    /// What the scenario or a policy states, over this.
    pub(super) fn with<'s>(
        mut self,
        reading: &mut Reading<'_, 's>,
        fields: Fields<'_, 's>,
    ) -> Result<Self, ScenarioError> {
        if let Some(stated) = optional::<VersionsKeys>(reading, fields, "versions")? {
            lay(&mut self.versions.karpenter, stated.karpenter);
            lay(&mut self.versions.kubernetes, stated.kubernetes);
            lay(&mut self.versions.cluster_autoscaler, stated.cluster_autoscaler);
            // One release of KEDA is reproduced: once it is read nothing is left to say.
            lay(&mut (), stated.keda);
            lay(&mut self.versions.vertical, stated.vertical);
        }
        if let Some(stated) = optional::<KarpenterKeys>(reading, fields, "karpenter")? {
            lay(&mut self.queue, stated.interruption_queue);
            lay(&mut self.options.batch_idle, stated.batch_idle_duration);
            lay(&mut self.options.batch_max, stated.batch_max_duration);
            lay(&mut self.options.preferences, stated.preference_policy);
            lay(&mut self.options.min_values, stated.min_values_policy);
            self.options.image_release_every = stated.image_release_every.or(self.options.image_release_every);
            lay(&mut self.options.vm_memory_overhead_millionths, stated.vm_memory_overhead_percent);
            lay(&mut self.options.reserved_enis, stated.reserved_enis);
            lay(&mut self.default_spread, stated.scheduler_config);
            if let Some(gates) = stated.feature_gates {
                lay(&mut self.gates.spot_to_spot, gates.spot_to_spot_consolidation);
                lay(&mut self.gates.node_repair, gates.node_repair);
                lay(&mut self.gates.static_capacity, gates.static_capacity);
                lay(&mut self.gates.node_overlay, gates.node_overlay);
                lay(&mut self.gates.capacity_buffer, gates.capacity_buffer);
                self.gates.reserved_capacity = gates.reserved_capacity.or(self.gates.reserved_capacity);
            }
        }
        if let Some(stated) = optional::<AutoModeKeys>(reading, fields, "eks_auto_mode")? {
            self.auto_mode = self.auto_mode.with(stated);
        }
        let stated = optional::<FargateKeys>(reading, fields, "fargate")?;
        let brought = std::mem::take(&mut self.brought);
        fargate::lay_over(reading, fields, &mut self.fargate, (stated, brought))?;
        if let Some(stated) = optional::<VerticalKeys>(reading, fields, "vertical_pod_autoscaler")? {
            self.vertical.lay(reading, fields, stated)?;
        }
        if let Some(Handler { daemon_set: (daemon_set, at), rebalance }) =
            optional::<Handler>(reading, fields, "node_termination_handler")?
        {
            self.handler = Some((TerminationHandler { daemon_set, rebalance }, at));
        }
        match optional::<ControllerTimes>(reading, fields, "controller_time")? {
            Some(TimeSetting::Measured) => self.controller_time = ControllerTime::MEASURED,
            Some(TimeSetting::Nothing) => self.controller_time = ControllerTime::NONE,
            Some(TimeSetting::Keys(stated)) => lay_time(&mut self.controller_time, stated),
            None => {}
        }
        Ok(self)
    }

    /// The same with the tier of the control plane that a policy gives.
    ///
    /// # Errors
    /// If there is no such tier.
    pub(super) fn with_tier<'s>(
        mut self,
        reading: &mut Reading<'_, 's>,
        fields: Fields<'_, 's>,
    ) -> Result<Self, ScenarioError> {
        self.lay_tier(optional::<Placed<Tier>>(reading, fields, "control_plane_tier")?);
        Ok(self)
    }

    /// The tier of the control plane as a key gives it, over this.
    pub(super) fn lay_tier(&mut self, stated: Option<(ControlPlaneTier, Location)>) {
        if let Some((tier, at)) = stated {
            self.tier = (tier, Some(at));
        }
    }

    /// Tier of the control plane.
    ///
    /// # Errors
    /// If the release has no such tier.
    pub(super) fn checked_tier(
        &self,
        reader: &mut Reader<'_>,
        policy: &str,
    ) -> Result<ControlPlaneTier, ScenarioError> {
        let (tier, at) = self.tier;
        let release = self.versions.kubernetes;
        let Some(at) = at else { return Ok(if tier.is_offered(release) { tier } else { ControlPlaneTier::Standard }) };
        if !tier.is_offered(release) {
            let first = ControlPlaneTier::FIRST_RELEASE;
            return Err(reader
                .error(at, format!("the tier `{tier}` of the control plane with Kubernetes {release}"))
                .because("not offered by EKS")
                .help(format!("use `standard`, or Kubernetes 1.{first} or later under `versions`")));
        }
        if tier.is_provisioned() && !self.controller_time.goes_by_tier() {
            let message = format!(
                "the tier `{tier}` of the control plane has no effect under the policy `{policy}`: its `controller_time` is `none` or \
                 gives each limit that a tier sets"
            );
            let help = "remove the limits of `kube_scheduler` and `kube_controller_manager` from `controller_time`";
            reader.warn(&nodecast_settings::lints::file::TIER_WITHOUT_EFFECT, at, message, "has no effect", help);
        }
        Ok(tier)
    }

    /// The termination handler of a policy with these manifests.
    ///
    /// # Errors
    /// If its DaemonSet is not among them.
    pub(super) fn handler_in(
        &self,
        reader: &Reader<'_>,
        manifests: &Manifests,
    ) -> Result<Option<TerminationHandler>, ScenarioError> {
        let Some((handler, at)) = self.handler else { return Ok(None) };
        if manifests.daemon_sets.iter().any(|set| set.name == handler.daemon_set) {
            return Ok(Some(handler));
        }
        let name = handler.daemon_set.to_string();
        let names: Vec<String> = manifests.daemon_sets.iter().map(|set| set.name.to_string()).collect();
        let known = || names.iter().map(String::as_str);
        let help = match nearest(&name, known()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if names.is_empty() => {
                "add the handler's DaemonSet to the manifests: `helm template` prints it".to_owned()
            }
            None => format!("the manifests hold {}", listed(known().take(10))),
        };
        Err(reader.error(at, format!("no DaemonSet is called `{name}`")).because("would handle nothing").help(help))
    }
}

/// Karpenter's settings under a section `karpenter`, given as the text of a scenario that states nothing else.
///
/// # Errors
/// If the section cannot be read.
pub(crate) fn karpenter_settings(
    text: &str,
    region: &Arc<Region>,
) -> Result<(KarpenterSettings, KarpenterOptions), ScenarioError> {
    let (source, limits) = (Source::new("karpenter", text), Limits::default());
    let documents = tree::parse(&source, &Variables::new(), &limits)?;
    let mut overlay = Overlay::over_defaults(&Manifests::default());
    if let Some(root) = documents.first() {
        let mut reader = Reader::new(Some(&source));
        let fields = reader.fields(root, &SCENARIO.shape)?;
        let files = Files::new(PathBuf::new(), Variables::new(), &limits, region);
        overlay = overlay.with(&mut Reading::new(reader, files), fields)?;
    }
    Ok((overlay.options.settings(overlay.queue, PackerKind::Karpenter, overlay.gates), overlay.options))
}

/// Lays what is stated over what holds.
pub(super) fn lay<T>(holds: &mut T, stated: Option<T>) {
    if let Some(stated) = stated {
        *holds = stated;
    }
}

fn lay_time(time: &mut ControllerTime, stated: ControllerTimeKeys) {
    let measured = ControllerTime::MEASURED;
    lay_one(&mut time.controller_manager, measured.controller_manager, stated.kube_controller_manager, |time, item| {
        lay_calls(&mut time.calls, item.qps, item.burst);
        lay(&mut time.replica_set_syncs, item.concurrent_replicaset_syncs);
        time.autoscaler_syncs = item.concurrent_horizontal_pod_autoscaler_syncs.or(time.autoscaler_syncs);
        lay(&mut time.metrics_call, item.metrics_call);
    });
    lay_one(&mut time.scheduler, measured.scheduler, stated.kube_scheduler, |time, item| {
        (time.per_second, time.burst) = (item.qps.or(time.per_second), item.burst.or(time.burst));
    });
    lay_one(&mut time.karpenter, measured.karpenter, stated.karpenter, |time, item| {
        lay_calls(&mut time.calls, item.qps, item.burst);
        lay(&mut time.speed_percent, item.speed.map(percent));
    });
    lay_one(&mut time.cluster_autoscaler, measured.cluster_autoscaler, stated.cluster_autoscaler, |time, item| {
        lay_calls(&mut time.calls, item.qps, item.burst);
        lay(&mut time.speed_percent, item.speed.map(percent));
    });
}

/// What is stated of one controller, over what holds; keys alone over what is measured where no time was taken so far.
fn lay_one<T: Copy, K>(
    holds: &mut Option<T>,
    measured: Option<T>,
    stated: Option<TimeSetting<K>>,
    lay_keys: impl Fn(&mut T, K),
) {
    match stated {
        None => {}
        Some(TimeSetting::Measured) => *holds = measured,
        Some(TimeSetting::Nothing) => *holds = None,
        Some(TimeSetting::Keys(keys)) => {
            *holds = holds.or(measured);
            if let Some(time) = holds {
                lay_keys(time, keys);
            }
        }
    }
}

fn lay_calls(calls: &mut CallRate, per_second: Option<u32>, burst: Option<u32>) {
    lay(&mut calls.per_second, per_second);
    lay(&mut calls.burst, burst);
}

/// A speed in whole percent, because state is whole.
fn percent(speed: f64) -> u32 {
    libm::round(speed * 100.0) as u32
}
