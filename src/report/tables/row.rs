//! A row of a table, made in room that is used again for the next one: tables have many thousands.
//!
//! What must not live here: which columns a table has.

use std::fmt::{Display, Write as _};

use csv::ByteRecord;

use crate::domain::{SimDuration, SimTime};
use crate::report::format::ExactSeconds;

/// The cells of a row, put in one after the other.
#[derive(Debug, Default)]
pub(super) struct Row {
    cells: ByteRecord,
    text: String,
}

impl Row {
    /// Begins the next row.
    pub(super) fn clear(&mut self) {
        self.cells.clear();
    }

    /// The cells so far.
    pub(super) fn cells(&self) -> &ByteRecord {
        &self.cells
    }

    /// A cell that holds this text.
    pub(super) fn text(&mut self, text: &str) -> &mut Self {
        self.cells.push_field(text.as_bytes());
        self
    }

    /// A cell that holds what `value` shows itself as.
    pub(super) fn value(&mut self, value: impl Display) -> &mut Self {
        self.text.clear();
        // Writing to a string cannot fail.
        let _ = write!(self.text, "{value}");
        self.cells.push_field(self.text.as_bytes());
        self
    }

    /// The same, or an empty cell for nothing.
    pub(super) fn optional(&mut self, value: Option<impl Display>) -> &mut Self {
        match value {
            Some(value) => self.value(value),
            None => self.text(""),
        }
    }

    /// An instant in seconds since the start.
    pub(super) fn at(&mut self, instant: SimTime) -> &mut Self {
        self.value(ExactSeconds(instant.as_micros()))
    }

    /// An instant that may never have come.
    pub(super) fn instant(&mut self, instant: Option<SimTime>) -> &mut Self {
        self.optional(instant.map(|instant| ExactSeconds(instant.as_micros())))
    }

    /// A span in seconds.
    pub(super) fn span(&mut self, span: Option<SimDuration>) -> &mut Self {
        self.optional(span.map(|span| ExactSeconds(span.as_micros())))
    }
}
