//! Which pods an autoscaler looks at: those that the selector of its target's scale takes, whoever made them.
//!
//! Source: Kubernetes 1.36.2 `pkg/controller/podautoscaler/replica_calculator.go` (pods are listed by selector),
//! `horizontal.go` (`validateAndParseSelector`, `hpasControllingPodsUnderSelector`).

use rustc_hash::FxHashMap;

use crate::actors::replica_loop::ReplicaLoops;
use crate::actors::sim::Sim;
use crate::domain::{KubernetesBehaviour, PodId, WorkloadId};

impl ReplicaLoops<'_> {
    /// The pods of others that the target's selector takes, in order of creation: mostly none.
    pub(super) fn of_others(&self, sim: &Sim<'_>, target: WorkloadId) -> Vec<PodId> {
        let mut taken = self.taken_from_others.borrow_mut();
        if !taken.is_current(&sim.world) {
            taken.catch_up(&sim.world);
        }
        taken.value().by(target).collect()
    }

    /// Whether another autoscaler looks at a pod that this one looks at, which the controller refuses from Kubernetes 1.26 on.
    pub(super) fn is_ambiguous(&self, sim: &Sim<'_>, index: u32) -> bool {
        let replica_loop = &self.all[index as usize];
        if !sim.setup.policy.versions.kubernetes.has(KubernetesBehaviour::HpaAmbiguousSelector) {
            return false;
        }
        replica_loop.has_rival || replica_loop.target.is_some_and(|target| self.shares_pods(sim, target))
    }

    /// Whether the target of another autoscaler shares pods with this one.
    fn shares_pods(&self, sim: &Sim<'_>, target: WorkloadId) -> bool {
        let taken = self.taken_from_others.borrow();
        if taken.value().is_empty() {
            return false;
        }
        let namespace = sim.world.workload(target).name.namespace;
        let mut others = self.scales().map(|(_, other)| other).filter(|&other| other != target);
        others.any(|other| {
            let beside = sim.world.workload(other).name.namespace == namespace;
            beside && taken.value().meet(&sim.world, target, other)
        })
    }

    /// Finds out which autoscalers scale the same workload: an autoscaler or its target has come or gone.
    pub(super) fn find_rivals(&mut self) {
        let mut scalers: FxHashMap<WorkloadId, u32> = FxHashMap::default();
        for (_, target) in self.scales() {
            *scalers.entry(target).or_default() += 1;
        }
        for replica_loop in &mut self.all {
            let others = |target| scalers.get(&target).copied().unwrap_or(0) - u32::from(!replica_loop.retired);
            replica_loop.has_rival = replica_loop.target.is_some_and(|target| others(target) > 0);
        }
    }
}
