//! The summary that `run` prints: at most 25 lines and the warnings. `--verbose` and the report have the rest.

use super::{heading, warnings};
use crate::answers::{failed_upgrades, objective_name, spot_range, unknown_response};
use crate::columns::{folded_with, printed};
use crate::format::{self, count, counted, money_among, money_in_short, percent, span};
use crate::run_tables::{self, Wait};
use crate::short_names::{apart, without_namespace};
use crate::summary::{ObjectiveResult, Part, Summary};

/// Lines before the warnings.
const LINES_MAX: usize = 25;
/// Width of the labels.
const LABEL: usize = 24;
/// Items of the bill that have a name.
const ITEMS: usize = 4;
/// Workloads in the table of waits, and those with response times.
const WORKLOADS: usize = 2;
/// Problems of one kind.
const ALIKE: usize = 2;
/// Reasons that block consolidation.
const REASONS: usize = 2;

/// The summary in lines of at most `width` characters, if that is known.
pub fn brief(summary: &Summary, width: Option<usize>) -> String {
    let (mut head, mut lines, mut end) = (Vec::new(), Vec::new(), Vec::new());
    heading(summary, &mut head);
    cost(summary, &mut lines);
    lines.extend(run_tables::waits(waits(summary)).lines(width));
    objectives(summary, &mut lines);
    let ends = ends(summary);
    problems(summary, LINES_MAX.saturating_sub(head.len() + lines.len() + ends.len()), &mut lines);
    lines.extend(ends);
    warnings(summary, &mut end);
    let body: Vec<String> = lines.iter().flat_map(|line| below_value(line, width)).collect();
    printed(&head, width) + &printed(&body, None) + &printed(&end, width)
}

/// A line in lines of at most `width` characters, which go on below its value where the terminal has room for that.
fn below_value(line: &str, width: Option<usize>) -> Vec<String> {
    let Some(width) = width.filter(|&width| line.chars().count() > width) else { return vec![line.to_owned()] };
    let indent = " ".repeat(if width >= 2 * LABEL + 12 { LABEL } else { 4 });
    folded_with(line, width, &indent)
}

fn labelled(label: &str, text: &str) -> String {
    format!("{label:<LABEL$}{text}")
}

pub(super) fn cost(summary: &Summary, lines: &mut Vec<String>) {
    let (cost, currency) = (&summary.cost, &summary.about.currency);
    let short = |amount| money_in_short(currency, amount);
    let exact = |amount| money_among(currency, amount, cost.total);
    let length = span(summary.about.duration_seconds);
    let total = match cost.per_month.zip(cost.per_hour) {
        Some((month, hour)) => {
            format!("{}/month = {}/h = {} for {length}", short(month), short(hour), short(cost.total))
        }
        None => short(cost.total),
    };
    lines.push(labelled("Cost", &total));
    lines.extend(
        spot_range(summary).map(|range| labelled("  Spot price range", &format!("{range}/month (p10 to p90)"))),
    );
    lines.push(labelled("  by item", &parts(&largest(&cost.by_item, cost.total), &exact)));
    if !cost.by_capacity_type.is_empty() {
        let hourly =
            cost.nodes_per_hour.map_or_else(String::new, |hour| format!(" ({}/h)", format::money(currency, hour)));
        lines.push(labelled("  nodes incl. volumes", &(parts(&cost.by_capacity_type, &exact) + &hourly)));
    }
    let shares = [
        ("  idle capacity", &cost.idle),
        ("  unused commitments", &cost.unused),
        ("  at estimated prices", &cost.unconfirmed),
    ];
    for (label, part) in shares.into_iter().filter(|(_, part)| part.amount > 0.0) {
        lines.push(labelled(label, &format!("{} ({})", exact(part.amount), percent(part.share))));
    }
}

/// The largest parts, and the rest of `total` as one.
fn largest(all: &[Part], total: f64) -> Vec<Part> {
    let mut all = all.to_vec();
    if all.len() > ITEMS + 1 {
        all.sort_by(|one, other| other.amount.total_cmp(&one.amount));
        all.truncate(ITEMS);
        let rest = total - all.iter().map(|part| part.amount).sum::<f64>();
        all.push(Part { name: "other".to_owned(), amount: rest, share: rest / total });
    }
    all
}

