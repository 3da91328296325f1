//! Persistent volumes in whole runs: where they let pods run, how many a node attaches, and what their detaching holds up.

use nodecast::cloud::BillItem;
use nodecast::domain::{PodId, SimDuration, SimTime};
use nodecast::simulation::Outcome;
use nodecast::world::record::{EventKind, NodeEnd, NodeFacts, PodFacts};

use crate::cluster_autoscaler_runs::scenario as autoscaler_scenario;
use crate::node_groups::{minutes, run};

/// A cluster under Karpenter whose pool has one type; `more` are keys of the scenario, `own` of the pool's claims.
fn karpenter(zones: &str, text: &str, more: &str, manifests: &str) -> Outcome {
    let scenario = format!(
        "name: volumes\nregion: us-east-1\nduration: 1h\ncluster: {{ zones: [us-east-1a, us-east-1b, us-east-1c] }}\n\
         manifests: [manifests.yaml]\nec2: {{ capacity: infinite, spot: {{ interruptions: none }} }}\n{more}\n"
    );
    let pool = format!(
        "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {{name: default}}\nspec:\n  \
         disruption: {{consolidationPolicy: WhenEmpty, consolidateAfter: Never}}\n  template:\n    spec:\n      {text}\n      \
         nodeClassRef: {{group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}}\n      requirements:\n      \
         - {{key: topology.kubernetes.io/zone, operator: In, values: [{zones}]}}\n      \
         - {{key: node.kubernetes.io/instance-type, operator: In, values: [m5.large, m5.4xlarge]}}\n\
         ---\napiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {{name: default}}\nspec: \
         {{amiSelectorTerms: [{{alias: al2023@latest}}]}}\n"
    );
    run(&scenario, &format!("{pool}{manifests}"))
}

const ANYWHERE: &str = "us-east-1a, us-east-1b, us-east-1c";
const ON_DEMAND: &str = "policies: [{ name: only, autoscaler: karpenter }]";

const GP3: &str = "---\napiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: gp3}\n\
    provisioner: ebs.csi.aws.com\nvolumeBindingMode: WaitForFirstConsumer\n";

/// A StatefulSet whose pods have a claim of `class` each; `spec` is more of the pods' specification, `rest` of the set's.
fn stateful(replicas: u32, class: &str, spec: &str, rest: &str) -> String {
    format!(
        "---\napiVersion: apps/v1\nkind: StatefulSet\nmetadata: {{name: db}}\nspec:\n  replicas: {replicas}\n  {rest}\n  \
         selector: {{matchLabels: {{app: db}}}}\n  volumeClaimTemplates:\n  - metadata: {{name: data}}\n    \
         spec: {{accessModes: [ReadWriteOnce], storageClassName: {class}, resources: {{requests: {{storage: 8Gi}}}}}}\n  \
         template:\n    metadata: {{labels: {{app: db}}}}\n    spec:\n      \
         containers: [{{name: db, image: db, resources: {{requests: {{cpu: 100m, memory: 256Mi}}}}}}]\n      {spec}\n"
    )
}

/// A Deployment with one replica, whose pod names the claim `data`.
fn deployment(spec: &str, rest: &str) -> String {
    format!(
        "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: db}}\nspec:\n  replicas: 1\n  {rest}\n  \
         selector: {{matchLabels: {{app: db}}}}\n  template:\n    metadata: {{labels: {{app: db}}}}\n    spec:\n      \
         volumes: [{{name: data, persistentVolumeClaim: {{claimName: data}}}}]\n      \
         containers: [{{name: db, image: db, resources: {{requests: {{cpu: 100m, memory: 256Mi}}}}}}]\n      {spec}\n"
    )
}

const CLAIM: &str = "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\n\
    spec: {accessModes: [ReadWriteOnce], storageClassName: gp3, resources: {requests: {storage: 8Gi}}}\n";

/// The claim `data`, bound to a volume in `zone`.
fn bound(zone: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {{name: pv-1}}\nspec:\n  csi: {{driver: ebs.csi.aws.com}}\n  \
         nodeAffinity: {{required: {{nodeSelectorTerms: [{{matchExpressions: [{{key: topology.ebs.csi.aws.com/zone, \
         operator: In, values: [{zone}]}}]}}]}}}}\n\
         ---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: data}}\n\
         spec: {{storageClassName: gp3, volumeName: pv-1}}\n"
    )
}

fn node_of<'o>(outcome: &'o Outcome, pod: &PodFacts) -> &'o NodeFacts {
    &outcome.record.nodes[pod.node.expect("the pod has a node").index()]
}

