//! EKS Auto Mode: Karpenter as AWS runs it, with its own pools, labels, limits and fee.

use nodecast::catalog::Catalog;
use nodecast::cloud::{BillItem, BillLine};
use nodecast::domain::{HourlyRate, Money, SimDuration, SimTime, Symbol, well_known};
use nodecast::scenario::Scenario;
use nodecast::simulation::{self, Outcome};
use nodecast::world::record::{EventKind, NodeEnd};

/// A Deployment of `replicas` pods of half a CPU, with more of the pod's specification.
fn deployment(name: &str, replicas: u32, cpu: &str, spec: &str) -> String {
    format!(
        "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{ name: {name} }}\nspec:\n  replicas: {replicas}\n  \
         selector: {{ matchLabels: {{ app: {name} }} }}\n  template:\n    metadata: {{ labels: {{ app: {name} }} }}\n    spec:\n      \
         containers: [{{ name: app, image: app, resources: {{ requests: {{ cpu: {cpu}, memory: 512Mi }} }} }}]\n      {spec}\n"
    )
}

/// A NodePool of the user's own: requirements, and more of its template's and of its own specification.
fn pool(requirements: &str, template: &str, spec: &str) -> String {
    format!(
        "---\napiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {{ name: own }}\nspec:\n  template:\n    spec:\n      \
         nodeClassRef: {{ group: eks.amazonaws.com, kind: NodeClass, name: default }}\n      \
         requirements: [{requirements}]\n      {template}\n  {spec}\n"
    )
}

fn only(types: &str, capacity_type: &str) -> String {
    format!(
        "{{ key: node.kubernetes.io/instance-type, operator: In, values: [{types}] }}, \
         {{ key: karpenter.sh/capacity-type, operator: In, values: [{capacity_type}] }}"
    )
}

/// What a scenario is read as, with what is warned about.
fn load(head: &str, manifests: &str) -> Result<Scenario, String> {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
    write("objects.yaml", manifests);
    let region = if head.contains("region:") { "" } else { "region: us-east-1\n" };
    let zones = if head.contains("zones:") { "" } else { "cluster: { zones: [us-east-1a] }\n" };
    let policies =
        if head.contains("policies:") { "" } else { "policies: [{ name: auto, autoscaler: eks-auto-mode }]\n" };
    write("scenario.yaml", &format!("name: auto\n{region}{zones}manifests: [objects.yaml]\n{policies}{head}\n"));
    nodecast::scenario::load(&directory.path().join("scenario.yaml"))
        .map(|(item, _)| item)
        .map_err(|error| error.to_string())
}

fn run(head: &str, manifests: &str) -> Outcome {
    let scenario = load(head, manifests).unwrap();
    run_policy(&scenario, None)
}

fn run_policy(scenario: &Scenario, name: Option<&str>) -> Outcome {
    let policy = scenario.for_policy(name).unwrap();
    simulation::run(scenario, policy, Catalog::embedded().unwrap(), scenario.seed, &mut |_| {}).unwrap()
}

fn of_item(outcome: &Outcome, item: BillItem) -> Vec<&BillLine> {
    outcome.bill.lines.iter().filter(|line| line.item == item).collect()
}

fn sum(lines: &[&BillLine]) -> Money {
    lines.iter().map(|line| line.amount).sum()
}

fn at(text: &str) -> SimTime {
    SimTime::ZERO + text.parse::<SimDuration>().unwrap()
}

#[test]
fn built_in_pools_launch_newer_on_demand_types() {
    let outcome = run("duration: 30m", &deployment("web", 3, "500m", ""));
    assert_eq!(outcome.about.autoscaler, "EKS Auto Mode");
    let catalog = Catalog::embedded().unwrap();
    let region = catalog.region("us-east-1").unwrap();
    assert!(!outcome.record.nodes.is_empty());
    for node in &outcome.record.nodes {
        assert_eq!(node.origin.name().as_str(), "general-purpose");
        assert_eq!(node.capacity_type, Some(well_known::ON_DEMAND));
        let kind = region.instance_type(node.instance_type.unwrap()).unwrap();
        let facts = &kind.facts;
        assert!(["c", "m", "r"].contains(&facts.category.unwrap().as_str()), "{}", facts.name);
        assert!(
            facts.generation.unwrap() >= 5 && facts.vcpus >= 2 && facts.arch == well_known::AMD64,
            "{}",
            facts.name
        );
    }
}

