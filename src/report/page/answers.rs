//! The first screen: what it costs, who waits, whether the objectives are met, how much moves, and what it rests on.

use super::html::{Html, text, unbroken};
use crate::report::format;
use crate::report::summary::{Distribution, ObjectiveResult, RequestFigures, Summary};
use crate::scenario::definition::Calibrated;

/// A question with its answer.
struct Answer {
    question: String,
    /// The answer as people read it.
    value: String,
    /// The figure of the summary that it is, and the figure itself.
    figure: Option<(&'static str, f64)>,
    /// Markup below it, a line each.
    more: Vec<String>,
}

impl Answer {
    fn new(question: impl Into<String>, value: String) -> Self {
        Self { question: question.into(), value, figure: None, more: Vec::new() }
    }

    fn figure(mut self, key: &'static str, value: f64) -> Self {
        self.figure = Some((key, value));
        self
    }

    fn line(mut self, line: impl AsRef<str>) -> Self {
        if !line.as_ref().is_empty() {
            self.more.push(text(line.as_ref()));
        }
        self
    }

    fn markup(mut self, markup: String) -> Self {
        self.more.push(markup);
        self
    }

    /// Adds the answer to a row of so many.
    fn write(&self, page: &mut Html, beside: usize) {
        page.raw(&format!("<div class=\"answer of-{beside}\">\n"));
        page.element("p class=\"question\"", &self.question);
        let figure = self.figure.map_or_else(String::new, |(key, value)| of_figure(key, value));
        page.raw(&format!("<p class=\"value\"{figure}>{}</p>\n", unbroken(&text(&self.value))));
        for line in &self.more {
            page.raw(&format!("<p class=\"more\">{}</p>\n", unbroken(line)));
        }
        page.raw("</div>\n");
    }
}

/// Attributes by which programs find a figure of the summary in the page.
fn of_figure(key: &str, value: f64) -> String {
    format!(" data-figure=\"{key}\" data-value=\"{value}\"")
}

/// A figure within a line.
fn figure(key: &str, value: f64, shown: &str) -> String {
    format!("<span{}>{}</span>", of_figure(key, value), text(shown))
}

pub(super) fn answers(page: &mut Html, summary: &Summary) {
    page.raw("<div class=\"answers\">\n");
    let answers = [
        availability(summary),
        Some(cost(summary)),
        waiting(summary),
        response(summary),
        Some(objectives(summary)),
        Some(churn(summary)),
        Some(nodes(summary)),
        Some(assumptions(summary)),
    ];
    // Two rows where the page is wide: of an odd number the first has one more.
    let answers: Vec<Answer> = answers.into_iter().flatten().collect();
    let first = answers.len().div_ceil(2);
    for (position, answer) in answers.iter().enumerate() {
        answer.write(page, if position < first { first } else { answers.len() - first });
    }
    page.raw("</div>\n");
}

/// Lines about workloads or autoscalers that an answer has at most.
const NAMED_MAX: usize = 2;

fn availability(summary: &Summary) -> Option<Answer> {
    let own = &summary.availability;
    let share = own.unavailable_share?;
    let missing = own.unavailable_pod_minutes;
    let mut answer = Answer::new("Replicas wanted and not Ready", format::objective(format::POD_MINUTES, missing))
        .figure("availability.unavailable_pod_minutes", missing)
        .line(format!("{} of what was wanted", format::percent(share)));
    for own in own.worst().into_iter().filter(|own| own.at_zero_seconds > 0.0).take(NAMED_MAX) {
        answer = answer.line(format!("None Ready: {}", own.at_zero_words()));
    }
    for own in own.full().into_iter().take(NAMED_MAX) {
        answer = answer.line(format!("At the maximum: {}", own.words()));
    }
    Some(answer.markup("<a href=\"#replicas\">Every workload</a>".to_owned()))
}

fn cost(summary: &Summary) -> Answer {
    let cost = &summary.cost;
    let currency = &summary.about.currency;
    let money = |amount| format::money(currency, amount);
    let idle = format!("{} of it for capacity that nobody requested", format::percent(cost.idle.share));
    let (Some(hour), Some(month)) = (cost.per_hour, cost.per_month) else {
        let answer = Answer::new(format!("Cost ({currency})"), money(cost.total));
        return answer.figure("cost.total", cost.total).line(idle);
    };
    let total = figure("cost.total", cost.total, &money(cost.total));
    let hour = figure("cost.per_hour", hour, &money(hour));
    Answer::new(format!("Cost per month of 730 h ({currency})"), money(month))
        .figure("cost.per_month", month)
        .markup(format!("{hour} per hour"))
        .markup(format!("{total} for the {} simulated", text(&format::span(summary.about.duration_seconds))))
        .line(idle)
}

fn waiting(summary: &Summary) -> Option<Answer> {
    let waits = summary.pods.wait_for_node.as_ref()?;
    let pending = summary.pods.pending_at_end;
    let still = format!("{} without a node at the end", format::counted(pending, "pod", "pods"));
    let answer = Answer::new("Pods wait for a node, 99th percentile", format::span(waits.p99_seconds))
        .figure("pods.wait_for_node.p99_seconds", waits.p99_seconds)
        .line(in_figures(waits));
    Some(if pending == 0 { answer } else { answer.line(still) })
}

fn in_figures(spans: &Distribution) -> String {
    format!(
        "p50 {}, p95 {}, longest {}",
        format::span(spans.p50_seconds),
        format::span(spans.p95_seconds),
        format::span(spans.max_seconds)
    )
}

/// The slowest workload stands for all; the table of requests has the others.
fn response(summary: &Summary) -> Option<Answer> {
    let slowest = |one: &&RequestFigures, other: &&RequestFigures| {
        let p99 = |figures: &RequestFigures| figures.p99_seconds.unwrap_or(-1.0);
        // Of equals the first.
        p99(one).total_cmp(&p99(other)).then(std::cmp::Ordering::Greater)
    };
    let figures = summary.requests.iter().max_by(slowest)?;
    let others = summary.requests.len() - 1;
    let question = match others {
        0 => format!("Response time of {}, 99th percentile", figures.workload),
        _ => format!("Response time of {}, the slowest of {}, 99th percentile", figures.workload, others + 1),
    };
    let spans = format!(
        "p50 {}, p95 {}, mean {}",
        format::span_or_dash(figures.p50_seconds),
        format::span_or_dash(figures.p95_seconds),
        format::span_or_dash(figures.mean_seconds)
    );
    let served = format!(
        "{} completed, {} in flight at the end",
        format::whole(figures.completed),
        format::whole(figures.unanswered)
    );
    let answer = Answer::new(question, format::span_or_dash(figures.p99_seconds)).line(spans).line(served);
    Some(answer.line(figures.failed().unwrap_or_default()))
}

fn objectives(summary: &Summary) -> Answer {
    let objectives = &summary.objectives;
    if objectives.is_empty() {
        return Answer::new("Objectives", "None stated".to_owned())
            .line("A scenario can state limits on waiting, response time and cost.");
    }
    let met = objectives.iter().filter(|objective| objective.met == Some(true)).count();
    let answer = Answer::new("Objectives met", format!("{met} of {}", objectives.len()));
    objectives.iter().fold(answer, |answer, objective| answer.markup(verdict(objective)))
}

fn verdict(objective: &ObjectiveResult) -> String {
    let (class, verdict) = match objective.met {
        Some(true) => ("met", "met"),
        Some(false) => ("missed", "missed"),
        None => ("faint", "nothing measured"),
    };
    let value = |value| format::objective(&objective.unit, value);
    let limit = value(objective.limit);
    let against = match objective.actual {
        Some(actual) => format!("{} against at most {limit}", value(actual)),
        None => format!("at most {limit} wanted"),
    };
    let because = objective.because.as_ref().map_or_else(String::new, |because| format!("; {because}"));
    let against = against + &because;
    let name = objective_name(&objective.name);
    format!("<span class=\"{class}\">{verdict}</span> {}: {}", text(name), text(&against))
}

fn objective_name(name: &str) -> &str {
    match name {
        "unavailable_pod_minutes" => "replicas wanted and not Ready",
        "at_zero" => "a workload without a Ready replica",
        "at_max" => "an autoscaler at its maximum",
        "pending_p95" => "wait for a node, p95",
        "pending_p99" => "wait for a node, p99",
        "request_p99" => "response time, p99",
        "cost" => "cost of the run",
        other => other,
    }
}

fn churn(summary: &Summary) -> Answer {
    let nodes = &summary.nodes;
    let removed: u64 = nodes.terminations.iter().map(|end| end.count).sum();
    let launches = figure("nodes.launches", nodes.launches as f64, &format::count(nodes.launches));
    let ends: Vec<String> =
        nodes.terminations.iter().map(|end| format!("{} {}", format::count(end.count), end.name)).collect();
    let evictions = summary.churn.evictions;
    let evicted = figure("churn.evictions", evictions as f64, &format::count(evictions));
    let missing = text(&format::span(summary.churn.ready_time_lost_seconds));
    let rescales =
        figure("scaling.rescales", summary.scaling.rescales as f64, &format::count(summary.scaling.rescales));
    let value = format!("{} up, {} down", format::count(nodes.launches), format::count(removed));
    Answer::new("Churn: nodes launched and removed", value)
        .markup(format!("{launches} launched, {} refused by EC2", format::count(nodes.failed_launches)))
        .line(if ends.is_empty() { "None removed".to_owned() } else { format!("Removed: {}", ends.join(", ")) })
        .markup(format!("<a href=\"#churn\">{evicted} pods evicted</a>, missing for {missing} altogether"))
        .markup(format!(
            "Replica counts changed {}, {rescales} of them by autoscalers",
            format::counted(summary.scaling.changes_in_all, "time", "times")
        ))
}

fn nodes(summary: &Summary) -> Answer {
    let nodes = &summary.nodes;
    let answer = Answer::new("Most nodes Ready at once", format::count(nodes.max_ready))
        .figure("nodes.max_ready", nodes.max_ready as f64)
        .line(nodes.mean_ready.map_or_else(String::new, |mean| format!("{mean:.2} on average")));
    let (Some(cpu), Some(memory)) = (summary.utilisation.cpu_requested, summary.utilisation.memory_requested) else {
        return answer;
    };
    let cpu = figure("utilisation.cpu_requested", cpu, &format::percent(cpu));
    let memory = figure("utilisation.memory_requested", memory, &format::percent(memory));
    answer.markup(format!("Of what they offer, pods request {cpu} of CPU and {memory} of memory"))
}

fn assumptions(summary: &Summary) -> Answer {
    let count = summary.about.assumptions.len() as u64;
    let warnings = format::counted(summary.warnings.len() as u64, "warning", "warnings");
    let link = |id: &str, name: &str| format!("<a href=\"#{id}\">{}</a>", text(name));
    let unconfirmed = &summary.cost.unconfirmed;
    let share = figure("cost.unconfirmed.share", unconfirmed.share, &format::percent(unconfirmed.share));
    let warnings = if summary.warnings.is_empty() { text("no warning") } else { link("warnings", &warnings) };
    let first = summary.about.assumptions.first().cloned().unwrap_or_default();
    Answer::new("It rests on", format::counted(count, "assumption", "assumptions"))
        .markup(format!("{}, {warnings}", link("assumptions", "All assumptions")))
        .line(summary.about.calibration.as_ref().map_or_else(String::new, Calibrated::in_short))
        .markup(format!("{share} of the bill at estimated prices"))
        .line(first)
}
