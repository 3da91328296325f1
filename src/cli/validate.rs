//! `nodecast validate`: whether scenarios can be run, what they hold, and what is left out of them.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{Console, Format};
use crate::catalog::Catalog;
use crate::experiment::inspection::{Inspection, caveats, inspect};
use crate::experiment::presentation::inspection::table;
use crate::program::fleet::inspection::{FleetInspection, fleet_table, inspect_fleet};
use crate::program::{Failure, Prices, Remark, prices};
use crate::report::columns::fitted;
use crate::report::format::counted;
use crate::scenario::Limits;
use crate::scenario::error::Shown;

/// Check scenarios and fleets, and the files they reference
///
/// Loads each scenario with its policies, manifests, and tables exactly as `run` does, and fails with the same errors (exit code 2). Prints
/// a summary and every warning. Simulates the first events of each policy to estimate the size of a run, unless --quiet is set.
#[derive(clap::Args, Debug)]
pub(super) struct Arguments {
    /// The scenario files or fleet files
    #[arg(required = true, value_name = "SCENARIO")]
    scenarios: Vec<PathBuf>,
    /// What to print: text for people, or JSON
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    /// Exit 1 on any warning
    #[arg(long)]
    strict: bool,
    /// Directory of prices to use instead of the built-in ones (same layout as pricing-data/)
    #[arg(long, value_name = "DIR")]
    pricing_data: Option<PathBuf>,
    /// Print only errors and warnings
    #[arg(long, short)]
    quiet: bool,
}

/// What was found in one file.
#[derive(Serialize, schemars::JsonSchema)]
pub(super) struct Finding {
    file: String,
    usable: bool,
    error: Option<Remark>,
    warnings: Vec<Remark>,
    /// What the scenario holds; `None` if it cannot be used.
    holds: Option<Inspection>,
    /// Contents of a fleet.
    #[serde(skip_serializing_if = "Option::is_none")]
    fleet: Option<FleetInspection>,
}

/// A warning for people, and the way out below it.
fn warning(remark: &Remark) -> String {
    let help = remark.help.as_ref().map_or_else(String::new, |help| format!("  help: {help}\n"));
    let id = remark.id.as_ref().map_or_else(String::new, |id| format!(" [{id}]"));
    format!("warning: {}{}{id}\n{help}", remark.place(), remark.message)
}

/// Looks at each file, also after one that cannot be used.
pub(super) fn execute(arguments: &Arguments, console: &mut Console<'_>) -> Result<(), Failure> {
    let prices = Prices::open(arguments.pricing_data.as_deref())?;
    let mut findings = Vec::new();
    for path in &arguments.scenarios {
        let is_brief = arguments.quiet && arguments.format == Format::Table;
        let (finding, failure) = look(path, is_brief, prices.catalog());
        if arguments.format == Format::Table {
            console.data(&text(&finding, (arguments.quiet, findings.is_empty()), console.width()))?;
        }
        if let Some(failure) = failure {
            console.show(&failure);
        }
        findings.push(finding);
    }
    if arguments.format == Format::Json {
        console.json(&findings)?;
    }
    conclude(&findings, arguments.strict, console)
}

/// One file, and why it cannot be used if it cannot. A brief look has warnings alone.
fn look(path: &Path, is_brief: bool, catalog: &Catalog) -> (Finding, Option<Failure>) {
    let file = path.display().to_string();
    let unusable =
        |error| Finding { file: file.clone(), usable: false, error, warnings: Vec::new(), holds: None, fleet: None };
    if nodecast_fleet::is_fleet(path) {
        return match inspect_fleet(path, is_brief, catalog) {
            Ok((fleet, warnings)) => (Finding { warnings, usable: true, fleet, ..unusable(None) }, None),
            Err(failure) => (unusable(failure.remark()), Some(failure)),
        };
    }
    let (scenario, warnings) = match crate::scenario::load_with(path, catalog, &Limits::default()) {
        Ok(loaded) => loaded,
        Err(error) => return (unusable(Some(Remark::from_diagnostic(&Shown::from(&error)))), Some(error.into())),
    };
    let inspected = match is_brief {
        true => caveats(&scenario, catalog).map(|more| (None, more)),
        false => inspect(&scenario, catalog).map(|(holds, more)| (Some(holds), more)),
    };
    match inspected {
        Ok((holds, more)) => {
            let warnings = warnings.iter().map(Remark::warning).chain(more.iter().map(Remark::caveat)).collect();
            (Finding { warnings, usable: true, holds, ..unusable(None) }, None)
        }
        Err(error) => (unusable(Some(Remark::plain(error.to_string()))), Some(prices::unusable(error))),
    }
}

/// The finding for people, in lines of no more than `width` characters, if that is known.
fn text(finding: &Finding, (quiet, first): (bool, bool), width: Option<usize>) -> String {
    let mut text = String::new();
    let held = finding.holds.as_ref().map(|holds| table(holds, width));
    let held = held.or_else(|| finding.fleet.as_ref().map(|fleet| fleet_table(fleet, width)));
    if let Some(held) = held.filter(|_| !quiet) {
        let warnings = match finding.warnings.len() {
            0 => "no warnings".to_owned(),
            count => counted(count as u64, "warning", "warnings"),
        };
        let gap = if first { "" } else { "\n" };
        text = format!("{gap}{}: valid, {warnings}\n{held}", finding.file);
    }
    for warning in &finding.warnings {
        text.push_str(&self::warning(warning));
    }
    fitted(text, width)
}

/// Ends with 2 after an error, with 1 after a warning where none is allowed.
fn conclude(findings: &[Finding], strict: bool, console: &mut Console<'_>) -> Result<(), Failure> {
    let unusable = findings.iter().filter(|finding| !finding.usable).count();
    if unusable > 0 {
        if findings.len() > 1 {
            console.tell(&format!(
                "{unusable} of {} cannot be run",
                counted(findings.len() as u64, "scenario", "scenarios")
            ));
        }
        return Err(Failure::silent(Failure::BAD_INPUT));
    }
    let warnings: usize = findings.iter().map(|finding| finding.warnings.len()).sum();
    if strict && warnings > 0 {
        console.tell(&format!(
            "{}; --strict treats warnings as failures",
            counted(warnings as u64, "warning", "warnings")
        ));
        return Err(Failure::silent(Failure::WORSE));
    }
    Ok(())
}
