//! The one ConfigMap that changes a result: the ranks of node groups for Cluster Autoscaler's expander `priority`.
//!
//! Source: Cluster Autoscaler 1.36 `expander/priority/priority.go`.

use std::collections::BTreeMap;

use super::common::metadata;
use crate::domain::Symbol;
use crate::policy::cluster_autoscaler::expander::GroupRanks;
use crate::text::InputError;
use crate::text::error::Effect;
use crate::text::reader::Reader;
use crate::text::tree::Node;

/// Its name, in the autoscaler's own namespace.
const NAME: &str = "cluster-autoscaler-priority-expander";
const NAMESPACE: &str = "kube-system";

/// Regular expressions for names of groups, by rank; the higher ranks are preferred.
pub type StatedRanks = BTreeMap<i64, Vec<String>>;

/// The ranks that a ConfigMap states, if it is that of the expander. One that the program could not read is left out with a
/// warning, as the program leaves it out; one in another namespace than the program's is `unread`, which matters to those who rank groups.
pub(super) fn group_ranks<'s>(
    reader: &mut Reader<'s>,
    object: &Node<'s>,
    unread: &mut Option<Symbol>,
) -> Result<Option<StatedRanks>, InputError> {
    let named = object.get("metadata").and_then(|metadata| metadata.get("name")).and_then(Node::as_text);
    if named != Some(NAME) {
        return Ok(None);
    }
    let namespace = metadata(reader, object.get("metadata"))?.name.namespace;
    if namespace.as_str() != NAMESPACE {
        *unread = Some(namespace);
        return Ok(None);
    }
    let stated = object.get("data").and_then(|data| data.get("priorities"));
    let Some(text) = stated.and_then(Node::as_text) else {
        let message = format!("the ConfigMap {NAME} has no `priorities`");
        reader.note(Effect::MayChangeAnswer, object.at, message, "ranks nothing", "state them under `data`, as text");
        return Ok(None);
    };
    let at = stated.map_or(object.at, |node| node.at);
    let read = serde_saphyr::from_str::<StatedRanks>(text).map_err(|error| error.to_string());
    let ranks = read.and_then(|ranks| {
        let pairs = ranks.iter().flat_map(|(rank, names)| names.iter().map(|name| (*rank, name.as_str())));
        GroupRanks::new(pairs).map(|_| ranks)
    });
    match ranks {
        Ok(ranks) => Ok(Some(ranks)),
        Err(reason) => {
            let first = reason.lines().next().unwrap_or_default().to_owned();
            let message = format!("the priorities of the ConfigMap {NAME} cannot be read: {first}");
            let help = "write ranks with lists of regular expressions: `10: [spot.*]`";
            reader.note(Effect::MayChangeAnswer, at, message, "ranks nothing", help);
            Ok(None)
        }
    }
}
