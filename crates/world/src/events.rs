//! What happened, in order: a log that grows with the run and is read when it is over.
//!
//! An event takes about ten bytes here instead of sixty, and what is said of it is kept once where it is said again and again. What must
//! not live here: when something is worth an event (the operations of [`World`](super::World)).

use super::event_kind::EventKind;
use super::packed::{Place, Reader, Texts, put, put_signed};
use crate::domain::{CommandId, NodeId, PodId, SimTime, WorkloadId};

/// Something that happened, and why.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event<'r> {
    /// When.
    pub at: SimTime,
    /// What.
    pub kind: EventKind,
    /// The pod concerned.
    pub pod: Option<PodId>,
    /// The node concerned.
    pub node: Option<NodeId>,
    /// The workload concerned.
    pub workload: Option<WorkloadId>,
    /// The command of Karpenter's disruption concerned.
    pub command: Option<CommandId>,
    /// The cause, in the words of the decision.
    pub message: &'r str,
}

/// Events in order. Each is made anew as it is read.
#[derive(Clone, Default)]
pub struct Events {
    len: usize,
    blocks: Vec<Block>,
    messages: Texts,
    /// The kinds that have come, in the order in which they first came.
    kinds: Vec<EventKind>,
    /// For each kind its position among them and one; 0 for those that have not come.
    position: Vec<u8>,
    /// What the next event in the last block is told against.
    last: Before,
}

/// Events that are read from the first of them on.
#[derive(Clone)]
struct Block {
    /// How many events come before it.
    first: usize,
    bytes: Vec<u8>,
}

/// The event before, of which much is the same in the next; of nothing at the beginning of a block.
#[derive(Clone, Copy, Default)]
struct Before {
    at: i64,
    pod: i64,
}

/// Bytes after which a block ends.
const BLOCK: usize = 1 << 16;
/// The most bytes that an event takes: two of its own and seven numbers of ten at most.
const LONGEST: usize = 72;

const POD: u8 = 1;
const NODE: u8 = 2;
const WORKLOAD: u8 = 4;
const COMMAND: u8 = 8;
const MESSAGE: u8 = 16;
const LATER: u8 = 32;

impl Events {
    /// How many there are.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing happened.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends an event.
    pub fn push(&mut self, event: Event<'_>) {
        if self.blocks.last().is_none_or(|last| last.bytes.len() + LONGEST > BLOCK) {
            self.blocks.push(Block { first: self.len, bytes: Vec::with_capacity(BLOCK) });
            self.last = Before::default();
        }
        let kind = self.number_of(event.kind);
        let Some(Block { bytes: out, .. }) = self.blocks.last_mut() else { return };
        let at = event.at.as_micros();
        let is_told = [
            (POD, event.pod.is_some()),
            (NODE, event.node.is_some()),
            (WORKLOAD, event.workload.is_some()),
            (COMMAND, event.command.is_some()),
            (MESSAGE, !event.message.is_empty()),
            (LATER, at != self.last.at),
        ];
        out.push(kind);
        out.push(is_told.iter().filter(|(_, told)| *told).fold(0, |all, (flag, _)| all | flag));
        if at != self.last.at {
            put_signed(out, at.wrapping_sub(self.last.at));
            self.last.at = at;
        }
        if let Some(pod) = event.pod {
            put_signed(out, i64::from(pod.0) - self.last.pod);
            self.last.pod = i64::from(pod.0);
        }
        let others = [
            event.node.map(|node| node.0),
            event.workload.map(|workload| workload.0),
            event.command.map(|command| command.0),
        ];
        for id in others.into_iter().flatten() {
            put(out, u64::from(id));
        }
        if !event.message.is_empty() {
            put(out, self.messages.keep(event.message).number());
            put(out, event.message.len() as u64);
        }
        self.len += 1;
    }

    /// The number by which a kind is kept.
    fn number_of(&mut self, kind: EventKind) -> u8 {
        let index = kind as usize;
        if self.position.len() <= index {
            self.position.resize(index + 1, 0);
        }
        if self.position[index] == 0 {
            self.kinds.push(kind);
            // There are fewer kinds than numbers.
            self.position[index] = self.kinds.len() as u8;
        }
        self.position[index] - 1
    }

    /// All events in order.
    pub fn iter(&self) -> EventIter<'_> {
        self.since(0)
    }

    /// The events from a position on.
    pub fn since(&self, from: usize) -> EventIter<'_> {
        let from = from.min(self.len);
        let block = self.blocks.partition_point(|block| block.first <= from).saturating_sub(1);
        let first = self.blocks.get(block).map_or(0, |block| block.first);
        let mut iter = EventIter::new(self, block, self.len - first);
        for _ in first..from {
            iter.next();
        }
        iter
    }

    /// The event at a position.
    pub fn get(&self, position: usize) -> Option<Event<'_>> {
        self.since(position).next()
    }

    /// The last of those that are as asked for.
    pub fn rfind(&self, is_it: impl Fn(&Event<'_>) -> bool) -> Option<Event<'_>> {
        self.iter().filter(is_it).last()
    }
}

/// Events one after the other.
#[derive(Clone)]
pub struct EventIter<'r> {
    events: &'r Events,
    block: usize,
    rest: Reader<'r>,
    before: Before,
    left: usize,
}

