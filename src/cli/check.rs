//! `nodecast check`: scenarios against a committed baseline, for CI.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::compare::percentage;
use super::edits::Length;
use super::experiment::{self, Common};
use super::pack::suite::pack_all;
use super::{Console, Format};
use crate::catalog::Catalog;
use crate::domain::SimDuration;
use crate::domain::words::{counted, refusal};
use crate::experiment::baseline::{Baseline, Movement, ScenarioBaseline, Standing, check};
use crate::experiment::figures::SILENT;
use crate::experiment::model::{MODEL, changes_since};
use crate::experiment::points::{Plan, seeds};
use crate::experiment::presentation::movements;
use crate::experiment::{Cell, Point, points};
use crate::program::{Failure, Prices, edits, fleet, prices, recorded_path};
use crate::report::pack::PackedInstance;
use crate::scenario::{Edit, Scenario};
use nodecast_karpenter::packing::PackerKind;

/// Check scenarios and packing suites against a committed baseline; exit 1 on regression
///
/// Compares cost, wait times, and churn metric by metric. For a packing suite (a directory like scenarios/packing), compares node cost and
/// unschedulable pods. Checks every scenario in the baseline unless you name some. `--update` records the current results as the new
/// baseline.
///
/// Exit codes: 1, a metric got worse; 2, invalid input; 4, the baseline comes from another model version of nodecast, so its figures differ
/// even if the scenarios do not.
#[derive(clap::Args, Debug)]
pub(super) struct Arguments {
    /// Scenario files and packing suites, by their path in the baseline [default: all]
    scenarios: Vec<PathBuf>,
    /// The baseline
    #[arg(long, value_name = "FILE")]
    baseline: PathBuf,
    /// Rewrite the baseline instead of checking
    #[arg(long)]
    update: bool,
    /// Allowed regression per metric [default: the baseline's, or 2%]
    #[arg(long, value_name = "PERCENT", value_parser = percentage)]
    tolerance: Option<f64>,
    /// Number of seeds for --update [default: the baseline's, or each scenario's `replications`]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000), requires = "update")]
    replications: Option<u32>,
    /// Override a value before checking, to see whether the check would fail
    #[arg(long = "set", value_name = "PATH=VALUE")]
    set: Vec<String>,
    #[command(flatten)]
    length: Length,
    /// Also write the table as Markdown, for a pull request comment
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Also write the results as JUnit XML, for a CI system
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Output format: a table, or JSON (with --update, the new baseline)
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    /// Directory of prices to use instead of the built-in ones (same layout as pricing-data/)
    #[arg(long, value_name = "DIR")]
    pricing_data: Option<PathBuf>,
    #[command(flatten)]
    common: Common,
}

/// Why there is nothing to check against.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
enum CheckError {
    #[error("cannot read the baseline `{file}`: {}", refusal(reason))]
    #[diagnostic(help("write one: `nodecast check --baseline {file} --update SCENARIO...`"))]
    Unreadable { file: String, reason: std::io::Error },
    #[error("`{file}` is not a baseline: {reason}")]
    #[diagnostic(help("a baseline is what `nodecast check --baseline FILE --update SCENARIO...` writes"))]
    Malformed { file: String, reason: String },
    #[error("no scenario to check")]
    #[diagnostic(help("pass scenario files; with --update they become the baseline"))]
    Nothing,
    #[error("`{suite}` is a packing suite, and `{flag}` has no effect on it")]
    #[diagnostic(help("name the scenarios to change, without the suite"))]
    Unchangeable { suite: String, flag: &'static str },
    #[error("the baseline `{baseline}` has figures of {then} of `{scenario}`, and `--duration` asks for {now}")]
    #[diagnostic(help(
        "runs of different lengths cannot be compared; drop `--duration`, or update the baseline: `nodecast check --baseline {baseline} --update --duration {now} {scenario}`"
    ))]
    OtherDuration { baseline: String, scenario: String, then: SimDuration, now: SimDuration },
    #[error("baseline `{baseline}` recorded `{scenario}` over {then}, but the scenario now runs for {now}")]
    #[diagnostic(help(
        "figures of runs of two lengths cannot be held against each other: let it run for {then}, or write the baseline anew: `nodecast check --baseline {baseline} --update {scenario}`"
    ))]
    EditedDuration { baseline: String, scenario: String, then: SimDuration, now: SimDuration },
    #[error("baseline `{baseline}` has results for {policy} in `{scenario}`, which no longer exists")]
    #[diagnostic(help(
        "if you removed it on purpose, update the baseline: `nodecast check --baseline {baseline} --update {scenario}`"
    ))]
    PolicyGone { baseline: String, scenario: String, policy: String },
    #[error("the baseline `{baseline}` names `{scenario}`, and there is no such file or directory")]
    #[diagnostic(help(
        "a baseline's names are relative to the directory that nodecast runs in, as they were with `--update`: run it there, or take the scenario out of the baseline if it is gone"
    ))]
    Gone { baseline: String, scenario: String },
    #[error(
        "baseline `{file}` was written by model version {then}; this nodecast uses model version {MODEL}, so figures are not comparable"
    )]
    #[diagnostic(help("{}\nwrite it anew: `nodecast check --baseline {file} --update`", since(*then)))]
    OtherModel { file: String, then: u32 },
    #[error(
        "the baseline is of model {then}, and `--update` would keep its figures of `{kept}` beside those of model {MODEL}"
    )]
    #[diagnostic(help("update all of it: `nodecast check --baseline {file} --update`"))]
    KeptOfOtherModel { file: String, then: u32, kept: String },
    #[error("the baseline has nothing of {scenario}, policy {policy}")]
    #[diagnostic(help("`--update` with this scenario adds it"))]
    Unknown { scenario: String, policy: String },
}

