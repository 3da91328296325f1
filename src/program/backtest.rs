//! A forecast held against what a cluster recorded.

mod ablation;
pub mod bill;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use super::simulations::{on_threads, shell_line};
use super::{Audience, Failure, Prices, edits, prices};
use crate::domain::words::counted as counted_words;
use crate::domain::{SimDuration, SimTime};
use crate::evidence::backtest::figures::Window;
use crate::evidence::backtest::history::History;
use crate::evidence::backtest::replay::{forecast, not_repeated, with_recorded};
use crate::evidence::backtest::{
    Answer, BillComparison, Findings, Mode, Recorded, SCHEMA_VERSION, Stretch, Variant, findings, naive_stretch,
    split_of, stretch, tables, workloads,
};
use crate::evidence::presentation::{backtest_page, backtest_table};
use crate::experiment::points::{self, Cell, ProgressObserver};
use crate::report::directory::check_written;
use crate::report::{OutputDirectory, OutputError};
use crate::scenario::lints::studies;
use crate::scenario::{Caveats, Edit, Scenario, Warning};
use crate::simulation;
use ablation::{Ablation, Swap};
use bill::{BillRequest, RecordedBill};

/// What to judge by what.
#[derive(clap::Args, Clone, Debug)]
pub struct Request {
    /// Scenario file that simulates the recorded period
    pub scenario: PathBuf,
    /// Recording: a directory written by `nodecast observe` or `nodecast run`
    #[arg(long = "from", value_name = "DIR")]
    pub recorded: PathBuf,
    /// Policy in force during the recording [default: the first in the scenario]
    #[arg(long, value_name = "NAME", visible_alias = "policies")]
    pub policy: Option<String>,
    /// Evaluate only what follows this long after the start of the recording; earlier data may have been used to build the scenario
    /// [default: two thirds of a recording of ten days or more; otherwise evaluate everything]
    #[arg(long, value_name = "DURATION", value_parser = edits::time)]
    pub split: Option<SimDuration>,
    /// What goes into the simulations; the command line has words for it.
    #[arg(skip = Mode::Replay)]
    pub mode: Mode,
    /// Also replace the modelled market with recorded data one part at a time, to show where the error comes from
    #[arg(long)]
    pub ablation: bool,
    /// How many seeds
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub replications: u32,
    /// First seed [default: the scenario's `seed`]
    #[arg(long, value_name = "N", value_parser = edits::seed, allow_negative_numbers = true)]
    pub seed: Option<u64>,
    /// What is changed first; options that state changes are read apart.
    #[arg(skip)]
    pub edits: Vec<Edit>,
    #[command(flatten)]
    #[allow(missing_docs)] // an option of the group has its own words
    pub bill: BillRequest,
    /// Directory of prices to use instead of the built-in ones (same layout as pricing-data/)
    #[arg(long, value_name = "DIR")]
    pub pricing_data: Option<PathBuf>,
}

/// A back-test that has been read and can be run.
pub struct Backtest {
    request: Request,
    prices: Prices,
    scenario: Scenario,
    policy: String,
    recorded: History,
    stretch: Stretch,
    bill: Option<RecordedBill>,
    /// What an ablation swaps beside the market.
    ablation: Option<Ablation>,
    warnings: Vec<Warning>,
}

/// An answer with the curves of its page.
pub struct Answered {
    /// The answer.
    pub answer: Answer,
    /// Nodes first, then each workload.
    pub curves: Vec<workloads::Curve>,
    stretch: Stretch,
    command: String,
}

/// What one set of simulations came to: what is swapped in it, and beside the findings what only the first set is asked for.
struct Judged {
    swapped_in: Vec<Recorded>,
    without_calibration: bool,
    findings: Findings,
    curves: Vec<workloads::Curve>,
    bill: Option<BillComparison>,
}

/// The scenario and the record share nothing, or the record is shorter than what is asked for.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("--mode forecast needs full days before the split; the recording has {days}")]
#[diagnostic(help("use a later --split, a longer recording, or --mode replay"))]
struct NothingKnown {
    days: i64,
}

