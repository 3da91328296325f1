//! ScaledObjects in a running simulation: what KEDA and its autoscaler write, when, and why.

use nodecast::catalog::Catalog;
use nodecast::scenario::Scenario;
use nodecast::scenario::Source;
use nodecast::scenario::error::Render;
use nodecast::scenario::manifests::read_manifests;
use nodecast::simulation::{self, Outcome};
use nodecast::world::record::EventKind;

/// Runs a scenario written as text, without a node autoscaler, with one file of manifests beside it and `others`.
pub fn run(duration: &str, rest: &str, manifests: &str, others: &[(&str, &str)]) -> Outcome {
    let scenario = load(duration, rest, manifests, others);
    simulate(&scenario, scenario.seed)
}

/// Such a scenario, to be simulated with several seeds.
pub fn load(duration: &str, rest: &str, manifests: &str, others: &[(&str, &str)]) -> Scenario {
    let directory = tempfile::tempdir().unwrap();
    let scenario = format!(
        "name: test\nregion: us-east-1\nstart: 2026-01-05T02:00:00Z\nduration: {duration}\nseed: 3\n\
         manifests: [manifests.yaml]\n{rest}\npolicies: [{{name: only, autoscaler: none}}]\n"
    );
    std::fs::write(directory.path().join("scenario.yaml"), scenario).unwrap();
    std::fs::write(directory.path().join("manifests.yaml"), manifests).unwrap();
    for (name, text) in others {
        std::fs::write(directory.path().join(name), text).unwrap();
    }
    let loaded = nodecast::scenario::load(&directory.path().join("scenario.yaml"));
    loaded.unwrap_or_else(|error| panic!("{}", error.render())).0
}

/// Its only policy with one seed.
pub fn simulate(scenario: &Scenario, seed: u64) -> Outcome {
    let policy = scenario.for_policy(None).unwrap();
    simulation::run(scenario, policy, Catalog::embedded().unwrap(), seed, &mut |_| {}).unwrap()
}

/// A node group with room for everything, and a Deployment of small pods.
pub fn cluster(replicas: u32) -> String {
    format!(
        "apiVersion: eksctl.io/v1alpha5\nkind: ClusterConfig\nmetadata: {{name: c, region: us-east-1}}\n\
         managedNodeGroups: [{{name: ng, instanceType: m5.4xlarge, desiredCapacity: 1, minSize: 1, maxSize: 1}}]\n{}",
        deployment("worker", replicas)
    )
}

pub fn deployment(name: &str, replicas: u32) -> String {
    format!(
        "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}}}\nspec:\n  replicas: {replicas}\n  \
         selector: {{matchLabels: {{app: {name}}}}}\n  template:\n    metadata: {{labels: {{app: {name}}}}}\n    spec:\n      \
         containers: [{{name: app, image: app, resources: {{requests: {{cpu: 100m, memory: 64Mi}}}}}}]\n"
    )
}

pub fn scaled_object(spec: &str) -> String {
    format!(
        "---\napiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {{name: worker}}\nspec:\n  \
         scaleTargetRef: {{name: worker}}\n{spec}"
    )
}

/// Every change of the worker's count: second, kind, from, to.
pub fn changes(outcome: &Outcome) -> Vec<(i64, &'static str, u32, u32)> {
    let kinds = [
        EventKind::Rescaled,
        EventKind::ReplicasSet,
        EventKind::ScaleTargetActivated,
        EventKind::ScaleTargetDeactivated,
    ];
    let events = outcome.record.events.iter().filter(|event| kinds.contains(&event.kind));
    events
        .map(|event| {
            let mut words = event.message.split_whitespace();
            let from = words.next().unwrap().parse().unwrap();
            (event.at.as_secs(), event.kind.as_str(), from, words.nth(1).unwrap().parse().unwrap())
        })
        .collect()
}

fn told(values: &str) -> String {
    format!("external_metrics: [{{scaler: \"queue:9090\", values: [{values}]}}]")
}

const EXTERNAL: &str =
    "  triggers:\n  - {type: external, name: told, metadata: {scalerAddress: \"queue:9090\", targetValue: \"5\"}}\n";

