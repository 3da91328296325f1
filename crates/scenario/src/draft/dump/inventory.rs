//! What the nodes of a dump are and cost by the hour, to compare with the first run.
//!
//! What must not live here: anything that the scenario's nodes follow from (`groups`).

use super::Dump;
use super::groups::{instance_type, is_on_fargate, is_spot};
use super::objects::Object;
use crate::catalog::Region;
use crate::domain::words::counted;
use crate::domain::{HourlyRate, Quantity, ResourceName, Symbol};

/// The nodes in one sentence: how many, of them Spot, how many cores, and what they cost an hour at the catalog's prices without
/// volumes; `None` if there are no nodes.
pub(super) fn sentence(dump: &Dump<'_>, region: &Region) -> Option<String> {
    let nodes: Vec<&Object<'_>> = dump.nodes.iter().filter(|node| !is_on_fargate(node)).collect();
    if nodes.is_empty() {
        return None;
    }
    let spot = nodes.iter().filter(|node| is_spot(node)).count();
    let cores: i64 = nodes.iter().filter_map(|node| milli_cpu(node)).sum();
    let rates: Vec<HourlyRate> = nodes.iter().filter_map(|node| rate(node, region)).collect();
    let total: HourlyRate = rates.iter().copied().sum();
    let unpriced = match nodes.len() - rates.len() {
        0 => String::new(),
        missing => format!(", {} with unknown price excluded", counted(missing as u64, "node", "nodes")),
    };
    Some(format!(
        "the dump shows {} ({spot} Spot) with {}.{} allocatable cores, {}{:.2} an hour by the catalog{unpriced}",
        counted(nodes.len() as u64, "node", "nodes"),
        cores / 1_000,
        cores % 1_000 / 100,
        region.currency.sign(),
        total.as_f64(),
    ))
}

fn milli_cpu(node: &Object<'_>) -> Option<i64> {
    let quantity: Quantity = node.text(&["status", "allocatable", "cpu"])?.parse().ok()?;
    Some(ResourceName::CPU.amount(quantity))
}

fn rate(node: &Object<'_>, region: &Region) -> Option<HourlyRate> {
    let kind = region.instance_type(Symbol::new(instance_type(node)?))?;
    if !is_spot(node) {
        return kind.on_demand.map(|price| price.rate);
    }
    let zone = region.zone_index(Symbol::new(super::cluster::zone_of(node)?))?;
    kind.spot(zone).map(|price| price.rate)
}
