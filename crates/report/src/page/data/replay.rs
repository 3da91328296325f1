//! The lives of nodes and pods, for the replay and the strips of the page.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use serde::Serialize;

use super::Names;
use super::counts::{Counts, gone, notices};
use super::encode::{Runs, differences, tenths};
use crate::domain::{NodeId, Resources, SimTime, WorkloadId};
use nodecast_world::Outcome;
use nodecast_world::record::{NodeFacts, PodFacts, Pods};

/// Nodes that the page knows; more boxes than this cannot be told apart.
const NODES_MAX: usize = 1_500;
/// How many pods are kept in brief.
const BRIEFS_MAX: usize = 50_000;
/// How coarse the lives of pods may become so that they fit, in tenths of a second.
const TICKS: [i64; 8] = [1, 10, 100, 300, 600, 1_200, 3_000, COARSEST];
/// A multiple of all others: what fits with one of them fits with this one.
const COARSEST: i64 = 6_000;
const MIB: i64 = 1_048_576;
/// Stands for an instant that never came.
const NEVER: i64 = -1;

/// Nodes and pods over time.
#[derive(Serialize)]
pub(super) struct Replay {
    /// Nodes that the run had; those that are drawn are in `nodes`.
    nodes_in_all: usize,
    /// Instants of pods are multiples of so many tenths of a second.
    tick: i64,
    nodes: Vec<NodeRow>,
    sizes: Vec<Size>,
    pods: PodColumns,
}

/// What a pod requests or a node offers: thousandths of a CPU, MiB, accelerators.
type Size = (i64, i64, i64);

/// A node: its name and numbers in the order in which [`node_row`] gives them.
#[derive(Serialize)]
struct NodeRow(String, Vec<i64>);

/// Pods, one entry in each column; those alike in everything are one entry with a count.
#[derive(Serialize)]
struct PodColumns {
    /// When they were created, each less the one before it.
    created: Runs<i64>,
    /// From then to the binding.
    bound: Runs<i64>,
    /// From the binding to Ready.
    ready: Runs<i64>,
    /// From the creation until they were gone.
    gone: Runs<i64>,
    node: Runs<i64>,
    workload: Runs<u32>,
    size: Runs<usize>,
    count: Runs<u32>,
}

/// What a pod has in common with others of its row, the creation first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Life {
    created: i64,
    bound: i64,
    ready: i64,
    gone: i64,
    node: i64,
    workload: WorkloadId,
    size: usize,
}

impl Replay {
    /// The lives of `outcome`, in about `rows` rows of pods.
    pub(super) fn new(outcome: &Outcome, counts: &Counts, names: &mut Names, rows: usize) -> Self {
        let record = &outcome.record;
        let mut sizes = BTreeMap::new();
        for pod in record.pods.unnamed() {
            sizes.insert(size(&pod.requests), 0);
        }
        for (position, size) in sizes.values_mut().enumerate() {
            *size = position;
        }
        let order = most_useful_first(outcome, counts.opens);
        let pods = Briefs::new(&record.pods, &sizes);
        let drawn = drawn(&pods, &order, rows);
        let (tick, lives) = fitting(&pods, &drawn, rows);
        let notices = notices(outcome);
        let nodes = drawn.nodes.iter().filter_map(|id| {
            let node = record.nodes.get(id.index())?;
            Some(NodeRow(node.name.clone(), node_row(node, notices.get(id).copied(), names)))
        });
        Self {
            nodes_in_all: record.nodes.len(),
            tick,
            nodes: nodes.collect(),
            sizes: sizes.into_keys().collect(),
            pods: columns(&lives),
        }
    }
}

fn size(amounts: &Resources) -> Size {
    let accelerators = amounts.iter().filter(|(name, _)| name.is_accelerator()).map(|(_, amount)| amount).sum();
    (amounts.cpu_milli(), amounts.memory_bytes() / MIB, accelerators)
}

/// All nodes: those that are there when the page opens first, among equals those that live longest, then by id.
fn most_useful_first(outcome: &Outcome, opens: i64) -> Vec<NodeId> {
    let end = SimTime::ZERO + outcome.about.duration;
    let life = |node: &NodeFacts| (node.requested.max(SimTime::ZERO), gone(node).unwrap_or(end).min(end));
    let ids = (0..outcome.record.nodes.len()).map(|index| NodeId(u32::try_from(index).unwrap_or(u32::MAX)));
    let mut order: Vec<NodeId> = ids.collect();
    order.sort_by_cached_key(|id| {
        let (from, until) = life(&outcome.record.nodes[id.index()]);
        let opens_with_it = tenths(from) <= opens && opens < tenths(until);
        (!opens_with_it, Reverse(until.saturating_since(from)), *id)
    });
    order
}

