//! Startup taints of NodePools and node groups: when a component removes them, and what autoscalers make of them.

use nodecast::catalog::Catalog;
use nodecast::domain::{SimDuration, SimTime};
use nodecast::simulation::{self, Outcome};
use nodecast::world::record::NodeFacts;

use crate::cli::Place;
use crate::reserved_capacity::run_file;

const WEB: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata: { name: web, namespace: shop }\nspec:\n  replicas: 2\n  \
    selector: { matchLabels: { app: web } }\n  template:\n    metadata: { labels: { app: web } }\n    spec:\n      \
    containers: [{ name: web, image: \"web:1\", resources: { requests: { cpu: 300m, memory: 128Mi } } }]\n";

/// A DaemonSet in the host's network that tolerates everything.
fn daemon_set(name: &str) -> String {
    format!(
        "---\napiVersion: apps/v1\nkind: DaemonSet\nmetadata: {{ name: {name}, namespace: kube-system }}\nspec:\n  \
         selector: {{ matchLabels: {{ app: {name} }} }}\n  template:\n    metadata: {{ labels: {{ app: {name} }} }}\n    spec:\n      \
         hostNetwork: true\n      tolerations: [{{ operator: Exists }}]\n      \
         containers: [{{ name: own, image: \"{name}:1\", resources: {{ requests: {{ cpu: 20m }} }} }}]\n"
    )
}

/// A scenario with a group of c5.large with this number of nodes, and with these further lines.
fn with_group(desired: u32, taint: &str, objects: &str, more: &str) -> Place {
    let place = Place::new();
    place.put("objects.yaml", objects);
    place.put(
        "scenario.yaml",
        &format!(
            "name: taints\nregion: us-east-1\nduration: 30m\nseed: 4\nmanifests: [objects.yaml]\nnodeGroups:\n  \
             - {{ name: blue, instanceType: c5.large, min: 0, desired: {desired}, max: 4, taints: [{{ key: {taint}, value: \"true\", effect: NoExecute }}] }}\n\
             ec2: {{ failures: none, capacity: infinite, spot: {{ interruptions: none }} }}\n{more}\n"
        ),
    );
    place
}

fn cluster_autoscaler(flags: &str) -> String {
    format!("policies: [{{ name: cas, autoscaler: cluster-autoscaler, flags: {{ {flags} }} }}]")
}

fn run(place: &Place) -> Outcome {
    run_file(&place.path("scenario.yaml"))
}

/// A Karpenter pool of c5.large with such lines in its template.
fn with_pool(template: &str, objects: &str, more: &str) -> Place {
    let place = Place::new();
    place.put(
        "objects.yaml",
        &format!(
            "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {{ name: green }}\nspec:\n  template:\n    spec:\n      \
             nodeClassRef: {{ group: karpenter.k8s.aws, kind: EC2NodeClass, name: green }}\n      {template}\n      requirements:\n        \
             - {{ key: node.kubernetes.io/instance-type, operator: In, values: [c5.large] }}\n        \
             - {{ key: karpenter.sh/capacity-type, operator: In, values: [on-demand] }}\n---\n{objects}"
        ),
    );
    place.put(
        "scenario.yaml",
        &format!(
            "name: taints\nregion: us-east-1\nduration: 30m\nseed: 4\nmanifests: [objects.yaml]\n\
             ec2: {{ failures: none, capacity: infinite, spot: {{ interruptions: none }} }}\n{more}\n"
        ),
    );
    place
}

/// When the pods of shop/web were bound.
fn bound(outcome: &Outcome) -> Vec<SimTime> {
    let pods = outcome.record.pods.iter().filter(|pod| pod.name.starts_with("web"));
    pods.filter_map(|pod| pod.scheduled).collect()
}

fn ready_nodes(outcome: &Outcome) -> Vec<&NodeFacts> {
    outcome.record.nodes.iter().filter(|node| node.ready.is_some()).collect()
}

pub(crate) fn warnings(place: &Place) -> String {
    let (scenario, _) = nodecast::scenario::load(&place.path("scenario.yaml")).unwrap();
    let policy = scenario.for_policy(None).unwrap();
    let resolved = simulation::resolve(&scenario, policy, Catalog::embedded().unwrap(), scenario.seed).unwrap();
    resolved.warnings.texts().join("\n")
}

#[test]
fn existing_nodes_have_no_startup_taint() {
    let objects = format!("{WEB}{}", daemon_set("cilium"));
    for policy in [String::new(), cluster_autoscaler("startup-taint: [node.cilium.io/agent-not-ready]")] {
        let place = with_group(2, "node.cilium.io/agent-not-ready", &objects, &policy);
        let outcome = run(&place);
        let bound = bound(&outcome);
        assert_eq!(outcome.record.nodes.len(), 2, "{policy}");
        assert!(
            bound.len() >= 2 && bound.iter().take(2).all(|&at| at < SimTime::ZERO + SimDuration::from_secs(20)),
            "{bound:?}"
        );
        assert!(!warnings(&place).contains("startup taint"), "{}", warnings(&place));
    }
}

#[test]
fn declared_startup_taint_goes_with_daemon_pod() {
    let taint = "ebs.csi.aws.com/agent-not-ready";
    let objects = format!("{WEB}{}", daemon_set("ebs-csi-node"));
    let place = with_group(0, taint, &objects, &cluster_autoscaler(&format!("startup-taint: [{taint}]")));
    let outcome = run(&place);
    let nodes = ready_nodes(&outcome);
    assert_eq!(nodes.len(), 1);
    let driver = outcome.record.pods.iter().find(|pod| pod.name.starts_with("ebs-csi-node")).unwrap().ready.unwrap();
    let from = (driver + SimDuration::from_millis(2_500)).max(nodes[0].ready.unwrap());
    let bound = bound(&outcome);
    assert_eq!(bound.len(), 2);
    assert!(bound.iter().all(|&at| at >= from && at < from + SimDuration::from_secs(2)), "{from} {bound:?}");
}

#[test]
fn undeclared_startup_taint_stops_scale_up() {
    let place = with_group(0, "efs.csi.aws.com/agent-not-ready", WEB, &cluster_autoscaler(""));
    assert_eq!(run(&place).record.nodes.len(), 0);
    let texts = warnings(&place);
    assert!(texts.contains("is not declared to Cluster Autoscaler") && texts.contains("efs.csi.aws.com"), "{texts}");
    let tolerating = WEB.replace(
        "    spec:\n      containers",
        "    spec:\n      tolerations: [{ operator: Exists }]\n      containers",
    );
    let place = with_group(0, "efs.csi.aws.com/agent-not-ready", &tolerating, &cluster_autoscaler(""));
    assert_eq!(bound(&run(&place)).len(), 2);
    assert!(!warnings(&place).contains("is not declared"), "{}", warnings(&place));
    let prefixed = with_group(0, "startup-taint.cluster-autoscaler.kubernetes.io/gpu", WEB, &cluster_autoscaler(""));
    assert_eq!(bound(&run(&prefixed)).len(), 2, "the prefix declares it");
    assert!(warnings(&prefixed).contains("is removed 5s after a node is Ready"), "{}", warnings(&prefixed));
}

#[test]
fn lasting_taint_of_a_group_stays() {
    let place = with_group(1, "example.com/dedicated", WEB, "");
    assert_eq!(bound(&run(&place)).len(), 0);
    assert!(!warnings(&place).contains("startup taint"));
}

#[test]
fn startup_taint_without_daemon_uses_assumed_time() {
    let taint = "startupTaints: [{ key: efs.csi.aws.com/agent-not-ready, effect: NoExecute }]";
    let place = with_pool(taint, WEB, "");
    let outcome = run(&place);
    let ready = ready_nodes(&outcome)[0].ready.unwrap();
    let waited: Vec<SimDuration> = bound(&outcome).iter().map(|&at| at - ready).collect();
    let expected = SimDuration::from_millis(7_500)..SimDuration::from_secs(9);
    assert!(waited.len() == 2 && waited.iter().all(|wait| expected.contains(wait)), "{waited:?}");
    assert!(warnings(&place).contains("7.5s after a node is Ready"), "{}", warnings(&place));
}

#[test]
fn known_taints_without_daemon_have_their_own_times() {
    for (key, after) in [("node.cilium.io/agent-not-ready", 10.0), ("s3.csi.aws.com/agent-not-ready", 5.0)] {
        let outcome = run(&with_pool(&format!("startupTaints: [{{ key: {key}, effect: NoExecute }}]"), WEB, ""));
        let ready = ready_nodes(&outcome)[0].ready.unwrap();
        let waited: Vec<f64> = bound(&outcome).iter().map(|&at| (at - ready).as_secs_f64()).collect();
        assert!(waited.len() == 2 && waited.iter().all(|wait| (after..after + 1.5).contains(wait)), "{key} {waited:?}");
    }
}

#[test]
fn first_efs_mount_takes_23_seconds() {
    let taint = "startupTaints: [{ key: efs.csi.aws.com/agent-not-ready, effect: NoExecute }]";
    let small = "images: { sizes: { \"web:1\": 1k } }";
    let claim = "---\napiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: { name: shared }\nprovisioner: DRIVER\n---\napiVersion: v1\nkind: \
        PersistentVolumeClaim\nmetadata: { name: data, namespace: shop }\nspec: { accessModes: [ReadWriteMany], storageClassName: shared, resources: { \
        requests: { storage: 1Gi } } }\n";
    let mounted = WEB.replace(
        "    spec:\n      containers",
        "    spec:\n      volumes: [{ name: data, persistentVolumeClaim: { claimName: data } }]\n      containers",
    );
    let started = |driver: &str| -> Vec<f64> {
        let outcome = run(&with_pool(taint, &format!("{mounted}{}", claim.replace("DRIVER", driver)), small));
        let ready = ready_nodes(&outcome)[0].ready.unwrap();
        let pods = outcome.record.pods.iter().filter(|pod| pod.name.starts_with("web"));
        pods.filter_map(|pod| Some((pod.started? - ready).as_secs_f64())).collect()
    };
    let (efs, other) = (started("efs.csi.aws.com"), started("nfs.csi.k8s.io"));
    assert!(efs.len() == 2 && efs.iter().all(|after| (23.0..23.6).contains(after)), "{efs:?}");
    assert!(other.len() == 2 && other.iter().all(|after| (10.0..13.0).contains(after)), "{other:?}");
}

#[test]
fn stuck_taint_keeps_a_node_from_being_initialized() {
    let template = "startupTaints: [{ key: example.com/agent, effect: NoSchedule }]";
    let stuck = "cluster: { startup_taints: [{ key: example.com/agent, after: 3s, stuck: 100% }] }";
    let outcome = run(&with_pool(template, WEB, stuck));
    let nodes = ready_nodes(&outcome);
    assert_eq!((nodes.len(), nodes[0].initialized), (1, None), "its room counts, so no other node comes");
    assert!(nodes[0].deletion_requested.is_none() && bound(&outcome).is_empty());
    let freed = run(&with_pool(template, WEB, &stuck.replace("100%", "0%")));
    assert!(ready_nodes(&freed)[0].initialized.is_some() && bound(&freed).len() == 2);
}

#[test]
fn startup_taint_waits_for_named_daemon_set() {
    let stated = "cluster: { startup_taints: [{ key: example.com/scan, on_every_node: NoSchedule, removed_by: kube-system/scanner, after: 20s }] }";
    let objects = format!("{WEB}{}", daemon_set("scanner"));
    let outcome = run(&with_pool("expireAfter: Never", &objects, stated));
    let scanner = outcome.record.pods.iter().find(|pod| pod.name.starts_with("scanner")).unwrap().ready.unwrap();
    let bound = bound(&outcome);
    assert_eq!(bound.len(), 2);
    assert!(bound.iter().all(|&at| at >= scanner + SimDuration::from_secs(20)), "{scanner} {bound:?}");
}

#[test]
fn known_taint_among_lasting_ones_is_warned_of() {
    let place = with_pool("taints: [{ key: node.cilium.io/agent-not-ready, effect: NoExecute }]", WEB, "");
    assert!(warnings(&place).contains("Move it to `startupTaints`"), "{}", warnings(&place));
}

#[test]
fn nonsense_under_startup_taints_names_its_place() {
    for (entries, words) in [
        ("[{ key: a/b, removed_by: kube-system/nobody }]", "no DaemonSet is called `kube-system/nobody`"),
        ("[{ key: a/b }, { key: a/b, after: 3s }]", "`a/b` is described twice"),
        ("[{ key: a/b, stuck: 120% }]", "not a share"),
        ("[{ key: a/b, on_every_node: Sometimes }]", "on_every_node"),
        ("[{ after: 3s }]", "key"),
    ] {
        let place = with_group(1, "a/b", WEB, &format!("cluster: {{ startup_taints: {entries} }}"));
        let (_, err, code) = place.nodecast(&["validate", "scenario.yaml"]);
        assert_eq!(code, Some(2), "{entries}: {err}");
        assert!(err.contains("scenario.yaml:9:") && err.contains(words), "{entries}: {err}");
    }
}
