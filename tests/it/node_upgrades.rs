//! Updates of managed node groups and instance refreshes of Auto Scaling groups.

use nodecast::domain::{SimDuration, SimTime};
use nodecast::experiment::figures;
use nodecast::report::{Summary, answers, terminal};
use nodecast::simulation::Outcome;
use nodecast::world::record::{EventKind, NodeEnd, NodeFacts};

use crate::node_groups::{minutes, run, times, try_load};

/// Three hours of a group of these keys in so many zones, with more keys of the scenario.
pub(crate) fn scenario(zones: usize, group: &str, step: &str, more: &str) -> String {
    let zones: Vec<String> = "abcdf".chars().take(zones).map(|zone| format!("us-east-1{zone}")).collect();
    format!(
        "name: upgrade\nregion: us-east-1\nduration: 3h\ncluster: {{ zones: [{}] }}\nmanifests: [manifests.yaml]\nversions: {{ kubernetes: \
         \"1.35\" }}\nec2: {{ capacity: infinite }}\nnodeGroups:\n  - {{ name: workers, instanceType: m6i.large, {group} }}\ntimeline:\n  - {{ at: \
         20m, {step} }}\n{more}\n",
        zones.join(", ")
    )
}

/// A Deployment spread over nodes, with a budget.
pub(crate) fn app(replicas: u32, unavailable: u32) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: cart}}\nspec:\n  replicas: {replicas}\n  selector: {{matchLabels: {{app: \
         cart}}}}\n  template:\n    metadata: {{labels: {{app: cart}}}}\n    spec:\n      topologySpreadConstraints:\n      - {{maxSkew: 1, \
         topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway, labelSelector: {{matchLabels: {{app: cart}}}}}}\n      \
         containers: [{{name: c, resources: {{requests: {{cpu: 300m, memory: 1Gi}}}}}}]\n---\napiVersion: policy/v1\nkind: \
         PodDisruptionBudget\nmetadata: {{name: cart}}\nspec: {{maxUnavailable: {unavailable}, selector: {{matchLabels: {{app: cart}}}}}}\n"
    )
}

const UPDATE: &str = "update_group: { group: workers, ami: ami-new }";

/// Nodes of which an instance ran at a time.
fn running(outcome: &Outcome, at: SimTime) -> usize {
    let is_there = |node: &&NodeFacts| {
        node.running.is_some_and(|node| node <= at) && node.terminating.is_none_or(|terminating| at < terminating)
    };
    outcome.record.nodes.iter().filter(is_there).count()
}

fn peak(outcome: &Outcome) -> usize {
    (0..1080).map(|tens| running(outcome, SimTime::ZERO + SimDuration::from_secs(10 * tens))).max().unwrap_or(0)
}

fn least_ready(outcome: &Outcome) -> u32 {
    outcome.record.samples.iter().map(|sample| sample.nodes_on_demand).min().unwrap_or(0)
}

/// How long the only update takes, in minutes.
fn length(outcome: &Outcome) -> f64 {
    let [update] = outcome.record.upgrades.as_slice() else { panic!("one update") };
    (update.ended.unwrap() - update.began).as_secs_f64() / 60.0
}

fn updated(outcome: &Outcome) -> usize {
    outcome.record.nodes.iter().filter(|node| node.end == Some(NodeEnd::Updated)).count()
}

fn pods_unschedulable(outcome: &Outcome) -> usize {
    times(outcome, EventKind::PodUnschedulable).len()
}

#[test]
fn default_update_replaces_every_node_with_surge() {
    let outcome = run(&scenario(3, "desired: 3, max: 3", UPDATE, ""), &app(6, 1));
    let (peak, length) = (peak(&outcome), length(&outcome));
    assert!((8..=10).contains(&peak), "{peak} nodes");
    assert!((20.0..=35.0).contains(&length), "{length} min");
    assert_eq!((running(&outcome, minutes(179)), updated(&outcome), pods_unschedulable(&outcome)), (3, 3, 0));
    assert!(outcome.record.upgrades[0].failure.is_none());
}

#[test]
fn minimal_update_never_exceeds_the_size() {
    let group = "desired: 3, max: 3, updateConfig: { updateStrategy: MINIMAL }";
    let outcome = run(&scenario(3, group, UPDATE, "output: { sample_every: 10s }"), &app(6, 1));
    assert_eq!((peak(&outcome), least_ready(&outcome), updated(&outcome)), (3, 2, 3));
    assert!(outcome.record.upgrades[0].failure.is_none());
}

