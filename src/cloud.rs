//! The simulated EC2 and its bill.
