//! Which nodes go.

use nodecast_cluster_autoscaler::ScaleDownReport;
use nodecast_cluster_autoscaler::scale_down::{Planner, UnremovableReason as Reason};
use nodecast_cluster_autoscaler::utilization::{LeftOut, PodOnNode, Requested, utilization};
use nodecast_cluster_autoscaler::view::PodPlace;
use nodecast_model::domain::pod::InitContainer;
use nodecast_model::domain::topology::NodeInclusionPolicy;
use nodecast_model::domain::{Container, Labels, ResourceName, Resources, Symbol};

use super::lab::{Lab, START, daemon, flags, minutes, offered, program, seconds, spec, spread, taint, traits};

pub const ROWS: &[&str] = &["J1", "J2", "J3", "J4", "J5", "J6", "J7", "J9", "J10", "J11", "J12", "J13"];

/// Flags with which one iteration shows what would go.
const AT_ONCE: [(&str, &str); 2] = [("scale-down-unneeded-time", "0s"), ("scale-down-delay-after-add", "0s")];

fn once(lab: &mut Lab, more: &[(&str, &str)]) -> ScaleDownReport {
    let given: Vec<_> = AT_ONCE.iter().chain(more).copied().collect();
    lab.run(&mut program(&given)).scale_down
}

fn gone(found: &ScaleDownReport) -> Vec<usize> {
    found.deletions.iter().map(|deletion| deletion.node).collect()
}

fn reasons(found: &ScaleDownReport) -> Vec<Option<Reason>> {
    found.nodes.iter().map(|node| node.reason).collect()
}

#[test]
fn utilisation_excludes_daemonset_and_mirror_pods_if_set() {
    let plain = traits("a", spec("a", 100, 200_000));
    let agent = daemon("agent", 100, 200_000);
    let mut mirrored = spec("static", 100, 200_000);
    mirrored.annotations = Labels::new().with("kubernetes.io/config.mirror", "");
    let mirror = traits("static", mirrored);
    let node = offered(2_000, 2_000_000, 10);
    let share = |pods: &[&nodecast_cluster_autoscaler::view::PodTraits], daemons, mirrors| {
        let requests: Vec<Resources> = pods.iter().map(|pod| pod.spec.requests()).collect();
        let pods: Vec<PodOnNode<'_>> =
            pods.iter().zip(&requests).map(|(traits, requests)| PodOnNode { traits, requests, view: None }).collect();
        let left_out = LeftOut { daemons, mirrors };
        let requested = |resource| Requested::by_pods(resource, pods.iter().copied(), left_out, START);
        let found = utilization(&Labels::new(), &node, requested).unwrap();
        (found.resource, found.share, found.cpu)
    };
    assert_eq!(share(&[&plain, &plain], false, false), (ResourceName::MEMORY, 0.2, Some(0.1)));
    let all = [&*plain, &plain, &agent, &agent];
    assert!((share(&all, true, false).1 - 2.0 / 8.0).abs() < 1e-9);
    assert!((share(&[&plain, &plain, &mirror], false, true).1 - 2.0 / 9.0).abs() < 1e-9);
    assert!((share(&[&plain, &agent, &mirror], true, true).1 - 1.0 / 8.0).abs() < 1e-9);
    let mut lab = Lab::default();
    lab.pod(&plain, PodPlace::Unschedulable);
    lab.pods[0].deleted_at = Some(START - minutes(10));
    let requests = &plain.spec.requests();
    let ended = [None, Some(&lab.pods[0])].map(|view| PodOnNode { traits: &plain, requests, view });
    let none = LeftOut { daemons: false, mirrors: false };
    let requested = |resource| Requested::by_pods(resource, ended.iter().copied(), none, START);
    assert!((utilization(&Labels::new(), &node, requested).unwrap().share - 0.1).abs() < 1e-9);
    let without = Resources::new().with(ResourceName::CPU, 2_000);
    assert_eq!(utilization(&Labels::new(), &without, requested), None);
}

