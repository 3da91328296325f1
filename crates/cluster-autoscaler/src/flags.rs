//! The command line flags of the Cluster Autoscaler that bear on its decisions, under their own names and with the defaults of
//! each release.
//!
//! Source: Cluster Autoscaler 1.36 `config/flags/flags.go`.

mod names;
mod values;

pub use names::{NAMES, NOT_REPRODUCED, WITHOUT_EFFECT};

use super::discovery::Discovery;
use super::expander::{Expander, ExpanderChain};
use super::quotas::{Limited, ResourceLimit};
use super::similar::Similarity;
use nodecast_model::domain::{KubernetesBehaviour, KubernetesVersion, SimDuration, Symbol};
use values::Slot;

/// Flags, read.
#[derive(Clone, PartialEq, Debug)]
pub struct Flags {
    /// The release, which sets defaults and a few rules.
    pub version: KubernetesVersion,
    /// `scan-interval`.
    pub scan_interval: SimDuration,
    /// `frequent-loops-enabled`.
    pub frequent_loops: bool,
    /// `expander`.
    pub expander: ExpanderChain,
    /// `node-group-auto-discovery` and `nodes`.
    pub discovery: Discovery,
    /// `balance-similar-node-groups`.
    pub balance_similar_node_groups: bool,
    /// `balancing-ignore-label`, `balancing-label` and the ratios.
    pub similarity: Similarity,
    /// `max-nodes-total`; 0 for none.
    pub max_nodes_total: i64,
    /// `cores-total`, `memory-total`, `gpu-total`.
    pub resource_limits: Vec<ResourceLimit>,
    /// `max-nodes-per-scaleup`.
    pub max_nodes_per_scaleup: i64,
    /// `fastpath-binpacking-enabled`.
    pub fastpath_binpacking: bool,
    /// `parallel-scale-up`.
    pub parallel_scale_up: bool,
    /// `salvo-scale-up`.
    pub salvo_scale_up: bool,
    /// `new-pod-scale-up-delay`.
    pub new_pod_scale_up_delay: SimDuration,
    /// `expendable-pods-priority-cutoff`.
    pub expendable_pods_priority_cutoff: i64,
    /// `scale-up-from-zero`: whether an empty cluster is acted on.
    pub scale_up_from_zero: bool,
    /// `enforce-node-group-min-size`.
    pub enforce_node_group_min_size: bool,
    /// `max-node-provision-time`.
    pub max_node_provision_time: SimDuration,
    /// `max-node-startup-time`.
    pub max_node_startup_time: SimDuration,
    /// `initial-node-group-backoff-duration`.
    pub initial_backoff: SimDuration,
    /// `max-node-group-backoff-duration`.
    pub max_backoff: SimDuration,
    /// `node-group-backoff-reset-timeout`.
    pub backoff_reset: SimDuration,
    /// `ok-total-unready-count`.
    pub ok_total_unready_count: i64,
    /// `max-total-unready-percentage`.
    pub max_total_unready_percentage: f64,
    /// `scale-down-enabled`.
    pub scale_down_enabled: bool,
    /// `scale-down-unready-enabled`.
    pub scale_down_unready_enabled: bool,
    /// `scale-down-unneeded-time`.
    pub scale_down_unneeded_time: SimDuration,
    /// `scale-down-unready-time`.
    pub scale_down_unready_time: SimDuration,
    /// `scale-down-delay-after-add`.
    pub scale_down_delay_after_add: SimDuration,
    /// `scale-down-delay-after-delete`.
    pub scale_down_delay_after_delete: SimDuration,
    /// `scale-down-delay-after-failure`.
    pub scale_down_delay_after_failure: SimDuration,
    /// `scale-down-delay-type-local`.
    pub scale_down_delay_type_local: bool,
    /// `scale-down-utilization-threshold`.
    pub scale_down_utilization_threshold: f64,
    /// `scale-down-gpu-utilization-threshold`.
    pub scale_down_gpu_utilization_threshold: f64,
    /// `ignore-daemonsets-utilization`.
    pub ignore_daemonsets_utilization: bool,
    /// `ignore-mirror-pods-utilization`.
    pub ignore_mirror_pods_utilization: bool,
    /// `max-scale-down-parallelism`.
    pub max_scale_down_parallelism: i64,
    /// `max-drain-parallelism`.
    pub max_drain_parallelism: i64,
    /// `unremovable-node-recheck-timeout`.
    pub unremovable_node_recheck_timeout: SimDuration,
    /// `max-graceful-termination-sec`.
    pub max_graceful_termination: SimDuration,
    /// `max-binpacking-time`.
    pub max_binpacking_time: SimDuration,
    /// `max-nodegroup-binpacking-duration`.
    pub max_group_binpacking: SimDuration,
    /// `scale-down-simulation-timeout`.
    pub scale_down_simulation_timeout: SimDuration,
    /// `max-pod-eviction-time`.
    pub max_pod_eviction_time: SimDuration,
    /// `node-delete-delay-after-taint`.
    pub node_delete_delay_after_taint: SimDuration,
    /// `node-deletion-delay-timeout`.
    pub node_deletion_delay_timeout: SimDuration,
    /// `node-deletion-batcher-interval`.
    pub node_deletion_batcher_interval: SimDuration,
    /// `max-bulk-soft-taint-count`.
    pub max_bulk_soft_taint_count: i64,
    /// `max-bulk-soft-taint-time`.
    pub max_bulk_soft_taint_time: SimDuration,
    /// `write-status-configmap`.
    pub write_status_configmap: bool,
    /// `cordon-node-before-terminating`.
    pub cordon_node_before_terminating: bool,
    /// `skip-nodes-with-system-pods`.
    pub skip_nodes_with_system_pods: bool,
    /// `skip-nodes-with-local-storage`.
    pub skip_nodes_with_local_storage: bool,
    /// `skip-nodes-with-custom-controller-pods`.
    pub skip_nodes_with_custom_controller_pods: bool,
    /// `blocking-system-pod-distruption-timeout` (sic), since 1.33.
    pub blocking_system_pod_timeout: Option<SimDuration>,
    /// `min-replica-count`.
    pub min_replica_count: i64,
    /// `daemonset-eviction-for-empty-nodes`.
    pub daemonset_eviction_for_empty_nodes: bool,
    /// `daemonset-eviction-for-occupied-nodes`.
    pub daemonset_eviction_for_occupied_nodes: bool,
    /// `force-ds`.
    pub force_ds: bool,
    /// `enable-dynamic-resource-allocation`.
    pub dynamic_resources: bool,
    /// `bypassed-scheduler-names`.
    pub bypassed_scheduler_names: Vec<Symbol>,
    /// `allowed-scheduler-names`; empty for all.
    pub allowed_scheduler_names: Vec<Symbol>,
    /// `node-info-cache-expire-time`.
    pub node_info_cache_expire_time: SimDuration,
    /// `force-delete-unregistered-nodes`.
    pub force_delete_unregistered_nodes: bool,
    /// `scale-from-unschedulable`.
    pub scale_from_unschedulable: bool,
    /// `startup-taint` and, the old name, `ignore-taint`.
    pub startup_taints: Vec<Symbol>,
    /// `startup-taint-prefix`.
    pub startup_taint_prefixes: Vec<Symbol>,
    /// `status-taint`.
    pub status_taints: Vec<Symbol>,
}

