//! The launches that the tutorials logged, as far as prices of today can repeat them.

#![allow(clippy::unwrap_used)]

use nodecast_karpenter::instance_types::{
    InstanceType, ProviderSettings, default_requirements, instance_types, instance_types_priced_by, price_list_of,
};
use nodecast_karpenter::packing::MinValuesPolicy;
use nodecast_karpenter::selection::{Choice, LaunchRequest, LaunchView, select};
use nodecast_model::domain::AllocationStrategy;
use nodecast_model::domain::requirements::Operator;
use nodecast_model::domain::symbol::well_known;
use nodecast_model::domain::{
    HourlyRate, KarpenterVersion, NodeClass, NodePool, Requirement, Requirements, ResourceName, Resources, Symbol,
};
use nodecast_prices::{Catalog, Region};

/// Cases of the upstream suites that this file pins, see `packing`.
pub const ROWS: &[u16] = &[133, 134, 135, 157, 158];

fn region(name: &str) -> std::sync::Arc<Region> {
    Catalog::embedded().unwrap().region(name).unwrap()
}

/// What `version` asks for in `region_name` for a node with these requests, from a Provisioner for `capacity_type`.
fn launch(version: KarpenterVersion, region_name: &str, capacity_type: Symbol, requests: &Resources) -> LaunchRequest {
    let region = region(region_name);
    let price_list = Catalog::embedded().unwrap().region(price_list_of(version, region.name).as_str()).unwrap();
    let mut pool = NodePool::named("default");
    pool.requirements.push(Requirement::equals(well_known::CAPACITY_TYPE, capacity_type));
    pool.requirements.extend(default_requirements(version, &pool));
    let requirements: Requirements = pool.requirements.iter().cloned().collect();
    let class = NodeClass::named("default");
    let types = instance_types_priced_by(&price_list, &region, &class, &pool, ProviderSettings::for_version(version));
    let types: Vec<Choice<'_>> = types.iter().map(|entry| Choice::new(entry, &requirements)).collect();
    let view = LaunchView {
        karpenter: version,
        requirements: &requirements,
        requests,
        types: &types,
        min_values: MinValuesPolicy::Strict,
    };
    select(&view).unwrap()
}

/// The types of us-east-1 for a pool of the current release that leaves everything open.
fn open_pool_types() -> Vec<InstanceType> {
    let (class, pool) = (NodeClass::named("default"), NodePool::named("default"));
    instance_types(&region("us-east-1"), &class, &pool, ProviderSettings::default())
}

/// What the current release asks for, for a claim with these requirements that may become any of `types`.
fn ask(types: &[InstanceType], requirements: &Requirements, requests: &Resources) -> LaunchRequest {
    let types: Vec<Choice<'_>> = types.iter().map(|entry| Choice::new(entry, requirements)).collect();
    let karpenter = KarpenterVersion::V1_13;
    select(&LaunchView { karpenter, requirements, requests, types: &types, min_values: MinValuesPolicy::Strict })
        .unwrap()
}

fn is_special(entry: &InstanceType) -> bool {
    let devices = [well_known::NVIDIA_GPU, well_known::AMD_GPU, well_known::AWS_NEURON, well_known::HABANA_GAUDI]
        .map(ResourceName);
    entry.name.as_str().contains("metal") || devices.into_iter().any(|device| entry.capacity.get(device) > 0)
}

fn least_price(entry: &InstanceType, capacity_type: Symbol) -> Option<HourlyRate> {
    let offering =
        entry.offerings.iter().filter(|offering| offering.available && offering.capacity_type == capacity_type);
    offering.map(|offering| offering.price).min()
}

#[test]
fn the_sixty_cheapest_types_are_asked_for() {
    let types = open_pool_types();
    let on_demand = Requirement::equals(well_known::CAPACITY_TYPE, well_known::ON_DEMAND);
    let request = ask(&types, &[on_demand].into_iter().collect(), &cpu(1_000, 1));
    let asked = self::types(&request);
    assert_eq!(asked.len(), 60);
    let dearest = request.overrides.iter().map(|request| request.price).max().unwrap();
    let fitting: Vec<&InstanceType> =
        types.iter().filter(|instance_type| cpu(1_000, 1).fits(&instance_type.allocatable)).collect();
    assert!(fitting.len() > 600, "{} types", fitting.len());
    for entry in fitting.into_iter().filter(|item| !is_special(item) && !asked.contains(&item.name.as_str())) {
        let price = least_price(entry, well_known::ON_DEMAND);
        assert!(price.is_none_or(|price| price >= dearest), "{} is cheaper and left out", entry.name);
    }
}

#[test]
fn spot_request_stays_below_cheapest_on_demand() {
    let types = open_pool_types();
    let requests = cpu(3_000, 1);
    let request = ask(&types, &Requirements::new(), &requests);
    assert_eq!(request.capacity_type, well_known::SPOT);
    let fitting =
        types.iter().filter(|instance_type| !is_special(instance_type) && requests.fits(&instance_type.allocatable));
    let cheapest = fitting.filter_map(|item| least_price(item, well_known::ON_DEMAND)).min().unwrap();
    assert!(request.overrides.iter().all(|request| request.price <= cheapest));
}

