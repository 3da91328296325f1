//! Topology: spread constraints, pod affinity and anti-affinity over the nodes of a pass.
//!
//! Source: Karpenter core v1.13 `pkg/controllers/provisioning/scheduling/topology.go`.

mod cluster;
mod constraint;
mod domains;
mod group;
mod rules;

pub(super) use self::cluster::{BoundPods, ClusterTopology, Removal, TopologyNode};
pub(super) use self::rules::{Constraint, Rules, SpecNumber, TaintsId};

use smallvec::SmallVec;

use self::constraint::IdentityId;
use self::domains::KeyDomains;
use self::group::{Choice, Group};
use super::errors::{TopologyKind, TopologyRefusal};
use super::input::{PackingSetup, TieBreak};
use super::requirement_table::{Combined, RequirementId, RequirementTable, SetId, Undefined};
use nodecast_model::domain::PodSpec;
use nodecast_model::domain::requirements::Requirement;
use nodecast_model::domain::symbol::Symbol;

/// The groups that concern one class of pods, whatever it has relaxed.
struct ClassGroups {
    /// The number of the class's shape, under which the rules know which identities select it.
    shape: usize,
    /// Groups that count pods of the class, and inverse groups that stand against them.
    counted_by: SmallVec<[usize; 2]>,
    repelled_by: SmallVec<[usize; 2]>,
    /// How many groups of each kind there were when these lists were made.
    looked_at: (usize, usize),
    /// Inverse groups that pods of the class bring along.
    repels: SmallVec<[usize; 2]>,
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

/// What a group asks of a class, in short.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    pub(super) kind: TopologyKind,
    /// Whether the domains are hosts.
    pub(super) by_host: bool,
    pub(super) max_skew: i64,
    /// Whether pods of the class are among those that are counted.
    pub(super) selects_itself: bool,
}

/// Why a node does not suit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Blocked {
    group: usize,
    inverse: bool,
    /// Whether the host can never suit again in this pass, because counts on a host only grow.
    pub(super) for_good: bool,
    /// Whether every node with the same labels is refused too, as long as no other pod is placed.
    pub(super) by_labels: bool,
}

/// Which group an identity has in this pass.
#[derive(Default)]
struct Active(Vec<u32>);

impl Active {
    const NONE: u32 = u32::MAX;

    fn get(&self, id: IdentityId) -> Option<usize> {
        self.0.get(id.index()).filter(|&&group| group != Self::NONE).map(|&group| group as usize)
    }

    fn set(&mut self, id: IdentityId, group: usize) {
        if self.0.len() <= id.index() {
            self.0.resize(id.index() + 1, Self::NONE);
        }
        self.0[id.index()] = group as u32;
    }
}

/// All groups of a pass with their counts.
pub(super) struct Topology<'p> {
    setup: &'p PackingSetup<'p>,
    rules: &'p mut Rules,
    cluster: &'p mut ClusterTopology,
    taken: &'p Removal<'p>,
    groups: Vec<Group>,
    active: Active,
    inverse: Vec<Group>,
    active_inverse: Active,
    classes: Vec<ClassGroups>,
    ties: TieBreak,
    /// The number of the attempt, for ties.
    pub(super) attempt: u64,
}

impl<'p> Topology<'p> {
    /// The topology of a cluster less what a question takes from it: bound pods' required anti-affinity stands from the
    /// start, other groups come with the pods that own them.
    pub(super) fn new(
        setup: &'p PackingSetup<'p>,
        rules: &'p mut Rules,
        cluster: &'p mut ClusterTopology,
        taken: &'p Removal<'p>,
        ties: TieBreak,
        table: &mut RequirementTable,
    ) -> Self {
        let (mut inverse, mut active_inverse) = (Vec::new(), Active::default());
        for (constraint, counts) in cluster.inverse(taken, rules, setup, table) {
            active_inverse.set(constraint.identity, inverse.len());
            inverse.push(Group::new(constraint, counts, rules));
        }
        Self {
            setup,
            rules,
            cluster,
            taken,
            groups: Vec::new(),
            active: Active::default(),
            inverse,
            active_inverse,
            classes: Vec::new(),
            ties,
            attempt: 0,
        }
    }

