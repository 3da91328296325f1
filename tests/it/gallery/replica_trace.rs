//! `scenarios/replica-trace`: what its README says.

use super::{Run, edited_runs};

/// Seconds that pods waited for a node, summed over pods.
fn pending(run: &Run) -> f64 {
    let waits = run.summary.pods.wait_for_node.unwrap();
    waits.mean_seconds * waits.count as f64
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn controller_time_lengthens_pod_waits() {
    let none = &edited_runs::<2>("replica-trace", &["controller_time=none"]);
    assert!(none.iter().all(|run| run.summary.controllers.is_empty()));
    let measured @ [karpenter, cas] = &edited_runs::<2>("replica-trace", &[]);
    let ratio = |[karpenter, cas]: &[Run; 2]| pending(cas) / pending(karpenter);
    assert!(ratio(measured) > 1.1 * ratio(none), "{} and {}", ratio(measured), ratio(none));
    let longer = measured.iter().zip(none).all(|(measured, none)| pending(measured) > 1.25 * pending(none));
    assert!(longer, "limits on calls make pods wait for their nodes and their bindings");
    let loops =
        |run: &Run| run.summary.controllers.loops.iter().map(|controller| controller.name.clone()).collect::<Vec<_>>();
    assert_eq!(loops(karpenter), ["karpenter scheduling", "karpenter disruption"]);
    assert_eq!(loops(cas), ["cluster-autoscaler"]);
    assert!(cas.summary.controllers.loops[0].longest_seconds > 0.1);
}
