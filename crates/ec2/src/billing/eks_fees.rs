//! EKS fees in addition to the price of every cluster: the tier of the control plane, capabilities, hybrid nodes.
//!
//! Must not: decide what a cluster orders (`sim`).
//!
//! Source: AWS Price List of Amazon EKS of 2026-05-11 (capabilities in us-east-2, hybrid nodes) and of 2026-02 (capabilities in us-west-2).
//! The prices of tiers are second-hand: three readings of AWS's price page of 2026-04 to 2026-08, equal in five regions.

use super::{BillItem, BillLine, HOURS_PER_MONTH, Listed, blank, charge};
use nodecast_model::catalog::PriceQuality;
use nodecast_model::domain::{Capability, ControlPlaneTier, HourlyRate, SimTime};

/// Fees that a scenario sets.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EksFees {
    /// Price per hour of the tier of the control plane; `None` for AWS's.
    pub tier: Option<HourlyRate>,
    /// Capabilities; `None` for those that a ClusterConfig orders.
    pub capabilities: Option<Vec<CapabilityFee>>,
    /// vCPUs of hybrid nodes.
    pub hybrid_vcpus: u32,
    /// Price of a vCPU of a hybrid node for an hour; `None` for AWS's, which falls with the number.
    pub hybrid_vcpu_hour: Option<HourlyRate>,
}

/// A capability with the number of its items.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CapabilityFee {
    /// Which one.
    pub kind: Capability,
    /// Its Applications, managed resources, or instances.
    pub items: u32,
    /// Price of the capability for an hour; `None` for AWS's.
    pub per_hour: Option<HourlyRate>,
    /// Price of an item for an hour; `None` for AWS's.
    pub per_item_hour: Option<HourlyRate>,
}

/// What a cluster orders of EKS.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EksOrders {
    /// Tiers of the control plane, each from a time on, in order.
    pub tiers: Vec<(SimTime, ControlPlaneTier)>,
    /// Capabilities of a ClusterConfig.
    pub capabilities: Vec<Capability>,
}

/// Price per hour of a tier, on top of the price of every cluster; zero for the standard one.
pub const fn tier_price(tier: ControlPlaneTier) -> HourlyRate {
    HourlyRate::from_nanos(match tier {
        ControlPlaneTier::Standard => 0,
        ControlPlaneTier::Xl => 1_650_000_000,
        ControlPlaneTier::Xl2 => 3_400_000_000,
        ControlPlaneTier::Xl4 => 6_900_000_000,
        ControlPlaneTier::Xl8 => 13_900_000_000,
    })
}

/// The region whose prices of capabilities apply where none are known.
const REFERENCE: &str = "us-east-2";

/// Nanos per hour of a capability and of one of its items, by region.
const CAPABILITIES: [(&str, Capability, i64, i64); 5] = [
    (REFERENCE, Capability::ArgoCd, 27_710_000, 1_360_000),
    (REFERENCE, Capability::Ack, 4_482_000, 45_000),
    (REFERENCE, Capability::Kro, 4_482_000, 45_000),
    ("us-west-2", Capability::ArgoCd, 28_838_000, 1_420_000),
    ("us-west-2", Capability::Ack, 4_757_000, 48_000),
];

/// Whether the prices of a capability in a region are known.
pub fn has_prices(kind: Capability, region: &str) -> bool {
    CAPABILITIES.iter().any(|row| (row.0, row.1) == (region, kind))
}

/// Prices per hour of a capability and of one of its items.
fn capability_prices(kind: Capability, region: &str) -> (HourlyRate, HourlyRate, PriceQuality) {
    let known = has_prices(kind, region);
    let place = if known { region } else { REFERENCE };
    let row = CAPABILITIES.iter().find(|row| (row.0, row.1) == (place, kind));
    let (base, item) = row.map_or((0, 0), |row| (row.2, row.3));
    let quality = if known { PriceQuality::Published } else { PriceQuality::Assumed };
    (HourlyRate::from_nanos(base), HourlyRate::from_nanos(item), quality)
}

/// vCPU-hours of a month up to which each price of a hybrid node's vCPU-hour applies, in nanos.
const HYBRID_STEPS: [(i64, i64); 5] = [
    (576_000, 20_000_000),
    (576_000, 14_000_000),
    (4_608_000, 10_000_000),
    (5_760_000, 8_000_000),
    (i64::MAX, 6_000_000),
];