#[test]
fn cron_trigger_in_time_zone_wakes_and_sleeps() {
    let window = "  maxReplicaCount: 20\n  triggers:\n  - type: cron\n    metadata: {timezone: Asia/Kolkata, start: 30 8 * * *, \
        end: 0 10 * * *, desiredReplicas: \"10\"}\n";
    let outcome = run("4h", "", &format!("{}{}", cluster(0), scaled_object(window)), &[]);
    let changes = changes(&outcome);
    // 08:30 in Kolkata is 03:00 UTC, an hour into the run.
    let (woken, kind, from, to) = changes[0];
    assert!((3_600..3_630).contains(&woken) && (kind, from, to) == ("ScaleTargetActivated", 0, 1), "{changes:?}");
    let steps: Vec<(u32, u32)> = changes[1..4].iter().map(|change| (change.2, change.3)).collect();
    assert_eq!(steps, [(1, 4), (4, 8), (8, 10)], "without a behavior block a pass may at most double");
    // 15 s and some milliseconds from pass to pass.
    assert!(changes[1..4].windows(2).all(|pair| (15..=16).contains(&(pair[1].0 - pair[0].0))), "{changes:?}");
    // 10:00 is 04:30 UTC. The last active poll was up to 30 s before; the tenth after it finds the cooldown over.
    let (slept, kind, _, to) = *changes.last().unwrap();
    assert!((9_000 + 270..=9_000 + 301).contains(&slept), "{changes:?}");
    assert_eq!((kind, to), ("ScaleTargetDeactivated", 0));
}

#[test]
fn external_value_is_divided_among_replicas() {
    let rest = told("{at: 0s, value: 0}, {at: 10m, value: 26}");
    let outcome = run(
        "30m",
        &rest,
        &format!("{}{}", cluster(1), scaled_object(&format!("  minReplicaCount: 1\n{EXTERNAL}"))),
        &[],
    );
    let changes = changes(&outcome);
    assert_eq!(changes.iter().map(|change| (change.2, change.3)).collect::<Vec<_>>(), [(1, 4), (4, 6)]);
    let event = outcome.record.events.iter().find(|event| event.kind == EventKind::Rescaled).unwrap();
    assert_eq!(
        event.message,
        "1 to 4 replicas: external metric s0-external(&LabelSelector{MatchLabels:map[string]string{\
         scaledobject.keda.sh/name: worker,},MatchExpressions:[]LabelSelectorRequirement{},}) above target \
         (s0-external 26/5 (avg), asks for 6)"
    );
    let last = outcome.record.samples.last().unwrap().metrics[0];
    assert_eq!((last.value, last.asks_for), (Some(4.334), Some(6)), "26 / 6, rounded up");
    assert_eq!(outcome.record.metrics[0].name, "s0-external");
}

#[test]
fn repeatedly_failing_trigger_falls_back_and_recovers() {
    let rest = told("{at: 0s, value: 10}, {at: 5m, fails: true}, {at: 20m, value: 10}");
    let spec = format!("  minReplicaCount: 1\n  fallback: {{failureThreshold: 3, replicas: 7}}\n{EXTERNAL}");
    let outcome = run("40m", &rest, &format!("{}{}", cluster(1), scaled_object(&spec)), &[]);
    let changes = changes(&outcome);
    let steps: Vec<(u32, u32)> = changes.iter().map(|change| (change.2, change.3)).collect();
    assert_eq!(steps, [(1, 2), (2, 4), (4, 7), (7, 2)], "{changes:?}");
    // Polls every 30 s and the autoscaler every 15 s raise one counter: the fourth failure comes within 60 s.
    assert!((300..=361).contains(&changes[1].0), "{changes:?}");
    // Back to normal at 20 min, and down when the window of 300 s has forgotten the seven, last asked for up to 15 s before.
    assert!((1_485..=1_501).contains(&changes[3].0), "{changes:?}");
    let kinds: Vec<EventKind> = outcome.record.events.iter().map(|event| event.kind).collect();
    assert_eq!(kinds.iter().filter(|kind| **kind == EventKind::TriggerFailed).count(), 1);
    assert_eq!(kinds.iter().filter(|kind| **kind == EventKind::TriggerRecovered).count(), 1);
}

#[test]
fn failing_trigger_without_fallback_keeps_replicas() {
    let rest = told("{at: 0s, value: 10}, {at: 5m, fails: true}");
    let outcome = run("40m", &rest, &format!("{}{}", cluster(1), scaled_object(EXTERNAL)), &[]);
    assert_eq!(changes(&outcome).last().map(|change| change.3), Some(2));
}

#[test]
fn idle_replicas_return_after_cooldown() {
    let rest = told("{at: 0s, value: 0}, {at: 10m, value: 4}, {at: 15m, value: 0}");
    let spec = format!("  idleReplicaCount: 0\n  minReplicaCount: 3\n  cooldownPeriod: 60\n{EXTERNAL}");
    let outcome = run("30m", &rest, &format!("{}{}", cluster(0), scaled_object(&spec)), &[]);
    let changes = changes(&outcome);
    let steps: Vec<(&str, u32, u32)> = changes.iter().map(|change| (change.1, change.2, change.3)).collect();
    assert_eq!(steps, [("ScaleTargetActivated", 0, 3), ("ScaleTargetDeactivated", 3, 0)]);
    // The last active poll is within 30 s before 15 min, and strictly more than 60 s have to pass.
    assert!((900 + 30..=900 + 61).contains(&changes[1].0), "{changes:?}");
}

