//! What new nodes offer of groups and NodePools of which a dump shows some, and of groups whose tags promise devices.

use nodecast::domain::SimTime;
use nodecast::simulation::Outcome;

use super::{NODE_GROUP, OF_GROUP, OF_POOL, POOL, cluster, deployment, node, outcome};

const AUTOSCALER: &str = "policies: [{ name: own, autoscaler: cluster-autoscaler }]\n";

/// A node of a dump whose device plugin offers so many devices, and whose kubelet keeps more of the machine than usual.
fn shared(name: &str, labels: &str, devices: u32) -> String {
    let node = node(name, labels, 20);
    let node = node.replace("pods: \"58\"", &format!("pods: \"58\", example.com/slot: \"{devices}\""));
    node.replace("cpu: 3920m", "cpu: 2900m")
}

/// Pods that take a device each.
fn takers(replicas: u32, milli: u32) -> String {
    let requests = format!("cpu: {milli}m, memory: 100Mi, example.com/slot: 1");
    deployment("web", replicas)
        .replace("requests: {cpu: 250m, memory: 900Mi}", &format!("limits: {{{requests}}}, requests: {{{requests}}}"))
}

/// How many nodes there were, and how many pods of the Deployment have never found one.
fn came_to(outcome: &Outcome) -> (usize, usize) {
    let waits = outcome.record.pods.iter().filter(|pod| pod.scheduled.is_none()).count();
    (outcome.record.nodes.len(), waits)
}

#[test]
fn new_group_nodes_match_dumped_nodes() {
    let group = NODE_GROUP.replace("desired: 2", "desired: 1");
    let run = |manifests: &str| {
        let dump = shared("s1", OF_GROUP, 4);
        came_to(&outcome(&cluster(manifests, &dump, &format!("{group}{AUTOSCALER}")), "scenario.yaml"))
    };
    assert_eq!(run(&takers(8, 100)), (2, 0), "four devices on each");
    // Two of 1400m fit 2900m, and not three of 1000m.
    assert_eq!(run(&takers(4, 1_400)), (2, 0));
    assert_eq!(run(&takers(6, 1_000)), (3, 0));
}

/// EC2 says one GPU of the type, and the nodes of the dump share theirs.
#[test]
fn first_iteration_uses_dumped_nodes() {
    let make = |text: String| text.replace("example.com/slot", "nvidia.com/gpu").replace("m5.xlarge", "g4dn.xlarge");
    let group = make(NODE_GROUP.replace("desired: 2", "desired: 1"));
    for controllers in ["", "controller_time: none\n"] {
        let dump = make(shared("s1", OF_GROUP, 4));
        let place = cluster(&make(takers(8, 100)), &dump, &format!("{controllers}{group}{AUTOSCALER}"));
        assert_eq!(came_to(&outcome(&place, "scenario.yaml")), (2, 0), "{controllers}");
    }
}

#[test]
fn new_pool_nodes_match_dumped_nodes() {
    // Karpenter knows nothing of the devices: what waits for none makes it launch, and the others find their place there.
    let manifests = POOL.to_owned() + &takers(8, 100) + &deployment("api", 12).replace("cpu: 250m", "cpu: 1000m");
    let dump = shared("p1", &OF_POOL.replace("m5.xlarge", "m6i.xlarge"), 4) + &shared("p2", OF_POOL, 4);
    let place = cluster(&manifests, &dump, "policies: [{ name: own, autoscaler: karpenter }]\n");
    let outcome = outcome(&place, "scenario.yaml");
    let launched = outcome.record.nodes.iter().filter(|node| node.registered.is_some_and(|at| at > SimTime::ZERO));
    let offers: Vec<i64> = launched.map(|node| node.allocatable.cpu_milli()).collect();
    assert!(!offers.is_empty() && offers.iter().all(|&cpu| cpu == 2_900), "{offers:?}");
}

#[test]
fn group_nodes_have_devices_from_tags() {
    let tags = "tags: { k8s.io/cluster-autoscaler/node-template/resources/example.com/slot: \"2\" }";
    let group = |more: &str| {
        format!(
            "nodeGroups:\n  - {{ name: slots, managed: true, instanceTypes: [m5.xlarge], min: 0, desired: 0, max: 4, {more} }}\n"
        )
    };
    let run = |more: &str| {
        let place = cluster(&takers(4, 100), "", &format!("{}{AUTOSCALER}", group(more)));
        let text = std::fs::read_to_string(place.path("scenario.yaml")).unwrap().replace("initial: dump.yaml\n", "");
        place.put("scenario.yaml", &text);
        came_to(&outcome(&place, "scenario.yaml"))
    };
    assert_eq!(run(tags), (2, 0));
    assert_eq!(run("maxPods: 58"), (0, 4), "nobody promises any");
}
