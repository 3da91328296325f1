//! The instance types of one provider list, compiled: which of them a set of requirements leaves, which have an offering,
//! which have room.
//!
//! Source: Karpenter core v1.13 `pkg/controllers/provisioning/scheduling/nodeclaim.go`,
//! `filterInstanceTypesByRequirements`: three independent criteria, the survivors meet all of them.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::bits::{self, Bits};
use super::errors::CriteriaMissed;
use super::requirement_table::{RequirementId, RequirementTable, SetId};
use super::resource_table::{self, ResourceTable};
use crate::instance_types::{InstanceType, Offering, capacity_type_key};
use nodecast_model::domain::requirements::{Operator, Requirement, Requirements};
use nodecast_model::domain::symbol::{Symbol, well_known};
use nodecast_model::domain::{HourlyRate, KarpenterVersion, ResourceName};

/// What a set of requirements leaves of a table.
struct SetMasks {
    /// Types whose labels can satisfy the set.
    compatible: Bits,
    /// Types with an available offering that the set allows.
    offered: Bits,
    /// Types that are both.
    both: Bits,
    /// Offering kinds that the set allows.
    kinds: Vec<usize>,
}

/// Offerings that agree in everything but type and price.
struct OfferingKind {
    zone: Symbol,
    capacity_type: Symbol,
    zone_id: Option<Symbol>,
    reservation: Option<Symbol>,
    /// As requirements.
    set: SetId,
    /// Types that have it available.
    available: Bits,
}

/// What has changed about instance types since a packer was put to rest. Their labels, their order and what kinds of offerings
/// each has must not have changed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TypesChanged {
    /// Prices or the availability of offerings.
    pub offers: OffersChanged,
    /// What nodes of a type offer to pods.
    pub amounts: bool,
}

/// Of which types prices or the availability of offerings have changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OffersChanged {
    /// Of these, each as the position of its pool in the setup and its own in the pool's list; some may stand here twice.
    Of(Vec<(usize, usize)>),
    /// Of any.
    All,
}

impl Default for OffersChanged {
    fn default() -> Self {
        Self::Of(Vec::new())
    }
}

/// Amounts of one resource: for each different amount, in descending order, the types that have at least that much.
struct Levels {
    /// The amount of each type.
    column: Box<[i64]>,
    amounts: Vec<i64>,
    at_least: Vec<Bits>,
}

impl Levels {
    /// The first level, from one on, that one of `types` reaches; the number of levels without one.
    ///
    /// Each level's set holds the one before, so it can be found by halves: with a level for nearly every size of machine, going
    /// through them was a third of launching two thousand nodes of one small type. Mostly it is the very first, since a claim has
    /// lost only small types, so the search begins there in growing steps.
    fn first_with(&self, types: &[u64], from: usize) -> usize {
        let without = |least: &Bits| !bits::intersects(types, least);
        let (mut low, mut step) = (from, 1);
        while self.at_least.get(low + step - 1).is_some_and(without) {
            low += step;
            step *= 2;
        }
        let high = self.at_least.len().min(low + step - 1);
        low.min(high) + self.at_least[low.min(high)..high].partition_point(without)
    }

    /// The first level that is less than `amount`.
    fn below(&self, amount: i64) -> usize {
        self.amounts.partition_point(|&level| level >= amount)
    }

    /// The largest amount of any of `types`, none of which has more than `at_most`.
    fn most_of(&self, types: &[u64], at_most: i64) -> MostRoom {
        let from = self.amounts.partition_point(|&amount| amount > at_most);
        let level = self.first_with(types, from);
        let common = self.at_least.get(level).and_then(|least| bits::first_common(types, least));
        common.map_or(MostRoom { amount: i64::MIN, of: usize::MAX }, |of| MostRoom { amount: self.amounts[level], of })
    }
}

/// What is asked of instance types.
#[derive(Clone, Copy)]
pub(super) struct TypeQuery<'q> {
    /// Requirements, which have been prepared.
    pub(super) set: SetId,
    /// Requests.
    pub(super) requests: &'q [i64],
    /// Requests for which all types that are asked surely have room; nothing is known beyond the end.
    pub(super) met: &'q [i64],
}

/// The largest allocatable amount of a resource among some types.
#[derive(Clone, Copy)]
pub(super) struct MostRoom {
    /// The amount.
    pub(super) amount: i64,
    /// A type that has it.
    of: usize,
}

type StatedLabels = FxHashMap<Symbol, Vec<(RequirementId, Bits)>>;

