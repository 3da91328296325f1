//! Discounts of commitments for one and three years.

use super::PriceQuality;
use super::cells::{CellError, Cells};
use crate::domain::Symbol;

/// Price of one year without upfront payment, in ten-thousandths of the price of one year paid all upfront.
const NO_UPFRONT: u32 = 10_715;

/// Discounts of standard Reserved Instances of a family in a region, in ten-thousandths of the On-Demand price. EC2 Instance
/// Savings Plans cost the same.
///
/// Source: effective hourly rates of standard Reserved Instances, January 2025. Inside a family and region they are one share of On-Demand (spread
/// 0.03 points in the median of 1,139 families, 0.4 at most). That EC2 Instance Savings Plans cost the same is AWS's word; no table of their
/// rates was at hand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CommitmentDiscount {
    /// The family.
    pub family: Symbol,
    /// One year, all upfront.
    pub one_year_all_upfront: u32,
    /// Three years, all upfront.
    pub three_years_all_upfront: u32,
    /// One year, no upfront; `None` where the table does not list it.
    pub one_year_no_upfront: Option<u32>,
}

impl CommitmentDiscount {
    /// The columns of a table of discounts, after the region. A table may lack the last one.
    pub const COLUMNS: [&'static str; 4] =
        ["family", "one_year_all_upfront", "three_years_all_upfront", "one_year_no_upfront"];

    /// The discount of one line; its cells stand in the order of [`COLUMNS`](Self::COLUMNS), shares as decimals below one.
    ///
    /// # Errors
    /// If a cell cannot be understood.
    pub fn from_cells(cells: &mut Cells<'_>) -> Result<Self, CellError> {
        let family = cells.required()?;
        let (one_year_all_upfront, three_years_all_upfront) = (share(cells)?, share(cells)?);
        let one_year_no_upfront = if cells.is_empty() { None } else { Some(share(cells)?) };
        Ok(Self { family, one_year_all_upfront, three_years_all_upfront, one_year_no_upfront })
    }

    /// The discount for a term and payment, in millionths of the On-Demand price, and its quality; `None` where neither a rate
    /// nor a rule is known.
    ///
    /// Deviation: one year without upfront payment costs 1.0715 times the price of one year paid all upfront, unless
    /// the price table lists it. Seven families with both prices of one date have 1.0704 to 1.0719. Seven with prices
    /// of two dates have 1.077 to 1.088.
    pub fn of_term(&self, years: u32, all_upfront: bool) -> Option<(u32, PriceQuality)> {
        const FINER: u32 = 100;
        match (years, all_upfront, self.one_year_no_upfront) {
            (1, true, _) => Some((self.one_year_all_upfront * FINER, PriceQuality::Published)),
            (1, false, Some(listed)) => Some((listed * FINER, PriceQuality::Published)),
            (1, false, None) => {
                let price = (10_000 - self.one_year_all_upfront.min(10_000)) * NO_UPFRONT / FINER;
                Some((1_000_000_u32.saturating_sub(price), PriceQuality::Derived))
            }
            (3, true, _) => Some((self.three_years_all_upfront * FINER, PriceQuality::Published)),
            _ => None,
        }
    }
}

/// The next cell as a share below one, in ten-thousandths.
fn share(cells: &mut Cells<'_>) -> Result<u32, CellError> {
    let text = cells.text();
    let share = text.parse::<f64>().ok().filter(|share| (0.0..1.0).contains(share));
    let share = share.ok_or_else(|| cells.malformed(&format!("`{text}` is not a share below one")))?;
    Ok(libm::round(share * 10_000.0) as u32)
}