    /// What lasts beyond this pass.
    pub(super) fn rules(&mut self) -> &mut Rules {
        self.rules
    }

    /// What lasts beyond this pass.
    pub(super) fn known_rules(&self) -> &Rules {
        self.rules
    }

    /// Sets room aside for so many classes.
    pub(super) fn make_room(&mut self, classes: usize) {
        self.classes.reserve(classes);
        self.groups.reserve(classes);
    }

    /// Makes room for a class of pods to place, with the inverse groups that it brings along.
    pub(super) fn add_class(&mut self, shape: usize, inverse: &[Constraint]) {
        let mut repels = SmallVec::new();
        for &constraint in inverse {
            let group = self.active_inverse.get(constraint.identity).unwrap_or_else(|| {
                let counts = self.cluster.fresh(constraint, self.rules, self.setup);
                self.active_inverse.set(constraint.identity, self.inverse.len());
                self.inverse.push(Group::new(constraint, counts, self.rules));
                self.inverse.len() - 1
            });
            repels.push(group);
        }
        let (counted_by, repelled_by) = (SmallVec::new(), SmallVec::new());
        self.classes.push(ClassGroups { shape, counted_by, repelled_by, looked_at: (0, 0), repels });
    }

    /// The groups of these constraints; new ones are made and counted.
    pub(super) fn own(&mut self, constraints: &[Constraint], table: &mut RequirementTable) -> SmallVec<[usize; 4]> {
        let mut owned = SmallVec::new();
        for &constraint in constraints {
            let group = match self.active.get(constraint.identity) {
                Some(known) => known,
                None => {
                    let counts = self.cluster.counts(constraint, self.taken, self.rules, self.setup, table);
                    self.active.set(constraint.identity, self.groups.len());
                    self.groups.push(Group::new(constraint, counts, self.rules));
                    self.groups.len() - 1
                }
            };
            if !owned.contains(&group) {
                owned.push(group);
            }
        }
        owned
    }

    /// Brings up to date which groups concern a class.
    fn refresh(&mut self, class: usize, spec: &PodSpec, namespace: Symbol) {
        let known = &mut self.classes[class];
        let now = (self.groups.len(), self.inverse.len());
        if known.looked_at == now {
            return;
        }
        known.looked_at = now;
        let selecting = self.rules.selecting(known.shape, namespace, spec);
        known.counted_by.clear();
        known.counted_by.extend(selecting.iter().filter_map(|&id| self.active.get(id)));
        known.counted_by.sort_unstable();
        known.repelled_by.clear();
        known.repelled_by.extend(selecting.iter().filter_map(|&id| self.active_inverse.get(id)));
        known.repelled_by.sort_unstable();
    }

    /// How many groups there are.
    pub(super) fn group_count(&self) -> u64 {
        (self.groups.len() + self.inverse.len()) as u64
    }

