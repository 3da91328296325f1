//! What nodes and namespaces are labelled with beside what their owners state, and who goes by it.

use nodecast::actors::{self, Components};
use nodecast::catalog::Catalog;
use nodecast::domain::{SimDuration, SimTime, Symbol};
use nodecast::scenario::Scenario;
use nodecast::simulation::{self, Outcome};

/// m5.large, On-Demand, under Karpenter.
const POOL: &str = "---\napiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: { name: default }\nspec:\n  \
    disruption: { consolidateAfter: Never }\n  template:\n    spec:\n      \
    nodeClassRef: { group: karpenter.k8s.aws, kind: EC2NodeClass, name: default }\n      \
    requirements: [{ key: node.kubernetes.io/instance-type, operator: In, values: [m5.large] }, { key: karpenter.sh/capacity-type, operator: In, values: [on-demand] }]\n\
    ---\napiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: { name: default }\nspec: { amiSelectorTerms: [{ alias: al2023@latest }] }\n";

/// Everybody who brings nodes.
const POLICIES: &str = "policies:\n  - { name: karpenter, autoscaler: karpenter }\n  \
    - { name: groups, autoscaler: static, nodeGroups: [{ name: g, instanceType: m5.large, min: 2, max: 3 }] }\n  \
    - { name: from-zero, autoscaler: cluster-autoscaler, nodeGroups: [{ name: g, instanceType: m5.large, min: 0, max: 3, desired: 0 }] }\n  \
    - { name: from-one, autoscaler: cluster-autoscaler, nodeGroups: [{ name: g, instanceType: m5.large, min: 1, max: 9, desired: 1 }] }\n  \
    - { name: auto, autoscaler: eks-auto-mode }\n  \
    - { name: fargate, autoscaler: static, fargate: { profiles: [{ name: all, selectors: [{ namespace: default }] }] } }\n";

/// Pods labelled `app: web` of half a CPU, with more of their specification.
fn deployment((namespace, name): (&str, &str), replicas: u32, spec: &str) -> String {
    format!(
        "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{ name: {name}, namespace: {namespace} }}\nspec:\n  \
         replicas: {replicas}\n  selector: {{ matchLabels: {{ app: web }} }}\n  template:\n    metadata: {{ labels: {{ app: web }} }}\n    \
         spec:\n      containers: [{{ name: app, image: app, resources: {{ requests: {{ cpu: 500m, memory: 500Mi }} }} }}]\n      {spec}\n"
    )
}

/// A scenario in one zone, with what its timeline applies after ten minutes.
fn load(objects: &str, later: &str, more: &str) -> Scenario {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
    write("objects.yaml", &format!("{POOL}{objects}"));
    write("later.yaml", later);
    let timeline = if later.is_empty() { "" } else { "timeline: [{ at: 10m, manifests: [later.yaml] }]\n" };
    let text = format!(
        "name: labels\nregion: us-east-1\nduration: 30m\ncluster: {{ zones: [us-east-1a] }}\nmanifests: [objects.yaml]\n\
         ec2: {{ capacity: infinite }}\n{timeline}{POLICIES}{more}"
    );
    write("scenario.yaml", &text);
    nodecast::scenario::load(&directory.path().join("scenario.yaml")).map(|(item, _)| item).unwrap()
}

fn run(scenario: &Scenario, policy: &str) -> Outcome {
    let policy = scenario.for_policy(Some(policy)).unwrap();
    simulation::run(scenario, policy, Catalog::embedded().unwrap(), scenario.seed, &mut |_| {}).unwrap()
}

/// Pods whose names begin so: those that have got a node, and all.
fn placed(outcome: &Outcome, name: &str) -> (usize, usize) {
    let pods: Vec<_> = outcome.record.pods.iter().filter(|pod| pod.name.starts_with(name)).collect();
    (pods.iter().filter(|pod| pod.scheduled.is_some()).count(), pods.len())
}

fn apart(selector: &str) -> String {
    format!(
        "affinity: {{ podAntiAffinity: {{ requiredDuringSchedulingIgnoredDuringExecution: [{{ topologyKey: kubernetes.io/hostname, \
         namespaceSelector: {selector}, labelSelector: {{ matchLabels: {{ app: web }} }} }}] }} }}"
    )
}

#[test]
fn karpenter_knows_namespaces_that_no_manifest_describes() {
    let by_name = "{ matchLabels: { kubernetes.io/metadata.name: default } }";
    for selector in ["{}", by_name] {
        let outcome = run(&load(&deployment(("default", "web"), 2, &apart(selector)), "", ""), "karpenter");
        assert_eq!((placed(&outcome, "web"), outcome.record.nodes.len()), ((2, 2), 2), "{selector}");
    }
    let elsewhere = "{ matchLabels: { kubernetes.io/metadata.name: other } }";
    let outcome = run(&load(&deployment(("default", "web"), 2, &apart(elsewhere)), "", ""), "karpenter");
    assert_eq!((placed(&outcome, "web"), outcome.record.nodes.len()), ((2, 2), 1), "nobody of that namespace");
}