#[test]
fn a_workload_follows_the_pods_of_another() {
    let spec = "  minReplicaCount: 1\n  triggers:\n  - {type: kubernetes-workload, metadata: {podSelector: \"app in (leader)\", value: \"2\"}}\n";
    let manifests = format!("{}{}{}", cluster(1), deployment("leader", 2), scaled_object(spec));
    let rest = "timeline: [{at: 10m, scale: {workload: leader, replicas: 12}}]";
    let outcome = run("30m", rest, &manifests, &[]);
    let this_change: Vec<_> = changes(&outcome).into_iter().filter(|change| change.1 == "Rescaled").collect();
    assert_eq!(
        this_change.iter().map(|change| (change.2, change.3)).collect::<Vec<_>>(),
        [(1, 4), (4, 6)],
        "12 pods over 2"
    );
}

#[test]
fn a_formula_makes_one_metric_of_several_triggers() {
    let rest =
        "external_metrics:\n- {scaler: a, values: [{at: 0s, value: 3}]}\n- {scaler: b, values: [{at: 0s, value: 9}]}";
    let spec = "  minReplicaCount: 1\n  advanced: {scalingModifiers: {formula: \"max(x, y) + 1\", target: \"2\"}}\n  triggers:\n  \
        - {type: external, name: x, metadata: {scalerAddress: a}}\n  - {type: external, name: y, metadata: {scalerAddress: b}}\n";
    let outcome = run("10m", rest, &format!("{}{}", cluster(1), scaled_object(spec)), &[]);
    assert_eq!(changes(&outcome).last().map(|change| change.3), Some(5), "10 over 2");
    assert_eq!(outcome.record.metrics[0].name, "composite-metric");
}

#[test]
fn formula_fallback_is_multiple_of_its_target() {
    let triggers = "  triggers:\n  - {type: datadog, name: a, metadata: {query: x, queryValue: '50'}}\n  \
        - {type: datadog, name: b, metadata: {query: y, queryValue: '50'}}\n";
    let last = |target: &str, kind: &str| {
        let rest = "external_metrics:\n- {scaled_object: default/worker, trigger: a, values: [{at: 0s, value: 10}]}\n\
            - {scaled_object: default/worker, trigger: b, values: [{at: 0s, value: 20}, {at: 5m, fails: true}]}\n";
        let spec = format!(
            "  minReplicaCount: 1\n  fallback: {{failureThreshold: 3, replicas: 7}}\n  advanced: {{scalingModifiers: {{formula: \
             \"(a + b) / 2\", target: \"{target}\", metricType: {kind}}}}}\n{triggers}"
        );
        let outcome = run("20m", rest, &format!("{}{}", cluster(1), scaled_object(&spec)), &[]);
        changes(&outcome).last().map(|change| change.3)
    };
    assert_eq!(last("5", "AverageValue"), Some(7), "(10 + 20) / 2 over 5 are 3; then 7 times 5 over 5");
    // 15 over 7.5, which is no whole number: such a fallback does not count, and a metric that fails changes nothing.
    assert_eq!(last("7.5", "AverageValue"), Some(2));
    // As a whole 5 times 7 / ready over 5 asks for 7 of as many as are Ready.
    assert_eq!(last("15", "Value"), Some(7), "(10 + 20) / 2 over 15 leave the one");
}

#[test]
fn a_fallback_that_never_counts_is_warned_of() {
    let spec = |target: &str| {
        format!(
            "  fallback: {{failureThreshold: 3, replicas: 7}}\n  advanced: {{scalingModifiers: {{formula: a, target: \"{target}\"}}}}\n  \
             triggers: [{{type: redis, name: a, metadata: {{listName: l}}}}]\n"
        )
    };
    let warnings = |target| {
        let read = read_manifests(&Source::new("object.yaml", scaled_object(&spec(target)))).unwrap();
        read.warnings.iter().map(|warning| warning.render()).collect::<Vec<_>>()
    };
    let told = warnings("2.5");
    assert!(told.len() == 1 && told[0].contains("the `fallback` is never used"), "{told:?}");
    assert_eq!(warnings("2"), [] as [String; 0]);
    assert_eq!(warnings("2.0").len(), 1, "KEDA reads a whole number without a point");
    for quantity in ["500m", "5k"] {
        let error = read_manifests(&Source::new("object.yaml", scaled_object(&spec(quantity)))).unwrap_err().render();
        assert!(error.contains("a formula's `target` must be a plain number"), "{error}");
    }
}

