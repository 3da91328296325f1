//! Whether a forecast and what happened agree, figure by figure, given what chance alone explains.

use serde::Serialize;

use super::floors::FigureTolerance;
use crate::report::format::relative_change;
use crate::statistics::{mean, student_t_quantile};

/// The share of further simulations that lie beyond each end of the interval.
const TAIL: f64 = 0.025;
/// Of so many simulations the farthest itself lies that far out.
const SEEDS_ENOUGH: usize = 39;
/// What differs by less is a rounding error, as a share.
const ROUNDING: f64 = 1e-9;

/// The interval in which one more simulation lies in 95 of 100 cases: Student's, or that of the order of the simulations, whichever reaches
/// further. Student's is right where they are distributed normally. The other assumes nothing from 39 simulations on; of fewer, the farthest
/// one lies too near, and its distance from the median is extended as the tail of an exponential distribution goes on. So costs and waits, of which a few
/// lie far above the others, surprise nobody. `None` of a single simulation.
pub fn interval(simulations: &[f64]) -> Option<(f64, f64)> {
    let count = simulations.len();
    let (middle, spread) = mean(simulations).and_then(|mean| Some((mean, spread(simulations, mean)?)))?;
    let student = spread * student_t_quantile(1.0 - TAIL, count as f64 - 1.0);
    let mut sorted = simulations.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let median = f64::midpoint(sorted[(count - 1) / 2], sorted[count / 2]);
    let place = (libm::floor(TAIL * (count as f64 + 1.0)) as usize).max(1) - 1;
    let extension =
        if count < SEEDS_ENOUGH { libm::log(0.5 / TAIL) / libm::log((count as f64 + 1.0) / 2.0) } else { 1.0 };
    let low = median - extension * (median - sorted[place]);
    let high = median + extension * (sorted[count - 1 - place] - median);
    Some((low.min(middle - student), high.max(middle + student)))
}

/// What is to be said of a figure.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// What happened is no surprise, and the error is small.
    Agrees,
    /// The error is small, and more than chance explains.
    SmallButReal,
    /// The error is large, and no more than seeds or right models are off: nothing follows.
    CannotTell,
    /// The error is large, and more than chance and the error of right models explain.
    Differs,
}

impl Verdict {
    /// The verdict for people.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Agrees => "agrees",
            Self::SmallButReal => "small but real",
            Self::CannotTell => "cannot tell",
            Self::Differs => "differs",
        }
    }
}

/// A figure of what happened among those of simulations.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct Judged {
    /// What happened.
    pub observed: f64,
    /// The mean of the simulations.
    pub simulated: f64,
    /// The 95 % interval in which one more simulation would lie; `null` of a single one.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
    /// The mean less what happened, as a share of what happened; `null` where nothing happened and something was simulated.
    pub error: Option<f64>,
    /// How many deviations of a further simulation what happened lies above the mean; `null` where simulations do not vary.
    pub z: Option<f64>,
    /// The error that right models are known to have, in the unit of the figure.
    pub floor: f64,
    /// What follows.
    pub verdict: Verdict,
    /// Whether it is further off than chance explains.
    #[serde(skip)]
    pub beyond_chance: bool,
}

/// Judges what happened by simulations, with the error up to which it agrees, as a share, and the error that right models have; `None`
/// without any.
pub fn judge(observed: f64, simulations: &[f64], tolerance: f64, floor: f64) -> Option<Judged> {
    let simulated = mean(simulations)?;
    let error = share(simulated - observed, observed);
    let spread = spread(simulations, simulated);
    // Sums of the same amounts in another order differ by their rounding.
    let varies = |spread: &f64| *spread > ROUNDING * simulated.abs();
    let z = spread.filter(varies).map(|spread| (observed - simulated) / spread);
    let interval = interval(simulations);
    let rounding = ROUNDING * observed.abs().max(simulated.abs());
    let is_beyond = |reach: f64| {
        interval.is_some_and(|(low, high)| observed < low - reach - rounding || observed > high + reach + rounding)
    };
    let off = (observed - simulated).abs();
    let large = off > rounding && off >= (tolerance * observed.abs()).max(floor);
    let (low, high) = interval.unzip();
    Some(Judged {
        observed,
        simulated,
        low: low.map(|low| if observed >= 0.0 { low.max(0.0) } else { low }),
        high,
        error,
        z,
        floor,
        verdict: verdict(large, is_beyond(0.0), is_beyond(floor)),
        beyond_chance: is_beyond(0.0),
    })
}

