//! The scenario itself, and sections of a few keys: recorded pods, times, images, objectives, output.

use super::Value::{
    Amount, Duration, Either, File, FolderName, Free, Instant, Integer, List, Map, Number, Scalar, Text, Truth, Words,
    Workload,
};
use super::{cluster, ec2, faults, load, metrics, policies, timeline};

section! {
    SCENARIO: "a scenario", "The whole file";
    "A scenario is one YAML document: a cluster, what happens to it, and the policies to try. Paths in it are relative to the \
     scenario's folder. An unknown key is an error, with the key that was probably meant.";
    "name: black-friday
region: us-east-1
start: 2026-11-27T00:00:00Z
duration: 24h
warm_up: 30m
seed: 1
replications: 20
manifests: [cluster.yaml]
variables: { CLUSTER_NAME: shop }
controller_time: measured
assumptions:
  - Clients never give up.
";
    {
        "name" required: FolderName,
            "Its name; the report goes to `reports/<name>`, unless `output` or `--out` say otherwise.";
        "region" required: Text("AWS region"),
            "Where the cluster runs. `nodecast pricing show` names the regions that there are prices for.";
        "start" default("2026-01-01T00:00:00Z"): Instant,
            "The calendar time at which the run begins; UTC unless it has an offset. CronJobs, `diurnal` load, budgets with \
             schedules and replayed prices go by it.";
        "duration" required: Duration,
            "How long to simulate: more than 0s, at most 3660d.";
        "warm_up" default("0s"): Duration,
            "A run begins without the nodes that an autoscaler launches, so every pod waits once: what a cluster that runs already \
             does not do. For so long from the start, waits, evictions, launches and removals of nodes, changes of replica counts \
             and response times do not count in the figures; a wait counts if it ends later. Cost, numbers of nodes and their use are \
             of the whole run, and so are events and tables. One that is not over when the run ends is left out, with a warning.";
        "seed" default("1"): Integer(0, i64::MAX),
            "The seed of every random draw, and the first of those that a comparison uses. `--seed` takes another.";
        "replications" default("20"): Integer(1, 10_000),
            "How many successive seeds `compare`, `sweep`, `diff` and `check` simulate each policy with; more give narrower \
             intervals. `run` simulates `seed` alone. `--replications` takes another number.";
        "versions" otherwise("the default releases"): Map(&cluster::VERSIONS),
            "Which releases are reproduced.";
        "karpenter" otherwise("as a release is installed"): Map(&policies::KARPENTER),
            "How Karpenter is set up, for all policies.";
        "node_termination_handler" otherwise("not installed"): Map(&policies::HANDLER),
            "AWS Node Termination Handler, for all policies.";
        "controller_time" default("measured"): Either(&Words(&["measured", "none"]), &Map(&policies::CONTROLLER_TIME)),
            "How long controllers take, and how fast they may call the API server, for all policies.";
        "manifests" otherwise("none"): List(&File),
            "Kubernetes objects that exist from the start under every policy, as you apply them: files in YAML or JSON with any \
             number of documents. [Which kinds are read](#manifests).";
        "variables" otherwise("none"): Free("name", &Scalar),
            "Texts that take the place of `${NAME}` in manifests, as `envsubst` would put them in. A name without a value stays as \
             it is. The scenario file itself has no variables.";
        "cluster" otherwise("all zones of the region"): Map(&cluster::CLUSTER),
            "Where in the region the cluster runs.";
        "nodeGroups" otherwise("none but those of eksctl ClusterConfigs"): List(&Map(&cluster::NODE_GROUP)),
            "Auto Scaling groups; one takes the place of a group of the same name in the manifests.";
        "load" otherwise("no requests"): List(&Map(&load::LOAD)),
            "Requests to workloads.";
        "prometheus" otherwise("there is none"): Map(&metrics::PROMETHEUS),
            "Prometheus, and the metrics adapter in front of it.";
        "metrics_server" otherwise("as it is published"): Map(&metrics::METRICS_SERVER),
            "metrics-server.";
        "phases" otherwise("drawn from the seed"): Map(&metrics::PHASES),
            "When the loops of controllers first come round.";
        "queues" otherwise("none"): List(&Map(&metrics::QUEUE)),
            "Queues of messages, and who takes them.";
        "external_metrics" otherwise("none"): List(&Map(&metrics::EXTERNAL_METRIC)),
            "Values that you state for scalers, metrics and resources in place of a model.";
        "pods" otherwise("none"): Map(&PODS),
            "The pods of a recorded cluster.";
        "workloads" otherwise("the defaults of its keys"): List(&Map(&WORKLOAD)),
            "How long things take that no manifest tells.";
        "images" otherwise("the defaults of its keys"): Map(&IMAGES),
            "Sizes of container images, and how fast nodes pull them.";
        "timeline" otherwise("nothing happens"): List(&Map(&timeline::STEP)),
            "What people do, and when.";
        "policies" otherwise("one: `karpenter` if there is a NodePool or Provisioner, else `static`"):
            List(&Map(&policies::POLICY)),
            "The policies to compare. `run` simulates the first, or the one that `--policy` names.";
        "ec2" otherwise("the defaults of its keys"): Map(&ec2::EC2),
            "What is special about the simulated EC2: prices, capacity, interruptions, limits, billing.";
        "faults" otherwise("none"): List(&Map(&faults::FAULT)),
            "What goes wrong, and when.";
        "objectives" otherwise("none"): Map(&OBJECTIVES),
            "Limits that the answer is held against.";
        "output" otherwise("`reports/<name>`"): Map(&OUTPUT),
            "Where the report goes.";
        "assumptions" otherwise("none"): List(&Text("sentence")),
            "Sentences for the report, where they stand beside the program's own assumptions. They change no figure: say here what \
             you made up or left out.";
    }
}

