//! Many settings of one scenario: what each costs, who waits, and which are worth a look.

use crate::scenario::Caveats;
use serde::{Deserialize, Serialize};

use super::comparison::{About, mean_of_objective};
use super::figures::{FIGURES, find};
use super::levels::{level_of, paired};
use super::points::{MET_IN, Objective, Point};
use super::question::Question;
use super::statistics::{Estimate, Paired};
use super::unfinished_work::MEASURES;
use crate::report::summary::PROGRAM;

/// Version of the form of `sweep.json`.
const SCHEMA_VERSION: u32 = 1;

/// The answer of a sweep.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
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
    /// The figure by which a setting is cheap: `cost_per_month` where settings run for different times, else `cost`, and then absent.
    #[serde(default = "cost_of_run", skip_serializing_if = "is_cost_of_run")]
    pub cost: String,
    /// Every setting under every policy, in the order of settings, then policies.
    pub results: Vec<SettingResult>,
    /// Numbers in `results` of those that no other beats in both mean cost and mean latency, from cheap to dear; those that
    /// leave work undone are left out.
    pub front: Vec<usize>,
    /// The number in `results` of the cheapest by its mean, which the costs of others are held against: of those that meet
    /// every objective, or, when none does or the scenario has none, of all that leave no work undone which another does;
    /// `null` when there is no such setting.
    pub cheapest: Option<usize>,
    /// The number in `results` of the cheapest that meets every objective in at least 95 % of its runs and leaves no work
    /// undone which another does; `null` when none does or the scenario has no objectives.
    pub cheapest_meeting_objectives: Option<usize>,
    /// Numbers in `results` of the settings as good as `cheapest` otherwise, whose cost is not told apart from its: the
    /// 95 % interval of the difference includes 0. With a single replication, those of exactly equal cost.
    pub not_told_apart: Vec<usize>,
    /// What the model left out and could change the answer, under any setting.
    #[serde(flatten)]
    pub warnings: Caveats,
}

/// The name of the figure by which settings are cheap that run for the same time.
const COST_OF_RUN: &str = "cost";

fn cost_of_run() -> String {
    COST_OF_RUN.to_owned()
}

fn is_cost_of_run(name: &str) -> bool {
    name == COST_OF_RUN
}

/// One setting under one policy.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
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
    /// What each objective measures, on average, in the order of the scenario.
    #[serde(default)]
    pub objectives: Vec<ObjectiveMean>,
    /// Work that it clearly leaves undone and another setting does not; where there is any, its cost says nothing.
    pub undone: Vec<Undone>,
    /// Its cost against that of `cheapest`, seed by seed; `null` for that one itself, and where costs cannot be compared.
    pub against_cheapest: Option<Paired>,
    /// After so many seeds it was clearly worse than another, and got no more; it is then neither on the front nor the cheapest. Absent where it
    /// got all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub knocked_out_after: Option<u64>,
}

/// What an objective measures under one setting.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ObjectiveMean {
    /// Its name in the scenario.
    pub name: String,
    /// `seconds`, `pod-minutes` or a currency code.
    pub unit: String,
    /// The limit.
    pub limit: f64,
    /// The mean over the replications; `null` when none had anything to measure.
    pub mean: Option<Estimate>,
}

/// Work that a setting leaves undone.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Undone {
    /// The figure that measures it: `pods_pending` or `requests_lost`.
    pub figure: String,
    /// Its mean under this setting.
    pub mean: f64,
    /// Its mean under the setting that leaves least.
    pub least: f64,
}

impl SettingResult {
    /// The mean of the figure with this number.
    pub fn mean(&self, figure: usize) -> Option<f64> {
        Some(self.figures.get(figure)?.as_ref()?.mean)
    }

    /// The mean of the figure with this number, which cost is held against; of waits for a node 0 where there was none to measure: no pod had to
    /// wait for one.
    pub fn latency(&self, figure: usize) -> Option<f64> {
        self.mean(figure).or_else(|| nobody_waits(figure, |name| self.mean(find(name)?.0)))
    }

