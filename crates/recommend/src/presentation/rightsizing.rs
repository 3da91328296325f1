//! The tables that `rightsize` prints, and the files of its patches.

use super::{known, known_difference};
use crate::domain::words::{rounded, some_of};
use crate::domain::{Currency, ResourceName, Resources};
use crate::report::columns::printed;
use crate::report::figure::{Figure, Unit};
use crate::report::format::{self, Measure};
use crate::report::short_names::apart;
use crate::report::table::{Cell, Rows, Table};
use crate::rightsizing::{Amounts, LeftAlone, Patch, RightSizing, Sizing, SizingResult};
use crate::statistics::Estimate;

/// Hours of CPU throttling below these are not worth a word.
pub(super) const THROTTLED_LEAST: f64 = 0.05;
/// Containers that are printed; the JSON has all.
const CONTAINERS: usize = 20;
const NAME: usize = 26;

/// The tables of an answer, with columns below one another where lines have no more than `width` characters.
pub fn table(answer: &RightSizing, width: Option<usize>) -> String {
    let mut lines = Vec::new();
    heading(answer, &mut lines);
    lines.extend(sizings(answer).lines(width));
    lines.extend(answer.sizings.iter().filter_map(cause_of_cost));
    lines.push(String::new());
    lines.extend(workloads(answer).lines(width));
    if !answer.workloads.is_empty() {
        lines.push(String::new());
    }
    lines.extend(containers(answer).lines(width));
    if answer.containers.len() > CONTAINERS {
        let more = format::counted((answer.containers.len() - CONTAINERS) as u64, "container", "containers");
        lines.push(format!("  + {more} more (see --format json)"));
    }
    if !answer.containers.is_empty() {
        lines.push(String::new());
    }
    trust(answer, &mut lines);
    printed(&lines, width)
}

fn heading(answer: &RightSizing, lines: &mut Vec<String>) {
    let seeds = format::counted(answer.replications, "seed", "seeds");
    let present = pressure_today(answer).map_or_else(String::new, |words| format!("; {words}"));
    lines.push(format!("{}: {}{present}", answer.scenario, verdict(answer)));
    lines.push(format!(
        "policy {} in {}, {seeds} from {}, prices of {}",
        answer.policy, answer.region, answer.first_seed, answer.price_date
    ));
    lines.push(String::new());
}

/// The effect of the recommended requests on the cost.
fn verdict(answer: &RightSizing) -> String {
    let recommended = answer.sizings.iter().find(|sizing| sizing.name == "recommended");
    let change = recommended.and_then(|sizing| sizing.against_today.as_ref()?.relative.as_ref());
    match change.map(known_difference) {
        Some(change) if change.mean.abs() > 0.0 => {
            format!("recommended requests change the cost by {}", change.text(Measure::Share))
        }
        Some(_) => "recommended requests do not change the cost".to_owned(),
        None => "no effect of the recommended requests on the cost is known".to_owned(),
    }
}

/// OOM kills and CPU throttling with the current requests; `None` without either.
fn pressure_today(answer: &RightSizing) -> Option<String> {
    let today = answer.sizing(Sizing::Today)?;
    let mean = |estimate: &Option<Estimate>| estimate.as_ref().map_or(0.0, Estimate::centre);
    let (kills, throttled) = (mean(&today.out_of_memory), mean(&today.throttled_hours));
    let kills = (kills > 0.0).then(|| match format::mean_count(kills).as_str() {
        "1" => "1 OOM kill".to_owned(),
        count => format!("{count} OOM kills"),
    });
    let throttled = (throttled >= THROTTLED_LEAST).then(|| format!("{} h of CPU throttling", rounded(throttled)));
    let all: Vec<String> = kills.into_iter().chain(throttled).collect();
    let period = format!("in {:.1} days", answer.history_days);
    (!all.is_empty()).then(|| format!("current requests: {} {period}", all.join(" and ")))
}

fn label(name: &str) -> String {
    match name {
        "today" => "current".to_owned(),
        "recommended" => "recommended (VPA)".to_owned(),
        percentile => format!("{percentile} of usage"),
    }
}

