//! Loads: requests that arrive, and CPU and memory that pods use.

use std::sync::Arc;

use nodecast_load::{Curve, Service, Uncertainty};
use nodecast_model::domain::workload::ObjectName;
use nodecast_model::domain::{SimDuration, SimTime, Symbol};

/// Load on one workload.
#[derive(Clone, PartialEq, Debug)]
pub struct LoadSpec {
    /// The workload that serves the requests.
    pub workload: ObjectName,
    /// When it begins.
    pub at: SimTime,
    /// When it ends at the latest; `None` for the end of the run.
    pub until: Option<SimTime>,
    /// How requests arrive.
    pub requests: Requests,
    /// Whether requests are simulated one by one.
    pub detail: Detail,
    /// What one request costs, nothing where the load is CPU. The CPU limit is that of the workload's pods, the sum over its
    /// containers where all have one.
    pub service: Service,
}

/// What the pods of a workload use beside requests, counted from the start of the run.
#[derive(Clone, PartialEq, Debug)]
pub struct UsageSpec {
    /// The workload.
    pub workload: ObjectName,
    /// The container that uses it; `None` for all, in the proportion of what the template has them request.
    pub container: Option<Symbol>,
    /// Whether the curves are of all Ready pods together, and not of each.
    pub of_workload: bool,
    /// CPU, in cores.
    pub cpu: Option<OpenRequests>,
    /// Memory, in MiB.
    pub memory: Option<OpenRequests>,
    /// What each pod uses more as it starts.
    pub start_up: Option<StartUpUse>,
}

/// What a pod uses beyond the rest from the start of its containers on.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct StartUpUse {
    /// CPU, in cores.
    pub cpu: f64,
    /// For how long.
    pub length: SimDuration,
}

/// How closely requests are simulated.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Detail {
    /// One by one where they are few, as a fluid otherwise.
    #[default]
    Auto,
    /// One by one.
    Exact,
    /// As a fluid.
    Fluid,
}

/// How requests arrive.
#[derive(Clone, PartialEq, Debug)]
pub enum Requests {
    /// Clients that each wait for the answer, and pause, before they ask again.
    ClosedLoop {
        /// How many clients.
        clients: u32,
        /// How many requests they send altogether.
        requests: u64,
        /// The mean pause.
        think_time: SimDuration,
    },
    /// A rate that does not depend on the answers.
    Open(OpenRequests),
    /// No requests that anybody counts, but CPU in use, in cores where those have requests per second.
    Cpu(OpenRequests),
}

/// Requests that arrive whatever became of those before them.
#[derive(Clone, PartialEq, Debug)]
pub struct OpenRequests {
    /// Their rate, counted from the start of the load.
    pub curve: Arc<Curve>,
    /// Their arrivals one by one, counted likewise, where a trace states them.
    pub arrivals: Option<Arc<[SimDuration]>>,
    /// Whether they are spaced evenly rather than at random.
    pub even: bool,
    /// By how much the demand of one seed may differ from `curve`.
    pub uncertainty: Uncertainty,
}
