//! What `nodecast explain` says under the Cluster Autoscaler: which groups it weighed and by what, why their nodes do not take a
//! pod, why a node stays.

use nodecast::catalog::Catalog;
use nodecast::domain::SimDuration;
use nodecast::explain::presentation::text;
use nodecast::explain::{ExplainError, Explanation, Subject, explain};
use nodecast::scenario::Scenario;
use nodecast::scenario::error::Render;
use nodecast::simulation::{self, Outcome};
use nodecast::world::record::EventKind;

use crate::cluster_autoscaler_runs::{scaled, scenario};
use crate::node_groups::{minutes, web};

/// One group of the size that fits, one of larger nodes, one that the pods do not tolerate, one that may not grow.
const GROUPS: &str = "{ name: full, instanceType: m5.large, min: 0, desired: 0, max: 0 }, \
    { name: large, instanceType: m5.xlarge, min: 0, desired: 0, max: 3 }, \
    { name: tainted, instanceType: m5.4xlarge, min: 0, desired: 0, max: 3, taints: [{ key: team, value: a, effect: NoSchedule }] }, \
    { name: workers, instanceType: m5.large, min: 1, desired: 1, max: 6 }";

/// A pod that no group's nodes take.
const HUGE: &str = "---\napiVersion: v1\nkind: Pod\nmetadata: {name: huge}\nspec:\n  \
    containers: [{name: app, image: app, resources: {requests: {cpu: 8}}}]\n";

struct Place {
    scenario: Scenario,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        // All pods come at once, so that one iteration weighs the groups for all of them.
        let text = scenario(GROUPS, "", &scaled(&[(5, 8), (20, 2)])) + "controller_time: none\n";
        std::fs::write(directory.path().join("scenario.yaml"), text).unwrap();
        std::fs::write(directory.path().join("manifests.yaml"), format!("{}{HUGE}", web(2))).unwrap();
        let loaded = nodecast::scenario::load(&directory.path().join("scenario.yaml"));
        Self { scenario: loaded.unwrap_or_else(|error| panic!("{}", error.render())).0 }
    }

    fn outcome(&self) -> Outcome {
        let policy = self.scenario.for_policy(None).unwrap();
        simulation::run(&self.scenario, policy, Catalog::embedded().unwrap(), self.scenario.seed, &mut |_| {}).unwrap()
    }

    fn ask(&self, subject: &Subject) -> Result<Explanation, ExplainError> {
        let policy = self.scenario.for_policy(None).unwrap();
        explain(&self.scenario, policy, Catalog::embedded().unwrap(), self.scenario.seed, subject)
    }
}

/// The lines about groups: they begin with the name and the size of one.
fn about_groups(answer: &Explanation) -> String {
    let names = ["    full (", "    large (", "    tainted (", "    workers ("];
    let shown = text(answer);
    let lines: Vec<&str> = shown.lines().filter(|line| names.iter().any(|name| line.starts_with(name))).collect();
    lines.join("\n")
}

#[test]
fn explain_shows_why_no_group_grows() {
    let place = Place::new();
    let answer = place.ask(&Subject::Pod { name: "huge".to_owned(), at: Some(minutes(3)) }).unwrap();
    insta::assert_snapshot!("explain_groups_of_a_pod_that_waits", about_groups(&answer));
    let pod = answer.pod.unwrap();
    let weighed = pod.cluster_autoscaler.unwrap();
    assert_eq!((pod.node, pod.grown_by, weighed.result), (None, None, "NoOptionsAvailable"));
    assert!(weighed.groups.iter().all(|group| group.option.is_none() && group.grows_to.is_none()));
    let of = |name: &str| weighed.groups.iter().find(|group| group.group == name).unwrap();
    assert_eq!(of("full").skipped.as_deref(), Some("max node group size reached"));
    assert_eq!(of("workers").reasons, ["Insufficient cpu"]);
    assert!(of("tainted").reasons[0].contains("untolerated taint"), "{:?}", of("tainted").reasons);
}

