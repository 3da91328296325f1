//! The simulated cluster: its state with indices, changed through named operations, and the record of what happened.

pub mod record;
