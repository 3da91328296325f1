//! Limits on nodes that kept pods waiting, and quotas that refused launches.
//!
//! Must not list limits of replicas: `availability` does.

use serde::{Deserialize, Serialize};

use super::rounded;
use crate::cloud::FleetErrorCode;
use crate::domain::{ResourceName, Resources, SimTime, Symbol};
use crate::format;
use nodecast_world::Outcome;
use nodecast_world::record::{CapacityLimit, EventKind, NodeFacts, NodeOrigin, ReachedLimit};

/// A limit on nodes that was reached.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LimitFigures {
    /// `node_pool`, `node_group`, `max_nodes_total` or `vcpu_quota`.
    pub kind: String,
    /// The NodePool or node group; of a quota its capacity type.
    pub name: String,
    /// The resource that is limited: of a NodePool with several limits the one of which most was in use.
    pub resource: String,
    /// The limit, as Kubernetes writes it; `null` where it is not known.
    pub limit: Option<String>,
    /// The most that was in use of it, as a share; `null` where that is not known.
    pub used_share: Option<f64>,
    /// When a pod first waited because of it, or a launch was first refused, from the start of the run.
    pub from_seconds: f64,
    /// How long pods waited because of it; of a quota from the first refused launch to the last.
    pub for_seconds: f64,
    /// Pods that waited because of it; `null` of a quota, which refuses launches.
    pub pods: Option<u64>,
    /// Launches that it refused; `null` of other limits.
    pub refused_launches: Option<u64>,
}

impl LimitFigures {
    /// The limit and what it did, in words: `NodePool spot, cpu 100 (96.0% in use): 14 pods waited, for 2h 05m from 9h 12m on`.
    pub fn words(&self) -> String {
        let effect = match (self.pods, self.refused_launches) {
            (Some(pods), _) => format!("{} waited", format::counted(pods, "pod", "pods")),
            (None, launches) => format!("{} refused", format::counted(launches.unwrap_or(0), "launch", "launches")),
        };
        let (length, from) = (format::span(self.for_seconds), format::span(self.from_seconds));
        format!("{}: {effect}, for {length} from {from} on", self.subject())
    }

    /// The limit in words.
    pub fn subject(&self) -> String {
        let limit = self.limit.as_ref().map_or_else(String::new, |limit| format!(", {} {limit}", self.resource));
        let used = self.used_share.map_or_else(String::new, |share| format!(" ({} in use)", format::percent(share)));
        match self.kind.as_str() {
            "node_pool" => format!("NodePool {}{limit}{used}", self.name),
            "node_group" => format!("node group {}{limit}", self.name),
            "vcpu_quota" => format!("vCPU quota for {}", format::bought_as(&self.name)),
            _ => "max-nodes-total".to_owned(),
        }
    }
}

/// The limits that were reached, those first that kept most pods waiting.
pub(super) fn figures(outcome: &Outcome) -> Vec<LimitFigures> {
    let mut all: Vec<LimitFigures> =
        outcome.record.limits.iter().filter_map(|limit| of_limit(outcome, limit)).collect();
    all.sort_by_key(|limit| std::cmp::Reverse(limit.pods));
    all.extend(quotas(outcome));
    all
}

/// The spans for which pods waited because of a limit, from when figures count.
fn waits(outcome: &Outcome, limit: &ReachedLimit) -> Vec<(SimTime, SimTime)> {
    let (counts_from, end) = (outcome.about.counts_from(), SimTime::ZERO + outcome.about.duration);
    let wait = |(id, from): (&crate::domain::PodId, &SimTime)| {
        let pod = outcome.record.pods.get(*id).filter(|pod| !pod.placeholder)?;
        let until = pod.scheduled.or(pod.deletion_requested).or(pod.removed).unwrap_or(end);
        Some(((*from).max(counts_from), until))
    };
    limit.pods.iter().filter_map(wait).filter(|(from, until)| from < until).collect()
}

