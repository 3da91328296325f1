//! Topology: spread constraints, pod affinity and anti-affinity over the nodes of a pass.
//!
//! Source: Karpenter core v1.13 `pkg/controllers/provisioning/scheduling/topology.go`.

mod domains;
mod group;

use rustc_hash::FxHashMap;

use self::domains::KeyDomains;
use self::group::{Choice, Constraint, Group, Identity};
use super::errors::{TopologyKind, TopologyRefusal};
use super::input::{PackingSetup, TieBreak};
use super::requirement_table::{Combined, RequirementTable, SetId, Undefined};
use crate::domain::requirements::Requirement;
use crate::domain::symbol::{Symbol, well_known};
use crate::domain::taints::{Taint, first_untolerated};
use crate::domain::topology::NodeInclusionPolicy;
use crate::domain::{Labels, PodSpec};

/// A taint list, interned.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct TaintsId(u32);

impl TaintsId {
    /// Dense index, for tables.
    pub(super) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Bound pods of one specification: where they are.
pub(super) struct BoundClass<'a> {
    pub(super) namespace: Symbol,
    pub(super) spec: &'a PodSpec,
    /// Node position and number of pods.
    pub(super) places: Vec<(usize, i32)>,
}

/// What topology needs to know of a node.
pub(super) struct TopologyNode<'a> {
    pub(super) labels: &'a Labels,
    pub(super) set: SetId,
    pub(super) taints: TaintsId,
    /// Whether the node is there for pods to be counted on.
    pub(super) registered: bool,
    /// Whether its labels make domains.
    pub(super) spans: bool,
}

/// The groups that concern one class of pods, whatever it has relaxed.
#[derive(Default)]
struct ClassGroups {
    /// Groups that count pods of the class.
    counted_by: Vec<usize>,
    counted_checked: usize,
    /// Inverse groups that stand against pods of the class.
    repelled_by: Vec<usize>,
    repelled_checked: usize,
    /// Inverse groups that pods of the class bring along.
    repels: Vec<usize>,
}

/// A node that a pod is tried on.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    /// Number of the host.
    pub(super) host: usize,
    /// Its name, for pods that ask for a host.
    pub(super) host_name: &'a str,
    /// Requirements of the node with the pod's.
    pub(super) set: SetId,
    /// Which labels may be undefined.
    pub(super) undefined: Undefined,
}

/// What a pod brings to a topology check.
#[derive(Clone, Copy)]
pub(super) struct Asking<'a> {
    /// Its class.
    pub(super) class: usize,
    /// The groups it owns in its present state of relaxation.
    pub(super) owned: &'a [usize],
    /// Its own requirements, preferences left out.
    pub(super) strict: SetId,
    /// Its own requirement on the host name.
    pub(super) strict_host: Option<&'a Requirement>,
}

/// Why a node does not suit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Blocked {
    group: usize,
    inverse: bool,
    /// Whether the host can never suit again in this pass, because counts on a host only grow.
    pub(super) for_good: bool,
}

/// All groups of a pass with their counts.
pub(super) struct Topology<'a> {
    setup: &'a PackingSetup<'a>,
    spanning: &'a [usize],
    keys: Vec<KeyDomains>,
    groups: Vec<Group>,
    by_identity: FxHashMap<Identity, usize>,
    inverse: Vec<Group>,
    inverse_by_identity: FxHashMap<Identity, usize>,
    classes: Vec<ClassGroups>,
    taints: Vec<Vec<Taint>>,
    filtered: FxHashMap<(usize, SetId, TaintsId, Undefined), bool>,
    nodes: Vec<TopologyNode<'a>>,
    bound: Vec<BoundClass<'a>>,
    ties: TieBreak,
    /// The number of the attempt, for ties.
    pub(super) attempt: u64,
}

impl<'a> Topology<'a> {
    /// A topology without groups.
    pub(super) fn new(setup: &'a PackingSetup<'a>, spanning: &'a [usize], ties: TieBreak) -> Self {
        Self {
            setup,
            spanning,
            keys: Vec::new(),
            groups: Vec::new(),
            by_identity: FxHashMap::default(),
            inverse: Vec::new(),
            inverse_by_identity: FxHashMap::default(),
            classes: Vec::new(),
            taints: Vec::new(),
            filtered: FxHashMap::default(),
            nodes: Vec::new(),
            bound: Vec::new(),
            ties,
            attempt: 0,
        }
    }

