//! Nodes and bound pods as topology counts them: computed once for a cluster, less what a question takes away.

use std::cell::OnceCell;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};

use super::constraint::IdentityId;
use super::rules::{Constraint, Rules, SpecNumber, TaintsId, TolerationsId};
use crate::packing::input::PackingSetup;
use crate::packing::node_memo::Fixed;
use crate::packing::node_pods::NodePods;
use crate::packing::requirement_table::{RequirementTable, Undefined};
use nodecast_model::domain::topology::NodeInclusionPolicy;

/// The pods of a node by specification, and the numbers under which [`Rules`] know these.
pub(in crate::packing) struct BoundPods {
    pub(in crate::packing) pods: NodePods,
    pub(in crate::packing) specs: Arc<[SpecNumber]>,
}

/// The classes of bound pods that count in topologies, those of one specification each in the order in which they are first met, and where
/// they are. Made for each cluster, in long lists and without a look at any specification: there are hundreds of classes, and
/// thousands of clusters in a day.
#[derive(Default)]
struct BoundClasses {
    /// By class, its specification.
    specs: Vec<SpecNumber>,
    /// By the number of a specification, its class.
    of_spec: Vec<u32>,
    /// Node position and number of pods, class by class; and where each class begins, with the end of all.
    places: Vec<(u32, i32)>,
    begins: Vec<u32>,
    /// The class of each specification of a node, node by node; and where each node begins.
    of_node: Vec<u32>,
    node_begins: Vec<u32>,
}

impl BoundClasses {
    const NONE: u32 = u32::MAX;

    fn new(nodes: &[BoundPods], rules: &Rules) -> Self {
        let mut bound_classes = Self { of_spec: vec![Self::NONE; rules.spec_count()], ..Self::default() };
        let mut sizes: Vec<u32> = Vec::new();
        for node in nodes {
            bound_classes.node_begins.push(bound_classes.of_node.len() as u32);
            for &spec in node.specs.iter() {
                let class = &mut bound_classes.of_spec[spec.index()];
                if *class == Self::NONE {
                    *class = sizes.len() as u32;
                    sizes.push(0);
                    bound_classes.specs.push(spec);
                }
                sizes[*class as usize] += 1;
                bound_classes.of_node.push(*class);
            }
        }
        bound_classes.begins.push(0);
        for size in sizes {
            bound_classes.begins.push(bound_classes.begins[bound_classes.begins.len() - 1] + size);
        }
        let mut next = bound_classes.begins.clone();
        bound_classes.places.resize(bound_classes.of_node.len(), (0, 0));
        for (node, bound) in nodes.iter().enumerate() {
            let classes = &bound_classes.of_node[bound_classes.node_begins[node] as usize..];
            for (&class, counted) in classes.iter().zip(&bound.pods.sums().classes) {
                let place = &mut next[class as usize];
                bound_classes.places[*place as usize] = (node as u32, counted.pods);
                *place += 1;
            }
        }
        bound_classes
    }

    /// Where the pods of a class are: node position, and how many.
    fn places(&self, class: usize) -> impl ExactSizeIterator<Item = (usize, i32)> + '_ {
        let place = &self.places[self.begins[class] as usize..self.begins[class + 1] as usize];
        place.iter().map(|&(node, pods)| (node as usize, pods))
    }

    /// The class of pods of a specification, if there are any.
    fn class_of(&self, spec: SpecNumber) -> Option<usize> {
        self.of_spec.get(spec.index()).filter(|&&class| class != Self::NONE).map(|&class| class as usize)
    }
}

/// What topology needs to know of a node.
pub(in crate::packing) struct TopologyNode {
    pub(in crate::packing) fixed: Arc<Fixed>,
    pub(in crate::packing) taints: TaintsId,
    /// Whether the node is there for pods to be counted on.
    pub(in crate::packing) registered: bool,
    /// Whether its labels make domains.
    pub(in crate::packing) spans: bool,
}

/// Domains held in place: enough for the zones of a region, or the capacity types.
const FEW: usize = 8;

/// A domain that a group does not know.
pub(super) const ABSENT: i32 = -1;

/// Pods by host: as counted once, and what changed since. Most questions change few.
#[derive(Clone, Default)]
pub(super) struct HostCounts {
    counted: Arc<FxHashMap<usize, i32>>,
    changed: SmallVec<[(usize, i32); FEW]>,
    changed_further: FxHashMap<usize, i32>,
}

