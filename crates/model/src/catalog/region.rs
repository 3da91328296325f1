//! One region: its zones, the types they offer, and the prices.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

use rustc_hash::FxHashMap;

use super::facts::InstanceFacts;
use super::price::Price;
use super::quality::PriceQuality;
use super::{CommitmentDiscount, NetworkFees, SpotLevel, VolumePrices};
use crate::domain::{Currency, HourlyRate, Symbol};

/// The types, zones and prices of one region.
#[derive(Clone, PartialEq, Debug)]
pub struct Region {
    /// Name, for example `us-east-1`.
    pub name: Symbol,
    /// The currency of its prices.
    pub currency: Currency,
    /// Its availability zones, in order of name.
    pub zones: Vec<Zone>,
    /// The types that it offers or has prices for, in order of name.
    pub types: Vec<RegionType>,
    /// What EBS volumes cost in it; `None` if that is not known.
    pub volumes: Option<VolumePrices>,
    /// What commitments save, by family in order of name; families of which nothing is known are missing.
    pub commitments: Vec<CommitmentDiscount>,
    /// What load balancers and NAT gateways cost in it; `None` if that is not known.
    pub network: Option<NetworkFees>,
    /// The level of its Spot prices, where it was measured.
    pub spot_level: Option<SpotLevel>,
    by_name: FxHashMap<Symbol, u32>,
    derived: DerivedFacts,
}

/// Facts that another crate derives from a region and keeps with it. A copy of the region starts without them, because it may be changed.
#[derive(Default)]
struct DerivedFacts(OnceLock<Box<dyn Any + Send + Sync>>);

impl Clone for DerivedFacts {
    fn clone(&self) -> Self {
        Self::default()
    }
}

/// They follow from the rest of the region.
impl PartialEq for DerivedFacts {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// Equal regions read equal, whatever was derived from them.
impl fmt::Debug for DerivedFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DerivedFacts")
    }
}

/// An availability zone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Zone {
    /// Name, for example `us-east-1a`. Which physical zone it means differs between accounts.
    pub name: Symbol,
    /// Id, for example `use1-az2`: the same physical zone for every account.
    pub id: Symbol,
    /// How the pairing of name and id is known.
    pub id_basis: ZoneIdBasis,
}

/// How the pairing of a zone's name with its id is known.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ZoneIdBasis {
    /// The types offered under the name and under the id are the same, and no other zone offers just those.
    MatchedByOfferings,
    /// Listed together.
    Listed,
    /// Assigned among the zones that could not be told apart.
    Assigned,
    /// Numbered in order of name.
    Assumed,
}

/// An instance type in a region.
#[derive(Clone, PartialEq, Debug)]
pub struct RegionType {
    /// What it is made of.
    pub facts: Arc<InstanceFacts>,
    /// The On-Demand price for Linux, if known: the user's own, else the list price.
    pub on_demand: Option<Price>,
    /// The price that Karpenter compares in its stead, if that is another; see [`karpenter_price`](Self::karpenter_price).
    karpenter: Option<HourlyRate>,
    /// What the Spot Instance Advisor says of it.
    pub advisor: Option<SpotAdvice>,
    /// Bit `z` is set if zone `z` of the region offers it.
    zones_offered: u32,
    /// The Spot price in each zone of the region.
    spot: Box<[Option<Price>]>,
}

/// What the Spot Instance Advisor says of a type in a region (Linux).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SpotAdvice {
    /// Share of instances interrupted within 30 days: 0 for under 5 %, then 5-10 %, 10-15 %, 15-20 %, and 4 for over 20 %.
    pub band: u8,
    /// Average saving against On-Demand in per cent; below zero in the rare case that Spot is stated to be dearer.
    pub savings_percent: i8,
}

impl Region {
    /// A region of these zones, in order of name, and types, in any order.
    pub fn new(name: Symbol, currency: Currency, zones: Vec<Zone>, mut types: Vec<RegionType>) -> Self {
        types.sort_by_key(|entry| entry.facts.name);
        let by_name = types.iter().zip(0..).map(|(entry, at)| (entry.facts.name, at)).collect();
        Self {
            name,
            currency,
            zones,
            types,
            volumes: None,
            commitments: Vec::new(),
            network: None,
            spot_level: None,
            by_name,
            derived: DerivedFacts::default(),
        }
    }

    /// Facts that another crate derives and keeps with a shared region, which does not change; empty at first. `None` if facts of another
    /// type are kept.
    pub fn derived<T: Any + Default + Send + Sync>(self: &Arc<Self>) -> Option<&T> {
        self.derived.0.get_or_init(|| Box::<T>::default()).downcast_ref()
    }

