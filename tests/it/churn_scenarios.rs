//! The three scenarios on churn show what their README says, and `explain` says why.

use std::path::PathBuf;

use nodecast::catalog::Catalog;
use nodecast::domain::SimTime;
use nodecast::explain::presentation::text;
use nodecast::explain::{Explanation, Subject, explain};
use nodecast::report::Summary;
use nodecast::report::summary::CycleFigures;
use nodecast::scenario::{Edit, Limits, Scenario};
use nodecast::simulation;

use crate::outputs;

/// A scenario, cut to what a test needs of it.
fn scenario(name: &str, edits: &[&str]) -> Scenario {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("scenarios/churn").join(name).join("scenario.yaml");
    let edits: Vec<Edit> = edits.iter().map(|edit| Edit::parse(edit).expect("an edit")).collect();
    nodecast::scenario::load_edited(&path, Catalog::embedded().unwrap(), &Limits::default(), &edits).unwrap().0
}

fn summary(scenario: &Scenario, policy: &str) -> Summary {
    let policy = scenario.for_policy(Some(policy)).unwrap();
    let catalog = Catalog::embedded().unwrap();
    let outcome = simulation::run(scenario, policy, catalog, scenario.seed, &mut |_| {}).unwrap();
    Summary::from_outcome(&outcome)
}

fn answer(scenario: &Scenario, subject: &Subject) -> Result<Explanation, String> {
    let policy = scenario.for_policy(None).unwrap();
    explain(scenario, policy, Catalog::embedded().unwrap(), scenario.seed, subject).map_err(|error| {
        let help = miette::Diagnostic::help(&error).map_or_else(String::new, |help| help.to_string());
        format!("{error}; {help}")
    })
}

fn the_cycle<'s>(summary: &'s Summary, kind: &str) -> &'s CycleFigures {
    let found = summary.churn.cycles.iter().find(|cycle| cycle.kind == kind);
    found.unwrap_or_else(|| panic!("no cycle: {:?}", summary.churn))
}

#[test]
fn four_minutes_pods_cycle_and_explain_shows_cause() {
    let scenario = scenario("four-minutes", &["duration=28m"]);
    let found = summary(&scenario, "today");
    outputs::all_documented(&found);
    let cycle = the_cycle(&found, "pods moved");
    assert!((210.0..280.0).contains(&cycle.period_seconds) && cycle.rounds >= 4, "{cycle:?}");
    assert_eq!(cycle.workloads, ["shop/basket", "shop/catalog", "shop/login", "shop/search", "shop/worker"]);
    let replaced = &found.churn.replacements[0];
    assert_eq!((replaced.reason.as_str(), replaced.replaced), ("underutilized", replaced.by_equal), "{replaced:?}");
    assert!(replaced.by_equal >= 4 && found.churn.evictions_per_day.unwrap() > 1_000.0, "{:?}", found.churn);

    let decision = found.churn.decisions.iter().find(|decision| decision.outcome == "succeeded").expect("a decision");
    let answer = answer(&scenario, &Subject::Decision { id: decision.id.clone() }).unwrap();
    let why = answer.decision.as_ref().unwrap();
    let removal = why.removal.as_ref().unwrap();
    assert_eq!((removal.verdict, removal.pods.len()), ("delete", 5), "{why:?}");
    // Each pod has a place on a node that is there; kube-scheduler takes the small ones first and leaves the worker without.
    let worker = removal.pods.iter().find(|pod| pod.workload == "shop/worker").unwrap();
    assert!(worker.node.is_some() && worker.went_to.is_some() && worker.node != worker.went_to, "{worker:?}");
    let text = text(&answer);
    assert!(text.contains("kube-scheduler chose") && text.contains("landed elsewhere"), "{text}");
}

#[test]
fn four_minutes_cycle_stops_with_large_first() {
    let found = summary(&scenario("four-minutes", &["duration=28m"]), "large-first");
    assert!(found.churn.cycles.is_empty(), "{:?}", found.churn.cycles);
}

