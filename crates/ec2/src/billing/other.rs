//! Other lines: usual lines of an EKS bill that are not simulated, as the scenario states them.

use super::network::{GB, LoadBalancers, Traffic};
use super::{BillItem, BillLine, HOUR, HOURS_PER_MONTH, blank};
use crate::settings::BillingSettings;
use nodecast_model::catalog::PriceQuality;
use nodecast_model::domain::{Money, SimTime, Symbol};

/// A line of the bill that no part of the simulation makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OtherFee {
    /// Its name in the bill.
    pub name: Symbol,
    /// Its price.
    pub price: OtherPrice,
}

/// The price of an [`OtherFee`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OtherPrice {
    /// The same amount for each month of 730 hours.
    PerMonth(Money),
    /// A price per gigabyte.
    PerGb {
        /// The price.
        price: Money,
        /// Gigabytes of a month in thousandths; `None` for those that requests move through load balancers.
        milli_gb: Option<u32>,
    },
}

/// Usual lines of an EKS bill that are not simulated: the name, and the word by which the name of an [`OtherFee`] covers it.
const USUAL: [(&str, &str); 6] = [
    ("logs", "logs"),
    ("Container Insights", "insights"),
    ("Internet egress", "egress"),
    ("ECR", "ecr"),
    ("VPC endpoints", "endpoint"),
    ("EBS snapshots", "snapshot"),
];

/// The usual lines of an EKS bill that are neither simulated nor among these lines.
pub fn not_simulated(lines: &[BillLine]) -> Vec<&'static str> {
    let stated = |line: &BillLine| match line.item {
        BillItem::Other(name) => Some(name.as_str().to_lowercase()),
        _ => None,
    };
    let stated: Vec<String> = lines.iter().filter_map(stated).collect();
    let is_missing = |(_, word): &&(&str, &str)| !stated.iter().any(|name| name.contains(word));
    USUAL.iter().filter(is_missing).map(|(name, _)| *name).collect()
}

/// A line for each fee that the scenario states. The discount of the account is not on them.
pub(super) fn lines(settings: &BillingSettings, traffic: &Traffic, end: SimTime) -> Vec<BillLine> {
    let month = i128::from((HOUR * HOURS_PER_MONTH).as_micros());
    let ran = i128::from((end - SimTime::ZERO).as_micros());
    let of_month = |nanos: i128| (nanos * ran + month / 2).div_euclid(month);
    let amount = |price: OtherPrice| match price {
        OtherPrice::PerMonth(price) => of_month(price.as_nanos()),
        OtherPrice::PerGb { price, milli_gb: Some(milli) } => of_month(price.as_nanos() * i128::from(milli)) / 1_000,
        OtherPrice::PerGb { price, milli_gb: None } => {
            let stated = settings.network.load_balancers.unwrap_or_default();
            (price.as_nanos() * moved(traffic, &stated) + GB / 2).div_euclid(GB)
        }
    };
    let line = |fee: &OtherFee| BillLine {
        amount: Money::from_nanos(amount(fee.price)),
        quality: PriceQuality::Own,
        ..blank(BillItem::Other(fee.name), None, SimTime::ZERO, end)
    };
    settings.other.iter().map(line).collect()
}

/// Bytes that requests move through load balancers.
fn moved(traffic: &Traffic, stated: &LoadBalancers) -> i128 {
    let requests: i128 = traffic.balancers.iter().map(|balancer| i128::from(balancer.requests)).sum();
    requests * i128::from(stated.bytes_per_request)
}
