//! The fee that AWS takes for managing the instances of EKS Auto Mode.
//!
//! Source: AWS price list, usage types `EKS-Auto:<type>-management-hours` (2026-09): twelve hundredths of the Linux On-Demand price of the
//! type in the region, rounded to five decimals, however the instance is bought; AWS's announcement of 2026-07: from then on less for
//! accelerated types. By the second with a minimum of a minute.

use std::collections::{BTreeMap, BTreeSet};

use super::{Charge, blank, charges};
use crate::bill::{BillItem, BillLine};
use crate::ec2::Instance;
use crate::market::PriceInterval;
use nodecast_model::catalog::{PriceQuality, Region};
use nodecast_model::domain::{HourlyRate, NodeId, SimDuration, SimTime, Symbol};

/// The share of the On-Demand price, in millionths.
const SHARE: u32 = 120_000;
/// That of G families, and that of P families and Trainium, since [`REDUCED`].
const SHARE_OF_G: u32 = 78_000;
const SHARE_OF_P: u32 = 48_000;
/// When accelerated types became cheaper to manage: 2026-07-01, in seconds since 1970.
const REDUCED: i64 = 1_782_864_000;
/// The fee is listed with five decimals.
const LISTED_NANOS: i64 = 10_000;

/// Which share of the On-Demand price the fee is.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct FeeShares {
    /// In millionths, for every type; `None` for AWS's own.
    pub stated: Option<u32>,
    /// In millionths, by type, before everything else.
    pub of_types: BTreeMap<Symbol, u32>,
}

impl FeeShares {
    /// The share for a type of a family at an instant in seconds since 1970, in millionths.
    pub fn share(&self, instance_type: Symbol, family: &str, at: i64) -> u32 {
        let stated = self.of_types.get(&instance_type).copied().or(self.stated);
        stated.unwrap_or_else(|| if at >= REDUCED { reduced(family) } else { SHARE })
    }

    /// Whether a share is AWS's own, so that it may change while an instance runs.
    fn may_change(&self, instance_type: Symbol) -> bool {
        self.stated.is_none() && !self.of_types.contains_key(&instance_type)
    }
}

/// The share since accelerated types cost less. Inferentia was not named.
fn reduced(family: &str) -> u32 {
    let letters = family.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
    match letters {
        "g" | "gr" => SHARE_OF_G,
        "p" | "trn" => SHARE_OF_P,
        _ => SHARE,
    }
}

/// The fee for an hour: a share in millionths of the On-Demand price, rounded to five decimals.
pub fn fee(on_demand: HourlyRate, share: u32) -> HourlyRate {
    let exact = on_demand.scaled(i64::from(share), 1_000_000).as_nanos();
    HourlyRate::from_nanos((exact + LISTED_NANOS / 2).div_euclid(LISTED_NANOS) * LISTED_NANOS)
}

/// The nodes that AWS manages, and what it takes for that.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ManagedNodes {
    /// The shares.
    pub shares: FeeShares,
    /// The nodes.
    pub nodes: BTreeSet<NodeId>,
    /// The run's first instant, in seconds since 1970.
    pub epoch: i64,
}

impl ManagedNodes {
    /// The lines of the bill, in order of instance: one for each share that held.
    pub(super) fn lines(&self, region: &Region, instances: &[Instance], end: SimTime) -> Vec<BillLine> {
        let managed = instances.iter().filter(|instance| self.nodes.contains(&instance.node));
        managed.flat_map(|instance| self.of_instance(region, instance, end)).collect()
    }

    fn of_instance(&self, region: &Region, instance: &Instance, end: SimTime) -> Vec<BillLine> {
        let Some(from) = instance.running.filter(|&from| from < end) else { return Vec::new() };
        let to = instance.terminating.unwrap_or(end).min(end);
        let listed = region
            .instance_type(instance.pool.instance_type)
            .and_then(|instance_type| Some((instance_type, instance_type.on_demand?)));
        let Some((kind, price)) = listed else { return Vec::new() };
        let name = instance.pool.instance_type;
        let change = SimTime::ZERO + SimDuration::from_secs(REDUCED - self.epoch);
        let cut = Some(change).filter(|&at| from < at && at < to && self.shares.may_change(name));
        let bounds: Vec<SimTime> = [Some(from), cut, Some(to)].into_iter().flatten().collect();
        let interval = |pair: &[SimTime]| {
            let at = self.epoch + (pair[0] - SimTime::ZERO).as_micros().div_euclid(1_000_000);
            let rate = fee(price.rate, self.shares.share(name, kind.facts.family.as_str(), at));
            let quality = if self.shares.may_change(name) { price.quality } else { PriceQuality::Own };
            PriceInterval { from: pair[0], to: pair[1], rate, quality }
        };
        let intervals: Vec<PriceInterval> = bounds.windows(2).map(interval).collect();
        let line = |Charge { at, billed, amount }| BillLine {
            billed,
            rate: at.rate,
            amount,
            quality: at.quality,
            ..blank(BillItem::AutoModeFee, Some(instance), at.from, at.to)
        };
        charges(&intervals).into_iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{FeeShares, REDUCED, fee};
    use nodecast_model::domain::{HourlyRate, Symbol};

    /// The fee for a type of a family at an On-Demand price.
    fn listed(name: &str, on_demand: &str, at: i64) -> String {
        let family = name.split('.').next().unwrap();
        let share = FeeShares::default().share(Symbol::new(name), family, at);
        fee(HourlyRate::parse(on_demand).unwrap(), share).to_string().trim_end_matches('0').to_owned()
    }

    #[test]
    fn fees_are_those_of_the_price_list() {
        for (name, on_demand, expected) in [
            ("t4g.medium", "0.0336", "0.00403"),
            ("m7g.large", "0.0816", "0.00979"),
            ("m7i.large", "0.1008", "0.0121"),
            ("m7i.large", "0.1302", "0.01562"),
            ("m7i.xlarge", "0.2604", "0.03125"),
            ("c6g.large", "0.077", "0.00924"),
        ] {
            assert_eq!(listed(name, on_demand, 0), expected, "{name} at {on_demand}");
        }
    }

    #[test]
    fn accelerated_types_cost_less_since_july_2026() {
        assert_eq!(listed("g6.xlarge", "1.1672", REDUCED - 1), "0.14006");
        assert_eq!(listed("g6.xlarge", "1.1672", REDUCED), "0.09104");
        assert_eq!(listed("p5.48xlarge", "100", REDUCED), "4.8");
        assert_eq!(listed("trn2.48xlarge", "100", REDUCED), "4.8");
        assert_eq!(listed("gr6.4xlarge", "100", REDUCED), "7.8");
        assert_eq!(listed("inf2.xlarge", "100", REDUCED), "12.", "Inferentia was not named");
        assert_eq!(listed("m5.large", "100", REDUCED), "12.");
    }

    #[test]
    fn what_the_user_states_goes_before_the_list() {
        let g6 = Symbol::new("g6.xlarge");
        let shares = FeeShares { stated: Some(100_000), of_types: [(g6, 50_000)].into() };
        assert_eq!(shares.share(g6, "g6", REDUCED), 50_000);
        assert_eq!(shares.share(Symbol::new("m5.large"), "m5", REDUCED), 100_000);
    }
}
