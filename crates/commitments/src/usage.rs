//! Usage that commitments may cover, as lines of one clock hour.

use nodecast_model::domain::{HourlyRate, SimDuration, Symbol};

/// Operating system that a price of EC2 is for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Platform {
    /// Linux without a licence.
    #[default]
    Linux,
    /// Windows Server.
    Windows,
    /// Red Hat Enterprise Linux.
    Rhel,
    /// SUSE Linux Enterprise Server.
    Suse,
}

impl Platform {
    /// The platform as a scenario writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Linux => "linux",
            Self::Windows => "windows",
            Self::Rhel => "rhel",
            Self::Suse => "suse",
        }
    }
}

/// Hardware that instances share or not.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Tenancy {
    /// Hardware shared with other customers.
    #[default]
    Shared,
    /// Hardware of one customer.
    Dedicated,
}

impl Tenancy {
    /// The tenancy as a fleet file writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Shared => "shared",
            Self::Dedicated => "dedicated",
        }
    }
}

/// Service and unit of a usage line.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum UsageKind {
    /// An instance of this type, `m5.large`; or a whole family, `m5`, where the type is not known. Reserved Instances do not cover the latter.
    Instance(Symbol),
    /// A vCPU of Fargate.
    FargateCpu,
    /// A GB of memory of Fargate.
    FargateMemory,
    /// A GB-second of Lambda, counted as an hour of whatever `rate` is for. Requests are not covered.
    Lambda,
}

impl UsageKind {
    /// The instance type or family; `None` of Fargate and Lambda.
    pub const fn instance_type(self) -> Option<Symbol> {
        match self {
            Self::Instance(name) => Some(name),
            Self::FargateCpu | Self::FargateMemory | Self::Lambda => None,
        }
    }

    /// Whether this is Fargate.
    pub const fn is_fargate(self) -> bool {
        matches!(self, Self::FargateCpu | Self::FargateMemory)
    }

    /// The instance family, `m5`; `None` of Fargate and Lambda.
    pub fn family(self) -> Option<&'static str> {
        self.instance_type().map(|name| family(name.as_str()))
    }
}

/// The family of an instance type.
pub(crate) fn family(instance_type: &str) -> &str {
    instance_type.split('.').next().unwrap_or_default()
}

/// On-Demand usage of one clock hour. Spot, Capacity Blocks, and fees are no usage.
///
/// The order of fields is the order in which usage of equal rank is covered: by cluster and account, then by node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct UsageLine {
    /// The cluster, with the number of its copy; [`OUTSIDE_CLUSTERS`] for other usage of the account.
    pub cluster: Symbol,
    /// The account that uses it.
    pub account: Symbol,
    /// The node's number in its cluster, or any other number that orders the lines of a cluster.
    pub node: u32,
    /// Region.
    pub region: Symbol,
    /// Zone id, as `use1-az4`.
    pub zone: Symbol,
    /// Service and unit.
    pub kind: UsageKind,
    /// Platform.
    pub platform: Platform,
    /// Tenancy.
    pub tenancy: Tenancy,
    /// AWS's list price of an hour of one unit.
    pub list: HourlyRate,
    /// On-Demand price that the organisation pays for it; the list price without a private one.
    pub rate: HourlyRate,
    /// Time used, times the units used: five vCPUs for an hour are five hours.
    pub ran: SimDuration,
    /// Whether this is a capacity reservation, used or not. Zonal Reserved Instances do not cover it.
    pub is_reservation: bool,
}

/// The cluster of usage outside clusters.
pub const OUTSIDE_CLUSTERS: &str = "";
