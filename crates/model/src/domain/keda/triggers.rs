//! The triggers of KEDA: what their metadata says, with KEDA's defaults.
//!
//! Source: KEDA 2.20 `pkg/scalers`.

use std::str::FromStr;

use super::outside::OutsideTrigger;
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

/// What a trigger looks at.
#[derive(Clone, PartialEq, Debug)]
pub enum TriggerSource {
    /// The result of a Prometheus query.
    Prometheus {
        /// The query.
        query: String,
        /// Target.
        threshold: Quantity,
        /// Active above this.
        activation: Quantity,
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
    /// An SQS queue.
    SqsQueue {
        /// Its URL or name.
        queue: String,
        /// Target.
        queue_length: i64,
        /// Active above this.
        activation: i64,
        /// Whether messages in flight count.
        in_flight: bool,
        /// Whether delayed messages count.
        delayed: bool,
    },
    /// The lag of a Kafka consumer group.
    Kafka(KafkaTrigger),
    /// A RabbitMQ queue.
    RabbitMq(RabbitMqTrigger),
    /// A Redis list.
    RedisList {
        /// Its name.
        list: String,
        /// Target.
        list_length: i64,
        /// Active above this.
        activation: i64,
    },
    /// Pods of the namespace.
    KubernetesWorkload {
        /// Which, as a selector text.
        pod_selector: String,
        /// Target.
        value: Quantity,
        /// Active above this.
        activation: Quantity,
        /// Whether their nodes are counted instead.
        group_by_node: bool,
    },
    /// A scaler of the user's own, which names its target itself.
    External {
        /// Its address.
        scaler_address: String,
        /// Target: `targetValue` of the metadata, 1 without.
        ///
        /// Deviation: in KEDA the scaler answers with the target (`GetMetricSpec`), and the metadata has whatever keys it likes.
        target: Quantity,
    },
    /// A system outside the cluster.
    Outside(OutsideTrigger),
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
    /// Active above this.
    pub activation_lag_threshold: i64,
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
            activation_lag_threshold: 0,
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
    /// Target, 20 unless given.
    pub value: Quantity,
    /// Active above this.
    pub activation: Quantity,
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

/// The metadata of a trigger, with reading by key.
pub(super) struct Metadata<'a>(&'a Labels);

impl Metadata<'_> {
    pub(super) fn text(&self, key: &str) -> Option<&'static str> {
        self.0.iter().find(|(own, _)| own.as_str() == key).map(|(_, value)| value.as_str()).filter(|t| !t.is_empty())
    }

    fn required(&self, key: &'static str) -> Result<&'static str, TriggerProblem> {
        self.text(key).ok_or(TriggerProblem::Missing(key))
    }

    fn read<T: FromStr>(&self, key: &'static str, default: T, expected: &'static str) -> Result<T, TriggerProblem> {
        let Some(text) = self.text(key) else { return Ok(default) };
        text.trim().parse().map_err(|_| TriggerProblem::Malformed { key, given: text.to_owned(), expected })
    }

    fn integer(&self, key: &'static str, default: i64) -> Result<i64, TriggerProblem> {
        self.read(key, default, "a whole number")
    }

    pub(super) fn number(&self, key: &'static str, default: i64) -> Result<Quantity, TriggerProblem> {
        self.read(key, Quantity::from_nanos(i128::from(default) * 1_000_000_000), "a number")
    }

    /// A number that must be above zero.
    fn above_zero(&self, key: &'static str) -> Result<Quantity, TriggerProblem> {
        let number = self.number(key, 0)?;
        if number.nanos() > 0 {
            return Ok(number);
        }
        let given = self.text(key).unwrap_or_default().to_owned();
        Err(TriggerProblem::Malformed { key, given, expected: "above zero" })
    }

    fn flag(&self, key: &'static str, default: bool) -> Result<bool, TriggerProblem> {
        // The texts that Go's `strconv.ParseBool` takes.
        match self.text(key) {
            None => Ok(default),
            Some("1" | "t" | "T" | "true" | "TRUE" | "True") => Ok(true),
            Some("0" | "f" | "F" | "false" | "FALSE" | "False") => Ok(false),
            Some(other) => Err(TriggerProblem::Malformed { key, given: other.to_owned(), expected: "true or false" }),
        }
    }

    /// One of several words; the first is the default.
    fn word<T: Copy>(
        &self,
        key: &'static str,
        words: &[(&str, T)],
        default: T,
        expected: &'static str,
    ) -> Result<T, TriggerProblem> {
        let Some(text) = self.text(key) else { return Ok(default) };
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
        found.ok_or_else(|| TriggerProblem::Malformed { key, given: text.to_owned(), expected })
    }
}