    /// Whether its cost can be held against that of others.
    pub fn is_comparable(&self) -> bool {
        self.undone.is_empty()
    }

    /// Whether it can be the cheapest, or on the front.
    fn is_contender(&self) -> bool {
        self.is_comparable() && self.knocked_out_after.is_none()
    }
}

/// The points of one setting under one policy, in order of seeds.
pub(super) struct Group<'a> {
    setting: usize,
    policy: &'a str,
    pub(super) points: Vec<&'a Point>,
}

/// A wait of nothing, where the figure with this number is of waits for a node and no pod is without one at the end. `mean` has the mean of a
/// figure.
pub(super) fn nobody_waits(figure: usize, mean: impl Fn(&str) -> Option<f64>) -> Option<f64> {
    let is_of_waits = FIGURES.get(figure).is_some_and(|figure| figure.name.starts_with("pending_"));
    (is_of_waits && mean("pods_pending") == Some(0.0)).then_some(0.0)
}

/// Sums up the points of a sweep, of which all are there but those of settings that were [knocked out](super::racing). `cost` is the number of
/// the figure by which a setting is cheap, `latency` that of the figure to hold it against.
pub fn sweep(
    about: About,
    question: &Question,
    (cost, latency): (usize, usize),
    points: &[Point],
    mut warnings: Caveats,
) -> Sweep {
    let paths = question.settings.first().map(|setting| setting.iter().map(|(path, _)| path.clone()).collect());
    let groups = groups(question, points);
    groups.iter().flat_map(|group| &group.points).for_each(|point| warnings.merge(&point.warnings));
    warnings.add_unused();
    let mut results: Vec<SettingResult> = groups.iter().map(|group| result(question, group)).collect();
    mark_undone(&mut results, &groups);
    let meeting = |result: &SettingResult| result.meets_objectives == Some(true);
    let cheapest_meeting_objectives = cheapest(&results, cost, &meeting);
    let cheapest = cheapest_meeting_objectives.or_else(|| cheapest(&results, cost, &|_| true));
    if let Some(base) = cheapest {
        hold_against(base, &mut results, &groups, cost);
    }
    let rivals =
        results.iter().enumerate().filter(|(_, index)| cheapest_meeting_objectives.is_none() || meeting(index));
    let alike = |setting_result: &SettingResult| {
        setting_result.against_cheapest.as_ref().is_some_and(|paired| !paired.difference.is_off_zero())
    };
    let not_told_apart = rivals.filter(|(_, item)| alike(item)).map(|(number, _)| number).collect();
    let costs: Vec<Option<(f64, f64)>> = results
        .iter()
        .map(|result| Some((result.mean(cost)?, result.latency(latency)?)).filter(|_| result.is_contender()))
        .collect();
    Sweep {
        schema_version: SCHEMA_VERSION,
        program: PROGRAM.to_owned(),
        program_version: env!("CARGO_PKG_VERSION").to_owned(),
        about,
        paths: paths.unwrap_or_default(),
        latency: FIGURES.get(latency).map_or_else(String::new, |figure| figure.name.to_owned()),
        cost: FIGURES.get(cost).map_or_else(cost_of_run, |figure| figure.name.to_owned()),
        front: pareto_front(&costs),
        cheapest,
        cheapest_meeting_objectives,
        not_told_apart,
        results,
        warnings,
    }
}

/// The points by setting, then policy.
pub(super) fn groups<'a>(question: &'a Question, points: &'a [Point]) -> Vec<Group<'a>> {
    let mut of_setting: Vec<Vec<&Point>> = vec![Vec::new(); question.settings.len()];
    for point in points {
        of_setting.get_mut(point.setting).into_iter().for_each(|setting| setting.push(point));
    }
    let of_policies = |(setting, points): (usize, &Vec<&'a Point>)| {
        let group = |policy: &'a String| {
            let points = points.iter().copied().filter(|point| point.policy == *policy).collect();
            Group { setting, policy, points }
        };
        question.policies.iter().map(group).collect::<Vec<_>>()
    };
    of_setting.iter().enumerate().flat_map(of_policies).collect()
}

