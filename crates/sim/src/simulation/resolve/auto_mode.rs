//! What is to be said of a policy with EKS Auto Mode.

use std::borrow::Cow;

use crate::actors::Setup;
use crate::domain::Symbol;
use crate::manifests::Manifests;
use crate::simulation::usable_types::of_pool;
use nodecast_karpenter::instance_types::refused_in_auto_mode;
use nodecast_model::auto_mode::{Refusal, is_part_of_nodes, keep_off};
use nodecast_settings::lints::setup;
use nodecast_settings::{Caveats, PolicyVariant};

/// Says which DaemonSets and NodePools are left out, and which pools no instance can be launched for.
pub(super) fn warn(setup: &Setup<'_>, warnings: &mut Caveats) {
    let Some(auto_mode) = &setup.policy.auto_mode else { return };
    let policy = &setup.policy.name;
    if !auto_mode.agents.is_empty() {
        warnings.add(
            &setup::AUTO_MODE_AGENTS,
            format!(
                "policy {policy}: {} run no pods on EKS Auto Mode nodes, which have these functions built in",
                auto_mode.agents.join(", ")
            ),
        );
    }
    if !auto_mode.foreign_pools.is_empty() {
        let names: Vec<&str> = auto_mode.foreign_pools.iter().map(|foreign_pool| foreign_pool.as_str()).collect();
        warnings.add(&setup::AUTO_MODE_FOREIGN_POOLS, format!(
            "policy {policy}: EKS Auto Mode does not see the NodePools {}, whose `nodeClassRef.group` is not `eks.amazonaws.com`",
            names.join(", ")
        ));
    }
    for pool in &setup.node_pools {
        let Some(class) = setup.node_classes.iter().find(|class| class.name == pool.node_class) else { continue };
        if of_pool(setup, &setup.region, pool, class).is_empty() {
            warnings.add(
                &setup::AUTO_MODE_EMPTY_POOL,
                nothing(pool.name, &refused_in_auto_mode(&setup.region, class, pool)),
            );
        }
    }
}

/// What the timeline applies, as a policy has it: agents that are part of nodes of EKS Auto Mode have no pods there.
pub(super) fn without_agents<'m>(later: &'m Manifests, policy: &PolicyVariant) -> Cow<'m, Manifests> {
    if policy.auto_mode.is_none() || !later.daemon_sets.iter().any(is_part_of_nodes) {
        return Cow::Borrowed(later);
    }
    let mut copy = later.clone();
    copy.daemon_sets.iter_mut().filter(|set| is_part_of_nodes(set)).for_each(keep_off);
    Cow::Owned(copy)
}

/// That a pool admits no type that is launched, with the reason for those that it names.
fn nothing(pool: Symbol, refused: &[(Symbol, Refusal)]) -> String {
    const NAMED_MAX: usize = 4;
    if refused.is_empty() {
        return format!("NodePool {pool}: no instance type meets all its requirements, so it launches nothing");
    }
    let named: Vec<String> =
        refused.iter().take(NAMED_MAX).map(|(name, reason)| format!("{name} is {reason}")).collect();
    let more = refused.len().saturating_sub(NAMED_MAX);
    let rest = if more > 0 { format!("; and {more} more") } else { String::new() };
    format!("NodePool {pool}: EKS Auto Mode launches nothing for it: {}{rest}", named.join("; "))
}
