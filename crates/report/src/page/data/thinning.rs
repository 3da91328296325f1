//! Thinning: fewer instants of curves of steps. At each instant that stays every curve of a chart has its true value.
//!
//! Must not: thin curves that are read together one by one. Their sum would be that of no instant.

use super::encode::{Number, Runs, differences, significant, tenths};
use crate::curves::Point;

/// Of so many instants one may be that of a peak; as many again follow the peaks.
const PER_PEAK: usize = 6;
/// The error that is tried first, as a part of the largest that the instants could share.
const FINEST: f64 = 1.0 / 256.0;
/// By how much the error grows from one trial to the next, and how often before the peaks alone are left.
const GROWTH: f64 = 1.25;
const TRIALS: usize = 60;

/// Curves of steps over common instants: a state holds from its instant until the next.
#[derive(Clone, Debug)]
pub(super) struct States {
    /// In tenths of a second, ascending.
    at: Vec<i64>,
    /// One entry for each instant, `NaN` for a gap; one list for each curve.
    layers: Vec<Vec<f64>>,
}

impl States {
    /// The states of `curves` at every instant at which one of them changes. A curve is zero before its first value, but that one
    /// alone begins with it.
    pub(super) fn new(curves: &[&[Point]]) -> Self {
        let mut coming: Vec<_> = curves.iter().map(|points| changes(points).peekable()).collect();
        let mut now = vec![0.0; curves.len()];
        let mut states = Self { at: Vec::new(), layers: vec![Vec::new(); curves.len()] };
        while let Some(at) = coming.iter_mut().filter_map(|changes| Some(changes.peek()?.0)).min() {
            for (value, changes) in now.iter_mut().zip(&mut coming) {
                while let Some(change) = changes.next_if(|change| change.0 == at) {
                    *value = change.1;
                }
            }
            states.at.push(at);
            for (layer, value) in states.layers.iter_mut().zip(&now) {
                layer.push(*value);
            }
        }
        states
    }

    /// The same in `most` instants or fewer, up to the end of the run. Between two of them the area between the drawn and the true
    /// curves, added over all curves, is no larger than a bound; the bound is the smallest, up to a factor of 1.25, that leaves few
    /// enough. The highest sum of each stretch stays, and what follows it, so that a peak is as long as it was.
    pub(super) fn thinned(self, end: i64, most: usize) -> Self {
        if self.at.len() <= most {
            return self;
        }
        let peaks = self.peaks(end, most / PER_PEAK);
        let highest = (0..self.at.len()).map(|position| self.sum(position).abs()).fold(0.0, f64::max);
        let mut bound = highest * end.max(1) as f64 / most.max(1) as f64 * FINEST;
        for _ in 0..TRIALS {
            let kept = self.within(bound, &peaks, end);
            if kept.len() <= most {
                return self.only(&kept);
            }
            bound *= GROWTH;
        }
        let kept = self.within(f64::INFINITY, &peaks, end);
        self.only(&kept)
    }

    /// Whether a state is the highest of one of so many stretches of equal length, or the one after it.
    fn peaks(&self, end: i64, stretches: usize) -> Vec<bool> {
        let stretch = end / i64::try_from(stretches).unwrap_or(i64::MAX).max(1) + 1;
        let mut peaks = vec![false; self.at.len() + 1];
        let mut from = 0;
        for states in self.at.chunk_by(|one, other| one / stretch == other / stretch) {
            let until = from + states.len();
            let highest = (from..until).reduce(|one, other| if self.sum(other) > self.sum(one) { other } else { one });
            if let Some(highest) = highest {
                (peaks[highest], peaks[highest + 1]) = (true, true);
            }
            from = until;
        }
        peaks
    }

    /// The positions that stay: the first, those of `always`, and each from which on the area of the error would pass `bound` before
    /// the next instant.
    fn within(&self, bound: f64, always: &[bool], end: i64) -> Vec<usize> {
        let mut kept = vec![0];
        let (mut drawn, mut area) = (0, 0.0);
        for (position, &stays) in always.iter().enumerate().take(self.at.len()).skip(1) {
            let until = self.at.get(position + 1).copied().unwrap_or(end).max(self.at[position]);
            let grown = area + self.distance(drawn, position) * (until - self.at[position]) as f64;
            if stays || grown > bound {
                kept.push(position);
                (drawn, area) = (position, 0.0);
            } else {
                area = grown;
            }
        }
        kept
    }

