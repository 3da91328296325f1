//! The existing nodes of a cluster in the order in which they are tried, with a quick way to the next one that has room,
//! and a way back to how they were.

use super::existing::ExistingNode;

/// Nodes of one block share a bound on their room.
const BLOCK: usize = 8;

/// Blocks of one stretch share one, too: most of a large cluster is full.
const STRETCH: usize = 8;

/// How many resources the bounds know: the first that were met, which are those that nearly every pod asks for.
const BOUNDED: usize = 4;

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

/// The most of each resource that any of these has.
fn most_of(rooms: &[Room]) -> Room {
    let mut most = NO_ROOM;
    for room in rooms {
        for (most, &room) in most.iter_mut().zip(room) {
            *most = (*most).max(room);
        }
    }
    most
}

/// The room of places in a row, and a quick way to the next one with enough of it.
struct Rooms {
    /// Block by block, side by side, because every pod goes through many. Places after the last have none.
    rooms: Vec<[Room; BLOCK]>,
    /// For each block the most room of any of its places, resource by resource.
    blocks: Vec<Room>,
    /// For each stretch of blocks the most that it has ever had.
    stretches: Vec<Room>,
}

impl Rooms {
    fn new(all: impl ExactSizeIterator<Item = Room>) -> Self {
        let mut rooms = vec![[NO_ROOM; BLOCK]; all.len().div_ceil(BLOCK)];
        for (position, room) in all.enumerate() {
            rooms[position / BLOCK][position % BLOCK] = room;
        }
        let blocks: Vec<Room> = rooms.iter().map(|rooms| most_of(rooms)).collect();
        let stretches = blocks.chunks(STRETCH).map(most_of).collect();
        Self { rooms, blocks, stretches }
    }

    /// Takes over how much room the place at a position has now.
    fn set(&mut self, position: usize, room: Room) {
        let block = position / BLOCK;
        self.rooms[block][position % BLOCK] = room;
        self.blocks[block] = most_of(&self.rooms[block]);
        // Places lose room and get it back: a stretch rarely has more than ever before, and what it once had is a bound, too.
        let bound = &mut self.stretches[block / STRETCH];
        if !has_room(bound, &room) {
            *bound = most_of(&[*bound, room]);
        }
    }

    /// The first place at or after `from` that has so much room, unless nothing is asked for: then there is always the next one.
    fn next(&self, from: usize, least: &Room) -> Option<usize> {
        let (mut block, mut start) = (from / BLOCK, from % BLOCK);
        while let Some(most) = self.blocks.get(block) {
            if has_room(most, least) {
                let rooms = &self.rooms[block];
                // From the first place on, so that the loop can be unrolled.
                if let Some(place) = (0..BLOCK).find(|&place| place >= start && has_room(&rooms[place], least)) {
                    return Some(block * BLOCK + place);
                }
            }
            (block, start) = (block + 1, 0);
            if block.is_multiple_of(STRETCH) {
                while self.stretches.get(block / STRETCH).is_some_and(|most| !has_room(most, least)) {
                    block += STRETCH;
                }
            }
        }
        None
    }
}

/// Existing nodes, and the states that the ones changed had before.
pub(super) struct ExistingNodes {
    nodes: Vec<ExistingNode>,
    /// By position in the cluster: position here.
    at: Vec<Option<u32>>,
    /// The room of each node, as far as the bounds know it.
    rooms: Rooms,
    /// Nodes that changed, as they were.
    before: Vec<(usize, ExistingNode)>,
    changed: Vec<bool>,
    /// Positions of nodes that the question takes away.
    withdrawn: Vec<usize>,
}

impl ExistingNodes {
    /// `nodes` in the order in which they are tried, of a cluster of `size` nodes.
    pub(super) fn new(nodes: Vec<ExistingNode>, size: usize) -> Self {
        let mut at = vec![None; size];
        for (position, own) in nodes.iter().enumerate() {
            at[own.node] = Some(position as u32);
        }
        let changed = vec![false; nodes.len()];
        let rooms = Rooms::new(nodes.iter().map(room_of));
        Self { nodes, at, rooms, before: Vec::new(), changed, withdrawn: Vec::new() }
    }

    fn measure(&mut self, position: usize) {
        self.rooms.set(position, room_of(&self.nodes[position]));
    }

    /// The first node at or after `from` that has room for `amounts`, as far as the bounds know.
    pub(super) fn next_with_room(&self, from: usize, amounts: &[i64]) -> Option<usize> {
        // What is not asked for fits everywhere, also where less than nothing is left of it.
        let mut least = NO_ROOM;
        for (least, &amount) in least.iter_mut().zip(amounts) {
            if amount > 0 {
                *least = amount;
            }
        }
        self.rooms.next(from, &least).filter(|&position| position < self.nodes.len())
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

#[cfg(test)]
mod tests {
    use super::{BLOCK, NO_ROOM, Room, Rooms, STRETCH, has_room};

    #[test]
    fn the_next_place_with_room_is_the_one_that_going_through_them_finds() {
        let mut seed = 1_u32;
        let mut drawn = |below: u32| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            i64::from((seed >> 16) % below)
        };
        for places in [0, 1, BLOCK, BLOCK * STRETCH + 1, 3 * BLOCK * STRETCH + 5] {
            let mut all: Vec<Room> = (0..places).map(|_| [drawn(6), drawn(6), 0, 0]).collect();
            let mut rooms = Rooms::new(all.iter().copied());
            for round in 0..2_000 {
                if places > 0 {
                    let position = drawn(places as u32) as usize;
                    // First some fill up, then nearly all do, then most are emptied again.
                    all[position] = if round % 1_000 < 800 { [drawn(2), drawn(2), 0, 0] } else { [drawn(9), 4, 0, 0] };
                    rooms.set(position, all[position]);
                }
                let from = drawn(places as u32 + 3) as usize;
                let least = [drawn(9), drawn(5), i64::MIN, i64::MIN];
                let found = all.iter().skip(from).position(|room| has_room(room, &least)).map(|further| from + further);
                assert_eq!(rooms.next(from, &least), found, "{least:?} from {from} of {places}");
            }
            // Places that do not exist have all that is not asked for.
            assert!(rooms.next(places, &NO_ROOM).is_none_or(|position| position >= places));
        }
    }
}
