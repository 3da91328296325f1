//! What `recommend` prints.

use super::{aligned_within, known, signed_percent};
use crate::catalog::PriceQuality;
use crate::domain::words::counted;
use crate::recommendation::{
    ALL_FAMILIES, Advice, Alternative, Change, Class, Figures, Kind, LargeLine, LeverResult, LimitKept, LineLever,
    Recommendation, Robustness, ValueChange,
};
use crate::report::columns::folded;
use crate::report::format::{self, IntervalFigure, Measure, money_among, percent};
use crate::statistics::Estimate;

/// Most lines of one change's diff; the JSON has all.
const EDITS: usize = 12;
/// Most levers of a line with the same result in text; the JSON has all.
const LEVERS_OF_LINE: usize = 3;
/// Where paragraphs are wrapped that go nowhere narrower.
const WIDTH: usize = 118;

/// The answer as people read it.
pub fn text(answer: &Recommendation) -> String {
    text_within(answer, None)
}

/// The same, with columns below one another where lines have no more than `width` characters. What goes into a file or onto a
/// command line stays as it is.
pub fn text_within(answer: &Recommendation, width: Option<usize>) -> String {
    let mut lines = Vec::new();
    heading(answer, width, &mut lines);
    large_lines(answer, width, &mut lines);
    changes(answer, width, &mut lines);
    without_spot(answer, width, &mut lines);
    costs(answer, width, &mut lines);
    robustness(&answer.robustness, width, &mut lines);
    commitments(answer, width, &mut lines);
    trust(answer, width, &mut lines);
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// The answer in one sentence.
pub fn sentence(answer: &Recommendation) -> String {
    let saved = || {
        let share = answer.saving().map_or_else(String::new, |saving| known(&saving).text(Measure::Share));
        let count = counted(answer.changes.len() as u64, "change saves", "changes save");
        format!("{count} {share} of the bill")
    };
    match answer.advice {
        Advice::Change => format!("{}: {} per month{}", saved(), monthly(answer), yearly(answer)),
        Advice::TooLittle => format!("no change: {}, but not certain to reach the --worth threshold", saved()),
        Advice::NothingSaves => "no change recommended: nothing tried saves enough to be worth it".to_owned(),
        Advice::NotSure => "no change recommended: the savings found were not confirmed on fresh seeds".to_owned(),
        Advice::BeyondLimits => {
            let broken: Vec<&str> =
                answer.limits.iter().filter(|limit| !limit.kept).map(|limit| limit.name.as_str()).collect();
            let saves = monthly(answer);
            format!("no change recommended: saving {saves} per month would break these limits: {}", broken.join(", "))
        }
    }
}

/// What a month costs less.
fn monthly(answer: &Recommendation) -> String {
    let Some(paired) = &answer.cost_per_month else { return String::new() };
    known(&paired.difference.negated()).text(among_today(answer))
}

/// What a year costs less.
fn yearly(answer: &Recommendation) -> String {
    let Some(saves) = &answer.saves_per_year else { return String::new() };
    let measure = Measure::Money { currency: &answer.currency, largest: saves.mean.abs() };
    format!(", {} per year", known(saves).text(measure))
}

/// Money among what a month costs today.
pub(super) fn among_today(answer: &Recommendation) -> Measure<'_> {
    let today = answer.today.as_ref().and_then(|today| today.cost_per_month);
    Measure::Money { currency: &answer.currency, largest: today.map_or(f64::INFINITY, |today| today.mean) }
}

pub(super) fn money(answer: &Recommendation, amount: f64) -> String {
    let today = answer.today.as_ref().and_then(|today| today.cost_per_month);
    money_among(&answer.currency, amount, today.map_or(amount, |today| today.mean))
}

fn heading(answer: &Recommendation, width: Option<usize>, lines: &mut Vec<String>) {
    lines.extend(folded(&format!("{}: {}", answer.scenario, sentence(answer)), width));
    let effort = &answer.effort;
    let rests_on = format!(
        "policy {} in {}; {} of {} settings, first seed {}; confirmed on {} not used in the search",
        answer.policy,
        answer.region,
        counted(effort.used, "simulation", "simulations"),
        effort.settings,
        effort.first_seed,
        counted(effort.confirmed_with, "fresh seed", "fresh seeds"),
    );
    lines.extend(folded(&rests_on, width));
    lines.push(String::new());
}

