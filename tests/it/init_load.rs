//! Load that `nodecast init --from` derives from a dump: demand in cores, which moves replicas and nodes and bills no transfer; and what the
//! answer says about the size of each assumption.

use std::fs;

use serde_json::Value;

use crate::cli::Place;
use crate::migration::{nodes, workload};

/// Nodes of two groups in three zones, one of them Spot, and two workloads of which an autoscaler scales one.
fn dump(volume_kib: u64) -> String {
    let nodes = nodes("base", 3, "m5.xlarge", false, None) + &nodes("cheap", 2, "m6i.large", true, None);
    let nodes = nodes.replace("20893676Ki", &format!("{volume_kib}Ki"));
    let autoscaler = "---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: search, namespace: shop}
spec:
  minReplicas: 2
  maxReplicas: 40
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: search}
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 60}}}]
status:
  currentReplicas: 4
  desiredReplicas: 4
  currentMetrics: [{type: Resource, resource: {name: cpu, current: {averageUtilization: 56, averageValue: 224m}}}]
";
    [
        &nodes,
        &workload("search", "search", 4, 400, ("base", 3), None),
        &workload("mail", "mail", 2, 300, ("cheap", 2), None),
        autoscaler,
    ]
    .concat()
}

/// The scenario of a dump, and what `init` printed.
fn made(dump: &str) -> (Place, String) {
    let place = Place::new();
    place.put("cluster.yaml", dump);
    let (out, err, code) = place.nodecast(&["init", "own", "--from", "cluster.yaml"]);
    assert_eq!(code, Some(0), "{err}");
    (place, out)
}

fn run(place: &Place, more: &[&str]) -> Value {
    let arguments = ["run", "own/scenario.yaml", "--format", "json", "--quiet", "--out", "out"];
    let (out, err, code) = place.nodecast(&[&arguments, more].concat());
    assert_eq!(code, Some(0), "{err}");
    serde_json::from_str(&out).unwrap()
}

fn texts(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().filter_map(Value::as_str).collect()
}

/// What the bill has of an item.
fn amount(summary: &Value, item: &str) -> Option<f64> {
    let items = summary["cost"]["by_item"].as_array().unwrap();
    items.iter().find(|part| part["name"] == item).and_then(|part| part["amount"].as_f64())
}

/// Most replicas that a workload wanted.
fn most_wanted(summary: &Value, workload: &str) -> u64 {
    let all = summary["scaling"]["workloads"].as_array().unwrap();
    all.iter().find(|scaling| scaling["workload"] == workload).unwrap()["max_replicas_desired"].as_u64().unwrap()
}

#[test]
fn measured_cores_scale_replicas_and_bill_no_transfer() {
    let (place, _) = made(&dump(20_893_676));
    let scenario = fs::read_to_string(place.path("own/scenario.yaml")).unwrap();
    assert!(scenario.contains("cpu: { diurnal: { night: 0.358, peak: 0.896, peak_at: 12h0m } }"), "{scenario}");
    assert!(!scenario.contains("cpu_per_request: 10ms") && !scenario.contains("service: { cpu_per_request: 1ms"));
    let today = run(&place, &["--duration", "20m"]);
    // The dump's time of day is the peak: as many replicas as it shows.
    assert_eq!(most_wanted(&today, "shop/search"), 4);
    let twice = run(&place, &["--duration", "20m", "--set", "load[*].requests.scale=2"]);
    assert!((7..=9).contains(&most_wanted(&twice, "shop/search")), "{}", twice["scaling"]);
    for summary in [&today, &twice] {
        assert_eq!(amount(summary, "cross-zone transfer"), None);
        assert_eq!(summary["requests"], Value::Array(Vec::new()));
        assert_eq!(texts(&summary["loads_in_cores"]), ["shop/search"]);
        let warnings = texts(&summary["warnings"]);
        assert!(
            warnings
                .iter()
                .any(|text| text.starts_with("cross-zone transfer is not known") && text.contains("too low"))
        );
        assert!(warnings.iter().any(|text| text.contains("smooth curve") && text.contains("too low")), "{warnings:?}");
    }
}

