//! What PodTopologySpread, InterPodAffinity and VolumeRestrictions count over the cluster for pods of one shape.
//!
//! Every node contributes a part; the sums are over the parts. When a node or its pods change, its old part is taken
//! away and a new one is worked out, so that following the cluster costs what changed.

use std::sync::Arc;

use smallvec::SmallVec;

use super::cluster_view::{ClusterView, Slot};
use super::node::{NodeEntry, PeerCount};
use super::plugins::{Plugin, Reason, Refusal, Rejection};
use super::shape::{PeerId, PodShape, SpreadConstraint};
use super::topology::{DomainCounts, KeyIndex, NO_DOMAIN};
use super::volumes::claims_in_common;
use nodecast_model::domain::TaintEffect;
use nodecast_model::domain::taints::first_untolerated;

/// How much a required affinity term of a running pod adds to the score of its domain (`hardPodAffinityWeight`).
pub const HARD_POD_AFFINITY_WEIGHT: i64 = 1;

/// Sums by topology key and domain.
#[derive(Clone, Default, Debug)]
struct KeyedSums {
    keys: Vec<(KeyIndex, Vec<i64>)>,
    total: i64,
}

impl KeyedSums {
    fn add(&mut self, key: KeyIndex, domain: u32, amount: i64) {
        self.total += amount;
        let at = match self.keys.iter().position(|entry| entry.0 == key) {
            Some(at) => at,
            None => {
                self.keys.push((key, Vec::new()));
                self.keys.len() - 1
            }
        };
        let sums = &mut self.keys[at].1;
        if domain as usize >= sums.len() {
            sums.resize(domain as usize + 1, 0);
        }
        sums[domain as usize] += amount;
    }

    fn get(&self, key: KeyIndex, domain: u32) -> i64 {
        self.keys.iter().find(|entry| entry.0 == key).map_or(0, |(_, sums)| at_domain(sums, domain))
    }

    /// Whether one of the node's domains has a sum above zero.
    fn any_of_node(&self, view: &ClusterView, slot: Slot) -> bool {
        self.total > 0 && self.keys.iter().any(|(key, sums)| at_domain(sums, view.domain(*key, slot)) > 0)
    }
}

fn at_domain(sums: &[i64], domain: u32) -> i64 {
    sums.get(domain as usize).copied().unwrap_or(0)
}

/// Which sum a part of a node belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Counter {
    /// Pods that a hard spread constraint counts, by constraint.
    HardSpread(u32),
    /// Pods that a soft spread constraint counts, by constraint; for the hostname the domain is the slot.
    SoftSpread(u32),
    /// Pods that all required affinity terms mean, by key.
    Affinity(KeyIndex),
    /// Pods that required anti-affinity terms mean, by key.
    AntiAffinity(KeyIndex),
    /// Running pods whose required anti-affinity means pods of this shape, by key.
    ExistingAntiAffinity(KeyIndex),
    /// Weights of preferred terms, own and of running pods, by key.
    Preferred(KeyIndex),
    /// How many terms made up those weights: weights of opposite sign still count as a match.
    PreferredMatches,
    /// Uses of claims that one pod may use at a time, wherever the pods are.
    Claims,
}

/// What one node adds to one sum.
#[derive(Clone, Copy, Debug)]
struct Part {
    counter: Counter,
    domain: u32,
    amount: i64,
}

/// What a pod among certain peers means to pods of this shape.
#[derive(Clone, Debug)]
struct Relation {
    /// For each hard constraint, whether it counts such pods.
    hard: Vec<bool>,
    /// For each soft constraint.
    soft: Vec<bool>,
    /// What each such pod adds to the affinity sums: counter, key, amount.
    affinity: Vec<(Counter, KeyIndex, i64)>,
    /// Claims in common that one pod may use at a time.
    claims: i64,
}

/// What is known of the relation to certain peers: most pods mean nothing to each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Bearing {
    /// Nobody has asked.
    Unknown,
    /// Their pods count in nothing.
    None,
    /// Their pods count, as the [`Relation`] at this place says.
    Some(u32),
}

