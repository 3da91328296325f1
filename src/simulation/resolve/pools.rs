//! The NodePools that a policy's Karpenter knows, from the start and as the timeline changes them.
//!
//! Deviation: a NodePool keeps the node class and the kubelet settings that it begins with, and node classes do not change during a run.
//!
//! What must not live here: what Karpenter does about a changed NodePool (`policy`).

use crate::actors::{Action, Step};
use crate::domain::node_pool::ConsolidationPolicy;
use crate::domain::words::counted;
use crate::domain::{KarpenterVersion, NodeClass, NodePool, SimTime};
use crate::policy::instance_types::complete_pools;
use crate::policy::release::{self, Behaviour};
use crate::scenario::manifests::Manifests;
use crate::scenario::{Autoscaler, PolicyVariant, Scenario};

/// What the timeline applies.
fn applied(scenario: &Scenario) -> impl Iterator<Item = &Manifests> {
    scenario.timeline.iter().filter_map(|timed| Some(&**timed.action.applied()?))
}

/// The node classes of the manifests, and those that come with the timeline.
pub(super) fn classes(scenario: &Scenario, manifests: &Manifests) -> Vec<NodeClass> {
    let mut classes = manifests.node_classes.clone();
    for class in applied(scenario).flat_map(|later| &later.node_classes) {
        if !classes.iter().any(|own| own.name == class.name) {
            classes.push(class.clone());
        }
    }
    classes
}

/// The NodePools with what their release's webhook would have added. One that only the timeline applies is there from the start and
/// not ready.
pub(super) fn at_start(scenario: &Scenario, policy: &PolicyVariant, warnings: &mut Vec<String>) -> Vec<NodePool> {
    let version = policy.versions.karpenter;
    let mut pools = policy.manifests.node_pools.clone();
    for pool in applied(scenario).flat_map(|later| &later.node_pools) {
        if !pools.iter().any(|own| own.name == pool.name) {
            pools.push(NodePool { ready: false, ..pool.clone() });
        }
    }
    warnings.extend(release::warnings(version, &pools));
    complete_pools(version, &mut pools);
    for pool in &pools {
        let name = pool.name;
        let consolidates = pool.legacy && pool.disruption.policy != ConsolidationPolicy::WhenEmpty;
        if consolidates && !Behaviour::of(version).knows_consolidation() {
            warnings.push(format!(
                "Provisioner {name}: Karpenter {version} does not know `consolidation`: its nodes stay until they are interrupted or expire"
            ));
        }
        if pool.disruption.policy == ConsolidationPolicy::Balanced && !Behaviour::of(version).weighs_savings {
            warnings.push(format!(
                "NodePool {name}: Karpenter {version} does not know `consolidationPolicy: Balanced`, which came with {}: its API \
                 refuses the NodePool, and here it consolidates as `WhenEmptyOrUnderutilized`",
                KarpenterVersion::V1_14
            ));
        }
        if pool.replicas.is_some() && !policy.feature_gates.static_capacity {
            warnings.push(format!(
                "NodePool {name} is static (`replicas`), and Karpenter's feature gate `static_capacity` is off: it has no nodes"
            ));
        }
        if !pool.startup_taints.is_empty() {
            warnings
                .push(format!("NodePool {name}: its startup taints are taken to be removed 5s after a node is Ready"));
        }
    }
    pools
}

/// The steps by which NodePools take the form that is applied at `at`.
pub(super) fn replaced(
    at: SimTime,
    later: &Manifests,
    policy: &PolicyVariant,
    warnings: &mut Vec<String>,
) -> Vec<Step> {
    let mut warn = |count: usize, one: &str, many: &str| {
        if count > 0 {
            let what = counted(count as u64, one, many);
            warnings.push(format!("timeline at {at}: {what} not changed during a run"));
        }
    };
    let changed =
        |class: &&NodeClass| policy.manifests.node_classes.iter().any(|own| own.name == class.name && own != *class);
    warn(later.node_classes.iter().filter(changed).count(), "node class is", "node classes are");
    warn(later.node_groups.len(), "node group is", "node groups are");
    if policy.autoscaler != Autoscaler::Karpenter {
        return Vec::new();
    }
    let mut pools = later.node_pools.clone();
    complete_pools(policy.versions.karpenter, &mut pools);
    for pool in &mut pools {
        let Some(before) = policy.manifests.node_pools.iter().find(|own| own.name == pool.name) else { continue };
        if (before.node_class, &before.kubelet) != (pool.node_class, &pool.kubelet) {
            warnings.push(format!(
                "timeline at {at}: NodePool {} keeps the node class and the kubelet settings that it begins with",
                pool.name
            ));
            (pool.node_class, pool.kubelet) = (before.node_class, before.kubelet.clone());
        }
    }
    pools.into_iter().map(|pool| Step { at, action: Action::ReplacePool(Box::new(pool)) }).collect()
}