impl TriggerSource {
    /// The types whose value a simulation makes.
    pub const TYPES: [&'static str; 14] = [
        "prometheus",
        "cpu",
        "memory",
        "cron",
        "aws-sqs-queue",
        "kafka",
        "apache-kafka",
        "rabbitmq",
        "redis",
        "redis-cluster",
        "redis-sentinel",
        "kubernetes-workload",
        "external",
        "external-push",
    ];

    /// Reads a trigger's type and metadata, with KEDA's defaults.
    ///
    /// # Errors
    /// A field is missing or malformed.
    pub fn read(kind: &str, metadata: &Labels, metric_type: Option<TriggerMetricType>) -> Result<Self, TriggerProblem> {
        let metadata = Metadata(metadata);
        Ok(match kind {
            "prometheus" => Self::Prometheus {
                query: metadata.required("query")?.to_owned(),
                threshold: metadata.required("threshold").and_then(|_| metadata.number("threshold", 0))?,
                activation: metadata.number("activationThreshold", 0)?,
                ignore_null_values: metadata.flag("ignoreNullValues", true)?,
            },
            "cpu" | "memory" => resource(kind, &metadata, metric_type)?,
            "cron" => Self::Cron(cron(&metadata)?),
            "aws-sqs-queue" => Self::SqsQueue {
                queue: metadata.required("queueURL")?.to_owned(),
                queue_length: metadata.integer("queueLength", 5)?,
                activation: metadata.integer("activationQueueLength", 0)?,
                in_flight: metadata.flag("scaleOnInFlight", true)?,
                delayed: metadata.flag("scaleOnDelayed", false)?,
            },
            "kafka" | "apache-kafka" => Self::Kafka(kafka(&metadata)?),
            "rabbitmq" => Self::RabbitMq(rabbit_mq(&metadata)?),
            "redis" | "redis-cluster" | "redis-sentinel" => Self::RedisList {
                list: metadata.required("listName")?.to_owned(),
                list_length: metadata.integer("listLength", 5)?,
                activation: metadata.integer("activationListLength", 0)?,
            },
            "kubernetes-workload" => Self::KubernetesWorkload {
                pod_selector: metadata.required("podSelector")?.to_owned(),
                value: metadata.required("value").and_then(|_| metadata.above_zero("value"))?,
                activation: metadata.number("activationValue", 0)?,
                group_by_node: metadata.flag("groupByNode", false)?,
            },
            "external" | "external-push" => Self::External {
                scaler_address: metadata.required("scalerAddress")?.to_owned(),
                target: metadata.number("targetValue", 1)?,
            },
            other => Self::Outside(OutsideTrigger::read(other, &metadata)?),
        })
    }

    /// Reads a trigger of any type as one whose value the simulation does not make.
    ///
    /// # Errors
    /// A target is malformed.
    pub fn outside(kind: &str, metadata: &Labels) -> Result<Self, TriggerProblem> {
        OutsideTrigger::read(kind, &Metadata(metadata)).map(Self::Outside)
    }

    /// Above which value the trigger is active; a scaler of the user's own says so itself.
    pub fn activation(&self) -> f64 {
        match self {
            Self::Prometheus { activation, .. } | Self::KubernetesWorkload { activation, .. } => activation.as_f64(),
            Self::SqsQueue { activation, .. } | Self::RedisList { activation, .. } => *activation as f64,
            Self::Kafka(kafka) => kafka.activation_lag_threshold as f64,
            Self::RabbitMq(rabbit) => rabbit.activation.as_f64(),
            Self::Outside(outside) => outside.activation.as_f64(),
            Self::Resource { .. } | Self::Cron(_) => 0.0,
            Self::External { .. } => f64::NEG_INFINITY,
        }
    }

