//! Axis: a range of values, its round ticks, and their labels, for every chart that Rust draws.
//!
//! Must not: draw, or know a position on a page.

use crate::domain::Currency;
use crate::domain::words::grouped;
use crate::format::{Measure, negative};

/// A value axis.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Axis<'c> {
    measure: Measure<'c>,
    low: f64,
    high: f64,
}

/// Ticks that an axis has at most.
const TICKS_MAX: u32 = 8;

/// Seconds that read well as steps, from a second to four weeks.
const STEPS_OF_TIME: [f64; 20] = [
    1.0,
    2.0,
    5.0,
    10.0,
    15.0,
    30.0,
    60.0,
    120.0,
    300.0,
    600.0,
    1_800.0,
    3_600.0,
    7_200.0,
    21_600.0,
    43_200.0,
    86_400.0,
    172_800.0,
    604_800.0,
    1_209_600.0,
    2_419_200.0,
];

impl<'c> Axis<'c> {
    /// The axis from `low` to `high`; a range of nothing gets a margin.
    pub fn new(measure: Measure<'c>, low: f64, high: f64) -> Self {
        if high > low {
            return Self { measure, low, high };
        }
        let margin = if high.abs() > 0.0 { high.abs() * 0.1 } else { 1.0 };
        let low = if low >= 0.0 { (low - margin).max(0.0) } else { low - margin };
        Self { measure, low, high: high + margin }
    }

    /// The axis over `values` with a margin at both ends, which does not reach below zero where no value does.
    pub fn over(measure: Measure<'c>, values: impl Iterator<Item = f64>) -> Self {
        let ends = values.filter(|value| value.is_finite()).fold(None, |ends: Option<(f64, f64)>, value| {
            Some(ends.map_or((value, value), |(low, high)| (low.min(value), high.max(value))))
        });
        let (low, high) = ends.unwrap_or((0.0, 1.0));
        let margin = (high - low) * 0.05;
        let least = if low >= 0.0 { (low - margin).max(0.0) } else { low - margin };
        Self::new(measure, least, high + margin)
    }

    /// Both ends.
    pub const fn ends(&self) -> (f64, f64) {
        (self.low, self.high)
    }

    /// The place of a value: 0 at the lower end, 1 at the upper one.
    pub fn share(&self, value: f64) -> f64 {
        (value - self.low) / (self.high - self.low)
    }

    /// The difference between two ticks: about a quarter of the axis, and round in the axis' unit.
    fn step(&self) -> f64 {
        let rough = (self.high - self.low) / 4.0;
        let power = libm::exp10(libm::floor(libm::log10(rough)));
        // Two and a half minutes are no round time, and there are no halves of things.
        let factors: &[f64] = match self.measure {
            Measure::Money { .. } | Measure::Share | Measure::Points => &[1.0, 2.0, 2.5, 5.0, 10.0],
            Measure::Seconds | Measure::Count => &[1.0, 2.0, 5.0, 10.0],
        };
        let decimal = factors.iter().map(|factor| factor * power).find(|step| *step >= rough).unwrap_or(rough);
        match self.measure {
            Measure::Seconds if rough > 1.0 => STEPS_OF_TIME.into_iter().find(|step| *step >= rough).unwrap_or(decimal),
            Measure::Count => decimal.max(1.0),
            _ => decimal,
        }
    }

    /// Round values with their labels, two to eight where there are as many. No two labels are alike: each has the digits that the step
    /// needs.
    pub fn ticks(&self) -> Vec<(f64, String)> {
        let step = self.step();
        let first = libm::ceil(self.low / step - 1e-9);
        let values = (0..TICKS_MAX).map(|count| (first + f64::from(count)) * step);
        values.take_while(|tick| *tick <= self.high + step * 1e-9).map(|tick| (tick, self.label(tick, step))).collect()
    }

    fn label(&self, value: f64, step: f64) -> String {
        let size = value.abs();
        let text = match self.measure {
            Measure::Money { currency, .. } => {
                let sign = Currency::from_code(currency).map_or("", Currency::sign);
                let decimals = match decimals(step) {
                    0 => 0,
                    few => few.max(2),
                };
                format!("{sign}{}", with_decimals(size, decimals))
            }
            Measure::Share => format!("{}%", with_decimals(size * 100.0, decimals(step * 100.0))),
            Measure::Points => format!("{} points", with_decimals(size * 100.0, decimals(step * 100.0))),
            Measure::Count => with_decimals(size, decimals(step)),
            Measure::Seconds => self.time(size, step),
        };
        if value < 0.0 { negative(&text) } else { text }
    }

