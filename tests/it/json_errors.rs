//! `--format json`: what a script reads on stdout is JSON, also when the answer is an error.

use std::fs;

use crate::cli::Place;

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The error on stdout, beside which stderr tells the same to people.
fn error(place: &Place, words: &[&str]) -> serde_json::Value {
    let (out, err, code) = place.nodecast(&[words, &["--format", "json"]].concat());
    assert_eq!(code, Some(2), "{words:?}: {out}{err}");
    let error = json(&out)["error"].clone();
    let first = error["message"].as_str().unwrap().split_whitespace().next().unwrap();
    assert!(err.starts_with("error: ") || err.contains("error:"), "{words:?}: {err}");
    assert!(err.contains(first), "{words:?}: {err}");
    error
}

#[test]
fn json_commands_report_bad_scenario_as_json() {
    let place = Place::new();
    let scenario = fs::read_to_string(place.path("scenario.yaml")).unwrap();
    place.put("broken.yaml", &scenario.replace("duration:", "durations:"));
    place.put("baseline.json", "{}");
    for words in [
        &["run", "broken.yaml"][..],
        &["compare", "broken.yaml"],
        &["sweep", "broken.yaml", "--set", "seed=1,2"],
        &["diff", "broken.yaml", "--set", "seed=2"],
        &["check", "--baseline", "new.json", "--update", "broken.yaml"],
        &["explain", "broken.yaml", "pod", "web-00001"],
    ] {
        let error = error(&place, words);
        assert_eq!((&error["file"], &error["line"], &error["column"]), (&"broken.yaml".into(), &4.into(), &1.into()));
        assert!(error["message"].as_str().unwrap().contains("unknown key `durations`"), "{words:?}: {error}");
        assert!(error["help"].as_str().unwrap().contains("`duration`"), "{words:?}: {error}");
    }
    for words in [
        &["check", "--baseline", "baseline.json"][..],
        &["merge", "nowhere.json"],
        &["pack", "nowhere.yaml"],
        &["pricing", "show", "m5.huge"],
        &["run", "scenario.yaml", "--pricing-data", "nowhere"],
        &["validate", "scenario.yaml", "--pricing-data", "nowhere"],
        &["run", "scenario.yaml", "--seed", "many"],
    ] {
        assert!(error(&place, words)["message"].as_str().unwrap().len() > 10, "{words:?}");
    }
    // For people nothing goes to stdout.
    let (out, _, code) = place.nodecast(&["run", "broken.yaml"]);
    assert_eq!((out.as_str(), code), ("", Some(2)));
    // `validate` has an answer for each file already.
    let (out, _, code) = place.nodecast(&["validate", "broken.yaml", "--format", "json"]);
    let findings = json(&out);
    assert_eq!((&findings[0]["usable"], &findings[0]["error"]["line"], code), (&false.into(), &4.into(), Some(2)));
}

#[test]
fn updated_baseline_is_printed_as_written() {
    let place = Place::new();
    let words = ["check", "--baseline", "baseline.json", "--update", "scenario.yaml", "--replications", "1"];
    let (out, err, code) = place.nodecast(&[&words[..], &["--format", "json", "--quiet"]].concat());
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(out, fs::read_to_string(place.path("baseline.json")).unwrap());
    assert_eq!(json(&out)["scenarios"][0]["policy"], "karpenter");
}
