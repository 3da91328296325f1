//! Figures from the lives of pods and nodes.

use std::collections::BTreeMap;

use super::{Count, Distribution, NodeSummary, PlaceholderSummary, PodSummary, Utilisation, rounded, waits};
use crate::cloud::{BillItem, BillLine};
use crate::domain::{SimDuration, SimTime};
use crate::format;
use crate::percentile::SortedSpans;
use nodecast_world::Outcome;
use nodecast_world::record::{EventKind, NodeEnd, NodeFacts, PodFacts, WorkloadKind};

/// Whether a DaemonSet made the pod.
pub fn is_daemon(outcome: &Outcome, pod: &PodFacts) -> bool {
    let workload = outcome.record.workloads.get(pod.workload.index());
    workload.is_some_and(|workload| workload.kind == WorkloadKind::DaemonSet)
}

/// How long a pod waited for a node: until it was bound, was deleted, or the run ended.
pub(crate) fn wait_for_node(pod: &PodFacts, end: SimTime) -> SimDuration {
    let until = pod.scheduled.or(pod.deletion_requested).or(pod.removed).unwrap_or(end);
    until.saturating_since(pod.created)
}

/// Whether a pod waited at a time that counts.
pub(super) fn counts_wait(outcome: &Outcome, pod: &PodFacts, end: SimTime) -> bool {
    !pod.found && pod.created + wait_for_node(pod, end) >= outcome.about.counts_from()
}

/// How many pods there were of one sort, and what became of them.
#[derive(Default)]
struct PodCounts {
    created: u64,
    pending_at_end: u64,
    never_scheduled: u64,
    evicted: u64,
}

impl PodCounts {
    fn add(&mut self, pod: &PodFacts, (counts_from, end): (SimTime, SimTime)) {
        let (waits, unwanted) = (pod.scheduled.is_none(), pod.deletion_requested.is_some() || pod.removed.is_some());
        self.created += 1;
        self.pending_at_end += u64::from(waits && !unwanted);
        self.never_scheduled += u64::from(waits && unwanted);
        self.evicted += u64::from(pod.evicted && left(pod, end) >= counts_from);
    }
}

pub(super) fn pods(outcome: &Outcome) -> PodSummary {
    let (counts_from, end) = (outcome.about.counts_from(), SimTime::ZERO + outcome.about.duration);
    let (mut daemons, mut pod_counts, mut placeholders) = (0, PodCounts::default(), PodCounts::default());
    let mut readiness = Vec::new();
    for pod in outcome.record.pods.unnamed() {
        if is_daemon(outcome, &pod) {
            daemons += 1;
        } else if pod.placeholder {
            placeholders.add(&pod, (counts_from, end));
        } else {
            pod_counts.add(&pod, (counts_from, end));
            let ready = pod.ready.filter(|ready| !pod.found && *ready >= counts_from);
            readiness.extend(ready.map(|ready| ready - pod.created));
        }
    }
    let created_to_ready = Distribution::from_spans(&SortedSpans::new(readiness));
    let waits = waits::Waits::from_outcome(outcome);
    let of_own = waits.of_placeholders(false);
    let [restarts] = events(outcome, [EventKind::PodKilled]);
    PodSummary {
        created: pod_counts.created,
        daemon_pods_created: daemons,
        pending_at_end: pod_counts.pending_at_end,
        never_scheduled: pod_counts.never_scheduled,
        evicted: pod_counts.evicted,
        restarts,
        waited: of_own.waited,
        wait_for_node: of_own.wait_for_node,
        created_to_ready,
        by_workload: waits.by_workload(outcome),
        by_priority: waits.by_priority(),
        placeholders: PlaceholderSummary {
            created: placeholders.created,
            pending_at_end: placeholders.pending_at_end,
            evicted: placeholders.evicted,
            waits: waits.of_placeholders(true),
        },
    }
}

/// When a pod had to leave, or the end of the run.
pub(crate) fn left(pod: &PodFacts, end: SimTime) -> SimTime {
    pod.deletion_requested.or(pod.removed).unwrap_or(end)
}

