//! How far a price can be trusted.

/// Where a price comes from, from the most to the least trustworthy.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PriceQuality {
    /// A price of the user's own, as by contract.
    Own,
    /// A published list price, or a Spot price observed in its zone.
    Published,
    /// A Spot price that is the median of one day over all zones.
    DayMedian,
    /// A list price of 2017 that has rarely changed since.
    Historical,
    /// A Spot price from a published On-Demand price and the Spot Advisor's savings.
    AdvisorEstimate,
    /// A list price from the us-east-1 price and the region's ratio for a related type.
    Derived,
    /// As derived, from a weak reference; or a Spot estimate on a derived price.
    DerivedLow,
    /// No data: a stated assumption.
    Assumed,
}

impl PriceQuality {
    /// The quality as reports write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Published => "published",
            Self::DayMedian => "day median",
            Self::Historical => "historical",
            Self::AdvisorEstimate => "advisor estimate",
            Self::Derived => "derived",
            Self::DerivedLow => "derived (weak)",
            Self::Assumed => "assumed",
        }
    }

    /// Whether the price was observed, published or agreed, rather than worked out.
    pub const fn is_fact(self) -> bool {
        matches!(self, Self::Own | Self::Published | Self::DayMedian | Self::Historical)
    }
}
