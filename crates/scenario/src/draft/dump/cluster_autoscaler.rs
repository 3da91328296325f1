//! What a dump says of its Cluster Autoscaler: the release, the flags, and which node groups it scales within which limits.
//!
//! Must not: read what the AWS CLI printed (`aws`).

use std::collections::BTreeSet;

use super::aws::Described;
use super::cluster::{Launcher, images, stated_by};
use super::groups::{Group, is_karpenters};
use super::limits::{is_of_auto_scaling_group, tags_of_group};
use super::objects::Object;
use super::{Dump, Notes};
use crate::domain::KubernetesVersion;
use crate::domain::node_group::{group_of_node, is_group_called};
use crate::domain::versions::{ClusterAutoscalerVersion, major_and_minor};
use crate::domain::words::{counted, some_of};
use nodecast_cluster_autoscaler::Flags;
use nodecast_cluster_autoscaler::flags::WITHOUT_EFFECT;

/// The flag that names groups with their limits.
const NODES: &str = "nodes";
/// The flag that names tags of groups.
const DISCOVERY: &str = "node-group-auto-discovery";
/// The label of nodes that eksctl names the cluster by.
const CLUSTER_OF_EKSCTL: &str = "alpha.eksctl.io/cluster-name";
/// Tags that EKS gives the Auto Scaling group of each managed node group, of keys that name the cluster by their beginning.
///
/// Source: EKS user guide, `managed-node-groups` ("EKS tags managed node group resources so that they are configured to use the Kubernetes
/// Cluster Autoscaler").
const TAGS_OF_EKS: [&str; 4] =
    ["k8s.io/cluster-autoscaler/", "kubernetes.io/cluster/", "eks:cluster-name", "eks:nodegroup-name"];

/// The flags of a Cluster Autoscaler.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct AutoscalerFlags {
    /// Flags that a policy states, with all values of each.
    pub stated: Vec<(String, Vec<String>)>,
    /// Groups that are named.
    named: Vec<NamedGroup>,
    /// Tags by which groups are found: a group needs all of one of these lists.
    tags: Vec<Vec<(String, Option<String>)>>,
}

/// A group as the flag `nodes` names it.
#[derive(Clone, PartialEq, Eq, Debug)]
struct NamedGroup {
    name: String,
    sizes: (usize, usize),
}

/// The release and the flags of the Cluster Autoscaler that a Deployment runs.
pub(super) fn launcher(deployment: &Object<'_>, notes: &mut Notes) -> Launcher {
    let version = version(deployment, notes);
    let flags = flags(deployment, version.unwrap_or_default().kubernetes(), notes);
    Launcher::ClusterAutoscaler { version, flags }
}

/// Whether an image is the Cluster Autoscaler's.
pub(super) fn is_of_autoscaler(image: &str) -> bool {
    image.contains("/cluster-autoscaler")
}

/// The release that is reproduced and comes nearest to that of the image.
fn version(deployment: &Object<'_>, notes: &mut Notes) -> Option<ClusterAutoscalerVersion> {
    let tag = |image: &str| Some(image.split('@').next()?.rsplit_once(':')?.1.to_owned());
    let stated = images(deployment).filter(|image| is_of_autoscaler(image)).find_map(tag);
    let release = stated.as_deref().and_then(major_and_minor).filter(|(major, _)| *major == 1);
    let (Some(stated), Some((_, minor))) = (stated, release) else {
        let assumed = ClusterAutoscalerVersion::default();
        notes.assume(format!("The Cluster Autoscaler's image names no release: it behaves as that of {assumed} does."));
        return None;
    };
    let nearest = ClusterAutoscalerVersion::nearest(minor);
    if KubernetesVersion::from_minor(minor) != Some(nearest.kubernetes()) {
        let (oldest, last) = (ClusterAutoscalerVersion::OLDEST, KubernetesVersion::NEWEST);
        notes.warn(format!(
            "Cluster Autoscaler {stated} is not supported; using {nearest} (supported: 1.{oldest} to 1.{last}; override with `versions.cluster-autoscaler`)"
        ));
        notes.assume(format!("Cluster Autoscaler {stated} behaves as {nearest} does."));
    }
    Some(nearest)
}

