//! The domains of one topology key: every value that some pool could give its nodes, and every value met on a node.
//!
//! Source: Karpenter core v1.13 `pkg/controllers/provisioning/scheduling/topology.go` (`buildDomainGroups`) and
//! `topologydomaingroup.go`.

use rustc_hash::FxHashMap;

use crate::packing::bits::{self, Bits};
use crate::packing::input::{PackingSetup, TieBreak};
use crate::packing::requirement_table::{RequirementId, RequirementTable};
use nodecast_model::domain::requirements::{Operator, Requirement, Requirements};
use nodecast_model::domain::symbol::Symbol;
use nodecast_model::domain::taints::{Toleration, first_untolerated};

/// The domains of one key, numbered.
pub(super) struct KeyDomains {
    pub(super) key: Symbol,
    pub(super) values: Vec<Symbol>,
    hashes: Vec<u64>,
    indices: FxHashMap<Symbol, usize>,
    /// For the domains that pools span: the pools, by position in the setup.
    makers: Vec<Vec<usize>>,
    singles: Vec<RequirementId>,
    several: FxHashMap<Bits, RequirementId>,
    /// By requirement, the domains that it allows, as far as somebody asked.
    masks: Vec<Option<Bits>>,
}

impl KeyDomains {
    /// The domains that the pools span: for each pool and each of its types every value that both allow, whatever the
    /// offerings.
    pub(super) fn spanned(
        key: Symbol,
        setup: &PackingSetup<'_>,
        spanning: &[usize],
        table: &mut RequirementTable,
    ) -> Self {
        let mut domains = Self {
            key,
            values: Vec::new(),
            hashes: Vec::new(),
            indices: FxHashMap::default(),
            makers: Vec::new(),
            singles: Vec::new(),
            several: FxHashMap::default(),
            masks: Vec::new(),
        };
        for &pool in spanning {
            let view = &setup.pools[pool];
            let mut requirements: Requirements = view.pool.requirements.iter().cloned().collect();
            requirements.extend(&Requirements::from_labels(&view.pool.labels));
            let requirement = requirements.get(key);
            let mut last: Option<&Requirement> = None;
            for instance_type in view.instance_types {
                let stated = instance_type.requirements.get(key);
                if stated.is_some() && stated == last {
                    continue;
                }
                last = stated;
                match (requirement, stated) {
                    (Some(requirement), Some(stated)) => domains.span(&requirement.intersection(stated), pool, table),
                    (Some(one), None) | (None, Some(one)) => domains.span(one, pool, table),
                    (None, None) => {}
                }
            }
            if let Some(requirement) = requirement.filter(|requirement| requirement.operator() == Operator::In) {
                domains.span(requirement, pool, table);
            }
        }
        domains
    }

    fn span(&mut self, requirement: &Requirement, pool: usize, table: &mut RequirementTable) {
        if requirement.complement {
            return;
        }
        for &value in &requirement.values {
            let domain = self.add(value, table);
            let makers = &mut self.makers[domain];
            if makers.last() != Some(&pool) {
                makers.push(pool);
            }
        }
    }

    /// The number of the domain with this value, added if it is new.
    pub(super) fn add(&mut self, value: Symbol, table: &mut RequirementTable) -> usize {
        if let Some(&domain) = self.indices.get(&value) {
            return domain;
        }
        let domain = self.values.len();
        self.values.push(value);
        self.hashes.push(text_hash(value.as_str()));
        self.makers.push(Vec::new());
        self.singles.push(table.intern_requirement(&Requirement::equals(self.key, value)));
        self.indices.insert(value, domain);
        self.masks.clear();
        domain
    }

    /// The domains that a pod with these tolerations could be given a node in, by a pool that fits.
    pub(super) fn tolerated<'a>(
        &'a self,
        setup: &'a PackingSetup<'_>,
        tolerations: Option<&'a [Toleration]>,
        fits: &'a dyn Fn(usize) -> bool,
    ) -> impl Iterator<Item = usize> + 'a {
        let spanned = (0..self.values.len()).filter(|&domain| !self.makers[domain].is_empty());
        spanned.filter(move |&domain| {
            let tolerates = |pool: usize| {
                tolerations
                    .is_none_or(|toleration| first_untolerated(&setup.pools[pool].pool.taints, toleration).is_none())
            };
            self.makers[domain].iter().any(|&pool| tolerates(pool) && fits(pool))
        })
    }

    /// Makes sure that [`Self::mask`] knows the requirement.
    pub(super) fn prepare(&mut self, requirement: Option<RequirementId>, table: &RequirementTable) {
        let Some(id) = requirement else { return };
        if self.masks.len() <= id.index() {
            self.masks.resize(id.index() + 1, None);
        }
        if self.masks[id.index()].is_some() {
            return;
        }
        let asked = table.requirement(id);
        let mut mask = bits::empty(self.values.len());
        for (domain, &value) in self.values.iter().enumerate() {
            if asked.has(value) {
                bits::insert(&mut mask, domain);
            }
        }
        self.masks[id.index()] = Some(mask);
    }

    /// The domains that a prepared requirement allows; `None` when everything is allowed.
    pub(super) fn mask(&self, requirement: Option<RequirementId>) -> Option<&[u64]> {
        requirement.and_then(|id| self.masks.get(id.index())?.as_deref())
    }

    /// The requirement that allows exactly this domain.
    pub(super) fn only(&self, domain: usize) -> RequirementId {
        self.singles[domain]
    }

    /// The requirement that allows exactly these domains.
    pub(super) fn several(&mut self, domains: &[u64], table: &mut RequirementTable) -> RequirementId {
        if let Some(&known) = self.several.get(domains) {
            return known;
        }
        let values = bits::iter(domains).map(|domain| self.values[domain]);
        let id = table.intern_requirement(&Requirement::new(self.key, Operator::In, values));
        self.several.insert(domains.into(), id);
        id
    }

    /// Whether domain `a` goes before `b` when nothing else tells them apart.
    pub(super) fn before(&self, a: usize, b: usize, ties: TieBreak, attempt: u64) -> bool {
        match ties {
            TieBreak::SmallestName => self.values[a] < self.values[b],
            TieBreak::Seeded { seed, pass } => {
                let rank = |domain: usize| {
                    let draw = mix(mix(mix(seed).wrapping_add(pass)).wrapping_add(attempt)) ^ self.hashes[domain];
                    (mix(draw), self.values[domain])
                };
                rank(a) < rank(b)
            }
        }
    }
}

/// FNV-1a, so that a domain's rank depends on its text alone.
fn text_hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The finalizer of SplitMix64.
const fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
