//! What the autoscaler is told of the cluster and of its groups.

use std::sync::Arc;

use nodecast_model::domain::pod::PodPhase;
use nodecast_model::domain::{
    LabelSelector, Labels, NodeId, PodId, PodSpec, Resources, SimDuration, SimTime, Symbol, Taint,
};
use nodecast_scheduler::PodVolumes;

/// The kinds of controllers that the rules tell apart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ControllerKind {
    /// A ReplicaSet, of a Deployment or by itself.
    ReplicaSet,
    /// A ReplicationController.
    ReplicationController,
    /// A StatefulSet.
    StatefulSet,
    /// A Job.
    Job,
    /// A DaemonSet.
    DaemonSet,
    /// Anything else, such as a custom resource.
    Other,
}

/// What controls a pod.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Controller {
    /// Its kind.
    pub kind: ControllerKind,
    /// Its name, which with the pod's namespace and the kind says which object it is.
    pub name: Symbol,
    /// Whether the object exists.
    pub exists: bool,
    /// Replicas that it wants.
    pub replicas: i64,
    /// Replicas that there are.
    pub current_replicas: i64,
}

/// `restartPolicy`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum RestartPolicy {
    /// Containers start again whenever they end.
    #[default]
    Always,
    /// They start again if they failed.
    OnFailure,
    /// They do not start again.
    Never,
}

/// What pods of one template share.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PodTraits {
    /// Their namespace.
    pub namespace: Symbol,
    /// Labels, annotations and specification.
    pub spec: Arc<PodSpec>,
    /// What controls them.
    pub controller: Option<Controller>,
    /// `restartPolicy`.
    pub restart_policy: RestartPolicy,
    /// Names of volumes on the node's disk: `hostPath`, and `emptyDir` that is not in memory.
    pub local_volumes: Vec<Symbol>,
    /// What their persistent volumes ask of a node.
    pub volumes: PodVolumes,
    /// Whether the specification states a priority at all; without one a pod is never expendable.
    pub has_priority: bool,
    /// `schedulerName`.
    pub scheduler: Symbol,
}

impl PodTraits {
    /// The traits of a pod in `namespace` that states nothing special.
    pub fn new(namespace: Symbol, spec: Arc<PodSpec>, controller: Option<Controller>) -> Self {
        Self {
            namespace,
            spec,
            controller,
            restart_policy: RestartPolicy::default(),
            local_volumes: Vec::new(),
            volumes: PodVolumes::default(),
            has_priority: true,
            scheduler: Symbol::new("default-scheduler"),
        }
    }

    /// The value of an annotation.
    pub fn annotation(&self, key: &str) -> Option<&'static str> {
        // Most pods have none, and looking up the key costs more than anything else that is asked of a pod.
        if self.spec.annotations.is_empty() {
            return None;
        }
        let key = Symbol::existing(key)?;
        self.spec.annotations.get(key).map(Symbol::as_str)
    }

    /// Whether a DaemonSet controls the pods, or an annotation says to take them for such.
    pub fn is_daemon(&self) -> bool {
        self.controller.is_some_and(|controller| controller.kind == ControllerKind::DaemonSet)
            || self.annotation("cluster-autoscaler.kubernetes.io/daemonset-pod") == Some("true")
    }

    /// Whether they mirror static pods of the kubelet.
    pub fn is_mirror(&self) -> bool {
        self.annotation("kubernetes.io/config.mirror").is_some()
    }

    /// Whether the kubelet got them from elsewhere than the API.
    pub fn is_static(&self) -> bool {
        self.annotation("kubernetes.io/config.source").is_some_and(|source| source != "api")
    }
}

/// Where a pod is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PodPlace {
    /// Bound to a node.
    Bound(NodeId),
    /// It evicted others from this node and waits for their room.
    Nominated(NodeId),
    /// The scheduler found no node (`PodScheduled` is `False`, reason `Unschedulable`).
    Unschedulable,
    /// The scheduler has not looked at it.
    Unprocessed,
    /// It is not for the scheduler: a scheduling gate is closed, or it names a node that does not have it yet.
    Gated,
}

/// A pod.
#[derive(Clone, PartialEq, Debug)]
pub struct PodView {
    /// Its id, the same in every iteration.
    pub id: PodId,
    /// What it shares with its siblings.
    pub traits: Arc<PodTraits>,
    /// When it was created.
    pub created: SimTime,
    /// Where it is in its life.
    pub phase: PodPhase,
    /// When its deletion was asked for.
    pub deleted_at: Option<SimTime>,
    /// Where it is.
    pub place: PodPlace,
}

