//! A committed baseline and what has moved since: the guard of a CI job.
//!
//! A [`Baseline`] keeps the mean of every figure of some scenarios. A later [`check`] runs the same policies with the same
//! seeds and holds each figure for which less or more is better to its tolerance.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::figures::{FIGURES, Figure, Level, PACKING_FIGURES, SILENT, Unit, all, find, named};
use super::model::{FIRST, MODEL};
use super::points::Point;
use super::statistics::{Estimate, mean, student_t_quantile};
use crate::domain::SimDuration;
use crate::report::format::relative_change;
use crate::report::pack::PackedInstance;
use crate::report::summary::PROGRAM;

/// Version of the form of a baseline.
const SCHEMA_VERSION: u32 = 1;

/// Figures as they were.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    /// Version of this form.
    pub schema_version: u32,
    /// `nodecast`.
    pub program: String,
    /// The number of the [model](super::model) that the figures are of; 1 where there is none.
    #[serde(default = "first")]
    pub model: u32,
    /// By how much a figure may get worse, as a share of what it was, by its name; `default` for all others.
    #[serde(default)]
    pub tolerances: BTreeMap<String, f64>,
    /// The scenarios, in order of their paths.
    pub scenarios: Vec<ScenarioBaseline>,
}

/// The model of a baseline without a number.
const fn first() -> u32 {
    FIRST
}

/// One policy of one scenario as it was.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScenarioBaseline {
    /// The scenario file or the folder of a packing suite, as it was named.
    pub scenario: String,
    /// The policy; of a suite the instance and who packs it.
    pub policy: String,
    /// The first seed.
    pub first_seed: u64,
    /// How many successive seeds.
    pub replications: u32,
    /// How long its runs were, where not as long as the scenario says: `2h`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<String>,
    /// How long its runs were, whoever said so; absent in baselines from before that was kept, and of packing suites.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simulated: Option<String>,
    /// Means by the names of figures; figures with nothing to measure are left out.
    pub figures: BTreeMap<String, f64>,
    /// The value of each seed, in their order, of figures that differ between seeds and were measured in all; absent in baselines
    /// from before that was kept, and of packing suites.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seeds: Option<BTreeMap<String, Vec<f64>>>,
}

/// The tolerance of figures that have none of their own, as a share.
const DEFAULT_TOLERANCE: f64 = 0.02;

impl Baseline {
    /// A baseline of these scenarios.
    pub fn new(tolerances: BTreeMap<String, f64>, mut scenarios: Vec<ScenarioBaseline>) -> Self {
        scenarios.sort_by(|a, b| (&a.scenario, &a.policy).cmp(&(&b.scenario, &b.policy)));
        Self { schema_version: SCHEMA_VERSION, program: PROGRAM.to_owned(), model: MODEL, tolerances, scenarios }
    }

    /// What is wrong with a baseline that was read, in a sentence.
    pub fn flaw(&self) -> Option<String> {
        if (self.schema_version, self.program.as_str()) != (SCHEMA_VERSION, PROGRAM) {
            return Some(format!("it is of {} in form {}", self.program, self.schema_version));
        }
        let wrong = |(name, value): (&String, &f64)| {
            if name != "default" && named(name).is_none() {
                return Some(format!("its tolerances name `{name}`, which is no figure"));
            }
            (!value.is_finite() || *value < 0.0).then(|| format!("its tolerance of `{name}` is {value}"))
        };
        let of_time = |scenario_baseline: &ScenarioBaseline| {
            let mut texts = scenario_baseline.duration.iter().chain(&scenario_baseline.simulated);
            let text = texts.find(|text| text.parse::<SimDuration>().is_err())?;
            Some(format!("its duration of `{}` is `{text}`, which is no span of time", scenario_baseline.scenario))
        };
        self.tolerances.iter().find_map(wrong).or_else(|| self.scenarios.iter().find_map(of_time))
    }

    /// How long runs of a scenario are where it does not say so itself.
    pub fn duration(&self, scenario: &str) -> Option<SimDuration> {
        let scenario = self.scenarios.iter().find(|this_scenario| this_scenario.scenario == scenario)?;
        scenario.duration.as_ref()?.parse().ok()
    }

    /// How long the runs of a scenario were; `None` where the baseline does not say.
    pub fn simulated(&self, scenario: &str) -> Option<SimDuration> {
        let scenario = self.scenarios.iter().find(|this_scenario| this_scenario.scenario == scenario)?;
        scenario.simulated.as_ref().or(scenario.duration.as_ref())?.parse().ok()
    }

