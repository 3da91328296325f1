//! The policies of a scenario: who adds and removes nodes, with which settings and objects of its own.

use std::sync::Arc;

use super::overlays::Overlay;
use super::{Placed, Reading, auto_mode, fargate, node_groups};
use crate::ScenarioError;
use crate::definition::{Autoscaler, PolicyVariant};
use crate::domain::workload::ObjectName;
use crate::domain::{Symbol, Versions};
use crate::error::Warning;
use crate::manifests::{Manifests, image_update};
use crate::reader::{Fields, Reader};
use crate::schema::kind::Kind;
use crate::schema::policies::POLICY;
use crate::tree::Node;
use nodecast_cluster_autoscaler::Flags;
use nodecast_cluster_autoscaler::expander::Expander;
use nodecast_karpenter::packing::PackerKind;
use nodecast_karpenter::release::leave_out_unread;
use nodecast_single_pass::lints::UNREAD_POOL;

/// Files of a comparison's directory, in which each policy has a folder.
const OF_COMPARISON: [&str; 4] = ["comparison.json", "comparison.html", "replications.csv", "written.json"];

/// The policies that `policies` states.
pub(super) fn read<'s>(
    reading: &mut Reading<'_, 's>,
    fields: Fields<'_, 's>,
    base: &Manifests,
    overlay: Overlay,
) -> Result<Vec<PolicyVariant>, ScenarioError> {
    let nodes = fields.optional("policies", |n, what| reading.reader.list(n, what))?.unwrap_or_default();
    let mut policies: Vec<PolicyVariant> = Vec::new();
    for node in nodes {
        let policy = policy(reading, node, base, overlay.clone())?;
        if OF_COMPARISON.iter().any(|file| file.eq_ignore_ascii_case(&policy.name)) {
            return Err(reading
                .error(node.at, format!("no policy can be called `{}`", policy.name))
                .because("a comparison file uses this name")
                .help("give it another name: `compare` keeps its report in a folder of that name"));
        }
        if policies.iter().any(|other| other.name == policy.name) {
            return Err(reading
                .error(node.at, format!("duplicate policy name `{}`", policy.name))
                .because("the second one")
                .help("use unique names; results are stored under them"));
        }
        policies.push(policy);
    }
    Ok(policies)
}

/// The policy that the scenario's own objects imply, and those that its timeline brings.
pub(super) fn implied<'s>(
    reading: &mut Reading<'_, 's>,
    fields: Fields<'_, 's>,
    base: &Manifests,
    overlay: Overlay,
    actions: &[Placed],
) -> Result<PolicyVariant, ScenarioError> {
    let later = brought(actions).map(|manifests| &manifests.node_pools);
    // What exists from the start decides, if there is anything.
    let pools = std::iter::once(&base.node_pools).chain(later).find(|pools| !pools.is_empty());
    let (name, autoscaler) = if pools.is_none() {
        ("static", Autoscaler::None)
    } else if pools.into_iter().flatten().all(|pool| pool.auto_mode) {
        ("eks-auto-mode", Autoscaler::EksAutoMode)
    } else {
        ("karpenter", Autoscaler::Karpenter)
    };
    let packer = PackerKind::Karpenter;
    let bare = PolicyVariant {
        name: name.to_owned(),
        autoscaler,
        packer,
        versions: overlay.versions,
        interruption_queue: false,
        karpenter_options: overlay.options,
        default_spread: Vec::new(),
        feature_gates: overlay.gates,
        termination_handler: None,
        controller_time: overlay.controller_time,
        control_plane_tier: overlay.tier.0,
        auto_mode: None,
        fargate: None,
        vertical: Arc::default(),
        flags: None,
        manifests: Arc::default(),
    };
    let policy = completed(reading, bare, base.clone(), overlay)?;
    if policy.auto_mode.is_some() {
        auto_mode::check(reading, fields.at, &policy.manifests)?;
    }
    Ok(policy)
}

/// The manifests that a timeline applies.
fn brought(actions: &[Placed]) -> impl Iterator<Item = &Manifests> {
    actions.iter().filter_map(|placed| placed.action.action.applied()).map(|manifests| &**manifests)
}

/// Refuses a policy under which Karpenter never has a NodePool: neither from the start nor by a step of the timeline.
pub(super) fn check_pools<'s>(
    reading: &Reading<'_, 's>,
    fields: Fields<'_, 's>,
    policies: &[PolicyVariant],
    actions: &[Placed],
) -> Result<(), ScenarioError> {
    let nodes = fields.optional("policies", |n, what| reading.reader.list(n, what))?.unwrap_or_default();
    for (node, policy) in nodes.iter().zip(policies) {
        let comes_later = || brought(actions).flat_map(|manifests| &manifests.node_pools).any(|pool| !pool.auto_mode);
        if policy.autoscaler == Autoscaler::Karpenter && policy.manifests.node_pools.is_empty() && !comes_later() {
            return Err(reading
                .error(node.at, format!("the policy `{}` has no NodePool and no Provisioner", policy.name))
                .because("Karpenter would launch nothing")
                .help(
                    "add one to its `manifests`, to the scenario's or to a step of the timeline, or say `autoscaler: static`",
                ));
        }
    }
    Ok(())
}

