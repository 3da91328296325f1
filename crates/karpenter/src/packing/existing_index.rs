//! The existing nodes of a cluster in the order in which they are tried, with a quick way to the next one that has room,
//! and a way back to how they were.

use super::existing::ExistingNode;

/// Nodes of one block share a bound on their room.
const BLOCK: usize = 8;

/// How many resources the bounds know: the first that were met, which are those that nearly every pod asks for.
const BOUNDED: usize = 4;

/// Existing nodes, and the states that the ones changed had before.
pub(super) struct ExistingNodes {
    nodes: Vec<ExistingNode>,
    /// By position in the cluster: position here.
    at: Vec<Option<u32>>,
    /// The room of each node before a question changes any, which never adds to it.
    rooms: Rooms,
    /// By the number of a shape: a cluster is asked dozens of questions about the same pods.
    found: Vec<SearchedNodes>,
    /// Nodes that changed, as they were.
    before: Vec<(usize, ExistingNode)>,
    changed: Vec<bool>,
    /// Positions of nodes that the question takes away.
    withdrawn: Vec<usize>,
}

/// How much of each bounded resource there is.
type FreeCapacity = [i64; BOUNDED];

/// Less than any pod asks for, also of what it does not.
const NO_ROOM: FreeCapacity = [i64::MIN; BOUNDED];

fn room_of(node: &ExistingNode) -> FreeCapacity {
    std::array::from_fn(|index| node.room(index))
}

/// Written out: most blocks fail by the first amount, and a chain of iterators costs several times the comparison.
fn has_room(room: &FreeCapacity, least: &FreeCapacity) -> bool {
    room[0] >= least[0] && room[1] >= least[1] && room[2] >= least[2] && room[3] >= least[3]
}

/// The room of nodes, as far as the bounds know it.
struct Rooms {
    /// Block by block: side by side, because every pod goes through many. Places after the last node have none.
    nodes: Vec<[FreeCapacity; BLOCK]>,
    /// For each block the most room of any of its nodes, resource by resource.
    blocks: Vec<FreeCapacity>,
}

impl Rooms {
    fn new(nodes: &[ExistingNode]) -> Self {
        let mut rooms = vec![[NO_ROOM; BLOCK]; nodes.len().div_ceil(BLOCK)];
        for (position, node) in nodes.iter().enumerate() {
            rooms[position / BLOCK][position % BLOCK] = room_of(node);
        }
        let most = |rooms: &[FreeCapacity; BLOCK]| {
            std::array::from_fn(|index| rooms.iter().map(|room| room[index]).max().unwrap_or(i64::MIN))
        };
        Self { blocks: rooms.iter().map(most).collect(), nodes: rooms }
    }

    /// The first at or after `from` with room for `amounts`.
    fn next(&self, from: usize, amounts: &[i64]) -> Option<usize> {
        // What is not asked for fits everywhere, also where less than nothing is left of it.
        let mut least = NO_ROOM;
        for (least, &amount) in least.iter_mut().zip(amounts) {
            if amount > 0 {
                *least = amount;
            }
        }
        let first_block = from / BLOCK;
        for (further, most) in self.blocks.get(first_block..)?.iter().enumerate() {
            if has_room(most, &least) {
                let block = first_block + further;
                let rooms = &self.nodes[block];
                let start = from.saturating_sub(block * BLOCK);
                if let Some(place) = (0..BLOCK).find(|&place| place >= start && has_room(&rooms[place], &least)) {
                    return Some(block * BLOCK + place);
                }
            }
        }
        None
    }
}

/// The nodes that have room for pods of a shape before a question changes any, as far as somebody has searched.
#[derive(Default)]
struct SearchedNodes {
    positions: Vec<u32>,
    searched: usize,
}

impl ExistingNodes {
    /// `nodes` in the order in which they are tried, of a cluster of `size` nodes.
    pub(super) fn new(nodes: Vec<ExistingNode>, size: usize) -> Self {
        let mut at = vec![None; size];
        for (position, node) in nodes.iter().enumerate() {
            at[node.node] = Some(position as u32);
        }
        let (changed, rooms) = (vec![false; nodes.len()], Rooms::new(&nodes));
        Self { nodes, at, rooms, found: Vec::new(), before: Vec::new(), changed, withdrawn: Vec::new() }
    }

    /// The first node at or after `from` that had room for `amounts` before anything changed, as far as the bounds know.
    pub(super) fn next_with_room(&self, from: usize, amounts: &[i64]) -> Option<usize> {
        self.rooms.next(from, amounts).filter(|&position| position < self.nodes.len())
    }

    /// The first node at or after `from` that has room for a pod of the shape with this number, which requests these `amounts`.
    pub(super) fn next_for(&mut self, shape: usize, from: usize, amounts: &[i64]) -> Option<usize> {
        if self.found.len() <= shape {
            self.found.resize_with(shape + 1, SearchedNodes::default);
        }
        let found = &mut self.found[shape];
        let mut next =
            if from == 0 { 0 } else { found.positions.partition_point(|&position| (position as usize) < from) };
        loop {
            let position = match found.positions.get(next) {
                Some(&position) => position as usize,
                None => {
                    let further = self.rooms.next(found.searched, amounts).filter(|&room| room < self.nodes.len());
                    found.searched = further.map_or(self.nodes.len(), |further| further + 1);
                    let position = further?;
                    found.positions.push(position as u32);
                    position
                }
            };
            if position >= from && (!self.changed[position] || self.nodes[position].has_room(amounts)) {
                return Some(position);
            }
            next += 1;
        }
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
        if let Some(item) = self.at[position] {
            self.change(item as usize, ExistingNode::withdraw);
            self.withdrawn.push(item as usize);
        }
    }

    /// The pods put on each node, in the order in which nodes are tried.
    pub(super) fn placed(&mut self) -> Vec<(usize, Vec<usize>)> {
        let mut positions: Vec<usize> = self.before.iter().map(|pair| pair.0).collect();
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
        let gone = self.withdrawn.iter().filter(|&&item| item < position).count();
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
