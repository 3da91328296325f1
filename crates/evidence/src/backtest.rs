//! A forecast held against what happened: a recorded history, and simulations of the same time.
//!
//! The recorded time is split: what comes before the split may have been used to set the scenario up, what comes after it is
//! judged. *Replay* puts the judged time's own traffic, Spot prices and reclaims into the simulations, so that what is off is the
//! simulator's; *forecast* knows only what was known at the split. Every figure has a verdict of its own against a stated tolerance
//! and the spread of seeds, and is held beside a naive forecast, the same hours of days before.
//!
//! What must not live here: reading or fitting what clusters record (the crate `nodecast-observed`), printing.

mod answer;
mod counted_nodes;
pub mod figures;
mod floors;
pub mod history;
mod parameters;
pub mod replay;
pub mod tables;
pub mod verdict;
pub mod workloads;

use std::sync::Arc;

use serde::Serialize;

pub use answer::{Answer, BillComparison, BillLink, BillPart, SCHEMA_VERSION, Variant};
pub use history::History;
pub use parameters::Change;
pub use replay::Recorded;
pub use verdict::{Judged, Verdict};
pub use workloads::{Curve, WorkloadResult, Workloads};

use figures::{Basis, HeldPrices, Reading, Window, hours_by_type, readings};
use verdict::{judge, share};

use super::figures::Unit;
use super::statistics::Estimate;
use crate::catalog::Region;
use crate::domain::{SimDuration, SimTime, Symbol};
use crate::report::summary::rounded;

const DAY_SECONDS: i64 = 86_400;
const HOUR_SECONDS: i64 = 3_600;
/// The figure of what was billed.
const COST: &str = "cost_per_day";

/// What goes into the simulations of the judged time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Its own traffic, and of the market what was recorded.
    Replay,
    /// What was known at the split.
    Forecast,
}

/// The judged stretch, in both histories.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stretch {
    /// In the recorded one.
    pub recorded: Window,
    /// In the simulated ones.
    pub simulated: Window,
}

/// Why nothing can be judged.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error, miette::Diagnostic)]
pub enum StretchError {
    /// The scenario simulates another time.
    #[error("the scenario simulates {simulated}, and {recorded} was recorded: they share nothing that could be judged")]
    #[diagnostic(help(
        "make the scenario of the record, which replays its demand: nodecast init DIR --from cluster.yaml --from RECORD; or set its `start`, `duration` and loads to those of the recorded time"
    ))]
    Apart {
        /// From when to when.
        simulated: String,
        /// From when to when.
        recorded: String,
    },
    /// The split leaves nothing to judge.
    #[error("the split at {at} leaves nothing to judge: what was recorded and is simulated ends at {end}")]
    #[diagnostic(help("split earlier, for example with --split {middle}"))]
    Late {
        /// The split.
        at: String,
        /// The end.
        end: String,
        /// How long after the start of the record the middle of what there is lies.
        middle: SimDuration,
    },
}

/// The stretch that is judged: from `split` on, counted from the start of the record, or all that both cover.
///
/// # Errors
/// If nothing is left.
pub fn stretch(recorded: &History, simulated: &History, split: Option<SimDuration>) -> Result<Stretch, StretchError> {
    let shift = recorded.start.as_microsecond() - simulated.start.as_microsecond();
    let in_record = |at: SimTime| SimTime::from_micros(at.as_micros() - shift);
    let covered_from = recorded.counts_from.max(in_record(simulated.counts_from)).max(SimTime::ZERO);
    let until = recorded.end().min(in_record(simulated.end()));
    let calendar = |history: &History, at: SimTime| {
        let instant = jiff::Timestamp::from_microsecond(history.start.as_microsecond() + at.as_micros());
        instant.map_or_else(|_| String::from("the end of time"), |instant| instant.to_string())
    };
    if covered_from >= until {
        let span =
            |history: &History| format!("{} to {}", calendar(history, SimTime::ZERO), calendar(history, history.end()));
        return Err(StretchError::Apart { simulated: span(simulated), recorded: span(recorded) });
    }
    let from = covered_from.max(SimTime::ZERO + split.unwrap_or(SimDuration::ZERO));
    if from >= until {
        let middle = i64::midpoint(covered_from.as_secs(), until.as_secs());
        // An hour is exact enough, where there are any.
        let middle = if middle > HOUR_SECONDS { middle / HOUR_SECONDS * HOUR_SECONDS } else { middle };
        return Err(StretchError::Late {
            at: calendar(recorded, from),
            end: calendar(recorded, until),
            middle: SimDuration::from_secs(middle),
        });
    }
    let in_simulation = |at: SimTime| SimTime::from_micros(at.as_micros() + shift);
    Ok(Stretch {
        recorded: Window { from, until },
        simulated: Window { from: in_simulation(from), until: in_simulation(until) },
    })
}

