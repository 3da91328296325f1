//! AWS Node Termination Handler: its pod on a node reads what EC2 tells the instance, cordons the node and evicts its pods.
//! It launches nothing and ends no instance.
//!
//! Source: AWS Node Termination Handler v1.13 `cmd/node-termination-handler.go` (the instance's metadata is read every 2 s,
//! what was read is acted on every second), `pkg/node/node.go`.
//!
//! Deviation: of the termination handler, only the DaemonSet exists, not the mode that reads a queue. A pod that a
//! budget blocks is tried again every second, not every five.

use super::actor_events::ActorEvent;
use super::event::{CloudEvent, class};
use super::node_groups;
use super::node_groups::NodeGroups;
use super::sim::Sim;
use crate::cluster::NodePhase;
use crate::domain::taints::TaintEffect;
use crate::domain::{NodeId, RebalanceReaction, SimDuration, SimTime, Taint, well_known};
use crate::world::record::EventKind;

/// Between two looks at the instance's metadata.
const METADATA: SimDuration = SimDuration::from_secs(2);
/// Between two looks at what was read.
const LOOP: SimDuration = SimDuration::from_secs(1);

/// EC2 has given notice to the instance of a node.
pub(super) fn noticed(sim: &mut Sim<'_>, now: SimTime, node: NodeId) {
    if sim.setup.policy.termination_handler.is_some() {
        read_soon(sim, now, node, true);
    }
}

/// EC2 has recommended to replace the instance of a node.
pub(super) fn rebalance_recommended(sim: &mut Sim<'_>, now: SimTime, node: NodeId) {
    let handler = sim.setup.policy.termination_handler;
    if handler.is_some_and(|handler| handler.rebalance != RebalanceReaction::Ignore) {
        read_soon(sim, now, node, false);
    }
}

fn read_soon(sim: &mut Sim<'_>, now: SimTime, node: NodeId, noticed: bool) {
    let name = sim.world.node(node).name;
    let mut polls = sim.streams.nth("handler-poll", name.as_str(), u64::from(noticed));
    let delay = polls.span_up_to(METADATA) + polls.span_up_to(LOOP);
    sim.queue.schedule(now + delay, class::NODE_AUTOSCALER, CloudEvent::HandlerActs(node, noticed));
}

/// The handler's pod on the node acts, if it runs.
pub(super) fn act(sim: &mut Sim<'_>, node_groups: &mut NodeGroups, now: SimTime, node: NodeId, noticed: bool) {
    let Some(handler) = sim.setup.policy.termination_handler else { return };
    let Some(workload) = sim.workload_named(handler.daemon_set) else { return };
    let state = sim.world.node(node);
    let runs = state.pods.iter().map(|&pod| sim.world.pod(pod)).any(|pod| pod.workload == workload && pod.is_ready());
    if !runs || state.phase != NodePhase::Registered {
        return;
    }
    let cordon = Taint::new(well_known::TAINT_UNSCHEDULABLE, TaintEffect::NoSchedule);
    if !state.taints.contains(&cordon) {
        sim.world.note_node(node, now, EventKind::NodeTainted, "cordoned by the Node Termination Handler");
    }
    if noticed || handler.rebalance == RebalanceReaction::Drain {
        node_groups::drain_node(sim, node_groups, now, node);
    } else {
        sim.world.taint_node(node, cordon);
        sim.publish(ActorEvent::NodeTainted(node));
    }
}
