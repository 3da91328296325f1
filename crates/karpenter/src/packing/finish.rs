//! From the claims of a pass to the plan: price order, the cut to the cheapest types, labels.
//!
//! Source: Karpenter core v1.13 `pkg/controllers/provisioning/scheduling/nodeclaim.go` (`FinalizeScheduling`),
//! `nodeclaimtemplate.go`, `pkg/cloudprovider/types.go` (`OrderByPrice`, `Truncate`).

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::bits::{self, Bits};
use super::claim::Claim;
use super::errors::Unschedulable;
use super::input::{MinValuesPolicy, PackingSetup};
use super::min_values;
use super::pass::Pass;
use super::plan::{ExistingPlacement, PackingPlan, PlannedClaim, PricedType, UnschedulablePod};
use super::requirement_table::SetId;
use super::templates::pool_labels;
use super::type_table::TypeTable;
use crate::instance_types::InstanceType;
use nodecast_model::domain::labels::{is_restricted, is_well_known, is_well_known_in_auto_mode};
use nodecast_model::domain::requirements::{Operator, Requirement, Requirements};
use nodecast_model::domain::symbol::well_known;
use nodecast_model::domain::{HourlyRate, Labels};

/// What claims share, made once for as long as the packer lives: price-ordered lists of types, and labels.
#[derive(Default)]
pub(super) struct PriceOrders {
    by_set: FxHashMap<(usize, SetId), ByPrice>,
    /// Cut to what the options allow.
    by_types: FxHashMap<(usize, SetId, Bits), Arc<[PricedType]>>,
    /// Labels of a claim by template and requirements.
    labels: FxHashMap<(usize, SetId), Labels>,
}

/// Where a type stands: by price, then by name; what has no price comes last. One number, since an outage compares a thousand of them at each launch:
/// from the highest bit on the price in nano-units, moved so that signs keep the order, the rank of the name, and the position in the table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Ranked(u128);

impl Ranked {
    /// The price of what has none.
    const NONE: i64 = i64::MAX;
    const SIGN: u64 = 1 << 63;

    fn new(price: Option<HourlyRate>, name: u32, index: u32) -> Self {
        let price = price.map_or(Self::NONE, HourlyRate::as_nanos);
        let rank = (u64::from(name) << 32) | u64::from(index);
        Self((u128::from(price as u64 ^ Self::SIGN) << 64) | u128::from(rank))
    }

    fn nanos(self) -> i64 {
        ((self.0 >> 64) as u64 ^ Self::SIGN) as i64
    }

    fn price(self) -> Option<HourlyRate> {
        (self.nanos() != Self::NONE).then(|| HourlyRate::from_nanos(self.nanos()))
    }

    const fn index(self) -> usize {
        self.0 as u32 as usize
    }
}

/// All types of a table, the cheapest first.
struct ByPrice {
    all: Vec<Ranked>,
    /// By position in the table.
    prices: Vec<i64>,
    /// For every [`STRIDE`]th of them those before it, as a set; empty until somebody asks.
    before: Vec<Bits>,
    /// Room for putting them in order anew.
    room: Vec<Ranked>,
}

const STRIDE: usize = 32;

impl ByPrice {
    /// These types, put in order.
    fn new(mut types: Vec<Ranked>) -> Self {
        types.sort_unstable();
        let mut prices = vec![Ranked::NONE; types.len()];
        types.iter().for_each(|instance_type| prices[instance_type.index()] = instance_type.nanos());
        Self { all: types, prices, before: Vec::new(), room: Vec::new() }
    }

    fn sets_before(all: &[Ranked]) -> Vec<Bits> {
        let (mut before, mut so_far) = (Vec::with_capacity(all.len() / STRIDE + 1), bits::empty(all.len()));
        for (rank, item) in all.iter().enumerate() {
            if rank.is_multiple_of(STRIDE) {
                before.push(so_far.clone());
            }
            bits::insert(&mut so_far, item.index());
        }
        before
    }

