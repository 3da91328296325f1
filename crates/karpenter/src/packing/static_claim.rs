//! The claim of a static pool: its template alone.
//!
//! Must not consider pods, DaemonSets, or available capacity.
//!
//! Source: Karpenter core v1.8 to v1.14 `pkg/controllers/static/provisioning/controller.go`, `pkg/controllers/disruption/staticdrift.go`,
//! `pkg/controllers/provisioning/scheduling/nodeclaimtemplate.go` (`NewNodeClaimTemplate`, `ToNodeClaim`).

use std::sync::Arc;

use super::finish::labels_of;
use super::input::PackingSetup;
use super::plan::{PlannedClaim, PricedType};
use super::templates::pool_requirements;
use crate::instance_types::{InstanceType, capacity_type_key};
use crate::selection::is_compatible;
use crate::selection::price::Terms;
use nodecast_model::domain::{HourlyRate, Resources};

/// The claim that a static pool makes for each of its nodes; `None` if the setup has no such pool.
///
/// It requests nothing and lists no types: the provider chooses among all types that the requirements allow. These are the claim's
/// types here, the cheapest first; a type without an available offering has no price and comes last.
pub fn static_claim(setup: &PackingSetup<'_>, pool: usize) -> Option<PlannedClaim> {
    let view = setup.pools.get(pool)?;
    let requirements = pool_requirements(setup, pool);
    let terms = Terms::new(&requirements, capacity_type_key(setup.karpenter));
    let price = |entry: &InstanceType| -> Option<HourlyRate> {
        let open = entry.offerings.iter().filter(|offering| offering.available && terms.allow(offering));
        open.map(|offering| offering.price).min()
    };
    let allowed = view.instance_types.iter().zip(0..).filter(|(entry, _)| is_compatible(entry, &requirements));
    let priced = allowed.map(|(entry, index)| PricedType { index, name: entry.name, price: price(entry) });
    let mut types: Vec<PricedType> = priced.collect();
    types.sort_by(|one, other| {
        let key = |priced: &PricedType| (priced.price.is_none(), priced.price);
        key(one).cmp(&key(other)).then_with(|| one.name.cmp(&other.name))
    });
    Some(PlannedClaim {
        pool,
        node_pool: view.pool.name,
        labels: labels_of(setup, pool, &requirements),
        requirements: Arc::new(requirements),
        requests: Resources::new(),
        daemon_requests: Resources::new(),
        instance_types_before_cut: types.len(),
        instance_types: types.into(),
        pods: Vec::new(),
        taints: view.pool.taints.clone(),
        startup_taints: view.pool.startup_taints.clone(),
        min_values_relaxed: false,
    })
}
