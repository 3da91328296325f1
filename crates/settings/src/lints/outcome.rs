//! Lints of what a run showed.

nodecast_model::lints! {
    CPU_SHORTFALL = 400, ChangesAnswer, CostLowWaitsShort, "Replicas were short of CPU. Work that they could not do was dropped.";
    CONTROL_PLANE_SURCHARGE = 401, ChangesAnswer, CostLow, "`ec2.billing.control_plane` is set, so the bill omits extended support.";
    PRICES_NOT_KNOWN = 402, ChangesAnswer, CostLow, "The region has no known prices for items other than instances.";
    TRAFFIC_NOT_KNOWN = 403, ChangesAnswer, CostLow, "The data transfer of requests is unknown, so it is not in the bill.";
    SMOOTH_LOAD = 404, MayChangeAnswer, WaitsShort, "Loads in cores are smooth curves without bursts or noise.";
    STEP_WITHOUT_EFFECT = 405, MayChangeAnswer, Unknown, "A step of the timeline or a fault found no object, or the API server rejected its edit.";
    IDLE_FAULT = 406, MayChangeAnswer, None, "A fault changed nothing while it lasted.";
    JOBS_IN_WARM_UP = 407, MayChangeAnswer, None, "Jobs ran only within the warm-up. Waits and churn exclude them.";
    NODES_OUT_OF_MEMORY = 408, MayChangeAnswer, None, "Kubelets evicted pods because nodes ran out of memory.";
    ATTACH_LIMIT = 409, ChangesAnswer, None, "Pods were bound to nodes that cannot attach their volumes.";
    STATIC_POOL_CLAIMS = 410, MayChangeAnswer, WaitsLong, "Karpenter created NodeClaims of a static NodePool without an available offering, without pauses.";
    NODE_STILL_DRAINING = 411, MayChangeAnswer, None, "A node has been draining for over 15 minutes when the run ends.";
    ROLLOUT_STALLED = 412, MayChangeAnswer, None, "The rollout of a Deployment is stuck when the run ends.";
    BUSY_CONTROLLER = 413, MayChangeAnswer, None, "A controller was busy most of the time.";
    CLIENT_LIMIT = 414, MayChangeAnswer, None, "The client limit delayed the calls of a controller, or its workers were too few.";
    SUPPORT_DATES = 415, MayChangeAnswer, CostLow, "EKS's standard support of the Kubernetes release ends during the run, or its end is unknown.";
    CAPABILITY_ITEMS = 416, ChangesAnswer, CostLow, "A ClusterConfig orders EKS Capabilities. Their items are unknown, so only the hourly price is billed.";
    CAPABILITY_PRICES = 417, MayChangeAnswer, CostLow, "The region has no known prices of EKS Capabilities. Prices of us-east-2 are used.";
}
