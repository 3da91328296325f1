//! JSON Schemas of the JSON documents that commands print or write.
//!
//! Must not: describe a key. Shapes come from the types that are serialised, meanings from docs/outputs.md.

use nodecast_observed::observation::About as Observation;
use nodecast_observed::prometheus::QueryList;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value};

use crate::experiment::Comparison;
use crate::experiment::backtest::Answer as Backtest;
use crate::experiment::baseline::{Baseline, Movement};
use crate::experiment::explanation::Explanation;
use crate::experiment::explanation::standing::StandingExplanation;
use crate::experiment::recommendation::Recommendation;
use crate::experiment::rightsizing::RightSizing;
use crate::experiment::sweep::Sweep;
use crate::program::fleet::comparison::FleetComparison;
use crate::program::remark::Failed;
use crate::report::Summary;
use crate::report::drain::DrainAnswer;
use crate::report::pack::{Baseline as PackBaseline, PackAnswer, SuiteAnswer};
use crate::report::pricing::{ImportRecord, PriceList, TypeSheet};

/// The reference of outputs, which has the meaning of each key.
const REFERENCE: &str = include_str!("../../docs/outputs.md");

/// A JSON document.
struct Output {
    name: &'static str,
    /// Where it is found.
    title: &'static str,
    /// Heading in the reference whose tables describe the keys; empty if it has none.
    section: &'static str,
    shape: fn() -> Schema,
}

const fn output<T: JsonSchema>(name: &'static str, title: &'static str, section: &'static str) -> Output {
    Output { name, title, section, shape: shape::<T> }
}

const OUTPUTS: &[Output] = &[
    output::<Summary>("summary", "summary.json of nodecast run", "summary.json"),
    output::<Comparison>("comparison", "comparison.json of nodecast compare; nodecast diff", "comparison.json"),
    output::<Sweep>("sweep", "sweep.json of nodecast sweep", "sweep.json"),
    output::<Recommendation>("recommend", "nodecast recommend", ""),
    output::<RightSizing>("rightsize", "nodecast rightsize", ""),
    output::<Backtest>("backtest", "backtest.json of nodecast backtest", "backtest.json"),
    output::<super::calibrate::Answer<'static>>("calibrate", "nodecast calibrate", "calibrate --format json"),
    output::<Vec<Movement>>("check", "nodecast check", ""),
    output::<Baseline>("baseline", "baseline of nodecast check --update", ""),
    output::<Explanation>("explain", "nodecast explain of a scenario", "explain --format json"),
    output::<StandingExplanation>("explain-cluster", "nodecast explain of a dump", "explain --format json"),
    output::<PackAnswer>("pack", "nodecast pack", "pack --format json"),
    output::<SuiteAnswer>("pack-suite", "nodecast pack --suite", "pack --suite --format json"),
    output::<PackBaseline>("pack-baseline", "baseline of nodecast pack --suite", ""),
    output::<DrainAnswer>("drain", "nodecast drain", "drain --format json"),
    output::<TypeSheet>("pricing-show", "nodecast pricing show", "pricing show --format json"),
    output::<PriceList>("pricing-list", "nodecast pricing list", "pricing list --format json"),
    output::<ImportRecord<'static>>("pricing-import", "import.json of nodecast pricing import", "import.json"),
    output::<Observation>("observe", "observation.json of nodecast observe", ""),
    output::<QueryList>("observe-queries", "nodecast observe queries", ""),
    output::<Vec<super::validate::Finding>>("validate", "nodecast validate", ""),
    output::<nodecast_fleet::FleetSummary>("fleet", "fleet.json of nodecast run with a fleet", "fleet.json"),
    output::<FleetComparison>("fleet-comparison", "nodecast compare with a fleet", ""),
    output::<nodecast_fleet::recommend::FleetRecommendation>("fleet-recommend", "nodecast recommend with a fleet", ""),
    output::<Failed>("error", "error of any command with --format json", ""),
];

/// Names of the documents, for `schema --outputs NAME`.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    OUTPUTS.iter().map(|output| output.name)
}

/// The schema of the document called `name`, ending in a newline; `None` for an unknown name.
pub(super) fn text(name: &str) -> Option<String> {
    let output = OUTPUTS.iter().find(|output| output.name == name)?;
    Some(format!("{:#}\n", schema(output)))
}

fn schema(output: &Output) -> Value {
    let mut schema = Value::from((output.shape)());
    bare(&mut schema);
    for (path, meaning) in meanings(output.section) {
        describe(&mut schema, &path, &meaning);
    }
    if let Value::Object(map) = &mut schema {
        map.insert("title".to_owned(), Value::from(format!("nodecast: {}", output.title)));
    }
    schema
}

fn shape<T: JsonSchema>() -> Schema {
    SchemaSettings::draft07().for_serialize().into_generator().into_root_schema_for::<T>()
}

