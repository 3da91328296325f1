//! What is known of each node for pods of one shape: whether it passes the filters that look at nothing else, why not, and its
//! scores. Whoever asks pays for the nodes that changed since, and not for the others.

use super::SchedulerConfig;
use super::cluster_view::{ClusterView, Slot};
use super::filters;
use super::node::NodeEntry;
use super::plugins::{Plugin, Rejection};
use super::scores::NodeScores;
use super::shape::PodShape;

/// Whether a node passes the filters that look at nothing else.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Status {
    /// Not known, or changed since.
    Unknown,
    /// It passes.
    Passes,
    /// It does not.
    Refused,
    /// There is no node in this slot.
    Gone,
}

/// The parts of a node's total that depend on nothing but the node.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OwnScores {
    /// Weighted scores that are not normalised over the candidates.
    pub(super) fixed: i64,
    pub(super) soft_taints: i64,
    pub(super) preferred_affinity: i64,
}

/// A node's refusal that nobody has asked for since the node changed.
const NOT_ASKED: u32 = u32::MAX;

/// Slots to come back to, each once.
#[derive(Clone, Debug, Default)]
struct SlotSet {
    slots: Vec<Slot>,
    is_noted: Vec<bool>,
}

impl SlotSet {
    fn note(&mut self, slot: Slot) {
        let at = slot as usize;
        if self.is_noted.len() <= at {
            self.is_noted.resize(at + 1, false);
        }
        if !std::mem::replace(&mut self.is_noted[at], true) {
            self.slots.push(slot);
        }
    }

    fn pop(&mut self) -> Option<Slot> {
        let slot = self.slots.pop()?;
        self.is_noted[slot as usize] = false;
        Some(slot)
    }
}

/// What is known of the nodes, by slot.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownNodes {
    status: Vec<Status>,
    /// Of nodes that were among several to choose from since they changed: mostly one passes, or none.
    scores: Vec<Option<OwnScores>>,
    /// The different refusals that somebody asked for, and how many nodes have each.
    refusals: Vec<(Rejection, usize)>,
    /// Which of them is that of a refused node, or [`NOT_ASKED`].
    refusal_of: Vec<u32>,
    /// Nodes that pass, in no order, and by slot where each of them stands there.
    passing: Vec<Slot>,
    place: Vec<u32>,
    /// All nodes that are unknown, and some that have been looked at since.
    changed: SlotSet,
    /// Refused nodes whose refusal nobody asked for, and some others.
    unasked: SlotSet,
}

impl KnownNodes {
    /// There are so many slots now.
    pub(super) fn grow(&mut self, slots: usize) {
        for slot in self.status.len()..slots {
            self.changed.note(slot as Slot);
        }
        self.status.resize(slots, Status::Unknown);
        self.scores.resize(slots, None);
        self.refusal_of.resize(slots, NOT_ASKED);
        self.place.resize(slots, 0);
    }

    /// The node has changed, or what counts of it.
    pub(super) fn forget(&mut self, slot: Slot) {
        let at = slot as usize;
        match self.status.get(at) {
            // There is no room for it yet, or nobody has looked at it since it changed last.
            None | Some(Status::Unknown) => return,
            Some(Status::Passes) => {
                let place = self.place[at];
                self.passing.swap_remove(place as usize);
                if let Some(&moved) = self.passing.get(place as usize) {
                    self.place[moved as usize] = place;
                }
            }
            Some(Status::Refused) => {
                if let Some((_, nodes)) = self.refusals.get_mut(self.refusal_of[at] as usize) {
                    *nodes -= 1;
                }
            }
            Some(Status::Gone) => {}
        }
        self.status[at] = Status::Unknown;
        self.scores[at] = None;
        self.refusal_of[at] = NOT_ASKED;
        self.changed.note(slot);
    }

    /// All of them have.
    pub(super) fn forget_all(&mut self) {
        for slot in 0..self.status.len() {
            self.forget(slot as Slot);
        }
    }

    /// Looks at a node, unless it is known.
    pub(super) fn look_at(&mut self, view: &ClusterView, shape: &PodShape, slot: Slot) -> Status {
        let at = slot as usize;
        if self.status[at] == Status::Unknown {
            self.status[at] = match view.entry(slot) {
                None => Status::Gone,
                Some(entry) if filters::passes_node(shape, entry) => {
                    self.place[at] = self.passing.len() as u32;
                    self.passing.push(slot);
                    Status::Passes
                }
                Some(_) => {
                    self.unasked.note(slot);
                    Status::Refused
                }
            };
        }
        self.status[at]
    }

