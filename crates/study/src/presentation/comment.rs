//! What a change costs, as a comment on a pull request: one section per scenario, short enough to be read.

use std::collections::{BTreeMap, BTreeSet};

use super::{Standing, known_difference, measure_of_difference, signed_percent, standing, value, with_sign};
use crate::comparison::{Comparison, FigureResult, ObjectiveShare};
use crate::figures::{Figure, named};
use crate::points::Point;
use crate::report::format::{money_in_short, span};
use crate::report::markdown::{cell, code};
use crate::statistics::Paired;

/// Lines of a comment.
const LINES: usize = 25;
/// A difference below this share is none, even if it is certain.
const SMALL: f64 = 0.001;
/// A pool or group is named from this share of all nodes' cost on.
const SHARE_OF_COST: f64 = 0.01;
/// A workload is named if it has no Ready replica for this many more seconds.
const AT_ZERO: f64 = 60.0;
/// Names in one sentence.
const NAMES: usize = 4;
/// Hours of a month, as prices per month count them.
const MONTH: f64 = 730.0;
const COST: &str = "cost_per_month";
/// What a comment shows of each scenario, where it changes.
const SHOWN: [&str; 10] = [
    COST,
    "pending_p99",
    "unavailable_pod_minutes",
    "request_p99",
    "requests_lost",
    "evictions",
    "interruptions",
    "jobs_undone",
    "messages_undone",
    "nodes_mean",
];

/// What there is to say of one scenario.
pub enum Outcome {
    /// Both sides ran; the first policy is the side without the change.
    Compared(Box<Comparison>),
    /// One side is missing or cannot run, in a few words.
    Without(String),
}

/// The comment on scenarios by their paths: at most 25 lines of Markdown.
pub fn comment(outcomes: &[(String, Outcome)]) -> String {
    let sections: Vec<Section<'_>> = outcomes.iter().filter_map(Section::new).collect();
    let (changed, same): (Vec<&Section<'_>>, Vec<&Section<'_>>) =
        sections.iter().partition(|section| section.changes());
    let failed = failures(outcomes);
    let mut lines = vec!["### Cost and waits of this change".to_owned(), String::new()];
    let room = LINES.saturating_sub(lines.len() + failed.len() + 4);
    let rest = shown_sections(&changed, room, &mut lines);
    let mut items = Vec::new();
    if !rest.is_empty() {
        let rest: Vec<String> = rest.iter().map(|section| section.headline(false)).collect();
        items.push(format!("- further scenarios that change: {}", rest.join("; ")));
    }
    match (changed.is_empty(), same.is_empty(), outcomes.is_empty()) {
        (_, _, true) => items.push("No scenario to compare.".to_owned()),
        (true, false, _) if failed.is_empty() => {
            items.push("No significant change in cost, waits, or churn.".to_owned())
        }
        (_, false, _) => {
            let names: Vec<String> = same.iter().map(|section| code(section.path)).collect();
            items.push(format!("- no significant change: {}", names.join(", ")));
        }
        _ => {}
    }
    items.extend(failed);
    lines.extend(items);
    if !sections.is_empty() {
        if lines.last().is_some_and(|line| !line.is_empty()) {
            lines.push(String::new());
        }
        lines.push(footer(&sections));
    }
    lines.join("\n") + "\n"
}

/// Appends the sections that have room, and returns those that have none.
fn shown_sections<'s, 'c>(changed: &[&'s Section<'c>], room: usize, lines: &mut Vec<String>) -> Vec<&'s Section<'c>> {
    let mut left = room;
    let mut rest = changed.iter();
    for section in rest.by_ref() {
        let part = section.lines();
        if part.len() + 1 > left {
            return std::iter::once(*section).chain(rest.copied()).collect();
        }
        left -= part.len() + 1;
        lines.extend(part);
        lines.push(String::new());
    }
    Vec::new()
}

/// The scenarios without a comparison: three of them, and how many more.
fn failures(outcomes: &[(String, Outcome)]) -> Vec<String> {
    let without = outcomes.iter().filter_map(|(path, outcome)| match outcome {
        Outcome::Without(why) => Some(format!("- {}: {}", code(path), cell(why))),
        Outcome::Compared(_) => None,
    });
    let mut lines: Vec<String> = without.collect();
    if lines.len() > 3 {
        let more = lines.split_off(3).len();
        lines.push(format!("- {more} more could not be compared"));
    }
    lines
}

