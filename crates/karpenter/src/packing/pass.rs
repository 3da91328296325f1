//! One scheduling pass: the queue, and the three stages through which each pod goes.
//!
//! Source: Karpenter core v1.13 `pkg/controllers/provisioning/scheduling/scheduler.go` (`Solve`, `add`).

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use smallvec::SmallVec;

use super::bits::{self, Bits};
use super::claim::{Candidate, Claim, Engine, Fit, Unfit};
use super::classes::{Classes, SortContext};
use super::errors::{PoolRefusal, Refusal, Unschedulable};
use super::existing::Visitor;
use super::existing_index::ExistingNodes;
use super::go_sort::ClaimOrder;
use super::input::PendingPod;
use super::plan::{GivenUp, NodeVerdict};
use super::queue::{place_in_queue, sorted};
use super::requirement_table::{Combined, SetId, Undefined};
use super::resource_table::ResourceTable;
use super::shapes::Shapes;
use super::templates::Template;
use super::volumes::PodVolumes;
use super::work::PassWork;
use crate::controller_time;
use crate::instance_types::InstanceType;
use nodecast_model::domain::{ResourceName, Resources, SimDuration};

/// The state of a pass.
pub(super) struct Pass<'p, 'a> {
    pub(super) engine: Engine<'p, 'a>,
    pub(super) asked: PassInput<'p>,
    pub(super) classes: Classes,
    pub(super) shapes: &'p mut Shapes,
    pub(super) existing: &'p mut ExistingNodes,
    pub(super) claims: Vec<Claim>,
    /// Open claims in the order that the last sort left.
    order: ClaimOrder,
    /// Grows whenever an open claim loses instance types.
    types_stamp: u64,
    /// What the limits of each template's pool leave, and the types within that.
    pub(super) remaining: Vec<Remaining>,
    /// Why each pod that has no place has none.
    pub(super) failures: Vec<Option<Unschedulable>>,
    /// What existing nodes said to the watched pod.
    pub(super) verdicts: Vec<NodeVerdict>,
    /// Why the pass was given up.
    pub(super) given_up: Option<GivenUp>,
    /// Which preferences each pod has given up, as the number of its form, where it keeps them (up to v1.3).
    kept_forms: Vec<usize>,
    /// Pods that it did not come to in time.
    pub(super) unreached: Vec<usize>,
    /// What was done so far.
    pub(super) work: PassWork,
}

/// What a pass is about.
pub(super) struct PassInput<'p> {
    /// How many nodes the cluster has; claims are numbered after them.
    pub(super) nodes: usize,
    /// The pods to place.
    pub(super) pods: &'p [PendingPod<'p>],
    /// Their volumes; empty where no pod has any.
    pub(super) volumes: Vec<Option<PodVolumes>>,
    /// Which pods run on nodes that are to be removed; empty where nobody asks.
    pub(super) running: Vec<bool>,
    /// The nodes that have not settled, which do not take these pods; empty if there are none.
    pub(super) unsettled: Vec<bool>,
    /// The nodes to which one of these pods must not go, or the pass is given up; empty if it is to be finished.
    pub(super) unready: Vec<bool>,
    /// How long the pass may take, on the processor that was measured.
    pub(super) time: Option<SimDuration>,
    /// How many claims are opened before the pass is given up.
    pub(super) most_claims: usize,
    /// Whether several claims need not be described.
    pub(super) only_one: bool,
    /// The pod whose refusals by existing nodes are kept.
    pub(super) watched: Option<usize>,
    /// The names of resources, for these.
    pub(super) resources: &'p ResourceTable,
}

impl PassInput<'_> {
    fn volumes_of(&self, pod: usize) -> Option<&PodVolumes> {
        self.volumes.get(pod)?.as_ref()
    }
}

/// What a pool's limits leave.
pub(super) struct Remaining {
    /// Only resources that the limits name.
    pub(super) limits: Resources,
    /// Types of the template that are not larger than that.
    pub(super) types: Bits,
}

impl Remaining {
    /// What these limits leave of the types of a template.
    pub(super) fn new(limits: Resources, template: &Template, types: &[InstanceType]) -> Self {
        let mut remaining = Self { limits, types: Bits::default() };
        remaining.limit_types(template, types);
        remaining
    }

    /// Finds the types that the limits leave: those whose capacity is nowhere larger than what is left.
    fn limit_types(&mut self, template: &Template, types: &[InstanceType]) {
        if self.limits.is_empty() {
            self.types = template.types.clone();
            return;
        }
        self.types = bits::empty(types.len());
        for index in bits::iter(&template.types) {
            if self.limits.iter().all(|(name, left)| types[index].capacity.get(name) <= left) {
                bits::insert(&mut self.types, index);
            }
        }
    }