#[test]
fn explain_shows_node_blockers_and_pod_destination() {
    let scenario = scenario("four-minutes", &["duration=11m", "timeline=[{at: 5m, manifests: [database.yaml]}]"]);
    let node = |name: &str, minutes: i64| {
        answer(&scenario, &Subject::Node { name: name.to_owned(), at: SimTime::from_micros(minutes * 60_000_000) })
    };
    let found = node("default-00001", 2).unwrap();
    let this_node = found.node.as_ref().unwrap();
    let consolidation = this_node.methods.iter().find(|method| method.method == "consolidation").unwrap();
    assert!(consolidation.reasons.iter().any(|why| why.contains("consolidateAfter")), "{consolidation:?}");
    // Nobody else is there: its pods would need another node, which is no cheaper.
    let removal = this_node.removal.as_ref().unwrap();
    assert_eq!((removal.verdict, removal.launches.len()), ("nothing", 1), "{removal:?}");
    assert!(removal.because.as_ref().unwrap().contains("cheaper"), "{removal:?}");
    assert!(removal.pods.iter().all(|pod| pod.to == "new node"), "{removal:?}");
    let pod = answer(&scenario, &Subject::Pod { name: "shop/worker-00000".to_owned(), at: None }).unwrap();
    let this_pod = pod.pod.as_ref().unwrap();
    assert_eq!(this_pod.node.as_deref(), Some("default-00001"));
    let taken = this_pod.kube_scheduler.iter().find(|verdict| verdict.node == "default-00001").unwrap();
    assert!(taken.total.is_some(), "{this_pod:?}");
    assert!(text(&pod).contains("kube-scheduler result per node"), "{}", text(&pod));

    let wrong = node("default-0001", 2).unwrap_err();
    assert!(wrong.contains("no node `default-0001`") && wrong.contains("did you mean `default-00001`?"), "{wrong}");
    assert!(node("default-00001", 12).unwrap_err().contains("the run ends 11m after start"));
    assert!(node("default-00002", 2).unwrap_err().contains("is not there"));
    let none = answer(&scenario, &Subject::Decision { id: "d99".to_owned() }).unwrap_err();
    assert!(none.contains("no decision `d99`"), "{none}");
    let nobody = answer(&scenario, &Subject::Pod { name: "shop/warker-00000".to_owned(), at: None }).unwrap_err();
    assert!(nobody.contains("did you mean `worker-00000`?"), "{nobody}");
}

#[test]
fn no_capacity_replacement_fails_without_moving_pods() {
    let scenario = scenario("no-capacity", &["duration=40m", "faults[0].for=39m"]);
    let found = summary(&scenario, "today");
    let cycle = the_cycle(&found, "replacement failed");
    assert!(cycle.rounds >= 4 && cycle.because.contains("a replacement is gone"), "{cycle:?}");
    assert_eq!((cycle.workloads[0].as_str(), cycle.instance_types[0].as_str()), ("games/multiplayer", "r6g.8xlarge"));
    assert_eq!((found.churn.evictions, found.churn.cycles.len()), (0, 1), "{:?}", found.churn);
    assert!(found.nodes.failed_launches >= 4);
    let answer = answer(&scenario, &Subject::Decision { id: "d1".to_owned() }).unwrap();
    let text = text(&answer);
    for part in ["replace", "x2gd.4xlarge", "never initialized; launch failed", "failed: a replacement is gone"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn equal_types_replacements_evict_thousands_of_pods() {
    let found = summary(&scenario("equal-types", &["duration=30m"]), "today");
    let replacement =
        found.churn.replacements.iter().find(|replacement| replacement.reason == "underutilized").unwrap();
    assert!(replacement.by_equal >= 5 && replacement.by_equal == replacement.replaced, "{replacement:?}");
    assert!(found.churn.evictions_per_day.unwrap() > 1_000.0, "{:?}", found.churn.evictions_per_day);
}
