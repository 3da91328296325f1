//! Exact decimal amounts as bills state them.
//!
//! Exports of AWS give ten decimals, one more than [`Money`] has, and a month has millions of lines: so lines are read and summed in a
//! finer unit, and only a sum becomes money. What must not live here: what an amount is of.

use std::fmt;
use std::ops::{Add, AddAssign, Neg, Sub};

use nodecast_model::domain::{HourlyRate, Money};

/// Decimals that are kept.
const DECIMALS: i64 = 12;
/// One whole unit.
const UNIT: i128 = 1_000_000_000_000;
/// Pico-units in a nano-unit of money.
const PICOS_PER_NANO: i128 = 1_000;
/// What an amount in a file must be below, in pico-units: a sum of a hundred million of them still fits.
const LARGEST: i128 = UNIT * 1_000_000_000_000_000_000;

/// A decimal number with twelve decimals, in whatever unit its owner says: a currency, hours, gigabyte-months.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Amount(i128);

impl Amount {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// An amount of `picos` pico-units (10⁻¹²).
    pub const fn from_picos(picos: i128) -> Self {
        Self(picos)
    }

    /// The amount in pico-units.
    pub const fn as_picos(self) -> i128 {
        self.0
    }

    /// Reads a decimal such as `-0.0021505376` or `2.4E-7`, exactly up to twelve decimals; further ones are rounded half away from
    /// zero.
    ///
    /// # Errors
    /// `None` if the text is no decimal number, or is 10¹⁸ or more.
    pub fn parse(text: &str) -> Option<Self> {
        let (negative, unsigned) = match text.as_bytes().first()? {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let (digits, exponent) = match unsigned.split_once(['e', 'E']) {
            Some((digits, exponent)) => (digits, exponent.parse::<i16>().ok()?),
            None => (unsigned, 0),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let mut mantissa: i128 = 0;
        let mut scale = DECIMALS + i64::from(exponent) - i64::try_from(fraction.len()).ok()?;
        for byte in whole.bytes().chain(fraction.bytes()) {
            if !byte.is_ascii_digit() {
                return None;
            }
            // Digits past the 36th significant one cannot be told in a pico-unit of anything below the limit.
            if mantissa < 10_i128.pow(36) {
                mantissa = mantissa * 10 + i128::from(byte - b'0');
            } else {
                scale += 1;
            }
        }
        let picos = scaled(mantissa, scale).filter(|&picos| picos < LARGEST)?;
        Some(Self(if negative { -picos } else { picos }))
    }

    /// The shortest decimal text of a binary number, read exactly: columnar files and JSON state amounts as such.
    ///
    /// # Errors
    /// `None` if it is not finite, or is 10¹⁸ or more.
    pub fn from_f64(number: f64) -> Option<Self> {
        if number.is_finite() { Self::parse(&format!("{number:e}")) } else { None }
    }

    /// The amount as money, rounded half away from zero to a nano-unit.
    pub const fn money(self) -> Money {
        Money::from_nanos(divided(self.0, PICOS_PER_NANO))
    }

    /// The same amount of money, exactly.
    pub fn from_money(money: Money) -> Self {
        Self(money.as_nanos().saturating_mul(PICOS_PER_NANO))
    }

    /// The amount as a number, for estimates and reports only.
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / UNIT as f64
    }

    /// This much money by this many `hours`, rounded to a nano-unit an hour; `None` without hours, or past what a rate can be.
    pub fn per_hour(self, hours: Self) -> Option<HourlyRate> {
        if hours.0 <= 0 {
            return None;
        }
        let nanos = divided(self.0.checked_mul(UNIT / PICOS_PER_NANO)?, hours.0);
        i64::try_from(nanos).ok().map(HourlyRate::from_nanos)
    }

    /// What this many hours cost at `rate`, rounded to a pico-unit.
    pub fn at_rate(self, rate: HourlyRate) -> Self {
        let nanos = i128::from(rate.as_nanos());
        match self.0.checked_mul(nanos) {
            Some(product) => Self(divided(product, UNIT / PICOS_PER_NANO)),
            None => Self((self.0 / (UNIT / PICOS_PER_NANO)).saturating_mul(nanos)),
        }
    }

    /// `part` millionths of the amount, rounded to a pico-unit.
    pub fn millionths(self, part: u32) -> Self {
        const MILLION: i128 = 1_000_000;
        match self.0.checked_mul(i128::from(part)) {
            Some(product) => Self(divided(product, MILLION)),
            None => Self((self.0 / MILLION).saturating_mul(i128::from(part))),
        }
    }
}

/// `mantissa` times ten to the power of `scale`, rounded half up; `None` past 128 bits.
fn scaled(mantissa: i128, scale: i64) -> Option<i128> {
    let power = |of: u64| u32::try_from(of).ok().and_then(|of| 10_i128.checked_pow(of));
    if mantissa == 0 {
        Some(0)
    } else if scale >= 0 {
        mantissa.checked_mul(power(scale.unsigned_abs())?)
    } else {
        // By more than 10³⁸ nothing is left.
        Some(power(scale.unsigned_abs()).map_or(0, |by| divided(mantissa, by)))
    }
}

/// `amount / by`, rounded half away from zero; `by` is positive.
const fn divided(amount: i128, by: i128) -> i128 {
    let (whole, rest) = (amount / by, amount % by);
    if rest.unsigned_abs() >= by.unsigned_abs().div_ceil(2) { whole + amount.signum() } else { whole }
}

impl Add for Amount {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Amount {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Amount {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Neg for Amount {
    type Output = Self;
    fn neg(self) -> Self {
        Self(self.0.saturating_neg())
    }
}

impl std::iter::Sum for Amount {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, Add::add)
    }
}

/// Writes the amount without decimals that are zero, or with the precision asked for (`{:.2}`, at most nine), rounded half away
/// from zero.
impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.precision().is_some() {
            return fmt::Display::fmt(&self.money(), f);
        }
        let sign = if self.0 < 0 { "-" } else { "" };
        let (whole, fraction) = (self.0.unsigned_abs() / UNIT as u128, self.0.unsigned_abs() % UNIT as u128);
        if fraction == 0 {
            return write!(f, "{sign}{whole}");
        }
        write!(f, "{sign}{whole}.{}", format!("{fraction:012}").trim_end_matches('0'))
    }
}