#[test]
fn invalid_keda_triggers_are_rejected_with_help() {
    let told = |trigger: &str| {
        let spec = format!("  minReplicaCount: 1\n  triggers: [{trigger}]\n");
        read_manifests(&Source::new("object.yaml", scaled_object(&spec))).map(|_| ()).map_err(|error| error.render())
    };
    for old in ["", "metricType: Utilization, "] {
        let error = told(&format!("{{type: cpu, {old}metadata: {{type: Utilization, value: '60'}}}}")).unwrap_err();
        assert!(error.contains("has `type`, which KEDA refuses since 2.18"), "{error}");
        assert!(error.contains("write `metricType` beside the `type` of the trigger"), "{error}");
    }
    assert!(told("{type: cpu, metadata: {value: '60'}}").unwrap_err().contains("has no `metricType`"));
    let rabbit = |more: &str| told(&format!("{{type: rabbitmq, metadata: {{queueName: q, host: h{more}}}}}"));
    for fine in ["", ", queueLength: '5'", ", mode: QueueLength, value: '5'"] {
        assert_eq!(rabbit(fine), Ok(()));
    }
    assert!(rabbit(", value: '5'").unwrap_err().contains("has no `mode`"));
    assert!(rabbit(", mode: MessageRate").unwrap_err().contains("has no `value`"));
    assert!(rabbit(", queueLength: '5', mode: QueueLength").unwrap_err().contains("of which KEDA takes only one"));
}

#[test]
fn misspelt_keda_annotation_is_warned_about() {
    let warnings = |annotations: &str, topic: &str| {
        let spec =
            format!("  triggers: [{{type: kafka, metadata: {{bootstrapServers: b, consumerGroup: g, {topic}}}}}]\n");
        let object = scaled_object(&spec).replace(
            "metadata: {name: worker}",
            &format!("metadata: {{name: worker, annotations: {{{annotations}}}}}"),
        );
        let read = read_manifests(&Source::new("object.yaml", object)).unwrap();
        read.warnings.iter().map(|warning| warning.render()).collect::<Vec<_>>()
    };
    let fine = "autoscaling.keda.sh/paused: 'true', autoscaling.keda.sh/force-activation: 'false', team: shop";
    assert_eq!(warnings(fine, "topic: t"), [] as [String; 0]);
    let told = warnings("autoscaling.keda.sh/pausd: 'true'", "topicFromEnv: T");
    assert_eq!(told.len(), 2, "{told:?}");
    let told = told.join("\n");
    assert!(told.contains("KEDA knows no annotation `autoscaling.keda.sh/pausd`"), "{told}");
    assert!(told.contains("did you mean `autoscaling.keda.sh/paused`?"), "{told}");
    assert!(told.contains("`topic` of this `kafka` trigger is read from a container's environment"), "{told}");
}

#[test]
fn queue_name_from_environment_keeps_default_target() {
    for (trigger, last) in [
        ("{type: aws-sqs-queue, metadata: {queueURLFromEnv: URL, awsRegion: us-east-1}}", 8),
        ("{type: kafka, metadata: {bootstrapServersFromEnv: B, topicFromEnv: T, consumerGroupFromEnv: G}}", 4),
    ] {
        let spec = format!("  minReplicaCount: 1\n  triggers: [{trigger}]\n");
        let rest = "external_metrics: [{scaled_object: default/worker, values: [{at: 0s, value: 40}]}]\n";
        let outcome = run("10m", rest, &format!("{}{}", cluster(1), scaled_object(&spec)), &[]);
        assert_eq!(changes(&outcome).last().map(|change| change.3), Some(last), "{trigger}");
        let warnings = outcome.warnings.texts();
        assert!(warnings.iter().all(|text| !text.contains("without a target")), "{warnings:?}");
    }
}

#[test]
fn paused_scaled_object_sets_count_and_deletes_hpa() {
    let rest = format!(
        "{}\ntimeline: [{{at: 10m, manifests: [paused.yaml]}}, {{at: 20m, manifests: [again.yaml]}}]",
        told("{at: 0s, value: 20}")
    );
    let object = scaled_object(&format!("  minReplicaCount: 1\n{EXTERNAL}"));
    let paused = object.replace(
        "metadata: {name: worker}",
        "metadata: {name: worker, annotations: {autoscaling.keda.sh/paused-replicas: \"2\"}}",
    );
    let outcome =
        run("30m", &rest, &format!("{}{object}", cluster(1)), &[("paused.yaml", &paused), ("again.yaml", &object)]);
    let changes = changes(&outcome);
    let before: Vec<_> = changes.iter().filter(|change| change.0 < 600).map(|change| change.3).collect();
    assert_eq!(before, [4]);
    assert_eq!(changes.iter().filter(|c| (600..1_200).contains(&c.0)).map(|c| c.3).collect::<Vec<_>>(), [2]);
    assert_eq!(changes.last().map(|change| change.3), Some(4));
}

