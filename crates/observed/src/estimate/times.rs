//! How long something takes: log-normal, with times that were not over and times of which the beginning was not seen.

use super::distributions::log_normal_upper;
use super::{Estimate, Z};

/// One time, in seconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Duration {
    /// How long it took, or how long it had taken when it was last seen.
    pub seconds: f64,
    /// Whether it was over: else it is censored on the right, and took longer.
    pub over: bool,
    /// For how long it had gone on when it was first seen; times that were shorter could not be seen at all.
    pub seen_after: f64,
}

impl Duration {
    /// A time that was seen whole.
    pub fn whole(seconds: f64) -> Self {
        Self { seconds, over: true, seen_after: 0.0 }
    }

    /// A time that goes on.
    pub fn unfinished(seconds: f64) -> Self {
        Self { seconds, over: false, seen_after: 0.0 }
    }
}

/// What is assumed of the spread (standard deviation of the logarithm) where one time alone cannot tell it.
const SPREAD_OF_ONE: f64 = 0.35;
/// Nothing is shorter than this: times in whole seconds may be 0, which has no logarithm. Half a unit of the last place.
const SECONDS_MIN: f64 = 0.5;
/// The share of censored times above which the fit is by maximum likelihood.
const CENSORED_MAX: f64 = 0.05;
/// Steps of the search for the most likely values.
const STEPS: usize = 5_000;
/// Ways in which it steps: along the axes, and across, since of a truncated sample a higher mean goes with a smaller spread.
const WAYS: [(f64, f64); 8] =
    [(1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0), (1.0, -1.0), (-1.0, 1.0), (0.5, -1.0), (-0.5, 1.0)];

/// A log-normal distribution fitted to times.
#[derive(Clone, Copy, PartialEq, Debug, serde::Serialize)]
pub struct LogNormal {
    /// Mean of the logarithm: `exp` of it is the median.
    pub mean: f64,
    /// Standard deviation of the logarithm; assumed where there is but one time.
    pub spread: f64,
    /// Times that were over.
    pub n: usize,
    /// Times that were not.
    pub censored: usize,
    /// Whether it was fitted by maximum likelihood, since more than 5 % were censored or any was truncated on the left.
    pub by_likelihood: bool,
}

impl LogNormal {
    /// Fits; `None` where no time was over.
    ///
    /// Times of 0, which are less than half a unit of their resolution, count as half a second.
    pub fn fit(times: &[Duration]) -> Option<Self> {
        let usable: Vec<Duration> = times.iter().filter(|time| time.seconds.is_finite()).copied().collect();
        let logs: Vec<f64> = usable.iter().filter(|time| time.over).map(|time| log(time.seconds)).collect();
        let n = logs.len();
        if n == 0 {
            return None;
        }
        let censored = usable.len() - n;
        let mean = logs.iter().sum::<f64>() / n as f64;
        let spread = deviation(&logs, mean).unwrap_or(SPREAD_OF_ONE);
        let truncated = usable.iter().any(|time| time.seen_after > 0.0);
        let share = censored as f64 / usable.len() as f64;
        // One time, or times that are all alike, leave the spread open: likelihood would make it nothing.
        let by_likelihood = (share > CENSORED_MAX || truncated) && n > 1 && spread > 1e-6;
        let (mean, spread) = if by_likelihood { most_likely(&usable, mean, spread) } else { (mean, spread) };
        Some(Self { mean, spread, n, censored, by_likelihood })
    }

    /// The median in seconds with its 95 % interval: `exp(m ± t s / sqrt(n))`, t of Student's distribution.
    pub fn median(&self) -> Estimate {
        let error = student(self.n) * self.spread / libm::sqrt(self.n as f64);
        Estimate {
            value: libm::exp(self.mean),
            low: libm::exp(self.mean - error),
            high: libm::exp(self.mean + error),
            n: self.n,
        }
    }
}

/// The 97.5 % quantile of Student's distribution for the mean of `n` values, by the expansion of Cornish and Fisher
/// (Abramowitz and Stegun 26.7.5), which is 1 % off at three values; the assumed spread of one value counts as known.
pub(crate) fn student(n: usize) -> f64 {
    match n {
        0 | 1 => Z,
        2 => 12.706_204_736,
        3 => 4.302_652_73,
        _ => {
            let degrees = (n - 1) as f64;
            let (z3, z5, z7) = (Z.powi(3), Z.powi(5), Z.powi(7));
            let first = (z3 + Z) / 4.0;
            let second = (5.0 * z5 + 16.0 * z3 + 3.0 * Z) / 96.0;
            let third = (3.0 * z7 + 19.0 * z5 + 17.0 * z3 - 15.0 * Z) / 384.0;
            Z + first / degrees + second / (degrees * degrees) + third / (degrees * degrees * degrees)
        }
    }
}

