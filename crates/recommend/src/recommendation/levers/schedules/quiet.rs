//! Quiet hours: the hours of the day at which all known load of a workload is low.

use jiff::Timestamp;
use jiff::civil::Weekday;
use jiff::tz::TimeZone;

use crate::domain::SimDuration;
use crate::domain::workload::ObjectName;
use crate::scenario::Scenario;
use crate::scenario::definition::{OpenRequests, Requests};

const HOURS: usize = 24;
/// Samples of a load an hour.
const SAMPLES: i64 = 12;
/// Shares of the peak up to which an hour counts as quiet: without load, and with little.
const QUIET: [f64; 3] = [0.001, 0.1, 0.25];
/// Fewer quiet hours in a row are not worth a schedule.
const HOURS_LEAST: usize = 3;
/// Room above the share of the peak, for the replicas that stay.
const MARGIN: f64 = 1.2;
/// Minutes by which replicas come before the load.
const LEAD: usize = 30;

/// The largest load at each hour of the day, as a share of the peak, on working days and at weekends; `None` where nothing is known.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Profile([[Option<f64>; HOURS]; 2]);

/// A stretch of quiet hours: from one hour until another, on each day.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Window {
    /// The first quiet hour.
    pub(super) from: usize,
    /// The hour at which load returns.
    pub(super) until: usize,
    /// Whether weekends are quiet as a whole.
    has_weekends: bool,
    /// The largest load in it, as a share of the peak.
    share: f64,
}

impl Window {
    /// The replicas that are enough for its load, of `day` replicas that are enough for the peak.
    pub(super) fn replicas(&self, day: u32) -> u32 {
        if self.share <= QUIET[0] { 0 } else { libm::ceil(f64::from(day) * self.share * MARGIN).max(1.0) as u32 }
    }

    /// The cron expressions of the hours with load, which begin a little earlier.
    pub(super) fn cron(&self) -> (String, String) {
        let days = if self.has_weekends { "1-5" } else { "*" };
        let before = (self.until + HOURS - 1) % HOURS;
        (format!("{} {before} * * {days}", 60 - LEAD), format!("0 {} * * {days}", self.from))
    }

    /// An hour as people read it: the one at which load returns with the lead of the schedule.
    pub(super) fn shown(&self, hour: usize) -> String {
        if hour == self.until {
            format!("{:02}:{}", (hour + HOURS - 1) % HOURS, 60 - LEAD)
        } else {
            format!("{hour:02}:00")
        }
    }

    /// The days on which there is load.
    pub(super) fn days_shown(&self) -> &'static str {
        if self.has_weekends { ", on working days" } else { "" }
    }
}

/// The load of a workload by hour; `None` if the scenario does not state all of it, or there is none.
pub(super) fn profile(scenario: &Scenario, name: ObjectName) -> Option<Profile> {
    let mut all: Vec<(&OpenRequests, SimDuration, Option<SimDuration>)> = Vec::new();
    let since_start = |at: crate::domain::SimTime| at - crate::domain::SimTime::ZERO;
    for load in scenario.load.iter().filter(|load| load.workload == name) {
        let (Requests::Open(open) | Requests::Cpu(open)) = &load.requests else { return None };
        all.push((open, since_start(load.at), load.until.map(since_start)));
    }
    for queue in scenario.queues.iter().filter(|queue| queue.workload == name) {
        // Messages that wait at the start are not at any hour.
        all.push((queue.messages.as_ref().filter(|_| queue.waiting <= 0.0)?, SimDuration::ZERO, None));
    }
    let has_requests = !all.is_empty();
    let this_usage = scenario.usage.iter().filter(|usage| usage.workload == name);
    all.extend(this_usage.filter_map(|usage| Some((usage.cpu.as_ref()?, SimDuration::ZERO, None))));
    let mut profile = Profile([[None; HOURS]; 2]);
    for (open, at, until) in all {
        profile.add(scenario, open, (at, until));
    }
    // Fewer pods would each use more than `usage` says, so that only hours without any are quiet.
    if !has_requests {
        let busy = |share: &mut Option<f64>| *share = share.map(|share| if share <= QUIET[0] { 0.0 } else { 1.0 });
        profile.0.iter_mut().flatten().for_each(busy);
    }
    profile.0.iter().flatten().any(Option::is_some).then_some(profile)
}