    /// Whether the autoscaler reads it from metrics-server and not from KEDA.
    pub const fn is_resource(&self) -> bool {
        matches!(self, Self::Resource { .. })
    }
}

/// Source: KEDA 2.20 `pkg/scalers/cpu_memory_scaler.go`, `parseResourceMetadata`, and `pkg/scalers/scalersconfig/typed_config.go`, which
/// refuses a parameter that is tagged as deprecated.
fn resource(
    kind: &str,
    metadata: &Metadata<'_>,
    metric_type: Option<TriggerMetricType>,
) -> Result<TriggerSource, TriggerProblem> {
    let name = if kind == "cpu" { ResourceName::CPU } else { ResourceName::MEMORY };
    if metadata.text("type").is_some() {
        return Err(TriggerProblem::Removed { key: "type", release: "2.18", instead: "metricType" });
    }
    let kind = metric_type.ok_or(TriggerProblem::Missing("metricType"))?;
    metadata.required("value")?;
    let target = match kind {
        TriggerMetricType::Utilization => MetricTarget::Utilization(metadata.read("value", 0, "a whole percentage")?),
        TriggerMetricType::AverageValue => MetricTarget::AverageValue(metadata.number("value", 0)?),
        TriggerMetricType::Value => {
            let given = "Value".to_owned();
            return Err(TriggerProblem::Malformed {
                key: "metricType",
                given,
                expected: "Utilization or AverageValue",
            });
        }
    };
    let container = metadata.text("containerName").map(Symbol::new);
    Ok(TriggerSource::Resource { name, container, target })
}

fn cron(metadata: &Metadata<'_>) -> Result<CronTrigger, TriggerProblem> {
    let (start, end) = (metadata.required("start")?, metadata.required("end")?);
    if start == end {
        return Err(TriggerProblem::EmptyWindow);
    }
    metadata.required("desiredReplicas")?;
    Ok(CronTrigger {
        timezone: metadata.required("timezone")?.to_owned(),
        start: start.to_owned(),
        end: end.to_owned(),
        desired_replicas: metadata.integer("desiredReplicas", 0)?,
    })
}

fn kafka(metadata: &Metadata<'_>) -> Result<KafkaTrigger, TriggerProblem> {
    let policies = [("latest", OffsetResetPolicy::Latest), ("earliest", OffsetResetPolicy::Earliest)];
    let lag_threshold = metadata.integer("lagThreshold", 10)?;
    if lag_threshold <= 0 {
        let given = lag_threshold.to_string();
        return Err(TriggerProblem::Malformed { key: "lagThreshold", given, expected: "above zero" });
    }
    let activation_lag_threshold = metadata.integer("activationLagThreshold", 0)?;
    if activation_lag_threshold < 0 {
        let given = activation_lag_threshold.to_string();
        return Err(TriggerProblem::Malformed { key: "activationLagThreshold", given, expected: "zero or above" });
    }
    let topic = metadata.text("topic").map(str::to_owned);
    let (idle, lagging, even) =
        ("allowIdleConsumers", "limitToPartitionsWithLag", "ensureEvenDistributionOfPartitions");
    let set = |key| metadata.flag(key, false);
    for (one, other) in [(idle, lagging), (lagging, even)] {
        if set(one)? && set(other)? {
            return Err(TriggerProblem::Together(one, other));
        }
    }
    if topic.is_none() && (set(lagging)? || set(even)?) {
        return Err(TriggerProblem::Missing("topic"));
    }
    Ok(KafkaTrigger {
        topic,
        consumer_group: metadata.required("consumerGroup")?.to_owned(),
        lag_threshold,
        activation_lag_threshold,
        offset_reset_policy: metadata.word(
            "offsetResetPolicy",
            &policies,
            OffsetResetPolicy::Latest,
            "latest or earliest",
        )?,
        allow_idle_consumers: set(idle)?,
        exclude_persistent_lag: metadata.flag("excludePersistentLag", false)?,
        limit_to_partitions_with_lag: set(lagging)?,
        ensure_even_distribution: set(even)?,
        scale_to_zero_on_invalid_offset: metadata.flag("scaleToZeroOnInvalidOffset", false)?,
    })
}

