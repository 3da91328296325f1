//! Every policy of every shipped scenario; shipped.txt says what each is cut to where the time is short.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::outputs::Run;
use super::read;

/// The folders below `folder` that hold a scenario, by their path below `scenarios`.
fn folders(folder: &Path, name: &str, found: &mut BTreeMap<String, PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap()) {
        let path = entry.path();
        if path.is_dir() {
            let below = format!("{name}{}", entry.file_name().to_string_lossy());
            let scenario = path.join("scenario.yaml");
            if scenario.exists() {
                found.insert(below.clone(), scenario);
            }
            folders(&path, &format!("{below}/"), found);
        }
    }
}

/// All of them; with `cut`, for as long only as shipped.txt says.
pub fn runs(cut: bool) -> Vec<Run> {
    let mut found = BTreeMap::new();
    folders(&Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios"), "", &mut found);
    let text = read("shipped.txt");
    let durations = text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(' '));
    let durations: BTreeMap<&str, &str> = durations.collect();
    let names: Vec<&str> = found.keys().map(String::as_str).collect();
    let listed: Vec<&str> = durations.keys().copied().collect();
    assert_eq!(names, listed, "shipped.txt names every scenario with the duration that it is cut to");
    let mut runs = Vec::new();
    for (name, path) in &found {
        let (scenario, _) = nodecast::scenario::load(path).unwrap();
        for policy in &scenario.policies {
            runs.push(Run {
                name: format!("{name}/{}", policy.name),
                about: String::new(),
                scenario: path.clone(),
                policy: policy.name.clone(),
                duration: cut.then(|| durations[name.as_str()].to_owned()),
            });
        }
    }
    runs
}
