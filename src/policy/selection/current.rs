//! The launch request of v1.

use std::collections::BTreeSet;

use smallvec::SmallVec;

use super::{
    AllocationStrategy, Candidate, Filter, LaunchRequest, LaunchView, LeftOut, SelectionError, note, overrides,
    preferred_capacity_type, truncate,
};
use crate::domain::Symbol;
use crate::domain::symbol::well_known;
use crate::policy::instance_types::Offering;
use crate::policy::packing::MinValuesPolicy;

/// How many instance types CreateFleet is given.
const LAUNCH_LIMIT: usize = 60;

/// Source: AWS provider v1.13 `pkg/providers/instance/instance.go`, `Create` and `pkg/providers/instance/filter/filter.go`.
/// Deviation: capacity blocks and interruptible reservations are not distinguished from other reservations; NodeOverlay
/// (alpha) is not modelled.
pub(super) fn select(view: &LaunchView<'_>) -> Result<LaunchRequest, SelectionError> {
    let mut left_out = Vec::new();
    let mut candidates = view.compatible_available(&mut left_out)?;
    prefer_reserved(view, &mut candidates, &mut left_out);
    leave_out_exotic(view, &mut candidates, &mut left_out);
    leave_out_dear_spot(view, &mut candidates, &mut left_out);
    if candidates.is_empty() {
        return Err(SelectionError::NoInstanceTypes(Filter::SpotOffering));
    }
    candidates.sort_by_cached_key(|candidate| (candidate.cheapest(), candidate.entry.name));
    truncate(&mut candidates, LAUNCH_LIMIT, &mut left_out);
    if view.min_values == MinValuesPolicy::Strict {
        check_min_values(view, &candidates)?;
    }
    let capacity_type = preferred_capacity_type(&candidates, &[well_known::RESERVED, well_known::SPOT]);
    let strategy = if capacity_type == well_known::SPOT {
        AllocationStrategy::PriceCapacityOptimized
    } else {
        AllocationStrategy::LowestPrice
    };
    Ok(LaunchRequest {
        capacity_type,
        strategy,
        tenancy: tenancy(view),
        overrides: overrides(&candidates, capacity_type)?,
        left_out,
        inflexible: view.is_inflexible(capacity_type, candidates.len()),
    })
}

/// If a reserved offering is open, keeps only the types that have one, and of these in each zone the offering with the
/// most free instances.
fn prefer_reserved(view: &LaunchView<'_>, candidates: &mut Vec<Candidate<'_>>, left_out: &mut Vec<LeftOut>) {
    if !view.allows(well_known::RESERVED) {
        return;
    }
    let is_reserved = |offering: &&&Offering| offering.capacity_type == well_known::RESERVED;
    let before = candidates.len();
    if candidates.iter().any(|candidate| candidate.offerings.iter().any(|offering| is_reserved(&offering))) {
        for candidate in candidates.iter_mut() {
            let mut best: SmallVec<[&Offering; 6]> = SmallVec::new();
            for offering in candidate.offerings.iter().filter(is_reserved) {
                let free = |offering: &Offering| offering.reservation.map_or(0, |reservation| reservation.free);
                match best.iter_mut().find(|other| other.zone == offering.zone) {
                    Some(other) if free(offering) > free(other) => *other = offering,
                    Some(_) => {}
                    None => best.push(offering),
                }
            }
            candidate.offerings = best;
        }
        candidates.retain(|candidate| !candidate.offerings.is_empty());
    }
    note(left_out, Filter::ReservedOffering, before - candidates.len());
}

/// Leaves bare metal and accelerators out, unless nothing else is left or a requirement has `minValues`.
fn leave_out_exotic(view: &LaunchView<'_>, candidates: &mut Vec<Candidate<'_>>, left_out: &mut Vec<LeftOut>) {
    let before = candidates.len();
    if !view.requirements.has_min_values() && candidates.iter().any(|candidate| !candidate.exotic) {
        candidates.retain(|candidate| !candidate.exotic);
    }
    note(left_out, Filter::Exotic, before - candidates.len());
}

