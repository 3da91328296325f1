//! Pods and NodePools as items and bins: what `bin_packing` is asked about.
//!
//! A bin is an instance type of a NodePool with the zone and capacity type in which it is bought, less what the daemons
//! take. Which pods go into which bins follows from taints, selectors and required affinity; how many of one kind share a
//! node, from anti-affinity and spreads over host names. The rest of the topology is left out, which can only make
//! a bound lower. A type that no launch asks for, and a type that is larger than what a pool's limits leave, make no bin.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::bits;
use super::input::{NamespaceView, NodeView, PackingSetup, PendingPod};
use super::pass::Remaining;
use super::relaxation;
use super::requirement_table::{Combined, RequirementTable, SetId, Undefined};
use super::resource_table::ResourceTable;
use super::templates::{self, Template, Templates, strict_requirements};
use super::type_table::TypeTable;
use crate::bin_packing::{self, Bin, Effort, FreeBin, Item, Problem};
use crate::selection;
use nodecast_model::domain::requirements::Requirements;
use nodecast_model::domain::symbol::well_known;
use nodecast_model::domain::taints::{TaintEffect, first_untolerated};
use nodecast_model::domain::topology::{PodAffinityTerm, WhenUnsatisfiable};
use nodecast_model::domain::{PodSpec, ResourceName, Resources, Symbol};

/// One way in which pods may be placed: what they require and the specification whose tolerations count.
pub(super) struct Way {
    pub(super) requirements: Requirements,
    pub(super) spec: Arc<PodSpec>,
}

/// Pods that the problem does not tell apart.
pub(super) struct Ask {
    pub(super) requests: Resources,
    pub(super) count: u32,
    pub(super) most_per_node: u32,
    /// Any of these ways will do.
    pub(super) ways: Vec<Way>,
}

/// Where a bin of the problem comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Origin {
    /// Position of the template.
    pub(super) template: usize,
    /// Position among the pool's instance types.
    pub(super) instance_type: usize,
}

/// A problem with what its parts stand for.
pub(super) struct Offers {
    pub(super) problem: Problem,
    /// The item of each ask.
    pub(super) item_of: Vec<usize>,
    /// The origin of each bin.
    pub(super) origins: Vec<Origin>,
}

/// A price for an hour that no nodes could be cheaper than.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LowerBound {
    /// The price for an hour in nano-units.
    pub per_hour: nodecast_model::domain::HourlyRate,
    /// Whether more effort would not have raised it.
    pub finished: bool,
}

/// A price below which no plan can place the pods at `placed` (positions in `pods`), whatever it does with nodes and pods
/// within the constraints named below; the linear relaxation of [`bin_packing::bound()`].
///
/// Counted are resources, daemons, taints, node selectors, required node affinity, for each kind of pod how many may share a
/// node, and that a limit leaves no node that is larger. Preferences, the rest of limits, `minValues`, volumes, host ports, spreads
/// over zones and affinity between different pods are not: they only make plans more expensive.
pub fn lower_bound(
    setup: &PackingSetup<'_>,
    nodes: &[NodeView<'_>],
    pods: &[PendingPod<'_>],
    placed: &[usize],
    effort: &mut Effort<'_>,
) -> LowerBound {
    let mut table = RequirementTable::new(setup.karpenter);
    let mut resources = ResourceTable::default();
    let mut tables = Vec::new();
    let templates = templates::compile(setup, &mut tables, &mut table, &mut resources);
    let chosen: Vec<&PendingPod<'_>> = placed.iter().map(|&pod| &pods[pod]).collect();
    let asks = asks(setup, &templates, &chosen);
    let remaining: Vec<Remaining> = templates
        .list
        .iter()
        .map(|template| Remaining::new(limits_left(setup, template, nodes), template, tables[template.table].types))
        .collect();
    let mut offers = state(setup, &templates, &remaining, &mut tables, &mut table, &asks);
    add_nodes(&mut offers, setup, nodes, &asks);
    let bound = bin_packing::bound(&offers.problem, effort);
    LowerBound { per_hour: nodecast_model::domain::HourlyRate::from_nanos(bound.amount), finished: bound.finished }
}

/// What the nodes leave of the limits of a template's pool.
fn limits_left(setup: &PackingSetup<'_>, template: &Template, nodes: &[NodeView<'_>]) -> Resources {
    let pool = setup.pools[template.pool].pool;
    let mut left = pool.limits.clone();
    let is_of_pool = |view: &&NodeView<'_>| view.offered && view.labels.get(well_known::NODEPOOL) == Some(pool.name);
    for view in nodes.iter().filter(is_of_pool) {
        for (name, _) in pool.limits.iter() {
            let amount = if name == ResourceName::NODES { 1 } else { view.capacity.get(name) };
            left.set(name, left.get(name).saturating_sub(amount));
        }
    }
    left
}

/// The pods by specification, each with every way in which relaxing may lead to place it.
fn asks(setup: &PackingSetup<'_>, templates: &Templates, pods: &[&PendingPod<'_>]) -> Vec<Ask> {
    let mut by_pointer: FxHashMap<(Symbol, *const PodSpec), usize> = FxHashMap::default();
    let mut by_value: FxHashMap<(Symbol, &PodSpec), usize> = FxHashMap::default();
    let mut asks: Vec<Ask> = Vec::new();
    for pod in pods {
        let pointer = (pod.namespace, Arc::as_ptr(pod.spec));
        let known = by_pointer.get(&pointer).copied();
        let ask = known.unwrap_or_else(|| *by_value.entry((pod.namespace, pod.spec)).or_insert(asks.len()));
        by_pointer.insert(pointer, ask);
        if ask == asks.len() {
            asks.push(Ask {
                requests: pod.spec.requests(),
                count: 0,
                most_per_node: most_per_node(setup, pod.spec, pod.namespace),
                ways: every_way(pod.spec, templates.prefer_no_schedule),
            });
        }
        asks[ask].count += 1;
    }
    asks
}

