//! One runnable simulation, wired from a scenario, a policy and a seed.

pub mod outcome;

pub use outcome::Outcome;
