//! Relations between runs: a scenario is changed in a way whose effect is known, and run again.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::case::Case;
use crate::report::{Line, Report};
use crate::trial::{Programs, output};

/// Relations that each case checks; cases take turns.
const PER_CASE: usize = 1;
/// Tables that a change without effect leaves byte-identical. `timeline.csv` and `bill.csv` have calendar times or costs of their own.
const TABLES: [&str; 3] = ["events.jsonl", "pods.csv", "nodes.csv"];

/// A case whose run is in `whole` of its folder.
pub struct Ground<'g> {
    pub case: &'g Case,
    pub folder: &'g Path,
    pub programs: &'g Programs,
    pub report: &'g Report,
}

/// What does not hold; `None` if the relation says nothing of such a case.
type Verdict = Result<Option<Vec<String>>, String>;

/// A relation, and its check.
type Relation = (&'static str, fn(&Ground<'_>) -> Verdict);

/// All of them.
const ALL: [Relation; 14] = [
    ("prices doubled", prices_doubled),
    ("discount", discount),
    ("commitments added", commitments_added),
    ("keys permuted", keys_permuted),
    ("files split", files_split),
    ("units rewritten", units_rewritten),
    ("unused objects", unused_objects),
    ("a week later", a_week_later),
    ("present values set", present_values_set),
    ("a second policy", second_policy),
    ("shards merged", shards_merged),
    ("run equals row", run_equals_row),
    ("names renamed", names_renamed),
    ("documents reversed", documents_reversed),
];

/// Checks some relations on a case: what does not hold, and the names of the relations that said something.
pub fn check(ground: &Ground<'_>) -> Result<(Vec<String>, Vec<&'static str>), String> {
    let (mut faults, mut checked) = (Vec::new(), Vec::new());
    let first = ground.case.seed as usize * PER_CASE;
    for (name, relation) in (first..first + PER_CASE).map(|at| ALL[at % ALL.len()]) {
        if let Some(found) = relation(ground)? {
            checked.push(name);
            faults.extend(found.into_iter().map(|fault| format!("{name}: {fault}")));
        }
    }
    Ok((faults, checked))
}

/// The number of relations that do not hold in cases that failed.
pub fn broken(failed: &[(Case, Vec<String>)]) -> usize {
    let is_broken = |fault: &&String, name: &str| fault.starts_with(&format!("{name}: "));
    let of_case =
        |faults: &[String]| ALL.iter().filter(|(name, _)| faults.iter().any(|fault| is_broken(&fault, name))).count();
    failed.iter().map(|(_, faults)| of_case(faults)).sum()
}

