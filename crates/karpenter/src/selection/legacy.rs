//! The launch requests of v0.4 to v0.22.

use super::{
    Candidate, Filter, LaunchRequest, LaunchView, LeftOut, SelectionError, note, overrides, preferred_capacity_type,
    truncate,
};
use crate::instance_types::InstanceType;
use crate::release::LaunchRank;
use nodecast_model::domain::symbol::well_known;
use nodecast_model::domain::{AllocationStrategy, HourlyRate, ResourceName, Symbol};

/// Source: v0.4.1, v0.6.3, v0.16.0 and v0.18.1 `pkg/cloudprovider/aws/instance.go`; v0.22.1
/// `pkg/cloudprovider/instance.go`.
pub(super) fn select(view: &LaunchView<'_>) -> Result<LaunchRequest, SelectionError> {
    let mut left_out = Vec::new();
    let mut candidates = view.compatible_available(&mut left_out)?;
    if view.behaviour().prefers_generic {
        prefer_generic(&mut candidates, &mut left_out);
    }
    candidates.sort_by_cached_key(|candidate| (rank(view, candidate), candidate.entry.name));
    truncate(&mut candidates, view.behaviour().launch_types, &mut left_out);
    let capacity_type = capacity_type(view, &candidates);
    let strategy = match capacity_type == well_known::SPOT {
        true if view.behaviour().spot_by_price => AllocationStrategy::PriceCapacityOptimized,
        true => AllocationStrategy::CapacityOptimizedPrioritized,
        false => AllocationStrategy::LowestPrice,
    };
    Ok(LaunchRequest {
        capacity_type,
        strategy,
        tenancy: well_known::DEFAULT,
        overrides: overrides(&candidates, capacity_type)?,
        left_out,
        inflexible: view.behaviour().prefers_generic && view.is_inflexible(capacity_type, candidates.len()),
    })
}

/// Keeps the types of common families without accelerators, if there are any.
fn prefer_generic(candidates: &mut Vec<Candidate<'_>>, left_out: &mut Vec<LeftOut>) {
    let before = candidates.len();
    if candidates.iter().any(|candidate| is_generic(candidate.entry)) {
        candidates.retain(|candidate| is_generic(candidate.entry));
    }
    note(left_out, Filter::Exotic, before - candidates.len());
}

pub(super) fn is_generic(entry: &InstanceType) -> bool {
    let name = entry.name.as_str();
    name.starts_with(['m', 'c', 'r', 'a', 't', 'i']) && !name.contains("metal") && accelerators(entry) == 0
}

fn accelerators(entry: &InstanceType) -> i64 {
    const NAMES: [Symbol; 4] =
        [well_known::NVIDIA_GPU, well_known::AMD_GPU, well_known::AWS_NEURON, well_known::HABANA_GAUDI];
    NAMES.iter().map(|&name| entry.capacity.get(ResourceName(name))).sum()
}

/// Where a type stands in the release's order: by size up to v0.6, by On-Demand price in v0.16, by its cheapest open
/// offering from v0.18 on.
fn rank(view: &LaunchView<'_>, candidate: &Candidate<'_>) -> i128 {
    match view.behaviour().launch_rank {
        LaunchRank::Size => size(candidate.entry),
        LaunchRank::OnDemand => on_demand_price(candidate.entry),
        LaunchRank::Cheapest => in_nanos(candidate.cheapest()),
    }
}

/// The On-Demand price of a type, whatever the requirements allow.
fn on_demand_price(entry: &InstanceType) -> i128 {
    let on_demand = entry.offerings.iter().filter(|offering| offering.capacity_type == well_known::ON_DEMAND);
    in_nanos(on_demand.map(|offering| offering.price).filter(|&price| price > HourlyRate::ZERO).min())
}

/// A price as a rank; no price stands behind every price.
fn in_nanos(price: Option<HourlyRate>) -> i128 {
    price.map_or(i128::MAX, |price| i128::from(price.as_nanos()))
}

