//! Table: rows of cells under headings, with one renderer for each format: terminal, Markdown, HTML, CSV, JSON.
//!
//! Must not: compute a metric, or know the command that prints it.

mod html;
mod terminal;

use std::fmt::Write as _;
use std::io;

use nodecast_model::text::cells::csv_cell;
use serde::{Serialize, Serializer};

use super::columns::Align;
use super::figure::Figure;
use super::markdown;

/// Where a column is shown.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Priority {
    /// Everywhere; on a narrow terminal again with each block of columns.
    Label,
    /// Everywhere.
    Main,
    /// On pages and in files, where there is room.
    Detail,
}

/// A column of a table.
#[derive(Clone, Debug)]
struct Column {
    header: String,
    unit: &'static str,
    align: Align,
    priority: Priority,
    /// The least width in a terminal.
    width: usize,
    /// The number of characters to which a terminal shortens its names.
    shortened: Option<usize>,
}

/// Words that say whether something is as it should be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Verdict {
    /// The words.
    pub words: String,
    /// Whether that is good; `None` if it is neither.
    pub is_good: Option<bool>,
}

/// A cell of a table.
#[derive(Clone, PartialEq, Debug)]
pub enum Cell {
    /// No value.
    Missing,
    /// Words.
    Text(String),
    /// A number, perhaps with its interval.
    Figure(Figure),
    /// A verdict.
    Verdict(Verdict),
}

/// Rows that people or programs read.
#[derive(Clone, Debug)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
    missing: &'static str,
    gap: usize,
}

/// A table under construction: each column takes its cells from the items.
#[derive(Clone, Debug)]
pub struct Rows<R> {
    items: Vec<R>,
    table: Table,
}

impl<R> Rows<R> {
    /// A table without columns, with a row for each item.
    pub fn new(items: impl IntoIterator<Item = R>) -> Self {
        let items: Vec<R> = items.into_iter().collect();
        let rows = items.iter().map(|_| Vec::new()).collect();
        Self { items, table: Table { columns: Vec::new(), rows, missing: "\u{2013}", gap: 2 } }
    }

    /// Adds a column of words. The first column of a table is its label.
    pub fn text<C: Into<Cell>>(self, header: impl Into<String>, cell: impl Fn(&R) -> C) -> Self {
        self.column(header.into(), Align::Left, cell)
    }

    /// Adds a column of numbers, to the right.
    pub fn number<C: Into<Cell>>(self, header: impl Into<String>, cell: impl Fn(&R) -> C) -> Self {
        self.column(header.into(), Align::Right, cell)
    }

    fn column<C: Into<Cell>>(mut self, header: String, align: Align, cell: impl Fn(&R) -> C) -> Self {
        let priority = if self.table.columns.is_empty() { Priority::Label } else { Priority::Main };
        self.table.columns.push(Column { header, unit: "", align, priority, width: 0, shortened: None });
        for (item, row) in self.items.iter().zip(&mut self.table.rows) {
            row.push(cell(item).into());
        }
        self
    }

    fn last(mut self, change: impl FnOnce(&mut Column)) -> Self {
        if let Some(column) = self.table.columns.last_mut() {
            change(column);
        }
        self
    }

    /// Gives the last column a unit, which its heading shows.
    pub fn unit(self, unit: &'static str) -> Self {
        self.last(|column| column.unit = unit)
    }

    /// Makes the last column a label, as the first one is.
    pub fn label(self) -> Self {
        self.last(|column| column.priority = Priority::Label)
    }

    /// Leaves the last column to pages and files.
    pub fn detail(self) -> Self {
        self.last(|column| column.priority = Priority::Detail)
    }

    /// Shortens the names of the last column in a terminal to `width` characters, so that different ones stay different.
    pub fn shortened(self, width: usize) -> Self {
        self.last(|column| column.shortened = Some(width))
    }

    /// Gives the columns that a terminal shows these least widths, so that tables below each other have the same columns.
    pub fn widths(mut self, widths: &[usize]) -> Self {
        let shown = self.table.columns.iter_mut().filter(|column| column.priority < Priority::Detail);
        shown.zip(widths).for_each(|(column, width)| column.width = *width);
        self
    }

