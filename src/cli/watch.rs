//! `--watch`: the cluster while a run goes on.

use crate::domain::{SimDuration, SimTime};
use crate::report::format::{Calendar, counted};
use crate::simulation::Progress;

/// Parts of a run after each of which a line is told where nothing can be drawn in place.
const LINES: i64 = 20;

/// What is told of a run while it goes on.
pub(super) struct Watch {
    calendar: Calendar,
    step: SimDuration,
    next: SimTime,
}

impl Watch {
    /// Watches a run that begins at `start`, RFC 3339, and lasts for `duration`.
    pub(super) fn new(start: &str, duration: SimDuration) -> Self {
        let step = SimDuration::from_micros((duration.as_micros() / LINES).max(1));
        Self { calendar: Calendar::new(start), step, next: SimTime::ZERO }
    }

    /// Whether another part of the run is over.
    pub(super) fn is_due(&mut self, now: SimTime) -> bool {
        let due = now >= self.next;
        while self.next <= now {
            self.next += self.step;
        }
        due
    }

    /// The clock, the nodes and the pods that wait for one.
    pub(super) fn line(&self, moment: &Progress<'_>) -> String {
        let (ready, starting) = moment.nodes();
        // To the second: what lies between two events is no matter.
        let second = SimTime::from_micros(moment.now.as_secs() * 1_000_000);
        format!(
            "{}  {} Ready, {starting} starting, {} pending",
            self.calendar.time(second).unwrap_or_else(|| second.to_string()),
            counted(u64::from(ready), "node", "nodes"),
            counted(u64::from(moment.pods_pending()), "pod", "pods"),
        )
    }
}