#[test]
fn explain_shows_expander_choice_for_pod() {
    let place = Place::new();
    let outcome = place.outcome();
    let triggered = outcome.record.events.iter().find(|event| event.kind == EventKind::TriggeredScaleUp).unwrap();
    let name = outcome.record.pods.facts(triggered.pod.unwrap()).name;
    let answer = place.ask(&Subject::Pod { name, at: None }).unwrap();
    insta::assert_snapshot!("explain_groups_of_a_pod_that_got_a_node", about_groups(&answer));
    let pod = answer.pod.unwrap();
    assert_eq!((pod.grown_by.as_deref(), pod.grown_at_seconds), (Some("up1"), Some(triggered.at.as_secs_f64())));
    let weighed = pod.cluster_autoscaler.unwrap();
    let options: Vec<&str> =
        weighed.groups.iter().filter(|group| group.option.is_some()).map(|group| &*group.group).collect();
    assert_eq!(options, ["large", "workers"]);
    for group in &weighed.groups {
        let Some(option) = &group.option else { continue };
        let [round] = option.rounds.as_slice() else { panic!("{:?}", option.rounds) };
        assert_eq!((&*round.expander, option.helps), ("least-waste", true));
        assert!(round.figure.is_some_and(|waste| (0.0..2.0).contains(&waste)), "{round:?}");
        assert_eq!(round.left, group.grows_to.is_some(), "one of them is left, and grows");
    }
    let soon = triggered.at + SimDuration::from_secs(15);
    let coming = place.ask(&Subject::Pod { name: pod.name, at: Some(soon) }).unwrap();
    assert!(
        text(&coming).contains("the Cluster Autoscaler: it has room on a node that is on its way\n"),
        "{}",
        text(&coming)
    );
    let decision = place.ask(&Subject::Decision { id: "up1".to_owned() }).unwrap();
    assert!((decision.at_seconds - triggered.at.as_secs_f64()).abs() < 1e-6);
    let decision = decision.decision.unwrap();
    assert_eq!((&*decision.reason, &*decision.outcome), ("ScaleUp", "succeeded"));
    let grown = |groups: &[nodecast::explain::GroupFigures]| -> Vec<(String, i64)> {
        groups.iter().filter_map(|group| Some((group.group.clone(), group.grows_to?))).collect()
    };
    assert_eq!(grown(&decision.scale_up.unwrap().groups), grown(&weighed.groups));
    let message = decision.events[0].message.clone();
    let [(group, to)] = grown(&weighed.groups).try_into().unwrap();
    assert!(message.contains(&format!("{{{group} ")) && message.contains(&format!("->{to} ")), "{message}");
}

#[test]
fn explain_shows_why_node_stays_or_goes() {
    let place = Place::new();
    let outcome = place.outcome();
    let tainted = outcome.record.events.iter().find(|event| event.kind == EventKind::NodeTainted).unwrap();
    let gone = &outcome.record.nodes[tainted.node.unwrap().index()];
    let ask = |minute: i64| {
        let answer = place.ask(&Subject::Node { name: gone.name.clone(), at: minutes(minute) }).unwrap();
        let shown = text(&answer);
        (answer.node.unwrap().cluster_autoscaler.unwrap(), shown)
    };
    let (busy, shown) = ask(15);
    assert!(busy.utilization > busy.threshold && busy.unneeded_since_seconds.is_none(), "{shown}");
    assert_eq!(busy.reason, Some("NotUnderutilized"));
    assert!(shown.contains("above the threshold of 50%") && shown.contains("stays: NotUnderutilized"), "{shown}");
    let (idle, shown) = ask(25);
    assert!(idle.unneeded_since_seconds.is_some_and(|since| since > 1_200.0), "{shown}");
    assert_eq!((idle.reason, idle.goes), (Some("NotUnneededLongEnough"), false));
    assert!(shown.contains("; removable after 30m"), "{shown}");
    let answer = place.ask(&Subject::Decision { id: "down1".to_owned() }).unwrap();
    let decision = answer.decision.clone().unwrap();
    assert!(decision.nodes.contains(&gone.name));
    assert_eq!((&*decision.reason, &*decision.outcome), ("ScaleDown", "succeeded"));
    assert!(decision.scale_down.iter().all(|found| found.goes && found.unneeded_since_seconds.is_some()));
    assert!(text(&answer).contains("goes now"), "{}", text(&answer));
    let json = serde_json::to_value(&answer).unwrap();
    assert_eq!(json["decision"]["scale_down"][0]["group"], "workers");
}

#[test]
fn explain_reports_minimum_size_and_missing_decision() {
    let place = Place::new();
    let first = place.outcome().record.nodes[0].name.clone();
    let answer = place.ask(&Subject::Node { name: first, at: minutes(3) }).unwrap();
    let found = answer.node.unwrap().cluster_autoscaler.unwrap();
    assert_eq!(found.not_looked_at.as_deref(), Some("its node group is at its minimum"));
    let error = place.ask(&Subject::Decision { id: "d1".to_owned() }).unwrap_err();
    let help = miette::Diagnostic::help(&error).unwrap().to_string();
    assert!(help.starts_with("the Cluster Autoscaler's decisions are up1") && help.contains("down1"), "{help}");
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn groups_drawn_by_lot_are_those_that_grew() {
    let path = std::path::Path::new("scenarios/karpenter-vs-cas/scenario.yaml");
    let scenario = nodecast::scenario::load(path).unwrap().0;
    let policy = scenario.for_policy(Some("cluster-autoscaler")).unwrap();
    let catalog = Catalog::embedded().unwrap();
    let subject = Subject::Decision { id: "up1".to_owned() };
    for seed in 1..=3 {
        let answer = explain(&scenario, policy, catalog, seed, &subject).unwrap();
        let json = serde_json::to_value(&answer).unwrap().to_string();
        let text = text(&answer);
        let grown: Vec<&str> = text.lines().filter(|line| line.contains("grows to")).collect();
        let done = text.lines().find(|line| line.contains("ScaledUpGroup")).unwrap_or_else(|| panic!("{json}"));
        assert!(!grown.is_empty() && text.contains("by lot"), "{text}");
        for line in grown {
            let group = line.split_whitespace().next().unwrap();
            assert!(done.contains(&format!("{{{group} ")), "seed {seed}: {text}");
        }
    }
}
