//! The scenario itself, and sections of a few keys: recorded pods, times, images, objectives, output.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use super::Form;
use super::assumptions::Assumed;
use super::cluster::{Cluster, NodeGroups, VersionsKeys};
use super::ec2::Ec2;
use super::fargate::FargateKeys;
use super::faults::FaultEntry;
use super::kind::{Bytes, Cost, File, FolderName, Name, NotNegative, Placed, Scalar, Text, Whole, kind};
use super::load::LoadEntry;
use super::metrics::{ExternalMetrics, Queues};
use super::names::AnyWorkload;
use super::policies::{AutoModeKeys, ControllerTimes, Handler, KarpenterKeys, Policies, TimeSetting};
use super::timeline::StepEntry;
use super::usage::UsageEntry;
use super::vertical::VerticalKeys;
use crate::definition::{
    Ec2Settings, ImageSettings, MetricsServer, Objectives, OutputSettings, Phases, PodTrace, PrometheusSettings,
    Scenario, WaitLimit, Waiting, WorkloadTimes,
};
use crate::domain::workload::ObjectName;
use crate::domain::{SimDuration, Symbol};
use crate::error::nearest;
use crate::file::{initial, objectives, pod_trace};
use crate::single_pass::Inventory;
use nodecast_settings::lints::{self, LintId};

