//! When a pool runs short: EC2 reclaims Spot instances from it, and has none to give for a while.
//!
//! What befalls a pool depends on the seed and the pool alone, so that every policy meets the same. Which of our
//! instances are hit is a draw for each instance of the pool by its number.
//!
//! Source: bands of the Spot Instance Advisor; shape of the events and of the up and down times from published Spot
//! availability traces of 2022-2023.
//! Deviation: AWS does not publish the exposure of the instances in the Advisor's data, lead times, or correlations.
//! Exposure, warning time, severity, and spread are assumptions. The warning time is drawn for each event of a pool,
//! not for each instance. There are no false alarms.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::Pool;
use crate::settings::{CapacityModel, Interruptions};
use nodecast_engine::{Stream, Streams};
use nodecast_model::catalog::{Region, RegionType};
use nodecast_model::domain::{SimDuration, SimTime, Symbol, well_known};

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
/// In bursts, this share of the times between two events is short, so long in the mean, in hours.
///
/// Source: availability of p3.2xlarge in nine zones over 45 days, published with "Can't Be Late" (NSDI 2024): 35 to 63 % of the times up
/// are shorter than half an hour, and most of the time up lies in those of more than six.
const BURST: (f64, f64) = (0.75, 0.5);
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

impl PoolEvent {
    /// A recorded loss of a share of a pool's instances, without warning.
    pub fn recorded(origin: Pool, number: u64, at: SimTime, recovered: SimTime, lost: f64) -> Self {
        Self { warning: at, at, recovered, severity: lost, origin, number }
    }
}

/// Everything that befalls one pool in a run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct PoolOutlook {
    /// In order of time of the notices.
    pub events: Vec<PoolEvent>,
    /// Positions of those that give a warning, in order of time of the warnings: an event may be foreseen before another that
    /// comes sooner.
    pub warned: Vec<u32>,
    /// Times without an instance to give, in order of their beginning; they may overlap.
    pub shortages: Vec<(SimTime, SimTime)>,
}

impl PoolOutlook {
    /// Of these events, which are in order, and shortages.
    pub fn new(events: Vec<PoolEvent>, shortages: Vec<(SimTime, SimTime)>) -> Self {
        let is_warned = |at: &u32| events[*at as usize].warning < events[*at as usize].at;
        let mut warned: Vec<u32> = (0..u32::try_from(events.len()).unwrap_or(u32::MAX)).filter(is_warned).collect();
        warned.sort_by_key(|&at| events[at as usize].warning);
        Self { events, warned, shortages }
    }

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
    fn from_kind(kind: &RegionType) -> Self {
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
    /// Random streams of the cluster, which decide which of its instances an event strikes.
    pub(super) cluster: Streams,
    capacity: CapacityModel,
    interruptions: Interruptions,
    end: SimTime,
    /// Positions of the region's types by family, in order.
    families: FxHashMap<&'static str, Vec<usize>>,
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
        let mut families: FxHashMap<&'static str, Vec<usize>> = FxHashMap::default();
        for (at, kind) in region.types.iter().enumerate() {
            families.entry(family(kind.facts.name)).or_default().push(at);
        }
        Self { region, streams, cluster: streams, capacity, interruptions, end, families }
    }

    /// Makes these the reclaims of the same region with other names of zones.
    pub(super) fn set_region(&mut self, region: Arc<Region>) {
        self.region = region;
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
        let mut stream = self.cluster.nth("reclaim-hit", &entity, ordinal);
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
        let rate = self.own_rate(pool, kind);
        let mut events: Vec<PoolEvent> = self.events("reclaim", pool, kind, rate);
        let mut missing = self.rate(kind) - rate;
        for (source, source_kind, share) in self.neighbours(pool) {
            let source_rate = self.own_rate(source, source_kind);
            // What a pool passes on is thinned, so that no neighbour makes another one worse than its band.
            let passed = if source_rate > 0.0 { (rate / source_rate).min(1.0) } else { 0.0 };
            missing -= share.mean() * source_rate * passed;
            let begun = self.events("reclaim", source, source_kind, source_rate);
            events.extend(begun.into_iter().filter_map(|event| self.reach(event, pool, kind, share, passed)));
        }
        // Where quieter neighbours pass on less than the band has it, the rest begins here and stays here.
        events.extend(self.events("reclaim-local", pool, kind, missing));
        events.sort_by_key(|event| (event.at, event.origin, event.number));
        let short = |event: &PoolEvent| (event.at, event.recovered);
        let shortages = match self.capacity {
            CapacityModel::Infinite => Vec::new(),
            _ => events.iter().map(short).collect(),
        };
        PoolOutlook::new(events, shortages)
    }

