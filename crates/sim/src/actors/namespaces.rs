//! Namespaces and their labels, by which terms of pod affinity select them.
//!
//! kube-scheduler, Karpenter and the Cluster Autoscaler go by the labels as they are when they look.

use std::sync::Arc;

use super::scheduler_loop::SchedulerLoop;
use super::sim::Sim;
use crate::domain::labels::with_namespace_name;
use crate::domain::{Labels, SimTime, Symbol};
use crate::world::record::EventKind;

/// A Namespace is applied: its labels are these from now on. Returns whether they were others before. `namespaces` are in order of name.
pub(super) fn apply(
    sim: &mut Sim<'_>,
    scheduler: &mut SchedulerLoop,
    namespaces: &mut Arc<Vec<(Symbol, Labels)>>,
    now: SimTime,
    name: Symbol,
    labels: &Labels,
) -> bool {
    let labels = with_namespace_name(labels.clone(), name);
    let place = namespaces.binary_search_by_key(&name, |namespace| namespace.0);
    match place {
        Ok(at) if namespaces[at].1 == labels => return false,
        Ok(at) => Arc::make_mut(namespaces)[at].1 = labels.clone(),
        Err(at) => Arc::make_mut(namespaces).insert(at, (name, labels.clone())),
    }
    sim.world.note(now, EventKind::ManifestApplied, None, format!("Namespace {name}"));
    scheduler.namespace_labelled(name, &labels);
    true
}
