//! What Karpenter reads beside the cluster, in the simulation.

use super::Running;
use crate::actors::sim::Jitter;
use crate::cluster::Cluster;
use crate::control_plane::eviction::{BudgetStatus, Protections};
use crate::domain::volumes::Storage;
use crate::domain::{KubernetesVersion, NodeId, PodId, SimDuration, SimTime, Symbol};
use nodecast_karpenter::machine::{Draw, LateTimer, Outside};

impl Outside for Running<'_, '_> {
    fn unschedulable_pods(&self, _cluster: &Cluster) -> Vec<PodId> {
        self.scheduler.unschedulable_pods(self.sim).collect()
    }

    fn pod_name(&self, pod: PodId) -> &str {
        self.sim.world.pod_name(pod)
    }

    fn uid_rank(&self, pod: PodId) -> u64 {
        self.sim.pod_uid(pod)
    }

    fn storage(&self) -> &Storage {
        self.volumes.storage()
    }

    fn volume_limits(&self, node: NodeId) -> &[(Symbol, u32)] {
        self.volumes.limits(node)
    }

    fn holds_volumes(&self, node: NodeId, stays: &dyn Fn(PodId) -> bool) -> bool {
        self.volumes.holds_node(node, stays)
    }

    fn budget_statuses(&self) -> Vec<BudgetStatus> {
        self.sim.budgets.statuses(&self.sim.world)
    }

    fn protections(&self) -> &Protections {
        &self.sim.budgets.protections
    }

    fn reservation_room(&self, id: Symbol, now: SimTime) -> u32 {
        self.sim.ec2.room_in_reservation(id, now)
    }

    fn control_plane(&self) -> KubernetesVersion {
        self.sim.control_plane
    }

    fn draw(&self, draw: Draw<'_>) -> SimDuration {
        match draw {
            Draw::Slip(slip, entity, at, most) => self.sim.jitter(jitter_of(slip), entity, at, most),
            Draw::Retry(claim, refusals, most) => {
                self.sim.streams.nth("api-retry", claim, u64::from(refusals)).span_up_to(most)
            }
            Draw::Initialization(node, median, sigma) => {
                let mut stream = self.sim.streams.nth("initialization", "", u64::from(node.0));
                SimDuration::from_secs_f64(stream.lognormal(median, sigma))
            }
            Draw::DisruptionPhase(most) => {
                let drawn = || self.sim.streams.stream("disruption-phase", "").span_up_to(most);
                self.sim.setup.scenario.phases.disruption.unwrap_or_else(drawn)
            }
            Draw::GarbagePhase(most) => {
                let drawn = || self.sim.streams.stream("garbage-phase", "").span_up_to(most);
                self.sim.setup.scenario.phases.garbage_collection.unwrap_or_else(drawn)
            }
        }
    }
}

const fn jitter_of(slip: LateTimer) -> Jitter {
    match slip {
        LateTimer::DisruptionLoop => Jitter::DisruptionLoop,
        LateTimer::CommandPoll => Jitter::CommandPoll,
        LateTimer::NodePoll => Jitter::NodePoll,
        LateTimer::Trigger => Jitter::Trigger,
    }
}
