//! Levels and paired differences with their intervals: means here, `medians` and `counts` in their own modules.
//!
//! Every function of a real variable comes from `libm`, so that an interval has the same digits on every machine; no
//! library of statistics that we know holds to that.

use nodecast_observed::estimate::beta_lower;
use serde::{Deserialize, Serialize};

use crate::engine::Streams;
use crate::report::format::relative_change;

mod counts;
mod medians;

/// The share of intervals that cover the true value.
const CONFIDENCE: f64 = 0.95;
/// How often a sign that is taken for sure is wrong, over all looks.
const WRONG: f64 = 0.05;

/// Resamples of a bootstrap.
const RESAMPLES: usize = 2_000;

/// Skewness from which on Student's interval is not trusted, and the fewest values for which resampling is.
const SKEWED: f64 = 1.0;
const RESAMPLED_FROM: usize = 10;

/// How an interval was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// The figure is not random: the input fixes it.
    Exact,
    /// All values are equal, but the figure is random: another seed may differ.
    Equal,
    /// Student's t.
    StudentT,
    /// Studentised bootstrap, for skewed values.
    Bootstrap,
    /// Wilson's interval of a share.
    Wilson,
    /// Order statistics, for a median.
    OrderStatistics,
    /// Poisson's interval with an estimated dispersion, for counts.
    QuasiPoisson,
    /// Too few values for any interval.
    None,
}

/// A mean or a median with its 95 % confidence interval, in the unit of the values.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Estimate {
    /// How many values.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// Their median, where the interval is that of the median; absent where it is that of the mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median: Option<f64>,
    /// Lower end of the interval; `null` without one.
    pub low: Option<f64>,
    /// Upper end of the interval; `null` without one.
    pub high: Option<f64>,
    /// How the interval was found.
    pub method: Method,
}

impl Estimate {
    /// The mean of `values` with its interval; `None` without values.
    pub fn from_values(values: &[f64]) -> Option<Self> {
        Self::with_confidence(values, CONFIDENCE)
    }

    /// The same with an interval that covers the true value in this share of cases.
    pub fn with_confidence(values: &[f64], confidence: f64) -> Option<Self> {
        let mean = mean(values)?;
        let bare = Self { count: values.len() as u64, mean, median: None, low: None, high: None, method: Method::None };
        if are_equal(values) {
            // Not the sum divided by the count, which may differ in the last digit.
            let equal = Self { mean: values[0], ..bare };
            let without_width = Self { low: Some(values[0]), high: Some(values[0]), method: Method::Equal, ..equal };
            return Some(if values.len() < 2 { equal } else { without_width });
        }
        let (below, above, method) = if values.len() >= RESAMPLED_FROM && skewness(values, mean).abs() > SKEWED {
            let (below, above) = bootstrap_t(values, mean, confidence);
            (below, above, Method::Bootstrap)
        } else {
            let reach = student_t_quantile(0.5 + confidence / 2.0, (values.len() - 1) as f64);
            (reach, reach, Method::StudentT)
        };
        let error = standard_error(values, mean);
        Some(Self { low: Some(mean - below * error), high: Some(mean + above * error), method, ..bare })
    }

    /// This estimate of something that cannot be less than `least` or more than `most`: the interval ends there.
    #[must_use]
    pub fn within(self, least: f64, most: f64) -> Self {
        Self { low: self.low.map(|low| low.max(least)), high: self.high.map(|high| high.min(most)), ..self }
    }

    /// This estimate of a figure that is not random: exactly its value.
    #[must_use]
    pub fn exactly(self) -> Self {
        let known = (self.count > 1).then_some(self.mean);
        let method = if self.count > 1 { Method::Exact } else { Method::None };
        Self { low: known, high: known, method, ..self }
    }

    /// The value that the interval is of: the median where there is one, else the mean.
    pub fn centre(&self) -> f64 {
        self.median.unwrap_or(self.mean)
    }

