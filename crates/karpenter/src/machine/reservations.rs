//! Capacity reservations in Karpenter's launches: what it knows of their room, and where it launches into them.
//!
//! Source: Karpenter AWS provider v1.13 `pkg/providers/capacityreservation/provider.go`,
//! `pkg/providers/instance/instance.go`, `pkg/providers/launchtemplate/launchtemplate.go`.
//! `pkg/controllers/capacityreservation/expiration/controller.go`, `pkg/controllers/capacityreservation/capacitytype/controller.go`.
//! Deviation: Karpenter sees the free capacity of a reservation at once. Upstream lists reservations every minute and
//! counts its own launches and terminations in between.

use std::collections::BTreeMap;

use super::io::{Action, OfferingError, Stage, Timer};
use super::step::Step;
use super::termination;
use crate::instance_types::{RESERVATION_LABELS, Reservation, type_label};
use crate::selection::LaunchRequest;
use nodecast_model::cluster::{NodeEnd, NodePhase};
use nodecast_model::domain::{Labels, NodeId, SimDuration, SimTime, Symbol, well_known};

/// A reservation that had no room although Karpenter thought so is left alone for this long.
const EXHAUSTED: SimDuration = SimDuration::from_secs(24 * 3_600);

/// Brings the room of every reservation up to date.
pub(super) fn refresh(step: &mut Step<'_>, now: SimTime) {
    if !step.karpenter.settings.reservations {
        return;
    }
    let (outside, karpenter) = (step.outside, &mut *step.karpenter);
    let leaves_out = karpenter.behaviour.leaves_out_ending_blocks;
    let ends =
        |reservation: &Reservation| leaves_out && reservation.block_ends.is_some_and(|end| end - BLOCK_LEAD <= now);
    let room =
        |reservation: &Reservation| if ends(reservation) { 0 } else { outside.reservation_room(reservation.id, now) };
    let known = karpenter.instance_types.iter().flatten().flat_map(|entry| &entry.offerings);
    if known
        .filter_map(|offering| offering.reservation.as_ref())
        .all(|reservation| reservation.free == room(reservation))
    {
        return;
    }
    karpenter.offerings_stale = true;
    for offering in karpenter.instance_types.change_offers().iter_mut().flatten().flat_map(|entry| &mut entry.offerings)
    {
        if let Some(reservation) = &mut offering.reservation {
            reservation.free = room(reservation);
        }
    }
}

/// Remembers the reservations of a request that had no room after all.
pub(super) fn remember_errors(step: &mut Step<'_>, now: SimTime, request: &LaunchRequest, errors: &[OfferingError]) {
    for error in errors.iter().filter(|error| error.reservation_full) {
        for wanted in &request.overrides {
            let named = wanted.instance_type == error.instance_type && wanted.zone == error.zone;
            if let Some(id) = wanted.reservation.filter(|_| named) {
                step.karpenter.unavailable.insert((wanted.instance_type, wanted.zone, id), now + EXHAUSTED);
            }
        }
    }
}

/// The nodes of a Capacity Block are removed so long before its end: ten minutes before EC2 begins to take its instances back.
const BLOCK_LEAD: SimDuration = SimDuration::from_secs(40 * 60);
/// Time between two looks whether a block ends.
const BLOCK_POLL: SimDuration = SimDuration::from_secs(60);

/// Karpenter starts: it will look at the blocks that are to end.
pub(super) fn begin(step: &mut Step<'_>, at: SimTime) {
    let first = ends(step).values().map(|&end| end - BLOCK_LEAD).filter(|&lead| lead + BLOCK_LEAD > at).min();
    if let Some(first) = first {
        step.wake(first.max(at), Timer::BlockLook);
    }
}

/// When each Capacity Block ends that some type is offered from.
fn ends(step: &Step<'_>) -> BTreeMap<Symbol, SimTime> {
    let offerings = step.karpenter.instance_types.iter().flatten().flat_map(|entry| &entry.offerings);
    let known = offerings.filter_map(|offering| offering.reservation);
    known.filter_map(|item| Some((item.id, item.block_ends?))).collect()
}

/// Nodes of blocks that are about to end are removed, and it looks again as long as there are such blocks, or blocks that will be.
pub(super) fn look_at_blocks(step: &mut Step<'_>, now: SimTime) {
    let ends = ends(step);
    let ending = |node: &NodeId| {
        let state = step.cluster.node(*node);
        let end = state.labels.get(well_known::CAPACITY_RESERVATION_ID).and_then(|id| ends.get(&id));
        state.phase < NodePhase::Terminating
            && state.deletion_requested.is_none()
            && end.is_some_and(|&end| end - BLOCK_LEAD <= now)
    };
    let nodes: Vec<NodeId> = step.karpenter.nodes.keys().copied().filter(ending).collect();
    for node in nodes {
        termination::begin(step, now, node, NodeEnd::Interrupted, "its Capacity Block ends in 40 minutes");
    }
    let next = ends.values().filter(|&&end| end > now).map(|&end| (end - BLOCK_LEAD).max(now + BLOCK_POLL)).min();
    if let Some(next) = next {
        step.wake(next, Timer::BlockLook);
    }
}

/// Whether a node with these labels is in a reservation that the class of its pool no longer selects.
pub(super) fn is_deselected(step: &Step<'_>, pool: Symbol, labels: &Labels) -> bool {
    let Some(id) = labels.get(well_known::CAPACITY_RESERVATION_ID) else { return false };
    let position = step.karpenter.pools.iter().position(|this_pool| this_pool.name == pool);
    let Some(types) = position.and_then(|at| step.karpenter.instance_types.get(at)) else { return false };
    let selected = types.iter().flat_map(|entry| &entry.offerings).filter_map(|offering| offering.reservation.as_ref());
    !selected.map(|selected| selected.id).any(|this_id| this_id == id)
}

/// The reservation `id` has ended: EC2 says of its instances that they are On-Demand, and so do the labels of those that stay.
pub(super) fn ended(step: &mut Step<'_>, now: SimTime, id: Symbol) {
    let stays_in = |node: &NodeId| {
        let state = step.cluster.node(*node);
        state.labels.get(well_known::CAPACITY_RESERVATION_ID) == Some(id)
            && state.phase < NodePhase::Terminating
            && state.deletion_requested.is_none()
    };
    let nodes: Vec<NodeId> = step.karpenter.nodes.keys().copied().filter(stays_in).collect();
    for node in nodes {
        let mut labels = step.cluster.node(node).labels.clone();
        label(&mut labels, None, false);
        labels.set(well_known::CAPACITY_TYPE, well_known::ON_DEMAND);
        step.act(Action::Relabel(node, Box::new(labels)));
        step.next(Stage::Relabelled(node));
    }
    step.changed(now);
}

/// Whether the reservation `id` is a Capacity Block.
pub(super) fn is_block(step: &Step<'_>, id: Option<Symbol>) -> bool {
    id.is_some_and(|id| ends(step).contains_key(&id))
}

/// The labels of a node in the reservation `id`, a Capacity Block or not; any other node has none of them.
pub(super) fn label(labels: &mut Labels, id: Option<Symbol>, block: bool) {
    for key in RESERVATION_LABELS {
        labels.remove(key);
    }
    if let Some(id) = id {
        labels.set(well_known::CAPACITY_TYPE, well_known::RESERVED);
        labels.set(well_known::CAPACITY_RESERVATION_ID, id);
        labels.set(well_known::CAPACITY_RESERVATION_TYPE, type_label(block));
        labels.set(well_known::CAPACITY_RESERVATION_INTERRUPTIBLE, well_known::FALSE);
    }
}
