//! Reading a table: cells by declared column, errors that say where.

use super::CatalogError;
use crate::domain::{HourlyRate, Symbol};

/// Calls `each` for every line of the CSV text `text` with its cells in the order of `columns`, whatever the order of
/// the columns in the text. Columns that are not asked for are ignored.
pub(super) fn for_each_line(
    file: &str,
    text: &str,
    columns: &[&'static str],
    each: impl FnMut(&mut Cells<'_>) -> Result<(), CatalogError>,
) -> Result<(), CatalogError> {
    for_each_line_with_optional(file, text, columns, 0, each)
}

/// As [`for_each_line`]; the last `optional` of `columns` may be missing, and their cells are then empty.
pub(super) fn for_each_line_with_optional(
    file: &str,
    text: &str,
    columns: &[&'static str],
    optional: usize,
    mut each: impl FnMut(&mut Cells<'_>) -> Result<(), CatalogError>,
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
        each(&mut Cells { file, columns, positions: &positions, record: &record, next: 0 })?;
    }
    Ok(())
}

/// The cells of one line; each call takes the next of the declared columns.
pub(super) struct Cells<'a> {
    file: &'a str,
    columns: &'a [&'static str],
    /// Where each column stands in the line, if it does.
    positions: &'a [Option<usize>],
    record: &'a csv::StringRecord,
    next: usize,
}

impl<'a> Cells<'a> {
    /// The text of the next cell; empty if it is.
    pub(super) fn text(&mut self) -> &'a str {
        let position = self.positions.get(self.next).copied().flatten();
        let text = position.and_then(|position| self.record.get(position)).unwrap_or("").trim();
        self.next += 1;
        text
    }

    /// The next cell as a symbol, `None` if empty.
    pub(super) fn symbol(&mut self) -> Option<Symbol> {
        let text = self.text();
        (!text.is_empty()).then(|| Symbol::new(text))
    }

    /// The next cell as a symbol.
    ///
    /// # Errors
    /// If it is empty.
    pub(super) fn required(&mut self) -> Result<Symbol, CatalogError> {
        self.symbol().ok_or_else(|| self.malformed("is empty"))
    }

    /// The next cell as a whole number, 0 if empty.
    ///
    /// # Errors
    /// If it is anything else.
    pub(super) fn count(&mut self) -> Result<u32, CatalogError> {
        match self.text() {
            "" => Ok(0),
            text => text.parse().map_err(|_| self.malformed(&format!("`{text}` is not a whole number"))),
        }
    }

    /// The next cell as yes (`1`) or no (`0` or empty).
    ///
    /// # Errors
    /// If it is anything else.
    pub(super) fn flag(&mut self) -> Result<bool, CatalogError> {
        match self.text() {
            "" | "0" => Ok(false),
            "1" => Ok(true),
            text => Err(self.malformed(&format!("`{text}` is neither 0 nor 1"))),
        }
    }

    /// The next cell as a price per hour, `None` if empty.
    ///
    /// # Errors
    /// If it is not a plain decimal.
    pub(super) fn rate(&mut self) -> Result<Option<HourlyRate>, CatalogError> {
        match self.text() {
            "" => Ok(None),
            text => self.rate_of(text).map(Some),
        }
    }

    /// `text`, a part of the cell last taken, as a price per hour.
    ///
    /// # Errors
    /// If it is not a plain decimal.
    pub(super) fn rate_of(&self, text: &str) -> Result<HourlyRate, CatalogError> {
        HourlyRate::parse(text).ok_or_else(|| self.malformed(&format!("`{text}` is not a price per hour")))
    }

    /// The line, from 1.
    pub(super) fn line(&self) -> u64 {
        self.record.position().map_or(0, csv::Position::line)
    }

    /// An error that the line repeats what an earlier line says of `name`.
    pub(super) fn repeated(&self, name: impl std::fmt::Display) -> CatalogError {
        CatalogError::Malformed {
            file: self.file.to_owned(),
            line: self.line(),
            reason: format!("`{name}` has a line already"),
        }
    }

    /// An error about the cell last taken.
    pub(super) fn malformed(&self, why: &str) -> CatalogError {
        let column = self.columns.get(self.next.saturating_sub(1)).copied().unwrap_or("line");
        CatalogError::Malformed { file: self.file.to_owned(), line: self.line(), reason: format!("{column} {why}") }
    }
}
