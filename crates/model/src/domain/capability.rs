//! EKS Capabilities: controllers that EKS runs outside the cluster.
//!
//! Must not: contain prices (`ec2`).

use std::fmt;

/// A capability.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Capability {
    /// Argo CD; its items are Applications.
    ArgoCd,
    /// AWS Controllers for Kubernetes; its items are the resources that they manage.
    Ack,
    /// Kube Resource Orchestrator; its items are instances of ResourceGraphDefinitions.
    Kro,
}

impl Capability {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::ArgoCd, Self::Ack, Self::Kro];

    /// Its word in a scenario.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ArgoCd => "argocd",
            Self::Ack => "ack",
            Self::Kro => "kro",
        }
    }

    /// The capability of a `type` of EKS's API, for example `ARGOCD`.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|capability| capability.as_str().eq_ignore_ascii_case(name))
    }

    /// The items that are billed by the hour.
    pub const fn items(self) -> &'static str {
        match self {
            Self::ArgoCd => "Applications",
            Self::Ack => "managed resources",
            Self::Kro => "ResourceGraphDefinition instances",
        }
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
