//! What a question to a cluster comes to, without packing it: for those who only want to know whether consolidation is worth a
//! closer look, which it mostly is not.
//!
//! It is known where pods go that ask for nothing but room and are sure of a place: to the first existing node with room, or to a
//! new one. Everything else is left to a pass.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::sync::Arc;

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
use crate::domain::taints::{Taint, first_untolerated};
use crate::domain::{HourlyRate, KarpenterVersion, PodSpec};

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
    pub pods: &'q [(&'q QueuedPods, bool)],
}

/// Pods of one list on their way to nodes.
struct Travellers<'q> {
    pods: &'q QueuedPods,
    running: bool,
    /// How many have gone.
    gone: usize,
    /// By class its shape, and the position of the node before which none takes one more of it.
    classes: SmallVec<[(usize, usize); 8]>,
}

impl Packer<'_> {
    /// Why a pass over this question would be given up; `None` if it would not be, or if only the pass itself can tell.
    /// `cluster` must come from this packer.
    pub fn foresee(&mut self, cluster: &ClusterView, outline: &Outline<'_>) -> Option<GivenUp> {
        if self.setup.karpenter <= KarpenterVersion::V0_6 || cluster.topology.has_inverse() {
            return None;
        }
        let travellers = self.travellers(outline)?;
        let rooms = Rooms { existing: &cluster.existing, outline, changed: Vec::new() };
        match go(travellers, rooms, &self.shapes, &self.rules) {
            Err(Waits) => Some(GivenUp::Waits),
            Ok(homeless) => {
                let ceiling = outline.ceiling?;
                (!homeless.is_empty() && self.is_dearer(&homeless, ceiling)).then_some(GivenUp::Dearer)
            }
        }
    }

    /// The pods of the question; `None` if not all of them go where there is room.
    fn travellers<'q>(&mut self, outline: &Outline<'q>) -> Option<Vec<Travellers<'q>>> {
        let own = |&(pods, running): &(&'q QueuedPods, bool)| {
            let mut classes = SmallVec::with_capacity(pods.classes.len());
            for (namespace, spec) in &pods.classes {
                let shape = self.shape(*namespace, spec);
                if !self.goes_where_room_is(shape, spec) {
                    return None;
                }
                classes.push((shape, 0));
            }
            Some(Travellers { pods, running, gone: 0, classes })
        };
        outline.pods.iter().map(own).collect()
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
        let some = !self.table.has_min_values(template.set) && table.filter(&mut types, template.set, &totals);
        some.then_some(types)
    }

    /// Whether these pods come to one new node, and the cheapest type left to it costs at least `ceiling`.
    fn is_dearer(&mut self, homeless: &[i64], ceiling: HourlyRate) -> bool {
        if self.templates.list.len() != 1 {
            return false;
        }
        let Some(types) = self.types_for(0, homeless) else { return false };
        let template = &self.templates.list[0];
        let (tables, at) = (&self.tables, (template.table, template.set));
        let least = finish::cheapest(&self.setup, tables, at, &types, &mut self.orders);
        least.is_none_or(|least| least >= ceiling)
    }
}

/// A pod that runs would go to a node that is not ready.
struct Waits;

/// Puts the pods on existing nodes in the order of the queue; returns what those request together for which there is no room,
/// which is nothing if there is room for all.
fn go(
    mut travellers: Vec<Travellers<'_>>,
    mut rooms: Rooms<'_>,
    shapes: &Shapes,
    rules: &Rules,
) -> Result<Vec<i64>, Waits> {
    let mut homeless = Vec::new();
    let first = |(list, own): (usize, &Travellers<'_>)| own.pods.pods.first().map(|pod| Reverse((pod.0, list)));
    let mut heads: BinaryHeap<Reverse<(QueuePlace, usize)>> = travellers.iter().enumerate().filter_map(first).collect();
    while let Some(mut head) = heads.peek_mut() {
        let own = &mut travellers[head.0.1];
        let class = own.pods.pods[own.gone].1;
        own.gone += 1;
        match own.pods.pods.get(own.gone) {
            Some(&(place, _)) => head.0.0 = place,
            None => drop(PeekMut::pop(head)),
        }
        let (shape, from) = &mut own.classes[class];
        let (amounts, spec) = (&shapes.shape(*shape).amounts[..], &own.pods.classes[class].1);
        let next = rooms.next(*from, amounts, own.running, |taints| tolerates(spec, rules.taint_list(taints)));
        *from = next.unwrap_or(rooms.existing.len());
        match next {
            None => resource_table::add(&mut homeless, amounts),
            Some(node) if own.running && rooms.is_unready(node) => return Err(Waits),
            Some(node) => rooms.fill(node, amounts),
        }
    }
    Ok(homeless)
}

/// The existing nodes with what the question leaves of their room.
struct Rooms<'c> {
    existing: &'c ExistingNodes,
    outline: &'c Outline<'c>,
    /// Of those that have taken pods of it, by position.
    changed: Vec<(usize, SmallVec<[i64; 6]>)>,
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
            let left = self.changed.iter().find(|own| own.0 == position).map_or(node.left(), |own| &own.1);
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

    fn fill(&mut self, position: usize, amounts: &[i64]) {
        let known = self.changed.iter().position(|own| own.0 == position).unwrap_or_else(|| {
            self.changed.push((position, SmallVec::from_slice(self.existing.get(position).left())));
            self.changed.len() - 1
        });
        resource_table::subtract(&mut self.changed[known].1, amounts);
    }
}

fn tolerates(spec: &PodSpec, taints: &[Taint]) -> bool {
    first_untolerated(taints, &spec.tolerations).is_none()
}