    /// Gives cells without a value these words, instead of a dash.
    pub fn missing(mut self, words: &'static str) -> Self {
        self.table.missing = words;
        self
    }

    /// Puts this number of spaces between two columns in a terminal, instead of two.
    pub fn gap(mut self, gap: usize) -> Self {
        self.table.gap = gap;
        self
    }

    /// The table.
    pub fn table(self) -> Table {
        self.table
    }
}

impl<R> From<Rows<R>> for Table {
    fn from(rows: Rows<R>) -> Self {
        rows.table
    }
}

impl Column {
    fn heading(&self) -> String {
        if self.unit.is_empty() { self.header.clone() } else { format!("{}, {}", self.header, self.unit) }
    }

    /// The name of the column for programs: `pods_waiting`.
    fn key(&self) -> String {
        let lower = self.heading().to_lowercase();
        let words = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        words.collect::<Vec<_>>().join("_")
    }
}

impl Table {
    /// Whether the table has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The text of a cell as people read it.
    fn words(&self, cell: &Cell) -> String {
        match cell {
            Cell::Missing => self.missing.to_owned(),
            Cell::Text(words) | Cell::Verdict(Verdict { words, .. }) => words.clone(),
            Cell::Figure(figure) => figure.text(),
        }
    }

    /// The table as Markdown, with the columns that a terminal shows.
    pub fn markdown(&self) -> String {
        let shown = |cells: Vec<String>| {
            let cells = cells.into_iter().zip(&self.columns).filter(|(_, column)| column.priority < Priority::Detail);
            cells.map(|(cell, _)| cell).collect::<Vec<_>>().join(" | ")
        };
        let headings = shown(self.columns.iter().map(|column| markdown::cell(&column.heading())).collect());
        let rule = |column: &Column| if column.align == Align::Right { "--:|" } else { "---|" };
        let rules = self.columns.iter().filter(|column| column.priority < Priority::Detail).map(rule);
        let mut text = format!("| {headings} |\n|{}\n", rules.collect::<String>());
        for row in &self.rows {
            let cells = row.iter().map(|cell| markdown::cell(&self.words(cell))).collect();
            let _ = writeln!(text, "| {} |", shown(cells));
        }
        text
    }

    /// The table as CSV: numbers without rounding, each interval in two columns of its own.
    ///
    /// # Errors
    /// Whatever `output` returns.
    pub fn csv(&self, output: &mut dyn io::Write) -> io::Result<()> {
        let keys = self.keys();
        let mut writer = csv::Writer::from_writer(output);
        writer.write_record(keys.iter().map(|(key, ..)| key))?;
        for row in &self.rows {
            writer.write_record(keys.iter().map(|(_, column, part)| match part.value(&row[*column]) {
                Value::None => String::new(),
                Value::Number(number) => number.to_string(),
                Value::Words(words) => csv_cell(words).into_owned(),
            }))?;
        }
        writer.flush()
    }

    /// The columns for programs: name, position, and part of the cell.
    fn keys(&self) -> Vec<(String, usize, Part)> {
        let has_interval = |at: usize| {
            let is_interval = |cell: &Cell| matches!(cell, Cell::Figure(figure) if figure.interval().is_some());
            self.rows.iter().any(|row| is_interval(&row[at]))
        };
        let parts = self.columns.iter().enumerate().flat_map(|(at, column)| {
            let parts = [("", Part::Value), ("_low", Part::Low), ("_high", Part::High)];
            let count = if has_interval(at) { 3 } else { 1 };
            parts.into_iter().take(count).map(move |(end, part)| (column.key() + end, at, part))
        });
        parts.collect()
    }
}

/// The part of a cell that a column for programs has.
#[derive(Clone, Copy)]
enum Part {
    Value,
    Low,
    High,
}

/// A cell for programs.
#[derive(Serialize)]
#[serde(untagged)]
enum Value<'c> {
    None,
    Number(f64),
    Words(&'c str),
}

