//! What is done with a case: it is run in several ways, and what each writes is looked at.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::case::Case;
use crate::checks;
use crate::relations::{self, Ground};
use crate::report::Report;

/// The programs that cases are run by.
#[derive(Clone, Debug)]
pub struct Programs {
    /// The program under test.
    pub release: PathBuf,
    /// The same with debug assertions, if there is one.
    pub debug: Option<PathBuf>,
    /// How long a command may take.
    pub patience: Duration,
}

/// What a command came to.
pub fn output(
    program: &Path,
    folder: &Path,
    words: &[&str],
    threads: u32,
    patience: Duration,
) -> Result<Output, String> {
    let shown = || format!("{} (RAYON_NUM_THREADS={threads})", words.join(" "));
    let mut child = Command::new(program)
        .args(words)
        .current_dir(folder)
        .env("RAYON_NUM_THREADS", threads.to_string())
        .stdin(Stdio::null())
        .stdout(std::fs::File::create(folder.join("stdout")).map_err(|error| error.to_string())?)
        .stderr(std::fs::File::create(folder.join("stderr")).map_err(|error| error.to_string())?)
        .spawn()
        .map_err(|error| format!("{}: {error}", program.display()))?;
    let begun = Instant::now();
    let status = loop {
        match child.try_wait().map_err(|error| error.to_string())? {
            Some(status) => break status,
            None if begun.elapsed() > patience => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("does not end within {} s: {}", patience.as_secs(), shown()));
            }
            None => std::thread::sleep(Duration::from_millis(3)),
        }
    };
    let read = |name: &str| std::fs::read(folder.join(name)).unwrap_or_default();
    let output = Output { status, stdout: read("stdout"), stderr: read("stderr") };
    let told = String::from_utf8_lossy(&output.stderr);
    if told.contains("panicked at") {
        return Err(format!("panics: {}\n{told}", shown()));
    }
    if !status.success() {
        return Err(format!("ends with {status}: {}\n{told}", shown()));
    }
    Ok(output)
}

/// Files that differ between two folders.
fn differences(one: &Path, other: &Path) -> Vec<String> {
    let names = |folder: &Path| -> Vec<String> {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| !name.starts_with('.'))
            .collect();
        names.sort_unstable();
        names
    };
    let all = names(one);
    if all != names(other) {
        return vec![format!("files {all:?} and {:?}", names(other))];
    }
    let differs = |name: &String| std::fs::read(one.join(name)).ok() != std::fs::read(other.join(name)).ok();
    all.into_iter().filter(differs).collect()
}

/// What a case came to.
#[derive(Clone, Debug, Default)]
pub struct Trial {
    /// Everything that is wrong.
    pub faults: Vec<String>,
    /// The items of its bill.
    pub items: BTreeSet<String>,
    /// The relations that were checked on it.
    pub relations: Vec<&'static str>,
}

/// Everything that is wrong with a case.
pub fn faults(case: &Case, programs: &Programs) -> Vec<String> {
    tried(case, programs).faults
}

/// Tries a case in every way.
pub fn tried(case: &Case, programs: &Programs) -> Trial {
    let mut trial = Trial::default();
    let folder = tempfile::tempdir().map_err(|error| error.to_string());
    if let Err(fault) = folder.and_then(|folder| try_in(case, programs, folder.path(), &mut trial)) {
        trial.faults.push(fault);
    }
    trial
}

fn try_in(case: &Case, programs: &Programs, folder: &Path, trial: &mut Trial) -> Result<(), String> {
    case.write(folder).map_err(|error| error.to_string())?;
    let release = |words: &[&str], threads| output(&programs.release, folder, words, threads, programs.patience);
    release(&["run", "scenario.yaml", "--quiet", "--out", "whole"], 1)?;
    let report = Report::read(&folder.join("whole"))?;
    trial.items.extend(report.bill.iter().map(|line| line.item.clone()));
    let faults = &mut trial.faults;
    faults.extend(checks::faults(case, &report));
    let mut same = |other: &str, what: &str| {
        let differ = differences(&folder.join("whole"), &folder.join(other));
        if !differ.is_empty() {
            faults.push(format!("equal bytes: {what} writes other {}", differ.join(", ")));
        }
    };
    release(&["run", "scenario.yaml", "--quiet", "--check", "--out", "checked"], 2)?;
    same("checked", "`--check` on two threads");
    if let Some(debug) = &programs.debug {
        output(debug, folder, &["run", "scenario.yaml", "--quiet", "--out", "debug"], 1, programs.patience * 10)?;
        same("debug", "the program with debug assertions");
    }
    faults.extend(prefix(case, &report, folder, &release)?);
    let compare = |threads| {
        let words = ["compare", "scenario.yaml", "--replications", "2", "--quiet", "--format", "json", "--out"];
        let out = format!("compared-{threads}");
        release(&[&words[..], &[&out]].concat(), threads).map(|output| output.stdout)
    };
    if compare(1)? != compare(8)? {
        faults.push("equal bytes: `compare` prints another answer on eight threads than on one".to_owned());
    }
    for name in differences(&folder.join("compared-1"), &folder.join("compared-8")) {
        faults.push(format!("equal bytes: `compare` writes other {name} on eight threads than on one"));
    }
    let (broken, checked) = relations::check(&Ground { case, folder, programs, report: &report })?;
    faults.extend(broken);
    trial.relations.extend(checked);
    Ok(())
}

/// Runs the program with these words on so many threads.
type Runs<'r> = dyn Fn(&[&str], u32) -> Result<Output, String> + 'r;

/// A run of half the time does in that half what the whole run did.
fn prefix(case: &Case, whole: &Report, folder: &Path, release: &Runs<'_>) -> Result<Vec<String>, String> {
    let minutes = case.minutes / 2;
    release(&["run", "scenario.yaml", "--quiet", "--duration", &format!("{minutes}m"), "--out", "half"], 1)?;
    let half = Report::read(&folder.join("half"))?;
    let before = |report: &Report| -> Vec<String> {
        let end = minutes as f64 * 60.0;
        report.events.iter().filter(|event| event.at < end).map(|event| event.raw.clone()).collect()
    };
    let (one, other) = (before(whole), before(&half));
    let differs = one.iter().zip(&other).find(|(one, other)| one != other);
    Ok(match differs {
        Some((one, other)) => vec![format!("a prefix is a prefix: whole {one}\nhalf {other}")],
        None if one.len() != other.len() => {
            vec![format!("a prefix is a prefix: {} events in the whole, {} in the half", one.len(), other.len())]
        }
        None => Vec::new(),
    })
}

/// Runs the case in a folder into `whole` below it.
pub fn run(programs: &Programs, folder: &Path) -> Result<(), String> {
    let words = ["run", "scenario.yaml", "--quiet", "--out", "whole"];
    output(&programs.release, folder, &words, 1, programs.patience).map(|_| ())
}
