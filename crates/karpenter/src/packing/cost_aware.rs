//! The cost-aware packer: it looks for the cheapest nodes for all waiting pods together, and then fills these nodes under
//! the same rules as Karpenter.
//!
//! Pods first go on existing nodes, as ever. The others become items of [`bin_packing`], whose plan says which nodes to open and
//! how many pods of each kind go on each. Every pod is then put on its node by the check that Karpenter's own pass uses, so
//! that taints, affinity, spreads, limits and `minValues` hold here as there; what the plan did not foresee, and every pod
//! that it cannot express, goes the usual way through the queue.
//!
//! Deviation: no release has the cost-aware packer. It is used only on request, and shows the possible saving of a
//! better packer. It minimises the cost of each batch of waiting pods, not of the run. Its nodes are fuller and
//! smaller, so the next pods need further nodes, and consolidation decides by Karpenter's own rules which of them
//! stay.

use std::collections::VecDeque;
use std::sync::Arc;

use super::bits;
use super::claim::{Candidate, Claim};
use super::errors::TopologyKind;
use super::input::PackingSetup;
use super::offers::{self, Ask, Origin, Way};
use super::pass::{Pass, Remaining};
use super::plan::{PackingPlan, PricedType};
use super::queue::sorted;
use super::requirement_table::{Combined, RequirementId, SetId, Undefined};
use crate::bin_packing::{self, Effort, PackedBin, Problem};
use crate::selection;

/// Plans after one another at most, each for what the limits of pools refused to the one before.
const PLANS_MAX: usize = 8;

/// Types of a claim of a cheaper plan at most: as many as Karpenter wants for a Spot node that replaces another.
const TYPES_KEPT: usize = 15;

/// The last plans of a packer: pods for which no node can be launched are planned for in every pass.
#[derive(Default)]
pub(super) struct PlanCache(VecDeque<CachedPlan>);

struct CachedPlan {
    problem: Problem,
    /// Steps that the search had, and those that it left.
    steps: (u64, u64),
    bins: Vec<PackedBin>,
}

impl PlanCache {
    /// The plan for a problem.
    fn plan(&mut self, problem: Problem, effort: &mut Effort<'_>) -> &[PackedBin] {
        // The same steps lead to the same plan, unless somebody else ends the search.
        let is_same = |plan: &CachedPlan| plan.steps.0 == effort.steps && plan.problem == problem;
        let position = self.0.iter().position(is_same).unwrap_or_else(|| {
            let before = effort.steps;
            let bins = bin_packing::plan(&problem, effort).bins;
            self.0.truncate(PLANS_MAX - 1);
            self.0.push_front(CachedPlan { problem, steps: (before, effort.steps), bins });
            0
        });
        let plan = &self.0[position];
        effort.steps = plan.steps.1;
        &plan.bins
    }
}

/// Pods of one class that the plan may place: all of them, or those that go to one domain of a spread.
struct Portion {
    class: usize,
    /// The requirement that allows only the domain.
    pinned: Option<RequirementId>,
    /// Pods of the class counted in the domain so far.
    counted: i64,
    pods: u32,
    /// Where they go: slot and number.
    places: VecDeque<(usize, u32)>,
}

/// A node of the plan.
struct Slot {
    origin: Origin,
    /// The domains of the spread pods that go there.
    pinned: Vec<RequirementId>,
    /// Its claim, once a pod has opened it.
    claim: Option<usize>,
    /// Whether the limits of its pool leave enough for every type that its claim may become.
    keeps_types: bool,
    /// Whether it could not be opened any more.
    is_refused: bool,
}

/// What the plan must know of a class.
struct Manner {
    most_per_node: u32,
    /// The group of a spread over domains.
    spread: Option<usize>,
}

impl Pass<'_, '_> {
    /// Places every pod that can be placed, on nodes that are cheap for all of them together.
    pub(super) fn solve_cheaply(&mut self, left_out: &[bool], effort: &mut Effort<'_>, cache: &mut PlanCache) {
        let mut queue = sorted(self.asked.pods, &self.classes);
        queue.retain(|&pod| !left_out.get(pod).is_some_and(|&item| item));
        queue.retain(|&pod| !self.goes_on_existing(pod));
        let mut waiting: Vec<VecDeque<usize>> = vec![VecDeque::new(); self.classes.list.len()];
        for &pod in &queue {
            waiting[self.classes.of_pod[pod]].push_back(pod);
        }
        for _ in 0..PLANS_MAX {
            if !self.follow_a_plan(&mut waiting, effort, cache) {
                break;
            }
        }
        self.list_claims();
        let mut is_left = vec![false; self.asked.pods.len()];
        for &pod in waiting.iter().flatten() {
            is_left[pod] = true;
        }
        self.solve_queue(queue.into_iter().filter(|&pod| is_left[pod]).collect());
    }

