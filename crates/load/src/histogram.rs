//! Weighted response times in logarithmic buckets.

use std::sync::LazyLock;

use super::queueing::ResponseTime;

/// Smallest time told apart, in seconds.
const FLOOR_SECONDS: f64 = 1e-5;
/// Buckets in each factor of ten; one bucket spans 1.16 %.
const BUCKETS_PER_DECADE: f64 = 200.0;
/// Ten microseconds to 10⁵ seconds.
const BUCKETS: usize = 2_000;

/// A share of requests that does not count.
const NEXT_TO_NONE: f64 = 1e-12;
/// A share so near to one that its distance from one is not worth its tenth power.
const NEAR_ONE: f64 = 0.999;

/// An exponent so small that four terms of the series are as exact as a number can be.
const SMALL: f64 = 1e-3;

/// A histogram of response times. Quantiles are exact to the width of a bucket, 1.16 %.
#[derive(Clone, Debug)]
pub struct LatencyHistogram {
    weights: Vec<f64>,
    total: f64,
    weighted_seconds: f64,
}

/// For each rate of service met where requests may wait, the share of services that last beyond the upper edge of each bucket,
/// as far as somebody has asked: mostly no request gets far.
#[derive(Clone, Debug, Default)]
pub struct Decays {
    of_rates: Vec<(f64, Vec<f64>)>,
    beyond: BeyondEdges,
}

/// Room for the shares of one rate that differs from one response to the next: of services where nobody waits, of waits where some do.
#[derive(Clone, Debug, Default)]
struct BeyondEdges(Vec<f64>);

impl BeyondEdges {
    /// The shares of what ends at `rate` that last beyond the upper edges of the buckets, from the first bucket to one beyond
    /// which next to none last, to one part in 10¹⁰: ten times as long is the tenth power of the share.
    fn at(&mut self, rate: f64) -> &[f64] {
        let (decade, shares) = (BUCKETS_PER_DECADE as usize, &mut self.0);
        shares.clear();
        // Next to one a share is known too coarsely for its powers.
        while shares.len() < BUCKETS && shares.last().is_none_or(|share| *share > NEAR_ONE) {
            let from = shares.len();
            shares.extend(UPPER_EDGES[from..from + decade].iter().map(|edge| decayed(rate * edge)));
        }
        while shares.len() < BUCKETS && shares.last().is_some_and(|share| *share >= NEXT_TO_NONE) {
            shares.extend_from_within(shares.len() - decade..);
            let from = shares.len() - decade;
            for share in &mut shares[from..] {
                let square = *share * *share;
                let fourth = square * square;
                *share = fourth * fourth * square;
            }
        }
        let end = shares.partition_point(|share| *share >= NEXT_TO_NONE);
        &shares[..(end + 1).min(shares.len())]
    }
}

/// e to the minus `exponent`.
fn decayed(exponent: f64) -> f64 {
    if exponent > SMALL {
        return libm::exp(-exponent);
    }
    1.0 - exponent * (1.0 - exponent / 2.0 * (1.0 - exponent / 3.0 * (1.0 - exponent / 4.0)))
}

/// The shares of one rate of service, as far as somebody has asked.
fn of_rate(of_rates: &mut Vec<(f64, Vec<f64>)>, rate: f64) -> &mut Vec<f64> {
    let known = of_rates.iter().position(|this_rate| this_rate.0.to_bits() == rate.to_bits());
    let place = known.unwrap_or_else(|| {
        of_rates.push((rate, Vec::new()));
        of_rates.len() - 1
    });
    &mut of_rates[place].1
}

impl Default for LatencyHistogram {
    fn default() -> Self {
        Self { weights: vec![0.0; BUCKETS], total: 0.0, weighted_seconds: 0.0 }
    }
}

impl LatencyHistogram {
    /// Adds `weight` requests that were answered in `response`.
    pub fn add_response(&mut self, weight: f64, response: ResponseTime) {
        // No response is shorter than the wait that all of them have had.
        let least = response.least_seconds();
        let first = UPPER_EDGES.partition_point(|edge| edge - least <= 0.0);
        match response.rate_without_waits() {
            // The same, with all that need not be asked for each bucket.
            Some(rate) => self.add_distribution(weight, response.mean(), first, |_, edge| {
                let seconds = edge - least;
                if seconds <= 0.0 { 0.0 } else { 1.0 - libm::exp(-rate * seconds) }
            }),
            None => self.add_distribution(weight, response.mean(), first, |_, edge| response.within(edge)),
        }
    }

