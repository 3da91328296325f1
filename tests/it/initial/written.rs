//! A simulated cluster as `kubectl get -o yaml` would print it: nodes, NodeClaims and pods, with what their status says.

use jiff::Timestamp;
use nodecast::actors::Components;
use nodecast::cluster::{NodeOrigin, NodePhase, WorkloadKind};
use nodecast::domain::{NodeId, Resources, SimTime};
use serde_json::{Value, json};

/// The objects of everything that runs at `now`; pods and nodes on their way out are left out.
pub(super) fn objects(components: &Components<'_>, now: SimTime) -> Vec<Value> {
    let world = &components.sim.world;
    let start = components.sim.setup.scenario.start;
    let time = |at: SimTime| {
        let micros = start.as_microsecond() + at.as_micros();
        Timestamp::from_second(micros.div_euclid(1_000_000)).unwrap().to_string()
    };
    let mut objects = Vec::new();
    for &id in world.live_nodes() {
        let node = world.node(id);
        if node.phase != NodePhase::Registered || node.deletion_requested.is_some() {
            continue;
        }
        let labels: serde_json::Map<String, Value> =
            node.labels.iter().map(|(key, value)| (key.to_string(), json!(value.as_str()))).collect();
        let mut labels = Value::Object(labels);
        labels["kubernetes.io/hostname"] = json!(node.api_name());
        if matches!(node.origin, NodeOrigin::NodePool(_)) && node.initialized {
            labels["karpenter.sh/initialized"] = json!("true");
            labels["karpenter.sh/registered"] = json!("true");
        }
        objects.push(json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": node.api_name(), "labels": labels, "creationTimestamp": time(node.created)},
            "status": {
                "capacity": quantities(&node.capacity), "allocatable": quantities(&node.allocatable),
                "conditions": [{"type": "Ready", "status": if node.ready { "True" } else { "False" },
                                "lastHeartbeatTime": time(now)}],
            },
        }));
        let NodeOrigin::NodePool(_) = node.origin else { continue };
        let facts = &world.record().nodes[id.index()];
        let claim = node.claim_name();
        let mut status = json!({"nodeName": node.api_name(), "conditions": []});
        if let Some(at) = facts.initialized {
            status["conditions"] = json!([{"type": "Initialized", "status": "True", "lastTransitionTime": time(at)}]);
        }
        if let Some(at) = last_pod_event(components, id) {
            status["lastPodEventTime"] = json!(time(at));
        }
        objects.push(json!({
            "apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
            "metadata": {"name": claim, "creationTimestamp": time(node.created)}, "status": status,
        }));
    }
    objects.extend(pods(components, &time));
    objects
}

fn pods(components: &Components<'_>, time: &impl Fn(SimTime) -> String) -> Vec<Value> {
    let world = &components.sim.world;
    let live = world.workloads().flat_map(|(_, item)| item.pods.iter().copied());
    let mut pods = Vec::new();
    for id in live.filter(|&id| world.pod(id).is_active()) {
        let pod = world.pod(id);
        let owner = world.workload(pod.workload);
        let (kind, name) = match owner.kind {
            WorkloadKind::Deployment => ("ReplicaSet", format!("{}-5f4d7", owner.name.name)),
            kind => (kind.as_str(), owner.name.name.to_string()),
        };
        let Some(node) = pod.node else { continue };
        pods.push(json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": world.pod_name(id), "namespace": pod.namespace.as_str(), "creationTimestamp": time(pod.created),
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": "u", "controller": true}],
            },
            "spec": {
                "nodeName": world.node(node).api_name(),
                "containers": [{"name": "own", "image": "own", "resources": {"requests": quantities(&pod.requests)}}],
            },
            "status": {
                "phase": if pod.started.is_some() { "Running" } else { "Pending" },
                "conditions": [{"type": "Ready", "status": if pod.is_ready() { "True" } else { "False" }}],
            },
        }));
    }
    pods
}

/// When a pod that is no daemon last came to the node or began to leave it.
fn last_pod_event(components: &Components<'_>, node: NodeId) -> Option<SimTime> {
    let record = components.sim.world.record();
    let daemon = |pod: &nodecast::world::record::PodFacts| {
        record.workloads[pod.workload.index()].kind == WorkloadKind::DaemonSet
    };
    let this_pod = record.pods.iter().filter(|pod| pod.node == Some(node) && !daemon(pod));
    this_pod.flat_map(|pod| [pod.scheduled, pod.deletion_requested, pod.removed]).flatten().max()
}

/// Amounts as manifests have them.
fn quantities(amounts: &Resources) -> Value {
    let text = |name: &str, amount: i64| if name == "cpu" { format!("{amount}m") } else { amount.to_string() };
    let all = amounts.iter().filter(|(name, _)| name.0.as_str() != "pods" || amounts.pods() > 1);
    Value::Object(all.map(|(name, amount)| (name.to_string(), json!(text(name.0.as_str(), amount)))).collect())
}
