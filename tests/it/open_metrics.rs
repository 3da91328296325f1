//! `metrics.om` is OpenMetrics to the letter, and its numbers are those of the summary.

#![allow(clippy::float_cmp)] // counts are whole numbers

mod cluster;
mod format;

use std::fs;
use std::process::{Command, Stdio};

use nodecast::domain::SimDuration;
use nodecast::report::Summary;
use nodecast::report::open_metrics::{self, Extent, Settings};
use nodecast::simulation::Outcome;

use crate::{cli, cluster_autoscaler_runs, node_groups, spot_market, synthetic};

const REFERENCE: &str = include_str!("../../docs/metrics.md");

fn text(outcome: &Outcome, settings: Settings) -> String {
    let mut bytes = Vec::new();
    open_metrics::write(outcome, settings, &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

fn every(seconds: i64) -> Settings {
    Settings::every(SimDuration::from_secs(seconds))
}

/// The text, read; every family in it is in the reference.
fn metrics(outcome: &Outcome, seconds: i64) -> format::Exposition {
    let found = format::read(&text(outcome, every(seconds))).unwrap();
    let of_sample =
        |name: &str| REFERENCE.contains(&format!("`{name}`")) || REFERENCE.contains(&format!("`{name}_total`"));
    let missing: Vec<_> = found.types.keys().filter(|name| !of_sample(name)).collect();
    assert!(missing.is_empty(), "not in docs/metrics.md: {missing:?}");
    found
}

/// Unix time of an instant of a run.
fn unix(outcome: &Outcome, seconds: f64) -> f64 {
    outcome.about.start.parse::<jiff::Timestamp>().unwrap().as_second() as f64 + seconds
}

fn near(actual: f64, wanted: f64) {
    assert!((actual - wanted).abs() < 1e-5, "{actual} is not {wanted}");
}

fn terminations(summary: &Summary, name: &str) -> f64 {
    summary
        .nodes
        .terminations
        .iter()
        .find(|termination| termination.name == name)
        .map_or(0.0, |termination| termination.count as f64)
}

#[test]
fn the_reader_is_strict() {
    let good =
        "# TYPE a counter\n# HELP a Some.\na_total{x=\"1\"} 1 10\na_total{x=\"1\"} 2 11\na_total{x=\"2\"} 2 5\n# EOF\n";
    assert_eq!(format::read(good).unwrap().sum("a_total", &[], 20.0), 4.0);
    for (from, to) in [
        ("# EOF\n", ""),
        ("# EOF\n", "# EOF\n\n"),
        ("2 11", "2 10"),
        ("2 11", "0 11"),
        ("2 11", "2"),
        ("a_total{x=\"1\"} 2", "a{x=\"1\"} 2"),
        ("a_total{x=\"2\"}", "a_total{x=\"2\",x=\"3\"}"),
        ("# HELP a Some.", "# UNIT a seconds"),
        ("# TYPE a counter", "# TYPE a number"),
        ("# EOF", "a_total{x=\"1\"} 3 12\n# EOF"),
        ("# EOF", "# TYPE a counter\n# EOF"),
        ("x=\"2\"", "x=\"\\t\""),
    ] {
        assert!(format::read(&good.replacen(from, to, 1)).is_err(), "{from} as {to}");
    }
}

#[test]
fn points_of_one_metric_are_not_interleaved() {
    let points = |order: [&str; 4]| format!("# TYPE a summary\n# HELP a Some.\n{}\n# EOF\n", order.join("\n"));
    let (first, second) =
        (["a_count{x=\"1\"} 1 10", "a_sum{x=\"1\"} 2 10"], ["a_count{x=\"1\"} 3 11", "a_sum{x=\"1\"} 4 11"]);
    assert!(format::read(&points([first[0], first[1], second[0], second[1]])).is_ok());
    assert!(format::read(&points([first[0], second[0], first[1], second[1]])).is_err());
}

#[test]
fn a_run_checked_by_hand() {
    let outcome = synthetic::outcome();
    let found = metrics(&outcome, 15);
    let at = |seconds: f64| unix(&outcome, seconds);
    let claims =
        |reason: &str, seconds| found.sum("karpenter_nodeclaims_disrupted_total", &[("reason", reason)], at(seconds));
    assert_eq!(found.sum("karpenter_nodeclaims_created_total", &[("nodepool", "default")], at(3_600.0)), 3.0);
    assert_eq!(
        (claims("empty", 2_190.0), claims("empty", 2_205.0), claims("insufficient_capacity", 3_600.0)),
        (0.0, 1.0, 1.0)
    );
    assert_eq!(found.sum("karpenter_nodepools_limit", &[("resource_type", "cpu")], at(0.0)), 100.0);
    let used = |seconds| found.sum("karpenter_nodepools_usage", &[("resource_type", "cpu")], at(seconds));
    assert_eq!([600.0, 615.0, 960.0, 2_250.0].map(used), [0.0, 2.0, 4.0, 2.0]);
    let ready = |seconds| found.sum("kube_node_status_condition", &[("status", "true")], at(seconds));
    assert_eq!([0.0, 630.0, 645.0, 960.0, 2_220.0].map(ready), [1.0, 1.0, 2.0, 3.0, 2.0]);
    let pending = |seconds| found.sum("kube_pod_status_phase", &[("phase", "Pending")], at(seconds));
    assert_eq!([585.0, 600.0, 630.0, 660.0, 3_600.0].map(pending), [0.0, 1.0, 1.0, 0.0, 1.0]);
    let requested = |seconds, node| {
        let labels = [("node_name", node), ("resource_type", "cpu")];
        found.sum("karpenter_nodes_total_pod_requests", &labels, at(seconds))
    };
    near(requested(645.0, "ip-10-0-0-2"), 1.1);
    near(requested(2_145.0, "ip-10-0-0-2"), 0.1);
    let wanted = |seconds| found.sum("kube_deployment_spec_replicas", &[("deployment", "frontend")], at(seconds));
    assert_eq!([885.0, 900.0].map(wanted), [2.0, 3.0]);
    // Waits of 0, 40, 50, 0 and 0 seconds.
    let bound = |limit: &str| found.sum("karpenter_pods_bound_duration_seconds_bucket", &[("le", limit)], at(3_600.0));
    assert_eq!([bound("0.005"), bound("40.0"), bound("+Inf")], [3.0, 4.0, 5.0]);
    let quantile = found.sum("karpenter_pods_startup_duration_seconds", &[("quantile", "1")], at(1_200.0));
    near(quantile, 55.0);
    assert_eq!(found.types["karpenter_pods_startup_duration_seconds"], "summary");
    assert_eq!(found.sum("karpenter_nodepools_allowed_disruptions", &[("reason", "empty")], at(2_190.0)), 1.0);
    assert_eq!(found.sum("karpenter_nodepools_allowed_disruptions", &[("reason", "empty")], at(2_205.0)), 0.0);
    near(found.sum("nodecast_bill", &[], at(3_600.0)), Summary::from_outcome(&outcome).cost.total);
    near(found.sum("nodecast_cost_per_hour", &[("item", "instance")], at(1_000.0)), 0.096 + 0.04 + 0.0816);
    assert!(metrics(&synthetic::empty(), 60).count("kube_pod_info") == 0);
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn exported_metrics_match_summary() {
    let (outcome, summary) = spot_market::storm("flexible");
    let found = metrics(outcome, 60);
    let end = unix(outcome, summary.about.duration_seconds);
    let total = |name: &str, labels: &[(&str, &str)]| found.sum(name, labels, end);
    let created = total("karpenter_nodeclaims_created_total", &[]);
    assert!(created > 4.0, "{created}");
    assert_eq!(created, (summary.nodes.launches + summary.nodes.failed_launches) as f64);
    let received = |kind| total("karpenter_interruption_received_messages_total", &[("message_type", kind)]);
    assert_eq!(received("spot_interrupted"), summary.nodes.interruptions as f64);
    assert_eq!(received("rebalance_recommendation"), summary.nodes.rebalance_recommendations as f64);
    let disrupted = |reason| total("karpenter_nodeclaims_disrupted_total", &[("reason", reason)]);
    assert!(disrupted("spot_interrupted") > 0.0);
    for (reason, name) in [("spot_interrupted", "interrupted"), ("empty", "empty"), ("underutilized", "underutilized")]
    {
        assert_eq!(disrupted(reason), terminations(summary, name), "{reason}");
    }
    assert_eq!(total("karpenter_pods_eviction_requests_total", &[]), summary.pods.evicted as f64);
    assert_eq!(total("nodecast_pods_evicted_total", &[]), summary.pods.evicted as f64);
    assert_eq!(total("kube_node_status_condition", &[("status", "true")]), summary.nodes.at_end as f64);
    assert_eq!(total("kube_node_info", &[]), total("kube_node_labels", &[]));
    assert_eq!(
        total("karpenter_pods_state", &[("phase", "Pending")]),
        total("kube_pod_status_phase", &[("phase", "Pending")])
    );
    let replicas: u32 =
        outcome.record.samples.last().unwrap().workloads.iter().map(|workload| workload.replicas_ready).sum();
    assert_eq!(total("kube_deployment_status_replicas_ready", &[]), f64::from(replicas));
    assert!(!found.at("karpenter_voluntary_disruption_eligible_nodes", &[("reason", "underutilized")], end).is_empty());
    near(total("nodecast_bill", &[]), summary.cost.total);
    assert_eq!(text(outcome, every(60)), text(outcome, every(60)));
}

#[test]
fn under_the_cluster_autoscaler_too() {
    let workers = cluster_autoscaler_runs::WORKERS;
    let steps = cluster_autoscaler_runs::scaled(&[(5, 8), (20, 2)]);
    let outcome = node_groups::run(&cluster_autoscaler_runs::scenario(workers, "", &steps), &node_groups::web(2));
    let (summary, found) = (Summary::from_outcome(&outcome), metrics(&outcome, 5));
    let at = |minutes: f64| unix(&outcome, 60.0 * minutes);
    let end = at(60.0);
    assert_eq!(found.sum("cluster_autoscaler_scaled_up_nodes_total", &[], end), summary.nodes.launches as f64);
    let removed = |reason| found.sum("cluster_autoscaler_scaled_down_nodes_total", &[("reason", reason)], end);
    assert_eq!(removed("empty"), terminations(&summary, "empty"));
    assert_eq!(removed("underutilized"), terminations(&summary, "underutilized"));
    assert_eq!(removed("empty") + removed("underutilized"), 3.0);
    assert_eq!(found.sum("cluster_autoscaler_evicted_pods_total", &[], end), summary.pods.evicted as f64);
    let nodes = |minutes, state| found.sum("cluster_autoscaler_nodes_count", &[("state", state)], at(minutes));
    assert_eq!((nodes(5.0, "ready"), nodes(15.0, "ready"), nodes(60.0, "ready")), (1.0, 4.0, 1.0));
    let soon_after = || (60..90).map(|step| f64::from(step) / 12.0);
    assert!(soon_after().any(|minutes| nodes(minutes, "unregistered") == 3.0));
    assert_eq!(nodes(60.0, "unregistered"), 0.0);
    let waiting = |minutes| found.sum("cluster_autoscaler_unschedulable_pods_count", &[], at(minutes));
    assert!(soon_after().any(|minutes| waiting(minutes) == 6.0));
    assert_eq!((waiting(4.0), waiting(60.0)), (0.0, 0.0));
    assert!(
        (20..40).any(|minute| found.sum("cluster_autoscaler_unneeded_nodes_count", &[], at(f64::from(minute))) == 3.0)
    );
    let sizes = ["min", "max"].map(|word| found.sum(&format!("cluster_autoscaler_node_group_{word}_count"), &[], end));
    assert_eq!(sizes, [1.0, 6.0]);
    assert!(found.types.keys().all(|name| !name.starts_with("karpenter_")));
}

#[test]
fn old_releases_have_old_names() {
    let mut outcome = synthetic::outcome();
    outcome.about.versions.karpenter = nodecast::domain::KarpenterVersion::V0_22;
    let found = metrics(&outcome, 60);
    assert_eq!(found.types["karpenter_nodes_created"], "unknown");
    assert_eq!(found.sum("karpenter_nodes_created", &[("provisioner", "default")], unix(&outcome, 3_600.0)), 2.0);
    assert!(found.count("karpenter_provisioner_usage") > 0 && found.count("karpenter_nodeclaims_created_total") == 0);
}

#[test]
fn excessive_samples_are_omitted_and_reported() {
    let outcome = synthetic::outcome();
    let few = Settings { samples_max: 100, ..every(1) };
    let extent = Extent::new(&outcome, few);
    assert_eq!((extent.step, extent.nodes.heartbeat, extent.pods.heartbeat), (SimDuration::from_secs(240), None, None));
    assert_eq!(extent.notes().len(), 3, "{:?}", extent.notes());
    let found = format::read(&text(&outcome, few)).unwrap();
    assert_eq!(
        (found.count("kube_node_info"), found.count("kube_pod_info"), found.count("karpenter_pods_state")),
        (0, 0, 0)
    );
    assert!(found.count("kube_deployment_spec_replicas") > 0);
    assert!(Extent::new(&outcome, every(60)).notes().is_empty());
}

#[test]
fn crowded_pod_samples_thin_to_four_minutes() {
    let mut outcome = synthetic::outcome();
    // More of them than of anything else.
    let one = outcome.record.pods.facts(nodecast::domain::PodId(0));
    let more =
        (0..60).map(|number| nodecast::world::record::PodFacts { name: format!("more-{number}"), ..one.clone() });
    outcome.record.pods.extend(more);
    let all = Extent::new(&outcome, every(60));
    let fewer = Settings { samples_max: all.pods.samples - 1, ..every(60) };
    let extent = Extent::new(&outcome, fewer);
    assert_eq!(extent.pods.heartbeat, Some(SimDuration::from_secs(240)));
    assert!(extent.pods.samples < all.pods.samples);
    assert!(extent.notes().iter().any(|note| note.contains("pods have a sample every four minutes only")));
    let samples = |settings| {
        let found = format::read(&text(&outcome, settings)).unwrap();
        found.series.iter().filter(|((name, _), _)| name == "kube_pod_info").map(|(_, key)| key.len()).sum::<usize>()
    };
    assert!(2 * samples(fewer) < samples(every(60)));
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn sample_estimate_is_within_factor_two() {
    let (outcome, _) = spot_market::storm("flexible");
    let (extent, found) = (Extent::new(outcome, every(60)), format::read(&text(outcome, every(60))).unwrap());
    let written = |of: &[&str]| {
        let series = found.series.iter().filter(|((name, _), _)| of.iter().any(|item| name.starts_with(item)));
        series.map(|(_, samples)| samples.len() as u64).sum::<u64>()
    };
    let nodes = written(&["kube_node_", "karpenter_nodes_allocatable", "karpenter_nodes_total_pod_requests"]);
    let pods = written(&["kube_pod_", "kube_job_", "container_", "karpenter_pods_state"]);
    for (estimate, written) in [(extent.nodes.samples, nodes), (extent.pods.samples, pods)] {
        assert!(estimate < 2 * written && written < 2 * estimate, "{estimate} estimated, {written} written");
    }
}

#[test]
fn prometheus_takes_it_in() {
    if Command::new("promtool").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
        return;
    }
    let (outcome, _) = spot_market::storm("flexible");
    let place = tempfile::tempdir().unwrap();
    let (file, blocks) = (place.path().join("metrics.om"), place.path().join("data"));
    fs::write(&file, text(outcome, every(60))).unwrap();
    let made =
        Command::new("promtool").args(["tsdb", "create-blocks-from", "openmetrics"]).arg(&file).arg(&blocks).output();
    let made = made.unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    assert!(fs::read_dir(&blocks).unwrap().count() > 0);
}

#[test]
fn the_command_and_the_scenario_ask_for_it() {
    let place = cli::Place::new();
    let (_, log, code) = place.nodecast(&["run", "scenario.yaml", "--out", "plain"]);
    assert!(code == Some(0) && !place.path("plain/metrics.om").exists(), "{log}");
    let (_, log, code) = place.nodecast(&["run", "scenario.yaml", "--out", "with", "--open-metrics=30s"]);
    assert_eq!(code, Some(0), "{log}");
    let written = fs::read_to_string(place.path("with/metrics.om")).unwrap();
    let found = format::read(&written).unwrap();
    let samples = &found.series.iter().find(|((name, _), _)| name == "nodecast_run_info").unwrap().1;
    assert_eq!((samples.len(), samples[1].0 - samples[0].0), (21, 30.0));
    assert!(fs::read_to_string(place.path("with/report.html")).unwrap().contains("--open-metrics=30s"));
    let (_, log, code) =
        place.nodecast(&["run", "scenario.yaml", "--out", "with", "--open-metrics-samples=1", "--open-metrics"]);
    assert_eq!((code, log.lines().filter(|line| line.starts_with("metrics.om: ")).count()), (Some(0), 3), "{log}");

    let scenario = fs::read_to_string(place.path("scenario.yaml")).unwrap();
    place.put("scenario.yaml", &format!("{scenario}output: {{ open_metrics: true }}\n"));
    let (_, log, code) = place.nodecast(&["run", "scenario.yaml", "--out", "stated"]);
    assert!(code == Some(0) && place.path("stated/metrics.om").exists(), "{log}");
    place.put("scenario.yaml", &format!("{scenario}output: {{ open_metrics: 5m }}\n"));
    let (_, log, code) = place.nodecast(&["run", "scenario.yaml", "--out", "stated"]);
    assert!(code == Some(2) && log.contains("scenario.yaml:7:") && log.contains("from 1s to 4m"), "{log}");
    let (_, log, code) = place.nodecast(&["run", "scenario.yaml", "--open-metrics=1h"]);
    assert!(code == Some(2) && log.contains("must be from 1s to 4m"), "{log}");
}