#[test]
fn metal_and_accelerators_need_request_or_min_values() {
    let types: Vec<InstanceType> = open_pool_types()
        .into_iter()
        .filter(|pool_type| ["m5.metal", "g4dn.xlarge", "m5.large", "m5.24xlarge"].contains(&pool_type.name.as_str()))
        .collect();
    let on_demand = Requirement::equals(well_known::CAPACITY_TYPE, well_known::ON_DEMAND);
    let gpu = Resources::new().with(ResourceName(well_known::NVIDIA_GPU), 1);
    let of_type = |name: &str| Requirement::equals(well_known::INSTANCE_TYPE, Symbol::new(name));
    let exists = Requirement::new(well_known::INSTANCE_TYPE, Operator::Exists, []).with_min_values(Some(2));
    for (requirement, requests, expected) in [
        (on_demand.clone(), cpu(1_000, 1), &["m5.large", "m5.24xlarge"][..]),
        (on_demand.clone(), gpu, &["g4dn.xlarge"]),
        (of_type("m5.metal"), cpu(1_000, 1), &["m5.metal"]),
        (exists, cpu(1_000, 1), &["m5.large", "g4dn.xlarge", "m5.24xlarge", "m5.metal"]),
    ] {
        let mut requirements: Requirements = [on_demand.clone()].into_iter().collect();
        requirements.add(requirement);
        assert_eq!(self::types(&ask(&types, &requirements, &requests)), expected);
    }
}

#[test]
fn v0_6_prefers_spot_over_on_demand() {
    for (version, expected) in
        [(KarpenterVersion::V0_4, well_known::ON_DEMAND), (KarpenterVersion::V0_6, well_known::SPOT)]
    {
        let (class, mut pool) = (NodeClass::named("default"), NodePool::named("default"));
        let both = [well_known::SPOT, well_known::ON_DEMAND];
        pool.requirements.push(Requirement::new(well_known::CAPACITY_TYPE, Operator::In, both));
        let region = region("us-east-1");
        let types = instance_types(&region, &class, &pool, ProviderSettings::for_version(version));
        let requirements: Requirements = pool.requirements.iter().cloned().collect();
        let types: Vec<Choice<'_>> = types.iter().map(|entry| Choice::new(entry, &requirements)).collect();
        let request = select(&LaunchView {
            karpenter: version,
            requirements: &requirements,
            requests: &cpu(1_000, 1),
            types: &types,
            min_values: MinValuesPolicy::Strict,
        });
        assert_eq!(request.unwrap().capacity_type, expected, "{version}");
    }
}

/// The types asked for, in order.
fn types(request: &LaunchRequest) -> Vec<&str> {
    let mut names: Vec<&str> = request.overrides.iter().map(|pool| pool.instance_type.as_str()).collect();
    names.dedup();
    names
}

fn position(types: &[&str], name: &str) -> usize {
    types
        .iter()
        .position(|&instance_type| instance_type == name)
        .unwrap_or_else(|| panic!("{name} is not among {types:?}"))
}

fn cpu(milli: i64, pods: i64) -> Resources {
    Resources::cpu_memory(milli, 0).with(ResourceName::PODS, pods)
}

#[test]
fn china_launch_uses_us_east_1_price_order() {
    let request = launch(KarpenterVersion::V0_18, "cn-north-1", well_known::ON_DEMAND, &cpu(3_125, 5));
    assert_eq!(request.strategy, AllocationStrategy::LowestPrice);
    let types = types(&request);
    assert_eq!(types.len(), 20);
    let logged = ["t3a.xlarge", "c5a.xlarge", "t3.xlarge", "c5.xlarge", "c6i.xlarge"];
    let positions: Vec<usize> = logged.iter().map(|name| position(&types, name)).collect();
    assert!(positions.is_sorted(), "{types:?}");
    let facts = |name: &str| region("cn-north-1").instance_type(Symbol::new(name)).unwrap().facts.clone();
    assert!(types.iter().all(|name| facts(name).arch == well_known::AMD64 && facts(name).vcpus >= 4));
}

#[test]
fn sixteenth_pod_needs_more_than_16_cpus() {
    let smallest = |milli, pods| {
        let request = launch(KarpenterVersion::V0_18, "cn-north-1", well_known::SPOT, &cpu(milli, pods));
        assert_eq!(request.strategy, AllocationStrategy::CapacityOptimizedPrioritized);
        let region = region("cn-north-1");
        let vcpus = |name: &str| region.instance_type(Symbol::new(name)).unwrap().facts.vcpus;
        types(&request).into_iter().map(vcpus).min()
    };
    assert_eq!(smallest(15_125, 17), Some(16));
    assert!(smallest(16_125, 18) > Some(16));
}

#[test]
fn first_tutorial_node_is_at_least_2xlarge() {
    let requests = Resources::cpu_memory(3_825, 6_166_575 << 10).with(ResourceName::PODS, 7);
    let request = launch(KarpenterVersion::V0_16, "ap-southeast-1", well_known::SPOT, &requests);
    let region = region("ap-southeast-1");
    let facts = |name: &str| region.instance_type(Symbol::new(name)).unwrap().facts.clone();
    let types = types(&request);
    assert_eq!(types.len(), 20);
    assert!(types.iter().all(|name| facts(name).vcpus >= 8), "{types:?}");
    for arch in [well_known::AMD64, well_known::ARM64] {
        assert!(types.iter().any(|name| facts(name).arch == arch), "{types:?}");
    }
    let priorities: Vec<u32> = request.overrides.iter().map(|pool| pool.priority).collect();
    assert!(priorities.is_sorted() && priorities.last() == Some(&19));
    let today = launch(KarpenterVersion::V1_13, "ap-southeast-1", well_known::SPOT, &requests);
    assert!(today.overrides.iter().any(|pool| facts(pool.instance_type.as_str()).vcpus == 4));
    assert_eq!(today.strategy, AllocationStrategy::PriceCapacityOptimized);
}
