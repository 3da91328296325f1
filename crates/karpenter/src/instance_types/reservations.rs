//! Capacity reservations as Karpenter sees them: those that a node class selects become offerings of their own.
//!
//! Source: AWS provider v1.13 `pkg/providers/capacityreservation`, `pkg/providers/instancetype/offering/offering.go`,
//! `pkg/apis/v1/ec2nodeclass.go`.

use std::sync::Arc;

use super::{InstanceType, Offering, Reservation};
use nodecast_model::domain::node_pool::ReservationTerm;
use nodecast_model::domain::requirements::Operator;
use nodecast_model::domain::symbol::well_known;
use nodecast_model::domain::{HourlyRate, Labels, NodeClass, Requirement, SimTime, Symbol};

/// A capacity reservation of the account.
#[derive(Clone, Copy, Debug)]
pub struct KnownReservation<'a> {
    /// Its id.
    pub id: Symbol,
    /// Instance type.
    pub instance_type: Symbol,
    /// Zone.
    pub zone: Symbol,
    /// Zone id, where it is known.
    pub zone_id: Option<Symbol>,
    /// Whether matching instances use it by themselves.
    pub open: bool,
    /// When it ends, if it is a Capacity Block.
    pub block_ends: Option<SimTime>,
    /// Its tags.
    pub tags: &'a Labels,
    /// The On-Demand price of what it holds.
    pub on_demand: HourlyRate,
}

/// A reserved offering's price is this fraction of On-Demand: cheaper than anything else, and in the same order.
const PRICE_FRACTION: i64 = 10_000_000;

/// Whether `class` selects the reservation: some term of its `capacityReservationSelectorTerms` fits in everything stated.
pub fn selects(class: &NodeClass, reservation: &KnownReservation<'_>) -> bool {
    class.capacity_reservations.iter().any(|term| fits(term, reservation))
}

fn fits(term: &ReservationTerm, reservation: &KnownReservation<'_>) -> bool {
    let tagged = |(key, value): (Symbol, Symbol)| {
        let tag = reservation.tags.get(key);
        // `*` stands for any value.
        tag.is_some_and(|tag| tag == value || value.as_str() == "*")
    };
    term.id.is_none_or(|id| id == reservation.id)
        && term.open.is_none_or(|open| open == reservation.open)
        && term.tags.iter().all(tagged)
}

/// Adds an offering for each reservation that the node class selects, without room until it is brought up to date.
pub fn add_reservations(types: &mut [InstanceType], class: &NodeClass, reservations: &[KnownReservation<'_>]) {
    for reservation in reservations.iter().filter(|reservation| selects(class, reservation)) {
        let Some(entry) = types.iter_mut().find(|entry| entry.name == reservation.instance_type) else { continue };
        if !class.zones.is_empty() && !class.zones.contains(&reservation.zone) {
            continue;
        }
        entry.offerings.push(Offering {
            zone: reservation.zone,
            zone_id: reservation.zone_id,
            capacity_type: well_known::RESERVED,
            price: reservation.on_demand.scaled(1, PRICE_FRACTION),
            available: false,
            reservation: Some(Reservation { id: reservation.id, free: 0, block_ends: reservation.block_ends }),
            overlay: None,
        });
        state_also(entry, well_known::CAPACITY_TYPE, well_known::RESERVED);
        state_also(entry, well_known::CAPACITY_RESERVATION_ID, reservation.id);
        state_also(entry, well_known::CAPACITY_RESERVATION_TYPE, type_label(reservation.block_ends.is_some()));
        state_also(entry, well_known::CAPACITY_RESERVATION_INTERRUPTIBLE, well_known::FALSE);
    }
}

/// What the label for the type of a reservation says.
pub fn type_label(block: bool) -> Symbol {
    if block { Symbol::new("capacity-block") } else { well_known::DEFAULT }
}

/// Adds a value to those that a label of the type's nodes can have.
fn state_also(entry: &mut InstanceType, key: Symbol, value: Symbol) {
    let known = entry.requirements.get(key).filter(|requirement| !requirement.complement);
    let mut values: Vec<Symbol> =
        known.map(|requirement| requirement.values.iter().copied().collect()).unwrap_or_default();
    values.push(value);
    let requirements = Arc::make_mut(&mut entry.requirements);
    requirements.remove(key);
    requirements.add(Requirement::new(key, Operator::In, values));
}

/// The keys of labels that only nodes in a reservation have.
pub const RESERVATION_LABELS: [Symbol; 3] = [
    well_known::CAPACITY_RESERVATION_ID,
    well_known::CAPACITY_RESERVATION_TYPE,
    well_known::CAPACITY_RESERVATION_INTERRUPTIBLE,
];

#[cfg(test)]
mod tests {
    use super::{KnownReservation, add_reservations, selects};
    use crate::instance_types::{ProviderSettings, instance_types};
    use crate::testing;
    use nodecast_model::domain::node_pool::ReservationTerm;
    use nodecast_model::domain::symbol::well_known;
    use nodecast_model::domain::{HourlyRate, Labels, NodeClass, NodePool, Symbol};

    fn reservation(tags: &Labels) -> KnownReservation<'_> {
        KnownReservation {
            id: Symbol::new("cr-1"),
            instance_type: Symbol::new("m5.large"),
            zone: Symbol::new("us-east-1a"),
            zone_id: None,
            open: false,
            block_ends: None,
            tags,
            on_demand: HourlyRate::from_nanos(96_000_000),
        }
    }

    fn class(term: ReservationTerm) -> NodeClass {
        NodeClass { capacity_reservations: vec![term], ..NodeClass::named("default") }
    }

    #[test]
    fn a_term_selects_by_everything_that_it_states() {
        let tags = Labels::new().with("team", Symbol::new("web"));
        let one = reservation(&tags);
        let by_tag = |value: &str| {
            class(ReservationTerm {
                tags: Labels::new().with("team", Symbol::new(value)),
                ..ReservationTerm::default()
            })
        };
        assert!(selects(&by_tag("web"), &one) && selects(&by_tag("*"), &one) && !selects(&by_tag("db"), &one));
        let by_id = class(ReservationTerm { id: Some(Symbol::new("cr-1")), ..ReservationTerm::default() });
        assert!(selects(&by_id, &one));
        let open = class(ReservationTerm { open: Some(true), ..ReservationTerm::default() });
        assert!(!selects(&open, &one));
        assert!(!selects(&NodeClass::named("default"), &one), "nothing is selected without a term");
    }

    #[test]
    fn reservation_offering_costs_ten_millionth_of_on_demand() {
        let tags = Labels::new();
        let class = class(ReservationTerm { id: Some(Symbol::new("cr-1")), ..ReservationTerm::default() });
        let region = testing::region(&["m5.large", "c5.large"]);
        let mut types = instance_types(&region, &class, &NodePool::named("default"), ProviderSettings::default());
        add_reservations(&mut types, &class, &[reservation(&tags)]);
        let entry = types.iter().find(|entry| entry.name.as_str() == "m5.large").unwrap();
        let reserved = entry.offerings.iter().find(|offering| offering.reservation.is_some()).unwrap();
        assert_eq!((reserved.price.as_nanos(), reserved.available), (10, false));
        assert!(entry.requirements.get(well_known::CAPACITY_TYPE).unwrap().has(well_known::RESERVED));
        assert!(entry.requirements.get(well_known::CAPACITY_RESERVATION_ID).unwrap().has(Symbol::new("cr-1")));
    }
}
