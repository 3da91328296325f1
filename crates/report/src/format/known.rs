//! Figures as far as their intervals let one say them: `$1,190 ± 9`, `12.3 ± 0.4%`, `−5.2% (−5.6 to −3.9)`.
//!
//! The reach of an interval has one digit, two where the first is a 1, and the figure ends at the same place: what stands beyond it is
//! chance. Files for programs have every digit. What must not live here: how an interval is found.

use super::{MINUS, is_zero, mean_count, money_among, percent, span, two_parts};
use crate::domain::Currency;
use crate::domain::words::grouped;

/// What a figure is measured in.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Measure<'c> {
    /// Money of a currency, among amounts of which `largest` is the largest.
    Money {
        /// The currency's code.
        currency: &'c str,
        /// The largest of the amounts.
        largest: f64,
    },
    /// Seconds.
    Seconds,
    /// A share, as a percentage.
    Share,
    /// A difference of shares, in percentage points.
    Points,
    /// A number of things, perhaps a mean.
    Count,
}

/// A figure with its interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct IntervalFigure {
    /// The figure.
    pub mean: f64,
    /// The lower end of its interval; none without one.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// Whether the ends are said, and not how far they are off: one is much further off, or is where the figure cannot go beyond.
    pub ends: bool,
    /// Whether a figure above zero has a sign, as differences have.
    pub signed: bool,
}

/// How numbers of one figure are written.
#[derive(Clone, Copy)]
struct Scale {
    prefix: &'static str,
    suffix: &'static str,
    factor: f64,
    /// The last place that is written, as a power of ten: -2 for hundredths.
    last: i32,
}

impl IntervalFigure {
    /// The figure with its interval: `$1,190 ± 9`.
    pub fn text(&self, measure: Measure<'_>) -> String {
        self.rounded_text(measure, self.reach().unwrap_or(0.0))
    }

    /// The same, rounded as an interval that reaches this far allows.
    fn rounded_text(&self, measure: Measure<'_>, rounding: f64) -> String {
        let Some((scale, reach)) = self.scale(measure, rounding) else {
            let (mean, reach) = self.rounded_parts(measure, rounding);
            return format!("{mean}{}", in_words(&reach));
        };
        if self.ends {
            return format!("{}{} ({})", self.number(&scale), scale.suffix, self.both_ends(&scale));
        }
        format!("{} \u{b1} {}{}", self.number(&scale), scale.plain(reach), scale.suffix)
    }

    /// The figure, and its interval by itself: `$1,190` and `± 9`; the second is empty without one.
    pub fn parts(&self, measure: Measure<'_>) -> (String, String) {
        self.rounded_parts(measure, self.reach().unwrap_or(0.0))
    }

    fn rounded_parts(&self, measure: Measure<'_>, rounding: f64) -> (String, String) {
        let reach = self.reach();
        if let Some((scale, reach)) = self.scale(measure, rounding) {
            let mean = format!("{}{}", self.number(&scale), scale.suffix);
            let range = if self.ends { self.both_ends(&scale) } else { format!("\u{b1} {}", scale.plain(reach)) };
            return (mean, range);
        }
        if let Some(reach) = reach.filter(|reach| measure == Measure::Seconds && *reach >= 0.5) {
            return self.long(reach, rounding);
        }
        (with_sign(self.mean, self.signed, &plain(measure, self.mean.abs())), String::new())
    }

    /// The ends alone: `$1,181 to $1,199`.
    pub fn range(&self, measure: Measure<'_>) -> String {
        let interval_figure = Self { ends: true, ..*self };
        if let Some((scale, _)) = interval_figure.scale(measure, interval_figure.reach().unwrap_or(0.0)) {
            return format!("{}{}", interval_figure.ends_with_prefix(&scale, scale.prefix), scale.suffix);
        }
        let (mean, range) = interval_figure.parts(measure);
        if range.is_empty() { mean } else { range }
    }

    fn reach(&self) -> Option<f64> {
        Some((self.high? - self.low?) / 2.0).filter(|reach| *reach > 0.0 && reach.is_finite())
    }

    /// The number that people read.
    fn shown(&self, measure: Measure<'_>, rounding: f64) -> f64 {
        let is_long = measure == Measure::Seconds && self.reach().is_some_and(|reach| reach >= 0.5);
        match self.scale(measure, rounding) {
            Some((scale, _)) => scale.rounded(self.mean.abs()).copysign(self.mean) / scale.factor,
            None if is_long => libm::round(self.mean / step(rounding) as f64) * step(rounding) as f64,
            None => self.mean,
        }
    }

