//! `scenarios/batch`: what its README says.

use nodecast::report::format;

use super::{Run, has_rows, runs};

/// The cost of the nodes that the Jobs ran on.
fn nodes(run: &Run) -> f64 {
    run.summary.cost.by_node_origin.iter().find(|part| part.name == "default").unwrap().amount
}

#[test]
fn spot_halves_render_cost_despite_restarts() {
    let all @ [spot, on_demand, twenty] = &runs::<3>("batch");
    has_rows("batch", all, |run| {
        let (queue, currency) = (&run.summary.queues[0], &run.summary.about.currency);
        [
            run.cost(),
            format::money(currency, nodes(run) / queue.processed),
            format::count(run.summary.pods.evicted),
            format::span_or_dash(queue.mean_wait_seconds),
            format::span(queue.longest_wait_seconds),
        ]
    });
    for run in all {
        let queue = &run.summary.queues[0];
        assert!((queue.processed - 1_100.0).abs() < 1e-6 && queue.waiting_at_end < 1e-6, "{queue:?}");
    }
    assert!(nodes(spot) < 0.5 * nodes(on_demand));
    // Every frame whose node is interrupted is begun anew, by a pod of its own, and EC2 finds nothing left to take.
    let (begun, lost) = (spot.pods("batch/render", 0).len(), spot.summary.pods.evicted as usize);
    assert!(lost > 15 && begun == 1_100 + lost, "{begun} pods for 1,100 frames, {lost} evicted");
    assert!(spot.summary.nodes.interruptions >= 3 && spot.summary.nodes.reclaimed == 0);
    assert_eq!(on_demand.summary.pods.evicted, 0);
    let wait = |run: &Run| run.summary.queues[0].mean_wait_seconds.unwrap();
    assert!(wait(spot) < 1.1 * wait(on_demand) && wait(twenty) > 3.0 * wait(spot));
    assert!(nodes(twenty) > 0.8 * nodes(spot) && nodes(twenty) < 1.05 * nodes(spot));
}
