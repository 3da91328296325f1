//! The instance types that Karpenter knows, and the packer that is compiled from them.
//!
//! Compiling takes longer than most questions, and between two changes of pools, daemons or labels of types every pass would
//! do it again with the same result. So the packer is kept, and told what has changed of prices, availability and amounts.

use std::cell::{OnceCell, RefCell};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::unavailable::OfferingKey;
use crate::instance_types::{InstanceType, Offering};
use crate::packing::{OffersChanged, Packer, PackerMemory, PackingSetup, TypesChanged};
use crate::selection::{Choice, is_compatible, is_exotic};
use nodecast_model::domain::{NodePool, PodSpec, Requirements, Symbol, well_known};

/// Instance types of each NodePool, by the pool's position.
#[derive(Default)]
pub(super) struct TypeLists {
    lists: Vec<Vec<InstanceType>>,
    kept: RefCell<Option<PackerCache>>,
    changes: Changes,
    /// By the pool's position, from when somebody first asks.
    labels: Vec<OnceCell<LabelFacts>>,
}

/// Which types have changed in offers or amounts, as a journal: who follows it keeps the position up to which it has read.
///
/// Most changes are those of a few offerings, after a launch without capacity or when such errors are forgotten, and with 1,300 types
/// in a list making everything anew that rests on offers was most of the work of an outage.
#[derive(Default)]
struct Changes {
    /// The position of the first entry.
    start: u64,
    /// Pool and type by position.
    entries: Vec<(usize, usize)>,
}

/// Changes that are remembered, before who has not read them is told to look at everything.
const KEPT_CHANGES_MAX: usize = 10_000;

impl Changes {
    fn end(&self) -> u64 {
        self.start + self.entries.len() as u64
    }

    fn note(&mut self, pool: usize, at: usize) {
        if self.entries.len() >= KEPT_CHANGES_MAX {
            self.note_all();
        }
        self.entries.push((pool, at));
    }

    /// Anything may have changed: nobody's position holds any more.
    fn note_all(&mut self) {
        self.start = self.end() + 1;
        self.entries.clear();
    }

    fn since(&self, seen: u64) -> Option<&[(usize, usize)]> {
        let from = usize::try_from(seen.checked_sub(self.start)?).ok()?;
        self.entries.get(from..)
    }
}

/// What follows from the labels and names of a list's types: a change of them makes it stale, nothing else does.
#[derive(Clone)]
struct LabelFacts {
    architectures: Vec<Symbol>,
    /// How many of these are different.
    different_architectures: usize,
    /// Where the type of a name stands.
    positions: FxHashMap<Symbol, usize>,
    exotic: Vec<bool>,
    /// Every capacity type that some type is offered with, available or not.
    capacity_types: Vec<Symbol>,
    /// Which types can satisfy the requirements of claims.
    compatible: RefCell<FxHashMap<Arc<Requirements>, Arc<[bool]>>>,
}

/// Sets of requirements remembered of one list, before all are forgotten: claims that all differ would let them grow without
/// end.
const KEPT_REQUIREMENTS_MAX: usize = 1_000;

impl LabelFacts {
    fn new(types: &[InstanceType]) -> Self {
        let architecture = |entry: &InstanceType| {
            let stated = entry.requirements.get(well_known::ARCH);
            stated.and_then(|item| item.values.first().copied()).unwrap_or(well_known::AMD64)
        };
        let mut capacity_types = Vec::new();
        for offering in types.iter().flat_map(|entry| &entry.offerings) {
            if !capacity_types.contains(&offering.capacity_type) {
                capacity_types.push(offering.capacity_type);
            }
        }
        let architectures: Vec<Symbol> = types.iter().map(architecture).collect();
        let different: FxHashSet<Symbol> = architectures.iter().copied().collect();
        Self {
            architectures,
            different_architectures: different.len(),
            positions: types.iter().enumerate().map(|(at, entry)| (entry.name, at)).collect(),
            exotic: types.iter().map(is_exotic).collect(),
            capacity_types,
            compatible: RefCell::default(),
        }
    }

    /// Which of `types`, the facts' list, can satisfy `requirements`.
    fn compatible(&self, types: &[InstanceType], requirements: &Arc<Requirements>) -> Arc<[bool]> {
        let mut known = self.compatible.borrow_mut();
        if known.len() > KEPT_REQUIREMENTS_MAX {
            known.clear();
        }
        let item = known.entry(Arc::clone(requirements));
        Arc::clone(item.or_insert_with(|| types.iter().map(|entry| is_compatible(entry, requirements)).collect()))
    }
}

/// A packer at rest, with what else it was compiled from: kept alive, so that equal addresses mean the same things.
struct PackerCache {
    memory: PackerMemory,
    /// The position in the journal of changes as of which it holds.
    seen: u64,
    /// Whether amounts have changed since.
    amounts: bool,
    pools: Vec<Arc<NodePool>>,
    daemons: Vec<Arc<PodSpec>>,
}

