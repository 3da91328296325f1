//! What people do with kubectl to nodes and objects, as steps of the timeline say.
//!
//! What must not live here: what `kubectl apply` and `kubectl scale` do, which is a matter of each controller.

pub(super) mod drain;

use super::actor_events::ActorEvent;
use super::sim::Sim;
use crate::cluster::{Node, NodePhase};
use crate::domain::taints::TaintEffect;
use crate::domain::which::{By, Which};
use crate::domain::{NodeId, SimTime, Taint, well_known};
use crate::world::record::EventKind;
use nodecast_settings::PolicyVariant;

/// The taint of a node that takes no more pods.
fn cordon_taint() -> Taint {
    Taint::new(well_known::TAINT_UNSCHEDULABLE, TaintEffect::NoSchedule)
}

/// The live nodes of a name: those that are called so, or else the one whose host name it is.
///
/// # Errors
/// The names of several nodes whose host name it is.
pub(super) fn nodes_called(sim: &Sim<'_>, name: &str) -> Result<Vec<NodeId>, String> {
    let live = sim.world.live_nodes().iter().copied();
    let of = |matches: &dyn Fn(&Node) -> bool| -> Vec<NodeId> {
        live.clone().filter(|&node| matches(sim.world.node(node))).collect()
    };
    let exact = of(&|node| node.is_called(name));
    if !exact.is_empty() {
        return Ok(exact);
    }
    let short = of(&|node| node.has_short_name(name));
    if short.len() < 2 {
        return Ok(short);
    }
    let names: Vec<&str> = short.iter().map(|&node| sim.world.node(node).name.as_str()).collect();
    Err(names.join(", "))
}

/// The nodes that are meant and that `there` says are, oldest first.
///
/// # Errors
/// The names of the nodes of which one is meant.
fn chosen(sim: &Sim<'_>, which: &Which, there: impl Fn(&Node) -> bool) -> Result<Vec<NodeId>, String> {
    let mut nodes = match &which.by {
        By::Name(name) => nodes_called(sim, name.name.as_str())?,
        By::Labels(_) => {
            let live = sim.world.live_nodes().iter().copied();
            live.filter(|&node| which.has_labels(&sim.world.node(node).labels)).collect()
        }
    };
    nodes.retain(|&node| there(sim.world.node(node)));
    nodes.sort_by_key(|&node| sim.world.node(node).created);
    nodes.truncate(which.most.map_or(usize::MAX, |most| most as usize));
    Ok(nodes)
}

/// As [`chosen`]. Says so if several nodes have the host name of one.
pub(super) fn chosen_or_say(
    sim: &mut Sim<'_>,
    now: SimTime,
    which: &Which,
    there: impl Fn(&Node) -> bool,
) -> Option<Vec<NodeId>> {
    let chosen = chosen(sim, which, there);
    if let Err(names) = &chosen {
        sim.world.note_unmet(now, format!("several nodes have the host name {which}: {names}"));
    }
    chosen.ok()
}

/// The nodes that are meant, of those that have registered: before that there is no Node object. Says so if there are none.
fn chosen_nodes(sim: &mut Sim<'_>, now: SimTime, to: &str, which: &Which) -> Vec<NodeId> {
    let nodes = chosen_or_say(sim, now, which, |node| node.phase == NodePhase::Registered);
    if nodes.as_ref().is_some_and(Vec::is_empty) && !is_for_other_policy(sim, which) {
        sim.world.note_unmet(now, format!("there is no node {which} to {to}"));
    }
    nodes.unwrap_or_default()
}

/// Whether only another policy of the scenario has node groups with these labels: then the step is for that policy.
fn is_for_other_policy(sim: &Sim<'_>, which: &Which) -> bool {
    let has_group =
        |policy: &PolicyVariant| policy.manifests.node_groups.iter().any(|group| which.has_labels(&group.labels));
    !has_group(sim.setup.policy) && sim.setup.scenario.policies.iter().any(has_group)
}

/// `kubectl cordon`.
pub(super) fn cordon(sim: &mut Sim<'_>, now: SimTime, which: &Which) {
    for node in chosen_nodes(sim, now, "cordon", which) {
        cordon_one(sim, now, node);
    }
}

fn cordon_one(sim: &mut Sim<'_>, now: SimTime, node: NodeId) {
    if !sim.world.node(node).taints.contains(&cordon_taint()) {
        sim.world.taint_node(node, cordon_taint());
        sim.world.note_node(node, now, EventKind::NodeCordoned, "kubectl");
        sim.publish(ActorEvent::NodeTainted(node));
    }
}

/// `kubectl uncordon`. A drain that is under way goes on.
pub(super) fn uncordon(sim: &mut Sim<'_>, now: SimTime, which: &Which) {
    for node in chosen_nodes(sim, now, "uncordon", which) {
        if sim.world.node(node).taints.contains(&cordon_taint()) {
            sim.world.untaint_node(node, well_known::TAINT_UNSCHEDULABLE);
            sim.world.note_node(node, now, EventKind::NodeUncordoned, "kubectl");
            sim.publish(ActorEvent::NodeTainted(node));
        }
    }
}
