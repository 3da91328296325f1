//! Curves: values by instant, laid over each other. There may be millions of points, of which most curves have the same instants.

use std::collections::BTreeMap;

use nodecast_model::domain::SimTime;

use super::super::answer::Series;
use super::Frame;

/// A curve: values in order of their instants.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Curve {
    points: Vec<(SimTime, f64)>,
}

/// Curves by workload.
pub(super) type Curves = BTreeMap<String, Curve>;

impl Curve {
    /// Adds a series; what is no number counts nothing.
    pub(super) fn add(&mut self, series: &Series, frame: Frame) {
        let samples = series.samples.iter().filter(|sample| sample.value.is_finite());
        // As every sum, from zero on: the first value too is added to it.
        lay(&mut self.points, samples.map(|sample| (frame.at(sample), 0.0 + sample.value)), |sum, value| *sum += value);
    }

    /// Its points in order.
    pub(super) fn points(&self) -> &[(SimTime, f64)] {
        &self.points
    }

    /// The mean over its instants; `None` without any.
    pub(super) fn mean(&self) -> Option<f64> {
        let sum: f64 = self.points.iter().map(|(_, value)| value).sum();
        (!self.points.is_empty()).then(|| sum / self.points.len() as f64)
    }
}

/// Lays points over others, both in order of their keys: `add` adds to the value of a key that is there, and other keys come in between.
pub(super) fn lay<K: Ord + Copy, V>(
    points: &mut Vec<(K, V)>,
    others: impl Iterator<Item = (K, V)>,
    add: impl Fn(&mut V, V),
) {
    let mut others = others.peekable();
    let Some(first) = others.peek().map(|(key, _)| *key) else { return };
    let there = points.len();
    let mut place = points.partition_point(|(key, _)| *key < first);
    for (key, value) in others {
        while place < there && points[place].0 < key {
            place += 1;
        }
        match points[..there].get_mut(place) {
            Some((item, sum)) if *item == key => add(sum, value),
            _ => points.push((key, value)),
        }
    }
    let is_behind = there.checked_sub(1).is_none_or(|last| points.get(there).is_none_or(|new| points[last].0 < new.0));
    if !is_behind {
        points.sort_by_key(|(key, _)| *key);
    }
}

/// Takes the next point off the rest of a curve, if it is of this instant: its value.
pub(super) fn next_at(rest: &mut &[(SimTime, f64)], at: SimTime) -> Option<f64> {
    let (first, others) = rest.split_first().filter(|(first, _)| first.0 == at)?;
    *rest = others;
    Some(first.1)
}

#[cfg(test)]
mod tests {
    use nodecast_model::domain::SimTime;

    use super::{lay, next_at};

    fn laid(all: &[&[i64]]) -> Vec<(i64, i64)> {
        let mut points = Vec::new();
        for item in all {
            lay(&mut points, item.iter().map(|key| (*key, 1)), |sum, one| *sum += one);
        }
        points
    }

    #[test]
    fn points_are_summed_by_time_in_order() {
        assert_eq!(laid(&[&[1, 2, 3], &[2, 3, 4]]), [(1, 1), (2, 2), (3, 2), (4, 1)]);
        assert_eq!(laid(&[&[3, 5], &[1, 2]]), [(1, 1), (2, 1), (3, 1), (5, 1)]);
        assert_eq!(laid(&[&[1, 9], &[], &[0, 4, 9], &[4, 10]]), [(0, 1), (1, 1), (4, 2), (9, 2), (10, 1)]);
    }

    #[test]
    fn a_point_is_taken_at_its_instant_alone() {
        let at = SimTime::from_micros;
        let points = [(at(1), 1.0), (at(3), 3.0)];
        let mut rest = &points[..];
        let taken: Vec<bool> = (0..4).map(|micros| next_at(&mut rest, at(micros)).is_some()).collect();
        assert_eq!((taken, rest.len()), (vec![false, true, false, true], 0));
    }
}
