//! Launches into capacity reservations, and what is left of each.

use std::sync::Arc;

use super::{Ec2, Instance, InstanceId, Pool};
use crate::api::ApiAction;
use crate::faults::FaultKind;
use crate::fleet::{CallError, FleetError, FleetErrorCode, FleetReply};
use crate::reservations::{CapacityReservation, ReservationUse};
use nodecast_model::domain::volumes::NodeVolumes;
use nodecast_model::domain::{NodeId, SimTime, Symbol};

impl Ec2 {
    /// The account's reservation called `id`, with its position.
    fn reservation(&self, id: Symbol) -> Option<(u32, &CapacityReservation)> {
        let position = self.settings.reservations.iter().position(|reservation| reservation.id == id)?;
        Some((position as u32, &self.settings.reservations[position]))
    }

    /// How many instances the reservation called `id` has room for.
    pub fn room_in_reservation(&self, id: Symbol, now: SimTime) -> u32 {
        self.reservation(id).map_or(0, |(position, _)| self.room_at(position, now))
    }

    /// How many instances the reservation at this position has room for.
    pub(super) fn room_at(&self, position: u32, now: SimTime) -> u32 {
        let Some(reservation) = self.settings.reservations.get(position as usize) else { return 0 };
        let used = self
            .instances
            .iter()
            .filter(|instance| instance.reservation == Some(position) && instance.terminated.is_none());
        if reservation.is_held(now) { reservation.count.saturating_sub(used.count() as u32) } else { 0 }
    }

    /// The id of the reservation that the launch of `id` named.
    pub fn targeted_reservation(&self, id: InstanceId) -> Option<Symbol> {
        match self.instance(id).how {
            ReservationUse::Targeted(position) => Some(self.settings.reservations.get(position as usize)?.id),
            ReservationUse::Open | ReservationUse::None => None,
        }
    }

    /// The open reservation that a launch from the pool of `reservation`'s kind uses, if one has room.
    pub(super) fn reservation_for(&self, pool: Pool, how: ReservationUse, now: SimTime) -> Option<u32> {
        match how {
            ReservationUse::None => None,
            ReservationUse::Targeted(position) => Some(position),
            ReservationUse::Open => {
                let candidates = self.settings.reservations.iter().zip(0..);
                let mut open = candidates.filter(|(reservation, _)| reservation.open && reservation.matches(pool));
                open.find(|&(_, position)| self.room_at(position, now) > 0).map(|(_, position)| position)
            }
        }
    }

    /// How many launches from `pool` go into open reservations, which is subject neither to capacity nor to quotas.
    ///
    /// Source: EC2 API reference, `CapacityReservationSpecification` (2026): with the preference `open`, the default, an instance can run in any
    /// open reservation with matching attributes.
    pub(super) fn room_in_open(&self, pool: Pool, how: ReservationUse, now: SimTime) -> u32 {
        if how != ReservationUse::Open {
            return 0;
        }
        let open = self.settings.reservations.iter().zip(0_u32..);
        let open = open.filter(|(reservation, _)| reservation.open && reservation.matches(pool));
        let room = open.map(|(_, position)| self.room_at(position, now)).fold(0, u32::saturating_add);
        if room > 0 && self.is_lost(pool.zone, now) { 0 } else { room }
    }

    /// Running instances that match an open reservation with room run in it, whenever they were launched, as they are billed.
    ///
    /// Source: EC2 API reference, `CreateCapacityReservation`, `InstanceMatchCriteria` (2026): instances with matching attributes run in an open
    /// reservation by themselves.
    pub(super) fn settle(&mut self, now: SimTime) {
        let settings = Arc::clone(&self.settings);
        let reservations = &settings.reservations;
        let room = |(capacity_reservation, position): (&CapacityReservation, u32)| {
            if capacity_reservation.open { self.room_at(position, now) } else { 0 }
        };
        let mut rooms: Vec<u32> = reservations.iter().zip(0_u32..).map(room).collect();
        if rooms.iter().all(|room| *room == 0) {
            return;
        }
        let is_inside = |instance: &Instance| {
            let reservation = instance.reservation.and_then(|position| reservations.get(position as usize));
            reservation.is_some_and(|reservation| reservation.is_held(now))
        };
        for instance in &mut self.instances {
            if instance.how != ReservationUse::Open || instance.terminating.is_some() || is_inside(instance) {
                continue;
            }
            let mut places = reservations.iter().zip(&mut rooms).zip(0_u32..);
            if let Some(((_, room), position)) =
                places.find(|((item, room), _)| **room > 0 && item.matches(instance.pool))
            {
                *room -= 1;
                instance.reservation = Some(position);
            }
        }
    }

    /// CreateFleet for one instance in any of these reservations, the first with room. What is reserved is not subject to
    /// capacity or quotas, but to the loss of its zone.
    ///
    /// # Errors
    /// As [`Ec2::create_fleet`].
    pub fn launch_reserved(
        &mut self,
        reservations: &[Symbol],
        node: NodeId,
        volumes: &NodeVolumes,
        now: SimTime,
    ) -> Result<FleetReply, CallError> {
        self.arrived += 1;
        self.take_tokens(ApiAction::CreateFleet, 1, now)?;
        self.server_error(ApiAction::CreateFleet, self.arrived, now)?;
        self.settle(now);
        let mut reply = FleetReply::default();
        for &id in reservations {
            let Some((position, reservation)) = self.reservation(id) else { continue };
            let pool = reservation.pool();
            match self.refusal(position, now) {
                None => {
                    let instance: InstanceId =
                        self.launch_with(pool, node, volumes, ReservationUse::Targeted(position), now);
                    reply.instances.push(instance);
                    return Ok(reply);
                }
                Some(code) => {
                    reply.errors.push(FleetError { code, instance_type: pool.instance_type, zone: pool.zone });
                }
            }
        }
        Ok(reply)
    }

    /// Why the reservation gives no instance now.
    fn refusal(&self, position: u32, now: SimTime) -> Option<FleetErrorCode> {
        let zone = self.settings.reservations[position as usize].zone;
        if self.is_lost(zone, now) {
            Some(FleetErrorCode::InsufficientInstanceCapacity)
        } else if self.room_at(position, now) == 0 {
            Some(FleetErrorCode::ReservationCapacityExceeded)
        } else if self.free_addresses(zone, now) == 0 {
            Some(FleetErrorCode::InsufficientFreeAddressesInSubnet)
        } else {
            None
        }
    }

    /// Whether a fault has taken the zone, and what is reserved in it.
    fn is_lost(&self, zone: Symbol, now: SimTime) -> bool {
        let lost = |kind| matches!(kind, FaultKind::ZoneOutage { zone: of, .. } if of == zone);
        self.settings.faults.iter().any(|fault| fault.is_on(now) && lost(fault.kind))
    }
}
