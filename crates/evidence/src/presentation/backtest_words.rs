//! What a back-test says, in sentences, and its figures in words.

use jiff::Timestamp;

use super::{known, signed_percent};
use crate::backtest::replay::Recorded;
use crate::backtest::{Answer, BillComparison, BillLink, FigureResult, Findings, Judged, Mode, Variant, Verdict};
use crate::figures::Unit;
use crate::report::format::{IntervalFigure, Measure, counted, money, percent, span};
use crate::statistics::Estimate;

/// Figures that the first sentence tells of beside cost, with what they are called there.
const TOLD: [(&str, &str); 3] = [
    ("node_hours_per_day", "node-hours"),
    ("launches_per_day", "launches"),
    ("wait_p99", "the p99 wait for a new node"),
];

/// What is simulated and not billed is worth a sentence from this share of the bill on.
const UNBILLED_LEAST: f64 = 0.01;
/// Links of a bill that come to less are no line of their own.
const SHOWN_LEAST: f64 = 0.005;

/// A value of a figure with its unit.
pub(super) fn value(unit: Unit, currency: Option<&str>, value: f64) -> String {
    match unit {
        Unit::Money => money(currency.unwrap_or("USD"), value),
        Unit::Seconds => span(value),
        Unit::Share => percent(value),
        Unit::Count if value.abs() < 99.95 => format!("{value:.1}"),
        Unit::Count => crate::report::format::whole(value),
    }
}

/// `12.3 ± 2.1`.
pub(super) fn simulated(unit: Unit, currency: Option<&str>, judged: &Judged) -> String {
    let Judged { simulated: mean, low, high, .. } = *judged;
    let (Some(from), Some(until)) = (low, high) else { return value(unit, currency, mean) };
    if until <= from {
        return value(unit, currency, mean);
    }
    let measure = match unit {
        Unit::Money => Measure::Money { currency: currency.unwrap_or("USD"), largest: mean },
        Unit::Seconds => Measure::Seconds,
        Unit::Share => Measure::Share,
        Unit::Count => Measure::Count,
    };
    let (below, above) = (mean - from, until - mean);
    let ends = below.max(above) > 1.5 * below.min(above) || from <= unit.range().0;
    IntervalFigure { mean, low, high, ends, signed: false }.text(measure)
}

/// An error with its sign; a dash where it is no share of anything.
pub(super) fn error(error: Option<f64>) -> String {
    error.map_or_else(|| "\u{2013}".to_owned(), signed_percent)
}

/// What the back-test says, the answer first.
pub fn sentences(answer: &Answer) -> Vec<String> {
    let found = &answer.findings;
    let mut sentences = vec![first(answer)];
    sentences.push(tallied(found));
    sentences.extend(off(found));
    sentences.extend(worth_changing(found));
    sentences.extend(naive(found));
    sentences.extend(ablation(answer));
    sentences.extend(answer.bill.as_ref().map(billed));
    sentences.extend(closing(answer));
    if answer.in_sample {
        let words = "In-sample: the recording is not split, so the scenario may have been built from the data it is tested on. Use --split to separate them.";
        sentences.insert(1, words.to_owned());
    }
    sentences
}

/// The judged time for people: its days, or its ends where it is shorter than two days.
pub(super) fn stretch(answer: &Answer) -> String {
    let parsed = |text: &str| text.parse::<Timestamp>().ok();
    let ends = parsed(&answer.judged_from).zip(parsed(&answer.judged_until));
    let Some((from, until)) = ends else { return format!("{} to {}", answer.judged_from, answer.judged_until) };
    let (first, last) =
        (from.strftime("%Y-%m-%d"), (until - jiff::SignedDuration::from_micros(1)).strftime("%Y-%m-%d"));
    let long = until.as_second() - from.as_second() >= 2 * 86_400;
    if long {
        format!("{first} to {last}")
    } else {
        format!("{} to {}", from.strftime("%Y-%m-%d %H:%M"), until.strftime("%Y-%m-%d %H:%M UTC"))
    }
}

/// The judged time to the minute, with its length.
pub(super) fn judged_time(answer: &Answer) -> String {
    let parsed = |text: &str| text.parse::<Timestamp>().ok();
    let ends = parsed(&answer.judged_from).zip(parsed(&answer.judged_until));
    let Some((from, until)) = ends else { return stretch(answer) };
    let hours = (until.as_second() - from.as_second()) as f64 / 3_600.0;
    let form = "%Y-%m-%d %H:%M";
    format!("{hours:.0} h, {} to {} UTC", from.strftime(form), until.strftime(form))
}

