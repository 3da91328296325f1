//! Jobs and CronJobs.

use std::sync::Arc;

use super::bounds::replicas;
use super::common::{count, instant, metadata, metadata_and_life};
use super::job_status;
use super::pod::{OBJECT, controlling, template};
use super::success_policy;
use crate::lints;
use nodecast_model::domain::cron::CronProblem;
use nodecast_model::domain::pod::OwnerKind;
use nodecast_model::domain::workload::{Concurrency, CronJob, Job, JobConclusion, JobMaker, JobSpec, JobStatus};
use nodecast_model::domain::{SimDuration, SimTime, Symbol};
use nodecast_model::text::InputError;
use nodecast_model::text::reader::{Fields, Reader, Shape};
use nodecast_model::text::tree::{Node, NodeKind};
use nodecast_replicas::workloads::CronCalendar;

static JOB: Shape = Shape {
    name: "a Job's spec",
    keys: &[
        "parallelism",
        "completions",
        "backoffLimit",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
        "activeDeadlineSeconds",
        "suspend",
        "podFailurePolicy",
        "podReplacementPolicy",
        "successPolicy",
        "ttlSecondsAfterFinished",
        "completionMode",
        "managedBy",
        "template",
    ],
    without_effect: &["selector", "manualSelector"],
    unsupported: &[],
    strict: false,
};
static CRON_JOB: Shape = Shape {
    name: "a CronJob's spec",
    keys: &[
        "schedule",
        "timeZone",
        "concurrencyPolicy",
        "startingDeadlineSeconds",
        "suspend",
        "successfulJobsHistoryLimit",
        "failedJobsHistoryLimit",
        "jobTemplate",
    ],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};
static JOB_TEMPLATE: Shape =
    Shape { name: "`jobTemplate`", keys: &["metadata", "spec"], without_effect: &[], unsupported: &[], strict: false };
static FAILURE_POLICY: Shape =
    Shape { name: "`podFailurePolicy`", keys: &["rules"], without_effect: &[], unsupported: &[], strict: false };

/// A Job object. One that is being deleted makes no pods any more, as one that has ended.
///
/// Source: Kubernetes 1.36.2 `pkg/controller/job/job_controller.go`, `syncJob` (no pods are made once there is a `deletionTimestamp`).
pub(super) fn job<'s>(reader: &mut Reader<'s>, object: &Node<'s>) -> Result<Job, InputError> {
    let fields = reader.fields(object, &OBJECT)?;
    let (metadata, life) = metadata_and_life(reader, fields.get("metadata"))?;
    let name = metadata.name;
    let spec = job_spec(reader, fields.required(reader, "spec")?)?;
    let mut status = match object.get("status") {
        Some(node) => job_status::read(reader, node, object.get("spec"), spec.completions)?,
        None => JobStatus::default(),
    };
    if life.deleting {
        status.end.get_or_insert(JobConclusion { complete: false, at: None });
    }
    Ok(Job { name, spec, status, maker: maker(metadata.owners) })
}

/// Kind and name of what made a Job, of those that are simulated.
fn maker(owners: &[Node<'_>]) -> Option<(JobMaker, Symbol)> {
    let owner = controlling(owners)?;
    let text = |key| owner.get(key).and_then(Node::as_text);
    let maker = match text("kind")? {
        "CronJob" => JobMaker::CronJob,
        "ScaledJob" => JobMaker::ScaledJob,
        _ => return None,
    };
    Some((maker, Symbol::new(text("name")?)))
}

/// A CronJob object.
pub(super) fn cron_job<'s>(reader: &mut Reader<'s>, object: &Node<'s>) -> Result<CronJob, InputError> {
    const POLICIES: &[(&str, Concurrency)] =
        &[("Allow", Concurrency::Allow), ("Forbid", Concurrency::Forbid), ("Replace", Concurrency::Replace)];
    let fields = reader.fields(object, &OBJECT)?;
    let name = metadata(reader, fields.get("metadata"))?.name;
    let spec = reader.fields(fields.required(reader, "spec")?, &CRON_JOB)?;
    let (schedule, time_zone) = calendar(reader, spec)?;
    let job_template = reader.fields(spec.required(reader, "jobTemplate")?, &JOB_TEMPLATE)?;
    Ok(CronJob {
        name,
        schedule,
        time_zone,
        concurrency: spec
            .optional("concurrencyPolicy", |n, what| reader.choice(n, what, POLICIES))?
            .unwrap_or_default(),
        starting_deadline: spec.optional("startingDeadlineSeconds", |n, what| reader.seconds(n, what))?,
        suspended: spec.optional("suspend", |n, what| reader.truth(n, what))?.unwrap_or(false),
        successful_jobs_history_limit: count(reader, spec, "successfulJobsHistoryLimit")?.unwrap_or(3),
        failed_jobs_history_limit: count(reader, spec, "failedJobsHistoryLimit")?.unwrap_or(1),
        last_schedule: last_schedule(reader, object)?,
        job: job_spec(reader, job_template.required(reader, "spec")?)?,
    })
}

