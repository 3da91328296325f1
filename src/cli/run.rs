//! `nodecast run`: one policy, one seed, one report.

use std::path::{Path, PathBuf};

use super::edits::{self, Edits};
use super::experiment::{self, report_failure};
use super::prices::{self, Prices};
use super::watch::Watch;
use super::{Console, Failure, Format};
use crate::domain::SimDuration;
use crate::report::{self, OutputDirectory, Summary, open_metrics, terminal};
use crate::scenario::definition::OutputSettings;
use crate::scenario::{Edit, Scenario};
use crate::simulation::{self, CheckedError, Moment, Outcome};

/// Simulate a scenario under one policy and report what it costs and who waits
///
/// Writes report.html, summary.json, plots and tables into the output directory, which is replaced as a whole.
#[derive(clap::Args, Debug)]
pub(super) struct Arguments {
    /// The scenario file
    scenario: PathBuf,
    /// The policy to simulate [default: the scenario's first]
    #[arg(long, value_name = "NAME")]
    policy: Option<String>,
    /// The seed of every random draw [default: the scenario's]
    #[arg(long, value_name = "N", value_parser = edits::seed, allow_negative_numbers = true)]
    seed: Option<u64>,
    #[command(flatten)]
    edits: Edits,
    /// The directory for the report [default: the scenario's, or reports/<its name>]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// What to print: a table for people, or summary.json
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    /// Prices to use instead of the built-in ones, laid out like pricing-data/
    #[arg(long, value_name = "DIR")]
    pricing_data: Option<PathBuf>,
    /// Write metrics.om too: the cluster's metrics for Prometheus, a sample every STEP, 1s to 4m [default: 60s]
    #[arg(long, value_name = "STEP", num_args = 0..=1, require_equals = true, default_missing_value = "60s")]
    #[arg(value_parser = metrics_step)]
    open_metrics: Option<SimDuration>,
    /// Leave the series of single nodes or pods out of metrics.om where they have more samples than this
    #[arg(long, value_name = "N", default_value_t = open_metrics::Settings::SAMPLES_MAX)]
    open_metrics_samples: u64,
    /// Show the simulation's clock, its nodes and the pods that wait for one while it runs
    #[arg(long, conflicts_with = "quiet")]
    watch: bool,
    /// Work out anew whatever is kept for speed, compare, and look after each event whether the cluster is as it must be: the same
    /// answer, later, or an error that says what differs
    #[arg(long)]
    check: bool,
    /// Print the answer alone: no progress, no warnings, no word on where the report is
    #[arg(long, short)]
    quiet: bool,
}

/// Simulates and reports. Nothing is written before the simulation is over, and nothing at all if it cannot begin.
pub(super) fn execute(arguments: &Arguments, console: &mut Console<'_>) -> Result<(), Failure> {
    let prices = Prices::open(arguments.pricing_data.as_deref())?;
    let catalog = prices.catalog();
    let edits = arguments.edits.parse()?;
    let (scenario, warnings) = edits::load(&arguments.scenario, catalog, &edits)?;
    let policy = scenario.for_policy(arguments.policy.as_deref()).map_err(Failure::bad_input)?;
    let seed = arguments.seed.unwrap_or(scenario.seed);
    let out = output_directory(arguments, &scenario);
    OutputDirectory::check(&out).map_err(|error| report_failure(error.into()))?;
    let progress = console.progress(scenario.duration, !arguments.quiet);
    let mut watch = arguments.watch.then(|| Watch::new(&scenario.start.to_string(), scenario.duration));
    let mut show = |moment: &Moment<'_>| {
        progress.reached(moment.now);
        let Some(watch) = &mut watch else { return };
        if progress.is_drawn() {
            progress.say(watch.line(moment));
        } else if watch.is_due(moment.now) {
            console.tell(&watch.line(moment));
        }
    };
    let result = if arguments.check {
        simulation::run_checked(&scenario, policy, catalog, seed, &mut show).map_err(unchecked)
    } else {
        simulation::run(&scenario, policy, catalog, seed, &mut show).map_err(prices::unusable)
    };
    drop(progress);
    let metrics = arguments.open_metrics.or(scenario.output.open_metrics);
    let metrics = metrics.map(|step| open_metrics::Settings { step, samples_max: arguments.open_metrics_samples });
    let mut outcome = result?;
    let run = std::slice::from_ref(&policy.name);
    let mut lines = edits::idle(&arguments.scenario, &edits, &scenario, run, catalog);
    lines.extend(experiment::warning_lines(&warnings));
    outcome.warnings.splice(0..0, lines);
    conclude((arguments, &edits), &outcome, metrics, &out, console)
}

