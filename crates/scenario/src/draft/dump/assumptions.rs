//! What a scenario made of a dump assumes, each with the part of its bill that rests on it.
//!
//! Must not: compute any cost; a run does (`report::summary`).

use std::fmt::Write as _;

use super::yaml::{quoted, word};
use crate::cloud::BillItem;
use crate::domain::workload::ObjectName;

/// The part of a bill that rests on an assumption.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Part {
    /// What the nodes of these workloads cost.
    Workloads(Vec<String>),
    /// What the nodes of these NodePools or node groups cost.
    NodePools(Vec<String>),
    /// Items of the bill.
    Items(&'static [BillItem]),
}

impl Part {
    /// The nodes of one workload.
    pub(super) fn workload(name: &ObjectName) -> Self {
        Self::Workloads(vec![name.to_string()])
    }
}

/// A sentence with the part of the bill that rests on it; without one its size is not known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Assumption {
    /// The sentence.
    pub text: String,
    /// The part.
    pub part: Option<Part>,
}

impl From<String> for Assumption {
    fn from(text: String) -> Self {
        Self { text, part: None }
    }
}

/// The section of the scenario.
pub(super) fn text(all: &[Assumption], text: &mut String) {
    if all.is_empty() {
        return;
    }
    *text += "\nassumptions:                        # printed in every report; `cost_of` names the part of the bill that rests on one\n";
    for Assumption { text: sentence, part } in all {
        let sentence = quoted(sentence);
        let (key, names): (&str, Vec<String>) = match part {
            None => {
                let _ = writeln!(text, "  - {sentence}");
                continue;
            }
            Some(Part::Workloads(names)) => ("workloads", names.iter().map(|name| word(name)).collect()),
            Some(Part::NodePools(names)) => ("node_pools", names.iter().map(|name| word(name)).collect()),
            Some(Part::Items(items)) => ("items", items.iter().map(|item| item.as_str().to_owned()).collect()),
        };
        let _ = writeln!(text, "  - text: {sentence}\n    cost_of: {{ {key}: [{}] }}", names.join(", "));
    }
}
