//! The table that `compare` prints.

use super::verdict::verdict;
use super::{
    aligned_within, compared, interval, known, known_difference, measure, measure_of_difference, seeds, warnings,
};
use crate::comparison::{About, Comparison, DRAWS_PRICE_ERRORS, ObjectiveRow, ObjectiveShare};
use crate::figures::{FIGURES, Figure, find, for_people};
use crate::report::columns::printed;
use crate::report::figure::Figure as Plain;
use crate::report::format::{self, IntervalFigure, Measure, span};
use crate::report::table::Rows;
use crate::statistics::{Estimate, Paired};

/// Figures of the table; the page and the JSON have all.
const SHOWN: [&str; 25] = [
    "unavailable_pod_minutes",
    "workloads_at_zero",
    "at_zero",
    "at_max",
    "cost",
    "cost_per_month",
    "cost_estimated",
    "pending_mean",
    "pending_p99",
    "pods_waited",
    "pods_pending",
    "request_p99",
    "requests_unanswered",
    "requests_lost",
    "message_wait",
    "messages_undone",
    "jobs_undone",
    "nodes_mean",
    "evictions",
    "interruptions",
    "upgrades_failed",
    "upgrade_time",
    "upgrade_extra_nodes",
    "upgrade_extra_cost",
    "upgrade_missing",
];
/// What stands for a figure over the replications.
pub(super) const LEVEL: &str = "mean (waits: median)";

/// The table of `comparison`.
pub fn table(comparison: &Comparison) -> String {
    table_within(comparison, None, true)
}

/// The table of `comparison` in lines of at most `width` characters. Policies that do not fit are left out, unless it is `wide`: then columns
/// stand below one another.
pub fn table_within(comparison: &Comparison, width: Option<usize>, wide: bool) -> String {
    let mut lines: Vec<String> = verdict(comparison);
    if let Some(first) = lines.first_mut() {
        *first = format!("{}: {first}", comparison.about.scenario);
    }
    let assumptions = comparison.about.assumptions.iter();
    lines.extend(assumptions.filter(|assumption| *assumption == DRAWS_PRICE_ERRORS).cloned());
    lines.push(String::new());
    heading(comparison, &mut lines);
    let is_pair = comparison.policies.len() == 2;
    let mut tables = match is_pair {
        true => vec![pair(comparison), objectives(comparison)],
        false => vec![means(comparison), differences(comparison), objectives(comparison)],
    };
    let dropped = if is_pair || wide { 0 } else { drop_policies(comparison, &mut tables, width) };
    for (number, rows) in tables.iter().filter(|rows| !rows.is_empty()).enumerate() {
        lines.extend((number > 0).then(String::new));
        lines.extend(aligned_within(rows, 1, width));
    }
    if dropped > 0 {
        let policies = format::counted(dropped, "policy", "policies");
        lines.extend([String::new(), format!("{policies} not shown; --wide shows all")]);
    }
    warnings(&comparison.warnings, &mut lines);
    printed(&lines, width)
}

/// Takes the columns of policies out of `tables`, the most expensive first, until lines have no more than `width` characters; returns the number
/// of policies taken out. The first policy and the cheapest other one stay.
fn drop_policies(comparison: &Comparison, tables: &mut [Vec<Vec<String>>], width: Option<usize>) -> u64 {
    let Some(width) = width else { return 0 };
    let mut names: Vec<&str> = comparison.policies.iter().map(|policy| policy.name.as_str()).collect();
    let position = find(comparison.cost_figure()).map(|(position, _)| position);
    let cost = |name: &str| {
        let policy = comparison.policies.iter().find(|policy| policy.name == name)?;
        policy.figures.get(position?)?.mean.map(|mean| mean.mean)
    };
    let fits = |rows: &[Vec<String>]| aligned_within(rows, 1, None).iter().all(|line| line.chars().count() <= width);
    let before = names.len();
    while names.len() > 2 && !tables.iter().all(|rows| fits(rows)) {
        let others = names.iter().enumerate().skip(1);
        let dear = others.max_by(|(_, a), (_, b)| cost(a).unwrap_or(f64::MAX).total_cmp(&cost(b).unwrap_or(f64::MAX)));
        let Some((at, _)) = dear else { break };
        names.remove(at);
        for rows in tables.iter_mut().filter(|rows| !rows.is_empty()) {
            // The table of differences lacks the first policy.
            let labels = rows[0].len() - names.len() - 1;
            rows.iter_mut().for_each(|row| drop(row.remove(at + labels)));
        }
    }
    (before - names.len()) as u64
}

