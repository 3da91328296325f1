//! `scenarios/karpenter-vs-cas`: what its README says, on the first day of its week.

use nodecast::report::format;

use super::{Run, edited_runs, has_rows};

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn karpenter_is_cheaper_and_faster_than_cas() {
    let all @ [karpenter, cas, fixed] = &edited_runs::<3>("karpenter-vs-cas", &["duration=1d"]);
    let wait = |run: &Run| run.summary.pods.wait_for_node.unwrap().p99_seconds;
    has_rows("karpenter-vs-cas", all, |run| {
        let nodes = &run.summary.nodes;
        [
            run.cost(),
            format::percent(run.summary.cost.idle.share),
            format::span(wait(run)),
            format::count(nodes.launches),
            format!("{:.1}", nodes.mean_ready.unwrap()),
        ]
    });
    let cost = |run: &Run| run.summary.cost.total;
    assert!(cost(karpenter) < 0.95 * cost(cas) && cost(cas) < 0.15 * cost(fixed));
    assert!(wait(karpenter) < wait(cas) && wait(fixed) < 1.0);
    // Response times hardly differ: replicas follow the load, and nodes follow replicas.
    for run in all {
        for (request, other) in run.summary.requests.iter().zip(&fixed.summary.requests) {
            let (p99_seconds, other) = (request.p99_seconds.unwrap(), other.p99_seconds.unwrap());
            assert!((p99_seconds / other - 1.0).abs() < 0.05, "{p99_seconds} against {other} under {}", run.policy);
        }
        assert!(run.lost() < 1.0);
    }
    // Where the autoscalers' own pods run is part of the bill: two small On-Demand nodes under each.
    let small =
        |run: &Run| run.summary.cost.by_capacity_type.iter().find(|part| part.name == "on-demand").unwrap().amount;
    assert!((small(karpenter) - small(cas)).abs() < 0.5, "{} and {}", small(karpenter), small(cas));
}
