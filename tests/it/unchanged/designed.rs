//! Small scenarios put together from parts: each line of design.txt names a scenario's releases, seed, duration and parts.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use rayon::prelude::*;

use super::outputs::{Run, Written};
use super::read;

/// A line of design.txt.
struct Design {
    name: String,
    seed: String,
    duration: String,
    /// `karpenter=v1.13,kubernetes=1.36`
    versions: String,
    parts: Vec<String>,
}

fn designs() -> Vec<Design> {
    let design = |line: &str| {
        let mut words = line.split_whitespace().map(str::to_owned);
        let mut word = || words.next().unwrap_or_else(|| panic!("design.txt: too few words in `{line}`"));
        let (name, seed, duration, versions) = (word(), word(), word(), word());
        Design { name, seed, duration, versions, parts: words.collect() }
    };
    read("design.txt").lines().filter(|line| !line.starts_with('#')).map(design).collect()
}

/// In how many scenarios each part is.
pub fn scenarios_by_part() -> BTreeMap<String, usize> {
    let mut scenarios = BTreeMap::new();
    for part in designs().into_iter().flat_map(|design| design.parts) {
        *scenarios.entry(part).or_default() += 1;
    }
    scenarios
}

/// Sections of a scenario under construction, by key, in order of key.
#[derive(Default)]
struct Sections(BTreeMap<String, String>);

impl Sections {
    /// Adds the sections of a part, each of which begins with a line `#: KEY`.
    fn add(&mut self, part: &str) {
        for section in read(&format!("parts/{part}.yaml")).split("#: ").skip(1) {
            let (key, text) = section.split_once('\n').unwrap();
            let known = self.0.entry(key.to_owned()).or_default();
            if key == "manifests" && !known.is_empty() {
                known.push_str("---\n");
            }
            known.push_str(text);
        }
    }

    fn take(&mut self, key: &str) -> String {
        self.0.remove(key).unwrap_or_default()
    }
}

fn indented(text: &str) -> String {
    text.lines().fold(String::new(), |mut all, line| {
        let _ = writeln!(all, "  {line}");
        all
    })
}

/// Writes the scenario with its manifests.
fn write(design: &Design, folder: &Path) -> PathBuf {
    std::fs::create_dir_all(folder).unwrap();
    let mut sections = Sections::default();
    design.parts.iter().for_each(|part| sections.add(part));
    let put = |file: &str, text: &str| std::fs::write(folder.join(file), text).unwrap();
    put("manifests.yaml", &sections.take("manifests"));
    let versions = design.versions.split(',').map(|part| part.split_once('=').unwrap());
    let versions: Vec<String> = versions.map(|(of, release)| format!("{of}: \"{release}\"")).collect();
    let mut text = format!(
        "name: {}\nregion: us-east-1\nstart: 2026-03-02T09:00:00Z\nduration: {}\nseed: {}\nversions: {{ {} }}\n\
         cluster: {{ zones: [us-east-1a, us-east-1b, us-east-1c] }}\nmanifests: [manifests.yaml]\npolicies:\n- name: only\n{}",
        design.name,
        design.duration,
        design.seed,
        versions.join(", "),
        indented(&sections.take("policy"))
    );
    for (key, section) in &sections.0 {
        match key.strip_prefix("file ") {
            Some(file) => put(file, section),
            None => text += &format!("{key}:\n{}", indented(section)),
        }
    }
    put("scenario.yaml", &text);
    folder.join("scenario.yaml")
}

/// All of them with what they write, simulated once for all tests.
pub fn simulated() -> (&'static [Run], &'static [Arc<Written>]) {
    static SIMULATED: LazyLock<(Vec<Run>, Vec<Arc<Written>>)> = LazyLock::new(|| {
        let runs = runs();
        let written = runs.par_iter().map(|run| Arc::new(run.written())).collect();
        (runs, written)
    });
    (&SIMULATED.0, &SIMULATED.1)
}

/// All of them, written into the folder of temporary files of this build.
fn runs() -> Vec<Run> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("unchanged");
    let run = |design: Design| Run {
        scenario: write(&design, &folder.join(&design.name)),
        about: format!("{} {}", design.versions, design.parts.join(" ")),
        policy: "only".to_owned(),
        duration: None,
        name: design.name,
    };
    designs().into_iter().map(run).collect()
}
