//! How fast Karpenter's scheduler answers here: whole passes over 5,000 to 50,000 pods and 400 instance types, and what
//! consolidation asks of clusters of 300 and 1,000 nodes. The inputs are those of `tests/cases/karpenter-large`; reading
//! them is not measured. `reports/bench/` holds what came out where.

#![allow(missing_docs)] // the macros of criterion make functions without documentation

use std::hint::black_box;
use std::path::Path;

use agreement::karpenter_case::{Case, Catalogs};
use agreement::karpenter_consolidation::{multi, with_cluster};
use agreement::tally::read_json;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use nodecast_karpenter::disruption::{Candidate, Method, WhatIf, candidates};
use nodecast_karpenter::packing::pack;
use serde_json::Value;

fn case(name: &str) -> (Case, Value) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/karpenter-large");
    let path = folder.join(format!("{name}.json.gz"));
    let read = || -> Result<(Case, Value), String> {
        let value = read_json(&path)?;
        let mut catalogs = Catalogs::new(None);
        let catalog = catalogs.find(&path, value["catalog"].as_str().unwrap_or_default())?;
        Ok((Case::read(&value, catalog)?, value))
    };
    read().unwrap_or_else(|problem| panic!("{name}: {problem}"))
}

/// One cold pass: topology, packing, price order.
fn passes(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("pass");
    group.sample_size(10);
    for kind in ["plain", "mixed"] {
        for size in ["5k", "20k", "50k"] {
            let (case, _) = case(&format!("{kind}-{size}-l"));
            group.throughput(Throughput::Elements(case.pods.len() as u64));
            group.bench_function(BenchmarkId::new(kind, size), |bencher| {
                case.with(|setup, situation| bencher.iter(|| black_box(pack(setup, situation))));
            });
        }
    }
    group.finish();
}

/// Questions about one cluster: compiling it, taking each single node away in turn, the search over prefixes of candidates.
fn consolidation(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("consolidation");
    group.sample_size(10);
    for name in ["tight-1000", "anti-300"] {
        let (case, value) = case(&format!("consolidate-{name}"));
        let asked = with_cluster(&case, &value, |packer, view| {
            let found: Vec<Candidate> = candidates(view, Method::SingleNode);
            group.bench_function(BenchmarkId::new("compile", name), |bencher| {
                bencher.iter(|| drop(black_box(WhatIf::new(packer, view))));
            });
            group.throughput(Throughput::Elements(found.len() as u64));
            group.bench_function(BenchmarkId::new("each node alone", name), |bencher| {
                let mut what_if = WhatIf::new(packer, view);
                bencher.iter(|| {
                    for candidate in &found {
                        black_box(what_if.simulate_consolidation(&[candidate], None));
                    }
                });
            });
            group.throughput(Throughput::Elements(1));
            group.bench_function(BenchmarkId::new("multi-node decision", name), |bencher| {
                bencher.iter(|| black_box(multi(packer, view, &found)));
            });
        });
        asked.unwrap_or_else(|problem| panic!("{name}: {problem}"));
    }
    group.finish();
}

criterion_group!(benches, passes, consolidation);
criterion_main!(benches);
