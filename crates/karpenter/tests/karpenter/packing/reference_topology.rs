//! The topology of the plain pass: every group a list of domains with counts, looked through from end to end.

use std::collections::{BTreeMap, BTreeSet};

use nodecast_karpenter::packing::PreferencePolicy;
use nodecast_model::domain::labels::{LabelSelector, Labels, SelectorExpression, SelectorOperator};
use nodecast_model::domain::requirements::{Operator, Requirement};
use nodecast_model::domain::symbol::well_known;
use nodecast_model::domain::taints::{Toleration, first_untolerated};
use nodecast_model::domain::topology::{NodeInclusionPolicy, PodAffinityTerm, WhenUnsatisfiable};
use nodecast_model::domain::{PodSpec, Requirements, Symbol, Taint};

use super::world::World;

/// A node as topology sees it; its requirements name its host.
pub struct Host {
    pub name: Symbol,
    pub requirements: Requirements,
    pub taints: Vec<Taint>,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Kind {
    Spread,
    Affinity,
    Anti,
}

#[derive(Clone, PartialEq, Debug)]
struct Filter {
    alternatives: Vec<Requirements>,
    affinity: NodeInclusionPolicy,
    taints: NodeInclusionPolicy,
    tolerations: Vec<Toleration>,
}

impl Filter {
    fn accepts(
        &self,
        requirements: &Requirements,
        taints: &[Taint],
        undefined: impl Fn(Symbol) -> bool + Copy,
    ) -> bool {
        let affine = self.affinity == NodeInclusionPolicy::Ignore
            || self.alternatives.iter().any(|alternative| requirements.compatible(alternative, undefined).is_ok());
        let tolerated =
            self.taints == NodeInclusionPolicy::Ignore || first_untolerated(taints, &self.tolerations).is_none();
        affine && tolerated
    }
}

/// What makes two constraints one group.
#[derive(Clone, PartialEq, Debug)]
struct Identity {
    kind: Kind,
    key: Symbol,
    namespaces: BTreeSet<Symbol>,
    selector: Option<LabelSelector>,
    max_skew: i64,
    filter: Option<Filter>,
}

impl Identity {
    fn selects(&self, namespace: Symbol, labels: &Labels) -> bool {
        self.namespaces.contains(&namespace) && self.selector.as_ref().is_some_and(|selector| selector.matches(labels))
    }
}

struct Group {
    identity: Identity,
    min_domains: Option<i64>,
    counts: BTreeMap<Symbol, i64>,
    owners: BTreeSet<usize>,
}

/// All groups of a pass.
pub struct Groups<'w> {
    world: &'w World,
    groups: Vec<Group>,
    inverse: Vec<Group>,
}

impl<'w> Groups<'w> {
    /// The groups that bound pods bring along.
    pub fn new(world: &'w World) -> Self {
        let mut groups = Self { world, groups: Vec::new(), inverse: Vec::new() };
        for node in &world.nodes {
            for (_, spec) in &node.pods {
                for identity in inverse_of(spec, Symbol::new("default"), world) {
                    let group = groups.find_inverse(identity, spec);
                    let key = groups.inverse[group].identity.key;
                    if let Some(domain) = domain_of(&node.labels, &node.name, key) {
                        *groups.inverse[group].counts.entry(domain).or_default() += 1;
                    }
                }
            }
        }
        groups
    }

    /// Makes the pod own the groups of its present specification, and no others.
    pub fn update(&mut self, pod: usize, spec: &PodSpec) {
        let namespace = self.world.pods[pod].1;
        for group in &mut self.groups {
            group.owners.remove(&pod);
        }
        for identity in inverse_of(spec, namespace, self.world) {
            let group = self.find_inverse(identity, spec);
            self.inverse[group].owners.insert(pod);
        }
        for (identity, min_domains) in constraints_of(spec, namespace, self.world) {
            let group = match self.groups.iter().position(|group| group.identity == identity) {
                Some(known) => known,
                None => {
                    let group = self.counted(identity, min_domains, spec);
                    self.groups.push(group);
                    self.groups.len() - 1
                }
            };
            self.groups[group].owners.insert(pod);
        }
    }

    fn find_inverse(&mut self, identity: Identity, spec: &PodSpec) -> usize {
        if let Some(known) = self.inverse.iter().position(|group| group.identity == identity) {
            return known;
        }
        let counts = self.universe(&identity, spec).into_iter().map(|domain| (domain, 0)).collect();
        self.inverse.push(Group { identity, min_domains: None, counts, owners: BTreeSet::new() });
        self.inverse.len() - 1
    }

