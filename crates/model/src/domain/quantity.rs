//! Kubernetes quantities (`100m`, `2G`, `1.5Gi`, `1e3`), read exactly.
//!
//! Source: apimachinery `pkg/api/resource/quantity.go` (Kubernetes 1.36).

use std::fmt;
use std::str::FromStr;

const NANO: i128 = 1_000_000_000;

/// An exact quantity in nano-units. Finer parts are rounded up, as the API server does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Quantity(i128);

/// Why a text is not a quantity.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum QuantityError {
    /// Neither a plain number nor a number with a known suffix.
    #[error("is not a Kubernetes quantity")]
    Malformed,
    /// A suffix such as `GB` that Kubernetes does not know.
    #[error("has the unknown suffix `{0}`")]
    UnknownSuffix(String),
    /// Beyond 2⁶³-1 units.
    #[error("is too large")]
    TooLarge,
}

impl Quantity {
    /// The quantity of `nanos` nano-units.
    pub const fn from_nanos(nanos: i128) -> Self {
        Self(nanos)
    }

    /// The value in units, rounded up (`Quantity.Value`).
    pub fn value(self) -> i64 {
        self.rounded_up(NANO)
    }

    /// The value in thousandths, rounded up (`Quantity.MilliValue`).
    pub fn milli_value(self) -> i64 {
        self.rounded_up(NANO / 1_000)
    }

    /// The exact value in nano-units.
    pub const fn nanos(self) -> i128 {
        self.0
    }

    /// The value as the nearest float that `Quantity.AsApproximateFloat64` gives for its canonical form: an integer times a
    /// power of a thousand. For models and ratios only.
    pub fn as_f64(self) -> f64 {
        let (mantissa, unit) = match () {
            () if self.0 % NANO == 0 => (self.0 / NANO, 1.0),
            () if self.0 % 1_000_000 == 0 => (self.0 / 1_000_000, 1e-3),
            () if self.0 % 1_000 == 0 => (self.0 / 1_000, 1e-6),
            () => (self.0, 1e-9),
        };
        mantissa as f64 * unit
    }

    fn rounded_up(self, unit: i128) -> i64 {
        let quotient = self.0.div_euclid(unit) + i128::from(self.0.rem_euclid(unit) != 0);
        i64::try_from(quotient).unwrap_or(if quotient < 0 { i64::MIN } else { i64::MAX })
    }
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let (negative, rest) = match text.as_bytes().first() {
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            _ => (false, text),
        };
        let number_end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, suffix) = rest.split_at(number_end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return Err(QuantityError::Malformed);
        }
        let (base_two_power, ten_power) = suffix_powers(suffix)?;
        let digits = format!("{whole}{fraction}");
        let digits = digits.trim_start_matches('0');
        if digits.len() > 27 {
            return Err(QuantityError::TooLarge);
        }
        let mantissa: i128 =
            if digits.is_empty() { 0 } else { digits.parse().map_err(|_| QuantityError::Malformed)? };
        let exponent = ten_power + 9 - i32::try_from(fraction.len()).map_err(|_| QuantityError::TooLarge)?;
        let scaled = mantissa.checked_mul(1_i128 << base_two_power).ok_or(QuantityError::TooLarge)?;
        let nanos = match exponent {
            0..=36 => scaled.checked_mul(10_i128.pow(exponent.unsigned_abs())).ok_or(QuantityError::TooLarge)?,
            37.. if scaled == 0 => 0,
            37.. => return Err(QuantityError::TooLarge),
            _ => {
                let divisor = 10_i128.checked_pow(exponent.unsigned_abs()).unwrap_or(i128::MAX);
                scaled.div_euclid(divisor) + i128::from(scaled.rem_euclid(divisor) != 0)
            }
        };
        if nanos > i128::from(i64::MAX) * NANO {
            return Err(QuantityError::TooLarge);
        }
        Ok(Self(if negative { -nanos } else { nanos }))
    }
}

