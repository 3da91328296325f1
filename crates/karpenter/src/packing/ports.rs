//! Ports on a node.
//!
//! Source: Karpenter core v1.13 `pkg/scheduling/hostportusage.go`.

use super::errors::HostPortConflict;
use nodecast_model::domain::pod::HostPort;

/// The first of `wanted` that something in `used` stands against: protocol and port are equal, and the addresses are
/// equal or either is unspecified.
pub(super) fn conflict(used: &[HostPort], wanted: &[HostPort]) -> Option<HostPortConflict> {
    wanted.iter().find_map(|&incoming| {
        let clash = |existing: &&HostPort| {
            existing.port == incoming.port
                && existing.protocol == incoming.protocol
                && (existing.ip == incoming.ip || unspecified(existing) || unspecified(&incoming))
        };
        used.iter().find(clash).map(|&existing| HostPortConflict { existing, incoming })
    })
}

fn unspecified(port: &HostPort) -> bool {
    matches!(port.ip.as_str(), "" | "0.0.0.0" | "::")
}
