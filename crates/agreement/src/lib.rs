//! What tests, benches and examples share: the recorded answers of the real programs, read and compared with the decisions
//! in `nodecast_karpenter`, one module for each suite of tests/cases; and inputs that are made from a seed.

pub mod cluster_autoscaler;
mod cluster_autoscaler_case;
pub mod fields;
pub mod hpa;
pub mod karpenter;
pub mod karpenter_case;
pub mod karpenter_consolidation;
pub mod karpenter_timeline;
mod karpenter_timeline_events;
pub mod karpenter_timeline_scenario;
pub mod keda;
pub mod kube_scheduler;
pub mod packing_suite;
pub mod passes;
pub mod replay;
pub mod tally;
pub mod vpa;
mod vpa_pods;
mod vpa_recommender;
