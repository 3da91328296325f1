//! The price by which Karpenter orders instance types.

use crate::domain::requirements::{Operator, Requirement};
use crate::domain::symbol::well_known;
use crate::domain::{HourlyRate, Requirements, Symbol};
use crate::policy::instance_types::{InstanceType, Offering};

/// Whether `offering` is within `requirements`, which speak of the capacity type under `capacity_type_key`. What they leave
/// open is allowed; one that asks for a capacity reservation allows nothing else.
///
/// Source: Karpenter core v1.13 `pkg/cloudprovider/types.go`, `Offerings.Compatible`.
pub fn is_compatible(requirements: &Requirements, capacity_type_key: Symbol, offering: &Offering) -> bool {
    Terms::new(requirements, capacity_type_key).allow(offering)
}

/// What requirements say of offerings, looked up once for many of them.
#[derive(Clone, Copy)]
struct Terms<'r> {
    zone: Option<&'r Requirement>,
    zone_id: Option<&'r Requirement>,
    capacity_type: Option<&'r Requirement>,
    reservation: Option<&'r Requirement>,
}

impl<'r> Terms<'r> {
    fn new(requirements: &'r Requirements, capacity_type_key: Symbol) -> Self {
        Self {
            zone: requirements.get(well_known::ZONE),
            zone_id: requirements.get(well_known::ZONE_ID),
            capacity_type: requirements.get(capacity_type_key),
            reservation: requirements.get(well_known::CAPACITY_RESERVATION_ID),
        }
    }

    /// See [`is_compatible`].
    fn allow(&self, offering: &Offering) -> bool {
        let allows = |own: Option<&Requirement>, value| own.is_none_or(|requirement| requirement.has(value));
        let reservation = self.reservation.is_none_or(|requirement| match offering.reservation {
            Some(reservation) => requirement.has(reservation.id),
            None => matches!(requirement.operator(), Operator::NotIn | Operator::DoesNotExist),
        });
        allows(self.zone, offering.zone)
            && offering.zone_id.is_none_or(|id| allows(self.zone_id, id))
            && allows(self.capacity_type, offering.capacity_type)
            && reservation
    }
}

/// The lowest price of an available offering within `requirements`; `None` without one, which sorts behind every price.
///
/// Source: Karpenter core v1.13 `pkg/cloudprovider/types.go`, `OrderByPrice`.
pub fn cheapest(entry: &InstanceType, requirements: &Requirements) -> Option<HourlyRate> {
    let terms = Terms::new(requirements, well_known::CAPACITY_TYPE);
    let open = |offering: &&Offering| offering.available && terms.allow(offering);
    entry.offerings.iter().filter(open).map(|offering| offering.price).min()
}

/// The most that a launch within `requirements` may cost: the highest price among the available offerings of the first
/// capacity type that there is, of reserved, Spot and On-Demand. `None` if there is no offering.
///
/// Source: Karpenter core v1.13 `pkg/cloudprovider/types.go`, `Offerings.WorstLaunchPrice`.
pub fn worst_launch(entry: &InstanceType, requirements: &Requirements) -> Option<HourlyRate> {
    let terms = Terms::new(requirements, well_known::CAPACITY_TYPE);
    let order = [well_known::RESERVED, well_known::SPOT, well_known::ON_DEMAND];
    let mut dearest = [None; 3];
    for offering in entry.offerings.iter().filter(|offering| offering.available && terms.allow(offering)) {
        if let Some(place) = order.iter().position(|own| *own == offering.capacity_type) {
            dearest[place] = dearest[place].max(Some(offering.price));
        }
    }
    dearest.into_iter().flatten().next()
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{requirements, shape};
    use super::{cheapest, worst_launch};
    use crate::domain::HourlyRate;

    #[test]
    fn only_what_is_available_and_allowed_has_a_price() {
        let entry = shape("m5.large", 2).on_demand("a", 96).spot("a", 40).spot("b", 30).unavailable().build();
        let price = |text: &str| cheapest(&entry, &requirements(text)).map(|rate| rate.as_nanos() / 1_000_000);
        assert_eq!(price(""), Some(40));
        assert_eq!(price("zone=b"), None);
        assert_eq!(price("capacity=on-demand"), Some(96));
    }

    #[test]
    fn the_worst_launch_price_is_that_of_the_first_capacity_type_present() {
        let entry = shape("m5.large", 2).on_demand("a", 96).spot("a", 40).spot("b", 45).build();
        let worst = |text: &str| worst_launch(&entry, &requirements(text));
        assert_eq!(worst(""), Some(HourlyRate::from_nanos(45_000_000)));
        assert_eq!(worst("zone=a"), Some(HourlyRate::from_nanos(40_000_000)));
        assert_eq!(worst("capacity=on-demand"), Some(HourlyRate::from_nanos(96_000_000)));
        assert_eq!(worst("zone=c"), None);
    }
}