section! {
    PODS: "`pods`", "`pods`: a recorded cluster";
    "Replays pods one by one, from a CSV file with a row for each: `create_s`, `cpu_milli` and `memory_mib` have to be there, \
     [workloads.md](workloads.md#traces-of-pods) lists the other columns.";
    "pods:
  csv: trace.csv
  namespace: tenants
  again: true
";
    {
        "csv" required: File, "The file; rows in order of `create_s`.";
        "namespace" default("default"): Text("namespace"), "The namespace of the pods.";
        "again" default("true"): Truth, "Whether a pod that is evicted or lost is made again, as a controller would.";
    }
}

section! {
    WORKLOAD: "an entry of `workloads`", "`workloads[]`: times that no manifest tells";
    "An entry for each workload that differs from the defaults, which are assumed.";
    "workloads:
  - { name: batch/report, run_time: 4m, failures: 0.05 }
  - { name: shop/web, init_time: 3s, start_time: 20s, shutdown_time: 5s }
";
    {
        "name" required: Workload,
            "A Deployment, StatefulSet, DaemonSet, Job, CronJob or ScaledJob of the manifests.";
        "run_time" otherwise("a minute is assumed, with a warning"): Duration,
            "How long the containers of a pod run that ends by itself (Jobs, CronJobs, ScaledJobs without a queue).";
        "failures" default("0"): Number(0.0, 1.0), "The share of such pods that fail.";
        "init_time" default("0s"): Duration, "How long each init container runs.";
        "start_time" default("0s"): Duration,
            "From the start of the containers until the application answers its probes and takes messages of a queue.";
        "shutdown_time" default("1s"): Duration,
            "From the signal to stop until the containers have stopped, if the grace period allows it.";
    }
}

