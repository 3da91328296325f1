//! What a later ClusterConfig changes of a node group, key by key.

use std::collections::BTreeMap;

use super::GROUP;
use nodecast_model::domain::node_group::VersionUpdate;
use nodecast_model::domain::{NodeGroup, Symbol};
use nodecast_model::text::tree::{Node, NodeKind};

/// Keys that a node group keeps elsewhere: an update changes what they state, or who owns it.
const KEPT_ELSEWHERE: [&str; 6] = ["name", "minSize", "desiredCapacity", "maxSize", "labels", "taints"];

/// Keys of which a part alone is used, and those that an update does not change although a new group goes by them.
const PARTLY_USED: [&str; 9] = [
    "ami",
    "instancesDistribution",
    "bottlerocket",
    "iam",
    "preBootstrapCommands",
    "overrideBootstrapCommand",
    "asgSuspendProcesses",
    "tags",
    "propagateASGTags",
];

/// The keys that a node group states, with their values as one text each.
pub(super) fn statement(group: &Node<'_>) -> BTreeMap<String, String> {
    let entries = group.entries().iter().filter(|entry| !KEPT_ELSEWHERE.contains(&&*entry.key));
    entries.map(|entry| (entry.key.to_string(), text(&entry.value))).collect()
}

/// A value as a text that does not depend on how it was written.
fn text(value: &Node<'_>) -> String {
    match &value.kind {
        NodeKind::Null => "null".to_owned(),
        NodeKind::Scalar { text, .. } => format!("{text:?}"),
        NodeKind::Seq(items) => format!("[{}]", items.iter().map(text_of_item).collect::<String>()),
        NodeKind::Map(entries) => {
            let mut texts: Vec<String> =
                entries.iter().map(|entry| format!("{:?}: {},", entry.key, text(&entry.value))).collect();
            texts.sort_unstable();
            format!("{{{}}}", texts.concat())
        }
    }
}

fn text_of_item(item: &Node<'_>) -> String {
    text(item) + ","
}

/// The keys whose values differ between two forms of a node group that eksctl makes: those that nothing here uses, or not all of, and those
/// that a group is made from.
pub fn changed_keys<'g>(before: &'g NodeGroup, later: &'g NodeGroup) -> (Vec<&'g str>, Vec<&'g str>) {
    if before.eksctl_cluster.is_none() || later.eksctl_cluster.is_none() {
        return (Vec::new(), Vec::new());
    }
    let is_updated = image_update(before, later).is_some();
    let later_managed = later.managed;
    let (before, later) = (&before.statement, &later.statement);
    let gone = before.keys().filter(|key| !later.contains_key(*key));
    let mut keys: Vec<&str> =
        later.keys().filter(|key| before.get(*key) != later.get(*key)).map(String::as_str).collect();
    keys.extend(gone.map(String::as_str));
    let has_effect = |key: &str| {
        is_updated && IMAGE_KEYS.contains(&key) || later_managed && matches!(key, "updateConfig" | "warmPoolConfig")
    };
    keys.retain(|key| !has_effect(key));
    keys.sort_unstable();
    // Several releases of an operating system are one family here, and to state the default changes nothing.
    let is_release = |key: &str| key == "amiFamily" && before.contains_key(key) && later.contains_key(key);
    keys.into_iter().partition(|key| !GROUP.keys.contains(key) || PARTLY_USED.contains(key) || is_release(key))
}

/// Keys of a managed group whose change is an update of its nodes.
const IMAGE_KEYS: [&str; 2] = ["ami", "releaseVersion"];

/// The update of a managed group to the release or the machine image that its later form states; `None` where neither changes.
pub fn image_update(before: &NodeGroup, later: &NodeGroup) -> Option<VersionUpdate> {
    let changes =
        |key: &&&str| later.statement.contains_key(**key) && before.statement.get(**key) != later.statement.get(**key);
    let key = IMAGE_KEYS.iter().find(changes).filter(|_| before.managed && later.managed)?;
    let stated = |key: &str| later.statement.get(key).map(|text| text.trim_matches('"').to_owned());
    let release = stated("releaseVersion").and_then(|text| {
        let mut parts = text.split(['.', '-']);
        format!("{}.{}", parts.next()?, parts.next()?).parse().ok()
    });
    let image = stated(key).map(|text| Symbol::new(&text));
    Some(VersionUpdate { group: later.name, release, image, force: false })
}
