//! TerminateInstances: one call for all instances that are to end at one instant, tried again while EC2 takes no call.
//!
//! Source: Karpenter AWS provider v1.13 `pkg/batcher/terminateinstances.go`; AWS SDK, standard retry mode.
//!
//! Deviation: Karpenter gathers instances to terminate for 0.1 to 1 second. Here, terminations at the same time are
//! one call. The SDK gives up after three attempts and the controller starts again; here attempts continue at the
//! SDK's pauses. An instance that EC2 does not show yet is looked up again; Karpenter leaves it to its garbage
//! collection.

use super::event::{NodeEvent, class};
use super::sim::Sim;
use super::{kubelet, node_life};
use crate::cloud::{ApiError, InstanceFilter, InstanceId};
use crate::cluster::NodePhase;
use crate::domain::{NodeId, SimDuration, SimTime};
use crate::world::record::{EventKind, NodeOrigin};
use nodecast_karpenter::release::Behaviour;

/// Instances of one call.
const CALL_SIZE: usize = 500;
/// First and longest pause after a refusal; it doubles in between. The wait is drawn up to it.
const PAUSE: SimDuration = SimDuration::from_secs(1);
const PAUSE_MAX: SimDuration = SimDuration::from_secs(20);

/// Nodes whose instances are to be terminated.
#[derive(Debug, Default)]
pub(super) struct Terminations {
    waiting: Vec<NodeId>,
    /// When the next call is made.
    due: Option<SimTime>,
    /// Calls that EC2 refused to take since it last took one, and ever.
    refusals: u32,
    refusals_ever: u64,
}

impl Terminations {
    /// The instance of `node` is to be terminated.
    pub(super) fn request(&mut self, sim: &mut Sim<'_>, now: SimTime, node: NodeId) {
        debug_assert!(sim.machine(node).is_some(), "{node:?} has no instance to terminate");
        if !self.waiting.contains(&node) {
            self.waiting.push(node);
        }
        self.send_at(sim, now);
    }

    fn send_at(&mut self, sim: &mut Sim<'_>, at: SimTime) {
        if self.due.is_none_or(|due| at < due) {
            self.due = Some(at);
            sim.queue.schedule(at, class::NODE_AUTOSCALER, NodeEvent::TerminationsSent);
        }
        debug_assert!(self.due.is_some_and(|due| due <= at), "who waits is sent by {at}");
    }

    /// EC2 took no call, or does not know an instance yet: another attempt follows.
    fn refused(&mut self, sim: &mut Sim<'_>, now: SimTime, nodes: Vec<NodeId>, error: &ApiError) {
        debug_assert!(!nodes.is_empty(), "a call that was refused names instances");
        let throttled = matches!(error, ApiError::Throttled(_));
        let kind = if throttled { EventKind::CallThrottled } else { EventKind::CallFailed };
        let text = sim.with_fleet_use(error.to_string());
        for &node in &nodes {
            sim.world.note_node(node, now, kind, &text);
        }
        let longest = (PAUSE * (1_i64 << self.refusals.min(10))).min(PAUSE_MAX);
        self.refusals += 1;
        self.refusals_ever += 1;
        self.waiting.splice(0..0, nodes);
        let mut stream = sim.streams.nth("api-retry", "TerminateInstances", self.refusals_ever);
        let again = now + stream.span_up_to(longest) + SimDuration::RESOLUTION;
        self.send_at(sim, again);
    }
}

/// The call is made.
pub(super) fn send(sim: &mut Sim<'_>, terminations: &mut Terminations, now: SimTime) {
    if terminations.due != Some(now) {
        return;
    }
    terminations.due = None;
    let mut waiting = std::mem::take(&mut terminations.waiting);
    waiting.retain(|&node| sim.world.node(node).phase < NodePhase::Terminating);
    let (mut sent, mut error) = (0, None);
    // A call for more instances than the account may ever end at once would always fail.
    let most = sim.ec2.settings().api.terminated_instances.size as usize;
    for nodes in waiting.chunks(CALL_SIZE.min(most).max(1)) {
        let machines = nodes.iter().filter_map(|&node| sim.machine(node));
        let ids: Vec<InstanceId> = machines.map(|machine| machine.instance).collect();
        let answer =
            look_up(sim, now, nodes).and_then(|()| sim.cloud().terminate_instances(&ids, now).map_err(ApiError::from));
        let spans = match answer {
            Ok(spans) => spans,
            Err(refusal) => {
                error = Some(refusal);
                break;
            }
        };
        for (&node, gone_in) in nodes.iter().zip(spans) {
            terminating(sim, now, node, gone_in);
        }
        sent += nodes.len();
    }
    if sent > 0 {
        terminations.refusals = 0;
    }
    if let Some(error) = error {
        terminations.refused(sim, now, waiting.split_off(sent), &error);
    }
}

/// Karpenter looks at an instance before it terminates it, from v1.0 on.
///
/// Source: Karpenter AWS provider v1.13 `pkg/providers/instance/instance.go`, `Delete`.
fn look_up(sim: &mut Sim<'_>, now: SimTime, nodes: &[NodeId]) -> Result<(), ApiError> {
    let of_karpenter = |&&node: &&NodeId| matches!(sim.world.node(node).origin, NodeOrigin::NodePool(_));
    let machines = nodes.iter().filter(of_karpenter).filter_map(|&node| sim.machine(node));
    let ids: Vec<InstanceId> = machines.map(|machine| machine.instance).collect();
    if ids.is_empty() || !Behaviour::for_release(sim.setup.policy.versions.karpenter).looks_up_instances {
        return Ok(());
    }
    sim.cloud().describe_instances(InstanceFilter::Ids(&ids), "karpenter", now).map(|_| ())
}

/// The instance leaves `running`: what still runs on its node is cut off. A node of Karpenter's that was drained has only daemons
/// left, of which nobody is missed.
fn terminating(sim: &mut Sim<'_>, now: SimTime, node: NodeId, gone_in: SimDuration) {
    sim.world.terminate_instance(node, now);
    let of_group = matches!(sim.world.node(node).origin, NodeOrigin::NodeGroup(_));
    for pod in sim.world.node(node).pods.clone() {
        if of_group || !sim.world.pod(pod).daemon {
            kubelet::cut_off(sim, now, pod);
        }
    }
    node_life::goes(sim, now, node, gone_in);
}
