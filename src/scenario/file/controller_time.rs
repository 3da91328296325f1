//! `controller_time`: how long controllers take, for all policies or under one.

use super::super::reader::{Fields, Reader};
use super::super::tree::Node;
use super::{ScenarioError, values};
use crate::domain::ControllerTime;
use crate::domain::controller_time::{AutoscalerTime, CallRate, ControllerManagerTime, SchedulerTime};
use crate::scenario::reader::Shape;
use crate::scenario::schema::policies::{
    CLUSTER_AUTOSCALER_TIME, CONTROLLER_MANAGER_TIME, CONTROLLER_TIME, KARPENTER_TIME, SCHEDULER_TIME,
};

/// What is stated, over what holds otherwise.
pub(super) fn read<'s>(
    reader: &mut Reader<'s>,
    fields: Fields<'_, 's>,
    otherwise: ControllerTime,
) -> Result<ControllerTime, ScenarioError> {
    const WHOLE: &[(&str, ControllerTime)] = &[("measured", ControllerTime::MEASURED), ("none", ControllerTime::NONE)];
    let Some(node) = fields.get("controller_time") else { return Ok(otherwise) };
    if node.as_text().is_some() {
        return reader.choice(node, "controller_time", WHOLE);
    }
    let fields = reader.fields(node, &CONTROLLER_TIME.shape)?;
    let mut time = otherwise;
    if let Some(node) = fields.get("kube_controller_manager") {
        time.controller_manager = controller_manager(reader, node, time.controller_manager)?;
    }
    if let Some(node) = fields.get("kube_scheduler") {
        time.scheduler = scheduler(reader, node, time.scheduler)?;
    }
    if let Some(node) = fields.get("karpenter") {
        time.karpenter =
            autoscaler(reader, node, &KARPENTER_TIME.shape, time.karpenter, ControllerTime::MEASURED.karpenter)?;
    }
    if let Some(node) = fields.get("cluster_autoscaler") {
        let measured = ControllerTime::MEASURED.cluster_autoscaler;
        time.cluster_autoscaler =
            autoscaler(reader, node, &CLUSTER_AUTOSCALER_TIME.shape, time.cluster_autoscaler, measured)?;
    }
    Ok(time)
}

/// `measured` or `none`, if one of these words stands there.
fn word<T: Copy>(
    reader: &Reader<'_>,
    node: &Node<'_>,
    measured: Option<T>,
) -> Result<Option<Option<T>>, ScenarioError> {
    if node.as_text().is_none() {
        return Ok(None);
    }
    reader.choice(node, "controller_time", &[("measured", measured), ("none", None)]).map(Some)
}

fn controller_manager<'s>(
    reader: &mut Reader<'s>,
    node: &Node<'s>,
    otherwise: Option<ControllerManagerTime>,
) -> Result<Option<ControllerManagerTime>, ScenarioError> {
    let measured = ControllerTime::MEASURED.controller_manager;
    if let Some(word) = word(reader, node, measured)? {
        return Ok(word);
    }
    let fields = reader.fields(node, &CONTROLLER_MANAGER_TIME.shape)?;
    let Some(mut time) = otherwise.or(measured) else { return Ok(None) };
    time.calls = calls(reader, fields, time.calls)?;
    let syncs = fields.optional("concurrent_replicaset_syncs", |n, what| count(reader, n, what))?;
    time.replica_set_syncs = syncs.unwrap_or(time.replica_set_syncs);
    Ok(Some(time))
}

fn scheduler<'s>(
    reader: &mut Reader<'s>,
    node: &Node<'s>,
    otherwise: Option<SchedulerTime>,
) -> Result<Option<SchedulerTime>, ScenarioError> {
    let measured = ControllerTime::MEASURED.scheduler;
    if let Some(word) = word(reader, node, measured)? {
        return Ok(word);
    }
    let fields = reader.fields(node, &SCHEDULER_TIME.shape)?;
    let Some(time) = otherwise.or(measured) else { return Ok(None) };
    Ok(Some(SchedulerTime { calls: calls(reader, fields, time.calls)? }))
}

fn autoscaler<'s>(
    reader: &mut Reader<'s>,
    node: &Node<'s>,
    shape: &'static Shape,
    otherwise: Option<AutoscalerTime>,
    measured: Option<AutoscalerTime>,
) -> Result<Option<AutoscalerTime>, ScenarioError> {
    if let Some(word) = word(reader, node, measured)? {
        return Ok(word);
    }
    let fields = reader.fields(node, shape)?;
    let Some(mut time) = otherwise.or(measured) else { return Ok(None) };
    time.calls = calls(reader, fields, time.calls)?;
    let speed = fields.optional("speed", |n, what| values::number(reader, n, what, 0.01, 1_000.0))?;
    // Within bounds, so that it fits; a whole number of percent, because state is whole.
    time.speed_percent = speed.map_or(time.speed_percent, |speed| libm::round(speed * 100.0) as u32);
    Ok(Some(time))
}

fn calls<'s>(reader: &Reader<'s>, fields: Fields<'_, 's>, otherwise: CallRate) -> Result<CallRate, ScenarioError> {
    let per_second = fields.optional("qps", |n, what| count(reader, n, what))?.unwrap_or(otherwise.per_second);
    let burst = fields.optional("burst", |n, what| count(reader, n, what))?.unwrap_or(otherwise.burst);
    Ok(CallRate { per_second, burst })
}

fn count(reader: &Reader<'_>, node: &Node<'_>, what: &str) -> Result<u32, ScenarioError> {
    let most = if what == "concurrent_replicaset_syncs" { 10_000 } else { 1_000_000 };
    reader.integer(node, what, 1, most).map(|count| u32::try_from(count).unwrap_or(u32::MAX))
}
