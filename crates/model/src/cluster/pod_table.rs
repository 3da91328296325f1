//! Pods by id: those that are there or were a moment ago as they are, those long gone by what remains of them.
//!
//! A run of weeks makes hundreds of thousands of pods, of which a few thousand are there at a time. Once no change that the journal holds
//! can name a pod that is gone, where it ran and when is of no use to anybody, and what made it is kept once for all that it made.

use std::collections::VecDeque;
use std::ops::{Index, IndexMut};

use rustc_hash::FxHashMap;

use super::state::{Pod, PodPhase};
use super::{Position, SpecId};
use crate::domain::{PodId, SimTime, WorkloadId};

/// Every pod there has been.
#[derive(Debug, Default)]
pub(super) struct PodTable {
    places: Vec<Place>,
    present: Vec<Pod>,
    /// Places among `present` that are to be used again.
    free: Vec<u32>,
    /// Pods that are gone and still as they were, each with the position of the change with which it went, in order.
    gone: VecDeque<(Position, PodId)>,
    past: Vec<Pod>,
    /// Where each of the past is.
    kinds: FxHashMap<Remains, u32>,
}

/// Where a pod is.
#[derive(Clone, Copy, Debug)]
enum Place {
    Present(u32),
    Past(u32),
}

/// What remains of a pod: its workload, its revision, what it asked for, and whether its containers had ended.
type Remains = (WorkloadId, u32, SpecId, bool);

impl PodTable {
    /// No pods, and room for so many.
    pub(super) fn with_capacity(pods: usize) -> Self {
        Self { places: Vec::with_capacity(pods), ..Self::default() }
    }

    /// How many there have been.
    pub(super) const fn len(&self) -> usize {
        self.places.len()
    }

    /// Adds a pod.
    pub(super) fn push(&mut self, pod: Pod) {
        let place = self.put(pod);
        self.places.push(place);
    }

    fn put(&mut self, pod: Pod) -> Place {
        if let Some(free) = self.free.pop() {
            self.present[free as usize] = pod;
            return Place::Present(free);
        }
        self.present.push(pod);
        Place::Present((self.present.len() - 1) as u32)
    }

    /// The pod has gone, which is the change before this position.
    pub(super) fn note_gone(&mut self, id: PodId, at: Position) {
        self.gone.push_back((at, id));
    }

    /// Of pods that had gone by this position only what remains is kept.
    pub(super) fn forget(&mut self, until: Position) {
        while let Some((_, id)) = self.gone.pop_front_if(|(at, _)| *at <= until) {
            let Place::Present(place) = self.places[id.index()] else { continue };
            let pod = &self.present[place as usize];
            let remains = (pod.workload, pod.revision, pod.spec_id, pod.finished);
            let past = &mut self.past;
            let kind = *self.kinds.entry(remains).or_insert_with(|| {
                past.push(Pod {
                    pinned: None,
                    phase: PodPhase::Gone,
                    node: None,
                    created: SimTime::ZERO,
                    started: None,
                    restarts: 0,
                    ready_since: None,
                    unschedulable: false,
                    deletion_requested: None,
                    deletion_ends: None,
                    ..pod.clone()
                });
                (past.len() - 1) as u32
            });
            self.places[id.index()] = Place::Past(kind);
            self.free.push(place);
        }
    }
}

impl Index<PodId> for PodTable {
    type Output = Pod;

    fn index(&self, id: PodId) -> &Pod {
        match self.places[id.index()] {
            Place::Present(place) => &self.present[place as usize],
            Place::Past(kind) => &self.past[kind as usize],
        }
    }
}

impl IndexMut<PodId> for PodTable {
    fn index_mut(&mut self, id: PodId) -> &mut Pod {
        // What is changed must not be what others share.
        if let Place::Past(kind) = self.places[id.index()] {
            let past = self.past[kind as usize].clone();
            self.places[id.index()] = self.put(past);
        }
        match self.places[id.index()] {
            Place::Present(place) => &mut self.present[place as usize],
            Place::Past(kind) => &mut self.past[kind as usize],
        }
    }
}
