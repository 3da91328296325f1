//! What rates over a window say of the time within it. Such a rate is late by half of the window, and flattens what lasts no longer than
//! the window does: an autoscaler that meets it scales less often than the one that met the requests.

/// Rounds of sharpening. Error against known demand hardly falls any further after them, and noise begins to grow.
const ROUNDS: usize = 10;
/// Where so many more steps than points lie between the first and the last, the points are too few to sharpen.
const GAPS_MAX: usize = 2;

/// Rates over `window`, each at the instant that ends its window, as rates from an instant on: put where the middle of their window was, and
/// sharpened. Instants and the window are in one unit. The sum is kept, and nothing falls below zero.
///
/// Deviation: the demand that `init` computes from recorded rates lacks the changes within their window. It is
/// shifted to the middle of the window and sharpened. Replicas then rise about three quarters as often as with the
/// demand itself.
///
/// Source: W. H. Richardson, Bayesian-Based Iterative Method of Image Restoration (1972); L. B. Lucy, An Iterative Technique for the
/// Rectification of Observed Distributions (1974).
pub fn unblurred(points: &[(i64, f64)], window: i64) -> Vec<(i64, f64)> {
    let steps = points.windows(2).map(|pair| pair[1].0 - pair[0].0).filter(|step| *step > 0);
    let (Some(step), Some(first), Some(last)) = (steps.min(), points.first(), points.last()) else {
        return points.to_vec();
    };
    let late = i64::midpoint(window, step);
    let place = |at: i64| usize::try_from((at - first.0) / step).unwrap_or(0);
    let (count, width) = (place(last.0) + 1, usize::try_from((window + step / 2) / step).unwrap_or(0));
    if width < 2 || count > points.len() * GAPS_MAX {
        return points.iter().map(|(at, rate)| (at - late, *rate)).collect();
    }
    let mut rates = vec![f64::NAN; count];
    points.iter().for_each(|(at, rate)| rates[place(*at)] = rate.max(0.0));
    for place in 1..count {
        if rates[place].is_nan() {
            rates[place] = rates[place - 1];
        }
    }
    let sharp = sharpened(&rates, width);
    points.iter().map(|(at, _)| (at - late, sharp[place(*at)])).collect()
}

fn sharpened(rates: &[f64], width: usize) -> Vec<f64> {
    let mut sharp = rates.to_vec();
    for _ in 0..ROUNDS {
        let blurred = blurred(&sharp, width);
        let ratios: Vec<f64> = rates
            .iter()
            .zip(&blurred)
            .map(|(rate, blurred)| if *blurred > 0.0 { rate / blurred } else { 1.0 })
            .collect();
        let ratios = self::blurred(&ratios, width);
        sharp.iter_mut().zip(ratios).for_each(|(item, ratio)| *item *= ratio);
    }
    sharp
}

/// Means over so many values around each: of an even number those at the ends count half.
fn blurred(values: &[f64], width: usize) -> Vec<f64> {
    let half = width / 2;
    let end = if width.is_multiple_of(2) { 0.5 } else { 1.0 };
    let mean = |place: usize| {
        let first = place.saturating_sub(half);
        let around = values.iter().enumerate().take(place + half + 1).skip(first);
        let (sum, weights) = around.fold((0.0, 0.0), |(sum, weights), (other, value)| {
            let weight = if other.abs_diff(place) == half { end } else { 1.0 };
            (sum + weight * value, weights + weight)
        });
        sum / weights
    };
    (0..values.len()).map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::unblurred;

    /// Demand that is another every five minutes, and its rates over five minutes, minute by minute.
    fn recorded() -> (Vec<f64>, Vec<(i64, f64)>) {
        let truth: Vec<f64> = (0..600).map(|minute| 100.0 + f64::from((minute / 5 * 37) % 11) * 4.0).collect();
        let rate = |at: usize| truth[at.saturating_sub(5)..at].iter().sum::<f64>() / 5.0;
        let rates = (5..600).map(|at| (at as i64 * 60, rate(at))).collect();
        (truth, rates)
    }

    fn off(truth: &[f64], points: &[(i64, f64)]) -> f64 {
        let numbers: Vec<f64> = points
            .iter()
            .filter(|(at, _)| (600..33_000).contains(at))
            .map(|(at, rate)| rate - truth[(at / 60) as usize])
            .collect();
        libm::sqrt(numbers.iter().map(|number| number * number).sum::<f64>() / numbers.len() as f64)
    }

    #[test]
    fn rates_are_put_where_they_belong_and_sharpened() {
        let (truth, rates) = recorded();
        let moved: Vec<(i64, f64)> = rates.iter().map(|(at, rate)| (at - 180, *rate)).collect();
        let sharp = unblurred(&rates, 300);
        assert!(off(&truth, &moved) < 0.8 * off(&truth, &rates), "{} {}", off(&truth, &moved), off(&truth, &rates));
        assert!(off(&truth, &sharp) < 0.6 * off(&truth, &moved), "{} {}", off(&truth, &sharp), off(&truth, &moved));
        let sum = |points: &[(i64, f64)]| points.iter().map(|point| point.1).sum::<f64>();
        assert!((sum(&sharp) / sum(&rates) - 1.0).abs() < 1e-3);
        assert!(sharp.iter().all(|item| item.1 >= 0.0));
    }

    #[test]
    fn step_rates_are_shifted_and_gaps_stay() {
        let points = [(300, 1.0), (600, 3.0), (900, 2.0)];
        assert_eq!(unblurred(&points, 300), [(0, 1.0), (300, 3.0), (600, 2.0)]);
        let few = [(0, 1.0), (60, 1.0), (60_000, 9.0)];
        assert_eq!(unblurred(&few, 300), [(-180, 1.0), (-120, 1.0), (59_820, 9.0)]);
        assert_eq!(unblurred(&[(5, 1.0)], 300), [(5, 1.0)]);
        let even: Vec<(i64, f64)> = (0..50).map(|place| (place * 60, 7.0)).collect();
        assert!(unblurred(&even, 240).iter().all(|unblurred| (unblurred.1 - 7.0).abs() < 1e-9));
    }
}