/// A flag that is not accepted.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{flag}: {reason}")]
pub struct FlagError {
    /// The flag, without dashes.
    pub flag: String,
    /// Why not.
    pub reason: String,
    /// Whether it is the flag that does not exist, and not its value that is wrong.
    pub names_no_flag: bool,
    /// A flag that may have been meant.
    pub similar: Option<&'static str>,
}

impl Flags {
    /// The defaults of a release.
    pub fn defaults(version: KubernetesVersion) -> Self {
        let (seconds, minutes) = (SimDuration::from_secs, |minutes: i64| SimDuration::from_secs(minutes * 60));
        let expander =
            if version.has(KubernetesBehaviour::CaLeastWasteDefault) { Expander::LeastWaste } else { Expander::Random };
        Self {
            version,
            scan_interval: seconds(10),
            frequent_loops: version.has(KubernetesBehaviour::CaFrequentLoopsDefault),
            expander: ExpanderChain::single(expander),
            discovery: Discovery::default(),
            balance_similar_node_groups: false,
            similarity: Similarity::default(),
            max_nodes_total: 0,
            resource_limits: vec![
                ResourceLimit { resource: Limited::Cores, min: 0, max: 320_000 },
                ResourceLimit { resource: Limited::Memory, min: 0, max: 6_400_000 << 30 },
            ],
            max_nodes_per_scaleup: 1_000,
            fastpath_binpacking: false,
            parallel_scale_up: false,
            salvo_scale_up: false,
            new_pod_scale_up_delay: SimDuration::ZERO,
            expendable_pods_priority_cutoff: -10,
            scale_up_from_zero: true,
            enforce_node_group_min_size: false,
            max_node_provision_time: minutes(15),
            max_node_startup_time: minutes(15),
            initial_backoff: minutes(5),
            max_backoff: minutes(30),
            backoff_reset: minutes(180),
            ok_total_unready_count: 3,
            max_total_unready_percentage: 45.0,
            scale_down_enabled: true,
            scale_down_unready_enabled: true,
            scale_down_unneeded_time: minutes(10),
            scale_down_unready_time: minutes(20),
            scale_down_delay_after_add: minutes(10),
            scale_down_delay_after_delete: SimDuration::ZERO,
            scale_down_delay_after_failure: minutes(3),
            scale_down_delay_type_local: false,
            scale_down_utilization_threshold: 0.5,
            scale_down_gpu_utilization_threshold: 0.5,
            ignore_daemonsets_utilization: false,
            ignore_mirror_pods_utilization: false,
            max_scale_down_parallelism: 10,
            max_drain_parallelism: 1,
            unremovable_node_recheck_timeout: minutes(5),
            max_graceful_termination: seconds(600),
            max_binpacking_time: minutes(5),
            max_group_binpacking: seconds(10),
            scale_down_simulation_timeout: seconds(30),
            max_pod_eviction_time: minutes(2),
            node_delete_delay_after_taint: seconds(5),
            node_deletion_delay_timeout: minutes(2),
            node_deletion_batcher_interval: SimDuration::ZERO,
            max_bulk_soft_taint_count: 10,
            max_bulk_soft_taint_time: seconds(3),
            write_status_configmap: true,
            cordon_node_before_terminating: version.has(KubernetesBehaviour::CaCordonDefault),
            skip_nodes_with_system_pods: true,
            skip_nodes_with_local_storage: true,
            skip_nodes_with_custom_controller_pods: true,
            blocking_system_pod_timeout: version
                .has(KubernetesBehaviour::CaBlockingSystemPodTimeout)
                .then(|| minutes(60)),
            min_replica_count: 0,
            daemonset_eviction_for_empty_nodes: false,
            daemonset_eviction_for_occupied_nodes: true,
            force_ds: false,
            dynamic_resources: version.has(KubernetesBehaviour::CaDynamicResources),
            bypassed_scheduler_names: Vec::new(),
            allowed_scheduler_names: Vec::new(),
            node_info_cache_expire_time: minutes(87_600 * 60),
            force_delete_unregistered_nodes: false,
            scale_from_unschedulable: false,
            startup_taints: Vec::new(),
            startup_taint_prefixes: Vec::new(),
            status_taints: Vec::new(),
        }
    }

