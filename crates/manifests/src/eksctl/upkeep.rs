//! Upkeep of an eksctl node group: `updateConfig`, `nodeRepairConfig`, and `warmPoolConfig`.

use crate::lints;
use crate::node_group::check_warm_pool;
use nodecast_model::domain::SimDuration;
use nodecast_model::domain::node_group::{
    InstancesDistribution, NodeRepair, NodeShare, UpdateConfig, UpdateStrategy, WarmPool, WarmPoolState,
};
use nodecast_model::domain::node_pool::AmiFamily;
use nodecast_model::text::InputError;
use nodecast_model::text::reader::{Fields, Reader, Shape};
use nodecast_model::text::tree::Node;

static UPDATE_CONFIG: Shape = Shape {
    name: "`updateConfig`",
    keys: &["maxUnavailable", "maxUnavailablePercentage", "updateStrategy"],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};

const STRATEGIES: &[(&str, UpdateStrategy)] =
    &[("DEFAULT", UpdateStrategy::Default), ("MINIMAL", UpdateStrategy::Minimal)];

/// `updateConfig`, which managed groups alone have.
///
/// Source: eksctl 0.229 `pkg/apis/eksctl.io/v1alpha5/types.go`, `NodeGroupUpdateConfig`; EKS API reference, `NodegroupUpdateConfig`.
///
/// # Errors
/// If a value is not of its kind, or both forms of `maxUnavailable` are given.
pub(super) fn update_config<'s>(
    reader: &mut Reader<'s>,
    group: Fields<'_, 's>,
    managed: bool,
) -> Result<UpdateConfig, InputError> {
    let Some(node) = group.get("updateConfig").filter(|_| managed) else { return Ok(UpdateConfig::default()) };
    let fields = reader.fields(node, &UPDATE_CONFIG)?;
    let share = |key, most| fields.optional(key, |n, what| reader.integer(n, what, 1, most));
    let (count, percent) = (share("maxUnavailable", 100)?, share("maxUnavailablePercentage", 100)?);
    let max_unavailable = match (count, percent) {
        (Some(_), Some(_)) => {
            let error = reader.error(node.at, "both `maxUnavailable` and `maxUnavailablePercentage`");
            return Err(error.because("EKS takes one of them").help("remove one"));
        }
        (None, Some(percent)) => NodeShare::Percent(percent as u32),
        (count, None) => NodeShare::Count(count.unwrap_or(1) as u32),
    };
    let strategy = fields.optional("updateStrategy", |n, what| reader.choice(n, what, STRATEGIES))?;
    Ok(UpdateConfig { max_unavailable, strategy: strategy.unwrap_or_default() })
}

static WARM_POOL: Shape = Shape {
    name: "`warmPoolConfig`",
    keys: &["enabled", "maxGroupPreparedCapacity", "minSize", "poolState", "reuseOnScaleIn"],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};

/// States of instances in a warm pool, as eksctl and the API write them.
pub const WARM_POOL_STATES: &[(&str, WarmPoolState)] = &[
    ("Stopped", WarmPoolState::Stopped),
    ("Running", WarmPoolState::Running),
    ("Hibernated", WarmPoolState::Hibernated),
    ("STOPPED", WarmPoolState::Stopped),
    ("RUNNING", WarmPoolState::Running),
    ("HIBERNATED", WarmPoolState::Hibernated),
];

