//! What is said of NodePools and pods that ask for zones by ids which no zone is taken for.

use std::collections::BTreeSet;

use super::{NamedPod, lints};
use nodecast_karpenter::instance_types::{ways_of_pod, zone_id_doubt};
use nodecast_model::catalog::Region;
use nodecast_model::domain::{NodePool, Symbol};
use nodecast_model::text::Warning;

/// Workloads that have a warning of their own.
const NAMED_MAX: usize = 5;

/// Warns of NodePools that can launch nothing, and of workloads whose pods no new node takes, for the sake of the id of a zone. `zones` are
/// those of the cluster's subnets, all of the region if there are none.
pub(super) fn warn(
    pools: &[NodePool],
    pods: &[NamedPod],
    (region, zones): (&Region, &[Symbol]),
    warnings: &mut Vec<Warning>,
) {
    let of_pool = |pool: &NodePool| {
        let text = zone_id_doubt(region, zones, &[pool.requirements.iter().cloned().collect()])?;
        Some(format!("NodePool {}: {text}", pool.name))
    };
    let mut texts: Vec<String> = pools.iter().filter_map(of_pool).collect();
    let mut told = BTreeSet::new();
    for pod in pods {
        if told.len() < NAMED_MAX
            && !told.contains(&pod.workload)
            && let Some(text) = zone_id_doubt(region, zones, &ways_of_pod(&pod.spec))
        {
            told.insert(&pod.workload);
            texts.push(format!("{}: {text}", pod.workload));
        }
    }
    warnings.extend(texts.into_iter().map(|text| Warning::from_lint(&lints::ZONE_ID, text)));
}
