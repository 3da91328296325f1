//! Numbers in few bytes: differences, runs, and no more digits than a chart can show.

use serde::ser::{Serialize, SerializeSeq, Serializer};

use crate::domain::SimTime;

/// Whole tenths of a second since the start.
pub(super) fn tenths(at: SimTime) -> i64 {
    at.as_micros().div_euclid(100_000)
}

/// `value` to `digits` significant digits.
pub(super) fn significant(value: f64, digits: i32) -> f64 {
    if value.abs() <= 0.0 || !value.is_finite() {
        return 0.0;
    }
    let magnitude = libm::floor(libm::log10(value.abs())) as i32;
    let decimals = digits - 1 - magnitude;
    let power = |count: i32| (0..count).fold(1.0, |power, _| power * 10.0);
    // Dividing by an exact power of ten gives the nearest number to the decimal, which prints short.
    if decimals >= 0 {
        let scale = power(decimals);
        libm::round(value * scale) / scale
    } else {
        let scale = power(-decimals);
        libm::round(value / scale) * scale
    }
}

/// Values of which three or more in a row that are equal are written as `[value,count]`.
pub(super) struct Runs<T>(pub Vec<T>);

impl<T: Serialize + PartialEq> Serialize for Runs<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut sequence = serializer.serialize_seq(None)?;
        for run in self.0.chunk_by(|one, other| one == other) {
            if run.len() > 2 {
                sequence.serialize_element(&(&run[0], run.len()))?;
            } else {
                for value in run {
                    sequence.serialize_element(value)?;
                }
            }
        }
        sequence.end()
    }
}

/// A number that prints without a fraction where it has none.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Number(pub f64);

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let whole = libm::trunc(self.0);
        if (self.0 - whole).abs() <= 0.0 && whole.abs() < 9e15 {
            serializer.serialize_i64(whole as i64)
        } else {
            serializer.serialize_f64(self.0)
        }
    }
}

/// Each value less the one before it.
pub(super) fn differences(values: impl Iterator<Item = i64>) -> Runs<i64> {
    let mut before = 0;
    Runs(values.map(|value| value - std::mem::replace(&mut before, value)).collect())
}

#[cfg(test)]
mod tests {
    use super::{Number, Runs, differences, significant};

    #[test]
    fn numbers_keep_their_leading_digits_and_print_short() {
        let text = |value: f64| serde_json::to_string(&Number(significant(value, 3))).unwrap();
        let texts: Vec<String> = [0.0, 1.0, 0.123_456, 98_765.4, 999.6, -2.345, 0.000_012_34, 1e21].map(text).into();
        assert_eq!(texts, ["0", "1", "0.123", "98800", "1000", "-2.35", "0.0000123", "1e+21"]);
    }

    #[test]
    fn equal_values_in_a_row_are_written_once() {
        let text = serde_json::to_string(&Runs(vec![Some(5), Some(5), Some(5), None, Some(7), Some(7)])).unwrap();
        assert_eq!(text, "[[5,3],null,7,7]");
        assert_eq!(serde_json::to_string(&differences([10, 12, 14, 16, 10].into_iter())).unwrap(), "[10,[2,3],-6]");
    }
}
