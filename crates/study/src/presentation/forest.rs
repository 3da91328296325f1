//! Forest plot: the differences of each policy from the first, with their intervals around a zero line.

use super::table::{difference_cells, mean_cells};
use super::{Standing, stacked, standing, with_own_unit};
use crate::comparison::{Comparison, PolicyResult};
use crate::figures::{Figure, find};
use crate::report::axis::Axis;
use crate::report::format::Measure;
use crate::report::page::bars::{open, place, ticks, tip};
use crate::report::page::{Html, sentence, text};
use crate::statistics::Estimate;

/// Figures that have a row, where there is anything to measure.
const ROWS: [&str; 5] = ["cost_per_month", "unavailable_pod_minutes", "pending_p99", "request_p99", "evictions"];
/// Policies that have rows; tables below have all.
const POLICIES_MAX: usize = 4;
/// Widest ends of the axis, as shares; what lies beyond has a tip.
const ENDS: [f64; 6] = [0.05, 0.1, 0.25, 0.5, 1.0, 2.0];
const HEIGHT: f64 = 26.0;

pub(super) const STYLE: &str = "\
.forest { width: 100%; table-layout: fixed; }
.forest td, .forest th { vertical-align: middle; padding-right: 0.6rem; white-space: normal; }
.forest th:nth-child(n + 2):nth-child(-n + 3) { width: 13%; }
.forest th:nth-child(4) { width: 27%; }
.forest th:nth-child(5) { width: 14%; }
.forest th:nth-child(6) { width: 7.5rem; }
.forest caption { display: none; }
.forest td span:not(.chip) { display: block; color: var(--faint); font-size: 0.85em; }
.forest svg { display: block; width: 100%; overflow: visible; }
.forest .zero { stroke: var(--ink); stroke-width: 1; }
.forest .reach { stroke: var(--dot); stroke-width: 4; stroke-opacity: 0.45; }
.forest circle, .forest path { fill: var(--dot); }
.forest tfoot td { border: 0; padding-top: 0; }
.forest tfoot text { fill: var(--faint); font-size: 12px; }
@media (max-width: 640px) {
  .forest thead, .forest td.level { display: none; }
  .forest caption { display: block; text-align: left; font-weight: 600; padding-top: 0.8rem; }
  .forest, .forest tbody, .forest tfoot { display: block; }
  .forest tr { display: grid; grid-template-columns: 1fr 1fr auto; align-items: center; border-bottom: 1px solid var(--line); padding: 0.3rem 0; }
  .forest td { border: 0; padding-bottom: 0; }
  .forest td.plot { grid-row: 2; grid-column: 1 / -1; }
  .forest tfoot td:not(.plot) { display: none; }
}
";

/// A figure of two policies.
struct Row {
    figure: &'static Figure,
    levels: [String; 2],
    difference: String,
    relative: Option<Estimate>,
    standing: Standing,
}

/// Adds the plot of each policy that is compared with the first.
pub(super) fn plot(page: &mut Html, comparison: &Comparison) {
    let Some((first, others)) = comparison.policies.split_first() else { return };
    let rows = |other| ROWS.iter().filter_map(|name| row(comparison, (first, other), name)).collect::<Vec<Row>>();
    let pairs: Vec<(&PolicyResult, Vec<Row>)> = others
        .iter()
        .take(POLICIES_MAX)
        .map(|other| (other, rows(other)))
        .filter(|(_, rows)| !rows.is_empty())
        .collect();
    let axis = axis(pairs.iter().flat_map(|(_, rows)| rows));
    pairs.iter().for_each(|(other, rows)| table(page, (first, other), rows, &axis));
}

fn row(comparison: &Comparison, (first, other): (&PolicyResult, &PolicyResult), name: &str) -> Option<Row> {
    let (position, figure) = find(name)?;
    let currency = &comparison.about.currency;
    let means = [first, other].map(|policy| policy.figures[position].mean);
    let paired = other.figures[position].against_first.as_ref()?;
    let [before, after]: [String; 2] = mean_cells(figure, currency, &means).try_into().ok()?;
    Some(Row {
        figure,
        levels: [before, after],
        difference: difference_cells(figure, currency, &[Some(paired)]).concat(),
        relative: paired.relative,
        standing: standing(figure, &paired.difference),
    })
}

