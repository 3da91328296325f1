//! Where metrics come from: Prometheus, queues, values that are stated.

use super::Form;
use super::kind::{File, Moment, Name, Placed, Quantity, Text, Whole, kind, words};
use super::load::RequestsKeys;
use super::names::{AdapterQuery, SeriesName, Serving};
use crate::definition::{
    AdapterRule, MetricsServer, OpenRequests, Outage, Phases, PrometheusSettings, QueueSpec, SeriesKind, SeriesOwner,
    SeriesSpec,
};
use crate::domain::external_metrics::{ExternalMetric, ExternalValue};
use crate::domain::keda::Scaler;
use crate::domain::selector_text::parse_selector;
use crate::domain::workload::ObjectName;
use crate::domain::{LabelSelector, Labels, ResourceName, SimDuration};
use crate::file::{external_metrics, load, queues};

section! {
    /// Without this section there is no Prometheus. [scaling.md](scaling.md#prometheus) says what queries may
    /// contain.
    PROMETHEUS: "`prometheus`", "`prometheus`";
    example "prometheus:
  scrape_interval: 30s
  istio: [{ workload: shop/web, reporter: destination, labels: { mesh: one } }]
  series: [{ name: http_requests_total, workload: shop/worker, shows: requests, labels: { job: shop } }]
  adapter: [{ metric: rps, query: 'sum by (namespace, pod) (rate(http_requests_total[1m]))' }]
  relist_interval: 10m
  outages: [{ at: 2h, for: 10m }]
";
    impl PrometheusSettings {
        /// How often pods are scraped that no PodMonitor or ServiceMonitor selects; at least 1s.
        scrape_interval: Interval, or "`1m`, Prometheus's own";
        /// Workloads whose requests `istio_requests_total` counts.
        istio: Vec<Istio> = Vec::new(), or "none";
        /// Series of your own.
        series: Vec<Series> = Vec::new(), or "none";
        /// What prometheus-adapter serves to HorizontalPodAutoscalers.
        adapter: Adapter = Vec::new(), or "none";
        /// How often the adapter looks which series exist; at least 1s.
        relist_interval: Interval = SimDuration::from_secs(600);
        /// When Prometheus neither scrapes nor answers.
        outages: Vec<OutageKeys> = Vec::new(), or "none";
    }
}

section! {
    ISTIO: "an entry of `istio`", "`prometheus.istio[]`";
    becomes SeriesSpec, |_, _, own: Self| {
        Ok(SeriesSpec {
            name: "istio_requests_total".to_owned(),
            workload: own.workload,
            kind: SeriesKind::IstioRequests,
            owner: own.reporter,
            labels: own.labels,
        })
    };
    struct Istio {
        /// The workload.
        workload: Serving;
        /// Who counts: the sidecars of its pods, or a gateway that outlives them.
        reporter: Reporter = SeriesOwner::Pods;
        /// More labels.
        labels["label"]: Labels = Labels::new(), or "Istio's own";
    }
}

section! {
    SERIES: "an entry of `series`", "`prometheus.series[]`";
    becomes SeriesSpec, |_, _, own: Self| {
        let Self { name, workload, shows: kind, labels } = own;
        let owner = match kind {
            SeriesKind::ReplicasReady | SeriesKind::ReplicasDesired => SeriesOwner::Gateway,
            SeriesKind::IstioRequests | SeriesKind::Requests | SeriesKind::RequestsInFlight => SeriesOwner::Pods,
        };
        Ok(SeriesSpec { name, workload, kind, owner, labels })
    };
    struct Series {
        /// Its name.
        name["name of a series"]: SeriesName;
        /// The workload that it tells of.
        workload: Serving;
        /// What it shows. The first two are of each pod, the others of the whole.
        shows: Shows;
        /// More labels.
        labels["label"]: Labels = Labels::new(), or "`namespace` and `pod`";
    }
}

section! {
    RULE: "an entry of `adapter`", "`prometheus.adapter[]`";
    impl AdapterRule {
        /// The name by which an autoscaler asks for it.
        metric["metric"]: Name;
        /// Its elements carry `namespace` and `pod`, or the object's kind.
        query["PromQL"]: AdapterQuery;
    }
}