#[test]
fn system_pool_takes_pods_tolerating_its_taint() {
    let spec = "nodeSelector: { karpenter.sh/nodepool: system }\n      tolerations: [{ key: CriticalAddonsOnly, operator: Exists }]";
    let outcome = run("duration: 30m", &deployment("dns", 2, "100m", spec));
    let origins: Vec<&str> = outcome.record.nodes.iter().map(|node| node.origin.name().as_str()).collect();
    assert_eq!(origins, ["system"]);
    let without = "nodeSelector: { karpenter.sh/nodepool: system }";
    let outcome = run("duration: 30m", &deployment("dns", 2, "100m", without));
    assert_eq!(outcome.record.nodes.len(), 0, "the taint keeps it off");
}

#[test]
fn labels_of_types_have_names_of_their_own() {
    let spec = "nodeSelector: { eks.amazonaws.com/instance-family: m7i }";
    let outcome = run("duration: 30m", &deployment("web", 1, "500m", spec));
    assert_eq!(outcome.record.nodes.len(), 1);
    let kind = outcome.record.nodes[0].instance_type.unwrap();
    assert!(kind.as_str().starts_with("m7i."), "{kind}");
    assert!(outcome.record.pods.iter().all(|pod| pod.ready.is_some()), "kube-scheduler finds the label on the node");
}

#[test]
fn auto_mode_csi_volumes_are_ebs_volumes() {
    let class = |mode: &str| {
        format!(
            "---\napiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {{ name: auto }}\n\
             provisioner: ebs.csi.eks.amazonaws.com\nvolumeBindingMode: {mode}\nallowedTopologies:\n\
             - matchLabelExpressions: [{{ key: eks.amazonaws.com/compute-type, values: [auto] }}]\n"
        )
    };
    let claim = "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: { name: data }\nspec: { accessModes: [ReadWriteOnce], \
                 storageClassName: auto, resources: { requests: { storage: 10Gi } } }\n";
    let pods = deployment("db", 1, "500m", "volumes: [{ name: data, persistentVolumeClaim: { claimName: data } }]");
    for (mode, made_for_the_pod) in [("WaitForFirstConsumer", true), ("Immediate", false)] {
        let outcome = run("duration: 30m", &format!("{}{claim}{pods}", class(mode)));
        assert!(outcome.record.pods.iter().all(|pod| pod.ready.is_some()), "{mode}: bound, attached and Ready");
        assert_eq!(of_item(&outcome, BillItem::PersistentVolume).len(), 1, "{mode}");
        let events = outcome.record.events.iter();
        let made: Vec<&str> =
            events.filter(|event| event.kind == EventKind::ProvisioningSucceeded).map(|event| event.message).collect();
        let expected: &[&str] = if made_for_the_pod { &["claim data in us-east-1a"] } else { &[] };
        assert_eq!(made, expected, "{mode}");
        let text = outcome.warnings.texts().join("\n");
        assert!(!text.contains("reached from every node"), "{mode}: {text}");
    }
}

#[test]
fn spot_management_fee_follows_on_demand_price() {
    let objects = deployment("web", 1, "500m", "") + &pool(&only("m7i.large", "spot"), "", "");
    let outcome = run("duration: 2h", &objects);
    let instances = of_item(&outcome, BillItem::Instance);
    let fees = of_item(&outcome, BillItem::AutoModeFee);
    assert_eq!(fees.len(), 1);
    assert_eq!(fees[0].rate, HourlyRate::parse("0.0121").unwrap(), "12 % of 0.1008, to five decimals");
    let ran: SimDuration = instances.iter().map(|line| line.billed).fold(SimDuration::ZERO, |sum, billed| sum + billed);
    assert_eq!(fees[0].billed, ran, "for as long as the instance");
    assert_eq!((fees[0].from, fees[0].to), (instances[0].from, instances.last().unwrap().to));
    assert!(instances.iter().all(|line| line.capacity_type == Some(well_known::SPOT)));
    assert!(instances[0].rate < HourlyRate::parse("0.1008").unwrap());
}

