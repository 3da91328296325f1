//! Bars: charts in the cells of a table, each as wide as its column, and one axis for all of them.
//!
//! Must not: decide what a bar means.

use super::html::text;
use crate::axis::Axis;

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