/// The counts of one shape.
#[derive(Clone, Debug)]
pub(super) struct TopologyState {
    shape: Arc<PodShape>,
    hard: Vec<DomainCounts>,
    /// For each soft constraint, pods by domain.
    soft: Vec<Vec<i64>>,
    affinity: KeyedSums,
    anti_affinity: KeyedSums,
    existing_anti_affinity: KeyedSums,
    preferred: KeyedSums,
    preferred_matches: i64,
    claims: i64,
    parts: Vec<Vec<Part>>,
    /// By peers.
    bearings: Vec<Bearing>,
    /// The relations to peers whose pods count.
    relations: Vec<Relation>,
}

impl TopologyState {
    /// Counts the whole cluster for pods of `shape`.
    pub(super) fn new(view: &ClusterView, shape: &Arc<PodShape>) -> Self {
        let mut state = Self {
            shape: Arc::clone(shape),
            hard: vec![DomainCounts::default(); shape.hard_spread.len()],
            soft: vec![Vec::new(); shape.soft_spread.len()],
            affinity: KeyedSums::default(),
            anti_affinity: KeyedSums::default(),
            existing_anti_affinity: KeyedSums::default(),
            preferred: KeyedSums::default(),
            preferred_matches: 0,
            claims: 0,
            parts: Vec::new(),
            bearings: Vec::new(),
            relations: Vec::new(),
        };
        for slot in 0..view.slot_count() as Slot {
            state.follow(view, slot, view.entry(slot));
        }
        state.settle();
        state
    }

    /// Works the part of one node out anew. `entry` is the node as it is, or as it is to be imagined.
    pub(super) fn follow(&mut self, view: &ClusterView, slot: Slot, entry: Option<&NodeEntry>) {
        let at = slot as usize;
        if at >= self.parts.len() {
            self.parts.resize_with(at + 1, Vec::new);
        }
        let mut parts = std::mem::take(&mut self.parts[at]);
        for part in &parts {
            self.apply(*part, -1);
        }
        parts.clear();
        if let Some(entry) = entry {
            self.collect(view, slot, entry, &mut parts);
        }
        for part in &parts {
            self.apply(*part, 1);
        }
        self.parts[at] = parts;
    }

    /// Whether pods of these peers count in nothing that is counted here, so that where they are does not matter.
    pub(super) fn is_indifferent_to(&mut self, view: &ClusterView, peer: PeerId) -> bool {
        self.bearing(view, peer) == Bearing::None
    }

    /// Brings derived figures up to date after one or more calls of [`Self::follow`].
    pub(super) fn settle(&mut self) {
        self.hard.iter_mut().for_each(DomainCounts::settle);
    }

    fn apply(&mut self, part: Part, sign: i64) {
        let amount = part.amount * sign;
        match part.counter {
            Counter::HardSpread(index) => self.hard[index as usize].add(part.domain, part.amount, sign),
            Counter::SoftSpread(index) => {
                let counts = &mut self.soft[index as usize];
                if part.domain as usize >= counts.len() {
                    counts.resize(part.domain as usize + 1, 0);
                }
                counts[part.domain as usize] += amount;
            }
            Counter::Affinity(key) => self.affinity.add(key, part.domain, amount),
            Counter::AntiAffinity(key) => self.anti_affinity.add(key, part.domain, amount),
            Counter::ExistingAntiAffinity(key) => self.existing_anti_affinity.add(key, part.domain, amount),
            Counter::Preferred(key) => self.preferred.add(key, part.domain, amount),
            Counter::PreferredMatches => self.preferred_matches += amount,
            Counter::Claims => self.claims += amount,
        }
    }

