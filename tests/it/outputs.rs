//! The reference of outputs names every file, column and key that there is.

use std::collections::BTreeSet;

use nodecast::catalog::PriceQuality;
use nodecast::report::directory::TABLE_FILES;
use nodecast::report::{Summary, tables};

use crate::synthetic;

const REFERENCE: &str = include_str!("../../docs/outputs.md");

/// Names in backticks in the part of the reference between `## heading` and the next heading, dots taken apart.
fn documented(heading: &str) -> BTreeSet<String> {
    let start = REFERENCE.find(&format!("## {heading}\n")).expect("a section");
    let section = &REFERENCE[start + 3..];
    let section = &section[..section.find("\n## ").unwrap_or(section.len())];
    let code = section.split('`').skip(1).step_by(2);
    code.flat_map(|code| code.split(['.', '[', ']'])).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

fn keys(value: &serde_json::Value, found: &mut BTreeSet<String>) {
    match value {
        serde_json::Value::Object(object) => {
            for (key, value) in object {
                found.insert(key.clone());
                keys(value, found);
            }
        }
        serde_json::Value::Array(values) => values.iter().for_each(|value| keys(value, found)),
        _ => {}
    }
}

/// Fails if a key of the summary is not in the reference.
pub fn all_documented(summary: &Summary) {
    let value = serde_json::to_value(summary).expect("json");
    let mut found = BTreeSet::new();
    keys(&value, &mut found);
    let missing: Vec<_> = found.difference(&documented("summary.json")).cloned().collect();
    assert!(found.len() > 80 && missing.is_empty(), "{} keys, {missing:?} not documented", found.len());
}

#[test]
fn every_key_of_the_summary_is_documented() {
    all_documented(&Summary::of(&synthetic::outcome()));
}

#[test]
fn every_column_is_documented() {
    let outcome = synthetic::outcome();
    for (file, write) in [
        ("timeline.csv", tables::timeline as fn(&_, &mut dyn std::io::Write) -> std::io::Result<()>),
        ("workloads.csv", tables::workloads),
        ("metrics.csv", tables::metrics),
        ("queues.csv", tables::queues),
        ("pods.csv", tables::pods),
        ("nodes.csv", tables::nodes),
        ("bill.csv", tables::bill),
    ] {
        let mut bytes = Vec::new();
        write(&outcome, &mut bytes).expect("memory takes all");
        let text = String::from_utf8(bytes).expect("text");
        let columns: BTreeSet<String> = text.lines().next().expect("a header").split(',').map(str::to_owned).collect();
        let missing: Vec<_> = columns.difference(&documented(file)).cloned().collect();
        assert!(missing.is_empty(), "{file}: {missing:?}");
    }
}

#[test]
fn every_file_is_documented() {
    for file in TABLE_FILES.into_iter().chain([
        "replicas.svg",
        "metrics.svg",
        "queues.svg",
        "nodes.svg",
        "pending.svg",
        "latency.svg",
    ]) {
        assert!(REFERENCE.contains(&format!("`{file}`")), "{file}");
    }
}

#[test]
fn every_quality_of_a_price_is_explained_in_the_same_words() {
    for quality in PriceQuality::ALL {
        let json = serde_json::to_value(quality).unwrap();
        let row = format!("| {} | `{}` | {} |\n", quality.as_str(), json.as_str().unwrap(), quality.meaning());
        assert!(REFERENCE.contains(&row), "{row}");
    }
    assert!(PriceQuality::legend(|quality| quality == PriceQuality::Published).is_empty());
}
