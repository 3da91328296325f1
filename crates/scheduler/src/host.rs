//! Which of the feasible nodes with the highest total is taken, and how many nodes are looked at.

use nodecast_model::domain::{KubernetesBehaviour, KubernetesVersion};

/// How a tie between nodes with the highest total is broken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TieBreak {
    /// The root of a binary heap over the feasible nodes in the order they were found: Kubernetes 1.35 and later.
    Heap,
    /// A uniform draw with this seed: Kubernetes up to 1.34. The caller gives each attempt its own seed.
    Random {
        /// The seed of the draw.
        seed: u64,
    },
    /// The first in the order they were found.
    First,
}

impl TieBreak {
    /// What a release does; `seed` is for those that draw.
    pub const fn of_version(version: KubernetesVersion, seed: u64) -> Self {
        if version.has(KubernetesBehaviour::SchedulerHeapTies) { Self::Heap } else { Self::Random { seed } }
    }

    /// The index of the node to take, given the totals in the order in which the nodes were found. `None` for no nodes.
    ///
    /// Source: Kubernetes 1.36 `pkg/scheduler/schedule_one.go`, `selectHost` and `nodeScoreHeap`; up to 1.34
    /// `selectHost` by reservoir sampling.
    pub fn pick(self, totals: &[i64]) -> Option<usize> {
        let mut scratch = Vec::new();
        self.pick_with(totals, &mut scratch)
    }

    /// [`Self::pick`] with a buffer to use again.
    pub(super) fn pick_with(self, totals: &[i64], scratch: &mut Vec<u32>) -> Option<usize> {
        match self {
            Self::First => {
                let best = totals.iter().max()?;
                totals.iter().position(|total| total == best)
            }
            Self::Random { seed } => reservoir(totals, seed),
            Self::Heap => heap_root(totals, scratch),
        }
    }
}

/// The root after making a heap of the totals, children moving up only if strictly greater, and of two children the
/// right one only if strictly greater than the left. What is below the root after that does not matter, so it is enough
/// to know for each position, from the last parent to the first, who would be the root of the heap below it.
fn heap_root(totals: &[i64], roots: &mut Vec<u32>) -> Option<usize> {
    roots.clear();
    roots.extend(0..totals.len() as u32);
    let total = |index: u32| totals[index as usize];
    for parent in (0..roots.len() / 2).rev() {
        let mut child = roots[2 * parent + 1];
        if let Some(&right) = roots.get(2 * parent + 2)
            && total(right) > total(child)
        {
            child = right;
        }
        if total(child) > totals[parent] {
            roots[parent] = child;
        }
    }
    roots.first().map(|&index| index as usize)
}

/// Each further node with the best total replaces the choice with probability one over how many there are so far.
fn reservoir(totals: &[i64], seed: u64) -> Option<usize> {
    let mut state = seed;
    let mut chosen: Option<usize> = None;
    let mut equal = 0_u64;
    for (index, total) in totals.iter().enumerate() {
        match chosen {
            Some(best) if *total < totals[best] => {}
            Some(best) if *total == totals[best] => {
                equal += 1;
                if next_random(&mut state).is_multiple_of(equal) {
                    chosen = Some(index);
                }
            }
            _ => (chosen, equal) = (Some(index), 1),
        }
    }
    chosen
}

/// SplitMix64.
fn next_random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// How many feasible nodes are looked for among `nodes`. `percentage` 0 adapts to the size of the cluster.
///
/// Source: Kubernetes 1.36 `pkg/scheduler/schedule_one.go`, `numFeasibleNodesToFind`.
pub fn feasible_nodes_to_find(nodes: usize, percentage: u8) -> usize {
    const LEAST: usize = 100;
    if nodes < LEAST || percentage >= 100 {
        return nodes;
    }
    let percentage = match percentage {
        0 => 50_usize.saturating_sub(nodes / 125).max(5),
        given => usize::from(given),
    };
    (nodes * percentage / 100).max(LEAST)
}

#[cfg(test)]
mod tests {
    use super::{TieBreak, feasible_nodes_to_find};

    #[test]
    fn heap_tie_break_does_not_always_pick_first() {
        for (totals, picked) in [
            (&[5, 5, 5][..], 0),
            (&[1, 5, 5], 1),
            (&[1, 2, 5, 5], 3),
            (&[1, 2, 3, 5, 5, 5], 3),
            (&[3, 1, 5, 2, 5, 5, 5], 4),
            (&[4, 5, 1, 1, 5, 5], 1),
        ] {
            assert_eq!(TieBreak::Heap.pick(totals), Some(picked), "{totals:?}");
        }
        assert_eq!(TieBreak::Heap.pick(&[]), None);
        assert_eq!(TieBreak::First.pick(&[1, 2, 5, 5]), Some(2));
    }

    #[test]
    fn heap_root_matches_built_heap() {
        let mut state = 5;
        for length in 1..200_usize {
            let totals: Vec<i64> = (0..length).map(|_| (super::next_random(&mut state) % 4) as i64).collect();
            let mut heap: Vec<usize> = (0..length).collect();
            for start in (0..length / 2).rev() {
                let mut parent = start;
                while 2 * parent + 1 < length {
                    let left = 2 * parent + 1;
                    let right = left + 1;
                    let right_is_greater = right < length && totals[heap[right]] > totals[heap[left]];
                    let child = if right_is_greater { right } else { left };
                    if totals[heap[child]] <= totals[heap[parent]] {
                        break;
                    }
                    heap.swap(parent, child);
                    parent = child;
                }
            }
            assert_eq!(TieBreak::Heap.pick(&totals), Some(heap[0]), "{totals:?}");
        }
    }

    #[test]
    fn random_tie_break_is_even_and_reproducible() {
        let totals = [7, 3, 7, 7];
        let mut picks = [0; 4];
        for seed in 0..3_000 {
            let pick = TieBreak::Random { seed }.pick(&totals).unwrap();
            assert_eq!(TieBreak::Random { seed }.pick(&totals), Some(pick));
            picks[pick] += 1;
        }
        assert_eq!(picks[1], 0);
        assert!([0, 2, 3].iter().all(|&index| (900..1_100).contains(&picks[index])), "{picks:?}");
    }

    #[test]
    fn large_clusters_are_sampled() {
        for (nodes, found) in [(50, 50), (100, 100), (200, 100), (250, 120), (1_000, 420), (5_000, 500), (6_000, 300)] {
            assert_eq!(feasible_nodes_to_find(nodes, 0), found, "{nodes} nodes");
        }
        assert_eq!(feasible_nodes_to_find(1_000, 30), 300);
        assert_eq!(feasible_nodes_to_find(1_000, 100), 1_000);
    }
}
