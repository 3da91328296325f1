//! Topology domains as dense numbers: for each label key that some pod's constraint or affinity term names, the values
//! that nodes have, numbered.

use rustc_hash::FxHashMap;

use super::cluster_view::Slot;
use nodecast_model::domain::symbol::well_known;
use nodecast_model::domain::{Labels, NodeId, Symbol};

/// A topology key, numbered in order of first use.
pub(super) type KeyIndex = u32;

/// The number that stands for "the node has no such label".
pub(super) const NO_DOMAIN: u32 = u32::MAX;

/// What makes a node belong to a domain.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum DomainLabel {
    /// Its label's value.
    Value(Symbol),
    /// It carries no hostname label, so that it is a domain of its own.
    Host(NodeId),
}

/// One topology key and the domains that nodes form by it.
#[derive(Clone, Debug)]
struct TopologyKey {
    name: Symbol,
    numbers: FxHashMap<DomainLabel, u32>,
    /// Nodes in each domain; a number whose count falls to zero is given out again.
    holders: Vec<u32>,
    free: Vec<u32>,
    /// The domain of each slot's node.
    of_slot: Vec<u32>,
}

/// All topology keys in use.
#[derive(Clone, Default, Debug)]
pub(super) struct TopologyKeys {
    keys: Vec<TopologyKey>,
    indices: FxHashMap<Symbol, KeyIndex>,
}

impl TopologyKeys {
    /// The index of `name`. A new key gets the domains of `nodes`.
    pub(super) fn index<'n>(
        &mut self,
        name: Symbol,
        nodes: impl Iterator<Item = (Slot, NodeId, &'n Labels)>,
    ) -> KeyIndex {
        if let Some(&index) = self.indices.get(&name) {
            return index;
        }
        let index = self.keys.len() as KeyIndex;
        let mut key = TopologyKey {
            name,
            numbers: FxHashMap::default(),
            holders: Vec::new(),
            free: Vec::new(),
            of_slot: Vec::new(),
        };
        for (slot, node, labels) in nodes {
            key.enter(slot, node, labels);
        }
        self.keys.push(key);
        self.indices.insert(name, index);
        index
    }

    /// The label key with this index.
    pub(super) fn name(&self, index: KeyIndex) -> Symbol {
        self.keys[index as usize].name
    }

    /// Enters the node in `slot` into its domain of every key.
    pub(super) fn enter(&mut self, slot: Slot, node: NodeId, labels: &Labels) {
        self.keys.iter_mut().for_each(|key| key.enter(slot, node, labels));
    }

    /// Takes the node in `slot`, which has these labels, out of its domains.
    pub(super) fn leave(&mut self, slot: Slot, node: NodeId, labels: &Labels) {
        self.keys.iter_mut().for_each(|key| key.leave(slot, node, labels));
    }

    /// The domains of the slots' nodes by one key.
    pub(super) fn domains(&self, key: KeyIndex) -> &[u32] {
        &self.keys[key as usize].of_slot
    }

    /// The domain of the node in `slot`, or [`NO_DOMAIN`].
    pub(super) fn domain(&self, key: KeyIndex, slot: Slot) -> u32 {
        self.keys[key as usize].of_slot.get(slot as usize).copied().unwrap_or(NO_DOMAIN)
    }
}

impl TopologyKey {
    /// The kubelet labels every node with its hostname. A node without that label (made-up node names are not interned)
    /// is a host of its own all the same.
    fn label(&self, node: NodeId, labels: &Labels) -> Option<DomainLabel> {
        match labels.get(self.name) {
            Some(value) => Some(DomainLabel::Value(value)),
            None if self.name == well_known::HOSTNAME => Some(DomainLabel::Host(node)),
            None => None,
        }
    }

    fn enter(&mut self, slot: Slot, node: NodeId, labels: &Labels) {
        if slot as usize >= self.of_slot.len() {
            self.of_slot.resize(slot as usize + 1, NO_DOMAIN);
        }
        let Some(label) = self.label(node, labels) else { return };
        let (holders, free) = (&mut self.holders, &mut self.free);
        let number = *self.numbers.entry(label).or_insert_with(|| {
            free.pop().unwrap_or_else(|| {
                holders.push(0);
                holders.len() as u32 - 1
            })
        });
        holders[number as usize] += 1;
        self.of_slot[slot as usize] = number;
    }

    fn leave(&mut self, slot: Slot, node: NodeId, labels: &Labels) {
        let domain = std::mem::replace(&mut self.of_slot[slot as usize], NO_DOMAIN);
        if domain == NO_DOMAIN {
            return;
        }
        let holders = &mut self.holders[domain as usize];
        *holders -= 1;
        if *holders == 0 {
            self.free.push(domain);
            if let Some(label) = self.label(node, labels) {
                self.numbers.remove(&label);
            }
        }
    }
}

