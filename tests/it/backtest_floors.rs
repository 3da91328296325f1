//! Back-tests of what a real control plane did: right scenarios do not differ, and wrong parameters are found and named.

use std::fmt::Write as _;
use std::path::Path;

use nodecast::catalog::Catalog;
use nodecast::evidence::backtest::{Findings, History, Verdict, findings, stretch, tables};
use nodecast::scenario::{Edit, Limits, load_edited};
use nodecast::simulation;
use rayon::prelude::*;
use serde_json::Value;

const FOLDER: &str = "tests/cases/whole-stack";
const SEEDS: u64 = 20;
const LAUNCHES_SLOWLY: &str =
    "ec2.launch_latency={vm_init: 22s, os_boot: 12s, bootstrap: 22s, register: 4s, cni_ready: 12s, spread: false}";

fn entries() -> Vec<Value> {
    let text = std::fs::read_to_string(Path::new(FOLDER).join("real.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn array(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().unwrap().iter()
}

/// A run as the tables of an observation: nodes and evictions, and nothing of pods or workloads. An instance runs eleven seconds after its
/// launch, registers nineteen later and is Ready eleven after that (README.md of the runs); of equal ones the first is removed first.
fn record_of(run: &Value, seconds: u64, directory: &Path) -> History {
    let mut nodes: Vec<(f64, &str, Option<f64>)> = array(&run["launches"])
        .map(|launch| (launch[0].as_f64().unwrap(), launch[1].as_str().unwrap(), None))
        .collect();
    for removal in array(&run["removals"]) {
        let (at, kind) = (removal[0].as_f64().unwrap(), removal[1].as_str().unwrap());
        let node = nodes.iter_mut().find(|node| node.1 == kind && node.2.is_none() && node.0 < at);
        node.unwrap().2 = Some(at);
    }
    let mut left: Vec<&str> = nodes.iter().filter(|node| node.2.is_none()).map(|node| node.1).collect();
    left.sort_unstable();
    assert_eq!(left, array(&run["nodesAtEnd"]).map(|kind| kind.as_str().unwrap()).collect::<Vec<_>>());
    let mut table = String::from(
        "origin,instance_type,zone,capacity_type,launched_seconds,running_seconds,registered_seconds,ready_seconds,\
         deletion_requested_seconds,terminating_seconds,terminated_seconds,end\n",
    );
    for (at, kind, removed) in nodes {
        let [running, registered, ready] = [11.0, 30.0, 41.0].map(|later| at + later);
        let end = removed.map_or(String::from(",,,"), |at| format!("{at},{at},,underutilized"));
        writeln!(table, "default,{kind},,on-demand,{at},{running:.1},{registered:.1},{ready:.1},{end}").unwrap();
    }
    let write = |name: &str, text: &str| std::fs::write(directory.join(name), text).unwrap();
    write("nodes.csv", &table);
    let evicted = &run["evicted"];
    write("counts.csv", &format!("at_seconds,what,origin,reason,count\n{},evictions,,200,{evicted}\n", seconds - 1));
    let about = format!(r#"{{ "window": {{ "start": "2026-11-27T12:00:00Z", "seconds": {seconds} }} }}"#);
    write("observation.json", &about);
    tables::read(directory).unwrap()
}

/// What back-tests of the runs of a scenario find, with edits of it.
fn back_tests(entry: &Value, edits: &[&str]) -> Vec<(String, Findings)> {
    let catalog = Catalog::embedded().unwrap();
    let name = entry["scenario"].as_str().unwrap();
    let path = Path::new(FOLDER).join(name).join("scenario.yaml");
    let edits: Vec<Edit> = edits.iter().map(|edit| Edit::parse(edit).unwrap()).collect();
    let (scenario, _) = load_edited(&path, catalog, &Limits::default(), &edits).unwrap();
    let policy = scenario.for_policy(None).unwrap();
    let one = |seed| History::from_outcome(&simulation::run(&scenario, policy, catalog, seed, &mut |_| {}).unwrap());
    let simulations: Vec<History> = (1..=SEEDS).into_par_iter().map(one).collect();
    let region = catalog.region("us-east-1").unwrap();
    let judged = |run: &Value| {
        let place = tempfile::tempdir().unwrap();
        let recorded = record_of(run, entry["durationSeconds"].as_u64().unwrap(), place.path());
        let stretch = stretch(&recorded, &simulations[0], None).unwrap();
        let found = findings(&recorded, &simulations, stretch, Some(region.clone())).0;
        (format!("{name} {}", run["run"].as_str().unwrap()), found)
    };
    array(&entry["runs"]).map(judged).collect()
}

fn differing(found: &Findings) -> Vec<&str> {
    let figures = found.figures.iter().filter(|figure| figure.judged.verdict == Verdict::Differs);
    figures.map(|figure| figure.name.as_str()).collect()
}

#[test]
#[allow(clippy::print_stdout)]
fn right_models_agree_with_a_real_control_plane() {
    let (mut judged, mut records, mut off) = (0, 0, Vec::new());
    for (run, found) in entries().iter().flat_map(|entry| back_tests(entry, &[])) {
        judged += found.tally.figures;
        records += 1;
        off.extend(differing(&found).into_iter().map(|figure| format!("{run}: {figure}")));
        assert_eq!(found.changes.is_empty(), differing(&found).is_empty(), "{run}: {:?}", found.changes);
        // Nothing was recorded of pods and of workloads.
        let names = ["wait_p50", "pods_waited_per_day"];
        assert!(
            !found.figures.iter().any(|figure| names.contains(&figure.name.as_str())) && found.workloads.is_empty()
        );
    }
    println!("{} of {judged} figures of {records} records differ: {off:?}", off.len());
    assert!(records == 15 && judged > 200, "{judged}");
    assert!(off.is_empty(), "{} of {judged}: {off:?}", off.len());
}

#[test]
#[allow(clippy::print_stdout)]
fn wrong_parameters_differ_from_a_real_control_plane() {
    let doubled = [("a1", "1"), ("a2", "2"), ("a3", "3"), ("a4", "500m")];
    let larger = doubled.map(|(name, cpu)| {
        format!("Deployment[default/{name}].spec.template.spec.containers[0].resources.requests.cpu={cpu}")
    });
    let planted: [(&str, Vec<String>, &str); 4] = [
        ("boots twice as long", vec![LAUNCHES_SLOWLY.to_owned()], "launch_latency"),
        ("twice the CPU requests", larger.to_vec(), "requests"),
        (
            "consolidation after ten minutes",
            vec!["NodePool[default].spec.disruption.consolidateAfter=10m".to_owned()],
            "consolidateAfter",
        ),
        (
            "no consolidation of nodes with pods",
            vec!["NodePool[default].spec.disruption.consolidationPolicy=WhenEmpty".to_owned()],
            "consolidateAfter",
        ),
    ];
    let entries = entries();
    for (what, edits, parameter) in planted {
        let edits: Vec<&str> = edits.iter().map(String::as_str).collect();
        for (run, found) in back_tests(&entries[0], &edits) {
            println!("{what}: {run}: {:?} {:?}", differing(&found), found.changes);
            let named = found.changes.iter().any(|change| change.parameter.contains(parameter));
            assert!(named, "{what}: {run}: {:?} {:?}", differing(&found), found.changes);
        }
    }
}
