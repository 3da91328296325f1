//! The load balancers that Services and Ingresses call for: those of the manifests from the start, those that the timeline applies from
//! then on, and each until what called for it does not any more. What is taken away and applied back in one instant was never away.
//!
//! What must not live here: what they cost (`ec2`), what a manifest calls for (`manifests`).

use crate::domain::BalancerKind;
use crate::domain::SimTime;
use crate::domain::which::{By, Which};
use crate::domain::workload::ObjectName;
use crate::manifests::{BalancerCaller, LoadBalancer, Manifests, Service, StandingBalancers};
use nodecast_settings::{Action, PolicyVariant, Scenario, TimedAction};

/// A load balancer of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Balancer {
    /// What it is.
    pub(super) kind: BalancerKind,
    /// What calls for it.
    caller: BalancerCaller,
    /// Since when it is there.
    pub(super) from: SimTime,
    /// Until when; `None` to the end of the run.
    pub(super) to: Option<SimTime>,
    /// The Services behind it, since when they are as they are.
    phases: Vec<(SimTime, Vec<Service>)>,
}

impl Balancer {
    /// The Services behind it, from when on and until when, in a run that ends at `end`.
    pub(super) fn phases(&self, end: SimTime) -> impl Iterator<Item = (SimTime, SimTime, &[Service])> {
        let ends = self.phases.iter().skip(1).map(|phase| phase.0).chain([self.to.unwrap_or(end)]);
        self.phases.iter().zip(ends).map(|((from, services), to)| (*from, to, &services[..]))
    }

    /// These Services are behind it from `at` on.
    fn serve(&mut self, at: SimTime, services: Vec<Service>) {
        match self.phases.last_mut() {
            Some((_, before)) if *before == services => {}
            Some((from, before)) if *from == at => *before = services,
            _ => self.phases.push((at, services)),
        }
    }
}

/// The load balancers of a run that ends at `end`, in the order in which they came. Steps of one instant are one change.
pub(super) fn of_run(scenario: &Scenario, policy: &PolicyVariant, end: SimTime) -> Vec<Balancer> {
    let mut all = Vec::new();
    walk(scenario, policy, end, |at, standing, known| {
        change(&mut all, at, standing.follow(known), &known.services);
    });
    all.retain(|balancer: &Balancer| balancer.to != Some(balancer.from));
    all
}

/// The Services of which a step of the timeline asks in vain for another kind of load balancer, with its time.
pub(super) fn unsupported_lb_requests(scenario: &Scenario, policy: &PolicyVariant) -> Vec<(SimTime, ObjectName)> {
    let mut found = Vec::new();
    if scenario.timeline.iter().all(|step| step.action.applied().is_none_or(|newer| newer.services.is_empty())) {
        return found;
    }
    walk(scenario, policy, SimTime::ZERO + scenario.duration, |at, standing, known| {
        let in_vain = known.services.iter().filter(|service| standing.asks_in_vain(service));
        found.extend(in_vain.map(|vain| (at, vain.name)));
        standing.follow(known);
    });
    found
}

/// Tells `follow` of what stands and of what the cluster then holds: at the start, and at each instant of the timeline before `end` that
/// changes what load balancers stand for.
fn walk(
    scenario: &Scenario,
    policy: &PolicyVariant,
    end: SimTime,
    mut follow: impl FnMut(SimTime, &mut StandingBalancers, &Manifests),
) {
    let mut known = policy.manifests.in_front();
    let mut standing = StandingBalancers::of_cluster(policy.auto_mode.is_some());
    follow(SimTime::ZERO, &mut standing, &known);
    let mut steps: Vec<&TimedAction> = scenario.timeline.iter().filter(|item| item.at < end).collect();
    steps.sort_by_key(|step| step.at);
    for together in steps.chunk_by(|one, next| one.at == next.at) {
        let mut changes = false;
        for step in together {
            changes |= take(&step.action, &mut known, &mut standing);
        }
        if changes {
            follow(together[0].at, &mut standing, &known);
        }
    }
}

/// Does to the objects what a step does; whether that may change which load balancers there are.
fn take(action: &Action, known: &mut Manifests, standing: &mut StandingBalancers) -> bool {
    match action {
        Action::Apply(newer) => known.apply(newer.in_front()),
        Action::Delete { kind, which: Which { by: By::Name(name), .. }, .. } => {
            return standing.delete(known, *kind, *name);
        }
        _ => return false,
    }
    true
}

