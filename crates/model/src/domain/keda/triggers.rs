//! The triggers of KEDA: what their metadata says, with KEDA's defaults.
//!
//! Source: KEDA 2.20 `pkg/scalers`.

use super::metadata::Metadata;
use super::scalers::outside;
use crate::domain::hpa::MetricTarget;
use crate::domain::labels::Labels;
use crate::domain::quantity::Quantity;
use crate::domain::resources::ResourceName;
use crate::domain::symbol::Symbol;

/// One trigger.
#[derive(Clone, PartialEq, Debug)]
pub struct Trigger {
    /// Its name, which a formula uses.
    pub name: Option<Symbol>,
    /// What it looks at.
    pub source: TriggerSource,
    /// `metricType`; only `cpu` and `memory` know `Utilization`.
    pub metric_type: TriggerMetricType,
    /// Whether the autoscaler reads the value of the last poll instead of asking again.
    pub use_cached_metrics: bool,
}

/// What a trigger's target means.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, serde::Serialize, serde::Deserialize)]
pub enum TriggerMetricType {
    /// For each pod.
    #[default]
    AverageValue,
    /// For the whole.
    Value,
    /// In percent of the request.
    Utilization,
}

/// What a trigger reads and compares, as its scaler makes it of the metadata.
#[derive(Clone, PartialEq, Debug)]
pub struct TriggerSource {
    /// The trigger's type.
    pub kind: Symbol,
    /// The name of its metric without the trigger's place.
    pub metric: String,
    /// Target; `None` for CPU and memory, and where neither the metadata nor KEDA's default has one.
    pub target: Option<Quantity>,
    /// Active above this; a scaler of the user's own says so itself.
    pub activation: f64,
    /// Where the value comes from.
    pub reads: Reads,
}

/// Where the value of a trigger comes from.
#[derive(Clone, PartialEq, Debug)]
pub enum Reads {
    /// The result of a Prometheus query.
    Prometheus {
        /// The query.
        query: String,
        /// Whether an empty result is 0 instead of a failure.
        ignore_null_values: bool,
    },
    /// The pods' own CPU or memory, which the autoscaler reads from metrics-server.
    Resource {
        /// Which.
        name: ResourceName,
        /// One container instead of the pod.
        container: Option<Symbol>,
        /// Target.
        target: MetricTarget,
    },
    /// A window of the calendar.
    Cron(CronTrigger),
    /// The messages of one queue.
    Queue(QueueTrigger),
    /// The lag of a Kafka consumer group.
    Kafka(KafkaTrigger),
    /// A RabbitMQ queue.
    RabbitMq(RabbitMqTrigger),
    /// Pods of the namespace.
    KubernetesWorkload {
        /// Which, as a selector text.
        pod_selector: String,
        /// Whether their nodes are counted instead.
        group_by_node: bool,
    },
    /// A scaler of the user's own, which names its target itself.
    ///
    /// Deviation: in KEDA, an external scaler returns the target (`GetMetricSpec`), and its metadata has arbitrary
    /// keys.
    External {
        /// Its address.
        scaler_address: String,
    },
    /// A system outside the cluster that no simulation holds; a scenario may state its values.
    Outside,
}

/// Messages of one queue.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct QueueTrigger {
    /// `kind` of the scenario's queue.
    pub system: &'static str,
    /// Its name.
    pub name: String,
    /// Whether messages in flight count.
    pub in_flight: bool,
    /// Whether delayed messages count.
    pub delayed: bool,
}

/// A window of the calendar, from `start` until `end`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct CronTrigger {
    /// IANA name of the time zone.
    pub timezone: String,
    /// Five cron fields.
    pub start: String,
    /// Five cron fields.
    pub end: String,
    /// Replicas inside the window.
    pub desired_replicas: i64,
}

/// The lag of a Kafka consumer group.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct KafkaTrigger {
    /// The topic; without one, all topics that the group has offsets for.
    pub topic: Option<String>,
    /// The group.
    pub consumer_group: String,
    /// Target, 10 unless given.
    pub lag_threshold: i64,
    /// Where a consumer without an offset starts.
    pub offset_reset_policy: OffsetResetPolicy,
    /// Whether there may be more replicas than partitions.
    pub allow_idle_consumers: bool,
    /// Whether partitions whose offset does not move are left out.
    pub exclude_persistent_lag: bool,
    /// Whether there may be only as many replicas as partitions with lag.
    pub limit_to_partitions_with_lag: bool,
    /// Whether the replicas should divide the partitions evenly.
    pub ensure_even_distribution: bool,
    /// Whether a missing offset counts as no lag.
    pub scale_to_zero_on_invalid_offset: bool,
}

