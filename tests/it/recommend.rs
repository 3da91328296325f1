//! `nodecast recommend` on a shipped scenario that was made dearer on purpose: what was planted has to be found again.

use std::process::Command;

use nodecast::recommend::presentation::{recommendation, recommendation_page};
use nodecast::recommend::recommendation::{Advice, Change, Class, LeverResult, Recommendation};

use crate::cli::{Place, assert_fits};

const SCENARIO: &str = "scenarios/consolidation-tuning/scenario.yaml";
/// Half of the scenario's time, one load that varies less, and few levers: the search of a user takes minutes.
const LENGTH: &str = "duration=4h";

/// What the program prints, and its exit code.
fn nodecast(arguments: &[&str]) -> (String, String, Option<i32>) {
    let output = Command::new(env!("CARGO_BIN_EXE_nodecast"))
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.code())
}

/// What is recommended with `levers` for a scenario with `set`, as it is printed.
fn recommended(levers: &str, set: &[&str], more: &[&str]) -> String {
    answered(levers, set, &[&["--simulations", "150"], more].concat())
}

/// The same with the options of the search left to `more`.
fn answered(levers: &str, set: &[&str], more: &[&str]) -> String {
    let mut arguments = vec!["recommend", SCENARIO, "--format", "json", "--quiet"];
    arguments.extend(["--set", LENGTH, "--levers", levers]);
    set.iter().for_each(|item| arguments.extend(["--set", item]));
    arguments.extend(more);
    let (out, err, code) = nodecast(&arguments);
    assert_eq!(code, Some(0), "{err}");
    out
}

const PLANTED: [&str; 2] = [
    "NodePool[spot].spec.disruption.consolidationPolicy=WhenEmpty",
    "NodePool[on-demand].spec.disruption.consolidationPolicy=WhenEmpty",
];

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn planted_savings_are_found_and_exported() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("recommended");
    let folder = folder.to_str().unwrap();
    let text = recommended("consolidation,hpa-targets", &PLANTED, &["--write", folder]);
    let answer: Recommendation = serde_json::from_str(&text).unwrap();
    assert_eq!(answer.advice, Advice::Change, "{text}");
    let saving = answer.saving().unwrap();
    assert!(saving.low.unwrap() > 0.03, "{saving:?}");
    assert!(
        answer
            .changes
            .iter()
            .any(|change| change.subject == "NodePool spot" && change.to == "WhenEmptyOrUnderutilized")
    );
    let nodes = answer.lines.iter().find(|line| line.name == "Spot nodes").unwrap();
    let lever = &nodes.levers[0];
    assert_eq!((lever.lever.as_str(), lever.result), ("consolidation", LeverResult::Recommended));
    assert!(answer.lines.len() == 3 && answer.lines[0].per_month >= answer.lines[1].per_month, "{text}");
    assert!(answer.changes.iter().all(|change| change.saves_per_month.low.unwrap() > 0.0), "each change saves");
    assert!(answer.effort.used <= 150 && answer.limits.iter().all(|limit| limit.kept));
    let planted = answer.changes.iter().find(|change| change.lever == "consolidation").unwrap();
    let edit = &planted.edits[0];
    let (before, after) = (edit.before.as_deref(), edit.after.as_deref());
    assert_eq!(
        (edit.path.as_str(), before, after),
        ("spec.disruption.consolidationPolicy", Some("WhenEmpty"), Some("WhenEmptyOrUnderutilized"))
    );

    // What was written confirms it.
    let scenario = format!("{folder}/scenario.yaml");
    let (out, err, code) = nodecast(&["validate", &scenario]);
    assert_eq!(code, Some(0), "{out}{err}");
    let out_dir = place.path().join("compared");
    let compare =
        ["compare", &scenario, "--policies", "after-1m,recommended", "--replications", "2", "--format", "json"];
    let (out, err, code) = nodecast(&[&compare[..], &["--quiet", "--out", out_dir.to_str().unwrap()]].concat());
    assert_eq!(code, Some(0), "{err}");
    let compared: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert!(compared.to_string().contains("recommended"));
}

/// The commitments that `recommend` finds for three pods on four nodes.
fn commitments(place: &Place) -> Recommendation {
    let pods = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: api}\nspec:\n  replicas: 3\n  \
                selector: {matchLabels: {app: api}}\n  template:\n    metadata: {labels: {app: api}}\n    \
                spec: {containers: [{name: c, image: x, resources: {requests: {cpu: 700m, memory: 1Gi}}}]}\n";
    place.put("pods.yaml", pods);
    place.put(
        "scenario.yaml",
        "name: bought\nregion: eu-west-1\nstart: 2026-04-01T08:20:00Z\nduration: 3h30m\nmanifests: [pods.yaml]\n\
         nodeGroups: [{ name: od, instanceType: c6i.xlarge, desired: 4 }]\npolicies: [{ name: own, autoscaler: static }]\n",
    );
    let (out, err, code) =
        place.nodecast(&["recommend", "scenario.yaml", "--levers", "commitments", "--format", "json", "--quiet"]);
    assert_eq!(code, Some(0), "{err}");
    serde_json::from_str(&out).unwrap()
}