/// A registered node.
#[derive(Clone, PartialEq, Debug)]
pub struct NodeView {
    /// Its id.
    pub id: NodeId,
    /// Its name.
    pub name: Arc<str>,
    /// Its group, as an index into [`Observation::groups`]; `None` for a node of no group.
    pub group: Option<usize>,
    /// Labels.
    pub labels: Labels,
    /// Annotations.
    pub annotations: Labels,
    /// Taints.
    pub taints: Vec<Taint>,
    /// Whether it is cordoned.
    pub unschedulable: bool,
    /// What it offers to pods.
    pub allocatable: Resources,
    /// What the machine has.
    pub capacity: Resources,
    /// How many volumes of each CSI driver it can attach.
    pub volume_limits: Vec<(Symbol, u32)>,
    /// When the Node object was created.
    pub created: SimTime,
    /// Whether its `Ready` condition is true.
    pub ready: bool,
    /// When that condition changed last.
    pub ready_since: SimTime,
    /// Condition `Suspended`.
    pub suspended: bool,
    /// The cloud has no such instance any more.
    pub instance_gone: bool,
}

/// What a node of a group looks like while it is new.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct NodeTemplate {
    /// Labels, without the host's name.
    pub labels: Labels,
    /// Taints.
    pub taints: Vec<Taint>,
    /// Whether it is cordoned.
    pub unschedulable: bool,
    /// What it offers to pods.
    pub allocatable: Resources,
    /// What the machine has.
    pub capacity: Resources,
    /// Pods that start with it: of DaemonSets and of the kubelet.
    pub pods: Vec<Arc<PodTraits>>,
}

/// Why an instance cannot be created.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum InstanceError {
    /// No capacity.
    OutOfResources,
    /// A quota of the account.
    QuotaExceeded,
    /// Anything else.
    Other,
}

/// An instance of a group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InstanceView {
    /// Its id at the cloud, or that of a placeholder.
    pub id: Arc<str>,
    /// Its node, once there is one.
    pub node: Option<NodeId>,
    /// Whether the cloud is deleting it.
    pub deleting: bool,
    /// Why it cannot be created, while that is so.
    pub error: Option<InstanceError>,
}

/// Settings of one group that stand above the flags.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct GroupOptions {
    /// `scaledownutilizationthreshold`.
    pub utilization_threshold: Option<f64>,
    /// `scaledowngpuutilizationthreshold`.
    pub gpu_utilization_threshold: Option<f64>,
    /// `scaledownunneededtime`.
    pub unneeded_time: Option<SimDuration>,
    /// `scaledownunreadytime`.
    pub unready_time: Option<SimDuration>,
    /// `ignoredaemonsetsutilization`.
    pub ignore_daemonsets_utilization: Option<bool>,
}

/// A node group as the provider knows it.
#[derive(Clone, PartialEq, Debug)]
pub struct GroupView {
    /// Its name.
    pub id: Symbol,
    /// What its Auto Scaling group is called.
    pub auto_scaling_group: Symbol,
    /// Fewest nodes.
    pub min: i64,
    /// Most nodes.
    pub max: i64,
    /// The desired capacity that the autoscaler knows of.
    pub target: i64,
    /// What the provider says that a first node would be.
    pub template: Option<Arc<NodeTemplate>>,
    /// Instances that the provider knows, with and without nodes.
    pub instances: Vec<InstanceView>,
    /// Settings of this group.
    pub options: GroupOptions,
    /// Price of a node per hour, for the expander `price`.
    pub price_per_hour: Option<f64>,
    /// Whether the group exists; one that does not would be created on the first scale-up.
    pub exists: bool,
}

/// A DaemonSet.
#[derive(Clone, PartialEq, Debug)]
pub struct DaemonSetView {
    /// Its name.
    pub name: Symbol,
    /// What its pods share.
    pub pods: Arc<PodTraits>,
}

/// A PodDisruptionBudget.
#[derive(Clone, PartialEq, Debug)]
pub struct BudgetView {
    /// Namespace.
    pub namespace: Symbol,
    /// The pods that it covers; `None` covers none.
    pub selector: Option<LabelSelector>,
    /// `status.disruptionsAllowed`.
    pub disruptions_allowed: i64,
}