    /// Puts types whose prices may have changed where they belong now: a launch without capacity changes the price of at most sixty of 1,300.
    ///
    /// They alone are put in order, and one pass merges them with the others. To find the places of sixty by halves and to copy what lies
    /// between took longer, to sort all of them longer still.
    fn renew(&mut self, mut changed: Vec<Ranked>) {
        // Mostly a type is as dear as before, since another of its offerings is its cheapest.
        changed.retain(|item| self.prices[item.index()] != item.nanos());
        if changed.is_empty() {
            return;
        }
        changed.sort_unstable();
        let mut moved = bits::empty(self.all.len());
        for item in &changed {
            self.prices[item.index()] = item.nanos();
            bits::insert(&mut moved, item.index());
        }
        let (mut next, mut merged) = (0, std::mem::take(&mut self.room));
        merged.clear();
        merged.reserve(self.all.len());
        for &item in self.all.iter().filter(|item| !bits::contains(&moved, item.index())) {
            while let Some(&new) = changed.get(next).filter(|new| **new < item) {
                merged.push(new);
                next += 1;
            }
            merged.push(item);
        }
        merged.extend_from_slice(&changed[next..]);
        self.room = std::mem::replace(&mut self.all, merged);
        self.before.clear();
    }

    /// Whether one of `types` costs less than `ceiling`.
    fn has_cheaper(&mut self, types: &[u64], ceiling: HourlyRate) -> bool {
        if self.before.is_empty() {
            self.before = Self::sets_before(&self.all);
        }
        let end = self.all.partition_point(|item| item.price().is_some_and(|price| price < ceiling));
        let block = (end / STRIDE).min(self.before.len().saturating_sub(1));
        let rest = &self.all[(block * STRIDE).min(end)..end];
        self.before.get(block).is_some_and(|before| bits::intersects(types, before))
            || rest.iter().any(|item| bits::contains(types, item.index()))
    }
}

impl PriceOrders {
    /// Forgets what claims of templates have in common: the templates are others.
    pub(super) fn forget_labels(&mut self) {
        self.labels.clear();
    }

    /// Takes over that types of a table, in order of position, have changed in price or availability.
    pub(super) fn renew(&mut self, setup: &PackingSetup<'_>, at: (usize, &TypeTable<'_>), types: &[usize]) {
        let (position, table) = at;
        if types.is_empty() {
            return;
        }
        self.by_types.clear();
        // Where all have changed, whoever asks next sorts them from_scratch: not every set is asked about again.
        let from_scratch = types.len() == table.types.len();
        let by_on_demand = setup.behaviour().orders_by_on_demand;
        self.by_set.retain(|&(item, set), by_price| {
            if item == position && !from_scratch {
                by_price.renew(types.iter().map(|&index| ranked(table, set, index, by_on_demand)).collect());
            }
            item != position || !from_scratch
        });
    }
}

/// Turns a finished pass into its plan.
///
/// Deviation: types of equal price are in order of name. Upstream leaves their order to chance.
pub(super) fn plan(mut pass: Pass<'_, '_>, orders: &mut PriceOrders) -> PackingPlan {
    let mut plan = PackingPlan { dropped_pools: pass.engine.templates.dropped.clone(), ..PackingPlan::default() };
    plan.verdicts = std::mem::take(&mut pass.verdicts);
    plan.given_up = pass.given_up;
    plan.work = pass.work;
    plan.unreached = std::mem::take(&mut pass.unreached);
    if plan.given_up.is_some() {
        return plan;
    }
    let placed = pass.existing.placed().into_iter();
    plan.existing.extend(placed.map(|(node, pods)| ExistingPlacement { node, pods }));
    let mut claims = std::mem::take(&mut pass.claims);
    // Only a cut that breaks minValues takes a claim back.
    if pass.asked.only_one
        && claims.len() > 1
        && !claims.iter().any(|claim| pass.engine.table.has_min_values(claim.set))
    {
        plan.untold = claims.len();
        claims.clear();
    }
    for claim in claims {
        let pinned = !claim.held.is_empty();
        let planned = finish(&mut pass, claim, orders);
        let strict = pass.engine.setup.options.min_values == MinValuesPolicy::Strict;
        if strict && cut_breaks_min_values(&pass, &planned) {
            for &pod in &planned.pods {
                pass.failures[pod] = Some(Unschedulable::CutBrokeMinValues { node_pool: planned.node_pool });
            }
            continue;
        }
        plan.claims.push(if pinned { without_unoffered(planned) } else { planned });
    }
    for (pod, failure) in pass.failures.into_iter().enumerate() {
        if let Some(reason) = failure {
            plan.unschedulable.push(UnschedulablePod { pod, reason });
        }
    }
    plan
}