#[test]
fn page_separates_savings_of_commitments_and_settings() {
    let mut answer = commitments(&Place::new());
    let setting = Change { class: Class::Setting, subject: "NodePool <b>".to_owned(), ..answer.changes[0].clone() };
    answer.changes.push(setting);
    let page = recommendation_page::render(&answer);
    let places = [">Savings per year<", ">Settings<", "1. NodePool &lt;b&gt;", ">Commitments<", "<td>2. "];
    let places = places.map(|words| page.find(words).unwrap_or_else(|| panic!("no {words} in {page}")));
    assert!(places.is_sorted(), "{places:?}");
    assert_eq!(page.matches("<rect class=\"bar\"").count(), answer.changes.len());
    let risk = answer.changes[0].risk.as_ref().unwrap();
    assert!(page.contains(&format!("<td data-label=\"Reversibility\">{}</td>", risk.reversibility)), "{page}");
}

#[test]
fn commitments_are_computed_as_a_run_bills_them() {
    let place = Place::new();
    let answer = commitments(&place);
    assert!(answer.effort.used < 20, "{} simulations", answer.effort.used);
    let plans: Vec<String> = answer.changes[0].set.iter().map(|(path, value)| format!("{path}={value}")).collect();
    let per_month = |set: &[&str]| {
        let (out, err, code) =
            place.nodecast(&[&["run", "scenario.yaml", "--format", "json", "--quiet", "--out", "out"], set].concat());
        assert_eq!(code, Some(0), "{err}");
        let summary: serde_json::Value = serde_json::from_str(&out).unwrap();
        summary["cost"]["per_month"].as_f64().unwrap()
    };
    let saved = per_month(&[]) - per_month(&["--set", &plans[0]]);
    let expected = answer.saves_per_month.unwrap().mean;
    assert!(saved > 50.0 && (saved - expected).abs() < 0.001 * saved, "{saved} and {expected}");
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn inexpressible_changes_are_written_as_scenario() {
    let place = Place::new();
    let pods = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  replicas: 2\n  \
                selector: {matchLabels: {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n    \
                spec: {containers: [{name: c, image: x, resources: {requests: {cpu: 500m, memory: 1Gi}}}]}\n";
    place.put("pods.yaml", pods);
    place.put(
        "scenario.yaml",
        "name: mine\nregion: us-east-1\nduration: 24h\nmanifests: [pods.yaml]\n\
         nodeGroups: [{ name: od, instanceType: m6i.large, desired: 6 }]\npolicies: [{ name: own, autoscaler: static }]\n",
    );
    let search = ["recommend", "scenario.yaml", "--levers", "commitments", "--simulations", "150"];
    let (out, err, code) = place.nodecast(&[&search[..], &["--write", "advice"]].concat());
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(out.contains("Savings Plans"), "{out}");
    let in_a_row = out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(in_a_row.contains("% off, derived): about") && in_a_row.contains("up to 1.5% higher"), "{out}");
    let written = |name: &str| std::fs::read_to_string(place.path(name)).unwrap();
    assert!(!written("advice/scenario.yaml").contains("recommended"), "it would be as today's");
    assert!(written("advice/after.yaml").contains("savings_plans"));
    let (out, err, code) = place.nodecast(&["diff", "advice/scenario.yaml", "advice/after.yaml"]);
    assert_eq!(code, Some(0), "{out}{err}");
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn recommendation_is_identical_on_any_thread_count() {
    let one = recommended("budgets", &[], &["--threads", "1"]);
    assert_eq!(one, recommended("budgets", &[], &["--threads", "8"]));
    let answer: Recommendation = serde_json::from_str(&one).unwrap();
    assert_eq!(answer.advice, Advice::NothingSaves, "{one}");
    assert!(answer.changes.is_empty() && answer.cost_per_month.is_none());
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn timed_out_recommendation_reports_its_simulations() {
    let text = answered("consolidation,hpa-targets", &PLANTED, &["--budget", "1s", "--simulations", "100000"]);
    let answer: Recommendation = serde_json::from_str(&text).unwrap();
    assert!(answer.effort.spent && answer.effort.simulations < 100_000, "{:?}", answer.effort);
    let simulations = answer.effort.simulations.to_string();
    assert_eq!(text, answered("consolidation,hpa-targets", &PLANTED, &["--simulations", &simulations]));
    let printed = recommendation::text(&answer);
    assert!(printed.contains(&format!("--simulations {simulations} --seed 1")), "{printed}");
    for width in [79, 60, 40] {
        // A diff and the words of a command line stay whole: they are for files and for a shell.
        let stays =
            |line: &&str| ["     - ", "     + ", "reproduce this result"].iter().any(|start| line.starts_with(start));
        let narrow = recommendation::text_within(&answer, Some(width));
        printed.lines().filter(stays).for_each(|line| assert!(narrow.contains(line), "`{line}` is not in\n{narrow}"));
        let rest = |text: &str| text.lines().filter(|line| !stays(line)).collect::<Vec<_>>().join("\n");
        assert_fits(&rest(&printed), &rest(&narrow), width);
    }
    assert_eq!(recommendation::text_within(&answer, Some(400)), printed);
}

#[test]
fn what_cannot_be_asked_is_refused() {
    for (arguments, expected) in [
        (vec!["--levers", "luck"], "there are consolidation"),
        (vec!["--least-saving", "2"], "write for example 1%"),
        (vec!["--simulations", "10"], "40"),
        (vec!["--policy", "none"], "none"),
    ] {
        let (_, err, code) = nodecast(&[&["recommend", SCENARIO][..], &arguments].concat());
        assert!(code == Some(2) && err.contains(expected), "{code:?}: {err}");
    }
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn workloads_get_separate_node_pool_when_cheaper() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("recommended");
    let on_demand = "NodePool[default].spec.template.spec.requirements[karpenter.sh/capacity-type].values=[on-demand]";
    // So that the objects that are added here are seen to be carried into what is written.
    let added = "PriorityClass[low]={apiVersion: scheduling.k8s.io/v1, value: -5}";
    let scenario = "tests/data/testbed/scenario.yaml";
    let asked = |scenario: &str, set: &[&str], more: &[&str]| {
        let mut words = vec!["recommend", scenario, "--format", "json", "--quiet", "--simulations", "150"];
        words.extend(["--levers", "split", "--worth", "0.1%"]);
        set.iter().for_each(|item| words.extend(["--set", item]));
        words.extend(more);
        let (out, err, code) = nodecast(&words);
        assert_eq!(code, Some(0), "{err}");
        serde_json::from_str::<Recommendation>(&out).unwrap()
    };
    let jobs = "CronJob[shop/ledger].spec.jobTemplate.spec.completions=12";
    let at_once = "CronJob[shop/ledger].spec.jobTemplate.spec.parallelism=6";
    let limit = "objectives={pending_p99: 10m}";
    let set = [on_demand, added, jobs, at_once, limit, "faults=[]", "duration=4h"];
    let answer = asked(scenario, &set, &["--write", folder.to_str().unwrap()]);
    assert_eq!(answer.advice, Advice::Change, "{answer:?}");
    let change = &answer.changes[0];
    assert_eq!(
        (change.lever.as_str(), change.to.as_str()),
        ("split", "Jobs and what must not be disrupted on nodes of their own, Spot and On-Demand")
    );
    let edit = |object: &str, path: &str| {
        let edit = change.edits.iter().find(|edit| edit.object == object && edit.path == path);
        edit.and_then(|edit| edit.after.as_deref())
    };
    assert_eq!(edit("NodePool default-jobs", "spec.disruption.consolidateAfter"), Some("2m"));
    let selector = "spec.jobTemplate.spec.template.spec.nodeSelector[karpenter.sh/nodepool]";
    assert_eq!(edit("CronJob shop/ledger", selector), Some("default-jobs"));

    let written = folder.join("scenario.yaml");
    let (out, err, code) = nodecast(&["validate", written.to_str().unwrap()]);
    assert_eq!(code, Some(0), "{out}{err}");
    let text = std::fs::read_to_string(folder.join("added.yaml")).unwrap();
    assert!(text.contains("PriorityClass") && text.contains("name: low"), "{text}");
    let again = asked(written.to_str().unwrap(), &[], &["--policy", "recommended", "--seed", "900000001"]);
    assert_eq!(again.advice, Advice::NothingSaves, "{again:?}");
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn page_has_answer_without_spot() {
    let place = Place::new();
    let cluster = std::fs::read_to_string(place.path("cluster.yaml")).unwrap();
    let types = "{key: node.kubernetes.io/instance-type, operator: In, values: [m5.large]}";
    let families = "{key: karpenter.k8s.aws/instance-category, operator: In, values: [c, m]}";
    assert!(cluster.contains(types), "{cluster}");
    place.put("cluster.yaml", &cluster.replace(types, families).replace("cpu: 500m", "cpu: 900m"));
    let levers = ["--levers", "spot,consolidate-after,volumes", "--duration", "1h"];
    let words =
        [&["recommend", "scenario.yaml", "--simulations", "300", "--html", "answer.html"][..], &levers].concat();
    let (out, err, code) = place.nodecast(&words);
    assert_eq!(code, Some(0), "{err}");
    let second = out.lines().find(|line| line.starts_with("Without Spot: ")).unwrap_or_else(|| panic!("{out}"));
    let page = std::fs::read_to_string(place.path("answer.html")).unwrap();
    let words = second.split(" (").next().unwrap();
    assert!(page.contains("<h2 id=\"without-spot\">") && page.contains(words), "{second}");
}
