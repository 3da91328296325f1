//! Pods of a recorded cluster.

use std::sync::Arc;

use nodecast_model::domain::{PodSpec, SimDuration, SimTime, Symbol};

/// The pods of a recorded cluster.
#[derive(Clone, PartialEq, Debug)]
pub struct PodTrace {
    /// Their namespace.
    pub namespace: Symbol,
    /// What they look like; pods that are alike share one.
    pub templates: Vec<Arc<PodSpec>>,
    /// Their lives, in order of creation.
    pub rows: Vec<TraceRow>,
    /// Whether a pod that is evicted or lost is made again.
    pub again: bool,
}

/// Pods of a trace that are created at one instant and are alike.
#[derive(Clone, PartialEq, Debug)]
pub struct TraceRow {
    /// When they are created.
    pub at: SimTime,
    /// How many.
    pub count: u32,
    /// Which of the templates they have.
    pub template: u32,
    /// When they end.
    pub end: TraceEnd,
    /// Their name.
    pub name: Option<Box<str>>,
}

/// When a pod of a trace ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TraceEnd {
    /// Not within the trace.
    Never,
    /// At this instant, whatever has become of it.
    At(SimTime),
    /// When it has run for so long.
    After(SimDuration),
}
