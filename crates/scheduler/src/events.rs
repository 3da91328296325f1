//! Queueing hints: whether something that happened may help a pod that no node would take.

use super::PendingPod;
use super::cluster_view::ClusterView;
use super::filters::ports_conflict;
use super::node::{NodeEntry, SchedulerNode};
use super::plugins::{Plugin, PluginSet};
use super::resources::fits_when_empty;
use super::shape::{AffinityTerm, PodShape, ShapeId};
use super::volumes::claims_in_common;
use nodecast_model::domain::pod::{ClaimSource, VolumeRef};
use nodecast_model::domain::symbol::well_known;
use nodecast_model::domain::taints::first_untolerated;
use nodecast_model::domain::{Labels, NodeId, Symbol, TaintEffect};

/// Something that happened to nodes or placed pods. The view already knows it.
#[derive(Clone, Copy, Debug)]
pub enum ClusterEvent<'a> {
    /// A node was added.
    NodeAdded(NodeId),
    /// A node changed: labels, taints, cordon or allocatable.
    NodeChanged {
        /// The node.
        node: NodeId,
        /// What was known of it before.
        before: &'a SchedulerNode,
    },
    /// A node is gone.
    NodeRemoved {
        /// What was known of it.
        before: &'a SchedulerNode,
    },
    /// A pod was placed on a node.
    PodPlaced(ShapeId),
    /// A placed pod ended or was deleted.
    PodGone(ShapeId),
    /// A claim of this namespace and name was made.
    ClaimAdded(Symbol, Symbol),
}

/// Whether `event` may help a pod that the plugins in `rejected_by` keep from every node; any one of them is enough. A
/// pod that no plugin rejected is helped by everything.
///
/// Source: Kubernetes 1.36 `pkg/scheduler/framework/plugins/*`, `EventsToRegister` and the hint functions.
pub fn may_help(view: &ClusterView, event: ClusterEvent<'_>, rejected_by: PluginSet, pod: &PendingPod) -> bool {
    let shape = view.shape_of(pod.shape);
    if rejected_by.is_empty() {
        return true;
    }
    match event {
        ClusterEvent::NodeAdded(node) => {
            entry_of(view, node).is_some_and(|entry| rejected_by.iter().any(|p| new_node_helps(p, pod, shape, entry)))
        }
        ClusterEvent::NodeChanged { node, before } => entry_of(view, node)
            .is_some_and(|entry| rejected_by.iter().any(|p| changed_node_helps(view, p, pod, shape, before, entry))),
        ClusterEvent::NodeRemoved { before } => {
            rejected_by.contains(Plugin::PodTopologySpread) && has_spread_keys(shape, &before.labels)
        }
        ClusterEvent::PodPlaced(other) => {
            let other = view.shape_of(other);
            rejected_by.contains(Plugin::PodTopologySpread) && spread_counts(shape, other)
                || rejected_by.contains(Plugin::InterPodAffinity) && affinity_wants(shape, other)
        }
        ClusterEvent::PodGone(other) => {
            let other = view.shape_of(other);
            rejected_by.iter().any(|plugin| gone_pod_helps(plugin, shape, other))
        }
        ClusterEvent::ClaimAdded(namespace, claim) => {
            let names = |volume: &VolumeRef| volume.source == ClaimSource::Named && volume.claim == claim;
            rejected_by.contains(Plugin::VolumeBinding)
                && shape.namespace == namespace
                && shape.spec.volumes.iter().any(names)
        }
    }
}

fn entry_of(view: &ClusterView, node: NodeId) -> Option<&NodeEntry> {
    view.slot(node).and_then(|slot| view.entry(slot))
}

fn new_node_helps(plugin: Plugin, pod: &PendingPod, shape: &PodShape, entry: &NodeEntry) -> bool {
    match plugin {
        Plugin::NodeUnschedulable => !entry.node.unschedulable,
        Plugin::TaintToleration => tolerates_all(shape, &entry.node),
        Plugin::NodeAffinity => selects(pod, shape, entry.id, &entry.node),
        Plugin::NodeResourcesFit => fits_when_empty(shape, entry),
        Plugin::PodTopologySpread => has_spread_keys(shape, &entry.node.labels),
        Plugin::NodeName
        | Plugin::NodePorts
        | Plugin::NodeVolumeLimits
        | Plugin::VolumeBinding
        | Plugin::VolumeRestrictions
        | Plugin::DynamicResources
        | Plugin::InterPodAffinity => true,
        Plugin::NodeResourcesBalancedAllocation | Plugin::ImageLocality => false,
    }
}

