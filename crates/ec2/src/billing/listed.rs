//! Prices of what is billed beside instances: those that the user states, else AWS's, as far as they are known in the region's currency.

use std::collections::BTreeSet;

use crate::bill::BillItem;
use nodecast_model::catalog::{NetworkFees, PriceQuality, Region};
use nodecast_model::domain::Currency;

/// The region whose prices are known.
const KNOWN_REGION: &str = "us-east-1";

/// Which of AWS's prices are known in a region.
///
/// Load balancers and NAT gateways have the fees of the region.
///
/// Deviation: traffic between zones has the us-east-1 price in every USD region, and so have fees that are unknown
/// there. In CNY regions the prices of AWS are unknown. Except for instances, the bill there has only prices that the
/// scenario sets; a warning lists the omitted ones.
#[derive(Debug)]
pub(super) struct Listed {
    /// How far prices of us-east-1 can be trusted; `None` in regions of another currency.
    regional: Option<PriceQuality>,
    /// Fees of load balancers and NAT gateways, where they are known.
    fees: Option<NetworkFees>,
    /// What had to be left out of the bill, as nobody knows its price.
    unpriced: BTreeSet<BillItem>,
}

impl Listed {
    /// Those of a region.
    pub(super) fn from_region(region: &Region) -> Self {
        let quality =
            if region.name.as_str() == KNOWN_REGION { PriceQuality::Published } else { PriceQuality::Assumed };
        let regional = (region.currency == Currency::Usd).then_some(quality);
        Self { regional, fees: region.network, unpriced: BTreeSet::new() }
    }

    /// Whether AWS's prices are known in the region's currency.
    pub(super) const fn is_known(&self) -> bool {
        self.regional.is_some()
    }

    /// The stated price, else the one that AWS asks for in all regions of its currency, with how far it can be trusted. Where there is
    /// none, the item is noted as left out.
    pub(super) fn everywhere<T>(&mut self, item: BillItem, stated: Option<T>, usd: T) -> Option<(T, PriceQuality)> {
        self.price(item, stated, self.regional.map(|_| (usd, PriceQuality::Published)))
    }

    /// The stated price, else that of us-east-1, likewise.
    pub(super) fn regional<T>(&mut self, item: BillItem, stated: Option<T>, us_east: T) -> Option<(T, PriceQuality)> {
        self.price(item, stated, self.regional.map(|quality| (us_east, quality)))
    }

    /// The stated price, else the region's fee, else that of us-east-1, likewise.
    pub(super) fn fee<T>(
        &mut self,
        item: BillItem,
        stated: Option<T>,
        fee: impl FnOnce(&NetworkFees) -> (T, PriceQuality),
        us_east: T,
    ) -> Option<(T, PriceQuality)> {
        match self.fees {
            Some(fees) => self.price(item, stated, Some(fee(&fees))),
            None => self.regional(item, stated, us_east),
        }
    }

    fn price<T>(
        &mut self,
        item: BillItem,
        stated: Option<T>,
        listed: Option<(T, PriceQuality)>,
    ) -> Option<(T, PriceQuality)> {
        let price = stated.map(|item| (item, PriceQuality::Own)).or(listed);
        if price.is_none() {
            self.leave_out(item);
        }
        price
    }

    /// Notes an item that is not billed, or not all of it, as its price is not known.
    pub(super) fn leave_out(&mut self, item: BillItem) {
        self.unpriced.insert(item);
    }

    /// The items that were left out, in order.
    pub(super) fn into_unpriced(self) -> Vec<BillItem> {
        self.unpriced.into_iter().collect()
    }
}
