//! `faults`: what goes wrong when.

use std::collections::BTreeSet;

use super::super::reader::{Fields, Reader};
use super::super::tree::Node;
use super::ScenarioError;
use super::timeline::warn_of_late;
use super::values::{bucket_of, fraction, number, share, zone};
use crate::catalog::Region;
use crate::cloud::api::ApiAction;
use crate::cloud::faults::{Fault, FaultKind, PoolSelector, ServerError, Struck, Victims, matches_pattern};
use crate::cloud::quotas::QuotaClass;
use crate::domain::{SimDuration, SimTime, Symbol, well_known};
use crate::scenario::schema::faults::{
    API_ERROR, API_THROTTLE, FACTOR, FAULT, INSUFFICIENT_CAPACITY, NODE_FAILURE, PRICE_SHOCK, PROBABILITY, QUOTA,
    SPOT_INTERRUPTION, SUBNET_EXHAUSTED, ZONE_OUTAGE,
};

/// Actions whose calls can be limited, by name.
const ACTIONS: [(&str, ApiAction); ApiAction::ALL.len()] = {
    let mut actions = [("", ApiAction::CreateFleet); ApiAction::ALL.len()];
    let mut at = 0;
    while at < actions.len() {
        actions[at] = (ApiAction::ALL[at].as_str(), ApiAction::ALL[at]);
        at += 1;
    }
    actions
};
/// Actions whose calls can fail, by name.
const LAUNCHES: [(&str, ApiAction); 2] =
    [("CreateFleet", ApiAction::CreateFleet), ("RunInstances", ApiAction::RunInstances)];

/// Capacity types, by name.
const CAPACITY_TYPES: &[(&str, Symbol)] = &[("spot", well_known::SPOT), ("on-demand", well_known::ON_DEMAND)];

/// How long before an interruption FIS may send its rebalance recommendation, in seconds.
const BEFORE: (i64, i64) = (120, 900);

/// Reads `faults`.
pub(super) fn read<'s>(
    reader: &mut Reader<'s>,
    fields: Fields<'_, 's>,
    region: &Region,
    node_pools: &BTreeSet<Symbol>,
    duration: SimDuration,
) -> Result<Vec<Fault>, ScenarioError> {
    let mut faults = Vec::new();
    for node in fields.optional("faults", |n, what| reader.list(n, what))?.unwrap_or_default() {
        // What begins after the end is checked like the rest, and then left out.
        faults.push(fault(reader, node, region, node_pools, duration)?);
    }
    faults.retain(|fault| fault.at < SimTime::ZERO + duration);
    faults.sort_by_key(|fault| fault.at);
    Ok(faults)
}

fn fault<'s>(
    reader: &mut Reader<'s>,
    node: &Node<'s>,
    region: &Region,
    node_pools: &BTreeSet<Symbol>,
    duration: SimDuration,
) -> Result<Fault, ScenarioError> {
    let fields = reader.fields(node, &FAULT.shape)?;
    let at_node = fields.required(reader, "at")?;
    let at = SimTime::ZERO + reader.duration(at_node, "at")?;
    warn_of_late(reader, at_node, "fault", at, duration);
    let kinds = FAULT.one_of;
    let given: Vec<_> = kinds.iter().filter_map(|&kind| Some((kind, fields.get(kind)?))).collect();
    let [(name, value)] = given.as_slice() else {
        return Err(reader
            .error(node.at, format!("a fault is one thing that goes wrong; this one is {}", given.len()))
            .because("this fault")
            .help(format!("give it one of {}", kinds.join(", "))));
    };
    let kind = fault_kind(reader, name, value, region, node_pools)?;
    let until = match (fields.get("for"), kind.is_instant()) {
        (Some(node), true) => {
            return Err(reader
                .error(
                    node.at,
                    format!(
                        "{} happens at once",
                        if *name == "node_failure" { "a node failure" } else { "a Spot interruption" }
                    ),
                )
                .because("has no effect")
                .help("take `for` out"));
        }
        (None, true) => at,
        (Some(node), false) => at + reader.duration(node, "for")?,
        (None, false) => SimTime::ZERO + duration,
    };
    Ok(Fault { at, until, kind })
}

