//! Sources of metrics: series of Prometheus, rules of the adapter, queues.

use nodecast_load::Work;
use nodecast_model::domain::workload::ObjectName;
use nodecast_model::domain::{Labels, SimTime, Symbol};

use crate::load::OpenRequests;

/// Series of one name that tell of one workload.
#[derive(Clone, PartialEq, Debug)]
pub struct SeriesSpec {
    /// Name.
    pub name: String,
    /// The workload.
    pub workload: ObjectName,
    /// What they show.
    pub kind: SeriesKind,
    /// Who exports them.
    pub owner: SeriesOwner,
    /// Labels over those that they have anyway.
    pub labels: Labels,
}

/// What a series shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SeriesKind {
    /// Requests answered, as Istio's proxies count them, with their labels.
    IstioRequests,
    /// Requests answered: a counter of the pods' own.
    Requests,
    /// Requests that are being served or wait, as a share of each pod.
    RequestsInFlight,
    /// Ready replicas.
    ReplicasReady,
    /// Replicas wanted.
    ReplicasDesired,
}

/// Who exports a series.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SeriesOwner {
    /// Each pod of the workload: its series end with it.
    Pods,
    /// Something that outlives the pods: a gateway, or kube-state-metrics.
    Gateway,
}

/// What the adapter serves under the name of a metric.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AdapterRule {
    /// The name that a HorizontalPodAutoscaler uses.
    pub metric: Symbol,
    /// The query, whose elements carry labels `namespace` and `pod` (for Pods metrics) or the object's kind.
    pub query: String,
}

/// A stretch of time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outage {
    /// Its start.
    pub from: SimTime,
    /// Its end.
    pub until: SimTime,
}

/// A queue whose messages a workload takes.
#[derive(Clone, PartialEq, Debug)]
pub struct QueueSpec {
    /// The SQS queue, Kafka topic, RabbitMQ queue or Redis list.
    pub name: String,
    /// What it is.
    pub kind: QueueKind,
    /// Who takes its messages: a Deployment, or the Jobs of a ScaledJob.
    pub workload: ObjectName,
    /// What one worker does.
    pub work: Work,
    /// Messages that one pod of a ScaledJob takes; 1 unless given.
    pub messages_per_job: u32,
    /// Messages that wait at the start.
    pub waiting: f64,
    /// Messages that arrive; `None` if none do.
    pub messages: Option<OpenRequests>,
}

/// The system that a queue belongs to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueueKind {
    /// Its word, as the scaler that reads it has it.
    pub system: &'static str,
    /// Kafka only.
    pub topic: Option<KafkaTopic>,
}

/// A Kafka topic with one consumer group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KafkaTopic {
    /// Its partitions.
    pub partitions: u32,
    /// The group.
    pub group: String,
}
