//! The instance types that a simulation may launch, whoever launches them.

use std::collections::BTreeSet;

use crate::actors::Setup;
use crate::catalog::{Region, RegionType};
use crate::domain::node_pool::NodePool;
use crate::domain::requirements::Requirements;
use crate::domain::{NodeClass, Resources, Symbol};
use nodecast_karpenter::instance_types::{InstanceType, instance_types};

/// The types that the NodePools of `setup` admit, and those of its node groups, in order of name; without a price too.
pub fn usable_types(setup: &Setup<'_>) -> BTreeSet<Symbol> {
    let of_groups = setup.policy.manifests.node_groups.iter().flat_map(|group| group.instance_types.iter().copied());
    of_groups.chain(admitted(setup, &setup.region)).collect()
}

/// The types that NodePools admit and that have no price, so that none is launched.
pub(super) fn unpriced_types(setup: &Setup<'_>) -> BTreeSet<Symbol> {
    let without_price = |entry: &&RegionType| entry.on_demand.is_none() && entry.zones_offered().next().is_some();
    let types: Vec<RegionType> = setup.region.types.iter().filter(without_price).cloned().collect();
    let region = &setup.region;
    admitted(setup, &Region::new(region.name, region.currency, region.zones.clone(), types)).collect()
}

/// The types of `region` that NodePools admit.
fn admitted<'a>(setup: &'a Setup<'_>, region: &'a Region) -> impl Iterator<Item = Symbol> + 'a {
    setup.node_pools.iter().flat_map(move |pool| {
        let class = setup.node_classes.iter().find(|class| class.name == pool.node_class);
        class.map_or_else(Vec::new, |class| of_pool(setup, region, pool, class))
    })
}

pub(super) fn of_pool(setup: &Setup<'_>, region: &Region, pool: &NodePool, class: &NodeClass) -> Vec<Symbol> {
    types_of_pool(setup, region, pool, class).map(|entry| entry.name).collect()
}

/// What Karpenter believes a node of each type of `region` offers to pods that a pool admits.
pub(super) fn offers_of_pool(
    setup: &Setup<'_>,
    region: &Region,
    pool: &NodePool,
    class: &NodeClass,
) -> impl Iterator<Item = Resources> + use<> {
    types_of_pool(setup, region, pool, class).map(|entry| entry.allocatable)
}

fn types_of_pool(
    setup: &Setup<'_>,
    region: &Region,
    pool: &NodePool,
    class: &NodeClass,
) -> impl Iterator<Item = InstanceType> + use<> {
    let mut wanted = Requirements::from_labels(&pool.labels);
    for requirement in &pool.requirements {
        wanted.add(requirement.clone());
    }
    let types = instance_types(region, class, pool, setup.policy.provider_settings());
    types.into_iter().filter(move |entry| entry.requirements.intersects(&wanted).is_ok())
}