impl Ground<'_> {
    /// A copy of the case in a folder of its own, to be changed.
    fn copy(&self, name: &str) -> Result<PathBuf, String> {
        let folder = self.folder.join(name);
        self.case.write(&folder).map_err(|error| error.to_string())?;
        Ok(folder)
    }

    fn run(&self, folder: &Path, words: &[&str]) -> Result<Vec<u8>, String> {
        output(&self.programs.release, folder, words, 1, self.programs.patience).map(|output| output.stdout)
    }

    /// Runs the case in a folder with more words on the command line.
    fn run_with(&self, folder: &Path, more: &[&str]) -> Result<Report, String> {
        let words = ["run", "scenario.yaml", "--quiet", "--out", "whole"];
        self.run(folder, &[&words[..], more].concat())?;
        Report::read(&folder.join("whole"))
    }

    /// Tables of the run in `folder` that differ from those of the case.
    fn other_tables(&self, folder: &Path) -> Vec<String> {
        let read = |folder: &Path, name: &str| std::fs::read(folder.join("whole").join(name)).ok();
        let differs = TABLES.iter().filter(|name| read(self.folder, name) != read(folder, name));
        differs.map(|name| format!("another {name}")).collect()
    }

    /// What differs if the case runs with other files, each by its name.
    fn same_with(&self, name: &str, files: &[(&str, String)], more: &[&str]) -> Verdict {
        let folder = self.copy(name)?;
        for (file, text) in files {
            std::fs::write(folder.join(file), text).map_err(|error| error.to_string())?;
        }
        let report = self.run_with(&folder, more)?;
        let mut faults = self.other_tables(&folder);
        let (was, is) = (self.total(), total(&report));
        if (was - is).abs() > 1e-6 {
            faults.push(format!("a total of {is} instead of {was}"));
        }
        Ok(Some(faults))
    }

    fn total(&self) -> f64 {
        total(self.report)
    }

    /// Whether the total is between a third of the case's and three times it.
    fn total_near(&self, report: &Report) -> Verdict {
        let (was, is) = (self.total(), total(report));
        let near = (1.0 / 3.0..=3.0).contains(&(is / was)) || (was - is).abs() < 0.5;
        Ok(Some(if near { Vec::new() } else { vec![format!("a total of {is} instead of {was}")] }))
    }

    fn scenario_has(&self, key: &str) -> bool {
        self.case.scenario().contains(key)
    }

    /// Nodes whose lives differ in the run of a folder: by name, instants, and type.
    fn other_lives(&self, report: &Report) -> Vec<String> {
        let lives = |report: &Report| -> Vec<_> {
            let life =
                |node: &crate::report::Node| (node.name.clone(), format!("{:?} {:?}", node.running, node.terminated));
            report.nodes.iter().map(life).collect()
        };
        let (one, other) = (lives(self.report), lives(report));
        if one == other {
            Vec::new()
        } else {
            vec![format!("{} nodes with other lives than {}", other.len(), one.len())]
        }
    }

    /// Whether rates of instances are `factor` times those of the case, node by node.
    fn other_rates(&self, report: &Report, factor: f64) -> Vec<String> {
        let rates = |report: &Report| -> BTreeMap<(String, String), f64> {
            let instances = report.bill.iter().filter(|line| line.item == "instance");
            instances.map(|line: &Line| ((line.node.clone(), line.from.to_string()), line.rate)).collect()
        };
        let (was, is) = (rates(self.report), rates(report));
        let wrong = was.iter().find(|(key, rate)| {
            // Spot prices have four decimals.
            is.get(key).is_none_or(|now| (now - *rate * factor).abs() > 1.6e-4)
        });
        wrong
            .map(|(key, rate)| format!("{key:?} costs {:?} instead of {}", is.get(key), rate * factor))
            .into_iter()
            .collect()
    }
}

fn total(report: &Report) -> f64 {
    report.figure("cost.total").unwrap_or(f64::NAN)
}

/// With all prices of instances doubled, each node lives as before and costs twice as much.
fn prices_doubled(ground: &Ground<'_>) -> Verdict {
    // Spot prices have four decimals: rounded, twice a price may be more or less than twice another that it was equal to.
    if ground.scenario_has("savings_plans") || ground.report.nodes.iter().any(|node| node.capacity_type == "spot") {
        return Ok(None);
    }
    let folder = ground.copy("doubled")?;
    let regions = folder.join("prices/regions");
    std::fs::create_dir_all(&regions).map_err(|error| error.to_string())?;
    let known = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../pricing-data/regions/us-east-1.csv");
    std::fs::write(regions.join("us-east-1.csv"), doubled(&known)?).map_err(|error| error.to_string())?;
    let report = ground.run_with(&folder, &["--pricing-data", "prices"])?;
    let mut faults = ground.other_lives(&report);
    faults.extend(ground.other_rates(&report, 2.0));
    Ok(Some(faults))
}

/// A table of a region with every price doubled.
fn doubled(path: &Path) -> Result<Vec<u8>, String> {
    let mut reader = csv::Reader::from_path(path).map_err(|error| error.to_string())?;
    let headers = reader.headers().map_err(|error| error.to_string())?.clone();
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(&headers).map_err(|error| error.to_string())?;
    let twice =
        |text: &str| text.parse::<f64>().map_or_else(|_| text.to_owned(), |price| format!("{:.9}", price * 2.0));
    for row in reader.records() {
        let row = row.map_err(|error| error.to_string())?;
        let cells = headers.iter().zip(&row).map(|(title, cell)| match title {
            "on_demand" | "karpenter_price" => twice(cell),
            "spot_zones" => {
                let zones = cell.split(' ').filter_map(|zone| zone.split_once('='));
                zones.map(|(zone, price)| format!("{zone}={}", twice(price))).collect::<Vec<_>>().join(" ")
            }
            "spot_region" => twice(cell),
            _ => cell.to_owned(),
        });
        writer.write_record(cells.collect::<Vec<_>>()).map_err(|error| error.to_string())?;
    }
    writer.into_inner().map_err(|error| error.to_string())
}

