//! The launch request from v0.24 on.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use smallvec::SmallVec;

use super::open_types::{Lowest, OpenTypes, Row, TotalRequests};
use super::price::Terms;
use super::{
    Candidate, Filter, LaunchRequest, LaunchView, LeftOut, Override, SelectionError, note, overrides,
    preferred_capacity_type, truncate,
};
use crate::instance_types::{InstanceType, Offering};
use crate::packing::MinValuesPolicy;
use crate::release::SpotFilter;
use nodecast_model::domain::symbol::well_known;
use nodecast_model::domain::{AllocationStrategy, HourlyRate, Symbol};

/// Source: AWS provider v1.13 `pkg/providers/instance/instance.go`, `Create` and `pkg/providers/instance/filter/filter.go`.
/// Deviation: interruptible reservations are not distinguished from other reservations. An overlay is checked on the
/// types that are open at the launch, not on those of the claim.
pub(super) fn select(view: &LaunchView<'_>) -> Result<LaunchRequest, SelectionError> {
    let terms = Terms::new(view.requirements, view.capacity_type_key());
    let mut open = OpenTypes::default();
    for (place, instance_type) in view.types.iter().enumerate().filter(|(_, index)| view.takes(index)) {
        open.learn(place, instance_type, &terms);
    }
    let asked = TotalRequests::from_requests(view.requests);
    let types = view.types.iter().map(|instance_type| instance_type.entry).enumerate();
    let rated = types.filter_map(|(place, entry)| Rated::new(&asked, &open, place, entry));
    choose(view, &open, rated.collect(), view.types.len())
}

/// The same of the types at these positions of `list`, all of which `open` has learnt.
pub(super) fn select_known(
    view: &LaunchView<'_>,
    list: &[InstanceType],
    types: &[u32],
    open: &OpenTypes,
) -> Result<LaunchRequest, SelectionError> {
    let asked = TotalRequests::from_requests(view.requests);
    let mut rated = Vec::with_capacity(types.len());
    rated.extend(types.iter().filter_map(|&at| Rated::new(&asked, open, at as usize, &list[at as usize])));
    choose(view, open, rated, types.len())
}

/// The request over the types of so many that are open.
fn choose<'a>(
    view: &LaunchView<'_>,
    open: &'a OpenTypes,
    mut rated: Vec<Rated<'a>>,
    types: usize,
) -> Result<LaunchRequest, SelectionError> {
    let mut left_out = Vec::new();
    note(&mut left_out, Filter::CompatibleAvailable, types - rated.len());
    if rated.is_empty() {
        return Err(SelectionError::NoInstanceTypes(Filter::CompatibleAvailable));
    }
    let overlaid = rated.iter().any(|item| item.row.overlaid);
    let reserved = prefer_reserved(open, &mut rated, &mut left_out);
    leave_out_exotic(view, &mut rated, &mut left_out);
    // A type that is to be launched on a reservation is not asked for otherwise.
    let spot_up_to = if reserved.is_some() { None } else { leave_out_dear_spot(view, &mut rated, &mut left_out) };
    if rated.is_empty() {
        return Err(SelectionError::NoInstanceTypes(Filter::SpotOffering));
    }
    keep_cheapest(&mut rated, view.behaviour().launch_types, &mut left_out);
    let candidates = rated.iter().map(|item| item.candidate(open, reserved, spot_up_to));
    let candidates: Vec<Candidate<'_>> = candidates.collect();
    if view.min_values == MinValuesPolicy::Strict {
        check_min_values(view, &candidates)?;
    }
    let capacity_type = preferred_capacity_type(&candidates, &[well_known::RESERVED, well_known::SPOT]);
    let mut overrides = overrides(&candidates, capacity_type)?;
    if overlaid {
        prioritize_by_price(&mut overrides);
    }
    Ok(LaunchRequest {
        capacity_type,
        strategy: strategy(capacity_type, overlaid),
        tenancy: tenancy(view),
        overrides,
        left_out,
        inflexible: view.is_inflexible(capacity_type, candidates.len()),
    })
}

/// How EC2 is to choose: by its own prices, or, where overlays lie over some of Karpenter's, by the order that Karpenter gives.
///
/// Source: AWS provider v1.14 `pkg/providers/instance/types.go`, `CreateFleetInputBuilder`.
fn strategy(capacity_type: Symbol, overlaid: bool) -> AllocationStrategy {
    match (capacity_type == well_known::SPOT, overlaid) {
        (true, false) => AllocationStrategy::PriceCapacityOptimized,
        (true, true) => AllocationStrategy::CapacityOptimizedPrioritized,
        (false, false) => AllocationStrategy::LowestPrice,
        (false, true) => AllocationStrategy::Prioritized,
    }
}

