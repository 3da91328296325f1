//! The answer: what to change, what it saves and costs, and how sure that is.

use crate::scenario::Caveats;
use serde::{Deserialize, Serialize};

use super::allowed::Exclusion;
use super::commitments::FamilyCurve;
use super::lines::LargeLine;
use super::risks::Risk;
use super::robustness::Robustness;
use super::support::Advice;
use crate::axes::Setting;
use crate::figures::find;
use crate::points::Point;
use crate::report::summary::InputSummary;
use crate::statistics::{Estimate, Paired};

/// Version of the form of `recommendation.json`.
pub const SCHEMA_VERSION: u32 = 1;

/// What to change of a scenario so that it costs less.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Recommendation {
    /// Version of this form.
    pub schema_version: u32,
    /// `nodecast`.
    pub program: String,
    /// The program's version.
    pub program_version: String,
    /// The scenario's name.
    pub scenario: String,
    /// The scenario's file.
    pub file: String,
    /// The policy that is to become cheaper.
    pub policy: String,
    /// The region.
    pub region: String,
    /// The currency of every amount.
    pub currency: String,
    /// Date of the prices.
    pub price_date: String,
    /// Input files with their SHA-256.
    pub inputs: Vec<InputSummary>,
    /// What was set beforehand, each `PATH=VALUE`.
    pub set: Vec<String>,
    /// The other options that the answer hangs on, beside simulations and seed, as a shell reads them; absent where all were left as they are.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub options: String,
    /// What comes of it: `change`, `nothing_saves`, `not_sure`, `too_little` or `beyond_limits`.
    pub advice: Advice,
    /// The largest lines of today's bill, in a run with the first seed, and the levers that concern them.
    #[serde(default)]
    pub lines: Vec<LargeLine>,
    /// How it is today, over the seeds of the confirmation; `null` where nothing was left to confirm.
    pub today: Option<Figures>,
    /// How it would be; `null` likewise.
    pub recommended: Option<Figures>,
    /// Cost per month of what is recommended against today, seed by seed.
    pub cost_per_month: Option<Paired>,
    /// Saving per month; `null` where nothing was left to confirm.
    #[serde(default)]
    pub saves_per_month: Option<Estimate>,
    /// Saving per year of 12 such months.
    #[serde(default)]
    pub saves_per_year: Option<Estimate>,
    /// What to change, what saves most first.
    pub changes: Vec<Change>,
    /// What has to be kept.
    pub limits: Vec<LimitKept>,
    /// How it fares when something turns out differently.
    pub robustness: Vec<Robustness>,
    /// Settings that were tried, with what they cost and how long pods wait.
    pub tried: Vec<Tried>,
    /// What commitments would cost, by family.
    pub commitments: Vec<FamilyCurve>,
    /// What could be changed.
    pub levers: Vec<LeverTried>,
    /// Parts of levers that were not tried, because a NodePool or a flag excludes them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excluded: Vec<Exclusion>,
    /// How much was simulated.
    pub effort: EffortMade,
    /// The answer without Spot, where Spot saves most; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without_spot: Option<Alternative>,
    /// What the model left out and could change the answer.
    #[serde(flatten)]
    pub warnings: Caveats,
}

/// A second answer to the same question, with fewer levers and fresh seeds.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Alternative {
    /// What comes of it.
    pub advice: Advice,
    /// How it would be; `null` where nothing was left to confirm.
    pub recommended: Option<Figures>,
    /// Cost per month of what is recommended against today, seed by seed.
    pub cost_per_month: Option<Paired>,
    /// Saving per month.
    pub saves_per_month: Option<Estimate>,
    /// Saving per year.
    pub saves_per_year: Option<Estimate>,
    /// What to change.
    pub changes: Vec<Change>,
    /// What has to be kept.
    pub limits: Vec<LimitKept>,
    /// How much was simulated for it alone.
    pub effort: EffortMade,
}

/// Means over the runs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Figures {
    /// The bill for a month of 730 hours.
    pub cost_per_month: Option<Estimate>,
    /// How long pods wait for a node, 99th percentile, in seconds.
    pub pending_p99: Option<Estimate>,
    /// Pod-minutes below the wanted number of replicas.
    pub unavailable_pod_minutes: Option<Estimate>,
    /// Pods evicted.
    pub evictions: Option<Estimate>,
    /// Spot interruptions.
    pub interruptions: Option<Estimate>,
    /// The slowest workload's response time, 99th percentile, in seconds.
    pub request_p99: Option<Estimate>,
}

