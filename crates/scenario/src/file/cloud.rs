//! `ec2`: what is special about the simulated EC2.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::price_records::replay;
use super::{Reading, ScenarioError};
use crate::cloud::Consistency;
use crate::cloud::faults::matches_pattern;
use crate::cloud::settings::{ApiLimits, CloudSettings, SpotPrices};
use crate::definition::Ec2Settings;
use crate::domain::Symbol;
use crate::reader::Fields;
use crate::schema::ec2::{CatalogError, Ec2, PriceSource, Reads, Spot, SpotMarket};
use crate::schema::kind::Kind;
use nodecast_karpenter::instance_types::Measured;

/// The settings of the simulated EC2; faults come later.
pub(crate) fn settings(
    reading: &Reading<'_, '_>,
    fields: Fields<'_, '_>,
    ec2: Ec2,
) -> Result<Ec2Settings, ScenarioError> {
    let SpotMarket { prices, price_errors, interruptions, traces } = ec2.spot;
    let (api, consistency) = ec2.api;
    let cloud = CloudSettings {
        prices,
        price_errors,
        capacity: ec2.capacity,
        traces,
        interruptions,
        quotas: ec2.quotas,
        api,
        consistency,
        times: ec2.times,
        failures: ec2.failures,
        cpu_credits: ec2.cpu_credits,
        network: ec2.network,
        reservations: ec2.capacity_reservations,
        billing: ec2.billing,
        faults: Vec::new(),
    };
    let measured = by_type(reading, fields, &ec2.catalog_error.unwrap_or_default())?;
    Ok(Ec2Settings { launch_latency: ec2.launch_latency, measured, cloud: Arc::new(cloud) })
}

/// What is known of each type: by the last entry that names it.
fn by_type(
    reading: &Reading<'_, '_>,
    fields: Fields<'_, '_>,
    entries: &[CatalogError],
) -> Result<BTreeMap<Symbol, Measured>, ScenarioError> {
    let mut known = BTreeMap::new();
    for (position, this_entry) in entries.iter().enumerate() {
        let fits = |wanted: Option<Symbol>, name: Symbol| {
            wanted.is_none_or(|wanted| matches_pattern(wanted.as_str(), name.as_str()))
        };
        let memory = match (this_entry.memory_factor, this_entry.memory_amount) {
            (None, None) => None,
            (factor, amount) => Some((libm::round(factor.unwrap_or(1.0) * 1e6) as u32, amount.unwrap_or(0))),
        };
        let measured = Measured { memory, pods: this_entry.pods };
        let types = reading.region().types.iter().map(|kind| &kind.facts);
        let named =
            types.filter(|facts| fits(this_entry.family, facts.family) && fits(this_entry.instance_type, facts.name));
        let named: Vec<_> = named.map(|facts| (facts.name, measured)).collect();
        if named.is_empty() {
            let entry = fields.get("catalog_error").and_then(|list| list.items().get(position));
            return Err(reading
                .error(entry.map_or(fields.at, |node| node.at), "no instance type is of this family and has this name")
                .because("stands for nothing")
                .help("take `family` out: a `type` says it already"));
        }
        known.extend(named);
    }
    Ok(known)
}

/// The Spot market: a file goes with prices that are replayed, and only with these.
pub(crate) fn spot<'s>(
    reading: &mut Reading<'_, 's>,
    fields: Fields<'_, 's>,
    spot: Spot,
) -> Result<SpotMarket, ScenarioError> {
    let prices = match (spot.prices, spot.file) {
        (PriceSource::Replay, _) => {
            let node = fields.required(&reading.reader, "file")?;
            let (bytes, shown) = reading.table(node, reading.reader.text(node, "file")?)?;
            SpotPrices::Replay(replay(&bytes, &shown, reading.region(), reading.start)?)
        }
        (_, Some((_, at))) => {
            return Err(reading
                .error(at, "`file` is for prices that are replayed")
                .because("has no effect")
                .help("add `prices: replay`, or take `file` out"));
        }
        (PriceSource::Constant, None) => SpotPrices::Constant,
        (PriceSource::Process, None) => SpotPrices::Process,
    };
    Ok(SpotMarket {
        prices,
        price_errors: spot.price_errors,
        interruptions: spot.interruptions,
        traces: spot.availability,
    })
}

/// Limits on calls, and how consistent reads are.
pub(crate) fn api<'s>(
    reading: &mut Reading<'_, 's>,
    fields: Fields<'_, 's>,
    limits: ApiLimits,
) -> Result<(ApiLimits, Consistency), ScenarioError> {
    let consistency = match fields.get("consistency") {
        Some(node) => Reads::read(reading, node, "consistency")?,
        None => Consistency::default(),
    };
    Ok((limits, consistency))
}
