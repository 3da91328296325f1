//! Policies against the first one, replication by replication.

use crate::scenario::Caveats;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::comparability::Uneven;
use super::deciding::{Deciding, deciding};
use super::figures::FIGURES;
use super::levels::{level_of, paired};
use super::points::Point;
use super::sequential::Sequential;
use super::statistics::{Estimate, Paired, share, unseen_share};
use super::unfinished_work::{MEASURES, Measure};
use crate::report::summary::{InputSummary, PROGRAM};

/// Version of the form of `comparison.json`.
const SCHEMA_VERSION: u32 = 1;

/// Policies compared over common seeds.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Comparison {
    /// Version of this form.
    pub schema_version: u32,
    /// `nodecast`.
    pub program: String,
    /// The program's version.
    pub program_version: String,
    /// What was compared.
    pub about: About,
    /// The policies, the one that the others are held against first.
    pub policies: Vec<PolicyResult>,
    /// Every simulation, by policy, then seed.
    pub points: Vec<Point>,
    /// The largest share of runs that may show something that no replication showed, with 95 % confidence (rule of three); `null`
    /// without replications.
    #[serde(default)]
    pub unseen_share: Option<f64>,
    /// The figure that decides the verdict, with the replications that would settle it; absent where it is settled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deciding: Option<Deciding>,
    /// What makes the policies uneven.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uneven: Vec<Uneven>,
    /// How it went, where it was to end when differences are sure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequential: Option<Sequential>,
    /// The share of the first policy's cost, on either side, to which each difference was to be known, where somebody asked for one.
    #[serde(skip)]
    pub precision: Option<f64>,
    /// How sentences refer to the policies.
    #[serde(skip)]
    pub wording: Wording,
    /// What the model left out and could change the answer, under any policy.
    #[serde(flatten)]
    pub warnings: Caveats,
}

/// How sentences refer to the two or more results of a comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Wording {
    /// By the names of policies: `spot`, `under spot`.
    #[default]
    Policies,
    /// By phrases such as `with the change`, which follow "the cluster" where a sentence needs a subject.
    Phrases,
}

impl Wording {
    /// The result called `name` as the subject of a sentence.
    pub fn subject(self, name: &str) -> String {
        match self {
            Self::Policies => name.to_owned(),
            Self::Phrases => format!("the cluster {name}"),
        }
    }

    /// The result called `name` as the circumstance of a sentence.
    pub fn under(self, name: &str) -> String {
        match self {
            Self::Policies => format!("under {name}"),
            Self::Phrases => name.to_owned(),
        }
    }
}

/// What was compared.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct About {
    /// The scenario's name; where two scenarios are compared, both.
    pub scenario: String,
    /// Calendar time of the start, RFC 3339.
    pub start: String,
    /// Simulated time of each replication.
    pub duration_seconds: f64,
    /// Simulated time of each replication of the second scenario, where two are compared that run for different times: costs are then compared
    /// by the month. Absent elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other_duration_seconds: Option<f64>,
    /// For so long from the start waits, churn and response times do not count; absent if all of the run counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_up_seconds: Option<f64>,
    /// The region.
    pub region: String,
    /// The currency of every amount.
    pub currency: String,
    /// Date of the prices.
    pub price_date: String,
    /// The first seed.
    pub first_seed: u64,
    /// Replications asked for.
    pub replications_planned: u64,
    /// Replications that ran under every policy; only these are compared.
    pub replications: u64,
    /// Input files with their SHA-256.
    pub inputs: Vec<InputSummary>,
    /// What was changed before anything ran, as `--set` states it; where two scenarios are compared, of the second. Absent
    /// where nothing was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<String>,
    /// What the scenario's author assumed.
    pub assumptions: Vec<String>,
    /// Policies with `packer: cost-aware`; absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cost_aware: Vec<String>,
}

#[cfg(test)]
impl About {
    /// An experiment on a minute of a scenario `s`, in which so many seeds from the first on were planned.
    pub(super) fn of_test(first_seed: u64, replications_planned: u64) -> Self {
        Self {
            scenario: "s".into(),
            start: String::new(),
            duration_seconds: 60.0,
            other_duration_seconds: None,
            warm_up_seconds: None,
            region: String::new(),
            currency: "USD".into(),
            price_date: String::new(),
            first_seed,
            replications_planned,
            replications: replications_planned,
            inputs: Vec::new(),
            set: Vec::new(),
            assumptions: Vec::new(),
            cost_aware: Vec::new(),
        }
    }
}