fn finish(pass: &mut Pass<'_, '_>, claim: Claim, orders: &mut PriceOrders) -> PlannedClaim {
    let setup = pass.engine.setup;
    let template = &pass.engine.templates.list[claim.template];
    let pool = setup.pools[template.pool].pool;
    let set = pin_reservations(pass, &claim);
    let table = &mut pass.engine.tables[template.table];
    table.prepare(set, pass.engine.table);
    let instance_types = ordered(pass, &claim, set, orders);
    let daemon_requests = template.daemon_requests_on_any(&claim.types).into_owned();
    let mut requests = daemon_requests.clone();
    for &pod in &claim.pods {
        requests.add(&pass.classes.list[pass.classes.of_pod[pod]].shape.requests);
    }
    let requirements = Arc::clone(pass.engine.table.shared(set));
    let labels = orders.labels.entry((claim.template, set));
    let labels = labels.or_insert_with(|| labels_of(setup, template.pool, &requirements)).clone();
    PlannedClaim {
        pool: template.pool,
        node_pool: pool.name,
        labels,
        requirements,
        requests,
        daemon_requests,
        instance_types_before_cut: bits::count(&claim.types) as usize,
        instance_types,
        pods: claim.pods,
        taints: pool.taints.clone(),
        startup_taints: pool.startup_taints.clone(),
        min_values_relaxed: claim.min_values_relaxed,
    }
}

/// A claim that holds reservations may only use them.
fn pin_reservations(pass: &mut Pass<'_, '_>, claim: &Claim) -> SetId {
    if claim.held.is_empty() {
        return claim.set;
    }
    let mut pinned = pass.engine.table.set(claim.set).clone();
    pinned.remove(well_known::CAPACITY_TYPE);
    pinned.add(Requirement::equals(well_known::CAPACITY_TYPE, well_known::RESERVED));
    pinned.add(Requirement::new(well_known::CAPACITY_RESERVATION_ID, Operator::In, claim.held.iter().copied()));
    pass.engine.table.intern(&pinned)
}

/// The cheapest types that a claim may become, as many as the options allow.
fn ordered(pass: &Pass<'_, '_>, claim: &Claim, set: SetId, orders: &mut PriceOrders) -> Arc<[PricedType]> {
    let position = pass.engine.templates.list[claim.template].table;
    let key = (position, set, claim.types.clone());
    if let Some(known) = orders.by_types.get(&key) {
        return Arc::clone(known);
    }
    let all = by_price(pass.engine.setup, pass.engine.tables, (position, set), orders);
    let setup = pass.engine.setup;
    let cut = setup.options.max_instance_types.min(setup.behaviour().claim_types);
    let most = cut.min(bits::count(&claim.types) as usize);
    let mut left = Vec::with_capacity(most);
    let types = all.all.iter().filter(|item| bits::contains(&claim.types, item.index())).take(most);
    let names = &pass.engine.tables[position].names;
    let priced =
        |item: &Ranked| PricedType { index: item.index() as u32, name: names[item.index()], price: item.price() };
    left.extend(types.map(priced));
    let left: Arc<[PricedType]> = left.into();
    orders.by_types.insert(key, Arc::clone(&left));
    left
}

/// All types of a table as a set of requirements prices them, the cheapest first. The set must have been prepared.
fn by_price<'o>(
    setup: &PackingSetup<'_>,
    tables: &[TypeTable<'_>],
    at: (usize, SetId),
    orders: &'o mut PriceOrders,
) -> &'o mut ByPrice {
    orders.by_set.entry(at).or_insert_with(|| {
        let (table, by_on_demand) = (&tables[at.0], setup.behaviour().orders_by_on_demand);
        ByPrice::new((0..table.types.len()).map(|index| ranked(table, at.1, index, by_on_demand)).collect())
    })
}

/// A type of a table as a set of requirements prices it, and where that puts it. The set must have been prepared.
fn ranked(table: &TypeTable<'_>, set: SetId, index: usize, by_on_demand: bool) -> Ranked {
    let price = if by_on_demand { on_demand_price(&table.types[index]) } else { table.price(index, set) };
    Ranked::new(price, table.name_ranks[index], index as u32)
}