fn large_lines(answer: &Recommendation, width: Option<usize>, lines: &mut Vec<String>) {
    if answer.lines.is_empty() {
        return;
    }
    lines.push("largest lines of today's bill:".to_owned());
    let rows = large_line_rows(answer);
    let columns: Vec<Vec<String>> =
        rows.iter().map(|(cells, _)| vec![format!("  {}", cells[0]), cells[1].clone(), cells[2].clone()]).collect();
    let heads = aligned_within(&columns, 1, width);
    if heads.len() == rows.len() {
        for (head, (_, result)) in heads.iter().zip(&rows) {
            lines.extend(folded(head, width));
            lines.extend(wrapped(&format!("    {result}"), "      ", width));
        }
    } else {
        for (cells, result) in &rows {
            lines.extend(folded(&format!("  {}: {result}", cells.join(", ")), width));
        }
    }
    lines.push(String::new());
}

/// The cells of each of the largest lines (name, cost per month, share), and the results of its levers.
pub(super) fn large_line_rows(answer: &Recommendation) -> Vec<([String; 3], String)> {
    let row = |line: &LargeLine| {
        let cells = [line.name.clone(), format!("{} per month", money(answer, line.per_month)), percent(line.share)];
        (cells, line_results(answer, line))
    };
    answer.lines.iter().map(row).collect()
}

/// The results of a line's levers in words, and the action by hand if none is recommended.
fn line_results(answer: &Recommendation, line: &LargeLine) -> String {
    let saving = |lever: &LineLever| money(answer, lever.saves_per_month.unwrap_or(0.0));
    let of_result = |result: LeverResult| line.levers.iter().filter(move |lever| lever.result == result);
    let mut parts: Vec<String> = Vec::new();
    for (result, words) in [
        (LeverResult::Recommended, "recommended, saves"),
        (LeverResult::NotRecommended, "not recommended, saves alone"),
        (LeverResult::BeyondLimits, "breaks a constraint, saves alone"),
    ] {
        let first = of_result(result).take(LEVERS_OF_LINE);
        parts.extend(first.map(|lever| format!("{}: {words} {}", lever.lever, saving(lever))));
    }
    for (result, words) in
        [(LeverResult::SavesNothing, "no saving"), (LeverResult::NotSimulated, "not simulated alone")]
    {
        let names: Vec<&str> = of_result(result).map(|lever| lever.lever.as_str()).collect();
        if !names.is_empty() {
            parts.push(format!("{words}: {}", names.join(", ")));
        }
    }
    let excluded = of_result(LeverResult::Excluded).count() as u64;
    if excluded > 0 {
        parts.push(format!("{} excluded by options", counted(excluded, "lever", "levers")));
    }
    if parts.is_empty() {
        parts.push("no lever".to_owned());
    }
    if of_result(LeverResult::Recommended).next().is_none() {
        parts.push(format!("by hand: {}", line.by_hand));
    }
    parts.join("; ")
}

fn changes(answer: &Recommendation, width: Option<usize>, lines: &mut Vec<String>) {
    if answer.advice == Advice::BeyondLimits {
        let beyond = |change: &Change| {
            format!("the change would be: {}: {}, instead of {}", change.subject, change.to, change.from)
        };
        lines.extend(answer.changes.iter().flat_map(|change| folded(&beyond(change), width)));
        lines.push(String::new());
    }
    if !answer.is_change() {
        return;
    }
    numbered(answer, &answer.changes, width, lines);
}

