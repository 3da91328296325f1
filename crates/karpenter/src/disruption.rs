//! Karpenter's disruption: which nodes may go, in which order, and what takes their place.
//!
//! A [`ClusterView`] says what is; [`candidates`] finds the nodes that a method may take and says of every other node what
//! stands against it; the methods ([`emptiness`], [`multi_node`], [`single_node`], [`drift`]) turn candidates into
//! [`Command`]s by asking the packer what would happen without them; [`validate`] looks again after the wait.
//!
//! Source: Karpenter core v1.13 `pkg/controllers/disruption`; the order and the scores of v1.14 where
//! [`ClusterView::karpenter`] says so.
//!
//! What must not live here: when the loop runs and how long it waits, the queue of running commands, the removal of a node
//! (actors).

mod balanced;
mod budgets;
mod candidates;
mod cost;
mod digest;
mod methods;
mod obstacles;
mod offerings;
mod pods;
mod prices;
mod repair;
mod replacement;
mod static_pools;
mod validation;
mod view;
mod what_if;

pub use balanced::{Score, rescheduling_cost};
pub use budgets::{Allowance, NodeCount, allowed, allowed_nodes, is_active};
pub use candidates::{
    Blocker, Candidate, Class, Method, NotEligible, Survey, candidates, described, eligible, objections, survey,
};
pub use cost::{Disturbance, node_cost, pod_cost};
pub use digest::{EvictionCost, PodList};
pub use methods::{Memory, MethodResult, TimeIsUp, drift, emptiness, multi_node, single_node};
pub use obstacles::Obstacle;
pub use offerings::has_lost_its_type;
pub use pods::PodView;
pub use repair::{ConditionStatus, NodeCondition, is_unhealthy, repair_due, too_many_unhealthy};
pub use replacement::{Decision, Evaluation, NoOp, evaluate};
pub use static_pools::{StaticCount, against_static_drift, one_for_one, removal_order, static_drift};
pub use validation::{Rejection, validate, validate_empty};
pub use view::{ClusterView, NodeFacts, PodBudget};
pub use what_if::{Failure, PodPlace, Simulation, WhatIf};

/// What is to be done: nodes to remove, and what has to be there first.
#[derive(Clone, PartialEq, Debug)]
pub struct Command {
    /// Nodes to remove, as positions in the view, in the order in which the method took them.
    pub nodes: Vec<usize>,
    /// Claims to make before that.
    pub replacements: Vec<crate::packing::PlannedClaim>,
    /// Existing nodes that are to receive pods, and the pods, in the order in which the packer put them there.
    pub moves: Vec<(usize, Vec<PodPlace>)>,
    /// Pods that go to the first replacement.
    pub replaced: Vec<PodPlace>,
    /// What the nodes cost together per hour; zero if one of them has no known offering, or nobody asked.
    pub price: nodecast_model::domain::HourlyRate,
}
