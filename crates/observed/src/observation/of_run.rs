//! The output of a run as an observation: its tables as they are, and from them those that only observations have.

use std::collections::BTreeMap;
use std::path::Path;

use nodecast_model::domain::SimTime;
use nodecast_model::text::InputError;
use serde::Deserialize;

use super::Observation;
use super::about::{About, Figures, Grade, Missing, Quantity, Window, WorkloadFigures};
use super::files::{ABOUT_FILE, events, rows, text_of};
use super::tables::{Cells, NodeCount, NodeLife, Pending, PodLife, Row, WorkloadState};
use crate::prometheus::import::{time_text, waits_of};

const SUMMARY_FILE: &str = "summary.json";

#[derive(Deserialize)]
struct Summary {
    about: SummaryAbout,
}

#[derive(Deserialize)]
struct SummaryAbout {
    scenario: String,
    start: String,
    duration_seconds: f64,
}

/// A line of `timeline.csv`, as far as it is needed.
struct TimelineRow {
    at: SimTime,
    pods_pending: Option<i64>,
}

impl Row for TimelineRow {
    const COLUMNS: &'static [&'static str] = &["at_seconds", "pods_pending"];

    fn read(cells: &[&str]) -> Result<Self, usize> {
        use super::cell::Cell;
        let cell = |number: usize| cells.get(number).copied().unwrap_or_default();
        Ok(Self {
            at: SimTime::read(cell(0)).ok_or(0_usize)?,
            pods_pending: Option::<i64>::read(cell(1)).ok_or(1_usize)?,
        })
    }

    fn cells(&self, into: &mut Cells) {
        into.put(&self.at);
        into.put(&self.pods_pending);
    }
}

/// Reads the output of a run.
///
/// # Errors
/// If `folder` is none, or a file cannot be read.
pub(super) fn read(folder: &Path) -> Result<Observation, InputError> {
    let text = text_of(folder, SUMMARY_FILE)?.ok_or_else(|| {
        InputError::new(format!("{} holds neither {ABOUT_FILE} nor {SUMMARY_FILE}", folder.display()))
            .help("name what `nodecast observe` or `nodecast run` has written")
    })?;
    let unusable = |what: String| InputError::new(format!("{}: {what}", folder.join(SUMMARY_FILE).display()));
    let Summary { about } =
        serde_json::from_str(&text).map_err(|error| unusable(format!("is not the summary of a run: {error}")))?;
    let start: jiff::Timestamp =
        about.start.parse().map_err(|_| unusable(format!("`{}` is not an instant", about.start)))?;
    let seconds = about.duration_seconds as i64;
    let workloads: Option<Vec<WorkloadState>> = rows(folder, "workloads.csv")?;
    let nodes: Option<Vec<NodeLife>> = rows(folder, "nodes.csv")?;
    let pods: Option<Vec<PodLife>> = rows(folder, "pods.csv")?;
    let moments: Option<Vec<TimelineRow>> = rows(folder, "timeline.csv")?;
    let node_counts = nodes.as_ref().zip(moments.as_ref()).map(|(nodes, moments)| node_counts(nodes, moments));
    let pending = moments.as_ref().map(|moments| {
        let pending =
            |moment: &TimelineRow| Pending { at: moment.at, pods_pending: moment.pods_pending, ..Pending::default() };
        moments.iter().map(pending).collect()
    });
    let first = moments.as_ref().and_then(|moments| moments.windows(2).next());
    let step = first.map_or(60, |pair| (pair[1].at - pair[0].at).as_secs());
    let tables = [
        ("workloads", "workloads.csv", step, workloads.is_some()),
        ("nodes", "nodes.csv", 0, nodes.is_some()),
        ("pods", "pods.csv", 0, pods.is_some()),
        ("pending", "timeline.csv", step, moments.is_some()),
    ];
    let (recorded, absent): (Vec<_>, Vec<_>) = tables.into_iter().partition(|(.., is_recorded)| *is_recorded);
    let about = About {
        window: Window { start: about.start, end: time_text(start.as_second() + seconds), seconds },
        cluster: vec![about.scenario],
        sources: vec!["run".to_owned()],
        quantities: recorded.into_iter().map(|(name, source, step, _)| quantity(name, source, step)).collect(),
        missing: absent.into_iter().map(|(name, source, ..)| missing(name, source)).collect(),
        figures: Figures {
            workloads: workload_figures(workloads.iter().flatten()),
            waits: pods.as_deref().and_then(waits_of),
            ..Figures::default()
        },
        warnings: Vec::new(),
        ..About::new()
    };
    let events = events(folder)?;
    Ok(Observation { about, workloads, nodes, node_counts, pods, pending, events, ..Observation::default() })
}

fn quantity(name: &str, table: &str, resolution_seconds: i64) -> Quantity {
    Quantity {
        quantity: name.to_owned(),
        source: table.to_owned(),
        coverage: 1.0,
        resolution_seconds,
        grade: Grade::Simulated,
    }
}

/// A table that the folder lacks.
fn missing(name: &str, table: &str) -> Missing {
    Missing {
        quantity: name.to_owned(),
        tells: table.to_owned(),
        remedy: "use the complete output of `nodecast run`".to_owned(),
    }
}

/// Means of each workload over the samples.
fn workload_figures<'s>(states: impl Iterator<Item = &'s WorkloadState>) -> Vec<WorkloadFigures> {
    let mut sums: BTreeMap<&str, [f64; 4]> = BTreeMap::new();
    for state in states {
        let all = sums.entry(&state.workload).or_default();
        let replicas = state.replicas_desired.unwrap_or(0) as f64;
        let new = [1.0, state.requests_per_second.unwrap_or(0.0), state.cpu_used_milli.unwrap_or(0.0), replicas];
        all.iter_mut().zip(new).for_each(|(sum, new)| *sum += new);
    }
    let figures = sums.into_iter().map(|(workload, [count, requests, milli, replicas])| WorkloadFigures {
        workload: workload.to_owned(),
        requests_per_second: (requests > 0.0).then_some(requests / count),
        requests_from: (requests > 0.0).then(|| "the run".to_owned()),
        cpu_used_milli: Some(milli / count),
        cpu_per_request_seconds: (requests > 0.0).then_some(milli / 1e3 / requests),
        cpu_per_request_by: (requests > 0.0).then(|| "samples".to_owned()),
        replicas_desired: Some(replicas / count),
    });
    figures.collect()
}

/// How many nodes of each kind were registered and not yet gone at each moment.
fn node_counts(nodes: &[NodeLife], moments: &[TimelineRow]) -> Vec<NodeCount> {
    let mut counts = Vec::new();
    for TimelineRow { at, .. } in moments {
        let mut kinds: BTreeMap<[Option<&str>; 5], i64> = BTreeMap::new();
        let there = |node: &&NodeLife| {
            node.registered.is_some_and(|from| from <= *at)
                && node.terminating.or(node.terminated).is_none_or(|to| to > *at)
        };
        for node in nodes.iter().filter(there) {
            let kind = [&node.instance_type, &node.zone, &node.capacity_type, &node.origin_kind, &node.origin];
            *kinds.entry(kind.map(Option::as_deref)).or_default() += 1;
        }
        counts.extend(kinds.into_iter().map(|(kind, nodes)| {
            let [instance_type, zone, capacity_type, origin_kind, origin] = kind.map(|kind| kind.map(str::to_owned));
            NodeCount { at: *at, instance_type, zone, capacity_type, origin_kind, origin, nodes }
        }));
    }
    counts
}
