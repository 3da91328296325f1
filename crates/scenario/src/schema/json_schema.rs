//! The description as a JSON Schema (draft 7, which yaml-language-server reads), for editors that complete and check YAML.
//!
//! It is a little stricter than the reader, which takes a number in quotes for a number.

use serde_json::{Map, Value as Json, json};

use super::reference;
use super::whole::SCENARIO;
use super::{Form, Key, Presence, Program, SECTIONS, Section};

/// The schema, ending in a newline.
pub fn text() -> String {
    format!("{:#}\n", schema())
}

/// The schema.
pub fn schema() -> Json {
    let sections = SECTIONS.iter().filter(|section| !std::ptr::eq(**section, &raw const SCENARIO));
    let definitions: Map<String, Json> = sections.map(|section| (id(section), of_section(section))).collect();
    let mut root = Map::new();
    root.insert("$schema".to_owned(), json!("http://json-schema.org/draft-07/schema#"));
    root.insert("title".to_owned(), json!("nodecast scenario"));
    if let Json::Object(of_scenario) = of_section(&SCENARIO) {
        root.extend(of_scenario);
    }
    root.insert("definitions".to_owned(), Json::Object(definitions));
    Json::Object(root)
}

/// `text` without links, which lead nowhere in an editor: what they point to is named instead.
fn unlinked(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('[') {
        let link = after.split_once("](").and_then(|(label, more)| Some((label, more.split_once(')')?)));
        let Some((label, (target, end))) = link.filter(|(label, _)| !label.contains('[')) else {
            plain += before;
            plain.push('[');
            rest = after;
            continue;
        };
        plain += before;
        plain += &named(label, target);
        rest = end;
    }
    plain + rest
}

/// What a link of docs/scenario.md points to, in words.
fn named(label: &str, target: &str) -> String {
    let (file, anchor) = target.split_once('#').map_or((target, ""), |(file, anchor)| (file, anchor));
    let heading = SECTIONS.iter().map(|section| section.title).find(|title| reference::anchor(title) == anchor);
    let section = heading.map_or_else(|| anchor.replace('-', " "), |title| title.replace('`', ""));
    let section = if anchor.is_empty() { String::new() } else { format!(", section \u{201c}{section}\u{201d}") };
    if label == file {
        format!("docs/{file}{section}")
    } else {
        let file = if file.is_empty() { "scenario.md" } else { file };
        format!("{label} (docs/{file}{section})")
    }
}

/// The name of a section's definition: its heading without marks, `ec2.spot` or `faults[].api_latency`.
fn id(section: &Section) -> String {
    let heading = section.title.split([':', ',']).next().unwrap_or_default();
    heading.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')).collect()
}

fn of_section(section: &'static Section) -> Json {
    let mut object = Map::new();
    if !section.about().is_empty() {
        object.insert("description".to_owned(), json!(unlinked(section.about())));
    }
    // A section that states nothing (`spec:`) counts as an empty one.
    object.insert("type".to_owned(), json!(["object", "null"]));
    let properties: Map<String, Json> = section.keys.iter().map(|key| (key.name.to_owned(), of_key(key))).collect();
    object.insert("properties".to_owned(), Json::Object(properties));
    if section.shape.strict {
        object.insert("additionalProperties".to_owned(), json!(false));
    }
    let required = section.keys.iter().filter(|key| matches!(key.presence, Presence::Required));
    let required: Vec<&str> = required.map(|key| key.name).collect();
    if !required.is_empty() {
        object.insert("type".to_owned(), json!("object"));
        object.insert("required".to_owned(), json!(required));
    }
    if !section.one_of.is_empty() {
        let each: Vec<Json> = section.one_of.iter().map(|key| json!({ "required": [key] })).collect();
        object.insert("type".to_owned(), json!("object"));
        object.insert("oneOf".to_owned(), Json::Array(each));
    }
    Json::Object(object)
}

fn of_key(key: &Key) -> Json {
    let mut object = Map::new();
    let without = match key.presence {
        Presence::Required | Presence::Otherwise("-") => String::new(),
        Presence::Default(value) => format!(" Default: {}.", value()),
        Presence::Otherwise(what) => format!(" Without it: {what}."),
    };
    let text = unlinked(&format!("{}{without}", key.meaning()));
    // Editors show the second where they know it, with its code as code.
    object.insert("description".to_owned(), json!(text.replace('`', "")));
    object.insert("markdownDescription".to_owned(), json!(text));
    if let Json::Object(of_value) = of_value(&key.form()) {
        object.extend(of_value);
    }
    Json::Object(object)
}