    fn collect(&mut self, view: &ClusterView, slot: Slot, entry: &NodeEntry, parts: &mut Vec<Part>) {
        let mut bearing: SmallVec<[(PeerCount, usize); 4]> = SmallVec::new();
        for &count in &entry.peers {
            if let Bearing::Some(place) = self.bearing(view, count.peer) {
                bearing.push((count, place as usize));
            }
        }
        if bearing.is_empty() && self.shape.hard_spread.is_empty() {
            return;
        }
        self.collect_spread(view, slot, entry, &bearing, parts);
        for (count, place) in bearing {
            let pods = i64::from(count.running) + i64::from(count.terminating);
            let claims = self.relations[place].claims;
            if claims > 0 {
                parts.push(Part { counter: Counter::Claims, domain: NO_DOMAIN, amount: claims * pods });
            }
            for &(counter, key, weight) in &self.relations[place].affinity {
                let domain = view.domain(key, slot);
                if domain == NO_DOMAIN {
                    continue;
                }
                parts.push(Part { counter, domain, amount: weight * pods });
                if matches!(counter, Counter::Preferred(_)) {
                    parts.push(Part { counter: Counter::PreferredMatches, domain, amount: pods });
                }
            }
        }
    }

    /// What the node adds to the spread constraints: it counts for hard ones if it has all their keys and passes their
    /// inclusion policies, for soft ones likewise (built-in ones need no key).
    ///
    /// Source: Kubernetes 1.36 `pkg/scheduler/framework/plugins/podtopologyspread/filtering.go` (`calPreFilterState`) and
    /// `scoring.go` (`PreScore`).
    fn collect_spread(
        &self,
        view: &ClusterView,
        slot: Slot,
        entry: &NodeEntry,
        bearing: &[(PeerCount, usize)],
        parts: &mut Vec<Part>,
    ) {
        let shape = &self.shape;
        let has_all = |constraints: &[SpreadConstraint]| {
            constraints.iter().all(|constraint| view.domain(constraint.key, slot) != NO_DOMAIN)
        };
        let counted = |select: &dyn Fn(&Relation) -> bool| -> i64 {
            let matching = bearing.iter().filter(|(_, place)| select(&self.relations[*place]));
            matching.map(|(count, _)| i64::from(count.running)).sum()
        };
        if !shape.hard_spread.is_empty() && has_all(&shape.hard_spread) {
            for (index, constraint) in shape.hard_spread.iter().enumerate() {
                if includes(shape, constraint, entry) {
                    let domain = view.domain(constraint.key, slot);
                    let amount = counted(&|relation| relation.hard[index]);
                    parts.push(Part { counter: Counter::HardSpread(index as u32), domain, amount });
                }
            }
        }
        let soft_counts = shape.soft_spread_is_default || has_all(&shape.soft_spread);
        for (index, constraint) in shape.soft_spread.iter().enumerate() {
            let domain = view.domain(constraint.key, slot);
            let counts = soft_counts && domain != NO_DOMAIN && includes(shape, constraint, entry);
            // On its own host a pod is counted whatever the policies say.
            if !(constraint.is_hostname || counts) {
                continue;
            }
            let amount = counted(&|relation| relation.soft[index]);
            if amount > 0 {
                let domain = if constraint.is_hostname { slot } else { domain };
                parts.push(Part { counter: Counter::SoftSpread(index as u32), domain, amount });
            }
        }
    }

    #[inline]
    fn bearing(&mut self, view: &ClusterView, other: PeerId) -> Bearing {
        match self.bearings.get(other.index()) {
            Some(&known) if known != Bearing::Unknown => known,
            _ => self.relate(view, other),
        }
    }

    /// Apart, so that what is known is looked up in place: that is asked for each kind of pod on each node that changes.
    #[cold]
    fn relate(&mut self, view: &ClusterView, other: PeerId) -> Bearing {
        if other.index() >= self.bearings.len() {
            self.bearings.resize(other.index() + 1, Bearing::Unknown);
        }
        let known = relation(&self.shape, view.peer(other));
        let bearing = known.as_ref().map_or(Bearing::None, |_| Bearing::Some(self.relations.len() as u32));
        self.relations.extend(known);
        self.bearings[other.index()] = bearing;
        bearing
    }