    /// The same with the other sign.
    #[must_use]
    pub fn negated(self) -> Self {
        Self {
            mean: -self.mean,
            median: self.median.map(|median| -median),
            low: self.high.map(|high| -high),
            high: self.low.map(|low| -low),
            ..self
        }
    }

    /// The same of values that are so many times as large.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        let times = |value: Option<f64>| value.map(|value| value * factor);
        let (low, high) = (times(self.low), times(self.high));
        Self { mean: self.mean * factor, median: times(self.median), low, high, ..self }
    }

    /// Whether the value is known to be off zero: the interval leaves zero out, or a single value, taken at its word, is another.
    pub fn is_off_zero(&self) -> bool {
        if self.low.is_none() { self.centre().abs() > 0.0 } else { self.excludes_zero() }
    }

    /// Half the width of the interval.
    pub fn half_width(&self) -> Option<f64> {
        Some((self.high? - self.low?) / 2.0)
    }

    /// Whether the interval reaches more than half as far again on one side of the value as on the other.
    pub fn is_lopsided(&self) -> bool {
        let reaches = self.low.zip(self.high).map(|(low, high)| (self.centre() - low, high - self.centre()));
        reaches.is_some_and(|(below, above)| below.max(above) > 1.5 * below.min(above))
    }

    /// Whether zero lies outside the interval, so that the sign of the value is known.
    pub fn excludes_zero(&self) -> bool {
        self.low.is_some_and(|low| low > 0.0) || self.high.is_some_and(|high| high < 0.0)
    }
}

/// The mean of `values`; `None` without any.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Whether all values are equal to the last digit.
fn are_equal(values: &[f64]) -> bool {
    values.iter().all(|value| value.to_bits() == values[0].to_bits())
}

/// The largest share of runs that may show something that none of `runs` runs showed, with 95 % confidence: the rule of three,
/// without its approximation `3 / runs`.
///
/// Source: J. A. Hanley and A. Lippman-Hand, JAMA 249(13), 1983.
pub fn unseen_share(runs: u64) -> Option<f64> {
    (runs > 0).then(|| 1.0 - libm::pow(1.0 - CONFIDENCE, 1.0 / runs as f64))
}

fn standard_error(values: &[f64], mean: f64) -> f64 {
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    let count = values.len() as f64;
    libm::sqrt(squares / (count - 1.0) / count)
}

/// The third standardised moment; 0 where nothing varies.
fn skewness(values: &[f64], mean: f64) -> f64 {
    let count = values.len() as f64;
    let moment = |power: i32| {
        let sum: f64 = values.iter().map(|value| (0..power).fold(1.0, |product, _| product * (value - mean))).sum();
        sum / count
    };
    let second = moment(2);
    if second <= 0.0 { 0.0 } else { moment(3) / (second * libm::sqrt(second)) }
}

/// A resample whose error is less than this share of that of all values holds none of those that make the spread: what it would
/// be measured by is not theirs.
const ERROR_MIN: f64 = 0.1;

/// How many standard errors the interval reaches below and above the mean, by the studentised bootstrap; where most values
/// are alike and a few lie far off, so that many a resample holds none of these and has no error to be measured by, by the
/// percentiles of the resamples' means, which never lie outside the values.
///
/// Source: B. Efron and R. Tibshirani, An Introduction to the Bootstrap, chapter 12. The resamples are drawn from a fixed
/// stream: equal values always have equal intervals.
fn bootstrap_t(values: &[f64], mean: f64, confidence: f64) -> (f64, f64) {
    let mut stream = Streams::new(values.len() as u64).stream("bootstrap", "");
    let whole = standard_error(values, mean);
    let mut statistics = Vec::with_capacity(RESAMPLES);
    let mut shifts = Vec::with_capacity(RESAMPLES);
    let mut resample = vec![0.0; values.len()];
    for _ in 0..RESAMPLES {
        for drawn in &mut resample {
            let index = libm::floor(stream.uniform() * values.len() as f64) as usize;
            *drawn = values[index.min(values.len() - 1)];
        }
        let own_mean = resample.iter().sum::<f64>() / resample.len() as f64;
        let error = standard_error(&resample, own_mean);
        shifts.push((own_mean - mean) / whole);
        if error > whole * ERROR_MIN {
            statistics.push((own_mean - mean) / error);
        }
    }
    let (low, high) = (0.5 - confidence / 2.0, 0.5 + confidence / 2.0);
    if ((RESAMPLES - statistics.len()) as f64) > low * RESAMPLES as f64 {
        return (-quantile(&mut shifts, low), quantile(&mut shifts, high));
    }
    // A high statistic means that the mean came out too high, so the upper tail sets the lower end.
    (quantile(&mut statistics, high), -quantile(&mut statistics, low))
}

