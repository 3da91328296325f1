//! The answer, put together from the search and its verdict.

use std::path::Path;
use std::sync::Arc;

use super::{CHANGES_MAX, Failure, LEAST_SAVING, Recommend, Request, SearchResult, Simulated, WORTH};
use crate::catalog::{Catalog, Region};
use crate::experiment::axes::Setting;
use crate::experiment::comparison::DRAWS_PRICE_ERRORS;
use crate::experiment::figures::find;
use crate::experiment::inspection::inputs;
use crate::experiment::points::Point;
use crate::experiment::statistics::{Estimate, Paired};
use crate::program::edits;
use crate::program::simulations::shell_line;
use crate::recommend::recommendation::{
    Advice, Alternative, Change, Choice, Class, Concern, EffortMade, Exclusion, Figures, Kind, LargeLine, Lever,
    LeverTried, Limit, LimitKept, Recommendation, Robustness, SCHEMA_VERSION, Sample, Tried, ValueChange,
    fragile_on_spot, measures, missing_more, risk, strain,
};
use crate::report::summary::PROGRAM;
use crate::scenario::document::{Content, Document, paired};
use crate::scenario::lints::studies;
use crate::scenario::{Limits, Scenario};

/// Months of a year.
const MONTHS: f64 = 12.0;
/// Settings that are told of those that were tried: the cheapest.
const TRIED_MAX: usize = 200;

/// What the answer is made of.
pub(super) struct Assembly<'a> {
    pub(super) problem: &'a Simulated<'a>,
    pub(super) found: &'a SearchResult<'a>,
    pub(super) catalog: &'a Catalog,
    pub(super) region: &'a Arc<Region>,
    /// Today's setting with the first seed.
    pub(super) first: &'a Point,
    /// The largest lines of today's bill, with the levers that concern each.
    pub(super) lines: &'a [(LargeLine, Concern)],
}

/// What of a request is not as it is without options, as the command line has it: an answer comes again only with the same.
fn options(request: &Request) -> String {
    let share = |share: f64| format!("{}%", libm::round(share * 1e8) / 1e6);
    let differs = |share: f64, usual: f64| (share - usual).abs() > 1e-9;
    let mut words: Vec<String> = Vec::new();
    let mut state = |option: &str, value: String| words.extend([option.to_owned(), value]);
    if let Some(policy) = &request.policy {
        state("--policy", policy.clone());
    }
    if !Kind::usual().eq(request.kinds.iter().copied()) {
        state("--levers", request.kinds.iter().map(|kind| kind.as_str()).collect::<Vec<_>>().join(","));
    }
    if request.ruled_out.contains(&Kind::Spot) && request.kinds.contains(&Kind::Split) {
        state("--without", Kind::Spot.as_str().to_owned());
    }
    if differs(request.least_saving, LEAST_SAVING) {
        state("--least-saving", share(request.least_saving));
    }
    if differs(request.worth, WORTH) {
        state("--worth", share(request.worth));
    }
    if request.changes_max != CHANGES_MAX {
        state("--changes", request.changes_max.to_string());
    }
    if let Some(directory) = &request.pricing_data {
        state("--pricing-data", directory.display().to_string());
    }
    if request.three_years {
        words.push("--three-years".to_owned());
    }
    shell_line(&words.iter().map(String::as_str).collect::<Vec<_>>())
}