    /// The id of a taint list.
    pub(super) fn intern_taints(&mut self, taints: &[Taint]) -> TaintsId {
        let known = self.taints.iter().position(|own| own == taints).unwrap_or_else(|| {
            self.taints.push(taints.to_vec());
            self.taints.len() - 1
        });
        TaintsId(known as u32)
    }

    /// The taints with this id.
    pub(super) fn taint_list(&self, id: TaintsId) -> &[Taint] {
        &self.taints[id.index()]
    }

    /// Tells the topology of the cluster's nodes and bound pods, whose required anti-affinity stands from the start.
    pub(super) fn set_cluster(
        &mut self,
        nodes: Vec<TopologyNode<'a>>,
        bound: Vec<BoundClass<'a>>,
        table: &mut RequirementTable,
    ) {
        self.nodes = nodes;
        self.bound = bound;
        for position in 0..self.bound.len() {
            let (spec, namespace) = (self.bound[position].spec, self.bound[position].namespace);
            for constraint in group::inverse_constraints(spec, namespace, self.setup.namespaces) {
                let group = self.ensure_inverse(constraint, spec, table);
                for place in 0..self.bound[position].places.len() {
                    let (node, pods) = self.bound[position].places[place];
                    self.count_on_node(group, true, node, pods, table);
                }
            }
        }
    }

    /// Makes room for a class of pods to place and finds the inverse groups that it brings along.
    pub(super) fn add_class(&mut self, spec: &PodSpec, namespace: Symbol, table: &mut RequirementTable) {
        let mut repels = Vec::new();
        for constraint in group::inverse_constraints(spec, namespace, self.setup.namespaces) {
            repels.push(self.ensure_inverse(constraint, spec, table));
        }
        self.classes.push(ClassGroups { repels, ..ClassGroups::default() });
    }

    /// The groups that a pod with this specification owns; new ones are made and counted.
    pub(super) fn own(&mut self, spec: &PodSpec, namespace: Symbol, table: &mut RequirementTable) -> Vec<usize> {
        let policy = self.setup.options.preferences;
        let mut owned = Vec::new();
        for constraint in group::constraints(spec, namespace, self.setup.namespaces, policy, table) {
            let group = self.ensure(constraint, spec, table);
            if !owned.contains(&group) {
                owned.push(group);
            }
        }
        owned
    }

    fn ensure(&mut self, constraint: Constraint, spec: &PodSpec, table: &mut RequirementTable) -> usize {
        if let Some(&known) = self.by_identity.get(&constraint.identity) {
            return known;
        }
        let identity = constraint.identity.clone();
        let group = self.fresh(constraint, spec, table);
        let position = self.groups.len();
        self.groups.push(group);
        self.by_identity.insert(identity, position);
        self.count_existing(position, table);
        position
    }

    fn ensure_inverse(&mut self, constraint: Constraint, spec: &PodSpec, table: &mut RequirementTable) -> usize {
        if let Some(&known) = self.inverse_by_identity.get(&constraint.identity) {
            return known;
        }
        let identity = constraint.identity.clone();
        let group = self.fresh(constraint, spec, table);
        self.inverse.push(group);
        self.inverse_by_identity.insert(identity, self.inverse.len() - 1);
        self.inverse.len() - 1
    }

    /// A group that knows the domains that its first owner could be given: all of them if taints are ignored, which is
    /// the default of a spread; affinity has no such policy and honours taints.
    fn fresh(&mut self, constraint: Constraint, spec: &PodSpec, table: &mut RequirementTable) -> Group {
        let key = constraint.identity.key;
        if key == well_known::HOSTNAME {
            return Group::new(constraint, None);
        }
        let known = self.keys.iter().position(|own| own.key == key).unwrap_or_else(|| {
            self.keys.push(KeyDomains::spanned(key, self.setup, self.spanning, table));
            self.keys.len() - 1
        });
        let policy = constraint.identity.filter.as_ref().map(|filter| filter.taints);
        let tolerations = (policy != Some(NodeInclusionPolicy::Ignore)).then_some(&spec.tolerations[..]);
        let mut group = Group::new(constraint, Some(known));
        for domain in self.keys[known].tolerated(self.setup, tolerations) {
            group.register(domain);
        }
        group
    }

    /// Counts the bound pods that a new group selects, and lets it know the domains of the nodes that it accepts.
    fn count_existing(&mut self, group: usize, table: &mut RequirementTable) {
        for node in 0..self.nodes.len() {
            if self.nodes[node].spans && self.accepts_node(group, node, table) {
                self.count_on_node(group, false, node, 0, table);
            }
        }
        for class in 0..self.bound.len() {
            let bound = &self.bound[class];
            if !self.groups[group].selects(bound.namespace, &bound.spec.labels) {
                continue;
            }
            for place in 0..self.bound[class].places.len() {
                let (node, pods) = self.bound[class].places[place];
                if self.nodes[node].registered && self.accepts_node(group, node, table) {
                    self.count_on_node(group, false, node, pods, table);
                }
            }
        }
    }