fn rabbit_mq(metadata: &Metadata<'_>) -> Result<RabbitMqTrigger, TriggerProblem> {
    let modes = [
        ("QueueLength", RabbitMqMode::QueueLength),
        ("MessageRate", RabbitMqMode::MessageRate),
        ("DeliverGetRate", RabbitMqMode::DeliverGetRate),
        ("PublishedToDeliveredRatio", RabbitMqMode::PublishedToDeliveredRatio),
        ("ExpectedQueueConsumptionTime", RabbitMqMode::ExpectedQueueConsumptionTime),
    ];
    let operations = [("sum", QueueOperation::Sum), ("max", QueueOperation::Max), ("avg", QueueOperation::Avg)];
    let operation = metadata.word("operation", &operations, QueueOperation::Sum, "sum, max or avg")?;
    // `queueLength` is the old name of the target.
    let old_length = metadata.integer("queueLength", 20)?;
    Ok(RabbitMqTrigger {
        queue: metadata.required("queueName")?.to_owned(),
        mode: metadata.word("mode", &modes, RabbitMqMode::QueueLength, "a mode of the rabbitmq trigger")?,
        value: metadata.number("value", old_length)?,
        activation: metadata.number("activationValue", 0)?,
        exclude_unacknowledged: metadata.flag("excludeUnacknowledged", false)?,
        operation: metadata.flag("useRegex", false)?.then_some(operation),
    })
}

#[cfg(test)]
mod tests {
    use super::{CronTrigger, TriggerMetricType, TriggerProblem, TriggerSource};
    use crate::domain::hpa::MetricTarget;
    use crate::domain::labels::Labels;
    use crate::domain::resources::ResourceName;

    fn read(kind: &str, metadata: &[(&'static str, &'static str)]) -> Result<TriggerSource, TriggerProblem> {
        let labels = metadata.iter().fold(Labels::new(), |labels, &(key, value)| labels.with(key, value));
        TriggerSource::read(kind, &labels, None)
    }

    #[test]
    fn what_is_not_given_takes_kedas_default() {
        let sqs = read("aws-sqs-queue", &[("queueURL", "https://queue"), ("awsRegion", "us-east-1")]);
        let Ok(TriggerSource::SqsQueue { queue_length, activation, in_flight, delayed, .. }) = sqs else {
            panic!("{sqs:?}")
        };
        assert_eq!((queue_length, activation, in_flight, delayed), (5, 0, true, false));
        let kafka = read("kafka", &[("consumerGroup", "g"), ("topic", "t"), ("offsetResetPolicy", "earliest")]);
        assert!(matches!(kafka, Ok(TriggerSource::Kafka(kafka)) if kafka.lag_threshold == 10));
    }

    #[test]
    fn what_must_be_given_is_asked_for_by_name() {
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
    fn options_of_kafka_that_exclude_each_other_or_want_a_topic_are_refused() {
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
        let Ok(TriggerSource::Resource { name: ResourceName::MEMORY, target, .. }) = memory else {
            panic!("{memory:?}")
        };
        assert!(matches!(target, MetricTarget::AverageValue(bytes) if bytes.value() == 100 << 20));
        let labels = Labels::new().with("value", "60");
        let cpu = TriggerSource::read("cpu", &labels, Some(TriggerMetricType::Utilization));
        assert!(matches!(cpu, Ok(TriggerSource::Resource { target: MetricTarget::Utilization(60), .. })));
    }

    #[test]
    fn the_type_of_a_resource_trigger_is_refused_where_it_stood_before_2_18() {
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
        assert_eq!(read("cron", &given), Ok(TriggerSource::Cron(expected)));
    }
}