/// Compiled instance types.
pub(super) struct TypeTable<'a> {
    /// The types as given.
    pub(super) types: &'a [InstanceType],
    /// For each label key, the different requirements that types state, with the types stating them.
    stated: StatedLabels,
    /// For each requirement asked about, the types that can satisfy it.
    satisfying: FxHashMap<RequirementId, Bits>,
    kinds: Vec<OfferingKind>,
    /// Which kind each offering is, by type.
    kind_of: Vec<Vec<usize>>,
    masks: Vec<SetMasks>,
    mask_of: Vec<u32>,
    levels: Vec<Levels>,
    /// Types without a negative amount.
    usable: Bits,
    /// Whether any offering is a reservation's.
    pub(super) has_reservations: bool,
    /// The place of each type in order of name: comparing names is slow.
    pub(super) name_ranks: Box<[u32]>,
    /// Their names, together: the types lie apart.
    pub(super) names: Box<[Symbol]>,
}

const UNKNOWN: u32 = u32::MAX;

impl<'a> TypeTable<'a> {
    /// Compiles `types`; `capacity_type` is the label under which the release knows the capacity type. `others` were compiled before: their
    /// types mostly have the very same labels.
    pub(super) fn new(
        types: &'a [InstanceType],
        capacity_type: Symbol,
        (others, table): (&[TypeTable<'_>], &mut RequirementTable),
    ) -> Self {
        let twin = others.iter().find(|other| have_same_labels(other.types, types));
        let mut compiled = Self {
            types,
            stated: twin.map_or_else(|| stated(types, table), |twin| twin.stated.clone()),
            satisfying: FxHashMap::default(),
            kinds: Vec::new(),
            kind_of: Vec::with_capacity(types.len()),
            masks: Vec::new(),
            mask_of: Vec::new(),
            levels: Vec::new(),
            usable: usable(types),
            has_reservations: false,
            name_ranks: name_ranks(types),
            names: types.iter().map(|instance_type| instance_type.name).collect(),
        };
        for (index, instance_type) in types.iter().enumerate() {
            let kinds = instance_type
                .offerings
                .iter()
                .map(|offering| compiled.add_offering(index, offering, capacity_type, table));
            let kinds = kinds.collect();
            compiled.kind_of.push(kinds);
        }
        compiled
    }

    fn add_offering(
        &mut self,
        index: usize,
        offering: &Offering,
        capacity_type: Symbol,
        table: &mut RequirementTable,
    ) -> usize {
        let reservation = offering.reservation.map(|reservation| reservation.id);
        self.has_reservations |= reservation.is_some();
        let same = |kind: &OfferingKind| {
            kind.zone == offering.zone
                && kind.zone_id == offering.zone_id
                && kind.capacity_type == offering.capacity_type
                && kind.reservation == reservation
        };
        let position = self.kinds.iter().position(same).unwrap_or_else(|| {
            self.kinds.push(OfferingKind {
                zone: offering.zone,
                zone_id: offering.zone_id,
                capacity_type: offering.capacity_type,
                reservation,
                set: table.intern(&offering_requirements(offering, capacity_type)),
                available: bits::empty(self.types.len()),
            });
            self.kinds.len() - 1
        });
        if offering.available {
            bits::insert(&mut self.kinds[position].available, index);
        }
        position
    }

    /// The table without its types, to be kept while nobody asks.
    pub(super) fn detached(self) -> TypeTable<'static> {
        let Self { types: _, stated, satisfying, kinds, kind_of, masks, mask_of, levels, usable, .. } = self;
        let Self { has_reservations, name_ranks, names, .. } = self;
        TypeTable {
            types: &[],
            stated,
            satisfying,
            kinds,
            kind_of,
            masks,
            mask_of,
            levels,
            usable,
            has_reservations,
            name_ranks,
            names,
        }
    }

    /// A detached table with the types that it was compiled from.
    pub(super) fn attached(kept: TypeTable<'static>, types: &'a [InstanceType]) -> Self {
        let mut table: Self = kept;
        table.types = types;
        table
    }

    /// Takes over that what nodes of types offer to pods has changed.
    pub(super) fn renew_amounts(&mut self, resources: &ResourceTable) {
        self.usable = usable(self.types);
        for index in 0..self.levels.len() {
            let column = self.column(resources.name(index));
            if self.levels[index].column != column {
                self.levels[index] = levels(column);
            }
        }
        self.prepare_resources(resources);
    }

    /// Takes over what has changed about the availability of offerings of these types.
    pub(super) fn renew_offers(&mut self, types: impl Iterator<Item = usize>) {
        for index in types {
            for &kind in &self.kind_of[index] {
                bits::remove(&mut self.kinds[kind].available, index);
            }
            let offerings = self.types[index].offerings.iter().zip(&self.kind_of[index]);
            for (_, &kind) in offerings.filter(|(offering, _)| offering.available) {
                bits::insert(&mut self.kinds[kind].available, index);
            }
        }
        for masks in &mut self.masks {
            masks.offered.fill(0);
            for &kind in &masks.kinds {
                bits::unite(&mut masks.offered, &self.kinds[kind].available);
            }
            masks.both.copy_from_slice(&masks.compatible);
            bits::intersect(&mut masks.both, &masks.offered);
        }
    }

    /// Compiles the answers for a set of requirements, unless known.
    pub(super) fn prepare(&mut self, set: SetId, table: &mut RequirementTable) {
        if self.mask_of.len() <= set.index() {
            self.mask_of.resize(set.index() + 1, UNKNOWN);
        }
        if self.mask_of[set.index()] != UNKNOWN {
            return;
        }
        let mut compatible = bits::full(self.types.len());
        for &(key, requirement) in table.members(set) {
            self.prepare_requirement(key, requirement, table);
            if let Some(mask) = self.satisfying.get(&requirement) {
                bits::intersect(&mut compatible, mask);
            }
        }
        let mut offered = bits::empty(self.types.len());
        let mut kinds = Vec::new();
        for (position, kind) in self.kinds.iter().enumerate() {
            if table.set(set).intersects(table.set(kind.set)).is_ok() {
                bits::unite(&mut offered, &kind.available);
                kinds.push(position);
            }
        }
        self.mask_of[set.index()] = self.masks.len() as u32;
        let mut both = compatible.clone();
        bits::intersect(&mut both, &offered);
        self.masks.push(SetMasks { compatible, offered, both, kinds });
    }

    fn prepare_requirement(&mut self, key: Symbol, requirement: RequirementId, table: &RequirementTable) {
        if self.satisfying.contains_key(&requirement) {
            return;
        }
        let asked = table.requirement(requirement);
        let mut mask = bits::full(self.types.len());
        for (key, types) in self.stated.get(&key).into_iter().flatten() {
            if !meets(table.requirement(*key), asked) {
                for (word, gone) in mask.iter_mut().zip(types) {
                    *word &= !gone;
                }
            }
        }
        self.satisfying.insert(requirement, mask);
    }

    fn masks(&self, set: SetId) -> &SetMasks {
        &self.masks[self.mask_of[set.index()] as usize]
    }

    /// Compiles the levels of the resource with this index, unless known.
    pub(super) fn prepare_resources(&mut self, resources: &ResourceTable) {
        while self.levels.len() < resources.len() {
            let name = resources.name(self.levels.len());
            self.levels.push(levels(self.column(name)));
        }
    }

    fn column(&self, name: ResourceName) -> Box<[i64]> {
        self.types.iter().map(|instance_type| instance_type.allocatable.get(name)).collect()
    }

    /// Keeps of `types` those that meet all three criteria. The set and the resources must have been prepared.
    pub(super) fn filter(&self, types: &mut [u64], asked: TypeQuery<'_>) -> bool {
        bits::intersect(types, &self.masks(asked.set).both);
        self.keep_fitting(types, asked.requests, asked.met);
        bits::any(types)
    }

    /// Keeps of `types`, which all have room for `met`, those with room for `requests`.
    fn keep_fitting(&self, types: &mut [u64], requests: &[i64], met: &[i64]) {
        bits::intersect(types, &self.usable);
        for (index, &amount) in requests.iter().enumerate() {
            if amount <= 0 || met.get(index).is_some_and(|&least| amount <= least) {
                continue;
            }
            let Some(levels) = self.levels.get(index) else { continue };
            match levels.below(amount) {
                0 => types.fill(0),
                position => bits::intersect(types, &levels.at_least[position - 1]),
            }
        }
    }

    /// For each resource how much a type with room for `requests` has at least; `least` is the same for less.
    pub(super) fn least_room(&self, requests: &[i64], least: &mut Vec<i64>) {
        least.resize(requests.len().min(self.levels.len()), i64::MIN);
        for ((levels, least), &amount) in self.levels.iter().zip(least).zip(requests) {
            if amount > *least {
                *least = levels.below(amount).checked_sub(1).map_or(i64::MIN, |level| levels.amounts[level]);
            }
        }
    }

    /// For each resource the largest allocatable amount among `types`; `room` holds the same of more types, or nothing.
    ///
    /// A claim loses its small types with nearly every pod and its largest hardly ever: mostly the one of before is still there.
    pub(super) fn most_room(&self, types: &[u64], room: &mut Vec<MostRoom>) {
        room.resize(self.levels.len(), MostRoom { amount: i64::MAX, of: usize::MAX });
        for (levels, most) in self.levels.iter().zip(room) {
            if !bits::contains(types, most.of) {
                *most = levels.most_of(types, most.amount);
            }
        }
    }

    /// Which criteria are missed, given that no type of `types` meets all three.
    pub(super) fn criteria_missed(&self, types: &[u64], set: SetId, requests: &[i64]) -> CriteriaMissed {
        let masks = self.masks(set);
        let within = |mask: &[u64]| {
            let mut bits: Bits = types.into();
            bits::intersect(&mut bits, mask);
            bits
        };
        let requirements = within(&masks.compatible);
        let offering = within(&masks.offered);
        let mut fitting: Bits = types.into();
        self.keep_fitting(&mut fitting, requests, &[]);
        let both = bits::intersects;
        match (bits::any(&requirements), bits::any(&fitting), bits::any(&offering)) {
            (false, false, false) => CriteriaMissed::All,
            (false, false, true) => CriteriaMissed::RequirementsAndResources,
            (false, true, false) => CriteriaMissed::RequirementsAndOffering,
            (true, false, false) => CriteriaMissed::ResourcesAndOffering,
            (false, true, true) => CriteriaMissed::Requirements,
            (true, false, true) => CriteriaMissed::Resources,
            (true, true, false) => CriteriaMissed::Offering,
            (true, true, true) if both(&requirements, &fitting) => CriteriaMissed::OfferingOfFitting,
            (true, true, true) if both(&fitting, &offering) => CriteriaMissed::RequirementsOfFitting,
            (true, true, true) if both(&requirements, &offering) => CriteriaMissed::ResourcesOfCompatible,
            (true, true, true) => CriteriaMissed::NoPair,
        }
    }

    /// The lowest price at which a type can be had under a prepared set.
    pub(super) fn price(&self, index: usize, set: SetId) -> Option<HourlyRate> {
        let allowed = &self.masks(set).kinds;
        let offerings = self.types[index].offerings.iter().zip(&self.kind_of[index]);
        offerings
            .filter(|(offering, kind)| offering.available && allowed.contains(kind))
            .map(|(offering, _)| offering.price)
            .min()
    }

    /// The available offerings of a type by position, with their prices.
    pub(super) fn on_offer(&self, index: usize) -> impl Iterator<Item = (usize, HourlyRate)> + '_ {
        let offerings = self.types[index].offerings.iter().enumerate();
        offerings.filter(|(_, offering)| offering.available).map(|(position, offering)| (position, offering.price))
    }

