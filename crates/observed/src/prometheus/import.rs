//! From saved answers to an observation. Joins happen here and not on the server: they need no recording rule, survive owners that
//! come late, and one label that changed between two scrapes does not fail a whole query.
//!
//! Answers are read one after the other, and each is gone before the next is read: what is kept is what the observation needs of it.
//!
//! What must not live here: how a table is written ([`crate::observation`]), what is asked ([`super::catalogue`]).

mod answer_reader;
mod checks;
mod counters;
mod curves;
mod figures;
mod nodes;
mod owners;
mod placements;
mod pods;
mod span;
mod workloads;

pub use self::pods::waits_of;

use nodecast_model::domain::SimTime;
use nodecast_model::text::InputError;

use self::answer_reader::AnswerReader;
use self::span::Span;
use super::answer::{Answer, Sample, Series};
use super::catalogue::WANTED;
use super::saved::{Answers, SavedQuery};
use crate::observation::Observation;
use crate::observation::about::{About, Figures, Grade, Missing, Quantity, Window};

/// A Unix time in seconds as RFC 3339 in UTC.
pub fn time_text(seconds: i64) -> String {
    jiff::Timestamp::from_second(seconds).map_or_else(|_| seconds.to_string(), |at| at.to_string())
}

/// Makes an observation of saved answers.
///
/// # Errors
/// If an answer cannot be read; if the answers are of several clusters, or of what several replicas of a Prometheus recorded, and were
/// not told apart; or if no answer holds a series.
pub fn import(answers: &Answers) -> Result<Observation, InputError> {
    let mut told = AnswerReader::from_answers(answers);
    let clusters = checks::clusters(&mut told)?;
    let counted = nodes::NodeCounts::from_answer_reader(&mut told)?;
    let span = Span::new(&counted, answers);
    let frame = Frame { start: span.start };
    let owners = owners::Owners::from_answer_reader(&mut told)?;
    let (node_counts, basis) = nodes::counts(counted, &mut told, frame)?;
    let nodes = nodes::lives(&mut told, frame)?;
    let pods = pods::lives(&mut told, &owners, frame)?;
    let placements = placements::placements(&mut told, &owners)?;
    let pending = pods::pending(&mut told, frame)?;
    let counts = counters::counts(&mut told, frame)?;
    let stages = counters::stages(&mut told)?;
    let spot_prices = nodes::spot_prices(&mut told, frame)?;
    let mut import = workloads::Workloads::new(&mut told, &owners, frame)?;
    let mut warnings = checks::warnings(&mut told, basis)?;
    if !told.has_series() {
        return Err(InputError::new("no answer holds a series").help(
            "see that the window lies within what the Prometheus keeps (10 days in kube-prometheus-stack, 15 by default), and that --match fits",
        ));
    }
    warnings.append(&mut import.warnings);
    warnings.extend(span.warning);
    let about = About {
        window: span.window,
        cluster: clusters,
        sources: vec!["prometheus".to_owned()],
        quantities: quantities(&told, &import, span.share),
        missing: missing(&told, &import),
        figures: Figures::default(),
        warnings,
        rates_over_seconds: checks::rated(&told),
        ..About::new()
    };
    let answered = |roles: &[&str]| told.first_answered(roles).is_some();
    let mut observation = Observation {
        about,
        workloads: recorded(import.states, false),
        memory: recorded(import.memory, false),
        nodes: recorded(nodes, false),
        node_counts: recorded(node_counts, false),
        pods: recorded(pods, false),
        placements: recorded(placements, answered(placements::ROLES)),
        pending: recorded(pending, false),
        autoscalers: recorded(import.autoscalers, false),
        counts: recorded(counts, answered(&counters::roles())),
        stages: recorded(stages, answered(&counters::stage_roles())),
        spot_prices: recorded(spot_prices, false),
        // No metric has single events.
        events: None,
    };
    observation.about.figures = figures::figures(&told, &observation, import.figures);
    observation.about.warnings.extend(figures::untypical_days(&observation));
    // Whose names were counted had a count when Karpenter had no node.
    if basis != nodes::Basis::Unlabelled {
        observation.about.warnings.extend(figures::uncounted(&observation));
    }
    Ok(observation)
}

/// A table; without rows only where an answer with samples shows that nothing happened, else `None`.
fn recorded<R>(rows: Vec<R>, is_answered: bool) -> Option<Vec<R>> {
    (is_answered || !rows.is_empty()).then_some(rows)
}

/// Refuses an answer that shows that all others would be of several clusters, or would count twice.
///
/// # Errors
/// If it does.
pub(super) fn refuse_early(role: &str, answer: &Answer) -> Result<(), InputError> {
    checks::one_of_each(role, &answer.series)
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

/// The text of a label, if it has one.
fn text(series: &Series, label: &str) -> Option<String> {
    Some(series.label(label)).filter(|text| !text.is_empty()).map(str::to_owned)
}

/// The share of the steps of a question at which any series has a sample, where `recorded` of its window was recorded at all.
fn coverage(asked: &SavedQuery, instants: usize, recorded: f64) -> f64 {
    let share = instants as f64 / (asked.points() as f64 * recorded).max(1.0);
    libm::round(share.min(1.0) * 1e6) / 1e6
}

fn quantities(told: &AnswerReader<'_>, import: &workloads::Workloads, recorded: f64) -> Vec<Quantity> {
    let mut all = Vec::new();
    for wanted in WANTED {
        if wanted.quantity == "requests" {
            all.extend(import.requests_from.iter().filter_map(|role| {
                let grade = if import.guessed.contains(role) { Grade::Derived } else { Grade::Recorded };
                quantity(told, "requests", (role, recorded), grade)
            }));
        } else if let Some(role) = told.first_answered(wanted.roles) {
            all.extend(quantity(told, wanted.quantity, (role, recorded), Grade::Recorded));
        }
    }
    all
}

fn quantity(told: &AnswerReader<'_>, name: &str, (role, recorded): (&str, f64), grade: Grade) -> Option<Quantity> {
    let asked = told.asked(role)?;
    // Instants of pods and nodes are values, in whole seconds; the step only says how often they were looked at.
    let resolution_seconds = if matches!(name, "pods" | "nodes") { 1 } else { asked.step };
    let coverage = coverage(asked, told.instants(role), recorded);
    Some(Quantity { quantity: name.to_owned(), source: role.to_owned(), coverage, resolution_seconds, grade })
}

fn missing(told: &AnswerReader<'_>, import: &workloads::Workloads) -> Vec<Missing> {
    let is_there = |wanted: &super::catalogue::Wanted| {
        if wanted.quantity == "requests" {
            return !import.requests_from.is_empty();
        }
        told.first_answered(wanted.roles).is_some()
    };
    let absent = WANTED.iter().filter(|wanted| !is_there(wanted));
    let entry = |wanted: &super::catalogue::Wanted| Missing {
        quantity: wanted.quantity.to_owned(),
        tells: wanted.tells.to_owned(),
        remedy: wanted.remedy.to_owned(),
    };
    absent.map(entry).collect()
}
