//! EC2 as a price list: instance types, which zones offer them, what they cost.
//!
//! What must not live here: any Kubernetes rule (what a node offers to pods is `karpenter::instance_types`), any change over
//! time, and the price data themselves, which whoever decides has to bring.

mod cells;
mod commitment;
mod facts;
mod fees;
mod price;
mod quality;
mod region;
#[cfg(test)]
pub(crate) mod testing;
mod volumes;

pub use cells::{CellError, Cells};
pub use commitment::CommitmentDiscount;
pub use facts::{Accelerator, AcceleratorKind, EbsVolumes, Gpu, InstanceFacts};
pub use fees::{NetworkFees, SpotLevel};
pub use price::Price;
pub use quality::PriceQuality;
pub use region::{Region, RegionType, SpotAdvice, Zone, ZoneIdBasis};
pub use volumes::VolumePrices;
