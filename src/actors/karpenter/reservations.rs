//! Capacity reservations in Karpenter's launches: what it knows of their room, and where it launches into them.
//!
//! Source: Karpenter AWS provider v1.13 `pkg/providers/capacityreservation/provider.go`,
//! `pkg/providers/instance/instance.go`, `pkg/providers/launchtemplate/launchtemplate.go`.
//! Deviation: Karpenter learns of a reservation's room at once; upstream lists reservations every minute and counts its own
//! launches and terminations in between.

use crate::actors::context::Context;
use crate::actors::setup::Setup;
use crate::cloud::{CallError, CloudProvider, FleetErrorCode, FleetReply, ReservationUse};
use crate::domain::{HourlyRate, KarpenterVersion, Labels, NodeId, SimDuration, SimTime, Symbol, well_known};
use crate::policy::instance_types::{
    InstanceType, KnownReservation, RESERVATION_LABELS, Reservation, add_reservations,
};
use crate::policy::selection::LaunchRequest;

/// A reservation that had no room although Karpenter thought so is left alone for this long.
const EXHAUSTED: SimDuration = SimDuration::from_secs(24 * 3_600);

/// Whether the release knows reservations (feature gate ReservedCapacity, on by default).
const fn knows_reservations(version: KarpenterVersion) -> bool {
    matches!(version, KarpenterVersion::V1_13 | KarpenterVersion::V1_14)
}

/// Adds an offering for each reservation that a pool's node class selects.
pub(super) fn add(setup: &Setup, types: &mut [Vec<InstanceType>]) {
    if !knows_reservations(setup.versions.karpenter) {
        return;
    }
    let price = |name: Symbol| {
        let listed = setup.price_list.instance_type(name).and_then(|kind| kind.on_demand);
        listed.map_or(HourlyRate::ZERO, |price| price.rate)
    };
    let known: Vec<KnownReservation<'_>> = setup
        .cloud
        .reservations
        .iter()
        .map(|reservation| KnownReservation {
            id: reservation.id,
            instance_type: reservation.instance_type,
            zone: reservation.zone,
            zone_id: setup.region.zone_index(reservation.zone).map(|zone| setup.region.zones[zone].id),
            open: reservation.open,
            tags: &reservation.tags,
            on_demand: price(reservation.instance_type),
        })
        .collect();
    for (pool, types) in setup.node_pools.iter().zip(types) {
        if let Some(class) = setup.node_classes.iter().find(|class| class.name == pool.node_class) {
            add_reservations(types, class, &known);
        }
    }
}

/// Brings the room of every reservation up to date.
pub(super) fn refresh(context: &mut Context<'_>, now: SimTime) {
    if context.setup.cloud.reservations.is_empty() {
        return;
    }
    let (ec2, karpenter) = (&context.ec2, &mut context.karpenter);
    let room = |reservation: &Reservation| ec2.room_in_reservation(reservation.id, now);
    let known = karpenter.instance_types.iter().flatten().flat_map(|entry| &entry.offerings);
    if known.filter_map(|offering| offering.reservation.as_ref()).all(|own| own.free == room(own)) {
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

/// What an On-Demand launch says of reservations: where the release knows them, it leaves those alone that it has not chosen.
pub(super) fn preference(version: KarpenterVersion) -> ReservationUse {
    if knows_reservations(version) { ReservationUse::None } else { ReservationUse::Open }
}

/// Sends a launch request for reserved capacity.
pub(super) fn launch(
    context: &mut Context<'_>,
    now: SimTime,
    request: &LaunchRequest,
    node: NodeId,
    volume_gib: i64,
) -> Result<FleetReply, CallError> {
    let ids: Vec<Symbol> = request.overrides.iter().filter_map(|wanted| wanted.reservation).collect();
    let reply = context.cloud().launch_reserved(&ids, node, volume_gib, now)?;
    for error in reply.errors.iter().filter(|error| error.code == FleetErrorCode::ReservationCapacityExceeded) {
        for wanted in &request.overrides {
            let named = wanted.instance_type == error.instance_type && wanted.zone == error.zone;
            if let Some(id) = wanted.reservation.filter(|_| named) {
                let key = (wanted.instance_type, wanted.zone, id);
                context.karpenter.unavailable.insert(key, now + EXHAUSTED);
            }
        }
    }
    Ok(reply)
}

/// The labels of a node in the reservation `id`; any other node has none of them.
pub(super) fn label(labels: &mut Labels, id: Option<Symbol>) {
    for key in RESERVATION_LABELS {
        labels.remove(key);
    }
    if let Some(id) = id {
        labels.set(well_known::CAPACITY_TYPE, well_known::RESERVED);
        labels.set(well_known::CAPACITY_RESERVATION_ID, id);
        labels.set(well_known::CAPACITY_RESERVATION_TYPE, well_known::DEFAULT);
        labels.set(well_known::CAPACITY_RESERVATION_INTERRUPTIBLE, well_known::FALSE);
    }
}
