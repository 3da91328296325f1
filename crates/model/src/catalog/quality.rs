//! How far a price can be trusted.

/// Where a price comes from, from the most to the least trustworthy.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PriceQuality {
    /// A price of the user's own, as by contract.
    Own,
    /// A published list price, or a Spot price observed in its zone.
    Published,
    /// A Spot price of the region, of which it is not said which zone it stands for.
    RegionPrice,
    /// A Spot price that is the median of one day over all zones.
    DayMedian,
    /// A list price of 2017 that has rarely changed since.
    Historical,
    /// A list price of shared tenancy, worked out from the published one of dedicated tenancy.
    FromDedicated,
    /// A published list price that may be the one of dedicated tenancy.
    TenancyUnsure,
    /// A Spot price from a published On-Demand price and the Spot Advisor's savings.
    AdvisorEstimate,
    /// A list price from the us-east-1 price and the region's ratio for a related type.
    Derived,
    /// As derived, from a weak reference; or a Spot estimate on a derived price.
    DerivedLow,
    /// No data: a stated assumption.
    Assumed,
    /// A Spot price that the simulated market, or a fault, has moved away from the listed one.
    Simulated,
}

impl PriceQuality {
    /// The quality as reports write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Published => "published",
            Self::RegionPrice => "region price",
            Self::DayMedian => "day median",
            Self::Historical => "historical",
            Self::FromDedicated => "from dedicated",
            Self::TenancyUnsure => "tenancy unsure",
            Self::AdvisorEstimate => "advisor estimate",
            Self::Derived => "derived",
            Self::DerivedLow => "derived (weak)",
            Self::Assumed => "assumed",
            Self::Simulated => "simulated",
        }
    }

    /// What the quality means, for people.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Own => "what you say that you pay",
            Self::Published => "AWS's list price, or a Spot price that was seen in its zone",
            Self::RegionPrice => "the Spot price of the region as AWS's price page shows it, which names no zone",
            Self::DayMedian => "the median of all Spot prices of one day, over the zones of the region",
            Self::Historical => "the list price of 2017 of an old family, which rarely changes",
            Self::FromDedicated => {
                "the published price of dedicated tenancy less what that costs more in the type's family"
            }
            Self::TenancyUnsure => "a published price that may be the one of dedicated tenancy, 6 to 10% above",
            Self::AdvisorEstimate => {
                "a share of On-Demand minus the average saving that the Spot Advisor shows, at the level of Spot prices in the region"
            }
            Self::Derived => "the us-east-1 price times what a related type costs more in the region",
            Self::DerivedLow => {
                "as derived, but from a type that is less related, or a Spot estimate on a derived price; may be off by tens of \
                 per cent"
            }
            Self::Assumed => {
                "nothing is known: for Spot a share of On-Demand; for volumes and transfer the price in us-east-1; for load balancers and NAT gateways that price times the ratio of On-Demand prices"
            }
            Self::Simulated => {
                "a Spot price that the simulated market has moved away from the one that `nodecast pricing show` has"
            }
        }
    }

    /// Every quality, from the most to the least trustworthy.
    pub const ALL: [Self; 12] = [
        Self::Own,
        Self::Published,
        Self::RegionPrice,
        Self::DayMedian,
        Self::Historical,
        Self::FromDedicated,
        Self::TenancyUnsure,
        Self::AdvisorEstimate,
        Self::Derived,
        Self::DerivedLow,
        Self::Assumed,
        Self::Simulated,
    ];

    /// A line for each quality that `is_used`, of those that are no list prices: its name and what it means.
    pub fn legend(is_used: impl Fn(Self) -> bool) -> Vec<String> {
        let told =
            |price_quality: &Self| !matches!(price_quality, Self::Own | Self::Published) && is_used(*price_quality);
        Self::ALL
            .into_iter()
            .filter(told)
            .map(|price_quality| format!("{}: {}", price_quality.as_str(), price_quality.meaning()))
            .collect()
    }

    /// Whether the price was observed, published or agreed, rather than worked out.
    pub const fn is_fact(self) -> bool {
        matches!(self, Self::Own | Self::Published | Self::RegionPrice | Self::DayMedian | Self::Historical)
    }

    /// How far what is paid for Spot lies from a price of this quality: the tenth and the ninetieth percentile of the one over the
    /// other, in thousandths. `None` for qualities that no Spot price of the price data has.
    ///
    /// Source: of prices that were seen, what 11,950 pairs of region and type cost at the end of the first 127 days of 2024 over what
    /// they cost at the beginning; of estimates, medians of those days over the estimate (11,881 pairs with the Advisor, all
    /// 11,950 without it); of the medians of 2021, the prices of 184 types in us-east-2 in the summer of 2026 over them.
    pub const fn spot_error(self) -> Option<(i64, i64)> {
        match self {
            Self::Published | Self::RegionPrice => Some((855, 1_609)),
            Self::DayMedian => Some((878, 2_147)),
            Self::AdvisorEstimate | Self::DerivedLow => Some((532, 1_490)),
            Self::Assumed => Some((433, 1_406)),
            Self::Own
            | Self::Historical
            | Self::FromDedicated
            | Self::TenancyUnsure
            | Self::Derived
            | Self::Simulated => None,
        }
    }
}