    /// Whether a prepared set allows a type in its offering at this position.
    pub(super) fn allows(&self, set: SetId, index: usize, offering: usize) -> bool {
        let masks = self.masks(set);
        bits::contains(&masks.compatible, index) && masks.kinds.contains(&self.kind_of[index][offering])
    }

    /// The available reserved offerings of a type that a prepared set allows, as reservation ids.
    pub(super) fn reservations(&self, index: usize, set: SetId) -> impl Iterator<Item = Symbol> + '_ {
        let allowed = &self.masks(set).kinds;
        let offerings = self.types[index].offerings.iter().zip(&self.kind_of[index]);
        offerings
            .filter(|(offering, kind)| {
                offering.available && offering.capacity_type == well_known::RESERVED && allowed.contains(kind)
            })
            .filter_map(|(offering, _)| offering.reservation.map(|reservation| reservation.id))
    }
}

/// For each label key, the different requirements that `types` state, with the types stating them.
fn stated(types: &[InstanceType], table: &mut RequirementTable) -> StatedLabels {
    let mut stated = StatedLabels::default();
    let mut slots: FxHashMap<RequirementId, usize> = FxHashMap::default();
    for (index, instance_type) in types.iter().enumerate() {
        for requirement in instance_type.requirements.iter() {
            let id = table.intern_requirement(requirement);
            let list = stated.entry(requirement.key).or_default();
            let slot = *slots.entry(id).or_insert_with(|| {
                list.push((id, bits::empty(types.len())));
                list.len() - 1
            });
            bits::insert(&mut list[slot].1, index);
        }
    }
    stated
}