impl HostCounts {
    /// The pods on a host.
    pub(super) fn get(&self, host: usize) -> i32 {
        if let Some(changed) = self.changed.iter().find(|pair| pair.0 == host) {
            return changed.1;
        }
        let of = |counts: &FxHashMap<usize, i32>| if counts.is_empty() { None } else { counts.get(&host).copied() };
        of(&self.changed_further).or_else(|| of(&self.counted)).unwrap_or(0)
    }

    /// Adds `pods`, which may be negative; returns the count before and after.
    pub(super) fn add(&mut self, host: usize, pods: i32) -> (i32, i32) {
        if let Some(changed) = self.changed.iter_mut().find(|pair| pair.0 == host) {
            changed.1 += pods;
            return (changed.1 - pods, changed.1);
        }
        let before = self.get(host);
        if self.changed.len() < FEW {
            self.changed.push((host, before + pods));
        } else {
            self.changed_further.insert(host, before + pods);
        }
        (before, before + pods)
    }
}

/// The counts of a group before the first pod is placed.
#[derive(Clone, Default)]
pub(super) struct Counts {
    /// By domain.
    pub(super) domains: SmallVec<[i32; FEW]>,
    /// By host.
    pub(super) hosts: HostCounts,
    /// Number of domains, or hosts, with a pod.
    pub(super) occupied: usize,
    /// For each domain: whether pools span it, and how many nodes carry it as a label.
    reasons: Arc<Vec<(bool, u32)>>,
    /// The bound classes counted, in ascending order.
    classes: Arc<Vec<usize>>,
}

/// An inverse group that bound pods bring along.
struct BoundInverse {
    /// Bound classes with their constraint; the first that still has a pod decides which domains the group knows.
    owners: Vec<(usize, Constraint)>,
}

/// The nodes and bound pods of a cluster.
#[derive(Default)]
pub(in crate::packing) struct ClusterTopology {
    nodes: Vec<TopologyNode>,
    pods: Vec<BoundPods>,
    /// The classes of these pods, once somebody asks: where topology has no say nobody does.
    bound: Option<BoundClasses>,
    counted: FxHashMap<(IdentityId, TolerationsId), Counts>,
    inverse: Vec<BoundInverse>,
    inverse_counted: FxHashMap<(usize, TolerationsId), Counts>,
    /// By bound class, the inverse groups that it owns.
    owned_inverse: Vec<Vec<usize>>,
    /// For each key of topology whose domains have been read, the domain of each node.
    domains: Vec<Vec<Option<usize>>>,
    /// What groups know before any pod is counted.
    spanned: FxHashMap<Spanning, Spanned>,
}

/// What decides on the domains that a group knows before any pod is counted: their key, whom the pools that make domains suit, and
/// whether the group asks pools at all, and nodes.
type Spanning = (usize, TolerationsId, bool, bool);

/// The domains that a group knows before any pod is counted, and why.
#[derive(Clone, Default)]
struct Spanned {
    domains: SmallVec<[i32; FEW]>,
    reasons: Arc<Vec<(bool, u32)>>,
}

/// What a question takes away from the cluster.
pub(in crate::packing) struct Removal<'q> {
    /// Nodes.
    nodes: &'q [usize],
    /// Bound pods that no longer count: node, and position among the node's pods.
    displaced: &'q [(usize, usize)],
    /// The same in order of class, once somebody asks.
    pods: OnceCell<Vec<DisplacedPods>>,
}

/// Pods of one bound class on one node.
struct DisplacedPods {
    class: u32,
    node: u32,
    pods: i32,
}

impl<'q> Removal<'q> {
    /// These nodes and pods.
    pub(in crate::packing) fn new(nodes: &'q [usize], displaced: &'q [(usize, usize)]) -> Self {
        Self { nodes, displaced, pods: OnceCell::new() }
    }

    fn pods(&self, cluster: &ClusterTopology) -> &[DisplacedPods] {
        self.pods.get_or_init(|| cluster.displaced(self.displaced))
    }

    fn places(&self, class: usize, cluster: &ClusterTopology) -> &[DisplacedPods] {
        let pods = self.pods(cluster);
        let from = pods.partition_point(|pod| (pod.class as usize) < class);
        let count = pods[from..].iter().take_while(|pod| pod.class as usize == class).count();
        &pods[from..from + count]
    }
}

impl ClusterTopology {
    /// Whether some bound pod keeps others away by required anti-affinity.
    pub(in crate::packing) fn has_inverse(&self) -> bool {
        !self.inverse.is_empty()
    }

