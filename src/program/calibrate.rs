//! What a scenario assumes, fitted to records, and what each value changes.

use std::fs;
use std::path::{Path, PathBuf};

use nodecast_observed::claims::{self, History, Instant, Sources, Window};

use super::simulations::simulate;
use super::{Audience, Failure, Prices, edits};
use crate::evidence::calibration::{Calibration, Effect, effect, fit, fragment};
use crate::experiment::points::{self, Cell, Plan, Point, seeds};
use crate::report::directory::write_whole;
use crate::scenario::{Edit, Limits, Scenario};

/// What to fit to what.
#[derive(clap::Args, Clone, Debug)]
pub struct Request {
    /// The scenario file
    pub scenario: PathBuf,
    /// Recorded data: files, directories of files, or report directories
    #[arg(long, value_name = "PATH", required = true, num_args = 1..)]
    pub from: Vec<PathBuf>,
    /// Start of complete recording, for example 2026-10-13T00:00:00Z [default: the first timestamp]
    #[arg(long, value_name = "TIME", value_parser = instant, requires = "until")]
    pub since: Option<Instant>,
    /// End of complete recording; anything still running then counts as not ended [default: the last timestamp]
    #[arg(long, value_name = "TIME", value_parser = instant, requires = "since")]
    pub until: Option<Instant>,
    /// Directory of prices to use instead of the built-in ones (same layout as pricing-data/)
    #[arg(long, value_name = "DIR")]
    pub pricing_data: Option<PathBuf>,
}

fn instant(text: &str) -> Result<Instant, String> {
    Instant::parse(text).ok_or_else(|| "use RFC 3339, for example 2026-10-13T00:00:00Z".to_owned())
}

/// Records that have been read, and what is fitted to them.
pub struct Calibrate {
    prices: Prices,
    scenario: Scenario,
    /// What was recorded.
    pub history: History,
    /// What was fitted.
    pub calibration: Calibration,
}

/// Instants that are in no order.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("--until {until} is before --since {since}")]
#[diagnostic(help("set --until later than --since"))]
struct Backwards {
    since: Instant,
    until: Instant,
}

/// A part of an observation, which is there only as a whole.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("`{folder}` holds sums of all of its window, from {from} to {until}, which cannot be taken apart")]
#[diagnostic(help(
    "observe the part alone and calibrate by that, as with nodecast observe --window 2d --to TIME --out part; of a simulation run the part alone"
))]
struct OfAPart {
    folder: String,
    from: Instant,
    until: Instant,
}

/// A file that is none of ours.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("`{0}` exists and is not a calibration file")]
#[diagnostic(help("choose another file with --out; only files written by `nodecast calibrate` are overwritten"))]
struct NotOurs(String);

impl Calibrate {
    /// Reads scenario and records, and fits.
    ///
    /// # Errors
    /// If anything of it cannot be used.
    pub fn load(request: &Request) -> Result<Self, Failure> {
        let prices = Prices::open(request.pricing_data.as_deref())?;
        let stated = crate::scenario::stated(&request.scenario, &Limits::default())?;
        // A value that was fitted before is not what is assumed.
        let without = stated.contains("calibration").then(|| Edit::new("calibration", "null")).transpose()?;
        let (scenario, _) = edits::load(&request.scenario, prices.catalog(), without.as_slice())?;
        let window = window(request)?;
        refuse_a_part(&request.from, window)?;
        let history = claims::read(&Sources { paths: request.from.clone(), window })?;
        let region = prices.catalog().region(scenario.region.as_str()).map_err(super::prices::unusable)?;
        let policy = scenario.for_policy(None)?;
        let calibration = fit(&history, (&scenario, policy), &region, &stated);
        Ok(Self { prices, scenario, history, calibration })
    }

    /// The name of the policy that effects are shown for.
    ///
    /// # Errors
    /// If the scenario has none.
    pub fn policy(&self) -> Result<&str, Failure> {
        Ok(&self.scenario.for_policy(None)?.name)
    }