    fn only(&self, kept: &[usize]) -> Self {
        Self {
            at: kept.iter().map(|&position| self.at[position]).collect(),
            layers: self.layers.iter().map(|layer| kept.iter().map(|&position| layer[position]).collect()).collect(),
        }
    }

    /// All curves of one state together; a gap adds nothing.
    fn sum(&self, position: usize) -> f64 {
        self.layers.iter().map(|layer| layer[position]).filter(|value| !value.is_nan()).sum()
    }

    /// How far two states are apart, over all curves. A gap is no value, and infinitely far from any.
    fn distance(&self, one: usize, other: usize) -> f64 {
        let between = |layer: &Vec<f64>| match (layer[one].is_nan(), layer[other].is_nan()) {
            (false, false) => (layer[one] - layer[other]).abs(),
            (true, true) => 0.0,
            _ => f64::INFINITY,
        };
        self.layers.iter().map(between).sum()
    }

    /// The instants, each less the one before it.
    pub(super) fn instants(&self) -> Runs<i64> {
        differences(self.at.iter().copied())
    }

    /// The values of each curve, in the order in which they were given.
    pub(super) fn values(self) -> impl Iterator<Item = Runs<Option<Number>>> {
        let number = |value: f64| (!value.is_nan()).then_some(Number(value));
        self.layers.into_iter().map(move |layer| Runs(layer.into_iter().map(number).collect()))
    }
}

/// An instant and the value from then on, `NaN` for a gap.
type Change = (i64, f64);

/// The instants at which a curve changes, as the page writes them: of those that it cannot tell apart the last.
fn changes(points: &[Point]) -> impl Iterator<Item = Change> {
    let same = |one: f64, other: f64| one.to_bits() == other.to_bits();
    let bits = |point: &Point| point.1.get().map(f64::to_bits);
    let mut firsts = points.chunk_by(move |one, other| bits(one) == bits(other)).filter_map(<[Point]>::first);
    let mut last: Option<Change> = None;
    std::iter::from_fn(move || {
        for &(at, value) in firsts.by_ref() {
            let (at, value) = (tenths(at), value.get().map_or(f64::NAN, |value| significant(value, 5)));
            match &mut last {
                Some(last) if last.0 == at => last.1 = value,
                Some(last) if same(last.1, value) => {}
                _ => {
                    if let Some(before) = last.replace((at, value)) {
                        return Some(before);
                    }
                }
            }
        }
        last.take()
    })
}

#[cfg(test)]
mod tests {
    use super::States;
    use crate::curves::Point;
    use crate::domain::SimTime;

    /// Tenths of a second of a week.
    const END: i64 = 7 * 864_000;

    /// Curves over a week from changes (curve, tenths, new value).
    fn curves(count: usize, changes: &[(usize, i64, f64)]) -> Vec<Vec<Point>> {
        let mut curves = vec![vec![(SimTime::ZERO, 0.0.into())]; count];
        for &(curve, at, value) in changes {
            curves[curve].push((SimTime::from_micros(at * 100_000), value.into()));
        }
        curves
    }

    fn states(curves: &[Vec<Point>]) -> States {
        States::new(&curves.iter().map(Vec::as_slice).collect::<Vec<_>>())
    }

