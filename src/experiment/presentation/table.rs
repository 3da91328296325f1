//! The table that `compare` prints, and its verdict.

use super::{aligned, counted, interval, signed, signed_percent, value};
use crate::experiment::comparison::{Comparison, FigureResult, ObjectiveShare};
use crate::experiment::figures::{FIGURES, Figure};
use crate::experiment::statistics::Paired;
use crate::report::format::{self, money, percent, span};

/// Figures of the table; the page and the JSON have all.
const SHOWN: [&str; 8] = [
    "cost",
    "cost_per_month",
    "pending_mean",
    "pending_p99",
    "request_p99",
    "nodes_mean",
    "evictions",
    "interruptions",
];
/// Warnings that are printed; the page has all.
const WARNINGS_MAX: usize = 3;
/// A cost difference known to this share on either side needs no more replications.
pub const ENOUGH: f64 = 0.02;

/// The table of `comparison`.
pub fn table(comparison: &Comparison) -> String {
    let mut lines = Vec::new();
    heading(comparison, &mut lines);
    means(comparison, &mut lines);
    differences(comparison, &mut lines);
    objectives(comparison, &mut lines);
    lines.push(String::new());
    lines.extend(verdict(comparison));
    warnings(comparison, &mut lines);
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

fn heading(comparison: &Comparison, lines: &mut Vec<String>) {
    let about = &comparison.about;
    let policies = format::counted(comparison.policies.len() as u64, "policy", "policies");
    let replications = format::counted(about.replications, "replication", "replications");
    let last = about.first_seed + about.replications_planned.saturating_sub(1);
    lines.push(format!("{}: {policies}, {replications}, seeds {} to {last}", about.scenario, about.first_seed));
    lines.push(format!(
        "{} from {} in {}, prices of {}",
        span(about.duration_seconds),
        about.start,
        about.region,
        about.price_date
    ));
    if about.replications < about.replications_planned {
        lines.push(format!("stopped early: {} replications were planned", about.replications_planned));
    }
    lines.push(String::new());
}

/// The figures shown that any policy has a value for.
fn shown(comparison: &Comparison) -> Vec<(usize, &'static Figure)> {
    let any = |position: usize| {
        comparison.policies.iter().any(|policy| policy.figures[position].mean.is_some_and(|mean| mean.mean.abs() > 0.0))
    };
    FIGURES.iter().enumerate().filter(|(position, figure)| SHOWN.contains(&figure.name) && any(*position)).collect()
}

/// One line for each figure, one column for each policy: the mean, and half the width of its interval.
fn means(comparison: &Comparison, lines: &mut Vec<String>) {
    let currency = &comparison.about.currency;
    let mut rows = vec![vec!["mean".to_owned()]];
    rows[0].extend(comparison.policies.iter().map(|policy| policy.name.clone()));
    for (position, figure) in shown(comparison) {
        let mut row = vec![figure.label.to_owned()];
        row.extend(comparison.policies.iter().map(|policy| mean_cell(figure, currency, &policy.figures[position])));
        rows.push(row);
    }
    lines.extend(aligned(&rows));
}

fn mean_cell(figure: &Figure, currency: &str, result: &FigureResult) -> String {
    let Some(mean) = result.mean else { return "\u{2013}".to_owned() };
    let reach = mean.half_width().filter(|reach| *reach > 0.0);
    let reach = reach.map_or_else(String::new, |reach| format!(" \u{b1}{}", value(figure, currency, reach)));
    format!("{}{reach}", value(figure, currency, mean.mean))
}

/// One line for each figure, one column for each policy but the first: the difference and its interval.
fn differences(comparison: &Comparison, lines: &mut Vec<String>) {
    let Some((first, others)) = comparison.policies.split_first() else { return };
    if others.is_empty() {
        return;
    }
    let mut rows = vec![vec![format!("against {}, 95 % interval", first.name)]];
    rows[0].extend(others.iter().map(|policy| policy.name.clone()));
    for (position, figure) in shown(comparison) {
        let mut row = vec![figure.label.to_owned()];
        row.extend(others.iter().map(|policy| {
            let paired = policy.figures[position].against_first.as_ref();
            paired
                .map_or_else(|| "\u{2013}".to_owned(), |paired| difference(figure, &comparison.about.currency, paired))
        }));
        rows.push(row);
    }
    lines.push(String::new());
    lines.extend(aligned(&rows));
}

/// A difference: costs as shares, the rest in their own unit.
pub(super) fn difference(figure: &Figure, currency: &str, paired: &Paired) -> String {
    let with = |mean: String, interval: String| if interval.is_empty() { mean } else { format!("{mean} ({interval})") };
    match (figure.unit, &paired.relative) {
        (crate::experiment::figures::Unit::Money, Some(relative)) => {
            with(signed_percent(relative.mean), interval(relative, signed_percent))
        }
        _ => {
            let say = |amount| signed(figure, currency, amount);
            with(say(paired.difference.mean), interval(&paired.difference, say))
        }
    }
}

fn objectives(comparison: &Comparison, lines: &mut Vec<String>) {
    let Some(first) = comparison.policies.first().filter(|policy| !policy.objectives.is_empty()) else { return };
    let mut rows = vec![vec!["objectives met".to_owned()]];
    rows[0].extend(comparison.policies.iter().map(|policy| policy.name.clone()));
    for (position, objective) in first.objectives.iter().enumerate() {
        let mut row = vec![format!("{} at most {}", objective.name, limit(objective))];
        row.extend(
            comparison.policies.iter().map(|policy| policy.objectives.get(position).map_or_else(String::new, met)),
        );
        rows.push(row);
    }
    lines.push(String::new());
    lines.extend(aligned(&rows));
}

/// The limit of an objective in its unit.
pub(super) fn limit(objective: &ObjectiveShare) -> String {
    if objective.unit == "seconds" { span(objective.limit) } else { money(&objective.unit, objective.limit) }
}

/// `29 of 30 runs (83 to 99 %)`.
pub(super) fn met(objective: &ObjectiveShare) -> String {
    let Some(share) = &objective.share else { return "not measured".to_owned() };
    let whole = |share: f64| format!("{:.0}", share * 100.0);
    format!("{} of {} runs ({} %)", objective.met, objective.judged, interval(share, whole))
}

/// What the comparison says, in sentences.
pub fn verdict(comparison: &Comparison) -> Vec<String> {
    let Some((first, others)) = comparison.policies.split_first() else { return Vec::new() };
    let mut sentences = Vec::new();
    for (position, policy) in others.iter().enumerate() {
        let Some(paired) = comparison.figure(position + 1, "cost").and_then(|figure| figure.against_first.as_ref())
        else {
            continue;
        };
        let waits = comparison
            .figure(position + 1, "pending_p99")
            .and_then(|figure| figure.against_first.as_ref())
            .map_or_else(String::new, waiting);
        sentences.push(format!("{} {} than {}{waits}.", policy.name, cost_words(paired), first.name));
    }
    sentences.extend(
        first
            .objectives
            .iter()
            .enumerate()
            .map(|(position, objective)| objective_words(comparison, position, objective)),
    );
    sentences.extend(precision(comparison));
    sentences
}

fn cost_words(paired: &Paired) -> String {
    let Some(relative) = &paired.relative else {
        return "cannot be held against a bill of nothing, more costly".to_owned();
    };
    let (low, high) = (relative.low.unwrap_or(f64::NAN), relative.high.unwrap_or(f64::NAN));
    let says = |share: f64| format!("{:.1}", share.abs() * 100.0);
    if relative.low.is_none() {
        let word = if relative.mean > 0.0 { "dearer" } else { "cheaper" };
        return format!("is {} % {word} in the one replication", says(relative.mean));
    }
    if !paired.difference.excludes_zero() {
        return format!("is not clearly cheaper or dearer ({} to {})", signed_percent(low), signed_percent(high));
    }
    let (word, least, most) = if relative.mean > 0.0 { ("dearer", low, high) } else { ("cheaper", high, low) };
    format!("is {} % ({} to {}) {word}", says(relative.mean), says(least), says(most))
}

/// What happens to waiting, if that is clear.
fn waiting(paired: &Paired) -> String {
    let difference = &paired.difference;
    if !difference.excludes_zero() {
        return String::new();
    }
    let word = if difference.mean > 0.0 { "longer" } else { "shorter" };
    format!(", and its p99 of waiting for a node is {} {word}", span(difference.mean.abs()))
}

fn objective_words(comparison: &Comparison, position: usize, objective: &ObjectiveShare) -> String {
    let each: Vec<String> = comparison
        .policies
        .iter()
        .filter_map(|policy| Some((policy, policy.objectives.get(position)?)))
        .map(|(policy, own)| match own.judged {
            0 => format!("{}: not measured", policy.name),
            judged => format!("{} in {} of {} runs", policy.name, own.met, judged),
        })
        .collect();
    format!("{} at most {}: met by {}.", objective.name, limit(objective), each.join(", "))
}

/// How well the cost differences are known, and what it takes to know them better.
fn precision(comparison: &Comparison) -> Option<String> {
    if comparison.policies.len() < 2 {
        return None;
    }
    let have = comparison.about.replications;
    let Some(known) = comparison.cost_precision() else {
        // Without an interval after several replications the first bill is nothing, and the sentence above says so.
        let one = "One replication shows no interval: run more with --replications.";
        return (have < 2).then(|| one.to_owned());
    };
    let target = if known > ENOUGH { ENOUGH } else { known / 2.0 };
    let more = comparison.replications_needed(target).filter(|needed| known > ENOUGH && *needed > have);
    let of_what = format!("of what {} costs", comparison.policies.first()?.name);
    let differences = if comparison.policies.len() == 2 { "The cost difference is" } else { "Cost differences are" };
    let known_words = format!("{differences} known to within \u{b1}{} {of_what}, with 95 % confidence", percent(known));
    Some(match more {
        Some(needed) => format!(
            "{known_words}; about {} would narrow that to \u{b1}{}.",
            format::counted(needed, "replication", "replications"),
            percent(target)
        ),
        None => format!("{known_words}."),
    })
}

fn warnings(comparison: &Comparison, lines: &mut Vec<String>) {
    let warnings = &comparison.warnings;
    if warnings.is_empty() {
        return;
    }
    lines.push(String::new());
    lines.push(format!("{}:", format::counted(warnings.len() as u64, "warning", "warnings")));
    lines.extend(warnings.iter().take(WARNINGS_MAX).map(|warning| format!("  {}", warning.replace('\n', " "))));
    if warnings.len() > WARNINGS_MAX {
        lines.push(format!("  and {} more in the report", counted((warnings.len() - WARNINGS_MAX) as f64)));
    }
}

/// `replications.csv`: one line for each simulation, one column for each figure.
///
/// # Errors
/// Whatever `output` returns.
pub fn replications(comparison: &Comparison, output: &mut dyn std::io::Write) -> std::io::Result<()> {
    let mut writer = csv::Writer::from_writer(output);
    let mut header = vec!["policy".to_owned(), "seed".to_owned()];
    header.extend(FIGURES.iter().map(|figure| figure.name.to_owned()));
    header.push("event_hash".to_owned());
    writer.write_record(&header)?;
    for point in &comparison.points {
        let mut row = vec![point.policy.clone(), point.seed.to_string()];
        row.extend(point.figures.iter().map(|value| value.map_or_else(String::new, |value| value.to_string())));
        row.push(point.event_hash.clone());
        writer.write_record(&row)?;
    }
    writer.flush()
}
