//! A price with its provenance.

use super::PriceQuality;
use crate::domain::{HourlyRate, Symbol};

/// A price per hour with its provenance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Price {
    /// The price, in the region's currency.
    pub rate: HourlyRate,
    /// How it is known.
    pub quality: PriceQuality,
    /// The date of the fact it rests on, as precisely as known (`2026-07-20`, `2025/2026`).
    pub as_of: Symbol,
}

impl Price {
    /// What the user pays an hour, written as a decimal; `None` if it is none.
    pub fn own(rate: &str) -> Option<Self> {
        let as_of = Symbol::new("unknown");
        Some(Self { rate: HourlyRate::parse(rate)?, quality: PriceQuality::Own, as_of })
    }
}
