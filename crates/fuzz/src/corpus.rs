//! Valid inputs to begin with: the scenarios, tables and records that the repository holds.

use std::path::{Path, PathBuf};

/// An input as it was written, with what it stands beside.
#[derive(Clone, Debug)]
pub struct Seed {
    /// Where it comes from.
    pub name: String,
    /// Its text.
    pub text: String,
    /// Other texts that its reader looks for, by path.
    pub beside: Vec<(String, String)>,
}

impl Seed {
    /// A text alone.
    pub fn alone(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { name: name.into(), text: text.into(), beside: Vec::new() }
    }
}

/// The largest text to begin with: what is larger takes long and finds nothing that a smaller one does not.
const BYTES_MAX: u64 = 64 << 10;

/// The files below a folder whose names end so, in order, those that are text and no larger than [`BYTES_MAX`].
pub fn files(root: &Path, folder: &str, ends: &[&str]) -> Vec<Seed> {
    let mut paths = Vec::new();
    gather(&root.join(folder), &mut paths);
    paths.sort();
    let is_meant = |path: &PathBuf| {
        let name = path.display().to_string();
        let small = std::fs::metadata(path).is_ok_and(|about| about.len() <= BYTES_MAX);
        small && ends.iter().any(|end| name.ends_with(end))
    };
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).ok()?;
        Some(Seed::alone(path.strip_prefix(root).unwrap_or(&path).display().to_string(), text))
    };
    paths.into_iter().filter(is_meant).filter_map(read).collect()
}

/// Rows, lines and items that a shortened text has.
const ROWS: usize = 24;

/// The texts with fewer rows, lines or items, taken at equal distances: a reader does with the hundredth what it did with the tenth, and takes ten
/// times as long over it.
pub fn shortened(mut seeds: Vec<Seed>) -> Vec<Seed> {
    for seed in &mut seeds {
        let ends = |end: &str| seed.name.ends_with(end);
        if ends(".json") {
            let Ok(mut document) = serde_json::from_str(&seed.text) else { continue };
            fewer_items(&mut document);
            seed.text = serde_json::to_string_pretty(&document).unwrap_or_default();
        } else if ends(".jsonl") || ends(".csv") {
            let lines: Vec<&str> = seed.text.split_inclusive('\n').collect();
            seed.text = fewer(&lines).copied().collect();
        }
    }
    seeds
}

/// At most [`ROWS`] of them, the first and others at equal distances.
fn fewer<T>(all: &[T]) -> impl Iterator<Item = &T> {
    all.iter().step_by(all.len().div_ceil(ROWS).max(1))
}

fn fewer_items(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Array(items) => {
            *items = fewer(items).cloned().collect();
            items.iter_mut().for_each(fewer_items);
        }
        serde_json::Value::Object(entries) => entries.values_mut().for_each(fewer_items),
        _ => {}
    }
}

fn gather(folder: &Path, paths: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            gather(&path, paths);
        } else {
            paths.push(path);
        }
    }
}

/// The scenarios with every file that they name.
pub fn scenarios(root: &Path) -> Vec<Seed> {
    let mut found = Vec::new();
    for folder in ["scenarios", "tests/data"] {
        found.extend(files(root, folder, &["scenario.yaml"]));
    }
    found.into_iter().filter_map(|seed| with_files(root, seed)).collect()
}

/// The scenario with the texts of the files that it names; `None` if it cannot be read as it is, or names large files.
fn with_files(root: &Path, seed: Seed) -> Option<Seed> {
    let path = root.join(&seed.name);
    let (scenario, _) = nodecast_scenario::load(&path).ok()?;
    let directory = Path::new(&seed.name).parent()?;
    let mut beside = Vec::new();
    for input in &scenario.inputs {
        let named = directory.join(&input.path);
        if let Ok(text) = std::fs::read_to_string(root.join(&named)) {
            beside.push((named.display().to_string(), text));
        }
    }
    let bytes: usize = beside.iter().map(|(_, text)| text.len()).sum();
    (bytes as u64 <= 2 * BYTES_MAX).then_some(Seed { beside, ..seed })
}

