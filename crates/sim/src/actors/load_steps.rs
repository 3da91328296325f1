//! From when on requests come from where: the steps of a load.
//!
//! A curve over weeks has thousands of steps, which differ in their instant and their rate. What must not live here: how curves are made
//! (`load`), when a step is taken (`load_loop`).

use std::sync::Arc;

use crate::domain::{SimDuration, SimTime};
use crate::load::{Curve, Source};

/// From an instant on, requests come from elsewhere or cost something else.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LoadStep {
    /// When.
    pub at: SimTime,
    /// Where requests come from.
    pub source: Source,
    /// What one of them costs and how they are spaced: a place in the plan's `parts`.
    pub part: u32,
}

/// Steps in order of time.
#[derive(Clone, Debug, Default)]
pub struct LoadSteps {
    rows: Vec<Row>,
}

/// Steps in a row that have something in common.
#[derive(Clone, Debug)]
struct Row {
    /// The place of its first step among all.
    first: usize,
    /// How many there are.
    count: usize,
    part: u32,
    what: What,
}

#[derive(Clone, Debug)]
enum What {
    /// One step.
    One(SimTime, Source),
    /// Those of a curve, which stays where it is: one of a month has ten thousand steps, and compared policies share it.
    Followed {
        curve: Arc<Curve>,
        /// Where the curve's zero is.
        from: SimTime,
        /// Its steps up to there, the last of which holds at first.
        past: usize,
        /// What its rates are.
        unit: Unit,
    },
}

/// What the rates of a curve are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Requests per second.
    Requests,
    /// Cores in use.
    Cores,
}

impl Row {
    /// The step at a place among its own.
    fn get(&self, place: usize) -> Option<LoadStep> {
        if place >= self.count {
            return None;
        }
        let (at, source) = match &self.what {
            What::One(at, source) => (*at, *source),
            What::Followed { curve, from, past, unit } => {
                let step = (past + place).checked_sub(1).and_then(|difference| curve.steps().get(difference));
                let rate = step.map_or(0.0, |step| step.rate);
                let since = step.filter(|_| place > 0).map_or(SimDuration::ZERO, |step| step.from);
                let source = match unit {
                    Unit::Requests => Source::Open { rate },
                    Unit::Cores => Source::Cpu { milli: rate * 1e3 },
                };
                (*from + since, source)
            }
        };
        Some(LoadStep { at, source, part: self.part })
    }

    /// How many of its first steps are before an instant.
    fn before(&self, at: SimTime) -> usize {
        let (mut least, mut most) = (0, self.count);
        while least < most {
            let middle = usize::midpoint(least, most);
            if self.get(middle).is_some_and(|item| item.at < at) { least = middle + 1 } else { most = middle }
        }
        least
    }
}

impl LoadSteps {
    /// Appends a step, which is not before the last.
    pub fn push(&mut self, step: LoadStep) {
        self.rows.push(Row { first: self.count(), count: 1, part: step.part, what: What::One(step.at, step.source) });
    }

    /// Appends the steps of a curve whose zero is at an instant, which is not before the last step, until another.
    pub fn follow(&mut self, curve: Arc<Curve>, unit: Unit, (from, until): (SimTime, SimTime), part: u32) {
        let past = curve.steps().partition_point(|step| step.from <= SimDuration::ZERO);
        let count = curve.steps().len() - past + 1;
        let row = Row { first: self.count(), count, part, what: What::Followed { curve, from, past, unit } };
        let count = row.before(until);
        if count > 0 {
            self.rows.push(Row { count, ..row });
        }
    }

    fn count(&self) -> usize {
        self.rows.last().map_or(0, |last| last.first + last.count)
    }

    /// Drops the steps from an instant on.
    pub fn end_at(&mut self, at: SimTime) {
        self.rows.retain_mut(|row| {
            row.count = row.before(at);
            row.count > 0
        });
    }

    /// The step at a place.
    pub fn get(&self, place: usize) -> Option<LoadStep> {
        let row = self.rows.partition_point(|row| row.first <= place).checked_sub(1)?;
        let row = self.rows.get(row)?;
        row.get(place - row.first)
    }

    /// The first step.
    pub fn first(&self) -> Option<LoadStep> {
        self.get(0)
    }

    /// All steps in order.
    pub fn iter(&self) -> impl Iterator<Item = LoadStep> + '_ {
        (0..self.count()).filter_map(|place| self.get(place))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{LoadStep, LoadSteps, Unit};
    use crate::domain::{SimDuration, SimTime};
    use crate::load::{Curve, CurveStep, Source};

    #[test]
    fn load_curve_runs_from_zero_to_end() {
        let secs = SimDuration::from_secs;
        let step = |(from, rate): (i64, f64)| CurveStep { from: secs(from), rate };
        let curve = Arc::new(Curve::from_steps([(-5, 1.0), (0, 2.0), (10, 3.0), (20, 4.0)].map(step).to_vec()));
        let at = |seconds| SimTime::ZERO + secs(seconds);
        let mut steps = LoadSteps::default();
        steps.follow(Arc::clone(&curve), Unit::Cores, (at(100), at(120)), 7);
        let milli = |seconds, milli| LoadStep { at: at(seconds), source: Source::Cpu { milli }, part: 7 };
        assert_eq!(steps.iter().collect::<Vec<_>>(), [milli(100, 2e3), milli(110, 3e3)]);
        steps.end_at(at(110));
        steps.follow(Arc::new(Curve::default()), Unit::Requests, (at(110), at(200)), 8);
        let none = LoadStep { at: at(110), source: Source::Open { rate: 0.0 }, part: 8 };
        assert_eq!(steps.iter().collect::<Vec<_>>(), [milli(100, 2e3), none]);
        steps.follow(curve, Unit::Requests, (at(300), at(300)), 9);
        assert_eq!((steps.get(1), steps.get(2)), (Some(none), None));
    }

    #[test]
    fn steps_are_as_they_were_appended() {
        let closed = |clients| Source::Closed { clients, remaining: 3.0, think_time: SimDuration::from_secs(2) };
        let sources = [
            Source::Idle,
            Source::Open { rate: 1.5 },
            Source::Open { rate: 2.5 },
            Source::Cpu { milli: 7.0 },
            closed(4),
            closed(5),
            Source::Idle,
        ];
        let at = |place: usize| SimTime::from_micros(place as i64 / 2);
        let step = |(place, source): (usize, Source)| LoadStep { at: at(place), source, part: place as u32 / 3 };
        let all: Vec<LoadStep> = sources.into_iter().enumerate().map(step).collect();
        let mut steps = LoadSteps::default();
        all.iter().for_each(|item| steps.push(*item));
        assert_eq!(steps.iter().collect::<Vec<_>>(), all);
        assert_eq!((steps.first(), steps.get(7)), (Some(all[0]), None));
        steps.end_at(at(4));
        assert_eq!(steps.iter().collect::<Vec<_>>(), all[..4]);
        let again = LoadStep { at: at(4), ..all[6] };
        steps.push(again);
        assert_eq!(steps.iter().last(), Some(again));
    }
}
