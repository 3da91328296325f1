//! The policies of a scenario: who adds and removes nodes, with which settings and objects of its own.

use std::sync::Arc;

use super::interruption::Handling;
use super::{Files, controller_time, file_name, node_groups, versions};
use crate::catalog::Region;
use crate::domain::{ControllerTime, Versions};
use crate::policy::cluster_autoscaler::Flags;
use crate::policy::cluster_autoscaler::expander::Expander;
use crate::policy::packing::PackerKind;
use crate::scenario::ScenarioError;
use crate::scenario::definition::{Autoscaler, PolicyVariant};
use crate::scenario::manifests::Manifests;
use crate::scenario::reader::{Fields, Reader};
use crate::scenario::schema::policies::POLICY;
use crate::scenario::tree::Node;

/// The policies: those of `policies`, or the one that the scenario's own objects imply.
pub(super) fn read<'s>(
    reader: &mut Reader<'s>,
    fields: Fields<'_, 's>,
    region: &Region,
    base: &Manifests,
    (versions, handling, pace): (Versions, Handling, ControllerTime),
    files: &mut Files<'_>,
) -> Result<Vec<PolicyVariant>, ScenarioError> {
    let nodes = fields.optional("policies", |n, what| reader.list(n, what))?.unwrap_or_default();
    let mut policies: Vec<PolicyVariant> = Vec::new();
    for node in nodes {
        let policy = policy(reader, node, region, base, (versions, handling, pace), files)?;
        if policies.iter().any(|other| other.name == policy.name) {
            return Err(reader
                .error(node.at, format!("two policies are called `{}`", policy.name))
                .because("the second one")
                .help("give each its own name: results are kept under it"));
        }
        policies.push(policy);
    }
    if policies.is_empty() {
        let mut manifests = base.clone();
        manifests.resolve_priorities(&[])?;
        let (name, autoscaler) = if base.node_pools.is_empty() {
            ("static", Autoscaler::None)
        } else {
            ("karpenter", Autoscaler::Karpenter)
        };
        policies.push(PolicyVariant {
            name: name.to_owned(),
            autoscaler,
            versions,
            interruption_queue: handling.queue,
            feature_gates: handling.gates,
            termination_handler: handling.handler_in(reader, &manifests)?,
            controller_time: pace,
            packer: PackerKind::Karpenter,
            flags: None,
            manifests: Arc::new(manifests),
        });
    }
    Ok(policies)
}

fn policy<'s>(
    reader: &mut Reader<'s>,
    node: &Node<'s>,
    region: &Region,
    base: &Manifests,
    (versions_of_all, handling_of_all, pace_of_all): (Versions, Handling, ControllerTime),
    files: &mut Files<'_>,
) -> Result<PolicyVariant, ScenarioError> {
    const AUTOSCALERS: &[(&str, Autoscaler)] = &[
        ("karpenter", Autoscaler::Karpenter),
        ("cluster-autoscaler", Autoscaler::ClusterAutoscaler),
        ("static", Autoscaler::None),
        ("none", Autoscaler::None),
    ];
    let fields = reader.fields(node, &POLICY.shape)?;
    let name = file_name(reader, fields.required(reader, "name")?)?;
    let autoscaler = reader.choice(fields.required(reader, "autoscaler")?, "autoscaler", AUTOSCALERS)?;
    let versions = versions(reader, fields, versions_of_all)?;
    let handling = Handling::read(reader, fields, handling_of_all)?;
    let controller_time = controller_time::read(reader, fields, pace_of_all)?;
    let packer = packer(reader, fields, autoscaler, versions)?;
    let flags = flags(reader, fields, autoscaler, versions)?;
    let mut manifests = base.clone();
    manifests.apply(files.manifests(reader, fields, "manifests")?);
    node_groups(reader, fields, region, &mut manifests)?;
    manifests.resolve_priorities(&[])?;
    if autoscaler == Autoscaler::Karpenter && manifests.node_pools.is_empty() {
        return Err(reader
            .error(node.at, format!("the policy `{name}` has no NodePool and no Provisioner"))
            .because("Karpenter would launch nothing")
            .help("add one to its `manifests` or to the scenario's, or say `autoscaler: static`"));
    }
    if let Some(flags) = &flags
        && !minds_any(flags, &manifests)
    {
        return Err(reader
            .error(node.at, format!("the policy `{name}` has no node group that Cluster Autoscaler would find"))
            .because("Cluster Autoscaler would launch nothing")
            .help(
                "add managed node groups (eksctl's `managedNodeGroups`, or `nodeGroups` of the scenario), give the \
                 groups the tag `k8s.io/cluster-autoscaler/enabled`, or name them in the flag `nodes`",
            ));
    }
    Ok(PolicyVariant {
        name,
        autoscaler,
        versions,
        interruption_queue: handling.queue,
        feature_gates: handling.gates,
        termination_handler: handling.handler_in(reader, &manifests)?,
        controller_time,
        packer,
        flags,
        manifests: Arc::new(manifests),
    })
}