/// Why a checked run has no outcome.
fn unchecked(error: CheckedError) -> Failure {
    match error {
        CheckedError::Catalog(error) => prices::unusable(error),
        CheckedError::Disagreement { .. } => Failure::worse(Mistaken(error)),
    }
}

/// A check found that the program is wrong.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error(transparent)]
#[diagnostic(help(
    "the scenario is not to blame: nodecast keeps something for speed that is not so any more; please report it with the scenario"
))]
struct Mistaken(CheckedError);

/// Where the report goes: what the command line says, else the scenario, else `reports/<name>`.
fn output_directory(arguments: &Arguments, scenario: &Scenario) -> PathBuf {
    let of_scenario = scenario.output.directory.as_ref().map(PathBuf::from);
    arguments.out.clone().or(of_scenario).unwrap_or_else(|| Path::new("reports").join(&scenario.name))
}

/// A time between samples.
fn metrics_step(text: &str) -> Result<SimDuration, String> {
    let (least, most) = OutputSettings::STEPS;
    let step = edits::time(text)?;
    if (least..=most).contains(&step) { Ok(step) } else { Err(format!("must be from {least} to {most}")) }
}

/// The command line that repeats a run, as a shell reads it.
fn command_line((arguments, edits): (&Arguments, &[Edit]), outcome: &Outcome) -> String {
    let mut words = vec!["nodecast".to_owned(), "run".to_owned(), arguments.scenario.display().to_string()];
    words.extend(["--policy".to_owned(), outcome.about.policy.clone()]);
    words.extend(["--seed".to_owned(), outcome.about.seed.to_string()]);
    words.extend(edits::options(&edits::setting(edits)));
    if let Some(directory) = &arguments.pricing_data {
        words.extend(["--pricing-data".to_owned(), directory.display().to_string()]);
    }
    if let Some(step) = arguments.open_metrics {
        words.push(format!("--open-metrics={step}"));
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    shell_line(&words)
}

/// `words` as a shell reads them.
pub(super) fn shell_line(words: &[&str]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// `word` in quotes if a shell would not take it as it is.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Writes the report of `outcome` and prints the answer.
fn conclude(
    (arguments, edits): (&Arguments, &[Edit]),
    outcome: &Outcome,
    metrics: Option<open_metrics::Settings>,
    out: &Path,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let summary = Summary::of(outcome);
    report::write(outcome, &summary, &command_line((arguments, edits), outcome), metrics, out)
        .map_err(report_failure)?;
    let place = format!("report: {}", out.join("report.html").display());
    match arguments.format {
        Format::Table => {
            console.data(&terminal::table_over_time(&summary, outcome))?;
        }
        Format::Json => {
            let json = summary.to_json().map_err(|error| report_failure(error.into()))?;
            console.data(&json)?;
            if !arguments.quiet && !summary.warnings.is_empty() {
                let count = report::format::counted(summary.warnings.len() as u64, "warning", "warnings");
                console.tell(&format!("{count}, in the report"));
            }
        }
    }
    if !arguments.quiet {
        for note in metrics.iter().flat_map(|settings| open_metrics::Extent::of(outcome, *settings).notes()) {
            console.tell(&note);
        }
        console.tell(&place);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::process::ExitCode;

    use super::{quoted, unchecked};
    use crate::cli::Console;
    use crate::domain::{Disagreement, SimDuration, SimTime};
    use crate::simulation::CheckedError;

    #[test]
    fn a_check_that_fails_is_an_error_with_the_exit_code_of_a_guard() {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let at = SimTime::ZERO + SimDuration::from_secs(5_400);
        let error = CheckedError::Disagreement { at, what: Disagreement("one is not two".to_owned()) };
        let code = Console::plain(&mut out, &mut err).conclude(Err(unchecked(error)));
        assert_eq!(code, ExitCode::from(1));
        let told = String::from_utf8(err).unwrap();
        assert!(told.contains("the check failed 1h30m after the start: one is not two"), "{told}");
        assert!(told.contains("please report it"), "{told}");
    }

    #[test]
    fn words_of_the_command_are_quoted_for_a_shell() {
        assert_eq!(quoted("a/b.yaml"), "a/b.yaml");
        assert_eq!(quoted("it's here"), "'it'\\''s here'");
        assert_eq!(quoted(""), "''");
    }
}
