//! What answers have told: of each that was read, what is asked of it once its series are gone.

use std::collections::BTreeMap;

use nodecast_model::text::InputError;

use super::super::answer::Series;
use super::super::saved::{Answers, SavedQuery};
use super::curves::lay;

/// Saved answers, and what is remembered of those that were read.
pub(super) struct AnswerReader<'a> {
    answers: &'a Answers,
    gists: BTreeMap<String, Gist>,
}

/// What is remembered of an answer.
#[derive(Debug, Default)]
struct Gist {
    has_series: bool,
    /// How many instants any series has a sample at.
    instants: usize,
    /// What whoever uses the observation has to know of it.
    remarks: Vec<String>,
}

/// Leaves out samples that are below zero: nothing that is asked for can be. Those that are no number count nothing, for whoever uses the series.
/// Returns what is to be said of both.
fn leave_out(series: &mut [Series]) -> Option<String> {
    let samples = |serieses: &[Series]| serieses.iter().map(|seriese| seriese.samples.len()).sum::<usize>();
    let all = samples(series);
    let no_number = series.iter().flat_map(|series| &series.samples).filter(|sample| !sample.value.is_finite()).count();
    series.iter_mut().for_each(|series| series.samples.retain(|sample| sample.value.is_nan() || sample.value >= 0.0));
    let below_zero = all - samples(series);
    let said = [(no_number, "no number"), (below_zero, "below zero")];
    let said: Vec<String> = said
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {} {what}", if *count == 1 { "is" } else { "are" }))
        .collect();
    (!said.is_empty()).then(|| format!("of {all} samples {}: left out", said.join(" and ")))
}

impl<'a> AnswerReader<'a> {
    pub(super) fn from_answers(answers: &'a Answers) -> Self {
        Self { answers, gists: BTreeMap::new() }
    }

    /// What was asked under a role.
    pub(super) fn asked(&self, role: &str) -> Option<&'a SavedQuery> {
        self.answers.asked(role)
    }

    /// The roles that begin so.
    pub(super) fn beginning(&self, prefix: &str) -> Vec<&'a str> {
        self.answers.roles().filter(|role| role.starts_with(prefix)).collect()
    }

    /// Reads the series of an answer; none if it was not asked for.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(super) fn series(&mut self, role: &str) -> Result<Vec<Series>, InputError> {
        if self.asked(role).is_none() {
            return Ok(Vec::new());
        }
        let mut answer = self.answers.answer(role)?;
        let none = leave_out(&mut answer.series);
        let mut instants: Vec<(i64, ())> = Vec::new();
        for series in &answer.series {
            lay(&mut instants, series.samples.iter().map(|sample| (sample.at, ())), |(), ()| ());
        }
        let mut remarks = Vec::new();
        for (how, mut texts) in
            [(": the server warns", answer.warnings), (": the server remarks", answer.infos), ("", answer.repairs)]
        {
            texts.sort_unstable();
            texts.dedup();
            remarks.extend(texts.into_iter().map(|text| format!("{role}{how}: {text}")));
        }
        remarks.extend(none.map(|share| format!("{role}: {share}")));
        let gist = Gist { has_series: !answer.series.is_empty(), instants: instants.len(), remarks };
        self.gists.insert(role.to_owned(), gist);
        Ok(answer.series)
    }

    /// The series of the first of these answers that has samples.
    ///
    /// # Errors
    /// If one up to there cannot be read.
    pub(super) fn first_series(&mut self, roles: &[&str]) -> Result<Vec<Series>, InputError> {
        for role in roles {
            let series = self.series(role)?;
            if self.is_answered(role) {
                return Ok(series);
            }
        }
        Ok(Vec::new())
    }

    /// Reads what nobody has asked for.
    ///
    /// # Errors
    /// If an answer cannot be read.
    pub(super) fn read_the_rest(&mut self) -> Result<(), InputError> {
        for role in self.answers.roles() {
            if !self.gists.contains_key(role) {
                self.series(role)?;
            }
        }
        Ok(())
    }

    /// Whether an answer that was read has samples.
    pub(super) fn is_answered(&self, role: &str) -> bool {
        self.instants(role) > 0
    }

    /// The first of these roles whose answer has samples.
    pub(super) fn first_answered<'r>(&self, roles: &[&'r str]) -> Option<&'r str> {
        roles.iter().find(|role| self.is_answered(role)).copied()
    }

    /// How many instants any series of an answer that was read has a sample at.
    pub(super) fn instants(&self, role: &str) -> usize {
        self.gists.get(role).map_or(0, |gist| gist.instants)
    }

    /// Whether any answer has a series.
    pub(super) fn has_series(&self) -> bool {
        self.gists.values().any(|gist| gist.has_series)
    }

    /// What has to be known of answers, in order of their roles.
    pub(super) fn remarks(&self) -> impl Iterator<Item = &String> {
        self.gists.values().flat_map(|gist| &gist.remarks)
    }
}
