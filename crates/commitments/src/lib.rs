//! Commitments of an organisation: Reserved Instances and Savings Plans that many accounts and clusters share.
//!
//! - [`Accounts`] has the sharing rule: which account a commitment serves, and in which tier.
//! - [`apply`] covers the usage of one clock hour, in integers: nano-dollars and microseconds.
//! - [`Bill`] sums hours by cluster, account, and commitment.
//! - [`chargeback`] shares the bill out in rows of clusters, accounts, and the organisation; [`focus_rows`] writes it as rows of FOCUS.
//! - [`Demand`] finds the commitments with the lowest cost against samples of usage; [`Growth`] and [`ladder`] spread them over a term;
//!   [`left_by_class`] and [`plans`] connect it with bills.
//!
//! Usage is what commitments may cover: On-Demand instances, capacity reservations, Fargate, and Lambda. All other items of a bill stay with the
//! caller.
//!
//! Must not know: the simulation, a cluster's nodes and pods, files, a clock, randomness.

mod accounts;
mod apply;
mod best;
mod bill;
mod chargeback;
mod commitment;
mod focus;
mod leftover;
mod master;
mod share;
mod sizes;
mod terms;
mod usage;

pub use accounts::{Account, Accounts, Sharing};
pub use apply::{CoveredHour, CoveredPart, Fee, apply};
pub use best::{Best, Demand, Objective, Purchase, PurchaseResult, STEP, Sample, UsageClass};
pub use bill::{Amounts, Bearer, Bill, CommitmentAmounts, CommitmentBill, Figures, HourBill};
pub use chargeback::{ChargebackRow, OtherCosts, RowKind, UnusedRule, chargeback};
pub use commitment::{Commitment, Commitments, PlanKind, PlanRates, ReservedInstance, SavingsPlan, Term, WHOLE};
pub use focus::{
    FocusCategory, FocusCommitment, FocusFile, FocusPricing, FocusRow, FocusService, FocusVersion, focus_rows,
    instance_id,
};
pub use leftover::{ClassKey, ClassKind, left_by_class, plans};
pub use terms::{Growth, Step, ladder, present_value, upfront_return};
pub use usage::{OUTSIDE_CLUSTERS, Platform, Tenancy, UsageKind, UsageLine};
