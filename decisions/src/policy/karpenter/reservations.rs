//! Capacity reservations in Karpenter's launches: what it knows of their room, and where it launches into them.
//!
//! Source: Karpenter AWS provider v1.13 `pkg/providers/capacityreservation/provider.go`,
//! `pkg/providers/instance/instance.go`, `pkg/providers/launchtemplate/launchtemplate.go`.
//! Deviation: Karpenter learns of a reservation's room at once; upstream lists reservations every minute and counts its own
//! launches and terminations in between.

use super::io::OfferingError;
use super::step::Step;
use crate::domain::{Labels, SimDuration, SimTime, Symbol, well_known};
use crate::policy::instance_types::{RESERVATION_LABELS, Reservation};
use crate::policy::selection::LaunchRequest;

/// A reservation that had no room although Karpenter thought so is left alone for this long.
const EXHAUSTED: SimDuration = SimDuration::from_secs(24 * 3_600);

/// Brings the room of every reservation up to date.
pub(super) fn refresh(step: &mut Step<'_>, now: SimTime) {
    if !step.own.settings.reservations {
        return;
    }
    let (outside, karpenter) = (step.outside, &mut *step.own);
    let room = |reservation: &Reservation| outside.reservation_room(reservation.id, now);
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

/// Remembers the reservations of a request that had no room after all.
pub(super) fn remember_errors(step: &mut Step<'_>, now: SimTime, request: &LaunchRequest, errors: &[OfferingError]) {
    for error in errors.iter().filter(|error| error.reservation_full) {
        for wanted in &request.overrides {
            let named = wanted.instance_type == error.instance_type && wanted.zone == error.zone;
            if let Some(id) = wanted.reservation.filter(|_| named) {
                step.own.unavailable.insert((wanted.instance_type, wanted.zone, id), now + EXHAUSTED);
            }
        }
    }
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
