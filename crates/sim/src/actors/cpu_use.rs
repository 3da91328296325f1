//! CPU used over time at a rate that changes now and then, and what had been used at an instant shortly before.

use std::collections::VecDeque;

use crate::domain::{SimDuration, SimTime};

/// CPU that something has used since the start of the run, in millionths of a CPU times microseconds.
#[derive(Clone, Debug)]
pub(super) struct CpuUse {
    present: Stretch,
    /// Earlier stretches, oldest first, as far back as anybody asks.
    past: VecDeque<Stretch>,
    /// How far back one may ask.
    remembered: SimDuration,
}

/// A stretch of time at one rate.
#[derive(Clone, Copy, Debug, Default)]
struct Stretch {
    from: SimTime,
    /// Used before it.
    used: i128,
    /// In millionths of a CPU.
    rate: i64,
}

impl Stretch {
    fn used_by(&self, at: SimTime) -> i128 {
        self.used + i128::from(self.rate) * i128::from(at.saturating_since(self.from).as_micros())
    }
}

impl CpuUse {
    /// None so far. One may ask about what metrics-server that reads every `resolution` tells of: two readings before the last
    /// one that it knows, and the age of that.
    pub(super) fn read_every(resolution: SimDuration) -> Self {
        Self { present: Stretch::default(), past: VecDeque::new(), remembered: resolution * 4 }
    }

    /// Used by the instant `at`, which is at most four readings ago.
    pub(super) fn by(&self, at: SimTime) -> i128 {
        if at >= self.present.from {
            return self.present.used_by(at);
        }
        let earlier = self.past.iter().rev().find(|stretch| stretch.from <= at).or(self.past.front());
        earlier.unwrap_or(&self.present).used_by(at)
    }

    /// The present rate, in millionths of a CPU.
    pub(super) fn rate(&self) -> i64 {
        self.present.rate
    }

    /// The present rate if it has been the same since `since`.
    pub(super) fn rate_since(&self, since: SimTime) -> Option<i64> {
        (self.present.from <= since).then_some(self.present.rate)
    }

    /// Used at another rate from now on.
    pub(super) fn set_rate(&mut self, rate: i64, now: SimTime) {
        if rate == self.present.rate {
            return;
        }
        let next = Stretch { from: now, used: self.present.used_by(now), rate };
        if self.present.from < now {
            while self.past.get(1).is_some_and(|second| second.from + self.remembered <= now) {
                self.past.pop_front();
            }
            self.past.push_back(self.present);
        }
        self.present = next;
    }

    /// So much is used at once, where use is counted and not told by a rate. What had been used before is then forgotten.
    pub(super) fn add(&mut self, used: i128, now: SimTime) {
        self.present = Stretch { from: now, used: self.present.used_by(now) + used, rate: 0 };
        self.past.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::CpuUse;
    use crate::domain::{SimDuration, SimTime};

    #[test]
    fn cpu_use_remembers_the_last_minute() {
        let mut used = CpuUse::read_every(SimDuration::from_secs(15));
        let at = |seconds: i64| SimTime::from_micros(seconds * 1_000_000);
        let exact = |seconds: i128| match seconds {
            ..100 => 3 * seconds,
            100..130 => 300 + 5 * (seconds - 100),
            130..170 => 450,
            _ => 450 + 7 * (seconds - 170),
        } * 1_000_000;
        used.set_rate(3, at(0));
        used.set_rate(4, at(100));
        used.set_rate(5, at(100));
        used.set_rate(5, at(110));
        used.set_rate(0, at(130));
        used.set_rate(7, at(170));
        for seconds in 110..180 {
            assert_eq!(used.by(at(seconds)), exact(i128::from(seconds)), "at {seconds} s");
        }
        assert_eq!((used.rate_since(at(169)), used.rate_since(at(170))), (None, Some(7)));
        used.add(11, at(180));
        assert_eq!((used.by(at(190)), used.rate()), (exact(180) + 11, 0));
    }
}
