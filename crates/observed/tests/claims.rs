//! What is read of a day of a cluster, from each source alone and from all together.

#![allow(clippy::unwrap_used)] // a test that cannot set itself up has failed wherever that happens

use std::collections::BTreeMap;
use std::path::PathBuf;

use nodecast_observed::claims::{End, History, Instant, Life, Milestone, Sources, Window, read};
use nodecast_observed::estimate::{Duration, Exposed, LogNormal, Slope, rate, slope_through_zero};

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn day() -> Window {
    let at = |text| Instant::parse(text).unwrap();
    Window { from: at("2026-10-13T00:00:00Z"), until: at("2026-10-14T00:00:00Z") }
}

fn history(names: &[&str]) -> History {
    read(&Sources { paths: names.iter().map(|name| path(name)).collect(), window: Some(day()) }).unwrap()
}

const LOG: &str = "karpenter/controller-v1.13.jsonl";
const WATCH: &str = "karpenter/nodeclaims-watch.jsonl";

fn mean(history: &History, to: Milestone) -> (usize, f64) {
    let spans = history.lives.iter().flatten().filter(|life| !life.truncated);
    let spans: Vec<f64> = spans.filter_map(|life| life.seconds(Milestone::Created, to)).collect();
    (spans.len(), spans.iter().sum::<f64>() / spans.len() as f64)
}

fn close(actual: f64, expected: f64, within: f64) {
    assert!((actual - expected).abs() <= within, "{actual} for {expected}");
}

#[test]
fn the_log_tells_the_stages_to_the_millisecond() {
    let history = history(&[LOG]);
    for (milestone, seconds) in
        // The line is written some tenths of a second after the condition that it tells of.
        [(Milestone::Launched, 1.30), (Milestone::Registered, 47.41), (Milestone::Initialized, 61.00)]
    {
        let (n, mean) = mean(&history, milestone);
        assert_eq!(n, 22);
        close(mean, seconds, 0.005);
    }
    assert_eq!(history.sources[0].left, 0, "{:?}", history.sources);
}

#[test]
fn the_watch_tells_the_boots_in_whole_seconds() {
    let history = history(&[WATCH]);
    for (milestone, seconds) in
        [(Milestone::Launched, 1.32), (Milestone::Registered, 47.09), (Milestone::Initialized, 60.86)]
    {
        close(mean(&history, milestone).1, seconds, 0.005);
    }
    let boots = history.lives.iter().flatten().filter(|life| !life.truncated);
    let boots: Vec<f64> = boots.filter_map(|life| life.seconds(Milestone::Launched, Milestone::Initialized)).collect();
    assert_eq!(boots.len(), 22);
    close(boots.iter().sum::<f64>() / 22.0, 59.5, 0.05);
    close(nodecast_observed::estimate::median(&boots).unwrap().value, 57.5, 0.01);
    let fitted = LogNormal::fit(&boots.into_iter().map(Duration::whole).collect::<Vec<_>>()).unwrap();
    close(fitted.spread, 0.19, 0.005);
    // One claim was there when the watch began: it is truncated, and no boot of it was seen.
    let truncated: Vec<&Life> = history.lives.iter().flatten().filter(|life| life.truncated).collect();
    assert_eq!(truncated.iter().map(|life| life.name.as_str()).collect::<Vec<_>>(), ["default-xl47d"]);
}

fn ends(history: &History) -> BTreeMap<End, usize> {
    let mut ends = BTreeMap::new();
    for end in history.lives.iter().flatten().filter_map(|life| life.end.clone()) {
        *ends.entry(end).or_insert(0) += 1;
    }
    ends
}

#[test]
fn the_log_tells_why_claims_ended() {
    let wanted = BTreeMap::from([(End::Underutilized, 20), (End::Empty, 1), (End::Interrupted, 1)]);
    assert_eq!(ends(&history(&[LOG])), wanted);
}

fn exposure(history: &History) -> Exposed {
    let mut exposed = Exposed::default();
    for life in history.lives.iter().flatten().filter(|life| life.is_spot()) {
        let Some(launched) = life.at(Milestone::Launched) else { continue };
        let until = life.ended().unwrap_or(life.window.until);
        exposed.hours += until.seconds_since(launched.max(life.window.from)) / 3_600.0;
        exposed.events += usize::from(life.end == Some(End::Interrupted));
    }
    exposed
}