/// The squared length of (vCPUs, GB, 1000 x accelerators).
///
/// Source: v0.4.1 and v0.6.3 `pkg/controllers/provisioning/binpacking/packer.go`.
fn size(entry: &InstanceType) -> i128 {
    let vcpus = i128::from(entry.capacity.cpu_milli() / 1_000);
    let gigabytes = i128::from((entry.capacity.memory_bytes() + 999_999_999) / 1_000_000_000);
    let accelerators = i128::from(accelerators(entry)) * 1_000;
    vcpus * vcpus + gigabytes * gigabytes + accelerators * accelerators
}

/// Spot if it is allowed and there is an offering; v0.4 takes On-Demand whenever that is allowed.
fn capacity_type(view: &LaunchView<'_>, candidates: &[Candidate<'_>]) -> Symbol {
    if view.behaviour().prefers_on_demand && view.allows(well_known::ON_DEMAND) {
        return well_known::ON_DEMAND;
    }
    preferred_capacity_type(candidates, &[well_known::SPOT])
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{Shape, launch, names, shape};
    use nodecast_model::domain::AllocationStrategy;
    use nodecast_model::domain::KarpenterVersion;
    use nodecast_model::domain::symbol::well_known;

    fn pair() -> [Shape; 2] {
        [
            shape("c6g.2xlarge", 8).on_demand("a", 272).spot("a", 90),
            shape("t4g.2xlarge", 8).on_demand("a", 268).spot("a", 95),
        ]
    }

    #[test]
    fn v0_18_orders_spot_by_spot_price() {
        let request = launch(KarpenterVersion::V0_16, "capacity=spot", 1_000, &pair()).unwrap();
        assert_eq!(names(&request), ["t4g.2xlarge a", "c6g.2xlarge a"]);
        assert_eq!(request.strategy, AllocationStrategy::CapacityOptimizedPrioritized);
        assert_eq!((request.overrides[0].priority, request.overrides[1].priority), (0, 1));
        let request = launch(KarpenterVersion::V0_18, "capacity=spot", 1_000, &pair()).unwrap();
        assert_eq!(names(&request), ["c6g.2xlarge a", "t4g.2xlarge a"]);
        let request = launch(KarpenterVersion::V0_22, "capacity=spot", 1_000, &pair()).unwrap();
        assert_eq!(request.strategy, AllocationStrategy::PriceCapacityOptimized);
    }

    #[test]
    fn request_has_twenty_types_before_v0_22() {
        let types: Vec<Shape> = (1..=70).map(|n| shape(&format!("m5.{n}xlarge"), 4).on_demand("a", n)).collect();
        let asked = |version| launch(version, "", 1_000, &types).unwrap().overrides.len();
        assert_eq!(asked(KarpenterVersion::V0_6), 20);
        assert_eq!(asked(KarpenterVersion::V0_18), 20);
        assert_eq!(asked(KarpenterVersion::V0_22), 60);
    }

    #[test]
    fn common_families_are_preferred_until_there_are_none() {
        let types = [
            shape("z1d.large", 2).on_demand("a", 10),
            shape("g4dn.xlarge", 4).gpus(1).on_demand("a", 20),
            shape("m5.large", 2).on_demand("a", 96),
        ];
        let asked = |types: &[Shape]| names(&launch(KarpenterVersion::V0_18, "", 1_000, types).unwrap());
        assert_eq!(asked(&types), ["m5.large a"]);
        assert_eq!(asked(&types[..2]), ["z1d.large a", "g4dn.xlarge a"]);
    }

    #[test]
    fn v0_4_prefers_on_demand_and_smallest_type() {
        let asked = |version, text: &str| launch(version, text, 1_000, &pair()).unwrap().capacity_type;
        assert_eq!(asked(KarpenterVersion::V0_4, ""), well_known::ON_DEMAND);
        assert_eq!(asked(KarpenterVersion::V0_4, "capacity-v0.4=spot"), well_known::SPOT);
        assert_eq!(asked(KarpenterVersion::V0_4, "capacity=spot"), well_known::ON_DEMAND);
        assert_eq!(asked(KarpenterVersion::V0_6, ""), well_known::SPOT);
        let types = [shape("m5.4xlarge", 16).on_demand("a", 1), shape("m5.large", 2).on_demand("a", 96)];
        let request = launch(KarpenterVersion::V0_6, "capacity=on-demand", 1_000, &types).unwrap();
        assert_eq!(names(&request), ["m5.large a", "m5.4xlarge a"]);
    }
}
