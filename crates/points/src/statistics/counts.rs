//! Counts of random events with Poisson's interval. Must not hold: anything on waits or money.

use nodecast_observed::estimate::chi_square_quantile;

use super::{Estimate, Method, Paired, mean, relative, student_t_quantile};
use crate::report::format::relative_change;

/// The share of intervals that cover the true mean.
const CONFIDENCE: f64 = 0.95;

/// Runs that are added with the spread of Poisson's distribution, in the estimate of the dispersion: so counts that differ in
/// no run still have an interval.
const PRIOR_RUNS: f64 = 1.0;

impl Estimate {
    /// The mean of a count of random events with its interval, which is never of width zero; `None` without values.
    ///
    /// Quasi-Poisson: the exact interval of Poisson's distribution at the dispersion of `values`, wider by the ratio of Student's
    /// and the normal quantile, since that dispersion is estimated.
    ///
    /// Source: F. Garwood, Biometrika 28, 1936; P. McCullagh and J. A. Nelder, Generalized Linear Models, section 6.2.
    pub fn of_count(values: &[f64]) -> Option<Self> {
        let mean = mean(values)?;
        let runs = values.len() as f64;
        let bare = Self { count: values.len() as u64, mean, median: None, low: None, high: None, method: Method::None };
        if values.len() < 2 {
            return Some(bare);
        }
        let dispersion = if mean > 0.0 { (squares(values, mean) / mean + PRIOR_RUNS) / runs } else { 1.0 };
        let (tail, events) = (tail(runs), runs * mean / dispersion);
        let gamma = |share: f64, shape: f64| chi_square_quantile(share, 2.0 * shape) / 2.0 * dispersion / runs;
        let (low, high) = (gamma(tail, events), gamma(1.0 - tail, events + 1.0));
        Some(Self { low: Some(low), high: Some(high), method: Method::QuasiPoisson, ..bare })
    }
}

impl Paired {
    /// Compares counts that belong together two by two; `None` without any. The interval of the difference is never of width zero.
    pub fn of_counts(base: &[f64], other: &[f64]) -> Option<Self> {
        let differences: Vec<f64> = base.iter().zip(other).map(|(base, other)| other - base).collect();
        let (base_mean, other_mean) = (mean(base)?, mean(other)?);
        let difference = estimate(&differences, (base_mean, other_mean))?;
        let change = relative_change(difference.mean, base_mean).and_then(|_| relative(base, &differences, base_mean));
        let at_least = |change: Estimate| {
            let wider = |end: Option<f64>, number: Option<f64>, pick: fn(f64, f64) -> f64| {
                Some(pick(end? / base_mean, number?))
            };
            let low = wider(difference.low, change.low, f64::min);
            let high = wider(difference.high, change.high, f64::max);
            Estimate { low, high, method: difference.method, ..change }
        };
        Some(Self { difference, relative: change.map(at_least) })
    }
}

/// The mean of differences of counts, whose variance is that of `differences` and one further run of two independent Poisson counts.
fn estimate(differences: &[f64], (base, other): (f64, f64)) -> Option<Estimate> {
    let mean = mean(differences)?;
    let runs = differences.len() as f64;
    let bare =
        Estimate { count: differences.len() as u64, mean, median: None, low: None, high: None, method: Method::None };
    if differences.len() < 2 {
        return Some(bare);
    }
    let method = Method::QuasiPoisson;
    if base + other <= 0.0 {
        // No event in any run: either may have as many as would show none.
        let most = Estimate::of_count(&vec![0.0; differences.len()])?.high;
        return Some(Estimate { low: most.map(|most| -most), high: most, method, ..bare });
    }
    let variance = (squares(differences, mean) + PRIOR_RUNS * (base + other)) / runs;
    let reach = student_t_quantile(0.5 + CONFIDENCE / 2.0, runs) * libm::sqrt(variance / runs);
    let of_values = Estimate::from_values(differences)?;
    let low = of_values.low.map(|low| low.min(mean - reach));
    let high = of_values.high.map(|high| high.max(mean + reach));
    Some(Estimate { low, high, method, ..bare })
}

/// The sum of squared distances from the mean.
fn squares(values: &[f64], mean: f64) -> f64 {
    values.iter().map(|value| (value - mean) * (value - mean)).sum()
}

/// The probability beyond each end, smaller than that of a known dispersion.
fn tail(runs: f64) -> f64 {
    0.5 * libm::erfc(student_t_quantile(0.5 + CONFIDENCE / 2.0, runs) / std::f64::consts::SQRT_2)
}

#[cfg(test)]
mod tests {
    use crate::engine::Streams;
    use crate::statistics::{Estimate, Method, Paired};

    fn interval(estimate: &Estimate) -> std::ops::RangeInclusive<f64> {
        estimate.low.unwrap()..=estimate.high.unwrap()
    }

    #[test]
    fn equal_counts_have_an_interval_with_width() {
        for count in [0.0, 4.0, 27.0] {
            let estimate = Estimate::of_count(&[count; 8]).unwrap();
            assert_eq!(estimate.method, Method::QuasiPoisson);
            assert!(interval(&estimate).contains(&(count + 0.2)), "{estimate:?}");
            let difference = Paired::of_counts(&[count; 8], &[count; 8]).unwrap().difference;
            assert!(interval(&difference).contains(&0.2) && interval(&difference).contains(&-0.2), "{difference:?}");
        }
        assert_eq!(Estimate::of_count(&[4.0]).unwrap().high, None);
    }

    #[test]
    fn counts_as_spread_as_poisson_have_its_interval() {
        // 40 events in 20 runs with a variance of 2: 28.6 to 54.5 events by the exact interval, and 6 % wider for its estimate.
        let counts: Vec<f64> = (0..20).map(|run| [0.0, 2.0, 4.0, 2.0][run % 4]).collect();
        let estimate = Estimate::of_count(&counts).unwrap();
        assert!(
            (estimate.low.unwrap() - 1.39).abs() < 0.03 && (estimate.high.unwrap() - 2.78).abs() < 0.03,
            "{estimate:?}"
        );
    }

    #[test]
    fn intervals_cover_rare_and_clustered_counts() {
        let (mut rare, mut clustered, mut differences) = (0_u32, 0_u32, 0_u32);
        for experiment in 0..1_000 {
            let mut stream = Streams::new(31).nth("counts", "", experiment);
            let mut events =
                |probability: f64, size: f64| (0..20).filter(|_| stream.uniform() < probability).count() as f64 * size;
            // One event in 50 runs; bursts of five, two in a run.
            let single: Vec<f64> = (0..10).map(|_| events(0.001, 1.0)).collect();
            let bursts: Vec<f64> = (0..10).map(|_| events(0.1, 5.0)).collect();
            let fewer: Vec<f64> = bursts.iter().map(|bursts| bursts + events(0.01, 1.0)).collect();
            rare += u32::from(interval(&Estimate::of_count(&single).unwrap()).contains(&0.02));
            clustered += u32::from(interval(&Estimate::of_count(&bursts).unwrap()).contains(&10.0));
            differences += u32::from(interval(&Paired::of_counts(&bursts, &fewer).unwrap().difference).contains(&0.2));
        }
        assert!(rare > 930 && clustered > 920 && differences > 930, "{rare} {clustered} {differences}");
    }
}
