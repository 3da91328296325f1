//! The lives of pods: as structures while they go on, packed once they are over.
//!
//! A pod that is gone takes about forty bytes instead of five hundred. What must not live here: what happens to pods (the operations of
//! [`World`](super::World)).

use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::meters::ServingSpell;
use super::packed::{Blocks, Place, Reader, put, put_signed, put_wide};
use super::record::PodFacts;
use crate::domain::{NodeId, PodId, Resources, SimDuration, SimTime, WorkloadId};

/// So many pods that are over stay as they are, the latest: something may still become of them.
const LATEST: usize = 64;

/// Every pod there has been, by [`PodId`]. Facts of those that are gone are made anew each time they are read.
#[derive(Clone, Default)]
pub struct Pods {
    slots: Vec<Slot>,
    open: FxHashMap<PodId, PodFacts>,
    /// Pods that are over and not packed yet, the earliest first.
    over: VecDeque<PodId>,
    packed: Blocks,
    /// What pods have requested, each list once.
    requests: Vec<Arc<Resources>>,
    /// By where the list is in memory: its position among them.
    known: FxHashMap<usize, usize>,
    room: Vec<u8>,
}

/// The pods, however they are kept.
impl std::fmt::Debug for Pods {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Where the facts of a pod are: those of a pod that may still change have no place yet.
type Slot = Option<Place>;

impl Pods {
    /// No pods, and room for so many.
    pub fn with_capacity(pods: usize) -> Self {
        Self { slots: Vec::with_capacity(pods), ..Self::default() }
    }

    /// How many there have been.
    pub const fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there has been none.
    pub const fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Appends a pod.
    pub fn push(&mut self, facts: PodFacts) {
        let id = PodId::from_index(self.slots.len());
        self.slots.push(None);
        self.open.insert(id, facts);
    }

    /// What is known of a pod.
    pub fn get(&self, id: PodId) -> Option<PodFacts> {
        self.read(id, *self.slots.get(id.index())?, Parts::All)
    }

    /// What is known of a pod that there has been.
    ///
    /// # Panics
    /// If there has been no such pod.
    pub fn facts(&self, id: PodId) -> PodFacts {
        let Some(facts) = self.get(id) else { panic!("{id:?} of {} pods", self.slots.len()) };
        facts
    }

    /// The name of a pod.
    pub fn name(&self, id: PodId) -> Option<&str> {
        match *self.slots.get(id.index())? {
            None => self.open.get(&id).map(|facts| facts.name.as_str()),
            Some(place) => Some(name(&mut self.packed.at(place))),
        }
    }

    /// All pods, in order of creation.
    pub fn iter(&self) -> PodIter<'_> {
        PodIter { pods: self, next: 0, parts: Parts::All }
    }

