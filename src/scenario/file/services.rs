//! What the API server refuses of the Services that a timeline applies.

use super::timeline::Timeline;
use super::{Reading, ScenarioError};
use crate::domain::Symbol;
use crate::manifests::StandingBalancers;
use crate::scenario::definition::PolicyVariant;

/// Checks that no step changes the class of a load balancer.
///
/// Source: Kubernetes 1.36 `pkg/apis/core/validation/validation.go`, `validateLoadBalancerClassField`.
///
/// # Errors
/// If one does.
pub(super) fn check(
    reading: &Reading<'_, '_>,
    timeline: &Timeline<'_, '_>,
    policies: &[PolicyVariant],
) -> Result<(), ScenarioError> {
    let applied = || timeline.actions.iter().filter_map(|own| Some((own, own.action.action.applied()?)));
    if applied().all(|(_, newer)| newer.services.iter().all(|own| own.balancer.is_none())) {
        return Ok(());
    }
    for policy in policies {
        let (mut known, mut standing) = (policy.manifests.in_front(), StandingBalancers::default());
        standing.follow(&known);
        for (placed, newer) in applied() {
            for service in &newer.services {
                let Some((from, to)) = standing.refused_class(service) else { continue };
                let name = service.name;
                let shown = |class: Option<Symbol>| class.map_or_else(|| "none".to_owned(), |own| format!("`{own}`"));
                let message = format!(
                    "the Service {name} cannot change its `loadBalancerClass` from {} to {}",
                    shown(from),
                    shown(to)
                );
                let error = reading.error(placed.at, message).because("the API server refuses it");
                let place = reading.files.place(newer, "Service", name);
                let error = if place.is_some() { error.at(place) } else { error };
                return Err(error.help("state the class as it was, or apply a Service of another name"));
            }
            known.apply(newer.in_front());
            standing.follow(&known);
        }
    }
    Ok(())
}
