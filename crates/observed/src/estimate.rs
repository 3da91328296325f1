//! Estimators over what was recorded: a value, how sure it is, and from how much it comes.
//!
//! All are pure and deterministic: the same sample gives the same bits, since logarithms, roots and the like go through `libm`.
//!
//! What must not live here: where a sample comes from (`claims`), which key of a scenario a value belongs to.

mod distributions;
mod lines;
mod proportions;
mod rates;
mod survival;
mod times;
mod windows;

pub use distributions::{beta_lower, beta_quantile, chi_square_quantile};
pub use lines::{Line, Slope, line, slope_through_zero};
pub use proportions::{Prior, Proportion, interval as proportion_interval, posterior as proportion_posterior};
pub use rates::{Exposed, GammaPrior, Groups, Rate, empirical_bayes, groups, rate, rate_in_groups};
pub use survival::{Lifetime, Survival, survival};
pub use times::{Duration, LogNormal, Shrunk, median, shrink};
pub use windows::unblurred;

/// A value with its 95 % interval and the size of the sample behind it.
#[derive(Clone, Copy, PartialEq, Debug, serde::Serialize, schemars::JsonSchema)]
pub struct Estimate {
    /// The value.
    pub value: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// How many observations it comes from.
    pub n: usize,
}

impl Estimate {
    /// Whether `value` lies in the interval, its ends included.
    pub fn holds(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// The same in another unit: `factor` of the new one are one of the old.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        Self { value: self.value * factor, low: self.low * factor, high: self.high * factor, n: self.n }
    }

    /// How wide the interval is: the logarithm of its upper over its lower end. Infinite where the lower end is 0.
    pub fn log_width(&self) -> f64 {
        if self.low > 0.0 && self.high.is_finite() { libm::log(self.high / self.low) } else { f64::INFINITY }
    }
}

/// The quantile of the standard normal distribution that leaves 2.5 % above it.
pub(crate) const Z: f64 = 1.959_963_984_540_054;