fn figure<'f>(found: &'f Findings, name: &str) -> Option<&'f FigureResult> {
    found.figures.iter().find(|figure| figure.name == name)
}

fn beside(error: f64) -> String {
    match error {
        error if error.abs() < 0.000_5 => "the same".to_owned(),
        error if error > 0.0 => format!("{} above", percent(error)),
        error => format!("{} below", percent(-error)),
    }
}

/// `From 2026-10-20 to 2026-10-23 nodecast was 4.1 ± 1.2% below the actual bill, inside the spread between seeds (a single seed can deviate 6%
/// from the mean); node-hours 2% above.`
fn first(answer: &Answer) -> String {
    let found = &answer.findings;
    let billed = figure(found, "cost_per_day");
    let cost = billed.or_else(|| figure(found, "cost_at_held_prices_per_day"));
    let mut parts = Vec::new();
    let what = if billed.is_some() { "the actual bill" } else { "node cost at fixed prices" };
    if let (Some(cost), Some(estimate)) = (cost, found.cost_error) {
        parts.push(format!("was {} {what}, {}", off_by(&estimate), chance(&cost.judged)));
    }
    for (name, words) in TOLD {
        let Some(figure) = figure(found, name) else { continue };
        match (figure.judged.verdict, figure.judged.error) {
            // What seeds leave open says nothing here.
            (Verdict::CannotTell, _) => parts.push(format!("{words} open")),
            (_, Some(error)) => parts.push(format!("{words} {}", beside(error))),
            (_, None) => {}
        }
    }
    let mode = match answer.mode {
        Mode::Replay => "",
        Mode::Forecast => ", using only earlier data,",
    };
    let parts = if parts.is_empty() { "has no data to evaluate".to_owned() } else { parts.join("; ") };
    format!("From {} nodecast{mode} {parts}.", stretch(answer))
}

fn chance(judged: &Judged) -> String {
    let reach = judged.high.zip(judged.low).map(|(high, low)| (high - low) / 2.0 / judged.observed.abs());
    let reach = reach
        .filter(|reach| *reach > 0.0)
        .map(|reach| format!(" (a single seed can deviate {} from the mean)", percent(reach)));
    let reach = reach.unwrap_or_default();
    let inside = if judged.beyond_chance { "beyond" } else { "inside" };
    format!("{inside} the spread between seeds{reach}")
}

fn tallied(found: &Findings) -> String {
    let tally = &found.tally;
    let judged = counted(tally.figures, "metric is", "metrics are");
    let parts = [
        (tally.agrees, "in agreement"),
        (tally.small_but_real, "small but real"),
        (tally.cannot_tell, "inconclusive (seeds or correct models differ by as much)"),
        (tally.differs, "different"),
    ];
    let parts: Vec<String> =
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, words)| format!("{count} {words}")).collect();
    format!(
        "{judged} evaluated: {}. Among metrics that vary between seeds, {} {} outside the spread of the seeds; chance alone predicts {:.1}.",
        parts.join(", "),
        tally.beyond_chance,
        if tally.beyond_chance == 1 { "lies" } else { "lie" },
        tally.beyond_chance_expected
    )
}

/// Which figures differ, the worst first.
fn off(found: &Findings) -> Option<String> {
    let size = |judged: &Judged| judged.error.map_or(f64::INFINITY, f64::abs);
    let mut off: Vec<(f64, String)> = Vec::new();
    for figure in found.figures.iter().filter(|figure| figure.judged.verdict == Verdict::Differs) {
        off.push((size(&figure.judged), format!("{} {}", figure.label, error(figure.judged.error))));
    }
    for workload in &found.workloads {
        let parts = [
            ("replicas of", Some(&workload.replicas)),
            ("CPU of", workload.cpu_milli.as_ref()),
            ("p99 of", workload.latency_p99_seconds.as_ref()),
        ];
        for (what, judged) in parts {
            if let Some(judged) = judged.filter(|judged| judged.verdict == Verdict::Differs) {
                off.push((size(judged), format!("{what} {} {}", workload.workload, error(judged.error))));
            }
        }
    }
    if off.is_empty() {
        return None;
    }
    off.sort_by(|one, other| other.0.total_cmp(&one.0));
    let more = off.len().saturating_sub(5);
    let named: Vec<String> = off.into_iter().take(5).map(|(_, words)| words).collect();
    let rest = if more > 0 { format!(", and {more} more") } else { String::new() };
    Some(format!("Differences: {}{rest}.", named.join(", ")))
}