    /// The topology of these nodes and pods.
    pub(in crate::packing) fn new(
        nodes: Vec<TopologyNode>,
        pods: Vec<BoundPods>,
        rules: &mut Rules,
        setup: &PackingSetup<'_>,
        spanning: &[usize],
        table: &mut RequirementTable,
    ) -> Self {
        let mut cluster = Self { nodes, pods, ..Self::default() };
        if !cluster.pods.iter().any(|pod| pod.pods.sums().repel) {
            return cluster;
        }
        let bound = BoundClasses::new(&cluster.pods, rules);
        let mut by_identity: FxHashMap<IdentityId, usize> = FxHashMap::default();
        for (class, &spec) in bound.specs.iter().enumerate() {
            let mut owned = Vec::new();
            let (namespace, spec) = rules.spec(spec);
            for constraint in rules.inverse(&spec, namespace, setup, spanning, table) {
                let inverse = *by_identity.entry(constraint.identity).or_insert_with(|| {
                    cluster.inverse.push(BoundInverse { owners: Vec::new() });
                    cluster.inverse.len() - 1
                });
                cluster.inverse[inverse].owners.push((class, constraint));
                owned.push(inverse);
            }
            cluster.owned_inverse.push(owned);
        }
        cluster.bound = Some(bound);
        cluster
    }

