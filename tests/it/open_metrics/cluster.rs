//! Each family that an importer of a real cluster's Prometheus asks for, in the export of a small cluster: there, with the labels
//! of the real one, and with the values of the run's own record.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use nodecast::domain::{PodId, SimTime};
use nodecast::simulation::Outcome;
use nodecast::world::record::{NodeOrigin, PodFacts, WorkloadKind};

use super::format::{self, Exposition};
use super::{metrics, near, unix};
use crate::node_groups;

/// Four hours of the cluster that `.ci/testbed` asks a Prometheus about, from the morning on.
static RUN: LazyLock<(Outcome, Exposition)> = LazyLock::new(|| {
    let scenario = include_str!("../../data/testbed/scenario.yaml")
        .replace("start: 2026-06-09T00:00:00Z", "start: 2026-06-09T05:00:00Z")
        .replace("duration: 24h", "duration: 4h")
        .replace("first: 11h", "first: 1h")
        .replace("at: 15h10m", "at: 2h10m")
        .replace("objects.yaml", "manifests.yaml");
    let outcome = node_groups::run(&scenario, include_str!("../../data/testbed/objects.yaml"));
    let found = metrics(&outcome, 60);
    (outcome, found)
});

/// Labels, and samples of each series of a sample's name.
fn series<'e>(
    found: &'e Exposition,
    name: &'e str,
) -> impl Iterator<Item = (BTreeMap<&'e str, &'e str>, &'e [(f64, f64)])> {
    found.series.iter().filter(move |((key, _), _)| key == name).map(|((_, labels), samples)| {
        (labels.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect(), samples.as_slice())
    })
}

fn pods(outcome: &Outcome) -> BTreeMap<String, PodFacts> {
    outcome.record.pods.iter().map(|pod| (pod.name.clone(), pod)).collect()
}

/// Unix time in whole seconds.
fn second(outcome: &Outcome, at: SimTime) -> f64 {
    unix(outcome, at.as_micros() as f64 / 1e6).floor()
}

fn end(outcome: &Outcome) -> f64 {
    unix(outcome, outcome.about.duration.as_secs_f64())
}

#[test]
fn pod_links_to_replica_set_and_deployment() {
    let (outcome, found) = &*RUN;
    let sets: BTreeMap<&str, &str> =
        series(found, "kube_replicaset_owner").map(|(item, _)| (item["replicaset"], item["owner_name"])).collect();
    assert_eq!(sets.values().copied().collect::<BTreeSet<_>>(), BTreeSet::from(["front", "stock"]));
    let pods = pods(outcome);
    let mut makers = BTreeMap::new();
    for (key, _) in series(found, "kube_pod_owner") {
        let workload = &outcome.record.workloads[pods[key["pod"]].workload.index()];
        match workload.kind {
            WorkloadKind::Deployment => {
                assert_eq!((key["owner_kind"], sets[key["owner_name"]]), ("ReplicaSet", workload.name.name.as_str()));
                let hash = key["owner_name"].strip_prefix(&format!("{}-", workload.name.name)).unwrap();
                assert!(hash.len() >= 5 && hash.chars().all(|letter| "bcdfghjklmnpqrstvwxz2456789".contains(letter)));
            }
            WorkloadKind::CronJob => {
                assert_eq!(key["owner_kind"], "Job");
                assert!(series(found, "kube_job_owner").any(|(job, _)| job["job_name"] == key["owner_name"]));
            }
            kind => assert_eq!((key["owner_kind"], key["owner_name"]), (kind.as_str(), workload.name.name.as_str())),
        }
        assert_eq!(key["owner_is_controller"], "true");
        makers.insert(key["pod"], key["owner_name"]);
    }
    assert!(makers.len() > 15, "{}", makers.len());
    let mut infos = BTreeSet::new();
    for (key, _) in series(found, "kube_pod_info") {
        assert_eq!(key["created_by_name"], makers[key["pod"]]);
        assert!(key.contains_key("node") && infos.insert(key["pod"]), "one set of labels for each pod: {key:?}");
    }
}

#[test]
fn a_template_anew_is_another_replica_set() {
    let mut outcome = crate::synthetic::outcome();
    outcome.record.pods.change(PodId(2)).revision = 1;
    let found = metrics(&outcome, 60);
    let sets: BTreeSet<&str> = series(&found, "kube_replicaset_owner").map(|(item, _)| item["replicaset"]).collect();
    assert_eq!(sets.len(), 2, "{sets:?}");
    // What a dump calls a pod tells its ReplicaSet.
    for id in [0, 1, 2].map(PodId) {
        let pod = outcome.record.pods.change(id);
        (pod.found, pod.name) = (true, format!("frontend-6d4cf56db6-{}", &pod.name[9..]));
    }
    let found = metrics(&outcome, 60);
    assert!(series(&found, "kube_replicaset_owner").all(|(item, _)| item["replicaset"] == "frontend-6d4cf56db6"));
}

