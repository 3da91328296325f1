//! The one list of what has changed in a cluster, in order and numbered.
//!
//! A change names what was touched and not how: who catches up looks it up as it is now, so that ten changes of a pod cost
//! one look, and a reader that sleeps loses nothing but time.

use crate::domain::{Check, NodeId, PodId, WorkloadId};

/// A place between two changes: everything before it has been seen.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Position(u64);

/// What was touched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// A pod came to be, or something about it changed that concerns no node's room: it started, became Ready, waits.
    Pod(PodId),
    /// The pod got a node, left it, ended, is on its way out, or asks for something else.
    Placement(PodId),
    /// A node came to be, is gone, or anything but its pods changed.
    Node(NodeId),
    /// A workload came to be, its replicas or its template changed.
    Workload(WorkloadId),
    /// The disruption budgets of pods.
    Budgets,
}

/// Changes held at most; then the older half is dropped. A reader who is so far behind does better to look at everything.
const LIMIT: usize = 1 << 16;

/// The same where what is kept is compared with what comes out anew: what rests on changes that are no longer held shows early then.
const LIMIT_CHECKED: usize = 1 << 10;

/// Changes in order. The oldest are dropped in time; a reader who has not read them is told so rather than served.
#[derive(Clone, Debug)]
pub struct Journal {
    /// The position before the first change still held.
    start: u64,
    changes: Vec<Change>,
    limit: usize,
}

impl Default for Journal {
    fn default() -> Self {
        Self { start: 0, changes: Vec::new(), limit: LIMIT }
    }
}

impl Journal {
    /// Says whether what is kept is compared with what comes out anew.
    pub(super) fn set_check(&mut self, check: Check) {
        self.limit = if check.compares() { LIMIT_CHECKED } else { LIMIT };
    }

    /// The position before the first change that is still held.
    pub const fn start(&self) -> Position {
        Position(self.start)
    }

    /// The position behind the last change.
    pub const fn end(&self) -> Position {
        Position(self.start + self.changes.len() as u64)
    }

    /// The changes behind `seen`, or `None` if that is too long ago to know.
    pub fn since(&self, seen: Position) -> Option<&[Change]> {
        let skip = usize::try_from(seen.0.checked_sub(self.start)?).ok()?;
        self.changes.get(skip..)
    }

    pub(super) fn push(&mut self, change: Change) {
        if self.changes.len() >= self.limit {
            let dropped = self.changes.len() - self.limit / 2;
            self.changes.drain(..dropped);
            self.start += dropped as u64;
        }
        self.changes.push(change);
    }
}

#[cfg(test)]
mod tests {
    use super::{Change, Journal, LIMIT};
    use crate::domain::PodId;

    #[test]
    fn journal_reader_detects_outdated_position() {
        let mut journal = Journal::default();
        let before = journal.end();
        journal.push(Change::Pod(PodId(1)));
        let between = journal.end();
        journal.push(Change::Placement(PodId(1)));
        assert_eq!(journal.since(before), Some(&[Change::Pod(PodId(1)), Change::Placement(PodId(1))][..]));
        assert_eq!(journal.since(between), Some(&[Change::Placement(PodId(1))][..]));
        assert_eq!(journal.since(journal.end()), Some(&[][..]));
        for pod in 0..LIMIT as u32 {
            journal.push(Change::Pod(PodId(pod)));
        }
        assert_eq!(journal.since(between), None);
        assert_eq!(journal.since(journal.end()), Some(&[][..]));
    }
}
