//! What the subcommands that run many simulations have in common: options, threads, parts, and where output goes.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::Console;
use crate::domain::SimDuration;
use crate::domain::words::counted;
use crate::experiment::points::{Cell, Point, ProgressObserver};
use crate::experiment::question::{Answer, Part};
use crate::experiment::{Question, Shard};
use crate::program::simulations::{self, One};
use crate::program::{Audience, Failure};
use crate::report::directory;
use crate::scenario::Scenario;

/// Options of every experiment.
#[derive(clap::Args, Debug)]
pub(super) struct Common {
    /// Simulations to run in parallel; does not change the result [default: one per CPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
    /// Print only the result: no progress, no report path
    #[arg(long, short)]
    pub quiet: bool,
}

/// `--shard`: a share of the simulations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ShardArgument {
    /// Which one; `None` to ask the environment.
    number: Option<usize>,
    count: usize,
}

/// Where engines that start many copies of a program tell each its number, and the number of the first.
const INDEX_VARIABLES: [(&str, usize); 3] =
    [("JOB_COMPLETION_INDEX", 0), ("AWS_BATCH_JOB_ARRAY_INDEX", 0), ("SLURM_ARRAY_TASK_ID", 0)];

impl FromStr for ShardArgument {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "use `2/8`, or `auto/8` to read the index from the environment".to_owned();
        let (number, count) = text.split_once('/').ok_or_else(wrong)?;
        let count: usize = count.parse().map_err(|_| wrong())?;
        let number = if number == "auto" { None } else { Some(number.parse::<usize>().map_err(|_| wrong())?) };
        match number {
            _ if !(1..=1_000_000).contains(&count) => Err(wrong()),
            Some(number) if !(1..=count).contains(&number) => Err(format!("shards are numbered from 1 to {count}")),
            number => Ok(Self { number, count }),
        }
    }
}

/// A shard whose number is nowhere to be found, or beyond the count.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
enum ShardError {
    #[error("`--shard auto/{count}`: no shard index found in the environment")]
    #[diagnostic(help(
        "Kubernetes Indexed Jobs set JOB_COMPLETION_INDEX, AWS Batch arrays AWS_BATCH_JOB_ARRAY_INDEX, Slurm arrays SLURM_ARRAY_TASK_ID"
    ))]
    NoIndex { count: usize },
    #[error("`--shard auto/{count}`: {variable} is `{value}`")]
    #[diagnostic(help("this variable is zero-based, so it must be less than the number of shards"))]
    BadIndex { count: usize, variable: &'static str, value: String },
}

impl ShardArgument {
    /// The shard, its number taken from the environment of this process where that is asked for.
    pub(super) fn resolved(self) -> Result<Shard, Failure> {
        self.resolve(|name| std::env::var(name).ok())
    }

    /// The shard, its number taken from the environment where that is asked for.
    fn resolve(self, variable: impl Fn(&str) -> Option<String>) -> Result<Shard, Failure> {
        let count = self.count;
        if let Some(number) = self.number {
            return Ok(Shard { number, count });
        }
        let found = INDEX_VARIABLES.iter().find_map(|(name, first)| variable(name).map(|value| (*name, *first, value)));
        let Some((variable, first, value)) = found else {
            return Err(Failure::bad_input(ShardError::NoIndex { count }));
        };
        let index = value.parse::<usize>().ok().and_then(|index| index.checked_sub(first));
        match index.filter(|index| *index < count) {
            Some(index) => Ok(Shard { number: index + 1, count }),
            None => Err(Failure::bad_input(ShardError::BadIndex { count, variable, value })),
        }
    }
}

/// What shows people the simulations of an experiment: a line that says what is about to run, or a bar that counts them.
pub(super) struct Bar<'b, 'c, E> {
    console: &'b mut Console<'c>,
    common: &'b Common,
    /// Told of each simulation that is done.
    each: E,
}

/// Whom it concerns nothing that a simulation is done.
fn ignore_progress(_: usize, _: &Point) {}

impl<'b, 'c> Bar<'b, 'c, fn(usize, &Point)> {
    pub(super) fn new(console: &'b mut Console<'c>, common: &'b Common) -> Self {
        Self::telling(console, common, ignore_progress)
    }
}

impl<'b, 'c, E: Fn(usize, &Point) + Sync> Bar<'b, 'c, E> {
    /// One that tells `each` of every simulation that is done.
    pub(super) fn telling(console: &'b mut Console<'c>, common: &'b Common, each: E) -> Self {
        Self { console, common, each }
    }

    /// Says what is about to run, where no bar shows it: so many simulations, each as long as one of `durations` says.
    fn announce(&mut self, count: usize, durations: &[SimDuration]) {
        if self.common.quiet || self.console.is_watched() || count == 0 {
            return;
        }
        let (least, most) = (durations.iter().min(), durations.iter().max());
        let length = match (least, most) {
            (Some(least), Some(most)) if least != most => format!(" of {least} to {most}"),
            (Some(one), _) if count > 1 => format!(" of {one} each"),
            (Some(one), _) => format!(" of {one}"),
            (None, _) => String::new(),
        };
        self.console.tell(&format!("running {}{length}", counted(count as u64, "simulation", "simulations")));
    }
}

