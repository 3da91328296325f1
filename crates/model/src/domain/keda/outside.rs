//! KEDA's scalers that read a system outside the cluster: what their metadata says of targets.
//!
//! What must not live here: scalers whose value a simulation makes (`triggers`).
//!
//! Source: KEDA main `schema/generated/scalers-schema.yaml` (2026) and, for those that it lacks, the documentation of 2.20.

use super::triggers::{Metadata, TriggerProblem};
use crate::domain::quantity::Quantity;
use crate::domain::symbol::Symbol;

/// A scaler that reads what no simulation holds; a scenario may state its values.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct OutsideTrigger {
    /// The trigger's type.
    pub kind: Symbol,
    /// Target; `None` if the metadata states none and KEDA has no default, as where a variable of the container holds it.
    pub target: Option<Quantity>,
    /// Active above this.
    pub activation: Quantity,
}

/// A type of trigger, the keys of its target (the first that is given counts) and KEDA's default of the first.
type Scaler = (&'static str, &'static [&'static str], Option<i64>);

/// All that KEDA documents and whose value the simulation does not make.
const SCALERS: &[Scaler] = &[
    ("activemq", &["targetQueueSize"], Some(10)),
    ("apache-iggy", &["lagThreshold"], Some(10)),
    ("arangodb", &["queryValue"], None),
    ("artemis-queue", &["queueLength"], Some(10)),
    ("aws-cloudwatch", &["targetMetricValue"], None),
    ("aws-dynamodb", &["targetValue"], None),
    ("aws-dynamodb-streams", &["shardCount"], Some(2)),
    ("aws-kinesis-stream", &["shardCount"], Some(2)),
    ("azure-app-insights", &["targetValue"], None),
    ("azure-blob", &["blobCount"], Some(5)),
    ("azure-cosmosdb", &["changeFeedLagThreshold"], Some(100)),
    ("azure-data-explorer", &["threshold"], None),
    ("azure-eventhub", &["unprocessedEventThreshold"], Some(64)),
    ("azure-log-analytics", &["threshold"], None),
    ("azure-monitor", &["targetValue"], None),
    ("azure-pipelines", &["targetPipelinesQueueLength"], Some(1)),
    ("azure-queue", &["queueLength"], Some(5)),
    ("azure-servicebus", &["messageCount"], Some(5)),
    ("beanstalkd", &["value"], None),
    ("cassandra", &["targetQueryValue"], None),
    ("clickhouse", &["targetQueryValue"], None),
    ("couchdb", &["queryValue"], None),
    ("datadog", &["queryValue", "targetValue"], None),
    ("dynatrace", &["threshold"], None),
    ("elastic-forecast", &["targetValue"], None),
    ("elasticsearch", &["targetValue"], None),
    ("etcd", &["value"], None),
    ("forgejo-runner", &[], Some(1)),
    ("gcp-cloudtasks", &["value"], Some(100)),
    ("gcp-pubsub", &["subscriptionSize", "value"], Some(10)),
    ("gcp-stackdriver", &["targetValue"], Some(5)),
    ("gcp-storage", &["targetObjectCount"], Some(100)),
    ("github-runner", &["targetWorkflowQueueLength"], Some(1)),
    ("gitlab-runner", &["targetQueueLength"], Some(1)),
    ("graphite", &["threshold"], Some(100)),
    ("huawei-cloudeye", &["targetMetricValue"], None),
    ("ibmmq", &["queueDepth"], Some(20)),
    ("influxdb", &["thresholdValue"], None),
    ("ionos-monitoring", &["threshold"], None),
    ("kubernetes-resource", &["targetValue"], None),
    ("liiklus", &["lagThreshold"], Some(10)),
    ("loki", &["threshold"], None),
    ("metrics-api", &["targetValue"], None),
    ("mongodb", &["queryValue"], None),
    ("mssql", &["targetValue"], None),
    ("mysql", &["queryValue"], None),
    ("nats-jetstream", &["lagThreshold"], Some(10)),
    ("new-relic", &["threshold"], None),
    ("nsq", &["depthThreshold"], Some(10)),
    ("opensearch", &["targetValue"], None),
    ("openstack-metric", &["threshold"], None),
    ("openstack-swift", &["objectCount"], Some(2)),
    ("postgresql", &["targetQueryValue"], None),
    ("predictkube", &["threshold"], None),
    ("pulsar", &["msgBacklogThreshold", "msgBacklog"], Some(10)),
    ("redis-cluster-streams", STREAM, Some(5)),
    ("redis-sentinel-streams", STREAM, Some(5)),
    ("redis-streams", STREAM, Some(5)),
    ("selenium-grid", &[], Some(1)),
    ("solace-direct-messaging", SOLACE_DIRECT, None),
    ("solace-event-queue", SOLACE_QUEUE, None),
    ("solarwinds", &["targetValue"], None),
    ("solr", &["targetQueryValue"], None),
    ("splunk", &["targetValue"], None),
    ("splunk-observability", &["targetValue"], None),
    ("stan", &["lagThreshold"], Some(10)),
    ("sumologic", &["threshold"], None),
    ("temporal", &["targetQueueSize"], Some(5)),
];
/// The targets of triggers whose value the simulation makes, of which one becomes a trigger of a system outside where a field that it needs
/// stands in the environment of a container.
const SIMULATED: &[Scaler] = &[
    ("apache-kafka", &["lagThreshold"], Some(10)),
    ("aws-sqs-queue", &["queueLength"], Some(5)),
    ("kafka", &["lagThreshold"], Some(10)),
    ("rabbitmq", &["queueLength", "value"], Some(20)),
    ("redis", &["listLength"], Some(5)),
    ("redis-cluster", &["listLength"], Some(5)),
    ("redis-sentinel", &["listLength"], Some(5)),
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

impl OutsideTrigger {
    /// The types that KEDA documents.
    pub fn types() -> impl Iterator<Item = &'static str> {
        SCALERS.iter().map(|(kind, ..)| *kind)
    }

    /// Whether KEDA documents the type.
    pub fn is_documented(&self) -> bool {
        Self::types().any(|kind| kind == self.kind.as_str())
    }

    /// Reads the metadata of a trigger of a type whose value the simulation does not make.
    pub(super) fn read(kind: &str, metadata: &Metadata<'_>) -> Result<Self, TriggerProblem> {
        let mut scalers = SCALERS.iter().chain(SIMULATED);
        let known = scalers.find(|(own, ..)| *own == kind);
        let (keys, default) = known.map_or((USUAL, None), |(_, keys, default)| (*keys, *default));
        let keys = if keys == STREAM { stream_keys(metadata) } else { keys };
        let stated = keys.iter().copied().find(|key| metadata.text(key).is_some());
        let from_environment = TARGET_FROM_ENVIRONMENT.contains(&kind)
            && keys.iter().any(|key| metadata.text(&format!("{key}FromEnv")).is_some());
        let target = match stated {
            Some(key) => Some(metadata.number(key, 0)?),
            None => default.map(whole).filter(|_| !from_environment),
        };
        let own = stated.or(keys.first().copied()).map(activation_key);
        let activation =
            match own.into_iter().chain(ACTIVATIONS.iter().copied()).find(|key| metadata.text(key).is_some()) {
                Some(key) => metadata.number(key, 0)?,
                // The only scaler whose default is not zero.
                None if kind == "artemis-queue" => whole(10),
                None => Quantity::default(),
            };
        Ok(Self { kind: Symbol::new(kind), target: target.filter(|target| target.nanos() > 0), activation })
    }
}

fn whole(number: i64) -> Quantity {
    Quantity::from_nanos(i128::from(number) * 1_000_000_000)
}

/// What of a Redis stream is held against a target: without a consumer group its length, with one its lag if a target is stated for it,
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
fn activation_key(target: &str) -> &'static str {
    let mut rest = target.chars();
    let first: String = rest.next().into_iter().flat_map(char::to_uppercase).collect();
    Symbol::new(&format!("activation{first}{}", rest.as_str())).as_str()
}

#[cfg(test)]
mod tests {
    use super::{OutsideTrigger, SCALERS, whole};
    use crate::domain::keda::{TriggerProblem, TriggerSource};
    use crate::domain::labels::Labels;

    fn read(kind: &str, metadata: &[(&'static str, &'static str)]) -> OutsideTrigger {
        let labels = metadata.iter().fold(Labels::new(), |labels, &(key, value)| labels.with(key, value));
        match TriggerSource::read(kind, &labels, None) {
            Ok(TriggerSource::Outside(trigger)) => trigger,
            other => panic!("{kind}: {other:?}"),
        }
    }

    #[test]
    fn a_target_is_what_the_metadata_states_or_kedas_default() {
        let watch = read("aws-cloudwatch", &[("targetMetricValue", "2.5"), ("activationTargetMetricValue", "1")]);
        assert_eq!((watch.target.map(|own| own.as_f64()), watch.activation.as_f64()), (Some(2.5), 1.0));
        assert_eq!(read("aws-kinesis-stream", &[]).target, Some(whole(2)));
        assert_eq!(read("artemis-queue", &[]).activation, whole(10));
        assert_eq!(read("redis-streams", &[("streamLength", "50")]).target, Some(whole(50)));
        assert_eq!(read("solarwinds", &[("targetValue", "7"), ("activationValue", "3")]).activation, whole(3));
        assert_eq!(read("mysql", &[("query", "SELECT 1")]).target, None);
        assert_eq!(read("of-our-own", &[("threshold", "9")]).target, Some(whole(9)));
    }

    #[test]
    fn a_stream_has_the_target_of_what_is_looked_at() {
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
        assert_eq!((lag.target, lag.activation), (Some(whole(17)), whole(3)));
        let pending = read("redis-cluster-streams", &[group, ("activationLagCount", "3")]);
        assert_eq!((pending.target, pending.activation), (Some(whole(5)), whole(3)));
        let older = read("gcp-pubsub", &[("value", "30"), ("subscriptionSize", "8"), ("activationValue", "2")]);
        assert_eq!((older.target, older.activation), (Some(whole(8)), whole(2)));
    }

    #[test]
    fn a_trigger_with_a_field_in_the_environment_keeps_its_default() {
        let outside = |kind, metadata: &[(&'static str, &'static str)]| {
            let labels = metadata.iter().fold(Labels::new(), |labels, &(key, value)| labels.with(key, value));
            match TriggerSource::outside(kind, &labels) {
                Ok(TriggerSource::Outside(trigger)) => (trigger.target, trigger.activation),
                other => panic!("{kind}: {other:?}"),
            }
        };
        let none = whole(0);
        assert_eq!(outside("aws-sqs-queue", &[("queueURLFromEnv", "URL")]), (Some(whole(5)), none));
        let more = [("queueURLFromEnv", "URL"), ("queueLength", "8"), ("activationQueueLength", "2")];
        assert_eq!(outside("aws-sqs-queue", &more), (Some(whole(8)), whole(2)));
        for kind in ["kafka", "apache-kafka"] {
            assert_eq!(outside(kind, &[("topicFromEnv", "T"), ("consumerGroupFromEnv", "G")]), (Some(whole(10)), none));
        }
        assert_eq!(outside("rabbitmq", &[("queueNameFromEnv", "Q")]), (Some(whole(20)), none));
        assert_eq!(outside("redis", &[("listNameFromEnv", "L")]), (Some(whole(5)), none));
        assert_eq!(outside("github-runner", &[]).0, Some(whole(1)));
        assert_eq!(outside("github-runner", &[("targetWorkflowQueueLengthFromEnv", "N")]).0, None, "not known");
    }

    #[test]
    fn a_target_that_is_no_number_is_a_mistake() {
        let labels = Labels::new().with("lagThreshold", "much");
        let problem = TriggerSource::read("stan", &labels, None).unwrap_err();
        assert!(matches!(problem, TriggerProblem::Malformed { key: "lagThreshold", .. }), "{problem}");
    }

    #[test]
    fn every_type_stands_once_and_in_order() {
        assert!(SCALERS.is_sorted_by(|one, other| one.0 < other.0));
    }
}
