//! Back-tests of records of the program itself: with other seeds they agree, with wrong parameters they say which.

use std::path::Path;

use serde_json::Value;

const TWO_DAYS: &str = "tests/data/backtest";

/// Runs the program, which has to succeed but for a verdict.
fn nodecast(words: &[&str]) -> String {
    let output = assert_cmd::Command::cargo_bin("nodecast").unwrap().args(words).output().unwrap();
    assert!(output.status.code().is_some_and(|code| code < 2), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The back-test of a scenario's run with one seed by others, with further words.
fn judged(scenario: &str, recorded: &str, (first, seeds): (&str, &str), more: &[&str]) -> Value {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name).display().to_string();
    let scenario = Path::new(scenario).join("scenario.yaml").display().to_string();
    nodecast(&["run", &scenario, "--seed", recorded, "--quiet", "--out", &path("record")]);
    let (from, out) = (path("record"), path("out"));
    let words = ["backtest", &scenario, "--from", &from, "--seed", first, "--replications", seeds, "--quiet"];
    let answer = nodecast(&[&words[..], &["--format", "json", "--out", &out], more].concat());
    serde_json::from_str(&answer).unwrap()
}

fn verdict_of<'v>(answer: &'v Value, name: &str) -> &'v str {
    let figures = answer["figures"].as_array().unwrap();
    let figure = figures.iter().find(|figure| figure["name"] == name);
    figure.unwrap_or_else(|| panic!("{name}"))["verdict"].as_str().unwrap()
}

#[test]
fn five_seeds_do_not_condemn_a_dear_run() {
    let answer = judged(TWO_DAYS, "7", ("9", "5"), &[]);
    for name in ["cost_per_day", "cost_at_held_prices_per_day", "reclaims_per_day"] {
        assert_ne!(verdict_of(&answer, name), "differs", "{name}: {:#}", answer["figures"]);
    }
    assert_eq!((&answer["tally"]["differs"], &answer["changes"]), (&serde_json::json!(0), &serde_json::json!([])));
}

#[test]
fn a_run_agrees_with_a_replay_of_itself() {
    let answer = judged(TWO_DAYS, "7", ("7", "1"), &[]);
    let tally = |key: &str| answer["tally"][key].as_u64().unwrap();
    assert_eq!(tally("differs"), 0, "{:#}", answer["figures"]);
    assert!(tally("agrees") * 100 >= 95 * tally("figures"), "{:#}", answer["figures"]);
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
#[allow(clippy::print_stdout)]
fn own_records_agree_with_other_seeds() {
    let scenarios = [
        TWO_DAYS,
        "scenarios/shop-day",
        "scenarios/consolidation-tuning",
        "scenarios/batch",
        "scenarios/multi-architecture",
    ];
    let mut sums = [0, 0];
    for (scenario, seed) in scenarios.iter().flat_map(|scenario| ["7", "2", "33"].map(|seed| (scenario, seed))) {
        let answer = judged(scenario, seed, ("1001", "20"), &[]);
        let tally = |key: &str| answer["tally"][key].as_u64().unwrap();
        println!("{scenario} {seed}: {} of {} differ: {:#}", tally("differs"), tally("figures"), answer["changes"]);
        for (sum, key) in sums.iter_mut().zip(["differs", "figures"]) {
            *sum += tally(key);
        }
    }
    assert!(sums[0] * 20 <= sums[1], "{} of {} differ", sums[0], sums[1]);
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn a_planted_parameter_is_named_by_the_answer() {
    let planted: [(&[&str], &str); 6] = [
        (
            &["HorizontalPodAutoscaler[shop/web].spec.metrics[0].resource.target.averageUtilization=35"],
            "HorizontalPodAutoscaler of shop/web",
        ),
        (
            &["HorizontalPodAutoscaler[shop/web].spec.maxReplicas=9"],
            "`maxReplicas` of the HorizontalPodAutoscaler of shop/web",
        ),
        (
            &["HorizontalPodAutoscaler[shop/web].spec.minReplicas=14"],
            "`minReplicas` of the HorizontalPodAutoscaler of shop/web",
        ),
        (&["load[0].service.cpu_per_request=15ms"], "`load` of shop/web"),
        (
            &["ec2.launch_latency={ vm_init: 28s, os_boot: 18s, bootstrap: 40s, register: 4s, cni_ready: 16s }"],
            "launch_latency",
        ),
        (&["NodePool[default].spec.disruption.consolidateAfter=12h"], "consolidateAfter"),
    ];
    for (edits, parameter) in planted {
        let sets: Vec<&str> = edits.iter().flat_map(|edit| ["--set", *edit]).collect();
        let answer = judged(TWO_DAYS, "7", ("101", "20"), &sets);
        let named = answer["changes"].to_string();
        assert!(named.contains(parameter), "{edits:?}: {named}\n{:#}", answer["tally"]);
    }
}

#[test]
fn a_table_without_rows_records_that_nothing_happened() {
    let place = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(place.path().join(name), text).unwrap();
    write("observation.json", r#"{ "window": { "start": "2026-10-11T22:00:00Z", "seconds": 14400 } }"#);
    let read = || nodecast::evidence::backtest::tables::read(place.path()).unwrap();
    let absent = read();
    assert!(
        absent.nodes.is_none() && absent.pods.is_none() && absent.workloads.is_none() && absent.spot_prices.is_none()
    );
    assert!(!absent.knows_evictions() && !absent.knows_ends() && absent.counted.nodes.is_none());
    for name in ["nodes.csv", "pods.csv", "workloads.csv", "spot_prices.csv"] {
        write(name, "at_seconds\n");
    }
    let empty = read();
    assert!(empty.nodes.as_ref().is_some_and(Vec::is_empty) && empty.pods.as_ref().is_some_and(Vec::is_empty));
    assert!(empty.workloads.as_ref().is_some_and(std::collections::BTreeMap::is_empty) && empty.spot_prices.is_some());
    assert!(empty.knows_evictions() && empty.knows_ends());
}