#[test]
fn gpu_fee_falls_during_instance_life() {
    let objects = deployment("web", 1, "500m", "") + &pool(&only("g6.xlarge", "on-demand"), "", "");
    let head =
        "region: ap-northeast-1\ncluster: { zones: [ap-northeast-1a] }\nduration: 2h\nstart: 2026-06-30T23:00:00Z";
    let outcome = run(head, &objects);
    let fees = of_item(&outcome, BillItem::AutoModeFee);
    let listed = of_item(&outcome, BillItem::Instance)[0].rate;
    let share = |millionths: i64| {
        let exact = listed.as_nanos() * millionths;
        HourlyRate::from_nanos((exact + 5_000_000_000).div_euclid(10_000_000_000) * 10_000)
    };
    assert_eq!(fees.iter().map(|line| line.rate).collect::<Vec<_>>(), [share(120_000), share(78_000)]);
    assert_eq!((fees[0].to, fees[1].from), (at("1h"), at("1h")), "without a gap");
}

#[test]
fn auto_mode_rejects_long_expiry_and_foreign_labels() {
    let life = |template: &str| load("duration: 1h", &pool(&only("m5.large", "on-demand"), template, ""));
    let error = life("expireAfter: 500h").unwrap_err();
    assert!(error.contains("NodePool own") && error.contains("21d20h"), "{error}");
    assert!(life("expireAfter: 480h").is_ok());
    assert!(life("expireAfter: Never").unwrap_err().contains("21 days"));
    let foreign = "{ key: karpenter.k8s.aws/instance-family, operator: In, values: [m7g] }";
    let error = load("duration: 1h", &pool(foreign, "", "")).unwrap_err();
    assert!(error.contains("karpenter.k8s.aws/instance-family"), "{error}");
    let spec = "nodeSelector: { karpenter.k8s.aws/instance-size: large }";
    let error = load("duration: 1h", &deployment("web", 1, "1", spec)).unwrap_err();
    assert!(error.contains("Deployment default/web"), "{error}");
}

#[test]
fn too_small_types_launch_nothing_with_reason() {
    let objects = deployment("web", 1, "500m", "") + &pool(&only("t3.small", "on-demand"), "", "");
    let outcome = run("duration: 30m", &objects);
    assert_eq!(outcome.record.nodes.len(), 0);
    assert!(outcome.record.pods.iter().all(|pod| pod.scheduled.is_none()));
    let said = outcome.warnings.iter().any(|warning| warning.contains("t3.small is below the minimum size"));
    assert!(said, "{:?}", outcome.warnings);
}

#[test]
fn a_large_node_takes_110_pods() {
    let objects = deployment("web", 120, "10m", "").replace("memory: 512Mi", "memory: 10Mi")
        + &pool(&only("m5.24xlarge", "on-demand"), "", "");
    let outcome = run("duration: 30m", &objects);
    assert_eq!(outcome.record.nodes.len(), 2);
    let on = |node: usize| {
        outcome.record.pods.iter().filter(|pod| pod.node.is_some_and(|this_node| this_node.index() == node)).count()
    };
    assert_eq!(on(0).max(on(1)), 110);
}

#[test]
fn new_ami_replaces_nodes_two_at_once() {
    // Twenty pods that keep off each other, on twenty nodes. Images come out on Wednesdays at 18:00 UTC.
    let spread = "affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ labelSelector: { matchLabels: { app: web } }, topologyKey: kubernetes.io/hostname }] } }";
    let objects = deployment("web", 20, "500m", spread) + &pool(&only("m5.large", "on-demand"), "", "");
    let outcome = run("duration: 12h\nstart: 2026-07-01T12:00:00Z", &objects);
    let released = at("6h");
    let first: Vec<_> = outcome.record.nodes.iter().filter(|node| node.requested < released).collect();
    assert_eq!(first.len(), 20);
    assert!(first.iter().all(|node| node.terminated.is_some_and(|gone| gone > released)), "all replaced");
    let mut marks: Vec<(SimTime, i32)> = Vec::new();
    for node in &first {
        marks.push((node.deletion_requested.unwrap(), 1));
        // A node whose instance is being terminated no longer counts for budgets.
        marks.push((node.terminating.unwrap(), -1));
    }
    marks.sort();
    let most = marks
        .iter()
        .scan(0, |sum, mark| {
            *sum += mark.1;
            Some(*sum)
        })
        .max()
        .unwrap();
    assert!(most <= 2, "{most} at a time, and the budget is a tenth");
    let replaced = outcome.record.nodes.len();
    assert_eq!(replaced, 40);
    assert!(sum(&of_item(&outcome, BillItem::AutoModeFee)) > Money::ZERO);
}