/// Price per hour of vCPUs of hybrid nodes: the mean of a month of 730 hours with this number of vCPUs, so that a shorter run has the same
/// price.
pub fn hybrid_price(vcpus: u32) -> HourlyRate {
    let mut left = i64::from(vcpus) * HOURS_PER_MONTH;
    let mut month = 0_i128;
    for (step, nanos) in HYBRID_STEPS {
        let hours = left.min(step);
        month += i128::from(hours) * i128::from(nanos);
        left -= hours;
    }
    HourlyRate::from_nanos(i64::try_from(month / i128::from(HOURS_PER_MONTH)).unwrap_or(i64::MAX))
}

fn line(item: BillItem, (rate, quality): (HourlyRate, PriceQuality), (from, to): (SimTime, SimTime)) -> BillLine {
    let billed = to - from;
    BillLine { billed, rate, amount: charge(rate, billed), quality, ..blank(item, None, from, to) }
}

/// Lines for the tiers of the control plane, each by the second.
fn tier_lines(fees: &EksFees, orders: &EksOrders, listed: &mut Listed, end: SimTime) -> Vec<BillLine> {
    const ITEM: BillItem = BillItem::ControlPlaneTier;
    let ends = orders.tiers.iter().skip(1).map(|entry| entry.0).chain([end]);
    let spans = orders.tiers.iter().zip(ends).map(|(&(from, tier), to)| (tier, from, to.min(end)));
    let mut lines = Vec::new();
    for (tier, from, to) in spans.filter(|(tier, from, to)| tier.is_provisioned() && from < to) {
        let Some((rate, quality)) = listed.everywhere(ITEM, fees.tier, tier_price(tier)) else { continue };
        let second_hand = if quality == PriceQuality::Own { quality } else { PriceQuality::Assumed };
        lines.push(line(ITEM, (rate, second_hand), (from, to)));
    }
    lines
}

/// Lines of a run that ends at `end`.
pub(super) fn lines(
    fees: &EksFees,
    orders: &EksOrders,
    (region, listed): (&str, &mut Listed),
    end: SimTime,
) -> Vec<BillLine> {
    let line = |item, rate, quality| line(item, (rate, quality), (SimTime::ZERO, end));
    let mut lines = tier_lines(fees, orders, listed, end);
    for capability in fees.ordered(orders) {
        let item = BillItem::Capability(capability.kind);
        let (base, each, quality) = capability_prices(capability.kind, region);
        let prices = [(capability.per_hour, base, 1), (capability.per_item_hour, each, capability.items)];
        for (stated, price, count) in prices.into_iter().filter(|entry| entry.2 > 0) {
            let Some((rate, found)) = listed.everywhere(item, stated, price) else { continue };
            let quality = if found == PriceQuality::Own { found } else { quality };
            lines.push(line(item, rate.scaled(i64::from(count), 1), quality));
        }
    }
    if fees.hybrid_vcpus > 0 {
        let stated = fees.hybrid_vcpu_hour.map(|rate| rate.scaled(i64::from(fees.hybrid_vcpus), 1));
        let price = listed.everywhere(BillItem::HybridNodes, stated, hybrid_price(fees.hybrid_vcpus));
        lines.extend(price.map(|(rate, quality)| line(BillItem::HybridNodes, rate, quality)));
    }
    lines
}

