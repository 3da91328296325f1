//! `initial`: the dump of a cluster with which a run begins.

use std::sync::Arc;

use super::Reading;
use crate::error::ScenarioError;
use crate::single_pass::Inventory;
use crate::tree::Node;

/// What the dump shows to run. What else it holds is passed over: objects are applied from `manifests`.
pub(crate) fn read<'s>(
    reading: &mut Reading<'_, 's>,
    node: &Node<'s>,
    what: &str,
) -> Result<Arc<Inventory>, ScenarioError> {
    let objects = reading.files.manifest_file(&reading.reader, node, what)?;
    let (inventory, mut warnings) = Inventory::from_objects(objects);
    reading.files.warnings.append(&mut warnings);
    if inventory.nodes.is_empty() {
        return Err(reading
            .error(node.at, "the dump has no nodes for the run to begin with")
            .because("no Node among its objects")
            .help("add the nodes and pods: `kubectl get nodes,nodeclaims,pods -A -o yaml`"));
    }
    Ok(Arc::new(inventory))
}
