//! Replica counts: the arithmetic of the HorizontalPodAutoscaler and of KEDA, and the queries behind
//! their metrics; and the arithmetic of the workload controllers, which follow it.
//!
//! What must not live here: when a controller wakes, where a metric comes from, how a count is written.

pub mod hpa;
pub mod keda;
pub mod promql;
pub mod workloads;
