//! `ec2`: what is special about the simulated EC2.

use std::sync::Arc;

use super::price_records::replay;
use super::{Reading, ScenarioError};
use crate::cloud::Consistency;
use crate::cloud::settings::{ApiLimits, CloudSettings, SpotPrices};
use crate::scenario::definition::Ec2Settings;
use crate::scenario::reader::Fields;
use crate::scenario::schema::ec2::{Ec2, PriceSource, Reads, Spot, SpotMarket};
use crate::scenario::schema::kind::Kind;

/// The settings of the simulated EC2; faults come later.
pub(in crate::scenario) fn settings(
    _: &Reading<'_, '_>,
    _: Fields<'_, '_>,
    own: Ec2,
) -> Result<Ec2Settings, ScenarioError> {
    let SpotMarket { prices, interruptions, traces } = own.spot;
    let (api, consistency) = own.api;
    let cloud = CloudSettings {
        prices,
        capacity: own.capacity,
        traces,
        interruptions,
        quotas: own.quotas,
        api,
        consistency,
        failures: own.failures,
        network: own.network,
        reservations: own.capacity_reservations,
        billing: own.billing,
        faults: Vec::new(),
    };
    Ok(Ec2Settings { launch_latency: own.launch_latency, cloud: Arc::new(cloud) })
}

/// The Spot market: a file goes with prices that are replayed, and only with these.
pub(in crate::scenario) fn spot<'s>(
    reading: &mut Reading<'_, 's>,
    fields: Fields<'_, 's>,
    own: Spot,
) -> Result<SpotMarket, ScenarioError> {
    let prices = match (own.prices, own.file) {
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
    Ok(SpotMarket { prices, interruptions: own.interruptions, traces: own.availability })
}

/// Limits on calls, and how consistent reads are.
pub(in crate::scenario) fn api<'s>(
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