    /// Nodes of `kinds` that come and go by a wave of a day and by chance; many instants are common to several kinds.
    fn fleet(kinds: usize, changes: usize, mut seed: u64) -> Vec<Vec<Point>> {
        let mut next = move |below: u64| {
            // A linear congruential generator is chance enough for a test.
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        let mut counts = vec![3_i64; kinds];
        let mut all = Vec::new();
        for n in 0..changes {
            let at = n as i64 * END / changes as i64 / 20 * 20;
            let day = (at % 864_000 - 432_000).abs() * 16 / 432_000;
            let kind = next(kinds as u64) as usize;
            let grows = next(20) as i64 > day;
            counts[kind] = (counts[kind] + if grows { 1 } else { -1 }).clamp(0, 30);
            all.push((kind, at, counts[kind] as f64));
        }
        curves(kinds, &all)
    }

    /// Every state of `whole` beside what is drawn of it: sums and for how long.
    fn beside(whole: &States, drawn: &States) -> Vec<(i64, f64, f64, i64)> {
        let length = whole.at.len();
        let row = |position: usize| {
            let at = whole.at[position];
            let until = whole.at.get(position + 1).copied().unwrap_or(END);
            let item = drawn.at.partition_point(|instant| *instant <= at) - 1;
            (at, whole.sum(position), drawn.sum(item), until - at)
        };
        (0..length).map(row).collect()
    }

    /// The largest area between the drawn and the true sum from one kept instant to the next.
    fn largest_area(rows: &[(i64, f64, f64, i64)], drawn: &States) -> f64 {
        let segment = |at: i64| drawn.at.partition_point(|instant| *instant <= at);
        let segments = rows.chunk_by(|one, other| segment(one.0) == segment(other.0));
        let area =
            |rows: &[(i64, f64, f64, i64)]| rows.iter().map(|row| (row.1 - row.2).abs() * row.3 as f64).sum::<f64>();
        segments.map(area).fold(0.0, f64::max)
    }

    fn mean(rows: &[(i64, f64, f64, i64)], value: impl Fn(&(i64, f64, f64, i64)) -> f64) -> f64 {
        rows.iter().map(|row| value(row) * row.3 as f64).sum::<f64>() / END as f64
    }

    #[test]
    fn thinned_layers_add_up_at_every_kept_instant() {
        for (kinds, changes, most) in [(10, 9_000, 1_300), (3, 40_000, 500), (1, 5_000, 120), (6, 70_000, 2_000)] {
            let whole = states(&fleet(kinds, changes, 11 + kinds as u64));
            let drawn = whole.clone().thinned(END, most);
            assert!(drawn.at.len() <= most && drawn.at.len() > most / 4, "{} of {most}", drawn.at.len());
            for (position, at) in drawn.at.iter().enumerate() {
                let binary_search =
                    whole.at.binary_search(at).expect("a kept instant is one at which something changes");
                for (drawn, whole) in drawn.layers.iter().zip(&whole.layers) {
                    assert_eq!(drawn[position].to_bits(), whole[binary_search].to_bits(), "{kinds} kinds at {at}");
                }
            }
        }
    }

    #[test]
    fn thinned_series_error_stays_within_bound() {
        for (kinds, changes, most) in [(10, 9_000, 1_300), (3, 40_000, 500), (1, 5_000, 120), (6, 70_000, 2_000)] {
            let whole = states(&fleet(kinds, changes, 5 + kinds as u64));
            let drawn = whole.clone().thinned(END, most);
            let rows = beside(&whole, &drawn);
            let highest = rows.iter().map(|row| row.1).fold(0.0, f64::max);
            // The bound: the whole area under the highest sum, shared by the instants.
            let bound = highest * END as f64 / most as f64;
            let area = largest_area(&rows, &drawn);
            assert!(area <= bound, "{area} of {bound}");
            let (truth, shown) = (mean(&rows, |row| row.1), mean(&rows, |row| row.2));
            assert!((shown - truth).abs() < truth * 0.01, "{shown}, not {truth}");
            let peak = rows.iter().map(|row| row.2).fold(0.0, f64::max);
            assert_eq!(peak.to_bits(), highest.to_bits(), "no peak is lost");
        }
    }

    #[test]
    fn mean_of_a_curve_that_flaps_is_kept() {
        // Every 10 s from 10 to 20 and back, for a week: thirty times as many changes as there is room for.
        let flaps: Vec<_> = (0..60_480).map(|n| (0, n * 100, if n % 2 == 0 { 20.0 } else { 10.0 })).collect();
        let whole = states(&curves(1, &flaps));
        let drawn = whole.clone().thinned(END, 2_000);
        let rows = beside(&whole, &drawn);
        let shown = mean(&rows, |row| row.2);
        assert!((shown - 15.0).abs() < 1.5, "{shown}, where the largest values alone would be 20");
    }

    #[test]
    fn gaps_of_a_thinned_curve_stay() {
        let mut curve: Vec<Point> =
            (0..4_000).map(|n| (SimTime::from_micros(n * 100_000_000), ((n % 7) as f64).into())).collect();
        for point in &mut curve[1_000..1_010] {
            point.1 = None::<f64>.into();
        }
        let drawn = states(&[curve]).thinned(4_000_000, 300);
        let gap = drawn.layers[0].iter().position(|value| value.is_nan()).expect("the gap is there");
        assert_eq!((drawn.at[gap], drawn.at[gap + 1]), (1_000_000, 1_010_000));
    }
}
