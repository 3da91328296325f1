//! Distribution functions and their quantiles, to about ten digits.
//!
//! Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 6.5.29 and 6.5.31 (incomplete gamma function), 26.5.8
//! (incomplete beta function, in the form that Lentz's method evaluates).

/// Terms after which a series or a fraction is given up; each needs far fewer where it is used.
const TERMS_MAX: usize = 10_000;
/// Terms below this share of the sum change nothing.
const NEGLIGIBLE: f64 = 1e-15;
/// What stands in for 0 as a denominator in Lentz's method.
const TINY: f64 = 1e-300;
/// Bisections of an interval: enough to use up the digits of a number.
const BISECTIONS: usize = 200;

/// The logarithm of one less the standard normal distribution at `z`, far out by its asymptotic series.
pub(crate) fn log_normal_upper(z: f64) -> f64 {
    if z < 30.0 {
        return libm::log(0.5 * libm::erfc(z / std::f64::consts::SQRT_2));
    }
    -0.5 * z * z - libm::log(z) - 0.5 * libm::log(2.0 * std::f64::consts::PI) + libm::log1p(-1.0 / (z * z))
}

/// The regularised lower incomplete gamma function P(a, x).
fn gamma_lower(a: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    let front = libm::exp(a * libm::log(x) - x - libm::lgamma(a));
    if x < a + 1.0 {
        let (mut term, mut sum, mut n) = (1.0 / a, 1.0 / a, a);
        for _ in 0..TERMS_MAX {
            n += 1.0;
            term *= x / n;
            sum += term;
            if term < sum * NEGLIGIBLE {
                break;
            }
        }
        return front * sum;
    }
    let mut b = x + 1.0 - a;
    let (mut c, mut d) = (1.0 / TINY, 1.0 / b);
    let mut fraction = d;
    for i in 1..TERMS_MAX {
        let i = i as f64;
        let numerator = -i * (i - a);
        b += 2.0;
        d = 1.0 / away_from_zero(numerator * d + b);
        c = away_from_zero(b + numerator / c);
        let change = c * d;
        fraction *= change;
        if (change - 1.0).abs() < NEGLIGIBLE {
            break;
        }
    }
    1.0 - front * fraction
}

fn away_from_zero(value: f64) -> f64 {
    if value.abs() < TINY { TINY } else { value }
}

/// The regularised incomplete beta function I_x(a, b).
pub fn beta_lower(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let front =
        libm::exp(libm::lgamma(a + b) - libm::lgamma(a) - libm::lgamma(b) + a * libm::log(x) + b * libm::log1p(-x));
    // The fraction converges fast on this side of the mean only.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - front * beta_fraction(b, a, 1.0 - x) / b;
    }
    front * beta_fraction(a, b, x) / a
}

fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    let (mut c, mut d) = (1.0, 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0)));
    let mut fraction = d;
    for m in 1..TERMS_MAX {
        let m = m as f64;
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut change = 1.0;
        for numerator in [even, odd] {
            d = 1.0 / away_from_zero(1.0 + numerator * d);
            c = away_from_zero(1.0 + numerator / c);
            change = c * d;
            fraction *= change;
        }
        if (change - 1.0).abs() < NEGLIGIBLE {
            break;
        }
    }
    fraction
}

/// Where the increasing function `of` passes `wanted` between two ends.
fn solve(of: impl Fn(f64) -> f64, wanted: f64, mut low: f64, mut high: f64) -> f64 {
    for _ in 0..BISECTIONS {
        let middle = low.midpoint(high);
        if of(middle) < wanted {
            low = middle;
        } else {
            high = middle;
        }
    }
    low.midpoint(high)
}

/// The quantile of the chi-square distribution with `degrees` of freedom below which a share of `p` lies; 0 without freedom.
pub fn chi_square_quantile(p: f64, degrees: f64) -> f64 {
    if degrees <= 0.0 || p <= 0.0 {
        return 0.0;
    }
    // Beyond this nothing is left in double precision.
    let most = degrees + 60.0 * libm::sqrt(2.0 * degrees) + 800.0;
    solve(|x| gamma_lower(degrees / 2.0, x / 2.0), p, 0.0, most)
}

/// The quantile of the gamma distribution of this `shape` and rate 1.
pub(crate) fn gamma_quantile(p: f64, shape: f64) -> f64 {
    chi_square_quantile(p, 2.0 * shape) / 2.0
}

/// The quantile of the beta distribution.
pub fn beta_quantile(p: f64, a: f64, b: f64) -> f64 {
    solve(|x| beta_lower(a, b, x), p, 0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::{beta_quantile, chi_square_quantile, log_normal_upper};

    fn close(actual: f64, expected: f64) {
        assert!((actual - expected).abs() <= 1e-6 * expected.abs(), "{actual} for {expected}");
    }

    /// Values of the tables 26.7 and 26.8 of the handbook, and of R 4.3 (`qchisq`, `qbeta`).
    #[test]
    fn quantiles_are_those_of_the_tables() {
        close(chi_square_quantile(0.025, 2.0), 0.050_635_616);
        close(chi_square_quantile(0.975, 4.0), 11.143_286_78);
        close(chi_square_quantile(0.95, 2.0), 5.991_464_547);
        close(chi_square_quantile(0.975, 2_000.0), 2_125.843_3);
        close(beta_quantile(0.5, 1.0, 1.0), 0.5);
        close(beta_quantile(0.975, 1.0, 10.0), 0.308_497_1);
        close(beta_quantile(0.025, 2.0, 3.0), 0.067_585_99);
        assert!(chi_square_quantile(0.025, 0.0).abs() < 1e-300);
    }

    #[test]
    fn the_normal_distribution_is_known_far_out() {
        close(log_normal_upper(1.959_963_984_540_054), 0.025_f64.ln());
        // The two ways of computing the tail meet.
        close(log_normal_upper(29.999_999), log_normal_upper(30.000_001));
        close(log_normal_upper(1.0), (0.158_655_253_9_f64).ln());
    }
}
