//! Load: how arriving requests turn into CPU use, waiting and response times of a workload's replicas.
//!
//! The model is a queue in front of all ready replicas together (least-request balancing): `replicas x concurrency`
//! servers with exponential service times. Where requests are few they are simulated one by one; where they are many they
//! are a fluid: between two changes of load or replicas everything is constant or linear, so there is no time step. See
//! [`model::RequestModel`].
//!
//! What must not live here: who changes the number of replicas, and when (`actors`).

pub mod conditions;
pub mod curve;
mod exact;
mod fluid;
pub mod histogram;
pub mod model;
pub mod queueing;
pub mod shares;
pub mod tally;
pub mod work_queue;

pub use conditions::{Conditions, MemoryUse, Replicas, Service, Source, Spacing};
pub use curve::{Curve, CurveStep, Uncertainty};
pub use histogram::LatencyHistogram;
pub use model::RequestModel;
pub use queueing::ResponseTime;
pub use tally::Tally;
pub use work_queue::{QueueHistory, Work, WorkQueue};
