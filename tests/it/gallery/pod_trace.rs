//! `scenarios/pod-trace`: what its README says.

use nodecast::report::format;

use super::{Run, has_rows, runs};

#[test]
fn consolidation_saves_but_moves_nearly_every_pod() {
    let all @ [consolidate, empty] = &runs::<2>("pod-trace");
    let nodes = |run: &Run| run.summary.nodes.mean_ready.unwrap();
    has_rows("pod-trace", all, |run| {
        [run.cost(), format!("{:.1}", nodes(run)), format::count(run.summary.pods.evicted)]
    });
    assert!(nodes(empty) > 2.5 * nodes(consolidate));
    let saved = 1.0 - consolidate.summary.cost.total / empty.summary.cost.total;
    assert!((0.25..0.35).contains(&saved), "{saved}");
    assert!(consolidate.summary.pods.evicted > 400 && empty.summary.pods.evicted == 0);
}
