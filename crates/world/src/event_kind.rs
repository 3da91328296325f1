//! What can happen, by name.
//!
//! What must not live here: why it happened, or to whom.

/// The kind of an event.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum EventKind {
    /// Objects of a manifest came to be.
    ManifestApplied,
    /// A changed pod template began to take the place of the former one.
    RolloutStarted,
    /// All pods were of the present template.
    RolloutFinished,
    /// A rollout made no progress for longer than its deadline.
    RolloutStalled,
    /// The control plane was upgraded.
    ControlPlaneUpgraded,
    /// The timeline set a replica count.
    ReplicasSet,
    /// The HorizontalPodAutoscaler set a replica count.
    Rescaled,
    /// The HorizontalPodAutoscaler could not work out a count.
    RescaleFailed,
    /// KEDA set a replica count because a trigger was active.
    ScaleTargetActivated,
    /// KEDA set a replica count because no trigger was active any more.
    ScaleTargetDeactivated,
    /// KEDA or a CronJob made Jobs.
    JobsCreated,
    /// All pods of a Job succeeded that had to.
    JobFinished,
    /// A Job was given up.
    JobFailed,
    /// A pod ended by itself, its work not done.
    PodFailed,
    /// A pod ended by itself, its work done.
    PodSucceeded,
    /// KEDA could not read a trigger.
    TriggerFailed,
    /// KEDA could read a trigger again.
    TriggerRecovered,
    /// A node was there when the run began.
    NodeFound,
    /// A pod was there when the run began.
    PodFound,
    /// A pod was created.
    PodCreated,
    /// The scheduler found no node for a pod.
    PodUnschedulable,
    /// A pod was bound.
    PodScheduled,
    /// A volume was made for a claim of a pod.
    ProvisioningSucceeded,
    /// A pod's volume was still attached to another node.
    FailedAttachVolume,
    /// A pod's containers ran.
    PodStarted,
    /// A pod was Ready.
    PodReady,
    /// The API server refused pods of a workload.
    FailedCreate,
    /// A pod's containers were killed, and start again.
    PodKilled,
    /// A pod's containers ended well.
    PodFinished,
    /// A pod's deletion was asked for.
    PodDeleted,
    /// A pod was evicted.
    PodEvicted,
    /// A pod was gone.
    PodRemoved,
    /// Karpenter computed what to launch.
    ClaimsComputed,
    /// Karpenter could not place a pod.
    PodNotPlaced,
    /// Karpenter made a node claim.
    ClaimCreated,
    /// A launch request was sent.
    LaunchRequested,
    /// EC2 answered with an instance.
    InstanceLaunched,
    /// EC2 had no capacity.
    LaunchFailed,
    /// An instance was running.
    InstanceRunning,
    /// A node registered.
    NodeRegistered,
    /// A node was Ready.
    NodeReady,
    /// A node was no longer Ready.
    NodeNotReady,
    /// Karpenter counted a node initialized.
    NodeInitialized,
    /// A node was found empty.
    NodeEmpty,
    /// A node is no longer empty.
    NodeInUse,
    /// A node autoscaler tainted a node.
    NodeTainted,
    /// A node autoscaler took its taint off a node.
    NodeUntainted,
    /// A node was found drifted.
    NodeDrifted,
    /// Karpenter's disruption found something to do.
    CommandProposed,
    /// The second look found that it no longer holds.
    CommandRejected,
    /// A disruption command was started.
    CommandStarted,
    /// The nodes of a command were deleted.
    CommandSucceeded,
    /// A command was given up.
    CommandFailed,
    /// A node's removal was decided.
    NodeDisrupted,
    /// A node had no pod left that had to leave.
    NodeDrained,
    /// A drained node waited for volumes to be detached.
    AwaitingVolumeDetachment,
    /// An instance's termination was asked for.
    InstanceTerminating,
    /// An instance was gone.
    InstanceTerminated,
    /// EC2 warned that a Spot instance is at risk.
    RebalanceRecommended,
    /// EC2 gave a Spot instance its notice.
    InterruptionNotice,
    /// EC2 took a Spot instance.
    InstanceReclaimed,
    /// On-Demand was asked for although Spot was allowed.
    SpotFallback,
    /// EC2 refused to take a call.
    CallThrottled,
    /// A call failed on EC2's side.
    CallFailed,
    /// EC2 gave up a launch that it had accepted.
    LaunchAborted,
    /// A node had not been heard of for too long.
    NodeUnreachable,
    /// A node was heard of again.
    NodeReachable,
    /// The CPU credits of a node were spent: its CPU went down to the baseline.
    CreditsSpent,
    /// An injected fault began.
    FaultBegan,
    /// An injected fault ended.
    FaultEnded,
    /// Cluster Autoscaler found that node groups help pods that wait.
    ScaledUpGroup,
    /// A pod was one of those for which a node group grew.
    TriggeredScaleUp,
    /// No node group grew for a pod.
    NotTriggerScaleUp,
    /// Cluster Autoscaler found that a scale-up had failed.
    FailedToScaleUpGroup,
    /// Cluster Autoscaler found that a node of which little is requested has to stay for its pods.
    NodeNotRemovable,
    /// Cluster Autoscaler gave up instances that did not become nodes.
    DeleteUnregistered,
    /// Cluster Autoscaler did nothing, for a reason that concerns the whole cluster.
    AutoscalingHeldBack,
    /// Somebody set the desired size of a node group.
    DesiredCapacitySet,
    /// A node group could not launch an instance.
    ScalingActivityFailed,
    /// An update or an instance refresh of a node group began.
    GroupUpdateStarted,
    /// It entered its next phase.
    GroupUpdateAdvanced,
    /// It ended well.
    GroupUpdateSucceeded,
    /// It was given up.
    GroupUpdateFailed,
    /// Load began.
    LoadStarted,
    /// Load ended.
    LoadFinished,
    /// Somebody cordoned a node.
    NodeCordoned,
    /// Somebody uncordoned a node.
    NodeUncordoned,
    /// Somebody's drain of a node was given up.
    DrainFailed,
    /// Somebody deleted an object.
    ObjectDeleted,
    /// The Vertical Pod Autoscaler made a first recommendation for a workload.
    RecommendationProvided,
    /// A pod was resized where it runs.
    PodResized,
    /// A pod was to be resized where it runs; its node has no room for that at present.
    ResizeDeferred,
    /// A pod was to be resized where it runs; its node could never hold it.
    ResizeInfeasible,
    /// A resize of a pod did not come off.
    ResizeError,
    /// The control plane had another tier from then on.
    ControlPlaneTierChanged,
}

