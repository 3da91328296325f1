//! Similar groups, balancing, and templates.

use std::sync::Arc;

use nodecast_cluster_autoscaler::similar::{Growth, Similarity, balance};
use nodecast_cluster_autoscaler::templates::{TemplateCache, from_example, from_provider};
use nodecast_cluster_autoscaler::view::{DaemonSetView, NodeTemplate, NodeView, PodTraits};
use nodecast_model::domain::{ResourceName, Resources, Symbol};

use super::lab::{Lab, START, daemon, flags, label, minutes, offered, seconds, taint, template};

pub const ROWS: &[&str] = &["F1", "F2", "F3", "F4", "F5", "F6", "H1", "H2", "H3", "H4", "H5", "H6", "H7"];

const KIB: i64 = 1 << 10;

fn split(groups: &[(i64, i64)], new_nodes: i64) -> Vec<i64> {
    let all = groups.iter().enumerate().map(|(group, &(from, max))| Growth { group, from, to: from, max });
    let mut sizes: Vec<i64> = groups.iter().map(|group| group.0).collect();
    for growth in balance(all, new_nodes) {
        sizes[growth.group] = growth.to;
    }
    sizes
}

#[test]
fn growth_levels_the_smallest_groups_first() {
    let targets = [(1, 10), (3, 10), (5, 10), (5, 10)];
    assert_eq!(split(&targets, 1), [2, 3, 5, 5]);
    assert_eq!(split(&targets, 2), [3, 3, 5, 5]);
    assert_eq!(split(&targets, 4), [4, 4, 5, 5]);
    let mut five = split(&targets, 5);
    five.sort_unstable();
    assert_eq!(five, [4, 5, 5, 5]);
    assert_eq!(split(&targets, 10), [6, 6, 6, 6]);
}

#[test]
fn full_groups_get_nothing_when_splitting_growth() {
    let (a, b, c, d, e) = ((1, 1), (1, 3), (3, 10), (5, 7), (6, 3));
    assert_eq!(split(&[a], 1), [1]);
    assert_eq!(split(&[a, b], 1), [1, 2]);
    assert_eq!(split(&[a, b], 5), [1, 3]);
    assert_eq!(split(&[b, c], 4), [3, 5]);
    let grown = split(&[b, c, d, e], 9);
    assert_eq!((grown.iter().sum::<i64>() - 15, grown[0], grown[3]), (9, 3, 6));
    assert!(grown[1] > 3 && grown[2] > 5 && grown[2] <= 7);
}

fn alike(one: &NodeTemplate, other: &NodeTemplate) -> bool {
    let similarity = Similarity::default();
    assert_eq!(similarity.holds(one, other), similarity.holds(other, one));
    similarity.holds(one, other)
}

fn with(change: impl FnOnce(&mut NodeTemplate)) -> NodeTemplate {
    let mut changed = template(1_000, 1_000_000);
    change(&mut changed);
    changed
}

#[test]
fn similar_groups_need_equal_capacity_and_similar_allocatable() {
    let plain = with(|_| {});
    assert!(!alike(&plain, &with(|node| node.capacity.set(ResourceName::CPU, 1_001))));
    assert!(alike(&plain, &with(|node| node.allocatable.set(ResourceName::CPU, 999))));
    assert!(!alike(&plain, &with(|node| node.allocatable.set(ResourceName::CPU, 500))));
    assert!(!alike(&plain, &with(|node| node.capacity.set(ResourceName::NVIDIA_GPU, 1))));
    // As much is free, but on a smaller node.
    let busy = with(|node| node.pods.push(daemon("agent", 500, 0)));
    let small = with(|node| node.allocatable.set(ResourceName::CPU, 500));
    assert!(!alike(&busy, &small));
    assert!(alike(&busy, &busy.clone()));
    let nearly = with(|node| {
        node.allocatable.set(ResourceName::CPU, 999);
        node.pods.push(daemon("agent", 501, 0));
    });
    assert!(alike(&busy, &nearly));
}

#[test]
fn similar_groups_memory_differs_by_1_5_percent() {
    let node = |kib: i64| {
        with(|node| {
            node.capacity.set(ResourceName::MEMORY, kib * KIB);
            node.allocatable.set(ResourceName::MEMORY, kib * KIB);
        })
    };
    assert!(alike(&node(16_116_152), &node(15_944_120)));
    assert!(!alike(&node(16_438_475), &node(16_116_152)));
}

#[test]
fn similar_groups_ignore_zone_and_group_labels() {
    let plain = with(|_| {});
    assert!(!alike(&plain, &with(|node| node.labels = label("team", "a"))));
    for key in [
        "kubernetes.io/hostname",
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        "eks.amazonaws.com/nodegroup",
        "alpha.eksctl.io/nodegroup-name",
        "alpha.eksctl.io/instance-id",
        "k8s.amazonaws.com/eniConfig",
        "lifecycle",
        "topology.ebs.csi.aws.com/zone",
        "topology.k8s.aws/zone-id",
    ] {
        let one = with(|node| node.labels = label(key, "one"));
        assert!(alike(&plain, &one), "{key} is missing on one side");
        assert!(alike(&one, &with(|node| node.labels = label(key, "other"))), "{key} differs");
        assert!(alike(&one, &with(|node| node.labels = label(key, ""))), "{key} is empty");
    }
    let capacity = |kind: &str| with(|node| node.labels = label("eks.amazonaws.com/capacityType", kind));
    assert!(!alike(&capacity("SPOT"), &capacity("ON_DEMAND")));
    let ignoring = Similarity { ignored_labels: vec![Symbol::new("team")], ..Similarity::default() };
    assert!(ignoring.holds(&plain, &with(|node| node.labels = label("team", "a"))));
}