fn fault_kind<'s>(
    reader: &mut Reader<'s>,
    name: &str,
    node: &Node<'s>,
    region: &Region,
    node_pools: &BTreeSet<Symbol>,
) -> Result<FaultKind, ScenarioError> {
    match name {
        "spot_interruption" => spot_interruption(reader, node, region),
        "node_failure" => node_failure(reader, node, region, node_pools),
        "insufficient_capacity" => {
            let fields = reader.fields(node, &INSUFFICIENT_CAPACITY.shape)?;
            let mut pools = selector(reader, fields, region)?;
            pools.capacity_type = fields.optional("capacity_type", |n, what| reader.choice(n, what, CAPACITY_TYPES))?;
            let probability = fields.optional("probability", |n, what| fraction(reader, n, what))?.unwrap_or(1.0);
            Ok(FaultKind::InsufficientCapacity { pools, probability })
        }
        "zone_outage" => {
            const MODES: &[(&str, bool)] = &[("launch_only", false), ("power", true)];
            let fields = reader.fields(node, &ZONE_OUTAGE.shape)?;
            let power = fields.optional("mode", |n, what| reader.choice(n, what, MODES))?.unwrap_or(false);
            Ok(FaultKind::ZoneOutage { zone: zone(reader, fields.required(reader, "zone")?, region)?, power })
        }
        "api_throttle" => {
            let fields = reader.fields(node, &API_THROTTLE.shape)?;
            let action = fields.optional("action", |n, what| reader.choice(n, what, &ACTIONS))?;
            Ok(FaultKind::ApiThrottle { bucket: bucket_of(reader, fields)?, action })
        }
        "api_error" => {
            const CODES: &[(&str, ServerError)] =
                &[("InternalError", ServerError::InternalError), ("Unavailable", ServerError::Unavailable)];
            let fields = reader.fields(node, &API_ERROR.shape)?;
            let code = fields.optional("code", |n, what| reader.choice(n, what, CODES))?;
            let probability = fraction(reader, fields.required(reader, "probability")?, "probability")?;
            let action = fields.optional("action", |n, what| reader.choice(n, what, &LAUNCHES))?;
            Ok(FaultKind::ApiError { code: code.unwrap_or(ServerError::InternalError), probability, action })
        }
        "api_latency" => Ok(FaultKind::ApiLatency { permille: permille(factor(reader, node)?) }),
        "slow_boot" => Ok(FaultKind::SlowBoot { permille: permille(factor(reader, node)?) }),
        "boot_failure" => Ok(FaultKind::BootFailure { probability: probability(reader, node)? }),
        "price_shock" => {
            let fields = reader.fields(node, &PRICE_SHOCK.shape)?;
            let factor = number(reader, fields.required(reader, "factor")?, "factor", 0.01, 100.0)?;
            Ok(FaultKind::PriceShock { pools: selector(reader, fields, region)?, permille: permille(factor) })
        }
        "subnet_exhausted" => {
            let fields = reader.fields(node, &SUBNET_EXHAUSTED.shape)?;
            let zone = fields.get("zone").map(|node| zone(reader, node, region)).transpose()?;
            Ok(FaultKind::SubnetExhausted { zone })
        }
        "quota" => {
            let classes = QuotaClass::ALL.map(|class| (class.as_str(), class));
            let fields = reader.fields(node, &QUOTA.shape)?;
            let class = reader.choice(fields.required(reader, "class")?, "class", &classes)?;
            let vcpus = reader.integer(fields.required(reader, "vcpus")?, "vcpus", 0, 100_000_000)?;
            Ok(FaultKind::Quota { class, vcpus: u32::try_from(vcpus).unwrap_or(u32::MAX) })
        }
        _ => Ok(FaultKind::LostNotices { probability: probability(reader, node)? }),
    }
}

fn spot_interruption<'s>(
    reader: &mut Reader<'s>,
    node: &Node<'s>,
    region: &Region,
) -> Result<FaultKind, ScenarioError> {
    let fields = reader.fields(node, &SPOT_INTERRUPTION.shape)?;
    let victims = victims(reader, fields, "interrupted")?;
    let before = fields.get("before").map(|node| (node, reader.duration(node, "before")));
    let before = match before {
        None => SimDuration::from_secs(BEFORE.0),
        Some((node, span)) => {
            let span = span?;
            if !(BEFORE.0..=BEFORE.1).contains(&span.as_secs()) {
                return Err(reader
                    .error(node.at, format!("`before` is {span}"))
                    .because("out of bounds")
                    .help("instances know of their interruption 2 to 15 minutes before: write `2m` to `15m`"));
            }
            span
        }
    };
    Ok(FaultKind::SpotInterruption { pools: selector(reader, fields, region)?, victims, before })
}

