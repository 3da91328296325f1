//! From when on requests come from where: the steps of a load.
//!
//! A curve over weeks has thousands of steps, which differ in their instant and their rate. What must not live here: how curves are made
//! (`load`), when a step is taken (`load_loop`).

use crate::domain::{SimDuration, SimTime};
use crate::load::Source;

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
    /// When each begins, and how much there is from then on: a rate, CPU in thousandths, or requests that are left.
    amounts: Vec<(SimTime, f64)>,
    /// The steps in a row that are alike but for that: the place of the first of each row, and what they have in common.
    rows: Vec<(usize, Row)>,
}

/// What steps have in common.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Row {
    kind: Kind,
    part: u32,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Kind {
    Idle,
    Open,
    Cpu,
    Closed { clients: u32, think_time: SimDuration },
}

impl LoadSteps {
    /// Appends a step, which is not before the last.
    pub fn push(&mut self, step: LoadStep) {
        let (kind, amount) = match step.source {
            Source::Idle => (Kind::Idle, 0.0),
            Source::Open { rate } => (Kind::Open, rate),
            Source::Cpu { milli } => (Kind::Cpu, milli),
            Source::Closed { clients, remaining, think_time } => (Kind::Closed { clients, think_time }, remaining),
        };
        let row = Row { kind, part: step.part };
        if self.rows.last().is_none_or(|(_, last)| *last != row) {
            self.rows.push((self.amounts.len(), row));
        }
        self.amounts.push((step.at, amount));
    }

    /// Drops the steps from an instant on.
    pub fn end_at(&mut self, at: SimTime) {
        let left = self.amounts.partition_point(|(own, _)| *own < at);
        self.amounts.truncate(left);
        self.rows.retain(|(first, _)| *first < left);
    }

    /// Gives back room that is not used.
    pub fn shrink(&mut self) {
        self.amounts.shrink_to_fit();
    }

    /// The step at a place.
    pub fn get(&self, place: usize) -> Option<LoadStep> {
        let &(at, amount) = self.amounts.get(place)?;
        let row = self.rows.partition_point(|(first, _)| *first <= place).checked_sub(1)?;
        let (_, Row { kind, part }) = *self.rows.get(row)?;
        let source = match kind {
            Kind::Idle => Source::Idle,
            Kind::Open => Source::Open { rate: amount },
            Kind::Cpu => Source::Cpu { milli: amount },
            Kind::Closed { clients, think_time } => Source::Closed { clients, remaining: amount, think_time },
        };
        Some(LoadStep { at, source, part })
    }

    /// The first step.
    pub fn first(&self) -> Option<LoadStep> {
        self.get(0)
    }

    /// All steps in order.
    pub fn iter(&self) -> impl Iterator<Item = LoadStep> + '_ {
        (0..self.amounts.len()).filter_map(|place| self.get(place))
    }
}

#[cfg(test)]
mod tests {
    use super::{LoadStep, LoadSteps};
    use crate::domain::{SimDuration, SimTime};
    use crate::load::Source;

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
        all.iter().for_each(|own| steps.push(*own));
        assert_eq!(steps.iter().collect::<Vec<_>>(), all);
        assert_eq!((steps.first(), steps.get(7)), (Some(all[0]), None));
        steps.end_at(at(4));
        steps.shrink();
        assert_eq!(steps.iter().collect::<Vec<_>>(), all[..4]);
        let again = LoadStep { at: at(4), ..all[6] };
        steps.push(again);
        assert_eq!(steps.iter().last(), Some(again));
    }
}