fn footer(sections: &[Section<'_>]) -> String {
    let runs = sections.iter().map(|section| section.answer.about.replications).collect::<BTreeSet<_>>();
    let seeds = match (runs.first(), runs.last()) {
        (Some(1), Some(1)) => "one seed, so without intervals".to_owned(),
        (Some(least), Some(most)) if least == most => format!("{least} seeds"),
        (Some(least), Some(most)) => format!("{least} to {most} seeds"),
        _ => String::new(),
    };
    let (version, date) = (env!("CARGO_PKG_VERSION"), &sections[0].answer.about.price_date);
    format!("<sub>nodecast {version}: the same {seeds} on both sides, 95% confidence, prices of {date}</sub>")
}

/// A scenario that ran on both sides.
struct Section<'c> {
    path: &'c str,
    answer: &'c Comparison,
    moved: Vec<Change<'c>>,
    cost: Option<Change<'c>>,
    objectives: Vec<String>,
}

impl<'c> Section<'c> {
    fn new((path, outcome): &'c (String, Outcome)) -> Option<Self> {
        let Outcome::Compared(answer) = outcome else { return None };
        let changes = SHOWN.iter().filter_map(|name| Change::new(answer, name)).collect::<Vec<_>>();
        let (costs, others): (Vec<_>, Vec<_>) = changes.into_iter().partition(|change| change.figure.name == COST);
        let moved = others.into_iter().filter(Change::is_significant).collect();
        Some(Self { path, answer, moved, cost: costs.into_iter().next(), objectives: objectives(answer) })
    }

    fn cost_moves(&self) -> bool {
        self.cost.as_ref().is_some_and(Change::is_significant)
    }

    fn changes(&self) -> bool {
        self.cost_moves() || !self.moved.is_empty() || !self.objectives.is_empty()
    }

    fn headline(&self, is_bold: bool) -> String {
        let cost = self.cost.as_ref().filter(|cost| cost.is_significant());
        let by = cost.map_or_else(|| "cost does not change significantly".to_owned(), Change::per_month);
        let by = if is_bold { format!("**{by}**") } else { by };
        format!("{by}, {}", code(self.path))
    }

    fn lines(&self) -> Vec<String> {
        let mut lines = vec![self.headline(true), String::new()];
        let names: Vec<&str> = self.answer.policies.iter().map(|policy| policy.name.as_str()).collect();
        lines.extend([format!("| | {} | change |", names.join(" | ")), "| --- | --: | --: | --- |".to_owned()]);
        lines.extend(self.cost.iter().chain(&self.moved).map(Change::row));
        lines.push(String::new());
        lines.extend(self.objectives.iter().map(|line| format!("- {line}")));
        let names = self.affected();
        if !names.is_empty() {
            let more = if names.len() > NAMES { format!(", and {} more", names.len() - NAMES) } else { String::new() };
            lines.push(format!("- affected: {}{more}", names[..names.len().min(NAMES)].join(", ")));
        }
        // An empty line ends the section.
        while lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
        lines
    }

    /// NodePools and node groups whose bill moves, if the cost does, and workloads that lack a Ready replica for longer.
    fn affected(&self) -> Vec<String> {
        let hours = self.answer.about.duration_seconds / 3600.0;
        let costs = self.means(|point| &point.cost_by_origin);
        let total: f64 = costs[0].values().sum();
        let mut names = Vec::new();
        for (name, by) in differences(&costs) {
            if self.cost_moves() && total > 0.0 && by.abs() >= total * SHARE_OF_COST {
                let amount = money_in_short(&self.answer.about.currency, by.abs() / hours * MONTH);
                names.push(format!("nodes of {} {}/month", code(&name), with_sign(by, amount)));
            }
        }
        let longer =
            differences(&self.means(|point| &point.at_zero_seconds)).into_iter().filter(|(_, by)| *by >= AT_ZERO);
        names.extend(longer.map(|(name, by)| format!("{} {} longer without a Ready replica", code(&name), span(by))));
        names
    }

