//! `scenarios/multi-architecture`: what its README says.

use std::collections::BTreeSet;

use nodecast::domain::Symbol;
use nodecast::report::format;
use nodecast::world::record::NodeOrigin;

use super::{Run, has_rows, runs};

/// The cost of the NodePool's nodes, and that of those with Graviton processors.
fn cost_of_pool(run: &Run) -> (f64, f64) {
    let cost = &run.summary.cost;
    let pool = cost.by_node_origin.iter().find(|part| part.name.contains("default")).unwrap().amount;
    let graviton = cost.by_family.iter().filter(|part| part.name.ends_with('g'));
    (pool, graviton.fold(0.0, |sum, part| sum + part.amount))
}

/// Instance families of the NodePool's nodes, and architectures under the pods of a workload.
fn used(run: &Run, workload: &str) -> (BTreeSet<String>, BTreeSet<Symbol>) {
    let nodes = &run.outcome.record.nodes;
    let this_node = nodes.iter().filter(|node| matches!(node.origin, NodeOrigin::NodePool(_)));
    let family = |name: Symbol| name.as_str().split('.').next().unwrap().to_owned();
    let families = this_node.filter_map(|node| node.instance_type).map(family).collect();
    let pods = run.pods(workload, 0);
    let arches = pods.iter().filter_map(|pod| nodes[pod.node?.index()].arch).collect();
    (families, arches)
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn graviton_saves_and_amd64_image_stays() {
    let all @ [amd64, intel, both, rebuilt] = &runs::<4>("multi-architecture");
    has_rows("multi-architecture", all, |run| {
        let (pool, graviton) = cost_of_pool(run);
        [run.cost(), format::percent(graviton / pool), format::whole(run.lost())]
    });
    let cost = |run: &Run| run.summary.cost.total;
    let ratio = (cost(intel) - cost(rebuilt)) / (cost(amd64) - cost(rebuilt));
    assert!((1.7..2.3).contains(&ratio), "{ratio}");
    assert!(cost(rebuilt) < 0.98 * cost(both) && cost(both) < 0.96 * cost(amd64));
    let (amd, intels) = (used(amd64, "shop/legacy").0, used(intel, "shop/legacy").0);
    assert!(amd.iter().all(|family| family.ends_with("6a")), "{amd:?}");
    assert!(intels.iter().all(|family| family.contains('i')), "{intels:?}");
    let (x86, arm) = (Symbol::new("amd64"), Symbol::new("arm64"));
    let (families, legacy) = used(both, "shop/legacy");
    assert!(families.iter().all(|family| family.ends_with("6g") || family.ends_with("6a")), "{families:?}");
    assert_eq!(legacy, BTreeSet::from([x86]));
    // The others fill the room that it leaves.
    assert_eq!(used(both, "shop/catalog").1, BTreeSet::from([x86, arm]));
    assert_eq!(used(rebuilt, "shop/legacy").1, BTreeSet::from([arm]));
}
