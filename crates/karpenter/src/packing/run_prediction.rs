//! What a question to a cluster comes to, without packing it: for those who only want to know whether consolidation is worth a
//! closer look, which it mostly is not.
//!
//! It is known where pods go that ask for nothing but room and are sure of a place: to the first existing node with room, or to a
//! new one. Everything else is left to a pass.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, Weak};

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::Packer;
use super::bits::Bits;
use super::cluster::ClusterView;
use super::existing_index::ExistingNodes;
use super::finish;
use super::plan::GivenUp;
use super::queue::{QueuePlace, QueuedPods};
use super::resource_table;
use super::shapes::Shapes;
use super::topology::{Rules, TaintsId};
use super::type_table::TypeQuery;
use nodecast_model::domain::taints::{Taint, first_untolerated};
use nodecast_model::domain::{HourlyRate, PodSpec, Symbol};

/// A question like [`WhatIf`](super::WhatIf), of whose pods no more is told than their places in the queue.
#[derive(Clone, Copy, Debug)]
pub struct Outline<'q> {
    /// Nodes that are taken away.
    pub without: &'q [usize],
    /// Nodes that do not take pods of these; see [`WhatIf::unsettled`](super::WhatIf::unsettled).
    pub unsettled: &'q [usize],
    /// Nodes to which no pod of these may go.
    pub unready: &'q [usize],
    /// What a single new node must cost less than to be of any use.
    pub ceiling: Option<HourlyRate>,
    /// The pods to place, in the order in which a pass would be given them, and whether they run on nodes that are taken away.
    pub pods: &'q [(&'q Arc<QueuedPods>, bool)],
}

/// Pods of one list that all ask for nothing but room: those that are equal in that, and come one after the other, together.
#[derive(Debug)]
pub(super) struct PodRuns {
    lanes: Vec<Lane>,
    runs: Vec<Run>,
}

/// What lists of pods come to, for as long as whoever made a list keeps it and what is known of shapes holds.
#[derive(Default)]
pub(super) struct PodRunCache {
    /// By address, which no other list can have while it is here.
    lists: FxHashMap<*const QueuedPods, (Weak<QueuedPods>, Option<Arc<PodRuns>>)>,
    /// So many are looked through for those that nobody keeps any more.
    full: usize,
}

impl PodRunCache {
    /// Nothing is known: what is known of shapes has changed.
    pub(super) fn clear(&mut self) {
        self.lists.clear();
    }

    /// What is known of a list: perhaps that not all of its pods go where there is room.
    fn runs(&self, pods: &Arc<QueuedPods>) -> Option<Option<Arc<PodRuns>>> {
        self.lists.get(&Arc::as_ptr(pods)).map(|(_, lanes)| lanes.clone())
    }

    fn keep(&mut self, pods: &Arc<QueuedPods>, lanes: Option<Arc<PodRuns>>) {
        /// Fewer are not worth a look.
        const FEW: usize = 64;
        if self.lists.len() >= self.full.max(FEW) {
            self.lists.retain(|_, (pods, _)| pods.strong_count() > 0);
            self.full = 2 * self.lists.len();
        }
        self.lists.insert(Arc::as_ptr(pods), (Arc::downgrade(pods), lanes));
    }
}

/// Pods that request the same and tolerate the same.
#[derive(Debug)]
struct Lane {
    amounts: Vec<i64>,
    spec: Arc<PodSpec>,
}

/// Pods of one lane that come one after the other.
#[derive(Debug)]
struct Run {
    lane: usize,
    /// Where it ends in the list.
    end: usize,
}

impl PodRuns {
    fn new(pods: &QueuedPods, shapes: &Shapes, numbers: &[usize]) -> Self {
        let mut lanes: Vec<Lane> = Vec::new();
        let matches = |(&number, (_, spec)): (&usize, &(_, Arc<PodSpec>))| {
            let amounts = &shapes.shape(number).amounts;
            let same = |lane: &Lane| lane.amounts == *amounts && lane.spec.tolerations == spec.tolerations;
            lanes.iter().position(same).unwrap_or_else(|| {
                lanes.push(Lane { amounts: amounts.clone(), spec: Arc::clone(spec) });
                lanes.len() - 1
            })
        };
        let of_class: Vec<usize> = numbers.iter().zip(&pods.classes).map(matches).collect();
        let mut runs: Vec<Run> = Vec::new();
        for (position, &(_, class)) in pods.pods.iter().enumerate() {
            match runs.last_mut().filter(|last| last.lane == of_class[class]) {
                Some(last) => last.end = position + 1,
                None => runs.push(Run { lane: of_class[class], end: position + 1 }),
            }
        }
        Self { lanes, runs }
    }
}

/// Pods of one list on their way to nodes.
struct PendingRuns<'q> {
    pods: &'q QueuedPods,
    lanes: Arc<PodRuns>,
    running: bool,
    /// How many have gone, and how many runs are over.
    gone: usize,
    runs: usize,
    /// By lane the position of the node before which none takes one more of it.
    from: SmallVec<[usize; 16]>,
}

