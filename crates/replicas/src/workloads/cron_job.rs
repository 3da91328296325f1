//! The CronJob controller: whether a Job is started now.
//!
//! Source: Kubernetes 1.36.2 `pkg/controller/cronjob/cronjob_controllerv2.go`, `syncCronJob`.

use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};

use nodecast_model::domain::SimDuration;
use nodecast_model::domain::cron::{CronProblem, CronSchedule};
use nodecast_model::domain::workload::{Concurrency, CronJob};

/// When a CronJob's Jobs are to start.
#[derive(Clone, Debug)]
pub struct CronCalendar {
    times: Times,
    zone: TimeZone,
}

/// By what the times are told.
#[derive(Clone, Debug)]
enum Times {
    /// The fields of a cron expression.
    Fields(CronSchedule),
    /// `@every`: so many seconds after the time before.
    Every(i64),
}

/// Prefixes by which a schedule may name a time zone.
const ZONE_PREFIXES: [&str; 2] = ["CRON_TZ=", "TZ="];

impl CronCalendar {
    /// Reads a schedule, which may be `@every` with a span, and a time zone, UTC unless given.
    ///
    /// Source: `robfig/cron` v3 `parser.go`, `parseDescriptor`; Kubernetes 1.36 `pkg/apis/batch/validation/validation.go`,
    /// `validateScheduleFormat`, which refuses a time zone in the schedule.
    ///
    /// # Errors
    /// If one of them cannot be read.
    pub fn new(schedule: &str, zone: Option<&str>) -> Result<Self, CronProblem> {
        // The database in this program: results must not depend on the machine's.
        let zone = match zone {
            None => TimeZone::UTC,
            Some(name) => TimeZoneDatabase::bundled().get(name).map_err(|_| CronProblem::TimeZone(name.to_owned()))?,
        };
        let prefixed = ZONE_PREFIXES.iter().find_map(|&prefix| Some((prefix, schedule.strip_prefix(prefix)?)));
        if let Some((prefix, rest)) = prefixed {
            let zone = rest.split_whitespace().next().unwrap_or_default().to_owned();
            return Err(CronProblem::ZonePrefix { prefix, zone });
        }
        let times = match schedule.strip_prefix("@every ") {
            Some(span) => Times::Every(seconds(span)?),
            None => Times::Fields(CronSchedule::parse_named(schedule)?),
        };
        Ok(Self { times, zone })
    }

    /// The first start after an instant, if there is one within five years; with `@every` the instant is that of the start before.
    pub fn next_after(&self, instant: Timestamp) -> Option<Timestamp> {
        match &self.times {
            Times::Fields(schedule) => schedule.next_after(instant, &self.zone),
            Times::Every(delay) => Timestamp::from_second(instant.as_second().checked_add(*delay)?).ok(),
        }
    }

    /// The first start after `now`, where the last was `last`, or where there was none and the object is of that time.
    ///
    /// Source: `pkg/controller/cronjob/utils.go`, `nextScheduleTimeDuration`.
    pub fn next_start(&self, last: Timestamp, now: Timestamp) -> Option<Timestamp> {
        match &self.times {
            Times::Fields(_) => self.next_after(now),
            Times::Every(_) => self.next_after(self.last_between(last, now).unwrap_or(last)),
        }
    }

    /// The last start after `earliest` and not after `now`.
    fn last_between(&self, earliest: Timestamp, now: Timestamp) -> Option<Timestamp> {
        let mut last = None;
        let mut next = self.next_after(earliest);
        if let Times::Every(delay) = self.times {
            let first = next.filter(|at| *at <= now)?.as_second();
            let passed = (now.as_second() - first).div_euclid(delay);
            return Timestamp::from_second(first + passed * delay).ok();
        }
        while let Some(at) = next.filter(|at| *at <= now) {
            last = Some(at);
            next = self.next_after(at);
        }
        last
    }
}

/// The seconds of the span of `@every`, less than a second cut off.
///
/// Source: `robfig/cron` v3 `constantdelay.go`, `Every`.
/// Deviation: Kubernetes names a Job of a CronJob after the minute of its start, so intervals of less than a minute
/// collide with their own Jobs. Such intervals are refused.
fn seconds(span: &str) -> Result<i64, CronProblem> {
    const LEAST: i64 = 60;
    let problem = |reason| CronProblem::Every { span: span.to_owned(), reason };
    // Go counts in nothing longer than hours.
    let read = span.parse::<SimDuration>().ok().filter(|_| !span.contains(['d', 'w']));
    match read.map(SimDuration::as_secs) {
        None => Err(problem("is not a span of hours, minutes and seconds")),
        Some(seconds) if seconds < LEAST => Err(problem("is shorter than the minute by which Kubernetes names Jobs")),
        Some(seconds) => Ok(seconds),
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
    use nodecast_model::domain::workload::{Concurrency, CronJob, JobSpec, ObjectName};
    use nodecast_model::domain::{PodSpec, SimDuration, Symbol};

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
            last_schedule: None,
            job: JobSpec::from_template(Arc::new(PodSpec::default())),
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
    fn cron_job_starts_only_for_latest_due_time() {
        let allow = object(Concurrency::Allow, None);
        assert_eq!(step(&allow, 1, "08:09:59"), CronStep::Nothing);
        assert_eq!(step(&allow, 1, "08:10:00"), start("08:10:00", false));
        assert_eq!(step(&allow, 0, "08:45:00"), start("08:40:00", false));
        assert_eq!(step(&object(Concurrency::Replace, None), 1, "08:10:00"), start("08:10:00", true));
    }

    #[test]
    fn delayed_cron_job_starts_within_deadline() {
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
    fn every_so_often_counts_from_the_last_start() {
        let every = CronJob { schedule: "@every 1h30m".to_owned(), ..object(Concurrency::Allow, None) };
        assert_eq!(step(&every, 0, "09:29:59"), CronStep::Nothing);
        assert_eq!(step(&every, 0, "09:30:00"), start("09:30:00", false));
        assert_eq!(step(&every, 0, "12:45:00"), start("12:30:00", false), "of two that were missed the last");
        let Ok(calendar) = CronCalendar::new("@every 90m0.5s", None) else { panic!("it is valid") };
        let next = |now| calendar.next_start(time("08:00:00"), time(now));
        assert_eq!(next("08:00:00"), Some(time("09:30:00")));
        assert_eq!(next("09:30:00"), Some(time("11:00:00")));
        assert_eq!(next("10:59:59"), Some(time("11:00:00")));
        for span in ["2d", "soon", "", "30s", "-1h"] {
            let problem = CronCalendar::new(&format!("@every {span}"), None).err().map(|err| err.to_string());
            assert!(problem.is_some_and(|text| text.starts_with("`@every")), "{span}");
        }
    }

    #[test]
    fn a_time_zone_in_the_schedule_is_named() {
        for prefix in ["TZ=", "CRON_TZ="] {
            let problem = CronCalendar::new(&format!("{prefix}America/New_York 0 9 * * *"), None).err();
            assert!(
                problem.is_some_and(|problem| problem.to_string().starts_with(&format!("`{prefix}America/New_York`")))
            );
        }
    }

    #[test]
    fn its_times_are_those_of_its_zone() {
        let Ok(calendar) = CronCalendar::new("@daily", Some("Asia/Kolkata")) else { panic!("it is valid") };
        let next = calendar.next_after(time("08:00:00")).map(|at| at.to_string());
        assert_eq!(next.as_deref(), Some("2026-03-01T18:30:00Z"));
        assert!(CronCalendar::new("@daily", Some("Mars/Base")).is_err());
    }
}
