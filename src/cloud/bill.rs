//! What EC2 and EKS charge for one run, line by line.

use crate::catalog::PriceQuality;
use crate::domain::{Currency, HourlyRate, Money, NodeId, SimDuration, SimTime, Symbol};

/// What a line of the bill is for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum BillItem {
    /// An instance's running time.
    Instance,
    /// An instance's root volume.
    RootVolume,
    /// The EKS control plane.
    ControlPlane,
}

impl BillItem {
    /// The item as reports write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Instance => "instance",
            Self::RootVolume => "root volume",
            Self::ControlPlane => "control plane",
        }
    }
}

/// One line of the bill.
#[derive(Clone, Debug)]
pub struct BillLine {
    /// What it is for.
    pub item: BillItem,
    /// The node behind it, if one is.
    pub node: Option<NodeId>,
    /// `spot` or `on-demand`, for instances.
    pub capacity_type: Option<Symbol>,
    /// The instance type, for instances and their volumes.
    pub instance_type: Option<Symbol>,
    /// The zone, for instances and their volumes.
    pub zone: Option<Symbol>,
    /// Start of the time billed.
    pub from: SimTime,
    /// End of the time billed.
    pub to: SimTime,
    /// Time billed, with the minimum applied.
    pub billed: SimDuration,
    /// Price per hour.
    pub rate: HourlyRate,
    /// What is charged.
    pub amount: Money,
    /// How far the price can be trusted.
    pub quality: PriceQuality,
}

/// The bill of one run: instances first, in order of node, then the rest.
#[derive(Clone, Debug)]
pub struct Bill {
    /// The currency of every amount.
    pub currency: Currency,
    /// The lines.
    pub lines: Vec<BillLine>,
}

impl Bill {
    /// The sum of all lines.
    pub fn total(&self) -> Money {
        self.lines.iter().map(|line| line.amount).sum()
    }
}