impl Profile {
    /// Raises each hour to the share of its peak that a load has then.
    fn add(&mut self, scenario: &Scenario, open: &OpenRequests, (at, until): (SimDuration, Option<SimDuration>)) {
        let steps: Vec<(SimDuration, f64)> =
            open.curve.steps_from_start().map(|step| (step.from + at, step.rate)).collect();
        let end = until.map_or(scenario.duration, |until| until.min(scenario.duration));
        let peak = steps.iter().filter(|step| step.0 < end).map(|step| step.1).fold(0.0, f64::max);
        if peak <= 0.0 {
            return;
        }
        let rate = |now: SimDuration| {
            let begun = steps.partition_point(|step| step.0 <= now);
            let last = begun.checked_sub(1).and_then(|last| steps.get(last));
            if now < end { last.map_or(0.0, |step| step.1) } else { 0.0 }
        };
        let every = SimDuration::from_secs(3_600 / SAMPLES);
        let mut now = SimDuration::ZERO;
        while now < scenario.duration {
            let micros = scenario.start.as_microsecond() + now.as_micros();
            if let Ok(instant) = Timestamp::from_microsecond(micros) {
                let clock = instant.to_zoned(TimeZone::UTC);
                let is_weekend = matches!(clock.weekday(), Weekday::Saturday | Weekday::Sunday);
                let place = &mut self.0[usize::from(is_weekend)][usize::from(clock.hour().unsigned_abs()) % HOURS];
                *place = Some(place.unwrap_or(0.0).max(rate(now) / peak));
            }
            now += every;
        }
    }

    /// The largest load at an hour of working days, or of all days.
    fn at(&self, hour: usize, of_all_days: bool) -> Option<f64> {
        let [working, weekend] = [self.0[0][hour], self.0[1][hour]];
        match (working, weekend) {
            (Some(one), Some(other)) if of_all_days => Some(one.max(other)),
            (item, other) => item.or(other.filter(|_| of_all_days)),
        }
    }
}

/// The longest stretch of quiet hours by each bound on the load, those without load first.
pub(super) fn windows(profile: &Profile) -> Vec<Window> {
    let mut all: Vec<Window> = Vec::new();
    for bound in QUIET {
        let is_quiet = |share: Option<f64>| share.is_some_and(|share| share <= bound);
        let has_weekends = profile.0[1].iter().all(|share| is_quiet(*share))
            && profile.0[0].iter().any(|share| share.is_some_and(|share| share > bound));
        let at = |hour: usize| profile.at(hour % HOURS, !has_weekends);
        let length = |from: usize| (0..HOURS).take_while(|ordinal| is_quiet(at(from + ordinal))).count();
        // The first hour that is longest.
        let longest = (0..HOURS).rev().max_by_key(|from| length(*from)).unwrap_or(0);
        let hours = length(longest);
        if (HOURS_LEAST..HOURS).contains(&hours) {
            let weekend = profile.0[1].iter().flatten().copied().filter(|_| has_weekends);
            let share = (0..hours).filter_map(|ordinal| at(longest + ordinal)).chain(weekend).fold(0.0, f64::max);
            let window = Window { from: longest, until: (longest + hours) % HOURS, has_weekends, share };
            if all.iter().all(|known| *known != window) {
                all.push(window);
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::{HOURS, Profile, Window, windows};

    /// Load of `day` from 7 to 19 o'clock on working days, and of `night` at all other hours.
    fn office(night: f64, weekend: Option<f64>) -> Profile {
        let mut working = [Some(night); HOURS];
        working[7..19].fill(Some(1.0));
        Profile([working, [weekend; HOURS]])
    }

    #[test]
    fn hours_without_load_need_no_replica() {
        let [window] = windows(&office(0.0, None))[..] else { panic!("one window") };
        assert_eq!((window.from, window.until, window.replicas(8)), (19, 7, 0));
        assert_eq!(window.cron(), ("30 6 * * *".to_owned(), "0 19 * * *".to_owned()));
    }

    #[test]
    fn quiet_hours_keep_their_share_of_replicas() {
        let [window] = windows(&office(0.2, None))[..] else { panic!("one window") };
        assert_eq!((window.replicas(10), window.replicas(2)), (3, 1));
    }

    #[test]
    fn weekends_without_load_are_quiet_days() {
        let [window] = windows(&office(0.0, Some(0.0)))[..] else { panic!("one window") };
        assert_eq!(window.cron().0, "30 6 * * 1-5");
        assert_eq!(windows(&office(0.0, Some(0.6)))[..], []);
    }

    #[test]
    fn unknown_hours_are_not_quiet() {
        let mut working = [None; HOURS];
        working[0..2].fill(Some(0.0));
        working[2] = Some(1.0);
        assert_eq!(windows(&Profile([working, [None; HOURS]]))[..], [] as [Window; 0]);
    }
}
