//! `nodecast run --check`: the same answer to the byte, or an error that says what differs.

use std::path::Path;

use nodecast::catalog::Catalog;
use nodecast::domain::Check;
use nodecast::scenario::{Edit, Limits, Scenario};
use nodecast::simulation::{CheckedError, run, run_checked};

use crate::cli::{Place, nodecast};

fn scenario(name: &str, duration: &str) -> Scenario {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios").join(name).join("scenario.yaml");
    let edits = [Edit::new("duration", duration).unwrap()];
    nodecast::scenario::load_edited(&path, Catalog::embedded().unwrap(), &Limits::default(), &edits).unwrap().0
}

#[test]
fn checked_run_has_same_events_and_bill() {
    for (name, duration) in [("churn/four-minutes", "40m"), ("karpenter-vs-cas", "3h"), ("keda-istio", "20m")] {
        let (scenario, catalog) = (scenario(name, duration), Catalog::embedded().unwrap());
        for policy in &scenario.policies {
            let usual = run(&scenario, policy, catalog, 7, &mut |_| {}).unwrap();
            let checked = run_checked(&scenario, policy, catalog, 7, &mut |_| {}).unwrap();
            assert!(usual.record.events.len() > 50, "{name}: hardly anything happens");
            assert_eq!(usual.event_hash, checked.event_hash, "{name}/{}", policy.name);
            assert_eq!(format!("{:?}", usual.record), format!("{:?}", checked.record), "{name}/{}", policy.name);
            assert_eq!(format!("{:?}", usual.bill), format!("{:?}", checked.bill), "{name}/{}", policy.name);
        }
    }
}

#[test]
fn checked_run_writes_same_report() {
    let place = Place::new();
    let report = |flags: &[&str]| {
        let out = place.path("report");
        let _ = std::fs::remove_dir_all(&out);
        let (_, talk, code) = place.nodecast(&[&["run", "scenario.yaml", "--out", "report"], flags].concat());
        assert_eq!(code, Some(0), "{talk}");
        let mut files: Vec<_> = std::fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files.into_iter().map(|path| (path.clone(), std::fs::read(path).unwrap())).collect::<Vec<_>>()
    };
    let usual = report(&[]);
    assert!(usual.len() > 8, "{} files", usual.len());
    assert!(usual == report(&["--check"]), "a report differs");
}

#[test]
fn disagreement_ends_run_with_time_and_cause() {
    let (scenario, catalog) = (scenario("churn/four-minutes", "40m"), Catalog::embedded().unwrap());
    let policy = &scenario.policies[0];
    let mut looks = 0;
    let caught = run_checked(&scenario, policy, catalog, 7, &mut |_| {
        looks += 1;
        Check::Always.hold(looks < 3, || "what is kept differs".to_owned());
    });
    let error = caught.unwrap_err();
    assert!(matches!(error, CheckedError::Disagreement { .. }));
    let told = error.to_string();
    assert!(
        told.starts_with("the check failed ") && told.ends_with(" after the start: what is kept differs"),
        "{told}"
    );
    assert!(!told.contains("failed 0s"), "{told}");
}

#[test]
fn bad_input_is_told_as_without_the_check() {
    let (_, talk, code) = nodecast(&["run", "no-such.yaml", "--check"]);
    assert_eq!(code, Some(2), "{talk}");
}