section! {
    IMAGES: "`images`", "`images`: sizes and pulls";
    "The defaults are assumed. A node that has an image does not pull it again.";
    "images:
  size: 100M
  sizes: { \"shop/web:2\": 850M }
  pull_rate: 80M
  unpack_rate: 180M
";
    {
        "size" default("100M"): Amount("bytes"), "Compressed size of an image that `sizes` does not name.";
        "sizes" otherwise("none"): Free("image, as manifests name it", &Amount("bytes")), "Compressed sizes.";
        "pull_rate" default("80M"): Amount("bytes per second"), "How fast a node fetches images.";
        "unpack_rate" default("180M"): Amount("bytes per second"), "How fast it unpacks them.";
    }
}

section! {
    OBJECTIVES: "`objectives`", "`objectives`";
    "The report says of each whether it is met; a comparison says under which share of the seeds.";
    "objectives:
  unavailable_pod_minutes: 30
  at_zero: 5m
  at_max: 1h
  pending_p95: 30s
  pending_p99: 60s
  waits:
    - { workload: shop/web, mean: 2s, p50: 1s, p95: 10s, p99: 30s, longest: 2m }
    - { priority: 0, p95: 10s, p99: 30s }
  request_p99: 250ms
  cost: 400
";
    {
        "unavailable_pod_minutes" otherwise("no limit"): Amount("pod-minutes"),
            "Replicas of Deployments and StatefulSets that are wanted and not Ready, times the minutes for which they are not, \
             summed. A pod whose node dies is missing from that instant on. Placeholders are left out.";
        "at_zero" otherwise("no limit"): Duration,
            "Time for which a Deployment or StatefulSet wants replicas and has none Ready, summed over the run; the longest of all.";
        "at_max" otherwise("no limit"): Duration,
            "Time for which a workload wants as many replicas as its autoscaler (HPA, ScaledObject) may give it, or more; the longest \
             of all. An autoscaler whose minimum is its maximum does not count.";
        "pending_p95" otherwise("no limit"): Duration, "95th percentile of the time that pods wait for a node, as `pending_p99`.";
        "pending_p99" otherwise("no limit"): Duration,
            "99th percentile of the time that pods wait for a node; DaemonSets and placeholders are left out.";
        "waits" otherwise("no limit"): List(&Map(&WAITS)), "Limits on the waits of one workload, or of one priority.";
        "request_p99" otherwise("no limit"): Duration,
            "99th percentile of the response time of every workload with load. Missed too where more than one request in a hundred \
             goes without an answer.";
        "cost" otherwise("no limit"): Amount("currency of the region"), "Cost of the whole run.";
    }
}

section! {
    WAITS: "an entry of `waits`", "`objectives.waits[]`: who may wait how long for a node";
    "A placeholder is a pod of negative priority whose containers do nothing: their image is called `pause`, or their command \
     is `sleep`, `pause` or `tail -f /dev/null` alone. It holds room for others, and its own waiting is nobody's.";
    "";
    one_of: &["workload", "priority"];
    {
        "workload" otherwise("-"): Workload, "The pods of this workload.";
        "priority" otherwise("-"): Integer(-2_147_483_648, 2_147_483_647), "The pods of this priority, placeholders left out.";
        "mean" otherwise("no limit"): Duration, "The mean.";
        "p50" otherwise("no limit"): Duration, "The median.";
        "p95" otherwise("no limit"): Duration, "The 95th percentile.";
        "p99" otherwise("no limit"): Duration, "The 99th percentile.";
        "longest" otherwise("no limit"): Duration, "The longest.";
    }
}

section! {
    OUTPUT: "`output`", "`output`";
    "";
    "output: { directory: results/black-friday, open_metrics: 30s }
";
    {
        "directory" otherwise("`reports/<name>`"): Text("path"),
            "The directory for the report, relative to where the program runs. `--out` takes another.";
        "open_metrics" default("false"): Either(&Truth, &Duration),
            "Whether reports of `run` and `compare` have a `metrics.om` for Prometheus ([metrics.md](metrics.md)), or the time between its \
             samples, from `1s` to `4m`; `true` is `1m`. `--open-metrics` takes another.";
    }
}