/// What one setting brings under one policy, before it is held against any other.
fn result(question: &Question, group: &Group<'_>) -> SettingResult {
    let setting = question.settings.get(group.setting);
    SettingResult {
        setting: group.setting,
        policy: group.policy.to_owned(),
        values: setting.into_iter().flatten().map(|(_, value)| value.clone()).collect(),
        figures: (0..FIGURES.len()).map(|figure| level_of(&group.points, figure)).collect(),
        meets_objectives: meets(&group.points),
        objectives: objectives(&group.points),
        undone: Vec::new(),
        against_cheapest: None,
        knocked_out_after: (group.points.len() < question.replications as usize).then_some(group.points.len() as u64),
    }
}

/// What each objective measures, on average.
fn objectives(points: &[&Point]) -> Vec<ObjectiveMean> {
    let all = points.first().map_or(&[][..], |point| point.objectives.as_slice());
    let mean = |(position, objective): (usize, &Objective)| ObjectiveMean {
        name: objective.name.clone(),
        unit: objective.unit.clone(),
        limit: objective.limit,
        mean: mean_of_objective(points, position),
    };
    all.iter().enumerate().map(mean).collect()
}

/// Marks the settings that clearly leave more undone than the one that leaves least.
fn mark_undone(results: &mut [SettingResult], groups: &[Group<'_>]) {
    for measure in &MEASURES {
        let Some((figure, _)) = find(measure.figure) else { continue };
        let known = results.iter().enumerate().filter_map(|(number, result)| Some((number, result.mean(figure)?)));
        let Some((best, least)) = known.min_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0))) else { continue };
        for (result, group) in results.iter_mut().zip(groups) {
            let paired = paired(&groups[best].points, &group.points, figure);
            if paired.and_then(|paired| measure.more(&paired.difference)) == Some(true) {
                let mean = result.mean(figure).unwrap_or(least);
                result.undone.push(Undone { figure: measure.figure.to_owned(), mean, least });
            }
        }
    }
}

/// The number of the cheapest of those that can be compared and are `wanted`; of equals the first.
fn cheapest(results: &[SettingResult], cost: usize, wanted: &dyn Fn(&SettingResult) -> bool) -> Option<usize> {
    let known = results.iter().enumerate().filter(|(_, result)| result.is_contender() && wanted(result));
    let costs = known.filter_map(|(number, result)| Some((result.mean(cost)?, number)));
    costs.min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1))).map(|(_, number)| number)
}