#[test]
fn karpenter_resolves_namespaces_of_timeline_objects() {
    let later = deployment(("late", "later"), 1, &apart("{ matchLabels: { kubernetes.io/metadata.name: default } }"));
    let outcome = run(&load(&deployment(("default", "web"), 1, ""), &later, ""), "karpenter");
    assert_eq!((placed(&outcome, "later"), outcome.record.nodes.len()), ((1, 1), 2), "not beside the first");
    let later = deployment(("late", "later"), 2, &apart("{ matchLabels: { kubernetes.io/metadata.name: late } }"));
    let outcome = run(&load("", &later, ""), "karpenter");
    assert_eq!((placed(&outcome, "later"), outcome.record.nodes.len()), ((2, 2), 2), "not beside each other");
}

/// A node selector of these labels of an m5.large in us-east-1a.
fn select(labels: &[(&str, &str)]) -> String {
    let labels: Vec<String> = labels.iter().map(|(key, value)| format!("{key}: {value}")).collect();
    format!("nodeSelector: {{ {} }}", labels.join(", "))
}

const BY_KUBELET: [(&str, &str); 2] = [("beta.kubernetes.io/os", "linux"), ("beta.kubernetes.io/arch", "amd64")];
const BY_CLOUD: [(&str, &str); 3] = [
    ("beta.kubernetes.io/instance-type", "m5.large"),
    ("failure-domain.beta.kubernetes.io/zone", "us-east-1a"),
    ("failure-domain.beta.kubernetes.io/region", "us-east-1"),
];
const ZONE_ID: (&str, &str) = ("topology.k8s.aws/zone-id", "use1-az2");

/// What nodes are labelled with under `policy` after a quarter of an hour: each key with the values that nodes have for it.
fn labelled(policy: &str, more: &str) -> Vec<(String, Vec<String>)> {
    let scenario = load(&deployment(("default", "web"), 1, ""), "", more);
    let policy = scenario.for_policy(Some(policy)).unwrap();
    let setup = simulation::resolve(&scenario, policy, Catalog::embedded().unwrap(), 1).unwrap().setup;
    let mut components = Components::new(&setup);
    actors::begin(&mut components);
    let until = SimTime::ZERO + SimDuration::from_secs(900);
    while components.sim.queue.next_time().is_some_and(|at| at <= until) {
        let Some((now, event)) = components.sim.queue.pop() else { break };
        actors::handle(&mut components, now, event);
    }
    let keys = BY_KUBELET.iter().chain(&BY_CLOUD).chain([&ZONE_ID]).map(|(key, _)| *key);
    let nodes = components.sim.world.live_nodes();
    assert!(!nodes.is_empty());
    keys.map(|key| {
        let values = nodes.iter().filter_map(|&node| components.sim.world.node(node).labels.get(Symbol::new(key)));
        (key.to_owned(), values.map(|value| value.to_string()).collect())
    })
    .collect()
}

#[test]
fn every_node_has_kubelet_and_cloud_labels() {
    for policy in ["karpenter", "groups", "from-one", "auto", "fargate"] {
        for (key, values) in labelled(policy, "") {
            // A pod on Fargate has a machine of no type.
            let absent = policy == "fargate" && key == "beta.kubernetes.io/instance-type";
            assert_eq!(values.is_empty(), absent, "{policy}: {key}");
            let (_, stated) =
                *BY_KUBELET.iter().chain(&BY_CLOUD).chain([&ZONE_ID]).find(|kubelet| kubelet.0 == key).unwrap();
            let free =
                policy == "auto" && key != "beta.kubernetes.io/os" && !key.starts_with("failure") && key != ZONE_ID.0;
            assert!(free || values.iter().all(|value| value == stated), "{policy}: {key} is {values:?}");
        }
    }
    let of = |release: &str| {
        let all = labelled("groups", &format!("versions: {{ kubernetes: \"{release}\" }}\n"));
        all.into_iter().find(|(key, _)| key == ZONE_ID.0).map(|(_, values)| values.len())
    };
    assert_eq!((of("1.29"), of("1.30")), (Some(0), Some(2)), "the cloud's controller knows ids of zones since 1.30");
}