/// The power of two and the power of ten that a suffix stands for.
fn suffix_powers(suffix: &str) -> Result<(u32, i32), QuantityError> {
    Ok(match suffix {
        "" => (0, 0),
        "n" => (0, -9),
        "u" => (0, -6),
        "m" => (0, -3),
        "k" => (0, 3),
        "M" => (0, 6),
        "G" => (0, 9),
        "T" => (0, 12),
        "P" => (0, 15),
        "E" => (0, 18),
        "Ki" => (10, 0),
        "Mi" => (20, 0),
        "Gi" => (30, 0),
        "Ti" => (40, 0),
        "Pi" => (50, 0),
        "Ei" => (60, 0),
        _ => {
            let exponent = suffix.strip_prefix(['e', 'E']).and_then(|digits| digits.parse::<i32>().ok());
            match exponent {
                Some(power) if power.abs() <= 40 => (0, power),
                Some(_) => return Err(QuantityError::TooLarge),
                None if suffix.bytes().all(|b| b.is_ascii_alphabetic()) => {
                    return Err(QuantityError::UnknownSuffix(suffix.to_owned()));
                }
                None => return Err(QuantityError::Malformed),
            }
        }
    })
}

/// Writes a byte count with the largest binary suffix that divides it (`6166575Ki`, `300Mi`, `17`).
pub fn format_bytes(bytes: i64) -> String {
    for (suffix, shift) in [("Ei", 60), ("Pi", 50), ("Ti", 40), ("Gi", 30), ("Mi", 20), ("Ki", 10)] {
        let unit = 1_i64 << shift;
        if bytes != 0 && bytes % unit == 0 {
            return format!("{}{suffix}", bytes / unit);
        }
    }
    bytes.to_string()
}

/// Writes a count of thousandths as Kubernetes prints CPU (`3825m`, `4`).
pub fn format_milli(milli: i64) -> String {
    if milli % 1_000 == 0 { (milli / 1_000).to_string() } else { format!("{milli}m") }
}

/// Writes the quantity in plain form: an integer, or thousandths, or nano-units.
impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 % NANO == 0 {
            write!(f, "{}", self.0 / NANO)
        } else if self.0 % 1_000_000 == 0 {
            write!(f, "{}m", self.0 / 1_000_000)
        } else {
            write!(f, "{}n", self.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Quantity, QuantityError, format_bytes, format_milli};

    fn quantity(text: &str) -> Result<Quantity, QuantityError> {
        text.parse()
    }

    #[test]
    fn quantities_become_the_floats_that_kubernetes_computes() {
        for (text, value) in [("0.01", 0.01), ("75m", 0.075), ("1", 1.0), ("0.0005", 500.0 * 1e-6)] {
            assert_eq!(text.parse().map(Quantity::as_f64), Ok(value), "{text}");
        }
    }

    #[test]
    fn decimal_and_binary_suffixes_are_exact() {
        for (text, nanos) in [
            ("1", 1_000_000_000_i128),
            ("100m", 100_000_000),
            ("2G", 2_000_000_000_000_000_000),
            ("1.5Gi", 1_610_612_736_000_000_000),
            ("0.1", 100_000_000),
            (".5", 500_000_000),
            ("5.", 5_000_000_000),
            ("1e3", 1_000_000_000_000),
            ("1E-3", 1_000_000),
            ("12u", 12_000),
            ("-3", -3_000_000_000),
            ("0", 0),
        ] {
            assert_eq!(quantity(text), Ok(Quantity::from_nanos(nanos)), "{text}");
        }
    }

    #[test]
    fn rounding_goes_up_as_the_api_server_rounds() {
        assert_eq!(quantity("1500m").map(Quantity::value), Ok(2));
        assert_eq!(quantity("0.0001").map(Quantity::milli_value), Ok(1));
        assert_eq!(quantity("0.1n").map(Quantity::nanos), Ok(1));
    }

    #[test]
    fn malformed_texts_say_what_is_wrong() {
        assert_eq!(quantity("4GB"), Err(QuantityError::UnknownSuffix("GB".to_owned())));
        assert_eq!(quantity(""), Err(QuantityError::Malformed));
        assert_eq!(quantity("1 Gi"), Err(QuantityError::Malformed));
        assert_eq!(quantity("ten"), Err(QuantityError::Malformed));
        assert_eq!(quantity("9999999999999999999999999999"), Err(QuantityError::TooLarge));
        assert_eq!(quantity("10E"), Err(QuantityError::TooLarge));
    }

    #[test]
    fn formatting_uses_the_largest_exact_suffix() {
        assert_eq!(format_bytes(6_166_575 * 1_024), "6166575Ki");
        assert_eq!(format_bytes(300 << 20), "300Mi");
        assert_eq!(format_milli(3_825), "3825m");
        assert_eq!(format_milli(4_000), "4");
    }
}
