//! Changes of a scenario before anything runs.

use std::path::Path;

use super::Failure;
use crate::catalog::Catalog;
use crate::domain::SimDuration;
use crate::domain::time::DurationError;
use crate::experiment::Question;
use crate::experiment::axes::{Axis, Setting};
use crate::experiment::effects::digest;
use crate::experiment::question::Kind;
use crate::scenario::lints::studies;
use crate::scenario::{Caveat, Caveats, Edit, Limits, Scenario, ScenarioError, Warning};

/// The path of the duration in a scenario.
const DURATION: &str = "duration";

/// A span of time as it is written for people.
///
/// # Errors
/// What is wrong with it, with an example of what is not.
pub fn time(text: &str) -> Result<SimDuration, String> {
    text.parse().map_err(|error: DurationError| match error {
        DurationError::Malformed if text.bytes().all(|byte| byte.is_ascii_digit()) => {
            format!("missing unit: use {text}s, {text}m, or {text}h")
        }
        DurationError::Malformed => format!("{error}; use for example 30s, 5m, 1h30m, or 7d"),
        DurationError::Negative | DurationError::TooLong => error.to_string(),
    })
}

/// A seed as it is written.
///
/// # Errors
/// If it is no such number.
pub fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("a seed is a whole number from 0 to {}", u64::MAX))
}

/// `--duration` beside a `--set` of the same value.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("`--duration {duration}` and `--set {edit}` both set the duration")]
#[diagnostic(help("use only one of them"))]
struct TwoDurations {
    duration: SimDuration,
    edit: String,
}

/// The changes in the order in which they are made: those of `set`, each `PATH=VALUE`, then how long to simulate.
///
/// # Errors
/// If one of them has not that form, or both say how long to simulate.
pub fn parse(set: &[String], duration: Option<SimDuration>) -> Result<Vec<Edit>, Failure> {
    let edits = set.iter().map(|text| Edit::parse(text)).collect::<Result<Vec<_>, _>>();
    let mut edits = edits?;
    if let Some(duration) = duration {
        if let Some(edit) = edits.iter().find(|edit| is_of_duration(edit)) {
            let edit = format!("{DURATION}={}", edit.value());
            return Err(Failure::bad_input(TwoDurations { duration, edit }));
        }
        edits.push(Edit::new(DURATION, &duration.to_string())?);
    }
    Ok(edits)
}

/// Whether an edit says how long to simulate.
pub fn is_of_duration(edit: &Edit) -> bool {
    edit.path() == DURATION
}

/// Edits as an experiment's question keeps them.
pub fn setting(edits: &[Edit]) -> Setting {
    edits.iter().map(|edit| (edit.path().to_owned(), edit.value().to_owned())).collect()
}

/// The change that makes simulations so long; none without a duration.
///
/// # Errors
/// If it cannot be made, which no duration brings about.
pub fn of_duration(duration: Option<SimDuration>) -> Result<Vec<Edit>, ScenarioError> {
    duration.iter().map(|duration| Edit::new(DURATION, &duration.to_string())).collect()
}

/// That `--duration` and an axis, which `set` states, do not both say how long to simulate.
///
/// # Errors
/// If they do.
pub fn said_once(duration: Option<SimDuration>, set: &[String], axes: &[Axis]) -> Result<(), Failure> {
    let axis = set.iter().zip(axes).find(|(_, axis)| axis.path == DURATION);
    match duration.zip(axis) {
        Some((duration, (edit, _))) => Err(Failure::bad_input(TwoDurations { duration, edit: edit.clone() })),
        None => Ok(()),
    }
}

/// What a question changes whatever the setting: everything in a comparison, which has one; the length in a sweep.
///
/// # Errors
/// If one of the changes has not the form of a path with a value.
pub fn of_question(question: &Question) -> Result<Vec<Edit>, ScenarioError> {
    match question.kind {
        Kind::Compare | Kind::FleetCompare => question.settings.first().map_or_else(|| Ok(Vec::new()), of_setting),
        Kind::Sweep => question.duration.iter().map(|duration| Edit::new(DURATION, duration)).collect(),
    }
}

