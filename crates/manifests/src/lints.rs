//! Lints of Kubernetes and eksctl manifests.

nodecast_model::lints! {
    // Any object.
    EMPTY_FILE = 4, AboutInput, None, "A manifest file holds no object.";
    API_VERSION = 5, AboutInput, Unknown, "An object has an `apiVersion` that its kind does not have. It is read as a known one.";
    UNKNOWN_KIND = 6, MayChangeAnswer, Unknown, "The kind of an object is unknown. If it creates pods, they are missing.";
    KIND_NOT_SIMULATED = 7, MayChangeAnswer, Unknown, "The kind of an object is known, but not simulated.";
    CONTROLLER_NOT_SIMULATED = 8, ChangesAnswer, CostLowWaitsShort, "An object of a controller that creates pods is not simulated, so its pods are missing.";
    SCALER_NOT_SIMULATED = 9, ChangesAnswer, Unknown, "An object scales replicas and is not simulated, so the replicas stay as they are.";
    NOT_RENDERED = 10, ChangesAnswer, CostLowWaitsShort, "An object renders manifests (for example a Helm release), which are missing here.";
    HELM_HOOK = 11, AboutInput, None, "A rendered chart contains a hook that an install does not run. It is ignored.";
    DELETION_TIMESTAMP = 12, MayChangeAnswer, CostHigh, "An object is being deleted (`deletionTimestamp`). It is kept.";
    FRACTIONAL_BYTES = 13, ChangesAnswer, CostLowWaitsShort, "A memory or storage quantity is smaller than a byte, so that a suffix is likely wrong (`m` for `M`).";
    ROUNDED_BYTES = 14, Harmless, None, "A memory or storage quantity is no whole number of bytes. It is rounded up.";

    // Pods and workloads.
    OTHER_SCHEDULER = 15, MayChangeAnswer, Unknown, "A pod sets `schedulerName`. kube-scheduler places it here.";
    RUNTIME_CLASS = 16, MayChangeAnswer, CostLow, "A pod sets `runtimeClassName` without `overhead`, so its overhead is missing.";
    READINESS_GATE = 17, MayChangeAnswer, WaitsShort, "A pod has a readiness gate of an unknown controller. It counts as met.";
    POST_START = 18, MayChangeAnswer, WaitsShort, "A container has a `postStart` hook. It takes no time.";
    PRE_STOP = 19, MayChangeAnswer, WaitsShort, "The run time of a `preStop` hook is unknown. It takes no time.";
    POD_FAILURE_RULE = 20, MayChangeAnswer, Unknown, "A Job has a rule of `podFailurePolicy` that is not simulated.";
    BLUE_GREEN = 21, MayChangeAnswer, Unknown, "A Rollout updates by `blueGreen`. The update is simulated without the wait for a promotion.";
    CANARY_STEPS = 22, MayChangeAnswer, Unknown, "A Rollout updates by canary steps. It updates as a Deployment does.";
    ROLLOUT_TEMPLATE = 23, ChangesAnswer, CostLowWaitsShort, "A Rollout takes its template from a workload that is not in the manifests, so its pods are missing.";
    DEPLOYMENT_MISSING = 24, AboutInput, None, "The manifests have ReplicaSets without their Deployment. It is rebuilt from them.";
    SIDECAR_PROXY = 25, MayChangeAnswer, Unknown, "A service mesh adds its proxy to pods, which then request more than their templates.";
    LIMIT_RANGE_REJECTS = 26, MayChangeAnswer, None, "A LimitRange rejects the pods of a workload.";
    POD_ENI_ASSUMED = 27, MayChangeAnswer, Unknown, "SecurityGroupPolicies select pods, and no DaemonSet `aws-node` sets `ENABLE_POD_ENI`. It is assumed on.";
    POD_ENI_OFF = 28, ChangesAnswer, WaitsShort, "SecurityGroupPolicies select pods, but `ENABLE_POD_ENI` is off. In a cluster such pods stay pending.";
    SERVICE_ACCOUNT_SELECTOR = 29, ChangesAnswer, CostLow, "A SecurityGroupPolicy uses `serviceAccountSelector`, which is not simulated.";
    QUOTA_RESOURCE = 30, MayChangeAnswer, Unknown, "A ResourceQuota limits a resource that is not counted here.";
    QUOTA_SCOPE = 31, MayChangeAnswer, Unknown, "A ResourceQuota has a scope that is not simulated. The quota applies to all pods.";
    CLAIM_ANNOTATION = 32, MayChangeAnswer, CostHighWaitsShort, "A claim sets its class by the beta annotation, which Karpenter does not read.";

    // Schedulers and scaling.
    SCHEDULER_PROFILES = 33, MayChangeAnswer, Unknown, "A KubeSchedulerConfiguration has several profiles. The first one places all pods.";
    SCHEDULER_ARGS = 34, MayChangeAnswer, Unknown, "A KubeSchedulerConfiguration sets arguments of a plugin that are not simulated.";
    SECOND_SCHEDULER = 35, MayChangeAnswer, CostHigh, "A ConfigMap configures a second scheduler. kube-scheduler with its defaults places the pods.";
    EXPANDER_PRIORITIES = 36, MayChangeAnswer, Unknown, "The ConfigMap of the expander `priority` has no readable priorities, so it ranks no group.";
    GPU_SHARING = 37, ChangesAnswer, CostHigh, "A device plugin shares GPUs. Here each GPU serves one pod.";
    HPA_ANNOTATION = 38, AboutInput, Unknown, "An annotation of a HorizontalPodAutoscaler is not valid JSON. It is ignored.";
    KEDA_ANNOTATION = 39, AboutInput, Unknown, "KEDA does not have the annotation. It is ignored.";
    KEDA_FALLBACK = 40, AboutInput, Unknown, "The `fallback` of a ScaledObject never applies, because `target` of its formula is no whole number.";
    TRIGGER_FROM_ENVIRONMENT = 41, ChangesAnswer, Unknown, "A trigger takes a required value from a container's environment, so it scales nothing.";
    KAFKA_TOPIC_FROM_ENVIRONMENT = 42, MayChangeAnswer, CostHigh, "A Kafka trigger takes its topic from a container's environment. The lag of every topic counts.";
    KAFKA_PARTITIONS = 43, MayChangeAnswer, CostHigh, "A Kafka trigger limits its partitions. All of them count.";
    TRIGGER_KEY = 44, AboutInput, Unknown, "A trigger's metadata has an unknown key. It is ignored.";
    EXTERNAL_TARGET = 45, MayChangeAnswer, Unknown, "An external trigger has no target. It is assumed to be 1.";
    UNKNOWN_TRIGGER = 46, MayChangeAnswer, Unknown, "KEDA documents no trigger of the type. It scales nothing until its values are set.";
    QUERY_NOT_ANSWERED = 47, ChangesAnswer, Unknown, "A query uses PromQL that is not simulated, so its trigger scales nothing.";

    // NodePools and node classes.
    UNKNOWN_KARPENTER_LABEL = 48, AboutInput, CostLowWaitsLong, "A label under `karpenter.k8s.aws` exists on no node.";
    UNKNOWN_INSTANCE_TYPE = 49, AboutInput, Unknown, "The region has no such instance type.";
    UNKNOWN_LABEL_VALUE = 50, AboutInput, Unknown, "No instance type of the region has the value of a label.";
    RESTRICTED_LABEL = 51, ChangesAnswer, Unknown, "A NodePool of a dump sets a label that its API rejects. It is ignored.";
    BETA_KEY = 52, AboutInput, Unknown, "A NodePool of `karpenter.sh/v1` sets a key of v1beta1, which the API server drops.";
    BETA_POLICY = 53, AboutInput, None, "A NodePool of `karpenter.sh/v1` uses the v1beta1 name of a consolidation policy. The v1 name is assumed.";
    CONSOLIDATE_AFTER_MISSING = 54, AboutInput, Unknown, "A NodePool of `karpenter.sh/v1` has no `consolidateAfter`. It is assumed to be `0s`.";
    MIN_VALUES = 55, AboutInput, Unknown, "`minValues` is larger than the number of values. The API server rejects that.";
    BUDGET_SCHEDULE = 56, ChangesAnswer, CostHigh, "The schedule of a disruption budget is not a cron expression. Karpenter then disrupts nothing of the pool.";
    CLASS_WITHOUT_IMAGES = 57, AboutInput, Unknown, "An EC2NodeClass of v1 has no `amiSelectorTerms`. Images of its family are assumed.";
    UNKNOWN_IMAGES = 58, MayChangeAnswer, CostLowWaitsShort, "A node class selects images whose architecture is unknown. Images of every architecture are assumed.";
    VOLUME_SIZE_UNKNOWN = 59, MayChangeAnswer, Unknown, "A block device has no `volumeSize`. 20Gi is assumed.";

    // Node groups and eksctl.
    MANAGED_DISTRIBUTION = 60, MayChangeAnswer, Unknown, "A managed node group sets `instancesDistribution`, which EKS does not have.";
    BOTTLEROCKET_SETTINGS = 61, AboutInput, Unknown, "Settings of Bottlerocket have no effect in this group: other images, or labels that eksctl overwrites.";
    BOTTLEROCKET_PLUGINS = 62, MayChangeAnswer, CostHigh, "Settings of Bottlerocket configure device plugins. Here each GPU is one device.";
    BOOTSTRAP_COMMANDS = 63, MayChangeAnswer, Unknown, "The commands of a node group set kubelet options that are not simulated.";
    NODE_REPAIR = 64, MayChangeAnswer, WaitsLong, "A node group overrides the repair of conditions that only the node monitoring agent reports. They do not occur here.";
    CONTROL_PLANE_TIER = 65, MayChangeAnswer, CostLowWaitsLong, "A ClusterConfig orders a tier of the control plane with unknown limits and price. The standard tier is used.";
    SUBNET_ZONE = 66, MayChangeAnswer, Unknown, "The zone of a subnet is unknown.";
    MIXED_ARCHITECTURES = 67, MayChangeAnswer, CostLowWaitsShort, "A node group has instance types of several architectures, of which an image boots one.";
    SMALL_VOLUME = 68, MayChangeAnswer, CostLowWaitsShort, "A volume is smaller than the snapshot of the image. EC2 launches no such instance.";
    EKSCTL_VOLUME = 69, MayChangeAnswer, None, "An additional volume lacks its name or size. eksctl does not create it.";
    SUSPENDED_PROCESSES_MANAGED = 70, AboutInput, Unknown, "A managed node group suspends processes, which eksctl does not support.";
    SUSPENDED_PROCESS = 71, MayChangeAnswer, Unknown, "A node group suspends a process that cannot be suspended here.";
    CAPABILITY = 72, ChangesAnswer, CostLow, "A ClusterConfig orders an EKS Capability of an unknown type. It is not billed.";
}