/// A line for each way to size: its costs and its results.
pub(super) fn sizings(answer: &RightSizing) -> Table {
    let largest = answer.sizings.iter().filter_map(|sizing| sizing.cost_per_month.as_ref()).map(|sizing| sizing.mean);
    let largest = largest.fold(0.0, f64::max);
    let money = among(answer, largest);
    let relative = |sizing: &SizingResult| sizing.against_today.as_ref()?.relative.as_ref().map(known_difference);
    let measured = |estimate: &Option<Estimate>, measure| {
        estimate.as_ref().map(|estimate| Figure::measured(known(estimate), measure))
    };
    let seconds = |estimate: &Option<Estimate>| estimate.as_ref().map(|estimate| Figure::seconds(estimate.mean));
    Rows::new(&answer.sizings)
        .text("requests", |sizing| label(&sizing.name))
        .number("cost per month", |sizing| measured(&sizing.cost_per_month, money))
        .number("vs today", |sizing| relative(sizing).map(|known| Figure::measured(known, Measure::Share)))
        .number("OOM kills", |sizing| measured(&sizing.out_of_memory, Measure::Count))
        .number("evicted", |sizing| measured(&sizing.evicted_for_memory, Measure::Count))
        .number("throttled", |sizing| measured(&sizing.throttled_hours, Measure::Count))
        .unit("h")
        .number("pod wait p99", |sizing| seconds(&sizing.pending_p99))
        .number("resp. p99", |sizing| seconds(&sizing.request_p99))
        .number("unscheduled", |sizing| sizing.pods_pending.as_ref().map(|pods| tenths(pods.mean)))
        .table()
}

/// Tenths mean nothing among hundreds.
fn tenths(value: f64) -> Figure {
    if value < 100.0 { Figure::decimals(value, 1) } else { Figure::whole(value) }
}

/// Money of the answer among amounts of which `largest` is the largest.
pub(super) fn among(answer: &RightSizing, largest: f64) -> Measure<'static> {
    let currency = Currency::from_code(&answer.currency).map_or("", Currency::code);
    Measure::Money { currency, largest }
}

/// Why a sizing costs more than today, where autoscalers add replicas because requests are smaller.
pub(super) fn cause_of_cost(sizing: &SizingResult) -> Option<String> {
    let costs_more = sizing.against_today.as_ref().is_some_and(|paired| paired.difference.mean > 0.0);
    if !costs_more || sizing.more_replicas.is_empty() {
        return None;
    }
    let each = sizing.more_replicas.iter().map(|workload| {
        format!("{} {} -> {}", workload.workload, rounded(workload.replicas_today), rounded(workload.replicas))
    });
    Some(format!(
        "Requests ({}) cost more because autoscalers compare use with them: smaller requests mean a higher utilization, and more replicas \
         (mean replicas: {}). Raise `averageUtilization`, or use `averageValue`.",
        label(&sizing.name),
        some_of(&each.collect::<Vec<_>>())
    ))
}

/// A line for each workload: its costs with each way to size.
pub(super) fn workloads(answer: &RightSizing) -> Table {
    let all = answer.workloads.iter().flat_map(|workload| workload.cost_per_month.iter().flatten());
    let money = Unit::Measured(among(answer, all.copied().fold(0.0, f64::max)));
    let names: Vec<&str> = answer.workloads.iter().map(|workload| workload.workload.as_str()).collect();
    let names = apart(&names, NAME - 3, cut);
    let mut table =
        Rows::new(answer.workloads.iter().zip(names)).text("cost per month", |(_, name)| format!("  {name}"));
    for (position, sizing) in answer.sizings.iter().enumerate() {
        table = table.number(&sizing.name, |(workload, _)| {
            workload.cost_per_month.get(position).copied().flatten().map(|cost| Figure::new(cost, money))
        });
    }
    table.table()
}

/// A name that fits.
fn cut(name: &str, width: usize) -> String {
    let count = name.chars().count();
    if count <= width {
        return name.to_owned();
    }
    let tail: String = name.chars().skip(count - (width - 1)).collect();
    format!("\u{2026}{tail}")
}