fn changed_node_helps(
    view: &ClusterView,
    plugin: Plugin,
    pod: &PendingPod,
    shape: &PodShape,
    before: &SchedulerNode,
    entry: &NodeEntry,
) -> bool {
    let now = &entry.node;
    match plugin {
        Plugin::NodeUnschedulable => before.unschedulable && !now.unschedulable,
        Plugin::TaintToleration => !tolerates_all(shape, before) && tolerates_all(shape, now),
        Plugin::NodeAffinity => !selects(pod, shape, entry.id, before) && selects(pod, shape, entry.id, now),
        Plugin::NodeResourcesFit => {
            let grew = shape
                .spec
                .requests()
                .iter()
                .any(|(name, amount)| amount > 0 && now.allocatable.get(name) > before.allocatable.get(name));
            grew && fits_when_empty(shape, entry)
        }
        Plugin::PodTopologySpread => {
            let (had, has) = (has_spread_keys(shape, &before.labels), has_spread_keys(shape, &now.labels));
            let moved = spread_keys(shape).any(|key| before.labels.get(key) != now.labels.get(key));
            had != has || (has && (moved || before.taints != now.taints))
        }
        Plugin::InterPodAffinity => {
            let terms = shape.required_affinity.iter().chain(&shape.required_anti_affinity);
            let mut keys = terms.map(|term| view.key_name(term.key));
            keys.any(|key| before.labels.get(key) != now.labels.get(key))
        }
        Plugin::VolumeBinding | Plugin::DynamicResources => before.labels != now.labels,
        Plugin::NodeVolumeLimits => {
            (&before.volume_limits, &before.missing_drivers) != (&now.volume_limits, &now.missing_drivers)
        }
        Plugin::NodeName | Plugin::NodePorts | Plugin::VolumeRestrictions => false,
        Plugin::NodeResourcesBalancedAllocation | Plugin::ImageLocality => false,
    }
}

fn gone_pod_helps(plugin: Plugin, shape: &PodShape, other: &PodShape) -> bool {
    match plugin {
        Plugin::NodeResourcesFit => true,
        Plugin::NodePorts => {
            shape.host_ports.iter().any(|host_port| other.host_ports.iter().any(|held| ports_conflict(host_port, held)))
        }
        Plugin::NodeVolumeLimits => !other.volumes.own.is_empty() || !other.volumes.shared.is_empty(),
        Plugin::VolumeRestrictions => claims_in_common(shape, other) > 0,
        Plugin::PodTopologySpread => spread_counts(shape, other),
        Plugin::InterPodAffinity => {
            let any = |terms: &[AffinityTerm], meant: &PodShape| terms.iter().any(|term| term.matches(meant));
            any(&shape.required_anti_affinity, other) || any(&other.required_anti_affinity, shape)
        }
        _ => false,
    }
}

fn tolerates_all(shape: &PodShape, node: &SchedulerNode) -> bool {
    let hard = node.taints.iter().filter(|taint| taint.effect != TaintEffect::PreferNoSchedule);
    first_untolerated(hard, &shape.spec.tolerations).is_none()
}

fn selects(pod: &PendingPod, shape: &PodShape, id: NodeId, node: &SchedulerNode) -> bool {
    pod.pinned_to.is_none_or(|pinned| pinned == id) && shape.spec.selects_node(&node.labels, &node.name)
}

/// The keys of the pod's hard spread constraints.
fn spread_keys(shape: &PodShape) -> impl Iterator<Item = Symbol> + '_ {
    let hard = |c: &&nodecast_model::domain::topology::TopologySpread| {
        c.when_unsatisfiable == nodecast_model::domain::topology::WhenUnsatisfiable::DoNotSchedule
    };
    shape.spec.topology_spread.iter().filter(hard).map(|constraint| constraint.topology_key)
}

fn has_spread_keys(shape: &PodShape, labels: &Labels) -> bool {
    spread_keys(shape).all(|key| key == well_known::HOSTNAME || labels.get(key).is_some())
}

