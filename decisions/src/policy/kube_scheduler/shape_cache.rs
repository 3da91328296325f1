//! What the scheduler remembers of the nodes for pods of one shape, so that a decision costs what changed since the last
//! one and not the size of the cluster.
//!
//! Nothing here changes an answer: everything is derived from the view and forgotten, node by node, when the view's
//! journal says that a node or its pods changed.

use std::sync::Arc;

use super::SchedulerConfig;
use super::cluster_view::{Change, ClusterView, Slot};
use super::evaluation::{Tally, check_entry, check_with_rivals};
use super::filters;
use super::node::{NodeEntry, PlacedPod};
use super::plugins::{Plugin, Reason, Rejection, Unschedulable};
use super::scores::{self, NodeScores};
use super::shape::PodShape;
use super::topology_state::TopologyState;

/// Whether a node passes the filters that look at nothing else.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Status {
    /// Not known, or changed since.
    Unknown,
    Passes,
    Refused,
}

/// The parts of a node's total that depend on nothing but the node.
#[derive(Clone, Copy, Debug, Default)]
struct OwnScores {
    /// Weighted scores that are not normalised over the candidates.
    fixed: i64,
    soft_taints: i64,
    preferred_affinity: i64,
}

/// Buffers to use again.
#[derive(Clone, Debug, Default)]
pub(super) struct Scratch {
    pub(super) feasible: Vec<Slot>,
    pub(super) totals: Vec<i64>,
    pub(super) heap: Vec<u32>,
    raw: Vec<i64>,
    known: Vec<i64>,
    own: Vec<OwnScores>,
}

/// A node's refusal that nobody has asked for since the node changed.
const NOT_ASKED: u32 = u32::MAX;

/// Changes for each node up to which it pays to look at them one by one, to leave out those that do not matter.
const CHANGES_PER_NODE: usize = 16;

/// What is remembered for one shape.
#[derive(Clone, Debug)]
pub(super) struct ShapeCache {
    pub(super) shape: Arc<PodShape>,
    /// Counted only when where other pods are can matter.
    state: Option<TopologyState>,
    status: Vec<Status>,
    /// Of nodes that were among several to choose from since they changed: mostly one passes, or none.
    scores: Vec<Option<OwnScores>>,
    /// The different refusals of nodes that somebody asked for.
    refusals: Vec<Rejection>,
    /// Which of them is that of a node with [`Status::Refused`], or [`NOT_ASKED`].
    refusal_of: Vec<u32>,
    /// The journal entry up to which this follows the view.
    followed: u64,
    /// Why no node took the last pod of the shape that none took, without nominated pods, and up to which journal entry the
    /// view was followed then.
    refused: Option<(u64, Unschedulable)>,
    image_version: u64,
    images_matter: bool,
    /// When it was last used, counted in attempts.
    pub(super) last_used: u64,
}

impl ShapeCache {
    pub(super) fn new(view: &ClusterView, shape: &Arc<PodShape>) -> Self {
        Self {
            shape: Arc::clone(shape),
            state: None,
            status: Vec::new(),
            scores: Vec::new(),
            refusals: Vec::new(),
            refusal_of: Vec::new(),
            followed: view.journal_end(),
            refused: None,
            image_version: view.image_version(),
            images_matter: false,
            last_used: 0,
        }
    }

    /// Forgets what changed. `rivals` are the nominated pods that will be reckoned with.
    pub(super) fn catch_up(&mut self, view: &ClusterView, rivals: &[(Slot, PlacedPod)]) {
        let slots = view.slot_count();
        let held = |image| view.nodes_with_image(image) > 0;
        let images_matter = self.shape.images.iter().any(|&image| held(image));
        let images_changed = (images_matter || self.images_matter) && self.image_version != view.image_version();
        self.images_matter = images_matter;
        self.image_version = view.image_version();
        self.follow(view);
        if images_changed {
            self.status.fill(Status::Unknown);
        }
        self.followed = view.journal_end();
        self.status.resize(slots, Status::Unknown);
        self.scores.resize(slots, None);
        self.refusal_of.resize(slots, NOT_ASKED);
        let terms = |rival: &(Slot, PlacedPod)| view.shape_of(rival.1.shape).has_affinity_terms();
        if self.shape.minds_others() || view.pods_with_affinity() > 0 || rivals.iter().any(terms) {
            self.state_for(view);
        }
    }

