//! The scalers of KEDA: one entry for each, from which the readers of manifests, decisions, resolution and reports take theirs.
//!
//! An entry whose `value` is [`Origin::Stated`] needs its target alone. One that `queues` serve names the kind of queue and a function that
//! reads the queue's name. What a metric of another shape is made of is a variant of [`Reads`], which `nodecast-replicas` evaluates.
//!
//! Source: KEDA 2.20 `pkg/scalers`, the metadata of each scaler, and KEDA main `schema/generated/scalers-schema.yaml` (2026).

use super::metadata::Metadata;
use super::triggers::{
    CronTrigger, KafkaTrigger, OffsetResetPolicy, QueueOperation, RabbitMqMode, RabbitMqTrigger, Reads,
    TriggerMetricType, TriggerProblem, TriggerSource,
};
use crate::domain::hpa::MetricTarget;
use crate::domain::quantity::Quantity;
use crate::domain::resources::ResourceName;
use crate::domain::symbol::Symbol;

/// A scaler of KEDA.
#[derive(Debug)]
pub struct Scaler {
    /// The types of triggers that it serves.
    types: &'static [&'static str],
    /// Where a run takes the value from.
    pub value: Origin,
    /// The keys of its target (the first that is given counts) and KEDA's default.
    pub(super) target: (&'static [&'static str], Option<i64>),
    /// Keys that are read; with none the keys are not known, as those of a scaler of the user's own.
    keys: &'static str,
    /// Keys that change nothing in a simulation: addresses, credentials, ways to connect.
    without_effect: &'static str,
    /// Reads the metadata.
    pub(super) read: Read,
}

/// Reads the metadata of a trigger.
type Read = fn(&Metadata<'_>) -> Result<TriggerSource, TriggerProblem>;

/// Where a run takes the value of a scaler's triggers from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// The cluster and its calendar: nothing outside has to be stated.
    Cluster,
    /// The scenario's queues of this kind.
    Queues(&'static str),
    /// Another section of the scenario.
    Scenario,
    /// Values that the scenario states of the trigger.
    Stated,
}

impl Scaler {
    /// Stands for types that KEDA does not document.
    pub(super) const UNKNOWN: &Self = &stated(&[], USUAL, None);

    /// The scaler of a type, if KEDA documents it.
    pub fn find(kind: &str) -> Option<&'static Self> {
        SCALERS.iter().find(|scaler| scaler.types.contains(&kind))
    }

    /// All types that KEDA documents.
    pub fn types() -> impl Iterator<Item = &'static str> {
        SCALERS.iter().flat_map(|scaler| scaler.types).copied()
    }

    /// The kinds of queues that serve triggers.
    pub fn queues() -> impl Iterator<Item = &'static str> {
        SCALERS.iter().filter_map(|scaler| match scaler.value {
            Origin::Queues(kind) => Some(kind),
            _ => None,
        })
    }

    /// The keys of its metadata, those that are read first.
    pub fn keys(&self) -> impl Iterator<Item = &'static str> {
        self.keys.split_whitespace().chain(self.without_effect.split_whitespace())
    }
}

/// A scaler whose value a scenario states.
const fn stated(types: &'static [&'static str], keys: &'static [&'static str], default: Option<i64>) -> Scaler {
    let target = (keys, default);
    Scaler { types, value: Origin::Stated, target, keys: "", without_effect: "", read: outside }
}