impl Backtest {
    /// Reads everything that the back-test needs.
    ///
    /// # Errors
    /// If anything of it cannot be used.
    pub fn load(request: Request) -> Result<Self, Failure> {
        let recorded = tables::read(&request.recorded).map_err(Failure::bad_input)?;
        let prices = Prices::open(request.pricing_data.as_deref())?;
        let (scenario, warnings) = edits::load(&request.scenario, prices.catalog(), &request.edits)?;
        let policy = scenario.for_policy(request.policy.as_deref())?.name.to_string();
        let split = request.split.or_else(|| split_of(recorded.duration));
        let stretch = covered(&recorded, &scenario, split)?;
        let mut backtest =
            Self { request, prices, scenario, policy, recorded, stretch, bill: None, ablation: None, warnings };
        backtest.read_bill()?;
        if backtest.request.ablation {
            backtest.ablation = Some(Ablation::load(&backtest)?);
        }
        Ok(backtest)
    }

    /// Reads the bill of the judged time, if one is named. A record without a bill of its own takes its charges from it.
    fn read_bill(&mut self) -> Result<(), Failure> {
        if self.request.bill.files.is_empty() {
            return Ok(());
        }
        let judged = self.stretch.recorded;
        let name = bill::observed_name(&self.request.recorded).unwrap_or_else(|| self.scenario.name.clone());
        let bill = bill::read(&self.request.bill, &name, &self.recorded, judged)?;
        let region = self.prices.catalog().region(self.scenario.region.as_str()).map_err(super::prices::unusable)?;
        bill.refuse_other_currency(region.currency.code())?;
        if self.recorded.charges.is_none() {
            let mut charges = bill.charges(&self.recorded, judged);
            self.recorded.charged_from = judged.from;
            // The naive forecast costs what those days were billed, if they are in the files.
            if let Some(before) = naive_stretch(&self.recorded, judged)
                && let Ok(earlier) = bill::read(&self.request.bill, &name, &self.recorded, before)
            {
                charges.extend(earlier.charges(&self.recorded, before));
                self.recorded.charged_from = before.from;
            }
            self.recorded.charges = Some(charges);
            self.recorded.currency = Some(bill.currency().to_owned());
        }
        self.bill = Some(bill);
        Ok(())
    }

    /// Where the report goes if nobody says otherwise.
    pub fn output_directory(&self) -> PathBuf {
        Path::new("reports").join(format!("{}-backtest", self.scenario.name))
    }

    /// Simulates and judges. `None` if it was stopped before every seed was simulated.
    ///
    /// # Errors
    /// If a simulation cannot be run, or scenario and record share no time.
    pub fn answer(&self, threads: Option<u16>, audience: &mut dyn Audience) -> Result<Option<Answered>, Failure> {
        let sets = self.swaps()?;
        let seeds = points::seeds(self.request.seed.unwrap_or(self.scenario.seed), self.request.replications);
        let durations = [self.scenario.duration];
        let watcher = audience.begin(sets.len() * seeds.len(), &durations);
        let mut judged = Vec::new();
        for (number, set) in sets.into_iter().enumerate() {
            let Some(histories) = self.simulate(&set.scenario, &seeds, number, threads, &*watcher)? else {
                return Ok(None);
            };
            judged.push(self.judged(set, &histories, number == 0));
        }
        drop(watcher);
        let first = judged.remove(0);
        Ok(Some(self.answered(first, judged)))
    }

    /// What the seeds of one set come to; of the main one also curves and the way from the bill.
    fn judged(&self, set: Swap, histories: &[History], is_main: bool) -> Judged {
        let region = self.prices.catalog().region(self.scenario.region.as_str()).ok();
        let (findings, of_workloads) = findings(&self.recorded, histories, self.stretch, region);
        let mut curves = Vec::new();
        if is_main {
            curves.push(workloads::nodes(&self.recorded, histories, self.stretch));
            curves.extend(of_workloads);
        }
        let bill = self.bill.as_ref().filter(|_| is_main).map(|bill| bill.compared(histories, self.stretch.simulated));
        let Swap { swapped_in, without_calibration, .. } = set;
        Judged { swapped_in, without_calibration, findings, curves, bill }
    }

    /// What comes before the judged time, in the simulations.
    fn training(&self) -> Window {
        Window { from: SimTime::ZERO + self.scenario.warm_up, until: self.stretch.simulated.from }
    }

