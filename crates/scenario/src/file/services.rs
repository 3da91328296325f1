//! What the API server refuses of the Services that a timeline applies.

use super::timeline::Timeline;
use super::{Reading, ScenarioError};
use crate::definition::{Action, PolicyVariant};
use crate::domain::Symbol;
use crate::domain::which::{By, Which};
use crate::manifests::StandingBalancers;

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
    let mut applied = timeline.actions.iter().filter_map(|action| action.action.action.applied());
    if applied.all(|newer| newer.services.iter().all(|service| service.balancer.is_none())) {
        return Ok(());
    }
    for policy in policies {
        let mut known = policy.manifests.in_front();
        let mut standing = StandingBalancers::of_cluster(policy.auto_mode.is_some());
        standing.follow(&known);
        for placed in &timeline.actions {
            if let Action::Delete { kind, which: Which { by: By::Name(name), .. }, .. } = &placed.action.action
                && standing.delete(&mut known, *kind, *name)
            {
                standing.follow(&known);
            }
            let Some(newer) = placed.action.action.applied() else { continue };
            for service in &newer.services {
                let Some((from, to)) = standing.refused_class(service) else { continue };
                let name = service.name;
                let shown =
                    |class: Option<Symbol>| class.map_or_else(|| "none".to_owned(), |class| format!("`{class}`"));
                let message = format!(
                    "the Service {name} cannot change its `loadBalancerClass` from {} to {}",
                    shown(from),
                    shown(to)
                );
                let error = reading.error(placed.at, message).because("the API server refuses it");
                let place = reading.files.place(newer, "Service", name);
                let error = if place.is_some() { error.at(place) } else { error };
                return Err(error.help("state the class as it was, or `delete` the Service in a step before"));
            }
            known.apply(newer.in_front());
            standing.follow(&known);
        }
    }
    Ok(())
}
