//! Money: integers of nano-units of one currency, accumulated exactly.
//!
//! A region has one currency and a simulation one region, so amounts carry no currency tag; whoever prints them names
//! it. Nothing converts between currencies.

use std::fmt;
use std::ops::{Add, AddAssign, Neg, Sub};

use super::time::SimDuration;

const NANOS: i128 = 1_000_000_000;
const MICROS_PER_HOUR: i128 = 3_600_000_000;

/// The currency in which a region's prices are stated.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize, schemars::JsonSchema)]
pub enum Currency {
    /// United States dollar.
    #[serde(rename = "USD")]
    Usd,
    /// Chinese yuan, the currency of the cn-* regions.
    #[serde(rename = "CNY")]
    Cny,
}

impl Currency {
    /// The ISO 4217 code.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Usd => "USD",
            Self::Cny => "CNY",
        }
    }

    /// The sign printed before an amount.
    pub const fn sign(self) -> &'static str {
        match self {
            Self::Usd => "$",
            Self::Cny => "¥",
        }
    }

    /// The currency with this ISO 4217 code.
    pub fn from_code(code: &str) -> Option<Self> {
        match code {
            "USD" => Some(Self::Usd),
            "CNY" => Some(Self::Cny),
            _ => None,
        }
    }
}

/// An amount of money in nano-units (10⁻⁹) of a currency.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Money(i128);

impl Money {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// An amount of `nanos` nano-units.
    pub const fn from_nanos(nanos: i128) -> Self {
        Self(nanos)
    }

    /// The amount in nano-units.
    pub const fn as_nanos(self) -> i128 {
        self.0
    }

    /// The amount in whole units, for reports only.
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The amount times `part / whole`, rounded to the nearest nano-unit; nothing when `whole` is not positive.
    pub fn portion(self, part: i128, whole: i128) -> Self {
        const BILLION: i128 = 1_000_000_000;
        if whole <= 0 {
            return Self::ZERO;
        }
        let nanos = match self.0.checked_mul(part) {
            Some(product) => (product + whole / 2).div_euclid(whole),
            // Beyond 128 bits a share in billionths is exact enough.
            None => self.0.saturating_mul(part.saturating_mul(BILLION) / whole) / BILLION,
        };
        Self(nanos)
    }

    /// The amount shared out by `weights`; the shares sum to it, since the running sum is what is rounded. Without any
    /// weight all shares are nothing.
    pub fn shared_by(self, weights: impl IntoIterator<Item = i128> + Clone) -> impl Iterator<Item = Self> {
        let all: i128 = weights.clone().into_iter().sum();
        weights.into_iter().scan((0, Self::ZERO), move |(reached, handed_out), weight| {
            *reached += weight;
            let part = self.portion(*reached, all) - *handed_out;
            *handed_out += part;
            Some(part)
        })
    }
}

impl Add for Money {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Money {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Sub for Money {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl Neg for Money {
    type Output = Self;
    fn neg(self) -> Self {
        Self(-self.0)
    }
}

impl std::iter::Sum for Money {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, Add::add)
    }
}

/// Writes the amount with all nine decimals, or with the precision asked for (`{:.4}`), rounded half away from zero.
impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimals = f.precision().unwrap_or(9).min(9);
        let unit = 10_i128.pow(9 - decimals as u32);
        let magnitude = (self.0.abs() + unit / 2) / unit;
        let scale = 10_i128.pow(decimals as u32);
        let sign = if self.0 < 0 && magnitude != 0 { "-" } else { "" };
        write!(f, "{sign}{}", magnitude / scale)?;
        if decimals > 0 {
            write!(f, ".{:0decimals$}", magnitude % scale)?;
        }
        Ok(())
    }
}

/// A price per hour in nano-units of a currency.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct HourlyRate(i64);

impl HourlyRate {
    /// Free of charge.
    pub const ZERO: Self = Self(0);