/// Whether two lists share their labels, type by type.
fn have_same_labels(one: &[InstanceType], other: &[InstanceType]) -> bool {
    let is_same = |(one, other): (&InstanceType, &InstanceType)| Arc::ptr_eq(&one.requirements, &other.requirements);
    one.len() == other.len() && one.iter().zip(other).all(is_same)
}

/// Whether a type's requirement and the one asked can both hold.
fn meets(requirement: &Requirement, asked: &Requirement) -> bool {
    let excluding = |r: &Requirement| matches!(r.operator(), Operator::NotIn | Operator::DoesNotExist);
    (excluding(requirement) && excluding(asked)) || requirement.has_intersection(asked)
}

/// What an offering requires of a node.
fn offering_requirements(offering: &Offering, capacity_type: Symbol) -> Requirements {
    let reservation = match offering.reservation {
        Some(reservation) => Requirement::equals(well_known::CAPACITY_RESERVATION_ID, reservation.id),
        None => Requirement::new(well_known::CAPACITY_RESERVATION_ID, Operator::DoesNotExist, []),
    };
    [
        Requirement::equals(well_known::ZONE, offering.zone),
        Requirement::equals(capacity_type, offering.capacity_type),
        reservation,
    ]
    .into_iter()
    .chain(offering.zone_id.map(|id| Requirement::equals(well_known::ZONE_ID, id)))
    .collect()
}