/// Whether the autoscaler would mind one of the groups.
fn minds_any(flags: &Flags, manifests: &Manifests) -> bool {
    manifests.node_groups.iter().any(|group| flags.discovery.limits(group.name, &group.tags, (0, 0)).is_some())
}

/// Who packs: a setting of policies under which Karpenter does anything, for releases that the packer knows.
fn packer<'s>(
    reader: &Reader<'s>,
    fields: Fields<'_, 's>,
    autoscaler: Autoscaler,
    versions: Versions,
) -> Result<PackerKind, ScenarioError> {
    const PACKERS: &[(&str, PackerKind)] =
        &[("karpenter", PackerKind::Karpenter), ("cost-aware", PackerKind::CostAware)];
    let Some(node) = fields.get("packer") else { return Ok(PackerKind::Karpenter) };
    let packer = reader.choice(node, "packer", PACKERS)?;
    if autoscaler != Autoscaler::Karpenter {
        return Err(reader
            .error(node.at, "only Karpenter packs")
            .because("would do nothing")
            .help("take `packer` out, or say `autoscaler: karpenter`"));
    }
    if !packer.knows(versions.karpenter) {
        let release = versions.karpenter;
        return Err(reader
            .error(node.at, format!("the cost-aware packer does not know the rules of Karpenter {release}"))
            .because("would pack by other rules")
            .help("use `versions: { karpenter: v0.16 }` or a later one"));
    }
    Ok(packer)
}

/// The flags of the Cluster Autoscaler: the defaults of its release, and over them those that are stated.
fn flags<'s>(
    reader: &Reader<'s>,
    fields: Fields<'_, 's>,
    autoscaler: Autoscaler,
    versions: Versions,
) -> Result<Option<Arc<Flags>>, ScenarioError> {
    let stated = fields.get("flags");
    if autoscaler != Autoscaler::ClusterAutoscaler {
        return match stated {
            None => Ok(None),
            Some(node) => Err(reader
                .error(node.at, "only Cluster Autoscaler has flags here")
                .because("would do nothing")
                .help("take `flags` out, or say `autoscaler: cluster-autoscaler`")),
        };
    }
    let entries = stated.map_or(Ok(&[][..]), |node| reader.entries(node, "flags"))?;
    let mut given: Vec<(&str, &str, &Node<'s>)> = Vec::new();
    for entry in entries {
        // A flag that may be given several times is a list here.
        let values =
            if entry.value.items().is_empty() { std::slice::from_ref(&entry.value) } else { entry.value.items() };
        for value in values {
            given.push((&entry.key, reader.text(value, &entry.key)?, value));
        }
    }
    let release = versions.cluster_autoscaler.kubernetes();
    let flags = Flags::parse(release, given.iter().map(|(name, value, _)| (*name, *value))).map_err(|error| {
        let entry = entries.iter().find(|entry| entry.key == error.flag.as_str());
        let at = entry.map_or(fields.at, |entry| if error.names_no_flag { entry.key_at } else { entry.value.at });
        let shown: String = error.flag.chars().take(80).collect();
        let wrong = reader.error(at, format!("the flag `{shown}`: {}", error.reason)).because("not accepted");
        match error.similar {
            Some(similar) => wrong.help(format!("did you mean `{similar}`?")),
            None if error.names_no_flag => wrong.help("take it out; flags are written without their dashes"),
            None => wrong.help("write the value as on the program's command line"),
        }
    })?;
    if let Some((.., node)) = given.iter().find(|(name, ..)| *name == "expander")
        && flags.expander.filters().contains(&Expander::Price)
    {
        return Err(reader
            .error(node.at, "Couldn't access cloud provider pricing for price expander: Not implemented")
            .because("with these words the program exits on AWS")
            .help("use `least-waste`, or `priority` with the cheapest groups first"));
    }
    Ok(Some(Arc::new(flags)))
}
