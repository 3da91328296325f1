//! Which nodes a method may take, and what stands against the others.
//!
//! Source: Karpenter core v1.13 `pkg/controllers/disruption/types.go`, `NewCandidate`; `pkg/controllers/state/statenode.go`,
//! `ValidateNodeDisruptable`, `ValidatePodsDisruptable`; `pkg/utils/pdb/pdb.go`, `CanEvictPods`; the `ShouldDisrupt` of each
//! method.

use std::fmt;
use std::iter;
use std::rc::Rc;
use std::sync::Arc;

use super::balanced;
use super::cost::node_cost;
use super::obstacles::Obstacle;
use super::pods::PodView;
use super::prices::own_price;
use super::view::{ClusterView, NodeFacts};
use crate::instance_types::{self, InstanceType};
use crate::release::{Behaviour, EmptyDrifted};
use crate::selection::price::Terms;
use nodecast_model::domain::node_pool::{ConsolidationPolicy, DisruptionReason};
use nodecast_model::domain::{HourlyRate, KarpenterVersion, Labels, Symbol, well_known};

/// A method of the disruption loop.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Method {
    /// Nodes that have reached their age limit (v0.23 to v0.37).
    Expiration,
    /// Nodes without pods; up to v0.37 those of pools that consolidate `WhenEmpty`.
    Emptiness,
    /// Nodes without pods of other pools (v0.23 to v0.37).
    EmptyConsolidation,
    /// Drifted nodes of pools with a fixed number of nodes.
    StaticDrift,
    /// Drifted nodes of other pools.
    Drift,
    /// Several nodes at once.
    MultiNode,
    /// One node.
    SingleNode,
}

/// How much a method respects.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Class {
    /// Waits for every pod and budget.
    Graceful,
    /// Goes ahead in the end if the claim has a `terminationGracePeriod`.
    Eventual,
}

impl Method {
    /// The reason under which budgets know it.
    pub const fn reason(self) -> DisruptionReason {
        match self {
            Self::Expiration => DisruptionReason::Expired,
            Self::Emptiness | Self::EmptyConsolidation => DisruptionReason::Empty,
            Self::StaticDrift | Self::Drift => DisruptionReason::Drifted,
            Self::MultiNode | Self::SingleNode => DisruptionReason::Underutilized,
        }
    }

    /// How much it respects.
    pub const fn class(self) -> Class {
        match self {
            Self::StaticDrift | Self::Drift | Self::Expiration => Class::Eventual,
            _ => Class::Graceful,
        }
    }
}

impl Method {
    /// Whether its commands are looked at again after a while before they are carried out.
    pub fn is_validated(self, release: KarpenterVersion) -> bool {
        let behaviour = Behaviour::for_release(release);
        let beta = behaviour.disruption_loop && !behaviour.v1_disruption;
        self.class() == Class::Graceful && !(self == Self::Emptiness && beta)
    }

    /// Whether its candidates stand in the order of what their removal disturbs, which time changes.
    pub fn orders_by_cost(self, release: KarpenterVersion) -> bool {
        !matches!(self, Self::Drift | Self::StaticDrift | Self::Expiration)
            && !Behaviour::for_release(release).weighs_savings
    }
}

/// A node that may be disrupted.
#[derive(Clone, PartialEq, Debug)]
pub struct Candidate {
    /// Position of the node.
    pub node: usize,
    /// Position of its NodePool.
    pub pool: usize,
    /// Position of its instance type among those of its pool; `None` if the pool no longer lists it.
    pub instance_type: Option<usize>,
    /// Its capacity type, if labelled.
    pub capacity_type: Option<Symbol>,
    /// Its zone, if labelled.
    pub zone: Option<Symbol>,
    /// What its removal disturbs.
    pub cost: f64,
    /// Positions of its pods that would have to go elsewhere.
    pub reschedulable: Arc<[usize]>,
    /// What it costs per hour, as far as its offering is known.
    pub price: Option<HourlyRate>,
    /// Price over disturbance, by which v1.14 orders candidates.
    pub savings_ratio: f64,
}

