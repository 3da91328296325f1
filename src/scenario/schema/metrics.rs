//! Where metrics come from: Prometheus, queues, values that are stated.

use super::Value::{Duration, File, Free, Integer, List, Map, Quantity, Scalar, Text, Truth, Words, Workload};
use super::load;

section! {
    PROMETHEUS: "`prometheus`", "`prometheus`";
    "Without this section there is no Prometheus. [scaling.md](scaling.md#prometheus) says what queries may contain.";
    "prometheus:
  scrape_interval: 30s
  istio: [{ workload: shop/web, reporter: destination, labels: { mesh: one } }]
  series: [{ name: http_requests_total, workload: shop/worker, shows: requests, labels: { job: shop } }]
  adapter: [{ metric: rps, query: 'sum by (namespace, pod) (rate(http_requests_total[1m]))' }]
  relist_interval: 10m
  outages: [{ at: 2h, for: 10m }]
";
    {
        "scrape_interval" otherwise("`1m`, Prometheus's own"): Duration, "How often pods are scraped that no PodMonitor or ServiceMonitor selects; at least 1s.";
        "istio" otherwise("none"): List(&Map(&ISTIO)), "Workloads whose requests `istio_requests_total` counts.";
        "series" otherwise("none"): List(&Map(&SERIES)), "Series of your own.";
        "adapter" otherwise("none"): List(&Map(&RULE)), "What prometheus-adapter serves to HorizontalPodAutoscalers.";
        "relist_interval" default("10m"): Duration, "How often the adapter looks which series exist; at least 1s.";
        "outages" otherwise("none"): List(&Map(&OUTAGE)), "When Prometheus neither scrapes nor answers.";
    }
}

section! {
    ISTIO: "an entry of `istio`", "`prometheus.istio[]`";
    "";
    "";
    {
        "workload" required: Workload, "The workload.";
        "reporter" default("destination"): Words(&["destination", "source"]),
            "Who counts: the sidecars of its pods, or a gateway that outlives them.";
        "labels" otherwise("Istio's own"): Free("label", &Scalar), "More labels.";
    }
}

section! {
    SERIES: "an entry of `series`", "`prometheus.series[]`";
    "";
    "";
    {
        "name" required: Text("name of a series"), "Its name.";
        "workload" required: Workload, "The workload that it tells of.";
        "shows" required: Words(&["requests", "requests_in_flight", "replicas_ready", "replicas_desired"]),
            "What it shows. The first two are of each pod, the others of the whole.";
        "labels" otherwise("`namespace` and `pod`"): Free("label", &Scalar), "More labels.";
    }
}

section! {
    RULE: "an entry of `adapter`", "`prometheus.adapter[]`";
    "";
    "";
    {
        "metric" required: Text("metric"), "The name by which an autoscaler asks for it.";
        "query" required: Text("PromQL"), "Its elements carry `namespace` and `pod`, or the object's kind.";
    }
}

section! {
    OUTAGE: "an outage", "`prometheus.outages[]`";
    "";
    "";
    {
        "at" required: Duration, "When it begins.";
        "for" required: Duration, "How long it lasts.";
    }
}

section! {
    QUEUE: "a queue", "`queues[]`";
    "KEDA's triggers find a queue by its name; [scaling.md](scaling.md#queues) says by which key.";
    "queues:
  - name: orders
    kind: kafka
    partitions: 12
    consumer_group: billing
    workload: shop/worker
    time_per_message: 2s
    cpu_per_message: 300ms
    concurrency: 4
    waiting: 500
    messages: { diurnal: { night: 2, peak: 40 } }
  - { name: invoices, kind: sqs, workload: batch/invoices, time_per_message: 1m, messages_per_job: 5, messages: { constant: 0.1 } }
";
    {
        "name" required: Text("name"), "The SQS queue, Kafka topic, RabbitMQ queue or Redis list.";
        "kind" required: Words(&["sqs", "kafka", "rabbitmq", "redis"]), "What it is.";
        "partitions" otherwise("required for Kafka"): Integer(1, 100_000), "Partitions of the topic; Kafka only.";
        "consumer_group" otherwise("required for Kafka"): Text("consumer group"), "The group of the workers; Kafka only.";
        "workload" required: Workload, "A Deployment whose Ready pods take messages, or a ScaledJob.";
        "time_per_message" required: Duration, "How long a worker is busy with a message; at least 1ms.";
        "cpu_per_message" default("0s"): Duration, "CPU time of it.";
        "concurrency" default("1"): Integer(1, 1_000_000), "Messages that a pod works on at a time.";
        "messages_per_job" default("1"): Integer(1, 1_000_000), "ScaledJobs only: messages that a pod takes before it ends.";
        "waiting" default("0"): Integer(0, 1_000_000_000_000), "Messages that wait at the start.";
        "messages" otherwise("none arrive"): Map(&load::REQUESTS),
            "Arrivals, in the forms of [`requests`](#requests-how-they-arrive) but `closed_loop`; times count from the start of the run.";
    }
}

