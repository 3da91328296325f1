//! Regional fees: load balancers and NAT gateways, and the level of Spot prices.

use super::cells::{CellError, Cells};
use super::quality::PriceQuality;
use crate::domain::{BalancerKind, HourlyRate, Money};

/// Fees of load balancers and NAT gateways in a region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NetworkFees {
    /// An hour of a load balancer: application, network, classic.
    hours: [HourlyRate; 3],
    /// A capacity unit for an hour, or a gigabyte of a classic load balancer.
    units: [HourlyRate; 3],
    /// Quality of the fees of load balancers.
    pub balancer_quality: PriceQuality,
    /// An hour of a NAT gateway.
    pub nat_hour: HourlyRate,
    /// A gigabyte through a NAT gateway.
    pub nat_gb: Money,
    /// Quality of the fees of NAT gateways.
    pub nat_quality: PriceQuality,
}

impl NetworkFees {
    /// The columns of a table of these fees, after the region.
    pub const COLUMNS: [&'static str; 10] = [
        "application_hour",
        "application_unit",
        "network_hour",
        "network_unit",
        "classic_hour",
        "classic_gb",
        "balancer_quality",
        "nat_hour",
        "nat_gb",
        "nat_quality",
    ];

    /// Reads the cells of [`Self::COLUMNS`].
    ///
    /// # Errors
    /// If a cell is empty, no price, or no quality.
    pub fn from_cells(cells: &mut Cells<'_>) -> Result<Self, CellError> {
        let mut network_fees = Self {
            hours: [HourlyRate::ZERO; 3],
            units: [HourlyRate::ZERO; 3],
            balancer_quality: PriceQuality::Assumed,
            nat_hour: HourlyRate::ZERO,
            nat_gb: Money::ZERO,
            nat_quality: PriceQuality::Assumed,
        };
        for kind in 0..3 {
            network_fees.hours[kind] = fee(cells)?;
            network_fees.units[kind] = fee(cells)?;
        }
        network_fees.balancer_quality = quality(cells)?;
        network_fees.nat_hour = fee(cells)?;
        network_fees.nat_gb = Money::from_nanos(i128::from(fee(cells)?.as_nanos()));
        network_fees.nat_quality = quality(cells)?;
        Ok(network_fees)
    }

    /// An hour, and a capacity unit for an hour, of a kind of load balancer; of a classic one a gigabyte.
    pub const fn balancer(&self, kind: BalancerKind) -> (HourlyRate, HourlyRate) {
        let place = match kind {
            BalancerKind::Application => 0,
            BalancerKind::Network => 1,
            BalancerKind::Classic => 2,
        };
        (self.hours[place], self.units[place])
    }
}

fn fee(cells: &mut Cells<'_>) -> Result<HourlyRate, CellError> {
    cells.rate()?.ok_or_else(|| cells.malformed("is empty"))
}

fn quality(cells: &mut Cells<'_>) -> Result<PriceQuality, CellError> {
    match cells.text() {
        "published" => Ok(PriceQuality::Published),
        "derived" => Ok(PriceQuality::Derived),
        "assumed" => Ok(PriceQuality::Assumed),
        other => Err(cells.malformed(&format!("`{other}` is not published, derived or assumed"))),
    }
}

/// The level of a region's Spot prices, in thousandths.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SpotLevel {
    /// Factor on every estimate of a Spot price.
    pub level: i64,
    /// Tenth and ninetieth percentile of what is paid over the estimate.
    pub error: (i64, i64),
}

impl SpotLevel {
    /// The columns of a table of levels, after the region.
    pub const COLUMNS: [&'static str; 3] = ["level", "p10", "p90"];

    /// Reads the cells of [`Self::COLUMNS`].
    ///
    /// # Errors
    /// If a cell is no number from 0.1 to 10, or the percentiles do not enclose 1.
    pub fn from_cells(cells: &mut Cells<'_>) -> Result<Self, CellError> {
        let mut share = || {
            let share: Option<f64> = cells.text().parse().ok().filter(|share| (0.1..=10.0).contains(share));
            share
                .map(|share| (share * 1_000.0 + 0.5) as i64)
                .ok_or_else(|| cells.malformed("is not a number from 0.1 to 10"))
        };
        let (level, low, high) = (share()?, share()?, share()?);
        if low > 1_000 || high < 1_000 {
            return Err(cells.malformed("is below 1, or `p10` is above 1"));
        }
        Ok(Self { level, error: (low, high) })
    }
}
