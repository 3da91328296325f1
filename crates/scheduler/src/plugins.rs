//! The plugins of the default profile, sets of them, and the reasons with which they turn a node down.

use std::fmt;

use nodecast_model::domain::{KubernetesBehaviour, KubernetesVersion, ResourceName, Symbol, Taint};

/// A plugin of the default profile that filters or scores.
///
/// Source: Kubernetes 1.36 `pkg/scheduler/apis/config/v1/default_plugins.go`.
///
/// Deviation: VolumeZone and NodeDeclaredFeatures are omitted: they accept every node. DynamicResources reads no
/// ResourceSlice, so it accepts no node for a pod with resource claims. It runs before PodTopologySpread.
/// VolumeRestrictions applies to claims that only one pod may use at a time, but not to disks that a pod names
/// without a claim.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Plugin {
    /// Turns down cordoned nodes.
    NodeUnschedulable,
    /// Holds a pod to the node that its specification names.
    NodeName,
    /// Turns down nodes with taints that the pod does not tolerate; prefers those with fewer soft taints.
    TaintToleration,
    /// Node selector and node affinity.
    NodeAffinity,
    /// Host ports.
    NodePorts,
    /// Room for the pod's requests; prefers emptier nodes (or fuller ones, by configuration).
    NodeResourcesFit,
    /// How many volumes a node can attach.
    NodeVolumeLimits,
    /// Where the pod's volumes are, or can be made.
    VolumeBinding,
    /// Claims that one pod may use at a time.
    VolumeRestrictions,
    /// Devices of resource claims.
    DynamicResources,
    /// Topology spread constraints.
    PodTopologySpread,
    /// Pod affinity and anti-affinity.
    InterPodAffinity,
    /// Prefers nodes whose CPU and memory are used evenly.
    NodeResourcesBalancedAllocation,
    /// Prefers nodes that hold the pod's images.
    ImageLocality,
}

impl Plugin {
    /// Every plugin: first those that filter, in the order in which they do.
    pub const ALL: [Self; 14] = [
        Self::NodeUnschedulable,
        Self::NodeName,
        Self::TaintToleration,
        Self::NodeAffinity,
        Self::NodePorts,
        Self::NodeResourcesFit,
        Self::NodeVolumeLimits,
        Self::VolumeBinding,
        Self::VolumeRestrictions,
        Self::DynamicResources,
        Self::PodTopologySpread,
        Self::InterPodAffinity,
        Self::NodeResourcesBalancedAllocation,
        Self::ImageLocality,
    ];

    /// The plugins that score.
    pub const SCORING: [Self; 7] = [
        Self::TaintToleration,
        Self::NodeAffinity,
        Self::NodeResourcesFit,
        Self::PodTopologySpread,
        Self::InterPodAffinity,
        Self::NodeResourcesBalancedAllocation,
        Self::ImageLocality,
    ];

    /// The plugin's name as Kubernetes writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NodeUnschedulable => "NodeUnschedulable",
            Self::NodeName => "NodeName",
            Self::TaintToleration => "TaintToleration",
            Self::NodeAffinity => "NodeAffinity",
            Self::NodePorts => "NodePorts",
            Self::NodeResourcesFit => "NodeResourcesFit",
            Self::NodeVolumeLimits => "NodeVolumeLimits",
            Self::VolumeBinding => "VolumeBinding",
            Self::VolumeRestrictions => "VolumeRestrictions",
            Self::DynamicResources => "DynamicResources",
            Self::PodTopologySpread => "PodTopologySpread",
            Self::InterPodAffinity => "InterPodAffinity",
            Self::NodeResourcesBalancedAllocation => "NodeResourcesBalancedAllocation",
            Self::ImageLocality => "ImageLocality",
        }
    }

    /// The factor on the plugin's normalised score; zero for those that only filter.
    pub const fn weight(self) -> i64 {
        match self {
            Self::TaintToleration => 3,
            Self::NodeAffinity | Self::PodTopologySpread | Self::InterPodAffinity => 2,
            Self::NodeResourcesFit | Self::NodeResourcesBalancedAllocation | Self::ImageLocality => 1,
            Self::NodeUnschedulable
            | Self::NodeName
            | Self::NodePorts
            | Self::NodeVolumeLimits
            | Self::VolumeBinding
            | Self::VolumeRestrictions
            | Self::DynamicResources => 0,
        }
    }
}

impl fmt::Display for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A set of plugins.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct PluginSet(u16);

impl PluginSet {
    /// No plugin.
    pub const EMPTY: Self = Self(0);

    /// Adds `plugin`.
    pub const fn insert(&mut self, plugin: Plugin) {
        self.0 |= 1 << plugin as u16;
    }

    /// Whether `plugin` is in the set.
    pub const fn contains(self, plugin: Plugin) -> bool {
        self.0 & (1 << plugin as u16) != 0
    }

    /// Whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The plugins in their order.
    pub fn iter(self) -> impl Iterator<Item = Plugin> {
        Plugin::ALL.into_iter().filter(move |&plugin| self.contains(plugin))
    }
}

