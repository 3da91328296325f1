//! What nodes of a NodePool are made after: the pool and its node class, as they are now and as they were at each launch.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::setup::Setup;
use crate::domain::{NodeClass, NodeId, NodeOverlay, NodePool, ResourceName, Symbol};

fn stated(overlay: &NodeOverlay) -> impl Iterator<Item = ResourceName> + '_ {
    overlay.capacity.iter().map(|(name, _)| name)
}

/// A NodePool and its node class.
pub(super) type Template = (Arc<NodePool>, Arc<NodeClass>);

/// NodePools and node classes.
#[derive(Debug)]
pub(super) struct NodeTemplates {
    pools: BTreeMap<Symbol, Arc<NodePool>>,
    classes: BTreeMap<Symbol, Arc<NodeClass>>,
    of_node: BTreeMap<NodeId, Template>,
    overlays: Vec<NodeOverlay>,
    /// Resources that some overlay has stated.
    extended: BTreeSet<ResourceName>,
}

impl NodeTemplates {
    pub(super) fn new(setup: &Setup<'_>) -> Self {
        Self {
            pools: setup.node_pools.iter().map(|pool| (pool.name, Arc::new(pool.clone()))).collect(),
            classes: setup.node_classes.iter().map(|class| (class.name, Arc::new(class.clone()))).collect(),
            of_node: BTreeMap::new(),
            overlays: setup.node_overlays.clone(),
            extended: setup.node_overlays.iter().flat_map(stated).collect(),
        }
    }

    /// NodeOverlays as they are now.
    pub(super) fn overlays(&self) -> &[NodeOverlay] {
        &self.overlays
    }

    /// Overlays change.
    pub(super) fn replace_overlays(&mut self, overlays: &[NodeOverlay]) {
        self.extended.extend(overlays.iter().flat_map(stated));
        self.overlays = overlays.to_vec();
    }

    /// Resources that some overlay states or has stated.
    pub(super) fn extended(&self) -> impl Iterator<Item = ResourceName> + '_ {
        self.extended.iter().copied()
    }

    /// All pools with their classes, in order of name.
    pub(super) fn all(&self) -> Vec<Template> {
        self.pools.keys().filter_map(|&name| self.of_pool(name)).collect()
    }

    /// The pool of this name as it is now, and its class.
    pub(super) fn of_pool(&self, name: Symbol) -> Option<Template> {
        let pool = self.pools.get(&name)?;
        Some((Arc::clone(pool), Arc::clone(self.classes.get(&pool.node_class)?)))
    }

    /// The pools of this class.
    pub(super) fn pools_of(&self, class: Symbol) -> Vec<Symbol> {
        let of_class = self.pools.values().filter(|pool| pool.node_class == class);
        of_class.map(|pool| pool.name).collect()
    }

    /// A pool changes.
    pub(super) fn replace_pool(&mut self, pool: &NodePool) {
        self.pools.insert(pool.name, Arc::new(pool.clone()));
    }

    /// A class changes.
    pub(super) fn replace_class(&mut self, class: &NodeClass) {
        self.classes.insert(class.name, Arc::new(class.clone()));
    }

    /// A node is launched from the pool of this name.
    pub(super) fn launched(&mut self, node: NodeId, pool: Symbol) {
        if let Some(template) = self.of_pool(pool) {
            self.of_node.insert(node, template);
        }
    }

    /// What a node of this pool was made after; of one that was there before the run what its pool is now.
    pub(super) fn of_node(&self, node: NodeId, pool: Symbol) -> Option<Template> {
        self.of_node.get(&node).cloned().or_else(|| self.of_pool(pool))
    }
}
