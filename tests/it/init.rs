//! `nodecast init`: what a newcomer starts from runs at once, answers a question, and overwrites nothing.

use std::fs;

use serde_json::Value;

use crate::cli::Place;

/// An answer of the program that is JSON.
fn json(place: &Place, arguments: &[&str]) -> Value {
    let (out, err, code) = place.nodecast(arguments);
    assert_eq!(code, Some(0), "{err}");
    serde_json::from_str(&out).unwrap()
}

#[test]
fn the_example_runs_as_it_is_and_its_second_policy_is_cheaper() {
    let place = Place::new();
    let (out, err, code) = place.nodecast(&["init", "shop"]);
    assert_eq!((err.as_str(), code), ("", Some(0)));
    assert!(
        out.starts_with("wrote shop/scenario.yaml\n") && out.contains("\n  nodecast run shop/scenario.yaml\n"),
        "{out}"
    );
    assert!(
        fs::read_dir(place.path("shop")).unwrap().all(|entry| !entry
            .unwrap()
            .file_name()
            .to_string_lossy()
            .starts_with('.'))
    );
    // The whole day is the release build's; what a day has is there within its busiest hours too.
    let scenario = fs::read_to_string(place.path("shop/scenario.yaml")).unwrap();
    let scenario = scenario
        .replace("T00:00:00Z ", "T11:30:00Z ")
        .replace("duration: 24h", "duration: 90m")
        .replace("first: 12h", "first: 30m");
    let scenario = scenario.replace("at: 18h", "at: 40m").replace("at: 20h", "at: 80m");
    place.put("shop/scenario.yaml", &scenario);
    let summary = |policy: &str| {
        json(&place, &["run", "shop/scenario.yaml", "--policy", policy, "--format", "json", "--quiet", "--out", policy])
    };
    let (on_demand, spot) = (summary("on-demand"), summary("spot"));
    let cost = |summary: &Value| summary["cost"]["total"].as_f64().unwrap();
    assert!(cost(&spot) < 0.9 * cost(&on_demand), "{} against {}", cost(&spot), cost(&on_demand));
    assert!(on_demand["nodes"]["launches"].as_u64().unwrap() >= 4, "nodes come and go");
    assert_eq!(on_demand["warnings"], serde_json::json!([]));
    assert!(on_demand["objectives"].as_array().is_some_and(|all| all.len() == 2), "{}", on_demand["objectives"]);
}

#[test]
fn region_and_release_can_be_chosen_and_wrong_ones_are_answered() {
    let place = Place::new();
    let (_, err, code) = place.nodecast(&["init", "a", "--region", "eu-central-1", "--karpenter", "v1.14"]);
    assert_eq!(code, Some(0), "{err}");
    let scenario = fs::read_to_string(place.path("a/scenario.yaml")).unwrap();
    for line in [
        "name: a ",
        "region: eu-central-1 ",
        "  karpenter: v1.14 ",
        "  zones: [eu-central-1a, eu-central-1b, eu-central-1c] ",
    ] {
        assert!(scenario.contains(line), "{line}");
    }
    for (arguments, words) in [
        (&["init", "b", "--region", "eu-central-9"][..], "did you mean `eu-central-1`?"),
        (&["init", "b", "--karpenter", "v0.18"], "which Karpenter v0.18.1 does not know"),
        (&["init", "b", "--karpenter", "v9"], "unknown Karpenter version `v9`"),
        (&["init", "scenario.yaml"], "`scenario.yaml` is not a directory"),
    ] {
        let (out, err, code) = place.nodecast(arguments);
        assert_eq!((out.as_str(), code), ("", Some(2)), "{err}");
        assert!(err.contains(words), "{err}");
        assert!(!place.path("b").exists());
    }
}

#[test]
fn nothing_is_overwritten_unless_it_is_asked_for() {
    let place = Place::new();
    place.put("mine/workloads.yaml", "mine");
    place.put("mine/notes.txt", "mine too");
    let (out, err, code) = place.nodecast(&["init", "mine"]);
    assert_eq!((out.as_str(), code), ("", Some(2)));
    assert!(err.contains("`mine/workloads.yaml` exists and is not overwritten") && err.contains("--force"), "{err}");
    assert_eq!(fs::read_dir(place.path("mine")).unwrap().count(), 2, "nothing half-written");
    let (_, err, code) = place.nodecast(&["init", "mine", "--force"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(fs::read_to_string(place.path("mine/workloads.yaml")).unwrap().contains("kind: Deployment"));
    assert_eq!(fs::read_to_string(place.path("mine/notes.txt")).unwrap(), "mine too");
}
