//! Lives of nodes of which is known how many there were of each kind, and not when each came and went.
//!
//! Deviation: if only the number of nodes is recorded, the oldest node of a kind goes first. If one node of a kind
//! goes and another comes between two counts, they are one node that stayed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::history::NodeLife;
use crate::domain::{SimDuration, SimTime, Symbol};

/// What nodes have in common that are counted together, with their NodePool or node group.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Kind {
    pub origin: Symbol,
    pub instance_type: Option<Symbol>,
    pub zone: Option<Symbol>,
    pub capacity_type: Option<Symbol>,
}

/// How many nodes of each kind there were at instants. A kind that has no count at an instant at which others have one has no nodes.
#[derive(Debug, Default)]
pub(super) struct Counts {
    instants: BTreeSet<SimTime>,
    of_kind: BTreeMap<Kind, BTreeMap<SimTime, usize>>,
}

impl Counts {
    pub(super) fn put(&mut self, at: SimTime, kind: Kind, nodes: usize) {
        self.instants.insert(at);
        *self.of_kind.entry(kind).or_default().entry(at).or_default() += nodes;
    }

    /// The lives that these counts are of, in order of their beginning.
    pub(super) fn lives(&self) -> Vec<NodeLife> {
        let mut lives = Vec::new();
        for (kind, counts) in &self.of_kind {
            let mut there: VecDeque<usize> = VecDeque::new();
            for at in &self.instants {
                let count = counts.get(at).copied().unwrap_or(0);
                while there.len() > count {
                    if let Some(oldest) = there.pop_front() {
                        end(&mut lives[oldest], *at);
                    }
                }
                while there.len() < count {
                    there.push_back(lives.len());
                    lives.push(begun(kind, self.begin(*at)));
                }
            }
        }
        lives.sort_by_key(|node_life: &NodeLife| node_life.registered);
        lives
    }

    /// When nodes began that are first counted then: those of the first count were there before.
    fn begin(&self, at: SimTime) -> SimTime {
        if self.instants.first() == Some(&at) { at - SimDuration::from_secs(1) } else { at }
    }
}

fn begun(kind: &Kind, registered: SimTime) -> NodeLife {
    NodeLife {
        origin: kind.origin,
        instance_type: kind.instance_type,
        zone: kind.zone,
        capacity_type: kind.capacity_type,
        launched: None,
        running: None,
        registered: Some(registered),
        ready: None,
        deletion_requested: None,
        terminating: None,
        terminated: None,
        end: None,
    }
}

fn end(node_life: &mut NodeLife, at: SimTime) {
    node_life.terminated = Some(at);
}

#[cfg(test)]
mod tests {
    use super::{Counts, Kind};
    use crate::domain::{SimDuration, SimTime, Symbol};

    fn kind(instance_type: &str) -> Kind {
        Kind {
            origin: Symbol::new("default"),
            instance_type: Some(Symbol::new(instance_type)),
            zone: None,
            capacity_type: Some(Symbol::new("spot")),
        }
    }

    #[test]
    fn oldest_counted_node_of_type_goes_first() {
        let mut counts = Counts::default();
        for (minute, large, small) in [(0, 2, 0), (1, 3, 1), (2, 1, 1), (5, 0, 1)] {
            let at = SimTime::ZERO + SimDuration::from_secs(minute * 60);
            for (name, nodes) in [("large", large), ("small", small)] {
                if nodes > 0 {
                    counts.put(at, kind(name), nodes);
                }
            }
        }
        let lives: Vec<(&str, i64, Option<i64>)> = counts
            .lives()
            .iter()
            .map(|life| {
                let name = life.instance_type.map_or("", |name| name.as_str());
                (name, life.registered.unwrap().as_secs(), life.terminated.map(|at| at.as_secs()))
            })
            .collect();
        let wanted =
            [("large", -1, Some(120)), ("large", -1, Some(120)), ("large", 60, Some(300)), ("small", 60, None)];
        assert_eq!(lives, wanted);
    }
}
