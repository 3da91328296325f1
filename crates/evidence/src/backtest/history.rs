//! What happened in a cluster, as far as a forecast is judged by it: lives of nodes and pods, replicas over time, charges.
//! A finished simulation has one, and so has what a real cluster recorded of itself.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::cloud::BillItem;
use crate::cloud::commitments::FARGATE;
use crate::domain::{HourlyRate, Money, SimDuration, SimTime, Symbol, WorkloadId};
use crate::report::summary::lives::is_daemon;
use crate::report::summary::service::workload_name;
use crate::world::outcome::Outcome;
use crate::world::record::{NodeEnd, NodeFacts, WorkloadKind};

/// What happened in a cluster. Instants are counted from `start`.
#[derive(Clone, PartialEq, Debug)]
pub struct History {
    /// When it begins.
    pub start: Timestamp,
    /// How long it lasts.
    pub duration: SimDuration,
    /// Before this instant the cluster was settling, and nothing is to be judged.
    pub counts_from: SimTime,
    /// Lives of nodes, in order of their beginning; `None` if nothing was recorded of nodes.
    pub nodes: Option<Vec<NodeLife>>,
    /// Lives of pods that no DaemonSet made and that reserve no room for others, in order of creation; `None` if nothing was recorded of pods.
    pub pods: Option<Vec<PodLife>>,
    /// Each workload but DaemonSets over time, by namespace and name; `None` if nothing was recorded of workloads.
    pub workloads: Option<BTreeMap<String, Vec<WorkloadState>>>,
    /// What was charged, in the order of the bill; `None` where no bill is known.
    pub charges: Option<Vec<Charge>>,
    /// From when on the charges are all that there were.
    pub charged_from: SimTime,
    /// What Karpenter counted, for whom nobody recorded it node by node and pod by pod.
    pub counted: UnattributedCounts,
    /// Spot prices of pools, used or not, as Karpenter saw them; `None` if nothing was recorded of them.
    pub spot_prices: Option<Vec<SpotPrice>>,
    /// The currency of the charges.
    pub currency: Option<String>,
}

/// Counts without whom they are of, each with the end of the time that it is of.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct UnattributedCounts {
    /// Nodes removed, with why; `None` if nothing counted them.
    pub ends: Option<Vec<(SimTime, Symbol, f64)>>,
    /// Pods evicted, those of DaemonSets too; `None` if nothing counted them.
    pub evictions: Option<Vec<(SimTime, f64)>>,
    /// How many nodes there were at a time; `None` where each node is known to the second.
    pub nodes: Option<Vec<(SimTime, f64)>>,
    /// Whether nodes are known by their number alone.
    pub nodes_alone: bool,
    /// Of how many nodes the capacity type was not recorded, and is taken to be On-Demand.
    pub taken_for_on_demand: usize,
}

impl UnattributedCounts {
    /// The word of `nodes.csv` for a reason as Karpenter's metrics have it.
    pub fn reason(word: &str) -> Symbol {
        Symbol::new(if word == "spot_interrupted" { NodeEnd::Interrupted.as_str() } else { word })
    }

    /// What Karpenter would have counted of a simulation.
    fn new(outcome: &Outcome, nodes: &[NodeLife]) -> Self {
        let ends = nodes.iter().filter(|node| node.was_launched());
        let ends = ends.filter_map(|node| Some((node.ended()?, node.end?, 1.0))).collect();
        let evicted = outcome.record.pods.iter().filter(|pod| pod.evicted);
        let evictions = evicted.filter_map(|pod| Some((pod.deletion_requested.or(pod.removed)?, 1.0))).collect();
        Self { ends: Some(ends), evictions: Some(evictions), ..Self::default() }
    }
}

/// The life of a node; an instant that never came, or that nobody recorded, is `None`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeLife {
    /// Its NodePool or node group.
    pub origin: Symbol,
    /// Its instance type.
    pub instance_type: Option<Symbol>,
    /// Its zone.
    pub zone: Option<Symbol>,
    /// `spot` or `on-demand`.
    pub capacity_type: Option<Symbol>,
    /// When EC2 answered with an instance.
    pub launched: Option<SimTime>,
    /// When its billing began.
    pub running: Option<SimTime>,
    /// When the kubelet registered it.
    pub registered: Option<SimTime>,
    /// When it was Ready.
    pub ready: Option<SimTime>,
    /// When its removal was decided.
    pub deletion_requested: Option<SimTime>,
    /// When its billing ended.
    pub terminating: Option<SimTime>,
    /// When it was gone.
    pub terminated: Option<SimTime>,
    /// Why it ended, in the words of `nodes.csv`.
    pub end: Option<Symbol>,
}

