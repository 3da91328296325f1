//! Lints of a cluster as files describe it, whether one pass packs it or a run simulates it.

nodecast_model::lints! {
    UNREAD_POOL = 80, ChangesAnswer, CostLowWaitsLong, "The Karpenter release does not read NodePools, or not Provisioners, so they launch nothing.";
    NODE_CLASS_MISSING = 81, MayChangeAnswer, Unknown, "The node class of a NodePool is not in the manifests. Its defaults are assumed.";
    USER_DATA = 82, ChangesAnswer, Unknown, "`userData` of a node class changes what nodes offer, which is not simulated.";
    ZONE_ID = 83, ChangesAnswer, CostLowWaitsLong, "Pods or NodePools select nodes by a zone id that nodes do not have, or that may mean another zone.";
    OVERLAYS_IGNORED = 84, ChangesAnswer, Unknown, "NodeOverlays are ignored under this policy.";
    OVERLAY = 85, MayChangeAnswer, Unknown, "A NodeOverlay is invalid, overlaps with another one, or has no effect.";
    OVERLAY_GATE_ASSUMED = 86, AboutInput, Unknown, "It is unknown whether the feature gate NodeOverlay is on. It is assumed on.";
    AUTO_MODE_POOL_IGNORED = 87, AboutInput, Unknown, "NodePools of EKS Auto Mode are ignored next to those of Karpenter.";
    NODES_MISSING = 88, AboutInput, Unknown, "Pods run on nodes that are not in the files. They are ignored.";
    VOLUMES_MISSING = 89, AboutInput, Unknown, "Pending pods have volumes whose claims are not in the files. They are bound to no zone.";
    BUFFER_NOT_PACKED = 90, AboutInput, CostLow, "One pass reserves no capacity for a CapacityBuffer.";
    FARGATE_NOT_PACKED = 91, MayChangeAnswer, CostHigh, "One pass also packs pods that a Fargate profile selects.";
    POOL_NOT_READY = 92, AboutInput, None, "A NodePool is not Ready, or is being deleted. It launches nothing.";
    RESERVATIONS_NOT_PACKED = 93, AboutInput, CostHigh, "An EC2NodeClass selects capacity reservations, which one pass does not use.";
}
