//! The tables of a finished simulation, or any folder in their form: a run is a source like a cluster, and one whose truth is known.
//!
//! Read are `nodes.csv`, `pods.csv`, `workloads.csv`, `stages.csv`, `counts.csv` and `events.jsonl` as far as they are there, and from `observation.json`
//! or `summary.json` when it began and how long it was. Empty cells were not observed.

use std::collections::BTreeMap;
use std::path::Path;

use nodecast_model::text::cells::from_csv_cell;
use nodecast_model::text::error::InputError;
use serde_json::Value;

use crate::gzip;

use super::Instant;
use super::input::{load, unreadable_table};
use super::ledger::{Fact, FactKind, Ledger, Subject};
use super::lives::{End, LoadSample, Milestone, Shortage, StageTimes, Window};
use super::values::{number, text};

/// The table of nodes, which every run has.
const NODES: &str = "nodes.csv";

/// What a folder of sampled metrics has. A table that nothing recorded is left out of it.
const OBSERVATION: &str = crate::observation::ABOUT_FILE;

/// Columns of `nodes.csv` that are milestones.
const COLUMNS: [(&str, Milestone); 8] = [
    ("requested_seconds", Milestone::Created),
    ("launched_seconds", Milestone::Launched),
    ("running_seconds", Milestone::Running),
    ("registered_seconds", Milestone::Registered),
    ("ready_seconds", Milestone::Ready),
    ("initialized_seconds", Milestone::Initialized),
    ("deletion_requested_seconds", Milestone::DeletionAsked),
    ("terminated_seconds", Milestone::Gone),
];

/// Whether a folder is one of these.
pub(super) fn is_one(directory: &Path) -> bool {
    [NODES, OBSERVATION].iter().any(|name| gzip::present(&directory.join(name)).is_some())
}

/// Reads the folder.
///
/// # Errors
/// If a table that is there cannot be read.
pub(super) fn folder(ledger: &mut Ledger, directory: &Path) -> Result<(), InputError> {
    let (start, length) = span(directory)?;
    let nodes = gzip::present(&directory.join(NODES)).map(|nodes| rows(&nodes)).transpose()?;
    ledger.begin(&directory.display().to_string(), "tables of a run");
    let last = nodes.iter().flatten().flat_map(|row| COLUMNS.iter().filter_map(|(column, _)| seconds(row, column)));
    let length = length.unwrap_or_else(|| last.fold(0.0, f64::max));
    let sampled = directory.join(OBSERVATION).exists();
    if sampled {
        ledger.sampled();
    }
    ledger.begin_run(Window { from: start, until: start.plus_seconds(length) });
    // A table without the column says nothing of why nodes ended.
    let has_ends = nodes.iter().flatten().all(|row| row.contains_key("end"));
    if !sampled && has_ends {
        ledger.tells_ends();
    }
    if let Some(nodes) = &nodes {
        ledger.recorded(FactKind::Nodes);
        nodes.iter().for_each(|row| node(ledger, row, start, sampled));
    }
    reclaims(ledger, &directory.join("counts.csv"), start)?;
    let tables = [
        ("pods.csv", FactKind::Pods, if sampled { pod_seen } else { pod } as fn(&mut Ledger, &Row, Instant)),
        ("workloads.csv", FactKind::Loads, load_sample),
        ("stages.csv", FactKind::Stages, stage),
    ];
    for (name, kind, take) in tables {
        if let Some(path) = gzip::present(&directory.join(name)) {
            ledger.recorded(kind);
            rows(&path)?.iter().for_each(|row| take(ledger, row, start));
        }
    }
    if let Some(events) = gzip::present(&directory.join("events.jsonl")) {
        ledger.recorded(FactKind::Shortages);
        for line in load(&events)?.lines().filter(|line| !line.trim().is_empty()) {
            match serde_json::from_str::<Value>(line) {
                Ok(value) => event(ledger, &value, start),
                Err(_) => ledger.left(line),
            }
        }
    }
    Ok(())
}

