//! Windows of the calendar: five-field cron expressions in a time zone.
//!
//! Source: KEDA 2.20 `pkg/scalers/cron_scaler.go`, with the parser and `Next` of `robfig/cron` v3.

use jiff::civil;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp};

use crate::domain::keda::CronTrigger;

/// What is wrong with a window.
#[derive(Clone, PartialEq, Eq, Hash, Debug, thiserror::Error)]
pub enum CronProblem {
    /// Not an IANA time zone.
    #[error("the time zone `{0}` is unknown")]
    TimeZone(String),
    /// Not five fields.
    #[error("`{0}` does not have the five fields minute, hour, day of month, month, day of week")]
    Fields(String),
    /// A field that cannot be read.
    #[error("`{field}` is not a valid {name}: {reason}")]
    Field {
        /// Which of the five.
        name: &'static str,
        /// Its text.
        field: String,
        /// Why.
        reason: &'static str,
    },
    /// A day that no calendar has, such as 31 February.
    #[error("`{0}` never happens")]
    Never(String),
    /// An `@every` of a CronJob whose span is no span, or too short to be simulated.
    #[error("`@every {span}` {reason}")]
    Every {
        /// What follows the word.
        span: String,
        /// Why.
        reason: &'static str,
    },
    /// A time zone before the fields of a CronJob's schedule, with the prefix and the zone.
    #[error(
        "`{prefix}{zone}` in a schedule is not read: since Kubernetes 1.29 the API refuses a CronJob with a time zone there"
    )]
    ZonePrefix {
        /// `TZ=` or `CRON_TZ=`.
        prefix: &'static str,
        /// The zone.
        zone: String,
    },
}

/// When a cron expression fires: the minutes whose fields in the time zone all match. A minute that the clock skips does not
/// happen, one that it repeats happens twice.
#[derive(Clone, Debug)]
pub struct CronSchedule {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// Whether day of month and day of week are both restricted, so that either may match.
    either_day: bool,
}

struct Field {
    name: &'static str,
    low: u32,
    high: u32,
    names: &'static [&'static str],
}

const FIELDS: [Field; 5] = [
    Field { name: "minute", low: 0, high: 59, names: &[] },
    Field { name: "hour", low: 0, high: 23, names: &[] },
    Field { name: "day of month", low: 1, high: 31, names: &[] },
    Field {
        name: "month",
        low: 1,
        high: 12,
        names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
    },
    Field { name: "day of week", low: 0, high: 6, names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"] },
];

impl CronSchedule {
    /// Reads five fields: numbers, names of months and days, lists, ranges, steps, `*` and `?`.
    ///
    /// # Errors
    /// The text does not have five such fields.
    pub fn parse(text: &str) -> Result<Self, CronProblem> {
        let fields: Vec<&str> = text.split_whitespace().collect();
        let Ok([minute, hour, day, month, weekday]) = <[&str; 5]>::try_from(fields) else {
            return Err(CronProblem::Fields(text.to_owned()));
        };
        let read = |index: usize, field: &str| {
            let spec = &FIELDS[index];
            read_field(spec, field).map_err(|reason| CronProblem::Field {
                name: spec.name,
                field: field.to_owned(),
                reason,
            })
        };
        let ((days, any_day), (weekdays, any_weekday)) = (read(2, day)?, read(4, weekday)?);
        Ok(Self {
            minutes: read(0, minute)?.0,
            hours: read(1, hour)?.0,
            days,
            months: read(3, month)?.0,
            weekdays,
            either_day: !any_day && !any_weekday,
        })
    }

    /// As [`parse`](Self::parse), and names such as `@daily`.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub fn parse_named(text: &str) -> Result<Self, CronProblem> {
        Self::parse(match text {
            "@yearly" | "@annually" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            other => other,
        })
    }

    /// The first firing strictly after `instant`, `None` if there is none within five years.
    pub fn next_after(&self, instant: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let minute = SignedDuration::from_mins(1);
        let whole_minute = Timestamp::from_second(instant.as_second().div_euclid(60) * 60).ok()?;
        let mut at = whole_minute.checked_add(minute).ok()?;
        let last_year = zone.to_datetime(at).year().checked_add(5)?;
        loop {
            let local = zone.to_datetime(at);
            if local.year() > last_year {
                return None;
            }
            at = if !contains(self.months, local.month()) {
                start_of(first_of_next_month(local.date())?, zone, at)?
            } else if !self.accepts_day(local.date()) {
                start_of(local.date().tomorrow().ok()?, zone, at)?
            } else if !contains(self.hours, local.hour()) {
                let rest = 60 - i64::from(local.minute());
                at.checked_add(SignedDuration::from_mins(rest)).ok()?
            } else if !contains(self.minutes, local.minute()) {
                at.checked_add(minute).ok()?
            } else {
                return Some(at);
            };
        }
    }

    fn accepts_day(&self, date: civil::Date) -> bool {
        let day = contains(self.days, date.day());
        let weekday = contains(self.weekdays, date.weekday().to_sunday_zero_offset());
        if self.either_day { day || weekday } else { day && weekday }
    }
}

