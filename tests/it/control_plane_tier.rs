//! `cluster.control_plane_tier`: how fast pods are bound and autoscalers evaluated, what the report names, and which values are errors.

use nodecast::catalog::Catalog;
use nodecast::domain::{ControlPlaneTier, SimTime};
use nodecast::report::Summary;
use nodecast::report::terminal;
use nodecast::scenario::{self, Edit, Limits, Scenario, ScenarioError};
use nodecast::simulation::{self, Outcome};

const ROOM: &str =
    "nodeGroups: [{name: pens, instanceTypes: [m5.24xlarge], min: 2, desired: 2, max: 2, maxPods: 900}]\n";
const AT_ONCE: &str = "controller_time: {kube_controller_manager: none}\n";

/// A folder with a Deployment of small pods, autoscalers of Deployments without pods, and a scenario of five minutes.
fn folder(pods: u32, autoscalers: u32, more: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let deployment = |name: &str, replicas: u32| {
        format!(
            "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}}}\nspec:\n  replicas: {replicas}\n  selector: {{matchLabels: \
             {{app: {name}}}}}\n  template:\n    metadata: {{labels: {{app: {name}}}}}\n    spec: {{containers: [{{name: app, image: app, \
             resources: {{requests: {{cpu: 2m}}}}}}]}}\n"
        )
    };
    let mut manifests = deployment("flock", pods);
    for number in 0..autoscalers {
        let name = format!("pen{number}");
        manifests.push_str(&deployment(&name, 0));
        manifests.push_str(&format!(
            "---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {{name: {name}}}\nspec:\n  scaleTargetRef: {{apiVersion: \
             apps/v1, kind: Deployment, name: {name}}}\n  minReplicas: 1\n  maxReplicas: 2\n  metrics: [{{type: Resource, resource: {{name: \
             cpu, target: {{type: Utilization, averageUtilization: 50}}}}}}]\n"
        ));
    }
    let policies = if more.contains("policies:") { "" } else { "policies: [{name: fixed, autoscaler: static}]\n" };
    let scenario =
        format!("name: farm\nregion: eu-west-1\nduration: 5m\nmanifests: [farm.yaml]\n{ROOM}{policies}{more}");
    std::fs::write(folder.path().join("scenario.yaml"), scenario).unwrap();
    std::fs::write(folder.path().join("farm.yaml"), manifests).unwrap();
    folder
}

fn load(folder: &tempfile::TempDir, edits: &[&str]) -> Result<(Scenario, Vec<String>), ScenarioError> {
    let edits: Vec<Edit> = edits.iter().map(|edit| Edit::parse(edit).unwrap()).collect();
    let path = folder.path().join("scenario.yaml");
    let (scenario, warnings) = scenario::load_edited(&path, Catalog::embedded().unwrap(), &Limits::default(), &edits)?;
    Ok((scenario, warnings.iter().map(|warning| warning.message().to_owned()).collect()))
}

fn run(folder: &tempfile::TempDir, policy: Option<&str>) -> Outcome {
    let scenario = load(folder, &[]).unwrap().0;
    let policy = scenario.for_policy(policy).unwrap();
    simulation::run(&scenario, policy, Catalog::embedded().unwrap(), 5, &mut |_| {}).unwrap()
}

/// Seconds from the first binding to the last.
fn binding_seconds(outcome: &Outcome) -> f64 {
    let bound = || outcome.record.pods.iter().filter_map(|pod| pod.scheduled);
    let (first, last) = (bound().min().unwrap_or(SimTime::ZERO), bound().max().unwrap_or(SimTime::ZERO));
    (last - first).as_secs_f64()
}

fn error(more: &str) -> String {
    let error = load(&folder(1, 0, more), &[]).unwrap_err();
    assert!(error.place().is_some());
    format!("{} ({})", error.message(), error.way_out().unwrap_or_default())
}

#[test]
fn tiers_bind_pods_at_their_rate() {
    let seconds = |tier: &str| {
        let more = format!("cluster: {{control_plane_tier: {tier}}}\n{AT_ONCE}");
        binding_seconds(&run(&folder(1_300, 0, &more), None))
    };
    let close = |have: f64, want: f64| assert!((have - want).abs() < 0.05 * want + 0.5, "{have} instead of {want}");
    close(seconds("standard"), (1_300.0 - 100.0) / 50.0);
    close(seconds("tier-xl"), (1_300.0 - 167.0) / 167.0);
    close(seconds("2xl"), (1_300.0 - 283.0) / 283.0);
    let stated = "cluster: {control_plane_tier: 2xl}\ncontroller_time: {kube_controller_manager: none, kube_scheduler: {qps: 60, burst: 60}}\n";
    close(binding_seconds(&run(&folder(1_300, 0, stated), None)), (1_300.0 - 60.0) / 60.0);
}

