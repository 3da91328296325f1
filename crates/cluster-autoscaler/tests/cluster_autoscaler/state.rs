//! What the autoscaler remembers of its groups.

use nodecast_cluster_autoscaler::backoff::{Backoff, BackoffTimes};
use nodecast_cluster_autoscaler::cluster_state::{ClusterState, FailureReason};
use nodecast_cluster_autoscaler::templates::is_ready;
use nodecast_model::domain::{SimDuration, SimTime, Symbol};

use super::lab::{Cloud, Lab, START, flags, minutes, seconds, taint};

pub const ROWS: &[&str] =
    &["I1", "I2", "I3", "I4", "I5", "I6", "I7", "I8", "I9", "I10", "I11", "I12", "I13", "I14", "I15"];

const ALLOWED: &[(&str, &str)] = &[("ok-total-unready-count", "1"), ("max-total-unready-percentage", "10")];

fn state(given: &[(&str, &str)]) -> ClusterState {
    ClusterState::new(&flags(given))
}

fn name(text: &str) -> Symbol {
    Symbol::new(text)
}

fn update(state: &mut ClusterState, lab: &mut Lab) {
    let now = lab.now();
    let mut cloud = std::mem::take(&mut lab.cloud);
    state.update(&lab.groups, &lab.nodes, is_ready, &mut cloud, now);
    lab.cloud = cloud;
}

/// A group with so many ready nodes.
fn group(lab: &mut Lab, id: &str, target: i64, ready: usize) -> usize {
    let group = lab.group(id, (0, 10, target), 1_000, 1_000);
    for _ in 0..ready {
        lab.node(group);
    }
    group
}

fn upcoming(state: &ClusterState, lab: &Lab) -> Vec<(usize, i64, usize)> {
    let all = state.upcoming(&lab.groups, lab.now());
    all.into_iter().map(|upcoming| (upcoming.group, upcoming.nodes, upcoming.registered.len())).collect()
}

#[test]
fn requested_nodes_keep_group_healthy() {
    for (asked, healthy) in [(4, true), (0, false)] {
        let mut lab = Lab::default();
        group(&mut lab, "ng1", 1, 1);
        lab.cloud.targets[0] = 5;
        group(&mut lab, "ng2", 1, 1);
        let mut state = state(ALLOWED);
        if asked > 0 {
            state.register_scale_up(name("ng1"), asked, START);
        }
        update(&mut state, &mut lab);
        assert!(state.is_cluster_healthy());
        assert_eq!(state.is_group_healthy(name("ng1")), healthy);
        assert_eq!(state.is_scaling_up(name("ng1")), asked > 0);
        assert!(!state.is_scaling_up(name("ng2")) && state.is_group_healthy(name("ng2")));
    }
}

#[test]
fn unready_nodes_make_cluster_unhealthy_first() {
    let mut lab = Lab::default();
    for id in ["ng1", "ng2"] {
        group(&mut lab, id, 1, 1);
    }
    lab.unready(0, minutes(60));
    lab.unready(1, minutes(60));
    let mut state = state(ALLOWED);
    update(&mut state, &mut lab);
    assert!(!state.is_cluster_healthy() && state.is_group_healthy(name("ng1")));
}

#[test]
fn node_is_not_unready_during_startup_time() {
    for (limit, unready, not_started) in [("15m", 1, 0), ("35m", 0, 1)] {
        let mut lab = Lab::default();
        group(&mut lab, "ng1", 1, 1);
        lab.unready(0, minutes(30));
        let mut state = state(&[("max-node-startup-time", limit)]);
        update(&mut state, &mut lab);
        let readiness = state.readiness(name("ng1")).unwrap();
        assert_eq!((readiness.unready.len(), readiness.not_started.len()), (unready, not_started));
        assert!(upcoming(&state, &lab).is_empty());
    }
}

#[test]
fn node_is_ready_without_not_ready_taint() {
    let mut lab = Lab::default();
    group(&mut lab, "ng1", 1, 1);
    lab.nodes[0].created = START;
    lab.nodes[0].taints.push(taint("node.kubernetes.io/not-ready"));
    let mut state = state(&[]);
    update(&mut state, &mut lab);
    assert_eq!(state.readiness(name("ng1")).unwrap().not_started.len(), 1);
    lab.nodes[0].taints.clear();
    update(&mut state, &mut lab);
    assert_eq!(state.readiness(name("ng1")).unwrap().ready.len(), 1);
}

