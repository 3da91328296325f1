//! `ec2` and `faults`: what is special about the simulated EC2, and what goes wrong when.

use std::sync::Arc;

use super::super::definition::Ec2Settings;
use super::super::reader::{Fields, Reader, Shape};
use super::super::tree::Node;
use super::{Files, ScenarioError};
use crate::catalog::Region;
use crate::cloud::commitments::{CapacityReservation, Commitments, ReservedInstances, SavingsPlan};
use crate::cloud::settings::{
    ApiLimits, BillingSettings, BucketSize, CapacityModel, CloudSettings, Fault, FaultKind, Interruptions,
    PoolSelector, Quotas, ReplayedPrice, SpotPrices,
};
use crate::cloud::{BootStages, Consistency};
use crate::domain::node_pool::AmiFamily;
use crate::domain::{HourlyRate, SimDuration, SimTime, Symbol, well_known};

const fn shape(name: &'static str, keys: &'static [&'static str]) -> Shape {
    Shape { name, keys, without_effect: &[], unsupported: &[], strict: true }
}

static EC2: Shape = shape("`ec2`", &["launch_latency", "spot", "capacity", "quotas", "api", "billing"]);
static LAUNCH_LATENCY: Shape = Shape {
    name: "`launch_latency`",
    keys: &["vm_init", "os_boot", "bootstrap", "register", "cni_ready", "spread"],
    without_effect: &[],
    unsupported: &[],
    strict: true,
};
static SPOT: Shape = shape("`spot`", &["prices", "file", "interruptions"]);
static INTERRUPTIONS: Shape = shape("`interruptions`", &["exposure", "stress"]);
static QUOTAS: Shape = shape("`quotas`", &["standard", "graphics", "parallel", "other"]);
static API: Shape = shape(
    "`api`",
    &[
        "calls",
        "instances",
        "run_calls",
        "terminate_calls",
        "terminated_instances",
        "describe",
        "group_reads",
        "group_writes",
        "fleet_uses_run_resource_bucket",
        "consistency",
    ],
);
static BUCKET: Shape = shape("a limit on calls", &["size", "per_second"]);
static BILLING: Shape = shape(
    "`billing`",
    &[
        "spot_price",
        "public_ipv4",
        "control_plane",
        "volume_per_month",
        "discount",
        "node_fee",
        "reserved_instances",
        "savings_plans",
        "capacity_reservations",
    ],
);
static RESERVED: Shape = shape("a reservation", &["type", "zone", "count", "per_hour"]);
static CAPACITY_RESERVATION: Shape = shape("a capacity reservation", &["type", "zone", "count"]);
static PLAN: Shape = shape("a savings plan", &["family", "commitment", "discount"]);
static FAULT: Shape = shape(
    "a fault",
    &["at", "for", "spot_interruption", "insufficient_capacity", "zone_outage", "api_throttle", "slow_boot"],
);
static SELECTOR: Shape = shape("a choice of pools", &["family", "type", "zone", "capacity_type"]);
static SPOT_INTERRUPTION: Shape = shape("`spot_interruption`", &["fraction", "family", "type", "zone"]);
static ZONE_OUTAGE: Shape = shape("`zone_outage`", &["zone"]);
static SLOW_BOOT: Shape = shape("`slow_boot`", &["factor"]);

/// Reads `ec2` and `faults`.
pub(super) fn read<'s>(
    reader: &mut Reader<'s>,
    fields: Fields<'_, 's>,
    region: &Region,
    files: &mut Files<'_>,
    start: jiff::Timestamp,
    duration: SimDuration,
) -> Result<Ec2Settings, ScenarioError> {
    let faults = faults(reader, fields, region, duration)?;
    let Some(node) = fields.get("ec2") else {
        let cloud = Arc::new(CloudSettings { faults, ..CloudSettings::default() });
        return Ok(Ec2Settings { launch_latency: None, cloud });
    };
    const CAPACITY: &[(&str, CapacityModel)] =
        &[("infinite", CapacityModel::Infinite), ("static", CapacityModel::Static), ("updown", CapacityModel::UpDown)];
    let fields = reader.fields(node, &EC2)?;
    let launch_latency = fields.get("launch_latency").map(|node| launch_latency(reader, node)).transpose()?;
    let capacity = fields.optional("capacity", |n, what| reader.choice(n, what, CAPACITY))?.unwrap_or_default();
    let mut cloud = CloudSettings { capacity, faults, ..CloudSettings::default() };
    if let Some(node) = fields.get("spot") {
        (cloud.prices, cloud.interruptions) = spot(reader, node, region, files, start)?;
    }
    if let Some(node) = fields.get("quotas") {
        cloud.quotas = quotas(reader, node)?;
    }
    if let Some(node) = fields.get("api") {
        (cloud.api, cloud.consistency) = api(reader, node)?;
    }
    if let Some(node) = fields.get("billing") {
        cloud.billing = billing(reader, node, region)?;
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
    let fields = reader.fields(node, &LAUNCH_LATENCY)?;
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
    let fields = reader.fields(node, &SPOT)?;
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
    let fields = reader.fields(node, &INTERRUPTIONS)?;
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
    Ok(interruptions)
}

fn quotas<'s>(reader: &mut Reader<'s>, node: &Node<'s>) -> Result<Quotas, ScenarioError> {
    let fields = reader.fields(node, &QUOTAS)?;
    let mut quotas = Quotas::default();
    for (key, quota) in [
        ("standard", &mut quotas.standard),
        ("graphics", &mut quotas.graphics),
        ("parallel", &mut quotas.parallel),
        ("other", &mut quotas.other),
    ] {
        if let Some(limit) = fields.optional(key, |n, what| reader.integer(n, what, 0, 100_000_000))? {
            *quota = u32::try_from(limit).unwrap_or(u32::MAX);
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
    let fields = reader.fields(node, &API)?;
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

fn bucket<'s>(reader: &mut Reader<'s>, node: &Node<'s>) -> Result<BucketSize, ScenarioError> {
    let fields = reader.fields(node, &BUCKET)?;
    let size = reader.integer(fields.required(reader, "size")?, "size", 1, 1_000_000)?;
    let per_second = reader.integer(fields.required(reader, "per_second")?, "per_second", 0, 1_000_000)?;
    Ok(BucketSize { size: u32::try_from(size).unwrap_or(1), per_second: u32::try_from(per_second).unwrap_or(0) })
}

fn billing<'s>(reader: &mut Reader<'s>, node: &Node<'s>, region: &Region) -> Result<BillingSettings, ScenarioError> {
    const BY: &[(&str, bool)] = &[("integrated", false), ("hourly_at_start", true)];
    let fields = reader.fields(node, &BILLING)?;
    let otherwise = BillingSettings::default();
    let price = |key| fields.optional(key, |n, what| rate(reader, n, what));
    let mut billing = BillingSettings {
        hourly_at_start: fields.optional("spot_price", |n, what| reader.choice(n, what, BY))?.unwrap_or(false),
        public_ipv4: price("public_ipv4")?,
        control_plane: price("control_plane")?.unwrap_or(otherwise.control_plane),
        volume_per_month: price("volume_per_month")?.unwrap_or(otherwise.volume_per_month),
        discount_permille: fields.optional("discount", |n, what| share(reader, n, what))?.unwrap_or(0),
        node_fee: price("node_fee")?.unwrap_or_default(),
        commitments: Commitments::default(),
    };
    for node in fields.optional("reserved_instances", |n, what| reader.list(n, what))?.unwrap_or_default() {
        let one = reader.fields(node, &RESERVED)?;
        let count = reader.integer(one.required(reader, "count")?, "count", 1, 1_000_000)?;
        billing.commitments.reserved.push(ReservedInstances {
            instance_type: instance_type(reader, one.required(reader, "type")?, region)?,
            zone: one.get("zone").map(|node| zone(reader, node, region)).transpose()?,
            count: u32::try_from(count).unwrap_or(u32::MAX),
            rate: rate(reader, one.required(reader, "per_hour")?, "per_hour")?,
        });
    }
    for node in fields.optional("savings_plans", |n, what| reader.list(n, what))?.unwrap_or_default() {
        let one = reader.fields(node, &PLAN)?;
        billing.commitments.plans.push(SavingsPlan {
            family: one.optional("family", |n, what| reader.symbol(n, what))?,
            commitment: rate(reader, one.required(reader, "commitment")?, "commitment")?,
            discount_permille: share(reader, one.required(reader, "discount")?, "discount")?,
            family_discounts: Vec::new(),
        });
    }
    for node in fields.optional("capacity_reservations", |n, what| reader.list(n, what))?.unwrap_or_default() {
        let one = reader.fields(node, &CAPACITY_RESERVATION)?;
        let count = reader.integer(one.required(reader, "count")?, "count", 1, 1_000_000)?;
        billing.commitments.capacity.push(CapacityReservation {
            instance_type: instance_type(reader, one.required(reader, "type")?, region)?,
            zone: zone(reader, one.required(reader, "zone")?, region)?,
            count: u32::try_from(count).unwrap_or(u32::MAX),
        });
    }
    Ok(billing)
}

fn faults<'s>(
    reader: &mut Reader<'s>,
    fields: Fields<'_, 's>,
    region: &Region,
    duration: SimDuration,
) -> Result<Vec<Fault>, ScenarioError> {
    let mut faults = Vec::new();
    for node in fields.optional("faults", |n, what| reader.list(n, what))?.unwrap_or_default() {
        let fields = reader.fields(node, &FAULT)?;
        let at_node = fields.required(reader, "at")?;
        let at = SimTime::ZERO + reader.duration(at_node, "at")?;
        if at > SimTime::ZERO + duration {
            return Err(reader
                .error(at_node.at, "this fault comes after the end of the run")
                .because(format!("the run ends at {duration}"))
                .help("raise `duration`, or take the fault out"));
        }
        let kinds = ["spot_interruption", "insufficient_capacity", "zone_outage", "api_throttle", "slow_boot"];
        let given: Vec<_> = kinds.iter().filter_map(|&kind| Some((kind, fields.get(kind)?))).collect();
        let [(name, value)] = given.as_slice() else {
            return Err(reader
                .error(node.at, format!("a fault is one thing that goes wrong; this one is {}", given.len()))
                .because("this fault")
                .help(format!("give it one of {}", kinds.join(", "))));
        };
        let kind = fault_kind(reader, name, value, region)?;
        let until = match (fields.get("for"), kind) {
            (Some(node), FaultKind::SpotInterruption { .. }) => {
                return Err(reader
                    .error(node.at, "a Spot interruption happens at once")
                    .because("has no effect")
                    .help("take `for` out"));
            }
            (None, FaultKind::SpotInterruption { .. }) => at,
            (Some(node), _) => at + reader.duration(node, "for")?,
            (None, _) => SimTime::ZERO + duration,
        };
        faults.push(Fault { at, until, kind });
    }
    faults.sort_by_key(|fault| fault.at);
    Ok(faults)
}

