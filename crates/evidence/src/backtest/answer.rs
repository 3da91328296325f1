//! What a back-test answers, as its JSON has it.

use crate::scenario::Caveats;
use serde::Serialize;

use super::{Findings, Mode, Recorded};

/// The number that the JSON carries.
pub const SCHEMA_VERSION: u32 = 1;

/// What a back-test came to.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
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
    /// The bill of the judged time; `null` unless one is named.
    pub bill: Option<BillComparison>,
    /// What was left out.
    #[serde(flatten)]
    pub warnings: Caveats,
}

/// The bill of the judged time beside the simulated one, all in the bill's currency and for the whole judged time.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct BillComparison {
    /// The files that it was read from.
    pub files: Vec<String>,
    /// The cluster.
    pub cluster: String,
    /// The currency.
    pub currency: String,
    /// What its lines say was paid, by the line.
    pub unblended: f64,
    /// The same with what commitments cost for what they covered, without tax, credits and refunds.
    pub amortised: f64,
    /// The mean of the simulated bills.
    pub simulated: f64,
    /// The way from the amortised bill to the simulated one: what is taken off; the links sum to the difference.
    pub links: Vec<BillLink>,
    /// Recorded hours of nodes at one price list.
    pub at_one_price_list_observed: f64,
    /// Simulated hours of nodes at the same one.
    pub at_one_price_list_simulated: f64,
    /// How the cluster's lines were found.
    pub rules: Vec<BillPart>,
    /// What is in no sum: tax, credits, refunds, support.
    pub left_out: Vec<BillPart>,
    /// What the files hold of others.
    pub others: f64,
    /// What is simulated of kinds that the bill has nothing of.
    pub unbilled: f64,
    /// What of it and of what is simulated far beyond the bill could be done something about.
    pub hints: Vec<String>,
}

/// A link on the way from a bill to a simulated one.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct BillLink {
    /// What it is about.
    pub what: String,
    /// How much more was billed than simulated.
    pub amount: f64,
}

/// Lines of a bill.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct BillPart {
    /// What they have in common.
    pub name: String,
    /// How many.
    pub lines: u64,
    /// What they come to, amortised.
    pub amount: f64,
}

/// A back-test with some parts of the record swapped in.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct Variant {
    /// The parts.
    pub swapped_in: Vec<Recorded>,
    /// Whether the scenario's calibration was left out, so that defaults hold; not there where it was not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub without_calibration: bool,
    /// What was found.
    pub findings: Findings,
}
