//! Behaviours that begin with a release of Kubernetes: one table, so that no other file compares minor releases.
//!
//! Must not: hold behaviours of Karpenter or of the Vertical Pod Autoscaler, which have tables of their own.

use super::KubernetesVersion;

macro_rules! behaviours {
    ($($(#[doc = $doc:literal])+ $name:ident since $minor:literal,)+) => {
        /// A behaviour that a release of Kubernetes has and those before it lack. Each line says which release begins it.
        ///
        /// "On since" is the release whose feature gate is open by default. `Source:` lines name files of Kubernetes 1.36 where they name no
        /// other release; `kube_features.go` is `pkg/features/kube_features.go`.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum KubernetesBehaviour {
            $($(#[doc = $doc])+ $name,)+
        }

        impl KubernetesBehaviour {
            /// All of them, in the order of the table.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// Minor number of the first release that has it.
            pub const fn since(self) -> u8 {
                match self {
                    $(Self::$name => $minor,)+
                }
            }
        }
    };
}

behaviours! {
    // Fields that the API server keeps.
    /// `timeZone` of CronJobs. Source: `kube_features.go`, `CronJobTimeZone` (on since 1.25).
    CronJobTimeZone since 25,
    /// `podFailurePolicy` of Jobs. Source: `kube_features.go`, `JobPodFailurePolicy` (on since 1.26).
    JobPodFailurePolicy since 26,
    /// `nodeAffinityPolicy` and `nodeTaintsPolicy` of spread constraints. Source: `kube_features.go` of 1.27,
    /// `NodeInclusionPolicyInPodTopologySpread` (on since 1.26).
    SpreadNodeInclusionPolicy since 26,
    /// `ReadWriteOncePod` claims. Source: `kube_features.go`, `ReadWriteOncePod` (alpha in 1.22, on since 1.27).
    ReadWriteOncePod since 27,
    /// `persistentVolumeClaimRetentionPolicy`. Source: `kube_features.go`, `StatefulSetAutoDeletePVC` (on since 1.27).
    StatefulSetClaimRetention since 27,
    /// `ordinals` of StatefulSets. Source: `kube_features.go`, `StatefulSetStartOrdinal` (on since 1.27).
    StatefulSetOrdinals since 27,
    /// `unhealthyPodEvictionPolicy`. Source: `kube_features.go`, `PDBUnhealthyPodEvictionPolicy` (on since 1.27).
    UnhealthyPodEvictionPolicy since 27,
    /// Metrics of the type ContainerResource. Source: `kube_features.go`, `HPAContainerMetrics` (on since 1.27).
    HpaContainerMetrics since 27,
    /// `matchLabelKeys` of spread constraints. Source: `kube_features.go`, `MatchLabelKeysInPodTopologySpread` (on since 1.27).
    SpreadMatchLabelKeys since 27,
    /// `minDomains` of spread constraints. Source: `kube_features.go` of 1.27, `MinDomainsInPodTopologySpread` (on since 1.27).
    SpreadMinDomains since 27,
    /// `schedulingGates`. Source: `kube_features.go`, `PodSchedulingReadiness` (on since 1.27).
    SchedulingGates since 27,
    /// The completions of an Indexed Job change along with its parallelism. Source: `kube_features.go`, `ElasticIndexedJob`.
    ElasticIndexedJob since 27,
    /// Init containers with `restartPolicy: Always`. Source: `kube_features.go`, `SidecarContainers` (on since 1.29).
    SidecarContainers since 29,
    /// `podReplacementPolicy` of Jobs. Source: `kube_features.go`, `JobPodReplacementPolicy` (on since 1.29); 1.28
    /// `pkg/controller/job/job_controller.go`, `onlyReplaceFailedPods`.
    JobPodReplacementPolicy since 29,
    /// `backoffLimitPerIndex` and `maxFailedIndexes`. Source: `kube_features.go`, `JobBackoffLimitPerIndex` (on since 1.29).
    JobBackoffLimitPerIndex since 29,
    /// `successPolicy` of Jobs. Source: `kube_features.go` of 1.33, `JobSuccessPolicy` (alpha in 1.30, on since 1.31).
    JobSuccessPolicy since 31,
    /// `matchLabelKeys` and `mismatchLabelKeys` of pod affinity. Source: `kube_features.go`, `MatchLabelKeysInPodAffinity` (alpha in 1.29, on
    /// since 1.31).
    AffinityMatchLabelKeys since 31,
    /// `volumeAttributesClassName` of claims. Source: `kube_features.go`, `VolumeAttributesClass` (alpha in 1.29, beta and off in 1.31, on since
    /// 1.34); EKS user guide, release notes of Kubernetes 1.34 (volumes are modified on EKS from 1.31 on).
    VolumeAttributesClass since 31,
    /// `managedBy` of Jobs. Source: `kube_features.go`, `JobManagedBy` (on since 1.32).
    JobManagedBy since 32,
    /// `resourceClaims` of pods. Source: near 1.37 `kube_features.go`, `DynamicResourceAllocation` (on since 1.34), and `pkg/api/pod/util.go`,
    /// `dropDisabledDynamicResourceAllocationFields`; Amazon EKS user guide, release notes of 1.33, and amazon-eks-ami #2285 (EKS opens the
    /// gate since 1.33).
    ResourceClaims since 33,
    /// Running pods can be resized. Source: `kube_features.go`, `InPlacePodVerticalScaling` (on since 1.33).
    PodResize since 33,
    /// A resize may lower the memory limit of a container that is not restarted. Source: `pkg/apis/core/validation/validation.go`,
    /// `ValidatePodResize`.
    MemoryLimitDecrease since 34,
    /// `resources` of a whole pod. Source: `kube_features.go`, `PodLevelResources` (on since 1.34).
    PodLevelResources since 34,
    /// `tolerance` of autoscalers. Source: 1.37 `kube_features.go`, `HPAConfigurableTolerance` (on since 1.35).
    HpaTolerance since 35,
    /// `maxUnavailable` of StatefulSets. Source: `kube_features.go`, `MaxUnavailableStatefulSet` (on since 1.35).
    StatefulSetMaxUnavailable since 35,
    /// A suspended Job's template may change what its pods request. Source: `pkg/registry/batch/job/strategy.go`, `validationOptionsForJob`,
    /// `MutablePodResourcesForSuspendedJobs`.
    SuspendedJobResources since 36,
    /// `minReplicas: 0`. Source: 1.37 `kube_features.go`, `HPAScaleToZero` (on since 1.37).
    HpaScaleToZero since 37,
    /// `preventPodSchedulingIfMissing` of CSIDrivers. Source: 1.37 changelog, `VolumeLimitScaling` (alpha in 1.35, on since 1.37).
    VolumeLimitScaling since 37,

    // Controllers and the kubelet.
    /// A HorizontalPodAutoscaler does not scale pods that another one selects, too (AmbiguousSelector).
    HpaAmbiguousSelector since 26,
    /// Pods of Jobs have labels of the group `batch.kubernetes.io`. Source: `pkg/registry/batch/job/strategy.go`, `generateSelector`.
    BatchJobLabels since 27,
    /// Pods of StatefulSets have a label with their ordinal. Source: `pkg/controller/statefulset/stateful_set_utils.go`, `updateIdentity`.
    StatefulSetIndexLabel since 28,
    /// Failures that a Job's policy ignores delay its next pods. Source: `syncJob`; kubernetes/kubernetes#119434.
    JobIgnoredFailureBackoff since 28,
    /// The cloud controller labels nodes with the id of their zone. Source: cloud-provider-aws v1.36 `pkg/providers/v1/instances_v2.go`,
    /// `getAdditionalLabels` (since v1.30, pull request 855).
    ZoneIdLabel since 30,
    /// A node is NotReady after 50 s without a lease, before after 40 s. Source: `--node-monitor-grace-period`.
    NodeMonitorGrace50s since 32,
    /// The tolerance of autoscalers is a ratio with two bounds, before a distance from 1. Source: 1.37 and 1.32
    /// `pkg/controller/podautoscaler/replica_calculator.go`, `Tolerances.isWithin`.
    HpaToleranceByRatio since 33,
    /// The kubelet restarts a container when its back-off ends, before at its next check.
    PromptContainerRestart since 35,
    /// `crashLoopBackOff.maxContainerRestartPeriod` of the kubelet. Source: 1.35 `kube_features.go`, `KubeletCrashLoopBackOffMax` (alpha in 1.32,
    /// on since 1.35).
    CrashLoopBackOffMax since 35,
    /// A new HorizontalPodAutoscaler is synced at once, before after a period.
    HpaPromptFirstSync since 37,
    /// An autoscaler leaves zero replicas by its condition `ScaledToZero`, before by its minimum.
    HpaZeroByCondition since 37,

    // kube-scheduler.
    /// Backoffs end in windows of a second. Source: `pkg/scheduler/backend/queue/backoff_queue.go`, `alignToWindow`.
    SchedulerBackoffWindows since 33,
    /// An empty active queue takes the head of the backoff queue. Source: `pkg/scheduler/backend/queue/scheduling_queue.go`.
    SchedulerPopsFromBackoff since 33,
    /// NodeResourcesBalancedAllocation leaves best-effort pods out. Source:
    /// `pkg/scheduler/framework/plugins/noderesources/balanced_allocation.go`.
    SchedulerSkipsBestEffortBalance since 33,
    /// Ties go to the root of a heap, before to a uniform draw. Source: `pkg/scheduler/schedule_one.go`, `selectHost` and `nodeScoreHeap`.
    SchedulerHeapTies since 35,
    /// The reason of an untolerated taint does not name it. Source: `pkg/scheduler/framework/plugins/tainttoleration`, `ErrReason`.
    SchedulerUnnamedTaints since 35,
    /// NodeResourcesBalancedAllocation scores the change that a pod makes, before the state that it leaves. Source:
    /// `pkg/scheduler/framework/plugins/noderesources/balanced_allocation.go`.
    SchedulerBalanceChange since 36,

    // EKS and eksctl.
    /// Managed Spot groups launch by price and capacity, before by capacity alone.
    ManagedSpotByPrice since 28,
    /// EKS Auto Mode can be turned on.
    EksAutoMode since 29,
    /// eksctl starts groups on Amazon Linux 2023 by default.
    EksctlAmazonLinux2023 since 30,

    // The Cluster Autoscaler, whose releases carry the number of the Kubernetes release that they are made for.
    // Source: kubernetes/autoscaler `cluster-autoscaler/config/flags`, release by release.
    /// The default expander is `least-waste`, before `random`.
    CaLeastWasteDefault since 33,
    /// The flag `blocking-system-pod-distruption-timeout`.
    CaBlockingSystemPodTimeout since 33,
    /// `cordon-node-before-terminating` is on by default.
    CaCordonDefault since 34,
    /// `frequent-loops-enabled` is on by default.
    CaFrequentLoopsDefault since 35,
    /// `enable-dynamic-resource-allocation` is on, and the program does not start without it.
    CaDynamicResources since 35,
    /// The flag `fastpath-binpacking-enabled`.
    CaFastpathBinpacking since 35,
    /// The flag `max-node-startup-time`; before, the provision time applies.
    CaNodeStartupTime since 35,
    /// The flag `salvo-scale-up`.
    CaSalvoScaleUp since 36,
    /// The flag `startup-taint-prefix`.
    CaStartupTaintPrefix since 36,
    /// Nodes count as upcoming only while their scale-up request lasts.
    CaUpcomingNeedsRequest since 36,
}

impl KubernetesVersion {
    /// Whether this release has a behaviour.
    pub const fn has(self, behaviour: KubernetesBehaviour) -> bool {
        self.0 >= behaviour.since()
    }
}

#[cfg(test)]
mod tests {
    use super::super::KubernetesVersion;
    use super::KubernetesBehaviour;

    #[test]
    fn behaviours_begin_with_known_releases() {
        let known = KubernetesVersion::OLDEST + 1..=KubernetesVersion::NEWEST;
        for behaviour in KubernetesBehaviour::ALL {
            assert!(known.contains(&behaviour.since()), "{behaviour:?}");
        }
    }

    #[test]
    fn release_has_behaviour_from_its_first_release() {
        let has = |minor| {
            KubernetesVersion::from_minor(minor).map(|release| release.has(KubernetesBehaviour::ResourceClaims))
        };
        assert_eq!((has(32), has(33), has(37)), (Some(false), Some(true), Some(true)));
    }
}
