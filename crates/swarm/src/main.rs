//! Runs nodecast on random scenarios and checks what it writes.
//!
//! `cargo run --release -p swarm -- --runs 200 --seed 1 --program target/release/nodecast`. Each case is run whole, with `--check`, for half of its
//! time and in a comparison on one and on eight threads; the checkers share no code with the simulator. A case that fails is shrunk, printed
//! and kept; the exit code is then 1.
//!
//! What must not live here: any line of nodecast's own code.

#![allow(clippy::print_stdout)]

mod case;
mod checks;
mod generate;
mod kills;
mod mutants;
mod random;
mod relations;
mod report;
mod shrink;
mod trial;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use clap::Parser;

use self::case::Case;
use self::report::Report;
use self::trial::{Programs, Trial};

/// Runs nodecast on random scenarios and checks what it writes.
#[derive(Parser, Clone, Debug)]
struct Arguments {
    /// How many cases
    #[arg(long, default_value_t = 20)]
    runs: u64,
    /// The seed of the first; the others have the next ones
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The program
    #[arg(long, default_value = "target/release/nodecast")]
    program: PathBuf,
    /// The same with debug assertions
    #[arg(long)]
    debug: Option<PathBuf>,
    /// Where cases that fail are kept
    #[arg(long)]
    keep: Option<PathBuf>,
    /// How many cases at once
    #[arg(long, default_value_t = 2)]
    jobs: u64,
    /// Seconds that a command may take
    #[arg(long, default_value_t = 60)]
    patience: u64,
    /// Plants errors in the reports of the cases, which the checkers have to find
    #[arg(long)]
    mutants: bool,
    /// Kills so many commands that write reports, at random moments, and looks at what is left
    #[arg(long, value_name = "N", conflicts_with = "mutants")]
    kills: Option<u64>,
    /// Leaves cases that fail as they are
    #[arg(long)]
    no_shrink: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let absolute = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
    let programs = Programs {
        release: absolute(arguments.program.clone()),
        debug: arguments.debug.clone().map(absolute),
        patience: Duration::from_secs(arguments.patience),
    };
    let failed = match arguments.kills {
        Some(count) => kill(&arguments, &programs, count),
        None if arguments.mutants => plant(&arguments, &programs),
        None => attack(&arguments, &programs),
    };
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Kills commands at random moments; whether anything was lost by it.
fn kill(arguments: &Arguments, programs: &Programs, count: u64) -> bool {
    match kills::kills(programs, arguments.seed, count) {
        Err(error) => {
            println!("{error}");
            true
        }
        Ok(tally) => {
            tally.faults.iter().for_each(|fault| println!("{fault}"));
            println!(
                "{count} commands, {} killed at work, after {} of them the new report stood; {} faults",
                tally.killed,
                tally.new,
                tally.faults.len()
            );
            !tally.faults.is_empty()
        }
    }
}

/// Runs the cases; whether one failed.
fn attack(arguments: &Arguments, programs: &Programs) -> bool {
    let next = AtomicU64::new(0);
    let failed: Mutex<Vec<(Case, Vec<String>)>> = Mutex::new(Vec::new());
    let billed: Mutex<BTreeMap<String, u64>> = Mutex::default();
    let related: Mutex<BTreeMap<&'static str, u64>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..arguments.jobs.max(1) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= arguments.runs {
                        return;
                    }
                    let case = generate::case(arguments.seed.wrapping_add(number));
                    let Trial { faults, items, relations } = trial::tried(&case, programs);
                    let mut all = billed.lock().unwrap_or_else(PoisonError::into_inner);
                    items.into_iter().for_each(|item| *all.entry(item).or_default() += 1);
                    drop(all);
                    let mut all = related.lock().unwrap_or_else(PoisonError::into_inner);
                    relations.into_iter().for_each(|name| *all.entry(name).or_default() += 1);
                    drop(all);
                    if !faults.is_empty() {
                        failed.lock().unwrap_or_else(PoisonError::into_inner).push((case, faults));
                    }
                }
            });
        }
    });
    let mut failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    failed.sort_by_key(|(case, _)| case.seed);
    for (case, faults) in &failed {
        let (case, faults) = match arguments.no_shrink {
            true => (case.clone(), faults.clone()),
            false => shrink::shrink(case, faults.clone(), programs),
        };
        println!("{}", case.names());
        faults.iter().for_each(|fault| println!("  {fault}"));
        if let Some(keep) = &arguments.keep {
            let folder = keep.join(format!("seed-{}", case.seed));
            match case.write(&folder) {
                Ok(()) => println!("  kept as {}", folder.display()),
                Err(error) => println!("  not kept: {error}"),
            }
        }
    }
    let billed = billed.into_inner().unwrap_or_else(PoisonError::into_inner);
    let billed: Vec<String> = billed.into_iter().map(|(item, cases)| format!("{item} {cases}")).collect();
    println!("cases billed for: {}", billed.join(", "));
    let related = related.into_inner().unwrap_or_else(PoisonError::into_inner);
    let counts: Vec<String> = related.iter().map(|(name, count)| format!("{name} {count}")).collect();
    println!("relations: {}", counts.join(", "));
    let (checked, broken) = (related.values().sum::<u64>(), relations::broken(&failed));
    println!("{} of {} cases fail; {broken} of {checked} relations fail", failed.len(), arguments.runs);
    !failed.is_empty()
}

/// Plants errors in the reports of the cases until each could be planted; whether one was not found.
fn plant(arguments: &Arguments, programs: &Programs) -> bool {
    let mut most = 0;
    for seed in (arguments.seed..).take(arguments.runs as usize) {
        let case = generate::case(seed);
        let found = report_of(&case, programs).and_then(|(folder, report)| {
            drop(report);
            mutants::survivors(&case, &|| Report::read(&folder.path().join("whole")))
        });
        match found {
            Err(error) => {
                println!("{}\n  {error}", case.names());
                return true;
            }
            Ok((survivors, planted)) => {
                most = most.max(planted);
                if !survivors.is_empty() {
                    println!("{}\n  not found: {}", case.names(), survivors.join("; "));
                    return true;
                }
            }
        }
    }
    println!("{most} of {} planted errors, found in every report", mutants::ALL.len());
    most < mutants::ALL.len()
}

fn report_of(case: &Case, programs: &Programs) -> Result<(tempfile::TempDir, Report), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    case.write(folder.path()).map_err(|error| error.to_string())?;
    trial::run(programs, folder.path())?;
    let report = Report::read(&folder.path().join("whole"))?;
    Ok((folder, report))
}
