//! Histograms whose samples weigh the more the younger they are. Weights are the one thing here that is a float and a state.
//!
//! Nothing decays by itself: weights are counted relative to a reference, and what comes later weighs more. When the weights of new
//! samples would grow too large the reference moves on, and everything is scaled down.
//!
//! Source: Vertical Pod Autoscaler 1.7 `pkg/recommender/util`: `histogram.go`, `decaying_histogram.go`, `histogram_options.go`.

use super::amount::power;
use super::checkpoint::HistogramCheckpoint;
use nodecast_model::domain::{SimDuration, SimTime};

/// By what the buckets grow from one to the next.
const GROWTH: f64 = 1.05;
/// That less one, as floats subtract it.
const GROWTH_LESS_ONE: f64 = GROWTH - 1.0;
/// A bucket that weighs less is empty.
const EPSILON: f64 = 1e-4;
/// How many half-lives after the reference it moves on.
const MOST_HALF_LIVES: i64 = 100;
/// What the heaviest bucket weighs in a checkpoint.
const CHECKPOINT_WEIGHT: f64 = 10_000.0;
/// References are multiples of the half-life from the year 1 on, which began so long before 1970.
const YEAR_ONE: SimTime = SimTime::from_micros(-62_135_596_800_000_000);

/// How many buckets there are, for either resource.
pub(super) const BUCKETS: usize = 176;

/// Which resource is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum HistogramResource {
    /// Cores: the first bucket ends at a hundredth of one.
    Cores,
    /// Bytes: the first bucket ends at ten million.
    Bytes,
}

impl HistogramResource {
    /// Where the first bucket ends.
    const fn first(self) -> f64 {
        match self {
            Self::Cores => 0.01,
            Self::Bytes => 1e7,
        }
    }

    /// The bucket of a value.
    pub(super) fn bucket(self, value: f64) -> usize {
        if value < self.first() {
            return 0;
        }
        let place = libm::log(value * GROWTH_LESS_ONE / self.first() + 1.0) / libm::log(GROWTH);
        (place as usize).min(BUCKETS - 1)
    }

    /// Where a bucket begins.
    pub(super) fn start(self, bucket: usize) -> f64 {
        if bucket == 0 { 0.0 } else { self.first() * (power(GROWTH, bucket as i32) - 1.0) / GROWTH_LESS_ONE }
    }
}

/// A histogram that decays.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Histogram {
    counted: HistogramResource,
    half_life: SimDuration,
    reference: SimTime,
    weights: Vec<f64>,
    total: f64,
    /// The last instant that was weighed, with its factor: replicas are sampled at one instant.
    weighed: (SimTime, f64),
    /// The last value that was put into a bucket, by its bits, with that bucket: use stays the same for a while.
    placed: (u64, usize),
    /// The first bucket that is not empty, the last of all where there is none.
    first: usize,
    /// The last bucket that is not empty, the first of all where there is none.
    last: usize,
}

impl Histogram {
    /// An empty one.
    pub(super) fn new(counted: HistogramResource, half_life: SimDuration) -> Self {
        Self {
            counted,
            half_life,
            reference: YEAR_ONE,
            weights: vec![0.0; BUCKETS],
            total: 0.0,
            weighed: (YEAR_ONE, 1.0),
            placed: (0, 0),
            first: BUCKETS - 1,
            last: 0,
        }
    }

    /// Adds a value with a weight at an instant.
    pub(super) fn add(&mut self, value: f64, weight: f64, at: SimTime) {
        let weight = weight * self.decay_factor(at);
        let bucket = self.bucket(value);
        self.weights[bucket] += weight;
        self.total += weight;
        if self.weights[bucket] >= EPSILON {
            self.first = self.first.min(bucket);
            self.last = self.last.max(bucket);
        }
    }

    /// Takes back a value that was added with this weight at this instant.
    pub(super) fn subtract(&mut self, value: f64, weight: f64, at: SimTime) {
        let weight = weight * self.decay_factor(at);
        let bucket = self.bucket(value);
        let less = |of: f64| if of - weight < EPSILON { 0.0 } else { of - weight };
        self.total = less(self.total);
        self.weights[bucket] = less(self.weights[bucket]);
        self.narrow();
    }

    /// Adds what another holds. The reference of the older of the two moves on to that of the younger, also in the other.
    pub(super) fn merge(&mut self, other: &mut Self) {
        if self.reference < other.reference {
            self.move_reference(other.reference);
        } else if other.reference < self.reference {
            other.move_reference(self.reference);
        }
        for bucket in other.first..=other.last {
            self.weights[bucket] += other.weights[bucket];
        }
        self.total += other.total;
        self.first = self.first.min(other.first);
        self.last = self.last.max(other.last);
    }

