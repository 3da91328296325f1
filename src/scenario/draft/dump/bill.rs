//! What a bill has beside nodes and no object of a dump states: NAT gateways, public addresses, traffic between zones.
//!
//! What must not live here: prices (`cloud`).

use std::fmt::Write as _;

use super::cluster::Cluster;
use super::groups::is_on_fargate;
use super::objects::Object;
use super::{Dump, Notes};
use crate::cloud::billing::network::LoadBalancers;
use crate::domain::Currency;
use crate::domain::words::counted;
use crate::scenario::tree::Node;

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
pub(super) struct Stated {
    way: Option<Way>,
    /// Whether requests are known that cross zones.
    crosses_zones: bool,
}

impl Stated {
    /// What the nodes of a dump say of it; nothing where there are none, and where prices are not those that are known.
    pub(super) fn of(dump: &Dump<'_>, cluster: &Cluster, loads: usize, notes: &mut Notes) -> Self {
        let nodes: Vec<&Object<'_>> = dump.nodes.iter().filter(|node| !is_on_fargate(node)).collect();
        if nodes.is_empty() || cluster.region.currency != Currency::Usd {
            return Self { way: None, crosses_zones: false };
        }
        let zones = cluster.zones.len().max(1);
        let way = if nodes.iter().all(|node| has_public_address(node)) {
            Way::PublicAddresses
        } else {
            Way::NatGateways(zones)
        };
        if way != Way::PublicAddresses {
            notes.assume(format!(
                "Nodes without public addresses pull images through {}, one in each zone.",
                counted(zones as u64, "NAT gateway", "NAT gateways")
            ));
        }
        let crosses_zones = loads > 0 && zones > 1;
        if crosses_zones {
            notes.assume(format!(
                "A request moves {} kB between nodes, as often between zones as an even spread has it.",
                LoadBalancers::BYTES_PER_REQUEST / 1_000
            ));
        }
        Self { way: Some(way), crosses_zones }
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
            let bytes = LoadBalancers::BYTES_PER_REQUEST;
            let _ =
                writeln!(text, "    cross_zone: {{ bytes_per_request: {bytes} }}   # assumed; requests between zones");
        }
    }
}

fn has_public_address(node: &Object<'_>) -> bool {
    let addresses = node.at(&["status", "addresses"]).map_or(&[][..], Node::items);
    addresses.iter().any(|own| own.get("type").and_then(Node::as_text) == Some("ExternalIP"))
}
