//! The keys of triggers' metadata.
//!
//! Source: KEDA 2.20 `pkg/scalers`, the metadata of each scaler.

/// The keys of triggers of some types.
pub(super) struct MetadataKeys {
    /// The types.
    pub(super) types: &'static [&'static str],
    /// Keys that are read.
    pub(super) read: &'static [&'static str],
    /// Keys that change nothing in a simulation: addresses, credentials, ways to connect.
    pub(super) without_effect: &'static [&'static str],
}

/// Every type whose keys are known; external scalers have their own.
pub(super) const METADATA_KEYS: &[MetadataKeys] = &[
    MetadataKeys {
        types: &["prometheus"],
        read: &["query", "threshold", "activationThreshold", "ignoreNullValues"],
        without_effect: &[
            "serverAddress",
            "metricName",
            "namespace",
            "timeout",
            "authModes",
            "unsafeSsl",
            "customHeaders",
            "queryParameters",
            "cortexOrgID",
            "awsRegion",
            "identityOwner",
        ],
    },
    MetadataKeys { types: &["cpu", "memory"], read: &["value", "containerName"], without_effect: &[] },
    MetadataKeys { types: &["cron"], read: &["timezone", "start", "end", "desiredReplicas"], without_effect: &[] },
    MetadataKeys {
        types: &["aws-sqs-queue"],
        read: &["queueURL", "queueLength", "activationQueueLength", "scaleOnInFlight", "scaleOnDelayed"],
        without_effect: &["awsRegion", "awsEndpoint", "identityOwner", "awsAccessKeyID", "awsSecretAccessKey"],
    },
    MetadataKeys {
        types: &["kafka", "apache-kafka"],
        read: &[
            "topic",
            "consumerGroup",
            "lagThreshold",
            "activationLagThreshold",
            "offsetResetPolicy",
            "allowIdleConsumers",
            "excludePersistentLag",
            "limitToPartitionsWithLag",
            "ensureEvenDistributionOfPartitions",
            "scaleToZeroOnInvalidOffset",
        ],
        without_effect: &[
            "bootstrapServers",
            "version",
            "sasl",
            "tls",
            "awsRegion",
            "metricName",
            "unsafeSsl",
            "saslTokenType",
        ],
    },
    MetadataKeys {
        types: &["rabbitmq"],
        read: &[
            "queueName",
            "mode",
            "value",
            "activationValue",
            "queueLength",
            "excludeUnacknowledged",
            "useRegex",
            "operation",
        ],
        without_effect: &[
            "host",
            "protocol",
            "vhostName",
            "metricName",
            "pageSize",
            "timeout",
            "unsafeSsl",
            "workloadIdentityResource",
            "username",
            "password",
        ],
    },
    MetadataKeys {
        types: &["redis", "redis-cluster", "redis-sentinel"],
        read: &["listName", "listLength", "activationListLength"],
        without_effect: &[
            "address",
            "addresses",
            "host",
            "hosts",
            "port",
            "ports",
            "sentinelMaster",
            "sentinelUsername",
            "sentinelPassword",
            "databaseIndex",
            "enableTLS",
            "unsafeSsl",
            "username",
            "password",
            "metricName",
        ],
    },
    MetadataKeys {
        types: &["kubernetes-workload"],
        read: &["podSelector", "value", "activationValue", "groupByNode"],
        without_effect: &[],
    },
];