fn heading(comparison: &Comparison, lines: &mut Vec<String>) {
    let about = &comparison.about;
    let replications = format::counted(about.replications, "replication", "replications");
    let intervals = if about.replications > 1 { "; intervals have 95% confidence" } else { "" };
    lines.push(format!("{}, {replications}, {}{intervals}", compared(comparison), seeds(comparison)));
    lines.push(format!(
        "{} from {} in {}, prices of {}",
        durations(about),
        format::instant_for_people(&about.start),
        about.region,
        about.price_date
    ));
    lines.extend(format::warm_up(about.warm_up_seconds).map(|note| note.replace("; ", ";\n  ")));
    if about.replications < about.replications_planned {
        lines.push(format!("stopped early ({} replications planned)", about.replications_planned));
    }
    lines.push(String::new());
}

/// How long the runs are, those of the second scenario too where they are not as long.
pub(super) fn durations(about: &About) -> String {
    let first = span(about.duration_seconds);
    about.other_duration_seconds.map_or_else(|| first.clone(), |other| format!("{first} and {}", span(other)))
}

/// The figures shown that any policy has a value for; that no Spot node was interrupted is worth a line.
fn shown(comparison: &Comparison) -> Vec<(usize, &'static Figure)> {
    let spot = comparison.points.iter().any(|point| point.spot);
    let any = |position: usize| {
        comparison.policies.iter().any(|policy| policy.figures[position].mean.is_some_and(|mean| mean.mean.abs() > 0.0))
    };
    let worth = |position: usize, figure: &Figure| any(position) || (spot && figure.name == "interruptions");
    let chosen = for_people().filter(|(_, figure)| SHOWN.contains(&figure.name));
    chosen.filter(|(position, figure)| worth(*position, figure)).collect()
}

/// One line for each figure, one column for each policy: its level, and half the width of its interval.
fn means(comparison: &Comparison) -> Vec<Vec<String>> {
    let currency = &comparison.about.currency;
    let mut rows = vec![vec![LEVEL.to_owned()]];
    rows[0].extend(comparison.policies.iter().map(|policy| policy.name.clone()));
    for (position, figure) in shown(comparison) {
        let mut row = vec![figure.label.to_owned()];
        let means: Vec<_> = comparison.policies.iter().map(|policy| policy.figures[position].mean).collect();
        row.extend(mean_cells(figure, currency, &means));
        rows.push(row);
    }
    rows
}

/// The means of two policies, and the change from the first to the second.
fn pair(comparison: &Comparison) -> Vec<Vec<String>> {
    let mut rows = means(comparison);
    let changes = differences(comparison);
    rows[0].push("change".to_owned());
    for row in rows.iter_mut().skip(1) {
        let change = changes.iter().find(|change| change[0] == row[0]).and_then(|change| change.get(1));
        row.push(change.cloned().unwrap_or_default());
    }
    rows
}

/// Levels of one figure, rounded alike, each with half the width of its interval; the ends of the interval where one is what the figure
/// cannot go beyond, or reaches much further on one side.
pub(super) fn mean_cells(figure: &Figure, currency: &str, means: &[Option<Estimate>]) -> Vec<String> {
    let (least, most) = figure.unit.range();
    let level = |mean: &Estimate| {
        let bounded = mean.low.is_some_and(|low| low <= least) || mean.high.is_some_and(|high| high >= most);
        let item = known(mean);
        IntervalFigure { ends: item.ends || bounded, ..item }
    };
    cells(means.iter().map(|mean| mean.as_ref().map(level)).collect(), |largest| measure(figure, currency, largest))
}

