//! How many nodes of one kind some pods need: packing in thought, biggest groups of pods first.
//!
//! Source: Cluster Autoscaler 1.36 `estimator/binpacking_estimator.go`, `estimator/decreasing_pod_orderer.go` and
//! `estimator/threshold_based_limiter.go`.
//!
//! Deviation: if an iteration takes no simulated time, its time limits never bind. `salvo-scale-up-budget` never
//! binds.

use super::candidate_nodes::{CandidateNodes, ClusterGround, NewNodeCapacity};
use super::snapshot::{NodeAt, PodAt, Snapshot};
use super::view::{NodeTemplate, PodTraits};
use crate::controller_time::{self as model, EstimateWork};
use nodecast_model::domain::symbol::well_known;
use nodecast_model::domain::{ResourceName, SimDuration, Symbol};
use nodecast_scheduler::{Predicates, ShapeId};

/// Pods that are alike, to be packed.
#[derive(Clone, Copy, Debug)]
pub struct PackingGroup<'a> {
    /// The pods in the snapshot, without a place.
    pub pods: &'a [PodAt],
}

/// Where packing stops.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NodeLimit {
    /// Nowhere.
    Unlimited,
    /// At so many new nodes.
    Nodes(u64),
}

impl NodeLimit {
    /// The limit that several thresholds make together: zero sets none, a negative one lets no node be added, else the
    /// smallest counts.
    pub fn of_thresholds(thresholds: impl IntoIterator<Item = i64>) -> Self {
        thresholds.into_iter().fold(Self::Unlimited, |limit, threshold| match (limit, threshold) {
            (limit, 0) => limit,
            (_, ..0) => Self::Nodes(0),
            (Self::Unlimited, some) => Self::Nodes(some.unsigned_abs()),
            (Self::Nodes(least), some) => Self::Nodes(least.min(some.unsigned_abs())),
        })
    }

    /// The threshold that a group's own and its similar groups' free room sets: -1 if there is none.
    pub fn free_room(sizes: impl IntoIterator<Item = (i64, i64)>) -> i64 {
        let room: i64 = sizes.into_iter().map(|(target, max)| (max - target).max(0)).sum();
        if room == 0 { -1 } else { room }
    }

    /// The threshold that `max-nodes-total` sets: 0 without one, -1 if it is reached.
    pub const fn cluster_room(most: i64, nodes: i64) -> i64 {
        if most == 0 {
            0
        } else if most <= nodes {
            -1
        } else {
            most - nodes
        }
    }
}

/// What packing found.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Estimate {
    /// Nodes that got a pod.
    pub nodes: usize,
    /// Pods of each group that got a place; they are the first ones of the group.
    pub placed: Vec<usize>,
    /// What there was to do.
    pub work: EstimateWork,
    /// Whether its time was up before it was done: it keeps what it has.
    pub cut: bool,
}