    /// A scenario before anything recorded of the market is swapped in: in a forecast without what was not known at the split.
    fn base(&self, scenario: &Scenario) -> Result<Scenario, Failure> {
        match self.request.mode {
            Mode::Replay => Ok(scenario.clone()),
            Mode::Forecast => {
                let training = self.training();
                let days = training.length().as_secs() / 86_400;
                forecast(scenario, training).ok_or_else(|| Failure::bad_input(NothingKnown { days }))
            }
        }
    }

    /// A scenario with parts of the recorded market in the place of its own.
    fn with_market(&self, base: &Scenario, parts: &[Recorded]) -> Swap {
        let mut set = Swap { swapped_in: Vec::new(), without_calibration: false, scenario: base.clone() };
        for part in parts {
            if let Some(other) = with_recorded(&set.scenario, &self.recorded, *part) {
                set.scenario = other;
                set.swapped_in.push(*part);
            }
        }
        set
    }

    /// What to simulate, with what is swapped in: first what the answer is of, then what else is asked for.
    fn swaps(&self) -> Result<Vec<Swap>, Failure> {
        let base = self.base(&self.scenario)?;
        let main: &[Recorded] = if self.request.mode == Mode::Replay { &Recorded::MARKET } else { &[] };
        let mut sets = vec![self.with_market(&base, main)];
        let Some(ablation) = &self.ablation else { return Ok(sets) };
        let others = [vec![], vec![Recorded::SpotPrices], vec![Recorded::Reclaims], Recorded::MARKET.to_vec()];
        for parts in others {
            let set = self.with_market(&base, &parts);
            if !sets.iter().any(|known| known.swapped_in == set.swapped_in) {
                sets.push(set);
            }
        }
        if !ablation.start_up.is_empty() {
            let mut set = self.with_market(&base, main);
            ablation.start_up.iter().for_each(|change| change.apply(&mut set.scenario));
            set.swapped_in.push(Recorded::StartUp);
            sets.push(set);
        }
        if self.request.mode == Mode::Forecast {
            let mut set = self.with_market(&self.scenario, main);
            set.swapped_in.push(Recorded::Demand);
            sets.push(set);
        }
        if let Some(uncalibrated) = &ablation.uncalibrated {
            let set = self.with_market(&self.base(uncalibrated)?, main);
            sets.push(Swap { without_calibration: true, ..set });
        }
        Ok(sets)
    }

    /// The histories of all seeds, in order; `None` if it was stopped.
    fn simulate(
        &self,
        scenario: &Scenario,
        seeds: &[u64],
        set: usize,
        threads: Option<u16>,
        watcher: &dyn ProgressObserver,
    ) -> Result<Option<Vec<History>>, Failure> {
        let variant = scenario.for_policy(Some(&self.policy))?;
        let stopped = AtomicBool::new(false);
        let one = |(place, seed): (usize, &u64)| {
            if watcher.stopped() {
                stopped.store(true, Ordering::Relaxed);
                return Ok(None);
            }
            let outcome = simulation::run(scenario, variant, self.prices.catalog(), *seed, &mut |_| {});
            let outcome = outcome.map_err(prices::unusable)?;
            let index = set * seeds.len() + place;
            watcher
                .done(index, &points::point(Cell { index, setting: set, policy: &self.policy, seed: *seed }, &outcome));
            Ok(Some(History::from_outcome(&outcome)))
        };
        let run = || seeds.par_iter().enumerate().with_max_len(1).map(one).collect::<Result<Vec<_>, Failure>>();
        let histories = on_threads(threads, run)??;
        Ok((!stopped.load(Ordering::Relaxed)).then(|| histories.into_iter().flatten().collect()))
    }