#[test]
fn pods_can_select_deprecated_labels_and_zone_ids() {
    let all: Vec<(&str, &str)> = BY_KUBELET.into_iter().chain(BY_CLOUD).chain([ZONE_ID]).collect();
    let scenario = load(&deployment(("default", "web"), 1, &select(&all)), "", "");
    for policy in ["karpenter", "groups", "from-one"] {
        assert_eq!(placed(&run(&scenario, policy), "web"), (1, 1), "{policy}");
    }
    let scenario = load(&deployment(("default", "web"), 1, &select(&BY_CLOUD)), "", "");
    assert_eq!(placed(&run(&scenario, "from-zero"), "web"), (1, 1));
    // Of a group without nodes the Cluster Autoscaler knows neither what only kubelets state nor the id of the zone.
    for label in [BY_KUBELET[0], ZONE_ID] {
        let outcome = run(&load(&deployment(("default", "web"), 1, &select(&[label])), "", ""), "from-zero");
        assert_eq!((placed(&outcome, "web"), outcome.record.nodes.len()), ((0, 1), 0), "{label:?}");
    }
}

#[test]
fn daemons_selecting_deprecated_labels_run_everywhere() {
    let agent = |key: &str| {
        "---\napiVersion: apps/v1\nkind: DaemonSet\nmetadata: { name: agent, namespace: kube-system }\nspec:\n  \
        selector: { matchLabels: { app: agent } }\n  template:\n    metadata: { labels: { app: agent } }\n    spec:\n      \
        nodeSelector: { KEY: linux }\n      \
        containers: [{ name: agent, image: agent, resources: { requests: { cpu: 800m, memory: 500Mi } } }]\n"
        .replace("KEY", key)
    };
    let of = |key: &str, policy: &str| {
        let objects = format!("{}{}", deployment(("default", "web"), 6, ""), agent(key));
        let outcome = run(&load(&objects, "", ""), policy);
        (placed(&outcome, "web"), placed(&outcome, "agent"), outcome.record.nodes.len())
    };
    for policy in ["karpenter", "from-one"] {
        // An m5.large offers 1.93 CPU: beside a daemon there is room for two of the pods, three of which may be on the first node before it.
        let (web, agents, nodes) = of("beta.kubernetes.io/os", policy);
        assert_eq!((web, agents.1, nodes), ((6, 6), 3, 3), "{policy}");
        assert_eq!((web, agents, nodes), of("kubernetes.io/os", policy), "{policy}");
    }
}

#[test]
fn more_labels_make_no_node_drift() {
    let outcome = run(&load(&deployment(("default", "web"), 1, &select(&BY_CLOUD)), "", ""), "karpenter");
    assert_eq!(outcome.record.nodes.len(), 1);
    assert!(outcome.record.nodes[0].deletion_requested.is_none());
}

#[test]
fn unmapped_zone_id_warning_shows_assumed_mapping() {
    let warned = |label: (&str, &str), policy: &str| {
        let scenario = load(&deployment(("default", "web"), 1, &select(&[label])), "", "");
        let policy = scenario.for_policy(Some(policy)).unwrap();
        let resolved = simulation::resolve(&scenario, policy, Catalog::embedded().unwrap(), 1).unwrap();
        resolved.warnings.texts().into_iter().filter(|text| text.contains(ZONE_ID.0)).collect::<Vec<_>>()
    };
    for policy in ["karpenter", "groups"] {
        let told = warned((ZONE_ID.0, "use1-az4"), policy);
        assert!(told.len() == 1 && told[0].starts_with("default/web: "), "{policy}: {told:?}");
        assert!(told[0].contains("us-east-1a is taken for use1-az2"), "{told:?}");
        assert!(warned(ZONE_ID, policy).is_empty());
    }
    let pool = POOL.split("---\n").nth(1).unwrap().replace("{ name: default }", "{ name: by-id }");
    let pool = format!("---\n{pool}").replace(
        "requirements: [",
        "requirements: [{ key: topology.k8s.aws/zone-id, operator: In, values: [use1-az6] }, ",
    );
    let scenario = load(&pool, "", "");
    let policy = scenario.for_policy(Some("karpenter")).unwrap();
    let warnings = simulation::resolve(&scenario, policy, Catalog::embedded().unwrap(), 1).unwrap().warnings.texts();
    assert!(
        warnings.iter().any(|text| text.starts_with("NodePool by-id: ") && text.contains("use1-az6")),
        "{warnings:?}"
    );
}

#[test]
fn initial_node_has_well_known_labels() {
    let node = "---\napiVersion: v1\nkind: Node\nmetadata: { name: found, labels: { kubernetes.io/hostname: found, kubernetes.io/os: linux, \
        topology.kubernetes.io/zone: us-east-1a } }\nstatus: { capacity: { cpu: \"2\", memory: 8Gi, pods: \"29\" }, \
        allocatable: { cpu: \"2\", memory: 7Gi, pods: \"29\" }, conditions: [{ type: Ready, status: \"True\" }] }\n";
    let objects = format!("{}{node}", deployment(("default", "web"), 1, &select(&BY_KUBELET[..1])));
    let outcome = run(&load(&objects, "", ""), "karpenter");
    assert_eq!((placed(&outcome, "web"), outcome.record.nodes.len()), ((1, 1), 1), "nothing is launched");
}