#[test]
fn utilisation_counts_init_containers_and_only_gpus() {
    let mut huge = spec("huge", 100, 0);
    let requests = Resources::cpu_memory(100_500, 0);
    let container = Container { requests, ..Container::default() };
    huge.init_containers.push(InitContainer { container, sidecar: false });
    let mut lab = Lab::default();
    let group = lab.group("g", (0, 10, 1), 2_000, 1_000);
    let node = lab.node(group);
    lab.pod(&traits("huge", huge), PodPlace::Bound(lab.nodes[node].id));
    let found = once(&mut lab, &[]);
    assert!((found.nodes[node].utilization.unwrap().share - 50.25).abs() < 1e-9);
    assert_eq!(reasons(&found), [Some(Reason::NotUnderutilized)]);
    let mut lab = Lab::default();
    let group = lab.group("gpu", (0, 10, 2), 2_000, 1_000);
    for gpus in [4, 0] {
        let node = lab.node(group);
        let gpu = Symbol::new("nvidia-tesla-t4");
        lab.nodes[node].labels.set(Symbol::new("k8s.amazonaws.com/accelerator"), gpu);
        lab.nodes[node].allocatable.set(ResourceName::NVIDIA_GPU, gpus);
        lab.running("cpu", node, 1_900, 0);
    }
    let mut train = spec("train", 0, 0);
    train.containers[0].requests.set(ResourceName::NVIDIA_GPU, 3);
    lab.pod(&traits("train", train), PodPlace::Bound(lab.nodes[0].id));
    let found = once(&mut lab, &[]);
    assert_eq!(found.nodes.iter().map(|node| node.utilization.unwrap().share).collect::<Vec<_>>(), [0.75, 0.0]);
}

#[test]
fn gpu_utilisation_needs_no_gpu_label() {
    let reason = |gpus_in_use: i64, threshold: &str| {
        let mut lab = Lab::default();
        let group = lab.group("gpu", (0, 10, 1), 2_000, 1_000);
        let node = lab.node(group);
        lab.nodes[node].allocatable.set(ResourceName::NVIDIA_GPU, 4);
        lab.running("cpu", node, 1_400, 0);
        let mut train = spec("train", 0, 0);
        train.containers[0].requests.set(ResourceName::NVIDIA_GPU, gpus_in_use);
        lab.pod(&traits("train", train), PodPlace::Bound(lab.nodes[node].id));
        lab.lone_node(2_000, 1_000);
        let found = once(&mut lab, &[("scale-down-gpu-utilization-threshold", threshold)]);
        assert_eq!(found.nodes[node].utilization.unwrap().resource, ResourceName::NVIDIA_GPU);
        reasons(&found)[node]
    };
    assert_eq!(reason(0, "0.5"), None, "no GPU is in use, whatever the CPU");
    assert_eq!(reason(3, "0.5"), Some(Reason::NotUnderutilized));
    assert_ne!(reason(3, "0.8"), Some(Reason::NotUnderutilized), "the threshold of GPUs counts");
}

#[test]
fn scale_down_candidates_depend_on_thresholds_and_annotations() {
    let single = |change: fn(&mut Lab), more: &[(&str, &str)]| {
        let mut lab = Lab::default();
        let group = lab.group("g", (0, 10, 2), 1_000, 1_000);
        let node = lab.node(group);
        lab.lone_node(1_000, 1_000);
        lab.running("half", node, 500, 0);
        change(&mut lab);
        once(&mut lab, more).nodes.swap_remove(node).reason
    };
    assert_eq!(single(|_| {}, &[]), None, "exactly at the threshold");
    assert_eq!(single(|_| {}, &[("scale-down-utilization-threshold", "0.49")]), Some(Reason::NotUnderutilized));
    let recent: fn(&mut Lab) = |lab| {
        let mut taint = taint("ToBeDeletedByClusterAutoscaler");
        taint.value = Symbol::new(&START.as_secs().to_string());
        lab.nodes[0].taints.push(taint);
    };
    assert_eq!(single(recent, &[]), Some(Reason::CurrentlyBeingDeleted));
    let disabled: fn(&mut Lab) = |lab| {
        lab.nodes[0].annotations = Labels::new().with("cluster-autoscaler.kubernetes.io/scale-down-disabled", "true");
    };
    assert_eq!(single(disabled, &[]), Some(Reason::ScaleDownDisabledAnnotation));
    let unready: fn(&mut Lab) = |lab| lab.unready(0, minutes(60));
    assert_eq!(single(unready, &[("scale-down-unready-enabled", "false")]), Some(Reason::ScaleDownUnreadyDisabled));
    let daemons: fn(&mut Lab) = |lab| {
        lab.pods.clear();
        lab.pod(&daemon("agent", 600, 0), PodPlace::Bound(lab.nodes[0].id));
    };
    assert_eq!(single(daemons, &[]), Some(Reason::NotUnderutilized));
    assert_eq!(single(daemons, &[("ignore-daemonsets-utilization", "true")]), None);
    let none = [("ignore-daemonsets-utilization", "true"), ("scale-down-utilization-threshold", "0")];
    assert_eq!(single(daemons, &none), None);
}

