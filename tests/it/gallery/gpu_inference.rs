//! `scenarios/gpu-inference`: what its README says.

use nodecast::report::format;
use nodecast::world::record::NodeOrigin;

use super::{Run, has_rows, runs};

/// Instance types of the nodes that Karpenter launched, in order.
fn types(run: &Run) -> Vec<&str> {
    let nodes = run.outcome.record.nodes.iter();
    let nodes = nodes.filter(|node| matches!(node.origin, NodeOrigin::NodePool(_)));
    nodes.filter_map(|node| node.instance_type.map(|name| name.as_str())).collect()
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn gpu_node_size_matters_more_than_autoscaling() {
    let all @ [fixed, autoscaled, underutilized, any, spot] = &runs::<5>("gpu-inference");
    has_rows("gpu-inference", all, |run| {
        let (nodes, pods) = (&run.summary.nodes, &run.summary.pods);
        [
            run.cost(),
            format::count(nodes.launches),
            format::count(pods.evicted),
            format::whole(run.lost()),
            format::span(run.slowest()),
        ]
    });
    let cost = |run: &Run| run.summary.cost.total;
    assert!((2.5..4.0).contains(&(cost(any) / cost(autoscaled))));
    assert_eq!(types(any), ["g6.48xlarge", "g6.48xlarge"]);
    assert!(types(fixed).iter().all(|name| *name == "g6.xlarge"), "the L4 is the cheaper one");
    let saved = 1.0 - cost(autoscaled) / cost(fixed);
    assert!((0.15..0.3).contains(&saved), "{saved}");
    assert!((0.7..0.8).contains(&(cost(spot) / cost(autoscaled))) && spot.summary.nodes.interruptions == 0);
    assert!(types(spot).iter().all(|name| *name == "g5.2xlarge"), "the deep pool");
    assert!(cost(underutilized) > 0.88 * cost(autoscaled) && cost(underutilized) < 0.96 * cost(autoscaled));
    assert!(underutilized.lost() > 2.0 * autoscaled.lost().max(spot.lost()));
    // A replica on a node that is launched for it answers five minutes after its creation.
    let pods = autoscaled.pods("llm/chat", 57);
    let slow: Vec<f64> = pods
        .iter()
        .filter(|pod| pod.unschedulable.is_some())
        .filter_map(|pod| Some(pod.ready?.saturating_since(pod.created).as_secs_f64()))
        .collect();
    assert!(slow.len() > 5 && slow.iter().all(|seconds| (200.0..360.0).contains(seconds)), "{slow:?}");
}
