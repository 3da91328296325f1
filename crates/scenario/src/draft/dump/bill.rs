//! What a bill has beside nodes and no object of a dump states: NAT gateways, public addresses, traffic between zones.
//!
//! What must not live here: prices (`ec2`).

use std::fmt::Write as _;

use super::assumptions::Part;
use super::cluster::Cluster;
use super::groups::is_on_fargate;
use super::objects::Object;
use super::{Dump, Notes};
use crate::cloud::BillItem;
use crate::domain::Currency;
use crate::domain::words::counted;
use crate::tree::Node;

/// How nodes reach what is outside their network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    /// Each has a public address.
    PublicAddresses,
    /// Through a NAT gateway in each of so many zones.
    NatGateways(usize),
}

/// What the scenario states of the bill.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct BillFacts {
    way: Option<Way>,
    /// Whether there is load that crosses zones, by requests of which nobody measured the bytes.
    crosses_zones: bool,
    /// Whether requests are counted, which load balancers carry.
    has_requests: bool,
}

impl BillFacts {
    /// What the nodes of a dump say of it; nothing where there are none, and where prices are not those that are known.
    /// `loads` are how many there are, and whether requests of any are counted.
    pub(super) fn new(
        dump: &Dump<'_>,
        cluster: &Cluster,
        (loads, has_requests): (usize, bool),
        notes: &mut Notes,
    ) -> Self {
        let nodes: Vec<&Object<'_>> = dump.nodes.iter().filter(|node| !is_on_fargate(node)).collect();
        if nodes.is_empty() || cluster.region.currency != Currency::Usd {
            return Self { way: None, crosses_zones: false, has_requests: false };
        }
        let zones = cluster.zones.len().max(1);
        let way = if nodes.iter().all(|node| has_public_address(node)) {
            Way::PublicAddresses
        } else {
            Way::NatGateways(zones)
        };
        if way != Way::PublicAddresses {
            let gateways = counted(zones as u64, "NAT gateway", "NAT gateways");
            let text = format!("Nodes without public addresses pull images through {gateways}, one in each zone.");
            notes.assume_of(Part::Items(&[BillItem::NatGateway, BillItem::NatTransfer]), text);
        }
        Self { way: Some(way), crosses_zones: loads > 0 && zones > 1, has_requests }
    }

    /// The part of the scenario file that states it.
    pub(super) fn text(self, text: &mut String) {
        let Some(way) = self.way else { return };
        *text += "\nec2:\n  billing:                          # what the bill has beside nodes and load balancers: take out what is not yours\n";
        let _ = match way {
            Way::PublicAddresses => {
                writeln!(text, "    public_ipv4: 0.005                # each node has a public address")
            }
            Way::NatGateways(zones) => writeln!(
                text,
                "    nat_gateways: {{ count: {zones} }}         # assumed, one in each zone: no public address is on every node"
            ),
        };
        if self.crosses_zones {
            *text += "    cross_zone: { bytes_per_request: unknown }   # nobody measured them: requests between zones are billed once they stand here\n";
        }
        if self.has_requests {
            *text += "    load_balancers: { capacity_units: 0 }   # not known either: `bytes_per_request` in place of it bills them\n";
        }
    }
}

fn has_public_address(node: &Object<'_>) -> bool {
    let addresses = node.at(&["status", "addresses"]).map_or(&[][..], Node::items);
    addresses.iter().any(|address| address.get("type").and_then(Node::as_text) == Some("ExternalIP"))
}