#[test]
fn pods_need_somewhere_to_go() {
    let with_room = |milli_cpu: i64, pods: bool| {
        let mut lab = Lab::default();
        let group = lab.group("g", (0, 10, 1), 1_000, 1_000);
        let node = lab.node(group);
        lab.lone_node(milli_cpu, 1_000);
        if pods {
            lab.running("a", node, 400, 0);
        }
        once(&mut lab, &[])
    };
    let empty = with_room(100, false);
    assert_eq!((gone(&empty), empty.deletions[0].empty), (vec![0], true));
    assert_eq!(with_room(100, true).nodes[0].reason, Some(Reason::NoPlaceToMovePods));
    let drained = with_room(1_000, true);
    assert_eq!(
        (gone(&drained), drained.deletions[0].empty, &drained.deletions[0].evict[..]),
        (vec![0], false, &[0][..])
    );
}

#[test]
fn removed_node_still_counts_as_spread_domain() {
    let removable = |policy| {
        let mut lab = Lab::default();
        let group = lab.group("g", (0, 10, 1), 1_000, 1_000);
        let nodes = [lab.node(group), lab.lone_node(1_000, 1_000), lab.lone_node(1_000, 1_000)];
        let mut spec = spec("web", 100, 0);
        let mut constraint = spread("web", "kubernetes.io/hostname", 1, None);
        constraint.node_taints_policy = policy;
        spec.topology_spread.push(constraint);
        let traits = traits("web", spec);
        for node in nodes {
            lab.pod(&traits, PodPlace::Bound(lab.nodes[node].id));
        }
        once(&mut lab, &[]).nodes[0].unneeded
    };
    assert!(!removable(NodeInclusionPolicy::Ignore));
    assert!(removable(NodeInclusionPolicy::Honor));
}

#[test]
fn nodes_to_remove_cannot_host_each_others_pods() {
    let mut lab = Lab::default();
    let group = lab.group("g", (0, 10, 2), 1_000, 1_000);
    let (first, second) = (lab.node(group), lab.node(group));
    lab.running("a", first, 400, 0);
    lab.running("b", second, 400, 0);
    let found = once(&mut lab, &[]);
    assert_eq!([found.nodes[first].unneeded, found.nodes[second].unneeded], [true, false]);
    // If the other is being deleted, there is nowhere to go.
    lab.deletions.empty.push(lab.nodes[second].id);
    let found = once(&mut lab, &[]);
    assert_eq!(found.nodes[first].reason, Some(Reason::NoPlaceToMovePods));
}

#[test]
fn recently_evicted_pods_still_reserve_capacity() {
    let run = |change: fn(&mut Lab)| {
        let mut lab = Lab::default();
        let group = lab.group("g", (0, 10, 1), 1_000, 1_000);
        let node = lab.node(group);
        lab.lone_node(1_000, 1_000);
        lab.running("a", node, 400, 0);
        let mut evicted = (*traits("evicted", spec("evicted", 800, 0))).clone();
        evicted.controller.as_mut().unwrap().current_replicas = 0;
        let evicted = std::sync::Arc::new(evicted);
        lab.pod(&evicted, PodPlace::Unschedulable);
        let pod = lab.pods.pop().unwrap();
        lab.recent_evictions.push(pod);
        change(&mut lab);
        once(&mut lab, &[("scale-down-utilization-threshold", "0.9")]).nodes[node].unneeded
    };
    assert!(!run(|_| {}));
    let recreated: fn(&mut Lab) = |lab| {
        let mut traits = (*lab.recent_evictions[0].traits).clone();
        traits.controller.as_mut().unwrap().current_replicas = 1;
        lab.recent_evictions[0].traits = std::sync::Arc::new(traits);
    };
    assert!(run(recreated));
    assert!(run(|lab| lab.recent_evictions[0].traits = daemon("evicted", 800, 0)));
    for annotation in ["kubernetes.io/config.mirror", "kubernetes.io/config.source"] {
        let mut spec = spec("static", 800, 0);
        spec.annotations = Labels::new().with(annotation, "file");
        let pods = traits("static", spec);
        assert!(!nodecast_cluster_autoscaler::pods::is_recreatable(&pods));
    }
}

