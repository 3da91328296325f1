//! The rows of an observation's tables.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

use nodecast_model::domain::{HourlyRate, Money, SimDuration, SimTime};
use nodecast_model::text::InputError;
use serde::{Deserialize, Serialize};

use super::cell::Cell;

/// A row of a table of comma-separated values.
pub trait Row: Sized {
    /// The columns, in order.
    const COLUMNS: &'static [&'static str];

    /// The row of these cells.
    ///
    /// # Errors
    /// The number of the column whose cell has not the form that it needs.
    fn read(cells: &[&str]) -> Result<Self, usize>;

    /// Puts its cells into a row that is empty.
    fn cells(&self, into: &mut Cells);
}

/// The cells of a row as texts, one behind the other: a table may have millions of rows.
#[derive(Debug, Default)]
pub struct Cells {
    text: String,
    ends: Vec<usize>,
}

impl Cells {
    /// Adds a cell.
    pub(super) fn put<C: Cell>(&mut self, cell: &C) {
        cell.show(&mut self.text);
        self.ends.push(self.text.len());
    }

    fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
    }

    fn iter(&self) -> impl Iterator<Item = &str> {
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        begins.zip(&self.ends).map(|(begin, end)| self.text.get(begin..*end).unwrap_or_default())
    }
}

/// A row: its fields with the names of their columns.
macro_rules! row {
    ($(#[doc = $about:literal])+ $name:ident { $($(#[doc = $meaning:literal])+ $field:ident as $column:literal: $kind:ty,)+ }) => {
        $(#[doc = $about])+
        #[derive(Clone, PartialEq, Debug, Default)]
        pub struct $name {
            $($(#[doc = $meaning])+ pub $field: $kind,)+
        }

        impl Row for $name {
            const COLUMNS: &'static [&'static str] = &[$($column),+];

            fn read(cells: &[&str]) -> Result<Self, usize> {
                let mut number = 0;
                let mut next = || {
                    number += 1;
                    (number - 1, cells.get(number - 1).copied().unwrap_or_default())
                };
                Ok(Self {
                    $($field: {
                        let (number, text) = next();
                        <$kind as Cell>::read(text).ok_or(number)?
                    },)+
                })
            }

            fn cells(&self, into: &mut Cells) {
                $(into.put(&self.$field);)+
            }
        }
    };
}

row! {
    /// A workload at an instant.
    WorkloadState {
        /// The instant.
        at as "at_seconds": SimTime,
        /// Namespace and name.
        workload as "workload": Arc<str>,
        /// Replicas wanted.
        replicas_desired as "replicas_desired": Option<i64>,
        /// Replicas Ready.
        replicas_ready as "replicas_ready": Option<i64>,
        /// Requests per second.
        requests_per_second as "requests_per_second": Option<f64>,
        /// CPU in use by all replicas together, thousandths.
        cpu_used_milli as "cpu_used_milli": Option<f64>,
        /// Mean response time, seconds.
        latency_mean_seconds as "latency_mean_seconds": Option<f64>,
        /// 99th percentile of response times, seconds.
        latency_p99_seconds as "latency_p99_seconds": Option<f64>,
    }
}

row! {
    /// Memory that a workload holds at an instant.
    MemoryUse {
        /// The instant.
        at as "at_seconds": SimTime,
        /// Namespace and name.
        workload as "workload": Arc<str>,
        /// Bytes of all replicas together.
        memory_bytes as "memory_bytes": i64,
    }
}

row! {
    /// A node from its launch to its end.
    NodeLife {
        /// Its name.
        node as "node": String,
        /// `NodePool` or `NodeGroup`.
        origin_kind as "origin_kind": Option<String>,
        /// The name of that.
        origin as "origin": Option<String>,
        /// Instance type.
        instance_type as "instance_type": Option<String>,
        /// Zone.
        zone as "zone": Option<String>,
        /// `spot` or `on-demand`.
        capacity_type as "capacity_type": Option<String>,
        /// Architecture.
        arch as "arch": Option<String>,
        /// The release of its kubelet.
        kubelet_version as "kubelet_version": Option<String>,
        /// Price per hour at launch.
        rate_per_hour as "rate_per_hour": Option<HourlyRate>,
        /// CPU that it offers to pods, thousandths.
        cpu_allocatable_milli as "cpu_allocatable_milli": Option<i64>,
        /// Memory that it offers to pods.
        memory_allocatable_bytes as "memory_allocatable_bytes": Option<i64>,
        /// When its claim was made.
        requested as "requested_seconds": Option<SimTime>,
        /// When EC2 answered with an instance.
        launched as "launched_seconds": Option<SimTime>,
        /// When billing began.
        running as "running_seconds": Option<SimTime>,
        /// When its kubelet registered it.
        registered as "registered_seconds": Option<SimTime>,
        /// When it was Ready.
        ready as "ready_seconds": Option<SimTime>,
        /// When Karpenter counted it initialized.
        initialized as "initialized_seconds": Option<SimTime>,
        /// When its removal was decided.
        deletion_requested as "deletion_requested_seconds": Option<SimTime>,
        /// When its last pod that had to leave was gone.
        drained as "drained_seconds": Option<SimTime>,
        /// When billing ended.
        terminating as "terminating_seconds": Option<SimTime>,
        /// When it was gone.
        terminated as "terminated_seconds": Option<SimTime>,
        /// Why it ended.
        end as "end": Option<String>,
        /// Mean CPU requested over allocatable.
        cpu_requested_share as "cpu_requested_share": Option<f64>,
        /// Mean memory requested over allocatable.
        memory_requested_share as "memory_requested_share": Option<f64>,
        /// What it cost net.
        cost as "cost": Option<Money>,
    }
}

row! {
    /// How many nodes there were of a kind at an instant.
    NodeCount {
        /// The instant.
        at as "at_seconds": SimTime,
        /// Instance type.
        instance_type as "instance_type": Option<String>,
        /// Zone.
        zone as "zone": Option<String>,
        /// `spot` or `on-demand`.
        capacity_type as "capacity_type": Option<String>,
        /// `NodePool` or `NodeGroup`.
        origin_kind as "origin_kind": Option<String>,
        /// The name of that.
        origin as "origin": Option<String>,
        /// How many.
        nodes as "nodes": i64,
    }
}

row! {
    /// A pod from its creation to its end.
    PodLife {
        /// Its name.
        pod as "pod": String,
        /// Namespace and name of what made it.
        workload as "workload": Option<String>,
        /// Whether that is a DaemonSet, or the node itself.
        daemon as "daemon": Option<bool>,
        /// The node that it was bound to.
        node as "node": Option<String>,
        /// CPU that it requests, thousandths.
        cpu_request_milli as "cpu_request_milli": Option<i64>,
        /// Memory that it requests.
        memory_request_bytes as "memory_request_bytes": Option<i64>,
        /// When it was created.
        created as "created_seconds": Option<SimTime>,
        /// When no node was found for it at first.
        unschedulable as "unschedulable_seconds": Option<SimTime>,
        /// When it was bound.
        scheduled as "scheduled_seconds": Option<SimTime>,
        /// When its containers ran.
        started as "started_seconds": Option<SimTime>,
        /// When it was Ready.
        ready as "ready_seconds": Option<SimTime>,
        /// When its deletion was asked for.
        deletion_requested as "deletion_requested_seconds": Option<SimTime>,
        /// When it was gone, or its containers had ended.
        removed as "removed_seconds": Option<SimTime>,
        /// Whether it was evicted.
        evicted as "evicted": Option<bool>,
        /// Its priority.
        priority as "priority": Option<i64>,
        /// Whether it holds room for others.
        placeholder as "placeholder": Option<bool>,
        /// When it stopped serving while it was wanted.
        cut_off as "cut_off_seconds": Option<SimTime>,
        /// Creation to binding.
        wait_for_node as "wait_for_node_seconds": Option<SimDuration>,
        /// Creation to Ready.
        created_to_ready as "created_to_ready_seconds": Option<SimDuration>,
    }
}

row! {
    /// What a pod asks of its node beyond CPU and memory, as a trace of pods states it.
    Placement {
        /// Its name.
        pod as "pod": String,
        /// Its namespace.
        namespace as "namespace": String,
        /// Whole NVIDIA GPUs.
        gpus as "gpus": Option<i64>,
        /// Labels that its node has to have, `key=value`, with `;` between them.
        node_selector as "node_selector": Option<String>,
        /// Taints that it tolerates, `key=value:Effect`, with `;` between them.
        tolerations as "tolerations": Option<String>,
    }
}

impl Placement {
    /// Whether it says anything.
    pub fn asks_for_anything(&self) -> bool {
        self.gpus.is_some() || self.node_selector.is_some() || self.tolerations.is_some()
    }
}

row! {
    /// Pods that wait at an instant.
    Pending {
        /// The instant.
        at as "at_seconds": SimTime,
        /// Their namespace; none for all of the cluster.
        namespace as "namespace": Option<String>,
        /// Pods whose phase is Pending: without a node, or their images not yet there.
        pods_pending as "pods_pending": Option<i64>,
        /// Pods for which no node was found.
        pods_unschedulable as "pods_unschedulable": Option<i64>,
    }
}

row! {
    /// What a HorizontalPodAutoscaler was set to from an instant on.
    Autoscaler {
        /// The instant.
        at as "at_seconds": SimTime,
        /// Namespace and name.
        autoscaler as "autoscaler": String,
        /// What it scales.
        workload as "workload": Option<String>,
        /// The fewest replicas.
        min_replicas as "min_replicas": Option<i64>,
        /// The most.
        max_replicas as "max_replicas": Option<i64>,
        /// A metric, by name.
        metric as "metric": Option<String>,
        /// What its target is in: `utilization`, `average` or `value`.
        unit as "unit": Option<String>,
        /// The target.
        target as "target": Option<f64>,
    }
}

row! {
    /// What a node autoscaler counted in the stretch that ends at an instant.
    Count {
        /// The instant.
        at as "at_seconds": SimTime,
        /// What is counted: `launched`, `terminated`, `disrupted`, `decisions`, `interruption messages`, `evictions`, and of the
        /// Cluster Autoscaler `scaled up`, `scaled down`, `failed scale-ups`.
        what as "what": String,
        /// The NodePool.
        node_pool as "node_pool": Option<String>,
        /// Spot or On-Demand.
        capacity_type as "capacity_type": Option<String>,
        /// Why: the reason, the kind of message, or the code of an answer.
        reason as "reason": Option<String>,
        /// How many.
        count as "count": f64,
    }
}

row! {
    /// How long launches took to a condition, from the creation of the claim on.
    Stage {
        /// The condition: `Launched`, `Registered`, `Initialized`.
        stage as "stage": String,
        /// Launches that took at most so many seconds; none for all of them.
        up_to_seconds as "up_to_seconds": Option<f64>,
        /// How many.
        launches as "launches": f64,
        /// How long all of them together took, seconds.
        seconds as "seconds": Option<f64>,
    }
}

row! {
    /// The price of an offering at an instant, as the node autoscaler saw it.
    SpotPrice {
        /// The instant.
        at as "at_seconds": SimTime,
        /// Instance type.
        instance_type as "instance_type": String,
        /// Zone.
        zone as "zone": String,
        /// Price per hour.
        per_hour as "per_hour": f64,
    }
}

/// What happened at an instant: a line of `events.jsonl`.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Event {
    /// Seconds since the window's begin.
    pub at_seconds: f64,
    /// The same on the calendar, RFC 3339 in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    /// What happened, for example `PodScheduled`.
    pub kind: String,
    /// The workload concerned, the pod, the node, the decision, and the cause.
    #[serde(flatten)]
    pub details: BTreeMap<String, serde_json::Value>,
}

/// Writes a table.
///
/// # Errors
/// If the system refuses.
pub(super) fn write<R: Row>(rows: &[R], to: &mut dyn Write) -> std::io::Result<()> {
    let mut writer = csv::WriterBuilder::new().buffer_capacity(1 << 16).from_writer(to);
    writer.write_record(R::COLUMNS)?;
    let mut cells = Cells::default();
    for row in rows {
        cells.clear();
        row.cells(&mut cells);
        writer.write_record(cells.iter())?;
    }
    writer.flush()
}

/// The rows of the table that `file` holds. Columns are found by name; others are passed over, and one that is not there has empty
/// cells.
///
/// # Errors
/// If it is no table of comma-separated values, or a cell has not the form that its column needs.
pub(super) fn read<R: Row>(bytes: &[u8], file: &str) -> Result<Vec<R>, InputError> {
    let mut reader = csv::Reader::from_reader(bytes);
    let broken = |error: &csv::Error| {
        let line = error.position().map_or(1, csv::Position::line);
        InputError::new(format!("{file}:{line}: is not a table of comma-separated values: {error}"))
    };
    let header = reader.headers().map_err(|error| broken(&error))?.clone();
    let places: Vec<Option<usize>> =
        R::COLUMNS.iter().map(|name| header.iter().position(|item| item == *name)).collect();
    if places.first().is_none_or(Option::is_none) {
        return Err(InputError::new(format!("{file}:1: the header has no column `{}`", R::COLUMNS[0]))
            .help(format!("the columns are {}", R::COLUMNS.join(", "))));
    }
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| broken(&error))?;
        let cells: Vec<&str> =
            places.iter().map(|place| place.and_then(|place| record.get(place)).unwrap_or_default()).collect();
        rows.push(R::read(&cells).map_err(|column| {
            let line = record.position().map_or(0, csv::Position::line);
            let text = cells.get(column).copied().unwrap_or_default();
            InputError::new(format!("{file}:{line}: `{text}` cannot stand in the column `{}`", R::COLUMNS[column]))
        })?);
    }
    Ok(rows)
}
