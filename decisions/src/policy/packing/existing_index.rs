//! The existing nodes of a cluster in the order in which they are tried, with a quick way to the next one that has room,
//! and a way back to how they were.
//!
//! A pass only takes room away, so that nodes without room for a pod when they were compiled have none in any pass: what is known of that, and of
//! labels, which nothing changes, serves all passes. Whether a node that a pass has changed still has room is asked of the node.

use smallvec::SmallVec;

use super::bits::{self, Bits, GrowingBits};
use super::existing::ExistingNode;
use super::requirement_table::{RequirementId, RequirementTable};
use super::shapes::Shape;
use crate::domain::Symbol;

/// Nodes of one block share a bound on their room.
const BLOCK: usize = 8;

/// Blocks of which one word of a set of nodes is made.
const BLOCKS_PER_WORD: usize = 64 / BLOCK;

/// How many resources the bounds know: the first that were met, which are those that nearly every pod asks for.
const BOUNDED: usize = 4;

/// Existing nodes, and the states that the ones changed had before.
pub(super) struct ExistingNodes {
    nodes: Vec<ExistingNode>,
    /// By position in the cluster: position here.
    at: Vec<Option<u32>>,
    /// The room of each node as compiled, as far as the bounds know it, block by block: side by side, because every pod goes through many.
    /// Places after the last node have none.
    rooms: Vec<[Room; BLOCK]>,
    /// For each block the most room of any of its nodes, resource by resource.
    blocks: Vec<Room>,
    /// By shape, the nodes with room for such a pod as compiled, as far as somebody asked: sixty-four a word.
    roomy: Vec<SmallVec<[u64; 4]>>,
    /// By key, the nodes of each value of that label.
    by_label: Vec<(Symbol, Vec<(RequirementId, Bits)>)>,
    /// Nodes that changed, as they were.
    before: Vec<(usize, ExistingNode)>,
    changed: Vec<bool>,
    /// Positions of nodes that the question takes away.
    withdrawn: Vec<usize>,
}

/// How much of each bounded resource there is.
type Room = [i64; BOUNDED];

/// Less than any pod asks for, also of what it does not.
const NO_ROOM: Room = [i64::MIN; BOUNDED];

fn room_of(node: &ExistingNode) -> Room {
    std::array::from_fn(|index| node.room(index))
}

/// Written out: most blocks fail by the first amount, and a chain of iterators costs several times the comparison.
fn has_room(room: &Room, least: &Room) -> bool {
    room[0] >= least[0] && room[1] >= least[1] && room[2] >= least[2] && room[3] >= least[3]
}

/// The least room that a node for a pod has. What is not asked for fits everywhere, also where less than nothing is left of it.
fn least_room(amounts: &[i64]) -> Room {
    let mut least = NO_ROOM;
    for (least, &amount) in least.iter_mut().zip(amounts) {
        if amount > 0 {
            *least = amount;
        }
    }
    least
}

/// Which of sixty-four nodes have at least so much room.
fn word_with_room(place: usize, (blocks, rooms): (&[Room], &[[Room; BLOCK]]), least: &Room) -> u64 {
    let first = place * BLOCKS_PER_WORD;
    let of_word = first..blocks.len().min(first + BLOCKS_PER_WORD);
    let mut word = 0;
    for block in of_word.filter(|&block| has_room(&blocks[block], least)) {
        for (node, room) in rooms[block].iter().enumerate() {
            word |= u64::from(has_room(room, least)) << ((block - first) * BLOCK + node);
        }
    }
    word
}

/// The nodes of each value of a label.
fn by_value(nodes: &[ExistingNode], key: Symbol, table: &RequirementTable) -> Vec<(RequirementId, Bits)> {
    let mut found: Vec<(RequirementId, Bits)> = Vec::new();
    for (position, node) in nodes.iter().enumerate() {
        let Some(value) = node.label(key, table) else { continue };
        let known = found.iter().position(|own| own.0 == value).unwrap_or_else(|| {
            found.push((value, bits::empty(nodes.len())));
            found.len() - 1
        });
        bits::insert(&mut found[known].1, position);
    }
    found
}

impl ExistingNodes {
    /// `nodes` in the order in which they are tried, of a cluster of `size` nodes.
    pub(super) fn new(nodes: Vec<ExistingNode>, size: usize) -> Self {
        let mut at = vec![None; size];
        for (position, own) in nodes.iter().enumerate() {
            at[own.node] = Some(position as u32);
        }
        let changed = vec![false; nodes.len()];
        let mut blocks = vec![[0; BOUNDED]; nodes.len().div_ceil(BLOCK)];
        let mut rooms = vec![[NO_ROOM; BLOCK]; blocks.len()];
        for (position, own) in nodes.iter().enumerate() {
            rooms[position / BLOCK][position % BLOCK] = room_of(own);
        }
        for (most, rooms) in blocks.iter_mut().zip(&rooms) {
            *most = std::array::from_fn(|index| rooms.iter().map(|room| room[index]).max().unwrap_or(i64::MIN));
        }
        let (roomy, by_label) = (Vec::new(), Vec::new());
        Self { nodes, at, rooms, blocks, roomy, by_label, before: Vec::new(), changed, withdrawn: Vec::new() }
    }