/// Where both Spot and On-Demand are allowed, drops the Spot offerings that cost more than the cheapest On-Demand one. A
/// type leaves with its last offering. Skipped if a requirement has `minValues`.
fn leave_out_dear_spot(view: &LaunchView<'_>, candidates: &mut Vec<Candidate<'_>>, left_out: &mut Vec<LeftOut>) {
    let mixed = view.allows(well_known::ON_DEMAND) && view.allows(well_known::SPOT);
    if view.requirements.has_min_values() || !mixed {
        return;
    }
    let on_demand = candidates
        .iter()
        .flat_map(|candidate| &candidate.offerings)
        .filter(|offering| offering.capacity_type == well_known::ON_DEMAND);
    let Some(cheapest) = on_demand.map(|offering| offering.price).min() else { return };
    let before = candidates.len();
    for candidate in candidates.iter_mut() {
        let dear = |offering: &Offering| offering.capacity_type == well_known::SPOT && offering.price > cheapest;
        candidate.offerings.retain(|offering| !dear(offering));
    }
    candidates.retain(|candidate| !candidate.offerings.is_empty());
    note(left_out, Filter::SpotOffering, before - candidates.len());
}

/// Source: Karpenter core v1.13 `pkg/cloudprovider/types.go`, `SatisfiesMinValues`.
fn check_min_values(view: &LaunchView<'_>, candidates: &[Candidate<'_>]) -> Result<(), SelectionError> {
    for requirement in view.requirements {
        let Some(wanted) = requirement.min_values else { continue };
        let stated = candidates.iter().filter_map(|candidate| candidate.entry.requirements.get(requirement.key));
        let values: BTreeSet<Symbol> = stated.flat_map(|own| own.values.iter().copied()).collect();
        if values.len() < wanted as usize {
            let (key, found, types) = (requirement.key, values.len(), candidates.len());
            return Err(SelectionError::MinValues { key, wanted, found, types });
        }
    }
    Ok(())
}