fn contains(set: u64, member: i8) -> bool {
    set >> member & 1 == 1
}

fn first_of_next_month(date: civil::Date) -> Option<civil::Date> {
    date.last_of_month().tomorrow().ok()
}

/// The first instant of a day, later than `after` in any case: a clock that is set back must not stop the search.
fn start_of(date: civil::Date, zone: &TimeZone, after: Timestamp) -> Option<Timestamp> {
    let start = zone.to_timestamp(date.to_datetime(civil::Time::midnight())).ok()?;
    let next_minute = after.checked_add(SignedDuration::from_mins(1)).ok()?;
    Some(start.max(next_minute))
}

/// The set of values of one field, and whether the field leaves everything open.
fn read_field(spec: &Field, text: &str) -> Result<(u64, bool), &'static str> {
    let (mut set, mut open) = (0, false);
    for part in text.split(',') {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => {
                let step: u32 = step.parse().map_err(|_| "the step is not a number")?;
                (range, if step == 0 { return Err("the step is zero") } else { Some(step) })
            }
            None => (part, None),
        };
        let (low, high) = if range == "*" || range == "?" {
            // A star with a step is a restriction like any other.
            open |= step.is_none_or(|step| step == 1);
            (spec.low, spec.high)
        } else if let Some((low, high)) = range.split_once('-') {
            (value(spec, low)?, value(spec, high)?)
        } else {
            let low = value(spec, range)?;
            (low, if step.is_some() { spec.high } else { low })
        };
        if low < spec.low || high > spec.high {
            return Err("the value is out of range");
        }
        if low > high {
            return Err("the range ends before it starts");
        }
        set |= (low..=high).step_by(step.unwrap_or(1) as usize).fold(0_u64, |set, member| set | 1 << member);
    }
    Ok((set, open))
}

fn value(spec: &Field, text: &str) -> Result<u32, &'static str> {
    if let Some(position) = spec.names.iter().position(|name| name.eq_ignore_ascii_case(text)) {
        return Ok(spec.low + position as u32);
    }
    text.parse().map_err(|_| "it is neither a number nor a name")
}

/// A window, ready to be asked.
#[derive(Clone, Debug)]
pub struct CronWindow {
    zone: TimeZone,
    start: CronSchedule,
    end: CronSchedule,
    desired_replicas: i64,
}

/// A window at an instant.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CronState {
    /// Whether the instant is inside: at or after a start, before the next end.
    pub active: bool,
    /// Replicas asked for.
    pub replicas: i64,
    /// Until when this holds.
    pub until: Timestamp,
}