    /// A time of which every part down to the step is said.
    fn time(&self, seconds: f64, step: f64) -> String {
        let most = self.low.abs().max(self.high.abs());
        if most < 0.999_5 {
            return format!("{} ms", with_decimals(seconds * 1e3, decimals(step * 1e3)));
        }
        if step < 1.0 || most < 59.95 {
            return format!("{} s", with_decimals(seconds, decimals(step)));
        }
        let all = libm::round(seconds) as i64;
        let parts = [(all / 86_400, "d"), (all / 3_600 % 24, "h"), (all / 60 % 60, "m"), (all % 60, "s")];
        let label = parts.iter().filter(|(count, _)| *count > 0).fold(String::new(), |label, (count, unit)| {
            if label.is_empty() { format!("{count}{unit}") } else { format!("{label}{count:02}{unit}") }
        });
        if label.is_empty() { "0".to_owned() } else { label }
    }

    /// The unit of the axis, for its title.
    pub fn unit(&self) -> &'c str {
        match self.measure {
            Measure::Money { currency, .. } => currency,
            Measure::Seconds => "time",
            Measure::Share => "%",
            Measure::Points => "percentage points",
            Measure::Count => "number",
        }
    }

    /// Whether the axis leaves out zero, so that distances look larger than they are.
    pub fn is_zoomed(&self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }
}

/// Decimals that a multiple of `step` needs.
fn decimals(step: f64) -> usize {
    (0..9).find(|&count| is_whole(step * libm::exp10(count as f64))).unwrap_or(9)
}

fn is_whole(number: f64) -> bool {
    (number - libm::round(number)).abs() < 1e-6 * number.abs().max(1e-9) && libm::round(number).abs() > 0.0
}

fn with_decimals(value: f64, decimals: usize) -> String {
    grouped(&format!("{value:.decimals$}"))
}

#[cfg(test)]
mod tests {
    use super::Axis;
    use crate::format::Measure;

    const EUROS: Measure<'_> = Measure::Money { currency: "CNY", largest: 1.0 };

    fn labels(measure: Measure<'_>, low: f64, high: f64) -> Vec<String> {
        Axis::new(measure, low, high).ticks().into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn labels_have_the_digits_of_the_step() {
        assert_eq!(labels(Measure::Seconds, 60.05, 60.55), ["60.2 s", "60.4 s"]);
        assert_eq!(labels(Measure::Seconds, 56.6, 65.3), ["1m", "1m05s"]);
        assert_eq!(labels(Measure::Seconds, 0.0, 900.0), ["0", "5m", "10m", "15m"]);
        assert_eq!(labels(Measure::Seconds, 0.0, 0.05), ["0 ms", "20 ms", "40 ms"]);
        assert_eq!(labels(Measure::Seconds, 5_400.0, 16_000.0), ["2h", "3h", "4h"]);
        assert_eq!(labels(EUROS, 442.69, 505.71), ["\u{a5}460", "\u{a5}480", "\u{a5}500"]);
        assert_eq!(labels(EUROS, 1.71, 1.74), ["\u{a5}1.71", "\u{a5}1.72", "\u{a5}1.73", "\u{a5}1.74"]);
        assert_eq!(labels(Measure::Share, -0.1, 0.4), ["0%", "20%", "40%"]);
        assert_eq!(labels(Measure::Count, 8.2, 10.1), ["9", "10"]);
        assert_eq!(labels(Measure::Points, -0.011, -0.002)[0], "\u{2212}1.00 points");
    }

    #[test]
    fn no_two_ticks_of_any_axis_are_alike() {
        let measures = [Measure::Seconds, EUROS, Measure::Share, Measure::Points, Measure::Count];
        let mut low = 1.0_f64;
        for round in 0..4_000_u32 {
            low = (low * 7.31 + f64::from(round)) % 99_991.0;
            let width = libm::exp10(f64::from(round % 90) / 10.0 - 4.0);
            for measure in measures {
                let ticks = Axis::new(measure, low - 50_000.0 * f64::from(round % 2), low + width).ticks();
                let labels: std::collections::BTreeSet<&str> = ticks.iter().map(|(_, label)| label.as_str()).collect();
                assert_eq!(labels.len(), ticks.len(), "{measure:?} {low} {width}: {labels:?}");
                assert!(ticks.len() <= 8, "{ticks:?}");
            }
        }
    }

    #[test]
    fn equal_values_still_have_an_axis() {
        for value in [0.0, 4.5, -3.0] {
            let axis = Axis::over(Measure::Count, [value, value].into_iter());
            assert!(axis.share(value).is_finite() && axis.ends().0 < axis.ends().1, "{value}");
        }
        assert!(!Axis::over(Measure::Count, [0.0, 9.0].into_iter()).is_zoomed());
        assert!(Axis::over(Measure::Count, [8.9, 9.0].into_iter()).is_zoomed());
    }
}
