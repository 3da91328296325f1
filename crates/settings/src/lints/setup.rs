//! Lints of what a run leaves out or assumes, known before it starts.

nodecast_model::lints! {
    // Size, policies, pods.
    LARGE_RUN = 200, Harmless, None, "The run has many pods, nodes, or samples. It takes long, or samples are thinned out.";
    PODS_IGNORED = 201, ChangesAnswer, CostLowWaitsShort, "Pods in the manifests are completed, or owned by an object that is not in the manifests.";
    INTERRUPTIONS_HANDLED_TWICE = 202, ChangesAnswer, Unknown, "Karpenter and the Node Termination Handler both act on interruption notices.";
    COST_AWARE_PACKER = 203, ChangesAnswer, Unknown, "The policy uses the cost-aware packer, which no Karpenter release has.";
    NO_NODE_AUTOSCALER = 204, ChangesAnswer, CostLowWaitsLong, "The policy has no node autoscaler, but the manifests have NodePools.";
    NODE_POOLS_IGNORED = 205, Harmless, None, "The policy uses Cluster Autoscaler, which ignores NodePools.";
    SCHEDULING_GATES = 206, ChangesAnswer, CostLowWaitsLong, "Pod templates have `schedulingGates`, which the simulation never removes.";
    MISSING_NODE_NAME = 207, ChangesAnswer, CostLowWaitsLong, "Pod templates set `nodeName` to a node that does not exist.";
    TOO_LARGE_PODS = 208, ChangesAnswer, CostLowWaitsLong, "Pods request more than any allowed instance type has.";
    DEVICE_MISSING = 209, ChangesAnswer, CostLowWaitsLong, "Pods request a device that no allowed instance type has.";
    RESOURCE_CLAIMS = 210, ChangesAnswer, CostLowWaitsLong, "Pod templates have `resourceClaims`. No node has devices, so the pods stay pending.";
    JOB_MANAGED_BY = 211, ChangesAnswer, CostLowWaitsShort, "Jobs set `managedBy`. Another controller runs them, which is not simulated.";
    FIELD_OF_LATER_RELEASE = 212, MayChangeAnswer, Unknown, "An object has a field that the API server of the Kubernetes release drops.";
    POD_FIELD_OF_LATER_RELEASE = 213, ChangesAnswer, Unknown, "Pod templates have a field that the Kubernetes release ignores, and that is simulated anyway.";
    AFFINITY_LABEL_KEYS = 214, ChangesAnswer, Unknown, "Pod affinity uses `matchLabelKeys`, which the Kubernetes release ignores, and that is simulated anyway.";
    JOB_INDEX_LABEL = 215, MayChangeAnswer, Unknown, "An object selects pods by the index of their Job. Pods here do not have this label.";

    // Load and usage.
    LOADS_OVERLAP = 216, AboutInput, Unknown, "Two loads on a workload start at the same time. Only the later entry is used.";
    CLOSED_LOOP_FLUID = 217, MayChangeAnswer, WaitsLong, "The clients of a closed loop neither time out nor are rejected, because the load is a fluid.";
    WITHOUT_LOAD = 218, ChangesAnswer, CostLowWaitsShort, "Workloads with an autoscaler have neither load nor usage, so their replicas do not follow demand.";
    USAGE_CONTAINER = 219, MayChangeAnswer, Unknown, "`usage` names a container that the pods do not have. It is split among all containers.";
    CPU_LIMITS_DIFFER = 220, MayChangeAnswer, Unknown, "The containers of a pod under load have different CPU limits. One of them is assumed to do the work.";

    // NodePools and Karpenter.
    KARPENTER_RELEASE = 221, MayChangeAnswer, Unknown, "The Karpenter release is not reproduced in full, or not at all.";
    OPTION_OF_LATER_KARPENTER = 222, MayChangeAnswer, None, "An option or feature gate came with a later Karpenter release. It has no effect.";
    CONSOLIDATION_OF_LATER_KARPENTER = 223, ChangesAnswer, CostHigh, "A Provisioner sets `consolidation`, which the Karpenter release does not have.";
    BALANCED_OF_LATER_KARPENTER = 224, MayChangeAnswer, Unknown, "A NodePool sets `consolidationPolicy: Balanced`, which the Karpenter release does not have.";
    STATIC_POOL_OFF = 225, ChangesAnswer, CostLowWaitsLong, "A NodePool is static, but the feature gate `static_capacity` is off.";
    WINDOWS_LICENCE = 226, ChangesAnswer, CostLow, "Windows nodes are billed at Linux prices.";
    DEDICATED_TENANCY = 227, ChangesAnswer, CostLow, "Nodes have dedicated tenancy, but are billed at shared-tenancy prices.";
    NO_IMAGE_RELEASES = 228, MayChangeAnswer, Unknown, "An EC2NodeClass uses the newest image, and no image is released during the run.";
    IMAGE_RELEASES_UNUSED = 229, MayChangeAnswer, None, "`image_release_every` has no effect with these node classes or this Karpenter release.";
    RESERVATIONS_UNUSED = 230, MayChangeAnswer, CostHigh, "An EC2NodeClass selects capacity reservations, which Karpenter does not use.";
    RESERVATIONS_MISSING = 231, MayChangeAnswer, CostHigh, "An EC2NodeClass selects capacity reservations, but `ec2.capacity_reservations` is empty.";
    EBS_ZONE = 232, ChangesAnswer, CostLowWaitsLong, "Pods select nodes by the zone label of the EBS CSI driver, which new nodes lack.";
    BUFFER_IGNORED = 233, ChangesAnswer, CostLowWaitsLong, "A CapacityBuffer reserves no capacity in this run.";
    STARTUP_TAINT_ASSUMED = 234, MayChangeAnswer, Unknown, "The DaemonSet that removes a startup taint is not in the manifests. A delay is assumed.";
    STARTUP_TAINT_STAYS = 235, ChangesAnswer, WaitsLong, "No pod removes a startup taint, so pods that do not tolerate it wait.";
    STARTUP_TAINT_UNDECLARED = 236, ChangesAnswer, Unknown, "The node autoscaler is not told of a startup taint of its nodes.";

    // EKS Auto Mode and node groups.
    AUTO_MODE_AGENTS = 237, Harmless, None, "DaemonSets run no pods on EKS Auto Mode nodes, which have their functions built in.";
    AUTO_MODE_FOREIGN_POOLS = 238, ChangesAnswer, CostLowWaitsLong, "EKS Auto Mode does not use NodePools with another node class.";
    AUTO_MODE_EMPTY_POOL = 239, ChangesAnswer, CostLowWaitsLong, "No instance type meets the requirements of a NodePool of EKS Auto Mode.";
    UNDISCOVERED_GROUP = 240, MayChangeAnswer, Unknown, "Cluster Autoscaler does not discover a node group, so it keeps its size.";
    EXPANDER_WITHOUT_RANKS = 241, MayChangeAnswer, Unknown, "The expander `priority` has no ConfigMap, so it prefers no group.";
    UNSEEN_TAGS = 242, MayChangeAnswer, Unknown, "EKS does not pass labels or taints of a managed node group to its Auto Scaling group.";
    EXPANDER_PATTERN = 243, ChangesAnswer, Unknown, "A pattern of the expander `priority` matches no Auto Scaling group.";
    EXPANDER_UNRANKED = 244, MayChangeAnswer, Unknown, "The expander `priority` ranks some node groups and not others.";

    // Autoscalers of replicas and of requests.
    QUEUE_MISSING = 245, MayChangeAnswer, Unknown, "No entry under `queues` feeds a ScaledJob. Each of its pods is assumed to run for 1 minute.";
    TRIGGER_FAILS = 246, ChangesAnswer, Unknown, "A trigger of a ScaledJob or ScaledObject always fails for lack of data.";
    TRIGGER_WITHOUT_DATA = 247, ChangesAnswer, Unknown, "A trigger has no data, so it never scales.";
    MEMORY_TRIGGER = 248, ChangesAnswer, CostHighWaitsShort, "A memory trigger has no data, so its workload cannot scale down.";
    SERIES_MISSING = 249, ChangesAnswer, Unknown, "A query uses a series that is not under `prometheus`.";
    COUNTER_WITHOUT_RATE = 250, MayChangeAnswer, CostHighWaitsShort, "A query reads a counter without rate() or increase().";
    METRIC_WITHOUT_DATA = 251, ChangesAnswer, Unknown, "A HorizontalPodAutoscaler has no data for a metric.";
    RESOURCE_WITHOUT_DATA = 252, ChangesAnswer, CostHighWaitsShort, "A resource metric of a ScaledObject has no data, so its workload cannot scale down.";
    SHARED_METRIC = 253, ChangesAnswer, Unknown, "`external_metrics` sets one value of a metric that autoscalers read with different selectors.";
    SHARED_SELECTOR = 254, AboutInput, Unknown, "A HorizontalPodAutoscaler also reads pods of other workloads, which its target's selector matches.";
    VPA_WITHOUT_TARGET = 255, AboutInput, Unknown, "The target of a VerticalPodAutoscaler does not exist.";
    VPA_WITHOUT_USAGE = 256, MayChangeAnswer, Unknown, "A VerticalPodAutoscaler recommends nothing, or not for every container, for lack of usage.";
    VPA_NO_RESIZE = 257, MayChangeAnswer, None, "A VerticalPodAutoscaler resizes pods in place, which this Kubernetes or VPA release does not do.";
    VPA_RECOMMENDER = 258, MayChangeAnswer, Unknown, "A VerticalPodAutoscaler uses another recommender, which is not simulated.";
    VPA_AND_HPA = 259, MayChangeAnswer, Unknown, "A VerticalPodAutoscaler and a HorizontalPodAutoscaler act on the same resource of a workload.";

    // Storage.
    CLAIM_WITHOUT_VOLUME = 260, ChangesAnswer, WaitsShort, "A claim asks for a hand-made volume that is not in the manifests. The default class is assumed.";
    CLAIM_MISSING = 261, ChangesAnswer, CostLow, "A PersistentVolumeClaim is not in the manifests. Its volume is not billed.";
    READ_WRITE_ONCE_POD = 262, ChangesAnswer, Unknown, "A claim asks for `ReadWriteOncePod`, which the Kubernetes release rejects. Pods may share it here.";
    ATTRIBUTES_CLASS_DROPPED = 263, ChangesAnswer, Unknown, "The Kubernetes release drops `volumeAttributesClassName`.";
    ATTRIBUTES_CLASS_MISSING = 264, ChangesAnswer, Unknown, "A VolumeAttributesClass is not in the manifests, or of another driver.";
    VOLUME_MISSING = 265, MayChangeAnswer, Unknown, "Volumes of claims are not in the manifests. The zone of their first pod is assumed.";
    VOLUME_UNUSED = 266, Harmless, None, "No claim uses a PersistentVolume.";
    STORAGE_CLASS_MISSING = 267, MayChangeAnswer, Unknown, "A StorageClass is not in the manifests. The default class of EKS is assumed.";
    VOLUME_SIZE_UNKNOWN = 268, ChangesAnswer, CostLow, "The size of a volume is unknown, so it is not billed.";
    VOLUME_REJECTED = 269, ChangesAnswer, WaitsShort, "EBS or its CSI driver rejects a volume. In a cluster its pods stay pending.";
    DRIVER_NOT_SIMULATED = 270, MayChangeAnswer, Unknown, "A StorageClass uses another driver. Its volumes are reachable from every node.";

    // The start of a run, its timeline and its bill.
    NODES_OF_OTHER_POLICY = 271, ChangesAnswer, Unknown, "Nodes of the dump belong to a NodePool or group that this policy lacks. Their pods move.";
    UNMANAGED_NODES = 272, ChangesAnswer, CostHigh, "No controller of this policy manages nodes of the dump. They stay to the end.";
    NODES_WITHOUT_PRICE = 273, ChangesAnswer, CostLow, "Nodes of the dump have no known price. They cost nothing.";
    FARGATE_NODES = 274, ChangesAnswer, CostLow, "Nodes of the dump are on Fargate. They cost nothing.";
    NODES_NOT_READY = 275, MayChangeAnswer, Unknown, "Nodes of the dump are not Ready. They stay so to the end.";
    PODS_WITHOUT_CONTROLLER = 276, MayChangeAnswer, CostLow, "The controller of pods of the dump is not in the scenario, so they are not recreated.";
    JOB_START = 277, MayChangeAnswer, Unknown, "The start of a Job of the dump is unknown, or after the dump.";
    APPLIED_TOO_LATE = 278, MayChangeAnswer, Unknown, "The timeline applies or deletes an object that is only read at the start of a run.";
    SCHEDULER_CONFIG_LATE = 279, ChangesAnswer, Unknown, "The timeline applies a KubeSchedulerConfiguration, which kube-scheduler reads only at its start.";
    FARGATE_PROFILE_LATE = 280, ChangesAnswer, Unknown, "The timeline applies Fargate profiles, which take effect only from the start.";
    GROUP_LATE = 281, ChangesAnswer, CostLowWaitsLong, "The timeline applies a new node group. Groups are not created during a run.";
    GROUP_UPDATE = 282, MayChangeAnswer, CostLow, "The timeline updates a node group. No node is replaced for it.";
    BALANCER_KIND = 283, MayChangeAnswer, Unknown, "The timeline changes the kind of an existing load balancer, which stays as it is.";
    COMMITMENT_PRICE = 284, MayChangeAnswer, CostLow, "The price of a commitment is derived from its term.";
    RESERVATION_PLATFORM = 285, ChangesAnswer, CostHigh, "Reserved Instances are for an operating system that no node runs.";
    DEFAULT_SPREAD = 286, ChangesAnswer, CostHigh, "Karpenter requires a default topology spread that kube-scheduler does not apply.";
    WEIGHTED_GROUP = 287, ChangesAnswer, CostLowWaitsLong, "Cluster Autoscaler counts the capacity units of a node group with weights as nodes.";
    UPDATE_BLOCKED = 288, MayChangeAnswer, None, "Disruption budgets allow no eviction of pods that an update of a managed node group drains.";
    UPDATE_WITHOUT_ROOM = 289, MayChangeAnswer, None, "A vCPU quota or a subnet cannot hold the additional nodes of an update of a managed node group.";
    UPDATE_AND_AUTOSCALER = 290, MayChangeAnswer, None, "Cluster Autoscaler scales a managed node group that is updated. The group can end larger.";
    WARM_POOL_RESERVATION = 291, MayChangeAnswer, CostHigh, "Instances of a warm pool use no capacity reservation of their type.";
    GROUP_OF_OTHER_POLICY = 292, Harmless, None, "A step of the timeline is for a node group that only other policies have.";
}
