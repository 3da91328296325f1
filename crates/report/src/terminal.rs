//! The summary that `run` prints, plain text without colour: the answer first, in about 25 lines (`brief`), with all tables on request.

mod assumptions;
mod availability;
mod brief;
mod churn;
mod control_plane;
mod reached_limits;
mod upgrades;
mod vertical;

use super::answers::{headline, unknown_response};
use super::columns::printed;
use super::format::{self, percent, span};
use super::run_tables;
use super::short_names::{apart, without_namespace};
use super::sparklines;
use super::summary::{Summary, WorkloadWaits};
use nodecast_world::Outcome;

pub use brief::brief;

/// Workloads whose requests are printed; the page has all.
const WORKLOADS_MAX: usize = 4;
/// Warnings that are printed; the page has all.
const WARNINGS_MAX: usize = 3;
/// Namespaces and values of a label that are printed; the page has all.
const GROUPS_MAX: usize = 8;
/// Changes of replica counts that are printed; the page has more, `events.jsonl` all.
const CHANGES_SHOWN: usize = 8;
/// Characters of a change's reason that are printed.
const BECAUSE_WIDTH: usize = 54;
/// Width of the labels.
const LABEL: usize = 24;

/// The summary with all tables, and with lines that show `outcome` over time.
pub fn table_over_time(summary: &Summary, outcome: &Outcome) -> String {
    table_over_time_within(summary, outcome, None)
}

/// The same in lines of at most `width` characters, if that is known.
pub fn table_over_time_within(summary: &Summary, outcome: &Outcome, width: Option<usize>) -> String {
    lines_of(summary, sparklines::lines(outcome), width)
}

/// The summary with all tables.
pub fn table(summary: &Summary) -> String {
    lines_of(summary, Vec::new(), None)
}

fn lines_of(summary: &Summary, over_time: Vec<String>, width: Option<usize>) -> String {
    let mut lines = Vec::new();
    heading(summary, &mut lines);
    brief::cost(summary, &mut lines);
    brief::objectives(summary, &mut lines);
    lines.extend(brief::ends(summary));
    lines.push(String::new());
    availability::lines(summary, &mut lines);
    reached_limits::lines(summary, &mut lines);
    control_plane::lines(summary, &mut lines);
    cost_groups(summary, width, &mut lines);
    pods(summary, width, &mut lines);
    requests(summary, width, &mut lines);
    queues(summary, width, &mut lines);
    changes(summary, width, &mut lines);
    vertical::lines(summary, width, &mut lines);
    capacity(summary, &mut lines);
    churn::lines(summary, &mut lines);
    upgrades::lines(summary, &mut lines);
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
    lines.push(format!(
        "Policy {} ({}), {} from {} in {}, seed {}",
        about.policy,
        about.autoscaler,
        span(about.duration_seconds),
        format::instant_for_people(&about.start),
        about.region,
        about.seed
    ));
    lines.extend(about.calibration.as_ref().map(|calibration| format!("Calibration: {}", calibration.in_short())));
    lines.push(String::new());
}

/// Cost by namespace and by the labels that the scenario asks for, the most expensive groups first.
fn cost_groups(summary: &Summary, width: Option<usize>, lines: &mut Vec<String>) {
    let cost = &summary.cost;
    let by_label = cost.by_label.iter().map(|label| (label.label.as_str(), &label.groups));
    for (name, groups) in [("namespace", &cost.by_namespace)].into_iter().chain(by_label) {
        if groups.is_empty() {
            continue;
        }
        let shown = groups.iter().take(GROUPS_MAX);
        let header = format!("cost by {name}");
        lines.extend(run_tables::cost_groups(&header, shown, (&summary.about, cost.total)).lines(width));
        let more = groups.len().saturating_sub(GROUPS_MAX) as u64;
        if more > 0 {
            lines.push(format!("  + {} in the report", format::counted(more, "more group", "more groups")));
        }
        lines.push(String::new());
    }
}

