//! What EC2's side of the market does by time alone: Spot prices and shortages of pools.
//!
//! Everything here is a function of (seed, pool, time): no call of ours moves it, so that two policies meet the same
//! market. Paths are made as far as somebody asks. They keep their last prices; for the bill they are made again and keep all.
//!
//! What must not live here: what we hold (`ec2`), what we pay (`billing`).

pub mod price;
pub mod reclaims;
pub mod traces;

use std::sync::Arc;

use rustc_hash::FxHashMap;

use self::price::{PricePath, ZoneSpread};
use self::reclaims::{PoolEvent, PoolOutlook, Reclaims};
use super::Pool;
use super::faults::{Fault, FaultKind};
use super::settings::{CloudSettings, ReplayedPrice, SpotPrices};
use nodecast_engine::Streams;
use nodecast_model::catalog::{Price, PriceQuality, Region};
use nodecast_model::domain::{HourlyRate, SimDuration, SimTime, well_known};

/// A price that held for a while.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PriceInterval {
    /// From when.
    pub from: SimTime,
    /// Until when.
    pub to: SimTime,
    /// The price.
    pub rate: HourlyRate,
    /// How far it can be trusted.
    pub quality: PriceQuality,
}

/// The market of one region during one run.
#[derive(Debug)]
pub struct Market {
    region: Arc<Region>,
    /// The region with the names of zones in the price data, under which pools have their random streams.
    listed: Arc<Region>,
    streams: Streams,
    settings: Arc<CloudSettings>,
    reclaims: Reclaims,
    /// Boxed, because the table grows to thousands of them and would move them each time.
    paths: FxHashMap<Pool, Box<PricePath>>,
    outlooks: FxHashMap<Pool, PoolOutlook>,
    /// Levels with their errors, which are drawn once.
    levels: FxHashMap<Pool, HourlyRate>,
    end: SimTime,
}

impl Market {
    /// The market of `region` until `end`.
    pub fn new(region: Arc<Region>, streams: Streams, settings: Arc<CloudSettings>, end: SimTime) -> Self {
        let reclaims = Reclaims::new(Arc::clone(&region), streams, settings.capacity, settings.interruptions, end);
        let (paths, outlooks, levels) = (FxHashMap::default(), FxHashMap::default(), FxHashMap::default());
        let listed = Arc::clone(&region);
        Self { region, listed, streams, settings, reclaims, paths, outlooks, levels, end }
    }

    /// Makes this the market of `listed`, in which other accounts have other names for the same zones.
    pub fn set_listed(&mut self, listed: Arc<Region>) {
        self.reclaims.set_region(Arc::clone(&listed));
        self.listed = listed;
    }

    /// The pool under the name that the price data have for its zone: the same for all accounts.
    pub fn listed_pool(&self, pool: Pool) -> Pool {
        if Arc::ptr_eq(&self.region, &self.listed) {
            return pool;
        }
        let id = self.region.zones.iter().find(|zone| zone.name == pool.zone).map(|zone| zone.id);
        let zone = self.listed.zones.iter().find(|zone| Some(zone.id) == id);
        zone.map_or(pool, |zone| Pool { zone: zone.name, ..pool })
    }

    /// The same market, with these random streams of the cluster whose instances it strikes.
    #[must_use]
    pub fn striking(mut self, cluster: Streams) -> Self {
        self.reclaims.cluster = cluster;
        self
    }

    /// The price of `pool` in the price data; `None` if the zone does not offer it so.
    pub fn listed(&self, pool: Pool) -> Option<Price> {
        let zone = self.region.zone_index(pool.zone)?;
        let kind = self.region.instance_type(pool.instance_type).filter(|kind| kind.offered_in(zone))?;
        if pool.capacity_type == well_known::SPOT { kind.spot(zone) } else { kind.on_demand }
    }

