//! Whole runs whose work is watched: days of services under Karpenter with and without constraints, fleets under EC2's limits on
//! calls, outages, and many pods under the Cluster Autoscaler.
//!
//! With `NODECAST_BENCH_WRITE=folder` nothing is run: every scenario is written there, one folder for each, so that two programs
//! can be run on the same files by turns.

#![allow(missing_docs)] // the macros of criterion make functions without documentation

mod scenarios;

use std::hint::black_box;
use std::path::Path;
use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use nodecast::catalog::Catalog;
use nodecast::simulation;

use scenarios::{Files, Services};

// As in the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Everything that is measured, the names being those of the folders.
fn all() -> Vec<Files> {
    let services =
        |folder, count, constrained, days| scenarios::services(folder, Services { count, constrained, days });
    vec![
        services("plain-day-of-12", 12, false, 1),
        services("plain-day", 50, false, 1),
        services("plain-day-by-four", 200, false, 1),
        services("plain-day-of-800", 800, false, 1),
        services("plain-month", 50, false, 30),
        services("plain-year-of-12", 12, false, 365),
        services("constrained-day", 50, true, 1),
        services("constrained-day-by-four", 200, true, 1),
        scenarios::one_pod_each("one-pod-each-limited", 2_000, true),
        scenarios::one_pod_each("one-pod-each-unlimited", 2_000, false),
        scenarios::outage("outage"),
        scenarios::long_outage("long-outage"),
        scenarios::cluster_autoscaler("cluster-autoscaler-10000", 10_000),
        scenarios::cluster_autoscaler("cluster-autoscaler", 30_000),
    ]
}

/// Writes the files into a folder of their own; the path of the scenario.
fn write(below: &Path, of: &Files) -> std::path::PathBuf {
    let folder = below.join(of.folder);
    std::fs::create_dir_all(&folder).expect("a directory can be made");
    for (name, text) in &of.files {
        std::fs::write(folder.join(name), text).expect("a file can be written");
    }
    folder.join("scenario.yaml")
}

fn runs(criterion: &mut Criterion) {
    if let Some(folder) = std::env::var_os("NODECAST_BENCH_WRITE") {
        for of in all() {
            write(Path::new(&folder), &of);
        }
        return;
    }
    let folder = tempfile::tempdir().expect("a directory can be made");
    let catalog = Catalog::embedded().expect("the built-in prices can be read");
    let mut group = criterion.benchmark_group("consolidation");
    group.sample_size(10).warm_up_time(Duration::from_millis(1));
    for of in all() {
        let (scenario, _) = nodecast::scenario::load(&write(folder.path(), &of)).expect("the scenario can be read");
        let policy = scenario.for_policy(None).expect("it has a policy");
        group.bench_function(of.folder, |bencher| {
            bencher.iter(|| black_box(simulation::run(&scenario, policy, catalog, 1, &mut |_| {})));
        });
    }
    group.finish();
}

criterion_group!(benches, runs);
criterion_main!(benches);
