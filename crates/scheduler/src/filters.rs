//! The filters that look only at the pod and one node, in the order of the default profile.

use super::cluster_view::ClusterView;
use super::node::NodeEntry;
use super::plugins::{Reason, Refusal, Rejection};
use super::resources;
use super::shape::{PodShape, ShapeId};
use super::volumes;
use nodecast_model::domain::pod::HostPort;
use nodecast_model::domain::symbol::well_known;
use nodecast_model::domain::{NodeId, Symbol, TaintEffect};

/// Runs what VolumeBinding says of a pod beforehand, NodeUnschedulable, NodeName, TaintToleration, NodeAffinity, NodePorts, NodeResourcesFit, NodeVolumeLimits,
/// VolumeBinding and DynamicResources.
///
/// Source: Kubernetes 1.36 `pkg/scheduler/framework/runtime/framework.go`, `RunFilterPlugins`, and the plugins' `Filter`.
pub(super) fn check_node(shape: &PodShape, entry: &NodeEntry) -> Result<(), Rejection> {
    volumes::check_claims(shape)?;
    check_unschedulable(shape, entry)?;
    check_node_name(shape, entry)?;
    check_taints(shape, entry)?;
    check_node_affinity(shape, entry)?;
    check_host_ports(shape, entry)?;
    resources::fits(shape, entry)?;
    volumes::check_limits(shape, entry)?;
    volumes::check_places(shape, entry)?;
    check_devices(shape)?;
    Ok(())
}

/// Whether [`check_node`] would accept the node; says no more, and costs no allocation where it refuses.
pub(super) fn passes_node(shape: &PodShape, entry: &NodeEntry) -> bool {
    // What refuses most often comes first: the answer does not depend on the order.
    check_devices(shape).is_ok()
        && resources::has_room(shape, entry)
        && volumes::check_claims(shape).is_ok()
        && check_unschedulable(shape, entry).is_ok()
        && check_node_name(shape, entry).is_ok()
        && check_taints(shape, entry).is_ok()
        && check_node_affinity(shape, entry).is_ok()
        && check_host_ports(shape, entry).is_ok()
        && (shape.volumes.is_empty() || has_volumes(shape, entry))
}

impl ClusterView {
    /// Why the kubelet of `node` does not admit a pod of this shape that names the node itself; `None` where it does. It asks neither
    /// whether the node is cordoned nor for taints other than `NoExecute`.
    ///
    /// Source: Kubernetes 1.36 `pkg/kubelet/lifecycle/predicate.go`, `generalFilter`; `pkg/scheduler/scheduler.go`, `AdmissionCheck`.
    pub fn admitted_by_kubelet(&self, node: NodeId, shape: ShapeId) -> Option<Rejection> {
        let entry = self.slot(node).and_then(|slot| self.entry(slot))?;
        let shape = self.shape_of(shape);
        resources::fits(shape, entry)
            .and_then(|()| check_node_affinity(shape, entry).map_err(Rejection::from))
            .and_then(|()| check_host_ports(shape, entry).map_err(Rejection::from))
            .and_then(|()| check_ending_taints(shape, entry).map_err(Rejection::from))
            .err()
    }
}

/// Source: Kubernetes 1.36 `pkg/kubelet/lifecycle/predicate.go`, `generalFilter`.
fn check_ending_taints(shape: &PodShape, entry: &NodeEntry) -> Result<(), Refusal> {
    let ends = entry.node.taints.iter().find(|taint| taint.effect == TaintEffect::NoExecute && !shape.tolerates(taint));
    ends.map_or(Ok(()), |taint| Err(Refusal::unresolvable(Reason::UntoleratedTaint(*taint))))
}

fn has_volumes(shape: &PodShape, entry: &NodeEntry) -> bool {
    volumes::check_limits(shape, entry).is_ok() && volumes::check_places(shape, entry).is_ok()
}

/// Source: Kubernetes 1.36 `plugins/nodeunschedulable/node_unschedulable.go`.
fn check_unschedulable(shape: &PodShape, entry: &NodeEntry) -> Result<(), Refusal> {
    if entry.node.unschedulable && !shape.tolerates_unschedulable {
        return Err(Refusal::unresolvable(Reason::Unschedulable));
    }
    Ok(())
}

/// Source: Kubernetes 1.36 `plugins/nodename/node_name.go`.
fn check_node_name(shape: &PodShape, entry: &NodeEntry) -> Result<(), Refusal> {
    match shape.spec.node_name {
        Some(name) if name.as_str() != &*entry.node.name => Err(Refusal::unresolvable(Reason::OtherNodeName)),
        _ => Ok(()),
    }
}