impl FromIterator<Plugin> for PluginSet {
    fn from_iter<I: IntoIterator<Item = Plugin>>(plugins: I) -> Self {
        let mut set = Self::EMPTY;
        for plugin in plugins {
            set.insert(plugin);
        }
        set
    }
}

impl fmt::Debug for PluginSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

/// Why a plugin turned a node down.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Reason {
    /// The node is cordoned.
    Unschedulable,
    /// The pod names another node.
    OtherNodeName,
    /// The pod does not tolerate this taint.
    UntoleratedTaint(Taint),
    /// Node selector or required node affinity do not match.
    NodeAffinity,
    /// A host port is taken.
    HostPort,
    /// The node holds as many pods as it may.
    TooManyPods,
    /// Not enough of a resource.
    Insufficient(ResourceName),
    /// More volumes would be attached than the node can attach.
    VolumeCount,
    /// The CSINode of the node does not list the driver of a volume.
    DriverMissing,
    /// No volume can be made where the node is.
    VolumeBinding,
    /// A volume is elsewhere.
    VolumeNodeAffinity,
    /// A claim that the pod names is not there.
    ClaimMissing(Symbol),
    /// Another pod uses a claim that one pod may use at a time.
    ClaimInUse,
    /// The node has no devices for the pod's resource claims.
    NoDevices,
    /// A hard spread constraint would be broken.
    TopologySpread,
    /// The node lacks the label that a hard spread constraint is about.
    TopologySpreadMissingLabel,
    /// The pod's own required affinity is not met.
    PodAffinity,
    /// The pod's own required anti-affinity is broken.
    PodAntiAffinity,
    /// The required anti-affinity of a running pod would be broken.
    ExistingPodAntiAffinity,
    /// The pod's affinity names other nodes, so this one was not looked at.
    NotNamedByNodeAffinity,
}

impl Reason {
    /// The plugin that gives the reason.
    pub const fn plugin(self) -> Plugin {
        match self {
            Self::Unschedulable => Plugin::NodeUnschedulable,
            Self::OtherNodeName => Plugin::NodeName,
            Self::UntoleratedTaint(_) => Plugin::TaintToleration,
            Self::NodeAffinity | Self::NotNamedByNodeAffinity => Plugin::NodeAffinity,
            Self::HostPort => Plugin::NodePorts,
            Self::TooManyPods | Self::Insufficient(_) => Plugin::NodeResourcesFit,
            Self::VolumeCount | Self::DriverMissing => Plugin::NodeVolumeLimits,
            Self::VolumeBinding | Self::VolumeNodeAffinity | Self::ClaimMissing(_) => Plugin::VolumeBinding,
            Self::ClaimInUse => Plugin::VolumeRestrictions,
            Self::NoDevices => Plugin::DynamicResources,
            Self::TopologySpread | Self::TopologySpreadMissingLabel => Plugin::PodTopologySpread,
            Self::PodAffinity | Self::PodAntiAffinity | Self::ExistingPodAntiAffinity => Plugin::InterPodAffinity,
        }
    }

    /// The reason in kube-scheduler's words. Since 1.35 (and the last patches of 1.34) the taint is no longer named.
    ///
    /// Source: Kubernetes 1.36 `pkg/scheduler/framework/plugins/*`, the `ErrReason` texts.
    pub fn text(self, version: KubernetesVersion) -> String {
        let fixed = match self {
            Self::Unschedulable => "node(s) were unschedulable",
            Self::OtherNodeName => "node(s) didn't match the requested node name",
            Self::UntoleratedTaint(_) if version.has(KubernetesBehaviour::SchedulerUnnamedTaints) => {
                "node(s) had untolerated taint(s)"
            }
            Self::UntoleratedTaint(taint) => {
                return format!("node(s) had untolerated taint {{{}: {}}}", taint.key, taint.value);
            }
            Self::NodeAffinity => "node(s) didn't match Pod's node affinity/selector",
            Self::HostPort => "node(s) didn't have free ports for the requested pod ports",
            Self::TooManyPods => "Too many pods",
            Self::Insufficient(resource) => return format!("Insufficient {resource}"),
            Self::VolumeCount => "node(s) exceed max volume count",
            Self::DriverMissing => "node(s) did not have the CSI driver of a volume",
            Self::VolumeBinding => "node(s) didn't find available persistent volumes to bind",
            Self::VolumeNodeAffinity => "node(s) had volume node affinity conflict",
            Self::ClaimMissing(claim) => return format!("persistentvolumeclaim \"{claim}\" not found"),
            Self::ClaimInUse => {
                "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode"
            }
            Self::NoDevices => "cannot allocate all claims",
            Self::TopologySpread => "node(s) didn't match pod topology spread constraints",
            Self::TopologySpreadMissingLabel => {
                "node(s) didn't match pod topology spread constraints (missing required label)"
            }
            Self::PodAffinity => "node(s) didn't match pod affinity rules",
            Self::PodAntiAffinity => "node(s) didn't match pod anti-affinity rules",
            Self::ExistingPodAntiAffinity => "node(s) didn't satisfy existing pods anti-affinity rules",
            Self::NotNamedByNodeAffinity => "node(s) didn't satisfy plugin(s) [NodeAffinity]",
        };
        fixed.to_owned()
    }
}

