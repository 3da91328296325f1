//! Instance types that simulations share: made once per region, node class, and release.
//!
//! Must not hold anything that differs between seeds.

use std::sync::{Arc, Mutex, PoisonError};

use super::{InstanceType, ProviderSettings, instance_types_priced_by, kubelet_of, releases};
use nodecast_model::catalog::Region;
use nodecast_model::domain::node_pool::KubeletConfig;
use nodecast_model::domain::{NodeClass, NodePool};

/// Lists that are kept with a region, the last one used first.
#[derive(Default)]
struct TypeLists(Mutex<Vec<(ListInputs, Arc<[InstanceType]>)>>);

/// Lists that are kept: a list of all types takes about 4 MB.
const LISTS_MAX: usize = 8;

/// Everything that a list depends on, except for the region.
#[derive(Clone, PartialEq)]
struct ListInputs {
    class: NodeClass,
    kubelet: KubeletConfig,
    /// Whether the release leaves out old types for this pool.
    opinionated: bool,
    settings: ProviderSettings,
}

/// [`instance_types_priced_by`], without making a list again that is kept with `region`.
pub(super) fn instance_types(
    price_list: &Arc<Region>,
    region: &Arc<Region>,
    class: &NodeClass,
    pool: &NodePool,
    settings: ProviderSettings,
) -> Vec<InstanceType> {
    let make = || instance_types_priced_by(price_list, region, class, pool, settings);
    let kept = region.derived::<TypeLists>().filter(|_| Arc::ptr_eq(price_list, region));
    let Some(TypeLists(kept)) = kept else { return make() };
    let inputs = ListInputs {
        class: class.clone(),
        kubelet: kubelet_of(pool, class).clone(),
        opinionated: releases::Filter::new(settings.version, pool).opinionated(),
        settings,
    };
    // Threads that need the same list at once wait for the first.
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    let place = kept.iter().position(|(known, _)| *known == inputs);
    let list = place.map_or_else(|| (inputs, make().into()), |place| kept.remove(place));
    let types = Arc::clone(&list.1);
    kept.insert(0, list);
    kept.truncate(LISTS_MAX);
    drop(kept);
    types.to_vec()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{LISTS_MAX, instance_types};
    use crate::instance_types::{InstanceType, ProviderSettings, instance_types_priced_by};
    use crate::testing::facts;
    use nodecast_model::catalog::{Price, Region, RegionType};
    use nodecast_model::domain::{Currency, KarpenterVersion, NodeClass, NodePool, Symbol};

    fn region(price: &str) -> Arc<Region> {
        let price = Price::own(price).unwrap();
        let types = ["r5.xlarge", "t2.large"].map(|name| RegionType::everywhere(facts(name), price, None, 2));
        Arc::new(Region::named("eu-west-1", Currency::Usd, &["eu-west-1a", "eu-west-1b"], types))
    }

    fn is_shared(one: &[InstanceType], other: &[InstanceType]) -> bool {
        one.iter().zip(other).all(|(one, other)| Arc::ptr_eq(&one.requirements, &other.requirements))
    }

    #[test]
    fn shared_types_equal_types_made_alone() {
        let (region, dear) = (region("0.2"), region("0.7"));
        let mut pods = NodePool::named("few-pods");
        pods.kubelet =
            Some(nodecast_model::domain::node_pool::KubeletConfig { max_pods: Some(8), ..Default::default() });
        let mut narrow = NodeClass::named("narrow");
        narrow.zones = vec![Symbol::new("eu-west-1b")];
        for version in KarpenterVersion::ALL {
            let settings = ProviderSettings::for_version(version);
            for class in [NodeClass::named("default"), narrow.clone()] {
                for pool in [NodePool::named("default"), pods.clone()] {
                    for price_list in [&region, &dear] {
                        let shared = instance_types(price_list, &region, &class, &pool, settings);
                        assert_eq!(shared, instance_types_priced_by(price_list, &region, &class, &pool, settings));
                    }
                }
            }
        }
    }

    #[test]
    fn equal_inputs_share_requirements() {
        let region = region("0.2");
        let types = |class: &str| {
            let class = NodeClass::named(class);
            instance_types(&region, &region, &class, &NodePool::named("x"), ProviderSettings::default())
        };
        let first = types("first");
        assert!(!is_shared(&first, &types("second")));
        assert!(is_shared(&first, &types("first")));
        (0..LISTS_MAX).for_each(|number| drop(types(&number.to_string())));
        assert!(!is_shared(&first, &types("first")), "the oldest list is dropped");
        let copy = Arc::new(Region::clone(&region));
        let class = NodeClass::named("first");
        let apart = instance_types(&copy, &copy, &class, &NodePool::named("x"), ProviderSettings::default());
        assert!(!is_shared(&types("first"), &apart), "a copy may be changed");
    }
}