fn first(outcome: &Outcome) -> PodFacts {
    outcome.record.pods.facts(PodId(0))
}

fn zone_of(outcome: &Outcome, pod: &PodFacts) -> String {
    node_of(outcome, pod).zone.expect("the node has a zone").to_string()
}

fn named(outcome: &Outcome, name: &str) -> Vec<PodFacts> {
    outcome.record.pods.iter().filter(|pod| pod.name == name).collect()
}

fn messages(outcome: &Outcome, kind: EventKind) -> Vec<&str> {
    outcome.record.events.iter().filter(|event| event.kind == kind).map(|event| event.message).collect()
}

fn seconds(from: Option<SimTime>, to: Option<SimTime>) -> f64 {
    (to.expect("the later happened") - from.expect("the earlier happened")).as_secs_f64()
}

#[test]
fn a_pod_runs_where_its_volume_is() {
    for zone in ["us-east-1a", "us-east-1b", "us-east-1c"] {
        let manifests = format!("{GP3}{}{}", bound(zone), deployment("", ""));
        let outcome = karpenter(ANYWHERE, "expireAfter: Never", ON_DEMAND, &manifests);
        assert_eq!(zone_of(&outcome, &first(&outcome)), zone);
        assert!(first(&outcome).ready.is_some());
    }
}

#[test]
fn claim_keeps_zone_of_first_pod() {
    let spread = "topologySpreadConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: \
        DoNotSchedule, labelSelector: {matchLabels: {app: db}}}]";
    let manifests = format!("{GP3}{}", stateful(3, "gp3", spread, "podManagementPolicy: Parallel"));
    let outcome = karpenter(ANYWHERE, "expireAfter: 15m", ON_DEMAND, &manifests);
    let mut zones: Vec<String> = Vec::new();
    for name in ["db-0", "db-1", "db-2"] {
        let pods = named(&outcome, name);
        let texts: Vec<String> =
            pods.iter().filter(|pod| pod.node.is_some()).map(|pod| zone_of(&outcome, pod)).collect();
        assert!(texts.len() > 2 && texts.iter().all(|zone| *zone == texts[0]), "{name}: {texts:?}");
        zones.push(texts[0].clone());
    }
    zones.sort();
    assert_eq!(zones, ["us-east-1a", "us-east-1b", "us-east-1c"]);
    assert_eq!(messages(&outcome, EventKind::ProvisioningSucceeded).len(), 3, "each claim is bound once");
    assert!(!outcome.warnings.iter().any(|warning| warning.contains("olume")), "{:?}", outcome.warnings);
}

#[test]
fn volume_in_unusable_zone_keeps_pod_pending() {
    let other = deployment("", "").replace("name: db", "name: web").replace("app: db", "app: web");
    let other = other.replace("volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]", "");
    let late = deployment("nodeSelector: {}", "");
    let manifests = format!("{GP3}{}{other}{late}", bound("us-east-1b"));
    let outcome = karpenter("us-east-1a", "expireAfter: Never", ON_DEMAND, &manifests);
    let pod = outcome.record.pods.iter().find(|pod| pod.name.starts_with("db")).unwrap();
    assert_eq!((pod.node, outcome.record.nodes.len()), (None, 1));
    let refusal = messages(&outcome, EventKind::PodNotPlaced).concat();
    assert!(refusal.contains("incompatible volume requirements"), "{refusal}");
}

#[test]
fn immediate_binding_draws_allowed_zone() {
    for key in ["topology.kubernetes.io/zone", "topology.ebs.csi.aws.com/zone"] {
        let class = GP3.replace("WaitForFirstConsumer", "Immediate")
            + &format!("allowedTopologies: [{{matchLabelExpressions: [{{key: {key}, values: [us-east-1c]}}]}}]\n");
        let manifests = format!("{class}{CLAIM}{}", deployment("", ""));
        let outcome = karpenter(ANYWHERE, "expireAfter: Never", ON_DEMAND, &manifests);
        assert_eq!(zone_of(&outcome, &first(&outcome)), "us-east-1c", "{key}");
        assert!(messages(&outcome, EventKind::ProvisioningSucceeded).is_empty(), "the volume was there before");
    }
}

