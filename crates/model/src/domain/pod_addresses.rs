//! The addresses that the network plugin has for pods.

/// What addresses the network plugin has for pods.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PodAddresses {
    /// Whether it takes them in prefixes of 16 (`ENABLE_PREFIX_DELEGATION`).
    pub prefixes: bool,
    /// Whether they are of IPv6, which always come in prefixes.
    pub ipv6: bool,
    /// Whether they are of other subnets than the node's (custom networking), so that the first interface has none for pods.
    pub of_other_subnets: bool,
}

impl PodAddresses {
    /// What this or `other` says.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            prefixes: self.prefixes || other.prefixes,
            ipv6: self.ipv6 || other.ipv6,
            of_other_subnets: self.of_other_subnets || other.of_other_subnets,
        }
    }
}
