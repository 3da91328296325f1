//! A history from the tables of a directory: those that a run writes, whoever wrote them. Cells that nobody recorded are empty.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::path::{Path, PathBuf};

use nodecast_model::text::cells::from_csv_cell;
use serde::Deserialize;

use super::counted_nodes::{Counts, Kind};
use super::history::{Charge, History, NodeLife, PodLife, SpotPrice, UnattributedCounts, WorkloadState};
use crate::domain::{HourlyRate, Money, SimDuration, SimTime, Symbol, well_known};

/// Why a directory tells no history.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum HistoryError {
    /// It holds neither the summary of a run nor an observation.
    #[error("{0} holds neither summary.json nor observation.json")]
    #[diagnostic(help("name the directory that `nodecast run` or `nodecast observe` has written"))]
    NoHistory(PathBuf),
    /// A file cannot be read.
    #[error("cannot read {path}: {reason}")]
    #[diagnostic(help("the directory has to hold what `nodecast run` or `nodecast observe` writes, whole"))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system or the reader said.
        reason: String,
    },
    /// A table lacks a column.
    #[error("{path} has no column `{column}`")]
    #[diagnostic(help("docs/outputs.md lists the columns; where nothing was recorded its cells are empty"))]
    NoColumn {
        /// The file.
        path: PathBuf,
        /// The column.
        column: &'static str,
    },
    /// A cell is not what its column holds.
    #[error("{path}, line {line}, column `{column}`: `{text}` is no {wanted}")]
    #[diagnostic(help("correct the cell, or leave it empty if nothing was recorded"))]
    Cell {
        /// The file.
        path: PathBuf,
        /// The line, from 1 on.
        line: u64,
        /// The column.
        column: &'static str,
        /// What stands there.
        text: String,
        /// What should.
        wanted: &'static str,
    },
}

#[derive(Deserialize)]
struct SummaryFile {
    about: SummaryAbout,
}

#[derive(Deserialize)]
struct SummaryAbout {
    start: String,
    duration_seconds: f64,
    #[serde(default)]
    warm_up_seconds: Option<f64>,
    currency: String,
}

#[derive(Deserialize)]
struct ObservationFile {
    window: ObservationWindow,
}

#[derive(Deserialize)]
struct ObservationWindow {
    start: String,
    seconds: i64,
}

/// More nodes of a kind than that at one time are no count of any cluster's.
const NODES_MAX: f64 = 100_000.0;

/// The span that a directory tells of.
struct Span {
    start: jiff::Timestamp,
    duration: SimDuration,
    counts_from: SimTime,
    currency: Option<String>,
}

/// Reads the history in `directory`.
///
/// # Errors
/// If it holds none, or one that is damaged.
pub fn read(directory: &Path) -> Result<History, HistoryError> {
    let span = span(directory)?;
    let of_run = span.currency.is_some();
    // A run writes all of its tables: one that is missing is an error. In an observation a table that is no file was not recorded.
    let table = |name: &str| Some(directory.join(name)).filter(|path| of_run || path.exists());
    let optional = |name: &str| Some(directory.join(name)).filter(|path| path.exists());
    let mut nodes = table("nodes.csv").map(|path| nodes(&path)).transpose()?;
    let pods = table("pods.csv").map(|path| pods(&path)).transpose()?;
    let (pods, placeholders) = pods.map(|pod| (pod.pods, pod.placeholders)).unzip();
    let mut workloads = table("workloads.csv").map(|path| workloads(&path)).transpose()?;
    if let (Some(workloads), Some(placeholders)) = (&mut workloads, &placeholders) {
        workloads.retain(|name, _| !placeholders.contains(name));
    }
    let charges = optional("bill.csv").map(|path| charges(&path)).transpose()?;
    let spot_prices = optional("spot_prices.csv").map(|path| spot_prices(&path)).transpose()?;
    let mut counted = optional("counts.csv").map(|path| counted(&path)).transpose()?.unwrap_or_default();
    if let Some(path) = optional("node_counts.csv") {
        counted.nodes = Some(nodes_at(&path)?);
        if nodes.as_ref().is_none_or(Vec::is_empty) {
            nodes = Some(nodes_counted(&path)?);
            counted.nodes_alone = true;
        }
    }
    if !of_run && let Some(nodes) = &mut nodes {
        counted.taken_for_on_demand = take_for_on_demand(nodes);
    }
    Ok(History {
        charged_from: SimTime::ZERO,
        counted,
        start: span.start,
        duration: span.duration,
        counts_from: span.counts_from,
        nodes,
        pods,
        workloads,
        charges,
        spot_prices,
        currency: span.currency,
    })
}

