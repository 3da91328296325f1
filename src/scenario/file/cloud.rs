//! `ec2` and `faults`: what is special about the simulated EC2, and what goes wrong when.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::super::definition::Ec2Settings;
use super::super::reader::{Fields, Reader};
use super::super::tree::Node;
use super::availability::traces;
use super::price_records::replay;
use super::values::{bucket, fraction, number};
use super::{Files, ScenarioError, account, billing, faults};
use crate::catalog::Region;
use crate::cloud::quotas::QuotaClass;
use crate::cloud::settings::{ApiLimits, CapacityModel, CloudSettings, Failures, Interruptions, Quotas, SpotPrices};
use crate::cloud::{BootStages, Consistency};
use crate::domain::node_pool::AmiFamily;
use crate::domain::{SimDuration, Symbol};
use crate::scenario::schema::ec2::{API, EC2, FAILURES, INTERRUPTIONS, LAUNCH_LATENCY, QUOTAS, SPOT};

/// Reads `ec2` and `faults`.
pub(super) fn read<'s>(
    reader: &mut Reader<'s>,
    fields: Fields<'_, 's>,
    region: &Region,
    files: &mut Files<'_>,
    node_pools: &BTreeSet<Symbol>,
    (start, duration): (jiff::Timestamp, SimDuration),
) -> Result<Ec2Settings, ScenarioError> {
    let faults = faults::read(reader, fields, region, node_pools, duration)?;
    let Some(node) = fields.get("ec2") else {
        let cloud = Arc::new(CloudSettings { faults, ..CloudSettings::default() });
        return Ok(Ec2Settings { launch_latency: None, cloud });
    };
    const CAPACITY: &[(&str, CapacityModel)] =
        &[("infinite", CapacityModel::Infinite), ("static", CapacityModel::Static), ("updown", CapacityModel::UpDown)];
    let fields = reader.fields(node, &EC2.shape)?;
    let launch_latency = fields.get("launch_latency").map(|node| launch_latency(reader, node)).transpose()?;
    let capacity = fields.optional("capacity", |n, what| reader.choice(n, what, CAPACITY))?.unwrap_or_default();
    let mut cloud = CloudSettings { capacity, faults, ..CloudSettings::default() };
    if let Some(node) = fields.get("spot") {
        (cloud.prices, cloud.interruptions) = spot(reader, node, region, files, start)?;
        if let Some(node) = reader.fields(node, &SPOT.shape)?.get("availability") {
            let name = reader.text(node, "availability")?;
            let bytes = files.bytes(reader, node, name)?;
            cloud.traces = traces(&bytes, &files.directory.join(name).display().to_string(), region)?;
        }
    }
    if let Some(node) = fields.get("quotas") {
        cloud.quotas = quotas(reader, node)?;
    }
    if let Some(node) = fields.get("api") {
        (cloud.api, cloud.consistency) = api(reader, node)?;
    }
    if let Some(node) = fields.get("failures") {
        cloud.failures = failures(reader, node)?;
    }
    if let Some(node) = fields.get("network") {
        cloud.network = account::network(reader, node, region)?;
    }
    if let Some(node) = fields.get("capacity_reservations") {
        cloud.reservations = account::reservations(reader, node, region)?;
    }
    if let Some(node) = fields.get("billing") {
        cloud.billing = billing::read(reader, node, region)?;
    }
    Ok(Ec2Settings { launch_latency, cloud: Arc::new(cloud) })
}

fn launch_latency<'s>(reader: &mut Reader<'s>, node: &Node<'s>) -> Result<BootStages, ScenarioError> {
    const FAMILIES: &[(&str, AmiFamily)] = &[
        ("al2", AmiFamily::AL2),
        ("al2023", AmiFamily::AL2023),
        ("bottlerocket", AmiFamily::Bottlerocket),
        ("windows", AmiFamily::Windows2022),
    ];
    if node.as_text().is_some() {
        let family = reader.choice(node, "launch_latency", FAMILIES)?;
        return Ok(BootStages::of(family));
    }
    let fields = reader.fields(node, &LAUNCH_LATENCY.shape)?;
    let mut stages = BootStages::of(AmiFamily::AL2023);
    for (key, stage) in [
        ("vm_init", &mut stages.vm_init),
        ("os_boot", &mut stages.os_boot),
        ("bootstrap", &mut stages.bootstrap),
        ("register", &mut stages.register),
        ("cni_ready", &mut stages.cni_ready),
    ] {
        if let Some(median) = fields.optional(key, |n, what| reader.duration(n, what))? {
            *stage = median.as_secs_f64();
        }
    }
    stages.fixed = !fields.optional("spread", |n, what| reader.truth(n, what))?.unwrap_or(true);
    Ok(stages)
}