    /// How the numbers are written, with the reach among them; `None` without one that is worth a digit, and for long spans.
    fn scale(&self, measure: Measure<'_>, rounding: f64) -> Option<(Scale, f64)> {
        let reach = self.reach()?;
        let size = self.mean.abs();
        let (prefix, suffix, factor, least) = match measure {
            Measure::Money { currency, largest } => {
                let sign = Currency::from_code(currency).map_or("", Currency::sign);
                (sign, "", 1.0, if largest.abs() < 9.999_95 { -4 } else { -2 })
            }
            Measure::Share => ("", "%", 100.0, -1),
            Measure::Points => ("", " points", 100.0, -1),
            Measure::Count => ("", "", 1.0, if size < 10.0 { -2 } else { -1 }),
            Measure::Seconds => match size.max(reach) {
                s if s < 0.000_999_5 => ("", " ms", 1e3, -2),
                s if s < 0.099_95 => ("", " ms", 1e3, -1),
                s if s < 0.999_5 => ("", " ms", 1e3, 0),
                s if s < 59.95 => ("", " s", 1.0, -1),
                _ => return None,
            },
        };
        let last = place(rounding * factor).max(least);
        let mut scale = Scale { prefix, suffix, factor, last };
        // A further place where rounding would say what is not so: that something is nothing, or may be nothing.
        let is_right = |scale: &Scale| {
            scale.rounded(reach) > 0.0 && self.is_told_rightly(reach, scale, Scale { last: least, ..*scale })
        };
        while scale.last > least && !is_right(&scale) {
            scale.last -= 1;
        }
        if scale.rounded(reach) <= 0.0 {
            return None;
        }
        // Nobody writes tenths of a dollar.
        if matches!(measure, Measure::Money { .. }) && scale.last == -1 {
            scale.last = -2;
        }
        Some((scale, reach))
    }

    /// Whether rounding leaves something more than nothing, and an interval without zero one without zero, as far as `finest` does.
    fn is_told_rightly(&self, reach: f64, scale: &Scale, finest: Scale) -> bool {
        let as_said = |scale: &Scale| {
            let (size, reach) = (scale.rounded(self.mean.abs()), scale.rounded(reach));
            let end = |value: Option<f64>| scale.rounded(value.unwrap_or(self.mean).abs()) > 0.0;
            (size > 0.0, if self.ends { end(self.low) && end(self.high) } else { size > reach })
        };
        as_said(scale) == as_said(&finest)
    }

    fn number(&self, scale: &Scale) -> String {
        with_sign(self.mean, self.signed, &format!("{}{}", scale.prefix, scale.plain(self.mean.abs())))
    }

    fn both_ends(&self, scale: &Scale) -> String {
        self.ends_with_prefix(scale, "")
    }

    fn ends_with_prefix(&self, scale: &Scale, prefix: &str) -> String {
        let end = |value: Option<f64>| {
            let value = value.unwrap_or(self.mean);
            with_sign(value, self.signed, &format!("{prefix}{}", scale.plain(value.abs())))
        };
        format!("{} to {}", end(self.low), end(self.high))
    }

    /// The parts of a span of a minute or more.
    fn long(&self, reach: f64, rounding: f64) -> (String, String) {
        let step = step(rounding);
        let say = |seconds: f64, signed: bool| with_sign(seconds, signed, &stepped(seconds.abs(), step));
        let range = match (self.low, self.high) {
            (Some(low), Some(high)) if self.ends => {
                format!("{} to {}", say(low, self.signed), say(high, self.signed))
            }
            _ => format!("\u{b1} {}", stepped(reach, step)),
        };
        (say(self.mean, self.signed), range)
    }
}

/// Figures of one column, rounded alike: as the widest of their intervals allows. Rounding is finer where it would turn two figures
/// round, or show two as equal whose intervals do not meet. A figure that is known much better shows its own interval.
pub fn column(all: &[Option<IntervalFigure>], measure: Measure<'_>) -> Vec<Option<String>> {
    let reaches = || all.iter().flatten().filter_map(IntervalFigure::reach);
    let narrowest = reaches().fold(f64::INFINITY, f64::min);
    let mut rounding = reaches().fold(0.0, f64::max);
    while rounding > narrowest && misleads(all, measure, rounding) {
        rounding = (rounding / 10.0).max(narrowest);
    }
    all.iter().map(|known| Some(known.as_ref()?.rounded_text(measure, rounding))).collect()
}

/// Whether figures that are rounded so read in another order than theirs, or as equal though their intervals do not meet.
fn misleads(all: &[Option<IntervalFigure>], measure: Measure<'_>, rounding: f64) -> bool {
    let mut sorted: Vec<&IntervalFigure> = all.iter().flatten().collect();
    sorted.sort_by(|a, b| a.mean.total_cmp(&b.mean));
    sorted.windows(2).any(|pair| {
        let [lower, higher] = [0, 1].map(|at| pair[at].shown(measure, rounding));
        let apart = pair[0].high.zip(pair[1].low).is_some_and(|(high, low)| high < low);
        lower > higher || (apart && lower >= higher)
    })
}