/// Every scaler; the stated ones in order.
const SCALERS: &[Scaler] = &[
    Scaler {
        types: &["prometheus"],
        value: Origin::Scenario,
        target: (USUAL, None),
        keys: "query threshold activationThreshold ignoreNullValues",
        without_effect: "serverAddress metricName namespace timeout authModes unsafeSsl customHeaders queryParameters \
            cortexOrgID awsRegion identityOwner",
        read: prometheus,
    },
    Scaler {
        types: &["cpu", "memory"],
        value: Origin::Cluster,
        target: (USUAL, None),
        keys: "value containerName",
        without_effect: "",
        read: resource,
    },
    Scaler {
        types: &["cron"],
        value: Origin::Cluster,
        target: (USUAL, None),
        keys: "timezone start end desiredReplicas",
        without_effect: "",
        read: cron,
    },
    Scaler {
        types: &["aws-sqs-queue"],
        value: Origin::Queues("sqs"),
        target: (&["queueLength"], Some(5)),
        keys: "queueURL queueLength activationQueueLength scaleOnInFlight scaleOnDelayed",
        without_effect: "awsRegion awsEndpoint identityOwner awsAccessKeyID awsSecretAccessKey",
        read: sqs,
    },
    Scaler {
        types: &["kafka", "apache-kafka"],
        value: Origin::Queues("kafka"),
        target: (&["lagThreshold"], Some(10)),
        keys: "topic consumerGroup lagThreshold activationLagThreshold offsetResetPolicy allowIdleConsumers \
            excludePersistentLag limitToPartitionsWithLag ensureEvenDistributionOfPartitions scaleToZeroOnInvalidOffset",
        without_effect: "bootstrapServers version sasl tls awsRegion metricName unsafeSsl saslTokenType",
        read: kafka,
    },
    Scaler {
        types: &["rabbitmq"],
        value: Origin::Queues("rabbitmq"),
        target: (&["queueLength", "value"], Some(20)),
        keys: "queueName mode value activationValue queueLength excludeUnacknowledged useRegex operation",
        without_effect: "host protocol vhostName metricName pageSize timeout unsafeSsl workloadIdentityResource \
            username password",
        read: rabbit_mq,
    },
    Scaler {
        types: &["redis", "redis-cluster", "redis-sentinel"],
        value: Origin::Queues("redis"),
        target: (&["listLength"], Some(5)),
        keys: "listName listLength activationListLength",
        without_effect: "address addresses host hosts port ports sentinelMaster sentinelUsername sentinelPassword \
            databaseIndex enableTLS unsafeSsl username password metricName",
        read: redis,
    },
    Scaler {
        types: &["activemq"],
        value: Origin::Queues("activemq"),
        target: (&["targetQueueSize"], Some(10)),
        keys: "destinationName targetQueueSize activationTargetQueueSize restAPITemplate",
        without_effect: "managementEndpoint brokerName username password corsHeader",
        read: active_mq,
    },
    Scaler {
        types: &["kubernetes-workload"],
        value: Origin::Cluster,
        target: (USUAL, None),
        keys: "podSelector value activationValue groupByNode",
        without_effect: "",
        read: kubernetes_workload,
    },
    Scaler {
        types: &["external", "external-push"],
        value: Origin::Scenario,
        target: (USUAL, None),
        keys: "",
        without_effect: "",
        read: external,
    },
    stated(&["apache-iggy"], &["lagThreshold"], Some(10)),
    stated(&["arangodb"], &["queryValue"], None),
    stated(&["artemis-queue"], &["queueLength"], Some(10)),
    stated(&["aws-cloudwatch"], &["targetMetricValue"], None),
    stated(&["aws-dynamodb"], &["targetValue"], None),
    stated(&["aws-dynamodb-streams"], &["shardCount"], Some(2)),
    stated(&["aws-kinesis-stream"], &["shardCount"], Some(2)),
    stated(&["azure-app-insights"], &["targetValue"], None),
    stated(&["azure-blob"], &["blobCount"], Some(5)),
    stated(&["azure-cosmosdb"], &["changeFeedLagThreshold"], Some(100)),
    stated(&["azure-data-explorer"], &["threshold"], None),
    stated(&["azure-eventhub"], &["unprocessedEventThreshold"], Some(64)),
    stated(&["azure-log-analytics"], &["threshold"], None),
    stated(&["azure-monitor"], &["targetValue"], None),
    stated(&["azure-pipelines"], &["targetPipelinesQueueLength"], Some(1)),
    stated(&["azure-queue"], &["queueLength"], Some(5)),
    stated(&["azure-servicebus"], &["messageCount"], Some(5)),
    stated(&["beanstalkd"], &["value"], None),
    stated(&["cassandra"], &["targetQueryValue"], None),
    stated(&["clickhouse"], &["targetQueryValue"], None),
    stated(&["couchdb"], &["queryValue"], None),
    stated(&["datadog"], &["queryValue", "targetValue"], None),
    stated(&["dynatrace"], &["threshold"], None),
    stated(&["elastic-forecast"], &["targetValue"], None),
    stated(&["elasticsearch"], &["targetValue"], None),
    stated(&["etcd"], &["value"], None),
    stated(&["forgejo-runner"], &[], Some(1)),
    stated(&["gcp-cloudtasks"], &["value"], Some(100)),
    stated(&["gcp-pubsub"], &["subscriptionSize", "value"], Some(10)),
    stated(&["gcp-stackdriver"], &["targetValue"], Some(5)),
    stated(&["gcp-storage"], &["targetObjectCount"], Some(100)),
    stated(&["github-runner"], &["targetWorkflowQueueLength"], Some(1)),
    stated(&["gitlab-runner"], &["targetQueueLength"], Some(1)),
    stated(&["graphite"], &["threshold"], Some(100)),
    stated(&["huawei-cloudeye"], &["targetMetricValue"], None),
    stated(&["ibmmq"], &["queueDepth"], Some(20)),
    stated(&["influxdb"], &["thresholdValue"], None),
    stated(&["ionos-monitoring"], &["threshold"], None),
    stated(&["kubernetes-resource"], &["targetValue"], None),
    stated(&["liiklus"], &["lagThreshold"], Some(10)),
    stated(&["loki"], &["threshold"], None),
    stated(&["metrics-api"], &["targetValue"], None),
    stated(&["mongodb"], &["queryValue"], None),
    stated(&["mssql"], &["targetValue"], None),
    stated(&["mysql"], &["queryValue"], None),
    stated(&["nats-jetstream"], &["lagThreshold"], Some(10)),
    stated(&["new-relic"], &["threshold"], None),
    stated(&["nsq"], &["depthThreshold"], Some(10)),
    stated(&["opensearch"], &["targetValue"], None),
    stated(&["openstack-metric"], &["threshold"], None),
    stated(&["openstack-swift"], &["objectCount"], Some(2)),
    stated(&["postgresql"], &["targetQueryValue"], None),
    stated(&["predictkube"], &["threshold"], None),
    stated(&["pulsar"], &["msgBacklogThreshold", "msgBacklog"], Some(10)),
    stated(&["redis-cluster-streams"], STREAM, Some(5)),
    stated(&["redis-sentinel-streams"], STREAM, Some(5)),
    stated(&["redis-streams"], STREAM, Some(5)),
    stated(&["selenium-grid"], &[], Some(1)),
    stated(&["solace-direct-messaging"], SOLACE_DIRECT, None),
    stated(&["solace-event-queue"], SOLACE_QUEUE, None),
    stated(&["solarwinds"], &["targetValue"], None),
    stated(&["solr"], &["targetQueryValue"], None),
    stated(&["splunk"], &["targetValue"], None),
    stated(&["splunk-observability"], &["targetValue"], None),
    stated(&["stan"], &["lagThreshold"], Some(10)),
    stated(&["sumologic"], &["threshold"], None),
    stated(&["temporal"], &["targetQueueSize"], Some(5)),
];
/// The types whose target itself may stand in the environment of a container.
const TARGET_FROM_ENVIRONMENT: &[&str] = &["github-runner", "nsq"];
const STREAM: &[&str] = &["lagCount", "pendingEntriesCount", "streamLength"];
const STREAM_KEYS: [&[&str]; 3] = [&["lagCount"], &["pendingEntriesCount"], &["streamLength"]];
const SOLACE_QUEUE: &[&str] = &["messageCountTarget", "messageSpoolUsageTarget", "messageReceiveRateTarget"];
const SOLACE_DIRECT: &[&str] = &[
    "aggregatedClientTxMsgRateTarget",
    "aggregatedClientAverageTxMsgRateTarget",
    "aggregatedClientTxByteRateTarget",
    "aggregatedClientAverageTxByteRateTarget",
];
/// Where a scaler that is not in the table is looked at for a target.
const USUAL: &[&str] = &["targetValue", "threshold", "value", "queueLength", "lagThreshold", "listLength"];
/// Keys of activation that are not the target's with `activation` before it.
const ACTIVATIONS: &[&str] = &["activationThreshold", "activationValue", "activationLagCount"];