fn of_value(value: &Form) -> Json {
    match value {
        Form::Text(_) | Form::File => json!({ "type": "string" }),
        Form::FolderName => json!({ "type": "string", "pattern": "^[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}$" }),
        Form::Workload => json!({ "type": "string", "pattern": "^[^/]+(/[^/]+)?$" }),
        Form::Truth => json!({ "type": "boolean" }),
        Form::Integer(least, most) => json!({ "type": "integer", "minimum": least, "maximum": most }),
        Form::Number(least, most) => json!({ "type": "number", "minimum": least, "maximum": most }),
        Form::Amount(_) => json!({ "anyOf": [{ "type": "number", "minimum": 0 }, pattern(AMOUNT)] }),
        Form::Quantity => json!({ "anyOf": [{ "type": "number" }, pattern(QUANTITY)] }),
        Form::Duration => json!({ "anyOf": [pattern(DURATION), { "const": 0 }] }),
        Form::SignedDuration => json!({ "anyOf": [pattern(SIGNED_DURATION), { "const": 0 }] }),
        Form::Share(most) => {
            let percent = if *most == 100 { SHARE } else { LARGE_SHARE };
            json!({ "anyOf": [{ "type": "number", "minimum": 0, "maximum": f64::from(*most) / 100.0 }, pattern(percent)] })
        }
        Form::Price => json!({ "type": "number", "minimum": 0 }),
        Form::Instant => pattern("^[0-9]{4}-[0-9]{2}-[0-9]{2}T"),
        Form::Words(words) => json!({ "enum": words }),
        Form::Release(program) => of_release(*program),
        Form::Scalar => json!({ "type": ["string", "number", "boolean"] }),
        Form::List(item) => json!({ "type": ["array", "null"], "items": of_value(item) }),
        Form::OneOrMore(item) => json!({ "anyOf": [of_value(item), of_value(&Form::List(item.clone()))] }),
        Form::Map(section) => json!({ "$ref": format!("#/definitions/{}", id(section)) }),
        Form::Free(_, inner) => json!({ "type": ["object", "null"], "additionalProperties": of_value(inner) }),
        Form::Either(one, other) => json!({ "anyOf": [of_value(one), of_value(other)] }),
    }
}

const DURATION: &str = r"^(0|(([0-9]+\.?[0-9]*|\.[0-9]+)(us|µs|ms|s|m|h|d|w))+)$";
const SIGNED_DURATION: &str = r"^-?(0|(([0-9]+\.?[0-9]*|\.[0-9]+)(us|µs|ms|s|m|h|d|w))+)$";
const AMOUNT: &str = r"^\+?([0-9]+\.?[0-9]*|\.[0-9]+)([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]+)?$";
const QUANTITY: &str = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]+)?$";
const SHARE: &str = r"^(100(\.0*)?|[0-9]{1,2}(\.[0-9]+)?) ?%$";
const LARGE_SHARE: &str = r"^(1000(\.0*)?|[0-9]{1,3}(\.[0-9]+)?) ?%$";

fn pattern(pattern: &str) -> Json {
    json!({ "type": "string", "pattern": pattern })
}

/// The releases, so that editors propose them, or one of them with its patch level. A release without quotes is a number.
fn of_release(program: Program) -> Json {
    let releases = program.releases();
    let numbered = releases.iter().map(|release| minor(release)).filter(|minor| minor.contains('.'));
    let minors: Vec<String> = numbered.map(|minor| minor.replace('.', r"\.")).collect();
    let numbers: Vec<f64> = releases.iter().filter_map(|release| minor(release).parse().ok()).collect();
    json!({ "anyOf": [
        { "enum": releases },
        pattern(&format!("^v?({})(\\.[0-9]+)?$", minors.join("|"))),
        { "enum": numbers },
    ] })
}

/// Major and minor number of a release: `0.16` of `v0.16.0`.
fn minor(release: &str) -> &str {
    let bare = release.strip_prefix('v').unwrap_or(release);
    match bare.match_indices('.').nth(1) {
        Some((end, _)) => &bare[..end],
        None => bare,
    }
}
