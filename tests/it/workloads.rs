//! Workloads in a running simulation: rollouts, ordered pods, pods that nothing controls.

use nodecast::domain::{SimTime, WorkloadId};
use nodecast::simulation::Outcome;
use nodecast::world::record::{EventKind, PodFacts};

use crate::keda::{cluster, deployment, run};

/// A Deployment with a readiness delay, so that a rollout takes a while.
fn slow(replicas: u32, image: &str, strategy: &str) -> String {
    format!(
        "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web}}\nspec:\n  replicas: {replicas}\n{strategy}  \
         selector: {{matchLabels: {{app: web}}}}\n  template:\n    metadata: {{labels: {{app: web}}}}\n    spec:\n      \
         containers: [{{name: app, image: {image}, resources: {{requests: {{cpu: 100m, memory: 64Mi}}}}, \
         readinessProbe: {{initialDelaySeconds: 20}}}}]\n"
    )
}

const LATER: &str = "timeline: [{at: 10m, manifests: [later.yaml]}]";

fn roll_out(first: &str, later: &str) -> Outcome {
    run("20m", LATER, &format!("{}{first}", cluster(0)), &[("later.yaml", later)])
}

fn workload(outcome: &Outcome, name: &str) -> WorkloadId {
    let place = outcome.record.workloads.iter().position(|facts| facts.name.name.as_str() == name).unwrap();
    WorkloadId::from_index(place)
}

fn pods<'o>(outcome: &'o Outcome, name: &str) -> Vec<&'o PodFacts> {
    let own = workload(outcome, name);
    outcome.record.pods.iter().filter(|pod| pod.workload == own).collect()
}

fn at(seconds: i64) -> SimTime {
    SimTime::from_micros(seconds * 1_000_000)
}

/// Pods that have been created and not been asked to go, and those of them that are Ready.
fn there(pods: &[&PodFacts], now: SimTime) -> (usize, usize) {
    let active = |pod: &&&PodFacts| pod.created <= now && pod.deletion_requested.is_none_or(|gone| gone > now);
    let ready = |pod: &&&PodFacts| active(pod) && pod.ready.is_some_and(|ready| ready <= now);
    (pods.iter().filter(active).count(), pods.iter().filter(ready).count())
}

/// The most and the fewest pods, and the fewest Ready ones, at any tenth of a second from ten minutes on.
fn extremes(pods: &[&PodFacts]) -> (usize, usize, usize) {
    let instants = (6_000..12_000).map(|tenth| SimTime::from_micros(tenth * 100_000));
    let counts: Vec<(usize, usize)> = instants.map(|now| there(pods, now)).collect();
    let most = counts.iter().map(|count| count.0).max().unwrap();
    let fewest = counts.iter().map(|count| count.0).min().unwrap();
    (most, fewest, counts.iter().map(|count| count.1).min().unwrap())
}

fn count(outcome: &Outcome, kind: EventKind) -> usize {
    outcome.record.events.iter().filter(|event| event.kind == kind).count()
}

#[test]
fn a_changed_template_rolls_out_within_surge_and_unavailable() {
    let outcome = roll_out(&slow(10, "one", ""), &slow(10, "two", ""));
    let pods = pods(&outcome, "web");
    // A quarter of ten: three more, two fewer.
    assert_eq!(pods.len(), 20);
    let (most, _, fewest_ready) = extremes(&pods);
    assert_eq!((most, fewest_ready), (13, 8));
    assert!(pods[..10].iter().all(|pod| pod.deletion_requested.is_some()));
    assert!(pods[10..].iter().all(|pod| pod.deletion_requested.is_none() && pod.ready.is_some()));
    assert_eq!((count(&outcome, EventKind::RolloutStarted), count(&outcome, EventKind::RolloutFinished)), (1, 1));
    let end = outcome.record.events.iter().find(|event| event.kind == EventKind::RolloutFinished).unwrap();
    assert_eq!(pods[10..].iter().filter_map(|pod| pod.ready).max().unwrap().as_secs(), end.at.as_secs());
}

