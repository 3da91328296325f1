//! The largest lines of today's bill, with the result of each lever that concerns them.

use super::Recommend;
use super::assembly::Assembly;
use crate::experiment::statistics::mean;
use crate::recommend::recommendation::{
    Advice, Change, Choice, Concern, Kind, LargeLine, Lever, LeverResult, LineLever, Problem, Sample, strain,
};

/// A saving of less per month is none.
const LEAST: f64 = 0.01;

impl Assembly<'_> {
    /// The lines with the results of their levers, the largest saving first.
    pub(super) fn large_lines(&self, asked: &Recommend, levers: &[Lever], changes: &[Change]) -> Vec<LargeLine> {
        let with_levers = |(line, concern): &(LargeLine, Concern)| {
            let kinds = concern.kinds.iter();
            let mut levers: Vec<LineLever> =
                kinds.map(|kind| self.line_lever(asked, (*kind, concern), levers, changes)).collect();
            let saving = |lever: &LineLever| lever.saves_per_month.unwrap_or(0.0);
            levers.sort_by(|one, other| one.result.cmp(&other.result).then(saving(other).total_cmp(&saving(one))));
            LargeLine { levers, ..line.clone() }
        };
        self.lines.iter().map(with_levers).collect()
    }

    fn line_lever(
        &self,
        asked: &Recommend,
        (kind, concern): (Kind, &Concern),
        levers: &[Lever],
        changes: &[Change],
    ) -> LineLever {
        let name = kind.as_str();
        let of_line = |change: &&Change| change.lever == name && concern.has_subject(&change.subject);
        let made: Vec<f64> = changes.iter().filter(of_line).map(|change| change.saves_per_month.mean).collect();
        let (result, saves_per_month) = if self.found.verdict.advice == Advice::Change && !made.is_empty() {
            (LeverResult::Recommended, Some(made.iter().sum()))
        } else if !asked.request.kinds.contains(&kind) {
            (LeverResult::Excluded, None)
        } else {
            self.best_alone((kind, concern), levers)
        };
        LineLever { lever: name.to_owned(), result, saves_per_month }
    }

    /// The result of the best value of all levers of a kind, each without other changes.
    fn best_alone(&self, (kind, concern): (Kind, &Concern), levers: &[Lever]) -> (LeverResult, Option<f64>) {
        let is_one =
            |lever: &Lever| lever.kind == kind && concern.has_subject(&lever.subject) && !lever.levels.is_empty();
        let of_kind = || levers.iter().enumerate().filter(|(_, lever)| is_one(lever));
        if of_kind().next().is_none() {
            return (LeverResult::NothingToChange, None);
        }
        let alone = |place: usize, level: usize| {
            let mut choice: Choice = vec![0; levers.len()];
            choice[place] = level;
            choice
        };
        let choices =
            of_kind().flat_map(|(place, lever)| (1..=lever.levels.len()).map(move |level| alone(place, level)));
        let results: Vec<(bool, f64)> = choices.filter_map(|choice| self.saving(&choice)).collect();
        let best = |keeps: bool| {
            let savings = results.iter().filter(|result| result.0 == keeps && result.1 >= LEAST);
            savings.map(|result| result.1).max_by(f64::total_cmp)
        };
        match (best(true), best(false)) {
            _ if results.is_empty() => (LeverResult::NotSimulated, None),
            (Some(saving), _) => (LeverResult::NotRecommended, Some(saving)),
            (None, Some(saving)) => (LeverResult::BeyondLimits, Some(saving)),
            (None, None) => (LeverResult::SavesNothing, None),
        }
    }

    /// Whether a choice meets the constraints, and its saving per month; `None` if it was not simulated.
    fn saving(&self, choice: &Choice) -> Option<(bool, f64)> {
        let all = self.found.search.tried();
        let today: Choice = vec![0; choice.len()];
        let (today, item) = (all.get(&today)?, all.get(choice)?);
        let with_seed = |seed: u64| today.iter().find(|sample| sample.0 == seed).map(|sample| sample.1);
        let pairs: Vec<(&Sample, &Sample)> =
            item.iter().filter_map(|(seed, sample)| Some((with_seed(*seed)?, *sample))).collect();
        let saved: Vec<f64> = pairs.iter().map(|(today, pair)| today.cost - pair.cost).collect();
        let (today, item): (Vec<&Sample>, Vec<&Sample>) = pairs.into_iter().unzip();
        let limits = self.problem.limits().iter().enumerate();
        let is_met =
            limits.map(|(place, limit)| strain(limit, place, (&today, &item), 1.0)).all(|strain| strain <= 0.0);
        Some((is_met, mean(&saved)?))
    }
}
