//! The time that a search may take.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// A budget of time, and the time that simulations took so far.
pub(super) struct Clock {
    begun: Instant,
    budget: Option<Duration>,
    simulating: Cell<Duration>,
    done: Cell<usize>,
}

impl Clock {
    /// One that begins now.
    pub(super) fn new(budget: Option<Duration>) -> Self {
        Self { begun: Instant::now(), budget, simulating: Cell::default(), done: Cell::default() }
    }

    /// Does `work`, which is so many simulations.
    pub(super) fn measure<T>(&self, simulations: usize, work: impl FnOnce() -> T) -> T {
        let begun = Instant::now();
        let result = work();
        self.simulating.set(self.simulating.get() + begun.elapsed());
        self.done.set(self.done.get() + simulations);
        result
    }

    /// How many simulations there were.
    pub(super) fn done(&self) -> usize {
        self.done.get()
    }

    /// How many simulations there is time for, those that were made among them.
    pub(super) fn affordable(&self) -> usize {
        let left = self.budget.map_or(Duration::ZERO, |budget| budget.saturating_sub(self.begun.elapsed()));
        self.done() + libm::floor(left.as_secs_f64() / self.each().max(1e-6)) as usize
    }

    /// Whether the budget ends before so many further simulations do.
    pub(super) fn ends_before(&self, further: usize) -> bool {
        let needed = self.begun.elapsed().as_secs_f64() + self.each() * further as f64;
        self.budget.is_some_and(|budget| needed > budget.as_secs_f64())
    }

    /// Seconds of a simulation so far, with all threads at work.
    fn each(&self) -> f64 {
        self.simulating.get().as_secs_f64() / self.done().max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Clock;

    #[test]
    fn a_clock_without_budget_never_ends() {
        let clock = Clock::new(None);
        clock.measure(1, || std::thread::sleep(Duration::from_millis(5)));
        assert!(!clock.ends_before(1_000_000) && clock.done() == 1);
        let short = Clock { budget: Some(Duration::from_secs(1)), ..clock };
        assert!(short.ends_before(1_000) && !short.ends_before(2) && short.affordable() < 1_000);
    }
}
