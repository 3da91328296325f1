//! What goes wrong with answers of a Prometheus, one test each: stores of several clusters, replicas, labels that targets take
//! over, upgrades, owners that are late, counters and ingresses that tell half the truth.

#![allow(clippy::unwrap_used)] // a test that cannot set itself up has failed wherever that happens

use std::path::Path;

use nodecast_observed::observation::{Grade, Observation};
use nodecast_observed::prometheus::{Answers, Plan, Query, QueryList, import};

const START: i64 = 1_791_849_600;

/// A folder of answers: each with its role, its step, and the series (labels, and samples by seconds from the begin of an hour).
struct Folder {
    folder: tempfile::TempDir,
    list: QueryList,
}

impl Folder {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), list: QueryList::default() }
    }

    fn put(mut self, role: &str, step: i64, series: &[(&str, &[(i64, f64)])]) -> Self {
        self.with_query(role, "up[5m]", step, series, "");
        self
    }

    fn with_query(&mut self, role: &str, query: &str, step: i64, series: &[(&str, &[(i64, f64)])], more: &str) {
        let result: Vec<String> = series
            .iter()
            .map(|(labels, samples)| {
                let values: Vec<String> =
                    samples.iter().map(|(at, value)| format!("[{},\"{value}\"]", START + at)).collect();
                format!("{{\"metric\":{{{labels}}},\"values\":[{}]}}", values.join(","))
            })
            .collect();
        let file = format!("{role}.json");
        let text =
            format!(r#"{{"status":"success"{more},"data":{{"resultType":"matrix","result":[{}]}}}}"#, result.join(","));
        std::fs::write(self.folder.path().join(&file), text).unwrap();
        self.list.queries.push(Query { file, query: query.to_owned(), start: START, end: START + 3_600, step });
    }

    fn import(&self) -> Result<Observation, String> {
        std::fs::write(self.folder.path().join("queries.json"), self.list.to_json()).unwrap();
        import(&Answers::read(self.folder.path()).map_err(|error| error.to_string())?)
            .map_err(|error| format!("{error}; {}", error.way_out().unwrap_or_default()))
    }
}

