//! How long the real programs take for their decisions, told from what they have to do.
//!
//! Models, fitted to measurements: each is a sum of counts times constants, in nanoseconds, without a clock. A decision here
//! takes far less; what is modelled is the time that passes in the cluster before it is acted upon.

pub mod cluster_autoscaler;
pub mod karpenter;