fn name_ranks(types: &[InstanceType]) -> Box<[u32]> {
    let mut by_name: Vec<usize> = (0..types.len()).collect();
    by_name.sort_by_key(|&index| types[index].name);
    let mut ranks = vec![0; types.len()];
    by_name.into_iter().zip(0..).for_each(|(index, rank)| ranks[index] = rank);
    ranks.into_boxed_slice()
}

/// The types without a negative amount.
fn usable(types: &[InstanceType]) -> Bits {
    let mut usable = bits::empty(types.len());
    for (index, instance_type) in types.iter().enumerate() {
        if instance_type.allocatable.iter().all(|(_, amount)| amount >= 0) {
            bits::insert(&mut usable, index);
        }
    }
    usable
}

fn levels(column: Box<[i64]>) -> Levels {
    let mut order: Vec<usize> = (0..column.len()).collect();
    order.sort_by_key(|&index| std::cmp::Reverse(column[index]));
    let (mut amounts, mut at_least) = (Vec::new(), Vec::new());
    let mut so_far = bits::empty(column.len());
    for (position, &index) in order.iter().enumerate() {
        bits::insert(&mut so_far, index);
        if order.get(position + 1).is_none_or(|&next| column[next] != column[index]) {
            amounts.push(column[index]);
            at_least.push(so_far.clone());
        }
    }
    Levels { column, amounts, at_least }
}

/// Whether one instance type meets each criterion, for explanations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TypeVerdict {
    /// The type.
    pub name: Symbol,
    /// Whether its labels can satisfy the requirements.
    pub requirements: bool,
    /// The first resource of which it has too little.
    pub lacking: Option<ResourceName>,
    /// Whether it has an available offering within the requirements.
    pub offering: bool,
}

/// Judges every instance type, as a release labels it, against the requirements and requests that a refusal states.
pub fn judge_types(
    karpenter: KarpenterVersion,
    types: &[InstanceType],
    requirements: &Requirements,
    requests: &nodecast_model::domain::Resources,
) -> Vec<TypeVerdict> {
    let mut table = RequirementTable::new(karpenter);
    let mut resources = ResourceTable::default();
    let dense = resources.dense(requests);
    let set = table.intern(requirements);
    let mut compiled = TypeTable::new(types, capacity_type_key(karpenter), (&[], &mut table));
    compiled.prepare(set, &mut table);
    compiled.prepare_resources(&resources);
    let masks = compiled.masks(set);
    let lacking = |index: usize| {
        let mut asked = (0..resources.len()).filter(|&resource| resource_table::amount(&dense, resource) > 0);
        asked
            .find(|&resource| {
                let room = types[index].allocatable.get(resources.name(resource));
                room < resource_table::amount(&dense, resource)
            })
            .map(|resource| resources.name(resource))
    };
    let verdict = |(index, instance_type): (usize, &InstanceType)| TypeVerdict {
        name: instance_type.name,
        requirements: bits::contains(&masks.compatible, index),
        lacking: lacking(index),
        offering: bits::contains(&masks.offered, index),
    };
    types.iter().enumerate().map(verdict).collect()
}

#[cfg(test)]
mod tests;
