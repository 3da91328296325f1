//! What can happen to a node.

use std::sync::Arc;

use super::World;
use super::record::{ClaimFacts, Event, EventKind, NodeEnd, NodeFacts};
use crate::cluster::NewNode;
use crate::domain::{Currency, HourlyRate, KubernetesVersion, Labels, NodeId, Resources, SimTime, Symbol, Taint};

/// What EC2 answered.
#[derive(Clone, Debug)]
pub struct LaunchFacts {
    /// Id of the instance.
    pub instance: Box<str>,
    /// Instance type.
    pub instance_type: Symbol,
    /// Zone.
    pub zone: Symbol,
    /// `spot` or `on-demand`.
    pub capacity_type: Symbol,
    /// `amd64` or `arm64`.
    pub arch: Symbol,
    /// Price per hour at launch.
    pub rate: HourlyRate,
    /// What the price is in.
    pub currency: Currency,
    /// Labels that follow from the instance.
    pub labels: Labels,
    /// What the autoscaler believes it holds.
    pub capacity: Resources,
    /// What the autoscaler believes it offers to pods.
    pub allocatable: Resources,
}

impl World {
    /// Adds a node claim, made for this reason.
    pub fn add_node(&mut self, new: NewNode, at: SimTime, reason: &str) -> NodeId {
        self.record.nodes.push(NodeFacts::asked_for(new.name.clone(), new.origin, at));
        self.settled.push(at);
        let id = self.cluster.add_node(new, at);
        // Record and cluster are joined by nothing but this number.
        debug_assert_eq!(id.index() + 1, self.record.nodes.len(), "record and cluster count nodes alike");
        self.node_event(at, EventKind::ClaimCreated, id, reason);
        id
    }

    /// These amounts, as the record of other nodes may have them already.
    pub(super) fn shared(&mut self, amounts: &Resources) -> Arc<Resources> {
        if let Some(known) = self.amounts.get(amounts) {
            return Arc::clone(known);
        }
        let shared = Arc::new(amounts.clone());
        self.amounts.insert(Arc::clone(&shared));
        shared
    }

    /// Records what a claim states.
    pub fn describe_claim(&mut self, id: NodeId, facts: ClaimFacts) {
        self.record.nodes[id.index()].claim = Some(facts);
    }

    /// Records the release that the kubelet of a launched node is of.
    pub fn describe_kubelet(&mut self, id: NodeId, release: KubernetesVersion) {
        self.record.nodes[id.index()].kubelet_version = Some(release);
    }

    /// EC2 answered with an instance.
    pub fn launch_node(&mut self, id: NodeId, launch: &LaunchFacts, at: SimTime) {
        self.cluster.launch_node(id, &launch.labels, launch.capacity.clone(), launch.allocatable.clone());
        let (capacity, allocatable) = (self.shared(&launch.capacity), self.shared(&launch.allocatable));
        let facts = &mut self.record.nodes[id.index()];
        // A second instance would hide the bill of the first.
        debug_assert!(facts.launched.is_none(), "{} is launched twice", facts.name);
        facts.launched = Some(at);
        facts.instance = Some(launch.instance.clone());
        facts.instance_type = Some(launch.instance_type);
        facts.zone = Some(launch.zone);
        facts.capacity_type = Some(launch.capacity_type);
        facts.arch = Some(launch.arch);
        facts.rate = launch.rate;
        (facts.capacity, facts.allocatable) = (capacity, allocatable);
        let message = format!(
            "{} in {} at {}{:.4} per hour",
            kind_of_machine(launch.capacity_type, launch.instance_type),
            launch.zone,
            launch.currency.sign(),
            launch.rate
        );
        self.node_event(at, EventKind::InstanceLaunched, id, &message);
    }

    /// EC2 had no capacity: the claim is given up.
    pub fn fail_launch(&mut self, id: NodeId, at: SimTime, reason: &str) {
        self.node_event(at, EventKind::LaunchFailed, id, reason);
        self.drop_claim(id, at);
    }

    /// A claim without an instance is gone.
    pub fn drop_claim(&mut self, id: NodeId, at: SimTime) {
        let facts = &mut self.record.nodes[id.index()];
        // Billing would never end.
        debug_assert!(facts.running.is_none(), "{} has an instance that runs", facts.name);
        facts.end = Some(NodeEnd::LaunchFailed);
        facts.terminated = Some(at);
        self.cluster.remove_node(id);
    }

