//! Simulated time: integers of microseconds, never a float.

use std::fmt;
use std::ops::{Add, AddAssign, Mul, Sub};
use std::str::FromStr;

/// An instant of a simulation, in microseconds since its start. Negative instants lie before the start.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct SimTime(i64);

/// A span of simulated time in microseconds; may be negative as the difference of two instants.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct SimDuration(i64);

impl SimTime {
    /// The start of the simulation.
    pub const ZERO: Self = Self(0);
    /// Later than anything that can happen.
    pub const FAR_FUTURE: Self = Self(i64::MAX);

    /// The instant `micros` microseconds after the start.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since the start.
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// Seconds since the start, for reports and models only.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// Whole seconds since the start, rounded down.
    pub const fn as_secs(self) -> i64 {
        self.0.div_euclid(1_000_000)
    }

    /// The span since `earlier`, zero if `earlier` is later.
    pub const fn saturating_since(self, earlier: Self) -> SimDuration {
        let span = self.0.saturating_sub(earlier.0);
        SimDuration(if span < 0 { 0 } else { span })
    }
}

impl SimDuration {
    /// No time.
    pub const ZERO: Self = Self(0);
    /// One microsecond, the resolution of the clock.
    pub const RESOLUTION: Self = Self(1);

    /// A span of `micros` microseconds.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// A span of `millis` milliseconds.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis * 1_000)
    }

    /// A span of `secs` seconds.
    pub const fn from_secs(secs: i64) -> Self {
        Self(secs * 1_000_000)
    }

    /// A span of `seconds`, rounded to the nearest microsecond and limited to what fits; not-a-number is zero.
    pub fn from_secs_f64(seconds: f64) -> Self {
        // `as` saturates at the integer's range and turns NaN into zero.
        Self(libm::round(seconds * 1e6) as i64)
    }

    /// Microseconds.
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// Seconds, for reports and models only.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// Whole seconds, rounded down.
    pub const fn as_secs(self) -> i64 {
        self.0.div_euclid(1_000_000)
    }
}