const fn verdict(large: bool, beyond_chance: bool, beyond_floor: bool) -> Verdict {
    match (large, beyond_chance, beyond_floor) {
        (true, _, true) => Verdict::Differs,
        (true, _, false) => Verdict::CannotTell,
        (false, true, _) => Verdict::SmallButReal,
        (false, false, _) => Verdict::Agrees,
    }
}

/// A difference as a share of what it is held against: 0 of nothing and nothing, unknown of nothing and something.
pub fn share(difference: f64, whole: f64) -> Option<f64> {
    if difference.abs() <= 1e-12 { Some(0.0) } else { relative_change(difference, whole) }
}

/// The deviation of one more value of these: it is as far off as they are, and their mean is off as well.
fn spread(values: &[f64], mean: f64) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let count = values.len() as f64;
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    Some(libm::sqrt(squares / (count - 1.0)) * libm::sqrt(1.0 + 1.0 / count))
}

/// The sum of absolute differences over the sum of what happened (WAPE); `None` where nothing happened.
pub fn weighted_error(observed: &[f64], other: &[f64]) -> Option<f64> {
    let sum: f64 = observed.iter().map(|value| value.abs()).sum();
    let off: f64 = observed.iter().zip(other).map(|(observed, other)| (observed - other).abs()).sum();
    (sum > 0.0).then(|| off / sum)
}

/// The root of the mean squared difference.
pub fn root_mean_square(observed: &[f64], other: &[f64]) -> Option<f64> {
    let squares: f64 = observed.iter().zip(other).map(|(one, two)| (one - two) * (one - two)).sum();
    (!observed.is_empty()).then(|| libm::sqrt(squares / observed.len() as f64))
}

/// How far a curve lies from the mean of simulated ones, and whether it lies further off than they do from each other: each of
/// them is compared with the mean of the others, as the curve is with the mean of all.
pub(super) fn judge_curve(
    observed: &[f64],
    simulations: &[Vec<f64>],
    known: FigureTolerance,
) -> Option<(Judged, Vec<f64>)> {
    let count = simulations.len();
    let total: Vec<f64> =
        (0..observed.len()).map(|place| simulations.iter().filter_map(|curve| curve.get(place)).sum()).collect();
    let centre: Vec<f64> = total.iter().map(|sum| sum / count.max(1) as f64).collect();
    let distance = weighted_error(observed, &centre)?;
    let others = count.saturating_sub(1) as f64;
    let among: Vec<f64> = simulations
        .iter()
        .filter(|_| count > 1)
        .filter_map(|curve| {
            let rest: Vec<f64> = total.iter().zip(curve).map(|(sum, value)| (sum - value) / others).collect();
            weighted_error(curve, &rest)
        })
        .collect();
    let by_chance = mean(&among);
    let spread = by_chance.and_then(|mean| spread(&among, mean));
    let z = spread.zip(by_chance).filter(|(spread, _)| *spread > 0.0);
    let z = z.map(|(spread, by_chance)| (distance - by_chance) / spread);
    let reach = interval(&among).map(|(_, high)| high);
    let is_beyond = |floor: f64| reach.is_some_and(|reach| distance > reach + floor + ROUNDING);
    let sums = |curve: &[f64]| curve.iter().sum::<f64>() / curve.len().max(1) as f64;
    let (observed_mean, simulated) = (sums(observed), sums(&centre));
    let judged = Judged {
        observed: observed_mean,
        simulated,
        low: None,
        high: None,
        error: share(simulated - observed_mean, observed_mean),
        z,
        floor: known.share * observed_mean,
        verdict: verdict(distance >= known.tolerance, is_beyond(0.0), is_beyond(known.share)),
        beyond_chance: is_beyond(0.0),
    };
    Some((judged, centre))
}

#[cfg(test)]
mod tests {
    use super::{FigureTolerance, Verdict, interval, judge, judge_curve, weighted_error};

    fn verdict(observed: f64, simulations: &[f64]) -> Verdict {
        judge(observed, simulations, 0.10, 0.0).unwrap().verdict
    }

    #[test]
    fn the_four_verdicts_follow_from_error_and_spread() {
        let close = [99.0, 101.0, 100.0, 100.5, 99.5];
        assert_eq!(verdict(101.0, &close), Verdict::Agrees);
        assert_eq!(verdict(105.0, &close), Verdict::SmallButReal);
        assert_eq!(verdict(150.0, &close), Verdict::Differs);
        assert_eq!(verdict(150.0, &[60.0, 180.0, 90.0, 150.0]), Verdict::CannotTell);
    }