fn prometheus(metadata: &Metadata<'_>) -> Result<TriggerSource, TriggerProblem> {
    let query = metadata.required("query")?.to_owned();
    let threshold = metadata.required("threshold").and_then(|_| metadata.number("threshold", 0))?;
    let activation = metadata.number("activationThreshold", 0)?.as_f64();
    let reads = Reads::Prometheus { query, ignore_null_values: metadata.flag("ignoreNullValues", true)? };
    Ok(metadata.source("prometheus", threshold, activation, reads))
}

fn sqs(metadata: &Metadata<'_>) -> Result<TriggerSource, TriggerProblem> {
    let url = metadata.required("queueURL")?;
    let target = metadata.whole_target()?;
    let counted = (metadata.flag("scaleOnInFlight", true)?, metadata.flag("scaleOnDelayed", false)?);
    Ok(metadata.queue("aws-sqs", url.rsplit('/').next().unwrap_or(url), target, counted))
}

/// The length of a list: what a worker has taken is no longer in it.
fn redis(metadata: &Metadata<'_>) -> Result<TriggerSource, TriggerProblem> {
    let list = metadata.required("listName")?;
    Ok(metadata.queue("redis", list, metadata.whole_target()?, (false, false)))
}

/// `QueueSize` of a queue of ActiveMQ, with what consumers have not acknowledged.
///
/// Source: KEDA 2.20 `pkg/scalers/activemq_scaler.go`, `Validate` and `getQueueMessageCount`; ActiveMQ `DestinationViewMBean.getQueueSize`.
fn active_mq(metadata: &Metadata<'_>) -> Result<TriggerSource, TriggerProblem> {
    const NAME: &str = "destinationName";
    let name = if let Some(template) = metadata.text("restAPITemplate") {
        let mut parts = template.split([',', '/']).filter_map(|part| part.strip_prefix("destinationName="));
        parts.next().filter(|name| !name.is_empty()).ok_or(TriggerProblem::Missing(NAME))?
    } else {
        metadata.required("managementEndpoint")?;
        let name = metadata.required(NAME)?;
        metadata.required("brokerName")?;
        name
    };
    Ok(metadata.queue("activemq", name, metadata.whole_target()?, (true, false)))
}