/// What has changed since a model, a line each.
fn since(then: u32) -> String {
    if then > MODEL {
        return "a later nodecast wrote it, which knows what has changed".to_owned();
    }
    let changes: Vec<String> = changes_since(then).map(|what| format!("- {what}")).collect();
    format!("changed since:\n{}", changes.join("\n"))
}

/// Refuses a baseline whose figures are of another model, also in the files that a CI system reads.
fn refuse_other_model(arguments: &Arguments, known: &Baseline) -> Result<(), Failure> {
    if known.model == MODEL {
        return Ok(());
    }
    let file = arguments.baseline.display().to_string();
    let error = CheckError::OtherModel { file: file.clone(), then: known.model };
    let changes: Vec<&str> = changes_since(known.model).collect();
    if let Some(path) = &arguments.markdown {
        experiment::write_whole(path, &movements::other_model_markdown(&error.to_string(), &changes, &file))?;
    }
    if let Some(path) = &arguments.junit {
        experiment::write_whole(path, &movements::other_model_junit(&error.to_string()))?;
    }
    Err(Failure::other_model(error))
}

/// Checks, or writes the baseline.
pub(super) fn execute(arguments: &Arguments, console: &mut Console<'_>) -> Result<(), Failure> {
    let prices = Prices::open(arguments.pricing_data.as_deref())?;
    let catalog = prices.catalog();
    let known = read(&arguments.baseline, arguments.update && !arguments.scenarios.is_empty())?;
    if let Some(known) = known.as_ref().filter(|_| !arguments.update) {
        refuse_other_model(arguments, known)?;
    }
    let names = names(arguments, known.as_ref())?;
    let edits = Edits::from_arguments(arguments)?;
    let mut now = Vec::new();
    for name in &names {
        if Path::new(name).is_dir() {
            now.extend(pack(arguments, name, catalog)?);
            continue;
        }
        if nodecast_fleet::is_fleet(Path::new(name)) {
            now.extend(check_fleet(arguments, name, known.as_ref())?);
            continue;
        }
        let (scenario, duration) = edits.load(arguments, name, known.as_ref(), catalog)?;
        let results = run(arguments, name, &scenario, known.as_ref(), catalog, console)?;
        let simulated = scenario.duration.to_string();
        let lasting = |(item, currency)| {
            let (duration, simulated) = (duration.clone(), Some(simulated.clone()));
            (ScenarioBaseline { duration, simulated, ..item }, currency)
        };
        now.extend(results.into_iter().map(lasting));
    }
    if arguments.update {
        return update(arguments, known, now, console);
    }
    let Some(known) = known else { return Err(Failure::bad_input(CheckError::Nothing)) };
    refuse_gone_policy(arguments, &known, &names, &now)?;
    tell_of_silence(&known, &now, console);
    let mut all = Vec::new();
    for (key, currency) in &now {
        let movements = check(&known, key, arguments.tolerance).ok_or_else(|| {
            let (scenario, policy) = (key.scenario.clone(), key.policy.clone());
            Failure::bad_input(CheckError::Unknown { scenario, policy })
        })?;
        all.extend(movements.into_iter().map(|movement| (movement, currency.clone())));
    }
    conclude(arguments, &all, console)
}