impl EventKind {
    /// The kind as `events.jsonl` writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ControlPlaneUpgraded => "ControlPlaneUpgraded",
            Self::ControlPlaneTierChanged => "ControlPlaneTierChanged",
            Self::ManifestApplied => "ManifestApplied",
            Self::RolloutStarted => "RolloutStarted",
            Self::RolloutFinished => "RolloutFinished",
            Self::RolloutStalled => "RolloutStalled",
            Self::ReplicasSet => "ReplicasSet",
            Self::Rescaled => "Rescaled",
            Self::RescaleFailed => "RescaleFailed",
            Self::ScaleTargetActivated => "ScaleTargetActivated",
            Self::ScaleTargetDeactivated => "ScaleTargetDeactivated",
            Self::JobsCreated => "JobsCreated",
            Self::JobFailed => "JobFailed",
            Self::PodFailed => "PodFailed",
            Self::JobFinished => "JobFinished",
            Self::PodSucceeded => "PodSucceeded",
            Self::TriggerFailed => "TriggerFailed",
            Self::TriggerRecovered => "TriggerRecovered",
            Self::NodeFound => "NodeFound",
            Self::PodFound => "PodFound",
            Self::PodCreated => "PodCreated",
            Self::FailedCreate => "FailedCreate",
            Self::PodUnschedulable => "PodUnschedulable",
            Self::PodScheduled => "PodScheduled",
            Self::ProvisioningSucceeded => "ProvisioningSucceeded",
            Self::FailedAttachVolume => "FailedAttachVolume",
            Self::PodStarted => "PodStarted",
            Self::PodReady => "PodReady",
            Self::PodKilled => "PodKilled",
            Self::PodFinished => "PodFinished",
            Self::PodDeleted => "PodDeleted",
            Self::PodEvicted => "PodEvicted",
            Self::PodRemoved => "PodRemoved",
            Self::ClaimsComputed => "ClaimsComputed",
            Self::PodNotPlaced => "PodNotPlaced",
            Self::ClaimCreated => "ClaimCreated",
            Self::LaunchRequested => "LaunchRequested",
            Self::InstanceLaunched => "InstanceLaunched",
            Self::LaunchFailed => "LaunchFailed",
            Self::InstanceRunning => "InstanceRunning",
            Self::NodeRegistered => "NodeRegistered",
            Self::NodeReady => "NodeReady",
            Self::NodeNotReady => "NodeNotReady",
            Self::NodeInitialized => "NodeInitialized",
            Self::NodeEmpty => "NodeEmpty",
            Self::NodeInUse => "NodeInUse",
            Self::NodeTainted => "NodeTainted",
            Self::NodeUntainted => "NodeUntainted",
            Self::NodeDrifted => "NodeDrifted",
            Self::CommandProposed => "CommandProposed",
            Self::CommandRejected => "CommandRejected",
            Self::CommandStarted => "CommandStarted",
            Self::CommandSucceeded => "CommandSucceeded",
            Self::CommandFailed => "CommandFailed",
            Self::NodeDisrupted => "NodeDisrupted",
            Self::NodeDrained => "NodeDrained",
            Self::AwaitingVolumeDetachment => "AwaitingVolumeDetachment",
            Self::InstanceTerminating => "InstanceTerminating",
            Self::InstanceTerminated => "InstanceTerminated",
            Self::RebalanceRecommended => "RebalanceRecommended",
            Self::InterruptionNotice => "InterruptionNotice",
            Self::InstanceReclaimed => "InstanceReclaimed",
            Self::SpotFallback => "SpotFallback",
            Self::CallThrottled => "CallThrottled",
            Self::CallFailed => "CallFailed",
            Self::LaunchAborted => "LaunchAborted",
            Self::NodeUnreachable => "NodeUnreachable",
            Self::CreditsSpent => "CreditsSpent",
            Self::NodeReachable => "NodeReachable",
            Self::FaultBegan => "FaultBegan",
            Self::FaultEnded => "FaultEnded",
            Self::ScaledUpGroup => "ScaledUpGroup",
            Self::TriggeredScaleUp => "TriggeredScaleUp",
            Self::NotTriggerScaleUp => "NotTriggerScaleUp",
            Self::FailedToScaleUpGroup => "FailedToScaleUpGroup",
            Self::NodeNotRemovable => "NodeNotRemovable",
            Self::DeleteUnregistered => "DeleteUnregistered",
            Self::AutoscalingHeldBack => "AutoscalingHeldBack",
            Self::DesiredCapacitySet => "DesiredCapacitySet",
            Self::ScalingActivityFailed => "ScalingActivityFailed",
            Self::GroupUpdateStarted => "GroupUpdateStarted",
            Self::GroupUpdateAdvanced => "GroupUpdateAdvanced",
            Self::GroupUpdateSucceeded => "GroupUpdateSucceeded",
            Self::GroupUpdateFailed => "GroupUpdateFailed",
            Self::LoadStarted => "LoadStarted",
            Self::LoadFinished => "LoadFinished",
            Self::NodeCordoned => "NodeCordoned",
            Self::NodeUncordoned => "NodeUncordoned",
            Self::DrainFailed => "DrainFailed",
            Self::ObjectDeleted => "ObjectDeleted",
            Self::RecommendationProvided => "RecommendationProvided",
            Self::PodResized => "PodResized",
            Self::ResizeDeferred => "ResizeDeferred",
            Self::ResizeInfeasible => "ResizeInfeasible",
            Self::ResizeError => "ResizeError",
        }
    }
}
