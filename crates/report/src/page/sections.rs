//! The sections of the page, in the order in which a reader asks.

mod control_plane;
mod cost_groups;
mod reached_limits;
mod replicas;
mod vertical;
mod waits;

pub(super) use control_plane::control_plane;
pub(super) use reached_limits::reached_limits;
pub(super) use replicas::replicas;
pub(super) use vertical::vertical;

use std::collections::BTreeMap;

use super::html::{Html, prose, sentence, text};
use crate::answers::{headline, size_in_words};
use crate::catalog::PriceQuality;
use crate::cloud::BillLine;
use crate::domain::{Money, SimDuration, SimTime, Symbol};
use crate::figure::Figure;
use crate::format;
use crate::plots::Plots;
use crate::run_tables;
use crate::summary::{Part, RequestFigures, Share, Summary};
use crate::table::Rows;
use crate::tables;
use nodecast_settings::Caveat;
use nodecast_world::Outcome;
use nodecast_world::record::NodeFacts;

/// Where a table of the page that is cut short is found whole.
const SUMMARY_FILE: &str = "summary.json";

pub(super) fn heading(page: &mut Html, summary: &Summary) {
    let about = &summary.about;
    page.element("h1", &about.scenario);
    page.element("p class=\"headline\"", &sentence(&format!("{}.", headline(summary))));
    page.raw("<p class=\"faint\">");
    // Parts that make sense only whole do not break.
    let parts = [
        format!("Policy {},", about.policy),
        format!("{} in {}.", about.autoscaler, about.region),
        format!("{} simulated", format::span(about.duration_seconds)),
        format!("from {},", format::instant_for_people(&about.start)),
        format!("seed {}.", about.seed),
    ];
    let parts: Vec<String> = parts.iter().map(|part| format!("<span class=\"whole\">{}</span>", text(part))).collect();
    page.raw(&parts.join(" "));
    page.raw("</p>\n");
}

