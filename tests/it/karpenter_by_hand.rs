//! Karpenter's machine driven by hand, as a controller would: a cluster, a queue of timers and a cloud in a few lines.

use std::collections::BTreeMap;

use nodecast::catalog::Catalog;
use nodecast::cluster::{Cluster, NewWorkload, WorkloadKind};
use nodecast::domain::workload::ObjectName;
use nodecast::domain::{
    KarpenterVersion, KubernetesVersion, LabelSelector, NodeClass, NodePool, PodId, SimTime, Symbol,
};
use nodecast::policy::budgets::{BudgetStatus, Protections};
use nodecast::policy::instance_types::{ProviderSettings, types_of_pools};
use nodecast::policy::karpenter::{
    Action, Input, Karpenter, LaunchAnswer, LaunchedInstance, OfferingError, Outside, Settings, Timer,
};
use nodecast::scenario::manifests::pod_from_json;
use serde_json::json;

/// A cluster without budgets, volumes and chance.
#[derive(Debug, Default)]
struct Plain(Protections);

impl Outside for Plain {
    fn budget_statuses(&self) -> Vec<BudgetStatus> {
        Vec::new()
    }
    fn protections(&self) -> &Protections {
        &self.0
    }
    fn control_plane(&self) -> KubernetesVersion {
        KubernetesVersion::default()
    }
}

/// The first fleet request finds no capacity, the second does.
fn answer(calls: usize, action: &Action) -> LaunchAnswer {
    let Action::CreateFleet(_, call) = action else { panic!("{action:?} is no request") };
    let error = |wanted: &nodecast::policy::selection::Override| OfferingError {
        code: "InsufficientInstanceCapacity",
        instance_type: wanted.instance_type,
        zone: wanted.zone,
        capacity_type: None,
        reservation_full: false,
    };
    let (first, capacity_type) = (call.request.overrides[0], call.request.capacity_type);
    let (instance_type, zone) = (first.instance_type, first.zone);
    let instance = LaunchedInstance { id: 7, instance_type, zone, capacity_type, reservation: None };
    match calls {
        1 => LaunchAnswer { instance: None, errors: call.request.overrides.iter().map(error).collect() },
        _ => LaunchAnswer { instance: Some(instance), errors: Vec::new() },
    }
}

#[test]
fn pods_appear_claims_come_out_an_error_goes_in_and_another_claim_comes_out() {
    let region = Catalog::embedded().unwrap().region("eu-west-1").unwrap();
    let (pool, class) = (NodePool::named("default"), NodeClass::named("default"));
    let (pools, release) = (vec![NodePool { node_class: class.name, ..pool }], KarpenterVersion::V1_14);
    let types = types_of_pools(&region, &region, &[class], &pools, ProviderSettings::of(release));
    let mut karpenter = Karpenter::new(Settings::of(release, KubernetesVersion::default()), pools, types);
    let (mut cluster, mut timers, outside) =
        (Cluster::default(), BTreeMap::<(SimTime, usize), Timer>::new(), Plain::default());
    let (mut story, mut calls, mut window) = (Vec::new(), 0, None);
    let pod = pod_from_json(&json!({"spec": {"containers": [{"resources": {"requests": {"cpu": "3"}}}]}})).unwrap();
    let name = ObjectName { namespace: Symbol::new("default"), name: Symbol::new("web") };
    let (kind, selector) = (WorkloadKind::Deployment, LabelSelector::default());
    let workload = cluster.add_workload(NewWorkload { name, kind, selector, template: pod.spec.into(), replicas: 1 });
    let pod: PodId = cluster.create_pod(workload, 0, None, SimTime::ZERO);
    cluster.mark_unschedulable(pod);

    // Forty lines from here to the end of the loop are the driver.
    let mut now = SimTime::ZERO;
    let mut inputs = vec![Input::Begin, Input::PodUnschedulable(pod)];
    inputs.reverse();
    while calls < 2 || !inputs.is_empty() {
        let input = inputs.pop().unwrap_or_else(|| {
            let ((at, _), timer) = timers.pop_first().unwrap();
            now = at;
            Input::Wake(timer)
        });
        if let Some(as_of) = karpenter.prices_due(now) {
            let on_demand = |name| Some(region.instance_type(name)?.on_demand?.rate);
            karpenter.read_prices(as_of, |name, own| {
                (own.capacity_type.as_str() == "on-demand").then(|| on_demand(name))?
            });
        }
        let mut todo: Vec<Action> = karpenter.step(now, &cluster, &outside, input);
        todo.reverse();
        while let Some(action) = todo.pop() {
            let mut answered = None;
            match &action {
                Action::Wake(at, timer) => {
                    let key = (*at, timers.len());
                    timers.insert(key, *timer);
                    if *timer == Timer::BatchClosed {
                        window.replace(key).map(|before| timers.remove(&before));
                    }
                }
                Action::Next(stage) => answered = Some(Input::Next(*stage)),
                Action::CreateClaim(claim) => {
                    story.push(format!("a claim of {} types", claim.types));
                    answered = Some(Input::ClaimCreated(cluster.add_node(claim.node.clone(), now)));
                }
                Action::Launch { claim, called, .. } => {
                    timers.insert((*called, timers.len()), Timer::Launch(*claim));
                }
                Action::CreateFleet(..) => calls += 1,
                Action::Launched(node, own) => {
                    story.push(format!("an {} instance", own.capacity_type));
                    cluster.launch_node(*node, &own.labels, own.capacity.clone(), own.allocatable.clone());
                }
                Action::DropClaim(node) => cluster.remove_node(*node),
                other => story.push(format!("{other:?}")),
            }
            let reply = matches!(action, Action::CreateFleet(..)).then(|| answer(calls, &action));
            if let (Action::CreateFleet(node, _), Some(reply)) = (&action, &reply) {
                answered = Some(Input::LaunchAnswered(*node, Ok(reply)));
            }
            if let Some(input) = answered {
                todo.extend(karpenter.step(now, &cluster, &outside, input).into_iter().rev());
            }
        }
    }
    insta::assert_snapshot!(story.join("\n"));
}