    /// Other pools whose events may reach `pool`, and how.
    fn neighbours(&self, pool: Pool) -> impl Iterator<Item = (Pool, &RegionType, Share)> {
        let family = self.families.get(family(pool.instance_type)).map_or(&[][..], Vec::as_slice);
        let own_zone = self.region.zone_index(pool.zone);
        family.iter().filter_map(|&at| self.region.types.get(at)).flat_map(move |kind| {
            let same = kind.facts.name == pool.instance_type;
            let zones = kind.zones_offered().count().saturating_sub(1).max(1);
            let share = if same { Share::OtherZone { of: zones } } else { Share::OtherSize };
            kind.zones_offered().filter(move |&zone| (Some(zone) == own_zone) != same).map(move |zone| {
                let source = Pool { instance_type: kind.facts.name, zone: self.region.zones[zone].name, ..pool };
                (source, kind, share)
            })
        })
    }

    /// The event as it arrives at `pool`, if it does; `passed` is the share that is let through.
    fn reach(&self, event: PoolEvent, pool: Pool, kind: &RegionType, share: Share, passed: f64) -> Option<PoolEvent> {
        let mut stream = self.streams.nth("reclaim-reach", &event.origin.stream_name(), event.number);
        let (spreads, draw) = (stream.happens(REACHES_ZONE), stream.uniform());
        let delay = stream.span_up_to(REACH_DELAY);
        let entity = format!("{}>{}", event.origin.stream_name(), pool.stream_name());
        let mut arrival = self.streams.nth("reclaim-reach", &entity, event.number);
        let arrives = match share {
            Share::OtherZone { .. } => {
                let others: Vec<Symbol> = kind
                    .zones_offered()
                    .map(|zone| self.region.zones[zone].name)
                    .filter(|&zone| zone != event.origin.zone)
                    .collect();
                let chosen = libm::floor(draw * others.len() as f64) as usize;
                spreads && others.get(chosen) == Some(&pool.zone) && arrival.happens(passed)
            }
            Share::OtherSize => arrival.happens(REACHES_SIZE * passed),
        };
        arrives.then(|| PoolEvent {
            warning: event.warning + delay,
            at: event.at + delay,
            recovered: event.recovered + delay,
            severity: severity(&mut arrival, band_of(kind)),
            ..event
        })
    }

    /// Events of a pool per hour, wherever they begin: its band's.
    fn rate(&self, kind: &RegionType) -> f64 {
        let whole = share_of_whole(band_of(kind));
        let mean_severity = whole + (1.0 - whole) * PARTIAL_MEAN;
        hazard(&self.interruptions, kind) / mean_severity
    }

    /// Events that begin in a pool and spread, per hour: what is left of its rate if all neighbours are like itself.
    fn own_rate(&self, pool: Pool, kind: &RegionType) -> f64 {
        self.rate(kind) / (1.0 + self.neighbours(pool).map(|(_, _, share)| share.mean()).sum::<f64>())
    }

    /// Events that begin in the pool, `rate` of them an hour.
    fn events(&self, name: &'static str, pool: Pool, kind: &RegionType, rate: f64) -> Vec<PoolEvent> {
        let mut stream = match name {
            "reclaim" => self.streams.stream("reclaim", &pool.stream_name()),
            _ => self.streams.stream("reclaim-local", &pool.stream_name()),
        };
        // Numbers tell the events of one pool apart, whether they spread or not.
        let first = if name == "reclaim" { 0 } else { EVENTS_MAX as u64 };
        let mut events = Vec::new();
        let mut now = SimTime::ZERO;
        let gaps = Gaps::new(rate, self.interruptions.bursts);
        while rate > 0.0 && events.len() < EVENTS_MAX {
            now += hours(gaps.draw(&mut stream, events.is_empty()));
            if now > self.end {
                break;
            }
            let number = first + events.len() as u64;
            events.push(self.event(&mut stream, pool, number, now, kind));
        }
        events
    }