#[test]
fn pod_timestamps_match_record_to_the_second() {
    let (outcome, found) = &*RUN;
    type Of = fn(&PodFacts) -> Option<SimTime>;
    let families: [(&str, Of); 5] = [
        ("kube_pod_created", |pod| Some(pod.created)),
        ("kube_pod_status_scheduled_time", |pod| pod.scheduled),
        ("kube_pod_start_time", |pod| pod.scheduled),
        ("kube_pod_container_state_started", |pod| pod.started),
        ("kube_pod_status_ready_time", |pod| pod.ready),
    ];
    let pods = pods(outcome);
    for (name, of) in families {
        let mut seen = 0;
        for (key, samples) in series(found, name) {
            let wanted = second(outcome, of(&pods[key["pod"]]).unwrap());
            assert!(samples.iter().all(|(_, value)| *value == wanted), "{name} {key:?}");
            seen += 1;
        }
        assert!(seen > 2, "{name}: {seen}");
    }
}

#[test]
fn deleting_pod_exports_grace_period_end() {
    let mut outcome = crate::synthetic::outcome();
    outcome.record.pods.change(PodId(1)).grace = Some(nodecast::domain::SimDuration::from_secs(45));
    let found = metrics(&outcome, 15);
    let told =
        |seconds: f64| found.at("kube_pod_deletion_timestamp", &[("pod", "frontend-b")], unix(&outcome, seconds));
    assert_eq!((told(2_085.0), told(2_100.0)), (vec![], vec![unix(&outcome, 2_145.0)]));
}

#[test]
fn unscheduled_pods_are_counted_at_each_time() {
    let (outcome, found) = &*RUN;
    let mut most = 0.0_f64;
    for minute in 0..240 {
        let at = SimTime::from_micros(minute * 60_000_000);
        let waits = |pod: &PodFacts| {
            let until = pod.scheduled.or(pod.removed);
            pod.unschedulable.is_some_and(|from| from <= at) && until.is_none_or(|until| at < until)
        };
        let wanted = outcome.record.pods.iter().filter(waits).count() as f64;
        assert_eq!(found.sum("kube_pod_status_unschedulable", &[], second(outcome, at)), wanted, "minute {minute}");
        most = most.max(wanted);
    }
    assert!(most > 0.0);
}

#[test]
fn container_and_request_counters_match_usage() {
    let (outcome, found) = &*RUN;
    let last = outcome.record.samples.last().unwrap();
    for (name, cpu_per_request) in [("front", 0.024), ("stock", 0.015)] {
        let workload =
            outcome.record.workloads.iter().position(|workload| workload.name.name.as_str() == name).unwrap();
        let meter = last.meters.iter().find(|meter| meter.workload.index() == workload).unwrap();
        let labels = [("reporter", "destination"), ("destination_workload", name), ("response_code", "200")];
        let answered = found.sum("istio_requests_total", &labels, end(outcome));
        assert!(answered > 10_000.0 && (answered - meter.answered).abs() <= meter.answered * 0.001, "{answered}");
        let counted = outcome.requests.iter().find(|request| request.workload == meter.workload).unwrap();
        assert_eq!(answered, counted.completed.floor());
        let mut used = 0.0;
        for (key, samples) in
            series(found, "container_cpu_usage_seconds_total").filter(|(item, _)| item["container"] == name)
        {
            assert_eq!((key["namespace"], key["job"], key["metrics_path"]), ("shop", "kubelet", "/metrics/cadvisor"));
            assert!(key["image"].starts_with("registry.example/shop/") && key["id"].starts_with("/kubepods/"));
            assert!(key.contains_key("node") && key.contains_key("pod"));
            used += samples.last().unwrap().1;
        }
        assert!((used / answered / cpu_per_request - 1.0).abs() < 0.005, "{name}: {used} s for {answered} requests");
    }
    let pods = pods(outcome);
    let pod = &pods["front-00000"];
    let spells: i128 = pod
        .serving
        .iter()
        .map(|serving_spell| serving_spell.until.map_or(0, |(_, cpu)| cpu) - serving_spell.cpu_from)
        .sum();
    if pod.serving.iter().all(|item| item.until.is_some()) {
        let told = series(found, "container_cpu_usage_seconds_total").find(|(item, _)| item["pod"] == "front-00000");
        assert!(told.unwrap().1.last().unwrap().1 <= spells as f64 / 1e12);
    }
}

