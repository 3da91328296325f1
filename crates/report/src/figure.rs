//! Figure: a number with its unit, its rounding rule, and its interval if it has one.
//!
//! Must not: compute a metric or an interval.

use super::format::{self, IntervalFigure, Measure};
use super::page::text;
use crate::domain::Currency;

/// The unit of a figure, and the rule by which it is rounded.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Unit {
    /// As precise as the interval allows.
    Measured(Measure<'static>),
    /// A price per hour, with four decimals.
    PerHour(Currency),
    /// Whole.
    Whole,
    /// This number of decimals.
    Decimals(usize),
}

/// A number for a table or a sentence.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Figure {
    known: IntervalFigure,
    unit: Unit,
    estimated: bool,
}

impl Figure {
    /// A value without an interval.
    pub const fn new(value: f64, unit: Unit) -> Self {
        let known = IntervalFigure { mean: value, low: None, high: None, ends: false, signed: false };
        Self { known, unit, estimated: false }
    }

    /// A value with its interval.
    pub const fn measured(known: IntervalFigure, measure: Measure<'static>) -> Self {
        Self { known, unit: Unit::Measured(measure), estimated: false }
    }

    /// Seconds.
    pub const fn seconds(value: f64) -> Self {
        Self::new(value, Unit::Measured(Measure::Seconds))
    }

    /// A share, as a percentage.
    pub const fn share(value: f64) -> Self {
        Self::new(value, Unit::Measured(Measure::Share))
    }

    /// A whole number.
    pub const fn whole(value: f64) -> Self {
        Self::new(value, Unit::Whole)
    }

    /// A number with `decimals` decimals.
    pub const fn decimals(value: f64, decimals: usize) -> Self {
        Self::new(value, Unit::Decimals(decimals))
    }

    /// Money of the currency with this code, with as many decimals as `largest` has.
    pub fn money(currency: &str, value: f64, largest: f64) -> Self {
        let currency = Currency::from_code(currency).map_or("", Currency::code);
        Self::new(value, Unit::Measured(Measure::Money { currency, largest }))
    }

    /// The same with a `~` before it if it is `estimated`.
    pub const fn estimated(self, estimated: bool) -> Self {
        Self { estimated, ..self }
    }

    /// The number as it is, without rounding.
    pub const fn value(&self) -> f64 {
        self.known.mean
    }

    /// The ends of its interval.
    pub fn interval(&self) -> Option<(f64, f64)> {
        self.known.low.zip(self.known.high)
    }

    /// The figure in words: `$1,190 ± 9`.
    pub fn text(&self) -> String {
        let value = self.known.mean;
        let text = match self.unit {
            Unit::Measured(measure) => self.known.text(measure),
            Unit::PerHour(currency) => format::hourly(currency, value),
            Unit::Whole => format::whole(value),
            Unit::Decimals(decimals) => format!("{value:.decimals$}"),
        };
        if self.estimated { format!("~{text}") } else { text }
    }

    /// The figure as HTML, its interval in a `span`, which a style may put below it.
    pub fn html(&self) -> String {
        let all = self.text();
        let range = || all.find(" (").filter(|_| self.interval().is_some());
        match all.find(" \u{b1}").or_else(range) {
            Some(at) => format!("{}<span>{}</span>", text(&all[..at]), text(&all[at..])),
            None => text(&all),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Figure, Unit};
    use crate::domain::Currency;
    use crate::format::{IntervalFigure, Measure};

    #[test]
    fn each_unit_has_its_rounding() {
        let cases = [
            (Figure::seconds(73.4), "1m13s"),
            (Figure::share(0.4271), "42.7%"),
            (Figure::whole(41_207.6), "41,208"),
            (Figure::decimals(2.71449, 3), "2.714"),
            (Figure::money("CNY", 0.5, 12.0), "¥0.50"),
            (Figure::money("XYZ", 0.5, 0.5), "0.5000"),
            (Figure::new(0.0731, Unit::PerHour(Currency::Usd)).estimated(true), "~$0.0731"),
        ];
        for (figure, text) in cases {
            assert_eq!(figure.text(), text, "{figure:?}");
        }
    }

    #[test]
    fn interval_limits_digits_and_has_own_element() {
        let known = IntervalFigure { mean: 417.31, low: Some(394.0), high: Some(440.6), ends: false, signed: true };
        let figure = Figure::measured(known, Measure::Count);
        assert_eq!((figure.text().as_str(), figure.interval()), ("+420 ± 20", Some((394.0, 440.6))));
        assert_eq!(figure.html(), "+420<span> ± 20</span>");
        let ends = Figure::measured(IntervalFigure { ends: true, ..known }, Measure::Count);
        assert_eq!(ends.html(), "+420<span> (+390 to +440)</span>");
        assert_eq!(Figure::seconds(2.0).html(), "2 s");
    }
}