    /// The instance is running: billing begins.
    pub fn run_instance(&mut self, id: NodeId, at: SimTime) {
        let facts = &mut self.record.nodes[id.index()];
        // Billing begins once.
        debug_assert!(
            facts.launched.is_some() && facts.running.is_none(),
            "{} runs already, or has no instance",
            facts.name
        );
        facts.running = Some(at);
        self.node_event(at, EventKind::InstanceRunning, id, "");
    }

    /// The kubelet registered the node, with what the real machine offers, and with labels and taints beside those that it has.
    pub fn register_node(
        &mut self,
        id: NodeId,
        capacity: Resources,
        allocatable: Resources,
        (labels, taints): (&Labels, &[Taint]),
        at: SimTime,
    ) {
        let amounts = (self.shared(&capacity), self.shared(&allocatable));
        let facts = &mut self.record.nodes[id.index()];
        // The scheduler would bind pods to it.
        debug_assert!(facts.terminated.is_none(), "{} registers after its end", facts.name);
        facts.registered = Some(at);
        (facts.capacity, facts.allocatable) = amounts;
        self.cluster.register_node(id, capacity, allocatable, labels, taints);
        self.node_event(at, EventKind::NodeRegistered, id, "");
    }

    /// The node is Ready.
    pub fn ready_node(&mut self, id: NodeId, at: SimTime) {
        self.settle_node(id, at);
        self.cluster.set_ready(id, true);
        self.record.nodes[id.index()].ready.get_or_insert(at);
        self.note_readiness(id, at);
        self.node_event(at, EventKind::NodeReady, id, "");
    }

    /// The node has not been heard of for too long.
    pub fn lose_node(&mut self, id: NodeId, at: SimTime) {
        self.settle_node(id, at);
        self.cluster.set_ready(id, false);
        self.note_readiness(id, at);
        self.node_event(at, EventKind::NodeUnreachable, id, "");
    }

    /// The CPU credits of the node are spent.
    pub fn spend_credits(&mut self, id: NodeId, at: SimTime) {
        self.node_event(at, EventKind::CreditsSpent, id, "");
    }

    /// A node that was lost is heard of again: it is Ready if it ever was.
    pub fn regain_node(&mut self, id: NodeId, at: SimTime) {
        self.settle_node(id, at);
        let was_ready = self.record.nodes[id.index()].ready.is_some();
        self.cluster.set_ready(id, was_ready);
        self.note_readiness(id, at);
        self.node_event(at, EventKind::NodeReachable, id, "");
    }

    /// The node no longer reports Ready.
    pub fn unready_node(&mut self, id: NodeId, at: SimTime) {
        self.settle_node(id, at);
        self.cluster.set_ready(id, false);
        self.note_readiness(id, at);
        self.node_event(at, EventKind::NodeNotReady, id, "");
    }

    /// The Node object is deleted, and its instance stays: it is as before it registered.
    pub fn unregister_node(&mut self, id: NodeId, at: SimTime) {
        self.settle_node(id, at);
        self.cluster.unregister_node(id);
        self.note_readiness(id, at);
    }

    /// Sets or removes an annotation.
    pub fn annotate_node(&mut self, id: NodeId, key: Symbol, value: Option<Symbol>) {
        self.cluster.annotate_node(id, key, value);
    }

    /// Replaces all labels.
    pub fn relabel_node(&mut self, id: NodeId, labels: Labels) {
        self.cluster.relabel_node(id, labels);
    }

    /// Replaces all taints.
    pub fn set_taints(&mut self, id: NodeId, taints: Vec<Taint>) {
        self.cluster.set_taints(id, taints);
    }

    /// Karpenter counts the node as initialized.
    pub fn initialize_node(&mut self, id: NodeId, at: SimTime) {
        self.cluster.initialize_node(id);
        self.record.nodes[id.index()].initialized = Some(at);
        self.node_event(at, EventKind::NodeInitialized, id, "");
    }

    /// Adds a taint, unless the node has it.
    pub fn taint_node(&mut self, id: NodeId, taint: Taint) {
        self.cluster.taint_node(id, taint);
    }

    /// Removes every taint with this key.
    pub fn untaint_node(&mut self, id: NodeId, key: Symbol) {
        self.cluster.untaint_node(id, key);
    }

    /// The node's removal is decided. One whose instance EC2 has taken before ended by that, whoever clears it away.
    pub fn disrupt_node(&mut self, id: NodeId, end: NodeEnd, at: SimTime, reason: &str) {
        self.cluster.set_deletion_requested(id, Some(at));
        let facts = &mut self.record.nodes[id.index()];
        facts.deletion_requested = Some(at);
        if !is_reclaimed(facts) {
            facts.end = Some(end);
        }
        self.node_event(at, EventKind::NodeDisrupted, id, reason);
    }