    fn accepts_node(&mut self, group: usize, node: usize, table: &RequirementTable) -> bool {
        let (set, taints) = (self.nodes[node].set, self.nodes[node].taints);
        self.accepts(group, set, taints, Undefined::Refused, table)
    }

    fn count_on_node(&mut self, group: usize, inverse: bool, node: usize, pods: i32, table: &mut RequirementTable) {
        let group = if inverse { &mut self.inverse[group] } else { &mut self.groups[group] };
        match group.domains {
            None => group.record_host(node, pods),
            Some(key) => {
                let Some(value) = self.nodes[node].labels.get(group.identity.key) else { return };
                let domain = self.keys[key].add(value, table);
                group.record(domain, pods);
            }
        }
    }

    /// Whether a group's node filter accepts a node with these requirements and taints.
    fn accepts(
        &mut self,
        group: usize,
        set: SetId,
        taints: TaintsId,
        undefined: Undefined,
        table: &RequirementTable,
    ) -> bool {
        let Some(filter) = &self.groups[group].identity.filter else { return true };
        if filter.accepts_all() {
            return true;
        }
        let key = (group, set, taints, undefined);
        if let Some(&known) = self.filtered.get(&key) {
            return known;
        }
        let affine = filter.affinity == NodeInclusionPolicy::Ignore
            || filter.sets.iter().any(|&wanted| table.conflict(set, wanted, undefined).is_none());
        let tolerated = filter.taints == NodeInclusionPolicy::Ignore
            || first_untolerated(&self.taints[taints.index()], &filter.tolerations).is_none();
        self.filtered.insert(key, affine && tolerated);
        affine && tolerated
    }

    /// Brings up to date which groups concern a class.
    fn refresh(&mut self, class: usize, spec: &PodSpec, namespace: Symbol) {
        let known = &mut self.classes[class];
        for position in known.counted_checked..self.groups.len() {
            if self.groups[position].selects(namespace, &spec.labels) {
                known.counted_by.push(position);
            }
        }
        known.counted_checked = self.groups.len();
        for position in known.repelled_checked..self.inverse.len() {
            if self.inverse[position].selects(namespace, &spec.labels) {
                known.repelled_by.push(position);
            }
        }
        known.repelled_checked = self.inverse.len();
    }

    /// Whether any group has a say in where pods of the class go.
    pub(super) fn concerns(&mut self, class: usize, owned: &[usize], spec: &PodSpec, namespace: Symbol) -> bool {
        self.refresh(class, spec, namespace);
        !owned.is_empty() || !self.classes[class].repelled_by.is_empty()
    }

    /// The node's requirements narrowed to the domains that every group of the pod accepts.
    ///
    /// # Errors
    /// The group that leaves no domain.
    pub(super) fn narrow(
        &mut self,
        asking: Asking<'_>,
        place: Place<'_>,
        table: &mut RequirementTable,
    ) -> Result<SetId, Blocked> {
        let repelled = self.classes[asking.class].repelled_by.len();
        let groups = asking.owned.len() + repelled;
        let group_at = |topology: &Self, position: usize| match asking.owned.get(position) {
            Some(&group) => (group, false),
            None => (topology.classes[asking.class].repelled_by[position - asking.owned.len()], true),
        };
        // Hosts first: the check is one look-up, and its refusals are final.
        for position in 0..groups {
            let (group, inverse) = group_at(self, position);
            self.check_host(group, inverse, asking, place)?;
        }
        let mut narrowed = place.set;
        for position in 0..groups {
            let (group, inverse) = group_at(self, position);
            narrowed = self.narrow_by(group, inverse, asking, place, narrowed, table)?;
        }
        Ok(narrowed)
    }