    /// The same for one of many responses at few rates of service, in equilibrium.
    pub fn add_equilibrium(&mut self, weight: f64, response: ResponseTime, decays: &mut Decays) {
        match response.rate_without_waits() {
            Some(rate) if response.least_seconds() <= 0.0 => {
                return self.add_services(weight, response.mean(), decays.beyond.at(rate));
            }
            Some(_) => return self.add_response(weight, response),
            None => {}
        }
        let rate = response.service_rate();
        let Decays { of_rates, beyond } = decays;
        let known = of_rate(of_rates, rate);
        let mut still_served = |bucket: usize, edge: f64| {
            if bucket == known.len() {
                known.push(libm::exp(-rate * edge));
            }
            known[bucket]
        };
        match response.drain_apart() {
            Some(drain) => {
                let waiting = beyond.at(drain);
                self.add_distribution(weight, response.mean(), 0, |bucket, edge| {
                    let still_waiting = waiting.get(bucket).copied().unwrap_or(0.0);
                    response.within_both(still_served(bucket, edge), still_waiting)
                });
            }
            None => self.add_distribution(weight, response.mean(), 0, |bucket, edge| {
                response.within_given(edge, still_served(bucket, edge))
            }),
        }
    }

    /// Adds `weight` requests whose response time has the mean `mean_seconds` and is with the probability `below` at most the
    /// upper edge of a bucket, given its number and that edge, and never in one before the bucket `first`.
    fn add_distribution(
        &mut self,
        weight: f64,
        mean_seconds: f64,
        first: usize,
        mut below: impl FnMut(usize, f64) -> f64,
    ) {
        if weight <= 0.0 {
            return;
        }
        let mut previous = 0.0;
        let buckets = self.weights.iter_mut().zip(UPPER_EDGES.iter()).enumerate();
        for (bucket, (sum, edge)) in buckets.skip(first.min(BUCKETS - 1)) {
            let reached = if bucket + 1 == BUCKETS { 1.0 } else { below(bucket, *edge).clamp(previous, 1.0) };
            *sum += weight * (reached - previous);
            previous = reached;
            if 1.0 - previous < NEXT_TO_NONE {
                break;
            }
        }
        self.total += weight;
        self.weighted_seconds += weight * mean_seconds;
    }

    /// Adds `weight` requests that wait for nobody, of which these shares last beyond the upper edges of the first buckets.
    fn add_services(&mut self, weight: f64, mean_seconds: f64, beyond: &[f64]) {
        let (Some(first), true) = (beyond.first(), weight > 0.0) else { return };
        self.weights[0] += weight * (1.0 - first);
        for (sum, shares) in self.weights[1..].iter_mut().zip(beyond.windows(2)) {
            *sum += weight * (shares[0] - shares[1]).max(0.0);
        }
        if beyond.len() == BUCKETS {
            self.weights[BUCKETS - 1] += weight * beyond[BUCKETS - 1];
        }
        self.total += weight;
        self.weighted_seconds += weight * mean_seconds;
    }

    /// Adds one request that took so many seconds.
    pub fn add_value(&mut self, seconds: f64) {
        let place = libm::log10(seconds.max(FLOOR_SECONDS) / FLOOR_SECONDS) * BUCKETS_PER_DECADE;
        let bucket = (place as usize).min(BUCKETS - 1);
        self.weights[bucket] += 1.0;
        self.total += 1.0;
        self.weighted_seconds += seconds;
    }

    /// Number of requests.
    pub fn total(&self) -> f64 {
        self.total
    }

    /// Mean response time in seconds; zero without requests.
    pub fn mean_seconds(&self) -> f64 {
        if self.total > 0.0 { self.weighted_seconds / self.total } else { 0.0 }
    }