    /// Forgets the nodes that changed, and counts them anew.
    fn follow(&mut self, view: &ClusterView) {
        let Self { state, status, followed, .. } = self;
        let mut forget = |slot: Slot| {
            if let Some(status) = status.get_mut(slot as usize) {
                *status = Status::Unknown;
            }
        };
        let mut recount: Vec<Slot> = Vec::new();
        match view.changed_since(*followed).filter(|changed| changed.len() <= CHANGES_PER_NODE * view.slot_count()) {
            Some(changed) => {
                for &Change { slot, peer } in changed {
                    forget(slot);
                    if let Some(state) = state.as_mut()
                        && !peer.is_some_and(|peer| state.is_indifferent_to(view, peer))
                    {
                        recount.push(slot);
                    }
                }
                recount.sort_unstable();
                recount.dedup();
            }
            None => {
                recount.extend(view.slots_changed_since(*followed));
                recount.iter().copied().for_each(forget);
            }
        }
        if let Some(state) = state {
            for slot in recount {
                state.follow(view, slot, view.entry(slot));
            }
            state.settle();
        }
    }

    /// The counts over the cluster, made if they were not needed so far.
    fn state_for(&mut self, view: &ClusterView) -> &mut TopologyState {
        let shape = &self.shape;
        self.state.get_or_insert_with(|| TopologyState::new(view, shape))
    }

    /// Collects nodes that pass every filter, in the order of `nodes` and round from the one at `first`, until there are as many as
    /// `wanted`; gives back how many were looked at.
    ///
    /// Source: Kubernetes 1.36 `pkg/scheduler/schedule_one.go`, `findNodesThatPassFilters`.
    pub(super) fn search(
        &mut self,
        view: &ClusterView,
        (nodes, first): (&[Slot], usize),
        wanted: usize,
        rivals: &[(Slot, PlacedPod)],
        feasible: &mut Vec<Slot>,
    ) -> usize {
        feasible.clear();
        let (before, from) = nodes.split_at(first);
        if !rivals.is_empty() {
            for (looked_at, &slot) in from.iter().chain(before).enumerate() {
                if self.passes(view, slot, rivals) {
                    feasible.push(slot);
                    if feasible.len() >= wanted {
                        return looked_at + 1;
                    }
                }
            }
            return nodes.len();
        }
        let Self { shape, state, status, scores, refusal_of, .. } = self;
        let gate = state.as_ref().map(|state| state.gate(view));
        let mut examined = 0;
        for part in [from, before] {
            let mut left = part;
            // Most nodes of a large cluster are known to be full.
            while let Some(next) = left.iter().position(|&slot| status.get(slot as usize) != Some(&Status::Refused)) {
                let (slot, at) = (left[next], left[next] as usize);
                examined += next + 1;
                left = &left[next + 1..];
                if status[at] == Status::Unknown {
                    refusal_of[at] = NOT_ASKED;
                    scores[at] = None;
                    status[at] = look_at(view, shape, slot);
                }
                if status[at] == Status::Passes && gate.as_ref().is_none_or(|gate| gate.check(slot).is_ok()) {
                    feasible.push(slot);
                    if feasible.len() >= wanted {
                        return examined;
                    }
                }
            }
            examined += left.len();
        }
        examined
    }