#[test]
fn a_paused_direction_stays_shut() {
    let rest = told("{at: 0s, value: 20}, {at: 5m, value: 0}");
    let object = scaled_object(&format!("  minReplicaCount: 1\n{EXTERNAL}")).replace(
        "metadata: {name: worker}",
        "metadata: {name: worker, annotations: {autoscaling.keda.sh/paused-scale-in: \"true\"}}",
    );
    let outcome = run("30m", &rest, &format!("{}{object}", cluster(1)), &[]);
    assert_eq!(changes(&outcome).iter().map(|change| change.3).collect::<Vec<_>>(), [4]);
}

#[test]
fn hpa_reads_explicit_external_and_object_metrics() {
    let metric = |source: &str| {
        format!(
            "---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {{name: h}}\nspec:\n  \
             scaleTargetRef: {{kind: Deployment, name: worker}}\n  maxReplicas: 10\n  metrics:\n  - {source}\n"
        )
    };
    let external = metric(
        "{type: External, external: {metric: {name: depth}, target: {type: AverageValue, averageValue: \"10\"}}}",
    );
    let object = metric(
        "{type: Object, object: {metric: {name: depth}, describedObject: {kind: Ingress, name: main}, \
         target: {type: Value, value: \"10\"}}}",
    );
    let rest = "external_metrics: [{metric: depth, values: [{at: 0s, value: 5}, {at: 10m, value: 45}]}]";
    for (hpa, last) in [(external, 5), (object, 10)] {
        let outcome = run("20m", rest, &format!("{}{hpa}", cluster(1)), &[]);
        assert!(outcome.warnings.iter().all(|warning| !warning.contains("cannot be read")), "{:?}", outcome.warnings);
        // As an average 45 over 10; as a whole the ratio 4.5 again and again, of as many replicas as are Ready.
        assert_eq!(changes(&outcome).last().map(|change| change.3), Some(last));
    }
}

#[test]
fn unserved_trigger_warns_and_fails() {
    let outcome = run("10m", "", &format!("{}{}", cluster(1), scaled_object(EXTERNAL)), &[]);
    assert_eq!(
        &*outcome.warnings[0],
        "ScaledObject default/worker: trigger s0-external always fails: `external_metrics` has no values of the \
         scaler queue:9090"
    );
    assert_eq!(changes(&outcome), []);
}

/// Errors of one ScaledObject after the other, whose `spec` below the target is each mistake.
#[test]
fn scaled_object_errors_show_their_place() {
    let cron = |fields: &str| format!("  triggers:\n  - type: cron\n    metadata: {{{fields}}}\n");
    let mistakes = [
        "  minReplicaCount: 5\n  maxReplicaCount: 3\n  triggers: [{type: redis, metadata: {listName: l}}]\n".to_owned(),
        "  idleReplicaCount: 2\n  minReplicaCount: 2\n  triggers: [{type: redis, metadata: {listName: l}}]\n".to_owned(),
        "  triggers: []\n".to_owned(),
        "  minReplicaCount: 1\n".to_owned(),
        "  triggers: [{type: cpu, metricType: Utilization, metadata: {value: \"60\"}}]\n".to_owned(),
        "  minReplicaCount: 1\n  triggers: [{type: cpu, metricType: Value, metadata: {value: \"60\"}}]\n".to_owned(),
        "  minReplicaCount: 1\n  fallback: {failureThreshold: 3, replicas: 6}\n  triggers: [{type: cpu, metricType: Utilization, metadata: {value: \"60\"}}]\n".to_owned(),
        "  fallback: {failureThreshold: 3, replicas: 6, behavior: never}\n  triggers: [{type: redis, metadata: {listName: l}}]\n".to_owned(),
        "  triggers: [{type: mysql, metadata: {queryValue: many}}]\n".to_owned(),
        "  triggers: [{type: prometheus, metadata: {query: up}}]\n".to_owned(),
        "  triggers: [{type: redis, metricType: Utilization, metadata: {listName: l}}]\n".to_owned(),
        "  triggers: [{type: redis, metadata: {listName: l, listLength: many}}]\n".to_owned(),
        "  triggers: [{type: redis, name: a, metadata: {listName: l}}, {type: redis, name: a, metadata: {listName: m}}]\n".to_owned(),
        cron("timezone: Asia/Calcutter, start: 0 8 * * *, end: 0 9 * * *, desiredReplicas: \"3\""),
        cron("timezone: UTC, start: 0 8 * *, end: 0 9 * * *, desiredReplicas: \"3\""),
        cron("timezone: UTC, start: 0 8 * * *, end: 0 25 * * *, desiredReplicas: \"3\""),
        cron("timezone: UTC, start: 0 8 30 2 *, end: 0 9 * * *, desiredReplicas: \"3\""),
        format!("{}    useCachedMetrics: true\n", cron("timezone: UTC, start: 0 8 * * *, end: 0 9 * * *, desiredReplicas: \"3\"")),
        "  triggers: [{type: kubernetes-workload, metadata: {podSelector: \"app of (x)\", value: \"1\"}}]\n".to_owned(),
        "  advanced: {scalingModifiers: {formula: \"a +\", target: \"2\"}}\n  triggers: [{type: redis, name: a, metadata: {listName: l}}]\n".to_owned(),
        "  advanced: {scalingModifiers: {formula: \"lists + 1\", target: \"2\"}}\n  triggers: [{type: redis, name: list, metadata: {listName: l}}]\n".to_owned(),
        "  advanced: {scalingModifiers: {formula: \"a\", target: \"0\"}}\n  triggers: [{type: redis, name: a, metadata: {listName: l}}]\n".to_owned(),
        "  pollingInterval: 0\n  triggers: [{type: redis, metadata: {listName: l}}]\n".to_owned(),
    ];
    let mut report = String::new();
    for mistake in mistakes {
        let error = read_manifests(&Source::new("object.yaml", scaled_object(&mistake))).unwrap_err().render();
        assert!(error.contains("help:") && error.contains("object.yaml:"), "{error}");
        report.push_str(&error);
        report.push('\n');
    }
    insta::assert_snapshot!("mistakes_in_a_scaled_object", report);
}

