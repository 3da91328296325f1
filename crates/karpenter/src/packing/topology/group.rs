//! One topology group: a constraint shared by all pods that state it, with the pods counted in each domain.
//!
//! Source: Karpenter core v1.13 `pkg/controllers/provisioning/scheduling/topologygroup.go`.

use super::cluster::{ABSENT, Counts};
use super::constraint::IdentityId;
use super::domains::KeyDomains;
use super::rules::{Constraint, Rules};
use crate::packing::bits::{self, Bits};
use crate::packing::errors::TopologyKind;
use crate::packing::input::TieBreak;
use nodecast_model::domain::symbol::Symbol;

/// A constraint with its counts.
pub(super) struct Group {
    pub(super) identity: IdentityId,
    pub(super) kind: TopologyKind,
    pub(super) key: Symbol,
    pub(super) max_skew: i64,
    pub(super) min_domains: Option<i64>,
    /// Position of the key's domains; `None` for the host name, whose domains are the nodes themselves.
    pub(super) domains: Option<usize>,
    counts: Counts,
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
    /// A group as its first owner states it, with what is counted already.
    pub(super) fn new(constraint: Constraint, counts: Counts, rules: &Rules) -> Self {
        let identity = rules.identity(constraint.identity);
        Self {
            identity: constraint.identity,
            kind: identity.kind,
            key: identity.key,
            max_skew: identity.max_skew,
            min_domains: constraint.min_domains,
            domains: rules.domains_of(constraint.identity),
            counts,
        }
    }

    /// Number of domains, or hosts, with a pod.
    pub(super) fn occupied(&self) -> usize {
        self.counts.occupied
    }

    /// Counts a pod in a domain, which the group knows from then on.
    pub(super) fn record(&mut self, domain: usize) {
        let counts = &mut self.counts.domains;
        if counts.len() <= domain {
            counts.resize(domain + 1, ABSENT);
        }
        let count = &mut counts[domain];
        self.counts.occupied += usize::from(*count <= 0);
        *count = (*count).max(0) + 1;
    }

    /// Counts a pod on a host.
    pub(super) fn record_host(&mut self, host: usize) {
        let (before, _) = self.counts.hosts.add(host, 1);
        self.counts.occupied += usize::from(before == 0);
    }

    /// The pods counted on a host.
    pub(super) fn on_host(&self, host: usize) -> i32 {
        self.counts.hosts.get(host)
    }

    /// The known domains with their counts.
    pub(super) fn counted(&self) -> impl Iterator<Item = (usize, i32)> + '_ {
        self.counts.domains.iter().copied().enumerate().filter(|(_, count)| *count >= 0)
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
            if !allowed(node, domain) || with_pod - least > self.max_skew {
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
        if !selects_itself || (self.occupied() > 0 && reachable) {
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
