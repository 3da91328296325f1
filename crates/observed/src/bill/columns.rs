//! Columns by name, and cells as what they mean.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use nodecast_model::text::InputError;
use nodecast_model::text::error::listed;

use super::amount::Amount;
use super::place::{Mistake, of_file};

/// A column that is read: its names in the exports that have it, the preferred one first.
pub(super) struct Wanted {
    pub names: &'static [&'static str],
    /// Whether there is nothing to be read without it.
    pub required: bool,
}

/// States the columns of a format once: the constant by which code names each, whether there is nothing to be read without it, and its
/// names in files.
macro_rules! columns {
    ($($column:ident $need:ident [$($name:literal),+ $(,)?];)*) => {
        /// Numbers of the columns in `WANTED`.
        #[allow(dead_code)] // some columns are read only to tell rows apart
        mod column {
            #[allow(clippy::upper_case_acronyms)]
            #[derive(Clone, Copy)]
            #[allow(non_camel_case_types)]
            enum Number { $($column),* }
            $(pub const $column: usize = Number::$column as usize;)*
        }
        const WANTED: &[$crate::bill::columns::Wanted] = &[$($crate::bill::columns::Wanted {
            names: &[$($name),+],
            required: columns!(@$need),
        }),*];
    };
    (@needed) => { true };
    (@useful) => { false };
}
pub(super) use columns;

/// Where in a row each wanted column stands.
#[derive(Debug)]
pub(super) struct Columns {
    positions: Vec<Option<usize>>,
    wanted: &'static [Wanted],
}

impl std::fmt::Debug for Wanted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.names[0])
    }
}

impl Columns {
    /// Finds the columns of `wanted` in a header.
    ///
    /// # Errors
    /// If a required one is missing, or one stands there twice.
    pub(super) fn new(
        file: &str,
        form: &str,
        header: &csv::StringRecord,
        wanted: &'static [Wanted],
    ) -> Result<Self, InputError> {
        let mut positions = Vec::with_capacity(wanted.len());
        let mut missing = Vec::new();
        for column in wanted {
            let mut places = Vec::new();
            for name in column.names {
                places.extend(header.iter().enumerate().filter(|(_, title)| title == name).map(|(at, _)| at));
                if places.len() > 1 {
                    return Err(of_file(file, &format!("the column `{name}` stands in the header twice"))
                        .help("remove one of them from the export's query"));
                }
                if !places.is_empty() {
                    break;
                }
            }
            if places.is_empty() && column.required {
                missing.push(column.names[0]);
            }
            positions.push(places.first().copied());
        }
        if missing.is_empty() {
            return Ok(Self { positions, wanted });
        }
        Err(of_file(file, &format!("{form} that lacks {}", listed(missing.iter().copied())))
            .help("add to the export's query what is missing; docs/bills.md lists the columns that are read"))
    }

    /// The column's position, where it is there.
    pub(super) fn position(&self, column: usize) -> Option<usize> {
        self.positions.get(column).copied().flatten()
    }

    /// The cells of a row.
    pub(super) fn cells<'r>(&'r self, row: &'r csv::StringRecord) -> Cells<'r> {
        Cells { columns: self, row }
    }
}

/// The cells of one row.
#[derive(Clone, Copy)]
pub(super) struct Cells<'r> {
    columns: &'r Columns,
    row: &'r csv::StringRecord,
}

impl<'r> Cells<'r> {
    /// The text of a cell; empty where there is no such column.
    pub(super) fn text(&self, column: usize) -> &'r str {
        self.columns.position(column).and_then(|position| self.row.get(position)).unwrap_or_default().trim()
    }

    /// The amount in a cell; `None` in an empty one.
    pub(super) fn amount(&self, column: usize) -> Result<Option<Amount>, Mistake> {
        let text = self.text(column);
        if text.is_empty() || text.eq_ignore_ascii_case("null") {
            return Ok(None);
        }
        Amount::parse(text).map(Some).ok_or_else(|| {
            self.mistake(column, "is not an amount", "a decimal number such as 0.0021505376 belongs here")
        })
    }

    /// The amount in a cell that must not be empty.
    pub(super) fn needed(&self, column: usize, why: &str) -> Result<Amount, Mistake> {
        self.amount(column)?.ok_or_else(|| match self.columns.position(column) {
            Some(_) => self.mistake(column, "is empty", why),
            None => self.mistake(column, "is missing, which this row needs", why),
        })
    }

    /// The instant in a cell; without a time zone it is UTC.
    pub(super) fn instant(&self, column: usize) -> Result<Timestamp, Mistake> {
        let text = self.text(column);
        instant(text).ok_or_else(|| {
            self.mistake(column, "is not an instant", "an instant in UTC such as 2026-10-13T01:00:00Z belongs here")
        })
    }

    /// A JSON object of texts in a cell; nothing in an empty one.
    pub(super) fn map(&self, column: usize) -> Result<BTreeMap<String, String>, Mistake> {
        let text = self.text(column);
        if text.is_empty() || text == "{}" {
            return Ok(BTreeMap::new());
        }
        let object: serde_json::Map<String, serde_json::Value> = serde_json::from_str(text).map_err(|_| {
            self.mistake(column, "is not a JSON object", "the cell may have been cut off: export the bill again")
        })?;
        let text = |value: serde_json::Value| match value {
            serde_json::Value::Null => None,
            serde_json::Value::String(text) => Some(text),
            other => Some(other.to_string()),
        };
        Ok(object.into_iter().filter_map(|(key, value)| text(value).map(|value| (key, value))).collect())
    }

    /// What is wrong with a cell.
    pub(super) fn mistake(&self, column: usize, what: &str, help: &str) -> Mistake {
        let name = self.columns.wanted.get(column).map_or("", |wanted| wanted.names[0]);
        Mistake {
            position: self.columns.position(column),
            message: format!("the column `{name}` {what}"),
            reason: "in this row".to_owned(),
            help: help.to_owned(),
        }
    }
}

/// An instant as exports write them: RFC 3339, or date and time of day without a zone, which is UTC.
pub(super) fn instant(text: &str) -> Option<Timestamp> {
    text.parse().ok().or_else(|| {
        let civil: DateTime = text.parse().ok()?;
        civil.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
    })
}
