//! What the methods are told of the cluster: borrowed, in any order, with positions as names.

use std::sync::Arc;

use crate::packing::{NodeView, PendingPod, PoolView, TieBreak};
use crate::release::Behaviour;
use nodecast_model::control_plane::eviction::{Protections, Protectors, is_fully_blocked};
use nodecast_model::domain::node_pool::DisruptionReason;
use nodecast_model::domain::{KarpenterVersion, LabelSelector, Labels, PodSpec, SimDuration, SimTime, Symbol};

use super::digest::{EvictionCost, PodList};
use super::pods::PodView;

/// The cluster at one instant.
#[derive(Clone, Copy, Debug)]
pub struct ClusterView<'a> {
    /// The instant.
    pub now: SimTime,
    /// The release to reproduce.
    pub karpenter: KarpenterVersion,
    /// Feature gate `SpotToSpotConsolidation`.
    pub spot_to_spot: bool,
    /// NodePools with their instance types.
    pub pools: &'a [PoolView<'a>],
    /// Nodes, and claims whose instance is launched.
    pub nodes: &'a [NodeFacts<'a>],
    /// Pods without a node that provisioning would take on.
    pub pending: &'a [PendingPod<'a>],
    /// PodDisruptionBudgets with their status.
    pub pod_budgets: &'a [PodBudget<'a>],
    /// What is remembered of these budgets.
    pub protections: &'a Protections,
    /// Treatment of ties between topology domains.
    pub ties: TieBreak,
}

/// A node with all that decides about its end.
#[derive(Clone, Copy, Debug)]
pub struct NodeFacts<'a> {
    /// As the packer sees it. `offered` is false exactly if the node is marked for deletion; `pods` is not read, the
    /// node's pods are those below, of which `summed` may be the sum if none of them leaves.
    pub view: NodeView<'a>,
    /// Pods bound to it.
    pub pods: &'a dyn PodList,
    /// What they come to.
    pub digest: &'a EvictionCost,
    /// When its claim was made.
    pub created: SimTime,
    /// The claim's own `expireAfter`; `None` for never.
    pub expire_after: Option<SimDuration>,
    /// Whether its claim has a `terminationGracePeriod`.
    pub grace_limited: bool,
    /// The name of its NodePool, by its label.
    pub node_pool: Option<Symbol>,
    /// Annotations of the node.
    pub annotations: &'a Labels,
    /// Whether it belongs to a command that is being carried out.
    pub queued: bool,
    /// Whether its instance is being terminated.
    pub instance_terminating: bool,
    /// Whether its `Ready` condition is true.
    pub ready: bool,
    /// Whether pods are on their way to it.
    pub nominated: bool,
    /// Whether Karpenter keeps room on it for a CapacityBuffer.
    pub buffered: bool,
    /// Whether its `Consolidatable` condition is true.
    pub consolidatable: bool,
    /// Since when its `Drifted` condition is true.
    pub drifted: Option<SimTime>,
}

impl<'a> NodeFacts<'a> {
    /// The pods bound to it.
    pub fn pods(&self) -> &'a [PodView<'a>] {
        self.pods.pods()
    }

    /// Whether the node is on its way out.
    pub fn marked_for_deletion(&self) -> bool {
        !self.view.offered
    }

    /// The position of its NodePool.
    pub fn pool(&self, pools: &[PoolView<'_>]) -> Option<usize> {
        let name = self.node_pool?;
        pools.iter().position(|pool| pool.pool.name == name)
    }
}

/// A PodDisruptionBudget with its status.
#[derive(Clone, Copy, Debug)]
pub struct PodBudget<'a> {
    /// Namespace.
    pub namespace: Symbol,
    /// The pods it protects; `None` protects none.
    pub selector: Option<&'a LabelSelector>,
    /// Pods that may be taken away now.
    pub allowed: i64,
    /// `unhealthyPodEvictionPolicy: AlwaysAllow`.
    pub always_allow_unhealthy: bool,
    /// Whether its rule never allows anything.
    pub allows_nothing: bool,
}

impl<'a> ClusterView<'a> {
    /// What the release does.
    pub(super) fn behaviour(&self) -> &'static Behaviour {
        Behaviour::for_release(self.karpenter)
    }

    /// Whether the pod could be evicted and come back: what a simulation has to find a place for.
    ///
    /// Source: Karpenter core v1.13 `pkg/utils/pdb/pdb.go`, `IsCurrentlyReschedulable`.
    pub fn is_currently_reschedulable(&self, pod: &PodView<'_>) -> bool {
        let asks = self.behaviour().leaves_protected_pods;
        pod.is_reschedulable() && (!asks || (pod.is_disruptable(self.now) && !self.is_fully_blocked(pod)))
    }

    fn is_fully_blocked(&self, pod: &PodView<'_>) -> bool {
        self.ask_protectors(pod.namespace, pod.spec, |protectors| {
            is_fully_blocked(protectors, pod.ready, |only| {
                let only = &self.pod_budgets[only];
                (only.allows_nothing, only.always_allow_unhealthy)
            })
        })
    }

    /// Positions of the budgets that protect the pod.
    pub fn protectors(&self, pod: &PodView<'_>) -> Protectors {
        self.ask_protectors(pod.namespace, pod.spec, Protectors::from_slice)
    }

    /// Looks at the positions of the budgets that protect pods of a specification.
    pub(super) fn ask_protectors<R>(
        &self,
        namespace: Symbol,
        spec: &Arc<PodSpec>,
        look: impl FnOnce(&[u32]) -> R,
    ) -> R {
        if self.pod_budgets.is_empty() {
            return look(&[]);
        }
        let budgets = self.pod_budgets.iter().map(|budget| (budget.namespace, budget.selector));
        self.protections.ask(namespace, spec, budgets, look)
    }

    /// Nodes of a pool that count for its budgets, and how many of them are away or leaving.
    ///
    /// Source: Karpenter core v1.13 `pkg/controllers/disruption/helpers.go`, `BuildDisruptionBudgetMapping`.
    pub fn counted_nodes(&self, pool: usize) -> super::NodeCount {
        let name = self.pools[pool].pool.name;
        let mut count = super::NodeCount::default();
        for node in self.nodes {
            let ended = node.instance_terminating && self.behaviour().ends_leave_budgets;
            let counted = node.view.managed && node.view.initialized && !ended;
            if counted && node.node_pool == Some(name) {
                count.total += 1;
                count.disrupting += i64::from(!node.ready || node.marked_for_deletion());
            }
        }
        count
    }

    /// How many nodes of each pool may be disrupted now for a reason.
    pub fn allowances(&self, reason: DisruptionReason, now_unix_seconds: i64) -> Vec<super::Allowance> {
        let counted: Vec<super::NodeCount> = (0..self.pools.len()).map(|pool| self.counted_nodes(pool)).collect();
        self.allowances_of(&counted, reason, now_unix_seconds)
    }

    /// The same for those who have counted the nodes of each pool.
    pub fn allowances_of(
        &self,
        counted: &[super::NodeCount],
        reason: DisruptionReason,
        now_unix_seconds: i64,
    ) -> Vec<super::Allowance> {
        let of_pool = |(pool, &counted): (&PoolView<'_>, &super::NodeCount)| {
            super::allowed(pool.pool, reason, counted, now_unix_seconds)
        };
        self.pools.iter().zip(counted).map(of_pool).collect()
    }
}