/// A command whose options do not break after their hyphens.
fn whole_options(command: &str) -> String {
    let word = |word: &str| match word.starts_with("--") {
        true => format!("<span class=\"whole\">{}</span>", text(word)),
        false => text(word),
    };
    command.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// Parts of the bill that a change may save, each with the command to try it.
fn opportunities(page: &mut Html, summary: &Summary, command: &str) {
    let all = crate::opportunities::opportunities(summary, command);
    if all.is_empty() {
        return;
    }
    page.element("h2 id=\"opportunities\"", "Opportunities");
    page.raw("<ol class=\"opportunities\">\n");
    for opportunity in all {
        page.raw("<li>");
        if let Some(amount) = opportunity.per_month {
            let amount = format::money_in_short(&summary.about.currency, amount);
            page.raw(&format!("<strong>{} per month</strong> ", text(&amount)));
        }
        page.raw(&prose(&opportunity.words));
        if let Some(command) = &opportunity.command {
            page.raw(&format!(" <code class=\"try\">{}</code>", whole_options(command)));
        }
        page.raw("</li>\n");
    }
    page.raw("</ol>\n");
}

pub(super) fn warnings(page: &mut Html, summary: &Summary) {
    if let Some(silenced) = summary.warnings.about_silenced() {
        page.element("p class=\"faint\"", &silenced);
    }
    if summary.warnings.is_empty() {
        return;
    }
    page.element("h3 id=\"warnings\"", &format::counted(summary.warnings.len() as u64, "warning", "warnings"));
    page.raw("<div class=\"warnings\">\n");
    page.list(summary.warnings.telling().map(Caveat::to_string));
    let harmless = summary.warnings.harmless_ones().count();
    if harmless > 0 {
        let count = format::counted(harmless as u64, "minor warning", "minor warnings");
        page.raw(&format!("<details><summary>{count}</summary>\n"));
        page.list(summary.warnings.harmless_ones().map(Caveat::to_string));
        page.end_fold();
    }
    page.raw("</div>\n");
}

/// Everything that moves with the clock: the charts, the replay, the lives of nodes, the decisions. The page's script
/// fills it.
pub(super) fn timeline(page: &mut Html, (outcome, summary): (&Outcome, &Summary), plots: &Plots, command: &str) {
    page.raw("<div id=\"timeline\">\n<div id=\"player\" role=\"group\" aria-label=\"time\"></div>\n<noscript><p class=\"warnings\">");
    page.raw(&text(
        "Charts, replay, and decisions need JavaScript. The SVG files in this directory show the same charts.",
    ));
    page.raw("</p></noscript>\n<div id=\"first-panels\" class=\"panels\"></div>\n");
    if let Some(warm_up) = format::warm_up(summary.about.warm_up_seconds) {
        page.element("p class=\"note\" id=\"warm-up\"", &warm_up);
    }
    opportunities(page, summary, command);
    page.fold("charts", "More charts", "");
    for sentence in &plots.left_out {
        page.element("p class=\"note\"", sentence);
    }
    let hint = "Drag or pinch to zoom; click or tap to select a time. Keyboard: arrows move, + and \u{2212} zoom, 0 resets, space plays.";
    page.element("p class=\"note\"", hint);
    if outcome.about.counts_from() > SimTime::ZERO {
        page.element("p class=\"note\"", "The grey band is the warm-up; wait times and churn exclude it.");
    }
    page.raw("<div id=\"panels\" class=\"panels\"></div>\n");
    page.end_fold();
    page.fold("replay", "Replay", "cluster state at a point in time, and node lifetimes");
    if outcome.record.nodes.is_empty() {
        page.element("p class=\"note\"", "No nodes in this run.");
    }
    page.raw("<div id=\"replay-stage\"></div>\n<div id=\"ticker\" aria-label=\"latest decisions\"></div>\n");
    page.raw("<h3 id=\"lives\">Node lifetimes</h3>\n<div id=\"strips\"></div>\n");
    page.end_fold();
    page.fold("decisions", "Decisions", "with causes");
    page.raw("<div id=\"decisions-table\"></div>\n");
    page.end_fold();
    page.raw("</div>\n");
}

pub(super) fn waiting(page: &mut Html, summary: &Summary) {
    page.element("h3", "Latencies");
    let pods = &summary.pods;
    let spans = [
        ("Pod created to scheduled", &pods.wait_for_node),
        ("Pod created to Ready", &pods.created_to_ready),
        ("Instance launched to node Ready", &summary.nodes.launch_to_ready),
    ];
    let rows = spans.into_iter().filter_map(|(name, spans)| Some((name.to_owned(), spans.as_ref()?, ())));
    page.add_table(run_tables::spans("phase", rows), SUMMARY_FILE);
    waits::tables(page, summary);
    let note = format!(
        "{} and {}; {} evicted, {} of killed containers, {} deleted before scheduling, {} unscheduled at the end. Percentiles use the \
         nearest-rank method. DaemonSet and placeholder pods are excluded; a pod that was never scheduled counts with the time it waited.",
        format::counted(pods.created, "pod", "pods"),
        format::counted(pods.daemon_pods_created, "daemon pod", "daemon pods"),
        format::count(pods.evicted),
        format::counted(pods.restarts, "restart", "restarts"),
        format::count(pods.never_scheduled),
        format::count(pods.pending_at_end),
    );
    page.element("p class=\"note\"", &note);
}

pub(super) fn requests(page: &mut Html, summary: &Summary) {
    if !summary.requests.is_empty() {
        page.element("h3", "Requests");
    }
    // The slowest comes first.
    let mut requests: Vec<&RequestFigures> = summary.requests.iter().collect();
    let p99 = |figures: &RequestFigures| figures.p99_seconds.unwrap_or(-1.0);
    requests.sort_by(|one, other| p99(other).total_cmp(&p99(one)));
    page.add_table(run_tables::requests(requests), SUMMARY_FILE);
}

/// Metrics against their targets, and every change of a replica count with the values that led to it.
pub(super) fn scaling(page: &mut Html, summary: &Summary) {
    let number = |value: Option<f64>| value.map(|value| Figure::decimals(value, 3));
    let metrics = Rows::new(&summary.scaling.metrics)
        .text("autoscaler", |metric| &metric.autoscaler)
        .text("metric", |metric| &metric.metric)
        .text("unit", |metric| &metric.unit)
        .number("target", |metric| metric.target.to_string())
        .number("mean", |metric| number(metric.mean))
        .number("max", |metric| number(metric.max))
        .number("at end", |metric| number(metric.last));
    page.add_table(metrics, "metrics.csv");
    page.add_table(run_tables::changes(&summary.scaling.changes, usize::MAX), "events.jsonl");
}

pub(super) fn queues(page: &mut Html, summary: &Summary) {
    if !summary.queues.is_empty() {
        page.element("h3", "Queues");
    }
    page.add_table(run_tables::queues(&summary.queues), "queues.csv");
}

pub(super) fn cost(page: &mut Html, summary: &Summary) {
    let cost = &summary.cost;
    let money = |amount| format::money_among(&summary.about.currency, amount, cost.total);
    let whole = |amount| format::money(&summary.about.currency, amount);
    let mut all = format!("Total: {}", whole(cost.total));
    if let (Some(hour), Some(month)) = (cost.per_hour, cost.per_month) {
        all += &format!(", {} per hour, {} per month of 730 h", whole(hour), whole(month));
    }
    page.element("p", &(all + "."));
    let phases = format!(
        "Node compute: {} while starting, {} while Ready, {} while draining.",
        money(cost.phases.starting),
        money(cost.phases.useful),
        money(cost.phases.draining)
    );
    page.element("p", &phases);
    let idle = format!(
        "Idle capacity: {} ({} of the bill). For each node, cost times the unrequested share of its most requested resource (CPU, memory, or accelerators); plus unused commitments.",
        money(cost.idle.amount),
        format::percent(cost.idle.share)
    );
    page.element("p", &idle);
    if cost.unused.amount > 0.0 {
        let unused = format!(
            "Of that, {} ({} of the bill) is unused reservations and commitments.",
            money(cost.unused.amount),
            format::percent(cost.unused.share)
        );
        page.element("p", &unused);
    }
    if let Some(range) = cost.spot_range {
        let range = format!(
            "Spot instances: {}, at prices with a known error. The bill is {} if all Spot prices are at the 10th percentile of that error, and {} at the 90th.",
            money(range.spot),
            money(range.total_low),
            money(range.total_high)
        );
        page.element("p", &range);
    }
    if let Some(rest) = cost.without_network {
        let rest = format!("Excluding load balancers, NAT gateways, public IPs, and data transfer: {}.", money(rest));
        page.element("p", &rest);
    }
    let unconfirmed = format!(
        "{} ({}) uses estimated, derived, or assumed prices instead of published or observed ones.",
        money(cost.unconfirmed.amount),
        format::percent(cost.unconfirmed.share)
    );
    page.element("p", &unconfirmed);
    if !cost.not_simulated.is_empty() {
        let missing = format!(
            "Usual lines of an EKS bill that are not simulated, so that the total lacks them: {}. `ec2.billing.other` adds them.",
            cost.not_simulated.join(", ")
        );
        page.element("p class=\"note\"", &missing);
    }
    let mut by_capacity_type = cost.by_capacity_type.clone();
    for part in &mut by_capacity_type {
        part.name = format::bought_as(&part.name).to_owned();
    }
    let breakdowns: [(&'static str, &[Part]); 7] = [
        ("item", &cost.by_item),
        ("workload", &cost.by_workload),
        ("capacity type", &by_capacity_type),
        ("instance family", &cost.by_family),
        ("zone", &cost.by_zone),
        ("NodePool / node group", &cost.by_node_origin),
        ("price quality", &cost.by_price_quality),
    ];
    page.raw("<div class=\"breakdowns\">\n");
    for (name, parts) in breakdowns {
        // What is taken back makes the bill smaller than what is charged.
        let share = if name == "item" { "share of charges" } else { "share of bill" };
        let table = Rows::new(parts)
            .text(name, |part| &part.name)
            .number("cost", |part| money(part.amount))
            .number(share, |part| Figure::share(part.share));
        page.add_table(table, SUMMARY_FILE);
    }
    page.raw("</div>\n");
    cost_groups::sections(page, summary);
    let is_used = |quality: PriceQuality| cost.by_price_quality.iter().any(|part| part.name == quality.as_str());
    let legend = PriceQuality::legend(is_used);
    if !legend.is_empty() {
        page.element("p class=\"note\"", &format!("Price quality \u{2013} {}.", legend.join(". ")));
    }
}

/// What lines of the bill must share to stand in one row of the page.
type BillKey = (&'static str, Option<Symbol>, Option<Symbol>, Option<Symbol>);

pub(super) fn bill(page: &mut Html, outcome: &Outcome) {
    page.element("h3 id=\"bill\"", "The bill");
    let mut groups: BTreeMap<BillKey, (u64, SimDuration, Money)> = BTreeMap::new();
    for line in &outcome.bill.lines {
        let key = |line: &BillLine| (line.item.name(), line.instance_type, line.capacity_type, line.zone);
        let group = groups.entry(key(line)).or_default();
        *group = (group.0 + 1, group.1 + line.billed, group.2 + line.amount);
    }
    let currency = outcome.bill.currency.code();
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, (.., amount))| std::cmp::Reverse(*amount));
    let symbol = |symbol: Option<Symbol>| symbol.map(|symbol| symbol.to_string());
    let bought = |symbol: Option<Symbol>| symbol.map(|symbol| format::bought_as(symbol.as_str()).to_owned());
    // What is charged at once, as what is paid for commitments and taken off, has no hours.
    let hours = |billed: SimDuration| Some(billed.as_secs_f64() / 3_600.0).filter(|hours| *hours > 0.0);
    let per_hour = |billed, amount: Money| hours(billed).map(|hours| format::money(currency, amount.as_f64() / hours));
    let total = outcome.bill.total();
    let table = Rows::new(groups)
        .text("item", |((item, ..), _)| *item)
        .text("instance type", |((_, instance_type, ..), _)| symbol(*instance_type))
        .text("capacity type", |((_, _, capacity_type, _), _)| bought(*capacity_type))
        .text("zone", |((.., zone), _)| symbol(*zone))
        .number("lines", |(_, (lines, ..))| *lines)
        .number("hours billed", |(_, (_, billed, _))| hours(*billed).map(|hours| Figure::decimals(hours, 2)))
        .number("mean per hour", |(_, (_, billed, amount))| per_hour(*billed, *amount))
        .number("amount", |(_, (.., amount))| Figure::money(currency, amount.as_f64(), total.as_f64()));
    page.add_table(table, "bill.csv");
    let total = format!("Total: {total} {currency}. See bill.csv for every line, to nine decimals.");
    page.element("p class=\"note\"", &total);
}

pub(super) fn nodes(page: &mut Html, outcome: &Outcome, summary: &Summary) {
    let nodes = &summary.nodes;
    let ends: Vec<String> =
        nodes.terminations.iter().map(|end| format!("{} {}", format::count(end.count), end.name)).collect();
    let failed = nodes.failures();
    let removed = if ends.is_empty() { "none removed".to_owned() } else { format!("removed: {}", ends.join(", ")) };
    let sentence = format!(
        "{} Ready at start, {} at end. {} launched, {failed}; {removed}{}.",
        format::count(nodes.at_start),
        format::count(nodes.at_end),
        format::count(nodes.launches),
        nodes.still_draining(),
    );
    page.element("p", &sentence);
    if let Some(seconds) = nodes.mean_lifetime_seconds {
        page.element("p", &format!("Mean lifetime of removed nodes: {}.", format::span(seconds)));
    }
    let market = format!(
        "EC2 sent interruption notices to {} and reclaimed {} of them when the notice expired; {} fell back to On-Demand; {} throttled; Spot prices changed {} for running instances.",
        format::counted(nodes.interruptions, "Spot instance", "Spot instances"),
        format::count(nodes.reclaimed),
        format::counted(nodes.on_demand_fallbacks, "launch", "launches"),
        format::counted(nodes.calls_throttled, "call was", "calls were"),
        format::counted(nodes.spot_price_changes, "time", "times"),
    );
    page.element("p", &market);
    let end = SimTime::ZERO + outcome.about.duration;
    let costs = tables::node_costs(outcome);
    // The most expensive comes first.
    let mut nodes: Vec<(&NodeFacts, Money)> = outcome.record.nodes.iter().zip(costs).collect();
    nodes.sort_by_key(|(_, cost)| std::cmp::Reverse(*cost));
    let (currency, total) = (&summary.about.currency, summary.cost.total);
    let symbol = |symbol: Option<Symbol>| symbol.map(|symbol| symbol.to_string());
    let span = |span: Option<SimDuration>| span.map(|span| Figure::seconds(span.as_secs_f64()));
    let ran = |node: &NodeFacts| Some(node.terminating.unwrap_or(end).saturating_since(node.running?));
    let table = Rows::new(nodes)
        .text("node", |(node, _)| &node.name)
        .text("instance type", |(node, _)| symbol(node.instance_type))
        .text("capacity type", |(node, _)| {
            node.capacity_type.map(|bought| format::bought_as(bought.as_str()).to_owned())
        })
        .number("cost", |(_, cost)| Figure::money(currency, cost.as_f64(), total))
        .number("ran for", |(node, _)| span(ran(node)))
        .number("CPU requested", |(node, _)| tables::node_utilisation(node, end).0.map(Figure::share))
        .number("memory requested", |(node, _)| tables::node_utilisation(node, end).1.map(Figure::share))
        .number("time to Ready", |(node, _)| span(node.ready.map(|ready| ready - node.requested)))
        .number("requested at", |(node, _)| SimTime::from_micros(node.requested.as_secs() * 1_000_000).to_string())
        .text("zone", |(node, _)| symbol(node.zone))
        .text("from", |(node, _)| node.origin.name().to_string())
        .text("end reason", |(node, _)| {
            node.end.map(|end| format!("{}{}", if node.is_draining() { "draining: " } else { "" }, end.as_str()))
        });
    page.add_table(table, "nodes.csv");
}

pub(super) fn assumptions(page: &mut Html, summary: &Summary) {
    page.element("h3 id=\"assumptions\"", "Assumptions");
    let about = &summary.about;
    let sizes = about.assumption_costs.iter().copied().chain(std::iter::repeat(None));
    let sized = |(text, size): (&String, Option<Share>)| match about.assumption_costs.is_empty() {
        true => text.clone(),
        false => format!("{text} Part of the bill that depends on it: {}.", size_in_words(size, summary)),
    };
    page.list(about.assumptions.iter().zip(sizes).map(sized));
    if let Some(hint) = summary.hint_on_daemons() {
        page.element("p class=\"note\"", hint);
    }
}

/// Says on paper that the page has more.
const ON_PAPER: &str =
    "On paper: charts, cost, and assumptions, the first rows of each. report.html has all sections and rows.";

pub(super) fn footer(page: &mut Html, summary: &Summary, command: &str) {
    let about = &summary.about;
    page.raw("<footer>\n");
    page.element("p class=\"note on-paper\"", ON_PAPER);
    page.raw("<dl>\n");
    let mut entry = |name: &str, value: &str| {
        page.element("dt", name);
        page.verbatim("dd", value);
    };
    entry("Command", command);
    entry("Program", &format!("{} {}", summary.program, summary.program_version));
    entry("Seed", &about.seed.to_string());
    entry(
        "Simulated versions",
        &format!("Kubernetes {}, Karpenter {}", about.versions.kubernetes, about.versions.karpenter),
    );
    entry("Price data", &about.price_date);
    entry("Zones", &about.zones.join(", "));
    entry("Event hash", &summary.event_hash);
    for input in &about.inputs {
        entry(&input.path, &format!("sha256 {}", input.sha256));
    }
    page.raw("</dl>\n</footer>\n");
}
