//! The simulated EC2 and its bill.

pub mod bill;

pub use bill::{Bill, BillItem, BillLine};