#[test]
fn nodes_have_ebs_driver_label_where_it_runs() {
    let selecting = deployment("nodeSelector: {topology.ebs.csi.aws.com/zone: us-east-1b}", "");
    let driver = "---\napiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: ebs-csi-node, namespace: kube-system}\nspec:\n  \
                  selector: {matchLabels: {app: ebs}}\n  template:\n    metadata: {labels: {app: ebs}}\n    \
                  spec: {containers: [{name: c, image: i}]}\n";
    let rest = format!("{GP3}{CLAIM}");
    let elsewhere = driver.replace("spec: {containers", "spec: {nodeSelector: {kubernetes.io/os: windows}, containers");
    assert_ne!(elsewhere, driver);
    for (with, runs, told) in [(driver, true, false), ("", false, true), (&elsewhere, false, false)] {
        let outcome = karpenter(ANYWHERE, "expireAfter: Never", ON_DEMAND, &format!("{rest}{selecting}{with}"));
        assert_eq!(first(&outcome).ready.is_some(), runs, "{with}");
        let text = outcome.warnings.texts().join("\n");
        assert_eq!(text.contains("ask for nodes by the label `topology.ebs.csi.aws.com/zone`"), told, "{with}: {text}");
    }
}

#[test]
fn device_absent_from_all_nodes_is_warned_about() {
    let asking = |resource: &str| {
        let pod =
            deployment("", "").replace("memory: 256Mi}}", &format!("memory: 256Mi}}, limits: {{{resource}: 1}}}}"));
        assert!(pod.contains(resource), "{pod}");
        let outcome = karpenter(ANYWHERE, "expireAfter: Never", ON_DEMAND, &format!("{GP3}{CLAIM}{pod}"));
        outcome.warnings.texts().join("\n").contains("no allowed instance type provides `smarter-devices/fuse`")
    };
    assert!(asking("smarter-devices/fuse"));
    assert!(!asking("ephemeral-storage"));
}

#[test]
fn autoscaler_grows_group_in_volume_zone() {
    let group = |zone: &str| {
        format!("{{ name: in-{zone}, instanceType: m5.large, zones: [us-east-1{zone}], min: 0, desired: 0, max: 3 }}")
    };
    let groups = [group("a"), group("b")].join(", ");
    for (zone, name) in [("us-east-1a", "in-a"), ("us-east-1b", "in-b")] {
        let manifests = format!("{GP3}{}{}", bound(zone), deployment("", ""));
        let outcome = run(&autoscaler_scenario(&groups, "expander: least-waste", ""), &manifests);
        let pod = first(&outcome);
        assert!(pod.ready.is_some());
        assert_eq!((zone_of(&outcome, &pod), outcome.record.nodes.len()), (zone.to_owned(), 1));
        assert_eq!(node_of(&outcome, &pod).origin.name().as_str(), name);
    }
}

#[test]
fn node_attaches_up_to_type_volume_limit() {
    let select = "nodeSelector: {node.kubernetes.io/instance-type: m5.4xlarge}";
    let manifests = format!("{GP3}{}", stateful(30, "gp3", select, "podManagementPolicy: Parallel"));
    let outcome = karpenter("us-east-1a", "expireAfter: Never", ON_DEMAND, &manifests);
    let mut on_node = [0_u32; 2];
    for pod in &outcome.record.pods {
        assert!(pod.ready.is_some(), "{} is Ready", pod.name);
        on_node[pod.node.unwrap().index()] += 1;
    }
    assert_eq!(on_node, [25, 5], "Karpenter knows the limit of nodes that are there, not of those it makes");
}

#[test]
fn initial_group_node_has_same_volume_limit() {
    let group = "{ name: workers, instanceType: m5.4xlarge, zones: [us-east-1a], min: 1, desired: 1, max: 3 }";
    let manifests = format!("{GP3}{}", stateful(30, "gp3", "", "podManagementPolicy: Parallel"));
    let on_nodes = |scenario: &str| {
        let outcome = run(scenario, &manifests);
        let mut counts = vec![0_u32; outcome.record.nodes.len()];
        let placed = outcome.record.pods.iter().filter_map(|pod| pod.node);
        placed.for_each(|node| counts[node.index()] += 1);
        counts
    };
    let growing = autoscaler_scenario(group, "", "");
    let fixed =
        growing.replace("name: cas, autoscaler: cluster-autoscaler, flags: {}", "name: fixed, autoscaler: none");
    assert_eq!(on_nodes(&fixed), [25], "five pods wait");
    assert_eq!(on_nodes(&growing), [25, 5], "the autoscaler sees that the node is full");
}