const LOAD: &str = "load:\n- {workload: worker, at: 5m, requests: {constant: 40}, service: {cpu_per_request: 1ms, concurrency: 50}}\n\
    - {workload: worker, at: 15m, requests: {constant: 0}, service: {cpu_per_request: 1ms, concurrency: 50}}\n";

fn prometheus(query: &str) -> String {
    scaled_object(&format!(
        "  minReplicaCount: 1\n  triggers:\n  - {{type: prometheus, metadata: {{serverAddress: p, threshold: \"5\", query: '{query}'}}}}\n"
    ))
}

#[test]
fn rate_query_follows_load_but_counter_does_not() {
    let rest = format!("{LOAD}prometheus: {{scrape_interval: 15s, istio: [{{workload: worker}}]}}");
    let rate = prometheus("sum(rate(istio_requests_total{destination_app=\"worker\"}[1m]))");
    let outcome = run("40m", &rest, &format!("{}{rate}", cluster(1)), &[]);
    let steps = changes(&outcome);
    // While new pods' series begin, the extended rates sum to more than there is; then it is 40 a second over 5.
    assert_eq!(steps.iter().rfind(|change| change.0 < 900).map(|change| change.3), Some(8), "{steps:?}");
    assert_eq!(steps.last().map(|change| change.3), Some(1), "{steps:?}");
    assert!(outcome.warnings.is_empty(), "{:?}", outcome.warnings);
    let raw = prometheus("sum(istio_requests_total)");
    let outcome = run("40m", &rest, &format!("{}{raw}", cluster(1)), &[]);
    assert_eq!(changes(&outcome).last().map(|change| change.3), Some(100), "KEDA's default maximum");
    assert_eq!(outcome.warnings.len(), 1, "{:?}", outcome.warnings);
}

#[test]
fn both_reporters_count_the_same_requests() {
    let rest = format!(
        "{LOAD}prometheus: {{scrape_interval: 15s, istio: [{{workload: worker}}, {{workload: worker, reporter: source}}]}}"
    );
    let sum = |matcher: &str| prometheus(&format!("sum(rate(istio_requests_total{{{matcher}}}[1m]))"));
    let settled = |matcher| {
        let outcome = run("15m", &rest, &format!("{}{}", cluster(1), sum(matcher)), &[]);
        changes(&outcome).last().map(|change| change.3)
    };
    assert_eq!(settled("reporter=\"destination\""), Some(8));
    assert_eq!(settled("reporter=\"source\""), Some(8));
    // 80 over 5; the tolerance keeps one more where growing pods' rates were extended beyond what there was.
    let twice = settled("destination_workload=\"worker\"");
    assert!(twice.is_some_and(|replicas| (16..=17).contains(&replicas)), "without a choice of reporter: {twice:?}");
}

