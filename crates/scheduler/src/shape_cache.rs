//! What the scheduler remembers of the nodes for pods of one shape, so that a decision costs what changed since the last
//! one and not the size of the cluster.
//!
//! Nothing here changes an answer: everything is derived from the view and forgotten, node by node, when the view's
//! journal says that a node or its pods changed.

use std::sync::Arc;

use super::SchedulerConfig;
use super::cluster_view::{Change, ClusterView, Slot};
use super::evaluation::{Tally, check_entry, check_with_rivals};
use super::known_nodes::{KnownNodes, OwnScores, Status};
use super::node::PlacedPod;
use super::plugins::{Plugin, Reason, Rejection, Unschedulable};
use super::scores;
use super::shape::PodShape;
use super::topology_state::TopologyState;
use nodecast_model::domain::Check;

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

/// Changes for each node up to which it pays to look at them one by one, to leave out those that do not matter.
const CHANGES_PER_NODE: usize = 16;

/// What is remembered for one shape.
#[derive(Clone, Debug)]
pub(super) struct ShapeCache {
    pub(super) shape: Arc<PodShape>,
    /// Counted only when where other pods are can matter.
    state: Option<TopologyState>,
    known: KnownNodes,
    /// The journal entry up to which this follows the view.
    followed: u64,
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
            known: KnownNodes::default(),
            followed: view.journal_end(),
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
            self.known.forget_all();
        }
        self.followed = view.journal_end();
        self.known.grow(slots);
        let terms = |rival: &(Slot, PlacedPod)| view.shape_of(rival.1.shape).has_affinity_terms();
        if self.shape.minds_others() || view.pods_with_affinity() > 0 || rivals.iter().any(terms) {
            self.state_for(view);
        }
    }

    /// Forgets the nodes that changed, and counts them anew.
    fn follow(&mut self, view: &ClusterView) {
        let Self { state, known, followed, .. } = self;
        let mut recount: Vec<Slot> = Vec::new();
        match view.changed_since(*followed).filter(|changed| changed.len() <= CHANGES_PER_NODE * view.slot_count()) {
            Some(changed) => {
                for &Change { slot, peer } in changed {
                    known.forget(slot);
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
                recount.iter().for_each(|&slot| known.forget(slot));
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
    /// `wanted`; gives back how many were looked at. `of_all` says whether these are all nodes there are: then they
    /// are not even gone through where none of those that pass is let in.
    ///
    /// Source: Kubernetes 1.36 `pkg/scheduler/schedule_one.go`, `findNodesThatPassFilters`.
    pub(super) fn search(
        &mut self,
        view: &ClusterView,
        (nodes, first): (&[Slot], usize),
        of_all: bool,
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
        let Self { shape, state, known, .. } = self;
        let gate = state.as_ref().map(|state| state.gate(view));
        let is_let_in = |slot: Slot| gate.as_ref().is_none_or(|gate| gate.check(slot).is_ok());
        if of_all && !known.passing(view, shape).iter().any(|&slot| is_let_in(slot)) {
            return nodes.len();
        }
        let mut examined = 0;
        for part in [from, before] {
            let mut left = part;
            while let Some(next) = known.first_open(left) {
                let slot = left[next];
                examined += next + 1;
                left = &left[next + 1..];
                if known.look_at(view, shape, slot) == Status::Passes && is_let_in(slot) {
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
        let refused = |state: &TopologyState| state.gate(view).check(slot).is_err();
        if self.known.look_at(view, &self.shape, slot) != Status::Passes || self.state.as_ref().is_some_and(refused) {
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
        let refuses_before =
            |rejection: &&Rejection| self.state.as_ref().is_some_and(|state| state.refuses_before(rejection));
        if let Some(refusal) = self.known.refusal(&self.shape, slot, entry).filter(|refusal| !refuses_before(refusal)) {
            return Some(refusal.clone());
        }
        let state = self.state.as_ref()?;
        check_entry(view, &self.shape, state, slot, entry).err()
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
            self.tally(view, searched, searched.len() == nodes, &mut tally);
        } else {
            for rejection in searched.iter().filter_map(|&slot| self.rejection(view, slot, rivals)) {
                tally.add(&rejection.reasons, 1);
            }
        }
        tally.sum_up(nodes, nodes - searched.len())
    }

    /// Counts why nodes do not take the pod where no nominated pod is in its way.
    fn tally(&mut self, view: &ClusterView, searched: &[Slot], of_all: bool, tally: &mut Tally) {
        let Self { shape, state, known, .. } = self;
        let mut add = |refusal: &Rejection, nodes: usize| match state {
            Some(state) if state.refuses_before(refusal) => tally.add(&[Reason::ClaimInUse], nodes),
            _ => tally.add(&refusal.reasons, nodes),
        };
        if of_all {
            for (refusal, nodes) in known.refusals(view, shape) {
                add(refusal, nodes);
            }
        } else {
            for &slot in searched {
                let Some(entry) = view.entry(slot) else { continue };
                if let Some(refusal) = known.refusal(shape, slot, entry) {
                    add(refusal, 1);
                }
            }
        }
        let Some(state) = state else { return };
        let gate = state.gate(view);
        let mut ask = |slot: Slot| {
            if let Err(refusal) = gate.check(slot) {
                tally.add(&[refusal.reason], 1);
            }
        };
        if of_all {
            known.passing(view, shape).iter().for_each(|&slot| ask(slot));
        } else {
            searched.iter().filter(|&&slot| known.status(slot) == Status::Passes).for_each(|&slot| ask(slot));
        }
    }

    /// Counts anew what is kept in numbers, if that is asked for.
    pub(super) fn check(&self, check: Check) {
        if check.compares() {
            let known = &self.known;
            check.hold(known.is_coherent(), || format!("of nodes was kept what is not so: {known:?}"));
        }
    }

    /// The counts, the shape and the rest of what an attempt to evict needs.
    pub(super) fn parts(&mut self, view: &ClusterView) -> (Arc<PodShape>, &mut TopologyState) {
        (Arc::clone(&self.shape), self.state_for(view))
    }

    /// Fills in the totals of the feasible nodes. Each node passed [`Self::passes`] in this attempt.
    pub(super) fn totals(&mut self, config: &SchedulerConfig, view: &ClusterView, scratch: &mut Scratch) {
        let Scratch { feasible, totals, raw, known, own: item, .. } = scratch;
        item.clear();
        item.extend(feasible.iter().map(|&slot| self.known.scores(config, view, &self.shape, slot)));
        totals.clear();
        totals.extend(item.iter().map(|scores| scores.fixed));
        let make = |raw: &mut Vec<i64>, select: fn(&OwnScores) -> i64| {
            raw.clear();
            raw.extend(item.iter().map(select));
            scores::range(raw.iter().copied())
        };
        let range = make(raw, |scores| scores.soft_taints);
        let weight = Plugin::TaintToleration.weight();
        scores::add_weighted(totals, raw, range, known, weight, |raw| scores::in_proportion(raw, range.1, true));
        if !self.shape.spec.node_affinity.preferred.is_empty() {
            let range = make(raw, |scores| scores.preferred_affinity);
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
