//! Straight lines through measurements.

use super::Estimate;
use super::times::student;

/// A line through the origin.
#[derive(Clone, Copy, PartialEq, Debug, serde::Serialize)]
pub struct Slope {
    /// What `y` grows by for each unit of `x`.
    pub slope: Estimate,
    /// The standard deviation of what it leaves over; `None` of a single point.
    pub residual: Option<f64>,
}

/// Least squares of `y = slope * x` over points `(x, y)`; `None` where no `x` is above 0. A single point has no interval but itself.
pub fn slope_through_zero(points: &[(f64, f64)]) -> Option<Slope> {
    let squares: f64 = points.iter().map(|(x, _)| x * x).sum();
    if squares.is_nan() || squares <= 0.0 {
        return None;
    }
    let slope = points.iter().map(|(x, y)| x * y).sum::<f64>() / squares;
    let n = points.len();
    let rest: f64 = points.iter().map(|(x, y)| (y - slope * x) * (y - slope * x)).sum();
    let residual = (n > 1).then(|| libm::sqrt(rest / (n - 1) as f64));
    let error = residual.map_or(0.0, |residual| student(n) * residual / libm::sqrt(squares));
    Some(Slope { slope: Estimate { value: slope, low: slope - error, high: slope + error, n }, residual })
}

/// A line with an intercept.
#[derive(Clone, Copy, PartialEq, Debug, serde::Serialize)]
pub struct Line {
    /// `y` where `x` is 0.
    pub intercept: Estimate,
    /// What `y` grows by for each unit of `x`.
    pub slope: Estimate,
}

/// Least squares of `y = intercept + slope * x`; `None` of fewer than three points, or where `x` does not vary.
pub fn line(points: &[(f64, f64)]) -> Option<Line> {
    let n = points.len();
    let count = n as f64;
    if n < 3 {
        return None;
    }
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x_mean, y_mean) = (mean(|point| point.0), mean(|point| point.1));
    let spread: f64 = points.iter().map(|(x, _)| (x - x_mean) * (x - x_mean)).sum();
    if spread <= f64::EPSILON * x_mean * x_mean * count {
        return None;
    }
    let slope = points.iter().map(|(x, y)| (x - x_mean) * (y - y_mean)).sum::<f64>() / spread;
    let intercept = y_mean - slope * x_mean;
    let left: f64 = points.iter().map(|(x, y)| (y - intercept - slope * x) * (y - intercept - slope * x)).sum();
    let variance = left / (count - 2.0);
    // One degree of freedom goes to each of the two.
    let quantile = student(n - 1);
    let of_slope = quantile * libm::sqrt(variance / spread);
    let of_intercept = quantile * libm::sqrt(variance * (1.0 / count + x_mean * x_mean / spread));
    let around = |value: f64, error: f64| Estimate { value, low: value - error, high: value + error, n };
    Some(Line { intercept: around(intercept, of_intercept), slope: around(slope, of_slope) })
}

#[cfg(test)]
mod tests {
    use super::{line, slope_through_zero};

    #[test]
    fn points_on_a_line_give_it_back() {
        let through = slope_through_zero(&[(1.0, 2.0), (3.0, 6.0), (10.0, 20.0)]).unwrap();
        assert!((through.slope.value - 2.0).abs() < 1e-12 && through.slope.high - through.slope.low < 1e-9);
        let idle = line(&[(0.0, 5.0), (10.0, 25.0), (20.0, 45.0)]).unwrap();
        assert!((idle.intercept.value - 5.0).abs() < 1e-9 && (idle.slope.value - 2.0).abs() < 1e-12);
    }

    #[test]
    fn what_does_not_vary_has_no_line() {
        assert_eq!(line(&[(5.0, 1.0), (5.0, 2.0), (5.0, 3.0)]), None);
        assert_eq!(line(&[(1.0, 1.0), (2.0, 2.0)]), None);
        assert_eq!(slope_through_zero(&[(0.0, 1.0)]), None);
    }
}