/// Refuses a scenario or suite that lacks a policy or instance of the baseline: nothing would be held to its figures.
fn refuse_gone_policy(
    arguments: &Arguments,
    known: &Baseline,
    names: &[String],
    now: &[(ScenarioBaseline, String)],
) -> Result<(), Failure> {
    let results: Vec<&ScenarioBaseline> = now.iter().map(|(key, _)| key).collect();
    let Some(gone) = known.gone(names, &results) else { return Ok(()) };
    let baseline = arguments.baseline.display().to_string();
    let (scenario, policy) = (gone.scenario.clone(), gone.policy.clone());
    Err(Failure::bad_input(CheckError::PolicyGone { baseline, scenario, policy }))
}

/// Says which policies have workloads that answer nothing where the baseline cannot tell whether they did.
fn tell_of_silence(known: &Baseline, now: &[(ScenarioBaseline, String)], console: &mut Console<'_>) {
    if known.knows(&SILENT) {
        return;
    }
    for (key, _) in now {
        let silent = key.figures.get(SILENT.name).copied().unwrap_or(0.0);
        if silent > 0.0 {
            console.tell(&format!(
                "{}, policy {}: on average {silent:.1} workloads answer no requests, and the baseline is too old to record this; run `--update`",
                key.scenario, key.policy
            ));
        }
    }
}

/// What is changed of every scenario before it runs.
struct Edits {
    /// What `--set` states.
    set: Vec<Edit>,
    /// Whether that says how long to simulate: then it does, whatever the baseline has.
    sets_duration: bool,
}

impl Edits {
    fn from_arguments(arguments: &Arguments) -> Result<Self, Failure> {
        // Both together may not say how long to simulate.
        edits::parse(&arguments.set, arguments.length.duration)?;
        let set = edits::parse(&arguments.set, None)?;
        Ok(Self { sets_duration: set.iter().any(edits::is_of_duration), set })
    }

    /// The scenario as it is to run, and how long it runs where that is not as long as it says itself.
    ///
    /// Without `--duration` a scenario runs as long as it did for the baseline, as it does with as many seeds.
    fn load(
        &self,
        arguments: &Arguments,
        name: &str,
        known: Option<&Baseline>,
        catalog: &Catalog,
    ) -> Result<(Scenario, Option<String>), Failure> {
        let (scenario, _) = edits::load(Path::new(name), catalog, &self.set)?;
        let then = known.and_then(|known| known.duration(name));
        let wanted = match arguments.length.duration.or(then) {
            Some(wanted) if !self.sets_duration => wanted,
            _ => scenario.duration,
        };
        self.refuse_other_duration(arguments, name, known, wanted, catalog)?;
        if self.sets_duration || wanted == scenario.duration {
            return Ok((scenario, None));
        }
        let mut edits = self.set.clone();
        edits.extend(edits::of_duration(Some(wanted))?);
        let (scenario, _) = edits::load(Path::new(name), catalog, &edits)?;
        Ok((scenario, Some(wanted.to_string())))
    }

    /// Refuses to hold runs of the length `wanted` to figures of runs of another length. A baseline from before lengths were kept has those of
    /// the scenario as it stands.
    fn refuse_other_duration(
        &self,
        arguments: &Arguments,
        name: &str,
        known: Option<&Baseline>,
        wanted: SimDuration,
        catalog: &Catalog,
    ) -> Result<(), Failure> {
        let held = known.filter(|known| known.scenarios.iter().any(|scenario| scenario.scenario == name));
        let Some(known) = held.filter(|_| !arguments.update) else { return Ok(()) };
        let then = match known.simulated(name) {
            Some(then) => then,
            None => edits::load(Path::new(name), catalog, &[])?.0.duration,
        };
        if wanted == then {
            return Ok(());
        }
        let (baseline, scenario) = (arguments.baseline.display().to_string(), name.to_owned());
        Err(Failure::bad_input(match arguments.length.duration {
            Some(_) => CheckError::OtherDuration { baseline, scenario, then, now: wanted },
            None => CheckError::EditedDuration { baseline, scenario, then, now: wanted },
        }))
    }
}

