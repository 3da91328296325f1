//! What keeps pods on their nodes, and how many nodes go at once.

use nodecast_cluster_autoscaler::budgets::{RemainingBudgets, crop};
use nodecast_cluster_autoscaler::drainability::{BlockingReason as Because, Drainability, drainability};
use nodecast_cluster_autoscaler::view::{ControllerKind, Deletions, PodPlace, PodTraits, RestartPolicy};
use nodecast_model::domain::pod::PodPhase;
use nodecast_model::domain::{Labels, NodeId, Symbol};

use super::lab::{Lab, START, controller, flags, minutes, spec, traits};

pub const ROWS: &[&str] = &["J14", "K1", "K2", "K3", "K4", "K5"];

/// What draining does with a pod of a ReplicaSet after it was changed.
fn drain(change: impl FnOnce(&mut PodTraits), budgets: &[(&str, i64)], given: &[(&str, &str)]) -> Drainability {
    let mut traits = (*traits("a", spec("a", 100, 0))).clone();
    change(&mut traits);
    let mut lab = Lab::default();
    for (namespace, allowed) in budgets {
        lab.budget("a", *allowed);
        lab.budgets.last_mut().unwrap().namespace = Symbol::new(namespace);
    }
    lab.pod(&std::sync::Arc::new(traits), PodPlace::Unschedulable);
    drainability(&flags(given), &lab.pods[0], &RemainingBudgets::new(&lab.budgets), START)
}

fn annotate(pod_traits: &mut PodTraits, key: &str, value: &str) {
    let key = format!("cluster-autoscaler.kubernetes.io/{key}");
    let annotations = Labels::new().with(key.as_str(), value);
    pod_traits.spec =
        std::sync::Arc::new(nodecast_model::domain::PodSpec { annotations, ..(*pod_traits.spec).clone() });
}

fn in_kube_system(pod_traits: &mut PodTraits) {
    pod_traits.namespace = Symbol::new("kube-system");
}

fn local(pod_traits: &mut PodTraits) {
    pod_traits.local_volumes = vec![Symbol::new("scratch"), Symbol::new("cache")];
}

const BLOCKS: fn(Because) -> Drainability = Drainability::Blocks;
const MOVES: Drainability = Drainability::Movable;

#[test]
fn pods_that_nothing_would_start_again_block() {
    assert_eq!(drain(|pod_traits| pod_traits.controller = None, &[], &[]), BLOCKS(Because::NotReplicated));
    use ControllerKind::{Job, ReplicaSet, ReplicationController, StatefulSet};
    for kind in [ReplicaSet, StatefulSet, Job, ReplicationController] {
        assert_eq!(drain(|pod_traits| pod_traits.controller = Some(controller(kind, "a")), &[], &[]), MOVES);
        let missing = |pod_traits: &mut PodTraits| pod_traits.controller.as_mut().unwrap().exists = false;
        let of_kind = |pod_traits: &mut PodTraits| {
            pod_traits.controller = Some(controller(kind, "a"));
            missing(pod_traits);
        };
        assert_eq!(drain(of_kind, &[], &[]), BLOCKS(Because::ControllerNotFound));
    }
    let custom = |pod_traits: &mut PodTraits| pod_traits.controller = Some(controller(ControllerKind::Other, "a"));
    assert_eq!(drain(custom, &[], &[]), BLOCKS(Because::NotReplicated));
    assert_eq!(drain(custom, &[], &[("skip-nodes-with-custom-controller-pods", "false")]), MOVES);
    assert_eq!(drain(|_| {}, &[], &[("min-replica-count", "2")]), BLOCKS(Because::MinReplicasReached));
}

#[test]
fn system_pods_block_drain_unless_budget_covers() {
    assert_eq!(drain(in_kube_system, &[], &[]), BLOCKS(Because::UnmovableKubeSystemPod));
    assert_eq!(drain(in_kube_system, &[("kube-system", 1)], &[]), MOVES);
    assert_eq!(drain(in_kube_system, &[("default", 1)], &[]), BLOCKS(Because::UnmovableKubeSystemPod));
    assert_eq!(drain(in_kube_system, &[], &[("skip-nodes-with-system-pods", "false")]), MOVES);
    // Ten minutes old, and then even local data does not matter.
    let timeout = [("blocking-system-pod-distruption-timeout", "9m")];
    let with_data = |pod_traits: &mut PodTraits| {
        in_kube_system(pod_traits);
        local(pod_traits);
    };
    assert_eq!(drain(with_data, &[], &timeout), MOVES);
}

