//! What of a cluster's objects one pass does not heed, or not as the cluster would.

use crate::lints;
use nodecast_karpenter::release::unread_kind;
use nodecast_manifests::Manifests;
use nodecast_model::domain::{KarpenterVersion, NodeClass, NodePool};
use nodecast_model::text::Warning;

/// One pass is asked about pods that are there.
pub(super) fn warn_of_buffers(objects: &Manifests, warnings: &mut Vec<Warning>) {
    for buffer in &objects.capacity_buffers {
        let text =
            format!("CapacityBuffer {}: one pass packs pods that wait, and keeps no room beside them", buffer.name);
        warnings.push(Warning::from_lint(&lints::BUFFER_NOT_PACKED, text));
    }
}

/// One pass is asked about nodes.
pub(super) fn warn_of_fargate(objects: &Manifests, warnings: &mut Vec<Warning>) {
    for profile in &objects.fargate_profiles {
        let text = format!(
            "Fargate profile {}: one pass packs the pods that it would take, too; leave them out, or ask with `nodecast run`",
            profile.name
        );
        warnings.push(Warning::from_lint(&lints::FARGATE_NOT_PACKED, text));
    }
}

/// Warns of pools of another time than the release's.
pub(super) fn warn_of_kinds(karpenter: KarpenterVersion, pools: &[NodePool], warnings: &mut Vec<Warning>) {
    for pool in pools {
        let Some(unread) = unread_kind(karpenter, pool) else { continue };
        let way_out = if pool.legacy { ", for example `--karpenter v0.27`" } else { "" };
        warnings.push(Warning::from_lint(&lints::UNREAD_POOL, format!("{unread}{way_out}")));
    }
}

/// Warns of pools that launch nothing, or not what the cluster would; with the node classes, and whether Karpenter uses the capacity
/// reservations that they select.
pub(super) fn warn_of_pools(
    pools: &[NodePool],
    (classes, uses_reservations): (&[NodeClass], bool),
    warnings: &mut Vec<Warning>,
) {
    for pool in pools {
        if !pool.ready {
            let text = format!("NodePool {} is not ready or is being deleted: it launches nothing", pool.name);
            warnings.push(Warning::from_lint(&lints::POOL_NOT_READY, text));
        }
        if !classes.iter().any(|class| class.name == pool.node_class) {
            let (name, class) = (pool.name, pool.node_class);
            warnings.push(Warning::from_lint(
                &lints::NODE_CLASS_MISSING,
                format!(
                    "NodePool {name} names the node class {class}, which is in no file: the defaults of AL2023 stand in"
                ),
            ));
        }
    }
    for class in classes.iter().filter(|class| !class.capacity_reservations.is_empty()) {
        let name = class.name;
        warnings.push(Warning::from_lint(&lints::RESERVATIONS_NOT_PACKED, if uses_reservations {
            format!("EC2NodeClass {name} selects capacity reservations; what room they have is in no file, so none is used")
        } else {
            format!(
                "EC2NodeClass {name} selects capacity reservations, and Karpenter's feature gate ReservedCapacity is off: the selection \
                 has no effect, and EC2 fills open reservations that match with On-Demand nodes"
            )
        }));
    }
}