#[test]
fn memory_is_told_where_the_scenario_states_it() {
    let (_, found) = &*RUN;
    let mut most = 0.0_f64;
    for (key, samples) in series(found, "container_memory_working_set_bytes") {
        assert_eq!(key["container"], "front");
        assert!(samples.iter().all(|(_, bytes)| (200_f64..=768.0).contains(&(bytes / 1_048_576.0))), "{key:?}");
        most = samples.iter().fold(most, |most, (_, bytes)| most.max(*bytes));
    }
    assert!(most > 200.0 * 1_048_576.0, "{most}");
}

#[test]
fn jobs_export_owner_and_outcome() {
    let (outcome, found) = &*RUN;
    // At 06:15, six, three at a time; at 09:00 the run is over.
    let job = format!("ledger-{}", 1_780_985_700 / 60);
    let only = [("namespace", "shop"), ("job_name", job.as_str())];
    let at = |minutes: f64| unix(outcome, minutes * 60.0);
    let value = |name: &str, minutes| found.at(name, &only, at(minutes));
    assert_eq!(found.count("kube_job_info"), 1);
    assert_eq!(
        (value("kube_job_spec_parallelism", 76.0), value("kube_job_spec_completions", 76.0)),
        (vec![3.0], vec![6.0])
    );
    assert_eq!(
        found.at("kube_job_owner", &[only[1], ("owner_kind", "CronJob"), ("owner_name", "ledger")], at(76.0)),
        [1.0]
    );
    let facts = &outcome.record.jobs[0];
    assert_eq!(value("kube_job_status_start_time", 76.0), [second(outcome, facts.created)]);
    assert_eq!(
        (value("kube_job_status_active", 80.0), value("kube_job_status_succeeded", 80.0)),
        (vec![3.0], vec![0.0])
    );
    let over = facts.end.unwrap().at;
    assert_eq!(value("kube_job_status_completion_time", 120.0), [second(outcome, over)]);
    assert_eq!(
        (value("kube_job_status_active", 120.0), value("kube_job_status_succeeded", 120.0)),
        (vec![0.0], vec![6.0])
    );
    let lost = |pod: &PodFacts| pod.job == Some(0) && pod.deletion_requested.is_some_and(|at| at < over);
    let failed = outcome.record.pods.iter().filter(lost).count() as f64;
    assert_eq!(found.at("kube_job_status_failed", &only, second(outcome, over) + 120.0), [failed]);
    assert_eq!(found.sum("kube_job_complete", &[only[1], ("condition", "true")], second(outcome, over) + 120.0), 1.0);
    assert_eq!(found.sum("kube_job_info", &[], end(outcome)), 0.0);
    // Its pods stay as long as it does, and tell when they had done their work.
    let mut completed = 0;
    for (key, samples) in series(found, "kube_pod_completion_time") {
        let started = found.at("kube_pod_container_state_started", &[("pod", key["pod"])], end(outcome));
        near(samples[0].1 - started[0], 540.0);
        completed += 1;
    }
    assert_eq!(completed, 6);
}

#[test]
fn budgets_and_autoscalers_are_shown() {
    let (outcome, found) = &*RUN;
    let last = outcome.record.samples.last().unwrap();
    let budget = &last.budgets[0];
    let value = |name: &str| {
        let name = format!("kube_poddisruptionbudget_status_{name}");
        found.at(&name, &[("namespace", "shop"), ("poddisruptionbudget", "front")], end(outcome))
    };
    assert_eq!(value("expected_pods"), [budget.expected as f64]);
    assert_eq!(value("desired_healthy"), [budget.desired_healthy as f64]);
    assert_eq!(value("current_healthy"), [budget.healthy as f64]);
    assert_eq!(value("pod_disruptions_allowed"), [budget.disruptions_allowed as f64]);
    assert!(budget.expected > 2 && budget.desired_healthy > 1);
    let target = [
        ("horizontalpodautoscaler", "front"),
        ("scaletargetref_api_version", "apps/v1"),
        ("scaletargetref_kind", "Deployment"),
        ("scaletargetref_name", "front"),
    ];
    assert_eq!(found.at("kube_horizontalpodautoscaler_info", &target, end(outcome)), [1.0]);
}

