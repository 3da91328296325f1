//! Causes of surprises, as answers name them: limits that were reached, input without effect, workloads behind a number.

use nodecast::report::Summary;
use nodecast::report::summary::LimitFigures;

use crate::cli::Place;
use crate::keda::{changes, cluster, deployment, run, scaled_object};

/// A NodePool of one instance type with these limits, and pods of a CPU each.
fn limited(limits: &str, replicas: u32) -> String {
    format!(
        "\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {{name: small}}
spec:
  limits: {{{limits}}}
  template:
    spec:
      nodeClassRef: {{group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}}
      requirements:
        - {{key: node.kubernetes.io/instance-type, operator: In, values: [m5.large]}}
        - {{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}}
---
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {{name: default}}
spec: {{amiSelectorTerms: [{{alias: al2023@latest}}], role: node}}
{}",
        deployment("batch", replicas).replace("cpu: 100m", "cpu: \"1\"")
    )
}

/// The summary of a run in this place, with what the program printed.
fn summary(place: &Place) -> (Summary, String) {
    let (out, err, code) = place.nodecast(&["run", "scenario.yaml", "--out", "report"]);
    assert_eq!(code, Some(0), "{err}");
    let text = std::fs::read_to_string(place.path("report/summary.json")).unwrap();
    (serde_json::from_str(&text).unwrap(), out)
}

fn karpenter(manifests: &str, rest: &str) -> Place {
    let place = Place::new();
    place.put("cluster.yaml", manifests);
    place.put(
        "scenario.yaml",
        &format!(
            "name: surprise\nregion: us-east-1\nduration: 1h\nversions: {{ karpenter: v1.13 }}\nmanifests: [cluster.yaml]\n\
             ec2: {{ failures: none }}\n{rest}"
        ),
    );
    place
}

#[test]
fn reached_node_pool_limit_names_waiting_pods() {
    // An m5.large has two CPUs, and the kubelet keeps some: one pod each.
    for (limits, resource, amount, waiting) in
        [("cpu: 6, memory: 400Gi", "cpu", "6", 2), ("cpu: 100, memory: 17Gi", "memory", "17Gi", 3)]
    {
        let place = karpenter(&limited(limits, 5), "timeline: [{at: 40m, scale: {workload: batch, replicas: 1}}]\n");
        let (summary, out) = summary(&place);
        let [limit] = summary.limits_reached.as_slice() else { panic!("{limits}: {:?}", summary.limits_reached) };
        let LimitFigures { kind, name, pods, .. } = limit;
        assert_eq!((kind.as_str(), name.as_str()), ("node_pool", "small"), "{limits}");
        // The scheduler may give a node that was launched for one pod to another.
        assert!(pods.is_some_and(|pods| (waiting..=waiting + 1).contains(&pods)), "{limits}: {pods:?}");
        assert_eq!((limit.resource.as_str(), limit.limit.as_deref()), (resource, Some(amount)));
        assert!(limit.used_share.is_some_and(|share| (0.7..=1.0).contains(&share)), "{limit:?}");
        // From the first pass on until somebody wants fewer pods.
        assert!(
            limit.from_seconds < 60.0 && (limit.from_seconds + limit.for_seconds - 2_400.0).abs() < 60.0,
            "{limit:?}"
        );
        assert!(out.contains(&format!("limit reached: NodePool small, {resource} {amount} (")), "{out}");
        let page = std::fs::read_to_string(place.path("report/report.html")).unwrap().replace('\u{a0}', " ");
        assert!(page.contains("Limits reached") && page.contains(&format!("NodePool small, {resource} {amount} (")));
    }
    let (summary, out) = summary(&karpenter(&limited("cpu: 100, memory: 400Gi", 5), ""));
    assert!(summary.limits_reached.is_empty() && !out.contains("limit reached"), "{out}");
}

#[test]
fn reached_limit_on_nodes_is_named() {
    let steps = "timeline: [{at: 20m, scale: {workload: batch, replicas: 5}}]\n";
    let (summary, _) = summary(&karpenter(&limited("cpu: 100, nodes: 3", 3), steps));
    let [limit] = summary.limits_reached.as_slice() else { panic!("{:?}", summary.limits_reached) };
    assert_eq!((limit.resource.as_str(), limit.limit.as_deref(), limit.used_share), ("nodes", Some("3"), Some(1.0)));
    assert_eq!(limit.pods, Some(2));
    assert!((1_200.0..1_230.0).contains(&limit.from_seconds) && limit.for_seconds > 2_300.0, "{limit:?}");
}