/// Where the record is split if nobody says so: at two thirds, on a whole day, where at least seven days come before and three
/// after; else nowhere.
pub fn split_of(duration: SimDuration) -> Option<SimDuration> {
    let days = duration.as_secs() / DAY_SECONDS;
    (days >= 10).then(|| SimDuration::from_secs((days * 2 / 3).clamp(7, days - 3) * DAY_SECONDS))
}

/// A figure, judged.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct FigureResult {
    /// Its stable name.
    pub name: String,
    /// Its name for people.
    pub label: String,
    /// What it is measured in.
    pub unit: Unit,
    /// The error up to which it agrees, as a share.
    pub tolerance: f64,
    /// Observed, simulated, and what follows.
    #[serde(flatten)]
    pub judged: Judged,
    /// The naive forecast; `null` without one.
    pub naive: Option<f64>,
    /// Its error, as a share.
    pub naive_error: Option<f64>,
    /// One less the error over the naive one: above 0 where the simulation is nearer.
    pub skill: Option<f64>,
}

/// How many figures came out how.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, schemars::JsonSchema)]
pub struct Tally {
    /// Figures judged, those of workloads among them.
    pub figures: u64,
    /// That agree.
    pub agrees: u64,
    /// Whose error is small and more than chance explains.
    pub small_but_real: u64,
    /// That seeds leave open.
    pub cannot_tell: u64,
    /// That differ.
    pub differs: u64,
    /// Further off than chance explains, of those that seeds differ in.
    pub beyond_chance: u64,
    /// How many would be by chance alone.
    pub beyond_chance_expected: f64,
}

/// What a back-test found.
#[derive(Clone, PartialEq, Debug, Default, Serialize, schemars::JsonSchema)]
pub struct Findings {
    /// The figures of the cluster.
    pub figures: Vec<FigureResult>,
    /// Each workload.
    pub workloads: Vec<WorkloadResult>,
    /// How they came out.
    pub tally: Tally,
    /// Parameters that are worth changing, for the figures that differ.
    pub changes: Vec<Change>,
    /// The mean error of the cost over the seeds with its interval; of nodes at one price list where no bill is known.
    pub cost_error: Option<Estimate>,
    /// How much earlier the days of the naive forecast are; `null` without any.
    pub naive_days: Option<i64>,
    /// Hours of instance types, those with most first.
    pub types: Vec<TypeHours>,
    /// Kinds of nodes without any price, for which nodes at one price list are not judged.
    pub unpriced: Vec<String>,
}

/// Hours of an instance type a day. Which types there are of a size is luck of prices: they are shown and not judged.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct TypeHours {
    /// The type.
    pub instance_type: String,
    /// In the record.
    pub observed: f64,
    /// In the simulations, on average.
    pub simulated: f64,
}

