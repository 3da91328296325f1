//! The Spot price of one pool over time: a process of its own stream that knows neither who looks nor who launches.
//!
//! Fitted to the daily prices of 11,588 pairs of region and type from January to May 2024: prices move every day by little, drift for days in
//! one direction, and a few trend by several per cent a day.
//!
//! Deviation: AWS does not publish its price setting. The regimes are assumptions that reproduce the size and
//! frequency of the moves.

use std::collections::VecDeque;

use nodecast_engine::Stream;
use nodecast_model::domain::{HourlyRate, SimDuration, SimTime};

const DAY: f64 = 86_400.0;
/// Standard deviation, over the zones of a region, of the logarithm of a type's price: its median over types, and how far types differ in it.
///
/// Source: 336 pairs of region and type in 23 regions, 2026. The most expensive zone of a pair costs 1.23 times the cheapest in the median, 1.49
/// times at the third quartile, and 2.0 times at the ninetieth percentile.
const ZONE_SIGMA: f64 = 0.115;
const ZONE_SIGMA_SPREAD: f64 = 0.80;
/// Share of pools whose price never moves.
const FROZEN: f64 = 0.02;
/// Mean length of calm and of trending times, in days.
const CALM_DAYS: f64 = 200.0;
const TRENDING_DAYS: f64 = 8.0;
/// Least and longest time between two changes in calm and in trending times, in days.
const CALM_GAP: (f64, f64) = (0.5, 1.2);
const TRENDING_GAP: (f64, f64) = (0.25, 0.55);
/// An unchanged price is published anew after this time.
const HEARTBEAT: SimDuration = SimDuration::from_secs(86_400);
/// A calm price drifts: standard deviation of the drift a day, and the days after which it has forgotten itself.
const DRIFT: f64 = 0.0050;
const DRIFT_DAYS: f64 = 5.0;
/// What comes on top of the drift within a day, and the days in which a price comes back to its level.
const CALM_NOISE: f64 = 0.0048;
const RETURN_DAYS: f64 = 400.0;
/// How much pools differ in drift and noise: standard deviation of the logarithm.
const RESTLESSNESS_SIGMA: f64 = 0.30;
/// Steps of a trending price, and how far from the level its aim lies (standard deviation).
const TREND_STEP: (f64, f64) = (0.012, 0.028);
const AIM_SIGMA: f64 = 0.70;
/// Largest move of the logarithm within 24 hours.
const DAILY_MOVE: f64 = 0.15;
/// Lowest price as a share of On-Demand: its logarithm.
const FLOOR: f64 = -std::f64::consts::LN_10;
/// Publications that are kept before the present one: only the bill asks for earlier prices.
const KEPT: usize = 8;
/// Prices are published to four decimals: in nano-units.
const TICK: i64 = 100_000;

/// A price that EC2 publishes: it holds from then on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Publication {
    /// From when on.
    pub at: SimTime,
    /// The price.
    pub rate: HourlyRate,
}

/// The spread of a type's prices over the zones of a region, in standard deviations of their logarithm.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ZoneSpread(f64);

impl ZoneSpread {
    /// A spread drawn from `stream`, which all zones of the type share.
    pub fn new(mut stream: Stream) -> Self {
        Self(ZONE_SIGMA * libm::exp(ZONE_SIGMA_SPREAD * stream.normal()))
    }
}

/// The price of one pool, made as far as somebody asked for. What it is at an instant does not depend on the asking.
#[derive(Debug)]
pub struct PricePath {
    stream: Stream,
    on_demand: HourlyRate,
    /// Logarithm of price over On-Demand: where it tends to, where it trends to, where it is.
    level: f64,
    aim: f64,
    position: f64,
    /// Drift of the logarithm a day, and the factor by which drift and noise of this pool differ from the usual.
    drift: f64,
    restlessness: f64,
    trending: bool,
    frozen: bool,
    last_change: SimTime,
    next_change: SimTime,
    next_switch: SimTime,
    recent: VecDeque<(SimTime, f64)>,
    /// The first is that of the start, unless the path has forgotten it.
    published: Vec<Publication>,
    /// Whether publications before the last few are forgotten.
    forgets: bool,
}