/// Tables and answers that say how much load there is, or which pods: those of scenarios, and small ones of each form.
pub fn loads(root: &Path) -> Vec<Seed> {
    let mut found = Vec::new();
    for scenario in scenarios(root) {
        let tables = scenario.beside.iter().filter(|(name, _)| name.ends_with(".csv") || name.ends_with(".json"));
        for (name, text) in tables.cloned().collect::<Vec<_>>() {
            let mut beside = scenario.beside.clone();
            beside.retain(|(item, _)| *item != name);
            beside.insert(0, (scenario.name.clone(), scenario.text.clone()));
            found.push(Seed { name, text, beside });
        }
    }
    let rows =
        |step: f64| -> String { (0..40).map(|row| format!("{},{}\n", row * 60, step * f64::from(row % 7))).collect() };
    let samples: Vec<String> =
        (0..40).map(|row| format!("[{}, \"{}\"]", 1_767_225_600 + row * 60, row % 9 * 12)).collect();
    let answer = format!(
        "{{\"status\": \"success\", \"data\": {{\"resultType\": \"matrix\", \"result\": [{{\"metric\": {{\"app\": \"web\"}}, \"values\": [{}]}}]}}}}",
        samples.join(", ")
    );
    let instants: Vec<String> = (0..40).map(|row| format!("\"2026-10-13T00:{row:02}:00Z\"")).collect();
    let counts: Vec<String> = (0..40).map(|row| (row % 9 * 120).to_string()).collect();
    let cloudwatch = format!(
        "{{\"MetricDataResults\": [{{\"Id\": \"m\", \"Label\": \"RequestCount\", \"Timestamps\": [{}], \"Values\": [{}], \"StatusCode\": \"Complete\"}}]}}",
        instants.join(", "),
        counts.join(", ")
    );
    let points: Vec<String> =
        (0..40_i64).map(|row| format!("[{}, {}.5]", (1_760_313_600 + row * 60) * 1_000, row % 9)).collect();
    let datadog = format!("{{\"status\": \"ok\", \"series\": [{{\"pointlist\": [{}]}}]}}", points.join(", "));
    let recorded: String = (0..40).map(|row| format!("2026-10-13 00:{row:02}:00,{}\n", row % 7 * 60)).collect();
    let forms = [
        ("load.json", cloudwatch, "{ cloudwatch: load.json }"),
        ("load.json", datadog, "{ datadog: load.json }"),
        ("load.csv", format!("Time,requests\n{recorded}"), "{ csv: load.csv, column: requests, values: totals }"),
        ("load.csv", format!("t_seconds,requests_per_second\n{}", rows(12.5)), "{ csv: load.csv, scale: 2 }"),
        ("load.csv", format!("t_seconds,count\n{}", rows(3.0)), "{ trace: load.csv }"),
        ("load.json", answer, "{ prometheus: load.json }"),
    ];
    found.extend(forms.map(|(name, text, form)| {
        let scenario = (SCENARIO.to_owned(), LOADED.replace("FORM", form));
        Seed { name: name.to_owned(), text, beside: vec![scenario, ("objects.yaml".to_owned(), OBJECTS.to_owned())] }
    }));
    found
}

const SCENARIO: &str = "scenario.yaml";

/// A scenario whose only load is read from a file.
pub const LOADED: &str = "name: loaded
region: us-east-1
duration: 1h
manifests: [objects.yaml]
policies: [{ name: only, autoscaler: karpenter }]
load:
  - workload: shop/web
    requests: FORM
    service: { cpu_per_request: 20ms, concurrency: 16 }
";

/// A Deployment and what Karpenter needs.
pub const OBJECTS: &str = "apiVersion: apps/v1
kind: Deployment
metadata: { name: web, namespace: shop }
spec:
  replicas: 2
  selector: { matchLabels: { app: web } }
  template:
    metadata: { labels: { app: web } }
    spec: { containers: [{ name: web, image: web, resources: { requests: { cpu: 500m, memory: 512Mi } } }] }
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: { name: default }
spec:
  template:
    spec:
      nodeClassRef: { group: karpenter.k8s.aws, kind: EC2NodeClass, name: default }
      requirements: [{ key: karpenter.sh/capacity-type, operator: In, values: [on-demand] }]
---
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: { name: default }
spec:
  amiSelectorTerms: [{ alias: al2023@latest }]
  role: node
  subnetSelectorTerms: [{ tags: { a: b } }]
  securityGroupSelectorTerms: [{ tags: { a: b } }]
";
