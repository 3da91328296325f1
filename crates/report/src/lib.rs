//! What a run emits: summary, tables, plots, pages. Everything here is made from an [`Outcome`] alone, so that equal
//! runs leave equal bytes; nothing here knows a clock, a scenario file or the terminal it is printed on, but for
//! the width that it is told.

pub mod answers;
pub mod axis;
pub mod columns;
mod curves;
pub mod directory;
pub mod drain;
pub mod figure;
pub mod format;
pub mod markdown;
pub mod observed;
pub mod open_metrics;
pub mod opportunities;
pub mod pack;
pub mod page;
pub mod percentile;
pub mod plots;
pub mod pricing;
pub mod report_index;
mod run_tables;
pub mod short_names;
mod sparklines;
pub mod summary;
pub mod table;
pub mod tables;
pub mod terminal;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use nodecast_ec2 as cloud;

use nodecast_model::{cluster, control_plane, domain};
use nodecast_prices as catalog;
use nodecast_single_pass::{self as single_pass, standing};
use rayon::prelude::*;

pub use directory::{OutputDirectory, OutputError};
use nodecast_world::Outcome;
pub use summary::Summary;

/// Why a report could not be made.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum ReportError {
    /// The output directory.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Output(#[from] OutputError),
    /// A plot.
    #[error(transparent)]
    Plot(#[from] plots::PlotError),
    /// The summary could not be written as JSON.
    #[error("cannot write the summary as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

/// Writes the whole report of `outcome` into the directory `out`, replacing an earlier report there as a whole.
/// `command` is the command line that repeats the run; the page quotes it. With `metrics` there is a
/// [`metrics.om`](open_metrics). Returns the directory's resolved path.
///
/// # Errors
/// If `out` cannot be written or holds anything but a report; it is then as it was.
pub fn write(
    outcome: &Outcome,
    summary: &Summary,
    command: &str,
    metrics: Option<open_metrics::Settings>,
    out: &Path,
) -> Result<PathBuf, ReportError> {
    write_to(OutputDirectory::begin(out)?, outcome, summary, command, metrics)
}

/// [`write()`] into a directory that was begun before.
///
/// # Errors
/// As [`write()`].
pub fn write_to(
    directory: OutputDirectory,
    outcome: &Outcome,
    summary: &Summary,
    command: &str,
    metrics: Option<open_metrics::Settings>,
) -> Result<PathBuf, ReportError> {
    write_into(&directory, "", outcome, summary, command, metrics)?;
    Ok(directory.commit()?)
}

/// The page of a run alone. `command` is the command line that repeats it.
///
/// # Errors
/// If its plots cannot be drawn.
pub fn page_of(outcome: &Outcome, summary: &Summary, command: &str) -> Result<String, ReportError> {
    Ok(page::render(outcome, summary, &plots::Plots::from_outcome(outcome)?, command))
}

/// What writes a file.
type Content<'c> = Box<dyn FnOnce(&mut dyn Write) -> io::Result<()> + Send + 'c>;

/// The tables, those that take longest first.
const TABLES: [(&str, tables::Table); 9] = [
    ("events.jsonl", tables::events),
    ("pods.csv", tables::pods),
    ("metrics.csv", tables::metrics),
    ("workloads.csv", tables::workloads),
    ("timeline.csv", tables::timeline),
    ("nodes.csv", tables::nodes),
    ("bill.csv", tables::bill),
    ("queues.csv", tables::queues),
    ("recommendations.csv", tables::recommendations),
];

/// Writes the whole report of `outcome` into the folder `folder` of a directory under construction; an empty name is the
/// directory itself. Files are made side by side, each from the outcome alone.
///
/// # Errors
/// If a file cannot be made or written.
pub fn write_into(
    directory: &OutputDirectory,
    folder: &str,
    outcome: &Outcome,
    summary: &Summary,
    command: &str,
    metrics: Option<open_metrics::Settings>,
) -> Result<(), ReportError> {
    let plots = plots::Plots::from_outcome(outcome)?;
    let json = summary.to_json()?;
    let mut files: Vec<(&str, Content<'_>)> = vec![
        (
            "report.html",
            Box::new(|output| output.write_all(page::render(outcome, summary, &plots, command).as_bytes())),
        ),
        ("summary.json", Box::new(|output| output.write_all(json.as_bytes()))),
    ];
    let is_told = |file: &str| match file {
        "queues.csv" => !outcome.queues.is_empty(),
        "recommendations.csv" => !outcome.record.verticals.is_empty(),
        _ => true,
    };
    for (file, table) in TABLES.into_iter().filter(|(file, _)| is_told(file)) {
        files.push((file, Box::new(move |output| table(outcome, &mut tables::Output::File(output)))));
    }
    for plot in &plots.drawn {
        files.push((plot.file, Box::new(|output| output.write_all(plot.standalone().as_bytes()))));
    }
    if let Some(settings) = metrics {
        files.push((open_metrics::FILE, Box::new(move |output| open_metrics::write(outcome, settings, output))));
    }
    let name = |file: &str| if folder.is_empty() { file.to_owned() } else { format!("{folder}/{file}") };
    let write = |(file, content): (&str, Content<'_>)| directory.file(&name(file), content);
    let written: Vec<Result<(), OutputError>> = files.into_par_iter().with_max_len(1).map(write).collect();
    Ok(written.into_iter().collect::<Result<(), OutputError>>()?)
}
