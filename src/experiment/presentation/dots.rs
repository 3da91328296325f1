//! Every replication as a dot, one line for each policy, with the mean and its interval.

use crate::experiment::statistics::Estimate;
use crate::report::page::text;

/// One policy's values.
pub(super) struct Row<'a> {
    /// The policy.
    pub label: &'a str,
    /// One value for each replication, in order of seeds.
    pub values: Vec<f64>,
    /// Their mean.
    pub mean: Option<Estimate>,
}

/// Margins at both sides, in percent of the width: drawings are as wide as the page, and text has one size on all.
const MARGIN: f64 = 7.0;
const ROW: f64 = 58.0;
/// From the top of a row, below the name of its policy, to its dots.
const MIDDLE: f64 = 38.0;
const BELOW: f64 = 34.0;
/// Characters of a name that are shown.
const NAME_MAX: usize = 40;

/// The drawing; empty without values. `say` puts a value into words, `zero` draws a line at nothing.
pub(super) fn draw(rows: &[Row<'_>], title: &str, zero: bool, say: &dyn Fn(f64) -> String) -> String {
    let all = || rows.iter().flat_map(|row| row.values.iter().copied());
    let (Some(mut low), Some(mut high)) = (all().min_by(f64::total_cmp), all().max_by(f64::total_cmp)) else {
        return String::new();
    };
    if zero {
        (low, high) = (low.min(0.0), high.max(0.0));
    }
    if high - low <= 0.0 {
        let margin = if high.abs() > 0.0 { high.abs() * 0.1 } else { 1.0 };
        (low, high) = (low - margin, high + margin);
    }
    let x = |value: f64| MARGIN + (value - low) / (high - low) * (100.0 - 2.0 * MARGIN);
    let height = ROW * rows.len() as f64 + BELOW;
    let mut svg = format!(
        "<svg class=\"dots\" style=\"height:{height}px\" role=\"img\" aria-label=\"{}\" font-size=\"13\">\n",
        text(title)
    );
    let base = height - BELOW;
    let ticks = ticks(low, high);
    for (ordinal, tick) in ticks.iter().copied().enumerate() {
        let (at, below) = (x(tick), base + 20.0);
        // Narrow pages have room for every second of many.
        let class = if ticks.len() < 4 || ordinal % 2 == 0 { "" } else { " class=\"second\"" };
        svg += &format!("<line class=\"grid\" x1=\"{at:.2}%\" y1=\"0\" x2=\"{at:.2}%\" y2=\"{base:.1}\"/>\n");
        svg += &format!(
            "<text{class} x=\"{at:.2}%\" y=\"{below:.1}\" text-anchor=\"middle\">{}</text>\n",
            text(&say(tick))
        );
    }
    if zero {
        let at = x(0.0);
        svg += &format!("<line class=\"zero\" x1=\"{at:.2}%\" y1=\"0\" x2=\"{at:.2}%\" y2=\"{base:.1}\"/>\n");
    }
    for (position, row) in rows.iter().enumerate() {
        svg += &one_row(row, ROW * position as f64, &x, say);
    }
    svg + "</svg>\n"
}

fn one_row(row: &Row<'_>, top: f64, x: &dyn Fn(f64) -> f64, say: &dyn Fn(f64) -> String) -> String {
    let label: String = row.label.chars().take(NAME_MAX).collect();
    let middle = top + MIDDLE;
    let mut svg = format!("<text x=\"0\" y=\"{:.1}\">{}</text>\n", top + 16.0, text(&label));
    for (ordinal, value) in row.values.iter().enumerate() {
        // Seven heights, so that equal values do not hide each other.
        let offset = f64::from(u32::try_from(ordinal * 3 % 7).unwrap_or(0)) * 3.0 - 9.0;
        svg += &format!("<circle cx=\"{:.2}%\" cy=\"{:.1}\" r=\"3\"/>\n", x(*value), middle + offset);
    }
    if let Some(mean) = &row.mean {
        let at = x(mean.mean);
        let shown = say(mean.mean);
        if let (Some(low), Some(high)) = (mean.low, mean.high) {
            let (low, high) = (x(low).max(0.0), x(high).min(100.0));
            svg += &format!(
                "<line class=\"interval\" x1=\"{low:.2}%\" y1=\"{middle:.1}\" x2=\"{high:.2}%\" y2=\"{middle:.1}\"/>\n"
            );
        }
        svg += &format!(
            "<line class=\"mean\" x1=\"{at:.2}%\" y1=\"{:.1}\" x2=\"{at:.2}%\" y2=\"{:.1}\"><title>mean {}</title></line>\n",
            middle - 13.0,
            middle + 13.0,
            text(&shown)
        );
    }
    svg
}

/// Round values between `low` and `high`, three to six of them.
pub(super) fn ticks(low: f64, high: f64) -> Vec<f64> {
    let rough = (high - low) / 4.0;
    let power = libm::exp10(libm::floor(libm::log10(rough)));
    let step = [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().map(|factor| factor * power).find(|step| *step >= rough);
    let step = step.unwrap_or(rough);
    let first = libm::ceil(low / step);
    (0..8).map(|count| (first + f64::from(count)) * step).take_while(|tick| *tick <= high).collect()
}

#[cfg(test)]
mod tests {
    use super::{Row, draw, ticks};

    #[test]
    fn ticks_are_round_and_inside() {
        assert_eq!(ticks(0.5, 9.5), [2.5, 5.0, 7.5]);
        assert_eq!(ticks(0.0, 8.0), [0.0, 2.0, 4.0, 6.0, 8.0]);
        assert!(ticks(-1.0, 1.0).contains(&0.0));
    }

    #[test]
    fn equal_values_still_make_a_drawing() {
        let row = Row { label: "a<b", values: vec![2.0, 2.0], mean: None };
        let svg = draw(&[row], "cost", false, &|value| format!("{value:.1}"));
        assert!(svg.contains("a&lt;b") && !svg.contains("NaN") && !svg.contains("inf"));
    }
}
