//! `nodecast sweep`: many settings of one scenario, and which are worth a look.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::edits::Length;
use super::experiment::{self, Bar, Common, Parts};
use super::{Console, Format};
use crate::domain::SimDuration;
use crate::experiment::axes::Sampling;
use crate::experiment::model::MODEL;
use crate::experiment::presentation::sweep_table;
use crate::experiment::{Cell, Point, Question};
use crate::program::simulations::simulate;
use crate::program::sweep::{Request, Sweep, Swept, begin, output_directory};
use crate::program::{Audience, Failure, Prices};
use crate::report::{OutputDirectory, OutputError};
use crate::scenario::Scenario;

/// Try many settings and find the best trade-offs between cost and wait time
///
/// Also reports the cheapest setting that meets all objectives. Writes sweep.html, sweep.json, and sweep.csv to the output directory.
/// Finished simulations are saved as the sweep runs: after an interruption, run the same command again to resume.
#[derive(clap::Args, Debug)]
pub(super) struct Arguments {
    #[command(flatten)]
    request: Request,
    /// Sampling method
    #[arg(long, value_enum, default_value = "latin-hypercube", requires = "sample")]
    sampling: SamplingArgument,
    /// Stop early on settings that another one clearly dominates: it costs no more, waits no longer, and is certainly better in one of the
    /// two. Checks after 5, 10, 20 ... replications
    #[arg(long, conflicts_with = "shard")]
    knockout: bool,
    #[command(flatten)]
    length: Length,
    #[command(flatten)]
    parts: Parts,
    /// Discard saved simulations and start over
    #[arg(long)]
    restart: bool,
    /// Output directory [default: reports/<name>-swept; with --shard, reports/<name>-parts]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// What to print: a table for people, or sweep.json
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    /// Print all columns, however narrow the terminal is
    #[arg(long)]
    wide: bool,
    #[command(flatten)]
    common: Common,
}

/// Sampling method.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum SamplingArgument {
    /// Divide each axis into N equal parts and use each part once
    LatinHypercube,
    /// Draw each value independently
    Random,
}

impl SamplingArgument {
    fn kind(self) -> Sampling {
        match self {
            Self::LatinHypercube => Sampling::LatinHypercube,
            Self::Random => Sampling::Random,
        }
    }
}

/// Finished simulations that are not of this sweep.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("`{}` holds results of a different sweep", path.display())]
#[diagnostic(help("start over with --restart, or choose another directory with --out"))]
struct OtherSweep {
    path: PathBuf,
}

/// Runs the sweep, or what is left of it.
pub(super) fn execute(arguments: &Arguments, console: &mut Console<'_>) -> Result<(), Failure> {
    let sweep = Sweep::load(&Request {
        sampling: arguments.sampling.kind(),
        duration: arguments.length.duration,
        ..arguments.request.clone()
    })?;
    if let Some(shard) = arguments.parts.shard {
        let (out, question) = (arguments.out.as_deref(), sweep.question.clone());
        let one = |cell: Cell<'_>| sweep.simulate(cell);
        return experiment::run_part(question, shard, (&one, &arguments.common), out, &sweep.scenario, console);
    }
    let out = arguments.out.clone().unwrap_or_else(|| output_directory(&sweep.scenario));
    let directory = begin(&out)?;
    let store = Store::open(&unfinished(&out), &sweep.question, arguments.restart)?;
    let Some(points) = finish(arguments, &sweep, &store, console)? else {
        console.tell("stopped; run the same command to resume");
        return Err(Failure::silent(Failure::INTERRUPTED));
    };
    let output = Output { format: arguments.format, wide: arguments.wide, quiet: arguments.common.quiet };
    conclude(&sweep.answer(&points)?, (directory, &out), output, console)?;
    store.remove()
}

/// Runs what is left; `None` if it was stopped.
fn finish(
    arguments: &Arguments,
    sweep: &Sweep,
    store: &Store,
    console: &mut Console<'_>,
) -> Result<Option<Vec<Point>>, Failure> {
    let total = sweep.question.plan().len();
    let known: BTreeMap<usize, &Point> = store.known.iter().map(|(index, point)| (*index, point)).collect();
    if !known.is_empty() && !arguments.common.quiet {
        console.tell(&format!("resuming: {} of {total} simulations already done", known.len()));
    }
    let one = |cell: Cell<'_>| sweep.simulate(cell);
    let mut bar = Bar::telling(console, &arguments.common, |index, point: &Point| store.keep(index, point));
    sweep.in_rounds(arguments.knockout, &mut |cells| {
        let left: Vec<Cell<'_>> = cells.iter().filter(|cell| !known.contains_key(&cell.index)).copied().collect();
        let durations: Vec<SimDuration> = left.iter().map(|cell| sweep.scenarios[cell.setting].duration).collect();
        let new = simulate(&left, &one, arguments.common.threads, &*bar.begin(left.len(), &durations))?;
        let mut new: BTreeMap<usize, Point> = new.into_iter().collect();
        let point = |cell: &Cell<'_>| new.remove(&cell.index).or_else(|| known.get(&cell.index).copied().cloned());
        Ok(cells.iter().map(point).collect())
    })
}

