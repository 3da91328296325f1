//! Usage with another share of Spot: instances move between Spot and On-Demand at the same hours.

use std::collections::BTreeMap;

use nodecast_commitments::{ClassKey, Platform, Tenancy, UsageKind, UsageLine, apply, left_by_class};
use nodecast_model::domain::{SimDuration, SimTime, Symbol};
use nodecast_prices::Catalog;

use crate::LoadedFleet;
use crate::recommend::Leftover;
use crate::usage::{ClusterUsage, HOUR};

/// Usage that owned commitments leave with another Spot share.
#[derive(Clone, Debug)]
pub(crate) struct SpotChange {
    /// Change of the Spot share of each cluster that uses Spot.
    pub change: f64,
    /// Spot share of these clusters together, at On-Demand list prices.
    pub spot_share: f64,
    /// Each hour: the number of its seed, and the value of each class in dollars.
    pub hours: Vec<(usize, BTreeMap<ClassKey, f64>)>,
}

/// Instances of a cluster at On-Demand list prices, in nano-dollar-microseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Markets {
    on_demand: i128,
    spot: i128,
}

/// Parts of a cluster's instances that move.
#[derive(Clone, Copy, Debug, Default)]
struct Moved {
    /// Of On-Demand instances, to Spot.
    to_spot: f64,
    /// Of Spot instances, to On-Demand.
    to_on_demand: f64,
}

impl Markets {
    fn add(self, other: Self) -> Self {
        Self { on_demand: self.on_demand + other.on_demand, spot: self.spot + other.spot }
    }

    fn all(self) -> f64 {
        (self.on_demand + self.spot) as f64
    }

    /// The parts that have to move for this change of the Spot share.
    fn moved(self, change: f64) -> Moved {
        let part = |of: i128| (change.abs() * self.all() / (of as f64).max(1.0)).min(1.0);
        match self.spot {
            0 => Moved::default(),
            _ if change > 0.0 => Moved { to_spot: part(self.on_demand), ..Moved::default() },
            _ => Moved { to_on_demand: part(self.spot), ..Moved::default() },
        }
    }

    /// Spot after the move.
    fn spot_after(self, moved: Moved) -> f64 {
        self.on_demand as f64 * moved.to_spot + self.spot as f64 * (1.0 - moved.to_on_demand)
    }
}

impl SpotChange {
    /// The usage of all seeds with this change; `None` if no cluster uses Spot.
    pub(crate) fn new(fleet: &LoadedFleet, leftover: &Leftover, change: f64) -> Option<Self> {
        let mut markets: BTreeMap<Symbol, Markets> = BTreeMap::new();
        let mut add = |line: &UsageLine, value: Markets| {
            let sum = markets.entry(line.cluster).or_default();
            *sum = sum.add(value);
        };
        leftover.lines.iter().flatten().filter(|line| can_move(line)).for_each(|line| {
            add(line, Markets { on_demand: value(line), spot: 0 });
        });
        leftover.spot.iter().flatten().for_each(|line| add(line, Markets { on_demand: 0, spot: value(line) }));
        markets.retain(|_, of_cluster| of_cluster.spot > 0);
        let all = markets.values().fold(Markets::default(), |sum, of_cluster| sum.add(*of_cluster));
        if all.spot == 0 {
            return None;
        }
        let moved: BTreeMap<Symbol, Moved> =
            markets.iter().map(|(cluster, of_cluster)| (*cluster, of_cluster.moved(change))).collect();
        let after: f64 = markets.iter().map(|(cluster, of_cluster)| of_cluster.spot_after(moved[cluster])).sum();
        let (accounts, owned) = (fleet.fleet.billing_accounts(), fleet.fleet.billing_commitments(fleet.start));
        let seeds = leftover.hours.iter().map(|(seed, _)| *seed);
        let mut hour = 0;
        let hours = seeds.zip(leftover.lines.iter().zip(&leftover.spot)).map(|(seed, (lines, spot))| {
            let lines = shifted(lines, spot, &moved);
            let from = SimTime::ZERO + HOUR * hour;
            hour = if hour + 1 == leftover.hours_of_seed() { 0 } else { hour + 1 };
            let covered = apply(&accounts, &owned, &lines, (from, from + HOUR));
            (seed, left_by_class(&lines, &covered))
        });
        Some(Self { change, spot_share: after / all.all(), hours: hours.collect() })
    }
}