/// The nodes that are drawn, in order of id.
struct DrawnReplay {
    nodes: Vec<NodeId>,
    /// The row of each node that is drawn, by its id.
    rows: Vec<Option<u32>>,
}

impl DrawnReplay {
    /// The first `count` nodes of `order`, which has all.
    fn new(order: &[NodeId], count: usize) -> Self {
        let mut nodes = order[..count.min(order.len())].to_vec();
        nodes.sort_unstable();
        let mut rows = vec![None; order.len()];
        for (row, id) in (0_u32..).zip(&nodes) {
            rows[id.index()] = Some(row);
        }
        Self { nodes, rows }
    }

    fn row(&self, node: NodeId) -> Option<u32> {
        self.rows.get(node.index()).copied().flatten()
    }
}

/// Type, zone, capacity type, origin and end as names; CPU in thousandths, memory in MiB and accelerators that it offers; then, in tenths
/// of a second: when it was asked for, and from then on when it ran, was Ready, was told to go, stopped being billed, was
/// gone, and was given notice; at last, in pairs, when it stopped being Ready and when it was so again.
fn node_row(node: &NodeFacts, notice: Option<SimTime>, names: &mut Names) -> Vec<i64> {
    let asked = tenths(node.requested);
    let since = |at: Option<SimTime>| at.map_or(NEVER, |at| (tenths(at) - asked).max(0));
    let end = node.end.map(|end| crate::domain::Symbol::new(end.as_str()));
    let (cpu, memory, accelerators) = size(&node.allocatable);
    let mut row = vec![
        names.position(node.instance_type),
        names.position(node.zone),
        names.position(node.capacity_type),
        names.position(Some(node.origin.name())),
        names.position(end),
        cpu,
        memory,
        accelerators,
        asked,
        since(node.running),
        since(node.ready),
        since(node.deletion_requested),
        since(node.terminating),
        since(gone(node)),
        since(notice),
    ];
    row.extend(node.not_ready.iter().flat_map(|(from, again)| [since(Some(*from)), since(*again)]));
    row
}

/// What a replay draws of a pod, its instants in tenths of a second.
#[derive(Clone, Copy)]
struct Brief {
    created: i64,
    bound: Option<i64>,
    ready: Option<i64>,
    gone: Option<i64>,
    node: Option<NodeId>,
    workload: WorkloadId,
    size: usize,
}

/// All pods in brief. They are gone through many times, and to read one from the record costs more than all else: the first of them are kept, as
/// many as a few megabytes hold.
struct Briefs<'p> {
    pods: &'p Pods,
    sizes: &'p BTreeMap<Size, usize>,
    kept: Vec<Brief>,
}

impl<'p> Briefs<'p> {
    fn new(pods: &'p Pods, sizes: &'p BTreeMap<Size, usize>) -> Self {
        let mut briefs = Self { pods, sizes, kept: Vec::new() };
        briefs.kept = pods.unnamed().take(BRIEFS_MAX).map(|pod| briefs.brief(&pod)).collect();
        briefs
    }

    fn brief(&self, pod: &PodFacts) -> Brief {
        Brief {
            created: tenths(pod.created),
            bound: pod.scheduled.map(tenths),
            ready: pod.ready.map(tenths),
            gone: pod.removed.map(tenths),
            node: pod.node,
            workload: pod.workload,
            size: self.sizes.get(&size(&pod.requests)).copied().unwrap_or(0),
        }
    }

    fn iter(&self) -> impl Iterator<Item = Brief> {
        let rest = self.pods.unnamed().skip(self.kept.len()).map(|pod| self.brief(&pod));
        self.kept.iter().copied().chain(rest)
    }
}

/// Rows of pods, counted, whose instants are multiples of so many tenths of a second.
type Counted = (i64, BTreeMap<Life, u32>);

/// The first nodes of `order`. Their number is the largest one tried for which the pods fit into `rows` rows at the coarsest tick, and at
/// most 1 if they never fit.
///
/// The search is binary: with fewer nodes there are never more rows.
fn drawn(pods: &Briefs<'_>, order: &[NodeId], rows: usize) -> DrawnReplay {
    let fewer = |count: &usize| (*count > 1).then(|| count / 4 * 3);
    let counts: Vec<usize> = std::iter::successors(Some(order.len().min(NODES_MAX)), fewer).collect();
    let has_room = |&count: &usize| lives(pods, (&DrawnReplay::new(order, count), rows), COARSEST).is_some();
    let at = counts[..counts.len() - 1].partition_point(|count| !has_room(count));
    DrawnReplay::new(order, counts[at])
}

