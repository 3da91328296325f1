//! JSON Schemas of the JSON documents that commands print or write.
//!
//! Must not: describe a key. Shapes come from the types that are serialised, meanings from docs/outputs.md.

mod descriptions;
mod reference;

use nodecast_observed::observation::About as Observation;
use nodecast_observed::prometheus::QueryList;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::Value;

use crate::evidence::backtest::Answer as Backtest;
use crate::experiment::Comparison;
use crate::experiment::baseline::{Baseline, Movement};
use crate::experiment::sweep::Sweep;
use crate::explain::Explanation;
use crate::explain::standing::StandingExplanation;
use crate::program::fleet::comparison::FleetComparison;
use crate::program::remark::Failed;
use crate::recommend::recommendation::Recommendation;
use crate::recommend::rightsizing::RightSizing;
use crate::report::Summary;
use crate::report::drain::DrainAnswer;
use crate::report::pack::{Baseline as PackBaseline, PackAnswer, SuiteAnswer};
use crate::report::pricing::{ImportRecord, PriceList, TypeSheet};

/// A JSON document.
struct Output {
    name: &'static str,
    /// Where it is found.
    title: &'static str,
    /// Headings in the reference whose tables describe the keys, the most specific first.
    sections: &'static [&'static str],
    shape: fn() -> Schema,
}

const fn output<T: JsonSchema>(name: &'static str, title: &'static str, sections: &'static [&'static str]) -> Output {
    Output { name, title, sections, shape: shape::<T> }
}

const OUTPUTS: &[Output] = &[
    output::<Summary>("summary", "summary.json of nodecast run", &["summary.json"]),
    output::<Comparison>("comparison", "comparison.json of nodecast compare; nodecast diff", &["comparison.json"]),
    output::<Sweep>("sweep", "sweep.json of nodecast sweep", &["sweep.json"]),
    output::<Recommendation>("recommend", "nodecast recommend", &["recommend --format json"]),
    output::<RightSizing>("rightsize", "nodecast rightsize", &["rightsize --format json"]),
    output::<Backtest>("backtest", "backtest.json of nodecast backtest", &["backtest.json"]),
    output::<super::calibrate::Answer<'static>>("calibrate", "nodecast calibrate", &["calibrate --format json"]),
    output::<Vec<Movement>>("check", "nodecast check", &["check --format json"]),
    output::<Baseline>("baseline", "baseline of nodecast check --update", &["Baseline"]),
    output::<Explanation>("explain", "nodecast explain of a scenario", &["explain --format json"]),
    output::<StandingExplanation>(
        "explain-cluster",
        "nodecast explain of a dump",
        &["explain CLUSTER --format json", "explain --format json"],
    ),
    output::<PackAnswer>("pack", "nodecast pack", &["pack --format json"]),
    output::<SuiteAnswer>("pack-suite", "nodecast pack --suite", &["pack --suite --format json"]),
    output::<PackBaseline>("pack-baseline", "baseline of nodecast pack --suite", &["pack --suite --write-baseline"]),
    output::<DrainAnswer>("drain", "nodecast drain", &["drain --format json"]),
    output::<TypeSheet>("pricing-show", "nodecast pricing show", &["pricing show --format json"]),
    output::<PriceList>("pricing-list", "nodecast pricing list", &["pricing list --format json"]),
    output::<ImportRecord<'static>>("pricing-import", "import.json of nodecast pricing import", &["import.json"]),
    output::<Observation>("observe", "observation.json of nodecast observe", &["Contents of an observation"]),
    output::<QueryList>("observe-queries", "nodecast observe queries", &["observe queries --format json"]),
    output::<Vec<super::validate::Finding>>("validate", "nodecast validate", &["validate --format json"]),
    output::<nodecast_fleet::FleetSummary>("fleet", "fleet.json of nodecast run with a fleet", &["fleet.json"]),
    output::<FleetComparison>(
        "fleet-comparison",
        "nodecast compare with a fleet",
        &["compare --format json of a fleet"],
    ),
    output::<nodecast_fleet::recommend::FleetRecommendation>(
        "fleet-recommend",
        "nodecast recommend with a fleet",
        &["recommend --format json of a fleet"],
    ),
    output::<Failed>("error", "error of any command with --format json", &["Errors with --format json"]),
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
    descriptions::describe(&mut schema, output.sections);
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

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::descriptions::{is_form, keys, places};
    use super::{OUTPUTS, reference, schema};

    #[test]
    fn every_key_has_a_description() {
        for output in OUTPUTS {
            let schema = schema(output);
            let is_described =
                |place: &String| schema.pointer(place).is_some_and(|key| key.get("description").is_some());
            let missing: Vec<String> = keys(&schema).into_iter().filter(|place| !is_described(place)).collect();
            assert!(missing.is_empty(), "{}: no row of docs/outputs.md describes {missing:#?}", output.name);
        }
    }

    #[test]
    fn documented_keys_exist_in_schemas() {
        let mut described = 0;
        for output in OUTPUTS {
            let schema = schema(output);
            for section in output.sections {
                let rows = reference::rows(section);
                assert!(!rows.is_empty(), "{}: no section `{section}`", output.name);
                // An estimate is a form that several keys have.
                let is_key = |name: &str| name.chars().all(|c| c.is_ascii_lowercase() || "0123456789_[]".contains(c));
                let paths = rows.iter().flat_map(|row| &row.paths).filter(|path| is_key(&path[0]));
                let missing: Vec<String> =
                    paths.filter(|path| places(&schema, path).is_empty()).map(|path| path.join(".")).collect();
                let allowed = output.name == "explain-cluster" || missing.is_empty();
                assert!(allowed, "{}: {missing:?}", output.name);
                described += rows.len();
            }
        }
        assert!(described > 300, "{described}");
        let common = reference::rows(reference::COMMON);
        assert!(common.iter().flat_map(|row| &row.paths).all(|path| path.len() == 1 && !is_form(path)));
    }

    /// The description of the only key that a path of the reference means.
    fn description(name: &str, path: &str) -> String {
        let output = OUTPUTS.iter().find(|output| output.name == name).unwrap();
        let path: Vec<String> = path.split('.').map(str::to_owned).collect();
        let schema = schema(output);
        let found: [String; 1] = places(&schema, &path).try_into().unwrap();
        let Some(Value::String(text)) = schema.pointer(&format!("{}/description", found[0])) else {
            panic!("{path:?}")
        };
        text.clone()
    }

    #[test]
    fn nested_keys_get_their_part_of_a_row() {
        let part = "ended nodes (nodes)";
        assert_eq!(description("summary", "churn.replacements[].nodes"), part);
        assert_eq!(description("check", "tolerance"), "tolerated increase, as a share");
        assert_eq!(description("explain", "pod.vertical.changes"), "whether the updater changes the pod (changes)");
        // Several keys have this form; each has a row that says what its amount is of.
        assert_eq!(description("summary", "cost.idle.amount"), "money");
    }

    #[test]
    fn every_output_has_its_own_name() {
        let mut names: Vec<&str> = super::names().collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), OUTPUTS.len());
    }
}