    /// The first policy that the baseline has of one of the scenarios `checked` and that none of the results `now` is of.
    pub fn gone(&self, checked: &[String], now: &[&ScenarioBaseline]) -> Option<&ScenarioBaseline> {
        let is_there = |scenario_baseline: &ScenarioBaseline| {
            now.iter()
                .any(|new| (&new.scenario, &new.policy) == (&scenario_baseline.scenario, &scenario_baseline.policy))
        };
        self.scenarios.iter().find(|scenario| checked.contains(&scenario.scenario) && !is_there(scenario))
    }

    /// Whether any scenario of the baseline has this figure.
    pub fn knows(&self, figure: &Figure) -> bool {
        self.scenarios.iter().any(|scenario| scenario.figures.contains_key(figure.name))
    }

    fn tolerance(&self, figure: &Figure, stated: Option<f64>) -> f64 {
        let tolerance = self.tolerances.get(figure.name).copied();
        tolerance.or(stated).or_else(|| self.tolerances.get("default").copied()).unwrap_or(DEFAULT_TOLERANCE)
    }

    /// The baseline as a file: two spaces of indentation, a line feed at the end.
    ///
    /// # Errors
    /// If serde_json cannot write it, which no baseline brings about.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self).map(|text| text + "\n")
    }
}

impl ScenarioBaseline {
    /// The means of `points`, which are of one policy.
    pub fn new(scenario: &str, policy: &str, first_seed: u64, replications: u32, points: &[&Point]) -> Self {
        let figures = FIGURES
            .iter()
            .enumerate()
            .filter_map(|(position, figure)| {
                let values: Vec<f64> =
                    points.iter().filter_map(|point| point.figures.get(position).copied()?).collect();
                Some((figure.name.to_owned(), mean(&values)?))
            })
            .chain(silent(points))
            .collect();
        let (scenario, policy) = (scenario.to_owned(), policy.to_owned());
        let seeds = Some(by_seed(points));
        Self { scenario, policy, first_seed, replications, duration: None, simulated: None, figures, seeds }
    }

    /// The figures of an instance of the packing suite in the folder `suite`.
    pub fn of_packing(suite: &str, packer: &str, instance: &PackedInstance) -> Self {
        let values = [instance.per_hour, instance.nodes as f64, instance.pods_pending as f64];
        let figures = PACKING_FIGURES.iter().map(|figure| figure.name.to_owned()).zip(values).collect();
        let policy = format!("{} ({packer})", instance.name);
        let (scenario, simulated) = (suite.to_owned(), None);
        Self { scenario, policy, first_seed: 0, replications: 1, duration: None, simulated, figures, seeds: None }
    }

    /// The value of a figure with each seed; `None` where that was not kept.
    fn values(&self, figure: &Figure) -> Option<Vec<f64>> {
        let seeds = self.seeds.as_ref()?;
        let equal = || Some(vec![*self.figures.get(figure.name)?; self.replications as usize]);
        seeds.get(figure.name).cloned().or_else(equal)
    }
}

/// The value of each seed of figures for which less or more is better and whose seeds differ.
fn by_seed(points: &[&Point]) -> BTreeMap<String, Vec<f64>> {
    let measured = FIGURES.iter().enumerate().filter(|(_, figure)| figure.less_is_better.is_some());
    let values = measured.filter_map(|(position, figure)| {
        let values: Option<Vec<f64>> = points.iter().map(|point| point.figures.get(position).copied()?).collect();
        Some((figure.name.to_owned(), values?))
    });
    let silent = points.iter().map(|point| point.silent.len() as f64).collect();
    let differ = |(_, values): &(String, Vec<f64>)| values.iter().any(|value| value.to_bits() != values[0].to_bits());
    values.chain([(SILENT.name.to_owned(), silent)]).filter(differ).collect()
}

/// How many workloads answer none of their requests, on average; none where nobody sends any.
fn silent(points: &[&Point]) -> Option<(String, f64)> {
    let (asked, _) = find("requests_unanswered")?;
    let asked = points.iter().filter(|point| point.figures.get(asked).copied().flatten().is_some());
    let silent: Vec<f64> = asked.map(|point| point.silent.len() as f64).collect();
    Some((SILENT.name.to_owned(), mean(&silent)?))
}