/// How many instances are struck.
fn victims<'s>(reader: &mut Reader<'s>, fields: Fields<'_, 's>, how: &str) -> Result<Victims, ScenarioError> {
    match (fields.get("fraction"), fields.get("count")) {
        (Some(_), Some(count)) => Err(reader
            .error(count.at, format!("`fraction` and `count` both say how many are {how}"))
            .because("the second of the two")
            .help("take one of them out")),
        (None, Some(count)) => {
            let count = reader.integer(count, "count", 0, 1_000_000)?;
            Ok(Victims::Count(u32::try_from(count).unwrap_or(u32::MAX)))
        }
        (_, None) => Ok(Victims::Permille(share(reader, fields.required(reader, "fraction")?, "fraction")?)),
    }
}

fn node_failure<'s>(
    reader: &mut Reader<'s>,
    node: &Node<'s>,
    region: &Region,
    node_pools: &BTreeSet<Symbol>,
) -> Result<FaultKind, ScenarioError> {
    const MODES: &[(&str, bool)] = &[("impaired", false), ("terminated", true)];
    let fields = reader.fields(node, &NODE_FAILURE.shape)?;
    let mut pools = selector(reader, fields, region)?;
    pools.capacity_type = fields.optional("capacity_type", |n, what| reader.choice(n, what, CAPACITY_TYPES))?;
    let ended = fields.optional("mode", |n, what| reader.choice(n, what, MODES))?.unwrap_or(false);
    let victims = victims(reader, fields, "struck")?;
    let node_pool = fields.get("node_pool").map(|node| node_pool(reader, node, node_pools)).transpose()?;
    Ok(FaultKind::NodeFailure { struck: Struck { pools, node_pool, victims }, ended })
}

/// A NodePool or node group that there is under some policy.
fn node_pool<'s>(reader: &Reader<'s>, node: &Node<'s>, known: &BTreeSet<Symbol>) -> Result<Symbol, ScenarioError> {
    let name = reader.symbol(node, "node_pool")?;
    if known.contains(&name) {
        return Ok(name);
    }
    let near = super::super::error::nearest(name.as_str(), known.iter().map(|own| own.as_str()));
    let help = match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known are {}", super::super::error::listed(known.iter().map(|own| own.as_str()))),
    };
    Err(reader
        .error(node.at, format!("no NodePool or node group is called `{name}`"))
        .because(ScenarioError::NOTHING)
        .help(help))
}

fn factor<'s>(reader: &mut Reader<'s>, node: &Node<'s>) -> Result<f64, ScenarioError> {
    let fields = reader.fields(node, &FACTOR.shape)?;
    number(reader, fields.required(reader, "factor")?, "factor", 0.1, 100.0)
}

fn probability<'s>(reader: &mut Reader<'s>, node: &Node<'s>) -> Result<f64, ScenarioError> {
    let fields = reader.fields(node, &PROBABILITY.shape)?;
    fraction(reader, fields.required(reader, "probability")?, "probability")
}

fn permille(factor: f64) -> u32 {
    libm::round(factor * 1_000.0) as u32
}

/// Pools by family, type and zone; family and type may hold `*`.
fn selector<'s>(reader: &Reader<'s>, fields: Fields<'_, 's>, region: &Region) -> Result<PoolSelector, ScenarioError> {
    Ok(PoolSelector {
        family: fields.get("family").map(|node| family(reader, node, region)).transpose()?,
        instance_type: fields.get("type").map(|node| type_pattern(reader, node, region)).transpose()?,
        zone: fields.get("zone").map(|node| zone(reader, node, region)).transpose()?,
        capacity_type: None,
    })
}

fn family<'s>(reader: &Reader<'s>, node: &Node<'s>, region: &Region) -> Result<Symbol, ScenarioError> {
    let name = reader.symbol(node, "family")?;
    if region.types.iter().any(|kind| matches_pattern(name.as_str(), kind.facts.family.as_str())) {
        return Ok(name);
    }
    Err(reader
        .error(node.at, format!("`{name}` is not an instance family of {}", region.name))
        .because("unknown family")
        .help("write what stands before the dot of an instance type, for example `m5`"))
}

fn type_pattern<'s>(reader: &Reader<'s>, node: &Node<'s>, region: &Region) -> Result<Symbol, ScenarioError> {
    let name = reader.symbol(node, "type")?;
    if region.types.iter().any(|kind| matches_pattern(name.as_str(), kind.facts.name.as_str())) {
        return Ok(name);
    }
    let near = super::super::error::nearest(name.as_str(), region.types.iter().map(|kind| kind.facts.name.as_str()));
    let help = near
        .map_or_else(|| "write for example `m5.large` or `m5.*`".to_owned(), |near| format!("did you mean `{near}`?"));
    Err(reader
        .error(node.at, format!("`{name}` is not an instance type of {}", region.name))
        .because("unknown instance type")
        .help(help))
}