    /// A region with zones of these names, which are told apart by name alone.
    pub fn named(name: &str, currency: Currency, zones: &[&str], types: impl IntoIterator<Item = RegionType>) -> Self {
        let zone =
            |zone: &&str| Zone { name: Symbol::new(zone), id: Symbol::new(zone), id_basis: ZoneIdBasis::Assumed };
        Self::new(Symbol::new(name), currency, zones.iter().map(zone).collect(), types.into_iter().collect())
    }

    /// The type called `name`, if the region knows it.
    pub fn instance_type(&self, name: Symbol) -> Option<&RegionType> {
        self.by_name.get(&name).and_then(|&at| self.types.get(at as usize))
    }

    /// The same region in which Karpenter compares what is billed; `None` if it does already.
    pub fn compared_as_billed(&self) -> Option<Self> {
        let otherwise = self.types.iter().any(RegionType::is_compared_otherwise);
        otherwise.then(|| {
            let types = self.types.iter().map(|entry| entry.clone().compared_at(None)).collect();
            Self { types, ..self.clone() }
        })
    }

    /// Tenth and ninetieth percentile of what is paid for Spot over a price of this quality, in thousandths: of estimates those of the region,
    /// where they were measured.
    pub const fn spot_error(&self, quality: PriceQuality) -> Option<(i64, i64)> {
        match (quality, self.spot_level) {
            (PriceQuality::AdvisorEstimate | PriceQuality::DerivedLow | PriceQuality::Assumed, Some(spot_level)) => {
                Some(spot_level.error)
            }
            _ => quality.spot_error(),
        }
    }

    /// What commitments save on types of `family`, if that is known.
    pub fn commitment_discount(&self, family: Symbol) -> Option<&CommitmentDiscount> {
        self.commitments.iter().find(|commitment| commitment.family == family)
    }

    /// The position in `zones` of the zone called `name`.
    pub fn zone_index(&self, name: Symbol) -> Option<usize> {
        self.zones.iter().position(|zone| zone.name == name)
    }
}

impl RegionType {
    /// A type that each of so many zones offers, On-Demand at `price` and as Spot at `spot`.
    pub fn everywhere(facts: InstanceFacts, price: Price, spot: Option<Price>, zones: usize) -> Self {
        Self::new(Arc::new(facts), Some(price), None, vec![(true, spot); zones])
    }

    /// A type with, for each zone of its region in order, whether that offers it and what it costs there as Spot. A region has
    /// at most 32 zones; those after them are not offered.
    pub fn new(
        facts: Arc<InstanceFacts>,
        on_demand: Option<Price>,
        advisor: Option<SpotAdvice>,
        zones: impl IntoIterator<Item = (bool, Option<Price>)>,
    ) -> Self {
        let (offered, spot): (Vec<bool>, Vec<Option<Price>>) = zones.into_iter().unzip();
        let zones_offered = offered.iter().zip(0..32).fold(0, |set, (&offers, zone)| set | u32::from(offers) << zone);
        Self { facts, on_demand, karpenter: None, advisor, zones_offered, spot: spot.into() }
    }

    /// The same type, of which Karpenter compares this On-Demand price; `None` for the one that is billed.
    #[must_use]
    pub fn compared_at(self, karpenter: Option<HourlyRate>) -> Self {
        Self { karpenter, ..self }
    }

    /// The On-Demand price that Karpenter compares. It is what is billed, but of bare metal: Karpenter asks for its price with
    /// dedicated tenancy, which is 6 to 10 % higher for some families, and launches it with shared tenancy.
    ///
    /// Source: AWS provider v1.13 `pkg/providers/pricing/pricing.go`, `updateOnDemandPricing`.
    pub fn karpenter_price(&self) -> Option<HourlyRate> {
        self.karpenter.or(self.on_demand.map(|price| price.rate))
    }

    /// Whether Karpenter compares another On-Demand price than the one that is billed.
    pub fn is_compared_otherwise(&self) -> bool {
        self.karpenter_price() != self.on_demand.map(|price| price.rate)
    }

    /// Whether the zone at position `zone` of the region's zones offers this type.
    pub fn offered_in(&self, zone: usize) -> bool {
        zone < 32 && self.zones_offered & (1 << zone) != 0
    }

    /// The positions of the zones that offer this type.
    pub fn zones_offered(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.spot.len()).filter(|&zone| self.offered_in(zone))
    }

    /// The Spot price in the zone at position `zone`, never above On-Demand by the list, on which estimates rest as well: the price
    /// seen in that zone; else that of the region, or the median of one day over its zones; else a share of On-Demand less the
    /// Advisor's savings; else an assumed share of On-Demand. `None` if the zone does not offer the type, or not as Spot, or if nothing is known of its price.
    pub fn spot(&self, zone: usize) -> Option<Price> {
        self.spot.get(zone).copied().flatten()
    }
}
