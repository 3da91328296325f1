//! Levels and differences of figures over points, each by the statistic of its kind. Must not hold: how an interval is found.

use super::figures::{FIGURES, Figure, Level};
use super::point::Point;
use super::statistics::{Estimate, Paired};

/// The value of the figure with this number at a point.
pub fn value(point: &Point, figure: usize) -> Option<f64> {
    point.figures.get(figure).copied().flatten()
}

/// The level of a figure with its interval, by its values in several runs; `None` without values.
pub fn level(figure: &Figure, values: &[f64]) -> Option<Estimate> {
    let (least, most) = figure.unit.range();
    let estimate = match figure.level() {
        Level::Mean => Estimate::from_values(values),
        Level::Median => Estimate::of_median(values),
        Level::Count => Estimate::of_count(values),
    };
    estimate.map(|estimate| estimate.within(least, most))
}

/// A figure of `other` against `base`, run by run; `None` without values.
pub fn difference(figure: &Figure, base: &[f64], other: &[f64]) -> Option<Paired> {
    match figure.level() {
        Level::Mean => Paired::new(base, other),
        Level::Median => Paired::of_medians(base, other),
        Level::Count => Paired::of_counts(base, other),
    }
}

/// The level of the figure with this number over `points`; `None` when none had anything to measure.
pub fn level_of(points: &[&Point], figure: usize) -> Option<Estimate> {
    let described = FIGURES.get(figure)?;
    let values: Vec<f64> = points.iter().filter_map(|point| value(point, figure)).collect();
    let level = level(described, &values)?;
    Some(if is_fixed(described, points) { level.exactly() } else { level })
}

/// A figure of `other` against `base`, whose points are in the same order of seeds, over those where both had something to
/// measure.
pub fn paired(base: &[&Point], other: &[&Point], figure: usize) -> Option<Paired> {
    let described = FIGURES.get(figure)?;
    let pairs = base.iter().zip(other).filter_map(|(a, b)| Some((value(a, figure)?, value(b, figure)?)));
    let (values, others): (Vec<f64>, Vec<f64>) = pairs.unzip();
    let paired = difference(described, &values, &others)?;
    let are_same_runs = base.iter().zip(other).all(|(a, b)| a.event_hash == b.event_hash);
    let equal = values.iter().zip(&others).all(|(a, b)| a.to_bits() == b.to_bits());
    if (are_same_runs && equal) || (is_fixed(described, base) && is_fixed(described, other)) {
        let relative = paired.relative.map(Estimate::exactly);
        return Some(Paired { difference: paired.difference.exactly(), relative });
    }
    Some(paired)
}

/// Whether the input fixes a figure: no seed changes anything in a run, or nothing is there that the figure could count.
fn is_fixed(figure: &Figure, points: &[&Point]) -> bool {
    let Some(first) = points.first() else { return true };
    let same_run = |point: &&Point| point.event_hash == first.event_hash && point.figures == first.figures;
    points.iter().all(same_run) || (figure.name == "interruptions" && !points.iter().any(|point| point.spot))
}