/// Source: Kubernetes 1.36 `plugins/tainttoleration/taint_toleration.go`.
fn check_taints(shape: &PodShape, entry: &NodeEntry) -> Result<(), Refusal> {
    let hard =
        entry.node.taints.iter().find(|taint| taint.effect != TaintEffect::PreferNoSchedule && !shape.tolerates(taint));
    hard.map_or(Ok(()), |taint| Err(Refusal::unresolvable(Reason::UntoleratedTaint(*taint))))
}

/// Source: Kubernetes 1.36 `plugins/nodeaffinity/node_affinity.go`.
fn check_node_affinity(shape: &PodShape, entry: &NodeEntry) -> Result<(), Refusal> {
    if shape.spec.selects_node(&entry.node.labels, &entry.node.name) {
        Ok(())
    } else {
        Err(Refusal::unresolvable(Reason::NodeAffinity))
    }
}

/// Without ResourceSlices no node has a device to allocate. Evicting pods frees none.
///
/// Source: Kubernetes near 1.34 and near 1.36 `plugins/dynamicresources/dynamicresources.go`, `Filter` (the files read are not provably those
/// of a tag).
fn check_devices(shape: &PodShape) -> Result<(), Refusal> {
    if shape.spec.resource_claims { Err(Refusal::unresolvable(Reason::NoDevices)) } else { Ok(()) }
}

/// Source: Kubernetes 1.36 `plugins/nodeports/node_ports.go`.
fn check_host_ports(shape: &PodShape, entry: &NodeEntry) -> Result<(), Refusal> {
    let taken = |wanted: &HostPort| entry.host_ports.iter().any(|(used, _)| ports_conflict(wanted, used));
    if shape.host_ports.iter().any(taken) { Err(Refusal::resolvable(Reason::HostPort)) } else { Ok(()) }
}

/// Whether two pods cannot both have their port: same number and protocol, and the same address or one of them all.
///
/// Source: `k8s.io/kube-scheduler/framework/types.go` (1.36), `HostPortInfo.CheckConflict`.
pub(super) fn ports_conflict(one: &HostPort, other: &HostPort) -> bool {
    let all = |ip: Symbol| ip == well_known::EMPTY || ip.as_str() == "0.0.0.0";
    let protocol = |port: &HostPort| if port.protocol == well_known::EMPTY { "TCP" } else { port.protocol.as_str() };
    one.port == other.port && protocol(one) == protocol(other) && (one.ip == other.ip || all(one.ip) || all(other.ip))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::ports_conflict;
    use crate::{ClusterView, Plugin, Predicates, Reason, Rejection, SchedulerNode};
    use nodecast_model::domain::pod::HostPort;
    use nodecast_model::domain::symbol::well_known;
    use nodecast_model::domain::{NodeId, PodSpec, ResourceName, Resources, Symbol};

    #[test]
    fn pods_with_resource_claims_find_no_node() {
        let mut view = ClusterView::default();
        let allocatable = Resources::cpu_memory(4_000, 1 << 33).with(ResourceName::PODS, 20);
        view.add_node(NodeId(7), SchedulerNode { allocatable, ..SchedulerNode::default() });
        for resource_claims in [true, false] {
            let spec = Arc::new(PodSpec { resource_claims, ..PodSpec::default() });
            let shape = view.shape(well_known::DEFAULT, &spec, None);
            let mut predicates = Predicates::default();
            assert_eq!(predicates.passes(&view, shape, NodeId(7)), !resource_claims);
            let refused = predicates.check(&view, shape, NodeId(7)).err();
            assert_eq!(refused, resource_claims.then(|| Rejection::unresolvable(Reason::NoDevices)));
            assert!(refused.is_none_or(|refused| refused.plugin() == Plugin::DynamicResources));
        }
    }

    #[test]
    fn wildcard_host_port_conflicts_on_any_address() {
        let port =
            |ip: &str, protocol: &str| HostPort { port: 8_080, protocol: Symbol::new(protocol), ip: Symbol::new(ip) };
        assert!(ports_conflict(&port("", "TCP"), &port("10.0.0.1", "TCP")));
        assert!(ports_conflict(&port("10.0.0.1", ""), &port("0.0.0.0", "TCP")));
        assert!(!ports_conflict(&port("10.0.0.1", "TCP"), &port("10.0.0.2", "TCP")));
        assert!(!ports_conflict(&port("", "UDP"), &port("", "TCP")));
    }
}
