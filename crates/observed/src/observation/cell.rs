//! Cells of tables: how each kind of value is written and read. What is written is read back to the bit.

use std::fmt::Write as _;
use std::sync::Arc;

use nodecast_model::domain::{HourlyRate, Money, SimDuration, SimTime};
use nodecast_model::text::cells::{csv_cell, from_csv_cell};

/// A value that a cell may hold.
pub(super) trait Cell: Sized {
    /// The value that `text` is; `None` if it is none.
    fn read(text: &str) -> Option<Self>;
    /// Adds the value to a text.
    fn show(&self, to: &mut String);
}

impl Cell for String {
    fn read(text: &str) -> Option<Self> {
        Some(from_csv_cell(text).to_owned())
    }

    fn show(&self, to: &mut String) {
        to.push_str(&csv_cell(self));
    }
}

impl Cell for Arc<str> {
    fn read(text: &str) -> Option<Self> {
        Some(from_csv_cell(text).into())
    }

    fn show(&self, to: &mut String) {
        to.push_str(&csv_cell(self));
    }
}

macro_rules! plain {
    ($($kind:ty),*) => {
        $(impl Cell for $kind {
            fn read(text: &str) -> Option<Self> {
                text.parse().ok()
            }

            fn show(&self, to: &mut String) {
                let _ = write!(to, "{self}");
            }
        })*
    };
}
plain!(i64, bool);

impl Cell for f64 {
    fn read(text: &str) -> Option<Self> {
        text.parse().ok().filter(|value: &Self| value.is_finite())
    }

    /// The shortest decimal that reads back as the value.
    fn show(&self, to: &mut String) {
        let _ = write!(to, "{self}");
    }
}

/// Billionths of a decimal with at most so many decimals; exact.
fn scaled(text: &str, decimals: usize) -> Option<i128> {
    let (negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let plain = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || whole.len() > 20 || fraction.len() > decimals || !plain(whole) || !plain(fraction) {
        return None;
    }
    let padded: i128 = format!("{fraction:0<decimals$}").parse().ok()?;
    let value = whole.parse::<i128>().ok()? * 10_i128.pow(decimals as u32) + padded;
    Some(if negative { -value } else { value })
}

/// Adds seconds as the tables of runs have them: exact to the microsecond, without zeros at the end.
pub(super) fn seconds(micros: i64, to: &mut String) {
    let magnitude = micros.unsigned_abs();
    let sign = if micros < 0 { "-" } else { "" };
    let _ = write!(to, "{sign}{}", magnitude / 1_000_000);
    if !magnitude.is_multiple_of(1_000_000) {
        let _ = write!(to, ".{:06}", magnitude % 1_000_000);
        to.truncate(to.trim_end_matches('0').len());
    }
}

impl Cell for SimTime {
    fn read(text: &str) -> Option<Self> {
        i64::try_from(scaled(text, 6)?).ok().map(Self::from_micros)
    }

    fn show(&self, to: &mut String) {
        seconds(self.as_micros(), to);
    }
}

impl Cell for SimDuration {
    fn read(text: &str) -> Option<Self> {
        i64::try_from(scaled(text, 6)?).ok().map(Self::from_micros)
    }

    fn show(&self, to: &mut String) {
        seconds(self.as_micros(), to);
    }
}

impl Cell for Money {
    fn read(text: &str) -> Option<Self> {
        scaled(text, 9).map(Self::from_nanos)
    }

    fn show(&self, to: &mut String) {
        let _ = write!(to, "{self}");
    }
}

impl Cell for HourlyRate {
    fn read(text: &str) -> Option<Self> {
        Self::parse(text)
    }

    fn show(&self, to: &mut String) {
        let _ = write!(to, "{self}");
    }
}

impl<T: Cell> Cell for Option<T> {
    fn read(text: &str) -> Option<Self> {
        if text.is_empty() { Some(None) } else { T::read(text).map(Some) }
    }

    fn show(&self, to: &mut String) {
        if let Some(item) = self {
            item.show(to);
        }
    }
}

#[cfg(test)]
mod tests {
    use nodecast_model::domain::{Money, SimTime};

    use super::Cell;

    fn shown<C: Cell>(cell: &C) -> String {
        let mut text = String::new();
        cell.show(&mut text);
        text
    }

    #[test]
    fn what_is_written_is_read_back() {
        for micros in [0, 1, -1, 60_000_000, 93_500_000, -7_040_200, i64::MIN, i64::MAX] {
            let at = SimTime::from_micros(micros);
            assert_eq!(SimTime::read(&shown(&at)), Some(at));
        }
        assert_eq!(shown(&SimTime::from_micros(93_500_000)), "93.5");
        for value in [0.1, 1.0 / 3.0, 1e-300, 12_345_678.9] {
            assert_eq!(f64::read(&shown(&value)).map(f64::to_bits), Some(value.to_bits()));
        }
        assert_eq!(Money::read("-0.000000001"), Some(Money::from_nanos(-1)));
        assert_eq!((f64::read("NaN"), SimTime::read("1.2.3"), bool::read("yes")), (None, None, None));
        assert_eq!((Option::<i64>::read(""), Option::<i64>::read("x")), (Some(None), None));
    }
}
