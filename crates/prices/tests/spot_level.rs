//! Error of estimated Spot prices against prices of 2026 that the fit has not seen, and the fit itself.
//!
//! The data: median over the zones of 336 pairs of region and type, 23 regions, SkyPilot catalog v9 (commit 2c3d7ea7), 2026.

// The figures are printed with `--nocapture`.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::collections::BTreeMap;

use nodecast_prices::{Catalog, PriceQuality};

/// A pair of region and type with its Spot price.
#[derive(Clone)]
struct Pair {
    region: String,
    /// The price that the catalog estimates from, and the rule: `advisor c`, `assumed m`.
    basis: f64,
    rule: String,
    on_demand: f64,
    /// The price that the catalog uses.
    used: f64,
    paid: f64,
}

fn pairs() -> Vec<Pair> {
    let catalog = Catalog::embedded().unwrap();
    let text = include_str!("data/spot_2026.csv");
    let mut all = Vec::new();
    for line in text.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let region = catalog.region(cells[0]).unwrap();
        let kind = region.types.iter().find(|kind| kind.facts.name.as_str() == cells[1]).unwrap();
        let on_demand = kind.on_demand.unwrap().rate.as_f64();
        let mut zones: Vec<f64> = cells[3].split(' ').map(|price| price.parse().unwrap()).collect();
        zones.sort_by(f64::total_cmp);
        let paid = (zones[(zones.len() - 1) / 2] + zones[zones.len() / 2]) / 2.0;
        let used = (0..region.zones.len()).find_map(|zone| kind.spot(zone)).unwrap();
        let category = kind.facts.category.map_or("", |name| name.as_str());
        let category = if matches!(category, "c" | "m" | "r") { category } else { "other" };
        let (rule, basis) = match (used.quality, kind.advisor) {
            (PriceQuality::AdvisorEstimate | PriceQuality::DerivedLow, Some(advice)) => {
                ("advisor", 0.85 * on_demand * (100.0 - f64::from(advice.savings_percent)) / 100.0)
            }
            (PriceQuality::Assumed, _) => ("assumed", 0.3 * on_demand),
            _ => ("seen", used.rate.as_f64()),
        };
        let rule = format!("{rule} {category}");
        all.push(Pair { region: cells[0].to_owned(), basis, rule, on_demand, used: used.rate.as_f64(), paid });
    }
    all
}

/// Factors by region and by rule, which multiply: medians in turn, each drawn towards 1 by one more pair.
fn fit(pairs: &[&Pair]) -> BTreeMap<String, f64> {
    let estimated: Vec<&&Pair> = pairs.iter().filter(|pair| !pair.rule.starts_with("seen")).collect();
    let mut factors: BTreeMap<String, f64> = BTreeMap::new();
    let names = estimated.iter().flat_map(|pair| [pair.region.clone(), pair.rule.clone()]);
    for name in names {
        factors.insert(name, 0.0);
    }
    for _ in 0..20 {
        for name in factors.keys().cloned().collect::<Vec<_>>() {
            let estimated = estimated.iter().filter(|pair| pair.region == name || pair.rule == name);
            let mut left: Vec<f64> = estimated
                .map(|pair| {
                    let others = factors[&pair.region] + factors[&pair.rule] - factors[&name];
                    (pair.paid / pair.basis).ln() - others
                })
                .collect();
            left.sort_by(f64::total_cmp);
            let count = left.len() as f64;
            let median = (left[(left.len() - 1) / 2] + left[left.len() / 2]) / 2.0;
            factors.insert(name, median * count / (count + 1.0));
        }
    }
    factors
}

/// The price of a pair by factors: between a tenth of On-Demand and On-Demand.
fn price(pair: &Pair, factors: &BTreeMap<String, f64>) -> f64 {
    let factor = |name: &String| factors.get(name).copied().unwrap_or(0.0);
    if pair.rule.starts_with("seen") {
        return pair.basis;
    }
    (pair.basis * (factor(&pair.region) + factor(&pair.rule)).exp()).max(pair.on_demand / 10.0).min(pair.on_demand)
}

/// Median and ninetieth percentile of how many times too high or too low prices are.
fn errors(ratios: impl Iterator<Item = f64>) -> (f64, f64) {
    let mut all: Vec<f64> = ratios.map(|ratio| ratio.ln().abs()).collect();
    all.sort_by(f64::total_cmp);
    (all[all.len() / 2].exp(), all[all.len() * 9 / 10].exp())
}

/// The pairs in an order drawn for `seed`.
fn shuffled(pairs: &[Pair], seed: u64) -> Vec<&Pair> {
    let draw = |place: u64| {
        let mut mixed = (seed << 32 | place).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed ^ (mixed >> 27)
    };
    let mut order: Vec<(u64, &Pair)> = pairs.iter().enumerate().map(|(at, pair)| (draw(at as u64), pair)).collect();
    order.sort_by_key(|entry| entry.0);
    order.into_iter().map(|entry| entry.1).collect()
}

#[test]
fn spot_error_of_held_out_halves_is_bounded() {
    let pairs = pairs();
    assert_eq!(pairs.len(), 336);
    for first in [0, 10, 20] {
        let mut mean = (0.0, 0.0);
        for seed in first..first + 10 {
            let order = shuffled(&pairs, seed);
            let (fitted, held_out) = order.split_at(order.len() / 2);
            let factors = fit(fitted);
            let (median, ninetieth) = errors(held_out.iter().map(|pair| pair.paid / price(pair, &factors)));
            mean = (mean.0 + median / 10.0, mean.1 + ninetieth / 10.0);
        }
        println!("mean of ten halves from {first}: x{:.3} in the median, x{:.3} at p90", mean.0, mean.1);
        assert!(mean.0 <= 1.25 && mean.1 <= 2.05, "{mean:?}");
    }
}

#[test]
fn built_in_levels_are_the_fit() {
    let pairs = pairs();
    let factors = fit(&pairs.iter().collect::<Vec<_>>());
    println!("{factors:?}");
    let off = |pair: &&Pair| (pair.used / price(pair, &factors) - 1.0).abs();
    // Shares are carried as whole percents, and rules with few pairs as those without any.
    let fitted = pairs.iter().filter(|pair| pair.rule != "assumed other");
    let worst = fitted.max_by(|one, other| off(one).total_cmp(&off(other))).unwrap();
    assert!(off(&worst) < 0.03, "{} {}: {} and {}", worst.region, worst.rule, worst.used, price(worst, &factors));
    let (median, ninetieth) = errors(pairs.iter().map(|pair| pair.paid / pair.used));
    println!("all pairs: x{median:.3} in the median, x{ninetieth:.3} at p90");
    assert!(median < 1.22 && ninetieth < 2.0, "{median} {ninetieth}");
}