    /// Plans nodes for the pods that wait and fills them. Whether another plan may place more: a plan buys without regard to limits of
    /// pools, and what a limit then refused goes to other types or pools.
    fn follow_a_plan(
        &mut self,
        waiting: &mut [VecDeque<usize>],
        effort: &mut Effort<'_>,
        cache: &mut PlanCache,
    ) -> bool {
        let (mut portions, asks) = self.portions(waiting);
        if asks.is_empty() {
            return false;
        }
        let Self { engine, remaining, .. } = self;
        let offers = offers::state(engine.setup, engine.templates, remaining, engine.tables, engine.table, &asks);
        let bins = cache.plan(offers.problem, effort);
        let mut slots = slots(bins, &offers.item_of, &offers.origins, &mut portions);
        let keep_types = self.keep_types(&slots);
        for slot in &mut slots {
            slot.keeps_types = keep_types[slot.origin.template];
        }
        let number = |waiting: &[VecDeque<usize>]| waiting.iter().map(VecDeque::len).sum::<usize>();
        let before = number(waiting);
        self.follow(&mut portions, &mut slots, waiting);
        let after = number(waiting);
        slots.iter().any(|slot| slot.is_refused) && after > 0 && after < before
    }

    /// Of each template, whether its limits leave enough for all of its nodes of a plan if each became the largest type that is left.
    fn keep_types(&self, slots: &[Slot]) -> Vec<bool> {
        let is_enough = |(position, remaining): (usize, &Remaining)| {
            let nodes = slots.iter().filter(|slot| slot.origin.template == position).count() as i64;
            let types = self.engine.tables[self.engine.templates.list[position].table].types;
            remaining.limits.iter().all(|(name, left)| {
                let largest = bits::iter(&remaining.types).map(|index| types[index].capacity.get(name)).max();
                largest.unwrap_or(0).saturating_mul(nodes) <= left
            })
        };
        self.remaining.iter().enumerate().map(is_enough).collect()
    }

    fn goes_on_existing(&mut self, pod: usize) -> bool {
        let class = self.classes.of_pod[pod];
        if self.classes.list[class].variants[0].form.spec.resource_claims {
            return false;
        }
        let in_topology = self.concerned(class);
        self.add_to_existing(pod, class, 0, in_topology)
    }

    /// Begins an attempt with pods of a class in their first state; whether any topology group has a say.
    fn concerned(&mut self, class: usize) -> bool {
        self.engine.topology.attempt += 1;
        let this_class = &self.classes.list[class];
        let state = &this_class.variants[0];
        self.engine.topology.concerns(class, &state.owned, &state.form.spec, this_class.shape.namespace)
    }

    /// What the plan is asked to place, with every preference as a requirement; classes that it cannot express are left
    /// out.
    fn portions(&mut self, waiting: &[VecDeque<usize>]) -> (Vec<Portion>, Vec<Ask>) {
        let (mut portions, mut asks) = (Vec::new(), Vec::new());
        for (class, pods) in waiting.iter().enumerate().filter(|(_, pods)| !pods.is_empty()) {
            let Some(manner) = self.manner(class) else { continue };
            let number = u32::try_from(pods.len()).unwrap_or(u32::MAX);
            let spread = match manner.spread {
                None => vec![Portion { class, pinned: None, counted: 0, pods: number, places: VecDeque::new() }],
                Some(group) => self.spread_out(class, group, number),
            };
            for portion in spread.into_iter().filter(|portion| portion.pods > 0) {
                asks.push(self.ask(&portion, manner.most_per_node));
                portions.push(portion);
            }
        }
        (portions, asks)
    }

    /// How the plan may treat a class; `None` if only the queue can place it.
    fn manner(&mut self, class: usize) -> Option<Manner> {
        self.concerned(class);
        let (this_class, topology) = (&self.classes.list[class], &self.engine.topology);
        let state = &this_class.variants[0];
        let plain = this_class.shape.ports.is_empty()
            && this_class.volume_sets[..] == [SetId::EMPTY]
            && state.form.host.is_none()
            && !state.form.spec.resource_claims;
        if !plain || topology.is_repelled_from_domains(class) {
            return None;
        }
        let mut manner = Manner { most_per_node: u32::MAX, spread: None };
        for &group in &state.owned {
            let rule = topology.rule(class, group);
            match (rule.kind, rule.by_host) {
                (TopologyKind::AntiAffinity, true) if rule.selects_itself => manner.most_per_node = 1,
                (TopologyKind::AntiAffinity, true) => {}
                (TopologyKind::Spread, true) if rule.selects_itself => {
                    let most = u32::try_from(rule.max_skew.max(1)).unwrap_or(u32::MAX);
                    manner.most_per_node = manner.most_per_node.min(most);
                }
                (TopologyKind::Spread, true) => {}
                (TopologyKind::Spread, false) if rule.selects_itself && manner.spread.is_none() => {
                    manner.spread = Some(group);
                }
                _ => return None,
            }
        }
        Some(manner)
    }

