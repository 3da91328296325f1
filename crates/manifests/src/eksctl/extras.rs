//! A ClusterConfig's orders next to nodes: NAT gateways, the tier of the control plane, EKS Capabilities, and eksctl's installation of
//! Karpenter.

use crate::lints;
use nodecast_model::domain::node_pool::{ClusterInfo, NatGateways};
use nodecast_model::domain::{Capability, ControlPlaneTier};
use nodecast_model::text::InputError;
use nodecast_model::text::reader::{Fields, Reader, Shape};
use nodecast_model::text::tree::Node;

static KARPENTER: Shape = Shape {
    name: "a ClusterConfig's Karpenter",
    keys: &["version", "withSpotInterruptionQueue"],
    without_effect: &["createServiceAccount", "defaultInstanceProfile"],
    unsupported: &[],
    strict: false,
};

/// The words of `vpc.nat.gateway`.
const NAT: &[(&str, NatGateways)] = &[
    ("Disable", NatGateways::Disable),
    ("Single", NatGateways::Single),
    ("HighlyAvailable", NatGateways::HighlyAvailable),
];

/// Reads the NAT gateways, Karpenter's release, the control plane's tier, and the capabilities into `cluster`.
///
/// # Errors
/// If a value is not of its kind.
pub(super) fn read<'s>(
    reader: &mut Reader<'s>,
    fields: Fields<'_, 's>,
    cluster: &mut ClusterInfo,
) -> Result<(), InputError> {
    cluster.nat_gateways = nat_gateways(reader, fields)?;
    cluster.private_nodes = has_private_groups_alone(fields);
    if let Some(node) = fields.get("karpenter") {
        let karpenter = reader.fields(node, &KARPENTER)?;
        cluster.karpenter_version = karpenter.optional("version", |n, what| reader.text(n, what))?.map(str::to_owned);
        cluster.karpenter_queue =
            Some(karpenter.optional("withSpotInterruptionQueue", |n, what| reader.truth(n, what))?.unwrap_or(false));
    }
    cluster.control_plane_tier = control_plane_tier(reader, fields);
    cluster.capabilities = capabilities(reader, fields)?;
    Ok(())
}

/// The NAT gateways that eksctl creates; `None` in a VPC that exists already, where it creates none and others may stand.
///
/// Source: eksctl 0.229 `pkg/apis/eksctl.io/v1alpha5/vpc.go` and `pkg/cfn/builder/vpc_ipv4.go`: `Single` by default, with IPv6 too; none in
/// a fully private cluster.
fn nat_gateways<'s>(reader: &Reader<'s>, fields: Fields<'_, 's>) -> Result<Option<NatGateways>, InputError> {
    let is_private = fields.get("privateCluster").and_then(|cluster| cluster.get("enabled")).and_then(Node::as_text);
    if is_private == Some("true") {
        return Ok(Some(NatGateways::Disable));
    }
    let vpc = fields.get("vpc");
    if vpc.is_some_and(|vpc| vpc.get("id").is_some() || vpc.get("subnets").is_some()) {
        return Ok(None);
    }
    let gateway = vpc.and_then(|vpc| vpc.get("nat")).and_then(|nat| nat.get("gateway"));
    let stated = gateway.map(|node| reader.choice(node, "gateway", NAT)).transpose()?;
    Ok(Some(stated.unwrap_or(NatGateways::Single)))
}

/// Whether there are node groups, and all of them are in private subnets.
fn has_private_groups_alone(fields: Fields<'_, '_>) -> bool {
    let groups = ["managedNodeGroups", "nodeGroups"].into_iter().filter_map(|key| fields.get(key));
    let mut groups = groups.flat_map(Node::items).peekable();
    let is_private = |group: &Node<'_>| group.get("privateNetworking").and_then(Node::as_text) == Some("true");
    groups.peek().is_some() && groups.all(is_private)
}

/// The tier of the control plane. Warns of one whose price is unknown.
fn control_plane_tier(reader: &mut Reader<'_>, fields: Fields<'_, '_>) -> Option<ControlPlaneTier> {
    let node = fields.get("controlPlaneScalingConfig")?;
    let text = node.get("tier").and_then(Node::as_text).unwrap_or_default();
    let tier = ControlPlaneTier::parse(text);
    if !text.is_empty() && tier.is_none() {
        let shown: String = text.chars().take(80).collect();
        let message = format!(
            "`controlPlaneScalingConfig` orders the tier `{shown}`, whose limits and price are unknown: the cluster has a standard \
             control plane, so waits are too long and the cost is too low"
        );
        let help = "set `cluster.control_plane_tier` to a tier with known limits and `ec2.billing.control_plane_tier` to the price";
        reader.left_out(&lints::CONTROL_PLANE_TIER, node.at, message, help);
    }
    tier
}

/// The EKS Capabilities. Warns of one whose price is unknown.
///
/// Source: eksctl 0.229 `pkg/apis/eksctl.io/v1alpha5/schema.json`, `Capability`.
fn capabilities<'s>(reader: &mut Reader<'s>, fields: Fields<'_, 's>) -> Result<Vec<Capability>, InputError> {
    let mut found = Vec::new();
    for node in fields.optional("capabilities", |n, what| reader.list(n, what))?.unwrap_or_default() {
        let text = node.get("type").and_then(Node::as_text).unwrap_or_default();
        if let Some(capability) = Capability::parse(text) {
            found.push(capability);
            continue;
        }
        let shown: String = text.chars().take(80).collect();
        let message = format!("`capabilities`: the price of the type `{shown}` is unknown, so the cost is too low");
        reader.left_out(&lints::CAPABILITY, node.at, message, "use `ACK`, `ARGOCD`, or `KRO`");
    }
    Ok(found)
}