    /// Whether a node passes every filter.
    pub(super) fn passes(&mut self, view: &ClusterView, slot: Slot, rivals: &[(Slot, PlacedPod)]) -> bool {
        let at = slot as usize;
        if self.status[at] == Status::Unknown {
            self.refusal_of[at] = NOT_ASKED;
            self.scores[at] = None;
            self.status[at] = look_at(view, &self.shape, slot);
        }
        let refused = |state: &TopologyState| state.gate(view).check(slot).is_err();
        if self.status[at] == Status::Refused || self.state.as_ref().is_some_and(refused) {
            return false;
        }
        rivals.is_empty() || self.check_rivals(view, slot, rivals).is_ok()
    }

    fn check_rivals(&mut self, view: &ClusterView, slot: Slot, rivals: &[(Slot, PlacedPod)]) -> Result<(), Rejection> {
        let (Some(entry), true) = (view.entry(slot), rivals.iter().any(|rival| rival.0 == slot)) else {
            return Ok(());
        };
        let shape = Arc::clone(&self.shape);
        check_with_rivals(view, &shape, self.state_for(view), rivals, slot, entry)
    }

    /// Why a node does not pass; `None` if it does. For nodes that [`Self::passes`] was asked about.
    pub(super) fn rejection(
        &mut self,
        view: &ClusterView,
        slot: Slot,
        rivals: &[(Slot, PlacedPod)],
    ) -> Option<Rejection> {
        let Some(entry) = view.entry(slot) else { return Some(Rejection::unresolvable(Reason::OtherNodeName)) };
        if let Err(rejection) = self.check_rivals(view, slot, rivals) {
            return Some(rejection);
        }
        if self.status[slot as usize] == Status::Refused {
            return self.refusal(slot, entry).map(|at| self.refusals[at].clone());
        }
        let state = self.state.as_ref()?;
        check_entry(view, &self.shape, state, slot, entry).err()
    }

    /// The refusal of a node with [`Status::Refused`], as its place among those known.
    fn refusal(&mut self, slot: Slot, entry: &NodeEntry) -> Option<usize> {
        let Self { shape, refusals, refusal_of, .. } = self;
        let known = &mut refusal_of[slot as usize];
        if *known == NOT_ASKED {
            let refusal = filters::check_node(shape, entry).err()?;
            let at = refusals.iter().position(|own| *own == refusal).unwrap_or(refusals.len());
            if at == refusals.len() {
                refusals.push(refusal);
            }
            *known = at as u32;
        }
        Some(*known as usize)
    }

    /// Why none of the nodes in `searched`, of `nodes` in all, takes the pod. Each was looked at in this attempt.
    pub(super) fn unschedulable(
        &mut self,
        view: &ClusterView,
        searched: &[Slot],
        rivals: &[(Slot, PlacedPod)],
        nodes: usize,
    ) -> Unschedulable {
        let mut tally = Tally::default();
        if rivals.is_empty() {
            self.tally(view, searched, &mut tally);
        } else {
            for rejection in searched.iter().filter_map(|&slot| self.rejection(view, slot, rivals)) {
                tally.add(&rejection.reasons, 1);
            }
        }
        tally.sum_up(nodes, nodes - searched.len())
    }

    /// Keeps why none of all nodes takes a pod of the shape where no nominated pod is in its way.
    pub(super) fn keep_refusal(&mut self, why: &Unschedulable) {
        self.refused = Some((self.followed, why.clone()));
    }

    /// Why none of all nodes takes a pod of the shape, if that was found out before and nothing has changed since: whoever
    /// waits for a new node mostly waits with others of the same shape.
    pub(super) fn kept_refusal(&self) -> Option<&Unschedulable> {
        self.refused.as_ref().filter(|(followed, _)| *followed == self.followed).map(|(_, why)| why)
    }

