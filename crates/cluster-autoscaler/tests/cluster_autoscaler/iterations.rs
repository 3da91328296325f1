//! Whole iterations, and which pods they look at.

use std::sync::Arc;

use nodecast_cluster_autoscaler::view::{InstanceError, PodPlace};
use nodecast_cluster_autoscaler::{EarlyEnd, Iteration, ScaleDownResult, ScaleUpResult};
use nodecast_model::domain::{Labels, NodeId, PodSpec, Symbol};

use super::lab::{Lab, daemon, minutes, program, seconds, spec, taint, traits};

pub const ROWS: &[&str] = &[
    "D1", "D2", "D3", "D4", "D5", "D6", "D7", "D8", "D9", "D10", "D11", "D12", "D13", "D14", "E1", "E2", "E3", "E4",
    "E5",
];

/// A group with one full node, and a pod that needs another.
fn full(sizes: (i64, i64, i64)) -> Lab {
    let mut lab = Lab::default();
    let group = lab.group("ng1", sizes, 1_000, 1_000);
    let node = lab.node(group);
    lab.running("p1", node, 600, 100);
    lab.pending("p2", 1, 600, 100);
    lab
}

#[test]
fn a_full_cluster_does_not_grow() {
    let mut lab = full((1, 10, 1));
    let found = lab.run(&mut program(&[("max-nodes-total", "1")])).scale_up;
    assert_eq!((found.result, lab.cloud.calls.len()), (ScaleUpResult::LimitedByMaxNodesTotal, 0));
}

#[test]
fn cluster_scales_up_and_down_and_keeps_minimum() {
    let given = [
        ("scale-down-unneeded-time", "1m"),
        ("scale-down-delay-after-add", "0s"),
        ("max-node-provision-time", "10m"),
        ("enforce-node-group-min-size", "true"),
    ];
    let mut program = program(&given);
    let mut lab = full((1, 10, 1));
    lab.run(&mut program);
    assert_eq!(lab.cloud.calls, ["0 +1"]);
    // The node comes, and the pod is gone.
    lab.pods.pop();
    let fresh = lab.node(0);
    let found = lab.run_after(minutes(60), &mut program).scale_down;
    assert!(found.nodes[fresh].unneeded && found.deletions.is_empty());
    let found = lab.run_after(minutes(2), &mut program).scale_down;
    assert_eq!(found.deletions.iter().map(|deletion| deletion.node).collect::<Vec<_>>(), [fresh]);
    lab.nodes.pop();
    lab.cloud.targets[0] = 1;
    // A group whose second instance never registers.
    let other = lab.group("ng2", (0, 10, 2), 1_000, 1_000);
    let there = lab.node(other);
    lab.running("p3", there, 800, 100);
    lab.instance(other, "broken", None);
    lab.cloud.calls.clear();
    lab.run_after(minutes(1), &mut program);
    assert_eq!(lab.cloud.calls, Vec::<String>::new());
    lab.run_after(minutes(11), &mut program);
    assert_eq!(lab.cloud.calls, ["1 deletes broken"]);
    lab.groups[other].instances.clear();
    // A group below its minimum.
    let low = lab.group("ng3", (3, 10, 1), 1_000, 1_000);
    lab.node(low);
    lab.cloud.calls.clear();
    lab.run_after(minutes(1), &mut program);
    assert_eq!(lab.cloud.calls, ["2 +2"]);
}

/// A group at its minimum of two, with one node and an instance that never registers.
fn broken() -> Lab {
    let mut lab = full((2, 10, 2));
    lab.instance(0, "broken", None);
    lab
}

#[test]
fn unregistered_instance_is_deleted_above_minimum_size() {
    let mut lab = broken();
    lab.cloud.refuses_decrease = true;
    let mut steady = program(&[]);
    lab.run(&mut steady);
    assert_eq!(lab.cloud.calls, ["0 +1"], "the pod still needs a node");
    lab.run_after(minutes(16), &mut steady);
    assert_eq!(lab.cloud.calls.last().map(String::as_str), Some("0 deletes broken"));
    let mut lab = broken();
    lab.pods.pop();
    let mut forced = program(&[("force-delete-unregistered-nodes", "true")]);
    lab.run(&mut forced);
    lab.run_after(minutes(16), &mut forced);
    assert_eq!(lab.cloud.calls, ["0 deletes broken"]);
    let mut lab = broken();
    lab.pods.pop();
    let mut careful = program(&[]);
    lab.run(&mut careful);
    lab.run_after(minutes(16), &mut careful);
    assert!(lab.cloud.calls.is_empty(), "the group is at its minimum");
}