#[test]
fn second_pod_of_exclusive_claim_waits() {
    let claim = CLAIM.replace("ReadWriteOnce", "ReadWriteOncePod");
    let manifests = format!("{GP3}{claim}{}", deployment("", "").replace("replicas: 1", "replicas: 2"));
    let group = "{ name: workers, instanceType: m5.xlarge, zones: [us-east-1a], min: 1, desired: 1, max: 3 }";
    let scaled = "timeline: [{ at: 30m, scale: { workload: default/db, replicas: 1 } }]";
    let outcome = run(&autoscaler_scenario(group, "", ""), &manifests);
    let waiting = outcome.record.pods.iter().filter(|pod| pod.node.is_none()).count();
    assert_eq!((waiting, outcome.record.nodes.len()), (1, 1));
    let refusal = "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode";
    let said = messages(&outcome, EventKind::PodUnschedulable);
    assert!(!said.is_empty() && said.iter().all(|message| message.contains(refusal)), "{said:?}");
    // Of two the one goes that waits.
    let outcome = run(&autoscaler_scenario(group, "", scaled), &manifests);
    assert_eq!(outcome.record.pods.iter().filter(|pod| pod.ready.is_some()).count(), 1);
    let shared = run(&autoscaler_scenario(group, "", ""), &manifests.replace("ReadWriteOncePod", "ReadWriteOnce"));
    assert_eq!(shared.record.pods.iter().filter(|pod| pod.ready.is_some()).count(), 2);
    let old = autoscaler_scenario(group, "", "versions: { kubernetes: \"1.26\" }");
    let old = run(&old, &manifests);
    assert_eq!(old.record.pods.iter().filter(|pod| pod.ready.is_some()).count(), 2);
    assert!(old.warnings.texts().join("\n").contains("asks for `ReadWriteOncePod`"));
}

/// The run of a pod with a volume and a minute to stop whose node expires after ten minutes; gives back the node and the pod.
fn leaving(text: &str, stop: &str, manifests: &str) -> (NodeFacts, PodFacts) {
    let times = format!("{ON_DEMAND}\nworkloads: [{{ name: default/db, shutdown_time: {stop} }}]");
    let outcome = karpenter("us-east-1a", &format!("expireAfter: 10m\n      {text}"), &times, manifests);
    let node = outcome.record.nodes.iter().find(|node| node.end == Some(NodeEnd::Expired)).unwrap().clone();
    let pod = outcome.record.pods.iter().find(|pod| pod.node == first(&outcome).node).unwrap();
    (node, pod)
}

#[test]
fn instance_terminates_after_volume_detach_or_timeout() {
    let with_volume = format!("{GP3}{CLAIM}{}", deployment("", ""));
    let without = deployment("", "").replace("volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]", "");
    let (node, pod) = leaving("", "20s", &without);
    assert!(seconds(pod.removed, node.terminating) < 1.1, "nothing to wait for");
    let (node, pod) = leaving("", "20s", &with_volume);
    let wait = seconds(pod.removed, node.terminating);
    assert!((5.0..6.1).contains(&wait), "detached 5 s after the pod is gone, looked at every second: {wait}");
    assert!(seconds(pod.removed, node.drained) < 1.1, "drained before");
    // Of 22 s for everything the pod takes 20.
    let (node, pod) = leaving("terminationGracePeriod: 22s", "20s", &with_volume);
    let wait = seconds(pod.removed, node.terminating);
    assert!((1.0..3.1).contains(&wait), "the node's time is up: {wait}");
    // A pod that stays holds its volume, and nobody waits for that.
    let stays = format!("{GP3}{CLAIM}{}", deployment("tolerations: [{operator: Exists}]", ""));
    let (node, pod) = leaving("", "20s", &stays);
    assert!(pod.deletion_requested.is_none_or(|at| Some(at) >= node.terminating));
    assert!((5.0..6.1).contains(&seconds(node.deletion_requested, node.terminating)), "the shortest drain");
}

#[test]
fn a_pod_starts_once_its_volume_is_attached() {
    let starts = |manifests: &str| {
        let outcome = karpenter("us-east-1a", "expireAfter: Never", ON_DEMAND, manifests);
        let pod = first(&outcome);
        seconds(pod.scheduled, pod.started)
    };
    let without = deployment("", "").replace("volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]", "");
    let plain = starts(&without);
    let new = starts(&format!("{GP3}{CLAIM}{}", deployment("", "")));
    let there = starts(&format!("{GP3}{}{}", bound("us-east-1a"), deployment("", "")));
    assert!((7.9..8.1).contains(&(new - plain)), "3 s to make it and 5 s to attach it: {}", new - plain);
    assert!((4.9..5.1).contains(&(there - plain)), "5 s to attach it: {}", there - plain);
}