    /// Where the pods of a bound class are.
    fn places(&self, class: usize) -> impl Iterator<Item = (usize, i32)> + '_ {
        self.bound.iter().flat_map(move |bound| bound.places(class))
    }

    /// What pods that no longer count come to, in order of class.
    fn displaced(&self, displaced: &[(usize, usize)]) -> Vec<DisplacedPods> {
        let Some(bound) = &self.bound else { return Vec::new() };
        let class = |&(node, position): &(usize, usize)| {
            let class = self.pods[node].pods.sums().class(position)?;
            let class = bound.of_node[bound.node_begins[node] as usize + class];
            Some(DisplacedPods { class, node: node as u32, pods: 1 })
        };
        let mut pods: Vec<DisplacedPods> = displaced.iter().filter_map(class).collect();
        pods.sort_unstable_by_key(|pod| u64::from(pod.class) << 32 | u64::from(pod.node));
        pods.dedup_by(|next, kept| {
            let same = (next.class, next.node) == (kept.class, kept.node);
            kept.pods += if same { next.pods } else { 0 };
            same
        });
        pods
    }

    /// The counts of a group whose first owner states `constraint`.
    pub(super) fn counts(
        &mut self,
        constraint: Constraint,
        taken: &Removal<'_>,
        rules: &mut Rules,
        setup: &PackingSetup<'_>,
        table: &mut RequirementTable,
    ) -> Counts {
        let Constraint { identity, tolerations, .. } = constraint;
        let key = (identity, tolerations);
        if self.bound.is_none() {
            self.bound = Some(BoundClasses::new(&self.pods, rules));
        }
        let known = self.counted.get(&key).cloned();
        let mut counts = known.unwrap_or_else(|| {
            self.read_domains(identity, rules, table);
            let counts = self.count(constraint, rules, setup, table);
            self.counted.insert(key, counts.clone());
            counts
        });
        if taken.nodes.is_empty() && taken.displaced.is_empty() {
            return counts;
        }
        let mut less = Less::new(&counts);
        let by_host = rules.domains_of(identity).is_none();
        for &node in taken.nodes.iter().filter(|_| !by_host) {
            if self.nodes[node].spans && self.accepts(identity, node, rules, table) {
                less.unspan(self.domain(identity, node, rules));
            }
        }
        for &class in Arc::clone(&counts.classes).iter() {
            for &DisplacedPods { node, pods, .. } in taken.places(class, self) {
                let node = node as usize;
                if self.nodes[node].registered && self.accepts(identity, node, rules, table) {
                    less.uncount(&mut counts, by_host, node, self.domain(identity, node, rules), pods);
                }
            }
        }
        less.forget(&mut counts);
        counts
    }

    /// Counts the bound pods that a group selects, and lets it know the domains of the nodes that it accepts.
    fn count(
        &mut self,
        constraint: Constraint,
        rules: &mut Rules,
        setup: &PackingSetup<'_>,
        table: &mut RequirementTable,
    ) -> Counts {
        let identity = constraint.identity;
        let everywhere = rules.accepts_everywhere(identity);
        let mut tally = self.tally(constraint, everywhere, rules, setup);
        // A host is a domain whatever its labels say.
        let spanning = if tally.by_host || everywhere { 0 } else { self.nodes.len() };
        for node in 0..spanning {
            if self.nodes[node].spans && self.accepts(identity, node, rules, table) {
                tally.span(self.domain(identity, node, rules));
            }
        }
        let Some(bound) = &self.bound else { return tally.counts() };
        tally.classes.extend(rules.selected(identity).iter().filter_map(|&spec| bound.class_of(spec)));
        tally.classes.sort_unstable();
        if tally.by_host {
            tally.hosts.reserve(tally.classes.iter().map(|&class| bound.places(class).len()).sum());
        }
        for position in 0..tally.classes.len() {
            for (node, pods) in bound.places(tally.classes[position]) {
                if self.nodes[node].registered && self.accepts(identity, node, rules, table) {
                    tally.add(node, self.domain(identity, node, rules), pods);
                }
            }
        }
        tally.counts()
    }

    /// A tally that knows the domains that pools span, and those of nodes if it counts nodes everywhere.
    fn tally(&mut self, first: Constraint, of_nodes: bool, rules: &Rules, setup: &PackingSetup<'_>) -> Tally {
        let Some(key) = rules.domains_of(first.identity) else { return Tally::default() };
        let filter = rules.identity(first.identity).filter.as_ref();
        let of_pools = !(setup.behaviour().filters_domains_by_node
            && filter.is_some_and(|item| item.affinity == NodeInclusionPolicy::Honor));
        let nodes = self.nodes.iter().zip(self.domains.get(key).into_iter().flatten());
        let known = self.spanned.entry((key, first.tolerations, of_pools, of_nodes)).or_insert_with(|| {
            let mut tally = Tally { by_host: false, ..Tally::default() };
            let spanned = if of_pools { rules.known_domains(key, first.tolerations, setup) } else { Vec::new() };
            for domain in spanned {
                tally.know(domain);
                Arc::make_mut(&mut tally.known.reasons)[domain].0 = true;
            }
            for (_, &domain) in nodes.filter(|(node, _)| of_nodes && node.spans) {
                tally.span(domain);
            }
            tally.known
        });
        Tally { by_host: false, known: known.clone(), ..Tally::default() }
    }

    /// The inverse groups that bound pods bring along, with their counts.
    pub(super) fn inverse(
        &mut self,
        taken: &Removal<'_>,
        rules: &mut Rules,
        setup: &PackingSetup<'_>,
        table: &mut RequirementTable,
    ) -> Vec<(Constraint, Counts)> {
        if self.inverse.is_empty() {
            return Vec::new();
        }
        let mut touched = vec![false; self.inverse.len()];
        for pod in taken.pods(self) {
            for &inverse in &self.owned_inverse[pod.class as usize] {
                touched[inverse] = true;
            }
        }
        let mut found = Vec::with_capacity(self.inverse.len());
        for (inverse, &touched) in touched.iter().enumerate() {
            let owner = if touched {
                self.inverse[inverse].owners.iter().find(|(class, _)| self.remains(*class, taken)).map(|owner| owner.1)
            } else {
                Some(self.inverse[inverse].owners[0].1)
            };
            // Pods to place bring their own anti-affinity along.
            let Some(owner) = owner else { continue };
            let key = (inverse, owner.tolerations);
            if !self.inverse_counted.contains_key(&key) {
                self.read_domains(owner.identity, rules, table);
                for owner in 0..self.inverse[inverse].owners.len() {
                    self.read_domains(self.inverse[inverse].owners[owner].1.identity, rules, table);
                }
                let counts = self.count_owners(inverse, owner, rules, setup);
                self.inverse_counted.insert(key, counts);
            }
            let mut counts = self.inverse_counted[&key].clone();
            if touched {
                self.take_owners(inverse, owner.identity, taken, &mut counts, rules);
            }
            found.push((owner, counts));
        }
        found
    }

    /// The counts of an inverse group that no bound pod brings along.
    pub(super) fn fresh(&mut self, constraint: Constraint, rules: &Rules, setup: &PackingSetup<'_>) -> Counts {
        self.tally(constraint, false, rules, setup).counts()
    }

    fn remains(&self, class: usize, taken: &Removal<'_>) -> bool {
        let bound: i32 = self.places(class).map(|place| place.1).sum();
        bound > taken.places(class, self).iter().map(|place| place.pods).sum()
    }

    fn count_owners(&mut self, inverse: usize, first: Constraint, rules: &Rules, setup: &PackingSetup<'_>) -> Counts {
        let mut tally = self.tally(first, false, rules, setup);
        for &(class, constraint) in &self.inverse[inverse].owners {
            tally.classes.push(class);
            for (node, pods) in self.places(class) {
                tally.add(node, self.domain(constraint.identity, node, rules), pods);
            }
        }
        tally.counts()
    }

    fn take_owners(
        &self,
        inverse: usize,
        identity: IdentityId,
        taken: &Removal<'_>,
        counts: &mut Counts,
        rules: &Rules,
    ) {
        let mut less = Less::new(counts);
        for &(class, _) in &self.inverse[inverse].owners {
            for &DisplacedPods { node, pods, .. } in taken.places(class, self) {
                let node = node as usize;
                let domain = self.domain(identity, node, rules);
                less.uncount(counts, rules.domains_of(identity).is_none(), node, domain, pods);
            }
        }
        less.forget(counts);
    }

    fn accepts(&self, identity: IdentityId, node: usize, rules: &mut Rules, table: &RequirementTable) -> bool {
        let node = &self.nodes[node];
        rules.accepts(identity, node.fixed.set, node.taints, Undefined::Refused, table)
    }

    /// Reads once in which domain of an identity's key each node is: constraints by the dozen have the same few keys, and each
    /// question asks them of the nodes that it takes away.
    fn read_domains(&mut self, identity: IdentityId, rules: &mut Rules, table: &mut RequirementTable) {
        let Some(key) = rules.domains_of(identity) else { return };
        if self.domains.len() <= key {
            self.domains.resize_with(key + 1, Vec::new);
        }
        if self.domains[key].len() == self.nodes.len() {
            return;
        }
        let domains = &mut rules.keys[key];
        let of = |node: &TopologyNode| Some(domains.add(node.fixed.labels.get(domains.key)?, table));
        self.domains[key] = self.nodes.iter().map(of).collect();
    }

    /// The domain of a node, if its labels name one. The domains must have been read.
    fn domain(&self, identity: IdentityId, node: usize, rules: &Rules) -> Option<usize> {
        self.domains[rules.domains_of(identity)?][node]
    }
}