impl Figures {
    /// Those of these runs.
    pub fn from_points(points: &[Point]) -> Self {
        let mean = |name: &str| {
            let (place, figure) = find(name)?;
            let values: Vec<f64> = points.iter().filter_map(|point| *point.figures.get(place)?).collect();
            let (least, most) = figure.unit.range();
            Estimate::from_values(&values).map(|estimate| estimate.within(least, most))
        };
        Self {
            cost_per_month: mean("cost_per_month"),
            pending_p99: mean("pending_p99"),
            unavailable_pod_minutes: mean("unavailable_pod_minutes"),
            evictions: mean("evictions"),
            interruptions: mean("interruptions"),
            request_p99: mean("request_p99"),
        }
    }
}

/// One change.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Change {
    /// The kind of lever, as the command line names it.
    pub lever: String,
    /// What it belongs to.
    pub subject: String,
    /// How it is today.
    pub from: String,
    /// How it is to be.
    pub to: String,
    /// What a month costs more without this change, all others made.
    pub saves_per_month: Estimate,
    /// The same for a year.
    #[serde(default)]
    pub saves_per_year: Option<Estimate>,
    /// Whether it is a setting, which can be taken back, or a commitment.
    #[serde(default)]
    pub class: Class,
    /// What may go wrong, how to take it back, and what it needs from people.
    #[serde(default)]
    pub risk: Option<Risk>,
    /// What to set, each `PATH=VALUE`.
    pub set: Setting,
    /// What it comes to in the files: the object, the place in it, and the value before and after.
    pub edits: Vec<ValueChange>,
}

/// Classes of changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// A setting of objects or flags.
    #[default]
    Setting,
    /// A contract about future cost.
    Commitment,
}

/// A value of a manifest or of the scenario that changes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ValueChange {
    /// The object, as `NodePool default`, or the scenario.
    pub object: String,
    /// The place in it.
    pub path: String,
    /// The value today, as YAML; `null` if there is none.
    pub before: Option<String>,
    /// The value as it is to be; `null` if there is none.
    pub after: Option<String>,
}

/// Something that has to be kept.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LimitKept {
    /// What it is.
    pub name: String,
    /// The limit; `null` where today is the limit.
    pub limit: Option<f64>,
    /// Its mean today.
    pub today: Option<Estimate>,
    /// Its mean as it would be.
    pub recommended: Option<Estimate>,
    /// In how many of the runs an objective is met today, and as it would be; `null` where today is the limit.
    pub met: Option<(u64, u64)>,
    /// Whether it is kept.
    pub kept: bool,
}

/// A setting that was tried.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Tried {
    /// What it changes, in words; empty for today.
    pub changes: Vec<String>,
    /// With how many seeds.
    pub seeds: u64,
    /// Mean cost per month.
    pub cost_per_month: f64,
    /// Mean of the 99th percentile of waits, in seconds; `null` where no pod waited.
    pub pending_p99: Option<f64>,
    /// Mean number of evictions.
    pub evictions: f64,
    /// `today`, `recommended` or nothing.
    pub role: String,
}

/// A lever with how much of it was tried.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LeverTried {
    /// The kind, as the command line names it.
    pub lever: String,
    /// What it belongs to.
    pub subject: String,
    /// How it is today.
    pub today: String,
    /// What was tried instead.
    pub tried: Vec<String>,
}

/// How much was simulated.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct EffortMade {
    /// Most simulations: the same number gives the same answer on every machine.
    pub simulations: u64,
    /// How many there were.
    pub used: u64,
    /// How many settings were tried.
    pub settings: u64,
    /// The first seed of the search.
    pub first_seed: u64,
    /// How many fresh seeds the answer was confirmed with.
    pub confirmed_with: u64,
    /// Whether the search ended because it had no more simulations.
    pub spent: bool,
}

impl Recommendation {
    /// `recommendation.json`: two spaces of indentation, a line feed at the end.
    ///
    /// # Errors
    /// If serde_json cannot write it, which no answer brings about.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self).map(|text| text + "\n")
    }

    /// Whether something is to be changed.
    pub fn is_change(&self) -> bool {
        self.advice == Advice::Change
    }

    /// The share of today's cost that is saved, with its interval; above 0 where it costs less.
    pub fn saving(&self) -> Option<Estimate> {
        let relative = self.cost_per_month.as_ref()?.relative.as_ref()?;
        let (low, high) = (relative.high.map(|high| -high), relative.low.map(|low| -low));
        Some(Estimate { mean: -relative.mean, low, high, ..*relative })
    }
}