#[test]
fn volume_of_lost_node_frees_after_six_minutes() {
    let spot = "policies: [{ name: only, autoscaler: karpenter, karpenter: { interruption_queue: false } }]\n\
        faults: [{ at: 10m, spot_interruption: { fraction: 100% } }]";
    let outcome = karpenter("us-east-1a", "expireAfter: Never", spot, &format!("{GP3}{}", stateful(1, "gp3", "", "")));
    let pods = named(&outcome, "db-0");
    assert_eq!(pods.len(), 2);
    let (lost, next) = (&pods[0], &pods[1]);
    assert!(lost.removed.is_some_and(|at| at >= minutes(12)));
    assert!(next.scheduled.unwrap() < lost.removed.unwrap() + SimDuration::from_secs(240), "the node is there before");
    let wait = seconds(lost.removed, next.started);
    assert!((365.0..375.0).contains(&wait), "six minutes and the time to attach it: {wait}");
    let refused = messages(&outcome, EventKind::FailedAttachVolume);
    assert!(refused.iter().any(|message| message.contains("Multi-Attach error")), "{refused:?}");
}

#[test]
fn second_pod_of_claim_shares_first_node() {
    let apart = "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: \
        kubernetes.io/hostname, labelSelector: {matchLabels: {app: db}}}]}}";
    let scaled = format!("{ON_DEMAND}\ntimeline: [{{ at: 20m, scale: {{ workload: default/db, replicas: 2 }} }}]");
    for (spec, starts) in [("", true), (apart, false)] {
        let manifests = format!("{GP3}{CLAIM}{}", deployment(spec, ""));
        let outcome = karpenter("us-east-1a", "expireAfter: Never", &scaled, &manifests);
        let pods: Vec<PodFacts> = outcome.record.pods.iter().collect();
        let [first, second] = pods.as_slice() else { panic!("{} pods", pods.len()) };
        assert!(first.ready.is_some());
        assert_eq!((second.node == first.node, second.ready.is_some()), (starts, starts));
        assert_eq!(messages(&outcome, EventKind::FailedAttachVolume).is_empty(), starts);
    }
}

#[test]
fn scaled_down_claims_stay_unless_policy_deletes() {
    let scaled = format!(
        "{ON_DEMAND}\ntimeline: [{{ at: 20m, scale: {{ workload: default/db, replicas: 0 }} }}, \
         {{ at: 30m, scale: {{ workload: default/db, replicas: 1 }} }}]"
    );
    for (retention, made) in [("Retain", 1), ("Delete", 2)] {
        let policy = format!("persistentVolumeClaimRetentionPolicy: {{whenScaled: {retention}}}");
        let manifests = format!("{GP3}{}", stateful(1, "gp3", "", &policy));
        let outcome = karpenter("us-east-1a", "expireAfter: Never", &scaled, &manifests);
        assert_eq!(messages(&outcome, EventKind::ProvisioningSucceeded).len(), made, "{retention}");
    }
}

#[test]
fn claims_below_start_ordinal_are_deleted_as_surplus() {
    let set = |start: u32| {
        let rest =
            format!("ordinals: {{start: {start}}}\n  persistentVolumeClaimRetentionPolicy: {{whenScaled: Delete}}");
        format!("{GP3}{}", stateful(1, "gp3", "", &rest))
    };
    let (first, later) = (format!("{}{}", crate::keda::cluster(0), set(0)), set(1));
    let timeline = "timeline: [{at: 10m, manifests: [later.yaml]}, {at: 20m, manifests: [back.yaml]}]";
    let outcome = crate::keda::run("40m", timeline, &first, &[("later.yaml", &later), ("back.yaml", &set(0))]);
    // Each time the pod of the other ordinal comes, and the claim of the one before is gone.
    assert_eq!(messages(&outcome, EventKind::ProvisioningSucceeded).len(), 3);
    let gone = messages(&outcome, EventKind::PodDeleted);
    assert!(gone.iter().all(|text| text.contains("too many replicas")), "{gone:?}");
}