    fn answered(&self, main: Judged, others: Vec<Judged>) -> Answered {
        let stretch = self.stretch;
        let calendar = |at: SimTime| {
            let micros = self.recorded.start.as_microsecond() + at.as_micros();
            jiff::Timestamp::from_microsecond(micros).unwrap_or(self.recorded.start).to_string()
        };
        let currency = self.recorded.currency.clone();
        let region = self.prices.catalog().region(self.scenario.region.as_str()).ok();
        let warnings = self.warnings(&main.findings);
        let answer = Answer {
            schema_version: SCHEMA_VERSION,
            program: env!("CARGO_PKG_NAME"),
            program_version: env!("CARGO_PKG_VERSION"),
            scenario: self.scenario.name.clone(),
            policy: self.policy.clone(),
            recorded: self.request.recorded.display().to_string(),
            mode: self.request.mode,
            swapped_in: main.swapped_in,
            currency: currency.or_else(|| region.map(|region| region.currency.code().to_owned())),
            judged_from: calendar(stretch.recorded.from),
            judged_until: calendar(stretch.recorded.until),
            in_sample: self.request.split.or_else(|| split_of(self.recorded.duration)).is_none(),
            first_seed: self.request.seed.unwrap_or(self.scenario.seed),
            replications: self.request.replications.into(),
            findings: main.findings,
            ablation: others
                .into_iter()
                .map(|other| Variant {
                    swapped_in: other.swapped_in,
                    without_calibration: other.without_calibration,
                    findings: other.findings,
                })
                .collect(),
            bill: main.bill,
            warnings,
        };
        Answered { answer, curves: main.curves, stretch, command: self.command() }
    }

    fn warnings(&self, findings: &Findings) -> Caveats {
        let mut all = self.scenario.caveats();
        if !findings.unpriced.is_empty() {
            all.add(&studies::BACKTEST_PRICES, &*format!(
                "no price in {} for nodes of {}: nodes at one price list are not judged. Set `--pricing-data` or `--bill`",
                self.scenario.region,
                findings.unpriced.join(", ")
            ));
        }
        if self.recorded.nodes.is_none() {
            all.add(&studies::BACKTEST_NODES, "nodes: none were recorded. Node-hours and launches are not judged");
        }
        if self.recorded.pods.is_none() {
            all.add(
                &studies::BACKTEST_PODS,
                "pods: none were recorded. Pods that needed a new node and their wait are not judged",
            );
        }
        if self.recorded.charges.is_none() {
            all.add(
                &studies::BACKTEST_PRICES,
                "no bill was recorded: cost is judged only at the prices of the simulations and of the catalogue",
            );
        }
        if self.request.mode == Mode::Replay && self.recorded.charges.is_some() && self.recorded.spot_prices.is_none() {
            all.add(
                &studies::BACKTEST_SPOT_PRICES,
                "Spot prices are recorded for pools that were used and modelled for all others",
            );
        }
        let pools: BTreeSet<_> =
            self.recorded.spot_prices.iter().flatten().map(|price| (price.instance_type, price.zone)).collect();
        if self.request.mode == Mode::Replay && !pools.is_empty() {
            let pools = counted_words(pools.len() as u64, "pool is", "pools are");
            all.add(&studies::BACKTEST_SPOT_PRICES, &*format!(
                "Spot prices of {pools} recorded; those of all others are modelled, and decide which types are launched"
            ));
        }
        if self.request.mode == Mode::Forecast {
            not_repeated(&self.scenario, self.training())
                .iter()
                .for_each(|text| all.add(&studies::BACKTEST_NOT_REPEATED, text.as_str()));
        }
        let counted = &self.recorded.counted;
        if counted.taken_for_on_demand > 0 {
            let nodes = counted_words(counted.taken_for_on_demand as u64, "node was", "nodes were");
            all.add(
                &studies::BACKTEST_CAPACITY_TYPE,
                &*format!("capacity type of {nodes} not recorded; assuming On-Demand, the default for node groups"),
            );
        }
        if counted.nodes_alone {
            all.add(&studies::BACKTEST_NODES,
                "nodes were recorded by how many there were of a kind, not one by one: launches and what follows them are told by when there were more",
            );
        }
        match (self.recorded.knows_ends(), counted.ends.is_none()) {
            (true, _) => {}
            (false, true) => all.add(&studies::BACKTEST_REASONS,
                "node removal reasons were not recorded: removals and reclaims are not evaluated, and recorded reclaims are not replayed",
            ),
            (false, false) => all.add(&studies::BACKTEST_REASONS,
                "why each node ended was not recorded: removals and reclaims are judged by how many Karpenter counted, and none is swapped in",
            ),
        }
        if !self.recorded.knows_evictions() && counted.evictions.is_none() {
            all.add(&studies::BACKTEST_EVICTIONS, "pod evictions were not recorded, so they are not evaluated");
        }
        self.bill
            .iter()
            .flat_map(RecordedBill::warnings)
            .for_each(|text| all.add(&studies::BACKTEST_BILL, text.as_str()));
        all.extend(Caveats::from_warnings(&self.warnings));
        all
    }