/// Changes by class, each with its heading: settings, then commitments, which are contracts.
pub(super) fn classes(changes: &[Change]) -> [(&'static str, Class, Vec<&Change>); 2] {
    [("Settings", Class::Setting), ("Commitments", Class::Commitment)]
        .map(|(heading, class)| (heading, class, changes.iter().filter(|change| change.class == class).collect()))
}

/// Changes under the headings of their classes.
fn numbered(answer: &Recommendation, changes: &[Change], width: Option<usize>, lines: &mut Vec<String>) {
    let groups = classes(changes);
    let is_mixed = groups.iter().all(|(.., group)| !group.is_empty());
    let mut number = 1;
    for (heading, _, group) in groups {
        lines.extend((is_mixed).then(|| heading.to_owned()));
        for item in group {
            change(answer, (number, item), width, lines);
            number += 1;
        }
    }
}

/// The answer without Spot in one sentence.
pub(super) fn sentence_without_spot(answer: &Recommendation, second: &Alternative) -> String {
    let saves = |estimate: &Option<Estimate>, largest: f64| {
        let measure = Measure::Money { currency: &answer.currency, largest };
        estimate.as_ref().map_or_else(String::new, |estimate| known(estimate).text(measure))
    };
    let found = match second.advice {
        Advice::Change => {
            let share = second.cost_per_month.as_ref().and_then(|cost| cost.relative.as_ref());
            let share = share.map_or_else(String::new, |share| known(&share.negated()).text(Measure::Share));
            let month = second.saves_per_month.map_or(0.0, |save| save.mean.abs());
            let (month, year) = (saves(&second.saves_per_month, month), saves(&second.saves_per_year, month * 12.0));
            format!("Without Spot: {share} of the bill, {month} per month, {year} per year")
        }
        Advice::BeyondLimits => "Without Spot: every change that saves breaks a limit".to_owned(),
        _ => "Without Spot: nothing tried is certain to save enough".to_owned(),
    };
    let seeds = counted(second.effort.confirmed_with, "fresh seed", "fresh seeds");
    let further = counted(second.effort.used, "further simulation", "further simulations");
    format!("{found} ({further}, confirmed on {seeds} not used in the search)")
}

/// The answer without Spot, where Spot saves most.
fn without_spot(answer: &Recommendation, width: Option<usize>, lines: &mut Vec<String>) {
    let Some(second) = &answer.without_spot else { return };
    lines.extend(folded(&sentence_without_spot(answer, second), width));
    if second.advice == Advice::Change {
        numbered(answer, &second.changes, width, lines);
    } else {
        lines.push(String::new());
    }
}

fn change(answer: &Recommendation, (number, change): (usize, &Change), width: Option<usize>, lines: &mut Vec<String>) {
    let saves = known(&change.saves_per_month).text(among_today(answer));
    lines.extend(folded(&format!("{number}. {}: {}, instead of {}", change.subject, change.to, change.from), width));
    lines.extend(folded(&format!("   saves {saves} per month, {}", assumed_changes(answer, change)), width));
    let mut object = "";
    for edit in change.edits.iter().take(EDITS) {
        if edit.object != object {
            lines.extend(folded(&format!("   {}", edit.object), width));
            object = &edit.object;
        }
        lines.extend(diff(edit).into_iter().map(|line| format!("     {line}")));
    }
    if let Some(risk) = &change.risk {
        let texts =
            [("availability", &risk.availability), ("reversibility", &risk.reversibility), ("needs", &risk.needs)];
        let line =
            |(name, text): &(&str, &std::borrow::Cow<'static, str>)| folded(&format!("   {name}: {text}"), width);
        lines.extend(texts.iter().flat_map(line));
    }
    if change.edits.len() > EDITS {
        let more = counted((change.edits.len() - EDITS) as u64, "value", "values");
        lines.extend(folded(&format!("   + {more} more (see --format json)"), width));
    }
    lines.push(String::new());
}

/// The other changes that the saving of a change assumes.
pub(super) fn assumed_changes(answer: &Recommendation, change: &Change) -> &'static str {
    let bound = Kind::Commitments.as_str();
    if change.lever != bound && answer.changes.iter().any(|other| other.lever == bound) {
        return "with all other changes except the commitment, which is sized for the result";
    }
    "with all other changes made"
}

/// A value before and after, as a diff shows it.
pub(super) fn diff(edit: &ValueChange) -> Vec<String> {
    let line = |sign: char, value: &String| format!("{sign} {}: {value}", edit.path);
    edit.before.iter().map(|edit| line('-', edit)).chain(edit.after.iter().map(|edit| line('+', edit))).collect()
}

fn costs(answer: &Recommendation, width: Option<usize>, lines: &mut Vec<String>) {
    let rows = comparison(answer);
    if rows.is_empty() {
        return;
    }
    let tried = if answer.is_change() { "recommended" } else { "best tried" };
    let head = ["", "today", tried].map(str::to_owned).to_vec();
    let rows = rows.into_iter().map(|(name, before, after)| vec![name, before, after]);
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
    lines.extend(aligned_within(&rows, 1, width).iter().flat_map(|line| folded(line, width)));
    lines.push(String::new());
    let count = answer.effort.confirmed_with;
    lines.extend(
        answer.limits.iter().filter_map(|this_limit| limit(this_limit, count)).flat_map(|line| folded(&line, width)),
    );
    lines.push(String::new());
}

/// A figure: its name, where it stands, and what it is measured in.
type Row<'s> = (&'s str, fn(&Figures) -> Option<Estimate>, Measure<'s>);

/// What each figure is today and as it would be.
pub(super) fn comparison(answer: &Recommendation) -> Vec<(String, String, String)> {
    let (Some(today), Some(recommended)) = (&answer.today, &answer.recommended) else { return Vec::new() };
    let rows: [Row<'_>; 6] = [
        ("cost per month", |item| item.cost_per_month, among_today(answer)),
        ("pod wait for a node, p99", |item| item.pending_p99, Measure::Seconds),
        ("missing replicas (pod-minutes)", |figures| figures.unavailable_pod_minutes, Measure::Count),
        ("pods evicted", |item| item.evictions, Measure::Count),
        ("Spot interruptions", |figures| figures.interruptions, Measure::Count),
        ("response time, p99", |item| item.request_p99, Measure::Seconds),
    ];
    let row = |(name, of, measure): Row<'_>| {
        let (before, after) = (of(today)?, of(recommended)?);
        // Counts cannot be less than none.
        let cell = |estimate: &Estimate| {
            let item = known(estimate);
            IntervalFigure { ends: item.ends || item.low.is_some_and(|low| low <= 0.0), ..item }.text(measure)
        };
        Some((name.to_owned(), cell(&before), cell(&after)))
    };
    rows.into_iter().filter_map(row).collect()
}