#[test]
fn starting_nodes_are_not_scale_down_candidates() {
    let run = |age| {
        let mut lab = Lab::default();
        let group = lab.group("ng1", (0, 10, 3), 1_000, 1_000);
        let busy = lab.node(group);
        lab.running("busy", busy, 900, 100);
        for _ in 0..2 {
            let node = lab.node(group);
            lab.unready(node, age);
        }
        let mut program = program(&[]);
        program.state_mut().register_scale_up(Symbol::new("ng1"), 2, super::lab::START);
        lab.run(&mut program).scale_down.nodes.iter().map(|node| node.utilization.is_some()).collect::<Vec<_>>()
    };
    assert_eq!(run(minutes(15) - seconds(1)), [true, false, false]);
    assert_eq!(run(minutes(15) + seconds(1)), [true, true, true]);
}

fn considered(found: &Iteration) -> usize {
    found.scale_up.considered.len()
}

#[test]
fn young_pods_wait_by_flag_or_annotation() {
    let with = |global: &str, text: &str, age| {
        let mut lab = Lab::default();
        lab.group("ng1", (0, 10, 0), 1_000, 1_000);
        let mut spec = spec("p", 500, 100);
        spec.annotations = Labels::new().with("cluster-autoscaler.kubernetes.io/pod-scale-up-delay", text);
        let pod = lab.pod(&traits("p", spec), PodPlace::Unschedulable);
        lab.pods[pod].created = super::lab::START - age;
        considered(&lab.run(&mut program(&[("new-pod-scale-up-delay", global)])))
    };
    assert_eq!(with("0s", "5m", minutes(1)), 0);
    assert_eq!(with("0s", "5m", minutes(5)), 0, "exactly as old does not do");
    assert_eq!(with("0s", "5m", minutes(5) + seconds(1)), 1);
    assert_eq!(with("5m", "2m", minutes(3)), 0, "a shorter delay is ignored");
    assert_eq!(with("0s", "soon", minutes(1)), 1, "so is one that cannot be read");
}

#[test]
fn pods_below_the_cutoff_neither_block_nor_occupy() {
    let mut lab = Lab::default();
    let group = lab.group("ng1", (0, 10, 2), 1_000, 1_000);
    let (n1, n2) = (lab.node(group), lab.node(group));
    let of = |priority: i32| {
        let mut spec = spec("p", 500, 100);
        spec.priority = priority;
        traits(&format!("p{priority}"), spec)
    };
    lab.pod(&of(1), PodPlace::Bound(lab.nodes[n1].id));
    lab.pod(&of(100), PodPlace::Bound(lab.nodes[n2].id));
    lab.pod(&of(1), PodPlace::Unschedulable);
    for _ in 0..4 {
        lab.pod(&of(100), PodPlace::Unschedulable);
    }
    let found = lab.run(&mut program(&[("expendable-pods-priority-cutoff", "10")]));
    // Two fit on the first node, whose pod does not count, and one on the second.
    assert_eq!(considered(&found), 1);
    assert_eq!(lab.cloud.targets, [3]);
}

#[test]
fn a_nominated_pod_is_as_good_as_placed() {
    let mut lab = full((1, 10, 1));
    let id = lab.nodes[0].id;
    lab.pods[1].place = PodPlace::Nominated(id);
    let found = lab.run(&mut program(&[])).scale_up;
    assert_eq!((found.result, lab.cloud.calls.len()), (ScaleUpResult::NotNeeded, 0));
}

#[test]
fn unprocessed_pods_of_bypassed_schedulers_are_considered() {
    let run = |flag: &str| {
        let mut lab = full((1, 10, 1));
        lab.pods[1].place = PodPlace::Unprocessed;
        considered(&lab.run(&mut program(&[("bypassed-scheduler-names", flag)])))
    };
    assert_eq!((run("default-scheduler"), run("another")), (1, 0));
}

#[test]
fn delays_of_one_group_leave_the_others_alone() {
    let run = |change: fn(&mut nodecast_cluster_autoscaler::cluster_state::ClusterState)| {
        let mut lab = Lab::default();
        for id in ["ng1", "ng2"] {
            let group = lab.group(id, (0, 10, 1), 1_000, 1_000);
            lab.node(group);
        }
        let given = [
            ("scale-down-delay-type-local", "true"),
            ("scale-down-delay-after-add", "10m"),
            ("scale-down-delay-after-delete", "10m"),
            ("scale-down-delay-after-failure", "10m"),
        ];
        let mut program = program(&given);
        change(program.state_mut());
        lab.elapsed = minutes(5);
        let found = lab.run(&mut program).scale_down;
        found.nodes.iter().map(|node| node.unneeded).collect::<Vec<_>>()
    };
    assert_eq!(run(|_| {}), [true, true]);
    assert_eq!(run(|state| state.register_scale_up(Symbol::new("ng1"), 1, super::lab::START)), [false, true]);
    assert_eq!(run(|state| state.register_scale_down(Symbol::new("ng1"), super::lab::START)), [false, true]);
    assert_eq!(run(|state| state.register_failed_scale_down(Symbol::new("ng1"), super::lab::START)), [false, true]);
}

