//! Karpenter's v0.x objects, Provisioner and AWSNodeTemplate, read as the NodePool and node class that they became.
//!
//! What a release's admission webhook would have filled in is not filled in here: that depends on the release, which the
//! objects do not state.

use super::common::{labels, metadata, resources, taints};
use super::node_class::{UNKNOWN_IMAGES, ami_family, block_devices, kubelet, spelled_out};
use super::node_pool::{requirements, weight};
use super::pod::OBJECT;
use super::restricted::{Stating, labels_of_nodes};
use crate::lints;
use nodecast_model::domain::node_pool::{AmiFamily, ConsolidationPolicy, Disruption};
use nodecast_model::domain::{NodeClass, NodePool, SimDuration, Symbol};
use nodecast_model::text::InputError;
use nodecast_model::text::reader::{Fields, Reader, Shape};
use nodecast_model::text::tree::Node;

static PROVISIONER: Shape = Shape {
    name: "a Provisioner's spec",
    keys: &[
        "requirements",
        "labels",
        "annotations",
        "taints",
        "startupTaints",
        "limits",
        "weight",
        "ttlSecondsAfterEmpty",
        "ttlSecondsUntilExpired",
        "consolidation",
        "kubeletConfiguration",
        "provider",
        "providerRef",
    ],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};
static LIMITS: Shape = Shape {
    name: "a Provisioner's limits",
    keys: &["resources"],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};
static CONSOLIDATION: Shape =
    Shape { name: "`consolidation`", keys: &["enabled"], without_effect: &[], unsupported: &[], strict: false };
static PROVIDER: Shape = Shape {
    name: "settings of AWS nodes",
    keys: &["amiFamily", "amiSelector", "tags", "blockDeviceMappings"],
    without_effect: &[
        "apiVersion",
        "kind",
        "subnetSelector",
        "securityGroupSelector",
        "instanceProfile",
        "userData",
        "metadataOptions",
        "detailedMonitoring",
        "context",
    ],
    unsupported: &[("launchTemplate", "the node starts from the family's own image and settings")],
    strict: false,
};

/// A Provisioner object, with the node class that it states inline, if it does.
///
/// Source: Karpenter core v0.22 `pkg/apis/v1alpha5/provisioner.go`.
pub(super) fn provisioner<'s>(
    reader: &mut Reader<'s>,
    object: &Node<'s>,
) -> Result<(NodePool, Option<NodeClass>), InputError> {
    let fields = reader.fields(object, &OBJECT)?;
    let name = metadata(reader, fields.get("metadata"))?.name.name;
    let mut pool = NodePool { legacy: true, expire_after: None, ..NodePool::named(name) };
    let Some(node) = fields.get("spec") else {
        pool.disruption = disruption(reader, None)?;
        return Ok((pool, None));
    };
    let spec = reader.fields(node, &PROVISIONER)?;
    let stating = Stating::of_provisioner(reader, object);
    pool.requirements = requirements(reader, spec, stating)?;
    pool.labels = labels_of_nodes(reader, spec, stating)?;
    pool.annotations = labels(reader, spec, "annotations")?;
    pool.taints = taints(reader, spec, "taints")?;
    pool.startup_taints = taints(reader, spec, "startupTaints")?;
    pool.weight = weight(reader, spec)?;
    pool.kubelet = spec.get("kubeletConfiguration").map(|n| kubelet(reader, n)).transpose()?;
    if let Some(node) = spec.get("limits") {
        let limits = reader.fields(node, &LIMITS)?;
        pool.limits = resources(reader, limits, "resources")?;
    }
    pool.disruption = disruption(reader, Some(spec))?;
    pool.expire_after = spec.optional("ttlSecondsUntilExpired", |n, what| reader.seconds(n, what))?;
    if let Some(reference) = spec.get("providerRef").and_then(|n| n.get("name")) {
        pool.node_class = reader.symbol(reference, "name")?;
        return Ok((pool, None));
    }
    let Some(node) = spec.get("provider") else { return Ok((pool, None)) };
    // A name that no object of a cluster can have, so that it hides no AWSNodeTemplate.
    pool.node_class = Symbol::new(&format!("provider of {name}"));
    let class = aws_settings(reader, node, NodeClass::named(pool.node_class))?;
    Ok((pool, Some(class)))
}

/// What `ttlSecondsAfterEmpty` and `consolidation` amount to; neither means that nothing is removed. These releases knew
/// no budgets.
fn disruption<'s>(reader: &mut Reader<'s>, spec: Option<Fields<'_, 's>>) -> Result<Disruption, InputError> {
    let off = Disruption { policy: ConsolidationPolicy::WhenEmpty, consolidate_after: None, budgets: Vec::new() };
    let Some(spec) = spec else { return Ok(off) };
    let consolidation = spec.get("consolidation").map(|n| reader.fields(n, &CONSOLIDATION)).transpose()?;
    let enabled = match consolidation {
        Some(fields) => fields.optional("enabled", |n, what| reader.truth(n, what))?.unwrap_or(false),
        None => false,
    };
    let after_empty = spec.get("ttlSecondsAfterEmpty");
    match (after_empty, enabled) {
        (Some(node), true) => Err(reader
            .error(node.at, "a Provisioner has `ttlSecondsAfterEmpty` or `consolidation`, not both")
            .because("consolidation is enabled as well")
            .help("remove `ttlSecondsAfterEmpty`: consolidation removes empty nodes too")),
        (Some(node), false) => {
            let seconds = reader.seconds(node, "ttlSecondsAfterEmpty")?;
            Ok(Disruption { consolidate_after: Some(seconds), ..off })
        }
        (None, true) => Ok(Disruption {
            policy: ConsolidationPolicy::WhenEmptyOrUnderutilized,
            consolidate_after: Some(SimDuration::ZERO),
            ..off
        }),
        (None, false) => Ok(off),
    }
}

/// An AWSNodeTemplate object.
///
/// Source: Karpenter AWS provider v0.22 `pkg/apis/v1alpha1/awsnodetemplate.go`.
pub(super) fn node_template<'s>(reader: &mut Reader<'s>, object: &Node<'s>) -> Result<NodeClass, InputError> {
    let fields = reader.fields(object, &OBJECT)?;
    let name = metadata(reader, fields.get("metadata"))?.name.name;
    let class = NodeClass { ami_family: AmiFamily::AL2, ..NodeClass::named(name) };
    match fields.get("spec") {
        Some(node) => aws_settings(reader, node, class),
        None => Ok(class),
    }
}

fn aws_settings<'s>(reader: &mut Reader<'s>, node: &Node<'s>, mut class: NodeClass) -> Result<NodeClass, InputError> {
    let fields = reader.fields(node, &PROVIDER)?;
    class.ami_family = ami_family(reader, fields)?.unwrap_or(AmiFamily::AL2);
    class.tags = labels(reader, fields, "tags")?;
    class.block_devices = block_devices(reader, fields, class.ami_family)?;
    if let Some(node) = fields.get("amiSelector") {
        class.fixed_images = true;
        class.ami_architectures = spelled_out(node.entries().iter().filter_map(|entry| entry.value.as_text()));
    }
    let unknown = class.ami_architectures.is_empty() && !class.ami_family.is_windows();
    if let Some(node) = fields.get("amiSelector").filter(|_| unknown) {
        let help = "restrict `kubernetes.io/arch` in the Provisioner's requirements";
        reader.warn(&lints::UNKNOWN_IMAGES, node.at, UNKNOWN_IMAGES, "images unknown", help);
    }
    Ok(class)
}
