//! A week of the 1998 World Cup's traffic on twenty services with autoscalers that look every 15 s, 1,000 pods at the peaks.

#![allow(missing_docs)] // the macros of criterion make functions without documentation

use std::path::Path;

use criterion::{Criterion, criterion_group, criterion_main};
use nodecast::catalog::Catalog;
use nodecast::simulation;

// As in the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn week(c: &mut Criterion) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/worldcup-week/scenario.yaml");
    let (scenario, _) = nodecast::scenario::load(&path).expect("the scenario can be read");
    let catalog = Catalog::embedded().expect("the built-in prices can be read");
    let policy = scenario.for_policy(None).expect("it has a policy");
    let mut group = c.benchmark_group("worldcup");
    group.sample_size(10);
    group.bench_function("a week, 20 services, 1,000 pods", |b| {
        b.iter(|| simulation::run(&scenario, policy, catalog, 1, &mut |_| {}));
    });
    group.finish();
}

criterion_group!(benches, week);
criterion_main!(benches);
