//! One line of a price table: cells by declared column, errors that say which.

use crate::domain::{HourlyRate, Symbol};

/// The cells of one line; each call takes the next of the declared columns.
pub struct Cells<'a> {
    columns: &'a [&'static str],
    /// The text under each of them; columns that the table lacks are empty.
    texts: &'a [&'a str],
    line: u64,
    next: usize,
}

/// Why a line cannot be understood: the column, the value and what is wrong with it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct CellError(String);

impl<'a> Cells<'a> {
    /// Cells that stand under these columns, in this line of their table (from 1).
    pub fn new(columns: &'a [&'static str], texts: &'a [&'a str], line: u64) -> Self {
        Self { columns, texts, line, next: 0 }
    }

    /// The text of the next cell; empty if it is.
    pub fn text(&mut self) -> &'a str {
        let text = self.texts.get(self.next).copied().unwrap_or("").trim();
        self.next += 1;
        text
    }

    /// Whether the next cell is empty; does not take it.
    pub fn is_empty(&self) -> bool {
        self.texts.get(self.next).is_none_or(|text| text.trim().is_empty())
    }

    /// The next cell as a symbol, `None` if empty.
    pub fn symbol(&mut self) -> Option<Symbol> {
        let text = self.text();
        (!text.is_empty()).then(|| Symbol::new(text))
    }

    /// The next cell as a symbol.
    ///
    /// # Errors
    /// If it is empty.
    pub fn required(&mut self) -> Result<Symbol, CellError> {
        self.symbol().ok_or_else(|| self.malformed("is empty"))
    }

    /// The next cell as a whole number, 0 if empty.
    ///
    /// # Errors
    /// If it is anything else.
    pub fn count(&mut self) -> Result<u32, CellError> {
        match self.text() {
            "" => Ok(0),
            text => text.parse().map_err(|_| self.malformed(&format!("`{text}` is not a whole number"))),
        }
    }

    /// The next cell as yes (`1`) or no (`0` or empty).
    ///
    /// # Errors
    /// If it is anything else.
    pub fn flag(&mut self) -> Result<bool, CellError> {
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
    pub fn rate(&mut self) -> Result<Option<HourlyRate>, CellError> {
        match self.text() {
            "" => Ok(None),
            text => self.rate_of(text).map(Some),
        }
    }

    /// `text`, a part of the cell last taken, as a price per hour.
    ///
    /// # Errors
    /// If it is not a plain decimal.
    pub fn rate_of(&self, text: &str) -> Result<HourlyRate, CellError> {
        HourlyRate::parse(text).ok_or_else(|| self.malformed(&format!("`{text}` is not a price per hour")))
    }

    /// The line, from 1.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// An error that the line repeats what an earlier line says of `name`.
    pub fn repeated(name: impl std::fmt::Display) -> CellError {
        CellError(format!("`{name}` has a line already"))
    }

    /// An error about the cell last taken.
    pub fn malformed(&self, why: &str) -> CellError {
        let column = self.columns.get(self.next.saturating_sub(1)).copied().unwrap_or("line");
        CellError(format!("{column} {why}"))
    }
}
