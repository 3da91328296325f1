//! `nodecast pack --suite`: every instance of a folder, against a baseline if one is given.

use std::path::{Path, PathBuf};
use std::time::Instant;

use rayon::prelude::*;

use super::{Arguments, Format, Unwritable};
use crate::catalog::Catalog;
use crate::cli::Console;
use crate::domain::words::refusal;
use crate::program::pack::{pass, warning_line};
use crate::program::simulations::on_threads;
use crate::program::{Failure, Prices, recorded_path};
use crate::report::pack::{Baseline, PackAnswer, PackedInstance, SuiteAnswer};
use crate::scenario::error::ScenarioError;
use crate::scenario::{Circumstances, packing_question};
use crate::single_pass::PackingQuestion;
use nodecast_karpenter::bin_packing::Effort;
use nodecast_karpenter::packing::PackerKind;

/// A folder that is no suite, or a file that is no baseline.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
enum Unusable {
    #[error("{}: {problem}", path.display())]
    #[diagnostic(help("--suite names a folder like scenarios/packing: a folder in it for each instance"))]
    Suite { path: PathBuf, problem: String },
    #[error("{}: {problem}", path.display())]
    #[diagnostic(help("a baseline is what `nodecast pack --suite FOLDER --write-baseline FILE` writes"))]
    Baseline { path: PathBuf, problem: String },
}

/// Packing that got worse.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("packing got worse: {0}")]
#[diagnostic(help("if that is wanted, write a new baseline with --write-baseline"))]
struct Worse(String);

/// Where a baseline could not be written.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("cannot write {}: {}", path.display(), refusal(error))]
struct NotWritten {
    path: PathBuf,
    error: std::io::Error,
}

pub(super) fn execute(arguments: &Arguments, suite: &Path, console: &mut Console<'_>) -> Result<(), Failure> {
    let prices = Prices::open(arguments.pricing_data.as_deref())?;
    let baseline = arguments.baseline.as_deref().map(read_baseline).transpose()?;
    let mut instances = Vec::new();
    for (name, files) in find_instances(suite)? {
        instances.push(pack_instance(arguments, name, (suite, &files), prices.catalog(), console)?);
    }
    let mut answer = SuiteAnswer::new(
        arguments.karpenter.unwrap_or_default().to_string(),
        arguments.packer.kind().as_str(),
        instances,
    );
    if let Some(baseline) = &baseline {
        answer.compare(baseline, arguments.tolerance);
    }
    match arguments.format {
        Format::Table => console.data(&answer.table(console.width()))?,
        Format::Json => {
            let json = answer.to_json().map_err(|error| Failure::system(Unwritable(error)))?;
            console.document(&json)?;
        }
    }
    if let Some(path) = &arguments.write_baseline {
        write_baseline(&answer, path)?;
    }
    let worse: Vec<String> = answer.worse().map(|change| format!("{} {}", change.instance, change.what)).collect();
    if worse.is_empty() { Ok(()) } else { Err(Failure::worse(Worse(worse.join("; ")))) }
}

fn pack_instance(
    arguments: &Arguments,
    name: String,
    (suite, files): (&Path, &[PathBuf]),
    catalog: &Catalog,
    console: &mut Console<'_>,
) -> Result<PackedInstance, Failure> {
    let options = arguments.options();
    let question = load(suite, files, &options.circumstances(), catalog)?;
    if !arguments.quiet {
        for warning in &question.warnings {
            console.note(&format!("{name}: {}", warning_line(warning)));
        }
    }
    let started = Instant::now();
    let pass = options.pass(&question);
    let seconds = started.elapsed().as_secs_f64();
    let answer = PackAnswer::new(&options.bounded(pass), None);
    Ok(PackedInstance::new(name, &answer, seconds))
}