    /// Means over the seeds of amounts by name, before and after.
    fn means(&self, amounts: impl Fn(&Point) -> &BTreeMap<String, f64>) -> [BTreeMap<String, f64>; 2] {
        let count = self.answer.about.replications.max(1) as f64;
        let mut sides = [BTreeMap::new(), BTreeMap::new()];
        for point in &self.answer.points {
            let is_first = self.answer.policies.first().is_some_and(|first| first.name == point.policy);
            for (name, amount) in amounts(point) {
                *sides[usize::from(!is_first)].entry(name.clone()).or_insert(0.0) += amount / count;
            }
        }
        sides
    }
}

/// By how much each amount changes, by name.
fn differences([before, after]: &[BTreeMap<String, f64>; 2]) -> Vec<(String, f64)> {
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let amount = |side: &BTreeMap<String, f64>, name| side.get(name).copied().unwrap_or(0.0);
    names.into_iter().map(|name| (name.clone(), amount(after, name) - amount(before, name))).collect()
}

/// Objectives that are met in fewer or in more runs than before.
fn objectives(answer: &Comparison) -> Vec<String> {
    let [before, after] = answer.policies.as_slice() else { return Vec::new() };
    let line = |was: &ObjectiveShare| {
        let now = after.objectives.iter().find(|other| other.name == was.name)?;
        let (now_share, was_share) = (now.met * was.judged, was.met * now.judged);
        let worse = if now_share < was_share { " **worse**" } else { "" };
        let name = cell(&was.name);
        (now_share != was_share).then(|| {
            let (runs, [old, new]) = (now.judged, [before, after].map(|side| answer.wording.under(&side.name)));
            format!("objective {name}: met in {} of {runs} runs {new}, in {} {old}{worse}", now.met, was.met)
        })
    };
    before.objectives.iter().filter_map(line).collect()
}

/// One metric of both sides.
struct Change<'c> {
    figure: &'static Figure,
    currency: &'c str,
    before: f64,
    after: f64,
    paired: &'c Paired,
}

impl<'c> Change<'c> {
    /// `None` where a side has nothing to measure.
    fn new(answer: &'c Comparison, name: &str) -> Option<Self> {
        let figure = named(name)?;
        let [was, now]: [&FigureResult; 2] = [answer.figure(0, name)?, answer.figure(1, name)?];
        let (before, after) = (was.mean?.centre(), now.mean?.centre());
        Some(Self { figure, currency: &answer.about.currency, before, after, paired: now.against_first.as_ref()? })
    }

    /// Whether the seeds agree, and it is more than a thousandth.
    fn is_significant(&self) -> bool {
        let is_large = self.paired.relative.is_none_or(|relative| relative.centre().abs() >= SMALL);
        let standing = standing(self.figure, &self.paired.difference);
        is_large && !matches!(standing, Standing::Same | Standing::Unsure)
    }

    fn share(&self) -> String {
        self.paired
            .relative
            .as_ref()
            .map_or_else(String::new, |relative| format!(" ({})", signed_percent(relative.centre())))
    }

    /// `+$1,200 a month (+12 %)`.
    fn per_month(&self) -> String {
        let by = self.paired.difference.centre();
        format!("{} a month{}", with_sign(by, money_in_short(self.currency, by.abs())), self.share())
    }

    fn row(&self) -> String {
        let amount = |of| value(self.figure, self.currency, of);
        let verdict = if self.is_significant() {
            let largest = self.before.abs().max(self.after.abs());
            let measure = measure_of_difference(self.figure, self.currency, largest);
            let by = known_difference(&self.paired.difference).text(measure);
            let word = match standing(self.figure, &self.paired.difference) {
                Standing::Better => " better",
                Standing::Worse => " **worse**",
                Standing::Other | Standing::Unsure | Standing::Same => "",
            };
            format!("{by}{}{word}", self.share())
        } else {
            "no significant change".to_owned()
        };
        format!("| {} | {} | {} | {verdict} |", self.figure.label, amount(self.before), amount(self.after))
    }
}
