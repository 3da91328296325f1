//! Volumes and claims that a timeline applies: they are there, and cost, from their step on; and volumes that somebody has made by hand.

use nodecast::cloud::BillItem;
use nodecast::simulation::Outcome;
use nodecast::world::record::EventKind;

/// A run without a node autoscaler in three zones.
fn run(duration: &str, rest: &str, manifests: &str, others: &[(&str, &str)]) -> Outcome {
    let rest = format!("cluster: {{zones: [us-east-1a, us-east-1b, us-east-1c]}}\n{rest}");
    crate::keda::run(duration, &rest, manifests, others)
}

const GROUPS: &str = "apiVersion: eksctl.io/v1alpha5\nkind: ClusterConfig\nmetadata: {name: c, region: us-east-1}\n\
    managedNodeGroups: [{name: ng, instanceType: m5.large, desiredCapacity: 3, minSize: 3, maxSize: 3, availabilityZones: [us-east-1a, us-east-1b, us-east-1c]}]\n";

/// The class of the claims; `mode` is when it makes volumes, and `expands` whether they grow.
fn class(mode: &str, expands: bool) -> String {
    format!(
        "---\napiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {{name: fast}}\nprovisioner: ebs.csi.aws.com\n\
         volumeBindingMode: {mode}\nallowVolumeExpansion: {expands}\nparameters: {{type: gp3}}\n"
    )
}

fn claim(gib: u32, class: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: data}}\nspec: {{accessModes: [ReadWriteOnce], \
         storageClassName: {class}, resources: {{requests: {{storage: {gib}Gi}}}}}}\n"
    )
}

const DEPLOYMENT: &str = "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: db}\nspec:\n  replicas: 1\n  \
    selector: {matchLabels: {app: db}}\n  template:\n    metadata: {labels: {app: db}}\n    spec:\n      \
    containers: [{name: db, image: db, resources: {requests: {cpu: 100m, memory: 256Mi}}}]\n      \
    volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]\n";

/// From when to when volumes are billed, in seconds, and for how much an hour in millionths.
fn billed(outcome: &Outcome) -> Vec<(i64, i64, i64)> {
    let lines = outcome.bill.lines.iter().filter(|line| line.item == BillItem::PersistentVolume);
    lines.map(|line| (line.from.as_secs(), line.to.as_secs(), line.rate.as_nanos() / 1_000)).collect()
}

/// What a GiB of gp3 costs for an hour, times so many, in millionths.
fn hourly(gib: i64) -> i64 {
    gib * 80_000 / 730
}

fn ready(outcome: &Outcome) -> Vec<Option<i64>> {
    let this_pod = outcome.record.pods.iter().filter(|pod| pod.name.starts_with("db"));
    this_pod.map(|pod| pod.ready.map(|at| at.as_secs())).collect()
}

#[test]
fn timeline_claim_costs_from_its_step() {
    let first = format!("{GROUPS}{}{DEPLOYMENT}", class("Immediate", true));
    let rest = "timeline: [{at: 2h, manifests: [claim.yaml]}]";
    let outcome = run("3h", rest, &first, &[("claim.yaml", &claim(2_000, "fast"))]);
    assert_eq!(billed(&outcome), [(7_200, 10_800, hourly(2_000))]);
    let [Some(at)] = ready(&outcome)[..] else { panic!("{:?}", ready(&outcome)) };
    assert!((7_200..7_260).contains(&at), "{at}");
    let mut events = outcome.record.events.iter().filter(|event| event.kind == EventKind::PodUnschedulable);
    assert!(events.any(|event| event.message.contains("persistentvolumeclaim \"data\" not found")));
}

#[test]
fn claim_expands_if_class_allows() {
    let rest = "timeline: [{at: 2h, manifests: [claim.yaml]}]";
    let edited = |expands: bool, later: &str| {
        let first = format!("{GROUPS}{}{}{DEPLOYMENT}", class("WaitForFirstConsumer", expands), claim(100, "fast"));
        run("3h", rest, &first, &[("claim.yaml", later)])
    };
    let outcome = edited(true, &claim(2_000, "fast"));
    let [before, after] = billed(&outcome)[..] else { panic!("{:?}", billed(&outcome)) };
    assert!(before.0 < 300 && (before.1, before.2) == (7_200, hourly(100)), "{before:?}");
    assert_eq!(after, (7_200, 10_800, hourly(2_000)));
    for (expands, later, why) in [
        (false, claim(2_000, "fast"), "does not let a claim grow"),
        (true, claim(50, "fast"), "cannot shrink"),
        (true, claim(100, "other"), "`storageClassName` cannot change"),
    ] {
        let outcome = edited(expands, &later);
        assert_eq!(billed(&outcome).len(), 1, "{why}");
        assert!(outcome.warnings.iter().any(|text| text.contains(why)), "{why}: {:?}", outcome.warnings);
    }
    let same = edited(true, &claim(100, "fast"));
    assert_eq!(billed(&same).len(), 1);
    assert!(!same.warnings.iter().any(|text| text.contains("PersistentVolumeClaim")), "{:?}", same.warnings);
}

#[test]
fn recreated_claim_gets_new_volume() {
    let objects = format!("{}{DEPLOYMENT}", claim(100, "fast"));
    let first = format!("{GROUPS}{}{objects}", class("WaitForFirstConsumer", true));
    let rest = "timeline:\n- {at: 1h, delete: {kind: Deployment, name: default/db}}\n\
                - {at: 1h, delete: {kind: PersistentVolumeClaim, name: default/data}}\n- {at: 2h, manifests: [again.yaml]}";
    let outcome = run("3h", rest, &first, &[("again.yaml", &objects)]);
    let [before, after] = billed(&outcome)[..] else { panic!("{:?}", billed(&outcome)) };
    assert!((3_600..3_700).contains(&before.1), "{before:?}");
    assert!((7_200..7_300).contains(&after.0) && after.1 == 10_800, "{after:?}");
    assert_eq!(ready(&outcome).iter().filter(|at| at.is_some()).count(), 2);
}