    /// The defaults of a release with these flags, without dashes, over them.
    ///
    /// # Errors
    /// A flag that does not exist in this release, or a value that it cannot have.
    pub fn parse<'a>(
        version: KubernetesVersion,
        given: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, FlagError> {
        let mut flags = Self::defaults(version);
        for (name, value) in given {
            if WITHOUT_EFFECT.contains(&name) {
                continue;
            }
            let error =
                |reason, similar, names_no_flag| FlagError { flag: name.to_owned(), reason, names_no_flag, similar };
            let Some(mut slot) = flags.slot(name) else {
                if NOT_REPRODUCED.contains(&name) {
                    return Err(error("what this flag does is not reproduced".to_owned(), None, true));
                }
                let reason = format!("the Cluster Autoscaler {version} has no such flag");
                return Err(error(reason, names::most_alike(name), true));
            };
            slot.set(value).map_err(|reason| error(reason, None, false))?;
        }
        if version.has(KubernetesBehaviour::CaDynamicResources) && !flags.dynamic_resources {
            let flag = "enable-dynamic-resource-allocation".to_owned();
            let reason = format!("the Cluster Autoscaler {version} starts only with `true`");
            return Err(FlagError { flag, reason, names_no_flag: false, similar: None });
        }
        if !version.has(KubernetesBehaviour::CaNodeStartupTime) {
            // Before it had a flag of its own, this was the provision time.
            flags.max_node_startup_time = flags.max_node_provision_time;
        }
        Ok(flags)
    }

