//! `queues`: messages that arrive, and the workers that take them.

use super::{Reading, ScenarioError};
use crate::definition::{KafkaTopic, QueueKind, QueueSpec};
use crate::reader::Fields;
use crate::schema::metrics::QueueKeys;
use nodecast_load::Work;

/// A queue; what belongs to Kafka or to ScaledJobs stands nowhere else.
pub(crate) fn queue<'s>(
    reading: &mut Reading<'_, 's>,
    fields: Fields<'_, 's>,
    queue_keys: QueueKeys,
) -> Result<QueueSpec, ScenarioError> {
    let (workload, at) = queue_keys.workload;
    let per_job = fields.get("messages_per_job").map(|node| node.at);
    reading.workloads.check_consumer(&reading.reader, at, workload, per_job)?;
    let topic = if queue_keys.kind == "kafka" {
        fields.required(&reading.reader, "consumer_group")?;
        fields.required(&reading.reader, "partitions")?;
        let (partitions, group) =
            (queue_keys.partitions.unwrap_or_default(), queue_keys.consumer_group.unwrap_or_default());
        Some(KafkaTopic { partitions, group })
    } else if let Some((key, node)) =
        ["partitions", "consumer_group"].into_iter().find_map(|key| Some((key, fields.get(key)?)))
    {
        return Err(reading
            .error(node.at, format!("`{key}` belongs to Kafka, not to a queue of the kind `{}`", queue_keys.kind))
            .because("has no meaning here")
            .help("take it out, or write `kind: kafka`"));
    } else {
        None
    };
    Ok(QueueSpec {
        name: queue_keys.name,
        kind: QueueKind { system: queue_keys.kind, topic },
        workload,
        work: Work {
            time_per_message: queue_keys.time_per_message,
            cpu_per_message: queue_keys.cpu_per_message,
            concurrency: queue_keys.concurrency,
        },
        messages_per_job: queue_keys.messages_per_job,
        waiting: queue_keys.waiting as f64,
        messages: queue_keys.messages,
    })
}