    /// Whether there is no group at all, so that topology has no say in this pass.
    pub(super) fn is_plain(&self) -> bool {
        self.groups.is_empty() && self.inverse.is_empty()
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
        let this_inverse = if inverse { &self.inverse[group] } else { &self.groups[group] };
        if this_inverse.domains.is_some() {
            return Ok(());
        }
        let count = this_inverse.on_host(place.host);
        let selects_itself = !inverse && self.classes[asking.class].counted_by.contains(&group);
        let (suits, for_good) = match this_inverse.kind {
            TopologyKind::Spread => (i64::from(count) + i64::from(selects_itself) <= this_inverse.max_skew, true),
            TopologyKind::AntiAffinity => (count == 0, true),
            TopologyKind::Affinity => {
                let allowed = asking.strict_host.is_none_or(|wanted| names_host(wanted, place.host_name));
                // Occupied hosts that the pod could go to: its own requirement on the host name is rare.
                let reachable =
                    this_inverse.occupied() > 0 && asking.strict_host.is_none_or(|wanted| wanted.complement);
                (allowed && (count > 0 || (selects_itself && !reachable)), false)
            }
        };
        if suits { Ok(()) } else { Err(Blocked { group, inverse, for_good, by_labels: false }) }
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
        let this_inverse = if inverse { &self.inverse[group] } else { &self.groups[group] };
        let Some(key) = this_inverse.domains else { return Ok(narrowed) };
        let blocked = Blocked { group, inverse, for_good: false, by_labels: true };
        let pod = table.member(asking.strict, this_inverse.key);
        let node = table.member(place.set, this_inverse.key);
        let domains = &mut self.rules.keys[key];
        domains.prepare(pod, table);
        domains.prepare(node, table);
        let (pod, node) = (domains.mask(pod), domains.mask(node));
        let ties = (self.ties, self.attempt);
        let choice = match this_inverse.kind {
            TopologyKind::AntiAffinity => this_inverse.anti_affinity(domains, pod, node),
            kind => {
                let selects_itself = self.classes[asking.class].counted_by.contains(&group);
                match kind {
                    TopologyKind::Spread => this_inverse.spread(domains, pod, node, selects_itself, ties),
                    _ => this_inverse.affinity(domains, pod, node, selects_itself, ties),
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
            if self.rules.accepts(self.groups[group].identity, set, taints, undefined, table) {
                record_in(&mut self.groups[group], &mut self.rules.keys, host, set, table);
            }
        }
        for position in 0..self.classes[class].repels.len() {
            let group = self.classes[class].repels[position];
            record_in(&mut self.inverse[group], &mut self.rules.keys, host, set, table);
        }
    }

    /// What a group asks of pods of a class that owns it.
    pub(super) fn rule(&self, class: usize, group: usize) -> Rule {
        let this_group = &self.groups[group];
        Rule {
            kind: this_group.kind,
            by_host: this_group.domains.is_none(),
            max_skew: this_group.max_skew,
            selects_itself: self.classes[class].counted_by.contains(&group),
        }
    }

    /// Whether other pods' anti-affinity keeps the class out of domains wider than a host.
    pub(super) fn is_repelled_from_domains(&self, class: usize) -> bool {
        self.classes[class].repelled_by.iter().any(|&group| self.inverse[group].domains.is_some())
    }

    /// The domains that a group knows: the requirement that allows only this one, and the pods counted there.
    pub(super) fn domain_counts(&self, group: usize) -> Vec<(RequirementId, i64)> {
        let group = &self.groups[group];
        let Some(key) = group.domains else { return Vec::new() };
        group.counted().map(|(domain, count)| (self.rules.keys[key].only(domain), i64::from(count))).collect()
    }

    /// The refusal of a group, for people.
    pub(super) fn refusal(&self, blocked: Blocked) -> TopologyRefusal {
        let group = if blocked.inverse { &self.inverse[blocked.group] } else { &self.groups[blocked.group] };
        let mut counts: Vec<(Symbol, i64)> = match group.domains {
            None => Vec::new(),
            Some(key) => group.counted().map(|(d, count)| (self.rules.keys[key].values[d], i64::from(count))).collect(),
        };
        counts.sort_unstable();
        TopologyRefusal { kind: group.kind, key: group.key, counts }
    }
}

/// Counts a pod in the domains where it can be: anti-affinity blocks every domain that is still possible, spread and
/// affinity count only where a single one is left.
fn record_in(group: &mut Group, keys: &mut [KeyDomains], host: usize, set: SetId, table: &mut RequirementTable) {
    let Some(key) = group.domains else {
        group.record_host(host);
        return;
    };
    let Some(requirement) = table.member(set, group.key) else { return };
    let requirement = table.requirement(requirement);
    let single = !requirement.complement && requirement.values.len() == 1;
    if !single && group.kind != TopologyKind::AntiAffinity {
        return;
    }
    let values: Vec<Symbol> = requirement.values.iter().copied().collect();
    for value in values {
        let domain = keys[key].add(value, table);
        group.record(domain);
    }
}

/// Whether a requirement on the host name allows this host.
pub(super) fn names_host(requirement: &Requirement, name: &str) -> bool {
    requirement.values.iter().any(|value| value.as_str() == name) != requirement.complement
}
