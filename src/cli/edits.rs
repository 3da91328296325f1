//! `--set` and `--duration`: what a command line changes of a scenario before anything runs.

use std::path::Path;

use super::Failure;
use crate::catalog::Catalog;
use crate::domain::SimDuration;
use crate::domain::time::DurationError;
use crate::experiment::axes::Setting;
use crate::experiment::effects::digest;
use crate::experiment::question::Question;
use crate::scenario::{Edit, Limits, Scenario, ScenarioError, Warning};

/// Options of commands that run a scenario with changes.
#[derive(clap::Args, Debug)]
pub(super) struct Edits {
    /// A value of the scenario or a manifest to change first, for example
    /// `NodePool[default].spec.disruption.consolidateAfter=5m`; may be given several times
    #[arg(long = "set", value_name = "PATH=VALUE", global = true)]
    set: Vec<String>,
    /// How long to simulate, for example 2h [default: the scenario's `duration`]
    #[arg(long, value_name = "TIME", value_parser = time, global = true)]
    duration: Option<SimDuration>,
}

/// A span of time on the command line.
pub(super) fn time(text: &str) -> Result<SimDuration, String> {
    text.parse().map_err(|error: DurationError| match error {
        DurationError::Malformed if text.bytes().all(|byte| byte.is_ascii_digit()) => {
            format!("a number without a unit, write for example {text}s, {text}m or {text}h")
        }
        DurationError::Malformed => format!("{error}, write for example 30s, 5m, 1h30m or 7d"),
        DurationError::Negative | DurationError::TooLong => error.to_string(),
    })
}

/// A seed on the command line.
pub(super) fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("a seed is a whole number from 0 to {}", u64::MAX))
}

/// The path of the duration in a scenario.
const DURATION: &str = "duration";

/// `--duration` beside a `--set` of the same value.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("`--duration {duration}` and `--set {edit}` both say how long to simulate")]
#[diagnostic(help("give one of them"))]
struct TwoDurations {
    duration: SimDuration,
    edit: String,
}

impl Edits {
    /// The changes in the order in which they are made.
    pub(super) fn parse(&self) -> Result<Vec<Edit>, Failure> {
        let mut edits = parse(&self.set)?;
        if let Some(duration) = self.duration {
            if let Some(edit) = edits.iter().find(|edit| edit.path() == DURATION) {
                let edit = format!("{DURATION}={}", edit.value());
                return Err(Failure::bad_input(TwoDurations { duration, edit }));
            }
            edits.push(Edit::new(DURATION, &duration.to_string()).map_err(Failure::bad_input)?);
        }
        Ok(edits)
    }
}

/// The changes that `--set` states.
pub(super) fn parse(texts: &[String]) -> Result<Vec<Edit>, Failure> {
    texts.iter().map(|text| Edit::parse(text)).collect::<Result<_, _>>().map_err(Failure::bad_input)
}

/// Edits as an experiment's question keeps them.
pub(super) fn setting(edits: &[Edit]) -> Setting {
    edits.iter().map(|edit| (edit.path().to_owned(), edit.value().to_owned())).collect()
}

/// The edits of a setting.
pub(super) fn of_setting(setting: &Setting) -> Result<Vec<Edit>, ScenarioError> {
    setting.iter().map(|(path, value)| Edit::new(path, value)).collect()
}

/// A setting as the options of a command line.
pub(super) fn options(setting: &Setting) -> Vec<String> {
    texts(setting).into_iter().flat_map(|text| ["--set".to_owned(), text]).collect()
}

/// A setting as `--set` states it.
pub(super) fn texts(setting: &Setting) -> Vec<String> {
    setting.iter().map(|(path, value)| format!("{path}={value}")).collect()
}

/// Warnings of the changes in an experiment's setting that change nothing in any policy of it.
pub(super) fn without_effect(
    question: &Question,
    setting: &Setting,
    scenario: &Scenario,
    catalog: &Catalog,
) -> Vec<String> {
    let edits = of_setting(setting).unwrap_or_default();
    idle(Path::new(&question.scenario), &edits, scenario, &question.policies, catalog)
}

/// Warnings of those of `edits`, with which `scenario` was read from `path`, that change nothing in any of `policies`.
pub(super) fn idle(
    path: &Path,
    edits: &[Edit],
    scenario: &Scenario,
    policies: &[String],
    catalog: &Catalog,
) -> Vec<String> {
    // How long to simulate may be said twice.
    let asked = edits.iter().enumerate().filter(|(_, edit)| edit.path() != DURATION);
    let is_idle = |(place, _): &(usize, &Edit)| {
        let others: Vec<Edit> =
            edits.iter().enumerate().filter(|(other, _)| other != place).map(|(_, edit)| edit.clone()).collect();
        // Where the others mean nothing without it, it changes something.
        let without = Scenario::load_edited(path, catalog, &Limits::default(), &others);
        without.is_ok_and(|(without, _)| same(scenario, &without, policies, catalog))
    };
    let idle = asked.filter(is_idle);
    idle.map(|(_, edit)| idle_line(&format!("`--set {}={}` changes nothing", edit.path(), edit.value()), policies))
        .collect()
}

/// Whether the policies come to the same in both scenarios.
pub(super) fn same(one: &Scenario, other: &Scenario, policies: &[String], catalog: &Catalog) -> bool {
    let digest_of = |scenario: &Scenario, name: &str| {
        scenario.for_policy(Some(name)).ok().and_then(|policy| digest(scenario, policy, catalog))
    };
    policies.iter().all(|name| {
        let known = digest_of(one, name);
        known.is_some() && known == digest_of(other, name)
    })
}

/// That something changes nothing.
pub(super) fn idle_line(what: &str, policies: &[String]) -> String {
    let run = match policies {
        [one] => format!("the policy that runs ({one})"),
        _ => format!("any policy that runs ({})", policies.join(", ")),
    };
    format!("{what} in {run}: it is so already, or nothing there looks at it")
}

/// The scenario of a file with changes.
pub(super) fn load(path: &Path, catalog: &Catalog, edits: &[Edit]) -> Result<(Scenario, Vec<Warning>), Failure> {
    Scenario::load_edited(path, catalog, &Limits::default(), edits).map_err(Failure::bad_input)
}