/// Which parameters are worth changing, and for which figures.
fn worth_changing(found: &Findings) -> Option<String> {
    const SHOWN_MAX: usize = 4;
    let changes = found.changes.iter().take(SHOWN_MAX).map(|change| {
        let more = change.figures.len().saturating_sub(2);
        let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
        let figures = change.figures.iter().take(2).map(String::as_str).collect::<Vec<_>>().join(", ");
        format!("{} ({figures}{rest})", change.parameter)
    });
    let changes: Vec<String> = changes.collect();
    (!changes.is_empty()).then(|| format!("Worth changing: {}.", changes.join("; ")))
}

/// Whether the simulation is nearer than the same hours of days before.
fn naive(found: &Findings) -> Option<String> {
    let Some(days) = found.naive_days else {
        return Some("No naive forecast: the recording has no earlier period of the same length.".to_owned());
    };
    let with_skill = found.figures.iter().filter(|figure| figure.skill.is_some());
    let (mut nearer, mut all) = (0_u64, 0_u64);
    for figure in with_skill {
        all += 1;
        nearer += u64::from(figure.skill.is_some_and(|skill| skill > 0.0));
    }
    let before = if days == 1 { "the day before".to_owned() } else { format!("{days} days before") };
    let cost = figure(found, "cost_per_day").or_else(|| figure(found, "cost_at_held_prices_per_day"));
    let cost = cost.and_then(|figure| Some((figure.skill?, figure.naive_error?))).map(|(skill, naive)| {
        if skill > 0.0 {
            format!("; its cost is off by {}", percent(naive.abs()))
        } else {
            format!("; for cost, the naive forecast is better (off by {})", percent(naive.abs()))
        }
    });
    Some(format!(
        "Compared with the same hours of {before}, the simulation is closer in {nearer} of {all} metrics{}.",
        cost.unwrap_or_default()
    ))
}

/// What is swapped in, for people.
pub(super) fn swapped(parts: &[Recorded]) -> String {
    if parts.is_empty() {
        return "as modelled".to_owned();
    }
    let words: Vec<&str> = parts.iter().map(|part| part.as_str()).collect();
    format!("with {}", words.join(" and "))
}

/// What is swapped in a variant, for people.
pub(super) fn variant_words(variant: &Variant) -> String {
    let words = swapped(&variant.swapped_in);
    if variant.without_calibration { format!("{words}, without calibration") } else { words }
}

/// `On 2026-10-16 to 2026-10-17 nodecast was 4.1% (1.2 to 7.0) below the bill; without calibration 11%. Most of the rest is ...`
fn closing(answer: &Answer) -> Option<String> {
    let error = answer.findings.cost_error.filter(|_| !answer.ablation.is_empty())?;
    let billed = figure(&answer.findings, "cost_per_day").is_some();
    let what = if billed { "the bill" } else { "the cost of the recorded nodes at fixed prices" };
    let mut words = format!("On {} nodecast was {} {what}", stretch(answer), off_by(&error));
    if let Some(without) = answer.ablation.iter().find(|variant| variant.without_calibration) {
        let without = without.findings.cost_error?.mean;
        let side = if (without < 0.0) == (error.mean < 0.0) { "" } else { direction(without) };
        words += &format!("; without calibration {}{side}", percent(without.abs()));
    }
    let rest =
        most_of_the_rest(answer, error.mean).map_or_else(String::new, |most| format!(" Most of the rest is {most}."));
    Some(format!("{words}.{rest}"))
}

