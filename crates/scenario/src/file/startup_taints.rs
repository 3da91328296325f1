//! `cluster.startup_taints`: each key once, and DaemonSets that are there.

use std::collections::BTreeSet;

use super::checks;
use super::{Placed, Reading, ScenarioError};
use crate::definition::PolicyVariant;
use crate::definition::StartupTaint;
use crate::error::nearest;
use crate::reader::Fields;
use crate::tree::Location;

/// Checks the entries against each other and against the objects of all policies and of the timeline.
///
/// # Errors
/// If a key is described twice, or no manifest holds a DaemonSet.
pub(super) fn check(
    reading: &Reading<'_, '_>,
    fields: Fields<'_, '_>,
    stated: &[StartupTaint],
    (policies, actions): (&[PolicyVariant], &[Placed]),
) -> Result<(), ScenarioError> {
    let entries = fields.get("cluster").and_then(|cluster| cluster.get("startup_taints"));
    let place = |position: usize, key: &str| -> Location {
        let entry = entries.and_then(|list| list.items().get(position));
        entry.and_then(|entry| entry.get(key)).map_or(fields.at, |node| node.at)
    };
    let sets = checks::manifests(policies, actions).into_iter().flat_map(|manifests| &manifests.daemon_sets);
    let names: BTreeSet<String> = sets.map(|set| set.name.to_string()).collect();
    let mut keys = BTreeSet::new();
    for (position, entry) in stated.iter().enumerate() {
        if !keys.insert(entry.key) {
            let error = reading.error(place(position, "key"), format!("`{}` is described twice", entry.key));
            return Err(error.because("the second time").help("put everything about it into one entry"));
        }
        let Some(name) = entry.removed_by.map(|name| name.to_string()).filter(|name| !names.contains(name)) else {
            continue;
        };
        let near = nearest(&name, names.iter().map(String::as_str));
        let help = near.map_or_else(
            || "add the DaemonSet to the manifests, or use `after` alone".to_owned(),
            |near| format!("did you mean `{near}`?"),
        );
        let error = reading.error(place(position, "removed_by"), format!("no DaemonSet is called `{name}`"));
        return Err(error.because("would remove no taint").help(help));
    }
    Ok(())
}
