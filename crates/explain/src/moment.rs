//! The moment that is asked about: how long after the start, by the clock, or with its date. Calendar times are UTC, as in a
//! report.

use std::convert::Infallible;
use std::str::FromStr;

use jiff::civil::{DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use crate::domain::{SimDuration, SimTime};
use crate::scenario::Scenario;

/// A moment as it was written, which only the scenario gives a meaning.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StatedTime(String);

/// Why a text is no moment of a run.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum MomentError {
    /// None of the three forms.
    #[error("`{given}` is not a time")]
    Malformed {
        /// What was given.
        given: String,
        /// The forms, with a moment of this run.
        #[help]
        help: String,
    },
    /// Before the run.
    #[error("`{given}` is before the start of the run")]
    Early {
        /// What was given.
        given: String,
        /// The forms, with a moment of this run.
        #[help]
        help: String,
    },
}

impl FromStr for StatedTime {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.trim().to_owned()))
    }
}

impl StatedTime {
    /// The moment of a run of `scenario`: a span after its start (`1h30m`), the first time that the clock shows `13:45` or
    /// `13:45:30`, or a date with a time (`2026-11-24T13:45:00Z`, `2026-11-24 13:45`, or as a report has it, `24 Nov 13:45`).
    ///
    /// # Errors
    /// If it is none of them, or lies before the start.
    pub fn of_run(&self, scenario: &Scenario) -> Result<SimTime, MomentError> {
        let given = || self.0.chars().take(80).collect();
        if let Ok(span) = self.0.parse::<SimDuration>() {
            return Ok(SimTime::ZERO + span);
        }
        let Some(time) = self.calendar(scenario.start) else {
            return Err(MomentError::Malformed { given: given(), help: forms(scenario) });
        };
        match i64::try_from(time.duration_since(scenario.start).as_micros()) {
            Ok(micros) if micros >= 0 => Ok(SimTime::from_micros(micros)),
            _ => Err(MomentError::Early { given: given(), help: forms(scenario) }),
        }
    }

    /// The calendar time that is meant in a run from `start` on.
    fn calendar(&self, start: Timestamp) -> Option<Timestamp> {
        let begins = TimeZone::UTC.to_datetime(start);
        let utc = |time: DateTime| TimeZone::UTC.to_timestamp(time).ok();
        if self.0.contains(':') && self.0.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b':' | b'.')) {
            let clock: Time = self.0.parse().ok()?;
            let first = utc(begins.date().to_datetime(clock))?;
            return if first < start { first.checked_add(SignedDuration::from_hours(24)).ok() } else { Some(first) };
        }
        if let Ok(time) = self.0.parse::<Timestamp>() {
            return Some(time);
        }
        // A report names day and month, and a run seldom sees two years.
        let dated = format!("{} {}", begins.year(), self.0);
        let of_report = || {
            let forms = ["%Y %d %b %H:%M:%S", "%Y %d %b %H:%M"];
            forms.iter().find_map(|form| DateTime::strptime(form, &dated).ok())
        };
        let with_time = self.0.contains(':').then(|| self.0.parse::<DateTime>().ok()).flatten();
        with_time.or_else(of_report).and_then(utc)
    }
}

/// The three forms, each with the middle of the run.
fn forms(scenario: &Scenario) -> String {
    let half = scenario.duration.as_secs() / 2;
    let half = if half >= 60 { half - half % 60 } else { half };
    let middle = scenario.start.checked_add(SignedDuration::from_secs(half)).unwrap_or(scenario.start);
    let clock = TimeZone::UTC.to_datetime(middle).time();
    format!(
        "write how long after the start, `{}`, the clock, `{clock}`, or date and time, `{middle}`; the run begins at {}",
        SimDuration::from_secs(half),
        scenario.start
    )
}