    /// The node stays after all: what had been decided about its end is forgotten.
    pub fn spare_node(&mut self, id: NodeId) {
        self.cluster.set_deletion_requested(id, None);
        let facts = &mut self.record.nodes[id.index()];
        (facts.deletion_requested, facts.drained) = (None, None);
        if !is_reclaimed(facts) {
            facts.end = None;
        }
    }

    /// The last pod that had to leave the node is gone.
    pub fn drain_node(&mut self, id: NodeId, at: SimTime) {
        self.record.nodes[id.index()].drained = Some(at);
        self.node_event(at, EventKind::NodeDrained, id, "");
    }

    /// The instance leaves `running`: billing ends.
    pub fn terminate_instance(&mut self, id: NodeId, at: SimTime) {
        self.settle_node(id, at);
        self.cluster.terminate_node(id);
        self.record.nodes[id.index()].terminating = Some(at);
        self.node_event(at, EventKind::InstanceTerminating, id, "");
    }

    /// EC2 or Fargate takes the instance: billing ends, and whatever runs on it is cut off.
    pub fn reclaim_instance(&mut self, id: NodeId, at: SimTime, kind: EventKind, end: NodeEnd, why: &str) {
        self.settle_node(id, at);
        self.cluster.terminate_node(id);
        let facts = &mut self.record.nodes[id.index()];
        facts.terminating = Some(at);
        facts.end = Some(end);
        self.node_event(at, kind, id, why);
    }

    /// EC2 gives up a launch that it had accepted: the instance never runs.
    pub fn abort_instance(&mut self, id: NodeId, at: SimTime) {
        self.cluster.terminate_node(id);
        let facts = &mut self.record.nodes[id.index()];
        facts.terminating = Some(at);
        facts.end = Some(NodeEnd::Aborted);
        self.node_event(at, EventKind::LaunchAborted, id, "Server.InternalError");
    }

    /// The instance and the node are gone.
    pub fn remove_node(&mut self, id: NodeId, at: SimTime) {
        let facts = &mut self.record.nodes[id.index()];
        // Its end is a line of the bill.
        debug_assert!(facts.terminated.is_none(), "{} goes twice", facts.name);
        facts.terminated = Some(at);
        self.node_event(at, EventKind::InstanceTerminated, id, "");
        self.cluster.remove_node(id);
    }

    /// Records that something was noticed about a node.
    pub fn note_node(&mut self, id: NodeId, at: SimTime, kind: EventKind, message: &str) {
        self.node_event(at, kind, id, message);
    }

    /// Brings the integrals of what is requested on a Ready node up to `at`.
    pub(super) fn settle_node(&mut self, id: NodeId, at: SimTime) {
        let (node, settled) = (self.cluster.node(id), &mut self.settled[id.index()]);
        let span = i128::from(at.saturating_since(*settled).as_micros());
        *settled = at.max(*settled);
        if node.ready {
            let facts = &mut self.record.nodes[id.index()];
            facts.requested_cpu += span * i128::from(node.requested.cpu_milli());
            facts.requested_memory += span * i128::from(node.requested.memory_bytes());
            for (name, amount) in node.requested.iter().filter(|(name, _)| name.is_accelerator()) {
                let item = span * i128::from(amount);
                match facts.requested_accelerators.iter_mut().find(|(known, _)| *known == name) {
                    Some((_, integral)) => *integral += item,
                    None => facts.requested_accelerators.push((name, item)),
                }
            }
        }
    }

    /// Notes that a node that was Ready before is so no more, or again.
    fn note_readiness(&mut self, id: NodeId, at: SimTime) {
        let (is_ready, facts) = (self.cluster.node(id).ready, &mut self.record.nodes[id.index()]);
        match facts.not_ready.last_mut() {
            Some((_, until @ None)) if is_ready => *until = Some(at),
            Some((_, None)) => {}
            _ if !is_ready && facts.ready.is_some() => facts.not_ready.push((at, None)),
            _ => {}
        }
    }

    fn node_event(&mut self, at: SimTime, kind: EventKind, id: NodeId, message: &str) {
        let node = Some(id);
        self.record.events.push(Event { at, kind, pod: None, node, workload: None, command: None, message });
    }
}

/// How a machine was bought and of what type it is; one of Fargate has no type.
fn kind_of_machine(capacity_type: Symbol, instance_type: Symbol) -> String {
    if capacity_type == instance_type { capacity_type.to_string() } else { format!("{capacity_type} {instance_type}") }
}

/// Whether EC2 has taken the node's instance.
fn is_reclaimed(facts: &NodeFacts) -> bool {
    facts.end == Some(NodeEnd::Interrupted) && facts.terminating.is_some()
}