fn pods(summary: &Summary, width: Option<usize>, lines: &mut Vec<String>) {
    let pods = &summary.pods;
    let longest = longest_waits(summary);
    let names: Vec<&str> = longest.iter().map(|workload| workload.workload.as_str()).collect();
    let names = apart(&names, LABEL - 3, without_namespace);
    let of_workloads = longest.iter().zip(names).map(|(waits, name)| (format!("  {name}"), &waits.waits.wait_for_node));
    let all = [("pod wait for node".to_owned(), &pods.wait_for_node)].into_iter().chain(of_workloads).chain([
        ("  placeholder pods".to_owned(), &pods.placeholders.waits.wait_for_node),
        ("pod create to Ready".to_owned(), &pods.created_to_ready),
        ("node launch to Ready".to_owned(), &summary.nodes.launch_to_ready),
    ]);
    let rows = all.filter_map(|(name, spans)| Some((name, spans.as_ref()?, ())));
    let before = lines.len();
    lines.extend(run_tables::spans("latency", rows).table().lines(width));
    if pods.pending_at_end > 0 {
        let still = format::counted(pods.pending_at_end, "pod", "pods");
        lines.push(format!("{:<LABEL$}{still} unscheduled", "pending at the end"));
    }
    if pods.restarts > 0 {
        let times = format::counted(pods.restarts, "time", "times");
        lines.push(format!(
            "{:<LABEL$}{times} (failed probes, failed containers, or out of memory)",
            "container restarts"
        ));
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

/// The rows with the largest values, at most [`WORKLOADS_MAX`], in the order of `all`.
fn largest<T>(all: &[T], values: impl Fn(&T) -> [f64; 2]) -> Vec<&T> {
    let mut rows: Vec<(usize, &T)> = all.iter().enumerate().collect();
    rows.sort_by(|(_, one), (_, other)| {
        let [one, other] = [values(one), values(other)];
        other[0].total_cmp(&one[0]).then(other[1].total_cmp(&one[1]))
    });
    rows.truncate(WORKLOADS_MAX);
    rows.sort_by_key(|(position, _)| *position);
    rows.into_iter().map(|(_, row)| row).collect()
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
    let shown = largest(&summary.requests, |requests| {
        [requests.timed_out + requests.dropped, requests.p99_seconds.unwrap_or(0.0)]
    });
    let mut table = run_tables::requests(shown.iter().copied()).lines(width);
    // From the last on, so that the places of the others stay.
    for (position, failed) in shown.iter().enumerate().filter_map(|(at, workload)| Some((at, workload.failed()?))).rev()
    {
        table.insert(position + 2, format!("  {failed}"));
    }
    lines.extend(table);
    let more = summary.requests.len().saturating_sub(WORKLOADS_MAX) as u64;
    if more > 0 {
        lines.push(format!("  + {} in the report", format::counted(more, "more workload", "more workloads")));
    }
    lines.push(String::new());
}

fn queues(summary: &Summary, width: Option<usize>, lines: &mut Vec<String>) {
    if summary.queues.is_empty() {
        return;
    }
    let shown = largest(&summary.queues, |queue| [queue.waiting_at_end, queue.mean_wait_seconds.unwrap_or(0.0)]);
    lines.extend(run_tables::queues(shown).lines(width));
    let more = summary.queues.len().saturating_sub(WORKLOADS_MAX) as u64;
    if more > 0 {
        lines.push(format!("  + {} in the report", format::counted(more, "more queue", "more queues")));
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
            "  + {} in the report",
            format::counted((all - CHANGES_SHOWN) as u64, "more change", "more changes")
        ));
    }
    lines.push(String::new());
}

fn capacity(summary: &Summary, lines: &mut Vec<String>) {
    if let Some(rest) = summary.cost.without_network {
        let rest = format::money_among(&summary.about.currency, rest, summary.cost.total);
        let what = "(without load balancers, NAT gateways, public IPs, data transfer)";
        lines.push(format!("{:<LABEL$}{rest} {what}", "excluding network"));
    }
    let changes = format::counted(summary.scaling.changes_in_all, "time", "times");
    let rescales = format::count(summary.scaling.rescales);
    let most = summary.scaling.workloads.iter().map(|workload| workload.max_replicas_desired).max().unwrap_or(0);
    let most = format::count(most);
    lines.push(format!(
        "{:<LABEL$}changed {changes} ({rescales} by autoscalers); peak {most} in one workload",
        "replicas"
    ));
    if let (Some(cpu), Some(memory)) = (summary.utilisation.cpu_requested, summary.utilisation.memory_requested) {
        let label = "capacity requested";
        lines.push(format!("{label:<LABEL$}CPU {}, memory {} (mean over Ready nodes)", percent(cpu), percent(memory)));
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
        lines.push(format!("  + {} more in the report", summary.warnings.len() - WARNINGS_MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::largest;

    #[test]
    fn smallest_rows_are_left_out() {
        let rows = [3.0, 0.0, 9.0, 4.0, 1.0, 5.0];
        let shown: Vec<f64> = largest(&rows, |row| [0.0, *row]).into_iter().copied().collect();
        assert_eq!(shown, [3.0, 9.0, 4.0, 5.0]);
    }
}
