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
    /// The room of each node, as far as the bounds know it, block by block: side by side, because every pod goes through many. Places
    /// after the last node have none.
    rooms: Vec<[Room; BLOCK]>,
    /// For each block the most room of any of its nodes, resource by resource.
    blocks: Vec<Room>,
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

impl ExistingNodes {
    /// `nodes` in the order in which they are tried, of a cluster of `size` nodes.
    pub(super) fn new(nodes: Vec<ExistingNode>, size: usize) -> Self {
        let mut at = vec![None; size];
        for (position, own) in nodes.iter().enumerate() {
            at[own.node] = Some(position as u32);
        }
        let changed = vec![false; nodes.len()];
        let blocks = vec![[0; BOUNDED]; nodes.len().div_ceil(BLOCK)];
        let mut rooms = vec![[NO_ROOM; BLOCK]; blocks.len()];
        for (position, own) in nodes.iter().enumerate() {
            rooms[position / BLOCK][position % BLOCK] = room_of(own);
        }
        let mut index = Self { nodes, at, rooms, blocks, before: Vec::new(), changed, withdrawn: Vec::new() };
        for block in 0..index.blocks.len() {
            index.bound(block);
        }
        index
    }

    fn measure(&mut self, position: usize) {
        self.rooms[position / BLOCK][position % BLOCK] = room_of(&self.nodes[position]);
        self.bound(position / BLOCK);
    }

    fn bound(&mut self, block: usize) {
        let mut most = NO_ROOM;
        for room in &self.rooms[block] {
            for (most, &room) in most.iter_mut().zip(room) {
                *most = (*most).max(room);
            }
        }
        self.blocks[block] = most;
    }

    /// The first node at or after `from` that has room for `amounts`, as far as the bounds know.
    pub(super) fn next_with_room(&self, from: usize, amounts: &[i64]) -> Option<usize> {
        if from >= self.nodes.len() {
            return None;
        }
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
        self.measure(position);
    }

    /// Takes the node at `position` of the cluster away; nothing happens if no pod could be put on it.
    pub(super) fn withdraw(&mut self, position: usize) {
        if let Some(own) = self.at[position] {
            self.change(own as usize, ExistingNode::withdraw);
            self.withdrawn.push(own as usize);
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
            self.measure(position);
        }
    }
}
