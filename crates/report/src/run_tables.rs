//! Tables of a run: those that the terminal and the page share.
//!
//! Must not: choose the rows; a terminal shows the first of them.

use super::figure::Figure;
use super::format;
use super::summary::{
    AboutSummary, CostGroup, Distribution, QueueFigures, ReplicaChangeFigures, RequestFigures, RequestUse, Sizes,
    VerticalFigures,
};
use super::table::{Rows, Table};

/// Widths of the first columns in a terminal: tables below each other have the same columns, in 80 characters.
const WIDTHS: [usize; 7] = [LABEL, 9, 8, 8, 8, 10, 10];
/// Characters of a name in a terminal.
pub(crate) const LABEL: usize = 21;

/// Percentiles of one kind of wait, as the summary shows them.
#[derive(Debug)]
pub(crate) struct Wait {
    name: String,
    percentiles: [Option<f64>; 3],
    max: Option<f64>,
    count: f64,
}

impl Wait {
    pub(crate) fn from_distribution(name: String, spans: &Distribution) -> Self {
        let percentiles = [spans.p50_seconds, spans.p95_seconds, spans.p99_seconds].map(Some);
        Self { name, percentiles, max: Some(spans.max_seconds), count: spans.count as f64 }
    }

    pub(crate) fn from_requests(name: String, requests: &RequestFigures) -> Self {
        let percentiles = [requests.p50_seconds, requests.p95_seconds, requests.p99_seconds];
        Self { name, percentiles, max: None, count: requests.completed }
    }
}

/// Waits of pods and response times.
pub(crate) fn waits(rows: Vec<Wait>) -> Table {
    let seconds = |seconds: Option<f64>| seconds.map(Figure::seconds);
    Rows::new(rows)
        .text("Wait time", |wait| wait.name.clone())
        .number("p50", |wait| seconds(wait.percentiles[0]))
        .number("p95", |wait| seconds(wait.percentiles[1]))
        .number("p99", |wait| seconds(wait.percentiles[2]))
        .number("max", |wait| seconds(wait.max))
        .number("count", |wait| Figure::whole(wait.count))
        .missing("")
        .gap(1)
        .widths(&[23, 8, 8, 8, 8, 11])
        .into()
}

/// A name, its spans of time, and what else a table shows of them.
type Spans<'s, R> = (String, &'s Distribution, R);

/// Spans of time, each with its name.
pub(crate) fn spans<'s, R>(header: &str, all: impl IntoIterator<Item = Spans<'s, R>>) -> Rows<Spans<'s, R>> {
    Rows::new(all)
        .text(header, |(name, ..)| name.clone())
        .shortened(LABEL)
        .number("p50", |(_, spans, _)| Figure::seconds(spans.p50_seconds))
        .number("p95", |(_, spans, _)| Figure::seconds(spans.p95_seconds))
        .number("p99", |(_, spans, _)| Figure::seconds(spans.p99_seconds))
        .number("max", |(_, spans, _)| Figure::seconds(spans.max_seconds))
        .number("mean", |(_, spans, _)| Figure::seconds(spans.mean_seconds))
        .number("count", |(_, spans, _)| spans.count)
        .gap(1)
        .widths(&WIDTHS)
}

/// Response times of workloads.
pub(crate) fn requests<'s>(all: impl IntoIterator<Item = &'s RequestFigures>) -> Table {
    Rows::new(all)
        .text("response time", |requests| &requests.workload)
        .shortened(LABEL)
        .number("p50", |requests| requests.p50_seconds.map(Figure::seconds))
        .number("p95", |requests| requests.p95_seconds.map(Figure::seconds))
        .number("p99", |requests| requests.p99_seconds.map(Figure::seconds))
        .number("mean", |requests| requests.mean_seconds.map(Figure::seconds))
        .number("completed", |requests| Figure::whole(requests.completed))
        .number("unfinished", |requests| Figure::whole(requests.unanswered))
        .number("timed out", |requests| Figure::whole(requests.timed_out))
        .detail()
        .number("rejected", |requests| Figure::whole(requests.dropped))
        .detail()
        .number("time overloaded", |requests| Figure::seconds(requests.overloaded_seconds))
        .detail()
        .number("time throttled", |requests| Figure::seconds(requests.throttled_seconds))
        .detail()
        .gap(1)
        .widths(&WIDTHS)
        .into()
}

/// Queues and the work on them.
pub(crate) fn queues<'s>(all: impl IntoIterator<Item = &'s QueueFigures>) -> Table {
    let drained = |queue: &QueueFigures| {
        queue.drain_seconds.map_or_else(|| "never".to_owned(), |seconds| Figure::seconds(seconds).text())
    };
    Rows::new(all)
        .text("queue", |queue| &queue.queue)
        .shortened(LABEL)
        .number("mean wait", |queue| queue.mean_wait_seconds.map(Figure::seconds))
        .number("max wait", |queue| Figure::seconds(queue.longest_wait_seconds))
        .number("time to empty", |queue| drained(queue))
        .number("left at end", |queue| Figure::whole(queue.waiting_at_end))
        .number("peak", |queue| Figure::whole(queue.most_waiting))
        .number("processed", |queue| Figure::whole(queue.processed))
        .number("arrived", |queue| Figure::whole(queue.arrived))
        .detail()
        .number("peak after", |queue| Figure::seconds(queue.most_waiting_seconds))
        .detail()
        .text("workers", |queue| &queue.workload)
        .detail()
        .gap(1)
        .widths(&WIDTHS)
        .into()
}

