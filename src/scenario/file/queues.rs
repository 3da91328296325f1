//! `queues`: messages that arrive, and the workers that take them.

use super::super::definition::{QueueKind, QueueSpec};
use super::super::reader::{Fields, Reader};
use super::super::tree::Node;
use super::load::{self, Run};
use super::timeline::object_name;
use super::{Files, ScenarioError};
use crate::domain::SimDuration;
use crate::load::Work;
use crate::scenario::schema::metrics::QUEUE;

/// Reads `queues`.
pub(super) fn read<'s>(
    reader: &mut Reader<'s>,
    fields: Fields<'_, 's>,
    files: &mut Files<'_>,
    run: &Run<'_>,
) -> Result<Vec<QueueSpec>, ScenarioError> {
    let mut queues: Vec<QueueSpec> = Vec::new();
    for node in fields.optional("queues", |n, what| reader.list(n, what))?.unwrap_or_default() {
        let queue = queue(reader, node, files, run)?;
        if queues.iter().any(|other| other.name == queue.name && other.kind == queue.kind) {
            return Err(reader
                .error(node.at, format!("two queues of one kind are called `{}`", queue.name))
                .because("the second one")
                .help("give each its own name: triggers find a queue by it"));
        }
        queues.push(queue);
    }
    Ok(queues)
}

fn queue<'s>(
    reader: &mut Reader<'s>,
    node: &Node<'s>,
    files: &mut Files<'_>,
    run: &Run<'_>,
) -> Result<QueueSpec, ScenarioError> {
    let fields = reader.fields(node, &QUEUE.shape)?;
    let name = reader.text(fields.required(reader, "name")?, "name")?.to_owned();
    let workload_node = fields.required(reader, "workload")?;
    let workload = object_name(reader, workload_node)?;
    let makes_jobs = run.workloads.consumer_makes_jobs(reader, workload_node.at, workload)?;
    let time_node = fields.required(reader, "time_per_message")?;
    let time_per_message = reader.duration(time_node, "time_per_message")?;
    if time_per_message < SimDuration::from_millis(1) {
        return Err(reader
            .error(time_node.at, "a message that takes no time never waits")
            .because("shorter than a millisecond")
            .help("write the time that a worker spends on one message, for example `2s`"));
    }
    let concurrency = fields.optional("concurrency", |n, what| reader.integer(n, what, 1, 1_000_000))?.unwrap_or(1);
    let waiting = fields.optional("waiting", |n, what| reader.integer(n, what, 0, 1_000_000_000_000))?.unwrap_or(0);
    let per_job = fields.optional("messages_per_job", |n, what| reader.integer(n, what, 1, 1_000_000))?;
    if let (Some(node), false) = (fields.get("messages_per_job"), makes_jobs) {
        return Err(reader
            .error(node.at, format!("`messages_per_job` belongs to ScaledJobs; {workload} is none"))
            .because("has no meaning here")
            .help("take it out: a replica takes one message after the other"));
    }
    Ok(QueueSpec {
        name,
        kind: kind(reader, fields)?,
        workload,
        work: Work {
            time_per_message,
            cpu_per_message: fields
                .optional("cpu_per_message", |n, what| reader.duration(n, what))?
                .unwrap_or(SimDuration::ZERO),
            concurrency: u32::try_from(concurrency).unwrap_or(u32::MAX),
        },
        messages_per_job: u32::try_from(per_job.unwrap_or(1)).unwrap_or(u32::MAX),
        waiting: waiting as f64,
        messages: fields.get("messages").map(|n| load::messages(reader, n, files, run)).transpose()?,
    })
}

fn kind<'s>(reader: &Reader<'s>, fields: Fields<'_, 's>) -> Result<QueueKind, ScenarioError> {
    const KINDS: &[(&str, &str)] = &[("sqs", "sqs"), ("kafka", "kafka"), ("rabbitmq", "rabbitmq"), ("redis", "redis")];
    let given = reader.choice(fields.required(reader, "kind")?, "kind", KINDS)?;
    if given == "kafka" {
        let group = reader.text(fields.required(reader, "consumer_group")?, "consumer_group")?.to_owned();
        let partitions = reader.integer(fields.required(reader, "partitions")?, "partitions", 1, 100_000)?;
        return Ok(QueueKind::Kafka { partitions: u32::try_from(partitions).unwrap_or(u32::MAX), group });
    }
    for key in ["partitions", "consumer_group"] {
        if let Some(node) = fields.get(key) {
            return Err(reader
                .error(node.at, format!("`{key}` belongs to Kafka, not to a queue of the kind `{given}`"))
                .because("has no meaning here")
                .help("take it out, or write `kind: kafka`"));
        }
    }
    Ok(match given {
        "sqs" => QueueKind::Sqs,
        "rabbitmq" => QueueKind::RabbitMq,
        _ => QueueKind::Redis,
    })
}
