//! Karpenter's decisions, each release as it is: packing, choice of instances and disruption as pure functions from what is known
//! to a plan with its reasons, and its controllers as one [`machine`].
//!
//! What must not live here: a clock (time is an argument), an event, randomness (ties go through an argument), the simulated EC2,
//! file access, manifests. A real controller could link this crate as it is.

pub use nodecast_bin_packing as bin_packing;

pub mod controller_time;
pub mod disruption;
pub mod instance_types;
pub mod interruption;
pub mod machine;
pub mod packing;
pub mod release;
pub mod selection;
#[cfg(test)]
mod testing;
