//! The price by which Karpenter orders instance types.

use crate::instance_types::{InstanceType, Offering};
use nodecast_model::domain::labels::normalized_key;
use nodecast_model::domain::requirements::{Operator, Requirement};
use nodecast_model::domain::symbol::well_known;
use nodecast_model::domain::{HourlyRate, Labels, Requirements, Symbol};

/// What requirements or labels say of offerings, looked up once for many of them. What they leave open is allowed; what asks
/// for a capacity reservation allows nothing else.
///
/// Source: Karpenter core v1.13 `pkg/cloudprovider/types.go`, `Offerings.Compatible`.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'r> {
    zone: Term<'r>,
    zone_id: Term<'r>,
    capacity_type: Term<'r>,
    reservation: Term<'r>,
}

/// Values that are looked at side by side: enough for capacity types and the zones of most regions.
const FEW: usize = 8;

/// What is said of one label.
#[derive(Clone, Copy, Debug)]
enum Term<'r> {
    Nothing,
    Is(Symbol),
    /// One of a few; the first stands in the places that are left over.
    IsOneOf([Symbol; FEW]),
    Meets(&'r Requirement),
}

impl<'r> Term<'r> {
    /// What a requirement says.
    fn from_requirement(requirement: &'r Requirement) -> Self {
        let bounded = requirement.gte.is_some() || requirement.lte.is_some();
        let values = requirement.values.len();
        match requirement.values.first() {
            Some(&first) if values <= FEW && !requirement.complement && !bounded => {
                if values == 1 {
                    return Self::Is(first);
                }
                let mut few = [first; FEW];
                few.iter_mut().zip(&requirement.values).for_each(|(place, &value)| *place = value);
                Self::IsOneOf(few)
            }
            _ => Self::Meets(requirement),
        }
    }

    fn allows(self, value: Symbol) -> bool {
        match self {
            Self::Nothing => true,
            Self::Is(item) => item == value,
            Self::IsOneOf(few) => few.contains(&value),
            Self::Meets(requirement) => requirement.has(value),
        }
    }

    /// Whether an offering without the label will do.
    fn allows_none(self) -> bool {
        match self {
            Self::Nothing => true,
            Self::Is(_) | Self::IsOneOf(_) => false,
            Self::Meets(requirement) => matches!(requirement.operator(), Operator::NotIn | Operator::DoesNotExist),
        }
    }
}

impl Terms<'static> {
    /// The terms of a node with these labels; `None` if an old and a new name of one label disagree, so that no offering can
    /// be meant.
    pub fn of_labels(labels: &Labels) -> Option<Self> {
        let mut terms = Self {
            zone: Term::Nothing,
            zone_id: Term::Nothing,
            capacity_type: Term::Nothing,
            reservation: Term::Nothing,
        };
        for (key, value) in labels.iter() {
            let term = match normalized_key(key) {
                well_known::ZONE => &mut terms.zone,
                well_known::ZONE_ID => &mut terms.zone_id,
                well_known::CAPACITY_TYPE => &mut terms.capacity_type,
                well_known::CAPACITY_RESERVATION_ID => &mut terms.reservation,
                _ => continue,
            };
            if !term.allows(value) {
                return None;
            }
            *term = Term::Is(value);
        }
        Some(terms)
    }
}

impl<'r> Terms<'r> {
    /// The terms of requirements that speak of the capacity type under `capacity_type_key`.
    pub fn new(requirements: &'r Requirements, capacity_type_key: Symbol) -> Self {
        let term = |key| requirements.get(key).map_or(Term::Nothing, Term::from_requirement);
        Self {
            zone: term(well_known::ZONE),
            zone_id: term(well_known::ZONE_ID),
            capacity_type: term(capacity_type_key),
            reservation: term(well_known::CAPACITY_RESERVATION_ID),
        }
    }

    /// Whether the terms leave offerings of a capacity type.
    pub fn allow_capacity_type(&self, capacity_type: Symbol) -> bool {
        self.capacity_type.allows(capacity_type)
    }