/// How an objective is kept; nothing for what is only not to be worse than today.
fn limit(limit_kept: &LimitKept, count: u64) -> Option<String> {
    let (before, after) = limit_kept.met?;
    let word = if limit_kept.kept { "ok" } else { "VIOLATED" };
    Some(format!("objective {}: met in {after} of {count} runs ({before} today): {word}", limit_kept.name))
}

fn robustness(all: &[Robustness], width: Option<usize>, lines: &mut Vec<String>) {
    if all.is_empty() {
        return;
    }
    lines.push("stress tests:".to_owned());
    for robustness in all {
        let cost =
            robustness.relative.as_ref().map_or_else(|| "-".to_owned(), |relative| signed_percent(relative.mean));
        let verdict = match &robustness.why {
            None => "holds".to_owned(),
            Some(why) => format!("no longer holds: {why}"),
        };
        let mut line = format!("  {:<52}{cost:>9}  {verdict}", robustness.when);
        // Folded, space between columns would only break it earlier.
        if width.is_some_and(|width| line.chars().count() > width) {
            line = format!("  {}: {cost}, {verdict}", robustness.when);
        }
        lines.extend(folded(&line, width));
    }
    lines.push(String::new());
}

fn commitments(answer: &Recommendation, width: Option<usize>, lines: &mut Vec<String>) {
    for commitment in &answer.commitments {
        let none = commitment.curve.first().map_or(0.0, |point| point.cost_per_month);
        let best = commitment.best_cost_per_month;
        if commitment.best_per_hour < 0.01 || best >= none {
            continue;
        }
        let plan = if commitment.family == ALL_FAMILIES { "Compute Savings Plan" } else { "commitment" };
        let family = format!(
            "{} On-Demand: {} per month; with a 1-year, no-upfront {plan} of {}/h ({:.1}% off, {}): about {}",
            commitment.family,
            money(answer, none),
            format::money(&answer.currency, commitment.best_per_hour),
            commitment.discount * 100.0,
            commitment.discount_quality,
            money(answer, best),
        );
        lines.extend(folded(&family, width));
        if let Some(longer) = commitment.three_years.as_ref().filter(|longer| longer.best_cost_per_month < best) {
            let longer = format!(
                "  needs a three-year commitment, paid upfront: {}/h ({:.1}% off, {}): about {}",
                format::money(&answer.currency, longer.best_per_hour),
                longer.discount * 100.0,
                longer.discount_quality,
                money(answer, longer.best_cost_per_month),
            );
            lines.extend(folded(&longer, width));
        }
    }
    if answer.commitments.iter().any(|curve| curve.discount_quality == PriceQuality::Derived.as_str()) {
        let derived =
            "  (a derived discount follows from the all-upfront price; true no-upfront prices are up to 1.5% higher)";
        lines.extend(folded(derived, width));
    }
    if !answer.commitments.is_empty() {
        let holds = "  (commitments run for a year; these savings assume the year looks like the simulated period)";
        lines.extend(folded(holds, width));
        lines.push(String::new());
    }
}

