//! How long a group is left alone after a failure.
//!
//! Source: Cluster Autoscaler 1.36 `utils/backoff/exponential_backoff.go`.

use std::collections::BTreeMap;

use nodecast_model::domain::{SimDuration, SimTime, Symbol};

/// The three flags.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BackoffTimes {
    /// `initial-node-group-backoff-duration`.
    pub initial: SimDuration,
    /// `max-node-group-backoff-duration`.
    pub max: SimDuration,
    /// `node-group-backoff-reset-timeout`.
    pub reset: SimDuration,
}

impl Default for BackoffTimes {
    fn default() -> Self {
        Self {
            initial: SimDuration::from_secs(300),
            max: SimDuration::from_secs(1_800),
            reset: SimDuration::from_secs(10_800),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Failed {
    duration: SimDuration,
    until: SimTime,
    last: SimTime,
}

/// The groups that failed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Backoff {
    times: BackoffTimes,
    failed: BTreeMap<Symbol, Failed>,
}

impl Backoff {
    /// With these times.
    pub fn new(times: BackoffTimes) -> Self {
        Self { times, failed: BTreeMap::new() }
    }

    /// Leaves a group alone from now on; gives back until when. A failure after the last window has ended doubles it,
    /// one within it starts it anew.
    pub fn fail(&mut self, group: Symbol, now: SimTime) -> SimTime {
        let mut duration = self.times.initial;
        if let Some(known) = self.failed.get(&group) {
            duration = if known.until < now { (known.duration * 2).min(self.times.max) } else { known.duration };
        }
        let until = now + duration;
        self.failed.insert(group, Failed { duration, until, last: now });
        until
    }

    /// Whether a group is left alone.
    pub fn holds(&self, group: Symbol, now: SimTime) -> bool {
        self.failed.get(&group).is_some_and(|failed| failed.until >= now)
    }

    /// Forgets failures of long ago.
    pub fn forget_stale(&mut self, now: SimTime) {
        let reset = self.times.reset;
        self.failed.retain(|_, failed| failed.last + reset >= now);
    }
}
