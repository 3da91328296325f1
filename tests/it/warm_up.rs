//! A scenario's `warm_up`: what happens while a cluster comes up does not count in the figures of waiting, churn and response
//! times, and the reader is told.

use std::fs;

use serde_json::Value;

use crate::cli::Place;
use crate::outputs::all_documented;

/// Two pods that wait for a first node while requests come in, and four more that wait later.
const SCENARIO: &str = "\
name: warms-up
region: us-east-1
start: 2026-11-27T00:00:00Z
duration: 15m
seed: 7
replications: 2
manifests: [cluster.yaml]
load:
  - workload: shop/web
    requests: { steps: [{ at: 0s, rate: 40 }] }
    service: { cpu_per_request: 5ms, concurrency: 16, base_latency: 20ms, timeout: 10s }
timeline:
  - { at: 7m, scale: { workload: shop/web, replicas: 6 } }
objectives: { pending_p99: 60s }
";

fn place(warm_up: &str) -> Place {
    let place = Place::new();
    place.put("scenario.yaml", &SCENARIO.replace("seed: 7\n", &format!("seed: 7\n{warm_up}")));
    place
}

fn run(place: &Place) -> (Value, String) {
    let (out, err, code) = place.nodecast(&["run", "scenario.yaml", "--out", "here"]);
    assert_eq!(code, Some(0), "{err}");
    (serde_json::from_str(&fs::read_to_string(place.path("here/summary.json")).unwrap()).unwrap(), out)
}

fn number(summary: &Value, pointer: &str) -> f64 {
    summary.pointer(pointer).and_then(Value::as_f64).unwrap_or_else(|| panic!("{pointer}: {summary:#}"))
}

#[test]
fn warm_up_events_do_not_count() {
    let ((whole, _), (later, _)) = (run(&place("")), run(&place("warm_up: 5m\n")));
    let of = |pointer: &str| (number(&whole, pointer), number(&later, pointer));
    assert_eq!(of("/pods/wait_for_node/count"), (6.0, 4.0));
    assert_eq!(of("/pods/created_to_ready/count"), (6.0, 4.0));
    let (all, since) = of("/nodes/launches");
    assert!(since >= 1.0 && since < all, "{since} of {all} launches");
    assert_eq!(of("/scaling/changes_in_all"), (1.0, 1.0), "the change by hand at 7m");
    // Clients gave up while there was no replica.
    let (given_up, nobody) = of("/requests/0/timed_out");
    assert!(given_up > 1_000.0 && nobody < 1e-9, "{given_up} and {nobody} given up");
    let (all, since) = of("/requests/0/completed");
    assert!((since - 40.0 * 600.0).abs() < 1.0 && since < all, "{since} of {all}: ten minutes of 40 a second");
    let (all, since) = of("/requests/0/overloaded_seconds");
    assert!(since < all);
}

#[test]
fn cost_and_what_happens_stay_as_they_are() {
    let ((whole, _), (later, _)) = (run(&place("")), run(&place("warm_up: 5m\n")));
    for same in ["/cost", "/utilisation", "/event_hash", "/nodes/max_ready", "/nodes/mean_ready", "/pods/created"] {
        assert_eq!(whole.pointer(same), later.pointer(same), "{same}");
    }
    assert_eq!(later["about"]["warm_up_seconds"], 300.0);
    assert!(whole["about"].get("warm_up_seconds").is_none(), "without the key nothing is new");
    all_documented(&serde_json::from_value(later).unwrap());
}

#[test]
fn pod_waiting_past_warm_up_counts_fully() {
    let place = place("warm_up: 5m\n");
    let cluster = fs::read_to_string(place.path("cluster.yaml")).unwrap();
    place.put(
        "cluster.yaml",
        &cluster.replace(
            "\nspec:\n  template:\n    spec:\n      nodeClassRef",
            "\nspec:\n  limits: {cpu: 1}\n  template:\n    spec:\n      nodeClassRef",
        ),
    );
    let (summary, _) = run(&place);
    assert_eq!(summary["pods"]["pending_at_end"], 6);
    assert_eq!(summary["pods"]["wait_for_node"]["count"], 6);
    assert!(number(&summary, "/pods/wait_for_node/max_seconds") > 899.0, "not since the warm-up alone");
}

#[test]
fn terminal_pages_and_comparisons_tell_of_it() {
    let told = "Warm-up 5m: excluded from waits, missing replicas, churn, replica changes, and response times;";
    let spaced = |text: &str| text.replace('\u{a0}', " ");
    let place = place("warm_up: 5m\n");
    let (_, out) = run(&place);
    assert!(out.contains("waits and churn exclude the 5m warm-up"), "{out}");
    let page = fs::read_to_string(place.path("here/report.html")).unwrap();
    assert!(spaced(&page).contains(told) && page.contains("\"warm_up\":3000"));
    assert!(page.contains("The grey band is the warm-up"));
    let (out, err, code) = place.nodecast(&["compare", "scenario.yaml", "--out", "both"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains(told), "{out}");
    let page = fs::read_to_string(place.path("both/comparison.html")).unwrap();
    assert!(spaced(&page).contains(told) && page.contains("\"warm_up\":3000"));
    assert!(page.contains("The grey band is the warm-up"));
    let (out, err, code) =
        place.nodecast(&["sweep", "scenario.yaml", "--replications", "1", "--set", "seed=1,2", "--out", "swept"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains(told), "{out}");
    assert!(spaced(&fs::read_to_string(place.path("swept/sweep.html")).unwrap()).contains(told));
    let edited = ["diff", "scenario.yaml", "--set", "warm_up=0s", "--replications", "1"];
    let (out, err, code) = place.nodecast(&edited);
    assert_eq!(code, Some(0), "{err}");
    assert!((out + &err).contains("`warm_up` is 5m now and 0s with the change"));
}

#[test]
fn warm_up_longer_than_run_warns() {
    let place = place("warm_up: 15m\n");
    let (_, err, _) = place.nodecast(&["validate", "scenario.yaml"]);
    let (summary, _) = run(&place);
    assert_eq!(summary["pods"]["wait_for_node"]["count"], 6);
    assert!(summary["about"].get("warm_up_seconds").is_none());
    let warning = summary["warnings"].to_string();
    for words in ["scenario.yaml:6:10", "`warm_up` (15m) is not shorter than the run (15m), so it is ignored"] {
        assert!(warning.contains(words), "{warning} {err}");
    }
}