/// Counts in the making.
struct Tally {
    by_host: bool,
    known: Spanned,
    hosts: FxHashMap<usize, i32>,
    classes: Vec<usize>,
}

impl Default for Tally {
    /// Of hosts.
    fn default() -> Self {
        Self { by_host: true, known: Spanned::default(), hosts: FxHashMap::default(), classes: Vec::new() }
    }
}

impl Tally {
    fn know(&mut self, domain: usize) {
        let Spanned { domains, reasons } = &mut self.known;
        if domains.len() <= domain {
            domains.resize(domain + 1, ABSENT);
            Arc::make_mut(reasons).resize(domain + 1, (false, 0));
        }
        domains[domain] = domains[domain].max(0);
    }

    fn span(&mut self, domain: Option<usize>) {
        if let Some(domain) = domain {
            self.know(domain);
            Arc::make_mut(&mut self.known.reasons)[domain].1 += 1;
        }
    }

    fn add(&mut self, host: usize, domain: Option<usize>, pods: i32) {
        if self.by_host {
            *self.hosts.entry(host).or_insert(0) += pods;
        } else if let Some(domain) = domain {
            self.know(domain);
            self.known.domains[domain] += pods;
        }
    }

    fn counts(self) -> Counts {
        let Spanned { domains, reasons } = self.known;
        let occupied = if self.by_host { self.hosts.len() } else { domains.iter().filter(|&&c| c > 0).count() };
        Counts {
            domains,
            hosts: HostCounts { counted: Arc::new(self.hosts), ..HostCounts::default() },
            occupied,
            reasons,
            classes: Arc::new(self.classes),
        }
    }
}

/// Counts being reduced.
struct Less {
    /// Nodes taken away, by domain.
    nodes: SmallVec<[u32; FEW]>,
    touched: bool,
}

impl Less {
    fn new(counts: &Counts) -> Self {
        Self { nodes: smallvec![0; counts.domains.len()], touched: false }
    }

    fn unspan(&mut self, domain: Option<usize>) {
        if let Some(count) = domain.and_then(|domain| self.nodes.get_mut(domain)) {
            *count += 1;
            self.touched = true;
        }
    }

    fn uncount(&mut self, counts: &mut Counts, by_host: bool, host: usize, domain: Option<usize>, pods: i32) {
        if by_host {
            let (_, left) = counts.hosts.add(host, -pods);
            counts.occupied -= usize::from(left == 0);
        } else if let Some(count) = domain.and_then(|domain| counts.domains.get_mut(domain)) {
            *count -= pods;
            counts.occupied -= usize::from(*count == 0);
            self.touched = true;
        }
    }

    /// Forgets the domains for which nothing stands any more.
    fn forget(self, counts: &mut Counts) {
        if !self.touched {
            return;
        }
        for (domain, count) in counts.domains.iter_mut().enumerate() {
            let (spanned, nodes) = counts.reasons[domain];
            if *count == 0 && !spanned && nodes <= self.nodes[domain] {
                *count = ABSENT;
            }
        }
    }
}