impl Default for KafkaTrigger {
    fn default() -> Self {
        Self {
            topic: None,
            consumer_group: String::new(),
            lag_threshold: 10,
            offset_reset_policy: OffsetResetPolicy::Latest,
            allow_idle_consumers: false,
            exclude_persistent_lag: false,
            limit_to_partitions_with_lag: false,
            ensure_even_distribution: false,
            scale_to_zero_on_invalid_offset: false,
        }
    }
}

/// Where a consumer without an offset starts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum OffsetResetPolicy {
    /// At the end.
    #[default]
    Latest,
    /// At the beginning.
    Earliest,
}

/// A RabbitMQ queue.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct RabbitMqTrigger {
    /// The queue, or a pattern of names.
    pub queue: String,
    /// What of it is the metric.
    pub mode: RabbitMqMode,
    /// Whether messages handed out but not confirmed are left out.
    pub exclude_unacknowledged: bool,
    /// How the queues of a pattern are combined; `None` without a pattern.
    pub operation: Option<QueueOperation>,
}

/// What of a RabbitMQ queue is the metric.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum RabbitMqMode {
    /// Messages.
    #[default]
    QueueLength,
    /// Messages published in a second.
    MessageRate,
    /// Messages delivered in a second.
    DeliverGetRate,
    /// The first rate over the second.
    PublishedToDeliveredRatio,
    /// Seconds until the queue is empty.
    ExpectedQueueConsumptionTime,
}

/// How several queues are combined.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum QueueOperation {
    /// The sum.
    #[default]
    Sum,
    /// The largest of each figure.
    Max,
    /// The mean.
    Avg,
}

