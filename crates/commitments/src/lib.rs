//! Commitments of an organisation: Reserved Instances and Savings Plans that many accounts and clusters share.
//!
//! - [`Accounts`] has the sharing rule: which account a commitment serves, and in which tier.
//! - [`apply`] covers the usage of one clock hour, in integers: nano-dollars and microseconds.
//! - [`Bill`] sums hours by cluster, account, and commitment.
//! - [`chargeback`] shares the bill out in rows of clusters, accounts, and the organisation.
//!
//! Usage is what commitments may cover: On-Demand instances, capacity reservations, Fargate, and Lambda. All other items of a bill stay with the
//! caller.
//!
//! Must not know: the simulation, a cluster's nodes and pods, files, a clock, randomness.

mod accounts;
mod apply;
mod bill;
mod chargeback;
mod commitment;
mod share;
mod sizes;
mod usage;

pub use accounts::{Account, Accounts, Sharing};
pub use apply::{CoveredHour, CoveredPart, Fee, apply};
pub use bill::{Amounts, Bearer, Bill, CommitmentAmounts, CommitmentBill, Figures, HourBill};
pub use chargeback::{ChargebackRow, OtherCosts, RowKind, UnusedRule, chargeback};
pub use commitment::{Commitment, Commitments, PlanKind, PlanRates, ReservedInstance, SavingsPlan, Term, WHOLE};
pub use usage::{OUTSIDE_CLUSTERS, Platform, Tenancy, UsageKind, UsageLine};