    /// The domains that pools could make, as far as the first owner may look at them.
    fn universe(&self, identity: &Identity, spec: &PodSpec) -> BTreeSet<Symbol> {
        let mut domains = BTreeSet::new();
        if identity.key == well_known::HOSTNAME {
            return domains;
        }
        let all = identity.filter.as_ref().is_some_and(|filter| filter.taints == NodeInclusionPolicy::Ignore);
        for pool in self.world.pools.iter().filter(|pool| pool.replicas.is_none()) {
            if !all && first_untolerated(&pool.taints, &spec.tolerations).is_some() {
                continue;
            }
            let mut requirements: Requirements = pool.requirements.iter().cloned().collect();
            requirements.extend(&Requirements::from_labels(&pool.labels));
            for instance_type in &self.world.types {
                let mut both = requirements.clone();
                both.extend(&instance_type.requirements);
                domains.extend(listed(both.get(identity.key)));
            }
            domains.extend(listed(requirements.get(identity.key)));
        }
        domains
    }

    fn counted(&self, identity: Identity, min_domains: Option<i64>, spec: &PodSpec) -> Group {
        let mut counts: BTreeMap<Symbol, i64> =
            self.universe(&identity, spec).into_iter().map(|domain| (domain, 0)).collect();
        for node in &self.world.nodes {
            let labels = Requirements::from_labels(&node.labels);
            let accepted = |filter: &Filter| filter.accepts(&labels, &node.taints, |_| false);
            if !identity.filter.as_ref().is_none_or(accepted) {
                continue;
            }
            let Some(domain) = domain_of(&node.labels, &node.name, identity.key) else { continue };
            let selected = node.pods.iter().filter(|(_, key)| identity.selects(Symbol::new("default"), &key.labels));
            let selected = selected.count() as i64;
            if node.offered || selected > 0 {
                *counts.entry(domain).or_default() += selected;
            }
        }
        Group { identity, min_domains, counts, owners: BTreeSet::new() }
    }

    /// What remains of a node's requirements when every group of the pod had its say.
    pub fn narrow(
        &self,
        pod: usize,
        spec: &PodSpec,
        strict: &Requirements,
        node: Requirements,
        undefined: impl Fn(Symbol) -> bool + Copy,
    ) -> Option<Requirements> {
        let namespace = self.world.pods[pod].1;
        let owned = self.groups.iter().filter(|group| group.owners.contains(&pod));
        let against = self.inverse.iter().filter(|group| group.identity.selects(namespace, &spec.labels));
        let mut narrowed = node.clone();
        for group in owned.chain(against) {
            let key = group.identity.key;
            let any = Requirement::new(key, Operator::Exists, []);
            let on_pod = strict.get(key).cloned().unwrap_or_else(|| any.clone());
            let on_node = node.get(key).cloned().unwrap_or(any);
            let itself = group.identity.selects(namespace, &spec.labels);
            let domains = group.domains(&on_pod, &on_node, itself);
            if domains.is_empty() {
                return None;
            }
            let one: Requirements = [Requirement::new(key, Operator::In, domains)].into_iter().collect();
            narrowed.compatible(&one, undefined).ok()?;
            narrowed.extend(&one);
        }
        Some(narrowed)
    }

    /// Counts a pod that has been put on a node.
    pub fn record(&mut self, pod: usize, spec: &PodSpec, host: &Host, undefined: impl Fn(Symbol) -> bool + Copy) {
        let namespace = self.world.pods[pod].1;
        for group in &mut self.groups {
            let accepts = |filter: &Filter| filter.accepts(&host.requirements, &host.taints, undefined);
            if group.identity.selects(namespace, &spec.labels) && group.identity.filter.as_ref().is_none_or(accepts) {
                group.record(host);
            }
        }
        for group in self.inverse.iter_mut().filter(|group| group.owners.contains(&pod)) {
            group.record(host);
        }
    }
}

impl Group {
    fn record(&mut self, host: &Host) {
        if self.identity.key == well_known::HOSTNAME {
            *self.counts.entry(host.name).or_default() += 1;
            return;
        }
        let Some(requirement) = host.requirements.get(self.identity.key) else { return };
        let single = !requirement.complement && requirement.values.len() == 1;
        if single || self.identity.kind == Kind::Anti {
            for &domain in &requirement.values {
                *self.counts.entry(domain).or_default() += 1;
            }
        }
    }

