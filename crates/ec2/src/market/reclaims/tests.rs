use std::sync::Arc;

use super::{PoolOutlook, Reclaims};
use crate::Pool;
use crate::settings::{CapacityModel, Interruptions};
use nodecast_engine::Streams;
use nodecast_model::catalog::Region;
use nodecast_model::domain::{SimDuration, SimTime, Symbol, well_known};
use nodecast_prices::Catalog;

fn region() -> Arc<Region> {
    Catalog::embedded().and_then(|catalog| catalog.region("us-east-1")).unwrap()
}

fn days(days: i64) -> SimTime {
    SimTime::ZERO + SimDuration::from_secs(days * 86_400)
}

fn reclaims(seed: u64, capacity: CapacityModel, exposure_hours: f64, until: SimTime) -> Reclaims {
    let interruptions = Interruptions { exposure_hours: Some(exposure_hours), ..Interruptions::default() };
    Reclaims::new(region(), Streams::new(seed), capacity, interruptions, until)
}

fn spot(instance_type: &str, zone: &str) -> Pool {
    Pool { instance_type: Symbol::new(instance_type), zone: Symbol::new(zone), capacity_type: well_known::SPOT }
}

/// A Spot type of `band` with at most 16 vCPUs that several zones offer.
fn type_of_band(band: u8, nth: usize) -> Symbol {
    let region = region();
    let kinds = region.types.iter().filter(|kind| {
        kind.facts.spot
            && kind.facts.vcpus <= 16
            && kind.facts.gpu.is_none()
            && kind.advisor.is_some_and(|advice| advice.band == band)
            && kind.offered_in(0)
            && kind.offered_in(1)
    });
    kinds.map(|kind| kind.facts.name).nth(nth).unwrap()
}

#[test]
fn worst_band_interrupts_about_three_in_ten() {
    let (mut hit, mut held, mut prompt) = (0_u32, 0_u32, 0_u32);
    for seed in 0..400 {
        let pool = spot(type_of_band(4, seed as usize % 20).as_str(), "us-east-1a");
        let reclaims = reclaims(seed, CapacityModel::Static, 730.0, days(60));
        let outlook = reclaims.outlook(pool);
        let until = SimTime::ZERO + SimDuration::from_secs(730 * 3_600);
        for ordinal in 0..20 {
            held += 1;
            let mut during = outlook.events.iter().filter(|event| event.at < until);
            if let Some(notice) = during.find_map(|event| reclaims.hit(event, pool, ordinal)) {
                hit += 1;
                prompt += u32::from(notice <= SimDuration::from_secs(180));
            }
        }
    }
    let share = f64::from(hit) / f64::from(held);
    assert!((0.24..0.36).contains(&share), "{share} of {held} were hit");
    assert!(f64::from(prompt) > 0.9 * f64::from(hit), "{prompt} of {hit} within three minutes");
}

/// Share of the instances of `months` months of one pool that are hit, month by month: 20 instances held for each.
fn monthly_shares(pool: Pool, seed: u64, months: i64) -> Vec<f64> {
    let month = SimDuration::from_secs(730 * 3_600);
    let interruptions = Interruptions { exposure_hours: Some(730.0), size_factor: false, ..Interruptions::default() };
    let end = SimTime::ZERO + month * (months + 1);
    let reclaims = Reclaims::new(region(), Streams::new(seed), CapacityModel::Static, interruptions, end);
    let events = reclaims.outlook(pool).events;
    (1..=months)
        .map(|number| {
            let (from, to) = (SimTime::ZERO + month * number, SimTime::ZERO + month * (number + 1));
            let during: Vec<_> = events.iter().filter(|event| from <= event.at && event.at < to).collect();
            let first = number as u64 * 20;
            let hit = (first..first + 20)
                .filter(|&ordinal| during.iter().any(|event| reclaims.hit(event, pool, ordinal).is_some()));
            hit.count() as f64 / 20.0
        })
        .collect()
}

