//! What `nodecast pricing` answers: one instance type in full, or many in a line each, as a table for people or as JSON.
//!
//! Field names are the keys of the JSON and carry their unit; they change only with [`SCHEMA_VERSION`].
//! `docs/outputs.md` explains each key.

mod directory;
mod fetch_script;
mod list;
mod show;

use serde::Serialize;

use crate::catalog::{Gpu, Price, PriceQuality, SpotAdvice};
use crate::domain::HourlyRate;

pub use directory::{ImportRecord, check_import, import_account, write_import};
pub use fetch_script::FetchScript;
pub use list::{ListedType, PriceList, Selection, SortBy};
pub use show::TypeSheet;

/// The version of the layout of the JSON.
pub const SCHEMA_VERSION: u32 = 1;

/// A price with its provenance.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct PriceFigure {
    /// Price per hour in the region's currency.
    pub per_hour: f64,
    /// How it is known.
    pub quality: PriceQuality,
    /// The date of the fact it rests on.
    pub as_of: &'static str,
}

impl From<Price> for PriceFigure {
    fn from(price: Price) -> Self {
        Self { per_hour: price.rate.as_f64(), quality: price.quality, as_of: price.as_of.as_str() }
    }
}

/// What the Spot Instance Advisor says.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct AdvisorFigure {
    /// The band, 0 to 4.
    pub band: u8,
    /// The share of Spot instances that were interrupted within 30 days, in words.
    pub interrupted: &'static str,
    /// Average saving against On-Demand in per cent.
    pub savings_percent: i8,
}

impl From<SpotAdvice> for AdvisorFigure {
    fn from(advice: SpotAdvice) -> Self {
        Self { band: advice.band, interrupted: band_in_words(advice.band), savings_percent: advice.savings_percent }
    }
}

/// The graphics processors of a type.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct GpuFigure {
    /// Who makes them.
    pub manufacturer: &'static str,
    /// Their name, as Karpenter's labels have it.
    pub name: &'static str,
    /// How many; 0 where instances share one.
    pub count: u32,
    /// Memory of each in MiB.
    pub memory_mib_each: u32,
}

impl GpuFigure {
    /// `1 x nvidia t4`. EC2 counts none where instances share one.
    fn in_words(&self) -> String {
        match self.count {
            0 => format!("a share of one {} {}", self.manufacturer, self.name),
            count => format!("{count} x {} {}", self.manufacturer, self.name),
        }
    }
}

impl From<Gpu> for GpuFigure {
    fn from(gpu: Gpu) -> Self {
        Self {
            manufacturer: gpu.manufacturer.as_str(),
            name: gpu.name.as_str(),
            count: gpu.count,
            memory_mib_each: gpu.memory_mib_each,
        }
    }
}

/// A band of the Spot Instance Advisor in words.
fn band_in_words(band: u8) -> &'static str {
    match band {
        0 => "under 5%",
        1 => "5 to 10%",
        2 => "10 to 15%",
        3 => "15 to 20%",
        _ => "over 20%",
    }
}

/// What is saved by paying `spot` rather than `on_demand`, as a share rounded to six decimals.
fn saving(spot: HourlyRate, on_demand: HourlyRate) -> Option<f64> {
    (on_demand > HourlyRate::ZERO).then(|| libm::round((1.0 - spot.as_f64() / on_demand.as_f64()) * 1e6) / 1e6)
}

/// Memory for people: `16 GiB`, `0.5 GiB`.
fn gib(memory_mib: u32) -> String {
    format!("{} GiB", f64::from(memory_mib) / 1_024.0)
}

#[cfg(test)]
mod tests {
    use super::{gib, saving};
    use crate::domain::HourlyRate;

    #[test]
    fn memory_shows_gib_and_saving_shows_share() {
        assert_eq!((gib(512).as_str(), gib(16_384).as_str()), ("0.5 GiB", "16 GiB"));
        let rate = HourlyRate::from_nanos;
        assert_eq!(saving(rate(62_300_000), rate(163_200_000)), Some(0.618_26));
        assert_eq!(saving(rate(1), rate(0)), None);
    }
}
