//! Savings of each recommended change as bars, with its risk; commitments apart from settings.
//!
//! Must not: order or choose the changes.

use super::known;
use super::recommendation::classes;
use crate::recommendation::{Change, Class, Recommendation};
use crate::report::axis::Axis;
use crate::report::format::Measure;
use crate::report::page::{Html, text};
use crate::statistics::Estimate;

/// Months of a year, for answers that have savings per month only.
const MONTHS: f64 = 12.0;
const HEIGHT: f64 = 22.0;
/// Margins at both sides of the axis, in percent of its width.
const MARGIN: f64 = 5.0;

pub(super) const STYLE: &str = "\
.savings { width: 100%; table-layout: fixed; }
.savings td, .savings th { vertical-align: top; padding-right: 0.8rem; white-space: normal; }
.savings th:nth-child(2) { width: 22%; }
.savings th:nth-child(3) { width: 11rem; }
.savings th:nth-child(n + 4) { width: 19%; }
.savings th[scope=rowgroup] { padding-top: 0.8rem; }
.savings svg { display: block; width: 100%; overflow: visible; }
.savings .bar { fill: var(--dot); }
.savings .commitment .bar { fill: none; stroke: var(--dot); stroke-width: 2; }
.savings .reach { stroke: currentColor; stroke-width: 1.5; }
.savings .zero { stroke: var(--faint); }
@media (max-width: 640px) {
  .savings thead { display: none; }
  .savings, .savings tbody { display: block; }
  .savings tr { display: block; border-bottom: 1px solid var(--line); padding: 0.3rem 0; }
  .savings td, .savings th[scope=rowgroup] { display: block; border: 0; padding: 0.1rem 0; text-align: left; }
  .savings td[data-label]::before { content: attr(data-label) \": \"; color: var(--faint); }
}
";

/// Adds the bars; nothing where no change is recommended.
pub(super) fn bars(page: &mut Html, answer: &Recommendation) {
    if !answer.is_change() {
        return;
    }
    let yearly: Vec<Estimate> = answer.changes.iter().map(per_year).collect();
    let largest = yearly.iter().map(|saves| saves.mean.abs()).fold(0.0, f64::max);
    let measure = Measure::Money { currency: &answer.currency, largest };
    let ends = yearly.iter().flat_map(|saves| [Some(saves.centre()), saves.low, saves.high]).flatten();
    let axis = Axis::over(measure, ends.chain([0.0]));
    page.element("h2", "Savings per year");
    page.raw("<table class=\"savings\">\n<thead><tr>");
    for heading in ["Change", "Chart", "Savings per year", "Risk", "Reversibility"] {
        page.raw(&format!("<th scope=\"col\">{heading}</th>"));
    }
    page.raw("</tr></thead>\n");
    let mut number = 0;
    for (heading, class, changes) in classes(&answer.changes).into_iter().filter(|(.., changes)| !changes.is_empty()) {
        let kind = if class == Class::Commitment { "commitment" } else { "setting" };
        page.raw(&format!("<tbody class=\"{kind}\">\n"));
        page.raw(&format!("<tr><th colspan=\"5\" scope=\"rowgroup\">{heading}</th></tr>\n"));
        for change in changes {
            number += 1;
            row(page, (number, change), measure, &axis);
        }
        page.raw("</tbody>\n");
    }
    page.raw("</table>\n");
    let interval =
        if yearly.iter().any(|saves| saves.low.is_some()) { " The line is its 95% confidence interval." } else { "" };
    let note =
        "Each bar is the saving of one change with all other changes made, so the bars need not sum to the total.";
    page.element("p class=\"note\"", &format!("{note}{interval}"));
}

fn row(page: &mut Html, (number, change): (u32, &Change), measure: Measure<'_>, axis: &Axis<'_>) {
    let saves = per_year(change);
    let words = known(&saves).text(measure);
    page.raw(&format!("<tr><td>{}</td>", text(&format!("{number}. {}: {}", change.subject, change.to))));
    page.raw(&format!("<td class=\"plot\">{}</td>", drawing(&saves, axis)));
    page.raw(&format!("<td>{}</td>", text(&words)));
    let risk = change.risk.as_ref();
    let cells =
        [("Risk", risk.map(|risk| &risk.availability)), ("Reversibility", risk.map(|risk| &risk.reversibility))];
    for (label, cell) in cells {
        let cell = cell.map_or("not known", |cell| cell.as_ref());
        page.raw(&format!("<td data-label=\"{label}\">{}</td>", text(cell)));
    }
    page.raw("</tr>\n");
}

fn per_year(change: &Change) -> Estimate {
    change.saves_per_year.unwrap_or_else(|| change.saves_per_month.scaled(MONTHS))
}

/// The place of an amount, in percent of the width.
fn place(axis: &Axis<'_>, amount: f64) -> f64 {
    MARGIN + axis.share(amount).clamp(0.0, 1.0) * (100.0 - 2.0 * MARGIN)
}

fn drawing(saves: &Estimate, axis: &Axis<'_>) -> String {
    let (zero, end, middle) = (place(axis, 0.0), place(axis, saves.centre()), HEIGHT / 2.0);
    let (from, width) = (zero.min(end), (end - zero).abs());
    let mut svg = format!("<svg height=\"{HEIGHT}\" aria-hidden=\"true\">");
    svg += &format!("<rect class=\"bar\" x=\"{from:.2}%\" y=\"5\" width=\"{width:.2}%\" height=\"12\"/>");
    svg += &format!("<line class=\"zero\" x1=\"{zero:.2}%\" y1=\"0\" x2=\"{zero:.2}%\" y2=\"{HEIGHT}\"/>");
    if let (Some(low), Some(high)) = (saves.low, saves.high) {
        let [low, high] = [low, high].map(|end| place(axis, end));
        svg += &format!("<line class=\"reach\" x1=\"{low:.2}%\" y1=\"{middle}\" x2=\"{high:.2}%\" y2=\"{middle}\"/>");
    }
    svg + "</svg>"
}