#[test]
fn protected_pod_delays_expiry_one_day_at_most() {
    let protected = deployment("web", 1, "500m", "").replace(
        "metadata: { labels: { app: web } }",
        "metadata: { labels: { app: web }, annotations: { karpenter.sh/do-not-disrupt: \"true\" } }",
    );
    let objects = protected + &pool(&only("m5.large", "on-demand"), "expireAfter: 2h", "");
    let outcome = run("duration: 30h\nstart: 2026-07-02T00:00:00Z", &objects);
    let first = &outcome.record.nodes[0];
    assert_eq!(first.end, Some(NodeEnd::Expired));
    let expired = first.requested + "2h".parse().unwrap();
    let pod = outcome.record.pods.iter().find(|pod| pod.node == Some(nodecast::domain::NodeId::from_index(0))).unwrap();
    let deleted = pod.deletion_requested.unwrap();
    assert!(deleted > expired + "23h".parse().unwrap() && deleted <= expired + "24h".parse().unwrap(), "{deleted}");
}

#[test]
fn auto_mode_agent_daemon_sets_are_reported() {
    let agent = "---\napiVersion: apps/v1\nkind: DaemonSet\nmetadata: { name: aws-node, namespace: kube-system }\nspec:\n  selector: { matchLabels: { k: n } }\n  template:\n    metadata: { labels: { k: n } }\n    spec: { containers: [{ name: n, image: \"x/amazon-k8s-cni:v1\", resources: { requests: { cpu: 50m } } }], tolerations: [{ operator: Exists }] }\n";
    let this_agent =
        agent.replace("aws-node", "shipper").replace("x/amazon-k8s-cni:v1", "shipper").replace("k: n", "k: s");
    let outcome = run("duration: 30m", &(deployment("web", 1, "500m", "") + agent + &this_agent));
    let of = |name: &str| {
        let record = &outcome.record;
        record.pods.iter().filter(|pod| record.workloads[pod.workload.index()].name.name.as_str() == name).count()
    };
    assert_eq!((of("aws-node"), of("shipper")), (0, 1));
    assert!(outcome.warnings.iter().any(|warning| warning.contains("kube-system/aws-node")), "{:?}", outcome.warnings);
}

#[test]
fn the_bill_is_that_worked_out_by_hand() {
    // One m5.large under the whole run: instance, fee, 84 GiB of volumes, and the control plane.
    let objects = deployment("web", 1, "500m", "") + &pool(&only("m5.large", "on-demand"), "", "");
    let outcome = run("duration: 3h\nec2: { billing: { volume_per_month: 0.073 } }", &objects);
    assert_eq!(outcome.record.nodes.len(), 1);
    let [instance] = of_item(&outcome, BillItem::Instance)[..] else { panic!("one instance") };
    let [fee] = of_item(&outcome, BillItem::AutoModeFee)[..] else { panic!("one fee") };
    let [volume] = of_item(&outcome, BillItem::RootVolume)[..] else { panic!("one volume") };
    assert_eq!(instance.rate, HourlyRate::parse("0.096").unwrap());
    assert_eq!(fee.rate, HourlyRate::parse("0.01152").unwrap());
    assert_eq!(volume.rate, HourlyRate::parse("0.0084").unwrap(), "84 GiB at 0.073 a month of 730 hours");
    for line in [instance, fee, volume] {
        let exact = i128::from(line.rate.as_nanos()) * i128::from(line.billed.as_micros());
        let nanos = (exact + 1_800_000_000).div_euclid(3_600_000_000);
        assert!((line.amount.as_nanos() - nanos).abs() <= 1, "{:?}", line.item);
    }
    let total: Money = outcome.bill.lines.iter().map(|line| line.amount).sum();
    assert_eq!(total, outcome.bill.total());
    let control = sum(&of_item(&outcome, BillItem::ControlPlane));
    assert_eq!(total, instance.amount + fee.amount + volume.amount + control, "nothing else is billed");
}

