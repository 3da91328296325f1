//! `ec2.billing.other`: lines of the bill that are not simulated.

use crate::cli::Place;

const SCENARIO: &str = "name: fees\nregion: eu-west-3\nduration: 73h\n\
    policies: [{ name: today, autoscaler: static }]\nnodeGroups: [{ name: od, instanceType: m6i.large, desired: 1 }]\n";

fn run(other: &str) -> (String, String, Option<i32>, Place) {
    let place = Place::new();
    place.put("scenario.yaml", &format!("{SCENARIO}ec2:\n  billing:\n    other:\n      - {other}\n"));
    let (out, err, code) = place.nodecast(&["run", "scenario.yaml", "--out", "out", "--quiet"]);
    (out, err, code, place)
}

#[test]
fn other_fees_are_in_every_table() {
    let (_, err, code, place) = run("{ name: audit logs, per_month: 50 }");
    assert_eq!(code, Some(0), "{err}");
    let read = |name: &str| std::fs::read_to_string(place.path(name)).unwrap();
    assert!(read("out/bill.csv").lines().any(|line| line.starts_with("audit logs,")), "{}", read("out/bill.csv"));
    let summary: serde_json::Value = serde_json::from_str(&read("out/summary.json")).unwrap();
    let items = summary["cost"]["by_item"].as_array().unwrap();
    let logs = items.iter().find(|item| item["name"] == "audit logs").unwrap();
    assert!((logs["amount"].as_f64().unwrap() - 5.0).abs() < 1e-6, "a tenth of a month: {logs}");
    let missing = summary["cost"]["not_simulated"].to_string();
    assert!(missing.contains("Container Insights") && !missing.contains("logs"), "{missing}");
    assert!(read("out/report.html").contains("Usual lines of an EKS bill that are not simulated"));
}

#[test]
fn other_fee_with_wrong_prices_is_refused() {
    for (other, expected) in [
        ("{ name: logs }", "`logs` has no price"),
        ("{ name: logs, per_month: 5, per_gb: 1 }", "`logs` has two prices"),
        ("{ name: logs, per_month: 5, gb_per_month: 1 }", "`gb_per_month` has no effect on a price per month"),
    ] {
        let (_, err, code, _) = run(other);
        assert_eq!(code, Some(2), "{err}");
        assert!(err.contains(expected) && err.contains("scenario.yaml:9:"), "{err}");
    }
}
