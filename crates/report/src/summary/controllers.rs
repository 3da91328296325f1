//! What controllers took for their decisions, and which limits of the control plane held them up.

use serde::{Deserialize, Serialize};

use super::rounded;
use crate::domain::ControlPlaneTier;
use crate::format;
use nodecast_world::Outcome;
use nodecast_world::record::ControllerLoop;

/// The wait from which on a limit is listed, in seconds.
const LISTED: f64 = 1.0;
/// The wait from which on limits are listed on a standard control plane, too.
const LISTED_ON_STANDARD: f64 = 10.0;

/// What controllers took, where they take time.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ControllerSummary {
    /// One entry for each loop that ran.
    #[serde(default)]
    pub loops: Vec<LoopFigures>,
    /// One entry for each client that made calls.
    #[serde(default)]
    pub limits: Vec<LimitFigures>,
    /// The control plane and its limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_plane: Option<ControlPlaneFigures>,
}

/// The tier of the control plane, with the limits in use that go by it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ControlPlaneFigures {
    /// The tier.
    pub tier: String,
    /// Requests that the API server works on at a time, at first.
    pub request_seats: u32,
    /// The same once it has grown.
    pub request_seats_max: u32,
    /// Calls per second of kube-scheduler at the end; `null` without a limit.
    pub scheduler_per_second: Option<u32>,
    /// Its calls at once after a pause.
    pub scheduler_burst: Option<u32>,
    /// HorizontalPodAutoscalers that are evaluated at a time; `null` without a limit or autoscalers.
    pub autoscaler_syncs: Option<u32>,
    /// Passes over autoscalers.
    pub autoscaler_passes: u64,
    /// How many of them had to wait.
    pub autoscaler_passes_delayed: u64,
    /// The longest wait.
    pub autoscaler_longest_wait_seconds: f64,
}

/// A controller that waited for a limit.
#[derive(Clone, PartialEq, Debug)]
pub struct Limited {
    /// The controller.
    pub who: String,
    /// The limit.
    pub limit: String,
    /// Calls or passes that waited, and all of them.
    pub delayed: (u64, u64),
    /// The longest wait.
    pub longest_seconds: f64,
}

/// What the limit of a client of the API server came to.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
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
    /// The longest time for which calls waited without a pause.
    #[serde(default)]
    pub longest_held_seconds: f64,
}

/// What a loop of a controller took.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
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
        self.loops.is_empty() && self.limits.is_empty() && self.control_plane.is_none()
    }

    /// The controllers that waited for a limit, if the report has to list them: on a provisioned control plane all that waited for a second,
    /// on a standard one only if any waited for ten.
    pub fn limited(&self) -> Vec<Limited> {
        let Some(control_plane) = &self.control_plane else { return Vec::new() };
        let clients = self.limits.iter().map(|limit| Limited {
            who: limit.client.clone(),
            limit: format!("{} calls/s", format::count(limit.per_second.into())),
            delayed: (limit.delayed, limit.calls),
            longest_seconds: limit.longest_wait_seconds,
        });
        let passes = control_plane.autoscaler_syncs.map(|syncs| Limited {
            who: "horizontal-pod-autoscaler".to_owned(),
            limit: format!("{} at a time", format::count(syncs.into())),
            delayed: (control_plane.autoscaler_passes_delayed, control_plane.autoscaler_passes),
            longest_seconds: control_plane.autoscaler_longest_wait_seconds,
        });
        let all: Vec<Limited> = clients.chain(passes).filter(|limited| limited.longest_seconds >= LISTED).collect();
        let long = all.iter().any(|limited| limited.longest_seconds >= LISTED_ON_STANDARD);
        if control_plane.is_provisioned() || long { all } else { Vec::new() }
    }
}

impl ControlPlaneFigures {
    /// Whether the tier is one that is ordered.
    pub fn is_provisioned(&self) -> bool {
        self.tier != ControlPlaneTier::Standard.as_str()
    }

    /// Its limits in use, in words.
    pub fn words(&self) -> String {
        let scheduler = self.scheduler_per_second.zip(self.scheduler_burst);
        let scheduler = scheduler.map(|(rate, burst)| {
            format!("kube-scheduler {} calls/s ({} at once)", format::count(rate.into()), format::count(burst.into()))
        });
        let syncs = self.autoscaler_syncs.map(|syncs| format!("{} HPAs at a time", format::count(syncs.into())));
        let [first, most] = [self.request_seats, self.request_seats_max].map(|seats| format::count(seats.into()));
        let seats =
            if first == most { format!("{most} request seats") } else { format!("{first} to {most} request seats") };
        let all: Vec<String> = scheduler.into_iter().chain(syncs).chain([seats]).collect();
        format!("{}: {}", self.tier, all.join(", "))
    }
}

/// The control plane, where its controllers take time.
fn control_plane(outcome: &Outcome) -> Option<ControlPlaneFigures> {
    let controllers = &outcome.record.controllers;
    let (tier, version) = (outcome.about.control_plane_tier, outcome.about.versions.kubernetes);
    if controllers.scheduler.is_none() && controllers.autoscalers.is_none() {
        return None;
    }
    let (request_seats, request_seats_max) = tier.request_seats(version);
    let passes = controllers.autoscalers.unwrap_or_default();
    Some(ControlPlaneFigures {
        tier: tier.to_string(),
        request_seats,
        request_seats_max,
        scheduler_per_second: controllers.scheduler.map(|rate| rate.per_second),
        scheduler_burst: controllers.scheduler.map(|rate| rate.burst),
        autoscaler_syncs: controllers.autoscalers.map(|passes| passes.at_once),
        autoscaler_passes: passes.passes,
        autoscaler_passes_delayed: passes.delayed,
        autoscaler_longest_wait_seconds: passes.longest.as_secs_f64(),
    })
}

/// Sums up what loops took.
pub(super) fn summary(outcome: &Outcome) -> ControllerSummary {
    let duration = outcome.about.duration.as_secs_f64();
    let figures = |controller_loop: ControllerLoop| {
        let facts = outcome.record.controllers.facts(controller_loop);
        let busy = facts.busy.as_secs_f64();
        (facts.runs > 0).then(|| LoopFigures {
            name: controller_loop.as_str().to_owned(),
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
        longest_held_seconds: limit.held.as_secs_f64(),
    });
    ControllerSummary {
        loops: ControllerLoop::ALL.into_iter().filter_map(figures).collect(),
        limits: limits.collect(),
        control_plane: control_plane(outcome),
    }
}
