//! From a simulation to a decision: nothing, delete, or replace by one cheaper node.
//!
//! Source: Karpenter core v1.13 `pkg/controllers/disruption/consolidation.go`, `computeConsolidation`,
//! `computeSpotToSpotConsolidation`.

use std::fmt;
use std::sync::Arc;

use super::candidates::Candidate;
use super::obstacles::Obstacle;
use super::prices::{keep_cheaper, set_types, together};
use super::view::ClusterView;
use super::what_if::{Failure, Simulation, WhatIf};
use crate::packing::{GivenUp, PlannedClaim, PricedType, min_values_missed};
use crate::selection::price::{Terms, cheapest};
use nodecast_model::domain::requirements::{Operator, Requirement};
use nodecast_model::domain::{HourlyRate, Symbol, well_known};

/// A single Spot node is replaced by Spot only if so many cheaper types remain.
const SPOT_TO_SPOT_TYPES: usize = 15;

/// What consolidation of some nodes comes to.
#[derive(Clone, PartialEq, Debug)]
pub struct Evaluation {
    /// The decision.
    pub decision: Decision,
    /// What the nodes cost together per hour; zero if one of them has no known offering.
    pub price: HourlyRate,
    /// What the packer said.
    pub simulation: Simulation,
}

/// What to do with the nodes.
#[derive(Clone, PartialEq, Debug)]
pub enum Decision {
    /// Nothing.
    NoOp(NoOp),
    /// Their pods fit on the other nodes.
    Delete,
    /// They give way to one cheaper node.
    Replace(Box<PlannedClaim>),
}

/// Why nothing is done.
#[derive(Clone, PartialEq, Debug)]
pub enum NoOp {
    /// A pod that runs would not run.
    PodsStay(Failure),
    /// So many new nodes would be needed.
    SeveralNodes(usize),
    /// No type that would do is cheaper.
    NotCheaper,
    /// What one of them costs is not known, as its offering is gone.
    NoPrice,
    /// Too few values would remain for the `minValues` of a label.
    MinValues(Symbol),
    /// Feature gate `SpotToSpotConsolidation` is off.
    SpotToSpotOff,
    /// So many cheaper Spot types remain, which is too few.
    FewSpotTypes(usize),
    /// The replacement could be of the same type as one of several nodes.
    SameType,
}

impl fmt::Display for NoOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PodsStay(failure) => failure.fmt(f),
            Self::SeveralNodes(count) => write!(f, "its pods would need {count} new nodes, and one is the most"),
            Self::NoPrice => f.write_str("its offering is gone, and nothing says what it costs"),
            Self::NotCheaper => f.write_str("no instance type that would do is cheaper"),
            Self::MinValues(key) => write!(f, "too few cheaper instance types are left for the minValues of {key}"),
            Self::SpotToSpotOff => {
                f.write_str("a Spot node gives way to Spot only with the gate SpotToSpotConsolidation")
            }
            Self::FewSpotTypes(count) => {
                write!(f, "only {count} Spot types are cheaper, and {SPOT_TO_SPOT_TYPES} are wanted")
            }
            Self::SameType => f.write_str("the replacement could be of the same type as one of the nodes"),
        }
    }
}

impl Evaluation {
    /// What kept the nodes; a decision that was not carried out all the same was out of balance.
    pub(super) fn obstacle(&self) -> Obstacle {
        match &self.decision {
            Decision::NoOp(why) => why.into(),
            Decision::Delete | Decision::Replace(_) => Obstacle::Unbalanced,
        }
    }
}

/// What consolidation of the nodes comes to.
pub fn evaluate(what_if: &mut WhatIf<'_, '_>, nodes: &[&Candidate]) -> Evaluation {
    let view = what_if.view();
    let price = together(nodes);
    // A Spot node's replacement by Spot is weighed in its own way, and releases up to v0.16 weigh every one.
    let plain = view.behaviour().replaces_by_cheapest && !all_spot(nodes);
    let simulation = what_if.simulate_consolidation(nodes, plain.then_some(price));
    let priced = view.behaviour().unknown_price_is_zero || nodes.iter().all(|node| node.price.is_some());
    let decision = if priced { decide(view, nodes, &simulation, price) } else { Decision::NoOp(NoOp::NoPrice) };
    Evaluation { decision, price, simulation }
}

fn decide(view: &ClusterView<'_>, nodes: &[&Candidate], simulation: &Simulation, price: HourlyRate) -> Decision {
    if let Some(failure) = &simulation.failure {
        return Decision::NoOp(NoOp::PodsStay(failure.clone()));
    }
    if simulation.plan.given_up == Some(GivenUp::Dearer) {
        return Decision::NoOp(NoOp::NotCheaper);
    }
    let only = match simulation.plan.claims.as_slice() {
        [] if simulation.plan.untold > 0 => return Decision::NoOp(NoOp::SeveralNodes(simulation.plan.untold)),
        [] => return Decision::Delete,
        [only] => only,
        several => return Decision::NoOp(NoOp::SeveralNodes(several.len())),
    };
    let to_spot = all_spot(nodes) && allows(only, well_known::SPOT);
    if !to_spot && is_plainly_dearer(view, only, price) {
        return Decision::NoOp(NoOp::NotCheaper);
    }
    let mut claim = only.clone();
    let narrowed =
        if to_spot { spot_to_spot(view, nodes, &mut claim, price) } else { cheaper(view, &mut claim, price) };
    match narrowed {
        Ok(()) => Decision::Replace(Box::new(claim)),
        Err(why) => Decision::NoOp(why),
    }
}