    /// The same without their names, for those who go over all of them and ask for none: a name has a piece of memory of its own, and to get
    /// and give that back takes as long as to read all else.
    pub fn unnamed(&self) -> PodIter<'_> {
        PodIter { pods: self, next: 0, parts: Parts::Unnamed }
    }

    /// The facts of a pod, to be changed.
    ///
    /// # Panics
    /// If there has been no such pod.
    pub fn change(&mut self, id: PodId) -> &mut PodFacts {
        if let Some(place) = self.slots[id.index()] {
            let facts = self.unpack(self.packed.at(place), Parts::All);
            self.slots[id.index()] = None;
            self.open.insert(id, facts);
            self.over.push_back(id);
        }
        let Some(facts) = self.open.get_mut(&id) else { panic!("{id:?} is neither open nor packed") };
        facts
    }

    /// Nothing more is expected to become of the pod.
    pub(super) fn end(&mut self, id: PodId) {
        self.over.push_back(id);
        if self.over.len() > LATEST
            && let Some(oldest) = self.over.pop_front()
        {
            self.pack(oldest);
        }
    }

    fn read(&self, id: PodId, slot: Slot, parts: Parts) -> Option<PodFacts> {
        match slot {
            None => self.open.get(&id).cloned(),
            Some(place) => Some(self.unpack(self.packed.at(place), parts)),
        }
    }

    fn pack(&mut self, id: PodId) {
        // It was ended twice where it is packed already.
        let Some(facts) = self.open.remove(&id) else { return };
        let mut out = std::mem::take(&mut self.room);
        out.clear();
        self.write(&facts, &mut out);
        self.slots[id.index()] = Some(self.packed.push(&out));
        self.room = out;
    }

    /// The number of a list of requests.
    fn number_of(&mut self, requests: &Arc<Resources>) -> u64 {
        let all = &mut self.requests;
        // A list that is kept here stays where it is.
        let number = *self.known.entry(Arc::as_ptr(requests) as usize).or_insert_with(|| {
            all.push(Arc::clone(requests));
            all.len() - 1
        });
        number as u64
    }

    fn write(&mut self, facts: &PodFacts, out: &mut Vec<u8>) {
        let PodFacts {
            name,
            workload,
            revision,
            job,
            requests,
            requested_before,
            priority,
            placeholder,
            created,
            found,
            unschedulable,
            scheduled,
            started,
            ready,
            cut_off,
            deletion_requested,
            removed,
            node,
            evicted,
            grace,
            serving,
        } = facts;
        put(out, name.len() as u64);
        out.extend_from_slice(name.as_bytes());
        let instants = [unschedulable, scheduled, started, ready, cut_off, deletion_requested, removed];
        let told = instants.map(Option::is_some).into_iter();
        let told = told.chain([*placeholder, *found, *evicted, job.is_some(), node.is_some(), grace.is_some()]);
        put(out, told.enumerate().fold(0, |all, (bit, told)| all | (u64::from(told) << bit)));
        put(out, u64::from(workload.0));
        put(out, u64::from(*revision));
        put_signed(out, i64::from(*priority));
        put(out, self.number_of(requests));
        let mut clock = Clock::default();
        clock.put(out, *created);
        for instant in instants.into_iter().flatten() {
            clock.put(out, *instant);
        }
        for number in [*job, node.map(|node| node.0)].into_iter().flatten() {
            put(out, u64::from(number));
        }
        if let Some(grace) = grace {
            put_signed(out, grace.as_micros());
        }
        put(out, requested_before.len() as u64);
        for (until, before) in requested_before {
            clock.put(out, *until);
            put(out, self.number_of(before));
        }
        put(out, serving.len() as u64);
        for spell in serving {
            clock.put(out, spell.from);
            put_wide(out, spell.cpu_from);
            put(out, u64::from(spell.until.is_some()));
            if let Some((until, cpu)) = spell.until {
                clock.put(out, until);
                put_wide(out, cpu.wrapping_sub(spell.cpu_from));
            }
        }
    }

    fn unpack(&self, mut from: Reader<'_>, parts: Parts) -> PodFacts {
        let from = &mut from;
        let name = match parts {
            Parts::All => name(from).to_owned(),
            Parts::Unnamed => skip_name(from),
        };
        let told = from.number();
        let is_told = |bit: usize| told & (1 << bit) != 0;
        let (workload, revision) = (WorkloadId(from.number() as u32), from.number() as u32);
        let priority = from.signed() as i32;
        let requests = self.requests_at(from.number());
        let mut clock = Clock::default();
        let created = clock.next(from);
        let mut instants = [None; 7];
        for (bit, instant) in instants.iter_mut().enumerate() {
            *instant = is_told(bit).then(|| clock.next(from));
        }
        let [unschedulable, scheduled, started, ready, cut_off, deletion_requested, removed] = instants;
        let job = is_told(10).then(|| from.number() as u32);
        let node = is_told(11).then(|| NodeId(from.number() as u32));
        let grace = is_told(12).then(|| SimDuration::from_micros(from.signed()));
        let resized = from.number();
        let requested_before = (0..resized).map(|_| (clock.next(from), self.requests_at(from.number()))).collect();
        let spells = from.number();
        let serving = (0..spells).map(|_| spell(from, &mut clock)).collect();
        PodFacts {
            name,
            workload,
            revision,
            job,
            requests,
            requested_before,
            priority,
            placeholder: is_told(7),
            created,
            found: is_told(8),
            unschedulable,
            scheduled,
            started,
            ready,
            cut_off,
            deletion_requested,
            removed,
            node,
            evicted: is_told(9),
            grace,
            serving,
        }
    }

    fn requests_at(&self, number: u64) -> Arc<Resources> {
        self.requests.get(number as usize).cloned().unwrap_or_default()
    }
}

/// The name, with which everything packed begins.
fn name<'b>(from: &mut Reader<'b>) -> &'b str {
    let length = from.number() as usize;
    from.text(length)
}

/// Passes over the name; an empty one in its place.
fn skip_name(from: &mut Reader<'_>) -> String {
    let length = from.number() as usize;
    from.skip(length);
    String::new()
}

fn spell(from: &mut Reader<'_>, clock: &mut Clock) -> ServingSpell {
    let (start, cpu_from) = (clock.next(from), from.wide());
    let until = (from.number() != 0).then(|| (clock.next(from), cpu_from.wrapping_add(from.wide())));
    ServingSpell { from: start, cpu_from, until }
}

/// Instants, each told by how long after the one before it is.
#[derive(Default)]
struct Clock(i64);

impl Clock {
    fn put(&mut self, out: &mut Vec<u8>, at: SimTime) {
        put_signed(out, at.as_micros().wrapping_sub(self.0));
        self.0 = at.as_micros();
    }

    fn next(&mut self, from: &mut Reader<'_>) -> SimTime {
        self.0 = self.0.wrapping_add(from.signed());
        SimTime::from_micros(self.0)
    }
}

/// What of a packed pod is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Parts {
    All,
    /// All but the name, which is left empty.
    Unnamed,
}

/// Pods one after the other.
#[derive(Clone)]
pub struct PodIter<'r> {
    pods: &'r Pods,
    next: usize,
    parts: Parts,
}

