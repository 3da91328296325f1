//! NodeClaims as Karpenter counts them, under the names of the release: Machines before v0.32.
//!
//! Source: Karpenter core `pkg/metrics/metrics.go`, `pkg/controllers/nodeclaim/lifecycle/metrics.go` of v0.32 to v1.13;
//! operatorpkg 2026-02 `status/controller.go`, `status/metrics.go`.

use std::collections::BTreeMap;
use std::io;

use super::distributions::histogram;
use super::exposition::{Changes, Exposition, Family, Kind, Labels};
use super::karpenter::{made, reason_name, was_there};
use super::lives::{Lives, value};
use crate::domain::node_pool::DisruptionReason;
use crate::domain::{KarpenterVersion, NodeId, SimDuration, SimTime};
use nodecast_world::record::{NodeEnd, NodeFacts};

/// Upper limits of the buckets of transitions of conditions, in milliseconds: half a second, doubled fourteen times.
const TRANSITION_BUCKETS: [i64; 15] = {
    let mut limits = [500; 15];
    let mut place = 1;
    while place < limits.len() {
        limits[place] = limits[place - 1] * 2;
        place += 1;
    }
    limits
};
/// Those of Prometheus's client, which were the buckets before v1.6.
const CLIENT_BUCKETS: [i64; 11] = [5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000];
/// Upper limits of the buckets of terminations, in milliseconds: a second, doubled eleven times.
const TERMINATION_BUCKETS: [i64; 12] =
    [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000, 256_000, 512_000, 1_024_000, 2_048_000];
/// The same of instances, doubled ten times.
const INSTANCE_BUCKETS: [i64; 11] =
    [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000, 256_000, 512_000, 1_024_000];
/// Lines of the histograms of a NodePool at one instant.
pub(super) const POOL_LINES: u64 =
    (3 * (TRANSITION_BUCKETS.len() + 3) + TERMINATION_BUCKETS.len() + 3 + INSTANCE_BUCKETS.len() + 3) as u64;

pub(super) fn write(out: &mut Exposition<'_>, lives: &Lives<'_>) -> io::Result<()> {
    let release = lives.outcome.about.versions.karpenter;
    if release.is_since(1, 0) {
        counts(out, lives)?;
        transitions(out, lives, release)?;
        return terminations(out, lives);
    }
    if release.is_since(0, 32) {
        let names = [
            "karpenter_nodeclaims_created",
            "karpenter_nodeclaims_terminated",
            "karpenter_nodeclaims_launched",
            "karpenter_nodeclaims_registered",
            "karpenter_nodeclaims_initialized",
        ];
        before_v1(out, lives, names, "nodepool")?;
        if release.is_since(0, 33) {
            disrupted_before_v1(out, lives)?;
        }
    }
    if release.is_since(0, 28) && !release.is_since(0, 33) {
        let names = [
            "karpenter_machines_created",
            "karpenter_machines_terminated",
            "karpenter_machines_launched",
            "karpenter_machines_registered",
            "karpenter_machines_initialized",
        ];
        before_v1(out, lives, names, "provisioner")?;
    }
    Ok(())
}

/// The reason under which an end is counted; `None` where Karpenter did not bring it about.
fn reason_of(lives: &Lives<'_>, end: NodeEnd) -> Option<String> {
    let name = match end {
        NodeEnd::Empty => return Some(reason_name(lives, DisruptionReason::Empty)),
        NodeEnd::Underutilized => return Some(reason_name(lives, DisruptionReason::Underutilized)),
        NodeEnd::Drifted => return Some(reason_name(lives, DisruptionReason::Drifted)),
        NodeEnd::Expired => "expired",
        NodeEnd::LaunchFailed => "insufficient_capacity",
        NodeEnd::NotRegistered if lives.outcome.about.versions.karpenter.is_since(1, 7) => "registration_timeout",
        NodeEnd::NotRegistered => "liveness",
        NodeEnd::Unhealthy => "unhealthy",
        NodeEnd::Interrupted if lives.outcome.objects.interruption_queue => "spot_interrupted",
        NodeEnd::Interrupted | NodeEnd::Aborted | NodeEnd::InstanceLost => "garbage_collected",
        NodeEnd::ScaledIn | NodeEnd::Rebalanced | NodeEnd::Updated | NodeEnd::Deleted | NodeEnd::PodGone => {
            return None;
        }
    };
    Some(name.to_owned())
}

/// When a claim began to leave.
fn leaves(node: &NodeFacts) -> Option<SimTime> {
    node.deletion_requested.or(node.terminating).or(node.terminated)
}

fn counts(out: &mut Exposition<'_>, lives: &Lives<'_>) -> io::Result<()> {
    let commands = &lives.outcome.record.commands;
    let replacing: BTreeMap<NodeId, DisruptionReason> =
        commands.iter().flat_map(|command| command.made.iter().map(|node| (*node, command.reason))).collect();
    let (mut created, mut terminated, mut disrupted) = (Changes::default(), Changes::default(), Changes::default());
    for (id, node, pool) in made(lives) {
        let kind = || ("capacity_type", value(node.capacity_type));
        if !was_there(node) {
            let reason =
                replacing.get(&id).map_or_else(|| "provisioned".to_owned(), |replacing| reason_name(lives, *replacing));
            let labels =
                vec![("nodepool", pool.clone()), ("reason", reason), ("min_values_relaxed", "false".to_owned())];
            created.add(labels, node.requested, 1);
        }
        if let Some(at) = node.terminated {
            terminated.add(vec![("nodepool", pool.clone()), kind(), ("zone", value(node.zone))], at, 1);
        }
        if let (Some(reason), Some(at)) = (node.end.and_then(|end| reason_of(lives, end)), leaves(node)) {
            disrupted.add(vec![("nodepool", pool), kind(), ("reason", reason)], at, 1);
        }
    }
    out.family(Family::counter("karpenter_nodeclaims_created", "Node claims made."));
    out.changes(created, 1.0)?;
    out.family(Family::counter("karpenter_nodeclaims_terminated", "Node claims that are gone."));
    out.changes(terminated, 1.0)?;
    out.family(Family::counter("karpenter_nodeclaims_disrupted", "Node claims that Karpenter ended, by reason."));
    out.changes(disrupted, 1.0)
}