    /// What the topology filters need for looking at many nodes.
    pub(super) fn gate<'a>(&'a self, view: &'a ClusterView) -> Gate<'a> {
        let constraints = self.shape.hard_spread.iter().zip(&self.hard);
        let spread = constraints.map(|(constraint, counts)| {
            let smallest = if counts.known() < constraint.min_domains {
                0
            } else {
                counts.smallest().unwrap_or(i64::from(i32::MAX))
            };
            SpreadGate {
                domains: view.domains(constraint.key),
                counts: counts.counts(),
                most: smallest.saturating_add(constraint.max_skew) - i64::from(constraint.matches_self),
            }
        });
        let minds_affinity = !self.shape.required_affinity.is_empty()
            || self.anti_affinity.total > 0
            || self.existing_anti_affinity.total > 0;
        Gate { view, state: self, spread: spread.collect(), minds_affinity }
    }

    /// Checks the pod's required affinity and anti-affinity, and the required anti-affinity of running pods.
    ///
    /// Source: Kubernetes 1.36 `pkg/scheduler/framework/plugins/interpodaffinity/filtering.go`, `Filter`.
    fn check_affinity(&self, view: &ClusterView, slot: Slot) -> Result<(), Refusal> {
        let shape = &self.shape;
        if !shape.required_affinity.is_empty() {
            let mut all_present = true;
            for term in &shape.required_affinity {
                let domain = view.domain(term.key, slot);
                if domain == NO_DOMAIN {
                    return Err(Refusal::unresolvable(Reason::PodAffinity));
                }
                all_present &= self.affinity.get(term.key, domain) > 0;
            }
            // The first pod of a group whose pods want to be together may go anywhere.
            let first_of_group = || self.affinity.total == 0 && matches_own_affinity(shape);
            if !all_present && !first_of_group() {
                return Err(Refusal::unresolvable(Reason::PodAffinity));
            }
        }
        if self.anti_affinity.any_of_node(view, slot) {
            return Err(Refusal::resolvable(Reason::PodAntiAffinity));
        }
        if self.existing_anti_affinity.any_of_node(view, slot) {
            return Err(Refusal::resolvable(Reason::ExistingPodAntiAffinity));
        }
        Ok(())
    }

    /// Whether VolumeRestrictions, which is asked before what follows from the volumes of a pod, refuses where this refusal was found.
    pub(super) fn refuses_before(&self, refusal: &Rejection) -> bool {
        self.claims > 0 && matches!(refusal.plugin(), Plugin::NodeVolumeLimits | Plugin::VolumeBinding)
    }

    /// Whether InterPodAffinity has anything to say about where the pod had better go.
    pub(super) const fn scores_affinity(&self) -> bool {
        self.preferred_matches > 0
    }

    /// Pods that soft constraint `index` counts, by domain (for the hostname: by slot).
    pub(super) fn soft_counts(&self, index: usize) -> &[i64] {
        &self.soft[index]
    }

    /// InterPodAffinity's raw scores of many nodes.
    pub(super) fn affinity_scores(&self, view: &ClusterView, slots: &[Slot], raw: &mut Vec<i64>) {
        raw.clear();
        raw.resize(slots.len(), 0);
        for (key, sums) in &self.preferred.keys {
            let domains = view.domains(*key);
            for (raw, &slot) in raw.iter_mut().zip(slots) {
                *raw += domains.get(slot as usize).map_or(0, |&domain| at_domain(sums, domain));
            }
        }
    }
}

/// One hard spread constraint, ready for looking at many nodes.
struct SpreadGate<'a> {
    domains: &'a [u32],
    counts: &'a [i64],
    /// The most pods that a domain may hold before this one.
    most: i64,
}

/// The filters of VolumeRestrictions, PodTopologySpread and InterPodAffinity, ready for looking at many nodes.
pub(super) struct Gate<'a> {
    view: &'a ClusterView,
    state: &'a TopologyState,
    spread: Vec<SpreadGate<'a>>,
    minds_affinity: bool,
}

