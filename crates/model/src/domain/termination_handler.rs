//! AWS Node Termination Handler, as its chart installs it: a DaemonSet whose pods read what EC2 tells their instance.

use super::workload::ObjectName;

/// How the handler is set up. On an interruption notice it cordons and drains, its default.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TerminationHandler {
    /// Its DaemonSet: where none of its pods runs, nothing is handled.
    pub daemon_set: ObjectName,
    /// What it does when EC2 recommends to replace the instance.
    pub rebalance: RebalanceReaction,
}

/// What is done with a rebalance recommendation (`enableRebalanceMonitoring`, `enableRebalanceDraining`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RebalanceReaction {
    /// Nothing.
    #[default]
    Ignore,
    /// The node takes no more pods.
    Cordon,
    /// The node takes no more pods and loses those that it has.
    Drain,
}