/// The place in the queue, and for those with the same one that of their list.
type Head = (QueuePlace, usize);

impl PendingRuns<'_> {
    fn head(&self, list: usize) -> Option<Head> {
        self.pods.pods.get(self.gone).map(|pod| (pod.0, list))
    }

    /// The next pods that are equal, and come before `other`: their lane, and how many they are.
    fn next(&mut self, list: usize, other: Option<Head>) -> Option<(usize, i64)> {
        let run = self.lanes.runs.get(self.runs)?;
        let rest = &self.pods.pods[self.gone..run.end];
        let first = rest.iter().take_while(|pod| other.is_none_or(|other| (pod.0, list) < other));
        let pods = if other.is_none() { rest.len() } else { first.count() };
        self.gone += pods;
        self.runs += usize::from(pods == rest.len());
        (pods > 0).then_some((run.lane, pods as i64))
    }
}

impl Packer<'_> {
    /// Why a pass over this question would be given up; `None` if it would not be, or if only the pass itself can tell.
    /// `cluster` must come from this packer.
    pub fn foresee(&mut self, cluster: &ClusterView, outline: &Outline<'_>) -> Option<GivenUp> {
        if self.setup.behaviour().packs_by_group || cluster.topology.has_inverse() {
            return None;
        }
        let travellers = self.travellers(outline)?;
        let rooms = Rooms { existing: &cluster.existing, outline, changed: SmallVec::new() };
        match go(travellers, rooms, &self.rules) {
            Err(Waits) => Some(GivenUp::Waits),
            Ok(unplaced_requests) => {
                let ceiling = outline.ceiling?;
                (!unplaced_requests.is_empty() && self.is_dearer(&unplaced_requests, ceiling))
                    .then_some(GivenUp::Dearer)
            }
        }
    }

    /// The pods of the question; `None` if not all of them go where there is room.
    fn travellers<'q>(&mut self, outline: &Outline<'q>) -> Option<Vec<PendingRuns<'q>>> {
        let make = |&(pods, running): &(&'q Arc<QueuedPods>, bool)| {
            let lanes = self.lanes_of(pods)?;
            let from = SmallVec::from_elem(0, lanes.lanes.len());
            Some(PendingRuns { pods, lanes, running, gone: 0, runs: 0, from })
        };
        outline.pods.iter().filter(|(pods, _)| !pods.pods.is_empty()).map(make).collect()
    }

    /// The lanes of some pods; `None` if not all of them go where there is room.
    fn lanes_of(&mut self, pods: &Arc<QueuedPods>) -> Option<Arc<PodRuns>> {
        if let Some(known) = self.lanes.runs(pods) {
            return known;
        }
        let shape = |(namespace, spec): &(Symbol, Arc<PodSpec>)| {
            let shape = self.shape(*namespace, spec);
            self.goes_where_room_is(shape, spec).then_some(shape)
        };
        let numbers: Option<Vec<usize>> = pods.classes.iter().map(shape).collect();
        let lanes = numbers.map(|numbers| Arc::new(PodRuns::new(pods, &self.shapes, &numbers)));
        self.lanes.keep(pods, lanes.clone());
        lanes
    }

    /// Whether pods of the shape ask for nothing but room, and can always have a node of their own.
    fn goes_where_room_is(&mut self, shape: usize, spec: &PodSpec) -> bool {
        if let Some(known) = self.shapes.wants_but_room(shape) {
            return known;
        }
        let asks_no_more = self.shapes.asks_for_room_only(shape) && spec.volumes.is_empty() && !spec.resource_claims;
        let reserved = self.tables.iter().any(|table| table.has_reservations);
        let known = asks_no_more
            && !reserved
            && self.templates.any_dynamic
            && (0..self.templates.list.len()).any(|template| self.opens(template, shape, spec));
        self.shapes.remember_wants_but_room(shape, known);
        known
    }

    /// Whether a node of the template can always be opened for such a pod.
    fn opens(&mut self, template: usize, shape: usize, spec: &PodSpec) -> bool {
        let pool = self.setup.pools[self.templates.list[template].pool].pool;
        pool.limits.is_empty()
            && tolerates(spec, &pool.taints)
            && self.types_for(template, &Arc::clone(self.shapes.shape(shape)).amounts).is_some()
    }

    /// The types of a template without limits that have room for pods which request so much together, if there are any and the
    /// template sets no `minValues`.
    fn types_for(&mut self, template: usize, amounts: &[i64]) -> Option<Bits> {
        let template = &self.templates.list[template];
        let table = &mut self.tables[template.table];
        table.prepare_resources(&self.resources);
        table.prepare(template.set, &mut self.table);
        let (mut types, mut totals) = (template.types.clone(), template.daemon_amounts.clone());
        resource_table::add(&mut totals, amounts);
        let asked = TypeQuery { set: template.set, requests: &totals, met: &[] };
        let some = !self.table.has_min_values(template.set) && template.keep_fitting(table, &mut types, asked, &[]);
        some.then_some(types)
    }

    /// Whether these pods come to one new node, and the cheapest type left to it costs at least `ceiling`.
    fn is_dearer(&mut self, unplaced_requests: &[i64], ceiling: HourlyRate) -> bool {
        if self.templates.list.len() != 1 {
            return false;
        }
        let Some(types) = self.types_for(0, unplaced_requests) else { return false };
        let template = &self.templates.list[0];
        let (tables, at) = (&self.tables, (template.table, template.set));
        !finish::any_costs_less(&self.setup, tables, at, (&types, ceiling), &mut self.orders)
    }
}

