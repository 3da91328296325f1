//! Scale-up as a whole.

use nodecast_cluster_autoscaler::ScaleUpResult;
use nodecast_cluster_autoscaler::quotas::Limited;
use nodecast_cluster_autoscaler::scale_up::SkipReason;
use nodecast_cluster_autoscaler::view::PodPlace;
use nodecast_model::domain::{ResourceName, Symbol};

use super::lab::{Lab, app, label, minutes, program, seconds, spec, traits};

pub const ROWS: &[&str] = &["C1", "C2", "C3", "C4", "C5", "C7", "C8", "C9", "C11", "C16", "C17", "C19", "C20"];

#[test]
fn group_with_too_small_nodes_is_excluded() {
    let mut lab = Lab::default();
    let small = lab.group("ng1", (0, 10, 1), 100, 1_000);
    let large = lab.group("ng2", (0, 10, 1), 1_000, 1_000);
    let (n1, n2) = (lab.node(small), lab.node(large));
    lab.running("p1", n1, 80, 0);
    lab.running("p2", n2, 800, 0);
    lab.pending("new", 1, 500, 0);
    let found = lab.run(&mut program(&[])).scale_up;
    assert_eq!(found.options.iter().map(|option| option.group).collect::<Vec<_>>(), [large]);
    assert_eq!(lab.cloud.targets, [1, 2]);
}

#[test]
fn unselected_option_pods_wait_after_scale_up() {
    let mut lab = Lab::default();
    lab.group("ng1", (0, 10, 0), 100, 1_000);
    lab.group("ng2", (0, 10, 0), 1_000, 100);
    let triggering = lab.pending("triggering", 1, 900, 0);
    let remaining = lab.pending("remaining", 1, 2_000, 0);
    let awaiting = lab.pending("awaiting", 1, 0, 200);
    lab.draw = 1;
    let found = lab.run(&mut program(&[("expander", "random")])).scale_up;
    assert_eq!(found.result, ScaleUpResult::Successful);
    assert_eq!(lab.cloud.targets, [0, 1]);
    assert_eq!((found.triggered, found.unschedulable, found.awaiting), (triggering, remaining, awaiting));
}

/// Two groups of two and of four cores with a full node each, and pods for two nodes of the first.
fn with_limit(limit: &str, second_is_managed: bool) -> (Lab, nodecast_cluster_autoscaler::ScaleUpReport) {
    let mut lab = Lab::default();
    let first = lab.group("ng1", (0, 10, 1), 2_000, 1_000);
    let n1 = lab.node(first);
    let n2 = if second_is_managed {
        let second = lab.group("ng2", (1, 1, 1), 4_000, 1_000);
        lab.node(second)
    } else {
        lab.lone_node(4_000, 1_000)
    };
    lab.running("p1", n1, 2_000, 0);
    lab.running("p2", n2, 4_000, 0);
    lab.pending("new", 2, 1_500, 0);
    let found = lab.run(&mut program(&[("cores-total", limit)])).scale_up;
    (lab, found)
}

#[test]
fn scale_up_is_capped_at_core_limit() {
    for second_is_managed in [true, false] {
        let (lab, found) = with_limit("0:9", second_is_managed);
        assert_eq!(found.options[0].nodes, 2, "the limit does not bear on the estimate");
        assert_eq!(lab.cloud.calls, ["0 +1"]);
    }
    let (lab, found) = with_limit("0:7", true);
    assert_eq!(found.skipped[0], (0, SkipReason::QuotaExceeded(vec![Limited::Cores])));
    assert_eq!((found.result, lab.cloud.calls.len()), (ScaleUpResult::NoOptionsAvailable, 0));
}

/// Two equal groups with a full node each, and two pods that need a node each.
fn two_equal_groups(max: i64, given: &[(&str, &str)], refusals: usize) -> (Lab, ScaleUpResult) {
    let mut lab = Lab::default();
    for id in ["ng1", "ng2"] {
        let group = lab.group(id, (0, max, 1), 1_500, 1_000);
        let node = lab.node(group);
        lab.running("full", node, 1_400, 0);
    }
    lab.pending("new", 2, 1_400, 0);
    lab.cloud.refusals = refusals;
    let mut flags = vec![("balance-similar-node-groups", "true")];
    flags.extend(given);
    let result = lab.run(&mut program(&flags)).scale_up.result;
    (lab, result)
}

