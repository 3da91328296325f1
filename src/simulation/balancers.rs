//! The load balancers that Services and Ingresses call for: those of the manifests from the start, those that the timeline applies from
//! then on, and each until what called for it does not any more.
//!
//! What must not live here: what they cost (`cloud`), what a manifest calls for (`manifests`).

use crate::domain::SimTime;
use crate::domain::workload::ObjectName;
use crate::manifests::{BalancerCaller, BalancerKind, LoadBalancer, Manifests, Service};
use crate::scenario::{PolicyVariant, Scenario};

/// A load balancer of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Balancer {
    /// What it is.
    pub(super) kind: BalancerKind,
    /// What calls for it.
    caller: BalancerCaller,
    /// The Services behind it, as they were last.
    pub(super) services: Vec<ObjectName>,
    /// Since when it is there.
    pub(super) from: SimTime,
    /// Until when; `None` to the end of the run.
    pub(super) to: Option<SimTime>,
}

/// The load balancers of a run.
pub(super) struct Balancers {
    /// Each of them, in the order in which they came.
    pub(super) all: Vec<Balancer>,
    /// The Services of the run, as they were last.
    pub(super) services: Vec<Service>,
}

/// The load balancers of a run that ends at `end`.
pub(super) fn of_run(scenario: &Scenario, policy: &PolicyVariant, end: SimTime) -> Balancers {
    let mut known = in_front(&policy.manifests);
    let mut all = Vec::new();
    change(&mut all, SimTime::ZERO, known.load_balancers());
    let applied = scenario.timeline.iter().filter_map(|timed| Some((timed.at, timed.action.applied()?)));
    let mut applied: Vec<_> = applied.filter(|own| own.0 < end).collect();
    applied.sort_by_key(|own| own.0);
    for (at, newer) in applied {
        known.apply(in_front(newer));
        change(&mut all, at, known.load_balancers());
    }
    // Steps of one instant are one change.
    all.retain(|own: &Balancer| own.to != Some(own.from));
    Balancers { all, services: known.services }
}

/// The objects that say which load balancers there are.
fn in_front(manifests: &Manifests) -> Manifests {
    Manifests {
        services: manifests.services.clone(),
        ingresses: manifests.ingresses.clone(),
        ingress_classes: manifests.ingress_classes.clone(),
        deployments: manifests.deployments.clone(),
        ..Manifests::default()
    }
}

/// From `at` on there are those that are called for then: of another kind is another one.
fn change(all: &mut Vec<Balancer>, at: SimTime, called_for: Vec<LoadBalancer>) {
    let is_same = |own: &Balancer, new: &LoadBalancer| own.kind == new.kind && own.caller == new.caller;
    for own in all.iter_mut().filter(|own| own.to.is_none()) {
        if !called_for.iter().any(|new| is_same(own, new)) {
            own.to = Some(at);
        }
    }
    for new in called_for {
        match all.iter_mut().find(|own| own.to.is_none() && is_same(own, &new)) {
            Some(own) => own.services = new.services,
            None => {
                let LoadBalancer { kind, caller, services } = new;
                all.push(Balancer { kind, caller, services, from: at, to: None });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Balancer, change};
    use crate::domain::workload::ObjectName;
    use crate::domain::{SimDuration, SimTime, Symbol};
    use crate::manifests::BalancerKind::{Application, Classic, Network};
    use crate::manifests::{BalancerCaller, BalancerKind, LoadBalancer};

    fn name(text: &str) -> ObjectName {
        ObjectName { namespace: Symbol::new("shop"), name: Symbol::new(text) }
    }

    fn service(kind: BalancerKind, text: &str) -> LoadBalancer {
        LoadBalancer { kind, caller: BalancerCaller::Service(name(text)), services: vec![name(text)] }
    }

    fn at(seconds: i64) -> SimTime {
        SimTime::ZERO + SimDuration::from_secs(seconds)
    }

    #[test]
    fn each_is_there_from_when_it_is_called_for_until_it_is_not() {
        let mut all = Vec::new();
        let group = |services: &[&str]| LoadBalancer {
            kind: Application,
            caller: BalancerCaller::Group(Symbol::new("shop")),
            services: services.iter().map(|own| name(own)).collect(),
        };
        change(&mut all, at(0), vec![service(Classic, "web"), group(&["docs"])]);
        change(&mut all, at(10), vec![service(Classic, "web"), service(Network, "api"), group(&["docs", "help"])]);
        change(&mut all, at(20), vec![service(Network, "web"), service(Network, "api"), group(&["docs", "help"])]);
        let told = |own: &Balancer| (own.kind, own.services.len(), own.from.as_secs(), own.to.map(SimTime::as_secs));
        assert_eq!(
            all.iter().map(told).collect::<Vec<_>>(),
            [(Classic, 1, 0, Some(20)), (Application, 2, 0, None), (Network, 1, 10, None), (Network, 1, 20, None)]
        );
    }
}
