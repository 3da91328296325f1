//! Changes valid files a little and hands them to nodecast's readers.
//!
//! `cargo run --release -p fuzz -- scenario --executions 1000000 --seed 1`. Each execution draws an input that the repository holds, changes it in
//! one or a few places and reads it, in this process. A reader may refuse an input; it must neither panic nor take long. What does is printed,
//! kept in `--keep`, and the exit code is then 1.
//!
//! What must not live here: what a reader ought to say of an input (the tests of bad input).

#![allow(clippy::print_stdout)]

mod blocks;
mod change;
mod corpus;
mod pieces;
mod random;
mod targets;

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use clap::Parser;

use self::change::{Stock, changed};
use self::corpus::Seed;
use self::random::Random;
use self::targets::{ALL, Target};

/// Changes valid files a little and hands them to nodecast's readers.
#[derive(Parser, Clone, Debug)]
struct Arguments {
    /// The readers [default: all]
    targets: Vec<String>,
    /// How many inputs each of them reads
    #[arg(long, default_value_t = 10_000)]
    executions: u64,
    /// CPU minutes of each reader, instead of a number of inputs
    #[arg(long, conflicts_with = "executions")]
    cpu_minutes: Option<f64>,
    /// The number of the first: one number and one seed mean one input
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// What the changes are drawn from
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The folder of the repository
    #[arg(long, default_value = ".")]
    root: PathBuf,
    /// Where inputs with which a reader panics or takes long are kept
    #[arg(long)]
    keep: Option<PathBuf>,
    /// How many at once
    #[arg(long, default_value_t = 2)]
    jobs: u64,
    /// Seconds that an input may take
    #[arg(long, default_value_t = 10.0)]
    patience: f64,
}

/// What the executions of a reader came to.
#[derive(Default)]
struct Tally {
    /// Inputs that the reader took.
    taken: AtomicU64,
    /// Microseconds of the slowest.
    longest: AtomicU64,
    /// Microseconds of CPU time of all.
    together: AtomicU64,
    /// Inputs read.
    executions: AtomicU64,
    /// What was wrong, each once.
    faults: Mutex<BTreeSet<String>>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let is_asked = |target: &&Target| {
        arguments.targets.is_empty() || arguments.targets.iter().any(|this_target| this_target == target.name)
    };
    let asked: Vec<&Target> = ALL.iter().filter(is_asked).collect();
    if let Some(unknown) =
        arguments.targets.iter().find(|this_target| ALL.iter().all(|target| target.name != **this_target))
    {
        let names: Vec<&str> = ALL.iter().map(|target| target.name).collect();
        println!("no reader is called `{unknown}`: there are {}", names.join(", "));
        return ExitCode::from(2);
    }
    // A panic is what is looked for; its message is kept with the input.
    std::panic::set_hook(Box::new(|_| {}));
    println!("| reader | inputs to begin with | executions | past the reader | a second of CPU | slowest | faults |");
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    let mut failed = false;
    for target in asked {
        let (row, faults) = run(target, &arguments);
        println!("{row}");
        faults.iter().for_each(|fault| println!("{fault}"));
        failed |= !faults.is_empty();
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Runs the executions of a reader; its row of the table, and what was wrong.
fn run(target: &Target, arguments: &Arguments) -> (String, BTreeSet<String>) {
    let seeds = (target.seeds)(&arguments.root);
    let stock = Stock::from_texts(seeds.iter().map(|seed| seed.text.as_str()));
    let tally = Tally::default();
    if seeds.is_empty() {
        return (
            format!("| `{}` | none |", target.name),
            BTreeSet::from(["there is nothing to begin with".to_owned()]),
        );
    }
    let next = AtomicU64::new(0);
    let jobs = arguments.jobs.max(1);
    let executions = if arguments.cpu_minutes.is_some() { u64::MAX } else { arguments.executions };
    let micros_of_thread = arguments.cpu_minutes.map_or(u64::MAX, |minutes| (minutes * 6e7) as u64 / jobs);
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                let Ok(folder) = tempfile::tempdir() else { return };
                let begun = cpu_micros();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    // The clock costs as much as an input of the fastest reader.
                    let is_late = || cpu_micros().saturating_sub(begun) >= micros_of_thread;
                    if number >= executions || number.is_multiple_of(16) && is_late() {
                        break;
                    }
                    tally.executions.fetch_add(1, Ordering::Relaxed);
                    let number = arguments.first.saturating_add(number);
                    let mut random = Random::new(arguments.seed, number);
                    let seed = &seeds[random.below(seeds.len())];
                    let text = changed(&seed.text, &stock, &mut random);
                    execute(target, (seed, &text), (number, folder.path()), arguments, &tally);
                }
                tally.together.fetch_add(cpu_micros().saturating_sub(begun), Ordering::Relaxed);
            });
        }
    });
    let (taken, longest, together) =
        (tally.taken.into_inner(), tally.longest.into_inner(), tally.together.into_inner());
    let executions = tally.executions.into_inner();
    let row = format!(
        "| `{}` | {} | {} | {:.1} % | {:.0} | {:.0} ms | {} |",
        target.name,
        seeds.len(),
        executions,
        taken as f64 * 100.0 / executions.max(1) as f64,
        executions as f64 * 1e6 / together.max(1) as f64,
        longest as f64 / 1e3,
        tally.faults.lock().unwrap_or_else(PoisonError::into_inner).len()
    );
    (row, tally.faults.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// CPU time of this thread so far; 0 where the system does not tell.
fn cpu_micros() -> u64 {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    told.split(' ').next().and_then(|nanos| nanos.parse::<u64>().ok()).unwrap_or(0) / 1_000
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// Reads one input.
fn execute(
    target: &Target,
    (seed, text): (&Seed, &str),
    (number, folder): (u64, &Path),
    arguments: &Arguments,
    tally: &Tally,
) {
    let begun = Instant::now();
    let read = catch_unwind(AssertUnwindSafe(|| (target.takes)(seed, text, folder)));
    let took = begun.elapsed();
    tally.longest.fetch_max(micros(took), Ordering::Relaxed);
    let fault = match read {
        Ok(taken) => {
            tally.taken.fetch_add(u64::from(taken), Ordering::Relaxed);
            (took > Duration::from_secs_f64(arguments.patience.max(0.0)))
                .then(|| format!("takes {:.1} s", took.as_secs_f64()))
        }
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            Some(format!("panics: {}", text.unwrap_or_default().lines().next().unwrap_or_default()))
        }
    };
    let Some(fault) = fault else { return };
    let mut faults = tally.faults.lock().unwrap_or_else(PoisonError::into_inner);
    let is_new = faults.insert(format!("`{}` {fault}", target.name));
    drop(faults);
    if let (true, Some(keep)) = (is_new, &arguments.keep) {
        let name = format!("{}-{number}-{}", target.name, seed.name.replace(['/', '\\'], "_"));
        let kept = std::fs::create_dir_all(keep).and_then(|()| std::fs::write(keep.join(&name), text));
        println!("{name}: {fault}, of {}{}", seed.name, if kept.is_ok() { "" } else { " (not kept)" });
    }
}
