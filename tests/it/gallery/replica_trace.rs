//! `scenarios/replica-trace`: what its README says.

use super::{Run, edited_runs};

/// Seconds that pods waited for a node, summed over pods.
fn pending(run: &Run) -> f64 {
    let waits = run.summary.pods.wait_for_node.unwrap();
    waits.mean_seconds * waits.count as f64
}

#[test]
fn pods_wait_longer_under_the_cluster_autoscaler_and_loops_tell_what_they_took() {
    let none @ [karpenter, cas] = &edited_runs::<2>("replica-trace", &["controller_time=none"]);
    assert!(pending(cas) > 1.5 * pending(karpenter), "{} and {}", pending(cas), pending(karpenter));
    assert!(none.iter().all(|run| run.summary.controllers.is_empty()));
    let [karpenter, cas] = &edited_runs::<2>("replica-trace", &[]);
    assert!(pending(cas) > pending(karpenter), "{} and {}", pending(cas), pending(karpenter));
    let loops = |run: &Run| run.summary.controllers.loops.iter().map(|own| own.name.clone()).collect::<Vec<_>>();
    assert_eq!(loops(karpenter), ["karpenter scheduling", "karpenter disruption"]);
    assert_eq!(loops(cas), ["cluster-autoscaler"]);
    assert!(cas.summary.controllers.loops[0].longest_seconds > 0.1);
}