/// An observation says it in `observation.json`, a run in `summary.json`.
fn span(directory: &Path) -> Result<Span, HistoryError> {
    let (observation, summary) = (directory.join("observation.json"), directory.join("summary.json"));
    if observation.exists() {
        let file: ObservationFile = json(&observation)?;
        return Ok(Span {
            start: instant_of(&observation, &file.window.start)?,
            duration: SimDuration::from_secs(file.window.seconds),
            counts_from: SimTime::ZERO,
            currency: None,
        });
    }
    if !summary.exists() {
        return Err(HistoryError::NoHistory(directory.to_owned()));
    }
    let SummaryFile { about } = json(&summary)?;
    Ok(Span {
        start: instant_of(&summary, &about.start)?,
        duration: SimDuration::from_secs_f64(about.duration_seconds),
        counts_from: SimTime::ZERO + SimDuration::from_secs_f64(about.warm_up_seconds.unwrap_or(0.0)),
        currency: Some(about.currency),
    })
}

fn json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, HistoryError> {
    let unreadable = |reason: String| HistoryError::Unreadable { path: path.to_owned(), reason };
    let text = std::fs::read_to_string(path).map_err(|error| unreadable(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| unreadable(error.to_string()))
}

fn instant_of(path: &Path, text: &str) -> Result<jiff::Timestamp, HistoryError> {
    text.parse()
        .map_err(|error: jiff::Error| HistoryError::Unreadable { path: path.to_owned(), reason: error.to_string() })
}

fn nodes(path: &Path) -> Result<Vec<NodeLife>, HistoryError> {
    Table::open(path)?.rows(|row| {
        let symbol = |column| Ok(row.text(column)?.map(Symbol::new));
        Ok(NodeLife {
            origin: Symbol::new(row.text("origin")?.unwrap_or_default()),
            instance_type: symbol("instance_type")?,
            zone: symbol("zone")?,
            capacity_type: symbol("capacity_type")?,
            launched: row.instant("launched_seconds")?,
            running: row.instant("running_seconds")?,
            registered: row.instant("registered_seconds")?,
            ready: row.instant("ready_seconds")?,
            deletion_requested: row.instant("deletion_requested_seconds")?,
            terminating: row.instant("terminating_seconds")?,
            terminated: row.instant("terminated_seconds")?,
            end: symbol("end")?,
        })
    })
}

/// Pods that are judged, and the workloads whose pods reserve room for others.
struct Pods {
    pods: Vec<PodLife>,
    placeholders: BTreeSet<String>,
}

fn pods(path: &Path) -> Result<Pods, HistoryError> {
    let mut placeholders = BTreeSet::new();
    let pods = Table::open(path)?.rows(|row| {
        if row.flag("placeholder")? {
            placeholders.extend(row.text("workload")?.map(str::to_owned));
            return Ok(None);
        }
        let Some(created) = row.instant("created_seconds")? else { return Ok(None) };
        if row.flag("daemon")? {
            return Ok(None);
        }
        let scheduled = row.instant("scheduled_seconds")?;
        let on_node = row.columns.contains_key("node") && row.text("node")?.is_some();
        Ok(Some(PodLife {
            created,
            unschedulable: row.instant("unschedulable_seconds")?,
            scheduled,
            bound: scheduled.is_some() || on_node,
            left: row.instant("deletion_requested_seconds")?.or(row.instant("removed_seconds")?),
            evicted: row.truth("evicted")?,
        }))
    })?;
    Ok(Pods { pods: pods.into_iter().flatten().collect(), placeholders })
}

fn workloads(path: &Path) -> Result<BTreeMap<String, Vec<WorkloadState>>, HistoryError> {
    let mut workloads: BTreeMap<String, Vec<WorkloadState>> = BTreeMap::new();
    Table::open(path)?.rows(|row| {
        let (Some(at), Some(name)) = (row.instant("at_seconds")?, row.text("workload")?) else { return Ok(()) };
        let state = WorkloadState {
            at,
            desired: row.number("replicas_desired")?,
            ready: row.number("replicas_ready")?,
            cpu_milli: row.number("cpu_used_milli")?,
            latency_p99: row.number("latency_p99_seconds")?,
        };
        workloads.entry(name.to_owned()).or_default().push(state);
        Ok(())
    })?;
    for states in workloads.values_mut() {
        // Whoever wrote the table may have written series by series or instant by instant.
        states.sort_by_key(|state| state.at);
    }
    Ok(workloads)
}

fn charges(path: &Path) -> Result<Vec<Charge>, HistoryError> {
    let lines = Table::open(path)?.rows(|row| {
        let symbol = |column| Ok(row.text(column)?.map(Symbol::new));
        let (Some(from), Some(until)) = (row.instant("from_seconds")?, row.instant("to_seconds")?) else {
            return Ok(None);
        };
        Ok(Some(Charge {
            item: Symbol::new(row.text("item")?.unwrap_or_default()),
            instance_type: symbol("instance_type")?,
            zone: symbol("zone")?,
            capacity_type: symbol("capacity_type")?,
            from,
            until,
            machine_time: until.saturating_since(from),
            amount: row.money("amount")?.unwrap_or(Money::ZERO),
        }))
    })?;
    Ok(lines.into_iter().flatten().collect())
}

/// How many nodes there were of all kinds together.
fn nodes_at(path: &Path) -> Result<Vec<(SimTime, f64)>, HistoryError> {
    let mut all: BTreeMap<SimTime, f64> = BTreeMap::new();
    Table::open(path)?.rows(|row| {
        if let (Some(at), Some(nodes)) = (row.instant("at_seconds")?, row.number("nodes")?) {
            *all.entry(at).or_default() += nodes;
        }
        Ok(())
    })?;
    Ok(all.into_iter().collect())
}

/// Node groups are On-Demand unless they say otherwise, and their label may not have been exported; how many nodes that is.
fn take_for_on_demand(nodes: &mut [NodeLife]) -> usize {
    let unknown = nodes.iter_mut().filter(|node| node.capacity_type.is_none() && node.instance_type.is_some());
    unknown.map(|node| node.capacity_type = Some(well_known::ON_DEMAND)).count()
}

/// Lives of nodes that are known by how many there were of a kind.
fn nodes_counted(path: &Path) -> Result<Vec<NodeLife>, HistoryError> {
    let mut counts = Counts::default();
    Table::open(path)?.rows(|row| {
        let symbol = |column| Ok(row.text(column)?.map(Symbol::new));
        if let (Some(at), Some(nodes)) = (row.instant("at_seconds")?, row.number("nodes")?) {
            let kind = Kind {
                origin: symbol("origin")?.unwrap_or_else(|| Symbol::new("")),
                instance_type: symbol("instance_type")?,
                zone: symbol("zone")?,
                capacity_type: symbol("capacity_type")?,
            };
            counts.put(at, kind, libm::round(nodes.clamp(0.0, NODES_MAX)) as usize);
        }
        Ok(())
    })?;
    Ok(counts.lives())
}

/// What Karpenter's counters say of removals and evictions.
fn counted(path: &Path) -> Result<UnattributedCounts, HistoryError> {
    let mut counted = UnattributedCounts::default();
    Table::open(path)?.rows(|row| {
        let (Some(at), Some(count)) = (row.instant("at_seconds")?, row.number("count")?) else { return Ok(()) };
        match row.text("what")? {
            Some("disrupted") => {
                let reason = UnattributedCounts::reason(row.text("reason")?.unwrap_or_default());
                counted.ends.get_or_insert_default().push((at, reason, count));
            }
            // The reason is the answer of the API server: 429 where a budget forbids it.
            Some("evictions") if row.text("reason")?.is_none_or(|code| code.starts_with('2')) => {
                counted.evictions.get_or_insert_default().push((at, count));
            }
            _ => {}
        }
        Ok(())
    })?;
    Ok(counted)
}

/// Prices as Karpenter saw them; what is no price is left out.
fn spot_prices(path: &Path) -> Result<Vec<SpotPrice>, HistoryError> {
    let prices = Table::open(path)?.rows(|row| {
        let (Some(at), Some(instance_type), Some(zone), Some(price)) = (
            row.instant("at_seconds")?,
            row.text("instance_type")?.map(Symbol::new),
            row.text("zone")?.map(Symbol::new),
            row.number("per_hour")?.filter(|price| *price > 0.0),
        ) else {
            return Ok(None);
        };
        let rate = HourlyRate::from_nanos(libm::round(price * 1e9) as i64);
        Ok(Some(SpotPrice { at, instance_type, zone, rate }))
    })?;
    Ok(prices.into_iter().flatten().collect())
}

/// A table with a header.
struct Table<'p> {
    path: &'p Path,
    columns: HashMap<String, usize>,
    reader: csv::Reader<File>,
}

