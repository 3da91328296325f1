//! Agreement with the real programs: the cases in tests/cases, counted by the same code as `examples/agreement`.

#[path = "../../examples/agreement/hpa.rs"]
#[allow(dead_code)]
mod hpa;
#[path = "../../examples/agreement/karpenter.rs"]
#[allow(dead_code)]
mod karpenter;
#[path = "../../examples/agreement/keda.rs"]
#[allow(dead_code)]
mod keda;
#[path = "../../examples/agreement/kube_scheduler.rs"]
#[allow(dead_code)]
mod kube_scheduler;
#[path = "../../examples/agreement/tally.rs"]
#[allow(dead_code)]
mod tally;
