//! `ec2.billing`: what is paid beside the price of instances, and what has been bought in advance.

use super::super::reader::{Reader, Shape};
use super::super::tree::Node;
use super::ScenarioError;
use super::values::{instance_type, rate, shape, share, zone};
use crate::catalog::Region;
use crate::cloud::commitments::{CapacityReservation, Commitments, ReservedInstances, SavingsPlan};
use crate::cloud::settings::BillingSettings;

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

/// Reads `billing`.
pub(super) fn read<'s>(
    reader: &mut Reader<'s>,
    node: &Node<'s>,
    region: &Region,
) -> Result<BillingSettings, ScenarioError> {
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
