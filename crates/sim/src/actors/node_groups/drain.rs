//! The end of a group's instance: for a managed group a drain, for any other the plain end. The same drain serves the
//! termination handler, on any node.
//!
//! Source: EKS user guide, managed node groups (awsdocs/amazon-eks-user-guide#1128). How often an eviction is tried again and the limit of the
//! termination handler are assumptions. An update of a managed group to another version has [its own drain](super::update).

use crate::actors::actor_events::ActorEvent;
use crate::actors::event::{GroupEvent, class};
use crate::actors::node_groups::NodeGroups;
use crate::actors::sim::Sim;
use crate::actors::{eviction, node_life};
use crate::cloud::InstanceId;
use crate::cloud::autoscaling::EndReason;
use crate::cluster::NodePhase;
use crate::domain::taints::TaintEffect;
use crate::domain::{NodeId, PodId, SimDuration, SimTime, Taint, well_known};
use crate::world::record::NodeEnd;

/// Between two looks at a draining node.
const POLL: SimDuration = SimDuration::from_secs(1);
/// Longest drain of a node whose managed group ends it; it ends with the pods that it still has.
const GROUP_LIMIT: SimDuration = SimDuration::from_secs(5 * 60);
/// Longest drain of a node that EC2 ends.
const HANDLER_LIMIT: SimDuration = SimDuration::from_secs(15 * 60);

/// A drain that is going on.
#[derive(Clone, Copy, Debug)]
pub(in crate::actors) struct Drain {
    /// When it is given up.
    deadline: SimTime,
    /// Whether the instance is terminated afterwards; otherwise EC2 takes it.
    ends: bool,
    /// Whether every pod that had to leave has left.
    done: bool,
}

/// The group ends an instance.
pub(super) fn end(
    sim: &mut Sim<'_>,
    node_groups: &mut NodeGroups,
    now: SimTime,
    instance: InstanceId,
    reason: EndReason,
) {
    let node = sim.ec2.instance(instance).node;
    let state = sim.world.node(node);
    if state.phase >= NodePhase::Terminating {
        return;
    }
    if state.deletion_requested.is_none() {
        let (end, message) = match reason {
            EndReason::ScaleIn => (NodeEnd::ScaledIn, "the node group has more instances than desired"),
            EndReason::CapacityRebalance => {
                (NodeEnd::Rebalanced, "a replacement serves in place of a Spot instance at risk")
            }
            EndReason::ZoneRebalance => (NodeEnd::Rebalanced, "a replacement serves in a zone with fewer instances"),
            EndReason::Unhealthy => (NodeEnd::Unhealthy, "its status checks fail"),
            EndReason::Requested => (NodeEnd::ScaledIn, "its termination was asked for"),
        };
        sim.world.disrupt_node(node, end, now, message);
    }
    let managed =
        sim.groups.group_of(instance).is_some_and(|group| sim.setup.policy.manifests.node_groups[group].managed);
    let can_drain = reason != EndReason::Unhealthy && sim.world.node(node).phase == NodePhase::Registered;
    if managed && can_drain {
        start(sim, node_groups, now, node, true);
    } else {
        node_life::terminate(sim, node);
    }
}

/// EC2 has given notice to the instance of a node.
pub(super) fn interrupted(sim: &mut Sim<'_>, node_groups: &mut NodeGroups, now: SimTime, node: NodeId) {
    let state = sim.world.node(node);
    if state.phase != NodePhase::Registered {
        return;
    }
    if state.deletion_requested.is_none() {
        sim.world.disrupt_node(node, NodeEnd::Interrupted, now, "its Spot instance is being interrupted");
    }
    leave_to_ec2(sim, node_groups, now, node);
}

/// Drains the node of an instance whose end EC2 brings about.
pub(in crate::actors) fn leave_to_ec2(sim: &mut Sim<'_>, node_groups: &mut NodeGroups, now: SimTime, node: NodeId) {
    if sim.world.node(node).phase == NodePhase::Registered {
        start(sim, node_groups, now, node, false);
    }
}

/// Cordons the node and begins to evict its pods, or goes on with a drain that has begun.
fn start(sim: &mut Sim<'_>, node_groups: &mut NodeGroups, now: SimTime, node: NodeId, ends: bool) {
    let under_way = node_groups.draining.get(&node).copied();
    let limit = if ends { GROUP_LIMIT } else { HANDLER_LIMIT };
    let fresh = Drain { deadline: now + limit, ends, done: false };
    let drain = under_way.map_or(fresh, |drain| Drain {
        deadline: drain.deadline.min(fresh.deadline),
        ends: drain.ends || ends,
        ..drain
    });
    node_groups.draining.insert(node, drain);
    if under_way.is_none() {
        sim.world.taint_node(node, Taint::new(well_known::TAINT_UNSCHEDULABLE, TaintEffect::NoSchedule));
        sim.publish(ActorEvent::NodeTainted(node));
    }
    if under_way.is_none_or(|drain| drain.done) {
        poll(sim, node_groups, now, node);
    }
}

/// Looks at a draining node: evicts what has to leave, or ends the instance when nothing is left or time is up.
pub(in crate::actors) fn poll(sim: &mut Sim<'_>, node_groups: &mut NodeGroups, now: SimTime, node: NodeId) {
    let Some(&drain) = node_groups.draining.get(&node) else { return };
    if sim.world.node(node).phase != NodePhase::Registered {
        node_groups.draining.remove(&node);
        return;
    }
    let leaving = evict_pods(sim, now, node, "its node is being drained");
    if !leaving.is_empty() && now < drain.deadline {
        sim.queue.schedule_in(POLL, class::MACHINES, GroupEvent::GroupDrainPoll(node));
        return;
    }
    if leaving.is_empty() && !drain.done {
        sim.world.drain_node(node, now);
        node_groups.draining.insert(node, Drain { done: true, ..drain });
    }
    if drain.ends {
        node_groups.draining.remove(&node);
        node_life::terminate(sim, node);
    }
}

/// Evicts the pods of a node that have to leave, as far as budgets let them; returns all that are still there.
pub(super) fn evict_pods(sim: &mut Sim<'_>, now: SimTime, node: NodeId, reason: &str) -> Vec<PodId> {
    let leaving: Vec<PodId> =
        sim.world.node(node).pods.iter().copied().filter(|&pod| !sim.world.pod(pod).daemon).collect();
    for &pod in &leaving {
        if sim.world.pod(pod).is_active() {
            eviction::evict(sim, now, pod, reason);
        }
    }
    leaving
}