/// Shared tenancy if the requirements allow it.
fn tenancy(view: &LaunchView<'_>) -> Symbol {
    match view.requirements.get(well_known::INSTANCE_TENANCY) {
        Some(requirement) if !requirement.has(well_known::DEFAULT) => Symbol::new("dedicated"),
        _ => well_known::DEFAULT,
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{Shape, launch, launch_with, names, shape};
    use super::super::{AllocationStrategy, Filter, SelectionError};
    use crate::domain::requirements::Operator;
    use crate::domain::symbol::well_known;
    use crate::domain::{KarpenterVersion, Requirement, Resources, Symbol};

    const V1: KarpenterVersion = KarpenterVersion::V1_13;

    /// Sixty-five types, the n-th at a price of n.
    fn many() -> Vec<Shape> {
        (1..=65).map(|n| shape(&format!("m{}.{n}xlarge", n / 7), 4).on_demand("a", n)).collect()
    }

    #[test]
    fn spot_is_asked_for_before_on_demand_and_types_go_by_price_then_name() {
        let types = [
            shape("m5.large", 2).on_demand("a", 96).spot("a", 40).spot("b", 50),
            shape("c5.large", 2).on_demand("a", 85).spot("b", 40),
            shape("t3.large", 2).on_demand("a", 83),
        ];
        let request = launch(V1, "", 1_000, &types).unwrap();
        assert_eq!(request.capacity_type, well_known::SPOT);
        assert_eq!(request.strategy, AllocationStrategy::PriceCapacityOptimized);
        assert_eq!(names(&request), ["c5.large b", "m5.large a", "m5.large b"]);
        assert_eq!(request.tenancy, well_known::DEFAULT);
        let request = launch(V1, "capacity=on-demand", 1_000, &types).unwrap();
        assert_eq!(request.strategy, AllocationStrategy::LowestPrice);
        assert_eq!(names(&request), ["t3.large a", "c5.large a", "m5.large a"]);
        assert!(!request.inflexible);
    }

    #[test]
    fn on_demand_is_used_when_no_spot_offering_is_available() {
        let types = [shape("m5.large", 2).on_demand("a", 96).spot("a", 40).unavailable()];
        let request = launch(V1, "", 1_000, &types).unwrap();
        assert_eq!((request.capacity_type, request.inflexible), (well_known::ON_DEMAND, true));
    }

    #[test]
    fn what_is_too_small_or_unavailable_or_not_allowed_is_left_out() {
        let types = [
            shape("m5.large", 2).on_demand("a", 96),
            shape("m5.xlarge", 4).on_demand("a", 192).unavailable(),
            shape("m5.2xlarge", 8).on_demand("b", 384),
        ];
        let error = launch(V1, "zone=a", 3_000, &types).unwrap_err();
        assert_eq!(error, SelectionError::NoInstanceTypes(Filter::CompatibleAvailable));
        let request = launch(V1, "zone=a", 1_000, &types).unwrap();
        assert_eq!(names(&request), ["m5.large a"]);
        assert_eq!((request.left_out[0].by, request.left_out[0].types), (Filter::CompatibleAvailable, 2));
    }

    #[test]
    fn metal_and_accelerators_are_the_last_resort() {
        let types = [
            shape("g5.xlarge", 4).gpus(1).on_demand("a", 100),
            shape("m5.metal", 96).on_demand("a", 90),
            shape("m5.24xlarge", 96).on_demand("a", 5_000),
        ];
        assert_eq!(names(&launch(V1, "", 1_000, &types).unwrap()), ["m5.24xlarge a"]);
        assert_eq!(names(&launch(V1, "", 1_000, &types[..2]).unwrap()), ["m5.metal a", "g5.xlarge a"]);
        let any_type = Requirement::new(well_known::INSTANCE_TYPE, Operator::Exists, []).with_min_values(Some(3));
        let request = launch_with(V1, &[any_type].into_iter().collect(), &Resources::new(), &types).unwrap();
        assert_eq!(request.overrides.len(), 3);
    }

    #[test]
    fn spot_dearer_than_the_cheapest_on_demand_is_dropped_and_equal_is_kept() {
        let types = [
            shape("m5.large", 2).on_demand("a", 96).spot("a", 96).spot("b", 97),
            shape("m5.8xlarge", 32).spot("a", 500),
            shape("m5.4xlarge", 16).on_demand("a", 768).spot("a", 300),
        ];
        let request = launch(V1, "", 1_000, &types).unwrap();
        assert_eq!(names(&request), ["m5.large a"]);
        assert!(request.left_out.iter().any(|left| left.by == Filter::SpotOffering && left.types == 1));
        let request = launch(V1, "capacity=spot", 1_000, &types).unwrap();
        assert_eq!(request.overrides.len(), 4);
    }

    #[test]
    fn sixty_types_are_kept_and_must_still_meet_min_values() {
        let request = launch(V1, "", 1_000, &many()).unwrap();
        assert_eq!(request.overrides.len(), 60);
        assert_eq!(request.overrides[59].price.as_nanos(), 60_000_000);
        let ask = |wanted| {
            let any_type = Requirement::new(well_known::INSTANCE_TYPE, Operator::Exists, []);
            let requirements = [any_type.with_min_values(Some(wanted))].into_iter().collect();
            launch_with(V1, &requirements, &Resources::new(), &many())
        };
        assert_eq!(ask(60).unwrap().overrides.len(), 60);
        let (key, found) = (well_known::INSTANCE_TYPE, 60);
        assert_eq!(ask(61), Err(SelectionError::MinValues { key, wanted: 61, found, types: 60 }));
    }

    #[test]
    fn reserved_capacity_comes_first_and_the_emptier_reservation_is_used() {
        let types = [
            shape("m5.large", 2).on_demand("a", 96).spot("a", 30),
            shape("m5.xlarge", 4).on_demand("a", 192).reserved("a", "cr-1", 2).reserved("a", "cr-2", 5),
        ];
        let request = launch(V1, "", 1_000, &types).unwrap();
        assert_eq!((request.capacity_type, request.strategy), (well_known::RESERVED, AllocationStrategy::LowestPrice));
        assert_eq!(names(&request), ["m5.xlarge a"]);
        assert_eq!(request.overrides[0].reservation, Some(Symbol::new("cr-2")));
        assert_eq!(launch(V1, "capacity=spot", 1_000, &types).unwrap().capacity_type, well_known::SPOT);
        assert_eq!(
            launch(V1, "reservation=cr-1", 1_000, &types).unwrap().overrides[0].reservation,
            Some(Symbol::new("cr-1"))
        );
    }

    #[test]
    fn dedicated_tenancy_is_used_only_if_shared_is_not_allowed() {
        let types = [shape("m5.large", 2).on_demand("a", 96)];
        let tenancy = |text: &str| launch(V1, text, 1_000, &types).unwrap().tenancy;
        assert_eq!(tenancy("tenancy=dedicated").as_str(), "dedicated");
        assert_eq!(tenancy("tenancy=dedicated,default").as_str(), "default");
    }
}