fn fault_kind<'s>(
    reader: &mut Reader<'s>,
    name: &str,
    node: &Node<'s>,
    region: &Region,
) -> Result<FaultKind, ScenarioError> {
    match name {
        "spot_interruption" => {
            let fields = reader.fields(node, &SPOT_INTERRUPTION)?;
            let permille = share(reader, fields.required(reader, "fraction")?, "fraction")?;
            Ok(FaultKind::SpotInterruption { pools: selector(reader, fields, region)?, permille })
        }
        "insufficient_capacity" => {
            const TYPES: &[(&str, Symbol)] = &[("spot", well_known::SPOT), ("on-demand", well_known::ON_DEMAND)];
            let fields = reader.fields(node, &SELECTOR)?;
            let mut pools = selector(reader, fields, region)?;
            pools.capacity_type = fields.optional("capacity_type", |n, what| reader.choice(n, what, TYPES))?;
            Ok(FaultKind::InsufficientCapacity(pools))
        }
        "zone_outage" => {
            let fields = reader.fields(node, &ZONE_OUTAGE)?;
            let zone = zone(reader, fields.required(reader, "zone")?, region)?;
            Ok(FaultKind::InsufficientCapacity(PoolSelector { zone: Some(zone), ..PoolSelector::default() }))
        }
        "api_throttle" => Ok(FaultKind::ApiThrottle(bucket(reader, node)?)),
        _ => {
            let fields = reader.fields(node, &SLOW_BOOT)?;
            let factor = number(reader, fields.required(reader, "factor")?, "factor", 0.1, 100.0)?;
            Ok(FaultKind::SlowBoot { permille: libm::round(factor * 1_000.0) as u32 })
        }
    }
}

