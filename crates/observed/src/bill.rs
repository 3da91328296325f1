//! Bills: exports of AWS as lines of one form, which of them are one cluster's, and what these come to.
//!
//! [`read_file`] recognises a file by its first bytes and its header, never by its name, and hands on one line at a time: a bill of
//! gigabytes is never in memory. [`Ledger`] takes lines, decides whose each is, and sums. [`chain`](fn@chain) sets the sum beside a simulated
//! bill, link by link. What must not live here: which figures a simulation has, printing, anything that opens a connection.

mod amount;
mod chain;
#[cfg(feature = "parquet")]
mod columnar;
mod columns;
mod cost_explorer;
mod cur;
mod focus;
mod ledger;
mod line;
mod nodes;
mod opencost;
mod place;
mod rows;
mod selection;
mod source;
mod totals;
mod usage_type;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use jiff::Timestamp;
use nodecast_model::text::InputError;

pub use amount::Amount;
pub use chain::{
    Chain, ComparedBill, HeldRate, Link, LinkKind, NodeCost, PriceHeld, RateSource, TypeHeld, chain, price_held,
};
pub use cost_explorer::{DailyCosts, DayCosts};
pub use ledger::Ledger;
pub use line::{BillLine, ChargeKind, PricingTerm};
pub use nodes::{CapacityType, NodeHours, NodeKey, SpotHour, SpotKey};
pub use opencost::{Allocation, Asset, NodeAsset};
pub use rows::EachLine;
pub use selection::{Cluster, Rule, Share};
pub use totals::{Others, Sums, Totals};
pub use usage_type::{Group, instance_type, without_region};

use place::of_file;
use source::{Container, container, peeked, text_of};

/// Which rows of a bill are read.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ReadOptions {
    /// Only charges that begin from the first instant on and before the second.
    pub window: Option<(Timestamp, Timestamp)>,
    /// Only charges of these accounts; of all where there is none.
    pub accounts: BTreeSet<String>,
}

/// The format of a table of charges.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// AWS's Cost and Usage Report 2.0, with tags in one column.
    Cur2,
    /// The legacy report, or Athena's table of it, with a column for each tag.
    LegacyCur,
    /// FOCUS, with the release of its specification.
    Focus(&'static str),
}

/// What was read of a table of charges.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinesRead {
    /// The format, as its header says.
    pub format: Format,
    /// Rows in the file.
    pub rows: u64,
    /// Rows that are outside of what was asked for.
    pub outside: u64,
    /// The currency of the lines.
    pub currency: String,
    /// From the first begin to the last end of lines handed on.
    pub span: Option<(Timestamp, Timestamp)>,
}

/// What stood in a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Contents {
    /// Charges, which have been handed on one by one.
    Lines(LinesRead),
    /// A table of Cost Explorer.
    CostExplorer(DailyCosts),
    /// OpenCost's allocations.
    Allocations(Vec<Allocation>),
    /// OpenCost's assets.
    Assets(Vec<Asset>),
}

/// Reads a file: CSV, gzip'd CSV, Parquet, or JSON of OpenCost. Lines of a bill go to `each` in the order of the file.
///
/// # Errors
/// If it cannot be read, is of no known format, is cut off or damaged; or what `each` returns.
pub fn read_file(path: &Path, options: &ReadOptions, each: &mut EachLine<'_>) -> Result<Contents, InputError> {
    let name = path.display().to_string();
    if path.is_dir() {
        return Err(of_file(&name, "this is a folder").help("name the files of the export, all parts of a month"));
    }
    let file = File::open(path).map_err(|error| of_file(&name, &format!("cannot be read: {error}")))?;
    let mut bytes = BufReader::with_capacity(1 << 16, file);
    match container(&name, peeked(&name, &mut bytes)?)? {
        Container::Parquet => read_parquet_file(&name, bytes.into_inner(), options, each),
        Container::Text | Container::Gzip => read_text(&name, bytes, options, each),
    }
}

/// Reads the bytes of a file that is called `name`.
///
/// # Errors
/// As [`read_file`].
pub fn read_bytes(
    name: &str,
    bytes: &[u8],
    options: &ReadOptions,
    each: &mut EachLine<'_>,
) -> Result<Contents, InputError> {
    match container(name, bytes)? {
        Container::Parquet => read_parquet_bytes(name, bytes, options, each),
        Container::Text | Container::Gzip => read_text(name, bytes, options, each),
    }
}

fn read_text(
    name: &str,
    bytes: impl BufRead,
    options: &ReadOptions,
    each: &mut EachLine<'_>,
) -> Result<Contents, InputError> {
    let mut text = text_of(name, bytes)?;
    let first = peeked(name, &mut text)?.iter().find(|byte| !byte.is_ascii_whitespace());
    match first {
        None => Err(of_file(name, "the file is empty").help("was the export finished?")),
        Some(b'{' | b'[') => opencost::read(name, text),
        Some(_) => rows::read_csv(name, text, options, each),
    }
}

#[cfg(feature = "parquet")]
use columnar::{read_bytes as read_parquet_bytes, read_file as read_parquet_file};

#[cfg(not(feature = "parquet"))]
use no_parquet::{read_bytes as read_parquet_bytes, read_file as read_parquet_file};

/// Stands in for the reader of Parquet in builds without it.
#[cfg(not(feature = "parquet"))]
mod no_parquet {
    use std::fs::File;

    use super::{Contents, EachLine, InputError, ReadOptions, of_file};

    fn refused(name: &str) -> InputError {
        of_file(name, "this program was built without its reader of Parquet").help(
            "build it with the feature `parquet`, let the export write \"gzip - text/csv\", or convert the file: \
             duckdb -c \"COPY (FROM 'bill.parquet') TO 'bill.csv' (HEADER)\"",
        )
    }

    pub(super) fn read_file(
        name: &str,
        _content: File,
        _options: &ReadOptions,
        _each: &mut EachLine<'_>,
    ) -> Result<Contents, InputError> {
        Err(refused(name))
    }

    pub(super) fn read_bytes(
        name: &str,
        _content: &[u8],
        _options: &ReadOptions,
        _each: &mut EachLine<'_>,
    ) -> Result<Contents, InputError> {
        Err(refused(name))
    }
}
