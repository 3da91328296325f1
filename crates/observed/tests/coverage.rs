//! The 95 % intervals hold the truth in about 95 of 100 samples whose truth is known. Seeds are fixed.

#![allow(clippy::unwrap_used)] // a test that cannot set itself up has failed wherever that happens

use nodecast_observed::estimate::{
    Duration, Exposed, GammaPrior, LogNormal, Prior, Proportion, line, median, proportion_interval,
    proportion_posterior, rate, shrink, slope_through_zero,
};
use proptest::prelude::*;

const SAMPLES: usize = 1_000;

/// A small generator of random numbers (SplitMix64): the same numbers everywhere.
struct Random(u64);

impl Random {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (((z ^ (z >> 31)) >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        libm::sqrt(-2.0 * libm::log(self.uniform())) * libm::cos(2.0 * std::f64::consts::PI * self.uniform())
    }

    fn lognormal(&mut self, median: f64, spread: f64) -> f64 {
        median * libm::exp(spread * self.normal())
    }

    fn exponential(&mut self, rate: f64) -> f64 {
        -libm::log(self.uniform()) / rate
    }
}

/// How many of the samples that `holds` makes say that the truth is inside.
fn covered(seed: u64, holds: impl Fn(&mut Random) -> bool) -> f64 {
    let mut random = Random(seed);
    (0..SAMPLES).filter(|_| holds(&mut random)).count() as f64 / SAMPLES as f64
}

fn is_right(share: f64) {
    assert!((0.92..=0.98).contains(&share), "{share} of the intervals hold the truth");
}

#[test]
fn medians_of_whole_times() {
    for (seed, n) in [(1, 3), (2, 8), (3, 22), (4, 200)] {
        is_right(covered(seed, |random| {
            let times: Vec<Duration> = (0..n).map(|_| Duration::whole(random.lognormal(59.0, 0.19))).collect();
            LogNormal::fit(&times).unwrap().median().holds(59.0)
        }));
    }
}

#[test]
fn median_interval_covers_with_a_third_censored() {
    is_right(covered(5, |random| {
        let times: Vec<Duration> = (0..40)
            .map(|_| {
                let (time, until) = (random.lognormal(60.0, 0.3), 40.0 + 60.0 * random.uniform());
                if time <= until { Duration::whole(time) } else { Duration::unfinished(until) }
            })
            .collect();
        let fitted = LogNormal::fit(&times).unwrap();
        // With a share of its information hidden the sample is worth less than its size: the interval is of those that were over.
        fitted.by_likelihood && fitted.median().holds(60.0)
    }));
}

#[test]
fn censored_and_truncated_times_are_corrected() {
    let mut random = Random(6);
    let whole: Vec<f64> = (0..2_000).map(|_| random.lognormal(60.0, 0.3)).collect();
    let cut: Vec<Duration> = whole
        .iter()
        .map(|&time| if time <= 60.0 { Duration::whole(time) } else { Duration::unfinished(60.0) })
        .collect();
    let median = |times: &[Duration]| LogNormal::fit(times).unwrap().median().value;
    let dropped: Vec<Duration> = cut.iter().filter(|time| time.over).copied().collect();
    assert!(median(&dropped) < 55.0 && (median(&cut) - 60.0).abs() < 1.5, "{} {}", median(&dropped), median(&cut));
    let seen: Vec<Duration> = whole.iter().filter(|time| **time > 45.0).map(|&time| Duration::whole(time)).collect();
    let truncated: Vec<Duration> = seen.iter().map(|time| Duration { seen_after: 45.0, ..*time }).collect();
    assert!(
        median(&seen) > 62.5 && (median(&truncated) - 60.0).abs() < 2.0,
        "{} {}",
        median(&seen),
        median(&truncated)
    );
}

#[test]
fn shrunk_median_interval_covers_for_differing_clusters() {
    is_right(covered(7, |random| {
        let truth = random.lognormal(40.0, 0.35);
        let times: Vec<Duration> = (0..12).map(|_| Duration::whole(random.lognormal(truth, 0.19))).collect();
        shrink(&LogNormal::fit(&times).unwrap(), 40.0, 0.35).median.holds(truth)
    }));
}

#[test]
fn the_weight_of_few_boots() {
    let weight = |n: usize| {
        let fitted = LogNormal { mean: 4.0, spread: 0.19, n, censored: 0, by_likelihood: false };
        (shrink(&fitted, 40.0, 0.35).weight * 100.0).round() as i64
    };
    assert_eq!([weight(1), weight(3), weight(22)], [77, 91, 99]);
}

#[test]
fn medians_of_any_distribution() {
    for (seed, n) in [(8, 12), (9, 60)] {
        let share = covered(seed, |random| {
            let values: Vec<f64> = (0..n).map(|_| random.exponential(1.0)).collect();
            median(&values).unwrap().holds(std::f64::consts::LN_2)
        });
        // Ranks are whole: the interval is at least as wide as it should be.
        assert!(share >= 0.92, "{share}");
    }
}

#[test]
fn rates_of_events() {
    for (seed, hours) in [(10, 5_000.0), (11, 50_000.0)] {
        let share = covered(seed, |random| {
            let (mut events, mut at) = (0, 0.0);
            loop {
                at += random.exponential(0.001);
                if at > hours {
                    break;
                }
                events += 1;
            }
            rate(Exposed { hours, events }).unwrap().per_hour.holds(0.001)
        });
        // Events are whole: of five the exact interval is wider than it should be, of fifty it is right.
        assert!(share >= 0.92 && (hours < 10_000.0 || share <= 0.98), "{share}");
    }
}

#[test]
fn shares_of_failures() {
    let share = covered(12, |random| {
        let failures = (0..500).filter(|_| random.uniform() < 0.04).count();
        proportion_interval(Proportion { tries: 500, failures }).unwrap().holds(0.04)
    });
    // The exact interval is never too narrow.
    assert!((0.94..=0.99).contains(&share), "{share}");
}

#[test]
fn slopes_of_pulls_and_the_cpu_of_requests() {
    is_right(covered(13, |random| {
        let points: Vec<(f64, f64)> = (1..15)
            .map(|n| {
                let x = f64::from(n) * 40.0;
                (x, 0.02 * x + 0.4 * random.normal())
            })
            .collect();
        slope_through_zero(&points).unwrap().slope.holds(0.02)
    }));
    is_right(covered(14, |random| {
        let points: Vec<(f64, f64)> = (0..40)
            .map(|n| {
                let x = f64::from(n) * 5.0;
                (x, 0.5 + 0.026 * x + 0.1 * random.normal())
            })
            .collect();
        let line = line(&points).unwrap();
        line.slope.holds(0.026) && line.intercept.low < 0.9
    }));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases * 4 / 5, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_estimate_lies_in_its_interval(
        times in prop::collection::vec((0.1_f64..1e4, any::<bool>()), 1..40),
        hours in 0.1_f64..1e6, events in 0_usize..500,
        tries in 1_usize..5_000, failed in 0.0_f64..1.0,
    ) {
        let durations: Vec<Duration> =
            times.iter().map(|&(seconds, over)| Duration { seconds, over, seen_after: 0.0 }).collect();
        if let Some(fitted) = LogNormal::fit(&durations) {
            let estimate = fitted.median();
            prop_assert!(estimate.holds(estimate.value) && estimate.value.is_finite() && estimate.low > 0.0);
            let shrunk = shrink(&fitted, 40.0, 0.35);
            let (low, high) = (estimate.value.min(40.0) * (1.0 - 1e-9), estimate.value.max(40.0) * (1.0 + 1e-9));
            prop_assert!((low..=high).contains(&shrunk.median.value) && (0.0..=1.0).contains(&shrunk.weight));
        }
        let exposed = Exposed { hours, events };
        let per_hour = rate(exposed).unwrap().per_hour;
        prop_assert!(per_hour.holds(per_hour.value));
        let believed = GammaPrior { per_hour: 0.0007, hours: 300.0 }.posterior(exposed);
        prop_assert!(believed.holds(believed.value) && believed.value > 0.0);
        let seen = Proportion { tries, failures: (tries as f64 * failed) as usize };
        let share = proportion_interval(seen).unwrap();
        prop_assert!(share.holds(share.value) && (0.0..=1.0).contains(&share.low) && share.high <= 1.0);
        let posterior = proportion_posterior(Prior { share: 0.001, tries: 2_000.0 }, seen);
        prop_assert!(posterior.value > 0.0 && posterior.value < 1.0 && posterior.low < posterior.high);
    }

    #[test]
    fn sample_order_does_not_change_fit(values in prop::collection::vec(0.1_f64..1e3, 2..30)) {
        let mut turned = values.clone();
        turned.reverse();
        let of = |values: &[f64]| LogNormal::fit(&values.iter().copied().map(Duration::whole).collect::<Vec<_>>()).unwrap();
        prop_assert!((of(&values).mean - of(&turned).mean).abs() < 1e-9);
        prop_assert_eq!(median(&values), median(&turned));
    }
}
