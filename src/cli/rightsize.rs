//! `nodecast rightsize`: what requests that fit would save, and what would break.

use std::path::PathBuf;

use clap::ValueEnum;

use super::edits::Edits;
use super::experiment::{Bar, Common, write_page};
use super::{Console, Format};
use crate::program::Failure;
use crate::program::rightsize::{Request, RightSize, begin};
use crate::recommend::presentation::{rightsizing, rightsizing_page};
use crate::recommend::rightsizing::Sizing;

/// Compare resource requests with usage, and price the cluster with right-sized requests
///
/// Runs the Vertical Pod Autoscaler's recommender on the usage in the scenario (`load`, `usage`). Then simulates the cluster with current
/// requests, with recommended requests, and with requests at the 50th, 90th, and 99th percentile of usage, and reports cost, OOM kills,
/// throttling, wait times, and response times. Skips workloads with too little history.
#[derive(clap::Args, Debug)]
pub(super) struct Arguments {
    #[command(flatten)]
    request: Request,
    #[command(flatten)]
    edits: Edits,
    /// Write new requests and limits to this directory as a kustomize component
    #[arg(long, value_name = "DIR")]
    write: Option<PathBuf>,
    /// Sizes to write
    #[arg(long, value_enum, value_name = "SIZES", default_value = "recommended", requires = "write")]
    size: Size,
    /// Also write the result as an HTML page with charts
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// What to print: tables for people, or rightsizing.json
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    #[command(flatten)]
    common: Common,
}

/// What requests can be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum Size {
    /// What the Vertical Pod Autoscaler recommends.
    Recommended,
    /// Median usage
    P50,
    /// The 90th percentile of use.
    P90,
    /// The 99th percentile of use.
    P99,
}

impl Size {
    const fn sizing(self) -> Sizing {
        match self {
            Self::Recommended => Sizing::Recommended,
            Self::P50 => Sizing::Median,
            Self::P90 => Sizing::P90,
            Self::P99 => Sizing::P99,
        }
    }
}

/// Simulates, prints the answer and writes patches.
pub(super) fn execute(arguments: &Arguments, console: &mut Console<'_>) -> Result<(), Failure> {
    let common = &arguments.common;
    let asked = RightSize::load(&Request { edits: arguments.edits.parse()?, ..arguments.request.clone() })?;
    let patches = arguments.write.as_deref().map(|folder| begin(folder).map(|begin| (begin, folder))).transpose()?;
    let found = asked.answer(common.threads, &mut Bar::new(console, common))?;
    if found.answer.replications == 0 {
        console.tell("stopped before the first seed finished; nothing to report");
        return Err(Failure::silent(Failure::INTERRUPTED));
    }
    match arguments.format {
        Format::Table => console.verdicts(&rightsizing::table(&found.answer, console.width()))?,
        Format::Json => console.document(&found.answer.to_json().map_err(Failure::of_report)?)?,
    }
    let page = || rightsizing_page::render(&found.answer, &found.command);
    write_page(arguments.html.as_deref(), page, common.quiet, console)?;
    if let Some((directory, folder)) = patches {
        let changed = found.write(directory, arguments.size.sizing())?;
        if !common.quiet {
            let count = crate::domain::words::counted(changed.len() as u64, "workload", "workloads");
            console.tell(&format!("patches of {count}: {}", folder.join("kustomization.yaml").display()));
        }
    }
    if found.is_whole { Ok(()) } else { Err(Failure::silent(Failure::INTERRUPTED)) }
}
