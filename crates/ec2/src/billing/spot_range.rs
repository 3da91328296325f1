//! What the bill would be if Spot prices lay as far from the price data as those may.
//!
//! The decisions of the run stay as they are: only what Spot instances are billed changes.

use std::collections::BTreeSet;

use crate::bill::{BillItem, BillLine, SpotRange};
use crate::settings::{CloudSettings, SpotPrices};
use nodecast_model::catalog::Region;
use nodecast_model::domain::{Money, Symbol, well_known};

/// The range of the whole bill, of which `net` are the lines net; `None` without Spot at a price that may be off, and where
/// the error has been drawn. All pools err the
/// same way, each by the tenth or the ninetieth percentile for the quality of its price in the data, and none costs more than
/// On-Demand.
pub(super) fn of_bill(region: &Region, settings: &CloudSettings, net: &[BillLine]) -> Option<SpotRange> {
    if settings.price_errors == Some(true) {
        return None;
    }
    let recorded: BTreeSet<(Symbol, Symbol)> = match &settings.prices {
        SpotPrices::Replay(records) => records.iter().map(|record| (record.instance_type, record.zone)).collect(),
        SpotPrices::Process | SpotPrices::Constant => BTreeSet::new(),
    };
    let total: Money = net.iter().map(|line| line.amount).sum();
    let mut range = SpotRange { spot: Money::ZERO, low: total, high: total };
    let mut has_spot = false;
    for line in
        net.iter().filter(|line| line.item == BillItem::Instance && line.capacity_type == Some(well_known::SPOT))
    {
        let (Some(name), Some(zone)) = (line.instance_type, line.zone) else { continue };
        if recorded.contains(&(name, zone)) {
            continue;
        }
        let Some((low, high)) = error_of(region, name, zone, line) else { continue };
        has_spot = true;
        range.spot += line.amount;
        range.low += line.amount.portion(low.into(), 1_000) - line.amount;
        range.high += line.amount.portion(high.into(), 1_000) - line.amount;
    }
    has_spot.then_some(range)
}

/// Tenth and ninetieth percentile of what is paid over the price of the data, in thousandths, up to On-Demand.
fn error_of(region: &Region, name: Symbol, zone: Symbol, line: &BillLine) -> Option<(i64, i64)> {
    let kind = region.instance_type(name)?;
    let (low, high) = region.spot_error(kind.spot(region.zone_index(zone)?)?.quality)?;
    let most = kind.on_demand.map_or(high, |price| {
        let times = i128::from(price.rate.as_nanos()) * 1_000 / i128::from(line.rate.as_nanos().max(1));
        i64::try_from(times).unwrap_or(i64::MAX).max(1_000)
    });
    Some((low, high.min(most)))
}
