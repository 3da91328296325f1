//! Many instance types, a line each.

use serde::Serialize;

use super::{AdvisorFigure, GpuFigure, PriceFigure, SCHEMA_VERSION, gib, saving};
use crate::catalog::{Price, Region, RegionType};
use crate::columns::printed;
use crate::domain::{Currency, HourlyRate, Symbol};
use crate::figure::{Figure, Unit};
use crate::format::{counted, hourly};
use crate::summary::PROGRAM;
use crate::table::{Rows, Table};

/// Which types are wanted. The default leaves none out.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Selection {
    /// Only this family.
    pub family: Option<Symbol>,
    /// Only this architecture.
    pub arch: Option<Symbol>,
    /// Minimum vCPUs.
    pub min_vcpus: Option<u32>,
    /// Maximum vCPUs.
    pub max_vcpus: Option<u32>,
    /// Minimum memory in bytes.
    pub min_memory_bytes: Option<i64>,
    /// Only GPU instance types.
    pub with_gpu: bool,
}

impl Selection {
    /// Whether the type is wanted.
    pub fn keeps(&self, entry: &RegionType) -> bool {
        let facts = &entry.facts;
        self.family.is_none_or(|family| family == facts.family)
            && self.arch.is_none_or(|arch| arch == facts.arch)
            && self.min_vcpus.is_none_or(|least| least <= facts.vcpus)
            && self.max_vcpus.is_none_or(|most| facts.vcpus <= most)
            && self.min_memory_bytes.is_none_or(|least| least <= i64::from(facts.memory_mib) << 20)
            && (!self.with_gpu || facts.gpu.is_some())
    }
}

/// The order of a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SortBy {
    /// By family, then by size.
    Name,
    /// By On-Demand price, cheapest first; types without a price last.
    OnDemandPrice,
    /// By the cheapest Spot price, the cheapest first, those without one last.
    SpotPrice,
}

/// Instance types of one region with their prices.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct PriceList {
    /// The version of this layout.
    pub schema_version: u32,
    /// The program that wrote it.
    pub program: &'static str,
    /// Its version.
    pub program_version: &'static str,
    /// The region.
    pub region: &'static str,
    /// The currency of every amount.
    pub currency: Currency,
    /// Types that were asked for, also those beyond the limit.
    pub matching: usize,
    /// The type with the lowest On-Demand price among them, and this price per hour.
    #[serde(skip)]
    pub cheapest: Option<(&'static str, f64)>,
    /// The types.
    pub types: Vec<ListedType>,
}

/// An instance type in a list.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct ListedType {
    /// Name.
    pub instance_type: &'static str,
    /// vCPUs.
    pub vcpus: u32,
    /// Memory in MiB, as EC2 reports it.
    pub memory_mib: u32,
    /// `amd64` or `arm64`.
    pub arch: &'static str,
    /// Graphics processors.
    pub gpu: Option<GpuFigure>,
    /// Zones that offer it.
    pub zones_offered: usize,
    /// The On-Demand price for Linux.
    pub on_demand: Option<PriceFigure>,
    /// Spot where it is cheapest.
    pub cheapest_spot: Option<CheapestSpot>,
    /// What the Spot Instance Advisor says.
    pub spot_advisor: Option<AdvisorFigure>,
}

/// Spot where it is cheapest.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct CheapestSpot {
    /// The zones that share the lowest price, in order of name.
    pub zones: Vec<&'static str>,
    /// The price; of equal prices the one best known.
    #[serde(flatten)]
    pub price: PriceFigure,
    /// What it saves against On-Demand, as a share.
    pub saving_share: Option<f64>,
}

impl PriceList {
    /// The types of `region` that `selection` keeps, sorted, the first `limit` of them.
    pub fn new(region: &Region, selection: &Selection, sort: SortBy, limit: Option<usize>) -> Self {
        let mut entries: Vec<&RegionType> = region.types.iter().filter(|entry| selection.keeps(entry)).collect();
        let by_name =
            |entry: &RegionType| (entry.facts.family, entry.facts.vcpus, entry.facts.memory_mib, entry.facts.name);
        let after_all = HourlyRate::from_nanos(i64::MAX);
        entries.sort_by_cached_key(|entry| {
            let price = match sort {
                SortBy::Name => None,
                SortBy::OnDemandPrice => Some(entry.on_demand.map_or(after_all, |price| price.rate)),
                SortBy::SpotPrice => Some(lowest(entry).map_or(after_all, |price| price.rate)),
            };
            (price, by_name(entry))
        });
        let prices = entries.iter().filter_map(|entry| Some((entry.on_demand?.rate, entry.facts.name.as_str())));
        let cheapest = prices.min().map(|(rate, name)| (name, rate.as_f64()));
        let shown = entries.iter().take(limit.unwrap_or(usize::MAX));
        Self {
            schema_version: SCHEMA_VERSION,
            program: PROGRAM,
            program_version: env!("CARGO_PKG_VERSION"),
            region: region.name.as_str(),
            currency: region.currency,
            matching: entries.len(),
            cheapest,
            types: shown.map(|entry| listed(region, entry)).collect(),
        }
    }

