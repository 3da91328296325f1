//! `nodecast recommend`: what to change so that a cluster costs less and nobody waits longer.

use std::path::PathBuf;
use std::time::Duration;

use super::edits::{self, Edits};
use super::experiment::{Bar, Common, write_whole};
use super::{Console, Format};
use crate::domain::SimDuration;
use crate::experiment::presentation::{recommendation, recommendation_page};
use crate::experiment::recommendation::Kind;
use crate::program::Failure;
use crate::program::recommend::{Recommend, Request, SIMULATIONS_MIN, begin};

/// Find what to change so that the cluster costs less and keeps its objectives
///
/// Searches over what a user may change (consolidation, instance families and sizes, Spot, HPA targets, requests, flags, commitments), takes
/// out of the best what does not save, and confirms the rest with seeds that the search has not seen. What has to be kept are the
/// scenario's objectives; without any, waits, availability and churn as they are today. If nothing surely saves, it says so.
#[derive(clap::Args, Debug)]
pub(super) struct Arguments {
    /// The scenario file
    scenario: PathBuf,
    /// The policy to make cheaper [default: the scenario's first]
    #[arg(long, value_name = "NAME", visible_alias = "policies")]
    policy: Option<String>,
    /// Most simulations; the same number gives the same answer on every machine
    #[arg(long, value_name = "N", default_value = "1000", value_parser = clap::value_parser!(u32).range(i64::from(SIMULATIONS_MIN)..=1_000_000))]
    simulations: u32,
    /// Try nothing further after this time: the answer is that of as many simulations as there was time for, and says how many
    #[arg(long, value_name = "TIME", value_parser = crate::program::edits::time)]
    budget: Option<SimDuration>,
    /// What may be changed [default: everything but architectures, which images have to allow]
    #[arg(long, value_name = "LEVERS", value_delimiter = ',', value_parser = lever)]
    levers: Vec<Kind>,
    /// What may not be changed
    #[arg(long, value_name = "LEVERS", value_delimiter = ',', value_parser = lever)]
    without: Vec<Kind>,
    /// The share of what is left to pay that each change has to save
    #[arg(long, value_name = "PERCENT", default_value = "1%", value_parser = percent)]
    least_saving: f64,
    /// The share of today's cost that all changes together have surely to save, to be worth changing anything
    #[arg(long, value_name = "PERCENT", default_value = "2%", value_parser = percent)]
    worth: f64,
    /// Most changes
    #[arg(long, value_name = "N", default_value = "6", value_parser = clap::value_parser!(u32).range(1..=20))]
    changes: u32,
    /// The first seed of the search [default: the scenario's]
    #[arg(long, value_name = "N", value_parser = edits::seed, allow_negative_numbers = true)]
    seed: Option<u64>,
    #[command(flatten)]
    edits: Edits,
    /// Write the changed objects, and the scenario with them as a policy, into this folder; where a policy cannot state all that changes, as
    /// commitments of all policies, after.yaml is the whole scenario as it would be
    #[arg(long, value_name = "DIR")]
    write: Option<PathBuf>,
    /// Also write the answer as a page, with its curves
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// What to print: text for people, or recommendation.json
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    #[command(flatten)]
    common: Common,
}

fn lever(text: &str) -> Result<Kind, String> {
    Kind::named(text).ok_or_else(|| {
        let known: Vec<&str> = Kind::ALL.iter().map(|(name, _)| *name).collect();
        format!("there are {}", known.join(", "))
    })
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').and_then(|number| number.parse::<f64>().ok());
    let share = number.map(|number| number / 100.0).filter(|share| (0.0..=0.5).contains(share));
    share.ok_or_else(|| "write for example 1% or 0.5%, at most 50%".to_owned())
}

/// Searches, prints the answer and writes what is asked for.
pub(super) fn execute(arguments: &Arguments, console: &mut Console<'_>) -> Result<(), Failure> {
    let common = &arguments.common;
    let allowed: Vec<Kind> =
        if arguments.levers.is_empty() { Kind::usual().collect() } else { arguments.levers.clone() };
    let kinds = allowed.into_iter().filter(|kind| !arguments.without.contains(kind)).collect();
    let asked = Recommend::load(Request {
        scenario: arguments.scenario.clone(),
        policy: arguments.policy.clone(),
        simulations: arguments.simulations,
        budget: arguments.budget.map(|budget| Duration::from_secs_f64(budget.as_secs_f64().max(0.0))),
        kinds,
        least_saving: arguments.least_saving,
        worth: arguments.worth,
        changes_max: arguments.changes,
        seed: arguments.seed,
        edits: arguments.edits.parse()?,
        pricing_data: common.pricing_data.clone(),
    })?;
    let folder = arguments.write.as_deref().map(|folder| begin(folder).map(|own| (own, folder))).transpose()?;
    let found = asked.answer(common.threads, &mut Bar::new(console, common))?;
    match arguments.format {
        Format::Table => console.data(&recommendation::text_within(&found.answer, console.width()))?,
        Format::Json => console.document(&found.answer.to_json().map_err(Failure::of_report)?)?,
    }
    if let Some(file) = &arguments.html {
        write_whole(file, &recommendation_page::render(&found.answer))?;
        if !common.quiet {
            console.tell(&format!("page: {}", file.display()));
        }
    }
    if let Some((directory, folder)) = folder {
        let written = found.write(directory, folder)?;
        if !common.quiet {
            let count = crate::domain::words::counted(written.objects as u64, "changed object", "changed objects");
            console.tell(&format!("{count} and the scenario with what is recommended: {}", folder.display()));
            written.confirm.iter().for_each(|command| console.tell(&format!("confirm: {command}")));
        }
    }
    Ok(())
}
