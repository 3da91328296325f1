//! The decisions: pure functions from what is known to a plan with its reasons.
//!
//! What must not live here: a clock (time is an argument), an event, randomness (ties go through an argument), the
//! simulated EC2, file access. A real controller could link this room as it is.

pub mod auto_mode;
pub mod bin_packing;
pub mod cluster_autoscaler;
pub mod controller_time;
pub mod disruption;
pub mod fargate;
pub mod instance_types;
pub mod interruption;
pub mod karpenter;
pub mod kube_scheduler;
pub mod node_pressure;
pub mod packing;
pub mod release;
pub mod replicas;
pub mod selection;
pub mod vertical;
pub mod workloads;
