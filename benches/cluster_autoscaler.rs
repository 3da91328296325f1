//! The Cluster Autoscaler's estimator alone, and a whole scale-up over several groups.

#![allow(missing_docs)] // the macros of criterion make functions without documentation

use std::hint::black_box;
use std::sync::Arc;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use nodecast::domain::pod::PodPhase;
use nodecast::domain::{Container, KubernetesVersion, Labels, PodId, PodSpec, Resources, SimDuration, SimTime, Symbol};
use nodecast_cluster_autoscaler::estimator::{NodeLimit, PackingGroup, estimate};
use nodecast_cluster_autoscaler::snapshot::{PodAt, Snapshot};
use nodecast_cluster_autoscaler::view::{
    Controller, ControllerKind, Deletions, GroupOptions, GroupView, NodeTemplate, PodPlace, PodTraits, PodView,
};
use nodecast_cluster_autoscaler::{
    ClusterAutoscaler, ExpanderInputs, Flags, GroupActions, Observation, ResizeError, ScaleUpResult,
};

const GIB: i64 = 1 << 30;
const NOW: SimTime = SimTime::from_micros(1_000_000_000_000_000);

fn template(milli_cpu: i64, gib: i64, pods: i64) -> NodeTemplate {
    let capacity = Resources::cpu_memory(milli_cpu, gib * GIB).with(nodecast::domain::ResourceName::PODS, pods);
    NodeTemplate { allocatable: capacity.clone(), capacity, ..NodeTemplate::default() }
}

fn traits(name: &str, milli_cpu: i64, mib: i64) -> Arc<PodTraits> {
    let requests = Resources::cpu_memory(milli_cpu, mib << 20);
    let spec = PodSpec {
        labels: Labels::new().with("app", name),
        containers: vec![Container { requests, ..Container::default() }],
        ..PodSpec::default()
    };
    let (kind, name) = (ControllerKind::ReplicaSet, Symbol::new(name));
    let owner = Controller { kind, name, exists: true, replicas: 1, current_replicas: 1 };
    Arc::new(PodTraits::new(Symbol::new("default"), Arc::new(spec), Some(owner)))
}

/// 50,000 pods of one kind and 1,000 larger ones on nodes of one group.
fn estimator(c: &mut Criterion) {
    let mut snapshot = Snapshot::new(0);
    let (small, large) = (traits("small", 200, 400), traits("large", 1_500, 2_000));
    let small: Vec<PodAt> = (0..50_000).map(|_| snapshot.add_pod(None, &small)).collect();
    let large: Vec<PodAt> = (0..1_000).map(|_| snapshot.add_pod(None, &large)).collect();
    let groups = [PackingGroup { pods: &small }, PackingGroup { pods: &large }];
    let node = template(4_480, 16, 58);
    let mut group = c.benchmark_group("cluster_autoscaler");
    for (name, fast) in [("estimate_51000_pods", false), ("estimate_51000_pods_fast_path", true)] {
        group.bench_function(name, |b| {
            b.iter(|| {
                let found = estimate(black_box(&mut snapshot), &groups, &node, NodeLimit::Unlimited, fast);
                assert!((2_590..2_720).contains(&found.nodes), "{}", found.nodes);
            });
        });
    }
    group.finish();
}

/// Groups that accept everything.
struct Groups(Vec<i64>);

impl GroupActions for Groups {
    fn increase_size(&mut self, group: usize, by: i64) -> Result<(), ResizeError> {
        self.0[group] += by;
        Ok(())
    }

    fn decrease_target_size(&mut self, group: usize, by: i64) -> Result<(), ResizeError> {
        self.0[group] -= by;
        Ok(())
    }

    fn delete_instances(&mut self, group: usize, instances: &[Arc<str>]) -> Result<(), ResizeError> {
        self.0[group] -= instances.len() as i64;
        Ok(())
    }

    fn target_size(&self, group: usize) -> i64 {
        self.0[group]
    }
}

/// One iteration: 5,000 pods of 50 workloads, 10 groups of different nodes.
fn scale_up(c: &mut Criterion) {
    let workloads: Vec<Arc<PodTraits>> =
        (0..50).map(|at| traits(&format!("w{at}"), 100 + at * 37, 128 + at * 61)).collect();
    let pods: Vec<PodView> = (0..5_000)
        .map(|at| PodView {
            id: PodId::from_index(at),
            traits: Arc::clone(&workloads[at % workloads.len()]),
            created: NOW - SimDuration::from_secs(60),
            phase: PodPhase::Pending,
            deleted_at: None,
            place: PodPlace::Unschedulable,
        })
        .collect();
    let groups: Vec<GroupView> = (0..10)
        .map(|at| GroupView {
            id: Symbol::new(&format!("g{at}")),
            auto_scaling_group: Symbol::new(&format!("g{at}")),
            min: 0,
            max: 1_000,
            target: 0,
            template: Some(Arc::new(template(4_000 + at * 2_000, 16 + at * 8, 58))),
            instances: Vec::new(),
            options: GroupOptions::default(),
            price_per_hour: None,
            exists: true,
        })
        .collect();
    let deletions = Deletions::default();
    let seen = Observation {
        now: NOW,
        nodes: &[],
        pods: &pods,
        groups: &groups,
        daemon_sets: &[],
        budgets: &[],
        namespaces: &[],
        deletions: &deletions,
        recent_evictions: &[],
        listing: None,
    };
    let program =
        || ClusterAutoscaler::new(Flags::defaults(KubernetesVersion::default()), ExpanderInputs::default(), NOW);
    let mut group = c.benchmark_group("cluster_autoscaler");
    group.bench_function("iteration_5000_pods_10_groups", |b| {
        b.iter_batched(
            || (program(), Groups(vec![0; groups.len()])),
            |(mut program, mut actions)| {
                let found = program.run_once(black_box(&seen), &mut actions, &mut |_| 0);
                assert_eq!(found.scale_up.result, ScaleUpResult::Successful);
                found
            },
            BatchSize::SmallInput,
        );
    });
    group.finish();
}

criterion_group!(benches, estimator, scale_up);
criterion_main!(benches);
