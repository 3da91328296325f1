//! What tests, benches and examples share: the recorded answers of the real programs, read and compared with the decisions
//! of the crates below, one module for each suite of tests/cases; and inputs that are made from a seed. Whole timelines are
//! compared by `agreement_timelines`.

pub mod cluster_autoscaler;
mod cluster_autoscaler_case;
pub mod fields;
pub mod hpa;
pub mod karpenter;
pub mod karpenter_case;
pub mod karpenter_consolidation;
pub mod keda;
pub mod kube_scheduler;
pub mod packing_suite;
pub mod passes;
pub mod tally;
pub mod vpa;
mod vpa_pods;
mod vpa_recommender;
