//! The sections of the page, in the order in which a reader asks.

mod control_plane;
mod reached_limits;
mod replicas;
mod vertical;
mod waits;

pub(super) use control_plane::control_plane;
pub(super) use reached_limits::reached_limits;
pub(super) use replicas::replicas;
pub(super) use vertical::vertical;

use std::collections::BTreeMap;

use super::html::{Column, Html, text};
use crate::answers::size_in_words;
use crate::catalog::PriceQuality;
use crate::cloud::BillLine;
use crate::domain::{Money, SimDuration, SimTime, Symbol};
use crate::format;
use crate::plots::Plots;
use crate::summary::{Distribution, Part, RequestFigures, Share, Summary};
use crate::tables;
use nodecast_settings::Caveat;
use nodecast_world::Outcome;
use nodecast_world::record::NodeFacts;

/// Where a table of the page that is cut short is found whole.
const SUMMARY_FILE: &str = "summary.json";

pub(super) fn heading(page: &mut Html, summary: &Summary) {
    let about = &summary.about;
    page.element("h1", &about.scenario);
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
    if let Some(warm_up) = format::warm_up(about.warm_up_seconds) {
        page.element("p class=\"faint\" id=\"warm-up\"", &warm_up);
    }
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
        let count = format::counted(harmless as u64, "further one, hardly", "further ones, hardly");
        page.raw(&format!("<details><summary>{count} of weight</summary>\n"));
        page.list(summary.warnings.harmless_ones().map(Caveat::to_string));
        page.end_fold();
    }
    page.raw("</div>\n");
}

/// Everything that moves with the clock: the charts, the replay, the lives of nodes, the decisions. The page's script
/// fills it.
pub(super) fn timeline(page: &mut Html, outcome: &Outcome, plots: &Plots) {
    page.raw("<div id=\"timeline\">\n<div id=\"player\" role=\"group\" aria-label=\"time\"></div>\n<noscript><p class=\"warnings\">");
    page.raw(&text(
        "Charts, replay and decisions need JavaScript. The SVG files beside this page show the same curves.",
    ));
    page.raw("</p></noscript>\n<div id=\"first-panels\" class=\"panels\"></div>\n");
    page.fold("charts", "More charts", "");
    for sentence in &plots.left_out {
        page.element("p class=\"note\"", sentence);
    }
    let hint = "Drag or spread two fingers to zoom, click or touch to choose an instant; arrow keys, +, \u{2212} and 0 do the \
                same, space plays.";
    page.element("p class=\"note\"", hint);
    if outcome.about.counts_from() > SimTime::ZERO {
        page.element("p class=\"note\"", "The grey band is the warm-up, which no figure of waiting or churn counts.");
    }
    page.raw("<div id=\"panels\" class=\"panels\"></div>\n");
    page.end_fold();
    page.fold("replay", "Replay", "the cluster at one instant, and the lives of nodes");
    if outcome.record.nodes.is_empty() {
        page.element("p class=\"note\"", "The run had no node.");
    }
    page.raw("<div id=\"replay-stage\"></div>\n<div id=\"ticker\" aria-label=\"latest decisions\"></div>\n");
    page.raw("<h3 id=\"lives\">Lives of nodes</h3>\n<div id=\"strips\"></div>\n");
    page.end_fold();
    page.fold("decisions", "Decisions", "each with its cause");
    page.raw("<div id=\"decisions-table\"></div>\n");
    page.end_fold();
    page.raw("</div>\n");
}

pub(super) fn waiting(page: &mut Html, summary: &Summary) {
    page.element("h3", "How long things took");
    let pods = &summary.pods;
    let spans = [
        ("Pod created to bound to a node", &pods.wait_for_node),
        ("Pod created to Ready", &pods.created_to_ready),
        ("Instance launched to node Ready", &summary.nodes.launch_to_ready),
    ];
    let rows: Vec<Vec<String>> = spans
        .into_iter()
        .filter_map(|(name, spans)| {
            let spans = spans.as_ref()?;
            Some(cells_of(name.to_owned(), spans))
        })
        .collect();
    let columns = [
        Column::Text("from, to"),
        Column::Figure("count"),
        Column::Figure("p50"),
        Column::Figure("p95"),
        Column::Figure("p99"),
        Column::Figure("longest"),
        Column::Figure("mean"),
    ];
    page.table(&columns, &rows, SUMMARY_FILE);
    waits::tables(page, summary);
    let note = format!(
        "{} and {}; {} evicted, {} of containers killed, {} deleted before it had a node, {} without a node at the end. Percentiles are by the \
         nearest-rank rule. Pods of DaemonSets and placeholders are left out; a pod that never had a node counts with the time it waited.",
        format::counted(pods.created, "pod", "pods"),
        format::counted(pods.daemon_pods_created, "daemon pod", "daemon pods"),
        format::count(pods.evicted),
        format::counted(pods.restarts, "restart", "restarts"),
        format::count(pods.never_scheduled),
        format::count(pods.pending_at_end),
    );
    page.element("p class=\"note\"", &note);
}