fn selector<'s>(reader: &Reader<'s>, fields: Fields<'_, 's>, region: &Region) -> Result<PoolSelector, ScenarioError> {
    let family = fields.get("family").map(|node| family(reader, node, region)).transpose()?;
    Ok(PoolSelector {
        family,
        instance_type: fields.get("type").map(|node| instance_type(reader, node, region)).transpose()?,
        zone: fields.get("zone").map(|node| zone(reader, node, region)).transpose()?,
        capacity_type: None,
    })
}

fn family<'s>(reader: &Reader<'s>, node: &Node<'s>, region: &Region) -> Result<Symbol, ScenarioError> {
    let name = reader.symbol(node, "family")?;
    if region.types.iter().any(|kind| kind.facts.family == name) {
        return Ok(name);
    }
    Err(reader
        .error(node.at, format!("`{name}` is not an instance family of {}", region.name))
        .because("unknown family")
        .help("write what stands before the dot of an instance type, for example `m5`"))
}

fn instance_type<'s>(reader: &Reader<'s>, node: &Node<'s>, region: &Region) -> Result<Symbol, ScenarioError> {
    let name = reader.symbol(node, "type")?;
    if region.instance_type(name).is_some() {
        return Ok(name);
    }
    Err(reader
        .error(node.at, format!("`{name}` is not an instance type of {}", region.name))
        .because("unknown instance type")
        .help("write for example `m5.large`"))
}

