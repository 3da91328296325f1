"""Writes a scenario of a day of 200 services with autoscalers, budgets, and constraints: the largest page.

    python3 tests/browser/many_services.py DIRECTORY
"""

import pathlib
import sys

COUNT = 200
POOL = """apiVersion: karpenter.sh/v1
kind: NodePool
metadata: { name: default }
spec:
  template:
    spec:
      nodeClassRef: { group: karpenter.k8s.aws, kind: EC2NodeClass, name: default }
      requirements:
        - { key: kubernetes.io/arch, operator: In, values: [amd64] }
        - { key: karpenter.sh/capacity-type, operator: In, values: [spot, on-demand] }
        - { key: karpenter.k8s.aws/instance-category, operator: In, values: [c, m, r] }
  disruption: { consolidationPolicy: WhenEmptyOrUnderutilized, consolidateAfter: 1m }
---
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: { name: default }
spec:
  amiSelectorTerms: [{ alias: al2023@latest }]
  role: nodes
  subnetSelectorTerms: [{ tags: { cluster: shop } }]
  securityGroupSelectorTerms: [{ tags: { cluster: shop } }]
"""
SPREAD = """
      topologySpreadConstraints:
        - { maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule, labelSelector: { matchLabels: { app: %s } } }"""
SERVICE = """---
apiVersion: apps/v1
kind: Deployment
metadata: {{ name: {name} }}
spec:
  selector: {{ matchLabels: {{ app: {name} }} }}
  template:
    metadata: {{ labels: {{ app: {name} }} }}
    spec:
      containers: [{{ name: app, image: app, resources: {{ requests: {{ cpu: {milli}m, memory: {memory}Mi }} }} }}]{spread}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {{ name: {name} }}
spec:
  scaleTargetRef: {{ apiVersion: apps/v1, kind: Deployment, name: {name} }}
  minReplicas: 4
  maxReplicas: 100
  metrics: [{{ type: Resource, resource: {{ name: cpu, target: {{ type: Utilization, averageUtilization: 60 }} }} }}]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {{ name: {name} }}
spec: {{ maxUnavailable: 10%, selector: {{ matchLabels: {{ app: {name} }} }} }}
"""
SCENARIO = """name: many-services
region: us-east-1
start: 2026-03-02T00:00:00Z
duration: 1d
seed: 1
versions: { karpenter: v1.13 }
cluster: { zones: [us-east-1a, us-east-1b, us-east-1c] }
manifests: [nodes.yaml, services.yaml]
policies: [{ name: karpenter, autoscaler: karpenter }]
load:
"""
LOAD = """  - workload: default/{name}
    requests: {{ diurnal: {{ night: {night}, peak: {peak}, peak_at: {hour}h }} }}
    service: {{ cpu_per_request: 10ms, concurrency: 64, base_latency: 20ms }}
"""

place = pathlib.Path(sys.argv[1])
place.mkdir(parents=True, exist_ok=True)
services, scenario = "", SCENARIO
for number in range(COUNT):
    name, milli = f"service-{number:03}", (250, 500, 1000, 2000)[number % 4]
    spread = SPREAD % name if number % 3 == 0 else ""
    services += SERVICE.format(name=name, milli=milli, memory=milli * (1 + number % 7), spread=spread)
    # 40 replicas at the target of their autoscaler.
    peak = 40 * milli * 60 // 1000
    scenario += LOAD.format(name=name, night=peak // 4, peak=peak, hour=10 + number % 9)
(place / "nodes.yaml").write_text(POOL)
(place / "services.yaml").write_text(services.removeprefix("---\n"))
(place / "scenario.yaml").write_text(scenario)
