//! When a pool runs short: EC2 reclaims Spot instances from it, and has none to give for a while.
//!
//! What befalls a pool depends on the seed and the pool alone, so that every policy meets the same. Which of our
//! instances are hit is a draw for each instance of the pool by its number.
//!
//! Source: bands of the Spot Instance Advisor; shape of the events and of the up and down times from published Spot
//! availability traces of 2022-2023.
//! Deviation: AWS publishes neither how long the instances behind the Advisor's figures were exposed, nor lead times, nor
//! correlations: exposure, warning time, severity and spread are assumptions. The warning time is drawn for each event of a
//! pool, not for each instance, and there are no false alarms.

use std::sync::Arc;

use crate::catalog::{Region, RegionType};
use crate::cloud::Pool;
use crate::cloud::settings::{CapacityModel, Interruptions};
use crate::domain::{SimDuration, SimTime, Symbol, well_known};
use crate::engine::{Stream, Streams};

const HOUR: f64 = 3_600.0;
/// Probability that an event reaches another zone of the region, and each other size of the family in the zone.
const REACHES_ZONE: f64 = 0.35;
const REACHES_SIZE: f64 = 0.25;
/// Within this time it gets there.
const REACH_DELAY: SimDuration = SimDuration::from_secs(1_200);
/// Spread of the warning time, and its upper bound in seconds.
const WARNING_SIGMA: f64 = 1.1;
const WARNING_MAX: f64 = 14_400.0;
/// Mean severity of an event that does not take everything: Beta(1.2, 1.6).
const PARTIAL_MEAN: f64 = 1.2 / 2.8;
/// At most so many events of one pool are drawn in a run.
const EVENTS_MAX: usize = 1_000_000;

/// EC2 reclaims from a pool.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PoolEvent {
    /// When rebalance recommendations go out; the instant of `at` if there is no warning.
    pub warning: SimTime,
    /// When notices begin.
    pub at: SimTime,
    /// When the pool has instances to give again.
    pub recovered: SimTime,
    /// The probability that a running instance is hit.
    pub severity: f64,
    /// The pool where it began, and its number there.
    origin: Pool,
    number: u64,
}

/// Everything that befalls one pool in a run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct PoolOutlook {
    /// In order of time of the notices.
    pub events: Vec<PoolEvent>,
    /// Times without an instance to give, in order of their beginning; they may overlap.
    pub shortages: Vec<(SimTime, SimTime)>,
}

impl PoolOutlook {
    /// Whether the pool has nothing to give at `now`.
    pub fn is_short(&self, now: SimTime) -> bool {
        self.shortages.iter().take_while(|(from, _)| *from <= now).any(|&(_, until)| now < until)
    }
}

/// How a pool behaves, by its band and size.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Supply {
    Plentiful,
    Normal,
    Tight,
    Scarce,
}

/// A mixture of two exponentials: the weight of the first, and both means in hours.
type Mixture = (f64, f64, f64);

impl Supply {
    fn of(kind: &RegionType) -> Self {
        let large = kind.facts.bare_metal || kind.facts.vcpus >= 96;
        match kind.advisor.map_or(2, |advice| advice.band) {
            0 | 1 => Self::Plentiful,
            2 | 3 => Self::Normal,
            _ if large || kind.facts.gpu.is_some() => Self::Scarce,
            _ => Self::Tight,
        }
    }

    fn down(self) -> Mixture {
        match self {
            Self::Plentiful => (1.0, 0.7, 0.7),
            Self::Normal => (0.7, 0.4, 1.9),
            Self::Tight => (0.7, 0.4, 2.2),
            Self::Scarce => (0.7, 0.6, 4.3),
        }
    }

    /// Times up of a pool's own process.
    fn up(self) -> Mixture {
        match self {
            Self::Plentiful => (1.0, 720.0, 720.0),
            Self::Normal => (0.5, 40.0, 300.0),
            Self::Tight => (0.9, 1.2, 126.0),
            Self::Scarce => (0.92, 1.0, 33.0),
        }
    }