#[test]
fn a_rollout_waits_until_new_pods_have_been_ready_for_min_ready_seconds() {
    let strategy = "  minReadySeconds: 60\n  strategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}\n";
    let outcome = roll_out(&slow(2, "one", strategy), &slow(2, "two", strategy));
    let pods = pods(&outcome, "web");
    let (most, _, fewest_ready) = extremes(&pods);
    assert_eq!((pods.len(), most, fewest_ready), (4, 3, 2));
    let mut gone: Vec<SimTime> = pods[..2].iter().filter_map(|pod| pod.deletion_requested).collect();
    gone.sort_unstable();
    for (old, new) in gone.into_iter().zip(&pods[2..]) {
        let waited = old - new.ready.unwrap();
        assert!((60..=61).contains(&waited.as_secs()), "{waited}");
    }
}

#[test]
fn recreate_lets_all_old_pods_go_before_the_first_new_one_comes() {
    let strategy = "  strategy: {type: Recreate}\n";
    let outcome = roll_out(&slow(4, "one", strategy), &slow(4, "two", strategy));
    let pods = pods(&outcome, "web");
    assert_eq!(pods.len(), 8);
    let last_gone = pods[..4].iter().map(|pod| pod.removed.unwrap()).max().unwrap();
    assert!(pods[4..].iter().all(|pod| pod.created >= last_gone), "{last_gone}");
}

#[test]
fn a_changed_count_only_scales_and_an_unchanged_manifest_does_nothing() {
    let grown = roll_out(&slow(3, "one", ""), &slow(5, "one", ""));
    assert_eq!(there(&pods(&grown, "web"), at(1_199)), (5, 5));
    assert_eq!((pods(&grown, "web").len(), count(&grown, EventKind::RolloutStarted)), (5, 0));
    let same = roll_out(&slow(3, "one", ""), &slow(3, "one", ""));
    assert_eq!(pods(&same, "web").len(), 3);
}

#[test]
fn going_back_to_a_former_template_takes_its_pods_up_again() {
    let timeline = "timeline: [{at: 10m, manifests: [two.yaml]}, {at: 610s, manifests: [one.yaml]}]";
    let (one, two) = (slow(10, "one", ""), slow(10, "two", ""));
    let others = [("two.yaml", two.as_str()), ("one.yaml", one.as_str())];
    let outcome = run("20m", timeline, &format!("{}{one}", cluster(0)), &others);
    let pods = pods(&outcome, "web");
    // Five new pods were made and two old ones deleted before it went back: the five go, two come again.
    assert_eq!(pods.len(), 17);
    assert_eq!(there(&pods, at(1_199)), (10, 10));
    assert_eq!(pods[..10].iter().filter(|pod| pod.deletion_requested.is_some()).count(), 2);
}

#[test]
fn a_count_that_changes_during_a_rollout_is_spread_over_both_sets() {
    let timeline = "timeline: [{at: 10m, manifests: [later.yaml]}, {at: 605s, scale: {workload: web, replicas: 20}}]";
    let later = slow(10, "two", "");
    let manifests = format!("{}{}", cluster(0), slow(10, "one", ""));
    let outcome = run("20m", timeline, &manifests, &[("later.yaml", &later)]);
    let pods = pods(&outcome, "web");
    assert_eq!(there(&pods, at(1_199)), (20, 20));
    // Twenty and five more is the most, and old pods were made again for the larger count.
    assert_eq!(extremes(&pods).0, 25);
    assert!(pods.len() > 30, "{}", pods.len());
}

fn stateful(replicas: u32, image: &str, rest: &str) -> String {
    slow(replicas, image, rest).replace("kind: Deployment", "kind: StatefulSet")
}

#[test]
fn the_pods_of_a_stateful_set_come_in_order_and_go_from_the_highest_ordinal() {
    let outcome = roll_out(&stateful(3, "one", ""), &stateful(1, "one", ""));
    let pods = pods(&outcome, "web");
    let names: Vec<&str> = pods.iter().map(|pod| pod.name.as_str()).collect();
    assert_eq!(names, ["web-0", "web-1", "web-2"]);
    for pair in pods.windows(2) {
        assert!(pair[1].created > pair[0].ready.unwrap());
    }
    assert_eq!(pods[0].deletion_requested, None);
    assert!(pods[1].deletion_requested.unwrap() > pods[2].removed.unwrap());
}