/// The flags that are reproduced in a release, and the groups that they name.
fn flags(deployment: &Object<'_>, release: KubernetesVersion, notes: &mut Notes) -> AutoscalerFlags {
    let mut flags = AutoscalerFlags::default();
    for (name, value) in stated_by(deployment) {
        // The program takes underscores for dashes.
        let name = name.replace('_', "-");
        if WITHOUT_EFFECT.contains(&&*name) {
            continue;
        }
        if let Err(error) = Flags::parse(release, [(&*name, value)]) {
            notes.warn(format!("the Cluster Autoscaler's flag `--{name}={value}` is ignored: {}", error.reason));
            continue;
        }
        match &*name {
            NODES => flags.named.extend(named_group(value)),
            DISCOVERY => flags.tags.extend(tags(value)),
            _ => match flags.stated.iter_mut().find(|(known, _)| *known == name) {
                Some((_, values)) => values.push(value.to_owned()),
                None => flags.stated.push((name, vec![value.to_owned()])),
            },
        }
    }
    flags
}

/// A group as `min:max:name` names it.
fn named_group(value: &str) -> Option<NamedGroup> {
    let mut parts = value.splitn(3, ':');
    let (least, most) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    Some(NamedGroup { name: parts.next()?.to_owned(), sizes: (least, most) })
}

/// The tags of `asg:tag=key,key=value`.
fn tags(value: &str) -> Option<Vec<(String, Option<String>)>> {
    let tag = |tag: &str| match tag.split_once('=') {
        Some((key, value)) => (key.to_owned(), Some(value.to_owned())),
        None => (tag.to_owned(), None),
    };
    Some(value.strip_prefix("asg:tag=")?.split(',').map(tag).collect())
}

impl AutoscalerFlags {
    /// Whether they say which groups the autoscaler scales.
    fn choose(&self) -> bool {
        !(self.named.is_empty() && self.tags.is_empty())
    }