section! {
    OUTAGE: "an outage", "`prometheus.outages[]`";
    becomes Outage, |_, _, own: Self| Ok(Outage { from: own.at, until: own.at + own.length });
    struct OutageKeys {
        /// When it begins.
        at: Moment;
        /// How long it lasts.
        "for" as length: SimDuration;
    }
}

section! {
    /// KEDA's triggers find a queue by its name; [scaling.md](scaling.md#queues) says by which key.
    QUEUE: "a queue", "`queues[]`";
    example "queues:
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
    becomes QueueSpec, queues::queue;
    struct QueueKeys {
        /// The SQS queue, Kafka topic, RabbitMQ queue or Redis list.
        name["name"]: Text;
        /// What it is.
        kind: QueueWord;
        /// Partitions of the topic; Kafka only.
        partitions: Whole<1, 100_000>, or "required for Kafka";
        /// The group of the workers; Kafka only.
        consumer_group["consumer group"]: Text, or "required for Kafka";
        /// A Deployment whose Ready pods take messages, or a ScaledJob.
        workload: Placed<ObjectName>;
        /// How long a worker is busy with a message; at least 1ms.
        time_per_message: MessageTime;
        /// CPU time of it.
        cpu_per_message: SimDuration = SimDuration::ZERO;
        /// Messages that a pod works on at a time.
        concurrency: Whole<1, 1_000_000> = 1;
        /// ScaledJobs only: messages that a pod takes before it ends.
        messages_per_job: Whole<1, 1_000_000> = 1;
        /// Messages that wait at the start.
        waiting: Whole<0, 1_000_000_000_000, u64> = 0;
        /// Arrivals, in the forms of [`requests`](#requests-how-they-arrive) but `closed_loop`; times count from the
        /// start of the run.
        messages: Messages, or "none arrive";
    }
}

section! {
    /// metrics-server is always there: it tells autoscalers what pods use of CPU, and of memory where a load says
    /// what requests need.
    METRICS_SERVER: "`metrics_server`", "`metrics_server`";
    example "metrics_server:
  resolution: 60s
";
    impl MetricsServer {
        /// `--metric-resolution`: how often all nodes are read; from 10s to 10m. `15s` is that of the published
        /// manifests and of the EKS add-on, `60s` that of minikube's.
        resolution: Resolution = MetricsServer::PUBLISHED.resolution;
    }
}

section! {
    /// Controllers have run since before the start of the run, so their loops come round for the first time at some
    /// instant within their first period: drawn from the seed unless stated here, for example to replay what a
    /// cluster did. Counted from the start of the run. Objects that come later do not go by it: KEDA polls a new one
    /// at once, and a new HorizontalPodAutoscaler is first looked at 15s after it was made, from Kubernetes 1.37 on
    /// at once.
    PHASES: "`phases`", "`phases`: when loops come round";
    example "phases:
  metrics_server: 12s
  replica_autoscalers: 9s
  keda: 25s
  disruption: 4s
  garbage_collection: 1m
";
    impl Phases {
        /// The first tick at which metrics-server reads the nodes, then every `resolution`; shorter than that.
        metrics_server: SimDuration, or "drawn from the seed";
        /// The first look at all HorizontalPodAutoscalers that exist at the start, those of ScaledObjects among them,
        /// then every 15s and some milliseconds; less than 15s.
        replica_autoscalers: SimDuration, or "drawn from the seed";
        /// The first poll of all ScaledObjects and ScaledJobs that exist at the start, then every `pollingInterval`.
        keda: SimDuration, or "drawn from the seed, for each object";
        /// The first pass of Karpenter's disruption loop, then ten seconds after each pass that found nothing; less than 10s. Of
        /// releases before v0.31 the first look of consolidation.
        disruption: SimDuration, or "drawn from the seed";
        /// Karpenter's first search for NodeClaims whose instance is gone, then every two minutes; less than 2m.
        garbage_collection: SimDuration, or "drawn from the seed";
    }
}

