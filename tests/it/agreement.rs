//! Agreement with the real programs: the cases in tests/cases, counted by the same code as `examples/agreement`.

#[path = "../../examples/agreement/hpa.rs"]
mod hpa;
#[path = "../../examples/agreement/karpenter.rs"]
mod karpenter;
#[path = "../../examples/agreement/keda.rs"]
mod keda;
#[path = "../../examples/agreement/kube_scheduler.rs"]
mod kube_scheduler;
#[path = "../../examples/agreement/tally.rs"]
mod tally;
