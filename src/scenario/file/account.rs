//! `ec2.capacity_reservations` and `ec2.network`: what the account has before anything is launched.

use super::super::reader::Reader;
use super::super::tree::Node;
use super::ScenarioError;
use super::values::{instance_type, zone};
use crate::catalog::Region;
use crate::cloud::CapacityReservation;
use crate::cloud::subnets::{KEPT_BY_AWS, Network, Subnet};
use crate::domain::{Labels, SimTime, Symbol};
use crate::scenario::schema::ec2::{NETWORK, RESERVATION, SUBNET};

/// Reads the list of capacity reservations. One without an id gets one by its position.
pub(super) fn reservations<'s>(
    reader: &mut Reader<'s>,
    node: &Node<'s>,
    region: &Region,
) -> Result<Vec<CapacityReservation>, ScenarioError> {
    const MATCH: &[(&str, bool)] = &[("open", true), ("targeted", false)];
    let mut reservations: Vec<CapacityReservation> = Vec::new();
    for (node, number) in reader.list(node, "capacity_reservations")?.iter().zip(1_u32..) {
        let fields = reader.fields(node, &RESERVATION.shape)?;
        let stated = fields.optional("id", |n, what| reader.symbol(n, what))?;
        let id = stated.unwrap_or_else(|| Symbol::new(&format!("cr-{number:017x}")));
        if reservations.iter().any(|other| other.id == id) {
            return Err(reader
                .error(node.at, format!("there are two capacity reservations `{id}`"))
                .because("the second of them")
                .help("give each an `id` of its own"));
        }
        let mut tags = Labels::new();
        for entry in fields.optional("tags", |n, what| reader.entries(n, what))?.unwrap_or_default() {
            tags.set(Symbol::new(&entry.key), reader.symbol(&entry.value, "tags")?);
        }
        let count = reader.integer(fields.required(reader, "count")?, "count", 1, 1_000_000)?;
        let from = fields.optional("at", |n, what| reader.duration(n, what))?.unwrap_or_default();
        let until = fields.optional("until", |n, what| reader.duration(n, what))?;
        if let Some(node) = fields.get("until").filter(|_| until.is_some_and(|until| until <= from)) {
            return Err(reader
                .error(node.at, "this capacity reservation ends before it begins")
                .because(format!("it begins at {from}"))
                .help("count both from the start of the run"));
        }
        reservations.push(CapacityReservation {
            id,
            instance_type: instance_type(reader, fields.required(reader, "type")?, region)?,
            zone: zone(reader, fields.required(reader, "zone")?, region)?,
            count: u32::try_from(count).unwrap_or(u32::MAX),
            open: fields.optional("match", |n, what| reader.choice(n, what, MATCH))?.unwrap_or(true),
            tags,
            from: SimTime::ZERO + from,
            until: until.map(|until| SimTime::ZERO + until),
        });
    }
    Ok(reservations)
}

/// Reads the network that nodes live in.
pub(super) fn network<'s>(reader: &mut Reader<'s>, node: &Node<'s>, region: &Region) -> Result<Network, ScenarioError> {
    let fields = reader.fields(node, &NETWORK.shape)?;
    let mut network = Network::default();
    for node in fields.optional("subnets", |n, what| reader.list(n, what))?.unwrap_or_default() {
        let subnet = reader.fields(node, &SUBNET.shape)?;
        let cidr = subnet.required(reader, "cidr")?;
        let size = addresses(reader, cidr)?;
        let in_use = subnet.optional("in_use", |n, what| reader.integer(n, what, 0, 65_536))?.unwrap_or(0);
        network.subnets.push(Subnet {
            zone: zone(reader, subnet.required(reader, "zone")?, region)?,
            addresses: size.saturating_sub(KEPT_BY_AWS).saturating_sub(u32::try_from(in_use).unwrap_or(u32::MAX)),
        });
    }
    network.prefix_delegation = fields.optional("prefix_delegation", |n, what| reader.truth(n, what))?.unwrap_or(false);
    Ok(network)
}

/// The number of addresses of an IPv4 block such as `10.0.32.0/20`.
fn addresses(reader: &Reader<'_>, node: &Node<'_>) -> Result<u32, ScenarioError> {
    let text = reader.text(node, "cidr")?;
    let parts = text.split_once('/').and_then(|(address, bits)| {
        let address: std::net::Ipv4Addr = address.parse().ok()?;
        let bits: u32 = bits.parse().ok()?;
        (16..=28).contains(&bits).then_some((address, bits))
    });
    match parts {
        Some((_, bits)) => Ok(1 << (32 - bits)),
        None => Err(reader
            .error(node.at, format!("`{text}` is not the block of a subnet"))
            .because("not a block from /16 to /28")
            .help("write for example `10.0.32.0/20`")),
    }
}