impl Assembly<'_> {
    pub(super) fn answer(
        &self,
        asked: &Recommend,
        robustness: Vec<Robustness>,
        excluded: Vec<Exclusion>,
        simulations: usize,
    ) -> Result<Recommendation, Failure> {
        let verdict = &self.found.verdict;
        let levers = self.problem.levers();
        let nothing: Choice = vec![0; levers.len()];
        let today = self.problem.points(&nothing, &verdict.seeds);
        let points = self.problem.points(&verdict.choice, &verdict.seeds);
        let confirmed = !verdict.seeds.is_empty();
        let mut warnings = asked.scenario.caveats();
        std::iter::once(self.first).chain(&points).for_each(|point| warnings.merge(&point.warnings));
        missing_more(&today, &points).into_iter().for_each(|text| warnings.add(&studies::RECOMMENDED_LACKS_MORE, text));
        self.newly_on_spot(asked).into_iter().for_each(|text| warnings.add(&studies::RECOMMENDED_SPOT, text));
        if asked.draws && today.iter().chain(&points).any(|point| point.spot) {
            warnings.add(&studies::PRICE_ERRORS_DRAWN, DRAWS_PRICE_ERRORS);
        }
        let changes = self.changes(asked, &levers)?;
        Ok(Recommendation {
            schema_version: SCHEMA_VERSION,
            program: PROGRAM.to_owned(),
            program_version: env!("CARGO_PKG_VERSION").to_owned(),
            scenario: asked.scenario.name.to_string(),
            file: asked.request.scenario.display().to_string(),
            policy: asked.policy.clone(),
            region: asked.scenario.region.to_string(),
            currency: self.region.currency.code().to_owned(),
            price_date: self.first.price_date.clone(),
            inputs: inputs(&asked.scenario),
            set: asked.request.edits.iter().map(|edit| format!("{}={}", edit.path(), edit.value())).collect(),
            options: options(&asked.request),
            advice: verdict.advice,
            lines: self.large_lines(asked, &levers, &changes),
            today: confirmed.then(|| Figures::from_points(&today)),
            recommended: confirmed.then(|| Figures::from_points(&points)),
            cost_per_month: verdict.cost.clone(),
            changes,
            limits: self.limits(&today, &points),
            robustness,
            tried: self.tried(&levers, &nothing),
            commitments: self.found.commitments.clone(),
            levers: levers.iter().filter(|lever| !lever.levels.is_empty()).map(lever_tried).collect(),
            excluded,
            effort: self.effort(asked, simulations),
            without_spot: None,
            saves_per_month: verdict.cost.as_ref().map(|cost| cost.difference.negated()),
            saves_per_year: verdict.cost.as_ref().map(|cost| cost.difference.negated().scaled(MONTHS)),
            warnings,
        })
    }

    fn effort(&self, asked: &Recommend, simulations: usize) -> EffortMade {
        let search = &self.found.search;
        EffortMade {
            simulations: simulations as u64,
            used: search.used() as u64,
            settings: search.tried().len() as u64,
            first_seed: asked.seed,
            confirmed_with: self.found.verdict.seeds.len() as u64,
            spent: search.is_spent(),
        }
    }

    /// The answer of a search without Spot.
    pub(super) fn alternative(&self, asked: &Recommend) -> Result<Alternative, Failure> {
        let verdict = &self.found.verdict;
        let levers = self.problem.levers();
        let nothing: Choice = vec![0; levers.len()];
        let today = self.problem.points(&nothing, &verdict.seeds);
        let points = self.problem.points(&verdict.choice, &verdict.seeds);
        Ok(Alternative {
            advice: verdict.advice,
            recommended: (!verdict.seeds.is_empty()).then(|| Figures::from_points(&points)),
            cost_per_month: verdict.cost.clone(),
            saves_per_month: verdict.cost.as_ref().map(|cost| cost.difference.negated()),
            saves_per_year: verdict.cost.as_ref().map(|cost| cost.difference.negated().scaled(MONTHS)),
            changes: self.changes(asked, &levers)?,
            limits: self.limits(&today, &points),
            effort: self.effort(asked, self.found.search.used()),
        })
    }

    /// Workloads that must not be interrupted and that the recommendation lets onto Spot nodes.
    fn newly_on_spot(&self, asked: &Recommend) -> Option<String> {
        let on_spot = |scenario: &Scenario| {
            let policy = scenario.for_policy(Some(&asked.policy)).ok()?;
            Some(fragile_on_spot(scenario, policy, self.region))
        };
        if self.found.verdict.advice != Advice::Change {
            return None;
        }
        let changed = asked.with(&self.problem.setting(&self.found.verdict.choice))?;
        let (today, spot) = (on_spot(&asked.scenario)?, on_spot(&changed)?);
        let new: Vec<&str> = spot.difference(&today).map(String::as_str).collect();
        let all = new.join(", ");
        (!new.is_empty()).then(|| {
            format!(
                "the recommended setting lets Spot nodes run {all}, which today run On-Demand only: each interruption stops them. \
                 If they cannot be stopped, use `--without spot`"
            )
        })
    }

    /// The changes, what saves most first.
    fn changes(&self, asked: &Recommend, levers: &[Lever]) -> Result<Vec<Change>, Failure> {
        let before = self.documents(asked, &Setting::new())?;
        let mut changes = Vec::new();
        for (place, share) in &self.found.verdict.shares {
            let (lever, level) = (&levers[*place], self.found.verdict.choice[*place]);
            let Some(level_of) = level.checked_sub(1).and_then(|level| lever.levels.get(level)) else { continue };
            let mut alone: Choice = vec![0; levers.len()];
            alone[*place] = level;
            let set = self.problem.setting(&alone);
            let after = self.documents(asked, &set)?;
            changes.push(Change {
                lever: lever.kind.as_str().to_owned(),
                subject: lever.subject.clone(),
                from: lever.today.clone(),
                to: level_of.label.clone(),
                saves_per_month: *share,
                saves_per_year: Some(share.scaled(MONTHS)),
                class: if lever.kind == Kind::Commitments { Class::Commitment } else { Class::Setting },
                risk: Some(risk(lever.kind)),
                edits: value_changes(&before, &after),
                set,
            });
        }
        changes.sort_by(|one, other| other.saves_per_month.mean.total_cmp(&one.saves_per_month.mean));
        Ok(changes)
    }

    fn documents(&self, asked: &Recommend, setting: &Setting) -> Result<Vec<Document>, Failure> {
        let mut all = asked.request.edits.clone();
        all.extend(edits::of_setting(setting)?);
        let file = Path::new(&asked.request.scenario);
        let documents = crate::scenario::documents(file, self.catalog, &Limits::default(), &all)?;
        Ok(super::files::seen_by(&asked.policy, documents))
    }

    fn limits(&self, today: &[Point], this_points: &[Point]) -> Vec<LimitKept> {
        use crate::recommend::recommendation::Problem;
        let limits = self.problem.limits();
        let samples = |points: &[Point]| -> Vec<Sample> {
            points.iter().map(|point| Sample { cost: 0.0, measures: measures(point, limits) }).collect()
        };
        let (today, this_samples) = (samples(today), samples(this_points));
        let (today, this_sample): (Vec<&Sample>, Vec<&Sample>) =
            (today.iter().collect(), this_samples.iter().collect());
        let kept = |(place, limit): (usize, &Limit)| {
            // What is missed whatever is measured has no amount.
            let values = |samples: &[&Sample]| -> Vec<f64> {
                samples
                    .iter()
                    .filter_map(|sample| sample.measures[place])
                    .filter(|measure| measure.is_finite())
                    .collect()
            };
            let met = |samples: &[&Sample], limit: f64| {
                samples.iter().filter(|sample| sample.measures[place].is_none_or(|measure| measure <= limit)).count()
                    as u64
            };
            let stated = match limit {
                Limit::AtMost { limit, .. } => Some(*limit),
                Limit::AsToday { .. } => None,
            };
            LimitKept {
                name: limit.name().to_owned(),
                limit: stated,
                today: Estimate::from_values(&values(&today)),
                recommended: Estimate::from_values(&values(&this_sample)),
                met: stated.map(|limit| (met(&today, limit), met(&this_sample, limit))),
                kept: strain(limit, place, (&today, &this_sample), 1.0) <= 0.0,
            }
        };
        limits.iter().enumerate().map(kept).collect()
    }

    /// What was tried, today's and the recommended setting first, then the cheapest.
    fn tried(&self, levers: &[Lever], nothing: &Choice) -> Vec<Tried> {
        let all = self.found.search.tried();
        let today: Vec<(u64, f64)> =
            all.get(nothing).into_iter().flatten().map(|(seed, item)| (*seed, item.cost)).collect();
        let mean_today = mean(today.iter().map(|pair| pair.1)).unwrap_or(0.0);
        let mut tried: Vec<Tried> = Vec::new();
        for (choice, samples) in all {
            let seeds: Vec<u64> = samples.iter().map(|(seed, _)| *seed).collect();
            let points = self.problem.points(choice, &seeds);
            if points.is_empty() {
                continue;
            }
            // Against today with the same seeds, and from there to today over all seeds: few seeds are not the others.
            let costs: Vec<f64> = samples.iter().map(|(_, key)| key.cost).collect();
            let same = seeds.iter().filter_map(|seed| today.iter().find(|pair| pair.0 == *seed)).map(|today| today.1);
            let same: Vec<f64> = same.collect();
            let shift = Paired::new(&same, &costs).map_or(0.0, |paired| paired.difference.mean);
            tried.push(Tried {
                changes: words(levers, choice),
                seeds: seeds.len() as u64,
                cost_per_month: mean_today + shift,
                pending_p99: mean(figure(&points, "pending_p99")),
                evictions: mean(figure(&points, "evictions")).unwrap_or(0.0),
                role: match choice {
                    choice if choice == nothing => "today",
                    choice if *choice == self.found.verdict.choice => "recommended",
                    _ => "",
                }
                .to_owned(),
            });
        }
        tried.sort_by(|one, other| {
            one.role.is_empty().cmp(&other.role.is_empty()).then(one.cost_per_month.total_cmp(&other.cost_per_month))
        });
        tried.truncate(TRIED_MAX);
        tried
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.collect();
    crate::experiment::statistics::mean(&values)
}