/// What stands against the disruption of a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Blocker {
    /// A command already concerns it.
    Queued,
    /// It has no claim of Karpenter's.
    Unmanaged,
    /// No Node object exists yet.
    NotRegistered,
    /// It is not initialized.
    NotInitialized,
    /// It is on its way out.
    MarkedForDeletion,
    /// Pods are on their way to it.
    Nominated,
    /// It carries `karpenter.sh/do-not-disrupt`.
    NodeDoNotDisrupt,
    /// It does not say which NodePool it belongs to.
    NoNodePool,
    /// Its NodePool does not exist or offers no instance types.
    UnknownNodePool(Symbol),
    /// A pod carries `karpenter.sh/do-not-disrupt`.
    PodDoNotDisrupt(String),
    /// A PodDisruptionBudget lets none of its pods go.
    PodBudget(String),
    /// Several PodDisruptionBudgets select one pod.
    SeveralPodBudgets(String),
    /// The method says no.
    Method(NotEligible),
}

/// Why a method does not want a node that could be disrupted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum NotEligible {
    /// Its pool keeps a fixed number of nodes.
    StaticPool,
    /// Its pool does not keep a fixed number of nodes.
    DynamicPool,
    /// `consolidateAfter: Never`.
    Never,
    /// It has not been left alone for long enough.
    NotConsolidatable,
    /// `consolidationPolicy: WhenEmpty`.
    OnlyWhenEmpty,
    /// It holds pods.
    NotEmpty,
    /// Room is kept on it for a CapacityBuffer.
    Buffered,
    /// It is not drifted.
    NotDrifted,
    /// It has not reached its age limit.
    NotExpired,
    /// Its pool consolidates more than empty nodes, which another method does.
    NotOnlyWhenEmpty,
    /// The pool does not list its instance type.
    UnknownInstanceType,
    /// It has no label for its capacity type.
    NoCapacityType,
    /// It has no label for its zone.
    NoZone,
}

impl fmt::Display for Blocker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Queued => f.write_str("a disruption command for the node is already in progress"),
            Self::Unmanaged => f.write_str("Karpenter does not manage the node"),
            Self::NotRegistered => f.write_str("the node has not registered"),
            Self::NotInitialized => f.write_str("the node is not initialized"),
            Self::MarkedForDeletion => f.write_str("the node is being removed"),
            Self::Nominated => f.write_str("the node is nominated for pods"),
            Self::NodeDoNotDisrupt => f.write_str("the node has the annotation karpenter.sh/do-not-disrupt"),
            Self::NoNodePool => f.write_str("the node names no NodePool"),
            Self::UnknownNodePool(name) => write!(f, "NodePool {name} does not exist or has no instance types"),
            Self::PodDoNotDisrupt(pod) => write!(f, "pod {pod} has the annotation karpenter.sh/do-not-disrupt"),
            Self::PodBudget(pod) => write!(f, "a PodDisruptionBudget blocks eviction of pod {pod}"),
            Self::SeveralPodBudgets(pod) => write!(f, "pod {pod} has more than one PodDisruptionBudget"),
            Self::Method(why) => why.fmt(f),
        }
    }
}

impl fmt::Display for NotEligible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::StaticPool => "the NodePool is static (`replicas`)",
            Self::DynamicPool => "the NodePool does not keep a fixed number of nodes",
            Self::Never => "consolidateAfter is Never",
            Self::NotConsolidatable => "pods changed on the node within consolidateAfter",
            Self::OnlyWhenEmpty => "the NodePool's policy is WhenEmpty",
            Self::NotEmpty => "the node is not empty",
            Self::Buffered => "the node holds reserved room for a CapacityBuffer",
            Self::NotDrifted => "the node is not drifted",
            Self::NotExpired => "the node has not reached its age limit",
            Self::NotOnlyWhenEmpty => "the NodePool's policy is not WhenEmpty",
            Self::UnknownInstanceType => "the NodePool does not list the node's instance type",
            Self::NoCapacityType => "the node has no label for its capacity type",
            Self::NoZone => "the node has no label for its zone",
        })
    }
}