/// A row of a table of spans.
fn cells_of(name: String, spans: &Distribution) -> Vec<String> {
    let seconds = [spans.p50_seconds, spans.p95_seconds, spans.p99_seconds, spans.max_seconds, spans.mean_seconds];
    [name, format::count(spans.count)].into_iter().chain(seconds.map(format::span)).collect()
}

pub(super) fn requests(page: &mut Html, summary: &Summary) {
    if !summary.requests.is_empty() {
        page.element("h3", "Requests");
    }
    // The slowest comes first.
    let mut requests: Vec<&RequestFigures> = summary.requests.iter().collect();
    let p99 = |figures: &RequestFigures| figures.p99_seconds.unwrap_or(-1.0);
    requests.sort_by(|one, other| p99(other).total_cmp(&p99(one)));
    let rows: Vec<Vec<String>> = requests
        .into_iter()
        .map(|figures| {
            vec![
                figures.workload.clone(),
                format::whole(figures.completed),
                format::whole(figures.timed_out),
                format::whole(figures.dropped),
                format::whole(figures.unanswered),
                format::span_or_dash(figures.mean_seconds),
                format::span_or_dash(figures.p50_seconds),
                format::span_or_dash(figures.p95_seconds),
                format::span_or_dash(figures.p99_seconds),
                format::span(figures.overloaded_seconds),
                format::span(figures.throttled_seconds),
            ]
        })
        .collect();
    let columns = [
        Column::Text("workload"),
        Column::Figure("completed"),
        Column::Figure("given up"),
        Column::Figure("refused"),
        Column::Figure("in flight at the end"),
        Column::Figure("mean"),
        Column::Figure("p50"),
        Column::Figure("p95"),
        Column::Figure("p99"),
        Column::Figure("overloaded for"),
        Column::Figure("throttled for"),
    ];
    page.table(&columns, &rows, SUMMARY_FILE);
}

/// Metrics against their targets, and every change of a replica count with the values that led to it.
pub(super) fn scaling(page: &mut Html, summary: &Summary) {
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.3}"));
    let rows: Vec<Vec<String>> = summary
        .scaling
        .metrics
        .iter()
        .map(|metric| {
            vec![
                metric.autoscaler.clone(),
                metric.metric.clone(),
                metric.unit.clone(),
                metric.target.to_string(),
                number(metric.mean),
                number(metric.max),
                number(metric.last),
            ]
        })
        .collect();
    let columns = [
        Column::Text("autoscaler"),
        Column::Text("metric"),
        Column::Text("unit"),
        Column::Figure("target"),
        Column::Figure("mean"),
        Column::Figure("largest"),
        Column::Figure("at the end"),
    ];
    page.table(&columns, &rows, "metrics.csv");
    let rows: Vec<Vec<String>> = summary
        .scaling
        .changes
        .iter()
        .map(|change| {
            vec![
                format::span(change.at_seconds),
                change.workload.clone(),
                change.from.to_string(),
                change.to.to_string(),
                change.because.clone(),
                change.kind.clone(),
            ]
        })
        .collect();
    let columns = [
        Column::Figure("after"),
        Column::Text("workload"),
        Column::Figure("from"),
        Column::Figure("to"),
        Column::Text("because"),
        Column::Text("event"),
    ];
    page.table(&columns, &rows, "events.jsonl");
}

pub(super) fn queues(page: &mut Html, summary: &Summary) {
    if summary.queues.is_empty() {
        return;
    }
    page.element("h3", "Queues");
    let span = |seconds: Option<f64>| seconds.map_or_else(|| "never".to_owned(), format::span);
    let rows: Vec<Vec<String>> = summary
        .queues
        .iter()
        .map(|queue| {
            vec![
                queue.queue.clone(),
                queue.workload.clone(),
                format::whole(queue.arrived),
                format::whole(queue.processed),
                format::whole(queue.most_waiting),
                format::span(queue.most_waiting_seconds),
                span(queue.drain_seconds),
                format::whole(queue.waiting_at_end),
                queue.mean_wait_seconds.map_or_else(String::new, format::span),
                format::span(queue.longest_wait_seconds),
            ]
        })
        .collect();
    let columns = [
        Column::Text("queue"),
        Column::Text("workers"),
        Column::Figure("arrived"),
        Column::Figure("processed"),
        Column::Figure("most waiting"),
        Column::Figure("after"),
        Column::Figure("drained within"),
        Column::Figure("waiting at the end"),
        Column::Figure("mean wait"),
        Column::Figure("longest wait"),
    ];
    page.table(&columns, &rows, "queues.csv");
}

