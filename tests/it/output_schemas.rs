//! The JSON Schemas of outputs accept what the program prints and writes, and know every key of it.

use std::fs;

use serde_json::{Value as Json, json};

use crate::cli::{Place, nodecast};
use crate::schema::is_valid;
use crate::validate::scenarios;

/// The schema of an output, made strict: objects have no other keys than those that it names.
fn strict_schema(name: &str) -> Json {
    let (out, err, code) = nodecast(&["schema", "--outputs", name]);
    assert_eq!((err.as_str(), code), ("", Some(0)));
    let mut schema = serde_json::from_str(&out).unwrap();
    forbid_other_keys(&mut schema);
    schema
}

fn forbid_other_keys(schema: &mut Json) {
    match schema {
        Json::Object(map) => {
            map.iter_mut().filter(|(keyword, _)| *keyword != "enum").for_each(|(_, value)| forbid_other_keys(value));
            if map.contains_key("properties") && map.get("type") == Some(&json!("object")) {
                map.entry("additionalProperties").or_insert(json!(false));
            }
        }
        Json::Array(items) => items.iter_mut().for_each(forbid_other_keys),
        _ => {}
    }
}

/// The first part of `value` that its schema refuses, by its path.
fn refused(root: &Json, schema: &Json, value: &Json) -> Option<String> {
    if is_valid(root, schema, value) {
        return None;
    }
    let mut schema = schema;
    while let Some(inner) = schema["$ref"]
        .as_str()
        .and_then(|reference| root.pointer(reference.trim_start_matches('#')))
        .or_else(|| ["allOf", "anyOf"].iter().find_map(|either| schema[either].get(0)))
    {
        schema = inner;
    }
    let inside = match value {
        Json::Object(map) => map.iter().find_map(|(key, inner)| match schema["properties"].get(key) {
            Some(rule) => Some(format!(".{key}{}", refused(root, rule, inner)?)),
            None if schema["additionalProperties"] == json!(false) => Some(format!(".{key}: not in the schema")),
            None => None,
        }),
        Json::Array(items) => items
            .iter()
            .enumerate()
            .find_map(|(number, item)| Some(format!("[{number}]{}", refused(root, &schema["items"], item)?))),
        _ => None,
    };
    Some(inside.unwrap_or_else(|| format!(": {value:.200} against {schema:.300}")))
}

fn assert_valid(name: &str, text: &str) {
    let value: Json = serde_json::from_str(text).unwrap_or_else(|error| panic!("{name}: {error}: {text}"));
    let schema = strict_schema(name);
    let found = refused(&schema, &schema, &value);
    assert!(found.is_none(), "{name}{}", found.unwrap_or_default());
}

pub(crate) const POLICIES: &str =
    "policies: [{name: one, autoscaler: karpenter}, {name: two, autoscaler: karpenter}]\n";
const FLEET: &str = "fleet: pair\nduration: 10m\nstart: 2026-11-27T00:00:00Z\n\
                     clusters: [{name: east, scenario: both.yaml}, {name: west, scenario: both.yaml}]\n";

/// What each command prints with `--format json`, and the name of its schema.
const COMMANDS: &[(&str, &[&str])] = &[
    ("summary", &["run", "limits.yaml", "--out", "recording"]),
    ("comparison", &["compare", "both.yaml", "--replications", "2"]),
    ("comparison", &["diff", "scenario.yaml", "--set", "seed=9", "--replications", "2"]),
    ("sweep", &["sweep", "limits.yaml", "--set", "seed=1,2", "--replications", "2"]),
    ("recommend", &["recommend", "limits.yaml", "--simulations", "40"]),
    ("rightsize", &["rightsize", "scenario.yaml", "--replications", "2"]),
    ("backtest", &["backtest", "scenario.yaml", "--from", "recording", "--replications", "3", "--ablation"]),
    ("calibrate", &["calibrate", "scenario.yaml", "--from", "recording", "--replications", "1"]),
    ("baseline", &["check", "limits.yaml", "--baseline", "baseline.json", "--update"]),
    ("check", &["check", "--baseline", "baseline.json"]),
    ("explain", &["explain", "scenario.yaml", "node", "default-00001", "--at", "9m"]),
    ("explain", &["explain", "scenario.yaml", "pod", "web-00001"]),
    ("pack", &["pack", "cluster.yaml", "--region", "us-east-1"]),
    ("pricing-show", &["pricing", "show", "p4d.24xlarge", "--region", "us-east-1"]),
    ("pricing-list", &["pricing", "list", "--region", "eu-west-1", "--family", "m7g"]),
    ("observe-queries", &["observe", "queries"]),
    ("validate", &["validate", "limits.yaml"]),
    ("error", &["run", "nowhere.yaml"]),
    ("fleet", &["run", "fleet.yaml"]),
    ("fleet-comparison", &["compare", "fleet.yaml", "--policies", "one,two", "--replications", "2"]),
    ("fleet-recommend", &["recommend", "fleet.yaml"]),
];

