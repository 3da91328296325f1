//! Savings that are known by construction, one for each lever of a line of the bill: `recommend` has to find them.

use std::process::Command;

use nodecast::recommend::presentation::recommendation::text;
use nodecast::recommend::recommendation::{Advice, LargeLine, LeverResult, Recommendation};

/// The most simulations that a search may take.
const SIMULATIONS: &str = "400";

/// The answer for a plant.
fn recommended(name: &str, more: &[&str]) -> Recommendation {
    let scenario = format!("tests/data/plants/{name}/scenario.yaml");
    let output = Command::new(env!("CARGO_BIN_EXE_nodecast"))
        .args(["recommend", &scenario, "--format", "json", "--quiet", "--simulations", SIMULATIONS])
        .args(more)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Checks that the lever is recommended, and saves 90% of the plant per month; returns the line of the bill with this name.
fn found(answer: &Recommendation, lever: &str, planted: f64, line: &str) -> LargeLine {
    let shown = text(answer);
    assert_eq!(answer.advice, Advice::Change, "{shown}");
    assert!(answer.effort.used <= 400 && answer.limits.iter().all(|limit| limit.kept), "{shown}");
    let saves: f64 =
        answer.changes.iter().filter(|change| change.lever == lever).map(|change| change.saves_per_month.mean).sum();
    assert!(saves >= 0.9 * planted && saves < 1.2 * planted, "{saves} of {planted}:\n{shown}");
    let line = answer
        .lines
        .iter()
        .find(|this_line| this_line.name == line)
        .unwrap_or_else(|| panic!("no such line:\n{shown}"));
    let of_lever = line.levers.iter().find(|this_lever| this_lever.lever == lever).unwrap();
    assert_eq!(of_lever.result, LeverResult::Recommended, "{shown}");
    line.clone()
}

#[test]
#[ignore = "long: .ci/long plants"]
fn io2_volumes_become_gp3_of_same_rate() {
    let answer = recommended("volumes", &[]);
    let line = found(&answer, "volumes", 6.0 * (570.0 - 57.0), "EBS volumes of claims");
    assert!(answer.lines[0] == line && line.share > 0.5, "{line:?}");
    let edits = &answer.changes.iter().find(|change| change.lever == "volumes").unwrap().edits;
    assert!(edits.iter().all(|edit| edit.object == "StorageClass fast"), "{edits:?}");
    assert!(!edits.iter().any(|edit| edit.path.contains("encrypted")), "{edits:?}");
}

#[test]
#[ignore = "long: .ci/long plants"]
fn unused_savings_plan_gets_load_of_its_family() {
    let answer = recommended("unused-commitments", &[]);
    let line = found(&answer, "unused-commitments", 6.0 * 0.252 * 730.0, "unused commitments");
    assert!((line.per_month - 0.829_44 * 730.0).abs() < 1.0, "{line:?}");
}

#[test]
#[ignore = "long: .ci/long plants"]
fn release_and_tier_without_need_are_left() {
    let answer = recommended("support", &[]);
    let line = found(&answer, "support", 365.0 + 3.4 * 730.0, "control plane tier");
    assert!(answer.lines[0] == line && line.share > 0.5, "{line:?}");
    let release = answer.changes.iter().find(|change| change.subject == "control plane release").unwrap();
    assert!(release.to.starts_with("Kubernetes 1.36: 4 upgrades"), "{release:?}");
}

#[test]
#[ignore = "long: .ci/long plants"]
fn calls_without_a_service_need_fewer_zones() {
    let answer = recommended("zones", &[]);
    let line = found(&answer, "zones", 16e6 * 3_600.0 * 730.0 * 0.02e-9, "cross-zone transfer");
    let routing = line.levers.iter().find(|lever| lever.lever == "topology-routing").unwrap();
    assert_eq!(routing.result, LeverResult::NothingToChange);
    let zones = answer.changes.iter().find(|change| change.lever == "zones").unwrap();
    assert!(zones.to.contains("its outage stops all pods"), "{zones:?}");
}

#[test]
#[ignore = "long: .ci/long plants"]
fn calls_to_a_service_stay_in_their_zone() {
    let answer = recommended("topology-routing", &[]);
    found(&answer, "topology-routing", 15e6 * 3_600.0 * 730.0 * 0.02e-9, "cross-zone transfer");
    assert!(!answer.levers.iter().any(|lever| lever.lever == "zones"), "the pods must be in both zones");
}

#[test]
#[ignore = "long: .ci/long plants"]
fn images_of_ecr_bypass_nat_gateways() {
    let answer = recommended("endpoints", &[]);
    found(&answer, "endpoints", 985.5, "NAT transfer");
}

#[test]
#[ignore = "long: .ci/long plants"]
fn families_that_take_turns_get_a_compute_plan() {
    let answer = recommended("commitments", &["--levers", "commitments"]);
    found(&answer, "commitments", 0.27 * 10.0 * 0.192 * 730.0, "On-Demand nodes");
    assert!(answer.changes[0].to.contains("Compute Savings Plan"), "{:?}", answer.changes);
    let longer = answer.commitments.iter().filter_map(|curve| curve.three_years.as_ref()).count();
    assert_eq!(longer, 2, "{:?}", answer.commitments);
}
