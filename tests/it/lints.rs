//! Lints: the page of warnings is that of the registry, every lint is raised somewhere, and `allow` silences one.

use std::path::{Path, PathBuf};

use nodecast::scenario::lints;
use nodecast::scenario::lints::setup::SCHEDULING_GATES as GATES;
use nodecast_model::text::lints::UNKNOWN_KEY;

use crate::cli::Place;
use crate::keda::cluster;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn rust_files(directory: &Path, found: &mut Vec<PathBuf>) {
    for path in std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The product's source files, apart into the tables of lints and all others.
fn sources() -> (Vec<String>, Vec<String>) {
    let mut files = Vec::new();
    ["crates", "src"].iter().for_each(|folder| rust_files(&root().join(folder), &mut files));
    files.retain(|path| !path.ends_with("text/lint.rs"));
    let texts = files.iter().map(|path| std::fs::read_to_string(path).unwrap());
    texts.partition(|text| text.contains("lints! {\n"))
}

#[test]
fn warnings_page_is_the_registry() {
    let path = root().join("docs/warnings.md");
    let wanted = lints::reference();
    if std::env::var_os("NODECAST_UPDATE_DOCS").is_some() {
        std::fs::write(&path, wanted).unwrap();
        return;
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == wanted, "docs/warnings.md is out of date: NODECAST_UPDATE_DOCS=1 cargo test lints rewrites it");
}

#[test]
fn every_table_of_lints_is_registered() {
    let (tables, _) = sources();
    assert_eq!(tables.len(), lints::AREAS.len(), "a table is missing in `lints::AREAS`");
    for lint in lints::all() {
        assert!(lint.when().ends_with('.') && lint.when().len() < 160, "{}: one or two short sentences", lint.id());
    }
}

#[test]
fn every_lint_is_raised_somewhere() {
    let (_, others) = sources();
    let is_word = |text: &str, name: &str| {
        let matches = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let mut places = text.match_indices(name);
        places.any(|(at, _)| !text[..at].ends_with(matches) && !text[at + name.len()..].starts_with(matches))
    };
    let unused: Vec<&str> =
        lints::all().map(|lint| lint.name()).filter(|name| !others.iter().any(|text| is_word(text, name))).collect();
    assert!(unused.is_empty(), "nothing raises {unused:?}: remove the row, and put its number into `retired`");
}

/// A Deployment whose pods wait for a gate, with a key that does not exist.
fn gated() -> String {
    let deployment = "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: gated}\nspec:\n  replicas: 1\n  minReady: 3\n  \
         selector: {matchLabels: {app: gated}}\n  template:\n    metadata: {labels: {app: gated}}\n    spec:\n      \
         schedulingGates: [{name: example.com/wait}]\n      containers: [{name: main, image: gated, resources: {requests: {cpu: 1}}}]\n";
    format!("{}{deployment}", cluster(1))
}

/// A scenario file with such a Deployment and these lines.
fn place(rest: &str) -> Place {
    let place = Place::new();
    let text = format!(
        "name: gated\nregion: us-east-1\nduration: 5m\nmanifests: [gated.yaml]\n{rest}policies: [{{name: only, autoscaler: none}}]\n"
    );
    place.put("gated.yaml", &gated());
    place.put("gated-scenario.yaml", &text);
    place
}

#[test]
fn run_names_lint_of_each_warning() {
    let (out, err, code) = place("").nodecast(&["run", "gated-scenario.yaml"]);
    assert_eq!(code, Some(0), "{err}");
    let ids = [GATES.id().to_string(), UNKNOWN_KEY.id().to_string()];
    assert!(ids.iter().all(|id| out.contains(&format!("[{id}]"))), "{out}");
}

#[test]
fn allowed_lint_is_silenced_and_reported() {
    let (gates, key, unused) = (GATES.id(), UNKNOWN_KEY.id(), lints::setup::LARGE_RUN.id());
    let place = place(&format!("allow: [{gates}, {key}, {unused}]\n"));
    let (out, err, code) = place.nodecast(&["run", "gated-scenario.yaml", "--out", "report"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains(&format!("2 kinds of warnings silenced by `allow`: {key}, {gates}")), "{out}");
    assert!(!out.contains("schedulingGates") && !out.contains("minReady"), "{out}");
    assert!(out.contains(&format!("`allow` lists {unused}, which did not apply")), "{out}");
    let summary = std::fs::read_to_string(place.path("report/summary.json")).unwrap();
    assert!(summary.contains("\"silenced_warnings\""), "{summary}");
    let (out, _, _) = place.nodecast(&["validate", "gated-scenario.yaml"]);
    assert!(!out.contains("minReady") && !out.contains("schedulingGates"), "{out}");
}

#[test]
fn unknown_lint_is_refused_with_near_ids() {
    let (_, err, code) = place("allow: [NC0O03]\n").nodecast(&["run", "gated-scenario.yaml"]);
    assert_eq!(code, Some(2));
    assert!(err.contains("no warning has the id `NC0O03`") && err.contains("did you mean `NC0003`"), "{err}");
}