/// How often each of these happened since figures count.
fn events<const KINDS: usize>(outcome: &Outcome, kinds: [EventKind; KINDS]) -> [u64; KINDS] {
    let counts_from = outcome.about.counts_from();
    let mut counts = [0; KINDS];
    for event in outcome.record.events.iter().filter(|event| event.at >= counts_from) {
        if let Some(place) = kinds.iter().position(|kind| *kind == event.kind) {
            counts[place] += 1;
        }
    }
    counts
}

/// The parts of the run during which a node was Ready, in order: one that lost its power is not from when that is noticed until it is heard of again.
pub(crate) fn ready_intervals(node: &NodeFacts, end: SimTime) -> impl Iterator<Item = (SimTime, SimTime)> {
    let until = node.terminating.or(node.terminated).unwrap_or(end).min(end);
    let begins = node.ready.into_iter().chain(node.not_ready.iter().filter_map(|(_, again)| *again));
    let stops = node.not_ready.iter().map(|(from, _)| *from).chain(std::iter::once(SimTime::FAR_FUTURE));
    let spells = begins.zip(stops).map(move |(from, to)| (from.max(SimTime::ZERO), to.min(until)));
    spells.filter(|(from, to)| from < to)
}

/// For how long a node was Ready during the run, in microseconds.
pub(crate) fn ready_micros(node: &NodeFacts, end: SimTime) -> i128 {
    ready_intervals(node, end).map(|(from, until)| i128::from((until - from).as_micros())).sum()
}

pub(super) fn nodes(outcome: &Outcome) -> NodeSummary {
    let end = SimTime::ZERO + outcome.about.duration;
    let nodes = &outcome.record.nodes;
    let intervals: Vec<_> = nodes.iter().flat_map(|node| ready_intervals(node, end)).collect();
    let ready_micros: i128 = nodes.iter().map(|node| ready_micros(node, end)).sum();
    let run_micros = outcome.about.duration.as_micros();
    // A pod's machine on Fargate is no instance: nobody asks EC2 for it.
    let during = |node: &&NodeFacts| !was_there_at_start(node) && !node.is_of_fargate();
    let counts_from = outcome.about.counts_from();
    let became_ready = |node: &&NodeFacts| node.ready.is_some_and(|ready| ready >= counts_from);
    let launched = |node: &&NodeFacts| node.launched.is_some_and(|launched| launched >= counts_from);
    let failed_without_call = outcome.record.failed_without_call().filter(|node| ended(node, end) >= counts_from);
    let ended = || nodes.iter().filter(|node| ended(node, end) >= counts_from);
    let to_ready = nodes.iter().filter(during).filter(became_ready);
    let to_ready = to_ready.filter_map(|node| Some(node.ready? - node.launched?)).collect();
    let lifetimes = ended().filter_map(|node| Some(node.terminating? - node.running?)).collect();
    let mut terminations = BTreeMap::new();
    let gone = ended().filter(|node| !node.is_draining());
    for end in gone.filter_map(|node| node.end).filter(|&end| end != NodeEnd::LaunchFailed) {
        *terminations.entry(end).or_insert(0) += 1;
    }
    let [failed_activities, interruptions, reclaimed, rebalance_recommendations, on_demand_fallbacks, calls_throttled] =
        events(
            outcome,
            [
                EventKind::ScalingActivityFailed,
                EventKind::InterruptionNotice,
                EventKind::InstanceReclaimed,
                EventKind::RebalanceRecommended,
                EventKind::SpotFallback,
                EventKind::CallThrottled,
            ],
        );
    NodeSummary {
        max_ready: most_at_once(&intervals),
        mean_ready: (run_micros > 0).then(|| rounded(ready_micros as f64 / run_micros as f64, 6)),
        at_start: nodes.iter().filter(|node| was_there_at_start(node)).count() as u64,
        at_end: nodes.iter().filter(|node| is_ready_at_end(node)).count() as u64,
        launches: nodes.iter().filter(during).filter(launched).count() as u64,
        failed_launches: ended().filter(|node| node.end == Some(NodeEnd::LaunchFailed)).count() as u64
            + failed_activities,
        failed_without_call: failed_without_call.count() as u64,
        interruptions,
        reclaimed,
        rebalance_recommendations,
        on_demand_fallbacks,
        calls_throttled,
        spot_price_changes: spot_price_changes(outcome),
        terminations: terminations
            .into_iter()
            .map(|(end, count)| Count { name: end.as_str().to_owned(), count })
            .collect(),
        draining_at_end: nodes.iter().filter(|node| node.is_draining()).count() as u64,
        launch_to_ready: Distribution::from_spans(&SortedSpans::new(to_ready)),
        mean_lifetime_seconds: SortedSpans::new(lifetimes).mean_seconds().map(|seconds| rounded(seconds, 6)),
    }
}

