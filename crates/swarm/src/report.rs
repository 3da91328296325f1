//! A report as it was written: its tables and figures.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

/// A table: rows by column name.
pub struct Table {
    columns: BTreeMap<String, usize>,
    /// The rows, as text.
    pub rows: Vec<csv::StringRecord>,
}

impl Table {
    fn read(path: &Path) -> Result<Self, String> {
        let shown = path.display();
        let mut reader = csv::Reader::from_path(path).map_err(|error| format!("{shown}: {error}"))?;
        let header = reader.headers().map_err(|error| format!("{shown}: {error}"))?.clone();
        let columns = header.iter().enumerate().map(|(place, name)| (name.to_owned(), place)).collect();
        let rows: Result<Vec<_>, _> = reader.records().collect();
        Ok(Self { columns, rows: rows.map_err(|error| format!("{shown}: {error}"))? })
    }

    /// The text of a cell; empty where there is no such column, so that what needs it is an error or a broken rule.
    pub fn text<'r>(&self, row: &'r csv::StringRecord, name: &str) -> &'r str {
        self.columns.get(name).and_then(|&place| row.get(place)).unwrap_or_default()
    }

    /// The number of a cell; `None` if it is empty.
    pub fn number(&self, row: &csv::StringRecord, name: &str) -> Option<f64> {
        let text = self.text(row, name);
        if text.is_empty() { None } else { text.parse().ok() }
    }
}

/// A pod of pods.csv.
#[derive(Clone, Debug)]
pub struct Pod {
    pub name: String,
    pub workload: String,
    pub daemon: bool,
    pub node: String,
    pub cpu: f64,
    pub memory: f64,
    pub created: f64,
    pub scheduled: Option<f64>,
    pub started: Option<f64>,
    pub ready: Option<f64>,
    pub deletion: Option<f64>,
    pub removed: Option<f64>,
    pub evicted: bool,
    /// When it was resized, and what it requested before: milli-CPU and bytes.
    pub before: Vec<(f64, f64, f64)>,
}

/// A node of nodes.csv.
#[derive(Clone, Debug)]
pub struct Node {
    pub name: String,
    pub of_pool: bool,
    pub of_fargate: bool,
    pub capacity_type: String,
    pub cpu: f64,
    pub memory: f64,
    pub requested: f64,
    pub launched: Option<f64>,
    pub running: Option<f64>,
    pub registered: Option<f64>,
    pub ready: Option<f64>,
    pub initialized: Option<f64>,
    pub deletion: Option<f64>,
    pub terminating: Option<f64>,
    pub terminated: Option<f64>,
    pub cost: f64,
    pub shares: Vec<f64>,
}

/// A line of bill.csv.
#[derive(Clone, Debug)]
pub struct Line {
    pub item: String,
    pub node: String,
    pub capacity_type: String,
    pub from: f64,
    pub to: f64,
    pub billed: f64,
    pub rate: f64,
    pub amount: f64,
}

/// A line of events.jsonl.
#[derive(Clone, Debug)]
pub struct Event {
    pub at: f64,
    pub kind: String,
    pub node: String,
    pub pod: String,
    pub workload: String,
    pub message: String,
    pub raw: String,
}

/// A line of recommendations.csv, of one resource: in milli-CPU or bytes.
#[derive(Clone, Debug)]
pub struct Recommendation {
    pub workload: String,
    pub of_cpu: bool,
    pub target: f64,
    pub lower: f64,
    pub upper: f64,
}

/// Everything that a run wrote and the checkers look at.
pub struct Report {
    pub pods: Vec<Pod>,
    pub nodes: Vec<Node>,
    pub bill: Vec<Line>,
    pub events: Vec<Event>,
    pub timeline: Table,
    pub workloads: Table,
    pub recommendations: Vec<Recommendation>,
    pub summary: Value,
    /// The end of the run, in seconds.
    pub end: f64,
}

