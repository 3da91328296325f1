//! Workloads: services with and without load, HPA, KEDA, Jobs, DaemonSets, StatefulSets, spread, affinity, budgets.

use super::{Draft, Service, perhaps};
use crate::case::{Guarded, Part, Section};

/// A Deployment of random size and constraints, with what scales or guards it.
pub fn service(draft: &mut Draft, number: u64) -> Part {
    let name = format!("s{number}");
    let random = &mut draft.random;
    let replicas = random.between(1, 25);
    let cpu = random.pick(&["100m", "250m", "500m", "1000m", "1900m"]);
    let memory = random.pick(&["128Mi", "512Mi", "1024Mi", "3072Mi"]);
    let mut spec = format!(
        "terminationGracePeriodSeconds: {}\ncontainers: [{{ name: main, image: {name}, resources: {{ requests: {{ cpu: {cpu}, memory: {memory} }} }} }}]\n",
        random.pick(&["5", "30"])
    );
    spec.push_str(&constraint(draft, &name));
    let indented: String = spec.lines().map(|line| format!("      {line}\n")).collect();
    let mut manifests = format!(
        "apiVersion: apps/v1
kind: Deployment
metadata: {{ name: {name}, namespace: shop }}
spec:
  replicas: {replicas}
  selector: {{ matchLabels: {{ app: {name} }} }}
  template:
    metadata: {{ labels: {{ app: {name} }} }}
    spec:
{indented}"
    );
    let amount = |text: &str| text.trim_end_matches(['m', 'M', 'i']).parse().unwrap_or(0);
    let requests = (amount(cpu), amount(memory));
    draft.services.push(Service { name: name.clone(), replicas, requests, deployment: manifests.clone() });
    let mut texts = Vec::new();
    let (mut least, mut kept) = (replicas, 0);
    if draft.random.happens(40) && replicas > 2 {
        let min = draft.random.between(1, replicas - 1);
        manifests.push_str(&format!(
            "---\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {{ name: {name}, namespace: shop }}\n\
             spec: {{ minAvailable: {min}, selector: {{ matchLabels: {{ app: {name} }} }} }}\n"
        ));
        kept = min;
        draft.guarded.push(Guarded { workload: format!("shop/{name}"), min_available: min });
    }
    let mut parts = vec![format!("{replicas} x {cpu}/{memory}")];
    if draft.random.happens(60) {
        let (rate, busy) = (draft.random.between(5, 120), draft.busy);
        texts.push((
            Section::Load,
            format!(
                "{{ workload: shop/{name}, requests: {{ steps: [{{ at: 0s, rate: {rate} }}, {{ at: {}m, rate: {} }}, {{ at: {}m, rate: {} }}, {{ at: {busy}m, rate: 1 }}] }}, \
                 service: {{ cpu_per_request: 20ms, concurrency: 16, timeout: 5s }} }}",
                busy / 4, rate * 3, busy / 2, rate / 2 + 1
            ),
        ));
        parts.push("load".to_owned());
        if draft.random.happens(70) {
            manifests.push_str(&scaler(draft, &name, replicas));
            least = replicas.min(3);
            parts.push("scaled".to_owned());
        }
    } else if draft.random.happens(70) {
        let (at, to) = (draft.random.between(2, draft.busy), draft.random.between(0, 40));
        texts.push((Section::Timeline, format!("{{ at: {at}m, scale: {{ workload: shop/{name}, replicas: {to} }} }}")));
        least = least.min(to);
        parts.push(format!("to {to} at {at}m"));
    }
    texts.push((Section::Manifests, manifests));
    let part = Part::new(format!("{name} ({})", parts.join(" ")), texts);
    // With as many replicas as the budget keeps, none may be evicted, and nodes that have expired wait for ever.
    if kept > 0 && least <= kept { part.holding_up() } else { part }
}

fn scaler(draft: &mut Draft, name: &str, replicas: u64) -> String {
    let most = replicas + draft.random.between(1, 25);
    if draft.random.happens(70) {
        let target = draft.random.between(3, 9) * 10;
        return format!(
            "---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {{ name: {name}, namespace: shop }}\n\
             spec: {{ scaleTargetRef: {{ apiVersion: apps/v1, kind: Deployment, name: {name} }}, minReplicas: {}, maxReplicas: {most}, \
             metrics: [{{ type: Resource, resource: {{ name: cpu, target: {{ type: Utilization, averageUtilization: {target} }} }} }}] }}\n",
            replicas.min(3)
        );
    }
    format!(
        "---\napiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {{ name: {name}, namespace: shop }}\n\
         spec: {{ scaleTargetRef: {{ name: {name} }}, minReplicaCount: 1, maxReplicaCount: {most}, \
         triggers: [{{ type: cpu, metricType: Utilization, metadata: {{ value: \"60\" }} }}] }}\n"
    )
}

