//! What nodes cost and what a replacement may cost.
//!
//! Source: Karpenter core v1.13 `pkg/controllers/disruption/helpers.go`, `getCandidatePrices`;
//! `pkg/controllers/provisioning/scheduling/nodeclaim.go`, `RemoveInstanceTypeOptionsByPriceAndMinValues`.

use std::sync::Arc;

use super::candidates::Candidate;
use super::view::ClusterView;
use crate::domain::labels::normalized_key;
use crate::domain::{HourlyRate, KarpenterVersion, Labels, Symbol, well_known};
use crate::policy::instance_types::{InstanceType, Offering};
use crate::policy::packing::{PlannedClaim, PricedType, min_values_missed};
use crate::policy::selection::price::worst_launch;

/// The labels of a node that tell its offering.
const PRICED_BY: [Symbol; 4] =
    [well_known::ZONE, well_known::ZONE_ID, well_known::CAPACITY_TYPE, well_known::CAPACITY_RESERVATION_ID];

/// The price of the cheapest offering that a node with these labels can have come from, available or not.
pub(super) fn own_price(kind: &InstanceType, labels: &Labels) -> Option<HourlyRate> {
    let mut told = [None; PRICED_BY.len()];
    for (key, value) in labels.iter() {
        let Some(place) = PRICED_BY.iter().position(|own| *own == normalized_key(key)) else { continue };
        // An old and a new name of one label that disagree name no offering.
        if told[place].replace(value).is_some_and(|other| other != value) {
            return None;
        }
    }
    let [zone, zone_id, capacity_type, reservation] = told;
    let says = |told: Option<Symbol>, own: Option<Symbol>| told.is_none() || told == own;
    let own = |offering: &&Offering| {
        says(zone, Some(offering.zone))
            && (offering.zone_id.is_none() || says(zone_id, offering.zone_id))
            && says(capacity_type, Some(offering.capacity_type))
            && says(reservation, offering.reservation.map(|own| own.id))
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
    // From v0.18 on a type's price is that of its cheapest launch, so that most need no look at the dearest.
    let by_cheapest = view.karpenter > KarpenterVersion::V0_16;
    let cheaper = |own: &&PricedType| {
        limit.is_none_or(|limit| {
            let hopeless = by_cheapest && own.price.is_none_or(|least| least >= limit);
            let worst = || worst_launch(&types[own.index as usize], &claim.requirements);
            !hopeless && worst().is_some_and(|worst| worst < limit)
        })
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