section! {
    /// A scenario is one YAML document: a cluster, what happens to it, and the policies to try. Paths in it are
    /// relative to the scenario's folder. An unknown key is an error, with the key that was probably meant.
    SCENARIO: "a scenario", "The whole file";
    example "name: black-friday
region: us-east-1
start: 2026-11-27T00:00:00Z
duration: 24h
warm_up: 30m
seed: 1
replications: 20
manifests: [cluster.yaml]
variables: { CLUSTER_NAME: shop }
initial: dump.yaml
calibration: calibration.yaml
controller_time: measured
assumptions:
  - Clients never give up.
allow: [NC0404]
";
    impl Scenario: {
        /// Its name; the report goes to `reports/<name>`, unless `output` or `--out` say otherwise.
        name: FolderName;
        /// Where the cluster runs. `nodecast pricing show` names the regions that there are prices for.
        region["AWS region"]: Name;
        /// The calendar time at which the run begins; UTC unless it has an offset. CronJobs, `diurnal` load, budgets
        /// with schedules and replayed prices go by it.
        start: Timestamp = START;
        /// How long to simulate: more than 0s, at most 3660d.
        duration: RunLength;
        /// A run begins without the nodes that an autoscaler launches, so every pod waits once: what a cluster that
        /// runs already does not do. For so long from the start, waits, evictions, launches and removals of nodes,
        /// changes of replica counts and response times do not count in the figures; a wait counts if it ends later.
        /// Cost, numbers of nodes and their use are of the whole run, and so are events and tables. One that is not
        /// over when the run ends is left out, with a warning.
        warm_up: SimDuration = SimDuration::ZERO;
        /// The seed of every random draw, and the first of those that a comparison uses. `--seed` takes another.
        seed: Whole<0, { i64::MAX }, u64> = 1;
        /// How many successive seeds `compare`, `sweep`, `diff` and `check` simulate each policy with; more give
        /// narrower intervals. `run` simulates `seed` alone. `--replications` takes another number.
        replications: Whole<1, 10_000> = 20;
    } aside {
        /// Which releases are reproduced.
        versions: VersionsKeys, or "the default releases";
        /// How Karpenter is set up, for all policies.
        karpenter: KarpenterKeys, or "as a release is installed";
        /// EKS Auto Mode, for all policies that have it.
        eks_auto_mode: AutoModeKeys, or "as EKS sets it up";
        /// EKS on Fargate, for all policies.
        fargate: FargateKeys, or "no pod runs on Fargate";
        /// Flags of the Vertical Pod Autoscaler's programs, for all policies.
        vertical_pod_autoscaler: VerticalKeys, or "the defaults of the release";
        /// AWS Node Termination Handler, for all policies.
        node_termination_handler: Handler, or "not installed";
        /// How long controllers take, and how fast they may call the API server, for all policies.
        controller_time: ControllerTimes = TimeSetting::Measured;
        /// Kubernetes objects that exist from the start under every policy, as you apply them: files in YAML or JSON
        /// with any number of documents. [Which kinds are read](#manifests).
        manifests: Vec<File>, or "none";
        /// Texts that take the place of `${NAME}` in manifests, as `envsubst` would put them in. A name without a
        /// value stays as it is. The scenario file itself has no variables.
        variables["name"]: BTreeMap<Symbol, Scalar>, or "none";
        /// Where in the region the cluster runs, and the tier of its control plane.
        cluster: Cluster, or "all zones of the region";
        /// Auto Scaling groups; one takes the place of a group of the same name in the manifests.
        "nodeGroups" as node_groups: NodeGroups, or "none but those of eksctl ClusterConfigs";
    } {
        /// The nodes and pods with which the run begins: a dump of Nodes, NodeClaims and Pods, as `nodecast init
        /// --from` writes it. Nodes keep their names, types, ages, labels and taints, pods the node that they are on;
        /// a workload of `manifests` takes up its own. Node groups have the nodes that the dump shows. Node objects
        /// among `manifests` are there from the start, too. [More](workloads.md#a-cluster-as-it-stands).
        initial: Dump, or "an empty cluster, but for node groups";
        /// Requests to workloads.
        load: Vec<LoadEntry> = Vec::new(), or "no requests";
        /// What pods use beside requests.
        usage: Vec<UsageEntry> = Vec::new(), or "nothing";
        /// Prometheus, and the metrics adapter in front of it.
        prometheus: PrometheusSettings, or "there is none";
        /// metrics-server.
        metrics_server: MetricsServer = MetricsServer::PUBLISHED, or "as it is published";
        /// When the loops of controllers first come round.
        phases: Phases = Phases::default(), or "drawn from the seed";
        /// Queues of messages, and who takes them.
        queues: Queues = Vec::new(), or "none";
        /// Values that you state for scalers, metrics and resources in place of a model.
        external_metrics: ExternalMetrics = Vec::new(), or "none";
        /// The pods of a recorded cluster.
        pods: Pods, or "none";
        /// How long things take that no manifest tells.
        "workloads" as times: Times = BTreeMap::new(), or "the defaults of its keys";
        /// Sizes of container images, and how fast nodes pull them.
        images: ImageSettings = ImageSettings::default(), or "the defaults of its keys";
    } aside {
        /// What people do, and when.
        timeline: Vec<StepEntry>, or "nothing happens";
        /// The policies to compare. `run` simulates the first, or the one that `--policy` names.
        policies: Policies, or "one: `karpenter` if there is a NodePool or Provisioner, else `static`";
    } {
        /// What is special about the simulated EC2: prices, capacity, interruptions, limits, billing.
        ec2: Ec2 = Ec2Settings::default(), or "the defaults of its keys";
    } aside {
        /// Values that were fitted to a cluster, as `nodecast calibrate` writes them. They take the place of defaults of `ec2`,
        /// `images` and `workloads`; what the scenario states itself holds. [More](calibrate.md).
        calibration: File, or "defaults are assumed";
        /// What goes wrong, and when.
        faults: Vec<FaultEntry>, or "none";
    } {
        /// Limits that the answer is held against.
        objectives: Objectives = Objectives::default(), or "none";
        /// Where the report goes.
        output: OutputSettings = OutputSettings::default(), or "`reports/<name>`";
        /// Sentences for the report, where they stand beside the program's own assumptions. They change no figure:
        /// say here what you made up or left out, and, with `cost_of`, which part of the bill depends on it.
        assumptions: Vec<Assumed> = Vec::new(), or "none";
        /// Warnings that you know and do not want to see, by their [ids](warnings.md). The report says which were silenced, and warns of
        /// an id that never applied.
        allow: Vec<AllowedLint> = Vec::new(), or "none";
    } also {
        /// Allowed lints that applied as the files were read.
        pub silenced: BTreeSet<LintId>,
        /// Zones in use, in order of name.
        pub zones: Vec<Symbol>,
        /// What is known of startup taints.
        pub startup_taints: Vec<StartupTaint>,
        /// Longest delay before a container restarts, where the kubelets have such a setting.
        pub max_container_restart_period: Option<SimDuration>,
        /// What is done by hand, in order of time.
        pub timeline: Vec<TimedAction>,
        /// The policies, at least one; the first is what `run` simulates.
        pub policies: Vec<PolicyVariant>,
        /// What a calibration gave; `None` without one.
        pub calibrated: Option<Calibrated>,
        /// The files read, the scenario itself first.
        pub inputs: Vec<InputFile>,
        /// The tables of prices that were read in place of built-in ones.
        pub prices: Vec<InputFile>,
    }
}

