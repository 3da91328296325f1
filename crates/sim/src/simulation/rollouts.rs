//! Warnings about rollouts that stand still as a run ends: without them only the events tell.

use crate::domain::Symbol;
use crate::domain::workload::ObjectName;

/// So many are told of.
const TOLD_MAX: usize = 5;

/// A sentence for each rollout that has made no progress for longer than its deadline, by the name of its Deployment, with the claim that a
/// new pod waits for. It tells of no figure that depends on the seed, so that
/// it stands once where many runs are compared.
pub(super) fn stalled(mut found: Vec<(ObjectName, Option<Symbol>)>) -> Vec<String> {
    found.sort_unstable();
    let sentence = |(name, claim)| {
        let why = match claim {
            Some(claim) => format!(
                "a new pod waits for the volume of the claim {claim}, which is attached to the node of another pod (Multi-Attach), and an old one \
                 goes only when a new one is Ready; state `strategy: {{ type: Recreate }}`, or `maxSurge: 0` with `maxUnavailable: 1`"
            ),
            None => "its new pods do not become Ready; see the RolloutStalled and pod events for the reason".to_owned(),
        };
        format!(
            "the rollout of Deployment {name} is stuck at the end of the run, past its `progressDeadlineSeconds`: {why}"
        )
    };
    found.into_iter().take(TOLD_MAX).map(sentence).collect()
}