/// Whether one of some types of a table costs less than `ceiling` under a set of requirements.
pub(super) fn any_costs_less(
    setup: &PackingSetup<'_>,
    tables: &[TypeTable<'_>],
    at: (usize, SetId),
    (types, ceiling): (&[u64], HourlyRate),
    orders: &mut PriceOrders,
) -> bool {
    by_price(setup, tables, at, orders).has_cheaper(types, ceiling)
}

/// What v0.16 ordered types by, also for Spot.
fn on_demand_price(instance_type: &InstanceType) -> Option<HourlyRate> {
    let on_demand = instance_type.offerings.iter().filter(|offering| offering.capacity_type == well_known::ON_DEMAND);
    on_demand.map(|demand| demand.price).min()
}

/// The pool's labels, and one value for each label that only the claim's requirements name. Where the release does not know zones' ids they
/// are such a label: a node has the one that was asked for, wherever it is.
///
/// Deviation: upstream draws label values at random, also for labels that are only excluded. Excluded labels get no
/// value here.
pub(super) fn labels_of(setup: &PackingSetup<'_>, pool: usize, requirements: &Requirements) -> Labels {
    let mut labels = pool_labels(setup, pool);
    let labels_zone_ids = setup.behaviour().labels_zone_ids;
    let of_auto_mode = labels.get(well_known::EKS_COMPUTE_TYPE) == Some(well_known::AUTO);
    for requirement in requirements {
        let of_types = |key| match key {
            well_known::ZONE_ID => labels_zone_ids,
            _ => is_well_known(key) || (of_auto_mode && is_well_known_in_auto_mode(key)),
        };
        let custom = !of_types(requirement.key) && !is_restricted(requirement.key);
        if custom
            && requirement.operator() != Operator::NotIn
            && labels.get(requirement.key).is_none()
            && let Some(value) = requirement.any()
        {
            labels.set(requirement.key, value);
        }
    }
    labels
}

/// Leaves out types that none of the reservations of a pinned claim is for. While the claim was being filled any way to buy a
/// type would do; now that only its reservations will, there is none to buy those.
fn without_unoffered(planned: PlannedClaim) -> PlannedClaim {
    let left: Arc<[PricedType]> =
        planned.instance_types.iter().filter(|instance_type| instance_type.price.is_some()).copied().collect();
    let gone = planned.instance_types.len() - left.len();
    let instance_types_before_cut = planned.instance_types_before_cut - gone;
    PlannedClaim { instance_types: left, instance_types_before_cut, ..planned }
}

fn cut_breaks_min_values(pass: &Pass<'_, '_>, planned: &PlannedClaim) -> bool {
    if planned.instance_types.len() == planned.instance_types_before_cut || !planned.requirements.has_min_values() {
        return false;
    }
    let all = pass.engine.setup.pools[planned.pool].instance_types;
    let kept = planned.instance_types.iter().map(|instance_type| instance_type.index as usize);
    !min_values::shortfalls(&planned.requirements, all, kept).is_empty()
}

#[cfg(test)]
mod tests {
    use super::{ByPrice, Ranked, bits};
    use nodecast_model::domain::HourlyRate;

    #[test]
    fn cheaper_type_check_matches_full_scan() {
        for types in [0, 1, 31, 32, 35, 64, 100] {
            // Prices come in pairs, and the last few types have none.
            let price = |rank: u32| (rank + 3 < types).then(|| HourlyRate::from_nanos(i64::from(rank / 2)));
            let place = |rank: u32| (rank * 3 + 1) % types;
            let all: Vec<Ranked> = (0..types).map(|rank| Ranked::new(price(rank), place(rank), place(rank))).collect();
            let mut by_price = ByPrice::new(all.clone());
            for ceiling in (0..60).map(HourlyRate::from_nanos) {
                for one in 0..types as usize {
                    let mut set = bits::empty(types as usize);
                    bits::insert(&mut set, one);
                    let cheaper = |item: &Ranked| item.price().is_some_and(|price| price < ceiling);
                    let expected = all.iter().any(|item| item.index() == one && cheaper(item));
                    assert_eq!(by_price.has_cheaper(&set, ceiling), expected, "{one} of {types} below {ceiling:?}");
                }
            }
        }
    }

    #[test]
    fn repriced_types_match_full_sort() {
        let price = |seed: u32| (!seed.is_multiple_of(7)).then(|| HourlyRate::from_nanos(i64::from(seed % 11)));
        let mut kept = ByPrice::new((0..90).map(|index| Ranked::new(price(index), index, index)).collect());
        let mut seed = 1_u32;
        for round in 0..200 {
            let mut changed: Vec<Ranked> =
                kept.all.iter().copied().filter(|item| (item.index() + round) % 9 < 2).collect();
            for item in &mut changed {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                if !seed.is_multiple_of(3) {
                    *item = Ranked::new(price(seed >> 16), item.index() as u32, item.index() as u32);
                }
            }
            changed.sort_by_key(|item| item.index());
            let mut expected = kept.all.clone();
            for item in &mut expected {
                *item = *changed.iter().find(|new| new.index() == item.index()).unwrap_or(item);
            }
            expected.sort();
            kept.renew(changed);
            assert_eq!(kept.all, expected, "round {round}");
        }
    }
}
