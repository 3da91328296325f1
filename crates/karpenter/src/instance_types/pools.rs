//! The NodePools of a cluster as a release sees them: completed by its webhook, with their node classes and instance types.

use super::releases::default_requirements;
use std::sync::Arc;

use super::{InstanceType, ProviderSettings, labels, shared};
use crate::release::apply_api;
use nodecast_model::auto_mode::{self, Refusal};
use nodecast_model::catalog::Region;
use nodecast_model::domain::{KarpenterVersion, NodeClass, NodePool, Requirements, Symbol};

/// Reads each pool as the release's [API](apply_api) does, with the requirements that its webhook would have added.
pub fn complete_pools(version: KarpenterVersion, pools: &mut [NodePool]) {
    for pool in pools {
        apply_api(version, pool);
        let defaults = default_requirements(version, pool);
        pool.requirements.extend(defaults);
    }
}

/// The node classes of `pools`: those given, and one of defaults for each name that none of them has; in `zones`, unless
/// they say otherwise.
pub fn complete_classes(mut classes: Vec<NodeClass>, pools: &[NodePool], zones: &[Symbol]) -> Vec<NodeClass> {
    for pool in pools {
        if !classes.iter().any(|class| class.name == pool.node_class) {
            classes.push(NodeClass::named(pool.node_class));
        }
    }
    for class in &mut classes {
        if class.zones.is_empty() {
            class.zones = zones.to_vec();
        }
    }
    classes
}

/// The instance types of each pool, by [`instance_types_priced_by`](super::instance_types_priced_by); none for a pool whose node class is
/// missing. Those of a region, a node class, and a release are made once and kept with the region.
pub fn types_of_pools(
    price_list: &Arc<Region>,
    region: &Arc<Region>,
    classes: &[NodeClass],
    pools: &[NodePool],
    settings: ProviderSettings,
) -> Vec<Vec<InstanceType>> {
    let types_of = |pool: &NodePool| {
        let class = classes.iter().find(|class| class.name == pool.node_class);
        class.map_or_else(Vec::new, |class| shared::instance_types(price_list, region, class, pool, settings))
    };
    pools.iter().map(types_of).collect()
}

/// The types of `region` that a pool of EKS Auto Mode asks for and that Auto Mode never launches, each with the reason, by name.
pub fn refused_in_auto_mode(region: &Region, class: &NodeClass, pool: &NodePool) -> Vec<(Symbol, Refusal)> {
    let mut wanted = Requirements::from_labels(&pool.labels);
    for requirement in &pool.requirements {
        wanted.add(requirement.clone());
    }
    let refused = region.types.iter().filter_map(|entry| {
        let reason = auto_mode::refusal(&entry.facts)?;
        let instance_type = labels::of_type(&entry.facts, class, 0, KarpenterVersion::AUTO_MODE);
        instance_type.intersects(&wanted).is_ok().then_some((entry.facts.name, reason))
    });
    refused.collect()
}

#[cfg(test)]
mod tests {
    use super::{complete_classes, complete_pools};
    use nodecast_model::domain::{KarpenterVersion, NodeClass, NodePool, Symbol};

    #[test]
    fn missing_node_class_uses_default_cluster_zones() {
        let node_class = NodeClass { zones: vec![Symbol::new("b")], ..NodeClass::named("own") };
        let pools = [NodePool { node_class: Symbol::new("own"), ..NodePool::named("x") }, NodePool::named("y")];
        let classes = complete_classes(vec![node_class], &pools, &[Symbol::new("a")]);
        let shown: Vec<_> = classes.iter().map(|class| (class.name.as_str(), class.zones[0].as_str())).collect();
        assert_eq!(shown, [("own", "b"), ("default", "a")]);
    }

    #[test]
    fn pools_are_completed_as_the_release_does() {
        let mut pools = [NodePool::named("default")];
        complete_pools(KarpenterVersion::V1_13, &mut pools);
        assert!(pools[0].requirements.is_empty());
        complete_pools(KarpenterVersion::V0_18, &mut pools);
        assert_eq!(pools[0].requirements.len(), 2);
    }
}
