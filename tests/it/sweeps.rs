//! What a sweep says of its settings: which is the cheapest, how surely, and which cannot be compared.

use std::fs;

use nodecast::report::format::{IntervalFigure, Measure};

use crate::cli::Place;

/// A sweep of the scenario of [`Place`] with Spot nodes: what it prints, and its JSON, page and CSV.
fn swept(objectives: &str, more: &[&str]) -> (String, serde_json::Value, String, String) {
    let place = Place::new();
    let scenario = fs::read_to_string(place.path("scenario.yaml")).unwrap();
    place.put("scenario.yaml", &format!("{scenario}{objectives}"));
    let (out, err, code) = place.nodecast(&[&["sweep", "scenario.yaml", "--out", "here"], more].concat());
    assert_eq!(code, Some(0), "{err}");
    let [json, page, csv] = ["sweep.json", "sweep.html", "sweep.csv"]
        .map(|name| fs::read_to_string(place.path("here").join(name)).unwrap());
    (out, serde_json::from_str(&json).unwrap(), page, csv)
}

const CAPPED: [&str; 4] = ["--set", "NodePool[default].spec.limits.cpu=1,2,100", "--replications", "3"];

#[test]
fn setting_with_unscheduled_pods_is_never_cheapest() {
    let (out, json, page, csv) = swept("objectives: {cost: 1}\n", &CAPPED);
    let results = json["results"].as_array().unwrap();
    // It meets the objective, at the cost of the control plane alone.
    let mean = |number: usize| results[number]["figures"][0]["mean"].as_f64().unwrap();
    assert!(results[0]["meets_objectives"] == true && mean(0) < mean(1), "{results:?}");
    let undone = &results[0]["undone"][0];
    assert_eq!(
        (&undone["figure"], &undone["mean"], &undone["least"]),
        (&"pods_pending".into(), &2.0.into(), &0.0.into())
    );
    assert!(results[0]["against_cheapest"].is_null());
    assert_eq!(json["cheapest_meeting_objectives"], 1);
    assert!(!json["front"].as_array().unwrap().contains(&0.into()));
    let cell = "not comparable: 2 pods unscheduled (lowest mean: 0)";
    let sentence = "1 setting leaves unscheduled pods or unanswered requests that another setting does not: \
                    its cost is not comparable.";
    for text in [&out, &page] {
        assert!(text.contains(cell) && text.contains(sentence), "{text}");
    }
    assert!(page.contains("<td data-name=\"Policy\">") && page.contains("data-name=\"Cost\">"), "{page}");
    assert!(page.contains("<circle class=\"undone\"") && page.contains("Hollow dots left work unfinished"), "{page}");
    let lines: Vec<&str> = csv.lines().collect();
    assert!(lines[0].ends_with(
        ",on_front,comparable,cost_low,cost_high,cost_against_cheapest,cost_against_cheapest_low,cost_against_cheapest_high"
    ));
    let cells = |line: usize| lines[line].rsplit(',').take(6).collect::<Vec<&str>>();
    assert!(lines[1].contains(",true,false,false,") && cells(1)[..3] == ["", "", ""], "{csv}");
    assert!(cells(3)[..3] == ["0", "0", "0"] && cells(3)[3] > cells(3)[4] && cells(3)[5] == "true", "{csv}");
    assert!(page.contains(", prices of 2026-") && !page.contains("no instance"), "{page}");
}

#[test]
fn settings_of_the_same_cost_have_no_winner() {
    let (out, json, page, _) = swept("objectives: {cost: 1}\n", &CAPPED);
    assert_eq!(json["not_told_apart"], serde_json::json!([2]));
    let sentence = "No setting is clearly the cheapest that meets all objectives. Lowest mean: policy karpenter, \
                    NodePool[default].spec.limits.cpu=2, $0.0";
    let rival = "Cost not significantly different: cpu=100, 0.0";
    for text in [&out, &page] {
        assert!(text.contains(sentence) && text.contains(rival), "{text}");
    }
    assert!(out.contains("cpu=100, 0.0%.\n"), "{out}");
    assert!(
        page.contains("<circle class=\"best alike\"")
            && page.contains("dashed rings mark settings not significantly different")
    );
    // A mean and its reach have the same number of decimals.
    assert!(out.contains("$143.08 \u{b1} 0.84"), "{out}");
}

#[test]
fn sweep_metrics_have_intervals_unless_one_replication() {
    let types =
        "NodePool[default].spec.template.spec.requirements[karpenter.sh/capacity-type].values=[spot],[on-demand]";
    let (out, json, ..) = swept("", &["--set", types, "--replications", "3"]);
    let spot = &json["results"][0]["figures"][0];
    assert!(spot["low"].as_f64() < spot["high"].as_f64(), "{spot}");
    assert!(out.contains(" \u{b1} 0.0") && out.contains("lowest mean"), "{out}");
    assert!(out.contains(": Cheapest: policy karpenter, ") && out.contains("The scenario has no objectives"), "{out}");
    let against = &json["results"][1]["against_cheapest"]["relative"];
    let end = |name: &str| against[name].as_f64();
    let (mean, low, high) = (end("mean").unwrap(), end("low"), end("high"));
    let shown = IntervalFigure { mean, low, high, ends: false, signed: true }.text(Measure::Share);
    assert!(low > Some(0.0) && shown.starts_with('+') && out.contains(&shown), "{against} {shown} {out}");
    let (out, json, page, _) = swept("", &["--set", types, "--replications", "1"]);
    assert!(json["results"][1]["against_cheapest"]["difference"]["low"].is_null());
    let sentence = "One replication gives no confidence interval; use --replications to run more.";
    assert!(out.contains(sentence) && page.contains(sentence) && !out.contains('\u{b1}'), "{out}");
}

#[test]
fn sweep_chart_labels_axes_and_units() {
    let (_, _, page, _) = swept("", &CAPPED);
    for words in [
        "<h2>Cost of the run against pod wait for a node, p99</h2>",
        "text-anchor=\"middle\">Cost",
        "text-anchor=\"middle\">Pod wait for a node, p99",
        "text-anchor=\"middle\">$0.",
    ] {
        assert!(page.contains(words), "{words}");
    }
}
