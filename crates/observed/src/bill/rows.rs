//! Rows of a table of charges, one after the other, as bill lines: the layout by the header, what is left out, places of mistakes.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Read;

use jiff::Timestamp;
use nodecast_model::text::InputError;

use super::line::BillLine;
use super::place::{Mistake, Spot, at_line, of_file};
use super::source::{Guarded, Watch, unreadable};
use super::{Format, LinesRead, ReadOptions, cost_explorer, cur, focus};

/// Who takes the lines, one at a time; an error ends the reading.
pub type EachLine<'e> = dyn FnMut(&BillLine) -> Result<(), InputError> + 'e;

/// Where the columns of a table of charges stand.
enum Layout {
    Cur(cur::Layout),
    Focus(focus::Layout),
}

/// Reads the rows of one table.
pub(super) struct Rows<'f> {
    file: &'f str,
    header: csv::StringRecord,
    layout: Layout,
    /// Whether the header is to be shown with a cell, since the file has no lines of text.
    columnar: bool,
    options: &'f ReadOptions,
    /// See [`Self::positions`].
    read_columns: Vec<usize>,
    read: LinesRead,
}

impl<'f> Rows<'f> {
    /// Reads rows under this header.
    ///
    /// # Errors
    /// If the header is of no known format, or lacks a column.
    pub(super) fn new(
        file: &'f str,
        header: csv::StringRecord,
        columnar: bool,
        options: &'f ReadOptions,
    ) -> Result<Self, InputError> {
        let (layout, format) = if cur::recognises(&header) {
            let layout = cur::Layout::new(file, &header)?;
            let format = if layout.map_of_tags { Format::Cur2 } else { Format::LegacyCur };
            (Layout::Cur(layout), format)
        } else if focus::recognises(&header) {
            (Layout::Focus(focus::Layout::new(file, &header)?), Format::Focus(focus::release(&header)))
        } else {
            return Err(unknown(file, &header));
        };
        let read = LinesRead { format, rows: 0, outside: 0, currency: String::new(), span: None };
        let mut rows = Self { file, header, layout, columnar, options, read_columns: Vec::new(), read };
        rows.read_columns = rows.positions();
        Ok(rows)
    }

    /// Numbers of the columns that are read, the column of a meaning always at the same place.
    pub(super) fn positions(&self) -> Vec<usize> {
        match &self.layout {
            Layout::Cur(layout) => layout.positions(),
            Layout::Focus(layout) => layout.positions(),
        }
    }

    /// Takes the row that stands at `line`.
    ///
    /// # Errors
    /// If a cell is not what its column holds, or `each` refuses the line.
    pub(super) fn take(
        &mut self,
        line: u64,
        row: &csv::StringRecord,
        each: &mut EachLine<'_>,
    ) -> Result<(), InputError> {
        let names = self.columnar.then_some(&self.header);
        let spot = Spot { file: self.file, line, cells: row, names };
        self.read.rows += 1;
        let Some(charge) = self.line(row).map_err(|mistake| spot.error(mistake))? else {
            self.read.outside += 1;
            return Ok(());
        };
        if self.read.currency.is_empty() {
            self.read.currency.clone_from(&charge.currency);
        } else if !charge.currency.is_empty() && charge.currency != self.read.currency {
            return Err(spot.error(Mistake {
                position: row.iter().position(|cell| cell == charge.currency),
                message: format!("a charge in {} among charges in {}", charge.currency, self.read.currency),
                reason: "another currency".to_owned(),
                help: "export one currency at a time: nothing here converts between them".to_owned(),
            }));
        }
        let span = self.read.span.get_or_insert((charge.start, charge.end));
        *span = (span.0.min(charge.start), span.1.max(charge.end));
        each(&charge)
    }

    /// The line of a row; `None` if it is outside of what is asked for.
    fn line(&self, row: &csv::StringRecord) -> Result<Option<BillLine>, Mistake> {
        let (start, account) = match &self.layout {
            Layout::Cur(layout) => layout.when_and_who(row)?,
            Layout::Focus(layout) => layout.when_and_who(row)?,
        };
        if !self.options.wants(start, account) {
            return Ok(None);
        }
        let mut line = match &self.layout {
            Layout::Cur(layout) => layout.line(row)?,
            Layout::Focus(layout) => layout.line(row)?,
        };
        if line.end < line.start {
            return Err(Mistake {
                position: None,
                message: format!("the charge ends at {} before it begins at {}", line.end, line.start),
                reason: "in this row".to_owned(),
                help: "the row is damaged: export the bill again".to_owned(),
            });
        }
        let mut hasher = DefaultHasher::new();
        if line.id.is_empty() {
            self.read_columns.iter().filter_map(|at| row.get(*at)).for_each(|cell| cell.hash(&mut hasher));
        } else {
            // One id, whatever the export is called and whichever columns it has beside.
            let when = (line.start.as_second(), line.end.as_second());
            (&line.id, when, line.kind.name(), line.usage, line.unblended, line.amortised).hash(&mut hasher);
        }
        line.fingerprint = hasher.finish();
        Ok(Some(line))
    }