fn zone<'s>(reader: &Reader<'s>, node: &Node<'s>, region: &Region) -> Result<Symbol, ScenarioError> {
    let name = reader.symbol(node, "zone")?;
    if region.zone_index(name).is_some() {
        return Ok(name);
    }
    let known = super::super::error::listed(region.zones.iter().map(|zone| zone.name.as_str()));
    Err(reader
        .error(node.at, format!("`{name}` is not a zone of {}", region.name))
        .because("unknown zone")
        .help(format!("its zones are {known}")))
}

/// A number between two bounds.
fn number(reader: &Reader<'_>, node: &Node<'_>, what: &str, least: f64, most: f64) -> Result<f64, ScenarioError> {
    let number = reader.quantity(node, what)?.nanos() as f64 / 1e9;
    if (least..=most).contains(&number) {
        return Ok(number);
    }
    Err(reader
        .error(node.at, format!("`{what}` is {number}"))
        .because("out of bounds")
        .help(format!("write a number from {least} to {most}")))
}

/// A share, in thousandths: `30%` or `0.3`.
fn share(reader: &Reader<'_>, node: &Node<'_>, what: &str) -> Result<u32, ScenarioError> {
    let text = reader.text(node, what)?;
    let share = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map(|percent| percent / 100.0),
        None => text.parse::<f64>(),
    };
    match share {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(libm::round(share * 1_000.0) as u32),
        _ => Err(reader
            .error(node.at, format!("`{what}` is a share"))
            .because("not a share")
            .help("write for example `30%` or `0.3`")),
    }
}