fn parts(parts: &[Part], money: &impl Fn(f64) -> String) -> String {
    let parts: Vec<String> =
        parts.iter().map(|part| format!("{} {}", format::bought_as(&part.name), money(part.amount))).collect();
    parts.join(", ")
}

/// Rows of the table of waits: all pods, the workloads that waited longest, and the slowest response times.
fn waits(summary: &Summary) -> Vec<Wait> {
    let pods = &summary.pods;
    let longest: Vec<_> = super::longest_waits(summary).into_iter().take(WORKLOADS).collect();
    let names: Vec<&str> = longest.iter().map(|workload| workload.workload.as_str()).collect();
    let workloads = longest.iter().zip(apart(&names, LABEL - 4, without_namespace));
    let workloads = workloads.map(|(workload, name)| (format!("    {name}"), &workload.waits.wait_for_node));
    let spans = [("  pod wait for node".to_owned(), &pods.wait_for_node)].into_iter().chain(workloads);
    let spans = spans.chain([("  pod create to Ready".to_owned(), &pods.created_to_ready)]);
    let mut rows: Vec<Wait> =
        spans.filter_map(|(name, spans)| Some(Wait::from_distribution(name, spans.as_ref()?))).collect();
    let mut slowest: Vec<_> = summary.requests.iter().filter(|requests| requests.p99_seconds.is_some()).collect();
    slowest.sort_by(|one, other| other.p99_seconds.unwrap_or(0.0).total_cmp(&one.p99_seconds.unwrap_or(0.0)));
    slowest.truncate(WORKLOADS);
    let names: Vec<&str> = slowest.iter().map(|requests| requests.workload.as_str()).collect();
    let names = apart(&names, LABEL - "   response".len(), without_namespace);
    rows.extend(
        slowest.iter().zip(names).map(|(requests, name)| Wait::from_requests(format!("  {name} response"), requests)),
    );
    rows
}

pub(super) fn objectives(summary: &Summary, lines: &mut Vec<String>) {
    let names: Vec<&str> = summary.objectives.iter().map(|objective| objective_name(&objective.name)).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    for (at, (objective, name)) in summary.objectives.iter().zip(names).enumerate() {
        let label = if at == 0 { "Objectives" } else { "" };
        let verdict = match objective.met {
            Some(true) => "met",
            Some(false) => "MISSED",
            None => "no data",
        };
        lines.push(format!("{label:<13}{verdict:<9}{name:<width$}  {}", measured(objective)));
    }
}

/// The value of an objective with its limit: `54.1 s of 2m`.
fn measured(objective: &ObjectiveResult) -> String {
    let value = |value| format::objective(&objective.unit, value);
    let limit = value(objective.limit);
    let because = objective.because.as_ref().map_or_else(String::new, |because| format!("; {because}"));
    match objective.actual {
        Some(actual) if objective.unit == format::POD_MINUTES => {
            format!("{} of {limit}{because}", format::minutes(actual))
        }
        Some(actual) => format!("{} of {limit}{because}", value(actual)),
        None => format!("limit {limit}{because}"),
    }
}