/// Reports on parts that were put together.
pub(super) fn conclude_merged(
    question: Question,
    scenario: Scenario,
    prices: Prices,
    points: Vec<Point>,
    (out, (format, wide, quiet)): (Option<&Path>, (Format, bool, bool)),
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let out = out.map_or_else(|| output_directory(&scenario), Path::to_owned);
    let directory = begin(&out)?;
    let swept = Sweep::new(question, scenario, prices)?.answer(&points)?;
    conclude(&swept, (directory, &out), Output { format, wide, quiet }, console)
}

/// How an answer is printed.
#[derive(Clone, Copy)]
struct Output {
    format: Format,
    wide: bool,
    quiet: bool,
}

/// Writes the report and prints the answer.
fn conclude(
    swept: &Swept,
    (directory, out): (OutputDirectory, &Path),
    Output { format, wide, quiet }: Output,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    swept.write(directory)?;
    match format {
        Format::Table => console.verdicts(&sweep_table::table_within(&swept.answer, console.width(), wide))?,
        Format::Json => console.document(&swept.answer.to_json().map_err(Failure::of_report)?)?,
    }
    if !quiet {
        console.tell(&format!("report: {}", out.join("sweep.html").display()));
    }
    Ok(())
}

/// Finished simulations on disk: the question in the first line, then a line for each.
struct Store {
    path: PathBuf,
    known: Vec<(usize, Point)>,
    file: Mutex<File>,
}

/// The first line of the file of finished simulations.
#[derive(Serialize, Deserialize)]
struct Header {
    program: String,
    program_version: String,
    /// Simulations of another model have other figures.
    model: u32,
    question: Question,
}

impl Store {
    /// Opens the file at `path`, with what it holds if it belongs to `question`.
    fn open(path: &Path, question: &Question, restart: bool) -> Result<Self, Failure> {
        let header = Header {
            program: crate::report::summary::PROGRAM.to_owned(),
            program_version: env!("CARGO_PKG_VERSION").to_owned(),
            model: MODEL,
            question: question.clone(),
        };
        let failed = |action: &'static str| {
            let path = path.to_owned();
            move |reason: std::io::Error| Failure::of_report(OutputError::Io { action, path, reason })
        };
        let first = serde_json::to_string(&header).map_err(Failure::of_report)?;
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(failed("create the directory of"))?;
        }
        let mut known = Vec::new();
        let mut kept = first.clone() + "\n";
        if path.exists() && !restart {
            let mut lines = BufReader::new(File::open(path).map_err(failed("read"))?).lines();
            match lines.next() {
                // Killed before its first line was whole.
                None => {}
                Some(line) if line.as_ref().is_ok_and(|line| *line == first) => {
                    // The last line may be cut off; what follows it was never written.
                    for line in lines.map_while(Result::ok) {
                        let Ok(entry) = serde_json::from_str::<(usize, Point)>(&line) else { break };
                        kept += &line;
                        kept.push('\n');
                        known.push(entry);
                    }
                }
                Some(line) if line.as_ref().is_ok_and(|line| first.starts_with(line.as_str())) => {}
                Some(_) => return Err(Failure::bad_input(OtherSweep { path: path.to_owned() })),
            }
        }
        experiment::write_whole(path, &kept)?;
        let file = OpenOptions::new().append(true).open(path).map_err(failed("write"))?;
        Ok(Self { path: path.to_owned(), known, file: Mutex::new(file) })
    }

    /// Keeps a finished simulation. One that cannot be kept is only run again.
    fn keep(&self, index: usize, point: &Point) {
        let Ok(line) = serde_json::to_string(&(index, point)) else { return };
        if let Ok(mut file) = self.file.lock() {
            let _ = file.write_all(format!("{line}\n").as_bytes());
        }
    }

    /// Removes the file, when the report holds everything.
    fn remove(self) -> Result<(), Failure> {
        std::fs::remove_file(&self.path)
            .map_err(|reason| Failure::of_report(OutputError::Io { action: "remove", path: self.path.clone(), reason }))
    }
}

/// Where finished simulations of a sweep are kept: beside its directory.
fn unfinished(out: &Path) -> PathBuf {
    let mut name = out.file_name().unwrap_or_default().to_owned();
    name.push(".unfinished.jsonl");
    out.with_file_name(name)
}