/// Figures of a row or a column, rounded alike; a dash where there is none. `measure` is that of figures of which the largest is known.
fn cells<'c>(all: Vec<Option<IntervalFigure>>, measure: impl Fn(f64) -> Measure<'c>) -> Vec<String> {
    let largest = all.iter().flatten().map(|known| known.mean.abs()).fold(0.0, f64::max);
    format::column(&all, measure(largest))
        .into_iter()
        .map(|cell| cell.unwrap_or_else(|| "\u{2013}".to_owned()))
        .collect()
}

/// One line for each figure, one column for each policy but the first: the difference and its interval; none for one policy.
fn differences(comparison: &Comparison) -> Vec<Vec<String>> {
    let Some((first, others)) = comparison.policies.split_first().filter(|(_, others)| !others.is_empty()) else {
        return Vec::new();
    };
    let mut rows = vec![vec![format!("change from {}", first.name)]];
    rows[0].extend(others.iter().map(|policy| policy.name.clone()));
    for (position, figure) in shown(comparison).into_iter().filter(|(_, figure)| is_difference(comparison, figure)) {
        let mut row = vec![figure.label.to_owned()];
        let paired: Vec<_> = others.iter().map(|policy| policy.figures[position].against_first.as_ref()).collect();
        row.extend(difference_cells(figure, &comparison.about.currency, &paired));
        rows.push(row);
    }
    rows
}

/// Whether a difference of this figure says anything: what runs of two lengths cost does not.
pub(super) fn is_difference(comparison: &Comparison, figure: &Figure) -> bool {
    comparison.cost_figure() == "cost" || !matches!(figure.name, "cost" | "cost_idle")
}

/// Differences of one figure, rounded alike: costs as shares, the rest in their own unit. One that may be zero is said by the ends of
/// its interval alone.
pub(super) fn difference_cells(figure: &Figure, currency: &str, all: &[Option<&Paired>]) -> Vec<String> {
    let is_share =
        figure.unit == crate::figures::Unit::Money && all.iter().flatten().all(|paired| paired.relative.is_some());
    let known = |paired: &&Paired| {
        let relative =
            if is_share { paired.relative.as_ref().unwrap_or(&paired.difference) } else { &paired.difference };
        known_difference(relative)
    };
    let all: Vec<Option<IntervalFigure>> = all.iter().map(|paired| paired.as_ref().map(known)).collect();
    let measure = |largest| {
        if is_share { Measure::Share } else { measure_of_difference(figure, currency, largest) }
    };
    let has_zero =
        |known: &IntervalFigure| known.low.zip(known.high).is_some_and(|(low, high)| low < 0.0 && high > 0.0);
    let open = |known: &IntervalFigure| has_zero(known).then(|| known.range(measure(known.mean)));
    let cells = cells(all.clone(), measure);
    all.iter().zip(cells).map(|(known, cell)| known.as_ref().and_then(open).unwrap_or(cell)).collect()
}

/// One line for each objective, one column for each policy; none without objectives.
fn objectives(comparison: &Comparison) -> Vec<Vec<String>> {
    let objectives = comparison.objectives();
    if objectives.is_empty() {
        return Vec::new();
    }
    let mut rows = vec![vec!["objectives met".to_owned()]];
    rows[0].extend(comparison.policies.iter().map(|policy| policy.name.clone()));
    rows.extend(objectives.iter().map(objective_row));
    rows
}

/// An objective, and for each policy how often it was met.
pub(super) fn objective_row((objective, cells): &ObjectiveRow<'_>) -> Vec<String> {
    let mut row = vec![format!("{} \u{2264} {}", objective.name, limit(objective))];
    row.extend(cells.iter().map(|cell| cell.map_or_else(|| "no objective".to_owned(), met)));
    row
}