impl Report {
    /// Reads the report in a folder.
    pub fn read(folder: &Path) -> Result<Self, String> {
        let table = |name: &str| Table::read(&folder.join(name));
        let text = |name: &str| std::fs::read_to_string(folder.join(name)).map_err(|error| format!("{name}: {error}"));
        let summary: Value =
            serde_json::from_str(&text("summary.json")?).map_err(|error| format!("summary.json: {error}"))?;
        let end = summary["about"]["duration_seconds"].as_f64().ok_or("summary.json has no about.duration_seconds")?;
        let events = text("events.jsonl")?.lines().map(event).collect::<Result<Vec<_>, _>>()?;
        let recommendations = match folder.join("recommendations.csv").exists() {
            true => recommendations(&table("recommendations.csv")?),
            false => Vec::new(),
        };
        let mut pods = pods(&table("pods.csv")?)?;
        events
            .iter()
            .rev()
            .filter(|event| event.kind == "PodResized")
            .try_for_each(|event| undo_resize(&mut pods, event))?;
        Ok(Self {
            pods,
            nodes: nodes(&table("nodes.csv")?)?,
            bill: bill(&table("bill.csv")?)?,
            events,
            timeline: table("timeline.csv")?,
            workloads: table("workloads.csv")?,
            recommendations,
            summary,
            end,
        })
    }

    /// A figure of the summary, by the path of its keys.
    pub fn figure(&self, path: &str) -> Option<f64> {
        path.split('.').try_fold(&self.summary, |value, key| value.get(key))?.as_f64()
    }
}

fn event(line: &str) -> Result<Event, String> {
    let value: Value = serde_json::from_str(line).map_err(|error| format!("events.jsonl: {error}: {line}"))?;
    let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
    let at = value["at_seconds"].as_f64().ok_or_else(|| format!("events.jsonl: no at_seconds: {line}"))?;
    Ok(Event {
        at,
        kind: text("kind"),
        node: text("node"),
        pod: text("pod"),
        workload: text("workload"),
        message: text("message"),
        raw: line.to_owned(),
    })
}

/// Notes what a pod requested before a resize; the last one comes first. What it says of the time after has to be what is known of that.
fn undo_resize(pods: &mut [Pod], event: &Event) -> Result<(), String> {
    let wrong = |what: &str| format!("events.jsonl: {what}: {}", event.raw);
    let there = |pod: &&mut Pod| {
        pod.name == event.pod
            && pod.workload == event.workload
            && pod.created <= event.at
            && pod.removed.is_none_or(|gone| gone >= event.at)
    };
    let pod = pods.iter_mut().find(there).ok_or_else(|| wrong("no such pod"))?;
    let (mut cpu, mut memory) = pod.before.last().map_or((pod.cpu, pod.memory), |pod| (pod.1, pod.2));
    // Each pod of a case has one container: `main: cpu 500m to 25m, memory 1Gi to 250Mi`.
    let (_, changes) = event.message.rsplit_once(": ").ok_or_else(|| wrong("no change"))?;
    for change in changes.split(", ") {
        let words: Vec<&str> = change.split(' ').collect();
        let [resource, from, "to", to] = words[..] else { return Err(wrong("no change")) };
        let value = |text: &str| quantity(text).ok_or_else(|| wrong("no quantity"));
        let (item, unit) = if resource == "cpu" { (&mut cpu, 1_000.0) } else { (&mut memory, 1.0) };
        let known = *item;
        if (value(to)? * unit - known).abs() > 0.5 {
            return Err(wrong(&format!("{} requests {known} after it", pod.name)));
        }
        *item = value(from)? * unit;
    }
    pod.before.push((event.at, cpu, memory));
    Ok(())
}