section! {
    METRICS_SERVER: "`metrics_server`", "`metrics_server`";
    "metrics-server is always there: it tells autoscalers what pods use of CPU, and of memory where a load says what requests need.";
    "metrics_server:
  resolution: 60s
";
    {
        "resolution" default("15s"): Duration,
            "`--metric-resolution`: how often all nodes are read; from 10s to 10m. `15s` is that of the published manifests and of the \
             EKS add-on, `60s` that of minikube's.";
    }
}

section! {
    PHASES: "`phases`", "`phases`: when loops come round";
    "Controllers have run since before the start of the run, so their loops come round for the first time at some instant within their \
     first period: drawn from the seed unless stated here, for example to replay what a cluster did. Counted from the start of the \
     run. Objects that come later do not go by it: KEDA polls a new one at once, and a new HorizontalPodAutoscaler is first looked at \
     15s after it was made, from Kubernetes 1.37 on at once.";
    "phases:
  metrics_server: 12s
  replica_autoscalers: 9s
  keda: 25s
";
    {
        "metrics_server" otherwise("drawn from the seed"): Duration,
            "The first tick at which metrics-server reads the nodes, then every `resolution`; shorter than that.";
        "replica_autoscalers" otherwise("drawn from the seed"): Duration,
            "The first look at all HorizontalPodAutoscalers that exist at the start, those of ScaledObjects among them, then every 15s \
             and some milliseconds; less than 15s.";
        "keda" otherwise("drawn from the seed, for each object"): Duration,
            "The first poll of all ScaledObjects and ScaledJobs that exist at the start, then every `pollingInterval`.";
    }
}

section! {
    EXTERNAL_METRIC: "an external metric", "`external_metrics[]`: values that you state";
    "For a scaler (and perhaps one of its triggers), for a metric, or for what the pods of a workload use of a resource: then each of \
     them uses so many percent of what it requests, whatever loads and queues say, and autoscalers read just that. Recorded \
     utilization replays what an autoscaler did.";
    "external_metrics:
  - scaler: orders-scaler.shop:9090
    trigger: backlog
    active_above: 0
    values: [{ at: 0s, value: 3 }, { at: 10m, value: 50 }, { at: 20m, fails: true }]
  - { metric: queue_depth, values: [{ at: 0s, value: 12 }] }
  - { workload: shop/web, resource: cpu, csv: utilization.csv }
";
    one_of: &["values", "csv"];
    {
        "scaler" otherwise("`metric`"): Text("scalerAddress"), "The address of a KEDA trigger of the type `external` or `external-push`, whose metadata has the target as `targetValue`.";
        "trigger" otherwise("all of the scaler's"): Text("trigger"), "The trigger's name, where one scaler serves several.";
        "metric" otherwise("`scaler`"): Text("metric"), "What a HorizontalPodAutoscaler reads as External or Object.";
        "workload" otherwise("`scaler` or `metric`"): Workload, "Whose pods use what is stated; values are percent of their requests.";
        "resource" default("cpu"): Words(&["cpu", "memory"]), "What they use, with `workload` only.";
        "active_above" default("0"): Quantity, "The trigger is active above this.";
        "values" otherwise("`csv`"): List(&Map(&EXTERNAL_VALUE)), "Values in order of time, at least one.";
        "csv" otherwise("`values`"): File,
            "A file with the columns `t_seconds`, counted from the start of the run and rising, and `value`; where that is empty, reading fails.";
    }
}

section! {
    EXTERNAL_VALUE: "a value", "`external_metrics[].values[]`";
    "A value holds until the next; before the first, reading fails.";
    "";
    one_of: &["value", "fails"];
    {
        "at" required: Duration, "From when on, counted from the start of the run.";
        "value" otherwise("-"): Quantity, "What is read.";
        "fails" otherwise("-"): Truth, "`true`: reading it is an error, as for a fallback.";
    }
}