/// Holds the cost of every setting that can be compared against that of `base`, seed by seed.
fn hold_against(base: usize, results: &mut [SettingResult], groups: &[Group<'_>], cost: usize) {
    let Some(first) = groups.get(base) else { return };
    for (number, (result, group)) in results.iter_mut().zip(groups).enumerate() {
        if number != base && result.is_comparable() {
            result.against_cheapest = paired(&first.points, &group.points, cost);
        }
    }
}

/// Whether each objective was met in enough of the runs that could be judged.
pub(super) fn meets(points: &[&Point]) -> Option<bool> {
    let count = points.first()?.objectives.len();
    let mut judged_any = false;
    for position in 0..count {
        let verdicts: Vec<bool> = points.iter().filter_map(|point| point.objectives.get(position)?.met).collect();
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
    /// Whether any setting was knocked out.
    pub fn is_sequential(&self) -> bool {
        self.results.iter().any(|result| result.knocked_out_after.is_some())
    }

    /// Whether the scenario states an objective that could be judged under some setting.
    pub fn is_judged(&self) -> bool {
        self.results.iter().any(|result| result.meets_objectives.is_some())
    }

    /// Whether the scenario states an objective, judged or not.
    pub fn states_objectives(&self) -> bool {
        self.results.iter().any(|result| !result.objectives.is_empty())
    }

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

    use super::{Sweep, pareto_front, sweep};
    use crate::comparison::About;
    use crate::figures::{FIGURES, find};
    use crate::points::{Objective, Point};
    use crate::question::{Kind, Question};

    /// What one setting brings with each of four seeds, and whether it meets its objective.
    struct Own {
        costs: [f64; 4],
        pods_pending: f64,
        met: Option<bool>,
        /// Its wait, if any pod had to be placed.
        wait: Option<f64>,
        /// Its cost per month, where that is not as its cost.
        per_month: Option<f64>,
    }

    const STEADY: [f64; 4] = [10.0, 14.0, 9.0, 12.0];

    fn own(costs: [f64; 4], pods_pending: f64) -> Own {
        Own { costs, pods_pending, met: Some(true), wait: Some(5.0), per_month: None }
    }

    /// The first `seeds` of every setting, swept.
    fn swept(settings: &[Own], seeds: usize) -> Sweep {
        swept_by("cost", settings, seeds)
    }

    /// The same by this figure of cost.
    fn swept_by(by: &str, settings: &[Own], seeds: usize) -> Sweep {
        let about = About::of_test(1, seeds as u64);
        let question = Question {
            kind: Kind::Sweep,
            scenario: "s.yaml".into(),
            inputs: Vec::new(),
            pricing_data: None,
            policies: vec!["p".into()],
            first_seed: 1,
            replications: seeds as u32,
            settings: (0..settings.len()).map(|number| vec![("x".to_owned(), number.to_string())]).collect(),
            axes: Vec::new(),
            latency: None,
            duration: None,
        };
        let mut points = Vec::new();
        for (number, setting) in settings.iter().enumerate() {
            for (seed, cost) in setting.costs.iter().enumerate().take(seeds) {
                let mut figures = vec![None; FIGURES.len()];
                let month = setting.per_month.unwrap_or(*cost);
                let values = [("cost", *cost), ("cost_per_month", month), ("pods_pending", setting.pods_pending)];
                for (name, value) in values.into_iter().chain(setting.wait.map(|wait| ("pending_p99", wait))) {
                    figures[find(name).unwrap().0] = Some(value);
                }
                let objective =
                    |met| Objective { name: "cost".into(), unit: "USD".into(), limit: 20.0, actual: None, met };
                points.push(Point {
                    setting: number,
                    policy: "p".into(),
                    seed: 1 + seed as u64,
                    figures,
                    objectives: setting.met.map(|met| objective(Some(met))).into_iter().collect(),
                    event_hash: String::new(),
                    unconfirmed: 0.0,
                    cost_by_origin: Default::default(),
                    spot: false,
                    never_registered: 0,
                    silent: Vec::new(),
                    at_zero_seconds: Default::default(),
                    price_date: String::new(),
                    warnings: crate::scenario::Caveats::new(),
                });
            }
        }
        let figures = (find(by).unwrap().0, find("pending_p99").unwrap().0);
        sweep(about, &question, figures, &points, crate::scenario::Caveats::new())
    }

    fn shifted(by: [f64; 4]) -> [f64; 4] {
        std::array::from_fn(|seed| STEADY[seed] + by[seed])
    }

    #[test]
    fn paired_costs_separate_difference_from_noise() {
        let noise = shifted([0.02, -0.03, 0.03, 0.0]);
        // Dearer by far less than seeds differ from each other, but with every seed.
        let dearer = shifted([0.2, 0.25, 0.2, 0.22]);
        let swept = swept(&[own(dearer, 0.0), own(noise, 0.0), own(STEADY, 0.0)], 4);
        assert_eq!((swept.cheapest, swept.cheapest_meeting_objectives), (Some(2), Some(2)));
        assert_eq!(swept.not_told_apart, [1]);
        assert!(swept.results[2].against_cheapest.is_none());
        let difference = swept.results[0].against_cheapest.as_ref().unwrap().difference;
        assert!(difference.low.unwrap() > 0.15 && difference.high.unwrap() < 0.3, "{difference:?}");
    }

    #[test]
    fn one_replication_tells_only_equals_alike() {
        let swept = swept(&[own(STEADY, 0.0), own(shifted([0.1; 4]), 0.0), own(STEADY, 0.0)], 1);
        assert_eq!((swept.cheapest, swept.not_told_apart.as_slice()), (Some(0), &[2][..]));
        assert_eq!(swept.results[1].against_cheapest.as_ref().unwrap().difference.low, None);
    }

    #[test]
    fn cheapest_excludes_missed_objectives_and_waiting_pods() {
        let half = STEADY.map(|cost| cost / 2.0);
        let missing = Own { met: Some(false), ..own(half, 0.0) };
        let both = swept(&[own(half, 2.0), missing, own(STEADY, 0.0)], 4);
        assert_eq!((both.cheapest, both.cheapest_meeting_objectives), (Some(2), Some(2)));
        assert!(!both.results[0].is_comparable() && both.results[0].against_cheapest.is_none());
        assert_eq!((both.results[0].undone[0].figure.as_str(), both.results[0].undone[0].mean), ("pods_pending", 2.0));
        assert_eq!(both.front, [1], "who leaves pods waiting is not on the front");
        // What all leave undone keeps nobody from being compared.
        let all = swept(&[own(half, 2.0), own(STEADY, 2.0)], 4);
        assert_eq!((all.cheapest, all.results[0].undone.len()), (Some(0), 0));
        // Without objectives the cheapest is that of all which do the work.
        let free = |costs, pods_pending| Own { met: None, ..own(costs, pods_pending) };
        let none = swept(&[free(half, 2.0), free(STEADY, 0.0)], 4);
        assert_eq!((none.cheapest, none.cheapest_meeting_objectives), (Some(1), None));
        assert!(!none.is_judged() && !none.states_objectives());
    }

    #[test]
    fn setting_without_waits_is_pareto_optimal() {
        let idle = |costs| Own { wait: None, ..own(costs, 0.0) };
        let both = swept(&[own(STEADY, 0.0), idle(shifted([1.0; 4]))], 4);
        assert_eq!(both.front, [0, 1], "the dearer one is quicker");
        let none = swept(&[idle(shifted([1.0; 4])), idle(STEADY)], 4);
        assert_eq!(none.front, [1]);
        // Pods without a node at the end have waited, and for how long nobody knows.
        let stuck = Own { wait: None, ..own(STEADY, 2.0) };
        assert_eq!(swept(&[stuck], 4).front, Vec::<usize>::new());
    }

    #[test]
    fn different_run_lengths_compare_by_monthly_cost() {
        let short = Own { per_month: Some(400.0), ..own(STEADY, 0.0) };
        let long = Own { per_month: Some(300.0), ..own(STEADY.map(|cost| cost * 2.0), 0.0) };
        let swept = swept_by("cost_per_month", &[short, long], 4);
        assert_eq!(
            (swept.cheapest, swept.front.as_slice(), swept.cost.as_str()),
            (Some(1), &[1][..], "cost_per_month")
        );
    }

    #[test]
    fn the_front_goes_from_cheap_to_quick() {
        let values = [Some((3.0, 1.0)), Some((1.0, 9.0)), Some((2.0, 9.0)), None, Some((2.0, 5.0)), Some((3.0, 1.0))];
        assert_eq!(pareto_front(&values), [1, 4, 0, 5]);
    }

    proptest! {
        #[test]
        fn pareto_front_is_exactly_the_undominated_settings(values in prop::collection::vec((0_u8..6, 0_u8..6), 1..30)) {
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