    /// Pods of a spread by domain, each going where there are fewest.
    fn spread_out(&mut self, class: usize, group: usize, number: u32) -> Vec<Portion> {
        let set = self.classes.list[class].variants[0].form.set;
        let mut portions: Vec<Portion> = Vec::new();
        for (only, counted) in self.engine.topology.domain_counts(group) {
            let single = self.engine.table.single(only);
            if matches!(self.engine.table.combine(set, single, Undefined::WellKnownAllowed), Combined::Set(_)) {
                portions.push(Portion { class, pinned: Some(only), counted, pods: 0, places: VecDeque::new() });
            }
        }
        for _ in 0..number {
            let Some(least) = portions.iter_mut().min_by_key(|portion| portion.counted + i64::from(portion.pods))
            else {
                break;
            };
            least.pods += 1;
        }
        portions
    }

    fn ask(&self, portion: &Portion, most_per_node: u32) -> Ask {
        let class = &self.classes.list[portion.class];
        let form = &class.variants[0].form;
        let mut requirements = self.engine.table.set(form.set).clone();
        if let Some(only) = portion.pinned {
            requirements.add(self.engine.table.requirement(only).clone());
        }
        Ask {
            requests: class.shape.requests.clone(),
            count: portion.pods,
            most_per_node,
            ways: vec![Way { requirements, spec: Arc::clone(&form.spec) }],
        }
    }

    /// Puts the pods where the plan says. Pods of a spread go domain by domain, so that the skew holds at every step. A pod
    /// that its node does not take stays in `waiting`.
    fn follow(&mut self, portions: &mut [Portion], slots: &mut [Slot], waiting: &mut [VecDeque<usize>]) {
        let mut from = 0;
        while from < portions.len() {
            let class = portions[from].class;
            let to = from + portions[from..].iter().take_while(|portion| portion.class == class).count();
            let portion = &mut portions[from..to];
            while let Some(next) =
                portion.iter_mut().filter(|portion| !portion.places.is_empty()).min_by_key(|portion| portion.counted)
            {
                let (slot, number) = next.places[0];
                let Some(&pod) = waiting[class].front() else { break };
                if self.add_to_slot(pod, class, &mut slots[slot]) {
                    waiting[class].pop_front();
                    next.counted += 1;
                    next.places[0].1 -= 1;
                    if number == 1 {
                        next.places.pop_front();
                    }
                } else {
                    // Another pod of the class would be refused as well.
                    next.places.pop_front();
                }
            }
            from = to;
        }
    }

    fn add_to_slot(&mut self, pod: usize, class: usize, slot: &mut Slot) -> bool {
        let in_topology = self.concerned(class);
        let Some(position) = slot.claim else { return self.open_slot(pod, class, slot, in_topology) };
        let claim = &mut self.claims[position];
        let state = &mut self.classes.list[class].variants[0];
        let tolerates = state.tolerates(self.engine.taints[claim.template], self.engine.topology.known_rules());
        let candidate = Candidate { class: &self.classes.list[class], class_index: class, variant: 0, in_topology };
        let Ok(fit) = self.engine.can_add(claim, candidate, tolerates, false) else { return false };
        self.engine.add(claim, pod, candidate, fit);
        true
    }

    fn open_slot(&mut self, pod: usize, class: usize, slot: &mut Slot, in_topology: bool) -> bool {
        let template = slot.origin.template;
        let Some(mut claim) = self.claim_of_slot(slot) else {
            slot.is_refused = true;
            return false;
        };
        let state = &mut self.classes.list[class].variants[0];
        let tolerates = state.tolerates(self.engine.taints[template], self.engine.topology.known_rules());
        let candidate = Candidate { class: &self.classes.list[class], class_index: class, variant: 0, in_topology };
        let lower = self.engine.lowers_min_values();
        let Ok(fit) = self.engine.can_add(&claim, candidate, tolerates, lower) else { return false };
        self.engine.add(&mut claim, pod, candidate, fit);
        self.charge_limits(template, &claim.types);
        slot.claim = Some(self.claims.len());
        self.claims.push(claim);
        true
    }