/// When the last Job that a CronJob has started was due, as its status says.
fn last_schedule<'s>(reader: &Reader<'s>, object: &Node<'s>) -> Result<Option<SimTime>, InputError> {
    const KEY: &str = "lastScheduleTime";
    let stated = object.get("status").and_then(|status| status.get(KEY)).filter(|node| node.kind != NodeKind::Null);
    stated.map(|node| instant(reader, node, KEY)).transpose()
}

/// The schedule and the time zone, both of which can be read.
fn calendar<'s>(reader: &Reader<'s>, spec: Fields<'_, 's>) -> Result<(String, Option<String>), InputError> {
    let node = spec.required(reader, "schedule")?;
    let schedule = reader.text(node, "schedule")?;
    let zone = spec.optional("timeZone", |n, what| reader.text(n, what))?;
    match CronCalendar::new(schedule, zone) {
        Ok(_) => Ok((schedule.to_owned(), zone.map(str::to_owned))),
        Err(problem) => {
            let of_zone = matches!(problem, CronProblem::TimeZone(_));
            let at = spec.get("timeZone").filter(|_| of_zone).unwrap_or(node).at;
            let help = match &problem {
                CronProblem::ZonePrefix { zone, .. } => {
                    format!("remove it from `schedule` and set `timeZone: {zone}`")
                }
                CronProblem::Every { .. } => "write for example `@every 1h30m`, or five fields".to_owned(),
                _ => "write for example `schedule: 30 8 * * 1-5` or `@daily`, and `timeZone: Europe/Berlin`".to_owned(),
            };
            Err(reader.error(at, problem.to_string()).because("cannot be read").help(help))
        }
    }
}

/// The API server takes no Job whose pods are restarted for ever.
///
/// Source: Kubernetes 1.36 `pkg/apis/batch/validation/validation.go`, `validateJobTemplateSpec` and `ValidateJobSpec`.
fn refuse_restarts(reader: &Reader<'_>, template: &Node<'_>) -> Result<(), InputError> {
    match restart_policy(template).filter(|node| node.as_text() == Some("Always")) {
        Some(node) => Err(reader
            .error(node.at, "the pods of a Job cannot have `restartPolicy: Always`")
            .because("the API server refuses it")
            .help("write `Never` or `OnFailure`")),
        None => Ok(()),
    }
}

fn restart_policy<'n, 's>(template: &'n Node<'s>) -> Option<&'n Node<'s>> {
    template.get("spec")?.get("restartPolicy")
}