#[test]
fn limit_reached_only_in_warm_up_is_unreported() {
    let steps = "warm_up: 30m\ntimeline: [{at: 10m, scale: {workload: batch, replicas: 1}}]\n";
    let (summary, _) = summary(&karpenter(&limited("cpu: 6", 5), steps));
    assert_eq!(summary.limits_reached, []);
}

#[test]
fn reached_group_maximum_named_where_pods_fit() {
    let group = |name: &str, rest: &str| {
        format!("{{name: {name}, instanceType: m5.large, minSize: 1, desiredCapacity: 1, {rest}}}")
    };
    let taint = "maxSize: 1, taints: [{key: only, value: system, effect: NoSchedule}]";
    let manifests = format!(
        "apiVersion: eksctl.io/v1alpha5\nkind: ClusterConfig\nmetadata: {{name: c, region: us-east-1}}\n\
         managedNodeGroups: [{}, {}]\n{}",
        group("workers", "maxSize: 2"),
        group("system", taint),
        deployment("batch", 5).replace("cpu: 100m", "cpu: \"1\"")
    );
    let (summary, out) = summary(&karpenter(&manifests, "policies: [{name: cas, autoscaler: cluster-autoscaler}]\n"));
    let [limit] = summary.limits_reached.as_slice() else { panic!("{:?}", summary.limits_reached) };
    assert_eq!(
        (limit.kind.as_str(), limit.name.as_str(), limit.limit.as_deref()),
        ("node_group", "workers", Some("2"))
    );
    // Three, and the one that waited for the last node meanwhile.
    assert_eq!(limit.pods, Some(4));
    assert!(out.contains("node group workers, nodes 2: 4 pods waited"), "{out}");
}

#[test]
fn quota_that_refuses_launches_is_named() {
    let (summary, out) =
        summary(&karpenter(&limited("cpu: 100", 5), "faults: [{ at: 0s, quota: { class: standard, vcpus: 4 } }]\n"));
    let quota = summary.limits_reached.iter().find(|limit| limit.kind == "vcpu_quota").expect("a quota");
    assert!(quota.name == "on-demand" && quota.pods.is_none() && quota.refused_launches.is_some_and(|count| count > 0));
    assert!(out.contains("vCPU quota for On-Demand: "), "{out}");
}

const CRON: &str =
    "{type: cron, metadata: {timezone: UTC, start: 30 2 * * *, end: 30 3 * * *, desiredReplicas: \"6\"}}";
const VALUES: &str = "{type: external, metadata: {scalerAddress: \"q:9090\", targetValue: \"5\"}}";

/// The time at the maximum of six replicas and when it began, by these triggers and values; runs begin at two o'clock.
fn at_max(triggers: &str, values: &str) -> (f64, Option<f64>) {
    let rest = format!("external_metrics: [{{scaler: \"q:9090\", values: [{values}]}}]\n");
    let object = format!("  minReplicaCount: 1\n  maxReplicaCount: 6\n  triggers: [{triggers}]\n");
    let outcome = run("3h", &rest, &format!("{}{}", cluster(1), scaled_object(&object)), &[]);
    assert_eq!(changes(&outcome).iter().map(|change| change.3).max(), Some(6), "it gets there in any case");
    let summary = Summary::from_outcome(&outcome);
    let [autoscaler] = summary.availability.autoscalers.as_slice() else { panic!("one autoscaler") };
    (autoscaler.at_max_seconds, autoscaler.at_max_from_seconds)
}

#[test]
fn maximum_that_calendar_asks_for_is_not_reached() {
    let low = "{at: 0s, value: 3}";
    assert_eq!(at_max(&format!("{CRON}, {VALUES}"), low), (0.0, None));
    assert_eq!(at_max(CRON, low), (0.0, None));
}