section! {
    /// For what KEDA scales or for a scaler (and perhaps one trigger), for a metric, or for what the pods of a workload use of a
    /// resource: then each of them uses so many percent of what it requests, whatever loads and queues say, and
    /// autoscalers read just that. Recorded utilization replays what an autoscaler did. KEDA knows some seventy
    /// types of triggers; those that no model serves (a database, a cloud's metrics) scale nothing until their values
    /// stand here.
    EXTERNAL_METRIC: "an external metric", "`external_metrics[]`: values that you state";
    example "external_metrics:
  - scaler: orders-scaler.shop:9090
    trigger: backlog
    active_above: 0
    values: [{ at: 0s, value: 3 }, { at: 10m, value: 50 }, { at: 20m, fails: true }]
  - { scaled_object: shop/orders, trigger: s1, values: [{ at: 0s, value: 7 }] }
  - { metric: queue_depth, selector: queue=orders, values: [{ at: 0s, value: 3 }] }
  - { metric: requests_per_second, object: shop/main, values: [{ at: 0s, value: 90 }] }
  - { workload: shop/web, resource: cpu, csv: utilization.csv }
";
    becomes ExternalMetric, external_metrics::metric;
    struct ExternalMetricKeys: {
        /// The address of a KEDA trigger of the type `external` or `external-push`, whose metadata has the target as
        /// `targetValue`.
        scaler["scalerAddress"]: Text, or "`metric`";
        /// A ScaledObject or ScaledJob, whose triggers of any type read what is stated; the targets are those of their
        /// metadata.
        scaled_object: Placed<ObjectName>, or "`scaler`";
        /// The trigger's name, or `s0`, `s1` … by its place in its object: that trigger alone, whatever else would serve it.
        trigger["trigger"]: Name, or "all of the scaler's, or of the object's those that nothing else serves";
        /// What a HorizontalPodAutoscaler reads as External or Object.
        metric["metric"]: Name, or "`scaler`";
        /// Of the metric what autoscalers read that ask for it with this selector, as `kubectl` takes it: `queue=orders`.
        selector["label selector"]: Selector, or "whatever nothing else states";
        /// Of the metric what is told of this object, whatever its kind.
        object: Placed<ObjectName>, or "whatever nothing else states";
        /// Whose pods use what is stated; values are percent of their requests.
        workload: Placed<ObjectName>, or "`scaler` or `metric`";
        /// What they use, with `workload` only.
        resource: Resource, over ResourceName::CPU;
        /// The trigger is active above this; one with an activation value in its metadata above that, too.
        active_above: Quantity = 0.0;
    } one values: Vec<ExternalValue>, external_metrics::no_values {
        /// Values in order of time, at least one.
        values: Values;
        /// A file with the columns `t_seconds`, counted from the start of the run and rising, and `value`; where that
        /// is empty, reading fails.
        csv: Recorded;
    }
}

section! {
    /// A value holds until the next; before the first, reading fails.
    EXTERNAL_VALUE: "a value", "`external_metrics[].values[]`";
    impl ExternalValue: {
        /// From when on, counted from the start of the run.
        at: Moment;
    } one value: Option<f64>, external_metrics::no_value {
        /// What is read.
        value: Works;
        /// `true`: reading it is an error, as for a fallback.
        fails: Fails;
    }
}

kind! {
    /// A time between two looks, at least a second.
    Interval: SimDuration, |reading, node, what, interval| {
        if interval >= SimDuration::from_secs(1) {
            return Ok(interval);
        }
        let error = reading.error(node.at, format!("`{what}` is {interval}"));
        Err(error.because("shorter than a second").help("write at least `1s`"))
    }
}

words! {
    /// Who counts requests for Istio.
    Reporter: SeriesOwner, "destination" => SeriesOwner::Pods, "source" => SeriesOwner::Gateway
}

words! {
    /// What a series shows.
    Shows: SeriesKind,
    "requests" => SeriesKind::Requests,
    "requests_in_flight" => SeriesKind::RequestsInFlight,
    "replicas_ready" => SeriesKind::ReplicasReady,
    "replicas_desired" => SeriesKind::ReplicasDesired,
}

kind! {
    /// What a queue is: whatever a scaler of KEDA reads one of.
    QueueWord: &'static str = Form::Words(Scaler::queues().collect()), |reading, node, what| {
        let words: Vec<_> = Scaler::queues().map(|word| (word, word)).collect();
        reading.reader.choice(node, what, &words)
    }
}

words! {
    /// What is stated of pods.
    Resource: ResourceName, "cpu" => ResourceName::CPU, "memory" => ResourceName::MEMORY
}