    /// The response time in seconds that a share `p` of requests stays below; zero without requests.
    pub fn quantile_seconds(&self, p: f64) -> f64 {
        let target = self.total * p;
        let mut reached = 0.0;
        for (bucket, weight) in self.weights.iter().enumerate() {
            reached += weight;
            if reached >= target && reached > 0.0 {
                return upper_edge(bucket);
            }
        }
        0.0
    }
}

fn upper_edge(bucket: usize) -> f64 {
    UPPER_EDGES[bucket]
}

static UPPER_EDGES: LazyLock<Vec<f64>> = LazyLock::new(|| {
    let edge = |bucket: usize| FLOOR_SECONDS * libm::exp10((bucket + 1) as f64 / BUCKETS_PER_DECADE);
    (0..BUCKETS).map(edge).collect()
});

#[cfg(test)]
mod tests {
    use super::{Decays, LatencyHistogram};
    use crate::queueing::ResponseTime;

    #[test]
    fn exponential_quantiles_are_exact_within_a_bucket() {
        let mut histogram = LatencyHistogram::default();
        histogram.add_distribution(1_000.0, 0.2, 0, |_, edge| 1.0 - libm::exp(-edge / 0.2));
        for p in [0.5, 0.95, 0.99] {
            let exact = -0.2 * libm::log(1.0 - p);
            let ratio = histogram.quantile_seconds(p) / exact;
            assert!((1.0..1.012).contains(&ratio), "{p}: {ratio}");
        }
        assert!((histogram.mean_seconds() - 0.2).abs() < 1e-12);
    }

    #[test]
    fn histogram_without_waits_follows_distribution() {
        for (service_rate, extra_wait) in [(33.3, 0.0), (33.3, 0.013), (4e6, 0.0), (2.5e-5, 0.0), (1e-9, 0.0)] {
            let (wait_probability, drain_rate) = (0.0, 40.0);
            let response = ResponseTime::Open { wait_probability, drain_rate, service_rate, extra_wait };
            let mut expected = LatencyHistogram::default();
            expected.add_distribution(7.0, response.mean(), 0, |_, edge| response.within(edge));
            let mut filled = [LatencyHistogram::default(), LatencyHistogram::default()];
            filled[0].add_response(7.0, response);
            filled[1].add_equilibrium(7.0, response, &mut Decays::default());
            for histogram in &filled {
                let pairs = histogram.weights.iter().zip(&expected.weights);
                let apart = pairs.map(|(item, expected)| (item - expected).abs()).fold(0.0, f64::max);
                assert!(apart < 7e-10, "{apart:e} at {service_rate}/s after {extra_wait} s");
                assert!((histogram.total() - expected.total()).abs() < f64::EPSILON);
                assert!(
                    (histogram.mean_seconds() - expected.mean_seconds()).abs() < f64::EPSILON * expected.mean_seconds()
                );
            }
        }
    }

    #[test]
    fn histogram_with_waits_follows_distribution() {
        // The last two are too near to each other to be told apart, and the same.
        for (wait_probability, drain_rate, service_rate) in [
            (0.3, 40.0, 33.3),
            (1.0, 0.02, 5.0),
            (1e-6, 9e3, 4e6),
            (0.7, 1e-4, 2.5e-5),
            (0.5, 10.0, 10.05),
            (0.5, 7.0, 7.0),
        ] {
            let response = ResponseTime::Open { wait_probability, drain_rate, service_rate, extra_wait: 0.0 };
            let (mut expected, mut filled) = (LatencyHistogram::default(), LatencyHistogram::default());
            expected.add_distribution(7.0, response.mean(), 0, |_, edge| response.within(edge));
            let mut decays = Decays::default();
            filled.add_equilibrium(7.0, response, &mut decays);
            let pairs = filled.weights.iter().zip(&expected.weights);
            let apart = pairs.map(|(item, expected)| (item - expected).abs()).fold(0.0, f64::max);
            assert!(apart < 7e-9, "{apart:e} for {response:?}");
        }
    }

    #[test]
    fn an_empty_histogram_says_zero() {
        assert!(LatencyHistogram::default().quantile_seconds(0.99).abs() < f64::EPSILON);
    }
}
