//! What the control plane works out from the cluster and answers with: the status of disruption budgets, whether a pod may be
//! evicted, which pods a scale takes.
//!
//! What must not live here: when controllers run (`actors`), what autoscalers decide (the deciding crates).

pub mod budgets;
pub mod call_limit;
pub mod eviction;
pub mod scales;
