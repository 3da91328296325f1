//! The CronJob controller: whether a Job is started now.
//!
//! Source: Kubernetes 1.36.2 `pkg/controller/cronjob/cronjob_controllerv2.go`, `syncCronJob`.

use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};

use crate::domain::SimDuration;
use crate::domain::workload::{Concurrency, CronJob};
use crate::policy::replicas::keda::{CronProblem, CronSchedule};

/// When a CronJob's Jobs are to start.
#[derive(Clone, Debug)]
pub struct CronCalendar {
    schedule: CronSchedule,
    zone: TimeZone,
}

impl CronCalendar {
    /// Reads a schedule and a time zone, UTC unless given.
    ///
    /// # Errors
    /// If one of them cannot be read.
    pub fn new(schedule: &str, zone: Option<&str>) -> Result<Self, CronProblem> {
        // The database in this program: results must not depend on the machine's.
        let zone = match zone {
            None => TimeZone::UTC,
            Some(name) => TimeZoneDatabase::bundled().get(name).map_err(|_| CronProblem::TimeZone(name.to_owned()))?,
        };
        Ok(Self { schedule: CronSchedule::parse_named(schedule)?, zone })
    }

    /// The first start after an instant, if there is one within five years.
    pub fn next_after(&self, instant: Timestamp) -> Option<Timestamp> {
        self.schedule.next_after(instant, &self.zone)
    }

    /// The last start after `earliest` and not after `now`.
    fn last_between(&self, earliest: Timestamp, now: Timestamp) -> Option<Timestamp> {
        let mut last = None;
        let mut next = self.next_after(earliest);
        while let Some(at) = next.filter(|at| *at <= now) {
            last = Some(at);
            next = self.next_after(at);
        }
        last
    }
}

/// A CronJob as the controller finds it.
#[derive(Clone, Copy, Debug)]
pub struct CronView<'a> {
    /// As it was applied.
    pub object: &'a CronJob,
    /// Its times.
    pub calendar: &'a CronCalendar,
    /// The time that its last Job was started for; its creation before the first.
    pub last: Timestamp,
    /// Jobs that have not ended.
    pub active: usize,
}

/// What one pass does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CronStep {
    /// Nothing: no time has come, or the last one is too long ago or has to wait.
    Nothing,
    /// It starts a Job for this time, and ends those that run first if `replaces`.
    Start {
        /// The time.
        at: Timestamp,
        /// Whether Jobs that run are ended.
        replaces: bool,
    },
}

/// Whether a Job is started at `now`. Of several times that have been missed only the last counts, and one that
/// `Forbid` has held back starts when the Job before it has ended, unless that is after the starting deadline.
pub fn cron_step(cron: &CronView<'_>, now: Timestamp) -> CronStep {
    if cron.object.suspended {
        return CronStep::Nothing;
    }
    let deadline = cron.object.starting_deadline.map(SimDuration::as_secs);
    let earliest = deadline.and_then(|deadline| Timestamp::from_second(now.as_second() - deadline).ok());
    let earliest = earliest.map_or(cron.last, |earliest| earliest.max(cron.last));
    let Some(at) = cron.calendar.last_between(earliest, now) else { return CronStep::Nothing };
    match cron.object.concurrency {
        Concurrency::Forbid if cron.active > 0 => CronStep::Nothing,
        concurrency => CronStep::Start { at, replaces: concurrency == Concurrency::Replace },
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use jiff::Timestamp;

    use super::{CronCalendar, CronStep, CronView, cron_step};
    use crate::domain::workload::{Concurrency, CronJob, JobSpec, ObjectName};
    use crate::domain::{PodSpec, SimDuration, Symbol};

    fn object(concurrency: Concurrency, deadline: Option<i64>) -> CronJob {
        CronJob {
            name: ObjectName { namespace: Symbol::new("default"), name: Symbol::new("report") },
            schedule: "*/10 * * * *".to_owned(),
            time_zone: None,
            concurrency,
            starting_deadline: deadline.map(SimDuration::from_secs),
            suspended: false,
            successful_jobs_history_limit: 3,
            failed_jobs_history_limit: 1,
            job: JobSpec::of(Arc::new(PodSpec::default())),
        }
    }

    fn time(text: &str) -> Timestamp {
        format!("2026-03-01T{text}Z").parse().unwrap_or_default()
    }

    /// What happens at a time when the last Job was started for 08:00.
    fn step(object: &CronJob, active: usize, now: &str) -> CronStep {
        let Ok(calendar) = CronCalendar::new(&object.schedule, None) else { panic!("it is valid") };
        cron_step(&CronView { object, calendar: &calendar, last: time("08:00:00"), active }, time(now))
    }

    fn start(at: &str, replaces: bool) -> CronStep {
        CronStep::Start { at: time(at), replaces }
    }

    #[test]
    fn a_job_starts_when_its_time_has_come_and_only_the_last_time_counts() {
        let allow = object(Concurrency::Allow, None);
        assert_eq!(step(&allow, 1, "08:09:59"), CronStep::Nothing);
        assert_eq!(step(&allow, 1, "08:10:00"), start("08:10:00", false));
        assert_eq!(step(&allow, 0, "08:45:00"), start("08:40:00", false));
        assert_eq!(step(&object(Concurrency::Replace, None), 1, "08:10:00"), start("08:10:00", true));
    }

    #[test]
    fn one_that_has_been_held_back_starts_late_unless_that_is_too_late() {
        let forbid = object(Concurrency::Forbid, None);
        assert_eq!(step(&forbid, 1, "08:10:00"), CronStep::Nothing);
        assert_eq!(step(&forbid, 0, "08:14:00"), start("08:10:00", false));
        let strict = object(Concurrency::Forbid, Some(60));
        assert_eq!(step(&strict, 0, "08:11:01"), CronStep::Nothing);
        assert_eq!(step(&strict, 0, "08:10:30"), start("08:10:00", false));
    }

    #[test]
    fn a_suspended_one_starts_nothing() {
        let suspended = CronJob { suspended: true, ..object(Concurrency::Allow, None) };
        assert_eq!(step(&suspended, 0, "08:10:00"), CronStep::Nothing);
    }

    #[test]
    fn its_times_are_those_of_its_zone() {
        let Ok(calendar) = CronCalendar::new("@daily", Some("Asia/Kolkata")) else { panic!("it is valid") };
        let next = calendar.next_after(time("08:00:00")).map(|at| at.to_string());
        assert_eq!(next.as_deref(), Some("2026-03-01T18:30:00Z"));
        assert!(CronCalendar::new("@daily", Some("Mars/Base")).is_err());
    }
}
