//! The instance types that Karpenter knows, and the packer that is compiled from them.
//!
//! Compiling takes longer than most questions, and between two changes of prices, capacity errors, pools or daemons every
//! pass would do it again with the same result. So the packer is kept, and whatever changes a type gives it up.

use std::cell::RefCell;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use crate::domain::{NodePool, PodSpec};
use crate::policy::instance_types::InstanceType;
use crate::policy::packing::{Packer, PackerMemory, PackingSetup};

/// Instance types of each NodePool, by the pool's position.
#[derive(Default)]
pub(in crate::actors) struct TypeLists {
    lists: Vec<Vec<InstanceType>>,
    kept: RefCell<Option<Kept>>,
    generation: u64,
}

/// A packer at rest, with what else it was compiled from: kept alive, so that equal addresses mean the same things.
struct Kept {
    memory: PackerMemory,
    pools: Vec<Arc<NodePool>>,
    daemons: Vec<Arc<PodSpec>>,
}

impl TypeLists {
    pub(super) fn new(lists: Vec<Vec<InstanceType>>) -> Self {
        Self { lists, ..Self::default() }
    }

    /// The lists, to be changed: what was compiled from them no longer holds.
    pub(in crate::actors) fn change(&mut self) -> &mut [Vec<InstanceType>] {
        self.kept.take();
        self.generation += 1;
        &mut self.lists
    }

    /// Grows with every change: while it stays the same, so do the lists.
    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    /// A packer for `pools`, which `setup` was made of: compiled when it is first needed, or the one kept.
    pub(super) fn packer<'p>(&'p self, pools: &'p [Arc<NodePool>], setup: PackingSetup<'p>) -> LazyPacker<'p> {
        LazyPacker { lists: self, pools, setup, packer: None }
    }
}

impl Deref for TypeLists {
    type Target = [Vec<InstanceType>];

    fn deref(&self) -> &Self::Target {
        &self.lists
    }
}

impl fmt::Debug for TypeLists {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lists.fmt(f)
    }
}

/// A packer that is made when it is first asked for, and kept for the next pass when this one is over.
pub(super) struct LazyPacker<'p> {
    lists: &'p TypeLists,
    pools: &'p [Arc<NodePool>],
    /// What it is made of.
    pub(super) setup: PackingSetup<'p>,
    packer: Option<Packer<'p>>,
}

impl<'p> LazyPacker<'p> {
    /// The packer.
    pub(super) fn get(&mut self) -> &mut Packer<'p> {
        let Self { lists, pools, setup, packer } = self;
        packer.get_or_insert_with(|| {
            let kept = lists.kept.take().filter(|kept| same(&kept.pools, pools) && same(&kept.daemons, setup.daemons));
            Packer::resume(*setup, kept.map(|kept| kept.memory))
        })
    }
}

impl Drop for LazyPacker<'_> {
    fn drop(&mut self) {
        let Some(memory) = self.packer.take().and_then(Packer::into_memory) else { return };
        let (pools, daemons) = (self.pools.to_vec(), self.setup.daemons.to_vec());
        self.lists.kept.replace(Some(Kept { memory, pools, daemons }));
    }
}

/// Whether two lists hold the same things, not only equal ones.
fn same<T>(one: &[Arc<T>], other: &[Arc<T>]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| Arc::ptr_eq(one, other))
}