/// Removes what concerns the program's source alone: comments in the code, defaults of readers, formats of numbers.
fn bare(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            map.retain(|keyword, _| !matches!(keyword.as_str(), "description" | "title" | "default" | "format"));
            for (keyword, value) in map.iter_mut() {
                match (keyword.as_str(), value) {
                    // The keys of these are names, not keywords.
                    ("properties" | "definitions", Value::Object(named)) => named.values_mut().for_each(bare),
                    (_, value) => bare(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(bare),
        _ => {}
    }
}

/// Paths of keys in the tables of a section of the reference, each with its meaning.
fn meanings(section: &str) -> Vec<(Vec<String>, String)> {
    let Some((_, text)) = REFERENCE.split_once(&format!("\n## {section}\n")) else { return Vec::new() };
    let text = text.split_once("\n## ").map_or(text, |(text, _)| text);
    let rows = text.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | "));
    rows.flat_map(|(names, meaning)| paths(names).into_iter().map(|path| (path, unlinked(meaning)))).collect()
}

/// The paths in the first cell of a row: a name that begins with a dot continues the path before it.
fn paths(cell: &str) -> Vec<Vec<String>> {
    let mut all: Vec<Vec<String>> = Vec::new();
    for name in cell.split('`').skip(1).step_by(2) {
        let parts = |name: &str| name.split('.').map(str::to_owned).collect::<Vec<_>>();
        let path = match (name.strip_prefix('.'), all.last()) {
            (Some(rest), Some(before)) if !rest.starts_with('.') => {
                let start = &before[..before.len().saturating_sub(1)];
                [start, &parts(rest)].concat()
            }
            _ => parts(name),
        };
        all.push(path);
    }
    all
}

/// A text with links replaced by their labels, and without marks of code.
fn unlinked(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("](") {
        let (text, label) = before.rsplit_once('[').unwrap_or((before, ""));
        plain += text;
        plain += label;
        rest = after.split_once(')').map_or("", |(_, after)| after);
    }
    (plain + rest).replace('`', "")
}

/// Gives the key at `path` its meaning, unless it has one.
fn describe(root: &mut Value, path: &[String], meaning: &str) {
    let Some((last, parents)) = path.split_last() else { return };
    let mut place = String::new();
    for part in parents {
        let Some(next) = property(root, &place, part) else { return };
        place = next;
    }
    let Some(place) = property(root, &place, last.trim_end_matches("[]")) else { return };
    let Some(Value::Object(key)) = root.pointer_mut(&place) else { return };
    // Draft 7 ignores what stands next to a reference.
    if let Some(reference) = key.remove("$ref") {
        let mut to = Map::new();
        to.insert("$ref".to_owned(), reference);
        key.insert("allOf".to_owned(), Value::Array(vec![Value::Object(to)]));
    }
    key.entry("description").or_insert_with(|| Value::from(meaning));
}

/// The pointer to the schema of a property of the object, or of the items of the list, whose schema is at `place`; `name` ends in `[]` for the
/// items of the property.
fn property(root: &Value, place: &str, name: &str) -> Option<String> {
    let place = resolved(root, place.to_owned());
    let found = format!("{place}/properties/{}", name.trim_end_matches("[]"));
    root.pointer(&found)?;
    if !name.ends_with("[]") {
        return Some(found);
    }
    let list = format!("{}/items", resolved(root, found));
    root.pointer(&list).map(|_| list)
}

/// The place to which references and optional values lead from `place`.
fn resolved(root: &Value, mut place: String) -> String {
    loop {
        let schema = root.pointer(&place);
        if let Some(reference) = schema.and_then(|schema| schema.get("$ref")).and_then(Value::as_str) {
            place = reference.trim_start_matches('#').to_owned();
        } else if let Some(either) =
            ["allOf", "anyOf"].iter().find(|key| schema.is_some_and(|schema| schema.get(**key).is_some()))
        {
            place = format!("{place}/{either}/0");
        } else {
            return place;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::{OUTPUTS, meanings, paths, property, schema, unlinked};

    #[test]
    fn continued_names_share_their_path() {
        let found = paths("`a.b.c`, `.d`, `e[].f`, `.g[]`");
        let joined: Vec<String> = found.iter().map(|path| path.join(".")).collect();
        assert_eq!(joined, ["a.b.c", "a.b.d", "e[].f", "e[].g[]"]);
        assert_eq!(unlinked("of `x[]` by [the error](../a.md#b), and [c](d)"), "of x[] by the error, and c");
    }

    #[test]
    fn documented_keys_exist_in_schemas() {
        let mut described = 0;
        for output in OUTPUTS.iter().filter(|output| !output.section.is_empty()) {
            let schema = schema(output);
            let rows = meanings(output.section);
            assert!(!rows.is_empty(), "{}: no section `{}`", output.name, output.section);
            // A row can be about a form that several keys have: `...pods[]`, or an estimate.
            let is_key =
                |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || "_[]".contains(c));
            let named = rows.iter().filter(|(path, _)| is_key(&path[0]));
            let missing: Vec<String> =
                named.filter(|(path, _)| !exists(&schema, path)).map(|(path, _)| path.join(".")).collect();
            let allowed = output.name == "explain-cluster" || missing.is_empty();
            assert!(allowed, "{}: {missing:?}", output.name);
            described += rows.len();
        }
        assert!(described > 200, "{described}");
    }

    fn exists(schema: &Value, path: &[String]) -> bool {
        let mut place = String::new();
        path.iter().all(|part| property(schema, &place, part).map(|next| place = next).is_some())
    }

    #[test]
    fn every_output_has_its_own_name() {
        let mut names: Vec<&str> = super::names().collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), OUTPUTS.len());
    }
}