    /// Whether it holds nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.weights[self.first] < EPSILON
    }

    /// The end of the bucket at which this part of the weight is reached; of the last bucket its beginning.
    pub(super) fn percentile(&self, part: f64) -> f64 {
        if self.is_empty() {
            return 0.0;
        }
        let (threshold, mut bucket) = (part * self.total, self.first);
        let mut sum = self.weights[bucket];
        while bucket < self.last && sum < threshold {
            bucket += 1;
            sum += self.weights[bucket];
        }
        self.counted.start((bucket + 1).min(BUCKETS - 1))
    }

    /// What of it is kept over a restart.
    pub(super) fn checkpoint(&self) -> HistogramCheckpoint {
        let heaviest = self.weights.iter().copied().fold(0.0, f64::max);
        let whole = |weight: f64| libm::round(weight * (CHECKPOINT_WEIGHT / heaviest)) as u32;
        let buckets = self.weights.iter().enumerate().take(self.last + 1).skip(self.first);
        let weights = buckets.map(|(bucket, weight)| (bucket, whole(*weight))).filter(|(_, weight)| *weight > 0);
        HistogramCheckpoint { reference: self.reference, total: self.total, weights: weights.collect() }
    }

    /// What was kept, once again: the total in proportion to the whole numbers.
    pub(super) fn restored(counted: HistogramResource, half_life: SimDuration, kept: &HistogramCheckpoint) -> Self {
        let mut histogram = Self::new(counted, half_life);
        histogram.reference = kept.reference;
        let sum: u64 = kept.weights.iter().map(|(_, weight)| u64::from(*weight)).sum();
        if sum == 0 {
            return histogram;
        }
        let ratio = kept.total / sum as f64;
        for (bucket, weight) in &kept.weights {
            let bucket = (*bucket).min(BUCKETS - 1);
            histogram.weights[bucket] += f64::from(*weight) * ratio;
            histogram.first = histogram.first.min(bucket);
            histogram.last = histogram.last.max(bucket);
        }
        histogram.total = kept.total;
        histogram.narrow();
        histogram
    }

    /// What a weight of one at this instant comes to, once the reference is near enough.
    fn decay_factor(&mut self, at: SimTime) -> f64 {
        if at > self.reference + self.half_life * MOST_HALF_LIVES {
            self.move_reference(at);
        }
        if self.weighed.0 != at {
            self.weighed = (at, libm::exp2(self.half_lives(at - self.reference)));
        }
        self.weighed.1
    }

    fn bucket(&mut self, value: f64) -> usize {
        if self.placed.0 != value.to_bits() {
            self.placed = (value.to_bits(), self.counted.bucket(value));
        }
        self.placed.1
    }

    fn half_lives(&self, span: SimDuration) -> f64 {
        span.as_micros() as f64 / self.half_life.as_micros() as f64
    }

    /// Moves the reference to the multiple of the half-life that is nearest to an instant, the later of two.
    fn move_reference(&mut self, to: SimTime) {
        let half_life = self.half_life.as_micros().max(1);
        let over = (to - YEAR_ONE).as_micros().rem_euclid(half_life);
        let down = SimDuration::from_micros(over);
        let to = if over < half_life - over { to - down } else { to - down + self.half_life };
        let exponent = libm::round(self.half_lives(self.reference - to));
        let factor = libm::ldexp(1.0, exponent as i32);
        self.weights.iter_mut().for_each(|weight| *weight *= factor);
        self.total *= factor;
        self.reference = to;
        self.weighed = (to, 1.0);
        self.narrow();
    }

    /// Moves the ends inwards over buckets that are empty.
    fn narrow(&mut self) {
        while self.weights[self.first] < EPSILON && self.first < BUCKETS - 1 {
            self.first += 1;
        }
        while self.weights[self.last] < EPSILON && self.last > 0 {
            self.last -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BUCKETS, GROWTH, GROWTH_LESS_ONE, Histogram, HistogramResource};
    use nodecast_model::domain::{SimDuration, SimTime};

    const DAY: SimDuration = SimDuration::from_secs(86_400);
    const START: SimTime = SimTime::from_micros(1_800_000_000_000_000);

    #[test]
    fn either_resource_has_as_many_buckets() {
        for (counted, most) in [(HistogramResource::Cores, 1_000.0), (HistogramResource::Bytes, 1e12)] {
            let number = libm::log(most * GROWTH_LESS_ONE / counted.first() + 1.0) / libm::log(GROWTH);
            assert_eq!(libm::ceil(number) as usize + 1, BUCKETS);
        }
    }

    #[test]
    fn a_percentile_is_the_end_of_a_bucket() {
        let mut histogram = Histogram::new(HistogramResource::Cores, DAY);
        assert!(histogram.percentile(0.9).abs() < f64::EPSILON);
        histogram.add(1.0, 0.1, START);
        assert!((histogram.percentile(0.9) - 1.016_8).abs() < 1e-3);
    }

    #[test]
    fn sample_weight_doubles_per_half_life() {
        let mut histogram = Histogram::new(HistogramResource::Cores, DAY);
        histogram.add(1.0, 1.0, START);
        histogram.add(4.0, 1.0, START + DAY);
        assert!(histogram.percentile(0.33) < 2.0);
        assert!(histogram.percentile(0.34) > 4.0);
    }

    #[test]
    fn samples_beyond_weight_range_are_dropped() {
        let mut histogram = Histogram::new(HistogramResource::Bytes, DAY);
        histogram.add(1e9, 1.0, START);
        histogram.add(2e7, 1.0, START + DAY * 150);
        assert!(histogram.percentile(1.0) < 3e7);
    }

    #[test]
    fn subtracted_sample_is_removed() {
        let mut histogram = Histogram::new(HistogramResource::Bytes, DAY);
        histogram.add(1e9, 1.0, START);
        histogram.subtract(1e9, 1.0, START);
        assert!(histogram.is_empty());
    }
}