impl Part {
    fn value(self, cell: &Cell) -> Value<'_> {
        let number =
            |number: Option<f64>| number.filter(|number| number.is_finite()).map_or(Value::None, Value::Number);
        match (cell, self) {
            (Cell::Text(words) | Cell::Verdict(Verdict { words, .. }), Self::Value) => Value::Words(words),
            (Cell::Figure(figure), Self::Value) => number(Some(figure.value())),
            (Cell::Figure(figure), Self::Low) => number(figure.interval().map(|(low, _)| low)),
            (Cell::Figure(figure), Self::High) => number(figure.interval().map(|(_, high)| high)),
            _ => Value::None,
        }
    }
}

/// The table as JSON: a list of rows, each with the keys of the CSV in their order.
impl Serialize for Table {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let keys = self.keys();
        serializer.collect_seq(self.rows.iter().map(|row| Object { keys: &keys, row }))
    }
}

struct Object<'t> {
    keys: &'t [(String, usize, Part)],
    row: &'t [Cell],
}

impl Serialize for Object<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.keys.iter().map(|(key, column, part)| (key, part.value(&self.row[*column]))))
    }
}

/// Values that are cells of their own.
macro_rules! cells {
    ($($from:ty: |$value:ident| $cell:expr;)*) => {
        $(impl From<$from> for Cell {
            fn from($value: $from) -> Self {
                $cell
            }
        })*
    };
}

cells! {
    String: |words| Self::Text(words);
    &String: |words| Self::Text(words.clone());
    &str: |words| Self::Text(words.to_owned());
    Figure: |figure| Self::Figure(figure);
    Verdict: |verdict| Self::Verdict(verdict);
    u64: |count| Self::Figure(Figure::whole(count as f64));
    usize: |count| Self::from(count as u64);
}

impl<T: Into<Self>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Missing, Into::into)
    }
}

#[cfg(test)]
mod tests {
    use super::{Rows, Table, Verdict};
    use crate::figure::Figure;
    use crate::format::{IntervalFigure, Measure};
    use crate::page::Html;

    struct Queue {
        name: &'static str,
        waited: Option<f64>,
        sent: u64,
        is_late: bool,
    }

    const HOSTILE: &str = "q|<b>*\"x\",\n=1+1&`";

    fn queues() -> Vec<Queue> {
        vec![
            Queue { name: "mail/out", waited: Some(73.4), sent: 41_207, is_late: true },
            Queue { name: HOSTILE, waited: None, sent: 3, is_late: false },
        ]
    }

    fn table(queues: &[Queue]) -> Rows<&Queue> {
        let verdict = |is_late: bool| Verdict {
            words: if is_late { "late" } else { "in time" }.to_owned(),
            is_good: Some(!is_late),
        };
        Rows::new(queues)
            .text("queue", |queue| queue.name)
            .number("longest wait", |queue| queue.waited.map(Figure::seconds))
            .number("sent", |queue| queue.sent)
            .unit("messages")
            .detail()
            .text("", move |queue| verdict(queue.is_late))
    }

    fn lines(table: Rows<&Queue>, width: Option<usize>) -> Vec<String> {
        Table::from(table).lines(width)
    }

    #[test]
    fn terminal_leaves_details_to_the_page() {
        let all = lines(table(&queues()), None);
        assert_eq!(all[0], "queue              longest wait");
        assert_eq!(all[1], "mail/out                  1m13s  late");
        assert_eq!(all[2], "q|<b>*\"x\", =1+1&`             \u{2013}  in time");
    }

    #[test]
    fn narrow_terminal_repeats_labels_and_drops_least_widths() {
        let all = queues();
        let first = &all[..1];
        let wide = || table(first).widths(&[12, 14, 9]).missing("none").gap(3);
        assert_eq!(lines(wide(), Some(36))[1], "mail/out                1m13s   late");
        let narrow = ["queue      longest wait", "mail/out          1m13s", "", "queue", "mail/out   late"];
        assert_eq!(lines(wide(), Some(25)), narrow);
        let labels = Rows::new(first).text("queue", |queue| queue.name).text("of", |_| "shop").label();
        let labels = labels.number("sent", |queue| queue.sent).number("again", |queue| queue.sent);
        assert_eq!(lines(labels, Some(24))[3..], ["queue     of     again", "mail/out  shop  41,207"]);
    }