/// Where a scenario begins unless it says so.
pub(crate) const START: Timestamp = Timestamp::constant(1_767_225_600, 0);
/// Longest simulated time, in days.
const DURATION_DAYS_MAX: i64 = 3_660;

kind! {
    /// How long a run may be.
    RunLength: SimDuration, |reading, node, what, duration| {
        if duration == SimDuration::ZERO || duration.as_secs() / 86_400 > DURATION_DAYS_MAX {
            return Err(reading
                .error(node.at, format!("`{what}` is {duration}"))
                .because("cannot be simulated")
                .help(format!("write more than 0s and at most {DURATION_DAYS_MAX}d")));
        }
        Ok(duration)
    }
}

kind! {
    /// The id of a lint.
    AllowedLint: LintId = Form::Text("lint id"), |reading, node, what| {
        let text = reading.reader.text(node, what)?;
        if let Some(lint) = text.parse().ok().and_then(lints::find) {
            return Ok(lint.id());
        }
        let known: Vec<String> = lints::all().map(|lint| lint.id().to_string()).collect();
        let help = nearest(text, known.iter().map(String::as_str)).map_or_else(
            || "use an id that a warning shows, for example `NC0404`; docs/warnings.md lists all".to_owned(),
            |near| format!("did you mean `{near}`? docs/warnings.md lists all"),
        );
        Err(reading.error(node.at, format!("no warning has the id `{text}`")).because("unknown id").help(help))
    }
}

kind! {
    /// A dump of a cluster.
    Dump: Arc<Inventory> = Form::File, |reading, node, what| initial::read(reading, node, what)
}

section! {
    /// Replays pods one by one, from a CSV file with a row for each: `create_s`, `cpu_milli` and `memory_mib` have to
    /// be there, [workloads.md](workloads.md#traces-of-pods) lists the other columns.
    PODS: "`pods`", "`pods`: a recorded cluster";
    example "pods:
  csv: trace.csv
  namespace: tenants
  again: true
";
    becomes Arc<PodTrace>, pod_trace::read;
    struct Pods {
        /// The file; rows in order of `create_s`.
        csv: Placed<File>;
        /// The namespace of the pods.
        namespace["namespace"]: Name = Symbol::new("default");
        /// Whether a pod that is evicted or lost is made again, as a controller would.
        again: bool = true;
    }
}

section! {
    /// An entry for each workload that differs from the defaults, which are assumed.
    WORKLOAD: "an entry of `workloads`", "`workloads[]`: times that no manifest tells";
    example "workloads:
  - { name: batch/report, run_time: 4m, failures: 0.05 }
  - { name: shop/web, init_time: 3s, start_time: 20s, shutdown_time: 5s }
  - { name: shop/worker, part_of: shop/orders }
";
    impl WorkloadTimes: {} aside {
        /// A Deployment, StatefulSet, DaemonSet, Job, CronJob or ScaledJob of the manifests.
        name: AnyWorkload;
    } {
        /// How long the containers of a pod run that ends by itself (Jobs, CronJobs, ScaledJobs without a queue).
        run_time: SimDuration, or "a minute is assumed, with a warning";
        /// The share of such pods that fail.
        failures: Failing = 0.0;
        /// How long each init container runs.
        init_time: SimDuration = SimDuration::ZERO;
        /// From the start of the containers until the application answers its probes and takes messages of a queue.
        start_time: SimDuration = SimDuration::ZERO;
        /// From the signal to stop until the containers have stopped, if the grace period allows it.
        shutdown_time: SimDuration = SimDuration::from_secs(1);
        /// Under which name the availability of its replicas is counted, together with that of all others that state it: instances
        /// of one database that are a Deployment each. It has zero Ready replicas while none of them is Ready.
        part_of: ObjectName, or "its own";
    }
}