/// The baseline at `path`; `None` if there is none yet and that is allowed.
fn read(path: &Path, may_be_missing: bool) -> Result<Option<Baseline>, Failure> {
    let file = path.display().to_string();
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if may_be_missing && error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(reason) => return Err(Failure::bad_input(CheckError::Unreadable { file, reason })),
    };
    let malformed = |reason: String| Failure::bad_input(CheckError::Malformed { file: file.clone(), reason });
    let baseline: Baseline = serde_json::from_str(&text).map_err(|error| malformed(error.to_string()))?;
    match baseline.flaw() {
        Some(flaw) => Err(malformed(flaw)),
        None => Ok(Some(baseline)),
    }
}

/// The scenarios to run, each once.
fn names(arguments: &Arguments, known: Option<&Baseline>) -> Result<Vec<String>, Failure> {
    let mut names: Vec<String> =
        arguments.scenarios.iter().map(|path| recorded_path(path)).collect::<Result<_, Failure>>()?;
    if names.is_empty() {
        names.extend(
            known.into_iter().flat_map(|baseline| baseline.scenarios.iter().map(|scenario| scenario.scenario.clone())),
        );
        if let Some(gone) = names.iter().find(|name| !Path::new(name).exists()) {
            let baseline = arguments.baseline.display().to_string();
            return Err(Failure::bad_input(CheckError::Gone { baseline, scenario: gone.clone() }));
        }
    }
    names.sort_unstable();
    names.dedup();
    if names.is_empty() { Err(Failure::bad_input(CheckError::Nothing)) } else { Ok(names) }
}

/// Runs a fleet: a result for each cluster with its net cost, and one for the fleet.
fn check_fleet(
    arguments: &Arguments,
    name: &str,
    known: Option<&Baseline>,
) -> Result<Vec<(ScenarioBaseline, String)>, Failure> {
    fleet::reject_options(&[("--set", !arguments.set.is_empty())])?;
    let duration = arguments.length.duration.or_else(|| known.and_then(|known| known.duration(name)));
    let request = fleet::Request {
        file: name.into(),
        duration,
        seed: None,
        policy: None,
        pricing_data: arguments.pricing_data.clone(),
    };
    let fleet = fleet::Fleet::load(request)?;
    let held = known.and_then(|known| known.scenarios.iter().find(|scenario| scenario.scenario == name));
    let replications = arguments.replications.or(held.map(|held| held.replications));
    let replications = replications.or(fleet.loaded.fleet.replications).unwrap_or(FLEET_SEEDS);
    let points = fleet.points(replications, arguments.common.threads, &super::fleet::Watch::on_interrupt())?;
    let currency = fleet.currency()?.to_owned();
    let mut results = Vec::new();
    for (cluster, points) in points {
        let points: Vec<&Point> = points.iter().collect();
        let baseline = ScenarioBaseline::new(name, &cluster, fleet.seed(), replications, &points);
        let simulated = Some(fleet.loaded.clusters[0].scenario.duration.to_string());
        let duration = duration.map(|duration| duration.to_string());
        results.push((ScenarioBaseline { duration, simulated, ..baseline }, currency.clone()));
    }
    Ok(results)
}

/// Seeds of a fleet unless the fleet, the baseline, or the command line sets a number.
const FLEET_SEEDS: u32 = 3;

/// Packs every instance of a suite by every packer.
fn pack(arguments: &Arguments, suite: &str, catalog: &Catalog) -> Result<Vec<(ScenarioBaseline, String)>, Failure> {
    let flags = [("--set", !arguments.set.is_empty()), ("--duration", arguments.length.duration.is_some())];
    if let Some((flag, _)) = flags.into_iter().find(|(_, stated)| *stated) {
        return Err(Failure::bad_input(CheckError::Unchangeable { suite: suite.to_owned(), flag }));
    }
    let packers = [PackerKind::Karpenter, PackerKind::CostAware];
    let packed = pack_all(Path::new(suite), &packers, catalog, arguments.common.threads)?;
    let result = |(packer, instance): &(PackerKind, PackedInstance)| {
        (ScenarioBaseline::of_packing(suite, packer.as_str(), instance), instance.currency.to_owned())
    };
    Ok(packed.iter().map(result).collect())
}

