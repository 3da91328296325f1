//! A cluster as it stands, with which the case begins: nodes, NodeClaims and pods as `kubectl get -o yaml` prints them.

use super::Draft;
use crate::case::{Part, Section};

/// What a node of the dump offers: milli-CPU and MiB.
const OFFERED: (u64, u64) = (3_920, 14_700);
/// What is left free for the pods of DaemonSets.
const LEFT: (u64, u64) = (320, 700);

/// A node on its way into the dump.
struct DumpNode {
    name: String,
    /// What its pods leave.
    free: (u64, u64),
    text: String,
}

/// Some nodes and the pods on them.
pub fn part(draft: &mut Draft) -> Part {
    let count = draft.random.between(1, 8);
    let mut nodes: Vec<DumpNode> = (0..count).map(|number| node(draft, number)).collect();
    let mut pods = Vec::new();
    for place in 0..draft.services.len() {
        // Fewer than there are to be, as many, or some too many.
        let most = draft.services[place].replicas + 2;
        for number in 0..draft.random.between(0, most) {
            let (cpu, memory) = draft.services[place].requests;
            let first = draft.random.between(0, count - 1);
            let order = (0..count).map(|index| ((index + first) % count) as usize);
            let holds = |number: &usize| nodes[*number].free.0 >= cpu && nodes[*number].free.1 >= memory;
            let Some(order) = order.into_iter().find(holds) else { break };
            nodes[order].free = (nodes[order].free.0 - cpu, nodes[order].free.1 - memory);
            pods.push(pod(draft, place, number, &nodes[order].name));
        }
    }
    let stranger = draft.random.happens(20);
    if stranger {
        let text = "apiVersion: v1
kind: Pod
metadata: { name: alone, namespace: default, creationTimestamp: \"2026-06-09T20:00:00Z\" }
spec: { nodeName: ip-10-0-0-1, containers: [{ name: own, image: own, resources: { requests: { cpu: 20m, memory: 32Mi } } }] }
status: { phase: Running, conditions: [{ type: Ready, status: \"True\" }] }
";
        pods.push(text.to_owned());
    }
    let name = format!("a dump of {count} nodes and {} pods", pods.len());
    let texts = nodes.into_iter().map(|node| node.text).chain(pods).map(|text| (Section::Dump, text));
    let part = Part::new(name, texts.collect());
    // A node without an owner here stays as it is.
    if draft.fleet.is_none() || stranger { part.holding_up() } else { part }
}

fn node(draft: &mut Draft, number: u64) -> DumpNode {
    let name = format!("ip-10-0-0-{}", number + 1);
    let zone = draft.random.pick(&["us-east-1a", "us-east-1b", "us-east-1c"]);
    let hours = draft.random.between(1, 47);
    let made = format!("2026-06-{:02}T{:02}:30:00Z", 9 - hours / 24, 23 - hours % 24);
    let cordoned = if draft.random.happens(10) { "unschedulable: true, " } else { "" };
    let claimed = draft.random.happens(80);
    // Of nobody who is known, where nobody has such nodes.
    let (owner, machine, capacity, of_karpenter) = match &draft.fleet {
        Some(fleet) => {
            let (key, value) = fleet.label;
            (format!("{key}: {value}"), fleet.machine, fleet.capacity, fleet.pool.is_some())
        }
        None => ("team: others".to_owned(), ("m5.xlarge", "amd64"), "karpenter.sh/capacity-type: on-demand", false),
    };
    let owner = if of_karpenter {
        format!("{owner}, karpenter.sh/registered: \"true\", karpenter.sh/initialized: \"true\"")
    } else {
        owner
    };
    let (kind, arch) = machine;
    let mut text = format!(
        "apiVersion: v1
kind: Node
metadata:
  name: {name}
  creationTimestamp: \"{made}\"
  labels: {{ {owner}, {capacity}, node.kubernetes.io/instance-type: {kind}, kubernetes.io/arch: {arch}, kubernetes.io/os: linux, kubernetes.io/hostname: {name}, topology.kubernetes.io/region: us-east-1, topology.kubernetes.io/zone: {zone} }}
spec: {{ {cordoned}providerID: \"aws:///{zone}/i-0000000000000000{number}\" }}
status:
  capacity: {{ cpu: \"4\", memory: 16000Mi, pods: \"58\" }}
  allocatable: {{ cpu: {}m, memory: {}Mi, pods: \"58\" }}
  conditions: [{{ type: Ready, status: \"True\", lastHeartbeatTime: \"2026-06-10T08:00:00Z\" }}]
",
        OFFERED.0, OFFERED.1
    );
    if of_karpenter && claimed {
        text.push_str(&format!(
            "---
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {{ name: default-x{number}, creationTimestamp: \"{made}\", labels: {{ karpenter.sh/nodepool: default }} }}
status: {{ nodeName: {name}, conditions: [{{ type: Initialized, status: \"True\", lastTransitionTime: \"{made}\" }}] }}
"
        ));
    }
    DumpNode { name, free: (OFFERED.0 - LEFT.0, OFFERED.1 - LEFT.1), text }
}

fn pod(draft: &mut Draft, place: usize, number: u64, node: &str) -> String {
    let ready = draft.random.happens(85);
    let service = &draft.services[place];
    let (name, (cpu, memory)) = (&service.name, service.requests);
    format!(
        "apiVersion: v1
kind: Pod
metadata:
  name: {name}-5f4d7-{number:03}
  namespace: shop
  creationTimestamp: \"2026-06-10T07:20:00Z\"
  labels: {{ app: {name}, pod-template-hash: 5f4d7 }}
  ownerReferences: [{{ apiVersion: apps/v1, kind: ReplicaSet, name: {name}-5f4d7, uid: u, controller: true }}]
spec:
  nodeName: {node}
  containers: [{{ name: main, image: {name}, resources: {{ requests: {{ cpu: {cpu}m, memory: {memory}Mi }} }} }}]
status: {{ phase: {}, conditions: [{{ type: Ready, status: \"{}\" }}] }}
",
        if ready { "Running" } else { "Pending" },
        if ready { "True" } else { "False" }
    )
}