/// Whether a hard spread constraint of the pod counts pods of shape `other`.
fn spread_counts(shape: &PodShape, other: &PodShape) -> bool {
    shape.namespace == other.namespace
        && shape
            .hard_spread
            .iter()
            .any(|constraint| constraint.selector.as_ref().is_some_and(|selector| selector.matches(&other.spec.labels)))
}

/// Whether the pod's required affinity means pods of shape `other`.
fn affinity_wants(shape: &PodShape, other: &PodShape) -> bool {
    !shape.required_affinity.is_empty() && shape.required_affinity.iter().all(|term| term.matches(other))
}

#[cfg(test)]
mod tests {
    use super::{ClusterEvent, may_help};
    use crate::{ClusterView, PendingPod, Plugin, PluginSet, SchedulerNode};
    use nodecast_model::domain::symbol::well_known;
    use nodecast_model::domain::{
        Container, Labels, NodeId, PodId, PodSpec, ResourceName, Resources, Taint, TaintEffect,
    };
    use std::sync::Arc;

    fn by(plugin: Plugin) -> PluginSet {
        [plugin].into_iter().collect()
    }

    fn view_with(node: SchedulerNode, spec: PodSpec) -> (ClusterView, PendingPod) {
        let mut view = ClusterView::default();
        let shape = view.shape(well_known::DEFAULT, &Arc::new(spec), None);
        view.add_node(NodeId(0), node);
        (view, PendingPod { id: PodId(0), shape, pinned_to: None })
    }

    fn node(milli_cpu: i64) -> SchedulerNode {
        let allocatable = Resources::cpu_memory(milli_cpu, 1 << 34).with(ResourceName::PODS, 10);
        SchedulerNode { allocatable, ..SchedulerNode::default() }
    }

    fn asks(milli_cpu: i64) -> PodSpec {
        let requests = Resources::cpu_memory(milli_cpu, 0);
        PodSpec { containers: vec![Container { requests, ..Container::default() }], ..PodSpec::default() }
    }

    #[test]
    fn new_node_helps_pod_only_if_it_fits() {
        for (milli_cpu, helps) in [(2_000, true), (500, false)] {
            let (view, pod) = view_with(node(milli_cpu), asks(1_000));
            let event = ClusterEvent::NodeAdded(NodeId(0));
            assert_eq!(may_help(&view, event, by(Plugin::NodeResourcesFit), &pod), helps);
        }
    }

    #[test]
    fn removed_not_ready_taint_helps_intolerant_pods() {
        let (view, pod) = view_with(node(2_000), asks(1_000));
        let taints = vec![Taint::new(well_known::TAINT_NOT_READY, TaintEffect::NoSchedule)];
        let tainted = SchedulerNode { taints, ..node(2_000) };
        let removed = ClusterEvent::NodeChanged { node: NodeId(0), before: &tainted };
        assert!(may_help(&view, removed, by(Plugin::TaintToleration), &pod));
        let ready = node(2_000);
        let unchanged = ClusterEvent::NodeChanged { node: NodeId(0), before: &ready };
        assert!(!may_help(&view, unchanged, by(Plugin::TaintToleration), &pod));
        assert!(!may_help(&view, removed, by(Plugin::NodeResourcesFit), &pod), "nothing grew");
    }

    #[test]
    fn removed_node_helps_only_spread_pods() {
        let zoned = SchedulerNode { labels: Labels::new().with(well_known::ZONE, "a"), ..node(2_000) };
        let (view, pod) = view_with(node(2_000), asks(1_000));
        let removed = ClusterEvent::NodeRemoved { before: &zoned };
        assert!(may_help(&view, removed, by(Plugin::PodTopologySpread), &pod));
        assert!(!may_help(&view, removed, by(Plugin::NodeResourcesFit), &pod));
    }

    #[test]
    fn finished_pod_helps_only_pods_lacking_resources() {
        let (view, pod) = view_with(node(2_000), asks(1_000));
        let gone = ClusterEvent::PodGone(pod.shape);
        assert!(may_help(&view, gone, by(Plugin::NodeResourcesFit), &pod));
        assert!(!may_help(&view, gone, by(Plugin::NodeAffinity), &pod));
        assert!(may_help(&view, gone, PluginSet::EMPTY, &pod));
    }
}
