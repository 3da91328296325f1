//! What a commitment of a year or three saves against On-Demand.

use super::cells::{CellError, Cells};
use crate::domain::Symbol;

/// What standard Reserved Instances of a family save in a region against On-Demand, in ten-thousandths of its price. EC2 Instance
/// Savings Plans cost the same.
///
/// Source: effective hourly rates of standard Reserved Instances, January 2025. Inside a family and region they are one share of On-Demand (spread
/// 0.03 points in the median of 1,139 families, 0.4 at most). That EC2 Instance Savings Plans cost the same is AWS's word; no table of their
/// rates was at hand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CommitmentDiscount {
    /// The family.
    pub family: Symbol,
    /// For one year, nothing paid upfront.
    pub one_year_no_upfront: u32,
    /// For three years, all paid upfront.
    pub three_years_all_upfront: u32,
}

impl CommitmentDiscount {
    /// The columns of a table of discounts, after the region.
    pub const COLUMNS: [&'static str; 3] = ["family", "one_year_no_upfront", "three_years_all_upfront"];

    /// The discount of one line; its cells stand in the order of [`COLUMNS`](Self::COLUMNS), shares as decimals below one.
    ///
    /// # Errors
    /// If a cell cannot be understood.
    pub fn from_cells(cells: &mut Cells<'_>) -> Result<Self, CellError> {
        let family = cells.required()?;
        let mut share = || {
            let text = cells.text();
            let share = text.parse::<f64>().ok().filter(|share| (0.0..1.0).contains(share));
            let share = share.ok_or_else(|| cells.malformed(&format!("`{text}` is not a share below one")))?;
            Ok(libm::round(share * 10_000.0) as u32)
        };
        Ok(Self { family, one_year_no_upfront: share()?, three_years_all_upfront: share()? })
    }
}