/// How a figure stands against its baseline.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Worse by more than its tolerance.
    Worse,
    /// Better by more than its tolerance: time for a new baseline.
    Better,
    /// It moved, but within its tolerance.
    Moved,
    /// It moved by more than its tolerance, but no more than seeds differ.
    Noise,
    /// It moved, and is held to nothing: neither direction is better, or then or now there was nothing to measure.
    NotJudged,
    /// As it was.
    Same,
}

/// One figure against its baseline.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct Movement {
    /// The scenario file.
    pub scenario: String,
    /// The policy.
    pub policy: String,
    /// The figure's name.
    pub figure: &'static str,
    /// What it was; `null` when there was nothing to measure.
    pub was: Option<f64>,
    /// What it is; `null` when there is nothing to measure.
    pub is: Option<f64>,
    /// The change as a share of the baseline; `null` where the baseline is nearly 0 or not measured.
    pub change: Option<f64>,
    /// By how much it may get worse, as a share.
    pub tolerance: f64,
    /// How it stands.
    pub standing: Standing,
}

/// Differences below this are noise of the last digits: a cent, a hundredth of a second, a hundredth of a thing.
fn negligible(unit: Unit) -> f64 {
    match unit {
        Unit::Money | Unit::Seconds | Unit::Count => 0.01,
        Unit::Share => 0.000_1,
    }
}

/// Holds `now` to what the baseline has for the same scenario and policy; `None` if it has nothing. `tolerance` is that of
/// figures that have none of their own in the baseline.
pub fn check(baseline: &Baseline, now: &ScenarioBaseline, tolerance: Option<f64>) -> Option<Vec<Movement>> {
    let then = baseline.scenarios.iter().find(|then| (&then.scenario, &then.policy) == (&now.scenario, &now.policy))?;
    let movements = all().filter_map(|figure| {
        let (was, is) = (then.figures.get(figure.name).copied(), now.figures.get(figure.name).copied());
        // What no scenario of the baseline has is a figure that came after it.
        if was.is_none() && (is.is_none() || !baseline.knows(figure)) {
            return None;
        }
        let tolerance = baseline.tolerance(figure, tolerance);
        Some(Movement {
            scenario: now.scenario.clone(),
            policy: now.policy.clone(),
            figure: figure.name,
            was,
            is,
            change: was.zip(is).and_then(|(was, is)| relative_change(is - was, was)),
            tolerance,
            standing: standing(figure, was, is, tolerance, || is_noise(figure, then, now)),
        })
    });
    Some(movements.collect())
}

/// The share of figures that nothing changed which are called noise: many figures are checked at once.
const CONFIDENCE: f64 = 0.99;

/// Whether a figure moved no more than seeds differ.
///
/// Both runs have the same seeds, so the interval of the difference, seed by seed, has to leave zero out; of waits that of the
/// median, too, which one failed boot does not move. A baseline without the values of its seeds has the dispersion of those of
/// now, and only counts are compared with it: money and waits then have their tolerance alone.
fn is_noise(figure: &Figure, then: &ScenarioBaseline, now: &ScenarioBaseline) -> bool {
    let Some(values) = now.values(figure).filter(|values| values.len() > 1) else { return false };
    let Some(before) = then.values(figure).filter(|before| before.len() == values.len()) else {
        let was = then.figures.get(figure.name).copied();
        return figure.level() == Level::Count && was.is_some_and(|was| is_noise_of_counts(was, &values));
    };
    let differences: Vec<f64> = before.iter().zip(&values).map(|(was, is)| is - was).collect();
    let is_clear = |estimate: Option<Estimate>| estimate.is_some_and(|estimate| estimate.excludes_zero());
    let is_median = figure.level() == Level::Median;
    !is_clear(Estimate::with_confidence(&differences, CONFIDENCE))
        || (is_median && !is_clear(Estimate::of_median(&differences)))
}

/// Whether the mean of counts could be `was` by chance, with their dispersion, which is at least that of Poisson's distribution.
fn is_noise_of_counts(was: f64, values: &[f64]) -> bool {
    let runs = values.len() as f64;
    let Some(is) = mean(values) else { return false };
    let squares: f64 = values.iter().map(|value| (value - is) * (value - is)).sum();
    let dispersion = if is > 0.0 { (squares / (runs - 1.0) / is).max(1.0) } else { 1.0 };
    let reach = student_t_quantile(0.5 + CONFIDENCE / 2.0, 2.0 * (runs - 1.0));
    (is - was).abs() <= reach * libm::sqrt(dispersion * (was + is) / runs)
}

