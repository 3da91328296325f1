//! Reading a table: lines whose cells stand in the order of declared columns, errors that say where.

use super::{CatalogError, CellError, Cells};

/// Calls `each` for every line of the CSV text `text` with its cells in the order of `columns`, whatever the order of
/// the columns in the text. Columns that are not asked for are ignored.
pub(super) fn for_each_line(
    file: &str,
    text: &str,
    columns: &[&'static str],
    each: impl FnMut(&mut Cells<'_>) -> Result<(), CellError>,
) -> Result<(), CatalogError> {
    for_each_line_with_optional(file, text, columns, 0, each)
}

/// As [`for_each_line`]; the last `optional` of `columns` may be missing, and their cells are then empty.
pub(super) fn for_each_line_with_optional(
    file: &str,
    text: &str,
    columns: &[&'static str],
    optional: usize,
    mut each: impl FnMut(&mut Cells<'_>) -> Result<(), CellError>,
) -> Result<(), CatalogError> {
    let mut reader = csv::ReaderBuilder::new().from_reader(text.as_bytes());
    let malformed = |error: csv::Error| CatalogError::Malformed {
        file: file.to_owned(),
        line: error.position().map_or(1, csv::Position::line),
        reason: error.to_string(),
    };
    let headers = reader.headers().map_err(malformed)?;
    let mut positions = Vec::with_capacity(columns.len());
    for (place, &column) in columns.iter().enumerate() {
        let position = headers.iter().position(|header| header.trim() == column);
        if position.is_none() && place + optional < columns.len() {
            return Err(CatalogError::MissingColumn { file: file.to_owned(), column });
        }
        positions.push(position);
    }
    let mut record = csv::StringRecord::new();
    while reader.read_record(&mut record).map_err(malformed)? {
        let line = record.position().map_or(0, csv::Position::line);
        let texts: Vec<&str> =
            positions.iter().map(|position| position.and_then(|at| record.get(at)).unwrap_or("")).collect();
        each(&mut Cells::new(columns, &texts, line)).map_err(|error| CatalogError::Malformed {
            file: file.to_owned(),
            line,
            reason: error.to_string(),
        })?;
    }
    Ok(())
}