const OWNERS: &[(&str, &[(i64, f64)])] = &[
    (
        r#""namespace":"shop","pod":"web-7d9f8c6b5-abcde","owner_kind":"ReplicaSet","owner_name":"web-7d9f8c6b5""#,
        &[(3_600, 1.0)],
    ),
    (r#""namespace":"shop","pod":"lone","owner_kind":"","owner_name":"""#, &[(3_600, 1.0)]),
];

#[test]
fn a_store_of_several_clusters_is_refused() {
    let clusters: &[(&str, &[(i64, f64)])] = &[(r#""cluster":"a""#, &[(0, 3.0)]), (r#""cluster":"b""#, &[(0, 2.0)])];
    let error = Folder::new().put("clusters", 1_800, clusters).import().unwrap_err();
    assert_eq!(error, "the store holds several clusters: a, b; choose one: --match 'cluster=\"a\"'");
    let import = Folder::new().put("clusters", 1_800, &clusters[..1]).import().unwrap();
    assert_eq!(import.about.cluster, ["cluster=\"a\""]);
}

#[test]
fn prometheus_replicas_are_rejected_until_deduplicated() {
    let two: &[(&str, &[(i64, f64)])] =
        &[(r#""prometheus_replica":"p-0""#, &[(0, 9.0)]), (r#""prometheus_replica":"p-1""#, &[(0, 9.0)])];
    let error = Folder::new().put("replicas", 1_800, two).import().unwrap_err();
    assert!(
        error.contains("every sum would count twice") && error.contains("--replica-label prometheus_replica"),
        "{error}"
    );
    assert!(Folder::new().put("replicas", 1_800, &[("", &[(0, 9.0)])]).import().is_ok());
}

#[test]
fn target_labels_do_not_hide_series_labels() {
    let import = Folder::new()
        .put(
            "replicas_wanted",
            60,
            &[(r#""namespace":"monitoring","exported_namespace":"shop","deployment":"web""#, &[(0, 3.0)])],
        )
        .import()
        .unwrap();
    assert_eq!(
        (&*import.workloads.as_ref().unwrap()[0].workload, import.workloads.as_ref().unwrap()[0].replicas_desired),
        ("shop/web", Some(3))
    );
}

#[test]
fn ownerless_replica_set_joins_deployment_by_name() {
    let cpu: &[(&str, &[(i64, f64)])] = &[
        (r#""namespace":"shop","pod":"web-7d9f8c6b5-abcde""#, &[(0, 0.5), (300, 0.25)]),
        (r#""namespace":"shop","pod":"lone""#, &[(0, 1.0)]),
        (r#""namespace":"shop","pod":"nobody-knows""#, &[(0, 1.0)]),
    ];
    let import = Folder::new().put("owners", 3_600, OWNERS).put("cpu_by_pod", 300, cpu).import().unwrap();
    let used: Vec<(&str, i64, Option<f64>)> = import
        .workloads
        .iter()
        .flatten()
        .map(|workload| (&*workload.workload, workload.at.as_secs(), workload.cpu_used_milli))
        .collect();
    assert_eq!(used, [("shop/lone", 0, Some(1_000.0)), ("shop/web", 0, Some(500.0)), ("shop/web", 300, Some(250.0))]);
    assert!(
        import.about.warnings.iter().any(|text| text.contains("1 pod has no known owner")),
        "{:?}",
        import.about.warnings
    );
}

#[test]
fn invalid_unordered_and_duplicate_samples_do_no_harm() {
    let pod = r#""namespace":"shop","pod":"lone""#;
    let (nan, infinite) = (f64::NAN, f64::INFINITY);
    let cpu: &[(&str, &[(i64, f64)])] =
        &[(pod, &[(900, 0.25), (0, 0.5), (300, nan), (600, infinite), (900, 0.25), (1_200, 0.75)])];
    let import = Folder::new().put("owners", 3_600, OWNERS).put("cpu_by_pod", 300, cpu).import().unwrap();
    let used: Vec<(i64, Option<f64>)> = import
        .workloads
        .iter()
        .flatten()
        .map(|workload| (workload.at.as_secs(), workload.cpu_used_milli))
        .filter(|pair| pair.1.is_some())
        .collect();
    assert_eq!(used, [(0, Some(500.0)), (900, Some(250.0)), (1_200, Some(750.0))]);
    // Two values of one instant are no repair but a flaw: which of them holds nobody knows.
    let torn: &[(&str, &[(i64, f64)])] = &[(pod, &[(0, 0.5), (0, 0.75)])];
    let told = Folder::new().put("owners", 3_600, OWNERS).put("cpu_by_pod", 300, torn).import().unwrap_err();
    assert!(told.contains("cpu_by_pod"), "{told}");
}

#[test]
fn request_cost_uses_increases_of_nearest_source() {
    let pod = r#""namespace":"shop","pod":"web-7d9f8c6b5-abcde""#;
    let mesh = r#""destination_workload_namespace":"shop","destination_workload":"web""#;
    let folder = Folder::new()
        .put("owners", 3_600, OWNERS)
        .put("cpu_by_pod", 300, &[(pod, &[(0, 0.9)])])
        .put("cpu_increase_by_pod", 3_600, &[(pod, &[(3_600, 2_600.0)])])
        .put("requests_istio", 60, &[(mesh, &[(0, 30.0)])])
        .put("requests_istio_source", 60, &[(mesh, &[(0, 60.0)])])
        .put("request_increase_istio", 3_600, &[(mesh, &[(3_600, 100_000.0)])]);
    let import = folder.import().unwrap();
    let web = import.about.figures.workloads.iter().find(|workload| workload.workload == "shop/web").unwrap();
    assert_eq!((web.requests_per_second, web.requests_from.as_deref()), (Some(30.0), Some("istio")));
    assert_eq!(web.cpu_per_request_by.as_deref(), Some("increase"));
    assert!((web.cpu_per_request_seconds.unwrap() - 0.026).abs() < 1e-12);
    // What the workload counts itself comes before the mesh.
    let import = folder.put("requests_otel", 60, &[(pod, &[(0, 31.0)])]).import().unwrap();
    let web = import.about.figures.workloads.iter().find(|workload| workload.workload == "shop/web").unwrap();
    assert_eq!((web.requests_per_second, web.requests_from.as_deref()), (Some(31.0), Some("otel")));
}

#[test]
fn ingress_requests_are_mapped_to_service_by_guess() {
    let import = Folder::new()
        .put("replicas_wanted", 60, &[(r#""namespace":"shop","deployment":"web""#, &[(0, 3.0)])])
        .put(
            "requests_nginx",
            60,
            &[
                (
                    r#""namespace":"ingress","exported_namespace":"shop","service":"nginx","exported_service":"web""#,
                    &[(0, 7.0)],
                ),
                (
                    r#""namespace":"ingress","exported_namespace":"shop","service":"nginx","exported_service":"gone""#,
                    &[(0, 5.0)],
                ),
            ],
        )
        .import()
        .unwrap();
    assert_eq!(import.workloads.as_ref().unwrap()[0].requests_per_second, Some(7.0));
    assert_eq!(import.about.quantities[0].grade, Grade::Derived);
    assert!(import.about.warnings.iter().any(|text| text.contains("name no workload that was seen")));
    let import = Folder::new()
        .put(
            "replicas_wanted",
            60,
            &[
                (r#""namespace":"shop","deployment":"web""#, &[(0, 3.0)]),
                (r#""namespace":"shop","deployment":"web-admin""#, &[(0, 3.0)]),
            ],
        )
        .put("requests_traefik", 60, &[(r#""service":"shop-web-admin-80@kubernetes""#, &[(0, 2.0)])])
        .import()
        .unwrap();
    let with: Vec<&str> = import
        .workloads
        .iter()
        .flatten()
        .filter(|workload| workload.requests_per_second.is_some())
        .map(|workload| &*workload.workload)
        .collect();
    assert_eq!(with, ["shop/web-admin"]);
}

#[test]
fn envoy_cluster_names_identify_service_or_route() {
    for cluster in [
        "outbound|80||web.shop.svc.cluster.local",
        "shop_web_80",
        "shop/web/80/da39a3ee5e",
        "httproute/shop/web/rule/0",
    ] {
        let labels = format!(r#""envoy_cluster_name":"{cluster}""#);
        let import = Folder::new()
            .put("replicas_wanted", 60, &[(r#""namespace":"shop","deployment":"web""#, &[(0, 3.0)])])
            .put("requests_envoy", 60, &[(&*labels, &[(0, 2.0)]), (r#""envoy_cluster_name":"xds-grpc""#, &[(0, 9.0)])])
            .import()
            .unwrap();
        let with = import.workloads.iter().flatten().find_map(|workload| workload.requests_per_second);
        assert_eq!((with, &*import.workloads.as_ref().unwrap()[0].workload), (Some(2.0), "shop/web"), "{cluster}");
        assert_eq!(import.about.quantities[0].grade, Grade::Derived);
    }
}

#[test]
fn load_balancer_import_checks_target_groups_and_period() {
    let query = |period: i64| {
        let mut plan = Plan::of_window(START, START + 86_400).unwrap();
        plan.sum_period = period;
        plan.queries().queries.into_iter().find(|query| query.role() == "requests_alb").unwrap().query
    };
    let import = |period: i64, changes: f64| {
        let wanted: &[(&str, &[(i64, f64)])] = &[
            (r#""namespace":"shop","deployment":"web""#, &[(0, 3.0)]),
            (r#""namespace":"shop","deployment":"checkout-a""#, &[(0, 3.0)]),
            (r#""namespace":"shop","deployment":"checkout-b""#, &[(0, 3.0)]),
        ];
        let mut folder =
            Folder::new().put("replicas_wanted", 60, wanted).put("alb_changes", 3_600, &[("", &[(3_600, changes)])]);
        let groups: &[(&str, &[(i64, f64)])] = &[
            (r#""dimension_TargetGroup":"targetgroup/k8s-shop-web-0123456789/ab""#, &[(0, 2.0)]),
            (r#""dimension_TargetGroup":"targetgroup/k8s-shop-checkout-0123456789/ab""#, &[(0, 9.0)]),
        ];
        folder.with_query("requests_alb", &query(period), 60, groups, "");
        folder.import().unwrap()
    };
    let this_import = import(60, 59.0);
    let with: Vec<(&str, Option<f64>)> = this_import
        .workloads
        .iter()
        .flatten()
        .filter(|workload| workload.requests_per_second.is_some())
        .map(|workload| (&*workload.workload, workload.requests_per_second))
        .collect();
    assert_eq!(with, [("shop/web", Some(2.0))]);
    assert_eq!(this_import.about.quantities[0].grade, Grade::Derived);
    assert!(
        this_import
            .about
            .warnings
            .iter()
            .any(|text| text.starts_with("requests_alb: 1 series of requests name no workload"))
    );
    let told = |period: i64, changes: f64| {
        let all = import(period, changes).about.warnings;
        all.into_iter().find(|text| text.contains("--sum-period"))
    };
    assert_eq!((told(60, 59.0), told(300, 11.0), told(60, 2.0)), (None, None, None));
    assert!(told(60, 11.0).unwrap().contains("change every 300 s were taken to be over 60 s"));
    assert!(told(300, 59.0).unwrap().contains("change every 60 s were taken to be over 300 s"));
}

#[test]
fn pod_constraints_are_imported_except_default_tolerations() {
    let pod = |more: &str| format!(r#""namespace":"shop","pod":"lone"{more}"#);
    let taint = |key: &str, operator: &str, value: &str, effect: &str| {
        pod(&format!(r#","key":"{key}","operator":"{operator}","value":"{value}","effect":"{effect}""#))
    };
    let tolerations = [
        taint("gpu", "Exists", "", "NoSchedule"),
        taint("team", "", "ml", ""),
        taint("", "Equal", "", "NoSchedule"),
        taint("", "Exists", "", ""),
        r#""namespace":"logs","pod":"agent-1","key":"","operator":"Exists""#.to_owned(),
    ];
    let at: &[(i64, f64)] = &[(3_600, 1.0)];
    let tolerations: Vec<(&str, &[(i64, f64)])> = tolerations.iter().map(|labels| (labels.as_str(), at)).collect();
    let selector = pod(r#","nodeselector_kubernetes_io_arch":"arm64","nodeselector_karpenter_sh_nodepool":"batch""#);
    let daemon = r#""namespace":"logs","pod":"agent-1","owner_kind":"DaemonSet","owner_name":"agent""#;
    let import = Folder::new()
        .put("owners", 3_600, &[OWNERS[1], (daemon, at)])
        .put("pod_created", 3_600, &[(&pod(""), &[(3_600, (START + 60) as f64)])])
        .put("pod_gpus", 3_600, &[(&pod(""), &[(3_600, 2.0)])])
        .put("pod_tolerations", 3_600, &tolerations)
        .put("pod_node_selectors", 3_600, &[(&selector, at)])
        .import()
        .unwrap();
    let Some([placement]) = import.placements.as_deref() else { panic!("{:?}", import.placements) };
    assert_eq!((placement.namespace.as_str(), placement.pod.as_str(), placement.gpus), ("shop", "lone", Some(2)));
    assert_eq!(placement.node_selector.as_deref(), Some("kubernetes.io/arch=arm64;karpenter.sh/nodepool=batch"));
    assert_eq!(placement.tolerations.as_deref(), Some("*;team=ml;gpu:NoSchedule"));
}

#[test]
fn answers_for_other_windows_are_rejected() {
    let pod = r#""namespace":"shop","pod":"lone""#;
    let error = Folder::new().put("cpu_by_pod", 300, &[(pod, &[(90_000, 1.0), (90_300, 1.0)])]).import().unwrap_err();
    assert!(error.contains("cpu_by_pod.json holds no sample of what queries.json next to it asks for"), "{error}");
    let import = Folder::new()
        .put("owners", 3_600, OWNERS)
        .put("cpu_by_pod", 300, &[(pod, &[(0, 1.0), (300, 3.0), (90_000, 500.0)])])
        .import()
        .unwrap();
    assert_eq!(import.about.figures.workloads[0].cpu_used_milli, Some(2_000.0));
    assert!(import.about.warnings.iter().any(|text| text.contains("1 sample of instants that were not asked for")));
}

#[test]
fn requests_and_cpu_are_compared_where_both_exist() {
    let pod = r#""namespace":"shop","pod":"lone""#;
    let import = Folder::new()
        .put("owners", 3_600, OWNERS)
        .put("cpu_by_pod", 300, &[(pod, &[(0, 1.0), (300, 1.0), (600, 9.0)])])
        .put("requests_otel", 60, &[(pod, &[(0, 40.0), (60, 60.0), (300, 50.0), (900, 500.0)])])
        .import()
        .unwrap();
    let per_request = import.about.figures.workloads[0].cpu_per_request_seconds.unwrap();
    assert!((per_request - 0.02).abs() < 1e-9, "{per_request}");
}

#[test]
fn vanished_pod_was_deleted_when_last_seen() {
    let named = |name: &str| format!(r#""namespace":"shop","pod":"{name}""#);
    let at = |seconds: i64| (START + seconds) as f64;
    let [gone, there, ended] = ["gone", "there", "ended"].map(named);
    let created = &[(3_600, at(-60))][..];
    let import = Folder::new()
        .put("pod_created", 3_600, &[(&gone, created), (&there, created), (&ended, created)])
        .put("pod_completed", 3_600, &[(&ended, &[(3_600, at(100))])])
        .put(
            "pod_seen",
            3_600,
            &[(&gone, &[(3_600, at(900))]), (&there, &[(3_600, at(3_500))]), (&ended, &[(3_600, at(160))])],
        )
        .import()
        .unwrap();
    let ends: Vec<(&str, Option<i64>, Option<i64>)> = import
        .pods
        .iter()
        .flatten()
        .map(|pod| {
            let seconds = |at: Option<nodecast_model::domain::SimTime>| at.map(|at| at.as_secs());
            (pod.pod.as_str(), seconds(pod.deletion_requested), seconds(pod.removed))
        })
        .collect();
    assert_eq!(ends, [("ended", None, Some(100)), ("gone", Some(900), None), ("there", None, None)]);
}

#[test]
fn a_partial_answer_of_victoriametrics_is_told() {
    let mut folder = Folder::new().put("owners", 3_600, OWNERS);
    let pod = r#""namespace":"shop","pod":"lone""#;
    folder.with_query("cpu_by_pod", "rate(x[5m])", 300, &[(pod, &[(0, 1.0)])], r#","isPartial":true"#);
    let warnings = folder.import().unwrap().about.warnings;
    assert!(warnings.iter().any(|text| text.contains("the answer is partial")), "{warnings:?}");
}

#[test]
fn spot_label_of_node_group_has_two_spellings() {
    for label in ["label_eks_amazonaws_com_capacity_type", "label_eks_amazonaws_com_capacityType"] {
        let labels = format!(r#""label_node_kubernetes_io_instance_type":"m6i.large","{label}":"SPOT""#);
        let import = Folder::new().put("nodes", 60, &[(&labels, &[(0, 2.0)])]).import().unwrap();
        assert_eq!(import.node_counts.as_ref().unwrap()[0].capacity_type.as_deref(), Some("spot"), "{label}");
    }
    let asked = Plan::of_window(START, START + 86_400).unwrap().queries().queries;
    let nodes = asked.iter().find(|item| item.role() == "nodes").unwrap();
    assert!(nodes.query.contains("label_eks_amazonaws_com_capacity_type,"), "{}", nodes.query);
}

#[test]
fn karpenter_upgrade_counts_each_launch_once() {
    let import = Folder::new()
        .put("claims_created", 300, &[(r#""nodepool":"default","instance":"b""#, &[(1_800, 0.0), (2_100, 3.0)])])
        .put(
            "claims_created_v0_33",
            300,
            &[(r#""nodepool":"default","instance":"a""#, &[(0, 10.0), (300, 14.0), (1_800, 14.0), (2_100, 16.0)])],
        )
        .import()
        .unwrap();
    assert!((import.about.figures.launches.unwrap() - 7.0).abs() < 1e-9);
}

#[test]
fn a_leader_that_changes_loses_no_count() {
    let samples: &[(&str, &[(i64, f64)])] = &[
        (r#""nodepool":"default","reason":"provisioned","instance":"a""#, &[(0, 10.0), (300, 12.0)]),
        (r#""nodepool":"default","reason":"provisioned","instance":"b""#, &[(600, 1.0), (900, 4.0)]),
    ];
    let import = Folder::new().put("claims_created", 300, samples).import().unwrap();
    assert!((import.about.figures.launches.unwrap() - 6.0).abs() < 1e-9);
}

#[test]
fn partial_answers_and_stale_series_are_reported() {
    let mut folder = Folder::new().put("scrapes", 1_800, &[(r#""job":"kubelet""#, &[(0, 5.0)])]).put(
        "stale",
        300,
        &[("", &[(0, 1.0), (300, 2.0), (600, 0.0)])],
    );
    let pod = r#""namespace":"shop","pod":"lone""#;
    folder.with_query("cpu_by_pod", "rate(x[5m])", 300, &[(pod, &[(0, 1.0)])], r#","warnings":["a store is down"]"#);
    let warnings = folder.put("owners", 3_600, OWNERS).import().unwrap().about.warnings;
    for part in [
        "cpu_by_pod: the server warns: a store is down",
        "kubelet is scraped every 120 s",
        "--rate-window 480s",
        "outlive their objects",
    ] {
        assert!(warnings.iter().any(|text| text.contains(part)), "{part} is not in {warnings:?}");
    }
}

#[test]
fn karpenter_metrics_replace_missing_node_labels() {
    let import = Folder::new()
        .put("nodes", 60, &[("", &[(0, 4.0)])])
        .put(
            "karpenter_nodes",
            60,
            &[(
                r#""instance_type":"m6i.large","zone":"us-east-1a","capacity_type":"spot","nodepool":"default""#,
                &[(0, 2.0), (60, 3.0)],
            )],
        )
        .put(
            "node_info",
            3_600,
            &[(
                r#""node":"ip-1","provider_id":"aws:///us-east-1b/i-0abc","kubelet_version":"v1.33.1""#,
                &[(3_600, 1.0)],
            )],
        )
        .put("node_created", 3_600, &[(r#""node":"ip-1""#, &[(3_600, (START - 60) as f64)])])
        .put(
            "node_present",
            60,
            &[(r#""node":"ip-1""#, &[(0, 1.0), (600, 1.0)]), (r#""node":"ip-2""#, &[(0, 1.0), (3_600, 1.0)])],
        )
        .import()
        .unwrap();
    let counts: Vec<(i64, Option<&str>, Option<&str>, i64)> = import
        .node_counts
        .iter()
        .flatten()
        .map(|node_count| {
            (
                node_count.at.as_secs(),
                node_count.instance_type.as_deref(),
                node_count.origin.as_deref(),
                node_count.nodes,
            )
        })
        .collect();
    // Two of the four that there are in the first minute are none of Karpenter's.
    let large = |at, nodes| (at, Some("m6i.large"), Some("default"), nodes);
    assert_eq!(counts, [(0, None, None, 2), large(0, 2), large(60, 3)]);
    let node = &import.nodes.as_ref().unwrap()[0];
    assert_eq!(
        (node.zone.as_deref(), node.registered.unwrap().as_secs(), node.terminated.unwrap().as_secs()),
        (Some("us-east-1b"), -60, 660)
    );
    assert!(import.about.warnings.iter().any(|text| text.contains("metricLabelsAllowlist")));
}

#[test]
fn node_group_nodes_without_labels_are_reported() {
    let karpenter: &[(&str, &[(i64, f64)])] = &[(
        r#""instance_type":"m6i.large","zone":"us-east-1a","capacity_type":"spot","nodepool":"default""#,
        &[(0, 1.0), (1_800, 1.0)],
    )];
    let alone = Folder::new().put("nodes", 1_800, &[]).put("karpenter_nodes", 1_800, karpenter).import().unwrap();
    assert_eq!(alone.about.figures.nodes_max, Some(1));
    let said =
        |observation: &Observation, part: &str| observation.about.warnings.iter().any(|text| text.contains(part));
    assert!(said(&alone, "those of node groups are in no sum of nodes"), "{:?}", alone.about.warnings);
    let present: Vec<(String, Vec<(i64, f64)>)> =
        (0..3).map(|node| (format!(r#""node":"ip-{node}""#), vec![(0, 1.0), (1_800, 1.0)])).collect();
    let present: Vec<(&str, &[(i64, f64)])> = present.iter().map(|pair| (pair.0.as_str(), pair.1.as_slice())).collect();
    let both = Folder::new().put("karpenter_nodes", 1_800, karpenter).put("node_present", 1_800, &present).import();
    let both = both.unwrap();
    assert_eq!(both.about.figures.nodes_max, Some(3));
    assert!((both.about.figures.node_hours.unwrap() - 3.0).abs() < 1e-9, "{:?}", both.about.figures);
    assert!((both.about.figures.spot_node_hours.unwrap() - 1.0).abs() < 1e-9);
    assert!(said(&both, "nodes that Karpenter does not know are counted without a type"), "{:?}", both.about.warnings);
}

#[test]
fn empty_or_partial_import_directory_is_an_error() {
    let error = Folder::new().put("owners", 3_600, &[]).import().unwrap_err();
    assert!(error.starts_with("no answer holds a series"), "{error}");
    let folder = Folder::new().put("owners", 3_600, OWNERS);
    std::fs::remove_file(folder.folder.path().join("owners.json")).unwrap();
    assert!(folder.import().unwrap_err().starts_with("1 of 1 answers are missing"));
}

/// The files of a run, as short as they may be.
fn run(folder: &Path) {
    let put = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    put("summary.json", r#"{"about":{"scenario":"s","start":"2026-10-13T00:00:00Z","duration_seconds":120.0}}"#);
    put("timeline.csv", "at_seconds,time,pods_pending\n0,2026-10-13T00:00:00Z,2\n60,2026-10-13T00:01:00Z,0\n");
    put(
        "workloads.csv",
        "at_seconds,workload,replicas_desired,replicas_ready,requests_per_second,cpu_used_milli,latency_mean_seconds,latency_p99_seconds\n0,shop/web,2,0,10,250,,\n60,shop/web,2,2,30,750,0.02,0.09\n",
    );
    put(
        "nodes.csv",
        "node,origin_kind,origin,instance_type,zone,capacity_type,registered_seconds,terminating_seconds,rate_per_hour,cost\nn1,NodePool,default,m6i.large,us-east-1a,spot,-5,60,0.096000000,0.001600000\n",
    );
    put(
        "pods.csv",
        "pod,workload,daemon,created_seconds,scheduled_seconds,placeholder,wait_for_node_seconds\nweb-1,shop/web,false,0,40.5,false,40.5\n",
    );
    put(
        "events.jsonl",
        "{\"at_seconds\":40.5,\"time\":\"2026-10-13T00:00:40.5Z\",\"kind\":\"PodScheduled\",\"pod\":\"web-1\"}\n",
    );
}

#[test]
fn simulation_report_reads_as_observation() {
    let (folder, again) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    run(folder.path());
    let observation = Observation::read(folder.path()).unwrap();
    assert_eq!((observation.about.sources.clone(), observation.about.window.seconds), (vec!["run".to_owned()], 120));
    assert_eq!(
        observation.node_counts.iter().flatten().map(|node_count| node_count.at.as_secs()).collect::<Vec<_>>(),
        [0]
    );
    let web = &observation.about.figures.workloads[0];
    assert!((web.cpu_per_request_seconds.unwrap() - 0.025).abs() < 1e-12);
    assert_eq!(observation.pending.as_ref().unwrap()[0].pods_pending, Some(2));
    observation.write(again.path()).unwrap();
    assert_eq!(Observation::read(again.path()).unwrap(), observation);
}

#[test]
fn run_without_pods_names_them_as_missing() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path());
    std::fs::remove_file(folder.path().join("pods.csv")).unwrap();
    let observation = Observation::read(folder.path()).unwrap();
    assert_eq!((observation.pods, observation.about.figures.waits), (None, None));
    let missing: Vec<&str> = observation.about.missing.iter().map(|item| item.quantity.as_str()).collect();
    assert_eq!(missing, ["pods"]);
    assert!(observation.about.quantities.iter().all(|quantity| quantity.quantity != "pods"));
}

#[test]
fn table_without_rows_has_file_if_recorded() {
    // Counters that stand still, and no pod or node.
    let pool = r#""nodepool":"batch""#;
    let counted = Folder::new().put("claims_disrupted", 60, &[(pool, &[(0, 4.0), (60, 4.0)])]).import().unwrap();
    assert_eq!((counted.counts.as_deref(), counted.stages.as_deref()), (Some(&[][..]), None));
    let folder = tempfile::tempdir().unwrap();
    counted.write(folder.path()).unwrap();
    let names: Vec<&str> = counted.files().iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["counts.csv", "observation.json"]);
    assert_eq!(Observation::read(folder.path()).unwrap(), counted);
    assert_eq!((counted.pods, counted.nodes, counted.about.figures.node_hours), (None, None, None));
}

#[test]
fn invalid_csv_cell_is_shown_with_line() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path());
    std::fs::write(folder.path().join("pods.csv"), "pod,created_seconds\na,1\nb,soon\n").unwrap();
    let error = Observation::read(folder.path()).unwrap_err().to_string();
    assert!(error.ends_with("pods.csv:3: `soon` cannot stand in the column `created_seconds`"), "{error}");
    std::fs::write(folder.path().join("pods.csv"), "x\n").unwrap();
    assert!(Observation::read(folder.path()).unwrap_err().to_string().contains("has no column `pod`"));
    let error = Observation::read(&folder.path().join("nowhere")).unwrap_err().to_string();
    assert!(error.starts_with("cannot read "), "{error}");
}

#[test]
fn impossible_samples_are_ignored_and_counted() {
    let pod = r#""namespace":"shop","pod":"lone""#;
    let samples: &[(i64, f64)] = &[(0, 1.0), (300, -5.0), (600, f64::NAN), (900, 1.0)];
    let folder = Folder::new().put("owners", 3_600, OWNERS).put("cpu_by_pod", 300, &[(pod, samples)]);
    let warnings = folder.import().unwrap().about.warnings;
    let said = warnings.iter().find(|text| text.starts_with("cpu_by_pod")).unwrap();
    assert_eq!(said, "cpu_by_pod: of 4 samples 1 is no number and 1 is below zero: left out");
}