/// One policy over all replications.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PolicyResult {
    /// Its name.
    pub name: String,
    /// Its figures, in the order of the list of figures.
    pub figures: Vec<FigureResult>,
    /// The scenario's objectives.
    pub objectives: Vec<ObjectiveShare>,
}

/// One figure of one policy.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FigureResult {
    /// Its name.
    pub name: String,
    /// Its level: the mean, of waits with their median; `null` when no replication had anything to measure.
    pub mean: Option<Estimate>,
    /// Against the first policy, over the replications in which both had something to measure; `null` for the first.
    pub against_first: Option<Paired>,
}

/// How often an objective was met.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ObjectiveShare {
    /// Its name in the scenario.
    pub name: String,
    /// `seconds`, `pod-minutes` or a currency code.
    pub unit: String,
    /// The limit.
    pub limit: f64,
    /// The mean of what happened; `null` when no replication had anything to measure.
    #[serde(default)]
    pub mean: Option<Estimate>,
    /// Replications that met it.
    pub met: u64,
    /// Replications that could be judged.
    pub judged: u64,
    /// `met` of `judged`, with its interval; `null` when none could be judged.
    pub share: Option<Estimate>,
}

/// That errors of Spot prices were drawn because nobody says otherwise, which a run does not do.
pub const DRAWS_PRICE_ERRORS: &str = "Comparisons and sweeps draw a Spot price error per seed; `nodecast run` uses list prices. Results for the same seed therefore \
     differ unless you set `ec2.spot.price_errors` to `drawn` or `none` for both.";

/// Compares the policies of `points` in the order of `policies`, over the seeds that all of them have run.
pub fn compare(mut about: About, policies: &[String], points: Vec<Point>, warnings: Caveats) -> Comparison {
    let mut by_seed: BTreeMap<u64, Vec<Option<Point>>> = BTreeMap::new();
    for point in points {
        let Some(position) = policies.iter().position(|name| *name == point.policy) else { continue };
        let row = by_seed.entry(point.seed).or_insert_with(|| vec![None; policies.len()]);
        row[position] = Some(point);
    }
    let complete: Vec<Vec<Point>> =
        by_seed.into_values().filter_map(|row| row.into_iter().collect::<Option<Vec<Point>>>()).collect();
    about.replications = complete.len() as u64;
    let columns: Vec<Vec<&Point>> =
        (0..policies.len()).map(|policy| complete.iter().map(|row| &row[policy]).collect()).collect();
    let results = policies
        .iter()
        .zip(&columns)
        .enumerate()
        .map(|(position, (name, policy))| PolicyResult {
            name: name.clone(),
            figures: figures(policy, (position > 0).then(|| columns[0].as_slice())),
            objectives: objectives(policy),
        })
        .collect();
    let mut all_warnings = warnings;
    for point in columns.iter().flatten() {
        all_warnings.merge(&point.warnings);
    }
    let points = columns.iter().flatten().map(|point| (*point).clone()).collect();
    let unseen_share = unseen_share(about.replications);
    let mut comparison = Comparison {
        schema_version: SCHEMA_VERSION,
        program: PROGRAM.to_owned(),
        program_version: env!("CARGO_PKG_VERSION").to_owned(),
        about,
        policies: results,
        points,
        unseen_share,
        deciding: None,
        uneven: Vec::new(),
        sequential: None,
        precision: None,
        wording: Wording::default(),
        warnings: all_warnings,
    };
    comparison.deciding = deciding(&comparison);
    comparison
}

fn figures(points: &[&Point], first: Option<&[&Point]>) -> Vec<FigureResult> {
    let each = FIGURES.iter().enumerate();
    each.map(|(figure, described)| FigureResult {
        name: described.name.to_owned(),
        mean: level_of(points, figure),
        against_first: first.and_then(|first| paired(first, points, figure)),
    })
    .collect()
}

/// The mean of what an objective measures, of times the median; `None` when no point had anything to measure.
pub(super) fn mean_of_objective(points: &[&Point], position: usize) -> Option<Estimate> {
    let values: Vec<f64> = points.iter().filter_map(|point| point.objectives.get(position)?.actual).collect();
    let is_time = points.first()?.objectives.get(position)?.unit == "seconds";
    let estimate = if is_time { Estimate::of_median(&values) } else { Estimate::from_values(&values) };
    estimate.map(|mean| mean.within(0.0, f64::INFINITY))
}