    /// Looks at all that changed; the nodes of the cluster that pass, in no order.
    pub(super) fn passing(&mut self, view: &ClusterView, shape: &PodShape) -> &[Slot] {
        while let Some(slot) = self.changed.pop() {
            self.look_at(view, shape, slot);
        }
        &self.passing
    }

    /// The first of some nodes that has not been refused, as a position.
    pub(super) fn first_open(&self, nodes: &[Slot]) -> Option<usize> {
        let is_closed = |slot: Slot| matches!(self.status.get(slot as usize), Some(Status::Refused | Status::Gone));
        nodes.iter().position(|&slot| !is_closed(slot))
    }

    /// What is known of a node.
    pub(super) fn status(&self, slot: Slot) -> Status {
        self.status[slot as usize]
    }

    /// Why a node is refused, if it is.
    pub(super) fn refusal(&mut self, shape: &PodShape, slot: Slot, entry: &NodeEntry) -> Option<&Rejection> {
        let at = self.place_of_refusal(shape, slot, entry)?;
        Some(&self.refusals[at].0)
    }

    fn place_of_refusal(&mut self, shape: &PodShape, slot: Slot, entry: &NodeEntry) -> Option<usize> {
        let Self { status, refusals, refusal_of, .. } = self;
        if status[slot as usize] != Status::Refused {
            return None;
        }
        let known = &mut refusal_of[slot as usize];
        if *known == NOT_ASKED {
            let refusal = filters::check_node(shape, entry).err()?;
            let at = refusals.iter().position(|this_refusal| this_refusal.0 == refusal).unwrap_or(refusals.len());
            if at == refusals.len() {
                refusals.push((refusal, 0));
            }
            refusals[at].1 += 1;
            *known = at as u32;
        }
        Some(*known as usize)
    }

    /// The refusals of all nodes, each with the number of nodes that have it. All of them must have been looked at.
    pub(super) fn refusals(
        &mut self,
        view: &ClusterView,
        shape: &PodShape,
    ) -> impl Iterator<Item = (&Rejection, usize)> {
        while let Some(slot) = self.unasked.pop() {
            if let Some(entry) = view.entry(slot) {
                self.place_of_refusal(shape, slot, entry);
            }
        }
        self.refusals.iter().filter(|refusal| refusal.1 > 0).map(|(refusal, nodes)| (refusal, *nodes))
    }

    /// Whether the numbers are those that come of counting.
    pub(super) fn is_coherent(&self) -> bool {
        let passing = self.status.iter().filter(|item| **item == Status::Passes).count();
        let stands = |(place, slot): (usize, &Slot)| self.place[*slot as usize] as usize == place;
        let mut nodes = vec![0; self.refusals.len()];
        for (status, refusal) in self.status.iter().zip(&self.refusal_of) {
            if let (Status::Refused, Some(nodes)) = (status, nodes.get_mut(*refusal as usize)) {
                *nodes += 1;
            }
        }
        passing == self.passing.len()
            && self.passing.iter().all(|&slot| self.status(slot) == Status::Passes)
            && self.passing.iter().enumerate().all(stands)
            && self.refusals.iter().zip(nodes).all(|(kept, nodes)| kept.1 == nodes)
    }

    /// The scores of a node that passes.
    pub(super) fn scores(
        &mut self,
        config: &SchedulerConfig,
        view: &ClusterView,
        shape: &PodShape,
        slot: Slot,
    ) -> OwnScores {
        let anew = || view.entry(slot).map_or_else(OwnScores::default, |entry| own_scores(config, view, shape, entry));
        *self.scores[slot as usize].get_or_insert_with(anew)
    }
}

fn own_scores(config: &SchedulerConfig, view: &ClusterView, shape: &PodShape, entry: &NodeEntry) -> OwnScores {
    let node_scores = NodeScores::new(config, view, shape, entry);
    OwnScores {
        fixed: node_scores.fit * Plugin::NodeResourcesFit.weight()
            + node_scores.balance * Plugin::NodeResourcesBalancedAllocation.weight()
            + node_scores.images * Plugin::ImageLocality.weight(),
        soft_taints: node_scores.soft_taints,
        preferred_affinity: node_scores.preferred_affinity,
    }
}
