//! Every replication as a dot, one line for each policy, with the mean and its interval.

use crate::report::axis::Axis;
use crate::report::format::Measure;
use crate::report::page::text;
use crate::report::short_names::{apart, without_middle};
use crate::statistics::Estimate;

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

/// A policy is off the axis whose every value is more than so many times as large as all values of the others.
const DWARFS: f64 = 3.0;

/// The drawing of values in `measure`; empty without values. `say` puts a value into words.
pub(super) fn draw(rows: &[Row<'_>], title: &str, measure: Measure<'_>, say: &dyn Fn(f64) -> String) -> String {
    let off_axis = off_axis(rows);
    let on_axis = || rows.iter().enumerate().filter(|(at, _)| !off_axis.contains(at)).map(|(_, row)| row);
    let Some((low, high)) = range(on_axis) else { return String::new() };
    let axis = Axis::new(measure, low, high);
    let x = |value: f64| MARGIN + axis.share(value) * (100.0 - 2.0 * MARGIN);
    let height = ROW * rows.len() as f64 + BELOW;
    let mut svg = format!(
        "<svg class=\"dots fixed\" height=\"{height}\" role=\"img\" aria-label=\"{}\" font-size=\"13\">\n",
        text(title)
    );
    let base = height - BELOW;
    let ticks = axis.ticks();
    for (ordinal, (tick, label)) in ticks.iter().enumerate() {
        let (at, below) = (x(*tick), base + 20.0);
        // Narrow pages have room for every second of many.
        let class = if ticks.len() < 4 || ordinal % 2 == 0 { "" } else { " class=\"second\"" };
        svg += &format!("<line class=\"grid\" x1=\"{at:.2}%\" y1=\"0\" x2=\"{at:.2}%\" y2=\"{base:.1}\"/>\n");
        svg += &format!("<text{class} x=\"{at:.2}%\" y=\"{below:.1}\" text-anchor=\"middle\">{}</text>\n", text(label));
    }
    let names: Vec<&str> = rows.iter().map(|row| row.label).collect();
    for (position, (row, name)) in rows.iter().zip(apart(&names, NAME_MAX, without_middle)).enumerate() {
        let top = ROW * position as f64;
        svg += &one_name((row, &name), top);
        svg += &if off_axis.contains(&position) { beyond(row, top, say) } else { one_row(row, top, &x, say) };
    }
    svg + "</svg>\n"
}

/// The places of rows that would squeeze the others into a corner: at least two others stay.
fn off_axis(rows: &[Row<'_>]) -> Vec<usize> {
    let ends = |row: &Row<'_>| {
        let least = row.values.iter().copied().min_by(f64::total_cmp)?;
        Some((least, row.values.iter().copied().max_by(f64::total_cmp)?))
    };
    let mut sorted: Vec<(f64, f64, usize)> =
        rows.iter().enumerate().filter_map(|(at, row)| ends(row).map(|(least, most)| (least, most, at))).collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut most = f64::NEG_INFINITY;
    for (position, (least, highest, _)) in sorted.iter().enumerate() {
        if position > 1 && most > 0.0 && *least > DWARFS * most {
            return sorted[position..].iter().map(|(_, _, at)| *at).collect();
        }
        most = most.max(*highest);
    }
    Vec::new()
}

/// The values that are drawn: those of all replications and the intervals of the means, which are not below zero. An interval
/// that reaches beyond the values by more than these lie apart goes on outside: few replications make it very wide.
fn range<'r, I: Iterator<Item = &'r Row<'r>>>(rows: impl Fn() -> I) -> Option<(f64, f64)> {
    let all = || rows().flat_map(|row| row.values.iter().copied());
    let (low, high) = (all().min_by(f64::total_cmp)?, all().max_by(f64::total_cmp)?);
    let apart = high - low;
    if apart <= 0.0 {
        return Some((low, high));
    }
    let ends = |end: fn(&Estimate) -> Option<f64>| rows().filter_map(move |row| row.mean.as_ref().and_then(end));
    let least = ends(|mean| mean.low).fold(low, f64::min).max(low.min(0.0));
    let most = ends(|mean| mean.high).fold(high, f64::max);
    Some((least.max(low - apart), most.min(high + apart)))
}

