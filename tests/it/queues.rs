//! Queues and their workers: what triggers read, how fast a backlog drains, what partitions limit.

use nodecast::domain::{SimDuration, SimTime};
use nodecast::scenario::Source;
use nodecast::scenario::error::Render;
use nodecast::scenario::manifests::read_manifests;
use nodecast::simulation::Outcome;
use nodecast::world::record::{EventKind, Sample};

use crate::keda::{changes, cluster, load, run, scaled_object, simulate};

fn sqs(rest: &str) -> String {
    format!("queues:\n- {{name: orders, kind: sqs, workload: worker, time_per_message: 2s, {rest}}}")
}

const SQS: &str = "  cooldownPeriod: 60\n  maxReplicaCount: 50\n  triggers:\n  - type: aws-sqs-queue\n    metadata: \
    {queueURL: \"https://sqs.us-east-1.amazonaws.com/1/orders\", awsRegion: us-east-1, queueLength: \"20\"}\n";

fn most(outcome: &Outcome) -> u32 {
    changes(outcome).iter().map(|change| change.3).max().unwrap_or(0)
}

#[test]
fn backlog_wakes_workers_until_drained() {
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
fn replicas_do_not_exceed_unfinished_messages() {
    // A hundred messages come at once, a minute's work each, one to a replica.
    let burst = "versions: {kubernetes: \"1.37\"}\nqueues:\n- {name: orders, kind: sqs, workload: worker, time_per_message: 60s, \
        messages: {steps: [{at: 0s, rate: 0}, {at: 60s, rate: 100}, {at: 61s, rate: 0}], arrivals: even}}";
    let spec = "  pollingInterval: 5\n  cooldownPeriod: 30\n  minReplicaCount: 1\n  maxReplicaCount: 1000\n  triggers:\n  - type: \
        aws-sqs-queue\n    metadata: {queueURL: \"https://sqs.us-east-1.amazonaws.com/1/orders\", awsRegion: us-east-1, queueLength: \"1\"}\n";
    let scenario = load("10m", burst, &format!("{}{}", cluster(1), scaled_object(spec)), &[]);
    let span = |seconds| SimDuration::from_secs(seconds);
    for seed in 1..=10 {
        let outcome = simulate(&scenario, seed);
        assert!((80..=100).contains(&most(&outcome)), "seed {seed}: {:?}", changes(&outcome));
        let samples = &outcome.record.samples;
        let unfinished = |sample: &Sample| sample.queues[0].waiting + sample.queues[0].in_flight;
        assert!(samples.iter().all(|sample| unfinished(sample) < 100.0 + 1e-6));
        // What stands in a sample was asked at most one pass before it, and messages only get fewer.
        for sample in samples.iter().filter(|sample| sample.at > SimTime::ZERO + span(100)) {
            let before = samples.iter().rfind(|other| other.at + span(16) <= sample.at).unwrap();
            let asked = sample.metrics[0].asks_for.unwrap_or(0);
            assert!(f64::from(asked) <= unfinished(before).ceil().max(1.0), "seed {seed} at {}: {asked}", sample.at);
        }
        assert!((outcome.queues[0].processed - 100.0).abs() < 1e-3, "seed {seed}: {:?}", outcome.queues[0]);
    }
}

#[test]
fn in_flight_messages_count_unless_excluded() {
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
fn kafka_consumers_are_limited_by_partitions() {
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
fn activemq_counts_unacknowledged_messages() {
    let queue = "queues:\n- {name: mail, kind: activemq, workload: worker, time_per_message: 2s, waiting: 100, messages: {constant: 10}}";
    let by_name = "managementEndpoint: \"mq:8161\", brokerName: b, destinationName: mail, targetQueueSize: \"20\"";
    let template = "http://mq/api/jolokia/read/org.apache.activemq:type=Broker,brokerName=b,destinationType=Queue,destinationName=mail/QueueSize";
    for metadata in [by_name.to_owned(), format!("restAPITemplate: \"{template}\", targetQueueSize: \"20\"")] {
        let spec = format!("  minReplicaCount: 1\n  triggers:\n  - {{type: activemq, metadata: {{{metadata}}}}}\n");
        let outcome = run("30m", queue, &format!("{}{}", cluster(40), scaled_object(&spec)), &[]);
        assert!(outcome.warnings.is_empty(), "{:?}", outcome.warnings);
        assert_eq!(outcome.record.metrics[0].name, "s0-activemq-mail");
        assert_eq!(outcome.queues[0].kind, "activemq");
        // Ten a second, two seconds each: twenty in flight.
        let value = outcome.record.samples[30].metrics[0].value.unwrap() * 40.0;
        assert!((value - 20.0).abs() < 1.0, "{value}");
    }
}

#[test]
fn trigger_without_queue_warns_of_expected_entry() {
    let trigger = |kind: &str, metadata: &str| format!("  triggers:\n  - {{type: {kind}, metadata: {{{metadata}}}}}\n");
    let cases = [
        (SQS.to_owned(), "kind `sqs` and name `orders`"),
        (
            trigger("kafka", "bootstrapServers: b, consumerGroup: g, topic: t, lagThreshold: \"5\""),
            "kind `kafka`, name `t`, and consumer_group `g`",
        ),
        (
            trigger("kafka", "bootstrapServers: b, consumerGroup: g, lagThreshold: \"5\""),
            "kind `kafka` and consumer_group `g`",
        ),
        (trigger("rabbitmq", "queueName: mail, mode: QueueLength, value: \"5\""), "kind `rabbitmq` and name `mail`"),
        (
            trigger("rabbitmq", "queueName: \"m.*\", useRegex: \"true\", mode: QueueLength, value: \"5\""),
            "kind `rabbitmq` and a name that matches `m.*`",
        ),
    ];
    for (spec, expected) in cases {
        let outcome = run("2m", "", &format!("{}{}", cluster(1), scaled_object(&spec)), &[]);
        let warning = outcome.warnings.texts().join("\n");
        assert!(warning.ends_with(&format!(" always fails: no entry under `queues` has {expected}")), "{warning}");
    }
}

fn scaled_job(spec: &str) -> String {
    format!(
        "---\napiVersion: keda.sh/v1alpha1\nkind: ScaledJob\nmetadata: {{name: batch}}\nspec:\n  jobTargetRef:\n    template:\n      \
         spec:\n        restartPolicy: Never\n        containers: [{{name: app, image: app, resources: {{requests: {{cpu: 100m, \
         memory: 64Mi}}}}}}]\n{spec}"
    )
}

const BATCH_QUEUE: &str = "queues:\n- {name: orders, kind: sqs, workload: batch, time_per_message: 60s, waiting: 30}";

fn batch_trigger(more: &str) -> String {
    format!(
        "  triggers:\n  - type: aws-sqs-queue\n    metadata: {{queueURL: \"https://sqs/1/orders\", awsRegion: us-east-1, \
         queueLength: \"1\"{more}}}\n"
    )
}

/// Jobs made, and the most that ran at once.
fn jobs(outcome: &Outcome) -> (u32, u32) {
    let made = outcome.record.replica_changes.iter().filter(|change| change.kind == EventKind::JobsCreated);
    let made: Vec<_> = made.collect();
    (made.iter().map(|change| change.to - change.from).sum(), made.iter().map(|change| change.to).max().unwrap_or(0))
}

#[test]
fn scaled_job_creates_one_job_per_message() {
    let object = scaled_job(&format!("  maxReplicaCount: 10\n{}", batch_trigger("")));
    let outcome = run("15m", BATCH_QUEUE, &format!("{}{object}", cluster(1)), &[]);
    assert!(outcome.warnings.is_empty(), "{:?}", outcome.warnings);
    assert_eq!(jobs(&outcome), (30, 10));
    let queue = &outcome.queues[0];
    assert!((queue.processed - 30.0).abs() < 1e-6 && queue.waiting_at_end.abs() < 1e-6, "{queue:?}");
    let batch: Vec<_> = outcome.record.pods.iter().filter(|pod| pod.name.starts_with("batch")).collect();
    assert_eq!(batch.len(), 30);
    for pod in batch {
        // Its containers run for as long as its message takes, then it is gone by itself.
        assert_eq!((pod.removed.unwrap() - pod.started.unwrap()).as_secs(), 60);
        assert_eq!(pod.deletion_requested, None);
    }
    let finished = outcome.record.events.iter().filter(|event| event.kind == EventKind::JobFinished).count();
    assert_eq!(finished, 30);
    // Each of the Jobs that have a message is through with one in a minute.
    for sample in outcome.record.samples.iter().map(|sample| sample.queues[0]) {
        assert!((sample.throughput - sample.in_flight / 60.0).abs() < 1e-6, "{sample:?}");
    }
    assert!(outcome.record.samples.iter().any(|sample| sample.queues[0].throughput > 0.1));
    // A ScaledJob is KEDA's, which scales.
    assert!(nodecast::report::Summary::from_outcome(&outcome).scaling.rescales > 0);
}

#[test]
fn accurate_strategy_suits_queue_hiding_in_flight() {
    let without = ", scaleOnInFlight: \"false\"";
    // The default strategy sets running Jobs against a queue that no longer shows their messages, and stops too soon.
    let default = scaled_job(&format!("  maxReplicaCount: 20\n{}", batch_trigger(without)));
    let accurate = scaled_job(&format!(
        "  maxReplicaCount: 20\n  scalingStrategy: {{strategy: accurate}}\n{}",
        batch_trigger(without)
    ));
    let at_one_minute = |object: &str| {
        let outcome = run("90s", BATCH_QUEUE, &format!("{}{object}", cluster(1)), &[]);
        jobs(&outcome).0
    };
    assert_eq!(at_one_minute(&accurate), 20);
    assert!(at_one_minute(&default) <= 20);
    let outcome = run("15m", BATCH_QUEUE, &format!("{}{accurate}", cluster(1)), &[]);
    assert_eq!(jobs(&outcome), (30, 20));
}

#[test]
fn multi_pod_job_finishes_with_last_pod() {
    let object = scaled_job(&format!("  maxReplicaCount: 2\n{}", batch_trigger("")))
        .replace("jobTargetRef:\n", "jobTargetRef:\n    parallelism: 2\n    completions: 3\n");
    let outcome = run("15m", BATCH_QUEUE, &format!("{}{object}", cluster(1)), &[]);
    let count = |kind| outcome.record.events.iter().filter(|event| event.kind == kind).count();
    let (jobs, pods) = (count(EventKind::JobFinished), count(EventKind::PodSucceeded));
    assert!(jobs >= 5 && pods >= 3 * jobs && pods <= 3 * jobs + 4, "{jobs} {pods}");
}

#[test]
fn failed_job_is_replaced_for_its_message() {
    let settings = |share: &str| format!("{BATCH_QUEUE}\nworkloads: [{{name: batch, failures: {share}}}]");
    let limited = |limit: u32| {
        scaled_job(&format!("  maxReplicaCount: 10\n{}", batch_trigger("")))
            .replace("jobTargetRef:\n", &format!("jobTargetRef:\n    backoffLimit: {limit}\n"))
    };
    let count = |outcome: &Outcome, kind| outcome.record.events.iter().filter(|event| event.kind == kind).count();
    let outcome = run("40m", &settings("0.3"), &format!("{}{}", cluster(1), limited(0)), &[]);
    assert!(outcome.warnings.is_empty(), "{:?}", outcome.warnings);
    let (pods, given_up) = (count(&outcome, EventKind::PodFailed), count(&outcome, EventKind::JobFailed));
    assert!(pods > 3 && pods == given_up, "{pods} pods failed, {given_up} Jobs");
    // Every message is worked off in the end, by another Job.
    let queue = &outcome.queues[0];
    assert!((queue.processed - 30.0).abs() < 1e-6 && queue.waiting_at_end.abs() < 1e-6, "{queue:?}");
    assert_eq!((jobs(&outcome).0 as usize, count(&outcome, EventKind::JobFinished)), (30 + given_up, 30));
    // A Job that may fail twice makes three pods, ten and twenty seconds after one another.
    let outcome = run("5m", &settings("1"), &format!("{}{}", cluster(1), limited(2)), &[]);
    assert!(outcome.queues[0].processed.abs() < 1e-6);
    let pods: Vec<_> = outcome.record.pods.iter().filter(|pod| pod.name.starts_with("batch")).collect();
    let first = outcome.record.events.iter().find(|event| event.kind == EventKind::JobFailed).unwrap();
    assert!(first.message.starts_with("BackoffLimitExceeded"), "{}", first.message);
    assert_eq!(pods.iter().filter(|pod| pod.created < first.at).count(), 30, "three pods for each of ten Jobs");
    let waits = [10, 20].map(|wait| {
        let again = |pod: &&nodecast::world::record::PodFacts| {
            pods.iter().any(|before| before.removed.is_some_and(|ended| (pod.created - ended).as_secs() == wait))
        };
        pods.iter().filter(again).count()
    });
    assert!(waits.iter().all(|count| *count >= 10), "{waits:?}");
}

#[test]
fn job_without_queue_runs_one_minute_with_warning() {
    let cron = "  triggers:\n  - type: cron\n    metadata: {timezone: UTC, start: 5 2 * * *, end: 8 2 * * *, desiredReplicas: \"2\"}\n";
    let outcome = run("20m", "", &format!("{}{}", cluster(1), scaled_job(cron)), &[]);
    assert_eq!(
        outcome.warnings.texts(),
        ["ScaledJob default/batch: no entry under `queues` names it, so each Job pod is assumed to run for 1 minute"]
    );
    let (made, most) = jobs(&outcome);
    assert!(most == 2 && (4..=8).contains(&made), "{made} {most}");
    let timed =
        run("20m", "workloads: [{name: batch, run_time: 9m}]", &format!("{}{}", cluster(1), scaled_job(cron)), &[]);
    assert!(timed.warnings.is_empty(), "{:?}", timed.warnings);
}

#[test]
fn scaled_job_errors_show_their_place() {
    let mut report = String::new();
    for mistake in [
        "  triggers: []\n",
        "  triggers: [{type: cpu, metricType: Utilization, metadata: {value: \"60\"}}]\n",
        "  minReplicaCount: 5\n  maxReplicaCount: 3\n  triggers: [{type: redis, metadata: {listName: l}}]\n",
        "  scalingStrategy: {strategy: hasty}\n  triggers: [{type: redis, metadata: {listName: l}}]\n",
        "  scalingStrategy: {multipleScalersCalculation: mean}\n  triggers: [{type: redis, metadata: {listName: l}}]\n",
        "  scalingStrategy: {pendingPodConditions: [MyGate]}\n  triggers: [{type: redis, metadata: {listName: l}}]\n",
        "  maxReplicaCount: -1\n  triggers: [{type: redis, metadata: {listName: l}}]\n",
    ] {
        let error = read_manifests(&Source::new("object.yaml", scaled_job(mistake))).unwrap_err().render();
        assert!(error.contains("help:") && error.contains("object.yaml:"), "{error}");
        report.push_str(&error);
        report.push('\n');
    }
    insta::assert_snapshot!("mistakes_in_a_scaled_job", report);
}

#[test]
fn queue_workers_use_cpu_seen_by_hpa() {
    let queue = "queues:\n- {name: orders, kind: sqs, workload: worker, time_per_message: 1s, cpu_per_message: 80ms, waiting: 100000}";
    let hpa = "---\napiVersion: autoscaling/v1\nkind: HorizontalPodAutoscaler\nmetadata: {name: h}\nspec: {scaleTargetRef: {kind: \
        Deployment, name: worker}, maxReplicas: 10, targetCPUUtilizationPercentage: 50}\n";
    let outcome = run("20m", queue, &format!("{}{hpa}", cluster(1)), &[]);
    // 80m of the 100m that a pod requests, however many there are: 80 % against 50 %, again and again.
    assert_eq!(most(&outcome), 10);
    assert_eq!(outcome.record.samples[60].metrics[0].value, Some(80.0));
    assert!((outcome.record.samples[60].workloads[0].cpu_used_milli - 800.0).abs() < 81.0);
}

#[test]
fn messages_of_interrupted_job_return_to_queue() {
    let rest = "cluster: {zones: [us-east-1a, us-east-1b]}\nfaults: [{at: 90s, for: 30m, zone_outage: {zone: us-east-1a, mode: power}}]\n\
        queues:\n- {name: orders, kind: sqs, workload: batch, time_per_message: 10m, waiting: 10}";
    let nodes =
        cluster(1).replace("desiredCapacity: 1, minSize: 1, maxSize: 1", "desiredCapacity: 2, minSize: 2, maxSize: 2");
    let object = scaled_job(&format!("  maxReplicaCount: 10\n{}", batch_trigger("")));
    let outcome = run("29m", rest, &format!("{nodes}{object}"), &[]);
    let evicted = outcome.record.pods.iter().filter(|pod| pod.evicted && pod.name.starts_with("batch")).count();
    let batch = outcome.record.pods.iter().filter(|pod| pod.name.starts_with("batch")).count();
    assert!((1..10).contains(&evicted), "some of the ten were in the dark zone: {evicted}");
    assert_eq!(batch, 10 + evicted, "each of them was made again");
    assert!((outcome.queues[0].processed - 10.0).abs() < 1e-6, "{:?}", outcome.queues[0]);
}

#[test]
fn worker_without_readiness_probe_waits_for_start() {
    let queue = |start: &str| {
        format!(
            "{}\nworkloads: [{{name: default/worker, start_time: {start}}}]",
            sqs("waiting: 100, messages: {constant: 0}")
        )
    };
    let processed = |start: &str, second: i64| {
        let outcome = run("20m", &queue(start), &cluster(2), &[]);
        let ready = outcome.record.pods.iter().filter_map(|pod| pod.ready).max().unwrap();
        assert!(ready.as_secs() < 60, "Ready as soon as their containers run: {ready:?}");
        let sample = outcome.record.samples.iter().find(|sample| sample.at.as_secs() >= second).unwrap();
        (100.0 - sample.queues[0].waiting - sample.queues[0].in_flight, outcome.queues[0].processed)
    };
    let (early, all) = processed("5m", 300);
    assert!(early.abs() < 1e-6, "{early} messages done before anybody had started");
    assert!((all - 100.0).abs() < 1e-3, "{all}");
    let (early, _) = processed("0s", 300);
    assert!((early - 100.0).abs() < 1e-3, "{early}");
}

#[test]
fn job_pod_takes_message_after_start() {
    let object = scaled_job(&format!("  maxReplicaCount: 10\n{}", batch_trigger("")));
    let rest = format!("{BATCH_QUEUE}\nworkloads: [{{name: default/batch, start_time: 20s}}]");
    let outcome = run("20m", &rest, &format!("{}{object}", cluster(1)), &[]);
    assert!((outcome.queues[0].processed - 30.0).abs() < 1e-6, "{:?}", outcome.queues[0]);
    let batch = outcome.record.pods.iter().filter(|pod| pod.name.starts_with("batch"));
    let times = batch.filter_map(|pod| Some((pod.removed? - pod.started?).as_secs()));
    assert!(times.filter(|seconds| *seconds == 80).count() >= 30, "twenty to start and sixty to work");
}

/// What was made of a ScaledJob in so long, of which another form is applied after three minutes.
fn changed_job(duration: &str, queue: &str, first: &str, later: &str) -> Outcome {
    let rest = format!(
        "timeline: [{{at: 3m, manifests: [later.yaml]}}]\nqueues:\n- {{name: orders, kind: sqs, workload: batch, {queue}}}"
    );
    run(duration, &rest, &format!("{}{first}", cluster(1)), &[("later.yaml", later)])
}

/// When pods of Jobs were made, in seconds, what CPU they request, and whether somebody deleted them.
fn job_pods(outcome: &Outcome) -> Vec<(i64, i64, bool)> {
    let this_pod = outcome.record.pods.iter().filter(|pod| pod.name.starts_with("batch"));
    this_pod.map(|pod| (pod.created.as_secs(), pod.requests.cpu_milli(), pod.deletion_requested.is_some())).collect()
}

#[test]
fn paused_scaled_job_creates_no_jobs() {
    let object = scaled_job(&format!("  maxReplicaCount: 10\n{}", batch_trigger("")));
    let paused = object.replace("{name: batch}", "{name: batch, annotations: {autoscaling.keda.sh/paused: \"true\"}}");
    let queue = "time_per_message: 60s, waiting: 30";
    let resumed = changed_job("20m", queue, &paused, &object);
    let pods = job_pods(&resumed);
    assert_eq!((pods.len(), pods[0].0), (30, 180), "it is polled at once when its pause ends");
    assert!(resumed.queues[0].waiting_at_end.abs() < 1e-6);
    let stopped = changed_job("20m", queue, &object, &paused);
    let pods = job_pods(&stopped);
    assert!(pods.len() >= 10 && pods.len() < 30, "{pods:?}");
    assert!(pods.iter().all(|pod| pod.0 <= 180 && !pod.2), "{pods:?}");
}

#[test]
fn changed_scaled_job_deletes_jobs_unless_gradual() {
    let object = |cpu: &str, rollout: &str| {
        scaled_job(&format!("  maxReplicaCount: 10\n{rollout}{}", batch_trigger(""))).replace("cpu: 100m", cpu)
    };
    let queue = "time_per_message: 20m, waiting: 10";
    let outcome = changed_job("10m", queue, &object("cpu: 100m", ""), &object("cpu: 200m", ""));
    let pods = job_pods(&outcome);
    assert_eq!(pods.len(), 20);
    assert!(pods[..10].iter().all(|pod| pod.0 < 180 && pod.1 == 100 && pod.2), "{pods:?}");
    assert!(pods[10..].iter().all(|pod| pod.0 == 180 && pod.1 == 200 && !pod.2), "{pods:?}");
    for rollout in ["  rollout: {strategy: gradual}\n", "  rolloutStrategy: gradual\n"] {
        let outcome = changed_job("10m", queue, &object("cpu: 100m", rollout), &object("cpu: 200m", rollout));
        let pods = job_pods(&outcome);
        assert!(pods.len() == 10 && pods.iter().all(|pod| pod.1 == 100 && !pod.2), "{rollout} {pods:?}");
    }
    // What is applied again unchanged is no other form.
    let outcome = changed_job("10m", queue, &object("cpu: 100m", ""), &object("cpu: 100m", ""));
    assert_eq!(job_pods(&outcome).len(), 10);
}