    #[test]
    fn shortened_names_stay_apart_in_a_terminal_alone() {
        let names = ["jobs/transcode-video-large", "jobs/transcode-video-small"];
        let table: Table = Rows::new(names).text("queue", |name| *name).shortened(10).table();
        let lines = table.lines(None);
        assert!(lines[1] != lines[2] && lines.iter().all(|line| line.chars().count() <= 10), "{lines:?}");
        assert!(table.markdown().contains(names[0]));
    }

    #[test]
    fn markdown_has_no_markup_of_names() {
        let expected = "| queue | longest wait |  |\n|---|--:|---|\n| mail/out | 1m13s | late |\n\
                        | q\\|&lt;b>\\*\"x\", =1+1&amp;\\` | \u{2013} | in time |\n";
        assert_eq!(table(&queues()).table().markdown(), expected);
    }

    #[test]
    fn page_escapes_names_and_colours_verdicts() {
        let mut page = Html::new();
        page.add_table(table(&queues()), "queues.csv");
        let page = page.finish();
        let heads = "<th scope=\"col\">Queue</th><th scope=\"col\" class=\"figure\">Longest wait</th>";
        assert!(page.contains(heads), "{page}");
        assert!(
            page.contains("<td>q|&lt;b&gt;*&quot;x&quot;,\n=1+1&amp;`</td><td class=\"figure\">\u{2013}</td>"),
            "{page}"
        );
        assert!(page.contains("<td class=\"figure\">41,207</td><td class=\"missed\">late</td>"), "{page}");
    }

    #[test]
    fn page_table_states_rows_left_out() {
        let page_of = |count: u64| {
            let mut page = Html::new();
            page.add_table(Rows::new(0..count).number("n", |n| *n), "all.csv");
            page.finish()
        };
        assert_eq!(page_of(0), "");
        assert!(!page_of(200).contains("all.csv"));
        // Every page shows its rows: those that have a script for it hide some of them.
        assert!(!page_of(60).contains("class=\"rest\""));
        assert!(page_of(201).contains("Showing the first 200 of 201. See all.csv for the rest."));
    }

    #[test]
    fn programs_get_numbers_without_rounding() {
        let mut csv = Vec::new();
        table(&queues()).table().csv(&mut csv).unwrap();
        let expected =
            "queue,longest_wait,sent_messages,\nmail/out,73.4,41207,late\n\"q|<b>*\"\"x\"\",\n=1+1&`\",,3,in time\n";
        assert_eq!(String::from_utf8(csv).unwrap(), expected);
        let json = serde_json::to_string(&table(&queues()).table()).unwrap();
        assert!(
            json.starts_with(r#"[{"queue":"mail/out","longest_wait":73.4,"sent_messages":41207.0,"":"late"},"#),
            "{json}"
        );
        assert!(json.contains(r#""longest_wait":null"#), "{json}");
    }

    #[test]
    fn interval_has_columns_of_its_own_for_programs() {
        let known = IntervalFigure { mean: 417.31, low: Some(394.0), high: Some(440.6), ends: false, signed: false };
        let table = Rows::new([known])
            .text("metric", |_| "evictions")
            .number("mean", |known| Figure::measured(*known, Measure::Count));
        let table = table.table();
        assert_eq!(table.lines(None)[1], "evictions  420 \u{b1} 20");
        let json = serde_json::to_string(&table).unwrap();
        assert_eq!(json, r#"[{"metric":"evictions","mean":417.31,"mean_low":394.0,"mean_high":440.6}]"#);
        let unknown = Rows::new([f64::NAN]).number("mean", |value| Figure::whole(*value)).table();
        assert_eq!(serde_json::to_string(&unknown).unwrap(), r#"[{"mean":null}]"#);
    }
}