/// Two lines for each container: its requests and its use.
pub(super) fn containers(answer: &RightSizing) -> Table {
    let shown = answer.containers.iter().take(CONTAINERS);
    let names: Vec<String> = shown.clone().map(|item| format!("{}:{}", item.workload, item.container)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let rows = shown.zip(apart(&names, NAME - 3, cut)).flat_map(|(container, name)| {
        let amounts = [(&container.cpu, "CPU, cores", 3), (&container.memory, "memory, MiB", 0)].into_iter();
        amounts.filter_map(move |(amounts, what, decimals)| Some((name.clone(), amounts.as_ref()?, what, decimals)))
    });
    let bounds = |amounts: &Amounts, decimals: usize| {
        let shown = |amount: f64| format!("{amount:.decimals$}");
        let upper = if amounts.upper_bound > 1e7 { "any".to_owned() } else { shown(amounts.upper_bound) };
        format!("{} ({} to {upper})", shown(amounts.recommended), shown(amounts.lower_bound))
    };
    Rows::new(rows)
        .text("each pod", |(name, ..)| format!("  {name}"))
        .number("resource", |(.., what, _)| *what)
        .label()
        .number("requests", |(_, amounts, _, decimals)| {
            amounts.request.map_or_else(|| Cell::from("none"), |request| Figure::decimals(request, *decimals).into())
        })
        .number("used p50", |(_, amounts, _, decimals)| Figure::decimals(amounts.p50, *decimals))
        .number("p90", |(_, amounts, _, decimals)| Figure::decimals(amounts.p90, *decimals))
        .number("p99", |(_, amounts, _, decimals)| Figure::decimals(amounts.p99, *decimals))
        .text("recommended (bounds)", |(_, amounts, _, decimals)| bounds(amounts, *decimals))
        .table()
}

/// How far the answer can be trusted.
fn trust(answer: &RightSizing, lines: &mut Vec<String>) {
    lines.extend(history(answer));
    lines.extend(answer.left_alone.iter().take(CONTAINERS).map(|skipped| format!("skipped: {}", reason(skipped))));
    for warning in &answer.warnings {
        lines.push(format!("warning: {warning}"));
    }
}

/// The usage that sizes are based on.
pub(super) fn history(answer: &RightSizing) -> Vec<String> {
    let mut sentences = vec![format!(
        "Based on {:.1} days of usage from the scenario (seed {}). A longer history may show other peaks.",
        answer.history_days, answer.first_seed
    )];
    if answer.history_days < 7.0 {
        sentences.push("Less than a week of data: simulate 7d or more before lowering requests.".to_owned());
    }
    sentences
}

/// A workload or container that is skipped, and why.
pub(super) fn reason(skipped: &LeftAlone) -> String {
    let container = skipped.container.as_ref().map_or_else(String::new, |name| format!(", container {name}"));
    format!("{} {}{container}: {}", skipped.kind, skipped.workload, skipped.why)
}

/// The files of a kustomize component that gives workloads their sizes, by name.
pub fn kustomization(patches: &[Patch], sizing: Sizing) -> Vec<(String, String)> {
    let mut files = Vec::new();
    let mut listed = String::new();
    for this_patch in patches {
        let (kind, name) = this_patch.owner;
        let file = format!("{}-{}-{}.yaml", kind.to_ascii_lowercase(), name.namespace, name.name);
        listed.push_str(&format!("  - path: {file}\n"));
        files.push((file, patch(this_patch)));
    }
    let head = format!(
        "# Requests ({}), written by nodecast rightsize. Use: components: [this directory] in a kustomization.yaml.\n\
         apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n",
        label(sizing.as_str())
    );
    let patches = if listed.is_empty() { "patches: []\n".to_owned() } else { format!("patches:\n{listed}") };
    files.push(("kustomization.yaml".to_owned(), head + &patches));
    files
}

/// A strategic merge patch of one workload.
fn patch(patch: &Patch) -> String {
    let (kind, name) = patch.owner;
    let mut text = format!(
        "apiVersion: apps/v1\nkind: {kind}\nmetadata:\n  name: {}\n  namespace: {}\nspec:\n  template:\n    spec:\n      containers:\n",
        name.name, name.namespace
    );
    for (container, requests, limits) in &patch.containers {
        text.push_str(&format!("        - name: {container}\n          resources:\n"));
        for (what, amounts) in [("requests", requests), ("limits", limits)] {
            if amounts.is_empty() {
                continue;
            }
            text.push_str(&format!("            {what}:\n"));
            for (name, amount) in amounts.iter() {
                text.push_str(&format!("              {}: {}\n", name.0, quantity(amounts, name, amount)));
            }
        }
    }
    text
}

/// An amount as a manifest has it, exactly: CPU in thousandths, memory in the largest unit that divides it.
pub fn quantity(amounts: &Resources, name: ResourceName, amount: i64) -> String {
    debug_assert_eq!(amounts.find(name), Some(amount), "an amount is of its own resource");
    if name == ResourceName::CPU {
        return format!("{amount}m");
    }
    match amount {
        _ if name != ResourceName::MEMORY => format!("\"{amount}\""),
        _ if amount % (1 << 20) == 0 => format!("{}Mi", amount >> 20),
        _ if amount % (1 << 10) == 0 => format!("{}Ki", amount >> 10),
        _ => format!("\"{amount}\""),
    }
}