    /// The price of `pool` at `at`. An injected shock multiplies a Spot price, up to the On-Demand price.
    pub fn price(&mut self, pool: Pool, at: SimTime) -> Option<(HourlyRate, PriceQuality)> {
        let (rate, quality) = self.without_shock(pool, at)?;
        if self.settings.faults.is_empty() {
            return Some((rate, quality));
        }
        let shocks: Vec<u32> = self.shocks(pool).filter(|(fault, _)| fault.is_on(at)).map(|(_, by)| by).collect();
        if shocks.is_empty() {
            return Some((rate, quality));
        }
        let on_demand = self.region.instance_type(pool.instance_type).and_then(|kind| kind.on_demand);
        let moved = shocks.into_iter().fold(rate, |rate, permille| rate.scaled(i64::from(permille), 1_000));
        Some((on_demand.map_or(moved, |most| moved.min(most.rate.max(rate))), PriceQuality::Simulated))
    }

    /// Injected shocks of the price of `pool`, each with its factor in thousandths.
    fn shocks(&self, pool: Pool) -> impl Iterator<Item = (&Fault, u32)> {
        self.settings.faults.iter().filter_map(move |fault| match fault.kind {
            FaultKind::PriceShock { pools, permille }
                if pool.capacity_type == well_known::SPOT && pools.matches(pool) =>
            {
                Some((fault, permille))
            }
            _ => None,
        })
    }

    fn without_shock(&mut self, pool: Pool, at: SimTime) -> Option<(HourlyRate, PriceQuality)> {
        let listed = self.listed(pool)?;
        let moved = if pool.capacity_type == well_known::SPOT { self.moved(pool, listed, at) } else { None };
        Some(match moved {
            None => (listed.rate, listed.quality),
            Some(rate) if rate == listed.rate => (rate, listed.quality),
            // A price that a model has moved is no longer one that was seen; a recorded one is.
            Some(rate) => match self.settings.prices {
                SpotPrices::Replay(_) => (rate, PriceQuality::Published),
                SpotPrices::Process | SpotPrices::Constant => (rate, PriceQuality::Simulated),
            },
        })
    }

    /// The prices of `pool` between `from` and `to`, without gap.
    pub fn intervals(&mut self, pool: Pool, from: SimTime, to: SimTime) -> Vec<PriceInterval> {
        let mut starts: Vec<SimTime> = match &self.settings.prices {
            _ if pool.capacity_type != well_known::SPOT => Vec::new(),
            SpotPrices::Constant => Vec::new(),
            SpotPrices::Replay(records) => records_of(records, pool).iter().map(|record| record.at).collect(),
            SpotPrices::Process => self.published(pool, to),
        };
        starts.extend(self.shocks(pool).flat_map(|(fault, _)| [fault.at, fault.until]));
        starts.sort_unstable();
        starts.dedup();
        starts.retain(|&at| from < at && at < to);
        starts.insert(0, from);
        let mut intervals: Vec<PriceInterval> = Vec::new();
        for (position, &start) in starts.iter().enumerate() {
            let end = starts.get(position + 1).copied().unwrap_or(to);
            let Some((rate, quality)) = self.price(pool, start) else { return Vec::new() };
            match intervals.last_mut() {
                Some(last) if last.rate == rate && last.quality == quality => last.to = end,
                _ => intervals.push(PriceInterval { from: start, to: end, rate, quality }),
            }
        }
        intervals
    }

    /// When prices of `pool` were published, up to and including `until`.
    fn published(&mut self, pool: Pool, until: SimTime) -> Vec<SimTime> {
        if !self.paths.get(&pool).is_some_and(|path| path.is_whole()) {
            let path = self.listed(pool).and_then(|listed| self.path(pool, listed));
            self.paths.extend(path.map(|path| (pool, Box::new(path.whole()))));
        }
        let path = self.paths.get_mut(&pool);
        path.map_or_else(Vec::new, |path| path.published_until(until).iter().map(|one| one.at).collect())
    }

    /// How many Spot instances a recorded trace lets `pool` have at `now`; `None` without a record.
    pub fn recorded(&self, pool: Pool, now: SimTime) -> Option<u32> {
        let spot = pool.capacity_type == well_known::SPOT;
        if spot { traces::available(&self.settings.traces, pool, now) } else { None }
    }