    /// The first node at or after `from` that as compiled has room for such a pod and is in none of two sets.
    pub(super) fn next_open(&mut self, from: usize, shape: &Shape, closed: [&GrowingBits; 2]) -> Option<usize> {
        if self.roomy.len() <= shape.number {
            self.roomy.resize_with(shape.number + 1, SmallVec::new);
        }
        let known = &mut self.roomy[shape.number];
        let mut least = None;
        for place in from / 64..self.nodes.len().div_ceil(64) {
            while known.len() <= place {
                let least = least.get_or_insert_with(|| least_room(&shape.amounts));
                known.push(word_with_room(known.len(), (&self.blocks, &self.rooms), least));
            }
            let open = known[place] & !closed[0].word(place) & !closed[1].word(place);
            let open = if place == from / 64 { open & (u64::MAX << (from % 64)) } else { open };
            if open != 0 {
                return Some(place * 64 + open.trailing_zeros() as usize);
            }
        }
        None
    }

    /// The nodes whose label of this key has the value that it has on the node at a position; `None` if that has none.
    pub(super) fn with_label_of(&mut self, position: usize, key: Symbol, table: &RequirementTable) -> Option<&[u64]> {
        let value = self.nodes[position].label(key, table)?;
        let known = self.by_label.iter().position(|own| own.0 == key).unwrap_or_else(|| {
            self.by_label.push((key, by_value(&self.nodes, key, table)));
            self.by_label.len() - 1
        });
        self.by_label[known].1.iter().find(|own| own.0 == value).map(|own| &own.1[..])
    }

    /// The position of the node at a position of the cluster, if pods may be put on it.
    pub(super) fn position_of(&self, node: usize) -> Option<usize> {
        self.at.get(node).copied().flatten().map(|position| position as usize)
    }

    /// The first node at or after `from` that as compiled has room for `amounts`, as far as the bounds know.
    pub(super) fn next_with_room(&self, from: usize, amounts: &[i64]) -> Option<usize> {
        if from >= self.nodes.len() {
            return None;
        }
        let least = least_room(amounts);
        let first_block = from / BLOCK;
        for (further, most) in self.blocks.get(first_block..)?.iter().enumerate() {
            if has_room(most, &least) {
                let block = first_block + further;
                let rooms = &self.rooms[block];
                let start = from.saturating_sub(block * BLOCK);
                if let Some(place) = (0..BLOCK).find(|&place| place >= start && has_room(&rooms[place], &least)) {
                    return Some(block * BLOCK + place).filter(|&position| position < self.nodes.len());
                }
            }
        }
        None
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The node at a position.
    pub(super) fn get(&self, position: usize) -> &ExistingNode {
        &self.nodes[position]
    }

    /// Changes the node at a position; [`Self::revert`] undoes it.
    pub(super) fn change(&mut self, position: usize, how: impl FnOnce(&mut ExistingNode)) {
        if !self.changed[position] {
            self.changed[position] = true;
            self.before.push((position, self.nodes[position].clone()));
        }
        how(&mut self.nodes[position]);
    }

    /// Takes the node at `position` of the cluster away; nothing happens if no pod could be put on it.
    pub(super) fn withdraw(&mut self, position: usize) {
        if let Some(own) = self.position_of(position) {
            self.change(own, ExistingNode::withdraw);
            self.withdrawn.push(own);
        }
    }

    /// The pods put on each node, in the order in which nodes are tried.
    pub(super) fn placed(&mut self) -> Vec<(usize, Vec<usize>)> {
        let mut positions: Vec<usize> = self.before.iter().map(|own| own.0).collect();
        positions.sort_unstable();
        positions.retain(|&position| !self.nodes[position].pods.is_empty());
        positions
            .into_iter()
            .map(|position| {
                let node = &mut self.nodes[position];
                (node.node, std::mem::take(&mut node.pods))
            })
            .collect()
    }

    /// How many there are before a position that the question leaves there.
    pub(super) fn staying_before(&self, position: usize) -> u64 {
        let gone = self.withdrawn.iter().filter(|&&own| own < position).count();
        (position - gone) as u64
    }

    /// Undoes every change.
    pub(super) fn revert(&mut self) {
        self.withdrawn.clear();
        while let Some((position, node)) = self.before.pop() {
            self.nodes[position] = node;
            self.changed[position] = false;
        }
    }
}