impl PricePath {
    /// A price that begins at `start`, or apart from it by the spread of its zones; without a spread, `start` was observed in this very
    /// zone.
    pub fn new(mut stream: Stream, on_demand: HourlyRate, start: HourlyRate, spread: Option<ZoneSpread>) -> Self {
        let ratio = start.as_nanos() as f64 / on_demand.as_nanos().max(1) as f64;
        // Drawn in any case: the rest of the path keeps its draws.
        let offset = stream.normal() * spread.map_or(0.0, |spread| spread.0);
        let stated = libm::log(ratio.max(1e-9));
        let level = (stated + offset).clamp(FLOOR.min(stated), 0.0);
        let frozen = stream.happens(FROZEN);
        let trending = stream.happens(TRENDING_DAYS / (CALM_DAYS + TRENDING_DAYS));
        let restlessness = libm::exp(RESTLESSNESS_SIGMA * stream.normal());
        let drift = restlessness * DRIFT * stream.normal();
        let mut path = Self {
            stream,
            on_demand,
            level,
            aim: level,
            position: level,
            drift,
            restlessness,
            trending: !trending,
            frozen,
            last_change: SimTime::ZERO,
            next_change: SimTime::ZERO,
            next_switch: SimTime::ZERO,
            recent: VecDeque::new(),
            published: vec![Publication { at: SimTime::ZERO, rate: start }],
            forgets: true,
        };
        path.switch(SimTime::ZERO);
        path.published[0].rate = if spread.is_none() { start } else { path.rate() };
        path
    }

    /// The same path, which forgets nothing.
    #[must_use]
    pub fn whole(self) -> Self {
        Self { forgets: false, ..self }
    }

    /// Whether it forgets nothing.
    pub const fn is_whole(&self) -> bool {
        !self.forgets
    }

    /// The price at `at`; before the start it is that of the start. A path that forgets must be asked for instants in order of time.
    pub fn rate_at(&mut self, at: SimTime) -> HourlyRate {
        self.extend_to(at);
        let after = self.published.partition_point(|publication| publication.at <= at);
        debug_assert!(after > 0 || self.published[0].at == SimTime::ZERO, "the price at {at:?} is forgotten");
        let rate = self.published[after.saturating_sub(1)].rate;
        if self.forgets && after >= 2 * KEPT {
            self.published.drain(..after - KEPT);
        }
        rate
    }

    /// Everything published up to and including `until`, repetitions included, as far as it is not forgotten.
    pub fn published_until(&mut self, until: SimTime) -> &[Publication] {
        self.extend_to(until);
        let after = self.published.partition_point(|publication| publication.at <= until);
        &self.published[..after]
    }

    fn extend_to(&mut self, until: SimTime) {
        loop {
            let last = self.published[self.published.len() - 1];
            let next = self.next_change.min(self.next_switch).min(last.at + HEARTBEAT);
            if next > until {
                return;
            }
            if self.next_switch == next {
                self.switch(next);
            } else if self.next_change == next {
                self.change(next);
            } else {
                self.published.push(Publication { at: next, rate: last.rate });
            }
        }
    }

    /// From calm to trending or back.
    fn switch(&mut self, now: SimTime) {
        self.trending = !self.trending;
        let days = if self.trending { TRENDING_DAYS } else { CALM_DAYS };
        if self.trending {
            self.aim = (self.level + AIM_SIGMA * self.stream.normal()).clamp(FLOOR, 0.0);
        }
        self.next_switch =
            now + SimDuration::from_secs_f64(self.stream.exponential(days * DAY)) + SimDuration::RESOLUTION;
        self.plan_change(now);
    }

    fn plan_change(&mut self, now: SimTime) {
        let (least, most) = if self.trending { TRENDING_GAP } else { CALM_GAP };
        let wait = self.stream.between(least, most) * DAY;
        self.next_change = if self.frozen { SimTime::FAR_FUTURE } else { now + SimDuration::from_secs_f64(wait) };
    }

    fn change(&mut self, now: SimTime) {
        let days = (now - self.last_change).as_secs_f64() / DAY;
        self.last_change = now;
        let step = if self.trending {
            let size = self.stream.between(TREND_STEP.0, TREND_STEP.1);
            if self.aim >= self.position { size } else { -size }
        } else {
            self.calm_step(days)
        };
        while self.recent.front().is_some_and(|&(at, _)| at + HEARTBEAT <= now) {
            self.recent.pop_front();
        }
        let moved: f64 = self.recent.iter().map(|&(_, step)| step).sum();
        let bounded = (moved + step).clamp(-DAILY_MOVE, DAILY_MOVE) - moved;
        let reached = (self.position + bounded).clamp(FLOOR, 0.0);
        self.recent.push_back((now, reached - self.position));
        self.position = reached;
        let rate = self.rate();
        self.published.push(Publication { at: now, rate });
        self.plan_change(now);
    }