/// The edits of one of a sweep's settings, and what all of them share.
///
/// # Errors
/// If one of them has not the form of a path with a value.
pub fn of_setting_in(question: &Question, setting: &Setting) -> Result<Vec<Edit>, ScenarioError> {
    let mut edits = of_setting(setting)?;
    edits.extend(of_question(question)?);
    Ok(edits)
}

/// The edits of a setting.
///
/// # Errors
/// If one of them has not the form of a path with a value.
pub fn of_setting(setting: &Setting) -> Result<Vec<Edit>, ScenarioError> {
    setting.iter().map(|(path, value)| Edit::new(path, value)).collect()
}

/// A setting as the options of a command line.
pub fn options(setting: &Setting) -> Vec<String> {
    texts(setting).into_iter().flat_map(|text| ["--set".to_owned(), text]).collect()
}

/// A setting as `--set` states it.
pub fn texts(setting: &Setting) -> Vec<String> {
    setting.iter().map(|(path, value)| format!("{path}={value}")).collect()
}

/// Warnings of the changes in an experiment's setting that change nothing in any policy of it.
pub fn without_effect(question: &Question, setting: &Setting, scenario: &Scenario, catalog: &Catalog) -> Caveats {
    let edits = of_setting(setting).unwrap_or_default();
    idle(Path::new(&question.scenario), &edits, (scenario, true), &question.policies, catalog)
}

/// Warnings of those of `edits`, with which `scenario` was read from `path`, that change nothing in any of `policies`. `draws` says whether errors
/// of Spot prices are drawn where nobody says otherwise, as experiments do and a run does not: there it changes something to say that they are.
pub fn idle(
    path: &Path,
    edits: &[Edit],
    (scenario, draws): (&Scenario, bool),
    policies: &[String],
    catalog: &Catalog,
) -> Caveats {
    // How long to simulate may be said twice.
    let asked = edits.iter().enumerate().filter(|(_, edit)| !is_of_duration(edit));
    let is_idle = |(place, _): &(usize, &Edit)| {
        let others: Vec<Edit> =
            edits.iter().enumerate().filter(|(other, _)| other != place).map(|(_, edit)| edit.clone()).collect();
        // Where the others mean nothing without it, it changes something.
        let without = crate::scenario::load_edited(path, catalog, &Limits::default(), &others);
        without.is_ok_and(|(mut without, _)| {
            if draws && scenario.ec2.cloud.price_errors == Some(true) {
                without.draw_price_errors();
            }
            same(scenario, &without, policies, catalog)
        })
    };
    let idle = asked.filter(is_idle);
    idle.map(|(_, edit)| idle_caveat(&format!("`--set {}={}` has no effect", edit.path(), edit.value()), policies))
        .collect()
}

/// Whether the policies come to the same in both scenarios.
pub fn same(one: &Scenario, other: &Scenario, policies: &[String], catalog: &Catalog) -> bool {
    let digest_of = |scenario: &Scenario, name: &str| {
        scenario.for_policy(Some(name)).ok().and_then(|policy| digest(scenario, policy, catalog))
    };
    policies.iter().all(|name| {
        let known = digest_of(one, name);
        known.is_some() && known == digest_of(other, name)
    })
}

/// That something changes nothing.
pub fn idle_caveat(what: &str, policies: &[String]) -> Caveat {
    let run = match policies {
        [one] => format!("the policy that runs ({one})"),
        _ => format!("any policy that runs ({})", policies.join(", ")),
    };
    let text = format!("{what} in {run}: the value is already set, or nothing reads it");
    Caveat::new(&studies::IDLE_CHANGE, text)
}

/// The scenario of a file with changes, and what is left out of it.
///
/// # Errors
/// If it cannot be read, or a change cannot be made.
pub fn load(path: &Path, catalog: &Catalog, edits: &[Edit]) -> Result<(Scenario, Vec<Warning>), Failure> {
    Ok(crate::scenario::load_edited(path, catalog, &Limits::default(), edits)?)
}
