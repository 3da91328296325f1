//! Tally: a strip of the verdicts of a backtest, and the error of each metric within its tolerance band.

use super::backtest_words::error;
use crate::backtest::{Answer, FigureResult, Verdict};
use crate::report::axis::Axis;
use crate::report::format::Measure;
use crate::report::page::bars::{open, place, ticks, tip};
use crate::report::page::{Html, sentence, text};

/// Metrics that have a bar; the table has all.
const BARS_MAX: usize = 12;
/// Ends of the axis of errors; an error beyond the last one has a tip.
const ENDS: [f64; 3] = [0.25, 0.5, 1.0];
const HEIGHT: f64 = 24.0;

pub(super) const STYLE: &str = "\
svg.strip { display: block; width: 100%; margin-top: 0.8rem; }
.strip rect { stroke: var(--page); stroke-width: 2; }
ul.strip { display: flex; flex-wrap: wrap; gap: 0 1.4rem; margin: 0.3rem 0 0.8rem; padding: 0; list-style: none; font-weight: 600; }
.strip .agrees { color: var(--good); fill: var(--good); fill-opacity: 0.3; } .strip .small { color: var(--ink); fill: var(--good); fill-opacity: 0.6; }
.strip .open { color: var(--faint); fill: none; } .strip rect.open { stroke: var(--faint); stroke-dasharray: 4 3; } .strip .differs { color: var(--bad); fill: var(--bad); }
.errors { width: 100%; table-layout: fixed; }
.errors th:nth-child(2) { width: 45%; } .errors th:nth-child(3) { width: 6rem; } .errors th:nth-child(4) { width: 7.5rem; }
.errors td { white-space: normal; vertical-align: middle; }
.errors svg { display: block; width: 100%; overflow: visible; }
.errors .band { fill: var(--faint); fill-opacity: 0.25; }
.errors .zero { stroke: var(--faint); }
.errors circle, .errors path { fill: var(--good); } .errors .off circle, .errors .off path { fill: var(--bad); }
.errors tfoot td { border: 0; padding-top: 0; }
.errors tfoot text { fill: var(--faint); font-size: 12px; }
@media (max-width: 640px) {
  .errors thead, .errors tfoot td:not(:nth-child(2)) { display: none; }
  .errors, .errors tbody, .errors tfoot { display: block; }
  .errors tr { display: grid; grid-template-columns: 1fr auto 5.4rem; gap: 0 0.8rem; align-items: center; border-bottom: 1px solid var(--line); padding: 0.3rem 0; }
  .errors td { border: 0; padding: 0; }
  .errors td:nth-child(2) { grid-row: 2; grid-column: 1 / -1; }
}
";

/// Adds the strip and the bars.
pub(super) fn strip(page: &mut Html, answer: &Answer) {
    let tally = &answer.findings.tally;
    let parts = [
        (tally.agrees, "agrees", "agree"),
        (tally.small_but_real, "small", "small but real"),
        (tally.cannot_tell, "open", "cannot tell"),
        (tally.differs, "differs", "differ"),
    ];
    let parts = parts.into_iter().filter(|(count, ..)| *count > 0);
    let (mut svg, mut words, mut from) = (String::new(), String::new(), 0.0);
    for (count, class, verb) in parts {
        let width = count as f64 / tally.figures.max(1) as f64 * 100.0;
        svg += &format!("<rect class=\"{class}\" x=\"{from:.2}%\" width=\"{width:.2}%\" height=\"14\"/>");
        words += &format!("<li class=\"{class}\">{count} {verb}</li>\n");
        from += width;
    }
    page.raw(&format!("<svg class=\"strip fixed\" height=\"14\" aria-hidden=\"true\">{svg}</svg>\n<ul class=\"strip\">\n{words}</ul>\n"));
    let figures: Vec<&FigureResult> = answer.findings.figures.iter().take(BARS_MAX).collect();
    if figures.is_empty() {
        return;
    }
    let shares = figures.iter().flat_map(|figure| [figure.judged.error.map_or(0.0, f64::abs), figure.tolerance]);
    let most = shares.fold(0.0, f64::max);
    let end = ENDS.into_iter().find(|end| *end >= most).unwrap_or(ENDS[ENDS.len() - 1]);
    let axis = Axis::new(Measure::Share, -end, end);
    page.raw("<table class=\"errors\">\n<thead><tr><th>Metric</th><th>Error of the forecast; the band is tolerated</th><th class=\"figure\">Error</th><th>Verdict</th></tr></thead>\n<tbody>\n");
    for figure in figures {
        let (judged, label) = (&figure.judged, text(&sentence(&figure.label)));
        let class = if judged.verdict == Verdict::Differs { " class=\"off\"" } else { "" };
        page.raw(&format!("<tr{class}><td>{label}</td><td>{}</td>", drawing(figure, &axis)));
        page.raw(&format!(
            "<td class=\"figure\">{}</td><td>{}</td></tr>\n",
            text(&error(judged.error)),
            judged.verdict.as_str()
        ));
    }
    let ticks = ticks(&axis);
    page.raw(&format!("</tbody>\n<tfoot><tr><td></td><td>{ticks}</td><td></td><td></td></tr></tfoot>\n</table>\n"));
}

fn drawing(figure: &FigureResult, axis: &Axis<'_>) -> String {
    let judged = &figure.judged;
    let words = format!("{}: error {}, {}", figure.label, error(judged.error), judged.verdict.as_str());
    let mut svg = open(HEIGHT, &words);
    let (from, to, zero) = (place(axis, -figure.tolerance), place(axis, figure.tolerance), place(axis, 0.0));
    svg += &format!(
        "<rect class=\"band\" x=\"{from:.2}%\" y=\"3\" width=\"{:.2}%\" height=\"{}\"/>",
        to - from,
        HEIGHT - 6.0
    );
    svg += &format!("<line class=\"zero\" x1=\"{zero:.2}%\" y1=\"0\" x2=\"{zero:.2}%\" y2=\"{HEIGHT}\"/>");
    let Some(share) = judged.error else { return svg + "</svg>" };
    let middle = HEIGHT / 2.0;
    if share.abs() > axis.ends().1 {
        svg += &tip(axis, share, middle);
    } else {
        svg += &format!("<circle cx=\"{:.2}%\" cy=\"{middle}\" r=\"5\"/>", place(axis, share));
    }
    svg + "</svg>"
}