/// `warmPoolConfig`.
///
/// Source: EKS API reference, `WarmPoolConfig` (2026); -1 as `maxGroupPreparedCapacity` is the largest size of the group.
///
/// # Errors
/// If a value is not of its kind, or AWS refuses such a pool.
pub(super) fn warm_pool<'s>(
    reader: &mut Reader<'s>,
    group: Fields<'_, 's>,
    (purchase, family, managed): (InstancesDistribution, AmiFamily, bool),
) -> Result<Option<WarmPool>, InputError> {
    let Some(node) = group.get("warmPoolConfig") else { return Ok(None) };
    let fields = reader.fields(node, &WARM_POOL)?;
    let size = |key, least| fields.optional(key, |n, what| reader.integer(n, what, least, 100_000));
    let truth = |key| fields.optional(key, |n, what| reader.truth(n, what));
    let pool = WarmPool {
        max_prepared: size("maxGroupPreparedCapacity", -1)?.and_then(|most| u32::try_from(most).ok()),
        min_size: size("minSize", 0)?.unwrap_or(0) as u32,
        state: fields.optional("poolState", |n, what| reader.choice(n, what, WARM_POOL_STATES))?.unwrap_or_default(),
        reuse_on_scale_in: truth("reuseOnScaleIn")?.unwrap_or(false),
    };
    if !truth("enabled")?.unwrap_or(true) {
        return Ok(None);
    }
    let has_own_image = managed && super::has_own_image(group);
    check_warm_pool(reader, node.at, &pool, (purchase, family, has_own_image))?;
    Ok(Some(pool))
}

static REPAIR: Shape = Shape {
    name: "`nodeRepairConfig`",
    keys: &[
        "enabled",
        "maxUnhealthyNodeThresholdCount",
        "maxUnhealthyNodeThresholdPercentage",
        "maxParallelNodesRepairedCount",
        "maxParallelNodesRepairedPercentage",
        "nodeRepairConfigOverrides",
    ],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};

/// `nodeRepairConfig`, which managed groups alone have. Warns of overrides of conditions that are not simulated.
///
/// Source: EKS API reference, `NodeRepairConfig` (2026).
///
/// # Errors
/// If a value is not of its kind.
pub(super) fn repair<'s>(
    reader: &mut Reader<'s>,
    group: Fields<'_, 's>,
    managed: bool,
) -> Result<Option<NodeRepair>, InputError> {
    let Some(node) = group.get("nodeRepairConfig").filter(|_| managed) else { return Ok(None) };
    let fields = reader.fields(node, &REPAIR)?;
    let count = |key| fields.optional(key, |n, what| reader.integer(n, what, 1, 100_000));
    let percent = |key| fields.optional(key, |n, what| reader.integer(n, what, 1, 100));
    let share = |number: Option<i64>, percent: Option<i64>| {
        number
            .map(|number| NodeShare::Count(number as u32))
            .or(percent.map(|percent| NodeShare::Percent(percent as u32)))
    };
    let repair = NodeRepair {
        max_unhealthy: share(count("maxUnhealthyNodeThresholdCount")?, percent("maxUnhealthyNodeThresholdPercentage")?),
        max_parallel: share(count("maxParallelNodesRepairedCount")?, percent("maxParallelNodesRepairedPercentage")?),
        wait: wait(reader, fields)?,
    };
    let enabled = fields.optional("enabled", |n, what| reader.truth(n, what))?.unwrap_or(false);
    Ok(enabled.then_some(repair))
}

/// How long a node that is not Ready waits for its replacement; `None` if nothing replaces it.
fn wait<'s>(reader: &mut Reader<'s>, fields: Fields<'_, 's>) -> Result<Option<SimDuration>, InputError> {
    let mut wait = Some(NodeRepair::NOT_READY);
    let overrides = fields.optional("nodeRepairConfigOverrides", |n, what| reader.list(n, what))?.unwrap_or_default();
    for item in overrides {
        let text = |key| item.get(key).and_then(Node::as_text);
        if text("nodeMonitoringCondition") != Some("Ready") {
            let message = "`nodeRepairConfigOverrides`: conditions of the node monitoring agent do not occur here, so waits after \
                           hardware faults may be too long";
            reader.left_out(&lints::NODE_REPAIR, item.at, message, "");
            continue;
        }
        let minutes =
            item.get("minRepairWaitTimeMins").map(|node| reader.integer(node, "minRepairWaitTimeMins", 0, 10_080));
        wait = minutes.transpose()?.map(|transpose| SimDuration::from_secs(60 * transpose)).or(wait);
        wait = wait.filter(|_| text("repairAction") != Some("NoAction"));
    }
    Ok(wait)
}