/// The template of the only group after nodes were changed; its CPU says where it came from.
fn chosen(cache: &mut TemplateCache, lab: &Lab, given: &[(&str, &str)]) -> Option<Arc<NodeTemplate>> {
    let usable = |node: &NodeView| node.ready;
    let pods_of = |_: usize| Vec::<Arc<PodTraits>>::new();
    cache.templates(&flags(given), &lab.seen(), &usable, &pods_of).remove(0)
}

fn cpu(template: Option<Arc<NodeTemplate>>) -> Option<i64> {
    template.map(|template| template.capacity.cpu_milli())
}

/// A group whose provider speaks of 1 CPU, and a node of it that has 2.
fn example() -> Lab {
    let mut lab = Lab::default();
    let group = lab.group("g", (0, 10, 1), 1_000, 1_000);
    let node = lab.node(group);
    lab.nodes[node].capacity = offered(2_000, 1_000, 10);
    lab
}

#[test]
fn a_good_node_is_the_best_example() {
    let mut lab = example();
    let bad = lab.node(0);
    lab.unready(bad, minutes(60));
    lab.nodes.rotate_left(1);
    lab.nodes[1].ready_since = START - minutes(2);
    assert_eq!(cpu(chosen(&mut TemplateCache::default(), &lab, &[])), Some(2_000));
}

#[test]
fn unhealthy_node_template_yields_to_provider_template() {
    let change: [fn(&mut NodeView); 4] = [
        |node| node.ready = false,
        |node| node.taints.push(taint("ToBeDeletedByClusterAutoscaler")),
        |node| node.ready_since = START - seconds(30),
        |node| node.unschedulable = true,
    ];
    for change in change {
        let mut lab = example();
        change(&mut lab.nodes[0]);
        assert_eq!(cpu(chosen(&mut TemplateCache::default(), &lab, &[])), Some(1_000));
        lab.groups[0].template = None;
        assert_eq!(cpu(chosen(&mut TemplateCache::default(), &lab, &[])), Some(2_000), "better than nothing");
    }
}

#[test]
fn last_good_node_template_is_cached() {
    let mut lab = example();
    let mut cache = TemplateCache::default();
    let given = [("node-info-cache-expire-time", "1h")];
    assert_eq!(cpu(chosen(&mut cache, &lab, &given)), Some(2_000));
    lab.nodes[0].ready = false;
    lab.nodes[0].capacity = offered(3_000, 1_000, 10);
    lab.elapsed = minutes(30);
    assert_eq!(cpu(chosen(&mut cache, &lab, &given)), Some(2_000), "remembered");
    lab.nodes[0].ready = true;
    assert_eq!(cpu(chosen(&mut cache, &lab, &given)), Some(3_000), "a good node again");
    lab.nodes[0].ready = false;
    lab.elapsed = minutes(80);
    assert_eq!(cpu(chosen(&mut cache, &lab, &given)), Some(3_000), "remembered anew");
    lab.elapsed = minutes(91);
    assert_eq!(cpu(chosen(&mut cache, &lab, &given)), Some(1_000), "forgotten");
}

#[test]
fn no_node_and_no_provider_gives_no_template() {
    let mut lab = example();
    lab.nodes.clear();
    lab.groups[0].template = None;
    assert_eq!(chosen(&mut TemplateCache::default(), &lab, &[]), None);
}

#[test]
fn template_includes_running_daemons_and_forced_daemonsets() {
    let lab = example();
    let running = [daemon("running", 100, 0), super::lab::traits("app", super::lab::spec("app", 100, 0))];
    let sets = ["running", "late"].map(|name| DaemonSetView { name: Symbol::new(name), pods: daemon(name, 100, 0) });
    let names = |template: NodeTemplate| -> Vec<&str> {
        template.pods.iter().map(|pod| pod.spec.labels.get(Symbol::new("app")).unwrap().as_str()).collect()
    };
    let (plain, forced) = (flags(&[]), flags(&[("force-ds", "true")]));
    assert_eq!(names(from_example(&plain, &lab.nodes[0], &running, &sets)), ["running"]);
    assert_eq!(names(from_example(&forced, &lab.nodes[0], &running, &sets)), ["running", "late"]);
    let provided = lab.groups[0].template.as_ref().unwrap();
    assert_eq!(names(from_provider(&plain, provided, &sets)), ["running", "late"]);
    let critical = |class: &str| {
        let pods = daemon("late", 100, 0);
        let spec = nodecast_model::domain::PodSpec { priority_class: Some(Symbol::new(class)), ..(*pods.spec).clone() };
        let pods = Arc::new(PodTraits { spec: Arc::new(spec), ..(*pods).clone() });
        from_example(&plain, &lab.nodes[0], &[], &[DaemonSetView { name: Symbol::new("late"), pods }])
    };
    assert_eq!(names(critical("system-node-critical")), ["late"]);
    assert_eq!(names(critical("system-cluster-critical")), Vec::<&str>::new());
}

#[test]
fn template_takes_unreported_resources_from_provider() {
    let mut lab = example();
    lab.with_template(0, |template| {
        template.allocatable.set(ResourceName::NVIDIA_GPU, 4);
        template.capacity.set(ResourceName::NVIDIA_GPU, 4);
    });
    let template = chosen(&mut TemplateCache::default(), &lab, &[]).unwrap();
    assert_eq!(template.allocatable.get(ResourceName::NVIDIA_GPU), 4);
    assert_ne!(template.capacity, Resources::new());
}