/// A quantity as Kubernetes writes it.
fn quantity(text: &str) -> Option<f64> {
    let end = text.find(|character: char| !character.is_ascii_digit() && character != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit = match unit {
        "" => 1.0,
        "m" => 1e-3,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "Ki" => 1024.0,
        "Mi" => 1024.0 * 1024.0,
        "Gi" => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    Some(number.parse::<f64>().ok()? * unit)
}

fn recommendations(table: &Table) -> Vec<Recommendation> {
    let of = |row: &csv::StringRecord, of_cpu: bool| {
        let unit = if of_cpu { ("cpu", "milli") } else { ("memory", "bytes") };
        let number = |what: &str| table.number(row, &format!("{}_{what}_{}", unit.0, unit.1));
        Some(Recommendation {
            workload: table.text(row, "workload").to_owned(),
            of_cpu,
            target: number("target")?,
            lower: number("lower_bound")?,
            upper: number("upper_bound")?,
        })
    };
    table.rows.iter().flat_map(|row| [of(row, true), of(row, false)]).flatten().collect()
}

fn required(table: &Table, row: &csv::StringRecord, name: &str) -> Result<f64, String> {
    table.number(row, name).ok_or_else(|| format!("no number in {name}: {row:?}"))
}

fn pods(table: &Table) -> Result<Vec<Pod>, String> {
    let pod = |row: &csv::StringRecord| {
        let text = |name| table.text(row, name).to_owned();
        Ok(Pod {
            name: text("pod"),
            workload: text("workload"),
            daemon: table.text(row, "daemon") == "true",
            node: text("node"),
            cpu: required(table, row, "cpu_request_milli")?,
            memory: required(table, row, "memory_request_bytes")?,
            created: required(table, row, "created_seconds")?,
            scheduled: table.number(row, "scheduled_seconds"),
            started: table.number(row, "started_seconds"),
            ready: table.number(row, "ready_seconds"),
            deletion: table.number(row, "deletion_requested_seconds"),
            removed: table.number(row, "removed_seconds"),
            evicted: table.text(row, "evicted") == "true",
            before: Vec::new(),
        })
    };
    table.rows.iter().map(pod).collect()
}

fn nodes(table: &Table) -> Result<Vec<Node>, String> {
    let node = |row: &csv::StringRecord| {
        let text = |name| table.text(row, name).to_owned();
        let shares = ["cpu_requested_share", "memory_requested_share"];
        Ok(Node {
            name: text("node"),
            of_pool: table.text(row, "origin_kind") == "NodePool",
            of_fargate: table.text(row, "origin_kind") == "Fargate profile",
            capacity_type: text("capacity_type"),
            cpu: table.number(row, "cpu_allocatable_milli").unwrap_or(0.0),
            memory: table.number(row, "memory_allocatable_bytes").unwrap_or(0.0),
            requested: required(table, row, "requested_seconds")?,
            launched: table.number(row, "launched_seconds"),
            running: table.number(row, "running_seconds"),
            registered: table.number(row, "registered_seconds"),
            ready: table.number(row, "ready_seconds"),
            initialized: table.number(row, "initialized_seconds"),
            deletion: table.number(row, "deletion_requested_seconds"),
            terminating: table.number(row, "terminating_seconds"),
            terminated: table.number(row, "terminated_seconds"),
            cost: table.number(row, "cost").unwrap_or(0.0),
            shares: shares.iter().filter_map(|name| table.number(row, name)).collect(),
        })
    };
    table.rows.iter().map(node).collect()
}

fn bill(table: &Table) -> Result<Vec<Line>, String> {
    let line = |row: &csv::StringRecord| {
        let text = |name| table.text(row, name).to_owned();
        Ok(Line {
            item: text("item"),
            node: text("node"),
            capacity_type: text("capacity_type"),
            from: required(table, row, "from_seconds")?,
            to: required(table, row, "to_seconds")?,
            billed: required(table, row, "billed_seconds")?,
            rate: required(table, row, "rate_per_hour")?,
            amount: required(table, row, "amount")?,
        })
    };
    table.rows.iter().map(line).collect()
}
