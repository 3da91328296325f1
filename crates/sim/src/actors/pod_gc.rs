//! When the garbage collector of pods finds those that are bound to a node that is not there any more.
//!
//! Source: Kubernetes 1.36 `pkg/controller/podgc/gc_controller.go`, `gcOrphaned`.
//!
//! What must not live here: what becomes of the pods.

use super::event::{NodeEvent, class};
use super::sim::Sim;
use crate::domain::{NodeId, SimDuration, SimTime};

/// Between two of its runs (`gcCheckPeriod`).
const CHECK: SimDuration = SimDuration::from_secs(20);
/// For how long it has known that a node is gone when it deletes the pods that are bound to it (`quarantineTime`).
const QUARANTINE: SimDuration = SimDuration::from_secs(40);

/// The Node object has just gone: its pods are [collected](NodeEvent::OrphansCollected) when they are found.
pub(super) fn node_gone(sim: &mut Sim<'_>, now: SimTime, node: NodeId) {
    let phase = sim.streams.nth("orphan-phase", "", u64::from(node.0)).span_up_to(CHECK);
    sim.queue.schedule(now + phase + QUARANTINE, class::CONTROLLERS, NodeEvent::OrphansCollected(node));
}
