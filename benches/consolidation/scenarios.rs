//! The scenarios whose work is watched, made from a few numbers, so that length, count and constraints are parameters.
//!
//! They are plain text files: what a bench runs can be written into folders too, and any program be run on them.

use std::fmt::Write;

/// A scenario and the manifests beside it, as names of files and their text.
pub struct Files {
    /// Folder that they are written into.
    pub folder: &'static str,
    /// `scenario.yaml` first.
    pub files: Vec<(&'static str, String)>,
}

/// Replicas of each service at its peak.
const REPLICAS: u32 = 40;

/// How the services of a day are made.
#[derive(Clone, Copy)]
pub struct Services {
    /// How many.
    pub count: u32,
    /// A third spread over zones, a third prefer hosts of their own, each has a budget of 10 %, and Spot is open to all.
    pub constrained: bool,
    /// Days of simulated time.
    pub days: u32,
}

/// What a replica of the service with this number requests, in thousandths of a CPU.
fn milli_cpu(service: u32) -> u32 {
    [250, 500, 1_000, 2_000][service as usize % 4]
}

/// Services with diurnal load and autoscalers of their own, 40 pods of each at the peak, on nodes of Karpenter's.
pub fn services(folder: &'static str, of: Services) -> Files {
    let capacity = if of.constrained { "spot, on-demand" } else { "on-demand" };
    let nodes = NODES.replace("CAPACITY", capacity) + CLASS;
    let files = vec![
        ("scenario.yaml", day(of)),
        ("nodes.yaml", nodes),
        ("services.yaml", manifests(of).trim_start_matches("---\n").to_owned()),
    ];
    Files { folder, files }
}

const NODES: &str = "
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: { name: default }
spec:
  template:
    spec:
      nodeClassRef: { group: karpenter.k8s.aws, kind: EC2NodeClass, name: default }
      requirements:
        - { key: kubernetes.io/arch, operator: In, values: [amd64] }
        - { key: karpenter.sh/capacity-type, operator: In, values: [CAPACITY] }
        - { key: karpenter.k8s.aws/instance-category, operator: In, values: [c, m, r] }
        - { key: karpenter.k8s.aws/instance-generation, operator: Gt, values: ['2'] }
      expireAfter: 720h
  disruption: { consolidationPolicy: WhenEmptyOrUnderutilized, consolidateAfter: 1m }
";

/// What the services of a constrained day have beside their requests: the first third and the second third of each three.
fn constraint(service: u32) -> String {
    let selector = format!("labelSelector: {{ matchLabels: {{ app: s{service} }} }}");
    match service % 3 {
        0 => format!(
            "
      topologySpreadConstraints:
        - {{ maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule, {selector} }}"
        ),
        1 => format!(
            "
      affinity:
        podAntiAffinity:
          preferredDuringSchedulingIgnoredDuringExecution:
            - {{ weight: 100, podAffinityTerm: {{ topologyKey: kubernetes.io/hostname, {selector} }} }}"
        ),
        _ => String::new(),
    }
}

fn manifests(of: Services) -> String {
    let mut text = String::new();
    for service in 0..of.count {
        let (milli, mib) = (milli_cpu(service), milli_cpu(service) * (1 + service % 7));
        let constraint = if of.constrained { constraint(service) } else { String::new() };
        let _ = write!(
            text,
            "---
apiVersion: apps/v1
kind: Deployment
metadata: {{ name: s{service} }}
spec:
  selector: {{ matchLabels: {{ app: s{service} }} }}
  template:
    metadata: {{ labels: {{ app: s{service} }} }}
    spec:
      containers:
        - name: app
          image: s{service}
          resources: {{ requests: {{ cpu: {milli}m, memory: {mib}Mi }} }}
          readinessProbe: {{ httpGet: {{ path: /, port: 8080 }}, periodSeconds: 5 }}{constraint}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {{ name: s{service} }}
spec:
  scaleTargetRef: {{ apiVersion: apps/v1, kind: Deployment, name: s{service} }}
  minReplicas: 4
  maxReplicas: 100
  metrics: [{{ type: Resource, resource: {{ name: cpu, target: {{ type: Utilization, averageUtilization: 60 }} }} }}]
"
        );
        if of.constrained {
            let _ = write!(
                text,
                "---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {{ name: s{service} }}
spec: {{ maxUnavailable: 10%, selector: {{ matchLabels: {{ app: s{service} }} }} }}
"
            );
        }
    }
    text
}

fn day(of: Services) -> String {
    let mut text = format!(
        "name: fifty-services
region: us-east-1
start: 2026-03-02T00:00:00Z
duration: {}d
seed: 1
versions: {{ karpenter: v1.13 }}
cluster: {{ zones: [us-east-1a, us-east-1b, us-east-1c] }}
manifests: [nodes.yaml, services.yaml]
policies: [{{ name: karpenter, autoscaler: karpenter }}]
load:
",
        of.days
    );
    for service in 0..of.count {
        // At 10 ms a request, a utilization of 60 % is what the autoscaler aims at.
        let peak = REPLICAS * milli_cpu(service) * 60 / 1_000;
        let (night, hour) = (peak / 4, 10 + service % 9);
        let _ = writeln!(
            text,
            "  - workload: default/s{service}
    requests: {{ diurnal: {{ night: {night}, peak: {peak}, peak_at: {hour}h }} }}
    service: {{ cpu_per_request: 10ms, concurrency: 64, base_latency: 20ms }}"
        );
    }
    text
}

/// Nodes that hold one pod each, launched at once by Karpenter, under EC2's limits on calls or without them.
pub fn one_pod_each(folder: &'static str, nodes: u32, limited: bool) -> Files {
    let api = if limited { "" } else { "api: unlimited, " };
    let scenario = format!(
        "name: one-pod-each
region: us-east-1
duration: 1h
manifests: [objects.yaml]
ec2: {{ {api}capacity: infinite, quotas: {{ standard: 100000000 }}, spot: {{ prices: constant, interruptions: none }} }}
"
    );
    let objects = format!(
        "apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {{ name: default }}
spec:
  template:
    spec:
      nodeClassRef: {{ group: karpenter.k8s.aws, kind: EC2NodeClass, name: default }}
      requirements: [{{ key: node.kubernetes.io/instance-type, operator: In, values: [m5.large] }}]
  disruption: {{ consolidationPolicy: WhenEmptyOrUnderutilized, consolidateAfter: 1m }}
{CLASS}{}",
        deployment("web", nodes, "cpu: 1500m, memory: 1Gi", "")
    );
    Files { folder, files: vec![("scenario.yaml", scenario), ("objects.yaml", objects)] }
}

/// One pod that nothing can be launched for during a whole day, because the only zone has failed.
pub fn outage(folder: &'static str) -> Files {
    let scenario = "name: outage
region: us-east-1
duration: 24h
cluster: { zones: [us-east-1a] }
manifests: [objects.yaml]
faults: [{ at: 0s, zone_outage: { zone: us-east-1a } }]
"
    .to_owned();
    let objects = format!("{}{CLASS}{}", open_pool("default", "", ""), deployment("web", 1, "cpu: 500m", ""));
    Files { folder, files: vec![("scenario.yaml", scenario), ("objects.yaml", objects)] }
}

/// Two hours of three pools and pods of five kinds in one zone that loses its power for most of the time: spread over hosts and
/// capacity types, preferred affinities, a CronJob, DaemonSets, and machines too small for some.
pub fn long_outage(folder: &'static str) -> Files {
    let scenario = "name: long-outage
region: us-east-1
start: 2024-02-29T12:00:00Z
duration: 2h
seed: 372
cluster: { zones: [us-east-1a] }
manifests: [objects.yaml]
policies: [{ name: karpenter, autoscaler: karpenter }]
load:
  - workload: shop/queue
    at: 714s
    requests: { diurnal: { night: 4.21, peak: 63.59 } }
    service: { cpu_per_request: 100ms, concurrency: 1, queue_per_replica: 0 }
workloads: [{ name: shop/nightly, run_time: 143s, failures: 0.5 }]
timeline:
  - { at: 3919s, scale: { workload: back/whole, replicas: 0 } }
  - { at: 4643s, scale: { workload: back/whole, replicas: 10 } }
  - { at: 4951s, scale: { workload: back/whole, replicas: 1 } }
  - { at: 5917s, scale: { workload: shop/state, replicas: 1 } }
  - { at: 6243s, scale: { workload: back/whole, replicas: 10 } }
faults:
  - { at: 5134s, subnet_exhausted: { zone: us-east-1a } }
  - { at: 3445s, zone_outage: { zone: us-east-1a, mode: launch_only }, for: 2335s }
  - { at: 4811s, insufficient_capacity: { capacity_type: spot }, for: 5709s }
  - { at: 425s, zone_outage: { zone: us-east-1a, mode: power }, for: 6292s }
ec2: { spot: { prices: process, interruptions: { exposure: 1h, stress: 100 } } }
nodeGroups:
  - { name: small, instanceTypes: [m6i.large], min: 1, desired: 1, max: 10, spot: false, zones: [us-east-1a] }
  - { name: other, instanceTypes: [m5.xlarge], min: 1, desired: 2, max: 10 }
"
    .to_owned();
    let spread = |key: &str, skew: u32, how: &str, app: &str| {
        format!(
            "{{ maxSkew: {skew}, topologyKey: {key}, whenUnsatisfiable: {how}, labelSelector: {{ matchLabels: {{ app: {app} }} }} }}"
        )
    };
    let hosts = |skew, app| spread("kubernetes.io/hostname", skew, "DoNotSchedule", app);
    let capacity = |skew, app| spread("karpenter.sh/capacity-type", skew, "DoNotSchedule", app);
    let zones = spread("topology.kubernetes.io/zone", 5, "ScheduleAnyway", "state");
    let mut objects = [
        open_pool(
            "spot",
            "{ key: karpenter.sh/capacity-type, operator: In, values: [spot] }, \
             { key: karpenter.k8s.aws/instance-family, operator: In, values: [c5d, m6a, m7g] }, \
             { key: karpenter.k8s.aws/instance-size, operator: NotIn, values: [large, xlarge, 8xlarge] }",
            "720h",
        ),
        "---\n".to_owned(),
        open_pool(
            "large",
            "{ key: kubernetes.io/arch, operator: In, values: [amd64] }, \
             { key: karpenter.k8s.aws/instance-size, operator: In, values: [2xlarge, 8xlarge, 4xlarge] }",
            "10m",
        ),
        "---\n".to_owned(),
        open_pool(
            "few",
            "{ key: karpenter.sh/capacity-type, operator: In, values: [spot] }, \
             { key: kubernetes.io/arch, operator: In, values: [amd64] }, \
             { key: karpenter.k8s.aws/instance-family, operator: In, values: [c5, m6a] }",
            "10m",
        ),
        CLASS.to_owned(),
        NIGHTLY.replace("SPREAD", &capacity(5, "nightly")),
    ]
    .concat();
    objects += &workload("Deployment", "back/whole", 2, "cpu: 7, memory: 2Gi", "");
    objects += &workload(
        "StatefulSet",
        "shop/state",
        0,
        "cpu: 4, memory: 2Gi",
        &format!("topologySpreadConstraints: [{zones}]"),
    );
    objects += &workload(
        "Deployment",
        "shop/queue",
        0,
        "cpu: 100m",
        &format!("topologySpreadConstraints: [{}, {}]", hosts(2, "queue"), capacity(1, "queue")),
    );
    objects += &workload(
        "Deployment",
        "shop/liking",
        1,
        "memory: 2Gi",
        "affinity: { nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1, preference: \
         { matchExpressions: [{ key: node.kubernetes.io/instance-type, operator: Exists }] } }] } }",
    );
    objects += &workload(
        "Deployment",
        "shop/apart",
        10,
        "cpu: 15, memory: 60Gi, ephemeral-storage: 1Gi",
        &format!("topologySpreadConstraints: [{}]", hosts(1, "apart")),
    );
    Files { folder, files: vec![("scenario.yaml", scenario), ("objects.yaml", objects)] }
}

/// Many pods on many nodes under the Cluster Autoscaler: fifty Deployments of which the first half grows and shrinks again.
pub fn cluster_autoscaler(folder: &'static str, pods: u32) -> Files {
    const DEPLOYMENTS: u32 = 50;
    let each = pods / DEPLOYMENTS;
    let mut scenario = "name: many-pods
region: us-east-1
duration: 4h
cluster: { zones: [us-east-1a, us-east-1b, us-east-1c] }
manifests: [objects.yaml]
policies: [{ name: cluster-autoscaler, autoscaler: cluster-autoscaler }]
ec2: { capacity: infinite, quotas: { standard: 100000000 }, spot: { prices: constant, interruptions: none } }
nodeGroups:
"
    .to_owned();
    for zone in ["a", "b", "c"] {
        let _ = writeln!(
            scenario,
            "  - {{ name: group-{zone}, instanceTypes: [m5.2xlarge], min: 1, desired: 1, max: 1000, zones: [us-east-1{zone}] }}"
        );
    }
    scenario += "timeline:\n";
    for at in (0..DEPLOYMENTS).step_by(2) {
        let (down, up) = (3_600 + at * 60, 9_000 + at * 30);
        let _ =
            writeln!(scenario, "  - {{ at: {down}s, scale: {{ workload: default/d{at}, replicas: {} }} }}", each / 2);
        let _ = writeln!(scenario, "  - {{ at: {up}s, scale: {{ workload: default/d{at}, replicas: {each} }} }}");
    }
    let mut objects = String::new();
    for at in 0..DEPLOYMENTS {
        let milli = [100, 200, 250, 350, 400][at as usize % 5];
        let spread = constraint(at).trim_start().to_owned();
        objects += &deployment(
            &format!("d{at}"),
            each,
            &format!("cpu: {milli}m, memory: {milli}Mi"),
            &spread.replace("app: s", "app: d"),
        );
    }
    let objects = objects.trim_start_matches("---\n").to_owned();
    Files { folder, files: vec![("scenario.yaml", scenario), ("objects.yaml", objects)] }
}

const CLASS: &str = "---
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: { name: default }
spec:
  amiSelectorTerms: [{ alias: al2023@latest }]
  role: nodes
  subnetSelectorTerms: [{ tags: { name: shop } }]
  securityGroupSelectorTerms: [{ tags: { name: shop } }]
";

const NIGHTLY: &str = "---
apiVersion: batch/v1
kind: CronJob
metadata: { name: nightly, namespace: shop }
spec:
  schedule: '*/5 * * * *'
  concurrencyPolicy: Forbid
  jobTemplate:
    spec:
      parallelism: 2
      completions: 1
      backoffLimit: 3
      template:
        metadata: { labels: { app: nightly } }
        spec:
          containers: [{ name: app, image: nightly, resources: { requests: { cpu: 7, memory: 3500Mi } } }]
          topologySpreadConstraints: [SPREAD]
          restartPolicy: OnFailure
";

/// A pool of any type that `requirements` leave; without any, of Spot and On-Demand.
fn open_pool(name: &str, requirements: &str, expire: &str) -> String {
    let all = "{ key: karpenter.sh/capacity-type, operator: In, values: [spot, on-demand] }";
    let requirements = if requirements.is_empty() { all } else { requirements };
    let expire = if expire.is_empty() { "720h" } else { expire };
    format!(
        "apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {{ name: {name} }}
spec:
  template:
    spec:
      nodeClassRef: {{ group: karpenter.k8s.aws, kind: EC2NodeClass, name: default }}
      requirements: [{requirements}]
      expireAfter: {expire}
"
    )
}

fn deployment(name: &str, replicas: u32, requests: &str, more: &str) -> String {
    workload("Deployment", &format!("default/{name}"), replicas, requests, more)
}

/// One workload of pods with one container; `more` stands in the pod's specification.
fn workload(kind: &str, name: &str, replicas: u32, requests: &str, more: &str) -> String {
    let (namespace, name) = name.split_once('/').unwrap_or(("default", name));
    let service = if kind == "StatefulSet" { format!("  serviceName: {name}\n") } else { String::new() };
    format!(
        "---
apiVersion: apps/v1
kind: {kind}
metadata: {{ name: {name}, namespace: {namespace} }}
spec:
  replicas: {replicas}
  selector: {{ matchLabels: {{ app: {name} }} }}
{service}  template:
    metadata: {{ labels: {{ app: {name} }} }}
    spec:
      containers: [{{ name: app, image: app, resources: {{ requests: {{ {requests} }} }} }}]
      {more}
"
    )
}