pub(super) fn cost(page: &mut Html, summary: &Summary) {
    let cost = &summary.cost;
    let money = |amount| format::money_among(&summary.about.currency, amount, cost.total);
    let whole = |amount| format::money(&summary.about.currency, amount);
    let mut all = format!("All of it: {}", whole(cost.total));
    if let (Some(hour), Some(month)) = (cost.per_hour, cost.per_month) {
        all += &format!(", {} per hour, {} per month of 730 h", whole(hour), whole(month));
    }
    page.element("p", &(all + "."));
    let phases = format!(
        "Compute of nodes cost {} while starting, {} while Ready, {} while draining.",
        money(cost.phases.starting),
        money(cost.phases.useful),
        money(cost.phases.draining)
    );
    page.element("p", &phases);
    let idle = format!(
        "{} ({} of the bill) paid for capacity that nobody requested: a node's cost times what is left of the fullest of its \
         CPU, memory and accelerators, and what was bought ahead and left unused.",
        money(cost.idle.amount),
        format::percent(cost.idle.share)
    );
    page.element("p", &idle);
    if cost.unused.amount > 0.0 {
        let unused = format!(
            "Of that, {} ({} of the bill) are reservations and commitments that nothing used.",
            money(cost.unused.amount),
            format::percent(cost.unused.share)
        );
        page.element("p", &unused);
    }
    if let Some(range) = cost.spot_range {
        let range = format!(
            "Spot instances cost {} of it at prices that may be off: the bill is {} if all of them lie at the tenth percentile of what is known of \
             their error, and {} at the ninetieth.",
            money(range.spot),
            money(range.total_low),
            money(range.total_high)
        );
        page.element("p", &range);
    }
    if let Some(rest) = cost.without_network {
        let rest = format!("Without load balancers, gateways, public addresses and transfer it is {}.", money(rest));
        page.element("p", &rest);
    }
    let unconfirmed = format!(
        "{} ({}) rests on prices that were estimated, derived or assumed rather than published or observed.",
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
        ("capacity type of nodes", &by_capacity_type),
        ("instance family of nodes", &cost.by_family),
        ("zone of nodes", &cost.by_zone),
        ("NodePool or node group", &cost.by_node_origin),
        ("quality of the price", &cost.by_price_quality),
    ];
    page.raw("<div class=\"breakdowns\">\n");
    for (name, parts) in breakdowns {
        let rows: Vec<Vec<String>> =
            parts.iter().map(|part| vec![part.name.clone(), money(part.amount), format::percent(part.share)]).collect();
        // What is taken back makes the bill smaller than what is charged.
        let share = if name == "item" { "of what is charged" } else { "of the bill" };
        let columns = [Column::Text(name), Column::Figure("cost"), Column::Figure(share)];
        page.table(&columns, &rows, SUMMARY_FILE);
    }
    page.raw("</div>\n");
    let is_used = |quality: PriceQuality| cost.by_price_quality.iter().any(|part| part.name == quality.as_str());
    let legend = PriceQuality::legend(is_used);
    if !legend.is_empty() {
        page.element("p class=\"note\"", &format!("Quality of prices \u{2013} {}.", legend.join(". ")));
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
    let cell = |symbol: Option<Symbol>| symbol.map_or_else(String::new, |symbol| symbol.to_string());
    let bought = |symbol: Option<Symbol>| symbol.map_or("", |symbol| format::bought_as(symbol.as_str())).to_owned();
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, (.., amount))| std::cmp::Reverse(*amount));
    let rows: Vec<Vec<String>> = groups
        .into_iter()
        .map(|((item, instance_type, capacity_type, zone), (lines, billed, amount))| {
            let hours = billed.as_secs_f64() / 3_600.0;
            // What is charged at once, as what is paid for commitments and taken off, has no hours.
            let of_hours = |shown: String| if hours > 0.0 { shown } else { "\u{2013}".to_owned() };
            vec![
                item.to_owned(),
                cell(instance_type),
                bought(capacity_type),
                cell(zone),
                format::count(lines),
                of_hours(format!("{hours:.2}")),
                of_hours(format::money(currency, amount.as_f64() / hours)),
                format::money_among(currency, amount.as_f64(), outcome.bill.total().as_f64()),
            ]
        })
        .collect();
    let columns = [
        Column::Text("item"),
        Column::Text("instance type"),
        Column::Text("bought as"),
        Column::Text("zone"),
        Column::Figure("lines"),
        Column::Figure("hours billed"),
        Column::Figure("mean per hour"),
        Column::Figure("amount"),
    ];
    page.table(&columns, &rows, "bill.csv");
    let total = format!("Total: {} {currency}. bill.csv has every line, to nine decimals.", outcome.bill.total());
    page.element("p class=\"note\"", &total);
}

