//! Which zones have refused a group's launches, and when it tries them again.
//!
//! Source: none is published for the pauses; the first and the longest are assumptions after what users see.
//!
//! Deviation: a group that has launched nothing for a day continues to try. AWS may suspend it.

use std::collections::BTreeMap;

use nodecast_model::domain::{SimDuration, SimTime, Symbol};

/// The first pause after a refusal; it doubles with each further one up to the longest.
const FIRST_PAUSE: SimDuration = SimDuration::from_secs(60);
const LONGEST_PAUSE: SimDuration = SimDuration::from_secs(600);

/// Refusals of a group's launches, by zone and by whether they were for Spot.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Refusals(BTreeMap<(Symbol, bool), Refused>);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Refused {
    pause: SimDuration,
    until: SimTime,
}

impl Refusals {
    /// The zone has refused.
    pub(super) fn refused(&mut self, zone: Symbol, spot: bool, now: SimTime) {
        let before = self.0.get(&(zone, spot)).map(|refused| refused.pause * 2);
        let pause = before.unwrap_or(FIRST_PAUSE).min(LONGEST_PAUSE);
        self.0.insert((zone, spot), Refused { pause, until: now + pause });
    }

    /// The zone has delivered.
    pub(super) fn delivered(&mut self, zone: Symbol, spot: bool) {
        self.0.remove(&(zone, spot));
    }

    /// Whether the group leaves the zone alone at `now`.
    pub(super) fn holds(&self, zone: Symbol, spot: bool, now: SimTime) -> bool {
        self.0.get(&(zone, spot)).is_some_and(|refused| now < refused.until)
    }

    /// When the first pause ends that goes on at `now`.
    pub(super) fn next_end(&self, now: SimTime) -> Option<SimTime> {
        self.0.values().map(|refused| refused.until).filter(|until| *until > now).min()
    }
}

#[cfg(test)]
mod tests {
    use super::Refusals;
    use nodecast_model::domain::{SimDuration, SimTime, Symbol};

    #[test]
    fn launch_pauses_grow_to_ten_minutes_until_success() {
        let (zone, mut now, mut refusals) = (Symbol::new("a"), SimTime::ZERO, Refusals::default());
        let mut pauses = Vec::new();
        for _ in 0..6 {
            refusals.refused(zone, true, now);
            let end = refusals.next_end(now).unwrap();
            assert!(refusals.holds(zone, true, now) && !refusals.holds(zone, true, end));
            assert!(!refusals.holds(zone, false, now), "On-Demand is another matter");
            pauses.push((end - now).as_secs());
            now = end;
        }
        assert_eq!(pauses, [60, 120, 240, 480, 600, 600]);
        refusals.delivered(zone, true);
        refusals.refused(zone, true, now);
        assert_eq!(refusals.next_end(now), Some(now + SimDuration::from_secs(60)));
    }
}
