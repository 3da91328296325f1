//! Fleets: runs of many clusters, and one bill for all.

use std::fs;

use crate::cli::Place;

pub(crate) const FLEET: &str = "fleet: pair
start: 2026-03-02T00:00:00Z
duration: 2h
seed: 7
accounts:
  - { id: \"000000000031\", name: left }
  - { id: \"000000000032\", name: right }
clusters:
  - { name: a, scenario: scenario.yaml, account: left, count: 2 }
  - { name: b, scenario: scenario.yaml, account: right }
commitments:
  savings_plans: [{ id: all, owner: right, kind: compute, commitment: 0.05, discount: 30% }]
";

/// Runs `fleet.yaml` with this text into `out`; the summary.
pub(crate) fn run(place: &Place, text: &str, words: &[&str]) -> serde_json::Value {
    place.put("fleet.yaml", text);
    let words = [&["run", "fleet.yaml", "--out", "out", "--format", "json", "--quiet"], words].concat();
    let (out, err, code) = place.nodecast(&words);
    assert_eq!(code, Some(0), "{out}{err}");
    serde_json::from_str(&out).unwrap()
}

/// The rows of `out/chargeback.csv`.
pub(crate) fn chargeback(place: &Place) -> Vec<Vec<String>> {
    let text = fs::read_to_string(place.path("out/chargeback.csv")).unwrap();
    text.lines().map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

/// An amount of money in nano-dollars.
pub(crate) fn nanos(text: &str) -> i128 {
    text.replace('.', "").parse().unwrap()
}

#[test]
fn fleet_of_one_cluster_equals_scenario_alone() {
    let place = Place::new();
    let text = "fleet: one\nclusters: [{ name: only, scenario: scenario.yaml }]\n";
    let summary = run(&place, text, &[]);
    let (_, err, code) = place.nodecast(&["run", "scenario.yaml", "--out", "alone", "--quiet"]);
    assert_eq!(code, Some(0), "{err}");
    for file in ["events.jsonl", "pods.csv", "nodes.csv", "bill.csv", "timeline.csv", "summary.json"] {
        let read = |folder: &str| fs::read(place.path(&format!("{folder}/{file}"))).unwrap();
        assert_eq!(read("out/only"), read("alone"), "{file}");
    }
    let bill = fs::read_to_string(place.path("alone/summary.json")).unwrap();
    let bill: serde_json::Value = serde_json::from_str(&bill).unwrap();
    assert_eq!(summary["figures"]["total"], bill["cost"]["total"]);
}

#[test]
fn chargeback_rows_sum_to_total_exactly() {
    let place = Place::new();
    for (rule, discount) in [("owner", "0%"), ("usage", "7%"), ("central", "11%")] {
        let text = format!("{FLEET}chargeback: {{ unused: {rule} }}\ndiscount: {discount}\n");
        run(&place, &text, &[]);
        let rows = chargeback(&place);
        let (titles, total) = (&rows[0], rows.last().unwrap());
        for column in 3..titles.len() {
            let sum: i128 = rows[1..rows.len() - 1].iter().map(|row| nanos(&row[column])).sum();
            assert_eq!(sum, nanos(&total[column]), "{} with {rule}", titles[column]);
        }
    }
}

#[test]
fn without_commitments_bill_is_sum_of_clusters() {
    let place = Place::new();
    let summary = run(&place, FLEET.split("commitments:").next().unwrap(), &[]);
    let total: f64 = summary["clusters"].as_array().unwrap().iter().map(|row| row["alone"].as_f64().unwrap()).sum();
    assert!((summary["figures"]["total"].as_f64().unwrap() - total).abs() < 1e-9, "{summary}");
}

#[test]
fn order_of_clusters_and_threads_changes_no_byte() {
    let place = Place::new();
    run(&place, FLEET, &["--threads", "1"]);
    let read = |file: &str| fs::read(place.path(file)).unwrap();
    let before: Vec<_> = ["out/chargeback.csv", "out/a-2/events.jsonl", "out/b/bill.csv"].map(read).into();
    let lines: Vec<&str> = FLEET.lines().collect();
    let swapped: Vec<&str> = [0, 1, 2, 3, 4, 6, 5, 7, 9, 8, 10, 11].map(|line| lines[line]).into();
    run(&place, &(swapped.join("\n") + "\n"), &["--threads", "3"]);
    let after: Vec<_> = ["out/chargeback.csv", "out/a-2/events.jsonl", "out/b/bill.csv"].map(read).into();
    assert!(before == after);
}

#[test]
fn copies_have_streams_of_their_own() {
    let place = Place::new();
    let summary = run(&place, FLEET, &[]);
    let hashes: std::collections::BTreeSet<&str> =
        summary["clusters"].as_array().unwrap().iter().map(|row| row["event_hash"].as_str().unwrap()).collect();
    assert_eq!(hashes.len(), 3, "{summary}");
}

/// Commands that take no fleet, with a fleet file where they expect the files of a cluster.
const OTHER_COMMANDS: [&[&str]; 13] = [
    &["sweep", "fleet.yaml", "--set", "duration=1h,2h"],
    &["rightsize", "fleet.yaml"],
    &["studio", "fleet.yaml"],
    &["explain", "fleet.yaml", "node", "default-00001"],
    &["explain", "fleet.yaml", "pod", "shop/web-1"],
    &["diff", "fleet.yaml", "scenario.yaml"],
    &["diff", "scenario.yaml", "fleet.yaml"],
    &["backtest", "fleet.yaml", "--from", "alone"],
    &["calibrate", "fleet.yaml", "--from", "alone"],
    &["pack", "fleet.yaml"],
    &["drain", "fleet.yaml", "default-00001"],
    &["init", "written", "--from", "fleet.yaml"],
    &["run", "scenario.yaml", "--set", "manifests[+]=fleet.yaml"],
];

#[test]
fn other_commands_reject_fleets_with_way_out() {
    let place = Place::new();
    place.put("fleet.yaml", FLEET);
    let (_, err, code) = place.nodecast(&["run", "scenario.yaml", "--out", "alone", "--quiet"]);
    assert_eq!(code, Some(0), "{err}");
    for words in OTHER_COMMANDS {
        let (out, err, code) = place.nodecast(words);
        assert_eq!(code, Some(2), "{words:?}: {out}{err}");
        let text = (out + &err).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("is a fleet"), "{words:?}: {err}");
        assert!(text.contains("`run`, `compare`"), "{words:?}: {err}");
    }
    let (_, err, code) = place.nodecast(&["run", "fleet.yaml", "--set", "duration=1h"]);
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("`--set` does not apply to a fleet"), "{err}");
    let (_, err, code) = place.nodecast(&["run", "scenario.yaml", "--threads", "2"]);
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("`--threads` does not apply to a scenario"), "{err}");
}