#[test]
fn maximum_requested_by_load_is_reported_despite_calendar() {
    let high = "{at: 0s, value: 3}, {at: 45m, value: 80}, {at: 1h, value: 3}";
    let (seconds, from) = at_max(&format!("{CRON}, {VALUES}"), high);
    // The calendar has it there from half past two on; load asks for as many for a quarter of an hour and a poll.
    assert!(from.is_some_and(|from| (2_700.0..2_790.0).contains(&from)), "{from:?}");
    assert!(seconds >= 890.0, "{seconds}");
    let (alone, from) = at_max(VALUES, high);
    assert!(alone > 800.0 && from.is_some_and(|from| (2_700.0..2_820.0).contains(&from)), "{alone} {from:?}");
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn fault_that_strikes_nothing_warns() {
    let said = |faults: &str| {
        let (summary, _) = summary(&karpenter(&limited("cpu: 100", 2), &format!("faults: [{faults}]\n")));
        summary.warnings.texts().into_iter().filter(|text| text.contains("fault")).collect::<Vec<_>>()
    };
    for fault in [
        "{ at: 20m, spot_interruption: { fraction: 50%, zone: us-east-1b } }",
        "{ at: 20m, node_failure: { count: 2, family: c7g } }",
        "{ at: 40m, for: 5m, insufficient_capacity: { family: m5 } }",
        "{ at: 40m, for: 5m, slow_boot: { factor: 3 } }",
        "{ at: 40m, for: 5m, price_shock: { factor: 2 } }",
        "{ at: 0s, lost_notices: { probability: 50% } }",
    ] {
        let found = said(fault);
        assert!(found.len() == 1 && found[0].contains("changed nothing"), "{fault}: {found:?}");
    }
    for fault in [
        "{ at: 20m, node_failure: { count: 1 } }",
        "{ at: 20m, node_failure: { count: 0 } }",
        "{ at: 0s, for: 30m, slow_boot: { factor: 3 } }",
    ] {
        assert_eq!(said(fault), [] as [&str; 0], "{fault}");
    }
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn diff_without_any_difference_says_so() {
    let place = karpenter(&limited("cpu: 100", 2), "replications: 2\n");
    let text = std::fs::read_to_string(place.path("scenario.yaml")).unwrap();
    // A fault when nothing is launched any more.
    place.put("later.yaml", &(text.clone() + "faults: [{ at: 50m, for: 5m, slow_boot: { factor: 3 } }]\n"));
    place.put("larger.yaml", &text.replace("cluster.yaml", "larger-cluster.yaml"));
    place.put("larger-cluster.yaml", &limited("cpu: 100", 4));
    let said = "have the same events in all 2 replications: what differs between them changed nothing in this run.";
    let diff = |after: &str| {
        let (out, err, code) = place.nodecast(&["diff", "scenario.yaml", after]);
        assert_eq!(code, Some(0), "{err}");
        out.replace('\n', " ")
    };
    assert!(!diff("larger.yaml").contains("have the same events"));
    let _ = diff("later.yaml");
    // More room below a limit that is not reached.
    place.put("roomy.yaml", &text.replace("cluster.yaml", "roomy-cluster.yaml"));
    place.put("roomy-cluster.yaml", &limited("cpu: 200", 2));
    let out = diff("roomy.yaml");
    assert!(out.contains(said), "{out}");
}

#[test]
fn job_that_ends_within_warm_up_is_named() {
    let job = |name: &str| {
        format!(
            "---\napiVersion: batch/v1\nkind: Job\nmetadata: {{name: {name}, namespace: etl}}\nspec:\n  template:\n    spec:\n      \
             restartPolicy: Never\n      containers: [{{name: c, image: c, resources: {{requests: {{cpu: 100m}}}}}}]\n"
        )
    };
    let manifests = format!("{}{}", limited("cpu: 100", 1), job("load"));
    let times = "workloads: [{ name: etl/load, run_time: 5m }]\n";
    let said = "Job etl/load runs within the warm-up of 30m only";
    let with = |rest: &str| summary(&karpenter(&manifests, &format!("{times}{rest}"))).0;
    let early = with("warm_up: 30m\n");
    assert_eq!(early.warnings.texts().iter().filter(|text| text.contains(said)).count(), 1, "{:?}", early.warnings);
    assert_eq!(early.jobs.map(|jobs| (jobs.complete, jobs.complete_in_warm_up)), Some((1, 1)));
    for rest in ["", "warm_up: 2m\n"] {
        let summary = with(rest);
        assert!(
            !summary.warnings.texts().iter().any(|text| text.contains("within the warm-up")),
            "{:?}",
            summary.warnings
        );
        assert_eq!(summary.jobs.map(|jobs| jobs.complete_in_warm_up), Some(0));
    }
}

#[test]
fn diff_names_workloads_with_zero_ready_replicas() {
    let place = karpenter(&limited("cpu: 100", 2), "warm_up: 10m\n");
    let text = std::fs::read_to_string(place.path("scenario.yaml")).unwrap();
    place.put("failing.yaml", &(text + "faults: [{ at: 20m, node_failure: { fraction: 100% } }]\n"));
    let (out, err, code) = place.nodecast(&["diff", "scenario.yaml", "failing.yaml", "--replications", "2"]);
    assert_eq!(code, Some(0), "{err}");
    let out = out.split_whitespace().collect::<Vec<_>>().join(" ");
    let said = "Workloads with zero Ready replicas at some time: now: none; with the change: default/batch for ";
    assert!(out.contains(said), "{out}");
    let (out, err, code) = place.nodecast(&["diff", "failing.yaml", "failing.yaml", "--replications", "1"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(!out.contains("zero Ready replicas at some time"), "{out}");
}

/// A workload whose memory fills nodes and whose replicas follow its CPU in percent of requests, with another that nothing scales.
const SIZED: &str = "
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: api, namespace: shop}
spec:
  replicas: 5
  selector: {matchLabels: {app: api}}
  template:
    metadata: {labels: {app: api}}
    spec:
      containers: [{name: app, image: app, resources: {requests: {cpu: 1900m, memory: 6Gi}}}]
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: api, namespace: shop}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: api}
  minReplicas: 2
  maxReplicas: 50
  metrics: [TARGET]
";

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn rightsize_names_autoscalers_that_make_it_more_expensive() {
    let usage = "usage:\n  - { workload: shop/api, per: workload, cpu: { constant: 4 } }\n  - { workload: shop/api, memory: { constant: 6000 } }\n";
    let answer = |target: &str| {
        let manifests = limited("cpu: 1000", 1).replace("m5.large", "m5.xlarge") + &SIZED.replace("TARGET", target);
        let place = karpenter(&manifests, &format!("{usage}policies: [{{name: only, autoscaler: karpenter}}]\n"));
        let arguments =
            ["rightsize", "scenario.yaml", "--set", "duration=25h", "--replications", "1", "--write", "patches"];
        let (out, err, code) = place.nodecast(&arguments);
        assert_eq!(code, Some(0), "{err}");
        let json = std::fs::read_to_string(place.path("patches/rightsizing.json")).unwrap();
        let answer: nodecast::recommend::rightsizing::RightSizing = serde_json::from_str(&json).unwrap();
        (answer, out.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    let cpu = |target: &str| format!("{{type: Resource, resource: {{name: cpu, target: {{{target}}}}}}}");
    let (shared, out) = answer(&cpu("type: Utilization, averageUtilization: 50"));
    let recommended = &shared.sizings[1];
    assert!(recommended.against_today.as_ref().is_some_and(|paired| paired.difference.mean > 0.0), "{recommended:?}");
    let [more] = recommended.more_replicas.as_slice() else { panic!("{:?}", recommended.more_replicas) };
    assert!(more.workload == "shop/api" && more.replicas > 1.2 * more.replicas_today, "{more:?}");
    assert!(shared.sizings[0].more_replicas.is_empty());
    assert!(out.contains("Requests (recommended (VPA)) cost more because autoscalers compare use with them"), "{out}");
    assert!(out.contains("mean replicas: shop/api "), "{out}");
    // A target that does not depend on requests.
    let (fixed, out) = answer(&cpu("type: AverageValue, averageValue: 950m"));
    assert!(fixed.sizings.iter().all(|sizing| sizing.more_replicas.is_empty()));
    assert!(!out.contains("cost more because"), "{out}");
}
