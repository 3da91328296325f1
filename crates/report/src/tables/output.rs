//! Where the rows of a table go: into a file of comma-separated values, or cell by cell to whoever keeps tables in a form of its own.
//!
//! What must not live here: which columns a table has.

use std::fmt::{Display, Write as _};
use std::io::{self, Write};

use csv::ByteRecord;
use jiff::Timestamp;

use nodecast_model::text::cells::csv_cell;

use crate::domain::{HourlyRate, Money, SimDuration, SimTime};
use crate::format::ExactSeconds;

/// What the cells of a column hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Text.
    Text,
    /// Whole numbers.
    Whole,
    /// Numbers.
    Number,
    /// Yes or no.
    Flag,
    /// Instants or spans, exact to the microsecond; files have them in seconds.
    Seconds,
    /// Calendar time in UTC.
    Time,
    /// Amounts in the region's currency, exact to nine decimals.
    Money,
}

/// A column: its name, and what its cells hold.
pub type Column = (&'static str, Kind);

/// A cell. One without a value may stand in any column, every other in a column of its kind.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Cell<'c> {
    /// A value that does not exist.
    Nothing,
    /// Text.
    Text(&'c str),
    /// A whole number.
    Whole(i64),
    /// A number.
    Number(f64),
    /// Yes or no.
    Flag(bool),
    /// Microseconds, in a column of seconds.
    Micros(i64),
    /// Calendar time.
    Time(Timestamp),
    /// Billionths, in a column of money.
    Nanos(i128),
}

/// Who takes the cells of a table.
pub trait Sink {
    /// The columns, before any cell.
    fn columns(&mut self, columns: &[Column]);
    /// The next cell, row by row.
    fn cell(&mut self, cell: Cell<'_>);
}

/// Where a table goes.
pub enum Output<'o> {
    /// Into a file.
    File(&'o mut dyn Write),
    /// To whoever keeps it in another form.
    Sink(&'o mut dyn Sink),
}

/// A row, its cells put in one after the other. That of a file is made in room that is used again for the next one: tables have
/// many thousands.
pub struct Row<'r> {
    target: Target<'r>,
    text: String,
}

enum Target<'r> {
    Cells(ByteRecord),
    Sink(&'r mut dyn Sink),
}

impl<'r> Row<'r> {
    fn new(target: Target<'r>) -> Self {
        Self { target, text: String::new() }
    }

    /// Begins the next row.
    fn clear(&mut self) {
        if let Target::Cells(cells) = &mut self.target {
            cells.clear();
        }
    }

    /// Writes the row, if it is one of a file.
    fn write(&self, writer: &mut csv::Writer<impl Write>) -> io::Result<()> {
        match &self.target {
            Target::Cells(cells) => Ok(writer.write_byte_record(cells)?),
            Target::Sink(_) => Ok(()),
        }
    }

    /// A cell whose text in a file is what `shown` shows itself as.
    fn cell(&mut self, cell: Cell<'_>, shown: impl Display) -> &mut Self {
        match &mut self.target {
            Target::Cells(cells) => {
                self.text.clear();
                // Writing to a string cannot fail.
                let _ = write!(self.text, "{shown}");
                cells.push_field(self.text.as_bytes());
            }
            Target::Sink(sink) => sink.cell(cell),
        }
        self
    }

    /// A cell without a value.
    fn nothing(&mut self) -> &mut Self {
        match &mut self.target {
            Target::Cells(cells) => cells.push_field(b""),
            Target::Sink(sink) => sink.cell(Cell::Nothing),
        }
        self
    }

    /// A cell that holds this text.
    pub(super) fn text(&mut self, text: &str) -> &mut Self {
        match &mut self.target {
            Target::Cells(cells) => cells.push_field(csv_cell(text).as_bytes()),
            Target::Sink(sink) => sink.cell(Cell::Text(text)),
        }
        self
    }

    /// The same, if there is a text.
    pub(super) fn optional_text(&mut self, text: Option<&str>) -> &mut Self {
        match text {
            Some(text) => self.text(text),
            None => self.nothing(),
        }
    }

    /// A cell that holds the text as which `value` shows itself.
    pub(super) fn shown(&mut self, value: impl Display) -> &mut Self {
        self.text.clear();
        // Writing to a string cannot fail.
        let _ = write!(self.text, "{value}");
        match &mut self.target {
            Target::Cells(cells) => cells.push_field(csv_cell(&self.text).as_bytes()),
            Target::Sink(sink) => sink.cell(Cell::Text(&self.text)),
        }
        self
    }

    /// The same, if there is a value.
    pub(super) fn optional_shown(&mut self, value: Option<impl Display>) -> &mut Self {
        match value {
            Some(value) => self.shown(value),
            None => self.nothing(),
        }
    }

    /// A whole number.
    pub(super) fn whole(&mut self, value: impl Into<i64>) -> &mut Self {
        let value = value.into();
        self.cell(Cell::Whole(value), value)
    }

    /// A whole number that may not exist.
    pub(super) fn optional_whole(&mut self, value: Option<impl Into<i64>>) -> &mut Self {
        match value {
            Some(value) => self.whole(value),
            None => self.nothing(),
        }
    }

    /// A number.
    pub(super) fn number(&mut self, value: f64) -> &mut Self {
        self.cell(Cell::Number(value), value)
    }

    /// A number that may not exist.
    pub(super) fn optional_number(&mut self, value: Option<f64>) -> &mut Self {
        match value {
            Some(value) => self.number(value),
            None => self.nothing(),
        }
    }

    /// Yes or no.
    pub(super) fn flag(&mut self, value: bool) -> &mut Self {
        self.cell(Cell::Flag(value), value)
    }

    /// An amount.
    pub(super) fn money(&mut self, value: Money) -> &mut Self {
        self.cell(Cell::Nanos(value.as_nanos()), value)
    }

    /// A price for an hour.
    pub(super) fn rate(&mut self, value: HourlyRate) -> &mut Self {
        self.cell(Cell::Nanos(i128::from(value.as_nanos())), value)
    }

    /// Calendar time, if the calendar knows it.
    pub(super) fn time(&mut self, time: Option<Timestamp>) -> &mut Self {
        match time {
            Some(time) => self.cell(Cell::Time(time), time),
            None => self.nothing(),
        }
    }

    fn micros(&mut self, micros: i64) -> &mut Self {
        self.cell(Cell::Micros(micros), ExactSeconds(micros))
    }

    /// An instant in seconds since the start.
    pub(super) fn at(&mut self, instant: SimTime) -> &mut Self {
        self.micros(instant.as_micros())
    }

    /// An instant that may never have come.
    pub(super) fn instant(&mut self, instant: Option<SimTime>) -> &mut Self {
        match instant {
            Some(instant) => self.at(instant),
            None => self.nothing(),
        }
    }

    /// A span in seconds.
    pub(super) fn span(&mut self, span: Option<SimDuration>) -> &mut Self {
        match span {
            Some(span) => self.micros(span.as_micros()),
            None => self.nothing(),
        }
    }
}

/// A table; `fill` puts the cells of a thing into its row. A file has one header line and `\n` line ends.
pub(super) fn table<T>(
    output: &mut Output<'_>,
    columns: &[Column],
    things: impl IntoIterator<Item = T>,
    fill: impl Fn(T, &mut Row<'_>),
) -> io::Result<()> {
    match output {
        Output::File(file) => {
            let mut writer = csv::Writer::from_writer(file);
            writer.write_record(columns.iter().map(|(name, _)| name))?;
            let mut row = Row::new(Target::Cells(ByteRecord::new()));
            for thing in things {
                row.clear();
                fill(thing, &mut row);
                row.write(&mut writer)?;
            }
            writer.flush()
        }
        Output::Sink(sink) => {
            sink.columns(columns);
            let mut row = Row::new(Target::Sink(*sink));
            things.into_iter().for_each(|thing| fill(thing, &mut row));
            Ok(())
        }
    }
}

/// Room for the line of a series, which is made again at every change; a longer one finds more.
const LINE_BYTES: usize = 1 << 10;

/// A table whose rows begin with an instant and tell the state of one of several series each, by number: (instant, series,
/// state). Nearly always a series is as it was, so what was last written of each into a file is kept and written again while its
/// state is the same.
pub(super) fn table_of_series<S: PartialEq>(
    output: &mut Output<'_>,
    columns: &[Column],
    rows: impl Iterator<Item = (SimTime, usize, S)>,
    fill: impl Fn(usize, &S, &mut Row<'_>),
) -> io::Result<()> {
    let Output::File(file) = output else {
        return table(output, columns, rows, |(at, series, state), row| fill(series, &state, row.at(at)));
    };
    table(&mut Output::File(*file), columns, std::iter::empty::<()>(), |(), _| {})?;
    let mut last: Vec<(Option<S>, Vec<u8>)> = Vec::new();
    let (mut instant, mut instant_text) = (None, String::new());
    let mut row = Row::new(Target::Cells(ByteRecord::new()));
    for (at, series, state) in rows {
        if instant != Some(at) {
            (instant, instant_text) = (Some(at), format!("{},", ExactSeconds(at.as_micros())));
        }
        if last.len() <= series {
            last.resize_with(series + 1, || (None, Vec::new()));
        }
        let (known, line) = &mut last[series];
        if known.as_ref() != Some(&state) {
            row.clear();
            fill(series, &state, &mut row);
            line.clear();
            let mut writer = csv::WriterBuilder::new().buffer_capacity(LINE_BYTES).from_writer(&mut *line);
            row.write(&mut writer)?;
            writer.flush()?;
            drop(writer);
            *known = Some(state);
        }
        file.write_all(instant_text.as_bytes())?;
        file.write_all(line)?;
    }
    Ok(())
}