fn log(seconds: f64) -> f64 {
    libm::log(if seconds > 0.0 { seconds } else { SECONDS_MIN })
}

/// The standard deviation of a sample; `None` of fewer than two.
pub(crate) fn deviation(values: &[f64], mean: f64) -> Option<f64> {
    let n = values.len();
    let sum: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    (n > 1).then(|| libm::sqrt(sum / (n - 1) as f64))
}

/// The logarithm of the likelihood of the times, up to a constant.
fn likelihood(times: &[Duration], mean: f64, spread: f64) -> f64 {
    let of = |time: &Duration| {
        let z = (log(time.seconds) - mean) / spread;
        let seen = if time.over { -0.5 * z * z - libm::log(spread) } else { log_normal_upper(z) };
        let could = if time.seen_after > 0.0 { log_normal_upper((log(time.seen_after) - mean) / spread) } else { 0.0 };
        seen - could
    };
    times.iter().map(of).sum()
}

/// Mean and spread of the greatest likelihood, by a search with ever smaller steps.
fn most_likely(times: &[Duration], mean: f64, spread: f64) -> (f64, f64) {
    let (mut mean, mut log_spread) = (mean, libm::log(spread));
    let mut best = likelihood(times, mean, spread);
    let mut step = 0.25;
    for _ in 0..STEPS {
        let mut better = false;
        for (by_mean, by_spread) in WAYS {
            let (m, s) = (mean + by_mean * step, (log_spread + by_spread * step).clamp(-7.0, 3.0));
            let value = likelihood(times, m, libm::exp(s));
            if value > best {
                (mean, log_spread, best, better) = (m, s, value, true);
            }
        }
        if !better {
            step /= 2.0;
            if step < 1e-9 {
                break;
            }
        }
    }
    (mean, libm::exp(log_spread))
}

/// A median between what was measured and what is assumed.
#[derive(Clone, Copy, PartialEq, Debug, serde::Serialize, schemars::JsonSchema)]
pub struct Shrunk {
    /// The median in seconds, with the 95 % interval of its posterior.
    pub median: Estimate,
    /// The weight of the measured one, 0 to 1.
    pub weight: f64,
}

/// Draws the measured median towards the `assumed` one (normal-normal): clusters differ from what is assumed by `between`, the standard
/// deviation of the logarithm, and the times of one by the fitted spread. The weight of the measured median is
/// `n / (n + spread² / between²)`.
pub fn shrink(fitted: &LogNormal, assumed: f64, between: f64) -> Shrunk {
    let n = fitted.n as f64;
    let weight = n / (n + (fitted.spread / between) * (fitted.spread / between));
    let mean = weight * fitted.mean + (1.0 - weight) * libm::log(assumed);
    // The spread is only estimated; but nothing is less sure than what is assumed.
    let error = (student(fitted.n) * between * libm::sqrt(1.0 - weight)).min(Z * between);
    let median =
        Estimate { value: libm::exp(mean), low: libm::exp(mean - error), high: libm::exp(mean + error), n: fitted.n };
    Shrunk { median, weight }
}

/// The median of values with its 95 % interval: ranks between which it lies by the binomial distribution, the whole range of fewer than
/// six. `None` of nothing.
pub fn median(values: &[f64]) -> Option<Estimate> {
    let mut sorted: Vec<f64> = values.iter().filter(|value| value.is_finite()).copied().collect();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    let (first, last) = (sorted.first()?, sorted.last()?);
    let value = sorted[(n - 1) / 2].midpoint(sorted[n / 2]);
    let below = ranks_outside(n);
    let (low, high) = if below == 0 { (*first, *last) } else { (sorted[below - 1], sorted[n - below]) };
    Some(Estimate { value, low, high, n })
}

/// The rank, from 1, whose value is the lower end of the interval of a median: 0 where even the least value is not far enough out.
fn ranks_outside(n: usize) -> usize {
    let half = n as f64;
    // The largest rank with P(fewer than rank of n lie below the median) at most 2.5 %.
    let (mut total, mut rank) = (0.0, 0);
    let mut log_term = -half * std::f64::consts::LN_2;
    for k in 0..n {
        total += libm::exp(log_term);
        if total > 0.025 {
            break;
        }
        rank = k + 1;
        log_term += libm::log((n - k) as f64) - libm::log((k + 1) as f64);
    }
    rank
}
