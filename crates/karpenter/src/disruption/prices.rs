//! What nodes cost and what a replacement may cost.
//!
//! Source: Karpenter core v1.13 `pkg/controllers/disruption/helpers.go`, `getCandidatePrices`;
//! `pkg/controllers/provisioning/scheduling/nodeclaim.go`, `RemoveInstanceTypeOptionsByPriceAndMinValues`.

use std::sync::Arc;

use super::candidates::Candidate;
use super::view::ClusterView;
use crate::instance_types::InstanceType;
use crate::packing::{PlannedClaim, PricedType, min_values_missed};
use crate::selection::price::{Terms, worst_launch};
use nodecast_model::domain::{HourlyRate, Symbol, well_known};

/// The price of the cheapest offering that a node whose labels come to these terms can have come from, available or not.
pub(super) fn own_price(kind: &InstanceType, terms: &Terms) -> Option<HourlyRate> {
    let this_offering = kind.offerings.iter().filter(|offering| terms.allow(offering));
    this_offering.map(|offering| offering.price).min()
}

/// What the candidates cost together; nothing if the offering of one of them is gone, so that no replacement is cheaper.
pub(super) fn together(candidates: &[&Candidate]) -> HourlyRate {
    let prices: Option<Vec<HourlyRate>> = candidates.iter().map(|candidate| candidate.price).collect();
    prices.unwrap_or_default().into_iter().sum()
}

/// Keeps the types whose dearest possible launch costs less than `limit`; without one, all that can be launched.
///
/// # Errors
/// The label whose `minValues` the remaining types miss.
pub(super) fn keep_cheaper(
    view: &ClusterView<'_>,
    claim: &mut PlannedClaim,
    limit: Option<HourlyRate>,
) -> Result<(), Symbol> {
    let types = view.pools[claim.pool].instance_types;
    let terms = Terms::new(&claim.requirements, well_known::CAPACITY_TYPE);
    // From v0.18 on a type's price is that of its cheapest launch, so that most need no look at the dearest.
    let by_cheapest = view.behaviour().replaces_by_cheapest;
    let cheaper = |priced_type: &&PricedType| {
        let worst = || worst_launch(&types[priced_type.index as usize], &terms);
        let Some(limit) = limit else { return worst().is_some() };
        let hopeless = by_cheapest && priced_type.price.is_none_or(|least| least >= limit);
        !hopeless && worst().is_some_and(|worst| worst < limit)
    };
    let kept: Vec<PricedType> = claim.instance_types.iter().filter(cheaper).copied().collect();
    set_types(claim, kept);
    match min_values_missed(
        &claim.requirements,
        types,
        claim.instance_types.iter().map(|instance_type| instance_type.index as usize),
    ) {
        Some(key) => Err(key),
        None => Ok(()),
    }
}

/// Replaces the types of a claim.
pub(super) fn set_types(claim: &mut PlannedClaim, kept: Vec<PricedType>) {
    if kept.len() != claim.instance_types.len() {
        claim.instance_types_before_cut = kept.len();
        claim.instance_types = Arc::from(kept);
    }
}
