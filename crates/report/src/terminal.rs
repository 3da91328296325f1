//! The table that `run` prints: the answers, in about forty lines, plain text without colour.

mod assumptions;
mod availability;
mod churn;
mod control_plane;
mod reached_limits;
mod upgrades;
mod vertical;

use super::answers::{headline, unknown_response};
use super::columns::printed;
use super::format::{self, IntervalFigure, Measure, money, money_among, percent, span};
use super::run_tables;
use super::short_names::{apart, without_namespace};
use super::sparklines;
use super::summary::{Part, Summary, WorkloadWaits};
use nodecast_world::Outcome;

/// Workloads whose requests are printed; the page has all.
const WORKLOADS_MAX: usize = 4;
/// Warnings that are printed; the page has all.
const WARNINGS_MAX: usize = 3;
/// Changes of replica counts that are printed; the page has more, `events.jsonl` all.
const CHANGES_SHOWN: usize = 8;
/// Characters of a change's reason that are printed.
const BECAUSE_WIDTH: usize = 54;
/// Width of the first column.
const LABEL: usize = 22;

/// The table of `summary`, with lines that show `outcome` over time.
pub fn table_over_time(summary: &Summary, outcome: &Outcome) -> String {
    table_over_time_within(summary, outcome, None)
}

/// The same in lines of no more than `width` characters, if that is known.
pub fn table_over_time_within(summary: &Summary, outcome: &Outcome, width: Option<usize>) -> String {
    lines_of(summary, sparklines::lines(outcome), width)
}

/// The table of `summary`.
pub fn table(summary: &Summary) -> String {
    lines_of(summary, Vec::new(), None)
}

fn lines_of(summary: &Summary, over_time: Vec<String>, width: Option<usize>) -> String {
    let mut lines = Vec::new();
    heading(summary, &mut lines);
    availability::lines(summary, &mut lines);
    reached_limits::lines(summary, &mut lines);
    control_plane::lines(summary, &mut lines);
    cost(summary, &mut lines);
    pods(summary, width, &mut lines);
    requests(summary, width, &mut lines);
    queues(summary, width, &mut lines);
    changes(summary, width, &mut lines);
    vertical::lines(summary, width, &mut lines);
    nodes(summary, &mut lines);
    churn::lines(summary, &mut lines);
    upgrades::lines(summary, &mut lines);
    objectives(summary, &mut lines);
    if !over_time.is_empty() {
        lines.push(String::new());
        lines.extend(over_time);
    }
    if let Some(hint) = summary.hint_on_daemons() {
        lines.push(format!("\nhint: {hint}"));
    }
    assumptions::lines(summary, &mut lines);
    warnings(summary, &mut lines);
    printed(&lines, width)
}

fn heading(summary: &Summary, lines: &mut Vec<String>) {
    let about = &summary.about;
    lines.push(format!("{}: {}", about.scenario, headline(summary)));
    lines.push(format!("policy {} ({})", about.policy, about.autoscaler));
    lines.push(format!(
        "{} from {} in {}, seed {}, prices of {}",
        span(about.duration_seconds),
        about.start,
        about.region,
        about.seed,
        about.price_date
    ));
    lines.extend(format::warm_up(about.warm_up_seconds).map(|note| note.replace("; ", ";\n  ")));
    lines.extend(about.calibration.as_ref().map(|calibration| format!("rests on {}", calibration.in_short())));
    lines.push(String::new());
}

