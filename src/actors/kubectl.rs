//! What people do with kubectl to nodes and objects, as steps of the timeline say.
//!
//! What must not live here: what `kubectl apply` and `kubectl scale` do, which is a matter of each controller.

pub(super) mod delete;
pub(super) mod drain;

use super::context::Context;
use super::news::News;
use crate::cluster::{Node, NodePhase};
use crate::domain::taints::TaintEffect;
use crate::domain::which::{By, Which};
use crate::domain::{NodeId, SimTime, Taint, well_known};
use crate::world::record::EventKind;

/// The taint of a node that takes no more pods.
fn cordon_taint() -> Taint {
    Taint::new(well_known::TAINT_UNSCHEDULABLE, TaintEffect::NoSchedule)
}

/// The nodes that are meant and that `there` says are, oldest first.
fn chosen(context: &Context<'_>, which: &Which, there: impl Fn(&Node) -> bool) -> Vec<NodeId> {
    let is_meant = |node: &Node| match &which.by {
        By::Name(name) => node.is_called(name.name.as_str()),
        By::Labels(_) => which.has_labels(&node.labels),
    };
    let all = context.world.live_nodes().iter().copied();
    let mut nodes: Vec<NodeId> = all
        .filter(|&node| {
            let node = context.world.node(node);
            there(node) && is_meant(node)
        })
        .collect();
    nodes.sort_by_key(|&node| context.world.node(node).created);
    nodes.truncate(which.most.map_or(usize::MAX, |most| most as usize));
    nodes
}

/// The nodes that are meant, of those that have registered: before that there is no Node object. Says so if there are none.
fn chosen_nodes(context: &mut Context<'_>, now: SimTime, to: &str, which: &Which) -> Vec<NodeId> {
    let nodes = chosen(context, which, |node| node.phase == NodePhase::Registered);
    if nodes.is_empty() {
        context.world.note_unmet(now, format!("there is no node {which} to {to}"));
    }
    nodes
}

/// `kubectl cordon`.
pub(super) fn cordon(context: &mut Context<'_>, now: SimTime, which: &Which) {
    for node in chosen_nodes(context, now, "cordon", which) {
        cordon_one(context, now, node);
    }
}

fn cordon_one(context: &mut Context<'_>, now: SimTime, node: NodeId) {
    if !context.world.node(node).taints.contains(&cordon_taint()) {
        context.world.taint_node(node, cordon_taint());
        context.world.note_node(node, now, EventKind::NodeCordoned, "kubectl");
        context.tell(now, News::NodeTainted(node));
    }
}

/// `kubectl uncordon`. A drain that is under way goes on.
pub(super) fn uncordon(context: &mut Context<'_>, now: SimTime, which: &Which) {
    for node in chosen_nodes(context, now, "uncordon", which) {
        if context.world.node(node).taints.contains(&cordon_taint()) {
            context.world.untaint_node(node, well_known::TAINT_UNSCHEDULABLE);
            context.world.note_node(node, now, EventKind::NodeUncordoned, "kubectl");
            context.tell(now, News::NodeTainted(node));
        }
    }
}