    /// What was read.
    ///
    /// # Errors
    /// If there was no row.
    pub(super) fn done(self) -> Result<LinesRead, InputError> {
        if self.read.rows == 0 {
            return Err(of_file(self.file, "there is a header and no row below it")
                .help("was the export finished? AWS writes the first lines of a period within a day"));
        }
        Ok(self.read)
    }
}

impl ReadOptions {
    /// Whether a row that begins at `start` and is of this account is asked for.
    fn wants(&self, start: Timestamp, account: &str) -> bool {
        self.window.is_none_or(|(from, to)| (from..to).contains(&start))
            && (self.accounts.is_empty() || self.accounts.contains(account))
    }
}

/// Reads a CSV file, whatever of the known tables it is.
pub(super) fn read_csv(
    file: &str,
    text: impl Read,
    options: &ReadOptions,
    each: &mut EachLine<'_>,
) -> Result<super::Contents, InputError> {
    let (guarded, watch) = Guarded::new(text);
    let mut reader = csv::ReaderBuilder::new().from_reader(guarded);
    let header = reader.headers().map_err(|error| broken(file, &error, &watch))?.clone();
    watch.row_done();
    if cost_explorer::recognises(&header) {
        return cost_explorer::read(file, reader, &watch).map(super::Contents::CostExplorer);
    }
    let mut rows = Rows::new(file, header, false, options)?;
    let mut row = csv::StringRecord::new();
    while reader.read_record(&mut row).map_err(|error| broken(file, &error, &watch))? {
        watch.row_done();
        rows.take(watch.line(row.position()), &row, each)?;
    }
    rows.done().map(super::Contents::Lines)
}

/// The error about a CSV file that cannot be taken apart.
pub(super) fn broken(file: &str, error: &csv::Error, watch: &Watch) -> InputError {
    let line = watch.line(error.position());
    match error.kind() {
        csv::ErrorKind::Io(_) if watch.is_over() => of_file(file, "a row is longer than 16 MiB")
            .help("a quote is probably not closed: the file is damaged, copy it again from the bucket"),
        csv::ErrorKind::Io(error) => unreadable(file, Some(watch.rows()), error),
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            at_line(file, line, &format!("the row has {len} cells, the header {expected_len}"))
                .help("the file is cut off here, or the row is damaged: copy it again from the bucket")
        }
        csv::ErrorKind::Utf8 { .. } => {
            at_line(file, line, "the row is not UTF-8").help("save the file as UTF-8, or copy it again from the bucket")
        }
        _ => at_line(file, line, "the row cannot be read"),
    }
}

/// Most columns that a message lists.
const SHOWN: usize = 8;

/// The error about a table of no known format.
fn unknown(file: &str, header: &csv::StringRecord) -> InputError {
    if let Some(separator) =
        header.get(0).filter(|_| header.len() == 1).and_then(|title| title.chars().find(|c| ";\t|".contains(*c)))
    {
        return of_file(file, &format!("the cells are separated by {separator:?} and not by commas"))
            .help("use the file as AWS exports it; spreadsheets save it otherwise");
    }
    let shown: BTreeSet<&str> = header.iter().filter(|title| !title.is_empty()).collect();
    let shown: Vec<String> = shown.iter().take(SHOWN).map(|title| title.chars().take(40).collect()).collect();
    let columns = nodecast_model::text::error::listed(shown.iter().map(String::as_str));
    let more = if header.len() > shown.len() { format!(" among {}", header.len()) } else { String::new() };
    let named = match shown.len() {
        0 => "no column".to_owned(),
        1 => format!("the column {columns}"),
        _ => format!("the columns {columns}{more}"),
    };
    of_file(file, &format!("no bill that is known has {named}")).help(KNOWN)
}

/// What is read, for messages about what is not.
pub(super) const KNOWN: &str = "read are AWS's Cost and Usage Report (2.0 and legacy), FOCUS 1.0 to 1.2 with AWS columns, tables of Cost Explorer, \
    and the JSON of OpenCost's and Kubecost's /allocation and /assets";