impl<E: Fn(usize, &Point) + Sync> Audience for Bar<'_, '_, E> {
    fn begin(&mut self, count: usize, durations: &[SimDuration]) -> Box<dyn ProgressObserver + '_> {
        self.announce(count, durations);
        Box::new(self.console.watch(count as u64, !self.common.quiet, &self.each))
    }
}

/// Runs `cells`, each as long as one of `durations` says, and shows how far they are.
pub(super) fn simulate(
    cells: &[Cell<'_>],
    durations: &[SimDuration],
    one: &One<'_>,
    common: &Common,
    console: &mut Console<'_>,
) -> Result<Vec<(usize, Point)>, Failure> {
    let mut bar = Bar::new(console, common);
    simulations::simulate(cells, one, common.threads, &*bar.begin(cells.len(), durations))
}

/// Options of experiments that can be cut into parts.
#[derive(clap::Args, Debug)]
pub(super) struct Parts {
    /// Run one shard, for example 2/8, and write a file for `nodecast merge`. With auto/8 the index comes from the Kubernetes Indexed Job,
    /// AWS Batch array, or Slurm array
    #[arg(long, value_name = "I/N")]
    pub shard: Option<ShardArgument>,
}

/// Runs a part of an experiment and writes it into the directory `out`, or the scenario's own for parts.
pub(super) fn run_part(
    question: Question,
    shard: ShardArgument,
    (one, common): (&One<'_>, &Common),
    out: Option<&Path>,
    scenario: &Scenario,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let shard = shard.resolved()?;
    let plan = question.plan();
    let cells = shard.cells(&plan);
    let points = simulate(&cells, &[], one, common, console)?;
    let out = out.map_or_else(|| parts_directory(&scenario.name), Path::to_owned);
    write_part(question, shard, points, &out, console)
}

/// The directory of parts of a scenario or fleet.
pub(super) fn parts_directory(name: &str) -> PathBuf {
    Path::new("reports").join(format!("{name}-parts"))
}

/// Writes a part into the directory `out` and says where.
pub(super) fn write_part<A: Answer>(
    question: Question,
    shard: Shard,
    points: Vec<(usize, A)>,
    out: &Path,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let whole = shard.cells(&question.plan()).len();
    let (count, part) = (points.len(), Part::new(question, shard, points));
    let json = serde_json::to_string(&part).map_err(Failure::of_report)? + "\n";
    let path = out.join(part.file_name());
    write_whole(&path, &json)?;
    if count < whole {
        console.tell(&format!("stopped: saved {count} of {whole} simulations to {}", path.display()));
        return Err(Failure::silent(Failure::INTERRUPTED));
    }
    let simulations = counted(count as u64, "simulation", "simulations");
    console.tell(&format!("{simulations}: {}", path.display()));
    Ok(())
}

/// Writes a page where `--html` says, and says so unless it is `quiet`.
pub(super) fn write_page(
    file: Option<&Path>,
    page: impl FnOnce() -> String,
    quiet: bool,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let Some(file) = file else { return Ok(()) };
    write_whole(file, &page())?;
    if !quiet {
        console.tell(&format!("page: {}", file.display()));
    }
    Ok(())
}

/// Writes a file that appears whole or not at all; its directory is made.
pub(super) fn write_whole(path: &Path, text: &str) -> Result<(), Failure> {
    directory::write_whole(path, text).map_err(Failure::of_report)
}

#[cfg(test)]
mod tests {
    use super::ShardArgument;
    use crate::experiment::Shard;

    #[test]
    fn shard_number_comes_from_option_or_environment() {
        let shard = |text: &str, variable: &str, value: &str| {
            let parsed: ShardArgument = text.parse().unwrap();
            parsed.resolve(|name| (name == variable).then(|| value.to_owned())).ok()
        };
        assert_eq!(shard("2/3", "", ""), Some(Shard { number: 2, count: 3 }));
        assert_eq!(shard("auto/3", "JOB_COMPLETION_INDEX", "0"), Some(Shard { number: 1, count: 3 }));
        assert_eq!(shard("auto/3", "SLURM_ARRAY_TASK_ID", "2"), Some(Shard { number: 3, count: 3 }));
        assert_eq!(shard("auto/3", "AWS_BATCH_JOB_ARRAY_INDEX", "3"), None);
        assert_eq!(shard("auto/3", "HOME", "1"), None);
        for wrong in ["0/3", "4/3", "1", "1/0", "a/3", "1/b"] {
            assert!(wrong.parse::<ShardArgument>().is_err(), "{wrong}");
        }
    }
}