/// The part of the record that takes more than half of the error away, or the largest link on the way from the bill.
fn most_of_the_rest(answer: &Answer, error: f64) -> Option<String> {
    let main = &answer.swapped_in;
    let one_more = |variant: &&Variant| {
        let more = variant.swapped_in.len() == main.len() + 1;
        !variant.without_calibration && more && main.iter().all(|part| variant.swapped_in.contains(part))
    };
    let left =
        |variant: &Variant| variant.findings.cost_error.map_or(f64::INFINITY, |cost_error| cost_error.mean.abs());
    let best = answer.ablation.iter().filter(one_more).min_by(|one, other| left(one).total_cmp(&left(other)));
    if let Some(best) = best.filter(|best| left(best) < error.abs() / 2.0) {
        let part = best.swapped_in.iter().find(|part| !main.contains(part))?;
        return Some(format!("the effect of {}: {} is left with them", part.as_str(), percent(left(best))));
    }
    let links = answer.bill.iter().flat_map(|bill| bill.links.iter().map(move |link| (bill, link)));
    let (bill, link) = links.max_by(|one, other| one.1.amount.abs().total_cmp(&other.1.amount.abs()))?;
    Some(format!("{} ({})", link.what, money(&bill.currency, link.amount.abs())))
}

fn direction(error: f64) -> &'static str {
    if error < 0.0 { " below" } else { " above" }
}

/// `4 ± 3% below`.
fn off_by(estimate: &Estimate) -> String {
    let size = if estimate.mean < 0.0 { estimate.negated() } else { *estimate };
    format!("{}{}", known(&size).text(Measure::Share), direction(estimate.mean))
}

fn ablation(answer: &Answer) -> Option<String> {
    let cost = |found: &Findings| found.cost_error.map(|estimate| signed_percent(estimate.mean));
    if answer.ablation.is_empty() {
        return None;
    }
    let main = (swapped(&answer.swapped_in), &answer.findings);
    let others = answer.ablation.iter().map(|variant| (variant_words(variant), &variant.findings));
    let parts = std::iter::once(main).chain(others);
    let parts: Vec<String> = parts.filter_map(|(words, found)| Some(format!("{} {words}", cost(found)?))).collect();
    Some(format!("Cost error: {}.", parts.join(", ")))
}

/// `Of the bill of $20.88 ...`.
fn billed(bill: &BillComparison) -> String {
    let say = |amount: f64| money(&bill.currency, amount);
    let largest = bill.links.iter().max_by(|one, other| one.amount.abs().total_cmp(&other.amount.abs()));
    let most = largest.map_or_else(String::new, |link| {
        let word = if link.amount > 0.0 { "less" } else { "more" };
        format!(
            "; the largest remaining difference is {} ({} {word} in the simulation)",
            link.what,
            say(link.amount.abs())
        )
    });
    let mut words = format!(
        "For {}, the actual bill is {} amortised and the simulated bill is {}{most}.",
        bill.cluster,
        say(bill.amortised),
        say(bill.simulated)
    );
    if bill.unbilled > UNBILLED_LEAST * bill.amortised && bill.amortised > 0.0 {
        let rest = (bill.simulated - bill.unbilled - bill.amortised) / bill.amortised;
        words += &format!(
            " {} of the simulated bill has no counterpart in the actual bill; without it, the simulated bill is {}.",
            say(bill.unbilled),
            beside(rest)
        );
    }
    bill.hints.iter().for_each(|hint| words += &format!(" {hint}"));
    words
}

/// The way from the bill to the simulated one, a line each.
pub(super) fn links(bill: &BillComparison) -> Vec<Vec<String>> {
    let say = |amount: f64| money(&bill.currency, amount);
    let mut rows = vec![vec!["from the bill to the simulation".to_owned(), "amount".to_owned()]];
    rows.push(vec!["billed, amortised".to_owned(), say(bill.amortised)]);
    let is_shown = |bill_link: &&BillLink| bill_link.amount.abs() >= SHOWN_LEAST;
    // On the way to the simulation: what it has more is added.
    let added = |link: &BillLink| {
        let sign = if link.amount > 0.0 { '\u{2212}' } else { '+' };
        vec![link.what.clone(), format!("{sign}{}", say(link.amount.abs()))]
    };
    rows.extend(bill.links.iter().filter(is_shown).map(added));
    rows.push(vec!["simulated".to_owned(), say(bill.simulated)]);
    let aside = |hours: &str| format!("for reference: nodes at fixed prices, {hours} hours");
    rows.push(vec![aside("billed"), say(bill.at_one_price_list_observed)]);
    rows.push(vec![aside("simulated"), say(bill.at_one_price_list_simulated)]);
    rows
}
