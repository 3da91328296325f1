//! What EBS volumes cost in a region.

use super::cells::{CellError, Cells};
use crate::domain::HourlyRate;

/// Prices of EBS volumes, each for a month of 730 hours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VolumePrices {
    /// A GiB of gp2.
    pub gp2: HourlyRate,
    /// A GiB of gp3.
    pub gp3: HourlyRate,
    /// An I/O operation per second of gp3, beyond the 3,000 that come with a volume.
    pub gp3_iops: HourlyRate,
    /// A MiB per second of gp3, beyond the 125 that come with a volume.
    pub gp3_throughput: HourlyRate,
    /// A GiB of io1.
    pub io1: HourlyRate,
    /// An I/O operation per second of io1.
    pub io1_iops: HourlyRate,
    /// A GiB of io2.
    pub io2: HourlyRate,
    /// An I/O operation per second of io2: of the first 32,000, of those up to 64,000, and of those beyond.
    pub io2_iops: [HourlyRate; 3],
    /// A GiB of st1.
    pub st1: HourlyRate,
    /// A GiB of sc1.
    pub sc1: HourlyRate,
    /// A GiB of the magnetic volumes that the API calls `standard`.
    pub standard: HourlyRate,
}

impl VolumePrices {
    /// Those of us-east-1 (AWS price list of 2025-10-28), for regions whose own are not known.
    pub const US_EAST_1: Self = Self {
        gp2: HourlyRate::from_nanos(100_000_000),
        gp3: HourlyRate::from_nanos(80_000_000),
        gp3_iops: HourlyRate::from_nanos(5_000_000),
        gp3_throughput: HourlyRate::from_nanos(40_000_000),
        io1: HourlyRate::from_nanos(125_000_000),
        io1_iops: HourlyRate::from_nanos(65_000_000),
        io2: HourlyRate::from_nanos(125_000_000),
        io2_iops: [
            HourlyRate::from_nanos(65_000_000),
            HourlyRate::from_nanos(45_500_000),
            HourlyRate::from_nanos(31_850_000),
        ],
        st1: HourlyRate::from_nanos(45_000_000),
        sc1: HourlyRate::from_nanos(15_000_000),
        standard: HourlyRate::from_nanos(50_000_000),
    };

    /// The columns of a table of these prices, after the region.
    pub const COLUMNS: [&'static str; 13] = [
        "gp2",
        "gp3",
        "gp3_iops",
        "gp3_throughput",
        "io1",
        "io1_iops",
        "io2",
        "io2_iops",
        "io2_iops_over_32000",
        "io2_iops_over_64000",
        "st1",
        "sc1",
        "standard",
    ];

    /// The prices of one line; its cells stand in the order of [`COLUMNS`](Self::COLUMNS).
    ///
    /// # Errors
    /// If a cell is empty or no price.
    pub fn from_cells(cells: &mut Cells<'_>) -> Result<Self, CellError> {
        let mut next = || cells.rate()?.ok_or_else(|| cells.malformed("is empty"));
        Ok(Self {
            gp2: next()?,
            gp3: next()?,
            gp3_iops: next()?,
            gp3_throughput: next()?,
            io1: next()?,
            io1_iops: next()?,
            io2: next()?,
            io2_iops: [next()?, next()?, next()?],
            st1: next()?,
            sc1: next()?,
            standard: next()?,
        })
    }
}