/// The value below which a share of `values` lies.
fn quantile(values: &mut [f64], share: f64) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let rank = libm::floor(share * values.len() as f64) as usize;
    values.get(rank.min(values.len().saturating_sub(1))).copied().unwrap_or(0.0)
}

/// The value below which Student's t with `freedom` degrees of freedom lies with `probability`, 0.5 to below 1.
pub fn student_t_quantile(probability: f64, freedom: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while student_t_below(high, freedom) < probability && high < 1e12 {
        high *= 2.0;
    }
    for _ in 0..200 {
        let middle = (low + high) / 2.0;
        if student_t_below(middle, freedom) < probability {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low + high) / 2.0
}

/// The probability that Student's t with `freedom` degrees of freedom is below `value`, which is not negative.
fn student_t_below(value: f64, freedom: f64) -> f64 {
    let x = freedom / (freedom + value * value);
    1.0 - 0.5 * beta_lower(freedom / 2.0, 0.5, x)
}

/// A paired comparison of one figure: `other` against `base`, value by value.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Paired {
    /// `other` minus `base`.
    pub difference: Estimate,
    /// The difference as a share of the mean of `base`; `null` where that mean is too near 0 ([`relative_change`]).
    pub relative: Option<Estimate>,
}

impl Paired {
    /// Compares values that belong together two by two; `None` without any.
    pub fn new(base: &[f64], other: &[f64]) -> Option<Self> {
        let differences: Vec<f64> = base.iter().zip(other).map(|(base, other)| other - base).collect();
        let difference = Estimate::from_values(&differences)?;
        let base_mean = mean(base)?;
        let relative =
            relative_change(difference.mean, base_mean).and_then(|_| relative(base, &differences, base_mean));
        Some(Self { difference, relative })
    }

    /// How many pairs would bring the relative interval to at most `precision` on either side, if their spread stays.
    pub fn pairs_needed(&self, precision: f64) -> Option<u64> {
        let relative = self.relative.as_ref()?;
        let ratio = relative.half_width()? / precision;
        if ratio <= 1.0 {
            return Some(relative.count);
        }
        let needed = libm::ceil(relative.count as f64 * ratio * ratio);
        Some(if needed < 1e9 { needed as u64 } else { 1_000_000_000 })
    }
}

/// The ratio of two means by linearisation: each pair contributes its difference less what its own base would explain.
fn relative(base: &[f64], differences: &[f64], base_mean: f64) -> Option<Estimate> {
    let ratio = mean(differences)? / base_mean;
    let shares: Vec<f64> = differences
        .iter()
        .zip(base)
        .map(|(difference, base)| ratio + (difference - ratio * base) / base_mean)
        .collect();
    let mut estimate = Estimate::from_values(&shares)?;
    estimate.mean = ratio;
    Some(estimate)
}

/// The confidence of each look when samples grow from look to look: all looks together are wrong as rarely as one look at 95 %.
pub fn confidence_per_look(looks: usize) -> f64 {
    1.0 - WRONG / looks.max(1) as f64
}

/// The share of successes with its Wilson interval.
///
/// Source: E. B. Wilson, 1927; it holds its confidence at small counts and near 0 and 1.
pub fn share(successes: u64, count: u64) -> Option<Estimate> {
    (count > 0).then(|| share_of(successes as f64, count as f64))
}

