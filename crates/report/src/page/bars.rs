//! Bars: charts in the cells of a table, each as wide as its column, and one axis for all of them.
//!
//! Must not: decide what a bar means.

use super::html::{Html, text};
use crate::axis::Axis;

/// The look of tables with bars: one below the other where the page is narrow.
pub const STYLE: &str = "\
.bars { width: 100%; table-layout: fixed; }
.bars td, .bars th { vertical-align: middle; padding-right: 0.8rem; white-space: normal; }
.bars td span:not(.chip) { display: block; color: var(--faint); font-size: 0.85em; margin-left: 6%; }
.bars svg { display: block; width: 100%; overflow: visible; }
.bars .grid { stroke: var(--line); }
.bars .zero { stroke: var(--faint); }
.bars path { fill: var(--ink); }
.bars tfoot td { border: 0; padding-top: 0; }
.bars tfoot text { fill: var(--faint); font-size: 12px; }
.blue { fill: #0072b2; } .vermilion { fill: #d55e00; } .green { fill: #009e73; } .purple { fill: #c4689b; }
.pale { fill: #848d97; fill-opacity: 0.3; stroke: #848d97; }
.legend svg.sample { display: inline-block; width: 22px; height: 12px; margin-right: 0.35rem; vertical-align: middle; }
@media (max-width: 640px) {
  .bars thead { display: none; }
  .bars, .bars tbody, .bars tfoot { display: block; }
  .bars tr { display: grid; grid-template-columns: auto auto; gap: 0 0.8rem; justify-content: space-between; align-items: center; border-bottom: 1px solid var(--line); padding: 0.4rem 0; }
  .bars tfoot tr { border: 0; }
  .bars td { border: 0; padding: 0.1rem 0; }
  .bars td.figure { white-space: nowrap; }
  .bars td:first-child { font-weight: 500; }
  .bars td:first-child, .bars td.plot { grid-column: 1 / -1; }
  .bars td[data-of]::before { content: attr(data-of) \"\\a0\"; color: var(--faint); }
  .bars tfoot td:not(.plot), .bars tfoot td.plot ~ td.plot { display: none; }
}
";

/// The look of a result in a word.
pub const CHIP_STYLE: &str = "\
.chip { display: inline-block; border-radius: 1em; padding: 0 0.6em; border: 1px solid currentColor; font-size: 0.85rem; white-space: nowrap; }
.chip.better { color: var(--good); } .chip.worse { color: var(--bad); } .chip { color: var(--faint); }
";

/// The look of a bar: its colour, and the pattern that tells it apart without colours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tone {
    /// Plain.
    Blue,
    /// With level lines.
    Green,
    /// With oblique lines.
    Vermilion,
    /// With upright lines.
    Purple,
    /// A pale area with an outline, which other bars may lie on.
    Pale,
}

/// The lines of patterns, by their names.
const PATTERNS: [(&str, &str); 3] =
    [("oblique", "M-1 1L1 -1M0 6L6 0M5 7L7 5"), ("level", "M0 3H6"), ("upright", "M3 0V6")];

impl Tone {
    const fn class(self) -> &'static str {
        match self {
            Self::Blue => "blue",
            Self::Green => "green",
            Self::Vermilion => "vermilion",
            Self::Purple => "purple",
            Self::Pale => "pale",
        }
    }

    const fn pattern(self) -> Option<&'static str> {
        match self {
            Self::Blue | Self::Pale => None,
            Self::Green => Some("level"),
            Self::Vermilion => Some("oblique"),
            Self::Purple => Some("upright"),
        }
    }

    /// A rectangle of this look; `place` are its attributes.
    fn rectangle(self, place: &str) -> String {
        let over = self.pattern().map_or_else(String::new, |name| format!("<rect {place} fill=\"url(#{name})\"/>"));
        format!("<rect class=\"{}\" {place}/>{over}", self.class())
    }
}

/// Begins the figure of a page's bars, with the patterns that they have.
pub fn begin_figure(page: &mut Html, caption: &str) {
    page.raw("<svg class=\"patterns\" width=\"0\" height=\"0\" aria-hidden=\"true\">");
    for (name, path) in PATTERNS {
        page.raw(&format!(
            "<pattern id=\"{name}\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\"><path d=\"{path}\"/></pattern>"
        ));
    }
    page.raw("</svg>\n<figure>\n");
    page.element("figcaption", caption);
}