fn every_way(spec: &Arc<PodSpec>, prefer_no_schedule: bool) -> Vec<Way> {
    let mut ways = Vec::new();
    let mut next = Some(Arc::clone(spec));
    while let Some(spec) = next {
        next = relaxation::relax(&spec, prefer_no_schedule).map(Arc::new);
        ways.push(Way { requirements: strict_requirements(&spec), spec });
    }
    ways
}

/// How many pods of one specification may share a node at most. Releases up to v0.6 know no such rule.
fn most_per_node(setup: &PackingSetup<'_>, spec: &PodSpec, namespace: Symbol) -> u32 {
    if setup.behaviour().packs_by_group {
        return u32::MAX;
    }
    let mut most = u32::MAX;
    for spread in &spec.topology_spread {
        let required = spread.when_unsatisfiable == WhenUnsatisfiable::DoNotSchedule;
        let selector = spread.selector.as_ref().is_some_and(|selector| selector.matches(&spec.labels));
        if required && selector && spread.topology_key == well_known::HOSTNAME {
            most = most.min(u32::try_from(spread.max_skew.max(1)).unwrap_or(u32::MAX));
        }
    }
    if spec.pod_anti_affinity.required.iter().any(|term| repels_itself(setup, term, spec, namespace)) {
        most = 1;
    }
    most
}

/// Whether a term of anti-affinity keeps pods of one specification off each other's nodes.
fn repels_itself(setup: &PackingSetup<'_>, term: &PodAffinityTerm, spec: &PodSpec, namespace: Symbol) -> bool {
    let own_namespace = match &term.namespace_selector {
        None if term.namespaces.is_empty() => true,
        None => term.namespaces.contains(&namespace),
        Some(selector) => {
            let selects = |view: &NamespaceView<'_>| view.name == namespace && selector.matches(view.labels);
            term.namespaces.contains(&namespace) || setup.namespaces.iter().any(selects)
        }
    };
    term.topology_key == well_known::HOSTNAME
        && own_namespace
        && term.selector_of(&spec.labels).is_some_and(|selector| selector.matches(&spec.labels))
}

/// For a kind of pods, the requirements that nodes of each template would have with them.
type Signature = Vec<(usize, SetId)>;

