//! What objects, logs and events tell of the life of each node claim, of pods that started, of image pulls and of capacity that was
//! not there, in one form whatever the source.
//!
//! What must not live here: what follows from it (`estimate`); metrics and bills.

mod cloud_events;
mod input;
mod karpenter_log;
mod kubernetes_events;
mod ledger;
mod lives;
mod log_lines;
mod objects;
mod run_tables;
mod values;

use std::fmt;

pub use input::{Sources, read};
pub use lives::{Disagreement, SourceUse, Window};
pub use lives::{End, History, ImagePull, Life, LoadSample, Milestone, PodLife, Shortage, StageTimes};
pub use run_tables::span;

/// An instant of the calendar, in microseconds since 1970 in UTC.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Instant(pub i64);

impl Instant {
    /// Reads a time of RFC 3339, as Kubernetes, Karpenter and AWS write it.
    pub fn parse(text: &str) -> Option<Self> {
        text.parse::<jiff::Timestamp>().ok().map(|time| Self(time.as_microsecond()))
    }

    /// The seconds from `earlier` to this; negative if this comes first.
    pub fn seconds_since(self, earlier: Self) -> f64 {
        (self.0 - earlier.0) as f64 / 1e6
    }

    /// So many seconds later.
    #[must_use]
    pub fn plus_seconds(self, seconds: f64) -> Self {
        Self(self.0 + libm::round(seconds * 1e6) as i64)
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_microsecond(self.0) {
            Ok(time) => write!(f, "{time}"),
            Err(_) => write!(f, "{} µs", self.0),
        }
    }
}