#[test]
fn an_empty_group_is_healthy_asked_or_not() {
    let mut lab = Lab::default();
    group(&mut lab, "ng1", 0, 0);
    let mut state = state(ALLOWED);
    update(&mut state, &mut lab);
    assert!(state.is_group_healthy(name("ng1")) && !state.is_scaling_up(name("ng1")));
    lab.cloud.targets[0] = 3;
    state.register_scale_up(name("ng1"), 3, START);
    update(&mut state, &mut lab);
    assert!(state.is_group_healthy(name("ng1")) && state.is_scaling_up(name("ng1")));
}

#[test]
fn upcoming_nodes_are_target_minus_ready_and_late() {
    let mut lab = Lab::default();
    let sizes = [("ng1", 7, 1), ("ng2", 2, 1), ("ng3", 2, 1), ("ng4", 1, 1), ("ng5", 2, 2)];
    for (id, target, nodes) in sizes {
        group(&mut lab, id, target, nodes);
    }
    lab.unready(1, minutes(60));
    lab.unready(2, minutes(1));
    lab.unready(3, minutes(60));
    lab.nodes[5].taints.push(taint("ToBeDeletedByClusterAutoscaler"));
    let mut state = state(&[]);
    for (id, asked) in [("ng1", 6), ("ng2", 1), ("ng3", 2)] {
        state.register_scale_up(name(id), asked, START);
    }
    update(&mut state, &mut lab);
    assert_eq!(upcoming(&state, &lab), [(0, 6, 0), (1, 1, 0), (2, 2, 1)]);
}

#[test]
fn unrequested_or_failed_nodes_are_not_upcoming() {
    let mut lab = Lab::default();
    group(&mut lab, "ng1", 3, 1);
    let mut state = state(&[]);
    update(&mut state, &mut lab);
    assert!(upcoming(&state, &lab).is_empty());
    state.register_scale_up(name("ng1"), 2, START);
    update(&mut state, &mut lab);
    assert_eq!(upcoming(&state, &lab), [(0, 2, 0)]);
    state.register_failure(name("ng1"), FailureReason::Api, 2, START);
    assert!(upcoming(&state, &lab).is_empty());
}

#[test]
fn instance_is_upcoming_until_late() {
    let mut lab = Lab::default();
    let ng1 = group(&mut lab, "ng1", 2, 1);
    lab.instance(ng1, "slow", None);
    let mut state = state(&[("max-node-provision-time", "10s")]);
    state.register_scale_up(name("ng1"), 1, START);
    update(&mut state, &mut lab);
    assert_eq!(upcoming(&state, &lab), [(0, 1, 0)]);
    lab.elapsed = seconds(11);
    state.register_scale_up(name("ng1"), 1, lab.now());
    update(&mut state, &mut lab);
    assert!(upcoming(&state, &lab).is_empty());
    assert_eq!(state.long_unregistered(name("ng1")).len(), 1);
    let node = lab.node(ng1);
    lab.groups[ng1].instances[0].node = Some(lab.nodes[node].id);
    update(&mut state, &mut lab);
    assert!(state.long_unregistered(name("ng1")).is_empty() && upcoming(&state, &lab).is_empty());
}

#[test]
fn late_scale_up_fails_and_reverts_once() {
    for refused in [false, true] {
        let mut lab = Lab::default();
        group(&mut lab, "ng1", 5, 3);
        lab.cloud.refuses_decrease = refused;
        let mut state = state(&[("max-node-provision-time", "2m")]);
        state.register_scale_up(name("ng1"), 4, START - minutes(3));
        update(&mut state, &mut lab);
        let failures = state.take_failures();
        assert_eq!(failures.iter().map(|f| (f.reason, f.increase)).collect::<Vec<_>>(), [(FailureReason::Timeout, 4)]);
        assert_eq!((state.request(name("ng1")), &lab.cloud.calls[..]), (None, &["0 -4".to_owned()][..]));
        update(&mut state, &mut lab);
        assert_eq!(lab.cloud.calls.len(), 1);
    }
}