    /// Counts why nodes do not take the pod where no nominated pod is in its way.
    fn tally(&mut self, view: &ClusterView, searched: &[Slot], tally: &mut Tally) {
        let mut refused: Vec<usize> = vec![0; self.refusals.len()];
        for &slot in searched {
            if self.status[slot as usize] != Status::Refused {
                continue;
            }
            if let Some(nodes) = refused.get_mut(self.refusal_of[slot as usize] as usize) {
                *nodes += 1;
            } else if let Some(at) = view.entry(slot).and_then(|entry| self.refusal(slot, entry)) {
                refused.resize(self.refusals.len(), 0);
                refused[at] += 1;
            }
        }
        for (refusal, nodes) in self.refusals.iter().zip(refused).filter(|(_, nodes)| *nodes > 0) {
            tally.add(&refusal.reasons, nodes);
        }
        let Some(state) = &self.state else { return };
        let gate = state.gate(view);
        for &slot in searched.iter().filter(|&&slot| self.status[slot as usize] == Status::Passes) {
            if let Err(refusal) = gate.check(slot) {
                tally.add(&[refusal.reason], 1);
            }
        }
    }

    /// The counts, the shape and the rest of what an attempt to evict needs.
    pub(super) fn parts(&mut self, view: &ClusterView) -> (Arc<PodShape>, &mut TopologyState) {
        (Arc::clone(&self.shape), self.state_for(view))
    }

    /// Fills in the totals of the feasible nodes. Each node passed [`Self::passes`] in this attempt.
    pub(super) fn totals(&mut self, config: &SchedulerConfig, view: &ClusterView, scratch: &mut Scratch) {
        let Scratch { feasible, totals, raw, known, own, .. } = scratch;
        own.clear();
        for &slot in &*feasible {
            let known = &mut self.scores[slot as usize];
            let entry = view.entry(slot);
            own.push(*known.get_or_insert_with(|| {
                entry.map_or_else(OwnScores::default, |entry| own_scores(config, view, &self.shape, entry))
            }));
        }
        totals.clear();
        totals.extend(own.iter().map(|scores| scores.fixed));
        let own = |raw: &mut Vec<i64>, select: fn(&OwnScores) -> i64| {
            raw.clear();
            raw.extend(own.iter().map(select));
            scores::range(raw.iter().copied())
        };
        let range = own(raw, |scores| scores.soft_taints);
        let weight = Plugin::TaintToleration.weight();
        scores::add_weighted(totals, raw, range, known, weight, |raw| scores::in_proportion(raw, range.1, true));
        if !self.shape.spec.node_affinity.preferred.is_empty() {
            let range = own(raw, |scores| scores.preferred_affinity);
            let weight = Plugin::NodeAffinity.weight();
            scores::add_weighted(totals, raw, range, known, weight, |raw| scores::in_proportion(raw, range.1, false));
        }
        let Some(state) = &self.state else { return };
        if !self.shape.soft_spread.is_empty() {
            scores::spread_raw(view, &self.shape, state, feasible, raw);
            let range = scores::spread_range(raw);
            let weight = Plugin::PodTopologySpread.weight();
            scores::add_weighted(totals, raw, range, known, weight, |raw| {
                scores::spread_normalised(raw, range.0, range.1)
            });
        }
        if state.scores_affinity() {
            state.affinity_scores(view, feasible, raw);
            let range = scores::range(raw.iter().copied());
            let weight = Plugin::InterPodAffinity.weight();
            scores::add_weighted(totals, raw, range, known, weight, |raw| scores::between(raw, range.0, range.1));
        }
    }
}

/// Runs the filters that look at the node alone.
fn look_at(view: &ClusterView, shape: &PodShape, slot: Slot) -> Status {
    let passes = view.entry(slot).is_some_and(|entry| filters::passes_node(shape, entry));
    if passes { Status::Passes } else { Status::Refused }
}

fn own_scores(config: &SchedulerConfig, view: &ClusterView, shape: &PodShape, entry: &NodeEntry) -> OwnScores {
    let own = NodeScores::new(config, view, shape, entry);
    OwnScores {
        fixed: own.fit * Plugin::NodeResourcesFit.weight()
            + own.balance * Plugin::NodeResourcesBalancedAllocation.weight()
            + own.images * Plugin::ImageLocality.weight(),
        soft_taints: own.soft_taints,
        preferred_affinity: own.preferred_affinity,
    }
}
