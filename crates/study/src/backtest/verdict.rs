//! Whether a forecast and what happened agree, figure by figure, given what chance alone explains.

use serde::Serialize;

use crate::report::format::relative_change;
use crate::statistics::{mean, student_t_quantile};

/// How many deviations off chance explains: one figure in twenty lies further off by chance.
const CHANCE: f64 = 2.0;
/// Of so many simulations the deviation is known well enough.
const SEEDS_ENOUGH: usize = 20;

/// The same where so many simulations tell how far they differ: of few the deviation itself is a guess, as Student's distribution has it. From
/// twenty on, as many as a back-test has unless it is asked for fewer, two are near enough.
pub fn surprise_from(simulations: usize) -> f64 {
    if !(2..SEEDS_ENOUGH).contains(&simulations) {
        return CHANCE;
    }
    student_t_quantile(0.975, simulations as f64 - 1.0).max(CHANCE)
}

/// What is to be said of a figure.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// What happened is no surprise, and the error is small.
    Agrees,
    /// The error is small, and more than chance explains.
    SmallButReal,
    /// Seeds differ by more than the tolerance: nothing follows.
    CannotTell,
    /// The error is large, and more than chance explains.
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
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
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
    /// What follows.
    pub verdict: Verdict,
}

/// Judges what happened by simulations; `None` without any.
pub fn judge(observed: f64, simulations: &[f64], tolerance: f64) -> Option<Judged> {
    let simulated = mean(simulations)?;
    let error = share(simulated - observed, observed);
    let spread = spread(simulations, simulated);
    // Sums of the same amounts in another order differ by their rounding.
    let varies = |spread: &f64| *spread > 1e-9 * simulated.abs();
    let z = spread.filter(varies).map(|spread| (observed - simulated) / spread);
    let reach = spread.map(|spread| spread * student_t_quantile(0.975, simulations.len() as f64 - 1.0));
    let large = error.is_none_or(|error| error.abs() >= tolerance);
    // Where simulations do not vary, whatever is off is off by more than chance.
    let off = (observed - simulated).abs() > 1e-9 * observed.abs().max(simulated.abs());
    let surprising = match (z, spread) {
        (Some(z), _) => z.abs() >= surprise_from(simulations.len()),
        (None, Some(_)) => off,
        (None, None) => false,
    };
    let verdict = match (surprising, large) {
        _ if spread.is_none() && large => Verdict::CannotTell,
        (false, false) => Verdict::Agrees,
        (true, true) => Verdict::Differs,
        (false, true) => Verdict::CannotTell,
        (true, false) => Verdict::SmallButReal,
    };
    let (low, high) = (reach.map(|reach| simulated - reach), reach.map(|reach| simulated + reach));
    Some(Judged {
        observed,
        simulated,
        low: low.map(|low| if observed >= 0.0 { low.max(0.0) } else { low }),
        high,
        error,
        z,
        verdict,
    })
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
/// them is held against the mean of the others, as the curve is against the mean of all.
pub fn judge_curve(observed: &[f64], simulations: &[Vec<f64>], tolerance: f64) -> Option<(Judged, Vec<f64>)> {
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
    let beyond = by_chance.map(|mean| distance - mean);
    let z = spread.filter(|spread| *spread > 0.0).zip(beyond).map(|(spread, beyond)| beyond / spread);
    let surprising = match (z, beyond) {
        (Some(z), _) => z >= surprise_from(among.len()),
        (None, Some(beyond)) => beyond > 1e-9,
        (None, None) => false,
    };
    // What seeds differ by anyway is no error of the forecast.
    let large = beyond.unwrap_or(distance) >= tolerance;
    let verdict = match (surprising, large) {
        _ if by_chance.is_none() && large => Verdict::CannotTell,
        (true, true) => Verdict::Differs,
        (true, false) if distance >= tolerance => Verdict::SmallButReal,
        (_, false) if by_chance.is_some_and(|chance| chance >= tolerance) => Verdict::CannotTell,
        (_, false) => Verdict::Agrees,
        (false, true) => Verdict::CannotTell,
    };
    let sums = |curve: &[f64]| curve.iter().sum::<f64>() / curve.len().max(1) as f64;
    let (observed_mean, simulated) = (sums(observed), sums(&centre));
    let judged = Judged {
        observed: observed_mean,
        simulated,
        low: None,
        high: None,
        error: share(simulated - observed_mean, observed_mean),
        z,
        verdict,
    };
    Some((judged, centre))
}

#[cfg(test)]
mod tests {
    use super::{Verdict, judge, judge_curve, surprise_from, weighted_error};

    fn verdict(observed: f64, simulations: &[f64]) -> Verdict {
        judge(observed, simulations, 0.10).unwrap().verdict
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
    fn with_few_seeds_what_lies_in_the_interval_is_no_surprise() {
        let seeds = [90.0, 110.0];
        let judged = judge(160.0, &seeds, 0.1).unwrap();
        assert!(judged.z.unwrap() > 3.0 && judged.high.unwrap() > 160.0);
        assert_eq!(judged.verdict, Verdict::CannotTell);
        assert!((surprise_from(20) - 2.0).abs() < 1e-12 && (surprise_from(1) - 2.0).abs() < 1e-12);
        assert!((surprise_from(5) - 2.776_445).abs() < 1e-5 && surprise_from(19) > 2.0);
    }

    #[test]
    fn a_deviation_is_that_of_one_more_simulation() {
        // Mean 100, deviation of the sample 1; one more of five lies sqrt(1.2) off.
        let judged = judge(102.0, &[99.0, 101.0, 99.0, 101.0, 100.0], 0.1).unwrap();
        assert!((judged.z.unwrap() - 2.0 / 1.2_f64.sqrt()).abs() < 1e-12);
        assert!((judged.error.unwrap() + 2.0 / 102.0).abs() < 1e-12);
        // The quantile of Student's t with four degrees of freedom.
        assert!((judged.high.unwrap() - (100.0 + 2.776_445 * 1.2_f64.sqrt())).abs() < 1e-5);
    }

    #[test]
    fn simulations_that_do_not_vary_leave_nothing_to_chance() {
        assert_eq!(verdict(10.0, &[10.0, 10.0]), Verdict::Agrees);
        assert_eq!(verdict(10.5, &[10.0, 10.0]), Verdict::SmallButReal);
        assert_eq!(verdict(20.0, &[10.0, 10.0]), Verdict::Differs);
        assert_eq!(verdict(0.0, &[0.0, 0.0]), Verdict::Agrees);
        assert_eq!(verdict(0.0, &[1.0, 1.0]), Verdict::Differs);
        assert_eq!(verdict(20.0, &[10.0]), Verdict::CannotTell);
        assert!(judge(1.0, &[], 0.1).is_none());
        let rounded = judge(10.0, &[2.4, 2.400_000_000_000_000_4, 2.4], 0.1).unwrap();
        assert_eq!((rounded.z, rounded.verdict), (None, Verdict::Differs));
    }

    #[test]
    fn a_curve_is_off_where_it_lies_further_off_than_seeds_do() {
        let seeds: Vec<Vec<f64>> =
            (0..20).map(|seed| (0..100).map(|at| 10.0 + f64::from((at * 7 + seed * 3) % 5) * 0.1).collect()).collect();
        let alike: Vec<f64> = (0..100).map(|at| 10.0 + f64::from((at * 7 + 1) % 5) * 0.1).collect();
        let off: Vec<f64> = alike.iter().map(|value| value * 1.3).collect();
        assert_eq!(judge_curve(&alike, &seeds, 0.1).unwrap().0.verdict, Verdict::Agrees);
        assert_eq!(judge_curve(&off, &seeds, 0.1).unwrap().0.verdict, Verdict::Differs);
        assert_eq!(weighted_error(&[0.0], &[1.0]), None);
    }
}