    /// A rate of `nanos` nano-units per hour.
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }

    /// Nano-units per hour.
    pub const fn as_nanos(self) -> i64 {
        self.0
    }

    /// Units per hour, for reports and scores only.
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Reads a decimal such as `0.2688`, exactly.
    ///
    /// # Errors
    /// `None` if the text is not a plain non-negative decimal, has more than nine decimals or is 9.2 billion or more.
    pub fn parse(text: &str) -> Option<Self> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let plain = |digits: &str| digits.bytes().all(|b| b.is_ascii_digit());
        if whole.is_empty() || whole.len() > 10 || fraction.len() > 9 || !plain(whole) || !plain(fraction) {
            return None;
        }
        let whole: i128 = whole.parse().ok()?;
        let padded: i128 = format!("{fraction:0<9}").parse().ok()?;
        i64::try_from(whole * NANOS + padded).ok().map(Self)
    }

    /// The rate times `numerator / denominator`, rounded to the nearest nano-unit.
    pub fn scaled(self, numerator: i64, denominator: i64) -> Self {
        let product = i128::from(self.0) * i128::from(numerator);
        let denominator = i128::from(denominator.max(1));
        Self(i64::try_from((product + denominator / 2).div_euclid(denominator)).unwrap_or(i64::MAX))
    }
}

impl Add for HourlyRate {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for HourlyRate {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Sub for HourlyRate {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl std::iter::Sum for HourlyRate {
    fn sum<I: Iterator<Item = Self>>(rates: I) -> Self {
        rates.fold(Self::ZERO, Add::add)
    }
}

/// Writes like [`Money`]: nine decimals, or the precision asked for.
impl fmt::Display for HourlyRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&Money(i128::from(self.0)), f)
    }
}

/// An exact sum of rates times durations, in nano-units times microseconds per hour; divided once, at the end.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Accrual(i128);

impl Accrual {
    /// Nothing accrued.
    pub const ZERO: Self = Self(0);

    /// What `rate` accrues in `span`.
    pub fn new(rate: HourlyRate, span: SimDuration) -> Self {
        Self(i128::from(rate.0) * i128::from(span.as_micros()))
    }

    /// The accrued amount, rounded half away from zero to a nano-unit.
    pub fn total(self) -> Money {
        let half = MICROS_PER_HOUR / 2;
        let rounded = if self.0 < 0 { (self.0 - half) / MICROS_PER_HOUR } else { (self.0 + half) / MICROS_PER_HOUR };
        Money(rounded)
    }
}

impl Add for Accrual {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Accrual {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl std::iter::Sum for Accrual {
    fn sum<I: Iterator<Item = Self>>(accruals: I) -> Self {
        accruals.fold(Self::ZERO, Add::add)
    }
}

#[cfg(test)]
mod tests {
    use super::{Accrual, HourlyRate, Money};
    use crate::domain::time::SimDuration;

    fn rate(text: &str) -> HourlyRate {
        HourlyRate::parse(text).unwrap_or_else(|| panic!("{text} is a rate"))
    }

    #[test]
    fn rate_accrual_is_exact_until_rounding() {
        let three_thirds: Accrual = (0..3).map(|_| Accrual::new(rate("0.1"), SimDuration::from_secs(1_200))).sum();
        assert_eq!(three_thirds.total(), Money::from_nanos(100_000_000));
        assert_eq!(Accrual::new(rate("0.04"), SimDuration::from_secs(3_601)).total().to_string(), "0.040011111");
    }

    #[test]
    fn money_prints_with_the_precision_asked_for() {
        let amount = Money::from_nanos(1_234_567_890);
        assert_eq!(format!("{amount}"), "1.234567890");
        assert_eq!(format!("{amount:.2}"), "1.23");
        assert_eq!(format!("{:.2}", -Money::from_nanos(4_000_000)), "0.00");
        assert_eq!(format!("{:.0}", Money::from_nanos(1_500_000_000)), "2");
    }

    #[test]
    fn rates_read_exactly_or_not_at_all() {
        assert_eq!(rate("0.2688").as_nanos(), 268_800_000);
        for bad in ["", "-1", "1e3", "0.1234567891", ".5", "99999999999"] {
            assert_eq!(HourlyRate::parse(bad), None, "{bad}");
        }
    }
}