/// The question of an instance. Where something is missing and the instances share no files, that may be why.
fn load(
    suite: &Path,
    files: &[PathBuf],
    circumstances: &Circumstances,
    catalog: &Catalog,
) -> Result<PackingQuestion, ScenarioError> {
    let shares_nothing = !files.iter().any(|file| file.parent() == Some(suite));
    packing_question::load(files, circumstances, catalog).map_err(|error| match error.place() {
        None if shares_nothing => error.also(
            "files that all instances share (NodePool, EC2NodeClass, ClusterConfig) belong in the suite's folder itself",
        ),
        _ => error,
    })
}

/// Every instance of a suite, packed by every packer under the default release, without bounds: the instances in order of
/// name, the packers in the order given.
pub(in crate::cli) fn pack_all(
    suite: &Path,
    packers: &[PackerKind],
    catalog: &Catalog,
    threads: Option<u16>,
) -> Result<Vec<(PackerKind, PackedInstance)>, Failure> {
    let circumstances = Circumstances::default();
    let mut questions = Vec::new();
    for (name, files) in find_instances(suite)? {
        questions.push((name, load(suite, &files, &circumstances, catalog)?));
    }
    let one = |(name, question): &(String, PackingQuestion)| {
        let packed = packers.iter().map(|packer| {
            let started = Instant::now();
            let answer = pass(*packer, question, &mut Effort { steps: Effort::THOROUGH, go_on: &mut || true });
            let answer = PackAnswer::new(&answer, None);
            (*packer, PackedInstance::new(name.clone(), &answer, started.elapsed().as_secs_f64()))
        });
        packed.collect::<Vec<_>>()
    };
    let packed: Vec<_> = on_threads(threads, || questions.par_iter().with_max_len(1).map(one).collect())?;
    Ok(packed.into_iter().flatten().collect())
}

/// The instances of a suite by name, each with its files and those that all share.
fn find_instances(suite: &Path) -> Result<Vec<(String, Vec<PathBuf>)>, Failure> {
    let shared = inputs(suite)?;
    let mut instances = Vec::new();
    for folder in entries(suite)?.into_iter().filter(|path| path.is_dir()) {
        let inputs = inputs(&folder)?;
        if let Some(name) = folder.file_name().filter(|_| !inputs.is_empty()) {
            instances.push((recorded_path(name.as_ref())?, [&shared[..], &inputs[..]].concat()));
        }
    }
    if instances.is_empty() {
        let problem = "no folder with manifests or tables is in it".to_owned();
        return Err(Failure::bad_input(Unusable::Suite { path: suite.to_path_buf(), problem }));
    }
    Ok(instances)
}

/// The files of a folder that `nodecast pack` reads, in order of name.
fn inputs(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let read = |path: &PathBuf| {
        let extension = path.extension().and_then(|extension| extension.to_str());
        // A .json file directly in the suite may be a baseline; instances are YAML and tables.
        path.is_file() && extension.is_some_and(|extension| ["yaml", "yml", "csv"].contains(&extension))
    };
    Ok(entries(folder)?.into_iter().filter(read).collect())
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let unreadable = |error: std::io::Error| {
        Failure::bad_input(Unusable::Suite { path: folder.to_path_buf(), problem: refusal(&error) })
    };
    let entries = std::fs::read_dir(folder).map_err(unreadable)?;
    let mut paths =
        entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>().map_err(unreadable)?;
    paths.sort();
    Ok(paths)
}

fn read_baseline(path: &Path) -> Result<Baseline, Failure> {
    let unusable = |problem: String| Failure::bad_input(Unusable::Baseline { path: path.to_path_buf(), problem });
    let text = std::fs::read_to_string(path).map_err(|error| unusable(refusal(&error)))?;
    serde_json::from_str(&text).map_err(|error| unusable(error.to_string()))
}

fn write_baseline(answer: &SuiteAnswer, path: &Path) -> Result<(), Failure> {
    let json = serde_json::to_string_pretty(&answer.baseline()).map_err(|error| Failure::system(Unwritable(error)))?;
    std::fs::write(path, json + "\n").map_err(|error| Failure::system(NotWritten { path: path.to_path_buf(), error }))
}