/// States the problem with the types that limits leave of each template.
pub(super) fn state(
    setup: &PackingSetup<'_>,
    templates: &Templates,
    remaining: &[Remaining],
    tables: &mut [TypeTable<'_>],
    table: &mut RequirementTable,
    asks: &[Ask],
) -> Offers {
    let names = resource_names(asks);
    let mut groups: FxHashMap<Signature, u32> = FxHashMap::default();
    let mut signatures: Vec<Signature> = Vec::new();
    let mut items: Vec<Item> = Vec::new();
    let mut known: FxHashMap<(Vec<i64>, u32), usize> = FxHashMap::default();
    let mut item_of = Vec::with_capacity(asks.len());
    for ask in asks {
        let signature = signature(setup, templates, table, ask);
        let group = *groups.entry(signature).or_insert_with_key(|signature| {
            signatures.push(signature.clone());
            signatures.len() as u32 - 1
        });
        let size: Vec<i64> = names.iter().map(|&name| ask.requests.get(name)).collect();
        // Kinds of which each may be on a node once may be there together: they are no one item.
        let alike = ask.most_per_node == u32::MAX;
        let item = if alike { *known.entry((size.clone(), group)).or_insert(items.len()) } else { items.len() };
        if item == items.len() {
            items.push(Item { size, count: 0, most_per_bin: ask.most_per_node, group });
        }
        items[item].count += ask.count;
        item_of.push(item);
    }
    let (bins, origins) = bins(setup, (templates, remaining), tables, table, &signatures, &names);
    let problem = Problem { resources: names.len(), items, bins, free: Vec::new() };
    Offers { problem, item_of, origins }
}

fn resource_names(asks: &[Ask]) -> Vec<ResourceName> {
    let mut names: Vec<ResourceName> = Vec::new();
    for (name, amount) in asks.iter().flat_map(|ask| ask.requests.iter()) {
        if amount > 0 && !names.contains(&name) {
            names.push(name);
        }
    }
    names.sort_unstable();
    names
}

fn signature(setup: &PackingSetup<'_>, templates: &Templates, table: &mut RequirementTable, ask: &Ask) -> Signature {
    let mut signature = Signature::new();
    for (position, template) in templates.list.iter().enumerate() {
        let taints = &setup.pools[template.pool].pool.taints;
        for way in &ask.ways {
            if first_untolerated(taints, &way.spec.tolerations).is_some() {
                continue;
            }
            let wanted = table.intern(&way.requirements);
            let set = match table.combine(template.set, wanted, Undefined::WellKnownAllowed) {
                Combined::Set(set) => set,
                Combined::Contradiction => continue,
                // Another pod's exclusion of the label may yet define it.
                Combined::Undefined => {
                    let mut both = table.set(template.set).clone();
                    both.extend(&way.requirements);
                    table.intern(&both)
                }
            };
            if !signature.contains(&(position, set)) {
                signature.push((position, set));
            }
        }
    }
    signature
}

/// A bin of which it is not yet known whether it is of use.
struct BinCandidate {
    bin: Bin,
    origin: Origin,
    /// Whether a launch leaves the type out as long as another is left.
    last_resort: bool,
}

/// A bin for every way to buy a type of every template that some group accepts, without those that another makes useless.
fn bins(
    setup: &PackingSetup<'_>,
    (templates, remaining): (&Templates, &[Remaining]),
    tables: &mut [TypeTable<'_>],
    table: &mut RequirementTable,
    signatures: &[Signature],
    names: &[ResourceName],
) -> (Vec<Bin>, Vec<Origin>) {
    for (template, set) in signatures.iter().flatten() {
        tables[templates.list[*template].table].prepare(*set, table);
    }
    let mut found: Vec<BinCandidate> = Vec::new();
    for (position, (template, remaining)) in templates.list.iter().zip(remaining).enumerate() {
        if !remaining.is_open() {
            continue;
        }
        let types = &tables[template.table];
        let keeps_last_resorts = selection::keeps_last_resorts(setup.karpenter, table.set(template.set));
        let mut bin_candidates: Vec<BinCandidate> = Vec::new();
        for index in bits::iter(&remaining.types) {
            let Some(capacity) = room(template, types, index, names) else { continue };
            let last_resort = !keeps_last_resorts && selection::is_last_resort(setup.karpenter, &types.types[index]);
            for (price, accepts) in ways_to_buy(types, position, index, signatures) {
                let origin = Origin { template: position, instance_type: index };
                bin_candidates.push(BinCandidate {
                    bin: Bin { capacity: capacity.clone(), price, accepts },
                    origin,
                    last_resort,
                });
            }
        }
        found.extend(without_last_resorts(bin_candidates, &remaining.limits, types));
    }
    without_useless(found).into_iter().map(|planned| (planned.bin, planned.origin)).unzip()
}

/// Leaves out bins of a template that no launch buys: those of last resorts if another type, of which nothing is left out, holds whatever
/// they hold. It must not be larger in what the pool's limits name: the limits might leave only the last resort.
fn without_last_resorts(found: Vec<BinCandidate>, limits: &Resources, types: &TypeTable<'_>) -> Vec<BinCandidate> {
    let capacity =
        |bin_candidate: &BinCandidate, name| types.types[bin_candidate.origin.instance_type].capacity.get(name);
    let gives_way = |bin_candidate: &BinCandidate| {
        let takes_place = |other: &&BinCandidate| {
            !other.last_resort
                && covers(&other.bin, &bin_candidate.bin)
                && limits.iter().all(|(name, _)| capacity(other, name) <= capacity(bin_candidate, name))
        };
        bin_candidate.last_resort && found.iter().any(|other| takes_place(&other))
    };
    let useless: Vec<bool> = found.iter().map(gives_way).collect();
    found.into_iter().zip(useless).filter(|(_, useless)| !useless).map(|(key, _)| key).collect()
}

/// Whether whatever goes into `bin` goes into `other` too.
fn covers(other: &Bin, bin: &Bin) -> bool {
    other.capacity.iter().zip(&bin.capacity).all(|(capacity, wanted)| capacity >= wanted)
        && other.accepts.iter().zip(&bin.accepts).all(|(accept, wanted)| accept >= wanted)
}

/// What a type offers beside the daemons; `None` if the daemons do not fit.
fn room(template: &Template, types: &TypeTable<'_>, index: usize, names: &[ResourceName]) -> Option<Vec<i64>> {
    let allocatable = &types.types[index].allocatable;
    let usable = allocatable.iter().all(|(_, amount)| amount >= 0);
    let daemons = template.daemon_requests_on(index);
    if !usable || !daemons.fits(allocatable) {
        return None;
    }
    Some(names.iter().map(|&name| (allocatable.get(name) - daemons.get(name)).max(0)).collect())
}

/// The prices of a type, each with the groups that can have it at that price: the lowest for each choice of groups.
fn ways_to_buy(
    types: &TypeTable<'_>,
    template: usize,
    index: usize,
    signatures: &[Signature],
) -> Vec<(i64, Vec<bool>)> {
    let mut ways: Vec<(i64, Vec<bool>)> = Vec::new();
    for (offering, price) in types.on_offer(index) {
        let takes = |signature: &Signature| {
            signature.iter().any(|&(key, set)| key == template && types.allows(set, index, offering))
        };
        let accepts: Vec<bool> = signatures.iter().map(takes).collect();
        if !accepts.contains(&true) {
            continue;
        }
        match ways.iter_mut().find(|(_, known)| *known == accepts) {
            Some((known, _)) => *known = (*known).min(price.as_nanos()),
            None => ways.push((price.as_nanos(), accepts)),
        }
    }
    ways
}

/// Leaves out bins that are nowhere better than another that costs no more.
fn without_useless(mut found: Vec<BinCandidate>) -> Vec<BinCandidate> {
    found.sort_by(|a, b| a.bin.price.cmp(&b.bin.price).then_with(|| b.bin.capacity.cmp(&a.bin.capacity)));
    let mut kept: Vec<BinCandidate> = Vec::new();
    for bin_candidate in found {
        if !kept.iter().any(|other| covers(&other.bin, &bin_candidate.bin)) {
            kept.push(bin_candidate);
        }
    }
    kept
}

/// Adds the room on existing nodes: what bound pods leave. It is over-estimated where a daemon is still to come.
fn add_nodes(offers: &mut Offers, setup: &PackingSetup<'_>, nodes: &[NodeView<'_>], asks: &[Ask]) {
    if setup.behaviour().packs_by_group {
        return;
    }
    let names = resource_names(asks);
    let groups = offers.problem.items.iter().map(|item| item.group as usize + 1).max().unwrap_or(0);
    for view in nodes.iter().filter(|view| view.offered) {
        let mut left = view.allocatable.clone();
        for pod in view.pods {
            left.subtract(&pod.spec.requests());
        }
        let capacity: Vec<i64> = names.iter().map(|&name| left.get(name).max(0)).collect();
        let mut accepts = vec![false; groups];
        for (ask, &item) in asks.iter().zip(&offers.item_of) {
            accepts[offers.problem.items[item].group as usize] |= node_takes(view, ask);
        }
        let fits = |item: &Item| {
            accepts[item.group as usize] && item.size.iter().zip(&capacity).all(|(size, room)| size <= room)
        };
        if !offers.problem.items.iter().any(fits) {
            continue;
        }
        let free = &mut offers.problem.free;
        match free.iter_mut().find(|item| item.capacity == capacity && item.accepts == accepts) {
            Some(known) => known.count += 1,
            None => free.push(FreeBin { capacity, count: 1, accepts }),
        }
    }
}

/// Whether a node may be one for the pods; taints of a node that is coming up are not held against it.
fn node_takes(view: &NodeView<'_>, ask: &Ask) -> bool {
    let labels = Requirements::from_labels(view.labels);
    ask.ways.iter().any(|way| {
        let schedules = |taint: &&nodecast_model::domain::Taint| taint.effect != TaintEffect::PreferNoSchedule;
        let refused = first_untolerated(view.taints.iter().filter(schedules), &way.spec.tolerations).is_some();
        (!refused || !view.initialized) && labels.intersects(&way.requirements).is_ok()
    })
}