/// Gives each override its place in the order of the prices that Karpenter compares; equal prices have one place.
///
/// Deviation: upstream sends the price itself as the priority, which EC2 documents as a whole number.
fn prioritize_by_price(overrides: &mut [Override]) {
    let prices: BTreeSet<HourlyRate> = overrides.iter().map(|item| item.price).collect();
    for item in overrides {
        item.priority = prices.range(..item.price).count() as u32;
    }
}

/// An instance type on its way through the filters. Many set out, and their offerings are looked at of the few that arrive.
struct Rated<'a> {
    entry: &'a InstanceType,
    row: &'a Row,
    /// Its position among all types.
    place: usize,
    /// The lowest price of what is left of it.
    price: HourlyRate,
}

impl<'a> Rated<'a> {
    /// The type at `place`, if it will do.
    fn new(asked: &TotalRequests, open: &'a OpenTypes, place: usize, entry: &'a InstanceType) -> Option<Self> {
        let (row, price) = open.open(place, entry, asked)?;
        Some(Self { entry, row, place, price })
    }

    /// The type with its offerings that are left: one reservation in each zone, or what is open and not too dear.
    fn candidate(
        &self,
        open: &'a OpenTypes,
        reserved: Option<Reserved>,
        spot_up_to: Option<HourlyRate>,
    ) -> Candidate<'a> {
        let offerings = open.offerings(self.row);
        let offerings = match reserved {
            Some(kind) => emptiest_reservations(offerings, kind),
            None => offerings.iter().filter(|offering| !is_dear(offering, spot_up_to)).collect(),
        };
        Candidate { entry: self.entry, offerings }
    }

    /// By price, then by name.
    fn compare(&self, other: &Self) -> Ordering {
        let by_price = self.price.cmp(&other.price);
        by_price.then_with(|| self.row.name.cmp(&other.row.name)).then_with(|| self.place.cmp(&other.place))
    }
}

/// Which reservations are launched into; one launch never mixes them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reserved {
    /// Ordinary ones.
    Ordinary,
    /// Capacity Blocks.
    Blocks,
}

impl Reserved {
    fn from_offering(offering: &Offering) -> Option<Self> {
        let block = offering.reservation?.block_ends.is_some();
        Some(if block { Self::Blocks } else { Self::Ordinary })
    }
}

/// If a reserved offering is open, keeps only the types that have one of the cheaper kind, and of these such offerings; of Capacity
/// Blocks the one type with the cheapest. Which kind that is.
fn prefer_reserved(open: &OpenTypes, rated: &mut Vec<Rated<'_>>, left_out: &mut Vec<LeftOut>) -> Option<Reserved> {
    let kind = cheaper_kind(open, rated)?;
    let before = rated.len();
    let has_kind =
        |item: &Rated<'_>| open.offerings(item.row).iter().any(|one| Reserved::from_offering(one) == Some(kind));
    let of_other_kind = rated.iter().filter(|item| item.row.lowest.reserved.is_some() && !has_kind(item)).count();
    rated.retain_mut(|item| {
        let reserved = emptiest_reservations(open.offerings(item.row), kind).iter().map(|one| one.price).min();
        item.price = reserved.unwrap_or(item.price);
        reserved.is_some()
    });
    note(left_out, Filter::CapacityReservationType, of_other_kind);
    note(left_out, Filter::ReservedOffering, before - of_other_kind - rated.len());
    if kind == Reserved::Blocks && rated.len() > 1 {
        rated.sort_by(Rated::compare);
        note(left_out, Filter::CapacityBlock, rated.len() - 1);
        rated.truncate(1);
    }
    Some(kind)
}