fn all_spot(nodes: &[&Candidate]) -> bool {
    nodes.iter().all(|node| node.capacity_type == Some(well_known::SPOT))
}

/// Whether already the first type of the claim, which is the cheapest, costs too much, and nothing else can be said of it:
/// what most simulations come to.
fn is_plainly_dearer(view: &ClusterView<'_>, claim: &PlannedClaim, price: HourlyRate) -> bool {
    let first = claim.instance_types.first().and_then(|instance_type| instance_type.price);
    view.behaviour().replaces_by_cheapest
        && first.is_none_or(|least| least >= price)
        && !claim.requirements.has_min_values()
}

/// Whether the claim may be of a capacity type; what is left open is allowed.
fn allows(claim: &PlannedClaim, capacity_type: Symbol) -> bool {
    claim.requirements.get(well_known::CAPACITY_TYPE).is_none_or(|requirement| requirement.has(capacity_type))
}

/// Keeps what is cheaper. A claim that may be Spot becomes Spot alone, so that a lack of capacity does not lead to a dearer
/// On-Demand node.
fn cheaper(view: &ClusterView<'_>, claim: &mut PlannedClaim, price: HourlyRate) -> Result<(), NoOp> {
    keep_cheaper(view, claim, Some(price)).map_err(NoOp::MinValues)?;
    if claim.instance_types.is_empty() {
        return Err(NoOp::NotCheaper);
    }
    if allows(claim, well_known::SPOT) && allows(claim, well_known::ON_DEMAND) {
        require_spot(claim);
    }
    Ok(())
}

fn require_spot(claim: &mut PlannedClaim) {
    Arc::make_mut(&mut claim.requirements).add(Requirement::new(
        well_known::CAPACITY_TYPE,
        Operator::In,
        [well_known::SPOT],
    ));
}

fn spot_to_spot(
    view: &ClusterView<'_>,
    nodes: &[&Candidate],
    claim: &mut PlannedClaim,
    price: HourlyRate,
) -> Result<(), NoOp> {
    if !view.spot_to_spot {
        return Err(NoOp::SpotToSpotOff);
    }
    require_spot(claim);
    let types = view.pools[claim.pool].instance_types;
    let terms = Terms::new(&claim.requirements, well_known::CAPACITY_TYPE);
    let to_be_had: Vec<PricedType> = claim
        .instance_types
        .iter()
        .filter_map(|instance_type| {
            let kind = &types[instance_type.index as usize];
            let listed = kind.offerings.iter().any(|offering| offering.available && terms.allow(offering));
            listed.then(|| PricedType { price: cheapest(kind, &terms), ..*instance_type })
        })
        .collect();
    claim.instance_types = to_be_had.into();
    keep_cheaper(view, claim, Some(price)).map_err(NoOp::MinValues)?;
    match (claim.instance_types.len(), nodes.len()) {
        (0, _) => Err(NoOp::NotCheaper),
        (few, 1) if few < SPOT_TO_SPOT_TYPES => Err(NoOp::FewSpotTypes(few)),
        (_, 1) => {
            keep_cheapest(view, claim);
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Cuts the list to the cheapest types, as many as spot-to-spot consolidation and `minValues` ask for: the node that comes
/// is then among the cheapest and is not replaced again at once.
fn keep_cheapest(view: &ClusterView<'_>, claim: &mut PlannedClaim) {
    let types = view.pools[claim.pool].instance_types;
    let mut sorted = claim.instance_types.to_vec();
    if view.behaviour().sorts_spot_to_spot {
        sorted.sort_by_key(|item| (item.price.is_none(), item.price, item.name));
    } else {
        // Before the fix the list had no order of its own: that of the provider, which names make here.
        sorted.sort_by_key(|item| item.name);
    }
    let enough = |count: &usize| {
        let left = sorted[..*count].iter().map(|item| item.index as usize);
        min_values_missed(&claim.requirements, types, left).is_none()
    };
    let needed =
        if claim.requirements.has_min_values() { (0..=sorted.len()).find(enough).unwrap_or(sorted.len()) } else { 0 };
    sorted.truncate(needed.max(SPOT_TO_SPOT_TYPES));
    set_types(claim, sorted);
}

/// Of several nodes and one replacement: keeps the types that are cheaper than every node whose own type the replacement
/// might have, which prevents that several nodes go and one of the same type comes.
pub(super) fn without_same_type(
    view: &ClusterView<'_>,
    nodes: &[&Candidate],
    claim: &mut PlannedClaim,
) -> Result<(), NoOp> {
    let mut least: Vec<(Symbol, Option<HourlyRate>)> = Vec::new();
    for candidate in nodes {
        let Some(index) = candidate.instance_type else { continue };
        let name = view.pools[candidate.pool].instance_types[index].name;
        match least.iter_mut().find(|(known, _)| *known == name) {
            Some((_, price)) => *price = lower(*price, candidate.price),
            None => least.push((name, candidate.price)),
        }
    }
    let matches = |kind: &PricedType| least.iter().find(|(name, _)| *name == kind.name).map(|(_, price)| *price);
    let limit = claim.instance_types.iter().filter_map(matches).map(Option::unwrap_or_default).min();
    keep_cheaper(view, claim, limit).map_err(NoOp::MinValues)?;
    if claim.instance_types.is_empty() { Err(NoOp::SameType) } else { Ok(()) }
}

fn lower(one: Option<HourlyRate>, other: Option<HourlyRate>) -> Option<HourlyRate> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
