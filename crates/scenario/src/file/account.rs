//! `ec2.capacity_reservations` and `ec2.network`: what the account has before anything is launched.

use super::{Reading, ScenarioError};
use crate::cloud::CapacityReservation;
use crate::cloud::subnets::{KEPT_BY_AWS, Subnet};
use crate::reader::Fields;
use crate::schema::ec2::SubnetKeys;

/// A reservation, which ends after it begins.
pub(crate) fn reservation<'s>(
    reading: &Reading<'_, 's>,
    fields: Fields<'_, 's>,
    capacity_reservation: CapacityReservation,
) -> Result<CapacityReservation, ScenarioError> {
    if capacity_reservation.block && capacity_reservation.until.is_none() {
        return Err(reading
            .error(fields.at, "a Capacity Block needs `until`")
            .because("it never ends")
            .help("say when it ends, from the start of the run on"));
    }
    if let Some(node) = fields.get("per_hour").filter(|_| !capacity_reservation.block) {
        return Err(reading
            .error(node.at, "only a Capacity Block has a price of its own")
            .because("an ordinary reservation costs as much as On-Demand")
            .help("remove it, or set `reservation_type: capacity-block`"));
    }
    if let Some(node) = fields
        .get("until")
        .filter(|_| capacity_reservation.until.is_some_and(|until| until <= capacity_reservation.from))
    {
        return Err(reading
            .error(node.at, "this capacity reservation ends before it starts")
            .because(format!("it begins at {}", capacity_reservation.from - crate::domain::SimTime::ZERO))
            .help("count both from the start of the run"));
    }
    Ok(CapacityReservation { open: capacity_reservation.open && !capacity_reservation.block, ..capacity_reservation })
}

/// A subnet with the addresses that instances may have.
pub(crate) fn subnet(_: &Reading<'_, '_>, _: Fields<'_, '_>, subnet_keys: SubnetKeys) -> Result<Subnet, ScenarioError> {
    let addresses = subnet_keys.cidr.saturating_sub(KEPT_BY_AWS).saturating_sub(subnet_keys.in_use);
    Ok(Subnet { zone: subnet_keys.zone, addresses, public: subnet_keys.public })
}
