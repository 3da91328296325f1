//! Upkeep of node groups: updates, instance refreshes, repair, warm pools.

use super::kind::{Name, Placed, Whole, words};
use crate::domain::node_group::{
    InstanceRefresh, NodeRepair, NodeShare, UpdateConfig, UpdateStrategy, WarmPool, WarmPoolState,
};
use crate::domain::{KubernetesVersion, SimDuration};
use crate::file::node_groups;

section! {
    /// EKS never updates a managed group by itself: not with a new release of the control plane, and not with a new machine image.
    /// An update raises the group's size and its maximum, cordons the old nodes, drains them in batches of `maxUnavailable` for
    /// at most 15 minutes each, and lowers both again by one at a time ([eks.md](eks.md#updates-of-managed-groups)).
    UPDATE_GROUP: "`update_group`", "`timeline[].update_group`";
    struct UpdateGroup {
        /// A managed node group.
        group["node group"]: Placed<Name>;
        /// Kubernetes release of the new nodes, at most that of the control plane.
        release: KubernetesVersion, or "that of the group";
        /// The new machine image, by any name.
        ami["machine image"]: Name, or "the newest of the release";
        /// Whether pods that a budget keeps on a node are deleted after 15 minutes; otherwise the update fails then.
        force: bool = false;
    }
}

section! {
    /// An instance refresh replaces instances without a drain: pods end with their instance, and budgets do not count. A managed group is updated
    /// with `update_group`.
    REFRESH_GROUP: "`refresh_group`", "`timeline[].refresh_group`";
    struct RefreshGroup {
        /// A node group that EKS does not manage.
        group["node group"]: Placed<Name>;
        /// Share of the desired instances in percent that stay in service.
        min_healthy: Whole<0, 100> = 90;
        /// Time from an instance in service to the next batch.
        warm_up: SimDuration, or "`0s`";
        /// Percentages of the instances after which the refresh pauses, in rising order.
        checkpoints: Vec<Whole<1, 100>> = Vec::new(), or "none";
        /// How long it pauses.
        checkpoint_delay: SimDuration, over InstanceRefresh::CHECKPOINT_DELAY;
        /// Whether instances of the newest launch template stay. A refresh without `release` makes no new one.
        skip_matching: bool = false;
        /// Kubernetes release of the new nodes.
        release: KubernetesVersion, or "that of the group";
    }
}

section! {
    UPDATE_CONFIG: "`updateConfig`", "`nodeGroups[].updateConfig`";
    becomes UpdateConfig, node_groups::update_config;
    struct UpdateKeys {
        /// Nodes that an update drains at a time.
        "maxUnavailable" as max_unavailable: Placed<Whole<1, 100>>, or "1";
        /// The same as a percentage of the desired nodes.
        "maxUnavailablePercentage" as max_percentage: Placed<Whole<1, 100>>, or "-";
        /// Whether new nodes come before old ones end (`DEFAULT`), or after (`MINIMAL`).
        "updateStrategy" as strategy: Strategy, over UpdateStrategy::Default;
    }
}

section! {
    /// EKS replaces nodes of a managed group that are not Ready for 30 minutes. Conditions that only the node monitoring agent reports
    /// are not simulated.
    REPAIR: "`nodeRepairConfig`", "`nodeGroups[].nodeRepairConfig`";
    becomes Option<NodeRepair>, |_, _, own: Self| {
        let share = |count: Option<u32>, percent: Option<u32>| {
            count.map(NodeShare::Count).or(percent.map(NodeShare::Percent))
        };
        Ok(own.enabled.then(|| NodeRepair {
            max_unhealthy: share(own.max_unhealthy, own.max_unhealthy_percentage),
            max_parallel: share(own.max_parallel, own.max_parallel_percentage),
            wait: Some(own.wait.unwrap_or(NodeRepair::NOT_READY)),
        }))
    };
    struct RepairKeys {
        /// Whether EKS repairs nodes.
        enabled: bool = true;
        /// Repair stops while more nodes than this are unhealthy.
        "maxUnhealthyNodeThresholdCount" as max_unhealthy: Whole<1, 100_000>, or "-";
        /// The same as a percentage of the nodes.
        "maxUnhealthyNodeThresholdPercentage" as max_unhealthy_percentage: Whole<1, 100>, or "20 in groups of more than 5 nodes";
        /// Nodes that are repaired at a time.
        "maxParallelNodesRepairedCount" as max_parallel: Whole<1, 100_000>, or "all";
        /// The same as a percentage of the unhealthy nodes.
        "maxParallelNodesRepairedPercentage" as max_parallel_percentage: Whole<1, 100>, or "-";
        /// How long a node is not Ready before it is replaced.
        wait: SimDuration, over NodeRepair::NOT_READY;
    }
}

section! {
    /// Instances that are bootstrapped and wait to become nodes. Stopped ones cost their volumes only, and start in 10 to 15 s
    /// ([eks.md](eks.md#warm-pools)).
    WARM_POOL: "`warmPoolConfig`", "`nodeGroups[].warmPoolConfig`";
    becomes Option<WarmPool>, |_, _, keys: Self| {
        Ok(keys.enabled.then_some(WarmPool {
            max_prepared: keys.max_prepared,
            min_size: keys.min_size,
            state: keys.state.unwrap_or_default(),
            reuse_on_scale_in: keys.reuse_on_scale_in,
        }))
    };
    struct WarmPoolKeys {
        /// Whether the group has a warm pool.
        enabled: bool = true;
        /// Instances of the group and the pool together.
        "maxGroupPreparedCapacity" as max_prepared: Whole<0, 100_000>, or "the largest size of the group";
        /// Least number of instances in the pool.
        "minSize" as min_size: Whole<0, 100_000> = 0;
        /// State of the instances in the pool.
        "poolState" as state: PoolState, over WarmPoolState::Stopped;
        /// Whether instances return to the pool on scale-in, with the images that they have.
        "reuseOnScaleIn" as reuse_on_scale_in: bool = false;
    }
}

words! {
    /// How instances of a warm pool wait.
    PoolState: WarmPoolState,
    "Stopped" => WarmPoolState::Stopped, "Running" => WarmPoolState::Running, "Hibernated" => WarmPoolState::Hibernated
}

words! {
    /// Order of an update.
    Strategy: UpdateStrategy, "DEFAULT" => UpdateStrategy::Default, "MINIMAL" => UpdateStrategy::Minimal
}
