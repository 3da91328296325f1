//! Node classes and node groups that change during a run.

use nodecast::catalog::Catalog;
use nodecast::domain::SimTime;
use nodecast::simulation::{Outcome, run};
use nodecast::world::record::{EventKind, NodeEnd, NodeFacts};

use crate::cli::Place;
use crate::node_groups::{minutes, times};
use crate::pool_changes::{deployment, pool};

/// A node class of this name, with this selector of images and this much more.
fn class(name: &str, selector: &str, more: &str) -> String {
    format!(
        "---
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {{name: {name}}}
spec: {{amiSelectorTerms: [{selector}], role: nodes{more}}}
"
    )
}

const LATEST: &str = "{alias: al2023@latest}";

fn simulate(manifests: &str, later: &str, more: &str) -> Outcome {
    let place = Place::new();
    place.put("cluster.yaml", manifests);
    place.put("later.yaml", later);
    let text = format!(
        "name: change\nregion: us-east-1\nduration: 2h\ncluster: {{ zones: [us-east-1a, us-east-1b] }}\nmanifests: [cluster.yaml]\n\
         ec2: {{ capacity: infinite, failures: none }}\ntimeline:\n  - {{ at: 30m, manifests: [later.yaml] }}\n{more}"
    );
    place.put("scenario.yaml", &text);
    let (scenario, _) = nodecast::scenario::load(&place.path("scenario.yaml")).unwrap();
    run(&scenario, &scenario.policies[0], Catalog::embedded().unwrap(), 1, &mut |_| {}).unwrap()
}

/// What nodes were found drifted by.
fn drifted(outcome: &Outcome) -> Vec<&str> {
    let found = outcome.record.events.iter().filter(|event| event.kind == EventKind::NodeDrifted);
    let mut reasons: Vec<&str> = found.map(|event| event.message).collect();
    reasons.dedup();
    reasons
}

/// Nodes by whether they were asked for after the change.
fn split(outcome: &Outcome) -> (Vec<&NodeFacts>, Vec<&NodeFacts>) {
    outcome.record.nodes.iter().partition(|node| node.requested < minutes(30))
}

fn all_replaced(outcome: &Outcome, reason: &str) {
    let (before, after) = split(outcome);
    assert_eq!(drifted(outcome), [reason]);
    assert!(before.len() >= 2, "{}", before.len());
    assert_eq!(before.len(), after.len(), "each is replaced once");
    for node in before {
        assert_eq!(node.end, Some(NodeEnd::Drifted), "{}", node.name);
        assert!(node.deletion_requested.unwrap() >= minutes(30));
    }
    assert!(after.iter().all(|node| node.end.is_none()));
    assert!(outcome.record.pods.iter().all(|pod| pod.scheduled.is_some()));
    assert!(outcome.warnings.iter().all(|warning| !warning.contains("change")), "{:?}", outcome.warnings);
}

fn workload() -> String {
    pool("general", "m5", "1") + &deployment("web", 6, "general")
}

#[test]
fn changed_class_volume_causes_drift_by_hash() {
    let volume =
        ", blockDeviceMappings: [{deviceName: /dev/xvda, rootVolume: true, ebs: {volumeSize: 80Gi, volumeType: gp3}}]";
    let outcome = simulate(&(class("default", LATEST, "") + &workload()), &class("default", LATEST, volume), "");
    all_replaced(&outcome, "NodeClassDrift");
    let unchanged = simulate(&(class("default", LATEST, "") + &workload()), &class("default", LATEST, ""), "");
    assert_eq!(drifted(&unchanged), Vec::<&str>::new(), "the same class again is no drift");
    assert!(split(&unchanged).1.is_empty());
}