#[test]
fn what_is_assumed_of_storage_is_a_warning() {
    let warnings = |manifests: &str| {
        karpenter("us-east-1a", "expireAfter: Never", ON_DEMAND, manifests).warnings.texts().join("\n")
    };
    let text = warnings(&stateful(1, "fast", "", ""));
    assert!(text.contains("StorageClass fast is not in the manifests"), "{text}");
    let text = warnings(&deployment("", ""));
    assert!(text.contains("PersistentVolumeClaim data is not in the manifests"), "{text}");
    let text =
        warnings(&format!("{GP3}{}{}", bound("us-east-1a").replace("name: pv-1}", "name: pv-2}"), deployment("", "")));
    assert!(text.contains("the volumes of data are not in the manifests"), "{text}");
    assert!(text.contains("no claim uses pv-2"), "{text}");
    let of_type = |parameters: &str| {
        let class = GP3.replace("provisioner", &format!("parameters: {{{parameters}}}\nprovisioner"));
        warnings(&format!("{class}{}", stateful(1, "gp3", "", "")))
    };
    let refused = "EBS makes no volume of type io2 without I/O operations for data";
    let text = of_type("type: io2");
    assert!(text.contains(refused) && text.contains("`iops` or `iopsPerGB` among the parameters of gp3"), "{text}");
    assert!(!of_type("type: io2, iops: '3000'").contains("I/O operations"));
    let text = of_type("type: gp3, iops: '3000', iopsPerGB: '400'");
    assert!(text.contains("makes no volume for data, as gp3 states both"), "{text}");
    let local = GP3.replace("ebs.csi.aws.com", "rancher.io/local-path");
    let text = warnings(&format!("{local}{CLAIM}{}", deployment("", "")));
    assert!(text.contains("volumes of rancher.io/local-path are taken to be reached from every node"), "{text}");
}

#[test]
fn fields_that_a_release_drops_are_warned_of() {
    let whole = deployment("resources: {requests: {cpu: 1}}", "");
    let sidecar = deployment("initContainers: [{name: s, image: s, restartPolicy: Always}]", "");
    let told = |release: &str, pod: &str| {
        let versions = format!("{ON_DEMAND}\nversions: {{ kubernetes: \"{release}\" }}");
        let outcome = karpenter(ANYWHERE, "expireAfter: Never", &versions, &format!("{GP3}{CLAIM}{pod}"));
        outcome.warnings.texts().join("\n").contains("as if the feature gate were on")
    };
    assert!(told("1.33", &whole) && !told("1.34", &whole));
    assert!(told("1.28", &sidecar) && !told("1.29", &sidecar));
    let spread = |more: &str| {
        let text = "topologySpreadConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: \
            DoNotSchedule, labelSelector: {matchLabels: {app: db}}, ";
        deployment(&format!("{text}{more}}}]"), "")
    };
    for (more, since) in [
        ("minDomains: 1", 27),
        ("matchLabelKeys: [pod-template-hash]", 27),
        ("nodeTaintsPolicy: Honor", 26),
        ("nodeAffinityPolicy: Ignore", 26),
    ] {
        let (before, from) = (format!("1.{}", since - 1), format!("1.{since}"));
        assert!(told(&before, &spread(more)) && !told(&from, &spread(more)), "{more}");
    }
    assert!(!told("1.25", &spread("nodeTaintsPolicy: Ignore")));
    let gated = deployment("schedulingGates: [{name: later}]", "");
    assert!(told("1.26", &gated) && !told("1.27", &gated));
}

/// What the volumes of claims cost: the amounts of their lines, in order.
fn disks(outcome: &Outcome) -> Vec<(SimTime, SimTime, f64)> {
    let lines = outcome.bill.lines.iter().filter(|line| line.item == BillItem::PersistentVolume);
    lines.map(|line| (line.from, line.to, line.amount.as_f64())).collect()
}

#[test]
fn ebs_volumes_are_billed_until_claim_deletion() {
    let end = SimTime::ZERO + SimDuration::from_secs(3_600);
    let retire = "timeline: [{ at: 30m, scale: { workload: db, replicas: 1 } }]";
    let delete = "persistentVolumeClaimRetentionPolicy: {whenScaled: Delete}";
    let of = |class: &str, more: &str, rest: &str| {
        let set = stateful(2, "own", "", rest);
        let class = format!("{}{class}", GP3.replace("name: gp3", "name: own"));
        disks(&karpenter(ANYWHERE, "", &format!("{ON_DEMAND}\n{more}"), &format!("{class}{set}")))
    };
    let kept = of("", retire, "");
    assert!(kept.len() == 2 && kept.iter().all(|disk| disk.1 == end), "{kept:?}");
    // 8 GiB at 0.08 a month, for the time since the pod was bound.
    let hours = (end - kept[0].0).as_secs_f64() / 3_600.0;
    assert!((0.9..1.0).contains(&hours) && (kept[0].2 - 0.64 / 730.0 * hours).abs() < 1e-6, "{kept:?}");
    let deleted = of("", retire, delete);
    assert!(deleted[0].1 == end && deleted[1].1 < end - SimDuration::from_secs(1_700), "{deleted:?}");
    let retained = of("reclaimPolicy: Retain\n", retire, delete);
    assert_eq!((retained.len(), retained[1].1), (2, end));
    let dear = of("parameters: {Type: io2, iops: '1000'}\n", "", "");
    assert!((dear[0].2 / kept[0].2 - 66.0 / 0.64).abs() < 0.01, "{dear:?}");
}