/// A discount changes no event, and takes its share off the rate of each instance.
fn discount(ground: &Ground<'_>) -> Verdict {
    if ground.scenario_has("billing:") {
        return Ok(None);
    }
    let folder = ground.copy("discount")?;
    let report = ground.run_with(&folder, &["--set", "ec2.billing.discount=20%"])?;
    let mut faults = ground.other_lives(&report);
    let (was, is) = (ground.total(), total(&report));
    if (is - was * 0.8).abs() > 1e-6 + was * 1e-6 {
        faults.push(format!("a total of {is} instead of {}", was * 0.8));
    }
    Ok(Some(faults))
}

/// Commitments change the bill and nothing else.
fn commitments_added(ground: &Ground<'_>) -> Verdict {
    if ground.scenario_has("billing:") {
        return Ok(None);
    }
    let folder = ground.copy("commitments")?;
    let plan = "ec2.billing.savings_plans=[{commitment: 0.3, discount: 30%}]";
    let report = ground.run_with(&folder, &["--set", plan])?;
    Ok(Some(ground.other_lives(&report)))
}

/// Blocks of a YAML text that begin at its left edge, in reverse.
fn reversed(text: &str) -> String {
    let mut blocks: Vec<String> = Vec::new();
    for line in text.lines() {
        match blocks.last_mut() {
            Some(block) if line.starts_with([' ', '-', '}']) => *block += &format!("{line}\n"),
            _ => blocks.push(format!("{line}\n")),
        }
    }
    blocks.reverse();
    blocks.concat()
}

/// The order of keys has no effect.
fn keys_permuted(ground: &Ground<'_>) -> Verdict {
    let objects = ground.case.objects();
    let objects: Vec<String> = objects.split("---\n").map(reversed).collect();
    let files = [("scenario.yaml", reversed(&ground.case.scenario())), ("objects.yaml", objects.join("---\n"))];
    ground.same_with("permuted", &files, &[])
}

/// Objects in several files are the same objects.
fn files_split(ground: &Ground<'_>) -> Verdict {
    let objects = ground.case.objects();
    let parts: Vec<&str> = objects.split("---\n").collect();
    let names: Vec<String> = (0..parts.len()).map(|number| format!("part-{number}.yaml")).collect();
    let scenario = ground.case.scenario().replace("[objects.yaml]", &format!("[{}]", names.join(", ")));
    let mut files: Vec<(&str, String)> =
        names.iter().map(String::as_str).zip(parts.iter().map(|&part| part.to_owned())).collect();
    files.push(("scenario.yaml", scenario));
    ground.same_with("split", &files, &[])
}

/// A quantity or a time in another unit is the same.
fn units_rewritten(ground: &Ground<'_>) -> Verdict {
    let objects = ground.case.objects();
    let units = [
        ("cpu: 1000m", "cpu: \"1\""),
        ("cpu: 250m", "cpu: 0.25"),
        ("cpu: 500m", "cpu: 0.5"),
        ("cpu: 1900m", "cpu: \"1.9\""),
        ("cpu: 1500m", "cpu: 1.5"),
        ("memory: 1024Mi", "memory: 1Gi"),
        ("memory: 128Mi", "memory: 131072Ki"),
        ("memory: 512Mi", "memory: \"536870912\""),
        ("storage: 20Gi", "storage: 20480Mi"),
        ("expireAfter: 720h", "expireAfter: 43200m"),
        ("consolidateAfter: 2m", "consolidateAfter: 120s"),
    ];
    let objects = units.iter().fold(objects, |text, (from, to)| text.replace(from, to));
    let minutes = ground.case.minutes;
    let scenario = ground.case.scenario();
    let scenario = scenario.replace(&format!("duration: {minutes}m\n"), &format!("duration: {}s\n", minutes * 60));
    ground.same_with("units", &[("objects.yaml", objects), ("scenario.yaml", scenario)], &[])
}

/// Objects that nothing refers to have no effect.
fn unused_objects(ground: &Ground<'_>) -> Verdict {
    let more = "---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: { name: unused }
value: 7000
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: { name: unused }
provisioner: ebs.csi.aws.com
parameters: { type: io2 }
---
apiVersion: v1
kind: ConfigMap
metadata: { name: unused, namespace: shop }
data: { key: value }
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: { name: unused, namespace: shop }
spec: { minAvailable: 1, selector: { matchLabels: { app: nothing } } }
";
    ground.same_with("unused", &[("objects.yaml", ground.case.objects() + more)], &[])
}

