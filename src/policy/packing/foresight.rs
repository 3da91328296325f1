//! What a question to a cluster comes to, without packing it: for those who only want to know whether consolidation is worth a
//! closer look, which it mostly is not.
//!
//! It is known where pods go that ask for nothing but room and are sure of a place: to the first existing node with room, or to a
//! new one. Everything else is left to a pass.

use std::sync::Arc;

use super::Packer;
use super::bits::Bits;
use super::cluster::ClusterView;
use super::existing_index::ExistingNodes;
use super::finish;
use super::plan::GivenUp;
use super::queue::{Places, QueuePlace, QueuedPods};
use super::resource_table;
use super::shapes::Shape;
use super::topology::Rules;
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

/// Pods of one shape on their way to a node.
struct Travellers {
    shape: Arc<Shape>,
    spec: Arc<PodSpec>,
    running: bool,
    /// No node before it takes one of them.
    from: usize,
}

impl Packer<'_> {
    /// Why a pass over this question would be given up; `None` if it would not be, or if only the pass itself can tell.
    /// `cluster` must come from this packer; it is left as it was.
    pub fn foresee(&mut self, cluster: &mut ClusterView, outline: &Outline<'_>) -> Option<GivenUp> {
        if self.setup.karpenter <= KarpenterVersion::V0_6 || cluster.topology.has_inverse() {
            return None;
        }
        let (mut travellers, queue) = self.travellers(outline)?;
        for &node in outline.without {
            cluster.existing.withdraw(node);
        }
        let homeless = go(&mut travellers, &queue, outline, &mut cluster.existing, &self.rules);
        cluster.existing.revert();
        match homeless {
            Err(Waits) => Some(GivenUp::Waits),
            Ok(homeless) => {
                let ceiling = outline.ceiling?;
                (!homeless.is_empty() && self.is_dearer(&homeless, ceiling)).then_some(GivenUp::Dearer)
            }
        }
    }

    /// The pods of the question in the order of the queue; `None` if not all of them go where there is room.
    fn travellers(&mut self, outline: &Outline<'_>) -> Option<(Vec<Travellers>, Places)> {
        let (mut travellers, mut queue) = (Vec::new(), Vec::new());
        let mut sources = 0;
        for &(own, running) in outline.pods.iter().filter(|(own, _)| !own.pods.is_empty()) {
            let first = travellers.len();
            for (namespace, spec) in &own.classes {
                let shape = self.shape(*namespace, spec);
                if !self.goes_where_room_is(shape, spec) {
                    return None;
                }
                let (shape, spec) = (Arc::clone(self.shapes.shape(shape)), Arc::clone(spec));
                travellers.push(Travellers { shape, spec, running, from: 0 });
            }
            queue.extend(own.pods.iter().map(|&(place, class)| (place, first + class)));
            sources += 1;
        }
        if sources > 1 {
            queue.sort_by_key(|&(place, _)| place);
        }
        Some((travellers, queue))
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

/// Puts the pods on existing nodes; returns what those request together for which there is no room, which is nothing if there is
/// room for all.
fn go(
    travellers: &mut [Travellers],
    queue: &[(QueuePlace, usize)],
    outline: &Outline<'_>,
    existing: &mut ExistingNodes,
    rules: &Rules,
) -> Result<Vec<i64>, Waits> {
    let mut homeless = Vec::new();
    for &(_, class) in queue {
        let own = &mut travellers[class];
        match own.next(existing, outline.unsettled, rules) {
            None => resource_table::add(&mut homeless, &own.shape.amounts),
            Some(node) if own.running && outline.unready.contains(&existing.get(node).node) => return Err(Waits),
            Some(node) => existing.change(node, |node| node.fill(&own.shape.amounts)),
        }
    }
    Ok(homeless)
}

impl Travellers {
    /// The position of the node that the next of them goes to.
    fn next(&mut self, existing: &ExistingNodes, unsettled: &[usize], rules: &Rules) -> Option<usize> {
        while let Some(position) = existing.next_with_room(self.from, &self.shape.amounts) {
            self.from = position;
            let node = existing.get(position);
            let kept_off = self.running && unsettled.contains(&node.node);
            if !kept_off && node.has_room(&self.shape.amounts) && tolerates(&self.spec, rules.taint_list(node.taints()))
            {
                return Some(position);
            }
            self.from += 1;
        }
        self.from = existing.len();
        None
    }
}

fn tolerates(spec: &PodSpec, taints: &[Taint]) -> bool {
    first_untolerated(taints, &spec.tolerations).is_none()
}
