//! The subnets that nodes live in, and how many addresses a node takes.
//!
//! Source: AWS documentation of VPC subnets (five addresses of each are AWS's own); amazon-vpc-cni-k8s, environment
//! variables `WARM_ENI_TARGET` and `WARM_PREFIX_TARGET` at their defaults of 1, `ENABLE_PREFIX_DELEGATION`.
//!
//! Deviation: a node takes and returns addresses as soon as its pods change. The plugin takes seconds, and holds the
//! addresses for a while. Pods of DaemonSets use the address of their node; all others have their own.

use nodecast_model::catalog::InstanceFacts;
use nodecast_model::domain::Symbol;

/// Addresses of every subnet that AWS keeps.
pub const KEPT_BY_AWS: u32 = 5;
/// Addresses in a prefix that is delegated to an interface.
const PREFIX: u32 = 16;

/// A subnet for nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Subnet {
    /// The zone that it lies in.
    pub zone: Symbol,
    /// Addresses for nodes and pods when the run begins: its size, less AWS's own and those that others use.
    pub addresses: u32,
    /// Whether its nodes have public addresses.
    pub public: bool,
}

/// The network that nodes live in.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Network {
    /// The subnets; without one, addresses do not run out.
    pub subnets: Vec<Subnet>,
    /// Whether the network plugin takes addresses in prefixes of 16.
    pub prefix_delegation: bool,
}

impl Network {
    /// Whether nodes in this zone have public addresses; `None` where no subnet says that its nodes have.
    pub fn is_public(&self, zone: Symbol) -> Option<bool> {
        let mut public = self.subnets.iter().filter(|subnet| subnet.public).peekable();
        public.peek().is_some().then(|| public.any(|subnet| subnet.zone == zone))
    }

    /// Addresses that a node of this type with `pods` on it keeps: its interfaces' own and those for pods, one interface's
    /// (or one prefix's) worth of them in advance.
    pub fn addresses_of(&self, facts: &InstanceFacts, pods: u32) -> u32 {
        let each = facts.ipv4_per_eni.max(2);
        let per_interface = each - 1;
        if self.prefix_delegation {
            let prefixes = pods.div_ceil(PREFIX) + 1;
            let interfaces = prefixes.div_ceil(per_interface).clamp(1, facts.enis.max(1));
            return interfaces + (prefixes.min(interfaces * per_interface)) * PREFIX;
        }
        let spare = u32::from(pods > 0);
        let interfaces = (pods.div_ceil(per_interface).max(1) + spare).min(facts.enis.max(1));
        interfaces * each
    }
}

#[cfg(test)]
mod tests {
    use super::Network;
    use nodecast_prices::Catalog;

    #[test]
    fn node_keeps_warm_interface_within_type_limit() {
        let facts = Catalog::embedded().unwrap().facts("m5.large").unwrap();
        let plain = Network::default();
        // Three interfaces of ten addresses each.
        for (pods, expected) in [(0, 10), (1, 20), (9, 20), (10, 30), (27, 30)] {
            assert_eq!(plain.addresses_of(facts, pods), expected, "{pods} pods");
        }
        let prefixes = Network { prefix_delegation: true, ..Network::default() };
        for (pods, expected) in [(0, 17), (1, 33), (16, 33), (17, 49)] {
            assert_eq!(prefixes.addresses_of(facts, pods), expected, "{pods} pods");
        }
    }
}
