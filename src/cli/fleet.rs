//! Fleets on the command line.

use std::path::{Path, PathBuf};

use super::console::Stop;
use super::experiment::{Common, ShardArgument, parts_directory, write_part, write_whole};
use super::{Console, Format};
use crate::domain::words::counted;
use crate::experiment::statistics::Estimate;
use crate::program::Failure;
use crate::program::fleet::comparison::{FleetCompare, FleetComparison, FleetPoint, PolicyResult};
use crate::program::fleet::{Audience, Fleet, Request, begin, reject_fleet_options};
use crate::report::columns::printed;
use crate::report::figure::Figure;
use crate::report::format::money;
use crate::report::table::Rows;
use crate::simulation::Outcome;
use nodecast_fleet::recommend::{Options, recommend as find};
use nodecast_fleet::{FocusVersion, LoadedCluster, focus, recommend_text, terminal};

/// Options of `run` that only fleets have.
#[derive(clap::Args, Debug)]
pub(super) struct RunOptions {
    /// Clusters of a fleet to run in parallel; does not change the result [default: one per CPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Also write the bill of a fleet as a FOCUS file, focus.csv, into this directory
    #[arg(long, value_name = "DIR")]
    focus: Option<PathBuf>,
    /// Version of FOCUS: 1.2, or 1.3 with the provider columns of both
    #[arg(long, value_name = "VERSION", default_value = "1.2", value_parser = focus_version, requires = "focus")]
    focus_version: FocusVersion,
}

fn focus_version(text: &str) -> Result<FocusVersion, String> {
    match text {
        "1.2" => Ok(FocusVersion::V1_2),
        "1.3" => Ok(FocusVersion::V1_3),
        _ => Err("use 1.2 or 1.3".to_owned()),
    }
}

impl RunOptions {
    /// Refuses these options for a scenario.
    pub(super) fn reject_for_scenario(&self) -> Result<(), Failure> {
        reject_fleet_options(&[("--threads", self.threads.is_some()), ("--focus", self.focus.is_some())])
    }
}

/// Options of `recommend` that only fleets have.
#[derive(clap::Args, Debug)]
pub(super) struct RecommendOptions {
    /// Account that buys the plans of a fleet [default: the one in which they cost least]
    #[arg(long, value_name = "ACCOUNT")]
    owner: Option<String>,
    /// Terms of plans for a fleet: 1y, 3y [default: both]
    #[arg(long, value_name = "TERMS", value_delimiter = ',', value_parser = term)]
    terms: Vec<u32>,
    /// Payment of plans for a fleet: no_upfront, all_upfront [default: both, as far as rates are known]
    #[arg(long, value_name = "PAYMENT", value_parser = is_upfront)]
    payment: Option<bool>,
    /// Minimise the mean cost of the worst seeds of a fleet: 0.9 for the worst tenth [default: the mean of all]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    risk: Option<f64>,
    /// Discount of a Compute Savings Plan, which the price data do not have [default: that of a plan of the fleet]
    #[arg(long, value_name = "PERCENT", value_parser = share)]
    compute_discount: Option<f64>,
    /// Discount of a Compute Savings Plan on Fargate [default: that of a plan of the fleet]
    #[arg(long, value_name = "PERCENT", value_parser = share)]
    fargate_discount: Option<f64>,
}

fn term(text: &str) -> Result<u32, String> {
    match text {
        "1y" => Ok(1),
        "3y" => Ok(3),
        _ => Err("use 1y or 3y".to_owned()),
    }
}

fn is_upfront(text: &str) -> Result<bool, String> {
    match text {
        "no_upfront" => Ok(false),
        "all_upfront" => Ok(true),
        _ => Err("use no_upfront or all_upfront".to_owned()),
    }
}

fn share(text: &str) -> Result<f64, String> {
    let number = match text.strip_suffix('%') {
        Some(percent) => percent.parse::<f64>().map(|percent| percent / 100.0),
        None => text.parse::<f64>(),
    };
    number.ok().filter(|share| (0.0..1.0).contains(share)).ok_or_else(|| "use for example 27% or 0.27".to_owned())
}

impl RecommendOptions {
    /// Refuses these options for a scenario.
    pub(super) fn reject_for_scenario(&self) -> Result<(), Failure> {
        reject_fleet_options(&[
            ("--owner", self.owner.is_some()),
            ("--terms", !self.terms.is_empty()),
            ("--payment", self.payment.is_some()),
            ("--risk", self.risk.is_some()),
            ("--compute-discount", self.compute_discount.is_some()),
            ("--fargate-discount", self.fargate_discount.is_some()),
        ])
    }

    /// Terms and payments with known rates.
    fn offers(&self) -> Vec<(u32, bool)> {
        let is_wanted = |offer: &(u32, bool)| {
            (self.terms.is_empty() || self.terms.contains(&offer.0)) && self.payment.is_none_or(|all| all == offer.1)
        };
        [(1, false), (1, true), (3, true)].into_iter().filter(is_wanted).collect()
    }
}

/// Seeds of a recommendation unless the fleet sets `replications`.
const SEEDS: u32 = 3;

/// Finds the best commitments of a fleet, and prints them.
pub(super) fn recommend(
    request: Request,
    options: &RecommendOptions,
    (format, common): (Format, &Common),
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let fleet = Fleet::load(request)?;
    let owner = options.owner.as_deref().map(|name| fleet.account(name)).transpose()?;
    let seeds = fleet.loaded.fleet.replications.unwrap_or(SEEDS);
    if !common.quiet {
        let clusters = u64::from(seeds) * fleet.loaded.clusters.len() as u64;
        console.tell(&format!("running {}", counted(clusters, "simulation", "simulations")));
    }
    let leftover = fleet.leftover(seeds, common.threads, &Watch(Stop::on_interrupt()))?;
    let wanted = Options {
        owner,
        offers: options.offers(),
        risk: options.risk,
        compute_discount: options.compute_discount,
        fargate_discount: options.fargate_discount,
    };
    let answer = find(&fleet.loaded, &leftover, &wanted, (fleet.catalog(), fleet.currency()?));
    match format {
        Format::Table => console.verdicts(&recommend_text::text(&answer, console.width())),
        Format::Json => console.document(&answer.to_json().map_err(Failure::of_report)?),
    }
}