/// Commands on files of the repository.
const SHIPPED: &[(&str, &[&str])] = &[
    ("drain", &["drain", "tests/data/dump/cluster.yaml", "ip-10-0-196-144.eu-west-1.compute.internal"]),
    (
        "explain-cluster",
        &["explain", "tests/data/dump/cluster.yaml", "node", "ip-10-0-196-144.eu-west-1.compute.internal"],
    ),
    ("pack-suite", &["pack", "--suite", "scenarios/packing"]),
    ("pack", &["pack", "tests/data/dump/cluster.yaml", "--repack"]),
    ("explain", &["explain", "scenarios/churn/four-minutes/scenario.yaml", "decision", "d1"]),
    ("validate", &["validate", "scenarios/shop-day/scenario.yaml"]),
    ("rightsize", &["rightsize", "scenarios/right-sizing/scenario.yaml", "--replications", "1", "--duration", "30m"]),
];

/// Commands that write a file, with the name of its schema.
const WRITTEN: &[(&str, &[&str], &str)] = &[
    ("observe", &["observe", "--from", DUMP, "--answers", ANSWERS, "--out", "observed"], "observed/observation.json"),
    ("pricing-import", &["pricing", "import", "--out", "prices", TYPES], "prices/import.json"),
    ("pack-baseline", &["pack", "--suite", SUITE, "--write-baseline", "packing.json"], "packing.json"),
];
const ANSWERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/crates/observed/tests/data/shop-prod");
const DUMP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/observed/cluster.yaml");
const TYPES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/aws/instance-types.json");
const SUITE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios/packing");

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn schemas_know_every_key_of_outputs() {
    let place = Place::new();
    let scenario = fs::read_to_string(place.path("scenario.yaml")).unwrap();
    place.put("both.yaml", &(scenario.clone() + POLICIES));
    place.put("limits.yaml", &(scenario + "objectives: {pending_p99: 1s, cost: 5}\n"));
    place.put("fleet.yaml", FLEET);
    for (name, words) in COMMANDS {
        let (out, err, _) = place.nodecast(&[words, &["--format", "json"][..]].concat());
        assert!(!out.is_empty() && (*name == "error" || !out.starts_with("{\n  \"error\"")), "{words:?}: {out}{err}");
        assert_valid(name, &out);
    }
    let written = |name: &str| fs::read_to_string(place.path(name)).unwrap();
    assert_valid("summary", &written("recording/summary.json"));
    assert_valid("baseline", &written("baseline.json"));
    for (name, words, file) in WRITTEN {
        let (_, err, code) = place.nodecast(words);
        assert_eq!(code, Some(0), "{words:?}: {err}");
        assert_valid(name, &written(file));
    }
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn schemas_accept_answers_about_shipped_files() {
    for (name, words) in SHIPPED {
        let (out, err, code) = nodecast(&[words, &["--format", "json"][..]].concat());
        assert_eq!(code, Some(0), "{words:?}: {err}");
        assert_valid(name, &out);
    }
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn summaries_of_shipped_scenarios_are_valid() {
    let place = Place::new();
    let out = place.path("out").display().to_string();
    for path in scenarios() {
        let (text, err, code) =
            nodecast(&["run", &path, "--duration", "2h", "--format", "json", "--quiet", "--out", &out]);
        assert_eq!(code, Some(0), "{path}: {err}");
        assert_valid("summary", &text);
    }
}

#[test]
fn every_schema_is_listed_and_printed() {
    let (list, _, code) = nodecast(&["schema", "--outputs"]);
    assert_eq!(code, Some(0));
    for name in list.lines() {
        let (out, _, code) = nodecast(&["schema", "--outputs", name]);
        let schema: Json = serde_json::from_str(&out).unwrap();
        assert_eq!((code, &schema["$schema"]), (Some(0), &json!("http://json-schema.org/draft-07/schema#")), "{name}");
        let written = WRITTEN.iter().map(|(tested, ..)| *tested);
        let mut tested = COMMANDS.iter().chain(SHIPPED).map(|(tested, _)| *tested).chain(written);
        assert!(tested.any(|tested| tested == name), "{name}");
    }
    let (_, err, code) = nodecast(&["schema", "--outputs", "sumary"]);
    assert!(code == Some(2) && err.contains("'summary'"), "{err}");
}

#[test]
fn changed_output_is_refused() {
    let schema = strict_schema("error");
    let refuse = |value: Json| refused(&schema, &schema, &value);
    let error = json!({"message": "m", "file": null, "line": 3, "column": null, "help": "h"});
    assert_eq!(refuse(json!({ "error": error })), None);
    assert!(refuse(json!({"error": {"message": 5}})).is_some());
    let mut longer = error;
    longer["colour"] = json!("red");
    assert_eq!(refuse(json!({ "error": longer })), Some(".error.colour: not in the schema".to_owned()));
}