    /// Whether `pool` has nothing to give at `now`.
    pub fn is_short(&mut self, pool: Pool, now: SimTime) -> bool {
        self.outlook(pool).is_short(now)
    }

    /// The event of `pool` at position `number` in order of time.
    pub fn event(&mut self, pool: Pool, number: usize) -> Option<PoolEvent> {
        self.outlook(pool).events.get(number).copied()
    }

    /// The position of the first event of `pool` that begins after `now`.
    pub fn first_event_after(&mut self, pool: Pool, now: SimTime) -> usize {
        self.outlook(pool).events.partition_point(|event| event.at <= now)
    }

    /// The position of the event of `pool` that gives the first warning after that of the event at `number`; without one, the
    /// first after `now`. Events without a warning are left out.
    pub fn next_warned(&mut self, pool: Pool, number: Option<usize>, now: SimTime) -> Option<usize> {
        let outlook = self.outlook(pool);
        let key = |&at: &u32| (outlook.events[at as usize].warning, at as usize);
        let place = match number.and_then(|at| Some((outlook.events.get(at)?.warning, at))) {
            Some(last) => outlook.warned.partition_point(|at| key(at) <= last),
            None => outlook.warned.partition_point(|at| key(at).0 <= now),
        };
        outlook.warned.get(place).map(|&at| at as usize)
    }

    /// Whether an event hits the `ordinal`-th instance of `pool`, and how long after its beginning the notice comes.
    pub fn hit(&self, event: &PoolEvent, pool: Pool, ordinal: u64) -> Option<SimDuration> {
        self.reclaims.hit(event, self.listed_pool(pool), ordinal)
    }

    fn outlook(&mut self, pool: Pool) -> &PoolOutlook {
        let listed = self.listed_pool(pool);
        self.outlooks.entry(pool).or_insert_with(|| {
            let recorded = (pool.capacity_type == well_known::SPOT)
                .then(|| traces::outlook(&self.settings.traces, pool, self.end))
                .flatten();
            recorded.unwrap_or_else(|| self.reclaims.outlook(listed))
        })
    }

    fn draws_errors(&self) -> bool {
        self.settings.price_errors == Some(true)
    }

    /// The level of a pool's price with the error that is drawn for its family: its tenth and ninetieth percentile are those of the quality of
    /// the listed price, the logarithm on either side is that of a normal distribution, and it lies between a tenth of On-Demand and On-Demand.
    fn erred(&self, pool: Pool, listed: Price) -> HourlyRate {
        /// The ninetieth percentile of the standard normal distribution.
        const NINETIETH: f64 = 1.281_551_565_544_6;
        let Some((low, high)) = self.region.spot_error(listed.quality) else { return listed.rate };
        let Some(kind) = self.region.instance_type(pool.instance_type) else { return listed.rate };
        let drawn = self.streams.stream("price-error", kind.facts.family.as_str()).normal();
        let percentile = if drawn < 0.0 { low } else { high };
        let factor = libm::exp(libm::log(percentile as f64 / 1_000.0) * libm::fabs(drawn) / NINETIETH);
        let nanos = libm::round(listed.rate.as_nanos() as f64 * factor) as i64;
        let most = kind.on_demand.map_or(i64::MAX, |price| price.rate.as_nanos()).max(listed.rate.as_nanos());
        let least = kind.on_demand.map_or(1, |price| price.rate.as_nanos() / 10).min(listed.rate.as_nanos());
        HourlyRate::from_nanos(nanos.clamp(least, most))
    }