#[test]
fn attempts_of_a_standard_scheduler_take_time() {
    let seconds = |tier: &str| {
        let raised = "controller_time: {kube_controller_manager: none, kube_scheduler: {qps: 900, burst: 1500}}\n";
        binding_seconds(&run(&folder(800, 0, &format!("cluster: {{control_plane_tier: {tier}}}\n{raised}")), None))
    };
    let (standard, provisioned) = (seconds("standard"), seconds("8xl"));
    assert!((5.5..5.7).contains(&standard), "799 times 7 ms: {standard}");
    assert!((0.75..0.9).contains(&provisioned), "799 times 1 ms: {provisioned}");
}

#[test]
fn tiers_evaluate_autoscalers_at_once() {
    let longest = |tier: &str| {
        let more = format!(
            "cluster: {{control_plane_tier: {tier}}}\ncontroller_time: {{kube_controller_manager: {{metrics_call: 500ms}}}}\n"
        );
        let passes = run(&folder(1, 110, &more), None).record.controllers.autoscalers.unwrap();
        (passes.at_once, passes.longest.as_secs_f64())
    };
    // 22 turns of half a second, of which the last waits for 21; then 3 turns, of which the last waits for 2.
    let (standard, xl) = (longest("standard"), longest("xl"));
    assert_eq!((standard.0, xl.0), (5, 50));
    assert!((10.5..11.0).contains(&standard.1) && (1.0..1.1).contains(&xl.1), "{standard:?} {xl:?}");
}

#[test]
fn report_names_limits_and_who_waited() {
    let outcome = run(&folder(2_100, 0, &format!("cluster: {{control_plane_tier: standard}}\n{AT_ONCE}")), None);
    let warned = outcome.warnings.iter().any(|warning| warning.contains("`cluster.control_plane_tier: xl` lifts that"));
    assert!(warned, "{:?}", outcome.warnings);
    let summary = Summary::from_outcome(&outcome);
    let control_plane = summary.controllers.control_plane.as_ref().unwrap();
    assert_eq!((control_plane.tier.as_str(), control_plane.request_seats_max), ("standard", 2_000));
    let held = summary.controllers.limits.iter().find(|limit| limit.client == "kube-scheduler").unwrap();
    assert!((38.0..41.0).contains(&held.longest_held_seconds), "{held:?}");
    let table = terminal::table(&summary);
    assert!(table.contains("kube-scheduler (50 calls/s): 1,947 of 2,100 waited"), "{table}");
    let free = Summary::from_outcome(&run(&folder(20, 0, "controller_time: none\n"), None));
    assert_eq!(free.controllers.control_plane, None);
}

#[test]
fn policies_and_edits_vary_the_tier() {
    let policies =
        "policies:\n- {name: now, autoscaler: static}\n- {name: larger, autoscaler: static, control_plane_tier: 4xl}\n";
    let folder = folder(1, 0, &format!("cluster: {{control_plane_tier: xl}}\n{policies}"));
    let tiers = |edits: &[&str]| {
        load(&folder, edits).unwrap().0.policies.iter().map(|policy| policy.control_plane_tier).collect::<Vec<_>>()
    };
    assert_eq!(tiers(&[]), [ControlPlaneTier::Xl, ControlPlaneTier::Xl4]);
    assert_eq!(tiers(&["cluster.control_plane_tier=8xl"]), [ControlPlaneTier::Xl8, ControlPlaneTier::Xl4]);
}

#[test]
fn wrong_tiers_are_errors() {
    let near = error("cluster: {control_plane_tier: 4xll}\n");
    assert!(near.contains("`control_plane_tier`: `4xll` (did you mean `4xl`"), "{near}");
    assert!(error("cluster: {control_plane_tier: tier-ultra}\n").contains("use `8xl`"));
    let old = error("cluster: {control_plane_tier: xl}\nversions: {kubernetes: '1.27'}\n");
    assert!(old.contains("Kubernetes 1.28"), "{old}");
}

#[test]
fn tier_without_effect_is_warned_of() {
    let warnings = |time: &str| {
        let more = format!("cluster: {{control_plane_tier: 2xl}}\ncontroller_time: {time}\n");
        load(&folder(1, 0, &more), &[]).unwrap().1.iter().filter(|text| text.contains("`2xl`")).count()
    };
    assert_eq!([warnings("none"), warnings("measured"), warnings("{kube_scheduler: none}")], [1, 0, 0]);
}
