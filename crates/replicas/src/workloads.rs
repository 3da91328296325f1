//! The workload controllers' arithmetic: how many pods to make or delete, and which.
//!
//! What must not live here: pods being made or deleted, and when a controller looks.

pub mod cron_job;
pub mod deployment;
pub mod edits;
pub mod job;
pub mod replica_set;
pub mod stateful_set;

pub use cron_job::{CronCalendar, CronStep, CronView, cron_step};
pub use deployment::{ReplicaSetView, RollingLimits, Rollout, roll, scale_replica_sets};
pub use edits::{fixed_of_job, fixed_of_stateful_set};
pub use job::{JobEnd, JobStep, JobView, job_step, job_wants, may_change_template, retry_delay};
pub use replica_set::{PodChange, VictimView, pod_change, slow_start_batches, victims};
pub use stateful_set::{OrdinalStep, OrdinalView, StatefulSetView, ordinal_steps};
