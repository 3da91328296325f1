//! The vocabulary: plain data that every other room speaks.
//!
//! What lives here: identifiers, simulated time, money, Kubernetes quantities and resources, labels and requirements,
//! taints, pods, node pools, workloads and autoscaler specifications, exactly as a manifest states them.
//!
//! What must not: any behaviour over time, any decision, any randomness, any file access.

pub mod allocation_strategy;
pub mod balancer;
pub mod capability;
pub mod capacity_buffer;
pub mod check;
pub mod control_plane_tier;
pub mod controller_time;
pub mod cron;
pub mod daemon_tolerations;
pub mod durations;
pub mod external_metrics;
pub mod feature_gates;
pub mod fit_scoring;
pub mod group_ranks;
pub mod hpa;
pub mod ids;
pub mod keda;
pub mod labels;
mod limits;
pub mod money;
pub mod node;
pub mod node_group;
pub mod node_overlay;
pub mod node_pool;
pub mod pod;
pub mod pod_addresses;
pub mod quantity;
pub mod quota;
pub mod requirements;
pub mod resources;
pub mod selector_text;
pub mod symbol;
pub mod taints;
pub mod termination_handler;
pub mod time;
pub mod topology;
pub mod versions;
pub mod vertical;
pub mod volumes;
pub mod which;
pub mod words;
pub mod workload;

pub use allocation_strategy::AllocationStrategy;
pub use balancer::BalancerKind;
pub use capability::Capability;
pub use capacity_buffer::{CapacityBuffer, PodTemplate};
pub use check::{Check, Disagreement};
pub use control_plane_tier::ControlPlaneTier;
pub use controller_time::ControllerTime;
pub use feature_gates::FeatureGates;
pub use group_ranks::GroupRanks;
pub use hpa::HorizontalPodAutoscaler;
pub use ids::{CommandId, NodeId, PodId, WorkloadId};
pub use keda::{ScaledJob, ScaledObject};
pub use labels::{LabelSelector, Labels};
pub use money::{Accrual, Currency, HourlyRate, Money};
pub use node::{NodeClaimObject, NodeObject};
pub use node_group::NodeGroup;
pub use node_overlay::{NodeOverlay, PriceOverlay};
pub use node_pool::{NodeClass, NodePool};
pub use pod::{Container, NodeAffinity, PodSpec};
pub use pod_addresses::PodAddresses;
pub use quantity::Quantity;
pub use requirements::{Requirement, Requirements};
pub use resources::{ResourceName, Resources};
pub use symbol::{Symbol, well_known};
pub use taints::{Taint, TaintEffect, Toleration};
pub use termination_handler::{RebalanceReaction, TerminationHandler};
pub use time::{SimDuration, SimTime};
pub use versions::{KarpenterVersion, KubernetesBehaviour, KubernetesVersion, Versions, VerticalPodAutoscalerVersion};
pub use vertical::VerticalPodAutoscaler;