#[test]
fn a_parallel_stateful_set_makes_all_its_pods_at_once() {
    let outcome = roll_out(&stateful(3, "one", "  podManagementPolicy: Parallel\n"), &deployment("other", 0));
    let created: Vec<SimTime> = pods(&outcome, "web").iter().map(|pod| pod.created).collect();
    assert_eq!(created, [created[0]; 3]);
}

#[test]
fn a_stateful_set_updates_one_pod_after_the_other_down_to_the_partition() {
    let partition = "  updateStrategy: {rollingUpdate: {partition: 1}}\n";
    let outcome = roll_out(&stateful(3, "one", partition), &stateful(3, "two", partition));
    let pods = pods(&outcome, "web");
    let names: Vec<&str> = pods[3..].iter().map(|pod| pod.name.as_str()).collect();
    assert_eq!(names, ["web-2", "web-1"]);
    // The pod keeps its name, so the old one is gone before the new one comes.
    assert!(pods[3].created > pods[2].removed.unwrap() && pods[4].created > pods[1].removed.unwrap());
    assert!(pods[1].deletion_requested.unwrap() > pods[3].ready.unwrap());
    assert_eq!(extremes(&pods).2, 2);
}

#[test]
fn an_autoscaler_scales_a_stateful_set() {
    let hpa = "---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: web}\nspec:\n  \
        scaleTargetRef: {apiVersion: apps/v1, kind: StatefulSet, name: web}\n  minReplicas: 1\n  maxReplicas: 4\n  \
        metrics: [{type: External, external: {metric: {name: told}, target: {type: AverageValue, averageValue: 5}}}]\n";
    let told = "external_metrics: [{metric: told, values: [{at: 0s, value: 14}]}]";
    let outcome = run("20m", told, &format!("{}{}{hpa}", cluster(0), stateful(1, "one", "")), &[]);
    assert_eq!(there(&pods(&outcome, "web"), at(1_199)), (3, 3));
}

#[test]
fn a_changed_daemon_set_reaches_every_node_one_after_the_other() {
    let daemon = |image: &str| {
        format!(
            "---\napiVersion: apps/v1\nkind: DaemonSet\nmetadata: {{name: agent}}\nspec:\n  selector: {{matchLabels: {{app: agent}}}}\n  \
             template:\n    metadata: {{labels: {{app: agent}}}}\n    spec: {{containers: [{{name: a, image: {image}}}]}}\n"
        )
    };
    let three =
        cluster(0).replace("desiredCapacity: 1, minSize: 1, maxSize: 1", "desiredCapacity: 3, minSize: 3, maxSize: 3");
    let outcome = run("20m", LATER, &format!("{three}{}", daemon("one")), &[("later.yaml", &daemon("two"))]);
    let pods = pods(&outcome, "agent");
    assert_eq!((pods.len(), there(&pods, at(1_199))), (6, (3, 3)));
    assert_eq!(extremes(&pods).2, 2);
}

#[test]
fn a_pod_that_nothing_controls_runs_and_is_not_made_again() {
    let pod = |name: &str| {
        format!(
            "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, labels: {{app: lone}}}}\nspec:\n  \
             containers: [{{name: a, image: a, resources: {{requests: {{cpu: 1}}}}}}]\n"
        )
    };
    let owned = pod("owned").replace("labels:", "ownerReferences: [{kind: Job, name: j, controller: true}], labels:");
    let manifests = format!("{}{}{}{owned}", cluster(1), pod("one"), pod("two"));
    let outcome = run("20m", "", &manifests, &[]);
    let names: Vec<&str> = pods(&outcome, "(pods)").iter().map(|pod| pod.name.as_str()).collect();
    assert_eq!(names, ["one", "two"]);
    assert!(pods(&outcome, "(pods)").iter().all(|pod| pod.ready.is_some()));
    assert!(outcome.warnings.iter().any(|warning| warning.starts_with("1 pod(s) have ended or are controlled")));
}
