//! What was simulated, as a summary states it.

use serde::{Deserialize, Serialize};

use super::Share;
use crate::domain::SimDuration;
use nodecast_settings::{Calibrated, InputFile};
use nodecast_world::outcome::About;

/// What was simulated.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AboutSummary {
    /// The scenario.
    pub scenario: String,
    /// The policy.
    pub policy: String,
    /// The autoscaler and its version.
    pub autoscaler: String,
    /// The region.
    pub region: String,
    /// The zones in use.
    pub zones: Vec<String>,
    /// ISO 4217 code of the currency of every amount.
    pub currency: String,
    /// Calendar time of the start, RFC 3339.
    pub start: String,
    /// Simulated time.
    pub duration_seconds: f64,
    /// For so long from the start waits, churn and response times do not count; absent if all of the run counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_up_seconds: Option<f64>,
    /// The seed.
    pub seed: u64,
    /// Releases reproduced.
    pub versions: VersionsSummary,
    /// Input files in order of reading.
    pub inputs: Vec<InputSummary>,
    /// Date of the prices.
    pub price_date: String,
    /// What the scenario's author assumed.
    pub assumptions: Vec<String>,
    /// The part of the bill that rests on each assumption, `null` where its size is not known; absent where none is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assumption_costs: Vec<Option<Share>>,
    /// What of the answer was measured on a cluster; absent without a calibration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration: Option<Calibrated>,
}

/// Releases reproduced.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct VersionsSummary {
    /// Kubernetes.
    pub kubernetes: String,
    /// Karpenter.
    pub karpenter: String,
}

/// An input file.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct InputSummary {
    /// Path as the scenario names it.
    pub path: String,
    /// SHA-256 in hexadecimal.
    pub sha256: String,
}

impl From<&InputFile> for InputSummary {
    fn from(input: &InputFile) -> Self {
        Self { path: input.path.clone(), sha256: input.sha256.clone() }
    }
}

pub(super) fn summary(about: &About, currency: &str, assumption_costs: Vec<Option<Share>>) -> AboutSummary {
    AboutSummary {
        scenario: about.scenario.clone(),
        policy: about.policy.clone(),
        autoscaler: about.autoscaler.clone(),
        region: about.region.clone(),
        zones: about.zones.iter().map(ToString::to_string).collect(),
        currency: currency.to_owned(),
        start: about.start.clone(),
        duration_seconds: about.duration.as_secs_f64(),
        warm_up_seconds: (about.warm_up > SimDuration::ZERO).then(|| about.warm_up.as_secs_f64()),
        seed: about.seed,
        versions: VersionsSummary {
            kubernetes: about.versions.kubernetes.to_string(),
            karpenter: about.versions.karpenter.to_string(),
        },
        inputs: about
            .inputs
            .iter()
            .map(|input| InputSummary { path: input.path.clone(), sha256: input.sha256.clone() })
            .collect(),
        price_date: about.price_date.clone(),
        assumptions: about.assumptions.clone(),
        assumption_costs,
        calibration: about.calibration.clone(),
    }
}

impl AboutSummary {
    /// The assumptions for the first screen, each with the part of the bill that rests on it: the largest first, then those whose size is
    /// not known. None where no size is known, since all assumptions are equal then.
    pub fn sized_assumptions(&self) -> Vec<(&str, Option<Share>)> {
        let sizes = self.assumption_costs.iter().copied().chain(std::iter::repeat(None));
        let mut all: Vec<(&str, Option<Share>)> = self.assumptions.iter().map(String::as_str).zip(sizes).collect();
        let amount = |(_, size): &(&str, Option<Share>)| size.map_or(-1.0, |size| size.amount);
        all.sort_by(|one, other| amount(other).total_cmp(&amount(one)));
        if self.assumption_costs.is_empty() { Vec::new() } else { all }
    }
}