pub(super) fn nodes(page: &mut Html, outcome: &Outcome, summary: &Summary) {
    let nodes = &summary.nodes;
    let ends: Vec<String> =
        nodes.terminations.iter().map(|end| format!("{} {}", format::count(end.count), end.name)).collect();
    let failed = nodes.failures();
    let removed = if ends.is_empty() { "none removed".to_owned() } else { format!("removed: {}", ends.join(", ")) };
    let sentence = format!(
        "{} Ready at the start, {} at the end. {} launched, {failed}; {removed}{}.",
        format::count(nodes.at_start),
        format::count(nodes.at_end),
        format::count(nodes.launches),
        nodes.still_draining(),
    );
    page.element("p", &sentence);
    if let Some(seconds) = nodes.mean_lifetime_seconds {
        page.element("p", &format!("Removed nodes ran for {} on average.", format::span(seconds)));
    }
    let market = format!(
        "EC2 gave notice to {} and took {} of them itself; {} fell back to On-Demand; {} throttled; prices changed {} under \
         running instances.",
        format::counted(nodes.interruptions, "Spot instance", "Spot instances"),
        format::count(nodes.reclaimed),
        format::counted(nodes.on_demand_fallbacks, "launch", "launches"),
        format::counted(nodes.calls_throttled, "call was", "calls were"),
        format::counted(nodes.spot_price_changes, "time", "times"),
    );
    page.element("p", &market);
    let end = SimTime::ZERO + outcome.about.duration;
    let costs = tables::node_costs(outcome);
    let cost_cell = |cost: Money| format::money_among(&summary.about.currency, cost.as_f64(), summary.cost.total);
    // The dearest comes first.
    let mut nodes: Vec<(&NodeFacts, Money)> = outcome.record.nodes.iter().zip(costs).collect();
    nodes.sort_by_key(|(_, cost)| std::cmp::Reverse(*cost));
    let rows: Vec<Vec<String>> = nodes.into_iter().map(|(node, cost)| node_row(node, &cost_cell(cost), end)).collect();
    let columns = [
        Column::Text("node"),
        Column::Text("instance type"),
        Column::Text("bought as"),
        Column::Figure("cost"),
        Column::Figure("ran for"),
        Column::Figure("CPU requested"),
        Column::Figure("memory requested"),
        Column::Figure("to Ready"),
        Column::Figure("asked for at"),
        Column::Text("zone"),
        Column::Text("from"),
        Column::Text("ended"),
    ];
    page.table(&columns, &rows, "nodes.csv");
}

fn node_row(node: &NodeFacts, cost: &str, end: SimTime) -> Vec<String> {
    let cell = |symbol: Option<Symbol>| symbol.map_or_else(String::new, |symbol| symbol.to_string());
    let (cpu, memory) = tables::node_utilisation(node, end);
    let share = |share: Option<f64>| share.map_or_else(String::new, format::percent);
    let to_ready = node.ready.map(|ready| ready - node.requested);
    let ran = node.running.map(|running| node.terminating.unwrap_or(end).saturating_since(running));
    let span = |span: Option<SimDuration>| span.map_or_else(String::new, |span| format::span(span.as_secs_f64()));
    vec![
        node.name.clone(),
        cell(node.instance_type),
        node.capacity_type.map_or("", |symbol| format::bought_as(symbol.as_str())).to_owned(),
        cost.to_owned(),
        span(ran),
        share(cpu),
        share(memory),
        span(to_ready),
        SimTime::from_micros(node.requested.as_secs() * 1_000_000).to_string(),
        cell(node.zone),
        node.origin.name().to_string(),
        node.end.map_or_else(String::new, |end| {
            if node.is_draining() { format!("drains: {}", end.as_str()) } else { end.as_str().to_owned() }
        }),
    ]
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

pub(super) fn footer(page: &mut Html, summary: &Summary, command: &str) {
    let about = &summary.about;
    page.raw("<footer>\n<dl>\n");
    let mut entry = |name: &str, value: &str| {
        page.element("dt", name);
        page.verbatim("dd", value);
    };
    entry("Command", command);
    entry("Program", &format!("{} {}", summary.program, summary.program_version));
    entry("Seed", &about.seed.to_string());
    entry("Reproduces", &format!("Kubernetes {}, Karpenter {}", about.versions.kubernetes, about.versions.karpenter));
    entry("Prices of", &about.price_date);
    entry("Zones", &about.zones.join(", "));
    entry("Event hash", &summary.event_hash);
    for input in &about.inputs {
        entry(&input.path, &format!("sha256 {}", input.sha256));
    }
    page.raw("</dl>\n</footer>\n");
}