    /// The price of a Spot pool if it has left the price data's.
    fn moved(&mut self, pool: Pool, listed: Price, at: SimTime) -> Option<HourlyRate> {
        match &self.settings.prices {
            SpotPrices::Constant if !self.draws_errors() => None,
            SpotPrices::Constant => {
                if let Some(&level) = self.levels.get(&pool) {
                    return Some(level);
                }
                let level = self.erred(pool, listed);
                self.levels.insert(pool, level);
                Some(level)
            }
            SpotPrices::Replay(records) => {
                let records = records_of(records, pool);
                let after = records.partition_point(|record| record.at <= at);
                records.get(after.saturating_sub(1)).map(|record| record.rate)
            }
            SpotPrices::Process => {
                if let Some(path) = self.paths.get_mut(&pool) {
                    return Some(path.rate_at(at));
                }
                let path = self.path(pool, listed)?;
                Some(self.paths.entry(pool).or_insert(Box::new(path)).rate_at(at))
            }
        }
    }

    /// The price process of a Spot pool, from its start.
    fn path(&self, pool: Pool, listed: Price) -> Option<PricePath> {
        let kind = self.region.instance_type(pool.instance_type)?;
        let on_demand = kind.on_demand.map_or(listed.rate, |price| price.rate);
        let level = if self.draws_errors() { self.erred(pool, listed) } else { listed.rate };
        let stream = self.streams.stream("price", &self.listed_pool(pool).stream_name());
        let seen_in_zone = listed.quality == PriceQuality::Published;
        let spread = ZoneSpread::new(self.streams.stream("zone-spread", pool.instance_type.as_str()));
        Some(PricePath::new(stream, on_demand, level, (!seen_in_zone).then_some(spread)))
    }
}

/// The records of one pool, in order of time.
fn records_of(records: &[ReplayedPrice], pool: Pool) -> &[ReplayedPrice] {
    let key = (pool.instance_type, pool.zone);
    let first = records.partition_point(|record| (record.instance_type, record.zone) < key);
    let last = records.partition_point(|record| (record.instance_type, record.zone) <= key);
    &records[first..last]
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::Market;
    use crate::Pool;
    use crate::settings::{CloudSettings, SpotPrices};
    use nodecast_engine::Streams;
    use nodecast_model::domain::{SimTime, Symbol, well_known};
    use nodecast_prices::Catalog;

    /// The price of a pool with so many seeds, over that of the price data; constant but for its error.
    fn over_listed(name: &str, zone: &str, seeds: u64) -> Vec<f64> {
        let region = Catalog::embedded().unwrap().region("us-east-1").unwrap();
        let settings =
            CloudSettings { prices: SpotPrices::Constant, price_errors: Some(true), ..CloudSettings::default() };
        let settings = Arc::new(settings);
        let pool = Pool { instance_type: Symbol::new(name), zone: Symbol::new(zone), capacity_type: well_known::SPOT };
        let of_seed = |seed| {
            let mut market =
                Market::new(Arc::clone(&region), Streams::new(seed), Arc::clone(&settings), SimTime::FAR_FUTURE);
            let listed = market.listed(pool).unwrap().rate.as_f64();
            let first = market.price(pool, SimTime::ZERO);
            assert_eq!(market.price(pool, SimTime::FAR_FUTURE), first, "drawn once");
            first.map_or(f64::NAN, |first| first.0.as_f64() / listed)
        };
        (0..seeds).map(of_seed).collect()
    }

    #[test]
    fn price_error_is_shared_within_family() {
        let mut drawn = over_listed("m5.large", "us-east-1a", 2_000);
        let other_size = over_listed("m5.4xlarge", "us-east-1b", 200);
        // Where neither is held up by a tenth of On-Demand.
        for (one, other) in drawn.iter().zip(&other_size).filter(|(one, other)| **one > 0.5 && **other > 0.5) {
            assert!((one / other - 1.0).abs() < 0.01, "{one} and {other}");
        }
        assert!(
            over_listed("c5.large", "us-east-1a", 20)
                .iter()
                .zip(&drawn)
                .any(|(one, other): (&f64, &f64)| (one - other).abs() > 1e-9)
        );
        drawn.sort_by(f64::total_cmp);
        // The tenth and the ninetieth percentile of the region's estimates.
        assert!((drawn[200] / 0.764 - 1.0).abs() < 0.06, "{}", drawn[200]);
        assert!((drawn[1_800] / 1.263 - 1.0).abs() < 0.06, "{}", drawn[1_800]);
    }
}
