//! Many settings of one scenario: what each costs, who waits, and which are worth a look.

use serde::{Deserialize, Serialize};

use super::comparison::About;
use super::figures::{FIGURES, find};
use super::points::Point;
use super::question::Question;
use super::statistics::Estimate;
use crate::report::summary::PROGRAM;

/// Version of the form of `sweep.json`.
const SCHEMA_VERSION: u32 = 1;

/// The share of a setting's runs that have to meet an objective for the setting to count as meeting it.
pub const MET_IN: f64 = 0.95;

/// The answer of a sweep.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Sweep {
    /// Version of this form.
    pub schema_version: u32,
    /// `nodecast`.
    pub program: String,
    /// The program's version.
    pub program_version: String,
    /// What was simulated; `replications` are those of each setting.
    pub about: About,
    /// The paths that vary.
    pub paths: Vec<String>,
    /// The figure that cost is held against.
    pub latency: String,
    /// Every setting under every policy, in the order of settings, then policies.
    pub results: Vec<SettingResult>,
    /// Numbers in `results` of those that no other beats in both cost and latency, from cheap to dear.
    pub front: Vec<usize>,
    /// The number in `results` of the cheapest that meets every objective in at least 95 % of its runs; `null` when none
    /// does or the scenario has none.
    pub cheapest_meeting_objectives: Option<usize>,
    /// What the model left out and could change the answer, under any setting.
    pub warnings: Vec<String>,
}

/// One setting under one policy.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SettingResult {
    /// The setting's number.
    pub setting: usize,
    /// The policy.
    pub policy: String,
    /// One value for each of the paths.
    pub values: Vec<String>,
    /// The mean of each figure over the replications; `null` when none had anything to measure.
    pub figures: Vec<Option<Estimate>>,
    /// Whether every objective was met in at least 95 % of the runs; `null` when none could be judged.
    pub meets_objectives: Option<bool>,
}

/// Sums up the points of a sweep, of which all are there. `latency` is the number of the figure to hold cost against.
pub fn sweep(about: About, question: &Question, latency: usize, points: &[Point], warnings: Vec<String>) -> Sweep {
    let paths = question.settings.first().map(|setting| setting.iter().map(|(path, _)| path.clone()).collect());
    let mut results = Vec::new();
    let mut all_warnings = warnings;
    let mut of_setting: Vec<Vec<&Point>> = vec![Vec::new(); question.settings.len()];
    for point in points {
        of_setting.get_mut(point.setting).into_iter().for_each(|own| own.push(point));
    }
    for (number, (setting, points)) in question.settings.iter().zip(&of_setting).enumerate() {
        for policy in &question.policies {
            let own: Vec<&Point> = points.iter().copied().filter(|point| point.policy == *policy).collect();
            for warning in own.iter().flat_map(|point| &point.warnings) {
                if !all_warnings.contains(warning) {
                    all_warnings.push(warning.clone());
                }
            }
            results.push(SettingResult {
                setting: number,
                policy: policy.clone(),
                values: setting.iter().map(|(_, value)| value.clone()).collect(),
                figures: (0..FIGURES.len())
                    .map(|figure| {
                        let values: Vec<f64> =
                            own.iter().filter_map(|point| point.figures.get(figure).copied()?).collect();
                        Estimate::of(&values)
                    })
                    .collect(),
                meets_objectives: meets(&own),
            });
        }
    }
    let cost = find("cost").map_or(0, |(position, _)| position);
    let mean = |result: &SettingResult, figure: usize| Some(result.figures.get(figure)?.as_ref()?.mean);
    let costs: Vec<Option<(f64, f64)>> =
        results.iter().map(|result| Some((mean(result, cost)?, mean(result, latency)?))).collect();
    let cheapest = results
        .iter()
        .enumerate()
        .filter(|(_, result)| result.meets_objectives == Some(true))
        .filter_map(|(number, result)| Some((mean(result, cost)?, number)))
        .min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)))
        .map(|(_, number)| number);
    Sweep {
        schema_version: SCHEMA_VERSION,
        program: PROGRAM.to_owned(),
        program_version: env!("CARGO_PKG_VERSION").to_owned(),
        about,
        paths: paths.unwrap_or_default(),
        latency: FIGURES.get(latency).map_or_else(String::new, |figure| figure.name.to_owned()),
        front: pareto_front(&costs),
        cheapest_meeting_objectives: cheapest,
        results,
        warnings: all_warnings,
    }
}

/// Whether each objective was met in enough of the runs that could be judged.
fn meets(own: &[&Point]) -> Option<bool> {
    let count = own.first()?.objectives.len();
    let mut judged_any = false;
    for position in 0..count {
        let verdicts: Vec<bool> = own.iter().filter_map(|point| point.objectives.get(position)?.met).collect();
        if verdicts.is_empty() {
            continue;
        }
        judged_any = true;
        let met = verdicts.iter().filter(|met| **met).count();
        if (met as f64) < MET_IN * verdicts.len() as f64 {
            return Some(false);
        }
    }
    judged_any.then_some(true)
}

/// The numbers of those that no other beats: none is at most as large in both and smaller in one. From the smallest
/// first value on; of equals all are kept.
pub fn pareto_front(values: &[Option<(f64, f64)>]) -> Vec<usize> {
    let mut known: Vec<(usize, (f64, f64))> =
        values.iter().enumerate().filter_map(|(number, value)| value.map(|value| (number, value))).collect();
    known.sort_by(|(a, x), (b, y)| x.0.total_cmp(&y.0).then(x.1.total_cmp(&y.1)).then(a.cmp(b)));
    let mut front = Vec::new();
    let mut best: Option<(f64, f64)> = None;
    for (number, value) in known {
        let beaten = best.is_some_and(|best| best.1 < value.1 || (best.1 <= value.1 && best.0 < value.0));
        if !beaten {
            best = Some(value);
            front.push(number);
        }
    }
    front
}

impl Sweep {
    /// `sweep.json`: two spaces of indentation, a line feed at the end.
    ///
    /// # Errors
    /// If serde_json cannot write it, which no sweep brings about.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self).map(|text| text + "\n")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::pareto_front;

    #[test]
    fn the_front_goes_from_cheap_to_quick() {
        let values = [Some((3.0, 1.0)), Some((1.0, 9.0)), Some((2.0, 9.0)), None, Some((2.0, 5.0)), Some((3.0, 1.0))];
        assert_eq!(pareto_front(&values), [1, 4, 0, 5]);
    }

    proptest! {
        #[test]
        fn nothing_on_the_front_is_beaten_and_all_else_is(values in prop::collection::vec((0_u8..6, 0_u8..6), 1..30)) {
            let values: Vec<_> = values.iter().map(|(a, b)| Some((f64::from(*a), f64::from(*b)))).collect();
            let front = pareto_front(&values);
            for (number, value) in values.iter().enumerate() {
                let (cost, latency) = value.unwrap();
                let beaten = values.iter().flatten().any(|other| {
                    other.0 <= cost && other.1 <= latency && (other.0 < cost || other.1 < latency)
                });
                prop_assert_eq!(front.contains(&number), !beaten);
            }
        }
    }
}
