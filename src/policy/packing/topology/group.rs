//! One topology group: a constraint shared by all pods that state it, with the pods counted in each domain.
//!
//! Source: Karpenter core v1.13 `pkg/controllers/provisioning/scheduling/topologygroup.go`, `topologynodefilter.go`.

use rustc_hash::FxHashMap;

use super::domains::KeyDomains;
use crate::domain::labels::{LabelSelector, Labels, SelectorExpression, SelectorOperator};
use crate::domain::symbol::{Symbol, well_known};
use crate::domain::taints::Toleration;
use crate::domain::topology::{NodeInclusionPolicy, PodAffinityTerm, TopologySpread, WhenUnsatisfiable};
use crate::domain::{PodSpec, Requirements};
use crate::policy::packing::bits::{self, Bits};
use crate::policy::packing::errors::TopologyKind;
use crate::policy::packing::input::{NamespaceView, PreferencePolicy, TieBreak};
use crate::policy::packing::requirement_table::{RequirementTable, SetId};

/// Which nodes count in a spread: those that meet one of the sets and whose taints are tolerated.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct NodeFilter {
    pub(super) sets: Vec<SetId>,
    pub(super) affinity: NodeInclusionPolicy,
    pub(super) taints: NodeInclusionPolicy,
    pub(super) tolerations: Vec<Toleration>,
}

impl NodeFilter {
    /// Whether it accepts every node.
    pub(super) fn accepts_all(&self) -> bool {
        self.taints == NodeInclusionPolicy::Ignore
            && (self.affinity == NodeInclusionPolicy::Ignore || self.sets.contains(&SetId::EMPTY))
    }
}

/// What makes two constraints one group. `minDomains` is not part of it: the first constraint's value holds for all.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Identity {
    pub(super) kind: TopologyKind,
    pub(super) key: Symbol,
    pub(super) namespaces: Vec<Symbol>,
    pub(super) selector: Option<LabelSelector>,
    pub(super) max_skew: i64,
    pub(super) filter: Option<NodeFilter>,
}

/// A constraint as a pod states it.
pub(super) struct Constraint {
    pub(super) identity: Identity,
    pub(super) min_domains: Option<i64>,
}