/// Nodes live as before in a run that starts a week later.
fn a_week_later(ground: &Ground<'_>) -> Verdict {
    let folder = ground.copy("later")?;
    let report = ground.run_with(&folder, &["--set", "start=2026-06-17T08:00:00Z"])?;
    Ok(Some(ground.other_lives(&report)))
}

/// `--set` to the value that is there has no effect.
fn present_values_set(ground: &Ground<'_>) -> Verdict {
    let seed = format!("seed={}", ground.case.seed);
    let duration = format!("duration={}m", ground.case.minutes);
    ground.same_with("present", &[], &["--set", &seed, "--set", &duration, "--set", "name=swarm"])
}

/// A policy that does not run has no effect on the one that does.
fn second_policy(ground: &Ground<'_>) -> Verdict {
    let scenario = ground.case.scenario();
    let Some(at) = scenario.find("  - name: only\n") else { return Ok(None) };
    let text = format!("{}  - name: other\n    autoscaler: none\n{}", &scenario[..at], &scenario[at..]);
    ground.same_with("second", &[("scenario.yaml", text)], &["--policy", "only"])
}

/// The shards of a comparison, merged, print what the whole prints.
fn shards_merged(ground: &Ground<'_>) -> Verdict {
    let folder = ground.copy("shards")?;
    let words = ["compare", "scenario.yaml", "--replications", "3", "--quiet"];
    let whole = ground.run(&folder, &[&words[..], &["--format", "json", "--out", "whole"]].concat())?;
    for shard in ["1/2", "2/2"] {
        ground.run(&folder, &[&words[..], &["--shard", shard, "--out", "parts"]].concat())?;
    }
    let parts = ["parts/part-2-of-2.json", "parts/part-1-of-2.json"];
    let merged = ["merge", parts[0], parts[1], "--quiet", "--format", "json", "--out", "merged"];
    let merged = ground.run(&folder, &merged)?;
    Ok(Some(if merged == whole { Vec::new() } else { vec!["another comparison".to_owned()] }))
}

/// The run of a seed, with drawn errors of Spot prices, is the row of the comparison.
fn run_equals_row(ground: &Ground<'_>) -> Verdict {
    let folder = ground.copy("row")?;
    let seed = (ground.case.seed + 1).to_string();
    let words = ["compare", "scenario.yaml", "--replications", "1", "--seed", &seed, "--quiet", "--format", "json"];
    let printed = ground.run(&folder, &[&words[..], &["--out", "compared"]].concat())?;
    let compared: serde_json::Value = serde_json::from_slice(&printed).map_err(|error| error.to_string())?;
    let run = ground.run_with(&folder, &["--seed", &seed, "--set", "ec2.spot.price_errors=drawn"])?;
    let (row, summary) = (&compared["points"][0]["event_hash"], &run.summary["event_hash"]);
    Ok(Some(if row == summary && row.is_string() {
        Vec::new()
    } else {
        vec![format!("event hash {summary} instead of {row}")]
    }))
}

/// Another name of the namespace changes the draws, so the total may change, but not to that of another cluster.
fn names_renamed(ground: &Ground<'_>) -> Verdict {
    let folder = ground.copy("renamed")?;
    let files = std::fs::read_dir(&folder).map_err(|error| error.to_string())?;
    for path in files.flatten().map(|entry| entry.path()) {
        let text = std::fs::read_to_string(&path).map_err(|error| error.to_string())?;
        let text = text.replace("shop/", "till/").replace("namespace: shop", "namespace: till");
        std::fs::write(&path, text).map_err(|error| error.to_string())?;
    }
    ground.total_near(&ground.run_with(&folder, &[])?)
}

/// The order of documents is the order in which objects are created, so it decides which pods come first and with which draws.
fn documents_reversed(ground: &Ground<'_>) -> Verdict {
    let folder = ground.copy("reversed")?;
    let objects = ground.case.objects();
    let mut parts: Vec<&str> = objects.split("---\n").collect();
    parts.reverse();
    std::fs::write(folder.join("objects.yaml"), parts.join("---\n")).map_err(|error| error.to_string())?;
    ground.total_near(&ground.run_with(&folder, &[])?)
}
