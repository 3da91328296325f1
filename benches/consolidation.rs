//! Whole runs with consolidation: fifty services with diurnal load and autoscalers of their own, 2,000 pods at the peak, on
//! nodes that Karpenter launches and consolidates. The scenario is generated, so that its length is a parameter.

#![allow(missing_docs)] // the macros of criterion make functions without documentation

use std::fmt::Write;
use std::hint::black_box;
use std::path::Path;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use nodecast::catalog::Catalog;
use nodecast::scenario::Scenario;
use nodecast::simulation;

// As in the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const SERVICES: u32 = 50;
/// Replicas of each service at its peak.
const REPLICAS: u32 = 40;

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
        - { key: karpenter.sh/capacity-type, operator: In, values: [on-demand] }
        - { key: karpenter.k8s.aws/instance-category, operator: In, values: [c, m, r] }
        - { key: karpenter.k8s.aws/instance-generation, operator: Gt, values: ['2'] }
      expireAfter: 720h
  disruption: { consolidationPolicy: WhenEmptyOrUnderutilized, consolidateAfter: 1m }
---
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: { name: default }
spec:
  amiSelectorTerms: [{ alias: al2023@latest }]
  role: nodes
  subnetSelectorTerms: [{ tags: { name: shop } }]
  securityGroupSelectorTerms: [{ tags: { name: shop } }]
";

/// What a replica of the service with this number requests, in thousandths of a CPU.
fn milli_cpu(service: u32) -> u32 {
    [250, 500, 1_000, 2_000][service as usize % 4]
}

fn services() -> String {
    let mut text = String::new();
    for service in 0..SERVICES {
        let (milli, mib) = (milli_cpu(service), milli_cpu(service) * (1 + service % 7));
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
          readinessProbe: {{ httpGet: {{ path: /, port: 8080 }}, periodSeconds: 5 }}
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
    }
    text
}

fn scenario(days: u32) -> String {
    let mut text = format!(
        "name: fifty-services
region: us-east-1
start: 2026-03-02T00:00:00Z
duration: {days}d
seed: 1
versions: {{ karpenter: v1.13 }}
cluster: {{ zones: [us-east-1a, us-east-1b, us-east-1c] }}
manifests: [nodes.yaml, services.yaml]
policies: [{{ name: karpenter, autoscaler: karpenter }}]
load:
"
    );
    for service in 0..SERVICES {
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

fn load(folder: &Path, days: u32) -> Scenario {
    let put = |name: &str, text: &str| std::fs::write(folder.join(name), text).expect("a file can be written");
    put("nodes.yaml", NODES);
    put("services.yaml", services().trim_start_matches("---\n"));
    put("scenario.yaml", &scenario(days));
    Scenario::load(&folder.join("scenario.yaml")).expect("the scenario can be read").0
}

fn runs(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a directory can be made");
    let catalog = Catalog::embedded().expect("the built-in prices can be read");
    let mut group = criterion.benchmark_group("consolidation");
    group.sample_size(10).warm_up_time(Duration::from_millis(1));
    for days in [1, 30] {
        let scenario = load(folder.path(), days);
        let policy = scenario.for_policy(None).expect("it has a policy");
        group.bench_function(BenchmarkId::new("50 services, 2,000 pods, days", days), |bencher| {
            bencher.iter(|| black_box(simulation::run(&scenario, policy, catalog, 1, &mut |_| {})));
        });
    }
    group.finish();
}

criterion_group!(benches, runs);
criterion_main!(benches);