impl<'p> Table<'p> {
    fn open(path: &'p Path) -> Result<Self, HistoryError> {
        let unreadable =
            |error: csv::Error| HistoryError::Unreadable { path: path.to_owned(), reason: error.to_string() };
        let mut reader = csv::ReaderBuilder::new().from_path(path).map_err(unreadable)?;
        let header = reader.headers().map_err(unreadable)?;
        let columns = header.iter().enumerate().map(|(place, name)| (name.to_owned(), place)).collect();
        Ok(Self { path, columns, reader })
    }

    /// What `take` makes of each row, in the order of the file.
    fn rows<T>(mut self, mut take: impl FnMut(&Row<'_>) -> Result<T, HistoryError>) -> Result<Vec<T>, HistoryError> {
        let mut taken = Vec::new();
        let mut cells = csv::StringRecord::new();
        loop {
            let more = self.reader.read_record(&mut cells);
            let more = more
                .map_err(|error| HistoryError::Unreadable { path: self.path.to_owned(), reason: error.to_string() })?;
            if !more {
                return Ok(taken);
            }
            let line = cells.position().map_or(0, csv::Position::line);
            taken.push(take(&Row { path: self.path, columns: &self.columns, cells: &cells, line })?);
        }
    }
}

struct Row<'r> {
    path: &'r Path,
    columns: &'r HashMap<String, usize>,
    cells: &'r csv::StringRecord,
    line: u64,
}