    /// Whether a claim can be opened.
    pub(super) fn is_open(&self) -> bool {
        self.limits.find(ResourceName::NODES) != Some(0) && bits::any(&self.types)
    }
}

impl<'p, 'a> Pass<'p, 'a> {
    /// A pass before its first pod. `limits` is what the nodes leave of the limits of each template's pool.
    pub(super) fn new(
        engine: Engine<'p, 'a>,
        asked: PassInput<'p>,
        classes: Classes,
        shapes: &'p mut Shapes,
        existing: &'p mut ExistingNodes,
        limits: Vec<Resources>,
    ) -> Self {
        let failures = vec![None; asked.pods.len()];
        let kept_forms = vec![0; if engine.setup.behaviour().relaxes_at_once { 0 } else { asked.pods.len() }];
        let existing_nodes = existing.staying_before(existing.len());
        let mut pass = Self {
            engine,
            asked,
            classes,
            shapes,
            existing,
            claims: Vec::new(),
            order: ClaimOrder::default(),
            types_stamp: 1,
            remaining: Vec::with_capacity(limits.len()),
            failures,
            verdicts: Vec::new(),
            given_up: None,
            kept_forms,
            unreached: Vec::new(),
            work: PassWork { cluster: existing_nodes, ..PassWork::default() },
        };
        for (template, limits) in pass.engine.templates.list.iter().zip(limits) {
            pass.remaining.push(Remaining::new(limits, template, pass.engine.tables[template.table].types));
        }
        pass
    }

    /// Places every pod of the situation that can be placed in time.
    pub(super) fn solve(&mut self, left_out: &[bool]) {
        if !self.asked.unready.is_empty() && self.engine.setup.behaviour().relaxes_at_once {
            return self.solve_hastily();
        }
        let mut queue: VecDeque<usize> = sorted(self.asked.pods, &self.classes).into();
        queue.retain(|&pod| !left_out.get(pod).is_some_and(|&item| item));
        self.solve_queue(queue);
    }

    /// The same where every pod is sure of a place and most passes end with one of the first: the queue is put in order only as
    /// far as it is worked off.
    fn solve_hastily(&mut self) {
        let place = |pod| Reverse((place_in_queue(self.asked.pods, &self.classes, pod), pod));
        let mut queue: BinaryHeap<_> = (0..self.asked.pods.len()).map(place).collect();
        while let Some(Reverse((_, pod))) = queue.pop() {
            self.failures[pod] = self.place(pod).err();
            if self.given_up.is_some() {
                break;
            }
        }
    }

    /// Places the pods of a queue, again and again as long as that places one.
    pub(super) fn solve_queue(&mut self, mut queue: VecDeque<usize>) {
        // The length of the queue after a pod was put back: meeting the same length again means that a whole round
        // went by without progress.
        let mut put_back_at = vec![0; self.asked.pods.len()];
        while let Some(&pod) = queue.front() {
            if put_back_at[pod] == queue.len() || self.claims.len() > self.asked.most_claims {
                break;
            }
            if self.asked.time.is_some_and(|time| controller_time::solve(&self.work) >= time) {
                self.unreached = queue.into_iter().filter(|&pod| self.failures[pod].is_none()).collect();
                break;
            }
            queue.pop_front();
            let before = self.kept_forms.get(pod).copied();
            match self.place(pod) {
                Ok(()) => self.failures[pod] = None,
                Err(reason) => {
                    self.failures[pod] = Some(reason);
                    queue.push_back(pod);
                    put_back_at[pod] = queue.len();
                    if self.kept_forms.get(pod).copied() != before {
                        // It asks for less from now on: others may have been refused for its sake.
                        put_back_at.fill(0);
                    }
                }
            }
            if self.given_up.is_some() {
                break;
            }
        }
    }