    /// Simulates the scenario's first policy as it is, and with each fitted value in the place of what it has; the same seeds each time.
    /// The values that change the answer most come first. Empty if it was stopped.
    ///
    /// # Errors
    /// If a simulation cannot be run.
    pub fn effects(
        &self,
        replications: u32,
        threads: Option<u16>,
        audience: &mut dyn Audience,
    ) -> Result<Vec<Effect>, Failure> {
        let changes = self.calibration.parameters.iter().filter_map(|one| Some((&one.name, one.change.as_ref()?)));
        let changes: Vec<_> = changes.collect();
        let mut variants = vec![self.scenario.clone()];
        for (_, change) in &changes {
            let mut variant = self.scenario.clone();
            change.apply(&mut variant);
            variants.push(variant);
        }
        let plan = Plan {
            settings: variants.len(),
            policies: vec![self.policy()?.to_owned()],
            seeds: seeds(self.scenario.seed, replications),
        };
        let cells: Vec<Cell<'_>> = plan.cells().collect();
        let one = |cell: Cell<'_>| points::simulate(&variants[cell.setting], self.prices.catalog(), cell);
        let watcher = audience.begin(cells.len(), &[self.scenario.duration]);
        let points = simulate(&cells, &one, threads, &*watcher)?;
        if points.len() < cells.len() {
            return Ok(Vec::new());
        }
        let points: Vec<&Point> = points.iter().map(|(_, point)| point).collect();
        let count = plan.seeds.len();
        let of = |setting: usize| &points[setting * count..(setting + 1) * count];
        let effects = changes.iter().enumerate().map(|(number, (name, _))| effect(name, of(0), of(number + 1)));
        let mut effects: Vec<Effect> = effects.collect();
        effects.sort_by(|a, b| b.most().total_cmp(&a.most()));
        Ok(effects)
    }

    /// The currency of amounts.
    pub fn currency(&self) -> Result<String, Failure> {
        let region = self.prices.catalog().region(self.scenario.region.as_str()).map_err(super::prices::unusable)?;
        Ok(region.currency.code().to_owned())
    }

    /// Writes the fragment.
    ///
    /// # Errors
    /// If something else is in its place, or the system refuses; what was there is then as it was.
    pub fn write(&self, out: &Path) -> Result<(), Failure> {
        check(out)?;
        let mut about: Vec<String> = Vec::new();
        for source in &self.history.sources {
            about.push(format!("from {}: {}, {} entries", source.file, source.kind, source.taken));
        }
        let text = fragment::yaml(&self.calibration, &about);
        write_whole(out, &text).map_err(Failure::of_report)
    }
}

/// Whether the fragment may be written there.
///
/// # Errors
/// If something else is there.
pub fn check(out: &Path) -> Result<(), Failure> {
    if fs::symlink_metadata(out).is_err() {
        return Ok(());
    }
    let is_ours = fs::read_to_string(out).is_ok_and(|text| text.starts_with(fragment::HEAD));
    if is_ours { Ok(()) } else { Err(Failure::bad_input(NotOurs(out.display().to_string()))) }
}

/// The time of the records, where it is stated: an end that is not is as far away as can be.
fn window(request: &Request) -> Result<Option<Window>, Failure> {
    match (request.since, request.until) {
        (Some(since), Some(until)) if until <= since => Err(Failure::bad_input(Backwards { since, until })),
        (Some(from), Some(until)) => Ok(Some(Window { from, until })),
        _ => Ok(None),
    }
}

/// Refuses to take a part of an observation or a run: its sums are of its whole window.
fn refuse_a_part(folders: &[PathBuf], window: Option<Window>) -> Result<(), Failure> {
    let Some(window) = window else { return Ok(()) };
    for folder in folders {
        let (from, Some(seconds)) = claims::span(folder)? else { continue };
        let until = from.plus_seconds(seconds);
        if window.from > from || window.until < until {
            let folder = folder.display().to_string();
            return Err(Failure::bad_input(OfAPart { folder, from, until }));
        }
    }
    Ok(())
}

/// How a scenario names the fragment: relative to its own folder where it lies below that, else by its whole path.
pub fn named_in(scenario: &Path, out: &Path) -> String {
    let whole = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let out = whole(out);
    let folder = whole(scenario).parent().map(Path::to_owned);
    let below = folder.and_then(|folder| out.strip_prefix(&folder).map(Path::to_owned).ok());
    below.unwrap_or(out).display().to_string()
}