impl TypeLists {
    pub(super) fn new(lists: Vec<Vec<InstanceType>>) -> Self {
        let labels = vec![OnceCell::new(); lists.len()];
        Self { lists, labels, ..Self::default() }
    }

    /// The lists, to be changed in anything: what was worked out from them no longer holds.
    pub(super) fn change(&mut self) -> &mut [Vec<InstanceType>] {
        self.kept.take();
        self.labels.fill_with(OnceCell::new);
        self.changes.note_all();
        &mut self.lists
    }

    /// The lists, to be changed in the prices and the availability of offerings and in nothing else.
    pub(super) fn change_offers(&mut self) -> &mut [Vec<InstanceType>] {
        self.changes.note_all();
        &mut self.lists
    }

    /// Changes these offerings, wherever they are listed, in price and availability and in nothing else.
    pub(super) fn change_offers_of(&mut self, offerings: &[OfferingKey], change: impl Fn(Symbol, &mut Offering)) {
        for pool in 0..self.lists.len() {
            for &(name, zone, bought) in offerings {
                let Some(&at) = self.labels(pool).positions.get(&name) else { continue };
                let is = |offering: &&mut Offering| {
                    offering.zone == zone
                        && offering.reservation.map_or(offering.capacity_type, |reservation| reservation.id) == bought
                };
                self.lists[pool][at].offerings.iter_mut().filter(is).for_each(|offering| change(name, offering));
                self.changes.note(pool, at);
            }
        }
    }

    /// Changes a pool's list in what nodes of one type have and offer to pods, accelerators excepted, and in nothing else.
    pub(super) fn change_amounts<T>(
        &mut self,
        pool: usize,
        name: Symbol,
        change: impl FnOnce(&mut [InstanceType]) -> T,
    ) -> T {
        if let Some(kept) = self.kept.get_mut() {
            kept.amounts = true;
        }
        if let Some(&at) = self.labels(pool).positions.get(&name) {
            self.changes.note(pool, at);
        }
        change(&mut self.lists[pool])
    }

    /// Where the journal of changes ends: the position of who has read it all.
    pub(super) fn changes_end(&self) -> u64 {
        self.changes.end()
    }

    /// Types, as pool and position in its list, that have changed in offers or amounts since somebody read the journal up to
    /// `seen`, some perhaps more than once; `None` if that may be any.
    pub(super) fn changed_since(&self, seen: u64) -> Option<&[(usize, usize)]> {
        self.changes.since(seen)
    }

    /// What a packer is told that has rested since `seen`.
    fn changed(&self, seen: u64, amounts: bool) -> TypesChanged {
        let offers = match self.changed_since(seen) {
            None => OffersChanged::All,
            Some(types) => OffersChanged::Of(types.to_vec()),
        };
        TypesChanged { offers, amounts }
    }

    fn labels(&self, pool: usize) -> &LabelFacts {
        self.labels[pool].get_or_init(|| LabelFacts::new(&self.lists[pool]))
    }

    /// Some types of a pool's list, in its order, for a claim with these requirements.
    pub(super) fn choices(&self, pool: usize, types: &[u32], requirements: &Arc<Requirements>) -> Vec<Choice<'_>> {
        let (list, facts) = (&self.lists[pool], self.labels(pool));
        let compatible = facts.compatible(list, requirements);
        let choice = |at: usize| Choice { entry: &list[at], compatible: compatible[at], exotic: facts.exotic[at] };
        // From one to its neighbour memory is read faster than here and there, and no launch depends on the order.
        let mut types = types.to_vec();
        types.sort_unstable();
        types.into_iter().map(|at| choice(at as usize)).collect()
    }

    /// The architectures of some types of a pool's list, each once.
    pub(super) fn architectures(&self, pool: usize, types: &[u32]) -> Vec<Symbol> {
        let facts = self.labels(pool);
        let mut found = Vec::new();
        for &at in types {
            let architecture = facts.architectures[at as usize];
            if found.last() != Some(&architecture) && !found.contains(&architecture) {
                found.push(architecture);
                if found.len() == facts.different_architectures {
                    break;
                }
            }
        }
        found
    }

    /// Every capacity type that some type of a pool's list is offered with, available or not.
    pub(super) fn capacity_types(&self, pool: usize) -> &[Symbol] {
        &self.labels(pool).capacity_types
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
            Packer::resume(*setup, kept.map(|kept| (kept.memory, lists.changed(kept.seen, kept.amounts))))
        })
    }
}

impl Drop for LazyPacker<'_> {
    fn drop(&mut self) {
        let Some(memory) = self.packer.take().and_then(Packer::into_memory) else { return };
        let (pools, daemons) = (self.pools.to_vec(), self.setup.daemons.to_vec());
        let seen = self.lists.changes_end();
        self.lists.kept.replace(Some(PackerCache { memory, seen, amounts: false, pools, daemons }));
    }
}

/// Whether two lists hold the same things, not only equal ones.
pub(super) fn same<T>(one: &[Arc<T>], other: &[Arc<T>]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| Arc::ptr_eq(one, other))
}
