//! What a run emits: summary, tables, plots, pages. Everything here is made from an [`Outcome`] alone, so that equal
//! runs leave equal bytes; nothing here knows a clock, a scenario file or the terminal it is printed on.

mod curves;
pub mod directory;
pub mod format;
pub mod open_metrics;
pub mod pack;
pub mod page;
pub mod percentile;
pub mod plots;
pub mod pricing;
mod sparklines;
pub mod summary;
pub mod tables;
pub mod terminal;

use std::path::{Path, PathBuf};

use crate::simulation::Outcome;
pub use directory::{OutputDirectory, OutputError};
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
    let directory = OutputDirectory::begin(out)?;
    write_into(&directory, "", outcome, summary, command, metrics)?;
    Ok(directory.commit()?)
}

/// Writes the whole report of `outcome` into the folder `folder` of a directory under construction; an empty name is the
/// directory itself.
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
    let plots = plots::Plots::of(outcome)?;
    let json = summary.to_json()?;
    let page = page::render(outcome, summary, &plots, command);
    let name = |file: &str| if folder.is_empty() { file.to_owned() } else { format!("{folder}/{file}") };
    directory.file(&name("summary.json"), |output| output.write_all(json.as_bytes()))?;
    directory.file(&name("report.html"), |output| output.write_all(page.as_bytes()))?;
    for plot in &plots.drawn {
        directory.file(&name(plot.file), |output| output.write_all(plot.standalone().as_bytes()))?;
    }
    directory.file(&name("timeline.csv"), |output| tables::timeline(outcome, output))?;
    directory.file(&name("workloads.csv"), |output| tables::workloads(outcome, output))?;
    directory.file(&name("metrics.csv"), |output| tables::metrics(outcome, output))?;
    if !outcome.queues.is_empty() {
        directory.file(&name("queues.csv"), |output| tables::queues(outcome, output))?;
    }
    directory.file(&name("pods.csv"), |output| tables::pods(outcome, output))?;
    directory.file(&name("nodes.csv"), |output| tables::nodes(outcome, output))?;
    directory.file(&name("bill.csv"), |output| tables::bill(outcome, output))?;
    directory.file(&name("events.jsonl"), |output| tables::events(outcome, output))?;
    if let Some(settings) = metrics {
        directory.file(&name(open_metrics::FILE), |output| open_metrics::write(outcome, settings, output))?;
    }
    Ok(())
}