#[test]
fn blocked_update_fails_after_fifteen_minutes() {
    let outcome = run(&scenario(3, "desired: 3, max: 3", UPDATE, ""), &app(6, 0));
    let update = &outcome.record.upgrades[0];
    let drain = outcome
        .record
        .events
        .iter()
        .find(|event| event.kind == EventKind::GroupUpdateAdvanced && event.node.is_some())
        .map(|event| event.at)
        .unwrap();
    assert_eq!(update.failure, Some("PodEvictionFailure"));
    assert_eq!((update.ended.unwrap() - drain).as_secs(), 900);
    assert_eq!((running(&outcome, minutes(179)), updated(&outcome)), (9, 0), "additional nodes stay");
}

#[test]
fn failed_or_unfinished_update_has_no_duration() {
    let (_, longest) = figures::find("upgrade_time").unwrap();
    let time = |allowed: u32, more: &str| {
        let text = scenario(3, "desired: 3, max: 3", UPDATE, "").replace("duration: 3h", more);
        let outcome = run(&text, &app(6, allowed));
        assert_eq!(outcome.record.upgrades.len(), 1);
        (longest.of)(&Summary::from_outcome(&outcome))
    };
    assert!(time(2, "duration: 3h").is_some_and(|seconds| seconds > 600.0));
    assert_eq!(time(0, "duration: 3h"), None, "failed");
    assert_eq!(time(2, "duration: 30m"), None, "under way");
}

#[test]
fn failed_update_is_among_first_lines() {
    let step = "update_group: { group: workers, ami: ami-2 }";
    let outcome = run(&scenario(2, "desired: 2, max: 4", step, ""), &app(4, 0));
    let summary = Summary::from_outcome(&outcome);
    let headline = answers::headline(&summary);
    assert!(headline.ends_with(", 1 node upgrade failed"), "{headline}");
    let problems = &answers::answers(&summary)[2];
    assert_eq!(problems.value.words(), "1 node upgrade failed");
    let clauses: Vec<String> =
        problems.clauses.iter().map(|clause| clause.iter().map(|piece| piece.words()).collect()).collect();
    let failure = "upgrade of workers failed: PodEvictionFailure after ";
    assert!(clauses.iter().any(|clause| clause.starts_with(failure)), "{clauses:?}");
    let lines = terminal::brief(&summary, None);
    assert!(lines.contains(failure), "{lines}");
    let succeeded = run(&scenario(2, "desired: 2, max: 4", step, ""), &app(4, 2));
    assert!(!answers::headline(&Summary::from_outcome(&succeeded)).contains("upgrade"));
}

#[test]
fn forced_update_deletes_each_pod_once() {
    let step = "update_group: { group: workers, ami: ami-new, force: true }";
    let outcome = run(&scenario(3, "desired: 3, max: 3", step, ""), &app(6, 0));
    let evictions = outcome.record.events.iter().filter(|event| event.kind == EventKind::PodEvicted);
    let forced = evictions.filter(|event| event.message.contains("is forced")).count();
    assert_eq!((updated(&outcome), forced, outcome.record.upgrades[0].failure), (3, 6, None));
}

#[test]
fn surge_is_two_per_zone_or_a_batch() {
    for (config, surge) in [("maxUnavailable: 1", 10), ("maxUnavailable: 20", 20), ("maxUnavailablePercentage: 80", 16)]
    {
        let group = format!("desired: 20, max: 25, updateConfig: {{ {config} }}");
        let outcome = run(&scenario(5, &group, UPDATE, ""), &app(5, 1));
        assert_eq!(peak(&outcome), 20 + surge, "{config}");
    }
}

#[test]
fn update_without_capacity_is_rolled_back() {
    let group = "desired: 2, max: 2";
    let fault = "faults: [{ at: 10m, for: 1h, insufficient_capacity: { zone: us-east-1b } }]";
    let outcome = run(&scenario(2, group, UPDATE, fault), &app(2, 1));
    let update = &outcome.record.upgrades[0];
    assert_eq!(update.failure, Some("NodeCreationFailure"));
    assert_eq!((running(&outcome, minutes(179)), updated(&outcome)), (2, 0));
}