impl Gate<'_> {
    /// Runs them on the node in `slot`.
    ///
    /// Source: Kubernetes 1.36 `pkg/scheduler/framework/plugins/volumerestrictions/volume_restrictions.go`, `satisfyReadWriteOncePod`;
    /// `podtopologyspread/filtering.go`, `Filter`; for the last see [`TopologyState::check_affinity`].
    pub(super) fn check(&self, slot: Slot) -> Result<(), Refusal> {
        if self.state.claims > 0 {
            return Err(Refusal::resolvable(Reason::ClaimInUse));
        }
        for constraint in &self.spread {
            let domain = constraint.domains.get(slot as usize).copied().unwrap_or(NO_DOMAIN);
            if domain == NO_DOMAIN {
                return Err(Refusal::unresolvable(Reason::TopologySpreadMissingLabel));
            }
            if at_domain(constraint.counts, domain) > constraint.most {
                return Err(Refusal::resolvable(Reason::TopologySpread));
            }
        }
        if self.minds_affinity { self.state.check_affinity(self.view, slot) } else { Ok(()) }
    }
}

/// Whether a node counts in a spread constraint as far as the inclusion policies go.
fn includes(shape: &PodShape, constraint: &SpreadConstraint, entry: &NodeEntry) -> bool {
    let hard_taints = || entry.node.taints.iter().filter(|taint| taint.effect != TaintEffect::PreferNoSchedule);
    (!constraint.honor_affinity || shape.spec.selects_node(&entry.node.labels, &entry.node.name))
        && (!constraint.honor_taints || first_untolerated(hard_taints(), &shape.spec.tolerations).is_none())
}

fn matches_own_affinity(shape: &PodShape) -> bool {
    shape.required_affinity.iter().all(|term| term.matches(shape))
}

/// What a pod of shape `other` means to pods of shape `pod_shape`; `None` if it counts in nothing.
///
/// Source: Kubernetes 1.36 `pkg/scheduler/framework/plugins/interpodaffinity/filtering.go` and `scoring.go`
/// (`processExistingPod`), `podtopologyspread/common.go` (`countPodsMatchSelector`).
fn relation(pod_shape: &PodShape, other: &PodShape) -> Option<Relation> {
    let counts = |constraint: &SpreadConstraint| {
        // A selector that selects everything counts nothing.
        pod_shape.namespace == other.namespace
            && constraint.selector.as_ref().is_some_and(|selector| {
                !(selector.match_labels.is_empty() && selector.expressions.is_empty())
                    && selector.matches(&other.spec.labels)
            })
    };
    let mut affinity = Vec::new();
    if !pod_shape.required_affinity.is_empty() && pod_shape.required_affinity.iter().all(|term| term.matches(other)) {
        affinity.extend(pod_shape.required_affinity.iter().map(|term| (Counter::Affinity(term.key), term.key, 1)));
    }
    for term in pod_shape.required_anti_affinity.iter().filter(|term| term.matches(other)) {
        affinity.push((Counter::AntiAffinity(term.key), term.key, 1));
    }
    for term in other.required_anti_affinity.iter().filter(|term| term.matches(pod_shape)) {
        affinity.push((Counter::ExistingAntiAffinity(term.key), term.key, 1));
    }
    let mut prefer = |key: KeyIndex, weight: i64| affinity.push((Counter::Preferred(key), key, weight));
    for (terms, sign) in [(&pod_shape.preferred_affinity, 1), (&pod_shape.preferred_anti_affinity, -1)] {
        for (weight, term) in terms.iter().filter(|(_, term)| term.matches(other)) {
            prefer(term.key, sign * weight);
        }
    }
    for term in other.required_affinity.iter().filter(|term| term.matches(pod_shape)) {
        prefer(term.key, HARD_POD_AFFINITY_WEIGHT);
    }
    for (terms, sign) in [(&other.preferred_affinity, 1), (&other.preferred_anti_affinity, -1)] {
        for (weight, term) in terms.iter().filter(|(_, term)| term.matches(pod_shape)) {
            prefer(term.key, sign * weight);
        }
    }
    let hard: Vec<bool> = pod_shape.hard_spread.iter().map(counts).collect();
    let soft: Vec<bool> = pod_shape.soft_spread.iter().map(counts).collect();
    let claims = claims_in_common(pod_shape, other) as i64;
    let counts = claims > 0 || !affinity.is_empty() || hard.contains(&true) || soft.contains(&true);
    counts.then_some(Relation { hard, soft, affinity, claims })
}