fn objectives(points: &[&Point]) -> Vec<ObjectiveShare> {
    let Some(first) = points.first() else { return Vec::new() };
    let count = |position: usize, wanted: Option<bool>| {
        let judged = points.iter().filter_map(|point| point.objectives.get(position)?.met);
        judged.filter(|met| wanted.is_none_or(|wanted| *met == wanted)).count() as u64
    };
    first
        .objectives
        .iter()
        .enumerate()
        .map(|(position, objective)| {
            let (met, judged) = (count(position, Some(true)), count(position, None));
            ObjectiveShare {
                name: objective.name.clone(),
                unit: objective.unit.clone(),
                limit: objective.limit,
                mean: mean_of_objective(points, position),
                met,
                judged,
                share: share(met, judged),
            }
        })
        .collect()
}

/// An objective and, for each policy, what became of it; `None` for policies that are not held to it.
pub type ObjectiveRow<'c> = (&'c ObjectiveShare, Vec<Option<&'c ObjectiveShare>>);

impl Comparison {
    /// Sets the precision that was asked for, by which replications are recommended.
    pub fn aim_for(&mut self, precision: Option<f64>) {
        self.precision = precision;
        self.deciding = deciding(self);
    }

    /// The figure by which costs are held against each other: the cost of a run, or that of a month where runs are not equally long.
    pub fn cost_figure(&self) -> &'static str {
        if self.about.other_duration_seconds.is_some() { "cost_per_month" } else { "cost" }
    }

    /// The objectives of all policies. Where two scenarios are compared each may have its own: an objective with another limit is another.
    pub fn objectives(&self) -> Vec<ObjectiveRow<'_>> {
        let alike = |one: &ObjectiveShare, other: &ObjectiveShare| {
            (&one.name, &one.unit) == (&other.name, &other.unit) && one.limit.total_cmp(&other.limit).is_eq()
        };
        let mut rows: Vec<ObjectiveRow<'_>> = Vec::new();
        for objective in self.policies.iter().flat_map(|policy| &policy.objectives) {
            if !rows.iter().any(|(known, _)| alike(known, objective)) {
                let of = |policy: &'_ PolicyResult| policy.objectives.iter().position(|other| alike(objective, other));
                let cells = self.policies.iter().map(|policy| policy.objectives.get(of(policy)?)).collect();
                rows.push((objective, cells));
            }
        }
        rows
    }

    /// The figure called `name` of the policy at `position`.
    pub fn figure(&self, position: usize, name: &str) -> Option<&FigureResult> {
        self.policies.get(position)?.figures.iter().find(|figure| figure.name == name)
    }

    /// Whether the policy at `position` leaves clearly more undone than the first one (`true`) or the first one than it
    /// (`false`), by a figure of work; `None` if neither does.
    pub fn leaves_more(&self, position: usize, measure: &Measure) -> Option<bool> {
        measure.more(&self.figure(position, measure.figure)?.against_first.as_ref()?.difference)
    }

    /// The policies whose cost can be held against that of the first: both do the same work.
    pub fn comparable(&self) -> impl Iterator<Item = usize> {
        (1..self.policies.len())
            .filter(|position| MEASURES.iter().all(|measure| self.leaves_more(*position, measure).is_none()))
    }

    /// The widest relative interval of a cost difference between policies that can be compared, as a share on either side;
    /// `None` when one of them has none, 0 when there is none to compare.
    pub fn cost_precision(&self) -> Option<f64> {
        let mut widths = self.comparable().map(|position| {
            let paired = self.figure(position, self.cost_figure())?.against_first.as_ref()?;
            paired.relative.as_ref()?.half_width()
        });
        widths.try_fold(0.0, |widest: f64, width| Some(widest.max(width?)))
    }

    /// How many replications would bring every cost difference to `precision` on either side, if the spread stays.
    pub fn replications_needed(&self, precision: f64) -> Option<u64> {
        let needed = self.comparable().map(|position| {
            let paired = self.figure(position, self.cost_figure())?.against_first.as_ref()?;
            paired.pairs_needed(precision)
        });
        needed.collect::<Option<Vec<u64>>>()?.into_iter().max()
    }

    /// `comparison.json`: two spaces of indentation, a line feed at the end.
    ///
    /// # Errors
    /// If serde_json cannot write it, which no comparison brings about.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self).map(|text| text + "\n")
    }
}