impl EksFees {
    /// The capabilities that are billed: those of the scenario, else those that a ClusterConfig orders, without items.
    pub fn ordered(&self, orders: &EksOrders) -> Vec<CapabilityFee> {
        let without_items = |&kind| CapabilityFee { kind, items: 0, per_hour: None, per_item_hour: None };
        self.capabilities.clone().unwrap_or_else(|| orders.capabilities.iter().map(without_items).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::{Capability, CapabilityFee, EksFees, EksOrders, PriceQuality, hybrid_price, lines};
    use crate::bill::BillItem;
    use crate::billing::listed::Listed;
    use nodecast_model::domain::{ControlPlaneTier, Money, SimDuration, SimTime};
    use nodecast_prices::Catalog;

    /// Amounts by item of a run of the given hours.
    fn amounts(region: &str, fees: &EksFees, orders: &EksOrders, hours: i64) -> Vec<(BillItem, String, PriceQuality)> {
        let region = Catalog::embedded().and_then(|catalog| catalog.region(region)).unwrap();
        let mut listed = Listed::from_region(&region);
        let end = SimTime::ZERO + SimDuration::from_secs(hours * 3_600);
        let all = lines(fees, orders, (region.name.as_str(), &mut listed), end);
        let money = |amount: Money| format!("{:.4}", amount.as_f64());
        all.into_iter().map(|line| (line.item, money(line.amount), line.quality)).collect()
    }

    #[test]
    fn tier_has_line_of_its_own() {
        let fees = EksFees::default();
        let orders = |tier| EksOrders { tiers: vec![(SimTime::ZERO, tier)], ..EksOrders::default() };
        assert!(amounts("us-east-1", &fees, &orders(ControlPlaneTier::Standard), 24).is_empty());
        let month = ControlPlaneTier::ALL
            .map(|tier| amounts("eu-west-1", &fees, &orders(tier), 730).pop().map(|entry| entry.1));
        let want = ["1204.5000", "2482.0000", "5037.0000", "10147.0000"].map(|amount| Some(amount.to_owned()));
        assert_eq!(month[1..], want);
        let tier = BillItem::ControlPlaneTier;
        let day = amounts("us-east-1", &fees, &orders(ControlPlaneTier::Xl4), 24);
        assert_eq!(day, [(tier, "165.6000".to_owned(), PriceQuality::Assumed)]);
        let hour = |hours: i64| SimTime::ZERO + SimDuration::from_secs(hours * 3_600);
        let tiers = vec![
            (hour(0), ControlPlaneTier::Xl),
            (hour(2), ControlPlaneTier::Standard),
            (hour(5), ControlPlaneTier::Xl2),
        ];
        let changed = amounts("us-east-1", &fees, &EksOrders { tiers, ..EksOrders::default() }, 6);
        assert_eq!(changed.iter().map(|entry| entry.1.as_str()).collect::<Vec<_>>(), ["3.3000", "3.4000"]);
        assert!(amounts("cn-north-1", &fees, &orders(ControlPlaneTier::Xl4), 24).is_empty(), "no price in CNY");
    }

    #[test]
    fn capability_costs_its_hour_and_its_items() {
        let fee = |kind, items| CapabilityFee { kind, items, per_hour: None, per_item_hour: None };
        let fees = |all| EksFees { capabilities: Some(all), ..EksFees::default() };
        let none = EksOrders::default();
        let argo = BillItem::Capability(Capability::ArgoCd);
        let known = |amount: &str| (argo, amount.to_owned(), PriceQuality::Published);
        let ten_hours = amounts("us-east-2", &fees(vec![fee(Capability::ArgoCd, 40)]), &none, 10);
        assert_eq!(ten_hours, [known("0.2771"), known("0.5440")]);
        let west = amounts("us-west-2", &fees(vec![fee(Capability::ArgoCd, 0)]), &none, 100);
        assert_eq!(west, [known("2.8838")]);
        let ordered = EksOrders { capabilities: vec![Capability::Ack], ..EksOrders::default() };
        let ack = BillItem::Capability(Capability::Ack);
        let elsewhere = amounts("eu-central-1", &EksFees::default(), &ordered, 1_000);
        assert_eq!(elsewhere, [(ack, "4.4820".to_owned(), PriceQuality::Assumed)]);
        assert!(amounts("us-east-2", &fees(Vec::new()), &ordered, 10).is_empty(), "the scenario's list replaces it");
    }

    #[test]
    fn hybrid_nodes_are_cheaper_in_numbers() {
        let month = |vcpus: u32| (hybrid_price(vcpus).as_f64() * 730.0 * 100.0).round() / 100.0;
        assert_eq!([1_600, 100].map(|vcpus| month(vcpus).to_string()), ["19744", "1460"]);
        let fees = EksFees { hybrid_vcpus: 789, ..EksFees::default() };
        let all = amounts("us-east-1", &fees, &EksOrders::default(), 730);
        assert_eq!(all, [(BillItem::HybridNodes, "11519.4000".to_owned(), PriceQuality::Published)]);
    }
}