/// The kind of the cheapest open reserved offering; ordinary ones before blocks of their price.
fn cheaper_kind(open: &OpenTypes, rated: &[Rated<'_>]) -> Option<Reserved> {
    let reserved = rated.iter().filter(|item| item.row.lowest.reserved.is_some());
    let reserved = reserved.flat_map(|reserved| open.offerings(reserved.row));
    let priced = reserved.filter_map(|offering| Some((offering.price, Reserved::from_offering(offering)?)));
    priced.min_by_key(|&(price, kind)| (price, kind == Reserved::Blocks)).map(|(_, kind)| kind)
}

/// In each zone the open reserved offering of the kind with the most free instances.
fn emptiest_reservations(offerings: &[Offering], kind: Reserved) -> SmallVec<[&Offering; 6]> {
    let mut best: SmallVec<[&Offering; 6]> = SmallVec::new();
    for offering in offerings.iter().filter(|offering| Reserved::from_offering(offering) == Some(kind)) {
        let free = |offering: &Offering| offering.reservation.map_or(0, |reservation| reservation.free);
        match best.iter_mut().find(|other| other.zone == offering.zone) {
            Some(other) if free(offering) > free(other) => *other = offering,
            Some(_) => {}
            None => best.push(offering),
        }
    }
    best
}

/// Leaves bare metal and accelerators out, unless nothing else is left or (from v0.35 on) a requirement has `minValues`.
fn leave_out_exotic(view: &LaunchView<'_>, rated: &mut Vec<Rated<'_>>, left_out: &mut Vec<LeftOut>) {
    let before = rated.len();
    if view.filters_all() && rated.iter().any(|entry| !entry.row.exotic) {
        rated.retain(|entry| !entry.row.exotic);
    }
    note(left_out, Filter::Exotic, before - rated.len());
}

/// Where both Spot and On-Demand are allowed and open, drops Spot that costs more than the cheapest On-Demand offering, as the
/// [release](SpotFilter) tells them apart; gives back that price where dear offerings leave types that stay. Skipped if (from v0.35 on)
/// a requirement has `minValues`.
///
/// Source: AWS provider v1.5.0 `pkg/providers/instance/instance.go` (`isMixedCapacityLaunch`, `filterRejectUnwantedSpot`), v1.6.0 and
/// v1.9.0 `pkg/providers/instance/filter/filter.go` (`spotInstanceFilter`, `spotOfferingFilter`).
fn leave_out_dear_spot(
    view: &LaunchView<'_>,
    rated: &mut Vec<Rated<'_>>,
    left_out: &mut Vec<LeftOut>,
) -> Option<HourlyRate> {
    let mixed = view.allows(well_known::ON_DEMAND) && view.allows(well_known::SPOT);
    let has_spot = rated.iter().any(|entry| entry.row.lowest.spot.is_some());
    let cheapest = rated.iter().filter_map(|entry| entry.row.lowest.on_demand).min()?;
    if !mixed || !has_spot || !view.filters_all() {
        return None;
    }
    let before = rated.len();
    let spot_up_to = match view.behaviour().spot_filter {
        SpotFilter::Nothing => None,
        SpotFilter::ByCheapestOffering => {
            // Neither side minds the zones of the claim.
            let cheapest = rated.iter().filter_map(|entry| entry.row.anywhere.on_demand).min()?;
            rated.retain(|entry| entry.row.anywhere.of_all().is_none_or(|price| price <= cheapest));
            None
        }
        SpotFilter::ByCheapestSpot => {
            rated.retain(|entry| entry.row.lowest.spot.is_none_or(|price| price <= cheapest));
            None
        }
        SpotFilter::ByOffering => {
            rated.retain_mut(|entry| {
                let Lowest { spot, on_demand, .. } = entry.row.lowest;
                let left = spot.filter(|&price| price <= cheapest).into_iter().chain(on_demand).min();
                entry.price = left.unwrap_or(entry.price);
                left.is_some()
            });
            Some(cheapest)
        }
    };
    note(left_out, Filter::SpotOffering, before - rated.len());
    spot_up_to
}

/// Whether Spot is offered at a higher price than this.
fn is_dear(offering: &Offering, spot_up_to: Option<HourlyRate>) -> bool {
    offering.capacity_type == well_known::SPOT && spot_up_to.is_some_and(|most| offering.price > most)
}

/// Keeps the cheapest types that CreateFleet may be given, in order of price.
fn keep_cheapest(rated: &mut Vec<Rated<'_>>, limit: usize, left_out: &mut Vec<LeftOut>) {
    // Only what is kept need be in order, and mostly it is: the types of a claim come by price.
    if rated.len() > limit && !begins_with_cheapest(rated, limit) {
        rated.select_nth_unstable_by(limit - 1, Rated::compare);
    }
    truncate(rated, limit, left_out);
    rated.sort_unstable_by(Rated::compare);
}

/// Whether none but the first so many are the cheapest.
fn begins_with_cheapest(rated: &[Rated<'_>], many: usize) -> bool {
    let (first, others) = rated.split_at(many);
    let dearest = first.iter().max_by(|one, other| one.compare(other));
    dearest.is_none_or(|dearest| others.iter().all(|other| dearest.compare(other).is_lt()))
}

/// Source: Karpenter core v1.13 `pkg/cloudprovider/types.go`, `SatisfiesMinValues`.
fn check_min_values(view: &LaunchView<'_>, candidates: &[Candidate<'_>]) -> Result<(), SelectionError> {
    for requirement in view.requirements {
        let Some(wanted) = requirement.min_values else { continue };
        let stated = candidates.iter().filter_map(|candidate| candidate.entry.requirements.get(requirement.key));
        let values: BTreeSet<Symbol> = stated.flat_map(|item| item.values.iter().copied()).collect();
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
    use super::super::{Filter, SelectionError};
    use nodecast_model::domain::AllocationStrategy;
    use nodecast_model::domain::requirements::Operator;
    use nodecast_model::domain::symbol::well_known;
    use nodecast_model::domain::{KarpenterVersion, Requirement, Resources, Symbol};

    const V1: KarpenterVersion = KarpenterVersion::V1_13;

    /// Sixty-five types, the n-th at a price of n.
    fn many() -> Vec<Shape> {
        (1..=65).map(|n| shape(&format!("m{}.{n}xlarge", n / 7), 4).on_demand("a", n)).collect()
    }

    #[test]
    fn spot_comes_first_ordered_by_price_then_name() {
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
    fn on_demand_is_used_without_available_spot() {
        let types = [shape("m5.large", 2).on_demand("a", 96).spot("a", 40).unavailable()];
        let request = launch(V1, "", 1_000, &types).unwrap();
        assert_eq!((request.capacity_type, request.inflexible), (well_known::ON_DEMAND, true));
    }

    #[test]
    fn small_unavailable_or_disallowed_types_are_excluded() {
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
    fn spot_above_cheapest_on_demand_is_dropped() {
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

    fn release(text: &str) -> KarpenterVersion {
        text.parse().unwrap()
    }

    /// What each release asks for of these types, in the order of [`names`]; the error where it asks for nothing.
    fn asked(version: &str, text: &str, types: &[Shape]) -> String {
        match launch(release(version), text, 1_000, types) {
            Ok(request) => names(&request).join(", "),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn spot_offerings_are_dropped_together_until_v1_8() {
        let types = [
            shape("m5.large", 2).on_demand("a", 1_000).spot("a", 300),
            shape("m5.xlarge", 4).on_demand("a", 2_000).spot("a", 1_200),
        ];
        for (version, many) in [("v0.23", 2), ("v0.24", 1), ("v1.5", 1), ("v1.6", 1), ("v1.8", 1), ("v1.9", 1)] {
            assert_eq!(launch(release(version), "", 1_000, &types).unwrap().overrides.len(), many, "{version}");
        }
        let types = [shape("m5.large", 2).on_demand("a", 1_000), shape("c5.large", 2).spot("a", 600).spot("b", 1_100)];
        for (version, many) in [("v0.24", 2), ("v1.5", 2), ("v1.6", 2), ("v1.8.6", 2), ("v1.9.0", 1), ("v1.14", 1)] {
            assert_eq!(launch(release(version), "", 1_000, &types).unwrap().overrides.len(), many, "{version}");
        }
    }

    #[test]
    fn v1_6_keeps_types_by_spot_price() {
        let discounted = [
            shape("m6i.large", 2).on_demand("a", 40).spot("a", 55).spot("b", 60),
            shape("r6i.large", 2).on_demand("a", 50).spot("a", 45),
        ];
        let none = "no instance type is left after spot-offering-filter";
        for (version, expected) in [
            ("v0.34", "m6i.large a, m6i.large b"),
            ("v1.5", "m6i.large a, m6i.large b"),
            ("v1.6", none),
            ("v1.8", none),
            ("v1.9", "m6i.large a, r6i.large a"),
        ] {
            assert_eq!(asked(version, "", &discounted), expected, "{version}");
        }
        // A type without Spot stays, so the claim is launched On-Demand.
        let with_another = [discounted[0].clone(), shape("c6i.large", 2).on_demand("a", 42)];
        assert_eq!(asked("v1.7", "", &with_another), "c6i.large a");
        assert_eq!(asked("v1.7", "capacity=on-demand", &with_another), "m6i.large a, c6i.large a");
    }

    #[test]
    fn v1_5_counts_offerings_of_other_zones() {
        let types = [
            shape("m6i.large", 2).on_demand("a", 90).spot("a", 95).spot("b", 30),
            shape("m5.large", 2).on_demand("a", 80),
        ];
        for (version, expected) in
            [("v1.5", "m6i.large a"), ("v1.6", "m5.large a"), ("v1.9", "m5.large a, m6i.large a")]
        {
            assert_eq!(asked(version, "zone=a", &types), expected, "{version}");
        }
    }

    #[test]
    fn min_values_keep_expensive_spot() {
        let types = [
            shape("m5.large", 2).on_demand("a", 1_000).spot("a", 300),
            shape("m5.xlarge", 4).on_demand("a", 2_000).spot("a", 1_200),
        ];
        let any_type = Requirement::new(well_known::INSTANCE_TYPE, Operator::Exists, []).with_min_values(Some(2));
        let requirements = [any_type].into_iter().collect();
        for version in ["v0.35", "v1.5", "v1.8", "v1.9", "v1.14"] {
            let request = launch_with(release(version), &requirements, &Resources::new(), &types).unwrap();
            assert_eq!(request.overrides.len(), 2, "{version}");
        }
    }

    #[test]
    fn oldest_releases_request_all_types_of_claim() {
        for (version, asked) in [("v0.34", 60), ("v0.35", 65), ("v0.36.2", 65), ("v0.37", 60), ("v1.6", 60)] {
            assert_eq!(launch(release(version), "", 1_000, &many()).unwrap().overrides.len(), asked, "{version}");
        }
    }

    #[test]
    fn sixty_cheapest_types_must_meet_min_values() {
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
    fn price_ties_keep_first_sixty_types_by_name() {
        let one_price = |n: i64| shape(&format!("m5.{n:02}xlarge"), 4).on_demand("a", 7);
        let types: Vec<Shape> = (1..=64).rev().map(one_price).chain([shape("z1.large", 4).on_demand("a", 6)]).collect();
        let request = launch(V1, "", 1_000, &types).unwrap();
        let kept = names(&request);
        assert_eq!((kept.len(), kept[0].as_str(), kept[1].as_str()), (60, "z1.large a", "m5.01xlarge a"));
        assert_eq!(kept[59], "m5.59xlarge a");
        assert!(request.left_out.iter().any(|left| left.by == Filter::Truncation && left.types == 5));
    }

    #[test]
    fn reserved_capacity_comes_first_from_emptiest_reservation() {
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
    fn overlay_prices_make_ec2_follow_karpenter_order() {
        let types = [
            shape("m5.large", 2).on_demand("a", 96).spot("a", 30),
            shape("m6i.large", 2).on_demand("a", 99).overlaid(80).spot("a", 31).spot("b", 31),
        ];
        let asked = |capacity: &str| {
            let request = launch(V1, capacity, 1_000, &types).unwrap();
            let of = |item: &super::Override| format!("{} {}", item.instance_type, item.priority);
            (request.strategy, request.overrides.iter().map(of).collect::<Vec<_>>().join(", "))
        };
        assert_eq!(
            asked("capacity=on-demand"),
            (AllocationStrategy::Prioritized, "m6i.large 0, m5.large 1".to_owned())
        );
        assert_eq!(
            asked("capacity=spot"),
            (AllocationStrategy::CapacityOptimizedPrioritized, "m5.large 0, m6i.large 1, m6i.large 1".to_owned())
        );
    }

    #[test]
    fn launch_uses_reservations_or_one_capacity_block_type() {
        let types = [
            shape("p4d.24xlarge", 96).block("a", "cb-1", 2),
            shape("p5.48xlarge", 96).block("a", "cb-2", 2),
            shape("p5e.48xlarge", 96).reserved("a", "cr-1", 2),
        ];
        let request = launch(V1, "", 1_000, &types).unwrap();
        assert_eq!(names(&request), ["p5e.48xlarge a"]);
        assert!(request.left_out.iter().any(|left| left.by == Filter::CapacityReservationType && left.types == 2));
        let request = launch(V1, "", 1_000, &types[..2]).unwrap();
        assert_eq!(names(&request), ["p4d.24xlarge a"]);
        assert!(request.left_out.iter().any(|left| left.by == Filter::CapacityBlock && left.types == 1));
    }

    #[test]
    fn shared_tenancy_is_preferred_over_dedicated() {
        let types = [shape("m5.large", 2).on_demand("a", 96)];
        let tenancy = |text: &str| launch(V1, text, 1_000, &types).unwrap().tenancy;
        assert_eq!(tenancy("tenancy=dedicated").as_str(), "dedicated");
        assert_eq!(tenancy("tenancy=dedicated,default").as_str(), "default");
    }
}
