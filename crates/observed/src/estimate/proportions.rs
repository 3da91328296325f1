//! The share of tries that fail.

use super::Estimate;
use super::distributions::beta_quantile;

/// Tries, and those that failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct Proportion {
    /// Tries.
    pub tries: usize,
    /// Failures.
    pub failures: usize,
}

/// What is assumed of a share before anything is seen: a beta distribution.
#[derive(Clone, Copy, PartialEq, Debug, serde::Serialize)]
pub struct Prior {
    /// Its mean.
    pub share: f64,
    /// Its weight: as if it came from so many tries.
    pub tries: f64,
}

impl Prior {
    /// The 95 % interval of what is assumed.
    pub fn interval(&self) -> Estimate {
        posterior(*self, Proportion::default())
    }
}

/// The share of failures with its exact 95 % interval (Clopper and Pearson); `None` without a try.
pub fn interval(seen: Proportion) -> Option<Estimate> {
    let Proportion { tries, failures } = seen;
    if tries == 0 {
        return None;
    }
    let (n, d) = (tries as f64, failures as f64);
    let low = if failures == 0 { 0.0 } else { beta_quantile(0.025, d, n - d + 1.0) };
    let high = if failures == tries { 1.0 } else { beta_quantile(0.975, d + 1.0, n - d) };
    Some(Estimate { value: d / n, low, high, n: tries })
}

/// The share that is believed after what was seen, with its 95 % credible interval.
pub fn posterior(prior: Prior, seen: Proportion) -> Estimate {
    let failures = prior.share * prior.tries + seen.failures as f64;
    let successes = (1.0 - prior.share) * prior.tries + seen.tries.saturating_sub(seen.failures) as f64;
    Estimate {
        value: failures / (failures + successes),
        low: beta_quantile(0.025, failures, successes),
        high: beta_quantile(0.975, failures, successes),
        n: seen.tries,
    }
}

#[cfg(test)]
mod tests {
    use super::{Prior, Proportion, interval, posterior};

    #[test]
    fn few_tries_move_little() {
        let prior = Prior { share: 0.001, tries: 2_000.0 };
        let seen = Proportion { tries: 22, failures: 0 };
        let believed = posterior(prior, seen);
        assert!((believed.value - 2.0 / 2_022.0).abs() < 1e-9);
        let raw = interval(seen).unwrap();
        // No failure in 22 tries does not exclude 15 %.
        assert!(raw.low < 1e-300 && (raw.high - 0.154).abs() < 0.001, "{raw:?}");
        assert!(prior.interval().holds(0.001));
        assert_eq!(interval(Proportion::default()), None);
    }
}