#[test]
fn spot_exposure_is_43_hours_with_one_reclaim() {
    let exposed = exposure(&history(&[WATCH, "events/eventbridge.jsonl"]));
    close(exposed.hours, 43.0, 0.05);
    assert_eq!(exposed.events, 1);
    close(rate(exposed).unwrap().per_hour.value, 0.023, 0.000_5);
    // CloudTrail and the events of the cluster say the same of the same claim.
    for source in ["events/cloudtrail-bidevicted.json", "events/events-1300-1400.json", LOG] {
        let taken = history(&[WATCH, source]);
        let taken: Vec<&str> = taken
            .lives
            .iter()
            .flatten()
            .filter(|life| life.end == Some(End::Interrupted))
            .map(|life| &*life.name)
            .collect();
        assert_eq!(taken, ["default-sw7kg"], "{source}");
    }
}

#[test]
fn combined_sources_give_one_consistent_history() {
    let history = history(&["karpenter/nodeclaims-1331.yaml", WATCH, LOG, "events"]);
    assert_eq!(history.lives.iter().flatten().count(), 23);
    assert_eq!(history.disagreements, []);
    assert!(history.sources.iter().all(|source| source.left == 0), "{:?}", history.sources);
    // The log is finer than the watch, so its instants are used.
    let (_, mean) = mean(&history, Milestone::Registered);
    close(mean, 47.41, 0.005);
    let ends = ends(&history);
    assert_eq!((ends[&End::Underutilized], ends[&End::Empty], ends[&End::Interrupted]), (20, 1, 1));
}

#[test]
fn a_dump_shows_survivors_one_of_them_starting() {
    let history = history(&["karpenter/nodeclaims-1331.yaml"]);
    assert_eq!(history.lives.iter().flatten().count(), 4);
    let starting = history.lives.iter().flatten().filter(|life| life.at(Milestone::Initialized).is_none());
    assert_eq!(starting.count(), 1);
    assert_eq!(history.lives.iter().flatten().filter(|life| life.ended().is_some()).count(), 1);
}

#[test]
fn a_release_before_v1_logs_the_same_life() {
    let old = history(&["karpenter/controller-v0.33.jsonl"]);
    let new = history(&[LOG]);
    let of =
        |history: &History| history.lives.iter().flatten().find(|life| life.name == "default-wxwdh").cloned().unwrap();
    let (old, new) = (of(&old), of(&new));
    assert_eq!(old.milestones, new.milestones);
    assert_eq!((&old.instance_type, &old.pool, &old.end), (&new.instance_type, &new.pool, &new.end));
}

#[test]
fn image_pulls_are_read_without_cached_images() {
    let history = history(&["events/events-1300-1400.json"]);
    assert_eq!(history.pulls.len(), 4);
    assert!(history.pulls.iter().all(|pull| pull.node.is_some() && pull.bytes.is_some_and(|bytes| bytes > 2e8)));
    let points: Vec<(f64, f64)> = history.pulls.iter().filter_map(|pull| Some((pull.bytes?, pull.seconds))).collect();
    let Slope { slope, .. } = slope_through_zero(&points).unwrap();
    assert!(slope.value > 0.0 && slope.n == 4);
}

#[test]
fn events_that_two_dumps_hold_count_once() {
    let once = history(&["events/events-1300-1400.json"]);
    let twice = history(&["events/events-1300-1400.json", "events/events-1300-1400.json"]);
    assert!(!once.pulls.is_empty());
    assert_eq!(once.pulls, twice.pulls);
}

#[test]
fn logs_show_node_end_reasons_unlike_node_claims() {
    assert!(!history(&[WATCH]).ends_told);
    assert!(history(&[LOG]).ends_told && history(&["events/events-1300-1400.json"]).ends_told);
    // A log tells of all the time that is stated, events of the hour for which they are kept.
    let hours = |names: &[&str]| -> Vec<f64> {
        let history = history(names);
        let life = history.lives.iter().flatten().find(|life| life.capacity_type.is_some()).unwrap();
        life.ends.iter().map(|end| end.until.seconds_since(end.from) / 3_600.0).collect()
    };
    assert_eq!(hours(&[WATCH]), Vec::<f64>::new());
    let events = hours(&[WATCH, "events/events-1300-1400.json"]);
    assert!(events.len() == 1 && (0.5..=1.0).contains(&events[0]), "{events:?}");
    assert!(hours(&[WATCH, LOG])[0] > 5.0);
}