    fn domains(&self, on_pod: &Requirement, on_node: &Requirement, itself: bool) -> BTreeSet<Symbol> {
        let by_host = self.identity.key == well_known::HOSTNAME;
        let mut counts = self.counts.clone();
        if by_host {
            for &host in &on_node.values {
                counts.entry(host).or_insert(0);
            }
        }
        let both = |domain: Symbol| on_pod.has(domain) && on_node.has(domain);
        match self.identity.kind {
            Kind::Anti => counts.iter().filter(|(d, count)| both(**d) && **count == 0).map(|(d, _)| *d).collect(),
            Kind::Spread => {
                let eligible: Vec<i64> = counts.iter().filter(|(d, _)| on_pod.has(**d)).map(|(_, c)| *c).collect();
                let few = self.min_domains.is_some_and(|least| (eligible.len() as i64) < least);
                let least = if by_host || few { 0 } else { eligible.into_iter().min().unwrap_or(0) };
                let fits = |count: i64| count + i64::from(itself) - least <= self.identity.max_skew;
                let candidates = counts.iter().filter(|(d, count)| on_node.has(**d) && fits(**count));
                candidates.min_by_key(|(d, count)| (**count, **d)).map(|(d, _)| *d).into_iter().collect()
            }
            Kind::Affinity => {
                let with_pods: BTreeSet<Symbol> =
                    counts.iter().filter(|(d, count)| both(**d) && **count > 0).map(|(d, _)| *d).collect();
                let reachable = counts.iter().any(|(d, count)| *count > 0 && on_pod.has(*d));
                if !with_pods.is_empty() || !itself || reachable {
                    return with_pods;
                }
                let on_node = counts.keys().copied().find(|&domain| both(domain));
                if by_host {
                    return on_node.into_iter().collect();
                }
                on_node.into_iter().chain(counts.keys().copied().find(|&domain| on_pod.has(domain))).collect()
            }
        }
    }
}

fn listed(requirement: Option<&Requirement>) -> Vec<Symbol> {
    let concrete = requirement.filter(|requirement| !requirement.complement);
    concrete.map_or(Vec::new(), |concrete| concrete.values.iter().copied().collect())
}

fn domain_of(labels: &Labels, name: &str, key: Symbol) -> Option<Symbol> {
    let label = labels.get(key);
    if key == well_known::HOSTNAME { label.or_else(|| Some(Symbol::new(name))) } else { label }
}

fn constraints_of(spec: &PodSpec, namespace: Symbol, world: &World) -> Vec<(Identity, Option<i64>)> {
    let respect = world.options.preferences == PreferencePolicy::Respect;
    let mut found = Vec::new();
    for spread in &spec.topology_spread {
        if !respect && spread.when_unsatisfiable == WhenUnsatisfiable::ScheduleAnyway {
            continue;
        }
        let mut selector = spread.selector.clone();
        for &key in &spread.match_label_keys {
            if let (Some(selector), Some(value)) = (&mut selector, spec.labels.get(key)) {
                selector.expressions.push(SelectorExpression {
                    key,
                    operator: SelectorOperator::In,
                    values: vec![value],
                });
            }
        }
        let selected = Requirements::from_labels(&spec.node_selector);
        let mut alternatives: Vec<Requirements> = Vec::new();
        for term in &spec.node_affinity.required {
            let mut both = selected.clone();
            both.extend(&term.requirements());
            alternatives.push(both);
        }
        if alternatives.is_empty() {
            alternatives.push(selected);
        }
        let (affinity, taints) = (spread.node_affinity_policy, spread.node_taints_policy);
        let filter = Some(Filter { alternatives, affinity, taints, tolerations: spec.tolerations.clone() });
        let (key, max_skew) = (spread.topology_key, spread.max_skew);
        let namespaces = BTreeSet::from([namespace]);
        let identity = Identity { kind: Kind::Spread, key, namespaces, selector, max_skew, filter };
        found.push((identity, spread.min_domains));
    }
    for (kind, affinity) in [(Kind::Affinity, &spec.pod_affinity), (Kind::Anti, &spec.pod_anti_affinity)] {
        found.extend(affinity.required.iter().map(|term| (of_term(kind, term, namespace, world), None)));
        if respect {
            let preferred = affinity.preferred.iter();
            found.extend(preferred.map(|preferred| (of_term(kind, &preferred.term, namespace, world), None)));
        }
    }
    found
}

fn inverse_of(spec: &PodSpec, namespace: Symbol, world: &World) -> Vec<Identity> {
    let required = spec.pod_anti_affinity.required.iter();
    required.map(|term| of_term(Kind::Anti, term, namespace, world)).collect()
}

fn of_term(kind: Kind, term: &PodAffinityTerm, namespace: Symbol, world: &World) -> Identity {
    let mut namespaces: BTreeSet<Symbol> = term.namespaces.iter().copied().collect();
    match &term.namespace_selector {
        Some(selector) => {
            let chosen = world.namespaces.iter().filter(|(_, labels)| selector.matches(labels));
            namespaces.extend(chosen.map(|(name, _)| *name));
        }
        None if namespaces.is_empty() => {
            namespaces.insert(namespace);
        }
        None => {}
    }
    Identity { kind, key: term.topology_key, namespaces, selector: term.selector.clone(), max_skew: 0, filter: None }
}