#[cfg(test)]
mod tests {
    use super::Amount;
    use nodecast_model::domain::HourlyRate;

    fn amount(text: &str) -> Amount {
        Amount::parse(text).unwrap_or_else(|| panic!("{text} is an amount"))
    }

    #[test]
    fn ten_decimals_are_read_and_summed_exactly() {
        assert_eq!(amount("0.0021505376").as_picos(), 2_150_537_600);
        let thousand: Amount = (0..1_000).map(|_| amount("0.0000000001")).sum();
        assert_eq!(thousand, amount("0.0000001"));
        assert_eq!(thousand.money().as_nanos(), 100);
        // Rounded line by line, nothing would have been left.
        assert_eq!(amount("0.0000000001").money().as_nanos(), 0);
    }

    #[test]
    fn exponents_signs_and_many_digits_are_read() {
        assert_eq!(amount("2.4E-7"), amount("0.00000024"));
        assert_eq!(amount("1e3"), amount("1000"));
        assert_eq!(amount("-.5"), amount("-0.50"));
        assert_eq!(amount("0.0000000000015"), Amount::from_picos(2));
        assert_eq!(amount("-0.0000000000015"), Amount::from_picos(-2));
        assert_eq!(amount(&format!("0.{}", "3".repeat(60))), Amount::from_picos(333_333_333_333));
        assert_eq!(amount("1e-4000"), Amount::ZERO);
        assert_eq!(amount("0e4000"), Amount::ZERO);
        assert_eq!(Amount::from_f64(0.1), Some(amount("0.1")));
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for bad in ["", "-", ".", "e5", "1,5", "0x1", "NaN", "1e", "1e99", "1000000000000000000", "--1", "1 ", "٣"] {
            assert_eq!(Amount::parse(bad), None, "{bad}");
        }
        assert_eq!(Amount::from_f64(f64::NAN), None);
        assert_eq!(Amount::from_f64(1e300), None);
    }

    #[test]
    fn amounts_print_as_short_as_they_are() {
        assert_eq!(amount("-13.890").to_string(), "-13.89");
        assert_eq!(amount("7").to_string(), "7");
        assert_eq!(format!("{:.2}", amount("13.885")), "13.89");
    }

    #[test]
    fn rates_and_shares_are_rounded_once() {
        assert_eq!(amount("0.03").per_hour(amount("0.5")), Some(HourlyRate::from_nanos(60_000_000)));
        assert_eq!(amount("1").per_hour(Amount::ZERO), None);
        assert_eq!(amount("2.5").at_rate(HourlyRate::from_nanos(96_000_000)), amount("0.24"));
        assert_eq!(amount("1").millionths(400_000), amount("0.4"));
    }
}
