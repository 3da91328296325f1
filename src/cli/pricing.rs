//! `nodecast pricing`: what is known of instance types and their prices, and how to bring in your own.

mod fetch_script;
mod import;
mod list;
mod show;

use clap::Subcommand;

use super::{Console, Format};
use crate::catalog::CatalogError;
use crate::program::Failure;

/// Show instance types and prices, or import your own prices
#[derive(clap::Args, Debug)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    Show(show::Arguments),
    List(list::Arguments),
    Import(import::Arguments),
    FetchScript(fetch_script::Arguments),
}

pub(super) fn execute(arguments: &Arguments, console: &mut Console<'_>) -> Result<(), Failure> {
    match &arguments.command {
        Command::Show(arguments) => show::execute(arguments, console),
        Command::List(arguments) => list::execute(arguments, console),
        Command::Import(arguments) => import::execute(arguments, console),
        Command::FetchScript(arguments) => fetch_script::execute(arguments, console),
    }
}

/// A region without prices.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("no prices for region `{given}`")]
#[diagnostic(help("{way_out}"))]
struct UnknownRegion {
    given: String,
    way_out: String,
}

/// A name that the region does not know.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("{region} has no {what} `{given}`")]
#[diagnostic(help("{}{elsewhere}", did_you_mean(nearest.as_deref())))]
struct UnknownName {
    what: &'static str,
    region: &'static str,
    given: String,
    nearest: Option<String>,
    elsewhere: String,
}

/// JSON that could not be written.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("cannot write the answer as JSON: {0}")]
struct Unwritable(#[from] serde_json::Error);

fn unwritable(error: serde_json::Error) -> Failure {
    Failure::system(Unwritable(error))
}

fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!("did you mean `{name}`? "))
}

/// The failure of a region that cannot be read.
fn region_failure(error: CatalogError) -> Failure {
    match error {
        CatalogError::UnknownRegion { given, nearest, known } => {
            let way_out = nearest
                .map_or_else(|| format!("regions with prices: {known}"), |name| format!("did you mean `{name}`?"));
            Failure::bad_input(UnknownRegion { given, way_out })
        }
        other => crate::program::prices::unusable(other),
    }
}

/// The name nearest to `given` among `known`, if one is near; of equally near ones the first in order.
fn nearest<'a>(given: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    let near = |&(distance, _): &(usize, &str)| distance <= given.chars().count().div_ceil(3).clamp(1, 4);
    let by_distance = known.map(|name| (strsim::damerau_levenshtein(given, name), name));
    by_distance.filter(near).min().map(|(_, name)| name.to_owned())
}