fn of_limit(outcome: &Outcome, limit: &ReachedLimit) -> Option<LimitFigures> {
    let mut waits = waits(outcome, limit);
    waits.sort_unstable();
    let first = waits.first()?.0;
    let last = waits.iter().map(|(_, until)| *until).max()?;
    let (kind, name, resource, amount, used_share) = match &limit.limit {
        CapacityLimit::NodePool(name, limits) => {
            let (resource, amount, share) = fullest(outcome, *name, limits, (first, last))?;
            ("node_pool", name.to_string(), resource.to_string(), Some(resource.format(amount)), share)
        }
        CapacityLimit::NodeGroup(name, most) => {
            ("node_group", name.to_string(), "nodes".to_owned(), Some(most.to_string()), None)
        }
        CapacityLimit::AllNodes => ("max_nodes_total", String::new(), "nodes".to_owned(), None, None),
    };
    Some(LimitFigures {
        kind: kind.to_owned(),
        name,
        resource,
        limit: amount,
        used_share: used_share.map(|share| rounded(share, 6)),
        from_seconds: first.as_secs_f64(),
        for_seconds: covered_seconds(&waits),
        pods: Some(waits.len() as u64),
        refused_launches: None,
    })
}

/// The time that spans in order of their beginning cover together.
fn covered_seconds(spans: &[(SimTime, SimTime)]) -> f64 {
    let (mut covered, mut reached) = (0.0, SimTime::ZERO);
    for &(from, until) in spans {
        covered += until.saturating_since(from.max(reached)).as_secs_f64();
        reached = reached.max(until);
    }
    covered
}

/// Of a NodePool's limits that of which most was in use between two instants, with the share; no share of a limit of zero.
fn fullest(
    outcome: &Outcome,
    pool: Symbol,
    limits: &Resources,
    span: (SimTime, SimTime),
) -> Option<(ResourceName, i64, Option<f64>)> {
    let nodes = || outcome.record.nodes.iter().filter(|node| node.origin == NodeOrigin::NodePool(pool));
    let share = |(resource, limit): (ResourceName, i64)| {
        let amount = |node: &NodeFacts| if resource == ResourceName::NODES { 1 } else { node.capacity.get(resource) };
        let used = peak(nodes().map(|node| (node.launched, node.terminated, amount(node))), span);
        (resource, limit, (limit > 0).then(|| used as f64 / limit as f64))
    };
    // A limit of zero is full whatever runs. Of equals the first.
    let weight = |share: Option<f64>| share.unwrap_or(f64::INFINITY);
    limits.iter().map(share).reduce(|one, other| if weight(other.2) > weight(one.2) { other } else { one })
}

/// The most that nodes held together at one instant of a span.
fn peak(
    nodes: impl Iterator<Item = (Option<SimTime>, Option<SimTime>, i64)>,
    (from, until): (SimTime, SimTime),
) -> i64 {
    let mut changes: Vec<(SimTime, i64)> = Vec::new();
    for (launched, ended, amount) in nodes {
        let Some(launched) = launched.filter(|launched| *launched <= until) else { continue };
        if ended.is_some_and(|ended| ended <= from) {
            continue;
        }
        changes.push((launched.max(from), amount));
        changes.extend(ended.map(|ended| (ended, -amount)));
    }
    changes.sort_unstable();
    let mut held = 0;
    changes.into_iter().fold(0, |most, (_, change)| {
        held += change;
        most.max(held)
    })
}

/// The account's vCPU quotas that refused launches since figures count.
fn quotas(outcome: &Outcome) -> Vec<LimitFigures> {
    // Fleets answer with a code, Auto Scaling groups with a sentence.
    let texts = [
        ("on-demand", [FleetErrorCode::VcpuLimitExceeded.as_str(), "current vCPU limit"]),
        ("spot", [FleetErrorCode::MaxSpotInstanceCountExceeded.as_str(), "Max spot instance count exceeded"]),
    ];
    let counts_from = outcome.about.counts_from();
    let of_texts = |(capacity_type, texts): (&str, [&str; 2])| {
        let is_refused = |kind| matches!(kind, EventKind::LaunchFailed | EventKind::ScalingActivityFailed);
        let events = outcome.record.events.iter().filter(|event| event.at >= counts_from && is_refused(event.kind));
        let refused: Vec<SimTime> = events
            .filter(|event| texts.iter().any(|text| event.message.contains(text)))
            .map(|event| event.at)
            .collect();
        let (first, last) = (*refused.first()?, *refused.last()?);
        Some(LimitFigures {
            kind: "vcpu_quota".to_owned(),
            name: capacity_type.to_owned(),
            resource: "vcpu".to_owned(),
            limit: None,
            used_share: None,
            from_seconds: first.as_secs_f64(),
            for_seconds: (last - first).as_secs_f64(),
            pods: None,
            refused_launches: Some(refused.len() as u64),
        })
    };
    texts.into_iter().filter_map(of_texts).collect()
}