    /// The list as JSON.
    ///
    /// # Errors
    /// Never for a list made by [`new`](Self::new): its keys are strings and its numbers finite.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self).map(|json| json + "\n")
    }

    /// The list for people, with columns below one another where lines have no more than `width` characters. An estimate, one
    /// that is neither published nor observed, is marked `~`.
    pub fn table(&self, width: Option<usize>) -> String {
        let note = format!(
            "{} per hour, Linux; ~ marks an estimate; interrupted: share of Spot instances in 30 days",
            self.currency.code()
        );
        printed(&[vec![self.headline(), note], self.rows().lines(width)].concat(), width)
    }

    /// The answer in one line: the number of types, and the cheapest of them.
    fn headline(&self) -> String {
        let all = counted(self.matching as u64, "instance type", "instance types");
        let cheapest = self.cheapest.map_or_else(String::new, |(name, per_hour)| {
            format!("; lowest On-Demand price {}/h ({name})", hourly(self.currency, per_hour))
        });
        format!("{}: {all}{cheapest}", self.region)
    }

    fn rows(&self) -> Table {
        let price = |price: &PriceFigure| {
            Figure::new(price.per_hour, Unit::PerHour(self.currency)).estimated(!price.quality.is_fact())
        };
        let spot = |entry: &ListedType| entry.cheapest_spot.clone();
        let rows = Rows::new(&self.types)
            .text("type", |entry| entry.instance_type)
            .number("vCPU", |entry| u64::from(entry.vcpus))
            .number("memory", |entry| gib(entry.memory_mib))
            .text("arch", |entry| entry.arch)
            .number("On-Demand/h", |entry| entry.on_demand.as_ref().map(price))
            .number("Spot/h", |entry| spot(entry).map(|spot| price(&spot.price)))
            .text("in zone", |entry| spot(entry).map(|spot| zones_in_words(&spot.zones, entry.zones_offered)))
            .number("saving", |entry| spot(entry).and_then(|spot| spot.saving_share).map(Figure::share))
            .text("interrupted", |entry| entry.spot_advisor.as_ref().map(|advisor| advisor.interrupted));
        match self.types.iter().any(|entry| entry.gpu.is_some()) {
            true => rows.text("GPU", |entry| entry.gpu.as_ref().map(GpuFigure::in_words)).table(),
            false => rows.table(),
        }
    }
}

/// The lowest Spot price; of equal prices the one best known.
fn lowest(entry: &RegionType) -> Option<Price> {
    entry.zones_offered().filter_map(|zone| entry.spot(zone)).min_by_key(|price| (price.rate, price.quality))
}

fn listed(region: &Region, entry: &RegionType) -> ListedType {
    let facts = &entry.facts;
    let cheapest_spot = lowest(entry).map(|price| {
        let is_lowest = |zone: &usize| entry.spot(*zone).is_some_and(|spot| spot.rate == price.rate);
        CheapestSpot {
            zones: entry.zones_offered().filter(is_lowest).map(|zone| region.zones[zone].name.as_str()).collect(),
            price: price.into(),
            saving_share: entry.on_demand.and_then(|on_demand| saving(price.rate, on_demand.rate)),
        }
    });
    ListedType {
        instance_type: facts.name.as_str(),
        vcpus: facts.vcpus,
        memory_mib: facts.memory_mib,
        arch: facts.arch.as_str(),
        gpu: facts.gpu.map(GpuFigure::from),
        zones_offered: entry.zones_offered().count(),
        on_demand: entry.on_demand.map(PriceFigure::from),
        cheapest_spot,
        spot_advisor: entry.advisor.map(AdvisorFigure::from),
    }
}

/// The zones of the lowest price: `us-east-1d`, `all 5`, `us-east-1a, 2 more`.
fn zones_in_words(zones: &[&str], offered: usize) -> String {
    match zones {
        [only] => (*only).to_owned(),
        all if all.len() == offered => format!("all {offered}"),
        [first, others @ ..] => format!("{first}, {} more", others.len()),
        [] => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::zones_in_words;

    #[test]
    fn zones_of_one_price_are_told_briefly() {
        assert_eq!(zones_in_words(&["a"], 1), "a");
        assert_eq!(zones_in_words(&["a", "b"], 2), "all 2");
        assert_eq!(zones_in_words(&["a", "b", "c"], 5), "a, 2 more");
    }
}