/// Pods on nodes that are drawn, at the finest tick that fits into `rows` rows; at the coarsest if none fits.
fn fitting(pods: &Briefs<'_>, drawn: &DrawnReplay, rows: usize) -> Counted {
    let within = |rows| move |tick| Some((tick, lives(pods, (drawn, rows), tick)?));
    let found = TICKS.into_iter().find_map(within(rows));
    found.or_else(|| within(usize::MAX)(COARSEST)).unwrap_or_default()
}

/// Pods counted by their lives in whole ticks, nothing before it happened; those that lived between two ticks are not seen. A pod
/// whose node is not drawn is seen while it waits for it. `None` as soon as there are more than `rows`.
fn lives(pods: &Briefs<'_>, (drawn, rows): (&DrawnReplay, usize), tick: i64) -> Option<BTreeMap<Life, u32>> {
    // Most ticks are too fine, and what was counted is thrown away: only what is kept is put in order.
    let mut lives = FxHashMap::default();
    let at = |tenths: i64| -(-tenths).div_euclid(tick) * tick;
    for pod in pods.iter() {
        let row = pod.node.and_then(|node| drawn.row(node));
        let (bound, ready, gone) = match (pod.node, row) {
            (Some(_), None) => (None, None, pod.bound),
            _ => (pod.bound, pod.ready, pod.gone),
        };
        let created = at(pod.created);
        let gone = gone.map_or(NEVER, |gone| at(gone) - created);
        if gone == 0 {
            continue;
        }
        let bound = bound.map_or(NEVER, |bound| at(bound) - created);
        let life = Life {
            created,
            bound,
            ready: ready.map_or(NEVER, |ready| at(ready) - created - bound.max(0)),
            gone,
            node: row.map_or(NEVER, i64::from),
            workload: pod.workload,
            size: pod.size,
        };
        *lives.entry(life).or_insert(0) += 1;
        if lives.len() > rows {
            return None;
        }
    }
    Some(lives.into_iter().collect())
}

fn columns(lives: &BTreeMap<Life, u32>) -> PodColumns {
    let column = |value: fn(&Life) -> i64| Runs(lives.keys().map(value).collect());
    PodColumns {
        created: differences(lives.keys().map(|life| life.created)),
        bound: column(|life| life.bound),
        ready: column(|life| life.ready),
        gone: column(|life| life.gone),
        node: column(|life| life.node),
        workload: Runs(lives.keys().map(|life| life.workload.0).collect()),
        size: Runs(lives.keys().map(|life| life.size).collect()),
        count: Runs(lives.values().copied().collect()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{Brief, Briefs, DrawnReplay, TICKS, drawn, lives};
    use crate::domain::{NodeId, WorkloadId};
    use nodecast_world::record::Pods;

    /// Four hundred pods on 53 nodes, which come in turn and wait for three different times.
    fn pods() -> Vec<Brief> {
        let pod = |number: i64| {
            let created = number * 37 % 9_001;
            let bound = created + number % 3 * 40;
            Brief {
                created,
                bound: Some(bound),
                ready: Some(bound + 310),
                gone: (number % 4 > 0).then_some(bound + number * 7),
                node: Some(NodeId((number * 11 % 53) as u32)),
                workload: WorkloadId((number % 5) as u32),
                size: 0,
            }
        };
        (0..400).map(pod).collect()
    }

    #[test]
    fn nodes_are_drawn_while_their_pods_fit() {
        let (none, sizes) = (Pods::default(), BTreeMap::new());
        let pods = Briefs { pods: &none, sizes: &sizes, kept: pods() };
        let order: Vec<NodeId> = (0..53).map(|node| NodeId(node * 20 % 53)).collect();
        let mut drawn_nodes = Vec::new();
        for rows in [0, 3, 20, 60, 100, 200, 300, 390, 1_000] {
            let has_room = |count| {
                let some = DrawnReplay::new(&order, count);
                TICKS.into_iter().any(|tick| lives(&pods, (&some, rows), tick).is_some())
            };
            let mut count = order.len();
            while count > 1 && !has_room(count) {
                count = count / 4 * 3;
            }
            drawn_nodes.push(drawn(&pods, &order, rows).nodes.len());
            assert_eq!(drawn_nodes.last(), Some(&count), "{rows} rows");
        }
        assert!(drawn_nodes.iter().any(|count| (2..53).contains(count)), "{drawn_nodes:?}");
    }
}