fn cost(summary: &Summary, lines: &mut Vec<String>) {
    let cost = &summary.cost;
    let currency = &summary.about.currency;
    let part = |amount| money_among(currency, amount, cost.total);
    let label = format!("cost ({currency})");
    let rates = cost.per_hour.zip(cost.per_month).map_or_else(String::new, |(hour, month)| {
        format!("   {} per hour   {} per month of 730 h", money(currency, hour), money(currency, month))
    });
    lines.push(format!("{label:<LABEL$}{}{rates}", part(cost.total)));
    if let Some(range) = cost.spot_range {
        let (low, high) = (Some(range.total_low), Some(range.total_high));
        let interval_figure = IntervalFigure { mean: cost.total, low, high, ends: true, signed: false };
        let range = interval_figure.range(Measure::Money { currency, largest: cost.total });
        lines.push(format!("{:<LABEL$}{range}  (p10 to p90 of the error of Spot prices)", "  if Spot is off"));
    }
    if let Some(rest) = cost.without_network {
        lines.push(format!(
            "{:<LABEL$}{}  (no load balancer, gateway, address or transfer)",
            "  less network",
            part(rest)
        ));
    }
    let parts = |parts: &[Part]| {
        let parts: Vec<String> =
            parts.iter().map(|this_part| format!("{} {}", this_part.name, part(this_part.amount))).collect();
        parts.join(", ")
    };
    lines.push(format!("{:<LABEL$}{}", "  of it", parts(&cost.by_item)));
    if !cost.by_capacity_type.is_empty() {
        let per_hour =
            cost.nodes_per_hour.map_or_else(String::new, |hour| format!("   {} per hour", money(currency, hour)));
        lines.push(format!("{:<LABEL$}{}{per_hour}", "  nodes", parts(&cost.by_capacity_type)));
    }
    lines.push(format!(
        "{:<LABEL$}{}  ({} of the bill)",
        "  requested by nobody",
        part(cost.idle.amount),
        percent(cost.idle.share)
    ));
    if cost.unused.amount > 0.0 {
        let share = percent(cost.unused.share);
        lines.push(format!("{:<LABEL$}{}  ({share})", "  bought and unused", part(cost.unused.amount)));
    }
    if cost.unconfirmed.amount > 0.0 {
        let share = percent(cost.unconfirmed.share);
        lines.push(format!("{:<LABEL$}{}  ({share})", "  at estimated prices", part(cost.unconfirmed.amount)));
    }
    lines.push(String::new());
}

fn pods(summary: &Summary, width: Option<usize>, lines: &mut Vec<String>) {
    let pods = &summary.pods;
    let longest = longest_waits(summary);
    let names: Vec<&str> = longest.iter().map(|workload| workload.workload.as_str()).collect();
    let names = apart(&names, LABEL - 3, without_namespace);
    let of_workloads = longest.iter().zip(names).map(|(waits, name)| (format!("  {name}"), &waits.waits.wait_for_node));
    let all = [("pods wait for a node".to_owned(), &pods.wait_for_node)].into_iter().chain(of_workloads).chain([
        ("  placeholders".to_owned(), &pods.placeholders.waits.wait_for_node),
        ("pod created to Ready".to_owned(), &pods.created_to_ready),
        ("node launch to Ready".to_owned(), &summary.nodes.launch_to_ready),
    ]);
    let rows = all.filter_map(|(name, spans)| Some((name, spans.as_ref()?, ())));
    let before = lines.len();
    lines.extend(run_tables::spans("time", rows).table().lines(width));
    if pods.pending_at_end > 0 {
        let still = format::counted(pods.pending_at_end, "pod", "pods");
        lines.push(format!("{:<LABEL$}{still} without a node", "pending at the end"));
    }
    if pods.restarts > 0 {
        let times = format::counted(pods.restarts, "time", "times");
        lines.push(format!("{:<LABEL$}{times}, by probes or for want of memory", "containers killed"));
    }
    if lines.len() > before {
        lines.push(String::new());
    }
}

/// The workloads whose pods waited longest, placeholders left out; none where one workload is all there is.
fn longest_waits(summary: &Summary) -> Vec<&WorkloadWaits> {
    let mut all: Vec<&WorkloadWaits> =
        summary.pods.by_workload.iter().filter(|workload| !workload.placeholder).collect();
    if all.len() < 2 {
        return Vec::new();
    }
    all.retain(|item| item.waits.waited > 0);
    let p95 =
        |workload_waits: &WorkloadWaits| workload_waits.waits.wait_for_node.map_or(0.0, |spans| spans.p95_seconds);
    all.sort_by(|a, b| p95(b).total_cmp(&p95(a)).then_with(|| a.workload.cmp(&b.workload)));
    all.truncate(WORKLOADS_MAX);
    all
}

fn requests(summary: &Summary, width: Option<usize>, lines: &mut Vec<String>) {
    if let Some(unknown) = unknown_response(summary) {
        let label = if summary.requests.is_empty() { "response time" } else { "other response times" };
        lines.push(format!("{label:<LABEL$}{unknown}"));
        lines.push(String::new());
    }
    if summary.requests.is_empty() {
        return;
    }
    let shown = summary.requests.iter().take(WORKLOADS_MAX);
    let mut table = run_tables::requests(shown.clone()).lines(width);
    // From the last on, so that the places of the others stay.
    for (position, failed) in shown.enumerate().filter_map(|(at, workload)| Some((at, workload.failed()?))).rev() {
        table.insert(position + 2, format!("  {failed}"));
    }
    lines.extend(table);
    let more = summary.requests.len().saturating_sub(WORKLOADS_MAX) as u64;
    if more > 0 {
        lines.push(format!("  and {} more in the report", format::counted(more, "workload", "workloads")));
    }
    lines.push(String::new());
}