    /// Lays the limits of the flags over the groups of a dump, and marks those that the autoscaler does not scale. `known` are those whose
    /// limits AWS told; those that a flag limits are added.
    pub(super) fn lay_over(
        &self,
        groups: &mut [Group],
        (dump, described): (&Dump<'_>, &Described),
        known: &mut BTreeSet<String>,
        notes: &mut Notes,
    ) {
        if !self.choose() {
            return;
        }
        let mut unused: Vec<&NamedGroup> = self.named.iter().collect();
        let mut unsure = Vec::new();
        let mut chosen: Vec<Option<(usize, usize)>> = Vec::new();
        for group in groups.iter() {
            let place = unused.iter().position(|named| is_named(group, &named.name, (&dump.nodes, described)));
            let is_found = place.is_none().then(|| self.finds(group, (&dump.nodes, described)));
            if is_found == Some(None) {
                unsure.push(group.name.clone());
            }
            chosen.push(match (place, is_found.flatten()) {
                (Some(place), _) => Some(unused.remove(place).sizes),
                (None, Some(false)) => None,
                (None, _) => Some(group.sizes),
            });
        }
        warn_of_unused(&unused, notes);
        if chosen.iter().all(Option::is_none) {
            return;
        }
        for (group, sizes) in groups.iter_mut().zip(chosen) {
            group.autoscaled = sizes;
            match sizes {
                Some(sizes) if sizes != group.sizes => limit(group, sizes, known, notes),
                Some(_) => {}
                None if known.contains(&group.name) => {}
                None => group.sizes = (group.count, group.count),
            }
        }
        self.tell(groups, &unsure, notes);
    }

    /// Whether tags find a group; `None` if its tags are not known.
    fn finds(&self, group: &Group, (nodes, described): (&[Object<'_>], &Described)) -> Option<bool> {
        if self.tags.is_empty() {
            return Some(false);
        }
        let stated = tags_of_group(group, nodes, described);
        let has = |(key, value): &(String, Option<String>)| match &stated {
            Some(stated) => Some(
                stated.iter().any(|(this_key, is)| this_key == key && value.as_ref().is_none_or(|value| value == is)),
            ),
            None if group.managed => TAGS_OF_EKS.iter().any(|tag| key.starts_with(tag)).then_some(true),
            None => None,
        };
        let all =
            |tags: &Vec<(String, Option<String>)>| tags.iter().map(has).try_fold(true, |all, has| Some(all && has?));
        let found: Vec<Option<bool>> = self.tags.iter().map(all).collect();
        if found.contains(&Some(true)) {
            Some(true)
        } else {
            found.into_iter().try_fold(false, |any, item| Some(any || item?))
        }
    }

    /// Says which groups are left alone, and of which it is not known whether they are.
    fn tell(&self, groups: &[Group], unsure: &[String], notes: &mut Notes) {
        let others: Vec<String> =
            groups.iter().filter(|group| group.autoscaled.is_none()).map(|group| group.name.clone()).collect();
        if !others.is_empty() {
            let them = counted(others.len() as u64, "node group", "node groups");
            notes.assume(format!(
                "The Cluster Autoscaler does not scale {them}, which its flags neither name nor find by a tag: {}.",
                some_of(&others)
            ));
        }
        if !unsure.is_empty() {
            let keys: BTreeSet<&str> = self.tags.iter().flatten().map(|(key, _)| key.as_str()).collect();
            let keys: Vec<&str> = keys.into_iter().collect();
            notes.assume(format!(
                "The Auto Scaling groups of these node groups are assumed to have the tags by which the Cluster Autoscaler finds groups ({}), because no tags are in a dump: {}.",
                keys.join(", "),
                some_of(unsure)
            ));
        }
    }

    /// The flag `nodes` of a policy, where it takes one to say which groups are scaled within which limits.
    pub(super) fn nodes_flag(groups: &[Group]) -> Option<(String, Vec<String>)> {
        let differs = |group: &Group| group.autoscaled != Some(group.sizes);
        let named = groups.iter().filter_map(|group| Some((group, group.autoscaled?)));
        let values: Vec<String> =
            named.map(|(group, (least, most))| format!("{least}:{most}:{}", group.name)).collect();
        (!values.is_empty() && groups.iter().any(differs)).then(|| (NODES.to_owned(), values))
    }
}

/// Gives a group the limits of a flag. Those that AWS told stay, and the autoscaler keeps within its own.
fn limit(group: &mut Group, (least, most): (usize, usize), known: &mut BTreeSet<String>, notes: &mut Notes) {
    if known.contains(&group.name) {
        return;
    }
    known.insert(group.name.clone());
    group.sizes = (least, most);
    group.desired = group.count.clamp(least, most);
    if group.desired != group.count {
        notes.assume(format!(
            "Node group {} begins with {}, within the {least} to {most} of the Cluster Autoscaler's flag `--nodes`: the dump shows {}.",
            group.name,
            counted(group.desired as u64, "node", "nodes"),
            group.count
        ));
    }
}

/// Whether the flag `nodes` names the Auto Scaling group of a node group.
fn is_named(group: &Group, text: &str, (nodes, described): (&[Object<'_>], &Described)) -> bool {
    let is_its = |node: &&Object<'_>| {
        !is_karpenters(node) && group_of_node(|key| node.label(key)) == (group.name.clone(), group.managed)
    };
    let cluster = nodes.iter().filter(is_its).find_map(|node| node.label(CLUSTER_OF_EKSCTL));
    is_group_called(text, &group.name, group.managed, cluster)
        || is_of_auto_scaling_group(group, text, nodes, described)
}

fn warn_of_unused(unused: &[&NamedGroup], notes: &mut Notes) {
    for NamedGroup { name, sizes: (least, most) } in unused {
        notes.warn(format!(
            "the Cluster Autoscaler's flag `--nodes={least}:{most}:{name}` is ignored: no node of the dump is known to be of this Auto Scaling group, so its limits are assumed. Add what `aws autoscaling describe-auto-scaling-groups` prints"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::{named_group, tags};

    #[test]
    fn group_flags_are_taken_apart() {
        assert_eq!(
            named_group("1:30:eks-a:b").map(|named_group| (named_group.name, named_group.sizes)),
            Some(("eks-a:b".to_owned(), (1, 30)))
        );
        assert_eq!(named_group("x:30:a"), None);
        assert_eq!(
            tags("asg:tag=team=blue,mine"),
            Some(vec![("team".to_owned(), Some("blue".to_owned())), ("mine".to_owned(), None)])
        );
        assert_eq!(tags("mig:x"), None);
    }
}
