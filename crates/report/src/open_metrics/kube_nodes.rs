//! Nodes as kube-state-metrics shows them.
//!
//! Source: kube-state-metrics 2.15 `docs/metrics/cluster/node-metrics.md`.

use std::io;

use super::exposition::{Exposition, Family, Labels, Spans};
use super::lives::{Lives, amounts, scale, value};
use crate::domain::{ResourceName, Resources};
use nodecast_world::record::{NodeFacts, NodeOrigin};

/// Series of each node, for the size of the text.
pub(super) const SERIES: u64 = 13;

pub(super) fn write(out: &mut Exposition<'_>, lives: &Lives<'_>) -> io::Result<()> {
    info(out, lives)?;
    labels(out, lives)?;
    out.family(Family::gauge("kube_node_created", "When the node registered, in Unix time."));
    let mut spans = Spans::default();
    for (_, node) in lives.nodes() {
        if let Some(from) = node.registered {
            spans.add(named(node), (from, node.terminated), out.unix_seconds(from) as f64);
        }
    }
    out.spans(spans, false)?;
    resources(out, lives, "kube_node_status_capacity", |node| &node.capacity)?;
    resources(out, lives, "kube_node_status_allocatable", |node| &node.allocatable)?;
    condition(out, lives)
}

fn named(node: &NodeFacts) -> Labels {
    vec![("node", node.name.clone())]
}

fn info(out: &mut Exposition<'_>, lives: &Lives<'_>) -> io::Result<()> {
    out.family(Family::gauge("kube_node_info", "1 for each node, with the release of its kubelet."));
    let mut spans = Spans::default();
    for (_, node) in lives.nodes() {
        let Some(from) = node.registered else { continue };
        let mut labels = named(node);
        labels.push((
            "kubelet_version",
            node.kubelet_version.map_or_else(String::new, |kubelet_version| format!("v{kubelet_version}.0")),
        ));
        labels.push(("provider_id", provider_id(node)));
        spans.add(labels, (from, node.terminated), 1.0);
    }
    out.spans(spans, true)
}

/// The id by which AWS's cloud provider calls an instance.
///
/// Source: cloud-provider-aws v1.36 `pkg/providers/v1/instances.go`, `KubernetesInstanceID`.
fn provider_id(node: &NodeFacts) -> String {
    match (node.zone, &node.instance) {
        (Some(zone), Some(instance)) => format!("aws:///{zone}/{instance}"),
        _ => String::new(),
    }
}

/// The labels of nodes that dashboards group by.
fn labels(out: &mut Exposition<'_>, lives: &Lives<'_>) -> io::Result<()> {
    out.family(Family::gauge("kube_node_labels", "1 for each node, with the labels that tell what it is."));
    let mut spans = Spans::default();
    for (_, node) in lives.nodes() {
        let Some(from) = node.registered else { continue };
        let mut labels = named(node);
        labels.extend([
            ("label_kubernetes_io_arch", value(node.arch)),
            ("label_node_kubernetes_io_instance_type", value(node.instance_type)),
            ("label_topology_kubernetes_io_zone", value(node.zone)),
        ]);
        match node.origin {
            NodeOrigin::NodePool(pool) => labels.extend([
                ("label_karpenter_sh_capacity_type", value(node.capacity_type)),
                ("label_karpenter_sh_nodepool", pool.to_string()),
            ]),
            NodeOrigin::NodeGroup(group) => labels.extend([
                ("label_eks_amazonaws_com_capacity_type", value(node.capacity_type).to_uppercase().replace('-', "_")),
                ("label_eks_amazonaws_com_nodegroup", group.to_string()),
            ]),
            NodeOrigin::Fargate(_) => labels.push(("label_eks_amazonaws_com_compute_type", "fargate".to_owned())),
        }
        spans.add(labels, (from, node.terminated), 1.0);
    }
    out.spans(spans, true)
}

fn resources(
    out: &mut Exposition<'_>,
    lives: &Lives<'_>,
    name: &'static str,
    of: impl Fn(&NodeFacts) -> &Resources,
) -> io::Result<()> {
    let help = match name {
        "kube_node_status_capacity" => "What the node holds.",
        _ => "What the node offers to pods.",
    };
    out.family(Family::gauge(name, help));
    let mut spans = Spans::default();
    for (_, node) in lives.nodes() {
        let Some(from) = node.registered else { continue };
        for (resource, amount) in amounts(of(node), of(node).pods()) {
            let mut labels = named(node);
            labels.extend(resource_labels(resource));
            spans.add(labels, (from, node.terminated), amount as f64 / scale(resource));
        }
    }
    out.spans(spans, true)
}

/// A resource and its unit.
pub(super) fn resource_labels(resource: ResourceName) -> [(&'static str, String); 2] {
    let unit = match resource {
        ResourceName::CPU => "core",
        ResourceName::MEMORY => "byte",
        _ => "integer",
    };
    [("resource", resource.to_string()), ("unit", unit.to_owned())]
}

fn condition(out: &mut Exposition<'_>, lives: &Lives<'_>) -> io::Result<()> {
    out.family(Family::gauge("kube_node_status_condition", "Whether the node's condition Ready has this status."));
    let mut spans = Spans::default();
    for (id, node) in lives.nodes() {
        let Some(from) = node.registered else { continue };
        let readiness = lives.readiness(id, node);
        for (status, state) in [("true", 1), ("false", 0), ("unknown", -1)] {
            let mut labels = named(node);
            labels.extend([("condition", "Ready".to_owned()), ("status", status.to_owned())]);
            let shown = |now| f64::from(u8::from(now == state));
            spans.follow(&labels, (from, node.terminated), &readiness, shown);
        }
    }
    out.spans(spans, true)
}