#[test]
fn raised_group_ends_the_scale_down_at_once() {
    let group = "desired: 3, max: 20";
    let events = |outcome: &Outcome| outcome.record.events.clone();
    let first = run(&scenario(3, group, UPDATE, ""), &app(6, 1));
    let shrinks = events(&first)
        .iter()
        .find(|event| event.message.contains("no old node is left"))
        .map(|event| event.at)
        .unwrap();
    let raised = (shrinks - SimTime::ZERO).as_secs() + 90;
    let step = format!("  - {{ at: {raised}s, scale_group: {{ group: workers, desired: 14 }} }}");
    let outcome = run(&scenario(3, group, UPDATE, &step), &app(6, 1));
    let update = &outcome.record.upgrades[0];
    let after = (update.ended.unwrap() - SimTime::ZERO).as_secs() - raised;
    assert!((0..=5).contains(&after) && update.failure.is_none(), "{after} s");
    assert_eq!(running(&outcome, minutes(179)), 14, "the group stays larger");
}

#[test]
fn update_sets_the_release_of_new_nodes() {
    let group = "desired: 2, max: 4";
    let upgrade = "  - { at: 5m, upgrade_control_plane: \"1.36\" }";
    let step = "update_group: { group: workers, release: \"1.36\" }";
    let outcome = run(&scenario(2, group, step, upgrade), &app(2, 1));
    let release = |at: usize| outcome.record.nodes[at].kubelet_version.unwrap().to_string();
    assert_eq!((release(0), release(2)), ("1.35".to_owned(), "1.36".to_owned()));
    let early = run(&scenario(2, group, step, ""), &app(2, 1));
    assert!(early.record.upgrades.is_empty() && early.record.unmet.len() == 1, "EKS rejects a newer release");
}

#[test]
fn steps_of_other_groups_are_refused() {
    let error = |group: &str, step: &str| try_load(&scenario(2, group, step, ""), "").unwrap_err();
    let unknown = error("desired: 2", "update_group: { group: worker }");
    assert!(unknown.contains("no node group named `worker`"), "{unknown}");
    let this_error = error("desired: 2, managed: false", UPDATE);
    assert!(this_error.contains("`update_group` of the node group `workers`"), "{this_error}");
    let managed = error("desired: 2", "refresh_group: { group: workers }");
    assert!(managed.contains("`refresh_group` of the node group `workers`"), "{managed}");
    let both = error("desired: 2, updateConfig: { maxUnavailable: 2, maxUnavailablePercentage: 10 }", UPDATE);
    assert!(both.contains("both `maxUnavailable` and `maxUnavailablePercentage`"), "{both}");
}

/// How an instance refresh of ten instances goes, with exact times of machines.
fn refresh(preferences: &str, pods: &str) -> Outcome {
    let stages = "vm_init: 15s, os_boot: 10s, bootstrap: 20s, register: 5s, cni_ready: 5s, status: 5s, running: 20s, by_type: false, spread: false";
    let times = format!(
        "{{ capacity: infinite, launch_latency: {{ {stages} }}, times: {{ group_reaction: 0s, group_in_service: 40s }} }}"
    );
    let step = format!("refresh_group: {{ group: workers, warm_up: 300s, {preferences} }}");
    let text = scenario(2, "desired: 10, max: 10, managed: false", &step, "").replace("{ capacity: infinite }", &times);
    run(&text, pods)
}

#[test]
fn refresh_replaces_one_instance_per_warm_up() {
    let outcome = refresh("min_healthy: 90", &app(10, 1));
    assert_eq!((updated(&outcome), running(&outcome, minutes(179))), (10, 10));
    assert!((60.0..=61.0).contains(&length(&outcome)), "{} min", length(&outcome));
}

#[test]
fn refresh_without_healthy_minimum_replaces_all_at_once() {
    let outcome = refresh("min_healthy: 0", &app(10, 1));
    assert_eq!((updated(&outcome), running(&outcome, minutes(20) + SimDuration::from_secs(10))), (10, 0));
    assert!((6.0..=6.2).contains(&length(&outcome)), "{} min", length(&outcome));
}

#[test]
fn refresh_pauses_at_checkpoints() {
    let outcome = refresh("min_healthy: 50, checkpoints: [40], checkpoint_delay: 20m", &app(10, 1));
    assert!((27.0..=27.1).contains(&length(&outcome)), "{} min", length(&outcome));
}

#[test]
fn refresh_with_skip_matching_replaces_nothing_without_a_release() {
    let outcome = refresh("skip_matching: true", &app(10, 1));
    assert_eq!((updated(&outcome), outcome.record.upgrades.len()), (0, 1));
}