/// The spread, affinity and anti-affinity constraints of a pod, preferred ones included unless they are ignored.
pub(super) fn constraints(
    spec: &PodSpec,
    namespace: Symbol,
    namespaces: &[NamespaceView<'_>],
    policy: PreferencePolicy,
    table: &mut RequirementTable,
) -> Vec<Constraint> {
    let mut found = Vec::new();
    for spread in &spec.topology_spread {
        if policy == PreferencePolicy::Ignore && spread.when_unsatisfiable == WhenUnsatisfiable::ScheduleAnyway {
            continue;
        }
        found.push(spread_constraint(spec, namespace, spread, table));
    }
    let respected = policy == PreferencePolicy::Respect;
    for (kind, affinity) in
        [(TopologyKind::Affinity, &spec.pod_affinity), (TopologyKind::AntiAffinity, &spec.pod_anti_affinity)]
    {
        let preferred = affinity.preferred.iter().filter(|_| respected).map(|weighted| &weighted.term);
        for term in affinity.required.iter().chain(preferred) {
            found.push(affinity_constraint(kind, namespace, term, namespaces));
        }
    }
    found
}

/// The constraints that a pod's required anti-affinity puts on others.
pub(super) fn inverse_constraints(
    spec: &PodSpec,
    namespace: Symbol,
    namespaces: &[NamespaceView<'_>],
) -> Vec<Constraint> {
    let required = spec.pod_anti_affinity.required.iter();
    required.map(|term| affinity_constraint(TopologyKind::AntiAffinity, namespace, term, namespaces)).collect()
}

fn spread_constraint(
    spec: &PodSpec,
    namespace: Symbol,
    spread: &TopologySpread,
    table: &mut RequirementTable,
) -> Constraint {
    let selector = spread.selector.clone().map(|mut selector| {
        for &key in &spread.match_label_keys {
            if let Some(value) = spec.labels.get(key) {
                let expression = SelectorExpression { key, operator: SelectorOperator::In, values: vec![value] };
                if !selector.expressions.contains(&expression) {
                    selector.expressions.push(expression);
                }
            }
        }
        selector.expressions.sort_by_key(|expression| expression.key);
        selector
    });
    let selected = Requirements::from_labels(&spec.node_selector);
    let mut sets: Vec<SetId> = Vec::new();
    if spec.node_affinity.required.is_empty() {
        sets.push(table.intern(&selected));
    }
    for term in &spec.node_affinity.required {
        let mut both = selected.clone();
        both.extend(&term.requirements());
        sets.push(table.intern(&both));
    }
    Constraint {
        identity: Identity {
            kind: TopologyKind::Spread,
            key: spread.topology_key,
            namespaces: vec![namespace],
            selector,
            max_skew: spread.max_skew,
            filter: Some(NodeFilter {
                sets,
                affinity: spread.node_affinity_policy,
                taints: spread.node_taints_policy,
                tolerations: spec.tolerations.clone(),
            }),
        },
        min_domains: spread.min_domains,
    }
}

fn affinity_constraint(
    kind: TopologyKind,
    namespace: Symbol,
    term: &PodAffinityTerm,
    namespaces: &[NamespaceView<'_>],
) -> Constraint {
    let mut meant = term.namespaces.clone();
    match &term.namespace_selector {
        None if meant.is_empty() => meant.push(namespace),
        None => {}
        Some(selector) => {
            meant.extend(namespaces.iter().filter(|view| selector.matches(view.labels)).map(|view| view.name));
        }
    }
    meant.sort_unstable();
    meant.dedup();
    let identity = Identity {
        kind,
        key: term.topology_key,
        namespaces: meant,
        selector: term.selector.clone(),
        max_skew: i64::MAX,
        filter: None,
    };
    Constraint { identity, min_domains: None }
}

/// A domain that a group does not know.
const ABSENT: i32 = -1;

/// A constraint with its counts.
pub(super) struct Group {
    pub(super) identity: Identity,
    pub(super) min_domains: Option<i64>,
    /// Position of the key's domains; `None` for the host name, whose domains are the nodes themselves.
    pub(super) domains: Option<usize>,
    /// Counts by domain.
    counts: Vec<i32>,
    /// Counts by host.
    hosts: FxHashMap<usize, i32>,
    /// Number of domains, or hosts, with a pod.
    pub(super) occupied: usize,
}

/// What a group leaves of the domains.
pub(super) enum Choice {
    /// Nothing.
    Nothing,
    /// One domain.
    One(usize),
    /// Several.
    Several(Bits),
}

impl Group {
    /// A group that knows no domain yet.
    pub(super) fn new(constraint: Constraint, domains: Option<usize>) -> Self {
        Self {
            identity: constraint.identity,
            min_domains: constraint.min_domains,
            domains,
            counts: Vec::new(),
            hosts: FxHashMap::default(),
            occupied: 0,
        }
    }

    /// Whether the group counts (or, inverse, stands against) a pod of this namespace with these labels.
    pub(super) fn selects(&self, namespace: Symbol, labels: &Labels) -> bool {
        self.identity.namespaces.contains(&namespace)
            && self.identity.selector.as_ref().is_some_and(|selector| selector.matches(labels))
    }

    /// Whether the key is the host name.
    pub(super) fn by_host(&self) -> bool {
        self.identity.key == well_known::HOSTNAME
    }

    /// Lets the group know a domain.
    pub(super) fn register(&mut self, domain: usize) {
        if self.counts.len() <= domain {
            self.counts.resize(domain + 1, ABSENT);
        }
        self.counts[domain] = self.counts[domain].max(0);
    }

    /// Counts `pods` more in a domain.
    pub(super) fn record(&mut self, domain: usize, pods: i32) {
        self.register(domain);
        self.occupied += usize::from(self.counts[domain] == 0 && pods > 0);
        self.counts[domain] += pods;
    }

    /// Counts `pods` more on a host.
    pub(super) fn record_host(&mut self, host: usize, pods: i32) {
        let count = self.hosts.entry(host).or_insert(0);
        self.occupied += usize::from(*count == 0 && pods > 0);
        *count += pods;
    }

    /// The pods counted on a host.
    pub(super) fn on_host(&self, host: usize) -> i32 {
        self.hosts.get(&host).copied().unwrap_or(0)
    }

    /// The known domains with their counts.
    pub(super) fn counted(&self) -> impl Iterator<Item = (usize, i32)> + '_ {
        self.counts.iter().copied().enumerate().filter(|(_, count)| *count >= 0)
    }

    /// A spread takes the domain with the fewest pods among those the node allows, if the skew permits.
    pub(super) fn spread(
        &self,
        domains: &KeyDomains,
        pod: Option<&[u64]>,
        node: Option<&[u64]>,
        selects_itself: bool,
        (ties, attempt): (TieBreak, u64),
    ) -> Choice {
        let allowed = |mask: Option<&[u64]>, domain| mask.is_none_or(|mask| bits::contains(mask, domain));
        let mut least = i64::from(i32::MAX);
        let mut supported = 0;
        for (domain, count) in self.counted() {
            if allowed(pod, domain) {
                supported += 1;
                least = least.min(i64::from(count));
            }
        }
        if self.min_domains.is_some_and(|wanted| supported < wanted) {
            least = 0;
        }
        let mut best: Option<(i32, usize)> = None;
        for (domain, count) in self.counted() {
            let with_pod = i64::from(count) + i64::from(selects_itself);
            if !allowed(node, domain) || with_pod - least > self.identity.max_skew {
                continue;
            }
            let better = best.is_none_or(|(fewest, chosen)| {
                count < fewest || (count == fewest && domains.before(domain, chosen, ties, attempt))
            });
            if better {
                best = Some((count, domain));
            }
        }
        best.map_or(Choice::Nothing, |(_, domain)| Choice::One(domain))
    }

    /// Affinity takes every allowed domain with pods. If there is none and the pod selects itself, and nobody is placed
    /// yet where the pod could go, it starts one: a domain that node and pod allow, and another that the pod allows.
    pub(super) fn affinity(
        &self,
        domains: &KeyDomains,
        pod: Option<&[u64]>,
        node: Option<&[u64]>,
        selects_itself: bool,
        (ties, attempt): (TieBreak, u64),
    ) -> Choice {
        let allowed = |mask: Option<&[u64]>, domain| mask.is_none_or(|mask| bits::contains(mask, domain));
        let mut options = bits::empty(domains.values.len());
        let mut found = false;
        for (domain, count) in self.counted() {
            if count > 0 && allowed(pod, domain) && allowed(node, domain) {
                bits::insert(&mut options, domain);
                found = true;
            }
        }
        if found {
            return Choice::Several(options);
        }
        let reachable = self.counted().any(|(domain, count)| count > 0 && allowed(pod, domain));
        if !selects_itself || (self.occupied > 0 && reachable) {
            return Choice::Nothing;
        }
        let first = |accept: &dyn Fn(usize) -> bool| {
            let candidates = self.counted().map(|(domain, _)| domain).filter(|&domain| accept(domain));
            candidates.reduce(|a, b| if domains.before(b, a, ties, attempt) { b } else { a })
        };
        let on_node = first(&|domain| allowed(pod, domain) && allowed(node, domain));
        let anywhere = first(&|domain| allowed(pod, domain));
        for domain in on_node.into_iter().chain(anywhere) {
            bits::insert(&mut options, domain);
            found = true;
        }
        if found { Choice::Several(options) } else { Choice::Nothing }
    }

    /// Anti-affinity takes every allowed domain without pods.
    pub(super) fn anti_affinity(&self, domains: &KeyDomains, pod: Option<&[u64]>, node: Option<&[u64]>) -> Choice {
        let allowed = |mask: Option<&[u64]>, domain| mask.is_none_or(|mask| bits::contains(mask, domain));
        let mut options = bits::empty(domains.values.len());
        let mut found = false;
        for (domain, count) in self.counted() {
            if count == 0 && allowed(pod, domain) && allowed(node, domain) {
                bits::insert(&mut options, domain);
                found = true;
            }
        }
        if found { Choice::Several(options) } else { Choice::Nothing }
    }
}