impl Iterator for PodIter<'_> {
    type Item = PodFacts;

    fn next(&mut self) -> Option<PodFacts> {
        let slot = *self.pods.slots.get(self.next)?;
        let id = PodId::from_index(self.next);
        self.next += 1;
        self.pods.read(id, slot, self.parts)
    }

    fn nth(&mut self, skipped: usize) -> Option<PodFacts> {
        self.next = self.next.saturating_add(skipped);
        self.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.pods.slots.len().saturating_sub(self.next);
        (left, Some(left))
    }
}

impl ExactSizeIterator for PodIter<'_> {}

impl<'r> IntoIterator for &'r Pods {
    type Item = PodFacts;
    type IntoIter = PodIter<'r>;

    fn into_iter(self) -> PodIter<'r> {
        self.iter()
    }
}

impl FromIterator<PodFacts> for Pods {
    fn from_iter<I: IntoIterator<Item = PodFacts>>(pods: I) -> Self {
        let mut all = Self::default();
        all.extend(pods);
        all
    }
}

impl Extend<PodFacts> for Pods {
    fn extend<I: IntoIterator<Item = PodFacts>>(&mut self, pods: I) {
        pods.into_iter().for_each(|facts| self.push(facts));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::super::meters::ServingSpell;
    use super::super::record::PodFacts;
    use super::{LATEST, Pods};
    use crate::domain::{NodeId, PodId, Resources, SimDuration, SimTime, WorkloadId};

    fn instant() -> impl Strategy<Value = SimTime> {
        prop_oneof![any::<i64>(), 0_i64..3_000_000_000_000].prop_map(SimTime::from_micros)
    }

    fn spell() -> impl Strategy<Value = ServingSpell> {
        let until = prop::option::of((instant(), any::<i128>()));
        (instant(), any::<i128>(), until).prop_map(|(from, cpu_from, until)| ServingSpell { from, cpu_from, until })
    }

    fn pod() -> impl Strategy<Value = PodFacts> {
        let instants = prop::array::uniform7(prop::option::of(instant()));
        let numbers =
            (any::<u32>(), any::<u32>(), prop::option::of(any::<u32>()), any::<i32>(), prop::option::of(any::<u32>()));
        let lists =
            (0_usize..3, prop::collection::vec((instant(), 0_usize..3), 0..3), prop::collection::vec(spell(), 0..3));
        let rest =
            ("[a-z\u{e9}]{0,8}", prop::array::uniform3(any::<bool>()), instant(), prop::option::of(any::<i64>()));
        let amounts: [Arc<Resources>; 3] = [1, 2, 3].map(|milli| Resources::cpu_memory(milli, 1 << 30).into());
        (instants, numbers, lists, rest).prop_map(move |(instants, numbers, lists, rest)| {
            let [unschedulable, scheduled, started, ready, cut_off, deletion_requested, removed] = instants;
            let (workload, revision, job, priority, node) = numbers;
            let (requests, before, serving) = lists;
            let (name, [placeholder, found, evicted], created, grace) = rest;
            PodFacts {
                name,
                workload: WorkloadId(workload),
                revision,
                job,
                requests: Arc::clone(&amounts[requests]),
                requested_before: before.into_iter().map(|(at, item)| (at, Arc::clone(&amounts[item]))).collect(),
                priority,
                placeholder,
                created,
                found,
                unschedulable,
                scheduled,
                started,
                ready,
                cut_off,
                deletion_requested,
                removed,
                node: node.map(NodeId),
                evicted,
                grace: grace.map(SimDuration::from_micros),
                serving,
            }
        })
    }

    proptest! {
        #[test]
        fn facts_are_the_same_once_they_are_packed(written in prop::collection::vec(pod(), 1..200), again in any::<prop::sample::Index>()) {
            let mut pods: Pods = written.iter().cloned().collect();
            let ids = || (0..written.len()).map(PodId::from_index);
            ids().for_each(|id| pods.end(id));
            prop_assert_eq!(pods.open.len(), written.len().min(LATEST));
            let same = |pods: &Pods| pods.iter().zip(&written).all(|(item, was)| format!("{item:?}") == format!("{was:?}"));
            prop_assert!(same(&pods));
            prop_assert!(ids().zip(&written).all(|(id, was)| pods.name(id) == Some(was.name.as_str())));
            // Pods that are not packed keep theirs.
            let unnamed = |item: &PodFacts, was: &PodFacts| {
                format!("{item:?}") == format!("{:?}", PodFacts { name: item.name.clone(), ..was.clone() })
            };
            prop_assert!(pods.unnamed().zip(&written).all(|(item, was)| unnamed(&item, was)));
            prop_assert_eq!(pods.unnamed().count(), written.len());
            let id = PodId::from_index(again.index(written.len()));
            pods.change(id).evicted ^= true;
            prop_assert_eq!(pods.facts(id).evicted, !written[id.index()].evicted);
            pods.change(id).evicted ^= true;
            ids().for_each(|id| pods.end(id));
            prop_assert!(same(&pods));
            prop_assert_eq!(pods.iter().nth(written.len()).is_none(), true);
        }
    }
}
