//! EC2 as a price list: instance types, which zones offer them, what they cost. Read from pricing-data/, which is
//! embedded in the program and parsed when first used.
//!
//! What must not live here: any Kubernetes rule (what a node offers to pods is `policy::instance_types`), any change
//! over time (that is `cloud`).

pub mod quality;

pub use quality::PriceQuality;
