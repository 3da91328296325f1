//! Values that several parts of a scenario file have: shares, prices, zones, instance types.

use std::str::FromStr;

use super::super::error::listed;
use super::super::reader::{Fields, Reader};
use super::super::tree::Node;
use super::ScenarioError;
use crate::catalog::Region;
use crate::cloud::settings::BucketSize;
use crate::domain::versions::UnknownVersion;
use crate::domain::{HourlyRate, Symbol};
use crate::scenario::schema::ec2::BUCKET;

/// An instance type of the region.
pub(super) fn instance_type<'s>(
    reader: &Reader<'s>,
    node: &Node<'s>,
    region: &Region,
) -> Result<Symbol, ScenarioError> {
    let name = reader.symbol(node, "type")?;
    if region.instance_type(name).is_some() {
        return Ok(name);
    }
    Err(reader
        .error(node.at, format!("`{name}` is not an instance type of {}", region.name))
        .because("unknown instance type")
        .help("write for example `m5.large`"))
}

/// A zone of the region.
pub(super) fn zone<'s>(reader: &Reader<'s>, node: &Node<'s>, region: &Region) -> Result<Symbol, ScenarioError> {
    let name = reader.symbol(node, "zone")?;
    if region.zone_index(name).is_some() {
        return Ok(name);
    }
    let known = listed(region.zones.iter().map(|zone| zone.name.as_str()));
    Err(reader
        .error(node.at, format!("`{name}` is not a zone of {}", region.name))
        .because("unknown zone")
        .help(format!("its zones are {known}")))
}

/// A number between two bounds.
pub(super) fn number(
    reader: &Reader<'_>,
    node: &Node<'_>,
    what: &str,
    least: f64,
    most: f64,
) -> Result<f64, ScenarioError> {
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
pub(super) fn share(reader: &Reader<'_>, node: &Node<'_>, what: &str) -> Result<u32, ScenarioError> {
    fraction(reader, node, what).map(|share| libm::round(share * 1_000.0) as u32)
}

/// A share or a probability, from 0 to 1: `30%` or `0.3`.
pub(super) fn fraction(reader: &Reader<'_>, node: &Node<'_>, what: &str) -> Result<f64, ScenarioError> {
    let text = reader.text(node, what)?;
    let share = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map(|percent| percent / 100.0),
        None => text.parse::<f64>(),
    };
    match share {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err(reader
            .error(node.at, format!("`{what}` is a share"))
            .because("not a share")
            .help("write for example `30%` or `0.3`")),
    }
}

/// A price per hour in the region's currency.
pub(super) fn rate(reader: &Reader<'_>, node: &Node<'_>, what: &str) -> Result<HourlyRate, ScenarioError> {
    let text = reader.text(node, what)?;
    HourlyRate::parse(text).ok_or_else(|| {
        reader
            .error(node.at, format!("`{what}` is a price per hour"))
            .because("not a price")
            .help("write a number with at most nine decimals, for example 0.005")
    })
}

/// A limit on calls: the size of a token bucket and how fast it fills.
pub(super) fn bucket<'s>(reader: &mut Reader<'s>, node: &Node<'s>) -> Result<BucketSize, ScenarioError> {
    let fields = reader.fields(node, &BUCKET.shape)?;
    bucket_of(reader, fields)
}

/// The limit on calls that `size` and `per_second` state.
pub(super) fn bucket_of<'s>(reader: &mut Reader<'s>, fields: Fields<'_, 's>) -> Result<BucketSize, ScenarioError> {
    let size = reader.integer(fields.required(reader, "size")?, "size", 1, 1_000_000)?;
    let per_second = reader.integer(fields.required(reader, "per_second")?, "per_second", 0, 1_000_000)?;
    Ok(BucketSize { size: u32::try_from(size).unwrap_or(1), per_second: u32::try_from(per_second).unwrap_or(0) })
}

/// A calendar time; without an offset it is UTC.
pub(super) fn start(reader: &Reader<'_>, node: &Node<'_>) -> Result<jiff::Timestamp, ScenarioError> {
    let text = reader.text(node, "start")?;
    let civil = || {
        let time = text.parse::<jiff::civil::DateTime>().ok()?;
        jiff::tz::TimeZone::UTC.to_timestamp(time).ok()
    };
    text.parse::<jiff::Timestamp>().ok().or_else(civil).ok_or_else(|| {
        reader
            .error(node.at, "`start` is not a calendar time")
            .because("not a time")
            .help("write for example `2026-11-27T00:00:00Z`")
    })
}

/// A release that can be reproduced.
pub(super) fn release<T>(reader: &Reader<'_>, node: &Node<'_>, key: &str) -> Result<T, ScenarioError>
where
    T: FromStr<Err = UnknownVersion>,
{
    reader.text(node, key)?.parse().map_err(|error: UnknownVersion| {
        reader
            .error(node.at, format!("unknown {} version `{}`", error.program, error.given))
            .because("not reproduced")
            .help(nearest_release(&error, key))
    })
}

/// The way out of a release that is not known: which one comes nearest, and where it is written.
fn nearest_release(error: &UnknownVersion, key: &str) -> String {
    let Some(nearest) = &error.nearest else { return format!("known are {}", error.known) };
    // A minor release without quotes would be a number to other readers of YAML: 1.20 is 1.2.
    let nearest = if nearest.starts_with('v') { nearest.clone() } else { format!("\"{nearest}\"") };
    let place = match key {
        "karpenter" | "kubernetes" | "cluster-autoscaler" => format!("`versions: {{ {key}: {nearest} }}`"),
        _ => nearest,
    };
    format!("write {place}, the nearest that is reproduced; known are {}", error.known)
}