fn trust(answer: &Recommendation, width: Option<usize>, lines: &mut Vec<String>) {
    lines.push(if answer.levers.is_empty() {
        "no lever applies to this scenario".to_owned()
    } else {
        "levers tried:".to_owned()
    });
    let mut kinds: Vec<&str> = Vec::new();
    for lever in &answer.levers {
        if !kinds.contains(&lever.lever.as_str()) {
            kinds.push(&lever.lever);
        }
    }
    for kind in kinds {
        let subjects: Vec<&str> =
            answer.levers.iter().filter(|lever| lever.lever == kind).map(|lever| lever.subject.as_str()).collect();
        let line =
            if subjects == [kind] { format!("  {kind}") } else { format!("  {kind} of {}", subjects.join(", ")) };
        lines.extend(wrapped(&line, "    ", width));
    }
    excluded(answer, width, lines);
    lines.push(format!(
        "reproduce this result with: --simulations {} --seed {}{}{}{}",
        answer.effort.simulations,
        answer.effort.first_seed,
        set_before(&answer.set),
        if answer.options.is_empty() { "" } else { " " },
        answer.options
    ));
    if answer.effort.spent {
        let further = answer.effort.simulations * 2;
        let ended = format!("search stopped at the simulation limit; use --simulations {further} to search further");
        lines.extend(folded(&ended, width));
    }
    for warning in &answer.warnings {
        lines.extend(wrapped(&format!("warning: {warning}"), "", width));
    }
}

/// What was not tried because a NodePool or a flag excludes it.
fn excluded(answer: &Recommendation, width: Option<usize>, lines: &mut Vec<String>) {
    if answer.excluded.is_empty() {
        return;
    }
    lines.push("excluded:".to_owned());
    for exclusion in &answer.excluded {
        let line = format!(
            "  {} of {}: {}: {}",
            exclusion.lever,
            exclusion.subject,
            exclusion.excluded.join(", "),
            exclusion.reason
        );
        lines.extend(wrapped(&line, "    ", width));
    }
}

/// A paragraph, wrapped at [`WIDTH`], with `indent` from its second line on; where lines have less room, folded as all are.
fn wrapped(line: &str, indent: &str, width: Option<usize>) -> Vec<String> {
    if width.is_some_and(|width| width < WIDTH) {
        return folded(line, width);
    }
    let options = textwrap::Options::new(WIDTH).subsequent_indent(indent);
    textwrap::wrap(line, options).into_iter().map(String::from).collect()
}

/// The options by which a scenario was changed first, each after a space: how long to simulate, and what was set.
fn set_before(set: &[String]) -> String {
    let option = |text: &String| match text.strip_prefix("duration=") {
        Some(duration) => format!(" --duration {duration}"),
        None => format!(" --set '{}'", text.replace('\'', "'\\''")),
    };
    set.iter().map(option).collect()
}

#[cfg(test)]
mod tests {
    use super::set_before;

    #[test]
    fn what_was_set_first_is_set_again() {
        let set = ["NodePool[default].spec.weight=5", "duration=1h30m"].map(str::to_owned);
        assert_eq!(set_before(&set), " --set 'NodePool[default].spec.weight=5' --duration 1h30m");
        assert_eq!(set_before(&[]), "");
    }
}
