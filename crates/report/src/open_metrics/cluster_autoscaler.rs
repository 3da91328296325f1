//! The Cluster Autoscaler's own metrics.
//!
//! Source: Cluster Autoscaler 1.36 `metrics/metrics.go`, `proposals/metrics.md`.

use std::io;

use super::exposition::{Changes, Exposition, Family, Labels};
use super::lives::{Lives, earliest, pool_of};
use crate::domain::SimTime;
use nodecast_world::record::{NodeEnd, NodeFacts};

/// Series of each node group.
pub(super) const GROUP_SERIES: u64 = 3;

pub(super) fn write(out: &mut Exposition<'_>, lives: &Lives<'_>) -> io::Result<()> {
    nodes(out, lives)?;
    capacity(out, lives)?;
    groups(out, lives)?;
    waiting(out, lives)?;
    out.family(Family::gauge("cluster_autoscaler_unneeded_nodes_count", "Nodes that it takes for unneeded."));
    out.series(&Vec::new(), SimTime::ZERO, |at| Some(f64::from(lives.sample(at)?.nodes_unneeded)))?;
    scale_ups(out, lives)?;
    scale_downs(out, lives)
}

fn nodes(out: &mut Exposition<'_>, lives: &Lives<'_>) -> io::Result<()> {
    let state = |name: &str| vec![("state", name.to_owned())];
    let mut there = Changes::default();
    for name in ["ready", "unready", "notStarted", "unregistered"] {
        there.there_is(state(name));
    }
    for (id, node) in lives.nodes() {
        let gone = node.terminated;
        there.between(state("unregistered"), node.requested.max(SimTime::ZERO), earliest([node.registered, gone]), 1);
        let Some(registered) = node.registered else { continue };
        let first_ready = earliest([node.ready, gone]);
        there.between(state("notStarted"), registered, first_ready, 1);
        let Some(from) = node.ready else { continue };
        there.between(state("unready"), from, gone, 1);
        for (began, over, readiness) in lives.readiness(id, node).pieces((from, gone)) {
            if readiness == 1 {
                there.between(state("ready"), began, over, 1);
                there.between(state("unready"), began, over, -1);
            }
        }
    }
    out.family(Family::gauge(
        "cluster_autoscaler_nodes_count",
        "Nodes and instances that are to become nodes, by state.",
    ));
    out.changes(there, 1.0)
}

/// What nodes hold that are not being deleted.
fn capacity(out: &mut Exposition<'_>, lives: &Lives<'_>) -> io::Result<()> {
    let (mut cores, mut bytes) = (Changes::default(), Changes::default());
    for (_, node) in lives.nodes() {
        let Some(from) = node.registered else { continue };
        let until = earliest([node.deletion_requested, node.terminating, node.terminated]);
        cores.between(Vec::new(), from, until, node.capacity.cpu_milli());
        bytes.between(Vec::new(), from, until, node.capacity.memory_bytes());
    }
    out.family(Family::gauge("cluster_autoscaler_cluster_cpu_current_cores", "CPUs of nodes that are to stay."));
    out.changes(cores, 1e3)?;
    out.family(Family::gauge("cluster_autoscaler_cluster_memory_current_bytes", "Memory of nodes that are to stay."));
    out.changes(bytes, 1.0)
}

fn groups(out: &mut Exposition<'_>, lives: &Lives<'_>) -> io::Result<()> {
    let groups = &lives.outcome.objects.node_groups;
    out.family(Family::gauge("cluster_autoscaler_node_groups_count", "Node groups."));
    let labels = vec![("node_group_type", "autoscaled".to_owned())];
    out.series(&labels, SimTime::ZERO, |_| Some(groups.len() as f64))?;
    let named = |name: crate::domain::Symbol| -> Labels { vec![("node_group", name.to_string())] };
    out.family(Family::gauge("cluster_autoscaler_node_group_min_count", "Least nodes of the group."));
    for group in groups {
        out.series(&named(group.name), SimTime::ZERO, |_| Some(f64::from(group.min_size)))?;
    }
    out.family(Family::gauge("cluster_autoscaler_node_group_max_count", "Most nodes of the group."));
    for group in groups {
        out.series(&named(group.name), SimTime::ZERO, |_| Some(f64::from(group.max_size)))?;
    }
    Ok(())
}

/// Pods for which the scheduler found no node.
fn waiting(out: &mut Exposition<'_>, lives: &Lives<'_>) -> io::Result<()> {
    let labels = || vec![("type", "unschedulable".to_owned())];
    let mut pods = Changes::default();
    pods.there_is(labels());
    for (id, ref pod) in lives.pods() {
        if let Some(from) = pod.unschedulable {
            pods.between(labels(), from, earliest([pod.scheduled, lives.active_until(id, pod)]), 1);
        }
    }
    out.family(Family::gauge("cluster_autoscaler_unschedulable_pods_count", "Pods without room on any node."));
    out.changes(pods, 1.0)
}

fn scale_ups(out: &mut Exposition<'_>, lives: &Lives<'_>) -> io::Result<()> {
    let (mut added, mut failed) = (Changes::default(), Changes::default());
    added.there_is(Vec::new());
    for scale_up_facts in &lives.outcome.record.scale_ups {
        match scale_up_facts.failure {
            None => added.add(Vec::new(), scale_up_facts.at, i64::from(scale_up_facts.nodes)),
            Some(reason) => failed.add(vec![("reason", reason.to_owned())], scale_up_facts.at, 1),
        }
    }
    out.family(Family::counter("cluster_autoscaler_scaled_up_nodes", "Nodes that it asked for."));
    out.changes(added, 1.0)?;
    out.family(Family::counter("cluster_autoscaler_failed_scale_ups", "Scale-ups that failed, by reason."));
    out.changes(failed, 1.0)
}

fn scale_downs(out: &mut Exposition<'_>, lives: &Lives<'_>) -> io::Result<()> {
    let mut removed = Changes::default();
    let reasons = [(NodeEnd::Empty, "empty"), (NodeEnd::Underutilized, "underutilized")];
    for (_, name) in reasons {
        removed.there_is(vec![("reason", name.to_owned())]);
    }
    // What AWS or EKS ended is not among these: such nodes were never the autoscaler's to remove.
    let chosen = |node: &NodeFacts| {
        let reason = reasons.iter().find(|(end, _)| node.end == Some(*end)).map(|(_, name)| *name);
        reason.filter(|_| pool_of(node).is_none() && node.deletion_requested.is_some())
    };
    for (_, node) in lives.nodes() {
        if let (Some(name), Some(at)) = (chosen(node), node.terminating) {
            removed.add(vec![("reason", name.to_owned())], at, 1);
        }
    }
    out.family(Family::counter("cluster_autoscaler_scaled_down_nodes", "Nodes that it removed, by reason."));
    out.changes(removed, 1.0)?;
    let labels = || vec![("eviction_result", "succeeded".to_owned())];
    let mut evicted = Changes::default();
    evicted.there_is(labels());
    for (_, ref pod) in lives.pods().filter(|(_, pod)| pod.evicted) {
        let removal = lives.node_of(pod).filter(|node| chosen(node).is_some()).and_then(|node| node.deletion_requested);
        if let (Some(at), Some(removal)) = (pod.deletion_requested, removal)
            && removal <= at
        {
            evicted.add(labels(), at, 1);
        }
    }
    out.family(Family::counter("cluster_autoscaler_evicted_pods", "Pods that it evicted."));
    out.changes(evicted, 1.0)
}