/// The same of numbers that need not be whole, as in a plan; there is at least one.
pub fn share_of(successes: f64, n: f64) -> Estimate {
    let p = successes / n;
    let z = crate::engine::streams::normal_quantile(0.5 + CONFIDENCE / 2.0);
    let centre = (p + z * z / (2.0 * n)) / (1.0 + z * z / n);
    let reach = z / (1.0 + z * z / n) * libm::sqrt(p * (1.0 - p) / n + z * z / (4.0 * n * n));
    Estimate {
        count: n as u64,
        mean: p,
        median: None,
        low: Some((centre - reach).max(0.0)),
        high: Some((centre + reach).min(1.0)),
        method: Method::Wilson,
    }
}

#[cfg(test)]
mod tests {
    use super::{Estimate, Method, Paired, share, student_t_quantile, unseen_share};
    use crate::engine::Streams;

    #[test]
    fn student_t_quantiles_match_tables() {
        for (freedom, expected) in
            [(1.0, 12.7062), (2.0, 4.30265), (4.0, 2.77645), (9.0, 2.26216), (29.0, 2.04523), (120.0, 1.97993)]
        {
            let found = student_t_quantile(0.975, freedom);
            assert!((found - expected).abs() < 1e-4, "{freedom}: {found}");
        }
        assert!((student_t_quantile(0.95, 10.0) - 1.81246).abs() < 1e-4);
    }

    #[test]
    fn bootstrap_interval_contains_values_with_one_outlier() {
        let mut values = [0.32734069487883793; 16];
        values[3] = 0.3235936569296281;
        let estimate = Estimate::from_values(&values).unwrap();
        assert_eq!(estimate.method, Method::Bootstrap);
        let (low, high) = (estimate.low.unwrap(), estimate.high.unwrap());
        assert!(values[3] < low && low < estimate.mean && estimate.mean < high && high <= values[0] + 1e-12);
    }

    #[test]
    fn bootstrap_interval_contains_values_with_two_outliers() {
        // Waits in seconds: a scenario in which two of thirty seeds meet something that the others do not.
        let mut values: Vec<f64> = (0..30).map(|seed| 57.0 + f64::from(seed % 5)).collect();
        (values[7], values[19]) = (512.0, 946.8);
        let estimate = Estimate::from_values(&values).unwrap();
        assert_eq!(estimate.method, Method::Bootstrap);
        let (low, high) = (estimate.low.unwrap(), estimate.high.unwrap());
        assert!(57.0 < low && low < estimate.mean && 120.0 < high && high < 300.0, "{estimate:?}");
    }

    #[test]
    fn equal_values_have_an_interval_without_width() {
        let estimate = Estimate::from_values(&[0.1; 7]).unwrap();
        assert_eq!((estimate.method, estimate.low, estimate.high), (Method::Equal, Some(0.1), Some(0.1)));
        assert_eq!(estimate.exactly().method, Method::Exact);
        assert_eq!(Estimate::from_values(&[3.0]).unwrap().low, None);
        assert_eq!(Estimate::from_values(&[]), None);
    }

    #[test]
    fn unseen_share_follows_the_rule_of_three() {
        for (runs, expected) in [(1, 0.95), (10, 0.2589), (59, 0.0495), (300, 0.009_94)] {
            let found = unseen_share(runs).unwrap();
            assert!((found - expected).abs() < 1e-4, "{runs}: {found}");
        }
        assert_eq!(unseen_share(0), None);
    }

    #[test]
    fn textbook_sample_gives_textbook_interval() {
        // Mean 5, standard deviation sqrt(2.5), n = 5: 5 -+ 2.77645 * 0.70711.
        let estimate = Estimate::from_values(&[3.0, 4.0, 5.0, 6.0, 7.0]).unwrap();
        assert!((estimate.low.unwrap() - 3.036_76).abs() < 1e-4 && (estimate.high.unwrap() - 6.963_24).abs() < 1e-4);
        assert!(estimate.excludes_zero());
    }