    /// Whether `offering` is within the terms.
    pub fn allow(&self, offering: &Offering) -> bool {
        let reservation = match offering.reservation {
            Some(reservation) => self.reservation.allows(reservation.id),
            None => self.reservation.allows_none(),
        };
        self.capacity_type.allows(offering.capacity_type)
            && self.zone.allows(offering.zone)
            && offering.zone_id.is_none_or(|id| self.zone_id.allows(id))
            && reservation
    }
}

/// The lowest price of an available offering within the terms; `None` without one, which sorts behind every price.
///
/// Source: Karpenter core v1.13 `pkg/cloudprovider/types.go`, `OrderByPrice`.
pub fn cheapest(entry: &InstanceType, terms: &Terms<'_>) -> Option<HourlyRate> {
    let open = |offering: &&Offering| offering.available && terms.allow(offering);
    entry.offerings.iter().filter(open).map(|offering| offering.price).min()
}

/// The most that a launch within the terms may cost: the highest price among the available offerings of the first
/// capacity type that there is, of reserved, Spot and On-Demand. `None` if there is no offering.
///
/// Source: Karpenter core v1.13 `pkg/cloudprovider/types.go`, `Offerings.WorstLaunchPrice`.
pub fn worst_launch(entry: &InstanceType, terms: &Terms<'_>) -> Option<HourlyRate> {
    let order = [well_known::RESERVED, well_known::SPOT, well_known::ON_DEMAND];
    let mut dearest = [None; 3];
    for offering in entry.offerings.iter().filter(|offering| offering.available && terms.allow(offering)) {
        if let Some(place) = order.iter().position(|order| *order == offering.capacity_type) {
            dearest[place] = dearest[place].max(Some(offering.price));
        }
    }
    dearest.into_iter().flatten().next()
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{requirements, shape};
    use super::{Terms, cheapest, worst_launch};
    use nodecast_model::domain::{HourlyRate, well_known};

    #[test]
    fn only_available_allowed_offerings_have_price() {
        let entry = shape("m5.large", 2).on_demand("a", 96).spot("a", 40).spot("b", 30).unavailable().build();
        let price = |text: &str| {
            let wanted = requirements(text);
            let terms = Terms::new(&wanted, well_known::CAPACITY_TYPE);
            cheapest(&entry, &terms).map(|rate| rate.as_nanos() / 1_000_000)
        };
        assert_eq!(price(""), Some(40));
        assert_eq!(price("zone=b"), None);
        assert_eq!(price("capacity=on-demand"), Some(96));
    }

    #[test]
    fn value_set_allows_exactly_its_members() {
        let zones = ["b", "c", "d", "e", "f", "g", "h", "i", "j", "k"];
        for many in 2..=zones.len() {
            let wanted = requirements(&format!("zone={}", zones[..many].join(",")));
            let terms = Terms::new(&wanted, well_known::CAPACITY_TYPE);
            let is_open = |zone| cheapest(&shape("m5.large", 2).spot(zone, 40).build(), &terms).is_some();
            assert!(zones[..many].iter().all(|zone| is_open(zone)), "{many}");
            assert!(!is_open("a") && zones[many..].iter().all(|zone| !is_open(zone)), "{many}");
        }
    }

    #[test]
    fn worst_launch_price_uses_first_capacity_type() {
        let entry = shape("m5.large", 2).on_demand("a", 96).spot("a", 40).spot("b", 45).build();
        let worst = |text: &str| {
            let wanted = requirements(text);
            worst_launch(&entry, &Terms::new(&wanted, well_known::CAPACITY_TYPE))
        };
        assert_eq!(worst(""), Some(HourlyRate::from_nanos(45_000_000)));
        assert_eq!(worst("zone=a"), Some(HourlyRate::from_nanos(40_000_000)));
        assert_eq!(worst("capacity=on-demand"), Some(HourlyRate::from_nanos(96_000_000)));
        assert_eq!(worst("zone=c"), None);
    }
}