/// With the exposure a month and the size factor off, the Advisor's own figure must come out: 1,000 months of 20 instances
/// over ten pools of each band, seed 1. Instances of one pool and month share its events, so a month is one observation;
/// 3.29 standard errors of its mean are a 99.9 % interval.
#[test]
fn monthly_interruptions_match_each_advisor_band() {
    for (band, central) in [(0, 0.025), (1, 0.075), (2, 0.125), (3, 0.175), (4, 0.30)] {
        let shares: Vec<f64> = (0..10)
            .flat_map(|nth| {
                monthly_shares(spot(type_of_band(band, nth * 3).as_str(), "us-east-1a"), 1 + nth as u64, 100)
            })
            .collect();
        let mean = shares.iter().sum::<f64>() / shares.len() as f64;
        let variance =
            shares.iter().map(|share| (share - mean) * (share - mean)).sum::<f64>() / (shares.len() - 1) as f64;
        let error = 3.29 * libm::sqrt(variance / shares.len() as f64);
        assert!(shares.len() == 1_000 && error < 0.06, "band {band}: an interval of {error} says little");
        assert!((mean - central).abs() <= error, "band {band}: {mean} is not within {error} of {central}");
    }
}

#[test]
fn interruption_rate_follows_type_not_siblings() {
    let region = region();
    let restless = |kind: &&nodecast_model::catalog::RegionType| kind.advisor.is_some_and(|advice| advice.band == 4);
    let quiet = region
        .types
        .iter()
        .filter(|kind| kind.facts.spot && kind.offered_in(0) && kind.advisor.is_some_and(|advice| advice.band == 0))
        .max_by_key(|kind| {
            let siblings = region.types.iter().filter(|other| other.facts.family == kind.facts.family);
            siblings.filter(restless).count()
        })
        .unwrap();
    let shares = monthly_shares(spot(quiet.facts.name.as_str(), "us-east-1a"), 5, 1_000);
    let mean = shares.iter().sum::<f64>() / 1_000.0;
    assert!((0.01..0.045).contains(&mean), "{}: {mean}", quiet.facts.name);
}

#[test]
fn pool_outlook_depends_on_seed_and_pool() {
    let pool = spot(type_of_band(3, 0).as_str(), "us-east-1b");
    let (one, other) =
        (reclaims(3, CapacityModel::Static, 24.0, days(90)), reclaims(3, CapacityModel::Static, 24.0, days(90)));
    let _ = other.outlook(spot("m5.large", "us-east-1a"));
    assert!(!one.outlook(pool).events.is_empty());
    assert_eq!(one.outlook(pool), other.outlook(pool));
    assert_ne!(one.outlook(pool), reclaims(4, CapacityModel::Static, 24.0, days(90)).outlook(pool));
}

/// Share of the time that a pool can deliver, and its times up in hours, over `until`.
fn availability(outlook: &PoolOutlook, until: SimTime) -> (f64, Vec<f64>) {
    let (mut down, mut reached, mut up) = (0.0, SimTime::ZERO, Vec::new());
    for &(from, to) in &outlook.shortages {
        if from > reached {
            up.push((from - reached).as_secs_f64() / 3_600.0);
        }
        down += (to.min(until).saturating_since(from.max(reached))).as_secs_f64();
        reached = reached.max(to.min(until));
    }
    (1.0 - down / until.as_secs_f64(), up)
}

