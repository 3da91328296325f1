//! What controllers took for their decisions.

use serde::{Deserialize, Serialize};

use super::rounded;
use nodecast_world::Outcome;
use nodecast_world::record::ControllerLoop;

/// What controllers took, where they take time.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ControllerSummary {
    /// One entry for each loop that ran.
    #[serde(default)]
    pub loops: Vec<LoopFigures>,
    /// One entry for each client that made calls.
    #[serde(default)]
    pub limits: Vec<LimitFigures>,
}

/// What the limit of a client of the API server came to.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct LimitFigures {
    /// Whose client.
    pub client: String,
    /// Calls per second that it may make in the long run.
    pub per_second: u32,
    /// Calls at once after a pause.
    pub burst: u32,
    /// Calls made.
    pub calls: u64,
    /// How many of them had to wait.
    pub delayed: u64,
    /// The longest wait.
    pub longest_wait_seconds: f64,
}

/// What a loop of a controller took.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct LoopFigures {
    /// The loop.
    pub name: String,
    /// How often it ran.
    pub runs: u64,
    /// Mean of its runs.
    pub mean_seconds: f64,
    /// The longest.
    pub longest_seconds: f64,
    /// The share of the run for which it was busy, 0 to 1.
    pub busy: f64,
    /// Runs that a limit of time cut short.
    pub cut_short: u64,
}

impl ControllerSummary {
    /// Whether no controller took time.
    pub fn is_empty(&self) -> bool {
        self.loops.is_empty() && self.limits.is_empty()
    }
}

/// Sums up what loops took.
pub(super) fn summary(outcome: &Outcome) -> ControllerSummary {
    let duration = outcome.about.duration.as_secs_f64();
    let figures = |own: ControllerLoop| {
        let facts = outcome.record.controllers.of(own);
        let busy = facts.busy.as_secs_f64();
        (facts.runs > 0).then(|| LoopFigures {
            name: own.as_str().to_owned(),
            runs: facts.runs,
            mean_seconds: rounded(busy / facts.runs as f64, 6),
            longest_seconds: facts.longest.as_secs_f64(),
            busy: rounded(if duration > 0.0 { (busy / duration).min(1.0) } else { 0.0 }, 6),
            cut_short: facts.cut,
        })
    };
    let limits = outcome.record.controllers.limits.iter().map(|limit| LimitFigures {
        client: limit.client.to_owned(),
        per_second: limit.rate.per_second,
        burst: limit.rate.burst,
        calls: limit.calls,
        delayed: limit.delayed,
        longest_wait_seconds: limit.longest.as_secs_f64(),
    });
    ControllerSummary { loops: ControllerLoop::ALL.into_iter().filter_map(figures).collect(), limits: limits.collect() }
}