/// What a Job does.
pub(super) fn job_spec<'s>(reader: &mut Reader<'s>, node: &Node<'s>) -> Result<JobSpec, InputError> {
    const MODES: &[(&str, bool)] = &[("NonIndexed", false), ("Indexed", true)];
    let spec = reader.fields(node, &JOB)?;
    let given = spec.required(reader, "template")?;
    refuse_restarts(reader, given)?;
    let template = template(reader, given, OwnerKind::Job)?;
    let parallelism = replicas(reader, spec, "parallelism")?;
    let completions = count(reader, spec, "completions")?;
    // Neither of the two means one pod that has to succeed.
    let completions = if parallelism.is_none() { completions.or(Some(1)) } else { completions };
    let indexed = spec.optional("completionMode", |n, what| reader.choice(n, what, MODES))?.unwrap_or(false);
    let by_index = indexed && completions.is_some();
    Ok(JobSpec {
        template: Arc::new(template),
        completions,
        parallelism: parallelism.unwrap_or(1),
        backoff_limit: backoff_limit(reader, node, spec)?,
        index_backoff_limit: count(reader, spec, "backoffLimitPerIndex")?.filter(|_| by_index),
        max_failed_indexes: count(reader, spec, "maxFailedIndexes")?,
        restarts_in_place: restart_policy(given).is_some_and(|node| node.as_text() == Some("OnFailure")),
        active_deadline: active_deadline(reader, spec)?,
        suspended: spec.optional("suspend", |n, what| reader.truth(n, what))?.unwrap_or(false),
        ignores_disruptions: ignores_disruptions(reader, spec)?,
        replaces_ended_only: replaces_ended_only(reader, spec)?,
        ttl: spec.optional("ttlSecondsAfterFinished", |n, what| reader.seconds(n, what))?,
        failure_policy: spec.get("podFailurePolicy").is_some(),
        indexed,
        success_policy: success_policy::read(reader, spec, by_index)?,
        manager: manager(reader, spec)?,
    })
}

/// Who manages a Job, if that is not the Job controller.
///
/// Source: Kubernetes 1.36 `staging/src/k8s.io/api/batch/v1/types.go`, `JobControllerName`.
fn manager<'s>(reader: &Reader<'s>, spec: Fields<'_, 's>) -> Result<Option<Symbol>, InputError> {
    let stated = spec.optional("managedBy", |n, what| reader.symbol(n, what))?;
    Ok(stated.filter(|name| name.as_str() != "kubernetes.io/job-controller"))
}

/// How many pods may fail: six, and as good as any number where failures count by index, unless stated.
///
/// Source: Kubernetes 1.36 `pkg/apis/batch/v1/defaults.go`, `SetDefaults_Job`.
fn backoff_limit<'s>(reader: &Reader<'s>, node: &Node<'s>, spec: Fields<'_, 's>) -> Result<u32, InputError> {
    let by_index = node.get("backoffLimitPerIndex").is_some_and(|stated| stated.kind != NodeKind::Null);
    let unstated = if by_index { i32::MAX.unsigned_abs() } else { 6 };
    Ok(count(reader, spec, "backoffLimit")?.unwrap_or(unstated))
}

fn active_deadline<'s>(reader: &Reader<'s>, spec: Fields<'_, 's>) -> Result<Option<SimDuration>, InputError> {
    spec.optional("activeDeadlineSeconds", |n, what| reader.seconds(n, what))
}

/// Whether pods that are being deleted are replaced only when they have ended: with a policy for failures unless stated.
///
/// Source: Kubernetes 1.36 `pkg/apis/batch/v1/defaults.go`, `SetDefaults_Job`.
fn replaces_ended_only<'s>(reader: &Reader<'s>, spec: Fields<'_, 's>) -> Result<bool, InputError> {
    const POLICIES: &[(&str, bool)] = &[("TerminatingOrFailed", false), ("Failed", true)];
    let stated = spec.optional("podReplacementPolicy", |n, what| reader.choice(n, what, POLICIES))?;
    Ok(stated.unwrap_or(spec.get("podFailurePolicy").is_some()))
}

/// Whether the policy for failures passes over pods that others evict; warns of every other rule.
fn ignores_disruptions<'s>(reader: &mut Reader<'s>, spec: Fields<'_, 's>) -> Result<bool, InputError> {
    let Some(node) = spec.get("podFailurePolicy") else { return Ok(false) };
    let fields = reader.fields(node, &FAILURE_POLICY)?;
    let mut ignores = false;
    for rule in fields.optional("rules", |n, what| reader.list(n, what))?.unwrap_or_default() {
        let text = |key: &str| rule.get(key).and_then(Node::as_text);
        let conditions = rule.get("onPodConditions").map_or(&[][..], Node::items);
        let of_disruption =
            |condition: &Node<'_>| condition.get("type").and_then(Node::as_text) == Some("DisruptionTarget");
        if text("action") == Some("Ignore") && conditions.iter().any(of_disruption) {
            ignores = true;
        } else {
            reader.left_out(&lints::POD_FAILURE_RULE, rule.at, "this rule of `podFailurePolicy` is not simulated", "");
        }
    }
    Ok(ignores)
}
