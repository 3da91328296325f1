//! Prices by contract, from a table that somebody wrote by hand. A mistake in it is an error, not a record left out.

use super::{Fact, ImportError};
use crate::table::for_each_line;

const COLUMNS: &[&str] = &["region", "instance_type", "price", "as_of"];
/// How a table begins.
pub(super) const HEADER: &str = "`region,instance_type,price,as_of`";

/// Whether a text is such a table rather than JSON.
pub(super) fn is_table(text: &str) -> bool {
    let header = text.lines().next().unwrap_or_default();
    header.split(',').any(|column| column.trim() == "instance_type")
}

/// What separates the columns of a text that is such a table but for that, in words.
pub(super) fn other_separator(text: &str) -> Option<&'static str> {
    let header = text.lines().next().unwrap_or_default();
    let separated = |by: char| header.split(by).any(|column| column.trim() == "instance_type");
    [(';', "semicolons"), ('\t', "tabs")].into_iter().find_map(|(by, words)| separated(by).then_some(words))
}

/// Calls `each` for every line of the table.
///
/// # Errors
/// If a column is missing or a line cannot be understood.
pub(super) fn read(file: &str, text: &str, each: &mut dyn FnMut(Fact)) -> Result<(), ImportError> {
    for_each_line(file, text, COLUMNS, |cells| {
        let (region, instance_type) = (cells.required()?, cells.required()?);
        let rate = cells.rate()?.ok_or_else(|| cells.malformed("is empty"))?;
        each(Fact::Own {
            region: region.as_str().to_owned(),
            instance_type: instance_type.as_str().to_owned(),
            rate,
            date: cells.required()?.as_str().to_owned(),
            line: cells.line(),
        });
        Ok(())
    })?;
    Ok(())
}
