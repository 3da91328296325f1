//! `nodecast pricing`: what it prints, and how it answers to names that do not exist.

use std::process::Command;

use assert_cmd::cargo::cargo_bin;
use serde_json::Value;

fn pricing(arguments: &[&str]) -> (String, String, Option<i32>) {
    let output = Command::new(cargo_bin!("nodecast")).arg("pricing").args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.code())
}

/// What is printed on stdout, when nothing is wrong.
fn printed(arguments: &[&str]) -> String {
    let (out, err, code) = pricing(arguments);
    assert_eq!((err.as_str(), code), ("", Some(0)), "{arguments:?}");
    assert!(!out.contains('\u{1b}'), "colour in a pipe: {out}");
    out
}

#[test]
fn a_type_is_shown_with_its_node_and_its_prices() {
    insta::assert_snapshot!("pricing_show_m5", printed(&["show", "m5.large", "--region", "us-east-1"]));
    let old = ["show", "g4dn.xlarge", "--region", "eu-west-1", "--karpenter", "v0.18"];
    insta::assert_snapshot!("pricing_show_gpu", printed(&old));
    insta::assert_snapshot!("pricing_show_unlaunched", printed(&["show", "a1.large", "--region", "us-east-1"]));
    let yuan = printed(&["show", "m5.large", "--region", "cn-north-1"]);
    assert!(yuan.contains("On-Demand (CNY)       ¥") && !yuan.contains('$'), "{yuan}");
}

#[test]
fn a_type_is_shown_as_json_with_the_keys_that_the_documentation_lists() {
    let json = printed(&["show", "m5.large", "--region", "us-east-1", "--format", "json"]);
    insta::assert_snapshot!("pricing_show_json", json);
    let documentation = include_str!("../../docs/outputs.md");
    let sheet: Value = serde_json::from_str(&json).unwrap();
    let inner = ["hardware", "node"].into_iter().flat_map(|part| sheet[part].as_object().unwrap().keys());
    for key in sheet.as_object().unwrap().keys().chain(inner).chain(sheet["zones"][0].as_object().unwrap().keys()) {
        assert!(documentation.contains(key), "docs/outputs.md does not explain `{key}`");
    }
}

#[test]
fn types_are_listed_from_small_to_large() {
    insta::assert_snapshot!("pricing_list_family", printed(&["list", "--region", "us-east-1", "--family", "m5"]));
    let (out, err, code) = pricing(&["list", "--region", "us-east-1", "--gpu", "--sort", "spot", "--limit", "3"]);
    insta::assert_snapshot!("pricing_list_gpu", out);
    assert_eq!(code, Some(0));
    assert!(err.ends_with("types left out by --limit\n"), "{err}");
}

#[test]
fn every_filter_of_a_list_holds_and_every_order_is_kept() {
    let list = |arguments: &[&str]| -> Vec<Value> {
        let arguments = [&["list", "--region", "eu-west-1", "--format", "json"], arguments].concat();
        let list: Value = serde_json::from_str(&printed(&arguments)).unwrap();
        let types = list["types"].as_array().unwrap().clone();
        assert_eq!(list["matching"].as_u64(), Some(types.len() as u64));
        types
    };
    let filters = ["--arch", "arm64", "--min-vcpu", "4", "--max-vcpu", "8", "--min-memory", "24Gi"];
    let types = list(&[&filters[..], &["--sort", "price"]].concat());
    assert!(types.len() > 20, "{}", types.len());
    for entry in &types {
        let vcpus = entry["vcpus"].as_u64().unwrap();
        assert!((4..=8).contains(&vcpus) && entry["memory_mib"].as_u64() >= Some(24_576) && entry["arch"] == "arm64");
    }
    let price = |entry: &Value| entry["on_demand"]["per_hour"].as_f64().unwrap_or(f64::INFINITY);
    assert!(types.is_sorted_by(|one, other| price(one) <= price(other)));
    let spot = |entry: &Value| entry["cheapest_spot"]["per_hour"].as_f64().unwrap_or(f64::INFINITY);
    assert!(list(&["--sort", "spot"]).is_sorted_by(|one, other| spot(one) <= spot(other)));
}

#[test]
fn names_that_do_not_exist_are_answered_with_the_nearest() {
    for (name, arguments) in [
        ("type", &["show", "m7g.xlrge", "--region", "us-east-1"][..]),
        ("type_elsewhere", &["show", "f1.2xlarge", "--region", "cn-north-1"]),
        ("region", &["show", "m5.large", "--region", "us-est-1"]),
        ("region_of_list", &["list", "--region", "moon"]),
        ("family", &["list", "--region", "us-east-1", "--family", "mg7"]),
        ("karpenter", &["show", "m5.large", "--region", "us-east-1", "--karpenter", "v3"]),
        ("quantity", &["list", "--region", "us-east-1", "--min-memory", "8GB"]),
        ("prices", &["list", "--region", "us-east-1", "--pricing-data", "nowhere"]),
    ] {
        let (out, err, code) = pricing(arguments);
        assert_eq!((out.as_str(), code), ("", Some(2)), "{name}");
        insta::assert_snapshot!(format!("pricing_unknown_{name}"), err);
    }
    let (out, err, code) = pricing(&["list", "--region", "us-east-1", "--min-vcpu", "9999"]);
    assert_eq!((out.lines().count(), err.as_str(), code), (2, "no type matches\n", Some(0)));
}
