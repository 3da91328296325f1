//! A node as the scheduler sees it: what it offers, what is asked of it, and what runs there.

use nodecast_model::domain::pod::HostPort;
use nodecast_model::domain::symbol::well_known;
use nodecast_model::domain::{Labels, NodeId, PodId, ResourceName, Resources, SimTime, Symbol, Taint, TaintEffect};
use std::sync::Arc;

use super::shape::{Amounts, PeerId, PodShape, ShapeId};
use super::volumes::Attached;

/// A container image that a node holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NodeImage {
    /// The image's name, with tag or digest.
    pub name: Symbol,
    /// Its size in bytes.
    pub size_bytes: i64,
}

/// What the scheduler is told of a node.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SchedulerNode {
    /// The node's name.
    pub name: Arc<str>,
    /// Its labels. A node without `kubernetes.io/hostname` is taken to be a host of its own.
    pub labels: Labels,
    /// Its taints. A cordoned node need not list `node.kubernetes.io/unschedulable`: it is added.
    pub taints: Vec<Taint>,
    /// Whether the node is cordoned.
    pub unschedulable: bool,
    /// What it offers to pods, `pods` included.
    pub allocatable: Resources,
    /// The images it holds.
    pub images: Vec<NodeImage>,
    /// How many volumes of each CSI driver it can attach; drivers without a limit are not listed.
    pub volume_limits: Vec<(Symbol, u32)>,
    /// CSI drivers that its CSINode does not list, and whose CSIDriver sets `preventPodSchedulingIfMissing`: pods with their volumes do not fit.
    pub missing_drivers: Vec<Symbol>,
}

/// The pods on one node that are alike to others' selectors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PeerCount {
    pub(super) peer: PeerId,
    /// Pods that are not being deleted.
    pub(super) running: u32,
    /// Pods that are.
    pub(super) terminating: u32,
}

/// A pod that has its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PlacedPod {
    pub(super) pod: PodId,
    pub(super) shape: ShapeId,
    pub(super) started: SimTime,
    pub(super) terminating: bool,
}

/// A node with the sums over its pods.
#[derive(Clone, Debug)]
pub(super) struct NodeEntry {
    pub(super) id: NodeId,
    pub(super) node: SchedulerNode,
    pub(super) allocatable: Amounts,
    /// Pod slots offered.
    pub(super) pods_allowed: i64,
    pub(super) requested: Amounts,
    /// Extended resources asked for by its pods.
    pub(super) extended: Resources,
    /// Requests with stand-ins, as LeastAllocated counts.
    pub(super) counted: Amounts,
    pub(super) pods: Vec<PlacedPod>,
    pub(super) peers: Vec<PeerCount>,
    /// Host ports in use, with how many pods use each.
    pub(super) host_ports: Vec<(HostPort, u32)>,
    /// Volumes that its pods use.
    pub(super) attached: Attached,
}

impl NodeEntry {
    pub(super) fn new(id: NodeId, node: SchedulerNode) -> Self {
        let mut entry = Self {
            id,
            node: SchedulerNode::default(),
            allocatable: Amounts::default(),
            pods_allowed: 0,
            requested: Amounts::default(),
            extended: Resources::new(),
            counted: Amounts::default(),
            pods: Vec::new(),
            peers: Vec::new(),
            host_ports: Vec::new(),
            attached: Attached::default(),
        };
        entry.set_node(node);
        entry
    }

    /// Takes over what is told of the node; its pods stay.
    pub(super) fn set_node(&mut self, mut node: SchedulerNode) {
        let cordoned = Taint::new(well_known::TAINT_UNSCHEDULABLE, TaintEffect::NoSchedule);
        if node.unschedulable && !node.taints.contains(&cordoned) {
            node.taints.push(cordoned);
        }
        self.allocatable = Amounts {
            milli_cpu: node.allocatable.cpu_milli(),
            memory: node.allocatable.memory_bytes(),
            ephemeral_storage: node.allocatable.get(ResourceName::EPHEMERAL_STORAGE),
        };
        self.pods_allowed = node.allocatable.pods();
        self.node = node;
    }

    /// Region and zone, by which nodes are listed in turn.
    pub(super) fn zone(&self) -> super::cluster_view::Zone {
        (self.node.labels.get(well_known::REGION), self.node.labels.get(well_known::ZONE))
    }

    pub(super) fn place(&mut self, placed: PlacedPod, shape: &PodShape) {
        self.pods.push(placed);
        self.count(shape, 1);
        let at = match self.peers.iter().position(|entry| entry.peer == shape.peer) {
            Some(at) => at,
            None => {
                self.peers.push(PeerCount { peer: shape.peer, running: 0, terminating: 0 });
                self.peers.len() - 1
            }
        };
        let counter = &mut self.peers[at];
        *(if placed.terminating { &mut counter.terminating } else { &mut counter.running }) += 1;
    }

    /// Takes `pod` off the node; gives back what was known of it.
    pub(super) fn displace(&mut self, pod: PodId, shape: &PodShape) -> Option<PlacedPod> {
        let at = self.pods.iter().position(|placed| placed.pod == pod)?;
        let placed = self.pods.remove(at);
        self.count(shape, -1);
        if let Some(at) = self.peers.iter().position(|entry| entry.peer == shape.peer) {
            let counter = &mut self.peers[at];
            *(if placed.terminating { &mut counter.terminating } else { &mut counter.running }) -= 1;
            if counter.running + counter.terminating == 0 {
                self.peers.swap_remove(at);
            }
        }
        Some(placed)
    }

    /// Adds (or with `times` -1 takes away) what one pod of `shape` asks for.
    fn count(&mut self, shape: &PodShape, times: i64) {
        self.requested.add(&shape.requests, times);
        self.counted.add(&shape.counted, times);
        self.attached.change(shape, times > 0);
        for &(name, amount) in &shape.extended {
            self.extended.set(name, self.extended.get(name) + amount * times);
        }
        for &port in &shape.host_ports {
            match self.host_ports.iter().position(|entry| entry.0 == port) {
                Some(at) if times < 0 && self.host_ports[at].1 == 1 => drop(self.host_ports.swap_remove(at)),
                Some(at) if times < 0 => self.host_ports[at].1 -= 1,
                Some(at) => self.host_ports[at].1 += 1,
                None if times > 0 => self.host_ports.push((port, 1)),
                None => {}
            }
        }
    }
}