#[test]
fn volume_attributes_class_overrides_storage_class() {
    let class = |driver: &str| {
        format!(
            "---\napiVersion: storage.k8s.io/v1\nkind: VolumeAttributesClass\nmetadata: {{name: fast}}\ndriverName: {driver}\n\
             parameters: {{type: io2, iops: '4000'}}\n"
        )
    };
    let fast = |text: &str| text.replace("storageClassName:", "volumeAttributesClassName: fast, storageClassName:");
    let of_set = format!("{GP3}{}", fast(&stateful(1, "gp3", "", "")));
    let of_claim = format!("{GP3}{}{}", fast(CLAIM), deployment("", ""));
    let more = "spec:\n  capacity: {storage: 8Gi}\n  storageClassName: gp3\n  volumeAttributesClassName: fast\n  csi:";
    let there = bound("us-east-1a").replace("spec:\n  csi:", more);
    let of_volume = format!("{GP3}{there}{}", deployment("", ""));
    // What a month of the volume costs, and what is told of the class.
    let billed = |release: &str, manifests: &str| {
        let more = format!("{ON_DEMAND}\nversions: {{ kubernetes: \"{release}\" }}");
        let outcome = karpenter("us-east-1a", "expireAfter: Never", &more, manifests);
        let lines = outcome.bill.lines.iter().filter(|line| line.item == BillItem::PersistentVolume);
        let rates: Vec<i64> = lines.map(|line| (line.rate.as_f64() * 73_000.0).round() as i64).collect();
        let told = outcome.warnings.texts().join("\n");
        (rates, told)
    };
    for manifests in [&of_set, &of_claim, &of_volume] {
        // 8 GiB at 0.125 and 4,000 operations at 0.065; of gp3 8 GiB at 0.08.
        let (rates, told) = billed("1.34", &format!("{}{manifests}", class("ebs.csi.aws.com")));
        assert_eq!(rates, [26_100], "{manifests}");
        assert!(!told.contains("VolumeAttributesClass") && !told.contains("volumeAttributesClassName"), "{told}");
        for other in [String::new(), class("pd.csi.storage.gke.io")] {
            let (rates, told) = billed("1.34", &format!("{other}{manifests}"));
            assert_eq!(rates, [64], "{manifests}");
            assert!(told.contains("VolumeAttributesClass fast is in no file, or for another driver"), "{told}");
        }
        let (rates, told) = billed("1.30", &format!("{}{manifests}", class("ebs.csi.aws.com")));
        assert_eq!(rates, [64], "{manifests}");
        assert!(told.contains("Kubernetes 1.30 drops `volumeAttributesClassName` of"), "{told}");
    }
}

#[test]
fn existing_volume_with_size_is_billed_from_start() {
    let found = |size: &str| {
        let volume = bound("us-east-1b").replace("  csi:", &format!("{size}  csi:"));
        karpenter(ANYWHERE, "", ON_DEMAND, &format!("{volume}{}", deployment("", "")))
    };
    let sized = found("  capacity: {storage: 100Gi}\n");
    let [(from, to, amount)] = disks(&sized)[..] else { panic!("one volume: {:?}", disks(&sized)) };
    assert_eq!((from, to), (SimTime::ZERO, SimTime::ZERO + SimDuration::from_secs(3_600)));
    assert!((amount - 8.0 / 730.0).abs() < 1e-6, "{amount}");
    let sizeless = found("");
    assert_eq!(disks(&sizeless), []);
    let warned =
        |outcome: &Outcome| outcome.warnings.iter().any(|warning| warning.contains("these volumes are not billed"));
    assert!(warned(&sizeless) && !warned(&sized), "{:?}", sizeless.warnings);
}