fn table(page: &mut Html, (first, other): (&PolicyResult, &PolicyResult), rows: &[Row], axis: &Axis<'_>) {
    let heading = text(&format!("{} against {}", other.name, first.name));
    page.raw(&format!("<table class=\"forest\">\n<caption>{heading}</caption>\n"));
    page.raw("<thead><tr><th>Metric</th>");
    for name in [&first.name, &other.name] {
        page.raw(&format!("<th class=\"figure\">{}</th>", text(name)));
    }
    page.raw(&format!("<th>{heading}</th><th class=\"figure\">Difference</th><th>Result</th></tr></thead>\n<tbody>\n"));
    for row in rows {
        page.raw(&format!("<tr><td>{}</td>", text(&sentence(row.figure.label))));
        for level in &row.levels {
            page.raw(&format!("<td class=\"figure level\">{}</td>", stacked(&with_own_unit(level))));
        }
        page.raw(&format!("<td class=\"plot\">{}</td>", drawing(row, axis)));
        page.raw(&format!("<td class=\"figure\">{}</td>", stacked(&with_own_unit(&row.difference))));
        let (class, words) = match row.standing {
            Standing::Better => ("chip better", "\u{25b2} better"),
            Standing::Worse => ("chip worse", "\u{25bc} worse"),
            Standing::Other => ("chip", "changed"),
            Standing::Unsure => ("chip", "not clear"),
            Standing::Same => ("chip", "same"),
        };
        page.raw(&format!("<td><span class=\"{class}\">{words}</span></td></tr>\n"));
    }
    page.raw("</tbody>\n<tfoot><tr><td></td><td class=\"level\"></td><td class=\"level\"></td><td class=\"plot\">");
    page.raw(&format!("{}</td><td></td><td></td></tr></tfoot>\n</table>\n", ticks(axis)));
}

/// The axis of the rows of all policies: shares around zero, wide enough for all intervals, except for ends beyond the last of [`ENDS`].
fn axis<'r>(rows: impl Iterator<Item = &'r Row>) -> Axis<'static> {
    let ends = rows.filter_map(|row| row.relative.as_ref());
    let ends = ends.map(|share| [share.low, share.high, Some(share.centre())].into_iter().flatten().map(f64::abs));
    let widest = ENDS[ENDS.len() - 1];
    let most = ends.flatten().filter(|end| *end <= widest).fold(0.0, f64::max);
    let end = ENDS.into_iter().find(|end| *end >= most).unwrap_or(widest);
    Axis::new(Measure::Share, -end, end)
}

fn drawing(row: &Row, axis: &Axis<'_>) -> String {
    let mut svg = open(HEIGHT, &format!("{}: difference {}", row.figure.label, row.difference));
    let (zero, middle) = (place(axis, 0.0), HEIGHT / 2.0);
    svg += &format!("<line class=\"zero\" x1=\"{zero}%\" y1=\"0\" x2=\"{zero}%\" y2=\"{HEIGHT}\"/>");
    let Some(share) = &row.relative else { return svg + "</svg>" };
    if let (Some(low), Some(high)) = (share.low, share.high) {
        let [from, to] = [low, high].map(|end| place(axis, end));
        svg += &format!("<line class=\"reach\" x1=\"{from:.2}%\" y1=\"{middle}\" x2=\"{to:.2}%\" y2=\"{middle}\"/>");
        let is_beyond = |end: &f64| *end < axis.ends().0 || *end > axis.ends().1;
        svg += &[low, high].iter().filter(|end| is_beyond(end)).map(|end| tip(axis, *end, middle)).collect::<String>();
    }
    let (value, (low, high)) = (share.centre(), axis.ends());
    if value > high || value < low {
        svg += &tip(axis, value, middle);
    } else {
        svg += &format!("<circle cx=\"{:.2}%\" cy=\"{middle}\" r=\"5\"/>", place(axis, value));
    }
    svg + "</svg>"
}
