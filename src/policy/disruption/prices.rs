//! What nodes cost and what a replacement may cost.
//!
//! Source: Karpenter core v1.13 `pkg/controllers/disruption/helpers.go`, `getCandidatePrices`;
//! `pkg/controllers/provisioning/scheduling/nodeclaim.go`, `RemoveInstanceTypeOptionsByPriceAndMinValues`.

use std::sync::Arc;

use super::candidates::Candidate;
use super::view::ClusterView;
use crate::domain::labels::normalized_key;
use crate::domain::requirements::Requirement;
use crate::domain::{HourlyRate, Labels, Requirements, Symbol, well_known};
use crate::policy::instance_types::InstanceType;
use crate::policy::packing::{PlannedClaim, PricedType, min_values_missed};
use crate::policy::selection::price::{is_compatible, worst_launch};

/// The labels of a node that tell its offering.
const PRICED_BY: [Symbol; 4] =
    [well_known::ZONE, well_known::ZONE_ID, well_known::CAPACITY_TYPE, well_known::CAPACITY_RESERVATION_ID];

/// The price of the cheapest offering that a node with these labels can have come from, available or not.
pub(super) fn own_price(kind: &InstanceType, labels: &Labels) -> Option<HourlyRate> {
    let requirements: Requirements = labels
        .iter()
        .map(|(key, value)| (normalized_key(key), value))
        .filter(|(key, _)| PRICED_BY.contains(key))
        .map(|(key, value)| Requirement::equals(key, value))
        .collect();
    let own = |offering: &&crate::policy::instance_types::Offering| {
        is_compatible(&requirements, well_known::CAPACITY_TYPE, offering)
    };
    kind.offerings.iter().filter(own).map(|offering| offering.price).min()
}

/// What the candidates cost together; nothing if the offering of one of them is gone, so that no replacement is cheaper.
pub(super) fn together(candidates: &[&Candidate]) -> HourlyRate {
    let prices: Option<Vec<HourlyRate>> = candidates.iter().map(|own| own.price).collect();
    prices.unwrap_or_default().into_iter().sum()
}

/// Keeps the types whose dearest possible launch costs less than `limit` (all if there is none).
///
/// # Errors
/// The label whose `minValues` the remaining types miss.
pub(super) fn keep_cheaper(
    view: &ClusterView<'_>,
    claim: &mut PlannedClaim,
    limit: Option<HourlyRate>,
) -> Result<(), Symbol> {
    let types = view.pools[claim.pool].instance_types;
    let cheaper = |own: &&PricedType| {
        let worst = worst_launch(&types[own.index as usize], &claim.requirements);
        limit.is_none_or(|limit| worst.is_some_and(|worst| worst < limit))
    };
    let kept: Vec<PricedType> = claim.instance_types.iter().filter(cheaper).copied().collect();
    set_types(claim, kept);
    match min_values_missed(&claim.requirements, types, claim.instance_types.iter().map(|own| own.index as usize)) {
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