impl Row<'_> {
    /// The text of a cell; `None` if it is empty.
    fn text(&self, column: &'static str) -> Result<Option<&str>, HistoryError> {
        let place = self.columns.get(column);
        let place = place.ok_or_else(|| HistoryError::NoColumn { path: self.path.to_owned(), column })?;
        Ok(self.cells.get(*place).map(str::trim).map(from_csv_cell).filter(|text| !text.is_empty()))
    }

    fn parsed<T>(
        &self,
        column: &'static str,
        wanted: &'static str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, HistoryError> {
        let Some(text) = self.text(column)? else { return Ok(None) };
        let wrong = || HistoryError::Cell {
            path: self.path.to_owned(),
            line: self.line,
            column,
            text: text.chars().take(40).collect(),
            wanted,
        };
        parse(text).map(Some).ok_or_else(wrong)
    }

    fn instant(&self, column: &'static str) -> Result<Option<SimTime>, HistoryError> {
        self.parsed(column, "number of seconds", |text| {
            scaled(text, 6).and_then(|micros| i64::try_from(micros).ok()).map(SimTime::from_micros)
        })
    }

    fn money(&self, column: &'static str) -> Result<Option<Money>, HistoryError> {
        self.parsed(column, "amount of money", |text| scaled(text, 9).map(Money::from_nanos))
    }

    fn number(&self, column: &'static str) -> Result<Option<f64>, HistoryError> {
        self.parsed(column, "number", |text| text.parse().ok().filter(|number: &f64| number.is_finite()))
    }

    fn flag(&self, column: &'static str) -> Result<bool, HistoryError> {
        Ok(self.truth(column)?.unwrap_or(false))
    }

    /// The same; `None` if the cell is empty.
    fn truth(&self, column: &'static str) -> Result<Option<bool>, HistoryError> {
        let parse = |text: &str| match text {
            "true" | "1" => Some(true),
            "false" | "0" => Some(false),
            _ => None,
        };
        self.parsed(column, "`true` or `false`", parse)
    }
}

/// A decimal number times ten to the power of `decimals`, exactly; further digits are cut off. Seconds of a century and amounts
/// of a trillion fit; what is larger is refused.
fn scaled(text: &str, decimals: usize) -> Option<i128> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if (whole.is_empty() && part.is_empty()) || whole.len() > 12 || !is_number(whole) || !is_number(part) {
        return None;
    }
    let kept = &part[..part.len().min(decimals)];
    let number: i128 = format!("{whole}{kept:0<decimals$}").parse().ok()?;
    Some(if negative { -number } else { number })
}

#[cfg(test)]
mod tests {
    use super::scaled;

    #[test]
    fn decimals_are_read_exactly() {
        assert_eq!(scaled("12.5", 6), Some(12_500_000));
        assert_eq!(scaled("-0.000001", 6), Some(-1));
        assert_eq!(scaled("3", 9), Some(3_000_000_000));
        assert_eq!(scaled("0.1234567899", 9), Some(123_456_789));
        for wrong in ["", "-", ".", "1e5", "NaN", "1.2.3", "--1", "9999999999999"] {
            assert_eq!(scaled(wrong, 6), None, "{wrong}");
        }
    }
}