fn standing(
    figure: &Figure,
    was: Option<f64>,
    is: Option<f64>,
    tolerance: f64,
    is_noise: impl Fn() -> bool,
) -> Standing {
    let (Some(was), Some(is)) = (was, is) else { return Standing::NotJudged };
    let growth = is - was;
    if growth.abs() <= 0.0 {
        return Standing::Same;
    }
    let Some(less_is_better) = figure.less_is_better else { return Standing::NotJudged };
    let worse = if less_is_better { growth } else { -growth };
    let allowed = (was.abs() * tolerance).max(negligible(figure.unit));
    match worse {
        worse if worse.abs() <= allowed => Standing::Moved,
        _ if is_noise() => Standing::Noise,
        worse if worse > 0.0 => Standing::Worse,
        _ => Standing::Better,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{Baseline, ScenarioBaseline, Standing, check};

    fn figures(values: &[(&str, f64)]) -> ScenarioBaseline {
        ScenarioBaseline {
            scenario: "s.yaml".into(),
            policy: "p".into(),
            first_seed: 1,
            replications: 2,
            duration: None,
            simulated: None,
            figures: values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
            seeds: None,
        }
    }

    /// A policy with the values of its seeds.
    fn seeds(values: &[(&str, &[f64])]) -> ScenarioBaseline {
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let means: Vec<(&str, f64)> = values.iter().map(|(name, values)| (*name, mean(values))).collect();
        let by_seed = values.iter().map(|(name, values)| ((*name).to_owned(), values.to_vec())).collect();
        let replications = u32::try_from(values[0].1.len()).unwrap();
        ScenarioBaseline { replications, seeds: Some(by_seed), ..figures(&means) }
    }

    fn standings(then: ScenarioBaseline, now: &ScenarioBaseline) -> BTreeMap<&'static str, Standing> {
        let baseline = Baseline::new(BTreeMap::new(), vec![then]);
        let movements = check(&baseline, now, None).unwrap();
        movements.iter().map(|movement| (movement.figure, movement.standing)).collect()
    }

    #[test]
    fn noise_of_seeds_is_not_worse() {
        let then = seeds(&[
            ("interruptions", &[1.0, 2.0, 0.0, 1.0, 2.0]),
            ("pending_p99", &[61.0, 58.0, 60.0, 62.0, 59.0]),
            ("cost", &[10.0, 14.0, 9.0, 12.0, 11.0]),
        ]);
        let now = seeds(&[
            ("interruptions", &[2.0, 1.0, 3.0, 1.0, 1.0]),
            ("pending_p99", &[60.0, 58.0, 930.0, 61.0, 59.5]),
            ("cost", &[13.0, 12.0, 14.0, 10.0, 12.0]),
        ]);
        let expected =
            [("cost", Standing::Noise), ("interruptions", Standing::Noise), ("pending_p99", Standing::Noise)];
        assert_eq!(standings(then, &now), expected.into());
    }

    #[test]
    fn regressions_are_worse_by_seeds() {
        let then = seeds(&[
            ("evictions", &[100.0, 140.0, 90.0, 120.0, 110.0]),
            ("pending_p99", &[61.0, 58.0, 60.0, 62.0, 59.0]),
            ("cost", &[10.0, 14.0, 9.0, 12.0, 11.0]),
        ]);
        // Seeds differ by more than the change, which is the same in each of them.
        let now = seeds(&[
            ("evictions", &[130.0, 172.0, 118.0, 151.0, 143.0]),
            ("pending_p99", &[76.0, 74.0, 73.0, 79.0, 75.0]),
            ("cost", &[10.5, 14.6, 9.5, 12.6, 11.6]),
        ]);
        let expected = [("cost", Standing::Worse), ("evictions", Standing::Worse), ("pending_p99", Standing::Worse)];
        assert_eq!(standings(then, &now), expected.into());
    }

    #[test]
    fn older_baseline_has_noise_of_counts() {
        let then = figures(&[("interruptions", 1.2), ("evictions", 100.0), ("cost", 10.0)]);
        let now = seeds(&[
            ("interruptions", &[2.0, 1.0, 3.0, 1.0, 1.0]),
            ("evictions", &[150.0, 162.0, 138.0, 151.0, 143.0]),
            ("cost", &[13.0, 12.0, 14.0, 10.0, 12.0]),
        ]);
        let expected = [("cost", Standing::Worse), ("evictions", Standing::Worse), ("interruptions", Standing::Noise)];
        assert_eq!(standings(then, &now), expected.into());
    }

    #[test]
    fn each_metric_has_tolerance_and_direction() {
        let then = figures(&[("cost", 100.0), ("pending_p99", 10.0), ("cpu_requested", 0.5), ("launches", 3.0)]);
        let tolerances: BTreeMap<String, f64> = [("pending_p99".to_owned(), 0.5)].into();
        let baseline = Baseline::new(tolerances, vec![then]);
        let now = figures(&[("cost", 103.0), ("pending_p99", 14.0), ("cpu_requested", 0.6), ("launches", 9.0)]);
        let standings: BTreeMap<&str, Standing> =
            check(&baseline, &now, None).unwrap().iter().map(|movement| (movement.figure, movement.standing)).collect();
        let expected = [
            ("cost", Standing::Worse),
            ("pending_p99", Standing::Moved),
            ("cpu_requested", Standing::Better),
            ("launches", Standing::NotJudged),
        ];
        assert_eq!(standings, expected.into());
        let looser = check(&baseline, &now, Some(0.05)).unwrap();
        assert!(looser.iter().all(|movement| movement.standing != Standing::Worse));
        // A figure that the baseline is older than is no movement.
        let newer = figures(&[("cost", 100.0), ("pods_pending", 3.0)]);
        assert!(check(&baseline, &newer, None).unwrap().iter().all(|movement| movement.figure != "pods_pending"));
    }

    #[test]
    fn silent_workload_is_worse_despite_faster_responses() {
        let then = figures(&[("request_p99", 2.0), ("requests_lost", 0.02), ("workloads_silent", 0.0)]);
        let baseline = Baseline::new(BTreeMap::new(), vec![then]);
        let now = figures(&[("request_p99", 1.0), ("requests_lost", 0.02), ("workloads_silent", 1.0)]);
        let movements = check(&baseline, &now, None).unwrap();
        let worse: Vec<&str> = movements
            .iter()
            .filter(|movement| movement.standing == Standing::Worse)
            .map(|movement| movement.figure)
            .collect();
        assert_eq!(worse, ["workloads_silent"]);
        // What the baseline does not know nobody is held to.
        let older = Baseline::new(BTreeMap::new(), vec![figures(&[("request_p99", 2.0)])]);
        assert!(check(&older, &now, None).unwrap().iter().all(|check| check.standing != Standing::Worse));
    }

    #[test]
    fn missing_baseline_policy_is_detected() {
        let other = ScenarioBaseline { policy: "q".into(), ..figures(&[]) };
        let baseline = Baseline::new(BTreeMap::new(), vec![figures(&[]), other.clone()]);
        let (now, checked) = (figures(&[]), ["s.yaml".to_owned()]);
        assert_eq!(baseline.gone(&checked, &[&now]).map(|item| item.policy.as_str()), Some("q"));
        assert_eq!(baseline.gone(&checked, &[&now, &other]), None);
        // Scenarios that nobody has asked about may have what they want.
        assert_eq!(baseline.gone(&["t.yaml".to_owned()], &[&now]), None);
    }

    #[test]
    fn a_baseline_knows_how_long_its_runs_were() {
        let of = |duration: Option<&str>, simulated: Option<&str>| {
            let [duration, simulated] = [duration, simulated].map(|duration| duration.map(str::to_owned));
            let scenario_baseline = ScenarioBaseline { duration, simulated, ..figures(&[]) };
            Baseline::new(BTreeMap::new(), vec![scenario_baseline]).simulated("s.yaml")
        };
        assert_eq!(of(None, Some("3h")), "3h".parse().ok());
        assert_eq!(of(Some("2h"), None), "2h".parse().ok());
        assert_eq!(of(None, None), None);
    }

    #[test]
    fn baseline_without_policy_reports_it() {
        let baseline = Baseline::new(BTreeMap::new(), vec![figures(&[])]);
        assert_eq!(check(&baseline, &ScenarioBaseline { policy: "q".into(), ..figures(&[]) }, None), None);
        assert_eq!(baseline.flaw(), None);
        let timeless = ScenarioBaseline { duration: Some("long".into()), ..figures(&[]) };
        let flaw = Baseline::new(BTreeMap::new(), vec![timeless]).flaw();
        assert_eq!(flaw.unwrap(), "its duration of `s.yaml` is `long`, which is no span of time");
        let other = Baseline { tolerances: [("cots".to_owned(), 0.1)].into(), ..baseline };
        assert_eq!(other.flaw().unwrap(), "its tolerances name `cots`, which is no figure");
    }
}
