//! The description of the scenario file and the reader agree, key by key.
//!
//! The reader takes its keys from the description, so it accepts none that is not described. The examples of the description
//! state every key; here each is spoilt, taken out and set to its default, and both the reader and the JSON Schema must have
//! the description's opinion of it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use nodecast::catalog::Catalog;
use nodecast::scenario::error::Render;
use nodecast::scenario::schema::{Form, Key, Presence, Program, SECTIONS, Section, json_schema, reference, whole};
use nodecast::scenario::{Limits, Scenario, ScenarioError};
use serde_json::{Value as Json, json};

use crate::validate::scenarios;

/// A folder with everything that the examples name.
struct Folder {
    directory: tempfile::TempDir,
    schema: Json,
}

impl Folder {
    fn new() -> Self {
        let folder = Self { directory: tempfile::tempdir().unwrap(), schema: json_schema::schema() };
        for (name, text) in [
            ("cluster.yaml", include_str!("schema/cluster.yaml")),
            ("more.yaml", include_str!("schema/more.yaml")),
            (
                "dump.yaml",
                "apiVersion: v1\nkind: Node\nmetadata: {name: n}\nstatus: {capacity: {cpu: \"2\", memory: 8Gi, pods: \"29\"}}\n",
            ),
            ("calibration.yaml", "ec2: {failures: {abort: 0.1%}}\n"),
            ("rate.csv", "t_seconds,requests_per_second\n0,10\n60,20\n"),
            ("arrivals.csv", "t_seconds\n1\n2\n"),
            ("answer.json", r#"{"data":{"result":[{"values":[[100,"1"],[160,"2"]]}]}}"#),
            (
                "requests.json",
                r#"{"MetricDataResults":[{"Id":"m","Label":"RequestCount","Timestamps":["2026-07-01T00:01:00Z","2026-07-01T00:00:00Z"],"Values":[1800,600]}]}"#,
            ),
            ("hits.json", r#"{"series":[{"pointlist":[[1760313600000,10],[1760313660000,30]]}]}"#),
            (
                "grafana.csv",
                "t_seconds,requests_per_second,Time,requests\n0,9,2026-07-01 00:00:00,9\n60,12,2026-07-01 00:01:00,12\n",
            ),
            ("utilization.csv", "t_seconds,value\n0,45\n60,80\n"),
            ("trace.csv", "create_s,cpu_milli,memory_mib\n0,500,256\n"),
            ("prices.csv", "instance_type,zone,time,price\nm5.large,us-east-1a,2026-01-01T02:00:00Z,0.05\n"),
            ("availability.csv", "instance_type,zone,offset_s,available\nm5.large,us-east-1a,0,4\n"),
        ] {
            fs::write(folder.directory.path().join(name), text).unwrap();
        }
        folder
    }

    /// What the reader makes of a scenario; the hashes of its files are left out.
    fn load(&self, scenario: &Json) -> Result<Scenario, ScenarioError> {
        let path = self.directory.path().join("scenario.yaml");
        fs::write(&path, scenario.to_string()).unwrap();
        let (mut scenario, _) = nodecast::scenario::load_with(&path, Catalog::embedded().unwrap(), &Limits::default())?;
        scenario.inputs.clear();
        Ok(scenario)
    }

    fn is_valid(&self, scenario: &Json) -> bool {
        is_valid(&self.schema, &self.schema, scenario)
    }

    /// Both refuse a scenario; the reader's way out.
    fn refused(&self, scenario: &Json, case: &str) -> String {
        assert!(!self.is_valid(scenario), "{case}: the schema accepts it");
        let error = self.load(scenario).err().unwrap_or_else(|| panic!("{case}: the reader accepts it"));
        error.way_out().unwrap_or_default().to_owned()
    }

    /// Both accept a scenario.
    fn accepted(&self, scenario: &Json, case: &str) -> Scenario {
        assert!(self.is_valid(scenario), "{case}: the schema refuses it");
        self.load(scenario).unwrap_or_else(|error| panic!("{case}: {}", error.render()))
    }
}

fn yaml(text: &str) -> Json {
    serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// An example as a scenario.
fn scenario_of(example: &str) -> Json {
    let mut scenario = json!({
        "name": "example", "region": "us-east-1", "duration": "24h", "manifests": ["cluster.yaml"],
        "nodeGroups": [{ "name": "system", "instanceTypes": ["m5.large"], "min": 1, "desired": 2, "max": 9 },
            { "name": "spot", "managed": false, "spot": "50%", "instanceTypes": ["m5.large"], "desired": 1 }],
    });
    for (key, value) in yaml(example).as_object().unwrap() {
        scenario[key] = value.clone();
    }
    scenario
}

/// A map of a scenario: where it stands, and its section.
type Place = (String, &'static Section);

/// The maps under `value`, which stands at `pointer`.
fn maps(value: &Json, form: &Form, pointer: &str, found: &mut Vec<Place>) {
    match (form, value) {
        (Form::Map(section), Json::Object(_)) => maps_of(value, section, pointer, found),
        (Form::List(inner) | Form::OneOrMore(inner), Json::Array(items)) => {
            for (place, item) in items.iter().enumerate() {
                maps(item, inner, &format!("{pointer}/{place}"), found);
            }
        }
        (Form::Either(one, other), _) => {
            maps(value, one, pointer, found);
            maps(value, other, pointer, found);
        }
        _ => {}
    }
}

fn maps_of(value: &Json, section: &'static Section, pointer: &str, found: &mut Vec<Place>) {
    found.push((pointer.to_owned(), section));
    for (name, inner) in value.as_object().unwrap() {
        let key = section.key(name).unwrap_or_else(|| panic!("{pointer}: `{name}` is not described"));
        maps(inner, &key.form(), &format!("{pointer}/{name}"), found);
    }
}

/// Every key of every example: the scenario, where the map stands, its section, the key.
fn each_key(folder: &Folder, mut look: impl FnMut(&Json, &str, &'static Section, &'static Key)) {
    for section in SECTIONS.iter().filter(|section| !section.example.is_empty()) {
        let scenario = scenario_of(section.example);
        folder.accepted(&scenario, section.title);
        let mut found = Vec::new();
        maps_of(&scenario, &whole::SCENARIO, "", &mut found);
        for (pointer, section) in found {
            let map = scenario.pointer(&pointer).unwrap().as_object().unwrap();
            for key in section.keys.iter().filter(|key| map.contains_key(key.name)) {
                look(&scenario, &pointer, section, key);
            }
        }
    }
}

fn with(scenario: &Json, pointer: &str, key: &str, value: Json) -> Json {
    let mut scenario = scenario.clone();
    scenario.pointer_mut(pointer).unwrap()[key] = value;
    scenario
}

fn without(scenario: &Json, pointer: &str, key: &str) -> Json {
    let mut scenario = scenario.clone();
    scenario.pointer_mut(pointer).unwrap().as_object_mut().unwrap().shift_remove(key).unwrap();
    scenario
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn schema_examples_cover_every_key() {
    let folder = Folder::new();
    let (mut stated, mut spoilt) = (BTreeSet::new(), BTreeSet::new());
    each_key(&folder, |scenario, pointer, section, key| {
        stated.insert((section.title, key.name));
        if spoilt.insert((section.title, key.name)) {
            let case = format!("{pointer}/{}", key.name);
            folder.refused(&with(scenario, pointer, key.name, json!([[1]])), &case);
            if section.shape.strict {
                folder.refused(&with(scenario, pointer, "zzz", json!(1)), &format!("{pointer}/zzz"));
            }
            for wrong in wrong_values(&key.form()) {
                folder.refused(&with(scenario, pointer, key.name, wrong.clone()), &format!("{case}: {wrong}"));
            }
        }
    });
    let described: BTreeSet<_> =
        SECTIONS.iter().flat_map(|section| section.keys.iter().map(|key| (section.title, key.name))).collect();
    let missing: Vec<_> = described.difference(&stated).collect();
    assert!(missing.is_empty(), "no example states {missing:?}");
}

/// Values that are nearly right.
fn wrong_values(form: &Form) -> Vec<Json> {
    match form {
        Form::FolderName => vec![json!("a b"), json!("../a")],
        Form::Workload => vec![json!("a/b/c")],
        Form::Truth => vec![json!("maybe")],
        Form::Number(least, most) => vec![json!(least - 0.05), json!(most + 0.5), json!("many")],
        Form::Amount(_) | Form::Quantity => vec![json!("4GB"), json!("many")],
        Form::Duration => vec![json!(5), json!("5 minutes"), json!("-5m")],
        Form::SignedDuration => vec![json!(5), json!("six")],
        Form::Share(most) => {
            vec![json!(format!("{}%", most + 1)), json!(f64::from(*most) / 100.0 + 0.1), json!("-1%")]
        }
        Form::Price => vec![json!(-1), json!("free")],
        Form::Instant => vec![json!("tomorrow")],
        Form::Release(_) => vec![json!("99.99"), json!("latest")],
        Form::Integer(..) => vec![json!(1.5), json!("many")],
        _ => Vec::new(),
    }
}

#[test]
fn words_and_bounds_are_those_of_the_reader() {
    let folder = Folder::new();
    each_key(&folder, |scenario, pointer, _, key| {
        let case = format!("{pointer}/{}", key.name);
        let help_for = |value: Json| {
            folder.refused(&with(scenario, pointer, key.name, value.clone()), &format!("{case}: {value}"))
        };
        match &key.form() {
            Form::Words(words) => assert_words(&help_for(json!("no such word at all")), words, &case),
            Form::Either(one, _) => {
                if let Form::Words(words) = &**one {
                    assert_words(&help_for(json!("no such word at all")), words, &case);
                }
            }
            Form::Integer(least, most) => {
                let bounds = format!("write a whole number from {least} to {most}");
                assert_eq!(help_for(json!(least - 1)), bounds, "{case}");
                if *most < i64::MAX {
                    assert_eq!(help_for(json!(most + 1)), bounds, "{case}");
                }
            }
            Form::Release(program) => {
                let (help, releases) = (help_for(json!("99.99")), program.releases());
                assert!(help.contains(&releases[0]) && help.ends_with(releases.last().unwrap()), "{case}: {help}");
            }
            _ => {}
        }
    });
}

fn assert_words(help: &str, words: &[&str], case: &str) {
    assert_eq!(help, format!("known are {}", listed(words)), "{case}");
}

fn listed(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}

/// Keys that have to be there in some circumstances, which their description says.
const SOMETIMES_REQUIRED: [(&str, &str); 20] = [
    ("a capacity reservation", "until"),
    ("a load", "service"),
    ("a node group", "instanceType"),
    ("a node group", "instanceTypes"),
    ("a queue", "consumer_group"),
    ("a queue", "partitions"),
    ("a reservation", "payment"),
    ("a reservation", "per_hour"),
    ("a reservation", "term"),
    ("a savings plan", "discount"),
    ("a savings plan", "family"),
    ("a savings plan", "payment"),
    ("a savings plan", "term"),
    ("an external metric", "metric"),
    ("an external metric", "scaled_object"),
    ("an external metric", "scaler"),
    ("an external metric", "workload"),
    ("another line", "per_gb"),
    ("another line", "per_month"),
    ("`spot`", "file"),
];

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn schema_required_keys_and_defaults_are_correct() {
    let folder = Folder::new();
    let mut other = Vec::new();
    each_key(&folder, |scenario, pointer, section, key| {
        let case = format!("{pointer}/{}", key.name);
        let bare = without(scenario, pointer, key.name);
        match key.presence {
            Presence::Required => drop(folder.refused(&bare, &case)),
            Presence::Default(value) => {
                let mut stated = with(scenario, pointer, key.name, yaml(&value()));
                let mut bare = bare;
                // Recorded prices are for `replay` alone.
                if (section.shape.name, key.name) == ("`spot`", "prices") {
                    (stated, bare) = (without(&stated, pointer, "file"), without(&bare, pointer, "file"));
                }
                // Only a Capacity Block has a price of its own.
                if (section.shape.name, key.name) == ("a capacity reservation", "reservation_type") {
                    (stated, bare) = (without(&stated, pointer, "per_hour"), without(&bare, pointer, "per_hour"));
                }
                assert!(folder.is_valid(&stated) && folder.is_valid(&bare), "{case}: the schema refuses it");
                match (folder.load(&stated), folder.load(&bare)) {
                    (Ok(stated), Ok(bare)) if stated == bare => {}
                    (stated, bare) => other.push((case, stated.err(), bare.err())),
                }
            }
            Presence::Otherwise(_) if section.one_of.contains(&key.name) => drop(folder.refused(&bare, &case)),
            Presence::Otherwise(_) if SOMETIMES_REQUIRED.contains(&(section.shape.name, key.name)) => {}
            // Another policy or step may name what is taken out.
            Presence::Otherwise(_)
                if ["manifests", "nodeGroups", "node_termination_handler", "max"].contains(&key.name) => {}
            Presence::Otherwise(_) => drop(folder.accepted(&bare, &case)),
        }
    });
    assert!(other.is_empty(), "stating the default changes something: {other:?}");
}

#[test]
fn schema_releases_read_with_or_without_patch() {
    let folder = Folder::new();
    for (key, program) in [
        ("karpenter", Program::Karpenter),
        ("kubernetes", Program::Kubernetes),
        ("cluster-autoscaler", Program::ClusterAutoscaler),
        ("keda", Program::Keda),
    ] {
        for release in program.releases() {
            let scenario = scenario_of(&format!("versions: {{ {key}: \"{release}\" }}"));
            folder.accepted(&scenario, &release);
        }
    }
    for text in ["karpenter: v0.16", "karpenter: 1.13", "kubernetes: 1.36", "kubernetes: v1.33.2", "keda: 2.20.1"] {
        folder.accepted(&scenario_of(&format!("versions: {{ {text} }}")), text);
    }
}

#[test]
fn every_scenario_of_the_gallery_is_valid() {
    let schema = json_schema::schema();
    for path in scenarios() {
        let text = fs::read_to_string(&path).unwrap();
        assert!(is_valid(&schema, &schema, &yaml(&text)), "{path}");
    }
}

#[test]
fn every_section_is_used_and_described_once() {
    let schema = json_schema::schema();
    let named: BTreeSet<String> = references(&schema).into_iter().collect();
    let defined: BTreeSet<String> = schema["definitions"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(named, defined);
    assert_eq!(defined.len() + 1, SECTIONS.len());
    insta::assert_snapshot!("json_schema_versions", format!("{:#}", schema["definitions"]["versions"]));
    insta::assert_snapshot!("json_schema_uncertainty", format!("{:#}", schema["definitions"]["requests.uncertainty"]));
}

/// Every definition that a schema refers to.
fn references(schema: &Json) -> Vec<String> {
    match schema {
        Json::Object(map) => {
            let rest = map.get("$ref").and_then(Json::as_str).and_then(|text| text.strip_prefix("#/definitions/"));
            rest.map(str::to_owned).into_iter().chain(map.values().flat_map(references)).collect()
        }
        Json::Array(items) => items.iter().flat_map(references).collect(),
        _ => Vec::new(),
    }
}

fn reference_file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/scenario.md")
}

#[test]
fn schema_reference_and_its_links_are_current() {
    let text = reference::text();
    let committed = fs::read_to_string(reference_file()).unwrap_or_default();
    assert!(committed == text, "refresh it: `nodecast schema --format markdown > docs/scenario.md`");
    let headings: BTreeSet<String> = text
        .lines()
        .filter(|line| line.starts_with("##"))
        .map(|line| anchor(line.trim_start_matches(['#', ' '])))
        .collect();
    let mut links = 0;
    for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
        links += 1;
        match link.split_once('#') {
            Some(("", heading)) => assert!(headings.contains(heading), "{link}"),
            _ => {
                let (file, heading) = link.split_once('#').unwrap_or((link, ""));
                let other =
                    fs::read_to_string(reference_file().with_file_name(file)).unwrap_or_else(|_| panic!("{link}"));
                let found = other
                    .lines()
                    .any(|line| line.starts_with('#') && anchor(line.trim_start_matches(['#', ' '])) == heading);
                assert!(heading.is_empty() || found, "{link}");
            }
        }
    }
    assert!(links > 50);
}

/// The anchor of a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

#[test]
fn the_program_prints_both_forms() {
    let place = crate::cli::Place::new();
    let (out, err, code) = place.nodecast(&["schema"]);
    assert_eq!((err.as_str(), code), ("", Some(0)));
    assert_eq!(serde_json::from_str::<Json>(&out).unwrap(), json_schema::schema());
    let (out, _, code) = place.nodecast(&["schema", "--format", "markdown"]);
    assert_eq!((out, code), (reference::text(), Some(0)));
}

/// Rust sources under a directory of the program's, one text for each.
fn sources(directory: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push((path.clone(), fs::read_to_string(&path).unwrap()));
        }
    }
    found
}

/// The public fields of the structs in a text.
fn public_fields(text: &str) -> Vec<String> {
    let field = regex_lite::Regex::new(r"^    pub (\w+): ").unwrap();
    text.lines().filter_map(|line| Some(field.captures(line)?[1].to_owned())).collect()
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn every_schema_key_is_used() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let all = [sources(&root.join("src")), sources(&root.join("crates"))].concat();
    // The schema fills the structs of `settings` in; that alone is no use of them.
    let fills = |path: &Path| path.starts_with(root.join("crates/scenario/src/schema"));
    let stated = all.iter().filter(|(path, _)| path.ends_with("settings/src/stated.rs"));
    let fields: BTreeSet<String> = stated.flat_map(|(_, text)| public_fields(text)).collect();
    assert!(fields.len() > 30 && fields.contains("warm_up"), "{fields:?}");
    let uses: String = all.iter().filter(|(path, _)| !fills(path)).map(|(_, text)| text.as_str()).collect();
    let is_used = |field: &str| {
        regex_lite::Regex::new(&format!(r"(\.{field}\b[^(]|\bScenario \{{[^}}]*\b{field}\b)")).unwrap().is_match(&uses)
    };
    let forgotten: Vec<_> = fields.iter().filter(|field| !is_used(field)).collect();
    assert!(forgotten.is_empty(), "read and never used: {forgotten:?}");
    assert!(!is_used("no_such_key"));
}

/// Whether `value` is valid under `schema`, a part of `root`. A keyword that is not known here is no schema of ours.
pub(crate) fn is_valid(root: &Json, schema: &Json, value: &Json) -> bool {
    let make = |schema: &Json| is_valid(root, schema, value);
    schema.as_object().unwrap().iter().all(|(keyword, rule)| match keyword.as_str() {
        "$schema" | "definitions" | "title" | "description" | "markdownDescription" => true,
        "$ref" => make(root.pointer(rule.as_str().unwrap().trim_start_matches('#')).unwrap()),
        "type" => match rule {
            Json::Array(types) => types.iter().any(|name| is_of_type(value, name)),
            name => is_of_type(value, name),
        },
        "enum" => rule.as_array().unwrap().contains(value),
        "const" => rule == value,
        "pattern" => {
            value.as_str().is_none_or(|text| regex_lite::Regex::new(rule.as_str().unwrap()).unwrap().is_match(text))
        }
        "minimum" => value.as_f64().is_none_or(|number| number >= rule.as_f64().unwrap()),
        "maximum" => value.as_f64().is_none_or(|number| number <= rule.as_f64().unwrap()),
        "required" => {
            let names = rule.as_array().unwrap();
            value.as_object().is_none_or(|map| names.iter().all(|name| map.contains_key(name.as_str().unwrap())))
        }
        "properties" => value.as_object().is_none_or(|map| {
            map.iter().all(|(key, inner)| rule.get(key).is_none_or(|rule| is_valid(root, rule, inner)))
        }),
        "additionalProperties" => value.as_object().is_none_or(|map| {
            let known = |key: &str| schema.get("properties").is_some_and(|properties| properties.get(key).is_some());
            map.iter().filter(|(key, _)| !known(key)).all(|(_, inner)| match rule {
                Json::Bool(allowed) => *allowed,
                rule => is_valid(root, rule, inner),
            })
        }),
        "items" => value.as_array().is_none_or(|items| match rule {
            Json::Array(rules) => rules.iter().zip(items).all(|(rule, item)| is_valid(root, rule, item)),
            rule => items.iter().all(|item| is_valid(root, rule, item)),
        }),
        "minItems" => value.as_array().is_none_or(|items| items.len() as u64 >= rule.as_u64().unwrap()),
        "maxItems" => value.as_array().is_none_or(|items| items.len() as u64 <= rule.as_u64().unwrap()),
        "uniqueItems" => {
            value.as_array().is_none_or(|items| items.iter().enumerate().all(|(at, item)| !items[..at].contains(item)))
        }
        "allOf" => rule.as_array().unwrap().iter().all(make),
        "anyOf" => rule.as_array().unwrap().iter().any(make),
        "oneOf" => rule.as_array().unwrap().iter().filter(|rule| make(rule)).count() == 1,
        unknown => panic!("the keyword `{unknown}` is not known"),
    })
}

fn is_of_type(value: &Json, name: &Json) -> bool {
    match name.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        unknown => panic!("the type `{unknown}` is not known"),
    }
}

#[test]
fn editor_descriptions_contain_no_links() {
    let text = json_schema::text();
    assert!(!text.contains("]("), "{:?}", text.lines().find(|line| line.contains("](")));
    assert!(text.contains("docs/load.md explains the model."), "a document by its name");
    let requests =
        "Arrivals, in the forms of requests (docs/scenario.md, section \u{201c}requests: how they arrive\u{201d})";
    assert!(text.contains(requests), "a section by its heading");
}
