//! `nodecast pricing`: what it prints, and how it answers to names that do not exist.

use std::fs;
use std::process::Command;

use assert_cmd::cargo::cargo_bin;
use serde_json::Value;

use nodecast::catalog::Catalog;
use nodecast::domain::{KarpenterVersion, Symbol};
use nodecast::report::pricing::{PriceList, Selection, SortBy, TypeSheet};

use crate::cli::{Place, assert_fits};

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
fn pricing_show_prints_node_and_prices() {
    insta::assert_snapshot!("pricing_show_m5", printed(&["show", "m5.large", "--region", "us-east-1"]));
    let old = ["show", "g4dn.xlarge", "--region", "eu-west-1", "--karpenter", "v0.18"];
    insta::assert_snapshot!("pricing_show_gpu", printed(&old));
    insta::assert_snapshot!("pricing_show_unlaunched", printed(&["show", "a1.large", "--region", "us-east-1"]));
    let yuan = printed(&["show", "m5.large", "--region", "cn-north-1"]);
    assert!(yuan.contains("On-Demand (CNY)       ¥") && !yuan.contains('$'), "{yuan}");
}

#[test]
fn pricing_json_keys_match_documentation() {
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
fn pricing_list_filters_and_sorts() {
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
fn unknown_pricing_names_get_nearest_match() {
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

/// Answers in the shape that the AWS CLI prints.
const ANSWERS: [(&str, &str); 4] = [
    ("instance-type-offerings.json", include_str!("../data/aws/instance-type-offerings.json")),
    ("instance-types.json", include_str!("../data/aws/instance-types.json")),
    ("price-list.json", include_str!("../data/aws/price-list.json")),
    ("spot-price-history.json", include_str!("../data/aws/spot-price-history.json")),
];

/// A directory with a scenario and the answers of the AWS CLI in it.
fn place_with_answers() -> Place {
    let place = Place::new();
    for (name, text) in ANSWERS {
        place.put(name, text);
    }
    place
}

fn import(place: &Place, files: &[&str]) -> (String, String, Option<i32>) {
    place.nodecast(&[&["pricing", "import", "--out", "mine"], files].concat())
}

#[test]
fn aws_cli_prices_import_completely() {
    let place = place_with_answers();
    let (out, err, code) = import(&place, &ANSWERS.map(|(name, _)| name));
    assert_eq!((err.as_str(), code), ("prices: mine, for --pricing-data\n", Some(0)));
    insta::assert_snapshot!("pricing_import", out);
    insta::assert_snapshot!("pricing_import_record", fs::read_to_string(place.path("mine/import.json")).unwrap());
    let show = |name: &str| {
        let (out, err, code) =
            place.nodecast(&["pricing", "show", name, "--region", "us-east-1", "--pricing-data", "mine"]);
        assert_eq!(code, Some(0), "{err}");
        out
    };
    insta::assert_snapshot!("pricing_import_known_type", show("m7g.xlarge"));
    insta::assert_snapshot!("pricing_import_new_type", show("m99g.xlarge"));
}

#[test]
fn the_order_of_the_files_does_not_matter() {
    let place = place_with_answers();
    let mut files = ANSWERS.map(|(name, _)| name);
    let tables = || {
        ["instance-types.csv", "regions/us-east-1.csv", "regions/cn-north-1.csv"]
            .map(|table| fs::read_to_string(place.path(&format!("mine/{table}"))).unwrap())
    };
    assert_eq!(import(&place, &files).2, Some(0));
    let one = tables();
    files.reverse();
    assert_eq!(import(&place, &files).2, Some(0));
    assert_eq!(one, tables());
}

#[test]
fn a_run_is_billed_at_imported_prices() {
    let place = place_with_answers();
    let rate = |arguments: &[&str]| {
        let (_, err, code) = place.nodecast(&[&["run", "scenario.yaml", "--out", "report"], arguments].concat());
        assert_eq!(code, Some(0), "{err}");
        let mut nodes = csv::Reader::from_path(place.path("report/nodes.csv")).unwrap();
        let column = nodes.headers().unwrap().iter().position(|header| header == "rate_per_hour").unwrap();
        nodes.records().next().unwrap().unwrap()[column].parse::<f64>().unwrap()
    };
    assert_eq!(import(&place, &["price-list.json"]).2, Some(0));
    assert!((rate(&[]) - 0.096).abs() < 1e-12);
    assert!((rate(&["--pricing-data", "mine"]) - 0.091).abs() < 1e-12);
}

#[test]
fn contract_price_is_billed_and_labelled() {
    let place = place_with_answers();
    place.put("contract.csv", "region,instance_type,price,as_of\nus-east-1,m5.large,0.0672,2026-04-01\n");
    let (out, _, code) = import(&place, &["contract.csv", "price-list.json"]);
    assert_eq!(code, Some(0));
    assert!(out.contains("left out\ncontract.csv\n  1 price by contract taken\n"), "{out}");
    let (out, err, code) =
        place.nodecast(&["run", "scenario.yaml", "--pricing-data", "mine", "--format", "json", "--quiet"]);
    assert_eq!((err.as_str(), code), ("", Some(0)));
    let summary: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(summary["about"]["price_date"], "2026-04-01");
    let bill = fs::read_to_string(place.path("reports/two-pods/bill.csv")).unwrap();
    let instance = bill.lines().find(|line| line.starts_with("instance,")).unwrap();
    assert!(instance.contains(",0.067200000,") && instance.ends_with(",own"), "{instance}");
}

#[test]
fn contract_price_error_shows_line() {
    let place = Place::new();
    for (line, reason) in [
        ("us-east-1,m5.lrge,0.05,2026", "`m5.lrge`: of a type whose hardware is not known"),
        ("us-east-9,m5.large,0.05,2026", "`m5.large`: in a region without built-in prices"),
        ("us-east-1,m5.large,cheap,2026", "price `cheap` is not a price per hour"),
        ("us-east-1,m5.large,,2026", "price is empty"),
        ("us-east-1,m5.large,0.05,", "as_of is empty"),
        ("us-east-1,c5.large,0.05,2026", "`c5.large`: has a line already"),
    ] {
        let table = format!("region,instance_type,price,as_of\nus-east-1,c5.large,0.06,2026\n{line}\n");
        place.put("contract.csv", &table);
        let (out, err, code) = import(&place, &["contract.csv"]);
        assert_eq!((out.as_str(), code), ("", Some(2)), "{line}");
        assert!(err.contains(&format!("contract.csv, line 3: {reason}")), "{line}: {err}");
        assert!(!place.path("mine").exists());
    }
}

#[test]
fn filtered_and_concatenated_aws_answers_import() {
    let place = place_with_answers();
    let list: Value = serde_json::from_str(ANSWERS[2].1).unwrap();
    let history: Value = serde_json::from_str(ANSWERS[3].1).unwrap();
    let first: Value = serde_json::from_str(list["PriceList"][0].as_str().unwrap()).unwrap();
    place.put("mixed.json", &format!("{first}\n{}\n", history["SpotPriceHistory"]));
    let (out, _, code) = import(&place, &["mixed.json"]);
    assert_eq!(code, Some(0));
    assert!(out.contains("  1 On-Demand price taken\n  3 Spot prices taken, 5 records left out\n"), "{out}");
}

#[test]
fn failed_price_import_changes_nothing() {
    let place = place_with_answers();
    place.put("broken.json", "{\"PriceList\": [");
    place.put("other.json", "{\"Reservations\": []}");
    place.put("windows.json", &ANSWERS[3].1.replace("Linux/UNIX", "Windows"));
    fs::create_dir(place.path("diary")).unwrap();
    place.put("diary/today.txt", "mine");
    for (name, arguments) in [
        ("missing", &["--out", "mine", "nowhere.json"][..]),
        ("broken", &["--out", "mine", "price-list.json", "broken.json"]),
        ("other", &["--out", "mine", "other.json"]),
        ("nothing", &["--out", "mine", "windows.json"]),
        ("too_large", &["--out", "mine", "price-list.json", "--max-file-size", "1Ki"]),
        ("not_ours", &["--out", "diary", "price-list.json"]),
    ] {
        let (out, err, code) = place.nodecast(&[&["pricing", "import"], arguments].concat());
        assert_eq!((out.as_str(), code), ("", Some(2)), "{name}");
        insta::assert_snapshot!(format!("pricing_import_{name}"), err);
        assert!(!place.path("mine").exists(), "{name}");
    }
    assert_eq!(fs::read_to_string(place.path("diary/today.txt")).unwrap(), "mine");
}

#[test]
fn price_import_replaces_only_unmodified_import() {
    let place = place_with_answers();
    assert_eq!(import(&place, &["price-list.json"]).2, Some(0));
    assert_eq!(import(&place, &["spot-price-history.json"]).2, Some(0));
    assert!(!place.path("mine/regions/cn-north-1.csv").exists(), "the earlier import is gone as a whole");
    let table = fs::read_to_string(place.path("mine/regions/us-east-1.csv")).unwrap();
    place.put("mine/regions/us-east-1.csv", &table.replace("m5.large,0.096", "m5.large,0.05"));
    let (_, err, code) = import(&place, &["price-list.json"]);
    assert_eq!(code, Some(2));
    assert!(err.contains("`regions/us-east-1.csv` in it was changed after the import"), "{err}");
    place.put("mine/regions/us-east-1.csv", &table);
    place.put("mine/notes.txt", "ask again in March");
    let (_, err, code) = import(&place, &["price-list.json"]);
    assert_eq!(code, Some(2));
    assert!(err.contains("`notes.txt` in it was not written by nodecast"), "{err}");
    assert!(place.path("mine/notes.txt").is_file());
}

#[test]
fn bill_explains_market_price_change() {
    let place = Place::new();
    let spot = "NodePool[default].spec.template.spec.requirements[karpenter.sh/capacity-type].values=[spot]";
    let shock = "faults=[{at: 2m, price_shock: {factor: 1.5}}]";
    let words = ["run", "scenario.yaml", "--set", spot, "--set", shock, "--out", "here"];
    let (_, err, code) = place.nodecast(&words);
    assert_eq!(code, Some(0), "{err}");
    let read = |name: &str| fs::read_to_string(place.path("here").join(name)).unwrap();
    let summary: Value = serde_json::from_str(&read("summary.json")).unwrap();
    let names: Vec<&str> = summary["cost"]["by_price_quality"]
        .as_array()
        .unwrap()
        .iter()
        .map(|part| part["name"].as_str().unwrap())
        .collect();
    assert!(names.contains(&"simulated") && !names.contains(&"assumed"), "{names:?}");
    assert!(
        read("bill.csv").contains(",simulated\n") && read("report.html").contains("simulated: a Spot price that the")
    );
}

#[test]
fn bare_metal_shows_billed_and_compared_price() {
    let out = printed(&["show", "m6g.metal", "--region", "us-east-1"]);
    assert!(out.contains("On-Demand (USD)       $2.4640 per hour"), "{out}");
    assert!(out.contains("Karpenter compares    $2.6112 per hour"), "{out}");
    let json = printed(&["show", "m6g.metal", "--region", "us-east-1", "--format", "json"]);
    let sheet: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&sheet["on_demand"]["per_hour"], &sheet["karpenter_per_hour"]), (&2.464.into(), &2.6112.into()));
    let out = printed(&["show", "r9g.large", "--region", "us-east-1"]);
    assert!(out.contains("no price known"), "{out}");
}

#[test]
fn fetch_script_covers_types_of_scenario() {
    let place = Place::new();
    let script = |words: &[&str]| place.nodecast(&[&["pricing", "fetch-script"], words].concat());
    let (out, err, code) = script(&["scenario.yaml"]);
    assert_eq!((err.as_str(), code), ("", Some(0)));
    insta::assert_snapshot!("pricing_fetch_script", out);
    assert_eq!(script(&["scenario.yaml", "--region", "us-east-1"]).0, out);
    let (whole, _, code) = script(&["--region", "eu-west-1"]);
    assert!(code == Some(0) && whole.contains("--region eu-west-1") && !whole.contains("$type"), "{whole}");
    for (words, says) in [
        (&["scenario.yaml", "--region", "eu-west-1"][..], "scenario.yaml is in us-east-1, not in eu-west-1"),
        (&["--region", "eu-wst-1"], "did you mean `eu-west-1`?"),
        (&["nowhere.yaml"], "nowhere.yaml"),
    ] {
        let (out, err, code) = script(words);
        assert_eq!((out.as_str(), code), ("", Some(2)), "{words:?}");
        assert!(err.contains(says), "{err}");
    }
}

/// Rates of January 2025 for m5 in us-east-1: 41.2 % less for a year and 62.4 % for three years, both paid all upfront.
#[test]
fn commitments_cost_what_their_term_and_payment_say() {
    let place = Place::new();
    let run = |billing: &str| {
        let words = ["run", "scenario.yaml", "--set", billing, "--format", "json", "--quiet", "--out", "here"];
        place.nodecast(&words)
    };
    let bill = |billing: &str| {
        let (_, err, code) = run(billing);
        assert_eq!(code, Some(0), "{err}");
        fs::read_to_string(place.path("here/bill.csv")).unwrap()
    };
    let by_term = bill("ec2.billing.savings_plans=[{family: m5, commitment: 0.02, term: 1y, payment: all_upfront}]");
    let catalog = nodecast::catalog::Catalog::embedded().unwrap().region("us-east-1").unwrap();
    let saved = catalog.commitment_discount(Symbol::new("m5")).unwrap().one_year_all_upfront;
    assert_eq!(saved, 4_120);
    let stated = bill("ec2.billing.savings_plans=[{family: m5, commitment: 0.02, discount: 41.2%}]");
    assert_eq!(by_term, stated);
    let in_a_row = |message: &str| message.replace("\n  | ", " ");
    let of_type = "type: m5.large, count: 1";
    let reserved = bill(&format!("ec2.billing.reserved_instances=[{{{of_type}, term: 3y, payment: all_upfront}}]"));
    assert!(reserved.contains("reserved instances,") || reserved.contains("unused commitment,"), "{reserved}");
    for (entry, says) in [
        (of_type.to_owned(), "neither `per_hour` nor `term` says what this costs"),
        (
            format!("{of_type}, per_hour: 0.05, term: 1y, payment: no_upfront"),
            "`per_hour` and `term` both set the price",
        ),
        (format!("{of_type}, term: 1y"), "`term` goes with `payment`"),
        (format!("{of_type}, term: 3y, payment: no_upfront"), "no rates are known for this term with this payment"),
        ("type: m1.small, count: 1, term: 1y, payment: no_upfront".to_owned(), "no commitment rates known for m1"),
    ] {
        let (_, err, code) = run(&format!("ec2.billing.reserved_instances=[{{{entry}}}]"));
        assert_eq!(code, Some(2), "{entry}");
        assert!(in_a_row(&err).contains(says), "{err}");
    }
    let compute = run("ec2.billing.savings_plans=[{commitment: 1, term: 1y, payment: no_upfront}]");
    assert!(in_a_row(&compute.1).contains("does not follow from its term"), "{}", compute.1);
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let region = Catalog::embedded().unwrap().region("us-east-1").unwrap();
    let selection = Selection { family: Some(Symbol::new("m7g")), ..Selection::default() };
    let list = PriceList::new(&region, &selection, SortBy::Name, None);
    let entry = region.instance_type(Symbol::new("m7g.xlarge")).unwrap();
    let sheet = TypeSheet::new(&region, entry, KarpenterVersion::default());
    for width in [79, 60, 40] {
        assert_fits(&list.table(None), &list.table(Some(width)), width);
        assert_fits(&sheet.table(None), &sheet.table(Some(width)), width);
    }
    assert_eq!(list.table(Some(200)), list.table(None));
    // The names of the types stand before each block of columns.
    assert_eq!(list.table(Some(60)).matches("\nm7g.xlarge ").count(), 2, "{}", list.table(Some(60)));
}