    /// Times up of the process that the pools of one type share in a region.
    fn shared_up(self) -> Option<Mixture> {
        match self {
            Self::Plentiful => None,
            Self::Normal => Some((0.5, 40.0, 300.0)),
            Self::Tight => Some((0.9, 1.2, 136.0)),
            Self::Scarce => Some((0.92, 1.0, 35.0)),
        }
    }

    /// Mean time up On-Demand in hours, with an hour down in the mean; `None` if it never fails.
    fn on_demand_up(self) -> Option<f64> {
        match self {
            Self::Plentiful => None,
            Self::Normal => Some(9_999.0),
            Self::Tight => Some(199.0),
            Self::Scarce => Some(19.0),
        }
    }
}

/// What befalls the pools of a region during one run.
#[derive(Clone, Debug)]
pub struct Reclaims {
    region: Arc<Region>,
    streams: Streams,
    capacity: CapacityModel,
    interruptions: Interruptions,
    end: SimTime,
}

impl Reclaims {
    /// For a run of a region's market until `end`.
    pub fn new(
        region: Arc<Region>,
        streams: Streams,
        capacity: CapacityModel,
        interruptions: Interruptions,
        end: SimTime,
    ) -> Self {
        Self { region, streams, capacity, interruptions, end }
    }

    /// Everything that befalls `pool`.
    pub fn outlook(&self, pool: Pool) -> PoolOutlook {
        let Some(kind) = self.region.instance_type(pool.instance_type) else { return PoolOutlook::default() };
        match self.capacity {
            CapacityModel::UpDown => self.by_supply(pool, kind),
            CapacityModel::Static | CapacityModel::Infinite => self.by_hazard(pool, kind),
        }
    }

    /// Whether the `ordinal`-th instance of `pool` is hit by `event`, and how long after its beginning it gets its notice:
    /// within three minutes, but for a few stragglers.
    pub fn hit(&self, event: &PoolEvent, pool: Pool, ordinal: u64) -> Option<SimDuration> {
        let entity = format!("{}#{}>{}", event.origin.stream_name(), event.number, pool.stream_name());
        let mut stream = self.streams.nth("reclaim-hit", &entity, ordinal);
        if !stream.happens(event.severity) {
            return None;
        }
        let late = stream.happens(0.08);
        let seconds = if late { stream.exponential(600.0) } else { stream.between(0.0, 180.0) };
        Some(SimDuration::from_secs_f64(seconds))
    }

    fn by_hazard(&self, pool: Pool, kind: &RegionType) -> PoolOutlook {
        if pool.capacity_type != well_known::SPOT {
            return PoolOutlook::default();
        }
        let mut events: Vec<PoolEvent> = self.own_events(pool, kind);
        for (source, kind, zone) in self.neighbours(pool) {
            events.extend(self.own_events(source, kind).into_iter().filter_map(|event| self.reach(event, pool, zone)));
        }
        events.sort_by_key(|event| (event.at, event.origin, event.number));
        let short = |event: &PoolEvent| (event.at, event.recovered);
        let shortages = match self.capacity {
            CapacityModel::Infinite => Vec::new(),
            _ => events.iter().map(short).collect(),
        };
        PoolOutlook { events, shortages }
    }

    /// Other pools whose events may reach `pool`: `true` for those of the same type in other zones.
    fn neighbours(&self, pool: Pool) -> impl Iterator<Item = (Pool, &RegionType, bool)> {
        let family = |name: Symbol| name.as_str().split('.').next().unwrap_or_default();
        let own = family(pool.instance_type);
        let own_zone = self.region.zone_index(pool.zone);
        self.region.types.iter().filter(move |kind| family(kind.facts.name) == own).flat_map(move |kind| {
            let same = kind.facts.name == pool.instance_type;
            kind.zones_offered().filter(move |&zone| (Some(zone) == own_zone) != same).map(move |zone| {
                let source = Pool { instance_type: kind.facts.name, zone: self.region.zones[zone].name, ..pool };
                (source, kind, same)
            })
        })
    }