#[test]
fn failed_instances_are_deleted_and_counted_once() {
    let mut lab = Lab::default();
    let group = lab.group("A", (0, 10, 6), 1_000, 1_000);
    let node = lab.node(group);
    lab.instance(group, "A1", None);
    lab.groups[group].instances[0].node = Some(lab.nodes[node].id);
    lab.instance(group, "A2", None);
    let errors = [
        ("A3", InstanceError::OutOfResources),
        ("A4", InstanceError::OutOfResources),
        ("A5", InstanceError::QuotaExceeded),
        ("A6", InstanceError::Other),
    ];
    errors.iter().for_each(|(id, error)| lab.instance(group, id, Some(*error)));
    let mut program = program(&[("scale-down-enabled", "false")]);
    program.state_mut().register_scale_up(Symbol::new("A"), 5, super::lab::START);
    let first = lab.run(&mut program);
    assert_eq!(lab.cloud.calls, ["0 deletes A3 A4 A5 A6"]);
    assert_eq!(first.failures.len(), 3, "one for each kind of error");
    assert!(program.state().is_backed_off(Symbol::new("A"), lab.now()));
    let second = lab.run_after(seconds(10), &mut program);
    assert_eq!((lab.cloud.calls.len(), second.failures.len()), (2, 0));
}

#[test]
fn persistent_wrong_size_is_fixed_ending_iteration() {
    let mut lab = Lab::default();
    let group = lab.group("ng1", (0, 10, 3), 1_000, 1_000);
    lab.node(group);
    let mut program = program(&[]);
    assert_eq!(lab.run(&mut program).early_end, None);
    assert_eq!(lab.run_after(minutes(15), &mut program).early_end, None);
    let found = lab.run_after(seconds(1), &mut program);
    assert_eq!((found.early_end, &lab.cloud.calls[..]), (Some(EarlyEnd::FixedSize), &["0 -2".to_owned()][..]));
}

#[test]
fn unregistered_instance_waits_for_provision_time() {
    let mut lab = Lab::default();
    let group = lab.group("ng1", (0, 10, 1), 1_000, 1_000);
    lab.instance(group, "slow", None);
    let mut program = program(&[]);
    lab.run(&mut program);
    lab.run_after(minutes(10), &mut program);
    assert!(lab.cloud.calls.is_empty());
    lab.run_after(minutes(6), &mut program);
    assert_eq!(lab.cloud.calls, ["0 deletes slow"]);
}

#[test]
fn soft_taints_follow_need_within_groups_only() {
    let mut lab = Lab::default();
    let group = lab.group("ng1", (0, 10, 2), 1_000, 1_000);
    let (needed, idle) = (lab.node(group), lab.node(group));
    let outside = lab.lone_node(1_000, 1_000);
    lab.running("busy", needed, 900, 100);
    for node in [needed, outside] {
        lab.nodes[node].taints.push(taint("DeletionCandidateOfClusterAutoscaler"));
    }
    let mut steady = program(&[]);
    let found = lab.run(&mut steady);
    let ids = |nodes: &[usize]| nodes.iter().map(|&node| lab.nodes[node].id).collect::<Vec<NodeId>>();
    assert_eq!((found.soft_taints.removed, found.soft_taints.added), (ids(&[needed]), ids(&[idle])));
    // In cooldown and without any candidate too.
    lab.groups[group].min = 2;
    let found = lab.run(&mut program(&[]));
    assert_eq!(found.scale_down.result, ScaleDownResult::NoCandidates);
    assert_eq!(found.soft_taints.removed, [lab.nodes[needed].id]);
}

#[test]
fn new_pods_delay_scaling_but_not_timers() {
    let mut lab = full((1, 10, 2));
    let idle = lab.node(0);
    lab.pods[1].created = super::lab::START - seconds(1);
    lab.pods[1].traits = traits("p2", spec("p2", 2_000, 100));
    let mut program = program(&[("scale-down-unneeded-time", "0s")]);
    let found = lab.run(&mut program);
    assert_eq!(found.scale_up.result, ScaleUpResult::InCooldown);
    assert_eq!((found.scale_down.result, lab.cloud.calls.len()), (ScaleDownResult::InCooldown, 0));
    let found = lab.run_after(seconds(10), &mut program);
    assert_eq!(found.scale_down.deletions.iter().map(|deletion| deletion.node).collect::<Vec<_>>(), [idle]);
    assert_eq!(program.planner().unneeded_since(lab.nodes[idle].id), Some(super::lab::START));
}