/// From `at` on there are those that are called for then, and these Services: of another kind is another one.
fn change(all: &mut Vec<Balancer>, at: SimTime, called_for: Vec<LoadBalancer>, services: &[Service]) {
    let is_same = |balancer: &Balancer, new: &LoadBalancer| balancer.kind == new.kind && balancer.caller == new.caller;
    for balancer in all.iter_mut().filter(|balancer| balancer.to.is_none()) {
        if !called_for.iter().any(|new| is_same(balancer, new)) {
            balancer.to = Some(at);
        }
    }
    for new in called_for {
        let matches = |name: &ObjectName| services.iter().find(|service| service.name == *name).cloned();
        let behind: Vec<Service> = new.services.iter().filter_map(matches).collect();
        match all.iter_mut().find(|balancer| balancer.to.is_none() && is_same(balancer, &new)) {
            Some(balancer) => balancer.serve(at, behind),
            None => {
                let LoadBalancer { kind, caller, .. } = new;
                all.push(Balancer { kind, caller, from: at, to: None, phases: vec![(at, behind)] });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Balancer, change};
    use crate::domain::BalancerKind;
    use crate::domain::BalancerKind::{Application, Classic, Network};
    use crate::domain::workload::ObjectName;
    use crate::domain::{Labels, SimDuration, SimTime, Symbol};
    use crate::manifests::{BalancerCaller, BalancerMaker, LoadBalancer, Service};

    fn name(text: &str) -> ObjectName {
        ObjectName { namespace: Symbol::new("shop"), name: Symbol::new(text) }
    }

    fn service(kind: BalancerKind, text: &str) -> LoadBalancer {
        let maker = BalancerMaker::CloudProvider;
        LoadBalancer { kind, maker, caller: BalancerCaller::Service(name(text)), services: vec![name(text)] }
    }

    fn group(services: &[&str]) -> LoadBalancer {
        LoadBalancer {
            kind: Application,
            maker: BalancerMaker::Controller,
            caller: BalancerCaller::Group(Symbol::new("shop")),
            services: services.iter().map(|service| name(service)).collect(),
        }
    }

    /// Services with the application that each selects.
    fn services(selected: &[(&str, &str)]) -> Vec<Service> {
        let service = |(text, app): &(&str, &str)| Service {
            name: name(text),
            selector: Labels::new().with("app", Symbol::new(app)),
            balancer: None,
            keeps_zone: false,
            is_headless: false,
        };
        selected.iter().map(service).collect()
    }

    fn at(seconds: i64) -> SimTime {
        SimTime::ZERO + SimDuration::from_secs(seconds)
    }

    #[test]
    fn load_balancer_exists_while_requested() {
        let (mut all, known) = (Vec::new(), services(&[("web", "web"), ("api", "api"), ("docs", "docs")]));
        change(&mut all, at(0), vec![service(Classic, "web"), group(&["docs"])], &known);
        change(&mut all, at(10), vec![service(Classic, "web"), service(Network, "api"), group(&["docs"])], &known);
        change(&mut all, at(20), vec![service(Network, "web"), service(Network, "api"), group(&["docs"])], &known);
        let told = |balancer: &Balancer| (balancer.kind, balancer.from.as_secs(), balancer.to.map(SimTime::as_secs));
        assert_eq!(
            all.iter().map(told).collect::<Vec<_>>(),
            [(Classic, 0, Some(20)), (Application, 0, None), (Network, 10, None), (Network, 20, None)]
        );
    }

    #[test]
    fn load_balancer_serves_services_until_they_change() {
        let mut all = Vec::new();
        let told = |balancer: &Balancer| -> Vec<(i64, i64, Vec<String>)> {
            let phases = balancer.phases(at(60)).map(|(from, to, services)| {
                let app = |service: &Service| {
                    service.selector.get(Symbol::new("app")).map_or("", |app| app.as_str()).to_owned()
                };
                (from.as_secs(), to.as_secs(), services.iter().map(app).collect())
            });
            phases.collect()
        };
        change(&mut all, at(0), vec![group(&["docs"])], &services(&[("docs", "docs"), ("help", "help")]));
        // Nothing changes; another joins; and one selects others, in two steps of one instant.
        change(&mut all, at(10), vec![group(&["docs"])], &services(&[("docs", "docs"), ("help", "help")]));
        change(&mut all, at(20), vec![group(&["docs", "help"])], &services(&[("docs", "docs"), ("help", "help")]));
        change(&mut all, at(30), vec![group(&["docs", "help"])], &services(&[("docs", "old"), ("help", "help")]));
        change(&mut all, at(30), vec![group(&["docs", "help"])], &services(&[("docs", "new"), ("help", "help")]));
        let of = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let phases = [(0, 20, of(&["docs"])), (20, 30, of(&["docs", "help"])), (30, 60, of(&["new", "help"]))];
        assert_eq!(told(&all[0]), phases);
        change(&mut all, at(50), vec![], &services(&[]));
        assert_eq!(told(&all[0])[2], (30, 50, of(&["new", "help"])));
    }
}