/// The values of a figure.
fn figure<'p>(points: &'p [Point], name: &str) -> impl Iterator<Item = f64> + use<'p> {
    let place = find(name).map(|(place, _)| place);
    points.iter().filter_map(move |point| *point.figures.get(place?)?)
}

/// What a choice changes, in words.
fn words(levers: &[Lever], choice: &Choice) -> Vec<String> {
    let chosen =
        levers.iter().zip(choice).filter_map(|(lever, level)| Some((lever, lever.levels.get(level.checked_sub(1)?)?)));
    chosen.map(|(lever, level)| format!("{}: {}", lever.subject, level.label)).collect()
}

fn lever_tried(lever: &Lever) -> LeverTried {
    LeverTried {
        lever: lever.kind.as_str().to_owned(),
        subject: lever.subject.clone(),
        today: lever.today.clone(),
        tried: match lever.kind {
            Kind::Commitments => lever.levels.iter().take(1).map(|level| level.label.clone()).collect(),
            _ => lever.levels.iter().map(|level| level.label.clone()).collect(),
        },
    }
}

/// The values that differ between documents that stand in the same order.
pub(in crate::program) fn value_changes(before: &[Document], after: &[Document]) -> Vec<ValueChange> {
    let mut all: Vec<ValueChange> = Vec::new();
    let nothing = Content::Map(Vec::new());
    for (one, other) in paired(before, after).filter(|(one, other)| *one != Some(*other)) {
        let object = other.content.object_name().unwrap_or_else(|| "the scenario".to_owned());
        let is_new = one.is_none();
        for difference in one.map_or(&nothing, |one| &one.content).differences(&other.content) {
            // Of a new object kind and name are told already.
            if is_new && (difference.path == "kind" || difference.path.starts_with("metadata.name")) {
                continue;
            }
            let change = ValueChange {
                object: object.clone(),
                path: difference.path,
                before: difference.before,
                after: difference.after,
            };
            // A file that several policies name is read for each.
            if !all.contains(&change) {
                all.push(change);
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::options;
    use crate::program::recommend::{CHANGES_MAX, LEAST_SAVING, Request, WORTH};
    use crate::recommend::recommendation::Kind;

    #[test]
    fn recommendation_lists_its_assumptions() {
        let plain = Request {
            scenario: "s.yaml".into(),
            policy: None,
            simulations: 100,
            budget: None,
            kinds: Kind::usual().collect(),
            ruled_out: Vec::new(),
            least_saving: LEAST_SAVING,
            worth: WORTH,
            changes_max: CHANGES_MAX,
            three_years: false,
            seed: None,
            edits: Vec::new(),
            pricing_data: None,
        };
        assert_eq!(options(&plain), "");
        let other = Request {
            policy: Some("today".into()),
            kinds: vec![Kind::Architectures],
            least_saving: 0.07,
            worth: 0.005,
            changes_max: 3,
            pricing_data: Some("own prices".into()),
            three_years: true,
            ..plain.clone()
        };
        let lever = Kind::Architectures.as_str();
        let expected = format!(
            "--policy today --levers {lever} --least-saving 7% --worth 0.5% --changes 3 --pricing-data 'own prices' --three-years"
        );
        assert_eq!(options(&other), expected);
        let without = Request { kinds: vec![Kind::Split], ruled_out: vec![Kind::Spot], ..plain };
        assert_eq!(options(&without), "--levers split --without spot");
    }
}
