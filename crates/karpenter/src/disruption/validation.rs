//! The second look after the wait.
//!
//! Source: Karpenter core v1.13 `pkg/controllers/disruption/validation.go`.

use std::fmt;

use super::Command;
use super::budgets::Allowance;
use super::candidates::Candidate;
use super::what_if::WhatIf;
use nodecast_model::domain::Symbol;

/// Why a command is given up.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Rejection {
    /// A node is no longer a candidate.
    Churn,
    /// A budget no longer allows it, or pods are on their way to a node.
    Budget,
    /// The pods would now go elsewhere.
    Scheduling,
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Churn => "churn",
            Self::Budget => "budget",
            Self::Scheduling => "scheduling",
        })
    }
}

/// Which of the empty nodes that were proposed may still go; `fresh` are the candidates now, `allowances` what is allowed now.
///
/// # Errors
/// If none may.
pub fn validate_empty(
    proposed: &[usize],
    fresh: &[Candidate],
    allowances: &mut [Allowance],
) -> Result<Vec<usize>, Rejection> {
    let still: Vec<&Candidate> =
        proposed.iter().filter_map(|&node| fresh.iter().find(|item| item.node == node)).collect();
    if still.is_empty() {
        return Err(Rejection::Churn);
    }
    let nodes: Vec<usize> =
        still.into_iter().filter(|item| allowances[item.pool].take()).map(|item| item.node).collect();
    if nodes.is_empty() { Err(Rejection::Budget) } else { Ok(nodes) }
}

/// Whether a consolidation may go ahead as it was proposed.
///
/// # Errors
/// What has changed.
pub fn validate(
    what_if: &mut WhatIf<'_, '_>,
    command: &Command,
    fresh: &[Candidate],
    allowances: &mut [Allowance],
) -> Result<(), Rejection> {
    let still: Vec<&Candidate> =
        command.nodes.iter().filter_map(|&node| fresh.iter().find(|item| item.node == node)).collect();
    if still.len() != command.nodes.len() {
        return Err(Rejection::Churn);
    }
    if !still.iter().all(|item| allowances[item.pool].take()) {
        return Err(Rejection::Budget);
    }
    let simulation = what_if.simulate_consolidation(&still, None);
    if simulation.failure.is_some() {
        return Err(Rejection::Scheduling);
    }
    let valid = match (command.replacements.as_slice(), simulation.plan.claims.as_slice()) {
        ([], []) => true,
        ([planned], [now]) => {
            let names: Vec<Symbol> = now.instance_types.iter().map(|instance_type| instance_type.name).collect();
            planned.instance_types.iter().all(|instance_type| names.contains(&instance_type.name))
        }
        _ => false,
    };
    if valid { Ok(()) } else { Err(Rejection::Scheduling) }
}
