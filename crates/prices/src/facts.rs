//! The table of instance types.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::table::for_each_line_with_optional;
use super::{CatalogError, Cells, InstanceFacts};

/// Reads the table of instance types.
pub(super) fn parse(file: &str, text: &str) -> Result<BTreeMap<&'static str, Arc<InstanceFacts>>, CatalogError> {
    let mut facts = BTreeMap::new();
    let (columns, optional) = (InstanceFacts::COLUMNS, InstanceFacts::OPTIONAL_COLUMNS);
    for_each_line_with_optional(file, text, columns, optional, |cells| {
        let entry = InstanceFacts::from_cells(cells)?;
        match facts.insert(entry.name.as_str(), Arc::new(entry)) {
            None => Ok(()),
            Some(first) => Err(Cells::repeated(first.name)),
        }
    })?;
    Ok(facts)
}