#[test]
fn changed_ami_selector_causes_image_drift() {
    let any = pool("general", "m5, m6g", "1");
    let manifests = class("default", "{name: my-x86_64-*}", "") + &any + &deployment("web", 6, "general");
    let outcome = simulate(&manifests, &class("default", "{name: my-arm64-*}", ""), "");
    all_replaced(&outcome, "AMIDrift");
    let arch = |nodes: Vec<&NodeFacts>| {
        let mut found: Vec<String> = nodes.iter().map(|node| node.arch.unwrap().to_string()).collect();
        found.dedup();
        found
    };
    let (before, after) = split(&outcome);
    assert_eq!((arch(before), arch(after)), (vec!["amd64".to_owned()], vec!["arm64".to_owned()]));
}

#[test]
fn changed_kubelet_settings_reach_new_nodes() {
    let kubelet = ", kubelet: {maxPods: 20}";
    let outcome = simulate(&(class("default", LATEST, "") + &workload()), &class("default", LATEST, kubelet), "");
    all_replaced(&outcome, "NodeClassDrift");
    let (before, after) = split(&outcome);
    assert!(before.iter().all(|node| node.capacity.pods() == 58));
    assert!(after.iter().all(|node| node.capacity.pods() == 20));
}

#[test]
fn pool_with_changed_class_drifts() {
    let manifests = class("default", LATEST, "") + &workload();
    let other =
        pool("general", "m5", "1").replace("kind: EC2NodeClass, name: default", "kind: EC2NodeClass, name: small");
    let outcome = simulate(&manifests, &(class("small", LATEST, ", kubelet: {maxPods: 12}") + &other), "");
    all_replaced(&outcome, "NodePoolDrifted");
    assert!(split(&outcome).1.iter().all(|node| node.capacity.pods() == 12));
}

/// A ClusterConfig with one managed group.
fn group(sizes: (u32, u32, u32), more: &str) -> String {
    let (min, desired, max) = sizes;
    format!(
        "---
apiVersion: eksctl.io/v1alpha5
kind: ClusterConfig
metadata: {{name: shop, region: us-east-1}}
managedNodeGroups:
  - {{name: workers, instanceTypes: [m5.large], minSize: {min}, desiredCapacity: {desired}, maxSize: {max}{more}}}
"
    )
}

fn ready(outcome: &Outcome, at: SimTime) -> usize {
    crate::node_groups::ready(outcome, at)
}

#[test]
fn node_group_update_changes_size_within_limits() {
    let web = crate::node_groups::web(2);
    let outcome = simulate(&(web.clone() + &group((1, 2, 3), "")), &group((4, 5, 8), ""), "");
    assert_eq!((ready(&outcome, minutes(29)), ready(&outcome, minutes(60))), (2, 5));
    assert_eq!(outcome.warnings.texts(), Vec::<String>::new());
    let smaller = simulate(&(web.clone() + &group((1, 3, 3), "")), &group((0, 1, 2), ""), "");
    assert_eq!((ready(&smaller, minutes(29)), ready(&smaller, minutes(90))), (3, 1));
    let other = group((1, 2, 3), "").replace("m5.large", "c5.large");
    let kept = simulate(&(web + &group((1, 2, 3), "")), &other, "");
    assert!(kept.warnings.iter().any(|warning| warning.contains("what else is stated takes another group")));
    assert!(kept.record.nodes.iter().all(|node| node.instance_type.unwrap().as_str() == "m5.large"));
}

#[test]
fn cluster_autoscaler_uses_updated_group_limits() {
    let web = crate::node_groups::web(2);
    let grow = "  - { at: 40m, scale: { workload: web, replicas: 12 } }
policies: [{ name: groups, autoscaler: cluster-autoscaler }]
";
    let manifests = web + &group((1, 1, 2), "");
    let held = simulate(&manifests, &group((1, 1, 2), ""), grow);
    assert_eq!(ready(&held, minutes(70)), 2);
    let freed = simulate(&manifests, &group((1, 1, 6), ""), grow);
    assert_eq!(ready(&freed, minutes(70)), 6, "{:?}", times(&freed, EventKind::ScaledUpGroup));
}