    /// The event as it arrives at `pool`, if it does.
    fn reach(&self, event: PoolEvent, pool: Pool, other_zone: bool) -> Option<PoolEvent> {
        let mut stream = self.streams.nth("reclaim-reach", &event.origin.stream_name(), event.number);
        let (spreads, draw) = (stream.happens(REACHES_ZONE), stream.uniform());
        let arrives = if other_zone {
            let zones: Vec<usize> = self.region.instance_type(pool.instance_type)?.zones_offered().collect();
            let others: Vec<Symbol> = zones
                .iter()
                .map(|&zone| self.region.zones[zone].name)
                .filter(|&zone| zone != event.origin.zone)
                .collect();
            let chosen = libm::floor(draw * others.len() as f64) as usize;
            spreads && others.get(chosen) == Some(&pool.zone)
        } else {
            let entity = format!("{}>{}", event.origin.stream_name(), pool.instance_type);
            self.streams.nth("reclaim-reach", &entity, event.number).happens(REACHES_SIZE)
        };
        let delay = stream.span_up_to(REACH_DELAY);
        arrives.then_some(PoolEvent {
            warning: event.warning + delay,
            at: event.at + delay,
            recovered: event.recovered + delay,
            ..event
        })
    }

    /// Events that begin in the pool itself. Their rate is that of the band, less what arrives from elsewhere.
    fn own_events(&self, pool: Pool, kind: &RegionType) -> Vec<PoolEvent> {
        let band = kind.advisor.map_or(2, |advice| advice.band);
        let Some(exposure) = self.interruptions.exposure_hours else { return Vec::new() };
        let sizes = self.neighbours(pool).filter(|(_, _, same_type)| !same_type).count();
        let elsewhere = if kind.zones_offered().count() > 1 { REACHES_ZONE } else { 0.0 };
        let arriving = 1.0 + elsewhere + REACHES_SIZE * sizes as f64;
        let whole = share_of_whole(band);
        let mean_severity = whole + (1.0 - whole) * PARTIAL_MEAN;
        let size = libm::sqrt((f64::from(kind.facts.vcpus) / 16.0).max(1.0));
        let hazard = -libm::log(1.0 - interrupted_share(band)) / exposure * size * self.interruptions.stress;
        let rate = hazard / mean_severity / arriving;
        let supply = Supply::of(kind);
        let mut stream = self.streams.stream("reclaim", &pool.stream_name());
        let mut events = Vec::new();
        let mut now = SimTime::ZERO;
        while rate > 0.0 && events.len() < EVENTS_MAX {
            now += hours(stream.exponential(1.0 / rate));
            if now > self.end {
                break;
            }
            let number = events.len() as u64;
            events.push(self.event(&mut stream, pool, number, now, whole, supply));
        }
        events
    }

    fn event(
        &self,
        stream: &mut Stream,
        origin: Pool,
        number: u64,
        warning: SimTime,
        whole: f64,
        supply: Supply,
    ) -> PoolEvent {
        let severity = if stream.happens(whole) { 1.0 } else { beta(stream) };
        let sudden = stream.happens(self.interruptions.without_warning);
        let lead = stream.lognormal(self.interruptions.warning_median_seconds, WARNING_SIGMA).min(WARNING_MAX);
        let at = if sudden { warning } else { warning + SimDuration::from_secs_f64(lead) };
        let recovered = at + hours(mixed(stream, supply.down()));
        PoolEvent { warning, at, recovered, severity, origin, number }
    }