/// An interval behind its figure.
fn in_words(reach: &str) -> String {
    match reach {
        "" => String::new(),
        reach if reach.starts_with('\u{b1}') => format!(" {reach}"),
        ends => format!(" ({ends})"),
    }
}

impl Scale {
    fn rounded(&self, value: f64) -> f64 {
        let unit = libm::pow(10.0, f64::from(self.last));
        libm::round(value * self.factor / unit) * unit
    }

    fn plain(&self, value: f64) -> String {
        let decimals = usize::try_from(-self.last).unwrap_or(0);
        grouped(&format!("{:.decimals$}", self.rounded(value)))
    }
}

/// A figure above or at zero without any interval.
fn plain(measure: Measure<'_>, size: f64) -> String {
    match measure {
        Measure::Money { currency, largest } => money_among(currency, size, largest),
        Measure::Seconds => span(size),
        Measure::Share => percent(size),
        Measure::Points => format!("{:.1} points", size * 100.0),
        Measure::Count => mean_count(size),
    }
}

fn with_sign(value: f64, signed: bool, text: &str) -> String {
    match value {
        // What rounds to nothing has no sign.
        _ if is_zero(text) => text.to_owned(),
        value if value < 0.0 => format!("{MINUS}{text}"),
        value if value > 0.0 && signed => format!("+{text}"),
        _ => text.to_owned(),
    }
}

/// The place of a reach's last digit as a power of ten: that of its first, and of its second where the first is a 1.
fn place(reach: f64) -> i32 {
    let first = libm::floor(libm::log10(reach));
    let leading = reach / libm::pow(10.0, first);
    let item = if leading < 1.95 { first - 1.0 } else { first };
    item.clamp(-9.0, 15.0) as i32
}

/// The steps in which a span of a minute or more is said whose interval reaches so far.
fn step(reach: f64) -> i64 {
    match reach {
        s if s < 20.0 => 1,
        s if s < 200.0 => 10,
        s if s < 1_200.0 => 60,
        s if s < 7_200.0 => 600,
        _ => 3_600,
    }
}