    /// The command line that repeats the back-test.
    fn command(&self) -> String {
        let request = &self.request;
        let (scenario, recorded) = (request.scenario.display().to_string(), request.recorded.display().to_string());
        let (replications, seed) =
            (request.replications.to_string(), request.seed.unwrap_or(self.scenario.seed).to_string());
        let mode = if request.mode == Mode::Replay { "replay" } else { "forecast" };
        let mut words = vec!["nodecast", "backtest", &scenario, "--from", &recorded, "--policy", &self.policy];
        words.extend(["--mode", mode, "--replications", &replications, "--seed", &seed]);
        let split = request.split.map(|split| split.to_string());
        words.extend(split.iter().flat_map(|split| ["--split", split.as_str()]));
        words.extend(request.ablation.then_some("--ablation"));
        let bill = bill_words(&request.bill);
        words.extend(bill.iter().map(String::as_str));
        let options = edits::options(&edits::setting(&request.edits));
        words.extend(options.iter().map(String::as_str));
        let prices = request.pricing_data.as_ref().map(|directory| directory.display().to_string());
        words.extend(prices.iter().flat_map(|directory| ["--pricing-data", directory.as_str()]));
        shell_line(&words)
    }
}

/// The stretch of a record that a scenario simulates, from a split on.
fn covered(recorded: &History, scenario: &Scenario, split: Option<SimDuration>) -> Result<Stretch, Failure> {
    let counts_from = SimTime::ZERO + scenario.warm_up;
    let simulated = History { counts_from, ..History::unknown(scenario.start, scenario.duration) };
    stretch(recorded, &simulated, split).map_err(Failure::bad_input)
}

/// The options that name a bill.
fn bill_words(request: &BillRequest) -> Vec<String> {
    let files = request.files.iter().map(|file| ("--bill", file.display().to_string()));
    let cluster = request.cluster.iter().map(|name| ("--cluster", name.clone()));
    let shares = request.shares.iter().map(|share| ("--share", share.clone()));
    files.chain(cluster).chain(shares).flat_map(|(option, value)| [option.to_owned(), value]).collect()
}

impl Answered {
    /// The table for people, no wider than `width` characters if that is known.
    pub fn table(&self, width: Option<usize>) -> String {
        backtest_table::table(&self.answer, width)
    }

    /// The answer as JSON.
    ///
    /// # Errors
    /// If it cannot be written, which nothing is known to cause.
    pub fn json(&self) -> Result<String, Failure> {
        serde_json::to_string_pretty(&self.answer).map(|json| json + "\n").map_err(Failure::of_report)
    }

    /// Writes backtest.html and backtest.json into a directory that was [begun](begin).
    ///
    /// # Errors
    /// If they cannot be written; what stood there is then as it was.
    pub fn write(&self, directory: OutputDirectory) -> Result<(), Failure> {
        let json = self.json()?;
        let page = backtest_page::render(&self.answer, &self.curves, self.stretch.recorded, &self.command);
        directory.file("backtest.json", |output| output.write_all(json.as_bytes())).map_err(Failure::of_report)?;
        directory.file("backtest.html", |output| output.write_all(page.as_bytes())).map_err(Failure::of_report)?;
        directory.commit().map(|_| ()).map_err(Failure::of_report)
    }
}

/// Begins the directory of a report, in place of an earlier back-test.
///
/// # Errors
/// If something else stands there, another run writes there, or the system refuses.
pub fn begin(out: &Path) -> Result<OutputDirectory, Failure> {
    OutputDirectory::begin_if(out, check_replaceable).map_err(Failure::of_report)
}

/// Whether `target` may go: an earlier back-test, with nothing added.
///
/// # Errors
/// If it may not, or cannot be looked into.
fn check_replaceable(target: &Path) -> Result<(), OutputError> {
    check_written(target, "backtest.json", &|_, name| name == "backtest.html")
}
