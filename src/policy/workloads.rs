//! The workload controllers' arithmetic: how many pods to make or delete, and which.
//!
//! What must not live here: pods being made or deleted, and when a controller looks.

pub mod replica_set;

pub use replica_set::{VictimView, victims};