#[test]
fn managed_group_labels_and_taints_reach_existing_nodes() {
    let taint = ", taints: [{key: own, value: \"yes\", effect: NoSchedule}]";
    let scale = "  - { at: 40m, scale: { workload: web, replicas: 4 } }\n";
    let manifests = crate::node_groups::web(1) + &group((2, 2, 2), "");
    let scheduled = |outcome: &Outcome| outcome.record.pods.iter().filter(|pod| pod.scheduled.is_some()).count();
    let open = simulate(&manifests, &group((2, 2, 2), ""), scale);
    assert_eq!(scheduled(&open), 4);
    let closed = simulate(&manifests, &group((2, 2, 2), taint), scale);
    assert_eq!(scheduled(&closed), 1, "the node that is there takes no more");
    let selecting = |nodes: &str| {
        crate::node_groups::web(1).replace(
            "    spec:\n      containers",
            &format!("    spec:\n      nodeSelector: {{tier: {nodes}}}\n      containers"),
        )
    };
    let labelled =
        simulate(&(selecting("new") + &group((2, 2, 2), "")), &group((2, 2, 2), ", labels: {tier: new}"), "");
    let at = labelled.record.pods.facts(nodecast::domain::PodId(0)).scheduled.unwrap();
    assert!(at >= minutes(30) && at < minutes(36), "{at}");
}

#[test]
fn hashed_class_fields_drift_regardless_of_list_order() {
    let apply = |before: &str, after: &str| {
        simulate(&(class("default", LATEST, before) + &workload()), &class("default", LATEST, after), "")
    };
    all_replaced(&apply("", ", userData: x"), "NodeClassDrift");
    let volumes = |first: &str, second: &str| {
        let one = |device: &str| format!("{{deviceName: {device}, ebs: {{volumeSize: 30Gi}}}}");
        format!(", blockDeviceMappings: [{}, {}]", one(first), one(second))
    };
    let turned = apply(&volumes("/dev/xvda", "/dev/xvdb"), &volumes("/dev/xvdb", "/dev/xvda"));
    assert_eq!(drifted(&turned), Vec::<&str>::new());
    assert!(split(&turned).1.is_empty());
}

#[test]
fn changed_security_group_or_subnet_terms_cause_drift() {
    let terms = |key: &str, id: &str| format!(", {key}: [{{id: {id}}}]");
    for (key, one, other, reason) in [
        ("securityGroupSelectorTerms", "sg-1", "sg-2", "SecurityGroupDrift"),
        ("subnetSelectorTerms", "subnet-1", "subnet-2", "SubnetDrift"),
    ] {
        let before = class("default", LATEST, &terms(key, one)) + &workload();
        all_replaced(&simulate(&before, &class("default", LATEST, &terms(key, other)), ""), reason);
    }
}

#[test]
fn new_ami_replaces_nodes_of_latest_alias() {
    const PINNED: &str = "{alias: al2023@v20250101}";
    let run = |selector: &str, more: &str| {
        let class = class("default", selector, "");
        simulate(&(class.clone() + &workload()), &class, more)
    };
    let every = "karpenter: { image_release_every: 90m }\n";
    let released = run(LATEST, every);
    assert_eq!(drifted(&released), ["AMIDrift"]);
    assert!(released.record.nodes.iter().any(|node| node.end == Some(NodeEnd::Drifted)));
    assert_eq!(drifted(&run("{name: my-x86_64-*}", every)), ["AMIDrift"]);
    let warned = |outcome: &Outcome| outcome.warnings.iter().any(|warning| warning.contains("newest image"));
    let pinned = run(PINNED, every);
    assert!(drifted(&pinned).is_empty() && warned(&pinned), "{:?}", pinned.warnings);
    let short = run(LATEST, "");
    assert!(drifted(&short).is_empty() && !warned(&short), "{:?}", short.warnings);
}
