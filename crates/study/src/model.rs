//! The number of the model: which figures move because the program has learnt something, and not because of an edit.
//!
//! A baseline carries the number of the model that wrote it. Whoever changes what a scenario's figures come to, for all
//! scenarios or for a kind of them, adds a line to [`CHANGES`]; the first such line after a release also raises [`MODEL`].

/// The number of the model.
pub const MODEL: u32 = 3;

/// The model of baselines that carry no number.
pub const FIRST: u32 = 1;

/// What changed, by the number of the model that brought it, in ascending order.
pub const CHANGES: &[(u32, &str)] = &[
    (2, "controllers take time: pods are created and bound at limited rates, passes of node autoscalers last"),
    (2, "names and phases are drawn from the seed, so that seeds differ more"),
    (
        2,
        "the scheduler's back-off ends with windows of a second, its conditions hold it up, and events of pods take calls",
    ),
    (2, "messages that are being worked on no longer count as waiting"),
    (2, "polls and syncs drift by milliseconds, so that ages of exactly one period no longer tie"),
    (2, "metrics-server reads all nodes at its own tick, at a resolution that a key states"),
    (
        2,
        "what nobody requested, nodes and workloads follow the net bill: commitments are spread over what they cover first",
    ),
    (2, "Karpenter v1.14 reckons with daemons by instance type, and every release from v0.23 on is its own"),
    (2, "replicas that are missing count from the instant that they stop serving, placeholders apart from other pods"),
    (3, "kube-scheduler takes 7 ms for an attempt, and the Cluster Autoscaler's calls share one client"),
    (
        3,
        "EC2 chooses between zones of one price by an even draw; Spot prices have a level for each region and zones that differ",
    ),
    (3, "waits over several seeds are medians"),
];

/// What changed after the model of this number, in order.
pub fn changes_since(model: u32) -> impl Iterator<Item = &'static str> {
    CHANGES.iter().filter(move |(number, _)| *number > model).map(|(_, what)| *what)
}

#[cfg(test)]
mod tests {
    use super::{CHANGES, FIRST, MODEL, changes_since};

    #[test]
    fn the_number_is_that_of_the_last_change() {
        assert!(CHANGES.is_sorted_by_key(|(number, _)| *number));
        assert_eq!(CHANGES.last().map(|(number, _)| *number), Some(MODEL));
        assert_eq!(changes_since(FIRST).count(), CHANGES.len());
        assert_eq!(changes_since(MODEL).count(), 0);
    }
}