/// Compares policies of a fleet, and prints the differences; with a shard, runs its simulations and writes them as a part.
pub(super) fn compare(
    request: &Request,
    (policies, replications): (&[String], Option<u32>),
    (shard, out): (Option<ShardArgument>, Option<&Path>),
    (format, common): (Format, &Common),
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let compare = FleetCompare::load(request, policies, replications)?;
    let watch = Watch(Stop::on_interrupt());
    if let Some(shard) = shard {
        let shard = shard.resolved()?;
        let points = compare.points(Some(shard), common.threads, &watch)?;
        let out = out.map_or_else(|| parts_directory(compare.name()), Path::to_owned);
        return write_part(compare.question, shard, points, &out, console);
    }
    let points: Vec<FleetPoint> =
        compare.points(None, common.threads, &watch)?.into_iter().map(|(_, point)| point).collect();
    print_comparison(&compare.answer(&points)?, format, console)
}

/// Prints the comparison of a fleet.
pub(super) fn print_comparison(
    answer: &FleetComparison,
    format: Format,
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    match format {
        Format::Table => console.verdicts(&comparison_text(answer, console.width())),
        Format::Json => {
            let json = serde_json::to_string_pretty(answer).map_err(Failure::of_report)? + "\n";
            console.document(&json)
        }
    }
}

/// The comparison as people read it.
fn comparison_text(answer: &FleetComparison, width: Option<usize>) -> String {
    let seeds = counted(u64::from(answer.replications), "seed", "seeds");
    let mut lines = differences(answer);
    lines.push(format!("{seeds} from {}, 95% confidence intervals", answer.first_seed));
    let currency = answer.currency.as_str();
    let interval = |estimate: &Estimate, signed: bool| {
        let amount = |value: f64| money(currency, value.abs());
        let sign = if !signed {
            ""
        } else if estimate.mean < 0.0 {
            "-"
        } else {
            "+"
        };
        let half = estimate.high.zip(estimate.low).map(|(high, low)| format!(" \u{b1} {}", amount((high - low) / 2.0)));
        format!("{sign}{}{}", amount(estimate.mean), half.unwrap_or_default())
    };
    let table = Rows::new(&answer.policies)
        .text("policy", |result: &&PolicyResult| result.policy.clone())
        .number("cost per month", |result| result.cost.as_ref().map(|cost| interval(cost, false)))
        .number("change", |result| result.difference.as_ref().map(|paired| interval(&paired.difference, true)))
        .number("unused", |result| money(currency, result.unused))
        .number("pod wait p99", |result| result.pod_wait_p99_seconds.map(Figure::seconds))
        .number("refused", |result| Figure::decimals(result.launches_refused, 1))
        .table();
    lines.extend(table.lines(width));
    printed(&lines, width)
}

/// The answer: one line per policy after the first, with the difference of its cost.
fn differences(answer: &FleetComparison) -> Vec<String> {
    let Some((first, others)) = answer.policies.split_first() else { return Vec::new() };
    let sentence = |other: &PolicyResult| {
        let difference = &other.difference.as_ref()?.difference;
        let amount = money(&answer.currency, difference.mean.abs());
        let words = match difference.excludes_zero() || difference.low.is_none() {
            true if difference.mean < 0.0 => format!("costs {amount} per month less than"),
            true => format!("costs {amount} per month more than"),
            false => "is not clearly cheaper or more expensive than".to_owned(),
        };
        Some(format!("{}: {} {words} {}", answer.fleet, other.policy, first.policy))
    };
    others.iter().filter_map(sentence).collect()
}

/// Runs on Ctrl-C no further.
pub(super) struct Watch(Stop);

impl Watch {
    pub(super) fn on_interrupt() -> Self {
        Self(Stop::on_interrupt())
    }
}

impl Audience for Watch {
    fn ended(&self, _: &LoadedCluster, _: &Outcome) {}

    fn is_stopped(&self) -> bool {
        self.0.is_wanted()
    }
}

/// Runs a fleet, writes its report, and prints the answer.
pub(super) fn run(
    request: &Request,
    out: Option<&Path>,
    options: &RunOptions,
    (format, quiet): (Format, bool),
    console: &mut Console<'_>,
) -> Result<(), Failure> {
    let fleet = Fleet::load(request.clone())?;
    let out = out.map_or_else(|| fleet.output_directory(), Path::to_owned);
    let directory = begin(&out)?;
    let seed = fleet.seed();
    let answer = fleet.answer(seed, options.threads, Some(&directory), &Watch(Stop::on_interrupt()))?;
    let command = fleet.command(seed);
    answer.bill.write(&fleet.loaded, &answer.summary, &command, &directory).map_err(Failure::of_report)?;
    directory.commit().map_err(Failure::of_report)?;
    if let Some(folder) = &options.focus {
        write_whole(&folder.join(focus::FILE), &fleet.focus(&answer, options.focus_version)?)?;
    }
    match format {
        Format::Table => console.verdicts(&terminal::table(&answer.summary, console.width()))?,
        Format::Json => console.document(&answer.summary.to_json().map_err(Failure::of_report)?)?,
    }
    if !quiet {
        console.tell(&format!("report: {}", out.join("index.html").display()));
    }
    Ok(())
}
