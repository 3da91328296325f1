//! `run --index`: a list of the runs whose reports are in a directory.

use std::fs;
use std::path::Path;
use std::thread;

use nodecast::report::{self, Summary, report_index};

use crate::cli::Place;
use crate::synthetic;

fn report_in(directory: &Path) {
    let outcome = synthetic::outcome();
    report::write(&outcome, &Summary::from_outcome(&outcome), "nodecast run scenario.yaml", None, directory).unwrap();
}

#[test]
fn index_lists_every_run_below_directory() {
    let place = Place::new();
    place.nodecast(&["run", "scenario.yaml", "--out", "reports/older"]);
    fs::create_dir_all(place.path("reports/comparison")).unwrap();
    report_in(&place.path("reports/comparison/karpenter"));
    fs::create_dir_all(place.path("reports/other")).unwrap();
    fs::write(place.path("reports/other/summary.json"), "{}").unwrap();
    let (_, err, code) = place.nodecast(&["run", "scenario.yaml", "--index"]);
    assert_eq!((err.lines().last(), code), (Some("index: reports/index.html"), Some(0)), "{err}");
    let index = fs::read_to_string(place.path("reports/index.html")).unwrap();
    let links: Vec<&str> = index.split("<a href=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert_eq!(links, ["comparison/karpenter/report.html", "older/report.html", "two-pods/report.html"]);
    assert!(index.contains("<td class=\"missed\">"), "{index}");
    place.nodecast(&["run", "scenario.yaml", "--index"]);
    assert_eq!(index, fs::read_to_string(place.path("reports/index.html")).unwrap());
}

#[test]
fn foreign_index_stops_run_and_stays() {
    let place = Place::new();
    fs::create_dir_all(place.path("reports")).unwrap();
    fs::write(place.path("reports/index.html"), "<p>mine</p>").unwrap();
    let (out, err, code) = place.nodecast(&["run", "scenario.yaml", "--index"]);
    assert_eq!((out.as_str(), code), ("", Some(2)), "{err}");
    assert!(err.contains("nodecast did not write it"), "{err}");
    assert_eq!(fs::read_to_string(place.path("reports/index.html")).unwrap(), "<p>mine</p>");
    assert!(!place.path("reports/two-pods").exists());
}

#[test]
fn run_without_option_writes_no_index() {
    let place = Place::new();
    place.nodecast(&["run", "scenario.yaml"]);
    assert!(!place.path("reports/index.html").exists());
}

#[test]
fn hostile_names_are_escaped_in_index() {
    let place = tempfile::tempdir().unwrap();
    let mut outcome = synthetic::outcome();
    outcome.about.scenario = "<script>alert(1)</script>".to_owned();
    let directory = place.path().join("a\"><b> #1");
    report::write(&outcome, &Summary::from_outcome(&outcome), "", None, &directory).unwrap();
    report_index::write(place.path()).unwrap();
    let index = fs::read_to_string(place.path().join("index.html")).unwrap();
    assert!(!index.contains("<script>") && !index.contains("<b>"), "{index}");
    assert!(index.contains("href=\"a%22%3E%3Cb%3E%20%231/report.html\""), "{index}");
}

#[test]
fn parallel_runs_leave_complete_index() {
    let place = tempfile::tempdir().unwrap();
    thread::scope(|scope| {
        for number in 0..8 {
            let parent = place.path();
            scope.spawn(move || {
                report_in(&parent.join(format!("run-{number}")));
                report_index::write(parent).unwrap();
            });
        }
    });
    let index = fs::read_to_string(place.path().join("index.html")).unwrap();
    assert_eq!(index.matches("/report.html\"").count(), 8, "{index}");
    assert!(report_index::check(place.path()).is_ok());
}