/// Cost of groups of workloads, with requests and usage as means over the run. A page has more columns than a terminal.
pub(crate) fn cost_groups<'s>(
    header: &str,
    all: impl IntoIterator<Item = &'s CostGroup>,
    (about, total): (&AboutSummary, f64),
) -> Table {
    let mean = |use_of: Option<RequestUse>, amount: fn(&RequestUse) -> f64| {
        let mean = amount(&use_of?) / (about.duration_seconds / 3_600.0);
        mean.is_finite().then(|| Figure::decimals(mean, if mean < 100.0 { 2 } else { 0 }))
    };
    let used = |use_of: Option<RequestUse>| mean(use_of.filter(|known| known.efficiency.is_some()), |known| known.used);
    let efficiency = |use_of: Option<RequestUse>| use_of?.efficiency.map(Figure::share);
    Rows::new(all)
        .text(header, |group| &group.part.name)
        .shortened(LABEL)
        .number("cost", |group| format::money_among(&about.currency, group.part.amount, total))
        .number("share of bill", |group| Figure::share(group.part.share))
        .number("CPU requested", |group| mean(group.cpu, |known| known.requested))
        .unit("cores")
        .detail()
        .number("CPU used", |group| used(group.cpu))
        .unit("cores")
        .detail()
        .number("CPU efficiency", |group| efficiency(group.cpu))
        .number("memory requested", |group| mean(group.memory, |known| known.requested))
        .unit("GiB")
        .detail()
        .number("memory used", |group| used(group.memory))
        .unit("GiB")
        .detail()
        .number("memory efficiency", |group| efficiency(group.memory))
        .gap(1)
        .widths(&[LABEL, 9, 13, 14, 17])
        .into()
}

/// Changes of replica counts, with the metric and its target that led to them, in `because` characters.
pub(crate) fn changes<'s>(all: impl IntoIterator<Item = &'s ReplicaChangeFigures>, because: usize) -> Table {
    let reason = |change: &ReplicaChangeFigures| {
        let shown: String = change.because.chars().take(because).collect();
        let cut = if shown.len() < change.because.len() { "\u{2026}" } else { "" };
        shown + cut
    };
    Rows::new(all)
        .text("replicas", |change| &change.workload)
        .shortened(LABEL)
        .number("after", |change| Figure::seconds(change.at_seconds))
        .number("from", |change| change.from)
        .number("to", |change| change.to)
        .text("reason", |change| reason(change))
        .text("event", |change| &change.kind)
        .detail()
        .widths(&[LABEL, 8, 4, 4])
        .into()
}

/// Requests and use of the first `count` containers that a VerticalPodAutoscaler sizes, with its last recommendation.
pub(crate) fn containers(all: &[VerticalFigures], count: usize) -> Table {
    let containers = all.iter().flat_map(|vpa| {
        vpa.containers.iter().map(move |container| (format!("{}:{}", vpa.workload, container.container), container))
    });
    let rows = containers.take(count).flat_map(|(name, container)| {
        let resources = [(container.cpu, "CPU", 3), (container.memory, "MiB", 0)].into_iter();
        resources.filter_map(move |(sizes, unit, decimals)| Some((name.clone(), unit, sizes?, decimals)))
    });
    let bounds = |sizes: &Sizes, decimals: usize| {
        let (low, high) = (sizes.lower_bound, sizes.upper_bound);
        // The bound of a young workload is so high that it limits nothing.
        let high = if high > 1e7 { "any".to_owned() } else { format!("{high:.decimals$}") };
        format!("{low:.decimals$} to {high}")
    };
    let amount = |amount: Option<f64>, decimals: &usize| amount.map(|amount| Figure::decimals(amount, *decimals));
    Rows::new(rows)
        .text("requests", |(name, ..)| name.clone())
        .shortened(LABEL)
        .text("", |(_, unit, ..)| *unit)
        .label()
        .number("at start", |(.., sizes, decimals)| amount(sizes.request_first, decimals))
        .number("at end", |(.., sizes, decimals)| amount(sizes.request_last, decimals))
        .number("mean use", |(.., sizes, decimals)| amount(sizes.used_mean, decimals))
        .number("recommended", |(.., sizes, decimals)| Figure::decimals(sizes.target, *decimals))
        .text("bounds", |(.., sizes, decimals)| bounds(sizes, *decimals))
        .into()
}

/// What VerticalPodAutoscalers did to pods.
pub(crate) fn vertical<'s>(all: impl IntoIterator<Item = &'s VerticalFigures>) -> Table {
    Rows::new(all)
        .text("VerticalPodAutoscaler", |vpa| &vpa.autoscaler)
        .shortened(LABEL)
        .text("workload", |vpa| &vpa.workload)
        .detail()
        .text("mode", |vpa| &vpa.mode)
        .text("pod outcomes", |vpa| vpa.deeds())
        .into()
}
