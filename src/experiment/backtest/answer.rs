//! What a back-test answers, as its JSON has it.

use serde::Serialize;

use super::{Findings, Mode, Recorded};

/// The number that the JSON carries.
pub const SCHEMA_VERSION: u32 = 1;

/// What a back-test came to.
#[derive(Clone, Debug, Serialize)]
pub struct Answer {
    /// Version of this layout.
    pub schema_version: u32,
    /// What wrote it.
    pub program: &'static str,
    /// Its version.
    pub program_version: &'static str,
    /// The scenario's name.
    pub scenario: String,
    /// The policy.
    pub policy: String,
    /// Where the record lies.
    pub recorded: String,
    /// What went into the simulations.
    pub mode: Mode,
    /// What took the place of a model.
    pub swapped_in: Vec<Recorded>,
    /// The currency of every amount; `null` where neither side has a bill.
    pub currency: Option<String>,
    /// From when on is judged, RFC 3339.
    pub judged_from: String,
    /// Until when.
    pub judged_until: String,
    /// Whether what is judged may have been used to set the scenario up.
    pub in_sample: bool,
    /// The first seed.
    pub first_seed: u64,
    /// How many.
    pub replications: u64,
    /// What was found.
    #[serde(flatten)]
    pub findings: Findings,
    /// The same with other parts of the record swapped in; empty unless asked for.
    pub ablation: Vec<Variant>,
    /// What was left out.
    pub warnings: Vec<String>,
}

/// A back-test with some parts of the record swapped in.
#[derive(Clone, Debug, Serialize)]
pub struct Variant {
    /// The parts.
    pub swapped_in: Vec<Recorded>,
    /// What was found.
    pub findings: Findings,
}