/// Claims made and gone, and those that came to each stage: counters of old.
fn before_v1(
    out: &mut Exposition<'_>,
    lives: &Lives<'_>,
    names: [&'static str; 5],
    key: &'static str,
) -> io::Result<()> {
    type Of = fn(&NodeFacts) -> Option<SimTime>;
    let stages: [(&'static str, Of); 5] = [
        ("Claims made.", |node| Some(node.requested)),
        ("Claims that are gone.", |node| node.terminated),
        ("Claims that have their instance.", |node| node.launched),
        ("Claims whose node has registered.", |node| node.registered),
        ("Claims whose node takes pods.", |node| node.initialized),
    ];
    for (name, (help, of)) in names.into_iter().zip(stages) {
        let mut reached = Changes::default();
        let ends = name.ends_with("_terminated");
        for (_, node, pool) in made(lives).filter(|(_, node, _)| ends || !was_there(node)) {
            if let Some(at) = of(node) {
                reached.add(vec![(key, pool)], at, 1);
            }
        }
        out.family(Family { name, kind: Kind::Unknown, help });
        out.changes(reached, 1.0)?;
    }
    Ok(())
}

fn disrupted_before_v1(out: &mut Exposition<'_>, lives: &Lives<'_>) -> io::Result<()> {
    let mut disrupted = Changes::default();
    for (_, node, pool) in made(lives) {
        if let (Some(reason), Some(at)) = (node.end.and_then(|end| reason_of(lives, end)), leaves(node)) {
            disrupted.add(vec![("nodepool", pool), ("type", reason.to_lowercase())], at, 1);
        }
    }
    let (name, help) = ("karpenter_nodeclaims_disrupted", "Claims that Karpenter ended, by kind.");
    out.family(Family { name, kind: Kind::Unknown, help });
    out.changes(disrupted, 1.0)
}

/// How long each condition of claims was unknown: from the creation of a claim until the condition was true, in whole seconds, as the
/// API server keeps times.
fn transitions(out: &mut Exposition<'_>, lives: &Lives<'_>, release: KarpenterVersion) -> io::Result<()> {
    type Of = fn(&NodeFacts) -> Option<SimTime>;
    let conditions: [(&str, Of); 3] = [
        ("Launched", |node| node.launched),
        ("Registered", |node| node.registered),
        ("Initialized", |node| node.initialized),
    ];
    let named = release.is_since(1, 1);
    let name = if named {
        "operator_nodeclaim_status_condition_transition_seconds"
    } else {
        "operator_status_condition_transition_seconds"
    };
    let buckets: &[i64] = if release.is_since(1, 6) { &TRANSITION_BUCKETS } else { &CLIENT_BUCKETS };
    let mut spans: BTreeMap<Labels, Vec<(SimTime, SimDuration)>> = BTreeMap::new();
    for (_, node, pool) in made(lives).filter(|(_, node, _)| !was_there(node)) {
        for (condition, of) in conditions {
            let Some(at) = of(node) else { continue };
            let seconds = out.unix_seconds(at) - out.unix_seconds(node.requested);
            let mut labels = vec![("type", condition.to_owned()), ("status", "Unknown".to_owned())];
            if release.is_since(1, 4) {
                labels.push(("karpenter_sh_nodepool", pool.clone()));
            }
            if !named {
                labels.extend([("group", "karpenter.sh".to_owned()), ("kind", "NodeClaim".to_owned())]);
            }
            spans.entry(labels).or_default().push((at, SimDuration::from_secs(seconds)));
        }
    }
    let help = "For how long a condition had a status that it then left.";
    out.family(Family { name, kind: Kind::Histogram, help });
    for (labels, span) in spans {
        histogram(out, &labels, buckets, span.into_iter())?;
    }
    Ok(())
}

/// From the decision to remove claims until they, and from the call until their instances, were gone.
fn terminations(out: &mut Exposition<'_>, lives: &Lives<'_>) -> io::Result<()> {
    type From = fn(&NodeFacts) -> Option<SimTime>;
    let families: [(&'static str, &'static str, &[i64], From); 2] = [
        (
            "karpenter_nodeclaims_termination_duration_seconds",
            "From the decision to remove claims until they were gone.",
            &TERMINATION_BUCKETS,
            |node| node.deletion_requested,
        ),
        (
            "karpenter_nodeclaims_instance_termination_duration_seconds",
            "From the call that ends instances until they were gone.",
            &INSTANCE_BUCKETS,
            |node| node.deletion_requested.and(node.terminating),
        ),
    ];
    for (name, help, buckets, from) in families {
        let mut spans: BTreeMap<Labels, Vec<(SimTime, SimDuration)>> = BTreeMap::new();
        for (_, node, pool) in made(lives) {
            if let (Some(began), Some(over)) = (from(node), node.terminated) {
                spans.entry(vec![("nodepool", pool)]).or_default().push((over, over - began));
            }
        }
        out.family(Family { name, kind: Kind::Histogram, help });
        for (labels, span) in spans {
            histogram(out, &labels, buckets, span.into_iter())?;
        }
    }
    Ok(())
}