/// The nodes that the method may take, in its order: cheapest to disturb first, drifted ones by the time of drift; ties by
/// age, then by name.
///
/// Deviation: upstream leaves equal candidate nodes in the order of a Go map.
pub fn candidates(view: &ClusterView<'_>, method: Method) -> Vec<Candidate> {
    survey(view, method).0
}

/// The candidates in the order of the method, and of every other node the first thing that stands against it; methods that take
/// empty nodes omit nodes that are not empty.
pub fn survey(view: &ClusterView<'_>, method: Method) -> (Vec<Candidate>, Vec<(usize, Obstacle)>) {
    Survey::default().made(view, method)
}

/// What several methods have in common, kept from one method to the next for as long as the view is the same.
#[derive(Debug, Default)]
pub struct Survey {
    /// For each node what [`describe`] says.
    described: Vec<Option<Candidate>>,
    /// What the two methods of consolidation have in common.
    consolidation: Option<Rc<Surveyed>>,
    /// For each node what its labels said when they were last read.
    labelled: Vec<Labelled>,
}

/// What comes of a [survey].
type Surveyed = (Vec<Candidate>, Vec<(usize, Obstacle)>);

impl Survey {
    /// Clears all but the labels, which are mostly the same in the next view.
    pub fn clear_view(&mut self) {
        *self = Self { labelled: std::mem::take(&mut self.labelled), ..Self::default() };
    }

    /// See [`survey`].
    pub fn survey(&mut self, view: &ClusterView<'_>, method: Method) -> Rc<Surveyed> {
        if !matches!(method, Method::MultiNode | Method::SingleNode) {
            return Rc::new(self.made(view, method));
        }
        if let Some(known) = &self.consolidation {
            return Rc::clone(known);
        }
        let made = Rc::new(self.made(view, method));
        Rc::clone(self.consolidation.insert(made))
    }

    fn made(&mut self, view: &ClusterView<'_>, method: Method) -> Surveyed {
        let nodes = view.nodes.len();
        if self.described.len() != nodes {
            self.labelled.truncate(nodes);
            self.described = (0..nodes).map(|node| self.describe(view, node)).collect();
        }
        let takes_empty = matches!(method, Method::Emptiness | Method::EmptyConsolidation);
        let (mut found, mut others) = (Vec::new(), Vec::new());
        for node in 0..nodes {
            if takes_empty && !balanced::is_empty(view, node) {
                continue;
            }
            if let Some(first) = blockers(view, node, method).next() {
                others.push((node, Obstacle::from(&first)));
                continue;
            }
            let Some(candidate) = &self.described[node] else { continue };
            match refusals(view, candidate, method).next() {
                None => found.push(complete(view, candidate.clone(), self.labelled[node].terms.as_ref())),
                Some(why) => others.push((node, why.into())),
            }
        }
        sort(view, method, &mut found);
        (found, others)
    }

    fn describe(&mut self, view: &ClusterView<'_>, node: usize) -> Option<Candidate> {
        let labels = view.nodes[node].view.labels;
        if self.labelled.get(node).is_none_or(|item| item.labels != *labels) {
            self.labelled.truncate(node);
            self.labelled.push(Labelled::new(labels));
        }
        describe_with(view, node, &mut self.labelled[node])
    }
}

/// What the labels of a node say, which is mostly the same from look to look.
#[derive(Debug)]
struct Labelled {
    labels: Labels,
    pool: Option<Symbol>,
    instance_type: Option<Symbol>,
    /// Where the type was last found among those of the pool.
    position: Option<usize>,
    capacity_type: Option<Symbol>,
    zone: Option<Symbol>,
    /// The offerings that it can have come from.
    terms: Option<Terms<'static>>,
}

impl Labelled {
    fn new(labels: &Labels) -> Self {
        Self {
            pool: labels.get(well_known::NODEPOOL),
            instance_type: labels.get(well_known::INSTANCE_TYPE),
            position: None,
            capacity_type: labels.get(well_known::CAPACITY_TYPE),
            zone: labels.get(well_known::ZONE),
            terms: Terms::of_labels(labels),
            labels: labels.clone(),
        }
    }