    /// How far a calm price goes in so many days.
    fn calm_step(&mut self, days: f64) -> f64 {
        let kept = libm::exp(-days / DRIFT_DAYS);
        let anew = DRIFT * self.restlessness * libm::sqrt(1.0 - kept * kept);
        self.drift = self.drift * kept + anew * self.stream.normal();
        let noise = CALM_NOISE * self.restlessness * libm::sqrt(days) * self.stream.normal();
        self.drift * days + noise - days / RETURN_DAYS * (self.position - self.level)
    }

    /// The present position as a price, to four decimals, never above On-Demand.
    fn rate(&self) -> HourlyRate {
        let nanos = self.on_demand.as_nanos() as f64 * libm::exp(self.position);
        let ticks = libm::round(nanos / TICK as f64) as i64;
        HourlyRate::from_nanos((ticks.max(1) * TICK).min(self.on_demand.as_nanos()))
    }
}

#[cfg(test)]
mod tests {
    use super::{PricePath, ZoneSpread};
    use nodecast_engine::Streams;
    use nodecast_model::domain::{HourlyRate, SimDuration, SimTime};

    const WEEK: i64 = 7 * 86_400;

    fn path(pool: u64) -> PricePath {
        let on_demand = HourlyRate::from_nanos(10_000_000_000);
        let start = HourlyRate::from_nanos(3_500_000_000);
        let spread = ZoneSpread::new(Streams::new(11).nth("zone-spread", "type", pool / 3));
        PricePath::new(Streams::new(11).nth("price", "pool", pool), on_demand, start, Some(spread)).whole()
    }

    fn at(seconds: i64) -> SimTime {
        SimTime::ZERO + SimDuration::from_secs(seconds)
    }

    fn move_between(path: &mut PricePath, from: SimTime, to: SimTime) -> f64 {
        let (from, to) = (path.rate_at(from).as_f64(), path.rate_at(to).as_f64());
        libm::fabs(libm::log(to / from))
    }

    #[test]
    fn spot_price_updates_daily_in_small_steps() {
        for pool in 0..300 {
            let mut path = path(pool);
            let published = path.published_until(at(20 * WEEK)).to_vec();
            for pair in published.windows(2) {
                assert!(pair[1].at - pair[0].at <= SimDuration::from_secs(32 * 3_600));
                let day = pair[1].at - SimDuration::from_secs(86_400);
                // Rounding to four decimals adds a little to either end.
                assert!(move_between(&mut path, day, pair[1].at) <= 0.15 + 1e-4);
            }
            assert!(published.iter().all(|publication| publication.rate.as_f64() <= 10.0));
        }
    }

    /// Days of the record that the process is fitted to.
    const RECORD_DAYS: i64 = 117;

    /// What one pool does over as many days as the record has, looked at once a day.
    struct Movement {
        /// Moves of the logarithm from one day to the next.
        steps: Vec<f64>,
        /// Logarithm of the highest over the lowest price.
        range: f64,
    }

    fn movement(path: &mut PricePath) -> Movement {
        let price = |day: i64, path: &mut PricePath| libm::log(path.rate_at(at(day * 86_400)).as_f64());
        let prices: Vec<f64> = (0..RECORD_DAYS).map(|day| price(day, path)).collect();
        let highest = prices.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let lowest = prices.iter().copied().fold(f64::INFINITY, f64::min);
        Movement { steps: prices.windows(2).map(|pair| pair[1] - pair[0]).collect(), range: highest - lowest }
    }

    fn quantile(mut values: Vec<f64>, share: f64) -> f64 {
        values.sort_by(f64::total_cmp);
        values[((share * values.len() as f64) as usize).min(values.len() - 1)]
    }

    fn is_within(simulated: f64, recorded: f64, share: f64, what: &str) {
        assert!((simulated / recorded - 1.0).abs() < share, "{what}: {simulated} against {recorded} of the record");
    }

