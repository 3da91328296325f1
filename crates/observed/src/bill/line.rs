//! One line of a bill in one form, whatever export it stands in.
//!
//! What must not live here: how a column is called in which export, whose line it is, what lines come to.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::amount::Amount;

/// One charge. Texts that the export leaves empty are empty.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BillLine {
    /// The id that a Cost and Usage Report gives the line; empty in FOCUS, which has none.
    pub id: String,
    /// Begin of the span that is charged for, in UTC; an hour in an hourly export.
    pub start: Timestamp,
    /// Its end.
    pub end: Timestamp,
    /// The account that pays.
    pub payer: String,
    /// The account that used.
    pub account: String,
    /// AWS's code of the service: `AmazonEC2`.
    pub service: String,
    /// The usage type without the prefix of its region: `SpotUsage:m5.large`.
    pub usage_type: String,
    /// The operation: `RunInstances`.
    pub operation: String,
    /// Id or ARN of the resource.
    pub resource: String,
    /// Availability zone.
    pub zone: String,
    /// Region code.
    pub region: String,
    /// Instance type, where the line is about one.
    pub instance_type: String,
    /// Tags, by their keys as the export spells them.
    pub tags: BTreeMap<String, String>,
    /// How it is priced.
    pub term: PricingTerm,
    /// What kind of charge it is.
    pub kind: ChargeKind,
    /// How much was used, in `unit`.
    pub usage: Amount,
    /// The unit of `usage`: `Hrs`, `Hours`, `GB-Mo`.
    pub unit: String,
    /// ISO code of the currency of all amounts of money.
    pub currency: String,
    /// What stands on the invoice for it, before negotiated discounts. In FOCUS `BilledCost`, which is 0 for what a commitment covers; in
    /// a cost and usage report the undiscounted price, which a line of its own takes off again ([`ChargeKind::Negation`]).
    pub unblended: Amount,
    /// The same after negotiated discounts, where the export states it.
    pub net_unblended: Option<Amount>,
    /// With the covered part of commitments where it was used and fees nowhere. In FOCUS `EffectiveCost`.
    pub amortised: Amount,
    /// The same after negotiated discounts, where the export states it.
    pub net_amortised: Option<Amount>,
    /// At public On-Demand prices, where the export states it.
    pub list: Option<Amount>,
    /// ARN of the Savings Plan or reservation that the line is about; empty without one.
    pub commitment: String,
    /// A hash of the row's cells: rows that are alike in every column have one. Of a columnar file only columns that are read count, the id
    /// of the line among them.
    pub fingerprint: u64,
}

/// How a line is priced.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum PricingTerm {
    /// By the public list, whatever discounts come off.
    OnDemand,
    /// By the Spot price of its hour.
    Spot,
    /// Under a reservation or a Savings Plan.
    Committed,
    /// The export does not say.
    Unstated,
}

/// What kind of charge a line is.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ChargeKind {
    /// Usage that no commitment covers.
    Usage,
    /// Usage that a Savings Plan covers.
    PlanCovered,
    /// Usage that a reservation covers.
    ReservationCovered,
    /// Takes off the undiscounted price of what a Savings Plan covers; its line names neither resource nor tags.
    Negation,
    /// The fee of a commitment. Amortised it is what of the commitment was not used.
    CommitmentFee,
    /// The part of a commitment that nothing used.
    UnusedCommitment,
    /// A negotiated or bundled discount in a line of its own.
    Discount,
    /// The part of an instance that split cost allocation gives to a pod. It is no charge: the instance has a line of its own.
    PodShare,
    /// Tax.
    Tax,
    /// Credit.
    Credit,
    /// Refund.
    Refund,
    /// AWS Support.
    Support,
    /// A correction of an invoice that no usage stands behind.
    Adjustment,
    /// Another kind, by the name that the export gives it.
    Other(String),
}

impl ChargeKind {
    /// Whether such lines are listed and left out of every total of a cluster: what they come to says nothing about how the cluster
    /// was run.
    pub const fn is_left_out(&self) -> bool {
        matches!(self, Self::Tax | Self::Credit | Self::Refund | Self::Support | Self::Adjustment)
    }

    /// Whether `usage` is what a resource really did, and is to be counted once.
    pub const fn is_usage(&self) -> bool {
        matches!(self, Self::Usage | Self::PlanCovered | Self::ReservationCovered)
    }

    /// Its name for a table.
    pub fn name(&self) -> &str {
        match self {
            Self::Usage => "usage",
            Self::PlanCovered => "usage under a Savings Plan",
            Self::ReservationCovered => "usage under a reservation",
            Self::Negation => "negation of a Savings Plan",
            Self::CommitmentFee => "fee of a commitment",
            Self::UnusedCommitment => "unused commitment",
            Self::Discount => "discount",
            Self::PodShare => "share of a pod",
            Self::Tax => "tax",
            Self::Credit => "credit",
            Self::Refund => "refund",
            Self::Support => "support",
            Self::Adjustment => "adjustment",
            Self::Other(name) => name,
        }
    }
}

impl BillLine {
    /// Whether the line is about hours: of a machine, a cluster, a gateway. Where the export has no unit, the usage type says what is counted.
    pub fn counts_hours(&self) -> bool {
        matches!(self.unit.to_ascii_lowercase().as_str(), "" | "hrs" | "hours" | "hour")
    }
}