    /// Where the node's type is among those of its pool.
    fn type_among(&mut self, types: &[InstanceType]) -> Option<usize> {
        let name = self.instance_type?;
        let is_there = |at: &usize| types.get(*at).is_some_and(|instance_type| instance_type.name == name);
        self.position = self.position.filter(is_there).or_else(|| instance_types::position(types, name));
        self.position
    }
}

fn sort(view: &ClusterView<'_>, method: Method, found: &mut [Candidate]) {
    let identity = |candidate: &Candidate| (view.nodes[candidate.node].created, view.nodes[candidate.node].view.name);
    match method {
        Method::Drift | Method::StaticDrift => {
            let empty_first = method == Method::Drift && view.behaviour().empty_drifted == EmptyDrifted::First;
            let key = |candidate: &Candidate| {
                (
                    empty_first && !candidate.reschedulable.is_empty(),
                    view.nodes[candidate.node].drifted,
                    identity(candidate),
                )
            };
            found.sort_by(|a, b| key(a).cmp(&key(b)));
        }
        Method::Expiration => {
            let ends = |candidate: &Candidate| {
                let node = &view.nodes[candidate.node];
                node.expire_after.map(|age| node.created + age)
            };
            found.sort_by(|a, b| (ends(a), identity(a)).cmp(&(ends(b), identity(b))));
        }
        _ if view.behaviour().weighs_savings => found
            .sort_by(|a, b| b.savings_ratio.total_cmp(&a.savings_ratio).then_with(|| identity(a).cmp(&identity(b)))),
        _ => {
            // Before v1.14: by what the removal of a node disturbs, then by creation and name.
            found.sort_by(|a, b| a.cost.total_cmp(&b.cost).then_with(|| identity(a).cmp(&identity(b))));
        }
    }
}

/// Whether the method may take the node.
///
/// # Errors
/// Everything that stands against it, in the order in which upstream looks; upstream itself stops at the first.
pub fn eligible(view: &ClusterView<'_>, node: usize, method: Method) -> Result<Candidate, Vec<Blocker>> {
    let found: Vec<Blocker> = blockers(view, node, method).collect();
    let Some(candidate) = describe(view, node).filter(|_| found.is_empty()) else { return Err(found) };
    let refused = refusals(view, &candidate, method).next();
    match refused {
        None => Ok(complete(view, candidate, Terms::of_labels(view.nodes[node].view.labels).as_ref())),
        Some(why) => Err(vec![Blocker::Method(why)]),
    }
}

/// Everything that stands against the method taking the node, in the order in which upstream looks, although upstream stops at
/// the first.
pub fn objections(view: &ClusterView<'_>, node: usize, method: Method) -> Vec<Blocker> {
    let mut found: Vec<Blocker> = blockers(view, node, method).collect();
    if let Some(candidate) = describe(view, node) {
        let mut refused: Vec<NotEligible> = refusals(view, &candidate, method).collect();
        if let Some(NotEligible::StaticPool | NotEligible::DynamicPool) = refused.first() {
            refused.truncate(1);
        }
        found.extend(refused.into_iter().map(Blocker::Method));
    }
    found
}

/// The node as a candidate, whatever stands against it; `None` if its NodePool is not known.
pub fn described(view: &ClusterView<'_>, node: usize) -> Option<Candidate> {
    Some(complete(view, describe(view, node)?, Terms::of_labels(view.nodes[node].view.labels).as_ref()))
}

/// What stands against the node whatever else the method wants.
fn blockers<'v>(view: &'v ClusterView<'_>, node: usize, method: Method) -> impl Iterator<Item = Blocker> + use<'v> {
    let facts = &view.nodes[node];
    let waived = method.class() == Class::Eventual && facts.grace_limited;
    // Most nodes have no blocker or one of their own, and to list the pods of all of them for each look was a tenth of a run.
    let pods = move || if waived || !pods_may_block(view, facts) { &[] } else { facts.pods() };
    let pods = iter::once_with(pods).flat_map(|pods| pods.iter().enumerate());
    let pod_blockers = pods.filter_map(|(position, pod)| {
        let kind = pod_blocker(view, pod)?;
        Some(kind(facts.pods.name(position).to_owned()))
    });
    node_blockers(view, facts).chain(pod_blockers)
}

