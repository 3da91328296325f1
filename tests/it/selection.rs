//! The launches that the tutorials logged, as far as prices of today can repeat them.

#![allow(clippy::unwrap_used)]

use nodecast::catalog::{Catalog, Region};
use nodecast::domain::symbol::well_known;
use nodecast::domain::{
    KarpenterVersion, NodeClass, NodePool, Requirement, Requirements, ResourceName, Resources, Symbol,
};
use nodecast::policy::instance_types::{
    InstanceType, ProviderSettings, default_requirements, instance_types_priced_by, price_list_of,
};
use nodecast::policy::packing::MinValuesPolicy;
use nodecast::policy::selection::{AllocationStrategy, LaunchRequest, LaunchView, select};

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
    let types = instance_types_priced_by(&price_list, &region, &class, &pool, ProviderSettings::of(version));
    let types: Vec<&InstanceType> = types.iter().collect();
    let view = LaunchView {
        karpenter: version,
        requirements: &requirements,
        requests,
        types: &types,
        min_values: MinValuesPolicy::Strict,
    };
    select(&view).unwrap()
}

/// The types asked for, in order.
fn types(request: &LaunchRequest) -> Vec<&str> {
    let mut names: Vec<&str> = request.overrides.iter().map(|pool| pool.instance_type.as_str()).collect();
    names.dedup();
    names
}

fn position(types: &[&str], name: &str) -> usize {
    types.iter().position(|&own| own == name).unwrap_or_else(|| panic!("{name} is not among {types:?}"))
}

fn cpu(milli: i64, pods: i64) -> Resources {
    Resources::cpu_memory(milli, 0).with(ResourceName::PODS, pods)
}

#[test]
fn three_pods_in_beijing_get_an_xlarge_in_the_order_of_us_east_1_prices() {
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
fn fifteen_pods_need_16_cpus_and_sixteen_need_more() {
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
fn the_first_tutorials_node_starts_at_2xlarge_with_both_architectures() {
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
