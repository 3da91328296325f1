//! Karpenter's machine driven by hand, as a controller would: a cluster, a list of timers and a cloud.

use nodecast_karpenter::instance_types::{ProviderSettings, types_of_pools};
use nodecast_karpenter::machine::{
    Action, Bare, Input, Karpenter, LaunchAnswer, LaunchedInstance, OfferingError, Settings, Timer,
};
use nodecast_karpenter::selection::LaunchRequest;
use nodecast_manifests::pod_from_json;
use nodecast_model::cluster::{Cluster, NewWorkload, WorkloadKind};
use nodecast_model::domain::workload::ObjectName;
use nodecast_model::domain::{
    KarpenterVersion, KubernetesVersion, LabelSelector, NodeClass, NodePool, SimTime, Symbol,
};
use nodecast_prices::{Catalog, Region};
use serde_json::json;
use std::sync::Arc;

struct Controller {
    karpenter: Karpenter,
    cluster: Cluster,
    outside: Bare,
    region: Arc<Region>,
    timers: Vec<(SimTime, Timer)>,
    calls: usize,
    story: Vec<String>,
}

// The forty lines of a driver: the last of them is that of `wake`.
impl Controller {
    fn tell(&mut self, now: SimTime, input: Input<'_>) {
        if let Some(as_of) = self.karpenter.prices_due(now) {
            let listed = |name| Some(self.region.instance_type(name)?.on_demand?.rate);
            self.karpenter.read_prices(as_of, |name, _| listed(name));
        }
        for action in self.karpenter.step(now, &self.cluster, &self.outside, input) {
            match action {
                Action::Wake(at, timer) => {
                    self.timers.retain(|(_, before)| (timer, *before) != (Timer::BatchClosed, Timer::BatchClosed));
                    self.timers.push((at, timer));
                }
                Action::Next(stage) => self.tell(now, Input::Next(stage)),
                Action::CreateClaim(claim) => {
                    self.story.push(format!("a claim with {} types to choose from", claim.types));
                    let node = self.cluster.add_node(claim.node, now);
                    self.tell(now, Input::ClaimCreated(node));
                }
                Action::Launch { claim, called, .. } => self.timers.push((called, Timer::Launch(claim))),
                Action::CreateFleet(node, call) => {
                    self.calls += 1;
                    self.tell(now, Input::LaunchAnswered(node, Ok(&answer(&call.request, self.calls > 1))));
                }
                Action::Launched(node, launched) => {
                    self.story.push(format!("an {} instance", launched.capacity_type));
                    self.cluster.launch_node(node, &launched.labels, launched.capacity, launched.allocatable);
                }
                Action::DropClaim(node) => self.cluster.remove_node(node),
                other => self.story.push(format!("{other:?}")),
            }
        }
    }

    /// Lets the next timer fire.
    fn wake(&mut self) {
        let first = (0..self.timers.len()).min_by_key(|&at| self.timers[at].0).unwrap();
        let (now, timer) = self.timers.remove(first);
        self.tell(now, Input::Wake(timer));
    }
}

/// What EC2 says to a request: it has an instance from the first of the pools asked for, or no capacity in any.
fn answer(request: &LaunchRequest, has_capacity: bool) -> LaunchAnswer {
    let first = request.overrides[0];
    let (instance_type, zone, capacity_type) = (first.instance_type, first.zone, request.capacity_type);
    let instance = LaunchedInstance { id: 7, instance_type, zone, capacity_type, reservation: None };
    let errors = request.overrides.iter().map(|wanted| OfferingError {
        code: "InsufficientInstanceCapacity",
        instance_type: wanted.instance_type,
        zone: wanted.zone,
        capacity_type: None,
        reservation_full: false,
    });
    if has_capacity {
        LaunchAnswer { instance: Some(instance), errors: Vec::new() }
    } else {
        LaunchAnswer { instance: None, errors: errors.collect() }
    }
}

#[test]
fn failed_launch_produces_another_claim() {
    let region = Catalog::embedded().unwrap().region("eu-west-1").unwrap();
    let (class, release) = (NodeClass::named("default"), KarpenterVersion::V1_14);
    let pools = vec![NodePool { node_class: class.name, ..NodePool::named("default") }];
    let types = types_of_pools(&region, &region, &[class], &pools, ProviderSettings::for_version(release));
    let karpenter = Karpenter::new(Settings::new(release, KubernetesVersion::default()), pools, types);
    let mut cluster = Cluster::default();
    let pod = pod_from_json(&json!({"spec": {"containers": [{"resources": {"requests": {"cpu": "3"}}}]}})).unwrap();
    let name = ObjectName { namespace: Symbol::new("default"), name: Symbol::new("web") };
    let (kind, selector) = (WorkloadKind::Deployment, LabelSelector::default());
    let workload = cluster.add_workload(NewWorkload { name, kind, selector, template: pod.spec.into(), replicas: 1 });
    let pod = cluster.create_pod(workload, 0, None, SimTime::ZERO);
    cluster.mark_unschedulable(pod);

    let (outside, timers, story) = (Bare::default(), Vec::new(), Vec::new());
    let mut controller = Controller { karpenter, cluster, outside, region, timers, calls: 0, story };
    controller.tell(SimTime::ZERO, Input::Begin);
    controller.tell(SimTime::ZERO, Input::PodUnschedulable(pod));
    while controller.calls < 2 {
        controller.wake();
    }
    insta::assert_snapshot!(controller.story.join("\n"));
}