/// Lines on what no objective covers, at most `room`.
fn problems(summary: &Summary, room: usize, lines: &mut Vec<String>) {
    let mut all = Vec::new();
    let mut some = |label: &str, texts: Vec<String>| {
        all.extend(texts.iter().take(ALIKE).map(|text| format!("{label}{text}")));
        if texts.len() > ALIKE {
            all.push(format!("{label}+ {} more", texts.len() - ALIKE));
        }
    };
    let availability = &summary.availability;
    let is_judged = summary.objectives.iter().any(|objective| objective.name == "unavailable_pod_minutes");
    if let Some(share) = availability.unavailable_share.filter(|share| *share > 0.0 && !is_judged) {
        let missing = format::objective(format::POD_MINUTES, availability.unavailable_pod_minutes);
        some("missing replicas: ", vec![format!("{missing} ({} of desired)", percent(share))]);
    }
    let at_zero = availability.worst().into_iter().filter(|workload| workload.at_zero_seconds > 0.0);
    some("zero Ready replicas: ", at_zero.map(|workload| workload.at_zero_words()).collect());
    let upgrades =
        failed_upgrades(summary).map(|upgrade| format!("of {} failed: {}", upgrade.node_origin, upgrade.failure()));
    some("upgrade ", upgrades.collect());
    some("limit reached: ", summary.limits_reached.iter().map(|limit| limit.words()).collect());
    some("at max replicas: ", availability.full().iter().map(|autoscaler| autoscaler.words()).collect());
    let failed =
        summary.requests.iter().filter_map(|requests| Some(format!("{}: {}", requests.workload, requests.failed()?)));
    some("", failed.collect());
    some("response time ", unknown_response(summary).into_iter().collect());
    if summary.pods.pending_at_end > 0 {
        some("", vec![format!("{} pending at the end", counted(summary.pods.pending_at_end, "pod", "pods"))]);
    }
    if summary.pods.restarts > 0 {
        let restarts = counted(summary.pods.restarts, "container restart", "container restarts");
        some("", vec![format!("{restarts} (failed probes, failed containers, or out of memory)")]);
    }
    let behind = summary.queues.iter().filter(|queue| queue.waiting_at_end >= 0.5);
    let left = |queue: &crate::summary::QueueFigures| {
        format!("{}: {} messages left at the end", queue.queue, format::whole(queue.waiting_at_end))
    };
    some("queue ", behind.map(left).collect());
    some("churn loop: ", summary.churn.cycles.iter().map(|cycle| cycle.sentence()).collect());
    let left = all.len().saturating_sub(room.max(1));
    if left > 0 {
        all.truncate(room.saturating_sub(1));
        all.push(format!("+ {} more: --verbose", left + 1));
    }
    lines.extend(all.iter().enumerate().map(|(at, text)| labelled(if at == 0 { "Problems" } else { "" }, text)));
}

/// Nodes, churn, and the basis of the answer.
pub(super) fn ends(summary: &Summary) -> Vec<String> {
    let mut lines = vec![labelled("Nodes", &nodes(summary))];
    lines.extend(summary.node_upgrades.iter().take(1).map(|upgrade| labelled("  upgrade", &upgrade.sentence())));
    let churn = &summary.churn;
    if churn.evictions > 0 {
        let per_day =
            churn.evictions_per_day.map_or_else(String::new, |rate| format!(" ({}/day)", format::per_day(rate)));
        let evictions = counted(churn.evictions, "eviction", "evictions");
        let lost = span(churn.ready_time_lost_seconds);
        let overlap = money_in_short(&summary.about.currency, churn.overlap_cost + churn.image_cost);
        let overlap = if churn.overlap_cost > 0.0 { format!(", overlap cost {overlap}") } else { String::new() };
        lines.push(labelled("Churn", &format!("{evictions}{per_day}, {lost} of Ready time lost{overlap}")));
    }
    let blocked = churn.blocked.iter().take(REASONS);
    let blocked: Vec<String> =
        blocked.map(|why| format!("{} ({})", why.reason, counted(why.nodes, "node", "nodes"))).collect();
    if !blocked.is_empty() {
        lines.push(labelled("  blocked consolidation ", &blocked.join(", ")));
    }
    let about = &summary.about;
    let mut basis = vec![counted(about.assumptions.len() as u64, "assumption", "assumptions")];
    basis.push(format!("prices of {}", about.price_date));
    basis.extend(about.warm_up_seconds.map(|seconds| format!("waits and churn exclude the {} warm-up", span(seconds))));
    lines.push(labelled("Basis", &basis.join("; ")));
    lines
}

fn nodes(summary: &Summary) -> String {
    let nodes = &summary.nodes;
    let mean = nodes.mean_ready.map_or_else(String::new, |mean| format!(", mean {mean:.1}"));
    let failed = if nodes.failed_launches > 0 { format!(", {}", nodes.failures()) } else { String::new() };
    let mut text = format!(
        "peak {}{mean}; {} launched{failed}, {}",
        count(nodes.max_ready),
        count(nodes.launches),
        nodes.departures()
    );
    if nodes.interruptions > 0 {
        text += &format!(", {}", counted(nodes.interruptions, "Spot interruption", "Spot interruptions"));
    }
    if nodes.on_demand_fallbacks > 0 {
        text += &format!(", {} to On-Demand", counted(nodes.on_demand_fallbacks, "fallback", "fallbacks"));
    }
    text
}