impl NodeLife {
    /// Whether there was an instance at all.
    pub fn was_launched(&self) -> bool {
        self.launched.or(self.running).or(self.registered).or(self.ready).is_some()
    }

    /// Whether it is the machine of a pod on Fargate, which EC2 launches for nobody.
    pub fn is_of_fargate(&self) -> bool {
        self.capacity_type.is_some_and(|capacity_type| capacity_type.as_str() == FARGATE)
    }

    /// When it was decided that it ends.
    pub fn ended(&self) -> Option<SimTime> {
        self.deletion_requested.or(self.terminating).or(self.terminated)
    }

    fn from_node(node: &NodeFacts) -> Self {
        Self {
            origin: node.origin.name(),
            instance_type: node.instance_type,
            zone: node.zone,
            capacity_type: node.capacity_type,
            launched: node.launched,
            running: node.running,
            registered: node.registered,
            ready: node.ready,
            deletion_requested: node.deletion_requested,
            terminating: node.terminating,
            terminated: node.terminated,
            end: node.end.map(|end| Symbol::new(end.as_str())),
        }
    }
}

/// The life of a pod.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PodLife {
    /// When it was created.
    pub created: SimTime,
    /// When the scheduler first found no node for it.
    pub unschedulable: Option<SimTime>,
    /// When it was bound.
    pub scheduled: Option<SimTime>,
    /// Whether it was bound, at a known time or not.
    pub bound: bool,
    /// When its deletion was asked for, or it was gone.
    pub left: Option<SimTime>,
    /// Whether it was evicted; `None` if nothing was recorded of evictions.
    pub evicted: Option<bool>,
}

/// A workload from an instant on, until its next state.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct WorkloadState {
    /// The instant.
    pub at: SimTime,
    /// Replicas wanted.
    pub desired: Option<f64>,
    /// Replicas Ready.
    pub ready: Option<f64>,
    /// CPU in use by all replicas, in thousandths.
    pub cpu_milli: Option<f64>,
    /// 99th percentile of the response time, in seconds.
    pub latency_p99: Option<f64>,
}

/// A line of a bill.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Charge {
    /// What it is for, in the words of `bill.csv`.
    pub item: Symbol,
    /// The instance type, where it is for one.
    pub instance_type: Option<Symbol>,
    /// The zone, likewise.
    pub zone: Option<Symbol>,
    /// The capacity type, likewise.
    pub capacity_type: Option<Symbol>,
    /// From when on.
    pub from: SimTime,
    /// Until when.
    pub until: SimTime,
    /// For how long all machines that it is for ran together: as long as it spans, but in bills of real clusters, which know of a pool's
    /// hours how many there were and not whose.
    pub machine_time: SimDuration,
    /// How much; what is taken back is negative.
    pub amount: Money,
}

/// A Spot price, from an instant on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SpotPrice {
    /// The instant.
    pub at: SimTime,
    /// The instance type.
    pub instance_type: Symbol,
    /// The zone.
    pub zone: Symbol,
    /// The price.
    pub rate: HourlyRate,
}

impl Charge {
    /// Whether it is for the hours of an instance.
    pub fn is_instance(&self) -> bool {
        self.item.as_str() == BillItem::Instance.as_str()
    }
}

impl History {
    /// One of which nothing is known but when it was, to be judged from its beginning.
    pub fn unknown(start: Timestamp, duration: SimDuration) -> Self {
        Self {
            start,
            duration,
            counts_from: SimTime::ZERO,
            nodes: None,
            pods: None,
            workloads: None,
            charges: None,
            charged_from: SimTime::ZERO,
            counted: UnattributedCounts::default(),
            spot_prices: None,
            currency: None,
        }
    }