#[test]
fn similar_groups_share_scale_up_in_both_modes() {
    for parallel in ["false", "true"] {
        let (lab, result) = two_equal_groups(10, &[("parallel-scale-up", parallel)], 0);
        assert_eq!((result, lab.cloud.targets), (ScaleUpResult::Successful, vec![2, 2]));
    }
}

#[test]
fn refusal_stops_sequential_but_not_parallel_scale_up() {
    let (lab, result) = two_equal_groups(2, &[], 1);
    assert_eq!((result, lab.cloud.targets), (ScaleUpResult::Error, vec![1, 1]));
    let (lab, result) = two_equal_groups(2, &[("parallel-scale-up", "true")], 1);
    assert_eq!((result, lab.cloud.targets), (ScaleUpResult::Error, vec![1, 2]));
}

#[test]
fn group_missing_most_nodes_does_not_grow() {
    let mut lab = Lab::default();
    let first = lab.group("ng1", (0, 10, 1), 100, 1_000);
    let second = lab.group("ng2", (0, 10, 5), 1_000, 1_000);
    let (n1, n2) = (lab.node(first), lab.node(second));
    lab.running("p1", n1, 80, 0);
    lab.running("p2", n2, 800, 0);
    lab.pending("new", 1, 550, 0);
    let found = lab.run(&mut program(&[("ok-total-unready-count", "0")])).scale_up;
    assert!(found.skipped.contains(&(second, SkipReason::NotReady)));
    assert_eq!(found.result, ScaleUpResult::NoOptionsAvailable);
    assert!(lab.cloud.calls.is_empty());
}

#[test]
fn balancing_grows_smallest_groups_with_capacity() {
    let mut lab = Lab::default();
    for (id, max, target) in [("ng1", 1, 1), ("ng2", 2, 1), ("ng3", 5, 1), ("ng4", 5, 3)] {
        let group = lab.group(id, (0, max, target), 1_000, 1_000);
        for _ in 0..target {
            let node = lab.node(group);
            lab.running("full", node, 900, 0);
        }
    }
    lab.pending("new", 2, 800, 0);
    lab.run(&mut program(&[("balance-similar-node-groups", "true")]));
    assert_eq!(lab.cloud.targets, [1, 2, 2, 3]);
}

#[test]
fn similar_group_must_accept_all_pods() {
    let mut lab = Lab::default();
    for id in ["plain", "special"] {
        lab.group(id, (0, 10, 0), 1_000, 1_000);
    }
    // Zones may differ between similar groups, and the second workload wants one of them.
    let zone = "topology.kubernetes.io/zone";
    lab.with_template(0, |template| template.labels = label(zone, "a"));
    lab.with_template(1, |template| template.labels = label(zone, "b"));
    lab.pending("anywhere", 1, 500, 0);
    let mut wants_b = spec("in-b", 500, 0);
    wants_b.node_selector = label(zone, "b");
    lab.pod(&traits("in-b", wants_b), PodPlace::Unschedulable);
    let similar = |lab: &mut Lab, given: &[(&str, &str)]| {
        let found = lab.run(&mut program(given)).scale_up;
        found.options.iter().map(|option| option.similar.clone()).collect::<Vec<_>>()
    };
    assert_eq!(similar(&mut lab, &[("balance-similar-node-groups", "true")]), [vec![1], vec![]]);
    lab.cloud.targets = vec![0, 0];
    assert_eq!(similar(&mut lab, &[]), [Vec::<usize>::new(), vec![]]);
    let mut nobody = Lab::default();
    nobody.group("a", (0, 10, 0), 1_000, 1_000);
    nobody.group("b", (0, 10, 0), 1_000, 1_000);
    nobody.pending("large", 1, 5_000, 0);
    assert_eq!(similar(&mut nobody, &[("balance-similar-node-groups", "true")]), Vec::<Vec<usize>>::new());
}