/// Files that say when a folder begins and for how many seconds it goes on, and where in them. An observation's counts first.
const SPANS: [(&str, [&str; 2], [&str; 2]); 2] = [
    (OBSERVATION, ["window", "start"], ["window", "seconds"]),
    ("summary.json", ["about", "start"], ["about", "duration_seconds"]),
];

/// When the run or the observation in a folder began, and for how many seconds it went on, as far as it says.
///
/// # Errors
/// If the file that says it cannot be read.
pub fn span(directory: &Path) -> Result<(Instant, Option<f64>), InputError> {
    let files = SPANS.map(|(name, start, length)| (directory.join(name), start, length));
    let Some((path, start, length)) = files.into_iter().find(|(path, ..)| path.exists()) else {
        return Ok((Instant(0), None));
    };
    let text_of = load(&path)?;
    let value: Value = serde_json::from_str(&text_of)
        .map_err(|error| super::input::not_json(&path.display().to_string(), &text_of, &error))?;
    let start = text(&value, &start).and_then(Instant::parse).unwrap_or(Instant(0));
    Ok((start, number(&value, &length)))
}

/// The sums of a histogram of launches; its buckets are too coarse to tell more.
fn stage(ledger: &mut Ledger, row: &Row, _start: Instant) {
    let milestone = match cell(row, "stage") {
        Some("Launched") => Milestone::Launched,
        Some("Registered") => Milestone::Registered,
        Some("Initialized") => Milestone::Initialized,
        _ => return,
    };
    let all = cell(row, "up_to_seconds").is_none();
    if let (true, Some(launches), Some(seconds)) = (all, seconds(row, "launches"), seconds(row, "seconds")) {
        ledger.stage(StageTimes { stage: milestone, launches, seconds });
        ledger.taken();
    }
}

/// What Karpenter counts whenever it runs, so that no reclaim among it means that there was none.
const COUNTED: [&str; 4] = ["launched", "terminated", "disrupted", "interruption messages"];

/// The reclaims that Karpenter counted: the claims that it says it removed for them, else the messages of EC2.
fn reclaims(ledger: &mut Ledger, path: &Path, start: Instant) -> Result<(), InputError> {
    if !path.exists() {
        return Ok(());
    }
    let rows = rows(path)?;
    let what = |row: &Row, any: &[&str]| cell(row, "what").is_some_and(|word| any.contains(&word));
    if !rows.iter().any(|row| what(row, &COUNTED)) {
        return Ok(());
    }
    let counted = |wanted: &str| -> Vec<Instant> {
        let this_row = rows.iter().filter(|row| what(row, &[wanted]));
        let this_row =
            this_row.filter(|row| cell(row, "reason").is_some_and(|word| End::from_word(word) == End::Interrupted));
        let times = this_row.filter_map(|row| Some((seconds(row, "at_seconds")?, seconds(row, "count")?)));
        let each = |(at, count): (f64, f64)| std::iter::repeat_n(start.plus_seconds(at), libm::round(count) as usize);
        times.flat_map(each).collect()
    };
    let removed = counted("disrupted");
    ledger.reclaims(if removed.is_empty() { counted("interruption messages") } else { removed });
    Ok(())
}

type Row = BTreeMap<String, String>;

fn rows(path: &Path) -> Result<Vec<Row>, InputError> {
    let text = load(path)?;
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let name = path.display().to_string();
    let rows: Result<Vec<Row>, csv::Error> = reader.deserialize().collect();
    rows.map_err(|error| unreadable_table(&name, &text, &error))
}

fn cell<'r>(row: &'r Row, column: &str) -> Option<&'r str> {
    row.get(column).map(|cell| from_csv_cell(cell)).filter(|cell| !cell.is_empty())
}

fn seconds(row: &Row, column: &str) -> Option<f64> {
    cell(row, column)?.parse().ok()
}

