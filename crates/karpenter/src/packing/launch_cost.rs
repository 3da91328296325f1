//! The cost of a plan: each new node at the cheapest offer of the launch request that it leads to.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::input::PackingSetup;
use super::plan::{PackingPlan, PlannedClaim};
use crate::selection::{Choice, LaunchView, select};
use nodecast_model::domain::HourlyRate;

impl PackingPlan {
    /// The price for an hour of the new nodes, each at the cheapest offer that Karpenter asks EC2 for; `None` if it asks for nothing for
    /// one of them. The first type of a claim may cost less: a launch leaves bare metal and accelerators out as long as others are left.
    pub fn launch_cost(&self, setup: &PackingSetup<'_>) -> Option<HourlyRate> {
        // Every type of a claim holds its pods, so that claims with the same types and requirements cost the same.
        let mut known = FxHashMap::default();
        let mut total = 0_i64;
        for claim in &self.claims {
            let key = (claim.pool, Arc::as_ptr(&claim.instance_types), Arc::as_ptr(&claim.requirements));
            let price = *known.entry(key).or_insert_with(|| launch_price(setup, claim));
            total = total.checked_add(price?.as_nanos())?;
        }
        Some(HourlyRate::from_nanos(total))
    }
}

fn launch_price(setup: &PackingSetup<'_>, claim: &PlannedClaim) -> Option<HourlyRate> {
    let types = setup.pools[claim.pool].instance_types;
    let choice = |index: u32| Choice::new(&types[index as usize], &claim.requirements);
    let choices: Vec<Choice<'_>> = claim.instance_types.iter().map(|kind| choice(kind.index)).collect();
    let view = LaunchView {
        karpenter: setup.karpenter,
        requirements: &claim.requirements,
        requests: &claim.requests,
        types: &choices,
        min_values: setup.options.min_values,
    };
    select(&view).ok()?.cheapest()
}