impl<'r> EventIter<'r> {
    fn new(events: &'r Events, block: usize, left: usize) -> Self {
        let rest = events.blocks.get(block).map_or(&[][..], |block| block.bytes.as_slice());
        Self { events, block, rest: Reader::from_bytes(rest), before: Before::default(), left }
    }
}

impl<'r> Iterator for EventIter<'r> {
    type Item = Event<'r>;

    fn next(&mut self) -> Option<Event<'r>> {
        if self.left == 0 {
            return None;
        }
        if self.rest.is_empty() {
            *self = Self::new(self.events, self.block + 1, self.left);
        }
        self.left -= 1;
        let kind = *self.events.kinds.get(usize::from(self.rest.byte()))?;
        let told = self.rest.byte();
        if told & LATER != 0 {
            self.before.at = self.before.at.wrapping_add(self.rest.signed());
        }
        if told & POD != 0 {
            self.before.pod += self.rest.signed();
        }
        let pod = (told & POD != 0).then_some(PodId(self.before.pod as u32));
        let mut id = |flag: u8| (told & flag != 0).then(|| self.rest.number() as u32);
        let (node, workload, command) =
            (id(NODE).map(NodeId), id(WORKLOAD).map(WorkloadId), id(COMMAND).map(CommandId));
        let message = if told & MESSAGE == 0 {
            ""
        } else {
            let place = Place::numbered(self.rest.number());
            self.events.messages.at(place, self.rest.number() as usize)
        };
        Some(Event { at: SimTime::from_micros(self.before.at), kind, pod, node, workload, command, message })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for EventIter<'_> {}

impl<'r> IntoIterator for &'r Events {
    type Item = Event<'r>;
    type IntoIter = EventIter<'r>;

    fn into_iter(self) -> EventIter<'r> {
        self.iter()
    }
}

impl<'e> FromIterator<Event<'e>> for Events {
    fn from_iter<I: IntoIterator<Item = Event<'e>>>(events: I) -> Self {
        let mut all = Self::default();
        all.extend(events);
        all
    }
}

impl<'e> Extend<Event<'e>> for Events {
    fn extend<I: IntoIterator<Item = Event<'e>>>(&mut self, events: I) {
        events.into_iter().for_each(|event| self.push(event));
    }
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self).finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::event_kind::EventKind;
    use super::{Event, Events};
    use crate::domain::{CommandId, NodeId, PodId, SimTime, WorkloadId};

    const KINDS: [EventKind; 4] =
        [EventKind::PodEvicted, EventKind::ControlPlaneUpgraded, EventKind::ResizeError, EventKind::NodeReady];

    type Parts = (i64, usize, [Option<u32>; 4], String);

    fn event<'e>((at, kind, [pod, node, workload, command], message): &'e Parts) -> Event<'e> {
        Event {
            at: SimTime::from_micros(*at),
            kind: KINDS[*kind],
            pod: pod.map(PodId),
            node: node.map(NodeId),
            workload: workload.map(WorkloadId),
            command: command.map(CommandId),
            message,
        }
    }

    fn parts() -> impl Strategy<Value = Parts> {
        let id = || prop_oneof![Just(None), any::<u32>().prop_map(Some), (0_u32..9).prop_map(Some)];
        (any::<i64>(), 0..KINDS.len(), [id(), id(), id(), id()], "[a-c\u{e9}]{0,3}")
    }

    proptest! {
        #[test]
        fn events_are_read_as_they_were_written(written in prop::collection::vec(parts(), 0..60)) {
            let events: Events = written.iter().map(event).collect();
            prop_assert_eq!(events.len(), written.len());
            prop_assert!(events.iter().eq(written.iter().map(event)));
            for from in 0..=written.len() + 1 {
                let rest = written.iter().skip(from).map(event);
                prop_assert!(events.since(from).eq(rest));
                prop_assert_eq!(events.since(from).len(), written.len().saturating_sub(from));
            }
        }
    }

    #[test]
    fn a_long_log_is_read_from_anywhere() {
        let message = |number: u32| format!("{} of many", number % 5_000);
        let messages: Vec<String> = (0..40_000).map(message).collect();
        let at = |number: u32| Event {
            at: SimTime::from_micros(i64::from(number / 3) * 1_234_567),
            kind: KINDS[number as usize % 4],
            pod: Some(PodId(number.wrapping_mul(0x9e37_79b9) >> 8)),
            node: None,
            workload: Some(WorkloadId(number % 50)),
            command: None,
            message: &messages[number as usize],
        };
        let events: Events = (0..40_000).map(at).collect();
        assert!(events.blocks.len() > 5);
        assert!(events.iter().eq((0..40_000).map(at)));
        for position in [0, 1, 4_095, 12_345, 39_999] {
            assert_eq!(events.get(position), Some(at(position as u32)));
        }
        assert_eq!(events.get(40_000), None);
        assert_eq!(events.rfind(|event| event.workload == Some(WorkloadId(7))), Some(at(39_957)));
    }
}
