//! `nodecast recommend`: what to change so that a cluster costs less and nobody waits longer.

use std::path::PathBuf;

use super::edits::Edits;
use super::experiment::{Bar, Common, write_page};
use super::{Console, Format};
use crate::program::Failure;
use crate::program::fleet;
use crate::program::recommend::{Recommend, Request, begin};
use crate::recommend::presentation::{recommendation, recommendation_page};
use crate::recommend::recommendation::Kind;

/// Find changes that cut cost and still meet the objectives
///
/// Searches consolidation settings, instance families and sizes, Spot, HPA targets, requests, flags, and commitments. Drops changes that do
/// not save, then confirms the rest on fresh seeds. Results must meet the scenario's objectives or, if there are none, today's wait times,
/// availability, and churn. Says so if no change is certain to save money.
#[derive(clap::Args, Debug)]
pub(super) struct Arguments {
    #[command(flatten)]
    request: Request,
    /// Levers to try [default: all except `architectures`, which your images must support]
    #[arg(long, value_name = "LEVERS", value_delimiter = ',', value_parser = lever)]
    levers: Vec<Kind>,
    /// Levers to leave unchanged
    #[arg(long, value_name = "LEVERS", value_delimiter = ',', value_parser = lever)]
    without: Vec<Kind>,
    #[command(flatten)]
    edits: Edits,
    /// Write the changed objects, and a scenario that adds them as a policy, to this directory. If a policy cannot express a change (for
    /// example commitments, which apply to all policies), write the complete changed scenario as after.yaml
    #[arg(long, value_name = "DIR")]
    write: Option<PathBuf>,
    /// Also write the result as an HTML page with charts
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// What to print: text for people, or recommendation.json
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    fleet: super::fleet::RecommendOptions,
}

fn lever(text: &str) -> Result<Kind, String> {
    Kind::named(text).ok_or_else(|| {
        let known: Vec<&str> = Kind::ALL.iter().map(|(name, _)| *name).collect();
        format!("there are {}", known.join(", "))
    })
}

/// The commitments of a fleet, which has no other lever.
fn recommend_fleet(arguments: &Arguments, console: &mut Console<'_>) -> Result<(), Failure> {
    let request = &arguments.request;
    fleet::reject_options(&[
        ("--policy", request.policy.is_some()),
        ("--set", arguments.edits.has_set()),
        ("--without", !arguments.without.is_empty()),
        ("--write", arguments.write.is_some()),
        ("--html", arguments.html.is_some()),
    ])?;
    if arguments.levers.iter().any(|kind| *kind != Kind::Commitments) {
        return Err(fleet::only_commitments());
    }
    let request = fleet::Request {
        file: request.scenario.clone(),
        duration: arguments.edits.duration(),
        seed: request.seed,
        policy: None,
        pricing_data: request.pricing_data.clone(),
    };
    super::fleet::recommend(request, &arguments.fleet, (arguments.format, &arguments.common), console)
}

/// Searches, prints the answer and writes what is asked for.
pub(super) fn execute(arguments: &Arguments, console: &mut Console<'_>) -> Result<(), Failure> {
    let common = &arguments.common;
    if nodecast_fleet::is_fleet(&arguments.request.scenario) {
        return recommend_fleet(arguments, console);
    }
    arguments.fleet.reject_for_scenario()?;
    let allowed: Vec<Kind> =
        if arguments.levers.is_empty() { Kind::usual().collect() } else { arguments.levers.clone() };
    let kinds = allowed.into_iter().filter(|kind| !arguments.without.contains(kind)).collect();
    let ruled_out = arguments.without.clone();
    let asked =
        Recommend::load(Request { kinds, ruled_out, edits: arguments.edits.parse()?, ..arguments.request.clone() })?;
    let folder = arguments.write.as_deref().map(|folder| begin(folder).map(|begin| (begin, folder))).transpose()?;
    let found = asked.answer(common.threads, &mut Bar::new(console, common))?;
    match arguments.format {
        Format::Table => console.verdicts(&recommendation::text_within(&found.answer, console.width()))?,
        Format::Json => console.document(&found.answer.to_json().map_err(Failure::of_report)?)?,
    }
    write_page(arguments.html.as_deref(), || recommendation_page::render(&found.answer), common.quiet, console)?;
    if let Some((directory, folder)) = folder {
        let written = found.write(directory, folder)?;
        if !common.quiet {
            let count = crate::domain::words::counted(written.objects as u64, "changed object", "changed objects");
            console.tell(&format!("{count} and the scenario with what is recommended: {}", folder.display()));
            let directory = arguments.request.scenario.parent().filter(|parent| !parent.as_os_str().is_empty());
            let directory = directory.unwrap_or_else(|| std::path::Path::new("."));
            for patch in &written.patches {
                console.tell(&format!("apply: patch -p1 -d {} < {}", directory.display(), patch.display()));
            }
            written.confirm.iter().for_each(|command| console.tell(&format!("confirm: {command}")));
        }
    }
    Ok(())
}