    /// The history of a simulation.
    pub fn from_outcome(outcome: &Outcome) -> Self {
        let record = &outcome.record;
        let is_judged = |pod: &crate::world::record::PodFacts| !pod.placeholder && !is_daemon(outcome, pod);
        let pods = record.pods.iter().filter(is_judged).map(|pod| PodLife {
            created: pod.created,
            unschedulable: pod.unschedulable,
            scheduled: pod.scheduled,
            bound: pod.scheduled.is_some(),
            left: pod.deletion_requested.or(pod.removed),
            evicted: Some(pod.evicted),
        });
        let nodes: Vec<NodeLife> = record.nodes.iter().map(NodeLife::from_node).collect();
        Self {
            start: outcome.about.start.parse().unwrap_or_default(),
            duration: outcome.about.duration,
            counts_from: outcome.about.counts_from(),
            counted: UnattributedCounts::new(outcome, &nodes),
            nodes: Some(nodes),
            pods: Some(pods.collect()),
            workloads: Some(workloads(outcome)),
            charges: Some(charges(outcome)),
            charged_from: SimTime::ZERO,
            spot_prices: None,
            currency: Some(outcome.bill.currency.code().to_owned()),
        }
    }

    /// When it ends.
    pub fn end(&self) -> SimTime {
        SimTime::ZERO + self.duration
    }

    /// Whether it is known why nodes ended: nothing is, where some did and none has a reason.
    pub fn knows_ends(&self) -> bool {
        self.nodes.as_ref().is_some_and(|nodes| {
            nodes.iter().any(|node| node.end.is_some()) || nodes.iter().all(|node| node.ended().is_none())
        })
    }

    /// Whether it is known which pods were evicted.
    pub fn knows_evictions(&self) -> bool {
        self.pods.as_ref().is_some_and(|pods| pods.is_empty() || pods.iter().any(|pod| pod.evicted.is_some()))
    }

    /// Whether it is known how long pods waited: nothing is, where there were pods and none has a time of binding or of the first failure to
    /// find a node.
    pub fn knows_waits(&self) -> bool {
        self.pods.as_ref().is_some_and(|pods| {
            pods.is_empty() || pods.iter().any(|pod| pod.scheduled.is_some() || pod.unschedulable.is_some())
        })
    }

    /// Whether a node's billing is known to begin apart from its registration.
    pub fn knows_running(&self) -> bool {
        self.nodes.iter().flatten().any(|node| node.running.is_some())
    }
}

fn workloads(outcome: &Outcome) -> BTreeMap<String, Vec<WorkloadState>> {
    let facts = outcome.record.workloads.iter().enumerate();
    let names: Vec<Option<String>> = facts
        .map(|(index, workload)| {
            let is_judged = workload.kind != WorkloadKind::DaemonSet && !workload.placeholder;
            is_judged.then(|| workload_name(outcome, WorkloadId::from_index(index)))
        })
        .collect();
    let mut workloads: BTreeMap<String, Vec<WorkloadState>> = BTreeMap::new();
    for sample in &outcome.record.samples {
        for state in &sample.workloads {
            let Some(Some(name)) = names.get(state.workload.index()) else { continue };
            let states = match workloads.get_mut(name) {
                Some(states) => states,
                None => workloads.entry(name.clone()).or_default(),
            };
            states.push(WorkloadState {
                at: sample.at,
                desired: Some(f64::from(state.replicas_desired)),
                ready: Some(f64::from(state.replicas_ready)),
                cpu_milli: Some(state.cpu_used_milli),
                latency_p99: state.latency_p99_seconds,
            });
        }
    }
    workloads
}

fn charges(outcome: &Outcome) -> Vec<Charge> {
    let lines = outcome.bill.lines.iter();
    let charge = |line: &crate::cloud::BillLine| Charge {
        item: Symbol::new(line.item.as_str()),
        instance_type: line.instance_type,
        zone: line.zone,
        capacity_type: line.capacity_type,
        from: line.from,
        until: line.to,
        machine_time: line.to.saturating_since(line.from),
        amount: line.amount,
    };
    lines.map(charge).collect()
}

/// Whether the word is that of a launch that came to nothing, which is no disruption.
pub fn is_failed_launch(end: Symbol) -> bool {
    [NodeEnd::LaunchFailed, NodeEnd::Aborted, NodeEnd::NotRegistered]
        .iter()
        .any(|launchfailed| launchfailed.as_str() == end.as_str())
}

/// Whether the word is that of a Spot instance that EC2 took.
pub fn is_reclaim(end: Symbol) -> bool {
    end.as_str() == NodeEnd::Interrupted.as_str()
}
