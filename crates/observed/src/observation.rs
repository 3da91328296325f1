//! The observation: what a cluster recorded in a window of time, as tables with the names and columns of those that a run writes, and
//! an account of where each comes from and how much of the window it covers. A finished run is an observation too.
//!
//! A cell that was not observed is empty. Instants are seconds since the window's begin, exact to the microsecond, below zero for
//! what is older. `docs/observe.md` and `docs/outputs.md` explain each column.
//!
//! What must not live here: where figures come from (the readers beside it), and what a simulation makes of them.

pub mod about;
mod cell;
mod files;
mod of_run;
pub mod tables;

pub use self::about::{About, Figures, Grade, Missing, Quantity, Window, cluster_name};
pub use self::files::ABOUT_FILE;
pub use self::tables::{
    Autoscaler, Count, Event, MemoryUse, NodeCount, NodeLife, Pending, Placement, PodLife, SpotPrice, Stage,
    WorkloadState,
};

/// What a cluster recorded, or a run. A table is `None` where nothing recorded it, and empty where nothing happened.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Observation {
    /// The window, the sources, and how much of each quantity there is.
    pub about: About,
    /// `workloads.csv`: each workload at instants, with what was observed at them.
    pub workloads: Option<Vec<WorkloadState>>,
    /// `memory.csv`: memory held by each workload.
    pub memory: Option<Vec<MemoryUse>>,
    /// `nodes.csv`: each node.
    pub nodes: Option<Vec<NodeLife>>,
    /// `node_counts.csv`: how many nodes there were of each kind.
    pub node_counts: Option<Vec<NodeCount>>,
    /// `pods.csv`: each pod.
    pub pods: Option<Vec<PodLife>>,
    /// `placements.csv`: what pods ask of their nodes beyond CPU and memory.
    pub placements: Option<Vec<Placement>>,
    /// `pending.csv`: pods that wait.
    pub pending: Option<Vec<Pending>>,
    /// `autoscalers.csv`: limits and targets of HorizontalPodAutoscalers.
    pub autoscalers: Option<Vec<Autoscaler>>,
    /// `counts.csv`: what node autoscalers counted, by stretch.
    pub counts: Option<Vec<Count>>,
    /// `stages.csv`: how long the stages of launches took.
    pub stages: Option<Vec<Stage>>,
    /// `spot_prices.csv`: Spot prices as Karpenter saw them.
    pub spot_prices: Option<Vec<SpotPrice>>,
    /// `events.jsonl`: what happened.
    pub events: Option<Vec<Event>>,
}
