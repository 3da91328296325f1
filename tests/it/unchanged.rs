//! Outputs that stay the same to the byte: events.jsonl, pods.csv, nodes.csv and bill.csv of sixty small scenarios and of every
//! policy of the shipped ones, held against hashes on record in tests/data/unchanged. `docs/reliability.md` says how to use it.

mod designed;
mod outputs;
mod record;
mod shipped;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use self::outputs::{FILES, Run, Written};

/// Where the record and what the designed scenarios are made of are.
const FOLDER: &str = "tests/data/unchanged";
/// Set to simulate shipped scenarios for their whole durations.
const WHOLE: &str = "NODECAST_WHOLE_RUNS";

fn read(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(FOLDER).join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn designed_scenarios_write_the_bytes_on_record() {
    let (runs, written) = designed::simulated();
    record::compare("designed.txt", runs, |at| Arc::clone(&written[at]));
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn shipped_scenarios_write_the_bytes_on_record() {
    let whole = std::env::var_os(WHOLE).is_some();
    let runs = shipped::runs(!whole);
    let file = if whole { "shipped-whole.txt" } else { "shipped-cut.txt" };
    record::compare(file, &runs, |at| Arc::new(runs[at].written()));
}

/// What events.jsonl calls what happened.
const HAPPENS: [&str; 43] = [
    "AwaitingVolumeDetachment",
    "CallFailed",
    "CallThrottled",
    "CommandFailed",
    "CommandRejected",
    "CommandStarted",
    "CommandSucceeded",
    "DeleteUnregistered",
    "DesiredCapacitySet",
    "FailedToScaleUpGroup",
    "FaultBegan",
    "FaultEnded",
    "InstanceReclaimed",
    "InterruptionNotice",
    "JobFinished",
    "JobsCreated",
    "LaunchFailed",
    "ManifestApplied",
    "NodeDisrupted",
    "NodeDrifted",
    "NodeEmpty",
    "NodeNotRemovable",
    "NodeUnreachable",
    "NotTriggerScaleUp",
    "PodEvicted",
    "PodFailed",
    "PodNotPlaced",
    "PodSucceeded",
    "PodUnschedulable",
    "ProvisioningSucceeded",
    "RebalanceRecommended",
    "ReplicasSet",
    "Rescaled",
    "RolloutFinished",
    "RolloutStarted",
    "ScaleTargetActivated",
    "ScaleTargetDeactivated",
    "ScaledUpGroup",
    "ScalingActivityFailed",
    "SpotFallback",
    "TriggerFailed",
    "TriggerRecovered",
    "TriggeredScaleUp",
];

/// The kinds of events of a scenario and how many there are; printed, and held against what makes a scenario worth its time.
#[allow(clippy::print_stdout)] // what happens in each, for who changes the design
fn events_by_kind(run: &Run, written: &Written) -> BTreeMap<String, usize> {
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for line in String::from_utf8_lossy(&written["events.jsonl"]).lines() {
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        *kinds.entry(event["kind"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    let rows = |file: &str| written[file].iter().filter(|byte| **byte == b'\n').count() - 1;
    let count = |kind: &str| kinds.get(kind).copied().unwrap_or_default();
    let (events, pods, nodes) = (kinds.values().sum::<usize>(), rows("pods.csv"), rows("nodes.csv"));
    let (launched, evicted) = (count("InstanceLaunched"), count("PodEvicted"));
    println!(
        "{} {events} events {pods} pods {nodes} nodes {launched} launched {evicted} evicted; {}",
        run.name, run.about
    );
    assert!(events > 200, "{}: hardly anything happens", run.name);
    assert!((20..=1_000).contains(&pods), "{}: {pods} pods", run.name);
    assert!(launched > 3 || run.about.contains("fixed-groups"), "{}: hardly a node comes", run.name);
    assert!(count("PodDeleted") + evicted + count("PodFinished") > 0, "{}: no pod goes", run.name);
    kinds
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn designed_scenarios_cover_every_event_kind() {
    let (runs, written) = designed::simulated();
    assert_eq!(runs.len(), 60);
    for (part, scenarios) in designed::scenarios_by_part() {
        assert!(scenarios >= 3, "{part} is in {scenarios} scenarios");
    }
    let mut scenarios: BTreeMap<String, usize> = BTreeMap::new();
    for kind in runs.iter().zip(written).flat_map(|(run, written)| events_by_kind(run, written).into_keys()) {
        *scenarios.entry(kind).or_default() += 1;
    }
    let rare: Vec<&str> =
        HAPPENS.into_iter().filter(|kind| scenarios.get(*kind).is_none_or(|count| *count < 2)).collect();
    assert_eq!(rare, [""; 0], "each happens in at least two scenarios: {scenarios:?}");
}

#[test]
fn difference_shows_lines_around_first_mismatch() {
    let lines = |changed: Option<usize>| -> Vec<u8> {
        let text = |line: usize| format!("line {line}{}\n", if Some(line) == changed { " differs" } else { "" });
        (1..=1_234).map(text).collect::<String>().into_bytes()
    };
    let written = |bytes: Vec<u8>| BTreeMap::from([(FILES[0], bytes)]);
    let known = record::text_of("story", &written(lines(None)));
    let known = record::Record::parse(&known);
    assert_eq!(known.differences("story", &written(lines(None))), [""; 0]);
    let told = known.differences("story", &written(lines(Some(777))));
    assert_eq!(told, ["story: events.jsonl differs first in lines 761 to 780 (1234 lines on record, 1234 now)"]);
    let longer = [lines(None), b"one more\n".to_vec()].concat();
    let told = known.differences("story", &written(longer));
    assert_eq!(told, ["story: events.jsonl differs first in lines 1221 to 1240 (1234 lines on record, 1235 now)"]);
    assert_eq!(known.differences("other", &written(lines(None))), ["other: events.jsonl is not on record"]);
}