#[test]
fn validate_shows_clusters_and_errors_of_fleet() {
    let place = Place::new();
    // An account that only pays counts as little as in the answer of a run.
    let payer = "  - { id: \"000000000039\", name: payer }\nclusters:";
    place.put("fleet.yaml", &FLEET.replace("clusters:", payer));
    let (out, err, code) = place.nodecast(&["validate", "fleet.yaml"]);
    assert_eq!(code, Some(0), "{out}{err}");
    for words in ["fleet.yaml: valid", "pair: 3 clusters in 2 accounts", "1 Savings Plan", "estimated run size"] {
        assert!(out.contains(words), "{words}: {out}");
    }
    let (out, err, code) = place.nodecast(&["validate", "fleet.yaml", "--format", "json"]);
    assert_eq!(code, Some(0), "{out}{err}");
    let findings: serde_json::Value = serde_json::from_str(&out).unwrap();
    let clusters = &findings[0]["fleet"]["clusters"];
    assert_eq!(
        (&clusters[0]["name"], &clusters[0]["count"], &clusters[1]["account"]),
        (&"a".into(), &2.into(), &"right".into())
    );
    assert!(clusters[0]["holds"]["policies"][0]["expected"]["pods"].as_u64() > Some(0), "{clusters}");
    place.put("fleet.yaml", &FLEET.replace("account: left, count", "account: middle, count"));
    place.put("broken.yaml", "name: broken\nregion: us-east-1\nduratoin: 1h\n");
    place.put("second.yaml", &FLEET.replace("name: b, scenario: scenario.yaml", "name: b, scenario: broken.yaml"));
    let (out, err, code) = place.nodecast(&["validate", "fleet.yaml", "second.yaml", "--format", "json"]);
    assert_eq!(code, Some(2), "{out}{err}");
    let findings: serde_json::Value = serde_json::from_str(&out).unwrap();
    for (finding, file, line) in [(&findings[0], "fleet.yaml", 9), (&findings[1], "broken.yaml", 3)] {
        assert_eq!(
            (finding["usable"].as_bool(), finding["error"]["line"].as_u64()),
            (Some(false), Some(line)),
            "{finding}"
        );
        assert!(finding["error"]["file"].as_str().unwrap().ends_with(file), "{finding}");
    }
}