/// The limit of an objective in its unit.
pub(super) fn limit(objective: &ObjectiveShare) -> String {
    format::objective(&objective.unit, objective.limit)
}

/// `29 of 30 runs (83 to 99%)`.
fn met(objective: &ObjectiveShare) -> String {
    let Some(share) = &objective.share else { return "no data".to_owned() };
    let whole = |share: f64| format!("{:.0}", share * 100.0);
    format!("{} of {} runs ({}%)", objective.met, objective.judged, interval(share, whole))
}

/// `replications.csv`: one line for each simulation, one column for each figure.
///
/// # Errors
/// Whatever `output` returns.
pub fn replications(comparison: &Comparison, output: &mut dyn std::io::Write) -> std::io::Result<()> {
    let mut table = Rows::new(&comparison.points)
        .text("policy", |point| &point.policy)
        .text("seed", |point| point.seed.to_string());
    for (position, figure) in FIGURES.iter().enumerate() {
        table = table.number(figure.name, |point| point.figures[position].map(Plain::whole));
    }
    table.text("event_hash", |point| &point.event_hash).table().csv(output)
}

#[cfg(test)]
mod tests {
    use super::table_within;
    use crate::comparison::{About, Comparison, compare};
    use crate::figures::{FIGURES, find};
    use crate::points::Point;
    use crate::scenario::Caveats;

    /// A comparison of policies, each with a cost.
    fn comparison(policies: &[(&str, f64)]) -> Comparison {
        let point = |&(policy, cost): &(&str, f64)| {
            let mut figures = vec![None; FIGURES.len()];
            for name in ["cost", "cost_per_month"] {
                figures[find(name).unwrap().0] = Some(cost);
            }
            Point {
                setting: 0,
                policy: policy.into(),
                seed: 3,
                figures,
                objectives: Vec::new(),
                event_hash: String::new(),
                unconfirmed: 0.0,
                cost_by_origin: Default::default(),
                spot: false,
                never_registered: 0,
                silent: Vec::new(),
                at_zero_seconds: Default::default(),
                price_date: String::new(),
                warnings: Caveats::new(),
            }
        };
        let names: Vec<String> = policies.iter().map(|(name, _)| (*name).to_owned()).collect();
        compare(About::of_test(3, 1), &names, policies.iter().map(point).collect(), Caveats::new())
    }

    /// Whether the table has a column of the policy.
    fn has(table: &str, policy: &str) -> bool {
        table.lines().any(|line| line.starts_with("mean (waits") && line.split_whitespace().any(|word| word == policy))
    }

    #[test]
    fn expensive_policies_give_way_on_narrow_terminal() {
        let all = [("baseline", 70.0), ("luxurious", 900.0), ("middling", 80.0), ("frugal", 40.0)];
        let comparison = comparison(&all);
        let narrow = table_within(&comparison, Some(50), false);
        assert!(narrow.contains("2 policies not shown; --wide shows all"), "{narrow}");
        for (policy, shown) in [("baseline", true), ("luxurious", false), ("middling", false), ("frugal", true)] {
            assert_eq!(has(&narrow, policy), shown, "{policy}: {narrow}");
        }
        assert!(narrow.lines().filter(|line| line.contains("   ")).all(|line| line.chars().count() <= 50), "{narrow}");
    }

    #[test]
    fn wide_table_shows_every_policy() {
        let all = [("baseline", 70.0), ("luxurious", 900.0), ("middling", 80.0), ("frugal", 40.0)];
        let comparison = comparison(&all);
        for table in [table_within(&comparison, Some(50), true), table_within(&comparison, None, false)] {
            assert!(all.iter().all(|(policy, _)| has(&table, policy)), "{table}");
            assert!(!table.contains("not shown"), "{table}");
        }
    }
}