    #[test]
    fn a_policy_against_itself_differs_by_exactly_nothing() {
        let values = [1.5, 2.25, 9.0];
        let paired = Paired::new(&values, &values).unwrap();
        assert_eq!((paired.difference.low, paired.difference.high), (Some(0.0), Some(0.0)));
        assert_eq!(paired.relative.unwrap().mean.to_bits(), 0.0_f64.to_bits());
    }

    #[test]
    fn a_share_is_never_certain() {
        let all = share(20, 20).unwrap();
        assert!(all.high.unwrap() > 0.999_9 && (all.low.unwrap() - 0.838_9).abs() < 1e-3);
    }

    /// Draws paired samples whose difference has the mean `truth`, and counts how often the intervals cover it.
    fn coverage(truth: f64, draw: impl Fn(&mut crate::engine::Stream) -> f64) -> (f64, f64) {
        let (mut absolute, mut relative) = (0_u32, 0_u32);
        const EXPERIMENTS: u32 = 2_000;
        let base_mean = 100.0;
        for experiment in 0..EXPERIMENTS {
            let mut stream = Streams::new(11).nth("coverage", "", u64::from(experiment));
            let base: Vec<f64> = (0..20).map(|_| base_mean + 10.0 * stream.normal()).collect();
            let other: Vec<f64> = base.iter().map(|base| base + truth + draw(&mut stream)).collect();
            let paired = Paired::new(&base, &other).unwrap();
            let covers =
                |estimate: &Estimate, value: f64| estimate.low.unwrap() <= value && value <= estimate.high.unwrap();
            absolute += u32::from(covers(&paired.difference, truth));
            relative += u32::from(covers(&paired.relative.unwrap(), truth / base_mean));
        }
        (f64::from(absolute) / f64::from(EXPERIMENTS), f64::from(relative) / f64::from(EXPERIMENTS))
    }

    #[test]
    fn intervals_have_nominal_coverage() {
        let (absolute, relative) = coverage(-7.0, |stream| 3.0 * stream.normal());
        assert!((0.935..=0.965).contains(&absolute) && (0.935..=0.965).contains(&relative), "{absolute} {relative}");
    }

    #[test]
    fn bounded_interval_keeps_coverage() {
        let few = Estimate::from_values(&[0.0, 0.0, 4.0]).unwrap();
        let ended = few.within(0.0, f64::INFINITY);
        assert!(few.low.unwrap() < 0.0);
        assert_eq!(ended, Estimate { low: Some(0.0), ..few });
        assert_eq!(Estimate::from_values(&[0.2, 1.0]).unwrap().within(0.0, 1.0).high, Some(1.0));
        assert_eq!(Estimate::from_values(&[3.0]).unwrap().within(0.0, 1.0).low, None);
        // Counts of a rare thing, whose true mean is 0.4: what is cut off held no value that it can have.
        let (mut whole, mut cut) = (0_u32, 0_u32);
        for experiment in 0..1_000 {
            let mut stream = Streams::new(11).nth("rare", "", experiment);
            let counts: Vec<f64> = (0..8).map(|_| f64::from(u8::from(stream.uniform() < 0.4))).collect();
            let estimate = Estimate::from_values(&counts).unwrap();
            let covers = |estimate: &Estimate| estimate.low.unwrap() <= 0.4 && 0.4 <= estimate.high.unwrap();
            whole += u32::from(covers(&estimate));
            cut += u32::from(covers(&estimate.within(0.0, f64::INFINITY)));
        }
        assert!(whole == cut && whole > 900, "{whole} {cut}");
    }

    #[test]
    fn intervals_cover_skewed_differences_nearly_as_often() {
        let (absolute, relative) = coverage(-7.0, |stream| 3.0 * (stream.exponential(1.0) - 1.0));
        assert!((0.925..=0.965).contains(&absolute) && (0.925..=0.965).contains(&relative), "{absolute} {relative}");
    }
}
