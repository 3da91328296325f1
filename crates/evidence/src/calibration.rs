//! What a scenario assumes, fitted to what a cluster recorded: values with their intervals beside what they are to replace.
//!
//! Records and estimators are those of `nodecast-observed`; here is what they mean for a scenario.
//!
//! What must not live here: how a record is read, and policies, requests or limits, which are facts and never fitted.

mod boots;
pub mod change;
mod effects;
mod failures;
pub mod fragment;
mod loads;
mod pods;
mod pulls;
mod reclaims;

use std::collections::BTreeSet;

use nodecast_observed::claims::History;
use nodecast_observed::estimate::Estimate;
use serde::Serialize;

pub use self::effects::{Difference, Effect, JUDGED, effect};

use self::change::Change;
use crate::catalog::Region;
use crate::scenario::{PolicyVariant, Scenario};

/// How far clusters differ from what is assumed of all of them: the standard deviation of the logarithm of a time. An assumption.
pub(crate) const BETWEEN: f64 = 0.35;
/// The width of the 95 % interval of what is assumed of a time, in the logarithm.
pub(crate) const ASSUMED_WIDTH: f64 = 2.0 * 1.959_963_984_540_054 * BETWEEN;

/// What a value is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
    /// Bytes per second.
    BytesPerSecond,
    /// Events per hour.
    PerHour,
    /// A share, 0 to 1.
    Share,
    /// A multiple of what is assumed.
    Factor,
}

/// Whether a value takes the place of what is assumed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FitOutcome {
    /// As it was measured: its interval is narrower than what is assumed is uncertain.
    Measured,
    /// A value between both: too little was recorded.
    Shrunk,
    /// It is what is assumed already.
    AsAssumed,
    /// It is only shown: the model has no key for it, or it cannot be told apart from something else.
    Shown,
}

/// A key of a scenario with its value.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, schemars::JsonSchema)]
pub struct Key {
    /// Keys from the scenario on; in a list `[name]` chooses the item of that name.
    pub path: Vec<String>,
    /// The value as YAML.
    pub value: String,
    /// What it takes the place of, as YAML.
    pub instead_of: String,
    /// Whether the scenario states it itself, so that the calibration would not be heard.
    pub stated: bool,
}

/// Something that is assumed, and what was measured of it.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct Parameter {
    /// What it is, for people.
    pub name: String,
    /// What its values are in.
    pub unit: Unit,
    /// What is assumed, or what the scenario states.
    pub assumed: Option<f64>,
    /// What was measured, with its 95 % interval.
    pub measured: Estimate,
    /// What it was measured on: `22 claims`.
    pub from: String,
    /// Whether it takes the place of what is assumed.
    pub taken: FitOutcome,
    /// The value that is taken, in the unit.
    pub value: f64,
    /// The keys that say so.
    pub keys: Vec<Key>,
    /// More to be said.
    pub notes: Vec<String>,
    /// What it does to a scenario.
    #[serde(skip)]
    pub change: Option<Change>,
}

impl Parameter {
    /// A value that is only shown.
    pub(crate) fn shown(name: impl Into<String>, unit: Unit, measured: Estimate, from: String) -> Self {
        Self {
            name: name.into(),
            unit,
            assumed: None,
            measured,
            from,
            taken: FitOutcome::Shown,
            value: measured.value,
            keys: Vec::new(),
            notes: Vec::new(),
            change: None,
        }
    }

    /// Whether all its keys are stated by the scenario.
    pub fn is_stated(&self) -> bool {
        !self.keys.is_empty() && self.keys.iter().all(|key| key.stated)
    }
}

/// All that was fitted.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Calibration {
    /// What was fitted, the times of nodes first.
    pub parameters: Vec<Parameter>,
    /// What is to be known of it.
    pub warnings: Vec<String>,
}

/// What a fit looks at.
pub(crate) struct Fit<'f> {
    pub(crate) history: &'f History,
    pub(crate) scenario: &'f Scenario,
    pub(crate) policy: &'f PolicyVariant,
    pub(crate) region: &'f Region,
    stated: &'f BTreeSet<String>,
    pub(crate) warnings: Vec<String>,
}

impl Fit<'_> {
    /// A key with its value and what it replaces.
    pub(crate) fn key(&self, path: &[&str], value: String, instead_of: String) -> Key {
        let path: Vec<String> = path.iter().map(|step| (*step).to_owned()).collect();
        // What stands above it says it, too: `launch_latency: al2`.
        let stated = (1..=path.len()).any(|length| self.stated.contains(&shown_path(&path[..length])));
        Key { path, value, instead_of, stated }
    }
}

/// A path as people write it: `ec2.launch_latency.vm_init`, `workloads[shop/web].start_time`.
pub fn shown_path(path: &[String]) -> String {
    let mut text = String::new();
    for step in path {
        if !text.is_empty() && !step.starts_with('[') {
            text.push('.');
        }
        text += step;
    }
    text
}

/// Fits everything that the history tells something about. `stated` are the paths of all values that the scenario states.
pub fn fit(
    history: &History,
    (scenario, policy): (&Scenario, &PolicyVariant),
    region: &Region,
    stated: &BTreeSet<String>,
) -> Calibration {
    let mut fit = Fit { history, scenario, policy, region, stated, warnings: Vec::new() };
    let mut parameters = boots::fit(&mut fit);
    parameters.extend(pulls::fit(&mut fit));
    parameters.extend(pods::fit(&mut fit));
    parameters.extend(reclaims::fit(&mut fit));
    parameters.extend(failures::fit(&mut fit));
    parameters.extend(loads::fit(&mut fit));
    for parameter in &mut parameters {
        let same = |key: &Key| key.value == key.instead_of;
        if !parameter.keys.is_empty() && parameter.keys.iter().all(same) {
            parameter.taken = FitOutcome::AsAssumed;
        }
    }
    Calibration { parameters, warnings: fit.warnings }
}

/// Whether a measured value replaces what is assumed of a time: its interval is narrower than that is uncertain.
pub(crate) fn beats_assumed(measured: &Estimate) -> bool {
    measured.log_width() < ASSUMED_WIDTH
}

/// `1 claim`, `22 claims`.
pub(crate) fn counted(count: usize, one: &str, many: &str) -> String {
    crate::domain::words::counted(count as u64, one, many)
}

/// Seconds as a scenario writes a duration, to hundredths of a second below ten seconds, else to tenths.
pub(crate) fn duration_text(seconds: f64) -> String {
    let steps = if seconds < 10.0 { 100.0 } else { 10.0 };
    let micros = libm::round(seconds.max(0.0) * steps) * (1e6 / steps);
    crate::domain::SimDuration::from_micros(micros as i64).to_string()
}