#[test]
fn minimum_size_scale_up_respects_core_limit() {
    let mut lab = Lab::default();
    let first = lab.group("ng1", (3, 10, 1), 16_000, 1_000);
    let second = lab.group("ng2", (1, 10, 1), 16_000, 1_000);
    lab.node(first);
    lab.node(second);
    let flags = [("enforce-node-group-min-size", "true"), ("cores-total", "0:48"), ("scale-down-enabled", "false")];
    let found = lab.run(&mut program(&flags)).raised;
    assert_eq!((found.result, lab.cloud.targets), (ScaleUpResult::Successful, vec![2, 1]));
}

#[test]
fn pods_without_gpus_can_use_gpu_nodes() {
    let mut lab = Lab::default();
    lab.group("cpu", (0, 10, 0), 1_000, 1_000);
    let gpu = lab.group("gpu", (0, 10, 0), 1_000, 1_000);
    lab.with_template(gpu, |template| {
        template.labels.set(Symbol::new("k8s.amazonaws.com/accelerator"), Symbol::new("nvidia-tesla-t4"));
        template.allocatable.set(ResourceName::NVIDIA_GPU, 1);
        template.capacity.set(ResourceName::NVIDIA_GPU, 1);
    });
    let options = |lab: &mut Lab| {
        let found = lab.run(&mut program(&[])).scale_up;
        found.options.iter().map(|option| option.group).collect::<Vec<_>>()
    };
    let plain = lab.pending("plain", 1, 500, 0);
    assert_eq!(options(&mut lab), [0, 1]);
    lab.pods.remove(plain[0]);
    let mut wants_gpu = spec("train", 500, 0);
    wants_gpu.containers[0].requests.set(ResourceName::NVIDIA_GPU, 1);
    lab.pod(&traits("train", wants_gpu), PodPlace::Unschedulable);
    assert_eq!(options(&mut lab), [1]);
}

#[test]
fn one_group_grows_per_iteration_without_salvo() {
    let two_kinds = || {
        let mut lab = Lab::default();
        for team in ["a", "b"] {
            let group = lab.group(team, (0, 10, 0), 1_000, 1_000);
            lab.with_template(group, |template| template.labels = label("team", team));
            let mut spec = spec(team, 500, 0);
            spec.node_selector = label("team", team);
            lab.pod(&traits(team, spec), PodPlace::Unschedulable);
        }
        lab
    };
    let mut lab = two_kinds();
    let mut steady = program(&[]);
    let first = lab.run(&mut steady).scale_up;
    assert_eq!((lab.cloud.targets.iter().sum::<i64>(), first.awaiting.len()), (1, 1));
    lab.run_after(seconds(1), &mut steady);
    assert_eq!(lab.cloud.targets, [1, 1]);
    let mut lab = two_kinds();
    lab.run(&mut program(&[("salvo-scale-up", "true")]));
    assert_eq!(lab.cloud.targets, [1, 1]);
}

#[test]
fn zone_anti_affinity_gives_one_node_per_group() {
    let mut lab = Lab::default();
    let group = lab.group("g", (0, 10, 0), 1_000, 1_000);
    lab.with_template(group, |template| template.labels = label("topology.kubernetes.io/zone", "a"));
    let mut apart = spec("db", 100, 0);
    apart.pod_anti_affinity.required.push(nodecast_model::domain::topology::PodAffinityTerm {
        topology_key: Symbol::new("topology.kubernetes.io/zone"),
        selector: Some(app("db")),
        namespaces: Vec::new(),
        namespace_selector: None,
        match_label_keys: Vec::new(),
        mismatch_label_keys: Vec::new(),
    });
    let traits = traits("db", apart);
    for _ in 0..3 {
        lab.pod(&traits, PodPlace::Unschedulable);
    }
    let found = lab.run(&mut program(&[])).scale_up;
    assert_eq!((found.options[0].nodes, found.options[0].pods.len()), (1, 1));
    let later = lab.run_after(minutes(1), &mut program(&[])).scale_up;
    assert_ne!(later.result, ScaleUpResult::Error);
}