/// What is wrong with a trigger's metadata.
#[derive(Clone, PartialEq, Eq, Hash, Debug, thiserror::Error)]
pub enum TriggerProblem {
    /// A field that must be given.
    #[error("has no `{0}`")]
    Missing(&'static str),
    /// A field that another one needs, and that no variable may hold.
    #[error("has no `{0}`")]
    Incomplete(&'static str),
    /// A field whose text cannot be read.
    #[error("has `{key}: {given}`, which is not {expected}")]
    Malformed {
        /// The field.
        key: &'static str,
        /// Its text.
        given: String,
        /// What would do.
        expected: &'static str,
    },
    /// Two fields that exclude each other.
    #[error("has both `{0}` and `{1}`, of which KEDA takes only one")]
    Together(&'static str, &'static str),
    /// A field that an earlier release still read and that is refused since.
    #[error("has `{key}`, which KEDA refuses since {release}: `{instead}` of the trigger took its place")]
    Removed {
        /// The field.
        key: &'static str,
        /// The release that refused it first.
        release: &'static str,
        /// What took its place.
        instead: &'static str,
    },
    /// A window that ends where it starts.
    #[error("starts and ends at the same time")]
    EmptyWindow,
}

impl TriggerSource {
    /// Reads a trigger's type and metadata, with KEDA's defaults.
    ///
    /// # Errors
    /// A field is missing or malformed.
    pub fn read(kind: &str, metadata: &Labels, metric_type: Option<TriggerMetricType>) -> Result<Self, TriggerProblem> {
        Metadata::new(kind, metadata, metric_type).to_source()
    }

    /// Reads a trigger of any type as one whose value the simulation does not make.
    ///
    /// # Errors
    /// A target is malformed.
    pub fn outside(kind: &str, metadata: &Labels) -> Result<Self, TriggerProblem> {
        outside(&Metadata::new(kind, metadata, None))
    }

    /// Whether the autoscaler reads it from metrics-server and not from KEDA.
    pub const fn is_resource(&self) -> bool {
        matches!(self.reads, Reads::Resource { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::{CronTrigger, QueueTrigger, Reads, TriggerMetricType, TriggerProblem, TriggerSource};
    use crate::domain::hpa::MetricTarget;
    use crate::domain::labels::Labels;
    use crate::domain::quantity::Quantity;
    use crate::domain::resources::ResourceName;

    fn read(kind: &str, metadata: &[(&'static str, &'static str)]) -> Result<TriggerSource, TriggerProblem> {
        let labels = metadata.iter().fold(Labels::new(), |labels, &(key, value)| labels.with(key, value));
        TriggerSource::read(kind, &labels, None)
    }

    #[test]
    fn what_is_not_given_takes_kedas_default() {
        let sqs = read("aws-sqs-queue", &[("queueURL", "https://queue"), ("awsRegion", "us-east-1")]);
        let sqs = sqs.unwrap_or_else(|problem| panic!("{problem}"));
        let queue = QueueTrigger { system: "sqs", name: "queue".to_owned(), in_flight: true, delayed: false };
        assert_eq!((sqs.target.map(Quantity::value), sqs.activation), (Some(5), 0.0));
        assert_eq!(sqs.reads, Reads::Queue(queue));
        let kafka = read("kafka", &[("consumerGroup", "g"), ("topic", "t"), ("offsetResetPolicy", "earliest")]);
        assert!(matches!(kafka.map(|source| source.reads), Ok(Reads::Kafka(kafka)) if kafka.lag_threshold == 10));
    }

    #[test]
    fn missing_trigger_field_is_named_in_error() {
        assert_eq!(read("prometheus", &[("query", "up")]), Err(TriggerProblem::Missing("threshold")));
        assert_eq!(read("cpu", &[("value", "60")]), Err(TriggerProblem::Missing("metricType")));
        let window = [("start", "0 8 * * *"), ("end", "0 8 * * *"), ("timezone", "UTC"), ("desiredReplicas", "2")];
        assert_eq!(read("cron", &window), Err(TriggerProblem::EmptyWindow));
        let lag = read("kafka", &[("consumerGroup", "g"), ("lagThreshold", "ten")]).map_err(|e| e.to_string());
        assert_eq!(lag, Err("has `lagThreshold: ten`, which is not a whole number".to_owned()));
        let bare = read("kubernetes-workload", &[("podSelector", "app=web"), ("value", "0")]);
        assert!(matches!(bare, Err(TriggerProblem::Malformed { key: "value", .. })));
    }

    #[test]
    fn conflicting_kafka_trigger_options_are_rejected() {
        let kafka = |more: &[(&'static str, &'static str)]| read("kafka", &[&[("consumerGroup", "g")], more].concat());
        let (idle, lagging) = (("allowIdleConsumers", "true"), ("limitToPartitionsWithLag", "true"));
        let (even, topic) = (("ensureEvenDistributionOfPartitions", "true"), ("topic", "t"));
        assert!(kafka(&[topic, idle, even]).is_ok() && kafka(&[topic, lagging]).is_ok());
        assert!(matches!(kafka(&[topic, idle, lagging]), Err(TriggerProblem::Together(..))));
        assert!(matches!(kafka(&[topic, lagging, even]), Err(TriggerProblem::Together(..))));
        assert_eq!(kafka(&[even]), Err(TriggerProblem::Missing("topic")));
        let negative = kafka(&[("activationLagThreshold", "-1")]);
        assert!(matches!(negative, Err(TriggerProblem::Malformed { key: "activationLagThreshold", .. })));
    }

    #[test]
    fn resource_triggers_state_their_kind_of_target() {
        let labels = Labels::new().with("value", "100Mi");
        let memory = TriggerSource::read("memory", &labels, Some(TriggerMetricType::AverageValue));
        let Ok(Reads::Resource { name: ResourceName::MEMORY, target, .. }) = memory.map(|source| source.reads) else {
            panic!("no memory")
        };
        assert!(matches!(target, MetricTarget::AverageValue(bytes) if bytes.value() == 100 << 20));
        let labels = Labels::new().with("value", "60");
        let cpu = TriggerSource::read("cpu", &labels, Some(TriggerMetricType::Utilization));
        let cpu = cpu.map(|source| source.reads);
        assert!(matches!(cpu, Ok(Reads::Resource { target: MetricTarget::Utilization(60), .. })));
    }

    #[test]
    fn keda_2_18_rejects_trigger_type_in_metadata() {
        let labels = Labels::new().with("type", "Utilization").with("value", "60");
        for metric_type in [None, Some(TriggerMetricType::Utilization)] {
            let read = TriggerSource::read("cpu", &labels, metric_type);
            assert!(matches!(read, Err(TriggerProblem::Removed { key: "type", .. })), "{read:?}");
        }
    }

    #[test]
    fn a_cron_trigger_reads_its_window() {
        let given =
            [("start", "0 8 * * *"), ("end", "0 18 * * *"), ("timezone", "Asia/Tokyo"), ("desiredReplicas", "7")];
        let expected = CronTrigger {
            timezone: "Asia/Tokyo".to_owned(),
            start: "0 8 * * *".to_owned(),
            end: "0 18 * * *".to_owned(),
            desired_replicas: 7,
        };
        assert_eq!(read("cron", &given).map(|source| source.reads), Ok(Reads::Cron(expected)));
    }
}
