//! From saved answers to an observation. Joins happen here and not on the server: they need no recording rule, survive owners that
//! come late, and one label that changed between two scrapes does not fail a whole query.
//!
//! What must not live here: how a table is written ([`crate::observation`]), what is asked ([`super::catalogue`]).

mod checks;
mod counters;
mod figures;
mod nodes;
mod owners;
mod pods;
mod workloads;

pub use self::pods::waits_of;

use std::collections::BTreeSet;

use nodecast_decisions::domain::SimTime;
use nodecast_decisions::text::InputError;

use super::answer::{Answer, Sample, Series};
use super::catalogue::WANTED;
use super::saved::{Answers, Asked};
use crate::observation::Observation;
use crate::observation::about::{About, Figures, Grade, Missing, Quantity, Window};

/// A Unix time in seconds as RFC 3339 in UTC.
pub fn time_text(seconds: i64) -> String {
    jiff::Timestamp::from_second(seconds).map_or_else(|_| seconds.to_string(), |at| at.to_string())
}

/// Makes an observation of saved answers.
///
/// # Errors
/// If the answers are of several clusters, or of what several replicas of a Prometheus recorded, and were not told apart; or if no
/// answer holds a series.
pub fn import(answers: &Answers) -> Result<Observation, InputError> {
    for (role, asked) in answers.all() {
        checks::one_of_each(role, &asked.answer)?;
    }
    if answers.all().all(|(_, own)| own.answer.series.is_empty()) {
        return Err(InputError::new("no answer holds a series").help(
            "see that the window lies within what the Prometheus keeps (10 days in kube-prometheus-stack, 15 by default), and that --match fits",
        ));
    }
    let mut warnings = checks::warnings(answers);
    let frame = Frame { start: answers.from * 1_000_000 };
    let owners = owners::Owners::of(answers);
    let mut import = workloads::Workloads::of(answers, &owners, frame);
    warnings.append(&mut import.warnings);
    let node_counts = nodes::counts(answers, frame);
    let nodes = nodes::lives(answers, frame);
    let pods = pods::lives(answers, &owners, frame);
    let counts = counters::counts(answers, frame);
    let stages = counters::stages(answers);
    let about = About {
        window: Window::of(answers.from, answers.to),
        cluster: checks::clusters(answers),
        sources: vec!["prometheus".to_owned()],
        quantities: quantities(answers, &import),
        missing: missing(answers, &import),
        figures: Figures::default(),
        warnings,
        ..About::new()
    };
    let mut observation = Observation {
        about,
        workloads: import.states,
        memory: import.memory,
        nodes,
        node_counts,
        pods,
        pending: pods::pending(answers, frame),
        autoscalers: import.autoscalers,
        counts,
        stages,
        spot_prices: nodes::spot_prices(answers, frame),
        events: Vec::new(),
    };
    observation.about.figures = figures::figures(answers, &observation, import.figures);
    observation.about.warnings.extend(figures::untypical_days(&observation));
    Ok(observation)
}

/// Refuses an answer that shows that all others would be of several clusters, or would count twice.
///
/// # Errors
/// If it does.
pub(super) fn refuse_early(role: &str, answer: &Answer) -> Result<(), InputError> {
    checks::one_of_each(role, answer)
}

/// Where instants count from: a Unix time in microseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Frame {
    start: i64,
}

impl Frame {
    /// The instant of a sample.
    fn at(self, sample: &Sample) -> SimTime {
        Window::instant(self.start, sample.at)
    }

    /// The instant that a sample's value is, as Unix seconds; `None` where it is none.
    fn of_value(self, value: f64) -> Option<SimTime> {
        (value.is_finite() && value > 0.0).then(|| Window::instant(self.start, libm::round(value * 1e6) as i64))
    }
}

/// The series of an answer; none if it was not asked for.
fn series(asked: Option<&Asked>) -> &[Series] {
    asked.map_or(&[], |own| &own.answer.series)
}

/// The text of a label, if it has one.
fn text(series: &Series, label: &str) -> Option<String> {
    Some(series.label(label)).filter(|text| !text.is_empty()).map(str::to_owned)
}

/// The share of the steps of a question at which any series has a sample.
fn coverage(asked: &Asked) -> f64 {
    let instants: BTreeSet<i64> =
        asked.answer.series.iter().flat_map(|series| series.samples.iter().map(|sample| sample.at)).collect();
    let share = instants.len() as f64 / asked.points().max(1) as f64;
    libm::round(share.min(1.0) * 1e6) / 1e6
}

/// The role that answers a wanted quantity, if one does.
fn answering<'a>(answers: &'a Answers, roles: &[&'a str]) -> Option<(String, &'a Asked)> {
    answers.first_answered(roles).map(|(role, asked)| (role.to_owned(), asked))
}

fn quantities(answers: &Answers, import: &workloads::Workloads) -> Vec<Quantity> {
    let mut all = Vec::new();
    for wanted in WANTED {
        if wanted.quantity == "requests" {
            all.extend(import.requests_from.iter().filter_map(|role| {
                let asked = answers.answered(role)?;
                let grade = if import.guessed.contains(role) { Grade::Derived } else { Grade::Recorded };
                Some(quantity("requests", role.clone(), asked, grade))
            }));
        } else if let Some((role, asked)) = answering(answers, wanted.roles) {
            all.push(quantity(wanted.quantity, role, asked, Grade::Recorded));
        }
    }
    all
}

fn quantity(name: &str, source: String, asked: &Asked, grade: Grade) -> Quantity {
    // Instants of pods and nodes are values, in whole seconds; the step only says how often they were looked at.
    let resolution_seconds = if matches!(name, "pods" | "nodes") { 1 } else { asked.step };
    Quantity { quantity: name.to_owned(), source, coverage: coverage(asked), resolution_seconds, grade }
}

fn missing(answers: &Answers, import: &workloads::Workloads) -> Vec<Missing> {
    let is_there = |wanted: &super::catalogue::Wanted| {
        if wanted.quantity == "requests" {
            return !import.requests_from.is_empty();
        }
        answering(answers, wanted.roles).is_some()
    };
    let absent = WANTED.iter().filter(|wanted| !is_there(wanted));
    let entry = |wanted: &super::catalogue::Wanted| Missing {
        quantity: wanted.quantity.to_owned(),
        tells: wanted.tells.to_owned(),
        remedy: wanted.remedy.to_owned(),
    };
    absent.map(entry).collect()
}
