//! Every replication as a dot, one line for each policy, with the mean and its interval.

use crate::figures::Unit;
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

/// The drawing of values in `unit`; empty without values. `say` puts a value into words.
pub(super) fn draw(rows: &[Row<'_>], title: &str, unit: Unit, say: &dyn Fn(f64) -> String) -> String {
    let Some((low, high)) = range(rows) else { return String::new() };
    let x = |value: f64| MARGIN + (value - low) / (high - low) * (100.0 - 2.0 * MARGIN);
    let height = ROW * rows.len() as f64 + BELOW;
    let mut svg = format!(
        "<svg class=\"dots fixed\" height=\"{height}\" role=\"img\" aria-label=\"{}\" font-size=\"13\">\n",
        text(title)
    );
    let base = height - BELOW;
    let ticks = ticks(unit, low, high);
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
    let names: Vec<&str> = rows.iter().map(|row| row.label).collect();
    for (position, (row, name)) in rows.iter().zip(apart(&names, NAME_MAX, without_middle)).enumerate() {
        svg += &one_row((row, &name), ROW * position as f64, &x, say);
    }
    svg + "</svg>\n"
}

/// The values that are drawn: those of all replications and the intervals of the means, which are not below zero. An interval
/// that reaches beyond the values by more than these lie apart goes on outside: few replications make it very wide.
fn range(rows: &[Row<'_>]) -> Option<(f64, f64)> {
    let all = || rows.iter().flat_map(|row| row.values.iter().copied());
    let (low, high) = (all().min_by(f64::total_cmp)?, all().max_by(f64::total_cmp)?);
    let apart = high - low;
    if apart <= 0.0 {
        let margin = if high.abs() > 0.0 { high.abs() * 0.1 } else { 1.0 };
        return Some((low - margin, high + margin));
    }
    let ends = |end: fn(&Estimate) -> Option<f64>| rows.iter().filter_map(move |row| row.mean.as_ref().and_then(end));
    let least = ends(|mean| mean.low).fold(low, f64::min).max(low.min(0.0));
    let most = ends(|mean| mean.high).fold(high, f64::max);
    Some((least.max(low - apart), most.min(high + apart)))
}

fn one_row((row, name): (&Row<'_>, &str), top: f64, x: &dyn Fn(f64) -> f64, say: &dyn Fn(f64) -> String) -> String {
    let middle = top + MIDDLE;
    let mut svg = format!("<text x=\"0\" y=\"{:.1}\">{}", top + 16.0, text(name));
    if name != row.label {
        svg += &format!("<title>{}</title>", text(row.label));
    }
    svg += "</text>\n";
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
         <title>95 % interval {} to {}</title></line>\n",
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

/// Seconds that read well as steps of an axis, from a second to a week.
const STEPS_OF_TIME: [f64; 16] = [
    1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1_800.0, 3_600.0, 7_200.0, 21_600.0, 86_400.0,
    604_800.0,
];

/// Values between `low` and `high` that read well in `unit`, two to eight of them where there are as many.
pub(super) fn ticks(unit: Unit, low: f64, high: f64) -> Vec<f64> {
    let rough = (high - low) / 4.0;
    let power = libm::exp10(libm::floor(libm::log10(rough)));
    // Two and a half minutes are no round time, and there are no halves of things.
    let factors: &[f64] = match unit {
        Unit::Money | Unit::Share => &[1.0, 2.0, 2.5, 5.0, 10.0],
        Unit::Seconds | Unit::Count => &[1.0, 2.0, 5.0, 10.0],
    };
    let decimal = factors.iter().map(|factor| factor * power).find(|step| *step >= rough).unwrap_or(rough);
    let step = match unit {
        Unit::Seconds if rough > 1.0 => STEPS_OF_TIME.into_iter().find(|step| *step >= rough).unwrap_or(decimal),
        Unit::Count => decimal.max(1.0),
        Unit::Money | Unit::Share | Unit::Seconds => decimal,
    };
    let first = libm::ceil(low / step);
    (0..8).map(|count| (first + f64::from(count)) * step).take_while(|tick| *tick <= high).collect()
}

#[cfg(test)]
mod tests {
    use super::{Row, draw, ticks};
    use crate::figures::Unit;
    use crate::statistics::{Estimate, Method};

    #[test]
    fn ticks_are_round_and_inside() {
        assert_eq!(ticks(Unit::Money, 0.5, 9.5), [2.5, 5.0, 7.5]);
        assert_eq!(ticks(Unit::Share, 0.0, 8.0), [0.0, 2.0, 4.0, 6.0, 8.0]);
        assert!(ticks(Unit::Money, -1.0, 1.0).contains(&0.0));
    }

    #[test]
    fn times_and_counts_have_ticks_that_read_as_they_are() {
        assert_eq!(ticks(Unit::Seconds, 56.6, 65.3), [60.0, 65.0]);
        assert_eq!(ticks(Unit::Seconds, 100.0, 900.0), [300.0, 600.0, 900.0]);
        assert_eq!(ticks(Unit::Count, 8.2, 10.1), [9.0, 10.0]);
    }

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
    fn bars_lie_within_the_drawing_and_say_where_they_go_on() {
        let say = |value: f64| format!("{value:.1}");
        let near = draw(&[row(&[4.0, 6.0], 3.0, 7.0)], "cost", Unit::Money, &say);
        assert_eq!((ends(&near, "x1"), ends(&near, "x2")), (vec![super::MARGIN], vec![100.0 - super::MARGIN]));
        assert!(!near.contains("beyond") && near.contains("95 % interval 3.0 to 7.0"), "{near}");
        let far = draw(&[row(&[4.0, 6.0], 0.0, 60.0)], "cost", Unit::Money, &say);
        assert!(ends(&far, "x1")[0] > 0.0 && ends(&far, "x2")[0] < 100.0);
        assert_eq!(far.matches("beyond").count(), 2, "a tip at both ends: {far}");
        assert!(far.contains("95 % interval 0.0 to 60.0"));
    }

    #[test]
    fn a_long_name_is_cut_in_its_middle_and_told_whole() {
        let name = "a-third-one-with-a-rather-long-name-to-see-what-comes-of-it";
        let row = Row { label: name, values: vec![1.0, 2.0], mean: None };
        let svg = draw(&[row], "cost", Unit::Money, &|value| format!("{value:.1}"));
        let shown = "a-third-one-with-a-r\u{2026}ee-what-comes-of-it";
        assert_eq!(shown.chars().count(), super::NAME_MAX);
        assert!(svg.contains(&format!(">{shown}<title>{name}</title></text>")), "{svg}");
    }

    #[test]
    fn equal_values_still_make_a_drawing() {
        let row = Row { label: "a<b", values: vec![2.0, 2.0], mean: None };
        let svg = draw(&[row], "cost", Unit::Money, &|value| format!("{value:.1}"));
        assert!(svg.contains("a&lt;b") && !svg.contains("NaN") && !svg.contains("inf"));
    }
}