#[test]
fn prometheus_outage_fails_trigger_and_keeps_replicas() {
    let rest = format!(
        "{LOAD}prometheus: {{scrape_interval: 15s, istio: [{{workload: worker}}], outages: [{{at: 14m, for: 20m}}]}}"
    );
    let rate = prometheus("sum(rate(istio_requests_total[1m]))");
    let outcome = run("50m", &rest, &format!("{}{rate}", cluster(1)), &[]);
    let steps = changes(&outcome);
    assert!(steps.iter().all(|change| !(840..2_040).contains(&change.0)), "{steps:?}");
    assert_eq!(steps.last().map(|change| change.3), Some(1), "{steps:?}");
    assert!(outcome.record.events.iter().any(|event| event.kind == EventKind::TriggerFailed));
}

#[test]
fn hpa_reads_pod_metric_after_adapter_relist() {
    let hpa = "---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: h}\nspec:\n  \
        scaleTargetRef: {kind: Deployment, name: worker}\n  maxReplicas: 10\n  metrics:\n  - {type: Pods, pods: {metric: \
        {name: rps}, target: {type: AverageValue, averageValue: \"10\"}}}\n";
    let rest = format!(
        "{LOAD}prometheus: {{scrape_interval: 15s, relist_interval: 4m, series: [{{name: http_requests_total, workload: worker, \
         shows: requests}}], adapter: [{{metric: rps, query: 'sum by (namespace, pod) (rate(http_requests_total[1m]))'}}]}}"
    );
    let outcome = run("20m", &rest, &format!("{}{hpa}", cluster(1)), &[]);
    let steps = changes(&outcome);
    assert_eq!(steps.iter().map(|change| change.3).max(), Some(4), "40 a second over 10: {steps:?}");
    assert!((300..=300 + 255 + 60).contains(&steps[0].0), "{steps:?}");
    assert!(outcome.warnings.iter().all(|warning| !warning.contains("cannot be read")), "{:?}", outcome.warnings);
    let failure = outcome.record.events.iter().find(|event| event.kind == EventKind::RescaleFailed).unwrap();
    assert!(failure.message.contains("the adapter does not know the metric yet"), "{}", failure.message);
}

#[test]
fn a_query_that_finds_nothing_is_warned_of() {
    let rest = "prometheus: {istio: [{workload: worker}]}";
    let outcome = run("2m", rest, &format!("{}{}", cluster(1), prometheus("rate(http_total[1m])")), &[]);
    assert_eq!(
        outcome.warnings.texts(),
        [
            "ScaledObject default/worker: the query of s0-prometheus uses series `http_total`, which is not under `prometheus` (available: istio_requests_total)"
        ]
    );
    let outcome = run("2m", "", &format!("{}{}", cluster(1), prometheus("rate(http_total[1m])")), &[]);
    assert!(outcome.warnings[0].ends_with("always fails: the scenario has no `prometheus`"), "{:?}", outcome.warnings);
}

#[test]
fn unsupported_query_warns_and_unparsable_query_fails() {
    let mut report = String::new();
    for query in ["histogram_quantile(0.9, a)", "sum(rate(a[5m])", "a{b=c}", "topk(3, a)"] {
        let read = read_manifests(&Source::new("object.yaml", prometheus(query))).unwrap();
        assert_eq!(read.warnings.len(), 1, "{query}");
        report += &format!("{}\n", read.warnings[0].render());
    }
    report += &read_manifests(&Source::new("object.yaml", prometheus("scalar(a)"))).unwrap_err().render();
    insta::assert_snapshot!("mistakes_in_a_query", report);
}

#[test]
fn unknown_trigger_type_warns_with_suggestion() {
    let mut report = String::new();
    for kind in ["promethues", "our-queue"] {
        let trigger = format!("  triggers: [{{type: {kind}, metadata: {{threshold: '2'}}}}]\n");
        let read = read_manifests(&Source::new("object.yaml", scaled_object(&trigger))).unwrap();
        report += &format!("{}\n", read.warnings[0].render());
    }
    insta::assert_snapshot!("types_that_keda_does_not_know", report);
}

#[test]
fn ignored_trigger_fields_are_warned_about() {
    let trigger = "  triggers:\n  - {type: kafka, metadata: {bootstrapServers: b, consumerGroup: g, topic: t, lagTreshold: \"5\", \
        partitionLimitation: 1-3, passwordFromEnv: P}}\n  - {type: external, metadata: {scalerAddress: s, targetValue: \"5\", anything: goes}}\n";
    let objects = read_manifests(&Source::new("object.yaml", scaled_object(trigger))).unwrap();
    let warnings: Vec<String> = objects.warnings.iter().map(|warning| warning.render()).collect();
    insta::assert_snapshot!("left_out_of_a_trigger", warnings.join("\n"));
}