impl Add<SimDuration> for SimTime {
    type Output = Self;
    fn add(self, span: SimDuration) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl AddAssign<SimDuration> for SimTime {
    fn add_assign(&mut self, span: SimDuration) {
        *self = *self + span;
    }
}

impl Sub<SimDuration> for SimTime {
    type Output = Self;
    fn sub(self, span: SimDuration) -> Self {
        Self(self.0.saturating_sub(span.0))
    }
}

impl Sub for SimTime {
    type Output = SimDuration;
    fn sub(self, earlier: Self) -> SimDuration {
        SimDuration(self.0.saturating_sub(earlier.0))
    }
}

impl Add for SimDuration {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for SimDuration {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for SimDuration {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Mul<i64> for SimDuration {
    type Output = Self;
    fn mul(self, factor: i64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}

impl std::iter::Sum for SimDuration {
    fn sum<I: Iterator<Item = Self>>(spans: I) -> Self {
        spans.fold(Self::ZERO, Add::add)
    }
}

/// Writes an instant as a clock reading, for example `1d 02:03:04.500`.
impl fmt::Display for SimTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let millis = self.0.unsigned_abs() / 1_000;
        let (secs, millis) = (millis / 1_000, millis % 1_000);
        let (days, secs) = (secs / 86_400, secs % 86_400);
        f.write_str(sign)?;
        if days > 0 {
            write!(f, "{days}d ")?;
        }
        write!(f, "{:02}:{:02}:{:02}", secs / 3_600, secs / 60 % 60, secs % 60)?;
        if millis > 0 {
            write!(f, ".{millis:03}")?;
        }
        Ok(())
    }
}

/// Writes a span the way people and Kubernetes write it, for example `1h30m`, `12.5s`, `250ms`.
impl fmt::Display for SimDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < 0 {
            f.write_str("-")?;
        }
        let mut micros = self.0.unsigned_abs();
        if micros == 0 {
            return f.write_str("0s");
        }
        for (unit, size) in [("d", 86_400_000_000_u64), ("h", 3_600_000_000), ("m", 60_000_000)] {
            if micros >= size {
                write!(f, "{}{unit}", micros / size)?;
                micros %= size;
            }
        }
        match micros {
            0 => Ok(()),
            1..1_000 => write!(f, "{micros}us"),
            1_000..1_000_000 => write!(f, "{}ms", trimmed(micros, 1_000)),
            _ => write!(f, "{}s", trimmed(micros, 1_000_000)),
        }
    }
}

/// `numerator / denominator` as a decimal without trailing zeros; `denominator` is a power of ten.
fn trimmed(numerator: u64, denominator: u64) -> String {
    let digits = denominator.ilog10() as usize;
    let text = format!("{}.{:0digits$}", numerator / denominator, numerator % denominator);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Why a text is not a duration.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DurationError {
    /// Not of the form number-unit, repeated.
    #[error("is not a duration")]
    Malformed,
    /// Below zero where only a span makes sense.
    #[error("is negative")]
    Negative,
    /// Larger than the clock can count (about 292,000 years).
    #[error("is too long")]
    TooLong,
}

/// Reads a non-negative duration: numbers with units `us`, `ms`, `s`, `m`, `h`, `d`, `w`, largest first or not, for
/// example `1h30m`, `0.5s`, `720h`, `30d`. A bare `0` is no time.
///
/// Deviation: Go's `time.ParseDuration` supports neither `d` nor `w`; durations here do.
impl FromStr for SimDuration {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<Self, DurationError> {
        let text = text.trim();
        if text == "0" {
            return Ok(Self::ZERO);
        }
        if let Some(rest) = text.strip_prefix('-') {
            return Err(if Self::from_str(rest).is_ok() { DurationError::Negative } else { DurationError::Malformed });
        }
        let mut rest = text;
        let mut total: i128 = 0;
        if rest.is_empty() {
            return Err(DurationError::Malformed);
        }
        while !rest.is_empty() {
            let number_end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or(DurationError::Malformed)?;
            let (number, after) = rest.split_at(number_end);
            let unit_end = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
            let (unit, after) = after.split_at(unit_end);
            let micros_per_unit: i128 = match unit {
                "us" | "µs" => 1,
                "ms" => 1_000,
                "s" => 1_000_000,
                "m" => 60_000_000,
                "h" => 3_600_000_000,
                "d" => 86_400_000_000,
                "w" => 604_800_000_000,
                _ => return Err(DurationError::Malformed),
            };
            total = total
                .checked_add(scaled_decimal(number, micros_per_unit)?)
                .filter(|&micros| micros <= i128::from(i64::MAX))
                .ok_or(DurationError::TooLong)?;
            rest = after;
        }
        i64::try_from(total).map(Self).map_err(|_| DurationError::TooLong)
    }
}

/// `number * scale`, exact, rounded down to an integer.
fn scaled_decimal(number: &str, scale: i128) -> Result<i128, DurationError> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
        return Err(DurationError::Malformed);
    }
    if whole.len() > 18 || fraction.len() > 15 {
        return Err(DurationError::TooLong);
    }
    let digits =
        |text: &str| if text.is_empty() { Ok(0) } else { text.parse::<i128>().map_err(|_| DurationError::Malformed) };
    let power = 10_i128.pow(fraction.len() as u32);
    Ok(digits(whole)? * scale + digits(fraction)? * scale / power)
}

#[cfg(test)]
mod tests {
    use super::{DurationError, SimDuration, SimTime};

    fn micros(text: &str) -> Result<i64, DurationError> {
        text.parse::<SimDuration>().map(SimDuration::as_micros)
    }

    #[test]
    fn durations_read_as_kubernetes_and_people_write_them() {
        assert_eq!(micros("1h30m"), Ok(5_400_000_000));
        assert_eq!(micros("0.5s"), Ok(500_000));
        assert_eq!(micros("12ms"), Ok(12_000));
        assert_eq!(micros("30d"), Ok(2_592_000_000_000));
        assert_eq!(micros("720h"), Ok(2_592_000_000_000));
        assert_eq!(micros("0"), Ok(0));
        assert_eq!(micros("-5s"), Err(DurationError::Negative));
        assert_eq!(micros("5"), Err(DurationError::Malformed));
        assert_eq!(micros(""), Err(DurationError::Malformed));
        assert_eq!(micros("s"), Err(DurationError::Malformed));
        assert_eq!(micros("1.2.3s"), Err(DurationError::Malformed));
        assert_eq!(micros("99999999999w"), Err(DurationError::TooLong));
    }

    #[test]
    fn durations_and_instants_print_for_people() {
        assert_eq!(SimDuration::from_secs(5_400).to_string(), "1h30m");
        assert_eq!(SimDuration::from_millis(12_500).to_string(), "12.5s");
        assert_eq!(SimDuration::from_millis(250).to_string(), "250ms");
        assert_eq!(SimDuration::ZERO.to_string(), "0s");
        assert_eq!((SimTime::ZERO + SimDuration::from_millis(93_784_500)).to_string(), "1d 02:03:04.500");
    }
}
