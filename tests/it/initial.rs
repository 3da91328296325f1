//! Runs that begin with the nodes and pods of a dump: what runs, stays.

mod examples;
mod explained;
mod foreign;
mod jobs;
mod leaving;
mod written;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use nodecast::catalog::Catalog;
use nodecast::cloud::BillItem;
use nodecast::domain::{NodeId, SimDuration, SimTime};
use nodecast::simulation::{Outcome, Simulation, resolve, run};
use nodecast::world::record::{EventKind, JobOutcomeKind};
use serde_json::Value;

use crate::cli::Place;

/// A NodePool with a budget, and its class.
const POOL: &str = "apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      expireAfter: 720h
      requirements:
        - {key: node.kubernetes.io/instance-type, operator: In, values: [m5.xlarge, m6i.xlarge]}
        - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
  disruption:
    consolidationPolicy: WhenEmptyOrUnderutilized
    consolidateAfter: 2m
    budgets: [{nodes: \"5%\"}]
---
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: default}
spec: {amiSelectorTerms: [{alias: al2023@latest}], role: nodes}
";
const DAEMONS: &str = "---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, namespace: kube-system}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec:
      tolerations: [{operator: Exists}]
      containers: [{name: agent, image: agent, resources: {requests: {cpu: 100m, memory: 64Mi}}}]
";
/// Pods of each Deployment of the large cluster, and how many Deployments there are.
const PODS: u32 = 100;
const DEPLOYMENTS: u32 = 30;

fn deployment(name: &str, replicas: u32) -> String {
    format!(
        "---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}, namespace: shop}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}}}
    spec: {{containers: [{{name: own, image: own, resources: {{requests: {{cpu: 250m, memory: 900Mi}}}}}}]}}
"
    )
}

fn budget(name: &str) -> String {
    format!(
        "---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {{name: {name}, namespace: shop}}
spec: {{maxUnavailable: 10%, selector: {{matchLabels: {{app: {name}}}}}}}
"
    )
}

fn outcome(place: &Place, file: &str) -> Outcome {
    let (scenario, _) = nodecast::scenario::load(&place.path(file)).unwrap();
    run(&scenario, &scenario.policies[0], Catalog::embedded().unwrap(), scenario.seed, &mut |_| {}).unwrap()
}

fn count(outcome: &Outcome, kind: EventKind) -> usize {
    outcome.record.events.iter().filter(|event| event.kind == kind).count()
}

/// What the large cluster does in a day: Deployments shrink and grow, and Karpenter consolidates within its budget.
fn large_cluster(place: &Place) {
    let mut manifests = POOL.to_owned() + DAEMONS;
    let mut timeline = String::new();
    for number in 0..DEPLOYMENTS {
        let name = format!("d{number:02}");
        manifests += &deployment(&name, PODS);
        if number % 2 == 0 {
            manifests += &budget(&name);
        }
        let (away, back) = (2 + number % 9, 13 + number % 7);
        let _ = write!(
            timeline,
            "  - {{ at: {away}h, scale: {{ workload: shop/{name}, replicas: 55 }} }}\n  - {{ at: {back}h{number}m, scale: {{ workload: shop/{name}, replicas: {PODS} }} }}\n"
        );
    }
    place.put("day/cluster.yaml", &manifests);
    place.put(
        "day/scenario.yaml",
        &format!("name: day\nregion: us-east-1\nduration: 25h\nmanifests: [cluster.yaml]\ntimeline:\n{timeline}"),
    );
}

/// Every pod of the dump is on its node from the first instant on, and the bill is that of the nodes.
fn every_pod_is_where_it_was(outcome: &Outcome, objects: &[Value]) {
    let found: BTreeMap<(String, SimTime), &str> = outcome
        .record
        .pods
        .iter()
        .filter_map(|pod| {
            let node = &outcome.record.nodes[pod.node?.index()];
            Some(((pod.name, pod.scheduled?), node.name.as_str()))
        })
        .collect();
    let mut pods = 0;
    for pod in objects.iter().filter(|object| object["kind"] == "Pod") {
        let name = pod["metadata"]["name"].as_str().unwrap();
        assert_eq!(found.get(&(name.to_owned(), SimTime::ZERO)).copied(), pod["spec"]["nodeName"].as_str(), "{name}");
        pods += 1;
    }
    assert!(pods > 0);
    let rates = outcome.record.nodes.iter().map(|node| node.rate.as_f64()).sum::<f64>();
    let hours = outcome.about.duration.as_secs_f64() / 3_600.0;
    let lines = outcome.bill.lines.iter().filter(|line| line.item == BillItem::Instance);
    let billed = lines.map(|line| line.amount.as_f64()).sum::<f64>();
    assert!((billed - rates * hours).abs() < 1e-6 * billed, "{billed} for {rates} an hour");
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn large_cluster_continues_from_end_of_day() {
    let place = Place::new();
    large_cluster(&place);
    let (scenario, _) = nodecast::scenario::load(&place.path("day/scenario.yaml")).unwrap();
    let setup = resolve(&scenario, &scenario.policies[0], Catalog::embedded().unwrap(), 1).unwrap().setup;
    let mut simulation = Simulation::new(&setup);
    let midnight = SimTime::ZERO + SimDuration::from_secs(86_400);
    simulation.step_until(midnight);
    let objects = written::objects(simulation.components(), midnight);
    let items: Vec<String> = objects.iter().map(ToString::to_string).collect();
    place.put("now/dump.yaml", &items.join("\n---\n"));
    place.put("now/cluster.yaml", &std::fs::read_to_string(place.path("day/cluster.yaml")).unwrap());
    place.put(
        "now/scenario.yaml",
        "name: now\nregion: us-east-1\nstart: 2026-01-02T00:00:00Z\nduration: 1h\nmanifests: [cluster.yaml]\ninitial: dump.yaml\n",
    );
    let before = simulation.components().sim.world.record().events.len();
    while simulation.step().is_some() {}
    let later = simulation.components().sim.world.record().events.since(before);
    let launched = |kind: EventKind| later.clone().filter(|event| event.kind == kind).count();
    let now = outcome(&place, "now/scenario.yaml");
    every_pod_is_where_it_was(&now, &objects);
    let found = count(&now, EventKind::NodeFound);
    assert!(found >= 190 && count(&now, EventKind::PodFound) >= 3_000 + found, "{found} nodes");
    for kind in [
        EventKind::PodCreated,
        EventKind::PodEvicted,
        EventKind::ClaimCreated,
        EventKind::NodeDisrupted,
        EventKind::PodUnschedulable,
    ] {
        assert_eq!(count(&now, kind), launched(kind), "{kind:?}, as where the day goes on");
        assert_eq!(count(&now, kind), 0, "{kind:?}");
    }
}

/// A node of a group or of a NodePool, as it was created so many days before the dump.
fn node(name: &str, labels: &str, days: u32) -> String {
    format!(
        "---
apiVersion: v1
kind: Node
metadata:
  name: {name}
  creationTimestamp: \"2026-10-{:02}T12:00:00Z\"
  labels: {{{labels}, topology.kubernetes.io/zone: us-east-1a, topology.kubernetes.io/region: us-east-1, kubernetes.io/os: linux, kubernetes.io/arch: amd64, kubernetes.io/hostname: {name}}}
status:
  capacity: {{cpu: \"4\", memory: 16Gi, pods: \"58\", ephemeral-storage: 20893676Ki}}
  allocatable: {{cpu: 3920m, memory: 15Gi, pods: \"58\"}}
  conditions: [{{type: Ready, status: \"True\", lastHeartbeatTime: \"2026-10-31T12:00:00Z\"}}]
",
        31 - days
    )
}

const OF_POOL: &str = "karpenter.sh/nodepool: general, karpenter.sh/capacity-type: on-demand, karpenter.sh/initialized: \"true\", node.kubernetes.io/instance-type: m5.xlarge";
const OF_GROUP: &str = "eks.amazonaws.com/nodegroup: system, eks.amazonaws.com/capacityType: ON_DEMAND, node.kubernetes.io/instance-type: m5.xlarge";

/// A pod on a node, of a controller: its kind and name, if any.
fn pod(name: &str, node: &str, controller: Option<(&str, &str)>, milli: u32) -> String {
    let owner = controller.map_or_else(String::new, |(kind, name)| {
        format!("  ownerReferences: [{{apiVersion: apps/v1, kind: {kind}, name: {name}, uid: u, controller: true}}]\n")
    });
    format!(
        "---
apiVersion: v1
kind: Pod
metadata:
  name: {name}
  namespace: shop
  creationTimestamp: \"2026-10-31T08:00:00Z\"
{owner}spec:
  nodeName: {node}
  containers: [{{name: own, image: own, resources: {{requests: {{cpu: {milli}m, memory: 900Mi}}}}}}]
status:
  phase: Running
  conditions: [{{type: Ready, status: \"True\"}}]
"
    )
}

/// A small cluster: manifests, a dump, and more keys of the scenario.
fn cluster(manifests: &str, dump: &str, more: &str) -> Place {
    let place = Place::new();
    place.put("cluster.yaml", manifests);
    place.put("dump.yaml", dump);
    let scenario = format!(
        "name: own\nregion: us-east-1\nstart: 2026-10-31T12:00:00Z\nduration: 1h\nmanifests: [cluster.yaml]\ninitial: dump.yaml\n{more}"
    );
    place.put("scenario.yaml", &scenario);
    place
}

/// Messages of the events of a kind, with the node and the pod that they are about.
fn told(outcome: &Outcome, kind: EventKind) -> Vec<String> {
    let this_event = outcome.record.events.iter().filter(|event| event.kind == kind);
    this_event
        .map(|event| {
            let node = event.node.map_or("", |node| outcome.record.nodes[node.index()].name.as_str());
            let pod = event.pod.and_then(|pod| outcome.record.pods.name(pod)).unwrap_or_default();
            format!("{node} {pod}: {}", event.message).trim().to_owned()
        })
        .collect()
}

const NODE_GROUP: &str =
    "nodeGroups:\n  - { name: system, managed: true, instanceTypes: [m5.xlarge], min: 1, desired: 2, max: 4 }\n";

#[test]
fn controllers_adopt_pods_and_create_missing_ones() {
    let stateful = "---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: shop}
spec:
  replicas: 3
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: own, image: own, resources: {requests: {cpu: 200m, memory: 900Mi}}}]}
";
    let cron = "---
apiVersion: batch/v1
kind: CronJob
metadata: {name: report, namespace: shop}
spec:
  schedule: \"0 3 * * *\"
  jobTemplate:
    spec:
      template:
        spec: {restartPolicy: Never, containers: [{name: own, image: own, resources: {requests: {cpu: 100m, memory: 900Mi}}}]}
";
    let pool = POOL.replace("consolidateAfter: 2m", "consolidateAfter: Never");
    let manifests = pool + DAEMONS + &deployment("web", 3) + stateful + cron;
    let dump = [
        node("n1", OF_POOL, 3),
        node("s1", OF_GROUP, 20),
        pod("web-a", "n1", Some(("ReplicaSet", "web-5f4d7")), 250),
        pod("web-b", "n1", Some(("ReplicaSet", "web-5f4d7")), 350),
        pod("db-0", "n1", Some(("StatefulSet", "db")), 200),
        pod("db-2", "s1", Some(("StatefulSet", "db")), 200),
        pod("report-29000000-x2", "s1", Some(("Job", "report-29000000")), 100),
        pod("by-hand", "n1", None, 100),
        pod("of-another", "s1", Some(("CloneSet", "clones")), 100),
    ]
    .concat();
    let place = cluster(&manifests, &dump, NODE_GROUP);
    let outcome = outcome(&place, "scenario.yaml");
    let names = |kind| told(&outcome, kind);
    assert_eq!(names(EventKind::NodeFound), ["n1 : 3d old", "s1 : 20d old"]);
    assert_eq!(names(EventKind::PodFound).len(), 7);
    // One replica, one ordinal, the daemons of two nodes and that of the node that the group lacks.
    let mut made = names(EventKind::PodCreated);
    made.sort();
    assert_eq!(made, ["agent-00000:", "agent-00001:", "agent-00002:", "db-1:", "web-00000:"]);
    assert_eq!(names(EventKind::InstanceLaunched).len(), 1, "what the node group lacks");
    let facts = |name: &str| outcome.record.pods.iter().find(|pod| pod.name == name).unwrap();
    assert_eq!(facts("web-b").requests.cpu_milli(), 350, "as the pod has it");
    assert!(facts("report-29000000-x2").removed.is_some() && facts("by-hand").removed.is_none());
    let warnings = outcome.warnings.texts().join("\n");
    assert!(
        warnings.contains("1 pod from the dump has no controller in this scenario")
            && warnings.contains("shop/of-another"),
        "{warnings}"
    );
    assert_eq!(count(&outcome, EventKind::PodEvicted), 0);
}

#[test]
fn running_job_deadline_counts_from_its_start() {
    let work = "activeDeadlineSeconds: 15600, template: {spec: {restartPolicy: Never, \
        containers: [{name: own, image: own, resources: {requests: {cpu: 100m, memory: 900Mi}}}]}}";
    let object = |kind: &str, name: &str, spec: &str| {
        format!(
            "---\napiVersion: batch/v1\nkind: {kind}\nmetadata: {{name: {name}, namespace: shop}}\nspec: {{{spec}}}\n"
        )
    };
    let cron = format!("schedule: \"0 3 * * *\", jobTemplate: {{spec: {{{work}}}}}");
    let manifests = [
        object("Job", "older", work),
        "status: {startTime: \"2026-10-31T07:50:00Z\"}\n".to_owned(),
        object("Job", "between", work),
        "status: {startTime: \"2026-10-31T07:45:00Z\"}\n".to_owned(),
        object("Job", "younger", work),
        "status: {startTime: \"2026-10-31T08:10:00Z\"}\n".to_owned(),
        object("Job", "plain", work),
        object("Job", "new", work),
        object("CronJob", "report", &cron),
    ]
    .concat();
    let dump = [
        node("s1", OF_GROUP, 20),
        pod("older-x", "s1", Some(("Job", "older")), 100),
        pod("younger-x", "s1", Some(("Job", "younger")), 100),
        pod("plain-x", "s1", Some(("Job", "plain")), 100),
        pod("report-29000000-x", "s1", Some(("Job", "report-29000000")), 100),
    ]
    .concat();
    let times: String = ["older", "between", "younger", "plain", "new", "report"]
        .map(|name| format!("  - {{ name: shop/{name}, run_time: 3h }}\n"))
        .concat();
    let more = format!("{NODE_GROUP}policies: [{{ name: own, autoscaler: static }}]\nworkloads:\n{times}");
    let outcome = outcome(&cluster(&manifests, &dump, &more), "scenario.yaml");
    let end = |name: &str| {
        let job = outcome.record.jobs.iter().find(|job| &*job.name == name).unwrap();
        job.end.map(|end| (end.at.as_secs(), end.kind))
    };
    // Four hours and twenty minutes after 07:50 and after 08:00; the run begins at 12:00.
    assert_eq!(end("older"), Some((600, JobOutcomeKind::Failed)));
    assert_eq!(end("between"), Some((300, JobOutcomeKind::Failed)), "it has no pod at the moment");
    assert_eq!(end("younger"), Some((1_800, JobOutcomeKind::Failed)), "whatever its pod says");
    assert_eq!(end("plain"), Some((1_200, JobOutcomeKind::Failed)));
    assert_eq!(end("report-29000000"), Some((1_200, JobOutcomeKind::Failed)));
    assert_eq!(end("new"), None);
    let removed = |name: &str| outcome.record.pods.iter().find(|pod| pod.name == name).unwrap().removed;
    assert!(removed("older-x") < removed("plain-x") && removed("older-x").is_some());
}

#[test]
fn unmanaged_pods_stay_and_other_policy_nodes_go() {
    let manifests = deployment("web", 2);
    let dump = [
        node("n1", OF_POOL, 3),
        node("x1", "team: data, node.kubernetes.io/instance-type: no.such", 9),
        pod("web-a", "n1", Some(("ReplicaSet", "web-5f4d7")), 250),
        pod("web-b", "x1", Some(("ReplicaSet", "web-5f4d7")), 250),
    ]
    .concat();
    let policies = "policies:\n  - { name: karpenter, autoscaler: karpenter, manifests: [pools.yaml] }\n  - { name: without, autoscaler: static }\n";
    let place = cluster(&manifests, &dump, policies);
    place.put("pools.yaml", POOL);
    let (scenario, _) = nodecast::scenario::load(&place.path("scenario.yaml")).unwrap();
    let run = |policy: usize| {
        run(&scenario, &scenario.policies[policy], Catalog::embedded().unwrap(), 1, &mut |_| {}).unwrap()
    };
    let (karpenter, without) = (run(0), run(1));
    assert_eq!(count(&karpenter, EventKind::NodeFound), 2);
    let fixed = "this policy does not manage 1 node from the dump";
    let free = "no price in us-east-1 for the instance types of 1 node from the dump";
    for text in [fixed, free] {
        assert!(karpenter.warnings.iter().any(|warning| warning.contains(text)), "{:?}", karpenter.warnings);
    }
    assert_eq!(count(&without, EventKind::NodeFound), 1);
    assert!(
        without
            .warnings
            .iter()
            .any(|warning| warning.contains("whose NodePool or node group does not exist in this policy"))
    );
    // The node that stays has room for the replica that has lost its own.
    assert_eq!(told(&without, EventKind::PodScheduled).len(), 1);
}

#[test]
fn dumped_fargate_node_serves_only_its_pod() {
    let dump = [
        node("s1", OF_GROUP, 3),
        node("f1", "eks.amazonaws.com/compute-type: fargate", 3),
        pod("web-a", "s1", Some(("ReplicaSet", "web-5f4d7")), 250),
        pod("alone-a", "f1", Some(("ReplicaSet", "alone-5f4d7")), 250),
    ]
    .concat();
    let more = "nodeGroups: [{ name: system, managed: true, instanceTypes: [m5.xlarge], min: 1, desired: 1, max: 1 }]\n\
                timeline: [{ at: 20m, scale: { workload: shop/alone, replicas: 0 } }]\n\
                policies: [{ name: own, autoscaler: static }]\n";
    let outcome = outcome(&cluster(&(deployment("web", 9) + &deployment("alone", 1)), &dump, more), "scenario.yaml");
    let place = outcome.record.nodes.iter().position(|node| node.name == "f1").unwrap();
    let there: Vec<String> = outcome
        .record
        .pods
        .iter()
        .filter(|pod| pod.node.is_some_and(|node| node.index() == place))
        .map(|pod| pod.name)
        .collect();
    assert_eq!(there, ["alone-a"]);
    let gone = outcome.record.nodes[place].terminated.unwrap();
    let twenty = SimTime::ZERO + SimDuration::from_secs(1_200);
    assert!(gone >= twenty && gone - twenty <= SimDuration::from_secs(60), "{gone}");
    assert!(outcome.warnings.iter().any(|warning| warning.contains("on Fargate 1 node of the dump")));
    assert!(!outcome.warnings.iter().any(|warning| warning.contains("no price in us-east-1")), "it is said once");
}

#[test]
fn expired_dump_node_goes_and_edited_pool_drifts() {
    let dump = [
        node("young", OF_POOL, 29),
        node("old", OF_POOL, 30),
        pod("web-a", "young", Some(("ReplicaSet", "web-5f4d7")), 250),
    ]
    .concat();
    let manifests = POOL.to_owned() + &deployment("web", 1);
    let place = cluster(&manifests.replace("720h", "708h"), &dump, "");
    let ended = outcome(&place, "scenario.yaml");
    assert_eq!(told(&ended, EventKind::NodeDisrupted)[0], "old : the node has reached its age limit");
    // An edit of the pool: the type that the node has is no longer among those that it may have.
    let place =
        cluster(&manifests.replace("[m5.xlarge, m6i.xlarge]", "[m6i.xlarge]").replace("720h", "Never"), &dump, "");
    let edited = outcome(&place, "scenario.yaml");
    assert_eq!(told(&edited, EventKind::NodeDrifted).len(), 2);
    let kinds: Vec<_> =
        edited.record.nodes.iter().filter(|node| node.terminated.is_none()).map(|node| node.instance_type).collect();
    assert_eq!(kinds.len(), 1);
    assert_eq!(kinds[0].unwrap().as_str(), "m6i.xlarge");
}

#[test]
fn nodes_among_manifests_are_there_from_the_start() {
    let place = Place::new();
    place.put("cluster.yaml", &(node("lab", "rack: one", 9) + &deployment("web", 2)));
    place.put("scenario.yaml", "name: lab\nregion: us-east-1\nduration: 10m\nmanifests: [cluster.yaml]\n");
    let outcome = outcome(&place, "scenario.yaml");
    assert_eq!(told(&outcome, EventKind::PodReady).len(), 2);
    assert_eq!(outcome.bill.lines.iter().filter(|line| line.item == BillItem::Instance).count(), 0);
}

#[test]
fn dump_without_nodes_gets_helpful_error() {
    let place = cluster(&deployment("web", 1), &pod("by-hand", "n1", None, 100), "");
    let (out, err, code) = place.nodecast(&["validate", "scenario.yaml"]);
    assert_eq!((out.as_str(), code), ("", Some(2)));
    assert!(
        err.contains("the dump has no nodes") && err.contains("scenario.yaml:6") && err.contains("kubectl get nodes"),
        "{err}"
    );
}

/// What happens in the first hour of the scenario that `init` makes of a dump, under the load that it had.
fn first_hour(dump: &str) -> Outcome {
    let place = Place::new();
    let dump = format!("{}/tests/data/dump/{dump}", env!("CARGO_MANIFEST_DIR"));
    let (_, err, code) = place.nodecast(&["init", "own", "--from", &dump]);
    assert_eq!(code, Some(0), "{err}");
    let text =
        std::fs::read_to_string(place.path("own/scenario.yaml")).unwrap().replace("duration: 24h", "duration: 1h");
    let peak = |line: &str| {
        let (before, after) = line.split_once("{ diurnal: { night: ").unwrap();
        let peak = after.split("peak: ").nth(1).unwrap().split(',').next().unwrap();
        format!("{before}{{ constant: {peak} }}")
    };
    let steady = text
        .lines()
        .map(|line| if line.contains("diurnal: {") && !line.starts_with('#') { peak(line) } else { line.to_owned() });
    place.put("own/scenario.yaml", &(steady.collect::<Vec<_>>().join("\n") + "\n"));
    outcome(&place, "own/scenario.yaml")
}

#[test]
fn shipped_dumps_start_with_only_cost_saving_moves() {
    let mut told = String::new();
    for dump in ["cluster.yaml", "small.json"] {
        let outcome = first_hour(dump);
        let record = &outcome.record;
        let name = |node: &NodeId| record.nodes[node.index()].name.as_str();
        let _ = writeln!(
            told,
            "{dump}: {} nodes, {} pods",
            count(&outcome, EventKind::NodeFound),
            count(&outcome, EventKind::PodFound)
        );
        for command in record.commands.iter().filter(|command| command.started.is_some()) {
            let nodes: Vec<&str> = command.nodes.iter().map(name).collect();
            let instead: Vec<String> = command.replacements.iter().map(ToString::to_string).collect();
            let by = command.method.unwrap_or("drift");
            let _ = writeln!(
                told,
                "  {by}, at {}: {} -> {}",
                command.started.unwrap(),
                nodes.join(", "),
                instead.join(" and ")
            );
        }
        let removed = |node: NodeId| record.commands.iter().any(|command| command.nodes.contains(&node));
        let made =
            |node: usize| record.commands.iter().any(|command| command.made.iter().any(|made| made.index() == node));
        for pod in record.pods.iter().filter(|pod| pod.evicted) {
            assert!(pod.node.is_some_and(removed), "{} was evicted by no command", pod.name);
        }
        let begun = record.commands.iter().filter_map(|command| command.started).min();
        for (position, node) in record.nodes.iter().enumerate().filter(|(_, node)| node.requested > SimTime::ZERO) {
            // Pods of a node that is on its way out look for another place.
            let at = node.requested;
            assert!(made(position) || begun.is_some_and(|begun| begun < at), "{} is launched by no command", node.name);
            if !made(position) {
                let _ = writeln!(told, "  at {at} another node for pods of those");
            }
        }
        assert!(record.replica_changes.is_empty(), "{:?}", record.replica_changes);
        assert!(record.pods.iter().all(|pod| pod.scheduled.is_some() || pod.removed.is_some()));
    }
    insta::assert_snapshot!("what_the_air_of_the_shipped_dumps_calls_for", told);
}
