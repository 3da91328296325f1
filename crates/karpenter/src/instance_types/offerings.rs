//! Where a type can be had at what price.

use std::sync::Arc;

use super::releases;
use super::{InstanceType, Offering};
use nodecast_model::catalog::{Region, RegionType};
use nodecast_model::domain::node_pool::AmiFamily;
use nodecast_model::domain::requirements::Operator;
use nodecast_model::domain::symbol::well_known;
use nodecast_model::domain::{HourlyRate, KarpenterVersion, NodeClass, Requirement, Requirements, Symbol};

/// The positions of the zones that offer the type and that the node class reaches.
pub(super) fn zones<'a>(
    region: &'a Region,
    entry: &'a RegionType,
    class: &'a NodeClass,
) -> impl Iterator<Item = usize> + 'a {
    entry.zones_offered().filter(|&zone| class.zones.is_empty() || class.zones.contains(&region.zones[zone].name))
}

/// One offering for each zone and capacity type, at the catalog's Spot prices and the On-Demand prices of `price_list`. One whose price is not known cannot be launched.
/// Types that images of the node class do not start on have none.
///
/// Source: AWS provider v1.13 `pkg/providers/instancetype/offering/offering.go`.
pub(super) fn of_catalog(
    price_list: &Region,
    region: &Region,
    entry: &RegionType,
    class: &NodeClass,
    version: KarpenterVersion,
) -> Vec<Offering> {
    let labelled = releases::labels_zone_ids(version);
    let mut offerings = Vec::new();
    if !runs_on(entry, class) {
        return offerings;
    }
    let on_demand = price_list.instance_type(entry.facts.name).and_then(RegionType::karpenter_price);
    for zone in zones(region, entry, class) {
        let mut add = |capacity_type, price: Option<HourlyRate>| {
            offerings.push(Offering {
                zone: region.zones[zone].name,
                zone_id: labelled.then_some(region.zones[zone].id),
                capacity_type,
                price: price.unwrap_or_default(),
                available: price.is_some(),
                reservation: None,
                overlay: None,
            });
        };
        add(well_known::ON_DEMAND, on_demand);
        if entry.facts.spot {
            add(well_known::SPOT, entry.spot(zone).map(|price| price.rate));
        }
    }
    offerings
}

/// Whether images of the node class start on the type: AL2023 does not support a1.
///
/// Source: AWS provider v1.13 `pkg/providers/instancetype/compatibility/compatibility.go`.
fn runs_on(entry: &RegionType, class: &NodeClass) -> bool {
    class.ami_family != AmiFamily::AL2023 || entry.facts.family.as_str() != "a1"
}

/// The type's On-Demand price; the highest there is if it has none.
pub(super) fn on_demand_price(entry: &InstanceType) -> HourlyRate {
    let on_demand = |offering: &&Offering| offering.capacity_type == well_known::ON_DEMAND && offering.available;
    let price = entry.offerings.iter().filter(on_demand).map(|offering| offering.price).min();
    price.unwrap_or(HourlyRate::from_nanos(i64::MAX))
}

/// Brings prices and availability up to date. `types` are as [`super::instance_types`] made them; `state` gives, for the
/// name of a type and one of its offerings, the price now known (`None` for none) and whether a recent capacity error
/// speaks against it. Reserved offerings keep their price.
pub fn refresh_offerings(
    types: &mut [InstanceType],
    version: KarpenterVersion,
    state: impl Fn(Symbol, &Offering) -> (Option<HourlyRate>, bool),
) {
    for entry in types {
        for offering in &mut entry.offerings {
            refresh_offering(entry.name, offering, &state);
        }
        if !releases::has_fixed_places(version) {
            narrow_to_available(Arc::make_mut(&mut entry.requirements), &entry.offerings, version);
        }
    }
}

/// The same of one offering of the type of this name, for releases whose types' labels do not depend on availability.
pub fn refresh_offering(
    name: Symbol,
    offering: &mut Offering,
    state: impl Fn(Symbol, &Offering) -> (Option<HourlyRate>, bool),
) {
    let (price, unavailable) = state(name, offering);
    offering.available = price.is_some() && !unavailable;
    if let (Some(price), None) = (price, offering.reservation) {
        offering.price = offering.overlay.map_or(price, |overlay| overlay.apply(price));
    }
}

/// States as zones and capacity types those of the available offerings, as releases before v1 do.
pub(super) fn narrow_to_available(requirements: &mut Requirements, offerings: &[Offering], version: KarpenterVersion) {
    let capacity_type = releases::capacity_type_key(version);
    let available = || offerings.iter().filter(|offering| offering.available);
    requirements.remove(well_known::ZONE);
    requirements.remove(capacity_type);
    let zones = available().map(|offering| offering.zone);
    requirements.add(Requirement::new(well_known::ZONE, Operator::In, zones));
    let capacity_types = available().map(|offering| offering.capacity_type);
    requirements.add(Requirement::new(capacity_type, Operator::In, capacity_types));
}