impl NodeSummary {
    /// How many launches failed, and why.
    pub fn failures(&self) -> String {
        let failed = format::count(self.failed_launches);
        match self.failed_without_call {
            0 => format!("{failed} refused by EC2"),
            without => format!("{failed} failed ({} without a call to EC2)", format::count(without)),
        }
    }

    /// How many nodes are gone, and how many still drain if any do: words for the end of a list.
    pub fn departures(&self) -> String {
        let removed: u64 = self.terminations.iter().map(|end| end.count).sum();
        format!("{} removed{}", format::count(removed), self.still_draining())
    }

    /// Words on nodes that still drain at the end, to be put behind others; nothing where none do.
    pub fn still_draining(&self) -> String {
        match self.draining_at_end {
            0 => String::new(),
            count => format!(", {} still draining at the end", format::count(count)),
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
pub(super) const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Each instance has one line of the bill for each price.
fn spot_price_changes(outcome: &Outcome) -> u64 {
    let lines = &outcome.bill.lines;
    let same = |pair: &&[BillLine]| {
        pair.iter().all(|line| line.item == BillItem::Instance)
            && pair[0].node == pair[1].node
            && pair[0].rate != pair[1].rate
    };
    lines.windows(2).filter(same).count() as u64
}

/// When it was decided that a node ends, or the end of the run.
fn ended(node: &NodeFacts, end: SimTime) -> SimTime {
    node.deletion_requested.or(node.terminating).or(node.terminated).unwrap_or(end)
}

/// Whether a node is Ready when the run ends.
fn is_ready_at_end(node: &NodeFacts) -> bool {
    let is_lost = node.not_ready.last().is_some_and(|(_, again)| again.is_none());
    node.ready.is_some() && node.terminating.is_none() && !is_lost
}

fn was_there_at_start(node: &NodeFacts) -> bool {
    node.ready.is_some_and(|ready| ready <= SimTime::ZERO)
}

/// The most intervals that share an instant; an interval does not hold its end.
fn most_at_once(intervals: &[(SimTime, SimTime)]) -> u64 {
    // At one instant ends (-1) sort before beginnings (+1).
    let mut changes: Vec<(SimTime, i64)> =
        intervals.iter().flat_map(|&(from, until)| [(from, 1), (until, -1)]).collect();
    changes.sort_unstable();
    let mut open = 0_i64;
    let mut most = 0;
    for (_, change) in changes {
        open += change;
        most = most.max(open);
    }
    most.unsigned_abs()
}

pub(super) fn utilisation(outcome: &Outcome) -> Utilisation {
    let end = SimTime::ZERO + outcome.about.duration;
    let (mut cpu, mut memory) = ((0_i128, 0_i128), (0_i128, 0_i128));
    for node in &outcome.record.nodes {
        let micros = ready_micros(node, end);
        if micros == 0 {
            continue;
        }
        cpu.0 += node.requested_cpu;
        cpu.1 += i128::from(node.allocatable.cpu_milli()) * micros;
        memory.0 += node.requested_memory;
        memory.1 += i128::from(node.allocatable.memory_bytes()) * micros;
    }
    let ratio =
        |(requested, offered): (i128, i128)| (offered > 0).then(|| rounded(requested as f64 / offered as f64, 6));
    Utilisation { cpu_requested: ratio(cpu), memory_requested: ratio(memory) }
}