    /// Tries a pod with all its preferences, then with fewer and fewer; up to v1.3 with those that it has left, of which it loses one
    /// by a failure.
    fn place(&mut self, pod: usize) -> Result<(), Unschedulable> {
        let class = self.classes.of_pod[pod];
        let behaviour = self.engine.setup.behaviour();
        let mut variant = self.kept_forms.get(pod).copied().unwrap_or(0);
        loop {
            let claims_devices = self.classes.list[class].variants[variant].form.spec.resource_claims;
            if claims_devices && behaviour.refuses_device_claims {
                return Err(Unschedulable::ResourceClaims);
            }
            let Err(reason) = self.add(pod, class, variant) else { return Ok(()) };
            if let Unschedulable::Refused(refusals) = &reason
                && refusals.iter().any(|refusal| matches!(refusal.reason, Refusal::Reserved(_)))
            {
                return Err(reason);
            }
            let mut tools = SortContext {
                setup: self.engine.setup,
                spanning: &self.engine.templates.spanning,
                prefer_no_schedule: self.engine.templates.prefer_no_schedule,
                shapes: self.shapes,
                table: self.engine.table,
            };
            let relaxed = self.classes.relax(class, variant, &mut tools, &mut self.engine.topology);
            match relaxed {
                Some(next) => {
                    variant = next;
                    self.work.relaxed += 1;
                    if !behaviour.relaxes_at_once {
                        self.kept_forms[pod] = next;
                        return Err(reason);
                    }
                }
                None => return Err(reason),
            }
        }
    }

    /// One attempt: existing nodes, then open claims, then a new claim.
    fn add(&mut self, pod: usize, class: usize, variant: usize) -> Result<(), Unschedulable> {
        self.engine.topology.attempt += 1;
        self.work.attempts += 1;
        let this_class = &self.classes.list[class];
        let state = &this_class.variants[variant];
        let in_topology =
            self.engine.topology.concerns(class, &state.owned, &state.form.spec, this_class.shape.namespace);
        if self.add_to_existing(pod, class, variant, in_topology)
            || self.add_to_open_claim(pod, class, variant, in_topology)
        {
            return Ok(());
        }
        self.add_to_new_claim(pod, class, variant, in_topology)
    }

    pub(super) fn add_to_existing(&mut self, pod: usize, class: usize, variant: usize, in_topology: bool) -> bool {
        if self.asked.watched == Some(pod) {
            self.watch(pod, class, variant, in_topology);
        }
        let running = self.asked.running.get(pod).is_some_and(|&item| item);
        let kept_off = running && !self.asked.unsettled.is_empty();
        // What has refused such a pod for good, or has no room, does so for the rest of the pass.
        let mut from = if kept_off { 0 } else { self.classes.list[class].variants[variant].first_open_node };
        let mut all_for_good = !kept_off;
        // A spread that refuses one node of a zone refuses the others with the same labels: nothing is placed before the search ends. A pod
        // whose volumes may be at several places could have been refused at each for another reason.
        let mut refused: SmallVec<[SetId; 16]> = SmallVec::new();
        let one_place = self.classes.list[class].volume_sets.len() == 1;
        let shape = Arc::clone(&self.classes.list[class].shape);
        while let Some(position) = self.existing.next_for(shape.number, from, &shape.amounts) {
            from = position + 1;
            let state = &mut self.classes.list[class].variants[variant];
            if all_for_good {
                state.first_open_node = position;
            }
            if state.lost_nodes.contains(position) {
                continue;
            }
            let node = self.existing.get(position);
            if kept_off && self.asked.unsettled[node.node] {
                continue;
            }
            if refused.contains(&node.labels()) {
                all_for_good = false;
                continue;
            }
            let tolerates = state.tolerates(node.taints(), self.engine.topology.known_rules());
            let visitor = Visitor {
                class: &self.classes.list[class],
                variant,
                class_index: class,
                volumes: self.asked.volumes_of(pod),
                in_topology,
            };
            match node.can_add(&visitor, tolerates, self.engine.table, &mut self.engine.topology) {
                Ok(set) => {
                    let (table, topology) = (&mut *self.engine.table, &mut self.engine.topology);
                    let node = node.node;
                    self.existing.change(position, |node| node.add(pod, set, &visitor, table, topology));
                    self.work.nodes += self.existing.staying_before(position + 1);
                    if running && self.asked.unready.get(node).is_some_and(|&unready| unready) {
                        self.given_up = Some(GivenUp::Waits);
                    }
                    return true;
                }
                Err(unsuitable) if unsuitable.for_good => {
                    self.classes.list[class].variants[variant].lost_nodes.insert(position);
                }
                Err(unsuitable) => {
                    all_for_good = false;
                    if one_place && unsuitable.is_by_labels() {
                        refused.push(node.labels());
                    }
                }
            }
        }
        if all_for_good {
            self.classes.list[class].variants[variant].first_open_node = self.existing.len();
        }
        self.work.nodes += self.existing.staying_before(self.existing.len());
        false
    }

