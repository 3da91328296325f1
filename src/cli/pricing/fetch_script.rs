//! `nodecast pricing fetch-script`: the commands of the AWS CLI that fetch the prices that a scenario needs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::{Console, region_failure};
use crate::catalog::Catalog;
use crate::domain::Symbol;
use crate::program::{Failure, prices};
use crate::report::pricing::FetchScript;
use crate::scenario::Limits;
use crate::simulation::{resolve, usable_types};

/// Print AWS CLI commands that fetch current prices for the instance types a scenario can use
///
/// The script fetches only the instance types that the scenario's NodePools and node groups allow under any policy, then runs `nodecast
/// pricing import`.
#[derive(clap::Args, Debug)]
pub(super) struct Arguments {
    /// Scenario file; without it, the script fetches every type in the region
    #[arg(value_name = "SCENARIO")]
    scenario: Option<PathBuf>,
    /// The region, for example us-east-1; that of the scenario if there is one
    #[arg(long, required_unless_present = "scenario")]
    region: Option<String>,
}

/// A scenario in another region than the one asked for.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("{scenario} is in {its}, not in {given}")]
#[diagnostic(help("leave out --region"))]
struct OtherRegion {
    scenario: String,
    its: &'static str,
    given: String,
}

pub(super) fn execute(arguments: &Arguments, console: &mut Console<'_>) -> Result<(), Failure> {
    let catalog = Catalog::embedded().map_err(prices::unusable)?;
    let given = arguments.region.as_deref();
    let (region, types) = match &arguments.scenario {
        Some(path) => of_scenario(path, given, catalog)?,
        None => (catalog.region(given.unwrap_or_default()).map_err(region_failure)?.name, BTreeSet::new()),
    };
    let scenario = arguments.scenario.as_ref().map(|path| path.display().to_string());
    let types = types.into_iter().map(Symbol::as_str).collect();
    console.data(&FetchScript { region: region.as_str(), types, scenario: scenario.as_deref() }.text())
}

/// The scenario's region, and the types that it can use there.
fn of_scenario(path: &Path, given: Option<&str>, catalog: &Catalog) -> Result<(Symbol, BTreeSet<Symbol>), Failure> {
    let (scenario, _) = crate::scenario::load_with(path, catalog, &Limits::default())?;
    if let Some(given) = given.filter(|given| *given != scenario.region.as_str()) {
        let scenario_path = path.display().to_string();
        let its = scenario.region.as_str();
        return Err(Failure::bad_input(OtherRegion { scenario: scenario_path, its, given: given.to_owned() }));
    }
    let mut types = BTreeSet::new();
    for policy in &scenario.policies {
        let resolved = resolve(&scenario, policy, catalog, scenario.seed).map_err(prices::unusable)?;
        types.extend(usable_types(&resolved.setup));
    }
    Ok((scenario.region, types))
}