    fn event(&self, stream: &mut Stream, origin: Pool, number: u64, warning: SimTime, kind: &RegionType) -> PoolEvent {
        let severity = severity(stream, band_of(kind));
        let sudden = stream.happens(self.interruptions.without_warning);
        let lead = stream.lognormal(self.interruptions.warning_median_seconds, WARNING_SIGMA).min(WARNING_MAX);
        let at = if sudden { warning } else { warning + SimDuration::from_secs_f64(lead) };
        let recovered = at + hours(mixed(stream, Supply::from_kind(kind).down()));
        PoolEvent { warning, at, recovered, severity, origin, number }
    }

    /// On/off processes: the pool's own and the one that it shares with the same type's pools of the region.
    fn by_supply(&self, pool: Pool, kind: &RegionType) -> PoolOutlook {
        let supply = Supply::from_kind(kind);
        if pool.capacity_type != well_known::SPOT {
            let Some(mean_up) = supply.on_demand_up() else { return PoolOutlook::default() };
            let mut stream = self.streams.stream("supply", &pool.stream_name());
            let shortages = self.down_times(&mut stream, (1.0, mean_up, mean_up), (1.0, 1.0, 1.0));
            return PoolOutlook::new(Vec::new(), shortages);
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
            let mut events: Vec<PoolEvent> = Vec::new();
            for &(from, until) in shortages.iter().filter(|(from, _)| *from > SimTime::ZERO) {
                // A pool that is short already has nothing more to lose.
                if events.last().is_none_or(|last| last.recovered <= from) {
                    let number = events.len() as u64;
                    let mut stream = self.streams.nth("reclaim", &pool.stream_name(), number);
                    let drawn = self.event(&mut stream, pool, number, from, kind);
                    events.push(PoolEvent { warning: from, at: from, recovered: until, ..drawn });
                } else if let Some(last) = events.last_mut() {
                    last.recovered = last.recovered.max(until);
                }
            }
            events
        } else {
            Vec::new()
        };
        PoolOutlook::new(events, shortages)
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

/// The times between two events of a pool, in hours.
#[derive(Clone, Copy, Debug)]
enum Gaps {
    /// Each as likely at one time as at another.
    Even { mean: f64 },
    /// Short ones and long ones.
    Bursts { long: f64 },
}

impl Gaps {
    /// For so many events an hour. Where they are so frequent that nothing would be left for long times, they do not come in bursts.
    fn new(rate: f64, bursts: bool) -> Self {
        let mean = 1.0 / rate;
        let long = (mean - BURST.0 * BURST.1) / (1.0 - BURST.0);
        if bursts && long > BURST.1 { Self::Bursts { long } } else { Self::Even { mean } }
    }

    /// The next; `first` is the time from the beginning of the run, which lies anywhere between two events, and so mostly in a long time.
    fn draw(self, stream: &mut Stream, first: bool) -> f64 {
        match self {
            Self::Even { mean } => stream.exponential(mean),
            Self::Bursts { long } => {
                let time_in_short = BURST.0 * BURST.1;
                let share = time_in_short / (time_in_short + (1.0 - BURST.0) * long);
                mixed(stream, (if first { share } else { BURST.0 }, BURST.1, long))
            }
        }
    }
}

/// How events of one pool come to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Share {
    /// The same type in another zone: one of so many that an event may choose.
    OtherZone { of: usize },
    /// Another size of the family in the zone.
    OtherSize,
}

impl Share {
    /// The probability that an event arrives.
    fn mean(self) -> f64 {
        match self {
            Self::OtherZone { of } => REACHES_ZONE / of as f64,
            Self::OtherSize => REACHES_SIZE,
        }
    }
}

/// The family of an instance type by its name.
fn family(name: Symbol) -> &'static str {
    name.as_str().split('.').next().unwrap_or_default()
}

/// How often a running Spot instance of a type is taken, per hour: by its band, the assumed exposure and its size.
pub fn hazard(interruptions: &Interruptions, kind: &RegionType) -> f64 {
    let Some(exposure) = interruptions.exposure_hours else { return 0.0 };
    let vcpus = if interruptions.size_factor { f64::from(kind.facts.vcpus) } else { 0.0 };
    let size = libm::sqrt((vcpus / 16.0).max(1.0));
    -libm::log(1.0 - interrupted_share(band_of(kind))) / exposure * size * interruptions.stress
}

fn band_of(kind: &RegionType) -> u8 {
    kind.advisor.map_or(2, |advice| advice.band)
}

/// The probability that an event hits an instance.
fn severity(stream: &mut Stream, band: u8) -> f64 {
    if stream.happens(share_of_whole(band)) { 1.0 } else { beta(stream) }
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