    /// The record: 11,588 pairs of region and type that have 100 days and more of January to May 2024. Nine of ten change every day; a
    /// move is 0.7 % on average; one in a hundred is above 5 %; the highest price is 1.27 times the lowest in the median pool, 1.9
    /// times in one of ten, 3.0 times in one of a hundred. Moves of days on end go the same way: their autocorrelation.
    #[test]
    fn simulated_pools_move_as_those_of_the_record() {
        let pools: Vec<Movement> = (0..2_000).map(|pool| movement(&mut path(pool))).collect();
        let moved: Vec<f64> = pools.iter().flat_map(|pool| &pool.steps).map(|step| step.abs()).collect();
        let share =
            |is: &dyn Fn(f64) -> bool| moved.iter().filter(|&&step| is(step)).count() as f64 / moved.len() as f64;
        is_within(share(&|step| step > 1e-9), 0.8975, 0.08, "days with a change");
        is_within(moved.iter().sum::<f64>() / moved.len() as f64, 0.0068, 0.10, "mean move");
        is_within(share(&|step| step > 0.05), 0.0106, 0.35, "moves above 5 %");
        is_within(quantile(moved.clone(), 0.5), 0.0048, 0.15, "median move");
        is_within(quantile(moved, 0.9), 0.0138, 0.15, "ninetieth percentile of moves");
        let ranges = || pools.iter().map(|pool| pool.range).collect::<Vec<f64>>();
        is_within(quantile(ranges(), 0.5), 0.235, 0.15, "median range");
        is_within(quantile(ranges(), 0.9), 0.646, 0.20, "range of one in ten");
        is_within(quantile(ranges(), 0.99), 1.088, 0.20, "range of one in a hundred");
        for (lag, recorded) in [(1, 0.394), (2, 0.319), (5, 0.155), (10, 0.051)] {
            let of_pool = |pool: &Movement| {
                let squares: f64 = pool.steps.iter().map(|step| step * step).sum();
                let products: f64 = pool.steps.iter().zip(&pool.steps[lag..]).map(|(one, later)| one * later).sum();
                (squares > 0.0).then(|| products / squares)
            };
            let all: Vec<f64> = pools.iter().filter_map(of_pool).collect();
            let mean = all.iter().sum::<f64>() / all.len() as f64;
            assert!((mean - recorded).abs() < 0.06, "lag {lag}: {mean} against {recorded}");
        }
    }

    /// Of 336 pairs of region and type with two to six zones, the most expensive zone cost 1.23 times the cheapest in the median and 2.0
    /// times at the ninetieth percentile. Prices at the start are
    /// within 7 points of the one and within 0.3 of the other; later, each zone goes its own way too.
    #[test]
    fn zone_price_spread_matches_observations() {
        let mut spreads: Vec<f64> = (0..400)
            .map(|kind| {
                let rates: Vec<f64> =
                    (0..3).map(|zone| path(9_999 + kind * 3 + zone).rate_at(at(0)).as_f64()).collect();
                rates.iter().copied().fold(0.0, f64::max) / rates.iter().copied().fold(f64::INFINITY, f64::min)
            })
            .collect();
        spreads.sort_by(f64::total_cmp);
        let (median, ninetieth) = (spreads[200], spreads[360]);
        assert!((1.16..1.30).contains(&median), "median {median}");
        assert!((1.7..2.3).contains(&ninetieth), "ninetieth percentile {ninetieth}");
    }

    #[test]
    fn path_that_forgets_has_the_same_present_price() {
        for pool in 0..50 {
            let (mut whole, mut forgetful) = (path(pool), PricePath { forgets: true, ..path(pool) });
            for hour in (0..(20 * 168)).step_by(7) {
                assert_eq!(forgetful.rate_at(at(hour * 3_600)), whole.rate_at(at(hour * 3_600)));
                assert!(forgetful.published.len() <= 2 * super::KEPT + 1);
            }
            assert!(whole.published.len() > 50);
        }
    }

    #[test]
    fn price_is_independent_of_query_times() {
        for pool in 0..50 {
            let (mut often, mut once) = (path(pool), path(pool));
            for hour in 0..(20 * 168) {
                often.rate_at(at(hour * 3_600));
            }
            assert_eq!(often.rate_at(at(20 * WEEK)), once.rate_at(at(20 * WEEK)));
            assert_eq!(often.published_until(at(20 * WEEK)), once.published_until(at(20 * WEEK)));
        }
    }
}