fn spot<'s>(
    reader: &mut Reader<'s>,
    node: &Node<'s>,
    region: &Region,
    files: &mut Files<'_>,
    start: jiff::Timestamp,
) -> Result<(SpotPrices, Interruptions), ScenarioError> {
    const KINDS: &[(&str, u8)] = &[("process", 0), ("constant", 1), ("replay", 2)];
    let fields = reader.fields(node, &SPOT.shape)?;
    let kind = fields.optional("prices", |n, what| reader.choice(n, what, KINDS))?.unwrap_or(0);
    let file = fields.get("file");
    let prices = match (kind, file) {
        (2, _) => {
            let node = fields.required(reader, "file")?;
            let name = reader.text(node, "file")?;
            let bytes = files.bytes(reader, node, name)?;
            SpotPrices::Replay(replay(&bytes, &files.directory.join(name).display().to_string(), region, start)?)
        }
        (_, Some(node)) => {
            return Err(reader
                .error(node.at, "`file` is for prices that are replayed")
                .because("has no effect")
                .help("add `prices: replay`, or take `file` out"));
        }
        (1, None) => SpotPrices::Constant,
        _ => SpotPrices::Process,
    };
    let interruptions = fields.get("interruptions").map(|node| interruptions(reader, node)).transpose()?;
    Ok((prices, interruptions.unwrap_or_default()))
}

fn interruptions<'s>(reader: &mut Reader<'s>, node: &Node<'s>) -> Result<Interruptions, ScenarioError> {
    const RATES: &[(&str, Option<f64>)] = &[
        ("none", None),
        ("low", Some(Interruptions::LOW_HOURS)),
        ("central", Some(Interruptions::CENTRAL_HOURS)),
        ("advisor", Some(Interruptions::CENTRAL_HOURS)),
        ("high", Some(Interruptions::HIGH_HOURS)),
    ];
    if node.as_text().is_some() {
        let exposure_hours = reader.choice(node, "interruptions", RATES)?;
        return Ok(Interruptions { exposure_hours, ..Interruptions::default() });
    }
    let fields = reader.fields(node, &INTERRUPTIONS.shape)?;
    let mut interruptions = Interruptions::default();
    if let Some(node) = fields.get("exposure") {
        let exposure = reader.duration(node, "exposure")?;
        if exposure.as_secs() < 3_600 {
            return Err(reader
                .error(node.at, "the exposure is the time for which instances are held, at least an hour")
                .because("too short")
                .help("write `730h` for few, `72h` for the default, `24h` for many interruptions"));
        }
        interruptions.exposure_hours = Some(exposure.as_secs_f64() / 3_600.0);
    }
    if let Some(stress) = fields.optional("stress", |n, what| number(reader, n, what, 0.0, 100.0))? {
        interruptions.stress = stress;
    }
    if let Some(size_factor) = fields.optional("size_factor", |n, what| reader.truth(n, what))? {
        interruptions.size_factor = size_factor;
    }
    Ok(interruptions)
}

fn quotas<'s>(reader: &mut Reader<'s>, node: &Node<'s>) -> Result<Quotas, ScenarioError> {
    let fields = reader.fields(node, &QUOTAS.shape)?;
    let mut quotas = Quotas::default();
    for class in QuotaClass::ALL {
        if let Some(limit) = fields.optional(class.as_str(), |n, what| reader.integer(n, what, 0, 100_000_000))? {
            quotas = quotas.with(class, u32::try_from(limit).unwrap_or(u32::MAX));
        }
    }
    Ok(quotas)
}

/// Limits on calls, `unlimited` or bucket by bucket; and how consistent reads are.
fn api<'s>(reader: &mut Reader<'s>, node: &Node<'s>) -> Result<(ApiLimits, Consistency), ScenarioError> {
    const CONSISTENCY: &[(&str, Consistency)] = &[("eventual", Consistency::Eventual), ("strong", Consistency::Strong)];
    if node.as_text().is_some() {
        let limits = reader.choice(node, "api", &[("unlimited", ApiLimits::UNLIMITED)])?;
        return Ok((limits, Consistency::default()));
    }
    let fields = reader.fields(node, &API.shape)?;
    let mut limits = ApiLimits::default();
    for (key, limit) in [
        ("calls", &mut limits.mutating),
        ("instances", &mut limits.launched_instances),
        ("run_calls", &mut limits.run_calls),
        ("terminate_calls", &mut limits.terminate_calls),
        ("terminated_instances", &mut limits.terminated_instances),
        ("describe", &mut limits.describe),
        ("group_reads", &mut limits.group_reads),
        ("group_writes", &mut limits.group_writes),
    ] {
        if let Some(node) = fields.get(key) {
            *limit = bucket(reader, node)?;
        }
    }
    if let Some(uses) = fields.optional("fleet_uses_run_resource_bucket", |n, what| reader.truth(n, what))? {
        limits.fleet_uses_run_resource_bucket = uses;
    }
    let consistency = fields.optional("consistency", |n, what| reader.choice(n, what, CONSISTENCY))?;
    Ok((limits, consistency.unwrap_or_default()))
}

/// `none`, or the probabilities one by one.
fn failures<'s>(reader: &mut Reader<'s>, node: &Node<'s>) -> Result<Failures, ScenarioError> {
    if node.as_text().is_some() {
        return reader.choice(node, "failures", &[("none", Failures::NONE)]);
    }
    let fields = reader.fields(node, &FAILURES.shape)?;
    let mut failures = Failures::default();
    for (key, probability) in [
        ("abort", &mut failures.abort),
        ("never_registers", &mut failures.never_registers),
        ("internal_error", &mut failures.internal_error),
    ] {
        if let Some(stated) = fields.optional(key, |n, what| fraction(reader, n, what))? {
            *probability = stated;
        }
    }
    Ok(failures)
}
