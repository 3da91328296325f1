//! One policy, one seed, one report.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use super::simulations::shell_line;
use super::{Failure, Prices, edits, prices};
use crate::domain::SimDuration;
use crate::report::{self, OutputDirectory, Summary, open_metrics};
use crate::scenario::definition::OutputSettings;
use crate::scenario::{Caveats, Edit, PolicyVariant, Scenario, Warning};
use crate::simulation::{self, CheckedError, Outcome, Progress};

/// What to run.
#[derive(clap::Args, Clone, Debug)]
pub struct Request {
    /// The scenario file, or a fleet file
    pub scenario: PathBuf,
    /// Policy to simulate [default: the first in the scenario]
    #[arg(long, value_name = "NAME", visible_alias = "policies")]
    pub policy: Option<String>,
    /// Random seed [default: the scenario's `seed`]
    #[arg(long, value_name = "N", value_parser = edits::seed, allow_negative_numbers = true)]
    pub seed: Option<u64>,
    /// What is changed first; options that state changes are read apart.
    #[arg(skip)]
    pub edits: Vec<Edit>,
    /// Directory of prices to use instead of the built-in ones (same layout as pricing-data/)
    #[arg(long, value_name = "DIR")]
    pub pricing_data: Option<PathBuf>,
}

/// A scenario that has been read and can be run.
pub struct Run {
    request: Request,
    prices: Prices,
    /// The scenario, changes made.
    pub scenario: Scenario,
    warnings: Vec<Warning>,
    keeps_meters: bool,
}

impl Run {
    /// Reads everything that the run needs.
    ///
    /// # Errors
    /// If anything of it cannot be used.
    pub fn load(request: Request) -> Result<Self, Failure> {
        let prices = Prices::open(request.pricing_data.as_deref())?;
        let (scenario, warnings) = edits::load(&request.scenario, prices.catalog(), &request.edits)?;
        let run = Self { request, prices, scenario, warnings, keeps_meters: true };
        run.policy()?;
        Ok(run)
    }

    /// The policy that runs.
    fn policy(&self) -> Result<&PolicyVariant, Failure> {
        Ok(self.scenario.for_policy(self.request.policy.as_deref())?)
    }

    /// The seed that it runs with.
    fn seed(&self) -> u64 {
        self.request.seed.unwrap_or(self.scenario.seed)
    }

    /// What each sample of `metrics.om` is apart where nobody says otherwise; `None` for no such file.
    pub fn metrics_step(&self) -> Option<SimDuration> {
        self.scenario.output.open_metrics
    }

    /// Says that no `metrics.om` is going to be written, unless the scenario asks for one: what only that tells is not kept then.
    pub fn without_metrics(&mut self) {
        self.keeps_meters = self.metrics_step().is_some();
    }

    /// Simulates. `progress` is shown the simulation now and then, and may end it: there is no outcome then.
    ///
    /// # Errors
    /// If the catalog has no prices for the scenario's region.
    pub fn simulate(
        &self,
        progress: &mut dyn FnMut(&Progress<'_>) -> ControlFlow<()>,
    ) -> Result<Option<Outcome>, Failure> {
        let policy = self.policy()?;
        let kept = (self.seed(), self.keeps_meters);
        let outcome = simulation::run_while(&self.scenario, policy, self.prices.catalog(), kept, progress);
        Ok(outcome.map_err(prices::unusable)?.map(|outcome| self.told(policy, outcome)))
    }

    /// Simulates, and works out anew whatever is kept for speed.
    ///
    /// # Errors
    /// As [`simulate`](Self::simulate), and if anything comes out otherwise.
    pub fn simulate_checked(&self, progress: &mut dyn FnMut(&Progress<'_>)) -> Result<Outcome, Failure> {
        let policy = self.policy()?;
        let outcome = simulation::run_checked(&self.scenario, policy, self.prices.catalog(), self.seed(), progress);
        Ok(self.told(policy, outcome.map_err(unchecked)?))
    }

    /// `outcome` with the warnings of reading the scenario, and of changes that change nothing, before its own.
    fn told(&self, policy: &PolicyVariant, mut outcome: Outcome) -> Outcome {
        let request = &self.request;
        let run = std::slice::from_ref(&policy.name);
        let mut before =
            edits::idle(&request.scenario, &request.edits, (&self.scenario, false), run, self.prices.catalog());
        before.extend(Caveats::from_warnings(&self.warnings));
        outcome.warnings.precede(before);
        outcome.warnings.add_unused();
        outcome
    }

    /// The command line that repeats a run, as a shell reads it. `metrics` is the step of `metrics.om` that was asked for.
    pub fn command(&self, outcome: &Outcome, metrics: Option<SimDuration>) -> String {
        let request = &self.request;
        let mut words = vec!["nodecast".to_owned(), "run".to_owned(), request.scenario.display().to_string()];
        words.extend(["--policy".to_owned(), outcome.about.policy.clone()]);
        words.extend(["--seed".to_owned(), outcome.about.seed.to_string()]);
        words.extend(edits::options(&edits::setting(&request.edits)));
        if let Some(directory) = &request.pricing_data {
            words.extend(["--pricing-data".to_owned(), directory.display().to_string()]);
        }
        if let Some(step) = metrics {
            words.push(format!("--open-metrics={step}"));
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        shell_line(&words)
    }

    /// Writes the report into a directory that was begun. `metrics` is the step of `metrics.om` that is asked for.
    ///
    /// # Errors
    /// If the report cannot be made or written; what stood there is then as it was.
    pub fn write(
        &self,
        (outcome, summary): (&Outcome, &Summary),
        metrics: Option<SimDuration>,
        samples_max: u64,
        directory: OutputDirectory,
    ) -> Result<Option<open_metrics::Settings>, Failure> {
        let command = self.command(outcome, metrics);
        let metrics = metrics.or(self.metrics_step()).map(|step| open_metrics::Settings { step, samples_max });
        report::write_to(directory, outcome, summary, &command, metrics).map_err(Failure::of_report)?;
        Ok(metrics)
    }

    /// Where the report goes if nobody says otherwise: where the scenario says, else `reports/<name>`.
    pub fn output_directory(&self) -> PathBuf {
        let of_scenario = self.scenario.output.directory.as_ref().map(PathBuf::from);
        of_scenario.unwrap_or_else(|| Path::new("reports").join(&self.scenario.name))
    }
}

/// A time between samples of `metrics.om`, as it is written for people.
///
/// # Errors
/// What is wrong with it.
pub fn metrics_step(text: &str) -> Result<SimDuration, String> {
    let (least, most) = OutputSettings::STEPS;
    let step = edits::time(text)?;
    if (least..=most).contains(&step) { Ok(step) } else { Err(format!("must be from {least} to {most}")) }
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
    "this is a bug in nodecast, not in your scenario: a cached value is stale. Please report it and attach the scenario"
))]
struct Mistaken(CheckedError);

#[cfg(test)]
mod tests {
    use miette::GraphicalTheme;

    use super::unchecked;
    use crate::domain::{Disagreement, SimDuration, SimTime};
    use crate::simulation::CheckedError;

    #[test]
    fn failed_check_has_guard_exit_code() {
        let at = SimTime::ZERO + SimDuration::from_secs(5_400);
        let failure = unchecked(CheckedError::Disagreement { at, what: Disagreement("one is not two".to_owned()) });
        assert_eq!(failure.exit_code(), 1);
        let told = failure.text(GraphicalTheme::none()).unwrap();
        assert!(told.contains("the check failed 1h30m after the start: one is not two"), "{told}");
        assert!(told.contains("Please report it"), "{told}");
    }
}