#[test]
fn focus_rows_sum_to_bill_and_commitments_balance() {
    let place = Place::new();
    let text = format!("{FLEET}chargeback: {{ unused: owner }}\ndiscount: 5%\n");
    let summary = run(&place, &text, &["--focus", "focus", "--focus-version", "1.3"]);
    let mut reader = csv::Reader::from_path(place.path("focus/focus.csv")).unwrap();
    let titles = reader.headers().unwrap().clone();
    let column = |title: &str| titles.iter().position(|known| known == title).unwrap();
    let (effective, billed) = (column("EffectiveCost"), column("BilledCost"));
    let (category, discount) = (column("ChargeCategory"), column("CommitmentDiscountId"));
    assert!(titles.iter().any(|title| title == "HostProviderName"));
    let (mut total, mut used, mut fees) = (0, 0, 0);
    for row in reader.records().map(|row| row.unwrap()) {
        total += nanos(&row[effective]);
        if &row[discount] == "all" {
            used += nanos(&row[effective]);
            fees += if &row[category] == "Purchase" { nanos(&row[billed]) } else { 0 };
        }
    }
    assert_eq!((used, fees), (100_000_000, 100_000_000), "0.05 for two hours");
    let all = nanos(&chargeback(&place).last().unwrap()[16]);
    assert_eq!(total, all, "{summary}");
}

#[test]
fn recommend_finds_commitments_with_bound() {
    let place = Place::new();
    place.put("fleet.yaml", FLEET);
    let words = ["recommend", "fleet.yaml", "--levers", "commitments", "--compute-discount", "25%", "--format", "json"];
    let (out, err, code) = place.nodecast(&[&words[..], &["--terms", "1y", "--quiet"]].concat());
    assert_eq!(code, Some(0), "{out}{err}");
    let answer: serde_json::Value = serde_json::from_str(&out).unwrap();
    for offer in answer["offers"].as_array().unwrap() {
        let amount = |key: &str| offer[key].as_f64().unwrap();
        assert!(amount("bound") <= amount("cost") + 1e-9 && amount("cost") <= amount("on_demand"), "{offer}");
        assert!((amount("repriced") - amount("cost")).abs() < 1e-3 * amount("on_demand"), "{offer}");
        assert!(amount("cost") <= amount("families_alone") + 1e-6, "{offer}");
    }
    let (_, err, code) = place.nodecast(&["recommend", "fleet.yaml", "--levers", "spot"]);
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("no other lever"), "{err}");
}

#[test]
fn compare_and_check_take_fleets() {
    let place = Place::new();
    place.put("fleet.yaml", FLEET);
    let (out, err, code) = place.nodecast(&["compare", "fleet.yaml", "--replications", "2", "--quiet"]);
    assert_eq!(code, Some(2), "{out}");
    assert!(err.contains("at least two policies"), "{err}");
    let baseline = ["check", "--baseline", "b.json", "fleet.yaml", "--quiet"];
    let (out, err, code) = place.nodecast(&[&baseline[..], &["--update", "--replications", "1"]].concat());
    assert_eq!(code, Some(0), "{out}{err}");
    let (out, err, code) = place.nodecast(&baseline);
    assert_eq!(code, Some(0), "{out}{err}");
    place.put("fleet.yaml", &FLEET.replace("commitment: 0.05", "commitment: 5"));
    let (out, err, code) = place.nodecast(&baseline);
    assert_eq!(code, Some(1), "{out}{err}");
}

#[test]
fn shared_quota_couples_clusters_that_exceed_it() {
    let place = Place::new();
    let text = format!(
        "{FLEET}shared: {{ quotas: [{{ account: left, region: us-east-1, on_demand: {{ standard: 3 }} }}] }}\n"
    );
    let summary = run(&place, &text, &[]);
    let coupling = summary["coupling"].as_array().unwrap();
    let [group] = coupling.as_slice() else { panic!("{summary}") };
    assert_eq!(group["clusters"].as_array().unwrap().len(), 2, "{summary}");
    assert!(group["limits"][0].as_str().unwrap().contains("vCPU quota standard"), "{summary}");
    let refused = |row: &serde_json::Value| row["launches_refused"].as_u64().unwrap();
    let refused: Vec<u64> = summary["clusters"].as_array().unwrap().iter().map(refused).collect();
    assert!(refused[0] + refused[1] > 0 && refused[2] == 0, "{summary}");
}