    /// Where the value of a flag goes; `None` for a flag that does not exist in the release.
    fn slot(&mut self, name: &str) -> Option<Slot<'_>> {
        use Slot::{Chain, Count, Duration, Gpu, Group, Integer, Interval, Limit, Number, Symbols, Tags, Truth};
        let version = self.version;
        Some(match name {
            "scan-interval" => Interval(&mut self.scan_interval),
            "frequent-loops-enabled" => Truth(&mut self.frequent_loops),
            "expander" => Chain(&mut self.expander),
            "node-group-auto-discovery" => Tags(&mut self.discovery),
            "nodes" => Group(&mut self.discovery),
            "balance-similar-node-groups" => Truth(&mut self.balance_similar_node_groups),
            "balancing-ignore-label" => Symbols(&mut self.similarity.ignored_labels),
            "balancing-label" => Symbols(&mut self.similarity.labels),
            "memory-difference-ratio" => Number(&mut self.similarity.memory_difference),
            "max-allocatable-difference-ratio" => Number(&mut self.similarity.allocatable_difference),
            "max-free-difference-ratio" => Number(&mut self.similarity.free_difference),
            "max-nodes-total" => Count(&mut self.max_nodes_total),
            "cores-total" => Limit(&mut self.resource_limits, Limited::Cores, 1),
            "memory-total" => Limit(&mut self.resource_limits, Limited::Memory, 1 << 30),
            "gpu-total" => Gpu(&mut self.resource_limits),
            "max-nodes-per-scaleup" => Count(&mut self.max_nodes_per_scaleup),
            "fastpath-binpacking-enabled" if version.has(KubernetesBehaviour::CaFastpathBinpacking) => {
                Truth(&mut self.fastpath_binpacking)
            }
            "parallel-scale-up" => Truth(&mut self.parallel_scale_up),
            "salvo-scale-up" if version.has(KubernetesBehaviour::CaSalvoScaleUp) => Truth(&mut self.salvo_scale_up),
            "new-pod-scale-up-delay" => Duration(&mut self.new_pod_scale_up_delay),
            "expendable-pods-priority-cutoff" => Integer(&mut self.expendable_pods_priority_cutoff),
            "scale-up-from-zero" => Truth(&mut self.scale_up_from_zero),
            "enforce-node-group-min-size" => Truth(&mut self.enforce_node_group_min_size),
            "max-node-provision-time" => Duration(&mut self.max_node_provision_time),
            "max-node-startup-time" if version.has(KubernetesBehaviour::CaNodeStartupTime) => {
                Duration(&mut self.max_node_startup_time)
            }
            "initial-node-group-backoff-duration" => Duration(&mut self.initial_backoff),
            "max-node-group-backoff-duration" => Duration(&mut self.max_backoff),
            "node-group-backoff-reset-timeout" => Duration(&mut self.backoff_reset),
            "ok-total-unready-count" => Count(&mut self.ok_total_unready_count),
            "max-total-unready-percentage" => Number(&mut self.max_total_unready_percentage),
            _ => return self.scale_down_slot(name),
        })
    }

    fn scale_down_slot(&mut self, name: &str) -> Option<Slot<'_>> {
        use Slot::{Count, Duration, Number, OptionalDuration, Seconds, Truth};
        let version = self.version;
        Some(match name {
            "scale-down-enabled" => Truth(&mut self.scale_down_enabled),
            "scale-down-unready-enabled" => Truth(&mut self.scale_down_unready_enabled),
            "scale-down-unneeded-time" => Duration(&mut self.scale_down_unneeded_time),
            "scale-down-unready-time" => Duration(&mut self.scale_down_unready_time),
            "scale-down-delay-after-add" => Duration(&mut self.scale_down_delay_after_add),
            "scale-down-delay-after-delete" => Duration(&mut self.scale_down_delay_after_delete),
            "scale-down-delay-after-failure" => Duration(&mut self.scale_down_delay_after_failure),
            "scale-down-delay-type-local" => Truth(&mut self.scale_down_delay_type_local),
            "scale-down-utilization-threshold" => Number(&mut self.scale_down_utilization_threshold),
            "scale-down-gpu-utilization-threshold" => Number(&mut self.scale_down_gpu_utilization_threshold),
            "ignore-daemonsets-utilization" => Truth(&mut self.ignore_daemonsets_utilization),
            "ignore-mirror-pods-utilization" => Truth(&mut self.ignore_mirror_pods_utilization),
            "max-scale-down-parallelism" => Count(&mut self.max_scale_down_parallelism),
            "max-drain-parallelism" => Count(&mut self.max_drain_parallelism),
            "unremovable-node-recheck-timeout" => Duration(&mut self.unremovable_node_recheck_timeout),
            "max-graceful-termination-sec" => Seconds(&mut self.max_graceful_termination),
            "max-binpacking-time" => Duration(&mut self.max_binpacking_time),
            "max-nodegroup-binpacking-duration" => Duration(&mut self.max_group_binpacking),
            "scale-down-simulation-timeout" => Duration(&mut self.scale_down_simulation_timeout),
            "max-pod-eviction-time" => Duration(&mut self.max_pod_eviction_time),
            "node-delete-delay-after-taint" => Duration(&mut self.node_delete_delay_after_taint),
            "node-deletion-delay-timeout" => Duration(&mut self.node_deletion_delay_timeout),
            "node-deletion-batcher-interval" => Duration(&mut self.node_deletion_batcher_interval),
            "max-bulk-soft-taint-count" => Count(&mut self.max_bulk_soft_taint_count),
            "max-bulk-soft-taint-time" => Duration(&mut self.max_bulk_soft_taint_time),
            "write-status-configmap" => Truth(&mut self.write_status_configmap),
            "cordon-node-before-terminating" => Truth(&mut self.cordon_node_before_terminating),
            "skip-nodes-with-system-pods" => Truth(&mut self.skip_nodes_with_system_pods),
            "skip-nodes-with-local-storage" => Truth(&mut self.skip_nodes_with_local_storage),
            "skip-nodes-with-custom-controller-pods" => Truth(&mut self.skip_nodes_with_custom_controller_pods),
            "blocking-system-pod-distruption-timeout"
                if version.has(KubernetesBehaviour::CaBlockingSystemPodTimeout) =>
            {
                OptionalDuration(&mut self.blocking_system_pod_timeout)
            }
            "min-replica-count" => Count(&mut self.min_replica_count),
            "daemonset-eviction-for-empty-nodes" => Truth(&mut self.daemonset_eviction_for_empty_nodes),
            "daemonset-eviction-for-occupied-nodes" => Truth(&mut self.daemonset_eviction_for_occupied_nodes),
            _ => return self.other_slot(name),
        })
    }

    fn other_slot(&mut self, name: &str) -> Option<Slot<'_>> {
        use Slot::{Duration, Symbols, Truth};
        Some(match name {
            "force-ds" => Truth(&mut self.force_ds),
            "enable-dynamic-resource-allocation" => Truth(&mut self.dynamic_resources),
            "bypassed-scheduler-names" => Symbols(&mut self.bypassed_scheduler_names),
            "allowed-scheduler-names" => Symbols(&mut self.allowed_scheduler_names),
            "node-info-cache-expire-time" => Duration(&mut self.node_info_cache_expire_time),
            "force-delete-unregistered-nodes" => Truth(&mut self.force_delete_unregistered_nodes),
            "scale-from-unschedulable" => Truth(&mut self.scale_from_unschedulable),
            "startup-taint" | "ignore-taint" => Symbols(&mut self.startup_taints),
            "startup-taint-prefix" if self.version.has(KubernetesBehaviour::CaStartupTaintPrefix) => {
                Symbols(&mut self.startup_taint_prefixes)
            }
            "status-taint" => Symbols(&mut self.status_taints),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Flags, NAMES};
    use nodecast_model::domain::durations::duration;
    use nodecast_model::domain::{KubernetesVersion, SimDuration};

    #[test]
    fn known_flags_exist_and_invalid_values_fail() {
        for name in NAMES {
            assert!(Flags::defaults(KubernetesVersion::default()).slot(name).is_some(), "{name}");
        }
        let error = Flags::parse(KubernetesVersion::default(), [("scale-down-unneded-time", "1m")]).unwrap_err();
        assert_eq!(error.similar, Some("scale-down-unneeded-time"));
        for (flag, value) in
            [("expander", "cheapest"), ("cores-total", "9"), ("scan-interval", "10"), ("force-ds", "y")]
        {
            assert!(Flags::parse(KubernetesVersion::default(), [(flag, value)]).is_err(), "{flag}={value}");
        }
    }

    #[test]
    fn negative_flag_values_are_rejected_except_priority() {
        let of = |flag, value| Flags::parse(KubernetesVersion::default(), [(flag, value)]);
        for (flag, value) in [
            ("scan-interval", "-1s"),
            ("scan-interval", "0s"),
            ("max-nodes-total", "-5"),
            ("scale-down-unneeded-time", "-1m"),
            ("max-graceful-termination-sec", "-1"),
            ("scale-down-utilization-threshold", "-0.5"),
            ("blocking-system-pod-distruption-timeout", "-1h"),
        ] {
            assert!(of(flag, value).is_err(), "{flag}={value}");
        }
        assert_eq!(
            of("expendable-pods-priority-cutoff", "-20").map(|flags| flags.expendable_pods_priority_cutoff),
            Ok(-20)
        );
        assert_eq!(of("max-nodes-total", "0").map(|flags| flags.max_nodes_total), Ok(0));
    }

    #[test]
    fn defaults_and_flags_follow_the_release() {
        let of = |minor| KubernetesVersion::from_minor(minor).map(Flags::defaults).unwrap();
        assert_eq!((of(32).expander == of(36).expander, of(34).frequent_loops), (false, false));
        assert!(of(36).frequent_loops && of(36).blocking_system_pod_timeout.is_some());
        let old = KubernetesVersion::from_minor(34).unwrap();
        assert!(Flags::parse(old, [("salvo-scale-up", "true")]).is_err());
    }

    #[test]
    fn spans_are_read_as_go_writes_them() {
        assert_eq!(duration("1h30m"), Ok(SimDuration::from_secs(5_400)));
        assert_eq!(duration("1.5s"), Ok(SimDuration::from_millis(1_500)));
        assert_eq!(duration("0"), Ok(SimDuration::ZERO));
        assert!(duration("10").is_err() && duration("").is_err() && duration("ten m").is_err());
    }
}