/// Runs every policy of a scenario with the seeds of the baseline. Each result comes with its currency.
fn run(
    arguments: &Arguments,
    name: &str,
    scenario: &Scenario,
    known: Option<&Baseline>,
    catalog: &Catalog,
    console: &mut Console<'_>,
) -> Result<Vec<(ScenarioBaseline, String)>, Failure> {
    let then = known.and_then(|baseline| baseline.scenarios.iter().find(|scenario| scenario.scenario == name));
    let (first_seed, of_baseline) =
        then.map_or((scenario.seed, scenario.replications), |then| (then.first_seed, then.replications));
    let replications = arguments.replications.unwrap_or(of_baseline);
    let plan = Plan {
        settings: 1,
        policies: scenario.policies.iter().map(|policy| policy.name.clone()).collect(),
        seeds: seeds(first_seed, replications),
    };
    let cells: Vec<Cell<'_>> = plan.cells().collect();
    let one = |cell: Cell<'_>| points::simulate(scenario, catalog, cell);
    let points = experiment::simulate(&cells, &[scenario.duration], &one, &arguments.common, console)?;
    if points.len() < cells.len() {
        return Err(Failure::silent(Failure::INTERRUPTED));
    }
    let region = catalog.region(scenario.region.as_str()).map_err(prices::unusable)?;
    let of_policy = |policy: &String| {
        let points: Vec<&Point> =
            points.iter().map(|(_, point)| point).filter(|point| point.policy == *policy).collect();
        let result = ScenarioBaseline::new(name, policy, first_seed, replications, &points);
        (result, region.currency.code().to_owned())
    };
    Ok(plan.policies.iter().map(of_policy).collect())
}

/// Writes the baseline: what was run replaces what there was of the same scenario.
fn update(
    arguments: &Arguments,
    known: Option<Baseline>,
    now: Vec<(ScenarioBaseline, String)>,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let (then, mut tolerances, mut scenarios) =
        known.map_or((MODEL, BTreeMap::new(), Vec::new()), |known| (known.model, known.tolerances, known.scenarios));
    if let Some(tolerance) = arguments.tolerance {
        tolerances.insert("default".to_owned(), tolerance);
    }
    scenarios.retain(|old| !now.iter().any(|(new, _)| new.scenario == old.scenario));
    if let Some(kept) = scenarios.first().filter(|_| then != MODEL) {
        let (file, kept) = (arguments.baseline.display().to_string(), kept.scenario.clone());
        return Err(Failure::bad_input(CheckError::KeptOfOtherModel { file, then, kept }));
    }
    scenarios.extend(now.into_iter().map(|(new, _)| new));
    let baseline = Baseline::new(tolerances, scenarios);
    let json = baseline.to_json().map_err(Failure::of_report)?;
    experiment::write_whole(&arguments.baseline, &json)?;
    let policies = counted(baseline.scenarios.len() as u64, "policy", "policies");
    let of: BTreeSet<&str> = baseline.scenarios.iter().map(|scenario| scenario.scenario.as_str()).collect();
    let scenarios = counted(of.len() as u64, "scenario", "scenarios");
    console.tell(&format!("baseline of {scenarios} with {policies}: {}", arguments.baseline.display()));
    match arguments.format {
        Format::Table => Ok(()),
        Format::Json => console.document(&json),
    }
}

fn conclude(arguments: &Arguments, all: &[(Movement, String)], console: &mut Console<'_>) -> Result<(), Failure> {
    if let Some(path) = &arguments.markdown {
        experiment::write_whole(path, &movements::markdown(all))?;
    }
    if let Some(path) = &arguments.junit {
        experiment::write_whole(path, &movements::junit(all))?;
    }
    match arguments.format {
        Format::Table => console.verdicts(&movements::table(all, console.width()))?,
        Format::Json => {
            let plain: Vec<&Movement> = all.iter().map(|(movement, _)| movement).collect();
            console.json(&plain)?;
        }
    }
    let worse = all.iter().any(|(movement, _)| movement.standing == Standing::Worse);
    if worse { Err(Failure::silent(Failure::WORSE)) } else { Ok(()) }
}