/// The pods counted in each domain of one key.
#[derive(Clone, Default, Debug)]
pub(super) struct DomainCounts {
    counts: Vec<i64>,
    /// Counted nodes of each domain; a domain exists while it has any.
    nodes: Vec<u32>,
    /// Domains that exist.
    known: usize,
    /// Smallest count over the domains that exist, and how many have it; zero holders mean it must be looked up again.
    smallest: i64,
    smallest_holders: usize,
}

impl DomainCounts {
    /// Adds a node with `count` pods to `domain`, or takes it away if `sign` is -1.
    pub(super) fn add(&mut self, domain: u32, count: i64, sign: i64) {
        let at = domain as usize;
        if at >= self.counts.len() {
            self.counts.resize(at + 1, 0);
            self.nodes.resize(at + 1, 0);
        }
        let existed = self.nodes[at] > 0;
        let before = self.counts[at];
        self.counts[at] += sign * count;
        self.nodes[at] = if sign > 0 { self.nodes[at] + 1 } else { self.nodes[at].saturating_sub(1) };
        let exists = self.nodes[at] > 0;
        self.known = self.known + usize::from(exists) - usize::from(existed);
        if existed && before == self.smallest {
            self.smallest_holders = self.smallest_holders.saturating_sub(1);
        }
        if exists {
            self.offer_smallest(self.counts[at]);
        }
    }

    fn offer_smallest(&mut self, count: i64) {
        if self.smallest_holders == 0 {
            return; // To be looked up again by `settle`.
        }
        match count.cmp(&self.smallest) {
            std::cmp::Ordering::Less => (self.smallest, self.smallest_holders) = (count, 1),
            std::cmp::Ordering::Equal => self.smallest_holders += 1,
            std::cmp::Ordering::Greater => {}
        }
    }

    /// Looks the smallest count up again if the last domain that had it changed. Call after a batch of changes.
    pub(super) fn settle(&mut self) {
        if self.smallest_holders > 0 {
            return;
        }
        let existing = || self.counts.iter().zip(&self.nodes).filter(|(_, nodes)| **nodes > 0).map(|(count, _)| *count);
        self.smallest = existing().min().unwrap_or(0);
        let smallest = self.smallest;
        self.smallest_holders = existing().filter(|&count| count == smallest).count();
    }

    /// The pods counted, by domain.
    pub(super) fn counts(&self) -> &[i64] {
        &self.counts
    }

    /// Domains that exist.
    pub(super) fn known(&self) -> usize {
        self.known
    }

    /// The smallest count of any domain that exists, `None` without one. Valid after [`Self::settle`].
    pub(super) fn smallest(&self) -> Option<i64> {
        (self.known > 0).then_some(self.smallest)
    }
}

#[cfg(test)]
mod tests {
    use super::{DomainCounts, NO_DOMAIN, TopologyKeys};
    use nodecast_model::domain::symbol::well_known;
    use nodecast_model::domain::{Labels, NodeId, Symbol};

    #[test]
    fn numbers_of_empty_domains_are_given_out_again() {
        let mut keys = TopologyKeys::default();
        let zone = |name: &str| Labels::new().with(well_known::ZONE, name);
        let key = keys.index(well_known::ZONE, [(0, NodeId(0), &zone("a"))].into_iter());
        keys.enter(1, NodeId(1), &zone("b"));
        assert_eq!([0, 1].map(|slot| keys.domain(key, slot)), [0, 1]);
        keys.leave(0, NodeId(0), &zone("a"));
        keys.enter(2, NodeId(2), &zone("c"));
        assert_eq!([0, 1, 2].map(|slot| keys.domain(key, slot)), [NO_DOMAIN, 1, 0]);
    }

    #[test]
    fn node_without_hostname_label_is_its_host() {
        let mut keys = TopologyKeys::default();
        let host = keys.index(well_known::HOSTNAME, std::iter::empty());
        let rack = keys.index(Symbol::new("rack"), std::iter::empty());
        keys.enter(0, NodeId(7), &Labels::new());
        assert_eq!((keys.domain(host, 0), keys.domain(rack, 0)), (0, NO_DOMAIN));
    }

    #[test]
    fn the_smallest_count_follows_arrivals_and_departures() {
        let mut counts = DomainCounts::default();
        assert_eq!(counts.smallest(), None);
        counts.add(0, 3, 1);
        counts.add(1, 1, 1);
        counts.settle();
        assert_eq!((counts.smallest(), counts.known()), (Some(1), 2));
        counts.add(1, 1, -1);
        counts.settle();
        assert_eq!((counts.smallest(), counts.known()), (Some(3), 1));
        counts.add(2, 0, 1);
        counts.settle();
        assert_eq!((counts.smallest(), counts.counts()[0]), (Some(0), 3));
    }
}
