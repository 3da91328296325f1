//! What is to be said of node groups under the Cluster Autoscaler: those that it does not find, tags that it does not see, and ranks of the
//! expander `priority` that rank nothing.

use crate::domain::GroupRanks;
use crate::domain::words::{counted, some_of};
use crate::domain::{Labels, NodeGroup};
use crate::manifests::node_group::propagate;
use crate::manifests::{Manifests, StatedRanks};
use nodecast_cluster_autoscaler::Flags;
use nodecast_cluster_autoscaler::expander::Expander;
use nodecast_settings::Caveats;
use nodecast_settings::lints::setup;

/// What tags begin with that Cluster Autoscaler reads.
const TAGS: &str = "k8s.io/cluster-autoscaler/";
/// What those begin with that it reads of managed groups, too.
const RESOURCES: &str = "k8s.io/cluster-autoscaler/node-template/resources/";

/// Warns of groups that the autoscaler does not find, of tags that it does not see, and of ranks that nobody states.
pub(super) fn warn(manifests: &Manifests, flags: &Flags, warnings: &mut Caveats) {
    for group in &manifests.node_groups {
        if flags.discovery.limits(group, (0, 0)).is_none() {
            let name = group.name;
            warnings.add(
                &setup::UNDISCOVERED_GROUP,
                format!("node group {name} is not discovered by Cluster Autoscaler, so it keeps its size"),
            );
        }
        warn_of_unseen_tags(group, warnings);
        warn_of_weights(group, flags, warnings);
    }
    if !flags.expander.filters().contains(&Expander::Priority) {
        return;
    }
    if let Some(ranks) = &manifests.group_ranks {
        return warn_of_ranks("", ranks, &manifests.node_groups, flags, warnings);
    }
    let elsewhere = manifests
        .unread_ranks
        .map(|namespace| format!("; the one in namespace `{namespace}` is not read: set `namespace: kube-system`"));
    warnings.add(&setup::EXPANDER_WITHOUT_RANKS, format!(
        "expander `priority`: ConfigMap kube-system/cluster-autoscaler-priority-expander not found, so no group is preferred{}",
        elsewhere.unwrap_or_default()
    ));
}

/// A group whose sizes are in capacity units, which the autoscaler reads as nodes.
///
/// Source: Cluster Autoscaler 1.36 `cloudprovider/aws/auto_scaling_groups.go`, `createPlaceholdersForDesiredNonStartedInstances`;
/// kubernetes/autoscaler issue 4851.
fn warn_of_weights(group: &NodeGroup, flags: &Flags, warnings: &mut Caveats) {
    let limits = (i64::from(group.min_size), i64::from(group.max_size));
    let is_scaled = flags.discovery.limits(group, limits).is_some();
    if !is_scaled || group.weights.iter().all(|weight| *weight == 1) {
        return;
    }
    warnings.add(
        &setup::WEIGHTED_GROUP,
        format!(
            "node group {}: Cluster Autoscaler reads its capacity units as nodes. It expects more nodes than come, so pods wait longer, and \
             after `max-node-provision-time` it lowers the size to the number of instances. Remove `weights`, or use a group for each size",
            group.name
        ),
    );
}

/// Tags of a managed group that its Auto Scaling group would need to have. What EKS says of the group anyway is left out.
///
/// Source: Cluster Autoscaler 1.36 `cloudprovider/aws/aws_manager.go`, `buildNodeFromTemplate`, and `managed_nodegroup_cache.go`.
fn warn_of_unseen_tags(group: &NodeGroup, warnings: &mut Caveats) {
    let mut known = group.tags.clone();
    propagate(&group.labels, &group.taints, &mut known);
    let is_missed = |tags: &Labels, key, value| tags.get(key) != Some(value);
    let unseen = group.own_tags.iter().filter(|(key, _)| {
        let key = key.as_str();
        key.starts_with(TAGS) && !key.starts_with(RESOURCES)
    });
    let unseen: Vec<String> =
        unseen.filter(|&(key, value)| is_missed(&known, key, value)).map(|(key, _)| format!("`{key}`")).collect();
    if !unseen.is_empty() {
        warnings.add(&setup::UNSEEN_TAGS, format!(
            "node group {}: EKS does not hand {} on to the Auto Scaling group, so that Cluster Autoscaler does not see {}: set \
             `propagateASGTags: true`",
            group.name,
            some_of(&unseen),
            if unseen.len() == 1 { "it" } else { "them" }
        ));
    }
}

/// Warns of patterns that fit the name of no Auto Scaling group, and of groups without a rank beside others that have one; `when` says when
/// the ranks are stated.
///
/// Source: Cluster Autoscaler 1.36 `expander/priority/priority.go`, `BestOptions`: a group without a rank is not used while another has one.
pub(super) fn warn_of_ranks(
    when: &str,
    stated: &StatedRanks,
    groups: &[NodeGroup],
    flags: &Flags,
    warnings: &mut Caveats,
) {
    let limits = |group: &NodeGroup| {
        let item = (i64::from(group.min_size), i64::from(group.max_size));
        flags.discovery.limits(group, item)
    };
    let minded: Vec<&NodeGroup> = groups.iter().filter(|group| limits(group).is_some()).collect();
    let patterns =
        || stated.iter().flat_map(|(rank, patterns)| patterns.iter().map(|pattern| (*rank, pattern.as_str())));
    for (_, pattern) in patterns() {
        let Ok(alone) = GroupRanks::new([(0, pattern)]) else { continue };
        if minded.iter().any(|group| alone.rank(&group.auto_scaling_group_name()).is_some()) {
            continue;
        }
        let near = minded.iter().find(|group| alone.rank(group.name.as_str()).is_some());
        warnings.add(&setup::EXPANDER_PATTERN, match near {
            Some(group) => format!(
                "{when}the expander `priority` ranks Auto Scaling groups: `{pattern}` fits the node group {} but not its Auto Scaling group, \
                 which is called like {}, and so ranks nothing; write the pattern for that name",
                group.name,
                group.auto_scaling_group_name()
            ),
            None => format!(
                "{when}the expander `priority`: `{pattern}` matches no Auto Scaling group{}",
                minded.first().map_or_else(String::new, |group| format!(
                    "; that of the node group {} is called like {}",
                    group.name,
                    group.auto_scaling_group_name()
                ))
            ),
        });
    }
    let Ok(ranks) = GroupRanks::new(patterns()) else { return };
    let grows = |group: &&&NodeGroup| limits(group).is_some_and(|(least, most)| least < most);
    let (ranked, others): (Vec<&NodeGroup>, Vec<&NodeGroup>) =
        minded.iter().filter(grows).partition(|group| ranks.rank(&group.auto_scaling_group_name()).is_some());
    if !ranked.is_empty() && !others.is_empty() {
        let names: Vec<String> = others.iter().map(|group| group.name.to_string()).collect();
        warnings.add(&setup::EXPANDER_UNRANKED, format!(
            "{when}the expander `priority` gives no rank to {} ({}), which grow only for pods that no group with a rank helps",
            counted(others.len() as u64, "node group", "node groups"),
            some_of(&names)
        ));
    }
}