#[test]
fn reserved_volume_binds_its_claim_and_pod() {
    let volume = |zone: &str, kept: &str| {
        format!(
            "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {{name: old}}\nspec:\n  capacity: {{storage: 100Gi}}\n  storageClassName: \"\"\n  \
             claimRef: {{namespace: default, name: {kept}}}\n  csi: {{driver: ebs.csi.aws.com, volumeHandle: vol-1}}\n  nodeAffinity: {{required: \
             {{nodeSelectorTerms: [{{matchExpressions: [{{key: topology.kubernetes.io/zone, operator: In, values: [{zone}]}}]}}]}}}}\n"
        )
    };
    let with = |volume: &str| run("1h", "", &format!("{GROUPS}{volume}{}{DEPLOYMENT}", claim(100, "\"\"")), &[]);
    let asks = |outcome: &Outcome| outcome.warnings.iter().any(|text| text.contains("makes by hand"));
    for zone in ["us-east-1a", "us-east-1b", "us-east-1c"] {
        let outcome = with(&volume(zone, "data"));
        assert_eq!(billed(&outcome), [(0, 3_600, hourly(100))]);
        let pod = outcome.record.pods.iter().find(|pod| pod.name.starts_with("db")).unwrap();
        assert_eq!(outcome.record.nodes[pod.node.unwrap().index()].zone.unwrap().as_str(), zone);
        assert!(!asks(&outcome), "{:?}", outcome.warnings);
    }
    assert!(asks(&with(&volume("us-east-1a", "other"))), "kept for another");
    assert!(asks(&with("")));
}

/// A cluster under Karpenter in two zones, with these objects.
fn karpenter(duration: &str, rest: &str, objects: &str) -> Outcome {
    let scenario = format!(
        "name: volumes\nregion: us-east-1\nduration: {duration}\ncluster: {{ zones: [us-east-1a, us-east-1b] }}\nmanifests: [manifests.yaml]\n\
         ec2: {{ capacity: infinite, failures: none }}\npolicies: [{{ name: only, autoscaler: karpenter }}]\n{rest}\n"
    );
    let pool = "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: default}\nspec:\n  \
        disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: Never}\n  template:\n    spec:\n      expireAfter: Never\n      \
        nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}\n      requirements:\n      \
        - {key: node.kubernetes.io/instance-type, operator: In, values: [m5.large]}\n      \
        - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}\n\
        ---\napiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {name: default}\nspec: \
        {amiSelectorTerms: [{alias: al2023@v20260101}]}\n";
    crate::node_groups::run(&scenario, &format!("{pool}{objects}"))
}

#[test]
fn stateful_pods_are_missing_until_successors_are_ready() {
    let set = "---\napiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: db}\nspec:\n  replicas: 4\n  podManagementPolicy: Parallel\n  \
        selector: {matchLabels: {app: db}}\n  volumeClaimTemplates:\n  - metadata: {name: data}\n    \
        spec: {accessModes: [ReadWriteOnce], storageClassName: fast, resources: {requests: {storage: 8Gi}}}\n  \
        template:\n    metadata: {labels: {app: db}}\n    spec:\n      \
        topologySpreadConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule, \
        labelSelector: {matchLabels: {app: db}}}]\n      \
        containers: [{name: db, image: db, resources: {requests: {cpu: 500m, memory: 1Gi}}}]\n";
    let outage = "faults: [{ at: 30m, for: 40m, zone_outage: { zone: us-east-1a, mode: power } }]";
    let outcome = karpenter("2h", outage, &format!("{}{set}", class("WaitForFirstConsumer", false)));
    let churn = nodecast::report::Summary::from_outcome(&outcome).churn;
    assert_eq!(churn.evictions, 2);
    // Forty minutes each, and what it takes to notice that the power is back, and to start.
    assert!((4_500.0..5_700.0).contains(&churn.ready_time_lost_seconds), "{}", churn.ready_time_lost_seconds);
}

#[test]
fn rollout_blocked_by_old_volume_is_reported() {
    // One pod to a node, so that the new one gets a node of its own.
    let alone =
        |image: &str| DEPLOYMENT.replace("cpu: 100m", "cpu: 1200m").replace("image: db", &format!("image: {image}"));
    let objects =
        |deployment: &str| format!("{}{}{deployment}", class("WaitForFirstConsumer", false), claim(100, "fast"));
    let told = |strategy: &str| {
        let change = |image: &str| alone(image).replace("replicas: 1", &format!("replicas: 1\n  {strategy}"));
        // All nodes where the volume is.
        let groups = GROUPS.replace("us-east-1a, us-east-1b, us-east-1c", "us-east-1a");
        let manifests = format!("{groups}{}", objects(&change("one")));
        let outcome =
            run("2h", "timeline: [{at: 30m, manifests: [two.yaml]}]", &manifests, &[("two.yaml", &change("two"))]);
        outcome.warnings.texts().into_iter().find(|text| text.contains("is stuck at the end"))
    };
    let text = told("").expect("it is told");
    assert!(text.contains("Deployment default/db") && text.contains("the volume of the claim data"), "{text}");
    assert_eq!(told("strategy: {type: Recreate}"), None);
}
