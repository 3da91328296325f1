//! How fast pods are placed: 50,000 pods on 5,000 nodes, each placed on what the ones before left.

#![allow(missing_docs)] // the macros of criterion make functions without documentation

use std::hint::black_box;
use std::sync::Arc;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use nodecast::domain::symbol::well_known;
use nodecast::domain::topology::{
    NodeInclusionPolicy, PodAffinity, PodAffinityTerm, TopologySpread, WeightedPodAffinityTerm, WhenUnsatisfiable,
};
use nodecast::domain::{Container, LabelSelector, Labels, NodeId, PodId, PodSpec, ResourceName, Resources, SimTime};
use nodecast_scheduler::{
    ClusterView, PendingPod, Placement, Scheduler, SchedulerConfig, SchedulerNode, ShapeId, TieBreak,
};

const NODES: u32 = 5_000;
const PODS: u32 = 50_000;
const WORKLOADS: i64 = 20;

fn cluster() -> ClusterView {
    let mut view = ClusterView::default();
    for index in 0..NODES {
        let cpus = [8, 16, 32][index as usize % 3];
        view.add_node(
            NodeId(index),
            SchedulerNode {
                name: format!("node-{index}").into(),
                labels: Labels::new().with(well_known::ZONE, ["a", "b", "c"][index as usize / 2 % 3]),
                allocatable: Resources::cpu_memory(cpus * 1_000 - 80, (cpus << 32) - (1 << 30))
                    .with(ResourceName::PODS, 110),
                ..SchedulerNode::default()
            },
        );
    }
    view
}

fn selector(workload: i64) -> LabelSelector {
    let match_labels = Labels::new().with("app", format!("app-{workload}").as_str());
    LabelSelector { match_labels, ..LabelSelector::default() }
}

fn spec(workload: i64) -> PodSpec {
    let requests = Resources::cpu_memory(250 + 125 * (workload % 8), (512 << 20) * (1 + workload % 5));
    PodSpec {
        labels: selector(workload).match_labels,
        containers: vec![Container { requests, ..Container::default() }],
        ..PodSpec::default()
    }
}

/// Pods that ask for CPU and memory and nothing else.
fn plain(view: &mut ClusterView, workload: i64) -> ShapeId {
    view.shape(well_known::DEFAULT, &Arc::new(spec(workload)), None)
}

/// Pods of a Deployment: the built-in spread constraints apply.
fn deployments(view: &mut ClusterView, workload: i64) -> ShapeId {
    view.shape(well_known::DEFAULT, &Arc::new(spec(workload)), Some(&selector(workload)))
}

/// A hard spread over zones, a soft one over hosts, preferred anti-affinity to their own kind.
fn constrained(view: &mut ClusterView, workload: i64) -> ShapeId {
    let constraint = |topology_key, when_unsatisfiable| TopologySpread {
        topology_key,
        max_skew: 1,
        when_unsatisfiable,
        selector: Some(selector(workload)),
        min_domains: None,
        node_affinity_policy: NodeInclusionPolicy::Honor,
        node_taints_policy: NodeInclusionPolicy::Ignore,
        match_label_keys: Vec::new(),
    };
    let term = PodAffinityTerm {
        topology_key: well_known::HOSTNAME,
        selector: Some(selector(workload)),
        namespaces: Vec::new(),
        namespace_selector: None,
        match_label_keys: Vec::new(),
        mismatch_label_keys: Vec::new(),
    };
    let spec = PodSpec {
        topology_spread: vec![
            constraint(well_known::ZONE, WhenUnsatisfiable::DoNotSchedule),
            constraint(well_known::HOSTNAME, WhenUnsatisfiable::ScheduleAnyway),
        ],
        pod_anti_affinity: PodAffinity {
            required: Vec::new(),
            preferred: vec![WeightedPodAffinityTerm { weight: 50, term }],
        },
        ..spec(workload)
    };
    view.shape(well_known::DEFAULT, &Arc::new(spec), Some(&selector(workload)))
}

fn place_all(mut view: ClusterView, shapes: &[ShapeId]) -> usize {
    let mut scheduler = Scheduler::new(SchedulerConfig::default());
    let mut placed = 0;
    for index in 0..PODS {
        let shape = shapes[index as usize % shapes.len()];
        let pod = PendingPod { id: PodId(index), shape, pinned_to: None };
        if let Placement::Node(chosen) = scheduler.schedule(&view, &pod, TieBreak::Heap) {
            view.assume_pod(chosen.node, pod.id, shape, SimTime::ZERO);
            placed += 1;
        }
    }
    placed
}

fn placing(c: &mut Criterion) {
    let mut group = c.benchmark_group("kube_scheduler");
    group.sample_size(10).throughput(Throughput::Elements(u64::from(PODS)));
    type Kind = fn(&mut ClusterView, i64) -> ShapeId;
    for (name, kind) in [("plain", plain as Kind), ("deployments", deployments), ("constrained", constrained)] {
        let mut view = cluster();
        let shapes: Vec<ShapeId> = (0..WORKLOADS).map(|workload| kind(&mut view, workload)).collect();
        assert_eq!(place_all(view.clone(), &shapes), PODS as usize, "the cluster has room for all");
        group.bench_function(BenchmarkId::new("place 50,000 pods on 5,000 nodes", name), |b| {
            b.iter_batched(|| view.clone(), |view| black_box(place_all(view, &shapes)), BatchSize::LargeInput);
        });
    }
    group.finish();
}

criterion_group!(benches, placing);
criterion_main!(benches);