fn queues(summary: &Summary, width: Option<usize>, lines: &mut Vec<String>) {
    if summary.queues.is_empty() {
        return;
    }
    lines.extend(run_tables::queues(summary.queues.iter().take(WORKLOADS_MAX)).lines(width));
    let more = summary.queues.len().saturating_sub(WORKLOADS_MAX) as u64;
    if more > 0 {
        lines.push(format!("  and {} more in the report", format::counted(more, "queue", "queues")));
    }
    lines.push(String::new());
}

/// Changes of replica counts, with the metric against its target that led to them.
fn changes(summary: &Summary, width: Option<usize>, lines: &mut Vec<String>) {
    let changes = &summary.scaling.changes;
    if changes.is_empty() {
        return;
    }
    lines.extend(run_tables::changes(changes.iter().take(CHANGES_SHOWN), BECAUSE_WIDTH).lines(width));
    let all = summary.scaling.changes_in_all as usize;
    if all > CHANGES_SHOWN {
        lines.push(format!(
            "  and {} more in the report",
            format::counted((all - CHANGES_SHOWN) as u64, "change", "changes")
        ));
    }
    lines.push(String::new());
}

fn nodes(summary: &Summary, lines: &mut Vec<String>) {
    let nodes = &summary.nodes;
    let mean = nodes.mean_ready.map_or_else(String::new, |mean| format!(", {mean:.2} on average"));
    lines.push(format!("{:<LABEL$}{} at most{mean}", "nodes Ready", format::count(nodes.max_ready)));
    let launches = format::counted(nodes.launches, "launch", "launches");
    lines.push(format!("{:<LABEL$}{launches}, {}, {}", "nodes moved", nodes.failures(), nodes.departures()));
    if nodes.interruptions > 0 || nodes.on_demand_fallbacks > 0 {
        let notices = format::counted(nodes.interruptions, "instance interrupted", "instances interrupted");
        let fallbacks = format::counted(nodes.on_demand_fallbacks, "fallback", "fallbacks");
        lines.push(format!("{:<LABEL$}{notices}, {fallbacks} to On-Demand", "Spot"));
    }
    let changes = format::counted(summary.scaling.changes_in_all, "time", "times");
    let rescales = format::count(summary.scaling.rescales);
    let most = summary.scaling.workloads.iter().map(|workload| workload.max_replicas_desired).max().unwrap_or(0);
    let most = format::count(most);
    lines.push(format!(
        "{:<LABEL$}changed {changes}, {rescales} by autoscalers; one workload wanted {most} at most",
        "replicas"
    ));
    if let (Some(cpu), Some(memory)) = (summary.utilisation.cpu_requested, summary.utilisation.memory_requested) {
        let label = "requested of capacity";
        lines.push(format!(
            "{label:<LABEL$}CPU {}, memory {} of Ready nodes, over time",
            percent(cpu),
            percent(memory)
        ));
    }
}

fn objectives(summary: &Summary, lines: &mut Vec<String>) {
    for objective in &summary.objectives {
        let verdict = match objective.met {
            Some(true) => "met",
            Some(false) => "MISSED",
            None => "not measured",
        };
        let value = |value| format::objective(&objective.unit, value);
        let measured = objective.actual.map_or_else(String::new, |actual| format!("{} against ", value(actual)));
        let label = format!("objective {}", objective.name);
        let because = objective.because.as_ref().map_or_else(String::new, |because| format!("; {because}"));
        let (width, limit) = (LABEL - 1, value(objective.limit));
        lines.push(format!("{label:<width$} {verdict}: {measured}at most {limit}{because}"));
    }
}

fn warnings(summary: &Summary, lines: &mut Vec<String>) {
    if let Some(silenced) = summary.warnings.about_silenced() {
        lines.extend([String::new(), silenced]);
    }
    if summary.warnings.is_empty() {
        return;
    }
    lines.push(String::new());
    lines.push(format!("{}:", format::counted(summary.warnings.len() as u64, "warning", "warnings")));
    let shown = summary.warnings.lines().into_iter().take(WARNINGS_MAX);
    lines.extend(shown.map(|warning| format!("  {}", warning.replace('\n', " "))));
    if summary.warnings.len() > WARNINGS_MAX {
        lines.push(format!("  and {} more in the report", summary.warnings.len() - WARNINGS_MAX));
    }
}