    /// Asks every node up to the first that takes the pod, as the search below does but without its shortcuts, and keeps
    /// the answers; those of an earlier attempt are dropped.
    fn watch(&mut self, pod: usize, class: usize, variant: usize, in_topology: bool) {
        self.verdicts.clear();
        for position in 0..self.existing.len() {
            let node = self.existing.get(position);
            let rules = self.engine.topology.known_rules();
            let tolerates = self.classes.list[class].variants[variant].tolerates(node.taints(), rules);
            let visitor = Visitor {
                class: &self.classes.list[class],
                variant,
                class_index: class,
                volumes: self.asked.volumes_of(pod),
                in_topology,
            };
            let (table, topology) = (&mut *self.engine.table, &mut self.engine.topology);
            let answer = node.can_add(&visitor, tolerates, table, topology);
            let refusal = answer.err().map(|why| node.explain(why, &visitor, table, topology, self.asked.resources));
            let taken = refusal.is_none();
            self.verdicts.push(NodeVerdict { node: node.node, refusal });
            if taken {
                break;
            }
        }
    }

    /// The claim with the fewest pods that can take the pod. The one list of claims keeps the order that each sort
    /// leaves, and the sort runs before every attempt that comes this far.
    fn add_to_open_claim(&mut self, pod: usize, class: usize, variant: usize, in_topology: bool) -> bool {
        self.order.sort();
        let groups = self.engine.topology.group_count();
        if self.all_claims_are_full(class, variant) {
            let claims = self.claims.len() as u64;
            self.work.claims += claims;
            self.work.groups += claims * groups;
            self.work.types += self.full_types(class, variant);
            return false;
        }
        for place in 0..self.order.len() {
            let position = self.order.claim(place);
            let claim = &mut self.claims[position];
            let this_class = &mut self.classes.list[class];
            let (amounts, state) = (&this_class.shape.amounts, &mut this_class.variants[variant]);
            self.work.claims += 1;
            self.work.groups += groups;
            if state.lost_claims.contains(position) {
                self.work.types += if state.full_claims.contains(position) { claim.type_count } else { 0 };
                continue;
            }
            let tolerates = state.tolerates(self.engine.taints[claim.template], self.engine.topology.known_rules());
            if claim.too_full(amounts) {
                state.lost_claims.insert(position);
                state.open.stamp = 0;
                let combined = self.engine.table.combine(claim.set, state.form.set, Undefined::WellKnownAllowed);
                if tolerates && matches!(combined, Combined::Set(_)) {
                    state.full_claims.insert(position);
                    self.work.types += claim.type_count;
                }
                continue;
            }
            let candidate = Candidate { class: &self.classes.list[class], class_index: class, variant, in_topology };
            match self.engine.can_add(claim, candidate, tolerates, false) {
                Ok(fit) => {
                    self.work.types += claim.type_count;
                    let before = claim.type_count;
                    self.engine.add(claim, pod, candidate, fit);
                    self.types_stamp += u64::from(claim.type_count != before);
                    self.order.grow(place, claim.pods.len());
                    return true;
                }
                Err(unfit) => {
                    self.work.types += if unfit.is_of_types() { claim.type_count } else { 0 };
                    let state = &mut self.classes.list[class].variants[variant];
                    if unfit.for_good() {
                        state.lost_claims.insert(position);
                        state.open.stamp = 0;
                        if unfit.is_of_types() {
                            state.full_claims.insert(position);
                        }
                    }
                }
            }
        }
        false
    }

    /// Whether every open claim has refused such pods for good or is too full for one more; if so, all of them are marked as a walk over
    /// them would mark them.
    ///
    /// Where pods fill a node each, the walk would meet as many full claims as pods came before: two thousand pods made two million
    /// steps in each pass. Nothing is marked unless all are full, because a walk ends at the first claim that takes the pod, and what a
    /// full claim counts for in the pass's work depends on its requirements when it is first met.
    fn all_claims_are_full(&mut self, class: usize, variant: usize) -> bool {
        let class = &mut self.classes.list[class];
        let (amounts, state) = (&class.shape.amounts, &mut class.variants[variant]);
        state.open.list.extend(state.open.seen as u32..self.claims.len() as u32);
        state.open.seen = self.claims.len();
        let mut next = 0;
        while let Some(&position) = state.open.list.get(next) {
            if state.lost_claims.contains(position as usize) {
                state.open.list.swap_remove(next);
            } else if self.claims[position as usize].too_full(amounts) {
                next += 1;
            } else {
                // Asked first the next time.
                state.open.list.swap(0, next);
                return false;
            }
        }
        for position in std::mem::take(&mut state.open.list) {
            let claim = &self.claims[position as usize];
            state.lost_claims.insert(position as usize);
            let tolerates = state.tolerates(self.engine.taints[claim.template], self.engine.topology.known_rules());
            let combined = self.engine.table.combine(claim.set, state.form.set, Undefined::WellKnownAllowed);
            if tolerates && matches!(combined, Combined::Set(_)) {
                state.full_claims.insert(position as usize);
                state.open.full_types += claim.type_count;
            }
        }
        true
    }