/// The lines of an hour after the move.
fn shifted(lines: &[UsageLine], spot: &[UsageLine], moved: &BTreeMap<Symbol, Moved>) -> Vec<UsageLine> {
    let of_cluster = |line: &UsageLine| moved.get(&line.cluster).copied().unwrap_or_default();
    let stays = lines.iter().map(|line| part(line, if can_move(line) { 1.0 - of_cluster(line).to_spot } else { 1.0 }));
    let comes = spot.iter().map(|line| part(line, of_cluster(line).to_on_demand));
    let mut all: Vec<UsageLine> = stays.chain(comes).filter(|line| line.ran > SimDuration::ZERO).collect();
    all.sort_unstable();
    all
}

fn part(line: &UsageLine, part: f64) -> UsageLine {
    UsageLine { ran: SimDuration::from_micros((line.ran.as_micros() as f64 * part).round() as i64), ..*line }
}

/// Whether an On-Demand line could be Spot.
fn can_move(line: &UsageLine) -> bool {
    matches!(line.kind, UsageKind::Instance(_)) && !line.is_reservation
}

fn value(line: &UsageLine) -> i128 {
    i128::from(line.list.as_nanos()) * i128::from(line.ran.as_micros())
}

/// The Spot instances of a seed by hour, as they would be On-Demand. `clusters` are in the order of the fleet.
///
/// Deviation: instances with Windows move at the price of Linux.
pub(crate) fn spot_lines(
    fleet: &LoadedFleet,
    clusters: &[&ClusterUsage],
    catalog: &Catalog,
) -> BTreeMap<u32, Vec<UsageLine>> {
    let mut lines: BTreeMap<u32, Vec<UsageLine>> = BTreeMap::new();
    for (cluster, usage) in fleet.clusters.iter().zip(clusters) {
        let Ok(region) = catalog.region(cluster.scenario.region.as_str()) else { continue };
        let spot = usage.charges.iter().filter(|(key, charge)| key.is_spot && charge.ran > SimDuration::ZERO);
        for (key, charge) in spot {
            let on_demand = |name: Symbol| Some((name, region.instance_type(name)?.on_demand?.rate));
            let Some((name, rate)) = key.instance_type.and_then(on_demand) else { continue };
            let zone = key.zone.map_or("", |zone| zone.as_str());
            lines.entry(key.hour).or_default().push(UsageLine {
                cluster: Symbol::new(&cluster.name),
                account: Symbol::new(&fleet.fleet.accounts[cluster.account].id),
                node: key.node.unwrap_or(u32::MAX),
                region: region.name,
                zone: Symbol::new(&fleet.fleet.zone_id(cluster.account, zone, &region)),
                kind: UsageKind::Instance(name),
                platform: Platform::Linux,
                tenancy: Tenancy::Shared,
                list: rate,
                rate,
                ran: charge.ran,
                is_reservation: false,
            });
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::Markets;

    #[test]
    fn spot_share_moves_by_change_or_all() {
        let markets = Markets { on_demand: 30, spot: 70 };
        for (change, wanted) in [(-0.2, 50.0), (0.2, 90.0), (0.0, 70.0), (-0.9, 0.0), (0.5, 100.0)] {
            let spot = markets.spot_after(markets.moved(change));
            assert!((spot - wanted).abs() < 1e-9, "{change}: {spot}");
        }
        let none = Markets { on_demand: 5, spot: 0 };
        assert!(none.spot_after(none.moved(0.2)).abs() < 1e-9, "a cluster without Spot does not change");
    }
}
