//! Where the estimator packs: on the imagined cluster, or, if nothing beyond the new nodes can matter, on a table of what is
//! left on each of them. Both give the same answers.

use super::estimator::{PackingGroup, spreads_over_hosts};
use super::snapshot::{NodeAt, PodAt, Snapshot};
use super::view::NodeTemplate;
use nodecast_scheduler::{FreeCapacity, Reason, ShapeId};

/// New nodes that pods are packed on. Nodes are numbered in order of creation.
pub(super) trait CandidateNodes {
    /// Says which group's pods come next.
    fn begin(&mut self, group: usize);
    /// Places one pod on the first new node that takes it, from where the last search stopped.
    fn place_on_any_new(&mut self) -> Option<usize>;
    /// Places one pod on the newest node.
    fn place_on_last(&mut self) -> bool;
    /// After [`Self::place_on_last`] said no: if a constraint over hosts is the reason, places the pod on any node but the
    /// newest. `Ok` with a new node, `Err` with one that was there before.
    fn place_by_hostname_rule(&mut self) -> Option<Result<usize, NodeAt>>;
    /// Adds a fresh node.
    fn add_node(&mut self);
}

/// A table of what is left on each new node.
pub(super) struct NewNodeCapacity<'a> {
    snapshot: &'a mut Snapshot,
    shapes: &'a [ShapeId],
    /// Whether pods of each group may run on such nodes at all, as far as labels and taints go.
    may_run: Vec<bool>,
    fresh: Option<FreeCapacity>,
    cordoned: bool,
    rooms: Vec<FreeCapacity>,
    /// For the current group, the next node at or after each that may still take a pod; one more than nodes.
    skip: Vec<u32>,
    shape: ShapeId,
    open: bool,
    /// Nodes in the snapshot before the new ones.
    old_nodes: usize,
}

impl<'a> NewNodeCapacity<'a> {
    pub(super) fn new(snapshot: &'a mut Snapshot, template: &NodeTemplate, shapes: &'a [ShapeId]) -> Self {
        let old_nodes = snapshot.order().len();
        let mark = snapshot.mark();
        let at = snapshot.add_from_template(template);
        let may_run = shapes
            .iter()
            .map(|&shape| match snapshot.check(shape, at) {
                Ok(()) => true,
                Err(refusal) => refusal
                    .reasons
                    .iter()
                    .all(|reason| matches!(reason, Reason::Insufficient(_) | Reason::TooManyPods | Reason::HostPort)),
            })
            .collect();
        let fresh = FreeCapacity::on(snapshot.view(), snapshot.node(at).id);
        snapshot.go_back(mark);
        Self {
            snapshot,
            shapes,
            may_run,
            fresh,
            cordoned: template.unschedulable,
            rooms: Vec::new(),
            skip: Vec::new(),
            shape: ShapeId::default(),
            open: false,
            old_nodes,
        }
    }

    /// The first node at or after `from` that may still take a pod of the group.
    fn next_open(&mut self, from: usize) -> usize {
        let mut at = from;
        while self.skip[at] as usize != at {
            let next = self.skip[at] as usize;
            self.skip[at] = self.skip[next];
            at = next;
        }
        at
    }

    fn take(&mut self, node: usize) -> bool {
        let shape = self.snapshot.view().shape_of(self.shape);
        let room = &mut self.rooms[node];
        let fits = room.fits(shape);
        if fits {
            room.take(shape);
        }
        fits
    }
}

impl CandidateNodes for NewNodeCapacity<'_> {
    fn begin(&mut self, group: usize) {
        self.shape = self.shapes[group];
        self.open = self.may_run[group];
        self.skip = (0..=self.rooms.len() as u32).collect();
    }

    fn place_on_any_new(&mut self) -> Option<usize> {
        let nodes = self.rooms.len();
        if !self.open || self.cordoned || nodes == 0 {
            return None;
        }
        let length = self.old_nodes + nodes;
        let begin = (self.snapshot.next() % length).saturating_sub(self.old_nodes);
        let mut at = begin;
        let mut wrapped = false;
        loop {
            at = self.next_open(at);
            if at == nodes {
                if wrapped {
                    return None;
                }
                (at, wrapped) = (0, true);
                continue;
            }
            if self.take(at) {
                self.snapshot.set_next((self.old_nodes + at + 1) % length);
                return Some(at);
            }
            // Room only shrinks, so the node is out for the rest of the group.
            self.skip[at] = at as u32 + 1;
        }
    }

    fn place_on_last(&mut self) -> bool {
        self.open && !self.rooms.is_empty() && self.take(self.rooms.len() - 1)
    }

    fn place_by_hostname_rule(&mut self) -> Option<Result<usize, NodeAt>> {
        None
    }

    fn add_node(&mut self) {
        if let Some(fresh) = &self.fresh {
            self.rooms.push(fresh.clone());
        }
    }
}

/// The imagined cluster itself.
pub(super) struct ClusterGround<'a> {
    snapshot: &'a mut Snapshot,
    template: &'a NodeTemplate,
    groups: &'a [PackingGroup<'a>],
    shapes: &'a [ShapeId],
    nodes: Vec<NodeAt>,
    group: usize,
    done: usize,
    by_hostname: bool,
    spread_refused: bool,
}

impl<'a> ClusterGround<'a> {
    pub(super) fn new(
        snapshot: &'a mut Snapshot,
        template: &'a NodeTemplate,
        groups: &'a [PackingGroup<'a>],
        shapes: &'a [ShapeId],
    ) -> Self {
        let (nodes, group, done) = (Vec::new(), 0, 0);
        Self { snapshot, template, groups, shapes, nodes, group, done, by_hostname: false, spread_refused: false }
    }

    fn pod(&self) -> Option<PodAt> {
        self.groups[self.group].pods.get(self.done).copied()
    }

    fn number(&self, node: NodeAt) -> Result<usize, NodeAt> {
        self.nodes.binary_search(&node).map_err(|_| node)
    }
}

impl CandidateNodes for ClusterGround<'_> {
    fn begin(&mut self, group: usize) {
        (self.group, self.done) = (group, 0);
        self.by_hostname = self.pod().is_some_and(|pod| spreads_over_hosts(self.snapshot.traits(pod)));
    }

    fn place_on_any_new(&mut self) -> Option<usize> {
        let (pod, first) = (self.pod()?, *self.nodes.first()?);
        // New nodes stand behind all others in the table.
        let node = self.snapshot.place_anywhere(pod, |at, _| at >= first)?;
        self.done += 1;
        self.number(node).ok()
    }

    fn place_on_last(&mut self) -> bool {
        self.spread_refused = false;
        let (Some(pod), Some(&last)) = (self.pod(), self.nodes.last()) else { return false };
        match self.snapshot.check(self.shapes[self.group], last) {
            Ok(()) => {
                self.snapshot.place(pod, last);
                self.done += 1;
                true
            }
            Err(refusal) => {
                self.spread_refused = refusal.reasons.contains(&Reason::TopologySpread);
                false
            }
        }
    }

    fn place_by_hostname_rule(&mut self) -> Option<Result<usize, NodeAt>> {
        let (pod, last) = (self.pod()?, *self.nodes.last()?);
        if !self.by_hostname || !self.spread_refused {
            return None;
        }
        let node = self.snapshot.place_anywhere(pod, |at, _| at != last)?;
        self.done += 1;
        Some(self.number(node))
    }

    fn add_node(&mut self) {
        let node = self.snapshot.add_from_template(self.template);
        self.nodes.push(node);
    }
}