fn node(ledger: &mut Ledger, row: &Row, start: Instant, sampled: bool) {
    let Some(name) = cell(row, "node") else { return ledger.left("a node without a name") };
    let subject = Subject::Claim(name.to_owned());
    // Nodes that are there as the run begins did not boot in it.
    let found = seconds(row, "registered_seconds").is_some_and(|at| at <= 0.0);
    for (column, milestone) in COLUMNS {
        let at = seconds(row, column).filter(|at| !found || *at > 0.0);
        ledger.note_at(&subject, milestone, at.map(|at| start.plus_seconds(at)), true);
    }
    if found {
        ledger.note_at(&subject, Milestone::Launched, Some(start), true);
        ledger.note(subject.clone(), Fact::Truncated);
    }
    ledger.note_text(&subject, cell(row, "origin"), Fact::Pool);
    ledger.note_text(&subject, cell(row, "instance_type"), Fact::InstanceType);
    ledger.note_text(&subject, cell(row, "zone"), Fact::Zone);
    // Karpenter counts the reclaims of its own nodes alone.
    if !sampled || cell(row, "origin_kind") != Some("NodeGroup") {
        ledger.note_text(&subject, cell(row, "capacity_type"), Fact::CapacityType);
    }
    ledger.note_text(&subject, cell(row, "node"), Fact::Node);
    if sampled {
        ledger.note(subject.clone(), Fact::Sampled);
    }
    if let Some(end) = cell(row, "end") {
        ledger.note(subject, Fact::End(End::from_word(end)));
    }
    ledger.taken();
}

fn pod(ledger: &mut Ledger, row: &Row, start: Instant) {
    let Some(name) = cell(row, "pod") else { return ledger.left("a pod without a name") };
    let at = |column| seconds(row, column).map(|at| start.plus_seconds(at));
    let pod = ledger.pod(name);
    pod.workload = cell(row, "workload").map(str::to_owned);
    pod.node = cell(row, "node").map(str::to_owned);
    pod.daemon = cell(row, "daemon") == Some("true");
    (pod.created, pod.scheduled) = (at("created_seconds"), at("scheduled_seconds"));
    (pod.started, pod.ready) = (at("started_seconds"), at("ready_seconds"));
    (pod.deletion_asked, pod.gone) = (at("deletion_requested_seconds"), at("removed_seconds"));
    ledger.taken();
}

/// A pod of an observation, whose end nobody asked for: its containers had ended. Whether they had failed is not told.
fn pod_seen(ledger: &mut Ledger, row: &Row, start: Instant) {
    pod(ledger, row, start);
    if let Some(name) = cell(row, "pod") {
        let pod = ledger.pod(name);
        pod.finished = pod.gone.filter(|_| pod.deletion_asked.is_none());
        pod.outcome_unknown = true;
    }
}

fn load_sample(ledger: &mut Ledger, row: &Row, start: Instant) {
    let sample = || {
        Some(LoadSample {
            workload: cell(row, "workload")?.to_owned(),
            at: start.plus_seconds(seconds(row, "at_seconds")?),
            requests_per_second: seconds(row, "requests_per_second")?,
            cpu_used_milli: seconds(row, "cpu_used_milli")?,
            replicas: seconds(row, "replicas_ready").or_else(|| seconds(row, "replicas_desired")),
        })
    };
    if let Some(sample) = sample() {
        ledger.load(sample);
    }
}

fn event(ledger: &mut Ledger, value: &Value, start: Instant) {
    let Some(when) = number(value, &["at_seconds"]).map(|at| start.plus_seconds(at)) else { return };
    let kind = text(value, &["kind"]).unwrap_or_default();
    let pod = text(value, &["pod"]);
    match (kind, pod) {
        ("PodSucceeded" | "PodFailed", Some(pod)) => {
            let pod = ledger.pod(pod);
            (pod.finished, pod.failed) = (Some(when), kind == "PodFailed");
        }
        ("LaunchFailed", _) => ledger.shortage(Shortage { at: when, instance_type: None, zone: None, count: 1 }),
        _ => {}
    }
}
