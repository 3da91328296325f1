//! KEDA's arithmetic: what one poll of a ScaledObject writes, what its autoscaler reads, how many Jobs a ScaledJob makes.
//!
//! KEDA itself moves a count between zero (or idle) and the minimum, at polls; everything above is done by the
//! HorizontalPodAutoscaler that it owns, see [`horizontal_pod_autoscaler`] and [`super::hpa`].

mod fallback;
mod formula;
mod jobs;
mod mapping;
mod poll;
mod values;

pub use fallback::{FallbackCounts, FallbackRead, fallback_goal, read_with_fallback, valid_fallback};
pub use formula::{Composite, Formula, FormulaError, composite};
pub use jobs::{JobDemand, JobPlan, JobPodView, JobTrigger, combine, is_pending, plan_jobs, trigger_maximum};
pub use mapping::{autoscaler_name, external_metric_name, horizontal_pod_autoscaler, target_of, trigger_metric_name};
pub use poll::{ActiveReason, PollDecision, PollView, ReadyReason, TriggerState, is_active, poll};
pub use values::{Partition, QueryResult, QueueFigures, SourceReading, TriggerValue, ValueProblem, trigger_value};