fn type_hours(recorded: &History, simulations: &[History], stretch: Stretch, basis: Basis) -> Vec<TypeHours> {
    let days = stretch.recorded.length().as_secs_f64() / DAY_SECONDS as f64;
    let mut all: std::collections::BTreeMap<Symbol, (f64, f64)> = std::collections::BTreeMap::new();
    for (kind, hours) in hours_by_type(recorded, stretch.recorded, basis) {
        all.entry(kind).or_default().0 += hours / days;
    }
    for (kind, hours) in simulations.iter().flat_map(|simulation| hours_by_type(simulation, stretch.simulated, basis)) {
        all.entry(kind).or_default().1 += hours / days / simulations.len() as f64;
    }
    let row = |(kind, (observed, simulated)): (Symbol, (f64, f64))| TypeHours {
        instance_type: kind.to_string(),
        observed: rounded(observed, 6),
        simulated: rounded(simulated, 6),
    };
    let mut rows: Vec<TypeHours> = all.into_iter().map(row).collect();
    rows.sort_by(|one, other| {
        let most = |type_hours: &TypeHours| type_hours.observed.max(type_hours.simulated);
        most(other).total_cmp(&most(one)).then(one.instance_type.cmp(&other.instance_type))
    });
    rows
}

/// Judges the stretch by simulations; the catalogue of the region has the prices of what neither the record nor they paid for. With the
/// findings come the replicas of each workload as curves, in their order.
pub fn findings(
    recorded: &History,
    simulations: &[History],
    stretch: Stretch,
    catalogue: Option<Arc<Region>>,
) -> (Findings, Vec<Curve>) {
    let basis = Basis::from_recorded(recorded);
    let mut prices = HeldPrices::from_histories(std::iter::once(recorded).chain(simulations));
    if let Some(region) = catalogue {
        prices = prices.with_catalogue(region);
    }
    let mut unpriced = prices.unknown_of(recorded, stretch.recorded, basis);
    unpriced.extend(simulations.iter().flat_map(|simulation| prices.unknown_of(simulation, stretch.simulated, basis)));
    // A sum that lacks some nodes on one side says nothing.
    let prices = unpriced.is_empty().then_some(&prices);
    let observed = readings(recorded, stretch.recorded, basis, prices);
    let of_seeds: Vec<Vec<Reading>> =
        simulations.iter().map(|history| readings(history, stretch.simulated, basis, prices)).collect();
    let naive_days = naive_days(recorded, stretch.recorded);
    let before = naive_days.map(|days| earlier(stretch.recorded, days));
    let naive = before.map(|before| {
        let basis = if before.from < recorded.charged_from { basis.without_charges() } else { basis };
        readings(recorded, before, basis, prices)
    });
    let figures = figures(&observed, &of_seeds, naive.as_deref());
    let cost_error = cost_error(&observed, &of_seeds);
    let Workloads { results: workloads, curves } = Workloads::new(recorded, simulations, stretch, before);
    let (tally, changes) = (tally(&figures, &workloads), parameters::changes(&figures, &workloads));
    let types = type_hours(recorded, simulations, stretch, basis);
    let unpriced = unpriced.into_iter().collect();
    (Findings { figures, workloads, tally, changes, cost_error, naive_days, types, unpriced }, curves)
}

/// How many days earlier lies a stretch of the same hours that was recorded whole: a week if there is one, else as many as the
/// judged stretch lasts.
fn naive_days(recorded: &History, judged: Window) -> Option<i64> {
    let days = (judged.length().as_secs() + DAY_SECONDS - 1) / DAY_SECONDS;
    let weeks = (days + 6) / 7 * 7;
    [weeks, days].into_iter().find(|days| earlier(judged, *days).from >= recorded.counts_from.max(SimTime::ZERO))
}

/// The stretch of the naive forecast.
pub fn naive_stretch(recorded: &History, judged: Window) -> Option<Window> {
    naive_days(recorded, judged).map(|days| earlier(judged, days))
}

fn earlier(window: Window, days: i64) -> Window {
    let back = |at: SimTime| SimTime::from_micros(at.as_micros() - days * DAY_SECONDS * 1_000_000);
    Window { from: back(window.from), until: back(window.until) }
}