kind! {
    /// Rules of the adapter, each for a metric of its own.
    Adapter: Vec<AdapterRule> => Vec<AdapterRule>, |reading, node, _, rules| {
        let Some(place) = second_of(&rules, |one, other| one.metric == other.metric) else { return Ok(rules) };
        Err(reading
            .error(node.items()[place].at, format!("two rules of the adapter serve `{}`", rules[place].metric))
            .because("the second one")
            .help("an autoscaler could not tell them apart; give one another name"))
    }
}

kind! {
    /// How long a message takes.
    MessageTime: SimDuration, |reading, node, _, time| {
        if time >= SimDuration::from_millis(1) {
            return Ok(time);
        }
        Err(reading
            .error(node.at, "a message that takes no time never waits")
            .because("shorter than a millisecond")
            .help("write the time that a worker spends on one message, for example `2s`"))
    }
}

kind! {
    /// The arrivals of messages.
    Messages: RequestsKeys => OpenRequests, |reading, node, _, _| load::messages(reading, node)
}

kind! {
    /// Queues, each of its own name.
    Queues: Vec<QueueKeys> => Vec<QueueSpec>, |reading, node, _, queues| {
        let same = |one: &QueueSpec, other: &QueueSpec| one.name == other.name && one.kind == other.kind;
        let Some(place) = second_of(&queues, same) else { return Ok(queues) };
        Err(reading
            .error(node.items()[place].at, format!("two queues of one kind are called `{}`", queues[place].name))
            .because("the second one")
            .help("give each its own name: triggers find a queue by it"))
    }
}

kind! {
    /// How often metrics-server may read nodes.
    Resolution: SimDuration, |reading, node, _, resolution| {
        let (shortest, longest) = (SimDuration::from_secs(10), SimDuration::from_secs(600));
        if (shortest..=longest).contains(&resolution) {
            return Ok(resolution);
        }
        Err(reading
            .error(node.at, format!("metrics-server does not read nodes every {resolution}"))
            .because(if resolution < shortest { "shorter than 10s" } else { "longer than 10m" })
            .help("write a time from 10s to 10m, for example `15s`"))
    }
}

kind! {
    /// External metrics, each of its own subject.
    ExternalMetrics: Vec<ExternalMetricKeys> => Vec<ExternalMetric>, |reading, node, _, metrics| {
        let Some(place) = second_of(&metrics, |one, other| one.subject == other.subject) else { return Ok(metrics) };
        Err(reading
            .error(node.items()[place].at, "two external metrics are of the same scaler, metric or resource")
            .because("the second one")
            .help("put all its values into one entry, in order of time"))
    }
}

kind! {
    /// A label selector in one line.
    Selector: Text => LabelSelector, |reading, node, _, text| {
        parse_selector(&text).map_err(|error| {
            reading
                .error(node.at, format!("this is no label selector: {error}"))
                .because("not read")
                .help("write for example `queue=orders,tier in (back, front)`")
        })
    }
}

kind! {
    /// Values in order of time.
    Values: Vec<ExternalValue> => Vec<ExternalValue>, |reading, node, _, values| {
        if values.is_empty() {
            return Err(reading
                .error(node.at, "there is no value")
                .because("an empty list")
                .help("write for example `values: [{ at: 0s, value: 25 }]`"));
        }
        if let Some(place) = values.windows(2).position(|pair| pair[0].at >= pair[1].at) {
            let at = node.items()[place + 1].get("at").map_or(node.at, |at| at.at);
            return Err(reading
                .error(at, "values come in order of time")
                .because("not after the value before")
                .help("sort them; `at` counts from the start of the run"));
        }
        Ok(values)
    }
}

kind! {
    /// A file of values.
    Recorded: File => Vec<ExternalValue>, |reading, node, _, name| {
        let (bytes, shown) = reading.table(node, &name)?;
        external_metrics::of_rows(&bytes, &shown)
    }
}

kind! {
    /// What is read.
    Works: Quantity => Option<f64>, |_, _, _, value| Ok(Some(value))
}

kind! {
    /// Whether a reading fails.
    Fails: bool => Option<f64>, |reading, node, _, fails| {
        if fails { Ok(None) } else { Err(external_metrics::without_value(reading, node.at)) }
    }
}

/// The place of the first entry that is the same as one before it.
fn second_of<T>(entries: &[T], same: impl Fn(&T, &T) -> bool) -> Option<usize> {
    (1..entries.len()).find(|&place| entries[..place].iter().any(|one| same(one, &entries[place])))
}