/// Whether a pod of the node may stand against its disruption, by the specifications that it holds: if not, none does.
fn pods_may_block(view: &ClusterView<'_>, facts: &NodeFacts<'_>) -> bool {
    if facts.digest.protected {
        return true;
    }
    if view.pod_budgets.is_empty() {
        return false;
    }
    // Only active pods are evicted, and those are what it sums up by specification.
    facts.view.summed.is_none_or(|summed| {
        let may_block = |protectors: &[u32]| objection(view, protectors).is_some();
        summed.active_specs().any(|(namespace, spec)| view.ask_protectors(namespace, spec, may_block))
    })
}

/// One after the other, because most who ask want the first, and mostly there is none.
fn node_blockers<'v>(view: &'v ClusterView<'_>, facts: &'v NodeFacts<'_>) -> impl Iterator<Item = Blocker> + use<'v> {
    let exact = view.behaviour().node_annotation_is_true;
    let protects = move |value: Symbol| !exact || value == well_known::TRUE;
    let do_not_disrupt = move || facts.annotations.get(well_known::DO_NOT_DISRUPT).is_some_and(protects);
    (0..8).filter_map(move |look| match look {
        0 => facts.queued.then_some(Blocker::Queued),
        1 => (!facts.view.managed).then_some(Blocker::Unmanaged),
        2 => (!facts.view.registered).then_some(Blocker::NotRegistered),
        3 => (!facts.view.initialized).then_some(Blocker::NotInitialized),
        4 => facts.marked_for_deletion().then_some(Blocker::MarkedForDeletion),
        5 => facts.nominated.then_some(Blocker::Nominated),
        6 => do_not_disrupt().then_some(Blocker::NodeDoNotDisrupt),
        _ => pool_blocker(view, facts),
    })
}

fn pool_blocker(view: &ClusterView<'_>, facts: &NodeFacts<'_>) -> Option<Blocker> {
    let Some(name) = facts.node_pool else { return Some(Blocker::NoNodePool) };
    let known = facts.pool(view.pools).is_some_and(|pool| !view.pools[pool].instance_types.is_empty());
    (!known).then_some(Blocker::UnknownNodePool(name))
}

/// What stands against it, still to be told the pod's name.
fn pod_blocker(view: &ClusterView<'_>, pod: &PodView<'_>) -> Option<fn(String) -> Blocker> {
    if !view.behaviour().counts_all_pods && !pod.is_reschedulable() {
        return None;
    }
    if !pod.is_disruptable(view.now) {
        return Some(Blocker::PodDoNotDisrupt);
    }
    if view.pod_budgets.is_empty() || !pod.is_evictable(view.now) {
        return None;
    }
    match view.ask_protectors(pod.namespace, pod.spec, |protectors| objection(view, protectors))? {
        Objection::Several => Some(Blocker::SeveralPodBudgets),
        Objection::Exhausted { unhealthy_go } => (pod.ready || !unhealthy_go).then_some(Blocker::PodBudget),
    }
}

/// What the budgets that protect a pod have against its eviction.
enum Objection {
    /// There are several, which the eviction API refuses.
    Several,
    /// The only one lets none go that is ready, and maybe others.
    Exhausted { unhealthy_go: bool },
}

fn objection(view: &ClusterView<'_>, protectors: &[u32]) -> Option<Objection> {
    let budget = match *protectors {
        [] => return None,
        [only] => &view.pod_budgets[only as usize],
        _ => return Some(Objection::Several),
    };
    (budget.allowed <= 0).then_some(Objection::Exhausted { unhealthy_go: budget.always_allow_unhealthy })
}

/// The candidate with all that is needed of those that no method refuses. `terms` are those of the node's labels.
fn complete(view: &ClusterView<'_>, candidate: Candidate, terms: Option<&Terms<'_>>) -> Candidate {
    let facts = &view.nodes[candidate.node];
    let types = view.pools[candidate.pool].instance_types;
    let price = candidate.instance_type.zip(terms).and_then(|(index, terms)| own_price(&types[index], terms));
    let savings_ratio = price.map_or(0.0, HourlyRate::as_f64) / balanced::rescheduling_cost(facts);
    let reschedulable = Arc::clone(&facts.digest.reschedulable);
    Candidate { cost: node_cost(facts, view.now), reschedulable, price, savings_ratio, ..candidate }
}

