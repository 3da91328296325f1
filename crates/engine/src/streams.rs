//! Random numbers from named streams.
//!
//! Each stream is a ChaCha8 generator keyed by a digest of (seed, stream name, entity). Drawing from one stream never
//! moves another, and adding an entity never changes the draws of the rest. Every transformation of a draw that needs
//! exp, ln or a root calls `libm`, so that no platform's mathematics reaches a result.

use rand::rngs::ChaCha8Rng;
use rand::{Rng, SeedableRng};
use rand_distr::{Distribution, Open01, OpenClosed01};
use sha2::{Digest, Sha256};

use nodecast_model::domain::SimDuration;

/// The root of all random numbers of one run.
#[derive(Clone, Copy, Debug)]
pub struct Streams {
    seed: u64,
}

impl Streams {
    /// The streams of `seed`.
    pub const fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// The stream `name` of the entity called `entity`.
    pub fn stream(&self, name: &str, entity: &str) -> Stream {
        self.keyed(name, entity, None)
    }

    /// The stream `name` for the `ordinal`-th thing that `entity` made: a draw by counter, so that the n-th has the same
    /// luck whoever asked for it and whenever.
    pub fn nth(&self, name: &str, entity: &str, ordinal: u64) -> Stream {
        self.keyed(name, entity, Some(ordinal))
    }

    /// Numbers for things of which there are many.
    pub fn ordinals(&self, name: &str) -> Ordinals {
        let mut stream = self.keyed(name, "", None);
        Ordinals { key: stream.word() }
    }

    fn keyed(&self, name: &str, entity: &str, ordinal: Option<u64>) -> Stream {
        let mut digest = Sha256::new();
        digest.update(self.seed.to_le_bytes());
        // Lengths first, so that no two pairs of texts run together into the same bytes.
        for text in [name, entity] {
            digest.update((text.len() as u64).to_le_bytes());
            digest.update(text.as_bytes());
        }
        digest.update([u8::from(ordinal.is_some())]);
        digest.update(ordinal.unwrap_or(0).to_le_bytes());
        Stream(ChaCha8Rng::from_seed(digest.finalize().into()))
    }
}

/// A random number for each of a long row of things, worked out in a moment: for draws of which only their order counts.
#[derive(Clone, Copy, Debug)]
pub struct Ordinals {
    key: u64,
}

impl Ordinals {
    /// Numbers of their own for a part of these things.
    pub const fn part(self, ordinal: u64) -> Self {
        Self { key: self.nth(ordinal) }
    }