    fn check_host(&self, group: usize, inverse: bool, asking: Asking<'_>, place: Place<'_>) -> Result<(), Blocked> {
        let own = if inverse { &self.inverse[group] } else { &self.groups[group] };
        if !own.by_host() {
            return Ok(());
        }
        let count = own.on_host(place.host);
        let selects_itself = !inverse && self.classes[asking.class].counted_by.contains(&group);
        let (suits, for_good) = match own.identity.kind {
            TopologyKind::Spread => (i64::from(count) + i64::from(selects_itself) <= own.identity.max_skew, true),
            TopologyKind::AntiAffinity => (count == 0, true),
            TopologyKind::Affinity => {
                let allowed = asking.strict_host.is_none_or(|wanted| names_host(wanted, place.host_name));
                // Occupied hosts that the pod could go to: its own requirement on the host name is rare.
                let reachable = own.occupied > 0 && asking.strict_host.is_none_or(|wanted| wanted.complement);
                (allowed && (count > 0 || (selects_itself && !reachable)), false)
            }
        };
        if suits { Ok(()) } else { Err(Blocked { group, inverse, for_good }) }
    }

    fn narrow_by(
        &mut self,
        group: usize,
        inverse: bool,
        asking: Asking<'_>,
        place: Place<'_>,
        narrowed: SetId,
        table: &mut RequirementTable,
    ) -> Result<SetId, Blocked> {
        let own = if inverse { &self.inverse[group] } else { &self.groups[group] };
        let Some(key) = own.domains else { return Ok(narrowed) };
        let blocked = Blocked { group, inverse, for_good: false };
        let pod = table.member(asking.strict, own.identity.key);
        let node = table.member(place.set, own.identity.key);
        let domains = &mut self.keys[key];
        domains.prepare(pod, table);
        domains.prepare(node, table);
        let (pod, node) = (domains.mask(pod), domains.mask(node));
        let ties = (self.ties, self.attempt);
        let choice = match own.identity.kind {
            TopologyKind::AntiAffinity => own.anti_affinity(domains, pod, node),
            kind => {
                let selects_itself = self.classes[asking.class].counted_by.contains(&group);
                match kind {
                    TopologyKind::Spread => own.spread(domains, pod, node, selects_itself, ties),
                    _ => own.affinity(domains, pod, node, selects_itself, ties),
                }
            }
        };
        let requirement = match choice {
            Choice::Nothing => return Err(blocked),
            Choice::One(domain) => domains.only(domain),
            Choice::Several(several) => domains.several(&several, table),
        };
        let single = table.single(requirement);
        match table.combine(narrowed, single, place.undefined) {
            Combined::Set(set) => Ok(set),
            Combined::Undefined | Combined::Contradiction => Err(blocked),
        }
    }

    /// Counts a pod that was put on a node whose final requirements are `set`.
    pub(super) fn record(
        &mut self,
        class: usize,
        host: usize,
        set: SetId,
        taints: TaintsId,
        undefined: Undefined,
        table: &mut RequirementTable,
    ) {
        for position in 0..self.classes[class].counted_by.len() {
            let group = self.classes[class].counted_by[position];
            if self.accepts(group, set, taints, undefined, table) {
                record_in(&mut self.groups[group], &mut self.keys, host, set, table);
            }
        }
        for position in 0..self.classes[class].repels.len() {
            let group = self.classes[class].repels[position];
            record_in(&mut self.inverse[group], &mut self.keys, host, set, table);
        }
    }

    /// The refusal of a group, for people.
    pub(super) fn refusal(&self, blocked: Blocked) -> TopologyRefusal {
        let group = if blocked.inverse { &self.inverse[blocked.group] } else { &self.groups[blocked.group] };
        let mut counts: Vec<(Symbol, i64)> = match group.domains {
            None => Vec::new(),
            Some(key) => group.counted().map(|(d, count)| (self.keys[key].values[d], i64::from(count))).collect(),
        };
        counts.sort_unstable();
        TopologyRefusal { kind: group.identity.kind, key: group.identity.key, counts }
    }
}

/// Counts a pod in the domains where it can be: anti-affinity blocks every domain that is still possible, spread and
/// affinity count only where a single one is left.
fn record_in(group: &mut Group, keys: &mut [KeyDomains], host: usize, set: SetId, table: &mut RequirementTable) {
    let Some(key) = group.domains else {
        group.record_host(host, 1);
        return;
    };
    let Some(requirement) = table.member(set, group.identity.key) else { return };
    let requirement = table.requirement(requirement);
    let single = !requirement.complement && requirement.values.len() == 1;
    if !single && group.identity.kind != TopologyKind::AntiAffinity {
        return;
    }
    let values: Vec<Symbol> = requirement.values.iter().copied().collect();
    for value in values {
        let domain = keys[key].add(value, table);
        group.record(domain, 1);
    }
}

/// Whether a requirement on the host name allows this host.
pub(super) fn names_host(requirement: &Requirement, name: &str) -> bool {
    requirement.values.iter().any(|value| value.as_str() == name) != requirement.complement
}