#[test]
fn impossible_times_are_ignored_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("claims.json");
    let claim = |name: &str, conditions: &[(&str, &str)]| {
        let conditions: Vec<String> = conditions
            .iter()
            .map(|(kind, at)| format!(r#"{{"type":"{kind}","status":"True","lastTransitionTime":"{at}"}}"#))
            .collect();
        format!(
            r#"{{"apiVersion":"karpenter.sh/v1","kind":"NodeClaim","metadata":{{"name":"{name}","creationTimestamp":"2026-10-13T05:00:00Z"}},"status":{{"conditions":[{}]}}}}"#,
            conditions.join(",")
        )
    };
    let early = claim("early", &[("Launched", "2026-10-13T05:00:02Z"), ("Registered", "1970-01-01T00:00:00Z")]);
    let well = claim("well", &[("Launched", "2026-10-13T05:00:02Z"), ("Registered", "2026-10-13T05:00:40Z")]);
    std::fs::write(&file, format!(r#"{{"apiVersion":"v1","kind":"List","items":[{early},{well}]}}"#)).unwrap();
    let history = read(&Sources { paths: vec![file], window: Some(day()) }).unwrap();
    let registered: Vec<bool> =
        history.lives.iter().flatten().map(|life| life.at(Milestone::Registered).is_some()).collect();
    assert_eq!(registered, [false, true]);
    let notes = &history.sources[0].notes;
    assert!(notes.iter().any(|note| note == "early came to registered before it was made: left out"), "{notes:?}");
}

#[test]
fn sources_that_disagree_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let log = std::fs::read_to_string(path("karpenter/controller-v0.33.jsonl")).unwrap();
    let late = folder.path().join("late.jsonl");
    std::fs::write(&late, log.replace("02:31:36.544Z", "02:31:46.544Z")).unwrap();
    let sources = Sources { paths: vec![path(WATCH), late], window: Some(day()) };
    let history = read(&sources).unwrap();
    let told: Vec<(&str, Milestone)> =
        history.disagreements.iter().map(|one| (one.claim.as_str(), one.milestone)).collect();
    assert_eq!(told, [("default-wxwdh", Milestone::Initialized)]);
}

#[test]
fn unmatched_log_lines_are_counted_and_truncated_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let log = std::fs::read_to_string(path("karpenter/controller-v0.33.jsonl")).unwrap();
    let file = folder.path().join("controller.log");
    let strange = "{\"level\":\"INFO\",\"time\":\"2026-10-13T02:30:32Z\",\"message\":\"hello\"}\nno JSON\n";
    std::fs::write(&file, format!("{log}{strange}{{\"level\":\"INFO\",\"ti")).unwrap();
    let history = read(&Sources { paths: vec![file], window: None }).unwrap();
    let source = &history.sources[0];
    assert_eq!((source.taken, source.left, source.first_left.as_deref()), (6, 2, Some("hello")));
    assert_eq!(source.notes.len(), 1);
}

#[test]
fn observation_without_nodes_still_reports_pods() {
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    put("observation.json", r#"{"window": {"start": "2026-10-13T00:00:00Z", "seconds": 600}}"#);
    put("pods.csv", "pod,workload,created_seconds,scheduled_seconds,started_seconds\nweb-1,shop/web,10,12,20\n");
    let history = read(&Sources { paths: vec![folder.path().to_owned()], window: None }).unwrap();
    let started = Instant::parse("2026-10-13T00:00:20Z");
    assert_eq!(
        (history.lives.is_none(), history.pods.iter().flatten().map(|pod| pod.started).collect::<Vec<_>>()),
        (true, vec![started])
    );
    assert!(history.sampled);
}

/// The history of an observation with these tables.
fn of_tables(tables: &[(&str, &str)]) -> History {
    let folder = tempfile::tempdir().unwrap();
    let about = ("observation.json", r#"{"window": {"start": "2026-11-03T00:00:00Z", "seconds": 1800}}"#);
    for (name, text) in tables.iter().chain([&about]) {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let mut history = read(&Sources { paths: vec![folder.path().to_owned()], window: None }).unwrap();
    // The name of the folder differs each time.
    history.sources.clear();
    history
}

#[test]
fn absent_table_differs_from_empty_one() {
    let history = of_tables(&[]);
    assert_eq!(history.not_recorded(), ["nodes", "pods", "capacity errors", "CPU and requests"]);
    assert_eq!((history.stages.clone(), history.reclaims), (None, None));
    let headers = [
        ("nodes.csv", "node,origin\n"),
        ("pods.csv", "pod,workload\n"),
        ("workloads.csv", "at_seconds,workload\n"),
        ("stages.csv", "stage,launches\n"),
        ("events.jsonl", ""),
    ];
    let history = of_tables(&headers);
    assert!(history.not_recorded().is_empty(), "{history:?}");
    assert_eq!((history.pods, history.stages, history.shortages), (Some(vec![]), Some(vec![]), Some(vec![])));
    for absent in 0..headers.len() {
        let mut others = headers.to_vec();
        others.remove(absent);
        assert_ne!(of_tables(&others), of_tables(&headers), "without {}", headers[absent].0);
    }
}

#[test]
fn nodes_without_end_column_tell_no_reasons() {
    let place = tempfile::tempdir().unwrap();
    let about = r#"{"about": {"start": "2026-11-03T00:00:00Z", "duration_seconds": 7200}}"#;
    std::fs::write(place.path().join("summary.json"), about).unwrap();
    std::fs::write(place.path().join("nodes.csv"), "node,capacity_type,launched_seconds\na,spot,60\n").unwrap();
    let history = read(&Sources { paths: vec![place.path().to_owned()], window: None }).unwrap();
    assert!(!history.ends_told && history.lives.iter().flatten().all(|life| life.ends.is_empty()), "{history:?}");
}

#[test]
fn multiple_runs_report_all_node_ends() {
    let place = tempfile::tempdir().unwrap();
    let runs = ["one", "two"].map(|name| place.path().join(name));
    for run in &runs {
        std::fs::create_dir(run).unwrap();
        let about = r#"{"about": {"start": "2026-10-13T00:00:00Z", "duration_seconds": 86400}}"#;
        std::fs::write(run.join("summary.json"), about).unwrap();
        let nodes = "node,origin,instance_type,zone,capacity_type,launched_seconds,terminated_seconds,end\n\
                     a,default,m5.large,us-east-1a,spot,10,3610,interrupted\n";
        std::fs::write(run.join("nodes.csv"), nodes).unwrap();
    }
    let history = read(&Sources { paths: runs.to_vec(), window: None }).unwrap();
    assert_eq!((history.lives.iter().flatten().count(), history.ends_told), (2, true));
    assert!(history.lives.iter().flatten().all(|life| life.ends == [day()] && life.end == Some(End::Interrupted)));
}

#[test]
fn unusable_input_gives_clear_error() {
    let folder = tempfile::tempdir().unwrap();
    let watch = std::fs::read_to_string(path(WATCH)).unwrap();
    let list = std::fs::read_to_string(path("events/events-1300-1400.json")).unwrap();
    let cases: [(&str, &str); 7] = [
        ("empty.json", " \n"),
        ("truncated.json", &list[..2_000]),
        ("broken.jsonl", &watch.replacen("MODIFIED\",", "MODIFIED\";", 1)),
        ("foreign.json", "{\"status\":\"success\",\"data\":{}}\n"),
        ("foreign.yaml", "replicas: 3\nimage: web\n"),
        ("broken.yaml", "apiVersion: v1\nkind: [List\n"),
        ("words.txt", "nothing of the kind\n"),
    ];
    let mut told = String::new();
    for (name, text) in cases {
        let file = folder.path().join(name);
        std::fs::write(&file, text).unwrap();
        let error = read(&Sources { paths: vec![file], window: None }).unwrap_err();
        let place = error.place().map_or_else(|| "-".to_owned(), |place| format!("{}:{}", place.line, place.column));
        let words = [error.message(), error.reason().unwrap_or("-"), error.way_out().unwrap_or("-")].join("\n  ");
        told += &format!("{name} at {place}\n  {words}\n");
    }
    for (name, wanted) in [("no-such.json", "missing"), ("", "an empty folder")] {
        let error = read(&Sources { paths: vec![folder.path().join(name).join("none")], window: None }).unwrap_err();
        told += &format!("{wanted}\n  {}\n", error.message());
    }
    let told = told.replace(&folder.path().display().to_string(), "DIR");
    insta::assert_snapshot!("inputs_that_cannot_be_used", told);
}
