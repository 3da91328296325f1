//! What the packer answers.

use std::sync::Arc;

use super::errors::{Refusal, Unschedulable};
use super::work::PassWork;
use nodecast_model::domain::{HourlyRate, Labels, Requirements, Resources, Symbol, Taint};

/// The outcome of one scheduling pass. Pods and nodes are named by their position in the
/// [`Situation`](super::Situation).
#[derive(Clone, PartialEq, Debug, Default)]
pub struct PackingPlan {
    /// Existing nodes that received pods, in the order in which nodes are tried.
    pub existing: Vec<ExistingPlacement>,
    /// Nodes to launch, in the order in which they were opened.
    pub claims: Vec<PlannedClaim>,
    /// Pods that found no place, in the order of the situation.
    pub unschedulable: Vec<UnschedulablePod>,
    /// Pools that were left out before the first pod.
    pub dropped_pools: Vec<DroppedPool>,
    /// What existing nodes said to the pod that [`WhatIf::watched`](super::WhatIf::watched) names at its last attempt, in
    /// the order in which they were asked; nodes after the first that took it were not.
    pub verdicts: Vec<NodeVerdict>,
    /// Why the pass was given up: nothing else is stated then.
    pub(crate) given_up: Option<GivenUp>,
    /// Pods that the pass did not come to before its [time](super::WhatIf::time) was up, in the order of the queue: nothing is
    /// said of them.
    pub unreached: Vec<usize>,
    /// How many claims there would be that are not described: see [`WhatIf::only_one`](super::WhatIf::only_one).
    pub(crate) untold: usize,
    /// How much work the pass was.
    pub work: PassWork,
}

/// Why a pass was given up before its end, or was not needed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GivenUp {
    /// A running pod would go to a node that is not ready for it.
    Waits,
    /// There would be one claim, all of whose types cost at least the [ceiling](super::Outline::ceiling).
    Dearer,
}

/// What an existing node says to a pod.
#[derive(Clone, PartialEq, Debug)]
pub struct NodeVerdict {
    /// Position of the node.
    pub node: usize,
    /// Why it does not take the pod; `None` if it does.
    pub refusal: Option<Refusal>,
}

/// Pods put on an existing node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExistingPlacement {
    /// Position of the node.
    pub node: usize,
    /// Positions of the pods, in the order of placement.
    pub pods: Vec<usize>,
}

/// A node to launch: everything a NodeClaim states.
#[derive(Clone, PartialEq, Debug)]
pub struct PlannedClaim {
    /// Position of the pool in the setup.
    pub pool: usize,
    /// The pool's name.
    pub node_pool: Symbol,
    /// Final requirements, without hostname; used-up reservations pinned.
    pub requirements: Arc<Requirements>,
    /// Requests of daemons and pods together.
    pub requests: Resources,
    /// The daemons' share of `requests`.
    pub daemon_requests: Resources,
    /// The instance types that remain, cheapest first, then by name; cut to the cheapest 600. Claims with the same list
    /// share it.
    pub instance_types: Arc<[PricedType]>,
    /// How many instance types remained before the cut.
    pub instance_types_before_cut: usize,
    /// Positions of the pods, in the order of placement.
    pub pods: Vec<usize>,
    /// Labels known before launch: the pool's, its name and node class, and one value for each custom requirement.
    pub labels: Labels,
    /// Taints that the node keeps.
    pub taints: Vec<Taint>,
    /// Taints that it starts with.
    pub startup_taints: Vec<Taint>,
    /// Whether a `minValues` was lowered.
    pub min_values_relaxed: bool,
}

/// An instance type of a claim with the price that ordered it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PricedType {
    /// Position in the pool's instance types.
    pub index: u32,
    /// Name.
    pub name: Symbol,
    /// Lowest price of an available offering that the claim's requirements allow; `None` without one.
    pub price: Option<HourlyRate>,
}

/// A pod without a place.
#[derive(Clone, PartialEq, Debug)]
pub struct UnschedulablePod {
    /// Position of the pod.
    pub pod: usize,
    /// Why.
    pub reason: Unschedulable,
}

/// A pool that cannot launch anything for any pod.
#[derive(Clone, PartialEq, Debug)]
pub struct DroppedPool {
    /// The pool's name.
    pub node_pool: Symbol,
    /// Why all of its instance types were left out.
    pub reason: Refusal,
}