/// A pod that runs would go to a node that is not ready.
struct Waits;

/// Puts the pods on existing nodes in the order of the queue; returns what those request together for which there is no room,
/// which is nothing if there is room for all.
fn go(mut travellers: Vec<PendingRuns<'_>>, mut rooms: Rooms<'_>, rules: &Rules) -> Result<Vec<i64>, Waits> {
    let mut unplaced_requests = Vec::new();
    let first = |(list, pending_runs): (usize, &PendingRuns<'_>)| pending_runs.head(list).map(Reverse);
    let mut heads: BinaryHeap<Reverse<Head>> = travellers.iter().enumerate().filter_map(first).collect();
    while let Some(Reverse((_, list))) = heads.pop() {
        let other = heads.peek().map(|head| head.0);
        let traveller = &mut travellers[list];
        while let Some((lane, mut pods)) = traveller.next(list, other) {
            let Lane { amounts, spec } = &traveller.lanes.lanes[lane];
            let tolerates = |taints| tolerates(spec, rules.taint_list(taints));
            while pods > 0 {
                let next = rooms.next(traveller.from[lane], amounts, traveller.running, tolerates);
                traveller.from[lane] = next.unwrap_or(rooms.existing.len());
                match next {
                    None => {
                        resource_table::add_times(&mut unplaced_requests, amounts, pods);
                        pods = 0;
                    }
                    Some(node) if traveller.running && rooms.is_unready(node) => return Err(Waits),
                    Some(node) => pods -= rooms.fill(node, amounts, pods),
                }
            }
        }
        heads.extend(traveller.head(list).map(Reverse));
    }
    Ok(unplaced_requests)
}

/// The existing nodes with what the question leaves of their room.
struct Rooms<'c> {
    existing: &'c ExistingNodes,
    outline: &'c Outline<'c>,
    /// Of those that have taken pods of it, by position.
    changed: SmallVec<[(usize, SmallVec<[i64; 6]>); 8]>,
}

impl Rooms<'_> {
    /// The position of the first node at or after `from` that takes a pod.
    fn next(&self, from: usize, amounts: &[i64], running: bool, tolerates: impl Fn(TaintsId) -> bool) -> Option<usize> {
        let Outline { without, unsettled, .. } = self.outline;
        let mut from = from;
        while let Some(position) = self.existing.next_with_room(from, amounts) {
            let node = self.existing.get(position);
            let closed =
                node.is_overdrawn() || without.contains(&node.node) || running && unsettled.contains(&node.node);
            let left = self.changed.iter().find(|pair| pair.0 == position).map_or(node.left(), |pair| &pair.1);
            if !closed && resource_table::fits(left, amounts) && tolerates(node.taints()) {
                return Some(position);
            }
            from = position + 1;
        }
        None
    }

    fn is_unready(&self, position: usize) -> bool {
        self.outline.unready.contains(&self.existing.get(position).node)
    }

    /// Puts as many of some pods on a node as fit, which is one at least; returns how many.
    fn fill(&mut self, position: usize, amounts: &[i64], pods: i64) -> i64 {
        let known = self.changed.iter().position(|pair| pair.0 == position).unwrap_or_else(|| {
            self.changed.push((position, SmallVec::from_slice(self.existing.get(position).left())));
            self.changed.len() - 1
        });
        let left = &mut self.changed[known].1;
        let pods = if pods == 1 { 1 } else { resource_table::times(left, amounts).clamp(1, pods) };
        resource_table::subtract_times(left, amounts, pods);
        pods
    }
}

fn tolerates(spec: &PodSpec, taints: &[Taint]) -> bool {
    first_untolerated(taints, &spec.tolerations).is_none()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{PodRunCache, QueuedPods};

    #[test]
    fn cached_list_results_live_with_their_lists() {
        let mut lanes = PodRunCache::default();
        let kept: Vec<Arc<QueuedPods>> = (0..100).map(|_| Arc::default()).collect();
        for item in &kept {
            lanes.keep(item, None);
            for _ in 0..50 {
                lanes.keep(&Arc::default(), None);
            }
        }
        assert!(kept.iter().all(|item| lanes.runs(item).is_some()));
        assert!(lanes.lists.len() <= 2 * kept.len() + 1, "{} lists for {}", lanes.lists.len(), kept.len());
        assert!(lanes.runs(&Arc::default()).is_none());
        lanes.clear();
        assert!(kept.iter().all(|item| lanes.runs(item).is_none()));
    }
}