/// A policy with what it is laid over.
fn completed(
    reading: &mut Reading<'_, '_>,
    policy: PolicyVariant,
    mut manifests: Manifests,
    mut overlay: Overlay,
) -> Result<PolicyVariant, ScenarioError> {
    let auto_mode = match policy.autoscaler {
        Autoscaler::EksAutoMode => Some(auto_mode::complete(&mut overlay, &mut manifests)),
        _ => {
            manifests.node_pools.retain(|node_pool| !node_pool.auto_mode);
            manifests.node_classes.retain(|node_class| !node_class.auto_mode);
            None
        }
    };
    if policy.autoscaler == Autoscaler::Karpenter {
        leave_out_unread_pools(reading, &overlay, &mut manifests);
    }
    reading.note(manifests.complete_workloads(&[]));
    manifests.resolve_priorities(&[])?;
    reading.note(manifests.admit(&[]));
    Ok(PolicyVariant {
        versions: overlay.versions,
        interruption_queue: overlay.queue,
        karpenter_options: overlay.options,
        default_spread: overlay.default_spread.clone(),
        feature_gates: overlay.gates,
        termination_handler: overlay.handler_in(&reading.reader, &manifests)?,
        controller_time: overlay.controller_time,
        control_plane_tier: overlay.checked_tier(&mut reading.reader, &policy.name)?,
        auto_mode,
        vertical: Arc::new(overlay.vertical.settings(overlay.versions.vertical)?),
        fargate: Some(overlay.fargate).filter(|fargate| !fargate.profiles.is_empty()).map(Arc::new),
        manifests: Arc::new(manifests),
        ..policy
    })
}

/// Takes the Provisioners out that the policy's release of Karpenter does not look at.
fn leave_out_unread_pools(reading: &mut Reading<'_, '_>, overlay: &Overlay, manifests: &mut Manifests) {
    let unread = leave_out_unread(overlay.versions.karpenter, &mut manifests.node_pools);
    let warnings = unread.into_iter().map(|(name, text)| {
        let name = ObjectName { namespace: Symbol::new("default"), name };
        let at = reading.files.place(manifests, "Provisioner", name);
        Warning::from_lint(&UNREAD_POOL, text).at(at)
    });
    let warnings = warnings.collect();
    reading.note(warnings);
}

/// Marks the managed groups of a policy that state another release or machine image than the scenario: their update begins with the run.
fn mark_updates(base: &Manifests, manifests: &mut Manifests) {
    for group in &mut manifests.node_groups {
        let before = base.node_groups.iter().find(|before| before.name == group.name);
        group.updated_at_start = before.and_then(|before| image_update(before, group));
    }
}

fn policy<'s>(
    reading: &mut Reading<'_, 's>,
    node: &Node<'s>,
    base: &Manifests,
    overlay: Overlay,
) -> Result<PolicyVariant, ScenarioError> {
    let mut policy = PolicyVariant::read(reading, node, "policies")?;
    let fields = reading.reader.fields(node, &POLICY.shape)?;
    let mut overlay = overlay.with(reading, fields)?.with_tier(reading, fields)?;
    auto_mode::check_keys(&reading.reader, fields, policy.autoscaler)?;
    check_packer(&reading.reader, fields, &policy, overlay.versions)?;
    policy.flags = flags(&reading.reader, fields, policy.autoscaler, overlay.versions)?;
    let mut manifests = base.clone();
    let mut this_manifests = reading.files.manifests(&reading.reader, fields, "manifests")?;
    mark_updates(base, &mut this_manifests);
    fargate::bring(reading, fields, &mut overlay.fargate, (base, &this_manifests))?;
    manifests.apply(this_manifests);
    node_groups::lay_over(reading, fields, &mut manifests)?;
    let policy = completed(reading, policy, manifests, overlay)?;
    let name = &policy.name;
    if policy.auto_mode.is_some() {
        auto_mode::check(reading, node.at, &policy.manifests)?;
    }
    if let Some(flags) = &policy.flags
        && !minds_any(flags, &policy.manifests)
    {
        return Err(reading
            .error(node.at, format!("the policy `{name}` has no node group that Cluster Autoscaler would find"))
            .because("Cluster Autoscaler would launch nothing")
            .help(
                "add managed node groups (eksctl's `managedNodeGroups`, or `nodeGroups` of the scenario), give the \
                 groups the tag `k8s.io/cluster-autoscaler/enabled` (tags of eksctl's managed groups are tags of their Auto Scaling groups \
                 with `propagateASGTags: true` only), or name them in the flag `nodes`, by their own names or as `eks-<name>-<id>`",
            ));
    }
    Ok(policy)
}

/// Whether the autoscaler would mind one of the groups.
fn minds_any(flags: &Flags, manifests: &Manifests) -> bool {
    manifests.node_groups.iter().any(|group| flags.discovery.limits(group, (0, 0)).is_some())
}

/// Who packs is a setting of policies under which Karpenter does anything, for releases that the packer knows.
fn check_packer(
    reader: &Reader<'_>,
    fields: Fields<'_, '_>,
    policy: &PolicyVariant,
    versions: Versions,
) -> Result<(), ScenarioError> {
    let Some(node) = fields.get("packer") else { return Ok(()) };
    if policy.autoscaler != Autoscaler::Karpenter {
        return Err(reader
            .error(node.at, "only Karpenter packs")
            .because("has no effect")
            .help("take `packer` out, or say `autoscaler: karpenter`"));
    }
    if !policy.packer.knows(versions.karpenter) {
        let release = versions.karpenter;
        return Err(reader
            .error(node.at, format!("the cost-aware packer does not support Karpenter {release}"))
            .because("would pack by other rules")
            .help("use `versions: { karpenter: v0.16 }` or a later one"));
    }
    Ok(())
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
                .because("has no effect")
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
            .because("the real Cluster Autoscaler exits with this message on AWS")
            .help("use `least-waste`, or `priority` with the cheapest groups first"));
    }
    Ok(Some(Arc::new(flags)))
}