/// Its metric has the name of its object's namespace.
fn kubernetes_workload(metadata: &Metadata<'_>) -> Result<TriggerSource, TriggerProblem> {
    let pod_selector = metadata.required("podSelector")?.to_owned();
    let value = metadata.required("value").and_then(|_| metadata.above_zero("value"))?;
    let activation = metadata.number("activationValue", 0)?.as_f64();
    let group_by_node = metadata.flag("groupByNode", false)?;
    let reads = Reads::KubernetesWorkload { pod_selector, group_by_node };
    Ok(metadata.source("workload", value, activation, reads))
}

fn external(metadata: &Metadata<'_>) -> Result<TriggerSource, TriggerProblem> {
    let reads = Reads::External { scaler_address: metadata.required("scalerAddress")?.to_owned() };
    Ok(metadata.source("external", metadata.number("targetValue", 1)?, f64::NEG_INFINITY, reads))
}

/// Source: KEDA 2.20 `pkg/scalers/cpu_memory_scaler.go`, `parseResourceMetadata`, and `pkg/scalers/scalersconfig/typed_config.go`, which
/// refuses a parameter that is tagged as deprecated.
fn resource(metadata: &Metadata<'_>) -> Result<TriggerSource, TriggerProblem> {
    let name = if metadata.kind == "cpu" { ResourceName::CPU } else { ResourceName::MEMORY };
    if metadata.text("type").is_some() {
        return Err(TriggerProblem::Removed { key: "type", release: "2.18", instead: "metricType" });
    }
    let metric_type = metadata.metric_type.ok_or(TriggerProblem::Missing("metricType"))?;
    metadata.required("value")?;
    let target = match metric_type {
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
    let reads = Reads::Resource { name, container, target };
    Ok(TriggerSource { target: None, ..metadata.source("external", whole(0), 0.0, reads) })
}

fn cron(metadata: &Metadata<'_>) -> Result<TriggerSource, TriggerProblem> {
    let (start, end) = (metadata.required("start")?, metadata.required("end")?);
    if start == end {
        return Err(TriggerProblem::EmptyWindow);
    }
    metadata.required("desiredReplicas")?;
    let cron = CronTrigger {
        timezone: metadata.required("timezone")?.to_owned(),
        start: start.to_owned(),
        end: end.to_owned(),
        desired_replicas: metadata.integer("desiredReplicas", 0)?,
    };
    let spelled = |text: &str| text.replace(' ', "").replace('*', "x").replace('/', "Sl").replace('?', "Qm");
    let metric = format!("cron-{}-{}-{}", cron.timezone, spelled(start), spelled(end));
    Ok(metadata.source(&metric, whole(1), 0.0, Reads::Cron(cron)))
}

fn kafka(metadata: &Metadata<'_>) -> Result<TriggerSource, TriggerProblem> {
    let policies = [("latest", OffsetResetPolicy::Latest), ("earliest", OffsetResetPolicy::Earliest)];
    let (lag_threshold, activation) = metadata.whole_target()?;
    if lag_threshold <= 0 {
        let given = lag_threshold.to_string();
        return Err(TriggerProblem::Malformed { key: "lagThreshold", given, expected: "above zero" });
    }
    if activation < 0 {
        let given = activation.to_string();
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
    let group = metadata.required("consumerGroup")?;
    let metric = topic.as_ref().map_or_else(|| format!("kafka-{group}-topics"), |topic| format!("kafka-{topic}"));
    let kafka = KafkaTrigger {
        topic,
        consumer_group: group.to_owned(),
        lag_threshold,
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
    };
    Ok(metadata.source(&metric, whole(lag_threshold), activation as f64, Reads::Kafka(kafka)))
}

fn rabbit_mq(metadata: &Metadata<'_>) -> Result<TriggerSource, TriggerProblem> {
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
    let queue = metadata.required("queueName")?;
    let mode = metadata.word("mode", &modes, RabbitMqMode::QueueLength, "a mode of the rabbitmq trigger")?;
    let (target, activation) = (metadata.number("value", old_length)?, metadata.number("activationValue", 0)?);
    let rabbit = RabbitMqTrigger {
        queue: queue.to_owned(),
        mode,
        exclude_unacknowledged: metadata.flag("excludeUnacknowledged", false)?,
        operation: metadata.flag("useRegex", false)?.then_some(operation),
    };
    rabbit_mq_target(metadata)?;
    Ok(metadata.source(&format!("rabbitmq-{queue}"), target, activation.as_f64(), Reads::RabbitMq(rabbit)))
}

/// The target of a RabbitMQ queue is stated by `mode` and `value` together, by `queueLength` alone, or not at all.
///
/// Source: KEDA 2.20 `pkg/scalers/rabbitmq_scaler.go`, `rabbitMQMetadata.validateTrigger`.
fn rabbit_mq_target(metadata: &Metadata<'_>) -> Result<(), TriggerProblem> {
    let is_set = |key: &str| {
        let text = metadata.text(key).map(str::trim);
        text.is_some_and(|text| !text.is_empty() && text.parse() != Ok(0.0))
    };
    match (is_set("queueLength"), is_set("mode"), is_set("value")) {
        (true, true, _) => Err(TriggerProblem::Together("queueLength", "mode")),
        (true, false, true) => Err(TriggerProblem::Together("queueLength", "value")),
        (false, true, false) => Err(TriggerProblem::Incomplete("value")),
        (false, false, true) => Err(TriggerProblem::Incomplete("mode")),
        (true, false, false) | (false, true, true) | (false, false, false) => Ok(()),
    }
}

/// A trigger whose value the simulation does not make.
pub(super) fn outside(metadata: &Metadata<'_>) -> Result<TriggerSource, TriggerProblem> {
    let (kind, (keys, default)) = (metadata.kind, metadata.scaler.target);
    let keys = if keys == STREAM { stream_keys(metadata) } else { keys };
    let stated = keys.iter().copied().find(|key| metadata.text(key).is_some());
    let from_environment = TARGET_FROM_ENVIRONMENT.contains(&kind)
        && keys.iter().any(|key| metadata.text(&format!("{key}FromEnv")).is_some());
    let target = match stated {
        Some(key) => Some(metadata.number(key, 0)?),
        None => default.map(whole).filter(|_| !from_environment),
    };
    let activation_key = stated.or(keys.first().copied()).map(activation_key);
    let activation =
        match activation_key.into_iter().chain(ACTIVATIONS.iter().copied()).find(|key| metadata.text(key).is_some()) {
            Some(key) => metadata.number(key, 0)?.as_f64(),
            // The only scaler whose default is not zero.
            None if kind == "artemis-queue" => 10.0,
            None => 0.0,
        };
    let target = target.filter(|target| target.nanos() > 0);
    Ok(TriggerSource { target, ..metadata.source(kind, whole(0), activation, Reads::Outside) })
}

pub(super) fn whole(number: i64) -> Quantity {
    Quantity::from_nanos(i128::from(number) * 1_000_000_000)
}

/// Value of a Redis stream that is compared with its target: without a consumer group its length, with one its lag if a target is stated for it,
/// else its pending entries.
///
/// Source: KEDA 2.20 `pkg/scalers/redis_streams_scaler.go`, `redisStreamsMetadata.Validate`.
fn stream_keys(metadata: &Metadata<'_>) -> &'static [&'static str] {
    let [lag, pending, length] = STREAM_KEYS;
    match metadata.text("lagCount") {
        _ if metadata.text("consumerGroup").is_none() => length,
        Some(count) if count.trim() != "0" => lag,
        _ => pending,
    }
}

/// `activation` before the key of a target, whose first letter becomes large.
pub(super) fn activation_key(target: &str) -> &'static str {
    let mut rest = target.chars();
    let first: String = rest.next().into_iter().flat_map(char::to_uppercase).collect();
    Symbol::new(&format!("activation{first}{}", rest.as_str())).as_str()
}

#[cfg(test)]
mod tests {
    use super::{Origin, SCALERS, Scaler, whole};
    use crate::domain::keda::{Reads, TriggerProblem, TriggerSource};
    use crate::domain::labels::Labels;

    fn read(kind: &str, metadata: &[(&'static str, &'static str)]) -> TriggerSource {
        let labels = metadata.iter().fold(Labels::new(), |labels, &(key, value)| labels.with(key, value));
        match TriggerSource::read(kind, &labels, None) {
            Ok(trigger) if trigger.reads == Reads::Outside => trigger,
            other => panic!("{kind}: {other:?}"),
        }
    }

    #[test]
    fn target_comes_from_metadata_or_default() {
        let watch = read("aws-cloudwatch", &[("targetMetricValue", "2.5"), ("activationTargetMetricValue", "1")]);
        assert_eq!((watch.target.map(|target| target.as_f64()), watch.activation), (Some(2.5), 1.0));
        assert_eq!(read("aws-kinesis-stream", &[]).target, Some(whole(2)));
        let artemis = read("artemis-queue", &[]);
        assert_eq!((artemis.target, artemis.activation), (Some(whole(10)), 10.0));
        assert_eq!(read("redis-streams", &[("streamLength", "50")]).target, Some(whole(50)));
        let winds = read("solarwinds", &[("targetValue", "7"), ("activationValue", "3")]);
        assert_eq!((winds.target, winds.activation), (Some(whole(7)), 3.0));
        assert_eq!(read("mysql", &[("query", "SELECT 1")]).target, None);
        assert_eq!(read("of-our-own", &[("threshold", "9")]).target, Some(whole(9)));
    }

    #[test]
    fn stream_target_follows_its_measured_value() {
        let group = ("consumerGroup", "g");
        assert_eq!(
            read("redis-streams", &[("streamLength", "50"), ("pendingEntriesCount", "9")]).target,
            Some(whole(50))
        );
        assert_eq!(read("redis-streams", &[group, ("streamLength", "50")]).target, Some(whole(5)), "pending entries");
        assert_eq!(read("redis-streams", &[group, ("pendingEntriesCount", "9")]).target, Some(whole(9)));
        let lag = read(
            "redis-streams",
            &[group, ("lagCount", "17"), ("pendingEntriesCount", "9"), ("activationLagCount", "3")],
        );
        assert_eq!((lag.target, lag.activation), (Some(whole(17)), 3.0));
        let pending = read("redis-cluster-streams", &[group, ("activationLagCount", "3")]);
        assert_eq!((pending.target, pending.activation), (Some(whole(5)), 3.0));
        let older = read("gcp-pubsub", &[("value", "30"), ("subscriptionSize", "8"), ("activationValue", "2")]);
        assert_eq!((older.target, older.activation), (Some(whole(8)), 2.0));
    }

    #[test]
    fn field_in_environment_keeps_default() {
        let outside = |kind, metadata: &[(&'static str, &'static str)]| {
            let labels = metadata.iter().fold(Labels::new(), |labels, &(key, value)| labels.with(key, value));
            match TriggerSource::outside(kind, &labels) {
                Ok(trigger) => (trigger.target, trigger.activation),
                other => panic!("{kind}: {other:?}"),
            }
        };
        let none = 0.0;
        assert_eq!(outside("aws-sqs-queue", &[("queueURLFromEnv", "URL")]), (Some(whole(5)), none));
        let more = [("queueURLFromEnv", "URL"), ("queueLength", "8"), ("activationQueueLength", "2")];
        assert_eq!(outside("aws-sqs-queue", &more), (Some(whole(8)), 2.0));
        for kind in ["kafka", "apache-kafka"] {
            assert_eq!(outside(kind, &[("topicFromEnv", "T"), ("consumerGroupFromEnv", "G")]), (Some(whole(10)), none));
        }
        assert_eq!(outside("rabbitmq", &[("queueNameFromEnv", "Q")]), (Some(whole(20)), none));
        assert_eq!(outside("redis", &[("listNameFromEnv", "L")]), (Some(whole(5)), none));
        assert_eq!(outside("github-runner", &[]).0, Some(whole(1)));
        assert_eq!(outside("github-runner", &[("targetWorkflowQueueLengthFromEnv", "N")]).0, None, "not known");
    }

    #[test]
    fn non_numeric_keda_target_is_an_error() {
        let labels = Labels::new().with("lagThreshold", "much");
        let problem = TriggerSource::read("stan", &labels, None).unwrap_err();
        assert!(matches!(problem, TriggerProblem::Malformed { key: "lagThreshold", .. }), "{problem}");
    }

    #[test]
    fn every_type_stands_once_and_in_order() {
        let stated = SCALERS.iter().filter(|scaler| scaler.value == Origin::Stated).map(|scaler| scaler.types);
        assert!(stated.is_sorted_by(|one, other| one < other));
        assert!(Scaler::types().all(|kind| SCALERS.iter().filter(|scaler| scaler.types.contains(&kind)).count() == 1));
    }
}