/// A constraint of the pods, or none.
fn constraint(draft: &mut Draft, name: &str) -> String {
    let spread = |key: &str, when: &str| {
        format!(
            "topologySpreadConstraints: [{{ maxSkew: 1, topologyKey: {key}, whenUnsatisfiable: {when}, labelSelector: {{ matchLabels: {{ app: {name} }} }} }}]\n"
        )
    };
    match draft.random.between(1, 8) {
        1 => spread("topology.kubernetes.io/zone", "DoNotSchedule"),
        2 => spread("topology.kubernetes.io/zone", "ScheduleAnyway"),
        3 => spread("kubernetes.io/hostname", "ScheduleAnyway"),
        4 => format!(
            "affinity: {{ podAntiAffinity: {{ preferredDuringSchedulingIgnoredDuringExecution: [{{ weight: 50, podAffinityTerm: {{ topologyKey: kubernetes.io/hostname, \
             labelSelector: {{ matchLabels: {{ app: {name} }} }} }} }}] }} }}\n"
        ),
        _ => String::new(),
    }
}

/// What is there beside services.
pub fn others(draft: &mut Draft) -> Vec<Part> {
    let all = [
        perhaps(draft, 35, |_| {
            let text = "apiVersion: apps/v1
kind: DaemonSet
metadata: { name: agent, namespace: kube-system }
spec:
  selector: { matchLabels: { app: agent } }
  template:
    metadata: { labels: { app: agent } }
    spec:
      tolerations: [{ operator: Exists }]
      containers: [{ name: main, image: agent, resources: { requests: { cpu: 50m, memory: 64Mi } } }]
";
            Part::new("daemons", vec![(Section::Manifests, text.to_owned())])
        }),
        perhaps(draft, 25, |draft| {
            let (completions, parallelism) = (draft.random.between(1, 30), draft.random.between(1, 8));
            let text = format!(
                "apiVersion: batch/v1
kind: Job
metadata: {{ name: batch, namespace: shop }}
spec:
  completions: {completions}
  parallelism: {parallelism}
  backoffLimit: 100
  template:
    spec:
      restartPolicy: Never
      containers: [{{ name: main, image: batch, resources: {{ requests: {{ cpu: 1500m, memory: 1Gi }} }} }}]
"
            );
            let times = "{ name: shop/batch, run_time: 90s }".to_owned();
            Part::new(
                format!("job {completions}/{parallelism}"),
                vec![(Section::Manifests, text), (Section::Workloads, times)],
            )
        }),
        perhaps(draft, 15, |draft| {
            let replicas = draft.random.between(1, 5);
            let text = format!(
                "apiVersion: apps/v1
kind: StatefulSet
metadata: {{ name: store, namespace: shop }}
spec:
  replicas: {replicas}
  serviceName: store
  selector: {{ matchLabels: {{ app: store }} }}
  template:
    metadata: {{ labels: {{ app: store }} }}
    spec:
      containers: [{{ name: main, image: store, volumeMounts: [{{ name: data, mountPath: /data }}], resources: {{ requests: {{ cpu: 500m, memory: 1Gi }} }} }}]
  volumeClaimTemplates:
    - metadata: {{ name: data }}
      spec: {{ accessModes: [ReadWriteOnce], storageClassName: gp3, resources: {{ requests: {{ storage: 20Gi }} }} }}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {{ name: gp3 }}
provisioner: ebs.csi.aws.com
parameters: {{ type: gp3 }}
volumeBindingMode: WaitForFirstConsumer
"
            );
            // A volume binds its pod to a zone, which Spot alone or a failed zone may not serve.
            Part::new(format!("store x {replicas}"), vec![(Section::Manifests, text)]).holding_up()
        }),
        perhaps(draft, 20, |draft| {
            let busy = draft.busy;
            let text = format!(
                "{{ name: orders, kind: sqs, workload: shop/worker, time_per_message: 4s, cpu_per_message: 2s, concurrency: 2, waiting: {}, messages: {{ steps: [{{ at: 0s, rate: 0.5 }}, {{ at: {busy}m, rate: 0 }}] }} }}",
                draft.random.between(0, 300)
            );
            let objects = "apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: { name: worker, namespace: shop }
spec:
  scaleTargetRef: { name: worker }
  minReplicaCount: 0
  maxReplicaCount: 18
  pollingInterval: 15
  cooldownPeriod: 90
  triggers: [{ type: aws-sqs-queue, metadata: { queueURL: \"https://sqs.us-east-1.amazonaws.com/123456789012/orders\", awsRegion: us-east-1, queueLength: \"10\" } }]
---
apiVersion: apps/v1
kind: Deployment
metadata: { name: worker, namespace: shop }
spec:
  replicas: 0
  selector: { matchLabels: { app: worker } }
  template:
    metadata: { labels: { app: worker } }
    spec:
      containers: [{ name: main, image: worker, resources: { requests: { cpu: 550m, memory: 700Mi } } }]
";
            Part::new("queue", vec![(Section::Queues, text), (Section::Manifests, objects.to_owned())])
        }),
    ];
    all.into_iter().flatten().collect()
}