#[test]
fn assumption_of_load_states_its_part_of_bill() {
    let (place, _) = made(&dump(20_893_676));
    let summary = run(&place, &["--duration", "20m"]);
    let about = &summary["about"];
    let place_of = |words: &str| texts(&about["assumptions"]).iter().position(|text| text.contains(words)).unwrap();
    let size = &about["assumption_costs"][place_of("CPU in cores")];
    let by_workload = summary["cost"]["by_workload"].as_array().unwrap();
    let share = by_workload.iter().find(|part| part["name"] == "shop/search").unwrap();
    assert!(size["amount"].as_f64().unwrap() > 0.0);
    assert_eq!((&size["amount"], &size["share"]), (&share["amount"], &share["share"]));
    let gateways = &about["assumption_costs"][place_of("NAT gateways")]["amount"];
    let billed = amount(&summary, "NAT gateways").unwrap() + amount(&summary, "NAT transfer").unwrap_or_default();
    assert!((gateways.as_f64().unwrap() - billed).abs() < 1e-9);
    assert_eq!(about["assumption_costs"][place_of("begins with the nodes")], Value::Null);
    // Both first screens have it.
    let (out, ..) = place.nodecast(&["run", "own/scenario.yaml", "--verbose", "--duration", "20m", "--out", "out"]);
    assert!(out.contains("%): The load of 1 workload is CPU in cores"), "{out}");
    assert!(out.contains("size unknown: Load from a dump is a smooth curve"), "{out}");
    assert!(out.contains("response time           not known for 1 workload"), "{out}");
    let page = fs::read_to_string(place.path("out/report.html")).unwrap();
    let answers = &page[..page.find("id=\"cost\"").unwrap()];
    assert!(answers.contains("%): The load of 1 workload is CPU in cores"), "{answers}");
    assert!(page.contains("Part of the bill that depends on it: size unknown."));
}

#[test]
fn nodes_cost_what_init_printed_per_hour() {
    // Root volumes of 500 GiB: with them the nodes cost a third more.
    let (place, out) = made(&dump(524_288_000));
    let (_, rest) = out.split_once("with volumes and addresses $").unwrap();
    let printed: f64 = rest.split(' ').next().unwrap().parse().unwrap();
    let listed: f64 = out.split_once("cores, $").unwrap().1.split(' ').next().unwrap().parse().unwrap();
    assert!(printed > listed + 0.2, "{out}");
    let scenario = fs::read_to_string(place.path("own/scenario.yaml")).unwrap();
    assert!(scenario.contains(&format!("with volumes and addresses ${printed:.2} per hour")), "{scenario}");
    let summary = run(&place, &["--duration", "1m"]);
    let nodes = summary["cost"]["nodes_per_hour"].as_f64().unwrap();
    assert!((nodes - printed).abs() <= 0.006, "{nodes} against {printed}");
    let (out, ..) = place.nodecast(&["run", "own/scenario.yaml", "--duration", "1m", "--out", "out"]);
    let line = out.lines().find(|line| line.starts_with("  nodes")).unwrap();
    assert!(line.contains(&format!(" (${nodes:.4}/h)")), "{line}");
}

#[test]
fn memory_of_cpu_load_is_its_usage() {
    let memory = "{type: Resource, resource: {name: memory, target: {type: Utilization, averageUtilization: 70}}}";
    let dump = dump(20_893_676)
        .replace("averageUtilization: 60}}}]", &format!("averageUtilization: 60}}}}}}, {memory}]"))
        .replace(
            "averageValue: 224m}}}]",
            "averageValue: 224m}}}, {type: Resource, resource: {name: memory, current: {averageUtilization: 50, averageValue: 256Mi}}}]",
        );
    let (place, _) = made(&dump);
    let scenario = fs::read_to_string(place.path("own/scenario.yaml")).unwrap();
    assert!(scenario.contains("- { workload: shop/search, memory: { constant: 256 } }   # 4 pods"), "{scenario}");
    assert_eq!(most_wanted(&run(&place, &["--duration", "10m"]), "shop/search"), 4);
}

#[test]
fn transfer_is_billed_once_bytes_are_stated() {
    let (place, _) = made(&dump(20_893_676));
    let requests =
        "load[0]={workload: shop/search, requests: {constant: 60}, service: {cpu_per_request: 12ms, concurrency: 8}}";
    let counted = run(&place, &["--duration", "20m", "--set", requests]);
    let is_unknown = |summary: &Value| {
        texts(&summary["warnings"]).iter().any(|text| text.starts_with("cross-zone transfer is not known"))
    };
    assert!(is_unknown(&counted) && amount(&counted, "cross-zone transfer").is_none(), "{}", counted["warnings"]);
    let bytes = "ec2.billing.cross_zone.bytes_per_request=90k";
    let stated = run(&place, &["--duration", "20m", "--set", requests, "--set", bytes]);
    assert!(!is_unknown(&stated) && stated["loads_in_cores"].is_null(), "{}", stated["warnings"]);
    // 72,000 requests of 90 kB, two thirds of which leave their zone.
    let expected = 72_000.0 * 90_000.0 * 2.0 / 3.0 / 1e9 * 0.02;
    assert!((amount(&stated, "cross-zone transfer").unwrap() / expected - 1.0).abs() < 0.02);
}
