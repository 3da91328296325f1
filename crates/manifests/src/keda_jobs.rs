//! KEDA's ScaledJobs.
//!
//! Source: KEDA 2.20 `apis/keda/v1alpha1/scaledjob_types.go`; `batch/v1` for the Job inside.

use super::batch::job_spec;
use super::common::{count, metadata};
use super::keda::triggers;
use super::pod::OBJECT;
use nodecast_model::domain::Symbol;
use nodecast_model::domain::keda::{JobStrategy, ScaledJob, ScalingAnnotations, TriggerCalculation};
use nodecast_model::text::InputError;
use nodecast_model::text::reader::{Fields, Reader, Shape};
use nodecast_model::text::tree::Node;

static SPEC: Shape = Shape {
    name: "a ScaledJob's spec",
    keys: &[
        "jobTargetRef",
        "pollingInterval",
        "minReplicaCount",
        "maxReplicaCount",
        "successfulJobsHistoryLimit",
        "failedJobsHistoryLimit",
        "rollout",
        "rolloutStrategy",
        "scalingStrategy",
        "triggers",
    ],
    without_effect: &["envSourceContainerName"],
    unsupported: &[],
    strict: false,
};
/// Jobs that are deleted go with their pods, whether before them or behind them.
static ROLLOUT: Shape = Shape {
    name: "`rollout`",
    keys: &["strategy"],
    without_effect: &["propagationPolicy"],
    unsupported: &[],
    strict: false,
};
static STRATEGY: Shape = Shape {
    name: "`scalingStrategy`",
    keys: &[
        "strategy",
        "customScalingQueueLengthDeduction",
        "customScalingRunningJobPercentage",
        "pendingPodConditions",
        "multipleScalersCalculation",
    ],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};

/// A ScaledJob object.
pub(super) fn scaled_job<'s>(reader: &mut Reader<'s>, object: &Node<'s>) -> Result<ScaledJob, InputError> {
    let fields = reader.fields(object, &OBJECT)?;
    let meta = metadata(reader, fields.get("metadata"))?;
    let name = meta.name;
    let spec = reader.fields(fields.required(reader, "spec")?, &SPEC)?;
    let job = job_spec(reader, spec.required(reader, "jobTargetRef")?)?;
    let triggers_node = spec.required(reader, "triggers")?;
    let triggers = triggers(reader, triggers_node)?;
    if triggers.iter().any(|trigger| trigger.source.is_resource()) {
        return Err(reader
            .error(triggers_node.at, "a ScaledJob cannot scale on cpu or memory: it has no long-running pods")
            .because("has a cpu or memory trigger")
            .help("remove it; use a trigger that measures pending work, for example a queue"));
    }
    let mut job = ScaledJob::new(name.namespace, name.name, job, triggers);
    if let Some(interval) = spec.optional("pollingInterval", |n, what| reader.integer(n, what, 1, 1_000_000))? {
        job.polling_interval = nodecast_model::domain::SimDuration::from_secs(interval);
    }
    job.paused = ScalingAnnotations::read(&meta.annotations).paused;
    job.gradual_rollout = gradual_rollout(reader, spec)?;
    job.min_replica_count = count(reader, spec, "minReplicaCount")?.unwrap_or(0).into();
    job.max_replica_count = count(reader, spec, "maxReplicaCount")?.unwrap_or(100).into();
    job.successful_jobs_history_limit = count(reader, spec, "successfulJobsHistoryLimit")?.unwrap_or(100);
    job.failed_jobs_history_limit = count(reader, spec, "failedJobsHistoryLimit")?.unwrap_or(100);
    if let Some(node) = spec.get("minReplicaCount").filter(|_| job.min_replica_count > job.max_replica_count) {
        return Err(reader
            .error(node.at, "`minReplicaCount` is above `maxReplicaCount`")
            .because("above the maximum")
            .help("raise `maxReplicaCount` or lower `minReplicaCount`"));
    }
    if let Some(node) = spec.get("scalingStrategy") {
        strategy(reader, node, &mut job)?;
    }
    Ok(job)
}

/// Whether Jobs that run stay when the object is changed. The older key counts where both are there, and any other text than `gradual`
/// stands for `default`.
///
/// Source: KEDA 2.20 `controllers/keda/scaledjob_controller.go`, `deletePreviousVersionScaleJobs`.
fn gradual_rollout<'s>(reader: &mut Reader<'s>, spec: Fields<'_, 's>) -> Result<bool, InputError> {
    let older = spec.optional("rolloutStrategy", |n, what| reader.text(n, what))?.filter(|text| !text.is_empty());
    let strategy = match (older, spec.get("rollout")) {
        (None, Some(node)) => reader.fields(node, &ROLLOUT)?.optional("strategy", |n, what| reader.text(n, what))?,
        _ => older,
    };
    Ok(strategy == Some("gradual"))
}

fn strategy<'s>(reader: &mut Reader<'s>, node: &Node<'s>, job: &mut ScaledJob) -> Result<(), InputError> {
    const STRATEGIES: &[(&str, &str)] =
        &[("default", "default"), ("custom", "custom"), ("accurate", "accurate"), ("eager", "eager")];
    const CALCULATIONS: &[(&str, TriggerCalculation)] = &[
        ("max", TriggerCalculation::Max),
        ("min", TriggerCalculation::Min),
        ("avg", TriggerCalculation::Avg),
        ("sum", TriggerCalculation::Sum),
    ];
    let fields = reader.fields(node, &STRATEGY)?;
    job.strategy = match fields.optional("strategy", |n, what| reader.choice(n, what, STRATEGIES))? {
        Some("custom") => custom(reader, fields)?,
        Some("accurate") => JobStrategy::Accurate,
        Some("eager") => JobStrategy::Eager,
        _ => JobStrategy::Default,
    };
    job.calculation = fields
        .optional("multipleScalersCalculation", |n, what| reader.choice(n, what, CALCULATIONS))?
        .unwrap_or_default();
    let conditions = fields.optional("pendingPodConditions", |n, what| reader.list(n, what))?.unwrap_or_default();
    for node in conditions {
        let condition = reader.text(node, "pendingPodConditions")?;
        // The conditions that the simulation keeps of a pod.
        if !["PodScheduled", "Initialized", "ContainersReady", "Ready"].contains(&condition) {
            return Err(reader
                .error(node.at, format!("the simulation does not set the pod condition `{condition}`"))
                .because("would never hold")
                .help("name one of PodScheduled, Initialized, ContainersReady and Ready"));
        }
        job.pending_pod_conditions.push(Symbol::new(condition));
    }
    Ok(())
}

fn custom<'s>(reader: &Reader<'s>, fields: Fields<'_, 's>) -> Result<JobStrategy, InputError> {
    let deduction = fields
        .optional("customScalingQueueLengthDeduction", |n, what| reader.integer(n, what, 0, i64::from(i32::MAX)))?;
    let percentage = fields.optional("customScalingRunningJobPercentage", |n, what| reader.text(n, what))?;
    Ok(JobStrategy::Custom {
        queue_length_deduction: deduction.unwrap_or(0),
        running_job_percentage: percentage.unwrap_or_default().to_owned(),
    })
}
