//! `objectives`: the limits that the answer is held against.

use super::super::definition::{Objectives, WaitLimit, WaitMeasure, Waiting};
use super::super::reader::{Fields, Reader};
use super::super::tree::Node;
use super::ScenarioError;
use super::checks::Workloads;
use super::timeline::object_name;
use crate::domain::{Money, SimDuration};
use crate::scenario::schema::whole::{OBJECTIVES, WAITS};

/// Reads `objectives`.
pub(super) fn read<'s>(
    reader: &mut Reader<'s>,
    fields: Fields<'_, 's>,
    workloads: &Workloads,
) -> Result<Objectives, ScenarioError> {
    let Some(node) = fields.get("objectives") else { return Ok(Objectives::default()) };
    let fields = reader.fields(node, &OBJECTIVES.shape)?;
    let mut waits = Vec::new();
    for node in fields.optional("waits", |n, what| reader.list(n, what))?.unwrap_or_default() {
        waits.extend(limits_on_waits(reader, node, workloads)?);
    }
    let limit = |key| fields.optional(key, |n, what| reader.duration(n, what));
    let in_currency = |error: ScenarioError| error.help("write a number in the currency of the region: `400` or `0.5`");
    let cost = fields.optional("cost", |n, what| reader.quantity(n, what).map_err(in_currency))?;
    let in_minutes =
        |error: ScenarioError| error.help("write replicas times minutes: `30`, for one that lacks half an hour");
    Ok(Objectives {
        unavailable_pod_minutes: fields
            .optional("unavailable_pod_minutes", |n, what| reader.quantity(n, what).map_err(in_minutes))?,
        at_zero: limit("at_zero")?,
        at_max: limit("at_max")?,
        pending_p95: limit("pending_p95")?,
        pending_p99: limit("pending_p99")?,
        waits,
        request_p99: limit("request_p99")?,
        cost: cost.map(|amount| Money::from_nanos(amount.nanos())),
    })
}

/// An entry of `waits`: whose waits, and a limit on one or more of their figures.
fn limits_on_waits<'s>(
    reader: &mut Reader<'s>,
    node: &Node<'s>,
    workloads: &Workloads,
) -> Result<Vec<WaitLimit>, ScenarioError> {
    let own = reader.fields(node, &WAITS.shape)?;
    let whose = match (own.get("workload"), own.get("priority")) {
        (Some(name), None) => {
            let workload = object_name(reader, name)?;
            workloads.find_any(reader, name.at, workload)?;
            Waiting::Workload(workload)
        }
        (None, Some(priority)) => {
            let priority = reader.integer(priority, "priority", i64::from(i32::MIN), i64::from(i32::MAX))?;
            Waiting::Priority(i32::try_from(priority).unwrap_or_default())
        }
        _ => {
            return Err(reader
                .error(node.at, "a limit on waits is on those of one workload or of one priority")
                .because("this entry")
                .help("give it `workload: NAMESPACE/NAME` or `priority: NUMBER`"));
        }
    };
    let limit = |(key, measure): (&'static str, WaitMeasure)| {
        let stated: Option<SimDuration> = own.optional(key, |n, what| reader.duration(n, what))?;
        Ok(stated.map(|limit| WaitLimit { whose, measure, limit }))
    };
    let limits: Vec<Option<WaitLimit>> =
        WaitMeasure::ALL.into_iter().map(limit).collect::<Result<_, ScenarioError>>()?;
    let limits: Vec<WaitLimit> = limits.into_iter().flatten().collect();
    if limits.is_empty() {
        let keys: Vec<String> = WaitMeasure::ALL.iter().map(|(key, _)| format!("`{key}`")).collect();
        return Err(reader
            .error(node.at, "an entry of `waits` limits nothing")
            .because("no limit")
            .help(format!("give it one or more of {}: `p95: 30s`", keys.join(", "))));
    }
    Ok(limits)
}