#[test]
fn stages_of_claims_are_in_whole_seconds() {
    let (outcome, found) = &*RUN;
    let made = || outcome.record.nodes.iter().filter(|node| matches!(node.origin, NodeOrigin::NodePool(_)));
    let name = "operator_nodeclaim_status_condition_transition_seconds";
    for (condition, of) in [
        ("Launched", (|node| node.launched) as fn(&nodecast::world::record::NodeFacts) -> Option<SimTime>),
        ("Registered", |node| node.registered),
        ("Initialized", |node| node.initialized),
    ] {
        let spans: Vec<f64> =
            made().filter_map(|node| Some(second(outcome, of(node)?) - second(outcome, node.requested))).collect();
        let labels = [("type", condition), ("status", "Unknown"), ("karpenter_sh_nodepool", "default")];
        let total = |suffix: &str| found.sum(&format!("{name}_{suffix}"), &labels, end(outcome));
        assert!(spans.len() > 2);
        assert_eq!((total("count"), total("sum")), (spans.len() as f64, spans.iter().sum()));
        let below = |limit: &str| found.sum(&format!("{name}_bucket"), &[labels[0], ("le", limit)], end(outcome));
        assert_eq!(below("32.0"), spans.iter().filter(|span| **span <= 32.0).count() as f64);
    }
    let gone = made().filter(|node| node.deletion_requested.is_some() && node.terminated.is_some()).count();
    assert_eq!(found.sum("karpenter_nodeclaims_termination_duration_seconds_count", &[], end(outcome)), gone as f64);
    assert!(gone > 0 && found.types["karpenter_nodes_termination_duration_seconds"] == "summary");
}

#[test]
fn nodes_have_the_ids_of_their_instances() {
    let (outcome, found) = &*RUN;
    let mut ids = BTreeSet::new();
    for (key, _) in series(found, "kube_node_info") {
        let node = outcome.record.nodes.iter().find(|node| node.name == key["node"]).unwrap();
        let wanted = format!("aws:///{}/{}", node.zone.unwrap(), node.instance.as_ref().unwrap());
        assert_eq!(key["provider_id"], wanted);
        assert!(node.instance.as_ref().unwrap().starts_with("i-") && ids.insert(wanted));
    }
    assert!(ids.len() > 3);
    let group =
        [("label_eks_amazonaws_com_nodegroup", "system"), ("label_node_kubernetes_io_instance_type", "m6i.large")];
    assert_eq!(found.sum("kube_node_labels", &group, end(outcome)), 1.0);
}

#[test]
fn every_target_is_up_with_minutely_samples() {
    let (outcome, found) = &*RUN;
    let jobs: BTreeSet<&str> = series(found, "up").map(|(item, _)| item["job"]).collect();
    let told: BTreeSet<&str> = found
        .series
        .keys()
        .filter_map(|(_, labels)| labels.iter().find(|(key, _)| key == "job"))
        .map(|(_, job)| job.as_str())
        .collect();
    assert_eq!(jobs, told);
    for ((name, labels), samples) in &found.series {
        let apart = samples.windows(2).map(|pair| (pair[0], pair[1].0 - pair[0].0));
        // After a 0 a name may come again.
        let gaps = apart.filter(|(before, seconds)| before.1 != 0.0 && *seconds > 60.0).count();
        // Pods of one name, and autoscalers that have not looked yet, have none to tell between.
        assert!(gaps == 0 || name.starts_with("kube_horizontalpodautoscaler_status_target"), "{name} {labels:?}");
        assert!(samples.last().unwrap().0 <= end(outcome));
    }
}

#[test]
fn releases_of_karpenter_have_their_names() {
    let of_release = |release: &str| {
        let mut outcome = crate::synthetic::outcome();
        outcome.about.versions.karpenter = release.parse().unwrap();
        let found = format::read(&super::text(&outcome, super::every(60))).unwrap();
        let names = found.series.keys().map(|(name, _)| name.clone());
        names.filter(|name| name.starts_with("karpenter_") || name.starts_with("operator_")).collect::<BTreeSet<_>>()
    };
    let transitions = "operator_nodeclaim_status_condition_transition_seconds_count";
    for (release, there, not_there) in [
        ("v1.13", [transitions, "karpenter_pods_eviction_requests_total"], "karpenter_nodes_eviction_requests_total"),
        ("v1.8", [transitions, "karpenter_nodes_eviction_requests_total"], "karpenter_pods_eviction_requests_total"),
        (
            "v1.0",
            ["operator_status_condition_transition_seconds_count", "karpenter_nodeclaims_created_total"],
            transitions,
        ),
        ("v0.37", ["karpenter_nodeclaims_disrupted", "karpenter_nodepool_usage"], "karpenter_nodeclaims_created_total"),
        ("v0.32", ["karpenter_nodeclaims_registered", "karpenter_machines_registered"], "karpenter_nodepool_usage"),
        ("v0.31", ["karpenter_machines_created", "karpenter_provisioner_usage"], "karpenter_nodeclaims_created"),
    ] {
        let names = of_release(release);
        for name in there {
            assert!(names.contains(name), "{release} has no {name}: {names:?}");
        }
        assert!(!names.contains(not_there), "{release} has {not_there}");
    }
}
