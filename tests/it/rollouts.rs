//! Rollouts by what their strategies allow, and those that get stuck; daemons that come back.

use nodecast::world::record::EventKind;

use crate::keda::{cluster, run};
use crate::workloads::{LATER, at, count, daemon_set, extremes, noted, pods, slow, stateful, there, update_daemons};

#[test]
fn a_daemon_set_that_surges_keeps_a_ready_pod_on_every_node() {
    let strategy =
        |surge: u32| format!("  updateStrategy: {{rollingUpdate: {{maxSurge: {surge}, maxUnavailable: 0}}}}\n");
    for (surge, most) in [(1, 4), (2, 5)] {
        let outcome = update_daemons(&strategy(surge), 3);
        let pods = pods(&outcome, "agent");
        let (found, fewest, ready) = extremes(&pods);
        assert_eq!((pods.len(), found, fewest, ready), (6, most, 3, 3), "{surge}");
        assert_eq!(there(&pods, at(1_199)), (3, 3));
        assert_eq!(count(&outcome, EventKind::RolloutFinished), 1);
    }
}

#[test]
fn a_daemon_that_is_preempted_comes_back_to_its_node() {
    let urgent = "---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: urgent}\nvalue: 1000\n---\n\
                  apiVersion: v1\nkind: Pod\nmetadata: {name: urgent}\nspec: {priorityClassName: urgent, \
                  containers: [{name: a, image: one, resources: {requests: {cpu: 10}}}]}\n";
    let manifests = format!("{}{}", cluster(0), daemon_set("", "image: one, resources: {requests: {cpu: 10}}"));
    let outcome = run("20m", LATER, &manifests, &[("later.yaml", urgent)]);
    let pods = pods(&outcome, "agent");
    assert_eq!(pods.len(), 2, "one is evicted, one waits for its place");
    assert!(pods[0].removed.is_some() && pods[1].scheduled.is_none() && pods[1].deletion_requested.is_none());
}

#[test]
fn a_stateful_set_updates_as_many_pods_at_once_as_may_be_unavailable() {
    let strategy = "  podManagementPolicy: Parallel\n  updateStrategy: {rollingUpdate: {maxUnavailable: 2}}\n";
    let run_with = |rest: &str| {
        let rest = format!("{LATER}\n{rest}");
        let first = format!("{}{}", cluster(0), stateful(5, "one", strategy));
        run("20m", &rest, &first, &[("later.yaml", &stateful(5, "two", strategy))])
    };
    let fewest_ready = |rest: &str| {
        let outcome = run_with(rest);
        let pods = pods(&outcome, "web");
        assert_eq!(pods.len(), 10);
        extremes(&pods).2
    };
    assert_eq!(fewest_ready(""), 3);
    assert_eq!(fewest_ready("versions: {kubernetes: '1.34'}"), 4, "the field counts from 1.35 on");
}

#[test]
fn a_rollout_that_makes_no_progress_is_reported_after_its_deadline() {
    let impossible =
        |rest: &str| slow(2, "two", rest).replace("containers:", "nodeSelector: {disk: none}\n      containers:");
    let stalled = |strategy: &str, later: &str| {
        let first = format!("{}{}", cluster(0), slow(2, "one", strategy));
        let outcome = run("30m", LATER, &first, &[("later.yaml", later)]);
        let notes = noted(&outcome, EventKind::RolloutStalled);
        notes.into_iter().map(|(at, text)| (at, text.to_owned())).collect::<Vec<_>>()
    };
    let strategy = "  progressDeadlineSeconds: 120\n";
    assert_eq!(
        stalled(strategy, &impossible(strategy)),
        [(
            720,
            "ProgressDeadlineExceeded: nothing has moved for 2m, with 1 pods of revision 2 and 2 of others, 2 of all available"
                .to_owned()
        )]
    );
    let by_default = stalled("", &impossible(""));
    assert_eq!(by_default.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [1_200]);
    assert!(stalled(strategy, &slow(2, "two", strategy)).is_empty(), "this one gets on");
}
