//! Queues and their workers: what triggers read, how fast a backlog drains, what partitions limit.

use nodecast::simulation::Outcome;

use crate::keda::{changes, cluster, run, scaled_object};

fn sqs(rest: &str) -> String {
    format!("queues:\n- {{name: orders, kind: sqs, workload: worker, time_per_message: 2s, {rest}}}")
}

const SQS: &str = "  cooldownPeriod: 60\n  maxReplicaCount: 50\n  triggers:\n  - type: aws-sqs-queue\n    metadata: \
    {queueURL: \"https://sqs.us-east-1.amazonaws.com/1/orders\", awsRegion: us-east-1, queueLength: \"20\"}\n";

fn most(outcome: &Outcome) -> u32 {
    changes(outcome).iter().map(|change| change.3).max().unwrap_or(0)
}

#[test]
fn a_backlog_wakes_workers_is_drained_by_them_and_lets_them_sleep() {
    let burst = sqs("messages: {steps: [{at: 0s, rate: 0}, {at: 10m, rate: 10}, {at: 11m, rate: 0}]}");
    let outcome = run("40m", &burst, &format!("{}{}", cluster(0), scaled_object(SQS)), &[]);
    let changes = changes(&outcome);
    assert_eq!((changes[0].1, changes[0].2, changes[0].3), ("ScaleTargetActivated", 0, 1));
    assert!((600..=631).contains(&changes[0].0), "the next poll after the first message: {changes:?}");
    // 600 messages over 20 ask for 30 at most; some are done by then.
    assert!((20..=30).contains(&most(&outcome)), "{changes:?}");
    assert_eq!((changes.last().unwrap().1, changes.last().unwrap().3), ("ScaleTargetDeactivated", 0), "{changes:?}");
    let queue = &outcome.queues[0];
    assert!((queue.arrived - 600.0).abs() < 1e-3 && (queue.processed - 600.0).abs() < 1e-3, "{queue:?}");
    assert!(queue.most_waiting > 300.0 && queue.waiting_at_end.abs() < 1e-3);
    assert!(queue.drained.is_some_and(|at| at.as_secs() < 900), "{queue:?}");
}

#[test]
fn messages_in_flight_count_unless_the_trigger_leaves_them_out() {
    // Ten a second, two seconds each: twenty in flight and, with enough workers, none waiting.
    let steady = sqs("messages: {constant: 10}, waiting: 100");
    let with =
        run("30m", &steady, &format!("{}{}", cluster(40), scaled_object(&format!("  minReplicaCount: 1\n{SQS}"))), &[]);
    let object = scaled_object(&format!("  minReplicaCount: 1\n{SQS}"))
        .replace("queueLength: \"20\"", "queueLength: \"20\", scaleOnInFlight: \"false\"");
    let without = run("30m", &steady, &format!("{}{object}", cluster(40)), &[]);
    let value = |outcome: &Outcome| outcome.record.samples[30].metrics[0].value.unwrap() * 40.0;
    assert!((value(&with) - 20.0).abs() < 1.0, "{}", value(&with));
    assert!(value(&without).abs() < 1.0, "{}", value(&without));
}

#[test]
fn kafka_has_no_use_for_more_consumers_than_partitions() {
    let topic = "queues:\n- {name: events, kind: kafka, partitions: 6, consumer_group: g, workload: worker, \
        time_per_message: 1s, waiting: 6000}";
    let trigger = |more: &str| {
        scaled_object(&format!(
            "  minReplicaCount: 1\n  maxReplicaCount: 40\n  triggers:\n  - {{type: kafka, metadata: {{bootstrapServers: b, \
             consumerGroup: g, topic: events{more}}}}}\n"
        ))
    };
    let limited = run("20m", topic, &format!("{}{}", cluster(1), trigger("")), &[]);
    assert_eq!(most(&limited), 6, "one for each partition");
    let allowed = run("20m", topic, &format!("{}{}", cluster(1), trigger(", allowIdleConsumers: \"true\"")), &[]);
    assert_eq!(most(&allowed), 40);
    // The idle ones change nothing: six partitions are worked off one message a second each.
    let done = |outcome: &Outcome| outcome.queues[0].processed;
    assert!((done(&limited) - done(&allowed)).abs() < 400.0, "{} {}", done(&limited), done(&allowed));
    assert!(done(&allowed) < 6.0 * 1_200.0);
}

#[test]
fn rabbitmq_and_redis_read_what_they_would() {
    let rest = |kind: &str| {
        format!(
            "queues:\n- {{name: mail, kind: {kind}, workload: worker, time_per_message: 1s, waiting: 50, messages: {{constant: 0}}}}"
        )
    };
    let spec = |trigger: &str| {
        scaled_object(&format!("  minReplicaCount: 1\n  maxReplicaCount: 1\n  triggers:\n  - {trigger}\n"))
    };
    for (kind, trigger, value) in [
        // Fifty wait before the one worker is Ready, one of them in flight afterwards.
        ("rabbitmq", "{type: rabbitmq, metadata: {queueName: mail, mode: QueueLength, value: \"5\"}}", 50.0),
        (
            "rabbitmq",
            "{type: rabbitmq, metadata: {queueName: \"m.*\", useRegex: \"true\", operation: max, mode: QueueLength, value: \"5\"}}",
            50.0,
        ),
        ("redis", "{type: redis, metadata: {address: \"r:6379\", listName: mail}}", 50.0),
    ] {
        let outcome = run(
            "2m",
            &rest(kind),
            &format!("{}{}", cluster(0).replace("replicas: 0", "replicas: 1"), spec(trigger)),
            &[],
        );
        let read = outcome.record.samples.iter().find_map(|sample| sample.metrics.first()?.value).unwrap();
        assert!((read - value).abs() <= 50.0, "{kind} {read}");
        assert!(outcome.warnings.is_empty(), "{:?}", outcome.warnings);
    }
}

#[test]
fn a_trigger_without_a_queue_is_warned_of() {
    let outcome = run("2m", "", &format!("{}{}", cluster(1), scaled_object(SQS)), &[]);
    assert_eq!(
        outcome.warnings,
        [
            "ScaledObject default/worker: the trigger s0-aws-sqs-orders always fails: none of the scenario's `queues` is its"
        ]
    );
}