#[test]
fn cpu_trigger_uses_metrics_server() {
    let load = "load: [{workload: worker, at: 5m, requests: {constant: 40}, service: {cpu_per_request: 10ms, concurrency: 50}}]";
    let spec = "  minReplicaCount: 1\n  triggers: [{type: cpu, metricType: Utilization, metadata: {value: \"50\"}}]\n";
    let outcome = run("30m", load, &format!("{}{}", cluster(1), scaled_object(spec)), &[]);
    // 400m of CPU, 100m requested by each pod: eight pods at 50 %.
    assert_eq!(changes(&outcome).last().map(|change| change.3), Some(8), "{:?}", changes(&outcome));
    assert_eq!(outcome.record.metrics[0].name, "cpu");
}

#[test]
fn cached_values_are_those_of_the_last_poll() {
    let rest = told("{at: 0s, value: 5}, {at: 10m, value: 30}");
    let spec = |cached: &str| {
        format!(
            "  minReplicaCount: 1\n  pollingInterval: 300\n  triggers:\n  - {{type: external, name: told, {cached}metadata: \
             {{scalerAddress: \"queue:9090\", targetValue: \"5\"}}}}\n"
        )
    };
    let first = |cached: &str| {
        let outcome = run("30m", &rest, &format!("{}{}", cluster(1), scaled_object(&spec(cached))), &[]);
        changes(&outcome)[0].0
    };
    let (asked, cached) = (first(""), first("useCachedMetrics: true, "));
    assert!((600..=615).contains(&asked), "the autoscaler asks by itself: {asked}");
    assert!((600..=915).contains(&cached) && cached > asked + 15, "it waits for the next poll: {cached}");
}

#[test]
fn hpa_1_37_scales_to_zero_and_back() {
    let hpa = "---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: h}\nspec:\n  \
        scaleTargetRef: {kind: Deployment, name: worker}\n  minReplicas: 0\n  maxReplicas: 10\n  metrics:\n  - {type: External, \
        external: {metric: {name: depth}, target: {type: AverageValue, averageValue: \"10\"}}}\n";
    let rest = "versions: {kubernetes: \"1.37\"}\ntimeline: [{at: 1m, manifests: [hpa.yaml]}]\nexternal_metrics: [{metric: depth, values: [{at: 0s, value: 25}, {at: 5m, value: 0}, \
        {at: 20m, value: 15}]}]";
    let outcome = run("30m", rest, &cluster(1), &[("hpa.yaml", hpa)]);
    let steps = changes(&outcome);
    assert_eq!(
        steps.iter().map(|change| (change.2, change.3)).collect::<Vec<_>>(),
        [(1, 3), (3, 0), (0, 2)],
        "{steps:?}"
    );
    assert_eq!(steps[0].0, 60, "queued at once");
    let earlier = run("30m", &rest.replace("1.37", "1.33"), &cluster(1), &[("hpa.yaml", hpa)]);
    assert_eq!(changes(&earlier)[0].0, 75, "after one period");
    let told = |outcome: &Outcome| {
        outcome.warnings.iter().any(|text| text.contains("states `minReplicas: 0`, which the Kubernetes"))
    };
    assert_eq!((told(&outcome), told(&earlier)), (false, true), "{:?}", earlier.warnings);
}

#[test]
fn conflicting_hpas_warn_and_do_not_scale() {
    let hpa = "---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: h}\nspec:\n  \
        scaleTargetRef: {kind: Deployment, name: worker}\n  maxReplicas: 10\n";
    let rest = told("{at: 0s, value: 30}");
    let objects = format!("{}{hpa}{}", cluster(2), scaled_object(&format!("  minReplicaCount: 1\n{EXTERNAL}")));
    let outcome = run("10m", &rest, &objects, &[]);
    assert_eq!(changes(&outcome), []);
    let failure = outcome.record.events.iter().find(|event| event.kind == EventKind::RescaleFailed).unwrap();
    assert!(failure.message.contains("more than one autoscaler"), "{}", failure.message);
}

#[test]
fn external_trigger_without_target_is_warned_about() {
    let warned = |metadata: &str| {
        let trigger =
            format!("  triggers:\n  - {{type: external, metadata: {{scalerAddress: \"queue:9090\"{metadata}}}}}\n");
        let objects = read_manifests(&Source::new("object.yaml", scaled_object(&trigger))).unwrap();
        objects.warnings.iter().map(|warning| warning.render()).collect::<String>()
    };
    assert_eq!(warned(", targetValue: \"5\", threshold: \"7\""), "");
    let message = "external trigger without `targetValue`: assuming a target of 1";
    let typed = warned(", targetvalue: \"5\"");
    assert!(typed.contains(message) && typed.contains("did you mean `targetValue` by `targetvalue`?"), "{typed}");
    let other = warned(", threshold: \"5\"");
    assert!(other.contains(message) && other.contains("write `targetValue` into the metadata"), "{other}");
}