/// One reason against a node, and whether evicting pods of lower priority could help.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Refusal {
    pub(super) reason: Reason,
    pub(super) resolvable: bool,
}

impl Refusal {
    pub(super) const fn resolvable(reason: Reason) -> Self {
        Self { reason, resolvable: true }
    }

    pub(super) const fn unresolvable(reason: Reason) -> Self {
        Self { reason, resolvable: false }
    }
}

impl From<Refusal> for Rejection {
    fn from(refusal: Refusal) -> Self {
        Self { reasons: vec![refusal.reason], resolvable_by_eviction: refusal.resolvable }
    }
}

/// A plugin's refusal of a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rejection {
    /// The reasons, at least one, all of one plugin.
    pub reasons: Vec<Reason>,
    /// Whether evicting pods of lower priority could help.
    pub resolvable_by_eviction: bool,
}

impl Rejection {
    /// A refusal that evicting pods may cure.
    pub fn resolvable(reason: Reason) -> Self {
        Self { reasons: vec![reason], resolvable_by_eviction: true }
    }

    /// A refusal that no eviction cures.
    pub fn unresolvable(reason: Reason) -> Self {
        Self { reasons: vec![reason], resolvable_by_eviction: false }
    }

    /// The plugin that refused.
    pub fn plugin(&self) -> Plugin {
        // A rejection is never built without a reason; were it, the first filter would stand in.
        self.reasons.first().map_or(Plugin::NodeUnschedulable, |reason| reason.plugin())
    }
}

/// What keeps a pod from every node.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Unschedulable {
    /// Nodes of the cluster.
    pub nodes: usize,
    /// How many nodes gave each reason; a node can give several. In order of reason.
    pub reasons: Vec<(Reason, usize)>,
    /// The plugins that turned at least one node down. An event must concern one of them for a retry to make sense.
    pub rejected_by: PluginSet,
    /// The required affinity terms contradict each other, so no node was looked at.
    pub conflicting_affinity: bool,
}

impl Unschedulable {
    /// The event text: `0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable.`
    ///
    /// Source: Kubernetes 1.36 `pkg/scheduler/framework/types.go`, `FitError.Error`.
    pub fn message(&self, version: KubernetesVersion) -> String {
        if self.nodes == 0 {
            return "no nodes available to schedule pods".to_owned();
        }
        let head = format!("0/{} nodes are available:", self.nodes);
        if self.conflicting_affinity {
            return format!("{head} pod affinity terms conflict.");
        }
        // Said of the pod before any node is looked at.
        if let Some((missing @ Reason::ClaimMissing(_), _)) = self.reasons.first() {
            return format!("{head} {}.", missing.text(version));
        }
        let mut texts: Vec<(String, usize)> = Vec::new();
        for &(reason, count) in &self.reasons {
            let text = reason.text(version);
            match texts.iter_mut().find(|entry| entry.0 == text) {
                Some(entry) => entry.1 += count,
                None => texts.push((text, count)),
            }
        }
        // Sorted as text, counts included: "10 x" stands before "2 y".
        let mut parts: Vec<String> = texts.into_iter().map(|(text, count)| format!("{count} {text}")).collect();
        parts.sort();
        format!("{head} {}.", parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::{Plugin, PluginSet, Reason, Unschedulable};
    use nodecast_model::domain::symbol::well_known;
    use nodecast_model::domain::{KubernetesVersion, ResourceName, Symbol, Taint, TaintEffect};

    #[test]
    fn failure_message_counts_nodes_by_reason() {
        let taint =
            Taint { value: Symbol::new("gpu"), ..Taint::new(Symbol::new("dedicated"), TaintEffect::NoSchedule) };
        let other = Taint::new(well_known::TAINT_NOT_READY, TaintEffect::NoSchedule);
        let unschedulable = Unschedulable {
            nodes: 4,
            reasons: vec![
                (Reason::UntoleratedTaint(taint), 1),
                (Reason::UntoleratedTaint(other), 1),
                (Reason::Insufficient(ResourceName::CPU), 2),
            ],
            ..Unschedulable::default()
        };
        assert_eq!(
            unschedulable.message(KubernetesVersion::default()),
            "0/4 nodes are available: 2 Insufficient cpu, 2 node(s) had untolerated taint(s)."
        );
        let older = KubernetesVersion::from_minor(33).map(|version| unschedulable.message(version));
        assert_eq!(
            older.as_deref(),
            Some(
                "0/4 nodes are available: 1 node(s) had untolerated taint {dedicated: gpu}, \
                 1 node(s) had untolerated taint {node.kubernetes.io/not-ready: }, 2 Insufficient cpu."
            )
        );
    }

    #[test]
    fn plugin_set_is_in_filter_order() {
        let set: PluginSet = [Plugin::InterPodAffinity, Plugin::NodeName].into_iter().collect();
        assert!(set.contains(Plugin::NodeName) && !set.contains(Plugin::NodePorts));
        assert_eq!(format!("{set:?}"), "{NodeName, InterPodAffinity}");
    }
}