/// Packs groups of pods onto fresh nodes of a template. The snapshot is as before afterwards, except for where its next
/// search begins.
pub fn estimate(
    snapshot: &mut Snapshot,
    groups: &[PackingGroup<'_>],
    template: &NodeTemplate,
    limit: NodeLimit,
    fast_path: bool,
) -> Estimate {
    estimate_within(snapshot, groups, template, limit, fast_path, None)
}

/// The same within a time on the processor that was measured: when it is up, no further node is added.
pub fn estimate_within(
    snapshot: &mut Snapshot,
    groups: &[PackingGroup<'_>],
    template: &NodeTemplate,
    limit: NodeLimit,
    fast_path: bool,
    time: Option<SimDuration>,
) -> Estimate {
    let nodes = snapshot.order().len() as u64;
    let order = packing_order(snapshot, groups, template, fast_path);
    let mark = snapshot.mark();
    let shapes: Vec<ShapeId> = groups
        .iter()
        .map(|group| group.pods.first().map_or(ShapeId::default(), |&pod| snapshot.shape_of(pod)))
        .collect();
    let looks_beyond = |(group, &shape): (&PackingGroup<'_>, &ShapeId)| {
        !group.pods.is_empty() && Predicates::looks_beyond_the_node(snapshot.view(), shape)
    };
    let constrained: Vec<bool> = groups.iter().zip(&shapes).map(looks_beyond).collect();
    let beyond = constrained.contains(&true);
    let packing = Packing::new(limit, time, EstimateWork { nodes, ..EstimateWork::default() }, constrained);
    let estimate = if beyond {
        pack(&mut ClusterGround::new(snapshot, template, groups, &shapes), groups, &order, packing)
    } else {
        pack(&mut NewNodeCapacity::new(snapshot, template, &shapes), groups, &order, packing)
    };
    snapshot.go_back(mark);
    estimate
}

/// The groups in the order of packing; the last is packed on the fast path if there is one.
struct PackingOrder {
    groups: Vec<usize>,
    last_is_fast: bool,
}

fn packing_order(
    snapshot: &Snapshot,
    groups: &[PackingGroup<'_>],
    template: &NodeTemplate,
    fast_path: bool,
) -> PackingOrder {
    let first = |group: &PackingGroup<'_>| group.pods.first().map(|&pod| snapshot.traits(pod));
    let scores: Vec<f64> =
        groups.iter().map(|group| first(group).map_or(0.0, |traits| score(traits, template))).collect();
    let mut order: Vec<usize> = (0..groups.len()).collect();
    order.sort_by(|&one, &other| scores[other].total_cmp(&scores[one]));
    let mut last_is_fast = false;
    if fast_path {
        let saved =
            |at: &usize| first(&groups[*at]).and_then(|traits| saved_by_fast_path(traits, groups[*at], template));
        let mut best: Option<(usize, usize)> = None;
        for (place, saved) in order.iter().map(saved).enumerate() {
            if let Some(saved) = saved
                && best.is_none_or(|(_, most)| saved >= most)
            {
                best = Some((place, saved));
            }
        }
        if let Some((place, _)) = best {
            let group = order.remove(place);
            order.push(group);
            last_is_fast = true;
        }
    }
    PackingOrder { groups: order, last_is_fast }
}

/// A pod's share of a node's allocatable CPU plus its share of the memory.
fn score(traits: &PodTraits, template: &NodeTemplate) -> f64 {
    let requests = traits.spec.requests();
    let share = |name: ResourceName| match template.allocatable.get(name) {
        0 => 0.0,
        allocatable => requests.get(name) as f64 / allocatable as f64,
    };
    share(ResourceName::CPU) + share(ResourceName::MEMORY)
}

/// Placements that the fast path saves, roughly; `None` if it must not be used for such pods.
fn saved_by_fast_path(traits: &PodTraits, group: PackingGroup<'_>, template: &NodeTemplate) -> Option<usize> {
    let spec = &traits.spec;
    let apart = &spec.pod_anti_affinity.required;
    if !spec.topology_spread.is_empty() || apart.iter().any(|term| term.topology_key != well_known::HOSTNAME) {
        return None;
    }
    let pods = group.pods.len();
    let keeps_apart =
        apart.iter().any(|term| term.selector_of(&spec.labels).is_some_and(|selector| selector.matches(&spec.labels)));
    let mut nodes = if keeps_apart { pods } else { 0 };
    if let Some(container) = spec.containers.first() {
        for name in [ResourceName::CPU, ResourceName::MEMORY] {
            let whole = template.capacity.get(name);
            if whole > 0 {
                let needed = pods as f64 * container.requests.get(name) as f64 / whole as f64;
                nodes = nodes.max(needed.ceil() as usize);
            }
        }
    }
    Some(pods.checked_div(nodes).map_or(0, |on_one| pods - on_one))
}

/// The state of packing.
struct Packing {
    limit: NodeLimit,
    added: u64,
    /// Pods on each new node.
    pods_on: Vec<usize>,
    /// New nodes and, by the hostname rule, nodes that were there, that got a pod.
    old_nodes_with_pods: Vec<NodeAt>,
    fast_nodes: usize,
    /// How long it may take, on the processor that was measured.
    time: Option<SimDuration>,
    work: EstimateWork,
    cut: bool,
    /// By group: whether its pods have constraints that look beyond their node.
    constrained: Vec<bool>,
    /// The group whose turn it is.
    group: usize,
}

impl Packing {
    fn new(limit: NodeLimit, time: Option<SimDuration>, work: EstimateWork, constrained: Vec<bool>) -> Self {
        Self {
            limit,
            added: 0,
            pods_on: Vec::new(),
            old_nodes_with_pods: Vec::new(),
            fast_nodes: 0,
            time,
            work,
            cut: false,
            constrained,
            group: 0,
        }
    }

    /// One more pod has been held against the group.
    fn count_pod(&mut self) {
        self.work.pods += 1;
        self.work.constrained += u64::from(self.constrained.get(self.group) == Some(&true));
    }

    fn may_add(&mut self) -> bool {
        if self.time.is_some_and(|time| model::estimate(&self.work) > time) {
            self.cut = true;
            return false;
        }
        match self.limit {
            NodeLimit::Unlimited => true,
            NodeLimit::Nodes(most) => self.added < most,
        }
    }

    fn add_node(&mut self, ground: &mut impl CandidateNodes) {
        self.added += 1;
        self.work.opened += 1;
        self.pods_on.push(0);
        ground.add_node();
    }
}

fn pack(
    ground: &mut impl CandidateNodes,
    groups: &[PackingGroup<'_>],
    order: &PackingOrder,
    mut packing: Packing,
) -> Estimate {
    let mut placed = vec![0; groups.len()];
    let mut more_nodes = true;
    for (turn, &group) in order.groups.iter().enumerate() {
        let pods = groups[group].pods.len();
        ground.begin(group);
        packing.group = group;
        let mut done = 0;
        while done < pods {
            let Some(node) = ground.place_on_any_new() else { break };
            packing.pods_on[node] += 1;
            packing.count_pod();
            done += 1;
        }
        if more_nodes {
            let fast = order.last_is_fast && turn + 1 == order.groups.len();
            let (more, went) = if fast {
                fast_path(ground, &mut packing, pods - done)
            } else {
                place_on_fresh_nodes(ground, &mut packing, pods - done)
            };
            more_nodes = more;
            done += went;
        }
        placed[group] = done;
    }
    let filled = packing.pods_on.iter().filter(|&&pods| pods > 0).count();
    let nodes = filled + packing.old_nodes_with_pods.len() + packing.fast_nodes;
    Estimate { nodes, placed, work: packing.work, cut: packing.cut }
}

/// Packs the rest of a group onto the newest node, then onto fresh ones. Gives back whether further groups may add nodes,
/// and how many pods got a place.
fn place_on_fresh_nodes(ground: &mut impl CandidateNodes, packing: &mut Packing, pods: usize) -> (bool, usize) {
    for done in 0..pods {
        packing.count_pod();
        let mut found = false;
        if let Some(last) = packing.pods_on.len().checked_sub(1) {
            if ground.place_on_last() {
                packing.pods_on[last] += 1;
                found = true;
            } else if let Some(other) = ground.place_by_hostname_rule() {
                match other {
                    Ok(new) => packing.pods_on[new] += 1,
                    Err(old) if packing.old_nodes_with_pods.contains(&old) => {}
                    Err(old) => packing.old_nodes_with_pods.push(old),
                }
                found = true;
            }
            // What does not fit on an empty node does not fit on another either.
            if !found && packing.pods_on[last] == 0 {
                return (true, done);
            }
        }
        if found {
            continue;
        }
        if !packing.may_add() {
            return (false, done);
        }
        packing.add_node(ground);
        if !ground.place_on_last() {
            return (true, done);
        }
        if let Some(last) = packing.pods_on.last_mut() {
            *last += 1;
        }
    }
    (true, pods)
}

/// Packs one node and takes the others to hold as many.
fn fast_path(ground: &mut impl CandidateNodes, packing: &mut Packing, pods: usize) -> (bool, usize) {
    if pods == 0 {
        return (true, 0);
    }
    if !packing.may_add() {
        return (false, 0);
    }
    packing.add_node(ground);
    let mut on_one = 0;
    while on_one < pods && ground.place_on_last() {
        packing.count_pod();
        on_one += 1;
    }
    if let Some(last) = packing.pods_on.last_mut() {
        *last = on_one;
    }
    if on_one == 0 {
        return (true, 0);
    }
    let mut done = on_one;
    while done < pods {
        if !packing.may_add() {
            return (false, done);
        }
        packing.added += 1;
        packing.fast_nodes += 1;
        done += on_one.min(pods - done);
    }
    (true, done)
}

/// Whether a constraint of the pod spreads over hosts.
pub(super) fn spreads_over_hosts(traits: &PodTraits) -> bool {
    let hostname: Symbol = well_known::HOSTNAME;
    traits.spec.topology_spread.iter().any(|constraint| constraint.topology_key == hostname)
}
