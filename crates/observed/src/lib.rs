//! What a cluster recorded of itself, read from where it lies: the answers of a Prometheus, NodeClaims, events and Karpenter's
//! log, exports of a bill. Readers turn them into tables of instants and amounts; estimators fit parameters to these and say
//! how sure they are.
//!
//! What must not live here: the simulation and its scenario files, which know nothing of where a figure comes from; printing.
//! Nothing here opens a connection but to the address that the user names.

pub mod bill;
pub mod claims;
pub mod estimate;
mod gzip;
pub mod observation;
pub mod prometheus;