fn one_name((row, name): (&Row<'_>, &str), top: f64) -> String {
    let mut svg = format!("<text x=\"0\" y=\"{:.1}\">{}", top + 16.0, text(name));
    if name != row.label {
        svg += &format!("<title>{}</title>", text(row.label));
    }
    svg + "</text>\n"
}

/// A row that is off the axis: its value at the edge.
fn beyond(row: &Row<'_>, top: f64, say: &dyn Fn(f64) -> String) -> String {
    let Some(value) = row.mean.as_ref().map(Estimate::centre).or_else(|| row.values.first().copied()) else {
        return String::new();
    };
    let (at, words) = (100.0 - MARGIN, text(&say(value)));
    format!(
        "<text class=\"off\" x=\"{at:.2}%\" y=\"{:.1}\" text-anchor=\"end\">off the axis: {words} \u{25b8}</text>\n",
        top + MIDDLE + 4.0
    )
}

fn one_row(row: &Row<'_>, top: f64, x: &dyn Fn(f64) -> f64, say: &dyn Fn(f64) -> String) -> String {
    let middle = top + MIDDLE;
    let mut svg = String::new();
    for (ordinal, value) in row.values.iter().enumerate() {
        // Seven heights, so that equal values do not hide each other.
        let offset = f64::from(u32::try_from(ordinal * 3 % 7).unwrap_or(0)) * 3.0 - 9.0;
        svg += &format!("<circle cx=\"{:.2}%\" cy=\"{:.1}\" r=\"3\"/>\n", x(*value), middle + offset);
    }
    if let Some(mean) = &row.mean {
        let at = x(mean.centre());
        let shown = say(mean.centre());
        let word = if mean.median.is_some() { "median" } else { "mean" };
        if let (Some(low), Some(high)) = (mean.low, mean.high) {
            svg += &interval((low.max(0.0), high), middle, x, say);
        }
        svg += &format!(
            "<line class=\"mean\" x1=\"{at:.2}%\" y1=\"{:.1}\" x2=\"{at:.2}%\" y2=\"{:.1}\"><title>{word} {}</title></line>\n",
            middle - 13.0,
            middle + 13.0,
            text(&shown)
        );
    }
    svg
}

/// The bar of an interval, with a tip at each end where it goes on outside the drawing.
fn interval((low, high): (f64, f64), middle: f64, x: &dyn Fn(f64) -> f64, say: &dyn Fn(f64) -> String) -> String {
    let (least, most) = (MARGIN - 2.0, 100.0 - MARGIN + 2.0);
    let (left, right) = (x(low).clamp(least, most), x(high).clamp(least, most));
    let mut svg = format!(
        "<line class=\"interval\" x1=\"{left:.2}%\" y1=\"{middle:.1}\" x2=\"{right:.2}%\" y2=\"{middle:.1}\">\
         <title>95% interval {} to {}</title></line>\n",
        text(&say(low)),
        text(&say(high))
    );
    for (end, edge, tip) in [(x(low), least, "M0-6L-9 0L0 6Z"), (x(high), most, "M0-6L9 0L0 6Z")] {
        if (end - end.clamp(least, most)).abs() > 0.0 {
            svg += &format!(
                "<svg x=\"{edge:.2}%\" y=\"{middle:.1}\" width=\"1\" height=\"1\" overflow=\"visible\"><path class=\"beyond\" d=\"{tip}\"/></svg>\n"
            );
        }
    }
    svg
}

#[cfg(test)]
mod tests {
    use super::{Row, draw};
    use crate::report::format::Measure;
    use crate::statistics::{Estimate, Method};

    const DOLLARS: Measure<'_> = Measure::Money { currency: "USD", largest: 1.0 };

    fn row(values: &[f64], low: f64, high: f64) -> Row<'static> {
        let (count, mean) = (values.len() as u64, values.iter().sum::<f64>() / values.len() as f64);
        let mean = Estimate { count, mean, median: None, low: Some(low), high: Some(high), method: Method::StudentT };
        Row { label: "own", values: values.to_vec(), mean: Some(mean) }
    }

    /// The attributes `name` of the bars of intervals, in percent of the width.
    fn ends(svg: &str, name: &str) -> Vec<f64> {
        let bars = svg.lines().filter(|line| line.contains("class=\"interval\""));
        let of =
            |bar: &str| bar.split_once(&format!(" {name}=\"")).unwrap().1.split_once('%').unwrap().0.parse().unwrap();
        bars.map(of).collect()
    }

    #[test]
    fn bars_stay_within_drawing_and_show_truncation() {
        let say = |value: f64| format!("{value:.1}");
        let near = draw(&[row(&[4.0, 6.0], 3.0, 7.0)], "cost", DOLLARS, &say);
        assert_eq!((ends(&near, "x1"), ends(&near, "x2")), (vec![super::MARGIN], vec![100.0 - super::MARGIN]));
        assert!(!near.contains("beyond") && near.contains("95% interval 3.0 to 7.0"), "{near}");
        let far = draw(&[row(&[4.0, 6.0], 0.0, 60.0)], "cost", DOLLARS, &say);
        assert!(ends(&far, "x1")[0] > 0.0 && ends(&far, "x2")[0] < 100.0);
        assert_eq!(far.matches("beyond").count(), 2, "a tip at both ends: {far}");
        assert!(far.contains("95% interval 0.0 to 60.0"));
    }

    #[test]
    fn long_label_is_shortened_with_full_title() {
        let name = "a-third-one-with-a-rather-long-name-to-see-what-comes-of-it";
        let row = Row { label: name, values: vec![1.0, 2.0], mean: None };
        let svg = draw(&[row], "cost", DOLLARS, &|value| format!("{value:.1}"));
        let shown = "a-third-one-with-a-r\u{2026}ee-what-comes-of-it";
        assert_eq!(shown.chars().count(), super::NAME_MAX);
        assert!(svg.contains(&format!(">{shown}<title>{name}</title></text>")), "{svg}");
    }

    #[test]
    fn policy_that_dwarfs_the_rest_is_off_the_axis() {
        let say = |value: f64| format!("{value:.0}");
        let rows =
            [row(&[40.0, 44.0], 38.0, 46.0), row(&[9_000.0, 9_100.0], 8_000.0, 9_900.0), row(&[50.0], 50.0, 50.0)];
        let svg = draw(&rows, "cost", DOLLARS, &say);
        assert!(svg.contains("off the axis: 9050 \u{25b8}") && !svg.contains(">$8,000<"), "{svg}");
        assert_eq!(svg.matches("<circle").count(), 3, "{svg}");
        // Of two both stay: their distance is the answer.
        assert!(!draw(&rows[..2], "cost", DOLLARS, &say).contains("off the axis"));
    }

    #[test]
    fn equal_values_still_make_a_drawing() {
        let row = Row { label: "a<b", values: vec![2.0, 2.0], mean: None };
        let svg = draw(&[row], "cost", DOLLARS, &|value| format!("{value:.1}"));
        assert!(svg.contains("a&lt;b") && !svg.contains("NaN") && !svg.contains("inf"));
    }
}
