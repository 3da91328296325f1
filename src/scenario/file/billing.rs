//! `ec2.billing`: what is paid beside the price of instances, and what has been bought in advance.

use super::super::reader::{Fields, Reader};
use super::super::tree::Node;
use super::ScenarioError;
use super::values::{instance_type, number, rate, share, zone};
use crate::catalog::Region;
use crate::cloud::billing::network::{CrossZone, LoadBalancers, NatGateways, NetworkPrices};
use crate::cloud::commitments::{Commitments, ReservedInstances, SavingsPlan};
use crate::cloud::settings::BillingSettings;
use crate::domain::{Money, Symbol};
use crate::scenario::schema::billing::{BILLING, CROSS_ZONE, LOAD_BALANCERS, NAT_GATEWAYS, PLAN, RESERVED};

/// Reads `billing`.
pub(super) fn read<'s>(
    reader: &mut Reader<'s>,
    node: &Node<'s>,
    region: &Region,
) -> Result<BillingSettings, ScenarioError> {
    const BY: &[(&str, bool)] = &[("integrated", false), ("hourly_at_start", true)];
    let fields = reader.fields(node, &BILLING.shape)?;
    let otherwise = BillingSettings::default();
    let price = |key| fields.optional(key, |n, what| rate(reader, n, what));
    let mut billing = BillingSettings {
        hourly_at_start: fields.optional("spot_price", |n, what| reader.choice(n, what, BY))?.unwrap_or(false),
        public_ipv4: price("public_ipv4")?,
        control_plane: price("control_plane")?.unwrap_or(otherwise.control_plane),
        volume_per_month: price("volume_per_month")?.unwrap_or(otherwise.volume_per_month),
        discount_permille: fields.optional("discount", |n, what| share(reader, n, what))?.unwrap_or(0),
        node_fee: price("node_fee")?.unwrap_or_default(),
        network: NetworkPrices::default(),
        commitments: Commitments::default(),
    };
    for node in fields.optional("reserved_instances", |n, what| reader.list(n, what))?.unwrap_or_default() {
        let one = reader.fields(node, &RESERVED.shape)?;
        let count = reader.integer(one.required(reader, "count")?, "count", 1, 1_000_000)?;
        billing.commitments.reserved.push(ReservedInstances {
            instance_type: instance_type(reader, one.required(reader, "type")?, region)?,
            zone: one.get("zone").map(|node| zone(reader, node, region)).transpose()?,
            count: u32::try_from(count).unwrap_or(u32::MAX),
            rate: rate(reader, one.required(reader, "per_hour")?, "per_hour")?,
        });
    }
    for node in fields.optional("savings_plans", |n, what| reader.list(n, what))?.unwrap_or_default() {
        let one = reader.fields(node, &PLAN.shape)?;
        billing.commitments.plans.push(SavingsPlan {
            family: one.optional("family", |n, what| reader.symbol(n, what))?,
            commitment: rate(reader, one.required(reader, "commitment")?, "commitment")?,
            discount_permille: share(reader, one.required(reader, "discount")?, "discount")?,
            family_discounts: family_discounts(reader, one, region)?,
        });
    }
    billing.network = network(reader, fields)?;
    Ok(billing)
}

/// Discounts of single families: a map from family to share.
fn family_discounts<'s>(
    reader: &Reader<'s>,
    plan: Fields<'_, 's>,
    region: &Region,
) -> Result<Vec<(Symbol, u32)>, ScenarioError> {
    let entries = plan.optional("family_discounts", |n, what| reader.entries(n, what))?.unwrap_or_default();
    let mut discounts = Vec::new();
    for entry in entries {
        if !region.types.iter().any(|kind| kind.facts.family.as_str() == entry.key) {
            return Err(reader
                .error(entry.key_at, format!("`{}` is not an instance family of {}", entry.key, region.name))
                .because("unknown family")
                .help("write what stands before the dot of an instance type, for example `m5`"));
        }
        discounts.push((Symbol::new(&entry.key), share(reader, &entry.value, "discount")?));
    }
    Ok(discounts)
}

/// What the network costs: what is not stated costs nothing, and prices not stated are those of us-east-1.
fn network<'s>(reader: &mut Reader<'s>, billing: Fields<'_, 's>) -> Result<NetworkPrices, ScenarioError> {
    let mut prices = NetworkPrices::default();
    let count = |reader: &Reader<'s>, fields: Fields<'_, 's>| {
        let count = fields.optional("count", |n, what| reader.integer(n, what, 0, 10_000))?.unwrap_or(1);
        Ok::<u32, ScenarioError>(u32::try_from(count).unwrap_or(u32::MAX))
    };
    let hourly = |reader: &Reader<'s>, fields: Fields<'_, 's>, key, otherwise| {
        Ok::<_, ScenarioError>(fields.optional(key, |n, what| rate(reader, n, what))?.unwrap_or(otherwise))
    };
    let per_gb = |reader: &Reader<'s>, fields: Fields<'_, 's>, otherwise| {
        let stated = fields.optional("per_gb", |n, what| rate(reader, n, what))?;
        Ok::<_, ScenarioError>(stated.map_or(otherwise, |rate| Money::from_nanos(i128::from(rate.as_nanos()))))
    };
    if let Some(node) = billing.get("load_balancers") {
        let fields = reader.fields(node, &LOAD_BALANCERS.shape)?;
        let units = fields.optional("capacity_units", |n, what| number(reader, n, what, 0.0, 1_000_000.0))?;
        prices.load_balancers = Some(LoadBalancers {
            count: count(reader, fields)?,
            per_hour: hourly(reader, fields, "per_hour", NetworkPrices::LOAD_BALANCER_HOUR)?,
            milli_units: libm::round(units.unwrap_or(1.0) * 1_000.0) as u32,
            per_unit_hour: hourly(reader, fields, "per_unit_hour", NetworkPrices::CAPACITY_UNIT_HOUR)?,
        });
    }
    if let Some(node) = billing.get("nat_gateways") {
        let fields = reader.fields(node, &NAT_GATEWAYS.shape)?;
        prices.nat_gateways = Some(NatGateways {
            count: count(reader, fields)?,
            per_hour: hourly(reader, fields, "per_hour", NetworkPrices::NAT_HOUR)?,
            per_gb: per_gb(reader, fields, NetworkPrices::NAT_GB)?,
        });
    }
    if let Some(node) = billing.get("cross_zone") {
        let fields = reader.fields(node, &CROSS_ZONE.shape)?;
        let bytes = fields.optional("bytes_per_request", |n, what| reader.quantity(n, what))?;
        prices.cross_zone = Some(CrossZone {
            per_gb: per_gb(reader, fields, NetworkPrices::CROSS_ZONE_GB)?,
            bytes_per_request: bytes.map_or(0, |bytes| bytes.value().max(0)),
            permille: fields.optional("share", |n, what| share(reader, n, what))?,
        });
    }
    Ok(prices)
}