    #[test]
    fn errors_of_right_models_are_no_verdict() {
        let close = [99.0, 101.0, 100.0, 100.5, 99.5];
        let with_floor = |observed: f64, floor: f64| judge(observed, &close, 0.10, floor).unwrap().verdict;
        assert_eq!(with_floor(125.0, 20.0), Verdict::Differs);
        assert_eq!(with_floor(125.0, 24.0), Verdict::CannotTell);
        assert_eq!(with_floor(125.0, 30.0), Verdict::SmallButReal);
        // One event more than none, where two are no evidence.
        assert_eq!(judge(1.0, &[0.0, 0.0, 0.0], 0.25, 2.0).unwrap().verdict, Verdict::SmallButReal);
    }

    #[test]
    fn few_seeds_give_inconclusive_verdict() {
        let judged = judge(160.0, &[90.0, 110.0], 0.1, 0.0).unwrap();
        assert!(judged.z.unwrap() > 3.0 && judged.high.unwrap() > 160.0);
        assert_eq!(judged.verdict, Verdict::CannotTell);
    }

    #[test]
    fn a_deviation_is_that_of_one_more_simulation() {
        // Mean 100, deviation of the sample 1; one more of five lies sqrt(1.2) off.
        let judged = judge(102.0, &[99.0, 101.0, 99.0, 101.0, 100.0], 0.1, 0.0).unwrap();
        assert!((judged.z.unwrap() - 2.0 / 1.2_f64.sqrt()).abs() < 1e-12);
        assert!((judged.error.unwrap() + 2.0 / 102.0).abs() < 1e-12);
        // The quantile of Student's t with four degrees of freedom.
        assert!((judged.high.unwrap() - (100.0 + 2.776_445 * 1.2_f64.sqrt())).abs() < 1e-5);
    }

    #[test]
    fn intervals_hold_what_skewed_simulations_come_to() {
        // Exponential, by a fixed linear congruence: none of 2,000 further values may lie outside more often than one in fourteen.
        let mut state = 12_345_u64;
        let mut draw = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            -libm::log(((state >> 11) as f64 + 0.5) / 9_007_199_254_740_992.0)
        };
        for count in [5, 10, 20, 40] {
            let outside = (0..2_000).filter(|_| {
                let simulations: Vec<f64> = (0..count).map(|_| draw()).collect();
                let (low, high) = interval(&simulations).unwrap();
                !(low..=high).contains(&draw())
            });
            let outside = outside.count();
            assert!(outside < 140, "{count}: {outside}");
        }
        assert_eq!(interval(&[1.0]), None);
    }

    #[test]
    fn deterministic_simulations_give_exact_verdict() {
        assert_eq!(verdict(10.0, &[10.0, 10.0]), Verdict::Agrees);
        assert_eq!(verdict(10.5, &[10.0, 10.0]), Verdict::SmallButReal);
        assert_eq!(verdict(20.0, &[10.0, 10.0]), Verdict::Differs);
        assert_eq!(verdict(0.0, &[0.0, 0.0]), Verdict::Agrees);
        assert_eq!(verdict(0.0, &[1.0, 1.0]), Verdict::Differs);
        assert_eq!(verdict(20.0, &[10.0]), Verdict::CannotTell);
        assert!(judge(1.0, &[], 0.1, 0.0).is_none());
        let rounded = judge(10.0, &[2.4, 2.400_000_000_000_000_4, 2.4], 0.1, 0.0).unwrap();
        assert_eq!((rounded.z, rounded.verdict), (None, Verdict::Differs));
    }

    #[test]
    fn curve_differs_beyond_seed_variation() {
        let known = FigureTolerance { tolerance: 0.1, share: 0.0, count: 0.0 };
        let seeds: Vec<Vec<f64>> =
            (0..20).map(|seed| (0..100).map(|at| 10.0 + f64::from((at * 7 + seed * 3) % 5) * 0.1).collect()).collect();
        let alike: Vec<f64> = (0..100).map(|at| 10.0 + f64::from((at * 7 + 1) % 5) * 0.1).collect();
        let off: Vec<f64> = alike.iter().map(|value| value * 1.3).collect();
        assert_eq!(judge_curve(&alike, &seeds, known).unwrap().0.verdict, Verdict::Agrees);
        assert_eq!(judge_curve(&off, &seeds, known).unwrap().0.verdict, Verdict::Differs);
        assert_eq!(weighted_error(&[0.0], &[1.0]), None);
    }
}