    /// The number of the `ordinal`-th thing.
    ///
    /// Source: SplitMix64 (Steele, Lea and Flood, 2014), which gives different numbers to different ordinals.
    pub const fn nth(self, ordinal: u64) -> u64 {
        let mut mixed = self.key.wrapping_add(ordinal.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}

/// One stream of random numbers.
#[derive(Debug)]
pub struct Stream(ChaCha8Rng);

impl Stream {
    /// Uniform on (0, 1), both ends left out.
    pub fn uniform(&mut self) -> f64 {
        Open01.sample(&mut self.0)
    }

    /// 64 random bits.
    pub fn word(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A text of so many letters of an alphabet, which is not empty.
    pub fn letters(&mut self, alphabet: &[u8], length: usize) -> String {
        let letter = |_| char::from(alphabet[(self.word() % alphabet.len() as u64) as usize]);
        (0..length).map(letter).collect()
    }

    /// Uniform on [`low`, `high`).
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.uniform()
    }

    /// A uniform span from zero up to `limit`, in whole microseconds.
    pub fn span_up_to(&mut self, limit: SimDuration) -> SimDuration {
        let micros = libm::floor(self.uniform() * limit.as_micros() as f64) as i64;
        SimDuration::from_micros(micros)
    }

    /// Whether something with this probability happens.
    pub fn happens(&mut self, probability: f64) -> bool {
        self.uniform() < probability
    }

    /// Standard normal, by inversion.
    pub fn normal(&mut self) -> f64 {
        normal_quantile(self.uniform())
    }

    /// Log-normal with this median and this standard deviation of the logarithm.
    pub fn lognormal(&mut self, median: f64, sigma: f64) -> f64 {
        median * libm::exp(sigma * self.normal())
    }

    /// Exponential with this mean, by inversion.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        let uniform: f64 = OpenClosed01.sample(&mut self.0);
        -mean * libm::log(uniform)
    }
}

/// The value below which a standard normal variable lies with probability `p`, 0 < `p` < 1; relative error below 1.2e-9.
///
/// Source: P. J. Acklam's rational approximation.
pub fn normal_quantile(p: f64) -> f64 {
    const TAIL: f64 = 0.024_25;
    if p < TAIL {
        tail_quantile(libm::sqrt(-2.0 * libm::log(p)))
    } else if p > 1.0 - TAIL {
        -tail_quantile(libm::sqrt(-2.0 * libm::log(1.0 - p)))
    } else {
        const NUMERATOR: [f64; 6] = [
            -3.969_683_028_665_376e1,
            2.209_460_984_245_205e2,
            -2.759_285_104_469_687e2,
            1.383_577_518_672_69e2,
            -3.066_479_806_614_716e1,
            2.506_628_277_459_239,
        ];
        const DENOMINATOR: [f64; 6] = [
            -5.447_609_879_822_406e1,
            1.615_858_368_580_409e2,
            -1.556_989_798_598_866e2,
            6.680_131_188_771_972e1,
            -1.328_068_155_288_572e1,
            1.0,
        ];
        let q = p - 0.5;
        let r = q * q;
        polynomial(&NUMERATOR, r) * q / polynomial(&DENOMINATOR, r)
    }
}

fn tail_quantile(q: f64) -> f64 {
    const NUMERATOR: [f64; 6] = [
        -7.784_894_002_430_293e-3,
        -3.223_964_580_411_365e-1,
        -2.400_758_277_161_838,
        -2.549_732_539_343_734,
        4.374_664_141_464_968,
        2.938_163_982_698_783,
    ];
    const DENOMINATOR: [f64; 5] =
        [7.784_695_709_041_462e-3, 3.224_671_290_700_398e-1, 2.445_134_137_142_996, 3.754_408_661_907_416, 1.0];
    polynomial(&NUMERATOR, q) / polynomial(&DENOMINATOR, q)
}

fn polynomial(coefficients: &[f64], x: f64) -> f64 {
    coefficients.iter().fold(0.0, |sum, coefficient| sum * x + coefficient)
}

#[cfg(test)]
mod tests {
    use super::{Streams, normal_quantile};

    #[test]
    fn streams_differ_by_name_entity_and_ordinal() {
        let streams = Streams::new(7);
        let first = |mut stream: super::Stream| stream.uniform().to_bits();
        let item = first(streams.stream("boot", "a"));
        assert_eq!(item, first(streams.stream("boot", "a")));
        assert_ne!(item, first(streams.stream("boot", "b")));
        assert_ne!(item, first(streams.stream("boota", "")));
        assert_ne!(item, first(streams.nth("boot", "a", 0)));
        assert_ne!(item, first(Streams::new(8).stream("boot", "a")));
    }

    #[test]
    fn ordinals_differ_between_seeds_and_names() {
        let numbers =
            |seed, name| -> Vec<u64> { (0..1_000).map(|n| Streams::new(seed).ordinals(name).nth(n)).collect() };
        let this_numbers = numbers(1, "uid");
        assert_eq!(this_numbers.iter().collect::<std::collections::BTreeSet<_>>().len(), 1_000);
        assert!(!this_numbers.is_sorted());
        assert_ne!(this_numbers, numbers(2, "uid"));
        assert_ne!(this_numbers, numbers(1, "other"));
    }

    #[test]
    fn the_normal_quantile_inverts_known_values() {
        for (p, x) in
            [(0.5, 0.0), (0.975, 1.959_963_984_540_054), (0.01, -2.326_347_874_040_841), (0.84, 0.994_457_883_209_753)]
        {
            assert!((normal_quantile(p) - x).abs() < 1e-8, "{p}");
        }
    }

    #[test]
    fn draws_have_the_moments_that_their_names_promise() {
        let mut stream = Streams::new(1).stream("moments", "");
        let draws = 100_000;
        let mean = |draw: &mut dyn FnMut() -> f64| (0..draws).map(|_| draw()).sum::<f64>() / f64::from(draws);
        assert!((mean(&mut || stream.exponential(3.0)) - 3.0).abs() < 0.05);
        assert!((mean(&mut || libm::log(stream.lognormal(5.0, 0.3))) - libm::log(5.0)).abs() < 0.01);
        assert!((mean(&mut || stream.between(2.0, 4.0)) - 3.0).abs() < 0.01);
        let share = mean(&mut || if stream.happens(0.2) { 1.0 } else { 0.0 });
        assert!((share - 0.2).abs() < 0.01);
    }
}