/// Eight GiB are asked for, by a set and by a claim of its own.
#[test]
fn impossible_ebs_size_is_warned_about() {
    for (volume_type, refused) in [("gp3", false), ("io2", false), ("st1", true)] {
        for manifests in [stateful(1, "gp3", "", ""), format!("{CLAIM}{}", deployment("", ""))] {
            let class = format!("{GP3}parameters: {{type: {volume_type}}}\n");
            let outcome = karpenter(ANYWHERE, "", ON_DEMAND, &format!("{class}{manifests}"));
            let words = format!("EBS makes no volume of type {volume_type} with 8 GiB for data");
            let warned = outcome
                .warnings
                .iter()
                .any(|warning| warning.contains(&words) && warning.contains("(125 to 16384 GiB)"));
            assert_eq!(warned, refused, "{volume_type}: {:?}", outcome.warnings);
        }
    }
}

#[test]
fn deleted_stateful_set_keeps_claims_by_default() {
    let end = SimTime::ZERO + SimDuration::from_secs(3_600);
    // The claim of the second pod stays when that pod is one too many.
    let steps = "timeline: [{ at: 20m, scale: { workload: db, replicas: 1 } }, \
                 { at: 30m, delete: { kind: StatefulSet, name: default/db } }]";
    let until = |policy: &str| {
        let policy = format!("persistentVolumeClaimRetentionPolicy: {{{policy}}}");
        let manifests = format!("{GP3}{}", stateful(2, "gp3", "", &policy));
        let disks = disks(&karpenter(ANYWHERE, "", &format!("{ON_DEMAND}\n{steps}"), &manifests));
        disks.iter().map(|disk| disk.1).collect::<Vec<_>>()
    };
    assert_eq!(until("whenScaled: Retain"), [end, end]);
    let deleted = until("whenDeleted: Delete");
    assert!(deleted.len() == 2 && deleted.iter().all(|at| (1_800..1_840).contains(&at.as_secs())), "{deleted:?}");
}

/// The template of pods that have an ephemeral volume each.
const EPHEMERAL: &str = "template: {spec: {restartPolicy: Never, volumes: [{name: data, ephemeral: {volumeClaimTemplate: {spec: \
    {accessModes: [ReadWriteOnce], storageClassName: gp3, resources: {requests: {storage: 8Gi}}}}}}], \
    containers: [{name: db, image: db, resources: {requests: {cpu: 100m, memory: 256Mi}}}]}}";

/// A Job or CronJob of pods that run for a minute, with more keys of the scenario.
fn batch(kind: &str, spec: &str, more: &str) -> Outcome {
    let more = format!("{ON_DEMAND}\nworkloads: [{{name: db, run_time: 1m}}]\n{more}");
    let object = format!("---\napiVersion: batch/v1\nkind: {kind}\nmetadata: {{name: db}}\nspec: {{{spec}}}\n");
    karpenter(ANYWHERE, "", &more, &format!("{GP3}{object}"))
}

#[test]
fn ephemeral_volume_lives_as_long_as_job() {
    let end = SimTime::ZERO + SimDuration::from_secs(3_600);
    let of = |rest: &str, step: &str| {
        let outcome = batch("Job", &format!("{rest}{EPHEMERAL}"), step);
        let gone = named(&outcome, "db-00000")[0].removed.unwrap();
        let [(_, until, _)] = disks(&outcome)[..] else { panic!("one volume: {:?}", disks(&outcome)) };
        (gone, until)
    };
    assert_eq!(of("", "").1, end);
    let (gone, until) = of("ttlSecondsAfterFinished: 600, ", "");
    // The end of a Job is in whole seconds.
    assert!((599..=600).contains(&(until - gone).as_secs()));
    let delete = |what: &str| format!("timeline: [{{ at: 30m, delete: {{ {what} }} }}]");
    assert_eq!(of("", &delete("kind: Job, name: default/db")).1.as_secs(), 1_800);
    // Without its node the pod is deleted within a minute, though its Job stays.
    let (_, until) = of("", &delete("kind: NodeClaim, labels: { karpenter.sh/nodepool: default }"));
    assert!((1_840..2_400).contains(&until.as_secs()), "{until}");
}

#[test]
fn job_history_limit_keeps_volumes_of_jobs() {
    let end = SimTime::ZERO + SimDuration::from_secs(3_600);
    for (limit, kept) in [("", 3), ("successfulJobsHistoryLimit: 1, ", 1)] {
        let spec = format!("schedule: '*/5 * * * *', {limit}jobTemplate: {{spec: {{{EPHEMERAL}}}}}");
        let disks = disks(&batch("CronJob", &spec, ""));
        assert_eq!((disks.len(), disks.iter().filter(|disk| disk.1 == end).count()), (11, kept), "{disks:?}");
    }
}