/// A price per hour in the region's currency.
fn rate(reader: &Reader<'_>, node: &Node<'_>, what: &str) -> Result<HourlyRate, ScenarioError> {
    let text = reader.text(node, what)?;
    HourlyRate::parse(text).ok_or_else(|| {
        reader
            .error(node.at, format!("`{what}` is a price per hour"))
            .because("not a price")
            .help("write a number with at most nine decimals, for example 0.005")
    })
}

/// The columns of recorded prices.
const COLUMNS: [&str; 4] = ["instance_type", "zone", "time", "price"];

/// Recorded prices, sorted by pool and time; `time` is RFC 3339.
fn replay(
    bytes: &[u8],
    file: &str,
    region: &Region,
    start: jiff::Timestamp,
) -> Result<Vec<ReplayedPrice>, ScenarioError> {
    let wrong = |line: u64, what: String| {
        ScenarioError::new(format!("{file}:{line}: {what}"))
            .help(format!("recorded prices are a CSV file with the columns {}", COLUMNS.join(", ")))
    };
    let mut rows = csv::ReaderBuilder::new().trim(csv::Trim::All).comment(Some(b'#')).from_reader(bytes);
    let header = rows.headers().map_err(|_| wrong(1, "is not text".to_owned()))?.clone();
    let mut columns = [0; 4];
    for (column, name) in columns.iter_mut().zip(COLUMNS) {
        let found = header.iter().position(|title| title == name);
        *column = found.ok_or_else(|| wrong(1, format!("the header lacks the column `{name}`")))?;
    }
    let mut records = Vec::new();
    for row in rows.records() {
        let row =
            row.map_err(|error| wrong(error.position().map_or(1, csv::Position::line), "cannot be read".to_owned()))?;
        let line = row.position().map_or(1, csv::Position::line);
        let [name, zone, time, price] = columns.map(|column| row.get(column).unwrap_or_default());
        let instance_type = Symbol::new(name);
        if region.instance_type(instance_type).is_none() {
            return Err(wrong(line, format!("`{name}` is not an instance type of {}", region.name)));
        }
        if region.zone_index(Symbol::new(zone)).is_none() {
            return Err(wrong(line, format!("`{zone}` is not a zone of {}", region.name)));
        }
        let time = time.parse::<jiff::Timestamp>();
        let time = time.map_err(|_| wrong(line, "`time` is not like 2026-11-27T00:00:00Z".to_owned()))?;
        let rate = HourlyRate::parse(price).ok_or_else(|| wrong(line, format!("`{price}` is not a price")))?;
        let micros = time.as_microsecond().saturating_sub(start.as_microsecond());
        records.push(ReplayedPrice { instance_type, zone: Symbol::new(zone), at: SimTime::from_micros(micros), rate });
    }
    if records.is_empty() {
        return Err(wrong(1, "there is no record".to_owned()));
    }
    records.sort_unstable();
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::replay;
    use crate::catalog::Catalog;
    use crate::domain::SimDuration;

    #[test]
    fn recorded_prices_are_sorted_by_pool_and_time_and_counted_from_the_start_of_the_run() {
        let region = Catalog::embedded().and_then(|catalog| catalog.region("us-east-1")).unwrap();
        let start = "2026-01-01T00:00:00Z".parse().unwrap();
        let text = "instance_type,zone,time,price\nm5.large,us-east-1b,2026-01-01T02:00:00Z,0.05\n\
                    m5.large,us-east-1a,2026-01-01T01:00:00Z,0.04\n";
        let records = replay(text.as_bytes(), "prices.csv", &region, start).unwrap();
        assert_eq!(records[0].at.saturating_since(crate::domain::SimTime::ZERO), SimDuration::from_secs(3_600));
        assert_eq!(records[1].rate.to_string(), "0.050000000");
        let error = replay(
            b"instance_type,zone,time,price\nm5.large,eu-west-1a,2026-01-01T02:00:00Z,1\n",
            "p.csv",
            &region,
            start,
        );
        assert!(error.unwrap_err().to_string().contains("p.csv:2: `eu-west-1a` is not a zone"));
    }
}