/// See [`describe_with`]; for those who ask about one node.
fn describe(view: &ClusterView<'_>, node: usize) -> Option<Candidate> {
    describe_with(view, node, &mut Labelled::new(view.nodes[node].view.labels))
}

/// The candidate, as yet without what it costs and what its removal disturbs; `None` if its NodePool is not known.
fn describe_with(view: &ClusterView<'_>, node: usize, labelled: &mut Labelled) -> Option<Candidate> {
    let name = labelled.pool?;
    let pool = view.pools.iter().position(|pool| pool.pool.name == name)?;
    Some(Candidate {
        node,
        pool,
        instance_type: labelled.type_among(view.pools[pool].instance_types),
        capacity_type: labelled.capacity_type,
        zone: labelled.zone,
        cost: 0.0,
        reschedulable: Arc::default(),
        price: None,
        savings_ratio: 0.0,
    })
}

/// Why the method does not want the candidate, in the order in which upstream looks. What follows a pool of the wrong kind
/// is of no interest any more.
fn refusals(view: &ClusterView<'_>, candidate: &Candidate, method: Method) -> impl Iterator<Item = NotEligible> {
    use NotEligible as Why;
    let behaviour = view.behaviour();
    let grounds: &[NotEligible] = match method {
        Method::StaticDrift => &[Why::DynamicPool, Why::NotDrifted],
        Method::Drift => &[Why::StaticPool, Why::NotDrifted],
        Method::Expiration => &[Why::NotExpired],
        Method::Emptiness if !behaviour.v1_disruption && behaviour.disruption_loop => {
            &[Why::NotOnlyWhenEmpty, Why::Never, Why::NotEmpty, Why::NotConsolidatable]
        }
        Method::EmptyConsolidation => {
            &[Why::NoCapacityType, Why::NoZone, Why::Never, Why::OnlyWhenEmpty, Why::NotEmpty]
        }
        Method::Emptiness => &[Why::StaticPool, Why::Never, Why::Buffered, Why::NotEmpty, Why::NotConsolidatable],
        Method::MultiNode | Method::SingleNode => &[
            Why::StaticPool,
            Why::UnknownInstanceType,
            Why::NoCapacityType,
            Why::NoZone,
            Why::Never,
            Why::OnlyWhenEmpty,
            Why::NotConsolidatable,
        ],
    };
    // A node of a type that is not known is no candidate at all before v1.1.
    let unknown: &[NotEligible] = if behaviour.takes_unknown_types { &[] } else { &[Why::UnknownInstanceType] };
    unknown.iter().chain(grounds).copied().filter(|why| holds(view, candidate, *why))
}

fn holds(view: &ClusterView<'_>, candidate: &Candidate, why: NotEligible) -> bool {
    let facts = &view.nodes[candidate.node];
    let pool = view.pools[candidate.pool].pool;
    match why {
        NotEligible::StaticPool => pool.replicas.is_some(),
        NotEligible::DynamicPool => pool.replicas.is_none(),
        NotEligible::Never => pool.disruption.consolidate_after.is_none(),
        NotEligible::NotConsolidatable => !facts.consolidatable,
        NotEligible::OnlyWhenEmpty => pool.disruption.policy == ConsolidationPolicy::WhenEmpty,
        NotEligible::NotEmpty => !balanced::is_empty(view, candidate.node),
        NotEligible::Buffered => facts.buffered,
        NotEligible::NotDrifted => facts.drifted.is_none(),
        NotEligible::NotExpired => facts.expire_after.is_none_or(|age| view.now - facts.created < age),
        NotEligible::NotOnlyWhenEmpty => pool.disruption.policy != ConsolidationPolicy::WhenEmpty,
        NotEligible::UnknownInstanceType => candidate.instance_type.is_none(),
        NotEligible::NoCapacityType => candidate.capacity_type.is_none(),
        NotEligible::NoZone => candidate.zone.is_none(),
    }
}