kind! {
    /// The times of workloads, each of which is described once.
    Times: Vec<WorkloadTimes> => BTreeMap<ObjectName, WorkloadTimes>, |reading, node, what, times| {
        let mut all = BTreeMap::new();
        for (item, times) in node.items().iter().zip(times) {
            let fields = reading.reader.fields(item, &WORKLOAD.shape)?;
            let name = AnyWorkload::read(reading, fields.required(&reading.reader, "name")?, what)?;
            if all.insert(name, times).is_some() {
                return Err(reading
                    .error(item.at, format!("`{name}` is described twice"))
                    .because("the second time")
                    .help("put everything about it into one entry"));
            }
        }
        Ok(all)
    }
}

kind! {
    /// The share of pods that fail.
    Failing: f64 = Form::Number(0.0, 1.0), |reading, node, what| {
        let share = reading.reader.quantity(node, what)?.as_f64();
        if (0.0..=1.0).contains(&share) {
            return Ok(share);
        }
        Err(reading
            .error(node.at, format!("`{what}` is the share of pods that fail"))
            .because("not between 0 and 1")
            .help("write for example `0.05` for one pod of twenty"))
    };
    show |share| share.to_string()
}

section! {
    /// The defaults are assumed. A node that has an image does not pull it again.
    IMAGES: "`images`", "`images`: sizes and pulls";
    example "images:
  size: 100M
  sizes: { \"shop/web:2\": 850M }
  pull_rate: 80M
  unpack_rate: 180M
";
    impl ImageSettings {
        /// Compressed size of an image that `sizes` does not name.
        size["bytes"]: Bytes = 100_000_000;
        /// Compressed sizes.
        sizes["image, as manifests name it"]: BTreeMap<Symbol, Bytes> = BTreeMap::new(), or "none";
        /// How fast a node fetches images.
        pull_rate["bytes per second"]: Bytes = 80_000_000;
        /// How fast it unpacks them.
        unpack_rate["bytes per second"]: Bytes = 180_000_000;
    }
}

section! {
    /// The report says of each whether it is met; a comparison says under which share of the seeds.
    OBJECTIVES: "`objectives`", "`objectives`";
    example "objectives:
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
    impl Objectives {
        /// Replicas of Deployments and StatefulSets that are wanted and not Ready, times the minutes for which they
        /// are not, summed. A pod whose node dies is missing from that instant on. Placeholders are left out.
        unavailable_pod_minutes["pod-minutes"]: NotNegative, or "no limit";
        /// Time for which a Deployment or StatefulSet wants replicas and has none Ready, summed over the run; the
        /// longest of all.
        at_zero: SimDuration, or "no limit";
        /// Time for which a workload wants as many replicas as its autoscaler (HPA, ScaledObject) may give it, or
        /// more; the longest of all. An autoscaler whose minimum is its maximum does not count, and neither does
        /// the time for which a cron trigger alone asks for as many.
        at_max: SimDuration, or "no limit";
        /// 95th percentile of the time that pods wait for a node, as `pending_p99`.
        pending_p95: SimDuration, or "no limit";
        /// 99th percentile of the time that pods wait for a node; DaemonSets and placeholders are left out.
        pending_p99: SimDuration, or "no limit";
        /// Limits on the waits of one workload, or of one priority.
        waits: Limits = Vec::new(), or "no limit";
        /// 99th percentile of the response time of every workload with load. Missed too where more than one request
        /// in a hundred goes without an answer.
        request_p99: SimDuration, or "no limit";
        /// Cost of the whole run.
        cost["currency of the region"]: Cost, or "no limit";
    }
}

section! {
    /// A placeholder is a pod of negative priority whose containers do nothing: their image is called `pause`, or
    /// their command is `sleep`, `pause` or `tail -f /dev/null` alone. It holds room for others, and its own waiting
    /// is nobody's.
    WAITS: "an entry of `waits`", "`objectives.waits[]`: who may wait how long for a node";
    becomes Vec<WaitLimit>, objectives::limits;
    struct Waits: {} one whose: Waiting, objectives::whose_waits {
        /// The pods of this workload.
        workload: WaitsOf;
        /// The pods of this priority, placeholders left out.
        priority: WaitsAt;
    } {
        /// The mean.
        mean: SimDuration, or "no limit";
        /// The median.
        p50: SimDuration, or "no limit";
        /// The 95th percentile.
        p95: SimDuration, or "no limit";
        /// The 99th percentile.
        p99: SimDuration, or "no limit";
        /// The longest.
        longest: SimDuration, or "no limit";
    }
}

kind! {
    /// The waits of a workload's pods.
    WaitsOf: AnyWorkload => Waiting, |_, _, _, workload| Ok(Waiting::Workload(workload))
}

kind! {
    /// The waits of a priority's pods.
    WaitsAt: Whole<{ i32::MIN as i64 }, { i32::MAX as i64 }, i64> => Waiting, |_, _, _, priority| {
        Ok(Waiting::Priority(i32::try_from(priority).unwrap_or_default()))
    }
}

kind! {
    /// Limits on waits.
    Limits: Vec<Waits> => Vec<WaitLimit>, |_, _, _, limits| Ok(limits.into_iter().flatten().collect())
}

section! {
    OUTPUT: "`output`", "`output`";
    example "output: { directory: results/black-friday, open_metrics: 30s, sample_every: 10s, cost_by: [team] }
";
    impl OutputSettings {
        /// The directory for the report, relative to where the program runs. `--out` takes another.
        directory["path"]: Text, or "`reports/<name>`";
        /// Whether reports of `run` and `compare` have a `metrics.om` for Prometheus ([metrics.md](metrics.md)), or
        /// the time between its samples, from `1s` to `4m`; `true` is `1m`. `--open-metrics` takes another.
        open_metrics: OpenMetrics = None;
        /// Time between the samples of timeline.csv, workloads.csv, metrics.csv and queues.csv, and of the curves of the page,
        /// at least `1s`.
        sample_every: SampleEvery, or "at most some 2,000 samples and a million lines of workloads.csv";
        /// Keys of pod labels, for example `team`. For each, the report has the cost by value of the label, with requests and usage.
        cost_by["label key"]: Vec<Name> = Vec::new(), or "none";
    }
}

kind! {
    /// A span of time of a second or more.
    SampleEvery: SimDuration => SimDuration, |reading, node, what, span| {
        if span >= SimDuration::from_secs(1) {
            return Ok(span);
        }
        let error = reading.error(node.at, format!("`{what}` is {span}"));
        Err(error.because("too short").help("write a time between samples of at least `1s`"))
    }
}

kind! {
    /// `true`, `false`, or the time between samples.
    OpenMetrics: Option<SimDuration> = Form::Either(Box::new(Form::Truth), Box::new(Form::Duration)), |reading, node, what| {
        match node.as_text() {
            Some("true") => return Ok(Some(OutputSettings::STEP)),
            Some("false") => return Ok(None),
            _ => {}
        }
        let (least, most) = OutputSettings::STEPS;
        let step = reading.reader.duration(node, what)?;
        if (least..=most).contains(&step) {
            return Ok(Some(step));
        }
        let error = reading.error(node.at, format!("`{what}` is {step}"));
        Err(error.because("Prometheus loses series whose samples are further apart").help(format!(
            "write a time between samples from {least} to {most}, or `true` for {}",
            OutputSettings::STEP
        )))
    };
    show |step| step.map_or_else(|| "false".to_owned(), |step| step.to_string())
}
