//! The answers that come first, wherever people read them: cost, wait time, problems, and assumptions.
//!
//! What must not live here: how they are drawn (`page`, `markdown`).

use super::format::{self, IntervalFigure, Measure};
use super::summary::{Distribution, ObjectiveResult, RequestFigures, Share, Summary, UpgradeFigures};
use nodecast_settings::Calibrated;

/// Objectives that an answer names at most.
const NAMED_MAX: usize = 3;

/// A question with its answer.
#[derive(Clone, PartialEq, Debug)]
pub struct Answer {
    /// The question.
    pub question: &'static str,
    /// The answer in a few words.
    pub value: Piece,
    /// What is to be said of it.
    pub clauses: Vec<Vec<Piece>>,
}

/// A part of what is said.
#[derive(Clone, PartialEq, Debug)]
pub enum Piece {
    /// Words.
    Plain(String),
    /// A figure of the summary: its key, its value, and as people read it.
    Figure(&'static str, f64, String),
    /// Words that lead to a part of the report: its id and the words.
    Link(&'static str, String),
    /// How an objective stands: whether it is kept, `None` where nothing was measured; and the word for it.
    Verdict(Option<bool>, &'static str),
}

impl Piece {
    /// As words alone.
    pub fn words(&self) -> &str {
        match self {
            Self::Plain(words) | Self::Figure(.., words) | Self::Link(_, words) => words,
            Self::Verdict(_, word) => word,
        }
    }
}

fn plain(words: impl Into<String>) -> Piece {
    Piece::Plain(words.into())
}

impl Answer {
    fn new(question: &'static str, value: Piece) -> Self {
        Self { question, value, clauses: Vec::new() }
    }

    fn say(self, words: impl Into<String>) -> Self {
        let words = words.into();
        if words.is_empty() { self } else { self.with([plain(words)]) }
    }

    fn with(mut self, pieces: impl IntoIterator<Item = Piece>) -> Self {
        self.clauses.push(pieces.into_iter().collect());
        self
    }
}

/// The four answers.
pub fn answers(summary: &Summary) -> [Answer; 4] {
    [cost(summary), waited(summary), broke(summary), rests_on(summary)]
}

/// The run in one sentence, without its name: `$899 per month, p99 pod wait 54.1 s, all 3 objectives met`.
pub fn headline(summary: &Summary) -> String {
    let (cost, currency) = (&summary.cost, &summary.about.currency);
    let bill = match cost.per_month {
        Some(month) => format!("{} per month", format::money_in_short(currency, month)),
        None => format::money_in_short(currency, cost.total),
    };
    let wait = match &summary.pods.wait_for_node {
        Some(waits) if waits.max_seconds > 0.0 => format!("p99 pod wait {}", format::span(waits.p99_seconds)),
        Some(_) => "no pod waits for a node".to_owned(),
        None => "no pods created".to_owned(),
    };
    let judged = summary.objectives.iter().filter_map(|objective| objective.met);
    let (met, all) = judged.fold((0, 0), |(met, all), is_met| (met + u64::from(is_met), all + 1));
    let objectives = match (met, all) {
        (_, 0) => String::new(),
        (met, all) if met < all => {
            format!(", {} of {} missed", format::count(all - met), format::counted(all, "objective", "objectives"))
        }
        (_, 1) => ", the objective is met".to_owned(),
        (_, 2) => ", both objectives met".to_owned(),
        (_, all) => format!(", all {all} objectives met"),
    };
    let pending = match summary.pods.pending_at_end {
        0 => String::new(),
        pods => format!(", {} pending at the end", format::counted(pods, "pod", "pods")),
    };
    let upgrades = match failed_upgrades(summary).count() as u64 {
        0 => String::new(),
        count => format!(", {}", upgrades_failed(count)),
    };
    format!("{bill}, {wait}{objectives}{pending}{upgrades}")
}

/// Upgrades of nodes that ended with an error.
pub(super) fn failed_upgrades(summary: &Summary) -> impl Iterator<Item = &UpgradeFigures> {
    summary.node_upgrades.iter().filter(|upgrade| upgrade.is_failed())
}

fn upgrades_failed(count: u64) -> String {
    format!("{} failed", format::counted(count, "node upgrade", "node upgrades"))
}

fn cost(summary: &Summary) -> Answer {
    let cost = &summary.cost;
    let currency = &summary.about.currency;
    let money = |amount| format::money_in_short(currency, amount);
    let idle = format!("{} is idle capacity", format::percent(cost.idle.share));
    let (Some(hour), Some(month)) = (cost.per_hour, cost.per_month) else {
        let value = Piece::Figure("cost.total", cost.total, money(cost.total));
        return Answer::new("Cost", value).say(currency).say(idle);
    };
    let span = format::span(summary.about.duration_seconds);
    let value = Piece::Figure("cost.per_month", month, format!("{} per month", money(month)));
    let off =
        spot_range(summary).map_or_else(String::new, |range| format!("{range} given Spot price error (p10 to p90)"));
    Answer::new("Cost", value)
        .say(off)
        .with([
            Piece::Figure("cost.per_hour", hour, money(hour)),
            plain(" per hour, "),
            Piece::Figure("cost.total", cost.total, money(cost.total)),
            plain(format!(" for {span} simulated ({currency}, 730 h per month)")),
        ])
        .say(idle)
}

/// The cost of a month at the tenth and at the ninetieth percentile of the error of Spot prices; `None` without one.
pub(super) fn spot_range(summary: &Summary) -> Option<String> {
    let (cost, currency) = (&summary.cost, &summary.about.currency);
    let (range, month) = cost.spot_range.filter(|_| cost.total > 0.0).zip(cost.per_month)?;
    let per_month = |total: f64| Some(month * total / cost.total);
    let (low, high) = (per_month(range.total_low), per_month(range.total_high));
    let interval_figure = IntervalFigure { mean: month, low, high, ends: true, signed: false };
    Some(interval_figure.range(Measure::Money { currency, largest: month }))
}

fn waited(summary: &Summary) -> Answer {
    let Some(waits) = summary.pods.wait_for_node.as_ref() else {
        let none = if summary.pods.created > 0 && summary.about.warm_up_seconds.is_some() {
            "no pods were created after the warm-up"
        } else {
            "no pods were created"
        };
        return response(Answer::new("Wait time", plain("None")).say(none), summary);
    };
    let p99 = waits.p99_seconds;
    let value = Piece::Figure("pods.wait_for_node.p99_seconds", p99, format::span(p99));
    let answer = Answer::new("Wait time", value).say(format!("p99 pod wait for a node ({})", in_figures(waits)));
    response(answer, summary)
}

fn in_figures(spans: &Distribution) -> String {
    format!(
        "p50 {}, p95 {}, max {}",
        format::span(spans.p50_seconds),
        format::span(spans.p95_seconds),
        format::span(spans.max_seconds)
    )
}

/// The slowest workload stands for all; the table of requests has the others.
fn response(answer: Answer, summary: &Summary) -> Answer {
    let p99 = |figures: &RequestFigures| figures.p99_seconds.unwrap_or(-1.0);
    // Of equals the first.
    let slowest = |one: &&RequestFigures, other: &&RequestFigures| {
        p99(one).total_cmp(&p99(other)).then(std::cmp::Ordering::Greater)
    };
    let unknown = unknown_response(summary).map_or_else(String::new, |words| format!("response times {words}"));
    let answer = answer.say(unknown);
    let Some(figures) = summary.requests.iter().max_by(slowest) else { return answer };
    let which = match summary.requests.len() {
        1 => String::new(),
        all => format!(" (slowest of {all})"),
    };
    let of = |seconds| format::span_or_dash(seconds);
    let spans = format!("p50 {}, p99 {}", of(figures.p50_seconds), of(figures.p99_seconds));
    answer.say(format!("requests to {}{which}: {spans}", figures.workload))
}

/// Of how many workloads response times are not known; `None` where they are known of all.
pub(super) fn unknown_response(summary: &Summary) -> Option<String> {
    let count = summary.loads_in_cores.len() as u64;
    let workloads = format::counted(count, "workload, whose load is", "workloads, whose load is");
    (count > 0).then(|| format!("not known for {workloads} CPU in cores"))
}

/// The part of the bill that rests on an assumption.
pub(super) fn size_in_words(size: Option<Share>, summary: &Summary) -> String {
    let of_bill = |part: Share| {
        let amount = format::money_among(&summary.about.currency, part.amount, summary.cost.total);
        format!("{amount} ({})", format::percent(part.share))
    };
    size.map_or_else(|| "size unknown".to_owned(), of_bill)
}

/// Missed objectives, missing replicas, pending pods, and failed requests.
fn broke(summary: &Summary) -> Answer {
    let objectives = &summary.objectives;
    let missed = objectives.iter().filter(|objective| objective.met == Some(false)).count();
    let pending = summary.pods.pending_at_end;
    let availability = &summary.availability;
    let value = match (objectives.len(), missed) {
        (_, 0) => unjudged(summary).unwrap_or_else(|| "None".to_owned()),
        (all, missed) => format!("{missed} of {all} objectives missed"),
    };
    let mut answer = Answer::new("Problems", plain(value));
    let open: Vec<&ObjectiveResult> = objectives.iter().filter(|objective| objective.met != Some(true)).collect();
    let (named, rest) = open.split_at(open.len().min(NAMED_MAX));
    answer.clauses.extend(named.iter().map(|item| verdict(item)));
    answer = answer.say(and_more(rest));
    let kept: Vec<&str> = objectives
        .iter()
        .filter(|objective| objective.met == Some(true))
        .map(|objective| objective_name(&objective.name))
        .collect();
    if !kept.is_empty() {
        answer = answer.with([Piece::Verdict(Some(true), "met"), plain(format!(" {}", kept.join(", ")))]);
    }
    if let Some(share) = availability.unavailable_share {
        let missing = availability.unavailable_pod_minutes;
        let shown = format::objective(format::POD_MINUTES, missing);
        let figure = Piece::Figure("availability.unavailable_pod_minutes", missing, shown);
        let link = Piece::Link("replicas", "replicas".to_owned());
        answer = answer.with([
            link,
            plain(" missing: "),
            figure,
            plain(format!(" ({} of desired)", format::percent(share))),
        ]);
    }
    if let Some(worst) = availability.worst().into_iter().find(|item| item.at_zero_seconds > 0.0) {
        answer = answer.say(format!("zero Ready replicas: {}", worst.at_zero_words()));
    }
    if pending > 0 && !objectives.is_empty() {
        answer = answer.say(format!("{} unscheduled at the end", format::counted(pending, "pod", "pods")));
    }
    for upgrade in failed_upgrades(summary).take(NAMED_MAX) {
        let link = Piece::Link("node-upgrades", format!("upgrade of {}", upgrade.node_origin));
        answer = answer.with([link, plain(format!(" failed: {}", upgrade.failure()))]);
    }
    let limits: Vec<String> = summary.limits_reached.iter().map(|limit| limit.words()).collect();
    answer = answer.say(first_of("", &limits, "limits"));
    let full: Vec<String> = availability.full().iter().map(|autoscaler| autoscaler.words()).collect();
    answer = answer.say(first_of("at max replicas: ", &full, "autoscalers"));
    let failed: Vec<_> =
        summary.requests.iter().filter_map(|request| Some((&request.workload, request.failed()?))).collect();
    answer.say(failed.first().map_or_else(String::new, |(workload, what)| match failed.len() - 1 {
        0 => format!("{workload}: {what}"),
        others => {
            format!(
                "{workload}: {what}; {} had failures too",
                format::counted(others as u64, "other workload", "other workloads")
            )
        }
    }))
}

/// The first of several things with how many more there are; nothing where there is none.
fn first_of(label: &str, all: &[String], many: &str) -> String {
    match all {
        [] => String::new(),
        [only] => format!("{label}{only}"),
        [first, rest @ ..] => format!("{label}{first}; {} more {many} in the report", rest.len()),
    }
}

/// The worst of what broke that no objective kept has anything to say of.
fn unjudged(summary: &Summary) -> Option<String> {
    let is_kept = |names: &[&str]| {
        summary.objectives.iter().any(|objective| objective.met == Some(true) && names.contains(&&*objective.name))
    };
    // A pod that is left may have waited for longer than a percentile says.
    let longest = summary.pods.wait_for_node.map_or(0.0, |waits| waits.max_seconds);
    let waits = |objective_result: &ObjectiveResult| {
        objective_result.name.starts_with("pending_p")
            && objective_result.met == Some(true)
            && longest <= objective_result.limit
    };
    let pending = summary.pods.pending_at_end;
    if pending > 0 && !summary.objectives.iter().any(waits) {
        return Some(format!("{} pending", format::counted(pending, "pod", "pods")));
    }
    let upgrades = failed_upgrades(summary).count() as u64;
    if upgrades > 0 {
        return Some(upgrades_failed(upgrades));
    }
    let failed: f64 = summary
        .requests
        .iter()
        .filter(|request| request.failed().is_some())
        .map(|request| request.timed_out + request.dropped)
        .sum();
    if failed > 0.0 && !is_kept(&["request_p99"]) {
        let word = if format::whole(failed) == "1" { "request" } else { "requests" };
        return Some(format!("{} {word} failed", format::whole(failed)));
    }
    let missing = summary.availability.unavailable_pod_minutes;
    (missing > 0.0 && !is_kept(&["unavailable_pod_minutes", "at_zero"]))
        .then(|| format!("{} missing", format::objective(format::POD_MINUTES, missing)))
}

/// Objectives that are missed, or not measured, beyond those that are said in full.
fn and_more(rest: &[&ObjectiveResult]) -> String {
    if rest.is_empty() {
        return String::new();
    }
    let names: Vec<&str> = rest.iter().map(|item| objective_name(&item.name)).collect();
    format!("+ {} more: {}", rest.len(), names.join(", "))
}

fn verdict(objective: &ObjectiveResult) -> Vec<Piece> {
    let word = match objective.met {
        Some(true) => "met",
        Some(false) => "missed",
        None => "no data",
    };
    let value = |value| format::objective(&objective.unit, value);
    let limit = value(objective.limit);
    let against = match objective.actual {
        Some(actual) => format!("{}, limit {limit}", value(actual)),
        None => format!("limit {limit}"),
    };
    let because = objective.because.as_ref().map_or_else(String::new, |because| format!(" ({because})"));
    vec![
        Piece::Verdict(objective.met, word),
        plain(format!(" {}: {against}{because}", objective_name(&objective.name))),
    ]
}

/// The name of an objective for people.
pub(super) fn objective_name(name: &str) -> &str {
    match name {
        "unavailable_pod_minutes" => "missing replicas",
        "at_zero" => "zero Ready replicas",
        "at_max" => "at max replicas",
        "pending_p95" => "pod wait p95",
        "pending_p99" => "pod wait p99",
        "request_p99" => "response time p99",
        "cost" => "cost",
        other => other,
    }
}

/// Assumptions, price quality, and warnings.
fn rests_on(summary: &Summary) -> Answer {
    let count = summary.about.assumptions.len() as u64;
    let unconfirmed = &summary.cost.unconfirmed;
    let share = Piece::Figure("cost.unconfirmed.share", unconfirmed.share, format::percent(unconfirmed.share));
    let value = Piece::Link("assumptions", format::counted(count, "assumption", "assumptions"));
    let answer = Answer::new("Assumptions", value)
        .with([share, plain(format!(" of the cost uses estimated prices (price data: {})", summary.about.price_date))])
        .say(summary.about.calibration.as_ref().map_or_else(String::new, Calibrated::in_short));
    let largest = summary.about.sized_assumptions().into_iter().take(NAMED_MAX);
    let answer = largest.fold(answer, |answer, (text, size)| {
        let first = text.split_once(". ").map_or(text, |(first, _)| first).trim_end_matches('.');
        answer.say(format!("{}: {first}", size_in_words(size, summary)))
    });
    // Those that change most come first.
    let Some(first) = summary.warnings.first() else { return answer };
    let warnings = format::counted(summary.warnings.len() as u64, "warning", "warnings");
    answer.with([Piece::Link("warnings", warnings), plain(format!(": {first}"))])
}