    /// On/off processes: the pool's own and the one that it shares with the same type's pools of the region.
    fn by_supply(&self, pool: Pool, kind: &RegionType) -> PoolOutlook {
        let supply = Supply::of(kind);
        if pool.capacity_type != well_known::SPOT {
            let Some(mean_up) = supply.on_demand_up() else { return PoolOutlook::default() };
            let mut stream = self.streams.stream("supply", &pool.stream_name());
            let shortages = self.down_times(&mut stream, (1.0, mean_up, mean_up), (1.0, 1.0, 1.0));
            return PoolOutlook { events: Vec::new(), shortages };
        }
        let mut stream = self.streams.stream("supply", &pool.stream_name());
        let mut shortages = self.down_times(&mut stream, supply.up(), supply.down());
        if let Some(up) = supply.shared_up() {
            let name = format!("{}/{}", pool.instance_type, pool.capacity_type);
            let mut shared = self.streams.stream("supply-shared", &name);
            for (number, (from, until)) in self.down_times(&mut shared, up, supply.down()).into_iter().enumerate() {
                let mut delayed = self.streams.nth("supply-delay", &pool.stream_name(), number as u64);
                let delay = delayed.span_up_to(REACH_DELAY);
                shortages.push((from + delay, until + delay));
            }
        }
        shortages.sort_unstable();
        let events = if self.interruptions.exposure_hours.is_some() {
            let whole = share_of_whole(kind.advisor.map_or(2, |advice| advice.band));
            let mut events: Vec<PoolEvent> = Vec::new();
            for &(from, until) in shortages.iter().filter(|(from, _)| *from > SimTime::ZERO) {
                // A pool that is short already has nothing more to lose.
                if events.last().is_none_or(|last| last.recovered <= from) {
                    let number = events.len() as u64;
                    let mut stream = self.streams.nth("reclaim", &pool.stream_name(), number);
                    let drawn = self.event(&mut stream, pool, number, from, whole, supply);
                    events.push(PoolEvent { warning: from, at: from, recovered: until, ..drawn });
                } else if let Some(last) = events.last_mut() {
                    last.recovered = last.recovered.max(until);
                }
            }
            events
        } else {
            Vec::new()
        };
        PoolOutlook { events, shortages }
    }

    /// The times down of an alternating process until the end of the run.
    fn down_times(&self, stream: &mut Stream, up: Mixture, down: Mixture) -> Vec<(SimTime, SimTime)> {
        let mean = |(weight, first, second): Mixture| weight * first + (1.0 - weight) * second;
        let mut is_up = stream.happens(mean(up) / (mean(up) + mean(down)));
        let mut times = Vec::new();
        let mut now = SimTime::ZERO;
        while now <= self.end && times.len() < EVENTS_MAX {
            let next = now + hours(mixed(stream, if is_up { up } else { down })) + SimDuration::RESOLUTION;
            if !is_up {
                times.push((now, next));
            }
            (now, is_up) = (next, !is_up);
        }
        times
    }
}

/// Share of a type's instances that the band says are interrupted within 30 days.
fn interrupted_share(band: u8) -> f64 {
    match band {
        0 => 0.025,
        1 => 0.075,
        2 => 0.125,
        3 => 0.175,
        _ => 0.30,
    }
}

/// Share of the events of a pool that take every instance.
fn share_of_whole(band: u8) -> f64 {
    match band {
        0..=2 => 0.15,
        3 => 0.35,
        _ => 0.55,
    }
}

fn hours(hours: f64) -> SimDuration {
    SimDuration::from_secs_f64(hours * HOUR)
}

fn mixed(stream: &mut Stream, (weight, first, second): Mixture) -> f64 {
    let mean = if stream.happens(weight) { first } else { second };
    stream.exponential(mean)
}

/// Beta(1.2, 1.6), by Jöhnk's rejection.
fn beta(stream: &mut Stream) -> f64 {
    loop {
        let x = libm::pow(stream.uniform(), 1.0 / 1.2);
        let y = libm::pow(stream.uniform(), 1.0 / 1.6);
        if x + y <= 1.0 && x + y > 0.0 {
            return x / (x + y);
        }
    }
}

#[cfg(test)]
mod tests;