/// Pods of these sizes and priorities that stay on the list, with a node of two CPUs of which `used` are taken.
fn left_on_list(used: i64, pods: &[(i64, i32)]) -> Vec<usize> {
    let mut lab = Lab::default();
    let group = lab.group("ng1", (1, 10, 1), 2_000, 1_000);
    let node = lab.node(group);
    if used > 0 {
        lab.running("used", node, used, 0);
    }
    let first = lab.pods.len();
    for (at, (milli_cpu, priority)) in pods.iter().enumerate() {
        let mut spec = spec("p", *milli_cpu, 0);
        spec.priority = *priority;
        lab.pod(&traits(&format!("p{at}"), spec), PodPlace::Unschedulable);
    }
    let found = lab.run(&mut program(&[("scale-down-enabled", "false")]));
    found.scale_up.considered.iter().map(|pod| pod - first).collect()
}

#[test]
fn schedulable_pods_leave_pending_list_by_priority() {
    assert_eq!(left_on_list(0, &[(200, 0), (500, 0), (1_800, 0)]), [2]);
    assert_eq!(left_on_list(0, &[(200, 0), (500, 10), (1_800, 20)]), [1]);
    assert_eq!(left_on_list(500, &[(1_000, 0), (300, 0), (300, 0)]), [2]);
}

#[test]
fn pods_of_draining_node_count_as_pending() {
    let mut lab = Lab::default();
    let group = lab.group("ng1", (0, 10, 2), 1_000, 1_000);
    let (draining, other) = (lab.node(group), lab.node(group));
    lab.nodes[draining].taints.push(taint("ToBeDeletedByClusterAutoscaler"));
    lab.running("other", other, 900, 0);
    let moving = lab.running("moving", draining, 300, 0);
    let ending = lab.running("ending", draining, 100, 0);
    lab.pods[ending].deleted_at = Some(super::lab::START);
    let place = PodPlace::Bound(lab.nodes[draining].id);
    lab.pod(&daemon("agent", 10, 0), place);
    for annotation in ["kubernetes.io/config.mirror", "kubernetes.io/config.source"] {
        let mut spec = spec("static", 10, 0);
        spec.annotations = Labels::new().with(annotation, "file");
        lab.pod(&traits("static", spec), place);
    }
    lab.deletions.drained.push(lab.nodes[draining].id);
    assert_eq!(lab.run(&mut program(&[])).scale_up.considered, [moving]);
    lab.deletions.drained.clear();
    assert_eq!(lab.run(&mut program(&[])).scale_up.considered, Vec::<usize>::new());
    lab.deletions.empty.push(lab.nodes[draining].id);
    assert_eq!(lab.run(&mut program(&[])).scale_up.considered, Vec::<usize>::new());
}

#[test]
fn the_cutoff_itself_is_not_below_the_cutoff() {
    let mut lab = Lab::default();
    lab.group("ng1", (0, 10, 0), 10_000, 1_000);
    let mut add = |priority: i32, stated: bool| {
        let spec = PodSpec { priority, ..spec("p", 100, 0) };
        let mut traits = (*traits(&format!("p{priority}{stated}"), spec)).clone();
        traits.has_priority = stated;
        lab.pod(&Arc::new(traits), PodPlace::Unschedulable)
    };
    let (at, below, none) = (add(2, true), add(1, true), add(0, false));
    let found = lab.run(&mut program(&[("expendable-pods-priority-cutoff", "2")]));
    assert!(!found.scale_up.considered.contains(&below));
    assert_eq!(found.scale_up.considered, [at, none]);
}

#[test]
fn terminating_daemon_is_not_on_template() {
    let run = |ending: bool| {
        let mut lab = Lab::default();
        let group = lab.group("ng1", (0, 10, 1), 1_000, 1_000);
        let node = lab.node(group);
        lab.running("full", node, 500, 0);
        let agent = lab.pod(&daemon("agent", 500, 0), PodPlace::Bound(lab.nodes[node].id));
        lab.pods[agent].deleted_at = ending.then_some(super::lab::START);
        lab.pending("new", 2, 500, 0);
        lab.run(&mut program(&[])).scale_up.options[0].nodes
    };
    assert_eq!((run(false), run(true)), (2, 1));
}
