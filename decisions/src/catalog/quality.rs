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
    /// A Spot price that the simulated market, or a fault, has moved away from the listed one.
    Simulated,
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
            Self::Simulated => "simulated",
        }
    }

    /// What the quality means, for people.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Own => "what you say that you pay",
            Self::Published => "AWS's list price, or a Spot price that was seen in its zone",
            Self::DayMedian => "the median of all Spot prices of one day, over the zones of the region",
            Self::Historical => "the list price of 2017 of an old family, which rarely changes",
            Self::AdvisorEstimate => "On-Demand less the average saving that the Spot Advisor tells",
            Self::Derived => "the us-east-1 price times what a related type costs more in the region",
            Self::DerivedLow => {
                "as derived, but from a type that is less related, or a Spot estimate on a derived price; may be off by tens of \
                 per cent"
            }
            Self::Assumed => {
                "nothing is known: for Spot 35 % of On-Demand, for volumes and transfer what us-east-1 charges"
            }
            Self::Simulated => {
                "a Spot price that the simulated market has moved away from the one that `nodecast pricing show` has"
            }
        }
    }

    /// Every quality, from the most to the least trustworthy.
    pub const ALL: [Self; 9] = [
        Self::Own,
        Self::Published,
        Self::DayMedian,
        Self::Historical,
        Self::AdvisorEstimate,
        Self::Derived,
        Self::DerivedLow,
        Self::Assumed,
        Self::Simulated,
    ];

    /// A line for each quality that `is_used`, of those that are no list prices: its name and what it means.
    pub fn legend(is_used: impl Fn(Self) -> bool) -> Vec<String> {
        let told = |own: &Self| !matches!(own, Self::Own | Self::Published) && is_used(*own);
        Self::ALL.into_iter().filter(told).map(|own| format!("{}: {}", own.as_str(), own.meaning())).collect()
    }

    /// Whether the price was observed, published or agreed, rather than worked out.
    pub const fn is_fact(self) -> bool {
        matches!(self, Self::Own | Self::Published | Self::DayMedian | Self::Historical)
    }
}