#[test]
fn local_data_blocks_drain_unless_safe_to_evict() {
    assert_eq!(drain(local, &[], &[]), BLOCKS(Because::LocalStorageRequested));
    assert_eq!(drain(local, &[], &[("skip-nodes-with-local-storage", "false")]), MOVES);
    let excepted = |names: &'static str| {
        move |pod_traits: &mut PodTraits| {
            local(pod_traits);
            annotate(pod_traits, "safe-to-evict-local-volumes", names);
        }
    };
    assert_eq!(drain(excepted("scratch,cache"), &[], &[]), MOVES);
    assert_eq!(drain(excepted("scratch"), &[], &[]), BLOCKS(Because::LocalStorageRequested));
    assert_eq!(drain(|_| {}, &[("default", 0)], &[]), BLOCKS(Because::NotEnoughPdb));
    assert_eq!(drain(|_| {}, &[("default", 1)], &[]), MOVES);
    assert_eq!(drain(|_| {}, &[("elsewhere", 0)], &[]), MOVES);
    let unsafe_pod = |pod_traits: &mut PodTraits| annotate(pod_traits, "safe-to-evict", "false");
    assert_eq!(drain(unsafe_pod, &[], &[]), BLOCKS(Because::NotSafeToEvictAnnotation));
    let safe = |pod_traits: &mut PodTraits| {
        in_kube_system(pod_traits);
        local(pod_traits);
        pod_traits.controller = None;
        annotate(pod_traits, "safe-to-evict", "true");
    };
    assert_eq!(drain(safe, &[("kube-system", 0)], &[]), MOVES);
}

#[test]
fn finished_pods_do_not_block() {
    let finished = |phase, policy| {
        let mut traits = (*traits("a", spec("a", 100, 0))).clone();
        (traits.controller, traits.restart_policy) = (None, policy);
        let mut lab = Lab::default();
        lab.pod(&std::sync::Arc::new(traits), PodPlace::Unschedulable);
        lab.pods[0].phase = phase;
        drainability(&flags(&[]), &lab.pods[0], &RemainingBudgets::new(&[]), START)
    };
    for (phase, policy) in [
        (PodPhase::Failed, RestartPolicy::Always),
        (PodPhase::Succeeded, RestartPolicy::OnFailure),
        (PodPhase::Succeeded, RestartPolicy::Never),
    ] {
        assert_eq!(finished(phase, policy), MOVES);
    }
    assert_eq!(finished(PodPhase::Running, RestartPolicy::Never), BLOCKS(Because::NotReplicated));
    let mut lab = Lab::default();
    lab.pod(&traits("a", spec("a", 100, 0)), PodPlace::Unschedulable);
    lab.pods[0].deleted_at = Some(START - minutes(2));
    assert_eq!(drainability(&flags(&[]), &lab.pods[0], &RemainingBudgets::new(&[]), START), Drainability::Skipped);
}

/// How many of these empty nodes and nodes to drain go, with so many under way; five may be drained at once.
fn cropped(empty: usize, drain: usize, under_way: (usize, usize)) -> (usize, usize) {
    let flags = flags(&[("max-drain-parallelism", "5")]);
    let ids = |count: usize, from: u32| (0..count as u32).map(|at| NodeId(from + at)).collect();
    let deletions = Deletions { empty: ids(under_way.0, 1_000), drained: ids(under_way.1, 2_000) };
    let nodes = |count: usize| (0..count).map(|at| (0, at)).collect::<Vec<_>>();
    let (empty, drain) = crop(&flags, &deletions, &nodes(empty), &nodes(drain));
    (empty.len(), drain.len())
}

#[test]
fn ten_deletions_in_parallel_with_five_drains() {
    assert_eq!(cropped(11, 0, (0, 0)), (10, 0));
    assert_eq!(cropped(10, 0, (1, 1)), (8, 0));
    assert_eq!(cropped(10, 0, (5, 5)), (0, 0));
    assert_eq!(cropped(10, 3, (8, 5)), (0, 0), "more than ten are under way");
    assert_eq!(cropped(0, 6, (0, 0)), (0, 5));
    assert_eq!(cropped(0, 6, (0, 2)), (0, 3));
    assert_eq!(cropped(0, 4, (7, 1)), (0, 2));
    assert_eq!(cropped(8, 8, (0, 0)), (8, 2));
    assert_eq!(cropped(2, 8, (0, 0)), (2, 5));
}

#[test]
fn one_group_is_finished_before_the_next_begins() {
    let flags = flags(&[("max-drain-parallelism", "5")]);
    let mixed: Vec<(usize, (usize, usize))> = (0..10).map(|at| (at % 2, (at % 2, at))).collect();
    let (_, drain) = crop(&flags, &Deletions::default(), &[], &mixed);
    assert_eq!(drain.iter().map(|node| node.0).collect::<Vec<_>>(), [0; 5]);
    let (_, one) = crop(&super::lab::flags(&[]), &Deletions::default(), &[], &mixed);
    assert_eq!(one.len(), 1, "unless told otherwise");
}
