//! `workloads` and `images`: what no manifest says of pods and their images.

use std::collections::BTreeMap;

use super::super::definition::{ImageSettings, WorkloadTimes};
use super::super::reader::{Fields, Reader};
use super::super::tree::Node;
use super::ScenarioError;
use super::checks::Workloads;
use super::timeline::object_name;
use crate::domain::Symbol;
use crate::domain::workload::ObjectName;
use crate::scenario::schema::whole::{IMAGES, WORKLOAD};

/// Reads `workloads`.
pub(super) fn times<'s>(
    reader: &mut Reader<'s>,
    fields: Fields<'_, 's>,
    workloads: &Workloads,
) -> Result<BTreeMap<ObjectName, WorkloadTimes>, ScenarioError> {
    let mut all = BTreeMap::new();
    for node in fields.optional("workloads", |n, what| reader.list(n, what))?.unwrap_or_default() {
        let own = reader.fields(node, &WORKLOAD.shape)?;
        let name_node = own.required(reader, "name")?;
        let name = object_name(reader, name_node)?;
        workloads.find_any(reader, name_node.at, name)?;
        if all.insert(name, of_one(reader, own)?).is_some() {
            return Err(reader
                .error(node.at, format!("`{name}` is described twice"))
                .because("the second time")
                .help("put everything about it into one entry"));
        }
    }
    Ok(all)
}

fn of_one<'s>(reader: &Reader<'s>, own: Fields<'_, 's>) -> Result<WorkloadTimes, ScenarioError> {
    let time = |key| own.optional(key, |n, what| reader.duration(n, what));
    let otherwise = WorkloadTimes::default();
    Ok(WorkloadTimes {
        run_time: time("run_time")?,
        failures: match own.get("failures") {
            Some(node) => share(reader, node)?,
            None => 0.0,
        },
        init_time: time("init_time")?.unwrap_or(otherwise.init_time),
        start_time: time("start_time")?.unwrap_or(otherwise.start_time),
        shutdown_time: time("shutdown_time")?.unwrap_or(otherwise.shutdown_time),
    })
}

fn share(reader: &Reader<'_>, node: &Node<'_>) -> Result<f64, ScenarioError> {
    let share = reader.quantity(node, "failures")?.as_f64();
    if (0.0..=1.0).contains(&share) {
        return Ok(share);
    }
    Err(reader
        .error(node.at, "`failures` is the share of pods that fail")
        .because("not between 0 and 1")
        .help("write for example `0.05` for one pod of twenty"))
}

/// Reads `images`.
pub(super) fn images<'s>(reader: &mut Reader<'s>, fields: Fields<'_, 's>) -> Result<ImageSettings, ScenarioError> {
    let mut images = ImageSettings::default();
    let Some(node) = fields.get("images") else { return Ok(images) };
    let own = reader.fields(node, &IMAGES.shape)?;
    if let Some(node) = own.get("size") {
        images.size = bytes(reader, node, "size")?;
    }
    if let Some(node) = own.get("pull_rate") {
        images.pull_rate = bytes(reader, node, "pull_rate")?;
    }
    if let Some(node) = own.get("unpack_rate") {
        images.unpack_rate = bytes(reader, node, "unpack_rate")?;
    }
    if let Some(node) = own.get("sizes") {
        for entry in reader.entries(node, "sizes")? {
            images.sizes.insert(Symbol::new(&entry.key), bytes(reader, &entry.value, "a size")?);
        }
    }
    Ok(images)
}

/// A quantity of bytes, at least one.
fn bytes(reader: &Reader<'_>, node: &Node<'_>, what: &str) -> Result<i64, ScenarioError> {
    let amount = reader.quantity(node, what)?.as_f64();
    if (1.0..1e15).contains(&amount) {
        return Ok(libm::round(amount) as i64);
    }
    Err(reader
        .error(node.at, format!("{what} is not a number of bytes"))
        .because("not above zero")
        .help("write for example `250M` (of an image), or `80M` (a second)"))
}
