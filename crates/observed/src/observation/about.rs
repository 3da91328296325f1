//! `observation.json`: the window, the sources, how much of each quantity was observed, and the figures that follow from it.

use nodecast_model::domain::SimTime;
use serde::{Deserialize, Serialize};

/// The version of the layout.
pub const SCHEMA_VERSION: u32 = 1;

/// What an observation is of. It holds no address and no secret.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct About {
    /// The version of this layout.
    pub schema_version: u32,
    /// What wrote it.
    pub program: String,
    /// The program's version.
    pub program_version: String,
    /// The window.
    pub window: Window,
    /// What chose the cluster: matchers of series, or the name of a scenario.
    pub cluster: Vec<String>,
    /// Where the tables come from: `prometheus`, `run`.
    pub sources: Vec<String>,
    /// What was observed.
    pub quantities: Vec<Quantity>,
    /// What was looked for and not found.
    pub missing: Vec<Missing>,
    /// Figures of the whole window.
    pub figures: Figures,
    /// Over how many seconds rates were asked for, so that each row of `workloads.csv` tells of that time before it; `null` where they are
    /// of their instant.
    #[serde(default)]
    pub rates_over_seconds: Option<i64>,
    /// What whoever uses the tables has to know.
    pub warnings: Vec<String>,
}

/// A window of time.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Window {
    /// Its begin, RFC 3339 in UTC.
    pub start: String,
    /// Its end.
    pub end: String,
    /// Its length.
    pub seconds: i64,
}

/// How far a figure can be trusted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Grade {
    /// As the source has it.
    #[default]
    Recorded,
    /// Worked out of what was recorded, by a rule that may err.
    Derived,
    /// The account of a simulation, which knows everything.
    Simulated,
}

/// A quantity that was observed.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Quantity {
    /// Its name.
    pub quantity: String,
    /// The query, the table or the series that tells it.
    pub source: String,
    /// The share of the window's steps that have data.
    pub coverage: f64,
    /// The finest step that the source tells apart.
    pub resolution_seconds: i64,
    /// How far it can be trusted.
    pub grade: Grade,
}

/// A quantity that was not found.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Missing {
    /// Its name.
    pub quantity: String,
    /// What it would have told.
    pub tells: String,
    /// How to have it from now on.
    pub remedy: String,
}

/// Figures of the whole window. What could not be worked out is null or has no entry.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Figures {
    /// By workload.
    pub workloads: Vec<WorkloadFigures>,
    /// Hours of nodes, Ready or not.
    pub node_hours: Option<f64>,
    /// The same of Spot nodes.
    pub spot_node_hours: Option<f64>,
    /// The most nodes that there were at a time.
    pub nodes_max: Option<i64>,
    /// Nodes launched.
    pub launches: Option<f64>,
    /// Nodes removed, by reason.
    pub disruptions: Vec<Disrupted>,
    /// How long launches took, from the creation of the claim.
    pub stages: Vec<StageFigures>,
    /// Waits of pods for a node, DaemonSets left out.
    pub waits: Option<Waits>,
}

/// Figures of a workload.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct WorkloadFigures {
    /// Namespace and name.
    pub workload: String,
    /// Mean requests per second.
    pub requests_per_second: Option<f64>,
    /// Who counted the requests.
    pub requests_from: Option<String>,
    /// Mean CPU in use, thousandths.
    pub cpu_used_milli: Option<f64>,
    /// CPU seconds of a request.
    pub cpu_per_request_seconds: Option<f64>,
    /// What that rests on: `increase`, exact, or `rate`, which loses what a new pod does before its second scrape.
    pub cpu_per_request_by: Option<String>,
    /// Mean replicas wanted.
    pub replicas_desired: Option<f64>,
}

/// Nodes that were removed for a reason.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Disrupted {
    /// The reason.
    pub reason: String,
    /// How many.
    pub nodes: f64,
}

/// How long launches took to a condition.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StageFigures {
    /// The condition.
    pub stage: String,
    /// Launches.
    pub launches: f64,
    /// Mean seconds; exact where sums were recorded.
    pub mean_seconds: Option<f64>,
    /// The median by buckets, which are coarse.
    pub median_seconds: Option<f64>,
}

/// Waits of pods for a node.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Waits {
    /// Pods.
    pub pods: u64,
    /// Nearest ranks.
    pub p50_seconds: f64,
    /// The 99th.
    pub p99_seconds: f64,
    /// The longest.
    pub max_seconds: f64,
}

/// The name of the cluster, where one of [the matchers](About::cluster) that chose series has it: `cluster="shop-prod"`, under whatever
/// label metrics have it.
pub fn cluster_name(matchers: &[String]) -> Option<&str> {
    const LABELS: [&str; 5] = ["cluster", "cluster_name", "eks_cluster", "eks_cluster_name", "k8s_cluster_name"];
    matchers.iter().find_map(|matcher| {
        let (label, value) = matcher.split_once('=')?;
        let name = value.trim().strip_prefix('"')?.strip_suffix('"')?;
        LABELS.contains(&label.trim()).then_some(name).filter(|name| !name.is_empty())
    })
}

impl About {
    /// An account of nothing yet, by this program.
    pub fn new() -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            program: "nodecast".to_owned(),
            program_version: env!("CARGO_PKG_VERSION").to_owned(),
            ..Self::default()
        }
    }
}

impl Window {
    /// The window between two Unix times in seconds.
    pub fn new(from: i64, to: i64) -> Self {
        let text = crate::prometheus::import::time_text;
        Self { start: text(from), end: text(to), seconds: to - from }
    }

    /// The Unix time of its begin in microseconds; `None` if it is no instant.
    pub fn start_micros(&self) -> Option<i64> {
        self.start.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_microsecond)
    }

    /// The instant of a Unix time in microseconds, counted from a begin.
    pub fn instant(start_micros: i64, unix_micros: i64) -> SimTime {
        SimTime::from_micros(unix_micros.saturating_sub(start_micros))
    }
}