/// Deletions of nodes that are under way.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Deletions {
    /// Nodes that had nothing to move.
    pub empty: Vec<NodeId>,
    /// Nodes that are drained.
    pub drained: Vec<NodeId>,
}

impl Deletions {
    /// Whether `node` is being deleted.
    pub fn contain(&self, node: NodeId) -> bool {
        self.empty.contains(&node) || self.drained.contains(&node)
    }

    /// Nodes being deleted.
    pub const fn len(&self) -> usize {
        self.empty.len() + self.drained.len()
    }

    /// Whether none is.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A draw that decides in which order an iteration lists pods and nodes. Upstream's listers go through Go maps, whose order is another
/// each time.
///
/// Source: client-go v0.36 `tools/cache/thread_safe_store.go`, `List`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Listing(pub u64);

impl Listing {
    /// The place of a pod in the list: pods with lower numbers come first.
    pub const fn pod(self, pod: PodId) -> u64 {
        self.place(2 * pod.0 as u64)
    }

    /// The place of a node in the list.
    pub const fn node(self, node: NodeId) -> u64 {
        self.place(2 * node.0 as u64 + 1)
    }

    /// Source: SplitMix64 (Steele, Lea and Flood, 2014), which gives different numbers to different things.
    const fn place(self, thing: u64) -> u64 {
        let mut mixed = self.0.wrapping_add(thing.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}

/// Everything that one iteration looks at.
#[derive(Clone, Copy, Debug)]
pub struct Observation<'a> {
    /// The iteration's start.
    pub now: SimTime,
    /// Registered nodes, as listed.
    pub nodes: &'a [NodeView],
    /// All pods.
    pub pods: &'a [PodView],
    /// The order in which pods that wait are listed; `None` for that of `pods`.
    pub listing: Option<Listing>,
    /// The groups, in order of name.
    pub groups: &'a [GroupView],
    /// DaemonSets.
    pub daemon_sets: &'a [DaemonSetView],
    /// Disruption budgets.
    pub budgets: &'a [BudgetView],
    /// Namespaces with their labels, for terms of pod affinity that select them. One that is not listed has no label but its name.
    pub namespaces: &'a [(Symbol, Labels)],
    /// Deletions under way.
    pub deletions: &'a Deletions,
    /// Pods evicted a moment ago.
    pub recent_evictions: &'a [PodView],
}

/// The calls that change a group, and its size after them.
pub trait GroupActions {
    /// Raises the desired capacity.
    ///
    /// # Errors
    /// The provider refused.
    fn increase_size(&mut self, group: usize, by: i64) -> Result<(), ResizeError>;
    /// Lowers the desired capacity without deleting an instance.
    ///
    /// # Errors
    /// The provider refused, for example because instances would have to go.
    fn decrease_target_size(&mut self, group: usize, by: i64) -> Result<(), ResizeError>;
    /// Deletes instances and lowers the desired capacity with them.
    ///
    /// # Errors
    /// The provider refused.
    fn delete_instances(&mut self, group: usize, instances: &[Arc<str>]) -> Result<(), ResizeError>;
    /// The desired capacity now.
    fn target_size(&self, group: usize) -> i64;
}

/// A refused change of a group.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct ResizeError(pub String);

#[cfg(test)]
mod tests {
    use super::Listing;
    use nodecast_model::domain::{NodeId, PodId};

    /// The first places of nine pods for this draw.
    fn left_over(draw: u64) -> Vec<u32> {
        let mut pods: Vec<u32> = (0..9).collect();
        pods.sort_by_key(|&pod| Listing(draw.wrapping_mul(0x2545_F491_4F6C_DD1D)).pod(PodId(pod)));
        pods[6..].to_vec()
    }

    #[test]
    fn old_pods_are_left_over_by_chance() {
        // Of nine pods three are old, and six find room: that all left over are new has the chance C(6, 3) / C(9, 3).
        let draws = 20_000;
        let new = (0..draws).filter(|&draw| left_over(draw).iter().all(|&pod| pod >= 3)).count();
        let share = new as f64 / draws as f64;
        assert!((share - 20.0 / 84.0).abs() < 0.01, "{share}");
    }

    #[test]
    fn pod_and_node_of_one_number_differ() {
        let listing = Listing(7);
        assert_ne!(listing.pod(PodId(4)), listing.node(NodeId(4)));
        assert_ne!(listing.node(NodeId(4)), Listing(8).node(NodeId(4)));
    }
}