#[test]
fn unneeded_node_search_is_limited() {
    let limit = |unneeded: &str, known, interval| {
        let flags = flags(&[("scale-down-unneeded-time", unneeded)]);
        Planner::unneeded_limit(&flags, known, interval)
    };
    assert_eq!([0, 3, 70, 77].map(|known| limit("1m", known, seconds(10))), [20, 23, 70, 70]);
    assert_eq!(limit("0s", 0, seconds(0)), 20);
    assert_eq!([limit("1m", 13, seconds(1)), limit("1m", 13, seconds(30))], [33, 30]);
    // And so in a running program.
    let mut lab = Lab::default();
    let group = lab.group("g", (0, 200, 100), 1_000, 1_000);
    for _ in 0..100 {
        lab.node(group);
    }
    let mut program = program(&[("scale-down-unneeded-time", "1m")]);
    let found = lab.run(&mut program).scale_down;
    assert_eq!(found.nodes.iter().filter(|node| node.unneeded).count(), 20);
}

/// Two idle nodes of a group.
fn two_idle(min: i64) -> Lab {
    let mut lab = Lab::default();
    let group = lab.group("g", (min, 10, 2), 2_000, 1_000);
    for _ in 0..2 {
        lab.node(group);
    }
    lab
}

#[test]
fn a_node_waits_with_the_reason() {
    let mut lab = two_idle(0);
    lab.unready(1, minutes(60));
    let mut steady = program(&[("scale-down-unneeded-time", "10m")]);
    let found = lab.run(&mut steady).scale_down;
    assert_eq!(reasons(&found), [Some(Reason::NotUnneededLongEnough), Some(Reason::NotUnreadyLongEnough)]);
    let found = lab.run_after(minutes(10), &mut steady).scale_down;
    assert_eq!(gone(&found), Vec::<usize>::new(), "exactly as long does not do");
    let found = lab.run_after(seconds(1), &mut steady).scale_down;
    assert_eq!((gone(&found), found.nodes[1].reason), (vec![0], Some(Reason::NotUnreadyLongEnough)));
    // The minimum, with a node accepted before in the same pass.
    let found = once(&mut two_idle(1), &[]);
    assert_eq!((gone(&found), found.nodes[1].reason), (vec![0], Some(Reason::NodeGroupMinSizeReached)));
    // And with one that is going already.
    let mut lab = two_idle(1);
    lab.deletions.empty.push(lab.nodes[0].id);
    let found = once(&mut lab, &[]);
    assert_eq!((gone(&found), found.nodes[1].reason), (vec![], Some(Reason::NodeGroupMinSizeReached)));
    let found = once(&mut two_idle(0), &[("cores-total", "4:100")]);
    assert_eq!(reasons(&found), [Some(Reason::MinimalResourceLimitExceeded); 2]);
    // Empty nodes are asked first.
    let mut lab = two_idle(1);
    lab.lone_node(1_000, 1_000);
    lab.running("a", 0, 100, 0);
    let found = once(&mut lab, &[]);
    assert_eq!((gone(&found), found.nodes[0].reason), (vec![1], Some(Reason::NodeGroupMinSizeReached)));
}

#[test]
fn unneeded_time_continues_when_node_turns_unready() {
    let mut lab = two_idle(1);
    lab.running("busy", 1, 1_900, 0);
    let mut steady = program(&[("scale-down-unneeded-time", "10m"), ("scale-down-unready-time", "30m")]);
    lab.run(&mut steady);
    lab.unready(0, minutes(60));
    let found = lab.run_after(minutes(20), &mut steady).scale_down;
    assert_eq!(found.nodes[0].reason, Some(Reason::NotUnreadyLongEnough));
    assert_eq!(steady.planner().unneeded_since(lab.nodes[0].id), Some(START));
    let found = lab.run_after(minutes(11), &mut steady).scale_down;
    assert_eq!(gone(&found), [0]);
}

#[test]
fn near_minimum_size_only_empty_node_goes() {
    let mut lab = Lab::default();
    let group = lab.group("g", (2, 10, 3), 1_000, 1_000);
    let (busy, light, empty) = (lab.node(group), lab.node(group), lab.node(group));
    lab.running("busy", busy, 600, 0);
    lab.running("light", light, 100, 0);
    assert_eq!(gone(&once(&mut lab, &[])), [empty]);
}

#[test]
fn node_with_on_completion_pod_is_not_drained() {
    for with_other_pod in [false, true] {
        let mut lab = two_idle(0);
        let mut spec = spec("job", 100, 0);
        spec.annotations = Labels::new().with("cluster-autoscaler.kubernetes.io/safe-to-evict", "on-completion");
        lab.pod(&traits("job", spec), PodPlace::Bound(lab.nodes[0].id));
        lab.running("busy", 1, 1_200, 0);
        if with_other_pod {
            lab.running("other", 0, 100, 0);
        }
        let found = once(&mut lab, &[]);
        assert!(found.nodes[0].unneeded && gone(&found).is_empty());
        assert_eq!(found.nodes[0].reason, Some(Reason::WaitsForCompletion));
    }
}
