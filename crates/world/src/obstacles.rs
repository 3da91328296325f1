//! What kept nodes from being consolidated: counts by kind, which cost the same however long the run is.

use super::World;
use crate::domain::NodeId;
use nodecast_karpenter::disruption::Obstacle;

/// How often each obstacle was met, and by which nodes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Obstacles {
    /// By kind: times that a look of consolidation met it at a node.
    looks: Vec<u64>,
    /// By node: a bit for each kind that it met.
    nodes: Vec<u64>,
}

impl Obstacles {
    /// Every kind that was met, with how often and by how many nodes.
    pub fn met(&self) -> impl Iterator<Item = (Obstacle, u64, u64)> {
        Obstacle::ALL.iter().filter_map(|&kind| {
            let looks = self.looks.get(kind as usize).copied().filter(|&looks| looks > 0)?;
            let nodes = self.nodes.iter().filter(|&&mask| mask & bit(kind) != 0).count() as u64;
            Some((kind, looks, nodes))
        })
    }

    fn add(&mut self, node: NodeId, kind: Obstacle) {
        self.looks.resize(Obstacle::ALL.len(), 0);
        self.looks[kind as usize] += 1;
        if self.nodes.len() <= node.index() {
            self.nodes.resize(node.index() + 1, 0);
        }
        self.nodes[node.index()] |= bit(kind);
    }
}

const fn bit(kind: Obstacle) -> u64 {
    1 << kind as u32
}

impl World {
    /// A look of consolidation has left nodes alone.
    pub fn note_obstacles(&mut self, met: impl IntoIterator<Item = (NodeId, Obstacle)>) {
        for (node, kind) in met {
            self.record.obstacles.add(node, kind);
        }
    }
}