impl CronWindow {
    /// Reads a trigger's time zone and both its expressions.
    ///
    /// # Errors
    /// One of them cannot be read.
    pub fn new(trigger: &CronTrigger) -> Result<Self, CronProblem> {
        // The database in this program: results must not depend on the machine's.
        let zone = TimeZoneDatabase::bundled()
            .get(&trigger.timezone)
            .map_err(|_| CronProblem::TimeZone(trigger.timezone.clone()))?;
        let window = Self {
            zone,
            start: CronSchedule::parse(&trigger.start)?,
            end: CronSchedule::parse(&trigger.end)?,
            desired_replicas: trigger.desired_replicas,
        };
        for (schedule, text) in [(&window.start, &trigger.start), (&window.end, &trigger.end)] {
            schedule.next_after(Timestamp::UNIX_EPOCH, &window.zone).ok_or_else(|| CronProblem::Never(text.clone()))?;
        }
        Ok(window)
    }

    /// The window at an instant: inside unless the next start comes before the next end.
    pub fn at(&self, now: Timestamp) -> CronState {
        let next = |schedule: &CronSchedule| schedule.next_after(now, &self.zone).unwrap_or(Timestamp::MAX);
        let (start, end) = (next(&self.start), next(&self.end));
        let active = start >= end;
        CronState { active, replicas: if active { self.desired_replicas } else { 0 }, until: start.min(end) }
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::{CronProblem, CronSchedule, CronWindow};
    use crate::domain::keda::CronTrigger;

    fn window(timezone: &str, start: &str, end: &str) -> Result<CronWindow, CronProblem> {
        CronWindow::new(&CronTrigger {
            timezone: timezone.to_owned(),
            start: start.to_owned(),
            end: end.to_owned(),
            desired_replicas: 5,
        })
    }

    /// The next firings after an instant, in UTC.
    fn firings(text: &str, zone: &str, from: &str, count: usize) -> Vec<String> {
        let schedule = CronSchedule::parse(text).unwrap_or_else(|problem| panic!("{problem}"));
        let zone = jiff::tz::TimeZoneDatabase::bundled().get(zone).unwrap_or_else(|problem| panic!("{problem}"));
        let mut at: Timestamp = from.parse().unwrap_or_else(|problem| panic!("{problem}"));
        let mut found = Vec::new();
        for _ in 0..count {
            at = schedule.next_after(at, &zone).unwrap_or_else(|| panic!("{text} ends"));
            found.push(at.to_string());
        }
        found
    }

    #[test]
    fn cron_day_of_month_and_week_mean_either() {
        // Friday 2026-11-20.
        let either = firings("0 0 1 * Sun", "UTC", "2026-11-20T00:00:00Z", 3);
        assert_eq!(either, ["2026-11-22T00:00:00Z", "2026-11-29T00:00:00Z", "2026-12-01T00:00:00Z"]);
        let both = firings("0 0 */1 * Sun", "UTC", "2026-11-20T00:00:00Z", 2);
        assert_eq!(both, ["2026-11-22T00:00:00Z", "2026-11-29T00:00:00Z"]);
        let stepped = firings("0 0 */15 * Sun", "UTC", "2026-11-20T00:00:00Z", 3);
        assert_eq!(stepped, ["2026-11-22T00:00:00Z", "2026-11-29T00:00:00Z", "2026-12-01T00:00:00Z"]);
    }

    #[test]
    fn lists_ranges_steps_and_names_are_read() {
        let text = "5,50-59/4 9-10 * JAN,mar Mon-Fri";
        let found = firings(text, "UTC", "2026-01-02T10:54:00Z", 3);
        assert_eq!(found, ["2026-01-02T10:58:00Z", "2026-01-05T09:05:00Z", "2026-01-05T09:50:00Z"]);
        assert_eq!(firings("58/1 * * * *", "UTC", "2026-01-01T00:00:00Z", 2)[1], "2026-01-01T00:59:00Z");
    }

    #[test]
    fn dst_skips_and_repeats_cron_times() {
        let skipped = firings("30 2 * * *", "America/New_York", "2026-03-07T12:00:00Z", 1);
        assert_eq!(skipped, ["2026-03-09T06:30:00Z"]);
        let repeated = firings("30 1 * * *", "America/New_York", "2026-11-01T04:00:00Z", 3);
        assert_eq!(repeated, ["2026-11-01T05:30:00Z", "2026-11-01T06:30:00Z", "2026-11-02T06:30:00Z"]);
    }

    #[test]
    fn missing_midnight_still_ends_the_day() {
        // Beirut's clocks go from 00:00 to 01:00.
        let found = firings("0 1 29 3 *", "Asia/Beirut", "2026-03-01T00:00:00Z", 1);
        assert_eq!(found, ["2026-03-28T22:00:00Z"]);
    }

    #[test]
    fn invalid_cron_schedule_is_rejected_with_reason() {
        let refused = |text| CronSchedule::parse(text).map(|_| ()).map_err(|problem| problem.to_string());
        assert_eq!(refused("0 8 * * 7"), Err("`7` is not a valid day of week: the value is out of range".to_owned()));
        assert_eq!(
            refused("0 8-6 * * *"),
            Err("`8-6` is not a valid hour: the range ends before it starts".to_owned())
        );
        assert!(refused("0 8 * *").is_err() && refused("*/0 * * * *").is_err() && refused("@daily").is_err());
        assert!(refused("x * * * *").is_err() && refused("0-99 * * * *").is_err() && refused("0 0 0 * *").is_err());
        assert!(matches!(window("Mars/Base", "0 8 * * *", "0 9 * * *"), Err(CronProblem::TimeZone(_))));
        assert!(matches!(window("UTC", "0 0 31 2 *", "0 9 * * *"), Err(CronProblem::Never(_))));
    }

    #[test]
    fn a_window_says_until_when_it_holds() {
        let Ok(window) = window("Asia/Kolkata", "0 9 * * *", "0 17 * * *") else { panic!("it is valid") };
        let inside: Timestamp = "2026-11-20T04:00:00Z".parse().unwrap_or_default();
        let state = window.at(inside);
        assert_eq!((state.active, state.replicas), (true, 5));
        assert_eq!(state.until.to_string(), "2026-11-20T11:30:00Z");
        let outside = window.at(state.until);
        assert_eq!((outside.active, outside.replicas), (false, 0));
    }

    proptest::proptest! {
        #[test]
        fn cron_window_state_holds_until_next_change(
            start in "([0-5]?[0-9]|\\*/[1-9]) (1?[0-9]|\\*/[2-7]) (\\*|[1-9]|2[0-8]) (\\*|[1-9]) (\\*|[0-6])",
            end in "([0-5]?[0-9]|\\*/[1-9]) (1?[0-9]|\\*/[2-7]) (\\*|[1-9]|2[0-8]) (\\*|[1-9]) (\\*|[0-6])",
            second in 1_700_000_000_i64..1_900_000_000,
            fraction in 0_u32..1_000,
            zone in proptest::sample::select(vec!["UTC", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"]),
        ) {
            // Days up to the 28th exist in every month, so each of these fires.
            let Ok(window) = window(zone, &start, &end) else { panic!("{start} to {end} is valid") };
            let Ok(now) = Timestamp::from_second(second) else { panic!("{second} is an instant") };
            let state = window.at(now);
            proptest::prop_assert!(state.until > now);
            let between = (state.until.as_second() - second) * i64::from(fraction) / 1_000;
            let Ok(inside) = Timestamp::from_second(second + between) else { panic!("it lies between") };
            proptest::prop_assert_eq!(window.at(inside), state);
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in "[-*/,?0-9a-z ]{0,24}|.{0,24}") {
            let reread = CronSchedule::parse(&text).is_ok();
            proptest::prop_assert_eq!(reread, CronSchedule::parse(&text).is_ok());
        }
    }
}