/// A duration in whole steps of `step` seconds, without parts that are zero: `4m`, `4m10s`, `40 s`, `2h10m`.
fn stepped(seconds: f64, step: i64) -> String {
    let whole = |step: i64| libm::round(seconds / step as f64) as i64 * step;
    let all = whole(step);
    match all {
        s if s < 60 => format!("{s} s"),
        s if s < 3_600 => two_parts((s / 60, "m"), (s % 60, "s")),
        s if s < 48 * 3_600 => {
            let minutes = whole(step.max(60)) / 60;
            two_parts((minutes / 60, "h"), (minutes % 60, "m"))
        }
        _ => {
            let hours = whole(3_600) / 3_600;
            two_parts((hours / 24, "d"), (hours % 24, "h"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{IntervalFigure, Measure, column};

    const DOLLARS: Measure<'_> = Measure::Money { currency: "USD", largest: 1_000.0 };

    fn known(mean: f64, reach: f64) -> IntervalFigure {
        IntervalFigure { mean, low: Some(mean - reach), high: Some(mean + reach), ends: false, signed: false }
    }

    #[test]
    fn a_figure_ends_where_its_interval_begins() {
        let cases = [
            (known(1_190.14, 9.0), DOLLARS, "$1,190 \u{b1} 9"),
            (known(1_190.14, 14.3), DOLLARS, "$1,190 \u{b1} 14"),
            (known(1_234_567.0, 23_456.0), DOLLARS, "$1,230,000 \u{b1} 20,000"),
            (known(12.346, 0.41), DOLLARS, "$12.35 \u{b1} 0.41"),
            (known(12.346, 0.000_4), DOLLARS, "$12.35"),
            (known(0.123, 0.004), Measure::Share, "12.3 \u{b1} 0.4%"),
            (known(0.123, 0.04), Measure::Share, "12 \u{b1} 4%"),
            (known(3.256, 0.12), Measure::Count, "3.26 \u{b1} 0.12"),
            (known(325.6, 31.0), Measure::Count, "330 \u{b1} 30"),
            (known(12.34, 0.4), Measure::Seconds, "12.3 \u{b1} 0.4 s"),
            (known(0.25, 0.012), Measure::Seconds, "250 \u{b1} 12 ms"),
            (known(247.0, 33.0), Measure::Seconds, "4m10s \u{b1} 30 s"),
            (known(7_385.0, 700.0), Measure::Seconds, "2h03m \u{b1} 12m"),
            (known(200_000.0, 9_000.0), Measure::Seconds, "2d08h \u{b1} 3h"),
            (known(247.0, 0.1), Measure::Seconds, "4m07s"),
        ];
        for (key, measure, expected) in cases {
            assert_eq!(key.text(measure), expected, "{key:?}");
        }
    }

    #[test]
    fn asymmetric_interval_shows_both_ends() {
        let interval_figure =
            IntervalFigure { mean: -0.052, low: Some(-0.056), high: Some(-0.039), ends: true, signed: true };
        assert_eq!(interval_figure.text(Measure::Share), "\u{2212}5.2% (\u{2212}5.6 to \u{2212}3.9)");
        assert_eq!(
            interval_figure.parts(Measure::Points),
            ("\u{2212}5.2 points".to_owned(), "\u{2212}5.6 to \u{2212}3.9".to_owned())
        );
        let interval_figure = IntervalFigure { mean: 0.2, low: Some(-3.0), high: Some(7.0), ends: true, signed: true };
        assert_eq!(interval_figure.text(DOLLARS), "+$0.20 (\u{2212}3.00 to +7.00)");
        let interval_figure = IntervalFigure { signed: true, ..known(4.0, 38.0) };
        assert_eq!(interval_figure.text(Measure::Count), "+4 \u{b1} 38");
        assert_eq!(known(1_190.0, 9.0).range(DOLLARS), "$1,181 to $1,199");
        assert_eq!(known(1.04, 0.96).text(Measure::Share), "104 \u{b1} 96%");
        assert_eq!(known(0.96, 1.04).text(Measure::Share), "100 \u{b1} 100%");
        let long = IntervalFigure { mean: 300.0, low: Some(240.0), high: Some(600.0), ends: true, signed: false };
        assert_eq!(long.text(Measure::Seconds), "5m (4m to 10m)");
    }

    fn texts(all: &[IntervalFigure], measure: Measure<'_>) -> Vec<String> {
        column(&all.iter().copied().map(Some).collect::<Vec<_>>(), measure).into_iter().flatten().collect()
    }

    #[test]
    fn column_is_rounded_by_its_widest_interval() {
        let waits = texts(&[known(57.1, 17.0), known(56.9, 40.0)], Measure::Seconds);
        assert_eq!(waits, ["60 \u{b1} 20 s", "60 \u{b1} 40 s"]);
        let costs = texts(&[known(1_190.14, 9.0), known(2_418.4, 140.0), known(880.0, 0.0)], DOLLARS);
        assert_eq!(costs, ["$1,190 \u{b1} 10", "$2,420 \u{b1} 140", "$880.00"]);
        let none = column(&[None, Some(known(3.0, 1.0))], Measure::Count);
        assert_eq!(none, [None, Some("3.0 \u{b1} 1.0".to_owned())]);
    }

    #[test]
    fn rounding_never_turns_an_order_round() {
        // The widest interval would say that the exact one is the least.
        let this_texts = texts(&[known(57.1, 17.0), known(58.0, 0.0), known(56.9, 40.0)], Measure::Seconds);
        assert_eq!(this_texts, ["57 \u{b1} 17 s", "58 s", "57 \u{b1} 40 s"]);
        // Two whose intervals do not meet are not shown as equal.
        let this_texts = texts(&[known(1_012.0, 2.0), known(1_018.0, 2.0), known(9_100.0, 900.0)], DOLLARS);
        assert_eq!(this_texts, ["$1,012 \u{b1} 2", "$1,018 \u{b1} 2", "$9,100 \u{b1} 900"]);
        // What is known better shows its interval.
        let texts = texts(&[known(12.0, 0.3), known(460.0, 90.0)], Measure::Count);
        assert_eq!(texts, ["12.0 \u{b1} 0.3", "460 \u{b1} 90"]);
    }

    #[test]
    fn zero_has_no_sign_however_it_is_written() {
        let near = |mean, reach| IntervalFigure { signed: true, ..known(mean, reach) };
        assert_eq!(near(-4.0, 120.0).text(Measure::Seconds), "0 s \u{b1} 2m");
        let single = IntervalFigure { low: None, high: None, ..near(-0.000_1, 0.0) };
        assert_eq!(single.text(Measure::Points), "0.0 points");
        assert_eq!(IntervalFigure { mean: 0.000_1, ..single }.text(Measure::Points), "0.0 points");
    }

    #[test]
    fn without_an_interval_a_figure_is_as_ever() {
        let interval_figure = IntervalFigure { mean: 1_190.14, low: None, high: None, ends: false, signed: true };
        assert_eq!(interval_figure.text(DOLLARS), "+$1,190.14");
        assert_eq!(interval_figure.parts(Measure::Count), ("+1,190.1".to_owned(), String::new()));
        assert_eq!(known(0.123, 0.0).text(Measure::Share), "12.3%");
    }
}