/// Adds what each look means. Without meanings nothing is added.
pub fn key(page: &mut Html, meanings: &[(Tone, &str)]) {
    if meanings.is_empty() {
        return;
    }
    page.raw("<ul class=\"legend key\">\n");
    for (tone, meaning) in meanings {
        let sample = tone.rectangle("width=\"22\" height=\"12\"");
        page.raw(&format!("<li><svg class=\"sample\" aria-hidden=\"true\">{sample}</svg>{}</li>\n", text(meaning)));
    }
    page.raw("</ul>\n");
}

/// A bar from one value to another, `top` below the upper edge of the drawing.
pub fn bar(axis: &Axis<'_>, tone: Tone, (from, to): (f64, f64), (top, height): (f64, f64)) -> String {
    let [from, to] = [from, to].map(|value| place(axis, value));
    let width = (to - from).max(0.0);
    tone.rectangle(&format!("x=\"{from:.2}%\" y=\"{top}\" width=\"{width:.2}%\" height=\"{height}\""))
}

/// Lines at the ticks of the axis, behind the bars.
pub fn grid(axis: &Axis<'_>, height: f64) -> String {
    let line = |value: f64| {
        let (at, class) = (place(axis, value), if value.abs() > 0.0 { "grid" } else { "zero" });
        format!("<line class=\"{class}\" x1=\"{at:.2}%\" y1=\"0\" x2=\"{at:.2}%\" y2=\"{height}\"/>")
    };
    axis.ticks().into_iter().map(|(value, _)| line(value)).collect()
}

/// Margins at both sides of the axis, in percent of the width: labels of ticks at the ends reach over them.
const MARGIN: f64 = 6.0;

/// Begins the drawing of a cell, read aloud as `label`.
pub fn open(height: f64, label: &str) -> String {
    format!("<svg class=\"fixed\" height=\"{height}\" role=\"img\" aria-label=\"{}\">", text(label))
}

/// The place of a value, in percent of the width; a value that is off the axis is at its end.
pub fn place(axis: &Axis<'_>, value: f64) -> f64 {
    MARGIN + axis.share(value).clamp(0.0, 1.0) * (100.0 - 2.0 * MARGIN)
}

/// A mark for a value that is off the axis, above its upper end or below its lower one.
pub fn tip(axis: &Axis<'_>, value: f64, middle: f64) -> String {
    let shape = if value > axis.ends().1 { "M0-6L9 0L0 6Z" } else { "M0-6L-9 0L0 6Z" };
    format!(
        "<svg x=\"{:.2}%\" y=\"{middle}\" width=\"1\" height=\"1\" overflow=\"visible\"><path d=\"{shape}\"/></svg>",
        place(axis, value)
    )
}

/// The labels of the axis, for the foot of the column.
pub fn ticks(axis: &Axis<'_>) -> String {
    let mut svg = "<svg class=\"fixed\" height=\"16\" aria-hidden=\"true\">".to_owned();
    for (tick, label) in axis.ticks() {
        svg +=
            &format!("<text x=\"{:.2}%\" y=\"12\" text-anchor=\"middle\">{}</text>", place(axis, tick), text(&label));
    }
    svg + "</svg>"
}

#[cfg(test)]
mod tests {
    use super::{STYLE, Tone, bar};
    use crate::axis::Axis;
    use crate::format::Measure;
    use crate::page::CHART_SCRIPT;

    #[test]
    fn colours_of_bars_are_those_of_charts() {
        let colours: Vec<&str> = STYLE.match_indices('#').map(|(at, _)| &STYLE[at..at + 7]).collect();
        assert_eq!(colours.len(), 6);
        for colour in colours {
            assert!(CHART_SCRIPT[0].contains(&format!("\"{colour}\"")), "{colour}");
        }
    }

    #[test]
    fn bars_end_where_the_axis_does() {
        let axis = Axis::new(Measure::Share, 0.0, 1.0);
        let drawn = bar(&axis, Tone::Green, (0.0, 9.0), (2.0, 8.0));
        assert_eq!(drawn.matches("x=\"6.00%\" y=\"2\" width=\"88.00%\" height=\"8\"").count(), 2, "{drawn}");
        assert!(drawn.contains("url(#level)"), "{drawn}");
    }
}