#[test]
fn karpenter_next_to_auto_mode_pays_no_fee() {
    let pool = pool(&only("m5.large", "on-demand"), "", "")
        .replace("eks.amazonaws.com, kind: NodeClass", "karpenter.k8s.aws, kind: EC2NodeClass")
        .replace("name: own", "name: self-run");
    let objects = deployment("web", 2, "500m", "") + &pool;
    let head =
        "duration: 1h\npolicies: [{ name: own, autoscaler: karpenter }, { name: auto, autoscaler: eks-auto-mode }]";
    let scenario = load(head, &objects).unwrap();
    let karpenter = run_policy(&scenario, Some("own"));
    assert_eq!(karpenter.record.nodes[0].origin.name().as_str(), "self-run");
    assert!(of_item(&karpenter, BillItem::AutoModeFee).is_empty());
    let auto = run_policy(&scenario, Some("auto"));
    assert_eq!(auto.record.nodes[0].origin.name(), Symbol::new("general-purpose"));
    assert_eq!(of_item(&auto, BillItem::AutoModeFee).len(), auto.record.nodes.len());
    assert!(
        auto.warnings.iter().any(|warning| warning.contains("does not see the NodePools self-run")),
        "{:?}",
        auto.warnings
    );
}

#[test]
fn karpenter_and_auto_mode_settings_are_separate() {
    let refused = |policy: &str| {
        load(&format!("duration: 1h\npolicies: [{policy}]"), &deployment("web", 1, "1", "")).unwrap_err()
    };
    let error = refused("{ name: a, autoscaler: eks-auto-mode, karpenter: { batch_idle_duration: 2s } }");
    assert!(error.contains("AWS manages Karpenter"), "{error}");
    let error = refused("{ name: a, autoscaler: static, eks_auto_mode: { node_pools: [system] } }");
    assert!(error.contains("apply only to EKS Auto Mode"), "{error}");
    let error = refused("{ name: a, autoscaler: eks-auto-mode, eks_auto_mode: { node_pools: [] } }");
    assert!(error.contains("without a NodePool"), "{error}");
}

#[test]
fn dump_with_auto_mode_pools_uses_auto_mode() {
    use nodecast::scenario::draft::Wishes;
    use nodecast::scenario::{Draft, Source};

    let small = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/dump/small.yaml");
    let class = "- apiVersion: eks.amazonaws.com/v1\n  kind: NodeClass\n  metadata: { name: default }\n  spec: { role: nodes }\n";
    let trim_end = pool(&only("m5.large", "on-demand"), "", "").replace("---\n", "").trim_end().replace('\n', "\n  ");
    let dump =
        std::fs::read_to_string(small).unwrap().replacen("items:\n", &format!("items:\n{class}- {trim_end}\n"), 1);
    let wishes = Wishes { name: "own".to_owned(), ..Wishes::default() };
    let draft = Draft::of_dump(&[Source::new("dump.yaml", &*dump)], &wishes, Catalog::embedded().unwrap()).unwrap();
    let text = &draft.files[0].text;
    assert!(text.contains("- { name: today, autoscaler: eks-auto-mode }"), "{text}");
    assert!(!text.contains("karpenter: v1"), "{text}");
    let pools = draft.files.iter().find(|file| file.text.contains("kind: NodePool")).unwrap();
    assert!(pools.text.contains("eks.amazonaws.com") && pools.text.contains("kind: NodeClass"), "{}", pools.text);
}

#[test]
fn large_local_disks_allow_smaller_volume() {
    let objects = deployment("web", 1, "500m", "") + &pool(&only("m5d.large", "on-demand"), "", "");
    let outcome = run("duration: 1h\nec2: { billing: { volume_per_month: 0.073 } }", &objects);
    let [volume] = of_item(&outcome, BillItem::RootVolume)[..] else { panic!("one volume") };
    // 75 GB of local disk are less than the 80 GiB that a class asks for.
    assert_eq!(volume.rate, HourlyRate::parse("0.0084").unwrap());
    let larger = deployment("web", 1, "500m", "") + &pool(&only("m5d.xlarge", "on-demand"), "", "");
    let outcome = run("duration: 1h\nec2: { billing: { volume_per_month: 0.073 } }", &larger);
    let [volume] = of_item(&outcome, BillItem::RootVolume)[..] else { panic!("one volume") };
    assert_eq!(volume.rate, HourlyRate::parse("0.0024").unwrap(), "24 GiB, as 150 GB of local disk are the pods'");
}