    /// The instance types of the claims that are full for such pods, all together.
    fn full_types(&mut self, class: usize, variant: usize) -> u64 {
        let state = &mut self.classes.list[class].variants[variant];
        if state.open.stamp != self.types_stamp {
            let full = self.claims.iter().enumerate().filter(|(position, _)| state.full_claims.contains(*position));
            state.open.full_types = full.map(|(_, claim)| claim.type_count).sum();
            state.open.stamp = self.types_stamp;
        }
        state.open.full_types
    }

    fn add_to_new_claim(
        &mut self,
        pod: usize,
        class: usize,
        variant: usize,
        in_topology: bool,
    ) -> Result<(), Unschedulable> {
        if !self.engine.templates.any_dynamic {
            return Err(Unschedulable::NoDynamicPools);
        }
        if self.engine.templates.list.is_empty() {
            return Err(Unschedulable::PoolsFilteredEverything);
        }
        let mut refusals = Vec::new();
        for template in 0..self.engine.templates.list.len() {
            let Err(reason) = self.open_claim(pod, class, variant, template, in_topology) else { return Ok(()) };
            let pool = self.engine.templates.list[template].pool;
            let node_pool = self.engine.setup.pools[pool].pool.name;
            // A pool of lower weight must not be used while a reservation of this one may come free.
            let stop = matches!(reason, Refusal::Reserved(_));
            refusals.push(PoolRefusal { node_pool, reason });
            if stop {
                break;
            }
        }
        Err(Unschedulable::Refused(refusals))
    }

    fn open_claim(
        &mut self,
        pod: usize,
        class: usize,
        variant: usize,
        template: usize,
        in_topology: bool,
    ) -> Result<(), Refusal> {
        let remaining = &self.remaining[template];
        if remaining.limits.find(ResourceName::NODES) == Some(0) {
            return Err(Refusal::NodesLimit);
        }
        if !bits::any(&remaining.types) {
            return Err(Refusal::Limits);
        }
        let host = self.asked.nodes + self.claims.len();
        let from = &self.engine.templates.list[template];
        let mut claim = Claim::new(template, from, host, remaining.types.clone());
        let state = &mut self.classes.list[class].variants[variant];
        let tolerates = state.tolerates(self.engine.taints[template], self.engine.topology.known_rules());
        let candidate = Candidate { class: &self.classes.list[class], class_index: class, variant, in_topology };
        let lower = self.engine.lowers_min_values();
        let offered = claim.type_count;
        self.work.types += offered;
        let fit: Result<Fit, Unfit> = self.engine.can_add(&claim, candidate, tolerates, lower);
        match fit {
            Err(unfit) => Err(self.engine.explain(unfit, &claim, candidate)),
            Ok(fit) => {
                self.engine.add(&mut claim, pod, candidate, fit);
                self.charge_limits(template, &claim.types);
                self.work.opened += 1;
                self.work.new_types += offered;
                self.order.add(self.claims.len());
                self.claims.push(claim);
                Ok(())
            }
        }
    }

    /// Makes the list of open claims anew after claims were filled past it.
    pub(super) fn list_claims(&mut self) {
        self.order = ClaimOrder::new(self.claims.iter().map(|claim| claim.pods.len()));
    }

    /// Takes the largest type that the claim may become out of the limits; `nodes` is no capacity and stays.
    pub(super) fn charge_limits(&mut self, template: usize, types: &[u64]) {
        let remaining = &mut self.remaining[template];
        if remaining.limits.is_empty() {
            return;
        }
        let template = &self.engine.templates.list[template];
        let all = self.engine.tables[template.table].types;
        let names: Vec<ResourceName> = remaining.limits.iter().map(|(name, _)| name).collect();
        for name in names {
            let largest = bits::iter(types).map(|index| all[index].capacity.get(name)).max().unwrap_or(0);
            remaining.limits.set(name, remaining.limits.get(name).saturating_sub(largest));
        }
        remaining.limit_types(template, all);
    }
}