#[test]
fn second_failure_doubles_backoff_despite_success() {
    let mut lab = Lab::default();
    group(&mut lab, "ng1", 4, 3);
    lab.cloud = Cloud { refuses_decrease: true, targets: vec![4], ..Cloud::default() };
    let mut state = state(&[("max-node-provision-time", "2m")]);
    state.register_scale_up(name("ng1"), 1, START - minutes(3));
    update(&mut state, &mut lab);
    let backed_off = |state: &ClusterState, at: SimTime| state.is_backed_off(name("ng1"), at);
    assert!(state.is_group_healthy(name("ng1")) && backed_off(&state, START));
    let later = START + minutes(5) + seconds(1);
    assert!(!backed_off(&state, later));
    // It fails again.
    state.register_scale_up(name("ng1"), 1, later - minutes(3));
    lab.elapsed = minutes(5) + seconds(1);
    update(&mut state, &mut lab);
    assert!(backed_off(&state, later + minutes(5) + seconds(1)));
    // It grows.
    lab.node(0);
    state.register_scale_up(name("ng1"), 1, later);
    lab.elapsed = minutes(6);
    update(&mut state, &mut lab);
    assert_eq!(state.request(name("ng1")), None);
    assert!(backed_off(&state, lab.now()));
}

#[test]
fn backoff_ignores_repeated_and_forgets_old_failures() {
    let short = BackoffTimes { initial: seconds(1), ..BackoffTimes::default() };
    let mut backoff = Backoff::new(short);
    let (name, millis) = (name("ng"), |millis| START + SimDuration::from_millis(millis));
    assert_eq!(backoff.fail(name, millis(0)), millis(1_000));
    assert!(backoff.holds(name, millis(999)) && !backoff.holds(name, millis(1_001)));
    assert_eq!(backoff.fail(name, millis(1_001)), millis(3_001));
    assert_eq!(backoff.fail(name, millis(2_001)), millis(4_001), "counted from the beginning, no longer");
    backoff.forget_stale(millis(2_001) + minutes(180));
    assert_eq!(backoff.fail(name, millis(2_002) + minutes(180)), millis(6_002) + minutes(180), "still known");
    backoff.forget_stale(START + minutes(400));
    assert_eq!(backoff.fail(name, START + minutes(400)), START + minutes(400) + seconds(1));
}

#[test]
fn wrong_size_is_dated_from_first_observation() {
    let mut lab = Lab::default();
    let ng1 = group(&mut lab, "ng1", 5, 1);
    let mut state = state(&[]);
    let mut seen = |lab: &mut Lab, at: i64| {
        lab.elapsed = minutes(at);
        update(&mut state, lab);
        state.incorrect_size(name("ng1")).map(|wrong| (wrong.current, wrong.expected, wrong.since))
    };
    assert_eq!(seen(&mut lab, 0), Some((1, 5, START)));
    assert_eq!(seen(&mut lab, 1), Some((1, 5, START)));
    lab.node(ng1);
    assert_eq!(seen(&mut lab, 2), Some((2, 5, START + minutes(2))));
}

#[test]
fn instances_on_their_way_explain_a_difference() {
    let mut lab = Lab::default();
    let ng1 = group(&mut lab, "ng1", 10, 8);
    lab.instance(ng1, "new", None);
    lab.instance(ng1, "old", None);
    let mut state = state(&[]);
    update(&mut state, &mut lab);
    lab.elapsed = minutes(20);
    lab.groups[ng1].instances[0].id = "newer".into();
    update(&mut state, &mut lab);
    let readiness = state.readiness(name("ng1")).unwrap();
    assert_eq!((readiness.unregistered.len(), readiness.long_unregistered.len()), (1, 1));
    assert_eq!(state.incorrect_size(name("ng1")), None);
}

#[test]
fn acceptable_range_widens_during_scaling() {
    let mut lab = Lab::default();
    let ng1 = group(&mut lab, "ng1", 10, 5);
    (0..3).for_each(|at| lab.instance(ng1, &format!("slow-{at}"), None));
    let mut state = state(&[]);
    let range = |state: &mut ClusterState, lab: &mut Lab| {
        update(state, lab);
        let range = state.acceptable_range(name("ng1")).unwrap();
        (range.min, range.max)
    };
    assert_eq!(range(&mut state, &mut lab), (10, 10));
    lab.elapsed = minutes(16);
    assert_eq!(range(&mut state, &mut lab), (7, 10), "three have been on their way for too long");
    state.register_scale_up(name("ng1"), 2, lab.now());
    state.register_scale_down(name("ng1"), lab.now());
    state.register_scale_down(name("ng1"), lab.now() - minutes(4));
    assert_eq!(range(&mut state, &mut lab), (5, 12));
    lab.elapsed += minutes(3);
    assert_eq!(range(&mut state, &mut lab), (5, 11));
}
