//! Directions of plans and bounds on the packing suite: a requirement more must not make the same pods cheaper, and a pool that can
//! launch nothing must change nothing.

use std::path::{Path, PathBuf};

use nodecast::program::Prices;
use nodecast::program::pack::pass;
use nodecast::scenario::{Circumstances, packing_question};
use nodecast_karpenter::bin_packing::Effort;
use nodecast_karpenter::packing::PackerKind;
use rand::rngs::ChaCha8Rng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

use crate::cli::Place;

/// Set to ask more instances with more requirements.
const WHOLE: &str = "NODECAST_WHOLE_RUNS";
/// Instances that take a second or so as tests are compiled.
const SMALL: [&str; 4] = ["social-network", "mixed-sizes-500", "gpu-600", "azure-2000"];
const ALL: [&str; 10] = [
    "social-network",
    "mixed-sizes-500",
    "gpu-600",
    "azure-2000",
    "anti-affinity-1000",
    "azure-10000",
    "azure-50000",
    "mixed-sizes-5000",
    "constrained-3000",
    "zone-spread-2000",
];

/// Requirements that take instance types away, and none of which leaves bare metal alone.
const REQUIREMENTS: [&str; 12] = [
    "{ key: karpenter.k8s.aws/instance-hypervisor, operator: In, values: [nitro] }",
    "{ key: karpenter.k8s.aws/instance-category, operator: In, values: [c, m] }",
    "{ key: karpenter.k8s.aws/instance-category, operator: In, values: [m, r] }",
    "{ key: karpenter.k8s.aws/instance-generation, operator: Gt, values: [\"5\"] }",
    "{ key: karpenter.k8s.aws/instance-generation, operator: Lt, values: [\"7\"] }",
    "{ key: karpenter.k8s.aws/instance-cpu, operator: Lt, values: [\"65\"] }",
    "{ key: karpenter.k8s.aws/instance-cpu, operator: Gt, values: [\"3\"] }",
    "{ key: karpenter.k8s.aws/instance-family, operator: NotIn, values: [c6g, c7g, m6g] }",
    "{ key: karpenter.k8s.aws/instance-size, operator: NotIn, values: [large, 12xlarge] }",
    "{ key: karpenter.sh/capacity-type, operator: In, values: [on-demand] }",
    "{ key: kubernetes.io/arch, operator: In, values: [arm64] }",
    "{ key: kubernetes.io/arch, operator: In, values: [amd64] }",
];

/// A pool of every type of the suite with no room left, which stands before the suite's own pool.
const UNUSED: &str = "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: { name: zero }\nspec:\n  weight: 10\n  limits: { cpu: \"0\" }\n  template:\n    spec:\n      nodeClassRef: { group: karpenter.k8s.aws, kind: EC2NodeClass, name: default }\n      requirements:\n        - { key: karpenter.sh/capacity-type, operator: In, values: [spot, on-demand] }\n";

/// An answer for an instance: price of the plan and bound on it for an hour, and pods without a place.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Answer {
    plan: i64,
    bound: i64,
    pending: usize,
}

/// The share by which a requirement more may lower the plan of an instance: the search is a heuristic.
const PLAN_TOLERANCE: f64 = 0.01;

/// The share by which a requirement more may lower the bound of an instance: column generation stops a thousandth below the best bound, and
/// further below it where the worth of bins of many kinds cannot be proved.
fn bound_tolerance(instance: &str) -> f64 {
    if instance == "anti-affinity-1000" { 0.01 } else { 0.001 }
}

fn instances() -> &'static [&'static str] {
    if std::env::var_os(WHOLE).is_some() { &ALL } else { &SMALL }
}

/// The instance packed by the cost-aware packer, with more requirements in the suite's NodePool and another file.
fn answer(prices: &Prices, instance: &str, requirements: &[&str], more: Option<&str>) -> Answer {
    let suite = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/packing");
    let place = Place::new();
    let pool = std::fs::read_to_string(suite.join("nodepool.yaml")).unwrap();
    let lines: String = requirements.iter().map(|line| format!("        - {line}\n")).collect();
    place.put("nodepool.yaml", &pool.replacen("      requirements:\n", &format!("      requirements:\n{lines}"), 1));
    let mut files = vec![suite.join("cluster.yaml"), place.path("nodepool.yaml"), suite.join("daemonset.yaml")];
    if let Some(text) = more {
        place.put("more.yaml", text);
        files.push(place.path("more.yaml"));
    }
    let path = std::fs::read_dir(suite.join(instance)).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> = path.collect();
    paths.sort();
    files.extend(paths);
    let question = packing_question::load(&files, &Circumstances::default(), prices.catalog()).unwrap();
    let steps = Effort::THOROUGH;
    let packed = pass(PackerKind::CostAware, &question, &mut Effort { steps, go_on: &mut || true });
    let packed = packed.with_bound(&mut Effort { steps, go_on: &mut || true });
    let launches = packed.launches.iter().map(|launch| launch.as_ref().unwrap().cheapest().unwrap().as_nanos());
    Answer {
        plan: launches.sum(),
        bound: packed.bound.unwrap().per_hour.as_nanos(),
        pending: packed.plan.unschedulable.len(),
    }
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn requirement_more_makes_no_instance_cheaper() {
    let prices = Prices::open(None).unwrap();
    let mut random = ChaCha8Rng::seed_from_u64(11);
    let mut compared = 0;
    for instance in instances() {
        let plain = answer(&prices, instance, &[], None);
        assert!(plain.bound <= plain.plan, "{instance}: {plain:?}");
        for _ in 0..if std::env::var_os(WHOLE).is_some() { 8 } else { 2 } {
            let number = random.random_range(1..=2);
            let more: Vec<&str> = REQUIREMENTS.sample(&mut random, number).copied().collect();
            let narrow = answer(&prices, instance, &more, None);
            let shown = format!("{instance} {more:?}: {plain:?}, then {narrow:?}");
            assert!(narrow.bound <= narrow.plan, "{shown}");
            if narrow.pending != plain.pending {
                continue;
            }
            compared += 1;
            let least = plain.bound as f64 * (1.0 - bound_tolerance(instance));
            assert!(narrow.bound as f64 >= least, "the bound became lower: {shown}");
            let least = plain.plan as f64 * (1.0 - PLAN_TOLERANCE);
            assert!(narrow.plan as f64 >= least, "the plan became cheaper: {shown}");
        }
    }
    assert!(compared >= instances().len(), "only {compared} comparisons");
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn pool_without_room_changes_no_instance() {
    let prices = Prices::open(None).unwrap();
    for instance in instances() {
        let plain = answer(&prices, instance, &[], None);
        assert_eq!(answer(&prices, instance, &[], Some(UNUSED)), plain, "{instance}");
    }
}