    /// A claim without pods for a node of the plan, in the domains that its pods go to. A pool's limits are charged with the
    /// largest type that a claim may become, so near its limits a claim is for types that are no larger than the planned one.
    fn claim_of_slot(&mut self, slot: &Slot) -> Option<Claim> {
        let remaining = &self.remaining[slot.origin.template];
        let planned = slot.origin.instance_type;
        if !remaining.is_open() || !bits::contains(&remaining.types, planned) {
            return None;
        }
        let mut types = remaining.types.clone();
        if !slot.keeps_types {
            let all = self.engine.tables[self.engine.templates.list[slot.origin.template].table].types;
            let capacity = |index: usize, name| all[index].capacity.get(name);
            let is_larger =
                |index: usize| remaining.limits.iter().any(|(name, _)| capacity(index, name) > capacity(planned, name));
            bits::iter(&remaining.types)
                .filter(|&index| is_larger(index))
                .for_each(|index| bits::remove(&mut types, index));
        }
        let host = self.asked.nodes + self.claims.len();
        let from = &self.engine.templates.list[slot.origin.template];
        let mut claim = Claim::new(slot.origin.template, from, host, types);
        for &only in &slot.pinned {
            let single = self.engine.table.single(only);
            match self.engine.table.combine(claim.set, single, Undefined::WellKnownAllowed) {
                Combined::Set(set) => claim.set = set,
                Combined::Undefined | Combined::Contradiction => return None,
            }
        }
        Some(claim)
    }
}

/// Cuts the types of each claim to the cheapest, as Karpenter does where it replaces a Spot node by another: of all types EC2
/// chooses deep pools, whose nodes are often larger and more expensive than the planned ones. A claim with `minValues` keeps all.
pub(super) fn keep_cheapest(setup: &PackingSetup<'_>, plan: &mut PackingPlan) {
    for claim in plan.claims.iter_mut().filter(|claim| !claim.requirements.has_min_values()) {
        let types = setup.pools[claim.pool].instance_types;
        let is_ordinary = |kind: &&PricedType| !selection::is_last_resort(setup.karpenter, &types[kind.index as usize]);
        let ordinary = claim.instance_types.iter().filter(is_ordinary).take(TYPES_KEPT).copied();
        let mut kept: Vec<PricedType> = ordinary.collect();
        if kept.is_empty() {
            kept.extend(claim.instance_types.iter().take(TYPES_KEPT));
        }
        claim.instance_types = kept.into();
    }
}

/// Whether the launches of a plan cost less than those of another and it places every pod that the other places.
pub(super) fn is_better(setup: &PackingSetup<'_>, plan: &PackingPlan, other: &PackingPlan) -> bool {
    let placed_by_other = |pod: usize| other.unschedulable.iter().all(|other| other.pod != pod);
    let lost = plan.unschedulable.iter().any(|plan| placed_by_other(plan.pod));
    match (plan.launch_cost(setup), other.launch_cost(setup)) {
        (Some(launch_cost), Some(others)) => !lost && launch_cost < others,
        _ => false,
    }
}

/// The nodes of a plan; each portion learns where its pods go.
fn slots(bins: &[PackedBin], item_of: &[usize], origins: &[Origin], portions: &mut [Portion]) -> Vec<Slot> {
    let mut left: Vec<u32> = portions.iter().map(|portion| portion.pods).collect();
    let mut of_item: Vec<VecDeque<usize>> = vec![VecDeque::new(); item_of.iter().max().map_or(0, |most| most + 1)];
    for (portion, &item) in item_of.iter().enumerate() {
        of_item[item].push_back(portion);
    }
    let mut slots: Vec<Slot> = Vec::with_capacity(bins.len());
    for bin in bins {
        let origin = origins[bin.bin];
        let mut slot = Slot { origin, pinned: Vec::new(), claim: None, keeps_types: true, is_refused: false };
        for &(item, number) in &bin.content {
            let mut number = number;
            while let Some(&portion) = of_item[item as usize].front().filter(|_| number > 0) {
                let taken = number.min(left[portion]);
                number -= taken;
                left[portion] -= taken;
                if taken > 0 {
                    portions[portion].places.push_back((slots.len(), taken));
                    let pinned = portions[portion].pinned.filter(|only| !slot.pinned.contains(only));
                    slot.pinned.extend(pinned);
                }
                if left[portion] == 0 {
                    of_item[item as usize].pop_front();
                }
            }
        }
        slots.push(slot);
    }
    slots
}