fn value_of<'r>(readings: &'r [Reading], name: &str) -> Option<&'r Reading> {
    readings.iter().find(|reading| reading.name == name)
}

/// The value of a figure in other readings: 0 of what they lack, where lacking it means that there was nothing of it.
fn value_in(readings: &[Reading], figure: &Reading) -> Option<f64> {
    match value_of(readings, &figure.name) {
        Some(reading) => reading.value,
        None => figure.absent_is_zero.then_some(0.0),
    }
}

fn figures(observed: &[Reading], of_seeds: &[Vec<Reading>], naive: Option<&[Reading]>) -> Vec<FigureResult> {
    let mut all: Vec<&Reading> = observed.iter().collect();
    for reading in of_seeds.iter().flatten() {
        if reading.absent_is_zero && !all.iter().any(|known| known.name == reading.name) {
            // What only simulations have stands behind its like.
            let family = |name: &str| name.split('.').next().map(str::to_owned);
            let place = all.iter().rposition(|known| family(&known.name) == family(&reading.name));
            all.insert(place.map_or(all.len(), |place| place + 1), reading);
        }
    }
    let judged = all.into_iter().filter_map(|figure| {
        let happened = value_in(observed, figure)?;
        let values: Vec<f64> = of_seeds.iter().filter_map(|readings| value_in(readings, figure)).collect();
        let judged = judge(happened, &values, figure.tolerance, figure.floor)?;
        let is_known = |naive: &&[Reading]| figure.name != COST || value_of(naive, COST).is_some();
        let naive = naive.filter(is_known).and_then(|naive| value_in(naive, figure));
        let naive_error = naive.and_then(|naive| share(naive - happened, happened));
        Some(FigureResult {
            name: figure.name.clone(),
            label: figure.label.clone(),
            unit: figure.unit,
            tolerance: figure.tolerance,
            judged,
            naive,
            naive_error,
            skill: skill(judged.error, naive_error),
        })
    });
    judged.collect()
}

fn skill(error: Option<f64>, naive: Option<f64>) -> Option<f64> {
    let (error, naive) = (error?.abs(), naive?.abs());
    (naive > 0.0).then(|| 1.0 - error / naive)
}

fn cost_error(observed: &[Reading], of_seeds: &[Vec<Reading>]) -> Option<Estimate> {
    let figure = value_of(observed, COST).or_else(|| value_of(observed, "cost_at_held_prices_per_day"))?;
    let happened = figure.value.filter(|value| *value > 0.0)?;
    let errors: Vec<f64> =
        of_seeds.iter().filter_map(|readings| Some((value_in(readings, figure)? - happened) / happened)).collect();
    Estimate::from_values(&errors)
}

/// Whether seeds differ so far that chance has a say. CPU that follows recorded demand is the same in all of them but for its rounding, and
/// any error would be many deviations.
fn varies(judged: &Judged) -> bool {
    /// As a share of what happened.
    const LEAST: f64 = 0.001;
    judged.high.is_none_or(|high| high - judged.simulated >= LEAST * judged.observed.abs())
}

fn tally(figures: &[FigureResult], workloads: &[WorkloadResult]) -> Tally {
    let of_workloads = workloads.iter().flat_map(WorkloadResult::judged);
    let mut tally = Tally::default();
    for judged in figures.iter().map(|figure| &figure.judged).chain(of_workloads) {
        tally.figures += 1;
        match judged.verdict {
            Verdict::Agrees => tally.agrees += 1,
            Verdict::SmallButReal => tally.small_but_real += 1,
            Verdict::CannotTell => tally.cannot_tell += 1,
            Verdict::Differs => tally.differs += 1,
        }
        if judged.z.is_some() && varies(judged) {
            tally.beyond_chance_expected += 0.05;
            tally.beyond_chance += u64::from(judged.beyond_chance);
        }
    }
    tally.beyond_chance_expected = rounded(tally.beyond_chance_expected, 6);
    tally
}