#[test]
fn tight_pool_uptimes_are_heavy_tailed_across_zones() {
    let until = days(600);
    let (mut shares, mut ups, mut correlations) = (Vec::new(), Vec::new(), Vec::new());
    for nth in 0..12 {
        let reclaims = reclaims(nth, CapacityModel::UpDown, 72.0, until);
        let name = type_of_band(4, nth as usize);
        let (one, other) =
            (reclaims.outlook(spot(name.as_str(), "us-east-1a")), reclaims.outlook(spot(name.as_str(), "us-east-1b")));
        let (share, up) = availability(&one, until);
        shares.push(share);
        ups.extend(up);
        correlations.push(correlation(&one, &other, until));
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    assert!((0.85..0.91).contains(&mean(&shares)), "available {}", mean(&shares));
    let average = mean(&ups);
    let deviation = libm::sqrt(mean(&ups.iter().map(|up| (up - average) * (up - average)).collect::<Vec<_>>()));
    assert!(deviation / average > 2.0, "coefficient of variation {}", deviation / average);
    let brief = ups.iter().filter(|up| **up < 0.5).count() as f64 / ups.len() as f64;
    assert!((0.20..0.45).contains(&brief), "{brief} of the runs last under 30 min");
    assert!((0.35..0.6).contains(&mean(&correlations)), "correlation {}", mean(&correlations));
}

fn correlation(one: &PoolOutlook, other: &PoolOutlook, until: SimTime) -> f64 {
    let step = SimDuration::from_secs(1_800);
    let (mut n, mut a, mut b, mut both) = (0.0, 0.0, 0.0, 0.0);
    let mut now = SimTime::ZERO;
    while now < until {
        let (x, y) = (f64::from(u8::from(one.is_short(now))), f64::from(u8::from(other.is_short(now))));
        (n, a, b, both) = (n + 1.0, a + x, b + y, both + x * y);
        now += step;
    }
    let (p, q) = (a / n, b / n);
    (both / n - p * q) / libm::sqrt(p * (1.0 - p) * q * (1.0 - q))
}

#[test]
fn scarce_pools_are_available_half_the_time() {
    let until = days(600);
    let region = region();
    let scarce: Vec<Symbol> = region
        .types
        .iter()
        .filter(|kind| {
            kind.facts.vcpus >= 96
                && kind.facts.spot
                && kind.offered_in(0)
                && kind.advisor.is_some_and(|advice| advice.band == 4)
        })
        .map(|kind| kind.facts.name)
        .take(16)
        .collect();
    let shares: Vec<f64> = scarce
        .iter()
        .map(|name| {
            availability(
                &reclaims(5, CapacityModel::UpDown, 72.0, until).outlook(spot(name.as_str(), "us-east-1a")),
                until,
            )
            .0
        })
        .collect();
    let mean = shares.iter().sum::<f64>() / shares.len() as f64;
    assert!((0.42..0.52).contains(&mean), "available {mean}");
}

#[test]
fn capacity_varies_even_without_interruptions() {
    let off = Interruptions { exposure_hours: None, ..Interruptions::default() };
    let pool = spot(type_of_band(4, 0).as_str(), "us-east-1a");
    let hazard = Reclaims::new(region(), Streams::new(1), CapacityModel::Static, off, days(300));
    assert_eq!(hazard.outlook(pool), PoolOutlook::default());
    let supply = Reclaims::new(region(), Streams::new(1), CapacityModel::UpDown, off, days(300));
    let outlook = supply.outlook(pool);
    assert!(outlook.events.is_empty() && !outlook.shortages.is_empty());
}

/// Counts of events of one pool of the worst band in 60 days, and the times between two, in hours; over so many seeds.
fn own_events(bursts: bool, seeds: u64) -> (Vec<f64>, Vec<f64>) {
    let (mut counts, mut gaps) = (Vec::new(), Vec::new());
    for seed in 0..seeds {
        let interruptions = Interruptions { exposure_hours: Some(24.0), bursts, ..Interruptions::default() };
        let reclaims = Reclaims::new(region(), Streams::new(seed), CapacityModel::Static, interruptions, days(60));
        let kind = type_of_band(4, 0);
        let pool = spot(kind.as_str(), "us-east-1a");
        let Some(instance_type) = reclaims.region.instance_type(kind) else { panic!("the region has {kind}") };
        let events = reclaims.events("reclaim", pool, instance_type, 0.01);
        counts.push(events.len() as f64);
        gaps.extend(events.windows(2).map(|pair| (pair[1].warning - pair[0].warning).as_secs_f64() / 3_600.0));
    }
    (counts, gaps)
}

#[test]
fn bursts_leave_the_rate_and_crowd_the_events() {
    let (even, _) = own_events(false, 1_500);
    let (bursty, gaps) = own_events(true, 1_500);
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let dispersion = |values: &[f64]| {
        let mean = mean(values);
        values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / values.len() as f64 / mean
    };
    // 0.01 an hour for 60 days.
    assert!((mean(&even) / 14.4 - 1.0).abs() < 0.03, "{}", mean(&even));
    assert!((mean(&bursty) / 14.4 - 1.0).abs() < 0.06, "{}", mean(&bursty));
    assert!((dispersion(&even) - 1.0).abs() < 0.12, "{}", dispersion(&even));
    assert!(dispersion(&bursty) > 3.0, "{}", dispersion(&bursty));
    let short = gaps.iter().filter(|&&gap| gap < 0.5).count() as f64 / gaps.len() as f64;
    assert!((0.42..0.55).contains(&short), "{short} of the times between two events are shorter than half an hour");
    // Whoever is there for a day after an event is safer than who has just come.
    let (soon, late) = (1.0 - survival(&gaps, 0.0, 6.0), 1.0 - survival(&gaps, 24.0, 6.0));
    assert!(soon > 0.6 && late < 0.10, "{soon} within six hours of an event, {late} in the six after a day");
}

/// Of the times that are longer than `from` the share that is longer by `more`, in hours.
fn survival(gaps: &[f64], from: f64, more: f64) -> f64 {
    let longer = |than: f64| gaps.iter().filter(|&&gap| gap > than).count() as f64;
    longer(from + more) / longer(from)
}
