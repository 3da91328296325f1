//! Namespaces and their labels, by which terms of pod affinity select them.
//!
//! kube-scheduler, Karpenter and the Cluster Autoscaler go by the labels as they are when they look.

use std::sync::Arc;

use super::context::Context;
use super::node_autoscaler;
use crate::domain::labels::with_namespace_name;
use crate::domain::{Labels, SimTime, Symbol};
use crate::world::record::EventKind;

/// A Namespace is applied: its labels are these from now on.
pub(super) fn apply(context: &mut Context<'_>, now: SimTime, name: Symbol, labels: &Labels) {
    let labels = with_namespace_name(labels.clone(), name);
    let place = context.namespaces.binary_search_by_key(&name, |namespace| namespace.0);
    match place {
        Ok(at) if context.namespaces[at].1 == labels => return,
        Ok(at) => Arc::make_mut(&mut context.namespaces)[at].1 = labels.clone(),
        Err(at) => Arc::make_mut(&mut context.namespaces).insert(at, (name, labels.clone())),
    }
    context.world.note(now, EventKind::ManifestApplied, None, format!("Namespace {name}"));
    context.scheduler.namespace_labelled(name, &labels);
    node_autoscaler::replace_namespaces(context, now);
}
